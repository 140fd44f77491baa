/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the queue logic asks of its host (the driver, the tests, rootless).
 * Plain functions, resolved when the program or module is linked. All are
 * called with the connection's lock held (in the driver the socket's, possibly
 * in softirq): none may sleep, none may call back into the queue logic of the
 * same QP.
 */
#ifndef WEFT_CORE_HOST_H
#define WEFT_CORE_HOST_H

#include "../proto/stream.h"
#include "../uapi/rdma/weft-abi.h"

struct weft_iov;
struct weft_link;
struct weft_qpc;
struct weft_recv;
struct weft_region;

/*
 * Looks up an STag by its index, whatever its key byte, and holds what it finds, so
 * that its pages stay until the drop; NULL if there is none, as for index 0. A full
 * barrier stands between the hold and whatever the caller reads of the region.
 */
struct weft_region *weft_host_region_find(struct weft_qpc *qp, u32 stag);
/* Holds @r, which is held, @n times more. */
void weft_host_region_hold(struct weft_region *r, u32 n);
/* Lets go of one hold. */
void weft_host_region_drop(struct weft_region *r);

/*
 * How often the fast region @r is held, the table's hold until weft_region_withdraw() among them.
 * An acquire: what those did with it who have let go is done.
 */
u32 weft_host_region_holders(const struct weft_region *r);
/* The QP waits for others to let a region go, which they do soon: weft_host_kick(), in a moment. */
void weft_host_try_again(struct weft_qpc *qp);

/*
 * REG_MR was granted: puts the memory in force that the consumer mapped last, and sets
 * r->base and r->len. False, and nothing changed, if it has mapped none so far.
 */
bool weft_host_region_map(struct weft_region *r);

/*
 * A window is bound to the held region @r, which then may not be deregistered: false, and
 * nothing changed, if that is under way. And the window is bound no more.
 */
bool weft_host_window_hold(struct weft_region *r);
void weft_host_window_drop(struct weft_region *r);

/*
 * The innermost lock: guards the lists of bound windows of QPs of @qp's PD, at least. Not needed
 * where one thread does all.
 */
void weft_host_lock_windows(struct weft_qpc *qp);
void weft_host_unlock_windows(struct weft_qpc *qp);

/*
 * Copies @len bytes from the cursor into @r at @addr. The range was checked. False: the memory
 * is not there any more, which a host that pins it never says.
 */
bool weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len);

/*
 * Can the @len octets at @addr of a held region be read? The range was checked. True of memory
 * that is pinned.
 */
bool weft_host_is_there(struct weft_region *r, u64 addr, u32 len);

/*
 * The memory behind @addr of a held region: where it is, and in *@got how many octets lie
 * there in one piece, at most @len. The range was checked: never NULL.
 */
void *weft_host_piece(struct weft_region *r, u64 addr, u32 len, u32 *got);

/*
 * weft_atomic_run() of @req on @word, which weft_host_piece() gave for a region that may be
 * written. False, and nothing changed: it is not there any more.
 */
bool weft_host_atomic(const struct weft_atomic_req *req, u64 *word, u64 *was);

/*
 * A chunk of WEFT_STAGE_CHUNK bytes for the stream's stage. NULL: no memory now. What is left of
 * the octets stays in TCP then, whose window is the brake, and weft_link_rx() gets it again soon.
 */
u8 *weft_host_chunk(struct weft_qpc *qp);
void weft_host_chunk_free(struct weft_qpc *qp, u8 *chunk);

/* Publishes a completion on the QP's receive or send CQ; wakes its consumer. */
void weft_host_complete(struct weft_qpc *qp, bool recv, const struct weft_cqe *cqe);

/*
 * Take one entry from the QP's SRQ (1, 0 if there is none, -1 if its ring is broken); want none
 * any more. They use weft_srqc_take() and weft_srqc_leave() under the SRQ's lock, and do what
 * those ask for.
 */
int weft_host_srq_pop(struct weft_qpc *qp, bool wait, struct weft_recv *recv);
void weft_host_srq_leave(struct weft_qpc *qp);

/*
 * Something is to be sent, or flushed, that no doorbell announced: call weft_send_run() soon,
 * or, if the QP has no connection, weft_qpc_flush().
 */
void weft_host_kick(struct weft_qpc *qp);

/*
 * An acknowledgement Read of the peer's (qp_types.h) is to be answered: as weft_host_kick(), or
 * along with the next message, if that is known to follow soon.
 */
void weft_host_answer(struct weft_qpc *qp);

/* ---- the connection ---- */

/* Call weft_link_step() soon. */
void weft_host_wake(struct weft_link *l);

/*
 * Sets l->orq to @ord entries (NULL if 0) and l->irq to @irq_slots, until the link is no
 * more: false if there is no memory. Called by weft_link_step() and weft_link_accept()
 * alone, which the host calls where it may sleep.
 */
bool weft_host_lend_depths(struct weft_link *l, u32 ord, u32 irq_slots);

/* The end of TCP's queue. */
struct weft_tcp_tail {
	u32 mss;			/* octets of a segment, at least WEFT_BATCH_SEG_MIN */
	u32 seg_off;			/* in the segment that the next octet continues; or: */
#define WEFT_SEG_UNKNOWN (~0u)		/* FPDUs are cut without regard to segments */
	u32 room;			/* octets that TCP takes now, more or less; 0: none */
};
void weft_host_tcp_tail(struct weft_link *l, struct weft_tcp_tail *tail);

enum {
	WEFT_SEND_MORE	= 1 << 0,	/* a short rest may wait for the next call */
	WEFT_SEND_EOR	= 1 << 1,	/* the segment ends behind these octets */
	WEFT_SEND_FRESH	= 1 << 2,	/* a segment begins with these octets */
};

/*
 * Hands the @len octets of @iov to TCP, which copies them: how many it took, 0 if it is
 * full, or -errno if it refuses for good. Does not wait.
 */
s32 weft_host_send(struct weft_link *l, const struct weft_iov *iov, u32 niov, u32 len, u32 flags);

/* TCP is full: call weft_send_run() when it has room. */
void weft_host_await_room(struct weft_link *l);

/*
 * Memory for a batch: *@size >= WEFT_BATCH_MEM_MIN octets, or NULL; weft_send_run() is to be
 * called again soon then. Given back when TCP has all of the batch.
 */
void *weft_host_lend_batch(struct weft_link *l, u32 *size);
void weft_host_reclaim_batch(struct weft_link *l, void *mem, u32 size);

/*
 * Memory for what a slow peer has TCP leave of a batch: *@size octets or more, what it is then,
 * given back as above; NULL: the batch's is kept. The sender pays for it.
 */
void *weft_host_lend_rest(struct weft_link *l, u32 *size);

/* ---- what happened ---- */

enum weft_event {
	WEFT_EV_TERM_SENT,		/* we found an error; qp->term_out is next, or our FIN
					 * is out already
					 */
	WEFT_EV_TERM_RECEIVED,		/* qp->term_in */
	WEFT_EV_LOCAL_ERROR,		/* a bad work request or ring */
	WEFT_EV_RTS,			/* the peer's first FPDU has come: sends may flow */
	WEFT_EV_FLUSHED,		/* the QP has entered error: its queues are being flushed,
					 * and of an SRQ it has no entry any more
					 * (QP_LAST_WQE_REACHED) */
};
void weft_host_event(struct weft_qpc *qp, enum weft_event ev);

#endif
