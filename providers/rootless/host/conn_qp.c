// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP and its connection: binding, letting go, lingering, doorbells. */
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "process/guard.h"
#include "process/raw.h"
#include "process/stats.h"
#include "ulp.h"

/* ---- binding ---- */

int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp)
{
	int rv = -EBUSY;

	pthread_mutex_lock(&qp->lock);
	if (!qp->gone && !qp->conn && qp->core.state == WEFT_QPS_IDLE &&
	    qp->core.by_hand == c->ulp->by_hand) {
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

/*
 * The program's own time: there is nobody whom a long flush keeps waiting. It may post on meanwhile,
 * and rings then, since the rings say that they sleep.
 */
void rl_qp_flush(struct rl_qp *qp)
{
	u32 pieces = (qp->core.sq.q.slots + qp->core.rq.q.slots) / WEFT_FLUSH_PIECE + 2;

	while (pieces-- && weft_qpc_flush(&qp->core))
		;
}

void rl_conn_release_qp(struct rl_conn *c)
{
	struct rl_qp *qp = c->qp;

	if (!qp)
		return;
	stop_lingering(c);
	weft_link_release_qp(&c->link);
	rl_qp_flush(qp);
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

static void run(void *arg)
{
	struct rl_conn *c = arg;

	weft_send_run(&c->link);
}

/* Memory that was looked at a moment ago is gone: no Terminate can follow half an FPDU. */
void rl_conn_break_off(struct rl_conn *c)
{
	c->reset = true;
	c->error = -EFAULT;
	weft_send_break_off(&c->link);
}

void rl_conn_tx(struct rl_conn *c)
{
	u32 fpdus = c->link.batch.fpdus;

	c->answer_due = false;
	judge_lingering(c);
	if (!rl_guard_run(run, c) || c->vanished)
		rl_conn_break_off(c);
	if (c->link.batch.fpdus != fpdus)
		rl_count(RL_TX_FPDUS, c->link.batch.fpdus - fpdus);
	/* The doorbell may have told of a receive. */
	if (unlikely(rl_conn_waits(c)) && weft_link_rx_resume(&c->link))
		rl_conn_receive(c);
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
}

/* Doorbells between two looks at what has come in. */
#define LOOK_EACH 8

static void ring_doorbell(struct rl_conn *c)
{
	struct weft_linger *l = &c->link.linger;
	struct rl_qp *qp = c->qp;

	/* It is about a receive: how fast those come tells nothing of Sends. */
	if (rl_conn_waits(c)) {
		rl_conn_tx(c);
		return;
	}
	if (weft_linger_doorbell_begins(l, &qp->core, rl_now_ns()) && rl_cq_linger(qp->scq, qp)) {
		weft_linger_start(l, &qp->core);
		c->linger_until = rl_now_ms() + 1;
	}
	rl_count(RL_DOORBELLS, 1);
	rl_conn_tx(c);
	weft_linger_doorbell_ends(l, rl_now_ns());
	/* A program that posts and posts may leave the progress thread no CPU to place what comes in. */
	if (!(++c->doorbells % LOOK_EACH))
		rl_conn_receive(c);
}

/* ---- the last question ---- */

/*
 * Peers that are to ask yet are waited for so long in any such time, all QPs of the process together: a
 * program may end thousands whose peers have stopped.
 */
#define HEAR_OUT_MS	200
#define HEAR_OUT_EACH	1000
/* Another thread may have read it meanwhile. */
#define LOOK_AGAIN_MS	2

static struct {
	u64 began, spent;		/* ms; threads that come at once may spend a little more */
	u32 forks;			/* rl_fd_forks() then: a child has not spent what its parent has */
} hearing;

static bool has_patience(void)
{
	u32 forks = rl_fd_forks();
	u64 now = rl_now_ms();

	if (now - __atomic_load_n(&hearing.began, __ATOMIC_RELAXED) >= HEAR_OUT_EACH ||
	    __atomic_load_n(&hearing.forks, __ATOMIC_RELAXED) != forks) {
		__atomic_store_n(&hearing.forks, forks, __ATOMIC_RELAXED);
		__atomic_store_n(&hearing.began, now, __ATOMIC_RELAXED);
		__atomic_store_n(&hearing.spent, 0, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&hearing.spent, __ATOMIC_RELAXED) < HEAR_OUT_MS;
}

/* @fd was the connection's a moment ago; -1: nobody knows. False: no longer. */
static bool await_octets(int fd)
{
	struct timespec soon = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 from = rl_now_ms();

	if (!has_patience())
		return false;
	rl_raw(SYS_ppoll, &p, 1, &soon, NULL, 0);
	__atomic_fetch_add(&hearing.spent, max_t(u64, rl_now_ms() - from, 1), __ATOMIC_RELAXED);
	return true;
}

/* Takes in what has come, and answers: is there more to wait for? */
static bool hear_out(struct rl_conn *c)
{
	if (!c->qp || c->link.mode != WEFT_MODE_FULL || !c->qp->core.by_hand)
		return false;
	rl_conn_receive(c);
	/* There are only so many questions at a time: those before are answered. */
	weft_send_answers(&c->link);
	return weft_qpc_is_in_question(&c->qp->core) && !c->fin && !c->reset;
}

void rl_qp_hear_out(struct rl_qp *qp)
{
	struct rl_conn *c;
	bool waits = true;
	int fd;

	while (waits && (c = rl_conn_of_qp(qp))) {
		waits = hear_out(c);
		fd = c->fd;
		rl_conn_unlock(c);
		waits = waits && await_octets(fd);
		rl_conn_put(c);
	}
}

void rl_conn_hear_out_now(struct rl_conn *c)
{
	bool waits;
	int fd;

	if (c->owner != getpid())
		return;
	do {
		fd = -1;
		/* The progress thread has it, or the call that a handler of a signal cut short. */
		waits = pthread_mutex_trylock(&c->lock);
		if (!waits) {
			waits = hear_out(c);
			fd = c->fd;
			pthread_mutex_unlock(&c->lock);
		}
	} while (waits && await_octets(fd));
}

/* ---- the answer ---- */

/*
 * A program that waits for an RDMA Write looks at its memory, and calls nobody who could place it.
 * The progress thread would, but where every CPU is spun on, Linux lets it in only with the next
 * tick. So where this side and the peer have spoken by turns, the doorbell waits for the answer.
 * It does not for a program that sleeps on the CQ, or polls it, or has other connections there.
 */
#define ANSWER_NS	2000000	/* longer than a tick: the peer may have to wait for one */
#define TURNS		16	/* by which a dialogue is known */
#define ANSWER_MS	2	/* a program that has its message may compute instead */
#define TURNS_LOST	16	/* more than that, after an answer that did not come */

/* FPDUs of the peer's program. */
static u32 said_by_peer(const struct rl_conn *c)
{
	return c->link.st.rx_fpdus - (c->link.qp ? c->link.qp->asides : 0);
}

/* A doorbell has rung: is an answer to be expected? Connection's lock. */
static bool expects_answer(struct rl_conn *c)
{
	u32 said = said_by_peer(c);

	if (said == c->heard)
		c->turns = min_t(s32, c->turns, 0);
	else
		c->turns++;
	c->by_turns = said == c->heard ? 0 : c->by_turns + 1;
	c->heard = said;
	return c->turns >= TURNS && c->link.mode == WEFT_MODE_FULL && !c->qp->core.linger &&
	       rl_cq_is_left_alone(c->qp->rcq) && rl_cq_is_left_alone(c->qp->scq);
}

/* Reads once; true: something whole has come, or the connection is no more. */
static bool look_for_answer(struct rl_conn *c)
{
	bool over;

	rl_conn_lock(c);
	rl_conn_receive(c);
	over = !c->qp || said_by_peer(c) != c->heard;
	if (over)
		weft_linger_answered(&c->link.linger);
	rl_conn_unlock(c);
	return over;
}

static void no_answer_came(struct rl_conn *c)
{
	rl_conn_lock(c);
	c->turns = -TURNS_LOST;
	rl_conn_unlock(c);
}

static void await_answer(struct rl_conn *c, struct rl_cq *cq)
{
	u64 until = rl_now_ns() + ANSWER_NS;

	for (rl_cq_looked(cq); !look_for_answer(c); rl_cq_looked(cq))
		if (rl_now_ns() > until) {
			no_answer_came(c);
			return;
		}
}

/*
 * In a dialogue the doorbell rings soon, whoever reads, and takes the answer along: that saves a call of
 * TCP a message. Who reads once more before it has rung sends the answer (rl_conn_receive()).
 */
void rl_conn_answer(struct rl_conn *c)
{
	if (c->by_turns < TURNS) {
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
	if (pthread_mutex_trylock(&c->lock))
		return;
	if (c->answer_due && c->qp && c->owner == getpid())
		rl_conn_tx(c);
	pthread_mutex_unlock(&c->lock);
}

void rl_conn_ring_doorbell(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);
	struct rl_cq *cq = qp->rcq;
	bool wait, receive;

	if (c) {
		receive = rl_conn_waits(c);
		ring_doorbell(c);
		wait = !receive && c->qp && expects_answer(c);
		/* Behind the lock the QP may be destroyed, and its CQ. */
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
	pthread_mutex_lock(&qp->lock);
	/* Of one that is being destroyed the rings are gone, or will be. */
	if (!qp->conn && !qp->gone)
		rl_qp_flush(qp);
	pthread_mutex_unlock(&qp->lock);
}

void rl_qp_poke(struct rl_qp *qp)
{
	struct rl_conn *c;

	pthread_mutex_lock(&qp->lock);
	c = qp->conn;
	if (c)
		rl_conn_poke(c);
	pthread_mutex_unlock(&qp->lock);
}
