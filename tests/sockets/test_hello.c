// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The frames that the ends of a stream exchange (providers/sockets/stream/hello.c), and the queue
 * of octets (octets.c).
 */
#include "ends.h"
#include "../../providers/sockets/stream/octets.h"
#include "../../providers/sockets/stream/hello.h"

static void terms_are_read_as_written(void **state)
{
	struct rl_stream_terms t = { .window = 0x123456 }, got;
	u8 p[RL_STREAM_TERMS_LEN];

	rl_stream_write_terms(p, &t);
	assert_memory_equal(p, "wefS\1\0\0\0\0\x12\x34\x56", sizeof(p));
	assert_true(rl_stream_read_terms(p, sizeof(p), &got));
	assert_int_equal(got.window, t.window);
}

/* Every octet is checked: another magic, version or flag is another protocol. */
static void other_terms_are_refused(void **state)
{
	struct rl_stream_terms t = { .window = RL_STREAM_WINDOW_MIN }, got;
	u8 p[RL_STREAM_TERMS_LEN + 1] = {};
	u32 i;

	rl_stream_write_terms(p, &t);
	for (i = 0; i < 8; i++) {
		p[i] ^= 0x20;
		assert_false(rl_stream_read_terms(p, RL_STREAM_TERMS_LEN, &got));
		p[i] ^= 0x20;
	}
	assert_false(rl_stream_read_terms(p, RL_STREAM_TERMS_LEN - 1, &got));
	assert_false(rl_stream_read_terms(p, RL_STREAM_TERMS_LEN + 1, &got));
	t.window = RL_STREAM_WINDOW_MIN - 1;
	rl_stream_write_terms(p, &t);
	assert_false(rl_stream_read_terms(p, RL_STREAM_TERMS_LEN, &got));
	t.window = RL_STREAM_WINDOW_MAX + 1;
	rl_stream_write_terms(p, &t);
	assert_false(rl_stream_read_terms(p, RL_STREAM_TERMS_LEN, &got));
}

static void heads_are_read_as_written(void **state)
{
	struct rl_stream_head h = { .limit = 0xfedcba98, .fin = true }, got;
	u8 p[RL_STREAM_HEAD_LEN];
	u32 i;

	rl_stream_write_head(p, &h);
	assert_memory_equal(p, "\xfe\xdc\xba\x98\1\0\0\0", sizeof(p));
	assert_true(rl_stream_read_head(p, &got));
	assert_int_equal(got.limit, h.limit);
	assert_true(got.fin);
	for (i = 4; i < sizeof(p); i++) {
		p[i] ^= 0x80;
		assert_false(rl_stream_read_head(p, &got));
		p[i] ^= 0x80;
	}
}

/* Also where the numbers wrap around. */
static void credit_grows_and_never_beyond_the_window(void **state)
{
	struct rl_stream_credit c = { .window = 1000, .sent = 0xffffff00, .limit = 0xffffff80 };

	assert_int_equal(rl_stream_credit(&c), 0x80);
	assert_false(rl_stream_take_limit(&c, 0xffffff7f));
	assert_true(rl_stream_take_limit(&c, 0xffffff80));
	assert_true(rl_stream_take_limit(&c, 0x100));
	assert_int_equal(rl_stream_credit(&c), 0x200);
	assert_false(rl_stream_take_limit(&c, 0xffffff00 + 1001));
	assert_true(rl_stream_take_limit(&c, 0xffffff00 + 1000));
	assert_false(rl_stream_take_limit(&c, 0x100));
	assert_int_equal(rl_stream_credit(&c), 1000);
}

static void put(struct rl_octets *o, u64 pos, u32 len)
{
	struct iovec iov[2];
	int n = rl_octets_places(o, len, iov);

	fill(iov[0].iov_base, iov[0].iov_len, 1, pos);
	if (n > 1)
		fill(iov[1].iov_base, iov[1].iov_len, 1, pos + iov[0].iov_len);
	rl_octets_add(o, len);
}

static void the_queue_keeps_order_around_its_end(void **state)
{
	u64 in = 0, out = 0;
	struct rl_octets o;
	u32 r = 1;

	assert_true(rl_octets_init(&o, 4096));
	while (out < 100000) {
		u8 a[700], b[900];
		struct iovec iov[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
		u32 n;
		ssize_t got;

		r = r * 1103515245 + 12345;
		n = (r >> 8) % (rl_octets_room(&o) + 1);
		put(&o, in, n);
		in += n;
		got = rl_octets_copy(&o, iov, 2, (r >> 4) % 1600 + 1);
		assert_true(got >= 0);
		expect(a, got < 700 ? got : 700, 1, out);
		if (got > 700)
			expect(b, got - 700, 1, out + 700);
		rl_octets_drop(&o, got);
		out += got;
		assert_int_equal(o.len, in - out);
	}
	rl_octets_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_are_read_as_written),
		cmocka_unit_test(other_terms_are_refused),
		cmocka_unit_test(heads_are_read_as_written),
		cmocka_unit_test(credit_grows_and_never_beyond_the_window),
		cmocka_unit_test(the_queue_keeps_order_around_its_end),
	};

	return cmocka_run_group_tests_name("sockets: words", tests, NULL, NULL);
}
