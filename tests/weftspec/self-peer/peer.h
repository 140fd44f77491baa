/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The self-peer: weft's own proto and core stack behind TCP sockets, as
 * responder or initiator, with the reflector (../reflector.h) on top and a
 * switchable fault between the stack and the socket.  It proves the tester: a
 * clean run passes, and each fault is found.  It never learns which case runs.
 */
#ifndef SELF_PEER_H
#define SELF_PEER_H

#include "../../stacks/link.h"
#include "../../stacks/post.h"
#include "../reflector/core.h"
#include "drive.h"
#include "fault.h"

#define CQ_DEPTH 256
#define SQ_SLOTS 256
#define RQ_SLOTS 64
#define TX_BUF (1u << 20)

struct session {
	struct reflector_session memory;
	struct host host;
	struct host_mr *mr[REFL_REGIONS];
	struct host_mr *window;
	struct host_srq *srq;
};

/* One connection. */
struct end {
	struct end *next;
	int fd;
	bool initiator, up, gone;
	bool told_shut, shut_done, fin_seen;
	struct host scratch;      /* owner of the QP until the session is known */
	struct host_qp *idle_qp;
	struct host_link link;
	struct session *s;
	struct host_qp *qp;
	struct host_cq *scq, *rcq;
	struct reflector_link ulp;
	u8 table[512];            /* the private data of a Request */
	u16 table_len;
	struct drive drive;       /* with self_cfg.drive, in place of ulp's */
	struct fault_dir in, out;
	u8 *tx;                   /* octets that the socket has not taken */
	u32 tx_len, tx_done;
	u32 mss;
	u64 began;
	u64 taken;                /* octets of the stack that tx has taken */
};

struct self_cfg {
	bool markers, p2p, no_crc;
	bool drive;               /* not a reflector, but its other end */
	bool no_ext;              /* RFC 7306 is switched off */
	u16 ird, ord;
	int pd_len;               /* private data instead of TABLE; -1: TABLE */
	int startup_ms;
	u8 rev;
	u8 rtr;                   /* WEFT_RTR_ kinds that it sends and takes */
};
extern struct self_cfg self_cfg;

/* reflect.c: the ULP */
void reflect_request(struct end *e);          /* a Request stands in the stream */
bool reflect_connect(struct end *e, u64 cookie, u8 *pd, u16 *pd_len);
void reflect_up(struct end *e);               /* Full Operation began */
void reflect_poll(struct end *e);             /* completions */
void reflect_closed(struct end *e);
void reflect_drop_idle(void);

/* sock.c */
int sock_serve(const char *where);
int sock_call(const char *where, int conns);

#endif
