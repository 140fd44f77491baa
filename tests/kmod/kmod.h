/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A kernel consumer of RDMA for tests that no user program can make: two ends of one connection in
 * one module, both over rdma_cm, against any iWARP device. Loading the module runs the cases. The
 * kernel log has a line for each ("weft_kmod: ok NAME" or "not ok NAME: why"), and insmod fails if
 * a case did.
 */
#ifndef WEFT_KMOD_H
#define WEFT_KMOD_H

#include <linux/completion.h>
#include <linux/in.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define DEPTH		64		/* work requests a queue, mostly */
#define INLINE		512		/* inline data requested, in octets */
/*
 * Time-out for expected events: a busy host may stop a machine for seconds. A parameter of the
 * module.
 */
extern unsigned int wait_ms;
#define WAIT		msecs_to_jiffies(wait_ms)

/*
 * A work request under way; its completion fills wc. Never on the stack: a case that
 * gives up leaves requests behind, which complete when its connection is closed.
 */
struct op {
	struct ib_cqe cqe;
	struct ib_wc wc;
	struct completion done;
	u32 order;			/* place among all completions of its end */
};

/* One end of the connection. */
struct end {
	const char *name;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	bool pd_lent;			/* shared with the other end, which frees it */
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_srq *srq;
	struct completion step;		/* rdma_cm has moved on */
	int status;			/* status of the last step */
	atomic_t in_handler;		/* comp_handler under way */
	bool reentered;			/* it was called twice at once */
	atomic_t completions;
	u32 vector;
	enum ib_cq_notify_flags arm;	/* how comp_handler arms: for any completion or for
					 * solicited ones */
	u32 depth;			/* work requests a queue; deep ones have no inline data */
	u32 max_inline;			/* granted */
	struct cpumask cpus;		/* CPU on which comp_handler was called */
	unsigned long qp_events;	/* bits of enum ib_event_type */
	unsigned long srq_events;
};

struct pair {
	struct end c, s;		/* client, server */
	struct rdma_cm_id *listener;
	struct completion connected;	/* the server's end */
	bool use_srq;			/* of the server */
	bool global_rkey;		/* the server's PD has one for all memory */
	bool one_pd;			/* of both ends */
	bool stale_private_data;	/* an event had a pointer to private data, but no length */
};

/* pair.c */
int pair_connect(struct pair *p, bool use_srq, bool global_rkey, bool one_pd);
/*
 * Both ends use the PD of @p's server, and their handlers are called on this CPU. There may be
 * several, @nth is this one's number; queues may be deeper.
 */
int pair_connect_beside(struct pair *q, const struct pair *p, u32 nth, u32 depth);
/* Only the client's id, with a route to the server of another pair. */
int pair_resolve(struct pair *p);
/* Only the client, which asks the listener at port number @nth; the answer may be awaited. */
int pair_request(struct pair *p, u32 nth);
int pair_await_answer(struct pair *p);
void pair_close(struct pair *p);

void op_init(struct op *op);
/* Waits for @op: 0 when it completed with @status, -ETIME or -EIO otherwise. */
int op_wait(struct op *op, enum ib_wc_status status);
/* Waits for an event of @e's QP: 0 when it arrived, -ENOMSG otherwise. */
int qp_event_wait(struct end *e, enum ib_event_type one, enum ib_event_type other);
/* Waits until comp_handler has armed again after the completions that it took. */
int armed_wait(struct end *e);

int post_send_buf(struct end *e, struct op *op, void *buf, u32 len, int flags);
int post_recv_buf(struct end *e, struct op *op, void *buf, u32 len);

/* The listener's port. */
u16 pair_port(void);
struct sockaddr_in pair_address(void);

/* reserve.c: between begin and end packets for TCP's @port are taken from the memory reserve. */
void reserve_begin(u16 port);
void reserve_end(void);

/* refuse.c */
int a_refused_request_is_not_asked_again(struct pair *p);
int a_request_that_iw_cm_rejects_in_any_thread_is_asked_again(struct pair *p);
int a_programs_reject_is_final_in_any_thread(struct pair *p);

/* turns.c */
int a_deep_flush_keeps_no_softirq_waiting(struct pair *p);
int a_deep_flush_of_both_queues_keeps_no_softirq_waiting(struct pair *p);
int a_deep_queue_that_completes_keeps_no_softirq_waiting(struct pair *p);
int a_post_sends_a_short_run_itself(struct pair *p);
int all_connections_have_one_share_of_softirq(struct pair *p);

/* cases.c */
int run_cases(void);
/* The value that `rdma statistic` prints. */
int device_counter(struct ib_device *dev, const char *name, u64 *n);

#endif
