// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* SIDR messages of rdma_cm's ids of datagrams: providers/rootless/cm/sidr.c. */
#include <stdlib.h>

#include "shared.h"
#include "../../providers/rootless/cm/sidr.h"

#define HEADER (RL_SIDR_LEN - RL_SIDR_DATA)

static struct rl_sidr_msg question(uint32_t len)
{
	struct rl_sidr_msg a = {
		.kind = RL_SIDR_REQUEST, .ps = 0x111, .number = 0x0123456789abcdef, .len = len,
	};

	memset(a.data, 0x5a, len);
	return a;
}

static struct rl_sidr_msg answer(void)
{
	struct rl_sidr_msg a = question(7);

	a.kind = RL_SIDR_REPLY;
	a.qpn = 0xfffffe;
	a.qkey = 0x80000001;
	return a;
}

static bool reads(const uint8_t *p, uint32_t len)
{
	struct rl_sidr_msg a;
	/* Behind it is nothing that may be read. */
	uint8_t *copy = malloc(len ? len : 1);
	bool yes;

	memcpy(copy, p, len);
	yes = rl_sidr_read(copy, len, &a);
	free(copy);
	return yes;
}

static void assert_comes_as_it_went(const struct rl_sidr_msg *a)
{
	uint8_t p[RL_SIDR_LEN];
	struct rl_sidr_msg got;

	rl_sidr_write(p, a);
	assert_true(rl_sidr_read(p, sizeof(p), &got));
	assert_int_equal(got.kind, a->kind);
	assert_int_equal(got.status, a->status);
	assert_int_equal(got.ps, a->ps);
	assert_true(got.number == a->number);
	assert_int_equal(got.qpn, a->qpn);
	assert_int_equal(got.qkey, a->qkey);
	assert_int_equal(got.len, a->len);
	assert_memory_equal(got.data, a->data, a->len);
}

static void a_hello_is_parsed_as_it_was_made(void **state)
{
	struct rl_sidr_msg a = answer();
	uint32_t len;

	for (len = 0; len < RL_SIDR_DATA; len++) {
		struct rl_sidr_msg q = question(len);

		assert_comes_as_it_went(&q);
	}
	assert_comes_as_it_went(&a);
	a.status = RL_SIDR_REJECTED;
	a.qpn = a.qkey = 0;
	assert_comes_as_it_went(&a);
}

/* Then no answer is longer than its question. */
static void all_have_one_length(void **state)
{
	uint8_t p[RL_SIDR_LEN + 64] = { 0 };
	struct rl_sidr_msg a = answer();
	uint32_t len;

	rl_sidr_write(p, &a);
	for (len = 0; len <= sizeof(p); len++)
		assert_int_equal(reads(p, len), len == RL_SIDR_LEN);
}

static void invalid_hellos_are_not_parsed(void **state)
{
	struct rl_sidr_msg a = question(3);
	uint8_t p[RL_SIDR_LEN];
	uint32_t bit;

	rl_sidr_write(p, &a);
	/* Magic, version and kind; then what a question does not say; then what is zero. */
	for (bit = 0; bit < 8 * RL_SIDR_LEN; bit++) {
		bool free_to_be = (bit >= 8 * 6 && bit < 8 * 16) ||
				  (bit >= 8 * HEADER && bit < 8 * (HEADER + 3));
		/* More of the zeros may be data. */
		bool length = bit / 8 == 25;

		p[bit / 8] ^= 1 << bit % 8;
		if (!length)
			assert_int_equal(reads(p, sizeof(p)), free_to_be);
		p[bit / 8] ^= 1 << bit % 8;
	}
	p[25] = 2;
	assert_false(reads(p, sizeof(p)));
	p[25] = 255;
	assert_true(reads(p, sizeof(p)));
}

static void what_contradicts_itself_is_not_understood(void **state)
{
	uint8_t p[RL_SIDR_LEN];
	struct rl_sidr_msg a;

#define WRONG(change) do {			\
		a = answer();			\
		change;				\
		rl_sidr_write(p, &a);		\
		assert_false(reads(p, sizeof(p))); \
	} while (0)
	WRONG(a.kind = 0);
	WRONG(a.kind = 3);
	WRONG(a.kind = RL_SIDR_REQUEST);
	WRONG(a.qpn = 0);
	WRONG(a.qpn = 0x1000000);
	WRONG(a.status = RL_SIDR_REJECTED);
#undef WRONG
}

static void random_octets_are_read_within_bounds(void **state)
{
	uint8_t p[RL_SIDR_LEN];
	struct rl_sidr_msg a = question(0), got;
	uint32_t i, j;

	srandom(22);
	for (i = 0; i < 20000; i++) {
		rl_sidr_write(p, &a);
		for (j = 5; j < sizeof(p); j++)
			if (random() % 4 == 0)
				p[j] = (uint8_t)random();
		if (rl_sidr_read(p, sizeof(p), &got))
			assert_true(got.len < RL_SIDR_DATA && got.qpn <= 0xffffff);
	}
}

static void patience_grows_and_ends(void **state)
{
	uint32_t last = 0, nth, sum = 0;

	for (nth = 0; sum < 60000; nth++) {
		uint32_t ms = rl_sidr_timeout(nth);

		assert_true(ms >= last && ms >= 100 && ms <= 4000);
		last = ms;
		sum += ms;
	}
	assert_in_range(nth, 10, 25);
	assert_int_equal(rl_sidr_timeout(UINT32_MAX), 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_parsed_as_it_was_made),
		cmocka_unit_test(all_have_one_length),
		cmocka_unit_test(invalid_hellos_are_not_parsed),
		cmocka_unit_test(what_contradicts_itself_is_not_understood),
		cmocka_unit_test(random_octets_are_read_within_bounds),
		cmocka_unit_test(patience_grows_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
