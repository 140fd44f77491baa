// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The progress thread, and the table of watches. epoll is given a key, never a pointer: a watch may
 * have ended before epoll reports it.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "api.h"
#include "raw.h"

#define EVENTS 64
#define SLICE_NS 100000
/* Octets of sigset_t that the kernel knows. */
#define MASK_SIZE 8
/* A key is an index of the table, with a generation number above it. */
#define PLACE_BITS 20
#define PLACE_MASK ((1u << PLACE_BITS) - 1)
/* No watch's: their places are reserved. */
enum { WAKE_KEY = 0, CLOCK_KEY = PLACE_MASK };

static struct {
	pthread_mutex_t lock;		/* the table, the deadlines */
	struct rl_watch **at;		/* by index; 0 is reserved */
	u32 *turn;			/* generation of each, for the next key */
	u32 size, free_from;
	struct rl_timers timers;	/* as many as the table has places */
	u64 next;			/* when the first is due, or an earlier time; 0: none */

	pthread_mutex_t start;
	int epfd, wake;			/* hidden; -1: there is no thread */
	int clock;			/* hidden: a timerfd; -1: none */
	void (*job)(void);		/* atomic: rl_thread_do()'s; NULL: it is done */
	bool orphaned;			/* atomic: in a child: no thread waits for watches */
} t = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.start = PTHREAD_MUTEX_INITIALIZER,
	.epfd = -1, .wake = -1, .clock = -1,
};

static __thread bool is_progress;

/* ---- the table; with the lock ---- */

static bool grow_table(void)
{
	u32 size = t.size ? t.size * 2 : 64, i;
	struct rl_watch **at;
	u32 *turn;

	if (size > PLACE_MASK || !rl_timers_reserve(&t.timers, size))
		return false;
	at = realloc(t.at, size * sizeof(*at));
	if (!at)
		return false;
	t.at = at;
	turn = realloc(t.turn, size * sizeof(*turn));
	if (!turn)
		return false;
	t.turn = turn;
	for (i = t.size; i < size; i++) {
		at[i] = NULL;
		turn[i] = 0;
	}
	t.size = size;
	return true;
}

static u32 free_place(void)
{
	u32 i;

	for (i = t.free_from ? t.free_from : 1; i < t.size; i++)
		if (!t.at[i])
			return i;
	return grow_table() ? i ? i : 1 : 0;
}

static struct rl_watch *watch_find(u32 key)
{
	u32 place = key & PLACE_MASK;

	return place < t.size && t.at[place] && t.at[place]->key == key ? t.at[place] : NULL;
}

static void stop_clock(struct rl_watch *w)
{
	WRITE_ONCE(w->deadline, 0);
	rl_timers_stop(&t.timers, &w->timer);
}

/* One that is poked waits behind those that were due before: no watch starves the others. */
static void start_clock(struct rl_watch *w, u64 ms)
{
	WRITE_ONCE(w->deadline, ms);
	rl_timers_start(&t.timers, &w->timer, ms == RL_SOON ? rl_now_ms() : ms);
}

/*
 * Deadlines of watches that the child has not taken over must not expire in it: they are kept, but
 * their timers do not run.
 */
static void set_clocks_aside(void)
{
	struct rl_timer *timer;

	while ((timer = rl_timers_first(&t.timers)))
		rl_timers_stop(&t.timers, timer);
	WRITE_ONCE(t.next, 0);
}

static void restart_clocks(void)
{
	struct rl_watch *w;
	u32 i;

	for (i = 1; i < t.size; i++) {
		w = t.at[i];
		if (w && w->deadline && !w->timer.place)
			start_clock(w, w->deadline);
	}
	WRITE_ONCE(t.next, RL_SOON);
}

/* ---- what others ask ---- */

static int start_thread(void);

int rl_watch_begin(struct rl_watch *w)
{
	int rv = start_thread();
	u32 place;

	if (rv)
		return rv;
	pthread_mutex_lock(&t.lock);
	place = free_place();
	if (place) {
		w->key = ++t.turn[place] << PLACE_BITS | place;
		t.at[place] = w;
		t.free_from = place + 1;
		rl_watch_get(w);
	}
	pthread_mutex_unlock(&t.lock);
	return place ? 0 : -ENOMEM;
}

void rl_watch_end(struct rl_watch *w)
{
	bool was;

	pthread_mutex_lock(&t.lock);
	was = w->key;
	if (was) {
		u32 place = w->key & PLACE_MASK;

		t.at[place] = NULL;
		WRITE_ONCE(w->key, 0);
		if (place < t.free_from)
			t.free_from = place;
	}
	stop_clock(w);
	pthread_mutex_unlock(&t.lock);
	if (was)
		rl_watch_put(w);
}

struct rl_watch *rl_watch_find(u32 key)
{
	struct rl_watch *w;

	pthread_mutex_lock(&t.lock);
	w = watch_find(key);
	if (w)
		rl_watch_get(w);
	pthread_mutex_unlock(&t.lock);
	return w;
}

static void wake_thread(void)
{
	u64 one = 1;

	rl_raw(SYS_write, t.wake, &one, sizeof(one));
}

/* The thread, which may sleep for longer, wakes at @ms. */
static void wake_thread_at(u64 ms)
{
	const struct itimerspec at = { .it_value = {
		.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000) } };

	if (rl_raw(SYS_timerfd_settime, t.clock, TFD_TIMER_ABSTIME, &at, NULL))
		wake_thread();
}

/* With the lock: the earliest time is the one that is set last. */
static void note_next(u64 due, bool is_soon)
{
	if (t.next && t.next <= due)
		return;
	WRITE_ONCE(t.next, due);
	if (is_progress)
		return;
	if (is_soon)
		wake_thread();
	else
		wake_thread_at(due);
}

void rl_watch_set_deadline(struct rl_watch *w, u64 ms)
{
	pthread_mutex_lock(&t.lock);
	if (w->key && w->deadline != ms) {
		stop_clock(w);
		if (ms) {
			start_clock(w, ms);
			note_next(w->timer.due, ms == RL_SOON);
		}
	}
	pthread_mutex_unlock(&t.lock);
}

void rl_watch_poke(struct rl_watch *w)
{
	rl_watch_set_deadline(w, RL_SOON);
}

/* @w may end during a call in its name; closing the descriptor then undoes the call. */
static int thread_epoll_ctl(struct rl_watch *w, int op, int fd, u32 events)
{
	struct epoll_event ev = { .events = events, .data.u32 = w ? READ_ONCE(w->key) : WAKE_KEY };

	return rl_raw(SYS_epoll_ctl, t.epfd, op, fd, &ev);
}

int rl_thread_add(struct rl_watch *w, int fd, u32 events)
{
	int rv = thread_epoll_ctl(w, EPOLL_CTL_ADD, fd, events);

	/* A child that takes over what it inherited may ask again for its own descriptor. */
	return rv == -EEXIST ? thread_epoll_ctl(w, EPOLL_CTL_MOD, fd, events) : rv;
}

int rl_thread_modify(struct rl_watch *w, int fd, u32 events)
{
	return thread_epoll_ctl(w, EPOLL_CTL_MOD, fd, events);
}

void rl_thread_remove(int fd)
{
	thread_epoll_ctl(NULL, EPOLL_CTL_DEL, fd, 0);
}

int rl_thread_watch(struct rl_watch *w, int fd, u32 events)
{
	int rv = rl_watch_begin(w);

	if (rv)
		return rv;
	rv = rl_thread_add(w, fd, events);
	if (rv)
		rl_watch_end(w);
	return rv;
}

void rl_thread_end_watch(struct rl_watch *w, int fd)
{
	rl_thread_remove(fd);
	rl_watch_end(w);
}

/* ---- the thread ---- */

bool rl_thread_is_this(void)
{
	return is_progress;
}

/* A directory has two links more than directories in it: here a thread's each. */
bool rl_thread_is_only_one(void)
{
	bool runs = __atomic_load_n(&t.epfd, __ATOMIC_ACQUIRE) >= 0;
	struct stat st;

	return !rl_raw(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) &&
	       st.st_nlink == (nlink_t)3 + runs;
}

bool rl_thread_is_wanted(void)
{
	struct pollfd p = { .fd = t.epfd, .events = POLLIN };
	struct timespec now = { 0 };
	u64 next = READ_ONCE(t.next);

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, MASK_SIZE) > 0 ||
	       (next && next <= rl_now_ms()) || rl_gate_is_shut();
}

/*
 * Watches whose deadline has passed, referenced, their clocks stopped: how many. More may be left.
 */
static u32 take_expired(struct rl_watch *due[EVENTS])
{
	u64 now = rl_now_ms();
	struct rl_timer *first;
	struct rl_watch *w;
	u32 n = 0;

	pthread_mutex_lock(&t.lock);
	while ((first = rl_timers_first(&t.timers)) && first->due <= now && n < EVENTS) {
		w = container_of(first, struct rl_watch, timer);
		stop_clock(w);
		rl_watch_get(w);
		due[n++] = w;
	}
	WRITE_ONCE(t.next, first ? first->due : 0);
	pthread_mutex_unlock(&t.lock);
	return n;
}

/* A watch may be ended by another's callback before its own runs, and then ignores the call. */
static void run_deadlines(void)
{
	struct rl_watch *due[EVENTS];
	u32 n = take_expired(due), i;

	for (i = 0; i < n; i++) {
		due[i]->ops->timeout(due[i]);
		rl_watch_put(due[i]);
	}
}

/*
 * Outside the gate: a fork() may happen, so no lock. Whoever sets an earlier deadline sets the
 * clock, too.
 */
static int ms_to_next(void)
{
	u64 next = READ_ONCE(t.next), now;

	if (!next)
		return -1;
	now = rl_now_ms();
	return next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now);
}

static void run_event(const struct epoll_event *ev)
{
	struct rl_watch *w;
	u64 count;

	if (ev->data.u32 == WAKE_KEY) {
		rl_raw(SYS_read, t.wake, &count, sizeof(count));
		return;
	}
	w = rl_watch_find(ev->data.u32);
	if (!w)
		return;
	w->ops->ready(w, ev->events);
	rl_watch_put(w);
}

/*
 * The thread's work is short, and a program may spin until it is done. With a short slice the
 * scheduler (from Linux 6.12 on) runs the thread at once, even if every CPU is spinning.
 */
static void ask_for_short_slices(void)
{
	struct {
		u32 size, policy;
		u64 flags;
		s32 nice;
		u32 priority;
		u64 runtime, deadline, period;
	} attr;

	if (rl_raw(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy)
		return;
	attr.runtime = SLICE_NS;
	rl_raw(SYS_sched_setattr, 0, &attr, 0);
}

static void do_job(void)
{
	void (*job)(void) = __atomic_load_n(&t.job, __ATOMIC_ACQUIRE);

	if (likely(!job))
		return;
	job();
	__atomic_store_n(&t.job, NULL, __ATOMIC_RELEASE);
}

void rl_thread_do(void (*job)(void), u64 until)
{
	const struct timespec soon = { .tv_nsec = 1000000 };

	if (__atomic_load_n(&t.epfd, __ATOMIC_ACQUIRE) < 0 || is_progress)
		return;
	__atomic_store_n(&t.job, job, __ATOMIC_RELEASE);
	wake_thread();
	while (__atomic_load_n(&t.job, __ATOMIC_ACQUIRE) && rl_now_ms() < until)
		rl_raw(SYS_ppoll, NULL, 0, &soon, NULL, 0);
}

static void *progress(void *arg)
{
	struct epoll_event ev[EVENTS];
	int i, n, ms;

	is_progress = true;
	pthread_setname_np(pthread_self(), "weft");
	ask_for_short_slices();
	for (;;) {
		ms = ms_to_next();
		n = rl_raw(SYS_epoll_pwait, t.epfd, ev, EVENTS, ms, NULL, MASK_SIZE);
		rl_gate_enter();
		for (i = 0; i < n; i++)
			if (ev[i].data.u32 == CLOCK_KEY)
				ms = 0;
			else
				run_event(&ev[i]);
		if (n <= 0 || !ms)
			run_deadlines();
		do_job();
		rl_gate_leave();
	}
	return NULL;
}

/*
 * The program may rely on which thread gets a signal, so this one takes none. Faults are delivered
 * to the thread that caused them.
 */
static int spawn(void)
{
	sigset_t all, old;
	pthread_t thread;
	int rv;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, MASK_SIZE);
	rv = pthread_create(&thread, NULL, progress, NULL);
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, MASK_SIZE);
	if (!rv)
		pthread_detach(thread);
	return -rv;
}

static int open_hidden(int fd)
{
	return fd < 0 ? fd : rl_fd_hide(fd);
}

/* Without it the thread is woken for each earlier deadline. */
static void start_clock_fd(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u32 = CLOCK_KEY };

	t.clock = open_hidden(rl_raw(SYS_timerfd_create, CLOCK_MONOTONIC,
				     TFD_CLOEXEC | TFD_NONBLOCK));
	if (t.clock < 0 || !rl_raw(SYS_epoll_ctl, t.epfd, EPOLL_CTL_ADD, t.clock, &ev))
		return;
	rl_fd_close_hidden(t.clock);
	t.clock = -1;
}

static void stop_with_lock(void (*close_fd)(int fd))
{
	close_fd(t.epfd);
	close_fd(t.wake);
	if (t.clock >= 0)
		close_fd(t.clock);
	t.wake = t.clock = -1;
	__atomic_store_n(&t.epfd, -1, __ATOMIC_RELEASE);
}

static int start_with_lock(void)
{
	int ep = open_hidden(rl_raw(SYS_epoll_create1, EPOLL_CLOEXEC)), wake, rv;

	if (ep < 0)
		return ep;
	wake = open_hidden(rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (wake < 0) {
		rl_fd_close_hidden(ep);
		return wake;
	}
	t.wake = wake;
	__atomic_store_n(&t.epfd, ep, __ATOMIC_RELEASE);
	start_clock_fd();
	rv = thread_epoll_ctl(NULL, EPOLL_CTL_ADD, wake, EPOLLIN) ?: spawn();
	if (rv)
		stop_with_lock(rl_fd_close_hidden);
	return rv;
}

/* ---- fork ---- */

/* The epoll is shared with the parent: a child waits on one of its own. */
static void thread_in_child(void)
{
	t.job = NULL;
	if (t.epfd >= 0) {
		stop_with_lock(rl_fd_close_inherited);
		t.orphaned = true;
	}
	set_clocks_aside();
}

static void thread_handle_forks(void)
{
	pthread_atfork(NULL, NULL, thread_in_child);
}

static int start_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rv = 0;

	if (__atomic_load_n(&t.epfd, __ATOMIC_ACQUIRE) >= 0)
		return 0;
	pthread_mutex_lock(&t.start);
	if (t.epfd < 0) {
		pthread_once(&once, thread_handle_forks);
		rv = start_with_lock();
	}
	pthread_mutex_unlock(&t.start);
	return rv;
}

/* The next watch from index *@at on, referenced; NULL: no more. */
static struct rl_watch *watch_from(u32 *at)
{
	struct rl_watch *w = NULL;

	pthread_mutex_lock(&t.lock);
	while (!w && *at < t.size)
		w = t.at[(*at)++];
	if (w)
		rl_watch_get(w);
	pthread_mutex_unlock(&t.lock);
	return w;
}

void rl_thread_each(void (*visit)(struct rl_watch *w, void *arg), void *arg)
{
	struct rl_watch *w;
	u32 at = 1;

	while ((w = watch_from(&at))) {
		visit(w, arg);
		rl_watch_put(w);
	}
}

static void revive(struct rl_watch *w, void *arg)
{
	w->ops->revive(w);
}

/*
 * A signal handler may end the process in the middle of a call of ours: takes no lock that it would
 * wait for.
 */
bool rl_thread_at_exit(void (*look)(struct rl_watch *w))
{
	struct rl_watch *w;
	u32 at;

	for (at = 1; !pthread_mutex_trylock(&t.lock); at++) {
		w = at < t.size ? t.at[at] : NULL;
		if (w)
			rl_watch_get(w);
		pthread_mutex_unlock(&t.lock);
		if (at >= t.size)
			return true;
		if (!w)
			continue;
		look(w);
		rl_watch_put(w);
	}
	return false;
}

void rl_thread_revive(const struct rl_file *f)
{
	if (likely(!rl_file_is_inherited(f)))
		return;
	rl_fd_adopt();
	if (!__atomic_exchange_n(&t.orphaned, false, __ATOMIC_ACQ_REL) || start_thread())
		return;
	pthread_mutex_lock(&t.lock);
	restart_clocks();
	pthread_mutex_unlock(&t.lock);
	rl_thread_each(revive, NULL);
	wake_thread();
}
