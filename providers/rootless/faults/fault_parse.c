// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fault files. A line is a rule, "CALL [CONDITION VALUE]... -> EFFECT...", a seed, empty, or a
 * comment after '#'. Lines and words are those of profiles.
 */
#include <errno.h>

#include "devices/profile_parse.h"
#include "fault.h"

#define wrong rl_profile_wrong

/* ---- values ---- */

/* Reads decimal digits. Returns what follows them, or NULL: none, or more than 64 bits. */
static const char *take_number(const char *s, u64 *v)
{
	const char *first = s;
	u32 d;

	for (*v = 0; *s >= '0' && *s <= '9'; s++) {
		d = (u32)(*s - '0');
		if (*v > (UINT64_MAX - d) / 10)
			return NULL;
		*v = *v * 10 + d;
	}
	return s > first ? s : NULL;
}

/* At least 1. */
static bool word_count(const char *s, u64 *v)
{
	s = take_number(s, v);
	return s && !*s && *v;
}

/* "200ms", "5s" */
static bool word_time(const char *s, u64 max, u64 *ms)
{
	u64 unit;

	s = take_number(s, ms);
	if (!s)
		return false;
	unit = !strcmp(s, "s") ? 1000 : !strcmp(s, "ms") ? 1 : 0;
	if (!unit || *ms > max / unit)
		return false;
	*ms *= unit;
	return true;
}

/* "4096", "64K", "1M", "2G": what follows, or NULL. */
static const char *take_size(const char *s, u64 *v)
{
	static const char units[] = "KMG";
	const char *unit;
	u32 shift;

	s = take_number(s, v);
	unit = s && *s ? strchr(units, *s) : NULL;
	if (!unit)
		return s;
	shift = 10 * (u32)(unit - units + 1);
	if (*v > UINT64_MAX >> shift)
		return NULL;
	*v <<= shift;
	return s + 1;
}

/* "SIZE", "MIN-MAX", "MIN-", "-MAX" */
static bool word_sizes(const char *s, u64 *min, u64 *max)
{
	*min = 0;
	*max = UINT64_MAX;
	if (*s != '-') {
		s = take_size(s, min);
		if (!s)
			return false;
		if (!*s)
			*max = *min;
		if (!*s || !strcmp(s, "-"))
			return true;
	}
	if (*s != '-')
		return false;
	s = take_size(s + 1, max);
	return s && !*s && *min <= *max;
}

/* "5%", "0.25": of RL_FAULT_CERTAIN; with up to six digits after the point. */
static bool word_chance(const char *s, u64 *v)
{
	u64 whole, part = 0, scale = 1;
	const char *digits;

	s = take_number(s, &whole);
	if (!s || whole > 100)
		return false;
	if (*s == '.') {
		digits = s + 1;
		s = take_number(digits, &part);
		if (!s || s - digits > 6)
			return false;
		for (; digits < s; digits++)
			scale *= 10;
	}
	part += whole * scale;
	if (*s == '%') {
		scale *= 100;
		s++;
	}
	if (*s || part > scale)
		return false;
	*v = part * RL_FAULT_CERTAIN / scale;	/* below 2^27 times 2^32 */
	return *v;
}

/* ---- conditions ---- */

struct rule_reader {
	struct rl_reader r;
	struct rl_fault_rule *rule;
	u32 seen;			/* bits of conditions[] */
};

static bool read_pattern(char *name, size_t room, const char *s)
{
	size_t len = strlen(s);

	if (len >= room)
		return false;
	memcpy(name, s, len + 1);
	return true;
}

static bool read_device(struct rl_fault_rule *rule, const char *s)
{
	return read_pattern(rule->device, sizeof(rule->device), s);
}

static bool read_thread(struct rl_fault_rule *rule, const char *s)
{
	return read_pattern(rule->thread, sizeof(rule->thread), s);
}

static bool read_octets(struct rl_fault_rule *rule, const char *s)
{
	s = take_size(s, &rule->octets);
	return s && !*s && rule->octets;
}

static bool read_type(struct rl_fault_rule *rule, const char *s)
{
	rule->type = rl_fault_type_of(s);
	return rule->type;
}

static bool read_qpn(struct rl_fault_rule *rule, const char *s)
{
	u64 n;

	if (!word_count(s, &n) || n >= 1u << 24)
		return false;
	rule->qpn = (u32)n;
	return true;
}

static bool read_opcode(struct rl_fault_rule *rule, const char *s)
{
	rule->opcode = rl_fault_opcode_of(s);
	return rule->opcode;
}

static bool read_size(struct rl_fault_rule *rule, const char *s)
{
	return word_sizes(s, &rule->size_min, &rule->size_max);
}

static bool read_after(struct rl_fault_rule *rule, const char *s)
{
	return word_time(s, UINT64_MAX / 1000, &rule->after_ms);
}

static bool read_nth(struct rl_fault_rule *rule, const char *s)
{
	return word_count(s, &rule->nth);
}

static bool read_every(struct rl_fault_rule *rule, const char *s)
{
	return word_count(s, &rule->every);
}

static bool read_times(struct rl_fault_rule *rule, const char *s)
{
	return word_count(s, &rule->times);
}

static bool read_chance(struct rl_fault_rule *rule, const char *s)
{
	return word_chance(s, &rule->chance);
}

static const struct condition {
	const char *name;
	bool (*read)(struct rl_fault_rule *rule, const char *s);
	u32 needs;			/* of the call */
	const char *what;		/* its value should be */
} conditions[] = {
	{ "device", read_device, RL_FAULT_HAS_DEVICE, "a name of up to 31 characters" },
	{ "type", read_type, RL_FAULT_HAS_TYPE, "rc, uc or ud" },
	{ "qpn", read_qpn, RL_FAULT_HAS_QP, "a number from 1 to 16777215" },
	{ "opcode", read_opcode, RL_FAULT_HAS_REQUEST, "send, write, read or another" },
	{ "size", read_size, RL_FAULT_HAS_SIZE, "SIZE, MIN-MAX, MIN- or -MAX, with K, M or G" },
	{ "octets", read_octets, RL_FAULT_HAS_OCTETS, "above 0, with K, M or G" },
	{ "thread", read_thread, RL_FAULT_HAS_RESULT, "a name of up to 15 characters" },
	{ "after", read_after, 0, "a time such as 5s or 200ms" },
	{ "nth", read_nth, 0, "a number, at least 1" },
	{ "every", read_every, 0, "a number, at least 1" },
	{ "times", read_times, 0, "a number, at least 1" },
	{ "chance", read_chance, 0, "above 0, up to 1 or 100%, such as 0.25 or 5%" },
};

static const struct condition *find_condition(const char *name)
{
	const struct condition *c;

	for (c = conditions; c < conditions + ARRAY_SIZE(conditions); c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static bool read_condition(struct rule_reader *q, const char *name)
{
	const struct condition *c = find_condition(name);
	const char *value;
	u32 bit;

	if (!c)
		return wrong(&q->r, "\"%s\" is not a condition", name);
	bit = 1u << (c - conditions);
	if (q->seen & bit)
		return wrong(&q->r, "%s is given twice", name);
	q->seen |= bit;
	if (c->needs & ~rl_fault_call_has(q->rule->call))
		return wrong(&q->r, "%s has no %s", rl_fault_call_name(q->rule->call), name);
	value = rl_profile_word(&q->r);
	if (!value || !c->read(q->rule, value))
		return wrong(&q->r, "%s: it should be %s", name, c->what);
	return true;
}

/* Up to the arrow. */
static bool read_conditions(struct rule_reader *q)
{
	const char *word;

	while ((word = rl_profile_word(&q->r))) {
		if (!strcmp(word, "->"))
			return true;
		if (!read_condition(q, word))
			return false;
	}
	return wrong(&q->r, "\"-> EFFECT\" is missing");
}

/* ---- effects ---- */

/* How long @effect is. */
static bool read_duration(struct rule_reader *q, const char *effect, u64 *ms)
{
	const char *value = rl_profile_word(&q->r);

	return (value && word_time(value, RL_FAULT_MAX_MS, ms) && *ms) ||
	       wrong(&q->r, "%s: it should be a time such as 200ms, up to %us", effect,
		     RL_FAULT_MAX_MS / 1000);
}

static bool read_delay(struct rule_reader *q)
{
	u64 ms = 0;

	if (q->rule->delay_ms)
		return wrong(&q->r, "delay is given twice");
	if (!read_duration(q, "delay", &ms))
		return false;
	q->rule->delay_ms = (u32)ms;
	return true;
}

static bool read_named_effect(struct rule_reader *q, const char *word)
{
	struct rl_fault_rule *rule = q->rule;
	u64 ms = 0;

	if (rl_fault_effect_needs(rule->effect) & ~rl_fault_call_has(rule->call))
		return wrong(&q->r, "%s cannot be of %s", word, rl_fault_call_name(rule->call));
	if (rule->effect != RL_FAULT_PORT)
		return true;
	if (!read_duration(q, word, &ms))
		return false;
	rule->err = (int)ms;
	return true;
}

/* The error of an event; @word: "event" and its error, or what rdma_cm calls the event. */
static int event_error(struct rule_reader *q, const char *word)
{
	if (q->rule->call == RL_FAULT_CONNECT && !strcmp(word, "rejected"))
		return ECONNREFUSED;
	if (q->rule->call == RL_FAULT_CONNECT && !strcmp(word, "unreachable"))
		return ETIMEDOUT;
	word = strcmp(word, "event") ? NULL : rl_profile_word(&q->r);
	return word ? rl_fault_errno_of(word) : 0;
}

static bool read_failure(struct rule_reader *q, const char *word)
{
	struct rl_fault_rule *rule = q->rule;

	if (rule->effect != RL_FAULT_NOTHING)
		return wrong(&q->r, "\"%s\": the rule has an effect already", word);
	rule->effect = rl_fault_effect_of(word);
	if (rule->effect != RL_FAULT_NOTHING)
		return read_named_effect(q, word);
	rule->effect = RL_FAULT_STATUS;
	rule->err = rl_fault_status_of(word);
	if (rule->err)
		return rl_fault_status_fits(rule->err, rule->call) ||
		       wrong(&q->r, "%s posts no request that can complete with %s",
			     rl_fault_call_name(rule->call), word);
	if (rl_fault_no_status(word))
		return wrong(&q->r, "%s %s", word, rl_fault_no_status(word));
	rule->effect = RL_FAULT_ERRNO;
	rule->err = rl_fault_errno_of(word);
	if (rule->err)
		return rl_fault_call_has(rule->call) & RL_FAULT_HAS_RESULT ||
		       wrong(&q->r, "%s returns no error", rl_fault_call_name(rule->call));
	rule->effect = RL_FAULT_EVENT;
	rule->err = event_error(q, word);
	if (!rule->err)
		return wrong(&q->r, "\"%s\": it should be an error such as ENOMEM, event ERROR, "
			     "or delay TIME%s", word, rule->call == RL_FAULT_CONNECT ?
			     ", rejected, unreachable" : "");
	return rl_fault_call_has(rule->call) & RL_FAULT_HAS_EVENT ||
	       wrong(&q->r, "%s is not answered by an event", rl_fault_call_name(rule->call));
}

static bool read_effects(struct rule_reader *q)
{
	const char *word = rl_profile_word(&q->r);

	if (!word)
		return wrong(&q->r, "the effect is missing after ->");
	for (; word; word = rl_profile_word(&q->r))
		if (!(strcmp(word, "delay") ? read_failure(q, word) : read_delay(q)))
			return false;
	return (q->rule->effect != RL_FAULT_CQ && q->rule->effect != RL_FAULT_LATEST) ||
	       !q->rule->delay_ms ||
	       wrong(&q->r, "%s has no delay", rl_fault_effect_name(q->rule->effect));
}

/* ---- lines ---- */

static bool read_rule(struct rl_faults *f, struct rule_reader *q, const char *call)
{
	if (f->n == RL_FAULT_RULES)
		return wrong(&q->r, "more than %u rules", RL_FAULT_RULES);
	q->rule = &f->rules[f->n];
	q->seen = 0;
	*q->rule = (struct rl_fault_rule){
		.line = q->r.line, .call = rl_fault_call_of(call), .size_max = UINT64_MAX,
		.chance = RL_FAULT_CERTAIN,
	};
	if (!q->rule->call)
		return wrong(&q->r, "\"%s\" is not a call", call);
	if (!read_conditions(q) || !read_effects(q))
		return false;
	f->by_thread |= q->rule->thread[0];
	f->n++;
	return true;
}

static bool read_seed(struct rl_faults *f, struct rule_reader *q)
{
	const char *value = rl_profile_word(&q->r);

	value = value ? take_number(value, &f->seed) : NULL;
	if (!value || *value || rl_profile_word(&q->r))
		return wrong(&q->r, "seed: it should be a number");
	return true;
}

bool rl_faults_parse(struct rl_faults *f, const char *text, size_t len,
		     struct rl_profile_error *e)
{
	struct rule_reader q = { .r = { .e = e } };
	char line[RL_PROFILE_LINE], *word;
	int rv;

	memset(f, 0, sizeof(*f));
	f->seed = 1;
	while ((rv = rl_profile_next_line(&q.r, &text, &len, line)) > 0) {
		word = rl_profile_word(&q.r);
		if (word && !(strcmp(word, "seed") ? read_rule(f, &q, word) : read_seed(f, &q)))
			return false;
	}
	return !rv;
}
