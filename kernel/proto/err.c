// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The one table from an error to its Terminate and its name. */
#include "err.h"

#define LAYER_RDMAP	0
#define LAYER_DDP	1
#define LAYER_LLP	2

/* Error types within a layer: RFC 5040 Fig. 9, RFC 5041 §8.2, RFC 6581 §8. */
#define RDMAP_LOCAL	0
#define RDMAP_PROT	1
#define RDMAP_OP	2
#define DDP_LOCAL	0
#define DDP_TAGGED	1
#define DDP_UNTAGGED	2
#define LLP_MPA		0

/*
 * What is attached: RFC 5040 Fig. 10. A local catastrophic error carries no
 * header in DDP either: §4.8 ("Terminated DDP Header") outweighs
 * the figure's row for DDP. A Remote Operation error carries no RDMAP header:
 * there the figure outweighs §7.1.
 */
#define LLP(c, n)	{ { LAYER_LLP, LLP_MPA, c, WEFT_TERM_BARE }, n }
#define TAGGED(c, n)	{ { LAYER_DDP, DDP_TAGGED, c, WEFT_TERM_DDP }, n }
#define UNTAGGED(c, n)	{ { LAYER_DDP, DDP_UNTAGGED, c, WEFT_TERM_DDP }, n }
#define PROT(c, n)	{ { LAYER_RDMAP, RDMAP_PROT, c, WEFT_TERM_DDP_RDMAP }, n }
#define OP(c, n)	{ { LAYER_RDMAP, RDMAP_OP, c, WEFT_TERM_DDP }, n }
#define LOCAL(layer, n)	{ { layer, 0, 0, WEFT_TERM_BARE }, n }

static const struct {
	struct weft_term_code term;
	const char *name;
} errors[] = {
	[WEFT_OK]			= LOCAL(LAYER_RDMAP, "ok"),
	[WEFT_E_MPA_STARTUP]		= LOCAL(LAYER_RDMAP, "mpa-startup"),
	[WEFT_E_MPA_CRC]		= LLP(0x02, "mpa-crc"),
	[WEFT_E_MPA_MARKER]		= LLP(0x03, "mpa-marker"),
	[WEFT_E_MPA_SETUP]		= LLP(0x05, "mpa-setup"),
	[WEFT_E_MPA_IRD]		= LLP(0x06, "mpa-ird"),
	[WEFT_E_MPA_RTR]		= LLP(0x07, "mpa-rtr"),
	[WEFT_E_DDP_LOCAL]		= LOCAL(LAYER_DDP, "ddp-local"),
	[WEFT_E_DDP_STAG]		= TAGGED(0x00, "ddp-stag"),
	[WEFT_E_DDP_BOUNDS]		= TAGGED(0x01, "ddp-bounds"),
	[WEFT_E_DDP_ASSOC]		= TAGGED(0x02, "ddp-assoc"),
	[WEFT_E_DDP_WRAP]		= TAGGED(0x03, "ddp-wrap"),
	[WEFT_E_DDP_TVERSION]		= TAGGED(0x04, "ddp-tagged-version"),
	[WEFT_E_DDP_QN]			= UNTAGGED(0x01, "ddp-qn"),
	[WEFT_E_DDP_NO_BUFFER]		= UNTAGGED(0x02, "ddp-no-buffer"),
	[WEFT_E_DDP_MSN]		= UNTAGGED(0x03, "ddp-msn"),
	[WEFT_E_DDP_MO]			= UNTAGGED(0x04, "ddp-mo"),
	[WEFT_E_DDP_TOO_LONG]		= UNTAGGED(0x05, "ddp-too-long"),
	[WEFT_E_DDP_UVERSION]		= UNTAGGED(0x06, "ddp-untagged-version"),
	[WEFT_E_RDMAP_LOCAL]		= LOCAL(LAYER_RDMAP, "rdmap-local"),
	[WEFT_E_RDMAP_STAG]		= PROT(0x00, "rdmap-stag"),
	[WEFT_E_RDMAP_BOUNDS]		= PROT(0x01, "rdmap-bounds"),
	[WEFT_E_RDMAP_ACCESS]		= PROT(0x02, "rdmap-access"),
	[WEFT_E_RDMAP_ASSOC]		= PROT(0x03, "rdmap-assoc"),
	[WEFT_E_RDMAP_WRAP]		= PROT(0x04, "rdmap-wrap"),
	[WEFT_E_RDMAP_PROT_CANT_INV]	= PROT(0x09, "rdmap-protected-invalidate"),
	[WEFT_E_RDMAP_VERSION]		= OP(0x05, "rdmap-version"),
	[WEFT_E_RDMAP_OPCODE]		= OP(0x06, "rdmap-opcode"),
	[WEFT_E_RDMAP_STREAM]		= OP(0x07, "rdmap-stream"),
	[WEFT_E_RDMAP_GLOBAL]		= OP(0x08, "rdmap-global"),
	[WEFT_E_RDMAP_CANT_INV]		= OP(0x09, "rdmap-cannot-invalidate"),
	[WEFT_E_RDMAP_UNSPECIFIED]	= OP(0xFF, "rdmap-unspecified"),
};
static_assert(ARRAY_SIZE(errors) == WEFT_E_NR, "an entry for each error");

const struct weft_term_code *weft_err_term(enum weft_err e)
{
	return &errors[e].term;
}

enum weft_err weft_err_of_term(u8 layer, u8 etype, u8 code)
{
	enum weft_err e;

	for (e = WEFT_E_MPA_CRC; e < WEFT_E_NR; e++) {
		const struct weft_term_code *t = &errors[e].term;

		if (t->layer == layer && t->etype == etype && t->code == code)
			return e;
	}
	return WEFT_OK;
}

const char *weft_err_name(enum weft_err e)
{
	return errors[e].name;
}
