/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One RC connection by rdma_cm with one CQ, for test programs: everything that
 * goes wrong ends the program with a line that says what, and nothing waits for
 * ever. Nothing here knows weft. Connections may share the CQ: conn_share().
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define CONN_PRIVATE	56	/* octets of private data that every transport takes */

struct conn {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;	/* server */
	struct rdma_cm_id *next;	/* a request that came before its time */
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_cq *send_cq;		/* the caller's; NULL: cq */
	uint32_t srq_wr;		/* not 0: receives come from an SRQ of so many */
	struct ibv_srq *srq;
	uint32_t max_sge;		/* of a send; 0: 1 */
	uint32_t max_recv_sge;		/* of a receive; 0: 1 */
	uint32_t cq_len;		/* 0: what one QP needs */
	uint32_t max_inline;		/* granted */
	int ird, ord;			/* what the device can */
	int timeout_ms;			/* of anything that is waited for */
	bool busy_poll;			/* do not sleep on events */
	bool extended;			/* the QP is posted to by ibv_wr_* */
	uint64_t more_ops;		/* IBV_QP_EX_WITH_, beside Write, Read and Send */
	bool gone;			/* the peer has disconnected, or the device has gone */
	bool shares;			/* PD, CQ and channels are another's */
	uint8_t peer[CONN_PRIVATE];	/* the peer's private data */
	struct ibv_mr *mrs[8];		/* all that conn_reg() gave out */
	unsigned int n_mrs;
};

/* The name that error lines begin with. */
extern const char *conn_program;

/* Prints "program: FAIL ..." and exits with 1. */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Server: listens, and takes one request after another. */
void conn_listen(struct conn *c, const char *addr, const char *port);
void conn_await_request(struct conn *c);
/* Client: c->id is bound to a device afterwards. */
void conn_resolve(struct conn *c, const char *host, const char *port);

/*
 * A new connection, @c, with the event channel, listener, PD, CQ and settings of
 * @other, which must outlive it, and with the request that @other holds for its
 * successor. Disconnects are noted for the connection that waits.
 */
void conn_share(struct conn *c, struct conn *other);

/* PD and CQ if there are none yet, and QP, on the device of c->id. */
void conn_make_qp(struct conn *c, uint32_t send_wr, uint32_t recv_wr, uint32_t max_inline);

/* After the receives are posted. Both return when the connection is there. */
void conn_accept(struct conn *c, const void *private_data, uint8_t len);
void conn_connect(struct conn *c, const void *private_data, uint8_t len);

/*
 * Both ends in this process: @client, a new one, is connected to @server, which listens on @host and
 * @port. Each QP takes @depth sends and receives; the client's takes @max_inline octets inline.
 */
void conn_pair(struct conn *client, struct conn *server, const char *host, const char *port,
	       uint32_t depth, uint32_t max_inline);

/* Registers memory; conn_close() deregisters it. */
struct ibv_mr *conn_reg(struct conn *c, void *buf, size_t len, int access);

/*
 * Up to @n completions, at least one unless the peer has disconnected and no
 * more will come, or @timeout_ms have passed: then 0.
 */
int conn_poll(struct conn *c, struct ibv_wc *wc, int n, int timeout_ms);

/* Disconnects and frees all but the listener and the event channel, and what is shared. */
void conn_close(struct conn *c);
/* A client's: frees the event channel, too. */
void conn_end(struct conn *c);

/* The type of the next event, which it acknowledges; -1 if none arrives in time. */
int conn_next_event(struct rdma_event_channel *events, int timeout_ms);

#endif
