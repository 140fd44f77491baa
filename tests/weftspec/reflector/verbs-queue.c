/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of weft-reflector: what the core posts, and what completes. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>

#include "verbs.h"

/* In wr_id: of the send queue.  Receives have their slot. */
#define OF_SEND_QUEUE (1ull << 63)

static struct link *link_of(struct reflector_link *r)
{
	return r->front;
}

/* ---- posting ---- */

static int post_recv(struct reflector_link *r, uint32_t slot)
{
	struct link *l = link_of(r);
	struct ibv_sge sge = { .addr = (uintptr_t)reflector_recv_slot(r, slot),
			       .length = REFL_RECV_SIZE,
			       .lkey = l->s->mr[REFL_ALL]->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	if (l->s->srq && r->flags & REFL_F_SRQ)
		return ibv_post_srq_recv(l->s->srq, &wr, &bad);
	return ibv_post_recv(l->qp, &wr, &bad);
}

static void fill_operands(struct ibv_send_wr *wr, const struct reflector_wr *r)
{
	switch (r->op) {
	case REFL_SEND_INV:
		wr->invalidate_rkey = r->stag;
		break;
	case REFL_SEND_IMM:
		wr->imm_data = htobe32(r->imm);
		break;
	case REFL_WRITE_IMM:
		wr->imm_data = htobe32(r->imm);
		/* fallthrough */
	case REFL_WRITE: case REFL_READ:
		wr->wr.rdma.remote_addr = r->to;
		wr->wr.rdma.rkey = r->stag;
		break;
	case REFL_FADD: case REFL_CSWAP:
		wr->wr.atomic.remote_addr = r->to;
		wr->wr.atomic.rkey = r->stag;
		wr->wr.atomic.compare_add = r->arg;
		wr->wr.atomic.swap = r->arg2;
		break;
	default:
		break;
	}
}

static uint32_t local_key(const struct session *s, const struct reflector_wr *r)
{
	uint32_t lkey = s->mr[r->key] ? s->mr[r->key]->lkey : 0;

	return r->wrong_key ? lkey ^ 0x00ffff00 : lkey;
}

static int post_send(struct reflector_link *l, const struct reflector_wr *r)
{
	static const enum ibv_wr_opcode opcode[] = {
		[REFL_SEND] = IBV_WR_SEND,
		[REFL_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[REFL_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[REFL_WRITE] = IBV_WR_RDMA_WRITE,
		[REFL_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[REFL_READ] = IBV_WR_RDMA_READ,
		[REFL_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[REFL_CSWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_sge sge = { .addr = (uintptr_t)r->addr, .length = r->len,
			       .lkey = local_key(link_of(l)->s, r) };
	struct ibv_send_wr wr = { .opcode = opcode[r->op], .sg_list = &sge,
				  .num_sge = r->len ? 1 : 0,
				  .wr_id = OF_SEND_QUEUE | r->id,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (r->solicited)
		wr.send_flags |= IBV_SEND_SOLICITED;
	fill_operands(&wr, r);
	return ibv_post_send(link_of(l)->qp, &wr, &bad);
}

/* A memory window of type 2. */
static int bind_region(struct reflector_link *r, enum refl_region region,
		       uint32_t seq, uint32_t *stag)
{
	struct link *l = link_of(r);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .wr_id = OF_SEND_QUEUE | seq,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (l->mw)
		return EBUSY;
	l->mw = ibv_alloc_mw(l->s->pd, IBV_MW_TYPE_2);
	if (!l->mw)
		return errno;
	wr.bind_mw.mw = l->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(l->mw->rkey);
	wr.bind_mw.bind_info.mr = l->s->mr[region];
	wr.bind_mw.bind_info.addr =
		(uintptr_t)reflector_region_start(r->s, region);
	wr.bind_mw.bind_info.length = reflector_region_len(r->s, region);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ;
	*stag = wr.bind_mw.rkey;
	return ibv_post_send(l->qp, &wr, &bad);
}

static int disconnect(struct reflector_link *r)
{
	struct link *l = link_of(r);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	if (!l->id)
		return ibv_modify_qp(l->qp, &a, IBV_QP_STATE);
	return rdma_disconnect(l->id) ? errno : 0;
}

static void trace_command(uint16_t op, int err)
{
	if (verbose)
		fprintf(stderr, "command %u: %d\n", op, err);
}

const struct reflector_ops verbs_ops = {
	.post_recv = post_recv, .post_send = post_send,
	.disconnect = disconnect, .deregister = deregister_region,
	.bind = bind_region, .draw_stags = register_and_forget,
	.trace_command = trace_command,
};

/* ---- completions ---- */

static void on_completion(struct link *l, const struct ibv_wc *wc)
{
	struct reflector_completion c = { .status = wc->status,
					  .opcode = wc->opcode,
					  .len = wc->byte_len };

	if (wc->wr_id & OF_SEND_QUEUE) {
		reflector_on_sent(&l->ulp, wc->wr_id & ~OF_SEND_QUEUE, &c);
		return;
	}
	c.opcode |= wc->wc_flags << 16;
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		c.imm = be32toh(wc->imm_data);
	reflector_on_recv(&l->ulp, (uint32_t)wc->wr_id, &c);
}

void drain_completions(struct link *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->cq, 1, &wc) > 0)
		on_completion(l, &wc);
}

void on_completion_event(struct link *l)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(l->ch, &cq, &ctx))
		return;
	ibv_ack_cq_events(cq, 1);
	if (l->mute)
		return;
	ibv_req_notify_cq(l->cq, 0);
	drain_completions(l);
}

/* ---- set-up ---- */

static int create_srq(struct session *s)
{
	struct ibv_srq_init_attr a = {
		.attr = { .max_wr = REFLECTOR_RECV_SLOTS, .max_sge = 1 } };

	if (!s->srq)
		s->srq = ibv_create_srq(s->pd, &a);
	return s->srq ? 0 : -1;
}

int create_queues(struct link *l)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = SQ_DEPTH,
			 .max_recv_wr = REFLECTOR_RECV_SLOTS,
			 .max_send_sge = 1, .max_recv_sge = 1 } };

	l->mute = l->ulp.flags & REFL_F_CQ;
	l->ch = ibv_create_comp_channel(l->verbs);
	if (!l->ch)
		return -1;
	fcntl(l->ch->fd, F_SETFL, O_NONBLOCK);
	l->cq = ibv_create_cq(l->verbs, l->mute ? 4 : SQ_DEPTH + 64, NULL,
			      l->ch, 0);
	if (!l->cq || ibv_req_notify_cq(l->cq, 0))
		return -1;
	if (l->ulp.flags & REFL_F_SRQ && create_srq(l->s))
		return -1;
	a.send_cq = a.recv_cq = l->cq;
	a.srq = l->ulp.flags & REFL_F_SRQ ? l->s->srq : NULL;
	if (!l->id)
		l->qp = ibv_create_qp(l->s->pd, &a);
	else if (!rdma_create_qp(l->id, l->s->pd, &a))
		l->qp = l->id->qp;
	return l->qp ? 0 : -1;
}

void destroy_queues(struct link *l)
{
	if (l->mw)
		ibv_dealloc_mw(l->mw);
	if (l->qp && l->id)
		rdma_destroy_qp(l->id);
	else if (l->qp)
		ibv_destroy_qp(l->qp);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->ch)
		ibv_destroy_comp_channel(l->ch);
}
