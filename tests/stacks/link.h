/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP's connection: MPA start-up in both roles, the receive run and the send
 * run, as the driver does them, over an abstract byte stream. Who has a wire or
 * a socket gives three functions and calls host_link_rx(), _fin(), _tx().
 */
#ifndef STACKS_LINK_H
#define STACKS_LINK_H

#include "host.h"

struct host_link_ops {
	/* Takes some of @len octets, none if TCP is full. @eor: see MSG_EOR. */
	size_t (*write)(void *arg, const void *p, size_t len, bool eor);
	/* Closes the sending side, behind everything written. */
	void (*shutdown)(void *arg);
	/* Resets the connection. */
	void (*abort)(void *arg);
};

struct host_link_cfg {
	struct weft_mpa_cfg mpa;
	u32 emss;			/* payload octets of a segment */
	u32 batch;			/* FPDUs of a send run at most */
	bool lean;			/* give the stage's chunks back after each receive run */
	bool hold_accept;		/* responder: the ULP calls host_link_accept() */
	bool reject;			/* responder: the ULP says no */
	const void *pd;			/* private data of our frame */
	u16 pd_len;
};

enum host_link_state {
	HOST_LINK_STARTUP,
	HOST_LINK_FULL,			/* Full Operation */
	HOST_LINK_OVER,			/* failed, rejected or released: bytes are dropped */
};

struct host_link {
	struct host_link_cfg cfg;
	const struct host_link_ops *ops;
	void *arg;
	struct host_qp *qp;
	bool initiator;
	enum host_link_state state;
	struct weft_stream st;
	struct weft_mpa_frame own, peer; /* start-up frames */
	struct weft_mpa_agreed agreed;
	bool rejected;			/* the peer said no */
	bool v1_retry;

	/* private copies that TCP has not taken yet */
	u8 *out;
	u32 out_len, out_done, out_cap;
	bool out_eor;
	u32 seg_off;			/* where we are in TCP's current segment */
	bool fin_due;			/* the core said FIN: once TCP has all */
	bool tx_closed;
	bool rx_closed;			/* FIN came */

	/* what the send run did */
	u32 fpdus, aligned, runs;
	u32 longest;			/* octets of the longest FPDU */
};

/* The initiator's Request goes out at once. @qp stays IDLE until agreement. */
void host_link_init(struct host_link *l, struct host_qp *qp, bool initiator,
		    const struct host_link_cfg *cfg, const struct host_link_ops *ops, void *arg);
/* Takes back what was lent to the stream. */
void host_link_fini(struct host_link *l);

/* Responder with hold_accept: answers the Request. */
void host_link_accept(struct host_link *l);

/* Octets, FIN, RST from the peer. */
void host_link_rx(struct host_link *l, const struct weft_seg *seg, u32 nseg);
void host_link_fin(struct host_link *l);
void host_link_reset(struct host_link *l);

/* A send run is due: somebody kicked, or octets wait and TCP may have room. */
static inline bool host_link_waits_for_tcp(const struct host_link *l)
{
	return l->out_done < l->out_len;
}

void host_link_tx(struct host_link *l);

/* The user: graceful close; QP to ERROR, which ends the connection. */
void host_link_close(struct host_link *l);
void host_link_abort(struct host_link *l);

#endif
