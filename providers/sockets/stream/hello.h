/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What two ends of a stream tell each other: in the private data of MPA's Request and Reply, and
 * in the head of each Send. Each is judged as it is read. Pure functions; docs/sockets.md has the
 * wire.
 */
#ifndef RL_STREAM_HELLO_H
#define RL_STREAM_HELLO_H

#include "process/port.h"

/* ---- private data ---- */

#define RL_STREAM_WINDOW_MIN	(16 * 1024)
#define RL_STREAM_WINDOW_MAX	(64 * 1024 * 1024)

struct rl_stream_terms {
	u32 window;			/* octets in flight that the sender accepts */
	bool operations;		/* in place of octets */
};

/* Magic, version, 1 for operations, two zeros, the window. */
#define RL_STREAM_TERMS_LEN	12

void rl_stream_write_terms(u8 p[RL_STREAM_TERMS_LEN], const struct rl_stream_terms *t);
/* False: no terms, another version, or a window out of range. */
bool rl_stream_read_terms(const u8 *p, u32 len, struct rl_stream_terms *t);

/* ---- the head of a Send ---- */

struct rl_stream_head {
	u32 limit;			/* octets the receiver may send in all, modulo 2^32 */
	bool fin;			/* the octets behind this head are the speaker's last */
};

/* The limit, flags, three zeros. */
#define RL_STREAM_HEAD_LEN	8

void rl_stream_write_head(u8 p[RL_STREAM_HEAD_LEN], const struct rl_stream_head *h);
/* False: what is to be zero is not. */
bool rl_stream_read_head(const u8 p[RL_STREAM_HEAD_LEN], struct rl_stream_head *h);

/* ---- credit ---- */

/* What this end may send. */
struct rl_stream_credit {
	u32 window;			/* the peer's */
	u32 sent, limit;		/* octets in all, modulo 2^32 */
};

static inline u32 rl_stream_credit(const struct rl_stream_credit *c)
{
	return c->limit - c->sent;
}

/* The peer has said @limit. False: it takes credit back, or gives more than its window. */
bool rl_stream_take_limit(struct rl_stream_credit *c, u32 limit);

#endif
