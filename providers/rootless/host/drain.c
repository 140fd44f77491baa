// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The last acknowledgement Reads of a peer whose QP was connected by hand. A program may destroy
 * its QP, or exit, as soon as it has the data. The peer still has to learn that its Writes were
 * placed.
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
 * All QPs of the process together wait at most DRAIN_MS in a DRAIN_PERIOD_MS: a program may end
 * thousands whose peers have stopped.
 */
#define DRAIN_MS	200
#define DRAIN_PERIOD_MS	1000
/* Another thread may have read it meanwhile. */
#define POLL_MS	2

static struct {
	u64 began, spent;		/* ms; concurrent threads may spend a little more */
	u32 forks;			/* rl_fd_forks() then: a child begins anew */
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

/* @fd was the connection's a moment ago, or is -1. False: the time is used up. */
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

/* Reads and answers. True: the peer has more to acknowledge. */
static bool drain_acks(struct rl_conn *c)
{
	if (!c->qp || c->link.mode != WEFT_MODE_FULL || !c->qp->core.by_hand)
		return false;
	rl_conn_receive(c);
	/* Outstanding Reads are limited: answer the earlier ones first. */
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
		/* The progress thread holds it, or the call that a signal handler interrupted. */
		waits = !rl_lock_try(&c->lock);
		if (!waits) {
			waits = drain_acks(c);
			fd = c->fd;
			rl_unlock(&c->lock);
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

/* What is under way by a delay is in this process, for so long at most. */
#define DELIVER_MS	2000

static struct {
	bool at_once;
	bool waits;
} delivery;

static void deliver_parcels(struct rl_watch *w)
{
	struct rl_conn *c = rl_conn_of_watch(w);
	bool locked;

	if (!c || c->owner != getpid() || !READ_ONCE(c->cable))
		return;
	locked = rl_lock_try(&c->lock);
	delivery.waits |= !locked || (c->cable && rl_cables->is_under_way(c));
	if (!locked)
		return;
	if (c->cable && delivery.at_once)
		rl_cables->end(c);
	rl_unlock(&c->lock);
}

/* Octets are sent when they are due; those that are due after DELIVER_MS are sent early. */
static void deliver_all(void)
{
	const struct timespec soon = { .tv_nsec = 1000000 };
	u64 until = rl_now_ms() + DELIVER_MS;

	for (;;) {
		delivery.waits = false;
		delivery.waits |= !rl_thread_at_exit(deliver_parcels);
		if (!delivery.waits || delivery.at_once)
			return;
		rl_raw(SYS_ppoll, NULL, 0, &soon, NULL, 0);
		delivery.at_once = rl_now_ms() >= until;
	}
}

__attribute__((destructor)) static void answer_before_exit(void)
{
	rl_thread_at_exit(answer_now);
	rl_thread_at_exit(drain_now);
	if (rl_cables)
		deliver_all();
}
