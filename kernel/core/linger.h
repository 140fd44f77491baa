/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lingering: many posts for one doorbell.
 *
 * The doorbell sends inline, which is best for latency. But a program that posts
 * a stream of small requests one by one then pays for a call of the kernel, of
 * TCP and of everything below for each. So when the doorbell rings again and
 * again in less time than its run takes, the send side does not go to sleep behind
 * the next run: it leaves WEFT_RING_KICK clear and posts cost nothing. The host looks
 * at the ring again
 *   - when the program polls the CQ and finds nothing: the CQ's ring says
 *     WEFT_RING_POLL, and libibverbs' provider calls the host;
 *   - after WEFT_LINGER_NS at the latest, by a timer, whatever the program does;
 *   - in every other run of the send side.
 * The timer also judges: if few requests came, the send side goes to sleep as
 * usual, and it takes a longer streak of doorbells to linger again.
 *
 * Large requests gain, too: the ends of messages share segments and calls. A
 * ping-pong never lingers: its next post follows the peer's answer, which takes
 * longer than the run that sent the question. A QP lingers in RTS alone.
 *
 * Locking: the connection's lock around every function but weft_linger_doorbell_ends().
 */
#ifndef WEFT_CORE_LINGER_H
#define WEFT_CORE_LINGER_H

#include "qp_types.h"

/* The longest that a post waits while its program neither polls nor posts on. */
#define WEFT_LINGER_NS	(200 * 1000)

/* Times are compared only: any clock will do. If it goes back, one decision is wrong. */
struct weft_linger {
	u64 began, ended, took;		/* the doorbell's last run */
	u32 streak, needed;		/* doorbells too soon, and how many make the QP linger */
	u32 from, calls;		/* where the user was when the time began; since then */
};

void weft_linger_init(struct weft_linger *l);

/*
 * The doorbell of @qp has rung. True: it should linger from now on, if its CQ's
 * program polls; the host then calls weft_linger_start().
 */
bool weft_linger_doorbell_begins(struct weft_linger *l, const struct weft_qpc *qp, u64 now);

/* Its run is over. No lock: two threads that ring spoil the measure, and no more. */
void weft_linger_doorbell_ends(struct weft_linger *l, u64 now);

/* The peer answers one by one: what was posted soon behind the answer is no stream. */
static inline void weft_linger_answered(struct weft_linger *l)
{
	l->streak = 0;
}

/* @qp lingers. The host's timer is to run for WEFT_LINGER_NS. */
void weft_linger_start(struct weft_linger *l, struct weft_qpc *qp);

/*
 * The timer has expired. True: lingering is worth it, and the timer is to run once more.
 * False: @qp lingers no more, and its CQ's ring must not ask for polls any more.
 */
bool weft_linger_is_worth_it(struct weft_linger *l, struct weft_qpc *qp);

#endif
