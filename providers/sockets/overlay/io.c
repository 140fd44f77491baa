// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving and sending as TCP's calls do it: a stream's calls do not wait, and these do, or not,
 * as the program asked. Where TCP waits in the kernel this waits in ppoll(), for what the stream
 * awaits.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "events.h"
#include "flags.h"
#include "io.h"
#include "process/gate.h"
#include "process/guard.h"
#include "process/hook.h"
#include "process/raw.h"
#include "process/thread.h"
#include "signals.h"
#include "sock.h"
#include "waiter.h"

#define NS		1000000000ull
#define PIECE		65536
/* Of Linux's calls; the most that one of them moves, too. */
#define MOST		0x7ffff000u

/* ---- waiting ---- */

struct rl_wait {
	struct rl_sock *sk;
	int fd;
	unsigned int events;
	bool dontwait;
	bool is_timed;			/* by SO_RCVTIMEO or SO_SNDTIMEO: no signal is waited out */
	u64 until;			/* ns; 0: for ever, or not asked yet */
	bool asked;			/* what the program has set */
	u64 cookie;			/* of the socket, if it may become plain yet; else 0 */
	const void *frame;		/* of the call */
	bool is_own;			/* the list of pieces is this library's */
	struct rl_waiter waiter;
	int eventfd;
	volatile bool out;
	bool has_waited;
	struct rl_signals before;	/* has_waited: those that the call need not tell of */
};

static u64 cookie_of(int fd)
{
	u64 cookie = 0;
	socklen_t len = sizeof(cookie);

	rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &len);
	return cookie;
}

/* What the program asked for on its socket, when it is about to wait first. */
static void ask_patience(struct rl_wait *w)
{
	int option = w->events & POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;
	struct timeval t = { 0 };
	socklen_t len = sizeof(t);
	int fd = rl_sock_fd(w->sk, w->fd);

	w->asked = true;
	w->dontwait = rl_sock_is_nonblocking(w->sk, fd);
	if (w->dontwait)
		return;
	if (!__atomic_load_n(&w->sk->is_open, __ATOMIC_ACQUIRE))
		w->cookie = cookie_of(fd);
	if (rl_raw(SYS_getsockopt, fd, SOL_SOCKET, option, &t, &len) || (!t.tv_sec && !t.tv_usec))
		return;
	w->is_timed = true;
	w->until = rl_now_ns() + (u64)t.tv_sec * NS + (u64)t.tv_usec * 1000;
}

static void io_wake(void *arg)
{
	struct rl_wait *w = arg;

	rl_signal_ends(NULL, NULL);
	if (w->out)
		rl_gate_enter();
	rl_waiter_wake(&w->waiter);
}

/* 0 or -errno. A point of cancellation. */
static int io_sleep_in(struct rl_wait *w, struct pollfd *p, const struct timespec *t)
{
	int rv;

	pthread_cleanup_push(io_wake, w);
	rl_signal_ends_poll(p);
	rl_gate_step_out(&w->out);
	/* One that came while the thread was inside has run with the step. */
	if (rl_signals_seen().all != w->before.all)
		rv = -EINTR;
	else
		rv = RL_CALL(ppoll, p, w->eventfd < 0 ? 1 : 2, t, NULL) < 0 ? -errno : 0;
	rl_signal_ends(NULL, NULL);
	pthread_cleanup_pop(0);
	if (w->out)
		rl_gate_enter();
	w->out = false;
	return rv;
}

/* Does the call go on? As TCP's do unless a handler was without SA_RESTART. */
static bool io_goes_on(struct rl_wait *w)
{
	if (w->is_timed || !rl_signals_restart(&w->before))
		return false;
	w->before = rl_signals_seen();
	return true;
}

/* 0: try again. Or -errno: the program is not to wait any longer. */
static int io_wait_once(struct rl_wait *w)
{
	u64 deadline = rl_sock_deadline(w->sk, w->events);
	struct pollfd p[2] = { rl_sock_awaits(w->sk, w->fd, w->events) };
	struct timespec t, *left = rl_time_left(w->until, deadline, &t);
	int rv;

	if (!w->has_waited)
		w->before = rl_signals_seen();
	w->has_waited = true;
	if (w->until && left && rl_now_ns() >= w->until)
		return -EAGAIN;
	w->eventfd = rl_waiter_sleep(w->sk, &w->waiter, w->frame);
	if (w->eventfd == -EAGAIN)
		return 0;
	if (w->eventfd == -EMFILE)
		left = rl_time_moment(left, &t);
	p[1] = (struct pollfd){ .fd = w->eventfd, .events = POLLIN };
	rv = io_sleep_in(w, p, left);
	rl_waiter_wake(&w->waiter);
	if (w->eventfd >= 0 && p[1].revents)
		rl_waiter_clear(w->eventfd);
	return rv == -EINTR && io_goes_on(w) ? 0 : rv;
}

/* The step @w has found nothing to do. 0: try again; or -errno. */
static int wait_for(struct rl_wait *w)
{
	if (!w->dontwait && !w->asked)
		ask_patience(w);
	return w->dontwait ? -EAGAIN : io_wait_once(w);
}

/* ---- parts of vectors ---- */

struct part {
	struct iovec own[8], *v;	/* what is left */
	int n;
	void *heap;
};

/* @iov may not be there, if it is not ours. */
static bool copy_list(struct part *p, const struct iovec *iov, size_t n, bool is_own)
{
	if (is_own) {
		p->own[0] = *iov;
		return true;
	}
	rl_guard_begin();
	return rl_guard_copy(p->v, iov, n * sizeof(*iov));
}

/* A copy of the first @n, of at most MOST octets. */
static int part_begin(struct part *p, const struct iovec *iov, size_t n, bool is_own)
{
	size_t i, left = MOST;

	p->heap = NULL;
	p->v = p->own;
	if (n > IOV_MAX)
		return -EMSGSIZE;
	if (n > sizeof(p->own) / sizeof(p->own[0])) {
		p->v = p->heap = malloc(n * sizeof(*p->v));
		if (!p->v)
			return -ENOMEM;
	}
	if (!copy_list(p, iov, n, is_own)) {
		free(p->heap);
		return -EFAULT;
	}
	for (i = 0; i < n; i++) {
		if (p->v[i].iov_len > SSIZE_MAX) {
			free(p->heap);
			return -EINVAL;
		}
		p->v[i].iov_len = p->v[i].iov_len < left ? p->v[i].iov_len : left;
		left -= p->v[i].iov_len;
	}
	p->n = (int)n;
	return 0;
}

static void part_take(struct part *p, size_t len)
{
	size_t n;

	while (p->n && (len || !p->v->iov_len)) {
		n = len < p->v->iov_len ? len : p->v->iov_len;
		p->v->iov_base = (char *)p->v->iov_base + n;
		p->v->iov_len -= n;
		len -= n;
		if (p->v->iov_len)
			return;
		p->v++;
		p->n--;
	}
}

static size_t io_total(const struct iovec *v, int n)
{
	size_t len = 0;

	while (n--)
		len += v++->iov_len;
	return len;
}

/*
 * Has a step moved less than it was given, and the rest may go later? The end of a half is for
 * good.
 */
static bool is_short(const struct iovec *v, int n, ssize_t rv)
{
	return rv == -EAGAIN || (rv > 0 && (size_t)rv < io_total(v, n));
}

/* ---- receive ---- */

static ssize_t recv_step(struct rl_wait *w, const struct iovec *v, int n, int flags)
{
	ssize_t rv;

	rl_waiter_begin(w->sk, &w->waiter);
	rv = rl_sock_decide(w->sk, w->fd, false);
	if (!rv)
		rv = rl_sock_step(w->sk, w->fd,
				     rl_stream_recv(w->sk->stream, v, n,
						    flags & (MSG_PEEK | MSG_WAITALL)));
	rl_sock_mark_ready(w->sk, is_short(v, n, rv) ? POLLIN : 0);
	return rv;
}

/* MSG_TRUNC: TCP drops the octets, and with MSG_PEEK says how many it would. */
static ssize_t drop_step(struct rl_wait *w, const struct part *p, int flags)
{
	size_t len = io_total(p->v, p->n);
	struct iovec v = { .iov_len = flags & MSG_PEEK ? 1 : len < PIECE ? len : PIECE };
	ssize_t rv;

	v.iov_base = malloc(v.iov_len);
	if (!v.iov_base)
		return -ENOMEM;
	rv = recv_step(w, &v, 1, flags);
	free(v.iov_base);
	if (rv > 0 && flags & MSG_PEEK)
		rv = rl_sock_step(w->sk, w->fd, (ssize_t)rl_stream_inq(w->sk->stream));
	return rv < (ssize_t)len ? rv : (ssize_t)len;
}

static ssize_t take_step(struct rl_wait *w, const struct part *p, int flags)
{
	return flags & MSG_TRUNC ? drop_step(w, p, flags) : recv_step(w, p->v, p->n, flags);
}

/* One step that has moved octets, or the reason why there is none. */
static ssize_t take_some(struct rl_wait *w, const struct part *p, int flags)
{
	ssize_t rv;
	int why;

	do {
		rv = take_step(w, p, flags);
		why = rv == -EAGAIN ? wait_for(w) : 1;
	} while (!why);
	if (why > 0)
		return rv;
	/* A peek that waited for all looks at what there is. */
	rv = flags & MSG_PEEK && flags & MSG_WAITALL ? take_step(w, p, flags & ~MSG_WAITALL) : 0;
	return rv > 0 ? rv : why;
}

/* How many octets a call waits for that may wait. */
static ssize_t least_of(const struct rl_sock *sk, int flags)
{
	int mark = __atomic_load_n(&sk->options.low_mark, __ATOMIC_RELAXED);

	if (flags & MSG_PEEK)
		return 0;
	return flags & MSG_WAITALL ? SSIZE_MAX : mark;
}

static ssize_t recv_parts(struct rl_wait *w, struct part *p, int flags)
{
	ssize_t done = 0, rv;

	part_take(p, 0);
	while (p->n) {
		rv = take_some(w, p, flags);
		if (rv > 0) {
			done += rv;
			part_take(p, (size_t)rv);
		}
		if (rv <= 0 || !p->n || done >= least_of(w->sk, flags))
			return done ? done : rv;
	}
	return done;
}

/* ---- send ---- */

static ssize_t send_step(struct rl_wait *w, const struct part *p, int flags)
{
	ssize_t rv;

	rl_waiter_begin(w->sk, &w->waiter);
	rv = rl_sock_decide(w->sk, w->fd, true);
	if (!rv)
		rv = rl_sock_step(w->sk, w->fd,
				  rl_stream_send(w->sk->stream, p->v, p->n, flags & MSG_MORE));
	rl_sock_mark_ready(w->sk, is_short(p->v, p->n, rv) ? POLLOUT : 0);
	return rv;
}

static ssize_t send_parts(struct rl_wait *w, struct part *p, int flags)
{
	ssize_t done = 0, rv;

	for (part_take(p, 0);;) {
		if (!p->n)
			return done;
		rv = send_step(w, p, flags);
		if (rv == -EAGAIN) {
			rv = wait_for(w);
			if (!rv)
				continue;
		}
		if (rv < 0)
			break;
		done += rv;
		part_take(p, (size_t)rv);
	}
	return done ? done : rv;
}

/* ---- both ---- */

typedef ssize_t parts_fn(struct rl_wait *w, struct part *p, int flags);

static void end_parts(void *p)
{
	free(((struct part *)p)->heap);
}

static ssize_t run_parts(struct rl_wait *w, const struct iovec *iov, size_t n, int flags,
			 parts_fn *op)
{
	struct part p;
	ssize_t rv = part_begin(&p, iov, n, w->is_own);

	if (rv)
		return rv;
	pthread_cleanup_push(end_parts, &p);
	rv = op(w, &p, flags);
	pthread_cleanup_pop(1);
	return rv;
}

/* Returns whether it was for the stream. */
static bool io_run(struct rl_wait *w, const struct iovec *iov, size_t n, int flags, parts_fn *op,
		   ssize_t *rv)
{
	ssize_t got;

	pthread_testcancel();
	w->frame = __builtin_frame_address(0);
	rl_waiter_reap(w->frame);
	w->sk = rl_sock_begin(w->fd);
	if (!w->sk)
		return false;
	pthread_cleanup_push(rl_sock_end, w->sk);
	got = run_parts(w, iov, n, flags, op);
	pthread_cleanup_pop(1);
	/* It has become plain while the call waited: the number is to be its own still. */
	if (got == RL_SOCK_IS_PLAIN && w->cookie && cookie_of(w->fd) != w->cookie)
		got = -EBADF;
	if (got == RL_SOCK_IS_PLAIN)
		return false;
	*rv = rl_hook_result(got);
	return true;
}

static ssize_t io_refuse(struct rl_wait *w, struct part *p, int flags)
{
	int rv = rl_sock_decide(w->sk, w->fd, false);

	return rv == RL_SOCK_IS_PLAIN ? rv : -EINVAL;
}

static bool recv_from(struct rl_wait *w, const struct iovec *iov, size_t n, int flags, ssize_t *rv)
{
	w->events = POLLIN;
	w->dontwait = flags & MSG_DONTWAIT;
	/* Of TCP's own errors the kernel has a queue. */
	if (flags & MSG_ERRQUEUE)
		return false;
	return io_run(w, iov, n, flags, flags & MSG_OOB ? io_refuse : recv_parts, rv);
}

bool rl_sock_recv(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv)
{
	struct rl_wait w = { .fd = fd };

	return recv_from(&w, iov, n, flags, rv);
}

bool rl_sock_recv_one(int fd, void *buf, size_t len, int flags, ssize_t *rv)
{
	const struct iovec v = { .iov_base = buf, .iov_len = len };
	struct rl_wait w = { .fd = fd, .is_own = true };

	return recv_from(&w, &v, 1, flags, rv);
}

static bool send_to(struct rl_wait *w, const struct iovec *iov, size_t n, int flags, ssize_t *rv)
{
	w->events = POLLOUT;
	w->dontwait = flags & MSG_DONTWAIT;
	if (!io_run(w, iov, n, flags, flags & MSG_OOB ? io_refuse : send_parts, rv))
		return false;
	/* Outside the gate: the handler is the program's, which may fork, or not come back. */
	if (*rv < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL)) {
		raise(SIGPIPE);
		errno = EPIPE;
	}
	return true;
}

bool rl_sock_send(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv)
{
	struct rl_wait w = { .fd = fd };

	return send_to(&w, iov, n, flags, rv);
}

bool rl_sock_send_one(int fd, const void *buf, size_t len, int flags, ssize_t *rv)
{
	const struct iovec v = { .iov_base = (void *)buf, .iov_len = len };
	struct rl_wait w = { .fd = fd, .is_own = true };

	return send_to(&w, &v, 1, flags, rv);
}

/* ---- sendfile ---- */

/* One piece: what was sent of it, or -1 with errno; *@is_plain: it is the kernel's to send. */
static ssize_t send_piece(int fd, int in, off_t at, char *buf, size_t len, bool *is_plain)
{
	long got = rl_raw(SYS_pread64, in, buf, len, at);
	ssize_t rv = 0;

	if (got < 0)
		return rl_hook_result(got == -ESPIPE ? -EINVAL : got);
	*is_plain = got && !rl_sock_send_one(fd, buf, (size_t)got, 0, &rv);
	return rv;
}

/* The file's own position moves if the program gives none. */
bool rl_sock_sendfile(int fd, int in, off_t *at, size_t len, ssize_t *rv)
{
	off_t from = at ? *at : rl_raw(SYS_lseek, in, 0, SEEK_CUR);
	char *buf = malloc(PIECE);
	size_t done = 0, piece;
	ssize_t n = 0;
	bool is_plain = false;

	if (!buf || from < 0) {
		free(buf);
		*rv = rl_hook_result(buf ? -EINVAL : -ENOMEM);
		return true;
	}
	len = len < MOST ? len : MOST;
	while (done < len) {
		piece = len - done < PIECE ? len - done : PIECE;
		n = send_piece(fd, in, from + (off_t)done, buf, piece, &is_plain);
		if (n <= 0)
			break;
		done += (size_t)n;
		if ((size_t)n < piece)
			break;
	}
	free(buf);
	if (at)
		*at = from + (off_t)done;
	else if (done)
		rl_raw(SYS_lseek, in, from + (off_t)done, SEEK_SET);
	*rv = done ? (ssize_t)done : n;
	return !is_plain || done;
}

/* ---- what else is asked of a socket ---- */

/*
 * It waits for the client as a first send would, so that what is shut down is what the client
 * speaks; but not for one that nothing but iWARP may come from, and that is silent.
 */
static int shut(struct rl_wait *w, int how)
{
	int rv;

	do {
		rl_waiter_begin(w->sk, &w->waiter);
		rv = rl_sock_decide(w->sk, w->fd, true);
		if (rv == -EAGAIN && rl_sock_give_up(w->sk, w->fd))
			return 0;
		if (!rv)
			rv = (int)rl_sock_step(w->sk, w->fd,
						  rl_stream_shutdown(w->sk->stream, how));
		rl_sock_mark_ready(w->sk, 0);
		if (rv == -EAGAIN)
			rv = io_wait_once(w) ?: -EAGAIN;
		/* It does not end by signals: what has come is seen. */
		if (rv == -EINTR)
			w->before = rl_signals_seen();
	} while (rv == -EAGAIN || rv == -EINTR);
	return rv;
}

bool rl_sock_shutdown(int fd, int how, int *rv)
{
	struct rl_wait w = { .fd = fd, .events = POLLOUT, .frame = __builtin_frame_address(0) };
	int got;

	rl_waiter_reap(w.frame);
	w.sk = rl_sock_begin(fd);
	if (!w.sk)
		return false;
	pthread_cleanup_push(rl_sock_end, w.sk);
	got = rl_sock_phase_of(w.sk) == RL_SOCK_CONNECTING ? RL_SOCK_IS_PLAIN : shut(&w, how);
	pthread_cleanup_pop(1);
	if (got == RL_SOCK_IS_PLAIN)
		return false;
	*rv = (int)rl_hook_result(got);
	return true;
}

bool rl_sock_inq(int fd, int *n)
{
	struct rl_sock *sk = rl_sock_begin(fd);
	unsigned int awaits;
	ssize_t got;

	if (!sk)
		return false;
	got = rl_sock_poll(sk, fd, POLLIN, &awaits);
	if (got != RL_SOCK_IS_PLAIN)
		got = sk->stream ? rl_sock_step(sk, fd, rl_stream_inq(sk->stream)) : 0;
	rl_sock_end(sk);
	if (got == RL_SOCK_IS_PLAIN)
		return false;
	*n = got < INT_MAX ? (int)got : INT_MAX;
	return true;
}

/* TCP's own error, if it never came to a stream. */
bool rl_sock_error(int fd, int *error)
{
	struct rl_sock *sk = rl_sock_begin(fd);
	ssize_t got = -1;

	if (!sk)
		return false;
	/* TCP's own errors become the stream's. */
	if (rl_sock_phase_of(sk) == RL_SOCK_STREAM)
		got = rl_sock_step(sk, fd, rl_stream_error(sk->stream));
	rl_sock_end(sk);
	*error = (int)got;
	return got >= 0;
}

bool rl_sock_peer(int fd, struct sockaddr_in6 *peer)
{
	struct rl_sock *sk = rl_sock_begin(fd);
	bool is_known = false;

	if (!sk)
		return false;
	if (rl_sock_phase_of(sk) == RL_SOCK_STREAM)
		is_known = rl_sock_step(sk, fd, rl_stream_half_peer(sk->stream, peer)) == 1;
	rl_sock_end(sk);
	return is_known;
}
