// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each change of a socket is counted (rl_sock_changed()). A thread that has found nothing sleeps
 * only if the count is still what it was before it looked, and the next change wakes it.
 *
 * A signal handler may leave a sleep by siglongjmp(). So a sleeper is on the heap, and has the
 * stack frame of its call: one whose frame is gone is dropped.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>

#include "process/api.h"
#include "process/raw.h"
#include "sock.h"
#include "waiter.h"

#define NS		1000000000ull
#define MOMENT		5000000l

struct rl_sleeper {
	struct rl_sock *sk;		/* the call has the reference */
	struct list_head of_sock;	/* sk->sleepers_lock */
	struct rl_sleeper *older;	/* of this thread */
	const void *frame;
	int eventfd;			/* negative: none */
	u32 forks;			/* rl_fd_forks() of its process */
};

/* Each thread has one, and clears its own alone. Stored plus one: 0 is none. */
static __thread int own_eventfd __attribute__((tls_model("initial-exec")));
static __thread struct rl_sleeper *own __attribute__((tls_model("initial-exec")));

static pthread_key_t end_key;

/* ---- what changes ---- */

static void wake_all(struct rl_sock *sk)
{
	struct rl_sleeper *z;
	u64 one = 1;

	pthread_mutex_lock(&sk->sleepers_lock);
	list_for_each_entry(z, &sk->sleepers, of_sock)
		if (z->eventfd >= 0 && z->forks == rl_fd_forks())
			rl_raw(SYS_write, z->eventfd, &one, sizeof(one));
	pthread_mutex_unlock(&sk->sleepers_lock);
}

void rl_sock_changed(void *arg, unsigned int events)
{
	struct rl_sock *sk = arg;

	__atomic_fetch_add(&sk->changes, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sk->n_sleepers, __ATOMIC_SEQ_CST))
		wake_all(sk);
	rl_sock_mark_ready(sk, events);
}

/* ---- sleepers ---- */

static void waiter_enlist(struct rl_sleeper *z)
{
	struct rl_sock *sk = z->sk;

	pthread_mutex_lock(&sk->sleepers_lock);
	list_add(&z->of_sock, &sk->sleepers);
	__atomic_fetch_add(&sk->n_sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sk->sleepers_lock);
	z->older = own;
	own = z;
}

/* One of this thread's. */
static void discharge(struct rl_sleeper *z)
{
	struct rl_sock *sk = z->sk;
	struct rl_sleeper **at;

	pthread_mutex_lock(&sk->sleepers_lock);
	list_del(&z->of_sock);
	__atomic_fetch_sub(&sk->n_sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sk->sleepers_lock);
	/* A child that a signal handler forked has none of its parent's. */
	for (at = &own; *at && *at != z; at = &(*at)->older)
		;
	if (*at)
		*at = z->older;
	free(z);
}

static bool is_on_other_stack(void)
{
	stack_t s = { 0 };

	return rl_raw(SYS_sigaltstack, NULL, &s) || s.ss_flags & SS_ONSTACK;
}

/* Drops sleepers whose call never returns. @frame NULL: all of this thread. */
static void reap(const void *frame)
{
	struct rl_sleeper *z, *older;
	struct rl_sock *sk;

	rl_gate_enter();
	for (z = own; z; z = older) {
		older = z->older;
		if (frame && (uintptr_t)z->frame > (uintptr_t)frame)
			continue;
		sk = z->sk;
		discharge(z);
		rl_file_put(&sk->file);
	}
	rl_gate_leave();
}

bool rl_waiter_is_sleeping(const struct rl_sock *sk)
{
	const struct rl_sleeper *z;

	for (z = own; z; z = z->older)
		if (z->sk == sk)
			return true;
	return false;
}

void rl_waiter_reap(const void *frame)
{
	if (unlikely(own) && !is_on_other_stack())
		reap(frame);
}

/* ---- eventfds ---- */

static void end_thread(void *arg)
{
	if (own)
		reap(NULL);
	rl_fd_close_hidden((int)(intptr_t)arg - 1);
	own_eventfd = 0;
}

static void make_key(void)
{
	if (pthread_key_create(&end_key, end_thread))
		end_key = (pthread_key_t)-1;
}

static int get_own_eventfd(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long fd;

	if (own_eventfd)
		return own_eventfd - 1;
	pthread_once(&once, make_key);
	fd = rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= 0)
		fd = rl_fd_hide((int)fd);
	if (fd < 0)
		return -EMFILE;
	own_eventfd = (int)fd + 1;
	pthread_setspecific(end_key, (void *)(intptr_t)own_eventfd);
	return own_eventfd - 1;
}

void rl_waiters_in_child(void)
{
	own_eventfd = 0;
	own = NULL;
}

/* ---- waiting ---- */

void rl_waiter_begin(const struct rl_sock *sk, struct rl_waiter *w)
{
	w->before = __atomic_load_n(&sk->changes, __ATOMIC_SEQ_CST);
	w->sleeper = NULL;
}

static int eventfd_for(const void *frame)
{
	if (__libc_single_threaded)
		return -1;
	/* It belongs to the outer call: to clear it here would lose a wake-up there. */
	return own && own->frame != frame ? -EMFILE : get_own_eventfd();
}

int rl_waiter_sleep(struct rl_sock *sk, struct rl_waiter *w, const void *frame)
{
	int fd = eventfd_for(frame);
	struct rl_sleeper *z = malloc(sizeof(*z));

	if (!z)
		return -EMFILE;
	*z = (struct rl_sleeper){
		.sk = sk, .frame = frame, .eventfd = fd, .forks = rl_fd_forks(),
	};
	waiter_enlist(z);
	w->sleeper = z;
	if (__atomic_load_n(&sk->changes, __ATOMIC_SEQ_CST) == w->before)
		return fd;
	rl_waiter_wake(w);
	return -EAGAIN;
}

void rl_waiter_wake(struct rl_waiter *w)
{
	if (w->sleeper)
		discharge(w->sleeper);
	w->sleeper = NULL;
}

void rl_waiter_clear(int eventfd)
{
	u64 n;

	rl_raw(SYS_read, eventfd, &n, sizeof(n));
}

/* ---- how long ---- */

struct timespec *rl_time_left(u64 until_ns, u64 deadline_ms, struct timespec *t)
{
	u64 until = until_ns, now;

	if (deadline_ms && (!until || deadline_ms * 1000000 < until))
		until = deadline_ms * 1000000;
	if (!until)
		return NULL;
	now = rl_now_ns();
	until = until > now ? until - now : 0;
	*t = (struct timespec){ .tv_sec = (time_t)(until / NS), .tv_nsec = (long)(until % NS) };
	return t;
}

struct timespec *rl_time_moment(struct timespec *left, struct timespec *t)
{
	if (!left || left->tv_sec || left->tv_nsec > MOMENT)
		*t = (struct timespec){ .tv_nsec = MOMENT };
	return t;
}
