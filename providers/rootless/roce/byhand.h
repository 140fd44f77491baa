/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs that are connected by hand: programs exchange GID, QP number and PSN, and give them to
 * modify_qp. Decided here: which modify_qp is allowed, which end connects and when, the hello that
 * the ends exchange, and when a peer is given up. roce/byhand_conn.c carries it out.
 *
 * Sequential, without clock, socket, lock or allocation: @now is in milliseconds.
 */
#ifndef RL_BYHAND_H
#define RL_BYHAND_H

#include "kernel/core/qp.h"

/* ---- modify_qp ---- */

/*
 * The table of the InfiniBand specification, 11.2.5.2: may a QP of @type (IBV_QPT_RC, _UC, _UD) go
 * from one state to another with these attributes? @mask has IBV_QP_ bits except IBV_QP_STATE.
 * States are enum ibv_qp_state's.
 */
bool rl_byhand_may_modify(u32 type, u32 from, u32 to, u32 mask);

/* ---- the hello ---- */

/*
 * Each end's hello to the other, in the private data of MPA's Request and Reply. Only the two
 * programs know the PSNs, so they authenticate the sender: the Request has the upper 12 bits of
 * each, the Reply the lower.
 */
struct rl_byhand_hello {
	u8 type;			/* IBV_QPT_: of the QP */
	bool rts;			/* sent and rnr_retry are valid */
	bool large_fpdus;		/* the sender wants FPDUs larger than a segment */
	u8 rnr_retry;
	u32 from, to;			/* QP numbers */
	u16 awaited;			/* half of the PSN that the sender expects */
	u16 sent;			/* half of the one that it will send */
};

/* Magic, version, then these, in network order. */
#define RL_BYHAND_HELLO_LEN 20
/* 1 had no acknowledgement Reads; 2 had whole PSNs, so that a Request gave the Reply away. */
#define RL_BYHAND_VERSION 3

void rl_byhand_write_hello(u8 p[RL_BYHAND_HELLO_LEN], const struct rl_byhand_hello *w);
/* Version, or 0 if the magic is absent. */
u8 rl_byhand_hello_version(const u8 *p, u32 len);
/* False: not a hello, or of another version. */
bool rl_byhand_read_hello(const u8 *p, u32 len, struct rl_byhand_hello *w);

/* ---- a QP ---- */

enum rl_byhand_phase {
	RL_BYHAND_OFF,			/* before RTR, and once the QP is in error */
	RL_BYHAND_UNCONNECTED,			/* there is no connection yet */
	RL_BYHAND_CONNECTING,			/* this end connects */
	RL_BYHAND_CONNECTED,
	RL_BYHAND_GONE,			/* the connection has ended; there will be no other */
};

struct rl_byhand {
	enum rl_byhand_phase phase;
	u8 type;			/* IBV_QPT_ */
	u8 own_gid[16], peer_gid[16];
	u32 own_qpn, peer_qpn;
	u32 rq_psn;			/* the first that the peer must send */

	/* from RTS on */
	bool rts;
	u32 sq_psn;
	u8 timeout, retry_cnt;		/* InfiniBand's encodings */
	u8 rnr_retry;

	struct rl_byhand_hello peer;	/* the latest; awaited is valid once CONNECTING */
	u8 bad_psns;			/* hellos with the right numbers and wrong PSNs */
	u64 since;			/* RTR */
	u64 connect_at;			/* UNCONNECTED, initiator: when to connect */
	u64 give_up_at;			/* a work request's deadline for a peer; 0: none waits */
	bool timed_out;			/* UC: one has timed out, and no other waits */
};

/* The caller's next action. */
enum rl_byhand_act {
	RL_BYHAND_NOTHING,
	/* Connect; then rl_byhand_connect_failed() or rl_byhand_receive_hello() is next. */
	RL_BYHAND_CONNECT,
	RL_BYHAND_DISCONNECT,		/* the connection is not the peer's: end it */
	RL_BYHAND_GIVE_UP,		/* RETRY_EXC_ERR for the oldest work request; into error */
	RL_BYHAND_DROP_SENDS,		/* UC: complete work requests, unsent */
};

/* Both ends are the same QP: it connects to itself, and receives its own hello. */
bool rl_byhand_is_self(const struct rl_byhand *h);

/* RTR: the caller has set all above rts. rl_byhand_deadline() has a new value. */
void rl_byhand_enter_rtr(struct rl_byhand *h, u64 now);
/* RTS: the caller has set sq_psn to rnr_retry. */
enum rl_byhand_act rl_byhand_enter_rts(struct rl_byhand *h, u64 now);
/* RESET or ERR. */
void rl_byhand_stop(struct rl_byhand *h);

/* When to call rl_byhand_tick(); 0: never. */
u64 rl_byhand_deadline(const struct rl_byhand *h);
enum rl_byhand_act rl_byhand_tick(struct rl_byhand *h, u64 now);

/* A work request waits, and there is no connection. */
void rl_byhand_posted(struct rl_byhand *h, u64 now);

/* CONNECTING: this attempt has failed. */
void rl_byhand_connect_failed(struct rl_byhand *h, u64 now);
/*
 * CONNECTED: the connection has ended. @used: it may have carried out work requests, so that no
 * other can replace it. @sends: some have not completed.
 */
void rl_byhand_disconnected(struct rl_byhand *h, bool used, bool sends, u64 now);

/*
 * How long a peer may be silent that TCP asks, in ms, while requests wait for it: as long as the
 * retries would take. @otherwise if nothing waits, or the program has set no time-out, or is not in
 * RTS; and for UC, which has no retries.
 */
u32 rl_byhand_dead_ms(const struct rl_byhand *h, u32 otherwise);
/*
 * CONNECTED: the peer has been silent so long. @sends: some requests have not completed: RC's fail.
 * Without any, as on InfiniBand, nothing is lost: another connection is made once there is a way.
 */
void rl_byhand_peer_is_dead(struct rl_byhand *h, bool sends, u64 now);

/* This end's hello. */
void rl_byhand_make_hello(const struct rl_byhand *h, struct rl_byhand_hello *w);

enum rl_byhand_verdict {
	RL_BYHAND_ACCEPT,			/* CONNECTED now */
	RL_BYHAND_NOT_YET,		/* it may fit later */
	RL_BYHAND_REJECT,
};

/*
 * A hello has arrived: in a Request, while UNCONNECTED, or in a Reply, while CONNECTING. @own and
 * @peer are the addresses of its connection.
 */
enum rl_byhand_verdict rl_byhand_receive_hello(struct rl_byhand *h, const struct rl_byhand_hello *w,
				  const u8 own[16], const u8 peer[16], u64 now);

/*
 * How long a Send of the peer's waits for a receive, in ms: by its rnr_retry and the receiver's
 * @min_rnr_timer.
 */
u32 rl_byhand_rnr_timeout(const struct rl_byhand *h, u8 min_rnr_timer);

#endif
