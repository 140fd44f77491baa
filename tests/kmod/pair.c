// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two connected ends, and the work requests that all cases post. */
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <rdma/ib_cm.h>

#include "kmod.h"

static char *addr = "127.0.0.1";
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address of the device to test, on this machine");

static unsigned short port = 7999;
module_param(port, ushort, 0444);

unsigned int wait_ms = 60000;
module_param(wait_ms, uint, 0444);
MODULE_PARM_DESC(wait_ms, "how long a case waits for what must come");

u16 pair_port(void)
{
	return port;
}

/* ---- completions ---- */

static void op_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);
	struct end *e = cq->cq_context;

	op->wc = *wc;
	op->order = atomic_inc_return(&e->completions);
	complete(&op->done);
}

void op_init(struct op *op)
{
	memset(op, 0, sizeof(*op));
	op->cqe.done = op_done;
	init_completion(&op->done);
}

int op_wait(struct op *op, enum ib_wc_status status)
{
	if (!wait_for_completion_timeout(&op->done, WAIT))
		return -ETIME;
	return op->wc.status == status ? 0 : -EIO;
}

/* Polls, arms and polls again inside the handler, as ULPs do. */
static void comp_handler(struct ib_cq *cq, void *context)
{
	struct end *e = context;
	struct ib_wc wc;

	if (atomic_inc_return(&e->in_handler) != 1)
		e->reentered = true;
	cpumask_set_cpu(raw_smp_processor_id(), &e->cpus);
	do {
		while (ib_poll_cq(cq, 1, &wc) > 0)
			wc.wr_cqe->done(cq, &wc);
	} while (ib_req_notify_cq(cq, READ_ONCE(e->arm) | IB_CQ_REPORT_MISSED_EVENTS) > 0);
	atomic_dec(&e->in_handler);
}

int armed_wait(struct end *e)
{
	const unsigned long until = jiffies + WAIT;

	/* It completes before it arms. */
	while (atomic_read(&e->in_handler)) {
		if (time_after(jiffies, until))
			return -ETIME;
		msleep(1);
	}
	return 0;
}

static void qp_event(struct ib_event *ev, void *context)
{
	struct end *e = context;

	set_bit(ev->event, &e->qp_events);
}

int qp_event_wait(struct end *e, enum ib_event_type one, enum ib_event_type other)
{
	const unsigned long until = jiffies + WAIT;

	while (!test_bit(one, &e->qp_events) && !test_bit(other, &e->qp_events)) {
		if (time_after(jiffies, until))
			return -ENOMSG;
		msleep(1);
	}
	return 0;
}

static void srq_event(struct ib_event *ev, void *context)
{
	struct end *e = context;

	set_bit(ev->event, &e->srq_events);
}

/* ---- work requests ---- */

int post_send_buf(struct end *e, struct op *op, void *buf, u32 len, int flags)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)buf,
		.length = len,
		.lkey = e->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | flags,
	};

	return ib_post_send(e->qp, &wr, NULL);
}

int post_recv_buf(struct end *e, struct op *op, void *buf, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)buf,
		.length = len,
		.lkey = e->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1 };

	if (e->srq)
		return ib_post_srq_recv(e->srq, &wr, NULL);
	return ib_post_recv(e->qp, &wr, NULL);
}

/* ---- ends ---- */

static int end_create_srq(struct end *e)
{
	struct ib_srq_init_attr attr = {
		.event_handler = srq_event,
		.srq_context = e,
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *srq = ib_create_srq(e->pd, &attr);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	e->srq = srq;
	return 0;
}

#define ANY_VECTOR	U32_MAX

/* The two ends on two CPUs, if there are two, or as requested. */
static u32 vector_of(const struct end *e)
{
	if (e->vector != ANY_VECTOR)
		return e->vector;
	return strcmp(e->name, "client") ? e->id->device->num_comp_vectors - 1 : 0;
}

static int end_create_queues(struct end *e)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 4 * e->depth };
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = e,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.srq = e->srq,
		.cap = {
			.max_send_wr = e->depth,
			.max_recv_wr = e->depth,
			.max_send_sge = 4,
			.max_recv_sge = 1,
			.max_inline_data = e->depth > DEPTH ? 0 : INLINE,
		},
	};
	struct ib_cq *cq;
	int rv;

	e->vector = vector_of(e);
	cq_attr.comp_vector = e->vector;
	cq = ib_create_cq(e->id->device, comp_handler, NULL, e, &cq_attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	e->cq = cq;
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	attr.send_cq = attr.recv_cq = cq;
	rv = rdma_create_qp(e->id, e->pd, &attr);
	e->qp = rv ? NULL : e->id->qp;
	e->max_inline = attr.cap.max_inline_data;
	return rv;
}

static int end_create(struct end *e, bool use_srq, bool global_rkey)
{
	struct ib_pd *pd = e->pd;
	int rv;

	if (!pd)
		pd = ib_alloc_pd(e->id->device, global_rkey ? IB_PD_UNSAFE_GLOBAL_RKEY : 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	e->pd = pd;
	rv = use_srq ? end_create_srq(e) : 0;
	return rv ?: end_create_queues(e);
}

static void end_init(struct end *e, const char *name)
{
	e->name = name;
	e->vector = ANY_VECTOR;
	e->depth = DEPTH;
	e->arm = IB_CQ_NEXT_COMP;
	init_completion(&e->step);
}

static void end_destroy(struct end *e)
{
	if (e->qp)
		rdma_destroy_qp(e->id);
	if (e->id)
		rdma_destroy_id(e->id);
	if (e->cq)
		ib_free_cq(e->cq);
	if (e->srq)
		ib_destroy_srq(e->srq);
	if (e->pd && !e->pd_lent)
		ib_dealloc_pd(e->pd);
}

/* ---- connecting ---- */

static int server_request(struct pair *p, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	int rv;

	/*
	 * If memory is short an initiator may try twice; ib_core destroys the id that is refused
	 * here.
	 */
	if (p->s.id)
		return -EBUSY;
	p->s.id = id;
	id->context = p;
	if (p->one_pd) {
		p->s.pd = p->c.pd;
		p->c.pd_lent = true;
	}
	rv = end_create(&p->s, p->use_srq, p->global_rkey);
	if (rv)
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	rv = rv ?: rdma_accept(id, &param);
	p->s.status = rv;
	if (rv)
		complete(&p->connected);
	/* pair_close() destroys the id, refused or not. */
	return 0;
}

/*
 * No end sends private data, so a pointer to some would lead to freed memory. NFS and iSER check
 * only the pointer.
 */
static void look_for_private_data(struct pair *p, const struct rdma_cm_event *ev)
{
	if (ev->param.conn.private_data && !ev->param.conn.private_data_len)
		p->stale_private_data = true;
}

static int server_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct pair *p = id->context;

	look_for_private_data(p, ev);
	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return server_request(p, id);
	case RDMA_CM_EVENT_ESTABLISHED:
		complete(&p->connected);
		return 0;
	default:
		return 0;
	}
}

static int client_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct pair *p = id->context;

	look_for_private_data(p, ev);
	if (ev->event == RDMA_CM_EVENT_DISCONNECTED || ev->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return 0;
	p->c.status = ev->status;
	complete(&p->c.step);
	return 0;
}

static int client_step(struct pair *p, int started)
{
	if (started)
		return started;
	if (!wait_for_completion_timeout(&p->c.step, WAIT))
		return -ETIMEDOUT;
	return p->c.status;
}

static int client_resolve(struct pair *p, struct sockaddr *sa)
{
	int rv;

	p->c.id = rdma_create_id(&init_net, client_event, p, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(p->c.id)) {
		rv = PTR_ERR(p->c.id);
		p->c.id = NULL;
		return rv;
	}
	rv = client_step(p, rdma_resolve_addr(p->c.id, NULL, sa, wait_ms));
	return rv ?: client_step(p, rdma_resolve_route(p->c.id, wait_ms));
}

static int client_connect(struct pair *p, struct sockaddr *sa)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	int rv = client_resolve(p, sa) ?: end_create(&p->c, false, false);

	return rv ?: client_step(p, rdma_connect(p->c.id, &param));
}

static int server_listen(struct pair *p, struct sockaddr *sa)
{
	p->listener = rdma_create_id(&init_net, server_event, p, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(p->listener)) {
		int rv = PTR_ERR(p->listener);

		p->listener = NULL;
		return rv;
	}
	return rdma_bind_addr(p->listener, sa) ?: rdma_listen(p->listener, 4);
}

struct sockaddr_in pair_address(void)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = in_aton(addr),
	};
}

int pair_resolve(struct pair *p)
{
	struct sockaddr_in sin = pair_address();

	memset(p, 0, sizeof(*p));
	end_init(&p->c, "client");
	return client_resolve(p, (struct sockaddr *)&sin);
}

int pair_request(struct pair *p, u32 nth)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct sockaddr_in sin = pair_address();

	memset(p, 0, sizeof(*p));
	end_init(&p->c, "client");
	sin.sin_port = htons(port + nth);
	return client_resolve(p, (struct sockaddr *)&sin) ?: end_create(&p->c, false, false) ?:
	       rdma_connect(p->c.id, &param);
}

int pair_await_answer(struct pair *p)
{
	return client_step(p, 0);
}

static void pair_init(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	end_init(&p->c, "client");
	end_init(&p->s, "server");
	init_completion(&p->connected);
}

static int connect_ends(struct pair *p, struct sockaddr_in sin)
{
	int rv = server_listen(p, (struct sockaddr *)&sin) ?:
		 client_connect(p, (struct sockaddr *)&sin);

	if (rv)
		return rv;
	if (!wait_for_completion_timeout(&p->connected, WAIT))
		return -ETIMEDOUT;
	return p->s.status;
}

int pair_connect(struct pair *p, bool use_srq, bool global_rkey, bool one_pd)
{
	pair_init(p);
	p->use_srq = use_srq;
	p->global_rkey = global_rkey;
	p->one_pd = one_pd;
	return connect_ends(p, pair_address());
}

static int nth_of_cpu(int cpu)
{
	int i, nth = 0;

	for_each_possible_cpu(i)
		nth += i < cpu;
	return nth;
}

int pair_connect_beside(struct pair *q, const struct pair *p, u32 nth, u32 depth)
{
	struct sockaddr_in sin = pair_address();

	pair_init(q);
	q->one_pd = true;
	q->c.pd = p->s.pd;
	q->c.pd_lent = q->s.pd_lent = true;
	q->c.vector = q->s.vector = nth_of_cpu(raw_smp_processor_id());
	q->c.depth = q->s.depth = depth;
	sin.sin_port = htons(port + 1 + nth);
	return connect_ends(q, sin);
}

void pair_close(struct pair *p)
{
	/* First, so that no request arrives that would not be destroyed. */
	if (p->listener)
		rdma_destroy_id(p->listener);
	if (p->c.id)
		rdma_disconnect(p->c.id);
	if (p->s.id)
		rdma_disconnect(p->s.id);
	end_destroy(&p->c);
	end_destroy(&p->s);
}

static int __init weft_kmod_init(void)
{
	return run_cases();
}

static void __exit weft_kmod_exit(void)
{
}

module_init(weft_kmod_init);
module_exit(weft_kmod_exit);
MODULE_DESCRIPTION("tests of a kernel consumer of RDMA");
MODULE_LICENSE("Dual BSD/GPL");
