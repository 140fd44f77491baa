// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The order in which received octets are stored (core/place.h). */
#include <signal.h>
#include <sys/mman.h>

#include "../../kernel/core/place.h"
#include "../engine/stepper.h"
#include "test.h"

#define LONGEST	100
#define STARTS	18		/* every alignment, and more */
#define ROOM	256
#define PAGE	4096u

static u8 octets[ROOM];

static void fill(void)
{
	u32 i;

	for (i = 0; i < ROOM; i++)
		octets[i] = (u8)(i * 7 + 1) | 1;
}

/*
 * Places @n octets at @to, the first @first of them as a piece of its own if it ends at a multiple
 * of 8, as pages do.
 */
static void place(u8 *to, u32 n, u32 first)
{
	struct weft_seg seg[] = { { octets, n / 3 }, { octets + n / 3, n - n / 3 } };
	struct weft_cur in;

	if ((uintptr_t)(to + first) % WEFT_PLACE_TAIL)
		first = 0;
	weft_cur_init(&in, seg, 2);
	weft_place_begin();
	if (first)
		weft_place_piece(to, &in, first, n - first);
	weft_place_piece(to + first, &in, n - first, 0);
	assert_int_equal(in.left, 0);
}

static void each_length_and_alignment_is_placed(void **state)
{
	u8 want[ROOM], got[ROOM] __attribute__((aligned(16)));
	u32 n, to, first;

	fill();
	for (n = 1; n < LONGEST; n++)
		for (to = 0; to < STARTS; to++)
			for (first = 0; first < n; first++) {
				memset(want, 0, ROOM);
				memcpy(want + to, octets, n);
				memset(got, 0, ROOM);
				place(got + to, n, first);
				assert_memory_equal(got, want, ROOM);
			}
}

static sigjmp_buf out_of_copy;

static void on_fault(int sig)
{
	siglongjmp(out_of_copy, 1);
}

/* The last aligned 8 octets of @n at @to, and those after them. */
static u32 tail_at(const u8 *to, u32 n)
{
	u32 tail = (uintptr_t)(to + n) % 8 + 8;

	return tail < n ? n - tail : 0;
}

/*
 * The octets begin in a page that cannot be written and end in one that can. The copy stops in the
 * first; where a program polls, nothing may be stored by then.
 */
static void what_a_program_polls_is_stored_last(void **state)
{
	u8 *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction a = { .sa_handler = on_fault, .sa_flags = SA_NODEFER }, old[2];
	volatile u32 n, before, first;
	u32 i;

	fill();
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, PAGE, PROT_READ), 0);
	sigaction(SIGSEGV, &a, &old[0]);
	sigaction(SIGBUS, &a, &old[1]);
	for (n = 2; n < LONGEST; n++)
		for (before = 1; before < n; before++)
			for (first = 0; first < n; first++) {
				u8 *to = p + PAGE - before;

				if (!sigsetjmp(out_of_copy, 1)) {
					place(to, n, first);
					fail();
				}
				i = tail_at(to, n);
				for (i = i > before ? i : before; i < n; i++)
					assert_int_equal(to[i], 0);
				memset(p + PAGE, 0, LONGEST);
			}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	munmap(p, 2 * PAGE);
}

#ifdef __x86_64__
static struct {
	uint64_t before;
	uint32_t flag;
} polled __attribute__((aligned(8)));

/* @len: the flag alone, or what ends with it. */
static void check_flag(uint8_t fill, uint32_t len)
{
	uint8_t *to = (uint8_t *)(&polled.flag + 1) - len;

	memset(octets, fill, sizeof(octets));
	stepper_begin(&polled.flag, fill * 0x01010101u);
	place(to, len, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_and_alignment_is_placed),
		cmocka_unit_test(what_a_program_polls_is_stored_last),
#ifdef __x86_64__
		cmocka_unit_test(a_reader_sees_no_part_of_an_aligned_flag),
#endif
	};

	return RUN_TESTS("stacks: place", tests);
}
