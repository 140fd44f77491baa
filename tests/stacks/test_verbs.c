// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP's state, moves and events as seen by verbs. */
#include "world.h"

/* A QP without a connection whose verbs state is @state. */
static struct weft_qpc qp_in(enum weft_verbs_state state)
{
	struct weft_qpc qp = {};

	switch (state) {
	case WEFT_VS_RTS:
		qp.state = WEFT_QPS_RTS;
		break;
	case WEFT_VS_SQD:
		qp.state = WEFT_QPS_CLOSING;
		break;
	case WEFT_VS_ERR:
		qp.state = WEFT_QPS_ERROR;
		break;
	default:
		qp.named = state;
		break;
	}
	assert_int_equal(weft_qpc_verbs_state(&qp), state);
	return qp;
}

static void each_move_is_allowed_from_where_it_should_be(void **state)
{
	static const enum weft_verbs_state states[] = {
		WEFT_VS_RESET, WEFT_VS_INIT, WEFT_VS_RTR, WEFT_VS_RTS, WEFT_VS_SQD, WEFT_VS_ERR,
	};
	/* Row: from; column: to. */
	static const char *const want[] = {
		/* RESET */	"rd---f",
		/* INIT */	"rdd--f",
		/* RTR */	"r-d--f",
		/* RTS */	"---dcf",
		/* SQD */	"----df",
		/* ERR */	"r---df",
	};
	static const char names[] = {
		[WEFT_QP_REFUSED] = '-', [WEFT_QP_DONE] = 'd', [WEFT_QP_RESET] = 'r',
		[WEFT_QP_CLOSE] = 'c', [WEFT_QP_FAIL] = 'f',
	};
	u32 from, to;

	for (from = 0; from < ARRAY_SIZE(states); from++) {
		for (to = 0; to < ARRAY_SIZE(states); to++) {
			struct weft_qpc qp = qp_in(states[from]);

			assert_int_equal(names[weft_qpc_move(&qp, states[to])], want[from][to]);
		}
	}
}

static void a_state_that_does_not_exist_is_refused(void **state)
{
	static const u32 none[] = { 5, 7, 8, 255, 0xFFFFFFFF };
	struct weft_qpc qp = qp_in(WEFT_VS_INIT);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(weft_qpc_move(&qp, none[i]), WEFT_QP_REFUSED);
	assert_int_equal(weft_qpc_verbs_state(&qp), WEFT_VS_INIT);
}

static void init_and_rtr_are_names_that_stay_until_a_reset(void **state)
{
	struct side_cfg c;
	struct weft_qpc *qp;
	struct side s;

	side_cfg_init(&c);
	side_init(&s, false, &c);
	qp = &s.qp->core;
	/* A new QP shows the state that its first move would give it. */
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_INIT);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_RESET), WEFT_QP_RESET);
	weft_qpc_reset(qp);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RESET);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_RTR), WEFT_QP_REFUSED);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RESET);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_INIT), WEFT_QP_DONE);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_INIT);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_RTR), WEFT_QP_DONE);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RTR);
	expect_state(&s, WEFT_QPS_IDLE);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_RESET), WEFT_QP_RESET);
	weft_qpc_reset(qp);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RESET);
	side_fini(&s);
}

static void expect_verbs(const struct side *s, enum weft_verbs_state state)
{
	assert_int_equal(weft_qpc_verbs_state(&s->qp->core), state);
}

/* A state set before the connection is not shown while it lives, nor after. */
static void a_connection_leads_what_verbs_show(void **state)
{
	struct pair_cfg c;
	struct pair p;
	struct weft_qpc *qp;

	pair_cfg_init(&c);
	pair_init(&p, &c);
	qp = &p.s[0].qp->core;
	weft_qpc_move(qp, WEFT_VS_INIT);
	pair_run(&p);
	expect_verbs(&p.s[0], WEFT_VS_RTS);
	expect_verbs(&p.s[1], WEFT_VS_RTS);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_RTS), WEFT_QP_DONE);
	assert_int_equal(qp->named, WEFT_VS_INIT);
	assert_int_equal(weft_qpc_move(qp, WEFT_VS_SQD), WEFT_QP_CLOSE);
	weft_qpc_close(qp);
	expect_verbs(&p.s[0], WEFT_VS_SQD);
	weft_qpc_fail(qp, WEFT_E_RDMAP_LOCAL, NULL);
	expect_state(&p.s[0], WEFT_QPS_TERM);
	expect_verbs(&p.s[0], WEFT_VS_ERR);
	pair_run(&p);
	expect_verbs(&p.s[0], WEFT_VS_ERR);
	expect_verbs(&p.s[1], WEFT_VS_ERR);
	pair_fini(&p);
}

/* ---- events ---- */

static const struct {
	enum weft_err error;
	u8 layer, etype;
	enum weft_qp_fault fault;
} faults[] = {
	{ WEFT_E_MPA_CRC,		2, 0, WEFT_FAULT_FATAL },
	{ WEFT_E_MPA_MARKER,		2, 0, WEFT_FAULT_FATAL },
	{ WEFT_E_DDP_LOCAL,		1, 0, WEFT_FAULT_REQUEST },
	{ WEFT_E_DDP_STAG,		1, 1, WEFT_FAULT_ACCESS },
	{ WEFT_E_DDP_NO_BUFFER,		1, 2, WEFT_FAULT_REQUEST },
	{ WEFT_E_RDMAP_LOCAL,		0, 0, WEFT_FAULT_FATAL },
	{ WEFT_E_RDMAP_ACCESS,		0, 1, WEFT_FAULT_ACCESS },
	{ WEFT_E_RDMAP_PROT_CANT_INV,	0, 1, WEFT_FAULT_ACCESS },
	{ WEFT_E_RDMAP_OPCODE,		0, 2, WEFT_FAULT_REQUEST },
	{ WEFT_E_RDMAP_CANT_INV,	0, 2, WEFT_FAULT_REQUEST },
};

static void an_error_of_ours_names_its_event(void **state)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		struct pair_cfg c;
		struct pair p;

		pair_cfg_init(&c);
		pair_init(&p, &c);
		pair_run(&p);
		weft_qpc_fail(&p.s[0].qp->core, faults[i].error, NULL);
		assert_int_equal(weft_qpc_fault(&p.s[0].qp->core), faults[i].fault);
		assert_int_equal(host_qp_count_events(p.s[0].qp, WEFT_EV_FLUSHED), 1);
		/* The peer reports the same. */
		pair_run(&p);
		assert_int_equal(weft_qpc_fault(&p.s[1].qp->core), faults[i].fault);
		assert_int_equal(host_qp_count_events(p.s[1].qp, WEFT_EV_FLUSHED), 1);
		pair_fini(&p);
	}
}

/* The peer's Terminate counts, whatever its code, and before an error of our own. */
static void a_terminate_received_names_its_event(void **state)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		struct weft_qpc qp = {
			.state = WEFT_QPS_ERROR,
			.error = faults[i].fault == WEFT_FAULT_FATAL ? WEFT_E_RDMAP_ACCESS :
								       WEFT_E_MPA_CRC,
			.term_received = true,
			.term_in = { .layer = faults[i].layer, .etype = faults[i].etype },
		};

		assert_int_equal(weft_qpc_fault(&qp), faults[i].fault);
		qp.term_in.etype = 0xF;
		assert_int_equal(weft_qpc_fault(&qp), faults[i].layer == 1 ? WEFT_FAULT_REQUEST :
									     WEFT_FAULT_FATAL);
	}
}

static void a_qp_that_was_closed_has_no_fault(void **state)
{
	struct pair_cfg c;
	struct pair p;

	pair_cfg_init(&c);
	pair_init(&p, &c);
	assert_int_equal(weft_qpc_fault(&p.s[0].qp->core), WEFT_FAULT_NONE);
	pair_run(&p);
	host_link_close(&p.s[0].link);
	pair_run(&p);
	expect_state(&p.s[0], WEFT_QPS_ERROR);
	assert_int_equal(weft_qpc_fault(&p.s[0].qp->core), WEFT_FAULT_NONE);
	assert_int_equal(weft_qpc_fault(&p.s[1].qp->core), WEFT_FAULT_NONE);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_move_is_allowed_from_where_it_should_be),
		cmocka_unit_test(a_state_that_does_not_exist_is_refused),
		cmocka_unit_test(init_and_rtr_are_names_that_stay_until_a_reset),
		cmocka_unit_test(a_connection_leads_what_verbs_show),
		cmocka_unit_test(an_error_of_ours_names_its_event),
		cmocka_unit_test(a_terminate_received_names_its_event),
		cmocka_unit_test(a_qp_that_was_closed_has_no_fault),
	};

	return RUN_TESTS("stacks: verbs", tests);
}
