// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"
#include "region.h"
#include "rq.h"
#include "verbs.h"

int weft_rq_take(struct weft_qpc *qp)
{
	if (qp->srq)
		return weft_host_srq_pop(qp, false, &qp->recv);
	if (!qp->rq.q.slots)
		return 0;
	return weft_rqq_pop(&qp->rq, &qp->recv);
}

bool weft_rq_may_wait(const struct weft_qpc *qp)
{
	if (!qp->patient || qp->rx_overdue)
		return false;
	return qp->srq ? qp->srq_tells : qp->rq.q.slots;
}

static int take_or_sleep(struct weft_rqq *rq, struct weft_recv *recv)
{
	int r = weft_rqq_pop(rq, recv);

	if (!r) {
		weft_ringq_sleep(&rq->q);
		/* An entry posted before the poster saw KICK. */
		r = weft_rqq_pop(rq, recv);
	}
	if (r)
		weft_ringq_wake(&rq->q);
	return r;
}

int weft_rq_await(struct weft_qpc *qp)
{
	int r = qp->srq ? weft_host_srq_pop(qp, true, &qp->recv) :
			  take_or_sleep(&qp->rq, &qp->recv);

	qp->rx_waits = !r;
	return r;
}

void weft_rq_wait_over(struct weft_qpc *qp)
{
	if (!qp->rx_waits)
		return;
	qp->rx_waits = false;
	if (qp->srq)
		weft_host_srq_leave(qp);
	else
		weft_ringq_wake(&qp->rq.q);
}

bool weft_rq_judge(struct weft_qpc *qp)
{
	u32 n = qp->recv.num_sge, i;
	u64 sum = 0;

	qp->recv_got = 0;
	qp->recv_cap = 0;
	if (n > WEFT_MAX_SGE)
		return false;
	for (i = 0; i < n; i++)
		sum += qp->recv.sge[i].length;
	/* Beyond what a message can carry, more room is no use. */
	qp->recv_cap = sum > 0xFFFFFFFFu ? 0xFFFFFFFFu : (u32)sum;
	return true;
}

struct weft_sge weft_rq_at(const struct weft_qpc *qp, u32 at)
{
	const struct weft_sge *s = qp->recv.sge;

	for (; at >= s->length; s++)
		at -= s->length;
	return (struct weft_sge){
		.addr = s->addr + at,
		.length = s->length - at,
		.lkey = s->lkey,
	};
}

bool weft_rq_place(struct weft_qpc *qp, u32 at, struct weft_cur *from, u32 len)
{
	while (len) {
		const struct weft_sge s = weft_rq_at(qp, at);
		u32 n = min_t(u32, len, s.length);

		if (weft_region_place(qp, qp->recv_pd, s.lkey, s.addr, from, n,
				      WEFT_ACCESS_LOCAL_WRITE) != WEFT_GRANTED)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

void weft_rq_divert(struct weft_qpc *qp, const struct weft_sge *sge, u32 n)
{
	struct weft_recv *r = &qp->recv;
	u32 got = qp->recv_got;

	/* The length alone separates octets already placed from those to come. */
	r->sge[0] = (struct weft_sge){ .length = got };
	memcpy(r->sge + 1, sge, n * sizeof(*sge));
	r->num_sge = n + 1;
	weft_rq_judge(qp);
	qp->recv_got = got;
}

void weft_rq_complete(struct weft_qpc *qp, struct weft_cqe *e)
{
	e->wr_id = qp->recv.wr_id;
	e->qp_num = qp->id;
	if (e->status == WEFT_WC_SUCCESS)
		e->byte_len = qp->recv_got;
	else
		e->vendor_err = weft_qpc_vendor_err(qp);
	qp->recv_active = false;
	weft_host_complete(qp, true, e);
}

void weft_rq_fail(struct weft_qpc *qp, u8 status)
{
	struct weft_cqe e = { .status = status, .opcode = WEFT_WCO_RECV };

	weft_rq_complete(qp, &e);
}

bool weft_rq_flush(struct weft_qpc *qp, u32 most)
{
	u32 n;

	if (qp->recv_active || qp->recv_ahead > 0)
		weft_rq_fail(qp, WEFT_WC_FLUSH_ERR);
	qp->recv_ahead = 0;
	/* Entries of an SRQ belong to no QP yet and stay there. */
	if (qp->srq || !qp->rq.q.slots)
		return false;
	for (n = 0; n < most && weft_rqq_pop(&qp->rq, &qp->recv) > 0; n++)
		weft_rq_fail(qp, WEFT_WC_FLUSH_ERR);
	return n == most;
}
