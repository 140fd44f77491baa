// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "calls.h"
#include "objects.h"
#include "process/gate.h"

/* ---- memory ---- */

bool weft_run_judges_memory(void)
{
	return rl_judge_is_on && rl_judge_has(RL_FREED_UNDER_WAY);
}

/* What the library itself frees is no request's. */
void weft_run_frees(const void *addr, size_t len, const char *how)
{
	if (!READ_ONCE(rl_requests) || rl_gate_is_inside())
		return;
	rl_gate_enter();
	rl_judge_freed(addr, len, how);
	rl_gate_leave();
}

/* ---- fork ---- */

static bool judge_fork(struct rl_report *report)
{
	const struct rl_judged *o;

	for (o = rl_judged_next(NULL); o; o = rl_judged_next(o))
		if (o->about.kind == WEFT_RUN_MR && o->about.has_memory)
			break;
	if (!o)
		return false;
	rl_report_init(report, RL_FORK_UNPREPARED, "the program forks, has %s, and has not called "
		       "ibv_fork_init()", rl_judged_name(o));
	rl_report_add(report, NULL, "it forks here");
	rl_report_add(report, &o->birth, "%s was made by", rl_judged_name(o));
	return true;
}

void weft_run_forks(bool is_prepared)
{
	struct rl_report report;
	bool is_wrong;

	if (is_prepared || !rl_judge_is_on || !rl_judge_has(RL_FORK_UNPREPARED))
		return;
	rl_gate_enter();
	rl_judge_enter();
	is_wrong = judge_fork(&report);
	rl_judge_leave();
	if (is_wrong)
		rl_report_emit(&report);
	rl_gate_leave();
}

/* ---- librdmacm: an object's owner is itself ---- */

static const struct weft_run_object an_id = { .kind = WEFT_RUN_CM_ID };
static const struct weft_run_object a_channel = { .kind = WEFT_RUN_CM_CHANNEL };

static void enter(void)
{
	rl_gate_enter();
	rl_judge_enter();
}

static void leave(void)
{
	rl_judge_leave();
	rl_gate_leave();
}

void weft_run_cm_id(const void *id, const void *channel)
{
	struct weft_run_object about = an_id;
	struct rl_judged *o;

	about.addr = (uintptr_t)channel;
	enter();
	o = rl_judged_find(id, WEFT_RUN_CM_ID, 0);
	if (o)
		o->about.addr = about.addr;
	else
		rl_judge_made(id, &about);
	leave();
}

void weft_run_cm_events(const void *id, int n)
{
	struct rl_judged *o;

	enter();
	o = rl_judged_find(id, WEFT_RUN_CM_ID, 0);
	if (o && (n > 0 || o->due))
		o->due += n;
	leave();
}

unsigned int weft_run_cm_pending(const void *id)
{
	const struct rl_judged *o;
	u32 n;

	enter();
	o = rl_judged_find(id, WEFT_RUN_CM_ID, 0);
	n = o ? o->due : 0;
	leave();
	return n;
}

static void forget_cm(const void *object, enum weft_run_kind kind)
{
	struct rl_judged *o = rl_judged_find(object, kind, 0);

	if (o)
		rl_judged_forget(o);
}

void weft_run_cm_ends(const void *id, bool waits)
{
	struct rl_report report;
	bool is_wrong = false;

	enter();
	if (waits)
		is_wrong = rl_judge_object(RL_EVENT_NOT_ACKNOWLEDGED, id, &an_id,
					   "has events that were not acknowledged: "
					   "rdma_destroy_id() waits for that, perhaps for ever",
					   &report);
	forget_cm(id, WEFT_RUN_CM_ID);
	rl_judge_leave();
	if (is_wrong)
		rl_report_emit(&report);
	rl_gate_leave();
}

void weft_run_cm_channel(const void *channel)
{
	enter();
	if (!rl_judged_find(channel, WEFT_RUN_CM_CHANNEL, 0))
		rl_judge_made(channel, &a_channel);
	leave();
}

static bool judge_channel(const void *channel, struct rl_report *report)
{
	const struct rl_judged *o;

	for (o = rl_judged_next(NULL); o; o = rl_judged_next(o))
		if (o->about.kind == WEFT_RUN_CM_ID && o->about.addr == (uintptr_t)channel)
			break;
	if (!o || !rl_judge_has(RL_CHANNEL_IN_USE))
		return false;
	rl_report_init(report, RL_CHANNEL_IN_USE,
		       "an event channel was destroyed while %s used it", rl_judged_name(o));
	rl_report_add(report, NULL, "it was destroyed by");
	rl_report_add(report, &o->birth, "%s was made by", rl_judged_name(o));
	return true;
}

void weft_run_cm_channel_ends(const void *channel)
{
	struct rl_report report;
	bool is_wrong;

	enter();
	is_wrong = judge_channel(channel, &report);
	forget_cm(channel, WEFT_RUN_CM_CHANNEL);
	rl_judge_leave();
	if (is_wrong)
		rl_report_emit(&report);
	rl_gate_leave();
}
