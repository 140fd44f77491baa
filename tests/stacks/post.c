// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "post.h"

/* The parts of a ring that a provider needs: none of it is shared with the core's code. */
struct producer {
	struct weft_ring *ring;
	u32 slots;
	u32 *idx;
};

static void *slot_at(const struct producer *p, u32 idx)
{
	return (u8 *)p->ring + WEFT_RING_DATA + (size_t)(idx & (p->slots - 1)) * WEFT_SLOT_SIZE;
}

/* Copies @n slots at the producer index; false without room. */
static bool produce(const struct producer *p, const void *from, u32 n)
{
	u32 used = *p->idx - smp_load_acquire(&p->ring->kern_idx);
	u32 i;

	if (!p->slots || used + n > p->slots)
		return false;
	for (i = 0; i < n; i++)
		memcpy(slot_at(p, *p->idx + i), (const u8 *)from + (size_t)i * WEFT_SLOT_SIZE,
		       WEFT_SLOT_SIZE);
	*p->idx += n;
	smp_store_release(&p->ring->user_idx, *p->idx);
	return true;
}

static void ring_doorbell(struct host_qp *qp, const struct weft_ring *ring)
{
	/*
	 * Pairs with weft_ringq_sleep()'s: either the user sees KICK, or the stack sees the index.
	 */
	smp_mb();
	if (!(READ_ONCE(ring->flags) & WEFT_RING_KICK))
		return;
	qp->doorbells++;
	qp->kicked = true;
}

static u32 slots_of(u32 data_len)
{
	if (data_len <= WEFT_SQ_DATA)
		return 1;
	return 1 + (data_len - WEFT_SQ_DATA + WEFT_SLOT_SIZE - 1) / WEFT_SLOT_SIZE;
}

static u32 encode_inline(const struct host_wr *wr, struct host_wqe *w)
{
	struct weft_sge count = { .length = wr->inline_len };

	w->first.flags |= WEFT_WR_INLINE;
	w->first.num_sge = 1;
	memcpy(w->first.data, &count, sizeof(count));
	memcpy((u8 *)w + offsetof(struct weft_sq_wqe, data) + sizeof(count), wr->inline_data,
	       wr->inline_len);
	return slots_of(sizeof(count) + wr->inline_len);
}

static u32 encode_data(const struct host_wr *wr, struct host_wqe *w)
{
	u8 *data = (u8 *)w + offsetof(struct weft_sq_wqe, data);
	u32 len = wr->num_sge * sizeof(wr->sge[0]);

	if (wr->inline_data)
		return encode_inline(wr, w);
	if (wr->opcode == WEFT_WR_REG_MR) {
		memcpy(data, &wr->reg, sizeof(wr->reg));
		return 1;
	}
	if (wr->opcode == WEFT_WR_BIND_MW) {
		memcpy(data, &wr->bind, sizeof(wr->bind));
		return 1;
	}
	memcpy(data, wr->sge, len);
	if (wr->opcode == WEFT_WR_CMP_SWAP || wr->opcode == WEFT_WR_FETCH_ADD) {
		memcpy(data + sizeof(wr->sge[0]), &wr->atomic, sizeof(wr->atomic));
		return wr->masked ? 2 : 1;
	}
	return slots_of(len);
}

u32 host_wr_encode(const struct host_wr *wr, struct host_wqe *w)
{
	memset(w, 0, sizeof(*w));
	w->first = (struct weft_sq_wqe){
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->flags,
		.num_sge = wr->num_sge,
		.rkey = wr->rkey,
		.remote_addr = wr->remote_addr,
	};
	if (wr->opcode == WEFT_WR_WRITE_IMM || wr->opcode == WEFT_WR_SEND_IMM)
		w->first.imm = wr->imm;
	else
		w->first.inv_stag = wr->inv_stag;
	w->first.nslots = (u8)encode_data(wr, w);
	return w->first.nslots;
}

struct weft_sge host_sge(const struct host_mr *mr, u64 off, u32 len)
{
	return (struct weft_sge){ .addr = mr->r.base + off, .length = len, .lkey = mr->r.stag };
}

bool host_post_raw(struct host_qp *qp, const void *slots, u32 n)
{
	struct producer p = { qp->core.sq.q.ring, qp->core.sq.q.slots, &qp->sq_user };

	if (!produce(&p, slots, n))
		return false;
	ring_doorbell(qp, p.ring);
	return true;
}

bool host_post_send(struct host_qp *qp, const struct host_wr *wr)
{
	struct host_wqe w;
	u32 n = host_wr_encode(wr, &w);

	return host_post_raw(qp, &w, n);
}

static void encode_recv(u64 wr_id, const struct weft_sge *sge, u32 num_sge,
			struct host_wqe *w)
{
	struct weft_rq_wqe head = { .wr_id = wr_id, .num_sge = num_sge };

	memset(w, 0, sizeof(*w));
	memcpy(w, &head, sizeof(head));
	memcpy((u8 *)w + offsetof(struct weft_rq_wqe, data), sge, num_sge * sizeof(*sge));
}

bool host_post_recv(struct host_qp *qp, u64 wr_id, const struct weft_sge *sge, u32 num_sge)
{
	struct producer p = { qp->core.rq.q.ring, qp->core.rq.q.slots, &qp->rq_user };
	struct host_wqe w;

	encode_recv(wr_id, sge, num_sge, &w);
	if (!produce(&p, &w, qp->core.rq.stride))
		return false;
	ring_doorbell(qp, p.ring);
	return true;
}

bool host_post_srq(struct host_srq *srq, u64 wr_id, const struct weft_sge *sge, u32 num_sge)
{
	struct producer p = { srq->core.rq.q.ring, srq->core.rq.q.slots, &srq->user_idx };
	struct host_wqe w;

	encode_recv(wr_id, sge, num_sge, &w);
	if (!produce(&p, &w, srq->core.rq.stride))
		return false;
	/* Pairs with the barrier in weft_ringq_sleep(). */
	smp_mb();
	if (READ_ONCE(p.ring->flags) & WEFT_RING_KICK)
		host_srq_kick(srq);
	return true;
}

void host_scribble_index(struct host_qp *qp, bool recv, u32 user_idx)
{
	struct weft_ring *ring = recv ? qp->core.rq.q.ring : qp->core.sq.q.ring;

	smp_store_release(&ring->user_idx, user_idx);
	qp->kicked = true;
}
