// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The objects that a program leaves, and its end. */
#include <stdlib.h>

#include "objects.h"
#include "process/gate.h"
#include "process/options.h"

static bool is_exiting;

static bool is_user(const struct rl_judged *o, const struct rl_judged *of)
{
	const struct weft_run_object *a = &o->about;
	u32 handle = of->about.handle;

	if (o->owner != of->owner)
		return false;
	switch (of->about.kind) {
	case WEFT_RUN_PD:
		return a->kind != WEFT_RUN_PD && a->kind != WEFT_RUN_CQ && a->pd == handle;
	case WEFT_RUN_CQ:
		return a->kind == WEFT_RUN_QP && (a->send_cq == handle || a->recv_cq == handle);
	case WEFT_RUN_SRQ:
		return a->kind == WEFT_RUN_QP && a->has_srq && a->srq == handle;
	default:
		return false;
	}
}

static void judge_refused(const struct rl_judged *o, struct rl_report *r)
{
	const struct rl_judged *user;

	rl_report_init(r, RL_BUSY_IGNORED, "%s could not be destroyed (EBUSY), and never was",
		       rl_judged_name(o));
	rl_report_add(r, &o->refused, "the call that failed");
	rl_report_add(r, &o->birth, "%s was made by", rl_judged_name(o));
	for (user = rl_judged_next(NULL); user; user = rl_judged_next(user))
		if (is_user(user, o)) {
			rl_report_add(r, &user->birth, "%s uses it, and was made by",
				      rl_judged_name(user));
			break;
		}
}

/* False: nothing is wrong with it. */
static bool judge_left(const struct rl_judged *o, bool at_exit, struct rl_report *r)
{
	enum rl_judge_rule rule = at_exit ? RL_LEFT_AT_EXIT : RL_LEFT_AT_CLOSE;

	if (o->about.kind == WEFT_RUN_CONTEXTS)
		return false;
	if (o->refused.n && rl_judge_has(RL_BUSY_IGNORED)) {
		judge_refused(o, r);
		return true;
	}
	if (!rl_judge_has(rule))
		return false;
	rl_report_init(r, rule, "%s was left when %s", rl_judged_name(o),
		       at_exit ? "the program ended" : "its context was closed");
	rl_report_add(r, &o->birth, "%s was made by", rl_judged_name(o));
	if (!at_exit)
		rl_report_add(r, NULL, "the context was closed by");
	return true;
}

/* Of @owner, or all (NULL). Users of others are said with these, so they are forgotten last. */
static void judge_all_left(const void *owner, bool at_exit)
{
	struct rl_report *r = malloc(sizeof(*r));
	struct rl_judged *o, *next;
	bool is_wrong;

	rl_judge_enter();
	for (o = rl_judged_next(NULL); r && o; o = rl_judged_next(o)) {
		is_wrong = (!owner || o->owner == owner) && judge_left(o, at_exit, r);
		if (is_wrong)
			rl_report_emit(r);
	}
	for (o = rl_judged_next(NULL); o; o = next) {
		next = rl_judged_next(o);
		if (!owner || o->owner == owner)
			rl_judged_forget(o);
	}
	rl_judge_leave();
	free(r);
}

/* librdmacm closes its contexts when the program ends. */
void rl_judge_closes(const void *owner)
{
	judge_all_left(owner, READ_ONCE(is_exiting));
}

/* ---- the end ---- */

int __cxa_atexit(void (*f)(void *arg), void *arg, void *dso);

/* The last of all exit handlers. The C library goes on from here with the new status. */
static void judge_at_exit(void *arg)
{
	u32 n;

	rl_gate_enter();
	judge_all_left(NULL, true);
	rl_gate_leave();
	n = rl_report_count();
	if (!n)
		return;
	rl_complain("the judge has made %u report%s", n, n > 1 ? "s" : "");
	exit(RL_EXIT_REPORTED);
}

__attribute__((constructor)) static void judge_begin(void)
{
	rl_report_begin();
	/* The first of all, and of no library: destructors of libraries run before it. */
	if (rl_judge_is_on)
		__cxa_atexit(judge_at_exit, NULL, NULL);
}

__attribute__((destructor)) static void note_exit(void)
{
	is_exiting = true;
}
