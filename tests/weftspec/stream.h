/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An iWARP stream as the tester holds it: start-up frames, FPDUs out (right
 * or broken), FPDUs in with their lint, the reflector's table.
 */
#ifndef WEFTSPEC_STREAM_H
#define WEFTSPEC_STREAM_H

#include "conn.h"
#include "ctx.h"
#include "ddp.h"
#include "fpdu.h"
#include "mpa.h"
#include "reflector.h"
#include "term.h"

#define HEAD_COPY 70 /* the longest DDP + RDMAP header */

struct region {
	uint64_t addr;
	uint32_t len, stag;
};

struct table {
	bool valid;
	uint32_t caps;
	uint16_t recv_count, recv_size;
	uint64_t status, recv;
	struct region r[REFL_REGIONS];
};

/* The segment that a Terminate must speak of. */
struct offender {
	uint8_t head[HEAD_COPY];
	size_t head_len, ulpdu_len;
};

/* One of the peer's messages in flight, for the lint. */
struct watch {
	bool any, active;
	uint8_t op;
	uint32_t msn, inval, stag;
	uint32_t mo;
	uint64_t to;
};

/* A received FPDU; s.data lives until the next one is received. */
struct in {
	struct fpdu f;
	struct seg s;
	bool runt; /* shorter than its DDP header */
};

enum rx { RX_FPDU, RX_QUIET, RX_FIN, RX_RST };

struct stream {
	struct ctx *c;
	struct conn *k;
	struct stream *next;
	int id;
	/* start-up */
	struct mpa_frame mine, theirs;
	struct mpa_enh my_enh, their_enh;
	bool enhanced;
	uint8_t pd[66000]; /* the peer's private data, enhanced words included */
	size_t pd_len;
	struct table t;
	/* --by-hand; how often the peer's device has asked and was answered */
	struct { uint32_t own_qpn, own_psn, qpn, psn, asks; } hand;
	/* Full Operation */
	bool crc;
	struct fpdu_tx tx;
	struct fpdu_rx rx;
	uint32_t send_msn, read_msn, cmd_seq;
	uint8_t *out;
	size_t out_len, out_cap;
	struct offender off;
	bool off_fixed;
	struct in m;
	unsigned int nin; /* FPDUs received */
	struct watch untagged[4], write, resp;
	size_t emss;
	bool had_term;
	struct term term;
	uint8_t term_raw[256];
	size_t term_len;
};

struct stream *stream_new(struct ctx *c, struct conn *k);
/* From the two frames: CRC, Markers each way. */
void stream_start(struct stream *s);

/* Queue an FPDU; shoot sends all queued octets with one send(). */
void put_raw(struct stream *s, const uint8_t *ulpdu, size_t len,
	     const struct fpdu_break *b);
void put_seg(struct stream *s, const struct seg *g, const struct fpdu_break *b);
void put_bytes(struct stream *s, const void *p, size_t len);
void shoot(struct stream *s);
/* In two sends with a pause: the first at octets. */
void shoot_cut(struct stream *s, size_t at, int gap_ms);
void shoot_each(struct stream *s, size_t piece, int gap_ms);
static inline void send_seg(struct stream *s, const struct seg *g)
{
	put_seg(s, g, NULL);
	shoot(s);
}
/* Later FPDUs do not change what a Terminate must copy. */
void blame_last(struct stream *s);
/* A Terminate must copy no header. */
void blame_none(struct stream *s);

enum rx receive(struct stream *s, int ms);

/* Right segments, to be changed by the caller. */
struct seg mk_send(struct stream *s, const void *p, size_t len);
struct seg mk_write(uint32_t stag, uint64_t to, const void *p, size_t len);
/* hdr: RDMA_READ_LEN octets that must live as long as the segment. */
struct seg mk_read(struct stream *s, uint8_t *hdr, uint32_t stag, uint64_t to,
		   uint32_t size);
struct seg mk_atomic(struct stream *s, uint8_t *hdr, const struct atomic *a);
struct seg mk_resp(const struct rreq *r, uint32_t off, const void *p, size_t n,
		   bool last);

#define SINK_STAG 0x5afe0001u
#define SINK_TO 0x1000ull

#endif
