/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection as its files share it (link.h): its fields, states, actions. */
#ifndef WEFT_CORE_LINK_TYPES_H
#define WEFT_CORE_LINK_TYPES_H

#include "batch.h"
#include "linger.h"

/* What the connection is waiting for. */
enum weft_link_state {
	WEFT_LINK_CONNECTING,		/* initiator: TCP's handshake */
	WEFT_LINK_AWAIT_REPLY,		/* initiator: the MPA Reply */
	WEFT_LINK_AWAIT_REQUEST,	/* responder: the MPA Request */
	WEFT_LINK_REQUESTED,		/* responder: the ULP's accept or reject */
	WEFT_LINK_OPEN,			/* Full Operation: a QP is attached */
	WEFT_LINK_HELD,			/* no QP any more, no FIN yet: cfg.hold_ms */
	WEFT_LINK_CLOSING,		/* no QP any more: FIN out, the peer's FIN awaited */
	WEFT_LINK_DEAD,			/* the host lets everything go */
};

/* What is done with received octets. */
enum weft_link_mode {
	WEFT_MODE_STARTUP,		/* collected until a frame is whole */
	WEFT_MODE_FULL,			/* given to the QP */
	WEFT_MODE_DISCARD,
};

/* What the host is to do, in the order of the bits. */
enum {
	/* Initiator: start-up has failed, l->status says why: 0 - errno. The QP goes. With
	 * -ECONNREFUSED the peer's private data is in l->st.pd, l->st.frame.pd_len octets.
	 */
	WEFT_ACT_FAILED		= 1 << 0,
	/* Initiator: in Full Operation; the peer's private data is in l->offer. */
	WEFT_ACT_CONNECTED	= 1 << 1,
	/* Initiator: the same QP on a new TCP connection, in the revision that the offer has
	 * now: weft_link_succeed(), or weft_link_connect_failed() if there is none.
	 */
	WEFT_ACT_RETRY	= 1 << 2,
	/* Responder: a Request is there; its private data is l->st.pd, l->st.frame.pd_len octets.
	 * weft_link_ulp_is_full() if the ULP cannot be asked now.
	 */
	WEFT_ACT_ASK_ULP	= 1 << 3,
	/* The peer's FIN has come. Once, and only before WEFT_ACT_ENDED. */
	WEFT_ACT_DISCONNECTED	= 1 << 4,
	/* The connection of a QP has ended: the QP is released, if it is still there, the ULP
	 * notified. Once.
	 */
	WEFT_ACT_ENDED		= 1 << 5,
	/* TCP's sending side is to be closed after the octets that it has taken. Once. */
	WEFT_ACT_SHUT		= 1 << 6,
	/* Nothing more is said or awaited: TCP's connection is released, by RST unless both
	 * sides have said FIN.
	 */
	WEFT_ACT_DIE		= 1 << 7,
	/* weft_link_step() is to be called once more, after TCP's octets have been read. */
	WEFT_ACT_AGAIN		= 1 << 8,
	/* The QP is released, the connection is held: ENDED follows. Once. */
	WEFT_ACT_QP_OVER	= 1 << 9,
};

/*
 * "The QP goes": before it lets the lock go the host calls weft_link_release_qp(). Before it
 * tells its ULP of an end it flushes the QP to the end: weft_qpc_flush().
 */
#define WEFT_ACT_RELEASE_QP	(WEFT_ACT_FAILED | WEFT_ACT_ENDED | WEFT_ACT_QP_OVER)

/* What TCP looks like. */
struct weft_tcp_view {
	bool connecting;		/* the handshake is under way */
	bool established;		/* and neither side has closed */
	bool fin;			/* the peer's FIN has come */
	bool closed;			/* there is no connection any more */
	bool delivered;			/* the peer has acknowledged all octets, and our FIN */
	int error;			/* why, if by an error: 0 - errno, or 0. No route is
					 * ETIMEDOUT
					 */
	u32 idle_ms;			/* since the last segment from the peer, pure ACKs
					 * included */
	u32 unanswered;			/* probes and retransmissions since then */
	u64 acked;			/* octets that it has acknowledged */
};

/* Payload of FPDUs that hosts have taken in parts: shorter ones are whole as a rule. */
#define WEFT_PART_MIN	2048

/* What the host's options and its ULP's interface ask for. Read when it matters. */
struct weft_link_cfg {
	struct weft_mpa_cfg mpa;	/* ird, ord: the most there is */
	u32 startup_ms;			/* for each side's part of start-up; but: */
	u32 accept_ms;			/* for the Reply, which waits for the peer's ULP */
	u32 close_ms;			/* for an end, without a sign of the peer */
	u32 dead_ms;			/* a peer that TCP asks, and that is silent for so long, is
					 * dead; 0: TCP alone decides
					 */
	u32 idle_dead_ms;		/* the same for a QP by hand that has sent all; if longer */
	u32 hold_ms;			/* 0: the connection ends with its QP, as an RNIC's. Else
					 * it outlives an error by modify_qp until either end
					 * hangs up (weft_link_hang_up(), FIN); the peer's
					 * requests fail after this time
					 */
	u32 rnr_ms;			/* for a Send that waits for a receive; 0: it does not
					 * wait */
	u16 pd_max;			/* the ULP takes no more private data from a peer */
	u32 part_min;			/* as of struct weft_stream */
	bool ext;			/* RFC 7306: Immediate Data, atomics */
	bool large_fpdus;		/* FPDUs are cut without regard to TCP's segments */
};

/* An initiator's side of start-up, until it is over. The host lends it. */
struct weft_offer {
	struct weft_mpa_cfg cfg;
	bool again;			/* a peer has reset it once, and gets it once more */
	bool itself;			/* TCP's connection has both its ends here: no frames */
	struct weft_mpa_frame req;
	u16 pd_len;
	u8 pd[WEFT_MPA_PD_MAX];		/* ours; the peer's once its Reply was accepted. To
					 * itself the same octets are both. */
};

struct weft_link {
	struct weft_qpc *qp;		/* NULL before and after */
	struct weft_stream st;
	struct weft_link_cfg cfg;
	enum weft_link_state state;
	enum weft_link_mode mode;
	enum weft_rx_event rx_event;	/* of start-up: MORE, STARTUP, ERROR */
	bool starved;			/* octets wait in TCP, as there is no memory for the
					 * stage */
	int status;			/* with WEFT_ACT_FAILED; -ETIMEDOUT with WEFT_ACT_ENDED: the
					 * peer is dead */
	u64 deadline;			/* of what the state awaits; 0: none */
	u64 rnr_deadline;		/* of a Send that waits for a receive; 0: none, or not
					 * yet */
	u64 alive_check;		/* when the peer's signs are looked at; 0: not, or not
					 * yet */

	/* the send run */
	struct weft_linger linger;
	struct weft_batch batch;
	bool fin_due;			/* the QP has nothing more to say */
	bool broken;			/* TCP refuses for good */
	bool told;			/* the host knows that all is said */

	/* start-up */
	struct weft_offer *offer;	/* lent to an initiator */
	struct weft_orq_entry *orq;	/* lent by weft_host_lend_depths() */
	struct weft_irq_entry *irq;
	u64 ask_until;			/* responder: a full ULP is retried until then; 0: it is
					 * not full */
	bool rtr_due;			/* responder: the deadline is for the initiator's RTR */

	/* the end */
	bool refused;			/* responder: the Request was, and nothing else is owed */
	bool peer_fin;			/* told to QP and host */
	bool shut;			/* WEFT_ACT_SHUT was given */
	bool hung_up;			/* the user has disconnected: it is held no longer */
	u8 closing_times;		/* left to set the deadline anew */
	u64 acked;			/* octets acknowledged when the deadline was set */
};

/* Is TCP, whatever it shows of its end, yet to be read to there? */
static inline bool weft_link_is_behind(const struct weft_link *l)
{
	return l->starved || (l->qp && l->qp->rx_waits);
}

/* The earlier of two times; 0: never. */
static inline u64 weft_earlier(u64 a, u64 b)
{
	return !a || (b && b < a) ? b : a;
}

static inline void weft_link_set_deadline(struct weft_link *l, u64 now, u32 ms)
{
	/* 0 means none. */
	l->deadline = now + ms ? now + ms : 1;
}

#endif
