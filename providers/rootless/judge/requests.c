// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests under way: from the post until the program has polled its completion or a later one of
 * the same send queue. The provider reports in the order of the queue, with the queue's lock.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "objects.h"
#include "process/guard.h"

/* Of all requests: beyond that, new ones are not judged. */
#define MOST_REQUESTS	200000

struct request {
	struct list_head node;
	struct weft_run_posted posted;
	struct rl_judged *of;		/* the QP, or the SRQ */
	bool is_summed;			/* sum is that of its octets when it was posted */
	bool is_placed;			/* a peer has written to them since */
	u32 sum;
	u32 polled;			/* receives_polled when it was posted */
	u32 n;
	struct weft_sge sge[];
};

static u32 n_requests;			/* the lock */
static u32 receives_polled;		/* the lock */

/* ---- octets ---- */

struct summing {
	const struct request *r;
	u32 sum;
};

static void sum_octets(void *arg)
{
	struct summing *s = arg;
	u32 i, sum = 0;

	for (i = 0; i < s->r->n; i++)
		sum = weft_crc32c(sum, (const void *)(uintptr_t)s->r->sge[i].addr,
				  s->r->sge[i].length);
	s->sum = sum;
}

/* False: not all are mapped. */
static bool request_sum(const struct request *r, u32 *sum)
{
	struct summing s = { r, 0 };
	bool ok = rl_guard_run(sum_octets, &s);

	*sum = s.sum;
	return ok;
}

static bool is_source(const struct weft_run_posted *p)
{
	return p->post == WEFT_RUN_POST_SEND &&
	       (p->opcode == WEFT_WR_SEND || p->opcode == WEFT_WR_SEND_IMM ||
		p->opcode == WEFT_WR_SEND_INV || p->opcode == WEFT_WR_WRITE ||
		p->opcode == WEFT_WR_WRITE_IMM);
}

static bool sge_overlaps(const struct weft_sge *s, u64 addr, u64 len)
{
	return s->addr < addr + len && addr < s->addr + s->length;
}

/* ---- words ---- */

static const char *request_name(const struct request *r)
{
	static const char *const names[WEFT_WR_NR] = {
		[WEFT_WR_WRITE] = "Write", [WEFT_WR_WRITE_IMM] = "Write with immediate",
		[WEFT_WR_SEND] = "Send", [WEFT_WR_SEND_IMM] = "Send with immediate",
		[WEFT_WR_SEND_INV] = "Send with invalidate", [WEFT_WR_READ] = "Read",
		[WEFT_WR_CMP_SWAP] = "compare and swap", [WEFT_WR_FETCH_ADD] = "fetch and add",
	};

	if (r->posted.post != WEFT_RUN_POST_SEND)
		return "receive";
	return r->posted.opcode < WEFT_WR_NR && names[r->posted.opcode] ?
	       names[r->posted.opcode] : "request";
}

static struct rl_stack stack_of_caller(const void *caller)
{
	return (struct rl_stack){ .n = 1, .pc = { caller } };
}

static void add_request(struct rl_report *report, const struct request *r)
{
	const struct rl_stack post = stack_of_caller(r->posted.caller);

	rl_report_add(report, &post, "the %s of wr_id 0x%llx was posted by", request_name(r),
		      (unsigned long long)r->posted.wr_id);
	rl_report_add(report, &r->of->birth, "%s was made by", rl_judged_name(r->of));
}

/* ---- their queues ---- */

static void request_free(struct request *r)
{
	n_requests--;
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
static void take_out(struct request *r)
{
	bool is_receive = r->posted.post != WEFT_RUN_POST_SEND;
	struct rl_judged *cq = judged_cq(r->of, is_receive);

	list_del(&r->node);
	if (is_receive)
		r->of->n_receives--;
	else
		r->of->n_sends--;
	if (cq && r->posted.signaled)
		cq->due -= !!cq->due;
}

static void drop_queue(struct list_head *queue)
{
	struct request *r, *after;

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
	struct rl_judged *qp;

	rl_lock(&rl_judge_lock);
	qp = rl_judged_find(owner, WEFT_RUN_QP, handle);
	if (qp)
		rl_judged_drop_requests(qp);
	rl_unlock(&rl_judge_lock);
}

/* ---- posting ---- */

/* Each: false if nothing is wrong. With the lock. */
static bool judge_room(const struct request *r, struct rl_report *report)
{
	const struct rl_judged *qp = r->of;
	const struct rl_stack post = stack_of_caller(r->posted.caller);

	if (r->posted.post != WEFT_RUN_POST_SEND || qp->n_sends <= qp->about.size ||
	    !rl_judge_has(RL_SEND_QUEUE_FULL))
		return false;
	rl_report_init(report, RL_SEND_QUEUE_FULL,
		       "request %u was posted to %s, whose send queue has room for %u: adapters "
		       "refuse it (ENOMEM)", qp->n_sends, rl_judged_name(qp), qp->about.size);
	rl_report_add(report, &post, "it was posted by");
	rl_report_add(report, &qp->birth, "%s was made by", rl_judged_name(qp));
	return true;
}

static bool judge_cq(const struct request *r, const struct rl_judged *cq, struct rl_report *report)
{
	const struct rl_judged *srq = cq->about.has_srq ?
				rl_judged_find(cq->owner, WEFT_RUN_SRQ, cq->about.srq) : NULL;
	const struct rl_stack post = stack_of_caller(r->posted.caller);
	u32 due = cq->due + (srq ? srq->n_receives : 0);

	if (due <= cq->about.size || !rl_judge_has(RL_CQ_TOO_SMALL))
		return false;
	rl_report_init(report, RL_CQ_TOO_SMALL,
		       "%u requests under way may complete to %s", due, rl_judged_name(cq));
	rl_report_add(report, &post, "the last of them was posted by");
	rl_report_add(report, &cq->birth, "%s was made by", rl_judged_name(cq));
	return true;
}

static bool judge_sink(const struct request *r, struct rl_report *report)
{
	const struct rl_judged *mr;

	if (r->posted.post != WEFT_RUN_POST_SEND || r->posted.opcode != WEFT_WR_READ || !r->n ||
	    !rl_judge_has(RL_READ_SINK))
		return false;
	mr = rl_judged_by_number(r->of->owner, WEFT_RUN_MR, r->sge[0].lkey);
	if (!mr || mr->about.access & IBV_ACCESS_REMOTE_WRITE)
		return false;
	rl_report_init(report, RL_READ_SINK, "a Read's sink is in %s, which has no "
		       "IBV_ACCESS_REMOTE_WRITE", rl_judged_name(mr));
	add_request(report, r);
	rl_report_add(report, &mr->birth, "%s was made by", rl_judged_name(mr));
	return true;
}

/* The first receive of any queue that has octets in common with @r; NULL: none has. */
static const struct request *overlapping(const struct request *r)
{
	const struct rl_judged *o;
	const struct request *other;
	u32 i, k;

	for (o = rl_judged_next(NULL); o; o = rl_judged_next(o))
		list_for_each_entry(other, &o->receives, node)
			for (i = 0; other != r && i < other->n; i++)
				for (k = 0; k < r->n; k++)
					if (sge_overlaps(&other->sge[i], r->sge[k].addr,
							 r->sge[k].length))
						return other;
	return NULL;
}

static bool judge_overlap(const struct request *r, struct rl_report *report)
{
	const struct request *other;

	if (r->posted.post == WEFT_RUN_POST_SEND || !rl_judge_has(RL_RECEIVES_OVERLAP))
		return false;
	other = overlapping(r);
	if (!other)
		return false;
	rl_report_init(report, RL_RECEIVES_OVERLAP,
		       "the receives of wr_id 0x%llx and 0x%llx have octets in common",
		       (unsigned long long)r->posted.wr_id,
		       (unsigned long long)other->posted.wr_id);
	add_request(report, r);
	add_request(report, other);
	return true;
}

static struct request *request_new(const struct weft_run_posted *p)
{
	u32 n = min_t(u32, p->num_sge, WEFT_MAX_SGE);
	struct request *r = malloc(sizeof(*r) + n * sizeof(r->sge[0]));

	if (!r)
		return NULL;
	*r = (struct request){ .posted = *p, .n = n };
	memcpy(r->sge, p->sge, n * sizeof(r->sge[0]));
	if (n && is_source(p) &&
	    (rl_judge_has(RL_CHANGED_UNDER_WAY) || rl_judge_has(RL_UNMAPPED_UNDER_WAY)))
		r->is_summed = request_sum(r, &r->sum);
	return r;
}

/* False: it is not judged. */
static bool enqueue(const void *owner, struct request *r)
{
	bool is_srq = r->posted.post == WEFT_RUN_POST_SRQ_RECV;
	struct rl_judged *o = rl_judged_find(owner, is_srq ? WEFT_RUN_SRQ : WEFT_RUN_QP,
					     r->posted.handle);

	if (!o || n_requests == MOST_REQUESTS)
		return false;
	n_requests++;
	r->of = o;
	r->polled = receives_polled;
	if (r->posted.post == WEFT_RUN_POST_SEND) {
		r->posted.signaled |= o->about.all_signaled;
		list_add_tail(&r->node, &o->sends);
		o->n_sends++;
	} else {
		list_add_tail(&r->node, &o->receives);
		o->n_receives++;
	}
	return true;
}

#define MOST_AT_A_POST	4

void rl_judge_posted(const void *owner, const struct weft_run_posted *p)
{
	struct request *r = request_new(p);
	struct rl_report reports[MOST_AT_A_POST];
	struct rl_judged *cq;
	u32 i, n = 0;

	if (!r)
		return;
	rl_lock(&rl_judge_lock);
	if (!enqueue(owner, r)) {
		rl_unlock(&rl_judge_lock);
		free(r);
		return;
	}
	cq = judged_cq(r->of, p->post != WEFT_RUN_POST_SEND);
	if (cq && r->posted.signaled) {
		cq->due++;
		n += judge_cq(r, cq, &reports[n]);
	}
	n += judge_room(r, &reports[n]);
	n += judge_sink(r, &reports[n]);
	n += judge_overlap(r, &reports[n]);
	rl_unlock(&rl_judge_lock);
	for (i = 0; i < n; i++)
		rl_report_emit(&reports[i]);
}

/* ---- completing ---- */

/*
 * Those of the send queue that are over with this completion: up to the first that was to complete
 * and has its wr_id. An error completes what was not signaled, too.
 */
static void take_sends(struct rl_judged *qp, const struct weft_run_polled *p,
		       struct list_head *over)
{
	struct request *r, *after, *last = NULL;

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
	struct request *r;

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

static bool is_readable(const struct request *r)
{
	u32 i;

	for (i = 0; i < r->n; i++)
		if (!rl_guard_readable((const void *)(uintptr_t)r->sge[i].addr, r->sge[i].length))
			return false;
	return true;
}

/*
 * A datagram is sent once: an answer that was received meanwhile may have told the program that it
 * has left. A connection may send again.
 */
static bool may_be_changed(const struct request *r)
{
	return r->is_placed || (r->posted.datagram && r->polled != receives_polled);
}

/* False: nothing is wrong with it. */
static bool judge_memory(const struct request *r, u8 status, struct rl_report *report)
{
	bool is_checked = r->is_summed && !may_be_changed(r) && status == IBV_WC_SUCCESS;
	bool is_mapped = true;
	u32 sum = r->sum;

	if (is_checked)
		is_mapped = request_sum(r, &sum);
	else if (status == IBV_WC_LOC_PROT_ERR)
		is_mapped = is_readable(r);
	if (!is_mapped && rl_judge_has(RL_UNMAPPED_UNDER_WAY))
		rl_report_init(report, RL_UNMAPPED_UNDER_WAY,
			       "the memory of a %s was unmapped before its completion was polled",
			       request_name(r));
	else if (is_mapped && sum != r->sum && rl_judge_has(RL_CHANGED_UNDER_WAY))
		rl_report_init(report, RL_CHANGED_UNDER_WAY,
			       "the memory of a %s was changed before its completion was polled",
			       request_name(r));
	else
		return false;
	add_request(report, r);
	rl_report_add(report, NULL, "the completion was polled by");
	return true;
}

void rl_judge_polled(const void *owner, const struct weft_run_polled *p)
{
	struct request *r, *after;
	struct rl_judged *qp, *from;
	struct rl_report report;
	LIST_HEAD(over);

	rl_lock(&rl_judge_lock);
	receives_polled += p->is_recv;
	qp = rl_judged_by_number(owner, WEFT_RUN_QP, p->qp_num);
	from = qp && p->is_recv ? receiver_of(qp) : NULL;
	if (from)
		take_receive(from, p->wr_id, &over);
	else if (qp && !p->is_recv)
		take_sends(qp, p, &over);
	/* The program waits in this call, and does not write to them yet. */
	list_for_each_entry_safe(r, after, &over, node) {
		if (judge_memory(r, p->status, &report))
			rl_report_emit(&report);
		request_free(r);
	}
	rl_unlock(&rl_judge_lock);
}

void rl_judge_read_field(const void *owner, const struct weft_run_polled *p)
{
	const struct rl_judged *qp;
	struct rl_report r;

	if (!rl_judge_has(RL_FIELD_AFTER_ERROR))
		return;
	rl_report_init(&r, RL_FIELD_AFTER_ERROR,
		       "%s of a completion was read, and its status is %u, an error", p->field,
		       p->status);
	rl_report_add(&r, NULL, "it was read by");
	rl_lock(&rl_judge_lock);
	qp = rl_judged_by_number(owner, WEFT_RUN_QP, p->qp_num);
	if (qp)
		rl_report_add(&r, &qp->birth, "%s was made by", rl_judged_name(qp));
	rl_unlock(&rl_judge_lock);
	rl_report_emit(&r);
}

/* ---- memory that others use ---- */

/* What a peer writes to a Send's memory is not the program's doing. */
void rl_judge_placed(const void *to, size_t len)
{
	struct rl_judged *o;
	struct request *r;
	u32 i;

	rl_lock(&rl_judge_lock);
	for (o = n_requests ? rl_judged_next(NULL) : NULL; o; o = rl_judged_next(o))
		list_for_each_entry(r, &o->sends, node)
			for (i = 0; r->is_summed && i < r->n; i++)
				r->is_placed |= sge_overlaps(&r->sge[i], (uintptr_t)to, len);
	rl_unlock(&rl_judge_lock);
}

static const struct request *user_of_key(const struct list_head *queue, u32 lkey)
{
	const struct request *r;
	u32 i;

	list_for_each_entry(r, queue, node)
		for (i = 0; i < r->n; i++)
			if (r->sge[i].lkey == lkey && r->sge[i].length)
				return r;
	return NULL;
}

/* A request of the QP, or of an SRQ of such, that uses @mr. */
static const struct request *user_of_region(const struct rl_judged *mr,
					    const struct rl_judged *o)
{
	if (o->owner != mr->owner || o->about.kind != WEFT_RUN_QP)
		return NULL;
	return user_of_key(&o->sends, mr->about.number) ?:
	       user_of_key(&o->receives, mr->about.number);
}

/* The context's lock is taken without ours. */
void rl_judge_dereg(const void *owner, u32 handle, rl_judge_is_live_fn *is_live)
{
	const struct request *r = NULL;
	struct rl_judged *mr, *qp;
	struct rl_report report;
	u32 qp_handle = 0;

	if (!rl_judge_has(RL_DEREGISTERED_UNDER_WAY))
		return;
	rl_lock(&rl_judge_lock);
	mr = rl_judged_find(owner, WEFT_RUN_MR, handle);
	for (qp = mr ? rl_judged_next(NULL) : NULL; qp && !r; qp = rl_judged_next(qp)) {
		r = user_of_region(mr, qp);
		qp_handle = qp->about.handle;
	}
	if (r) {
		rl_report_init(&report, RL_DEREGISTERED_UNDER_WAY,
			       "%s was deregistered while a %s used it", rl_judged_name(mr),
			       request_name(r));
		rl_report_add(&report, NULL, "it was deregistered by");
		add_request(&report, r);
		rl_report_add(&report, &mr->birth, "%s was made by", rl_judged_name(mr));
	}
	rl_unlock(&rl_judge_lock);
	if (r && is_live(owner, qp_handle))
		rl_report_emit(&report);
}
