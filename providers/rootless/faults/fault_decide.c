// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>

#include "fault.h"

/* ---- when ---- */

static bool name_matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (!len)
		return true;
	if (!name)
		return false;
	return pattern[len - 1] == '*' ? !strncmp(pattern, name, len - 1) : !strcmp(pattern, name);
}

/* Counts this one's octets. */
static bool has_moved_enough(struct rl_fault_rule *r, u64 octets)
{
	r->moved += min_t(u64, octets, UINT64_MAX - r->moved);
	return r->moved >= r->octets;
}

static bool rule_matches(struct rl_fault_rule *r, const struct rl_fault_subject *s,
			 u64 now_ms)
{
	return r->call == s->call && name_matches(r->device, s->device) &&
	       name_matches(r->thread, s->thread) &&
	       (!r->type || r->type == s->type) && (!r->qpn || r->qpn == s->qpn) &&
	       (!r->opcode || r->opcode == s->opcode) && s->size >= r->size_min &&
	       s->size <= r->size_max && now_ms >= r->after_ms &&
	       (!r->octets || has_moved_enough(r, s->size));
}

/*
 * Not every request can complete with every status, only a connected QP can fail, and a limit that
 * is not armed cannot be reached.
 */
static bool can_happen(const struct rl_fault_rule *r, const struct rl_fault_subject *s)
{
	switch (r->effect) {
	case RL_FAULT_STATUS:
		return s->statuses & 1u << r->err;
	case RL_FAULT_QP:
		return s->connected;
	case RL_FAULT_SRQ_LIMIT:
		return s->armed;
	default:
		return true;
	}
}

/*
 * 32 bits from the seed, the rule and the call's number alone: other rules and threads do not
 * change them. (SplitMix64's last steps.)
 */
static u64 luck(u64 seed, u32 line, u64 n)
{
	u64 x = seed + line * 0x9e3779b97f4a7c15ull + n * 0xd1b54a32d192ed03ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) >> 32;
}

/* The call matches: does the rule mean this one? */
static bool rule_fires(struct rl_fault_rule *r, const struct rl_fault_subject *s, u64 seed)
{
	u64 n = ++r->matched;

	if ((r->nth && n != r->nth) || (r->every && n % r->every) ||
	    (r->times && r->fired == r->times) || luck(seed, r->line, n) >= r->chance ||
	    !can_happen(r, s))
		return false;
	r->fired++;
	return true;
}

bool rl_faults_decide(struct rl_faults *f, const struct rl_fault_subject *s, u64 now_ms,
		      struct rl_fault *fault)
{
	struct rl_fault_rule *r, *first = NULL;

	memset(fault, 0, sizeof(*fault));
	fault->number = ++f->calls[s->call];
	/* Each rule counts, whatever those before it have done. */
	for (r = f->rules; r < f->rules + f->n; r++)
		if (rule_matches(r, s, now_ms) && rule_fires(r, s, f->seed) && !first)
			first = r;
	if (!first)
		return false;
	fault->effect = first->effect;
	fault->err = first->err;
	fault->delay_ms = first->delay_ms;
	fault->line = first->line;
	return true;
}

/* ---- the log ---- */

struct writer {
	char *line;
	size_t at;
};

static __attribute__((format(printf, 2, 3)))
void fault_append(struct writer *w, const char *fmt, ...)
{
	size_t room = RL_FAULT_LOG_LINE - w->at;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(w->line + w->at, room, fmt, args);
	va_end(args);
	if (len > 0)
		w->at += min_t(size_t, (size_t)len, room - 1);
}

static void describe_effect(struct writer *w, const struct rl_fault *fault)
{
	switch (fault->effect) {
	case RL_FAULT_NOTHING:
		break;
	case RL_FAULT_ERRNO:
		fault_append(w, " %s", rl_fault_errno_name(fault->err));
		break;
	case RL_FAULT_EVENT:
		fault_append(w, " event %s", rl_fault_errno_name(fault->err));
		break;
	case RL_FAULT_STATUS:
		fault_append(w, " %s", rl_fault_status_name(fault->err));
		break;
	case RL_FAULT_PORT:
		fault_append(w, " %s %dms", rl_fault_effect_name(fault->effect), fault->err);
		break;
	default:
		fault_append(w, " %s", rl_fault_effect_name(fault->effect));
	}
}

size_t rl_fault_describe(const struct rl_fault_subject *s, const struct rl_fault *fault,
			 char line[RL_FAULT_LOG_LINE])
{
	struct writer w = { .line = line };
	u32 has = rl_fault_call_has(s->call);
	const char *type = rl_fault_type_name(s->type), *opcode = rl_fault_opcode_name(s->opcode);

	fault_append(&w, "%s nth %llu ->", rl_fault_call_name(s->call),
		     (unsigned long long)fault->number);
	if (fault->delay_ms)
		fault_append(&w, " delay %ums", fault->delay_ms);
	describe_effect(&w, fault);
	fault_append(&w, " # line %u", fault->line);
	if (has & RL_FAULT_HAS_DEVICE && s->device)
		fault_append(&w, ", device %s", s->device);
	if (has & RL_FAULT_HAS_TYPE && type)
		fault_append(&w, ", type %s", type);
	if (has & RL_FAULT_HAS_QP && s->qpn)
		fault_append(&w, ", qpn %u", s->qpn);
	if (has & RL_FAULT_HAS_REQUEST && opcode)
		fault_append(&w, ", opcode %s", opcode);
	if (has & RL_FAULT_HAS_SIZE)
		fault_append(&w, ", size %llu", (unsigned long long)s->size);
	if (s->thread)
		fault_append(&w, ", thread %s", s->thread);
	fault_append(&w, "\n");
	/* If it did not fit. */
	line[w.at - 1] = '\n';
	return w.at;
}
