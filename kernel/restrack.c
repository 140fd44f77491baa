// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What `rdma res show -d` adds of our own: where queues stand, what a region is. */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "verbs.h"

struct item {
	const char *name;
	u32 value;
};

static int put_items(struct sk_buff *msg, const struct item *items, int n)
{
	struct nlattr *nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (rdma_nl_put_driver_u32(msg, items[i].name, items[i].value)) {
			nla_nest_cancel(msg, nest);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, nest);
	return 0;
}

/* Indices are read while the queue runs: each is right, together they may not fit. */
int weft_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct weft_qp *qp = to_weft_qp(ibqp);
	const struct weft_qpc *c = &qp->core;
	const struct item items[] = {
		{ "state", READ_ONCE(c->state) },
		{ "sq_slots", c->sq.q.slots },
		{ "sq_done", READ_ONCE(c->sq.q.idx) },
		{ "sq_sent", READ_ONCE(c->sq.sent) },
		{ "sq_taken", READ_ONCE(c->sq.pulled) },
		{ "rq_slots", c->rq.q.slots },
		{ "rq_taken", READ_ONCE(c->rq.q.idx) },
		{ "reads_out", READ_ONCE(c->orq_count) },
		{ "reads_in", READ_ONCE(c->irq_count) },
		{ "error", READ_ONCE(c->error) },
	};

	return put_items(msg, items, ARRAY_SIZE(items));
}

int weft_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct weft_cq *cq = to_weft_cq(ibcq);
	const struct item items[] = {
		{ "id", cq->id },
		{ "entries", cq->core.q.slots },
		{ "produced", READ_ONCE(cq->core.q.idx) },
		{ "overflow", READ_ONCE(cq->core.overflow) },
	};

	return put_items(msg, items, ARRAY_SIZE(items));
}

int weft_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct weft_mr *mr = to_weft_mr(ibmr);
	const struct item items[] = {
		{ "kind", mr->region.kind },
		{ "valid", READ_ONCE(mr->region.valid) },
		{ "access", READ_ONCE(mr->region.access) },
		{ "blocks", READ_ONCE(mr->pages.nblocks) },
		{ "block_shift", READ_ONCE(mr->pages.shift) },
	};

	return put_items(msg, items, ARRAY_SIZE(items));
}
