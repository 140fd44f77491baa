// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests of weft-ctl, and where the sockets for them may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/command.h"

static const char *parse(struct rl_control_command *c, const char *rest)
{
	static char request[1024];	/* what is parsed refers to it */

	snprintf(request, sizeof(request), RL_CONTROL_VERSION " %s", rest);
	return rl_control_parse(c, request, strlen(request));
}

static void each_command_is_read(void **state)
{
	static const struct {
		const char *text;
		enum rl_control_verb verb;
		const char *device;
		u32 qpn;
		u64 value;
	} good[] = {
		{ "list 0", RL_CONTROL_LIST, "", 0, 0 },
		{ "list 16777215", RL_CONTROL_LIST, "", 16777215, 0 },
		{ "fatal mlx5_0", RL_CONTROL_FATAL, "mlx5_0", 0, 0 },
		{ "error 7", RL_CONTROL_ERROR, "", 7, 0 },
		{ "disconnect 7", RL_CONTROL_DISCONNECT, "", 7, 0 },
		{ "freeze 7", RL_CONTROL_FREEZE, "", 7, 0 },
		{ "thaw 7", RL_CONTROL_THAW, "", 7, 0 },
		{ "port weft_lo up", RL_CONTROL_PORT, "weft_lo", 0, 1 },
		{ "port weft_lo down", RL_CONTROL_PORT, "weft_lo", 0, 0 },
		{ "rate weft_lo 25G", RL_CONTROL_RATE, "weft_lo", 0, 25000000000 },
		{ "rate 7 1000", RL_CONTROL_RATE, "", 7, 1000 },
		{ "rate 7 1000G", RL_CONTROL_RATE, "", 7, 1000000000000 },
		{ "rate 7 off", RL_CONTROL_RATE, "", 7, 0 },
		{ "delay 7 10s", RL_CONTROL_DELAY, "", 7, 10000000 },
		{ "loss 7 100%", RL_CONTROL_LOSS, "", 7, 1000000 },
		{ "loss weft_lo 0.0001%", RL_CONTROL_LOSS, "weft_lo", 0, 1 },
		{ "loss 7 12.5%", RL_CONTROL_LOSS, "", 7, 125000 },
		{ "loss 7 off", RL_CONTROL_LOSS, "", 7, 0 },
		{ "lid weft_lo 49151", RL_CONTROL_LID, "weft_lo", 0, 49151 },
		{ "rate 7th 25G", RL_CONTROL_RATE, "7th", 0, 25000000000 },
		{ "gid weft_lo", RL_CONTROL_GID, "weft_lo", 0, 0 },
		{ "gid weft_lo 3 ::ffff:10.0.0.1", RL_CONTROL_GID, "weft_lo", 0, 3 },
		{ "gid weft_lo 0 none", RL_CONTROL_GID, "weft_lo", 0, 0 },
		{ "delay weft_lo 1500us", RL_CONTROL_DELAY, "weft_lo", 0, 1500 },
	};
	struct rl_control_command c;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_null(parse(&c, good[i].text));
		assert_int_equal(c.verb, good[i].verb);
		assert_string_equal(c.device, good[i].device);
		assert_int_equal(c.qpn, good[i].qpn);
		assert_true(c.value == good[i].value);
	}
}

static void what_is_no_command_is_refused(void **state)
{
	static const char *const bad[] = {
		"", " ", "list", "list ", "list x", "list 1 2", "list 16777216", "lists 0",
		"list  0",
		"error 4294967297", "error 7x", "error -7", "fatal 7", "fatal ", "port weft_lo",
		"port weft_lo sideways", "port 7 up", "rate 7 1001G", "rate 7 999", "rate 7 0",
		"rate 7 1g", "rate 7 99999999999999999999", "delay 7 11s", "delay 7 5",
		"delay 7 -1ms", "loss 7 1", "loss 7 0%", "loss 7 101%", "loss 7 100.0001%",
		"loss 7 0.00001%", "loss 7 1.%", "loss 7 .5%", "loss 7 99999999999999999999%",
		"freeze weft_lo", "lid weft_lo 49152", "gid weft_lo 1", "gid weft_lo 1 10.0.0.1",
		"gid weft_lo 256 none", "gid weft_lo x none", "gid 7 1 none", "gid weft_lo 1 none x", "list 0\n", "faults",
		"faults x\n",
		"fatal a_name_that_is_longer_than_any_device_has",
	};
	struct rl_control_command c;
	char long_line[RL_CONTROL_LINE + 100];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (!parse(&c, bad[i]))
			fail_msg("\"%s\" is taken", bad[i]);
	memset(long_line, 'x', sizeof(long_line));
	assert_non_null(rl_control_parse(&c, long_line, sizeof(long_line)));
	assert_non_null(rl_control_parse(&c, "weft-control 2 list 0", 21));
	assert_non_null(rl_control_parse(&c, "weft-control 1 list\0000", 21));
	assert_non_null(rl_control_parse(&c, "", 0));
}

static void faults_have_a_text(void **state)
{
	struct rl_control_command c;

	assert_null(parse(&c, "faults\nreg_mr -> ENOMEM\n"));
	assert_int_equal(c.text_len, 17);
	assert_memory_equal(c.text, "reg_mr -> ENOMEM\n", 17);
	assert_null(parse(&c, "faults\n"));
	assert_int_equal(c.text_len, 0);
}

/* A folder that others have made, or may enter, is not used. */
static void only_a_folder_of_this_user_is_used(void **state)
{
	char dir[] = "/tmp/weft-control-XXXXXX", path[64], found[108];

	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(path, sizeof(path), "%s/weft", dir);
	assert_int_equal(rl_control_folder(found, false), -ENOENT);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(rl_control_folder(found, true), -ENOTDIR);
	unlink(path);
	assert_int_equal(rl_control_folder(found, true), 0);
	assert_string_equal(found, path);
	assert_int_equal(chmod(path, 0750), 0);
	assert_int_equal(rl_control_folder(found, true), -EPERM);
	rmdir(path);
	rmdir(dir);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char dir[120] = "/tmp/";
	struct sockaddr_un name;

	memset(dir + 5, 'x', 100);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	assert_int_equal(rl_control_name(&name, 1, true), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_command_is_read),
		cmocka_unit_test(what_is_no_command_is_refused),
		cmocka_unit_test(faults_have_a_text),
		cmocka_unit_test(only_a_folder_of_this_user_is_used),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
