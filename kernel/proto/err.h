/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way in which a stream can be wrong, and what the Terminate says of it.
 *
 * One enum for all layers, one const table (err.c) from it to the Terminate
 * Control field (RFC 5040 §4.8, RFC 5041 §8.2, RFC 6580 §3, RFC 6581 §9).
 */
#ifndef WEFT_ERR_H
#define WEFT_ERR_H

#include "port.h"

enum weft_err {
	WEFT_OK,

	/* MPA start-up: closed without a Terminate (RFC 5044 §7.1.2, §8 code 4). */
	WEFT_E_MPA_STARTUP,

	/* LLP (layer 2, etype 0): no headers. */
	WEFT_E_MPA_CRC,			/* 2/0/02 */
	WEFT_E_MPA_MARKER,		/* 2/0/03: Marker and ULPDU_Length disagree */
	WEFT_E_MPA_SETUP,		/* 2/0/05: local enhanced set-up error */
	WEFT_E_MPA_IRD,			/* 2/0/06: insufficient IRD resources */
	WEFT_E_MPA_RTR,			/* 2/0/07: no matching RTR option */

	/* DDP local catastrophic. */
	WEFT_E_DDP_LOCAL,		/* 1/0/00 */

	/* DDP tagged (1/1). */
	WEFT_E_DDP_STAG,		/* 00: invalid STag */
	WEFT_E_DDP_BOUNDS,		/* 01: base or bounds */
	WEFT_E_DDP_ASSOC,		/* 02: STag of another PD or stream */
	WEFT_E_DDP_WRAP,		/* 03: TO wrap */
	WEFT_E_DDP_TVERSION,		/* 04 */

	/* DDP untagged (1/2). */
	WEFT_E_DDP_QN,			/* 01 */
	WEFT_E_DDP_NO_BUFFER,		/* 02 */
	WEFT_E_DDP_MSN,			/* 03 */
	WEFT_E_DDP_MO,			/* 04 */
	WEFT_E_DDP_TOO_LONG,		/* 05 */
	WEFT_E_DDP_UVERSION,		/* 06 */

	/* RDMAP local catastrophic. */
	WEFT_E_RDMAP_LOCAL,		/* 0/0/00 */

	/* RDMAP remote protection (0/1). */
	WEFT_E_RDMAP_STAG,		/* 00 */
	WEFT_E_RDMAP_BOUNDS,		/* 01 */
	WEFT_E_RDMAP_ACCESS,		/* 02 */
	WEFT_E_RDMAP_ASSOC,		/* 03 */
	WEFT_E_RDMAP_WRAP,		/* 04 */
	WEFT_E_RDMAP_PROT_CANT_INV,	/* 09: the STag is another PD's or stream's */

	/* RDMAP remote operation (0/2). */
	WEFT_E_RDMAP_VERSION,		/* 05 */
	WEFT_E_RDMAP_OPCODE,		/* 06 */
	WEFT_E_RDMAP_STREAM,		/* 07: catastrophic, this stream */
	WEFT_E_RDMAP_GLOBAL,		/* 08: catastrophic, the RNIC */
	WEFT_E_RDMAP_CANT_INV,		/* 09: the STag is not valid */
	WEFT_E_RDMAP_UNSPECIFIED,	/* FF */

	WEFT_E_NR
};

/* Which copies of the offender's headers a Terminate carries, at most. */
enum weft_term_headers {
	WEFT_TERM_BARE,			/* M=D=R=0 */
	WEFT_TERM_DDP,			/* M=D=1 */
	WEFT_TERM_DDP_RDMAP,		/* M=D=1, and R=1 if a Read Request caused it */
};

struct weft_term_code {
	u8 layer;
	u8 etype;
	u8 code;
	u8 headers;			/* enum weft_term_headers */
};

/* Returns the Terminate for @e. Not for WEFT_OK nor WEFT_E_MPA_STARTUP, which
 * have none (their entry is the RDMAP local catastrophic one).
 */
const struct weft_term_code *weft_err_term(enum weft_err e);

/* Returns the error that a Terminate of these speaks of; WEFT_OK if err.c's table has none. */
enum weft_err weft_err_of_term(u8 layer, u8 etype, u8 code);

/* Returns a short constant name ("mpa-crc") for counters and debug lines. */
const char *weft_err_name(enum weft_err e);

#endif
