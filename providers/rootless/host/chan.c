// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event channels. The eventfd has one count for each event in the list. A reader takes a count
 * first, in the kernel, which waits and restarts as it does for any read(); then the event. One
 * reader that waits also does the work from which events come, so that no other thread has to be
 * woken first.
 * Dropping an event takes a count, too, if one is left: otherwise a reader has that count already,
 * finds no event, and tries again.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "chan.h"
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

/*
 * Takes a count if there is one: 8, or -errno. Old kernels cannot do that without waiting
 * (-EOPNOTSUPP): there a count without an event stays, and the reader that gets it tries again.
 */
static long try_count(struct rl_chan *c)
{
	u64 one;
	struct iovec iov = { .iov_base = &one, .iov_len = sizeof(one) };

	return rl_raw(SYS_preadv2, c->efd, &iov, 1, -1L, -1L, RWF_NOWAIT);
}

/* ---- the list ---- */

/* The first, if it has at most @max octets; it counts as reported. With the lock. */
static struct rl_event *take_first(struct rl_chan *c, size_t max)
{
	struct rl_event *e = list_first_entry_or_null(&c->events, struct rl_event, node);

	if (!e || e->len > max)
		return NULL;
	list_del(&e->node);
	if (e->reported)
		++*e->reported;
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
		try_count(c);
	}
	pthread_mutex_unlock(&c->lock);
}

static void free_events(struct list_head *events)
{
	struct rl_event *e, *after;

	list_for_each_entry_safe(e, after, events, node)
		free(e);
}

/* ---- waiting for the sources, too ---- */

/* More are left to the progress thread. */
#define MOST_SOURCES	4

void rl_chan_add_source(struct rl_chan *c, struct rl_chan_source *s)
{
	pthread_mutex_lock(&c->lock);
	list_add_tail(&s->node, &c->sources);
	c->n_sources++;
	pthread_mutex_unlock(&c->lock);
}

void rl_chan_remove_source(struct rl_chan *c, struct rl_chan_source *s)
{
	pthread_mutex_lock(&c->lock);
	list_del(&s->node);
	c->n_sources--;
	pthread_mutex_unlock(&c->lock);
}

/* A thread in rl_chan_take(). */
struct taker {
	struct rl_chan *chan;
	struct rl_chan_source *source[MOST_SOURCES]; /* that it waits for; referenced */
	u32 n;
	volatile bool out;		/* of the gate */
};

/* The caller is to wait for the sources, and no other thread does. */
static bool attend(struct taker *a)
{
	u32 own = rl_fd_forks() + 1, other = __atomic_load_n(&a->chan->attended, __ATOMIC_RELAXED);

	return other != own && rl_handlers_restart() &&
		!(rl_raw(SYS_fcntl, a->chan->efd, F_GETFL) & O_NONBLOCK) &&
		__atomic_compare_exchange_n(&a->chan->attended, &other, own, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void take_sources(struct taker *a)
{
	struct rl_chan *c = a->chan;
	struct rl_chan_source *s;
	u32 i;

	pthread_mutex_lock(&c->lock);
	list_for_each_entry(s, &c->sources, node) {
		if (c->n_sources > MOST_SOURCES)
			break;
		s->ops->get(s);
		a->source[a->n++] = s;
	}
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < a->n; i++)
		a->source[i]->ops->begin(a->source[i]);
}

/* The progress thread works at once for those that wait for events alone. */
static void leave_sources(void *arg)
{
	struct taker *a = arg;
	bool others = __atomic_load_n(&a->chan->waiting, __ATOMIC_SEQ_CST) > 1;
	u32 i;

	if (a->out)
		rl_gate_enter();
	a->out = false;
	for (i = 0; i < a->n; i++) {
		a->source[i]->ops->end(a->source[i], others);
		a->source[i]->ops->put(a->source[i]);
	}
	__atomic_store_n(&a->chan->attended, 0, __ATOMIC_SEQ_CST);
}

/*
 * True: the caller looks for a count, and waits again if there is none. False: it is to read(). The
 * kernel restarts no ppoll(): where a handler may want the call to end, read() decides.
 */
static bool wait_and_work(struct taker *a)
{
	struct pollfd p[MOST_SOURCES + 1] = { { .fd = a->chan->efd, .events = POLLIN } };
	u32 i;
	int rv;

	for (i = 0; i < a->n; i++)
		p[1 + i] = (struct pollfd){ .fd = a->source[i]->fd, .events = POLLIN };
	rl_gate_step_out(&a->out);
	rv = RL_CALL(ppoll, p, 1 + a->n, NULL, NULL) < 0 ? -errno : 0;
	if (a->out)
		rl_gate_enter();
	a->out = false;
	if (rv) {
		rl_handlers_changed();
		return rv == -EINTR && rl_handlers_restart();
	}
	for (i = 0; i < a->n; i++)
		if (p[1 + i].revents)
			a->source[i]->ops->work(a->source[i]);
	return true;
}

/* Works until there is a count. False: the caller is to read() it. */
static bool work_for_count(struct taker *a)
{
	bool got = false;

	pthread_cleanup_push(leave_sources, a);
	take_sources(a);
	while (!got && wait_and_work(a))
		got = try_count(a->chan) > 0;
	pthread_cleanup_pop(1);
	return got;
}

static void waits_no_more(void *c)
{
	__atomic_fetch_sub(&((struct rl_chan *)c)->waiting, 1, __ATOMIC_SEQ_CST);
}

/* As read_count(). */
static int await_count(struct rl_chan *c)
{
	struct taker a = { .chan = c };
	int rv;

	if (!READ_ONCE(c->n_sources))
		return read_count(c);
	if (try_count(c) > 0)
		return 0;
	__atomic_fetch_add(&c->waiting, 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(waits_no_more, c);
	rv = attend(&a) && work_for_count(&a) ? 0 : read_count(c);
	pthread_cleanup_pop(1);
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
	bool longer = false;
	int rv;

	do {
		rv = await_count(c);
		if (rv)
			return rv;
		pthread_mutex_lock(&c->lock);
		*e = take_first(c, max);
		longer = !*e && !list_empty(&c->events);
		give_counts(c, longer);
		pthread_mutex_unlock(&c->lock);
	} while (!*e && !longer);
	return longer ? -EINVAL : 0;
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
