/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection whose ends are both in this process, and a buffer at each end. */
#ifndef PAIR_H
#define PAIR_H

#include "conn.h"

#define PAIR_BUF	65536	/* octets */
#define PAIR_DEPTH	8	/* sends and receives of a QP */
#define PAIR_TIMEOUT_MS	20000

struct pair {
	struct conn client, server;
	uint8_t from[PAIR_BUF], to[PAIR_BUF];	/* the client's; the server's */
	struct ibv_mr *from_mr, *to_mr;
	uint64_t key;				/* of the last pattern */
};

/* Listens on @host and @port, and connects the client. Both ends' timeout_ms are set. */
void pair_open(struct pair *p, const char *host, const char *port);

/* Writes a new pattern, and sees that it has arrived. */
bool pair_carries_data(struct pair *p);

#endif
