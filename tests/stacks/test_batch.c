// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A batch (core/batch.h) without TCP: where its FPDUs end, which payload is referred to and which
 * is copied, what remains when TCP takes a part.
 */
#include "world.h"

#define MSS 1460
#define LEN (1u << 16)
#define LARGE (64u * 1024)		/* memory enough to refer to payload */

struct tray {
	struct peer *p;
	struct weft_qpc *qp;
	struct weft_batch b;
	void *mem;
	/* Every other pair of regions lies in pieces: slots 1, 4, 5 do not, 2 and 3 do. */
	struct host_mr *mr[5];
	u8 was[LEN + 4096];		/* the batch's content, as listed at first */
};

static void tray_init(struct tray *t, bool crc, u32 memory)
{
	struct peer_cfg c;
	u32 i;

	memset(t, 0, sizeof(*t));
	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.link.mpa.crc = crc;
	/* 256 requests, however short. */
	c.side.qp.sq_slots = 256 * WEFT_SQ_MAX_SLOTS;
	t->p = peer_new(&c);
	t->qp = &t->p->s.qp->core;
	for (i = 0; i < ARRAY_SIZE(t->mr); i++) {
		t->mr[i] = host_mr_new(&t->p->s.host, PD, BASE, LEN, RW);
		rng_fill(&t->p->rng, t->mr[i]->mem, LEN);
	}
	/* Of exactly that size, so that the sanitizer sees an overrun of one octet. */
	t->mem = malloc(memory);
	assert_non_null(t->mem);
	weft_batch_lend(&t->b, t->mem, memory);
}

static void tray_fini(struct tray *t)
{
	assert_ptr_equal(weft_batch_reclaim(&t->b, true), t->mem);
	assert_null(t->b.buf);
	free(t->mem);
	peer_free(t->p);
}

static void write_of(struct tray *t, u32 region, u32 off, u32 len)
{
	side_write(&t->p->s, 1, SIG, t->mr[region], off, len, t->mr[0], 0);
}

/* Keeps the pieces listed; returns their number. */
static u32 listed(struct tray *t)
{
	const struct weft_iov *iov;
	u32 niov, i, n = 0;

	iov = weft_batch_list(&t->b, &niov);
	for (i = 0; i < niov; i++) {
		memcpy(t->was + n, iov[i].base, iov[i].len);
		n += (u32)iov[i].len;
	}
	assert_int_equal(n, t->b.end - t->b.off);
	return niov;
}

static void take_octets(struct tray *t, u32 n)
{
	weft_batch_taken(&t->b, t->qp, n);
	host_assert_quiet(&t->p->s.host);
}

/* Everything is sent; the peer reads it. */
static void send_all(struct tray *t)
{
	struct peer *p = t->p;

	listed(t);
	p->in = realloc(p->in, p->in_len + t->b.end);
	assert_non_null(p->in);
	memcpy(p->in + p->in_len, t->was, t->b.end);
	p->in_len += t->b.end;
	p->in_cap = p->in_len;
	take_octets(t, t->b.end);
	assert_true(weft_batch_is_sent(&t->b));
	weft_tx_sent(t->qp);
	weft_region_end_run(t->qp);
}

/* The length of the next FPDU on the wire; 0: there is none. */
static u32 fpdu(struct tray *t, struct pdu *d)
{
	u32 at = t->p->in_at;

	return peer_next(t->p, d) ? t->p->in_at - at : 0;
}

/* ---- segments ---- */

static void fpdus_end_where_segments_end(void **state)			/* MPA-80 */
{
	static const u32 off[] = { 0, 4, 700, MSS - 152 };
	static struct pdu d;
	struct tray t;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		tray_init(&t, true, LARGE);
		write_of(&t, 1, 0, 10000);
		weft_batch_begin(&t.b, MSS, off[i]);
		assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_IDLE);
		assert_false(t.b.fresh || t.b.eor);
		assert_int_equal(t.b.segs, (off[i] + t.b.end + MSS - 1) / MSS - !!off[i]);
		send_all(&t);
		assert_int_equal(fpdu(&t, &d), MSS - off[i]);
		while (!(d.ddp & P_L)) {
			u32 n = fpdu(&t, &d);

			assert_true(n == MSS || (d.ddp & P_L && n && n < MSS));
		}
		tray_fini(&t);
	}
}

static void what_does_not_fit_into_the_rest_of_a_segment_begins_one(void **state)
{
	static struct pdu d;
	struct tray t;

	tray_init(&t, true, LARGE);
	write_of(&t, 1, 0, 10000);
	/* 128 octets of ULPDU make an FPDU of 136, PAD and CRC included. */
	weft_batch_begin(&t.b, MSS, MSS - 132);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_IDLE);
	assert_true(t.b.fresh);
	assert_false(t.b.eor);
	send_all(&t);
	assert_int_equal(fpdu(&t, &d), MSS);
	tray_fini(&t);
}

static void what_fits_whole_into_the_rest_of_a_segment_goes_there(void **state)
{
	static struct pdu d;
	struct tray t;

	tray_init(&t, true, LARGE);
	write_of(&t, 1, 0, 8);
	weft_batch_begin(&t.b, MSS, MSS - 28);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_IDLE);
	assert_false(t.b.fresh);
	assert_int_equal(t.b.seg_off, 0);
	assert_int_equal(t.b.segs, 0);
	send_all(&t);
	assert_int_equal(fpdu(&t, &d), 28);
	tray_fini(&t);
}

static void a_batch_ends_where_a_segment_is_cut_short(void **state)
{
	static struct pdu d;
	struct tray t;

	tray_init(&t, true, LARGE);
	/* The first leaves 100 octets of the segment. */
	write_of(&t, 1, 0, MSS - 100 - 20);
	write_of(&t, 1, 0, 3000);
	weft_batch_begin(&t.b, MSS, 0);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_NO_FIT);
	assert_true(t.b.eor);
	assert_false(t.b.fresh);
	assert_int_equal(t.b.end, MSS - 100);
	send_all(&t);
	weft_batch_begin(&t.b, MSS, 0);
	assert_false(t.b.eor);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_IDLE);
	send_all(&t);
	assert_int_equal(fpdu(&t, &d), MSS - 100);
	assert_int_equal(fpdu(&t, &d), MSS);
	tray_fini(&t);
}

static void fpdus_and_segments_are_counted(void **state)
{
	struct tray t;
	u32 i;

	tray_init(&t, true, LARGE);
	for (i = 0; i < 10; i++)
		write_of(&t, 1, 0, 8);
	weft_batch_begin(&t.b, MSS, 0);
	weft_batch_fill(&t.b, t.qp);
	assert_int_equal(t.b.fpdus, 10);
	assert_int_equal(t.b.segs, 1);
	send_all(&t);
	tray_fini(&t);
}

/* ---- referring and copying ---- */

static u32 places(bool crc, u32 memory, u32 region, u32 len)
{
	struct tray t;
	u32 n;

	tray_init(&t, crc, memory);
	write_of(&t, region, 0, len);
	weft_batch_begin(&t.b, 9000, 0);
	weft_batch_fill(&t.b, t.qp);
	n = listed(&t);
	send_all(&t);
	tray_fini(&t);
	return n;
}

static void long_payload_stays_where_it_is(void **state)
{
	/* Header, payload, PAD and CRC; the second region lies in pieces of 600. */
	assert_int_equal(places(false, LARGE, 0, 3000), 3);
	assert_int_equal(places(false, LARGE, 1, 3000), 7);
}

static void payload_of_256_octets_is_long(void **state)
{
	assert_int_equal(places(false, LARGE, 0, 255), 1);
	assert_int_equal(places(false, LARGE, 0, 256), 3);
}

static void payload_that_is_summed_is_copied(void **state)
{
	assert_int_equal(places(true, LARGE, 0, 3000), 1);
}

static void payload_is_copied_in_little_memory(void **state)
{
	assert_int_equal(places(false, WEFT_BATCH_REFER_FROM - 8, 0, 3000), 1);
	assert_int_equal(places(false, WEFT_BATCH_REFER_FROM, 0, 3000), 3);
	assert_int_equal(places(false, WEFT_BATCH_MEM_MIN, 0, 2000), 1);
}

/* More pieces than a batch can list: the rest is copied, and nothing is lost. */
static void many_places_are_listed_as_far_as_they_go(void **state)
{
	static struct pdu d;
	u32 i, n = 180, off = 0;
	struct tray t;

	tray_init(&t, false, LARGE);
	for (i = 0; i < n; i++)
		write_of(&t, i % 5, i * 256, 256);
	weft_batch_begin(&t.b, 9000, 0);
	while (weft_batch_fill(&t.b, t.qp) == WEFT_TX_NO_FIT)
		t.b.eor = false;
	assert_in_range(listed(&t), 2 * WEFT_BATCH_REFS - 1, 2 * WEFT_BATCH_REFS + 1);
	send_all(&t);
	for (i = 0; fpdu(&t, &d); i += off == 256) {
		off %= 256;
		assert_memory_equal(d.body, t.mr[i % 5]->mem + i * 256 + off, d.len);
		off += d.len;
	}
	assert_int_equal(i, n);
	tray_fini(&t);
}

/* ---- TCP takes a part ---- */

/* Posts a message with every kind of piece; returns its octets on the wire. */
static u32 mixture(struct tray *t)
{
	struct host_wr wr = {
		.opcode = WEFT_WR_WRITE, .flags = SIG, .num_sge = 4,
		.rkey = 1, .remote_addr = 5,
		.sge = { host_sge(t->mr[1], 550, 400), host_sge(t->mr[3], 0, 100),
			 host_sge(t->mr[3], 200, 300), host_sge(t->mr[2], 1, 257) },
	};

	side_post(&t->p->s, &wr);
	write_of(t, 0, 100, 300);
	weft_batch_begin(&t->b, MSS, 0);
	weft_batch_fill(&t->b, t->qp);
	return t->b.end;
}

static void scribble_over_the_regions(struct tray *t)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t->mr); i++)
		memset(t->mr[i]->mem, 0xEE, 4096);
}

static void what_tcp_did_not_take_is_ours_wherever_it_was_cut(void **state)
{
	u32 cut, n = ~0u, niov;
	const struct weft_iov *iov;
	struct tray t;

	tray_init(&t, false, LARGE);
	for (cut = 0; cut <= n; cut++) {
		rng_fill(&t.p->rng, t.mr[1]->mem, 1000);
		rng_fill(&t.p->rng, t.mr[3]->mem, 1000);
		n = mixture(&t);
		assert_in_range(n, 1300, 1500);
		assert_true(listed(&t) > 6);
		take_octets(&t, cut);
		assert_int_equal(weft_batch_is_sent(&t.b), cut == n);
		/* The requests are complete: their memory is the user's again. */
		weft_tx_sent(t.qp);
		weft_region_end_run(t.qp);
		assert_int_equal(drain_cq(t.p->s.scq), 2);
		scribble_over_the_regions(&t);
		if (cut == n)
			break;
		assert_null(weft_batch_reclaim(&t.b, false));
		iov = weft_batch_list(&t.b, &niov);
		assert_int_equal(niov, 1);
		assert_int_equal(iov->len, n - cut);
		assert_memory_equal(iov->base, t.was + cut, n - cut);
		take_octets(&t, n - cut);
		assert_true(weft_batch_is_sent(&t.b));
	}
	tray_fini(&t);
}

static void the_first_octets_left_are_the_right_ones(void **state)
{
	const struct weft_iov *iov;
	u32 cut, n, niov;
	struct tray t;

	tray_init(&t, false, LARGE);
	n = mixture(&t);
	listed(&t);
	take_octets(&t, 1);
	scribble_over_the_regions(&t);
	for (cut = 1; cut < n; cut++) {
		iov = weft_batch_list(&t.b, &niov);
		assert_int_equal(niov, 1);
		assert_memory_equal(iov->base, t.was + cut, n - cut);
		take_octets(&t, 1);
	}
	assert_true(weft_batch_is_sent(&t.b));
	tray_fini(&t);
}

/* ---- broken off ---- */

/* Memory of @region is gone from piece number @at on: returns whether there was such a piece. */
static bool broken_off(struct tray *t, u32 region, u32 at)
{
	jmp_buf here;
	bool left;

	t->mr[region]->leave = &here;
	t->mr[region]->leave_at = at;
	left = setjmp(here);
	if (!left)
		mixture(t);
	t->mr[region]->leave = NULL;
	weft_batch_break_off(&t->b, t->qp);
	weft_region_end_run(t->qp);
	return left;
}

static void expect_nothing_left(struct tray *t)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t->mr); i++)
		assert_int_equal(t->mr[i]->holders, 0);
	assert_true(weft_batch_is_sent(&t->b));
	assert_int_equal(t->b.end, 0);
	assert_int_equal(t->b.nheld, 0);
	assert_int_equal(t->b.niov, 0);
}

static void a_batch_left_at_any_piece_holds_nothing(void **state)
{
	u32 crc, region, at, left = 0;
	struct tray t;

	for (crc = 0; crc < 2; crc++)
		for (region = 0; region < ARRAY_SIZE(t.mr); region++)
			for (at = 0; at < 3; at++) {
				tray_init(&t, crc, LARGE);
				left += broken_off(&t, region, at);
				expect_nothing_left(&t);
				tray_fini(&t);
			}
	assert_true(left >= 10);
}

static void a_batch_that_is_whole_can_be_broken_off(void **state)
{
	struct tray t;

	tray_init(&t, false, LARGE);
	assert_false(broken_off(&t, 4, 0));
	expect_nothing_left(&t);
	tray_fini(&t);
}

static void what_waited_for_tcp_is_broken_off(void **state)
{
	struct tray t;

	tray_init(&t, false, LARGE);
	mixture(&t);
	listed(&t);
	take_octets(&t, 100);
	weft_batch_break_off(&t.b, t.qp);
	weft_region_end_run(t.qp);
	expect_nothing_left(&t);
	tray_fini(&t);
}

/* Whatever the memory contained before: nothing was cut into it. */
static void memory_just_lent_can_be_broken_off(void **state)
{
	struct tray t;

	tray_init(&t, false, LARGE);
	memset(t.mem, 0x5A, LARGE);
	weft_batch_lend(&t.b, t.mem, LARGE);
	weft_batch_break_off(&t.b, t.qp);
	expect_nothing_left(&t);
	tray_fini(&t);
}

static void no_batch_can_be_broken_off(void **state)
{
	struct tray t;

	tray_init(&t, false, LARGE);
	assert_ptr_equal(weft_batch_reclaim(&t.b, true), t.mem);
	/* By now it belongs to another. */
	memset(t.mem, 0x5A, LARGE);
	weft_batch_break_off(&t.b, t.qp);
	assert_true(weft_batch_is_sent(&t.b));
	weft_batch_lend(&t.b, t.mem, LARGE);
	tray_fini(&t);
}

/* ---- the least memory ---- */

/* The longest Terminate: it returns the Read Request's headers. */
static void fail_with_headers(struct tray *t)
{
	u8 hdr[WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN] = { P_L | P_DV, P_RV | P_READ_REQ };

	hdr[9] = 1;
	weft_qpc_fail_raw(t->qp, WEFT_E_RDMAP_BOUNDS, hdr, sizeof(hdr), sizeof(hdr));
}

static void a_terminate_fits_behind_every_batch(void **state)		/* RDM-50 */
{
	static struct pdu d;
	struct tray t;
	u32 len, n, full = 0;

	for (len = 1; len < 3300; len += 1 + len / 40) {
		tray_init(&t, len & 1, WEFT_BATCH_MEM_MIN);
		for (n = 0; n < 200; n++)
			write_of(&t, 0, 0, len);
		weft_batch_begin(&t.b, len % 3 ? MSS : 9000, 0);
		full += weft_batch_fill(&t.b, t.qp) == WEFT_TX_FPDU;
		fail_with_headers(&t);
		n = t.b.end;
		assert_true(weft_batch_append_terminate(&t.b, t.qp));
		assert_false(t.b.eor);
		assert_true(t.b.end > n && t.b.end <= t.b.size);
		/* Only once. */
		assert_false(weft_batch_append_terminate(&t.b, t.qp));
		send_all(&t);
		while (fpdu(&t, &d) && d.rdmap != (P_RV | P_TERM))
			;
		assert_int_equal(d.rdmap, P_RV | P_TERM);
		assert_int_equal(fpdu(&t, &d), 0);
		tray_fini(&t);
	}
	assert_true(full > 20);
}

static void a_batch_is_full_once_a_segment_would_not_fit(void **state)
{
	struct tray t;
	u32 i;

	tray_init(&t, true, WEFT_BATCH_MEM_MIN);
	for (i = 0; i < 4; i++)
		write_of(&t, 0, 0, 4000);
	weft_batch_begin(&t.b, 900, 0);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_FPDU);
	/* Whole segments, and as many as fit the memory. */
	assert_int_equal(t.b.end % 900, 0);
	assert_int_equal(t.b.end / 900, (t.b.size - 128) / 900);
	send_all(&t);
	tray_fini(&t);
}

/* Short messages and long ones, none of which fits where the previous one ended. */
static void where_segments_are_unknown_none_ends_a_batch(void **state)
{
	static struct pdu d;
	struct tray t;
	u32 i, n, fpdus = 0;

	tray_init(&t, true, LARGE);
	for (i = 0; i < 4; i++) {
		write_of(&t, 1, 0, 1100);
		write_of(&t, 1, 0, 4000);
	}
	weft_batch_begin(&t.b, MSS, WEFT_SEG_UNKNOWN);
	assert_int_equal(weft_batch_fill(&t.b, t.qp), WEFT_TX_IDLE);
	assert_false(t.b.fresh || t.b.eor);
	assert_true(t.b.end > 4 * 5100);
	assert_int_equal(t.b.segs, 0);
	send_all(&t);
	while ((n = fpdu(&t, &d))) {
		assert_true(n <= MSS);
		/* Cut for a whole segment, wherever it starts. */
		assert_true(d.ddp & P_L || n == MSS);
		fpdus++;
	}
	assert_int_equal(fpdus, 4 * (1 + 3));
	tray_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_segments_are_unknown_none_ends_a_batch),
		cmocka_unit_test(fpdus_end_where_segments_end),
		cmocka_unit_test(what_does_not_fit_into_the_rest_of_a_segment_begins_one),
		cmocka_unit_test(what_fits_whole_into_the_rest_of_a_segment_goes_there),
		cmocka_unit_test(a_batch_ends_where_a_segment_is_cut_short),
		cmocka_unit_test(fpdus_and_segments_are_counted),
		cmocka_unit_test(long_payload_stays_where_it_is),
		cmocka_unit_test(payload_of_256_octets_is_long),
		cmocka_unit_test(payload_that_is_summed_is_copied),
		cmocka_unit_test(payload_is_copied_in_little_memory),
		cmocka_unit_test(many_places_are_listed_as_far_as_they_go),
		cmocka_unit_test(what_tcp_did_not_take_is_ours_wherever_it_was_cut),
		cmocka_unit_test(the_first_octets_left_are_the_right_ones),
		cmocka_unit_test(a_batch_left_at_any_piece_holds_nothing),
		cmocka_unit_test(a_batch_that_is_whole_can_be_broken_off),
		cmocka_unit_test(what_waited_for_tcp_is_broken_off),
		cmocka_unit_test(memory_just_lent_can_be_broken_off),
		cmocka_unit_test(no_batch_can_be_broken_off),
		cmocka_unit_test(a_terminate_fits_behind_every_batch),
		cmocka_unit_test(a_batch_is_full_once_a_segment_would_not_fit),
	};

	return RUN_TESTS("stacks: batches", tests);
}
