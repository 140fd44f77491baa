// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event channels. The eventfd has one count for each event in the list. A reader takes a count
 * first, in the kernel, which waits and restarts as it does for any read(); then the event.
 * Dropping an event takes a count, too, if one is left: otherwise a reader has that count already,
 * finds no event, and tries again.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "chan.h"
#include "judge/judge.h"
#include "process/gate.h"
#include "process/handlers.h"
#include "process/hook.h"
#include "process/raw.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

/* ---- counts ---- */

static void give_counts(struct rl_chan *c, u64 n)
{
	if (n)
		rl_raw(SYS_write, c->efd, &n, sizeof(n));
}

static void reenter_gate(void *out)
{
	if (*(volatile bool *)out)
		rl_gate_enter();
}

/*
 * Takes a count: 0 or -errno. From our descriptor of the eventfd, which shares O_NONBLOCK with the
 * program's: the program's number may name another file by now. By libc's read(), which is a point
 * of cancellation as the program's own call is, and which signals end or restart as they should.
 */
static int read_count(struct rl_chan *c)
{
	volatile bool out = false;
	u64 one;
	int rv;

	pthread_cleanup_push(reenter_gate, (void *)&out);
	rl_gate_step_out(&out);
	rv = RL_CALL(read, c->efd, &one, sizeof(one)) < 0 ? -errno : 0;
	pthread_cleanup_pop(1);
	return rv;
}

/* Takes a count if there is one: 8, or -errno. Never waits; kernels before 5.8 cannot. */
static long try_count(struct rl_chan *c)
{
	u64 one;
	struct iovec iov = { .iov_base = &one, .iov_len = sizeof(one) };

	return rl_raw(SYS_preadv2, c->efd, &iov, 1, -1L, -1L, RWF_NOWAIT);
}

/* ---- how many wait ---- */

/* @n more threads wait than before: how many. No lock: a handler may leave this, too. */
static u32 count_waiting(struct rl_chan *c, int n)
{
	const u64 here = (u64)rl_fd_forks() << 32;
	u64 old = __atomic_load_n(&c->waiting, __ATOMIC_RELAXED), now;

	/* Those of the parent do not wait in a child. */
	do
		now = ((old ^ here) >> 32 ? here : old) + n;
	while (!__atomic_compare_exchange_n(&c->waiting, &old, now, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	return (u32)now;
}

/* ---- counts without an event, on kernels that cannot try ---- */

/*
 * There the count of a dropped event is spare. It is read as soon as no thread waits: poll() would
 * report it, and the program's read would wait for ever. A waiting thread may take it first: it
 * finds no event, and the spare count is gone.
 */
static bool cannot_try;			/* atomic; set by the first channel */

static bool must_keep_spares(void)
{
	return unlikely(__atomic_load_n(&cannot_try, __ATOMIC_RELAXED));
}

/* @c: a new one, whose count is 0. */
static void find_out_if_counts_can_be_tried(struct rl_chan *c)
{
	long rv = try_count(c);

	if (rv == -EOPNOTSUPP || rv == -ENOSYS)
		__atomic_store_n(&cannot_try, true, __ATOMIC_RELAXED);
}

static bool has_count(const struct rl_chan *c)
{
	struct pollfd p = { .fd = c->efd, .events = POLLIN };
	const struct timespec now = { 0 };

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, 0) == 1;
}

/* With the lock. No thread reads, and none begins to. */
static void take_spares(struct rl_chan *c)
{
	u64 one;

	while (c->spares && has_count(c) && rl_raw(SYS_read, c->efd, &one, sizeof(one)) > 0)
		c->spares--;
}

static void take_spares_if_alone(struct rl_chan *c)
{
	if (c->spares && !count_waiting(c, 0))
		take_spares(c);
}

/* One thread more waits: how many. With the lock, if another may take spare counts. */
static u32 count_reader(struct rl_chan *c)
{
	u32 n;

	if (!must_keep_spares())
		return count_waiting(c, 1);
	pthread_mutex_lock(&c->lock);
	n = count_waiting(c, 1);
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* One less. */
static u32 uncount_reader(struct rl_chan *c)
{
	u32 n = count_waiting(c, -1);

	if (!n && must_keep_spares()) {
		pthread_mutex_lock(&c->lock);
		take_spares_if_alone(c);
		pthread_mutex_unlock(&c->lock);
	}
	return n;
}

/* ---- the list ---- */

/* The first, if it has at most @max octets; it counts as reported. With the lock. */
static struct rl_event *take_first(struct rl_chan *c, size_t max)
{
	struct rl_event *e = list_first_entry_or_null(&c->events, struct rl_event, node);

	if (!e || e->len > max)
		return NULL;
	list_del(&e->node);
	WRITE_ONCE(c->n_events, c->n_events - 1);
	if (e->reported)
		WRITE_ONCE(*e->reported, *e->reported + 1);
	return e;
}

/* Moves all of @owner's to @taken, in order. Their counts are given up. */
static void take_all_of(struct rl_chan *c, const void *owner, struct list_head *taken)
{
	struct rl_event *e, *after;

	pthread_mutex_lock(&c->lock);
	list_for_each_entry_safe(e, after, &c->events, node) {
		if (e->owner != owner)
			continue;
		list_move_tail(&e->node, taken);
		WRITE_ONCE(c->n_events, c->n_events - 1);
		if (try_count(c) < 0 && must_keep_spares())
			c->spares++;
	}
	take_spares_if_alone(c);
	pthread_mutex_unlock(&c->lock);
}

static void free_events(struct list_head *events)
{
	struct rl_event *e, *after;

	list_for_each_entry_safe(e, after, events, node)
		free(e);
}

/* ---- sources ---- */

/* More are left to the progress thread. */
#define MOST_SOURCES	4

void rl_chan_add_source(struct rl_chan *c, struct rl_chan_source *s)
{
	pthread_mutex_lock(&c->lock);
	list_add_tail(&s->node, &c->sources);
	WRITE_ONCE(c->n_sources, c->n_sources + 1);
	pthread_mutex_unlock(&c->lock);
}

void rl_chan_remove_source(struct rl_chan *c, struct rl_chan_source *s)
{
	pthread_mutex_lock(&c->lock);
	list_del(&s->node);
	WRITE_ONCE(c->n_sources, c->n_sources - 1);
	pthread_mutex_unlock(&c->lock);
}

/* ---- what others know of a wait ---- */

/*
 * A thread that is alone in waiting for a channel with sources waits for these, too, by ppoll(),
 * and does their work: no other thread has to be woken first.
 *
 * Signal handlers run before or after such a wait (process/handlers.h). One that is set too late to
 * be noticed may still leave it for ever by siglongjmp(), wait for an event in its turn, or fork.
 * So what others know of a wait is in a record of its thread. If it is left open, the thread's next
 * wait closes it. A wait that finds its record closed goes on in read().
 */
static __thread struct {
	struct rl_chan *chan;		/* NULL: it is closed */
	u32 wait;			/* the number of the wait */
	u32 forks;			/* rl_fd_forks() of its process */
	struct rl_chan_source *source[MOST_SOURCES]; /* referenced; begin() was called */
	u32 n, turn;
	bool works;			/* the thread is in a work() */
	bool got_event;			/* which has added an event that has no count */
} own __attribute__((tls_model("initial-exec")));

/* A call that waits. */
struct wait {
	struct rl_chan *chan;
	u32 number;
	struct rl_wait_signals signals;
	volatile bool out;		/* of the gate */
};

static u32 waits;			/* atomic: numbers that were given */

/* @others: further threads, or this one, go on in read(). */
static void close_record(bool others)
{
	/* In a child that a handler has forked the sources know nothing of the parent's wait. */
	bool here = own.forks == rl_fd_forks();
	u32 i;

	if (own.got_event)
		give_counts(own.chan, 1);
	others |= here && uncount_reader(own.chan);
	for (i = 0; i < own.n; i++) {
		if (here)
			own.source[i]->ops->end(own.source[i], own.wait, others);
		own.source[i]->ops->put(own.source[i]);
	}
	own.n = 0;
	own.works = own.got_event = false;
	own.chan = NULL;
}

/*
 * How many threads wait, this one included. A handler that leaves this in the middle leaves one too
 * many counted, never one too few.
 */
static u32 open_record(struct wait *w)
{
	u32 n;

	if (own.chan)
		close_record(false);
	do
		w->number = __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
	while (!w->number);
	own.wait = w->number;
	own.forks = rl_fd_forks();
	n = count_reader(w->chan);
	own.chan = w->chan;
	return n;
}

static bool is_recorded(const struct wait *w)
{
	return own.chan && own.wait == w->number && own.forks == rl_fd_forks();
}

/* False: there are none, or too many. */
static bool begin_sources(const struct wait *w)
{
	struct rl_chan *c = w->chan;
	struct rl_chan_source *s;
	u32 i;

	pthread_mutex_lock(&c->lock);
	list_for_each_entry(s, &c->sources, node) {
		if (c->n_sources > MOST_SOURCES)
			break;
		s->ops->get(s);
		own.source[own.n++] = s;
	}
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < own.n; i++)
		own.source[i]->ops->begin(own.source[i], own.wait);
	return own.n;
}

/* ---- the judge ---- */

#define MOST_JUDGED	16

/* They are called without the lock. */
static void judge_sleep(struct rl_chan *c)
{
	struct rl_chan_source *judged[MOST_JUDGED], *s;
	u32 i, n = 0;

	pthread_mutex_lock(&c->lock);
	list_for_each_entry(s, &c->sources, node)
		if (n < MOST_JUDGED && list_empty(&c->events)) {
			s->ops->get(s);
			judged[n++] = s;
		}
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < n; i++) {
		judged[i]->ops->sleep(judged[i]);
		judged[i]->ops->put(judged[i]);
	}
}

/* ---- waiting ---- */

/* What a wait has come to, unless it is -errno. */
enum { HAS_COUNT, GO_ON, BEGIN_AGAIN, MUST_READ };

/* Wake-ups in a row without work. Another thread may cause one or two: it was faster. */
#define MOST_IDLE	16

static bool is_non_blocking(const struct rl_chan *c)
{
	return rl_raw(SYS_fcntl, c->efd, F_GETFL) & O_NONBLOCK;
}

static bool has_event(const struct rl_chan *c)
{
	return READ_ONCE(c->n_events);
}

/* True: the thread waits for the sources. */
static bool begin_wait(struct wait *w)
{
	if ((!own.chan && count_waiting(w->chan, 0)) || !rl_wait_begin(&w->signals))
		return false;
	return open_record(w) == 1 && begin_sources(w);
}

static void end_chan_wait(const struct wait *w, bool others)
{
	if (is_recorded(w))
		close_record(others);
}

/* Handlers of signals that were blocked run outside the gate, and may not return. */
static void end_signals(struct wait *w)
{
	volatile bool out = false;

	if (likely(!w->signals.blocked)) {
		rl_wait_end(&w->signals);
		return;
	}
	pthread_cleanup_push(reenter_gate, (void *)&out);
	rl_gate_step_out(&out);
	rl_wait_end(&w->signals);
	pthread_cleanup_pop(1);
}

/*
 * One source works at a time, in turn: two CQs of a connection are both ready, and the first has
 * read it.
 */
static bool work(const struct pollfd *p)
{
	bool done = false;
	u32 i, at;

	own.works = true;
	for (i = 0; i < own.n && !done; i++) {
		at = own.turn++ % own.n;
		done = p[at].revents && own.source[at]->ops->work(own.source[at]);
	}
	own.works = false;
	return done;
}

static int take_count(struct wait *w, bool is_readable)
{
	long rv;

	if (own.got_event) {
		own.got_event = false;
		return HAS_COUNT;
	}
	rv = is_readable ? try_count(w->chan) : -EAGAIN;
	return rv > 0 ? HAS_COUNT : rv == -EAGAIN ? GO_ON : MUST_READ;
}

static int sleep_once(struct wait *w, struct pollfd *p, u32 n)
{
	int rv;

	rl_gate_step_out(&w->out);
	rv = RL_CALL(ppoll, p, n, NULL, NULL) < 0 ? -errno : 0;
	if (w->out)
		rl_gate_enter();
	w->out = false;
	return rv;
}

/* @rv: of process/handlers.h. */
static int after_signals(int rv)
{
	return rv == -EAGAIN ? MUST_READ : rv ?: BEGIN_AGAIN;
}

enum { CHANNEL, LEAVE, SOURCES };	/* places in what is polled */

static int sleep_and_work(struct wait *w, struct pollfd *p, u32 *idle)
{
	int rv = sleep_once(w, p, SOURCES + own.n);

	if (rv == -EINTR)
		return after_signals(rl_wait_interrupted(&w->signals));
	if (rv || !is_recorded(w))
		return MUST_READ;
	if (p[LEAVE].revents)
		return after_signals(rl_wait_fd_seen(&w->signals));
	if (rl_wait_is_stale(&w->signals))
		return MUST_READ;
	*idle = work(p + SOURCES) || p[CHANNEL].revents ? 0 : *idle + 1;
	rv = take_count(w, p[CHANNEL].revents);
	return rv == GO_ON && *idle > MOST_IDLE ? MUST_READ : rv;
}

static int wait_and_work(struct wait *w)
{
	struct pollfd p[SOURCES + MOST_SOURCES] = {
		[CHANNEL] = { .fd = w->chan->efd, .events = POLLIN },
		[LEAVE] = { .fd = rl_wait_fd(&w->signals), .events = POLLIN },
	};
	u32 i, idle = 0;
	int rv;

	for (i = 0; i < own.n; i++)
		p[SOURCES + i] = (struct pollfd){ .fd = own.source[i]->fd, .events = POLLIN };
	do
		rv = sleep_and_work(w, p, &idle);
	while (rv == GO_ON);
	return rv;
}

static int wait_in_read(struct wait *w)
{
	int rv = rl_wait_left(&w->signals);

	end_chan_wait(w, true);
	if (rv)
		return rv;
	open_record(w);
	end_signals(w);
	return read_count(w->chan);
}

static void end_chan_call(void *arg)
{
	struct wait *w = arg;

	if (w->out)
		rl_gate_enter();
	end_chan_wait(w, false);
	end_signals(w);
}

/* As read_count(), or BEGIN_AGAIN. If there is a count the caller ends the wait of signals. */
static int try_await(struct wait *w)
{
	bool has_sources = READ_ONCE(w->chan->n_sources);
	int rv;

	if (has_sources && has_event(w->chan) && try_count(w->chan) > 0)
		return HAS_COUNT;
	if ((!has_sources && !must_keep_spares()) || is_non_blocking(w->chan)) {
		end_signals(w);
		return read_count(w->chan);
	}
	if (unlikely(rl_judge_is_on))
		judge_sleep(w->chan);
	pthread_cleanup_push(end_chan_call, w);
	rv = has_sources && begin_wait(w) ? wait_and_work(w) : MUST_READ;
	if (rv == MUST_READ)
		rv = wait_in_read(w);
	/* Handlers run next: the progress thread works meanwhile. */
	end_chan_wait(w, rv != HAS_COUNT);
	if (rv != HAS_COUNT)
		end_signals(w);
	pthread_cleanup_pop(0);
	return rv;
}

static int await_count(struct wait *w)
{
	int rv;

	do
		rv = try_await(w);
	while (rv == BEGIN_AGAIN);
	return rv;
}

/* ---- life ---- */

static struct rl_chan *chan_with(int efd)
{
	struct rl_chan *c = efd < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		if (efd >= 0)
			rl_fd_close_hidden(efd);
		return NULL;
	}
	c->efd = efd;
	c->refs = 1;
	find_out_if_counts_can_be_tried(c);
	INIT_LIST_HEAD(&c->events);
	INIT_LIST_HEAD(&c->sources);
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

struct rl_chan *rl_chan_new(int flags, int *fd)
{
	int how = EFD_SEMAPHORE | (flags & (EFD_CLOEXEC | EFD_NONBLOCK));
	struct rl_chan *c;
	int name;

	*fd = rl_raw(SYS_eventfd2, 0, how);
	if (*fd < 0)
		return NULL;
	name = rl_raw(SYS_dup, *fd);
	c = chan_with(name < 0 ? name : rl_fd_hide(name));
	if (!c)
		rl_raw(SYS_close, *fd);
	return c;
}

void rl_chan_get(struct rl_chan *c)
{
	__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
}

void rl_chan_put(struct rl_chan *c)
{
	if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free_events(&c->events);
	rl_fd_close_hidden(c->efd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- events ---- */

struct rl_event *rl_event_new(const void *owner, size_t len)
{
	struct rl_event *e = calloc(1, sizeof(*e) + len);

	if (e) {
		e->owner = owner;
		e->len = len;
	}
	return e;
}

void rl_chan_push(struct rl_chan *c, struct rl_event *e)
{
	pthread_mutex_lock(&c->lock);
	list_add_tail(&e->node, &c->events);
	WRITE_ONCE(c->n_events, c->n_events + 1);
	/* The thread that waits adds it, and takes it next. */
	if (own.works && own.chan == c && !own.got_event)
		own.got_event = true;
	else
		give_counts(c, 1);
	pthread_mutex_unlock(&c->lock);
}

void rl_chan_report(struct rl_chan *c, const void *owner, u32 *reported, const void *data,
		    size_t len)
{
	struct rl_event *e = rl_event_new(owner, len);

	if (!e)
		return;
	e->reported = reported;
	memcpy(e->data, data, len);
	rl_chan_push(c, e);
}

/* The oldest event: 0; -EINVAL: it is longer than @max octets. */
static int take_up_to(struct rl_chan *c, size_t max, struct rl_event **e)
{
	struct wait w = { .chan = c };
	bool longer = false;
	int rv;

	do {
		rv = await_count(&w);
		if (rv)
			break;
		pthread_mutex_lock(&c->lock);
		*e = take_first(c, max);
		longer = !*e && !list_empty(&c->events);
		give_counts(c, longer);
		c->spares -= !*e && !longer && c->spares;
		pthread_mutex_unlock(&c->lock);
	} while (!*e && !longer);
	end_signals(&w);
	return rv ?: longer ? -EINVAL : 0;
}

int rl_chan_take(struct rl_chan *c, struct rl_event **e)
{
	return take_up_to(c, SIZE_MAX, e);
}

ssize_t rl_chan_read(struct rl_chan *c, void *buf, size_t len)
{
	struct rl_event *e;
	ssize_t rv = take_up_to(c, len, &e);

	if (rv)
		return rv;
	memcpy(buf, e->data, e->len);
	rv = e->len;
	free(e);
	return rv;
}

void rl_chan_drop(struct rl_chan *c, const void *owner)
{
	LIST_HEAD(taken);

	take_all_of(c, owner, &taken);
	free_events(&taken);
}

void rl_chan_move(struct rl_chan *c, struct rl_chan *to, const void *owner)
{
	struct rl_event *e, *after;
	LIST_HEAD(taken);

	take_all_of(c, owner, &taken);
	list_for_each_entry_safe(e, after, &taken, node)
		rl_chan_push(to, e);
}
