// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is wrong with a request when it is posted. */
#include <infiniband/verbs.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "request.h"

/* Each: false if nothing is wrong. */

static bool judge_room(const struct rl_request *r, struct rl_report *report)
{
	const struct rl_judged *qp = r->of;
	const struct rl_stack post = rl_request_stack(r);

	if (rl_request_receives(r) || qp->n_sends <= qp->about.size ||
	    !rl_judge_has(RL_SEND_QUEUE_FULL))
		return false;
	rl_report_init(report, RL_SEND_QUEUE_FULL,
		       "request %u was posted to %s, whose send queue has room for %u: adapters "
		       "refuse it (ENOMEM)", qp->n_sends, rl_judged_name(qp), qp->about.size);
	rl_report_add(report, &post, "it was posted by");
	rl_report_add(report, &qp->birth, "%s was made by", rl_judged_name(qp));
	return true;
}

static bool judge_cq(const struct rl_request *r, const struct rl_judged *cq,
		     struct rl_report *report)
{
	const struct rl_judged *srq = cq && cq->about.has_srq ?
				rl_judged_find(cq->owner, WEFT_RUN_SRQ, cq->about.srq) : NULL;
	const struct rl_stack post = rl_request_stack(r);
	u32 due = cq ? cq->due + (srq ? srq->n_receives : 0) : 0;

	if (!cq || !r->posted.signaled || due <= cq->about.size || !rl_judge_has(RL_CQ_TOO_SMALL))
		return false;
	rl_report_init(report, RL_CQ_TOO_SMALL,
		       "%u requests under way may complete to %s", due, rl_judged_name(cq));
	rl_report_add(report, &post, "the last of them was posted by");
	rl_report_add(report, &cq->birth, "%s was made by", rl_judged_name(cq));
	return true;
}

/* ---- the regions of its pieces ---- */

static bool is_sink(const struct rl_request *r)
{
	return rl_request_receives(r) || r->posted.opcode == WEFT_WR_READ ||
	       r->posted.opcode == WEFT_WR_CMP_SWAP || r->posted.opcode == WEFT_WR_FETCH_ADD;
}

static void report_region(const struct rl_request *r, const struct rl_judged *mr,
			  enum rl_judge_rule rule, const char *what, struct rl_report *report)
{
	rl_report_init(report, rule, "the buffer of a %s is in %s, %s", rl_request_name(r),
		       rl_judged_name(mr), what);
	rl_request_add(report, r);
	rl_report_add(report, &mr->birth, "%s was made by", rl_judged_name(mr));
}

static bool judge_piece(const struct rl_request *r, const struct rl_piece *p,
			struct rl_report *report)
{
	const struct rl_judged *mr = p->length ? rl_piece_region(r->of, p) : NULL;
	const struct weft_run_object *a = mr ? &mr->about : NULL;

	if (!mr)
		return false;
	if (rl_judge_has(RL_FOREIGN_DOMAIN) && a->pd != r->of->about.pd)
		report_region(r, mr, RL_FOREIGN_DOMAIN,
			      "which belongs to another protection domain than the queue", report);
	else if (rl_judge_has(RL_OUTSIDE_REGION) && rl_piece_is_outside(p, a))
		report_region(r, mr, RL_OUTSIDE_REGION, "and ends outside of it", report);
	else if (rl_judge_has(RL_NO_LOCAL_WRITE) && is_sink(r) &&
		 !(a->access & IBV_ACCESS_LOCAL_WRITE))
		report_region(r, mr, RL_NO_LOCAL_WRITE, "which has no IBV_ACCESS_LOCAL_WRITE",
			      report);
	else if (rl_judge_has(RL_READ_SINK) && !rl_request_receives(r) &&
		 r->posted.opcode == WEFT_WR_READ && !(a->access & IBV_ACCESS_REMOTE_WRITE))
		report_region(r, mr, RL_READ_SINK, "which has no IBV_ACCESS_REMOTE_WRITE", report);
	else
		return false;
	return true;
}

static bool judge_pieces(const struct rl_request *r, struct rl_report *report)
{
	u32 i;

	for (i = 0; i < r->n; i++)
		if (judge_piece(r, &r->pieces[i], report))
			return true;
	return false;
}

/* ---- receives that overlap ---- */

static bool pieces_overlap(const struct rl_request *a, const struct rl_request *b)
{
	u32 i, k;

	for (i = 0; i < a->n; i++)
		for (k = 0; k < b->n; k++)
			if (a->pieces[i].at && b->pieces[k].at &&
			    a->pieces[i].at < b->pieces[k].at + b->pieces[k].length &&
			    b->pieces[k].at < a->pieces[i].at + a->pieces[i].length)
				return true;
	return false;
}

/* The first receive of any queue that has octets in common with @r; NULL: none has. */
static const struct rl_request *overlapping(const struct rl_request *r)
{
	const struct rl_request *other;
	const struct rl_judged *o;

	list_for_each_entry(o, &rl_busy, busy)
		list_for_each_entry(other, &o->receives, node)
			if (other != r && pieces_overlap(r, other))
				return other;
	return NULL;
}

static bool judge_overlap(const struct rl_request *r, struct rl_report *report)
{
	const struct rl_request *other;

	if (!rl_request_receives(r) || !rl_judge_has(RL_RECEIVES_OVERLAP))
		return false;
	other = overlapping(r);
	if (!other)
		return false;
	rl_report_init(report, RL_RECEIVES_OVERLAP,
		       "the receives of wr_id 0x%llx and 0x%llx have octets in common",
		       (unsigned long long)r->posted.wr_id,
		       (unsigned long long)other->posted.wr_id);
	rl_request_add(report, r);
	rl_request_add(report, other);
	return true;
}

u32 rl_judge_post(const struct rl_request *r, const struct rl_judged *cq,
		  struct rl_report *reports)
{
	u32 n = 0;

	n += judge_cq(r, cq, &reports[n]);
	n += judge_room(r, &reports[n]);
	n += judge_pieces(r, &reports[n]);
	n += judge_overlap(r, &reports[n]);
	return n;
}
