// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How sockets get into the table: by socket(), accept(), another process, or at the program's
 * request. What is accepted is not looked at before the program uses it: a server may accept in
 * one process, and serve in a child, or in a program that it executes.
 */
#include <linux/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "claims.h"
#include "connect.h"
#include "epoll.h"
#include "options.h"
#include "process/api.h"
#include "process/hook.h"
#include "process/raw.h"
#include "sock.h"
#include "sockets/stream/option.h"
#include "waiter.h"

/* @sk is the table's from now on. False: there is no place for it. */
static bool attach(int fd, struct rl_sock *sk)
{
	bool done;

	if (!sk)
		return false;
	rl_gate_enter();
	if (rl_sock_phase_of(sk) == RL_SOCK_FRESH)
		rl_claims_add(sk);
	done = rl_fd_attach(fd, &sk->file);
	if (done && sk->stream) {
		pthread_mutex_lock(&sk->lock);
		rl_sock_go_over(sk, fd, "asked for");
		pthread_mutex_unlock(&sk->lock);
	}
	rl_file_put(&sk->file);
	rl_gate_leave();
	return done;
}

/* The program asked for it, and the table has it for another reason. With sk->lock. */
int rl_sock_take(struct rl_sock *sk, int fd, struct rl_stream *s)
{
	if (!rl_claims_win(sk)) {
		rl_stream_close(s);
		return rl_sock_kill(sk, -EIO);
	}
	sk->stream = s;
	rl_sock_go_over(sk, fd, "asked for");
	rl_claims_remove(sk);
	return 0;
}

int rl_sock_adopt(int fd, struct rl_stream *s)
{
	static const struct rl_rule none;
	struct rl_sock *sk = rl_sock_new(RL_SOCK_STREAM, &none);

	if (!sk) {
		rl_stream_close(s);
		return -ENOMEM;
	}
	sk->told = true;
	sk->keeps_number = true;
	sk->stream = s;
	return attach(fd, sk) ? 0 : -EMFILE;
}

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
		protocol == IPPROTO_TCP;
}

void rl_sock_made(int fd, int domain, int type, int protocol)
{
	bool may_be = (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM &&
		(!protocol || protocol == IPPROTO_TCP);

	if (fd >= 0 && may_be)
		attach(fd, rl_sock_new(RL_SOCK_NEW, NULL));
}

const struct rl_rule *rl_sock_rule_to(int fd, const struct sockaddr *a, socklen_t len)
{
	struct sockaddr_storage peer = { 0 };

	if (!a || len < sizeof(struct sockaddr_in) || len > sizeof(peer))
		return NULL;
	memcpy(&peer, a, len);
	if (peer.ss_family == AF_INET6 && len < sizeof(struct sockaddr_in6))
		return NULL;
	return rl_rules_find(&rl_sock_rules, RL_CONNECTS, rl_rules_port(&peer), &peer);
}

/* One that is connecting already is asked again by programs that do not poll. */
static void note_connect(struct rl_sock *sk, int fd, const struct rl_rule *rule, bool done)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_NEW && !rule) {
		rl_sock_make_plain(sk, fd);
		return;
	}
	if (phase == RL_SOCK_NEW) {
		pthread_mutex_lock(&sk->lock);
		sk->rule = rule;
		rl_sock_set_phase(sk, RL_SOCK_CONNECTING);
		pthread_mutex_unlock(&sk->lock);
	}
	if (done) {
		__atomic_store_n(&sk->told, true, __ATOMIC_RELAXED);
		rl_sock_decide(sk, fd, true);
		if (rl_sock_phase_of(sk) == RL_SOCK_STREAM)
			rl_sock_step(sk, fd, rl_stream_poll(sk->stream));
	}
	rl_sock_mark_ready(sk, 0);
}

int rl_sock_connected(int fd, const struct rl_rule *rule, int rv)
{
	int saved = errno;
	bool goes_on = rv && (errno == EINPROGRESS || errno == EINTR);
	struct rl_sock *sk = !rv || goes_on ? rl_sock_begin_any(fd) : NULL;

	if (sk) {
		note_connect(sk, fd, rule, !rv);
		rl_sock_end(sk);
	}
	errno = saved;
	return rv;
}

bool rl_sock_is_none(const struct sockaddr *a, socklen_t len)
{
	sa_family_t family;

	return a && len >= sizeof(family) && len <= sizeof(struct sockaddr_storage) &&
		rl_option_copy(&family, &a->sa_family, sizeof(family)) && family == AF_UNSPEC;
}

/* It may connect again, and has the options that it had. */
int rl_sock_connect_to_none(int fd, const struct sockaddr *a, socklen_t len,
			    int (*call)(int fd, const struct sockaddr *a, socklen_t len))
{
	struct rl_sock *sk = rl_sock_begin_any(fd);
	bool left = sk && rl_sock_disconnect(sk, fd);
	int saved;
	long rv;

	if (sk)
		rl_sock_end(sk);
	rv = !left && rl_sock_call(fd, &rv, SYS_connect, (long)a, len, 0, 0, 0) ?
		rl_hook_result(rv) : call(fd, a, len);
	saved = errno;
	if (left)
		rl_sock_made(fd, AF_INET, SOCK_STREAM, 0);
	sk = left ? rl_sock_begin_any(fd) : NULL;
	if (sk) {
		rl_sock_inherit_options(sk, fd);
		rl_sock_end(sk);
	}
	errno = saved;
	return (int)rv;
}

static const struct rl_rule *rule_from(int fd, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(own);

	if (rl_raw(SYS_getsockname, fd, &own, &len) < 0)
		return NULL;
	return rl_rules_find(&rl_sock_rules, RL_ACCEPTS, rl_rules_port(&own), peer);
}

static void connect_accepted(int fd, const struct sockaddr_storage *peer, bool strange)
{
	int saved = errno;
	const struct rl_rule *rule = rule_from(fd, peer);
	struct rl_sock *sk = rule && is_tcp(fd) ? rl_sock_new(RL_SOCK_FRESH, rule) : NULL;

	if (sk) {
		sk->told = true;
		sk->strange = strange;
		sk->deadline = rl_now_ms() + rule->wait_ms;
		rl_sock_take_low_mark(sk, fd);
		rl_sock_inherit_options(sk, fd);
		attach(fd, sk);
	}
	errno = saved;
}

void rl_sock_accepted(int fd, const struct sockaddr_storage *peer)
{
	connect_accepted(fd, peer, false);
}

/* Nothing was sent on it, and nothing was read. */
static bool is_untouched(int fd)
{
	struct tcp_info i = { 0 };
	socklen_t len = sizeof(i);
	int queued = 0;

	return !rl_raw(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &i, &len) && i.tcpi_state == 1 &&
		rl_raw(SYS_ioctl, fd, FIONREAD, &queued) >= 0 && !i.tcpi_bytes_sent &&
		i.tcpi_bytes_received == (u64)queued;
}

void rl_sock_found(int fd)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!rl_fd_is_used(fd) && !rl_raw(SYS_getpeername, fd, &peer, &len) &&
	    rule_from(fd, &peer) &&
	    is_tcp(fd) && is_untouched(fd))
		connect_accepted(fd, &peer, true);
}

bool rl_sock_goes_out(int fd)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin_any(fd) : NULL;
	bool may;

	if (!sk)
		return true;
	may = rl_sock_phase_of(sk) != RL_SOCK_CONNECTING &&
		rl_sock_phase_of(sk) != RL_SOCK_STREAM &&
		rl_sock_phase_of(sk) != RL_SOCK_DEAD;
	if (may)
		__atomic_store_n(&sk->strange, true, __ATOMIC_RELAXED);
	rl_sock_end(sk);
	return may;
}

void rl_sock_listens(int fd)
{
	struct rl_sock *sk = rl_sock_begin_any(fd);

	if (!sk)
		return;
	if (rl_sock_phase_of(sk) == RL_SOCK_NEW)
		rl_sock_make_plain(sk, fd);
	rl_sock_end(sk);
}
