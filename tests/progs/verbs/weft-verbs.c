// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What verbs promise of objects that change: reregistered memory, memory at another address,
 * resized queues, events of a shared receive queue, a queue pair that is reset and used again,
 * rings that are mapped while their queue is destroyed. And of requests: many SGEs, fences,
 * solicited events. Each case has a connection of its own, both ends in this process, over the
 * device that has ADDR. TAP on stdout. Nothing here knows weft.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "ends.h"
#include "pattern.h"

#define RIGHTS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define PIECES		32

static struct ends t;
static uint8_t *other;			/* another buffer of the server's */
static unsigned int late_ms;		/* the server accepts so late */

/* ---- both ends of a connection ---- */

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&t.s);
	conn_make_qp(&t.s, DEPTH, DEPTH, 0);
	usleep(late_ms * 1000);
	conn_accept(&t.s, NULL, 0);
	return NULL;
}

static void open_pair(const void *srq_wr)
{
	t.s.srq_wr = srq_wr ? *(const uint32_t *)srq_wr : 0;
	ends_open(&t, serve, NULL);
	memset(other, 0, BUF);
}

static void close_pair(void)
{
	ends_close(&t);
}

/* ---- work requests ---- */

/* The server's: into @at of @mr, or no octets at all. */
static void post_recv(uint64_t id, void *at, uint32_t len, const struct ibv_mr *mr)
{
	struct ibv_sge sge = mr ? sge_of(at, len, mr) : (struct ibv_sge){};
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = !!mr }, *bad;
	int err = t.s.srq ? ibv_post_srq_recv(t.s.srq, &wr, &bad) :
			    ibv_post_recv(t.s.id->qp, &wr, &bad);

	if (err)
		fail("post_recv: %s", strerror(err));
}

static void post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(qp, wr, &bad);
	if (err)
		fail("post_send: %s", strerror(err));
}

static void post(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len,
		 uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = sge_of(t.from, len, t.from_mr);
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = !!len,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	};

	post_wr(qp, &wr);
}

/* An empty message there: all that the client did before it has been done. */
static bool sync_ends(void)
{
	post_recv(7, NULL, 0, NULL);
	post(t.c.id->qp, 8, IBV_WR_SEND, 0, 0, 0);
	return took(&t.c, 8) && took(&t.s, 7);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

static bool becomes(struct ibv_qp *qp, enum ibv_qp_state state)
{
	int tries = TIMEOUT / 10;

	while (state_of(qp) != state && --tries)
		usleep(10000);
	return tries;
}

/* Writes @len octets to @remote: has it arrived, or has the server refused it? */
static bool write_goes(uint64_t remote, uint32_t rkey, uint32_t len)
{
	post(t.c.id->qp, 9, IBV_WR_RDMA_WRITE, len, remote, rkey);
	if (took(&t.c, 9) && sync_ends())
		return true;
	/* The Terminate is in flight: wait, for the caller may check the state. */
	if (!becomes(t.c.id->qp, IBV_QPS_ERR))
		fail("a refused Write does not end the connection");
	return false;
}

/* ---- memory registered anew ---- */

static bool a_right_that_is_given_can_be_used(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE);

	return !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) &&
	       write_goes((uintptr_t)t.to, mr->rkey, BUF) && is_pattern(&t, t.to, BUF);
}

static bool a_right_that_is_taken_is_gone(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, RIGHTS);

	return write_goes((uintptr_t)t.to, mr->rkey, 100) &&
	       !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_LOCAL_WRITE) &&
	       !write_goes((uintptr_t)t.to, mr->rkey, BUF) && is_clear(t.to + 100, BUF - 100);
}

static bool a_region_moves_to_other_memory(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, 100, RIGHTS);

	return !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, BUF, 0) &&
	       write_goes((uintptr_t)other, mr->rkey, BUF) && is_pattern(&t, other, BUF) &&
	       is_clear(t.to, BUF);
}

static bool the_memory_it_had_is_out_of_reach(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, RIGHTS);
	uint32_t old = mr->rkey;

	/* Under the new name by its bounds; under the old one, if that is another, by name. */
	return !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, BUF, 0) &&
	       !write_goes((uintptr_t)t.to, old, BUF) && is_clear(t.to, BUF) &&
	       is_clear(other, BUF);
}

static bool what_fails_changes_nothing(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, RIGHTS);
	void *hole = mmap(NULL, BUF, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t old = mr->rkey;

	munmap(hole, BUF);
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, hole, BUF, 0) &&
	       mr->rkey == old && write_goes((uintptr_t)t.to, mr->rkey, BUF) &&
	       is_pattern(&t, t.to, BUF);
}

static bool a_region_of_another_pd_is_refused(void)
{
	struct ibv_mr *mr = ibv_reg_mr(t.s.pd, t.to, BUF, RIGHTS);
	struct ibv_pd *pd = ibv_alloc_pd(t.s.id->verbs);
	bool ok = mr && pd && write_goes((uintptr_t)t.to, mr->rkey, 100) &&
		  !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) &&
		  !write_goes((uintptr_t)t.to, mr->rkey, BUF) &&
		  is_clear(t.to + 100, BUF - 100);

	/* In use by the region, and by nothing else. */
	ok = ok && ibv_dealloc_pd(pd) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd);
	return ok;
}

static bool a_zero_based_region_counts_from_its_start(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to + 300, BUF - 300,
				     RIGHTS | IBV_ACCESS_ZERO_BASED);

	return write_goes(1000, mr->rkey, 5000) && is_pattern(&t, t.to + 1300, 5000) &&
	       is_clear(t.to, 1300) && is_clear(t.to + 6300, BUF - 6300) &&
	       !write_goes((uintptr_t)t.to + 300, mr->rkey, 1);
}

/* ---- memory under another address ---- */

/* An odd place within a page, which a region's address shares with its memory. */
#define AT		101
#define IOVA_LEN	(BUF - 2 * AT)
#define IOVA		(0x123456789000ULL + AT)
/* Its last octet is not the last that there is, but is on the last page but one. */
#define IOVA_TOP	(0ULL - 4096 - BUF + AT)

static struct ibv_mr *reg_iova(uint64_t iova)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(t.s.pd, t.to + AT, IOVA_LEN, iova,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ);

	if (!mr)
		fail("ibv_reg_mr_iova of 0x%llx: %s", (unsigned long long)iova, strerror(errno));
	t.s.mrs[t.s.n_mrs++] = mr;
	return mr;
}

/* All of it is written and read back, and the last octet alone. */
static bool serves_at(uint64_t iova)
{
	struct ibv_mr *mr = reg_iova(iova);
	uint8_t last;

	if (!write_goes(iova, mr->rkey, IOVA_LEN) || !is_pattern(&t, t.to + AT, IOVA_LEN) ||
	    !is_clear(t.to, AT) || !is_clear(t.to + AT + IOVA_LEN, AT))
		return false;
	memset(t.from, 0, BUF);
	post(t.c.id->qp, 1, IBV_WR_RDMA_READ, IOVA_LEN, iova, mr->rkey);
	if (!took(&t.c, 1) || !is_pattern(&t, t.from, IOVA_LEN) ||
	    !is_clear(t.from + IOVA_LEN, BUF - IOVA_LEN))
		return false;
	last = t.to[AT + IOVA_LEN - 1] ^ 0xff;
	t.from[0] = last;
	return write_goes(iova + IOVA_LEN - 1, mr->rkey, 1) &&
	       t.to[AT + IOVA_LEN - 1] == last && is_pattern(&t, t.to + AT, IOVA_LEN - 1);
}

/* Nothing of @len octets at @remote of a region at @iova is written. */
static bool refused_at(uint64_t iova, uint64_t remote, uint32_t len)
{
	struct ibv_mr *mr = reg_iova(iova);

	return write_goes(iova + 1, mr->rkey, 1) && !write_goes(remote, mr->rkey, len) &&
	       is_clear(t.to, AT + 1) && is_clear(t.to + AT + 2, BUF - AT - 2);
}

static bool a_region_is_reached_by_the_address_given(void)
{
	return serves_at(IOVA);
}

static bool an_address_near_the_highest_serves(void)
{
	return serves_at(IOVA_TOP);
}

static bool the_memorys_own_address_is_refused(void)
{
	return refused_at(IOVA, (uintptr_t)t.to + AT, 1);
}

static bool what_lies_before_the_address_is_refused(void)
{
	return refused_at(IOVA, IOVA - 1, 2);
}

static bool what_lies_behind_its_end_is_refused(void)
{
	return refused_at(IOVA, IOVA + IOVA_LEN - 10, 11);
}

static bool what_lies_behind_a_high_end_is_refused(void)
{
	return refused_at(IOVA_TOP, IOVA_TOP + IOVA_LEN, 1);
}

/* The segment's own end is beyond the highest address, and so is small. */
static bool a_write_that_wraps_is_refused(void)
{
	return refused_at(IOVA_TOP, 0ULL - 10, 1000);
}

static bool a_read_behind_its_end_is_refused(void)
{
	struct ibv_mr *mr = reg_iova(IOVA);
	struct ibv_wc wc = {};

	post(t.c.id->qp, 1, IBV_WR_RDMA_READ, 100, IOVA + IOVA_LEN - 100, mr->rkey);
	if (!took(&t.c, 1))
		return false;
	pattern_fill(t.from, BUF, t.key);
	post(t.c.id->qp, 2, IBV_WR_RDMA_READ, 100, IOVA + IOVA_LEN - 99, mr->rkey);
	return conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 && wc.wr_id == 2 &&
	       wc.status == IBV_WC_REM_ACCESS_ERR && is_pattern(&t, t.from, BUF);
}

static bool a_region_that_would_wrap_cannot_be_had(void)
{
	return !ibv_reg_mr_iova(t.s.pd, t.to + AT, IOVA_LEN, 0ULL - 4096 + AT, RIGHTS) &&
	       sync_ends();
}

/* ---- many pieces ---- */

static struct ibv_sge pieces[PIECES];

/*
 * Lists pieces of @at (@mr), the last in memory first, at odd distances and of
 * odd lengths, some longer than a segment's share. Returns their octets.
 */
static uint32_t cut(uint8_t *at, const struct ibv_mr *mr)
{
	uint32_t i, len, all = 0;

	for (i = 0; i < PIECES; i++) {
		len = 2 * (i * 37 % 250) + 1;
		pieces[i] = sge_of(at + 1 + (PIECES - 1 - i) * 509, len, mr);
		all += len;
	}
	return all;
}

/* Puts the pieces' octets one behind the other to @to. */
static void gather(uint8_t *to)
{
	uint32_t i;

	for (i = 0; i < PIECES; to += pieces[i++].length)
		memcpy(to, (const void *)(uintptr_t)pieces[i].addr, pieces[i].length);
}

static uint8_t wanted[BUF];

static uint32_t post_pieces(enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = pieces,
		.num_sge = PIECES,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	};
	uint32_t len = cut(t.from, t.from_mr);

	gather(wanted);
	post_wr(t.c.id->qp, &wr);
	return len;
}

static bool a_send_gathers_32_pieces(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE);
	uint32_t len;

	post_recv(2, t.to + 3, BUF - 3, mr);
	len = post_pieces(IBV_WR_SEND, 0, 0);
	return took(&t.c, 1) && took(&t.s, 2) && !memcmp(t.to + 3, wanted, len) &&
	       is_clear(t.to, 3) && is_clear(t.to + 3 + len, BUF - 3 - len);
}

static bool a_write_gathers_32_pieces(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, RIGHTS);
	uint32_t len = post_pieces(IBV_WR_RDMA_WRITE, (uintptr_t)t.to + 3, mr->rkey);

	return took(&t.c, 1) && sync_ends() && !memcmp(t.to + 3, wanted, len) &&
	       is_clear(t.to, 3) && is_clear(t.to + 3 + len, BUF - 3 - len);
}

static bool a_receive_scatters_to_32_pieces(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE);
	uint32_t i, len = cut(t.to, mr);
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = pieces, .num_sge = PIECES }, *bad;

	if (ibv_post_recv(t.s.id->qp, &wr, &bad))
		return false;
	post(t.c.id->qp, 1, IBV_WR_SEND, len, 0, 0);
	if (!took(&t.c, 1) || !took(&t.s, 2))
		return false;
	gather(wanted);
	if (!is_pattern(&t, wanted, len))
		return false;
	/* What lies between them is as it was. */
	for (i = 0; i < PIECES; i++)
		memset((void *)(uintptr_t)pieces[i].addr, 0, pieces[i].length);
	return is_clear(t.to, BUF);
}

/* ---- order ---- */

/* A fenced Send of what the Read before it fetches: it carries what was fetched. */
static bool a_fence_waits_for_the_read(void)
{
	struct ibv_mr *from = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *to = conn_reg(&t.s, other, BUF, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = sge_of(t.from, BUF, t.from_mr);
	struct ibv_send_wr send = {
		.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED,
	}, read = {
		.wr_id = 1,
		.next = &send,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = (uintptr_t)t.to, .rkey = from->rkey },
	};
	int i;

	for (i = 0; i < 8; i++) {
		pattern_fill(t.to, BUF, ++t.key);
		memset(t.from, 0, BUF);
		memset(other, 0, BUF);
		post_recv(3, other, BUF, to);
		post_wr(t.c.id->qp, &read);
		if (!took(&t.c, 1) || !took(&t.c, 2) || !took(&t.s, 3) ||
		    !is_pattern(&t, other, BUF))
			return false;
	}
	return true;
}

/* ---- a completion queue of another size ---- */

static void fill_cq(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		post_recv(100 + i, NULL, 0, NULL);
	for (i = 0; i < n; i++)
		post(t.c.id->qp, i, IBV_WR_SEND, 0, 0, 0);
	/* The Read's completion says that the server has done with all before it. */
	post(t.c.id->qp, n, IBV_WR_RDMA_READ, 0, 0, 0);
	for (i = 0; i <= n; i++)
		if (!took(&t.c, i))
			fail("a Send or Read does not complete");
}

static bool take_all(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!took(&t.s, 100 + i))
			return false;
	return true;
}

static bool completions_wait_in_the_new_ring(void)
{
	fill_cq(10);
	if (ibv_resize_cq(t.s.cq, 1000) || t.s.cq->cqe < 1000)
		return false;
	if (!take_all(10) || !sync_ends())
		return false;
	fill_cq(20);
	return !ibv_resize_cq(t.s.cq, 20) && take_all(20) && sync_ends();
}

static bool a_size_too_small_for_what_waits_is_refused(void)
{
	fill_cq(10);
	return ibv_resize_cq(t.s.cq, 4) && take_all(10) && sync_ends();
}

static bool a_resized_queue_stays_armed(void)
{
	struct pollfd p = { .events = POLLIN };

	if (!sync_ends())
		return false;
	/* Whatever was announced so far has been: armed again by conn_poll(). */
	p.fd = t.s.comp->fd;
	while (poll(&p, 1, 0) > 0)
		if (conn_poll(&t.s, &(struct ibv_wc){}, 1, 10))
			return false;
	if (ibv_req_notify_cq(t.s.cq, 0) || ibv_resize_cq(t.s.cq, 500))
		return false;
	post_recv(1, NULL, 0, NULL);
	post(t.c.id->qp, 2, IBV_WR_SEND, 0, 0, 0);
	return took(&t.c, 2) && poll(&p, 1, TIMEOUT) == 1 && took(&t.s, 1);
}

static void *resize_for_ever(void *arg)
{
	uint32_t n = 0;

	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED)) {
		ibv_resize_cq(t.s.cq, ++n & 1 ? 400 : 64);
		/* The lock is a spinlock, and there may be one CPU. */
		usleep(500);
	}
	return NULL;
}

static bool nothing_is_lost_while_it_is_resized(void)
{
	bool stop = false, ok = true;
	pthread_t thread;
	int i;

	if (pthread_create(&thread, NULL, resize_for_ever, &stop))
		fail("no thread");
	for (i = 0; i < 100 && ok; i++)
		ok = sync_ends();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return ok;
}

/* ---- memory that goes while it is written ---- */

/* By turns under the two keys, into `to` and `other`, until one is refused. */
static void *write_for_ever(void *arg)
{
	const uint32_t *keys = arg;
	uint32_t n;

	for (n = 0;; n++) {
		uintptr_t at = (uintptr_t)(n & 1 ? other : t.to);

		post(t.c.id->qp, n, IBV_WR_RDMA_WRITE, BUF, at, keys[n & 1]);
		if (!took(&t.c, n))
			return NULL;
	}
}

static bool a_region_that_has_gone_is_not_written(void)
{
	struct ibv_mr *mr = ibv_reg_mr(t.s.pd, t.to, BUF, RIGHTS);
	uint32_t keys[2] = { 0, conn_reg(&t.s, other, BUF, RIGHTS)->rkey };
	pthread_t writer;
	bool ok;

	if (!mr)
		fail("no region");
	keys[0] = mr->rkey;
	if (pthread_create(&writer, NULL, write_for_ever, keys))
		fail("no thread");
	while (!is_pattern(&t, other, BUF))
		sched_yield();
	usleep(2000);
	ok = !ibv_dereg_mr(mr);
	/* No reference is left, and the next Write is refused. */
	memset(t.to, 0, BUF);
	pthread_join(writer, NULL);
	return ok && is_clear(t.to, BUF) && is_pattern(&t, other, BUF);
}

/* ---- events ---- */

/* Is there an asynchronous event @type? Others that come first are dropped. */
static bool has_event(enum ibv_event_type type, int timeout_ms)
{
	struct ibv_context *ctx = t.s.id->verbs;
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	bool found = false;

	while (!found && poll(&p, 1, timeout_ms) > 0 && !ibv_get_async_event(ctx, &ev)) {
		found = ev.event_type == type;
		ibv_ack_async_event(&ev);
	}
	return found;
}

/* ---- solicited events ---- */

static bool event_comes(int timeout_ms)
{
	struct pollfd p = { .fd = t.s.comp->fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* Takes the server's event, and does not arm again. */
static void take_event(void)
{
	struct ibv_cq *cq;
	void *ctx;

	if (!event_comes(TIMEOUT) || ibv_get_cq_event(t.s.comp, &cq, &ctx))
		fail("no event");
	ibv_ack_cq_events(cq, 1);
}

/* As took(), but sleeps on nothing and takes no event. */
static bool server_took(uint64_t id, enum ibv_wc_status status)
{
	int tries = TIMEOUT / 10, n;
	struct ibv_wc wc;

	while (!(n = ibv_poll_cq(t.s.cq, 1, &wc)) && --tries)
		usleep(10000);
	return n == 1 && wc.wr_id == id && wc.status == status;
}

static bool send_arrives(uint64_t id, int flags)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = flags };

	post_recv(id, NULL, 0, NULL);
	post_wr(t.c.id->qp, &wr);
	return took(&t.c, id) && server_took(id, IBV_WC_SUCCESS);
}

/* It was armed for any completion when it was made: one more, then for none. */
static bool disarm(void)
{
	if (!send_arrives(1, 0))
		return false;
	take_event();
	return send_arrives(2, 0) && !event_comes(200);
}

static bool only_a_solicited_send_wakes(void)
{
	int i;

	if (!disarm() || ibv_req_notify_cq(t.s.cq, 1))
		return false;
	for (i = 10; i < 14; i++)
		if (!send_arrives(i, 0))
			return false;
	if (event_comes(200) || !send_arrives(20, IBV_SEND_SOLICITED))
		return false;
	take_event();
	/* Once. */
	return send_arrives(21, IBV_SEND_SOLICITED) && !event_comes(200);
}

static bool an_error_wakes_a_waiter_for_solicited(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!disarm() || ibv_req_notify_cq(t.s.cq, 1))
		return false;
	post_recv(3, NULL, 0, NULL);
	return !event_comes(100) && !ibv_modify_qp(t.s.id->qp, &attr, IBV_QP_STATE) &&
	       event_comes(TIMEOUT) && (take_event(), true) &&
	       server_took(3, IBV_WC_WR_FLUSH_ERR);
}

/* ---- a shared receive queue ---- */

static bool arm_limit(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return !ibv_modify_srq(t.s.srq, &attr, IBV_SRQ_LIMIT);
}

static bool an_srq_serves(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE);

	post_recv(1, t.to, BUF, mr);
	post(t.c.id->qp, 2, IBV_WR_SEND, BUF, 0, 0);
	return took(&t.c, 2) && took(&t.s, 1) && is_pattern(&t, t.to, BUF);
}

static bool the_limit_is_told_once(void)
{
	fill_cq(1);
	if (!take_all(1))
		return false;
	post_recv(1, NULL, 0, NULL);
	post_recv(2, NULL, 0, NULL);
	if (!arm_limit(2) || has_event(IBV_EVENT_SRQ_LIMIT_REACHED, 100))
		return false;
	post(t.c.id->qp, 3, IBV_WR_SEND, 0, 0, 0);
	post(t.c.id->qp, 4, IBV_WR_SEND, 0, 0, 0);
	return took(&t.c, 3) && took(&t.c, 4) && took(&t.s, 1) && took(&t.s, 2) &&
	       has_event(IBV_EVENT_SRQ_LIMIT_REACHED, TIMEOUT) &&
	       !has_event(IBV_EVENT_SRQ_LIMIT_REACHED, 100);
}

static bool a_limit_beyond_its_size_is_refused(void)
{
	struct ibv_srq_attr attr;

	return !ibv_query_srq(t.s.srq, &attr) && arm_limit(attr.max_wr) &&
	       !arm_limit(attr.max_wr + 1) && !ibv_query_srq(t.s.srq, &attr) && !attr.srq_limit;
}

static bool an_error_is_the_last_of_its_entries(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return !ibv_modify_qp(t.s.id->qp, &attr, IBV_QP_STATE) &&
	       has_event(IBV_EVENT_QP_LAST_WQE_REACHED, TIMEOUT);
}

static bool receives_wait_in_the_new_ring(void)
{
	struct ibv_srq_attr attr = { .max_wr = 1000 };
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		post_recv(100 + i, NULL, 0, NULL);
	if (ibv_modify_srq(t.s.srq, &attr, IBV_SRQ_MAX_WR) || ibv_query_srq(t.s.srq, &attr) ||
	    attr.max_wr < 1000)
		return false;
	for (i = 0; i < DEPTH; i++)
		post(t.c.id->qp, i, IBV_WR_SEND, 0, 0, 0);
	for (i = 0; i < DEPTH; i++)
		if (!took(&t.c, i) || !took(&t.s, 100 + i))
			return false;
	attr.max_wr = 1;
	for (i = 0; i < 2; i++)
		post_recv(i, NULL, 0, NULL);
	/* Two wait: one is too few for them. */
	if (!ibv_modify_srq(t.s.srq, &attr, IBV_SRQ_MAX_WR))
		return false;
	for (i = 0; i < 2; i++) {
		post(t.c.id->qp, 50 + i, IBV_WR_SEND, 0, 0, 0);
		if (!took(&t.c, 50 + i) || !took(&t.s, i))
			return false;
	}
	return !ibv_modify_srq(t.s.srq, &attr, IBV_SRQ_MAX_WR) && sync_ends();
}

/* ---- queue pairs ---- */

static bool what_has_no_meaning_reads_as_zero(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (ibv_query_qp(t.c.id->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_RTS)
		return false;
	return !attr.path_mig_state && !attr.qkey && !attr.rq_psn && !attr.sq_psn &&
	       !attr.dest_qp_num && !attr.pkey_index && !attr.alt_pkey_index &&
	       !attr.sq_draining && !attr.min_rnr_timer && !attr.timeout && !attr.retry_cnt &&
	       !attr.rnr_retry && !attr.alt_port_num && !attr.alt_timeout &&
	       is_clear((void *)&attr.ah_attr, sizeof(attr.ah_attr)) &&
	       is_clear((void *)&attr.alt_ah_attr, sizeof(attr.alt_ah_attr));
}

static int move_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS);
}

/* Not what looks like an adapter for RoCE. */
static bool is_rnic(void)
{
	return t.c.id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* ---- a message that comes before its receive ---- */

/* Long after it has arrived: the sender is done, and nothing comes of it for a while. */
static bool a_late_receive_is_waited_for(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	post(t.c.id->qp, 1, IBV_WR_SEND, BUF, 0, 0);
	if (!took(&t.c, 1) || conn_poll(&t.s, &wc, 1, 100))
		return false;
	post_recv(2, t.to, BUF, mr);
	return took(&t.s, 2) && is_pattern(&t, t.to, BUF) && sync_ends();
}

static bool a_message_without_a_receive_ends_in_an_error(void)
{
	post(t.c.id->qp, 1, IBV_WR_SEND, BUF, 0, 0);
	return took(&t.c, 1) && becomes(t.s.id->qp, IBV_QPS_ERR) &&
	       becomes(t.c.id->qp, IBV_QPS_ERR);
}

/* ---- what programs ask of an RNIC ---- */

/* Later than the other steps of a set-up may take, where their time is made short. */
static bool a_late_accept_is_waited_for(void)
{
	close_pair();
	late_ms = 4500;
	open_pair(NULL);
	late_ms = 0;
	return sync_ends();
}

static bool the_device_names_a_vendor(void)
{
	struct ibv_device_attr attr;

	return !ibv_query_device(t.c.id->verbs, &attr) && attr.vendor_id &&
	       !(attr.vendor_id & 0xFF000000);
}

static struct ibv_qp *new_qp(uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = t.c.cq,
		.recv_cq = t.c.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = t.c.pd,
		.create_flags = flags,
	};

	return ibv_create_qp_ex(t.c.id->verbs, &attr);
}

/*
 * An RNIC's, siw's too, is in INIT: no move is missing between it and a connection. What looks like
 * RoCE waits for the program.
 */
static bool a_new_queue_pair_has_its_first_state(void)
{
	struct ibv_qp *qp = new_qp(0);
	bool ok = qp && state_of(qp) == (is_rnic() ? IBV_QPS_INIT : IBV_QPS_RESET) && !to_init(qp) &&
		  state_of(qp) == IBV_QPS_INIT && !move_to(qp, IBV_QPS_RESET) &&
		  state_of(qp) == IBV_QPS_RESET;

	return (!qp || !ibv_destroy_qp(qp)) && ok;
}

static bool flags_of_a_queue_pair_are_none(void)
{
	struct ibv_qp *qp = new_qp(0);
	bool ok = qp && !new_qp(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);

	return (!qp || !ibv_destroy_qp(qp)) && ok;
}

/* ---- errors ---- */

static bool an_error_flushes_in_order(void)
{
	struct ibv_qp *qp = t.s.id->qp;
	struct ibv_wc wc;
	uint64_t i;

	for (i = 0; i < 8; i++)
		post_recv(i, NULL, 0, NULL);
	if (move_to(qp, IBV_QPS_ERR) || state_of(qp) != IBV_QPS_ERR)
		return false;
	/* What comes too late, too. */
	for (; i < 12; i++)
		post_recv(i, NULL, 0, NULL);
	for (i = 0; i < 12; i++)
		if (ibv_poll_cq(t.s.cq, 1, &wc) != 1 || wc.wr_id != i ||
		    wc.status != IBV_WC_WR_FLUSH_ERR)
			return false;
	return true;
}

static bool sends_in_error_are_flushed_in_order(void)
{
	struct ibv_qp *qp = t.c.id->qp;
	struct ibv_wc wc;
	uint64_t i;

	if (move_to(qp, IBV_QPS_ERR) || state_of(qp) != IBV_QPS_ERR)
		return false;
	for (i = 0; i < 12; i++)
		post(qp, i, IBV_WR_SEND, 0, 0, 0);
	for (i = 0; i < 12; i++)
		if (conn_poll(&t.c, &wc, 1, TIMEOUT) != 1 || wc.wr_id != i ||
		    wc.status != IBV_WC_WR_FLUSH_ERR)
			return false;
	return true;
}

static bool draining_sends_what_is_posted(void)
{
	int i;

	for (i = 0; i < 8; i++)
		post_recv(100 + i, NULL, 0, NULL);
	for (i = 0; i < 8; i++)
		post(t.c.id->qp, i, IBV_WR_SEND, 0, 0, 0);
	if (move_to(t.c.id->qp, IBV_QPS_SQD))
		return false;
	for (i = 0; i < 8; i++)
		if (!took(&t.c, i) || !took(&t.s, 100 + i))
			return false;
	return becomes(t.c.id->qp, IBV_QPS_ERR) && becomes(t.s.id->qp, IBV_QPS_ERR);
}

/* One completion more than there is room for. */
static bool a_full_queue_ends_its_queue_pairs(void)
{
	int i, n;

	if (ibv_resize_cq(t.s.cq, 4))
		return false;
	n = t.s.cq->cqe + 1;
	if (n > DEPTH)
		fail("a CQ of %d", n - 1);
	for (i = 0; i < n; i++)
		post_recv(100 + i, NULL, 0, NULL);
	for (i = 0; i < n; i++)
		post(t.c.id->qp, i, IBV_WR_SEND, 0, 0, 0);
	return has_event(IBV_EVENT_CQ_ERR, TIMEOUT) && becomes(t.s.id->qp, IBV_QPS_ERR) &&
	       becomes(t.c.id->qp, IBV_QPS_ERR);
}

/* The server's end, once more, while the client connects with a QP that it has. */
static void connect_again(struct ibv_qp *qp)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4,
					 .qp_num = qp->qp_num };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *ev;
	pthread_t server;

	if (pthread_create(&server, NULL, serve, NULL))
		fail("no thread");
	conn_resolve(&t.c, t.addr, t.port);
	if (rdma_connect(t.c.id, &param))
		fail("rdma_connect: %s", strerror(errno));
	do {
		if (rdma_get_cm_event(t.c.events, &ev))
			fail("rdma_get_cm_event: %s", strerror(errno));
		type = ev->event;
		if (ev->status)
			fail("%s: %d", rdma_event_str(type), ev->status);
		rdma_ack_cm_event(ev);
	} while (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_CONNECT_RESPONSE);
	/* What is no RNIC asks for it where the QP is none of librdmacm's. */
	if (type == RDMA_CM_EVENT_CONNECT_RESPONSE && rdma_establish(t.c.id))
		fail("rdma_establish: %s", strerror(errno));
	pthread_join(server, NULL);
}

/*
 * Completions of its first life are gone, what was posted is gone, and it can
 * be connected again, by another id than the one that it was made for.
 */
static bool a_queue_pair_starts_over(void)
{
	struct rdma_cm_id *first = t.c.id, *second;
	struct ibv_qp *qp = first->qp;
	struct ibv_wc wc;
	bool ok;
	int i;

	if (!sync_ends())
		return false;
	conn_close(&t.s);
	if (!becomes(qp, IBV_QPS_ERR))
		return false;
	for (i = 0; i < 8; i++)
		post(qp, i, IBV_WR_SEND, 8, 0, 0);
	if (move_to(qp, IBV_QPS_RESET) || state_of(qp) != IBV_QPS_RESET ||
	    ibv_poll_cq(t.c.cq, 1, &wc) || (!is_rnic() && to_init(qp)))
		return false;
	connect_again(qp);
	second = t.c.id;
	for (i = 0; i < 100; i++) {
		post_recv(i, NULL, 0, NULL);
		post(qp, 1000 + i, IBV_WR_SEND, 0, 0, 0);
		if (!took(&t.c, 1000 + i) || !took(&t.s, i))
			break;
	}
	ok = i == 100 && state_of(qp) == IBV_QPS_RTS;
	rdma_disconnect(second);
	ok = becomes(qp, IBV_QPS_ERR) && ok;
	rdma_destroy_id(second);
	t.c.id = first;
	return ok;
}

static bool a_connected_queue_pair_does_not_start_over(void)
{
	return move_to(t.c.id->qp, IBV_QPS_RESET) && state_of(t.c.id->qp) == IBV_QPS_RTS &&
	       sync_ends();
}

/* ---- size ---- */

/* What the device says that it can, it can; and one more it refuses. */
static bool the_largest_queues_can_be_had(void)
{
	struct ibv_context *ctx = t.c.id->verbs;
	struct ibv_srq_init_attr init = {};
	struct ibv_device_attr attr;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	bool ok;

	if (ibv_query_device(ctx, &attr))
		return false;
	init.attr.max_wr = attr.max_srq_wr;
	init.attr.max_sge = attr.max_srq_sge;
	cq = ibv_create_cq(ctx, attr.max_cqe, NULL, NULL, 0);
	srq = ibv_create_srq(t.c.pd, &init);
	ok = cq && srq && !ibv_resize_cq(cq, 1) && !ibv_resize_cq(cq, attr.max_cqe) &&
	     ibv_resize_cq(cq, attr.max_cqe + 1) &&
	     !ibv_create_cq(ctx, attr.max_cqe + 1, NULL, NULL, 0);
	init.attr.max_wr++;
	ok = ok && !ibv_create_srq(t.c.pd, &init);
	return (!srq || !ibv_destroy_srq(srq)) && (!cq || !ibv_destroy_cq(cq)) && ok;
}

/* ---- chains ---- */

/* The requests before it are posted; it and those after it are not. */
static bool a_chain_stops_at_its_bad_request(void)
{
	struct ibv_recv_wr r[3] = {}, *bad_r = NULL;
	struct ibv_send_wr s[3] = {}, *bad_s = NULL;
	int i;

	for (i = 0; i < 3; i++) {
		r[i].wr_id = s[i].wr_id = i;
		r[i].next = i < 2 ? &r[i + 1] : NULL;
		s[i].next = i < 2 ? &s[i + 1] : NULL;
		s[i].opcode = IBV_WR_SEND;
		s[i].send_flags = IBV_SEND_SIGNALED;
	}
	/* More than any device has. */
	r[1].num_sge = s[1].num_sge = 10000;
	if (!ibv_post_recv(t.s.id->qp, r, &bad_r) || bad_r != &r[1] ||
	    !ibv_post_send(t.c.id->qp, s, &bad_s) || bad_s != &s[1])
		return false;
	return took(&t.c, 0) && took(&t.s, 0) && sync_ends();
}

/* ---- rings that go ---- */

static bool enough;
static uintptr_t mapped;

/* Maps and reads what the device has at any offset: the queue behind it may just be going. */
static void *map_rings(void *arg)
{
	const struct ibv_context *ctx = arg;
	const long page = sysconf(_SC_PAGESIZE);
	long n;

	for (n = 0; !__atomic_load_n(&enough, __ATOMIC_RELAXED); n++) {
		volatile uint8_t *p = mmap(NULL, page, PROT_READ, MAP_SHARED, ctx->cmd_fd,
					   n % 32 * page);

		if (p == MAP_FAILED)
			continue;
		__atomic_store_n(&mapped, mapped + 1, __ATOMIC_RELAXED);
		(void)*p;
		sched_yield();
		(void)*p;
		munmap((void *)p, page);
	}
	return NULL;
}

static bool rings_may_be_mapped_while_their_queues_go(void)
{
	struct ibv_context *ctx = t.c.id->verbs;
	struct ibv_cq *cq;
	pthread_t mapper;
	bool ok = true;
	int i;

	enough = false;
	mapped = 0;
	if (pthread_create(&mapper, NULL, map_rings, ctx))
		fail("no thread");
	/* The mapper may be late. */
	for (i = 0; ok && (i < 500 || (i < 100000 && !__atomic_load_n(&mapped, __ATOMIC_RELAXED))); i++) {
		cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
		sched_yield();
		ok = cq && !ibv_destroy_cq(cq);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(mapper, NULL);
	return ok && mapped && sync_ends();
}

/* ---- running ---- */

static const uint32_t with_srq = DEPTH;

static const struct a_case list[] = {
	{ "a-right-that-is-given-can-be-used", a_right_that_is_given_can_be_used, NULL },
	{ "a-right-that-is-taken-is-gone", a_right_that_is_taken_is_gone, NULL },
	{ "a-region-moves-to-other-memory", a_region_moves_to_other_memory, NULL },
	{ "the-memory-it-had-is-out-of-reach", the_memory_it_had_is_out_of_reach, NULL },
	{ "what-fails-changes-nothing", what_fails_changes_nothing, NULL },
	{ "a-region-of-another-pd-is-refused", a_region_of_another_pd_is_refused, NULL },
	{ "a-zero-based-region-counts-from-its-start",
	  a_zero_based_region_counts_from_its_start, NULL },
	{ "a-region-is-reached-by-the-address-given",
	  a_region_is_reached_by_the_address_given, NULL },
	{ "an-address-near-the-highest-serves", an_address_near_the_highest_serves, NULL },
	{ "the-memorys-own-address-is-refused", the_memorys_own_address_is_refused, NULL },
	{ "an-access-before-the-address-is-refused",
	  what_lies_before_the_address_is_refused, NULL },
	{ "an-access-beyond-its-end-is-refused", what_lies_behind_its_end_is_refused, NULL },
	{ "an-access-beyond-a-high-end-is-refused",
	  what_lies_behind_a_high_end_is_refused, NULL },
	{ "a-write-that-wraps-is-refused", a_write_that_wraps_is_refused, NULL },
	{ "a-read-beyond-its-end-is-refused", a_read_behind_its_end_is_refused, NULL },
	{ "a-region-that-would-wrap-cannot-be-had", a_region_that_would_wrap_cannot_be_had, NULL },
	{ "a-send-gathers-32-pieces", a_send_gathers_32_pieces, NULL },
	{ "a-write-gathers-32-pieces", a_write_gathers_32_pieces, NULL },
	{ "a-receive-scatters-to-32-pieces", a_receive_scatters_to_32_pieces, NULL },
	{ "a-fence-waits-for-the-read", a_fence_waits_for_the_read, NULL },
	{ "only-a-solicited-send-wakes", only_a_solicited_send_wakes, NULL },
	{ "an-error-wakes-a-waiter-for-solicited",
	  an_error_wakes_a_waiter_for_solicited, NULL },
	{ "completions-wait-in-the-new-ring", completions_wait_in_the_new_ring, NULL },
	{ "a-size-too-small-for-what-waits-is-refused",
	  a_size_too_small_for_what_waits_is_refused, NULL },
	{ "a-resized-queue-stays-armed", a_resized_queue_stays_armed, NULL },
	{ "nothing-is-lost-while-it-is-resized", nothing_is_lost_while_it_is_resized, NULL },
	{ "a-region-that-has-gone-is-not-written", a_region_that_has_gone_is_not_written, NULL },
	{ "a-late-receive-is-waited-for", a_late_receive_is_waited_for, NULL },
	{ "a-message-without-a-receive-ends-in-an-error",
	  a_message_without_a_receive_ends_in_an_error, NULL },
	{ "a-late-accept-is-waited-for", a_late_accept_is_waited_for, NULL },
	{ "the-device-names-a-vendor", the_device_names_a_vendor, NULL },
	{ "a-new-queue-pair-has-its-first-state", a_new_queue_pair_has_its_first_state, NULL },
	{ "flags-of-a-queue-pair-are-none", flags_of_a_queue_pair_are_none, NULL },
	{ "an-srq-serves", an_srq_serves, &with_srq },
	{ "an-srqs-late-entry-is-waited-for", a_late_receive_is_waited_for, &with_srq },
	{ "the-limit-is-reported-once", the_limit_is_told_once, &with_srq },
	{ "a-limit-beyond-its-size-is-refused", a_limit_beyond_its_size_is_refused, &with_srq },
	{ "an-error-is-the-last-of-its-entries", an_error_is_the_last_of_its_entries, &with_srq },
	{ "receives-wait-in-the-new-ring", receives_wait_in_the_new_ring, &with_srq },
	{ "what-has-no-meaning-reads-as-zero", what_has_no_meaning_reads_as_zero, NULL },
	{ "an-error-flushes-in-order", an_error_flushes_in_order, NULL },
	{ "sends-in-error-are-flushed-in-order", sends_in_error_are_flushed_in_order, NULL },
	{ "a-full-queue-ends-its-queue-pairs", a_full_queue_ends_its_queue_pairs, NULL },
	{ "draining-sends-what-is-posted", draining_sends_what_is_posted, NULL },
	{ "a-queue-pair-starts-over", a_queue_pair_starts_over, NULL },
	{ "a-connected-queue-pair-does-not-start-over",
	  a_connected_queue_pair_does_not_start_over, NULL },
	{ "the-largest-queues-can-be-had", the_largest_queues_can_be_had, NULL },
	{ "a-chain-stops-at-its-bad-request", a_chain_stops_at_its_bad_request, NULL },
	{ "rings-may-be-mapped-while-their-queues-go",
	  rings_may_be_mapped_while_their_queues_go, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-verbs");

	t.c.max_sge = t.s.max_recv_sge = PIECES;
	other = ends_buffer();
	ends_init(&t, addr, "7472");
	cases_run(&cases, "");
	return cases_end();
}
