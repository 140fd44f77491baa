// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that wait for one socket while others move its octets. What changes is counted where it changes
 * (rl_sock_changed()). Who has found nothing goes to sleep only if the count is still what it was before he
 * looked, and is rung for with the next change.
 *
 * A handler of the program's may leave a sleep by siglongjmp(). So a sleeper is on the heap, and knows the
 * frame of the call that sleeps: a frame that the thread's stack has no more is left.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>

#include "process/gate.h"
#include "process/raw.h"
#include "sock.h"

struct rl_sleeper {
	struct rl_sock *sk;		/* whose reference is the call's */
	struct rl_sleeper *next, **prev; /* the socket's; its bells */
	struct rl_sleeper *older;	/* the thread's */
	const void *frame;
	int bell;			/* negative: it has none */
	u32 forks;			/* of the process that the thread is of */
};

/* Each thread has a bell of its own: nobody hears, and silences, another's. Less one: 0 is none. */
static __thread int bell __attribute__((tls_model("initial-exec")));
static __thread struct rl_sleeper *own __attribute__((tls_model("initial-exec")));

static pthread_key_t bell_key;

/* ---- what changes ---- */

static void ring_all(struct rl_sock *sk)
{
	struct rl_sleeper *z;
	u64 one = 1;

	pthread_mutex_lock(&sk->bells);
	for (z = sk->sleepers; z; z = z->next)
		if (z->bell >= 0 && z->forks == rl_fd_forks())
			rl_raw(SYS_write, z->bell, &one, sizeof(one));
	pthread_mutex_unlock(&sk->bells);
}

void rl_sock_changed(void *arg, unsigned int events)
{
	struct rl_sock *sk = arg;

	__atomic_fetch_add(&sk->turns, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sk->n_sleepers, __ATOMIC_SEQ_CST))
		ring_all(sk);
	rl_epoll_stir(sk, events);
}

/* ---- sleepers ---- */

static void enlist(struct rl_sleeper *z)
{
	struct rl_sock *sk = z->sk;

	pthread_mutex_lock(&sk->bells);
	z->next = sk->sleepers;
	z->prev = &sk->sleepers;
	if (z->next)
		z->next->prev = &z->next;
	sk->sleepers = z;
	__atomic_fetch_add(&sk->n_sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sk->bells);
	z->older = own;
	own = z;
}

/* One of the thread's own. */
static void discharge(struct rl_sleeper *z)
{
	struct rl_sock *sk = z->sk;
	struct rl_sleeper **at;

	pthread_mutex_lock(&sk->bells);
	*z->prev = z->next;
	if (z->next)
		z->next->prev = z->prev;
	__atomic_fetch_sub(&sk->n_sleepers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sk->bells);
	/* A child of a handler's has none of its parent's. */
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

/* The calls of those sleepers never come back: NULL: no call of the thread's does. */
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

bool rl_turn_is_sleeping(const struct rl_sock *sk)
{
	const struct rl_sleeper *z;

	for (z = own; z; z = z->older)
		if (z->sk == sk)
			return true;
	return false;
}

void rl_turn_reap(const void *frame)
{
	if (unlikely(own) && !is_on_other_stack())
		reap(frame);
}

/* ---- bells ---- */

static void end_thread(void *arg)
{
	if (own)
		reap(NULL);
	rl_fd_close_hidden((int)(intptr_t)arg - 1);
	bell = 0;
}

static void make_key(void)
{
	if (pthread_key_create(&bell_key, end_thread))
		bell_key = (pthread_key_t)-1;
}

static int own_bell(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long fd;

	if (bell)
		return bell - 1;
	pthread_once(&once, make_key);
	fd = rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= 0)
		fd = rl_fd_hide((int)fd);
	if (fd < 0)
		return -EMFILE;
	bell = (int)fd + 1;
	pthread_setspecific(bell_key, (void *)(intptr_t)bell);
	return bell - 1;
}

void rl_turns_in_child(void)
{
	bell = 0;
	own = NULL;
}

/* ---- turns ---- */

void rl_turn_begin(const struct rl_sock *sk, struct rl_turn *t)
{
	t->before = __atomic_load_n(&sk->turns, __ATOMIC_SEQ_CST);
	t->sleeper = NULL;
}

int rl_turn_sleep(struct rl_sock *sk, struct rl_turn *t, const void *frame)
{
	/* The bell is the outer call's: who hears it here would silence it there. */
	bool is_nested = own && own->frame != frame;
	struct rl_sleeper *z;
	int fd = __libc_single_threaded ? -1 : is_nested ? -EMFILE : own_bell();

	z = malloc(sizeof(*z));
	if (!z)
		return -EMFILE;
	*z = (struct rl_sleeper){ .sk = sk, .frame = frame, .bell = fd, .forks = rl_fd_forks() };
	enlist(z);
	t->sleeper = z;
	if (__atomic_load_n(&sk->turns, __ATOMIC_SEQ_CST) == t->before)
		return fd;
	rl_turn_wake(t);
	return -EAGAIN;
}

void rl_turn_wake(struct rl_turn *t)
{
	if (t->sleeper)
		discharge(t->sleeper);
	t->sleeper = NULL;
}

void rl_turn_silence(int fd)
{
	u64 n;

	rl_raw(SYS_read, fd, &n, sizeof(n));
}
