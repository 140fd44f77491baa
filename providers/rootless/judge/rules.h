/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The judge's rules: their numbers and names never change. weft-run reads lists of them, too. */
#ifndef RL_JUDGE_RULES_H
#define RL_JUDGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rl_judge_rule {
	RL_LEFT_AT_CLOSE, RL_LEFT_AT_EXIT, RL_BUSY_IGNORED, RL_EVENT_NOT_ACKNOWLEDGED,
	RL_DESTROYED_TWICE, RL_CHANNEL_IN_USE, RL_FORK_UNPREPARED,
	RL_CHANGED_UNDER_WAY, RL_UNMAPPED_UNDER_WAY, RL_DEREGISTERED_UNDER_WAY,
	RL_RECEIVES_OVERLAP, RL_FREED_UNDER_WAY, RL_FOREIGN_DOMAIN, RL_OUTSIDE_REGION,
	RL_NO_LOCAL_WRITE, RL_TOUCHED_UNDER_WAY,
	RL_CQ_TOO_SMALL, RL_SEND_QUEUE_FULL, RL_LOST_WAKE_UP, RL_FIELD_AFTER_ERROR,
	RL_READ_SINK, RL_GID_INDEX_0,
	RL_JUDGE_RULES
};

struct rl_judge_text {
	const char *number, *name;
	bool is_off;			/* a warning, unless it is asked for */
	const char *reason;		/* the specification or man page */
	const char *fix;
};

extern const struct rl_judge_text rl_judge_texts[RL_JUDGE_RULES];

/*
 * Reads a list: "default", "all", numbers or names, each with "-" before it to leave it out. It
 * begins with the default rules if its first word leaves some out. False: *@word, of *@len
 * characters, is no rule.
 */
bool rl_judge_parse(const char *list, uint32_t *on, const char **word, size_t *len);

#endif
