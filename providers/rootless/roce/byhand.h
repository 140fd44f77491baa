/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs that are connected by hand: programs tell each other GID, QP number and PSN, and modify_qp
 * gives them to the QP. What is decided about that: which modify_qp is allowed, which end connects
 * and when, what the ends say to each other, and when a peer is given up. roce/byhand_conn.c carries it out.
 *
 * Sequential, without clock, socket, lock or allocation: @now is in milliseconds.
 */
#ifndef RL_HAND_H
#define RL_HAND_H

#include "kernel/core/qp.h"

/* ---- modify_qp ---- */

/*
 * The table of the InfiniBand specification, 11.2.5.2: may a QP of @type (IBV_QPT_RC, _UC, _UD) go from
 * one state to another, and may that give these attributes? @mask has IBV_QP_ bits, IBV_QP_STATE
 * aside. States are enum ibv_qp_state's.
 */
bool rl_hand_may_modify(u32 type, u32 from, u32 to, u32 mask);

/* ---- words ---- */

/*
 * What each end says to the other, in the private data of MPA's Request and Reply. PSNs are known to the
 * two programs alone, so they prove who speaks: the Request has the upper 12 bits of each, the Reply
 * the lower.
 */
struct rl_hand_words {
	u8 type;			/* IBV_QPT_: of the QP */
	bool rts;			/* sent and rnr_retry are known already */
	u8 rnr_retry;
	u32 from, to;			/* QP numbers */
	u16 awaited;			/* half of the PSN that the speaker awaits */
	u16 sent;			/* half of the one that it will send */
};

/* Magic, version, then these, in network order. */
#define RL_HAND_WORDS_LEN 20
/* 1 knew of no asks; 2 said whole PSNs, so that a Request told what its Reply was to be. */
#define RL_HAND_VERSION 3

void rl_hand_write_words(u8 p[RL_HAND_WORDS_LEN], const struct rl_hand_words *w);
/* Of what begins as such words do; 0: this does not. */
u8 rl_hand_version(const u8 *p, u32 len);
/* False: these are not such words, or of a version that nobody here knows. */
bool rl_hand_read_words(const u8 *p, u32 len, struct rl_hand_words *w);

/* ---- a QP ---- */

enum rl_hand_phase {
	RL_HAND_OFF,			/* before RTR, and once the QP is in error */
	RL_HAND_APART,			/* there is no connection yet */
	RL_HAND_TRYING,			/* this end connects */
	RL_HAND_JOINED,
	RL_HAND_GONE,			/* there was one: the peer has gone, and comes no more */
};

struct rl_hand {
	enum rl_hand_phase phase;
	u8 type;			/* IBV_QPT_ */
	u8 own_gid[16], peer_gid[16];
	u32 own_qpn, peer_qpn;
	u32 rq_psn;			/* that the peer is to begin with */

	/* from RTS on */
	bool rts;
	u32 sq_psn;
	u8 timeout, retry_cnt;		/* InfiniBand's encodings */
	u8 rnr_retry;

	struct rl_hand_words peer;	/* as heard last; awaited is of use in TRYING and JOINED */
	u8 lies;			/* of who had the numbers, and other PSNs */
	u64 since;			/* RTR */
	u64 try_at;			/* APART, initiator: when to connect */
	u64 give_up_at;			/* a work request waits for a peer until then; 0: none does */
	bool missed;			/* UC: one has waited in vain, and none waits any more */
};

/* What is to be done. */
enum rl_hand_act {
	RL_HAND_NOTHING,
	RL_HAND_CONNECT,		/* a connection begins: then rl_hand_failed() or rl_hand_hear() */
	RL_HAND_PART,			/* the connection is not the peer's: it ends */
	RL_HAND_GIVE_UP,		/* RETRY_EXC_ERR for the oldest work request, and so into error */
	RL_HAND_LOSE,			/* UC: work requests are done, and nobody hears of them */
};

/* Both ends are the same QP: it connects to itself, and hears in that attempt what it says. */
bool rl_hand_is_own(const struct rl_hand *h);

/* RTR: all above rts is set, and rl_hand_next() tells what comes. */
void rl_hand_start(struct rl_hand *h, u64 now);
/* RTS: sq_psn to rnr_retry are set. */
enum rl_hand_act rl_hand_go(struct rl_hand *h, u64 now);
/* RESET, ERR: no more. */
void rl_hand_stop(struct rl_hand *h);

/* When rl_hand_tick() is to be called; 0: never. */
u64 rl_hand_next(const struct rl_hand *h);
enum rl_hand_act rl_hand_tick(struct rl_hand *h, u64 now);

/* A work request waits, and there is no connection. */
void rl_hand_posted(struct rl_hand *h, u64 now);

/* TRYING: this attempt has failed. */
void rl_hand_failed(struct rl_hand *h, u64 now);
/*
 * JOINED: the connection has ended. @used: work requests may have been carried out by it, so that no
 * other can take its place. @sends: some have not completed.
 */
void rl_hand_parted(struct rl_hand *h, bool used, bool sends, u64 now);

/* What this end says. */
void rl_hand_say(const struct rl_hand *h, struct rl_hand_words *w);

enum rl_hand_verdict {
	RL_HAND_FITS,			/* JOINED */
	RL_HAND_NOT_YET,		/* it may fit later */
	RL_HAND_WRONG,
};

/*
 * A peer has said @w: in a Request, in APART, or in a Reply, in TRYING. @own and @peer are the
 * addresses of its connection.
 */
enum rl_hand_verdict rl_hand_hear(struct rl_hand *h, const struct rl_hand_words *w,
				  const u8 own[16], const u8 peer[16], u64 now);

/*
 * How long a Send of the peer's waits for a receive, in ms: as its rnr_retry and the receiver's
 * @min_rnr_timer say.
 */
u32 rl_hand_patience(const struct rl_hand *h, u8 min_rnr_timer);

#endif
