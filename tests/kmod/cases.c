// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The cases. Each gets a fresh connection and leaves its buffers' contents behind. */
#include <linux/delay.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <rdma/iw_cm.h>

#include "kmod.h"

#define BUF	(64 * 1024)
#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

static u8 *src, *dst, *other;		/* BUF octets each */
static u8 seed;				/* seed of src's pattern */

static u8 octet(u32 i)
{
	return (u8)(i * 7 + (i >> 8) + seed);
}

static void fill(void)
{
	u32 i;

	for (i = 0; i < BUF; i++)
		src[i] = octet(i);
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

/* Registers @mr's mapped memory over @e's QP, under a new key, with the rights @access. */
static int reg_mapped(struct end *e, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED };
	static struct op op;

	op_init(&op);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.wr.wr_cqe = &op.cqe;
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access = access;
	return ib_post_send(e->qp, &wr.wr, NULL) ?: op_wait(&op, IB_WC_SUCCESS);
}

static int reg(struct end *e, struct ib_mr *mr, u8 *buf)
{
	return map_octets(mr, buf, BUF) ?: reg_mapped(e, mr, ACCESS);
}

static int local_inv(struct end *e, u32 rkey)
{
	static struct op op;
	struct ib_send_wr wr = {
		.wr_cqe = &op.cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};

	op_init(&op);
	return ib_post_send(e->qp, &wr, NULL) ?: op_wait(&op, IB_WC_SUCCESS);
}

/* One-sided @opcode between @len octets at @local (@lkey) and at @to of the region @rkey. */
static int rdma_len(struct end *e, struct op *op, enum ib_wr_opcode opcode, u64 local, u32 len,
		    u32 lkey, u64 to, u32 rkey)
{
	struct ib_sge sge = { .addr = local, .length = len, .lkey = lkey };
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

static int rdma(struct end *e, struct op *op, enum ib_wr_opcode opcode, u64 local, u32 lkey,
		u64 to, u32 rkey)
{
	return rdma_len(e, op, opcode, local, BUF, lkey, to, rkey);
}

/* Waits for a Send of the client at the server: everything before it is then placed. */
static int sync_send(struct pair *p)
{
	static struct op s, r;
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
	static struct op s, r;
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

/* The message has arrived: only its receive is missing. */
static int a_late_receive_is_waited_for(struct pair *p)
{
	static struct op s, r;
	int rv;

	op_init(&s);
	op_init(&r);
	rv = post_send_buf(&p->c, &s, src, BUF, 0) ?: op_wait(&s, IB_WC_SUCCESS);
	msleep(100);
	rv = rv ?: post_recv_buf(&p->s, &r, dst, BUF) ?: op_wait(&r, IB_WC_SUCCESS);
	if (rv)
		return rv;
	return r.wc.byte_len == BUF && !memcmp(src, dst, BUF) ? 0 : -EILSEQ;
}

/* One message from memory by address, by a region's pages, and by address again. */
static int gather(struct pair *p, struct ib_mr *mr)
{
	struct ib_sge sge[] = {
		{ .addr = (uintptr_t)src, .length = 1001, .lkey = p->c.pd->local_dma_lkey },
		{ .length = 30001 },
		{ .addr = (uintptr_t)src + 31002, .length = BUF - 31002,
		  .lkey = p->c.pd->local_dma_lkey },
	};
	static struct op s, r;
	struct ib_send_wr wr = {
		.wr_cqe = &s.cqe,
		.sg_list = sge,
		.num_sge = ARRAY_SIZE(sge),
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int rv = reg(&p->c, mr, src);

	op_init(&s);
	op_init(&r);
	sge[1].addr = mr->iova + 1001;
	sge[1].lkey = mr->lkey;
	rv = rv ?: post_recv_buf(&p->s, &r, dst, BUF) ?: ib_post_send(p->c.qp, &wr, NULL) ?:
	     op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
	return rv ?: memcmp(src, dst, BUF) ? -EILSEQ : 0;
}

static int one_send_gathers_memory_of_every_kind(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->c.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = gather(p, mr);
	ib_dereg_mr(mr);
	return rv;
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

/*
 * Three pieces at unaligned addresses, as much as the QP takes, and free again when the call
 * returns.
 */
static int post_inline(struct pair *p, struct op *op, u8 *data, u32 len)
{
	struct ib_sge sge[] = {
		{ .addr = (uintptr_t)data, .length = 33 },
		{ .addr = (uintptr_t)data + 33, .length = 1 },
		{ .addr = (uintptr_t)data + 34, .length = len - 34 },
	};
	struct ib_send_wr wr = {
		.wr_cqe = &op->cqe,
		.sg_list = sge,
		.num_sge = ARRAY_SIZE(sge),
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
	};
	int rv;

	op_init(op);
	rv = ib_post_send(p->c.qp, &wr, NULL);
	memset(data, 0xee, len);
	return rv;
}

static int inline_send_is_copied_at_once(struct pair *p)
{
	static u8 data[4096];
	u32 max = p->c.max_inline;
	static struct op s, r;
	int rv;

	if (max < INLINE || max >= sizeof(data))
		return -ERANGE;
	op_init(&r);
	memcpy(data, src, max + 1);
	if (post_inline(p, &s, data, max + 1) != -EINVAL)
		return -EBADMSG;
	memcpy(data, src, max);
	rv = post_recv_buf(&p->s, &r, dst, BUF) ?: post_inline(p, &s, data, max) ?:
	     op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
	if (rv)
		return rv;
	if (r.wc.byte_len != max || memcmp(src, dst, max) || memchr_inv(dst + max, 0, BUF - max))
		return -EILSEQ;
	return 0;
}

static int only_a_solicited_send_wakes(struct pair *p)
{
	static struct op s, plain, solicited;
	int rv;

	/* It stays armed for any completion: one more, and then for solicited ones. */
	WRITE_ONCE(p->s.arm, IB_CQ_SOLICITED);
	rv = sync_send(p) ?: armed_wait(&p->s);
	op_init(&plain);
	op_init(&solicited);
	op_init(&s);
	rv = rv ?: post_recv_buf(&p->s, &plain, dst, 64) ?:
	     post_recv_buf(&p->s, &solicited, dst, 64) ?:
	     post_send_buf(&p->c, &s, src, 64, 0) ?: op_wait(&s, IB_WC_SUCCESS);
	msleep(200);
	if (rv)
		return rv;
	if (completion_done(&plain.done))
		return -EBADMSG;
	op_init(&s);
	rv = post_send_buf(&p->c, &s, src, 64, IB_SEND_SOLICITED) ?:
	     op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&solicited, IB_WC_SUCCESS) ?:
	     op_wait(&plain, IB_WC_SUCCESS);
	return rv ?: plain.order + 1 == solicited.order ? 0 : -EBADMSG;
}

static int write_to_registered(struct pair *p, struct ib_mr *mr)
{
	static struct op w;

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

/* ---- RFC 7306 ---- */

#define IMM	0xA1B2C3D4

/* Memory of the server with all rights for peers. */
static int everything_goes(struct end *e, struct ib_mr *mr)
{
	return map_octets(mr, dst, BUF) ?:
	       reg_mapped(e, mr, ACCESS | IB_ACCESS_REMOTE_ATOMIC);
}

static int with_region(struct pair *p, int (*run)(struct pair *p, struct ib_mr *mr))
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = everything_goes(&p->s, mr) ?: run(p, mr);
	ib_dereg_mr(mr);
	return rv;
}

static int expect_imm(const struct ib_wc *wc, enum ib_wc_opcode opcode, u32 len)
{
	return wc->opcode == opcode && wc->wc_flags == IB_WC_WITH_IMM && wc->byte_len == len &&
	       be32_to_cpu(wc->ex.imm_data) == IMM ? 0 : -EBADMSG;
}

static int write_imm(struct pair *p, struct ib_mr *mr)
{
	static struct op w, r;
	struct ib_sge sge = { .addr = (uintptr_t)src, .length = 5000,
			      .lkey = p->c.pd->local_dma_lkey };
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &w.cqe, .opcode = IB_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IB_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
			.ex.imm_data = cpu_to_be32(IMM) },
		.remote_addr = mr->iova, .rkey = mr->rkey,
	};

	op_init(&w);
	op_init(&r);
	return post_recv_buf(&p->s, &r, other, 1) ?: ib_post_send(p->c.qp, &wr.wr, NULL) ?:
	       op_wait(&r, IB_WC_SUCCESS) ?: expect_imm(&r.wc, IB_WC_RECV_RDMA_WITH_IMM, 5000) ?:
	       memcmp(src, dst, 5000) ? -EILSEQ : op_wait(&w, IB_WC_SUCCESS);
}

static int a_write_with_immediate_is_there_when_it_is_told(struct pair *p)
{
	return with_region(p, write_imm);
}

static int a_send_with_immediate_takes_one_receive(struct pair *p)
{
	static struct op s, r;
	struct ib_sge sge = { .addr = (uintptr_t)src, .length = 5000,
			      .lkey = p->c.pd->local_dma_lkey };
	struct ib_send_wr wr = {
		.wr_cqe = &s.cqe, .opcode = IB_WR_SEND_WITH_IMM, .send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1, .ex.imm_data = cpu_to_be32(IMM),
	};

	op_init(&s);
	op_init(&r);
	return post_recv_buf(&p->s, &r, dst, BUF) ?: ib_post_send(p->c.qp, &wr, NULL) ?:
	       op_wait(&r, IB_WC_SUCCESS) ?: expect_imm(&r.wc, IB_WC_RECV, 5000) ?:
	       memcmp(src, dst, 5000) ? -EILSEQ : op_wait(&s, IB_WC_SUCCESS) ?: sync_send(p);
}

/* Runs @wr on the first word of dst, which is @was before and @is after it. */
static int atomic(struct pair *p, struct ib_mr *mr, struct ib_atomic_wr wr, u64 was, u64 is)
{
	static struct op a;
	static u64 answer;
	struct ib_sge sge = { .addr = (uintptr_t)&answer, .length = sizeof(answer),
			      .lkey = p->c.pd->local_dma_lkey };

	op_init(&a);
	wr.wr.wr_cqe = &a.cqe;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	wr.remote_addr = mr->iova;
	wr.rkey = mr->rkey;
	return ib_post_send(p->c.qp, &wr.wr, NULL) ?: op_wait(&a, IB_WC_SUCCESS) ?:
	       answer == was && *(u64 *)dst == is ? 0 : -EILSEQ;
}

static int all_atomics(struct pair *p, struct ib_mr *mr)
{
	struct ib_atomic_wr add = { .wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .compare_add = 5 };
	struct ib_atomic_wr swap = { .wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP, .compare_add = 5,
				     .swap = 0xFF };
	/* Two fields: the carry out of bit 31 is lost. */
	struct ib_atomic_wr fields = { .wr.opcode = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
				       .compare_add = 0xFFFFFF01, .compare_add_mask = BIT(31) };
	struct ib_atomic_wr masked = { .wr.opcode = IB_WR_MASKED_ATOMIC_CMP_AND_SWP,
				       .compare_add = 0x10, .compare_add_mask = 0xF0,
				       .swap = ~0ull, .swap_mask = 0xF0 };

	int rv = atomic(p, mr, add, 0, 5) ?: atomic(p, mr, swap, 5, 0xFF) ?:
		 atomic(p, mr, swap, 0xFF, 0xFF) ?: atomic(p, mr, fields, 0xFF, 0) ?:
		 atomic(p, mr, add, 0, 5) ?: atomic(p, mr, masked, 5, 5);

	masked.compare_add = 0x0F;
	return rv ?: atomic(p, mr, masked, 5, 0xF5);
}

static int atomics_change_a_word_and_return_it(struct pair *p)
{
	return with_region(p, all_atomics);
}

/* ---- a large region ---- */

#define PAGES	1024

/* Pages one by one. */
static int table_pages(struct sg_table *table)
{
	struct scatterlist *sg;
	u8 *page;
	u32 i;
	int rv = sg_alloc_table(table, PAGES, GFP_KERNEL);

	if (rv)
		return rv;
	for_each_sg(table->sgl, sg, PAGES, i) {
		page = (u8 *)get_zeroed_page(GFP_KERNEL);
		if (!page)
			return -ENOMEM;
		sg_set_buf(sg, page, PAGE_SIZE);
		sg_dma_address(sg) = (uintptr_t)page;
		sg_dma_len(sg) = PAGE_SIZE;
	}
	return 0;
}

static void free_pages_of(struct sg_table *table)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sg(table->sgl, sg, table->orig_nents, i)
		if (sg_page(sg))
			__free_page(sg_page(sg));
	sg_free_table(table);
}

/* The page of src expected in page @i once three have been written; or none. */
static const u8 *page_of(u32 i)
{
	if (i == 0)
		return src;
	if (i == PAGES / 2 + 1)
		return src + PAGE_SIZE;
	return i == PAGES - 1 ? src + 2 * PAGE_SIZE : NULL;
}

static int write_page(struct pair *p, const struct ib_mr *mr, u32 i)
{
	static struct op w;

	return rdma_len(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)page_of(i), PAGE_SIZE,
			p->c.pd->local_dma_lkey, mr->iova + (u64)i * PAGE_SIZE, mr->rkey) ?:
	       op_wait(&w, IB_WC_SUCCESS);
}

static int pages_hold_what_was_written(struct sg_table *table)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sg(table->sgl, sg, PAGES, i) {
		const u8 *page = sg_virt(sg);

		if (page_of(i) ? memcmp(page, page_of(i), PAGE_SIZE) != 0 :
				 memchr_inv(page, 0, PAGE_SIZE) != NULL)
			return -EILSEQ;
	}
	return 0;
}

static int write_to_pages(struct pair *p, struct ib_mr *mr, struct sg_table *table)
{
	int n = ib_map_mr_sg(mr, table->sgl, PAGES, NULL, PAGE_SIZE);

	if (n != PAGES)
		return n < 0 ? n : -ERANGE;
	return reg_mapped(&p->s, mr, ACCESS) ?: write_page(p, mr, 0) ?:
	       write_page(p, mr, PAGES - 1) ?: write_page(p, mr, PAGES / 2 + 1) ?:
	       sync_send(p) ?: pages_hold_what_was_written(table);
}

/* A map beyond a region's size is refused, and so is a region beyond the device's limit. */
static int pages_beyond_are_refused(struct pair *p, struct sg_table *table)
{
	u32 max = p->s.id->device->attrs.max_fast_reg_page_list_len;
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, PAGES - 1);
	int n;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	n = ib_map_mr_sg(mr, table->sgl, PAGES, NULL, PAGE_SIZE);
	ib_dereg_mr(mr);
	if (n >= PAGES)
		return -ERANGE;
	mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, max);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	ib_dereg_mr(mr);
	mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, max + 1);
	if (IS_ERR(mr))
		return 0;
	ib_dereg_mr(mr);
	return -ERANGE;
}

static int a_fast_region_has_1024_pages(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, PAGES);
	struct sg_table table = {};
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = table_pages(&table) ?: write_to_pages(p, mr, &table) ?:
	     pages_beyond_are_refused(p, &table);
	ib_dereg_mr(mr);
	free_pages_of(&table);
	return rv;
}

/* ---- one right each ---- */

static int write_all(struct pair *p, const struct ib_mr *mr)
{
	static struct op w;
	int rv = rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
		      mr->iova, mr->rkey);

	/* A refused Write has completed nevertheless: the Terminate arrives later. */
	if (!rv && !wait_for_completion_timeout(&w.done, WAIT))
		rv = -ETIME;
	return rv;
}

static int is_told_of_an_error(struct pair *p)
{
	return qp_event_wait(&p->c, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static int write_is_served(struct pair *p, const struct ib_mr *mr)
{
	return write_all(p, mr) ?: sync_send(p) ?: memcmp(src, dst, BUF) ? -EILSEQ : 0;
}

static int write_is_refused(struct pair *p, const struct ib_mr *mr)
{
	memset(dst, 0, BUF);
	return write_all(p, mr) ?: is_told_of_an_error(p) ?:
	       memchr_inv(dst, 0, BUF) ? -EILSEQ : 0;
}

static int read_all(struct pair *p, const struct ib_mr *mr, enum ib_wc_status status)
{
	static struct op r;

	return rdma(&p->c, &r, IB_WR_RDMA_READ, (uintptr_t)other, p->c.pd->local_dma_lkey,
		    mr->iova, mr->rkey) ?: op_wait(&r, status);
}

static int read_is_served(struct pair *p, const struct ib_mr *mr)
{
	memcpy(dst, src, BUF);
	return read_all(p, mr, IB_WC_SUCCESS) ?: memcmp(src, other, BUF) ? -EILSEQ : 0;
}

static int read_is_refused(struct pair *p, const struct ib_mr *mr)
{
	memset(other, 0, BUF);
	memcpy(dst, src, BUF);
	return read_all(p, mr, IB_WC_REM_ACCESS_ERR) ?: is_told_of_an_error(p) ?:
	       memchr_inv(other, 0, BUF) ? -EILSEQ : 0;
}

/* A receive into it by its key is a local error of the server. */
static int receive_is_refused(struct pair *p, const struct ib_mr *mr)
{
	struct ib_sge sge = { .addr = mr->iova, .length = BUF, .lkey = mr->lkey };
	static struct op r, s;
	struct ib_recv_wr wr = { .wr_cqe = &r.cqe, .sg_list = &sge, .num_sge = 1 };
	int rv;

	op_init(&r);
	op_init(&s);
	memset(dst, 0, BUF);
	rv = ib_post_recv(p->s.qp, &wr, NULL) ?: post_send_buf(&p->c, &s, src, BUF, 0) ?:
	     op_wait(&r, IB_WC_LOC_PROT_ERR);
	/* Sent or flushed, it completes before the case ends. */
	if (!rv && !wait_for_completion_timeout(&s.done, WAIT))
		rv = -ETIME;
	return rv ?: memchr_inv(dst, 0, BUF) ? -EILSEQ : 0;
}

typedef int (*use)(struct pair *p, const struct ib_mr *mr);

/* dst with only @rights: @may is served, and after it @may_not is refused. */
static int with_rights(struct pair *p, int rights, use may, use may_not)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = map_octets(mr, dst, BUF) ?: reg_mapped(&p->s, mr, rights) ?:
	     (may ? may(p, mr) : 0) ?: may_not(p, mr);
	ib_dereg_mr(mr);
	return rv;
}

#define WRITABLE (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

static int what_may_be_written_is_not_read(struct pair *p)
{
	return with_rights(p, WRITABLE, write_is_served, read_is_refused);
}

static int what_may_be_read_is_not_written(struct pair *p)
{
	return with_rights(p, IB_ACCESS_REMOTE_READ, read_is_served, write_is_refused);
}

static int what_may_be_read_takes_no_receive(struct pair *p)
{
	return with_rights(p, IB_ACCESS_REMOTE_READ, read_is_served, receive_is_refused);
}

static int what_is_local_is_not_written(struct pair *p)
{
	return with_rights(p, IB_ACCESS_LOCAL_WRITE, NULL, write_is_refused);
}

static int what_is_local_is_not_read(struct pair *p)
{
	return with_rights(p, IB_ACCESS_LOCAL_WRITE, NULL, read_is_refused);
}

/* core/rw.c maps a region that the peer can still write to, and invalidates it after that. */
static int write_to_remapped(struct pair *p, struct ib_mr *mr)
{
	u64 to;
	static struct op w;
	int rv = reg(&p->s, mr, dst);

	to = mr->iova;
	/* Other memory, and shorter: none of its blocks may be mistaken for an old one. */
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
	static struct op w;
	int rv = write_to_registered(p, mr) ?: local_inv(&p->s, mr->rkey);

	src[0] ^= 0xff;
	rv = rv ?: rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
			mr->iova, mr->rkey);
	/* RFC 5040 §5.5: the Write itself completes; the Terminate comes later. */
	if (!rv && !wait_for_completion_timeout(&w.done, WAIT))
		rv = -ETIME;
	rv = rv ?: is_told_of_an_error(p);
	return rv ?: dst[0] != first ? -EILSEQ : 0;
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

/* As RTRS' server: registered over the client's QP, written to and invalidated over the server's. */
static int write_over_the_other(struct pair *p, struct ib_mr *mr)
{
	static struct op w;
	int rv = reg(&p->c, mr, dst) ?:
		 rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
		      mr->iova, mr->rkey) ?:
		 op_wait(&w, IB_WC_SUCCESS) ?: sync_send(p);

	if (rv)
		return rv;
	if (memcmp(src, dst, BUF))
		return -EILSEQ;
	return local_inv(&p->s, mr->rkey) ?: reg(&p->s, mr, dst) ?: local_inv(&p->c, mr->rkey);
}

static int a_fast_region_is_for_all_qps_of_its_pd(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int i, rv = 0;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	for (i = 0; i < 20 && !rv; i++) {
		memset(dst, 0, BUF);
		rv = write_over_the_other(p, mr);
	}
	ib_dereg_mr(mr);
	return rv;
}

/* ---- a region that ends while another QP uses it ---- */

#define ROUNDS	20
#define PIECE	8192			/* octets handed to TCP in one call */

int device_counter(struct ib_device *dev, const char *name, u64 *n)
{
	struct rdma_hw_stats *stats = dev->ops.alloc_hw_port_stats(dev, 1);
	int i, rv = -ENOENT;

	if (!stats)
		return -ENOMEM;
	if (dev->ops.get_hw_stats(dev, stats, 1, 0) < 0)
		rv = -EIO;
	for (i = 0; i < stats->num_counters && rv == -ENOENT; i++)
		if (!strcmp(stats->descs[i].name, name)) {
			*n = stats->value[i];
			rv = 0;
		}
	rdma_free_hw_stats_struct(stats);
	return rv;
}

/* The octets of a region were sent, and the server was notified that the region was invalidated. */
static struct op written, sent, ended;

/* The notified server may reuse the memory. */
static void memory_is_ours(struct ib_cq *cq, struct ib_wc *wc)
{
	memset(src, 0xee, PIECE);
	ended.wc = *wc;
	complete(&ended.done);
}

static int post_for_the_end(struct pair *q)
{
	op_init(&ended);
	ended.cqe.done = memory_is_ours;
	return post_recv_buf(&q->s, &ended, other + 1, 1);
}

/* The client writes octets of @from to @to, and its Send invalidates @from. */
static int post_from_region(struct pair *q, const struct ib_mr *from, const struct ib_mr *to)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)other, .length = 1, .lkey = q->c.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &sent.cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND_WITH_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = from->rkey,
	};

	op_init(&sent);
	return rdma_len(&q->c, &written, IB_WR_RDMA_WRITE, from->iova, PIECE, from->lkey, to->iova,
			to->rkey) ?:
	       ib_post_send(q->c.qp, &wr, NULL);
}

/*
 * The client sends in this thread instead of in softirq: its bottom half finds the socket owned by
 * the thread, which closes the connection, and leaves it the work. (ksoftirqd is not woken.) Then
 * softirq delivers the octets that TCP was handed to the server while TCP's call is still running,
 * and the client holds the region.
 */
static int send_in_this_thread(struct pair *q, const struct ib_mr *from, const struct ib_mr *to)
{
	int rv;

	local_irq_disable();
	local_bh_disable();
	rv = post_from_region(q, from, to);
	_local_bh_enable();
	local_irq_enable();
	return rdma_disconnect(q->c.id) ?: rv;
}

static int check_octets(void)
{
	u32 i;

	for (i = 0; i < PIECE; i++)
		if (dst[i] != octet(i) || src[i] != 0xee)
			return -EILSEQ;
	return 0;
}

static int end_while_used(struct pair *p, struct pair *q, struct ib_mr *from, struct ib_mr *to)
{
	int rv;

	memset(q, 0, sizeof(*q));
	fill();
	rv = reg(&p->s, to, dst) ?: pair_connect_beside(q, p, 0, DEPTH) ?: reg(&q->s, from, src);
	rv = rv ?: post_for_the_end(q) ?: send_in_this_thread(q, from, to) ?:
	     op_wait(&ended, IB_WC_SUCCESS) ?: op_wait(&written, IB_WC_SUCCESS) ?:
	     op_wait(&sent, IB_WC_SUCCESS);
	pair_close(q);
	return rv ?: check_octets() ?: local_inv(&p->s, to->rkey);
}

static int end_until_one_waits(struct pair *p, struct pair *q, struct ib_mr *from, struct ib_mr *to)
{
	u64 before, now;
	int i, rv = device_counter(p->c.id->device, "region_waits", &before);

	now = before;
	for (i = 0; i < ROUNDS && !rv && now == before; i++)
		rv = end_while_used(p, q, from, to) ?:
		     device_counter(p->c.id->device, "region_waits", &now);
	return rv ?: now == before ? -ENODATA : 0;
}

static int ending_a_region_waits_for_its_users(struct pair *p)
{
	struct ib_mr *from = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	struct ib_mr *to = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	struct pair *q = kzalloc(sizeof(*q), GFP_KERNEL);
	int rv = IS_ERR(from) || IS_ERR(to) || !q ? -ENOMEM : 0;

	migrate_disable();
	rv = rv ?: end_until_one_waits(p, q, from, to);
	migrate_enable();
	kfree(q);
	if (!IS_ERR(from))
		ib_dereg_mr(from);
	if (!IS_ERR(to))
		ib_dereg_mr(to);
	return rv;
}

static int read_with_inv(struct pair *p, struct ib_mr *from, struct ib_mr *to)
{
	static struct op r;
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
	static struct op s, r;
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

/* 16 Writes of src and a Read to other are in flight when the QP is drained. */
static int drain_under_way(struct pair *p, struct ib_mr *mr)
{
	bool flushed = false;
	int i, rv = reg(&p->s, mr, dst);

	for (i = 0; i < 16 && !rv; i++)
		rv = rdma(&p->c, &ops[i], IB_WR_RDMA_WRITE, (uintptr_t)src,
			  p->c.pd->local_dma_lkey, mr->iova, mr->rkey);
	rv = rv ?: rdma(&p->c, &ops[16], IB_WR_RDMA_READ, (uintptr_t)other,
			p->c.pd->local_dma_lkey, mr->iova, mr->rkey);
	ib_drain_qp(p->c.qp);
	if (rv)
		return rv;
	for (i = 0; i <= 16; i++) {
		if (!completion_done(&ops[i].done) ||
		    (ops[i].wc.status != IB_WC_SUCCESS && ops[i].wc.status != IB_WC_WR_FLUSH_ERR))
			return -EIO;
		/* In order; nothing succeeds after the first that failed. */
		if ((i && ops[i].order != ops[i - 1].order + 1) ||
		    (flushed && ops[i].wc.status == IB_WC_SUCCESS))
			return -EBADMSG;
		flushed |= ops[i].wc.status != IB_WC_SUCCESS;
	}
	return 0;
}

/* Memory of completed requests is the consumer's: src is no longer read, nor other written. */
static int buffers_are_free(void)
{
	u32 i;

	memset(src, 0xee, BUF);
	memset(other, 0x55, BUF);
	msleep(200);
	for (i = 0; i < BUF; i++)
		if (dst[i] && dst[i] != octet(i))
			return -EILSEQ;
	return memchr_inv(other, 0x55, BUF) ? -EILSEQ : 0;
}

static int drain_ends_writes_and_a_read(struct pair *p)
{
	struct ib_mr *mr = ib_alloc_mr(p->s.pd, IB_MR_TYPE_MEM_REG, BUF / PAGE_SIZE + 1);
	int rv;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = drain_under_way(p, mr) ?: buffers_are_free();
	ib_dereg_mr(mr);
	return rv;
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
	static struct op recv;
	int i, rv;

	op_init(&recv);
	rv = post_recv_buf(&p->s, &recv, dst, 64);
	for (i = 0; i < 3; i++) {
		op_init(&ops[i]);
		wr[i].wr_cqe = &ops[i].cqe;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = i == 1 ? IB_WR_LSO : IB_WR_SEND;
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
	static struct op s;
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
	static struct op s;
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

	return rv ?: qp_event_wait(&p->s, IB_EVENT_QP_LAST_WQE_REACHED, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* ib_core's unsafe global rkey: it has the device make a region of all memory. */
static int the_global_rkey_reaches_all_memory(struct pair *p)
{
	static struct op w, r;
	u32 rkey = p->s.pd->unsafe_global_rkey;
	int rv = rdma(&p->c, &w, IB_WR_RDMA_WRITE, (uintptr_t)src, p->c.pd->local_dma_lkey,
		      (uintptr_t)dst, rkey) ?:
		 op_wait(&w, IB_WC_SUCCESS) ?:
		 rdma(&p->c, &r, IB_WR_RDMA_READ, (uintptr_t)other, p->c.pd->local_dma_lkey,
		      (uintptr_t)dst, rkey) ?:
		 op_wait(&r, IB_WC_SUCCESS);

	return rv ?: memcmp(src, dst, BUF) || memcmp(src, other, BUF) ? -EILSEQ : 0;
}

/* ---- what the connection's events said ---- */

static int no_private_data_is_no_pointer(struct pair *p)
{
	return p->stale_private_data ? -EFAULT : 0;
}

/* ---- whose QP it is ---- */

/* Runs in a kernel thread: creates a QP beside the client's, and connects it by @id. */
struct by_thread {
	struct work_struct work;
	const struct end *beside;
	struct ib_qp *qp;
	struct rdma_cm_id *id;
	int status;
};

static void make_qp(struct work_struct *work)
{
	struct by_thread *t = container_of(work, struct by_thread, work);
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.send_cq = t->beside->cq,
		.recv_cq = t->beside->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	t->qp = ib_create_qp(t->beside->pd, &attr);
}

/* By the QP's number, as ucma does, whose ids have no QP. */
static int connect_number(struct rdma_cm_id *id, const struct ib_qp *qp)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .qp_num = qp->qp_num };

	return rdma_connect(id, &param);
}

static void connect_qp(struct work_struct *work)
{
	struct by_thread *t = container_of(work, struct by_thread, work);

	t->status = connect_number(t->id, t->qp);
}

static void in_kernel_thread(struct by_thread *t, work_func_t what)
{
	INIT_WORK_ONSTACK(&t->work, what);
	schedule_work(&t->work);
	flush_work(&t->work);
	destroy_work_on_stack(&t->work);
}

/* This is a process (insmod), as would be a program that guesses QP numbers. */
static int only_a_kernel_thread_connects_its_qp(struct pair *p)
{
	struct by_thread t = { .beside = &p->c };
	struct pair *q = kzalloc(sizeof(*q), GFP_KERNEL);
	int rv;

	if (!q)
		return -ENOMEM;
	in_kernel_thread(&t, make_qp);
	rv = PTR_ERR_OR_ZERO(t.qp) ?: pair_resolve(q);
	if (!rv && connect_number(q->c.id, t.qp) != -EINVAL)
		rv = -EPERM;
	if (!rv) {
		t.id = q->c.id;
		in_kernel_thread(&t, connect_qp);
		rv = t.status;
	}
	pair_close(q);
	if (!IS_ERR(t.qp))
		ib_destroy_qp(t.qp);
	kfree(q);
	return rv;
}

/* ---- a slow initiator delays no other ---- */

/* An initiator that gets no CPU in the middle of a connect, where it reports to iw_cm. */
struct slow {
	struct work_struct work;
	struct iw_cm_id *id;
	struct ib_qp *qp;
	void (*add_ref)(struct iw_cm_id *id);
	struct completion stopped, go_on;
	bool in_vain;			/* it was never released */
	int status;
};

static int slow_event(struct iw_cm_id *id, struct iw_cm_event *ev)
{
	return 0;
}

static void stop_here(struct iw_cm_id *id)
{
	struct slow *s = id->context;

	complete(&s->stopped);
	if (!wait_for_completion_timeout(&s->go_on, 2 * WAIT))
		s->in_vain = true;
	s->add_ref(id);
}

static void connect_slowly(struct work_struct *work)
{
	struct slow *s = container_of(work, struct slow, work);
	struct iw_cm_conn_param param = { .ord = 1, .ird = 1, .qpn = s->qp->qp_num };

	s->status = iw_cm_connect(s->id, &param);
	complete(&s->stopped);
}

static int slow_begin(struct slow *s, struct ib_qp *qp)
{
	struct sockaddr_in sin = pair_address();

	init_completion(&s->stopped);
	init_completion(&s->go_on);
	s->qp = qp;
	s->id = iw_create_cm_id(qp->device, slow_event, s);
	if (IS_ERR(s->id))
		return PTR_ERR(s->id);
	memcpy(&s->id->remote_addr, &sin, sizeof(sin));
	sin.sin_port = 0;
	memcpy(&s->id->local_addr, &sin, sizeof(sin));
	s->add_ref = s->id->add_ref;
	s->id->add_ref = stop_here;
	INIT_WORK(&s->work, connect_slowly);
	schedule_work(&s->work);
	return wait_for_completion_timeout(&s->stopped, WAIT) ? s->status : -ETIMEDOUT;
}

static int slow_end(struct slow *s)
{
	complete(&s->go_on);
	flush_work(&s->work);
	iw_destroy_cm_id(s->id);
	return s->in_vain ? -ETIME : s->status;
}

/* The server already has its one connection and refuses this one; that counts as an answer. */
static int is_answered(struct pair *q, struct by_thread *t)
{
	t->id = q->c.id;
	in_kernel_thread(t, connect_qp);
	if (t->status)
		return t->status;
	return wait_for_completion_timeout(&q->c.step, WAIT) ? 0 : -ETIMEDOUT;
}

static int while_one_is_slow(struct pair *q, struct by_thread *slow_one, struct by_thread *other)
{
	struct slow *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int rv, ended;

	if (!s)
		return -ENOMEM;
	rv = slow_begin(s, slow_one->qp);
	if (!IS_ERR(s->id)) {
		rv = rv ?: is_answered(q, other);
		ended = slow_end(s);
		rv = rv ?: ended;
	}
	kfree(s);
	return rv;
}

/* Requests are sent in order, but do not wait for one that cannot be sent. */
static int a_slow_initiator_delays_no_other(struct pair *p)
{
	struct by_thread t[2] = { { .beside = &p->c }, { .beside = &p->c } };
	struct pair *q = kzalloc(sizeof(*q), GFP_KERNEL);
	int i, rv;

	if (!q)
		return -ENOMEM;
	for (i = 0; i < 2; i++)
		in_kernel_thread(&t[i], make_qp);
	rv = PTR_ERR_OR_ZERO(t[0].qp) ?: PTR_ERR_OR_ZERO(t[1].qp) ?: pair_resolve(q);
	rv = rv ?: while_one_is_slow(q, &t[0], &t[1]);
	pair_close(q);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(t[i].qp))
			ib_destroy_qp(t[i].qp);
	kfree(q);
	return rv;
}

/* Its CQ has one entry and overflows. */
static int overflow_cq_of(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_recv_wr wr = {};
	int i, rv = ib_modify_qp(qp, &attr, IB_QP_STATE);

	for (i = 0; i < 4 && !rv; i++)
		rv = ib_post_recv(qp, &wr, NULL);
	return rv;
}

static int is_moved_to_error(struct ib_qp *qp)
{
	unsigned long until = jiffies + WAIT;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	int rv;

	do {
		rv = ib_query_qp(qp, &attr, IB_QP_STATE, &init);
		if (rv || attr.qp_state == IB_QPS_ERR)
			return rv;
		msleep(1);
	} while (time_before(jiffies, until));
	return -ETIMEDOUT;
}

/* Of @qp one will be slow and one shares its CQ; likewise for another CQ. */
static int overflow_beside_slow(struct by_thread *qp)
{
	struct slow *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int rv, ended;

	if (!s)
		return -ENOMEM;
	rv = slow_begin(s, qp[0].qp);
	if (!IS_ERR(s->id)) {
		rv = rv ?: overflow_cq_of(qp[1].qp) ?: overflow_cq_of(qp[3].qp) ?:
			   is_moved_to_error(qp[2].qp);
		ended = slow_end(s);
		/* It, too, was moved to error meanwhile. */
		rv = rv ?: ended == -ETIME ? ended : 0;
	}
	kfree(s);
	return rv;
}

static int an_overflow_waits_for_no_other_cqs_qps(struct pair *p)
{
	const struct ib_cq_init_attr one = { .cqe = 1 };
	struct end *beside = kcalloc(2, sizeof(*beside), GFP_KERNEL);
	struct by_thread t[4] = {};
	int i, rv = 0;

	if (!beside)
		return -ENOMEM;
	for (i = 0; i < 2; i++) {
		beside[i].pd = p->c.pd;
		beside[i].cq = ib_create_cq(p->c.id->device, NULL, NULL, NULL, &one);
		rv = rv ?: PTR_ERR_OR_ZERO(beside[i].cq);
	}
	for (i = 0; i < 4; i++) {
		t[i].beside = &beside[i / 2];
		t[i].qp = ERR_PTR(-ENOENT);
		if (!rv)
			in_kernel_thread(&t[i], make_qp);
		rv = rv ?: PTR_ERR_OR_ZERO(t[i].qp);
	}
	rv = rv ?: overflow_beside_slow(t);
	for (i = 0; i < 4; i++)
		if (!IS_ERR(t[i].qp))
			ib_destroy_qp(t[i].qp);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(beside[i].cq))
			ib_destroy_cq(beside[i].cq);
	kfree(beside);
	return rv;
}

/* ---- memory is short ---- */

static int send_to_client(struct pair *p)
{
	static struct op s, r;

	op_init(&s);
	op_init(&r);
	return post_recv_buf(&p->c, &r, dst, BUF) ?:
	       post_send_buf(&p->s, &s, src, BUF, IB_SEND_SIGNALED) ?:
	       op_wait(&s, IB_WC_SUCCESS) ?: op_wait(&r, IB_WC_SUCCESS);
}

/* Memory may have to be freed over the connection that is being set up. */
static int a_connecting_qp_reads_what_is_in_the_reserve(struct pair *p)
{
	int rv;

	/* The acceptor sends after the first message. */
	rv = sync_send(p);
	reserve_begin(pair_port());
	rv = rv ?: send_to_client(p);
	reserve_end();
	return rv ?: memcmp(src, dst, BUF) ? -EILSEQ : 0;
}

/* Lockdep reports if anything this waits for has ever waited for reclaim. */
static int reclaim_may_wait_for_a_qp(struct pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	unsigned int noio;
	int rv;

	fs_reclaim_acquire(GFP_KERNEL);
	noio = memalloc_noio_save();
	rv = ib_modify_qp(p->c.qp, &attr, IB_QP_STATE) ?: ib_modify_qp(p->s.qp, &attr, IB_QP_STATE);
	memalloc_noio_restore(noio);
	fs_reclaim_release(GFP_KERNEL);
	return rv;
}

/* ---- running ---- */

static const struct {
	const char *name;
	int (*run)(struct pair *p);
	bool srq;
	bool global_rkey;
	bool one_pd;
} cases[] = {
	{ "send-carries-bytes", send_carries_bytes },
	{ "handlers-run-on-their-vectors-cpu", handlers_run_on_their_vectors_cpu },
	{ "inline-send-is-copied-at-once", inline_send_is_copied_at_once },
	{ "only-a-solicited-send-wakes", only_a_solicited_send_wakes },
	{ "write-reaches-fast-region", write_reaches_fast_region },
	{ "a-write-with-immediate-is-placed-when-it-completes",
	  a_write_with_immediate_is_there_when_it_is_told },
	{ "a-send-with-immediate-takes-one-receive", a_send_with_immediate_takes_one_receive },
	{ "a-send-with-immediate-takes-one-of-an-srq",
	  a_send_with_immediate_takes_one_receive, true },
	{ "atomics-change-a-word-and-return-it", atomics_change_a_word_and_return_it },
	{ "a-fast-region-has-1024-pages", a_fast_region_has_1024_pages },
	{ "what-may-be-written-is-not-read", what_may_be_written_is_not_read },
	{ "what-may-be-read-is-not-written", what_may_be_read_is_not_written },
	{ "what-may-be-read-takes-no-receive", what_may_be_read_takes_no_receive },
	{ "what-is-local-is-not-written", what_is_local_is_not_written },
	{ "what-is-local-is-not-read", what_is_local_is_not_read },
	{ "mapping-anew-changes-nothing-before-reg-mr",
	  mapping_anew_changes_nothing_before_reg_mr },
	{ "one-send-gathers-memory-of-every-kind", one_send_gathers_memory_of_every_kind },
	{ "local-inv-ends-access", local_inv_ends_access },
	{ "a-fast-region-is-for-all-qps-of-its-pd", a_fast_region_is_for_all_qps_of_its_pd,
	  .one_pd = true },
	{ "ending-a-region-waits-for-its-users", ending_a_region_waits_for_its_users,
	  .one_pd = true },
	{ "read-with-inv-invalidates-its-sink", read_with_inv_invalidates_its_sink },
	{ "send-with-inv-invalidates-the-peers-region",
	  send_with_inv_invalidates_the_peers_region },
	{ "drain-returns-after-all-completions", drain_returns_after_all_completions },
	{ "drain-ends-writes-and-a-read", drain_ends_writes_and_a_read },
	{ "posts-in-error-are-flushed-in-order", posts_in_error_are_flushed_in_order },
	{ "a-chain-stops-at-the-bad-request", a_chain_stops_at_the_bad_request },
	{ "the-global-rkey-reaches-all-memory", the_global_rkey_reaches_all_memory, .global_rkey = true },
	{ "no-private-data-is-no-pointer", no_private_data_is_no_pointer },
	{ "a-late-receive-is-waited-for", a_late_receive_is_waited_for },
	{ "only-a-kernel-thread-connects-its-qp", only_a_kernel_thread_connects_its_qp },
	{ "a-slow-initiator-delays-no-other", a_slow_initiator_delays_no_other },
	{ "a-refused-request-is-not-asked-again", a_refused_request_is_not_asked_again },
	{ "a-request-that-iw-cm-rejects-in-any-thread-is-asked-again",
	  a_request_that_iw_cm_rejects_in_any_thread_is_asked_again },
	{ "a-programs-reject-is-final-in-any-thread", a_programs_reject_is_final_in_any_thread },
	{ "an-overflow-waits-for-no-other-cqs-qps", an_overflow_waits_for_no_other_cqs_qps },
	{ "a-connecting-qp-reads-what-is-in-the-reserve",
	  a_connecting_qp_reads_what_is_in_the_reserve },
	{ "reclaim-may-wait-for-a-qp", reclaim_may_wait_for_a_qp },
	{ "a-deep-flush-keeps-no-softirq-waiting", a_deep_flush_keeps_no_softirq_waiting },
	{ "a-deep-flush-of-both-queues-keeps-no-softirq-waiting",
	  a_deep_flush_of_both_queues_keeps_no_softirq_waiting },
	{ "a-deep-queue-that-completes-keeps-no-softirq-waiting",
	  a_deep_queue_that_completes_keeps_no_softirq_waiting },
	{ "a-post-sends-a-short-run-itself", a_post_sends_a_short_run_itself, .global_rkey = true },
	{ "all-connections-have-one-share-of-softirq", all_connections_have_one_share_of_softirq,
	  .global_rkey = true },
	{ "srq-carries-bytes", send_carries_bytes, true },
	{ "an-srqs-late-entry-is-waited-for", a_late_receive_is_waited_for, true },
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
	seed = i;
	fill();
	rv = pair_connect(p, cases[i].srq, cases[i].global_rkey, cases[i].one_pd);
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
