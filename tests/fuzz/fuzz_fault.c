// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any text as a fault file of weft-run. What is taken is within its bounds, decides about any call,
 * and the log of what it decides is a fault file that decides the same; what is refused has a
 * reason and a line of the text.
 */
#include "faults/fault.h"
#include "fuzz.h"

static u32 count_lines(const char *text, size_t len)
{
	u32 n = len ? 1 : 0;
	size_t i;

	for (i = 0; i + 1 < len; i++)
		n += text[i] == '\n';
	return n;
}

static void check_error(const struct rl_profile_error *e, const char *text, size_t len)
{
	FUZZ_ASSERT(memchr(e->why, '\0', sizeof(e->why)) && e->why[0]);
	FUZZ_ASSERT(e->line && e->line <= count_lines(text, len));
}

static void check_rule(const struct rl_fault_rule *r)
{
	u32 has = rl_fault_call_has(r->call);

	FUZZ_ASSERT(r->call > RL_FAULT_NO_CALL && r->call < RL_FAULT_CALLS && r->line);
	FUZZ_ASSERT(memchr(r->device, '\0', sizeof(r->device)));
	FUZZ_ASSERT(!r->device[0] || has & RL_FAULT_HAS_DEVICE);
	FUZZ_ASSERT(!r->type || (has & RL_FAULT_HAS_TYPE && rl_fault_type_name(r->type)));
	FUZZ_ASSERT(r->size_min <= r->size_max && r->chance && r->chance <= RL_FAULT_CERTAIN);
	FUZZ_ASSERT(r->delay_ms <= RL_FAULT_MAX_MS);
	FUZZ_ASSERT(r->effect != RL_FAULT_NOTHING || r->delay_ms);
	FUZZ_ASSERT((r->effect != RL_FAULT_ERRNO && r->effect != RL_FAULT_EVENT) ||
		    rl_fault_errno_name(r->err));
	FUZZ_ASSERT(r->effect != RL_FAULT_QP || has & RL_FAULT_HAS_QP);
	FUZZ_ASSERT(r->effect != RL_FAULT_EVENT || has & RL_FAULT_HAS_EVENT);
}

/* A call that the first rule is about. */
static void check_decision(struct rl_faults *f)
{
	const struct rl_fault_rule *r = &f->rules[0];
	struct rl_fault_subject s = { r->call, "weft_lo", r->type, r->size_min };
	static struct rl_faults again;
	struct rl_profile_error e;
	struct rl_fault one, two;
	char line[RL_FAULT_LOG_LINE];
	size_t n;

	if (!rl_faults_decide(f, &s, r->after_ms, &one))
		return;
	n = rl_fault_describe(&s, &one, line);
	FUZZ_ASSERT(n && n < sizeof(line) && line[n - 1] == '\n');
	FUZZ_ASSERT(rl_faults_parse(&again, line, n, &e) && again.n == 1);
	FUZZ_ASSERT(rl_faults_decide(&again, &s, 0, &two));
	FUZZ_ASSERT(one.effect == two.effect && one.err == two.err &&
		    one.delay_ms == two.delay_ms);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = malloc(size ? size : 1);
	struct rl_profile_error e = { 0 };
	static struct rl_faults f;
	u32 i;

	if (size)
		memcpy(text, data, size);
	if (rl_faults_parse(&f, text, size, &e)) {
		FUZZ_ASSERT(f.n <= RL_FAULT_RULES);
		for (i = 0; i < f.n; i++)
			check_rule(&f.rules[i]);
		if (f.n)
			check_decision(&f);
	} else {
		check_error(&e, text, size);
	}
	free(text);
	return 0;
}
