// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <string.h>

#include "connect.h"
#include "options.h"
#include "process/clock.h"
#include "process/gate.h"
#include "process/hook.h"
#include "process/raw.h"
#include "sock.h"
#include "sockets/stream/option.h"

/*
 * TCP_CORK and TCP_NODELAY are about the program's octets: set at the connection they would hold
 * back credit. Messages go out whole and at once, so both are noted and do nothing.
 */
static const struct kept {
	int level, option;
	socklen_t size;
	size_t at;
} all_kept[] = {
	{ IPPROTO_TCP, TCP_NODELAY, sizeof(int), offsetof(struct rl_sock_options, nodelay) },
	{ IPPROTO_TCP, TCP_CORK, sizeof(int), offsetof(struct rl_sock_options, cork) },
	{ SOL_SOCKET, SO_LINGER, sizeof(struct linger),
	  offsetof(struct rl_sock_options, linger) },
	{ SOL_SOCKET, SO_RCVLOWAT, sizeof(int), offsetof(struct rl_sock_options, low_mark) },
};

#define N_KEPT (sizeof(all_kept) / sizeof(all_kept[0]))

/* Atomic: the kernel's value of some socket was set, so a listener may pass it on. */
static bool was_set[N_KEPT];

static const struct kept *find_kept(int level, int option)
{
	const struct kept *k;

	for (k = all_kept; k < all_kept + N_KEPT; k++)
		if (k->level == level && k->option == option)
			return k;
	return NULL;
}

static bool is_zerocopy(int level, int option)
{
	return level == SOL_SOCKET && option == SO_ZEROCOPY;
}

/* Their octets would be FPDUs. Programs go on without. */
static bool is_refused(int level, int option)
{
	return is_zerocopy(level, option) ||
		(level == IPPROTO_TCP && (option == TCP_ULP || option == TCP_REPAIR ||
					  option == TCP_ZEROCOPY_RECEIVE));
}

/* Those of them that getsockopt() refuses, too. */
static bool is_unreadable(int level, int option)
{
	return is_zerocopy(level, option) ||
		(level == IPPROTO_TCP && option == TCP_ZEROCOPY_RECEIVE);
}

bool rl_sock_has_option(int level, int option)
{
	return find_kept(level, option) || is_refused(level, option);
}

static void *own_value(struct rl_sock *sk, const struct kept *k)
{
	return (char *)&sk->options + k->at;
}

/* As the kernel reads them. */
static void normalise(struct rl_sock *sk, const struct kept *k)
{
	int *v = own_value(sk, k);

	if (k->option == SO_RCVLOWAT && k->level == SOL_SOCKET)
		*v = *v < 0 ? INT_MAX : *v ? *v : 1;
	else
		*v = !!*v;
}

static void set_kernels(int fd, const struct kept *k, const void *value)
{
	rl_raw(SYS_setsockopt, fd, k->level, k->option, value, k->size);
}

/* Does the kernel have it, and is to have it? What @sk was accepted with it must not. */
static bool is_kernels(const struct rl_sock *sk, const struct kept *k)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_FRESH)
		return k->option != SO_RCVLOWAT || k->level != SOL_SOCKET;
	return phase == RL_SOCK_NEW || phase == RL_SOCK_CONNECTING;
}

/* With sk->lock. */
static int set_locked(struct rl_sock *sk, int fd, const struct kept *k, const void *value,
		      socklen_t len)
{
	u8 copy[sizeof(struct linger)];
	long rv;

	if ((int)len < (int)k->size)
		return -EINVAL;
	if (!rl_option_copy(copy, value, k->size))
		return -EFAULT;
	if (is_kernels(sk, k)) {
		rv = rl_raw(SYS_setsockopt, fd, k->level, k->option, copy, k->size);
		if (rv < 0)
			return (int)rv;
		__atomic_store_n(&was_set[k - all_kept], true, __ATOMIC_RELAXED);
	}
	memcpy(own_value(sk, k), copy, k->size);
	normalise(sk, k);
	if (sk->stream && k->option == SO_RCVLOWAT && k->level == SOL_SOCKET)
		rl_stream_set_low_mark(sk->stream, (u32)sk->options.low_mark);
	return 0;
}

/* A listener that may accept streams. */
static bool is_listener_of_ours(int fd)
{
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(int), own_len = sizeof(own);
	int listens = 0;

	return !rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) && listens &&
		!rl_raw(SYS_getsockname, fd, &own, &own_len) &&
		rl_rules_may_accept(&rl_sock_rules, rl_rules_port(&own));
}

/* The kernel's to set: a later accept() may pass it on. */
static void note_plain(const struct kept *k)
{
	if (k)
		__atomic_store_n(&was_set[k - all_kept], true, __ATOMIC_RELAXED);
}

static bool set_option(struct rl_sock *sk, int fd, int level, int option, const void *value,
		       socklen_t len, int *rv)
{
	const struct kept *k = find_kept(level, option);
	bool is_plain;

	pthread_mutex_lock(&sk->lock);
	is_plain = rl_sock_phase_of(sk) == RL_SOCK_PLAIN;
	if (!is_plain)
		*rv = k ? set_locked(sk, fd, k, value, len) : -ENOPROTOOPT;
	pthread_mutex_unlock(&sk->lock);
	/* TCP_ULP of one that is not connected is the kernel's to refuse. */
	return !is_plain && (k || is_zerocopy(level, option) ||
			     rl_sock_phase_of(sk) != RL_SOCK_NEW);
}

bool rl_sock_set_option(int fd, int level, int option, const void *value, socklen_t len, int *rv)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin_any(fd) : NULL;
	bool done = sk && set_option(sk, fd, level, option, value, len, rv);

	if (sk)
		rl_sock_end(sk);
	if (!done && is_zerocopy(level, option) && is_listener_of_ours(fd)) {
		*rv = -ENOPROTOOPT;
		done = true;
	}
	if (!done)
		note_plain(find_kept(level, option));
	else
		*rv = (int)rl_hook_result(*rv);
	return done;
}

/* With sk->lock. */
static int get_locked(struct rl_sock *sk, const struct kept *k, void *value, socklen_t *len)
{
	int mark = sk->options.low_mark ? sk->options.low_mark : 1;
	const void *own = k->option == SO_RCVLOWAT && k->level == SOL_SOCKET ? &mark :
		own_value(sk, k);
	socklen_t room;

	if (!rl_option_copy(&room, len, sizeof(room)))
		return -EFAULT;
	if ((int)room < 0)
		return -EINVAL;
	room = room < k->size ? room : k->size;
	return rl_option_copy(value, own, room) && rl_option_copy(len, &room, sizeof(room)) ? 0 :
		-EFAULT;
}

bool rl_sock_get_option(int fd, int level, int option, void *value, socklen_t *len, int *rv)
{
	const struct kept *k = find_kept(level, option);
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin(fd) : NULL;
	bool is_ours;

	if (!sk)
		return false;
	pthread_mutex_lock(&sk->lock);
	is_ours = rl_sock_phase_of(sk) != RL_SOCK_PLAIN &&
		(k ? !is_kernels(sk, k) : is_unreadable(level, option));
	if (is_ours)
		*rv = k ? get_locked(sk, k, value, len) : -ENOPROTOOPT;
	pthread_mutex_unlock(&sk->lock);
	rl_sock_end(sk);
	if (is_ours)
		*rv = (int)rl_hook_result(*rv);
	return is_ours;
}

/* The low mark is looked at whether it was set or not: rl_sock_take_low_mark(). */
void rl_sock_inherit_options(struct rl_sock *sk, int fd)
{
	const struct kept *k;
	socklen_t len;

	for (k = all_kept; k < all_kept + N_KEPT - 1; k++) {
		len = k->size;
		if (__atomic_load_n(&was_set[k - all_kept], __ATOMIC_RELAXED))
			rl_raw(SYS_getsockopt, fd, k->level, k->option, own_value(sk, k), &len);
	}
}

void rl_sock_take_options(struct rl_sock *sk, int fd)
{
	static const struct linger no_linger;
	static const int off;

	if (sk->options.cork)
		rl_raw(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
	if (sk->options.linger.l_onoff)
		rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
	if (sk->options.low_mark)
		rl_stream_set_low_mark(sk->stream, (u32)sk->options.low_mark);
}

void rl_sock_return_options(struct rl_sock *sk, int fd, bool all)
{
	const struct kept *k;

	if (all || sk->options.nodelay || sk->options.cork || sk->options.linger.l_onoff)
		for (k = all_kept; k < all_kept + N_KEPT - 1; k++) {
			set_kernels(fd, k, own_value(sk, k));
			note_plain(k);
		}
	if (sk->options.low_mark)
		set_kernels(fd, &all_kept[N_KEPT - 1], &sk->options.low_mark);
}

/* ---- SO_LINGER ---- */

/* With sk->lock. */
static bool begin_linger(struct rl_sock *sk, u64 *until)
{
	const struct linger *l = &sk->options.linger;
	u32 most = INT_MAX / 1000;

	if (!l->l_linger || !sk->stream || rl_stream_has_operations(sk->stream))
		return false;
	rl_stream_await_end(sk->stream);
	*until = rl_now_ms() + 1000ull * ((u32)l->l_linger < most ? (u32)l->l_linger : most);
	return true;
}

struct rl_stream *rl_sock_begin_linger(int fd, u64 *until)
{
	struct rl_sock *sk = rl_sock_begin(fd);
	struct rl_stream *s = NULL;

	if (!sk)
		return NULL;
	if (sk->options.linger.l_onoff) {
		pthread_mutex_lock(&sk->lock);
		if (begin_linger(sk, until))
			s = sk->stream;
		pthread_mutex_unlock(&sk->lock);
	}
	rl_sock_end(sk);
	return s;
}

void rl_sock_linger(struct rl_stream *s, u64 until)
{
	const struct timespec soon = { .tv_nsec = 1000000 };
	int saved = errno;

	while (rl_stream_lingers(s) && rl_now_ms() < until)
		if (rl_raw(SYS_ppoll, NULL, 0, &soon, NULL, 0) == -EINTR)
			break;
	rl_stream_let_go(s);
	errno = saved;
}
