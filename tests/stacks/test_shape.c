// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sizes granted for queues, and that the rings hold that many. */
#include "test.h"

#define LOTS 0xFFFFFFFFu

static bool is_pow2(u32 n)
{
	return n && !(n & (n - 1));
}

/* ---- send queues ---- */

static void send_queues_are_rounded_up_to_their_rings(void **state)
{
	static const struct {
		struct weft_sq_caps asked, granted;
		struct weft_sq_shape s;
	} t[] = {
		{ { 0, 0, 0, false },		{ 1, 2, 16, false },		{ 1, 1 } },
		{ { 0, 3, 0, false },		{ 1, 6, 80, false },		{ 2, 2 } },
		{ { 1, 2, 16, false },		{ 1, 2, 16, false },		{ 1, 1 } },
		{ { 1, 0, 17, false },		{ 1, 6, 80, false },		{ 2, 2 } },
		{ { 10, 3, 0, false },		{ 16, 6, 80, false },		{ 32, 2 } },
		{ { 5, 32, 0, false },		{ 7, 32, 512, false },		{ 64, 9 } },
		{ { 5, 0, 512, false },	{ 7, 32, 512, false },		{ 64, 9 } },
		{ { 12000, 3, 0, false },	{ 16384, 6, 80, false },	{ 32768, 2 } },
		{ { 9000, 32, 0, false },	{ 14563, 32, 512, false },	{ 131072, 9 } },
		{ { 16384, 32, 512, false },	{ 16384, 32, 512, false },	{ 262144, 9 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct weft_sq_caps caps = t[i].asked;
		struct weft_sq_shape s;

		assert_int_equal(weft_shape_sq(&caps, &s), 0);
		assert_memory_equal(&caps, &t[i].granted, sizeof(caps));
		assert_memory_equal(&s, &t[i].s, sizeof(s));
	}
}

/* For every SGE and inline limit. */
static void what_a_send_queue_is_granted_fits_and_is_granted_again(void **state)
{
	static const u32 wrs[] = { 0, 1, 2, 3, 7, 100, 4096, 16383, 16384 };
	struct weft_sq_caps asked, got, again;
	struct weft_sq_shape s, s2;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		asked.wr = wrs[i];
		for (asked.sge = 0; asked.sge <= 32; asked.sge++) {
			for (asked.inline_data = 0; asked.inline_data <= 512; asked.inline_data++) {
				got = asked;
				assert_int_equal(weft_shape_sq(&got, &s), 0);
				assert_true(got.wr && got.wr >= asked.wr && got.sge >= asked.sge &&
					    got.inline_data >= asked.inline_data);
				assert_true(is_pow2(s.slots) && got.wr * s.wqe_slots <= s.slots);
				assert_int_equal(weft_sq_wqe_slots(got.sge, got.inline_data),
						 s.wqe_slots);
				again = got;
				assert_int_equal(weft_shape_sq(&again, &s2), 0);
				assert_memory_equal(&again, &got, sizeof(got));
				assert_memory_equal(&s2, &s, sizeof(s));
			}
		}
	}
}

static void a_send_queue_beyond_a_limit_is_refused(void **state)
{
	static const struct weft_sq_caps t[] = {
		{ 16385, 1, 0, false }, { LOTS, 1, 0, false },
		{ 1, 33, 0, false }, { 1, LOTS, 0, false },
		{ 1, 1, 513, false }, { 1, 1, LOTS, false },
	};
	const struct weft_sq_shape none = { 77, 78 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct weft_sq_caps caps = t[i];
		struct weft_sq_shape s = none;

		assert_int_equal(weft_shape_sq(&caps, &s), -EINVAL);
		assert_memory_equal(&caps, &t[i], sizeof(caps));
		assert_memory_equal(&s, &none, sizeof(s));
	}
}

/* ---- receives ---- */

static void receive_queues_are_rounded_up_to_their_rings(void **state)
{
	static const struct {
		struct weft_rq_caps asked, granted;
		struct weft_rq_shape s;
	} t[] = {
		{ { 1, 0 },	{ 1, 3 },	{ 1, 1 } },
		{ { 1, 3 },	{ 1, 3 },	{ 1, 1 } },
		{ { 5, 4 },	{ 8, 7 },	{ 16, 2 } },
		{ { 3, 8 },	{ 4, 15 },	{ 16, 4 } },
		{ { 1, 32 },	{ 1, 32 },	{ 16, 16 } },
		{ { 9000, 1 },	{ 16384, 3 },	{ 16384, 1 } },
		{ { 16384, 32 }, { 16384, 32 },	{ 262144, 16 } },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct weft_rq_caps caps = t[i].asked, shared = t[i].asked;
		struct weft_rq_shape s, srq;

		assert_int_equal(weft_shape_rq(&caps, &s), 0);
		assert_memory_equal(&caps, &t[i].granted, sizeof(caps));
		assert_memory_equal(&s, &t[i].s, sizeof(s));
		assert_int_equal(weft_shape_srq(&shared, &srq), 0);
		assert_memory_equal(&shared, &caps, sizeof(caps));
		assert_memory_equal(&srq, &s, sizeof(s));
	}
}

static void what_a_receive_queue_is_granted_is_granted_again(void **state)
{
	static const u32 wrs[] = { 1, 2, 3, 7, 100, 4096, 16383, 16384 };
	struct weft_rq_caps got, again;
	struct weft_rq_shape s, s2;
	u32 i, sge;

	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		for (sge = 0; sge <= 32; sge++) {
			got = (struct weft_rq_caps){ wrs[i], sge };
			assert_int_equal(weft_shape_rq(&got, &s), 0);
			assert_true(got.wr >= wrs[i] && got.sge >= sge);
			assert_true(is_pow2(s.slots) && got.wr * s.stride == s.slots);
			assert_int_equal(weft_rq_stride(got.sge), s.stride);
			again = got;
			assert_int_equal(weft_shape_rq(&again, &s2), 0);
			assert_memory_equal(&again, &got, sizeof(got));
			assert_memory_equal(&s2, &s, sizeof(s));
		}
	}
}

static void a_qp_may_have_no_receives_but_an_srq_must(void **state)
{
	struct weft_rq_caps caps = { 0, 5 };
	struct weft_rq_shape s = { 77, 78 };

	assert_int_equal(weft_shape_srq(&caps, &s), -EINVAL);
	assert_int_equal(s.slots, 77);
	assert_int_equal(weft_shape_rq(&caps, &s), 0);
	assert_int_equal(s.slots, 0);
	assert_int_equal(caps.wr, 0);
	assert_int_equal(caps.sge, 5);
}

static void receives_beyond_a_limit_are_refused(void **state)
{
	static const struct weft_rq_caps t[] = {
		{ 16385, 1 }, { LOTS, 1 }, { 1, 33 }, { 1, LOTS },
	};
	const struct weft_rq_shape none = { 77, 78 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct weft_rq_caps caps = t[i];
		struct weft_rq_shape s = none;

		assert_int_equal(weft_shape_rq(&caps, &s), -EINVAL);
		assert_int_equal(weft_shape_srq(&caps, &s), -EINVAL);
		assert_memory_equal(&caps, &t[i], sizeof(caps));
		assert_memory_equal(&s, &none, sizeof(s));
	}
}

static void an_srqs_new_size_keeps_its_stride(void **state)
{
	struct weft_rq_shape s = { 8, 4 };

	assert_int_equal(weft_shape_srq_anew(5, &s), 0);
	assert_int_equal(s.slots, 32);
	assert_int_equal(s.stride, 4);
	assert_int_equal(weft_shape_srq_anew(16384, &s), 0);
	assert_int_equal(s.slots, 65536);
	assert_int_equal(weft_shape_srq_anew(0, &s), -EINVAL);
	assert_int_equal(weft_shape_srq_anew(16385, &s), -EINVAL);
	assert_int_equal(s.slots, 65536);
}

/* ---- completion queues ---- */

static void completion_queues_are_rounded_up_to_a_power_of_two(void **state)
{
	static const u32 t[][2] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 4, 4 }, { 1000, 1024 }, { 131073, 262144 },
		{ 262144, 262144 },
	};
	u32 i, entries;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(weft_shape_cq(t[i][0], &entries), 0);
		assert_int_equal(entries, t[i][1]);
	}
}

static void a_completion_queue_of_no_or_too_many_entries_is_refused(void **state)
{
	u32 entries = 77;

	assert_int_equal(weft_shape_cq(0, &entries), -EINVAL);
	assert_int_equal(weft_shape_cq(262145, &entries), -EINVAL);
	assert_int_equal(weft_shape_cq(LOTS, &entries), -EINVAL);
	assert_int_equal(entries, 77);
}

/* ---- a queue pair of that shape ---- */

/* The ring holds all entries that were granted, of the longest kind, and they are sent. */
static void a_qp_sends_and_receives_all_that_it_was_granted(void **state)
{
	struct weft_sq_caps sq = { 5, 20, 0, false };
	struct weft_rq_caps rq = { 5, 20 };
	struct weft_sq_shape ss;
	struct weft_rq_shape rs;
	struct host_mr *from, *to;
	struct weft_sge sge[WEFT_MAX_SGE];
	struct host_wr wr = { .opcode = WEFT_WR_SEND, .flags = SIG };
	struct pair_cfg c;
	struct pair p;
	u32 i;

	assert_int_equal(weft_shape_sq(&sq, &ss), 0);
	assert_int_equal(weft_shape_rq(&rq, &rs), 0);
	pair_cfg_init(&c);
	c.s[0].qp.sq_slots = ss.slots;
	c.s[0].qp.max_slots = ss.wqe_slots;
	c.s[1].qp.rq_slots = rs.slots;
	c.s[1].qp.rq_sge = rq.sge;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, WEFT_MAX_SGE, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, WEFT_MAX_SGE, RW);
	wr.num_sge = sq.sge;
	for (i = 0; i < sq.sge; i++) {
		from->mem[i] = (u8)(i + 1);
		wr.sge[i] = host_sge(from, i, 1);
	}
	for (i = 0; i < rq.sge; i++)
		sge[i] = host_sge(to, i, 1);
	for (i = 0; i < rq.wr; i++)
		assert_true(host_post_recv(p.s[1].qp, i, sge, rq.sge));
	assert_false(host_post_recv(p.s[1].qp, i, sge, rq.sge));
	for (i = 0; i < sq.wr; i++)
		assert_true(host_post_send(p.s[0].qp, &wr));
	assert_false(host_post_send(p.s[0].qp, &wr));
	pair_run(&p);
	for (i = 0; i < sq.wr; i++) {
		expect_cqe(p.s[0].scq, 0, WEFT_WC_SUCCESS);
		expect_cqe(p.s[1].rcq, i, WEFT_WC_SUCCESS);
	}
	assert_memory_equal(to->mem, from->mem, sq.sge);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_queues_are_rounded_up_to_their_rings),
		cmocka_unit_test(what_a_send_queue_is_granted_fits_and_is_granted_again),
		cmocka_unit_test(a_send_queue_beyond_a_limit_is_refused),
		cmocka_unit_test(receive_queues_are_rounded_up_to_their_rings),
		cmocka_unit_test(what_a_receive_queue_is_granted_is_granted_again),
		cmocka_unit_test(a_qp_may_have_no_receives_but_an_srq_must),
		cmocka_unit_test(receives_beyond_a_limit_are_refused),
		cmocka_unit_test(an_srqs_new_size_keeps_its_stride),
		cmocka_unit_test(completion_queues_are_rounded_up_to_a_power_of_two),
		cmocka_unit_test(a_completion_queue_of_no_or_too_many_entries_is_refused),
		cmocka_unit_test(a_qp_sends_and_receives_all_that_it_was_granted),
	};

	return RUN_TESTS("stacks: shape", tests);
}
