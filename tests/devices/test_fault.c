// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fault files: the rules read, the lines refused and why, and which calls then fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "faults/fault.h"
#include "parse.h"

static struct rl_faults f;
static struct rl_fault last;

static bool read_text(const char *text, size_t len, struct rl_profile_error *e)
{
	return rl_faults_parse(&f, text, len, e);
}

static bool happens_at(enum rl_fault_call call, const char *device, u32 type, u64 size, u64 ms)
{
	const struct rl_fault_subject s = {
		.call = call, .device = device, .type = type, .size = size,
	};

	return rl_faults_decide(&f, &s, ms, &last);
}

static bool reg_mr(u64 size)
{
	return happens_at(RL_FAULT_REG_MR, "weft_lo", 0, size, 0);
}

/* ---- what is read ---- */

static void an_empty_file_has_no_rule(void **state)
{
	assert_true(parse("\n  # nothing\n\t\r\n#"));
	assert_int_equal(f.n, 0);
	assert_false(reg_mr(1));
}

static void conditions_and_effects_are_read(void **state)
{
	const struct rl_fault_rule *r = &f.rules[0];

	assert_true(parse("seed 7\ncreate_cq device mlx5_* size 2-4K after 3s every 5 times 2 "
			  "chance 25% -> delay 200ms ENOMEM # why\nconnect nth 2 -> rejected\n"
			  "connect type ud -> unreachable\nresolve_addr -> event ENETUNREACH\npost_send -> qp_fatal"));
	assert_int_equal(f.seed, 7);
	assert_int_equal(f.n, 5);
	assert_int_equal(r[4].effect, RL_FAULT_QP);
	assert_int_equal(r->line, 2);
	assert_int_equal(r->call, RL_FAULT_CREATE_CQ);
	assert_string_equal(r->device, "mlx5_*");
	assert_int_equal(r->size_min, 2);
	assert_int_equal(r->size_max, 4096);
	assert_int_equal(r->after_ms, 3000);
	assert_int_equal(r->every, 5);
	assert_int_equal(r->times, 2);
	assert_int_equal(r->chance, RL_FAULT_CERTAIN / 4);
	assert_int_equal(r->delay_ms, 200);
	assert_int_equal(r->effect, RL_FAULT_ERRNO);
	assert_int_equal(r->err, ENOMEM);
	assert_int_equal(r[1].effect, RL_FAULT_EVENT);
	assert_int_equal(r[1].err, ECONNREFUSED);
	assert_int_equal(r[2].type, IBV_QPT_UD);
	assert_int_equal(r[2].err, ETIMEDOUT);
	assert_int_equal(r[3].err, ENETUNREACH);
}

static void chances_are_exact(void **state)
{
	static const struct { const char *word; u64 value; } good[] = {
		{ "1", RL_FAULT_CERTAIN }, { "100%", RL_FAULT_CERTAIN }, { "0.5", 1ull << 31 },
		{ "50%", 1ull << 31 }, { "12.5%", 1ull << 29 }, { "0.000001", 4294 },
		{ "1.000000", RL_FAULT_CERTAIN }, { "100.000000%", RL_FAULT_CERTAIN },
	};
	static const char *const bad[] = {
		"0", "0%", "2", "1.1", "101%", "100.1%", "-1", "x", "0.", ".5", "0.0000001", "5%%",
		"18446744073709551615", "99999999999999999999",
	};
	char line[100];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		snprintf(line, sizeof(line), "reg_mr chance %s -> EIO", good[i].word);
		assert_true(parse(line));
		assert_int_equal(f.rules[0].chance, good[i].value);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "reg_mr chance %s -> EIO", bad[i]);
		assert_refused(line, 1, "chance: it should be above 0");
	}
}

static void sizes_are_ranges(void **state)
{
	assert_true(parse("reg_mr size 4K -> EIO"));
	assert_true(reg_mr(4096) && !reg_mr(4095) && !reg_mr(4097));
	assert_true(parse("reg_mr size 1M- -> EIO"));
	assert_true(reg_mr(1 << 20) && reg_mr(UINT64_MAX) && !reg_mr((1 << 20) - 1));
	assert_true(parse("reg_mr size -10 -> EIO"));
	assert_true(reg_mr(0) && reg_mr(10) && !reg_mr(11));
	assert_refused("reg_mr size 5-4 -> EIO", 1, "size: it should be");
	assert_refused("reg_mr size 99999999999G -> EIO", 1, "size: it should be");
	assert_refused("reg_mr size - -> EIO", 1, "size: it should be");
	assert_refused("reg_mr size 1KK -> EIO", 1, "size: it should be");
}

/* ---- what is refused ---- */

static void wrong_lines_are_refused_with_their_reason(void **state)
{
	assert_refused("\nreg_mr -> ENOMEM\npost -> EIO", 3, "\"post\" is not a call");
	assert_refused("reg_mr", 1, "\"-> EFFECT\" is missing");
	assert_refused("reg_mr nth 1", 1, "\"-> EFFECT\" is missing");
	assert_refused("reg_mr ->", 1, "the effect is missing");
	assert_refused("reg_mr often -> EIO", 1, "\"often\" is not a condition");
	assert_refused("reg_mr nth -> EIO", 1, "nth: it should be a number");
	assert_refused("reg_mr nth 0 -> EIO", 1, "nth: it should be a number");
	assert_refused("reg_mr nth 1 nth 2 -> EIO", 1, "nth is given twice");
	assert_refused("listen size 4 -> EIO", 1, "listen has no size");
	assert_refused("create_id device x -> EIO", 1, "create_id has no device");
	assert_refused("reg_mr type rc -> EIO", 1, "reg_mr has no type");
	assert_refused("create_qp type srd -> EIO", 1, "type: it should be rc, uc or ud");
	assert_refused("reg_mr -> EIO ENOMEM", 1, "has an effect already");
	assert_refused("reg_mr -> EFOO", 1, "it should be an error such as ENOMEM");
	assert_refused("reg_mr -> event EIO", 1, "reg_mr is not answered by an event");
	assert_refused("reg_mr -> rejected", 1, "it should be an error");
	assert_refused("modify_qp -> qp_fatal", 1, "qp_fatal cannot be of modify_qp");
	assert_refused("recv_completion -> qp_fatal", 1, "qp_fatal cannot be of recv_completion");
	assert_refused("recv_completion -> EIO", 1, "recv_completion returns no error");
	assert_refused("recv_completion -> peer_dead", 1, "posts no request");
	assert_refused("send_completion -> delay 1s cq_overflow", 1, "cq_overflow has no delay");
	assert_refused("send_completion -> device_fatal", 1, "device_fatal cannot be of");
	assert_refused("recv_completion -> latest delay 1s", 1, "latest has no delay");
	assert_refused("post_send -> latest", 1, "latest cannot be of post_send");
	assert_refused("post_send -> port_down", 1, "port_down: it should be a time");
	assert_refused("post_send -> port_down 0s", 1, "port_down: it should be a time");
	assert_refused("post_send -> port_down 601s", 1, "port_down: it should be a time");
	assert_refused("send_completion -> port_down 1s", 1, "port_down cannot be of");
	assert_refused("connect -> port_down 1s", 1, "port_down cannot be of connect");
	assert_refused("connect -> device_fatal", 1, "device_fatal cannot be of connect");
	assert_refused("post_recv -> srq_err", 1, "srq_err cannot be of post_recv");
	assert_refused("recv_completion thread x -> delay 1s", 1, "recv_completion has no thread");
	assert_refused("create_cq octets 4 -> EIO", 1, "create_cq has no octets");
	assert_refused("reg_mr octets 0 -> EIO", 1, "octets: it should be above 0");
	assert_refused("reg_mr thread abcdefghijklmnop -> EIO", 1, "thread: it should be");
	assert_refused("post_send -> qp_fatal EIO", 1, "has an effect already");
	assert_refused("connect -> event", 1, "it should be an error");
	assert_refused("reg_mr -> delay", 1, "delay: it should be a time");
	assert_refused("reg_mr -> delay 0ms", 1, "delay: it should be a time");
	assert_refused("reg_mr -> delay 601s", 1, "delay: it should be a time");
	assert_refused("reg_mr -> delay 1s delay 1s", 1, "delay is given twice");
	assert_refused("reg_mr after 18446744073709551615s -> EIO", 1, "after: it should be");
	assert_refused("seed", 1, "seed: it should be a number");
	assert_refused("seed 1 2", 1, "seed: it should be a number");
	assert_refused("reg_mr device abcdefghijklmnopqrstuvwxyz012345 -> EIO", 1, "device: it");
}

static void more_rules_than_there_is_room_for_are_refused(void **state)
{
	char text[(RL_FAULT_RULES + 1) * 16] = "";
	u32 i;

	for (i = 0; i < RL_FAULT_RULES; i++)
		strcat(text, "reg_mr -> EIO\n");
	assert_true(parse(text));
	assert_int_equal(f.n, RL_FAULT_RULES);
	strcat(text, "reg_mr -> EIO\n");
	assert_refused(text, RL_FAULT_RULES + 1, "more than 256 rules");
}

/* ---- which calls fail ---- */

static void the_nth_and_each_nth_call_fail(void **state)
{
	u32 i;

	assert_true(parse("reg_mr nth 3 -> ENOMEM"));
	for (i = 1; i <= 10; i++)
		assert_int_equal(reg_mr(1), i == 3);
	assert_true(parse("reg_mr every 4 times 2 -> ENOMEM"));
	for (i = 1; i <= 20; i++)
		assert_int_equal(reg_mr(1), i == 4 || i == 8);
}

/* A rule counts those calls alone that it is about. */
static void a_rule_counts_matching_calls(void **state)
{
	assert_true(parse("reg_mr size 100- nth 2 -> ENOMEM\nreg_mr nth 4 -> EIO"));
	assert_false(reg_mr(1));
	assert_false(reg_mr(100));
	assert_false(happens_at(RL_FAULT_CREATE_QP, "weft_lo", IBV_QPT_RC, 0, 0));
	assert_true(reg_mr(100));
	assert_int_equal(last.err, ENOMEM);
	assert_int_equal(last.number, 3);
	assert_true(reg_mr(100));
	assert_int_equal(last.err, EIO);
	assert_int_equal(last.line, 2);
}

static void the_first_of_two_rules_that_fire_has_its_way(void **state)
{
	assert_true(parse("reg_mr nth 2 -> EIO\nreg_mr every 1 times 3 -> ENOMEM"));
	assert_true(reg_mr(1));
	assert_int_equal(last.err, ENOMEM);
	assert_true(reg_mr(1));
	assert_int_equal(last.err, EIO);
	assert_true(reg_mr(1));
	assert_false(reg_mr(1));
}

static void devices_types_and_times_are_told_apart(void **state)
{
	assert_true(parse("create_qp device mlx5_* type ud after 2s -> EIO"));
	assert_true(happens_at(RL_FAULT_CREATE_QP, "mlx5_11", IBV_QPT_UD, 0, 2000));
	assert_false(happens_at(RL_FAULT_CREATE_QP, "mlx5_11", IBV_QPT_UD, 0, 1999));
	assert_false(happens_at(RL_FAULT_CREATE_QP, "mlx5_11", IBV_QPT_RC, 0, 2000));
	assert_false(happens_at(RL_FAULT_CREATE_QP, "weft_lo", IBV_QPT_UD, 0, 2000));
	assert_false(happens_at(RL_FAULT_CREATE_QP, NULL, IBV_QPT_UD, 0, 2000));
	assert_true(parse("reg_mr device weft_l -> EIO"));
	assert_false(reg_mr(1));
}

static u32 draw(const char *text, bool fell[1000])
{
	u32 i, n = 0;

	assert_true(parse(text));
	for (i = 0; i < 1000; i++)
		n += fell[i] = reg_mr(1);
	return n;
}

static void a_seed_always_draws_the_same(void **state)
{
	static bool one[1000], two[1000];
	u32 n = draw("seed 5\nreg_mr chance 0.1 -> EIO", one);

	/* 100 are to be expected, and the deviation is 9.5. */
	assert_in_range(n, 60, 140);
	assert_int_equal(draw("seed 5\nreg_mr chance 10% -> ENOMEM", two), n);
	assert_memory_equal(one, two, sizeof(one));
	draw("seed 6\nreg_mr chance 0.1 -> EIO", two);
	assert_memory_not_equal(one, two, sizeof(one));
	/* Another rule draws otherwise. */
	draw("seed 5\n\nreg_mr chance 0.1 -> EIO", two);
	assert_memory_not_equal(one, two, sizeof(one));
}

static bool post(u32 opcode, u32 qpn, u32 statuses)
{
	const struct rl_fault_subject s = {
		.call = RL_FAULT_POST_SEND, .device = "weft_lo", .type = IBV_QPT_RC, .qpn = qpn,
		.opcode = opcode, .statuses = statuses,
	};

	return rl_faults_decide(&f, &s, 0, &last);
}

static void opcodes_and_qp_numbers_are_told_apart(void **state)
{
	u32 write = rl_fault_opcode_of("write"), read = rl_fault_opcode_of("read");

	assert_true(write && read && write != read);
	assert_true(parse("post_send opcode write qpn 7 -> EIO"));
	assert_true(post(write, 7, 0));
	assert_false(post(read, 7, 0));
	assert_false(post(write, 8, 0));
	assert_false(post(0, 7, 0));
}

static void only_a_connected_qp_fails(void **state)
{
	struct rl_fault_subject s = { .call = RL_FAULT_POST_RECV, .type = IBV_QPT_RC, .qpn = 7 };

	assert_true(parse("post_recv times 1 -> qp_fatal"));
	assert_false(rl_faults_decide(&f, &s, 0, &last));
	s.connected = true;
	assert_true(rl_faults_decide(&f, &s, 0, &last));
	assert_int_equal(last.effect, RL_FAULT_QP);
	assert_false(rl_faults_decide(&f, &s, 0, &last));
}

static void a_request_completes_only_as_it_can(void **state)
{
	u32 can = 1u << IBV_WC_REM_ACCESS_ERR;

	assert_true(parse("post_send nth 2 times 1 -> rem_access_err\npost_send nth 3 times 1 -> rem_access_err"));
	assert_false(post(1, 7, can));
	assert_false(post(1, 7, 1u << IBV_WC_LOC_PROT_ERR));
	assert_true(post(1, 7, can));
	assert_int_equal(last.effect, RL_FAULT_STATUS);
	assert_int_equal(last.err, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(last.line, 2);
}

static void receives_have_two_statuses(void **state)
{
	struct rl_fault_subject s = { .call = RL_FAULT_POST_RECV, .type = IBV_QPT_RC };

	assert_false(parse("post_recv -> rem_access_err"));
	assert_false(parse("post_srq_recv -> retry_exc_err"));
	assert_false(parse("reg_mr -> loc_len_err"));
	assert_true(parse("post_srq_recv -> loc_len_err\npost_recv -> loc_prot_err"));
	assert_false(rl_faults_decide(&f, &s, 0, &last));
	s.statuses = 1u << IBV_WC_LOC_PROT_ERR;
	assert_true(rl_faults_decide(&f, &s, 0, &last));
	assert_int_equal(last.effect, RL_FAULT_STATUS);
	assert_int_equal(last.err, IBV_WC_LOC_PROT_ERR);
}

static bool happens(struct rl_fault_subject s)
{
	return rl_faults_decide(&f, &s, 0, &last);
}

static void threads_are_told_apart_by_name(void **state)
{
	struct rl_fault_subject s = { .call = RL_FAULT_REG_MR };

	assert_true(parse("create_qp -> EIO"));
	assert_false(f.by_thread);
	assert_true(parse("reg_mr thread io* -> EIO\nreg_mr thread main -> ENOMEM"));
	assert_true(f.by_thread);
	assert_false(happens(s));
	s.thread = "io-7";
	assert_true(happens(s));
	assert_int_equal(last.err, EIO);
	s.thread = "main";
	assert_true(happens(s));
	assert_int_equal(last.err, ENOMEM);
	s.thread = "main2";
	assert_false(happens(s));
}

/* From the call on that makes the sum; those that do not meet the rule are not counted. */
static void octets_add_up(void **state)
{
	assert_true(parse("reg_mr size 100- octets 1K times 2 -> EIO"));
	assert_false(reg_mr(99));
	assert_false(reg_mr(1023));
	assert_true(reg_mr(100));
	assert_true(reg_mr(100));
	assert_false(reg_mr(100));
	assert_true(parse("reg_mr octets 18446744073709551615 -> EIO"));
	assert_false(reg_mr(UINT64_MAX - 1));
	assert_true(reg_mr(5));
	assert_true(reg_mr(UINT64_MAX));
}

static void only_an_armed_limit_is_reached(void **state)
{
	struct rl_fault_subject s = { .call = RL_FAULT_POST_SRQ_RECV };

	assert_true(parse("post_srq_recv times 1 -> srq_limit"));
	assert_false(happens(s));
	s.armed = true;
	assert_true(happens(s));
	assert_int_equal(last.effect, RL_FAULT_SRQ_LIMIT);
	assert_false(happens(s));
}

/* ---- the log ---- */

static void a_log_is_a_file_that_repeats_the_run(void **state)
{
	static bool one[1000];
	static char text[1000 * RL_FAULT_LOG_LINE];
	struct rl_fault_subject s = {
		.call = RL_FAULT_REG_MR, .device = "weft_lo", .size = 4096,
	};
	size_t at = 0;
	u32 i;

	assert_true(parse("reg_mr chance 0.1 -> delay 5ms EAGAIN"));
	for (i = 0; i < 1000; i++) {
		one[i] = rl_faults_decide(&f, &s, 0, &last);
		if (one[i])
			at += rl_fault_describe(&s, &last, text + at);
	}
	text[at] = '\0';
	assert_non_null(strstr(text, " -> delay 5ms EAGAIN # line 1, device weft_lo, size 4096\n"));
	assert_true(parse(text));
	for (i = 0; i < 1000; i++) {
		assert_int_equal(rl_faults_decide(&f, &s, 0, &last), one[i]);
		assert_int_equal(last.err, one[i] ? EAGAIN : 0);
		assert_int_equal(last.delay_ms, one[i] ? 5 : 0);
	}
}

static void each_fault_is_logged_as_a_rule(void **state)
{
	struct rl_fault_subject s = { .device = "abcdefghijklmnopqrstuvwxyz01234", .size = UINT64_MAX };
	struct rl_fault fault = { RL_FAULT_EVENT, EADDRNOTAVAIL, RL_FAULT_MAX_MS, UINT32_MAX,
				  UINT64_MAX };
	char line[RL_FAULT_LOG_LINE];
	u32 call;
	size_t n;

	for (call = RL_FAULT_NO_CALL + 1; call < RL_FAULT_CALLS; call++) {
		s.call = call;
		s.type = rl_fault_call_has(call) & RL_FAULT_HAS_TYPE ? IBV_QPT_UC : 0;
		fault.effect = rl_fault_call_has(call) & RL_FAULT_HAS_EVENT ? RL_FAULT_EVENT :
			       rl_fault_call_has(call) & RL_FAULT_HAS_RESULT ? RL_FAULT_ERRNO :
									    RL_FAULT_NOTHING;
		n = rl_fault_describe(&s, &fault, line);
		assert_in_range(n, 1, sizeof(line) - 1);
		assert_int_equal(line[n - 1], '\n');
		assert_true(rl_faults_parse(&f, line, n, &e));
		assert_int_equal(f.n, 1);
		assert_int_equal(f.rules[0].call, call);
		assert_int_equal(f.rules[0].effect, fault.effect);
		assert_int_equal(f.rules[0].nth, UINT64_MAX);
	}
}

static void each_effect_is_logged_as_a_rule(void **state)
{
	static const struct { enum rl_fault_call call; enum rl_fault_effect effect; int err; } all[] = {
		{ RL_FAULT_POST_RECV, RL_FAULT_QP, 0 },
		{ RL_FAULT_POST_SEND, RL_FAULT_STATUS, RL_FAULT_PEER_DEAD },
		{ RL_FAULT_POST_SEND, RL_FAULT_STATUS, IBV_WC_RNR_RETRY_EXC_ERR },
		{ RL_FAULT_POST_SEND, RL_FAULT_STATUS, IBV_WC_GENERAL_ERR },
		{ RL_FAULT_SEND_COMPLETION, RL_FAULT_CQ, 0 },
		{ RL_FAULT_POST_SRQ_RECV, RL_FAULT_SRQ_LIMIT, 0 },
		{ RL_FAULT_POST_SRQ_RECV, RL_FAULT_SRQ, 0 },
		{ RL_FAULT_ALLOC_PD, RL_FAULT_DEVICE, 0 },
		{ RL_FAULT_POST_SEND, RL_FAULT_PORT, RL_FAULT_MAX_MS },
		{ RL_FAULT_RECV_COMPLETION, RL_FAULT_LATEST, 0 },
	};
	char line[RL_FAULT_LOG_LINE];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		const struct rl_fault_subject s = { .call = all[i].call, .thread = "io" };
		const struct rl_fault fault = { .effect = all[i].effect, .err = all[i].err, .number = 3 };
		size_t n = rl_fault_describe(&s, &fault, line);

		assert_non_null(strstr(line, ", thread io"));
		assert_true(rl_faults_parse(&f, line, n, &e));
		assert_int_equal(f.rules[0].call, all[i].call);
		assert_int_equal(f.rules[0].effect, all[i].effect);
		assert_int_equal(f.rules[0].err, all[i].err);
		assert_int_equal(f.rules[0].nth, 3);
	}
}

/* By the name that verbs have, in small letters. */
static void each_status_of_verbs_has_a_rule_or_a_reason(void **state)
{
	static const char *const names[] = {
		"loc_len_err", "loc_qp_op_err", "loc_eec_op_err", "loc_prot_err", "wr_flush_err",
		"mw_bind_err", "bad_resp_err", "loc_access_err", "rem_inv_req_err",
		"rem_access_err", "rem_op_err", "retry_exc_err", "rnr_retry_exc_err",
		"loc_rdd_viol_err", "rem_inv_rd_req_err", "rem_abort_err", "inv_eecn_err",
		"inv_eec_state_err", "fatal_err", "resp_timeout_err", "general_err", "tm_err",
		"tm_rndv_incomplete",
	};
	char rule[RL_FAULT_LOG_LINE];
	u32 i;

	assert_int_equal(ARRAY_SIZE(names), IBV_WC_TM_RNDV_INCOMPLETE);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const char *why = rl_fault_no_status(names[i]);

		assert_int_equal(rl_fault_status_of(names[i]), why ? 0 : i + 1);
		snprintf(rule, sizeof(rule), "post_send -> %s\n", names[i]);
		assert_int_equal(rl_faults_parse(&f, rule, strlen(rule), &e), !why);
		assert_true(!why || (strstr(e.why, why) && strstr(e.why, names[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_status_of_verbs_has_a_rule_or_a_reason),
		cmocka_unit_test(an_empty_file_has_no_rule),
		cmocka_unit_test(conditions_and_effects_are_read),
		cmocka_unit_test(chances_are_exact),
		cmocka_unit_test(sizes_are_ranges),
		cmocka_unit_test(wrong_lines_are_refused_with_their_reason),
		cmocka_unit_test(more_rules_than_there_is_room_for_are_refused),
		cmocka_unit_test(the_nth_and_each_nth_call_fail),
		cmocka_unit_test(a_rule_counts_matching_calls),
		cmocka_unit_test(the_first_of_two_rules_that_fire_has_its_way),
		cmocka_unit_test(devices_types_and_times_are_told_apart),
		cmocka_unit_test(a_seed_always_draws_the_same),
		cmocka_unit_test(opcodes_and_qp_numbers_are_told_apart),
		cmocka_unit_test(only_a_connected_qp_fails),
		cmocka_unit_test(a_request_completes_only_as_it_can),
		cmocka_unit_test(receives_have_two_statuses),
		cmocka_unit_test(threads_are_told_apart_by_name),
		cmocka_unit_test(octets_add_up),
		cmocka_unit_test(only_an_armed_limit_is_reached),
		cmocka_unit_test(each_effect_is_logged_as_a_rule),
		cmocka_unit_test(a_log_is_a_file_that_repeats_the_run),
		cmocka_unit_test(each_fault_is_logged_as_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
