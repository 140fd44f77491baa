// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Long FPDUs that arrive in parts: their payload goes to its place before they are whole. */
#include "peer.h"

#define LEN	160u
#define ROOM	760u
/* Where the payload belongs: it ends with the region. A Send's goes on at SECOND. */
#define AT	600u
#define FIRST	100u
#define SECOND	300u
#define BLANK	0xEE
/* The last aligned 8 octets of a payload, and those after them, come last. */
#define REST	16u

enum kind { A_WRITE, A_SEND, A_RESPONSE, KINDS };

struct incoming {
	struct peer *p;
	struct host_mr *mr;
	struct host_cq *cq;		/* where its completion comes */
	enum kind kind;
	u8 data[LEN];
};

static u32 place(const struct incoming *in, u32 i)
{
	return in->kind != A_SEND || i < FIRST ? AT + i : SECOND + i - FIRST;
}

static void want(struct incoming *in, const struct host_mr *far)
{
	const struct weft_sge sge[] = {
		host_sge(in->mr, AT, FIRST), host_sge(in->mr, SECOND, LEN - FIRST),
	};

	if (in->kind == A_SEND)
		assert_true(host_post_recv(in->p->s.qp, 1, sge, 2));
	if (in->kind != A_RESPONSE)
		return;
	side_read(&in->p->s, 1, SIG, in->mr, AT, LEN, far, 0);
	peer_run(in->p);
	peer_expect(in->p, P_L, P_READ_REQ);
}

static void begin(struct incoming *in, enum kind kind, bool crc)
{
	struct host_mr *far;
	struct peer_cfg c;
	u32 i;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.link.mpa.crc = crc;
	in->p = peer_new(&c);
	in->kind = kind;
	in->cq = kind == A_RESPONSE ? in->p->s.scq : in->p->s.rcq;
	in->mr = host_mr_new(&in->p->s.host, PD, BASE, ROOM, RW);
	far = host_mr_new(&in->p->s.host, PD, BASE, ROOM, RW);
	memset(in->mr->mem, BLANK, ROOM);
	for (i = 0; i < LEN; i++)
		in->data[i] = (u8)(i * 7 + 1);
	want(in, far);
}

static void end(struct incoming *in)
{
	peer_free(in->p);
}

/* Adds the whole message, of @n octets, to what the peer says. */
static void add(struct incoming *in, u32 n)
{
	if (in->kind == A_SEND)
		peer_add(in->p, p_send(P_SEND, true, 1, 0, in->data, n));
	else
		peer_add(in->p, p_tagged(in->kind == A_WRITE ? P_WRITE : P_READ_RESP, true,
					 in->mr->r.stag, BASE + AT, in->data, n));
}

/* Octets [@from, @to) of it arrive: a block of their own, so that an overrun is seen. */
static void arrive(struct incoming *in, u32 from, u32 to)
{
	u8 *block = malloc(to - from);
	struct weft_seg seg = { block, to - from };

	assert_non_null(block);
	memcpy(block, in->p->out + from, to - from);
	host_link_rx(&in->p->s.link, &seg, 1);
	free(block);
}

/* Of the payload the first @n octets are there, and nothing else was written. */
static bool has_exactly(const struct incoming *in, u32 n)
{
	u8 all[ROOM];
	u32 i;

	memset(all, BLANK, sizeof(all));
	for (i = 0; i < n; i++)
		all[place(in, i)] = in->data[i];
	return !memcmp(all, in->mr->mem, ROOM);
}

/* Octets of payload among the first @n of the message. */
static u32 payload_in(const struct incoming *in, u32 n)
{
	u32 head = in->kind == A_SEND ? 2 + 18 : 2 + 14;

	return n <= head ? 0 : min_t(u32, n - head, LEN);
}

static void is_delivered(struct incoming *in)
{
	assert_true(has_exactly(in, LEN));
	if (in->kind != A_WRITE)
		expect_cqe(in->cq, 1, WEFT_WC_SUCCESS);
	expect_state(&in->p->s, WEFT_QPS_RTS);
}

/* The message fails: it completes with @status. */
static void has_failed(struct incoming *in, u8 status)
{
	if (in->kind != A_WRITE)
		expect_cqe(in->cq, 1, status);
	assert_int_not_equal(in->p->s.qp->core.state, WEFT_QPS_RTS);
}

typedef void (*step)(struct incoming *in, u32 cut, bool crc);

/* Each kind, with and without CRC, cut in the header at every octet, then at some. */
static void everywhere(step fn, u32 every)
{
	struct incoming in;
	u32 i, cut, len = 2;

	for (i = 0; i < KINDS * 2; i++)
		for (cut = 1; cut < len; cut += cut < 40 ? 1 : every) {
			begin(&in, i % KINDS, i / KINDS);
			add(&in, LEN);
			len = in.p->out_len;
			arrive(&in, 0, cut);
			fn(&in, cut, i / KINDS);
			end(&in);
		}
}

/* ---- where it goes ---- */

static void arrives(struct incoming *in, u32 cut, bool crc)
{
	u32 there = min_t(u32, payload_in(in, cut), LEN - REST);

	/* With CRC a Write must not be seen before it is verified. */
	assert_true(has_exactly(in, in->kind == A_WRITE && crc ? 0 : there));
	expect_no_cqe(in->cq);
	arrive(in, cut, in->p->out_len);
	is_delivered(in);
}

static void a_long_fpdu_goes_to_its_place_wherever_it_is_cut(void **state)
{
	everywhere(arrives, 1);
}

static void fpdus_of_any_size_follow_each_other(void **state)
{
	static const u32 sizes[] = { 150, 3, 24, 23, 25, 0, 160, 100 };
	struct incoming in;
	u32 i, at, step;

	for (step = 1; step < 90; step++) {
		begin(&in, A_WRITE, false);
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			in.data[0] = (u8)i;
			add(&in, sizes[i]);
		}
		peer_add(in.p, p_tagged(P_WRITE, true, in.mr->r.stag, BASE + AT, in.data, LEN));
		for (at = 0; at < in.p->out_len; at += step)
			arrive(&in, at, min_t(u32, at + step, in.p->out_len));
		is_delivered(&in);
		end(&in);
	}
}

static void markers_are_stripped_before(void **state)
{
	struct host_mr *src, *dst;
	struct pair_cfg c;
	struct pair p;
	u32 on, i;

	for (on = 0; on < 2; on++) {
		pair_cfg_init(&c);
		c.s[1].link.mpa.markers = on;
		c.cut = WIRE_RANDOM;
		pair_init(&p, &c);
		src = host_mr_new(&p.s[0].host, PD, BASE, 1 << 16, RW);
		dst = host_mr_new(&p.s[1].host, PD, BASE, 1 << 16, RW);
		for (i = 0; i < 1 << 16; i++)
			src->mem[i] = (u8)(i * 13);
		side_recv(&p.s[1], 1, dst, 0, 1 << 16);
		side_send(&p.s[0], 1, SIG, src, 0, 1 << 16);
		pair_run(&p);
		expect_cqe(p.s[1].rcq, 1, WEFT_WC_SUCCESS);
		assert_memory_equal(src->mem, dst->mem, 1 << 16);
		pair_fini(&p);
	}
}

/* What of an FPDU has come is copied once, to its place: the stage has the header alone. */
static void a_long_fpdu_is_not_staged(void **state)
{
	const u32 len = 60000;
	struct incoming in;
	struct host_mr *mr;
	u32 parts;

	for (parts = 0; parts < 2; parts++) {
		begin(&in, A_WRITE, true);
		in.p->s.link.core.st.part_min = parts * 2048;
		mr = host_mr_new(&in.p->s.host, PD, 2 * BASE, len, RW);
		side_recv(&in.p->s, 1, mr, 0, len);
		peer_add(in.p, p_send(P_SEND, true, 1, 0, NULL, len));
		arrive(&in, 0, 50000);
		assert_int_equal(in.p->s.qp->chunks, parts ? 1 : DIV_ROUND_UP(50000, 4096));
		arrive(&in, 50000, in.p->out_len);
		expect_cqe(in.p->s.rcq, 1, WEFT_WC_SUCCESS);
		end(&in);
	}
}

/* A stream shows its octets at once: with CRC only those of whole FPDUs. */
static void a_stream_counts_what_is_verified(void **state)
{
	struct incoming in;
	u32 i;

	for (i = 0; i < 2; i++) {
		const bool crc = i;

		begin(&in, A_SEND, crc);
		in.p->s.qp->core.in_order = true;
		add(&in, LEN);
		arrive(&in, 0, 60);
		arrive(&in, 60, 150);
		assert_true(has_exactly(&in, crc ? 0 : 130));
		assert_int_equal(in.p->s.qp->core.recv_got, crc ? 0 : 130);
		arrive(&in, 150, in.p->out_len);
		is_delivered(&in);
		end(&in);
	}
}

/* ---- what is refused ---- */

static void is_spoiled(struct incoming *in, u32 cut, u32 at)
{
	static const u8 more[70000];
	struct weft_seg seg = { more, sizeof(more) };
	u32 i;

	in->p->out[at] ^= 0x04;
	arrive(in, 0, cut);
	arrive(in, cut, in->p->out_len);
	/* The length may be what was spoiled. */
	host_link_rx(&in->p->s.link, &seg, 1);
	assert_int_equal(in->p->s.qp->core.error, WEFT_E_MPA_CRC);
	has_failed(in, WEFT_WC_FLUSH_ERR);
	if (in->kind == A_WRITE)
		assert_true(has_exactly(in, 0));
	for (i = 0; i < LEN; i++)
		in->mr->mem[place(in, i)] = BLANK;
	assert_true(has_exactly(in, 0));
}

static void what_is_spoiled_is_not_delivered(void **state)
{
	struct incoming in;
	u32 i, at, len = 1;

	/* In each octet, cut at seven places that move along. */
	for (i = 0; i < KINDS * 7; i++)
		for (at = 0; at < len; at++) {
			begin(&in, i % KINDS, true);
			add(&in, LEN);
			len = in.p->out_len;
			is_spoiled(&in, 1 + (at + i / KINDS * (len / 7)) % (len - 1), at);
			end(&in);
		}
}

static void a_write_that_ends_outside_its_region_places_nothing(void **state)
{
	struct incoming in;

	begin(&in, A_WRITE, false);
	peer_add(in.p, p_tagged(P_WRITE, true, in.mr->r.stag, BASE + ROOM - LEN + 1, in.data, LEN));
	arrive(&in, 0, 90);
	arrive(&in, 90, in.p->out_len);
	assert_true(has_exactly(&in, 0));
	assert_int_equal(in.p->s.qp->core.error, WEFT_E_DDP_BOUNDS);
	end(&in);
}

static void a_send_longer_than_its_receive_places_nothing(void **state)
{
	struct weft_sge sge;
	struct incoming in;
	u32 i;

	for (i = 0; i < 2; i++) {
		begin(&in, A_WRITE, i);
		in.kind = A_SEND;
		sge = host_sge(in.mr, AT, LEN - 1);
		assert_true(host_post_recv(in.p->s.qp, 1, &sge, 1));
		add(&in, LEN);
		arrive(&in, 0, 90);
		arrive(&in, 90, in.p->out_len);
		assert_true(has_exactly(&in, 0));
		has_failed(&in, WEFT_WC_LOC_LEN_ERR);
		end(&in);
	}
}

/* ---- what happens in between ---- */

static void loses_its_region(struct incoming *in, u32 cut, bool crc)
{
	u32 there = min_t(u32, payload_in(in, cut), LEN - REST);

	weft_region_withdraw(&in->mr->r);
	arrive(in, cut, in->p->out_len);
	assert_true(has_exactly(in, in->kind == A_WRITE && crc ? 0 : there));
	has_failed(in, WEFT_WC_LOC_PROT_ERR);
	assert_int_equal(in->p->s.qp->core.error, in->kind == A_WRITE ? WEFT_E_DDP_STAG :
			 in->kind == A_SEND ? WEFT_E_RDMAP_STREAM : WEFT_E_RDMAP_LOCAL);
}

static void a_region_that_ends_in_between_is_not_written(void **state)
{
	everywhere(loses_its_region, 23);
}

static void loses_its_memory(struct incoming *in, u32 cut, bool crc)
{
	u32 there = min_t(u32, payload_in(in, cut), LEN - REST);

	in->mr->gone = true;
	arrive(in, cut, in->p->out_len);
	assert_true(has_exactly(in, in->kind == A_WRITE && crc ? 0 : there));
	has_failed(in, WEFT_WC_LOC_PROT_ERR);
	assert_int_equal(in->p->s.qp->core.error, in->kind == A_RESPONSE ? WEFT_E_RDMAP_LOCAL :
			 WEFT_E_RDMAP_STREAM);
}

static void memory_that_goes_in_between_ends_the_connection(void **state)
{
	everywhere(loses_its_memory, 23);
}

static void goes_to_error(struct incoming *in, u32 cut, bool crc)
{
	u32 there = min_t(u32, payload_in(in, cut), LEN - REST);

	host_link_error(&in->p->s.link);
	has_failed(in, WEFT_WC_FLUSH_ERR);
	arrive(in, cut, in->p->out_len);
	assert_true(has_exactly(in, in->kind == A_WRITE && crc ? 0 : there));
	expect_no_cqe(in->cq);
}

static void a_qp_in_error_gives_its_memory_back(void **state)
{
	everywhere(goes_to_error, 23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_fpdu_goes_to_its_place_wherever_it_is_cut),
		cmocka_unit_test(fpdus_of_any_size_follow_each_other),
		cmocka_unit_test(markers_are_stripped_before),
		cmocka_unit_test(a_long_fpdu_is_not_staged),
		cmocka_unit_test(a_stream_counts_what_is_verified),
		cmocka_unit_test(what_is_spoiled_is_not_delivered),
		cmocka_unit_test(a_write_that_ends_outside_its_region_places_nothing),
		cmocka_unit_test(a_send_longer_than_its_receive_places_nothing),
		cmocka_unit_test(a_region_that_ends_in_between_is_not_written),
		cmocka_unit_test(memory_that_goes_in_between_ends_the_connection),
		cmocka_unit_test(a_qp_in_error_gives_its_memory_back),
	};

	return RUN_TESTS("stacks: parts", tests);
}
