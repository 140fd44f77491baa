// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See model.h. */
#include "model.h"

/* Works of a queue in one go. */
#define GO	10

struct workqueue_struct {
	enum model_softirq softirq;
	struct list_head works;
	struct list_head tasklets;	/* those of the same softirq */
};

static struct workqueue_struct normal = { .softirq = MODEL_TASKLET };
static struct workqueue_struct first = { .softirq = MODEL_HI };
struct workqueue_struct *const system_bh_wq = &normal, *const system_bh_highpri_wq = &first;

u64 model_clock;
static unsigned int raised;
static void (*receive)(void);

static void raise(enum model_softirq softirq)
{
	raised |= 1U << softirq;
}

void model_init(void (*net_rx)(void))
{
	INIT_LIST_HEAD(&normal.works);
	INIT_LIST_HEAD(&normal.tasklets);
	INIT_LIST_HEAD(&first.works);
	INIT_LIST_HEAD(&first.tasklets);
	raised = 0;
	receive = net_rx;
}

void model_raise_net_rx(void)
{
	raise(MODEL_NET_RX);
}

bool model_is_raised(void)
{
	return raised;
}

/* ---- works ---- */

void INIT_WORK(struct work_struct *work, void (*func)(struct work_struct *work))
{
	work->pending = false;
	work->func = func;
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	if (work->pending)
		return false;
	work->pending = true;
	list_add_tail(&work->node, &wq->works);
	raise(wq->softirq);
	return true;
}

static void run_works(struct workqueue_struct *wq)
{
	int i;

	for (i = 0; i < GO && !list_empty(&wq->works); i++) {
		struct work_struct *work = list_first_entry(&wq->works, struct work_struct, node);

		list_del(&work->node);
		work->pending = false;
		work->func(work);
	}
	if (!list_empty(&wq->works))
		raise(wq->softirq);
}

bool flush_work(struct work_struct *work)
{
	bool waited = work->pending;

	while (work->pending)
		model_pass();
	return waited;
}

/* ---- tasklets ---- */

void tasklet_setup(struct tasklet_struct *t, void (*func)(struct tasklet_struct *t))
{
	t->pending = false;
	t->func = func;
}

static void schedule(struct workqueue_struct *wq, struct tasklet_struct *t)
{
	if (t->pending)
		return;
	t->pending = true;
	list_add_tail(&t->node, &wq->tasklets);
	raise(wq->softirq);
}

void tasklet_schedule(struct tasklet_struct *t)
{
	schedule(&normal, t);
}

void tasklet_hi_schedule(struct tasklet_struct *t)
{
	schedule(&first, t);
}

void tasklet_kill(struct tasklet_struct *t)
{
	while (t->pending)
		model_pass();
}

static void run_tasklets(struct workqueue_struct *wq)
{
	LIST_HEAD(all);

	list_splice_init(&wq->tasklets, &all);
	while (!list_empty(&all)) {
		struct tasklet_struct *t = list_first_entry(&all, struct tasklet_struct, node);

		list_del(&t->node);
		t->pending = false;
		t->func(t);
	}
}

/* ---- passes ---- */

static void run(struct workqueue_struct *wq)
{
	run_works(wq);
	run_tasklets(wq);
}

void model_pass(void)
{
	unsigned int pending = raised;

	raised = 0;
	if (pending & 1U << MODEL_HI)
		run(&first);
	if (pending & 1U << MODEL_NET_RX)
		receive();
	if (pending & 1U << MODEL_TASKLET)
		run(&normal);
}
