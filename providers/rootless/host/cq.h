/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. cq_queue.c: completions, and the connections and sources of a CQ;
 * cq_progress.c: which thread moves octets for it; cq.c: its life.
 */
#ifndef RL_CQ_H
#define RL_CQ_H

#include "kernel/core/cq.h"
#include "chan.h"
#include "context.h"
#include "process/lock.h"
#include "process/thread.h"
#include "ring.h"

struct rl_conn;
struct rl_qp;

struct rl_cq {
	struct rl_object o;
	struct rl_context *ctx;
	struct rl_chan *chan;		/* its completion channel; NULL: none; referenced */
	struct rl_chan_source source_of_events; /* chan: whoever waits there polls epfd */
	bool stamps;			/* completions have a timestamp; constant */
	struct rl_lock lock;
	struct weft_cqc core;		/* lock */
	struct rl_ring ring;		/* lock */
	struct rl_qp *lingerer;		/* lock; a poll looks at its send ring */
	u32 async_reported;		/* the channel's lock: events that the program has read */
	u32 comp_reported;

	struct list_head late;		/* lock: completions that are late on demand: late.c */
	u32 n_late;			/* lock; read without it */

	/* progress: the connections whose QPs complete here */
	struct list_head node;		/* all CQs of the process: cq_progress.c's lock */
	struct rl_watch watch;
	int epfd;			/* hidden: waits for their sockets */
	struct rl_lock progress;	/* held by the thread that moves octets for the CQ */
	u32 nconns;			/* lock */
	struct rl_cq *other;		/* lock: a CQ of all its connections, too, or NULL */
	bool mixed;			/* lock: its connections have various others */
	u32 nsources;			/* lock: descriptors shared by several QPs */
	struct rl_watch *source;	/* lock: the latest, unless removed; referenced */
	struct rl_conn *last;		/* lock; the latest, unless removed; referenced */
	u32 events;			/* lock: those wanted of @last */
	bool parked;			/* lock: epfd does not report the only connection, @last */
	u32 polls;			/* atomic: kicks so far */
	u32 seen;			/* lock: polls when the progress thread last looked */
	u64 seen_at;			/* ns: when that was */
	u32 looks;			/* atomic: by doorbells and polls of other CQs since then */
	/* cq_progress.c's lock: polls of others that do not look; how many did not before */
	u32 skip, skipped;
	bool polled, busy;		/* lock: polled busily then, without and with looks */
	bool leased;			/* lock: to pollers; the progress thread looks away */
	bool served;			/* lock: to its own, or to those that wait at its channel */
	u32 wait;			/* lock: a thread waits for epfd at the channel: chan.h's
					 * number of its wait; 0: none
					 */
	bool waited;			/* lock: a wait has ended since the last judgement */
	bool waited_for;		/* lock: it is leased to those that wait */
};

/* ---- cq.c ---- */

int rl_cq_new(struct rl_context *ctx, u32 entries, struct rl_chan *chan, struct rl_cq **cq);
/* No QP uses it any more. Drops its events; no further ones are added. */
void rl_cq_stop(struct rl_cq *cq);
/* After rl_cq_stop(). */
void rl_cq_destroy(struct rl_cq *cq);
int rl_cq_resize(struct rl_cq *cq, u32 entries, struct weft_resize_cq_resp *resp);

/* ---- cq_progress.c ---- */

/* poll_cq found nothing: moves octets in the caller's context. */
void rl_cq_kick(struct rl_cq *cq);
/* From now on pollers of other CQs help this one, too. */
void rl_cq_enlist(struct rl_cq *cq);
void rl_cq_delist(struct rl_cq *cq);
extern const struct rl_chan_source_ops rl_cq_source_ops;
/* A child takes the CQ over: its parent's threads have no lease there. */
void rl_cq_end_leases(struct rl_cq *cq);
/* In the progress thread: a descriptor is ready; the lease has ended. */
void rl_cq_thread_poll(struct rl_cq *cq);
void rl_cq_renew_lease(struct rl_cq *cq);

/* ---- cq_queue.c ---- */

void rl_cq_complete(struct rl_cq *cq, const struct weft_cqe *e);
/* Its halves: with the CQ's lock, and after it. */
enum weft_cq_push rl_cq_push(struct rl_cq *cq, const struct weft_cqe *e);
void rl_cq_pushed(struct rl_cq *cq, enum weft_cq_push pushed);
/* Does the program wait for an event? */
bool rl_cq_is_armed(struct rl_cq *cq);
/*
 * Busy pollers read the socket of their only connection without epfd, whose reports would cost
 * some per cent of a small message. CQ's lock: silences them, if that is so; has them again, and
 * what is ready is reported.
 */
void rl_cq_park(struct rl_cq *cq);
void rl_cq_unpark(struct rl_cq *cq);
/* The progress thread looks at the CQ at @ms, or before. CQ's lock. */
void rl_cq_wake_at(struct rl_cq *cq, u64 ms);
/* A doorbell or another CQ's poller has moved its octets. */
void rl_cq_note_look(struct rl_cq *cq);
/* One connection, and the program neither polls busily nor waits for an event. */
bool rl_cq_is_unattended(struct rl_cq *cq);
/* The progress thread gets the CQ's ready descriptors again, even those it has seen. */
void rl_cq_rearm_thread(struct rl_cq *cq);
/* May @qp linger? Then the CQ's program kicks the CQ for it. Connection's lock. */
bool rl_cq_linger(struct rl_cq *cq, struct rl_qp *qp);
void rl_cq_linger_over(struct rl_cq *cq, struct rl_qp *qp);
/*
 * A connection of one of this CQ's QPs: added, changed, removed. @other: the QP's other CQ, or @cq.
 * Connection's lock.
 */
int rl_cq_add_conn(struct rl_cq *cq, struct rl_cq *other, struct rl_conn *c, u32 events);
void rl_cq_modify_conn(struct rl_cq *cq, struct rl_conn *c, u32 events);
void rl_cq_remove_conn(struct rl_cq *cq, struct rl_conn *c);
/* Whoever polls @cq reads @w's descriptor @fd, by which some of its QPs receive: 0 or -errno. */
int rl_cq_add_source(struct rl_cq *cq, struct rl_watch *w, int fd);
/* The caller has a reference. */
void rl_cq_remove_source(struct rl_cq *cq, struct rl_watch *w, int fd);

#endif
