// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How weft-run copies a program's memory, and what it may do with it: process/copy.c, process/maps.c. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shared.h"
#include "../../providers/rootless/process/copy.h"
#include "../../providers/rootless/process/maps.h"
#include "../engine/stepper.h"

#define LONGEST	300
#define STARTS	18	/* every alignment, and more */
#define ROOM	1200

void *__wrap_memcpy(void *dst, const void *src, size_t n);
void *__wrap_memmove(void *dst, const void *src, size_t n);

static void fill(uint8_t *p)
{
	int i;

	for (i = 0; i < ROOM; i++)
		p[i] = (uint8_t)rand();
}

static void each_length_and_alignment_is_copied(void **state)
{
	uint8_t from[ROOM], want[ROOM], got[ROOM];
	size_t n, to, at;

	fill(from);
	for (n = 0; n < LONGEST; n++)
		for (to = 0; to < STARTS; to++)
			for (at = 0; at < STARTS; at++) {
				memset(want, 0xaa, sizeof(want));
				memcpy(want + to, from + at, n);
				memset(got, 0xaa, sizeof(got));
				rl_copy_in_order(got + to, from + at, n);
				assert_memory_equal(got, want, ROOM);
				memset(got, 0xaa, sizeof(got));
				__wrap_memcpy(got + to, from + at, n);
				assert_memory_equal(got, want, ROOM);
			}
}

static sigjmp_buf out_of_copy;

static void on_fault(int sig)
{
	siglongjmp(out_of_copy, 1);
}

/*
 * The copy begins in a page that cannot be written, and ends in one that can: there nothing may be
 * stored, since it would be seen before the octets that faulted.
 */
static void nothing_is_stored_before_what_precedes_it(void **state)
{
	const size_t page = 4096;
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction a = { .sa_handler = on_fault, .sa_flags = SA_NODEFER }, old[2];
	volatile size_t before, after;
	uint8_t from[ROOM];
	size_t i;

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(from, 0xff, sizeof(from));
	assert_int_equal(mprotect(p, page, PROT_READ), 0);
	sigaction(SIGSEGV, &a, &old[0]);
	sigaction(SIGBUS, &a, &old[1]);
	for (before = 1; before < LONGEST; before += before < 80 ? 1 : 7)
		for (after = 1; after < LONGEST; after++) {
			if (!sigsetjmp(out_of_copy, 1)) {
				rl_copy_in_order(p + page - before, from, before + after);
				fail();
			}
			for (i = 0; i < after; i++)
				assert_int_equal(p[page + i], 0);
		}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	munmap(p, 2 * page);
}

#ifdef __x86_64__
static struct {
	uint64_t before;
	uint32_t flag;
} polled __attribute__((aligned(8)));

/* @len: the flag alone, or what ends with it. */
static void check_flag(uint8_t fill, uint32_t len)
{
	uint8_t from[12], *to = (uint8_t *)(&polled.flag + 1) - len;

	memset(from, fill, sizeof(from));
	stepper_begin(&polled.flag, fill * 0x01010101u);
	rl_copy_in_order(to, from, len);
	stepper_end();
	assert_int_equal(polled.flag, stepper.new);
	assert_true(stepper.steps > 10);
	assert_int_equal(stepper.torn, 0);
}

static void a_reader_sees_no_part_of_an_aligned_flag(void **state)
{
	check_flag(0xff, sizeof(polled.flag));
	check_flag(0x11, sizeof(polled.flag) + sizeof(polled.before));
}
#endif

static void octets_that_overlap_are_moved(void **state)
{
	uint8_t want[ROOM], got[ROOM];
	size_t n, to, at;

	for (n = 0; n < LONGEST; n++)
		for (to = 0; to < STARTS; to++)
			for (at = 0; at < STARTS; at++) {
				fill(want);
				memcpy(got, want, ROOM);
				memmove(want + 200 + to * 3, want + 200 + at * 3, n);
				__wrap_memmove(got + 200 + to * 3, got + 200 + at * 3, n);
				assert_memory_equal(got, want, ROOM);
			}
}

/* The same before Linux 6.11, which has no query: by the text. */
#define rl_maps_allow allowed_by_text
#include "../../providers/rootless/process/maps.c"
#undef rl_maps_allow

static void check_rights(bool (*allow)(u64 start, u64 len, bool write))
{
	const size_t page = 4096;
	uint8_t *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const u64 at = (uintptr_t)p;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(allow(at, 4 * page, true));
	assert_true(allow(at + 1, 1, true));
	assert_true(allow(at, 0, true));
	assert_int_equal(mprotect(p + page, page, PROT_READ), 0);
	assert_true(allow(at, 4 * page, false));
	assert_false(allow(at, 4 * page, true));
	assert_true(allow(at, page, true));
	assert_false(allow(at, page + 1, true));
	assert_true(allow(at + 2 * page, 2 * page, true));
	assert_int_equal(mprotect(p + 2 * page, page, PROT_NONE), 0);
	assert_true(allow(at, 2 * page, false));
	assert_false(allow(at, 2 * page + 1, false));
	assert_int_equal(munmap(p + 2 * page, page), 0);
	assert_false(allow(at + 2 * page, 1, false));
	assert_true(allow(at + 3 * page, page, true));
	munmap(p, 4 * page);
}

static void rights_are_those_of_each_page(void **state)
{
	check_rights(rl_maps_allow);
}

static void rights_are_the_same_without_the_query(void **state)
{
	no_query = true;
	check_rights(allowed_by_text);
}

/* A search has an end: beyond it memory is taken for what the program says. */
static void a_text_of_many_mappings_is_not_read_to_its_end(void **state)
{
	const size_t page = 4096, n = 2 * LINES_MAX;
	uint8_t *p = mmap(NULL, n * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const u64 at = (uintptr_t)p;
	size_t i;

	assert_ptr_not_equal(p, MAP_FAILED);
	for (i = 0; i < n; i += 2)
		assert_int_equal(mprotect(p + i * page, page, PROT_READ | PROT_WRITE), 0);
	no_query = true;
	assert_true(allowed_by_text(at, page, true));
	assert_false(allowed_by_text(at + page, page, true));
	assert_true(allowed_by_text(at + (n - 1) * page, page, true));
	munmap(p, n * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_and_alignment_is_copied),
		cmocka_unit_test(nothing_is_stored_before_what_precedes_it),
#ifdef __x86_64__
		cmocka_unit_test(a_reader_sees_no_part_of_an_aligned_flag),
#endif
		cmocka_unit_test(octets_that_overlap_are_moved),
		cmocka_unit_test(rights_are_those_of_each_page),
		cmocka_unit_test(rights_are_the_same_without_the_query),
		cmocka_unit_test(a_text_of_many_mappings_is_not_read_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
