// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A CQ's life. */
#include <stdlib.h>

#include "cq.h"
#include "late.h"
#include "process/file.h"
#include "process/raw.h"
#include "qp.h"

static struct rl_cq *cq_of(struct rl_watch *w)
{
	return container_of(w, struct rl_cq, watch);
}

static void cq_ready(struct rl_watch *w, u32 events)
{
	rl_cq_thread_poll(cq_of(w));
}

static void cq_timeout(struct rl_watch *w)
{
	struct rl_cq *cq = cq_of(w);
	bool failed = !cq->core.overflow || rl_qp_fail_users(cq);

	rl_late_release_due(cq);
	rl_cq_renew_lease(cq);
	if (!failed)
		rl_watch_set_deadline(w, rl_now_ms() + 1);
}

static void cq_release(struct rl_watch *w)
{
	struct rl_cq *cq = cq_of(w);

	if (cq->epfd >= 0)
		rl_fd_close_hidden(cq->epfd);
	if (cq->chan)
		rl_chan_put(cq->chan);
	free(cq);
}

static void cq_revive(struct rl_watch *w)
{
	rl_cq_end_leases(cq_of(w));
	rl_thread_add(w, cq_of(w)->epfd, EPOLLIN | EPOLLET);
}

static const struct rl_watch_ops cq_watch_ops = {
	.revive = cq_revive,
	.ready = cq_ready,
	.timeout = cq_timeout,
	.release = cq_release,
};

static int start_watching(struct rl_cq *cq)
{
	int rv, fd = rl_raw(SYS_epoll_create1, EPOLL_CLOEXEC);

	cq->epfd = fd < 0 ? fd : rl_fd_hide(fd);
	if (cq->epfd < 0)
		return cq->epfd;
	rv = rl_watch_begin(&cq->watch);
	return rv ?: rl_thread_add(&cq->watch, cq->epfd, EPOLLIN | EPOLLET);
}

int rl_cq_new(struct rl_context *ctx, u32 entries, struct rl_chan *chan, struct rl_cq **out)
{
	struct rl_cq *cq = calloc(1, sizeof(*cq));
	int rv;

	if (!cq)
		return -ENOMEM;
	cq->o.kind = RL_CQ;
	cq->ctx = ctx;
	cq->epfd = -1;
	INIT_LIST_HEAD(&cq->node);
	INIT_LIST_HEAD(&cq->late);
	rl_watch_init(&cq->watch, &cq_watch_ops);
	rv = rl_ring_alloc(ctx, &cq->ring, entries);
	if (!rv) {
		weft_cqc_init(&cq->core, cq->ring.mem, entries);
		rv = start_watching(cq);
	}
	if (rv) {
		rl_cq_stop(cq);
		rl_cq_destroy(cq);
		return rv;
	}
	cq->chan = chan;
	cq->source_of_events = (struct rl_chan_source){
		.ops = &rl_cq_source_ops, .fd = cq->epfd,
	};
	if (chan) {
		rl_chan_get(chan);
		rl_chan_add_source(chan, &cq->source_of_events);
	}
	rl_cq_enlist(cq);
	*out = cq;
	return 0;
}

static struct weft_ring no_ring;

/* The progress thread may still be in a call: it finds no connection, and this ring. */
void rl_cq_stop(struct rl_cq *cq)
{
	rl_cq_delist(cq);
	rl_watch_end(&cq->watch);
	if (cq->epfd >= 0)
		rl_thread_remove(cq->epfd);
	rl_lock(&cq->lock);
	cq->core.q.ring = &no_ring;
	rl_unlock(&cq->lock);
	if (cq->chan) {
		rl_chan_remove_source(cq->chan, &cq->source_of_events);
		rl_chan_drop(cq->chan, &cq->o);
	}
	rl_context_forget(cq->ctx, &cq->o);
}

void rl_cq_destroy(struct rl_cq *cq)
{
	rl_late_drop(cq);
	rl_ring_free(cq->ctx, &cq->ring);
	rl_watch_put(&cq->watch);
}

/* The response is filled in before the new ring takes effect. */
int rl_cq_resize(struct rl_cq *cq, u32 entries, struct weft_resize_cq_resp *resp)
{
	struct weft_ring_move move = { .slots = entries };
	struct rl_ring ring;
	int rv = rl_ring_alloc(cq->ctx, &ring, entries);
	struct rl_ring old = ring;

	if (rv)
		return rv;
	move.mem = ring.mem;
	rl_ring_describe(&ring, entries, 1, &resp->cq);
	rl_lock(&cq->lock);
	do {
		weft_ring_move_copy(&move);
		rv = weft_cqc_move(&cq->core, &move);
	} while (rv == -EAGAIN);
	if (!rv) {
		old = cq->ring;
		cq->ring = ring;
	}
	rl_unlock(&cq->lock);
	rl_ring_free(cq->ctx, &old);
	return rv;
}
