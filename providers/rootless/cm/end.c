// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ends a connection at the program's request. */
#include "id.h"
#include "judge/adverse.h"
#include "devices/limits.h"
#include "host/qp.h"
#include "process/options.h"

/* What InfiniBand's retries take at least. */
#define HOLD_MS		500

/*
 * On a RoCE device DISCONNECTED means that an end has disconnected, or is gone. A QP that fails has
 * no part in it; one that is destroyed, after this time.
 */
void rl_cm_configure(const struct rl_conn *c, struct weft_link_cfg *cfg)
{
	if (rl_options()->roce)
		cfg->hold_ms = HOLD_MS;
	if (rl_is_adverse)
		cfg->rnr_ms = c->rnr_ms;
}

static void end_hang_up(struct rl_conn *c)
{
	struct weft_tcp_view v;

	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_hang_up(&c->link, &v, rl_now_ms()));
	c->step_due = true;
}

int rl_cm_disconnect(struct rl_cmid *id)
{
	struct rl_conn *c;

	if (id->phase != RL_CM_CONNECT && id->phase != RL_CM_REQUEST && id->phase != RL_CM_ANSWERED)
		return -EINVAL;
	c = rl_cmid_lock_conn(id);
	if (!c)
		return 0;
	end_hang_up(c);
	if (c->link.state == WEFT_LINK_OPEN &&
	    weft_qpc_move(c->link.qp, WEFT_VS_SQD) == WEFT_QP_CLOSE) {
		weft_qpc_close(c->link.qp);
		c->tx_due = true;
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	return 0;
}

/* An open connection that neither end has closed yet ends abruptly. */
static void fail_open_qp(struct rl_conn *c)
{
	if (weft_qpc_verbs_state(c->link.qp) != WEFT_VS_RTS || c->link.peer_fin)
		return;
	weft_qpc_error(c->link.qp);
	c->step_due = true;
}

static void end_in_state(struct rl_conn *c)
{
	switch (c->link.state) {
	case WEFT_LINK_REQUESTED:
		rl_cm_refuse(c, NULL, 0);
		break;
	case WEFT_LINK_OPEN:
		rl_cmid_leave(c);
		fail_open_qp(c);
		end_hang_up(c);
		break;
	case WEFT_LINK_HELD:
		rl_cmid_leave(c);
		end_hang_up(c);
		break;
	default:
		rl_cmid_leave(c);
		rl_conn_abandon(c);
		break;
	}
}

void rl_cm_end_connection(struct rl_cmid *id)
{
	struct rl_conn *c = rl_cmid_lock_conn(id);

	if (!c)
		return;
	end_in_state(c);
	rl_conn_unlock(c);
	rl_conn_put(c);
}
