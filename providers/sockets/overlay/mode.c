// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-socket.h: the program itself has a connected socket go over iWARP. No rule is asked. And
 * what it posts.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "connect.h"
#include "mode.h"
#include "process/gate.h"
#include "process/hook.h"
#include "process/raw.h"
#include "sock.h"
#include "sockets/operations/ops.h"
#include "sockets/stream/option.h"

/* One that accept() left to its first use becomes a stream where it stands. With sk->lock. */
static int upgrade(struct rl_sock *sk, int fd, int option, const void *value, socklen_t len)
{
	struct rl_stream *s;
	int rv;

	if (rl_sock_phase_of(sk) != RL_SOCK_FRESH)
		return rl_sock_phase_of(sk) == RL_SOCK_NEW ? -ENOTCONN : -EALREADY;
	rv = rl_stream_setsockopt(fd, option, value, len, &rl_ops_of_stream, &s);
	return rv ?: rl_sock_take(sk, fd, s);
}

static int mode_make(int fd, int option, const void *value, socklen_t len)
{
	struct rl_stream *s;
	int rv = rl_stream_setsockopt(fd, option, value, len, &rl_ops_of_stream, &s);

	return rv ?: rl_sock_adopt(fd, s);
}

/* It is none of ours. */
static int no_sock(int fd)
{
	return rl_raw(SYS_fcntl, fd, F_GETFD) < 0 ? -EBADF : -ENOPROTOOPT;
}

static int call(struct rl_stream *s, bool sets, int option, void *value, socklen_t *len)
{
	return sets ? rl_ops_set(s, option, value, *len) : rl_ops_get(s, option, value, len);
}

/* It may turn out to be plain under the call, which has its events then. */
static int mode_step(struct rl_sock *sk, int fd, bool sets, int option, void *value, socklen_t *len)
{
	bool locked = rl_sock_step_begin(sk);
	int rv = sk->stream ? call(sk->stream, sets, option, value, len) : -ENOPROTOOPT;
	int why = rl_sock_step_end(sk, fd, locked);

	if (why == RL_SOCK_IS_PLAIN)
		return rl_sock_is_kept(sk) ? rv : -ENOPROTOOPT;
	return why ?: rv;
}

/* What the program posts, and asks of it. */
static int operate(int fd, bool sets, int option, void *value, socklen_t *len)
{
	struct rl_sock *sk = rl_sock_begin_any(fd);
	int rv = sk ? -ENOPROTOOPT : no_sock(fd);

	if (sk && rl_sock_is_kept(sk))
		rv = call(sk->stream, sets, option, value, len);
	else if (sk && rl_sock_phase_of(sk) == RL_SOCK_STREAM)
		rv = mode_step(sk, fd, sets, option, value, len);
	if (sk)
		rl_sock_end(sk);
	return rv;
}

int rl_sock_set_mode(int fd, int option, const void *value, socklen_t len)
{
	struct rl_sock *sk;
	int rv;

	if (!rl_sockets_on)
		return -ENOPROTOOPT;
	if (option != WEFT_IWARP_MODE)
		return operate(fd, true, option, (void *)value, &len);
	sk = rl_sock_begin_any(fd);
	/* An ordinary socket's second try: whatever events there were are forgotten. */
	if (sk && rl_sock_is_kept(sk)) {
		rl_fd_forget_all(&sk->file);
		rl_sock_end(sk);
		sk = NULL;
	}
	if (!sk)
		return mode_make(fd, option, value, len);
	pthread_mutex_lock(&sk->lock);
	rv = upgrade(sk, fd, option, value, len);
	pthread_mutex_unlock(&sk->lock);
	rl_sock_end(sk);
	return rv;
}

int rl_sock_get_mode(int fd, int option, void *value, socklen_t *len)
{
	struct rl_sock *sk;
	int rv;

	if (!rl_sockets_on)
		return -ENOPROTOOPT;
	if (option != WEFT_IWARP_MODE)
		return operate(fd, false, option, value, len);
	sk = rl_sock_begin(fd);
	if (!sk)
		return no_sock(fd) == -EBADF ? -EBADF :
			rl_stream_getsockopt(NULL, option, value, len);
	/* One that becomes plain meanwhile loses its stream. */
	pthread_mutex_lock(&sk->lock);
	rv = rl_stream_getsockopt(sk->stream, option, value, len);
	pthread_mutex_unlock(&sk->lock);
	rl_sock_end(sk);
	return rv;
}
