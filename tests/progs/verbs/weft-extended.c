// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the extended verbs promise: completion queues that are polled field by field and have time
 * stamps, and parent domains of one thread. Each case has a connection of its own, both ends in
 * this process, over the device that has ADDR. TAP on stdout. Nothing here knows weft.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "ends.h"

#define NS		1000000000ULL
#define STAMPS		(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define ALL_OPS		(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | \
			 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW)

static struct ends t;
/* What only the server has. */
static struct ibv_mr *to_mr;
static struct ibv_td *server_td;
static struct ibv_pd *server_base;	/* of its parent domain */
static struct ibv_cq_ex *ex_cq;

/* How a case wants its connection. */
struct setting {
	uint64_t wc_flags;
	uint32_t cq_flags;
	bool domain;			/* the server's PD is a parent domain of one thread */
};

/* ---- both ends of a connection ---- */

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	return ibv_alloc_parent_domain(pd->context, &attr);
}

static struct ibv_pd *make_domain(struct ibv_context *ctx)
{
	struct ibv_td_init_attr attr = {};
	struct ibv_pd *pd;

	server_base = ibv_alloc_pd(ctx);
	server_td = ibv_alloc_td(ctx, &attr);
	pd = server_base && server_td ? parent_of(server_base, server_td) : NULL;
	if (!pd)
		fail("no parent domain: %s", strerror(errno));
	return pd;
}

static struct ibv_cq_ex *make_cq(struct conn *c, const struct setting *set)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2 * DEPTH,
		.channel = c->comp,
		.wc_flags = set->wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = set->cq_flags,
	};

	if (set->domain) {
		attr.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
		attr.parent_domain = c->pd;
	}
	return ibv_create_cq_ex(c->id->verbs, &attr);
}

static void *serve(void *arg)
{
	const struct setting *set = arg;
	struct conn *s = &t.s;

	conn_await_request(s);
	s->pd = set->domain ? make_domain(s->id->verbs) : ibv_alloc_pd(s->id->verbs);
	s->comp = ibv_create_comp_channel(s->id->verbs);
	ex_cq = make_cq(s, set);
	if (!s->pd || !s->comp || !ex_cq)
		fail("no extended CQ: %s", strerror(errno));
	s->cq = ibv_cq_ex_to_cq(ex_cq);
	conn_make_qp(s, DEPTH, DEPTH, 0);
	conn_accept(s, NULL, 0);
	return NULL;
}

static void open_pair(const void *setting)
{
	ends_open(&t, serve, setting);
	to_mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static void close_pair(void)
{
	ends_close(&t);
	if (server_td && (ibv_dealloc_td(server_td) || ibv_dealloc_pd(server_base)))
		fail("a domain is busy");
	server_td = NULL;
}

/* ---- requests and completions ---- */

static void post_recvs(uint64_t first, unsigned int n)
{
	struct ibv_sge sge = { (uintptr_t)t.to, BUF, to_mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (wr.wr_id = first; n--; wr.wr_id++)
		if (ibv_post_recv(t.s.id->qp, &wr, &bad))
			fail("post_recv");
}

static void post_len(uint64_t id, enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)t.from, len, t.from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(0xa1b2c3d4),
		.wr.rdma = { .remote_addr = (uintptr_t)t.to, .rkey = rkey },
	}, *bad;

	if (ibv_post_send(t.c.id->qp, &wr, &bad))
		fail("post_send");
}

static bool client_took(uint64_t id, enum ibv_wc_status status)
{
	return took_status(&t.c, id, status);
}

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS + ts.tv_nsec;
}

/* Waits for a completion at the server's CQ: then it is being polled. */
static bool start_polling(void)
{
	uint64_t end = now(CLOCK_MONOTONIC) + TIMEOUT * 1000000ULL;
	struct ibv_poll_cq_attr attr = {};
	int rv;

	while ((rv = ibv_start_poll(ex_cq, &attr)) == ENOENT && now(CLOCK_MONOTONIC) < end)
		;
	return !rv;
}

/* ---- what a completion says ---- */

static bool send_with_imm_comes(void)
{
	post_recvs(5, 1);
	post_len(6, IBV_WR_SEND_WITH_IMM, 1000, 0);
	return client_took(6, IBV_WC_SUCCESS) && start_polling();
}

static bool all_fields_are_read(void)
{
	bool ok = send_with_imm_comes();

	ok = ok && ex_cq->wr_id == 5 && ex_cq->status == IBV_WC_SUCCESS &&
	     ibv_wc_read_opcode(ex_cq) == IBV_WC_RECV && ibv_wc_read_byte_len(ex_cq) == 1000 &&
	     ibv_wc_read_wc_flags(ex_cq) == IBV_WC_WITH_IMM &&
	     ibv_wc_read_imm_data(ex_cq) == htobe32(0xa1b2c3d4) &&
	     ibv_wc_read_qp_num(ex_cq) == t.s.id->qp->qp_num && !ibv_wc_read_vendor_err(ex_cq);
	/* What iWARP has not. */
	ok = ok && !ibv_wc_read_src_qp(ex_cq) && !ibv_wc_read_slid(ex_cq) &&
	     !ibv_wc_read_sl(ex_cq) && !ibv_wc_read_dlid_path_bits(ex_cq);
	ok = ok && ibv_next_poll(ex_cq) == ENOENT;
	ibv_end_poll(ex_cq);
	return ok;
}

static bool a_write_with_imm_is_one(void)
{
	bool ok;

	post_recvs(5, 1);
	post_len(6, IBV_WR_RDMA_WRITE_WITH_IMM, 512, to_mr->rkey);
	ok = client_took(6, IBV_WC_SUCCESS) && start_polling();
	ok = ok && ex_cq->wr_id == 5 && ibv_wc_read_opcode(ex_cq) == IBV_WC_RECV_RDMA_WITH_IMM &&
	     ibv_wc_read_wc_flags(ex_cq) == IBV_WC_WITH_IMM;
	ibv_end_poll(ex_cq);
	return ok && is_pattern(&t, t.to, 512);
}

/* More than the CQ holds, each posted again while the last is read. */
static bool a_batch_goes_on_for_ever(void)
{
	unsigned int n;

	post_recvs(0, 4);
	for (n = 0; n < 4; n++)
		post_len(n, IBV_WR_SEND, 16, 0);
	if (!start_polling())
		return false;
	for (n = 1; n < 5 * DEPTH; n++) {
		uint64_t end = now(CLOCK_MONOTONIC) + TIMEOUT * 1000000ULL;
		int rv;

		post_recvs(n + 3, 1);
		if (!client_took(n - 1, IBV_WC_SUCCESS))
			break;
		post_len(n + 3, IBV_WR_SEND, 16, 0);
		while ((rv = ibv_next_poll(ex_cq)) == ENOENT && now(CLOCK_MONOTONIC) < end)
			usleep(100);
		if (rv || ex_cq->wr_id != n || ex_cq->status != IBV_WC_SUCCESS)
			break;
	}
	ibv_end_poll(ex_cq);
	return n == 5 * DEPTH;
}

/* The server reads what it has no right to read. */
static bool an_error_says_why(void)
{
	struct ibv_sge sge = { (uintptr_t)t.to, 16, to_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = (uintptr_t)t.from, .rkey = t.from_mr->rkey },
	}, *bad;
	bool ok;

	if (ibv_post_send(t.s.id->qp, &wr, &bad) || !start_polling())
		return false;
	ok = ex_cq->wr_id == 5 && ex_cq->status == IBV_WC_REM_ACCESS_ERR &&
	     ibv_wc_read_vendor_err(ex_cq);
	ibv_end_poll(ex_cq);
	return ok;
}

static bool plain_polls_take_too(void)
{
	struct ibv_wc wc;

	post_recvs(5, 1);
	post_len(6, IBV_WR_SEND, 100, 0);
	return client_took(6, IBV_WC_SUCCESS) && conn_poll(&t.s, &wc, 1, TIMEOUT) == 1 &&
	       wc.wr_id == 5 && wc.status == IBV_WC_SUCCESS && wc.byte_len == 100;
}

static bool an_empty_queue_says_so(void)
{
	struct ibv_poll_cq_attr none = {}, odd = { .comp_mask = 1 };

	return ibv_start_poll(ex_cq, &none) == ENOENT && ibv_start_poll(ex_cq, &odd) == EINVAL;
}

/* ---- the time ---- */

static uint64_t raw_clock(void)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(t.s.id->verbs, &v))
		fail("ibv_query_rt_values_ex");
	return v.raw_clock.tv_sec * NS + v.raw_clock.tv_nsec;
}

/* hca_core_clock is in kHz. */
static uint64_t raw_to_ns(uint64_t raw)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(t.s.id->verbs, NULL, &attr) || !attr.hca_core_clock ||
	    attr.completion_timestamp_mask != UINT64_MAX)
		fail("no clock");
	return raw * 1000000 / attr.hca_core_clock;
}

static bool stamps_lie_between(void)
{
	uint64_t raw = raw_clock(), wall = now(CLOCK_REALTIME), ts = 0, wts = 0, after, slack = 0;
	bool ok = send_with_imm_comes();

	if (ok) {
		ts = ibv_wc_read_completion_ts(ex_cq);
		slack = now(CLOCK_MONOTONIC);
		wts = ibv_wc_read_completion_wallclock_ns(ex_cq);
		slack = now(CLOCK_MONOTONIC) - slack + NS / 100;
		ibv_end_poll(ex_cq);
	}
	after = raw_clock();
	ok = ok && raw <= ts && ts <= after && raw_to_ns(after - raw) < TIMEOUT * 1000000ULL;
	/* It reads two clocks, one after the other. */
	return ok && wts + slack > wall && wts < now(CLOCK_REALTIME) + slack;
}

static bool stamps_come_in_order(void)
{
	uint64_t last = raw_clock(), ts;
	unsigned int n;

	post_recvs(0, DEPTH / 2);
	for (n = 0; n < DEPTH / 2; n++)
		post_len(n, IBV_WR_SEND, 64, 0);
	for (n = 0; n < DEPTH / 2; n++, last = ts) {
		if (!start_polling())
			return false;
		ts = ibv_wc_read_completion_ts(ex_cq);
		ibv_end_poll(ex_cq);
		if (ts < last || !client_took(n, IBV_WC_SUCCESS))
			return false;
	}
	return last <= raw_clock();
}

/* ---- what is refused ---- */

static bool is_refused(uint64_t wc_flags, uint32_t cq_flags, int err)
{
	struct setting set = { .wc_flags = wc_flags, .cq_flags = cq_flags };

	errno = 0;
	return !make_cq(&t.s, &set) && errno == err;
}

static bool what_there_is_not_is_refused(void)
{
	struct ibv_modify_cq_attr held_back = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 2, .cq_period = 1 },
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 0 };

	return ibv_modify_cq(ibv_cq_ex_to_cq(ex_cq), &held_back) == EOPNOTSUPP &&
	       is_refused(IBV_WC_EX_WITH_CVLAN, 0, EOPNOTSUPP) &&
	       is_refused(IBV_WC_EX_WITH_FLOW_TAG, 0, EOPNOTSUPP) &&
	       is_refused(IBV_WC_EX_WITH_TM_INFO, 0, EOPNOTSUPP) &&
	       is_refused(0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, EOPNOTSUPP) &&
	       !ibv_create_cq_ex(t.s.id->verbs, &attr) && errno == EINVAL;
}

/* ---- domains ---- */

static bool data_go_and_come(void)
{
	post_recvs(5, 1);
	post_len(6, IBV_WR_SEND, BUF, 0);
	if (!client_took(6, IBV_WC_SUCCESS) || !start_polling())
		return false;
	ibv_end_poll(ex_cq);
	return is_pattern(&t, t.to, BUF);
}

static bool what_is_in_use_stays(void)
{
	struct ibv_td_init_attr odd = { .comp_mask = 1 };
	struct ibv_pd *nested;

	if (ibv_dealloc_td(server_td) != EBUSY || ibv_dealloc_pd(server_base) != EBUSY)
		return false;
	nested = parent_of(t.s.pd, NULL);
	return !nested && errno == EINVAL && !ibv_alloc_td(t.s.id->verbs, &odd) &&
	       data_go_and_come();
}

/*
 * Locks that this thread has taken. The provider's calls come to this program first (see the Makefile),
 * for which what a lock costs is no matter.
 */
static __thread unsigned int locks;

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	locks++;
	while (pthread_spin_trylock(lock))
		;
	return 0;
}

/* Of a receive that the server posts, and of its poll. */
static bool locks_are_taken(bool by_post, bool by_poll)
{
	unsigned int posted;

	locks = 0;
	post_recvs(5, 1);
	posted = locks;
	post_len(6, IBV_WR_SEND, 8, 0);
	if (!client_took(6, IBV_WC_SUCCESS))
		return false;
	locks = 0;
	if (!start_polling())
		return false;
	ibv_end_poll(ex_cq);
	return !!posted == by_post && !!locks == by_poll;
}

static bool all_locks_are_taken(void)
{
	return locks_are_taken(true, true);
}

static bool its_polls_take_no_lock(void)
{
	return locks_are_taken(true, false);
}

static bool no_lock_is_taken(void)
{
	return locks_are_taken(false, false);
}

/* ---- memory of the device, of another context, on demand ---- */

/* Writes @len octets to @remote of @rkey, and waits until they are there. */
static bool write_arrives(uint64_t remote, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)t.from, len, t.from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;
	bool ok;

	post_recvs(5, 1);
	if (ibv_post_send(t.c.id->qp, &wr, &bad) || !client_took(9, IBV_WC_SUCCESS) ||
	    !start_polling())
		return false;
	ok = ex_cq->status == IBV_WC_SUCCESS;
	ibv_end_poll(ex_cq);
	return ok;
}

#define DM_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)

static struct ibv_dm *make_dm(size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len, .log_align_req = 6 };

	return ibv_alloc_dm(t.s.id->verbs, &attr);
}

static bool device_memory_is_written(void)
{
	struct ibv_dm *dm = make_dm(BUF);
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(t.s.pd, dm, 64, BUF - 64, DM_RIGHTS) : NULL;
	bool ok = mr && mr->lkey && write_arrives(16, mr->rkey, 4096);

	ok = ok && !ibv_memcpy_from_dm(t.to, dm, 80, 4096) &&
	     is_pattern(&t, t.to, 4096);
	/* A region keeps it. */
	ok = ok && ibv_free_dm(dm) == EBUSY;
	return ok && !ibv_dereg_mr(mr) && !ibv_free_dm(dm);
}

/* The last of them goes while a region is there. */
static bool device_memory_outlives_its_names(void)
{
	struct ibv_context *ctx = ibv_import_device(dup(t.s.id->verbs->cmd_fd));
	struct ibv_dm *dm = make_dm(BUF), *same = ctx && dm ? ibv_import_dm(ctx, dm->handle) : NULL;
	struct ibv_mr *mr;

	if (!same || ibv_free_dm(dm))
		return false;
	mr = ibv_reg_dm_mr(t.s.pd, same, 0, BUF, DM_RIGHTS);
	ibv_unimport_dm(same);
	return mr && write_arrives(16, mr->rkey, 4096) && !ibv_dereg_mr(mr) &&
	       !ibv_close_device(ctx);
}

static bool device_memory_has_bounds(void)
{
	struct ibv_dm *dm = make_dm(4096);
	bool ok = dm && !make_dm(0) && !make_dm((size_t)1 << 40);

	ok = ok && !ibv_memcpy_to_dm(dm, 4092, t.from, 4) &&
	     ibv_memcpy_to_dm(dm, 4096, t.from, 4) == EINVAL &&
	     ibv_memcpy_to_dm(dm, 0, t.from, 4100) == EINVAL &&
	     ibv_memcpy_to_dm(dm, UINT64_MAX - 3, t.from, 8) == EINVAL &&
	     ibv_memcpy_to_dm(dm, 2, t.from, 4) == EINVAL &&
	     ibv_memcpy_from_dm(t.to, dm, 4, 4096) == EINVAL;
	ok = ok && !ibv_reg_dm_mr(t.s.pd, dm, 4, 4096, DM_RIGHTS) &&
	     !ibv_reg_dm_mr(t.s.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE);
	return ok && !ibv_free_dm(dm);
}

/* Queues of its own, in the other's protection domain. */
static bool makes_queues(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 5, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 3, .max_send_sge = 2, .max_inline_data = 100 },
	}, got = {};
	struct ibv_qp *qp = cq && srq ? ibv_create_qp(pd, &attr) : NULL;
	struct ibv_qp_attr state;
	bool ok = qp && qp->qp_num && attr.cap.max_send_wr >= 3 && attr.cap.max_inline_data >= 100;

	ok = ok && srq_attr.attr.max_wr >= 5 && cq->cqe >= 10;
	ok = ok && !ibv_query_qp(qp, &state, IBV_QP_CAP, &got) && got.sq_sig_all;
	ok = ok && ibv_destroy_cq(cq) == EBUSY && ibv_destroy_srq(srq) == EBUSY;
	return ok && !ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq);
}

static bool has_event(struct ibv_context *ctx, int timeout_ms)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* Its CQ is too small for the flushed completions: it gets an event, and the other does not. */
static bool has_events_of_its_own(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 4, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : NULL;
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_async_event ev;
	bool ok = qp;
	int i;

	for (i = 0; ok && i < 4; i++)
		ok = !ibv_post_recv(qp, &wr, &bad);
	ok = ok && !ibv_modify_qp(qp, &error, IBV_QP_STATE) && has_event(ctx, TIMEOUT) &&
	     !ibv_get_async_event(ctx, &ev);
	if (!ok)
		return false;
	ibv_ack_async_event(&ev);
	return ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == cq &&
	       !has_event(t.s.id->verbs, 0) && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq);
}

/* As a second process, or library, does that was given the first one's descriptor. */
static bool another_context_shares(void)
{
	struct ibv_context *ctx = ibv_import_device(dup(t.s.id->verbs->cmd_fd));
	struct ibv_pd *pd = ctx ? ibv_import_pd(ctx, t.s.pd->handle) : NULL;
	struct ibv_mr *mr = pd ? ibv_import_mr(pd, to_mr->handle) : NULL;
	struct ibv_dm *dm = make_dm(64), *same = ctx && dm ? ibv_import_dm(ctx, dm->handle) : NULL;
	uint32_t word = 0;
	bool ok;

	ok = mr && mr->rkey == to_mr->rkey && mr->length == to_mr->length &&
	     !ibv_import_mr(pd, 12345678) && same && !ibv_import_dm(ctx, 12345678);
	ok = ok && !ibv_memcpy_to_dm(dm, 8, t.from, 4) && !ibv_memcpy_from_dm(&word, same, 8, 4) &&
	     !memcmp(&word, t.from, 4);
	ok = ok && ctx->async_fd >= 0 && ctx->async_fd != t.s.id->verbs->async_fd &&
	     makes_queues(ctx, pd) && has_events_of_its_own(ctx, pd);
	if (!ok)
		return false;
	ibv_unimport_dm(same);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	return !ibv_free_dm(dm) && !ibv_close_device(ctx) && write_arrives((uintptr_t)t.to,
									   to_mr->rkey, 512);
}

static bool post_null(struct ibv_qp *qp, uint64_t id, uint32_t lkey, bool send)
{
	struct ibv_sge sge = { 0x123456789abcdefULL, 1000, lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr recv = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad_recv;

	return send ? !ibv_post_send(qp, &wr, &bad) : !ibv_post_recv(qp, &recv, &bad_recv);
}

/* Whatever the address: what comes is dropped, and then zeros are sent. */
static bool a_null_region_takes_all_and_gives_zeros(void)
{
	struct ibv_mr *in = ibv_alloc_null_mr(t.s.pd), *out = ibv_alloc_null_mr(t.c.pd);
	bool ok;
	int i;

	if (!in || !out || in->rkey)
		return false;
	memset(t.to, 0xff, BUF);
	ok = post_null(t.s.id->qp, 5, in->lkey, false);
	post_len(6, IBV_WR_SEND, 1000, 0);
	ok = ok && client_took(6, IBV_WC_SUCCESS) && start_polling();
	if (ok)
		ibv_end_poll(ex_cq);
	post_recvs(7, 1);
	ok = ok && post_null(t.c.id->qp, 8, out->lkey, true) && client_took(8, IBV_WC_SUCCESS) &&
	     start_polling();
	if (ok)
		ibv_end_poll(ex_cq);
	for (i = 0; ok && i < BUF; i++)
		ok = t.to[i] == (i < 1000 ? 0 : 0xff);
	return ok && !ibv_dereg_mr(in) && !ibv_dereg_mr(out);
}

/* No right is a peer's, whatever key it guesses. */
static bool a_null_region_is_no_peers(void)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(t.s.pd);
	bool ok = mr && ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1);

	if (!mr)
		return false;
	post_recvs(5, 1);
	post_len(6, IBV_WR_RDMA_READ, 16, mr->lkey);
	return ok && client_took(6, IBV_WC_REM_ACCESS_ERR) && !ibv_dereg_mr(mr);
}

static bool ordering_may_be_relaxed(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	return write_arrives((uintptr_t)t.to, mr->rkey, BUF) &&
	       is_pattern(&t, t.to, BUF);
}

/* Advertised is what can be had. */
static bool all_memory_is_one_region(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND;
	struct ibv_sge soon = { (uintptr_t)t.to, BUF, 0 };
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr;
	bool ok;

	if (ibv_query_device_ex(t.s.id->verbs, NULL, &attr))
		return false;
	mr = ibv_reg_mr(t.s.pd, NULL, SIZE_MAX, access);
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		return !mr && !attr.odp_caps.general_caps;
	if (!mr)
		return false;
	soon.lkey = mr->lkey;
	ok = !ibv_advise_mr(t.s.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &soon, 1);
	ok = ok && write_arrives((uintptr_t)t.to, mr->rkey, BUF);
	return !ibv_dereg_mr(mr) && ok && is_pattern(&t, t.to, BUF);
}

/* ---- what the device says of itself ---- */

static bool nothing_is_said_that_there_is_not(const struct ibv_device_attr_ex *a)
{
	return !a->raw_packet_caps && !a->tso_caps.max_tso && !a->rss_caps.supported_qpts &&
	       !a->tm_caps.max_num_tags && !a->packet_pacing_caps.supported_qpts &&
	       !a->max_wq_type_rq && !a->cq_mod_caps.max_cq_count && !a->xrc_odp_caps &&
	       !a->pci_atomic_caps.fetch_add && !a->pci_atomic_caps.swap &&
	       !a->pci_atomic_caps.compare_swap && !a->comp_mask &&
	       !a->odp_caps.per_transport_caps.ud_odp_caps &&
	       !a->odp_caps.per_transport_caps.uc_odp_caps;
}

/* Of what InfiniBand has, and of what no device has any more. */
static bool no_old_words_are_said(const struct ibv_device_attr *a)
{
	return !a->max_ee && !a->max_rdd && !a->max_ee_rd_atom && !a->max_ee_init_rd_atom &&
	       !a->max_raw_ipv6_qp && !a->max_raw_ethy_qp && !a->max_fmr && !a->max_map_per_fmr &&
	       !a->local_ca_ack_delay;
}

/* Datagrams and their groups come together. */
static bool fields_agree(const struct ibv_device_attr *a, const struct ibv_port_attr *port)
{
	bool ud = a->max_ah;

	return a->node_guid == ibv_get_device_guid(t.s.id->verbs->device) && a->node_guid &&
	       a->sys_image_guid == a->node_guid && a->max_pkeys == port->pkey_tbl_len &&
	       a->phys_port_cnt == 1 && a->max_res_rd_atom == a->max_qp * a->max_qp_rd_atom &&
	       ud == !!a->max_mcast_grp && ud == !!a->max_mcast_qp_attach &&
	       ud == !!a->max_total_mcast_qp_attach && a->fw_ver[0] &&
	       a->atomic_cap == IBV_ATOMIC_GLOB && a->max_mr_size == UINT64_MAX;
}

/* Only the cap at @nth, of max_send_wr, max_recv_wr, max_send_sge and max_recv_sge, is not 1. */
static bool a_qp_has(int nth, uint32_t n)
{
	uint32_t caps[4] = { 1, 1, 1, 1 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = t.c.cq, .recv_cq = t.c.cq };
	struct ibv_qp *qp;

	caps[nth] = n;
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = caps[0], .max_recv_wr = caps[1],
					.max_send_sge = caps[2], .max_recv_sge = caps[3] };
	qp = ibv_create_qp(t.c.pd, &attr);
	return qp && !ibv_destroy_qp(qp);
}

static int post_read(uint32_t num_sge, uint32_t rkey)
{
	struct ibv_sge sges[2] = { { (uintptr_t)t.from, 8, t.from_mr->lkey },
				   { (uintptr_t)t.from + 8, 8, t.from_mr->lkey } };
	struct ibv_send_wr wr = { .wr_id = num_sge, .sg_list = sges, .num_sge = num_sge,
				  .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)t.to, rkey } }, *bad;

	return ibv_post_send(t.c.id->qp, &wr, &bad);
}

/* What is said can be had, and one more cannot. (weft-verbs has the limits of CQs and SRQs.) */
static bool limits_are_where_they_are_said(void)
{
	struct ibv_device_attr a;
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_REMOTE_READ);
	struct ibv_port_attr port;
	uint32_t limits[4];
	bool ok = true;
	int i;

	if (ibv_query_device(t.s.id->verbs, &a) || ibv_query_port(t.s.id->verbs, 1, &port))
		return false;
	limits[0] = limits[1] = a.max_qp_wr;
	limits[2] = limits[3] = a.max_sge;
	for (i = 0; ok && i < 4; i++)
		ok = a_qp_has(i, limits[i]) && !a_qp_has(i, limits[i] + 1);
	return ok && a.max_sge_rd == 1 && !post_read(1, mr->rkey) &&
	       client_took(1, IBV_WC_SUCCESS) && post_read(2, mr->rkey) &&
	       no_old_words_are_said(&a) && fields_agree(&a, &port);
}

static bool the_device_says_what_is_so(void)
{
	struct ibv_device_attr_ex a;
	struct ibv_dm *most;

	if (ibv_query_device_ex(t.s.id->verbs, NULL, &a))
		return false;
	most = make_dm(a.max_dm_size);
	return most && !ibv_free_dm(most) && !make_dm(a.max_dm_size + 1) &&
	       a.phys_port_cnt_ex == a.orig_attr.phys_port_cnt && a.orig_attr.vendor_id &&
	       (uint32_t)a.device_cap_flags_ex == (uint32_t)a.orig_attr.device_cap_flags &&
	       nothing_is_said_that_there_is_not(&a);
}

/* Octets of a message may come in any order: the truth is no. */
static bool no_order_of_octets_is_promised(void)
{
	return !ibv_query_qp_data_in_order(t.s.id->qp, IBV_WR_SEND, 0) &&
	       !ibv_query_qp_data_in_order(t.s.id->qp, IBV_WR_RDMA_WRITE, 0);
}

/* One of an RNIC, several of what looks like RoCE. */
static bool the_gid_is_told_by_every_way(void)
{
	struct ibv_context *ctx = t.s.id->verbs;
	struct ibv_gid_entry one, all[64];
	struct ibv_port_attr port;
	union ibv_gid gid;
	int i, n;

	if (ibv_query_port(ctx, 1, &port))
		return false;
	n = ibv_query_gid_table(ctx, all, 64, 0);
	for (i = 0; i < n; i++)
		if (ibv_query_gid(ctx, 1, i, &gid) || ibv_query_gid_ex(ctx, 1, i, &one, 0) ||
		    memcmp(&gid, &one.gid, sizeof(gid)) || memcmp(&one, &all[i], sizeof(one)) ||
		    !one.ndev_ifindex || one.port_num != 1 || (int)one.gid_index != i)
			return false;
	return n >= 1 && n == port.gid_tbl_len;
}

/* ---- requests by ibv_wr_* ---- */

static bool a_qp_takes(uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = t.s.cq, .recv_cq = t.s.cq, .qp_type = IBV_QPT_RC, .pd = t.s.pd,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(t.s.id->verbs, &attr);

	return qp && !ibv_destroy_qp(qp);
}

static bool a_qp_takes_every_operation(void)
{
	return a_qp_takes(ALL_OPS) && !a_qp_takes(IBV_QP_EX_WITH_TSO) && errno == EOPNOTSUPP;
}

/* ---- the cases ---- */

static const struct setting plain, stamps = { .wc_flags = STAMPS };
static const struct setting standard = { .wc_flags = IBV_WC_STANDARD_FLAGS };
static const struct setting all_fields = { .wc_flags = IBV_WC_STANDARD_FLAGS | STAMPS };
static const struct setting one_thread = { .cq_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
static const struct setting domain = { .domain = true };

static const struct a_case list[] = {
	{ "all-fields-of-a-completion-are-read", all_fields_are_read,
	  &standard },
	{ "a-write-with-imm-has-its-opcode", a_write_with_imm_is_one,
	  &standard },
	{ "a-batch-gives-its-places-back", a_batch_goes_on_for_ever, &plain },
	{ "an-error-is-read-as-one", an_error_says_why, &plain },
	{ "plain-polls-work-too", plain_polls_take_too, &stamps },
	{ "an-empty-queue-returns-enoent", an_empty_queue_says_so, &plain },
	{ "a-timestamp-lies-between-the-clocks-readings", stamps_lie_between,
	  &all_fields },
	{ "timestamps-come-in-order", stamps_come_in_order, &stamps },
	{ "unsupported-features-are-refused", what_there_is_not_is_refused, &plain },
	{ "a-queue-of-one-thread-serves", data_go_and_come,
	  &one_thread },
	{ "a-parent-domain-serves", data_go_and_come, &domain },
	{ "what-a-domain-is-made-of-stays", what_is_in_use_stays, &domain },
	{ "queues-without-promises-take-locks", all_locks_are_taken, &plain },
	{ "polls-of-a-queue-of-one-thread-take-no-lock", its_polls_take_no_lock, &one_thread },
	{ "a-domain-of-one-thread-takes-no-lock", no_lock_is_taken, &domain },
	{ "device-memory-is-written", device_memory_is_written, &plain },
	{ "device-memory-outlives-its-names", device_memory_outlives_its_names, &plain },
	{ "device-memory-has-bounds", device_memory_has_bounds, &plain },
	{ "another-context-shares-objects", another_context_shares, &plain },
	{ "a-null-region-takes-all-and-gives-zeros",
	  a_null_region_takes_all_and_gives_zeros, &plain },
	{ "a-null-region-is-not-remotely-accessible", a_null_region_is_no_peers, &plain },
	{ "ordering-may-be-relaxed", ordering_may_be_relaxed, &plain },
	{ "all-memory-is-one-region-if-advertised", all_memory_is_one_region, &plain },
	{ "device-attributes-are-true", the_device_says_what_is_so, &plain },
	{ "limits-are-exact", limits_are_where_they_are_said, &plain },
	{ "no-order-of-octets-is-promised", no_order_of_octets_is_promised, &plain },
	{ "every-query-returns-the-same-gid", the_gid_is_told_by_every_way, &plain },
	{ "a-qp-takes-every-operation", a_qp_takes_every_operation, &plain },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-extended");

	t.s.ird = t.s.ord = 4;
	ends_init(&t, addr, "7473");
	cases_run(&cases, "");
	return cases_end();
}
