// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "shared.h"

static struct ibv_sge sgl[WEFT_MAX_SGE + 1];

static void make_rq(struct shared *s, struct weft_rq *rq, struct weft_rqq *kern, uint32_t entries,
		    uint32_t max_sge, uint32_t idx)
{
	uint32_t stride = weft_rq_stride(max_sge);

	ring_make(s, entries * stride, idx);
	*rq = (struct weft_rq){ .ring = s->user, .stride = stride, .max_sge = max_sge };
	weft_rqq_init(kern, s->mem, entries * stride, max_sge);
	kern->q.idx = idx;
}

static struct ibv_recv_wr recv_of(uint64_t id, int num_sge)
{
	return (struct ibv_recv_wr){ .wr_id = id, .sg_list = sgl, .num_sge = num_sge };
}

static void receives_of_every_shape(void **state)
{
	uint32_t max_sge, n;

	for (max_sge = 0; max_sge <= WEFT_MAX_SGE; max_sge++) {
		for (n = 0; n <= max_sge; n++) {
			struct ibv_recv_wr wr = recv_of(77 + n, n);
			struct weft_recv got;
			struct weft_rqq kern;
			struct weft_rq rq;
			struct shared s;

			/* Starting at the last entry: the second one wraps. */
			make_rq(&s, &rq, &kern, 4, max_sge, 3 * weft_rq_stride(max_sge));
			assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
			assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
			weft_uring_publish(&rq.ring);
			assert_int_equal(weft_rqq_pop(&kern, &got), 1);
			assert_int_equal(weft_rqq_pop(&kern, &got), 1);
			assert_true(got.wr_id == 77 + n);
			assert_int_equal(got.num_sge, n);
			assert_memory_equal(got.sge, sgl, n * sizeof(sgl[0]));
			assert_int_equal(weft_rqq_pop(&kern, &got), 0);
			ring_free(&s);
		}
	}
}

/* Each element, since a message may fit the first; and the program's list stays as it is. */
static void a_broken_receive_has_no_room_or_no_region(void **state)
{
	struct ibv_sge mine[2] = { { .length = 0, .lkey = 0x700 }, { .length = 9, .lkey = 0x800 } };
	struct ibv_recv_wr wr = { .sg_list = mine, .num_sge = 1 };
	struct ibv_sge list[WEFT_MAX_SGE];

	assert_int_equal(weft_rq_errors(&wr), 0);
	wr.num_sge = WEFT_MAX_SGE + 1;
	assert_int_equal(weft_rq_errors(&wr), 0);
	wr.num_sge = 2;
	assert_int_equal(weft_rq_errors(&wr), 1u << IBV_WC_LOC_LEN_ERR | 1u << IBV_WC_LOC_PROT_ERR);
	weft_rq_break_wr(&wr, list, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wr.num_sge, 2);
	assert_int_equal(wr.sg_list[0].lkey, 0x700 ^ 0xff);
	assert_int_equal(wr.sg_list[1].lkey, 0x800 ^ 0xff);
	assert_int_equal(wr.sg_list[1].length, 9);
	wr.sg_list = mine;
	weft_rq_break_wr(&wr, list, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(wr.num_sge, 2);
	assert_int_equal(weft_sgl_length(wr.sg_list, 2), 0);
	assert_int_equal(wr.sg_list[1].lkey, 0x800);
	assert_int_equal(mine[1].length, 9);
}

static void full_ring_says_enomem(void **state)
{
	struct ibv_recv_wr wr = recv_of(1, 1);
	struct weft_recv got;
	struct weft_rqq kern;
	struct weft_rq rq;
	struct shared s;
	int i;

	make_rq(&s, &rq, &kern, 8, 4, 0xfffffff0);
	for (i = 0; i < 8; i++)
		assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
	assert_int_equal(weft_rq_add_wr(&rq, &wr), ENOMEM);
	weft_uring_publish(&rq.ring);
	assert_int_equal(weft_rqq_pop(&kern, &got), 1);
	assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
	assert_int_equal(weft_rq_add_wr(&rq, &wr), ENOMEM);
	ring_free(&s);
}

static void too_many_sges_are_refused(void **state)
{
	struct ibv_recv_wr wr = recv_of(1, 4);
	struct weft_rqq kern;
	struct weft_rq rq;
	struct shared s;

	make_rq(&s, &rq, &kern, 8, 3, 0);
	ring_fill_guard(&s);
	assert_int_equal(weft_rq_add_wr(&rq, &wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(weft_rq_add_wr(&rq, &wr), EINVAL);
	assert_int_equal(rq.ring.idx, 0);
	ring_check_guard(&s, 0, 0);
	ring_free(&s);
}

/* An SRQ gets another ring: what waits is taken there, and posting goes on behind it. */
static void check_move(uint32_t max_sge, uint32_t from, uint32_t to, uint32_t waiting,
		       uint32_t start)
{
	uint32_t stride = weft_rq_stride(max_sge), i;
	struct ibv_recv_wr wr = recv_of(0, max_sge);
	struct shared old, new;
	struct weft_recv got;
	struct weft_rqq kern;
	struct weft_rq rq;
	bool moved;

	make_rq(&old, &rq, &kern, from, max_sge, start * stride);
	ring_make(&new, to * stride, 0);
	for (i = 0; i < waiting; i++) {
		wr.wr_id = i;
		assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
	}
	weft_uring_publish(&rq.ring);
	moved = !weft_rqq_move(&kern, &(struct weft_ring_move){ .mem = new.mem,
								.slots = to * stride });
	assert_int_equal(moved, waiting <= to);
	if (moved) {
		rq.ring = new.user;
		rq.ring.idx = new.user.ring->user_idx;
	}
	for (; i < (moved ? to : from); i++) {
		wr.wr_id = i;
		assert_int_equal(weft_rq_add_wr(&rq, &wr), 0);
	}
	assert_int_equal(weft_rq_add_wr(&rq, &wr), ENOMEM);
	weft_uring_publish(&rq.ring);
	for (i = 0; i < (moved ? to : from); i++) {
		assert_int_equal(weft_rqq_pop(&kern, &got), 1);
		assert_true(got.wr_id == i);
		assert_memory_equal(got.sge, sgl, max_sge * sizeof(sgl[0]));
	}
	assert_int_equal(weft_rqq_pop(&kern, &got), 0);
	ring_free(&new);
	ring_free(&old);
}

static void a_ring_of_another_size_keeps_what_waits(void **state)
{
	uint32_t start, waiting, to;

	for (start = 0xfffffffe; start != 5; start++)
		for (waiting = 0; waiting <= 4; waiting++)
			for (to = 1; to <= 16; to *= 2) {
				check_move(3, 4, to, waiting, start);
				check_move(7, 4, to, waiting, start);
			}
}

static void a_scribbled_ring_is_not_moved(void **state)
{
	struct weft_ring_move m = { .slots = 8 };
	struct shared old, new;
	struct weft_rqq kern;
	struct weft_rq rq;

	make_rq(&old, &rq, &kern, 4, 3, 0);
	ring_make(&new, 8, 0);
	m.mem = new.mem;
	rq.ring.ring->user_idx = 5;
	assert_int_equal(weft_rqq_move(&kern, &m), -EINVAL);
	assert_ptr_equal(kern.q.ring, old.mem);
	ring_free(&new);
	ring_free(&old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_of_every_shape),
		cmocka_unit_test(a_broken_receive_has_no_room_or_no_region),
		cmocka_unit_test(full_ring_says_enomem),
		cmocka_unit_test(too_many_sges_are_refused),
		cmocka_unit_test(a_ring_of_another_size_keeps_what_waits),
		cmocka_unit_test(a_scribbled_ring_is_not_moved),
	};
	uint32_t i;

	for (i = 0; i <= WEFT_MAX_SGE; i++)
		sgl[i] = (struct ibv_sge){ .addr = 0x1000 * i, .length = i, .lkey = ~i };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
