// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the provider reports about a context (weft/direct.h): to the judge, and to the record. */
#include <string.h>

#include "command.h"
#include "judge/adverse.h"
#include "judge/judge.h"
#include "judge/stack.h"
#include "record/log.h"
#include "uverbs.h"

static bool is_live(const void *owner, u32 handle)
{
	struct rl_context *ctx = (struct rl_context *)owner;
	const struct rl_qp *qp;
	bool live;

	pthread_mutex_lock(&ctx->lock);
	qp = rl_find_qp(ctx, handle);
	live = qp && READ_ONCE(qp->core.state) <= WEFT_QPS_RTS;
	pthread_mutex_unlock(&ctx->lock);
	return live;
}

/* Its events that the program has read, and not acknowledged. */
static bool has_events(struct rl_context *ctx, const struct weft_run_object *o)
{
	const struct rl_cq *cq;
	bool has;

	pthread_mutex_lock(&ctx->lock);
	cq = rl_find_cq(ctx, o->handle);
	has = cq && READ_ONCE(cq->comp_reported) != o->number;
	pthread_mutex_unlock(&ctx->lock);
	return has;
}

/* ---- the record ---- */

/* Without the context's lock, as the doorbell finds its QP. */
static void record_posted(const void *owner, const struct weft_run_posted *p)
{
	struct rl_context *ctx = (struct rl_context *)owner;
	struct rl_qp *qp = p->post == WEFT_RUN_POST_SRQ_RECV ? NULL : rl_find_qp(ctx, p->handle);
	struct weft_run_posted posted = *p;

	posted.signaled |= qp && qp->core.sig_all;
	rl_record_posted(ctx, qp ? qp->core.id : 0, qp ? &qp->posts : NULL, &posted);
}

/* The line that called verbs or librdmacm. */
static const void *program_line(void)
{
	struct rl_stack s;

	rl_stack_take(&s);
	return rl_stack_program(&s);
}

/* Some deeds name an object by its handle alone. */
static void record_object(struct rl_context *ctx, u32 deed, const struct weft_run_object *about)
{
	struct weft_run_object o = *about;
	u64 user_handle = 0;
	struct rl_cq *cq;
	struct rl_qp *qp;

	pthread_mutex_lock(&ctx->lock);
	cq = o.kind == WEFT_RUN_CQ ? rl_find_cq(ctx, o.handle) : NULL;
	qp = o.kind == WEFT_RUN_QP ? rl_find_qp(ctx, o.handle) : NULL;
	if (cq)
		user_handle = cq->o.user_handle;
	if (qp)
		o.number = qp->core.id;
	if (qp && deed == WEFT_RUN_RESET)
		memset(&qp->posts, 0, sizeof(qp->posts));
	pthread_mutex_unlock(&ctx->lock);
	rl_record_object(ctx, deed, &o, user_handle, program_line());
}

static void record_deed(struct rl_context *ctx, u32 deed, const void *what)
{
	switch (deed) {
	case WEFT_RUN_MADE:
	case WEFT_RUN_ENDS:
	case WEFT_RUN_REFUSED:
	case WEFT_RUN_GONE:
	case WEFT_RUN_CHANGED:
	case WEFT_RUN_RESET:
		record_object(ctx, deed, what);
		break;
	default:
		break;
	}
}

/* ---- both ---- */

static int begin_judging(struct rl_context *ctx, struct weft_run_judging *j)
{
	*j = (struct weft_run_judging){
		.is_judged = rl_judge_is_on,
		.overwrites_fields = rl_judge_has(RL_FIELD_AFTER_ERROR),
		.is_cramped = rl_is_adverse,
	};
	if (rl_record_is_on()) {
		j->owner = ctx;
		j->record_posted = record_posted;
		j->record_polled = rl_record_polled;
	}
	if (rl_judge_is_on)
		rl_judge_deed(ctx, WEFT_RUN_IS_JUDGED, NULL, is_live);
	return rl_judge_is_on || rl_record_is_on() ? 0 : -ENOTTY;
}

int rl_uverbs_judge(struct rl_file *f, u32 deed, const void *what)
{
	struct rl_context *ctx = rl_context_of(f);
	const struct weft_run_object *o = what;

	if (deed == WEFT_RUN_IS_JUDGED)
		return begin_judging(ctx, (struct weft_run_judging *)what);
	if (rl_record_is_on())
		record_deed(ctx, deed, what);
	if (!rl_judge_is_on)
		return 0;
	if (deed == WEFT_RUN_ENDS && o->kind == WEFT_RUN_CQ && has_events(ctx, o))
		return -EAGAIN;
	if (deed == WEFT_RUN_ROOM)
		return rl_judge_has_room(ctx, o) ? 0 : -ENOMEM;
	rl_judge_deed(ctx, deed, what, is_live);
	return 0;
}
