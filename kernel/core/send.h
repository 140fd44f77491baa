/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The send run of a connection. Lock: as in link.h. */
#ifndef WEFT_CORE_SEND_H
#define WEFT_CORE_SEND_H

#include "link_types.h"

/*
 * Octets that a run sends, and as many that it reads: where the host may sleep between two; and
 * where others wait for the CPU.
 */
#define WEFT_SLICE		(256 * 1024)
#define WEFT_SLICE_SHORT	(64 * 1024)

/*
 * One run of the send side: @most octets, and what completes an FPDU; weft_host_kick() asks for the
 * next.
 */
void weft_send_run(struct weft_link *l, u32 most);

/* Appends a Terminate that is still due to the batch in hand. */
void weft_send_last_words(struct weft_link *l);

/*
 * Before the QP and the connection go: answers the peer's acknowledgement Reads, if no other answer
 * is due.
 */
void weft_send_answers(struct weft_link *l);

/*
 * Users' memory went away under weft_send_run(), which the host had to leave in the middle: the
 * QP fails, nothing more is sent, and the host is woken to step. It has reset TCP's connection.
 */
void weft_send_break_off(struct weft_link *l);

/* Is there nothing left that TCP has not taken? */
static inline bool weft_send_is_done(const struct weft_link *l)
{
	return l->broken || weft_batch_is_sent(&l->batch);
}

#endif
