// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling an extended CQ. start_poll takes the CQ's lock, end_poll drops it. Each completion is
 * copied and its slot is returned before it is read, so that the program may post at once. Between
 * the two calls the program must not destroy a QP of the CQ or arm the CQ: both take the lock.
 */
#include <errno.h>
#include <time.h>

#include "weft.h"

#define NS 1000000000LL

static struct weft_cq *to_cq(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct weft_cq, vcq.cq_ex);
}

/* Makes the oldest completion the current one: 0, ENOENT or EIO. */
static int take(struct weft_cq *cq)
{
	struct weft_uring *r = &cq->ring;
	struct ibv_wc wc;
	bool dead;

	if (!r->slots)
		return EIO;
	/* The flag first: completions published before the overflow are still delivered. */
	dead = weft_uring_overflown(r);
	if (!weft_uring_filled(r))
		return dead ? EIO : ENOENT;
	memcpy(&cq->cqe, weft_uring_slot(r, r->idx++), sizeof(cq->cqe));
	weft_uring_release(r);
	weft_cqe_decode(&cq->cqe, &wc);
	cq->vcq.cq_ex.wr_id = wc.wr_id;
	cq->vcq.cq_ex.status = wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct weft_cq *cq = to_cq(ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	weft_lock(&cq->lock);
	err = take(cq);
	if (err == ENOENT && weft_cq_wants_kick(cq)) {
		weft_unlock(&cq->lock);
		weft_cq_kick(cq);
		weft_lock(&cq->lock);
		err = take(cq);
	}
	if (err)
		weft_unlock(&cq->lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(to_cq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	weft_unlock(&to_cq(ex)->lock);
}

/* ---- the fields of a completion ---- */

static struct ibv_wc wc_of(struct ibv_cq_ex *ex)
{
	struct ibv_wc wc;

	weft_cqe_decode(&to_cq(ex)->cqe, &wc);
	return wc;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return wc_of(ex).opcode;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return wc_of(ex).wc_flags;
}

/* A union with the rkey that the peer invalidated; wc_flags tells them apart. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return wc_of(ex).imm_data;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->cqe.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->cqe.byte_len;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->cqe.qp_num;
}

/* iWARP names no peer's QP; datagrams do. */
static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return wc_of(ex).src_qp;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return wc_of(ex).sl;
}

/* There are no LIDs. */
static uint32_t read_zero_32(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t read_zero_8(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return to_cq(ex)->cqe.timestamp;
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* Both clocks are slewed alike; they diverge only when the time of day is set. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	int64_t age = now(CLOCK_MONOTONIC) - (int64_t)to_cq(ex)->cqe.timestamp;

	return now(CLOCK_REALTIME) - age;
}

static void init_addressing(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_zero_32;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_zero_8;
}

/* ---- the same, reported to a judge ---- */

static int judged_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int err = start_poll(ex, attr);
	struct ibv_wc wc;

	if (!err) {
		wc = wc_of(ex);
		weft_judge_completion(&to_cq(ex)->vcq.cq, &wc);
	}
	return err;
}

static int judged_next_poll(struct ibv_cq_ex *ex)
{
	int err = next_poll(ex);
	struct ibv_wc wc;

	if (!err) {
		wc = wc_of(ex);
		weft_judge_completion(&to_cq(ex)->vcq.cq, &wc);
	}
	return err;
}

static struct ibv_wc judged_wc(struct ibv_cq_ex *ex, const char *field)
{
	struct ibv_wc wc = wc_of(ex);

	weft_judge_read(&to_cq(ex)->vcq.cq, &wc, field);
	return wc;
}

static enum ibv_wc_opcode judged_opcode(struct ibv_cq_ex *ex)
{
	return judged_wc(ex, "opcode").opcode;
}

static unsigned int judged_wc_flags(struct ibv_cq_ex *ex)
{
	return judged_wc(ex, "wc_flags").wc_flags;
}

static uint32_t judged_byte_len(struct ibv_cq_ex *ex)
{
	return judged_wc(ex, "byte_len").byte_len;
}

static __be32 judged_imm_data(struct ibv_cq_ex *ex)
{
	return judged_wc(ex, "imm_data").imm_data;
}

static void init_judged(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	ex->start_poll = judged_start_poll;
	ex->next_poll = judged_next_poll;
	ex->read_opcode = judged_opcode;
	ex->read_wc_flags = judged_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = judged_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = judged_imm_data;
}

void weft_cq_poll_init(struct weft_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	init_addressing(ex, wc_flags);
	if (to_weft_ctx(cq->vcq.cq.context)->has_judged_requests)
		init_judged(ex, wc_flags);
}
