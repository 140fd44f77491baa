// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A verbs context: its table of handles, and its asynchronous events. */
#include <stdlib.h>

#include <rdma/ib_user_verbs.h>

#include <infiniband/verbs.h>

#include "chan.h"
#include "context.h"
#include "process/clock.h"
#include "process/raw.h"
#include "record/deeds.h"
#include "record/log.h"

static bool is_one_too_many(const struct rl_context *ctx, enum rl_kind kind)
{
	const struct rl_profile *p = ctx->dev->about;
	const u32 most[RL_KINDS] = {
		[RL_PD] = p->max_pd, [RL_MR] = p->max_mr, [RL_MW] = p->max_mw,
		[RL_CQ] = p->max_cq, [RL_QP] = p->max_qp, [RL_SRQ] = p->max_srq,
	};

	return rl_resource_count(ctx->dev, kind) >= most[kind];
}

/* ---- the lock ---- */

/* Old libcs can wait for a mutex by the wall clock alone, which may be set. */
bool rl_context_lock_within(struct rl_context *ctx, u32 ms)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	u64 until = rl_now_ms() + ms;

	while (pthread_mutex_trylock(&ctx->lock)) {
		if (rl_now_ms() >= until)
			return false;
		rl_raw(SYS_nanosleep, &step, NULL);
	}
	return true;
}

/* ---- handles ---- */

struct rl_object *rl_object_find(struct rl_context *ctx, enum rl_kind kind, u32 handle)
{
	struct rl_object **chunk, *o;

	if (handle >= RL_CHUNK * RL_CHUNKS)
		return NULL;
	chunk = __atomic_load_n(&ctx->chunks[handle / RL_CHUNK], __ATOMIC_ACQUIRE);
	if (!chunk)
		return NULL;
	o = __atomic_load_n(&chunk[handle % RL_CHUNK], __ATOMIC_ACQUIRE);
	return o && o->kind == kind ? o : NULL;
}

/* The first free handle after the last one that was given. */
static bool find_free(struct rl_context *ctx, u32 *handle)
{
	u32 n, h = ctx->next_handle;

	for (n = 0; n < RL_CHUNK * RL_CHUNKS; n++, h++) {
		struct rl_object **chunk = ctx->chunks[h / RL_CHUNK % RL_CHUNKS];

		if (!chunk || !chunk[h % RL_CHUNK]) {
			*handle = h % (RL_CHUNK * RL_CHUNKS);
			return true;
		}
	}
	return false;
}

int rl_object_add(struct rl_context *ctx, struct rl_object *o)
{
	struct rl_object **chunk;
	u32 handle;

	if (is_one_too_many(ctx, o->kind) || !find_free(ctx, &handle))
		return -ENOMEM;
	if (!ctx->chunks[handle / RL_CHUNK]) {
		chunk = calloc(RL_CHUNK, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		__atomic_store_n(&ctx->chunks[handle / RL_CHUNK], chunk, __ATOMIC_RELEASE);
	}
	o->handle = handle;
	ctx->next_handle = handle + 1;
	rl_object_replace(ctx, handle, o);
	return 0;
}

void rl_object_replace(struct rl_context *ctx, u32 handle, struct rl_object *o)
{
	struct rl_object **place = &ctx->chunks[handle / RL_CHUNK][handle % RL_CHUNK];

	if (*place)
		rl_resource_add(ctx->dev, (*place)->kind, -1);
	if (o) {
		rl_resource_add(ctx->dev, o->kind, 1);
		o->handle = handle;
	} else if (handle < ctx->next_handle) {
		ctx->next_handle = handle;
	}
	__atomic_store_n(place, o, __ATOMIC_RELEASE);
}

/* ---- asynchronous events ---- */

void rl_context_report(struct rl_context *ctx, const struct rl_object *o, u32 type, u32 *reported)
{
	struct ib_uverbs_async_event_desc desc = { .element = o->user_handle, .event_type = type };

	struct rl_chan *chan = o->async ?: ctx->async;

	if (rl_record_is_on())
		rl_record_event(WEFT_RECORD_ASYNC, type, o->user_handle, 0, false, 0);
	if (chan)
		rl_chan_report(chan, o, reported, &desc, sizeof(desc));
}

bool rl_context_die(struct rl_context *ctx)
{
	return !__atomic_exchange_n(&ctx->dead, true, __ATOMIC_RELAXED);
}

void rl_context_report_death(struct rl_context *ctx)
{
	const struct ib_uverbs_async_event_desc desc = { .event_type = IBV_EVENT_DEVICE_FATAL };

	if (ctx->async)
		rl_chan_report(ctx->async, ctx, NULL, &desc, sizeof(desc));
}

void rl_context_forget(struct rl_context *ctx, struct rl_object *o)
{
	struct rl_chan *chan = o->async ?: ctx->async;

	if (chan)
		rl_chan_drop(chan, o);
	if (o->async)
		rl_chan_put(o->async);
	o->async = NULL;
}
