// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "objects.h"

/* ibv_import_device() makes another context of the same file, which has the same objects. */
static void begin_context(const void *owner)
{
	const struct weft_run_object contexts = { .kind = WEFT_RUN_CONTEXTS };
	struct rl_judged *o;

	rl_judge_enter();
	rl_judged_drop_by(rl_judged_drop_requests);
	o = rl_judged_find(owner, WEFT_RUN_CONTEXTS, 0);
	if (!o)
		rl_judge_made(owner, &contexts);
	o = rl_judged_find(owner, WEFT_RUN_CONTEXTS, 0);
	if (o)
		o->due++;
	rl_judge_leave();
}

static void end_context(const void *owner)
{
	struct rl_judged *o;
	bool is_last;

	rl_judge_enter();
	o = rl_judged_find(owner, WEFT_RUN_CONTEXTS, 0);
	is_last = !o || !o->due || !--o->due;
	rl_judge_leave();
	if (is_last)
		rl_judge_closes(owner);
}

/* is_live() takes its context's lock, without ours. */
static void judge_dereg(const void *owner, const struct weft_run_object *about,
			rl_judge_is_live_fn *is_live)
{
	struct rl_report report;
	u32 nth, qp_handle = 0;
	bool is_user = true;

	for (nth = 0; is_user; nth++) {
		rl_judge_enter();
		is_user = rl_judge_dereg(owner, about->handle, nth, &qp_handle, &report);
		rl_judge_leave();
		if (is_user && is_live(owner, qp_handle)) {
			rl_report_emit(&report);
			return;
		}
	}
}

static void note_failed_qp(const void *owner, u32 handle)
{
	struct rl_judged *qp = rl_judged_find(owner, WEFT_RUN_QP, handle);

	if (qp)
		qp->failed = true;
}

/* What a deed does to objects and requests, with the lock: how many of @reports it has made. */
static u32 do_deed(const void *owner, enum weft_run_deed deed, const void *what,
		   struct rl_report *reports)
{
	const struct weft_run_object *about = what;

	switch (deed) {
	case WEFT_RUN_MADE:
		rl_judge_made(owner, about);
		break;
	case WEFT_RUN_CHANGED:
		rl_judge_changed(owner, about);
		break;
	case WEFT_RUN_ENDS:
		rl_judge_ends(owner, about);
		break;
	case WEFT_RUN_WAITS:
		return rl_judge_object(RL_EVENT_NOT_ACKNOWLEDGED, owner, about,
				       "has events that were not acknowledged: destroying it "
				       "waits for that, perhaps for ever", reports);
	case WEFT_RUN_REFUSED:
		rl_judge_refused(owner, about);
		break;
	case WEFT_RUN_GONE:
		rl_judge_gone(owner, about);
		break;
	case WEFT_RUN_TWICE:
		return rl_judge_twice(owner, about, reports);
	case WEFT_RUN_RESET:
		rl_judge_reset(owner, about->handle);
		break;
	case WEFT_RUN_FAILED:
		note_failed_qp(owner, about->handle);
		break;
	case WEFT_RUN_GID_0:
		return rl_judge_object(RL_GID_INDEX_0, owner, about,
				       "has an address by GID index 0", reports);
	case WEFT_RUN_POSTED:
		return rl_judge_posted(owner, what, reports);
	case WEFT_RUN_POLLED:
		return rl_judge_polled(owner, what, reports);
	case WEFT_RUN_READ_FIELD:
		return rl_judge_read_field(owner, what, reports);
	case WEFT_RUN_IS_JUDGED:
	case WEFT_RUN_CLOSES:
	case WEFT_RUN_ROOM:
		break;
	}
	return 0;
}

#define AT_ONCE (RL_AT_A_POST > RL_AT_A_POLL ? RL_AT_A_POST : RL_AT_A_POLL)

/* Lines are looked up without the lock: that is slow. */
void rl_judge_deed(const void *owner, enum weft_run_deed deed, const void *what,
		   rl_judge_is_live_fn *is_live)
{
	const struct weft_run_object *about = what;
	struct rl_report reports[AT_ONCE];
	u32 i, n;

	if (deed == WEFT_RUN_IS_JUDGED) {
		begin_context(owner);
		return;
	}
	if (deed == WEFT_RUN_CLOSES) {
		end_context(owner);
		return;
	}
	if (deed == WEFT_RUN_ENDS && about->kind == WEFT_RUN_MR)
		judge_dereg(owner, about, is_live);
	rl_judge_enter();
	n = do_deed(owner, deed, what, reports);
	rl_judge_leave();
	for (i = 0; i < n; i++)
		rl_report_emit(&reports[i]);
}

bool rl_judge_has_room(const void *owner, const struct weft_run_object *about)
{
	const struct rl_judged *qp;
	bool has;

	rl_judge_enter();
	qp = rl_judged_find(owner, WEFT_RUN_QP, about->handle);
	has = !qp || qp->n_sends + about->size <= qp->about.size;
	rl_judge_leave();
	return has;
}

void rl_judge_sleeps(const void *owner, u32 handle, u32 n)
{
	const struct weft_run_object cq = { .kind = WEFT_RUN_CQ, .handle = handle };
	struct rl_report report;
	char what[120];
	bool is_wrong;

	snprintf(what, sizeof(what), "had %u completions when it was armed, and the program waits "
		 "for the next one without polling", n);
	rl_judge_enter();
	is_wrong = rl_judge_object(RL_LOST_WAKE_UP, owner, &cq, what, &report);
	rl_judge_leave();
	if (is_wrong)
		rl_report_emit(&report);
}
