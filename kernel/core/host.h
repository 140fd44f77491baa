/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the queue logic asks of its host (the driver, the tests, rootless).
 * Plain functions, resolved when the program or module is linked. All are
 * called with the connection's lock held (in the driver the socket's, possibly
 * in softirq): none may sleep, none may call back into the queue logic of the
 * same QP.
 */
#ifndef WEFT_CORE_HOST_H
#define WEFT_CORE_HOST_H

#include "../proto/stream.h"
#include "../uapi/rdma/weft-abi.h"
#include "region.h"

struct weft_qpc;
struct weft_recv;

/*
 * Looks up an STag (the key byte is not compared here: weft_region_check does)
 * and holds what it finds, so that its pages stay until the put; NULL if there
 * is none. Held from check to the last byte of one FPDU, or of the FPDUs that go out
 * together; never across runs, of which a host may make one lookup for many FPDUs.
 * For a kernel QP the local DMA lkey yields the all-memory region.
 */
struct weft_region *weft_host_region_get(struct weft_qpc *qp, u32 stag);
void weft_host_region_put(struct weft_qpc *qp, struct weft_region *r);

/* Copies @len bytes from the cursor into @r at @addr. The range was checked. */
void weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len);

/* A chunk of WEFT_STAGE_CHUNK bytes for the stream's stage, or NULL. */
u8 *weft_host_chunk(struct weft_qpc *qp);
void weft_host_chunk_free(struct weft_qpc *qp, u8 *chunk);

/* Publishes a completion on the QP's receive or send CQ; wakes its consumer. */
void weft_host_complete(struct weft_qpc *qp, bool recv, const struct weft_cqe *cqe);

/*
 * Takes one entry from the QP's SRQ; false when it is empty. Uses weft_srqc_pop()
 * under the SRQ's lock and raises the limit event.
 */
bool weft_host_srq_pop(struct weft_qpc *qp, struct weft_recv *recv);

/* Something is to be sent that no doorbell announced: run weft_tx_next() soon. */
void weft_host_kick(struct weft_qpc *qp);

enum weft_event {
	WEFT_EV_TERM_SENT,		/* we found an error; qp->term_out is next, or our FIN
					 * is out already
					 */
	WEFT_EV_TERM_RECEIVED,		/* qp->term_in */
	WEFT_EV_LOCAL_ERROR,		/* a bad work request or ring */
	WEFT_EV_RTS,			/* the peer's first FPDU has come: sends may flow */
	WEFT_EV_FLUSHED,		/* the QP has entered error and its queues are flushed
					 * (QP_LAST_WQE_REACHED for SRQ users) */
};
void weft_host_event(struct weft_qpc *qp, enum weft_event ev);

/*
 * Makes an STag unusable (LOCAL_INV; SEND_INV when @remote; READ_INV).
 * Returns WEFT_GRANTED, or why not: design rule "remote only for fast-registered
 * regions of this QP". New lookups fail at once; current holders finish their FPDU.
 */
enum weft_denial weft_host_invalidate(struct weft_qpc *qp, u32 stag, bool remote);

/* REG_MR of a kernel consumer. */
enum weft_denial weft_host_reg_mr(struct weft_qpc *qp, const struct weft_wr_reg *reg);

#endif
