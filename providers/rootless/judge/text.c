// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>

#include "text.h"

void rl_text_put(struct rl_text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at, t->room, fmt, args);
	va_end(args);
	n = n < 0 ? 0 : min_t(int, n, (int)t->room - 1);
	t->at += n;
	t->room -= n;
}

/* Octets that are no ASCII may be no UTF-8. */
void rl_text_quote(struct rl_text *t, const char *s)
{
	rl_text_put(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			rl_text_put(t, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			rl_text_put(t, "\\u%04x", (unsigned char)*s);
		else
			rl_text_put(t, "%c", *s);
	}
	rl_text_put(t, "\"");
}
