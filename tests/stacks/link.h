/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host of a connection (core/link.h) over an abstract byte stream, with a clock that stands
 * still until it is set. The owner of a wire or a socket supplies some functions and calls
 * host_link_rx(), _fin(), _reset(), _tx(). After every step the host asserts what core/link.h
 * promises about actions and their order.
 */
#ifndef STACKS_LINK_H
#define STACKS_LINK_H

#include "host.h"
#include "../../kernel/core/link.h"

struct host_link_ops {
	/* Takes some of @len octets, none if TCP is full. @flags: WEFT_SEND_. */
	size_t (*write)(void *arg, const void *p, size_t len, u32 flags);
	void (*tail)(void *arg, struct weft_tcp_tail *tail);
	/* How many octets the peer has acknowledged; may be NULL: all. */
	u64 (*acked)(void *arg);
	/* Closes the sending side, after everything written. */
	void (*shutdown)(void *arg);
	/* Resets the connection. */
	void (*abort)(void *arg);
};

struct host_link_cfg {
	struct weft_mpa_cfg mpa;
	u32 batch;			/* sizes the memory of a batch; 1: the least there is,
					 * and one batch a run */
	u32 startup_ms, close_ms;	/* 0: no time-out */
	u32 dead_ms;			/* 0: TCP alone decides */
	u32 hold_ms;			/* 0: the connection ends with its QP */
	u32 accept_ms;			/* 0: startup_ms */
	u32 rnr_ms;			/* 0: a Send that finds no receive is an error at once */
	u16 pd_max;			/* 0: the maximum */
	bool ext;			/* RFC 7306 */
	bool large_fpdus;
	u32 rest_spare;			/* octets lent for a batch's rest beyond those asked for */
	u32 part_min;			/* payload of FPDUs that are taken in parts; 0: none */
	bool lean;			/* give the stage's chunks back after each receive run */
	bool itself;			/* initiator: the wire leads back to this end */
	bool hold_connect;		/* initiator: TCP's handshake lasts until
					 * host_link_connected() */
	bool hold_accept;		/* responder: the ULP calls host_link_accept() */
	bool hold_steps;		/* the test takes steps itself: host_link_step() */
	bool reject;			/* responder: the ULP rejects */
	const void *pd;			/* private data of our frame */
	u16 pd_len;
};

struct host_link {
	struct weft_link core;
	struct host_link_cfg cfg;
	const struct host_link_ops *ops;
	void *arg;
	struct host_qp *qp;		/* the user's, whether or not core has it */
	struct weft_offer offer;
	struct weft_orq_entry *orq;	/* lent: blocks of exactly their size */
	struct weft_irq_entry *irq;
	void *batch;
	void *rest;			/* its memory while the batch moves to that of a rest */
	u32 batch_size, rest_size;

	/* TCP, as seen from here */
	bool connecting;
	int tcp_error;
	bool tx_closed;			/* we have closed */
	bool rx_closed;			/* FIN was received */
	bool reset;
	u64 written;
	u32 unanswered;			/* probes and retransmissions since heard; a test sets it */
	u64 now, heard, acked;		/* ms; time of the peer's last sign of life; its octets */

	/* what is due */
	bool step_due;
	u32 wakes;			/* number of steps requested */
	bool seen_closed;		/* the last step saw that TCP has no connection */
	bool await_room;
	u32 tails;			/* batches begun in this run */
	u32 memory_fails;		/* this many times no memory is lent */
	bool rest_fails;		/* none for the rest of a batch */
	u32 rests;			/* number of times memory was lent for a rest */
	bool refuses;			/* TCP returns an error for all data */
	u8 *unread;			/* left in TCP, for want of memory for the stage */
	u32 nunread;

	/* what was done */
	u32 acts;			/* all WEFT_ACT_ ever */
	u32 last_acts;			/* of the last step or call */
	u32 runs, steps, with_refs;
};

static inline bool host_link_is_full(const struct host_link *l)
{
	return l->core.state == WEFT_LINK_OPEN;
}

static inline bool host_link_is_over(const struct host_link *l)
{
	return l->core.state == WEFT_LINK_CLOSING || l->core.state == WEFT_LINK_DEAD;
}

/* The initiator's Request is sent at once. @qp stays IDLE until agreement. */
void host_link_init(struct host_link *l, struct host_qp *qp, bool initiator,
		    const struct host_link_cfg *cfg, const struct host_link_ops *ops, void *arg);
/* @l, zeroed except for what host_link_init() sets, takes over from @old (WEFT_ACT_RETRY). */
void host_link_succeed(struct host_link *l, struct host_link *old);
/* Takes back what was lent. */
void host_link_fini(struct host_link *l);

/* With hold_connect: TCP's handshake is over, with an error if @status is not 0. */
void host_link_connected(struct host_link *l, int status);
/* Responder with hold_accept: answers the Request. */
void host_link_accept(struct host_link *l);

/*
 * Octets, FIN, RST from the peer. Octets without memory wait for more octets, for a step, or for
 * time to pass.
 */
void host_link_rx(struct host_link *l, const struct weft_seg *seg, u32 nseg);
void host_link_fin(struct host_link *l);
void host_link_reset(struct host_link *l);

/* The time in ms. A step follows if the deadline has passed. */
void host_link_set_time(struct host_link *l, u64 now);

/* TCP is full, and something waits for it. */
static inline bool host_link_waits_for_tcp(const struct host_link *l)
{
	return l->await_room;
}

/* True if a run would do something; @room: TCP has room. */
bool host_link_is_ready(const struct host_link *l, bool room);
/* Takes the steps that are due, then a send run. */
void host_link_tx(struct host_link *l);
/* Takes the steps that are due. */
void host_link_take_steps(struct host_link *l);
/* One step, due or not; returns the actions, which have been carried out. */
u32 host_link_step(struct host_link *l);

/* The host has too many connections like it: returns what core decides. */
u32 host_link_evict(struct host_link *l, bool pressed);

/* The user closes gracefully; moves the QP to ERROR; destroys it. The device is removed. */
void host_link_close(struct host_link *l);
void host_link_error(struct host_link *l);
void host_link_forget(struct host_link *l);
void host_link_abort(struct host_link *l);
/* The user disconnects, whatever has become of the QP. */
void host_link_hang_up(struct host_link *l);
/* The connection could not be reported to the ULP. */
void host_link_withdraw(struct host_link *l, int status);

#endif
