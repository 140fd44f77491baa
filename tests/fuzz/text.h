/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a parser's error must be, whatever the text was. */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include "devices/profile.h"
#include "fuzz.h"

static u32 count_lines(const char *text, size_t len)
{
	u32 n = len ? 1 : 0;
	size_t i;

	for (i = 0; i + 1 < len; i++)
		n += text[i] == '\n';
	return n;
}

/* It has a reason, and a line of the text. 0: it is about the whole. */
static void check_error(const struct rl_profile_error *e, const char *text, size_t len)
{
	FUZZ_ASSERT(memchr(e->why, '\0', sizeof(e->why)) && e->why[0]);
	FUZZ_ASSERT(e->line <= count_lines(text, len));
}

#endif
