/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A peer in a process of its own: it takes one connection after another, and obeys. */
#ifndef DEMAND_H
#define DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

/* Its orders, in memory that all processes share. All atomic. */
struct demand {
	int listens;			/* it does */
	int send;			/* messages that it is to send */
	int answers;			/* so many it answers first */
	int writes;			/* it writes BUF octets to @addr all the time */
	int read;			/* it is to read them, once; 0 again when it has */
	int over;			/* the connection is; 0 again when it has closed it */
	uint64_t addr;
	uint32_t rkey;
};

int load(const int *n);
void store(int *n, int to);
void add(int *n, int more);

/* Zeroed, shared with all children. */
void *shared_memory(size_t len);
/* Starts it; it listens when this returns. It ends with the caller. */
void demand_start(struct demand *d, const char *addr, const char *port);
/* A connection to it. It has posted one receive, and posts another for each message that it takes. */
void demand_connect(struct conn *c, const char *addr, const char *port);
/* The peer closes the connection, which the caller may have closed already. */
void demand_end(struct demand *d);

#endif
