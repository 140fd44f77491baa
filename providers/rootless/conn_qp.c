// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP and its connection: binding, letting go, lingering, doorbells. */
#include "conn.h"
#include "verbs.h"

/* ---- binding ---- */

int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp)
{
	int rv = -EBUSY;

	pthread_mutex_lock(&qp->lock);
	if (!qp->gone && !qp->conn && qp->core.state == WEFT_QPS_IDLE) {
		rl_conn_get(c);
		rl_qp_get(qp);
		qp->conn = c;
		c->qp = qp;
		c->link.qp = &qp->core;
		rv = 0;
	}
	pthread_mutex_unlock(&qp->lock);
	return rv;
}

void rl_conn_hand_over(struct rl_conn *c, struct rl_conn *heir)
{
	struct rl_qp *qp = c->qp;

	weft_link_succeed(&c->link, &heir->link, rl_now_ms());
	rl_conn_get(heir);
	pthread_mutex_lock(&qp->lock);
	qp->conn = heir;
	pthread_mutex_unlock(&qp->lock);
	heir->qp = qp;
	c->qp = NULL;
	rl_conn_put(c);
}

static void stop_lingering(struct rl_conn *c)
{
	struct rl_cq *cq = c->qp->scq;

	c->linger_until = 0;
	if (!c->qp->core.linger)
		return;
	c->qp->core.linger = false;
	rl_cq_linger_over(cq, c->qp);
}

void rl_conn_release_qp(struct rl_conn *c)
{
	struct rl_qp *qp = c->qp;

	if (!qp)
		return;
	stop_lingering(c);
	weft_link_release_qp(&c->link);
	weft_region_end_run(&qp->core);
	rl_conn_leave_place(c);
	c->qp = NULL;
	pthread_mutex_lock(&qp->lock);
	qp->conn = NULL;
	pthread_mutex_unlock(&qp->lock);
	rl_qp_put(qp);
	rl_conn_put(c);
}

/* The QP may get another connection meanwhile, but not this one again. */
struct rl_conn *rl_conn_of_qp(struct rl_qp *qp)
{
	struct rl_conn *c;

	for (;;) {
		pthread_mutex_lock(&qp->lock);
		c = qp->conn;
		if (c)
			rl_conn_get(c);
		pthread_mutex_unlock(&qp->lock);
		if (!c)
			return NULL;
		rl_conn_lock(c);
		if (c->qp == qp)
			return c;
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}

/* ---- sending ---- */

/* The time is up: was lingering worth it? */
static void judge_lingering(struct rl_conn *c)
{
	if (!c->linger_until || rl_now_ms() < c->linger_until)
		return;
	c->linger_until = 0;
	if (!c->qp || !c->qp->core.linger)
		return;
	if (weft_linger_is_worth_it(&c->link.linger, &c->qp->core))
		c->linger_until = rl_now_ms() + 1;
	else
		rl_cq_linger_over(c->qp->scq, c->qp);
}

void rl_conn_tx(struct rl_conn *c)
{
	judge_lingering(c);
	weft_send_run(&c->link);
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
}

static void ring_doorbell(struct rl_conn *c)
{
	struct weft_linger *l = &c->link.linger;
	struct rl_qp *qp = c->qp;

	if (weft_linger_doorbell_begins(l, &qp->core, rl_now_ns()) && rl_cq_linger(qp->scq, qp)) {
		weft_linger_start(l, &qp->core);
		c->linger_until = rl_now_ms() + 1;
	}
	rl_conn_tx(c);
	weft_linger_doorbell_ends(l, rl_now_ns());
}

/* ---- the answer ---- */

/*
 * A program that waits for an RDMA Write looks at its memory, and calls nobody who could place it.
 * The progress thread would, but where every CPU is spun on, Linux lets it in only with the next
 * tick. So where the peer answers at once what this QP posts, the doorbell waits for the answer.
 * It learns from each time whether that is worth it: for a QP that was never answered it tries a
 * few times in the life of a process, and then seldom and shortly.
 */
#define ANSWER_NS	2000000	/* longer than a tick: the peer may have to wait for one */
#define TRY_NS		20000
#define TRUST_MAX	8	/* is waited from half of it on */
#define TRY_EACH	256	/* doorbells without a wait, and then one with a short one */

static u32 hopes = 3;		/* long waits of new connections that may fail yet; atomic, more or less */

/* How long to wait, in ns; 0: not at all. Connection's lock. */
static u64 time_for_answer(struct rl_conn *c)
{
	if (c->link.mode != WEFT_MODE_FULL || c->qp->core.linger || READ_ONCE(c->qp->rcq->leased))
		return 0;
	if (c->trust >= TRUST_MAX / 2 || (!c->trust && READ_ONCE(hopes)))
		return ANSWER_NS;
	return ++c->doorbells % TRY_EACH ? 0 : TRY_NS;
}

/* Reads once; true: something whole has come, or the connection is no more. */
static bool look_for_answer(struct rl_conn *c, u32 fpdus)
{
	bool over;

	rl_conn_lock(c);
	rl_conn_receive(c);
	over = c->link.st.rx_fpdus != fpdus || !c->qp;
	if (over)
		weft_linger_answered(&c->link.linger);
	rl_conn_unlock(c);
	return over;
}

static void await_answer(struct rl_conn *c, u32 fpdus, u64 time, struct rl_cq *cq)
{
	u64 until = rl_now_ns() + time;
	bool come;

	do {
		come = look_for_answer(c, fpdus);
		rl_cq_note_poll(cq);
	} while (!come && rl_now_ns() < until);
	if (come)
		c->trust = min_t(u32, c->trust + TRUST_MAX / 2, TRUST_MAX);
	else if (c->trust)
		c->trust--;
	else if (hopes)
		hopes--;
}

void rl_qp_kick(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);
	u64 time;
	u32 fpdus;

	if (c) {
		ring_doorbell(c);
		time = c->qp ? time_for_answer(c) : 0;
		fpdus = c->link.st.rx_fpdus;
		rl_conn_unlock(c);
		if (time)
			await_answer(c, fpdus, time, qp->rcq);
		rl_conn_put(c);
		return;
	}
	pthread_mutex_lock(&qp->lock);
	if (!qp->conn)
		weft_qpc_flush(&qp->core);
	pthread_mutex_unlock(&qp->lock);
}
