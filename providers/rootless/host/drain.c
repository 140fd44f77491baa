// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The last acknowledgement Reads of a peer whose QP was connected by hand: a program may destroy its QP, or
 * exit, as soon as it has what it waited for. The peer asks whether its Writes were placed; it must be answered.
 */
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "process/file.h"
#include "process/raw.h"
#include "qp.h"

/*
 * Peers that are to ask yet are waited for so long in any such time, all QPs of the process together: a
 * program may end thousands whose peers have stopped.
 */
#define DRAIN_MS	200
#define DRAIN_PERIOD_MS	1000
/* Another thread may have read it meanwhile. */
#define POLL_MS	2

static struct {
	u64 began, spent;		/* ms; threads that come at once may spend a little more */
	u32 forks;			/* rl_fd_forks() then: a child has not spent what its parent has */
} draining;

static bool may_wait(void)
{
	u32 forks = rl_fd_forks();
	u64 now = rl_now_ms();

	if (now - __atomic_load_n(&draining.began, __ATOMIC_RELAXED) >= DRAIN_PERIOD_MS ||
	    __atomic_load_n(&draining.forks, __ATOMIC_RELAXED) != forks) {
		__atomic_store_n(&draining.forks, forks, __ATOMIC_RELAXED);
		__atomic_store_n(&draining.began, now, __ATOMIC_RELAXED);
		__atomic_store_n(&draining.spent, 0, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&draining.spent, __ATOMIC_RELAXED) < DRAIN_MS;
}

/* @fd was the connection's a moment ago; -1: nobody knows. False: no longer. */
static bool await_octets(int fd)
{
	struct timespec soon = { .tv_nsec = POLL_MS * 1000000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 from = rl_now_ms();

	if (!may_wait())
		return false;
	rl_raw(SYS_ppoll, &p, 1, &soon, NULL, 0);
	__atomic_fetch_add(&draining.spent, max_t(u64, rl_now_ms() - from, 1), __ATOMIC_RELAXED);
	return true;
}

/* Takes in what has come, and answers: is there more to wait for? */
static bool drain_acks(struct rl_conn *c)
{
	if (!c->qp || c->link.mode != WEFT_MODE_FULL || !c->qp->core.by_hand)
		return false;
	rl_conn_receive(c);
	/* There are only so many questions at a time: those before are answered. */
	weft_send_answers(&c->link);
	return weft_qpc_is_ack_pending(&c->qp->core) && !c->fin && !c->reset;
}

void rl_qp_drain_acks(struct rl_qp *qp)
{
	struct rl_conn *c;
	bool waits = true;
	int fd;

	while (waits && (c = rl_conn_of_qp(qp))) {
		waits = drain_acks(c);
		fd = c->fd;
		rl_conn_unlock(c);
		waits = waits && await_octets(fd);
		rl_conn_put(c);
	}
}

void rl_conn_drain_acks_now(struct rl_conn *c)
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
			waits = drain_acks(c);
			fd = c->fd;
			pthread_mutex_unlock(&c->lock);
		}
	} while (waits && await_octets(fd));
}

/* ---- the end of the process ---- */

static void answer_now(struct rl_watch *w)
{
	struct rl_conn *c = rl_conn_of_watch(w);

	if (c)
		rl_conn_answer_now(c);
}

static void drain_now(struct rl_watch *w)
{
	struct rl_conn *c = rl_conn_of_watch(w);

	if (c)
		rl_conn_drain_acks_now(c);
}

__attribute__((destructor)) static void answer_before_exit(void)
{
	rl_thread_at_exit(answer_now);
	rl_thread_at_exit(drain_now);
}
