/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-reflector, the front over librdmacm and libibverbs: sessions, queues
 * and connections, each in a file of its own.  One thread.
 */
#ifndef REFLECTOR_VERBS_H
#define REFLECTOR_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "core.h"

#define SQ_DEPTH 128

struct session {
	struct reflector_session memory;
	struct ibv_pd *pd, *pd2;
	struct ibv_srq *srq;
	struct ibv_mr *mr[REFL_REGIONS];
};

struct link {
	struct reflector_link ulp;
	struct rdma_cm_id *id; /* NULL: connected by hand */
	struct ibv_context *verbs;
	struct ibv_qp *qp;
	struct session *s;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_mw *mw;
	bool dead, mute; /* mute: its completion queue is not polled */
};

extern bool declares_imm, verbose;

/* verbs-session.c */
/* The session of this cookie, a new one if there is none; NULL: it fails. */
struct session *session_get(struct ibv_context *verbs, uint64_t cookie);
int deregister_region(struct reflector_link *r, enum refl_region region);
int register_and_forget(struct reflector_link *r, uint32_t count);

/* verbs.c: memory, queues and receives, as the REQUEST has it. */
int join_session(struct link *l, const struct reflector_request *q);

/* verbs-hand.c: does not return, or -1 and errno. */
int serve_by_hand(const char *host, const char *port);

/* verbs-queue.c */
extern const struct reflector_ops verbs_ops;
int create_queues(struct link *l);
void destroy_queues(struct link *l);
/* Takes all completions and does what they ask for. */
void drain_completions(struct link *l);
void on_completion_event(struct link *l);

#endif
