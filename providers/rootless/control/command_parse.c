// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <stdio.h>

#include "command.h"
#include "host/cable_limits.h"

#define QPN_MAX		0xffffff
#define LID_MAX		0xbfff		/* of one port */
#define GID_MAX		255
#define WORDS		4
/* What a request may be about. */
enum { ON_DEVICE = 1, ON_QP = 2, ON_ANY = ON_DEVICE | ON_QP };

/* The value of @word; false: it is none. */
typedef bool parse_value(const char *word, u64 *value);

/* A whole number, at most @max. *@rest is what follows it. */
static bool parse_digits(const char *word, u64 max, u64 *n, const char **rest)
{
	const char *s = word;

	for (*n = 0; *s >= '0' && *s <= '9'; s++) {
		*n = *n * 10 + (u64)(*s - '0');
		if (*n > max)
			return false;
	}
	*rest = s;
	return s != word;
}

struct unit {
	const char *name;
	u64 factor;
};

/* A number with a unit, or "off", which is 0. */
static bool parse_amount(const char *word, const struct unit *units, u64 max, u64 *value)
{
	const char *rest;

	*value = 0;
	if (!strcmp(word, "off"))
		return true;
	if (!parse_digits(word, max, value, &rest) || !*value)
		return false;
	for (; units->name; units++) {
		if (strcmp(rest, units->name))
			continue;
		if (*value > max / units->factor)
			return false;
		*value *= units->factor;
		return true;
	}
	return false;
}

static bool parse_rate(const char *word, u64 *value)
{
	static const struct unit units[] = {
		{ "", 1 }, { "K", 1000 }, { "M", 1000000 }, { "G", 1000000000 }, { NULL, 0 },
	};

	return parse_amount(word, units, RL_CABLE_MAX_BPS, value) &&
	       (!*value || *value >= RL_CABLE_MIN_BPS);
}

static bool parse_delay(const char *word, u64 *value)
{
	static const struct unit units[] = {
		{ "us", 1 }, { "ms", 1000 }, { "s", 1000000 }, { NULL, 0 },
	};

	return parse_amount(word, units, RL_CABLE_MAX_DELAY_US, value);
}

/* "0.5%": up to four digits after the point. */
static bool parse_loss(const char *word, u64 *value)
{
	u64 whole, part = 0, scale = RL_CABLE_CERTAIN / 100;
	const char *rest, *digit;

	*value = 0;
	if (!strcmp(word, "off"))
		return true;
	if (!parse_digits(word, 100, &whole, &rest))
		return false;
	if (*rest == '.') {
		digit = rest + 1;
		if (!parse_digits(digit, 9999, &part, &rest) || rest - digit > 4)
			return false;
		part *= scale;
		for (; digit < rest; digit++)
			part /= 10;
	}
	*value = whole * scale + part;
	return !strcmp(rest, "%") && *value && *value <= RL_CABLE_CERTAIN;
}

static bool parse_direction(const char *word, u64 *up)
{
	*up = !strcmp(word, "up");
	return *up || !strcmp(word, "down");
}

static bool parse_lid(const char *word, u64 *lid)
{
	const char *rest;

	return parse_digits(word, LID_MAX, lid, &rest) && !*rest;
}

static const struct {
	const char *name;
	u32 on;				/* 0: nothing */
	parse_value *value;		/* NULL: it has none */
} verbs[RL_CONTROL_VERBS] = {
	[RL_CONTROL_LIST]	= { "list", ON_QP, NULL },
	[RL_CONTROL_FATAL]	= { "fatal", ON_DEVICE, NULL },
	[RL_CONTROL_ERROR]	= { "error", ON_QP, NULL },
	[RL_CONTROL_DISCONNECT]	= { "disconnect", ON_QP, NULL },
	[RL_CONTROL_FREEZE]	= { "freeze", ON_QP, NULL },
	[RL_CONTROL_THAW]	= { "thaw", ON_QP, NULL },
	[RL_CONTROL_PORT]	= { "port", ON_DEVICE, parse_direction },
	[RL_CONTROL_RATE]	= { "rate", ON_ANY, parse_rate },
	[RL_CONTROL_DELAY]	= { "delay", ON_ANY, parse_delay },
	[RL_CONTROL_LOSS]	= { "loss", ON_ANY, parse_loss },
	[RL_CONTROL_LID]	= { "lid", ON_DEVICE, parse_lid },
	[RL_CONTROL_GID]	= { "gid", ON_DEVICE, NULL },
	[RL_CONTROL_FAULTS]	= { "faults", 0, NULL },
};

/* A number is a QP's. */
static const char *parse_object(struct rl_control_command *c, u32 on, const char *word)
{
	const char *rest;
	u64 n;

	/* A device's name may begin with a digit. */
	if (*word && !word[strspn(word, "0123456789")]) {
		if (!(on & ON_QP) || !parse_digits(word, QPN_MAX, &n, &rest) || *rest)
			return "the number is wrong";
		c->qpn = (u32)n;
		return NULL;
	}
	if (!(on & ON_DEVICE) || !*word || strlen(word) >= sizeof(c->device))
		return on & ON_DEVICE ? "the device's name is wrong" : "a QP's number is missing";
	strcpy(c->device, word);
	return NULL;
}

/* Its index, and the address that it is: that in the words of IPv6. */
static const char *parse_gid(struct rl_control_command *c, const char *index, const char *gid)
{
	const char *rest;

	if (!parse_digits(index, GID_MAX, &c->value, &rest) || *rest)
		return "the index is wrong";
	if (strcmp(gid, "none") && inet_pton(AF_INET6, gid, c->gid) != 1)
		return "the GID is wrong";
	c->has_gid = true;
	return NULL;
}

static const char *parse_words(struct rl_control_command *c, char *words[WORDS], u32 n)
{
	const char *why;
	u32 on;

	for (c->verb = 0; c->verb < RL_CONTROL_VERBS; c->verb++)
		if (!strcmp(words[0], verbs[c->verb].name))
			break;
	if (c->verb == RL_CONTROL_VERBS)
		return "there is no such command";
	on = verbs[c->verb].on;
	if (n != 1u + !!on + !!verbs[c->verb].value && !(c->verb == RL_CONTROL_GID && n == WORDS))
		return "the command has other arguments";
	why = on ? parse_object(c, on, words[1]) : NULL;
	if (!why && c->verb == RL_CONTROL_GID && n == WORDS)
		return parse_gid(c, words[2], words[3]);
	if (!why && verbs[c->verb].value && !verbs[c->verb].value(words[2], &c->value))
		why = "the value is wrong";
	return why;
}

/* Words of @line, divided by one blank each; 0: too many. */
static u32 split(char *line, char *words[WORDS])
{
	u32 n = 0;

	for (; line; n++) {
		if (n == WORDS)
			return 0;
		words[n] = line;
		line = strchr(line, ' ');
		if (line)
			*line++ = 0;
	}
	return n;
}

const char *rl_control_parse(struct rl_control_command *c, const char *request, size_t len)
{
	static const char version[] = RL_CONTROL_VERSION " ";
	const char *end = memchr(request, '\n', len);
	size_t line_len = end ? (size_t)(end - request) : len;
	char line[RL_CONTROL_LINE + 1], *words[WORDS] = { NULL };
	const char *why;
	u32 n;

	*c = (struct rl_control_command){};
	if (len > RL_CONTROL_REQUEST || line_len > RL_CONTROL_LINE || memchr(request, 0, len))
		return "the request is too long, or has a NUL";
	memcpy(line, request, line_len);
	line[line_len] = 0;
	if (strncmp(line, version, sizeof(version) - 1))
		return "this is " RL_CONTROL_VERSION;
	n = split(line + sizeof(version) - 1, words);
	why = n ? parse_words(c, words, n) : "the command has other arguments";
	if (why)
		return why;
	if (!end != (c->verb != RL_CONTROL_FAULTS))
		return "only the command faults has a text";
	if (end) {
		c->text = end + 1;
		c->text_len = len - line_len - 1;
	}
	return NULL;
}
