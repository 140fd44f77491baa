// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any octets as a request of weft-ctl. One that is accepted is within its bounds and has what its
 * command needs; a refusal has a reason. Half of the inputs are made of words of the protocol, right
 * and wrong ones, so that each command is reached: how often is printed at the end.
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
	FUZZ_ASSERT(!c->has_gid || (c->verb == RL_CONTROL_GID && c->value <= 255));
	FUZZ_ASSERT(c->verb != RL_CONTROL_PORT || c->value <= 1);
	FUZZ_ASSERT(c->verb != RL_CONTROL_RATE || !c->value ||
		    (c->value >= RL_CABLE_MIN_BPS && c->value <= RL_CABLE_MAX_BPS));
	FUZZ_ASSERT(c->verb != RL_CONTROL_LOSS || c->value <= RL_CABLE_CERTAIN);
	FUZZ_ASSERT(c->verb != RL_CONTROL_DELAY || c->value <= RL_CABLE_MAX_DELAY_US);
}

/* ---- requests made of words ---- */

size_t LLVMFuzzerMutate(u8 *data, size_t size, size_t max);

static const char *const commands[RL_CONTROL_VERBS] = {
	[RL_CONTROL_LIST] = "list", [RL_CONTROL_FATAL] = "fatal", [RL_CONTROL_ERROR] = "error",
	[RL_CONTROL_DISCONNECT] = "disconnect", [RL_CONTROL_FREEZE] = "freeze",
	[RL_CONTROL_THAW] = "thaw", [RL_CONTROL_PORT] = "port", [RL_CONTROL_RATE] = "rate",
	[RL_CONTROL_DELAY] = "delay", [RL_CONTROL_LOSS] = "loss", [RL_CONTROL_LID] = "lid",
	[RL_CONTROL_GID] = "gid", [RL_CONTROL_FAULTS] = "faults\n",
};
static const char *const objects[] = {
	"weft_lo", "7th", "0", "77", "16777215", "16777216", "",
	"a_name_that_is_longer_than_any_device_has_one",
};
static const char *const values[] = {
	"up", "down", "off", "1000", "25G", "1000G", "1001G", "500us", "10s", "0.5%", "100%",
	"100.0001%", "49151", "49152", "3 ::ffff:10.0.0.1", "0 none", "256 none",
	"18446744073709551616", "",
};

static u64 accepted[RL_CONTROL_VERBS];

#define PICK(list, n) ((list)[(n) % ARRAY_SIZE(list)])

static size_t compose(char *text, size_t max, u32 seed)
{
	int n = snprintf(text, max, "weft-control 1 %s", PICK(commands, seed));

	seed /= ARRAY_SIZE(commands);
	if (n > 0 && (size_t)n < max && seed % 8)
		n += snprintf(text + n, max - (size_t)n, " %s", PICK(objects, seed / 8));
	seed /= 8 * ARRAY_SIZE(objects);
	if (n > 0 && (size_t)n < max && seed % 4)
		n += snprintf(text + n, max - (size_t)n, " %s", PICK(values, seed / 4));
	return n > 0 ? min_t(size_t, (size_t)n, max - 1) : 0;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t max, u32 seed)
{
	if (max < 2 || seed % 2)
		return LLVMFuzzerMutate(data, size, max);
	/* One in four is changed once more. */
	size = compose((char *)data, max, seed / 8);
	return seed / 2 % 4 || !size ? size : LLVMFuzzerMutate(data, size, max);
}

static void print_reached(void)
{
	u32 i, n = 0;

	for (i = 0; i < RL_CONTROL_VERBS; i++) {
		n += !!accepted[i];
		fprintf(stderr, "%.*s: accepted %llu times\n", (int)strcspn(commands[i], "\n"),
			commands[i], (unsigned long long)accepted[i]);
	}
	fprintf(stderr, "reached %u of %u\n", n, RL_CONTROL_VERBS);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return atexit(print_reached);
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
		check_command(&c, request, size), accepted[c.verb]++;
	free(request);
	return 0;
}
