// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A consumer that refuses requests beyond its backlog. */
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kmod.h"

#define NTH	8			/* port of this listener, beside those of other pairs */

struct refuser {
	struct work_struct work;
	struct rdma_cm_id *listener;
	int rv;
	struct rdma_cm_id *first;	/* its request is not answered */
	struct completion has_first;
	atomic_t requests;
	struct pair clients[2];
};

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct refuser *r = id->context;

	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (atomic_inc_return(&r->requests) > 1)
		return -EBUSY;
	r->first = id;
	complete(&r->has_first);
	return 0;
}

/* A thread of the kernel listens, as most consumers' do: not the process that loads this module. */
static void listen_for_one(struct work_struct *work)
{
	struct refuser *r = container_of(work, struct refuser, work);
	struct sockaddr_in sin = pair_address();
	struct rdma_cm_id *id = rdma_create_id(&init_net, on_event, r, RDMA_PS_TCP, IB_QPT_RC);

	if (IS_ERR(id)) {
		r->rv = PTR_ERR(id);
		return;
	}
	r->listener = id;
	sin.sin_port = htons(pair_port() + NTH);
	r->rv = rdma_bind_addr(id, (struct sockaddr *)&sin) ?: rdma_listen(id, 1);
}

static int refuse_the_second(struct refuser *r)
{
	int rv;

	schedule_work(&r->work);
	flush_work(&r->work);
	rv = r->rv ?: pair_request(&r->clients[0], NTH);
	if (rv)
		return rv;
	if (!wait_for_completion_timeout(&r->has_first, WAIT))
		return -ETIMEDOUT;
	rv = pair_request(&r->clients[1], NTH) ?: pair_await_answer(&r->clients[1]);
	if (rv != -ECONNREFUSED)
		return rv ?: -EISCONN;
	return atomic_read(&r->requests) == 2 ? 0 : -EALREADY;
}

/* iw_cm rejects what a consumer's handler refuses, in a worker, as it does for a full program. */
int a_refused_request_is_not_asked_again(struct pair *p)
{
	struct refuser *r = kzalloc(sizeof(*r), GFP_KERNEL);
	int rv;

	if (!r)
		return -ENOMEM;
	INIT_WORK(&r->work, listen_for_one);
	init_completion(&r->has_first);
	rv = refuse_the_second(r);
	if (r->listener)
		rdma_destroy_id(r->listener);
	if (r->first)
		rdma_destroy_id(r->first);
	pair_close(&r->clients[0]);
	pair_close(&r->clients[1]);
	kfree(r);
	return rv;
}
