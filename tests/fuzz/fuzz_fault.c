// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any text as a fault file of weft-run. Rules that are accepted are within their bounds, and the log
 * of a decision is a fault file that decides the same. A refusal has a reason and a line.
 */
#include "faults/fault.h"
#include "text.h"

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
	FUZZ_ASSERT(!(rl_fault_effect_needs(r->effect) & ~has));
	FUZZ_ASSERT(r->effect != RL_FAULT_ERRNO || has & RL_FAULT_HAS_RESULT);
	FUZZ_ASSERT((r->effect != RL_FAULT_CQ && r->effect != RL_FAULT_LATEST) || !r->delay_ms);
	FUZZ_ASSERT(r->effect != RL_FAULT_PORT || (r->err > 0 && r->err <= RL_FAULT_MAX_MS));
	FUZZ_ASSERT(memchr(r->thread, '\0', sizeof(r->thread)));
	FUZZ_ASSERT(!r->thread[0] || has & RL_FAULT_HAS_RESULT);
	FUZZ_ASSERT(!r->octets || has & RL_FAULT_HAS_OCTETS);
	FUZZ_ASSERT(r->effect != RL_FAULT_STATUS ||
		    (has & RL_FAULT_HAS_REQUEST && rl_fault_status_name(r->err)));
	FUZZ_ASSERT(!r->opcode || (has & RL_FAULT_HAS_REQUEST && rl_fault_opcode_name(r->opcode)));
	FUZZ_ASSERT(!r->qpn || (has & RL_FAULT_HAS_QP && r->qpn < 1u << 24));
	FUZZ_ASSERT(r->effect != RL_FAULT_EVENT || has & RL_FAULT_HAS_EVENT);
}

/* A call that the first rule is about. */
static void check_decision(struct rl_faults *f)
{
	const struct rl_fault_rule *r = &f->rules[0];
	struct rl_fault_subject s = {
		.call = r->call, .device = "weft_lo", .type = r->type,
		.size = max_t(u64, r->size_min, min_t(u64, r->octets, r->size_max)),
		.qpn = r->qpn, .opcode = r->opcode, .statuses = ~0u, .connected = true,
		.armed = true, .thread = r->thread,
	};
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
		FUZZ_ASSERT(e.line);
		check_error(&e, text, size);
	}
	free(text);
	return 0;
}
