// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wqe.h"

/* What an opcode may carry. Complete for every WEFT_WR_; a zero entry is refused. */
struct wqe_kind {
	bool known;
	bool kernel_only;
	bool sges;			/* data[] holds SGEs */
	bool may_inline;
	bool extension;			/* RFC 7306 */
	bool atomic;			/* data[] holds one SGE, then struct weft_wr_atomic */
	u8 max_sge;
};

static const struct wqe_kind wqe_kinds[WEFT_WR_NR] = {
	[WEFT_WR_WRITE]     = { .known = true, .sges = true, .may_inline = true,
				.max_sge = WEFT_MAX_SGE },
	[WEFT_WR_SEND]      = { .known = true, .sges = true, .may_inline = true,
				.max_sge = WEFT_MAX_SGE },
	[WEFT_WR_SEND_INV]  = { .known = true, .sges = true, .may_inline = true,
				.max_sge = WEFT_MAX_SGE },
	[WEFT_WR_READ]      = { .known = true, .sges = true, .max_sge = 1 },
	[WEFT_WR_READ_INV]  = { .known = true, .sges = true, .max_sge = 1 },
	[WEFT_WR_WRITE_IMM] = { .known = true, .sges = true, .may_inline = true,
				.extension = true, .max_sge = WEFT_MAX_SGE },
	[WEFT_WR_SEND_IMM]  = { .known = true, .sges = true, .may_inline = true,
				.extension = true, .max_sge = WEFT_MAX_SGE },
	[WEFT_WR_CMP_SWAP]  = { .known = true, .extension = true, .atomic = true },
	[WEFT_WR_FETCH_ADD] = { .known = true, .extension = true, .atomic = true },
	[WEFT_WR_LOCAL_INV] = { .known = true },
	[WEFT_WR_BIND_MW]   = { .known = true },
	[WEFT_WR_REG_MR]    = { .known = true, .kernel_only = true },
};

static u32 data_octets(u32 num_sge, u32 inline_len)
{
	u32 data = num_sge * sizeof(struct weft_sge);

	return inline_len ? max_t(u32, data, sizeof(struct weft_sge) + inline_len) : data;
}

u32 weft_sq_wqe_slots(u32 num_sge, u32 inline_len)
{
	u32 data = data_octets(num_sge, inline_len);

	if (data <= WEFT_SQ_DATA)
		return 1;
	return 1 + DIV_ROUND_UP(data - WEFT_SQ_DATA, WEFT_SLOT_SIZE);
}

static_assert(sizeof(struct weft_wr_ud) == WEFT_SQ_DATA, "it fills the first slot");

u32 weft_sq_datagram_slots(u32 num_sge, u32 inline_len)
{
	return 1 + DIV_ROUND_UP(data_octets(num_sge, inline_len), WEFT_SLOT_SIZE);
}

const struct weft_sge *weft_wqe_sge(const struct weft_sq_wqe *w, u32 i)
{
	return (const struct weft_sge *)(const void *)w->data + i;
}

static_assert(sizeof(struct weft_sge) + offsetof(struct weft_wr_atomic, compare_mask) ==
	      WEFT_SQ_DATA, "the masks of an atomic stand in its second slot");

bool weft_wqe_is_extension(const struct weft_sq_wqe *w)
{
	return wqe_kinds[w->opcode].extension;
}

void weft_wqe_atomic(const struct weft_sq_wqe *w, struct weft_atomic_req *r)
{
	const struct weft_wr_atomic *op = (const void *)(w->data + sizeof(struct weft_sge));
	bool swap = w->opcode == WEFT_WR_CMP_SWAP, masked = w->nslots > 1;

	*r = (struct weft_atomic_req) {
		.code = swap ? WEFT_ATOMIC_CMP_SWAP : WEFT_ATOMIC_FETCH_ADD,
		.stag = w->rkey,
		.to = w->remote_addr,
		.operand = op->swap_add,
		.operand_mask = masked ? op->swap_add_mask : swap ? ~0ull : 0,
		.compare = swap ? op->compare : 0,
		/* RFC 7306 §5.2.1: of an addition, all ones. */
		.compare_mask = swap && masked ? op->compare_mask : ~0ull,
	};
}

void weft_wqe_sink(const struct weft_sq_wqe *w, u32 *stag, u64 *to)
{
	const struct weft_sge *sge = weft_wqe_sge(w, 0);

	*stag = w->num_sge ? sge->lkey : WEFT_STAG_NONE;
	*to = w->num_sge ? sge->addr : 0;
}

const u8 *weft_wqe_inline(const struct weft_sq_wqe *w)
{
	return w->data + sizeof(struct weft_sge);
}

const struct weft_sge *weft_wqe_datagram_sge(const struct weft_sq_wqe *w, u32 i)
{
	return (const struct weft_sge *)(const void *)(w + 1) + i;
}

static u8 check_inline(const struct weft_sq_wqe *w, u32 nslots, const struct wqe_kind *k,
		       u32 *len)
{
	u32 n = weft_wqe_sge(w, 0)->length;

	if (!k->may_inline || w->num_sge != 1)
		return WEFT_WC_LOC_QP_OP_ERR;
	if (n > WEFT_MAX_INLINE || weft_sq_wqe_slots(1, n) > nslots)
		return WEFT_WC_LOC_LEN_ERR;
	*len = n;
	return WEFT_WC_SUCCESS;
}

static u8 sum_sges(const struct weft_sge *s, u32 n, u32 *len)
{
	u64 sum = 0;

	for (; n; n--, s++)
		sum += s->length;
	/* The message length is 32 bits everywhere in DDP; verbs stop at 2^31. */
	if (sum > 0x80000000u)
		return WEFT_WC_LOC_LEN_ERR;
	*len = (u32)sum;
	return WEFT_WC_SUCCESS;
}

static u8 check_sges(const struct weft_sq_wqe *w, u32 nslots, const struct wqe_kind *k, u32 *len)
{
	if (w->num_sge > k->max_sge || weft_sq_wqe_slots(w->num_sge, 0) > nslots)
		return WEFT_WC_LOC_QP_OP_ERR;
	return sum_sges(weft_wqe_sge(w, 0), w->num_sge, len);
}

/* The answer is a word of 64 bits. */
static u8 check_atomic(const struct weft_sq_wqe *w, u32 *len)
{
	if (w->num_sge != 1)
		return WEFT_WC_LOC_QP_OP_ERR;
	*len = weft_wqe_sge(w, 0)->length;
	return *len == sizeof(u64) ? WEFT_WC_SUCCESS : WEFT_WC_LOC_LEN_ERR;
}

u8 weft_wqe_check(const struct weft_sq_wqe *w, u32 nslots, bool kernel, u32 *len)
{
	const struct wqe_kind *k;

	*len = 0;
	if (w->opcode >= WEFT_WR_NR)
		return WEFT_WC_LOC_QP_OP_ERR;
	k = &wqe_kinds[w->opcode];
	if (!k->known || (k->kernel_only && !kernel))
		return WEFT_WC_LOC_QP_OP_ERR;
	if (w->flags & WEFT_WR_INLINE)
		return check_inline(w, nslots, k, len);
	if (k->atomic)
		return check_atomic(w, len);
	if (!k->sges)
		return WEFT_WC_SUCCESS;
	return check_sges(w, nslots, k, len);
}

u8 weft_wqe_check_datagram(const struct weft_sq_wqe *w, u32 nslots, u32 *len)
{
	bool in = w->flags & WEFT_WR_INLINE;
	u32 n;

	*len = 0;
	if (w->opcode != WEFT_WR_SEND && w->opcode != WEFT_WR_SEND_IMM)
		return WEFT_WC_LOC_QP_OP_ERR;
	if (w->num_sge > WEFT_MAX_SGE || (in && w->num_sge != 1) ||
	    weft_sq_datagram_slots(w->num_sge, 0) > nslots)
		return WEFT_WC_LOC_QP_OP_ERR;
	if (!in)
		return sum_sges(weft_wqe_datagram_sge(w, 0), w->num_sge, len);
	n = weft_wqe_datagram_sge(w, 0)->length;
	if (n > WEFT_MAX_INLINE || weft_sq_datagram_slots(1, n) > nslots)
		return WEFT_WC_LOC_LEN_ERR;
	*len = n;
	return WEFT_WC_SUCCESS;
}
