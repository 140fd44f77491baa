// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sockets that go over iWARP: their life and their phases. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "epoll.h"
#include "options.h"
#include "process/api.h"
#include "process/raw.h"
#include "sock.h"
#include "stand_in.h"
#include "waiter.h"

static const struct rl_file_ops sock_ops;

/* Threads that wait look again. */
void rl_sock_set_phase(struct rl_sock *sk, enum rl_sock_phase phase)
{
	__atomic_store_n(&sk->phase, phase, __ATOMIC_RELEASE);
	rl_sock_changed(sk, POLLIN | POLLOUT);
}

/* ---- life ---- */

struct rl_sock *rl_sock_new(enum rl_sock_phase phase, const struct rl_rule *rule)
{
	struct rl_sock *sk = calloc(1, sizeof(*sk));

	if (!sk)
		return NULL;
	rl_file_init(&sk->file, &sock_ops, 0);
	pthread_mutex_init(&sk->lock, NULL);
	pthread_mutex_init(&sk->sleepers_lock, NULL);
	INIT_LIST_HEAD(&sk->sleepers);
	INIT_LIST_HEAD(&sk->unused);
	INIT_LIST_HEAD(&sk->items);
	sk->own_fd = -1;
	sk->phase = phase;
	sk->rule = rule;
	return sk;
}

static void sock_release(struct rl_file *f)
{
	struct rl_sock *sk = container_of(f, struct rl_sock, file);
	const struct linger *l = &sk->options.linger;

	rl_claims_free(sk);
	rl_sock_leave_epolls(sk, -1, true);
	if (sk->stream && l->l_onoff && !l->l_linger)
		rl_stream_reset_at_close(sk->stream);
	if (sk->stream)
		rl_stream_close(sk->stream);
	pthread_mutex_destroy(&sk->sleepers_lock);
	pthread_mutex_destroy(&sk->lock);
	free(sk);
}

struct rl_sock *rl_sock_begin_any(int fd)
{
	struct rl_file *f = rl_call_begin(fd);

	if (f && f->ops == &sock_ops)
		return container_of(f, struct rl_sock, file);
	if (f)
		rl_call_end(f);
	return NULL;
}

struct rl_sock *rl_sock_begin(int fd)
{
	struct rl_sock *sk = rl_sock_begin_any(fd);

	if (!sk || (rl_sock_phase_of(sk) != RL_SOCK_NEW && rl_sock_phase_of(sk) != RL_SOCK_PLAIN))
		return sk;
	rl_sock_end(sk);
	return NULL;
}

void rl_sock_end(void *sk)
{
	rl_call_end(&((struct rl_sock *)sk)->file);
}

/* ---- phases ---- */

/* With sk->lock. What the program has posted comes back by events, which are the stream's. */
static void become_plain(struct rl_sock *sk)
{
	if (sk->stream && !rl_stream_has_operations(sk->stream)) {
		rl_stream_close(sk->stream);
		sk->stream = NULL;
	}
	__atomic_store_n(&sk->own_fd, -1, __ATOMIC_RELAXED);
	rl_sock_set_phase(sk, RL_SOCK_PLAIN);
}

/*
 * A wait must end with the first octet of MPA's frame. A socket that turns out to be plain gets its
 * mark back.
 */
void rl_sock_take_low_mark(struct rl_sock *sk, int fd)
{
	int mark = 0, one = 1;
	socklen_t len = sizeof(mark);

	rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &len);
	if (mark > 1 && !rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)))
		sk->options.low_mark = mark;
}

/* Without it. The caller has a reference. */
static int leave_table(struct rl_sock *sk, int fd)
{
	fd = rl_fd_name_of(&sk->file, fd);
	if (fd >= 0)
		rl_sock_return_options(sk, fd, false);
	rl_claims_remove(sk);
	rl_sock_leave_epolls(sk, -1, false);
	if (sk->stream && rl_stream_has_operations(sk->stream))
		__atomic_store_n(&sk->is_kept, true, __ATOMIC_RELEASE);
	else
		rl_fd_forget_all(&sk->file);
	return RL_SOCK_IS_PLAIN;
}

int rl_sock_make_plain(struct rl_sock *sk, int fd)
{
	pthread_mutex_lock(&sk->lock);
	become_plain(sk);
	pthread_mutex_unlock(&sk->lock);
	return leave_table(sk, fd);
}

static void sock_stand_aside(int fd, void *arg)
{
	const struct rl_sock *sk = arg;

	rl_stand_aside(fd, sk->own_fd);
}

/*
 * Its connection was reset, and the kernel has the socket as before connect(). Streams with
 * operations have their own end.
 */
bool rl_sock_disconnect(struct rl_sock *sk, int fd)
{
	u32 phase;
	bool had_stream;

	pthread_mutex_lock(&sk->lock);
	phase = rl_sock_phase_of(sk);
	had_stream = sk->stream;
	if (phase == RL_SOCK_NEW || phase == RL_SOCK_PLAIN || phase == RL_SOCK_DEAD ||
	    (had_stream && rl_stream_has_operations(sk->stream))) {
		pthread_mutex_unlock(&sk->lock);
		return false;
	}
	/* The number may connect again: calls that are under way must not go on with it. */
	sk->why = ECONNRESET;
	__atomic_store_n(&sk->is_open, false, __ATOMIC_RELEASE);
	if (sk->is_bound && !sk->keeps_number)
		rl_fd_each(&sk->file, sock_stand_aside, sk);
	__atomic_store_n(&sk->is_bound, false, __ATOMIC_SEQ_CST);
	rl_sock_leave_epolls(sk, -1, false);
	/* Other threads may be in its calls: it is freed with the socket. */
	if (had_stream)
		rl_stream_reset(sk->stream);
	__atomic_store_n(&sk->own_fd, -1, __ATOMIC_RELAXED);
	rl_sock_set_phase(sk, RL_SOCK_PLAIN);
	pthread_mutex_unlock(&sk->lock);
	leave_table(sk, fd);
	if (had_stream)
		rl_sock_return_options(sk, fd, true);
	return true;
}

/* What a program executes finds @fd closed, and no FPDUs. */
static void bind_to_process(int fd, void *arg)
{
	const struct rl_sock *sk = arg;
	long flags;

	if (rl_sock_kernel_fd(sk, fd) != fd && rl_stand_in(fd))
		return;
	flags = rl_raw(SYS_fcntl, fd, F_GETFD);
	if (flags >= 0 && !(flags & FD_CLOEXEC))
		rl_raw(SYS_fcntl, fd, F_SETFD, flags | FD_CLOEXEC);
}

/* The epolls first: the kernel knows what they have by the number and the socket. */
static void bind_all(struct rl_sock *sk)
{
	const struct rl_sock_watcher *w;

	__atomic_store_n(&sk->is_bound, true, __ATOMIC_SEQ_CST);
	w = rl_sock_watcher_of(sk);
	if (w && !sk->keeps_number && !w->move(sk))
		__atomic_store_n(&sk->keeps_number, true, __ATOMIC_SEQ_CST);
	rl_fd_each(&sk->file, bind_to_process, sk);
}

int rl_sock_kill(struct rl_sock *sk, int why)
{
	sk->why = -why;
	rl_sock_set_phase(sk, RL_SOCK_DEAD);
	if (rl_options()->trace)
		rl_complain("sockets: no stream: %s", strerror(sk->why));
	return why;
}

/* With sk->lock, if others know of it. */
void rl_sock_go_over(struct rl_sock *sk, int fd, const char *why)
{
	if (rl_options()->trace)
		rl_complain("sockets: descriptor %d goes over iWARP, %s", fd, why);
	rl_sock_take_options(sk, fd);
	rl_stream_tell(sk->stream, rl_sock_changed, sk);
	__atomic_store_n(&sk->own_fd, rl_stream_fd(sk->stream), __ATOMIC_RELAXED);
	/* A client that has been asked may be plain yet. */
	if (rl_stream_has_begun(sk->stream))
		bind_all(sk);
	rl_sock_set_phase(sk, RL_SOCK_STREAM);
}

/* With sk->lock. TCP is connected, or never will be. */
static int sock_start(struct rl_sock *sk, int fd, enum rl_stream_role role)
{
	struct rl_stream_options o = {
		.plain_allowed = role == RL_STREAM_RESPONDER,
		.window = sk->rule->window_kib * 1024,
		.frame_ms = sk->rule->wait_ms,
	};
	int rv;

	if (!rl_claims_win(sk))
		return rl_sock_kill(sk, -EIO);
	if (role == RL_STREAM_INITIATOR)
		rl_sock_take_low_mark(sk, fd);
	rv = rl_stream_start(fd, role, &o, &sk->stream);
	if (rv == -ENOTCONN || rv == -EPROTOTYPE) {
		become_plain(sk);
		return RL_SOCK_IS_PLAIN;
	}
	if (rv)
		return rl_sock_kill(sk, rv);
	rl_sock_go_over(sk, fd, role == RL_STREAM_INITIATOR ? "connected" : "accepted");
	return 0;
}

static unsigned int sock_ask_kernel(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	struct timespec now = {};

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, 0) > 0 ? (unsigned short)p.revents : 0;
}

/* With sk->lock. If connect() has failed the kernel reports why. */
static int decide_connecting(struct rl_sock *sk, int fd)
{
	unsigned int ev = sock_ask_kernel(fd, POLLOUT);

	if (!ev)
		return -EAGAIN;
	if (!(ev & (POLLERR | POLLNVAL)))
		return sock_start(sk, fd, RL_STREAM_INITIATOR);
	become_plain(sk);
	return RL_SOCK_IS_PLAIN;
}

/* With sk->lock. A client that says nothing is plain if the program is to speak first. */
static int decide_fresh(struct rl_sock *sk, int fd, bool speaks)
{
	u8 first;
	long n = rl_raw(SYS_recvfrom, fd, &first, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);

	if (n > 0)
		return sock_start(sk, fd, RL_STREAM_RESPONDER);
	if (n == -EAGAIN && (!speaks || sk->rule->only || rl_now_ms() < sk->deadline))
		return -EAGAIN;
	if (n == -EAGAIN && !rl_claims_win(sk))
		return rl_sock_kill(sk, -EIO);
	become_plain(sk);
	return RL_SOCK_IS_PLAIN;
}

/*
 * With sk->lock, without which @fd does not leave it (sock_leave()): a number that was closed under
 * the caller may be another file's by now.
 */
static int decide_locked(struct rl_sock *sk, int fd, bool speaks)
{
	u32 phase = rl_sock_phase_of(sk);

	if (phase == RL_SOCK_CONNECTING || phase == RL_SOCK_FRESH)
		fd = rl_fd_name_of(&sk->file, fd);
	if (fd < 0)
		return -EBADF;
	switch (phase) {
	case RL_SOCK_CONNECTING:
		return decide_connecting(sk, fd);
	case RL_SOCK_FRESH:
		return decide_fresh(sk, fd, speaks);
	case RL_SOCK_STREAM:
		return 0;
	}
	return sk->why ? -sk->why : RL_SOCK_IS_PLAIN;
}

int rl_sock_decide(struct rl_sock *sk, int fd, bool speaks)
{
	int rv;

	if (likely(__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE)))
		return 0;
	pthread_mutex_lock(&sk->lock);
	rv = decide_locked(sk, fd, speaks);
	pthread_mutex_unlock(&sk->lock);
	if (rv == RL_SOCK_IS_PLAIN)
		return leave_table(sk, fd);
	if (rv != -EAGAIN)
		rl_claims_remove(sk);
	return rv;
}

bool rl_sock_give_up(struct rl_sock *sk, int fd)
{
	bool done;

	pthread_mutex_lock(&sk->lock);
	fd = rl_fd_name_of(&sk->file, fd);
	done = rl_sock_phase_of(sk) == RL_SOCK_FRESH && sk->rule->only && fd >= 0;
	if (done) {
		rl_raw(SYS_shutdown, fd, SHUT_RDWR);
		rl_sock_kill(sk, -ENOTCONN);
	}
	pthread_mutex_unlock(&sk->lock);
	if (done)
		rl_claims_remove(sk);
	return done;
}

/* Until MPA's exchange is over a call may free the stream: others wait for the lock. */
bool rl_sock_step_begin(struct rl_sock *sk)
{
	if (likely(__atomic_load_n(&sk->is_open, __ATOMIC_ACQUIRE)))
		return false;
	pthread_mutex_lock(&sk->lock);
	return true;
}

/* With sk->lock. The client's first octets are no Request. */
static int refuse_plain(struct rl_sock *sk, int fd)
{
	become_plain(sk);
	fd = rl_fd_name_of(&sk->file, fd);
	if (fd >= 0)
		rl_raw(SYS_shutdown, fd, SHUT_RDWR);
	return rl_sock_kill(sk, -ECONNRESET);
}

/* With sk->lock. What became of the stream, if it is none. */
static int look_at_phase(struct rl_sock *sk, int fd)
{
	enum rl_stream_phase phase;

	if (!sk->stream || rl_sock_phase_of(sk) == RL_SOCK_PLAIN)
		return sk->why ? -sk->why : RL_SOCK_IS_PLAIN;
	phase = rl_stream_phase(sk->stream);
	if (phase == RL_STREAM_PLAIN && sk->rule->only)
		return refuse_plain(sk, fd);
	if (phase == RL_STREAM_PLAIN) {
		become_plain(sk);
		return RL_SOCK_IS_PLAIN;
	}
	if (!sk->is_bound && rl_stream_has_begun(sk->stream))
		bind_all(sk);
	__atomic_store_n(&sk->frame_by, rl_stream_frame_by(sk->stream), __ATOMIC_RELAXED);
	if (phase != RL_STREAM_STARTING)
		__atomic_store_n(&sk->is_open, true, __ATOMIC_RELEASE);
	return 0;
}

int rl_sock_step_end(struct rl_sock *sk, int fd, bool locked)
{
	int rv;

	if (!locked)
		return 0;
	rv = look_at_phase(sk, fd);
	pthread_mutex_unlock(&sk->lock);
	return rv == RL_SOCK_IS_PLAIN ? leave_table(sk, fd) : rv;
}

/* ---- numbers ---- */

/* No number names it any more. With sk->lock, or it is open. */
static bool takes_back(struct rl_sock *sk)
{
	return sk->stream && rl_fd_name_of(&sk->file, -1) < 0 && rl_stream_take_back(sk->stream);
}

/*
 * The number was the last, and a call of this very thread keeps the socket: it may never come back
 * (siglongjmp()). The peer hears of the end now. With sk->lock, or it is open.
 */
static void end_for_sleeper(struct rl_sock *sk)
{
	if (sk->stream && rl_waiter_is_sleeping(sk) && rl_fd_name_of(&sk->file, -1) < 0)
		rl_stream_shutdown(sk->stream, SHUT_RDWR);
}

/* Without sk->lock @fd does not leave the table. */
static void sock_leave(struct rl_file *f, int fd)
{
	struct rl_sock *sk = container_of(f, struct rl_sock, file);
	bool locked;

	rl_waiter_reap(__builtin_frame_address(0));
	locked = rl_sock_step_begin(sk);
	if (!locked)
		pthread_mutex_lock(&sk->lock);
	if (sk->has_items)
		rl_sock_leave_epolls(sk, fd, true);
	rl_fd_forget(fd);
	end_for_sleeper(sk);
	/*
	 * The kernel wakes no thread, and a thread that waits by this number would wait for another
	 * file. Posted memory and ranges are given back now, although a thread sleeps.
	 */
	if (takes_back(sk) || locked)
		rl_sock_changed(sk, 0);
	pthread_mutex_unlock(&sk->lock);
}

static bool is_bound(const struct rl_sock *sk)
{
	switch (rl_sock_phase_of(sk)) {
	case RL_SOCK_NEW:
	case RL_SOCK_PLAIN:
		return false;
	case RL_SOCK_FRESH:
	case RL_SOCK_STREAM:
		return __atomic_load_n(&sk->is_bound, __ATOMIC_SEQ_CST);
	}
	return true;
}

bool rl_sock_is_bound(int fd)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin_any(fd) : NULL;
	bool is = sk && is_bound(sk);

	if (sk)
		rl_sock_end(sk);
	return is;
}

/*
 * No other program is to find the FPDUs of a stream. The kernel may have made the copy before the
 * stand-in was there.
 */
static void sock_copied(struct rl_file *f, int fd)
{
	struct rl_sock *sk = container_of(f, struct rl_sock, file);

	if (is_bound(sk))
		bind_to_process(fd, sk);
}

/* With the lock: no stand-in takes the number's place meanwhile, and the own one is not closed. */
bool rl_sock_call(int fd, long *rv, long call, long b, long c, long d, long e, long f)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin(fd) : NULL;
	int own;

	if (!sk)
		return false;
	pthread_mutex_lock(&sk->lock);
	own = sk->own_fd >= 0 ? sk->own_fd : rl_fd_name_of(&sk->file, fd);
	if (own >= 0)
		*rv = rl_raw(call, own, b, c, d, e, f);
	pthread_mutex_unlock(&sk->lock);
	rl_sock_end(sk);
	return own >= 0;
}

bool rl_sock_is_connected(int fd)
{
	struct rl_sock *sk = rl_sock_is_candidate(fd) ? rl_sock_begin(fd) : NULL;
	bool is = sk && rl_sock_phase_of(sk) == RL_SOCK_STREAM &&
		__atomic_load_n(&sk->is_bound, __ATOMIC_SEQ_CST);

	if (sk)
		rl_sock_end(sk);
	return is;
}

static const struct rl_file_ops sock_ops = {
	.leave = sock_leave, .copied = sock_copied, .release = sock_release, .is_shared = true,
};
