// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "command.h"

static const struct {
	const char *name;
	enum rl_control_verb verb;
} verbs[] = {
	{ "list", RL_CONTROL_LIST },
	{ "fatal", RL_CONTROL_FATAL },
	{ "error", RL_CONTROL_ERROR },
	{ "disconnect", RL_CONTROL_DISCONNECT },
};

static bool control_read_number(const char *s, u32 *v)
{
	u64 n = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		n = n * 10 + (u64)(*s - '0');
		if (n > 0xffffff)
			return false;
	}
	*v = (u32)n;
	return true;
}

static bool control_read_argument(struct rl_control_command *c, const char *s)
{
	if (c->verb != RL_CONTROL_FATAL)
		return control_read_number(s, &c->number);
	if (!*s || strlen(s) >= sizeof(c->device))
		return false;
	strcpy(c->device, s);
	return true;
}

bool rl_control_parse(struct rl_control_command *c, const char *text, size_t len)
{
	static const char version[] = RL_CONTROL_VERSION " ";
	char line[RL_CONTROL_REQUEST + 1], *argument;
	u32 i;

	if (len > RL_CONTROL_REQUEST || memchr(text, 0, len))
		return false;
	memcpy(line, text, len);
	line[len] = 0;
	if (strncmp(line, version, sizeof(version) - 1))
		return false;
	argument = strchr(line + sizeof(version) - 1, ' ');
	if (!argument)
		return false;
	*argument++ = 0;
	memset(c, 0, sizeof(*c));
	for (i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(line + sizeof(version) - 1, verbs[i].name))
			continue;
		c->verb = verbs[i].verb;
		return control_read_argument(c, argument);
	}
	return false;
}
