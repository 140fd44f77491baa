/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What profiles and topologies have in common: lines, words, keys. */
#ifndef RL_PROFILE_PARSE_H
#define RL_PROFILE_PARSE_H

#include "profile.h"

#define RL_PROFILE_LINE	1024		/* room for one */
#define RL_PROFILE_KEYS	80

struct rl_reader {
	struct rl_profile *p;
	struct rl_profile_error *e;
	u32 line;
	char *at;			/* the rest of the line */
};

/* Keys with their lines: of the device's own section, and of all. */
struct rl_origin {
	u32 own[RL_PROFILE_KEYS], any[RL_PROFILE_KEYS];
};

/* The next line of *@text into @buf: 1; 0: there is none; -1: it is wrong. */
int rl_profile_next_line(struct rl_reader *r, const char **text, size_t *len,
			 char buf[RL_PROFILE_LINE]);
/* The next word of the line, which ends; NULL: there is none. */
char *rl_profile_word(struct rl_reader *r);
/* The line begins with @name, and has the values of that key. */
bool rl_profile_read_key(struct rl_reader *r, struct rl_origin *o, const char *name);
/* After the last line: what goes together. */
bool rl_profile_finish(struct rl_reader *r, const struct rl_origin *o);
/* False, for the caller to return. */
bool rl_profile_wrong(struct rl_reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
