// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CRC32c in user space (providers/rootless/process/crc32c.c): every way to sum and copy that this
 * CPU has, against the plain tables. A way that it lacks is named.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "../../providers/rootless/process/crc32c.h"
#include "rig.h"

/* Octets of the widest register that a way uses. */
#if defined(__x86_64__)
#define WIDEST 64
#else
#define WIDEST 16
#endif

enum {
	LONGEST		= 1100,
	STARTS		= WIDEST,
	MARGIN		= 128,		/* must not be written, on either side */
	ROOM		= MARGIN + STARTS + LONGEST + MARGIN,
	CHANGING	= 65536,
	CHANGED_MIN	= 100,
};

#define SEED 0x89ABCDEFu

/* Those that this CPU has. The last, the tables, is what the others are compared with. */
static const struct crc32c_way *ways[8], *tables;

static int find_ways(void **state)
{
	const struct crc32c_way *w;
	u32 n = 0;

	(void)state;
	for (w = crc32c_ways; w->name; w++) {
		assert_in_range(n, 0, ARRAY_SIZE(ways) - 2);
		if (w->prepare())
			ways[n++] = w;
		else
			print_message("# not tested, since this CPU lacks it: %s\n", w->name);
	}
	tables = ways[n - 1];
	return 0;
}

static void the_fastest_way_of_the_cpu_is_taken(void **state)
{
	u8 copy[9];

	(void)state;
	assert_ptr_equal(crc32c_way(), ways[0]);
	assert_int_equal(~weft_crc32c(~0u, "123456789", 9), 0xE3069283);
	assert_int_equal(~weft_crc32c_copy(~0u, copy, "123456789", 9), 0xE3069283);
	assert_memory_equal(copy, "123456789", 9);
}

static void the_tables_agree_with_the_bitwise_sum(void **state)
{
	static u8 buf[8192], copy[8192];
	u32 i;

	(void)state;
	pattern(buf, sizeof(buf), 1);
	for (i = 0; i < 2000; i++) {
		u32 off = i % 9, len = i < 600 ? i : i * 37 % (sizeof(buf) - 9);
		u32 want = ref_crc32c(buf + off, len);

		assert_int_equal(~tables->sum(~0u, buf + off, len), want);
		assert_int_equal(~tables->copy(~0u, copy + i % 7, buf + off, len), want);
		assert_memory_equal(copy + i % 7, buf + off, len);
	}
}

/* @want[n]: the sum of @n octets at @p. */
static void sum_each_length(u32 *want, const u8 *p)
{
	u32 n;

	for (want[0] = SEED, n = 0; n < LONGEST; n++)
		want[n + 1] = tables->sum(want[n], p + n, 1);
}

/* @to holds 0xA5 before and afterwards. */
static void copy_once(const struct crc32c_way *w, u8 *to, const u8 *from, u32 n, u32 want)
{
	static u8 margin[MARGIN];

	memset(margin, 0xA5, sizeof(margin));
	if (w->copy(SEED, to, from, n) != want || memcmp(to, from, n))
		fail_msg("%s copies %u octets amiss", w->name, n);
	if (memcmp(to - MARGIN, margin, MARGIN) || memcmp(to + n, margin, MARGIN))
		fail_msg("%s writes beyond %u octets", w->name, n);
	memset(to, 0xA5, n);
}

static void each_way_sums_and_copies_each_length_at_each_alignment(void **state)
{
	static u8 from[STARTS + LONGEST] __attribute__((aligned(64)));
	static u8 to[ROOM] __attribute__((aligned(64)));
	const struct crc32c_way *w;
	u32 want[LONGEST + 1], i, s, t, n;

	(void)state;
	pattern(from, sizeof(from), 2);
	memset(to, 0xA5, sizeof(to));
	for (s = 0; s < STARTS; s++) {
		sum_each_length(want, from + s);
		for (i = 0; (w = ways[i]); i++) {
			for (n = 0; n <= LONGEST; n++) {
				if (w->sum(SEED, from + s, n) != want[n])
					fail_msg("%s sums %u octets amiss", w->name, n);
				for (t = 0; w != tables && t < STARTS; t++)
					copy_once(w, to + MARGIN + t, from + s, n, want[n]);
			}
		}
	}
}

static void long_runs_are_summed_and_copied(void **state)
{
	const u32 longest = 70000;
	u8 *from = malloc(longest), *to = malloc(longest);
	const struct crc32c_way *w;
	u32 i, n, want;

	(void)state;
	pattern(from, longest, 3);
	for (n = LONGEST; n <= longest; n += n / 3) {
		want = tables->sum(SEED, from, n);
		for (i = 0; (w = ways[i]); i++) {
			assert_int_equal(w->sum(SEED, from, n), want);
			assert_int_equal(w->copy(SEED, to, from, n), want);
			assert_memory_equal(to, from, n);
		}
	}
	free(from);
	free(to);
}

/* A few pages between two that fault. */
static u8 *between_guards(u32 len)
{
	u8 *p = mmap(NULL, len + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + 4096, len, PROT_READ | PROT_WRITE), 0);
	return p + 4096;
}

static void no_octet_outside_is_read_or_written(void **state)
{
	const u32 len = 4096;
	u8 *from = between_guards(len), *to = between_guards(len);
	const struct crc32c_way *w;
	u32 i, n;

	(void)state;
	pattern(from, len, 4);
	for (i = 0; (w = ways[i]); i++) {
		for (n = 0; n <= LONGEST; n++) {
			const u8 *last = from + len - n;
			u32 first_sum = w->sum(SEED, from, n), last_sum = w->sum(SEED, last, n);

			assert_int_equal(w->copy(SEED, to, from, n), first_sum);
			assert_int_equal(w->copy(SEED, to + len - n, last, n), last_sum);
			assert_int_equal(w->copy(SEED, to, last, n), last_sum);
			assert_int_equal(w->copy(SEED, to + len - n, from, n), first_sum);
		}
	}
	munmap(from - 4096, len + 2 * 4096);
	munmap(to - 4096, len + 2 * 4096);
}

/* As an FPDU is made of the pieces of a gather list. */
static void pieces_are_summed_as_if_they_were_one(void **state)
{
	static u8 from[9000], to[9000];
	const struct crc32c_way *w;
	u32 i, round, at, n, random = 1;

	(void)state;
	pattern(from, sizeof(from), 5);
	for (i = 0; (w = ways[i]); i++) {
		for (round = 0; round < 200; round++) {
			u32 crc = SEED;

			for (at = 0; at < sizeof(from); at += n) {
				random = random * 1103515245 + 12345;
				n = min_t(u32, (random >> 16) % (2 + 20 * round),
					  (u32)sizeof(from) - at);
				crc = w->copy(crc, to + at, from + at, n);
			}
			assert_int_equal(crc, tables->sum(SEED, from, sizeof(from)));
			assert_memory_equal(to, from, sizeof(from));
			memset(to, 0, sizeof(to));
		}
	}
}

/* ---- a program that changes what it has posted ---- */

struct changer {
	u8 octets[CHANGING];
	u32 rounds;			/* atomic */
	bool stop;			/* atomic */
};

static void *change_octets(void *arg)
{
	struct changer *c = arg;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		memset(c->octets, (int)c->rounds, sizeof(c->octets));
		__atomic_store_n(&c->rounds, c->rounds + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Until the octets have changed during a number of copies. */
static bool sums_what_it_writes(const struct crc32c_way *w, struct changer *c)
{
	static u8 to[CHANGING];
	u32 changed, before, crc;

	for (changed = 0; changed < CHANGED_MIN;) {
		before = __atomic_load_n(&c->rounds, __ATOMIC_ACQUIRE);
		crc = w->copy(SEED, to, c->octets, sizeof(to));
		changed += __atomic_load_n(&c->rounds, __ATOMIC_ACQUIRE) != before;
		if (crc != ways[0]->sum(SEED, to, sizeof(to)))
			return false;
	}
	return true;
}

static void the_sum_is_that_of_what_was_written(void **state)
{
	static struct changer c;
	const struct crc32c_way *w;
	pthread_t thread;
	u32 i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, change_octets, &c), 0);
	for (i = 0; (w = ways[i]) && sums_what_it_writes(w, &c); i++)
		;
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (w)
		fail_msg("%s sums other octets than it writes", w->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_way_of_the_cpu_is_taken),
		cmocka_unit_test(the_tables_agree_with_the_bitwise_sum),
		cmocka_unit_test(each_way_sums_and_copies_each_length_at_each_alignment),
		cmocka_unit_test(long_runs_are_summed_and_copied),
		cmocka_unit_test(no_octet_outside_is_read_or_written),
		cmocka_unit_test(pieces_are_summed_as_if_they_were_one),
		cmocka_unit_test(the_sum_is_that_of_what_was_written),
	};

	return cmocka_run_group_tests_name("crc", tests, find_ways, NULL);
}
