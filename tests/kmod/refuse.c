// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Consumers that refuse requests beyond their backlog, or whom others refuse some for. */
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <rdma/iw_cm.h>

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

/* ---- who rejects a program's request ---- */

/* The listener is this process's (insmod), as a program's would be, and has a backlog of one. */
struct rejecter {
	struct iw_cm_id *listener, *first, *second;	/* the first is not answered */
	atomic_t requests;
	struct completion has_first, has_second, rejected, asked_again;
	struct work_struct work;
	int rv;				/* of the reject */
	struct pair clients[2];
};

static int on_request(struct iw_cm_id *id, struct iw_cm_event *ev)
{
	struct rejecter *r = id->context;

	if (ev->event != IW_CM_EVENT_CONNECT_REQUEST)
		return 0;
	switch (atomic_inc_return(&r->requests)) {
	case 1:
		r->first = id;
		complete(&r->has_first);
		return 0;
	case 2:
		r->second = id;
		complete(&r->has_second);
		return 0;
	default:
		complete(&r->asked_again);
		return -EBUSY;
	}
}

/* Both requests are there, and the second is beyond the backlog. */
static int rejecter_begin(struct rejecter *r, struct ib_device *dev)
{
	struct sockaddr_in sin = pair_address();
	int rv;

	init_completion(&r->has_first);
	init_completion(&r->has_second);
	init_completion(&r->rejected);
	init_completion(&r->asked_again);
	r->listener = iw_create_cm_id(dev, on_request, r);
	if (IS_ERR(r->listener)) {
		rv = PTR_ERR(r->listener);
		r->listener = NULL;
		return rv;
	}
	sin.sin_port = htons(pair_port() + NTH);
	memcpy(&r->listener->local_addr, &sin, sizeof(sin));
	rv = iw_cm_listen(r->listener, 1) ?: pair_request(&r->clients[0], NTH);
	if (rv)
		return rv;
	if (!wait_for_completion_timeout(&r->has_first, WAIT))
		return -ETIMEDOUT;
	rv = pair_request(&r->clients[1], NTH);
	return rv ?: wait_for_completion_timeout(&r->has_second, WAIT) ? 0 : -ETIMEDOUT;
}

static void rejecter_end(struct rejecter *r)
{
	if (r->listener)
		iw_destroy_cm_id(r->listener);
	if (r->first)
		iw_destroy_cm_id(r->first);
	if (r->second)
		iw_destroy_cm_id(r->second);
	pair_close(&r->clients[0]);
	pair_close(&r->clients[1]);
	kfree(r);
}

static int with_rejecter(struct pair *p, int (*run)(struct rejecter *r))
{
	struct rejecter *r = kzalloc(sizeof(*r), GFP_KERNEL);
	int rv;

	if (!r)
		return -ENOMEM;
	rv = rejecter_begin(r, p->c.id->device) ?: run(r);
	rejecter_end(r);
	return rv;
}

/* As iw_cm does if a program's queue is full. */
static int reject_for_nobody(void *rejecter)
{
	struct rejecter *r = rejecter;

	r->rv = iw_cm_reject(r->second, NULL, 0);
	complete(&r->rejected);
	return 0;
}

static int reject_in_thread(struct rejecter *r)
{
	struct task_struct *t = kthread_create(reject_for_nobody, r, "weft_reject");

	if (IS_ERR(t))
		return PTR_ERR(t);
	get_task_struct(t);
	wake_up_process(t);
	wait_for_completion(&r->rejected);
	kthread_stop(t);
	put_task_struct(t);
	if (r->rv)
		return r->rv;
	return wait_for_completion_timeout(&r->asked_again, WAIT) ? 0 : -ETIMEDOUT;
}

/* iw_cm's thread need not be a workqueue's. */
int a_request_that_iw_cm_rejects_in_any_thread_is_asked_again(struct pair *p)
{
	return with_rejecter(p, reject_in_thread);
}

/* As rdma_ucm does for a program that has no private data. */
static void reject_with_no_octets(struct work_struct *work)
{
	struct rejecter *r = container_of(work, struct rejecter, work);

	r->rv = iw_cm_reject(r->second, "", 0);
}

static int reject_in_worker(struct rejecter *r)
{
	int rv;

	INIT_WORK(&r->work, reject_with_no_octets);
	schedule_work(&r->work);
	flush_work(&r->work);
	rv = r->rv ?: pair_await_answer(&r->clients[1]);
	if (rv != -ECONNREFUSED)
		return rv ?: -EISCONN;
	return atomic_read(&r->requests) == 2 ? 0 : -EALREADY;
}

int a_programs_reject_is_final_in_any_thread(struct pair *p)
{
	return with_rejecter(p, reject_in_worker);
}
