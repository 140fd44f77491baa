// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Immediate data, atomics and memory windows. Each case has a connection of its own, both ends in
 * this process, over the device that has ADDR, and runs twice: with ibv_post_send() and with
 * ibv_wr_*. TAP on stdout. Nothing here knows weft.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "conn.h"
#include "pattern.h"

#define BUF	16384
#define DEPTH	32
#define TIMEOUT	60000	/* ms, for what must come */
#define IMM	0xA1B2C3D4u
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		 IBV_ACCESS_REMOTE_ATOMIC)

/* The client asks, the server serves. */
static struct {
	struct conn c, s;
	const char *addr, *port;
	uint8_t from[BUF], to[BUF];	/* client's, server's */
	uint64_t words[64];		/* server's */
	uint64_t answers[64];		/* client's */
	struct ibv_mr *from_mr, *to_mr, *words_mr, *answers_mr;
	bool by_ex;			/* ibv_wr_* */
	uint64_t key;
} t;

static void open_pair(const void *srq_wr)
{
	t.s.srq_wr = srq_wr ? *(const uint32_t *)srq_wr : 0;
	t.c.extended = t.by_ex;
	conn_pair(&t.c, &t.s, t.addr, t.port, DEPTH, 64);
	pattern_fill(t.from, BUF, ++t.key);
	memset(t.to, 0, BUF);
	memset(t.words, 0, sizeof(t.words));
	memset(t.answers, 0xEE, sizeof(t.answers));
	t.from_mr = conn_reg(&t.c, t.from, BUF, IBV_ACCESS_LOCAL_WRITE);
	t.answers_mr = conn_reg(&t.c, t.answers, sizeof(t.answers), IBV_ACCESS_LOCAL_WRITE);
	t.to_mr = conn_reg(&t.s, t.to, BUF, RIGHTS | IBV_ACCESS_MW_BIND);
	t.words_mr = conn_reg(&t.s, t.words, sizeof(t.words), RIGHTS);
}

static void close_pair(void)
{
	conn_close(&t.c);
	conn_close(&t.s);
}

/* ---- posting ---- */

/* One request, by either way. */
static int post_by_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, wr->invalidate_rkey);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	default:
		fail("opcode %d is not for ibv_wr_*", wr->opcode);
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)wr->sg_list->addr,
				       wr->sg_list->length);
	else
		ibv_wr_set_sge_list(ex, wr->num_sge, wr->sg_list);
	return ibv_wr_complete(ex);
}

static int post(struct conn *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return c->extended ? post_by_wr(c->id->qp, wr) : ibv_post_send(c->id->qp, wr, &bad);
}

/* The client's, of the first @len octets of its buffer. */
static void post_data(enum ibv_wr_opcode opcode, uint32_t len, unsigned int flags, uint64_t to,
		      uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)t.from, .length = len,
			       .lkey = t.from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags,
		.imm_data = htonl(IMM), .wr.rdma = { .remote_addr = to, .rkey = rkey },
	};
	int err = post(&t.c, &wr);

	if (err)
		fail("post_send: %s", strerror(err));
}

static void post_atomic(enum ibv_wr_opcode opcode, uint32_t nth, uint64_t to, uint32_t rkey,
			uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&t.answers[nth], .length = 8,
			       .lkey = t.answers_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = nth, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.atomic = { .remote_addr = to, .rkey = rkey, .compare_add = compare_add,
			       .swap = swap },
	};
	int err = post(&t.c, &wr);

	if (err)
		fail("post_send: %s", strerror(err));
}

static void post_recv(uint64_t id, void *at, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = len, .lkey = t.to_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = !!len }, *bad;
	int err = t.s.srq ? ibv_post_srq_recv(t.s.srq, &wr, &bad) :
			    ibv_post_recv(t.s.id->qp, &wr, &bad);

	if (err)
		fail("post_recv: %s", strerror(err));
}

static bool took(struct conn *c, struct ibv_wc *wc, uint64_t id, enum ibv_wc_status status)
{
	memset(wc, 0, sizeof(*wc));
	return conn_poll(c, wc, 1, TIMEOUT) == 1 && wc->wr_id == id && wc->status == status;
}

static bool done(struct conn *c, uint64_t id)
{
	struct ibv_wc wc;

	return took(c, &wc, id, IBV_WC_SUCCESS);
}

/* An empty message there: all that the client did before it has been done. */
static bool sync_ends(void)
{
	post_recv(7, t.to, 0);
	post_data(IBV_WR_SEND, 0, 0, 0, 0);
	return done(&t.c, 9) && done(&t.s, 7);
}

static bool is_pattern(const uint8_t *p, uint32_t len)
{
	return pattern_check(p, len, t.key) == len;
}

/* ---- immediate data ---- */

static bool has_imm(const struct ibv_wc *wc, enum ibv_wc_opcode opcode, uint32_t len)
{
	return wc->opcode == opcode && wc->wc_flags == IBV_WC_WITH_IMM &&
	       ntohl(wc->imm_data) == IMM && wc->byte_len == len;
}

static bool write_with_imm(uint32_t len, unsigned int flags)
{
	struct ibv_wc wc;

	post_recv(1, t.to, 0);
	post_data(IBV_WR_RDMA_WRITE_WITH_IMM, len, flags, (uintptr_t)t.to, t.to_mr->rkey);
	return took(&t.s, &wc, 1, IBV_WC_SUCCESS) &&
	       has_imm(&wc, IBV_WC_RECV_RDMA_WITH_IMM, len) && is_pattern(t.to, len) &&
	       took(&t.c, &wc, 9, IBV_WC_SUCCESS) && wc.opcode == IBV_WC_RDMA_WRITE;
}

static bool a_write_with_immediate_is_there_when_it_is_told(void)
{
	return write_with_imm(BUF, 0) && write_with_imm(0, 0) && write_with_imm(1, 0) &&
	       write_with_imm(60, IBV_SEND_INLINE);
}

static bool send_with_imm(uint32_t len, unsigned int flags)
{
	struct ibv_wc wc;

	post_recv(1, t.to, BUF);
	post_data(IBV_WR_SEND_WITH_IMM, len, flags, 0, 0);
	return took(&t.s, &wc, 1, IBV_WC_SUCCESS) && has_imm(&wc, IBV_WC_RECV, len) &&
	       is_pattern(t.to, len) && took(&t.c, &wc, 9, IBV_WC_SUCCESS) &&
	       wc.opcode == IBV_WC_SEND;
}

static bool a_send_with_immediate_takes_one_receive(void)
{
	return send_with_imm(BUF, 0) && send_with_imm(0, 0) && send_with_imm(60, IBV_SEND_INLINE) &&
	       sync_ends();
}

static bool immediates_come_in_order_among_others(void)
{
	struct ibv_wc wc;
	bool ok = true;
	uint32_t i;

	for (i = 0; i < 9; i++)
		post_recv(i, t.to, BUF);
	for (i = 0; i < 9; i++)
		post_data(i % 3 == 0 ? IBV_WR_SEND : i % 3 == 1 ? IBV_WR_SEND_WITH_IMM :
			  IBV_WR_RDMA_WRITE_WITH_IMM, 100 + i, 0, (uintptr_t)t.to, t.to_mr->rkey);
	for (i = 0; i < 9 && ok; i++) {
		ok = took(&t.s, &wc, i, IBV_WC_SUCCESS) && wc.byte_len == 100 + i;
		ok = ok && (i % 3 ? has_imm(&wc, i % 3 == 1 ? IBV_WC_RECV :
					    IBV_WC_RECV_RDMA_WITH_IMM, 100 + i) : !wc.wc_flags);
	}
	for (i = 0; i < 9 && ok; i++)
		ok = done(&t.c, 9);
	return ok;
}

/* Takes the server's event, which is not armed anew. */
static bool took_event(void)
{
	struct pollfd p = { .fd = t.s.comp->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;

	if (poll(&p, 1, TIMEOUT) != 1 || ibv_get_cq_event(t.s.comp, &cq, &arg))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* The server's next completion is there, and is that of @id. */
static bool is_there(uint64_t id)
{
	struct ibv_wc wc;

	return ibv_poll_cq(t.s.cq, 1, &wc) == 1 && wc.wr_id == id;
}

/* Armed for solicited completions: only the solicited immediate wakes. */
static bool a_solicited_immediate_wakes(void)
{
	/* It was armed for any when it was made, which stays in force for one. */
	post_recv(3, t.to, 0);
	post_data(IBV_WR_RDMA_WRITE_WITH_IMM, 10, 0, (uintptr_t)t.to, t.to_mr->rkey);
	if (!done(&t.c, 9) || !took_event() || !is_there(3))
		return false;
	post_recv(1, t.to, 0);
	post_recv(2, t.to, 0);
	if (ibv_req_notify_cq(t.s.cq, 1))
		fail("req_notify_cq");
	post_data(IBV_WR_RDMA_WRITE_WITH_IMM, 10, 0, (uintptr_t)t.to, t.to_mr->rkey);
	post_data(IBV_WR_RDMA_WRITE_WITH_IMM, 10, IBV_SEND_SOLICITED, (uintptr_t)t.to,
		  t.to_mr->rkey);
	/* The event is for both: it came with the second, when the first was there. */
	return done(&t.c, 9) && done(&t.c, 9) && took_event() && is_there(1) && is_there(2);
}

/* ---- atomics ---- */

static bool atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, uint64_t was,
		   uint64_t is)
{
	post_atomic(opcode, 3, (uintptr_t)&t.words[5], t.words_mr->rkey, compare_add, swap);
	return done(&t.c, 3) && t.answers[3] == was && t.words[5] == is;
}

static bool atomics_change_a_word_and_return_it(void)
{
	const enum ibv_wr_opcode add = IBV_WR_ATOMIC_FETCH_AND_ADD;
	const enum ibv_wr_opcode swap = IBV_WR_ATOMIC_CMP_AND_SWP;

	return atomic(add, 5, 0, 0, 5) && atomic(add, -6, 0, 5, -1) && atomic(add, 1, 0, -1, 0) &&
	       atomic(swap, 0, 1ull << 63, 0, 1ull << 63) &&
	       atomic(swap, 7, 9, 1ull << 63, 1ull << 63) && !t.words[4] && !t.words[6];
}

/* More than the device takes at once. */
static bool many_atomics_return_every_number_once(void)
{
	uint32_t i, next = 0, got = 0;
	bool ok = true;

	while (ok && got < 1000) {
		for (; next < 1000 && next - got < DEPTH; next++)
			post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, next % 64,
				    (uintptr_t)t.words, t.words_mr->rkey, 1, 0);
		i = got % 64;
		ok = done(&t.c, i) && t.answers[i] == got++;
	}
	return ok && t.words[0] == 1000;
}

static bool an_atomic_is_refused(uint64_t to, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, to, rkey, 1, 0);
	return took(&t.c, &wc, 3, status) && t.answers[3] == 0xEEEEEEEEEEEEEEEE && wc.vendor_err;
}

static bool an_atomic_off_its_boundary_is_refused(void)
{
	return an_atomic_is_refused((uintptr_t)t.words + 4, t.words_mr->rkey, IBV_WC_REM_INV_REQ_ERR) &&
	       !t.words[0] && !t.words[1];
}

static bool an_atomic_without_the_right_is_refused(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.words, sizeof(t.words),
				     RIGHTS & ~IBV_ACCESS_REMOTE_ATOMIC);

	return an_atomic_is_refused((uintptr_t)t.words, mr->rkey, IBV_WC_REM_ACCESS_ERR) &&
	       !t.words[0];
}

#define ADDS 3000

static void *add_here(void *stop)
{
	uint64_t n = 0;

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&t.words[0], 1, __ATOMIC_RELAXED);
		n++;
	}
	return (void *)n;
}

/* The device's atomics and the CPU's, on one word. */
static bool no_update_of_either_side_is_lost(void)
{
	uint32_t next = 0, got = 0;
	bool stop = false, ok = true;
	pthread_t thread;
	void *own;

	if (pthread_create(&thread, NULL, add_here, &stop))
		fail("no thread");
	for (; ok && got < ADDS; got++) {
		for (; next < ADDS && next - got < DEPTH; next++)
			post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, next % 64,
				    (uintptr_t)t.words, t.words_mr->rkey, 1, 0);
		ok = done(&t.c, got % 64);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, &own);
	return ok && t.words[0] == ADDS + (uint64_t)own;
}

/* ---- memory windows ---- */

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(t.s.pd, type);

	if (!mw)
		fail("ibv_alloc_mw: %s", strerror(errno));
	return mw;
}

static struct ibv_mw_bind_info part(uint32_t off, uint32_t len, unsigned int access)
{
	return (struct ibv_mw_bind_info){ .mr = t.to_mr, .addr = (uintptr_t)t.to + off,
					  .length = len, .mw_access_flags = access };
}

static int post_bind(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {
		.wr_id = 4, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = rkey, .bind_info = info },
	}, *bad;
	struct ibv_qp_ex *ex;

	if (!t.by_ex)
		return ibv_post_send(t.s.id->qp, &wr, &bad);
	ex = ibv_qp_to_qp_ex(t.s.id->qp);
	ibv_wr_start(ex);
	ex->wr_id = 4;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	return ibv_wr_complete(ex);
}

static bool bind_1(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind how = { .wr_id = 4, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_wc wc;

	return !ibv_bind_mw(t.s.id->qp, mw, &how) && took(&t.s, &wc, 4, IBV_WC_SUCCESS) &&
	       wc.opcode == IBV_WC_BIND_MW;
}

static bool bind_2(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
	struct ibv_wc wc;

	if (post_bind(mw, rkey, info) || !took(&t.s, &wc, 4, IBV_WC_SUCCESS) ||
	    wc.opcode != IBV_WC_BIND_MW)
		return false;
	mw->rkey = rkey;
	return true;
}

static bool writes(uint64_t to, uint32_t rkey, uint32_t len)
{
	post_data(IBV_WR_RDMA_WRITE, len, 0, to, rkey);
	return done(&t.c, 9) && sync_ends();
}

static bool a_window_of_type_1_opens_a_part(void)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	uint32_t before = mw->rkey, first;
	bool ok = bind_1(mw, part(100, 1000, IBV_ACCESS_REMOTE_WRITE)) && mw->rkey != before &&
		  writes((uintptr_t)t.to + 100, mw->rkey, 1000) && is_pattern(t.to + 100, 1000);

	/* Elsewhere, and under another name. */
	first = mw->rkey;
	ok = ok && bind_1(mw, part(5000, 1000, IBV_ACCESS_REMOTE_WRITE)) && mw->rkey != first &&
	     writes((uintptr_t)t.to + 5000, mw->rkey, 1000) && is_pattern(t.to + 5000, 1000);
	ok = ok && ibv_dereg_mr(t.to_mr) == EBUSY && bind_1(mw, part(0, 0, 0)) &&
	     !writes((uintptr_t)t.to + 5000, mw->rkey, 1);
	return !ibv_dealloc_mw(mw) && ok;
}

static bool what_lies_beside_a_window_is_refused(void)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	bool ok = bind_1(mw, part(100, 1000, IBV_ACCESS_REMOTE_WRITE)) &&
		  !writes((uintptr_t)t.to + 101, mw->rkey, 1000) && !t.to[101];

	return !ibv_dealloc_mw(mw) && ok;
}

static bool a_window_of_type_2_is_invalidated_here(void)
{
	struct ibv_send_wr inv = { .wr_id = 5, .opcode = IBV_WR_LOCAL_INV,
				   .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	uint32_t base = mw->rkey & ~0xFFu;
	bool ok = bind_2(mw, base | 1, part(0, 1000, IBV_ACCESS_REMOTE_WRITE)) &&
		  writes((uintptr_t)t.to, mw->rkey, 1000) && is_pattern(t.to, 1000);

	inv.invalidate_rkey = mw->rkey;
	ok = ok && !ibv_post_send(t.s.id->qp, &inv, &bad) && done(&t.s, 5);
	ok = ok && bind_2(mw, base | 2, part(8000, 1000, IBV_ACCESS_REMOTE_WRITE |
							  IBV_ACCESS_ZERO_BASED)) &&
	     writes(0, mw->rkey, 1000) && is_pattern(t.to + 8000, 1000) &&
	     !writes((uintptr_t)t.to, base | 1, 1000);
	return !ibv_dealloc_mw(mw) && ok;
}

static bool a_peer_invalidates_a_window(void)
{
	struct ibv_send_wr wr = { .wr_id = 9, .opcode = IBV_WR_SEND_WITH_INV };
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_wc wc;
	bool ok = bind_2(mw, mw->rkey ^ 1, part(0, 1000, IBV_ACCESS_REMOTE_WRITE)) &&
		  ibv_dereg_mr(t.to_mr) == EBUSY;

	post_recv(1, t.to, 0);
	wr.invalidate_rkey = mw->rkey;
	ok = ok && !post(&t.c, &wr) && done(&t.c, 9) && took(&t.s, &wc, 1, IBV_WC_SUCCESS) &&
	     wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey &&
	     !writes((uintptr_t)t.to, mw->rkey, 1);
	return !ibv_dealloc_mw(mw) && ok;
}

static bool a_window_without_a_right_to_bind_fails(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.words, sizeof(t.words), RIGHTS);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = { .mr = mr, .addr = (uintptr_t)t.words, .length = 8,
					 .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_wc wc;
	bool ok = !post_bind(mw, mw->rkey ^ 1, info) && took(&t.s, &wc, 4, IBV_WC_MW_BIND_ERR);

	return !ibv_dealloc_mw(mw) && ok;
}

/* Without it the region could not be deregistered by close_pair(). */
static bool a_queue_pair_that_goes_unbinds_its_windows(void)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(t.s.pd, t.words, 8, IBV_ACCESS_LOCAL_WRITE |
							   IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = { .mr = mr, .addr = (uintptr_t)t.words, .length = 8,
					 .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	bool ok = bind_2(mw, mw->rkey ^ 1, info) && ibv_dereg_mr(mr) == EBUSY;

	rdma_destroy_qp(t.s.id);
	ok = ok && !ibv_dereg_mr(mr);
	return !ibv_dealloc_mw(mw) && ok;
}

/* The QP keeps its number: its next peer must not find the window. */
static bool a_reset_unbinds_windows(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(t.s.pd, t.words, 8, IBV_ACCESS_LOCAL_WRITE |
							   IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = { .mr = mr, .addr = (uintptr_t)t.words, .length = 8,
					 .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	bool ok = bind_2(mw, mw->rkey ^ 1, info) &&
		  !ibv_modify_qp(t.s.id->qp, &attr, IBV_QP_STATE) && ibv_dereg_mr(mr) == EBUSY;

	attr.qp_state = IBV_QPS_RESET;
	ok = ok && !ibv_modify_qp(t.s.id->qp, &attr, IBV_QP_STATE) && !ibv_dereg_mr(mr);
	return !ibv_dealloc_mw(mw) && ok;
}

static bool a_window_that_goes_frees_its_region(void)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(t.s.pd, t.words, 8, IBV_ACCESS_LOCAL_WRITE |
							   IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = { .mr = mr, .addr = (uintptr_t)t.words, .length = 8,
					 .mw_access_flags = IBV_ACCESS_REMOTE_READ };

	return bind_2(mw, mw->rkey ^ 1, info) && ibv_dereg_mr(mr) == EBUSY &&
	       !ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr);
}

/* ---- running ---- */

static const uint32_t with_srq = DEPTH;

static const struct a_case list[] = {
	{ "a-write-with-immediate-is-placed-when-it-completes",
	  a_write_with_immediate_is_there_when_it_is_told, NULL },
	{ "a-write-with-immediate-takes-one-of-an-srq",
	  a_write_with_immediate_is_there_when_it_is_told, &with_srq },
	{ "a-send-with-immediate-takes-one-receive", a_send_with_immediate_takes_one_receive, NULL },
	{ "a-send-with-immediate-takes-one-of-an-srq",
	  a_send_with_immediate_takes_one_receive, &with_srq },
	{ "immediates-come-in-order-among-others", immediates_come_in_order_among_others, NULL },
	{ "a-solicited-immediate-wakes", a_solicited_immediate_wakes, NULL },
	{ "atomics-change-a-word-and-return-it", atomics_change_a_word_and_return_it, NULL },
	{ "many-atomics-return-every-number-once", many_atomics_return_every_number_once, NULL },
	{ "an-atomic-off-its-boundary-is-refused", an_atomic_off_its_boundary_is_refused, NULL },
	{ "an-atomic-without-the-right-is-refused", an_atomic_without_the_right_is_refused, NULL },
	{ "no-update-of-either-side-is-lost", no_update_of_either_side_is_lost, NULL },
	{ "a-window-of-type-1-opens-a-part", a_window_of_type_1_opens_a_part, NULL },
	{ "memory-outside-a-window-is-refused", what_lies_beside_a_window_is_refused, NULL },
	{ "a-window-of-type-2-is-invalidated-here", a_window_of_type_2_is_invalidated_here, NULL },
	{ "a-peer-invalidates-a-window", a_peer_invalidates_a_window, NULL },
	{ "a-window-without-a-right-to-bind-fails", a_window_without_a_right_to_bind_fails, NULL },
	{ "a-queue-pair-that-goes-unbinds-its-windows",
	  a_queue_pair_that_goes_unbinds_its_windows, NULL },
	{ "a-reset-unbinds-windows", a_reset_unbinds_windows, NULL },
	{ "a-window-that-goes-frees-its-region", a_window_that_goes_frees_its_region, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

int main(int argc, char **argv)
{
	t.addr = cases_begin(argc, argv, "weft-ops");
	t.port = "7475";
	t.c.timeout_ms = t.s.timeout_ms = TIMEOUT;
	t.s.extended = true;
	t.c.more_ops = t.s.more_ops = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
		IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		IBV_QP_EX_WITH_BIND_MW;
	conn_listen(&t.s, t.addr, t.port);
	cases_run(&cases, "");
	t.by_ex = true;
	cases_run(&cases, "-by-ibv_wr");
	return cases_end();
}
