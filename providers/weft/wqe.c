// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>
#include <errno.h>

#include "wqe.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define HEAD_SIZE offsetof(struct weft_sq_wqe, data)

/* struct ibv_sge is copied to the ring unchanged. */
static_assert(sizeof(struct ibv_sge) == sizeof(struct weft_sge), "SGE size");
static_assert(offsetof(struct ibv_sge, addr) == offsetof(struct weft_sge, addr), "SGE addr");
static_assert(offsetof(struct ibv_sge, length) == offsetof(struct weft_sge, length), "SGE length");
static_assert(offsetof(struct ibv_sge, lkey) == offsetof(struct weft_sge, lkey), "SGE lkey");

static_assert(!offsetof(struct weft_ah, ah), "one is the other");
static_assert(HEAD_SIZE + sizeof(struct weft_wr_ud) == WEFT_SLOT_SIZE, "it fills the first slot");

/* The offset of an entry's data. */
static size_t data_at(const struct weft_sq *sq)
{
	return sq->datagrams ? WEFT_SLOT_SIZE : HEAD_SIZE;
}

/* Slots of an entry with @bytes of data. */
static uint32_t slots_for(const struct weft_sq *sq, size_t bytes)
{
	return (data_at(sq) + bytes + WEFT_SLOT_SIZE - 1) / WEFT_SLOT_SIZE;
}

/* Room for an entry with @bytes of data: 0 and its slots, or an errno value. */
static int reserve(const struct weft_sq *sq, size_t bytes, uint32_t *nslots)
{
	*nslots = slots_for(sq, bytes);
	if (*nslots > sq->max_slots)
		return EINVAL;
	return *nslots > weft_uring_room(&sq->ring) ? ENOMEM : 0;
}

/* An entry's first half never wraps: a slot is contiguous. */
static void put_head(struct weft_sq *sq, const struct weft_sq_head *h, uint32_t nslots,
		     uint32_t num_sge)
{
	struct weft_sq_wqe *w = weft_uring_slot(&sq->ring, sq->ring.idx);

	w->wr_id = h->wr_id;
	w->opcode = h->opcode;
	w->flags = h->flags;
	w->nslots = nslots;
	w->num_sge = num_sge;
	w->rkey = h->rkey;
	w->remote_addr = h->remote_addr;
	w->imm = h->imm;
	if (h->inv_stag)
		w->inv_stag = h->inv_stag;
	if (sq->datagrams)
		memcpy(w->data, &h->ud, sizeof(h->ud));
}

void weft_sq_readdress(struct weft_sq *sq, uint32_t idx, const struct weft_wr_ud *to)
{
	struct weft_sq_wqe *w = weft_uring_slot(&sq->ring, idx);

	memcpy(w->data, to, sizeof(*to));
}

int weft_sq_add_none(struct weft_sq *sq, const struct weft_sq_head *h)
{
	uint32_t nslots;
	int err = reserve(sq, 0, &nslots);

	if (err)
		return err;
	put_head(sq, h, nslots, 0);
	sq->ring.idx += nslots;
	return 0;
}

int weft_sq_add_sges(struct weft_sq *sq, const struct weft_sq_head *h, const struct ibv_sge *sgl,
		     size_t num_sge)
{
	uint32_t nslots;
	int err;

	if (num_sge > sq->max_sge)
		return EINVAL;
	err = reserve(sq, num_sge * sizeof(*sgl), &nslots);
	if (err)
		return err;
	put_head(sq, h, nslots, num_sge);
	if (num_sge)
		weft_uring_write(&sq->ring, sq->ring.idx, data_at(sq), sgl, num_sge * sizeof(*sgl));
	sq->ring.idx += nslots;
	return 0;
}

static uint64_t bufs_length(const struct ibv_data_buf *bufs, size_t num_buf)
{
	uint64_t sum = 0;
	size_t i;

	/* Stops early, so that no sum of lengths can overflow. */
	for (i = 0; i < num_buf && sum <= WEFT_MAX_INLINE; i++) {
		if (bufs[i].length > WEFT_MAX_INLINE)
			return bufs[i].length;
		sum += bufs[i].length;
	}
	return sum;
}

int weft_sq_add_inline(struct weft_sq *sq, const struct weft_sq_head *h,
		       const struct ibv_data_buf *bufs, size_t num_buf)
{
	uint64_t len = bufs_length(bufs, num_buf);
	struct weft_sge sge = { .length = len };
	size_t off = data_at(sq) + sizeof(sge);
	uint32_t nslots;
	size_t i;
	int err;

	if (len > sq->max_inline)
		return EINVAL;
	err = reserve(sq, sizeof(sge) + len, &nslots);
	if (err)
		return err;
	put_head(sq, h, nslots, 1);
	weft_uring_write(&sq->ring, sq->ring.idx, data_at(sq), &sge, sizeof(sge));
	for (i = 0; i < num_buf; off += bufs[i++].length)
		if (bufs[i].length)
			weft_uring_write(&sq->ring, sq->ring.idx, off, bufs[i].addr,
					 bufs[i].length);
	sq->ring.idx += nslots;
	return 0;
}

int weft_sq_add_atomic(struct weft_sq *sq, const struct weft_sq_head *h,
		       const struct weft_wr_atomic *op, const struct ibv_sge *sge)
{
	/* Without masks, which verbs do not have, it fits one slot. */
	size_t len = offsetof(struct weft_wr_atomic, compare_mask);
	uint32_t nslots;
	int err = reserve(sq, sizeof(*sge) + len, &nslots);

	if (err)
		return err;
	put_head(sq, h, nslots, 1);
	weft_uring_write(&sq->ring, sq->ring.idx, HEAD_SIZE, sge, sizeof(*sge));
	weft_uring_write(&sq->ring, sq->ring.idx, HEAD_SIZE + sizeof(*sge), op, len);
	sq->ring.idx += nslots;
	return 0;
}

int weft_sq_add_bind(struct weft_sq *sq, const struct weft_sq_head *h, uint32_t rkey,
		     const struct ibv_mw_bind_info *info)
{
	/* Unbinding: no region. */
	const struct weft_wr_bind bind = {
		.addr = info->addr,
		.length = info->length,
		.mw_stag = rkey,
		.mr_lkey = info->mr ? info->mr->lkey : 0,
		.access = info->mw_access_flags,
	};
	uint32_t nslots;
	int err = reserve(sq, sizeof(bind), &nslots);

	if (err)
		return err;
	put_head(sq, h, nslots, 0);
	weft_uring_write(&sq->ring, sq->ring.idx, HEAD_SIZE, &bind, sizeof(bind));
	sq->ring.idx += nslots;
	return 0;
}

/* ---- work requests of the plain verbs ---- */

enum wr_data { WR_UNKNOWN, WR_NO_DATA, WR_SOURCES, WR_SINK, WR_ATOMIC, WR_BIND };
enum wr_field { WR_NO_FIELD, WR_IMM, WR_INV };

struct wr_kind {
	enum wr_data data;
	enum wr_field field;
	uint8_t opcode;			/* WEFT_WR_ */
	bool remote;			/* names a remote buffer */
	uint64_t feature;		/* that it needs */
};

static const struct wr_kind wr_kinds[] = {
	[IBV_WR_RDMA_WRITE] = { WR_SOURCES, WR_NO_FIELD, WEFT_WR_WRITE, true, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { WR_SOURCES, WR_IMM, WEFT_WR_WRITE_IMM, true,
					 WEFT_FEATURE_IMM },
	[IBV_WR_SEND] = { WR_SOURCES, WR_NO_FIELD, WEFT_WR_SEND, false, 0 },
	[IBV_WR_SEND_WITH_IMM] = { WR_SOURCES, WR_IMM, WEFT_WR_SEND_IMM, false,
				   WEFT_FEATURE_IMM },
	[IBV_WR_SEND_WITH_INV] = { WR_SOURCES, WR_INV, WEFT_WR_SEND_INV, false, 0 },
	[IBV_WR_RDMA_READ] = { WR_SINK, WR_NO_FIELD, WEFT_WR_READ, true, 0 },
	[IBV_WR_LOCAL_INV] = { WR_NO_DATA, WR_INV, WEFT_WR_LOCAL_INV, false, 0 },
	[IBV_WR_BIND_MW] = { WR_BIND, WR_NO_FIELD, WEFT_WR_BIND_MW, false, WEFT_FEATURE_MW },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { WR_ATOMIC, WR_NO_FIELD, WEFT_WR_CMP_SWAP, false,
					WEFT_FEATURE_ATOMICS },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { WR_ATOMIC, WR_NO_FIELD, WEFT_WR_FETCH_ADD, false,
					  WEFT_FEATURE_ATOMICS },
};

static const struct wr_kind *kind_of(const struct weft_sq *sq, unsigned int opcode)
{
	const struct wr_kind *k;

	if (opcode >= ARRAY_LEN(wr_kinds))
		return NULL;
	k = &wr_kinds[opcode];
	if (k->data == WR_UNKNOWN || (k->feature & ~sq->features))
		return NULL;
	if (sq->datagrams && opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM)
		return NULL;
	return k;
}

int weft_sq_opcode(const struct weft_sq *sq, unsigned int opcode)
{
	const struct wr_kind *k = kind_of(sq, opcode);

	return k ? k->opcode : -1;
}

/* ---- requests that fail on demand ---- */

static bool is_atomic(uint8_t opcode)
{
	return opcode == WEFT_WR_CMP_SWAP || opcode == WEFT_WR_FETCH_ADD;
}

static bool has_buffers(uint8_t opcode)
{
	return opcode != WEFT_WR_LOCAL_INV && opcode != WEFT_WR_BIND_MW;
}

static bool names_remote_memory(uint8_t opcode)
{
	return opcode == WEFT_WR_WRITE || opcode == WEFT_WR_WRITE_IMM || opcode == WEFT_WR_READ ||
	       is_atomic(opcode);
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == WEFT_WR_SEND || opcode == WEFT_WR_SEND_IMM || opcode == WEFT_WR_SEND_INV ||
	       opcode == WEFT_WR_WRITE_IMM;
}

uint32_t weft_sq_errors(uint8_t opcode, bool in_memory)
{
	uint32_t errors = 1u << IBV_WC_LOC_QP_OP_ERR | 1u << IBV_WC_FATAL_ERR |
			  1u << IBV_WC_GENERAL_ERR;

	if (opcode == WEFT_WR_BIND_MW)
		return errors | 1u << IBV_WC_MW_BIND_ERR;
	if (!has_buffers(opcode))
		return errors;
	errors |= 1u << IBV_WC_RETRY_EXC_ERR | 1u << IBV_WC_REM_OP_ERR;
	if (takes_receive(opcode))
		errors |= 1u << IBV_WC_RNR_RETRY_EXC_ERR;
	if (in_memory)
		errors |= 1u << IBV_WC_LOC_LEN_ERR | 1u << IBV_WC_LOC_PROT_ERR;
	if (names_remote_memory(opcode))
		errors |= 1u << IBV_WC_REM_ACCESS_ERR;
	if (is_atomic(opcode))
		errors |= 1u << IBV_WC_REM_INV_REQ_ERR;
	if (is_atomic(opcode) || opcode == WEFT_WR_READ)
		errors |= 1u << IBV_WC_BAD_RESP_ERR;
	return errors;
}

/* It may wrap at the ring's end. */
void weft_sq_copy_sges(const struct weft_sq *sq, uint32_t at, uint32_t num_sge,
		       struct weft_sge *list)
{
	const struct weft_uring *r = &sq->ring;
	size_t bytes = (size_t)r->slots * WEFT_SLOT_SIZE, n = num_sge * sizeof(*list);
	size_t from = (size_t)at * WEFT_SLOT_SIZE + (sq->datagrams ? WEFT_SLOT_SIZE :
						      offsetof(struct weft_sq_wqe, data));
	size_t to_end;

	from &= bytes - 1;
	to_end = bytes - from < n ? bytes - from : n;
	memcpy(list, r->entries + from, to_end);
	memcpy((uint8_t *)list + to_end, r->entries, n - to_end);
}

static bool has_octets(const struct weft_sq_wqe *w)
{
	return w->opcode != WEFT_WR_LOCAL_INV && w->opcode != WEFT_WR_BIND_MW;
}

uint64_t weft_sq_octets(const struct weft_sq *sq, uint32_t at)
{
	struct weft_sge list[WEFT_MAX_SGE];
	const struct weft_sq_wqe *w;
	uint64_t sum = 0;
	uint32_t i, n;

	for (; at != sq->ring.idx; at += w->nslots) {
		w = weft_uring_slot(&sq->ring, at);
		if (!has_octets(w))
			continue;
		n = w->num_sge < WEFT_MAX_SGE ? w->num_sge : WEFT_MAX_SGE;
		weft_sq_copy_sges(sq, at, n, list);
		for (i = 0; i < n; i++)
			sum += list[i].length;
	}
	return sum;
}

/* With another key in its last octet an STag names no region. */
#define OTHER_KEY 0xff

static void break_bind(struct weft_wr_bind *bind)
{
	bind->mr_lkey ^= OTHER_KEY;
	/* Without a length a window is bound to nothing. */
	if (!bind->length)
		bind->length = 1;
}

void weft_sq_break_entry(struct weft_sq *sq, uint32_t idx, enum ibv_wc_status status)
{
	struct weft_sq_wqe *w = weft_uring_slot(&sq->ring, idx);
	struct weft_sge *first = (struct weft_sge *)w->data;

	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		first->length = 0x80000001;	/* verbs stop at 2^31 */
		break;
	case IBV_WC_LOC_QP_OP_ERR:
		w->opcode = WEFT_WR_NR;
		break;
	case IBV_WC_LOC_PROT_ERR:
		first->lkey ^= OTHER_KEY;
		break;
	case IBV_WC_REM_ACCESS_ERR:
		w->rkey ^= OTHER_KEY;
		break;
	case IBV_WC_REM_INV_REQ_ERR:
		w->remote_addr |= 1;		/* an atomic's must be aligned */
		break;
	case IBV_WC_MW_BIND_ERR:
		break_bind((struct weft_wr_bind *)w->data);
		break;
	default:
		break;
	}
}

uint32_t weft_rq_errors(const struct ibv_recv_wr *wr)
{
	int i;

	/* A longer list is refused. */
	for (i = 0; i < wr->num_sge && wr->num_sge <= WEFT_MAX_SGE; i++)
		if (wr->sg_list[i].length)
			return 1u << IBV_WC_LOC_LEN_ERR | 1u << IBV_WC_LOC_PROT_ERR;
	return 0;
}

void weft_rq_break_wr(struct ibv_recv_wr *wr, struct ibv_sge *list, enum ibv_wc_status status)
{
	int i;

	for (i = 0; i < wr->num_sge && i < WEFT_MAX_SGE; i++) {
		list[i] = wr->sg_list[i];
		if (status == IBV_WC_LOC_LEN_ERR)
			list[i].length = 0;
		else
			list[i].lkey ^= OTHER_KEY;
	}
	wr->sg_list = list;
}

struct weft_wr_ud weft_ah_address(const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct weft_wr_ud to = ((const struct weft_ah *)ah)->to;

	to.qpn = qpn;
	to.qkey = qkey;
	return to;
}

uint8_t weft_wr_flags(unsigned int send_flags)
{
	uint8_t flags = 0;

	if (send_flags & IBV_SEND_SIGNALED)
		flags |= WEFT_WR_SIGNALED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= WEFT_WR_FENCE;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= WEFT_WR_SOLICITED;
	return flags;
}

/* But for a datagram's destination, which other entries have not. */
static void set_head(struct weft_sq_head *h, const struct wr_kind *k, const struct ibv_send_wr *wr)
{
	h->wr_id = wr->wr_id;
	h->opcode = k->opcode;
	h->flags = weft_wr_flags(wr->send_flags);
	h->imm = k->field == WR_IMM ? be32toh(wr->imm_data) : 0;
	h->inv_stag = k->field == WR_INV ? wr->invalidate_rkey : 0;
	h->rkey = k->remote ? wr->wr.rdma.rkey : 0;
	h->remote_addr = k->remote ? wr->wr.rdma.remote_addr : 0;
}

static int add_inline_wr(struct weft_sq *sq, struct weft_sq_head *h, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[WEFT_MAX_SGE];
	int i;

	if (wr->num_sge > WEFT_MAX_SGE)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
		};
	h->flags |= WEFT_WR_INLINE;
	return weft_sq_add_inline(sq, h, bufs, wr->num_sge);
}

static int add_atomic_wr(struct weft_sq *sq, struct weft_sq_head *h, const struct ibv_send_wr *wr)
{
	bool swap = h->opcode == WEFT_WR_CMP_SWAP;
	struct weft_wr_atomic op = {
		.compare = swap ? wr->wr.atomic.compare_add : 0,
		.swap_add = swap ? wr->wr.atomic.swap : wr->wr.atomic.compare_add,
	};

	if (wr->num_sge != 1)
		return EINVAL;
	h->rkey = wr->wr.atomic.rkey;
	h->remote_addr = wr->wr.atomic.remote_addr;
	return weft_sq_add_atomic(sq, h, &op, wr->sg_list);
}

/* A window of type 1 is bound by ibv_bind_mw(). */
int weft_sq_add_bind_2(struct weft_sq *sq, const struct weft_sq_head *h, struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	int err;

	if (mw->type != IBV_MW_TYPE_2)
		return EINVAL;
	rkey = (mw->rkey & ~0xffu) | (rkey & 0xff);
	err = weft_sq_add_bind(sq, h, rkey, info);
	if (!err)
		mw->rkey = rkey;
	return err;
}

int weft_sq_add_wr(struct weft_sq *sq, const struct ibv_send_wr *wr)
{
	const struct wr_kind *k = kind_of(sq, wr->opcode);
	struct weft_sq_head h;

	if (!k || wr->num_sge < 0 || (sq->datagrams && !wr->wr.ud.ah))
		return EINVAL;
	set_head(&h, k, wr);
	if (sq->datagrams)
		h.ud = weft_ah_address(wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (k->data == WR_NO_DATA)
		return weft_sq_add_none(sq, &h);
	if (k->data == WR_ATOMIC)
		return add_atomic_wr(sq, &h, wr);
	if (k->data == WR_BIND)
		return weft_sq_add_bind_2(sq, &h, wr->bind_mw.mw, wr->bind_mw.rkey,
					  &wr->bind_mw.bind_info);
	if (k->data == WR_SINK) {
		/* A Read Request names one sink (RFC 5040 §4.4). */
		if (wr->num_sge > 1 || wr->send_flags & IBV_SEND_INLINE)
			return EINVAL;
	} else if (wr->send_flags & IBV_SEND_INLINE) {
		return add_inline_wr(sq, &h, wr);
	}
	return weft_sq_add_sges(sq, &h, wr->sg_list, wr->num_sge);
}

int weft_rq_add_wr(struct weft_rq *rq, const struct ibv_recv_wr *wr)
{
	struct weft_rq_wqe *w;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (weft_uring_room(&rq->ring) < rq->stride)
		return ENOMEM;
	w = weft_uring_slot(&rq->ring, rq->ring.idx);
	w->wr_id = wr->wr_id;
	w->num_sge = wr->num_sge;
	w->reserved = 0;
	/* The stride divides the ring: an entry is contiguous. */
	if (wr->num_sge)
		memcpy(w->data, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	rq->ring.idx += rq->stride;
	return 0;
}
