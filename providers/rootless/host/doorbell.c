// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The doorbell: the send side runs in the caller's context, which may wait there for the answer. */
#include <unistd.h>

#include "conn.h"
#include "process/stats.h"
#include "qp.h"

/* Doorbells between two reads of the socket. */
#define LOOK_EACH 8

static void ring_doorbell(struct rl_conn *c)
{
	struct weft_linger *l = &c->link.linger;
	struct rl_qp *qp = c->qp;

	/* It is about a receive: the rate of those says nothing about Sends. */
	if (rl_conn_awaits_receive(c)) {
		rl_conn_tx(c);
		return;
	}
	if (weft_linger_doorbell_begins(l, &qp->core, rl_ticks()) && rl_cq_linger(qp->scq, qp)) {
		weft_linger_start(l, &qp->core);
		c->linger_until = rl_now_ms() + 1;
	}
	rl_count(RL_DOORBELLS, 1);
	rl_conn_tx(c);
	weft_linger_doorbell_ends(l, rl_ticks());
	/* A program that only posts may leave the progress thread no CPU to receive. */
	if (!(++c->doorbells % LOOK_EACH))
		rl_conn_receive(c);
}

/* ---- the answer ---- */

/*
 * A program that waits for an RDMA Write spins on its memory, and makes no call that could place
 * it. The progress thread would, but where every CPU is busy, Linux runs it only at the next tick.
 * So if both sides have sent in turn, the doorbell waits for the answer. It does not for a program
 * that sleeps on the CQ, polls it, or has other connections there.
 */
#define ANSWER_NS	2000000	/* longer than a tick: the peer may have to wait for one */
#define DIALOGUE_MIN	16	/* answered doorbells in a row that make a dialogue */
#define ANSWER_MS	2	/* a program that has its message may compute instead */
#define ANSWERS_LOST	16	/* so many more, after a missing answer */

/* FPDUs of the peer's program. */
static u32 peer_fpdus(const struct rl_conn *c)
{
	return c->link.st.rx_fpdus - (c->link.qp ? c->link.qp->asides : 0);
}

/* A doorbell has rung: should it wait for an answer? Connection's lock. */
static bool expects_answer(struct rl_conn *c)
{
	u32 said = peer_fpdus(c);

	if (said == c->rx_seen)
		c->answered = min_t(s32, c->answered, 0);
	else
		c->answered++;
	c->dialogue = said == c->rx_seen ? 0 : c->dialogue + 1;
	c->rx_seen = said;
	return c->answered >= DIALOGUE_MIN && c->link.mode == WEFT_MODE_FULL &&
	       !c->qp->core.linger &&
	       rl_cq_is_unattended(c->qp->rcq) && rl_cq_is_unattended(c->qp->scq);
}

/* Reads once; true: an FPDU has arrived, or the connection has ended. */
static bool look_for_answer(struct rl_conn *c)
{
	bool over;

	rl_conn_lock(c);
	rl_conn_receive(c);
	over = !c->qp || peer_fpdus(c) != c->rx_seen;
	if (over)
		weft_linger_answered(&c->link.linger);
	rl_conn_unlock(c);
	return over;
}

static void no_answer_came(struct rl_conn *c)
{
	rl_conn_lock(c);
	c->answered = -ANSWERS_LOST;
	rl_conn_unlock(c);
}

static void await_answer(struct rl_conn *c, struct rl_cq *cq)
{
	u64 until = rl_now_ns() + ANSWER_NS;

	for (rl_cq_note_look(cq); !look_for_answer(c); rl_cq_note_look(cq))
		if (rl_now_ns() > until) {
			no_answer_came(c);
			return;
		}
}

/*
 * In a dialogue the next doorbell rings soon, and sends the acknowledgement along: that saves a
 * call of TCP a message. A poll that comes first sends it, too (rl_conn_receive()).
 */
void rl_conn_answer(struct rl_conn *c)
{
	if (c->dialogue < DIALOGUE_MIN) {
		c->tx_due = true;
		return;
	}
	c->answer_due = true;
	if (c->answer_by)
		return;
	c->answer_by = rl_now_ms() + ANSWER_MS;
}

void rl_conn_answer_now(struct rl_conn *c)
{
	if (!rl_lock_try(&c->lock))
		return;
	if (c->answer_due && c->qp && c->owner == getpid())
		rl_conn_tx(c);
	rl_unlock(&c->lock);
}

void rl_qp_ring_doorbell(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);
	struct rl_cq *cq = qp->rcq;
	bool wait, receive;

	if (c) {
		receive = rl_conn_awaits_receive(c);
		ring_doorbell(c);
		wait = !receive && c->qp && expects_answer(c);
		/* Once the lock is dropped, the QP and its CQ may be destroyed. */
		if (wait)
			rl_watch_get(&cq->watch);
		rl_conn_unlock(c);
		if (wait) {
			await_answer(c, cq);
			rl_watch_put(&cq->watch);
		}
		rl_conn_put(c);
		return;
	}
	rl_lock(&qp->lock);
	/* The rings of a QP that is being destroyed may be gone. */
	if (!qp->conn && !qp->gone)
		rl_qp_flush(qp);
	rl_unlock(&qp->lock);
}
