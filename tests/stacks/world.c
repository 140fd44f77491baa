// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "world.h"

u8 world_octet(u32 off)
{
	return (u8)(off * 31 + 7);
}

static struct host_mr *filled(struct host_mr *mr)
{
	u32 i;

	assert_non_null(mr);
	for (i = 0; i < mr->r.len; i++)
		mr->mem[i] = world_octet(i);
	return mr;
}

static struct host_mr *region(struct world *w, u32 pd, u32 access)
{
	return filled(host_mr_new(&w->p->s.host, pd, WORLD_BASE, WORLD_LEN, access));
}

void world_init(struct world *w, const struct peer_cfg *c, enum wire_cut cut)
{
	u32 i;

	w->p = peer_new(c);
	w->p->cut = cut;
	w->rw = region(w, PD, RW);
	w->ronly = region(w, PD, WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_READ);
	w->wonly = region(w, PD, WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE);
	w->foreign = region(w, OTHER_PD, RW);
	w->inbox = region(w, PD, WEFT_ACCESS_LOCAL_WRITE);
	w->fast = filled(host_mr_new_fast(&w->p->s.host, PD, WORLD_BASE, WORLD_LEN));
	host_mr_bind(w->fast, w->p->s.qp, RW);
	for (i = 0; i < NRECV; i++)
		side_recv(&w->p->s, i, w->inbox, i * RECV_LEN, RECV_LEN);
}

void world_fini(struct world *w)
{
	peer_free(w->p);
}

static void run(world_case fn, bool dut_initiates, bool ext)
{
	enum wire_cut cut;
	struct peer_cfg c;
	struct world w;

	for (cut = WIRE_WHOLE; cut <= WIRE_BYTES; cut++) {
		peer_cfg_init(&c);
		c.dut_initiates = dut_initiates;
		c.side.link.ext = ext;
		world_init(&w, &c, cut);
		fn(&w);
		world_fini(&w);
	}
}

void world_run(void **state)
{
	run((world_case)*state, false, false);
}

void world_run_initiator(void **state)
{
	run((world_case)*state, true, false);
}

void world_run_ext(void **state)
{
	run((world_case)*state, true, true);
}

static void expect_as_filled(const struct host_mr *mr)
{
	u32 i;

	for (i = 0; i < mr->r.len; i++)
		if (mr->mem[i] != world_octet(i))
			fail_msg("octet %u of STag %08x was written", i, mr->r.stag);
}

void world_expect_untouched(struct world *w, const struct host_mr *but)
{
	struct host_mr *all[] = {
		w->rw, w->ronly, w->wonly, w->foreign, w->fast, w->inbox,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i] != but)
			expect_as_filled(all[i]);
}

void world_expect_flushed(struct world *w, u32 first)
{
	struct side *s = &w->p->s;

	expect_state(s, WEFT_QPS_ERROR);
	assert_int_equal(host_qp_count_events(s->qp, WEFT_EV_FLUSHED), 1);
	for (; first < NRECV; first++)
		expect_cqe(s->rcq, first, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(s->rcq);
}

static void says_so(struct world *w, struct pdu *bad, const u8 *lec, bool read,
		    const struct host_mr *but)
{
	static const char good[] = "must not be placed";
	struct pdu *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	*copy = *bad;
	peer_add(w->p, bad);
	/* A Read is checked when it is its turn to be answered, not on arrival. */
	if (read)
		peer_flush(w->p);
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, good, sizeof(good)));
	peer_flush(w->p);
	peer_expect_terminate(w->p, lec[0], lec[1], lec[2], copy, read);
	free(copy);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 1);
	world_expect_untouched(w, but);
}

static void refuses(struct world *w, struct pdu *bad, const u8 *lec, bool read, u32 first,
		    const struct host_mr *but)
{
	says_so(w, bad, lec, read, but);
	world_expect_flushed(w, first);
}

void world_refuses_too_long(struct world *w, struct pdu *bad, const struct host_mr *but)
{
	static const u8 lec[] = { 1, 2, 0x05 };

	says_so(w, bad, lec, false, but);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_LOC_LEN_ERR);
	world_expect_flushed(w, 1);
}

void world_refuses_after(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code,
			 u32 first, const struct host_mr *but)
{
	const u8 lec[] = { layer, etype, code };

	refuses(w, bad, lec, false, first, but);
}

void world_refuses(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code)
{
	world_refuses_after(w, bad, layer, etype, code, 0, NULL);
}

void world_refuses_read(struct world *w, struct pdu *bad, u8 code)
{
	const u8 lec[] = { 0, 1, code };

	refuses(w, bad, lec, true, 0, NULL);
}
