// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kernel consumers' posts: the work requests of ib_verbs, written into the same
 * rings that user space writes. In error, too: the queue logic flushes them in
 * order, which is what draining a queue relies on.
 */
#include "inject.h"
#include "trace.h"
#include "verbs.h"

/* One more than the ring's opcode; 0: not for kernel consumers, or not yet. */
static const u8 wr_opcode[] = {
	[IB_WR_RDMA_WRITE]		= WEFT_WR_WRITE + 1,
	[IB_WR_RDMA_WRITE_WITH_IMM]	= WEFT_WR_WRITE_IMM + 1,
	[IB_WR_SEND]			= WEFT_WR_SEND + 1,
	[IB_WR_SEND_WITH_IMM]		= WEFT_WR_SEND_IMM + 1,
	[IB_WR_RDMA_READ]		= WEFT_WR_READ + 1,
	[IB_WR_ATOMIC_CMP_AND_SWP]	= WEFT_WR_CMP_SWAP + 1,
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= WEFT_WR_FETCH_ADD + 1,
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP]	= WEFT_WR_CMP_SWAP + 1,
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD]	= WEFT_WR_FETCH_ADD + 1,
	[IB_WR_SEND_WITH_INV]		= WEFT_WR_SEND_INV + 1,
	[IB_WR_RDMA_READ_WITH_INV]	= WEFT_WR_READ_INV + 1,
	[IB_WR_LOCAL_INV]		= WEFT_WR_LOCAL_INV + 1,
	[IB_WR_REG_MR]			= WEFT_WR_REG_MR + 1,
};

/* ---- the producer's side of a ring ---- */

static u32 ring_room(const struct weft_ringq *q, u32 posted)
{
	/* Acquire pairs with weft_ringq_free(): the slots have been read. */
	return q->slots - (posted - smp_load_acquire(&q->ring->kern_idx));
}

/* Writes @n octets of the entry at @pos, from its octet @off on, across slots. */
static void ring_put(const struct weft_ringq *q, u32 pos, u32 off, const void *p, u32 n)
{
	while (n) {
		u32 in_slot = off % WEFT_SLOT_SIZE;
		u32 len = min_t(u32, n, WEFT_SLOT_SIZE - in_slot);

		memcpy(weft_ringq_slot(q, pos + off / WEFT_SLOT_SIZE) + in_slot, p, len);
		p += len;
		off += len;
		n -= len;
	}
}

/* Publishes the entries up to @posted: true if the queue logic must be kicked. */
static bool ring_publish(const struct weft_ringq *q, u32 posted)
{
	/* Pairs with the acquire in weft_ringq_filled(). */
	smp_store_release(&q->ring->user_idx, posted);
	/* Pairs with the barrier in weft_ringq_sleep(). */
	smp_mb();
	return READ_ONCE(q->ring->flags) & WEFT_RING_KICK;
}

static void put_sges(const struct weft_ringq *q, u32 pos, u32 off, const struct ib_sge *sge, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct weft_sge s = {
			.addr = sge[i].addr,
			.length = sge[i].length,
			.lkey = sge[i].lkey,
		};

		ring_put(q, pos, off, &s, sizeof(s));
		off += sizeof(s);
	}
}

/* ---- send ---- */

/* Octets of inline data in @wr, or more than WEFT_MAX_INLINE if it has too many. */
static u32 inline_len(const struct ib_send_wr *wr)
{
	u64 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return min_t(u64, len, WEFT_MAX_INLINE + 1);
}

static void put_inline(const struct weft_ringq *q, u32 pos, const struct ib_send_wr *wr, u32 len)
{
	struct weft_sge head = { .length = len };
	u32 off = WEFT_SQ_DATA;
	int i;

	ring_put(q, pos, off, &head, sizeof(head));
	off += sizeof(head);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *s = &wr->sg_list[i];

		ring_put(q, pos, off, ib_virt_dma_to_ptr(s->addr), s->length);
		off += s->length;
	}
}

static void put_reg(const struct weft_ringq *q, u32 pos, const struct ib_send_wr *wr)
{
	struct weft_wr_reg reg = {
		.stag = reg_wr(wr)->key,
		.access = reg_wr(wr)->access & (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE),
	};

	ring_put(q, pos, WEFT_SQ_DATA, &reg, sizeof(reg));
}

static bool is_one_sided(u8 opcode)
{
	return opcode == WEFT_WR_WRITE || opcode == WEFT_WR_WRITE_IMM ||
	       opcode == WEFT_WR_READ || opcode == WEFT_WR_READ_INV;
}

static bool is_atomic(u8 opcode)
{
	return opcode == WEFT_WR_CMP_SWAP || opcode == WEFT_WR_FETCH_ADD;
}

static bool has_masks(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_MASKED_ATOMIC_CMP_AND_SWP ||
	       wr->opcode == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
}

/* Octets of struct weft_wr_atomic: the masks stand in a slot of their own. */
static u32 atomic_len(const struct ib_send_wr *wr)
{
	return has_masks(wr) ? sizeof(struct weft_wr_atomic) :
			       offsetof(struct weft_wr_atomic, compare_mask);
}

static void put_atomic(const struct weft_ringq *q, u32 pos, const struct ib_send_wr *wr, u8 opcode)
{
	const struct ib_atomic_wr *a = atomic_wr(wr);
	bool swap = opcode == WEFT_WR_CMP_SWAP;
	struct weft_wr_atomic op = {
		.compare = swap ? a->compare_add : 0,
		.swap_add = swap ? a->swap : a->compare_add,
		.compare_mask = a->compare_add_mask,
		.swap_add_mask = swap ? a->swap_mask : a->compare_add_mask,
	};

	put_sges(q, pos, WEFT_SQ_DATA, wr->sg_list, wr->num_sge);
	ring_put(q, pos, WEFT_SQ_DATA + sizeof(struct weft_sge), &op, atomic_len(wr));
}

/* The fields before data[]; @num_sge: as the ring counts them. */
static void put_head(const struct weft_ringq *q, u32 pos, const struct ib_send_wr *wr, u8 opcode,
		     u8 nslots, u8 num_sge)
{
	struct weft_sq_wqe w = {
		.wr_id = wr->wr_id,
		.opcode = opcode,
		.nslots = nslots,
		.num_sge = num_sge,
	};

	if (wr->send_flags & IB_SEND_SIGNALED)
		w.flags |= WEFT_WR_SIGNALED;
	if (wr->send_flags & IB_SEND_FENCE)
		w.flags |= WEFT_WR_FENCE;
	if (wr->send_flags & IB_SEND_SOLICITED)
		w.flags |= WEFT_WR_SOLICITED;
	if (wr->send_flags & IB_SEND_INLINE)
		w.flags |= WEFT_WR_INLINE;
	if (is_atomic(opcode)) {
		w.rkey = atomic_wr(wr)->rkey;
		w.remote_addr = atomic_wr(wr)->remote_addr;
	} else if (is_one_sided(opcode)) {
		w.rkey = rdma_wr(wr)->rkey;
		w.remote_addr = rdma_wr(wr)->remote_addr;
	}
	/* RFC 5040 has no READ_WITH_INV on the wire: the local sink is what it means. */
	if (opcode == WEFT_WR_READ_INV)
		w.inv_stag = num_sge ? wr->sg_list[0].lkey : 0;
	else if (opcode == WEFT_WR_SEND_INV || opcode == WEFT_WR_LOCAL_INV)
		w.inv_stag = wr->ex.invalidate_rkey;
	else if (opcode == WEFT_WR_SEND_IMM || opcode == WEFT_WR_WRITE_IMM)
		w.imm = be32_to_cpu(wr->ex.imm_data);
	ring_put(q, pos, 0, &w, WEFT_SQ_DATA);
}

static int opcode_of(const struct ib_send_wr *wr)
{
	if (wr->opcode >= ARRAY_SIZE(wr_opcode) || !wr_opcode[wr->opcode])
		return -EINVAL;
	return wr_opcode[wr->opcode] - 1;
}

/* Slots of an entry without inline data. */
static u32 slots_of(const struct ib_send_wr *wr, u8 opcode, u32 num_sge)
{
	if (is_atomic(opcode))
		num_sge = 1 + atomic_len(wr) / sizeof(struct weft_sge);
	return weft_sq_wqe_slots(num_sge, 0);
}

static void put_data(const struct weft_ringq *q, u32 pos, const struct ib_send_wr *wr, u8 opcode,
		     u32 num_sge)
{
	if (opcode == WEFT_WR_REG_MR)
		put_reg(q, pos, wr);
	else if (is_atomic(opcode))
		put_atomic(q, pos, wr, opcode);
	else
		put_sges(q, pos, WEFT_SQ_DATA, wr->sg_list, num_sge);
}

/* An atomic answers to one place; one with masks takes as much of the ring as three SGEs. */
static bool fits(const struct weft_qp *qp, const struct ib_send_wr *wr, int opcode, u32 num_sge,
		 u32 inline_octets)
{
	if (opcode < 0 || num_sge > qp->cap.max_send_sge || inline_octets > qp->cap.max_inline_data)
		return false;
	if (!is_atomic(opcode))
		return true;
	return num_sge == 1 && !inline_octets &&
	       slots_of(wr, opcode, num_sge) <= qp->core.sq.max_slots;
}

/* Writes one request behind those posted: 0, or why not. */
static weft_injectable int post_one_send(struct weft_qp *qp, const struct ib_send_wr *wr)
{
	const struct weft_ringq *q = &qp->core.sq.q;
	bool carries = wr->opcode != IB_WR_LOCAL_INV && wr->opcode != IB_WR_REG_MR;
	u32 num_sge = carries ? wr->num_sge : 0;
	bool in_line = carries && wr->send_flags & IB_SEND_INLINE;
	u32 len = in_line ? inline_len(wr) : 0;
	int opcode = opcode_of(wr);
	u32 nslots;

	if (!fits(qp, wr, opcode, num_sge, len))
		return -EINVAL;
	nslots = in_line ? weft_sq_wqe_slots(1, len) : slots_of(wr, opcode, num_sge);
	if (ring_room(q, qp->sq_posted) < nslots)
		return -ENOMEM;
	put_head(q, qp->sq_posted, wr, opcode, nslots, in_line ? 1 : num_sge);
	if (in_line)
		put_inline(q, qp->sq_posted, wr, len);
	else
		put_data(q, qp->sq_posted, wr, opcode, num_sge);
	qp->sq_posted += nslots;
	return 0;
}
ALLOW_ERROR_INJECTION(post_one_send, ERRNO);

int weft_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	unsigned long flags;
	bool kick;
	int rv = 0;

	if (!qp->core.kernel) {
		*bad = wr;
		return -EOPNOTSUPP;
	}
	spin_lock_irqsave(&qp->post_lock, flags);
	for (; wr; wr = wr->next) {
		rv = post_one_send(qp, wr);
		if (rv)
			break;
	}
	kick = ring_publish(&qp->core.sq.q, qp->sq_posted);
	spin_unlock_irqrestore(&qp->post_lock, flags);
	if (rv)
		*bad = wr;
	if (kick) {
		trace_weft_kick(ibqp->qp_num);
		weft_conn_kick_any(qp);
	}
	return rv;
}

/* ---- receive ---- */

static weft_injectable int post_one_recv(const struct weft_rqq *rq, u32 *posted,
					 const struct ib_recv_wr *wr)
{
	struct weft_rq_wqe w = { .wr_id = wr->wr_id, .num_sge = wr->num_sge };

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (!rq->q.slots || ring_room(&rq->q, *posted) < rq->stride)
		return -ENOMEM;
	ring_put(&rq->q, *posted, 0, &w, offsetof(struct weft_rq_wqe, data));
	put_sges(&rq->q, *posted, offsetof(struct weft_rq_wqe, data), wr->sg_list, wr->num_sge);
	*posted += rq->stride;
	return 0;
}
ALLOW_ERROR_INJECTION(post_one_recv, ERRNO);

/* Posts a chain: 0, or the error with *@bad; *@kick: the queue logic must be kicked. */
static int post_recvs(const struct weft_rqq *rq, u32 *posted, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad, bool *kick)
{
	int rv = 0;

	for (; wr; wr = wr->next) {
		rv = post_one_recv(rq, posted, wr);
		if (rv)
			break;
	}
	if (rv)
		*bad = wr;
	*kick = rq->q.slots && ring_publish(&rq->q, *posted);
	return rv;
}

int weft_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	unsigned long flags;
	bool kick;
	int rv;

	*bad = wr;
	if (!qp->core.kernel)
		return -EOPNOTSUPP;
	if (qp->srq)
		return -EINVAL;
	spin_lock_irqsave(&qp->post_lock, flags);
	rv = post_recvs(&qp->core.rq, &qp->rq_posted, wr, bad, &kick);
	spin_unlock_irqrestore(&qp->post_lock, flags);
	if (kick)
		weft_conn_kick_any(qp);
	return rv;
}

int weft_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct weft_srq *srq = to_weft_srq(ibsrq);
	unsigned long flags;
	bool kick;
	int rv;

	*bad = wr;
	if (srq->user)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&srq->post_lock, flags);
	rv = post_recvs(&srq->core.rq, &srq->posted, wr, bad, &kick);
	spin_unlock_irqrestore(&srq->post_lock, flags);
	if (kick)
		weft_srq_kick(srq);
	return rv;
}
