/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The other end of the reflector protocol: with a reflector behind the peer, data is moved in
 * every way and compared, then the connection is closed. So a program over weft can be tried
 * against a manner (manner.h).
 */
#ifndef SELF_PEER_DRIVE_H
#define SELF_PEER_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end;
struct reflector_completion;

struct drive {
	unsigned int step;
	uint32_t seq;
	uint64_t big;      /* the peer's */
	uint32_t stag;
	bool began, over;
};

/* Our private data: REQUEST of an initiator, or nothing; its length. */
uint16_t drive_private_data(bool initiator, uint8_t *pd);
/* Full Operation began; the peer's private data. */
void drive_up(struct end *e, const uint8_t *pd, size_t len);
void drive_received(struct end *e, uint32_t slot, const struct reflector_completion *c);
void drive_sent(struct end *e, uint64_t id, const struct reflector_completion *c);
void drive_closed(struct end *e);
/* -1: no connection was in Full Operation yet; 0: all came right. */
int drive_status(void);

#endif
