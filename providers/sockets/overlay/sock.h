/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A socket of a program that goes over iWARP: `weft-run --sockets`. It is a file of the table of
 * descriptors; stream.h has its octets. All other sockets are the kernel's.
 *
 *	NEW		of TCP, and not connected: the kernel's, until connect() asks the rules
 *	CONNECTING	connect() goes on; then it is the initiator's stream
 *	FRESH		accepted, and not used yet: its first use looks at what the client sends
 *	STREAM		FPDUs go over it
 *	PLAIN		it has left the table
 *	DEAD		another process uses it, or there was no room for a stream
 *
 * The numbers of a stream that has begun name a stand-in (stand_in.h): the connection's socket has
 * a hidden number, sk->own_fd, which the kernel is asked by.
 *
 * Where rl_sock_* returns whether the call was for the socket, false means: the kernel does it.
 *
 * Inside the gate but for waits, unless said otherwise. Locking: sk->lock, then the streams', then
 * sleepers' or epolls'.
 */
#ifndef RL_SOCK_H
#define RL_SOCK_H

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "process/file.h"
#include "process/list.h"
#include "sockets/rules.h"
#include "sockets/stream/stream.h"

struct rl_claims;

enum rl_sock_phase { RL_SOCK_NEW, RL_SOCK_CONNECTING, RL_SOCK_FRESH, RL_SOCK_STREAM, RL_SOCK_PLAIN,
		     RL_SOCK_DEAD };

struct rl_sock_options {
	int nodelay, cork;
	struct linger linger;
	int low_mark;			/* SO_RCVLOWAT; 0: 1, and the kernel has it */
};

struct rl_sock {
	struct rl_file file;
	pthread_mutex_t lock;		/* the phase, and all calls while it may be plain */
	u32 phase;			/* atomic; of rl_sock_phase */
	bool is_open;			/* atomic: it stays a stream, until a connect() to none */
	bool is_kept;			/* atomic: plain, but has events of what was posted */
	bool is_bound;			/* atomic: no other program could go on with it */
	bool told;			/* atomic: poll() has reported that connect() is through */
	int why;			/* DEAD, or PLAIN by a connect() to none: the errno */
	const struct rl_rule *rule;
	u64 deadline;			/* FRESH: ms; a client that is silent until then is plain */
	struct rl_stream *stream;	/* is_open was set: until the socket is freed */
	int own_fd;			/* atomic: the stream's hidden number of it; -1: none yet */
	bool keeps_number;		/* atomic: no stand-in: epolls have it by the number */
	bool strange;			/* atomic: a program that may not count flags has it */
	u64 no_wait;			/* atomic: O_NONBLOCK was set at this count; 0: not */
	struct rl_sock_options options;	/* what the program has set: options.h */
	u64 frame_by;			/* atomic: ms; part of a Request is a plain client's then */

	/* claims.c: FRESH */
	struct list_head unused;	/* the list's lock */
	struct rl_claims *claims;	/* of claim; NULL: no other process can have it */
	u32 *claim;			/* atomic, shared by processes: 1: one uses it */

	/* waiter.c */
	u32 changes, n_sleepers;	/* atomic */
	pthread_mutex_t sleepers_lock;	/* a leaf */
	struct list_head sleepers;

	const struct rl_sock_watcher *watcher; /* atomic; NULL: it was in no epoll yet */

	/* the watcher's lock */
	struct list_head items;
	u32 has_items;			/* atomic */
};

/* The epolls that a socket is in (epoll.c). Inside the gate. Any lock but its own. */
struct rl_sock_watcher {
	/* @sk may be ready, or the kernel is to be asked; @edges are to be reported again. */
	void (*mark_ready)(struct rl_sock *sk, u32 edges);
	/*
	 * @fd of @sk is closed (@closes), or is the kernel's and registered as the program asked.
	 * -1: all its numbers.
	 */
	void (*leave)(struct rl_sock *sk, int fd, bool closes);
	/* @sk is bound: its epolls get it by sk->own_fd. False: one cannot, and none does. */
	bool (*move)(struct rl_sock *sk);
};

static inline void rl_sock_mark_ready(struct rl_sock *sk, u32 edges)
{
	if (__atomic_load_n(&sk->has_items, __ATOMIC_ACQUIRE))
		sk->watcher->mark_ready(sk, edges);
}

/*
 * Wake @w when the phase of @sk changes. Read the phase after this call, not before: a change
 * made earlier is then seen, and a later one wakes @w.
 */
static inline void rl_sock_watch(struct rl_sock *sk, const struct rl_sock_watcher *w)
{
	__atomic_store_n(&sk->watcher, w, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* After a change of the phase, see rl_sock_watch(). */
static inline const struct rl_sock_watcher *rl_sock_watcher_of(const struct rl_sock *sk)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&sk->watcher, __ATOMIC_ACQUIRE);
}

static inline void rl_sock_leave_epolls(struct rl_sock *sk, int fd, bool closes)
{
	const struct rl_sock_watcher *w = rl_sock_watcher_of(sk);

	if (w)
		w->leave(sk, fd, closes);
}

/* The number by which an epoll of the kernel has @sk, which the program calls @fd. */
static inline int rl_sock_kernel_fd(const struct rl_sock *sk, int fd)
{
	return __atomic_load_n(&sk->is_bound, __ATOMIC_SEQ_CST) &&
		!__atomic_load_n(&sk->keeps_number, __ATOMIC_SEQ_CST) ?
		__atomic_load_n(&sk->own_fd, __ATOMIC_RELAXED) : fd;
}

static inline u32 rl_sock_phase_of(const struct rl_sock *sk)
{
	return __atomic_load_n(&sk->phase, __ATOMIC_ACQUIRE);
}

/* Are there rules? Constant once the library is loaded. */
extern bool rl_sockets_on;

/* May @fd be in the table? Two loads. Any context. */
static inline bool rl_sock_is_candidate(int fd)
{
	return likely(rl_sockets_on) && rl_fd_is_used(fd);
}

/* What rl_sock_decide() and others return for a socket that is the kernel's now. */
#define RL_SOCK_IS_PLAIN	(-0x10000)

/*
 * A call on @fd, as rl_call_begin(): the socket, unless it is new or plain; else NULL.
 * rl_sock_end() may be a thread's cleanup.
 */
struct rl_sock *rl_sock_begin(int fd);
/* Also those that are new or plain. */
struct rl_sock *rl_sock_begin_any(int fd);
void rl_sock_end(void *sk);

/*
 * Is it a stream, by which the caller may send (@speaks) or receive? 0; -EAGAIN: not yet;
 * RL_SOCK_IS_PLAIN, and it has left the table; or another -errno.
 */
int rl_sock_decide(struct rl_sock *sk, int fd, bool speaks);
/* It leaves the table: returns RL_SOCK_IS_PLAIN. */
int rl_sock_make_plain(struct rl_sock *sk, int fd);
/*
 * connect() to no address follows: a stream is reset, and @sk leaves the table. False: the kernel
 * does it alone.
 */
bool rl_sock_disconnect(struct rl_sock *sk, int fd);
/* It was accepted, only iWARP clients are welcome, and none has sent: shuts it down. */
bool rl_sock_give_up(struct rl_sock *sk, int fd);

/* A step of a stream, under the lock that it needs: its result, or RL_SOCK_IS_PLAIN as above. */
#define rl_sock_step(sk, fd, call) ({						\
	bool locked_ = rl_sock_step_begin(sk);					\
	ssize_t rv_ = (sk)->stream ? (ssize_t)(call) : -EPROTO;			\
	rl_sock_step_end(sk, fd, locked_) ?: rv_; })
bool rl_sock_step_begin(struct rl_sock *sk);
int rl_sock_step_end(struct rl_sock *sk, int fd, bool locked);
static inline bool rl_sock_is_kept(const struct rl_sock *sk)
{
	return __atomic_load_n(&sk->is_kept, __ATOMIC_ACQUIRE);
}

/*
 * The system call @call of @fd, which must not block, on the connection's own socket. False: it is
 * none of ours, and nothing was done; else the result or -errno is in *@rv. Outside the gate.
 */
bool rl_sock_call(int fd, long *rv, long call, long b, long c, long d, long e, long f);
/* Is it a stream that has begun? Then it is connected, whatever became of TCP. Outside the gate. */
bool rl_sock_is_connected(int fd);
/* Is it one whose octets no other process may have? Outside the gate. */
bool rl_sock_is_bound(int fd);

/* ---- for connect.c ---- */

struct rl_sock *rl_sock_new(enum rl_sock_phase phase, const struct rl_rule *rule);
void rl_sock_set_phase(struct rl_sock *sk, enum rl_sock_phase phase);
/* SO_RCVLOWAT is 1 until it is plain: the first octet of MPA's frame is news. */
void rl_sock_take_low_mark(struct rl_sock *sk, int fd);
/* With sk->lock, if other threads know it. sk->stream is its stream from now on. */
void rl_sock_go_over(struct rl_sock *sk, int fd, const char *why);
/* With sk->lock. Returns @why, an -errno, which all calls return from now on. */
int rl_sock_kill(struct rl_sock *sk, int why);

#endif
