// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * poll() and select() of lists with a socket of ours. The kernel waits for what the streams await;
 * the streams' answers are reported to the program; if there are none, the wait goes on.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "epoll.h"
#include "events.h"
#include "process/waitlist.h"
#include "io.h"
#include "poll.h"
#include "process/gate.h"
#include "process/guard.h"
#include "process/hook.h"
#include "process/raw.h"
#include "process/thread.h"
#include "signals.h"
#include "sock.h"
#include "waiter.h"

#define NS		1000000000ull
#define SMALL		32

/* An entry of the program's. */
struct seen {
	struct rl_sock *sk;		/* referenced, and inside the gate; or NULL */
	bool is_epoll;			/* an epoll with sockets of ours */
	unsigned int ev;		/* what the stream says */
	struct rl_waiter waiter;
};

struct wait {
	struct pollfd *p;		/* the program's */
	nfds_t n, n_all;
	struct pollfd *q;		/* the kernel's: room for the eventfd, too */
	struct pollfd *eventfd;		/* where it is; NULL: nowhere */
	bool crowded;			/* the kernel takes no more than the program's */
	bool is_last;			/* its time is over */
	bool unheard;			/* there is no eventfd, or no room for it */
	struct seen *s;
	u64 until, deadline;		/* ns, ms; 0: none */
	const void *frame;		/* of the call */
	u32 signals;			/* whose handlers had run before it */
	int ready;			/* of ours */
	struct pollfd q_own[SMALL + 1];
	struct seen s_own[SMALL];
};

bool rl_sock_in_list(const struct pollfd *p, nfds_t n)
{
	nfds_t i;

	if (unlikely(!rl_sockets_on) || !rl_list_may_be_read(p, n))
		return false;
	for (i = 0; i < n; i++)
		if (rl_fd_is_used(p[i].fd))
			return true;
	return false;
}

/* ---- what is ready ---- */

static void poll_look_at(struct wait *w, nfds_t i)
{
	struct seen *s = &w->s[i];
	unsigned int awaits;
	u64 deadline;
	int ev;

	s->ev = 0;
	w->q[i] = w->p[i];
	s->sk = rl_sock_begin(w->p[i].fd);
	s->is_epoll = !s->sk && w->p[i].events & POLLIN && rl_epoll_has_ready(w->p[i].fd);
	if (s->is_epoll)
		s->ev = POLLIN;
	if (!s->sk)
		goto out;
	rl_waiter_begin(s->sk, &s->waiter);
	ev = rl_sock_poll_tcp(s->sk, w->p[i].fd, (unsigned short)w->p[i].events, &awaits);
	if (ev == RL_SOCK_IS_PLAIN) {
		rl_sock_end(s->sk);
		s->sk = NULL;
		return;
	}
	s->ev = (unsigned int)ev;
	w->q[i] = (struct pollfd){ .fd = awaits ? rl_sock_fd(s->sk, w->p[i].fd) : -1,
				  .events = (short)awaits };
	deadline = rl_sock_deadline(s->sk, (unsigned short)w->p[i].events);
	if (deadline && (!w->deadline || deadline < w->deadline))
		w->deadline = deadline;
out:
	w->ready += !!s->ev;
}

static void poll_look(struct wait *w)
{
	nfds_t i;

	w->ready = 0;
	w->deadline = 0;
	w->eventfd = NULL;
	w->unheard = false;
	w->n_all = w->n;
	for (i = 0; i < w->n; i++)
		poll_look_at(w, i);
}

/* ---- the eventfd of this thread ---- */

/*
 * Behind the rest. As many as there may be descriptors the kernel takes: then where the program has
 * none.
 */
static struct pollfd *place_of_eventfd(const struct wait *w)
{
	nfds_t i;

	if (!w->crowded)
		return &w->q[w->n];
	for (i = 0; i < w->n; i++)
		if (w->p[i].fd < 0)
			return &w->q[i];
	return NULL;
}

/* false: something has changed since. */
static bool poll_add_eventfd(struct wait *w)
{
	struct seen *s;
	int fd;

	for (s = w->s; s < w->s + w->n; s++) {
		fd = s->sk && !w->ready ? rl_waiter_sleep(s->sk, &s->waiter, w->frame) : -1;
		if (fd == -EAGAIN)
			return false;
		w->unheard |= fd == -EMFILE;
		if (fd < 0)
			continue;
		w->eventfd = place_of_eventfd(w);
		w->unheard |= !w->eventfd;
		if (w->eventfd)
			*w->eventfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	w->n_all = w->n + (w->eventfd == &w->q[w->n]);
	return true;
}

/* Before it moves octets itself: it would ring for itself, and the next wait would end at once. */
static void get_up(struct wait *w)
{
	struct seen *s;

	for (s = w->s; s < w->s + w->n; s++)
		if (s->sk)
			rl_waiter_wake(&s->waiter);
}

static void poll_let_go(struct wait *w)
{
	struct seen *s;

	get_up(w);
	for (s = w->s; s < w->s + w->n; s++) {
		if (!s->sk)
			continue;
		rl_sock_end(s->sk);
		s->sk = NULL;
	}
	if (w->eventfd && w->eventfd->revents)
		rl_waiter_clear(w->eventfd->fd);
	w->eventfd = NULL;
}

/* ---- one wait of the kernel's ---- */

struct step_out {
	struct wait *w;
	u32 entries;			/* the caller is inside once for each socket */
	volatile bool out;
};

static void leave_gate(struct step_out *o)
{
	nfds_t i;
	u32 n;

	for (i = 0; i < o->w->n; i++)
		o->entries += !!o->w->s[i].sk;
	for (n = 1; n < o->entries; n++)
		rl_gate_leave();
	if (o->entries)
		rl_gate_step_out(&o->out);
}

static void poll_go_back(struct step_out *o)
{
	u32 n;

	if (o->out)
		rl_gate_enter();
	for (n = 1; n < o->entries; n++)
		rl_gate_enter();
}

static void come_back(void *arg)
{
	struct step_out *o = arg;

	rl_signal_ends(NULL, NULL);
	poll_go_back(o);
	poll_let_go(o->w);
}

static bool is_interrupted(const struct wait *w)
{
	return rl_signals_seen().all != w->signals;
}

/*
 * 0 or -errno. A handler that runs while the library looks ends the wait as one that the kernel has
 * seen.
 */
static int poll_sleep_in(struct wait *w, const struct timespec *t, const sigset_t *mask)
{
	int rv;

	if (is_interrupted(w))
		return -EINTR;
	rv = RL_CALL(ppoll, w->q, w->n_all, t, mask) < 0 ? -errno : 0;
	rl_signal_ends(NULL, NULL);
	return rv ?: is_interrupted(w) ? -EINTR : 0;
}

/*
 * Of a stream the kernel has said only that it is worth a look. The last look of a wait is one that
 * TCP could not have missed: what another thread has taken from it meanwhile is in the queue.
 */
static unsigned int say(const struct wait *w, nfds_t i)
{
	unsigned int kernel = (unsigned short)w->q[i].revents, awaits;
	struct seen *s = &w->s[i];
	int ev;

	if (w->p[i].fd < 0)
		return 0;
	if (!s->sk)
		return kernel | s->ev;
	if (s->ev || (!kernel && !w->is_last))
		return s->ev;
	if (kernel)
		ev = rl_sock_poll(s->sk, w->p[i].fd, (unsigned short)w->p[i].events, &awaits);
	else
		ev = rl_sock_poll_cached(s->sk, w->p[i].fd, (unsigned short)w->p[i].events,
					    &awaits);
	return ev == RL_SOCK_IS_PLAIN ? 0 : (unsigned int)ev | (kernel & (POLLERR | POLLNVAL));
}

static void tell(void *arg)
{
	struct wait *w = arg;
	nfds_t i;

	for (i = 0; i < w->n; i++)
		w->p[i].revents = (short)w->s[i].ev;
}

/* How many are ready, which the program's list says, too; or -EFAULT. */
static int count(struct wait *w)
{
	int n = 0;
	nfds_t i;

	for (i = 0; i < w->n; i++) {
		w->s[i].ev = say(w, i);
		n += !!w->s[i].ev;
	}
	return rl_guard_run(tell, w) ? n : -EFAULT;
}

/* How many are ready; -EAGAIN: once more; or another -errno. */
static int poll_wait_once(struct wait *w, const sigset_t *mask)
{
	struct step_out o = { .w = w };
	struct timespec t, *left;
	bool sleeps;
	int rv, n;

	poll_look(w);
	left = rl_time_left(w->until, w->deadline, &t);
	sleeps = poll_add_eventfd(w) && !w->ready && !w->is_last;
	if (!sleeps) {
		t = (struct timespec){ 0 };
		left = &t;
	}
	if (w->unheard)
		left = rl_time_moment(left, &t);
	pthread_cleanup_push(come_back, &o);
	if (sleeps)
		rl_signal_ends_poll(w->q);
	leave_gate(&o);
	rv = sleeps ? poll_sleep_in(w, left, mask) :
		RL_CALL(ppoll, w->q, w->n_all, left, mask) < 0 ? -errno : 0;
	pthread_cleanup_pop(0);
	poll_go_back(&o);
	get_up(w);
	n = rv ? 0 : count(w);
	/* Once more without it. */
	if (rv == -EINVAL && w->eventfd == &w->q[w->n]) {
		w->crowded = true;
		rv = -EAGAIN;
	}
	poll_let_go(w);
	return rv ?: n ?: w->is_last ? 0 : -EAGAIN;
}

static bool is_late(const struct wait *w)
{
	return w->until && rl_now_ns() >= w->until;
}

static int wait_all(struct wait *w, const sigset_t *mask)
{
	int rv;

	do {
		w->is_last = is_late(w);
		rv = poll_wait_once(w, mask);
	} while (rv == -EAGAIN);
	return rv;
}

static int prepare(struct wait *w, struct pollfd *p, nfds_t n, const struct timespec *t)
{
	w->p = p;
	w->n = n;
	w->q = w->q_own;
	w->s = w->s_own;
	if (t && (t->tv_sec < 0 || t->tv_nsec < 0 || (u64)t->tv_nsec >= NS))
		return -EINVAL;
	if (t && (u64)t->tv_sec < UINT64_MAX / NS / 4)
		w->until = rl_now_ns() + (u64)t->tv_sec * NS + (u64)t->tv_nsec;
	if (n <= SMALL)
		return 0;
	w->s = n < INT_MAX / 256 ? calloc(n + 1, sizeof(*w->s) + sizeof(*w->q)) : NULL;
	w->q = (struct pollfd *)(w->s + n);
	return w->s ? 0 : -ENOMEM;
}

static void poll_finish(void *arg)
{
	struct wait *w = arg;

	if (w->s != w->s_own)
		free(w->s);
}

int rl_sock_wait_list(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	struct wait w = { .frame = __builtin_frame_address(0), .signals = rl_signals_seen().all };
	int rv;

	rl_waiter_reap(w.frame);
	rv = prepare(&w, p, n, t);
	if (rv)
		return (int)rl_hook_result(rv);
	pthread_cleanup_push(poll_finish, &w);
	rv = wait_all(&w, mask);
	pthread_cleanup_pop(1);
	return (int)rl_hook_result(rv);
}

/* ---- select: sets of any size are the program's affair ---- */

#define WORD	RL_SET_WORD
/* Numbers that every table of the kernel's has. */
#define FIRST_TABLE	64
/* Looks at the list of numbers; behind the first ones each has a pause of 1 ms. */
#define LOOKS		1000
#define LOOKS_AT_ONCE	20

static bool has(const fd_set *set, int fd)
{
	return set && ((const unsigned long *)set)[fd / WORD] >> (fd % WORD) & 1;
}

static void put(fd_set *set, int fd, bool on)
{
	unsigned long bit = 1ul << (fd % WORD), *word;

	if (!set)
		return;
	word = (unsigned long *)set + fd / WORD;
	*word = on ? *word | bit : *word & ~bit;
}

struct listed {
	u64 inode;
	s64 offset;
	u16 size;
	u8 type;
	char name[];
};

static bool is_programs(int fd)
{
	return !rl_fd_is_hidden(fd) && rl_raw(SYS_fcntl, fd, F_GETFD) >= 0;
}

/* The highest number of the program's in a list of a folder, or @most. */
static int highest_in(const u8 *list, long len, int most)
{
	const struct listed *e;
	long at;
	int fd;

	for (at = 0; at < len; at += e->size) {
		e = (const struct listed *)(list + at);
		fd = atoi(e->name);
		if (e->name[0] != '.' && fd > most && !rl_fd_is_hidden(fd))
			most = fd;
	}
	return most;
}

/* The program's highest number; -1: unknown. */
static int highest_number(void)
{
	u8 list[4096] __attribute__((aligned(8)));
	long dir = rl_raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY |
			  O_CLOEXEC),
		len;
	int highest = 0;

	if (dir < 0)
		return -1;
	while ((len = rl_raw(SYS_getdents64, dir, list, sizeof(list))) > 0)
		highest = highest_in(list, len, highest);
	rl_raw(SYS_close, dir);
	return highest;
}

/*
 * The kernel looks at no bits beyond its table of descriptors. Hidden ones make that larger than
 * the program knows: this is the size that it has for the program's own, as Linux makes it grow
 * (64, 128, and twice as much each time). A thread that is about to hide a number may wait for a
 * CPU.
 */
static int size_of_table(void)
{
	const struct timespec soon = { .tv_nsec = 1000000 };
	int highest, size = 128, looks;
	u32 moves = 0;

	rl_fd_hidden_were_still(&moves);
	for (looks = 0; looks < LOOKS; looks++) {
		highest = highest_number();
		if (rl_fd_hidden_were_still(&moves))
			break;
		if (looks >= LOOKS_AT_ONCE)
			rl_raw(SYS_nanosleep, &soon, NULL);
	}
	if (highest < 0)
		return FD_SETSIZE;
	while (size <= highest)
		size *= 2;
	return highest < FIRST_TABLE ? FIRST_TABLE : size;
}

static bool may_be_read(int n, const fd_set *in, const fd_set *out, const fd_set *except)
{
	return rl_set_may_be_read(in, n) && rl_set_may_be_read(out, n) &&
		rl_set_may_be_read(except, n);
}

bool rl_sock_in_sets(int *n, const fd_set *in, const fd_set *out, const fd_set *except)
{
	int fd;

	if (unlikely(!rl_sockets_on) || *n <= 0)
		return false;
	if (*n > FD_SETSIZE || !may_be_read(*n, in, out, except))
		*n = min_t(int, *n, size_of_table());
	if (!may_be_read(*n, in, out, except))
		return false;
	for (fd = 0; fd < *n; fd++)
		if (rl_fd_is_used(fd) && (has(in, fd) || has(out, fd)))
			return true;
	return false;
}

static nfds_t list_of_sets(struct pollfd *p, int n, const fd_set *in, const fd_set *out,
			   const fd_set *except)
{
	nfds_t k = 0;
	int fd, ev;

	for (fd = 0; fd < n; fd++) {
		ev = (has(in, fd) ? POLLIN : 0) | (has(out, fd) ? POLLOUT : 0) |
			(has(except, fd) ? POLLPRI : 0);
		if (ev)
			p[k++] = (struct pollfd){ .fd = fd, .events = (short)ev };
	}
	return k;
}

/* As the kernel answers. */
static int sets_of_list(const struct pollfd *p, nfds_t k, fd_set *in, fd_set *out, fd_set *except)
{
	int n = 0;
	bool is_in, is_out, is_except;

	for (; k--; p++) {
		is_in = p->events & POLLIN && p->revents & (POLLIN | POLLHUP | POLLERR);
		is_out = p->events & POLLOUT && p->revents & (POLLOUT | POLLERR);
		is_except = p->events & POLLPRI && p->revents & POLLPRI;
		put(in, p->fd, is_in);
		put(out, p->fd, is_out);
		put(except, p->fd, is_except);
		n += is_in + is_out + is_except;
	}
	return n;
}

static bool has_bad(const struct pollfd *p, nfds_t k)
{
	while (k--)
		if (p[k].revents & POLLNVAL)
			return true;
	return false;
}

static int wait_sets(struct pollfd *p, nfds_t k, fd_set *in, fd_set *out, fd_set *except,
		     const struct timespec *t, const sigset_t *mask)
{
	int rv = rl_sock_wait_list(p, k, t, mask);

	if (rv < 0)
		return rv;
	if (has_bad(p, k))
		return (int)rl_hook_result(-EBADF);
	return sets_of_list(p, k, in, out, except);
}

/* Room for a list, and for a copy of each set. */
struct sets {
	struct pollfd *p;
	fd_set *in, *out, *except;	/* NULL: the program has none */
	unsigned long words[];
};

/* False: it is not there. */
static bool take_set(fd_set **own, void *room, const fd_set *set, int n)
{
	*own = set ? room : NULL;
	return !set || rl_guard_copy(room, set, rl_set_size(n));
}

static bool give_set(fd_set *set, const fd_set *own, int n)
{
	return !set || rl_guard_copy(set, own, rl_set_size(n));
}

static struct sets *new_sets(int n)
{
	size_t words = 3 * rl_set_size(n) + sizeof(struct sets);
	struct sets *s = calloc(1, words + ((size_t)n + 1) * sizeof(*s->p));

	if (s)
		s->p = (struct pollfd *)((u8 *)s + words);
	return s;
}

/* One more than the highest number in the sets. */
static int poll_end_of(const struct sets *s, int n)
{
	while (n && !has(s->in, n - 1) && !has(s->out, n - 1) && !has(s->except, n - 1))
		n--;
	return n;
}

/* The bits after the program's numbers are not part of its sets, and must not be written. */
static int meant(const struct sets *s, int n)
{
	n = poll_end_of(s, n);
	if (n <= FIRST_TABLE || is_programs(n - 1))
		return n;
	return poll_end_of(s, min_t(int, n, size_of_table()));
}

static int wait_copies(struct sets *s, int n, fd_set *in, fd_set *out, fd_set *except,
		       const struct timespec *t,
		       const sigset_t *mask)
{
	u8 *room = (u8 *)s->words;
	int rv;

	rl_guard_begin();
	if (!take_set(&s->in, room, in, n) || !take_set(&s->out, room + rl_set_size(n), out, n) ||
	    !take_set(&s->except, room + 2 * rl_set_size(n), except, n))
		return (int)rl_hook_result(-EFAULT);
	n = meant(s, n);
	rv = wait_sets(s->p, list_of_sets(s->p, n, s->in, s->out, s->except), s->in, s->out,
			  s->except, t, mask);
	if (rv >= 0 &&
	    !(give_set(in, s->in, n) && give_set(out, s->out, n) && give_set(except, s->except, n)))
		return (int)rl_hook_result(-EFAULT);
	return rv;
}

int rl_sock_wait_sets(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *t,
		      const sigset_t *mask, struct timespec *left)
{
	u64 until = t ? rl_now_ns() + (u64)t->tv_sec * NS + (u64)t->tv_nsec : 0;
	struct sets *s = new_sets(n);
	int rv;

	if (!s)
		return (int)rl_hook_result(-ENOMEM);
	pthread_cleanup_push(free, s);
	rv = wait_copies(s, n, in, out, except, t, mask);
	pthread_cleanup_pop(1);
	if (t && left)
		rl_time_left(until, 0, left);
	return rv;
}
