/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What weft-reflector does when a command arrives: see reflector.h. */
#include <errno.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "verbs.h"

uint8_t *recv_slot(const struct link *l, unsigned int slot)
{
	return l->s->arena + AT_RECV + l->idx % AREAS * RECV_AREA +
	       slot * REFL_RECV_STRIDE;
}

static int post_recv(struct link *l, unsigned int slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)recv_slot(l, slot),
			       .length = REFL_RECV_SIZE,
			       .lkey = l->s->mr[REFL_ALL]->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	if (l->s->srq && l->flags & REFL_F_SRQ)
		return ibv_post_srq_recv(l->s->srq, &wr, &bad);
	return ibv_post_recv(l->id->qp, &wr, &bad);
}

int post_recvs(struct link *l, unsigned int n)
{
	int err = 0;

	while (n-- && !err)
		err = post_recv(l, l->recv_next++ % RECV_SLOTS);
	return err;
}

/* wr_id of the send queue: what, and the command's sequence number. */
enum { WR_PLAIN = 1, WR_DONE = 2 }; /* DONE: announce the completion */

static uint64_t wr_id(unsigned int what, uint32_t seq)
{
	return (uint64_t)1 << 63 | (uint64_t)what << 32 | seq;
}

static int post_wr(struct link *l, struct ibv_send_wr *wr, const void *addr,
		   uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)addr, .length = len,
			       .lkey = lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(l->id->qp, wr, &bad);
}

static uint8_t *tx_slot(struct link *l)
{
	return l->s->arena + AT_TX + (l->idx % AREAS * TX_SLOTS +
				      l->tx_next++ % TX_SLOTS) * TX_SIZE;
}

void send_note(struct link *l, uint32_t magic, uint32_t seq, uint32_t status,
	       uint32_t value)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .wr_id = wr_id(WR_PLAIN, seq) };
	uint8_t *b = tx_slot(l);

	put32(b, magic);
	put32(b + 4, seq);
	put32(b + 8, status);
	put32(b + 12, value);
	post_wr(l, &wr, b, REFL_ACK_LEN, l->s->mr[REFL_ALL]->lkey);
}

struct command {
	uint16_t op, flags;
	uint32_t seq, count, len, stag;
	uint64_t to, arg, arg2;
};

static void command_read(const uint8_t *p, struct command *k)
{
	k->op = get16(p + 4);
	k->flags = get16(p + 6);
	k->seq = get32(p + 8);
	k->count = get32(p + 12);
	k->len = get32(p + 16);
	k->stag = get32(p + 20);
	k->to = get64(p + 24);
	k->arg = get64(p + 32);
	k->arg2 = get64(p + 40);
}

static uint8_t *big(struct link *l, uint64_t off)
{
	return l->s->arena + AT_BIG + off % REFL_BIG_LEN;
}

/* Small Sends carry their number, large ones the octets of BIG. */
static int do_send(struct link *l, const struct command *k)
{
	static const enum ibv_wr_opcode op[] = {
		[REFL_SEND] = IBV_WR_SEND,
		[REFL_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[REFL_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	};
	int err = 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		struct ibv_send_wr wr = { .opcode = op[k->op],
					  .wr_id = wr_id(WR_PLAIN, k->seq) };
		uint8_t *b = tx_slot(l);
		bool small = k->len <= TX_SIZE;

		memset(b, (int)i + 1, TX_SIZE);
		put32(b, i);
		wr.send_flags = k->flags & REFL_CF_SE ? IBV_SEND_SOLICITED : 0;
		wr.invalidate_rkey = k->stag;
		if (k->op == REFL_SEND_IMM)
			wr.imm_data = htobe32((uint32_t)k->arg);
		err = post_wr(l, &wr, small ? b : big(l, 0), k->len,
			      l->s->mr[small ? REFL_ALL : REFL_BIG]->lkey);
	}
	return err;
}

static int do_tagged(struct link *l, const struct command *k)
{
	int err = 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		bool end = i + 1 == k->count && k->op == REFL_READ;
		uint64_t at = k->flags & REFL_CF_REPEAT ? 0 :
			      (uint64_t)i * k->len;
		struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

		if (k->op == REFL_READ)
			wr.opcode = IBV_WR_RDMA_READ;
		if (k->op == REFL_WRITE_IMM)
			wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32((uint32_t)k->arg2);
		wr.wr_id = wr_id(end ? WR_DONE : WR_PLAIN, k->seq);
		wr.wr.rdma.remote_addr = k->to + at;
		wr.wr.rdma.rkey = k->stag;
		err = post_wr(l, &wr, big(l, k->arg + at), k->len,
			      l->s->mr[REFL_BIG]->lkey);
	}
	return err;
}

static int do_atomic(struct link *l, const struct command *k)
{
	struct ibv_send_wr wr = { .wr_id = wr_id(WR_DONE, k->seq) };

	wr.opcode = k->op == REFL_FADD ? IBV_WR_ATOMIC_FETCH_AND_ADD :
					 IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = k->to;
	wr.wr.atomic.rkey = k->stag;
	wr.wr.atomic.compare_add = k->arg;
	wr.wr.atomic.swap = k->arg2;
	return post_wr(l, &wr, big(l, 4), 8, l->s->mr[REFL_BIG]->lkey);
}

static int do_revoke(struct link *l, uint64_t r)
{
	int err;

	if (r >= REFL_ALL || !l->s->mr[r])
		return EINVAL;
	err = ibv_dereg_mr(l->s->mr[r]);
	if (!err)
		l->s->mr[r] = NULL;
	return err;
}

static int do_bad_lkey(struct link *l, const struct command *k)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .wr_id = wr_id(WR_PLAIN, k->seq) };

	return post_wr(l, &wr, tx_slot(l), 16,
		       l->s->mr[REFL_ALL]->lkey ^ 0x00ffff00);
}

static int do_bind(struct link *l, const struct command *k, uint32_t *stag)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .wr_id = wr_id(WR_PLAIN, k->seq) }, *bad;
	uint64_t r = k->arg < REFL_ALL ? k->arg : REFL_RW;

	if (l->mw)
		return EBUSY;
	l->mw = ibv_alloc_mw(l->s->pd, IBV_MW_TYPE_2);
	if (!l->mw)
		return errno;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = l->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(l->mw->rkey);
	wr.bind_mw.bind_info.mr = l->s->mr[r];
	wr.bind_mw.bind_info.addr = (uintptr_t)l->s->arena + region_at(r);
	wr.bind_mw.bind_info.length = region_len(r);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ;
	*stag = wr.bind_mw.rkey;
	return ibv_post_send(l->id->qp, &wr, &bad);
}

/* STags of short-lived regions, for a look at how they are drawn. */
static int do_register(struct link *l, uint32_t count)
{
	struct ibv_mr *mr[256];
	uint32_t n = 0, max = sizeof(mr) / sizeof(mr[0]);

	for (count = count < max ? count : max; n < count; n++) {
		mr[n] = ibv_reg_mr(l->s->pd, l->s->arena, PAGE,
				   IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
		if (!mr[n])
			break;
		put32(big(l, 4 * n), mr[n]->rkey);
	}
	for (uint32_t i = 0; i < n; i++)
		ibv_dereg_mr(mr[i]);
	return n == count ? 0 : ENOMEM;
}

static int obey(struct link *l, const struct command *k, uint32_t *value)
{
	switch (k->op) {
	case REFL_NOP: return 0;
	case REFL_SEND: case REFL_SEND_INV: case REFL_SEND_IMM:
		return do_send(l, k);
	case REFL_WRITE: case REFL_WRITE_IMM: case REFL_READ:
		return do_tagged(l, k);
	case REFL_FADD: case REFL_CSWAP: return do_atomic(l, k);
	case REFL_REVOKE: return do_revoke(l, k->arg);
	case REFL_RECV: return post_recvs(l, k->count);
	case REFL_BAD_LKEY: return do_bad_lkey(l, k);
	case REFL_DISCONNECT: return rdma_disconnect(l->id) ? errno : 0;
	case REFL_BIND: return do_bind(l, k, value);
	case REFL_REGISTER: return do_register(l, k->count);
	default: return EOPNOTSUPP;
	}
}

static void on_recv(struct link *l, const struct ibv_wc *wc)
{
	uint8_t *b = recv_slot(l, wc->wr_id % RECV_SLOTS);
	uint32_t v[3] = { wc->opcode | wc->wc_flags << 16, wc->byte_len,
			  wc->wc_flags & IBV_WC_WITH_IMM ?
			  be32toh(wc->imm_data) : 0 };
	struct command k;
	uint32_t value = 0;
	int err;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != REFL_CMD_LEN ||
	    get32(b) != REFL_MAGIC_CMD) {
		session_note(l->s, l->idx, REFL_EV_RECV, wc->status, v, b);
		return;
	}
	command_read(b, &k);
	memset(b, REFL_GUARD_BYTE, REFL_RECV_SIZE);
	post_recv(l, wc->wr_id % RECV_SLOTS);
	err = obey(l, &k, &value);
	if (verbose)
		fprintf(stderr, "command %u: %d\n", k.op, err);
	if (!(k.flags & REFL_CF_NOACK))
		send_note(l, REFL_MAGIC_ACK, k.seq, (uint32_t)err, value);
}

static void on_wc(struct link *l, const struct ibv_wc *wc)
{
	uint32_t v[3] = { wc->opcode, wc->byte_len, (uint32_t)wc->wr_id };

	if (!(wc->wr_id >> 63)) {
		on_recv(l, wc);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		session_note(l->s, l->idx, REFL_EV_SEND, wc->status, v, NULL);
	else if ((wc->wr_id >> 32 & 0xff) == WR_DONE) {
		session_note(l->s, l->idx, REFL_EV_SEND, 0, v, NULL);
		send_note(l, REFL_MAGIC_DONE, (uint32_t)wc->wr_id, 0,
			  wc->byte_len);
	}
}

void drain(struct link *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->cq, 1, &wc) > 0)
		on_wc(l, &wc);
}

void on_completion(struct link *l)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(l->ch, &cq, &ctx))
		return;
	ibv_ack_cq_events(cq, 1);
	if (l->mute)
		return;
	ibv_req_notify_cq(l->cq, 0);
	drain(l);
}
