/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Getting a stream to the peer: as initiator (the peer is responder) or as
 * responder to a peer that is started with --exec.
 */
#ifndef WEFTSPEC_PEER_H
#define WEFTSPEC_PEER_H

#include "stream.h"

/* The tester's own start-up frame.  hs_default() fills in a right one. */
struct hs {
	uint8_t key[MPA_KEY];
	uint8_t flags, rev;
	struct mpa_enh enh;
	const uint8_t *pd;  /* NULL: the reflector's REQUEST */
	size_t pd_len;
	bool no_pd;
	int pd_claim;       /* PD_Length on the wire, -1: as it is */
	size_t cut;         /* send only so many octets, 0: all */
	size_t split;       /* first TCP segment ends here, 0: one segment */
	bool bytewise;
	const uint8_t *tail; /* octets right behind, in the same segment */
	size_t tail_len;
};

enum reply { REPLY_OK, REPLY_REJECT, REPLY_CLOSED, REPLY_QUIET, REPLY_JUNK };

void hs_default(struct ctx *c, struct hs *h);
void hs_v1(struct ctx *c, struct hs *h);

/* TCP only. */
struct stream *dial(struct ctx *c);
void send_frame(struct stream *s, const struct hs *h);
/* The peer's start-up frame into s->theirs, s->pd. */
enum reply read_frame(struct stream *s, int ms);

/* Responder role of the peer: connect, Request, Reply, Full Operation. */
struct stream *open_hs(struct ctx *c, const struct hs *h);
/* The same, but reports instead of ending the case. */
struct stream *try_hs(struct ctx *c, const struct hs *h, enum reply *how);

/* Initiator role: start the peer with these arguments; take its Request. */
struct stream *take_request(struct ctx *c, const char *args);
struct stream *take_another(struct ctx *c);
/* Our Reply, then the RTR and the HELLO where they are due. */
void answer(struct stream *s, const struct hs *h);
void answer_default(struct stream *s, struct hs *h);
/* Only the Reply. */
void answer_only(struct stream *s, const struct hs *h);
/* Receives the peer's RTR and answers it; false when none came. */
bool take_rtr(struct stream *s, int ms);
void stop_peer(struct ctx *c);

/* A stream in Full Operation with the reflector behind it, in either role. */
struct stream *full(struct ctx *c);
struct stream *full_hs(struct ctx *c, const struct hs *h);
/* Two streams of one session. */
void pair(struct ctx *c, struct stream **a, struct stream **b);

#endif
