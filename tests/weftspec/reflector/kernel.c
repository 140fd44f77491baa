// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft_krefl, the reflector's front as a kernel consumer: with regions of fast registration,
 * which the peer may invalidate, and Immediate Data. It serves the rows about these; of the
 * commands it knows NOP, SEND, WRITE_IMM, RECV, BIND and DISCONNECT.
 *
 *   insmod weft_krefl.ko listen=ADDR:PORT
 *   echo "ADDR:PORT [--conns N]" >/sys/module/weft_krefl/parameters/connect
 *
 * Regions RW, W, R, BIG and ALL are one STag to all memory of the machine,
 * which is why this module belongs into a lab and nowhere else. BIND makes a
 * fast registration on the connection that asks.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core.h"

#define AREAS		4		/* of slots */
#define BIG_LEN		(16 * REFLECTOR_PAGE)
#define MR_MAX		8		/* BINDs of one connection */

/* One set of memory, shared by the connections that name the same cookie. */
struct session {
	struct reflector_session memory;
	struct ib_pd *pd, *pd2;
	spinlock_t status_lock;
};

struct recv {
	struct ib_cqe cqe;
	struct link *link;
};

struct link {
	struct list_head list;
	struct reflector_link ulp;
	struct rdma_cm_id *id;
	struct session *s;
	struct ib_cq *cq;
	struct ib_cqe tx_done;
	struct work_struct teardown;
	struct recv recv[REFLECTOR_RECV_SLOTS];
	struct ib_mr *mr[MR_MAX];
	u32 mrs;
	bool is_initiator, dying;
	u64 cookie;			/* of a connection that is made */
};

static struct reflector_session *sessions;
static LIST_HEAD(links);
static DEFINE_MUTEX(lock);		/* both lists, and what a session counts */
static struct workqueue_struct *teardown_wq;
static struct rdma_cm_id *listener;

static struct link *link_of(struct reflector_link *r)
{
	return container_of(r, struct link, ulp);
}

/* ---- the queues ---- */

static int post_recv(struct reflector_link *r, u32 slot)
{
	struct link *l = link_of(r);
	struct ib_sge sge = { .addr = (uintptr_t)reflector_recv_slot(r, slot),
			      .length = REFL_RECV_SIZE, .lkey = l->s->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &l->recv[slot].cqe, .sg_list = &sge, .num_sge = 1 };

	return -ib_post_recv(l->id->qp, &wr, NULL);
}

static int post_send(struct reflector_link *r, const struct reflector_wr *w)
{
	struct link *l = link_of(r);
	struct ib_sge sge = { .addr = (uintptr_t)w->addr, .length = w->len,
			      .lkey = l->s->pd->local_dma_lkey };
	struct ib_rdma_wr wr = { .wr.wr_cqe = &l->tx_done, .wr.sg_list = &sge,
				 .wr.num_sge = !!w->len, .wr.opcode = IB_WR_SEND,
				 .wr.send_flags = IB_SEND_SIGNALED,
				 .remote_addr = w->to, .rkey = w->stag };

	if ((w->op != REFL_SEND && w->op != REFL_WRITE_IMM) || w->wrong_key)
		return EOPNOTSUPP;
	if (w->op == REFL_WRITE_IMM) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.ex.imm_data = cpu_to_be32(w->imm);
	}
	if (w->solicited)
		wr.wr.send_flags |= IB_SEND_SOLICITED;
	return -ib_post_send(l->id->qp, &wr.wr, NULL);
}

static int map_region(struct link *l, struct ib_mr *mr, enum refl_region r)
{
	struct scatterlist sg;

	sg_init_one(&sg, reflector_region_start(l->ulp.s, r), reflector_region_len(l->ulp.s, r));
	if (ib_dma_map_sg(l->id->device, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return ENOMEM;
	return ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : EINVAL;
}

static int bind_region(struct reflector_link *r, enum refl_region region, u32 seq, u32 *stag)
{
	struct link *l = link_of(r);
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED,
				.wr.wr_cqe = &l->tx_done };
	struct ib_mr *mr;
	int err;

	if (l->mrs == MR_MAX)
		return EBUSY;
	mr = ib_alloc_mr(l->s->pd, IB_MR_TYPE_MEM_REG, BIG_LEN / PAGE_SIZE + 1);
	if (IS_ERR(mr))
		return -PTR_ERR(mr);
	l->mr[l->mrs++] = mr;
	err = map_region(l, mr, region);
	if (err)
		return err;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.mr = mr;
	wr.key = *stag = mr->rkey;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	return -ib_post_send(l->id->qp, &wr.wr, NULL);
}

static int disconnect(struct reflector_link *r)
{
	return -rdma_disconnect(link_of(r)->id);
}

static void lock_status(struct reflector_link *r)
{
	spin_lock(&link_of(r)->s->status_lock);
}

static void unlock_status(struct reflector_link *r)
{
	spin_unlock(&link_of(r)->s->status_lock);
}

static const struct reflector_ops ops = {
	.post_recv = post_recv,
	.post_send = post_send,
	.disconnect = disconnect,
	.bind = bind_region,
	.lock_status = lock_status,
	.unlock_status = unlock_status,
};

static void tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct link *l = container_of(wc->wr_cqe, struct link, tx_done);
	struct reflector_completion c = { .status = wc->status, .opcode = wc->opcode,
					  .len = wc->byte_len };

	reflector_on_sent(&l->ulp, 0, &c);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct recv *r = container_of(wc->wr_cqe, struct recv, cqe);
	struct reflector_completion c = { .status = wc->status, .len = wc->byte_len,
					  .opcode = wc->opcode | wc->wc_flags << 16 };

	if (wc->wc_flags & IB_WC_WITH_IMM)
		c.imm = be32_to_cpu(wc->ex.imm_data);
	reflector_on_recv(&r->link->ulp, r - r->link->recv, &c);
}

/* ---- sessions ---- */

static void session_free(struct session *s)
{
	if (!IS_ERR_OR_NULL(s->pd2))
		ib_dealloc_pd(s->pd2);
	if (!IS_ERR_OR_NULL(s->pd))
		ib_dealloc_pd(s->pd);
	if (s->memory.arena)
		free_pages_exact(s->memory.arena, reflector_arena_size(BIG_LEN, AREAS));
	kfree(s);
}

static void publish_stags(struct session *s)
{
	int r;

	for (r = 0; r < REFL_REGIONS; r++)
		s->memory.stag[r] = (r == REFL_PD2 ? s->pd2 : s->pd)->unsafe_global_rkey;
}

static struct session *session_new(struct ib_device *dev, u64 cookie)
{
	struct session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->memory = (struct reflector_session) {
		.front = s, .ops = &ops, .device = dev, .cookie = cookie,
		.arena = alloc_pages_exact(reflector_arena_size(BIG_LEN, AREAS), GFP_KERNEL),
		.big_len = BIG_LEN, .areas = AREAS, .caps = REFL_CAP_BIND | REFL_CAP_IMM,
	};
	s->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	s->pd2 = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (!s->memory.arena || IS_ERR(s->pd) || IS_ERR(s->pd2)) {
		session_free(s);
		return NULL;
	}
	spin_lock_init(&s->status_lock);
	reflector_fill_arena(&s->memory);
	publish_stags(s);
	reflector_add_session(&sessions, &s->memory);
	return s;
}

static int join_session(struct link *l, const struct reflector_request *q)
{
	struct reflector_session *found;

	mutex_lock(&lock);
	found = reflector_find_session(sessions, q->cookie, l->id->device);
	l->s = found ? found->front : session_new(l->id->device, q->cookie);
	if (l->s)
		reflector_join(&l->ulp, &l->s->memory, q->recv_count);
	mutex_unlock(&lock);
	return l->s ? 0 : -ENOMEM;
}

static void leave_session(struct link *l)
{
	struct reflector_session *idle;

	reflector_leave(&l->ulp);
	idle = reflector_idle_session(sessions, 0);
	if (!idle)
		return;
	reflector_remove_session(&sessions, idle);
	session_free(idle->front);
}

/* ---- connections ---- */

static void link_free(struct link *l)
{
	if (l->id->qp) {
		rdma_disconnect(l->id);
		ib_drain_qp(l->id->qp);
		rdma_destroy_qp(l->id);
	}
	while (l->mrs)
		ib_dereg_mr(l->mr[--l->mrs]);
	if (l->cq)
		ib_free_cq(l->cq);
	rdma_destroy_id(l->id);
	mutex_lock(&lock);
	list_del(&l->list);
	if (l->s)
		leave_session(l);
	mutex_unlock(&lock);
	kfree(l);
}

static void teardown_work(struct work_struct *work)
{
	link_free(container_of(work, struct link, teardown));
}

/* Not in the handler of the id that goes; once. */
static void queue_teardown(struct link *l)
{
	mutex_lock(&lock);
	if (!l->dying)
		queue_work(teardown_wq, &l->teardown);
	l->dying = true;
	mutex_unlock(&lock);
}

static struct link *link_new(struct rdma_cm_id *id)
{
	struct link *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	l->id = id;
	l->tx_done.done = tx_done;
	INIT_WORK(&l->teardown, teardown_work);
	mutex_lock(&lock);
	list_add(&l->list, &links);
	mutex_unlock(&lock);
	return l;
}

static int join_with_queues(struct link *l, const struct reflector_request *q)
{
	struct ib_qp_init_attr a = { .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 128, .max_recv_wr = 2 * REFLECTOR_RECV_SLOTS,
			 .max_send_sge = 1, .max_recv_sge = 1 } };
	int i, rv = join_session(l, q);

	if (rv)
		return rv;
	for (i = 0; i < REFLECTOR_RECV_SLOTS; i++) {
		l->recv[i].cqe.done = recv_done;
		l->recv[i].link = l;
	}
	l->cq = ib_alloc_cq(l->id->device, l, 256, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(l->cq)) {
		rv = PTR_ERR(l->cq);
		l->cq = NULL;
		return rv;
	}
	a.send_cq = a.recv_cq = l->cq;
	rv = rdma_create_qp(l->id, l->s->pd, &a);
	return rv ?: -reflector_post_recvs(&l->ulp, l->ulp.recv_count);
}

static int on_route(struct link *l)
{
	u8 pd[REFL_TABLE_LEN];
	struct rdma_conn_param p = { .responder_resources = 16, .initiator_depth = 16,
				     .private_data = pd };
	struct reflector_request q = { .cookie = l->cookie };
	int rv = join_with_queues(l, &q);

	if (rv)
		return rv;
	p.private_data_len = reflector_write_private_data(&l->ulp, -1, pd, sizeof(pd));
	return rdma_connect_locked(l->id, &p);
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *e)
{
	const u32 values[3] = { e->event };
	struct link *l = id->context;
	int rv = 0;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rv = rdma_resolve_route(id, 5000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rv = on_route(l);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (l->is_initiator)
			reflector_send_hello(&l->ulp);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		reflector_note(&l->ulp, REFL_EV_CM, 0, values, NULL);
		fallthrough;
	default:
		rv = -ECONNRESET;
	}
	if (rv)
		queue_teardown(l);
	return 0;
}

static int on_request(struct rdma_cm_id *id, struct rdma_cm_event *e)
{
	const struct rdma_conn_param *c = &e->param.conn;
	struct reflector_request q;
	u8 pd[REFL_TABLE_LEN];
	struct rdma_conn_param p = { .initiator_depth = c->initiator_depth,
				     .responder_resources = c->responder_resources ?: 16,
				     .private_data = pd };
	struct link *l = link_new(id);

	if (!l)
		return -ENOMEM;
	id->context = l;
	id->event_handler = on_event;
	reflector_read_request(c->private_data, c->private_data_len, &q);
	/* What else a case may ask for, this reflector does not have. */
	if (q.flags & ~REFL_F_EARLY || join_with_queues(l, &q)) {
		rdma_reject(id, "refused", 7, 0);
		queue_teardown(l);
		return 0;
	}
	p.private_data_len = reflector_write_private_data(&l->ulp, -1, pd, sizeof(pd));
	if (rdma_accept(id, &p))
		queue_teardown(l);
	else if (q.flags & REFL_F_EARLY)
		reflector_send_hello(&l->ulp);
	return 0;
}

static int on_listener(struct rdma_cm_id *id, struct rdma_cm_event *e)
{
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return on_request(id, e);
	if (e->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	/* rdma_cm destroys it then. */
	listener = NULL;
	return 1;
}

/* ADDR:PORT [--conns N] */
static int parse_address(const char *s, struct sockaddr_in *sin, u32 *conns)
{
	const char *end;
	u16 port;

	*conns = 1;
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	if (!in4_pton(s, -1, (u8 *)&sin->sin_addr, ':', &end) ||
	    sscanf(end, ":%hu --conns %u", &port, conns) < 1)
		return -EINVAL;
	sin->sin_port = htons(port);
	return 0;
}

static int connect_to(struct sockaddr_in *sin, u64 cookie)
{
	struct rdma_cm_id *id = rdma_create_id(current->nsproxy->net_ns, on_event, NULL,
					       RDMA_PS_TCP, IB_QPT_RC);
	struct link *l;
	int rv;

	if (IS_ERR(id))
		return PTR_ERR(id);
	l = link_new(id);
	if (!l) {
		rdma_destroy_id(id);
		return -ENOMEM;
	}
	l->is_initiator = true;
	l->cookie = cookie;
	id->context = l;
	rv = rdma_resolve_addr(id, NULL, (struct sockaddr *)sin, 5000);
	if (rv)
		queue_teardown(l);
	return rv;
}

static int set_connect(const char *val, const struct kernel_param *kp)
{
	static atomic64_t cookie;
	struct sockaddr_in sin;
	u32 conns;
	u64 mine = atomic64_inc_return(&cookie) << 20;
	int rv = parse_address(val, &sin, &conns);

	while (!rv && conns--)
		rv = connect_to(&sin, mine);
	return rv;
}

static const struct kernel_param_ops connect_ops = { .set = set_connect };
module_param_cb(connect, &connect_ops, NULL, 0200);
MODULE_PARM_DESC(connect, "ADDR:PORT [--conns N]: connect, in the writer's network namespace");

static char *listen;
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "ADDR:PORT to listen on");

static int start_listening(void)
{
	struct sockaddr_in sin;
	u32 conns;
	int rv = parse_address(listen, &sin, &conns);

	if (rv)
		return rv;
	listener = rdma_create_id(current->nsproxy->net_ns, on_listener, NULL, RDMA_PS_TCP,
				  IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	rv = rdma_bind_addr(listener, (struct sockaddr *)&sin) ?: rdma_listen(listener, 64);
	if (rv)
		rdma_destroy_id(listener);
	return rv;
}

static int __init krefl_init(void)
{
	int rv = 0;

	teardown_wq = alloc_workqueue("weft_krefl", WQ_UNBOUND, 0);
	if (!teardown_wq)
		return -ENOMEM;
	if (listen)
		rv = start_listening();
	if (rv)
		destroy_workqueue(teardown_wq);
	return rv;
}

static void __exit krefl_exit(void)
{
	struct link *l;

	if (listener)
		rdma_destroy_id(listener);
	mutex_lock(&lock);
	list_for_each_entry(l, &links, list) {
		if (!l->dying)
			queue_work(teardown_wq, &l->teardown);
		l->dying = true;
	}
	mutex_unlock(&lock);
	destroy_workqueue(teardown_wq);
}

module_init(krefl_init);
module_exit(krefl_exit);
MODULE_DESCRIPTION("weftspec's reflector as a kernel consumer: opens all memory, for labs only");
MODULE_LICENSE("Dual BSD/GPL");
