/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared by the engine's tests: a stream in a host that records every event, the ways in which the
 * same bytes can arrive, and a reference writer of FPDUs that is independent of the engine.
 */
#ifndef WEFT_RIG_H
#define WEFT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../kernel/proto/stream.h"

/* One event as the host saw it; the data it points to is copied. */
struct event {
	enum weft_rx_event ev;
	enum weft_err err;		/* WEFT_RX_ERROR */
	struct weft_mpa_frame frame;	/* WEFT_RX_STARTUP */
	struct weft_ddp_hdr ddp;	/* WEFT_RX_FPDU, and errors of headers */
	u8 raw[sizeof(((struct weft_fpdu *)0)->raw)];
	u8 raw_len;
	u16 ulpdu_len;
	u8 *data;			/* payload, or private data */
	u32 len;
};

/* A stream and its host. */
struct host {
	struct weft_stream st;
	struct weft_mpa_agreed start;	/* used at once after WEFT_RX_STARTUP when autostart */
	bool autostart;
	bool no_memory;			/* lends nothing */
	u32 left;			/* octets not consumed, in that case */
	u32 lent;			/* chunks lent and not yet taken back */
	u32 lends;			/* times a chunk was requested */
	struct event *log;
	u32 n;
};

/* In Full Operation if @agreed is given, else at start-up. */
void host_init(struct host *h, bool initiator, const struct weft_mpa_agreed *agreed);
void host_free(struct host *h);
/* Delivers pieces in one call of data_ready; asserts that all of them are consumed. */
void host_deliver(struct host *h, const struct weft_seg *seg, u32 n);
void host_bytes(struct host *h, const void *p, u32 len);
/* The only event so far, or the last of @n. */
const struct event *host_last(const struct host *h, u32 n, enum weft_rx_event ev);

/* How a connection begins, and the bytes that it is fed. */
struct scenario {
	bool initiator;
	bool ext;
	const struct weft_mpa_agreed *agreed;	/* NULL: at start-up */
	const struct weft_mpa_agreed *start;	/* used after WEFT_RX_STARTUP */
	const u8 *bytes;
	u32 len;
};

/*
 * Runs @s with the bytes whole (against a guard page), then one by one, as one-byte pieces of one
 * call, and split at each point (at most @splits of them, spread evenly), in two calls and as two
 * pieces with an empty one between. All must give the events of the first run, which are left in
 * *@h.
 */
void each_delivery(const struct scenario *s, u32 splits, struct host *h);

/* Bytes that end where an unreadable page begins. Slot 0 or 1. */
u8 *guarded(int slot, const void *p, u32 len);

/* Reference writers */

/* Bit by bit, as in the textbooks. */
u32 ref_crc32c(const u8 *p, u32 len);

struct ref_wire {
	u8 *buf;
	u32 len;
	u64 pos;			/* since Full Operation */
	bool markers;
	bool crc;
	/* Damage, for the FPDUs that follow: */
	u16 marker_reserved;
	u16 ptr_or;			/* into FPDUPTR, before the CRC */
	u16 ptr_add;
	u8 pad;				/* value of pad octets */
	u32 crc_xor;
};

void ref_init(struct ref_wire *w, bool crc, bool markers);
void ref_free(struct ref_wire *w);
void ref_fpdu(struct ref_wire *w, const u8 *ulpdu, u32 len);
/* As ref_fpdu, but with @claim as the ULPDU_Length. */
void ref_fpdu_claim(struct ref_wire *w, const u8 *ulpdu, u32 len, u16 claim);

/* ULPDUs: return their length. */
u32 ulpdu_untagged(u8 *p, u8 op, u32 qn, u32 msn, u32 mo, bool last, const void *data, u32 len);
u32 ulpdu_tagged(u8 *p, u8 op, u32 stag, u64 to, bool last, const void *data, u32 len);

/* Octets that differ at every position. */
void pattern(u8 *p, u32 len, u32 salt);

/* A small generator; the seed is WEFT_SEED or fixed, and printed on failure. */
u32 rnd(void);
u32 rnd_below(u32 n);
void rnd_seed(const char *test);

extern const struct weft_mpa_agreed plain_agreed;	/* no CRC, no Markers */
extern const struct weft_mpa_agreed crc_agreed;
extern const struct weft_mpa_agreed marked_agreed;	/* CRC, Markers both ways */

#endif
