/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Text in a room: what does not fit is left out. */
#ifndef RL_JUDGE_TEXT_H
#define RL_JUDGE_TEXT_H

#include "process/port.h"

struct rl_text {
	char *at;
	size_t room;			/* 1: it is full */
};

void rl_text_put(struct rl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As a string of JSON. */
void rl_text_quote(struct rl_text *t, const char *s);

#endif
