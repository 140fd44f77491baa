/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stream (stream.h) and its connection: how the socket becomes one (stream/start.c), and how
 * octets become Sends and Sends octets (stream/qp.c). stream.c has the calls.
 *
 * A receive is made for each Send as it comes: its head goes to the stream, its octets where they
 * are wanted, and what there is no room for there to the queue. So a message has no length that a
 * receive would have to fit, and credit is octets alone.
 *
 * Locking: a stream's lock, then its connection's (conn.h), which guards what is said to be its.
 */
#ifndef RL_STREAM_CONN_H
#define RL_STREAM_CONN_H

#include <netinet/in.h>

#include "early.h"
#include "octets.h"
#include "stream.h"
#include "hello.h"
#include "host/ulp.h"
#include "process/file.h"
#include "process/list.h"

/* Octets of a Send at most. */
#define RL_STREAM_MESSAGE	(64 * 1024)
/* Slots of the send ring: an entry of data, one that ends the stream, and one for credit. */
#define RL_STREAM_SLOTS		32
/* What came without iWARP, and is read ahead of MPA's first frame, at most. */
#define RL_STREAM_BEFORE	(64 * 1024)

/* Atomic: how long one that is closed waits for a peer that takes nothing. Tests change it. */
extern u32 rl_stream_closed_ms;

struct rl_ops;

/* What a stream carries in place of octets: operations/ops.c. */
struct rl_stream_operations {
	u32 reads;			/* that each end may have outstanding */
	/* s->ops, of a stream whose QP is initialised. False: no memory. No lock. */
	bool (*init)(struct rl_stream *s, u32 depth);
	/* No thread uses it. */
	void (*free)(struct rl_ops *o);
	/* The stream's lock, and not the connection's: no range is registered any more. */
	void (*deregister_all)(struct rl_stream *s);

	/* The connection's lock, or without one the stream's. */

	/* Full Operation begins. */
	void (*open)(struct rl_stream *s);
	/* Takes in what TCP has, and sends what it has room for. */
	void (*move)(struct rl_stream *s);
	/* All that was posted to be sent is TCP's, or answered. */
	bool (*is_quiet)(const struct rl_stream *s);
	/* Completed so far. */
	u32 (*all_events)(const struct rl_stream *s);
	/* What poll() says, and what to wait for at the descriptor, as rl_stream_awaits(). */
	unsigned int (*events)(const struct rl_stream *s);
	unsigned int (*awaits)(const struct rl_stream *s);
	/* The program has closed, and its memory is not touched any more, but for ranges. Once. */
	void (*finish)(struct rl_stream *s);
	/* Why the connection has ended; 0: the peer has closed it. */
	int (*end_error)(const struct rl_stream *s, const struct rl_conn *c);
	/* It is over, and s->error set, or plain: what was posted is flushed. */
	void (*end)(struct rl_stream *s);
	/* As weft_host_complete(). */
	void (*complete)(struct rl_stream *s, bool recv, const struct weft_cqe *cqe);
};

struct rl_stream {
	u32 refs;			/* atomic: the program's, the connection's */
	struct list_head of_all;	/* stream.c's lock */
	u32 left_in;			/* the same: the last round that awaited it */
	pthread_mutex_t lock;

	bool is_settled;		/* atomic: open, of octets: conn's lock is enough */

	/* lock */
	int fd;				/* hidden; -1: the connection has it */
	u32 forks;			/* of the process that it belongs to: rl_fd_forks() */
	enum rl_stream_role role;
	struct rl_stream_options options;
	struct rl_conn *conn;		/* NULL: MPA's exchange has not begun; referenced */
	struct rl_ops *ops;		/* NULL: octets; constant */

	/* the connection's lock; without one, the lock */
	enum rl_stream_phase phase;
	int error;			/* to be reported once: a positive errno, or 0 */
	bool begun;			/* MPA's first frame is next in TCP, or was read */
	bool unanswered;		/* initiator: TCP ended without an octet of the peer's */
	int low_mark;			/* the socket's SO_RCVLOWAT, as set last; 0: not at all */
	u64 frame_by;			/* ms: a partial key is none then; 0: there is none */
	u32 least;			/* octets that are reported: the program's SO_RCVLOWAT */
	bool closed;			/* by the program */
	bool unheard;			/* and octets have come since */
	bool over;			/* nothing is received or sent any more */
	bool torn;			/* in the middle of a Send */
	bool wrong;			/* the peer broke the protocol */
	/*
	 * over, because the peer has closed, and the program has not shut its half: as with
	 * TCP a send succeeds once, and the peer's answer to that is an error.
	 */
	bool half;
	bool resets;			/* at close(), as SO_LINGER without time wants it */
	bool awaited;			/* rl_stream_await_end() */
	struct sockaddr_in6 peer;	/* its name, or the beginning of it: an IPv4 address */
	bool read_shut;
	void (*changed)(void *arg, unsigned int events); /* on news; NULL: none */
	void *changed_arg;
	unsigned int told;		/* what there was, and octets in all, when last told */
	u32 told_octets;
	bool told_stuck;

	/* received */
	struct rl_octets in;
	struct rl_stream_credit peers;	/* what the peer may send: of our window */
	u32 seen;			/* octets of the current Send that are counted */
	u8 head[RL_STREAM_HEAD_LEN];
	struct weft_sge want[WEFT_MAX_SGE]; /* where the program waits for octets */
	u32 nwant, all_wanted, wanted;	/* how many octets that is, in all and still */
	bool peer_fin;

	/* sent */
	struct rl_stream_credit own;
	u8 own_head[RL_STREAM_HEAD_LEN];
	u8 *kept;			/* copy of what the ring's last entry names; or NULL */
	struct rl_early early;		/* precedes all else that is to be sent */
	bool fin_due, fin_said;
	/*
	 * Octets or an end wait for the stream to open, or for what waits before them: with or
	 * without calls of the program. Until then the progress thread watches the socket.
	 */
	union {
		struct {
			bool debt, debt_watched;
			bool awaits_open; /* an initiator: the peer may wait for its first Send */
			bool fat;	/* the queue of octets had, or has, many pages */
		};
		u32 chores;		/* any of them */
	};
	u64 open_by;			/* ms: until then no thread watches one that awaits_open */
	u64 end_by;			/* ms: one that is closed, and owes, is reset; 0: unset */
	u32 end_seen;			/* how much was sent of that, when it was set */
	u64 trim_at;			/* ms: they are given back if nothing has moved; 0: unset */
	u32 trim_seen, trim_len;	/* received in all, and queued, when that was set */
	bool finished;			/* the end of one that is closed is posted */

	/* the QP: the connection's lock */
	struct rl_qp qp;
	u8 ring[WEFT_RING_DATA + RL_STREAM_SLOTS * WEFT_SLOT_SIZE] __attribute__((aligned(64)));
	u8 copy[(RL_STREAM_SLOTS +
		 WEFT_SQ_MAX_SLOTS - 1) * WEFT_SLOT_SIZE] __attribute__((aligned(64)));
	struct weft_wqe_info info[RL_STREAM_SLOTS];
};

void rl_stream_get(struct rl_stream *s);
void rl_stream_put(struct rl_stream *s);

/* Another process has it, and the socket: nothing of it is moved here. */
static inline bool rl_stream_is_foreign(const struct rl_stream *s)
{
	return s->forks != rl_fd_forks();
}

/*
 * Whoever lets go of the connection's lock, or without a connection of the stream's: has something
 * changed?
 */
void rl_stream_news(struct rl_stream *s);

/*
 * A call: the stream's lock, and MPA's exchange is as far as it can be: the connection's, too, if
 * there is one. Or -EIO, and neither: it is another process's. One that has not begun belongs to
 * whoever comes first.
 */
int rl_stream_begin(struct rl_stream *s);
void rl_stream_end(struct rl_stream *s);

/* ---- stream/start.c. The stream's lock, and not the connection's ---- */

/* Goes on with MPA's exchange as far as TCP lets it. */
void rl_stream_go_on(struct rl_stream *s);
/* The same of an initiator, by what TCP has. The connection's lock is enough. */
void rl_stream_seek_reply(struct rl_stream *s);
/* The program has closed, and there is a connection, whose lock the caller has. */
void rl_stream_give_up(struct rl_stream *s);

/* ---- stream/qp.c. The connection's lock ---- */

void rl_stream_init_qp(struct rl_stream *s);

/* The peer's terms are known. */
void rl_stream_open(struct rl_stream *s, const struct rl_stream_terms *peers);

/* Octets of a Send that is not whole yet are in the queue, too: it has all that has come. */
void rl_stream_count(struct rl_stream *s);
/* The first @n octets of the queue are the program's now. */
void rl_stream_drop(struct rl_stream *s, u32 n);

/*
 * Takes in what TCP has, into @iov first, if the queue is empty, of which it returns how many
 * octets are filled; then into the queue. Says what is due.
 */
size_t rl_stream_take_in(struct rl_stream *s, const struct iovec *iov, int n);

/* All that was sent is TCP's, and more may be. */
bool rl_stream_is_idle(const struct rl_stream *s);
/* Tries to be idle, and says what is due. */
void rl_stream_push(struct rl_stream *s);

/*
 * Sends up to @max octets of @iov, from octet @skip on, in one message: how many; 0: none now, or
 * the stream is over; -EFAULT.
 */
ssize_t rl_stream_say(struct rl_stream *s, const struct iovec *iov, int n, size_t skip, size_t max);

/* Sends wait for the peer's program, which has not used its end yet. */
bool rl_stream_is_early(const struct rl_stream *s);
/* May one that is early take octets? */
bool rl_stream_has_early_room(struct rl_stream *s);
/* Keeps up to @max octets of @iov for a stream that is early: how many; -EAGAIN: it is full. */
ssize_t rl_stream_say_early(struct rl_stream *s, const struct iovec *iov, size_t max);
/* Something waits, see debt: pushes, and has the socket watched as long as it does. */
void rl_stream_pay(struct rl_stream *s);
/* Gives pages of the queue back, if their time has come. */
void rl_stream_trim(struct rl_stream *s);


/* The peer owes no credit: its stream sends nothing unless its program does. */
bool rl_stream_peer_is_quiet(const struct rl_stream *s);
/* The program has closed: all goes out, then FIN. */
void rl_stream_finish(struct rl_stream *s);

/* ---- and what host.c passes on of core/host.h ---- */

int rl_stream_pop(struct rl_stream *s, struct weft_recv *recv);
void rl_stream_complete(struct rl_stream *s, const struct weft_cqe *cqe);

#endif
