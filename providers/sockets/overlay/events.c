// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What poll() reports of a socket, and what to ask of the kernel. */
#include "events.h"
#include "sock.h"

u64 rl_sock_deadline(const struct rl_sock *sk, unsigned int events)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_STREAM)
		return __atomic_load_n(&sk->frame_by, __ATOMIC_RELAXED);
	return events & POLLOUT && phase == RL_SOCK_FRESH && !sk->rule->only ? sk->deadline : 0;
}

static unsigned int with_aliases(unsigned int events)
{
	return events | (events & POLLRDNORM ? POLLIN : 0) | (events & POLLWRNORM ? POLLOUT : 0);
}

static int events_of(struct rl_sock *sk, bool moves, unsigned int events, unsigned int *awaits)
{
	unsigned int ev = rl_stream_look(sk->stream, moves, awaits);

	if (ev & POLLOUT ||
	    (with_aliases(events) & POLLOUT &&
	     !__atomic_exchange_n(&sk->told, true, __ATOMIC_RELAXED)))
		ev |= POLLOUT | POLLWRNORM;
	if (ev & POLLIN)
		ev |= POLLRDNORM;
	ev &= events | POLLERR | POLLHUP;
	if (ev)
		*awaits = 0;
	return (int)ev;
}

int rl_sock_poll(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	bool is_connecting = rl_sock_phase_of(sk) == RL_SOCK_CONNECTING;
	int rv;

	*awaits = is_connecting ? POLLOUT : POLLIN;
	rv = rl_sock_decide(sk, fd, with_aliases(events) & POLLOUT);
	if (!rv)
		rv = (int)rl_sock_step(sk, fd, events_of(sk, true, events, awaits));
	if (rv == -EAGAIN)
		return 0;
	if (rv < 0 && rv != RL_SOCK_IS_PLAIN)
		return (int)((POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM) & events) | POLLERR |
			POLLHUP;
	return rv;
}

int rl_sock_poll_cached(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	if (!__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE))
		return rl_sock_poll(sk, fd, events, awaits);
	return events_of(sk, false, events, awaits);
}

int rl_sock_poll_tcp(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits)
{
	const unsigned int hears = POLLIN | POLLRDNORM | POLLRDHUP;
	int ev = rl_sock_poll_cached(sk, fd, events, awaits), more;

	if (ev <= 0 || (unsigned int)ev & hears || !(events & hears))
		return ev;
	more = rl_sock_poll(sk, fd, events, awaits);
	return more < 0 ? more : ev | more;
}

/* ---- what to wait for ---- */

int rl_sock_fd(const struct rl_sock *sk, int fd)
{
	int own = __atomic_load_n(&sk->own_fd, __ATOMIC_RELAXED);

	return own < 0 ? rl_fd_name_of(&sk->file, fd) : own;
}

struct pollfd rl_sock_awaits(struct rl_sock *sk, int fd, unsigned int events)
{
	struct pollfd p = { .fd = rl_sock_fd(sk, fd), .events = POLLIN };
	int awaits;

	if (rl_sock_phase_of(sk) == RL_SOCK_CONNECTING) {
		p.events = POLLOUT;
	} else if (rl_sock_phase_of(sk) == RL_SOCK_STREAM) {
		awaits = (int)rl_sock_step(sk, fd, rl_stream_awaits(sk->stream, events));
		p.events = awaits < 0 ? POLLIN : (short)awaits;
		if (!awaits)
			p.fd = -1;
	}
	return p;
}
