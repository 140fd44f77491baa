/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults between stack and socket.  Each breaks one thing, for every
 * connection alike.  Both directions are taken apart into start-up frame and
 * FPDUs by the tester's codec, changed, and put together again.
 */
#ifndef SELF_PEER_FAULT_H
#define SELF_PEER_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ddp.h"
#include "../fpdu.h"
#include "../mpa.h"

enum fault {
	F_NONE,
#define FAULT(symbol, name, rows) symbol,
#include "faults.def"
#undef FAULT
};

#define FAULT_ROOM (4u << 20)

struct session;

/* One direction of one connection. */
struct fault_dir {
	bool framed;        /* the start-up frame has passed */
	bool raw;           /* not to be taken apart any more */
	bool swallow;       /* nothing more is let through */
	bool initiator, kill;
	unsigned int segments;  /* of TCP, that brought what has come of the start-up frame */
	uint8_t flags, rev; /* of the frame that passed */
	struct mpa_enh asked;   /* its words, as a manner reads them */
	struct fpdu_tx tx;
	struct fpdu_rx rx;
	uint8_t *buf;
	size_t len;
	unsigned int fpdus, sends;
	uint32_t msn[4], mo[4]; /* next ones of each queue */
	bool open[4];
	uint64_t last_to;
	uint32_t resp_got;
	struct rreq read;       /* the stack's last Read Request */
	uint8_t held[70000];    /* an FPDU that waits to be overtaken */
	size_t held_len;
	struct session **session;
	struct fault_dir *other;
};

bool fault_is(enum fault f);
/* Neither a fault nor a manner: octets pass as they are. */
bool fault_is_clean(void);
int fault_choose(const char *name);
void fault_list(void);

void fault_start(struct fault_dir *in, struct fault_dir *out, bool initiator);
void fault_stop(struct fault_dir *d);
/* Octets of the stack or the socket in, changed ones to dst; their number. */
size_t fault_out(struct fault_dir *out, struct fault_dir *in, const void *p,
		 size_t n, uint8_t *dst, size_t room);
size_t fault_in(struct fault_dir *in, struct fault_dir *out, const void *p,
		size_t n, uint8_t *dst, size_t room);

#endif
