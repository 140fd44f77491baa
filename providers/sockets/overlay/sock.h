/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets of programs that go over iWARP: `weft-run --sockets`. What a hook finds in the table of
 * descriptors is one of these, and stream.h has its octets; every other socket is the kernel's.
 *
 *	NEW		of TCP, and not connected: the kernel's, until connect() asks the rules
 *	CONNECTING	connect() goes on; then it is the initiator's stream
 *	FRESH		accepted, and nothing of it used. The first use looks at what the client says
 *	STREAM		FPDUs go over it
 *	PLAIN		it has left the table
 *	DEAD		another process uses it, or there was no room for a stream
 *
 * Where rl_sock_* returns whether the call was for it, false means: the kernel's.
 *
 * Inside the gate but for waits, unless said otherwise. Locking: sk->lock, then the streams', then that of
 * sleepers, or of epolls.
 */
#ifndef RL_SOCK_H
#define RL_SOCK_H

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "process/file.h"
#include "sockets/rules.h"
#include "sockets/stream/stream.h"

struct rl_item;
struct rl_claims;

enum rl_sock_phase { RL_SOCK_NEW, RL_SOCK_CONNECTING, RL_SOCK_FRESH, RL_SOCK_STREAM, RL_SOCK_PLAIN,
		     RL_SOCK_DEAD };

struct rl_sock {
	struct rl_file file;
	pthread_mutex_t lock;		/* of changes of the phase, and of all calls while it may be plain */
	u32 phase;			/* atomic; of rl_sock_phase */
	bool is_open;			/* atomic: it stays a stream */
	bool is_kept;			/* atomic: plain, and in the table for the events of what was posted alone */
	bool is_bound;			/* atomic: no other program could go on with it */
	bool told;			/* poll() has said that connect() is through; atomic */
	int why;			/* DEAD: the errno */
	const struct rl_rule *rule;
	u64 deadline;			/* FRESH: ms; a client that is silent until then is plain */
	struct rl_stream *stream;
	struct rl_sock *next, **prev;	/* FRESH: of all */
	struct rl_claims *claims;	/* FRESH, and others may have it: one of them wins this ... */
	u32 *claim;			/* ... atomic, shared by processes */
	int own_fd;			/* atomic: the stream's number of it, hidden; -1: there is none yet */
	bool strange;			/* atomic: it came from another program, which may have it still; or went to one */
	u64 no_wait;			/* atomic: O_NONBLOCK was set in this state of flags; 0: it was not */

	/* Threads that sleep until something changes: overlay/turn.c. */
	u32 turns, n_sleepers;		/* atomic: changes, and who waits for one */
	struct rl_sleeper *sleepers;	/* under bells */
	pthread_mutex_t bells;		/* a leaf */

	int low_mark;			/* SO_RCVLOWAT that a plain socket gets back; 0: as it is */

	struct rl_item *items;		/* of epolls; under overlay/epoll.c's lock */
	u32 has_items;			/* atomic */
};

static inline u32 rl_sock_phase_of(const struct rl_sock *sk)
{
	return __atomic_load_n(&sk->phase, __ATOMIC_ACQUIRE);
}

/* Are there rules? Constant once the library is loaded. */
extern bool rl_sockets_on;

/* Might @fd be for the functions below? Any context. */
static inline bool rl_sock_may(int fd)
{
	return likely(rl_sockets_on) && rl_fd_is_used(fd);
}

/* What rl_sock_decide() and others say of one that is the kernel's now. */
#define RL_SOCK_IS_PLAIN	(-0x10000)

/*
 * A call on @fd, as rl_call_begin(): the socket if it has left RL_SOCK_NEW, and is not plain; else
 * NULL. rl_sock_end() may be a thread's cleanup.
 */
struct rl_sock *rl_sock_begin(int fd);
/* Also those that are new. */
struct rl_sock *rl_sock_begin_any(int fd);
void rl_sock_end(void *sk);

/*
 * Is it a stream, by which the caller may send (@speaks) or receive? 0; -EAGAIN: not yet;
 * RL_SOCK_IS_PLAIN, and it has left the table; or another -errno.
 */
int rl_sock_decide(struct rl_sock *sk, int fd, bool speaks);
/* The kernel may hear of it from now on: returns RL_SOCK_IS_PLAIN. */
int rl_sock_make_plain(struct rl_sock *sk, int fd);

/* Nobody but a client of iWARP's would have been welcome, and none has come: it is shut down. */
bool rl_sock_give_up(struct rl_sock *sk, int fd);

/* A step of a stream, under the lock that it needs. @rv of it; RL_SOCK_IS_PLAIN as above. */
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

/* What poll() says of it, and in *@awaits what to ask of the descriptor. Or RL_SOCK_IS_PLAIN. */
int rl_sock_poll(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/* The same without a system call, if the caller asks the kernel for *@awaits next. */
int rl_sock_glance(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/*
 * The same, but of one that is ready, and not for what the peer says, which the caller wants to know, too, TCP is asked:
 * nobody waits for it.
 */
int rl_sock_look(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/* Until when, in ms, a wait for @events need last at most, for time decides; 0: it does not. */
u64 rl_sock_deadline(const struct rl_sock *sk, unsigned int events);

/*
 * What to poll so that it may come to be one of @events, behind a look that found none. Of a stream that is a
 * descriptor of its own: another thread may close @fd, and another file get its number.
 */
struct pollfd rl_sock_awaits(struct rl_sock *sk, int fd, unsigned int events);
/* Where to ask for what the program has set on @fd; -1: all its numbers are closed. */
int rl_sock_fd(const struct rl_sock *sk, int fd);

/* ---- O_NONBLOCK: overlay/flags.c ---- */

/* Is no call to wait? By a system call only if the flag was not set, or may have changed. */
bool rl_sock_is_nonblocking(struct rl_sock *sk, int fd);
/* Behind a call that may have changed @fd's. */
void rl_sock_flags_changed(int fd);
void rl_sock_flags_begin(void);

/* ---- threads of one socket: overlay/turn.c ---- */

/* One of them may take from TCP what another waits for: who waits, waits for a bell, too. */
struct rl_turn {
	u32 before;
	struct rl_sleeper *sleeper;	/* NULL: awake */
};
/* Before the caller looks. */
void rl_turn_begin(const struct rl_sock *sk, struct rl_turn *t);
/*
 * The call of the stack's @frame sleeps from now on, with a reference: what to poll beside the descriptor, or
 * -1: there is no other thread; -EMFILE: there is no bell to be had, for another call of this thread has it or
 * there is no descriptor, and the caller looks again in a moment;
 * -EAGAIN: it has changed since.
 */
int rl_turn_sleep(struct rl_sock *sk, struct rl_turn *t, const void *frame);
/* Behind a sleep. */
void rl_turn_wake(struct rl_turn *t);
/* Whoever has woken from all his sleeps: the bell is silent. */
void rl_turn_silence(int bell);
/* A call begins, whose frame is @frame: those of the thread that were left by siglongjmp() are forgotten. */
void rl_turn_reap(const void *frame);
/* Does a call of this thread, which is another, sleep? A handler makes this one, or has left that one. */
bool rl_turn_is_sleeping(const struct rl_sock *sk);
void rl_turns_in_child(void);

/* There is news of the socket @sk: POLL bits, as of rl_stream_tell(). Any lock but leaves. */
void rl_sock_changed(void *sk, unsigned int events);

/* ---- calls; outside the gate ---- */

void rl_sock_made(int fd, int domain, int type, int protocol);
/* connect() has been asked for, and returned @rv with errno: returns what the program gets. */
const struct rl_rule *rl_sock_rule_to(int fd, const struct sockaddr *a, socklen_t len);
int rl_sock_connected(int fd, const struct rl_rule *rule, int rv);
void rl_sock_accepted(int fd, const struct sockaddr_storage *peer);
/* It comes from another process, or from before an exec. */
void rl_sock_found(int fd);
/* Another process is to get it: false, and it may not. */
bool rl_sock_goes_out(int fd);
void rl_sock_listens(int fd);
/* Is it one whose octets no other process may have? */
bool rl_sock_is_bound(int fd);

/* @iov is the program's, and may not be there. */
bool rl_sock_recv(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv);
bool rl_sock_send(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv);
/* The same of one piece. */
bool rl_sock_recv_one(int fd, void *buf, size_t len, int flags, ssize_t *rv);
bool rl_sock_send_one(int fd, const void *buf, size_t len, int flags, ssize_t *rv);
bool rl_sock_sendfile(int fd, int in, off_t *at, size_t len, ssize_t *rv);
bool rl_sock_shutdown(int fd, int how, int *rv);
bool rl_sock_inq(int fd, int *n);
bool rl_sock_error(int fd, int *error);
/* weft-socket.h's: 0 or -errno. */
int rl_sock_set_mode(int fd, int option, const void *value, socklen_t len);
int rl_sock_get_mode(int fd, int option, void *value, socklen_t *len);
/* @s is the program's own wish: for a socket of the table, under sk->lock; for another. */
int rl_sock_take(struct rl_sock *sk, int fd, struct rl_stream *s);
int rl_sock_adopt(int fd, struct rl_stream *s);
/* Is it an option that a stream cannot have? */
bool rl_sock_refuses(int fd, int level, int option);

/* ---- waiting: overlay/poll.c and overlay/epoll.c; outside the gate ---- */

/* Is one of them ours? */
bool rl_sock_in_list(const struct pollfd *p, nfds_t n);
/* Is one of them ours? And *@n is at most what the program can mean. */
bool rl_sock_in_sets(int *n, const fd_set *in, const fd_set *out, const fd_set *except);
int rl_sock_wait_list(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask);
/* *@left: of @t. */
int rl_sock_wait_sets(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *t,
		      const sigset_t *mask, struct timespec *left);

bool rl_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev, int *rv);
bool rl_epoll_wait(int epfd, struct epoll_event *ev, int max, const struct timespec *t,
		   const sigset_t *mask, int *rv);
/*
 * A wait at @fd, of no socket of ours yet, is the kernel's. Another thread may give it its first meanwhile: so whether it
 * is ours is asked behind the beginning, too, and then the wait is of the above.
 */
void rl_epoll_kernel_begin(int fd);
void rl_epoll_kernel_end(int fd);
/* Events of such a wait whose epoll became ours: the program's are left, *@rv of them, or -1 with errno. */
bool rl_epoll_translate(int fd, struct epoll_event *ev, int n, int *rv);
/* For poll(): has the epoll @fd one of ours that is ready? */
bool rl_epoll_has_ready(int fd);

/*
 * Something may be ready, or to be asked of the kernel, that was not; @edges are to be told anew, for they
 * were taken, or have come. Any lock but its own.
 */
void rl_epoll_stir(struct rl_sock *sk, u32 edges);
/* The kernel hears of all that was taken out. */
void rl_epoll_before_fork(void);
/* @fd of @sk is closed, or (-1) all are the kernel's: it is registered as the program asked. */
void rl_epoll_leave(struct rl_sock *sk, int fd, bool closes);

/* Nanoseconds until @until_ns; -1: for ever. */
struct timespec *rl_time_left(u64 until_ns, u64 deadline_ms, struct timespec *t);
/* Nobody rings: @left, in @t, or a moment. */
struct timespec *rl_time_moment(struct timespec *left, struct timespec *t);

#endif
