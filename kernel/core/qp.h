/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue logic of one QP: send queue, receive queue, outstanding Reads both
 * ways, the state that decides what is sent next, error and flush.
 *
 * Sequential: the caller holds the connection's lock (in the driver the
 * socket's; before a connection exists, the QP's state lock) around every
 * function, unless said otherwise. Files: wqe.c (decode and judge a send
 * entry), sq.c (the send queue), rqq.c (rings of receive entries), rq.c (a QP's
 * receives), tx.c (what goes out next), rx.c (what came in), qp.c (states, flush),
 * verbs.c (what verbs see).
 */
#ifndef WEFT_CORE_QP_H
#define WEFT_CORE_QP_H

#include "cq.h"
#include "host.h"
#include "ring.h"

/* Features (weft-abi.h) that come with RFC 7306's operations. */
#define WEFT_EXT_FEATURES	((u64)(WEFT_FEATURE_IMM | WEFT_FEATURE_ATOMICS))

enum weft_qp_state {
	WEFT_QPS_IDLE,			/* no connection yet: nothing is read from the SQ */
	WEFT_QPS_RTS,
	WEFT_QPS_CLOSING,		/* what is posted goes out, then FIN */
	WEFT_QPS_TERM,			/* being flushed; the Terminate is still to go out */
	WEFT_QPS_ERROR,			/* being flushed; what is posted is, too, on the next kick */
};

/* A QP's state as verbs show it: enum ib_qp_state's numbers, which are uABI. */
enum weft_verbs_state {
	WEFT_VS_RESET = 0,
	WEFT_VS_INIT = 1,
	WEFT_VS_RTR = 2,
	WEFT_VS_RTS = 3,
	WEFT_VS_SQD = 4,		/* what is posted goes out, then FIN */
	WEFT_VS_SQE = 5,		/* of datagrams alone: what is posted is flushed */
	WEFT_VS_ERR = 6,
	WEFT_VS_NR
};

/* ---- receive entries: RQ of a QP, or SRQ ---- */

struct weft_rqq {
	struct weft_ringq q;
	u32 stride;			/* slots an entry */
	u32 max_sge;
};

/* @mem: a ring of @slots slots, a power of two. An entry takes weft_rq_stride(@max_sge) of them. */
void weft_rqq_init(struct weft_rqq *rq, void *mem, u32 slots, u32 max_sge);

/* Slots that a receive entry of @max_sge SGEs takes: a power of two. */
u32 weft_rq_stride(u32 max_sge);

/* The private copy of a receive entry: struct weft_rq_wqe with all its SGEs. */
struct weft_recv {
	u64 wr_id;
	u32 num_sge;			/* ~0: more than the queue allows */
	u32 reserved;
	struct weft_sge sge[(WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE - 16) / sizeof(struct weft_sge)];
};
static_assert(offsetof(struct weft_recv, sge) == offsetof(struct weft_rq_wqe, data),
	      "a receive entry is copied as it stands in the ring");

/*
 * Takes the oldest entry. Returns 1, 0 when empty, -1 when the user's index is
 * broken. Lock: the QP's, or the SRQ's.
 */
int weft_rqq_pop(struct weft_rqq *rq, struct weft_recv *recv);

/* As weft_ringq_move(). */
int weft_rqq_move(struct weft_rqq *rq, struct weft_ring_move *m);

struct weft_qpc;

/* A receive queue that QPs share. Lock: the host's SRQ lock. */
struct weft_srqc {
	struct weft_rqq rq;
	u32 limit;			/* entries; 0: not armed */
	struct weft_qpc *first, **last;	/* QPs that wait for an entry, the oldest first */
};

void weft_srqc_init(struct weft_srqc *srq, void *mem, u32 slots, u32 max_sge);

/* How many entries the SRQ holds when it is full. */
static inline u32 weft_srqc_size(const struct weft_srqc *srq)
{
	return READ_ONCE(srq->rq.q.slots) / srq->rq.stride;
}

/*
 * As weft_rqq_pop(). Sets *@low if fewer entries wait now than the limit that is
 * armed, and disarms it: the host raises the limit event. It comes once an arming.
 */
int weft_srqc_pop(struct weft_srqc *srq, struct weft_recv *recv, bool *low);

/*
 * What is to be done once the SRQ's lock was dropped: the limit event, and a doorbell for a QP
 * that waits, as there is an entry for it. The host holds that before it drops the lock.
 */
struct weft_srq_news {
	bool low;
	struct weft_qpc *turn;		/* NULL: nobody's */
};

/*
 * Takes the oldest entry for @qp: as weft_rqq_pop(). With @wait a QP that gets none is listed,
 * whoever posts one is asked to kick, and entries are for the QPs listed, one by one: @qp keeps
 * its place until it has got one, or weft_srqc_leave().
 */
int weft_srqc_take(struct weft_srqc *srq, struct weft_qpc *qp, bool wait, struct weft_recv *recv,
		   struct weft_srq_news *news);
/* @qp, listed or not, wants no entry any more. */
void weft_srqc_leave(struct weft_srqc *srq, struct weft_qpc *qp, struct weft_srq_news *news);
/* The first of those listed, if there is an entry for it; else NULL. */
struct weft_qpc *weft_srqc_turn(const struct weft_srqc *srq);

/*
 * Arms the limit event; 0 disarms it. False, and nothing changed, if the SRQ holds
 * fewer entries than @limit. Sets *@low as above if so few wait already.
 */
bool weft_srqc_arm(struct weft_srqc *srq, u32 limit, bool *low);

/* As weft_ringq_move(); -EINVAL, too, if the limit that is armed does not fit. */
int weft_srqc_move(struct weft_srqc *srq, struct weft_ring_move *m);

/* ---- send queue ---- */

enum weft_wqe_state {
	WEFT_WQE_QUEUED,		/* copied and judged */
	WEFT_WQE_SENDING,		/* some of it is cut into FPDUs */
	WEFT_WQE_SENT,			/* all of it handed over; done at weft_tx_sent(), or confirmed */
	WEFT_WQE_AWAIT,			/* a Read or atomic: done when its response is complete */
	WEFT_WQE_DONE,			/* completes when all before it have */
};

/* Beside each first slot of the private copy. */
struct weft_wqe_info {
	u8 state;			/* enum weft_wqe_state */
	u8 status;			/* WEFT_WC_ */
	u8 nslots;
	u8 reserved;
	u32 len;			/* payload octets in all */
	u32 msn;			/* of its last message on QN 0 */
};

struct weft_sqq {
	struct weft_ringq q;		/* idx: oldest entry not yet completed */
	u32 pulled;			/* next entry to copy from the ring */
	u32 taken;			/* entries copied so far; for the host's counters */
	u32 next;			/* next entry to send, or being sent */
	u32 sent;			/* entries before it are copied: see weft_tx_sent() */
	u32 max_slots;			/* longest WQE allowed by creation */
	u32 max_wqes;			/* as many as were asked for: short ones, too */
	u32 held;			/* copied and not yet completed, at most max_wqes */
	u8 *copy;			/* private: slots + max_slots - 1 slots, so that an
					 * entry is contiguous wherever it starts */
	struct weft_wqe_info *info;	/* slots of them */
	bool broken;			/* the ring cannot be followed any more */
	bool failed;			/* the flush has met the first that failed */
};

static inline size_t weft_sq_copy_size(u32 slots, u32 max_slots)
{
	return (size_t)(slots + max_slots - 1) * WEFT_SLOT_SIZE;
}

/* Slots that a WQE with @num_sge SGEs, or @inline_len bytes if that is more, takes. */
u32 weft_sq_wqe_slots(u32 num_sge, u32 inline_len);
/* The same of a UD QP's, whose first slot says where it goes. */
u32 weft_sq_datagram_slots(u32 num_sge, u32 inline_len);

/* ---- outstanding Reads and atomics ---- */

/* One of ours, in the order of sending: RFC 5040 §5.2, RFC 7306 §5.2.1 (6). */
struct weft_orq_entry {
	u32 wqe;			/* ring position of its WQE, which names the sink; of an ask,
					 * behind the last that it is about */
	u32 msn;			/* an atomic's Request Identifier, too */
	u32 got;			/* octets of a Read's response */
	bool ask;
};

/*
 * Asks. On InfiniBand a completed Write or Send of RC is with the peer; TCP's word says only that it
 * is on its way. A QP that confirms asks: an RDMA Read of no octets, whose Response proves that the peer
 * has taken in all before it (RFC 5040 §5.5), as that of any Read or atomic does. An ask goes out behind
 * all that there is to send, and amid much of it; it tells of all that was sent since the last one.
 */
#define WEFT_ASKS	2		/* so many may be out */

/* One of the peer's. MSNs are consecutive: the oldest has msn_in_read - irq_count. */
struct weft_irq_entry {
	u8 head[6];			/* as it came: DDP's and RDMAP's control, Invalidate STag */
	bool atomic;
	union {
		struct weft_read_req read;
		struct weft_atomic_req req;
	};
};
/* 128 of them fit in 8 KB. */
static_assert(sizeof(struct weft_irq_entry) <= 64, "what an idle connection costs");

/* ---- the QP ---- */

enum weft_tx_kind {
	WEFT_TXK_NONE, WEFT_TXK_WQE, WEFT_TXK_RESPONSE, WEFT_TXK_RTR, WEFT_TXK_TERM, WEFT_TXK_ASK,
};

struct weft_qpc {
	u32 id;				/* QP number */
	u32 pd;
	u32 recv_pd;			/* of what receives name: the SRQ's, if there is one */
	bool kernel;			/* kernel consumer: REG_MR allowed */
	bool datagrams;			/* a UD QP: ud.h, and no connection ever */
	struct weft_region *dma;	/* a kernel consumer's: all memory, by STag 0; or NULL */
	struct weft_region_hold hold;	/* none between runs */
	/* Taken out of use, held, and waited for until nobody else holds them; or NULL: */
	struct weft_region *tx_ends;	/* LOCAL_INV's, at sq.next */
	bool tx_inv_begun;		/* that LOCAL_INV has taken it out of use */
	struct weft_region *rx_ends;	/* what came in, all of it, waits, and so rx_waits */
	u32 windows;			/* no more than these are bound over this QP */
	bool srq;			/* receives come from weft_host_srq_pop() */
	bool srq_tells;			/* whoever posts to it heeds WEFT_RING_KICK */
	struct weft_qpc *srq_next, **srq_prev; /* SRQ's lock: listed there; srq_prev NULL: not */
	enum weft_qp_state state;
	struct weft_stream *st;		/* the connection's; NULL while there is none */

	struct weft_sqq sq;
	struct weft_rqq rq;
	bool sig_all;			/* every WQE is signalled */
	const struct weft_cqc *scq, *rcq; /* whose overflow ends the QP; else not looked at */
	enum weft_verbs_state named;	/* INIT, RTR, or behind a reset RESET: what verbs show in IDLE */

	/*
	 * By hand: modify_qp connects, as on InfiniBand. named leads in RTS, too, as RTR, RTS or SQD,
	 * and a connection is but a means: see weft_qpc_unplug(). Never so in the driver, whose
	 * kernel consumers alone have fast regions: no such QP registers, or waits for a region's end.
	 */
	bool by_hand;
	bool confirms;			/* set before weft_qpc_start(): both ends know of asks, and have
					 * room for WEFT_ASKS more Reads */
	bool in_order;			/* set before weft_qpc_start(): a Send's segments come as they were
					 * cut, or it is an error: weft_rq_divert() */
	bool sq_held;			/* no work request is begun: RTR, SQD */
	bool itself;			/* connected to itself: what it sends it receives */
	u32 denied;			/* WEFT_ACCESS_REMOTE_ that peers do not have over this QP */

	/* connection limits; arrays lent by the host at start */
	u32 ord, ird;			/* ord: without asks */
	struct weft_orq_entry *orq;	/* orq_slots entries */
	u32 orq_slots;
	u32 orq_head, orq_count;	/* a circle: head < orq_slots */
	bool rtr_read_out;		/* our RTR Read is not yet answered; counts for ORD */
	struct weft_irq_entry *irq;	/* irq_slots entries: ird, and 1 for an RTR Read */
	u32 irq_slots;
	u32 irq_head, irq_count;

	/* send side */
	enum weft_tx_kind tx_kind;	/* what tx_msg is */
	struct weft_tx_msg tx_msg;
	bool tx_sq_turn;		/* after a Response the SQ goes first */
	u8 rtr_out;			/* WEFT_RTR_ kind still to be sent (initiator) */
	bool rtr_await;			/* responder: the next FPDU may be the RTR */
	u32 sge, sge_off;		/* of the WQE being sent */
	u32 msn_send, msn_read;		/* next MSNs */
	bool linger;			/* the host looks at the send ring by itself: no kick wanted */
	bool tx_unsent;			/* FPDUs handed out since the last weft_tx_sent() */
	bool tx_unsent_resp;		/* and of a Read Response among them */
	bool tx_second;			/* the first message of a WQE with immediate data is out */
	u32 msn_atomic;			/* of the next Atomic Response */
	u32 asks_max;			/* 0: what TCP has is done */
	u32 asks_out;			/* of orq_count */
	u32 unasked, unasked_len;	/* work requests since the last ask, Read or atomic that only an
					 * ask confirms, and their octets */
	bool peer_fin;			/* peer's sending side is closed */
	bool fin_out;			/* WEFT_TX_FIN was reported */

	/* receive side */
	bool rx_seen;			/* a first FPDU has come */
	u32 asides;			/* FPDUs that were asks, or answers to them */
	bool in_question;		/* the last Write or Send came whole, and no Request since */
	u32 msn_in_send, msn_in_read, msn_in_atomic; /* expected MSNs */
	u32 write_len;			/* octets of the latest Write, since the last message on QN 0 */
	bool write_over;		/* it is complete */
	bool imm_held;			/* what the next Send comes with is in imm */
	u32 imm;
	bool recv_active;		/* a Send is being received */
	bool patient;			/* a Send that finds no receive waits for one */
	bool rx_waits;			/* one does, or rx_ends: nothing is taken in meanwhile */
	bool rx_ends_read;		/* by READ_INV, the oldest Request; else by a Send */
	bool rx_overdue;		/* it has waited long enough */
	s32 recv_ahead;			/* taken before its Send: as weft_rq_take() says; 0: none */
	u8 recv_op;
	u32 recv_inv;			/* its Invalidate STag */
	u32 recv_cap, recv_got;
	struct weft_recv recv;		/* the receive entry being filled */

	/* errors: the first one wins */
	enum weft_err error;
	struct weft_term term_out;	/* being sent, in TERM */
	struct weft_term term_in;	/* received */
	bool term_received;
	bool flushed_event;
};

/*
 * Prepares a zeroed *@qp whose id, pd, recv_pd, kernel, dma, srq, sig_all, scq, rcq, sq.q,
 * sq.copy, sq.info, sq.max_slots and rq are set.
 */
void weft_qpc_init(struct weft_qpc *qp);

/* The error that a refused remote access to a tagged buffer makes: by the peer's
 * Write or Read Response (DDP's codes), by its Read Request (RDMAP's).
 */
enum weft_err weft_denial_ddp(enum weft_denial d);
enum weft_err weft_denial_rdmap(enum weft_denial d);

/*
 * A connection is there: @st has been started. @orq has @ord entries (NULL if 0), some for asks,
 * @irq has irq_slots >= ird, and at least 1. IDLE -> RTS. Peer-to-peer initiators send the
 * RTR first. The caller runs the send side afterwards.
 */
void weft_qpc_start(struct weft_qpc *qp, struct weft_stream *st, u32 ord,
		    struct weft_orq_entry *orq, u32 ird, struct weft_irq_entry *irq,
		    u32 irq_slots);

/* The state that verbs show. Any context. */
enum weft_verbs_state weft_qpc_verbs_state(const struct weft_qpc *qp);

/* What a modify_qp asks of the host. */
enum weft_qp_move {
	WEFT_QP_REFUSED,		/* not from the state that the QP is in */
	WEFT_QP_DONE,			/* nothing is left to do */
	WEFT_QP_RESET,			/* let go of a connection that has ended, zero the rings,
					 * weft_qpc_reset() */
	WEFT_QP_CLOSE,			/* weft_qpc_close() */
	WEFT_QP_FAIL,			/* weft_qpc_error() */
};

/*
 * May the QP go to @to, any number, and what does that take? INIT and RTR are names,
 * which rdma_cm gives on the way: a connection makes a QP able to receive and to send
 * (RFC 5040 §5.1). Lock: the host's for modify_qp.
 */
enum weft_qp_move weft_qpc_move(struct weft_qpc *qp, u32 to);

/* Which asynchronous event tells of what ended the QP. */
enum weft_qp_fault {
	WEFT_FAULT_NONE,		/* no error: closed, or asked to */
	WEFT_FAULT_ACCESS,		/* remote protection (0/1) */
	WEFT_FAULT_REQUEST,		/* remote operation (0/2), DDP (1/x) */
	WEFT_FAULT_FATAL,		/* the others */
};

/*
 * By a Terminate received, or else by our own error. For WEFT_EV_FLUSHED, which
 * comes once a connection and behind either of them.
 */
enum weft_qp_fault weft_qpc_fault(const struct weft_qpc *qp);

/* What vendor_err of a completion says of the Terminate that ended the QP; 0 if none did. */
u32 weft_qpc_vendor_err(const struct weft_qpc *qp);

/* An overflow of @cq ends the QPs of which this is true: weft_qpc_error(). */
static inline bool weft_qpc_uses_cq(const struct weft_qpc *qp, const struct weft_cqc *cq)
{
	return qp->scq == cq || qp->rcq == cq;
}

/* Graceful close: RTS -> CLOSING. weft_tx_next() reports WEFT_TX_FIN when drained. */
void weft_qpc_close(struct weft_qpc *qp);

/*
 * Local error @e, found in @fpdu if not NULL: flushes, prepares the Terminate
 * (none for WEFT_E_MPA_STARTUP), stops the stream. The first error wins.
 */
void weft_qpc_fail(struct weft_qpc *qp, enum weft_err e, const struct weft_fpdu *fpdu);

/* The same for an offender known by its headers: see weft_term_make(). */
void weft_qpc_fail_raw(struct weft_qpc *qp, enum weft_err e, const u8 *hdr, u32 hdr_len,
		       u16 seg_len);

/* A Terminate came and stands in qp->term_in: flushes, answers nothing. */
void weft_qpc_terminated(struct weft_qpc *qp);

/* The connection is gone or the user asked for ERROR: flushes, no Terminate. */
void weft_qpc_error(struct weft_qpc *qp);

/* FIN received: inbound Reads are still answered (RFC 5041 §6.2.1), then FIN. */
void weft_qpc_peer_fin(struct weft_qpc *qp);

/*
 * The connection of a QP by hand is gone, which concerns nobody until something is to be sent:
 * RTS -> IDLE, and all that was posted stays so. What it had begun to send or to receive can only
 * be given up, or flushed. Whoever posts a work request kicks.
 */
void weft_qpc_unplug(struct weft_qpc *qp);

/* Is there a work request that has not completed? */
bool weft_qpc_has_sends(const struct weft_qpc *qp);

/*
 * IDLE, by hand: the oldest work request that is not done completes with @status, the others are
 * flushed, as are the receives.
 */
void weft_qpc_give_up(struct weft_qpc *qp, u8 status);

/*
 * IDLE, by hand, UC: what was posted is done as if it had been sent, and nobody has it. What could not have
 * been sent fails, and all behind it. True: there may be more.
 */
bool weft_qpc_lose(struct weft_qpc *qp);

/*
 * The peer, which confirms, too, has said something and is to ask about it. An adapter would have
 * acknowledged it by now: who lets the QP go waits for the question a little.
 */
bool weft_qpc_is_in_question(const struct weft_qpc *qp);

/* No work request begins from here on; or they may again. */
void weft_qpc_hold(struct weft_qpc *qp, bool on);
/* Held, and of those that had begun none is left. */
bool weft_qpc_is_drained(const struct weft_qpc *qp);

/* Back to IDLE with empty queues. The host has cleared the rings' memory. */
void weft_qpc_reset(struct weft_qpc *qp);

/* What weft_qpc_flush() completes of each queue at most. */
#define WEFT_FLUSH_PIECE	256

/*
 * In ERROR or TERM: completes a piece of what is posted, with FLUSH_ERR, in order. True:
 * there may be more, and it is to be called again soon; weft_send_run() does that, too.
 */
bool weft_qpc_flush(struct weft_qpc *qp);

/* ---- receiving (rx.c) ---- */

/*
 * Takes all bytes of @in in Full Operation, but for those that weft_host_chunk() had no
 * memory for, and a Send that waits for a receive with all behind it, or what is behind one that
 * waits for a region's end. Afterwards the host runs the send side if weft_host_kick() was called,
 * and looks at qp->state.
 */
void weft_qpc_rx(struct weft_qpc *qp, struct weft_cur *in);

/*
 * A Send waits for a receive, and there may be one now, or rx_overdue was set; or a region may
 * have ended: true if it goes on. What the host has kept back since is to be offered then.
 */
bool weft_qpc_rx_resume(struct weft_qpc *qp);

/* ---- sending (tx.c) ---- */

/* A run of an FPDU's payload: @len bytes at @addr of a held region, or at @p. */
struct weft_piece {
	struct weft_region *region;	/* NULL: the bytes are at @p */
	union {
		u64 addr;
		const void *p;
	};
	u32 len;
};

/* An FPDU to hand over: its head, then the pieces, then PAD and CRC. */
struct weft_txd {
	struct weft_tx_fpdu f;
	u32 npieces;
	struct weft_piece piece[WEFT_MAX_SGE + 1];
};

enum weft_tx_result {
	WEFT_TX_IDLE,			/* nothing to send now; KICK is set on the ring */
	WEFT_TX_FPDU,			/* *d is to be sent; weft_tx_put() when copied */
	WEFT_TX_NO_FIT,			/* @whole was asked for and the rest of the message is longer */
	WEFT_TX_FIN,			/* all is said: close the sending side. Reported once */
};

/*
 * Chooses the next FPDU: a Terminate first, the RTR, the message in progress,
 * then Responses and WQEs by turns, as gates allow (MPA-30, ORD, fence). Pulls
 * new WQEs from the ring. @max_ulpdu >= 128. @whole: only if all that is left
 * of the message fits into @max_ulpdu (which may then be smaller).
 */
enum weft_tx_result weft_tx_next(struct weft_qpc *qp, u32 max_ulpdu, bool whole,
				 struct weft_txd *d);

/* Lets go of the regions held by *@d. */
void weft_tx_put(struct weft_qpc *qp, struct weft_txd *d);

/*
 * Every FPDU handed out so far is TCP's: WQEs wholly sent complete now, in order
 * (RFC 5040 §5.5 rule 15), unless the QP confirms.
 */
void weft_tx_sent(struct weft_qpc *qp);

/* Is a message under way of which more FPDUs are to come? The caller's lock, as above. */
static inline bool weft_tx_amid(const struct weft_qpc *qp)
{
	return qp->tx_kind != WEFT_TXK_NONE;
}

/* ---- between the files of core/ ---- */

/*
 * Verbs' Send with Immediate is two messages of RFC 7306: Immediate Data, then the Send. Such
 * Immediate Data has this in its upper half, so that a weft peer delivers both as one completion
 * and takes one receive. It is no concern of the RFC: all 8 octets are the ULP's.
 */
#define WEFT_IMM_OF_SEND 0x77655369u	/* "weSi" */

static inline struct weft_sq_wqe *weft_sq_wqe_at(const struct weft_sqq *sq, u32 pos)
{
	return (struct weft_sq_wqe *)(sq->copy +
				      (size_t)(pos & (sq->q.slots - 1)) * WEFT_SLOT_SIZE);
}

static inline struct weft_wqe_info *weft_sq_info_at(const struct weft_sqq *sq, u32 pos)
{
	return &sq->info[pos & (sq->q.slots - 1)];
}

/* wqe.c: judges a private copy that has @nslots slots. Fills *@len with the payload's
 * length. Returns WEFT_WC_SUCCESS, or the status of its completion.
 */
u8 weft_wqe_check(const struct weft_sq_wqe *w, u32 nslots, bool kernel, u32 *len);
/* The same of a UD QP's entry. */
u8 weft_wqe_check_datagram(const struct weft_sq_wqe *w, u32 nslots, u32 *len);

/* A zero-length tagged message names no buffer; some RNICs still dislike STag 0. */
#define WEFT_STAG_NONE 1

/* wqe.c: is it one of RFC 7306's? */
bool weft_wqe_is_extension(const struct weft_sq_wqe *w);
static inline bool weft_wqe_is_atomic(const struct weft_sq_wqe *w)
{
	return w->opcode == WEFT_WR_CMP_SWAP || w->opcode == WEFT_WR_FETCH_ADD;
}
/* wqe.c: where the answer to a judged Read or atomic goes; WEFT_STAG_NONE if it names no
 * place, for no octets.
 */
void weft_wqe_sink(const struct weft_sq_wqe *w, u32 *stag, u64 *to);
/* wqe.c: the Request of a judged atomic, but for its identifier. */
void weft_wqe_atomic(const struct weft_sq_wqe *w, struct weft_atomic_req *r);
/* wqe.c: the @i-th SGE of a judged entry; its inline bytes. */
const struct weft_sge *weft_wqe_sge(const struct weft_sq_wqe *w, u32 i);
const u8 *weft_wqe_inline(const struct weft_sq_wqe *w);
/* wqe.c: of a UD QP's: the @i-th SGE, or that which counts its inline bytes, which follow it. */
const struct weft_sge *weft_wqe_datagram_sge(const struct weft_sq_wqe *w, u32 i);

/* sq.c: copies and judges the next entry of the ring: 1, 0 (none, or full), -1 (broken). */
int weft_sq_pull(struct weft_qpc *qp);
/*
 * sq.c: the host's, once a run of sending is over: what is left of the Send or Write that is being sent, or
 * is to be sent next, with SGEs, is copied to @mem of @lkey, and its own memory is read no more. There is no
 * other behind it. Under guard. False: @room is too little, or the connection is ending.
 */
bool weft_sq_keep(struct weft_qpc *qp, void *mem, u32 room, u32 lkey);
/* No entry is pulled before one completes. */
static inline bool weft_sq_is_full(const struct weft_sqq *sq)
{
	return sq->held == sq->max_wqes;
}
/* sq.c: what the entry at @pos completes with in the flush that follows. */
void weft_sq_spoil(struct weft_qpc *qp, u32 pos, u8 status);
/* sq.c: the peer has taken in what was sent of the entries before @pos. */
void weft_sq_confirm(struct weft_qpc *qp, u32 pos);
/* sq.c: completes, in order, entries that are done: a piece (WEFT_FLUSH_PIECE), and asks for a run. */
void weft_sq_reap(struct weft_qpc *qp);
/* sq.c: completes up to @most: those done as they are, others with FLUSH_ERR. True: so many. */
bool weft_sq_flush(struct weft_qpc *qp, u32 most);

/* rq.c: takes the next receive into qp->recv: 1, 0 none, -1 broken. */
int weft_rq_take(struct weft_qpc *qp);
/* rq.c: may a Send wait for a receive? Somebody has to be able to post one. */
bool weft_rq_may_wait(const struct weft_qpc *qp);
/* rq.c: the same, but if there is none, rx_waits, and who posts one kicks. May be repeated. */
int weft_rq_await(struct weft_qpc *qp);
/* rq.c: no receive is wanted any more. */
void weft_rq_wait_over(struct weft_qpc *qp);
/* rq.c: judges the receive taken last, and sets recv_cap; false if its poster made it unusable. */
bool weft_rq_judge(struct weft_qpc *qp);
/* rq.c: copies @len octets into it, from its octet @at on; recv_cap has room for them. */
bool weft_rq_place(struct weft_qpc *qp, u32 at, struct weft_cur *from, u32 len);
/*
 * rq.c: the host's, whose QP is in_order: a Send is being received, of which recv_got octets are placed and
 * in order. What is to come of it goes to @sge, @n <= WEFT_MAX_SGE - 1 of them, and no more of the receive's
 * own memory is written.
 */
void weft_rq_divert(struct weft_qpc *qp, const struct weft_sge *sge, u32 n);
/* rq.c: completes up to @most with FLUSH_ERR. True: so many. */
bool weft_rq_flush(struct weft_qpc *qp, u32 most);
/* rq.c: completes the receive taken last, of qp->recv_got octets. @e has status, opcode, flags
 * and what these announce; the rest is filled in.
 */
void weft_rq_complete(struct weft_qpc *qp, struct weft_cqe *e);
/* rq.c: the same, with an error and nothing else. */
void weft_rq_fail(struct weft_qpc *qp, u8 status);

#endif
