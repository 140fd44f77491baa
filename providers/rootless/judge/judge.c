// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "objects.h"

static int begin_context(bool *overwrites)
{
	*overwrites = rl_judge_has(RL_FIELD_AFTER_ERROR);
	return rl_judge_is_on ? 0 : ENOTTY;
}

static void judge_end_of(const void *owner, const struct weft_run_object *about,
			 rl_judge_is_live_fn *is_live)
{
	if (about->kind == WEFT_RUN_MR)
		rl_judge_dereg(owner, about->handle, is_live);
	rl_judge_ends(owner, about);
}

int rl_judge_deed(const void *owner, enum weft_run_deed deed, const void *what,
		  rl_judge_is_live_fn *is_live)
{
	const struct weft_run_object *about = what;

	switch (deed) {
	case WEFT_RUN_IS_JUDGED:
		return begin_context((bool *)what);
	case WEFT_RUN_CLOSES:
		rl_judge_closes(owner);
		break;
	case WEFT_RUN_MADE:
		rl_judge_made(owner, about);
		break;
	case WEFT_RUN_ENDS:
		judge_end_of(owner, about, is_live);
		break;
	case WEFT_RUN_WAITS:
		rl_judge_object(RL_EVENT_NOT_ACKNOWLEDGED, owner, about,
				"has events that were not acknowledged: destroying it waits for "
				"ibv_ack_cq_events(), perhaps for ever");
		rl_judge_ends(owner, about);
		break;
	case WEFT_RUN_REFUSED:
		rl_judge_refused(owner, about);
		break;
	case WEFT_RUN_GONE:
		rl_judge_gone(owner, about);
		break;
	case WEFT_RUN_RESET:
		rl_judge_reset(owner, about->handle);
		break;
	case WEFT_RUN_GID_0:
		rl_judge_object(RL_GID_INDEX_0, owner, about, "has an address by GID index 0");
		break;
	case WEFT_RUN_POSTED:
		rl_judge_posted(owner, what);
		break;
	case WEFT_RUN_POLLED:
		rl_judge_polled(owner, what);
		break;
	case WEFT_RUN_READ_FIELD:
		rl_judge_read_field(owner, what);
		break;
	}
	return 0;
}
