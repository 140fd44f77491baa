/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Text to the parser of a test, which defines read_text(), and the reason for a refusal. */
#ifndef TESTS_DEVICES_PARSE_H
#define TESTS_DEVICES_PARSE_H

static bool read_text(const char *text, size_t len, struct rl_profile_error *e);

static struct rl_profile_error e;

/* The parser gets a copy of the exact size, without a terminator: ASan sees it read beyond. */
static bool parse(const char *text)
{
	size_t len = strlen(text);
	char *copy = malloc(len ?: 1);
	bool done;

	memcpy(copy, text, len);
	memset(&e, 0, sizeof(e));
	done = read_text(copy, len, &e);
	free(copy);
	return done;
}

static void assert_refused(const char *text, unsigned int line, const char *why)
{
	assert_false(parse(text));
	assert_int_equal(e.line, line);
	if (!strstr(e.why, why))
		fail_msg("\"%s\" does not say \"%s\"", e.why, why);
}

#endif
