/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Listening sockets: rdma_cm's listeners (cm/listen.c) and the ports of QP numbers
 * (roce/port_group.c). A connection is half-open until its owner knows what to do with it.
 * Half-open connections are capped: beyond the cap, the oldest is evicted. All acceptors' together
 * have a share of the process's descriptors: budget.h.
 *
 * An acceptor is the first member of its owner's object. Order of locks: an acceptor's, a
 * connection's, half_open_lock.
 */
#ifndef RL_ACCEPT_H
#define RL_ACCEPT_H

#include <pthread.h>

#include "conn.h"
#include "kernel/core/backlog.h"

struct rl_acceptor;

struct rl_acceptor_ops {
	const struct rl_conn_ulp *ulp;	/* of the connections */
	/* @c is new, locked, and awaits its Request. False: it is to be abandoned. */
	bool (*adopt)(struct rl_acceptor *a, struct rl_conn *c);
	/* It was poked, or accepting may work again. No lock. May be NULL. */
	void (*timeout)(struct rl_acceptor *a);
	void (*release)(struct rl_acceptor *a);
};

struct rl_acceptor {
	struct rl_watch watch;		/* first: the references */
	const struct rl_acceptor_ops *ops;

	pthread_mutex_t lock;
	int fd;				/* lock; hidden; -1: it does not listen */

	pthread_mutex_t half_open_lock;	/* of what follows */
	struct list_head half_open;	/* the oldest first */
	struct weft_cap half_open_cap;
};

/* One reference. It does not listen yet. */
void rl_acceptor_init(struct rl_acceptor *a, const struct rl_acceptor_ops *ops);
/* Frees what init made. */
void rl_acceptor_fini(struct rl_acceptor *a);
/*
 * Listens on the bound, hidden, non-blocking socket @fd: 0, or -errno, and the caller still owns
 * @fd.
 */
int rl_acceptor_start(struct rl_acceptor *a, int fd, u32 backlog);
/* Closes the socket. Nothing is accepted any more when this returns. */
void rl_acceptor_stop(struct rl_acceptor *a);

/* Kills all that are still half-open. The owner has no object for any of them. */
void rl_acceptor_drop_half_open(struct rl_acceptor *a);

/* @c is no longer half-open, if it was. Its lock. */
void rl_acceptor_remove_half_open(struct rl_conn *c);

#endif
