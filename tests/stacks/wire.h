/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One direction of a TCP connection, in memory: a bounded send buffer, segments of at most an MSS,
 * a receiver that gets the bytes in any portions, FIN after the last byte, and a reset that loses
 * everything.
 */
#ifndef STACKS_WIRE_H
#define STACKS_WIRE_H

#include "rng.h"
#include "../../kernel/proto/bytes.h"

struct wire {
	u32 mss;
	u32 sndbuf;			/* limit of bytes in it; a start-up frame is on top */
	u8 *buf;			/* size bytes: [head, tail), compacted on write */
	u32 size;
	u32 head, tail;
	bool fin;			/* the sender has closed */
	bool fin_read;			/* the receiver has read the FIN */
	bool dropped;			/* reset */
	u64 sent;			/* octets accepted so far */
	u32 seg_off;			/* octets in the segment being filled */
	u32 segments;			/* segments begun */
	u32 calls;
};

enum wire_cut {
	WIRE_WHOLE,			/* everything, in one piece */
	WIRE_RANDOM,			/* random portions of random pieces, empty ones too */
	WIRE_BYTES,			/* one octet at a time */
};

/* A delivery: pieces on the heap, each of exactly its length. */
struct wire_batch {
	struct weft_seg seg[16];
	u32 nseg;
	u32 len;
};

void wire_init(struct wire *w, u32 mss, u32 sndbuf);
void wire_fini(struct wire *w);
/*
 * Takes as much of @len octets as fits; @eor: the segment ends with them. The first write is a
 * start-up frame, which is taken whole and has a segment to itself.
 */
size_t wire_write(struct wire *w, const void *p, size_t len, bool eor);
void wire_close(struct wire *w);
void wire_drop(struct wire *w);

/* As TCP's: there is room after a FIN, too, but writing then is a fault of the caller. */
static inline u32 wire_room(const struct wire *w)
{
	u32 waiting = w->tail - w->head;

	return w->dropped || waiting >= w->sndbuf ? 0 : w->sndbuf - waiting;
}

static inline u32 wire_waiting(const struct wire *w)
{
	return w->tail - w->head;
}

/* Takes some waiting octets off the wire; free them with wire_batch_free(). */
void wire_read(struct wire *w, enum wire_cut cut, struct rng *rng, struct wire_batch *b);
void wire_batch_free(struct wire_batch *b);

/* True once, when all octets were read and a FIN follows them. */
bool wire_read_fin(struct wire *w);

#endif
