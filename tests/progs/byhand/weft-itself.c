// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A QP that is connected by hand to itself: to its own number at its own GID. It receives its own
 * Sends, its Writes and Reads access its own memory, and an error is reported for both ends. Over
 * the device that has the GID of ADDR. TAP on stdout. Nothing here knows weft.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byhand.h"

#define QUIET_MS	300		/* in which nothing is to happen */
#define BULK		(1 << 20)	/* more than TCP takes at once, both ways */

static struct hand_device dev;
static struct hand_end e;
static struct hand_name name;
static uint64_t *own_word, *other_word;	/* in either half of the buffer */

static void make(const struct hand_setting *set)
{
	int i;

	hand_make(&e, &dev, set, NULL);
	hand_tell(&e, &name);
	for (i = 0; i < HAND_BUF; i++)
		e.buf[i] = (uint8_t)(1 + i * 7);
	memset(e.buf + HAND_BUF, 0, HAND_BUF);
	own_word = (uint64_t *)(((uintptr_t)e.buf + 7) & ~7ul);
	other_word = own_word + HAND_BUF / 8;
}

static void join(const struct hand_setting *set)
{
	make(set);
	hand_ready(&e, &name);
}

static bool arrived(uint32_t len)
{
	return !memcmp(e.buf, e.buf + HAND_BUF, len);
}

static bool took(uint64_t id)
{
	return hand_took(e.cq, id, IBV_WC_SUCCESS);
}

static bool quiet(void)
{
	struct ibv_wc wc;

	if (!hand_poll(e.cq, &wc, QUIET_MS))
		return true;
	printf("# %lu came with %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return false;
}

/* Both complete, the receive first or the Send; what the receive says is in *@recv. */
static bool took_both(uint64_t recv_id, uint64_t send_id, struct ibv_wc *recv)
{
	struct ibv_wc wc[2];
	int r;

	if (!hand_poll(e.cq, &wc[0], 20000) || !hand_poll(e.cq, &wc[1], 20000))
		return false;
	r = wc[0].wr_id == send_id;
	*recv = wc[r];
	return wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS &&
	       wc[r].wr_id == recv_id && wc[!r].wr_id == send_id;
}

/* ---- what flows ---- */

static bool talk(void)
{
	struct ibv_wc wc;

	hand_recv(&e, 1);
	hand_send(&e, 2, HAND_BUF);
	return took_both(1, 2, &wc) && wc.byte_len == HAND_BUF && wc.qp_num == e.qp->qp_num &&
	       arrived(HAND_BUF);
}

static bool sends(void)
{
	bool ok;
	int i;

	join(&hand_usual);
	ok = talk();
	for (i = 0; i < HAND_DEPTH; i++)
		hand_recv(&e, 100);
	for (i = 0; i < HAND_DEPTH; i++)
		hand_send(&e, 100, (uint32_t)i);
	for (i = 0; i < 2 * HAND_DEPTH && ok; i++)
		ok = took(100);
	/* By turns, as in a dialogue. */
	for (i = 0; i < 200 && ok; i++)
		ok = talk();
	hand_unmake(&e);
	return ok;
}

/* Sent in INIT's place: what is posted before RTS goes out with it. A Send before its receive waits. */
static bool send_waits_for_receive(void)
{
	struct ibv_wc wc;
	bool ok;

	make(&hand_usual);
	ok = !hand_to_init(&e) && !hand_to_rtr(&e, &name) && quiet() && !hand_to_rts(&e);
	hand_send(&e, 2, 100);
	ok = ok && quiet();
	hand_recv(&e, 1);
	ok = ok && took_both(1, 2, &wc) && arrived(100);
	hand_unmake(&e);
	return ok;
}

static bool writes_and_reads(void)
{
	struct ibv_wc wc;
	bool ok;

	join(&hand_usual);
	hand_rdma(&e, 1, IBV_WR_RDMA_WRITE, &name, 1000);
	ok = took(1) && arrived(1000);
	hand_recv(&e, 2);
	hand_rdma(&e, 3, IBV_WR_RDMA_WRITE_WITH_IMM, &name, HAND_BUF);
	ok = ok && took_both(2, 3, &wc) && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
	     wc.wc_flags & IBV_WC_WITH_IMM && wc.byte_len == HAND_BUF && arrived(HAND_BUF);
	hand_recv(&e, 4);
	hand_rdma(&e, 5, IBV_WR_SEND_WITH_IMM, &name, 77);
	ok = ok && took_both(4, 5, &wc) && wc.opcode == IBV_WC_RECV && wc.wc_flags & IBV_WC_WITH_IMM &&
	     wc.byte_len == 77;
	memset(e.buf, 0, HAND_BUF);
	hand_rdma(&e, 6, IBV_WR_RDMA_READ, &name, 3000);
	ok = ok && took(6) && arrived(3000) && e.buf[0] == 1;
	hand_unmake(&e);
	return ok;
}

static void post_atomic(uint64_t id, enum ibv_wr_opcode op, uint64_t a, uint64_t b)
{
	struct ibv_sge s = { (uintptr_t)own_word, 8, e.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = op, .sg_list = &s, .num_sge = 1,
		.wr.atomic = { (uintptr_t)other_word, a, b, name.rkey },
	}, *bad;

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("no atomic can be posted");
}

static bool atomics(void)
{
	bool ok = true;
	int i;

	join(&hand_usual);
	for (i = 0; i < 20 && ok; i++) {
		post_atomic(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0);
		ok = took(1) && *own_word == 3u * i && *other_word == 3u * i + 3;
	}
	post_atomic(2, IBV_WR_ATOMIC_CMP_AND_SWP, 60, 5);
	ok = ok && took(2) && *own_word == 60 && *other_word == 5;
	post_atomic(3, IBV_WR_ATOMIC_CMP_AND_SWP, 60, 6);
	ok = ok && took(3) && *own_word == 5 && *other_word == 5;
	hand_unmake(&e);
	return ok;
}

static void post_bulk(uint64_t id, enum ibv_wr_opcode op, const struct ibv_mr *mr, uint8_t *own,
		      uint8_t *other)
{
	struct ibv_sge s = { (uintptr_t)own, BULK, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = op, .sg_list = &s, .num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)other, .rkey = mr->rkey },
	}, *bad;

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("no bulk can be posted");
}

/* Not by libc: a sanitizer that knows memcmp forgets, of so many octets, by whose leave they came. */
static bool is_as_filled(const uint8_t *p)
{
	int i;

	for (i = 0; i < BULK; i++)
		if (p[i] != (uint8_t)(i * 31 + (i >> 9)))
			return false;
	return true;
}

/* It must receive while it sends, or TCP's buffers fill. */
static bool bulk(void)
{
	uint8_t *mem = malloc(3 * BULK);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem, 3 * BULK, IBV_ACCESS_LOCAL_WRITE | hand_usual.access);
	bool ok = mr;
	int i;

	join(&hand_usual);
	for (i = 0; i < BULK; i++)
		mem[i] = (uint8_t)(i * 31 + (i >> 9));
	memset(mem + BULK, 0, 2 * BULK);
	for (i = 0; i < 8; i++)
		post_bulk(1, IBV_WR_RDMA_WRITE, mr, mem, mem + BULK);
	for (i = 0; i < 8; i++)
		post_bulk(2, IBV_WR_RDMA_READ, mr, mem + 2 * BULK, mem + BULK);
	for (i = 0; i < 16 && ok; i++)
		ok = took(i < 8 ? 1 : 2);
	ok = ok && is_as_filled(mem + BULK) && is_as_filled(mem + 2 * BULK);
	hand_unmake(&e);
	if (mr)
		ibv_dereg_mr(mr);
	free(mem);
	return ok;
}

static bool depths(void)
{
	struct hand_setting one = hand_usual;
	bool ok;
	int i;

	one.rd_atomic = 1;
	one.dest_rd_atomic = 1;
	join(&one);
	ok = talk();
	for (i = 0; i < 20; i++)
		hand_rdma(&e, 100 + i, IBV_WR_RDMA_READ, &name, 64);
	for (i = 0; i < 20 && ok; i++)
		ok = took(100 + i);
	hand_unmake(&e);
	return ok;
}

static bool unreliable(void)
{
	struct hand_setting uc = hand_usual;
	bool ok;

	uc.type = IBV_QPT_UC;
	uc.access = IBV_ACCESS_REMOTE_WRITE;
	join(&uc);
	ok = talk();
	hand_unmake(&e);
	return ok;
}

static bool drains(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_wc wc;
	bool ok;

	join(&hand_usual);
	ok = talk();
	hand_rdma(&e, 1, IBV_WR_RDMA_READ, &name, HAND_BUF);
	ok = ok && !ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
	     hand_reports_drained(&dev, e.qp) && took(1);
	hand_recv(&e, 2);
	hand_send(&e, 3, 100);
	ok = ok && quiet() && !hand_to(&e, IBV_QPS_RTS) && took_both(2, 3, &wc);
	hand_unmake(&e);
	return ok;
}

/* ---- errors ---- */

/* It comes next, with this status; then the others, flushed. */
static bool fails(uint64_t id, enum ibv_wc_status status, uint64_t flushed)
{
	return hand_took(e.cq, id, status) && hand_took(e.cq, flushed, IBV_WC_WR_FLUSH_ERR) &&
	       hand_state(&e) == IBV_QPS_ERR;
}

/* Refused by this end as the target; what went before it is done. */
static bool is_refused(enum ibv_wr_opcode op)
{
	struct hand_name wrong = name;
	bool ok;

	join(&hand_usual);
	wrong = name;
	wrong.rkey ^= 0x100;
	ok = talk();
	hand_rdma(&e, 3, IBV_WR_RDMA_WRITE, &name, 64);
	hand_rdma(&e, 4, op, &wrong, 64);
	hand_rdma(&e, 5, IBV_WR_RDMA_WRITE, &name, 64);
	ok = ok && took(3) && fails(4, IBV_WC_REM_ACCESS_ERR, 5);
	hand_unmake(&e);
	return ok;
}

static bool wrong_keys(void)
{
	return is_refused(IBV_WR_RDMA_WRITE) && is_refused(IBV_WR_RDMA_READ);
}

static bool wrong_atomic(void)
{
	bool ok;

	join(&hand_usual);
	name.rkey ^= 0x100;
	post_atomic(4, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
	post_atomic(5, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0);
	ok = fails(4, IBV_WC_REM_ACCESS_ERR, 5);
	hand_unmake(&e);
	return ok;
}

/* Its own mistake, of which the other end is not to blame. */
static bool wrong_local_key(void)
{
	struct ibv_sge s = { (uintptr_t)e.buf, 64, 0 };
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND, .sg_list = &s, .num_sge = 1 }, *bad;
	bool ok;

	join(&hand_usual);
	s.lkey = e.mr->lkey ^ 0x100;
	ok = talk();
	hand_recv(&e, 5);
	ok = ok && !ibv_post_send(e.qp, &wr, &bad) && fails(4, IBV_WC_LOC_PROT_ERR, 5);
	hand_unmake(&e);
	return ok;
}

static bool message_too_long(void)
{
	struct ibv_sge s = { (uintptr_t)e.buf + HAND_BUF, 10, 0 };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &s, .num_sge = 1 }, *bad;
	bool ok;

	join(&hand_usual);
	s.lkey = e.mr->lkey;
	ok = !ibv_post_recv(e.qp, &wr, &bad);
	hand_recv(&e, 5);
	hand_send(&e, 4, 64);
	ok = ok && hand_took(e.cq, 3, IBV_WC_LOC_LEN_ERR) && fails(4, IBV_WC_REM_INV_REQ_ERR, 5);
	hand_unmake(&e);
	return ok;
}

static bool receive_that_cannot_be_filled(void)
{
	struct ibv_sge s = { (uintptr_t)e.buf + HAND_BUF, 64, 0 };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &s, .num_sge = 1 }, *bad;
	bool ok;

	join(&hand_usual);
	s.lkey = e.mr->lkey ^ 0x100;
	ok = !ibv_post_recv(e.qp, &wr, &bad);
	hand_recv(&e, 5);
	hand_send(&e, 4, 64);
	ok = ok && hand_took(e.cq, 3, IBV_WC_LOC_PROT_ERR) && fails(4, IBV_WC_REM_OP_ERR, 5);
	hand_unmake(&e);
	return ok;
}

static bool receive_never_comes(void)
{
	struct hand_setting hasty = hand_usual;
	bool ok;

	hasty.rnr_retry = 1;
	join(&hasty);
	ok = talk();
	hand_rdma(&e, 5, IBV_WR_RDMA_WRITE, &name, 64);
	hand_send(&e, 6, 200);
	hand_send(&e, 7, 200);
	ok = ok && took(5) && fails(6, IBV_WC_RNR_RETRY_EXC_ERR, 7);
	hand_unmake(&e);
	return ok;
}

static bool without_right(void)
{
	struct hand_setting set = hand_usual;
	bool ok;

	set.access = IBV_ACCESS_REMOTE_READ;
	join(&set);
	ok = talk();
	hand_recv(&e, 5);
	hand_rdma(&e, 4, IBV_WR_RDMA_WRITE, &name, 64);
	ok = ok && fails(4, IBV_WC_REM_ACCESS_ERR, 5);
	hand_unmake(&e);
	return ok;
}

/* What it sends it would not await: nothing of it is ever there. */
static bool wrong_psn(void)
{
	struct hand_setting hasty = hand_usual;
	struct hand_name wrong;
	bool ok;

	hasty.timeout = 1;
	make(&hasty);
	wrong = name;
	wrong.psn ^= 1;
	hand_ready(&e, &wrong);
	hand_recv(&e, 5);
	hand_send(&e, 4, 10);
	ok = fails(4, IBV_WC_RETRY_EXC_ERR, 5);
	hand_unmake(&e);
	return ok;
}

/* ---- states ---- */

static bool used_again(void)
{
	struct hand_end other;
	struct hand_name others;
	bool ok = true;
	int i;

	join(&hand_usual);
	for (i = 0; i < 20 && ok; i++) {
		ok = talk();
		hand_recv(&e, 9);
		ok = ok && !hand_to(&e, IBV_QPS_ERR) && hand_took(e.cq, 9, IBV_WC_WR_FLUSH_ERR);
		hand_send(&e, 10, 8);
		ok = ok && hand_took(e.cq, 10, IBV_WC_WR_FLUSH_ERR) && !hand_to(&e, IBV_QPS_RESET);
		e.psn = (e.psn + 17) & 0xffffff;
		hand_tell(&e, &name);
		hand_ready(&e, &name);
	}
	/* And with another: it is no pair of one any more. */
	ok = ok && talk() && !hand_to(&e, IBV_QPS_RESET);
	hand_make(&other, &dev, &hand_usual, NULL);
	hand_tell(&other, &others);
	hand_ready(&e, &others);
	hand_ready(&other, &name);
	hand_recv(&other, 3);
	hand_send(&e, 4, 64);
	ok = ok && took(4) && hand_took(other.cq, 3, IBV_WC_SUCCESS) &&
	     !memcmp(e.buf, other.buf + HAND_BUF, 64);
	name = others;
	name.rkey ^= 0x100;
	hand_rdma(&e, 5, IBV_WR_RDMA_WRITE, &name, 64);
	ok = ok && hand_took(e.cq, 5, IBV_WC_REM_ACCESS_ERR);
	hand_unmake(&other);
	hand_unmake(&e);
	return ok;
}

/* With work under way, and with a Send that waits for a receive. */
static bool destroyed_at_work(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		join(&hand_usual);
		hand_rdma(&e, 1, IBV_WR_RDMA_READ, &name, HAND_BUF);
		hand_send(&e, 2, 100);
		if (i & 1)
			hand_recv(&e, 3);
		if (i & 2 && !took(1))
			return false;
		hand_unmake(&e);
	}
	return true;
}

/* ---- */

static const struct hand_case cases[] = {
	{ "sends-to-itself", sends },
	{ "send-to-itself-waits-for-a-receive", send_waits_for_receive },
	{ "writes-and-reads-itself", writes_and_reads },
	{ "atomics-on-itself", atomics },
	{ "megabytes-to-itself-both-ways", bulk },
	{ "depth-of-one-carries-many-reads-of-itself", depths },
	{ "uc-qp-sends-to-itself", unreliable },
	{ "sqd-holds-a-qp-with-itself", drains },
	{ "wrong-key-to-itself-is-refused", wrong_keys },
	{ "atomic-on-a-wrong-key-is-refused", wrong_atomic },
	{ "wrong-local-key-fails-locally", wrong_local_key },
	{ "message-to-itself-that-is-too-long-is-refused", message_too_long },
	{ "receive-that-cannot-be-filled-fails-both", receive_that_cannot_be_filled },
	{ "send-to-itself-without-a-receive-is-given-up", receive_never_comes },
	{ "qp-without-remote-write-does-not-write-itself", without_right },
	{ "wrong-psn-to-itself-is-never-there", wrong_psn },
	{ "qp-with-itself-is-used-again", used_again },
	{ "qp-with-itself-is-destroyed-at-work", destroyed_at_work },
};

int main(int argc, char **argv)
{
	return hand_run_cases("weft-itself", argc, argv, &dev, cases, sizeof(cases) / sizeof(*cases));
}
