// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What `rdma res show -d` adds of our own: where queues stand, what a region is. */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "conn.h"
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

/* Did both sides agree on the CRC? Not without a connection. */
static bool has_crc(const struct weft_qp *qp)
{
	const struct weft_conn *conn;
	bool crc;

	rcu_read_lock();
	conn = rcu_dereference(qp->conn);
	crc = conn && READ_ONCE(conn->link.st.agreed.crc);
	rcu_read_unlock();
	return crc;
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
		{ "crc", has_crc(qp) },
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

int weft_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct weft_srq *srq = to_weft_srq(ibsrq);
	const struct item items[] = {
		{ "id", srq->id },
		{ "slots", READ_ONCE(srq->core.rq.q.slots) },
		{ "taken", READ_ONCE(srq->core.rq.q.idx) },
		{ "limit", READ_ONCE(srq->core.limit) },
	};

	return put_items(msg, items, ARRAY_SIZE(items));
}
