/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A QP as its files share it (qp.h): its fields and states. */
#ifndef WEFT_CORE_QP_TYPES_H
#define WEFT_CORE_QP_TYPES_H

#include "../proto/stream.h"
#include "cq.h"
#include "region_types.h"
#include "rqq.h"

/* Features (weft-abi.h) that come with RFC 7306's operations. */
#define WEFT_EXT_FEATURES	((u64)(WEFT_FEATURE_IMM | WEFT_FEATURE_ATOMICS))

enum weft_qp_state {
	WEFT_QPS_IDLE,			/* no connection yet: nothing is read from the SQ */
	WEFT_QPS_RTS,
	WEFT_QPS_CLOSING,		/* what is posted goes out, then FIN */
	WEFT_QPS_TERM,			/* being flushed; the Terminate is still to go out */
	WEFT_QPS_ERROR,			/* being flushed; new posts are flushed on the next kick */
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

/* ---- send queue ---- */

enum weft_wqe_state {
	WEFT_WQE_QUEUED,		/* copied and judged */
	WEFT_WQE_SENDING,		/* some of it is cut into FPDUs */
	WEFT_WQE_SENT,			/* all of it handed over; done at weft_tx_sent(), or
					 * confirmed */
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

/* ---- outstanding Reads and atomics ---- */

/* One of ours, in the order of sending: RFC 5040 §5.2, RFC 7306 §5.2.1 (6). */
struct weft_orq_entry {
	u32 wqe;			/* ring position of its WQE, which names the sink; of an
					 * acknowledgement Read, after the last WQE that it
					 * covers */
	u32 msn;			/* an atomic's Request Identifier, too */
	u32 got;			/* octets of a Read's response */
	bool ask;
};

/*
 * Acknowledgement Reads. On InfiniBand a completed Write or Send of RC has reached the peer; TCP's
 * acknowledgement does not prove that. A QP that confirms therefore sends RDMA Reads of no octets:
 * the Response proves that the peer has placed everything before the Request (RFC 5040 §5.5), as
 * the Response to any Read or atomic does. One is sent when nothing else is left to send, and now
 * and then amid a long stream.
 */
#define WEFT_ACK_READS	2		/* outstanding at most */

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
	WEFT_TXK_NONE, WEFT_TXK_WQE, WEFT_TXK_RESPONSE, WEFT_TXK_RTR, WEFT_TXK_TERM,
	WEFT_TXK_ACK_READ,
};

struct weft_qpc {
	u32 id;				/* QP number */
	u32 pd;
	u32 recv_pd;			/* of what receives name: the SRQ's, if there is one */
	bool kernel;			/* kernel consumer: REG_MR allowed */
	bool datagrams;			/* a UD QP: ud.h, and no connection ever */
	struct weft_region *dma;	/* a kernel consumer's: all memory, by STag 0; or NULL */
	struct weft_region_hold hold;	/* none between runs */
	/* Invalidated and held, until no other QP holds them; or NULL: */
	struct weft_region *tx_ends;	/* LOCAL_INV's, at sq.next */
	bool tx_inv_begun;		/* that LOCAL_INV has taken it out of use */
	struct weft_region *rx_ends;	/* what came in, all of it, waits, and so rx_waits */
	struct weft_region *windows;	/* bound over this QP: weft_host_lock_windows() */
	bool srq;			/* receives come from weft_host_srq_pop() */
	bool srq_tells;			/* its posters heed WEFT_RING_KICK */
	struct weft_qpc *srq_next, **srq_prev; /* SRQ's lock: listed there; srq_prev NULL: not */
	enum weft_qp_state state;
	struct weft_stream *st;		/* the connection's; NULL while there is none */

	struct weft_sqq sq;
	struct weft_rqq rq;
	bool sig_all;			/* every WQE is signalled */
	const struct weft_cqc *scq, *rcq; /* whose overflow ends the QP; else not looked at */
	enum weft_verbs_state named;	/* INIT, RTR, or RESET after a reset: what verbs show in
					 * IDLE */

	/*
	 * By hand: modify_qp connects, as on InfiniBand. named leads in RTS, too, as RTR, RTS or
	 * SQD, and a connection is but a means: see weft_qpc_unplug(). Never so in the driver,
	 * whose kernel consumers alone have fast regions: no such QP registers, or waits for a
	 * region's end.
	 */
	bool by_hand;
	bool confirms;			/* set before weft_qpc_start(): both ends send
					 * acknowledgement Reads, and have room for
					 * WEFT_ACK_READS of them */
	bool in_order;			/* set before weft_qpc_start(): a Send's segments come as
					 * they were cut, or it is an error: weft_rq_divert() */
	bool sq_held;			/* no work request is begun: RTR, SQD */
	bool itself;			/* connected to itself: what it sends it receives */
	u32 denied;			/* WEFT_ACCESS_REMOTE_ that peers do not have over this
					 * QP */

	/* connection limits; arrays lent by the host at start */
	u32 ord, ird;			/* ord: without acknowledgement Reads */
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
	bool linger;			/* the host looks at the send ring by itself: no kick
					 * wanted */
	bool tx_unsent;			/* FPDUs handed out since the last weft_tx_sent() */
	bool tx_unsent_resp;		/* and of a Read Response among them */
	bool tx_second;			/* the first message of a WQE with immediate data is out */
	u32 msn_atomic;			/* of the next Atomic Response */
	u32 ack_reads_max;			/* 0: a request is done once TCP has it */
	u32 ack_reads_out;			/* of orq_count */
	u32 unacked, unacked_len;	/* requests, and their octets, that no Read or atomic
					 * sent since will confirm */
	bool peer_fin;			/* peer's sending side is closed */
	bool fin_out;			/* WEFT_TX_FIN was reported */

	/* receive side */
	bool rx_seen;			/* a first FPDU has come */
	u32 asides;			/* FPDUs that were acknowledgement Reads, or their
					 * Responses */
	bool ack_pending;		/* the last Write or Send is complete, no Request since */
	u32 msn_in_send, msn_in_read, msn_in_atomic; /* expected MSNs */
	u32 write_len;			/* octets of the latest Write, since the last message on
					 * QN 0 */
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
 * Verbs' Send with Immediate is two messages of RFC 7306: Immediate Data, then the Send. Such
 * Immediate Data has this in its upper half, so that a weft peer delivers both as one completion
 * and takes one receive. It is no concern of the RFC: all 8 octets are the ULP's.
 */
#define WEFT_IMM_OF_SEND 0x77655369u	/* "weSi" */

/* What weft_qpc_flush() completes of each queue at most. */
#define WEFT_FLUSH_PIECE	256

#endif
