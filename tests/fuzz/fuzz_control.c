// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any octets as a request of weft-ctl. One that is accepted is within its bounds and has what its
 * command needs; a refusal has a reason.
 */
#include "control/command.h"
#include "fuzz.h"
#include "host/cable_limits.h"

static bool is_of_devices(enum rl_control_verb verb)
{
	return verb == RL_CONTROL_FATAL || verb == RL_CONTROL_PORT || verb == RL_CONTROL_LID ||
	       verb == RL_CONTROL_GID;
}

static bool is_of_both(enum rl_control_verb verb)
{
	return verb == RL_CONTROL_RATE || verb == RL_CONTROL_DELAY || verb == RL_CONTROL_LOSS;
}

static void check_command(const struct rl_control_command *c, const char *request, size_t len)
{
	bool on_device = c->device[0], has_text = c->verb == RL_CONTROL_FAULTS;

	FUZZ_ASSERT((u32)c->verb < RL_CONTROL_VERBS && c->qpn <= 0xffffff);
	FUZZ_ASSERT(memchr(c->device, '\0', sizeof(c->device)));
	FUZZ_ASSERT(!on_device || !c->qpn);
	FUZZ_ASSERT(!!c->text == has_text);
	FUZZ_ASSERT(!has_text || (c->text > request && c->text + c->text_len == request + len));
	FUZZ_ASSERT(is_of_both(c->verb) || on_device == is_of_devices(c->verb));
	FUZZ_ASSERT(c->verb != RL_CONTROL_LID || c->value <= 0xbfff);
	FUZZ_ASSERT(c->verb != RL_CONTROL_PORT || c->value <= 1);
	FUZZ_ASSERT(!c->has_gid || (c->verb == RL_CONTROL_GID && c->value <= 255));
	FUZZ_ASSERT(c->verb != RL_CONTROL_RATE || !c->value ||
		    (c->value >= RL_CABLE_MIN_BPS && c->value <= RL_CABLE_MAX_BPS));
	FUZZ_ASSERT(c->verb != RL_CONTROL_LOSS || c->value <= RL_CABLE_CERTAIN);
	FUZZ_ASSERT(c->verb != RL_CONTROL_DELAY || c->value <= RL_CABLE_MAX_DELAY_US);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *request = malloc(size ? size : 1);
	struct rl_control_command c;
	const char *why;

	if (size)
		memcpy(request, data, size);
	why = rl_control_parse(&c, request, size);
	if (why)
		FUZZ_ASSERT(why[0] && !strchr(why, '\n'));
	else
		check_command(&c, request, size);
	free(request);
	return 0;
}
