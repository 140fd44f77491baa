// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ULP that weftspec's reflector protocol (tests/weftspec/reflector.h) wants behind
 * the peer, as a kernel consumer: it has what no program has over this device,
 * regions that the peer may invalidate. It serves the rows about these; of the
 * commands it knows NOP, SEND, RECV, BIND and DISCONNECT.
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
#if __has_include(<linux/unaligned.h>)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#include "reflector.h"

#define SLOTS		32		/* receives */
#define TX_SLOTS	64
#define TX_SIZE		256
#define AREAS		4		/* connections of one session */
#define AT_STATUS	(9 * PAGE_SIZE)
#define AT_BIG		(12 * PAGE_SIZE + REFL_ODD)
#define BIG_LEN		(16 * PAGE_SIZE)
#define AT_RECV		(30 * PAGE_SIZE)
#define RECV_AREA	(SLOTS * REFL_RECV_STRIDE)
#define AT_TX		(AT_RECV + AREAS * RECV_AREA)
#define ARENA		(AT_TX + AREAS * TX_SLOTS * TX_SIZE)
#define MR_MAX		8		/* BINDs of one connection */

/* One set of memory, shared by the connections that name the same cookie. */
struct session {
	struct list_head list;
	u64 cookie;
	struct ib_device *dev;
	struct ib_pd *pd, *pd2;
	u8 *arena;
	u32 conns, links;		/* so far, now */
	spinlock_t note_lock;
};

struct recv {
	struct ib_cqe cqe;
	struct link *link;
	u8 *buf;
};

struct link {
	struct list_head list;
	struct rdma_cm_id *id;
	struct session *s;
	struct ib_cq *cq;
	struct ib_cqe tx_done;
	struct work_struct end;
	struct recv recv[SLOTS];
	struct ib_mr *mr[MR_MAX];
	u32 idx, recv_next, recv_count, tx_next, mrs;
	bool calling, ending;
	u64 cookie;			/* of a connection that is made */
};

static LIST_HEAD(sessions);
static LIST_HEAD(links);
static DEFINE_MUTEX(lock);		/* both lists, and what a session counts */
static struct workqueue_struct *enders;
static struct rdma_cm_id *listener;

/* ---- sessions ---- */

static size_t region_at(int r)
{
	return r == REFL_BIG ? AT_BIG : (1 + 2 * r) * PAGE_SIZE + REFL_ODD;
}

static size_t region_len(int r)
{
	return r == REFL_BIG ? BIG_LEN : REFL_REGION_LEN;
}

static void fill_arena(u8 *arena)
{
	size_t i;
	int r;

	memset(arena, REFL_GUARD_BYTE, ARENA);
	for (r = 0; r < REFL_ALL; r++)
		for (i = 0; i < region_len(r); i++)
			arena[region_at(r) + i] = 7 * i + 31 * r + 13;
	memset(arena + AT_STATUS, 0, 2 * PAGE_SIZE);
	put_unaligned_be32(REFL_MAGIC_STATUS, arena + AT_STATUS);
}

static void session_note(struct session *s, u32 conn, enum refl_event kind, u8 status,
			 u32 opcode, u32 len, const u8 *head)
{
	u8 *st = s->arena + AT_STATUS, *p;
	u32 n;

	spin_lock(&s->note_lock);
	n = get_unaligned_be32(st + 4);
	if (n < REFL_EVENTS) {
		p = st + REFL_STATUS_HEAD + n * REFL_EVENT_LEN;
		put_unaligned_be16(conn, p);
		p[2] = kind;
		p[3] = status;
		put_unaligned_be32(opcode, p + 4);
		put_unaligned_be32(len, p + 8);
		if (head)
			memcpy(p + 16, head, 16);
		put_unaligned_be32(n + 1, st + 4);
	}
	spin_unlock(&s->note_lock);
}

static void session_put(struct session *s)
{
	if (--s->links)
		return;
	list_del(&s->list);
	ib_dealloc_pd(s->pd2);
	ib_dealloc_pd(s->pd);
	free_pages_exact(s->arena, ARENA);
	kfree(s);
}

static struct session *session_new(struct ib_device *dev, u64 cookie)
{
	struct session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->arena = alloc_pages_exact(ARENA, GFP_KERNEL);
	s->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	s->pd2 = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (!s->arena || IS_ERR(s->pd) || IS_ERR(s->pd2)) {
		if (s->arena)
			free_pages_exact(s->arena, ARENA);
		if (!IS_ERR(s->pd))
			ib_dealloc_pd(s->pd);
		if (!IS_ERR(s->pd2))
			ib_dealloc_pd(s->pd2);
		kfree(s);
		return NULL;
	}
	s->dev = dev;
	s->cookie = cookie;
	spin_lock_init(&s->note_lock);
	fill_arena(s->arena);
	list_add(&s->list, &sessions);
	return s;
}

static struct session *session_get(struct ib_device *dev, u64 cookie)
{
	struct session *s;

	list_for_each_entry(s, &sessions, list)
		if (s->cookie == cookie && s->dev == dev)
			goto found;
	s = session_new(dev, cookie);
found:
	if (s)
		s->links++;
	return s;
}

/* ---- the queues ---- */

static int post_recv(struct link *l)
{
	struct recv *r = &l->recv[l->recv_next++ % SLOTS];
	struct ib_sge sge = { .addr = (uintptr_t)r->buf, .length = REFL_RECV_SIZE,
			      .lkey = l->s->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(l->id->qp, &wr, NULL);
}

static int post_recvs(struct link *l, u32 n)
{
	int rv = 0;

	while (n-- && !rv)
		rv = post_recv(l);
	return rv;
}

static u8 *tx_slot(struct link *l)
{
	return l->s->arena + AT_TX + (l->idx % AREAS * TX_SLOTS + l->tx_next++ % TX_SLOTS) * TX_SIZE;
}

static int post_send(struct link *l, u8 *buf, u32 len, int flags)
{
	struct ib_sge sge = { .addr = (uintptr_t)buf, .length = len,
			      .lkey = l->s->pd->local_dma_lkey };
	struct ib_send_wr wr = { .wr_cqe = &l->tx_done, .sg_list = &sge, .num_sge = !!len,
				 .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED | flags };

	return ib_post_send(l->id->qp, &wr, NULL);
}

static void send_note(struct link *l, u32 magic, u32 seq, u32 status, u32 value)
{
	u8 *b = tx_slot(l);

	put_unaligned_be32(magic, b);
	put_unaligned_be32(seq, b + 4);
	put_unaligned_be32(status, b + 8);
	put_unaligned_be32(value, b + 12);
	post_send(l, b, REFL_ACK_LEN, 0);
}

static void tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct link *l = container_of(wc->wr_cqe, struct link, tx_done);

	if (wc->status != IB_WC_SUCCESS)
		session_note(l->s, l->idx, REFL_EV_SEND, wc->status, wc->opcode, wc->byte_len, NULL);
}

/* ---- commands ---- */

static int do_send(struct link *l, const u8 *cmd)
{
	u32 i, count = get_unaligned_be32(cmd + 12), len = get_unaligned_be32(cmd + 16);
	int rv = len > TX_SIZE || count > TX_SLOTS / 2 ? -EINVAL : 0;

	for (i = 0; i < count && !rv; i++) {
		u8 *b = tx_slot(l);

		memset(b, i + 1, TX_SIZE);
		put_unaligned_be32(i, b);
		rv = post_send(l, b, len, get_unaligned_be16(cmd + 6) & REFL_CF_SE ?
			       IB_SEND_SOLICITED : 0);
	}
	return rv;
}

static int map_region(struct link *l, struct ib_mr *mr, u64 r)
{
	struct scatterlist sg;

	if (r >= REFL_ALL)
		return -EINVAL;
	sg_init_one(&sg, l->s->arena + region_at(r), region_len(r));
	if (ib_dma_map_sg(l->id->device, &sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -ENOMEM;
	return ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EINVAL;
}

/* The ACK goes behind the registration on the same queue. */
static int do_bind(struct link *l, u64 region, u32 *stag)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED,
				.wr.wr_cqe = &l->tx_done };
	struct ib_mr *mr;
	int rv;

	if (l->mrs == MR_MAX)
		return -EBUSY;
	mr = ib_alloc_mr(l->s->pd, IB_MR_TYPE_MEM_REG, BIG_LEN / PAGE_SIZE + 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	l->mr[l->mrs++] = mr;
	rv = map_region(l, mr, region);
	if (rv)
		return rv;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.mr = mr;
	wr.key = *stag = mr->rkey;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	return ib_post_send(l->id->qp, &wr.wr, NULL);
}

static int obey(struct link *l, const u8 *cmd, u32 *value)
{
	switch (get_unaligned_be16(cmd + 4)) {
	case REFL_NOP:
		return 0;
	case REFL_SEND:
		return do_send(l, cmd);
	case REFL_RECV:
		return post_recvs(l, get_unaligned_be32(cmd + 12));
	case REFL_BIND:
		return do_bind(l, get_unaligned_be64(cmd + 32), value);
	case REFL_DISCONNECT:
		return rdma_disconnect(l->id);
	default:
		return -EOPNOTSUPP;
	}
}

static void on_command(struct link *l, u8 *buf)
{
	u8 cmd[REFL_CMD_LEN];
	u32 value = 0;
	int rv;

	memcpy(cmd, buf, sizeof(cmd));
	memset(buf, REFL_GUARD_BYTE, REFL_RECV_SIZE);
	post_recv(l);
	rv = obey(l, cmd, &value);
	if (!(get_unaligned_be16(cmd + 6) & REFL_CF_NOACK))
		send_note(l, REFL_MAGIC_ACK, get_unaligned_be32(cmd + 8), -rv, value);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct recv *r = container_of(wc->wr_cqe, struct recv, cqe);
	struct link *l = r->link;

	if (wc->status == IB_WC_SUCCESS && wc->byte_len == REFL_CMD_LEN &&
	    get_unaligned_be32(r->buf) == REFL_MAGIC_CMD)
		on_command(l, r->buf);
	else
		session_note(l->s, l->idx, REFL_EV_RECV, wc->status,
			     wc->opcode | wc->wc_flags << 16, wc->byte_len, r->buf);
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
		session_put(l->s);
	mutex_unlock(&lock);
	kfree(l);
}

static void end_work(struct work_struct *work)
{
	link_free(container_of(work, struct link, end));
}

/* Not in the handler of the id that goes; once. */
static void link_end(struct link *l)
{
	mutex_lock(&lock);
	if (!l->ending)
		queue_work(enders, &l->end);
	l->ending = true;
	mutex_unlock(&lock);
}

static struct link *link_new(struct rdma_cm_id *id)
{
	struct link *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	l->id = id;
	l->tx_done.done = tx_done;
	INIT_WORK(&l->end, end_work);
	mutex_lock(&lock);
	list_add(&l->list, &links);
	mutex_unlock(&lock);
	return l;
}

static int link_session(struct link *l, u64 cookie)
{
	int rv = -ENOMEM;

	mutex_lock(&lock);
	l->s = session_get(l->id->device, cookie);
	if (l->s) {
		l->idx = l->s->conns++;
		rv = 0;
	}
	mutex_unlock(&lock);
	return rv;
}

static int link_up(struct link *l, u64 cookie, u32 recvs)
{
	struct ib_qp_init_attr a = { .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 128, .max_recv_wr = 2 * SLOTS, .max_send_sge = 1,
			 .max_recv_sge = 1 } };
	u32 i;
	int rv = link_session(l, cookie);

	if (rv)
		return rv;
	for (i = 0; i < SLOTS; i++) {
		l->recv[i].cqe.done = recv_done;
		l->recv[i].link = l;
		l->recv[i].buf = l->s->arena + AT_RECV + l->idx % AREAS * RECV_AREA +
				 i * REFL_RECV_STRIDE;
	}
	l->recv_count = recvs && recvs < SLOTS ? recvs : REFL_RECV_COUNT;
	l->cq = ib_alloc_cq(l->id->device, l, 256, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(l->cq)) {
		rv = PTR_ERR(l->cq);
		l->cq = NULL;
		return rv;
	}
	a.send_cq = a.recv_cq = l->cq;
	return rdma_create_qp(l->id, l->s->pd, &a) ?: post_recvs(l, l->recv_count);
}

static u8 write_table(const struct link *l, u8 *p)
{
	const struct session *s = l->s;
	int r;

	put_unaligned_be32(REFL_MAGIC_TABLE, p);
	put_unaligned_be16(REFL_VERSION, p + 4);
	put_unaligned_be16(REFL_REGIONS, p + 6);
	put_unaligned_be32(REFL_CAP_BIND, p + 8);
	put_unaligned_be16(l->recv_count, p + 12);
	put_unaligned_be16(REFL_RECV_SIZE, p + 14);
	put_unaligned_be64((uintptr_t)s->arena + AT_STATUS, p + 16);
	put_unaligned_be64((uintptr_t)l->recv[0].buf, p + 24);
	p += REFL_TABLE_HEAD;
	for (r = 0; r < REFL_REGIONS; r++, p += 16) {
		bool all = r == REFL_ALL;

		put_unaligned_be64((uintptr_t)s->arena + (all ? 0 : region_at(r)), p);
		put_unaligned_be32(all ? ARENA : region_len(r), p + 8);
		put_unaligned_be32((r == REFL_PD2 ? s->pd2 : s->pd)->unsafe_global_rkey, p + 12);
	}
	return REFL_TABLE_LEN;
}

static int on_route(struct link *l)
{
	u8 pd[REFL_TABLE_LEN];
	struct rdma_conn_param p = { .responder_resources = 16, .initiator_depth = 16,
				     .private_data = pd };
	int rv = link_up(l, l->cookie, 0);

	if (rv)
		return rv;
	p.private_data_len = write_table(l, pd);
	return rdma_connect_locked(l->id, &p);
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *e)
{
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
		if (l->calling)
			send_note(l, REFL_MAGIC_HELLO, 0, 0, 0);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		session_note(l->s, l->idx, REFL_EV_CM, 0, e->event, 0, NULL);
		fallthrough;
	default:
		rv = -ECONNRESET;
	}
	if (rv)
		link_end(l);
	return 0;
}

static int on_request(struct rdma_cm_id *id, struct rdma_cm_event *e)
{
	const struct rdma_conn_param *c = &e->param.conn;
	const u8 *q = c->private_data;
	bool ours = q && c->private_data_len >= REFL_REQUEST_LEN &&
		    get_unaligned_be32(q) == REFL_MAGIC_REQUEST;
	u16 flags = ours ? get_unaligned_be16(q + 6) : 0;
	u8 pd[REFL_TABLE_LEN];
	struct rdma_conn_param p = { .initiator_depth = c->initiator_depth,
				     .responder_resources = c->responder_resources ?: 16,
				     .private_data = pd };
	struct link *l = link_new(id);

	if (!l)
		return -ENOMEM;
	id->context = l;
	id->event_handler = on_event;
	/* What else a case may ask for, this reflector does not have. */
	if (flags & ~REFL_F_EARLY ||
	    link_up(l, ours ? get_unaligned_be64(q + 8) : 0,
		    ours ? get_unaligned_be16(q + 18) : 0)) {
		rdma_reject(id, "refused", 7, 0);
		link_end(l);
		return 0;
	}
	p.private_data_len = write_table(l, pd);
	if (rdma_accept(id, &p))
		link_end(l);
	else if (flags & REFL_F_EARLY)
		send_note(l, REFL_MAGIC_HELLO, 0, 0, 0);
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
static int parse(const char *s, struct sockaddr_in *sin, u32 *conns)
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

static int call(struct sockaddr_in *sin, u64 cookie)
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
	l->calling = true;
	l->cookie = cookie;
	id->context = l;
	rv = rdma_resolve_addr(id, NULL, (struct sockaddr *)sin, 5000);
	if (rv)
		link_end(l);
	return rv;
}

static int set_connect(const char *val, const struct kernel_param *kp)
{
	static atomic64_t cookie;
	struct sockaddr_in sin;
	u32 conns;
	u64 mine = atomic64_inc_return(&cookie) << 20;
	int rv = parse(val, &sin, &conns);

	while (!rv && conns--)
		rv = call(&sin, mine);
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
	int rv = parse(listen, &sin, &conns);

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

	enders = alloc_workqueue("weft_krefl", WQ_UNBOUND, 0);
	if (!enders)
		return -ENOMEM;
	if (listen)
		rv = start_listening();
	if (rv)
		destroy_workqueue(enders);
	return rv;
}

static void __exit krefl_exit(void)
{
	struct link *l;

	if (listener)
		rdma_destroy_id(listener);
	mutex_lock(&lock);
	list_for_each_entry(l, &links, list) {
		if (!l->ending)
			queue_work(enders, &l->end);
		l->ending = true;
	}
	mutex_unlock(&lock);
	destroy_workqueue(enders);
}

module_init(krefl_init);
module_exit(krefl_exit);
MODULE_DESCRIPTION("weftspec's reflector as a kernel consumer: opens all memory, for labs only");
MODULE_LICENSE("Dual BSD/GPL");
