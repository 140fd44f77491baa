// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>

#include "shared.h"

static void every_status_and_opcode(void **state)
{
	uint32_t status, opcode;

	for (status = 0; status < 256; status++) {
		for (opcode = 0; opcode < 256; opcode++) {
			struct weft_cqe cqe = { .wr_id = 5, .status = status, .opcode = opcode };
			bool known = opcode < WEFT_WCO_NR && opcode != WEFT_WCO_REG_MR;
			struct ibv_wc wc;

			weft_cqe_decode(&cqe, &wc);
			assert_true(wc.wr_id == 5);
			assert_in_range(wc.status, IBV_WC_SUCCESS, IBV_WC_GENERAL_ERR);
			/* Success is what the kernel said, of something that can be named. */
			assert_int_equal(wc.status == IBV_WC_SUCCESS,
					 status == WEFT_WC_SUCCESS && known);
			if (status >= WEFT_WC_NR)
				assert_int_equal(wc.status, IBV_WC_GENERAL_ERR);
			assert_int_equal(!!(wc.opcode & IBV_WC_RECV),
					 opcode == WEFT_WCO_RECV || opcode == WEFT_WCO_RECV_IMM);
		}
	}
}

static void numbers_pass_through(void **state)
{
	struct weft_cqe cqe = { .wr_id = ~0ULL, .qp_num = 0x123456, .byte_len = 0xfffffff0,
				.vendor_err = 0x1102, .opcode = WEFT_WCO_READ };
	struct ibv_wc wc;

	memset(&wc, 0xff, sizeof(wc));
	weft_cqe_decode(&cqe, &wc);
	assert_true(wc.wr_id == ~0ULL);
	assert_int_equal(wc.qp_num, 0x123456);
	assert_int_equal(wc.byte_len, 0xfffffff0);
	assert_int_equal(wc.vendor_err, 0x1102);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	/* Nothing of what stood there before. */
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(wc.src_qp | wc.pkey_index | wc.slid | wc.sl | wc.dlid_path_bits, 0);
	assert_int_equal(wc.imm_data, 0);
}

static void flags_choose_what_the_union_holds(void **state)
{
	struct weft_cqe cqe = { .opcode = WEFT_WCO_RECV, .inv_stag = 0x12345678,
				.imm = 0xffffffffa1b2c3d4ULL };
	struct ibv_wc wc;

	cqe.flags = WEFT_CQE_INV;
	weft_cqe_decode(&cqe, &wc);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, 0x12345678);
	cqe.flags = WEFT_CQE_IMM;
	weft_cqe_decode(&cqe, &wc);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htobe32(0xa1b2c3d4));
	cqe.flags = WEFT_CQE_SOLICITED | WEFT_CQE_TIMESTAMP;
	weft_cqe_decode(&cqe, &wc);
	assert_int_equal(wc.wc_flags, 0);
}

/* ---- forgetting a QP ---- */

#define SLOTS 8

/* Completions of QPs @qps (a digit each), from @idx on; wr_id is the position. */
static void push_all(struct shared *s, const char *qps)
{
	struct weft_cqc cqc = { .q = s->kern };
	size_t i;

	for (i = 0; qps[i]; i++) {
		struct weft_cqe cqe = { .wr_id = i, .qp_num = qps[i] - '0' };

		assert_int_equal(weft_cqc_push(&cqc, &cqe), WEFT_CQ_QUIET);
	}
	s->kern = cqc.q;
}

/* What is left after QP 1 has gone, in order. */
static void check_left(const char *qps, uint32_t start)
{
	struct shared s;
	uint32_t want = 0, i;

	ring_make(&s, SLOTS, start);
	push_all(&s, qps);
	weft_cq_clean(&s.user, 1);
	for (i = 0; qps[i]; i++) {
		const struct weft_cqe *cqe = weft_uring_slot(&s.user, s.user.idx + want);

		if (qps[i] == '1')
			continue;
		assert_true(cqe->wr_id == i);
		assert_int_equal(cqe->qp_num, qps[i] - '0');
		want++;
	}
	assert_int_equal(weft_uring_filled(&s.user), want);
	assert_int_equal(s.user.ring->user_idx, s.user.idx);
	/* The kernel can go on where it was. */
	push_all(&s, "2");
	assert_int_equal(weft_uring_filled(&s.user), want + 1);
	ring_free(&s);
}

static void forgotten_completions_leave_the_rest_in_order(void **state)
{
	static const char *const cases[] = {
		"", "1", "2", "11", "12", "21", "121", "212", "1122", "2211", "1212121", "2222222",
		"1111111", "3123123",
	};
	size_t i;
	uint32_t start;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (start = 0xfffffffc; start != 4; start++)
			check_left(cases[i], start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_and_opcode),
		cmocka_unit_test(numbers_pass_through),
		cmocka_unit_test(flags_choose_what_the_union_holds),
		cmocka_unit_test(forgotten_completions_leave_the_rest_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
