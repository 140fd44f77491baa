/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the parts of wild share: see wild.c. */
#ifndef WILD_H
#define WILD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/weft-abi.h>

/* ---- what has been reached: one count each, shared by all processes ---- */

/*
 * X(name, said, due): every kind that is due must have happened at least once, or the run proves
 * nothing. What is not due, weft refuses, or the kernel may not have.
 */
#define WILD_COUNTS(X) \
	X(CONTEXT, "contexts", true) \
	X(PD, "protection domains", true) \
	X(MR, "regions", true) \
	X(REREG, "regions registered anew", true) \
	X(DMABUF, "regions of dmabufs", false) \
	X(MW, "windows", true) \
	X(CHANNEL, "completion channels", true) \
	X(ASYNC, "files of asynchronous events", true) \
	X(CQ, "completion queues", true) \
	X(CQ_RESIZE, "completion queues resized", true) \
	X(SRQ, "shared receive queues", true) \
	X(SRQ_RESIZE, "shared receive queues resized", true) \
	X(SRQ_MODIFY, "shared receive queues modified", true) \
	X(QP, "queue pairs", true) \
	X(QP_MODIFY, "queue pairs modified", true) \
	X(QUERY, "queries", true) \
	X(DESTROY, "objects destroyed", true) \
	X(RING, "rings mapped", true) \
	X(ODD_MMAP, "odd mappings taken", true) \
	X(SCRIBBLE, "scribbles", true) \
	X(KICK, "doorbells", true) \
	X(EVENT, "events of verbs read", true) \
	X(ODD_WRITE, "odd write commands taken", false) \
	X(ODD_IOCTL, "odd methods taken", false) \
	X(VERBS_REFUSED, "verbs calls refused", true) \
	X(CM_ID, "rdma_cm ids", true) \
	X(CM_BIND, "ids bound", true) \
	X(CM_RESOLVED, "routes resolved", true) \
	X(CM_LISTEN, "listeners", true) \
	X(CM_REQUEST, "connection requests", true) \
	X(CM_CONNECT, "connects", true) \
	X(CM_ACCEPT, "accepts", true) \
	X(CM_REJECT, "rejects", true) \
	X(CM_ESTABLISHED, "connections", true) \
	X(CM_DISCONNECT, "disconnects", true) \
	X(CM_MIGRATE, "ids migrated", true) \
	X(CM_OPTION, "options of ids", true) \
	X(CM_QUERY, "queries of ids", true) \
	X(CM_JOIN, "multicast groups joined", false) \
	X(CM_REFUSED, "rdma_cm calls refused", true) \
	X(SENT, "Sends done", true) \
	X(RECEIVED, "receives done", true) \
	X(WRITTEN, "Writes done", true) \
	X(READ, "Reads done", true) \
	X(ATOMIC, "atomics done", true) \
	X(BOUND, "windows bound", true) \
	X(FLUSHED, "requests flushed or failed", true) \
	X(LINK_ADD, "devices added", true) \
	X(LINK_DEL, "devices deleted", true) \
	X(RENAME, "devices renamed", true) \
	X(NETNS, "devices moved", false) \
	X(DUMP, "netlink dumps", true) \
	X(NET_TAKEN, "odd netlink calls taken", false) \
	X(NET_REFUSED, "netlink calls refused", true) \
	X(OPTION_READ, "files of a device read", true) \
	X(OPTION_SET, "options of a device set", true) \
	X(FORK, "forks", true) \
	X(PASSED, "files passed on", true) \
	X(FAULT, "calls that an allocation failed", false) \
	X(LIVES, "lives", true)

enum count {
#define X(name, said, due) name,
	WILD_COUNTS(X)
#undef X
	NR_COUNTS
};

#define QPNS	64
#define PLACES	8

/* All processes'. */
struct common {
	_Atomic uint64_t counts[NR_COUNTS];
	uint32_t qpns[QPNS];		/* of anybody's QPs */
	struct place {
		uint32_t address;	/* of addresses[] */
		uint16_t port;
	} listening[PLACES];
	int post[2];			/* files are passed through it */
	_Atomic bool over;		/* all lives end */
};

extern struct common *common;

static inline bool counted(enum count what, bool done)
{
	if (done)
		common->counts[what]++;
	return done;
}

/* ---- chance: each thread has its own ---- */

uint64_t rnd(void);
void rnd_seed(uint64_t seed);
uint32_t below(uint32_t n);
bool once_in(uint32_t n);
/* A number that may hurt: near @old, small, at an edge, anything. */
uint64_t nasty(uint64_t old);
/* How odd this thread's calls are: one in so many is spoiled in some place; 0: none. */
extern __thread uint32_t mischief;
/* Now and then, at the thread's mischief: changes a word of what a call is about to say. */
void spoil(void *at, size_t len);
/* Memory to be registered, written to and read; answers go to its first half. */
#define BUF	(256 * 1024)
extern uint8_t *buf;
uint64_t any_pointer(void);
void pause_ms(uint32_t ms);
int64_t now_ms(void);
/* For this thread's next call an allocation may fail; afterwards none does. */
void fault_begin(void);
void fault_end(void);

/* ---- verbs: wild-verbs.c ---- */

#define FILES	4

struct file {
	int fd;				/* of a command file, or -1 */
	uint64_t guid;			/* its device's */
	bool passed;			/* another process opened it */
};

extern struct file files[FILES];

enum kind { NONE, K_PD, K_MR, K_MW, K_CHANNEL, K_CQ, K_SRQ, K_QP, K_DM, NR_KINDS };

struct obj {
	uint8_t kind, file;
	uint32_t handle, key, rkey;	/* of a QP: key is its number */
	struct weft_ring_map map[2];
};

struct ring {
	uint8_t *at;			/* NULL: none */
	size_t size;
	uint64_t off;
	uint32_t slots;
	uint8_t file;
};

/* All that a program needs for a connection. */
struct queues {
	uint8_t file;
	struct obj channel, pd, mr, mw, cq, srq, qp;
	struct ring *cq_ring, *sq, *rq;
	uint32_t cq_at, sq_at, rq_at;
	uint64_t cookie;
	bool bound;
};

/* A command file of the device that has @guid; 0: of any. -1: none. */
int verbs_open(uint64_t guid);
bool queues_make(struct queues *q, int file);
/* In any order, or in part not at all. */
void queues_end(struct queues *q);
void queues_post(struct queues *q, uint64_t remote, uint32_t rkey);
void queues_poll(struct queues *q);
/* One random call; the threads of a process share files and objects. */
void verbs_any(void);
void scribble(void);
/* Files that came from elsewhere. */
void verbs_adopt(int fd);
bool ring_kick(uint8_t file, uint16_t object, uint32_t handle);

/* ---- rdma_cm: wild-cm.c ---- */

/* Where a device is. */
extern const char **addresses;
extern int nr_addresses;
/* A listener for a while, and its requests; a connection. */
void cm_serve(void);
void cm_call(void);
void cm_any(void);
void cm_adopt(int fd);

/* ---- the device itself: wild-link.c ---- */

/* @keeper: may add, delete and rename. One random call. */
void link_any(bool keeper);

#endif
