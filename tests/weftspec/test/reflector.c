/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unit tests of the reflectors' core, above a front that writes down what it
 * is asked for: every command, also those that the self-peer has no use for.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../reflector/core.h"

#define AREAS 2
#define NO_SLOT ~0u
#define ANNOUNCED(seq) (1ull << 32 | (seq))

static struct {
	struct reflector_wr wr[16];
	unsigned int wrs, recvs, disconnects, locks, drawn, traced;
	uint32_t slot;
	enum refl_region region;
	int err; /* for the next post_send() */
} front;

static struct reflector_session memory;
static struct reflector_link ulp;

static int post_recv(struct reflector_link *l, uint32_t slot)
{
	front.recvs++;
	front.slot = slot;
	return 0;
}

static int post_send(struct reflector_link *l, const struct reflector_wr *wr)
{
	int err = front.err;

	front.err = 0;
	if (err)
		return err;
	assert_true(front.wrs < 16);
	front.wr[front.wrs++] = *wr;
	return 0;
}

static int disconnect(struct reflector_link *l)
{
	front.disconnects++;
	return 0;
}

static int deregister(struct reflector_link *l, enum refl_region r)
{
	front.region = r;
	return 0;
}

static int bind_region(struct reflector_link *l, enum refl_region r,
		       uint32_t seq, uint32_t *stag)
{
	front.region = r;
	*stag = 0xb1d + seq;
	return 0;
}

static int draw_stags(struct reflector_link *l, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		reflector_keep_stag(l, i, 0x1000 + i);
	front.drawn = count;
	return 0;
}

static void count_lock(struct reflector_link *l)
{
	front.locks++;
}

static void count_trace(uint16_t op, int err)
{
	front.traced++;
}

static const struct reflector_ops all_ops = {
	.post_recv = post_recv, .post_send = post_send,
	.disconnect = disconnect, .deregister = deregister,
	.bind = bind_region, .draw_stags = draw_stags,
	.lock_status = count_lock, .unlock_status = count_lock,
	.trace_command = count_trace,
};
static const struct reflector_ops least_ops = {
	.post_recv = post_recv, .post_send = post_send,
	.disconnect = disconnect, .bind = bind_region,
};

static int join(void **state)
{
	size_t size = reflector_arena_size(REFL_BIG_LEN, AREAS);

	memset(&front, 0, sizeof(front));
	front.slot = NO_SLOT;
	memory = (struct reflector_session){ .ops = &all_ops, .areas = AREAS,
		.arena = malloc(size), .big_len = REFL_BIG_LEN,
		.caps = REFL_CAP_BIND };
	ulp = (struct reflector_link){ 0 };
	if (!memory.arena)
		return -1;
	for (int r = 0; r < REFL_REGIONS; r++)
		memory.stag[r] = 0x100 + r;
	reflector_fill_arena(&memory);
	reflector_join(&ulp, &memory, 0);
	return 0;
}

static int leave(void **state)
{
	free(memory.arena);
	return 0;
}

struct cmd {
	uint16_t op, flags;
	uint32_t seq, count, len, stag;
	uint64_t to, arg, arg2;
};

/* The command arrives in slot 3. */
static void command(struct cmd k)
{
	struct reflector_completion c = { .len = REFL_CMD_LEN };
	uint8_t *b = reflector_recv_slot(&ulp, 3), *p = b;

	p = put32(p, REFL_MAGIC_CMD);
	p = put16(p, k.op);
	p = put16(p, k.flags);
	p = put32(p, k.seq);
	p = put32(p, k.count);
	p = put32(p, k.len);
	p = put32(p, k.stag);
	p = put64(p, k.to);
	p = put64(p, k.arg);
	put64(p, k.arg2);
	front.wrs = 0;
	reflector_on_recv(&ulp, 3, &c);
	for (int i = 0; i < REFL_RECV_SIZE; i++)
		assert_int_equal(b[i], REFL_GUARD_BYTE);
}

/* The last work request is this answer. */
static void expect_answer(uint32_t magic, uint32_t seq, uint32_t status,
			  uint32_t value)
{
	const struct reflector_wr *wr = &front.wr[front.wrs - 1];

	assert_true(front.wrs);
	assert_int_equal(wr->op, REFL_SEND);
	assert_int_equal(wr->len, REFL_ACK_LEN);
	assert_int_equal(wr->key, REFL_ALL);
	assert_int_equal(get32(wr->addr), magic);
	assert_int_equal(get32(wr->addr + 4), seq);
	assert_int_equal(get32(wr->addr + 8), status);
	assert_int_equal(get32(wr->addr + 12), value);
}

static void expect_ack(uint32_t seq, uint32_t status, uint32_t value)
{
	expect_answer(REFL_MAGIC_ACK, seq, status, value);
}

static const uint8_t *event(unsigned int i)
{
	return reflector_status_block(&memory) + REFL_STATUS_HEAD +
	       i * REFL_EVENT_LEN;
}

static uint32_t events(void)
{
	return get32(reflector_status_block(&memory) + 4);
}

static void regions_lie_apart_and_inside(void **state)
{
	uint8_t *all = reflector_region_start(&memory, REFL_ALL);
	uint32_t size = reflector_region_len(&memory, REFL_ALL);

	assert_int_equal(size, reflector_arena_size(REFL_BIG_LEN, AREAS));
	for (int r = 0; r < REFL_ALL; r++) {
		uint8_t *p = reflector_region_start(&memory, r);
		uint32_t len = reflector_region_len(&memory, r);

		assert_true(p > all && p + len < all + size);
		assert_int_equal((p - all) % REFLECTOR_PAGE, REFL_ODD);
		for (uint32_t i = 0; i < len; i++)
			assert_int_equal(p[i], (uint8_t)(7 * i + 31 * r + 13));
		assert_int_equal(p[-1], REFL_GUARD_BYTE);
		assert_int_equal(p[len], REFL_GUARD_BYTE);
	}
	assert_int_equal(get32(reflector_status_block(&memory)),
			 REFL_MAGIC_STATUS);
}

static void slots_of_the_last_area_end_with_the_arena(void **state)
{
	uint8_t *end = memory.arena + reflector_arena_size(REFL_BIG_LEN, AREAS);
	uint8_t *last = NULL;

	ulp.idx = AREAS - 1;
	for (int i = 0; i < REFLECTOR_TX_SLOTS; i++)
		last = reflector_tx_slot(&ulp);
	assert_ptr_equal(last + REFLECTOR_TX_SIZE, end);
	assert_true(reflector_recv_slot(&ulp, REFLECTOR_RECV_SLOTS - 1) +
		    REFL_RECV_STRIDE <= end - AREAS * REFLECTOR_TX_SLOTS *
					      REFLECTOR_TX_SIZE);
}

static void request_is_read(void **state)
{
	uint8_t b[REFL_REQUEST_LEN], *p = put32(b, REFL_MAGIC_REQUEST);
	struct reflector_request q;

	p = put16(p, REFL_VERSION);
	p = put16(p, REFL_F_PD | REFL_F_SRQ);
	p = put64(p, 0x1122334455667788);
	p = put16(p, 77);
	put16(p, 5);
	assert_true(reflector_read_request(b, sizeof(b), &q));
	assert_int_equal(q.flags, REFL_F_PD | REFL_F_SRQ);
	assert_int_equal(q.cookie, 0x1122334455667788);
	assert_int_equal(q.pd_len, 77);
	assert_int_equal(q.recv_count, 5);
	put16(b + 6, 0);
	assert_true(reflector_read_request(b, sizeof(b), &q));
	assert_int_equal(q.pd_len, -1);
}

static void what_is_no_request_asks_for_nothing(void **state)
{
	uint8_t b[REFL_REQUEST_LEN] = { 0 };
	struct reflector_request q;

	assert_false(reflector_read_request(NULL, 0, &q));
	assert_false(reflector_read_request(b, sizeof(b), &q));
	put32(b, REFL_MAGIC_REQUEST);
	put16(b + 6, REFL_F_REJECT);
	assert_false(reflector_read_request(b, sizeof(b) - 1, &q));
	assert_int_equal(q.flags, 0);
	assert_int_equal(q.cookie, 0);
	assert_int_equal(q.pd_len, -1);
}

static void table_tells_where_all_is(void **state)
{
	uint8_t t[REFL_TABLE_LEN + 8];
	const uint8_t *p = t + REFL_TABLE_HEAD;

	memory.stag[REFL_W] = 0;
	assert_int_equal(reflector_write_private_data(&ulp, -1, t, sizeof(t)),
			 REFL_TABLE_LEN);
	assert_int_equal(get32(t), REFL_MAGIC_TABLE);
	assert_int_equal(get16(t + 4), REFL_VERSION);
	assert_int_equal(get16(t + 6), REFL_REGIONS);
	assert_int_equal(get32(t + 8), REFL_CAP_BIND);
	assert_int_equal(get16(t + 12), REFL_RECV_COUNT);
	assert_int_equal(get16(t + 14), REFL_RECV_SIZE);
	assert_int_equal(get64(t + 16),
			 (uintptr_t)reflector_status_block(&memory));
	assert_int_equal(get64(t + 24), (uintptr_t)reflector_recv_slot(&ulp, 0));
	for (int r = 0; r < REFL_REGIONS; r++, p += 16) {
		assert_int_equal(get64(p),
				 (uintptr_t)reflector_region_start(&memory, r));
		assert_int_equal(get32(p + 8), reflector_region_len(&memory, r));
		assert_int_equal(get32(p + 12), r == REFL_W ? 0 : 0x100 + r);
	}
	assert_int_equal(t[REFL_TABLE_LEN], 0x5a);
	assert_int_equal(reflector_write_private_data(&ulp, 9, t, sizeof(t)), 9);
	assert_int_equal(t[0], 0x5a);
}

static void nop_is_acknowledged_unless_told_not_to(void **state)
{
	command((struct cmd){ .op = REFL_NOP, .seq = 9 });
	expect_ack(9, 0, 0);
	assert_int_equal(front.slot, 3);
	assert_int_equal(front.traced, 1);
	command((struct cmd){ .op = REFL_NOP, .flags = REFL_CF_NOACK });
	assert_int_equal(front.wrs, 0);
	assert_int_equal(events(), 0);
}

static void small_sends_carry_their_number(void **state)
{
	command((struct cmd){ .op = REFL_SEND_INV, .seq = 7, .count = 3,
			      .len = 16, .stag = 0x99, .flags = REFL_CF_SE });
	assert_int_equal(front.wrs, 4);
	for (int i = 0; i < 3; i++) {
		const struct reflector_wr *wr = &front.wr[i];

		assert_int_equal(wr->op, REFL_SEND_INV);
		assert_int_equal(wr->id, 7);
		assert_int_equal(wr->stag, 0x99);
		assert_int_equal(wr->len, 16);
		assert_int_equal(wr->key, REFL_ALL);
		assert_true(wr->solicited);
		assert_int_equal(get32(wr->addr), i);
		assert_int_equal(wr->addr[4], i + 1);
	}
	expect_ack(7, 0, 0);
}

static void large_sends_come_from_big(void **state)
{
	command((struct cmd){ .op = REFL_SEND_IMM, .count = 1, .len = 257,
			      .arg = 0xabcdef01 });
	assert_int_equal(front.wr[0].op, REFL_SEND_IMM);
	assert_int_equal(front.wr[0].imm, 0xabcdef01);
	assert_int_equal(front.wr[0].key, REFL_BIG);
	assert_ptr_equal(front.wr[0].addr, reflector_big(&memory, 0));
	assert_false(front.wr[0].solicited);
	command((struct cmd){ .op = REFL_SEND, .count = 1,
			      .len = REFL_BIG_LEN + 1 });
	assert_int_equal(front.wrs, 1);
	expect_ack(0, EINVAL, 0);
}

static void writes_walk_through_both_ends(void **state)
{
	command((struct cmd){ .op = REFL_WRITE_IMM, .seq = 4, .count = 2,
			      .len = 100, .stag = 0x77, .to = 0x5000, .arg = 8,
			      .arg2 = 0x1234, .flags = REFL_CF_SE });
	assert_int_equal(front.wrs, 3);
	assert_int_equal(front.wr[1].op, REFL_WRITE_IMM);
	assert_true(front.wr[1].solicited);
	assert_int_equal(front.wr[1].id, 4);
	assert_int_equal(front.wr[1].stag, 0x77);
	assert_int_equal(front.wr[1].to, 0x5064);
	assert_int_equal(front.wr[1].imm, 0x1234);
	assert_ptr_equal(front.wr[1].addr, reflector_big(&memory, 108));
	command((struct cmd){ .op = REFL_WRITE, .count = 2, .len = 100,
			      .to = 0x5000, .flags = REFL_CF_REPEAT });
	assert_int_equal(front.wr[1].to, 0x5000);
}

static void only_the_last_read_is_announced(void **state)
{
	struct reflector_completion c = { .opcode = 2, .len = 40 };

	command((struct cmd){ .op = REFL_READ, .seq = 6, .count = 2,
			      .len = 40 });
	assert_int_equal(front.wr[0].id, 6);
	assert_int_equal(front.wr[1].id, ANNOUNCED(6));
	reflector_on_sent(&ulp, front.wr[0].id, &c);
	assert_int_equal(events(), 0);
	reflector_on_sent(&ulp, ANNOUNCED(6), &c);
	expect_answer(REFL_MAGIC_DONE, 6, 0, 40);
	assert_int_equal(events(), 1);
	assert_int_equal(event(0)[2], REFL_EV_SEND);
	assert_int_equal(get32(event(0) + 12), 6);
}

static void failed_requests_are_noted_not_announced(void **state)
{
	struct reflector_completion c = { .status = 5, .opcode = 2 };

	reflector_on_sent(&ulp, ANNOUNCED(6), &c);
	assert_int_equal(front.wrs, 0);
	assert_int_equal(events(), 1);
	assert_int_equal(event(0)[3], 5);
}

static void atomics_answer_to_an_aligned_place(void **state)
{
	command((struct cmd){ .op = REFL_CSWAP, .seq = 8, .stag = 0x55,
			      .to = 0x1000, .arg = 1, .arg2 = 2 });
	assert_int_equal(front.wr[0].op, REFL_CSWAP);
	assert_int_equal(front.wr[0].id, ANNOUNCED(8));
	assert_int_equal(front.wr[0].len, 8);
	assert_int_equal(front.wr[0].stag, 0x55);
	assert_int_equal(front.wr[0].to, 0x1000);
	assert_int_equal(front.wr[0].arg, 1);
	assert_int_equal(front.wr[0].arg2, 2);
	assert_int_equal((front.wr[0].addr - memory.arena) % 8, 0);
}

static void revoked_regions_leave_the_table(void **state)
{
	command((struct cmd){ .op = REFL_REVOKE, .arg = REFL_PD2 });
	expect_ack(0, 0, 0);
	assert_int_equal(front.region, REFL_PD2);
	assert_int_equal(memory.stag[REFL_PD2], 0);
	command((struct cmd){ .op = REFL_REVOKE, .arg = REFL_PD2 });
	expect_ack(0, EINVAL, 0);
	command((struct cmd){ .op = REFL_REVOKE, .arg = REFL_ALL });
	expect_ack(0, EINVAL, 0);
	assert_int_equal(memory.stag[REFL_ALL], 0x100 + REFL_ALL);
}

static void bind_answers_with_the_stag(void **state)
{
	command((struct cmd){ .op = REFL_BIND, .seq = 2, .arg = REFL_W });
	assert_int_equal(front.region, REFL_W);
	expect_ack(2, 0, 0xb1d + 2);
	command((struct cmd){ .op = REFL_BIND, .arg = REFL_ALL });
	expect_ack(0, EINVAL, 0);
}

static void drawn_stags_go_to_big(void **state)
{
	command((struct cmd){ .op = REFL_REGISTER, .count = 3 });
	assert_int_equal(front.drawn, 3);
	assert_int_equal(get32(reflector_big(&memory, 8)), 0x1002);
}

static void other_commands_reach_the_front(void **state)
{
	command((struct cmd){ .op = REFL_DISCONNECT });
	assert_int_equal(front.disconnects, 1);
	command((struct cmd){ .op = REFL_BAD_LKEY });
	assert_true(front.wr[0].wrong_key);
	assert_int_equal(front.wr[0].op, REFL_SEND);
	assert_false(front.wr[1].wrong_key);
	front.wrs = 0;
	command((struct cmd){ .op = REFL_BAD_LKEY, .arg = 1, .stag = 0x77, .to = 8 });
	assert_true(front.wr[0].wrong_key);
	assert_int_equal(front.wr[0].op, REFL_WRITE_IMM);
	assert_int_equal(front.wr[0].stag, 0x77);
	front.recvs = 0;
	command((struct cmd){ .op = REFL_RECV, .count = 5 });
	assert_int_equal(front.recvs, 1 + 5);
}

static void what_a_front_lacks_is_not_supported(void **state)
{
	memory.ops = &least_ops;
	command((struct cmd){ .op = REFL_REVOKE, .arg = REFL_RW });
	expect_ack(0, EOPNOTSUPP, 0);
	command((struct cmd){ .op = REFL_REGISTER, .count = 1 });
	expect_ack(0, EOPNOTSUPP, 0);
	command((struct cmd){ .op = 99 });
	expect_ack(0, EOPNOTSUPP, 0);
	front.err = ENOMEM;
	command((struct cmd){ .op = REFL_SEND, .seq = 1, .count = 5, .len = 4 });
	assert_int_equal(front.wrs, 1);
	expect_ack(1, ENOMEM, 0);
}

static void other_receives_are_events(void **state)
{
	struct reflector_completion c = { .len = 8, .opcode = 0x10080,
					  .imm = 3 };

	memcpy(reflector_recv_slot(&ulp, 1), "weftspecABCDEFGH", 16);
	reflector_on_recv(&ulp, 1, &c);
	assert_int_equal(front.recvs, 0);
	assert_int_equal(front.locks, 2);
	assert_int_equal(events(), 1);
	assert_int_equal(get16(event(0)), ulp.idx);
	assert_int_equal(event(0)[2], REFL_EV_RECV);
	assert_int_equal(event(0)[3], 0);
	assert_int_equal(get32(event(0) + 4), 0x10080);
	assert_int_equal(get32(event(0) + 8), 8);
	assert_int_equal(get32(event(0) + 12), 3);
	assert_memory_equal(event(0) + 16, "weftspecABCDEFGH", 16);
}

static void the_status_block_ends(void **state)
{
	static const uint32_t values[3];

	for (int i = 0; i < REFL_EVENTS + 9; i++)
		reflector_note(&ulp, REFL_EV_CM, 0, values, NULL);
	assert_int_equal(events(), REFL_EVENTS);
	assert_int_equal(event(REFL_EVENTS)[2], 0);
}

static void sessions_are_found_by_cookie_device_and_room(void **state)
{
	struct reflector_session a = { .cookie = 1, .device = &a },
				 b = { .cookie = 1, .device = &b,
				       .max_links = 1 }, *list = NULL;
	struct reflector_link l = { 0 };

	reflector_add_session(&list, &a);
	reflector_add_session(&list, &b);
	assert_ptr_equal(reflector_find_session(list, 1, &a), &a);
	assert_ptr_equal(reflector_find_session(list, 1, &b), &b);
	assert_null(reflector_find_session(list, 2, &a));
	reflector_join(&l, &b, 0);
	assert_null(reflector_find_session(list, 1, &b));
	reflector_remove_session(&list, &b);
	assert_ptr_equal(list, &a);
	assert_null(a.next);
}

static void the_longest_idle_session_goes_first(void **state)
{
	struct reflector_session s[3] = { 0 }, *list = NULL;
	struct reflector_link l[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		reflector_add_session(&list, &s[i]);
		reflector_join(&l[i], &s[i], 0);
	}
	assert_null(reflector_idle_session(list, 0));
	reflector_leave(&l[1]);
	reflector_leave(&l[0]);
	assert_null(reflector_idle_session(list, 2));
	assert_ptr_equal(reflector_idle_session(list, 1), &s[1]);
}

static void receives_are_bounded_by_the_slots(void **state)
{
	struct reflector_link l = { 0 };

	reflector_join(&l, &memory, 4);
	assert_int_equal(l.recv_count, 4);
	assert_int_equal(l.idx, 1);
	reflector_join(&l, &memory, 9999);
	assert_int_equal(l.recv_count, REFLECTOR_RECV_SLOTS);
	assert_int_equal(reflector_post_recvs(&l, REFLECTOR_RECV_SLOTS + 1), 0);
	assert_int_equal(front.slot, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, join, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(regions_lie_apart_and_inside),
		TEST(slots_of_the_last_area_end_with_the_arena),
		TEST(request_is_read),
		TEST(what_is_no_request_asks_for_nothing),
		TEST(table_tells_where_all_is),
		TEST(nop_is_acknowledged_unless_told_not_to),
		TEST(small_sends_carry_their_number),
		TEST(large_sends_come_from_big),
		TEST(writes_walk_through_both_ends),
		TEST(only_the_last_read_is_announced),
		TEST(failed_requests_are_noted_not_announced),
		TEST(atomics_answer_to_an_aligned_place),
		TEST(revoked_regions_leave_the_table),
		TEST(bind_answers_with_the_stag),
		TEST(drawn_stags_go_to_big),
		TEST(other_commands_reach_the_front),
		TEST(what_a_front_lacks_is_not_supported),
		TEST(other_receives_are_events),
		TEST(the_status_block_ends),
		TEST(sessions_are_found_by_cookie_device_and_room),
		TEST(the_longest_idle_session_goes_first),
		TEST(receives_are_bounded_by_the_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
