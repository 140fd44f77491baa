// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared.h"

/* Where indices wrap, and where they do not. */
static const uint32_t starts[] = { 0, 1, 7, 0x7fffffff, 0xfffffff0, 0xffffffff };
#define N_STARTS (sizeof(starts) / sizeof(starts[0]))

static void room_counts_down_and_comes_back(void **state)
{
	uint32_t i, n;

	for (i = 0; i < N_STARTS; i++) {
		struct shared s;

		ring_make(&s, 8, starts[i]);
		for (n = 0; n <= 8; n++) {
			assert_int_equal(weft_uring_room(&s.user), 8 - n);
			s.user.idx++;
		}
		/* One beyond the ring: no room, not a huge number. */
		assert_int_equal(weft_uring_room(&s.user), 0);
		s.user.idx--;
		weft_ringq_free(&s.kern, 3);
		assert_int_equal(weft_uring_room(&s.user), 3);
		ring_free(&s);
	}
}

static void filled_follows_the_kernel(void **state)
{
	uint32_t i;

	for (i = 0; i < N_STARTS; i++) {
		struct shared s;

		ring_make(&s, 4, starts[i]);
		assert_int_equal(weft_uring_filled(&s.user), 0);
		s.user.ring->kern_idx += 4;
		assert_int_equal(weft_uring_filled(&s.user), 4);
		/* An index from nowhere yields nothing rather than slots never written. */
		s.user.ring->kern_idx += 1;
		assert_int_equal(weft_uring_filled(&s.user), 0);
		s.user.ring->kern_idx -= 100;
		assert_int_equal(weft_uring_filled(&s.user), 0);
		ring_free(&s);
	}
}

static void publish_tells_when_to_kick(void **state)
{
	struct shared s;

	ring_make(&s, 8, 5);
	s.user.idx += 2;
	assert_false(weft_uring_publish(&s.user));
	assert_int_equal(weft_ringq_filled(&s.kern, s.kern.idx), 2);
	weft_ringq_sleep(&s.kern);
	assert_true(weft_uring_publish(&s.user));
	/* Until the kernel has woken, whoever posts kicks. */
	assert_true(weft_uring_publish(&s.user));
	weft_ringq_wake(&s.kern);
	assert_false(weft_uring_publish(&s.user));
	ring_free(&s);
}

static void overflow_is_not_mistaken_for_kick(void **state)
{
	struct shared s;

	ring_make(&s, 8, 0);
	assert_false(weft_uring_overflown(&s.user));
	s.user.ring->flags = WEFT_RING_KICK;
	assert_false(weft_uring_overflown(&s.user));
	s.user.ring->flags = WEFT_RING_OVERFLOW;
	assert_true(weft_uring_overflown(&s.user));
	assert_false(weft_uring_publish(&s.user));
	ring_free(&s);
}

static void a_lingering_cq_is_neither_dead_nor_asleep(void **state)
{
	struct shared s;

	ring_make(&s, 8, 0);
	assert_false(weft_uring_says_poll(&s.user));
	s.user.ring->flags = WEFT_RING_POLL;
	assert_true(weft_uring_says_poll(&s.user));
	assert_false(weft_uring_overflown(&s.user));
	s.user.ring->flags = WEFT_RING_OVERFLOW;
	assert_false(weft_uring_says_poll(&s.user));
	ring_free(&s);
}

static void arm_is_never_weakened(void **state)
{
	struct shared s;

	ring_make(&s, 8, 0);
	weft_uring_arm(&s.user, WEFT_ARM_SOLICITED);
	assert_int_equal(s.user.ring->arm, WEFT_ARM_SOLICITED);
	weft_uring_arm(&s.user, WEFT_ARM_NEXT);
	assert_int_equal(s.user.ring->arm, WEFT_ARM_NEXT);
	weft_uring_arm(&s.user, WEFT_ARM_SOLICITED);
	assert_int_equal(s.user.ring->arm, WEFT_ARM_NEXT);
	ring_free(&s);
}

static void write_wraps_at_every_byte(void **state)
{
	uint8_t src[4 * WEFT_SLOT_SIZE];
	size_t off, len, i;
	struct shared s;

	for (i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + 1);
	ring_make(&s, 4, 0);
	for (off = 0; off < sizeof(src); off += 3) {
		for (len = 0; len <= sizeof(src); len += 5) {
			ring_fill_guard(&s);
			weft_uring_write(&s.user, 0xfffffffe, off, src, len);
			for (i = 0; i < sizeof(src); i++) {
				size_t at = (2 * WEFT_SLOT_SIZE + off + i) % sizeof(src);

				assert_int_equal(s.user.entries[at], i < len ? src[i] : GUARD);
			}
		}
	}
	ring_free(&s);
}

/* ---- mapping ---- */

static int map_of(struct weft_uring *r, uint64_t size, uint32_t slots)
{
	struct weft_ring_map map = { .size = size, .slots = slots, .stride = 1 };
	int fd = memfd_create("ring", 0), err;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	err = weft_uring_map(r, fd, &map);
	close(fd);
	return err;
}

static void maps_what_the_kernel_answers(void **state)
{
	struct weft_uring r = {};

	assert_int_equal(map_of(&r, 4096, 32), 0);
	assert_int_equal(r.slots, 32);
	assert_int_equal(r.idx, 0);
	memset(weft_uring_slot(&r, 31), 1, WEFT_SLOT_SIZE);
	weft_uring_unmap(&r);
	assert_int_equal(r.slots, 0);
	/* Once more does no harm. */
	weft_uring_unmap(&r);
}

static void refuses_maps_that_make_no_sense(void **state)
{
	struct weft_uring r = {};

	assert_int_equal(map_of(&r, 4096, 0), EPROTO);
	assert_int_equal(map_of(&r, 4096, 33), EPROTO);
	assert_int_equal(map_of(&r, WEFT_RING_DATA + 64 * 64 - 1, 64), EPROTO);
	assert_int_equal(map_of(&r, 4096, 1u << 31), EPROTO);
	assert_int_equal(map_of(&r, 0, 1), EPROTO);
	assert_int_equal(r.size, 0);
}

static void says_why_mmap_failed(void **state)
{
	struct weft_ring_map map = { .size = 4096, .slots = 4, .stride = 1 };
	struct weft_uring r = {};

	assert_int_equal(weft_uring_map(&r, -1, &map), EBADF);
	assert_int_equal(r.slots, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_counts_down_and_comes_back),
		cmocka_unit_test(filled_follows_the_kernel),
		cmocka_unit_test(publish_tells_when_to_kick),
		cmocka_unit_test(overflow_is_not_mistaken_for_kick),
		cmocka_unit_test(a_lingering_cq_is_neither_dead_nor_asleep),
		cmocka_unit_test(arm_is_never_weakened),
		cmocka_unit_test(write_wraps_at_every_byte),
		cmocka_unit_test(maps_what_the_kernel_answers),
		cmocka_unit_test(refuses_maps_that_make_no_sense),
		cmocka_unit_test(says_why_mmap_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
