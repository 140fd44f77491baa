// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What verbs and the InfiniBand specification promise of QPs connected by hand, with both ends in
 * this process, over the device that has the GID of ADDR. TAP on stdout. Nothing here knows weft.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "byhand.h"

#define QUIET_MS	300	/* in which nothing is to happen */

static struct hand_device dev;
static struct hand_end a, b;
static struct hand_name a_name, b_name;

/* ---- both ends ---- */

static void make(const struct hand_setting *set)
{
	hand_make(&a, &dev, set, NULL);
	hand_make(&b, &dev, set, NULL);
	hand_tell(&a, &a_name);
	hand_tell(&b, &b_name);
}

static void unmake(void)
{
	hand_unmake(&a);
	hand_unmake(&b);
}

static void join(void)
{
	hand_ready(&a, &b_name);
	hand_ready(&b, &a_name);
}

static void fill(struct hand_end *e, uint8_t seed)
{
	int i;

	for (i = 0; i < HAND_BUF; i++)
		e->buf[i] = (uint8_t)(seed + i * 7);
	memset(e->buf + HAND_BUF, 0, HAND_BUF);
}

static bool arrived(const struct hand_end *at, const struct hand_end *from, uint32_t len)
{
	return !memcmp(at->buf + HAND_BUF, from->buf, len);
}

static bool quiet(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!hand_poll(cq, &wc, QUIET_MS))
		return true;
	printf("# %lu came with %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return false;
}

/* What came of several, in any order. */
static bool took_both(struct ibv_cq *cq, uint64_t one, uint64_t two)
{
	struct ibv_wc wc[2];

	if (!hand_poll(cq, &wc[0], 20000) || !hand_poll(cq, &wc[1], 20000))
		return false;
	return wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS &&
	       ((wc[0].wr_id == one && wc[1].wr_id == two) || (wc[0].wr_id == two && wc[1].wr_id == one));
}

/* A Send each way, both posted before either has arrived. */
static bool talk(void)
{
	fill(&a, 1);
	fill(&b, 2);
	hand_recv(&a, 1);
	hand_recv(&b, 2);
	hand_send(&a, 3, HAND_BUF);
	hand_send(&b, 4, HAND_BUF);
	return took_both(a.cq, 1, 3) && took_both(b.cq, 2, 4) && arrived(&a, &b, HAND_BUF) &&
	       arrived(&b, &a, HAND_BUF);
}

/* ---- the orders ---- */

/* Steps of a (A) and b (B): RTR, then RTS and a Send. */
static bool in_order(const char *order, bool b_first)
{
	bool a_rtr = false, b_rtr = false, done;
	struct hand_setting patient = hand_usual;
	int rv;

	/* The first Send waits for all the steps behind it. */
	patient.timeout = 20;
	hand_make(b_first ? &b : &a, &dev, &patient, NULL);
	hand_make(b_first ? &a : &b, &dev, &patient, NULL);
	hand_tell(&a, &a_name);
	hand_tell(&b, &b_name);
	fill(&a, 1);
	fill(&b, 2);
	rv = hand_to_init(&a) ?: hand_to_init(&b);
	hand_recv(&a, 1);
	hand_recv(&b, 2);
	for (; *order && !rv; order++) {
		struct hand_end *e = *order == 'A' ? &a : &b;
		bool *rtr = *order == 'A' ? &a_rtr : &b_rtr;

		if (*rtr)
			rv = hand_to_rts(e);
		else
			rv = hand_to_rtr(e, *order == 'A' ? &b_name : &a_name);
		if (*rtr && !rv)
			hand_send(e, *order == 'A' ? 3 : 4, HAND_BUF);
		*rtr = true;
		/* Time to try in vain. */
		usleep(100000);
	}
	done = !rv && took_both(a.cq, 1, 3) && took_both(b.cq, 2, 4) && arrived(&a, &b, HAND_BUF) &&
	       arrived(&b, &a, HAND_BUF);
	unmake();
	return done;
}

/* Which end is the lower, and connects, their numbers tell: either is, in each order. */
static bool orders(void)
{
	static const char *all[] = {
		"AABB", "ABAB", "ABBA", "BBAA", "BABA", "BAAB",
	};
	unsigned int i;
	bool ok = true;

	for (i = 0; i < 2 * sizeof(all) / sizeof(*all) && ok; i++) {
		ok = in_order(all[i / 2], i % 2);
		if (!ok)
			printf("# in the order %s, %s is the lower\n", all[i / 2], i % 2 ? "b" : "a");
	}
	return ok;
}

/* One end stays in RTR: it receives, and is written and read. */
static bool receiver_only(bool lower)
{
	struct hand_end *to = lower ? &a : &b, *from = lower ? &b : &a;
	struct hand_name *to_name = lower ? &a_name : &b_name, *from_name = lower ? &b_name : &a_name;
	bool ok;

	make(&hand_usual);
	fill(from, 9);
	fill(to, 10);
	ok = !hand_to_init(to) && !hand_to_rtr(to, from_name);
	hand_recv(to, 1);
	hand_ready(from, to_name);
	hand_send(from, 2, 100);
	ok = ok && hand_took(from->cq, 2, IBV_WC_SUCCESS) && hand_took(to->cq, 1, IBV_WC_SUCCESS) &&
	     arrived(to, from, 100) && hand_state(to) == IBV_QPS_RTR;
	memset(from->buf, 0, HAND_BUF);
	hand_rdma(from, 3, IBV_WR_RDMA_READ, to_name, 100);
	ok = ok && hand_took(from->cq, 3, IBV_WC_SUCCESS) && arrived(to, from, 100);
	unmake();
	return ok;
}

static bool receivers_only(void)
{
	return receiver_only(true) && receiver_only(false);
}

/* ---- a peer that is not there ---- */

/* The name of a QP that is no more. */
static struct hand_name nobody(void)
{
	struct hand_name name;
	struct hand_end e;

	hand_make(&e, &dev, &hand_usual, NULL);
	hand_tell(&e, &name);
	hand_unmake(&e);
	return name;
}

/* The oldest work request fails, the others are flushed, as are the receives; sooner what waits less. */
static bool absent_peer(void)
{
	struct hand_setting patient = hand_usual, hasty = hand_usual;
	struct hand_name gone = nobody();
	bool ok;

	patient.timeout = 18;	/* a second and some, seven times */
	patient.retry_cnt = 6;
	hasty.timeout = 10;
	hasty.retry_cnt = 0;
	hand_make(&a, &dev, &patient, NULL);
	hand_make(&b, &dev, &hasty, a.cq);
	hand_ready(&a, &gone);
	hand_ready(&b, &gone);
	hand_recv(&a, 1);
	hand_send(&a, 2, 10);
	hand_send(&a, 3, 10);
	hand_send(&b, 4, 10);
	hand_send(&b, 5, 10);
	ok = hand_took(a.cq, 4, IBV_WC_RETRY_EXC_ERR) && hand_took(a.cq, 5, IBV_WC_WR_FLUSH_ERR) &&
	     hand_took(a.cq, 2, IBV_WC_RETRY_EXC_ERR) && hand_took(a.cq, 3, IBV_WC_WR_FLUSH_ERR) &&
	     hand_took(a.cq, 1, IBV_WC_WR_FLUSH_ERR) && hand_state(&a) == IBV_QPS_ERR &&
	     hand_state(&b) == IBV_QPS_ERR;
	hand_unmake(&b);
	hand_unmake(&a);
	return ok;
}

/* With timeout 0 a work request waits for ever; without one nothing is noticed. */
static bool endless_patience(void)
{
	struct hand_setting endless = hand_usual, hasty = hand_usual;
	struct hand_name gone = nobody();
	struct hand_end silent, witness;
	bool ok;

	endless.timeout = 0;
	hasty.timeout = 1;
	make(&endless);
	hand_make(&silent, &dev, &hasty, NULL);
	hand_make(&witness, &dev, &hasty, NULL);
	hand_ready(&silent, &gone);
	hand_ready(&a, &b_name);
	fill(&a, 5);
	hand_send(&a, 1, 50);
	hand_ready(&witness, &gone);
	hand_send(&witness, 2, 10);
	/* The others would have given up by the time that this one does. */
	ok = hand_took(witness.cq, 2, IBV_WC_RETRY_EXC_ERR) && quiet(a.cq) && quiet(silent.cq) &&
	     hand_state(&a) == IBV_QPS_RTS && hand_state(&silent) == IBV_QPS_RTS;
	hand_recv(&b, 3);
	hand_ready(&b, &a_name);
	ok = ok && hand_took(a.cq, 1, IBV_WC_SUCCESS) && hand_took(b.cq, 3, IBV_WC_SUCCESS) &&
	     arrived(&b, &a, 50);
	hand_unmake(&silent);
	hand_unmake(&witness);
	unmake();
	return ok;
}

/* ---- a peer that goes ---- */

/* What has come stays, nothing happens; and then a Send fails. */
static bool peer_goes(enum ibv_qp_state by)
{
	bool ok;

	make(&hand_usual);
	join();
	ok = talk();
	hand_recv(&a, 5);
	hand_recv(&a, 6);
	if (by == IBV_QPS_UNKNOWN)
		hand_unmake(&b);
	else
		ok = ok && !hand_to(&b, by);
	ok = ok && quiet(a.cq) && hand_state(&a) == IBV_QPS_RTS;
	/* Whether this end has heard of the peer's end or not. */
	hand_send(&a, 7, 10);
	ok = ok && hand_took(a.cq, 7, IBV_WC_RETRY_EXC_ERR) && hand_took(a.cq, 5, IBV_WC_WR_FLUSH_ERR) &&
	     hand_took(a.cq, 6, IBV_WC_WR_FLUSH_ERR) && hand_state(&a) == IBV_QPS_ERR;
	hand_send(&a, 8, 10);
	ok = ok && hand_took(a.cq, 8, IBV_WC_WR_FLUSH_ERR);
	hand_unmake(&a);
	if (by != IBV_QPS_UNKNOWN)
		hand_unmake(&b);
	return ok;
}

static bool peer_is_destroyed(void) { return peer_goes(IBV_QPS_UNKNOWN); }
static bool peer_is_reset(void) { return peer_goes(IBV_QPS_RESET); }
static bool peer_is_in_error(void) { return peer_goes(IBV_QPS_ERR); }

/* Polls until the receive @recv has come; other good completions add to *@others. */
static bool came(struct ibv_cq *cq, uint64_t recv, int *others)
{
	struct ibv_wc wc;

	while (hand_poll(cq, &wc, 20000) && wc.status == IBV_WC_SUCCESS) {
		if (wc.wr_id == recv)
			return true;
		++*others;
	}
	return false;
}

#define TURNS 40

/* They take turns, which delays acknowledgements; the receiver of the last message goes to ERR with it. */
static bool last_word_is_heard(void)
{
	int i, done = 0, others = 0;
	bool ok = true;

	make(&hand_usual);
	join();
	for (i = 0; i < TURNS && ok; i++) {
		if (i) {
			hand_recv(&a, 1);
			hand_send(&b, 4, 10);
			ok = came(a.cq, 1, &done);
		}
		hand_recv(&b, 2);
		hand_send(&a, 3, 10);
		ok = ok && came(b.cq, 2, &others);
	}
	ok = ok && !hand_to(&b, IBV_QPS_ERR);
	for (; done < TURNS && ok; done++)
		ok = hand_took(a.cq, 3, IBV_WC_SUCCESS);
	unmake();
	return ok;
}

static bool last_words_are_heard(void)
{
	int i;

	for (i = 0; i < 20; i++)
		if (!last_word_is_heard())
			return false;
	return true;
}

/* ---- states ---- */

/* Both ends go through error and RESET, and are the same QPs again. */
static bool used_again(void)
{
	uint32_t qpn;
	bool ok = true;
	int i;

	make(&hand_usual);
	qpn = a.qp->qp_num;
	for (i = 0; i < 20 && ok; i++) {
		a.psn = (a.psn + 17) & 0xffffff;
		hand_tell(&a, &a_name);
		join();
		ok = talk();
		hand_recv(&a, 9);
		ok = ok && !hand_to(&a, IBV_QPS_ERR) && hand_took(a.cq, 9, IBV_WC_WR_FLUSH_ERR) &&
		     !hand_to(&a, IBV_QPS_RESET) && !hand_to(&b, i % 2 ? IBV_QPS_ERR : IBV_QPS_RESET) &&
		     !hand_to(&b, IBV_QPS_RESET) && a.qp->qp_num == qpn;
	}
	unmake();
	return ok;
}

/* RESET drops what was posted: nothing completes. */
static bool reset_drops(void)
{
	bool ok;

	make(&hand_usual);
	hand_ready(&a, &b_name);
	hand_recv(&a, 1);
	hand_send(&a, 2, 10);
	ok = !hand_to(&a, IBV_QPS_RESET) && quiet(a.cq) && hand_state(&a) == IBV_QPS_RESET;
	join();
	ok = ok && talk();
	hand_recv(&a, 5);
	ok = ok && !hand_to(&a, IBV_QPS_RESET) && quiet(a.cq);
	unmake();
	return ok;
}

/* In RESET nothing can be posted. */
static bool posts_are_refused(struct hand_end *e)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv = NULL;
	struct ibv_send_wr send = { .wr_id = 2, .opcode = IBV_WR_SEND }, *bad_send = NULL;

	return ibv_post_recv(e->qp, &recv, &bad_recv) == EINVAL && bad_recv == &recv &&
	       ibv_post_send(e->qp, &send, &bad_send) == EINVAL && bad_send == &send;
}

static bool reset_takes_nothing(void)
{
	bool ok;

	make(&hand_usual);
	join();
	ok = talk() && !hand_to(&a, IBV_QPS_RESET) && posts_are_refused(&a) && !hand_to(&b, IBV_QPS_RESET);
	join();
	ok = ok && talk();
	unmake();
	return ok;
}

static bool is_refused(struct hand_end *e, enum ibv_qp_state to, struct ibv_qp_attr *attr, int mask)
{
	attr->qp_state = to;
	return ibv_modify_qp(e->qp, attr, mask | IBV_QP_STATE) == EINVAL;
}

/* The specification's table: what is missing, too much, out of turn or out of range is refused. */
static bool table_is_checked(void)
{
	const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr good, bad;
	int bit;
	bool ok;

	make(&hand_usual);
	good = (struct ibv_qp_attr){
		.port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = b_name.qpn,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = b_name.gid },
	};
	ok = is_refused(&a, IBV_QPS_RTR, &good, rtr) && is_refused(&a, IBV_QPS_RTS, &good, rts) &&
	     is_refused(&a, IBV_QPS_SQD, &good, 0) && is_refused(&a, IBV_QPS_INIT, &good, init | IBV_QP_QKEY);
	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (init & bit)
			ok = ok && is_refused(&a, IBV_QPS_INIT, &good, init & ~bit);
	bad = good;
	bad.port_num = 2;
	ok = ok && is_refused(&a, IBV_QPS_INIT, &bad, init) && hand_state(&a) == IBV_QPS_RESET &&
	     !hand_to_init(&a);
	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (rtr & bit)
			ok = ok && is_refused(&a, IBV_QPS_RTR, &good, rtr & ~bit);
	bad = good;
	bad.ah_attr.is_global = 0;
	ok = ok && is_refused(&a, IBV_QPS_RTR, &bad, rtr);
	bad = good;
	bad.ah_attr.grh.sgid_index = 200;
	ok = ok && is_refused(&a, IBV_QPS_RTR, &bad, rtr);
	bad = good;
	bad.path_mtu = 0;
	ok = ok && is_refused(&a, IBV_QPS_RTR, &bad, rtr) && is_refused(&a, IBV_QPS_RTS, &good, rts) &&
	     hand_state(&a) == IBV_QPS_INIT && !hand_to_rtr(&a, &b_name);
	for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (rts & bit)
			ok = ok && is_refused(&a, IBV_QPS_RTS, &good, rts & ~bit);
	bad = good;
	bad.retry_cnt = 8;
	ok = ok && is_refused(&a, IBV_QPS_RTS, &bad, rts) && hand_state(&a) == IBV_QPS_RTR &&
	     !hand_to_rts(&a) && is_refused(&a, IBV_QPS_RTR, &good, rtr) &&
	     is_refused(&a, IBV_QPS_INIT, &good, init) && hand_state(&a) == IBV_QPS_RTS;
	unmake();
	return ok;
}

/* query_qp tells what was set. */
static bool query_tells(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q;
	bool ok;

	make(&hand_usual);
	join();
	memset(&q, 0, sizeof(q));
	ok = talk() && !ibv_query_qp(a.qp, &q, 2 * IBV_QP_DEST_QPN - 1, &init) && q.qp_state == IBV_QPS_RTS &&
	     q.dest_qp_num == b_name.qpn && q.rq_psn == b_name.psn && q.sq_psn == a_name.psn &&
	     q.path_mtu == IBV_MTU_1024 && q.timeout == 14 && q.retry_cnt == 7 && q.rnr_retry == 7 &&
	     q.min_rnr_timer == 12 && q.max_rd_atomic == 4 && q.max_dest_rd_atomic == 4 &&
	     q.qp_access_flags == (unsigned int)hand_usual.access && q.port_num == 1 &&
	     q.ah_attr.is_global && !memcmp(&q.ah_attr.grh.dgid, &b_name.gid, sizeof(b_name.gid));
	if (!ok)
		printf("# state %d, peer %#x, PSNs %#x %#x, MTU %d, times %d %d %d %d, depths %d %d, access %#x\n",
		       q.qp_state, q.dest_qp_num, q.rq_psn, q.sq_psn, q.path_mtu, q.timeout, q.retry_cnt,
		       q.rnr_retry, q.min_rnr_timer, q.max_rd_atomic, q.max_dest_rd_atomic,
		       q.qp_access_flags);
	unmake();
	return ok;
}

/* ---- SQD ---- */

/* A send queue that is drained sends nothing until it may again, and says when it is. */
static bool drains(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	bool ok;

	make(&hand_usual);
	join();
	ok = talk();
	hand_rdma(&a, 1, IBV_WR_RDMA_READ, &b_name, HAND_BUF);
	ok = ok && !ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
	     hand_reports_drained(&dev, a.qp) && hand_took(a.cq, 1, IBV_WC_SUCCESS) &&
	     hand_state(&a) == IBV_QPS_SQD;
	fill(&a, 3);
	hand_recv(&b, 2);
	hand_send(&a, 3, 100);
	ok = ok && quiet(b.cq) && quiet(a.cq);
	/* The other way it goes on. */
	hand_recv(&a, 4);
	hand_send(&b, 5, 100);
	ok = ok && hand_took(b.cq, 5, IBV_WC_SUCCESS) && hand_took(a.cq, 4, IBV_WC_SUCCESS);
	ok = ok && !hand_to(&a, IBV_QPS_RTS) && hand_took(a.cq, 3, IBV_WC_SUCCESS) &&
	     hand_took(b.cq, 2, IBV_WC_SUCCESS) && arrived(&b, &a, 100);
	unmake();
	return ok;
}

/* ---- receives ---- */

/* A Send without a receive waits, for ever if so it was said. */
static bool waits_for_receive(void)
{
	bool ok;

	make(&hand_usual);
	join();
	ok = talk();
	fill(&a, 8);
	hand_send(&a, 1, 200);
	/* Longer than a connection of rdma_cm's would. */
	ok = ok && quiet(b.cq) && quiet(a.cq) && quiet(b.cq) && quiet(a.cq) && quiet(b.cq);
	hand_recv(&b, 2);
	ok = ok && hand_took(b.cq, 2, IBV_WC_SUCCESS) && hand_took(a.cq, 1, IBV_WC_SUCCESS) &&
	     arrived(&b, &a, 200);
	unmake();
	return ok;
}

/* A Send is retried rnr_retry times, then fails (RNR retries exceeded). The requests before it complete. */
static bool receive_never_comes(void)
{
	struct hand_setting hasty = hand_usual;
	bool ok;

	hasty.rnr_retry = 1;
	make(&hasty);
	join();
	ok = talk();
	hand_rdma(&a, 5, IBV_WR_RDMA_WRITE, &b_name, 64);
	hand_send(&a, 6, 200);
	hand_send(&a, 7, 200);
	ok = ok && hand_took(a.cq, 5, IBV_WC_SUCCESS) && hand_took(a.cq, 6, IBV_WC_RNR_RETRY_EXC_ERR) &&
	     hand_took(a.cq, 7, IBV_WC_WR_FLUSH_ERR) && hand_state(&a) == IBV_QPS_ERR;
	unmake();
	return ok;
}

/* A Write, a Send and a Write in one post. The Send's receive cannot be filled; the Send completes with why. */
static bool receive_fails(uint32_t len, uint32_t lkey_change, enum ibv_wc_status its, enum ibv_wc_status ours)
{
	struct ibv_sge to = { (uintptr_t)b.buf + HAND_BUF, len, 0 }, from = { (uintptr_t)a.buf, 64, 0 };
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr[3], *bad;
	bool ok;
	int i;

	make(&hand_usual);
	join();
	to.lkey = b.mr->lkey ^ lkey_change;
	from.lkey = a.mr->lkey;
	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = 5 + i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = &from, .num_sge = 1,
			.opcode = i == 1 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = b_name.addr, .rkey = b_name.rkey },
		};
	ok = talk() && !ibv_post_recv(b.qp, &recv, &bad_recv) && !ibv_post_send(a.qp, wr, &bad) &&
	     hand_took(b.cq, 2, its) && hand_took(a.cq, 5, IBV_WC_SUCCESS) && hand_took(a.cq, 6, ours) &&
	     hand_took(a.cq, 7, IBV_WC_WR_FLUSH_ERR) && hand_state(&a) == IBV_QPS_ERR;
	unmake();
	return ok;
}

static bool receives_fail(void)
{
	return receive_fails(10, 0, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR) &&
	       receive_fails(64, 0x100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

/* ---- what a completion says ---- */

/* The peer's program makes no calls meanwhile. */
static bool done_is_there(void)
{
	bool ok;
	int i;

	make(&hand_usual);
	join();
	ok = talk();
	for (i = 0; i < 500 && ok; i++) {
		fill(&a, (uint8_t)i);
		hand_rdma(&a, i, IBV_WR_RDMA_WRITE, &b_name, HAND_BUF);
		ok = hand_took(a.cq, i, IBV_WC_SUCCESS) && arrived(&b, &a, HAND_BUF);
	}
	unmake();
	return ok;
}

/* Sends by turns, so many that the answers to what an end asks come with the other's next Send. */
static bool dialogue(void)
{
	bool ok = true;
	int i;

	make(&hand_usual);
	join();
	hand_recv(&a, 1);
	hand_recv(&b, 2);
	for (i = 0; i < 100 && ok; i++) {
		struct hand_end *from = i % 2 ? &b : &a, *to = i % 2 ? &a : &b;
		uint64_t id = i % 2 ? 1 : 2;

		hand_send(from, 3, 64);
		ok = i ? took_both(to->cq, id, 3) : hand_took(to->cq, id, IBV_WC_SUCCESS);
		hand_recv(to, id);
	}
	/* The last has no Send to come with. */
	ok = ok && hand_took(b.cq, 3, IBV_WC_SUCCESS);
	unmake();
	return ok;
}

/* ---- rights and depths ---- */

/* What peers may do is the QP's, too, not the region's alone. */
static bool rights_are_checked(int right, enum ibv_wr_opcode op)
{
	struct hand_setting set = hand_usual;
	struct ibv_wc wc;
	bool ok;

	make(&set);
	b.set.access &= ~right;
	join();
	ok = talk();
	memset(a.buf, 0x55, HAND_BUF);
	hand_recv(&b, 6);
	hand_rdma(&a, 5, op, &b_name, 64);
	/* The end whose QP it is finds it, and is in error. */
	ok = ok && hand_poll(b.cq, &wc, 10000) && wc.status == IBV_WC_WR_FLUSH_ERR &&
	     hand_state(&b) == IBV_QPS_ERR && b.buf[HAND_BUF] != 0x55 &&
	     hand_took(a.cq, 5, IBV_WC_REM_ACCESS_ERR);
	unmake();
	return ok;
}

static bool writes_not_allowed(void)
{
	return rights_are_checked(IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE);
}

static bool reads_not_allowed(void)
{
	return rights_are_checked(IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ);
}

static bool rereg(struct hand_end *e, int access)
{
	return !ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access);
}

/* The peer got the key once. */
static bool rights_change(void)
{
	bool ok;

	make(&hand_usual);
	join();
	ok = talk() && rereg(&b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) &&
	     b.mr->rkey == b_name.rkey;
	hand_rdma(&a, 5, IBV_WR_RDMA_WRITE, &b_name, 64);
	ok = ok && hand_took(a.cq, 5, IBV_WC_SUCCESS) && rereg(&b, IBV_ACCESS_LOCAL_WRITE);
	hand_rdma(&a, 6, IBV_WR_RDMA_WRITE, &b_name, 64);
	ok = ok && hand_took(a.cq, 6, IBV_WC_REM_ACCESS_ERR);
	unmake();
	return ok;
}

static bool depths(void)
{
	struct hand_setting one = hand_usual;
	bool ok;
	int i;

	one.rd_atomic = 1;
	one.dest_rd_atomic = 1;
	make(&one);
	join();
	ok = talk();
	for (i = 0; i < 20; i++)
		hand_rdma(&a, 100 + i, IBV_WR_RDMA_READ, &b_name, 64);
	for (i = 0; i < 20 && ok; i++)
		ok = hand_took(a.cq, 100 + i, IBV_WC_SUCCESS);
	unmake();
	return ok;
}

/* ---- types ---- */

/* UC: Writes and Sends, no Reads; an RC QP is no peer of it. */
static bool unreliable(void)
{
	struct hand_setting uc = hand_usual, hasty = hand_usual;
	struct ibv_wc wc;
	bool ok;

	uc.type = IBV_QPT_UC;
	uc.access = IBV_ACCESS_REMOTE_WRITE;
	hasty.timeout = 1;
	make(&uc);
	join();
	ok = talk();
	fill(&a, 3);
	hand_recv(&b, 5);
	hand_rdma(&a, 6, IBV_WR_RDMA_WRITE_WITH_IMM, &b_name, HAND_BUF);
	ok = ok && hand_took(a.cq, 6, IBV_WC_SUCCESS) && hand_poll(b.cq, &wc, 20000) &&
	     wc.wr_id == 5 && wc.wc_flags & IBV_WC_WITH_IMM && arrived(&b, &a, HAND_BUF);
	hand_rdma(&a, 7, IBV_WR_RDMA_READ, &b_name, 64);
	ok = ok && hand_took(a.cq, 7, IBV_WC_LOC_QP_OP_ERR) && hand_state(&a) == IBV_QPS_ERR;
	unmake();
	hand_make(&a, &dev, &hasty, NULL);
	hand_make(&b, &dev, &uc, NULL);
	hand_tell(&a, &a_name);
	hand_tell(&b, &b_name);
	join();
	hand_recv(&b, 2);
	hand_send(&a, 1, 10);
	ok = ok && hand_took(a.cq, 1, IBV_WC_RETRY_EXC_ERR) && quiet(b.cq);
	unmake();
	return ok;
}

/* So many Sends are done at the sender, and its QP is as it was. */
static bool sends_in_vain(struct hand_end *e, int n)
{
	bool ok = true;
	int i;

	for (i = 0; i < n && ok; i++) {
		hand_send(e, 50 + i, 10);
		ok = hand_took(e->cq, 50 + i, IBV_WC_SUCCESS);
	}
	return ok && hand_state(e) == IBV_QPS_RTS;
}

/* UC does not report a missing peer, whether it is late or has gone. */
static bool unmissed(bool lower)
{
	struct hand_setting uc = hand_usual;
	struct hand_end *from = lower ? &a : &b, *to = lower ? &b : &a;
	struct ibv_wc wc;
	bool ok;

	uc.type = IBV_QPT_UC;
	uc.access = IBV_ACCESS_REMOTE_WRITE;
	make(&uc);
	hand_ready(from, lower ? &b_name : &a_name);
	hand_recv(from, 1);
	ok = sends_in_vain(from, 200);
	hand_ready(to, lower ? &a_name : &b_name);
	fill(from, 4);
	hand_recv(to, 2);
	/* Those that are sent before they have met are lost. */
	do
		hand_send(from, 3, 100);
	while (ok && hand_took(from->cq, 3, IBV_WC_SUCCESS) && !hand_poll(to->cq, &wc, 10));
	ok = ok && wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS && arrived(to, from, 100);
	ok = ok && !hand_to(to, IBV_QPS_RESET) && sends_in_vain(from, 200) && quiet(from->cq);
	unmake();
	return ok;
}

static bool uc_does_not_miss_a_dead_peer(void)
{
	return unmissed(true) && unmissed(false);
}

static bool type_is_refused(enum ibv_qp_type type, struct ibv_pd *pd, struct ibv_xrcd *xrcd)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = type,
		.comp_mask = xrcd ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = pd, .xrcd = xrcd,
	};
	bool ok;

	errno = 0;
	ok = !ibv_create_qp_ex(dev.ctx, &attr) && errno == EOPNOTSUPP;
	if (!ok)
		printf("# a QP of type %d: %s\n", type, strerror(errno));
	ibv_destroy_cq(cq);
	return ok;
}

/* By the number that programs look for when they choose another way. */
static bool types_are_refused(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100,
	};
	bool ok;

	errno = 0;
	ok = !ibv_open_xrcd(dev.ctx, &attr) && errno == EOPNOTSUPP;
	return type_is_refused(IBV_QPT_XRC_SEND, dev.pd, NULL) &&
	       type_is_refused(IBV_QPT_RAW_PACKET, dev.pd, NULL) &&
	       type_is_refused(IBV_QPT_DRIVER, dev.pd, NULL) && ok;
}

/* ---- */

static const struct hand_case cases[] = {
	{ "both-ends-in-each-order", orders },
	{ "an-end-that-stays-in-rtr-receives", receivers_only },
	{ "peer-that-never-comes-is-given-up", absent_peer },
	{ "without-time-out-no-peer-is-given-up", endless_patience },
	{ "peer-that-is-destroyed-is-missed-by-a-send", peer_is_destroyed },
	{ "last-message-arrives-before-the-receiver-goes-to-error", last_words_are_heard },
	{ "peer-that-is-reset-is-missed-by-a-send", peer_is_reset },
	{ "peer-in-error-is-missed-by-a-send", peer_is_in_error },
	{ "qps-are-used-again", used_again },
	{ "reset-drops-what-was-posted", reset_drops },
	{ "reset-takes-no-work-request", reset_takes_nothing },
	{ "modify-qp-follows-the-table", table_is_checked },
	{ "query-qp-returns-what-was-set", query_tells },
	{ "sqd-holds-and-reports-drained", drains },
	{ "send-waits-for-a-receive", waits_for_receive },
	{ "send-without-a-receive-is-given-up", receive_never_comes },
	{ "receive-that-cannot-be-filled-fails-its-own-send", receives_fail },
	{ "write-that-is-done-is-in-the-peer's-memory", done_is_there },
	{ "sends-by-turns-are-done-by-turns", dialogue },
	{ "qp-without-remote-write-is-not-written", writes_not_allowed },
	{ "qp-without-remote-read-is-not-read", reads_not_allowed },
	{ "region-whose-rights-change-keeps-its-key", rights_change },
	{ "depth-of-one-carries-many-reads", depths },
	{ "uc-qps-write-and-send", unreliable },
	{ "uc-qp-does-not-miss-its-peer", uc_does_not_miss_a_dead_peer },
	{ "xrc-raw-and-dc-qps-are-refused", types_are_refused },
};

int main(int argc, char **argv)
{
	return hand_run_cases("weft-byhand", argc, argv, &dev, cases, sizeof(cases) / sizeof(*cases));
}
