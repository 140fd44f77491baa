// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lingering: many posts for one doorbell.
 *
 * The doorbell sends inline, which is best for latency. But a program that posts
 * a stream of small requests one by one then pays for a call of the kernel, of
 * TCP and of everything below for each. So when the doorbell rings again and
 * again in less time than its run takes, the send side does not go to sleep behind
 * the next run: it leaves WEFT_RING_KICK clear and posts cost nothing. It looks
 * at the ring again
 *   - when the program polls the CQ and finds nothing: the CQ's ring says
 *     WEFT_RING_POLL, and libibverbs' provider calls us (WEFT_METHOD_CQ_KICK);
 *   - after LINGER_NS at the latest, by a timer, whatever the program does;
 *   - in every other run of the send side.
 * The timer also judges: if few requests came, the send side goes to sleep as
 * usual, and it takes a longer streak of doorbells to linger again.
 *
 * Large requests gain, too: the ends of messages share segments and calls. A kernel
 * consumer's posts never linger; nor does a ping-pong: its next post follows the
 * peer's answer, which takes longer than the run that sent the question. One QP of a
 * CQ lingers at a time, and only in RTS: before that a QP may pass to another
 * connection, whose timer does not run.
 */
#include <linux/hrtimer.h>

#include "compat/hrtimer.h"
#include "conn.h"
#include "verbs.h"

/* The longest that a post waits while its program neither polls nor posts on. */
#define LINGER_NS	(200 * NSEC_PER_USEC)
/* Doorbells sooner than the run before took, less those later: at first, and at most. */
#define STREAK_MIN	8
#define STREAK_MAX	1024
/* Slots filled for each time that we had to be called: more than that is worth it. */
#define SLOTS_MIN	4

static enum hrtimer_restart over(struct hrtimer *timer)
{
	struct weft_conn *conn = container_of(timer, struct weft_conn, linger.timer);

	set_bit(WEFT_CF_LINGER_OVER, &conn->flags);
	weft_conn_pend(conn);
	return HRTIMER_NORESTART;
}

void weft_linger_init(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->linger;

	hrtimer_setup(&l->timer, over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	l->needed = STREAK_MIN;
}

void weft_linger_exit(struct weft_conn *conn)
{
	hrtimer_cancel(&conn->linger.timer);
}

static u32 posted_to(const struct weft_conn *conn)
{
	return READ_ONCE(conn->qp->core.sq.q.ring->user_idx);
}

/* What waits already, for TCP perhaps, is no reason to look again. */
static void start(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->linger;

	l->from = posted_to(conn);
	l->calls = 1;
	hrtimer_start(&l->timer, ns_to_ktime(LINGER_NS), HRTIMER_MODE_REL_SOFT);
}

void weft_linger_begin(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->linger;
	struct weft_qp *qp = conn->qp;
	u64 now = ktime_get_ns();

	WRITE_ONCE(l->began, now);
	l->calls++;
	if (now - READ_ONCE(l->ended) >= READ_ONCE(l->took)) {
		if (l->streak)
			l->streak--;
		return;
	}
	if (++l->streak < l->needed || qp->core.linger || qp->core.state != WEFT_QPS_RTS ||
	    !weft_cq_linger(qp->scq, qp))
		return;
	qp->core.linger = true;
	start(conn);
}

/* Two threads that ring one doorbell spoil the measure, and no more than that. */
void weft_linger_end(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->linger;
	u64 now = ktime_get_ns();

	WRITE_ONCE(l->took, now - READ_ONCE(l->began));
	WRITE_ONCE(l->ended, now);
}

void weft_linger_stop(struct weft_conn *conn)
{
	struct weft_qp *qp = conn->qp;

	if (!qp || !qp->core.linger)
		return;
	qp->core.linger = false;
	weft_cq_linger_over(qp->scq, qp);
}

void weft_linger_judge(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->linger;
	u32 posted;

	if (!test_and_clear_bit(WEFT_CF_LINGER_OVER, &conn->flags) || !conn->qp ||
	    !conn->qp->core.linger)
		return;
	/* A user that lies here lingers at its own expense. */
	posted = posted_to(conn) - l->from;
	if (posted > SLOTS_MIN * l->calls) {
		l->needed = STREAK_MIN;
		start(conn);
		return;
	}
	weft_linger_stop(conn);
	l->streak = 0;
	l->needed = min(2 * l->needed, STREAK_MAX);
}
