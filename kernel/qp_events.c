// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue pair's asynchronous events. The core decides on them under the connection's lock, with
 * softirqs off. A worker calls the handler, of the queue whose workers wait for no program.
 */
#include "verbs.h"

/* Bits of events_due, in the order in which a handler is called. */
static const enum ib_event_type types[] = {
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_LAST_WQE_REACHED,
};

static void call_handler(struct work_struct *work)
{
	struct weft_qp *qp = container_of(work, struct weft_qp, events);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct ib_event ev = {
			.device = qp->ibqp.device,
			.element.qp = &qp->ibqp,
			.event = types[i],
		};

		if (test_and_clear_bit(i, &qp->events_due))
			qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	}
}

static void make_due(struct weft_qp *qp, enum ib_event_type type)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i] == type)
			set_bit(i, &qp->events_due);
}

void weft_qp_events_init(struct weft_qp *qp)
{
	INIT_WORK(&qp->events, call_handler);
}

void weft_qp_raise_flushed(struct weft_qp *qp)
{
	static const enum ib_event_type of_fault[] = {
		[WEFT_FAULT_ACCESS]	= IB_EVENT_QP_ACCESS_ERR,
		[WEFT_FAULT_REQUEST]	= IB_EVENT_QP_REQ_ERR,
		[WEFT_FAULT_FATAL]	= IB_EVENT_QP_FATAL,
	};
	enum weft_qp_fault fault = weft_qpc_fault(&qp->core);

	if (!qp->ibqp.event_handler)
		return;
	if (fault != WEFT_FAULT_NONE)
		make_due(qp, of_fault[fault]);
	if (qp->srq)
		make_due(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	if (READ_ONCE(qp->events_due))
		queue_work(weft_startup_wq, &qp->events);
}

void weft_qp_events_exit(struct weft_qp *qp)
{
	flush_work(&qp->events);
}
