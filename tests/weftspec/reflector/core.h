/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core of all reflectors: the reflector protocol (../reflector.h) without
 * the queues below it.  It lays out and fills a session's memory, reads
 * REQUEST, writes TABLE and the status block, carries out commands and answers
 * them.  What posts, registers and disconnects is the front: verbs.c over
 * librdmacm, kernel.c as a kernel consumer, ../self-peer/reflect.c over weft's
 * own stack.  The core compiles in all three, so it has no memory, no lock and
 * no library call of its own but memcpy() and memset().
 *
 * A front makes no two calls for one link at the same time, nor two for the
 * list of sessions; events of several links may be noted at the same time if
 * the ops have a lock.  Errors are positive errnos, as ACK carries them.
 */
#ifndef REFLECTOR_CORE_H
#define REFLECTOR_CORE_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#endif

#include "bytes.h"
#include "reflector.h"

#define REFLECTOR_PAGE 4096
#define REFLECTOR_RECV_SLOTS 32 /* of one connection */
#define REFLECTOR_TX_SLOTS 64   /* of one connection */
#define REFLECTOR_TX_SIZE 256   /* of a slot; longer Sends go from BIG */

struct reflector_link;

/* A work request for the send queue. */
struct reflector_wr {
	uint64_t id;          /* for reflector_on_sent() */
	enum refl_op op;      /* REFL_SEND to REFL_CSWAP: what to post */
	uint8_t *addr;        /* local octets, or where the answer goes */
	uint32_t len;
	enum refl_region key; /* whose local key stands for addr */
	bool wrong_key;       /* spoil that key */
	bool solicited;
	uint32_t imm;         /* of REFL_SEND_IMM, REFL_WRITE_IMM */
	uint32_t stag;        /* to invalidate, or where to is */
	uint64_t to;
	uint64_t arg, arg2;   /* of Atomics: add or compare, swap */
};

/* What a front does for the core.  What may be NULL is answered EOPNOTSUPP. */
struct reflector_ops {
	/* A receive of REFL_RECV_SIZE octets into this slot. */
	int (*post_recv)(struct reflector_link *l, uint32_t slot);
	/* Copies wr; EOPNOTSUPP for an op that the front has not. */
	int (*post_send)(struct reflector_link *l, const struct reflector_wr *wr);
	int (*disconnect)(struct reflector_link *l);
	/* Takes region r, never ALL, away from the peer; may be NULL. */
	int (*deregister)(struct reflector_link *l, enum refl_region r);
	/*
	 * Makes region r, never ALL, reachable by an STag that the peer may
	 * invalidate; on the send queue, so that ACK goes behind it.
	 */
	int (*bind)(struct reflector_link *l, enum refl_region r, uint32_t seq,
		    uint32_t *stag);
	/*
	 * Registers so many short-lived regions, each STag to
	 * reflector_keep_stag(); may be NULL.
	 */
	int (*draw_stags)(struct reflector_link *l, uint32_t count);
	/* Around one entry of the status block; both may be NULL. */
	void (*lock_status)(struct reflector_link *l);
	void (*unlock_status)(struct reflector_link *l);
	/* A command was carried out, err is its outcome; may be NULL. */
	void (*trace_command)(uint16_t op, int err);
};

/* One set of memory.  The front fills the first group in. */
struct reflector_session {
	void *front;
	const struct reflector_ops *ops;
	const void *device;          /* only links of this device share it */
	uint64_t cookie;
	uint8_t *arena;              /* reflector_arena_size() octets */
	uint32_t big_len;            /* of BIG: a power of two of pages */
	uint32_t areas;              /* of slots; more links than that share */
	uint32_t max_links;          /* at one time; 0: any number */
	uint32_t caps;               /* REFL_CAP_ */
	uint32_t stag[REFL_REGIONS]; /* as TABLE has them; 0: none any more */

	struct reflector_session *next;
	uint32_t conns, links;       /* so far, now */
	unsigned long used;          /* for the choice of the one to drop */
};

/* One connection. */
struct reflector_link {
	void *front;
	struct reflector_session *s;
	uint16_t flags;              /* REFL_F_ of its REQUEST */
	uint32_t idx;                /* number in its session */
	uint32_t recv_count, recv_next, tx_next;
};

/* ---- memory.c: the arena ---- */

size_t reflector_arena_size(uint32_t big_len, uint32_t areas);
/* Every region as the tester expects it, guards, and an empty status block. */
void reflector_fill_arena(struct reflector_session *s);
uint8_t *reflector_region_start(const struct reflector_session *s,
				enum refl_region r);
uint32_t reflector_region_len(const struct reflector_session *s,
			      enum refl_region r);
uint8_t *reflector_status_block(const struct reflector_session *s);
uint8_t *reflector_recv_slot(const struct reflector_link *l, uint32_t slot);
/* The next slot to send from; what was sent from it is still there. */
uint8_t *reflector_tx_slot(struct reflector_link *l);
/* The octet of BIG at off, which counts modulo its length. */
uint8_t *reflector_big(const struct reflector_session *s, uint64_t off);
/* STag number i of REFL_REGISTER. */
void reflector_keep_stag(struct reflector_link *l, uint32_t i, uint32_t stag);
/* An event for the status block.  values: opcode, len, imm; head: 16 octets. */
void reflector_note(struct reflector_link *l, enum refl_event kind,
		    uint8_t status, const uint32_t values[3],
		    const uint8_t *head);

/* ---- session.c: who shares memory ---- */

/* A session of this cookie and device that has room for a link, or NULL. */
struct reflector_session *
reflector_find_session(struct reflector_session *list, uint64_t cookie,
		       const void *device);
void reflector_add_session(struct reflector_session **list,
			   struct reflector_session *s);
void reflector_remove_session(struct reflector_session **list,
			      struct reflector_session *s);
/* The idle session to drop while more than keep are idle, or NULL. */
struct reflector_session *
reflector_idle_session(struct reflector_session *list, uint32_t keep);
/* recvs: what REQUEST asks for; 0: REFL_RECV_COUNT. */
void reflector_join(struct reflector_link *l, struct reflector_session *s,
		    uint32_t recvs);
void reflector_leave(struct reflector_link *l);

/* ---- command.c: the frames ---- */

struct reflector_request {
	uint16_t flags, recv_count;
	uint64_t cookie;
	int pd_len; /* private data to answer with; -1: TABLE */
};

/* False, and a request for nothing, if the private data is no REQUEST. */
bool reflector_read_request(const uint8_t *pd, size_t len,
			    struct reflector_request *q);
/*
 * The reflector's private data to room octets, of which REFL_TABLE_LEN is the
 * least: TABLE if pd_len is negative.  Returns its length.
 */
size_t reflector_write_private_data(const struct reflector_link *l, int pd_len,
				    uint8_t *out, size_t room);
int reflector_post_recvs(struct reflector_link *l, uint32_t n);
void reflector_send_hello(struct reflector_link *l);

/* A completion as the front's queue reports it. */
struct reflector_completion {
	uint8_t status;  /* 0: well */
	uint32_t opcode; /* and what else says how it came */
	uint32_t len, imm;
};

/* Carries out the command that came, or notes what else a receive is. */
void reflector_on_recv(struct reflector_link *l, uint32_t slot,
		       const struct reflector_completion *c);
/* id: of the work request; 0 if the front does not know. */
void reflector_on_sent(struct reflector_link *l, uint64_t id,
		       const struct reflector_completion *c);

#endif
