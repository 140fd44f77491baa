// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection's life, its lock, and the steps of its link. */
#include <stdlib.h>

#include "accept.h"
#include "budget.h"
#include "conn.h"
#include "judge/adverse.h"
#include "process/file.h"
#include "process/guard.h"
#include "process/options.h"
#include "process/raw.h"
#include "record/fpdus.h"
#include "devices/limits.h"
#include "ulp.h"

/* After so many rounds of due work, the progress thread does the rest. */
#define ROUNDS 64

static const struct rl_watch_ops conn_watch_ops;

/* ---- life ---- */

struct rl_conn *rl_conn_new(const struct rl_device *dev, bool initiator, int fd,
			    const struct rl_conn_ulp *ulp)
{
	struct rl_conn *c = calloc(1, sizeof(*c));

	fd = rl_fd_hide(fd);
	if (!c || fd < 0) {
		if (fd >= 0)
			rl_fd_close_hidden(fd);
		free(c);
		return NULL;
	}
	rl_watch_init(&c->watch, &conn_watch_ops);
	c->dev = dev;
	c->ulp = ulp;
	c->fd = c->send_fd = fd;
	c->retry_ms = ulp->retry_ms;
	c->kept_fd = -1;
	c->connecting = initiator;
	c->owner = getpid();
	rl_conn_set_up_socket(c);
	weft_link_init(&c->link, initiator);
	rl_lock(&c->lock);
	if (!rl_watch_begin(&c->watch)) {
		if (rl_is_adverse)
			c->read_apart |= RL_READ_ADVERSE;
		rl_conn_begin_record(c);
		rl_conn_update_cable(c);
		return c;
	}
	rl_conn_close(c);
	rl_unlock(&c->lock);
	rl_conn_put(c);
	return NULL;
}

static struct rl_conn *conn_of(struct rl_watch *w)
{
	return container_of(w, struct rl_conn, watch);
}

static void conn_release(struct rl_watch *w)
{
	struct rl_conn *c = conn_of(w);
	void *chunk;

	if (c->kept_fd >= 0)
		rl_fd_close_hidden(c->kept_fd);
	while ((chunk = weft_stream_reclaim(&c->link.st, true)))
		free(chunk);
	free(weft_batch_reclaim(&c->link.batch, true));
	rl_conn_drop_rest(c);
	rl_recorded_free(c->recorded);
	free(c->link.offer);
	free(c->link.orq);
	free(c->link.irq);
	free(c);
}

/* ---- steps ---- */

void rl_conn_base_cfg(struct weft_mpa_cfg *cfg)
{
	const struct rl_options *o = rl_options();

	*cfg = (struct weft_mpa_cfg){
		.rev = o->mpa_rev,
		.crc = o->crc,
		.markers = o->markers,
		.p2p = o->rtr,
		.rtr = o->rtr,
		.ird = RL_MAX_IRD,
		.ord = RL_MAX_ORD,
	};
}

void rl_conn_configure(struct rl_conn *c)
{
	struct weft_link_cfg *cfg = &c->link.cfg;

	rl_conn_base_cfg(&cfg->mpa);
	cfg->startup_ms = rl_options()->startup_ms;
	cfg->accept_ms = rl_options()->accept_ms;
	cfg->close_ms = rl_options()->close_ms;
	cfg->dead_ms = rl_options()->dead_peer_ms;
	cfg->rnr_ms = rl_options()->rnr_ms;
	cfg->pd_max = 255;
	cfg->part_min = WEFT_PART_MIN;
	cfg->ext = rl_options()->extensions;
	cfg->large_fpdus = rl_options()->large_fpdus;
	if (c->ulp->configure)
		c->ulp->configure(c, cfg);
}

static void conn_die(struct rl_conn *c)
{
	c->ulp->dead(c);
	rl_acceptor_remove_half_open(c);
	rl_budget_leave(c);
	rl_conn_close(c);
	rl_watch_end(&c->watch);
}

void rl_conn_act(struct rl_conn *c, u32 acts)
{
	if (acts & WEFT_ACT_RELEASE_QP)
		rl_conn_release_qp(c);
	if (acts & WEFT_ACT_FAILED)
		c->ulp->failed(c);
	if (acts & WEFT_ACT_CONNECTED)
		c->ulp->connected(c);
	if (acts & WEFT_ACT_RETRY && c->ulp->reconnect)
		c->ulp->reconnect(c);
	else if (acts & WEFT_ACT_RETRY)
		rl_conn_act(c, weft_link_connect_failed(&c->link, -ECONNRESET));
	if (acts & WEFT_ACT_ASK_ULP)
		c->ulp->request(c);
	if (acts & WEFT_ACT_ENDED)
		c->ulp->ended(c);
	/* The peer may keep its end. */
	if (acts & WEFT_ACT_ENDED && c->link.state == WEFT_LINK_CLOSING && c->fd >= 0)
		rl_budget_enter(c);
	if (acts & WEFT_ACT_SHUT && c->fd >= 0 &&
	    !(c->cable && rl_cables->shut(c)))
		rl_raw(SYS_shutdown, c->fd, SHUT_WR);
	if (acts & WEFT_ACT_DIE)
		conn_die(c);
	if (acts & WEFT_ACT_AGAIN)
		c->step_due = true;
}

int rl_conn_accept(struct rl_conn *c, struct rl_qp *qp, u32 ird, u32 ord, const void *pd,
		   u32 pd_len)
{
	struct weft_tcp_view v;
	int rv;

	rl_conn_configure(c);
	rl_conn_view(c, &v);
	rv = rl_conn_attach(c, qp);
	return rv ? rv : weft_link_accept(&c->link, ird, ord, pd, pd_len, &v, rl_now_ms());
}

void rl_conn_accept_failed(struct rl_conn *c)
{
	struct weft_tcp_view v;

	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_accept_failed(&c->link, &v, rl_now_ms()));
}

void rl_conn_reject(struct rl_conn *c, const void *pd, u32 pd_len)
{
	struct weft_tcp_view v;

	/* The peer may keep its end. */
	if (!c->link.st.initiator && c->fd >= 0)
		rl_budget_enter(c);
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_reject(&c->link, pd, pd_len, &v, rl_now_ms()));
}

void rl_conn_withdraw(struct rl_conn *c, int err)
{
	struct weft_tcp_view v;

	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_withdraw(&c->link, err, &v, rl_now_ms()));
}

struct step {
	struct rl_conn *c;
	struct weft_tcp_view view;
	u32 acts;
};

/* It may send from memory that vanishes meanwhile. */
static void step_link(void *arg)
{
	struct step *s = arg;

	s->acts = weft_link_step(&s->c->link, &s->view, rl_now_ms());
}

static void conn_step(struct rl_conn *c)
{
	struct step s = { .c = c };

	if (c->link.state == WEFT_LINK_DEAD)
		return;
	rl_conn_configure(c);
	rl_conn_set_keepalive(c);
	/* A FIN may be in the view whose octets have not been read. */
	if (!c->connecting)
		rl_conn_receive(c);
	rl_conn_view(c, &s.view);
	if (!rl_guard_run(step_link, &s)) {
		rl_conn_break_off(c);
		return;
	}
	/* Drop the run's references: dereg_mr would wait for the next run. */
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
	rl_conn_act(c, s.acts);
}

void rl_conn_abandon(struct rl_conn *c)
{
	c->user = NULL;
	if (c->link.state < WEFT_LINK_OPEN)
		rl_conn_act(c, weft_link_kill(&c->link));
}

/* ---- the lock ---- */

static bool run_one_due(struct rl_conn *c)
{
	if (c->tx_due) {
		c->tx_due = false;
		rl_conn_tx(c);
		return true;
	}
	if (c->step_due) {
		c->step_due = false;
		conn_step(c);
		return true;
	}
	return false;
}

void rl_conn_settle(struct rl_conn *c)
{
	u32 i;

	for (i = 0; i < ROUNDS && run_one_due(c); i++)
		;
}

void rl_conn_unlock(struct rl_conn *c)
{
	u64 deadline;

	if (c->tx_due || c->step_due)
		rl_conn_settle(c);
	if (unlikely(c->ulp->settled))
		c->ulp->settled(c);
	if (c->qp)
		rl_qp_report_drained(c->qp);
	if (c->watching)
		rl_conn_update_poller(c);
	deadline = weft_earlier(weft_earlier(weft_link_next_step(&c->link), c->linger_until),
				weft_earlier(c->answer_by, c->polled_until));
	if (c->tx_due || c->step_due || c->unread)
		deadline = RL_SOON;
	if (c->link.state == WEFT_LINK_DEAD)
		deadline = 0;
	if (deadline != READ_ONCE(c->watch.deadline))
		rl_watch_set_deadline(&c->watch, deadline);
	/* The deadline of a concurrent poke may just have been overwritten. */
	if (unlikely(__atomic_load_n(&c->poked, __ATOMIC_SEQ_CST)))
		rl_watch_poke(&c->watch);
	rl_unlock(&c->lock);
}

void rl_conn_poke(struct rl_conn *c)
{
	__atomic_store_n(&c->poked, true, __ATOMIC_SEQ_CST);
	rl_watch_poke(&c->watch);
}

struct rl_conn *rl_conn_of_watch(struct rl_watch *w)
{
	return w->ops == &conn_watch_ops ? conn_of(w) : NULL;
}

struct rl_conn *rl_conn_find(u32 key)
{
	struct rl_watch *w = rl_watch_find(key);

	if (!w)
		return NULL;
	/* A late event: another watch has the key by now. */
	if (w->ops != &conn_watch_ops) {
		rl_watch_put(w);
		return NULL;
	}
	rl_conn_lock(conn_of(w));
	return conn_of(w);
}

/* ---- the progress thread's calls ---- */

void rl_conn_handle_events(struct rl_conn *c, u32 events)
{
	if (c->fd < 0)
		return;
	if (c->connecting) {
		rl_conn_finish_connect(c);
		return;
	}
	if (events & EPOLLOUT && c->full) {
		c->full = false;
		c->tx_due = true;
	}
	if (events & ~EPOLLOUT && c->ulp->readable)
		c->ulp->readable(c);
	if (events & ~EPOLLOUT)
		rl_conn_receive(c);
	/* There may be nothing to read, and no further event. */
	if (events & (EPOLLERR | EPOLLHUP))
		c->step_due = true;
}

static void conn_ready(struct rl_watch *w, u32 events)
{
	struct rl_conn *c = conn_of(w);

	rl_conn_lock(c);
	rl_conn_handle_events(c, events);
	rl_conn_unlock(c);
}

/* In a child: it stays with the parent's thread, whatever deadline was inherited. */
static bool stays_with_parent(const struct rl_conn *c)
{
	return c->ulp->stays_with_thread && c->owner != getpid();
}

static void conn_timeout(struct rl_watch *w)
{
	struct rl_conn *c = conn_of(w);
	u64 now = rl_now_ms(), next;

	if (stays_with_parent(c))
		return;
	rl_conn_lock(c);
	if (c->unread)
		rl_conn_receive(c);
	if (__atomic_exchange_n(&c->poked, false, __ATOMIC_SEQ_CST) ||
	    (c->linger_until && c->linger_until <= now))
		c->tx_due = true;
	if (c->answer_by && c->answer_by <= now) {
		c->tx_due |= c->answer_due;
		c->answer_by = 0;
	}
	if (c->polled_until <= now)
		c->polled_until = 0;
	next = weft_link_next_step(&c->link);
	if (next && next <= now)
		c->step_due = true;
	if (c->ulp->tick)
		c->ulp->tick(c);
	rl_conn_unlock(c);
}

static void conn_revive(struct rl_watch *w)
{
	struct rl_conn *c = conn_of(w);

	if (c->ulp->stays_with_thread)
		return;
	rl_conn_lock(c);
	c->owner = getpid();
	if (c->poller == RL_POLLER_THREAD)
		c->poller = RL_POLLER_NONE;
	rl_conn_update_cable(c);
	rl_conn_unlock(c);
}

static const struct rl_watch_ops conn_watch_ops = {
	.revive = conn_revive,
	.ready = conn_ready,
	.timeout = conn_timeout,
	.release = conn_release,
};
