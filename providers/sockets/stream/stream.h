/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A TCP socket that carries an RDMA connection, and over that a stream of octets: what send, recv,
 * poll and shutdown mean for TCP they mean here. docs/sockets.md has the wire.
 *
 * A stream has a hidden descriptor of the socket (rl_stream_fd()); the caller's stays the caller's.
 * The socket's octets are FPDUs, so only these functions may read it, write it or shut it down.
 *
 * No call blocks, whatever O_NONBLOCK says: a caller that waits polls the descriptor for
 * rl_stream_awaits(), and asks again. Nothing is done between calls: MPA's exchange goes on as they
 * come. Once a stream is closed the progress thread brings it to its end.
 *
 * Any thread; each call locks the stream, and enters the gate (process/gate.h). A stream belongs to
 * the process that has made the first call but rl_stream_start() for an RL_STREAM_RESPONDER of
 * octets: the child of a fork() gets -EIO of all others, and its rl_stream_close() lets the peer
 * know nothing.
 */
#ifndef RL_STREAM_H
#define RL_STREAM_H

#include <netinet/in.h>
#include <poll.h>
#include <sys/uio.h>

#include "process/port.h"

struct rl_stream;
struct rl_stream_operations;

enum rl_stream_role {
	RL_STREAM_INITIATOR,		/* sends MPA's Request */
	RL_STREAM_RESPONDER,		/* awaits it */
	/*
	 * Both ends choose this: the end with the lower address and port is the initiator. Not
	 * through NAT, where each end sees other addresses.
	 */
	RL_STREAM_SYMMETRIC,
};

struct rl_stream_options {
	/*
	 * Responder: a peer whose first octets are no Request is left alone, and the phase is
	 * RL_STREAM_PLAIN. Else octets before the Request are the end of the peer's plain stream,
	 * and are received first.
	 */
	bool plain_allowed;
	u32 window;			/* octets the peer may have in flight; 0: default */
	/*
	 * Posted operations (ops.h) in place of octets, as both ends have to want. What came before
	 * them is received first, and then rl_stream_recv(), as send and shutdown, says
	 * -EOPNOTSUPP.
	 */
	const struct rl_stream_operations *operations; /* NULL: octets */
	u32 depth;			/* of theirs; 0: the default */
	u32 frame_ms;			/* plain_allowed: how long a Request's key may be partial */
};

enum rl_stream_phase {
	RL_STREAM_STARTING,
	RL_STREAM_OPEN,			/* or over: as recv and send tell */
	/*
	 * The peer has begun without iWARP, and nothing of that was read: rl_stream_close() leaves
	 * the descriptor a plain TCP socket with all its octets. The other calls say -EPROTO.
	 */
	RL_STREAM_PLAIN,
	/* The exchange has failed: TCP is reset, and rl_stream_error() says why. */
	RL_STREAM_FAILED,
};

/*
 * The connected TCP socket @fd becomes a stream: 0; -ENOTCONN, -EPROTOTYPE, -EMFILE, -ENOMEM, and
 * it stays what it is. The stream has a descriptor of its own: @fd may be closed before it is.
 */
int rl_stream_start(int fd, enum rl_stream_role role, const struct rl_stream_options *o,
		    struct rl_stream **out);

enum rl_stream_phase rl_stream_phase(struct rl_stream *s);
/*
 * Has an octet been read, or sent, or may one be? Before that another program could go on with the
 * socket.
 */
bool rl_stream_has_begun(struct rl_stream *s);

/*
 * Whoever moves its octets, the progress thread, too: @changed hears of what rl_stream_poll() would
 * say now and would not have before, and of octets (POLLIN). It is called with the stream's locks,
 * and may take leaves alone. Not behind rl_stream_close().
 */
void rl_stream_tell(struct rl_stream *s, void (*changed)(void *arg, unsigned int events),
		    void *arg);

/*
 * The hidden descriptor of its socket, the same until rl_stream_close() or rl_stream_reset(), also
 * when the connection has ended: to poll, and for the kernel's names and options. -1: closed.
 */
int rl_stream_fd(struct rl_stream *s);

/*
 * @flags: MSG_PEEK, and with it MSG_WAITALL: -EAGAIN if not all are there, and more may come.
 * Octets; 0: the peer has ended its half, or ours was shut down; or -EAGAIN, -ECONNRESET and other
 * errors of TCP's calls. -EFAULT: nothing is lost with small buffers; a buffer into which octets
 * were to go straight ends the connection.
 */
ssize_t rl_stream_recv(struct rl_stream *s, const struct iovec *iov, int n, int flags);

/*
 * @flags: MSG_MORE, a hint. Octets that are on their way, and none of @iov is read any more;
 * -EAGAIN without credit, while TCP is full, and before the exchange is over; -EPIPE, and no
 * signal.
 */
ssize_t rl_stream_send(struct rl_stream *s, const struct iovec *iov, int n, int flags);

/* SHUT_RD, SHUT_WR, SHUT_RDWR: 0, or -ENOTCONN. */
int rl_stream_shutdown(struct rl_stream *s, int how);

/* The last descriptor is closed, or about to be. What was sent goes on to the peer. @s is gone. */
void rl_stream_close(struct rl_stream *s);

/*
 * The last name of @s is closed, and calls may be under way that wait: what is posted, and ranges,
 * are the program's again, and from now on the calls say -ENOTCONN. False: it carries octets, which
 * wait for those calls.
 */
bool rl_stream_take_back(struct rl_stream *s);

/* Moves octets. POLLIN, POLLOUT, POLLRDHUP, POLLHUP, POLLERR, as poll() would say of TCP. */
unsigned int rl_stream_poll(struct rl_stream *s);
/* Was it to have operations in place of octets? No lock. */
bool rl_stream_has_operations(const struct rl_stream *s);

/*
 * The same, and TCP is not asked: of one that is open, whose descriptor the caller polls for more.
 */
unsigned int rl_stream_has(struct rl_stream *s);
/* Either, and in *@awaits what rl_stream_awaits() would say then. */
unsigned int rl_stream_look(struct rl_stream *s, bool moves, unsigned int *awaits);

/*
 * POLLIN and POLLOUT to wait for on the descriptor, level-triggered, so that rl_stream_poll() may
 * come to say one of @events; POLLERR: TCP's own end alone; 0: nothing that the kernel reports.
 * Only after an rl_stream_poll() or rl_stream_has() that did not, or -EAGAIN.
 */
unsigned int rl_stream_awaits(struct rl_stream *s, unsigned int events);

/* ms: rl_stream_poll() then finds that the peer is plain, if it is silent until then; 0: none. */
u64 rl_stream_frame_by(struct rl_stream *s);
/* SO_RCVLOWAT: rl_stream_poll() says POLLIN for so many octets, or an end. */
void rl_stream_set_low_mark(struct rl_stream *s, u32 octets);

/* rl_stream_close() resets the connection, and loses what TCP has. */
void rl_stream_reset_at_close(struct rl_stream *s);
/* Now, and calls may be under way, which fail. rl_stream_close() is still to come. */
void rl_stream_reset(struct rl_stream *s);
/*
 * A reference beyond rl_stream_close(), and its end. Meanwhile the stream keeps its descriptor
 * until the peer's TCP has everything.
 */
void rl_stream_await_end(struct rl_stream *s);
void rl_stream_let_go(struct rl_stream *s);
/* With such a reference: it is closed, and the peer's TCP has not everything yet. */
bool rl_stream_lingers(struct rl_stream *s);
/* The peer has closed, and the program's half is open: who it was. TCP has forgotten. */
bool rl_stream_half_peer(struct rl_stream *s, struct sockaddr_in6 *peer);

/* Octets that rl_stream_recv() has now: FIONREAD. */
size_t rl_stream_inq(struct rl_stream *s);
/* SO_ERROR: 0 or a positive errno, and forgets it. */
int rl_stream_error(struct rl_stream *s);

/* A process ends: what was sent goes to the peer's TCP, for WEFT_CLOSE_TIMEOUT_MS at most. */
void rl_stream_exit(void);
/*
 * The same, where the caller may be a handler that has interrupted anything: the progress thread
 * does it. Not @ends: exec() follows, which may fail, and nothing is closed here.
 */
void rl_stream_leave(bool ends);

#endif
