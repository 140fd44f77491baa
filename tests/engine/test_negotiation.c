// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What two ends agree on: RFC 5044 §7.1.1 (M, C, Rev), RFC 6581 §9 and §10. */
#include "rig.h"

#define NONE WEFT_MPA_NO_NEGOTIATION

/* Both ends of a start-up, over the wire format. */
struct setup {
	struct weft_mpa_frame req, rep;		/* as received */
	struct weft_mpa_agreed init, resp;
	enum weft_err req_err, rep_err;
	bool v1_retry;
};

static void carry(const struct weft_mpa_frame *from, struct weft_mpa_frame *to)
{
	u8 buf[WEFT_MPA_FRAME_MAX];
	u32 len = weft_mpa_frame_write(from, "", buf, sizeof(buf));
	const u8 *pd;

	assert_int_not_equal(len, 0);
	assert_int_equal(weft_mpa_frame_read(buf, len, from->reply, to, &pd), WEFT_OK);
}

static struct setup set_up(const struct weft_mpa_cfg *i, const struct weft_mpa_cfg *r, bool reject)
{
	struct setup s = { 0 };
	struct weft_mpa_frame req, rep;

	weft_mpa_request(i, 0, &req);
	carry(&req, &s.req);
	s.req_err = weft_mpa_request_check(r, &s.req);
	if (s.req_err)
		return s;
	weft_mpa_reply(r, &s.req, reject, 0, &rep, &s.resp);
	carry(&rep, &s.rep);
	s.rep_err = weft_mpa_reply_check(i, &req, &s.rep, &s.init, &s.v1_retry);
	return s;
}

static struct weft_mpa_cfg cfg(u8 rev, u16 ird, u16 ord)
{
	return (struct weft_mpa_cfg){ .rev = rev, .ird = ird, .ord = ord, .rtr = WEFT_RTR_ALL };
}

/* CRC and Markers */

static void crc_is_used_when_either_end_asks(void **state)
{
	(void)state;
	for (int n = 0; n < 4; n++) {
		struct weft_mpa_cfg i = cfg(1, 1, 1), r = cfg(1, 1, 1);
		struct setup s;

		i.crc = n & 1;
		r.crc = n & 2;
		s = set_up(&i, &r, false);
		assert_int_equal(s.req.crc, i.crc);
		assert_int_equal(s.init.crc, n != 0);
		assert_int_equal(s.init.rev, 1);
		assert_int_equal(s.resp.rev, 1);
		assert_int_equal(s.resp.crc, n != 0);
	}
}

static void markers_are_each_receivers_own_choice(void **state)	/* MPA-09, SIW-32 */
{
	(void)state;
	for (int n = 0; n < 4; n++) {
		struct weft_mpa_cfg i = cfg(2, 1, 1), r = cfg(2, 1, 1);
		struct setup s;

		i.markers = n & 1;
		r.markers = n & 2;
		s = set_up(&i, &r, false);
		assert_int_equal(s.rep_err, WEFT_OK);
		assert_int_equal(s.rep.markers, r.markers);
		assert_int_equal(s.init.rx_markers, i.markers);
		assert_int_equal(s.init.tx_markers, r.markers);
		assert_int_equal(s.resp.rx_markers, r.markers);
		assert_int_equal(s.resp.tx_markers, i.markers);
	}
}

/* Revisions */

static void responder_judges_the_revision(void **state)		/* MPA-19, MPA-20, SIW-35 */
{
	static const struct { u8 own, asked; bool ok; } rows[] = {
		{ 1, 0, false }, { 1, 1, true }, { 1, 2, false }, { 1, 3, false },
		{ 2, 0, false }, { 2, 1, true }, { 2, 2, true }, { 2, 3, false }, { 2, 255, false },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct weft_mpa_cfg c = cfg(rows[i].own, 1, 1);
		struct weft_mpa_frame req = { .rev = rows[i].asked };

		assert_int_equal(weft_mpa_request_check(&c, &req),
				 rows[i].ok ? WEFT_OK : WEFT_E_MPA_STARTUP);
	}
}

static void a_revision_1_request_gets_a_plain_revision_1_reply(void **state)
{
	struct weft_mpa_cfg i = cfg(1, 4, 5), r = cfg(2, 8, 9);
	struct setup s = set_up(&i, &r, false);

	(void)state;
	assert_int_equal(s.rep.rev, 1);
	assert_false(s.rep.enhanced);
	assert_int_equal(s.rep_err, WEFT_OK);
	assert_false(s.v1_retry);
	/* Nothing was negotiated: each end keeps its own. */
	assert_int_equal(s.init.ird, 4);
	assert_int_equal(s.init.ord, 5);
	assert_int_equal(s.resp.ird, 8);
	assert_int_equal(s.resp.ord, 9);
}

static void a_reply_echoes_nothing_of_the_request(void **state)	/* MPA-14, 15, 17, SIW-33 */
{
	/* M, C, R, S and all reserved bits; at revision 2 the enhanced words as well. */
	u8 asked[24] = "MPA ID Req Frame" "\xFF\x01\x00\x00" "\x80\x04\x80\x04";
	u8 out[WEFT_MPA_FRAME_MAX];

	(void)state;
	for (u8 rev = 1; rev <= 2; rev++) {
		struct weft_mpa_cfg r = cfg(2, 8, 8);
		struct weft_mpa_frame req, rep;
		struct weft_mpa_agreed a;
		const u8 *pd;

		asked[17] = rev;
		asked[19] = rev == 2 ? 4 : 0;
		assert_int_equal(weft_mpa_frame_read(asked, 20 + asked[19], false, &req, &pd),
				 WEFT_OK);
		weft_mpa_reply(&r, &req, false, 0, &rep, &a);
		weft_mpa_frame_write(&rep, NULL, out, sizeof(out));
		/* This end wants no Markers and accepts: C, and S where the revision has it. */
		assert_int_equal(out[16], rev == 2 ? 0x50 : 0x40);
		assert_int_equal(out[17], rev);
	}
}

/* Callers' structs are on the stack: a field that is not agreed must be zero, not uninitialized. */
static void nothing_is_left_over_from_before(void **state)
{
	struct weft_mpa_cfg c = cfg(1, 4, 5);
	struct weft_mpa_frame req, rep;
	struct weft_mpa_agreed a;
	bool retry;

	(void)state;
	memset(&req, 0xA5, sizeof(req));
	memset(&rep, 0xA5, sizeof(rep));
	memset(&a, 0xA5, sizeof(a));
	weft_mpa_request(&c, 0, &req);
	assert_true(!req.reply && !req.reject && !req.p2p && !req.rtr && !req.ird && !req.ord);
	weft_mpa_reply(&c, &req, false, 0, &rep, &a);
	assert_true(rep.reply && !rep.enhanced && !rep.p2p && !rep.rtr && !rep.ird && !rep.ord);
	assert_true(!a.enhanced && !a.p2p && !a.rtr && !a.crc && !a.tx_markers);
	memset(&a, 0xA5, sizeof(a));
	assert_int_equal(weft_mpa_reply_check(&c, &req, &rep, &a, &retry), WEFT_OK);
	assert_true(!a.enhanced && !a.p2p && !a.rtr && !a.crc && !a.tx_markers);
}

static void an_unenhanced_revision_2_request_gets_its_like(void **state)
{
	struct weft_mpa_cfg r = cfg(2, 8, 9);
	struct weft_mpa_frame req = { .rev = 2 }, rep;
	struct weft_mpa_agreed a;

	(void)state;
	weft_mpa_reply(&r, &req, false, 0, &rep, &a);
	assert_int_equal(rep.rev, 2);
	assert_false(rep.enhanced);
	assert_false(a.enhanced);
	assert_int_equal(a.ird, 8);
}

static void a_revision_2_initiator_asks_enhanced(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 4, 5);
	struct weft_mpa_frame req;

	(void)state;
	i.p2p = true;
	weft_mpa_request(&i, 77, &req);
	assert_int_equal(req.rev, 2);
	assert_true(req.enhanced && req.p2p && !req.reply && !req.reject);
	assert_int_equal(req.rtr, WEFT_RTR_ALL);
	assert_int_equal(req.ird, 4);
	assert_int_equal(req.ord, 5);
	assert_int_equal(req.pd_len, 77);
	i.rev = 1;
	weft_mpa_request(&i, 0, &req);
	assert_true(!req.enhanced && !req.p2p && !req.rtr && !req.ird && !req.ord);
	assert_int_equal(req.rev, 1);
}

struct reply_row {
	u8 req_rev;
	u8 rep_rev;
	bool rep_enhanced;
	bool reject;
	enum weft_err err;
	bool v1_retry;
};

static void initiator_judges_revision_and_s(void **state)
{
	static const struct reply_row rows[] = {
		{ 1, 1, false, false, WEFT_OK, false },
		{ 1, 0, false, false, WEFT_E_MPA_STARTUP, false },
		{ 1, 2, false, false, WEFT_E_MPA_STARTUP, false },
		{ 1, 2, true, false, WEFT_E_MPA_STARTUP, false },
		{ 1, 3, false, false, WEFT_E_MPA_STARTUP, false },
		{ 2, 2, true, false, WEFT_OK, false },
		{ 2, 2, false, false, WEFT_E_MPA_STARTUP, true },
		{ 2, 1, false, false, WEFT_E_MPA_STARTUP, true },
		{ 2, 0, false, false, WEFT_E_MPA_STARTUP, false },
		{ 2, 3, true, false, WEFT_E_MPA_STARTUP, false },
		{ 2, 255, false, false, WEFT_E_MPA_STARTUP, false },
		{ 1, 1, false, true, WEFT_OK, false },
		{ 2, 2, true, true, WEFT_OK, false },
		{ 2, 1, false, true, WEFT_OK, true },
		{ 2, 3, false, true, WEFT_E_MPA_STARTUP, false },
	};

	(void)state;
	for (u32 n = 0; n < ARRAY_SIZE(rows); n++) {
		const struct reply_row *row = &rows[n];
		struct weft_mpa_cfg i = cfg(row->req_rev, 1, 1);
		struct weft_mpa_frame req, rep = {
			.reply = true, .rev = row->rep_rev, .enhanced = row->rep_enhanced,
			.reject = row->reject, .ird = 1, .ord = 1,
		};
		struct weft_mpa_agreed a;
		bool retry = !row->v1_retry;

		weft_mpa_request(&i, 0, &req);
		print_message("# row %u\n", n);
		assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), row->err);
		assert_int_equal(retry, row->v1_retry);
	}
}

static void a_reject_reaches_the_initiator_as_such(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 1, 9), r = cfg(2, 2, 7);
	struct setup s = set_up(&i, &r, true);

	(void)state;
	assert_int_equal(s.rep_err, WEFT_OK);
	assert_true(s.rep.reject);
	/* RFC 6581 §9.1: the Reply reports the ORD that it would have needed, uncut. */
	assert_int_equal(s.rep.ord, 7);
	s = set_up(&i, &r, false);
	assert_false(s.rep.reject);
	assert_int_equal(s.rep.ord, 1);
}

/* IRD and ORD */

struct depth_row {
	u16 i_ird, i_ord, r_ird, r_ord;		/* wanted */
	u16 rep_ird, rep_ord;			/* on the wire */
	u16 init_ird, init_ord, resp_ird, resp_ord;
};

static const struct depth_row depths[] = {
	/* equal */
	{ 4, 4, 4, 4,			4, 4,		4, 4, 4, 4 },
	/* responder's ORD is cut to the initiator's IRD */
	{ 1, 1, 8, 8,			1, 1,		1, 1, 1, 1 },
	{ 0, 4, 8, 8,			4, 0,		0, 4, 4, 0 },
	/* initiator's ORD is cut to the responder's IRD */
	{ 8, 8, 2, 2,			2, 2,		8, 2, 2, 2 },
	{ 8, 200, 0, 3,			0, 3,		8, 0, 0, 3 },
	{ 0x3FFE, 0x3FFE, 128, 128,	128, 128,	0x3FFE, 128, 128, 128 },
	/* all zero: no Reads */
	{ 0, 0, 0, 0,			0, 0,		0, 0, 0, 0 },
	/* initiator does not negotiate its ORD: the responder's IRD stays */
	{ 4, NONE, 7, 4,		NONE, 4,	4, NONE, 7, 4 },
	/* nor its IRD: the responder's ORD stays */
	{ NONE, 4, 4, 9,		4, NONE,	NONE, 4, 4, 9 },
	{ NONE, NONE, 5, 6,		NONE, NONE,	NONE, NONE, 5, 6 },
	/* responder does not negotiate its IRD: the initiator's ORD stays */
	{ 4, 6, NONE, 4,		NONE, 4,	4, 6, NONE, 4 },
	/* its ORD is limited by the initiator's IRD all the same ("MUST") */
	{ 4, 6, 6, NONE,		6, 4,		4, 6, 6, 4 },
	{ NONE, NONE, NONE, NONE,	NONE, NONE,	NONE, NONE, NONE, NONE },
};

static void depths_follow_rfc_6581(void **state)		/* ENH-09 to 15, SIW-39 */
{
	(void)state;
	for (u32 n = 0; n < ARRAY_SIZE(depths); n++) {
		const struct depth_row *d = &depths[n];
		struct weft_mpa_cfg i = cfg(2, d->i_ird, d->i_ord), r = cfg(2, d->r_ird, d->r_ord);
		struct setup s = set_up(&i, &r, false);

		print_message("# row %u\n", n);
		assert_int_equal(s.req.ird, d->i_ird);
		assert_int_equal(s.req.ord, d->i_ord);
		assert_int_equal(s.rep.ird, d->rep_ird);
		assert_int_equal(s.rep.ord, d->rep_ord);
		assert_int_equal(s.rep_err, WEFT_OK);
		assert_int_equal(s.init.ird, d->init_ird);
		assert_int_equal(s.init.ord, d->init_ord);
		assert_int_equal(s.resp.ird, d->resp_ird);
		assert_int_equal(s.resp.ord, d->resp_ord);
	}
}

/* RFC 6581 §9.1's closing relations, over every combination. */
static void orders_never_exceed_the_other_ends_depth(void **state)
{
	static const u16 v[] = { 0, 1, 2, 16, 128, 0x3FFE };

	(void)state;
	for (u32 n = 0; n < 6 * 6 * 6 * 6; n++) {
		struct weft_mpa_cfg i = cfg(2, v[n % 6], v[n / 6 % 6]);
		struct weft_mpa_cfg r = cfg(2, v[n / 36 % 6], v[n / 216]);
		struct setup s = set_up(&i, &r, false);

		assert_int_equal(s.rep_err, WEFT_OK);
		assert_true(s.init.ord <= s.resp.ird);
		assert_true(s.resp.ord <= s.init.ird);
		assert_true(s.init.ord <= i.ord && s.resp.ord <= r.ord);
		assert_true(s.resp.ird <= r.ird);
	}
}

static void an_ord_above_our_ird_is_insufficient_ird(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 4, 4);
	static const struct { u16 ord; enum weft_err err; } rows[] = {
		{ 3, WEFT_OK }, { 4, WEFT_OK }, { 5, WEFT_E_MPA_IRD }, { 0x3FFE, WEFT_E_MPA_IRD },
		{ NONE, WEFT_OK },
	};

	(void)state;
	for (u32 n = 0; n < ARRAY_SIZE(rows); n++) {
		struct weft_mpa_frame req, rep = { .reply = true, .rev = 2, .enhanced = true,
						   .ird = 4, .ord = rows[n].ord, .crc = true,
						   .markers = true };
		struct weft_mpa_agreed a;
		bool retry;

		weft_mpa_request(&i, 0, &req);
		assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), rows[n].err);
		assert_false(retry);
		/* The Terminate that reports it is sent with the agreed settings. */
		assert_true(a.crc && a.tx_markers && !a.rx_markers);
		assert_int_equal(a.ird, 4);
	}
}

/* Peer-to-peer */

struct rtr_row {
	u8 own;				/* the responder's kinds */
	u8 offers[8];			/* by the kinds asked for, B=1 C=2 D=4 */
};

static void responder_offers_what_it_can_of_what_was_asked(void **state) /* ENH-18 to 20, SIW-40 */
{
	static const struct rtr_row rows[] = {
		{ 7, { 2, 1, 2, 3, 4, 5, 6, 7 } },
		{ 6, { 2, 2, 2, 2, 4, 4, 6, 6 } },
		{ 5, { 4, 1, 4, 1, 4, 5, 4, 5 } },
		{ 4, { 4, 4, 4, 4, 4, 4, 4, 4 } },
		{ 3, { 2, 1, 2, 3, 2, 1, 2, 3 } },
		{ 2, { 2, 2, 2, 2, 2, 2, 2, 2 } },
		{ 1, { 1, 1, 1, 1, 1, 1, 1, 1 } },
		/* "MUST support at least one" */
		{ 0, { 2, 2, 2, 2, 2, 2, 2, 2 } },
	};

	(void)state;
	for (u32 n = 0; n < ARRAY_SIZE(rows) * 8; n++) {
		struct weft_mpa_cfg r = cfg(2, 1, 1);
		struct weft_mpa_frame req = { .rev = 2, .enhanced = true, .p2p = true,
					      .rtr = n % 8, .ird = 1, .ord = 1 }, rep;
		struct weft_mpa_agreed a;

		r.rtr = rows[n / 8].own;
		weft_mpa_reply(&r, &req, false, 0, &rep, &a);
		assert_true(rep.p2p && a.p2p);
		assert_int_equal(rep.rtr, rows[n / 8].offers[n % 8]);
		assert_int_equal(a.rtr, rep.rtr);
	}
}

static void a_read_is_not_offered_without_room_for_one(void **state)	/* ENH-25, SIW-40 */
{
	struct weft_mpa_cfg r = cfg(2, 0, 1);
	struct weft_mpa_frame req = { .rev = 2, .enhanced = true, .p2p = true,
				      .rtr = WEFT_RTR_READ, .ird = 1, .ord = 1 }, rep;
	struct weft_mpa_agreed a;

	(void)state;
	weft_mpa_reply(&r, &req, false, 0, &rep, &a);
	assert_int_equal(rep.rtr, WEFT_RTR_WRITE);
	req.rtr = WEFT_RTR_ALL;
	weft_mpa_reply(&r, &req, false, 0, &rep, &a);
	assert_int_equal(rep.rtr, WEFT_RTR_SEND | WEFT_RTR_WRITE);
	r.rtr = WEFT_RTR_READ;
	weft_mpa_reply(&r, &req, false, 0, &rep, &a);
	assert_int_equal(rep.rtr, WEFT_RTR_WRITE);
	assert_int_equal(rep.ird, 0);
}

static void an_offered_read_has_room_though_the_ord_was_0(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 4, 0), r = cfg(2, 4, 4);
	struct setup s;

	(void)state;
	i.p2p = true;
	i.rtr = WEFT_RTR_READ;
	s = set_up(&i, &r, false);
	assert_int_equal(s.rep_err, WEFT_OK);
	assert_int_equal(s.rep.ird, 1);
	assert_int_equal(s.resp.ird, 1);
	assert_int_equal(s.init.rtr, WEFT_RTR_READ);
	assert_int_equal(s.init.ord, 1);
	/* Without peer-to-peer, 0 stays 0. */
	i.p2p = false;
	s = set_up(&i, &r, false);
	assert_int_equal(s.resp.ird, 0);
	assert_int_equal(s.init.ord, 0);
}

static void initiator_sends_one_kind_of_the_common_ones(void **state)
{
	/* Rows: own kinds; columns: the Reply's. 0: no matching RTR option. */
	static const u8 chosen[8][8] = {
		[1] = { 0, 1, 0, 1, 0, 1, 0, 1 }, [2] = { 0, 0, 2, 2, 0, 0, 2, 2 },
		[3] = { 0, 1, 2, 2, 0, 1, 2, 2 }, [4] = { 0, 0, 0, 0, 4, 4, 4, 4 },
		[5] = { 0, 1, 0, 1, 4, 4, 4, 4 }, [6] = { 0, 0, 2, 2, 4, 4, 2, 2 },
		[7] = { 0, 1, 2, 2, 4, 4, 2, 2 },
	};

	(void)state;
	for (u32 n = 0; n < 64; n++) {
		struct weft_mpa_cfg i = cfg(2, 1, 1);
		struct weft_mpa_frame req, rep = { .reply = true, .rev = 2, .enhanced = true,
						   .p2p = true, .rtr = n % 8, .ird = 1, .ord = 1 };
		struct weft_mpa_agreed a;
		bool retry;
		u8 want = chosen[n / 8][n % 8];

		i.p2p = true;
		i.rtr = n / 8;
		weft_mpa_request(&i, 0, &req);
		assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry),
				 want ? WEFT_OK : WEFT_E_MPA_RTR);
		assert_int_equal(a.rtr, want);
		assert_false(retry);
	}
}

static void no_read_is_sent_where_the_reply_has_no_room_for_it(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 1, 1);
	struct weft_mpa_frame req, rep = { .reply = true, .rev = 2, .enhanced = true, .p2p = true,
					   .rtr = WEFT_RTR_READ, .ird = 0, .ord = 1 };
	struct weft_mpa_agreed a;
	bool retry;

	(void)state;
	i.p2p = true;
	weft_mpa_request(&i, 0, &req);
	assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), WEFT_E_MPA_RTR);
	rep.rtr |= WEFT_RTR_SEND;
	assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), WEFT_OK);
	assert_int_equal(a.rtr, WEFT_RTR_SEND);
}

static void the_connection_model_is_the_initiators(void **state)
{
	struct weft_mpa_cfg i = cfg(2, 1, 1), r = cfg(2, 1, 1);
	struct weft_mpa_frame req, rep = { .reply = true, .rev = 2, .enhanced = true, .ird = 1,
					   .ord = 1 };
	struct weft_mpa_agreed a;
	struct setup s = set_up(&i, &r, false);
	bool retry;

	(void)state;
	assert_true(!s.rep.p2p && !s.rep.rtr && !s.init.p2p && !s.resp.p2p);
	assert_true(!s.init.rtr && !s.resp.rtr);
	i.p2p = true;
	s = set_up(&i, &r, false);
	assert_true(s.rep.p2p && s.init.p2p && s.resp.p2p);
	assert_int_equal(s.init.rtr, WEFT_RTR_WRITE);
	assert_int_equal(s.resp.rtr, WEFT_RTR_ALL);
	/* A requested and not answered: no compatible connection model. */
	weft_mpa_request(&i, 0, &req);
	assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), WEFT_E_MPA_RTR);
	/* Answered but not requested: some peers do this, harmless. */
	i.p2p = false;
	rep.p2p = true;
	rep.rtr = WEFT_RTR_WRITE;
	weft_mpa_request(&i, 0, &req);
	assert_int_equal(weft_mpa_reply_check(&i, &req, &rep, &a, &retry), WEFT_OK);
	assert_true(!a.p2p && !a.rtr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_used_when_either_end_asks),
		cmocka_unit_test(markers_are_each_receivers_own_choice),
		cmocka_unit_test(responder_judges_the_revision),
		cmocka_unit_test(a_revision_1_request_gets_a_plain_revision_1_reply),
		cmocka_unit_test(a_reply_echoes_nothing_of_the_request),
		cmocka_unit_test(nothing_is_left_over_from_before),
		cmocka_unit_test(an_unenhanced_revision_2_request_gets_its_like),
		cmocka_unit_test(a_revision_2_initiator_asks_enhanced),
		cmocka_unit_test(initiator_judges_revision_and_s),
		cmocka_unit_test(a_reject_reaches_the_initiator_as_such),
		cmocka_unit_test(depths_follow_rfc_6581),
		cmocka_unit_test(orders_never_exceed_the_other_ends_depth),
		cmocka_unit_test(an_ord_above_our_ird_is_insufficient_ird),
		cmocka_unit_test(responder_offers_what_it_can_of_what_was_asked),
		cmocka_unit_test(a_read_is_not_offered_without_room_for_one),
		cmocka_unit_test(an_offered_read_has_room_though_the_ord_was_0),
		cmocka_unit_test(initiator_sends_one_kind_of_the_common_ones),
		cmocka_unit_test(no_read_is_sent_where_the_reply_has_no_room_for_it),
		cmocka_unit_test(the_connection_model_is_the_initiators),
	};

	return cmocka_run_group_tests_name("negotiation", tests, NULL, NULL);
}
