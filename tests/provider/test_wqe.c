// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel reads from a send ring exactly what the provider wrote. */
#include <endian.h>
#include <errno.h>

#include "shared.h"

#define SLOTS 16

static uint8_t payload[WEFT_MAX_INLINE + 8];
static struct ibv_sge sgl[WEFT_MAX_SGE + 1];

/* A send queue of the greatest shape, its next entry at slot @idx. */
static struct weft_sq sq_at(struct shared *s, uint32_t idx)
{
	struct weft_sq sq = {
		.features = ~0ULL,
		.max_slots = WEFT_SQ_MAX_SLOTS,
		.max_sge = WEFT_MAX_SGE,
		.max_inline = WEFT_MAX_INLINE,
	};

	ring_make(s, SLOTS, idx);
	ring_fill_guard(s);
	sq.ring = s->user;
	return sq;
}

/* The entry at @idx as the kernel gets it: published, copied, judged. */
struct copied {
	union {
		struct weft_sq_wqe w;
		uint8_t bytes[WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE];
	};
	uint32_t nslots, len;
	uint8_t verdict;
};

static void copy_out(struct shared *s, struct weft_sq *sq, struct copied *c)
{
	uint32_t from = s->kern.idx;

	weft_uring_publish(&sq->ring);
	weft_ringq_copy(&s->kern, from, c->bytes, 1);
	c->nslots = c->w.nslots;
	assert_in_range(c->nslots, 1, WEFT_SQ_MAX_SLOTS);
	assert_int_equal(weft_ringq_filled(&s->kern, from), c->nslots);
	weft_ringq_copy(&s->kern, from, c->bytes, c->nslots);
	c->verdict = weft_wqe_check(&c->w, c->nslots, false, &c->len);
	ring_check_guard(s, from, c->nslots);
}

static struct ibv_send_wr send_of(uint32_t num_sge)
{
	return (struct ibv_send_wr){ .wr_id = 0x0123456789abcdefULL, .sg_list = sgl,
				     .num_sge = num_sge, .opcode = IBV_WR_SEND };
}

/* ---- SGEs ---- */

static void sges_at_every_slot(void **state)
{
	uint32_t start, n;

	for (start = 0; start < SLOTS; start++) {
		for (n = 0; n <= WEFT_MAX_SGE; n++) {
			struct shared s;
			struct weft_sq sq = sq_at(&s, start);
			struct ibv_send_wr wr = send_of(n);
			struct copied c;

			assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
			copy_out(&s, &sq, &c);
			assert_int_equal(c.w.num_sge, n);
			assert_int_equal(c.nslots, weft_sq_wqe_slots(n, 0));
			assert_int_equal(c.verdict, WEFT_WC_SUCCESS);
			assert_int_equal(c.len, weft_sgl_length(sgl, n));
			assert_memory_equal(c.w.data, sgl, n * sizeof(sgl[0]));
			assert_true(c.w.wr_id == wr.wr_id);
			ring_free(&s);
		}
	}
}

/* As plain posts count them: lists in all slots, inline data, and requests that carry none. */
static void octets_of_several_entries_are_added_up(void **state)
{
	uint32_t start, n;

	for (start = 0; start < SLOTS; start++) {
		for (n = 0; n <= WEFT_MAX_SGE; n++) {
			struct shared s;
			struct weft_sq sq = sq_at(&s, start);
			struct weft_sq_head inv = { .opcode = WEFT_WR_LOCAL_INV };
			struct ibv_sge in = { .addr = (uintptr_t)payload, .length = 77 };
			struct ibv_send_wr wr = send_of(n);

			assert_int_equal(weft_sq_octets(&sq, start), 0);
			assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
			assert_int_equal(weft_sq_octets(&sq, start), weft_sgl_length(sgl, n));
			assert_int_equal(weft_sq_add_none(&sq, &inv), 0);
			wr = send_of(1);
			wr.sg_list = &in;
			wr.send_flags = IBV_SEND_INLINE;
			assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
			assert_int_equal(weft_sq_octets(&sq, start), weft_sgl_length(sgl, n) + 77);
			ring_free(&s);
		}
	}
}

/* ---- entries that fail on demand ---- */

static struct weft_sq_wqe broken(uint32_t start, unsigned int opcode, enum ibv_wc_status status,
				 uint8_t *verdict)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, start);
	struct ibv_send_wr wr = send_of(1);
	struct copied c;

	wr.opcode = opcode;
	wr.wr.rdma.rkey = 0x1234;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
	weft_sq_break_entry(&sq, start, status);
	copy_out(&s, &sq, &c);
	ring_free(&s);
	*verdict = c.verdict;
	return c.w;
}

static void a_broken_entry_is_wrong_in_one_way(void **state)
{
	uint32_t start;
	uint8_t verdict;

	for (start = 0; start < SLOTS; start++) {
		struct weft_sq_wqe w = broken(start, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR, &verdict);

		assert_int_equal(verdict, WEFT_WC_SUCCESS);
		assert_int_equal(weft_wqe_sge(&w, 0)->lkey, sgl[0].lkey ^ 0xff);
		assert_int_equal(weft_wqe_sge(&w, 0)->length, sgl[0].length);
		w = broken(start, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, &verdict);
		assert_int_equal(verdict, WEFT_WC_SUCCESS);
		assert_int_equal(w.rkey, 0x1234 ^ 0xff);
		broken(start, IBV_WR_SEND, IBV_WC_LOC_LEN_ERR, &verdict);
		assert_int_equal(verdict, WEFT_WC_LOC_LEN_ERR);
		broken(start, IBV_WR_SEND, IBV_WC_LOC_QP_OP_ERR, &verdict);
		assert_int_equal(verdict, WEFT_WC_LOC_QP_OP_ERR);
	}
}

static void an_entry_without_buffers_has_none_to_break(void **state)
{
	const uint32_t buffers = 1u << IBV_WC_LOC_LEN_ERR | 1u << IBV_WC_LOC_PROT_ERR;

	assert_int_equal(weft_sq_errors(WEFT_WR_SEND, true) & buffers, buffers);
	assert_int_equal(weft_sq_errors(WEFT_WR_SEND, false) & buffers, 0);
	assert_int_equal(weft_sq_errors(WEFT_WR_LOCAL_INV, true) & buffers, 0);
	assert_int_equal(weft_sq_errors(WEFT_WR_BIND_MW, true) & buffers, 0);
	assert_false(weft_sq_errors(WEFT_WR_SEND, true) & 1u << IBV_WC_REM_ACCESS_ERR);
	assert_true(weft_sq_errors(WEFT_WR_READ, true) & 1u << IBV_WC_REM_ACCESS_ERR);
}

static void a_broken_window_is_bound_to_no_region(void **state)
{
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x500 };
	struct ibv_mw_bind_info info = { .mr = &(struct ibv_mr){ .lkey = 0x700 } };
	const struct weft_sq_head h = { .opcode = WEFT_WR_BIND_MW };
	const struct weft_wr_bind *bind;
	struct shared s;
	struct weft_sq sq = sq_at(&s, SLOTS - 1);
	struct copied c;

	assert_true(weft_sq_errors(WEFT_WR_BIND_MW, false) & 1u << IBV_WC_MW_BIND_ERR);
	assert_false(weft_sq_errors(WEFT_WR_LOCAL_INV, false) & 1u << IBV_WC_MW_BIND_ERR);
	/* Without a length it would end the binding, whatever the region. */
	assert_int_equal(weft_sq_add_bind_2(&sq, &h, &mw, 0x501, &info), 0);
	weft_sq_break_entry(&sq, SLOTS - 1, IBV_WC_MW_BIND_ERR);
	copy_out(&s, &sq, &c);
	bind = (const void *)c.w.data;
	assert_int_equal(bind->mr_lkey, 0x700 ^ 0xff);
	assert_int_equal(bind->length, 1);
	assert_int_equal(bind->mw_stag, 0x501);
	ring_free(&s);
}

static void only_what_takes_a_receive_can_find_none(void **state)
{
	const uint32_t rnr = 1u << IBV_WC_RNR_RETRY_EXC_ERR, gone = 1u << IBV_WC_RETRY_EXC_ERR;

	assert_true(weft_sq_errors(WEFT_WR_SEND_INV, true) & rnr);
	assert_true(weft_sq_errors(WEFT_WR_WRITE_IMM, false) & rnr);
	assert_false(weft_sq_errors(WEFT_WR_READ, true) & rnr);
	assert_true(weft_sq_errors(WEFT_WR_READ, true) & gone);
	assert_false(weft_sq_errors(WEFT_WR_LOCAL_INV, true) & gone);
}

static void only_what_is_answered_can_have_a_wrong_answer(void **state)
{
	const uint32_t bad = 1u << IBV_WC_BAD_RESP_ERR;
	const uint32_t device = 1u << IBV_WC_FATAL_ERR | 1u << IBV_WC_GENERAL_ERR;

	assert_true(weft_sq_errors(WEFT_WR_READ, true) & bad);
	assert_true(weft_sq_errors(WEFT_WR_CMP_SWAP, true) & bad);
	assert_false(weft_sq_errors(WEFT_WR_WRITE, true) & bad);
	assert_int_equal(weft_sq_errors(WEFT_WR_LOCAL_INV, false) & (device | bad), device);
}

/* ---- inline data ---- */

static void check_inline(uint32_t start, uint32_t len, uint32_t pieces)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, start);
	struct ibv_sge list[WEFT_MAX_SGE] = {};
	struct ibv_send_wr wr = send_of(pieces);
	uint32_t i, done = 0;
	struct copied c;

	for (i = 0; i < pieces; i++) {
		list[i].addr = (uintptr_t)(payload + done);
		list[i].length = i + 1 == pieces ? len - done : len / pieces;
		done += list[i].length;
	}
	wr.sg_list = list;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
	copy_out(&s, &sq, &c);
	assert_int_equal(c.verdict, WEFT_WC_SUCCESS);
	assert_int_equal(c.w.flags, WEFT_WR_INLINE);
	assert_int_equal(c.w.num_sge, 1);
	assert_int_equal(c.len, len);
	assert_memory_equal(weft_wqe_inline(&c.w), payload, len);
	ring_free(&s);
}

static void inline_of_every_size_at_every_slot(void **state)
{
	uint32_t start, len;

	for (start = 0; start < SLOTS; start++)
		for (len = 0; len <= WEFT_MAX_INLINE; len++)
			check_inline(start, len, 1);
}

static void inline_gathers_pieces(void **state)
{
	uint32_t start, pieces;

	for (start = 5; start < SLOTS; start++)
		for (pieces = 2; pieces <= WEFT_MAX_SGE; pieces++)
			check_inline(start, 401, pieces);
}

static void inline_of_nothing(void **state)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);
	struct ibv_send_wr wr = send_of(0);
	struct copied c;

	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = NULL;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
	copy_out(&s, &sq, &c);
	assert_int_equal(c.verdict, WEFT_WC_SUCCESS);
	assert_int_equal(c.len, 0);
	ring_free(&s);
}

static void inline_too_long_is_refused(void **state)
{
	/* Whose sum in 32 bits would be small. */
	struct ibv_sge wraps[2] = { { .length = 0xffffffff }, { .length = 2 } };
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);
	struct ibv_send_wr wr = send_of(1);
	struct ibv_sge sge = { .addr = (uintptr_t)payload, .length = WEFT_MAX_INLINE + 1 };

	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = &sge;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), EINVAL);
	wr.sg_list = wraps;
	wr.num_sge = 2;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), EINVAL);
	sq.max_inline = 16;
	sge.length = 17;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), EINVAL);
	assert_int_equal(sq.ring.idx, 0);
	ring_check_guard(&s, 0, 0);
	ring_free(&s);
}

static void inline_buffers_whose_lengths_overflow(void **state)
{
	const struct ibv_data_buf bufs[] = {
		{ .addr = payload, .length = SIZE_MAX }, { .addr = payload, .length = 2 },
	};
	struct weft_sq_head h = { .opcode = WEFT_WR_SEND, .flags = WEFT_WR_INLINE };
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);

	assert_int_equal(weft_sq_add_inline(&sq, &h, bufs, 2), EINVAL);
	assert_int_equal(weft_sq_add_inline(&sq, &h, bufs + 1, 1), 0);
	ring_free(&s);
}

/* ---- opcodes and flags ---- */

static void add_and_copy(const struct ibv_send_wr *wr, struct copied *c)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, SLOTS - 1);

	assert_int_equal(weft_sq_add_wr(&sq, wr), 0);
	copy_out(&s, &sq, c);
	ring_free(&s);
}

static void remote_operations_name_their_buffer(void **state)
{
	static const struct { enum ibv_wr_opcode ibv; uint8_t weft; } ops[] = {
		{ IBV_WR_RDMA_WRITE, WEFT_WR_WRITE },
		{ IBV_WR_RDMA_READ, WEFT_WR_READ },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, WEFT_WR_WRITE_IMM },
	};
	struct copied c;
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_send_wr wr = send_of(1);

		wr.opcode = ops[i].ibv;
		wr.wr.rdma.remote_addr = 0xfedcba9876543210ULL;
		wr.wr.rdma.rkey = 0x89abcdef;
		add_and_copy(&wr, &c);
		assert_int_equal(c.w.opcode, ops[i].weft);
		assert_true(c.w.remote_addr == 0xfedcba9876543210ULL);
		assert_int_equal(c.w.rkey, 0x89abcdef);
	}
}

static void invalidating_operations_name_their_stag(void **state)
{
	struct ibv_send_wr wr = send_of(2);
	struct copied c;

	wr.invalidate_rkey = 0x11223344;
	wr.opcode = IBV_WR_SEND_WITH_INV;
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.opcode, WEFT_WR_SEND_INV);
	assert_int_equal(c.w.inv_stag, 0x11223344);
	assert_int_equal(c.w.reserved, 0);
	assert_int_equal(c.verdict, WEFT_WC_SUCCESS);
	wr.opcode = IBV_WR_LOCAL_INV;
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.opcode, WEFT_WR_LOCAL_INV);
	assert_int_equal(c.w.inv_stag, 0x11223344);
	assert_int_equal(c.nslots, 1);
	assert_int_equal(c.w.num_sge, 0);
}

static void immediate_data_is_a_number(void **state)
{
	struct ibv_send_wr wr = send_of(1);
	struct copied c;

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0xa1b2c3d4);
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.opcode, WEFT_WR_SEND_IMM);
	assert_true(c.w.imm == 0xa1b2c3d4);
}

static void atomics_carry_one_sge_then_operands(void **state)
{
	struct ibv_send_wr wr = send_of(1);
	struct ibv_sge word = { .addr = 0x2000, .length = 8, .lkey = 5 };
	const struct weft_wr_atomic *op;
	struct copied c;

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.sg_list = &word;
	wr.wr.atomic.compare_add = 3;
	wr.wr.atomic.swap = 4;
	wr.wr.atomic.remote_addr = 0x1000;
	wr.wr.atomic.rkey = 9;
	add_and_copy(&wr, &c);
	op = (const void *)(c.w.data + sizeof(sgl[0]));
	assert_int_equal(c.w.opcode, WEFT_WR_CMP_SWAP);
	assert_true(op->compare == 3 && op->swap_add == 4);
	assert_memory_equal(c.w.data, &word, sizeof(word));
	assert_int_equal(c.w.rkey, 9);
	/* Without masks: there is no second slot. */
	assert_int_equal(c.nslots, 1);
	assert_int_equal(c.verdict, WEFT_WC_SUCCESS);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	add_and_copy(&wr, &c);
	op = (const void *)(c.w.data + sizeof(sgl[0]));
	assert_true(op->swap_add == 3);
}

static void a_bind_names_window_and_region(void **state)
{
	struct ibv_mw window = { .type = IBV_MW_TYPE_2, .rkey = 0x1100 };
	struct ibv_mr mr = { .lkey = 0x2200 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = &window, .rkey = 0x1101, .bind_info = {
			.mr = &mr, .addr = 0x5000, .length = 1ull << 40,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED } },
	};
	const struct weft_wr_bind *bind;
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);
	struct copied c;

	add_and_copy(&wr, &c);
	bind = (const void *)c.w.data;
	assert_int_equal(c.w.opcode, WEFT_WR_BIND_MW);
	assert_int_equal(c.nslots, 1);
	assert_int_equal(c.verdict, WEFT_WC_SUCCESS);
	assert_true(bind->addr == 0x5000 && bind->length == 1ull << 40);
	assert_true(bind->mw_stag == 0x1101 && bind->mr_lkey == 0x2200);
	assert_int_equal(bind->access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
	/* Of the new rkey the low 8 bits are the program's to say, and its window has it. */
	wr.bind_mw.rkey = 0xFFFF0002;
	add_and_copy(&wr, &c);
	assert_true(bind->mw_stag == 0x1102 && window.rkey == 0x1102);
	/* That of type 1 is bound by a verb of its own. */
	window.type = IBV_MW_TYPE_1;
	assert_int_equal(weft_sq_add_wr(&sq, &wr), EINVAL);
	ring_free(&s);
}

static void flags_are_translated(void **state)
{
	struct ibv_send_wr wr = send_of(1);
	struct copied c;

	wr.send_flags = IBV_SEND_SIGNALED;
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.flags, WEFT_WR_SIGNALED);
	wr.send_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.flags, WEFT_WR_FENCE | WEFT_WR_SOLICITED);
	wr.send_flags = IBV_SEND_IP_CSUM;
	add_and_copy(&wr, &c);
	assert_int_equal(c.w.flags, 0);
}

/* ---- refusals ---- */

static void refuse(struct weft_sq *sq, const struct ibv_send_wr *wr)
{
	uint32_t before = sq->ring.idx;

	assert_int_equal(weft_sq_add_wr(sq, wr), EINVAL);
	assert_int_equal(sq->ring.idx, before);
}

static void what_a_wqe_cannot_express_is_refused(void **state)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, 3);
	struct ibv_send_wr wr = send_of(WEFT_MAX_SGE + 1);

	refuse(&sq, &wr);
	wr = send_of(-1);
	refuse(&sq, &wr);
	/* A Read has one sink, and nothing of it can be inline. */
	wr = send_of(2);
	wr.opcode = IBV_WR_RDMA_READ;
	refuse(&sq, &wr);
	wr = send_of(1);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_INLINE;
	refuse(&sq, &wr);
	wr = send_of(2);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	refuse(&sq, &wr);
	/* More than the queue was created for. */
	sq.max_sge = 4;
	wr = send_of(5);
	refuse(&sq, &wr);
	sq.max_sge = WEFT_MAX_SGE;
	sq.max_slots = 1;
	refuse(&sq, &wr);
	ring_check_guard(&s, 0, 0);
	ring_free(&s);
}

static void unknown_opcodes_are_refused(void **state)
{
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);
	uint32_t op;

	for (op = 0; op < 70000; op++) {
		struct ibv_send_wr wr = send_of(1);

		wr.opcode = op;
		if (op <= IBV_WR_BIND_MW || op == IBV_WR_SEND_WITH_INV)
			continue;
		refuse(&sq, &wr);
	}
	ring_free(&s);
}

static void features_not_in_force_are_refused(void **state)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW,
	};
	struct shared s;
	struct weft_sq sq = sq_at(&s, 0);
	size_t i;

	sq.features = 0;
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_send_wr wr = send_of(1);

		wr.opcode = ops[i];
		refuse(&sq, &wr);
	}
	ring_free(&s);
}

/* ---- a full ring ---- */

static void full_ring_says_enomem_and_stays(void **state)
{
	uint32_t n;

	for (n = 0; n <= WEFT_MAX_SGE; n++) {
		struct shared s;
		struct weft_sq sq = sq_at(&s, 0xfffffff8);
		struct ibv_send_wr wr = send_of(n);
		uint32_t slots = weft_sq_wqe_slots(n, 0), fit = SLOTS / slots, i, idx;

		for (i = 0; i < fit; i++)
			assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
		idx = sq.ring.idx;
		assert_int_equal(weft_sq_add_wr(&sq, &wr), ENOMEM);
		assert_int_equal(sq.ring.idx, idx);
		/* What the kernel gives back can be used at once. */
		weft_ringq_free(&s.kern, slots);
		assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
		ring_free(&s);
	}
}

static void queue_of_no_slots_refuses(void **state)
{
	struct weft_sq sq = { .max_sge = 1 };
	struct ibv_send_wr wr = send_of(1);

	assert_int_equal(weft_sq_add_wr(&sq, &wr), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sges_at_every_slot),
		cmocka_unit_test(octets_of_several_entries_are_added_up),
		cmocka_unit_test(a_broken_entry_is_wrong_in_one_way),
		cmocka_unit_test(an_entry_without_buffers_has_none_to_break),
		cmocka_unit_test(a_broken_window_is_bound_to_no_region),
		cmocka_unit_test(only_what_takes_a_receive_can_find_none),
		cmocka_unit_test(only_what_is_answered_can_have_a_wrong_answer),
		cmocka_unit_test(inline_of_every_size_at_every_slot),
		cmocka_unit_test(inline_gathers_pieces),
		cmocka_unit_test(inline_of_nothing),
		cmocka_unit_test(inline_too_long_is_refused),
		cmocka_unit_test(inline_buffers_whose_lengths_overflow),
		cmocka_unit_test(remote_operations_name_their_buffer),
		cmocka_unit_test(invalidating_operations_name_their_stag),
		cmocka_unit_test(immediate_data_is_a_number),
		cmocka_unit_test(atomics_carry_one_sge_then_operands),
		cmocka_unit_test(a_bind_names_window_and_region),
		cmocka_unit_test(flags_are_translated),
		cmocka_unit_test(what_a_wqe_cannot_express_is_refused),
		cmocka_unit_test(unknown_opcodes_are_refused),
		cmocka_unit_test(features_not_in_force_are_refused),
		cmocka_unit_test(full_ring_says_enomem_and_stays),
		cmocka_unit_test(queue_of_no_slots_refuses),
	};
	uint32_t i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 11 + 3);
	for (i = 0; i <= WEFT_MAX_SGE; i++)
		sgl[i] = (struct ibv_sge){ .addr = 0x100000000ULL * (i + 1), .length = i * 1000 + 1,
					   .lkey = 0xabcd0000 + i };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
