// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The cases. Each gets a fresh connection and leaves its buffers' contents behind. */
#include <linux/delay.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kmod.h"

#define BUF	(64 * 1024)
#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

static u8 *src, *dst, *other;		/* BUF octets each */

static void fill(u8 seed)
{
	u32 i;

	for (i = 0; i < BUF; i++)
		src[i] = (u8)(i * 7 + (i >> 8) + seed);
	memset(dst, 0, BUF);
	memset(other, 0, BUF);
}

/* ---- fast registration ---- */

static int map_octets(struct ib_mr *mr, u8 *buf, u32 len)
{
	struct scatterlist sg;

	sg_init_one(&sg, buf, len);
	sg_dma_address(&sg) = (uintptr_t)buf;
	sg_dma_len(&sg) = len;
	return ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EINVAL;
}

/* Registers @buf with @mr over @e's QP, under a new key. */
static int reg(struct end *e, struct ib_mr *mr, u8 *buf)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED };
	struct op op;
	int rv = map_octets(mr, buf, BUF);

	if (rv)
		return rv;
	op_init(&op);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.wr.wr_cqe = &op.cqe;
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = ACCESS;
	return ib_post_send(e->qp, &wr.wr, NULL) ?: op_wait(&op, IB_WC_SUCCESS);
}

static int local_inv(struct end *e, u32 rkey)
{
	struct op op;
	struct ib_send_wr wr = {
		.wr_cqe = &op.cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};

	op_init(&op);
	return ib_post_send(e->qp, &wr, NULL) ?: op_wait(&op, IB_WC_SUCCESS);
}

/* One-sided @opcode between @local (@lkey) and the whole region @rkey at @to. */
static int rdma(struct end *e, struct op *op, enum ib_wr_opcode opcode, u64 local, u32 lkey,
		u64 to, u32 rkey)
{
	struct ib_sge sge = { .addr = local, .length = BUF, .lkey = lkey };
	struct ib_rdma_wr wr = {
		.wr.opcode = opcode,
		.wr.send_flags = IB_SEND_SIGNALED,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.remote_addr = to,
		.rkey = rkey,
	};

	op_init(op);
	wr.wr.wr_cqe = &op->cqe;
	return ib_post_send(e->qp, &wr.wr, NULL);
}

/* The client's Send that the server has received: everything before it is placed. */
static int sync_send(struct pair *p)
{
	struct op s, r;
	static u8 in, out;

	op_init(&s);
	op_init(&r);
	return post_recv_buf(&p->s, &r, &in, 1) ?:
	       post_send_buf(&p->c, &s, &out, 1, 0) ?:
	       op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
}

/* ---- cases ---- */

static int send_carries_bytes(struct pair *p)
{
	struct op s, r;
	int rv;

	op_init(&s);
	op_init(&r);
	rv = post_recv_buf(&p->s, &r, dst, BUF) ?: post_send_buf(&p->c, &s, src, BUF, 0);
	rv = rv ?: op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
	if (rv)
		return rv;
	if (r.wc.qp != p->s.qp || s.wc.qp != p->c.qp || r.wc.opcode != IB_WC_RECV)
		return -EBADMSG;
	return r.wc.byte_len == BUF && !memcmp(src, dst, BUF) ? 0 : -EILSEQ;
}

static int nth_cpu(u32 n)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (!n--)
			break;
	return cpu;
}

static int handlers_run_on_their_vectors_cpu(struct pair *p)
{
	int i, rv = 0;

	for (i = 0; i < 20 && !rv; i++)
		rv = sync_send(p);
	if (rv)
		return rv;
	if (!cpumask_equal(&p->c.cpus, cpumask_of(nth_cpu(p->c.vector))) ||
	    !cpumask_equal(&p->s.cpus, cpumask_of(nth_cpu(p->s.vector))))
		return -EXDEV;
	return 0;
}

static int inline_send_is_copied_at_once(struct pair *p)
{
	struct op s, r;
	u8 small[64];
	int rv;

	memcpy(small, src, sizeof(small));
	op_init(&s);
	op_init(&r);
	rv = post_recv_buf(&p->s, &r, dst, BUF) ?:
	     post_send_buf(&p->c, &s, small, sizeof(small), IB_SEND_INLINE);
	memset(small, 0xee, sizeof(small));
	rv = rv ?: op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
	return rv ?: memcmp(src, dst, sizeof(small)) ? -EILSEQ : 0;
}

static int write_to_registered(struct pair *p, struct ib_mr *mr)
{
	struct op w;

	return reg(&p->s, mr, dst) ?:
	       rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
		    mr->iova, mr->rkey) ?:
	       op_wait(&w, IB_WC_SUCCESS) ?: sync_send(p);
}

static int write_reaches_fast_region(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = write_to_registered(p, mr) ?: memcmp(src, dst, BUF) ? -EILSEQ : 0;
	ib_dereg_mr(mr);
	return rv;
}

/* core/rw.c maps a region that the peer can still write to, and invalidates it after that. */
static int write_to_remapped(struct pair *p, struct ib_mr *mr)
{
	u64 to;
	struct op w;
	int rv = reg(&p->s, mr, dst);

	to = mr->iova;
	/* Elsewhere, and shorter: no block of it may be taken for one of the old. */
	rv = rv ?: map_octets(mr, other + 512, PAGE_SIZE);
	rv = rv ?: rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
			to, mr->rkey) ?:
	     op_wait(&w, IB_WC_SUCCESS) ?: sync_send(p);
	if (rv)
		return rv;
	if (memcmp(src, dst, BUF) || memchr_inv(other, 0, BUF))
		return -EILSEQ;
	memset(dst, 0, BUF);
	rv = local_inv(&p->s, mr->rkey) ?: reg(&p->s, mr, other) ?:
	     rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
		  mr->iova, mr->rkey) ?:
	     op_wait(&w, IB_WC_SUCCESS) ?: sync_send(p);
	if (rv)
		return rv;
	return memcmp(src, other, BUF) || memchr_inv(dst, 0, BUF) ? -EILSEQ : 0;
}

static int mapping_anew_changes_nothing_before_reg_mr(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = write_to_remapped(p, mr);
	ib_dereg_mr(mr);
	return rv;
}

static int write_to_invalidated(struct pair *p, struct ib_mr *mr)
{
	u8 first = src[0];
	struct op w;
	int rv = write_to_registered(p, mr) ?: local_inv(&p->s, mr->rkey);

	src[0] ^= 0xff;
	rv = rv ?: rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
			mr->iova, mr->rkey);
	/* RFC 5040 §5.5: the Write itself completes; the Terminate comes later. */
	if (!rv && !wait_for_completion_timeout(&w.done, WAIT))
		rv = -ETIME;
	msleep(200);
	if (rv)
		return rv;
	if (dst[0] != first)
		return -EILSEQ;
	return test_bit(IB_EVENT_QP_REQ_ERR, &p->c.qp_events) ||
	       test_bit(IB_EVENT_QP_ACCESS_ERR, &p->c.qp_events) ? 0 : -ENOMSG;
}

static int local_inv_ends_access(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = write_to_invalidated(p, mr);
	ib_dereg_mr(mr);
	return rv;
}

static int read_with_inv(struct pair *p, struct ib_mr *from, struct ib_mr *to)
{
	struct op r;
	int rv = reg(&p->s, from, src) ?: reg(&p->c, to, dst) ?:
		 rdma(&p->c, &r, IB_WR_RDMA_READ_WITH_INV, to->iova, to->lkey, from->iova,
		      from->rkey) ?: op_wait(&r, IB_WC_SUCCESS);

	if (rv)
		return rv;
	if (memcmp(src, dst, BUF) || r.wc.opcode != IB_WC_RDMA_READ)
		return -EILSEQ;
	/* Only an invalid region can be registered again. */
	return reg(&p->c, to, dst);
}

static int read_with_inv_invalidates_its_sink(struct pair *p)
{
	struct ib_mr *from = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	struct ib_mr *to = ib_alloc_mr(p->c.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv = IS_ERR(from) || IS_ERR(to) ? -ENOMEM : read_with_inv(p, from, to);

	if (!IS_ERR(from))
		ib_dereg_mr(from);
	if (!IS_ERR(to))
		ib_dereg_mr(to);
	return rv;
}

static int send_with_inv(struct pair *p, struct ib_mr *mr)
{
	struct op s, r;
	struct ib_send_wr wr = {
		.wr_cqe = &s.cqe,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_SOLICITED,
	};
	int rv = reg(&p->s, mr, dst);

	op_init(&s);
	op_init(&r);
	wr.ex.invalidate_rkey = mr->rkey;
	rv = rv ?: post_recv_buf(&p->s, &r, dst, BUF) ?: ib_post_send(p->c.qp, &wr, NULL) ?:
	     op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
	if (rv)
		return rv;
	if (!(r.wc.wc_flags & IB_WC_WITH_INVALIDATE) || r.wc.ex.invalidate_rkey != mr->rkey)
		return -EBADMSG;
	return reg(&p->s, mr, dst);
}

static int send_with_inv_invalidates_the_peers_region(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = send_with_inv(p, mr);
	ib_dereg_mr(mr);
	return rv;
}

static struct op ops[DEPTH];

static int drain_returns_after_all_completions(struct pair *p)
{
	int i, n = DEPTH / 2, rv = 0;

	for (i = 0; i < n && !rv; i++) {
		op_init(&ops[i]);
		rv = post_recv_buf(&p->c, &ops[i], dst, 64);
	}
	if (rv)
		return rv;
	ib_drain_qp(p->c.qp);
	for (i = 0; i < n; i++) {
		if (!completion_done(&ops[i].done) || ops[i].wc.status != IB_WC_WR_FLUSH_ERR)
			return -EIO;
		if (i && ops[i].order <= ops[i - 1].order)
			return -EBADMSG;
	}
	return 0;
}

static int posts_in_error_are_flushed_in_order(struct pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int i, rv = ib_modify_qp(p->c.qp, &attr, IB_QP_STATE);

	for (i = 0; i < 16 && !rv; i++) {
		op_init(&ops[i]);
		rv = post_send_buf(&p->c, &ops[i], src, 64, 0);
	}
	for (; i < 32 && !rv; i++) {
		op_init(&ops[i]);
		rv = post_recv_buf(&p->c, &ops[i], dst, 64);
	}
	for (i = 0; i < 32 && !rv; i++)
		rv = op_wait(&ops[i], IB_WC_WR_FLUSH_ERR);
	for (i = 1; i < 32 && !rv; i++)
		if (i != 16 && ops[i].order <= ops[i - 1].order)
			rv = -EBADMSG;
	return rv;
}

static int a_chain_stops_at_the_bad_request(struct pair *p)
{
	struct ib_sge sge = { .addr = (uintptr_t)src, .length = 8,
			      .lkey = p->c.pd->local_dma_lkey };
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr[3] = {};
	struct op recv;
	int i, rv;

	op_init(&recv);
	rv = post_recv_buf(&p->s, &recv, dst, 64);
	for (i = 0; i < 3; i++) {
		op_init(&ops[i]);
		wr[i].wr_cqe = &ops[i].cqe;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = i == 1 ? IB_WR_ATOMIC_CMP_AND_SWP : IB_WR_SEND;
		wr[i].send_flags = IB_SEND_SIGNALED;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	if (rv || !ib_post_send(p->c.qp, wr, &bad) || bad != &wr[1])
		return -EBADMSG;
	rv = op_wait(&ops[0], IB_WC_SUCCESS) ?: op_wait(&recv, IB_WC_SUCCESS);
	return rv ?: completion_done(&ops[2].done) ? -EIO : 0;
}

static int srq_limit_fires_once(struct pair *p)
{
	struct ib_srq_attr attr = { .srq_limit = 4 };
	struct op s;
	int i, rv = 0;

	for (i = 0; i < 8 && !rv; i++) {
		op_init(&ops[i]);
		rv = post_recv_buf(&p->s, &ops[i], dst, 64);
	}
	rv = rv ?: ib_modify_srq(p->s.srq, &attr, IB_SRQ_LIMIT);
	for (i = 0; i < 5 && !rv; i++) {
		if (test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &p->s.srq_events))
			return -EBADMSG;
		op_init(&s);
		rv = post_send_buf(&p->c, &s, src, 64, 0) ?: op_wait(&s, IB_WC_SUCCESS) ?:
		     op_wait(&ops[i], IB_WC_SUCCESS);
	}
	if (rv)
		return rv;
	return test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &p->s.srq_events) ? 0 : -ENOMSG;
}

static int a_resized_srq_keeps_what_waits(struct pair *p)
{
	struct ib_srq_attr attr = { .max_wr = 16 * DEPTH };
	struct op s;
	int i, rv = 0;

	for (i = 0; i < 8 && !rv; i++) {
		op_init(&ops[i]);
		rv = post_recv_buf(&p->s, &ops[i], dst, 64);
	}
	rv = rv ?: ib_modify_srq(p->s.srq, &attr, IB_SRQ_MAX_WR) ?:
	     ib_query_srq(p->s.srq, &attr);
	if (rv || attr.max_wr < 16 * DEPTH)
		return rv ?: -EBADMSG;
	for (; i < 16 && !rv; i++) {
		op_init(&ops[i]);
		rv = post_recv_buf(&p->s, &ops[i], dst, 64);
	}
	attr.max_wr = 8;
	if (!rv && ib_modify_srq(p->s.srq, &attr, IB_SRQ_MAX_WR) != -EINVAL)
		return -EBADMSG;
	for (i = 0; i < 16 && !rv; i++) {
		op_init(&s);
		rv = post_send_buf(&p->c, &s, src, 64, 0) ?: op_wait(&s, IB_WC_SUCCESS) ?:
		     op_wait(&ops[i], IB_WC_SUCCESS);
	}
	return rv;
}

static int an_srq_user_is_told_of_the_last_entry(struct pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int rv = ib_modify_qp(p->s.qp, &attr, IB_QP_STATE);

	msleep(100);
	return rv ?: test_bit(IB_EVENT_QP_LAST_WQE_REACHED, &p->s.qp_events) ? 0 : -ENOMSG;
}

/* ---- running ---- */

static const struct {
	const char *name;
	int (*run)(struct pair *p);
	bool srq;
} cases[] = {
	{ "send-carries-bytes", send_carries_bytes },
	{ "handlers-run-on-their-vectors-cpu", handlers_run_on_their_vectors_cpu },
	{ "inline-send-is-copied-at-once", inline_send_is_copied_at_once },
	{ "write-reaches-fast-region", write_reaches_fast_region },
	{ "mapping-anew-changes-nothing-before-reg-mr",
	  mapping_anew_changes_nothing_before_reg_mr },
	{ "local-inv-ends-access", local_inv_ends_access },
	{ "read-with-inv-invalidates-its-sink", read_with_inv_invalidates_its_sink },
	{ "send-with-inv-invalidates-the-peers-region",
	  send_with_inv_invalidates_the_peers_region },
	{ "drain-returns-after-all-completions", drain_returns_after_all_completions },
	{ "posts-in-error-are-flushed-in-order", posts_in_error_are_flushed_in_order },
	{ "a-chain-stops-at-the-bad-request", a_chain_stops_at_the_bad_request },
	{ "srq-carries-bytes", send_carries_bytes, true },
	{ "srq-limit-fires-once", srq_limit_fires_once, true },
	{ "a-resized-srq-keeps-what-waits", a_resized_srq_keeps_what_waits, true },
	{ "an-srq-user-is-told-of-the-last-entry", an_srq_user_is_told_of_the_last_entry, true },
};

static int run_case(int i)
{
	struct pair *p = kzalloc(sizeof(*p), GFP_KERNEL);
	int rv;

	if (!p)
		return -ENOMEM;
	fill(i);
	rv = pair_connect(p, cases[i].srq);
	if (rv)
		pr_info("weft_kmod: no connection: %d\n", rv);
	rv = rv ?: cases[i].run(p);
	pair_close(p);
	if (!rv && (p->c.reentered || p->s.reentered))
		rv = -EBUSY;
	kfree(p);
	return rv;
}

int run_cases(void)
{
	int i, rv, failed = 0;

	src = kmalloc(BUF, GFP_KERNEL);
	dst = kmalloc(BUF, GFP_KERNEL);
	other = kmalloc(BUF, GFP_KERNEL);
	for (i = 0; src && dst && other && i < ARRAY_SIZE(cases); i++) {
		rv = run_case(i);
		failed += !!rv;
		if (rv)
			pr_info("weft_kmod: not ok %s: %d\n", cases[i].name, rv);
		else
			pr_info("weft_kmod: ok %s\n", cases[i].name);
	}
	if (!src || !dst || !other)
		failed = 1;
	kfree(src);
	kfree(dst);
	kfree(other);
	return failed ? -EIO : 0;
}
