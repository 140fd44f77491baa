/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection, from TCP's handshake to its end: start-up in both roles, Full
 * Operation, the ways out, deadlines. Events in, actions out.
 *
 * Sequential: the connection's lock is held around every function. No function reads a
 * clock: @now is in milliseconds, of any clock that does not go back. Octets come by
 * weft_link_rx() as they arrive. Everything that is decided about the connection as a
 * whole is decided by weft_link_step(), which the host calls where it may sleep: when
 * weft_host_wake() asked for it, when TCP's state has changed, when octets came in
 * start-up, when a graceful close or an error was asked for, and when the deadline has
 * passed. What the host is to do then comes back as WEFT_ACT_ bits.
 *
 * Files: link.c (life, received octets, what the host asks for), start.c (start-up),
 * end.c (Full Operation and what follows it), send.c (the send run).
 */
#ifndef WEFT_CORE_LINK_H
#define WEFT_CORE_LINK_H

#include "batch.h"
#include "linger.h"

/* What the connection is waiting for. */
enum weft_link_state {
	WEFT_LINK_CONNECTING,		/* initiator: TCP's handshake */
	WEFT_LINK_AWAIT_REPLY,		/* initiator: the MPA Reply */
	WEFT_LINK_AWAIT_REQUEST,	/* responder: the MPA Request */
	WEFT_LINK_REQUESTED,		/* responder: the ULP's accept or reject */
	WEFT_LINK_OPEN,			/* Full Operation: a QP is attached */
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
	 * -ECONNREFUSED the peer's words are in l->st.pd, l->st.frame.pd_len octets.
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
	/* The connection of a QP is over: the QP goes, the ULP is told. Once. */
	WEFT_ACT_ENDED		= 1 << 5,
	/* TCP's sending side is to be closed, behind what it has taken. Once. */
	WEFT_ACT_SHUT		= 1 << 6,
	/* Nothing more is said or awaited: TCP's connection is released, by RST unless both
	 * sides have said FIN.
	 */
	WEFT_ACT_DIE		= 1 << 7,
	/* weft_link_step() is to be called once more, behind what TCP has brought. */
	WEFT_ACT_AGAIN		= 1 << 8,
};

/*
 * "The QP goes": before it lets the lock go the host calls weft_link_release_qp(). Before it
 * tells its ULP of an end it flushes the QP to the end: weft_qpc_flush().
 */
#define WEFT_ACT_RELEASE_QP	(WEFT_ACT_FAILED | WEFT_ACT_ENDED)

/* What TCP looks like. */
struct weft_tcp_view {
	bool connecting;		/* the handshake is under way */
	bool established;		/* and nobody has closed */
	bool fin;			/* the peer's FIN has come */
	bool closed;			/* there is no connection any more */
	bool delivered;			/* the peer has acknowledged all octets, and our FIN */
	int error;			/* why, as long as connecting failed: 0 - errno, or 0 */
	u32 idle_ms;			/* since the peer was heard last, be it an acknowledgement */
	u64 acked;			/* octets that it has acknowledged */
};

/* What the host's options and its ULP's interface ask for. Read when it matters. */
struct weft_link_cfg {
	struct weft_mpa_cfg mpa;	/* ird, ord: the most there is */
	u32 startup_ms;			/* for each side's part of start-up; but: */
	u32 accept_ms;			/* for the Reply, which waits for the peer's ULP */
	u32 close_ms;			/* for an end, without a sign of the peer */
	u32 rnr_ms;			/* so long may a Send wait for a receive; 0: not at all */
	u16 pd_max;			/* the ULP takes no more private data from a peer */
	bool ext;			/* RFC 7306: Immediate Data, atomics */
};

/* An initiator's side of start-up, until it is over. The host lends it. */
struct weft_offer {
	struct weft_mpa_cfg cfg;
	bool again;			/* a peer has reset it once, and gets it once more */
	bool itself;			/* TCP's connection has both its ends here: no frames */
	struct weft_mpa_frame req;
	u16 pd_len;
	u8 pd[WEFT_MPA_PD_MAX];		/* ours; the peer's once its Reply was accepted. To itself the
					 * same octets are both. */
};

struct weft_link {
	struct weft_qpc *qp;		/* NULL before and after */
	struct weft_stream st;
	struct weft_link_cfg cfg;
	enum weft_link_state state;
	enum weft_link_mode mode;
	enum weft_rx_event rx_event;	/* of start-up: MORE, STARTUP, ERROR */
	bool starved;			/* octets wait in TCP, as there is no memory for the stage */
	int status;			/* with WEFT_ACT_FAILED */
	u64 deadline;			/* of what the state awaits; 0: none */
	u64 rnr_deadline;		/* of a Send that waits for a receive; 0: none, or not yet */

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
	u64 ask_until;			/* responder: a ULP that is full is asked so long; 0: it is not */
	bool rtr_due;			/* responder: the deadline is for the initiator's RTR */

	/* the end */
	bool refused;			/* responder: the Request was, and nothing else is owed */
	bool peer_fin;			/* told to QP and host */
	bool shut;			/* WEFT_ACT_SHUT was given */
	u8 closing_times;		/* left to set the deadline anew */
	u64 acked;			/* octets acknowledged when the deadline was set */
};

/* A zeroed *@l: awaits a Request, or weft_link_connect(). */
void weft_link_init(struct weft_link *l, bool initiator);

/* ---- start.c ---- */

/*
 * Prepares *@o: what @cfg asks for, with the ULP's depths and private data.
 * -EINVAL: too much private data for a frame of cfg->rev.
 */
int weft_offer_init(struct weft_offer *o, const struct weft_mpa_cfg *cfg, u32 ird, u32 ord,
		    const void *pd, u32 pd_len);

/* TCP begins to connect. @l has a QP, in IDLE; @o is lent until FAILED, CONNECTED, or a
 * successor has it.
 */
void weft_link_connect(struct weft_link *l, struct weft_offer *o, u64 now);

/* WEFT_ACT_RETRY: @heir, new, with a TCP connection that begins, takes @l's place.
 * @l is dead. The lock is @l's: nobody else knows @heir.
 */
void weft_link_succeed(struct weft_link *l, struct weft_link *heir, u64 now);

/* The host could not go on with an initiator's start-up: @status is 0 - errno. */
u32 weft_link_connect_failed(struct weft_link *l, int status);

/* Connected, but the ULP could not be told: it is told of a failure, @status, instead. */
u32 weft_link_withdraw(struct weft_link *l, int status, const struct weft_tcp_view *tcp, u64 now);

/* TCP has accepted a connection: the Request is to come. */
void weft_link_await_request(struct weft_link *l, u64 now);

/*
 * The ULP accepts a Request with its depths; @l has the QP already, in IDLE. Sends the
 * Reply and enters Full Operation. 0; -EINVAL: too much private data; -ECONNRESET: the
 * peer has gone; -ENOMEM, or what TCP said. After an error the host
 * releases the QP and calls weft_link_accept_failed().
 */
int weft_link_accept(struct weft_link *l, u32 ird, u32 ord, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now);

/* The ULP could not accept, or be told that it has: the peer hears it if it still waits. */
u32 weft_link_accept_failed(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/* The ULP rejects a Request, with at most 255 octets: a Reply with R=1. Nothing once the
 * link is dead.
 */
u32 weft_link_reject(struct weft_link *l, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now);

/*
 * The ULP has no room for a Request (WEFT_ACT_ASK_ULP): it waits, and the host asks again now and then.
 * False once it has waited for startup_ms: then weft_link_reject().
 */
bool weft_link_ulp_is_full(struct weft_link *l, u64 now);

/* It has room, and may think. */
void weft_link_ulp_was_asked(struct weft_link *l);

/* The listener has gone, and perhaps the Request with it: the ULP gets a while. */
void weft_link_orphan(struct weft_link *l, u64 now);

/* ---- link.c ---- */

/*
 * Octets from the peer, in Full Operation in any context. What is left of @in is behind
 * a Reply and is to be offered again behind weft_link_step(); or weft_host_chunk() had no
 * memory for it; or it waits for a receive, see weft_link_rx_resume().
 */
void weft_link_rx(struct weft_link *l, struct weft_cur *in);

/* The host has octets that it cannot read: they are not missed silently. */
void weft_link_rx_unreadable(struct weft_link *l);

/*
 * A Send that waits for a receive may go on, after a doorbell: true if it does. What waits
 * behind it is to be read then.
 */
bool weft_link_rx_resume(struct weft_link *l);

/* When weft_link_step() is to be called, if nothing calls for it before; 0: never. */
u64 weft_link_next_step(const struct weft_link *l);

/* Acts on what has come, what is said, what TCP looks like, and on time. */
u32 weft_link_step(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/* The device goes away: no words to the peer any more. */
u32 weft_link_kill(struct weft_link *l);

/*
 * The host has too many like this one. It dies if nothing is lost with it: the Request is not whole
 * yet; it was refused; or no QP is left, and the peer has all that was said. If they are twice too many
 * (@pressed), also if the peer is slow to take it. Else 0: it stays, and its deadline bounds it.
 */
u32 weft_link_evict(struct weft_link *l, const struct weft_tcp_view *tcp, bool pressed);

/* The QP is being destroyed: the connection lets it go. */
u32 weft_link_forget(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/*
 * Lets the QP go: its last words are said, octets are discarded from now on. It is flushed if
 * it ever ran, or weft_host_kick() has asked for the rest of that; one by hand that is not in error
 * is unplugged. It lingers no more, by the host.
 */
void weft_link_release_qp(struct weft_link *l);

/* ---- send.c ---- */

/* One run of the send side: a slice at most; weft_host_kick() asks for the next. */
void weft_send_run(struct weft_link *l);

/* A Terminate still due is put behind what is in hand. */
void weft_send_last_words(struct weft_link *l);

/*
 * The QP goes, and the connection: the peer, which asks whether all has been taken in, hears it before,
 * if nothing but that is to be said.
 */
void weft_send_answers(struct weft_link *l);

/*
 * Users' memory went away under weft_send_run(), which the host had to leave in the middle: the
 * QP fails, nothing more is said, and the host is asked to step. It has reset TCP's connection.
 */
void weft_send_break_off(struct weft_link *l);

/* Is there nothing left that TCP has not taken? */
static inline bool weft_send_is_done(const struct weft_link *l)
{
	return l->broken || weft_batch_is_sent(&l->batch);
}

/* ---- between the files of link ---- */

/* end.c */
u32 weft_link_step_open(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			u64 now);
u32 weft_link_step_closing(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now);
/* Without a QP: its first time did not do. */
bool weft_link_is_late(const struct weft_link *l);
/* FIN, once all is said; then the peer's is awaited. */
u32 weft_link_start_closing(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);
/* FIN, unless it is out, or octets wait that TCP has not taken. */
u32 weft_link_shut(struct weft_link *l);
u32 weft_link_die(struct weft_link *l);

/* start.c */
u32 weft_link_step_startup(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now);

/* Is TCP, whatever it shows of its end, yet to be read to there? */
static inline bool weft_link_is_behind(const struct weft_link *l)
{
	return l->starved || (l->qp && l->qp->rx_waits);
}

static inline void weft_link_set_deadline(struct weft_link *l, u64 now, u32 ms)
{
	/* 0 means none. */
	l->deadline = now + ms ? now + ms : 1;
}

#endif
