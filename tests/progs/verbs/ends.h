/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both ends of a connection in this process, over the device that has @addr: the client initiates,
 * the server responds. For programs of cases (cases.h), each of which has a new connection.
 */
#ifndef ENDS_H
#define ENDS_H

#include "conn.h"

#define BUF		16384	/* octets of each buffer */
#define DEPTH		32	/* of each queue */
#define TIMEOUT		60000	/* ms, for anything that must happen */

struct ends {
	struct conn c, s;
	const char *addr, *port;
	uint8_t *from, *to;		/* the client's buffer, the server's */
	struct ibv_mr *from_mr;
	uint64_t key;			/* of the pattern in @from */
};

/* Page-aligned, BUF octets. */
void *ends_buffer(void);
/* The server listens. */
void ends_init(struct ends *e, const char *addr, const char *port);
/* Connects them; @serve accepts the server's part, in a thread of its own. */
void ends_open(struct ends *e, void *(*serve)(void *arg), const void *arg);
void ends_close(struct ends *e);

struct ibv_sge sge_of(void *at, uint32_t len, const struct ibv_mr *mr);
/* Waits for the next completion: is it @id's, with @status? */
bool took_status(struct conn *c, uint64_t id, enum ibv_wc_status status);
bool took(struct conn *c, uint64_t id);
/* The pattern that the client's buffer had, or zeros. */
bool is_pattern(const struct ends *e, const uint8_t *p, uint32_t len);
bool is_clear(const uint8_t *p, uint32_t len);

#endif
