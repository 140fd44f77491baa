/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets that listen, whoever wants the connections: rdma_cm's listeners (cm/listen.c), and the ports that
 * QP numbers name (roce/port_group.c). Until its owner knows what to do with it, whoever connects is a
 * stranger. Strangers can have as many connections as they like: an acceptor puts up with so many, and
 * then asks the oldest to go.
 *
 * Inside the owner's object, first. Order of locks: an acceptor's, a connection's, the strangers'.
 */
#ifndef RL_ACCEPT_H
#define RL_ACCEPT_H

#include "conn.h"
#include "kernel/core/backlog.h"

struct rl_acceptor;

struct rl_acceptor_ops {
	const struct rl_conn_ulp *ulp;	/* of the connections */
	/* @c is new, locked, and awaits its Request; false: it is not wanted, and is abandoned. */
	bool (*adopt)(struct rl_acceptor *a, struct rl_conn *c);
	/* It was poked, or there is room again. No lock. NULL: nothing. */
	void (*timeout)(struct rl_acceptor *a);
	void (*release)(struct rl_acceptor *a);
};

struct rl_acceptor {
	struct rl_watch watch;		/* first: the references */
	const struct rl_acceptor_ops *ops;

	pthread_mutex_t lock;
	int fd;				/* lock; hidden; -1: it listens no more */

	pthread_mutex_t half_open_lock;		/* the half-open connections' */
	struct list_head half_open;		/* the oldest first */
	struct weft_cap half_open_cap;
};

/* One reference. It does not listen yet. */
void rl_acceptor_init(struct rl_acceptor *a, const struct rl_acceptor_ops *ops);
/* Frees what init made. */
void rl_acceptor_fini(struct rl_acceptor *a);
/* Listens on the bound, hidden, non-blocking socket @fd: 0, or -errno, and @fd is the caller's still. */
int rl_acceptor_start(struct rl_acceptor *a, int fd, u32 backlog);
/* Closes the socket. Nothing is accepted any more when this returns. */
void rl_acceptor_stop(struct rl_acceptor *a);

/* Those who are strangers still are abandoned; none has an owner's object. */
void rl_acceptor_drop_half_open(struct rl_acceptor *a);

/* @c is no stranger any more, if it was one. Its lock. */
void rl_acceptor_remove_half_open(struct rl_conn *c);

#endif
