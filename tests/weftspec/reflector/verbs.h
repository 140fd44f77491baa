/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside weft-reflector: sessions (memory and its regions), the commands, and
 * connections, each in a file of its own.
 */
#ifndef REFLECTOR_VERBS_H
#define REFLECTOR_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "reflector.h"

#define PAGE 4096
#define AT_STATUS (9 * PAGE)
#define AT_BIG (12 * PAGE + REFL_ODD)
#define AT_RECV (272 * PAGE)
#define RECV_SLOTS 32
#define RECV_AREA (RECV_SLOTS * REFL_RECV_STRIDE)
#define AREAS 8
#define AT_TX (AT_RECV + AREAS * RECV_AREA)
#define TX_SLOTS 64
#define TX_SIZE 256
#define ARENA (AT_TX + AREAS * TX_SLOTS * TX_SIZE)
#define SQ_DEPTH 128

struct session {
	struct session *next;
	uint64_t cookie;
	struct ibv_context *verbs;
	struct ibv_pd *pd, *pd2;
	struct ibv_srq *srq;
	struct ibv_mr *mr[REFL_REGIONS];
	uint8_t *arena;
	uint32_t caps;
	unsigned int links, conns;
	unsigned long used; /* for the choice of the one to drop */
};

struct link {
	struct rdma_cm_id *id;
	struct session *s;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_mw *mw;
	unsigned int idx, flags, recv_next, tx_next, recv_count;
	bool dead, mute; /* mute: its completion queue is not polled */
};

/* verbs-session.c */
struct session *session_get(struct ibv_context *verbs, uint64_t cookie);
/* An event for the status block. */
void session_note(struct session *s, unsigned int conn, enum refl_event kind,
		  uint8_t status, const uint32_t v[3], const uint8_t *head);
size_t region_at(int r);
size_t region_len(int r);
extern bool declares_imm, verbose;

/* verbs-queue.c */
uint8_t *recv_slot(const struct link *l, unsigned int slot);
int post_recvs(struct link *l, unsigned int n);
void send_note(struct link *l, uint32_t magic, uint32_t seq, uint32_t status,
	       uint32_t value);
/* Takes all completions and does what they ask for. */
void drain(struct link *l);
void on_completion(struct link *l);

#endif
