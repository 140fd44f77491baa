// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The queues of requests. The provider reports in their order, with the queue's lock. */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "strict.h"

/* Of all requests: beyond that, new ones are not judged. */
#define MOST_REQUESTS	200000

/* ---- their queues ---- */

static void request_free(struct rl_request *r)
{
	rl_requests--;
	free(r);
}

static struct rl_judged *judged_cq(const struct rl_judged *o, bool is_receive)
{
	if (o->about.kind != WEFT_RUN_QP)
		return NULL;
	return rl_judged_find(o->owner, WEFT_RUN_CQ,
			      is_receive ? o->about.recv_cq : o->about.send_cq);
}

/* It no longer counts; the caller frees it. */
static void take_out(struct rl_request *r)
{
	bool is_receive = rl_request_receives(r);
	struct rl_judged *cq = judged_cq(r->of, is_receive);

	list_del(&r->node);
	rl_strict_end(r);
	if (is_receive)
		r->of->n_receives--;
	else
		r->of->n_sends--;
	if (!r->of->n_sends)
		r->of->sends_from = r->of->sends_to = 0;
	if (!r->of->n_sends && !r->of->n_receives)
		list_del_init(&r->of->busy);
	if (cq && r->posted.signaled)
		cq->due -= !!cq->due;
}

static void drop_queue(struct list_head *queue)
{
	struct rl_request *r, *after;

	list_for_each_entry_safe(r, after, queue, node) {
		take_out(r);
		request_free(r);
	}
}

void rl_judged_drop_requests(struct rl_judged *o)
{
	drop_queue(&o->sends);
	drop_queue(&o->receives);
}

void rl_judge_reset(const void *owner, u32 handle)
{
	struct rl_judged *qp = rl_judged_find(owner, WEFT_RUN_QP, handle);

	if (!qp)
		return;
	rl_judged_drop_requests(qp);
	qp->failed = false;
}

/* ---- posting ---- */

static struct rl_request *request_new(const struct weft_run_posted *p)
{
	u32 i, n = min_t(u32, p->num_sge, WEFT_MAX_SGE);
	struct rl_request *r = malloc(sizeof(*r) + n * sizeof(r->pieces[0]));
	const struct weft_sge *list = p->sge;

	if (!r)
		return NULL;
	*r = (struct rl_request){ .posted = *p, .n = n };
	for (i = 0; i < n; i++)
		r->pieces[i] = (struct rl_piece){
			.addr = list[i].addr, .length = list[i].length, .lkey = list[i].lkey,
		};
	return r;
}

/*
 * Receives of a SRQ whose QP was destroyed never complete: the queue has no room for more than its
 * size, so the oldest is one of these.
 */
static void forget_lost_receive(struct rl_judged *o)
{
	struct rl_request *oldest = list_first_entry_or_null(&o->receives, struct rl_request,
							     node);

	if (o->about.kind != WEFT_RUN_SRQ || !o->about.size || o->n_receives < o->about.size ||
	    !oldest)
		return;
	take_out(oldest);
	request_free(oldest);
}

static void enqueue(struct rl_judged *o, struct rl_request *r)
{
	rl_requests++;
	r->of = o;
	if (!o->n_sends && !o->n_receives)
		list_add(&o->busy, &rl_busy);
	if (rl_request_receives(r)) {
		list_add_tail(&r->node, &o->receives);
		o->n_receives++;
	} else {
		r->posted.signaled |= o->about.all_signaled;
		list_add_tail(&r->node, &o->sends);
		o->n_sends++;
	}
}

u32 rl_judge_posted(const void *owner, const struct weft_run_posted *p, struct rl_report *reports)
{
	bool is_srq = p->post == WEFT_RUN_POST_SRQ_RECV;
	struct rl_judged *o = rl_judged_find(owner, is_srq ? WEFT_RUN_SRQ : WEFT_RUN_QP,
					     p->handle);
	struct rl_request *r;
	struct rl_judged *cq;

	if (!o || rl_requests >= MOST_REQUESTS)
		return 0;
	forget_lost_receive(o);
	r = request_new(p);
	if (!r)
		return 0;
	enqueue(o, r);
	rl_memory_begin(r);
	cq = judged_cq(o, rl_request_receives(r));
	if (cq && r->posted.signaled)
		cq->due++;
	return rl_judge_post(r, cq, reports);
}

/* ---- completing ---- */

/*
 * Those of the send queue that are over with this completion: up to the first that was to complete
 * and has its wr_id. An error completes what was not signaled, too.
 */
static void take_sends(struct rl_judged *qp, const struct weft_run_polled *p,
		       struct list_head *over)
{
	struct rl_request *r, *after, *last = NULL;

	list_for_each_entry(r, &qp->sends, node)
		if (r->posted.wr_id == p->wr_id && (r->posted.signaled || p->status)) {
			last = r;
			break;
		}
	list_for_each_entry_safe(r, after, &qp->sends, node) {
		if (!last)
			return;
		take_out(r);
		list_add_tail(&r->node, over);
		if (r == last)
			return;
	}
}

static void take_receive(struct rl_judged *o, u64 wr_id, struct list_head *over)
{
	struct rl_request *r;

	list_for_each_entry(r, &o->receives, node)
		if (r->posted.wr_id == wr_id) {
			take_out(r);
			list_add_tail(&r->node, over);
			return;
		}
}

/* Whose receives complete as the QP's. */
static struct rl_judged *receiver_of(struct rl_judged *qp)
{
	return qp->about.has_srq ?
	       rl_judged_find(qp->owner, WEFT_RUN_SRQ, qp->about.srq) : qp;
}

/*
 * The program waits in this call, and does not write to them yet. Reports that have no room are not
 * made: they would be of the same line, as a rule.
 */
u32 rl_judge_polled(const void *owner, const struct weft_run_polled *p, struct rl_report *reports)
{
	struct rl_judged *qp = rl_judged_by_number(owner, WEFT_RUN_QP, p->qp_num);
	struct rl_judged *from = qp && p->is_recv ? receiver_of(qp) : NULL;
	struct rl_request *r, *after;
	LIST_HEAD(over);
	u32 n = 0;

	if (qp && p->status)
		qp->failed = true;
	if (p->is_recv)
		n = rl_memory_answered(reports, RL_AT_A_POLL - 1);
	if (from)
		take_receive(from, p->wr_id, &over);
	else if (qp && !p->is_recv)
		take_sends(qp, p, &over);
	list_for_each_entry_safe(r, after, &over, node) {
		if (n < RL_AT_A_POLL)
			n += rl_memory_end(r, p->status, &reports[n]);
		request_free(r);
	}
	return n;
}

bool rl_judge_read_field(const void *owner, const struct weft_run_polled *p,
			 struct rl_report *report)
{
	const struct rl_judged *qp = rl_judged_by_number(owner, WEFT_RUN_QP, p->qp_num);

	if (!rl_judge_has(RL_FIELD_AFTER_ERROR))
		return false;
	rl_report_init(report, RL_FIELD_AFTER_ERROR,
		       "%s of a completion was read, and its status is %u, an error", p->field,
		       p->status);
	rl_report_add(report, NULL, "it was read by");
	if (qp)
		rl_report_add(report, &qp->birth, "%s was made by", rl_judged_name(qp));
	return true;
}

/* ---- regions that are deregistered ---- */

static const struct rl_request *user_of_key(const struct list_head *queue, u32 lkey)
{
	const struct rl_request *r;
	u32 i;

	list_for_each_entry(r, queue, node)
		for (i = 0; i < r->n; i++)
			if (r->pieces[i].lkey == lkey && r->pieces[i].length)
				return r;
	return NULL;
}

static const struct rl_request *user_of_region(const struct rl_judged *mr,
					       const struct rl_judged *o)
{
	if (o->owner != mr->owner || o->about.kind != WEFT_RUN_QP)
		return NULL;
	return user_of_key(&o->sends, mr->about.number) ?:
	       user_of_key(&o->receives, mr->about.number);
}

/* The request of the QP that is @nth among those that use the region. */
static const struct rl_request *nth_user(const struct rl_judged *mr, u32 nth)
{
	const struct rl_request *r;
	const struct rl_judged *o;

	list_for_each_entry(o, &rl_busy, busy) {
		r = user_of_region(mr, o);
		if (r && !nth--)
			return r;
	}
	return NULL;
}

bool rl_judge_dereg(const void *owner, u32 handle, u32 nth, u32 *qp_handle,
		    struct rl_report *report)
{
	const struct rl_judged *mr = rl_judge_has(RL_DEREGISTERED_UNDER_WAY) ?
				     rl_judged_find(owner, WEFT_RUN_MR, handle) : NULL;
	const struct rl_request *r = mr ? nth_user(mr, nth) : NULL;

	if (!r)
		return false;
	*qp_handle = r->of->about.handle;
	rl_report_init(report, RL_DEREGISTERED_UNDER_WAY, "%s was deregistered while a %s used it",
		       rl_judged_name(mr), rl_request_name(r));
	rl_report_add(report, NULL, "it was deregistered by");
	rl_request_add(report, r);
	rl_report_add(report, &mr->birth, "%s was made by", rl_judged_name(mr));
	return true;
}
