// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reports of a connection to its id, and so to the program. With the connection's lock. */
#include "id.h"
#include "host/qp.h"
#include "process/options.h"

/* An event has room for a u8. */
u8 rl_cm_depth(u16 d, u32 most)
{
	return (u8)min_t(u32, d == WEFT_MPA_NO_NEGOTIATION ? most : d, 255);
}

int rl_cm_report(struct rl_conn *c, struct rl_cm_event_data *w)
{
	return c->user ? rl_cmid_report(c->user, w) : 0;
}

int rl_cm_report_established(struct rl_conn *c, enum rl_cm_event event, const u8 *pd, u32 pd_len)
{
	struct rl_cm_event_data w = { .event = event, .pd = pd, .pd_len = pd_len };
	const struct rl_cmid *id = c->user;
	const struct rl_profile *p;

	if (!id)
		return 0;
	p = id->dev->about;
	w.initiator_depth = rl_cm_depth(c->link.st.agreed.ird, p->max_qp_init_rd_atom);
	w.responder_resources = rl_cm_depth(c->link.st.agreed.ord, p->max_qp_rd_atom);
	return rl_cm_report(c, &w);
}

static enum rl_cm_event failure_event(int status)
{
	switch (status) {
	case -ECONNRESET:
	case -ECONNREFUSED:
		return RL_CM_REJECTED;
	case -ETIMEDOUT:
		return RL_CM_UNREACHABLE;
	default:
		return RL_CM_CONNECT_ERROR;
	}
}

/* InfiniBand's reasons of a REJ (12.6.7.2). */
#define REJ_INVALID_SERVICE_ID	8
#define REJ_CONSUMER_DEFINED	28

/* On a RoCE device the status of REJECTED is InfiniBand's reason: does no program listen there? */
static int failure_status(const struct weft_link *l)
{
	if (!rl_options()->roce || failure_event(l->status) != RL_CM_REJECTED)
		return l->status;
	return l->status == -ECONNREFUSED && l->rx_event != WEFT_RX_STARTUP ?
		REJ_INVALID_SERVICE_ID : REJ_CONSUMER_DEFINED;
}

void rl_cm_report_failed(struct rl_conn *c)
{
	const struct weft_link *l = &c->link;
	bool refused = l->status == -ECONNREFUSED && l->rx_event == WEFT_RX_STARTUP;
	struct rl_cm_event_data w = {
		.event = failure_event(l->status),
		.status = failure_status(l),
		.pd = l->st.pd,
		.pd_len = refused ? l->st.frame.pd_len : 0,
	};

	rl_cm_report(c, &w);
	rl_cmid_leave(c);
}

void rl_cm_report_ended(struct rl_conn *c)
{
	struct rl_cm_event_data w = { .event = RL_CM_DISCONNECTED };

	rl_cm_report(c, &w);
	rl_cmid_leave(c);
}

/* The program learns of an unanswered Request when it answers. */
void rl_cm_report_dead(struct rl_conn *c)
{
	rl_cmid_leave(c);
}
