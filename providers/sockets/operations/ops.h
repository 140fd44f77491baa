/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posted operations in place of octets, over the connection of a stream (stream.h): sends and
 * receives, puts to and gets from ranges that the peer has registered, and a queue of their events.
 * weft-socket.h is what programs see of it, docs/socket-operations.md what goes over the wire. Each
 * operation is one work request of the QP: the core judges lengths, STags and offsets.
 *
 * What is posted names the program's memory by STag 0, which no peer can. A registered range is a
 * region of the stream's own protection domain, so that no other connection reaches it.
 *
 * Octets move in calls, as a stream's do. Once a range is registered or the event descriptor asked
 * for, the progress thread moves them, too: a peer's put needs no call here.
 *
 * Locking: the connection's lock, or without one the stream's, unless said otherwise.
 */
#ifndef RL_OPS_H
#define RL_OPS_H

#include <sys/socket.h>

#include "sockets/stream/conn.h"
#include "sockets/weft-socket.h"

/* Reads that each end may have outstanding. */
#define RL_OPS_READS	16

struct rl_ops_range;

struct rl_ops {
	u32 depth;			/* constant */
	u8 *memory;			/* the rings' and their copy's */

	struct weft_qevent *events;	/* a circle of 2 * depth */
	u32 first, nevents;
	u32 owed[2];			/* posted, and not dequeued: receives are [1] */
	bool opening;			/* the send queue's oldest is not the program's */
	int why;			/* only events are left: a positive errno */
	u32 all_events;			/* so far */
	int eventfd;			/* hidden; readable while there is an event; or -1 */
	int epfd;			/* hidden; an epoll with it, which the program gets */
	bool served;			/* by the progress thread */
	u32 looks;			/* for events */
	u64 looked_at;			/* ms: the last of LOOKS */

	/* It goes on with MPA's exchange, too, and then ends. Under the stream's lock. */
	struct rl_ops_starter *starter;	/* NULL: there is none */

	/* the stream's lock */
	struct rl_pd pd;
	struct rl_ops_range *ranges;
};

/* ---- ops.c ---- */

/* For rl_stream_setsockopt(). */
extern const struct rl_stream_operations rl_ops_of_stream;

/*
 * Calls; no lock. @iov is a copy. 0, or -EAGAIN: the queue is full; -EFAULT, or why the stream is
 * over.
 */
int rl_ops_post(struct rl_stream *s, const struct weft_operation *op, const struct iovec *iov);
/*
 * Copies the oldest events to @to, @max of them: how many; -EAGAIN; -EBUSY: octets from before are
 * to be received first; or why there will be none.
 */
int rl_ops_take(struct rl_stream *s, struct weft_qevent *to, u32 max);
/* A descriptor of the program\'s, a number of that epoll; or -errno. */
int rl_ops_open_eventfd(struct rl_stream *s);

/* Why nothing can be done any more: -errno; 0: something can. */
int rl_ops_over(const struct rl_stream *s);
/* The progress thread serves it from now on. A call, or its begin. */
void rl_ops_serve(struct rl_stream *s);
/* operations/start.c: it goes on with MPA's exchange. The same. */
void rl_ops_start(struct rl_stream *s);
/* No longer. The stream's lock. */
void rl_ops_stop(struct rl_stream *s);

/* ---- operations/memory.c ---- */

/* Calls; no lock. 0 and m->key, or -errno. */
int rl_ops_register(struct rl_stream *s, struct weft_memory *m);
int rl_ops_deregister(struct rl_stream *s, u32 key);
/* All that are left. The stream's lock, and not the connection's. */
void rl_ops_deregister_all(struct rl_stream *s);

/*
 * ---- operations/option.c: weft-socket.h's options but the first, of a descriptor's stream. No
 * lock ----
 */

int rl_ops_set(struct rl_stream *s, int option, const void *value, socklen_t len);
int rl_ops_get(struct rl_stream *s, int option, void *value, socklen_t *len);

#endif
