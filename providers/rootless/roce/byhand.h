/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs that are connected by hand: programs tell each other GID, QP number and PSN, and modify_qp
 * gives them to the QP. What is decided about that: which modify_qp is allowed, which end connects
 * and when, what the ends say to each other, and when a peer is given up. roce/byhand_conn.c carries it out.
 *
 * Sequential, without clock, socket, lock or allocation: @now is in milliseconds.
 */
#ifndef RL_BYHAND_H
#define RL_BYHAND_H

#include "kernel/core/qp.h"

/* ---- modify_qp ---- */

/*
 * The table of the InfiniBand specification, 11.2.5.2: may a QP of @type (IBV_QPT_RC, _UC, _UD) go from
 * one state to another, and may that give these attributes? @mask has IBV_QP_ bits, IBV_QP_STATE
 * aside. States are enum ibv_qp_state's.
 */
bool rl_byhand_may_modify(u32 type, u32 from, u32 to, u32 mask);

/* ---- words ---- */

/*
 * What each end says to the other, in the private data of MPA's Request and Reply. PSNs are known to the
 * two programs alone, so they prove who speaks: the Request has the upper 12 bits of each, the Reply
 * the lower.
 */
struct rl_byhand_hello {
	u8 type;			/* IBV_QPT_: of the QP */
	bool rts;			/* sent and rnr_retry are known already */
	u8 rnr_retry;
	u32 from, to;			/* QP numbers */
	u16 awaited;			/* half of the PSN that the speaker awaits */
	u16 sent;			/* half of the one that it will send */
};

/* Magic, version, then these, in network order. */
#define RL_BYHAND_HELLO_LEN 20
/* 1 knew of no asks; 2 said whole PSNs, so that a Request told what its Reply was to be. */
#define RL_BYHAND_VERSION 3

void rl_byhand_write_hello(u8 p[RL_BYHAND_HELLO_LEN], const struct rl_byhand_hello *w);
/* Of what begins as such words do; 0: this does not. */
u8 rl_byhand_hello_version(const u8 *p, u32 len);
/* False: these are not such words, or of a version that nobody here knows. */
bool rl_byhand_read_hello(const u8 *p, u32 len, struct rl_byhand_hello *w);

/* ---- a QP ---- */

enum rl_byhand_phase {
	RL_BYHAND_OFF,			/* before RTR, and once the QP is in error */
	RL_BYHAND_UNCONNECTED,			/* there is no connection yet */
	RL_BYHAND_CONNECTING,			/* this end connects */
	RL_BYHAND_CONNECTED,
	RL_BYHAND_GONE,			/* there was one: the peer has gone, and comes no more */
};

struct rl_byhand {
	enum rl_byhand_phase phase;
	u8 type;			/* IBV_QPT_ */
	u8 own_gid[16], peer_gid[16];
	u32 own_qpn, peer_qpn;
	u32 rq_psn;			/* that the peer is to begin with */

	/* from RTS on */
	bool rts;
	u32 sq_psn;
	u8 timeout, retry_cnt;		/* InfiniBand's encodings */
	u8 rnr_retry;

	struct rl_byhand_hello peer;	/* as heard last; awaited is of use in TRYING and JOINED */
	u8 bad_psns;			/* of who had the numbers, and other PSNs */
	u64 since;			/* RTR */
	u64 connect_at;			/* APART, initiator: when to connect */
	u64 give_up_at;			/* a work request waits for a peer until then; 0: none does */
	bool timed_out;			/* UC: one has waited in vain, and none waits any more */
};

/* What is to be done. */
enum rl_byhand_act {
	RL_BYHAND_NOTHING,
	RL_BYHAND_CONNECT,		/* a connection begins: then rl_byhand_connect_failed() or rl_byhand_receive_hello() */
	RL_BYHAND_DISCONNECT,			/* the connection is not the peer's: it ends */
	RL_BYHAND_GIVE_UP,		/* RETRY_EXC_ERR for the oldest work request, and so into error */
	RL_BYHAND_DROP_SENDS,			/* UC: work requests are done, and nobody hears of them */
};

/* Both ends are the same QP: it connects to itself, and hears in that attempt what it says. */
bool rl_byhand_is_self(const struct rl_byhand *h);

/* RTR: all above rts is set, and rl_byhand_deadline() tells what comes. */
void rl_byhand_enter_rtr(struct rl_byhand *h, u64 now);
/* RTS: sq_psn to rnr_retry are set. */
enum rl_byhand_act rl_byhand_enter_rts(struct rl_byhand *h, u64 now);
/* RESET, ERR: no more. */
void rl_byhand_stop(struct rl_byhand *h);

/* When rl_byhand_tick() is to be called; 0: never. */
u64 rl_byhand_deadline(const struct rl_byhand *h);
enum rl_byhand_act rl_byhand_tick(struct rl_byhand *h, u64 now);

/* A work request waits, and there is no connection. */
void rl_byhand_posted(struct rl_byhand *h, u64 now);

/* TRYING: this attempt has failed. */
void rl_byhand_connect_failed(struct rl_byhand *h, u64 now);
/*
 * JOINED: the connection has ended. @used: work requests may have been carried out by it, so that no
 * other can take its place. @sends: some have not completed.
 */
void rl_byhand_disconnected(struct rl_byhand *h, bool used, bool sends, u64 now);

/* What this end says. */
void rl_byhand_make_hello(const struct rl_byhand *h, struct rl_byhand_hello *w);

enum rl_byhand_verdict {
	RL_BYHAND_ACCEPT,			/* JOINED */
	RL_BYHAND_NOT_YET,		/* it may fit later */
	RL_BYHAND_REJECT,
};

/*
 * A peer has said @w: in a Request, in APART, or in a Reply, in TRYING. @own and @peer are the
 * addresses of its connection.
 */
enum rl_byhand_verdict rl_byhand_receive_hello(struct rl_byhand *h, const struct rl_byhand_hello *w,
				  const u8 own[16], const u8 peer[16], u64 now);

/*
 * How long a Send of the peer's waits for a receive, in ms: as its rnr_retry and the receiver's
 * @min_rnr_timer say.
 */
u32 rl_byhand_rnr_timeout(const struct rl_byhand *h, u8 min_rnr_timer);

#endif
