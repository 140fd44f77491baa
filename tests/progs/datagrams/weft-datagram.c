// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What verbs and the InfiniBand specification promise of UD QPs, with both ends in this process,
 * over the device that has the GID of ADDR. TAP on stdout. Only the forged datagrams know weft.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "byhand.h"
#include "verdict.h"

#define GRH		40
#define QKEY		0x11223344u
#define OWN_QKEY	0x80000000u
#define QUIET_MS	200	/* in which nothing is to happen */
#define SOON_MS		20000
#define SLOT		(GRH + HAND_BUF)
#define SLOTS		64
#define ROOM		(SLOTS * SLOT)

struct end {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;			/* what is sent; from SLOT on slots to receive into */
};

static struct hand_device dev;
static struct end a, b;
static struct ibv_ah *to_b, *to_a;
static uint32_t mtu;

/* ---- ends ---- */

static struct ibv_qp *make_qp(struct end *e, int send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .srq = e->srq, .qp_type = IBV_QPT_UD, .pd = dev.pd,
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = e->srq ? 0 : SLOTS, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 200 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = send_ops,
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static void make_end(struct end *e, struct ibv_srq *srq)
{
	e->srq = srq;
	e->cq = ibv_create_cq(dev.ctx, 4 * SLOTS, NULL, NULL, 0);
	e->buf = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!e->cq || e->buf == MAP_FAILED)
		hand_fail("no CQ, or no memory");
	e->mr = ibv_reg_mr(dev.pd, e->buf, ROOM, IBV_ACCESS_LOCAL_WRITE);
	e->qp = make_qp(e, 0);
	if (!e->mr || !e->qp)
		hand_fail("no UD QP: %s", strerror(errno));
}

static void unmake_end(struct end *e)
{
	if (e->qp && ibv_destroy_qp(e->qp))
		hand_fail("a QP is not to be destroyed");
	if (ibv_dereg_mr(e->mr) || ibv_destroy_cq(e->cq))
		hand_fail("a region or a CQ is still in use");
	munmap(e->buf, ROOM);
}

static int modify(struct end *e, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 1, .en_sqd_async_notify = 1,
	};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | more);
}

static int to_init(struct end *e)
{
	return modify(e, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static int to_rts(struct end *e)
{
	return modify(e, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static void ready(struct end *e)
{
	if (to_init(e) || modify(e, IBV_QPS_RTR, 0) || to_rts(e))
		hand_fail("a QP does not become ready");
}

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init))
		hand_fail("ibv_query_qp");
	return attr.qp_state;
}

static struct ibv_ah_attr address(const union ibv_gid *gid, int index)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 64 },
	};
}

static struct ibv_ah *make_ah(const union ibv_gid *gid, int index)
{
	struct ibv_ah_attr attr = address(gid, index);
	struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);

	if (!ah)
		hand_fail("no address handle: %s", strerror(errno));
	return ah;
}

static void open_ends(void)
{
	make_end(&a, NULL);
	make_end(&b, NULL);
	ready(&a);
	ready(&b);
	to_a = make_ah(&dev.gid, dev.gid_index);
	to_b = make_ah(&dev.gid, dev.gid_index);
}

static void close_ends(void)
{
	if (ibv_destroy_ah(to_a) || ibv_destroy_ah(to_b))
		hand_fail("an address handle is not to be destroyed");
	unmake_end(&a);
	unmake_end(&b);
}

/* ---- work requests ---- */

static uint8_t *slot(struct end *e, int i)
{
	return e->buf + (1 + i) * SLOT;
}

/* Into slot @i, whose number the completion has. */
static void post_recv(struct end *e, int i, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)slot(e, i), .length = len, .lkey = e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rv = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);

	if (rv)
		hand_fail("posting a receive: %s", strerror(rv));
}

#define SENT 1000u		/* the number of a send */

static struct ibv_send_wr request(struct end *e, struct ibv_sge *sge, struct ibv_ah *ah, uint32_t qpn,
				  uint32_t len)
{
	*sge = (struct ibv_sge){ .addr = (uintptr_t)e->buf, .length = len, .lkey = e->mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = SENT, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	};
}

static int post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, wr, &bad);
}

static void send_to(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(e, &sge, ah, qpn, len);
	int rv = post(e, &wr);

	if (rv)
		hand_fail("posting a send: %s", strerror(rv));
}

static void fill(struct end *e, uint8_t seed, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		e->buf[i] = (uint8_t)(seed + i * 7);
}

static bool sent(struct end *e)
{
	return hand_took(e->cq, SENT, IBV_WC_SUCCESS);
}

static bool quiet(struct end *e)
{
	struct ibv_wc wc;

	if (!hand_poll(e->cq, &wc, QUIET_MS))
		return true;
	printf("# %lu came with %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return false;
}

/* The next completion is a datagram of @len octets of @from's buffer, in slot @i. */
static bool received(struct end *e, int i, struct end *from, uint32_t len, struct ibv_wc *wc)
{
	if (!hand_poll(e->cq, wc, SOON_MS))
		return false;
	if (wc->wr_id != (uint64_t)i || wc->status || wc->opcode != IBV_WC_RECV ||
	    wc->byte_len != GRH + len || !(wc->wc_flags & IBV_WC_GRH) ||
	    wc->src_qp != from->qp->qp_num || wc->qp_num != e->qp->qp_num || wc->pkey_index ||
	    wc->slid || wc->sl != (slot(e, i)[0] >> 4 == 6 ? 0x9 : 0xA)) {
		printf("# %lu came with %s, %u octets from %#x\n", (unsigned long)wc->wr_id,
		       ibv_wc_status_str(wc->status), wc->byte_len, wc->src_qp);
		return false;
	}
	return !memcmp(slot(e, i) + GRH, from->buf, len);
}

static bool moved(uint32_t len)
{
	struct ibv_wc wc;

	fill(&a, (uint8_t)len, len);
	post_recv(&b, 0, SLOT);
	send_to(&a, to_b, b.qp->qp_num, len);
	return sent(&a) && received(&b, 0, &a, len, &wc);
}

/* ---- the GRH ---- */

static uint16_t sum_of(const uint8_t *p, int n)
{
	uint32_t sum = 0;

	for (; n; n -= 2, p += 2)
		sum += p[0] << 8 | p[1];
	sum = (sum & 0xffff) + (sum >> 16);
	return sum + (sum >> 16);
}

static bool is_v4_header(const uint8_t *grh, const union ibv_gid *gid, uint32_t len)
{
	const uint8_t *h = grh + 20;
	int i;

	for (i = 0; i < 20; i++)
		if (grh[i])
			return false;
	return h[0] == 0x45 && (uint32_t)(h[2] << 8 | h[3]) > 28 + len && h[8] && h[9] == 17 &&
	       sum_of(h, 20) == 0xffff && !memcmp(h + 12, gid->raw + 12, 4) &&
	       !memcmp(h + 16, gid->raw + 12, 4);
}

static bool behind_its_header(void)
{
	return moved(100) && is_v4_header(slot(&b, 0), &dev.gid, 100) && quiet(&a) && quiet(&b);
}

/* The device's first GID of IPv6, and not link-local: its index; -1: there is none. */
static int find_v6(union ibv_gid *gid)
{
	struct ibv_port_attr port;
	int i;

	if (ibv_query_port(dev.ctx, 1, &port))
		hand_fail("ibv_query_port");
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(dev.ctx, 1, i, gid) && memcmp(gid, &dev.gid, 12) &&
		    gid->raw[0] != 0xfe)
			return i;
	return -1;
}

/* A host without IPv6 has no such GID. */
static bool by_ipv6(void)
{
	union ibv_gid gid;
	int index = find_v6(&gid);
	const struct ibv_grh *grh = (void *)slot(&b, 0);
	struct ibv_ah *ah;
	struct ibv_wc wc;
	bool ok;

	if (index < 0) {
		printf("# no IPv6 address\n");
		return true;
	}
	ah = make_ah(&gid, index);
	fill(&a, 1, 333);
	post_recv(&b, 0, SLOT);
	send_to(&a, ah, b.qp->qp_num, 333);
	ok = sent(&a) && received(&b, 0, &a, 333, &wc) && ntohl(grh->version_tclass_flow) >> 28 == 6 &&
	     ntohs(grh->paylen) > 8 + 333 && grh->next_hdr == 17 && grh->hop_limit &&
	     !memcmp(&grh->sgid, &gid, 16) && !memcmp(&grh->dgid, &gid, 16);
	ibv_destroy_ah(ah);
	return ok;
}

static bool class_is_told(void)
{
	struct ibv_ah_attr attr = address(&dev.gid, dev.gid_index);
	struct ibv_ah *ah;
	struct ibv_wc wc;
	bool ok;

	attr.grh.traffic_class = 0x68;
	ah = ibv_create_ah(dev.pd, &attr);
	post_recv(&b, 0, SLOT);
	send_to(&a, ah, b.qp->qp_num, 8);
	ok = sent(&a) && received(&b, 0, &a, 8, &wc) && slot(&b, 0)[21] == 0x68;
	ibv_destroy_ah(ah);
	return ok;
}

/* Who got one answers by nothing but the completion and what stood before it. */
static bool answered(const union ibv_gid *gid, int index)
{
	struct ibv_ah *ah = make_ah(gid, index), *back;
	struct ibv_wc wc;
	bool ok;

	post_recv(&a, 1, SLOT);
	post_recv(&b, 0, SLOT);
	fill(&a, 1, 64);
	fill(&b, 2, 99);
	send_to(&a, ah, b.qp->qp_num, 64);
	ok = sent(&a) && received(&b, 0, &a, 64, &wc);
	back = ok ? ibv_create_ah_from_wc(dev.pd, &wc, (struct ibv_grh *)slot(&b, 0), 1) : NULL;
	if (back) {
		send_to(&b, back, wc.src_qp, 99);
		ok = sent(&b) && received(&a, 1, &b, 99, &wc);
		ibv_destroy_ah(back);
	}
	ibv_destroy_ah(ah);
	return ok && back;
}

static bool an_answer_finds_its_way(void)
{
	union ibv_gid gid;
	int index = find_v6(&gid);

	return answered(&dev.gid, dev.gid_index) && (index < 0 || answered(&gid, index));
}

/* ---- what is sent ---- */

static bool immediate(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, 0);
	struct ibv_wc wc;

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(0xfeedf00d);
	post_recv(&b, 0, SLOT);
	return !post(&a, &wr) && sent(&a) && received(&b, 0, &a, 0, &wc) &&
	       wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(0xfeedf00d);
}

static bool of_every_length(void)
{
	return moved(0) && moved(1) && moved(mtu - 1) && moved(mtu);
}

static bool inline_and_pieces(void)
{
	struct ibv_sge sge[4];
	struct ibv_send_wr wr = request(&a, sge, to_b, b.qp->qp_num, 0);
	struct ibv_wc wc;
	uint8_t gone[200];
	int i;

	fill(&a, 9, 400);
	memcpy(gone, a.buf, sizeof(gone));
	sge[0] = (struct ibv_sge){ .addr = (uintptr_t)gone, .length = sizeof(gone) };
	wr.send_flags |= IBV_SEND_INLINE;
	post_recv(&b, 0, SLOT);
	if (post(&a, &wr))
		return false;
	memset(gone, 0, sizeof(gone));
	if (!sent(&a) || !received(&b, 0, &a, sizeof(gone), &wc))
		return false;
	for (i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)a.buf + 100 * i, .length = 100,
					   .lkey = a.mr->lkey };
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.num_sge = 4;
	post_recv(&b, 1, SLOT);
	return !post(&a, &wr) && sent(&a) && received(&b, 1, &a, 400, &wc);
}

/* The header's end, and the data's pieces, in four places. */
static bool into_pieces(void)
{
	static const uint32_t lens[4] = { 13, 40, 1, 500 };
	struct ibv_sge sge[4];
	struct ibv_recv_wr wr = { .wr_id = 0, .sg_list = sge, .num_sge = 4 }, *bad;
	uint8_t *at = slot(&b, 0);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; at += lens[i++])
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)at, .length = lens[i],
					   .lkey = b.mr->lkey };
	fill(&a, 3, 300);
	if (ibv_post_recv(b.qp, &wr, &bad))
		return false;
	send_to(&a, to_b, b.qp->qp_num, 300);
	return sent(&a) && received(&b, 0, &a, 300, &wc);
}

static bool in_order(void)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < SLOTS / 2; i++)
		post_recv(&b, i, SLOT);
	for (i = 0; i < SLOTS / 2; i++) {
		memcpy(a.buf, &i, sizeof(i));
		send_to(&a, to_b, b.qp->qp_num, 64);
		if (!sent(&a))
			return false;
	}
	for (i = 0; i < SLOTS / 2; i++)
		if (!hand_poll(b.cq, &wc, SOON_MS) || wc.wr_id != i ||
		    memcmp(slot(&b, i) + GRH, &i, sizeof(i)))
			return false;
	return true;
}

static bool by_ibv_wr(void)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	int i;

	ibv_destroy_qp(a.qp);
	if (make_qp(&a, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND) || errno != EOPNOTSUPP)
		return false;
	a.qp = make_qp(&a, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	if (!a.qp)
		return false;
	ready(&a);
	ex = ibv_qp_to_qp_ex(a.qp);
	for (i = 0; i < 4; i++)
		post_recv(&b, i, SLOT);
	fill(&a, 5, 100);
	ibv_wr_start(ex);
	for (i = 0; i < 4; i++) {
		ex->wr_id = SENT;
		ex->wr_flags = IBV_SEND_SIGNALED;
		if (i & 1)
			ibv_wr_send_imm(ex, htonl(i));
		else
			ibv_wr_send(ex);
		/* The address before the data, or behind them. */
		if (i < 2)
			ibv_wr_set_ud_addr(ex, to_b, b.qp->qp_num, QKEY);
		if (i & 1)
			ibv_wr_set_inline_data(ex, a.buf, 100);
		else
			ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 100);
		if (i >= 2)
			ibv_wr_set_ud_addr(ex, to_b, b.qp->qp_num, QKEY);
	}
	if (ibv_wr_complete(ex))
		return false;
	for (i = 0; i < 4; i++)
		if (!sent(&a) || !received(&b, i, &a, 100, &wc) ||
		    (i & 1 && wc.imm_data != htonl(i)))
			return false;
	return true;
}

/* ---- what is dropped ---- */

static bool keys(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, 8);
	struct ibv_wc wc;

	post_recv(&b, 0, SLOT);
	wr.wr.ud.remote_qkey = QKEY ^ 1;
	if (post(&a, &wr) || !sent(&a) || !quiet(&b))
		return false;
	/* The QP's own, and that is the right one. */
	wr.wr.ud.remote_qkey = OWN_QKEY;
	return !post(&a, &wr) && sent(&a) && received(&b, 0, &a, 8, &wc) && quiet(&b);
}

static bool without_a_receive(void)
{
	send_to(&a, to_b, b.qp->qp_num, 8);
	return sent(&a) && quiet(&b) && state_of(&b) == IBV_QPS_RTS && moved(9) && quiet(&b);
}

/* An unused QPN; an unused port; port 0. */
static bool to_unused_numbers(void)
{
	static const uint32_t others[] = { 0xff, 0x000100, 0, 1, 0xffffff };
	unsigned int i;

	send_to(&a, to_b, b.qp->qp_num ^ 0x80, 8);
	if (!sent(&a))
		return false;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		send_to(&a, to_b, others[i], 8);
		if (!sent(&a))
			return false;
	}
	return state_of(&a) == IBV_QPS_RTS && moved(10);
}

/* ---- what fails ---- */

/* The send completes in error, later ones are flushed, and a transition to RTS resumes the queue. */
static bool fails_and_goes_on(struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	if (post(&a, wr))
		return false;
	send_to(&a, to_b, b.qp->qp_num, 8);
	return hand_took(a.cq, SENT, status) && hand_took(a.cq, SENT, IBV_WC_WR_FLUSH_ERR) &&
	       state_of(&a) == IBV_QPS_SQE && quiet(&b) && !modify(&a, IBV_QPS_RTS, 0) && moved(11);
}

static bool longer_than_the_mtu(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, mtu + 1);

	return fails_and_goes_on(&wr, IBV_WC_LOC_LEN_ERR);
}

static bool from_unregistered_memory(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, 8);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, page, 4096, 0);
	bool ok;

	sge.lkey ^= 0x5a00;
	ok = fails_and_goes_on(&wr, IBV_WC_LOC_PROT_ERR);
	/* It was there when it was registered. */
	munmap(page, 4096);
	sge = (struct ibv_sge){ .addr = (uintptr_t)page, .length = 8, .lkey = mr->lkey };
	ok = ok && fails_and_goes_on(&wr, IBV_WC_LOC_PROT_ERR);
	ibv_dereg_mr(mr);
	return ok;
}

static bool by_an_impossible_address(void)
{
	struct ibv_ah_attr attr = address(&dev.gid, 255);
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, 1u << 24 | b.qp->qp_num, 8);

	if (ibv_create_ah(dev.pd, &attr) || errno != EINVAL)
		return false;
	attr = address(&dev.gid, dev.gid_index);
	attr.is_global = 0;
	if (ibv_create_ah(dev.pd, &attr) || errno != EINVAL)
		return false;
	attr.is_global = 1;
	attr.port_num = 2;
	if (ibv_create_ah(dev.pd, &attr) || errno != EINVAL)
		return false;
	return fails_and_goes_on(&wr, IBV_WC_LOC_QP_OP_ERR);
}

static bool other_operations_are_refused(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
	};
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, 8);
	unsigned int i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		wr.opcode = ops[i];
		if (post(&a, &wr) != EINVAL)
			return false;
	}
	return quiet(&a) && moved(12);
}

/* The receiver's QP fails, with the receives behind; a second life follows. */
static bool receiver_fails(enum ibv_wc_status status)
{
	post_recv(&b, 1, SLOT);
	send_to(&a, to_b, b.qp->qp_num, 100);
	if (!sent(&a) || !hand_took(b.cq, 0, status) || !hand_took(b.cq, 1, IBV_WC_WR_FLUSH_ERR) ||
	    state_of(&b) != IBV_QPS_ERR || modify(&b, IBV_QPS_RESET, 0))
		return false;
	ready(&b);
	return moved(13);
}

static bool into_a_short_receive(void)
{
	post_recv(&b, 0, GRH + 99);
	return receiver_fails(IBV_WC_LOC_LEN_ERR);
}

static bool into_unregistered_memory(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)slot(&b, 0), .length = SLOT,
			       .lkey = b.mr->lkey ^ 0x5a00 };
	struct ibv_recv_wr wr = { .wr_id = 0, .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(b.qp, &wr, &bad) && receiver_fails(IBV_WC_LOC_PROT_ERR);
}

/* ---- states ---- */

static bool states(void)
{
	struct ibv_wc wc;

	if (modify(&a, IBV_QPS_RESET, 0) || state_of(&a) != IBV_QPS_RESET)
		return false;
	/* Without its qkey; too early; from where it is not. */
	if (!modify(&a, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT) ||
	    !modify(&a, IBV_QPS_RTR, 0) || !to_rts(&a) || to_init(&a))
		return false;
	if (!to_rts(&a) || !modify(&a, IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS))
		return false;
	/* It receives from RTR on. */
	post_recv(&a, 0, SLOT);
	send_to(&b, to_a, a.qp->qp_num, 8);
	if (!sent(&b) || !quiet(&a) || modify(&a, IBV_QPS_RTR, 0))
		return false;
	send_to(&b, to_a, a.qp->qp_num, 8);
	if (!sent(&b) || !received(&a, 0, &b, 8, &wc))
		return false;
	/* And sends from RTS on. */
	if (!modify(&a, IBV_QPS_RTS, 0) || to_rts(&a))
		return false;
	return moved(14) && modify(&a, IBV_QPS_INIT, IBV_QP_QKEY) && state_of(&a) == IBV_QPS_RTS;
}

static bool drained_is_told(void)
{
	struct pollfd p = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	bool ok;

	if (poll(&p, 1, SOON_MS) != 1 || ibv_get_async_event(dev.ctx, &ev))
		return false;
	ok = ev.event_type == IBV_EVENT_SQ_DRAINED && ev.element.qp == a.qp;
	ibv_ack_async_event(&ev);
	return ok;
}

static bool drained(void)
{
	struct ibv_wc wc;

	if (modify(&a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY) || !drained_is_told())
		return false;
	fill(&a, 1, 50);
	post_recv(&b, 0, SLOT);
	send_to(&a, to_b, b.qp->qp_num, 50);
	if (!quiet(&a) || !quiet(&b) || modify(&a, IBV_QPS_RTS, 0))
		return false;
	return sent(&a) && received(&b, 0, &a, 50, &wc);
}

static bool in_error(void)
{
	post_recv(&a, 0, SLOT);
	if (modify(&a, IBV_QPS_ERR, 0) || !hand_took(a.cq, 0, IBV_WC_WR_FLUSH_ERR))
		return false;
	send_to(&a, to_b, b.qp->qp_num, 8);
	post_recv(&a, 1, SLOT);
	return hand_took(a.cq, SENT, IBV_WC_WR_FLUSH_ERR) && hand_took(a.cq, 1, IBV_WC_WR_FLUSH_ERR) &&
	       quiet(&b);
}

/* Its key may be changed under way. */
static bool another_key(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = QKEY + 1 }, now;
	struct ibv_qp_init_attr init;
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, b.qp->qp_num, 8);
	struct ibv_wc wc;

	post_recv(&b, 0, SLOT);
	if (ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_QKEY) ||
	    ibv_query_qp(b.qp, &now, IBV_QP_QKEY, &init) || now.qkey != QKEY + 1 ||
	    init.qp_type != IBV_QPT_UD)
		return false;
	send_to(&a, to_b, b.qp->qp_num, 8);
	wr.wr.ud.remote_qkey = QKEY + 1;
	return sent(&a) && quiet(&b) && !post(&a, &wr) && sent(&a) && received(&b, 0, &a, 8, &wc);
}

/* ---- with others ---- */

static bool shared_receives(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SLOTS, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &attr);
	struct end c;
	struct ibv_wc wc;
	bool ok;

	make_end(&c, srq);
	ready(&c);
	post_recv(&c, 0, SLOT);
	post_recv(&c, 1, SLOT);
	fill(&a, 1, 60);
	fill(&b, 2, 70);
	send_to(&a, to_b, c.qp->qp_num, 60);
	ok = sent(&a) && received(&c, 0, &a, 60, &wc);
	send_to(&b, to_b, c.qp->qp_num, 70);
	ok = ok && sent(&b) && received(&c, 1, &b, 70, &wc);
	/* Empty: dropped, and the QP goes on. */
	send_to(&b, to_b, c.qp->qp_num, 70);
	ok = ok && sent(&b) && quiet(&c);
	post_recv(&c, 2, SLOT);
	send_to(&b, to_b, c.qp->qp_num, 70);
	ok = ok && sent(&b) && received(&c, 2, &b, 70, &wc);
	unmake_end(&c);
	return !ibv_destroy_srq(srq) && ok;
}

static bool to_itself(void)
{
	struct ibv_wc wc[2];
	int i;

	post_recv(&a, 0, SLOT);
	send_to(&a, to_a, a.qp->qp_num, 44);
	for (i = 0; i < 2; i++)
		if (!hand_poll(a.cq, &wc[i], SOON_MS) || wc[i].status)
			return false;
	return wc[0].wr_id == SENT && !wc[1].wr_id && wc[1].src_qp == a.qp->qp_num;
}

/* An event for a datagram that asks for one, and for no other. */
static bool solicited(void)
{
	struct ibv_comp_channel *chan = ibv_create_comp_channel(dev.ctx);
	struct pollfd p = { .fd = chan->fd, .events = POLLIN };
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, SLOTS, NULL, chan, 0), *of;
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(&a, &sge, to_b, 0, 8);
	struct end c = b;
	bool ok;
	void *x;

	c.cq = cq;
	c.qp = make_qp(&c, 0);
	ready(&c);
	wr.wr.ud.remote_qpn = c.qp->qp_num;
	post_recv(&c, 0, SLOT);
	post_recv(&c, 1, SLOT);
	ok = !ibv_req_notify_cq(cq, 1) && !post(&a, &wr) && sent(&a) && !poll(&p, 1, QUIET_MS);
	wr.send_flags |= IBV_SEND_SOLICITED;
	ok = ok && !post(&a, &wr) && sent(&a) && poll(&p, 1, SOON_MS) == 1 &&
	     !ibv_get_cq_event(chan, &of, &x) && of == cq;
	if (ok)
		ibv_ack_cq_events(cq, 1);
	ibv_destroy_qp(c.qp);
	return !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(chan) && ok;
}

/* QPs that go while datagrams come for them; their CQ stays, and another QP of it goes on. */
static volatile bool flooding;

static void *flood(void *arg)
{
	uint32_t qpn = *(uint32_t *)arg;
	struct ibv_wc wc;

	while (flooding) {
		send_to(&a, to_b, qpn, 512);
		while (!ibv_poll_cq(a.cq, 1, &wc))
			;
	}
	return NULL;
}

static bool one_life(void)
{
	struct ibv_wc wc;
	uint32_t qpn = b.qp->qp_num;
	pthread_t t;
	int i, n = 0;

	for (i = 0; i < SLOTS / 2; i++)
		post_recv(&b, i, SLOT);
	flooding = true;
	if (pthread_create(&t, NULL, flood, &qpn))
		hand_fail("no thread");
	for (i = 0; i < 8 && hand_poll(b.cq, &wc, SOON_MS); i++)
		n += !wc.status;
	ibv_destroy_qp(b.qp);
	flooding = false;
	pthread_join(t, NULL);
	b.qp = make_qp(&b, 0);
	ready(&b);
	return n == 8 && quiet(&b);
}

static bool go_while_datagrams_come(void)
{
	int i;

	for (i = 0; i < 10; i++)
		if (!one_life())
			return false;
	return moved(15);
}

/* ---- forged datagrams ---- */

/* As weft's roce/datagram.h has it. */
struct words {
	uint32_t magic;
	uint8_t version, flags;
	uint16_t zero;
	uint32_t to, from, qkey, imm;
	uint8_t data[8];
};

static int open_udp(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memcpy(&in.sin_addr, dev.gid.raw + 12, 4);
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, len) ||
	    getsockname(fd, (struct sockaddr *)&in, &len))
		hand_fail("no socket");
	*port = ntohs(in.sin_port);
	return fd;
}

static void say(int fd, const void *p, size_t len)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(b.qp->qp_num >> 8) };

	memcpy(&in.sin_addr, dev.gid.raw + 12, 4);
	if (sendto(fd, p, len, 0, (struct sockaddr *)&in, sizeof(in)) != (ssize_t)len)
		hand_fail("sendto: %s", strerror(errno));
}

static bool came(uint32_t from)
{
	struct ibv_wc wc;

	return hand_poll(b.cq, &wc, SOON_MS) && !wc.status && wc.src_qp == from &&
	       wc.byte_len == GRH + 8;
}

static void say_wrong(int fd, const struct words *right)
{
	static uint8_t large[60000];
	struct words w = *right;
	uint8_t *p = (uint8_t *)&w;
	unsigned int i;

	/* Every octet of the header is wrong once, but the last of who it is: all 256 are the port's. */
	for (i = 0; i < sizeof(w) - sizeof(w.data); i++) {
		if (i == offsetof(struct words, from) + 3)
			continue;
		p[i] ^= 0x80;
		say(fd, &w, sizeof(w));
		p[i] ^= 0x80;
	}
	for (i = 0; i < sizeof(w) - sizeof(w.data); i++)
		say(fd, &w, i);
	memcpy(large, right, sizeof(*right));
	say(fd, large, sizeof(large));
	say(fd, large, 24 + 4096 + 1);
}

static bool forged_datagrams(void)
{
	uint16_t port, other_port;
	int fd = open_udp(&port), other = open_udp(&other_port), i;
	struct words w = {
		.magic = htonl(0x77655544), .version = 1, .to = htonl(b.qp->qp_num),
		.from = htonl((uint32_t)port << 8 | 7), .qkey = htonl(QKEY),
	};
	bool ok;

	for (i = 0; i < 4; i++)
		post_recv(&b, i, SLOT);
	/* This header is valid; one with another source is dropped. */
	say(fd, &w, sizeof(w));
	ok = came((uint32_t)port << 8 | 7);
	say(other, &w, sizeof(w));
	say_wrong(fd, &w);
	ok = ok && quiet(&b);
	say(fd, &w, sizeof(w));
	ok = ok && came((uint32_t)port << 8 | 7) && state_of(&b) == IBV_QPS_RTS && quiet(&b);
	close(fd);
	close(other);
	return ok;
}

/* ---- what there is not ---- */

static bool other_types_are_refused(void)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER,
	};
	unsigned int i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr attr = { .send_cq = a.cq, .recv_cq = a.cq, .qp_type = types[i],
						 .cap = { 1, 1, 1, 1, 0 } };

		errno = 0;
		if (ibv_create_qp(dev.pd, &attr) || errno != EOPNOTSUPP)
			return false;
	}
	return true;
}

/* ---- the cases ---- */

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "a-datagram-follows-its-grh", behind_its_header },
	{ "ipv6-has-its-own-header", by_ipv6 },
	{ "the-grh-has-the-traffic-class", class_is_told },
	{ "an-answer-finds-its-way-by-the-completion", an_answer_finds_its_way },
	{ "immediate-data", immediate },
	{ "lengths-up-to-the-mtu", of_every_length },
	{ "inline-and-in-pieces", inline_and_pieces },
	{ "received-in-pieces", into_pieces },
	{ "in-order", in_order },
	{ "posted-by-ibv_wr", by_ibv_wr },
	{ "a-wrong-key-is-dropped", keys },
	{ "without-a-receive-it-is-dropped", without_a_receive },
	{ "without-a-receiver-it-is-lost", to_unused_numbers },
	{ "longer-than-the-mtu-fails", longer_than_the_mtu },
	{ "unregistered-memory-is-not-sent", from_unregistered_memory },
	{ "an-impossible-address-is-refused", by_an_impossible_address },
	{ "other-operations-are-refused", other_operations_are_refused },
	{ "a-short-receive-fails-the-receiver", into_a_short_receive },
	{ "unregistered-memory-is-not-written", into_unregistered_memory },
	{ "states-are-those-of-the-table", states },
	{ "drained-sends-wait", drained },
	{ "an-error-flushes", in_error },
	{ "the-key-may-change", another_key },
	{ "an-srq-serves", shared_receives },
	{ "a-datagram-to-itself", to_itself },
	{ "a-solicited-event", solicited },
	{ "qps-go-while-datagrams-come", go_while_datagrams_come },
	{ "forged-datagrams-are-dropped", forged_datagrams },
	{ "other-types-are-refused", other_types_are_refused },
};

static bool run(unsigned int i)
{
	bool ok;

	open_ends();
	ok = cases[i].run();
	close_ends();
	return ok;
}

int main(int argc, char **argv)
{
	unsigned int i, n = sizeof(cases) / sizeof(cases[0]);
	struct ibv_port_attr port;

	setvbuf(stdout, NULL, _IOLBF, 0);
	hand_program = "weft-datagram";
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: weft-datagram ADDR [CASE]\n");
		return 2;
	}
	hand_open(&dev, argv[1]);
	if (ibv_query_port(dev.ctx, 1, &port))
		hand_fail("ibv_query_port");
	mtu = 128u << port.active_mtu;
	verdict_only(argv[2]);
	for (i = 0; i < n; i++)
		if (verdict_wants(cases[i].name))
			verdict_if(cases[i].name, run(i));
	hand_close(&dev);
	return verdict_end();
}
