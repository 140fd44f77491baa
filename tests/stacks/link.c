// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "link.h"

/* ---- what core requires of its host ---- */

static struct host_link *to_host_link(struct weft_link *l)
{
	return container_of(l, struct host_link, core);
}

void weft_host_wake(struct weft_link *core)
{
	to_host_link(core)->step_due = true;
	to_host_link(core)->wakes++;
}

/* Blocks of exactly that size, so that the sanitizer sees an access beyond the last entry. */
bool weft_host_lend_depths(struct weft_link *core, u32 ord, u32 irq_slots)
{
	struct host_link *l = to_host_link(core);

	HOST_ASSERT(!l->orq && !l->irq && irq_slots);
	l->orq = ord ? calloc(ord, sizeof(*l->orq)) : NULL;
	l->irq = calloc(irq_slots, sizeof(*l->irq));
	HOST_ASSERT((l->orq || !ord) && l->irq);
	core->orq = l->orq;
	core->irq = l->irq;
	return true;
}

/*
 * Links of batch 1 run one batch at a time, for tests that look between batches. The others do so
 * every other run.
 */
static bool one_batch_a_run(const struct host_link *l)
{
	return l->cfg.batch == 1 || l->runs & 1;
}

void weft_host_tcp_tail(struct weft_link *core, struct weft_tcp_tail *tail)
{
	struct host_link *l = to_host_link(core);

	l->ops->tail(l->arg, tail);
	if (l->tails++ && one_batch_a_run(l))
		tail->room = 0;
	if (l->reset)
		tail->room = 1;
}

/* The flags of piece @i of @n: a segment begins before the first, ends after the last. */
static u32 flags_of(u32 flags, u32 i, u32 n)
{
	if (i)
		flags &= ~(u32)WEFT_SEND_FRESH;
	if (i + 1 < n)
		flags = (flags & ~(u32)WEFT_SEND_EOR) | WEFT_SEND_MORE;
	return flags;
}

s32 weft_host_send(struct weft_link *core, const struct weft_iov *iov, u32 niov, u32 len, u32 flags)
{
	struct host_link *l = to_host_link(core);
	u32 i, sum = 0, taken = 0;

	HOST_ASSERT(!l->tx_closed && len);
	for (i = 0; i < niov; i++)
		sum += (u32)iov[i].len;
	HOST_ASSERT(sum == len);
	l->with_refs += niov > 1;
	if (l->reset || l->refuses)
		return -EPIPE;
	for (i = 0; i < niov; i++) {
		size_t n = l->ops->write(l->arg, iov[i].base, iov[i].len, flags_of(flags, i, niov));

		HOST_ASSERT(n <= iov[i].len);
		taken += (u32)n;
		if (n < iov[i].len)
			break;
	}
	l->written += taken;
	return (s32)taken;
}

void weft_host_await_room(struct weft_link *core)
{
	to_host_link(core)->await_room = true;
}

/* From batch 16 on the memory is large enough to refer to payload. */
void *weft_host_lend_batch(struct weft_link *core, u32 *size)
{
	struct host_link *l = to_host_link(core);

	HOST_ASSERT(!l->batch);
	if (l->memory_fails) {
		l->memory_fails--;
		l->qp->kicked = true;
		return NULL;
	}
	*size = max_t(u32, l->cfg.batch * 2048, WEFT_BATCH_MEM_MIN);
	l->batch_size = *size;
	l->batch = malloc(*size);
	HOST_ASSERT(l->batch);
	/* What core does not fill in must not be read. */
	memset(l->batch, 0x5A, *size);
	return l->batch;
}

/* Exactly as much as requested, unless the test sets rest_spare. */
void *weft_host_lend_rest(struct weft_link *core, u32 *size)
{
	struct host_link *l = to_host_link(core);

	HOST_ASSERT(l->batch && !l->rest && *size < l->batch_size);
	if (l->rest_fails)
		return NULL;
	*size += l->cfg.rest_spare;
	l->rests++;
	l->rest = l->batch;
	l->rest_size = l->batch_size;
	l->batch_size = *size;
	l->batch = malloc(*size);
	HOST_ASSERT(l->batch);
	memset(l->batch, 0x5A, *size);
	return l->batch;
}

void weft_host_reclaim_batch(struct weft_link *core, void *mem, u32 size)
{
	struct host_link *l = to_host_link(core);
	bool moved = l->rest;
	void **which = moved ? &l->rest : &l->batch;

	HOST_ASSERT(mem == *which && size == (moved ? l->rest_size : l->batch_size));
	free(mem);
	*which = NULL;
}

/* ---- what core promises ---- */

#define ONCE (WEFT_ACT_FAILED | WEFT_ACT_CONNECTED | WEFT_ACT_RETRY | WEFT_ACT_ASK_ULP | \
	      WEFT_ACT_DISCONNECTED | WEFT_ACT_ENDED | WEFT_ACT_SHUT | WEFT_ACT_DIE | \
	      WEFT_ACT_QP_OVER)

static void check_acts(const struct host_link *l, u32 acts)
{
	u32 told = l->acts | acts;
	bool initiator = l->core.st.initiator;

	HOST_ASSERT(!(l->acts & acts & ONCE));
	/* No action follows the end; WEFT_ACT_DIE and the state DEAD go together. */
	HOST_ASSERT(!acts || !(l->acts & WEFT_ACT_DIE));
	HOST_ASSERT(!(told & WEFT_ACT_DIE) == (l->core.state != WEFT_LINK_DEAD));
	/* Each role has its own actions. */
	HOST_ASSERT(!(acts & (initiator ? WEFT_ACT_ASK_ULP : WEFT_ACT_FAILED | WEFT_ACT_CONNECTED |
			      WEFT_ACT_RETRY)));
	/* Either start-up fails, or there is a connection to end. */
	if (acts & (WEFT_ACT_DISCONNECTED | WEFT_ACT_ENDED))
		HOST_ASSERT(told & (initiator ? WEFT_ACT_CONNECTED : WEFT_ACT_ASK_ULP) &&
			    !(told & WEFT_ACT_FAILED));
	if (acts & WEFT_ACT_DISCONNECTED)
		HOST_ASSERT(!(l->acts & WEFT_ACT_ENDED) && l->rx_closed);
	/* A QP is released only while there is one, in a state that ends without it or is held. */
	if (acts & WEFT_ACT_RELEASE_QP)
		HOST_ASSERT(l->core.qp || (l->acts & WEFT_ACT_QP_OVER && acts & WEFT_ACT_ENDED));
	if (acts & WEFT_ACT_RELEASE_QP)
		HOST_ASSERT(host_link_is_over(l) || (acts & WEFT_ACT_QP_OVER));
	HOST_ASSERT(l->core.state != WEFT_LINK_HELD || (l->cfg.hold_ms && !(told & WEFT_ACT_SHUT)));
	/* FIN is sent after the last octet. */
	if (acts & WEFT_ACT_SHUT)
		HOST_ASSERT(weft_send_is_done(&l->core));
}

/* ---- what core wants done ---- */

static void take_memory_back(struct host_link *l)
{
	void *mem = weft_batch_reclaim(&l->core.batch, true);

	if (mem)
		weft_host_reclaim_batch(&l->core, mem, l->core.batch.lent);
}

static void die(struct host_link *l)
{
	l->await_room = false;
	take_memory_back(l);
	if (!l->reset && !(l->rx_closed && l->tx_closed))
		l->ops->abort(l->arg);
}

static void obey(struct host_link *l, u32 acts)
{
	check_acts(l, acts);
	l->acts |= acts;
	l->last_acts = acts;
	if (acts & WEFT_ACT_RELEASE_QP && l->core.qp)
		weft_link_release_qp(&l->core);
	if (acts & WEFT_ACT_RETRY && !l->cfg.hold_connect)
		obey(l, weft_link_connect_failed(&l->core, -ECONNRESET));
	if (acts & WEFT_ACT_ASK_ULP && !l->cfg.hold_accept)
		host_link_accept(l);
	if (acts & WEFT_ACT_SHUT) {
		l->tx_closed = true;
		l->ops->shutdown(l->arg);
	}
	if (acts & WEFT_ACT_DIE)
		die(l);
	if (acts & WEFT_ACT_AGAIN)
		l->step_due = true;
}

/* ---- steps ---- */

static u64 acked(const struct host_link *l)
{
	return l->ops->acked ? l->ops->acked(l->arg) : l->written;
}

/* FIN in both directions, and ours is acknowledged. */
static bool is_closed(const struct host_link *l)
{
	return l->reset || l->tcp_error ||
	       (l->tx_closed && l->rx_closed && acked(l) == l->written);
}

static struct weft_tcp_view view(struct host_link *l)
{
	if (acked(l) != l->acked)
		l->heard = l->now;
	l->acked = acked(l);
	return (struct weft_tcp_view){
		.connecting = l->connecting,
		.established = !l->connecting && !l->tx_closed && !l->rx_closed && !is_closed(l),
		.fin = l->rx_closed,
		.closed = is_closed(l),
		.delivered = l->tx_closed && acked(l) == l->written,
		.error = l->tcp_error,
		.idle_ms = (u32)(l->now - l->heard),
		.unanswered = l->unanswered,
		.acked = l->acked,
	};
}

/* ---- octets that wait in TCP ---- */

/* Keeps the rest of @in, after the octets that wait already. */
static void leave_unread(struct host_link *l, struct weft_cur *in)
{
	u8 *all;

	if (!in->left)
		return;
	all = malloc(l->nunread + in->left);
	HOST_ASSERT(all);
	if (l->nunread)
		memcpy(all, l->unread, l->nunread);
	free(l->unread);
	l->unread = all;
	all += l->nunread;
	l->nunread += in->left;
	weft_cur_copy(in, all, in->left);
}

/* In pieces, as the segments came: no FPDU is whole in one of them. */
static void read_again(struct host_link *l)
{
	struct weft_cur in = { .left = 0 };
	u32 at = 0;

	while (at < l->nunread && !in.left) {
		struct weft_seg seg = { l->unread + at, min_t(u32, 7, l->nunread - at) };

		weft_cur_init(&in, &seg, 1);
		weft_link_rx(&l->core, &in);
		at += seg.len - in.left;
	}
	l->nunread -= at;
	if (at)
		memmove(l->unread, l->unread + at, l->nunread);
}

u32 host_link_step(struct host_link *l)
{
	struct weft_tcp_view tcp;

	read_again(l);
	tcp = view(l);
	l->steps++;
	l->step_due = false;
	l->seen_closed = tcp.closed;
	obey(l, weft_link_step(&l->core, &tcp, l->now));
	host_assert_quiet(l->qp->host);
	return l->last_acts;
}

static bool step_is_due(const struct host_link *l)
{
	u64 next = weft_link_next_step(&l->core);

	if (l->core.state == WEFT_LINK_DEAD)
		return false;
	return l->step_due || (next && l->now >= next) || (is_closed(l) && !l->seen_closed);
}

void host_link_take_steps(struct host_link *l)
{
	u32 n = 0;

	while (!l->cfg.hold_steps && step_is_due(l)) {
		HOST_ASSERT(++n < 100);
		host_link_step(l);
	}
	host_assert_quiet(l->qp->host);
}

/* ---- life ---- */

void host_link_init(struct host_link *l, struct host_qp *qp, bool initiator,
		    const struct host_link_cfg *cfg, const struct host_link_ops *ops, void *arg)
{
	const struct weft_mpa_cfg *mpa = &cfg->mpa;
	const u32 for_ever = 1u << 30;

	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->ops = ops;
	l->arg = arg;
	l->qp = qp;
	l->core.cfg = (struct weft_link_cfg){
		.mpa = cfg->mpa,
		.startup_ms = cfg->startup_ms ? cfg->startup_ms : for_ever,
		.accept_ms = cfg->accept_ms ? cfg->accept_ms : cfg->startup_ms ? cfg->startup_ms :
			     for_ever,
		.close_ms = cfg->close_ms ? cfg->close_ms : for_ever,
		.dead_ms = cfg->dead_ms,
		.hold_ms = cfg->hold_ms,
		.rnr_ms = cfg->rnr_ms,
		.pd_max = cfg->pd_max ? cfg->pd_max : WEFT_MPA_PD_MAX,
		.part_min = cfg->part_min,
		.ext = cfg->ext,
		.large_fpdus = cfg->large_fpdus,
	};
	weft_link_init(&l->core, initiator);
	if (!initiator) {
		weft_link_await_request(&l->core, l->now);
		return;
	}
	HOST_ASSERT(!weft_offer_init(&l->offer, mpa, mpa->ird, mpa->ord, cfg->pd, cfg->pd_len));
	l->offer.itself = cfg->itself;
	l->core.qp = &qp->core;
	l->connecting = cfg->hold_connect;
	weft_link_connect(&l->core, &l->offer, l->now);
	l->step_due = true;
	host_link_take_steps(l);
}

void host_link_succeed(struct host_link *l, struct host_link *old)
{
	weft_link_succeed(&old->core, &l->core, old->now);
	old->acts |= WEFT_ACT_DIE;
	die(old);
	l->now = old->now;
	l->step_due = true;
}

static void reclaim_chunks(struct host_link *l, bool all)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&l->core.st, all)))
		weft_host_chunk_free(&l->qp->core, chunk);
}

void host_link_fini(struct host_link *l)
{
	if (!l->qp)
		return;
	take_memory_back(l);
	reclaim_chunks(l, true);
	free(l->unread);
	HOST_ASSERT(!l->qp->chunks && !l->batch && !l->rest);
	free(l->orq);
	free(l->irq);
	memset(l, 0, sizeof(*l));
}

/* ---- start-up ---- */

void host_link_connected(struct host_link *l, int status)
{
	l->connecting = false;
	l->tcp_error = status;
	l->step_due = true;
	host_link_take_steps(l);
}

static void accept_or_fail(struct host_link *l)
{
	const struct host_link_cfg *c = &l->cfg;
	struct weft_tcp_view tcp = view(l);

	l->core.qp = &l->qp->core;
	if (!weft_link_accept(&l->core, c->mpa.ird, c->mpa.ord, c->pd, c->pd_len, &tcp, l->now))
		return;
	weft_link_release_qp(&l->core);
	if (l->core.state != WEFT_LINK_DEAD)
		obey(l, weft_link_accept_failed(&l->core, &tcp, l->now));
}

void host_link_accept(struct host_link *l)
{
	struct weft_tcp_view tcp = view(l);

	if (!l->cfg.reject)
		accept_or_fail(l);
	else if (l->core.state == WEFT_LINK_REQUESTED)
		obey(l, weft_link_reject(&l->core, l->cfg.pd, l->cfg.pd_len, &tcp, l->now));
}

/* ---- the peer ---- */

void host_link_rx(struct host_link *l, const struct weft_seg *seg, u32 nseg)
{
	struct weft_cur in;

	weft_cur_init(&in, seg, nseg);
	l->heard = l->now;
	read_again(l);
	do {
		if (l->core.state == WEFT_LINK_DEAD)
			return;
		if (l->nunread)
			break;
		l->step_due |= l->core.mode == WEFT_MODE_STARTUP;
		weft_link_rx(&l->core, &in);
		/* One step per delivery: the next one only after all of TCP's octets. */
		if (!l->cfg.hold_steps && step_is_due(l))
			host_link_step(l);
		host_assert_quiet(l->qp->host);
		/* Octets left in TCP could close its window for ever. */
		HOST_ASSERT(!in.left || l->core.mode != WEFT_MODE_STARTUP ||
			    l->core.state == WEFT_LINK_DEAD);
	} while (in.left && !l->core.starved);
	leave_unread(l, &in);
	if (l->cfg.lean)
		reclaim_chunks(l, false);
}

void host_link_fin(struct host_link *l)
{
	l->rx_closed = true;
	l->heard = l->now;
	l->step_due = true;
	host_link_take_steps(l);
}

void host_link_reset(struct host_link *l)
{
	l->reset = true;
	l->await_room = false;
	host_link_take_steps(l);
}

void host_link_set_time(struct host_link *l, u64 now)
{
	HOST_ASSERT(now >= l->now);
	l->now = now;
	l->qp->kicked |= l->qp->try_again;
	l->qp->try_again = false;
	read_again(l);
	host_link_take_steps(l);
}

/* ---- the user ---- */

void host_link_close(struct host_link *l)
{
	weft_qpc_close(&l->qp->core);
	l->step_due = true;
}

void host_link_error(struct host_link *l)
{
	weft_qpc_error(&l->qp->core);
	l->step_due = true;
}

void host_link_forget(struct host_link *l)
{
	struct weft_tcp_view tcp = view(l);

	obey(l, weft_link_forget(&l->core, &tcp, l->now));
	host_link_take_steps(l);
}

void host_link_abort(struct host_link *l)
{
	obey(l, weft_link_kill(&l->core));
	host_link_take_steps(l);
}

void host_link_hang_up(struct host_link *l)
{
	struct weft_tcp_view tcp = view(l);

	obey(l, weft_link_hang_up(&l->core, &tcp, l->now));
	if (l->core.state == WEFT_LINK_OPEN)
		host_link_close(l);
	host_link_take_steps(l);
}

u32 host_link_evict(struct host_link *l, bool pressed)
{
	struct weft_tcp_view tcp = view(l);
	u32 acts = weft_link_evict(&l->core, &tcp, pressed);

	obey(l, acts);
	host_link_take_steps(l);
	return acts;
}

void host_link_withdraw(struct host_link *l, int status)
{
	struct weft_tcp_view tcp = view(l);

	obey(l, weft_link_withdraw(&l->core, status, &tcp, l->now));
	host_link_take_steps(l);
}

/* ---- send run ---- */

bool host_link_is_ready(const struct host_link *l, bool room)
{
	if (l->qp->cq_error || (step_is_due(l) && !l->cfg.hold_steps))
		return true;
	return l->await_room ? room : l->qp->kicked;
}

void host_link_tx(struct host_link *l)
{
	l->runs++;
	l->tails = 0;
	l->await_room = false;
	l->qp->kicked = false;
	if (l->qp->cq_error) {
		l->qp->cq_error = false;
		host_link_error(l);
	}
	if (l->core.qp || l->core.state == WEFT_LINK_CLOSING || l->core.state == WEFT_LINK_HELD)
		weft_send_run(&l->core, WEFT_SLICE);
	if (weft_link_rx_resume(&l->core))
		read_again(l);
	/* A doorbell of a QP without a connection. */
	if (!l->core.qp && weft_qpc_flush(&l->qp->core))
		l->qp->kicked = true;
	host_link_take_steps(l);
}
