// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sys/ioctl.h>

#include "process/file.h"
#include "process/raw.h"
#include "ulp.h"

/* Between looks at a connection that is to be left to the kernel. */
#define LEAVE_MS	20
#define LEAVE_MS_MAX	1000

/* ---- start-up ---- */

void rl_ulp_start(struct rl_conn *c, struct rl_qp *qp, struct weft_offer *o,
		  const struct rl_ulp_terms *t)
{
	rl_conn_configure(c);
	if (!c->link.st.initiator) {
		weft_link_await_request(&c->link, rl_now_ms());
		return;
	}
	weft_offer_init(o, &c->link.cfg.mpa, t->reads, t->reads, t->pd, t->pd_len);
	rl_conn_attach(c, qp);
	weft_link_connect(&c->link, o, rl_now_ms());
	c->step_due = true;
}

int rl_ulp_accept(struct rl_conn *c, struct rl_qp *qp, const struct rl_ulp_terms *t)
{
	int rv = rl_conn_accept(c, qp, t->reads, t->reads, t->pd, t->pd_len);

	if (rv)
		rl_conn_release_qp(c);
	return rv;
}

void rl_ulp_reject(struct rl_conn *c, const struct rl_ulp_terms *t)
{
	if (t)
		rl_conn_reject(c, t->pd, t->pd_len);
	else
		rl_conn_accept_failed(c);
	rl_conn_watch(c);
}

void rl_ulp_withdraw(struct rl_conn *c, int err)
{
	if (c->link.st.initiator)
		rl_conn_withdraw(c, err);
	else
		rl_conn_act(c, weft_link_kill(&c->link));
}

void rl_ulp_unwatch(struct rl_conn *c)
{
	c->watching = false;
	rl_conn_leave_poller(c);
}

/* ---- the QP ---- */

void rl_ulp_init_qp(struct rl_qp *qp)
{
	weft_qpc_init(&qp->core);
}

void rl_ulp_divert(struct rl_qp *qp, const struct weft_sge *sge, u32 n)
{
	weft_rq_divert(&qp->core, sge, n);
}

struct keeping {
	struct rl_qp *qp;
	void *mem;
	u32 room;
	bool done;
};

static void keep(void *arg)
{
	struct keeping *k = arg;

	k->done = weft_sq_keep(&k->qp->core, k->mem, k->room, 0);
}

bool rl_ulp_keep(struct rl_qp *qp, void *mem, u32 room)
{
	struct keeping k = { .qp = qp, .mem = mem, .room = room };

	return rl_guard_run(keep, &k) && k.done;
}

void rl_ulp_end(struct rl_qp *qp, bool well)
{
	if (well)
		weft_qpc_close(&qp->core);
	else
		weft_qpc_fail(&qp->core, WEFT_E_RDMAP_UNSPECIFIED, NULL);
}

/* close() of a socket that lingers would block, or reset it. */
static bool close_lingers(const struct rl_conn *c)
{
	struct linger l = {};
	socklen_t len = sizeof(l);

	rl_raw(SYS_getsockopt, c->fd, SOL_SOCKET, SO_LINGER, &l, &len);
	return l.l_onoff;
}

/* Unread octets would make close() reset the connection. */
static bool has_unread(const struct rl_conn *c)
{
	int n = 0;

	return c->unread || c->rest || rl_raw(SYS_ioctl, c->fd, FIONREAD, &n) || n;
}

/* The peer's TCP has all, or @early, and close() sends no RST. */
static bool may_leave(struct rl_conn *c, bool early)
{
	struct weft_tcp_view v;

	rl_conn_view(c, &v);
	return (v.delivered || (early && !v.closed)) && !has_unread(c) && !close_lingers(c) &&
	       c->owner == getpid();
}

static bool has_ended_well(const struct rl_conn *c)
{
	return c->link.state == WEFT_LINK_OPEN && c->link.shut && !c->fin && !c->reset;
}

bool rl_ulp_leave_now(struct rl_conn *c, bool early)
{
	if (!has_ended_well(c) || !may_leave(c, early))
		return false;
	c->left = true;
	rl_conn_act(c, weft_link_kill(&c->link));
	return true;
}

/* An acknowledgement wakes no poller. Most peers close before the first look. */
void rl_ulp_leave(struct rl_conn *c)
{
	if (!has_ended_well(c) || c->answer_by || (c->leave_ms && rl_ulp_leave_now(c, false)))
		return;
	c->leave_ms = min_t(u32, max_t(u32, 2 * c->leave_ms, LEAVE_MS), LEAVE_MS_MAX);
	c->answer_by = rl_now_ms() + c->leave_ms;
}

void rl_ulp_flush(struct rl_qp *qp)
{
	weft_qpc_error(&qp->core);
	rl_qp_flush(qp);
}

void rl_ulp_end_run(struct rl_qp *qp)
{
	weft_region_end_run(&qp->core);
}

void rl_ulp_drop_receives(struct rl_conn *c)
{
	struct weft_qpc *qp = &c->qp->core;
	const struct weft_sge none = {};

	qp->rq.q.slots = 0;
	if (qp->recv_active)
		weft_rq_divert(qp, &none, 1);
	if (!qp->rx_waits)
		return;
	qp->rx_overdue = true;
	weft_link_rx_resume(&c->link);
	weft_region_end_run(qp);
}
