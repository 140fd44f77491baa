// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the provider reports to the judge about a context (weft/direct.h). */
#include "command.h"
#include "judge/judge.h"
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

int rl_uverbs_judge(struct rl_file *f, u32 deed, const void *what)
{
	struct rl_context *ctx = rl_context_of(f);
	const struct weft_run_object *o = what;

	if (deed == WEFT_RUN_ENDS && o->kind == WEFT_RUN_CQ && has_events(ctx, o))
		return -EAGAIN;
	return -rl_judge_deed(ctx, deed, what, is_live);
}
