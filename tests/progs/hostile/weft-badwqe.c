// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What can a program do to the kernel through the rings that they share? Each case opens a
 * connection to a partner that echoes messages, exchanges one message, corrupts the rings and rings
 * the doorbell. The result must be an error completion, a QP in error, or no effect: never a hang,
 * and the objects can be destroyed. TAP on stdout.
 *
 * The rings are found among the process's mappings by their content; only the ABI header is used,
 * not the provider.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/weft-abi.h>

#include "conn.h"
#include "pattern.h"

#define SEND_WR		64
#define RECV_WR		64
#define MSG		64
#define BUF		4096

enum { FIRST_SEND = 0x5e5e0001, FIRST_RECV = 0x4e4e0001, BAD = 0xbad00001, PING = 0x91960001 };

/* What must come of a case. */
enum want {
	CQE,		/* an error completion of the bad entry, and the QP in error */
	DEAD,		/* the QP in error */
	ALIVE,		/* the next message goes there and back */
	ANY,		/* no hang */
};

static struct {
	struct conn c;
	const char *host, *port;
	struct weft_ring *sq, *rq, *cq;
	uint32_t sq_slots, rq_slots, cq_slots;
	uint32_t idx;			/* where the SQ goes on */
	uint8_t *buf;
	struct ibv_mr *mr;
	uint64_t rnd;
	int n, failed;
	const char *name;
} b;

static uint64_t rnd(void)
{
	return b.rnd = pattern_mix(b.rnd);
}

/* ---- the rings ---- */

static uint8_t *slot(struct weft_ring *r, uint32_t slots, uint32_t i)
{
	return (uint8_t *)r + WEFT_RING_DATA + (size_t)(i & (slots - 1)) * WEFT_SLOT_SIZE;
}

/* The greatest power of two that fits; right for rings of a page and more. */
static uint32_t slots_in(size_t size)
{
	uint32_t n = 1;

	while (WEFT_RING_DATA + 2ULL * n * WEFT_SLOT_SIZE <= size)
		n *= 2;
	return n;
}

/* Before any traffic an entry's wr_id is nowhere but in its own ring. */
static void take_mapping(struct weft_ring *r, size_t size)
{
	uint64_t first;

	memcpy(&first, slot(r, 1, 0), sizeof(first));
	if (r == b.rq)
		return;
	if (!b.rq && first == FIRST_RECV) {
		b.rq = r;
		b.rq_slots = slots_in(size);
	} else if (first == FIRST_SEND) {
		b.sq = r;
		b.sq_slots = slots_in(size);
	} else {
		b.cq = r;
		b.cq_slots = slots_in(size);
	}
}

static void walk_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], perms[8];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "uverbs") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, perms) == 3 && perms[1] == 'w')
			take_mapping((struct weft_ring *)from, to - from);
	if (f)
		fclose(f);
}

static void find_receive_ring(void)
{
	b.rq = NULL;
	walk_mappings();
	if (!b.rq)
		fail("no receive ring is found: is this a weft device?");
}

static void find_other_rings(void)
{
	b.sq = b.cq = NULL;
	walk_mappings();
	if (!b.sq || !b.cq)
		fail("the rings are not found");
}

/* ---- posting, past the provider ---- */

static int kick_handle(uint64_t handle)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_QP,
			 .method_id = WEFT_METHOD_QP_KICK, .num_attrs = 1,
			 .driver_id = WEFT_DRIVER_ID },
		.attr = { .attr_id = WEFT_ATTR_QP_KICK_HANDLE,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
	};

	return ioctl(b.c.id->verbs->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

static void kick(void)
{
	int err = kick_handle(b.c.id->qp->handle);

	if (err)
		fail("%s: kick: %s", b.name, strerror(err));
}

static void set_user_idx(struct weft_ring *r, uint32_t idx)
{
	__atomic_store_n(&r->user_idx, idx, __ATOMIC_RELEASE);
}

/* Up to WEFT_SQ_MAX_SLOTS slots in one piece. */
struct wqe {
	union {
		struct weft_sq_wqe w;
		uint8_t bytes[WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE];
	};
};

static void put_wqe(const struct wqe *e, uint32_t slots)
{
	uint32_t i;

	for (i = 0; i < slots; i++)
		memcpy(slot(b.sq, b.sq_slots, b.idx + i), e->bytes + (size_t)i * WEFT_SLOT_SIZE,
		       WEFT_SLOT_SIZE);
	b.idx += slots;
	set_user_idx(b.sq, b.idx);
}

static struct weft_sge *sges(struct wqe *e)
{
	return (struct weft_sge *)(e->bytes + offsetof(struct weft_sq_wqe, data));
}

/* A good entry: one Send of a message. Cases make it bad. */
static struct wqe good_send(uint64_t id)
{
	struct wqe e = { .w = { .wr_id = id, .opcode = WEFT_WR_SEND, .flags = WEFT_WR_SIGNALED,
				.nslots = 1, .num_sge = 1 } };

	*sges(&e) = (struct weft_sge){ .addr = (uintptr_t)b.buf, .length = MSG,
				       .lkey = b.mr->lkey };
	return e;
}

/* ---- cases: the send ring ---- */

static void put_and_kick(const struct wqe *e, uint32_t slots)
{
	put_wqe(e, slots);
	kick();
}

static void spoil_opcode(int opcode)
{
	struct wqe e = good_send(BAD);

	e.w.opcode = opcode;
	put_and_kick(&e, 1);
}

static void spoil_num_sge(int num_sge)
{
	struct wqe e = good_send(BAD);

	e.w.num_sge = num_sge;
	put_and_kick(&e, 1);
}

static void spoil_33_sges(int unused)
{
	struct wqe e = good_send(BAD);

	(void)unused;
	e.w.num_sge = 33;
	e.w.nslots = WEFT_SQ_MAX_SLOTS;
	put_and_kick(&e, WEFT_SQ_MAX_SLOTS);
}

static void spoil_inline_length(int length)
{
	struct wqe e = good_send(BAD);

	e.w.flags |= WEFT_WR_INLINE;
	e.w.nslots = WEFT_SQ_MAX_SLOTS;
	sges(&e)->length = length;
	put_and_kick(&e, WEFT_SQ_MAX_SLOTS);
}

static void spoil_inline_beyond_slots(int length)
{
	struct wqe e = good_send(BAD);

	e.w.flags |= WEFT_WR_INLINE;
	sges(&e)->length = length;
	put_and_kick(&e, 1);
}

static void spoil_inline_num_sge(int num_sge)
{
	struct wqe e = good_send(BAD);

	e.w.flags |= WEFT_WR_INLINE;
	e.w.num_sge = num_sge;
	put_and_kick(&e, 1);
}

static void spoil_read(int how)
{
	struct wqe e = good_send(BAD);

	e.w.opcode = WEFT_WR_READ;
	e.w.rkey = b.mr->rkey;
	if (how)
		e.w.flags |= WEFT_WR_INLINE;
	else
		e.w.num_sge = 2;
	put_and_kick(&e, 1);
}

static void spoil_lengths(int unused)
{
	struct wqe e = good_send(BAD);
	int i;

	(void)unused;
	e.w.num_sge = WEFT_MAX_SGE;
	e.w.nslots = WEFT_SQ_MAX_SLOTS;
	for (i = 0; i < WEFT_MAX_SGE; i++)
		sges(&e)[i] = (struct weft_sge){ .addr = (uintptr_t)b.buf, .length = ~0u,
						 .lkey = b.mr->lkey };
	put_and_kick(&e, WEFT_SQ_MAX_SLOTS);
}

static void spoil_lkey(int mask)
{
	struct wqe e = good_send(BAD);

	sges(&e)->lkey ^= mask;
	put_and_kick(&e, 1);
}

/* @by: how many bytes the message ends behind the region, or begins before it. */
static void spoil_range(int by)
{
	struct wqe e = good_send(BAD);

	sges(&e)->addr += by < 0 ? by : BUF - MSG + by;
	put_and_kick(&e, 1);
}

static void spoil_range_wraps(int length)
{
	struct wqe e = good_send(BAD);

	sges(&e)->addr = ~0ULL - 15;
	sges(&e)->length = length;
	put_and_kick(&e, 1);
}

static void spoil_local_inv(int stag)
{
	struct wqe e = good_send(BAD);

	e.w.opcode = WEFT_WR_LOCAL_INV;
	e.w.inv_stag = stag ? (uint32_t)stag : b.mr->lkey;
	put_and_kick(&e, 1);
}

/* A good atomic, or a bind, but for what @how says. */
enum { ATOMIC_4_OCTETS, ATOMIC_NO_SGE, ATOMIC_TWO_SGES, ATOMIC_INLINE, ATOMIC_WRONG_SINK };

static void spoil_atomic(int how)
{
	struct wqe e = good_send(BAD);

	e.w.opcode = WEFT_WR_FETCH_ADD;
	e.w.rkey = b.mr->rkey;
	sges(&e)->length = how == ATOMIC_4_OCTETS ? 4 : 8;
	if (how == ATOMIC_WRONG_SINK)
		sges(&e)->lkey ^= 0x10000;
	if (how == ATOMIC_NO_SGE || how == ATOMIC_TWO_SGES)
		e.w.num_sge = how == ATOMIC_NO_SGE ? 0 : 2;
	if (how == ATOMIC_INLINE)
		e.w.flags |= WEFT_WR_INLINE;
	put_and_kick(&e, 1);
}

/* No window has such an STag; or it is the region's own. */
static void spoil_bind(int of_region)
{
	struct wqe e = good_send(BAD);
	struct weft_wr_bind *bind = (void *)sges(&e);

	e.w.opcode = WEFT_WR_BIND_MW;
	e.w.num_sge = 0;
	*bind = (struct weft_wr_bind){ .addr = (uintptr_t)b.buf, .length = MSG,
				       .mw_stag = of_region ? b.mr->rkey : 0x12345678,
				       .mr_lkey = b.mr->lkey, .access = IBV_ACCESS_REMOTE_READ };
	put_and_kick(&e, 1);
}

static void spoil_imm(int opcode)
{
	struct wqe e = good_send(BAD);

	e.w.opcode = opcode;
	sges(&e)->lkey ^= 0x10000;
	put_and_kick(&e, 1);
}

static void spoil_nslots(int nslots)
{
	struct wqe e = good_send(BAD);

	e.w.nslots = nslots;
	put_and_kick(&e, 1);
}

static void spoil_sq_idx(int by)
{
	set_user_idx(b.sq, b.idx + by);
	kick();
}

static void spoil_sq_idx_far(int beyond)
{
	spoil_sq_idx(b.sq_slots + beyond);
}

static void spoil_sq_random(int seed)
{
	uint32_t i, n = 1 + rnd() % b.sq_slots;
	uint64_t *p = (uint64_t *)slot(b.sq, b.sq_slots, 0);

	(void)seed;
	for (i = 0; i < b.sq_slots * (WEFT_SLOT_SIZE / 8); i++)
		p[i] = rnd();
	/* Half of them get further than the first look. */
	for (i = 0; i < b.sq_slots; i++) {
		struct weft_sq_wqe *w = (void *)slot(b.sq, b.sq_slots, i);

		if (rnd() & 1) {
			w->opcode %= WEFT_WR_NR;
			w->nslots = 1 + w->nslots % 3;
			w->num_sge %= 4;
		}
	}
	set_user_idx(b.sq, b.idx + n);
	kick();
}

/* The entry changes while the kernel looks at it. */
static volatile bool racing;

static void *race(void *arg)
{
	struct weft_sq_wqe *w = arg;
	uint32_t good = w->nslots | w->num_sge << 8 | w->opcode << 16;

	while (racing) {
		w->nslots = 255;
		w->num_sge = 255;
		w->opcode = 255;
		w->flags = 255;
		w->nslots = good & 255;
		w->num_sge = good >> 8 & 255;
		w->opcode = good >> 16;
		w->flags = 0;
	}
	return NULL;
}

static void spoil_race(int rounds)
{
	struct wqe e = good_send(BAD);
	pthread_t thread;
	void *at = slot(b.sq, b.sq_slots, b.idx);

	memcpy(at, &e.w, sizeof(e.w));
	racing = true;
	if (pthread_create(&thread, NULL, race, at))
		fail("no thread");
	while (rounds--) {
		set_user_idx(b.sq, b.idx + 1);
		kick();
	}
	racing = false;
	pthread_join(thread, NULL);
}

/* ---- cases: the other rings, the kernel's lines, the doorbell ---- */

static void ping(uint64_t id)
{
	struct wqe e = good_send(id);

	put_and_kick(&e, 1);
}

/* All receives that wait get @num_sge SGEs with this key and length. */
static void spoil_recvs(uint32_t num_sge, uint32_t lkey, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < b.rq_slots; i++) {
		struct weft_rq_wqe *w = (void *)slot(b.rq, b.rq_slots, i);
		struct weft_sge *sge = (void *)w->data;

		w->num_sge = num_sge;
		sge->lkey = lkey;
		sge->length = length;
	}
	ping(PING);
}

static void spoil_rq_num_sge(int num_sge)
{
	spoil_recvs(num_sge, b.mr->lkey, MSG);
}

static void spoil_rq_lkey(int mask)
{
	spoil_recvs(1, b.mr->lkey ^ mask, MSG);
}

static void spoil_rq_length(int length)
{
	spoil_recvs(1, b.mr->lkey, length);
}

static void spoil_rq_idx(int by)
{
	set_user_idx(b.rq, b.rq->user_idx + by);
	ping(PING);
}

static void spoil_cq_idx(int by)
{
	set_user_idx(b.cq, b.cq->user_idx + by);
	ping(PING);
}

static void spoil_arm(int value)
{
	__atomic_store_n(&b.cq->arm, value, __ATOMIC_SEQ_CST);
}

static struct weft_ring *ring_by(int which)
{
	return which == 0 ? b.sq : which == 1 ? b.rq : b.cq;
}

static void spoil_kern_idx(int which)
{
	ring_by(which)->kern_idx ^= 0x80000001;
}

static void spoil_flags(int which)
{
	ring_by(which)->flags = ~(which == 2 ? WEFT_RING_OVERFLOW : 0u);
}

static void spoil_reserved(int which)
{
	struct weft_ring *r = ring_by(which);

	memset(r->user_reserved, 0xff, sizeof(r->user_reserved));
	memset(r->kern_reserved, 0xff, sizeof(r->kern_reserved));
}

static void kick_often(int times)
{
	while (times--)
		kick();
}

static void kick_wrong_handle(int by)
{
	int err = kick_handle((uint64_t)b.c.id->qp->handle + by);

	if (!err)
		fail("%s: the kick was taken", b.name);
}

struct test {
	const char *name;
	void (*spoil)(int arg);
	int arg;
	enum want want;
};

static const struct test tests[] = {
	{ "opcode-255", spoil_opcode, 255, CQE },
	{ "opcode-first-unknown", spoil_opcode, WEFT_WR_NR, CQE },
	{ "opcode-of-kernel-consumers", spoil_opcode, WEFT_WR_REG_MR, CQE },
	{ "num-sge-255", spoil_num_sge, 255, CQE },
	{ "num-sge-beyond-slots", spoil_num_sge, 3, CQE },
	{ "num-sge-33-in-9-slots", spoil_33_sges, 0, CQE },
	{ "inline-length-4g", spoil_inline_length, -1, CQE },
	{ "inline-length-513", spoil_inline_length, WEFT_MAX_INLINE + 1, CQE },
	{ "inline-length-beyond-slots", spoil_inline_beyond_slots, 17, CQE },
	{ "inline-without-sge", spoil_inline_num_sge, 0, CQE },
	{ "inline-with-255-sges", spoil_inline_num_sge, 255, CQE },
	{ "read-with-two-sinks", spoil_read, 0, CQE },
	{ "read-inline", spoil_read, 1, CQE },
	{ "lengths-beyond-4g", spoil_lengths, 0, CQE },
	{ "lkey-key-byte", spoil_lkey, 1, CQE },
	{ "lkey-index", spoil_lkey, 0x10000, CQE },
	{ "lkey-inverted", spoil_lkey, -1, CQE },
	{ "range-one-byte-beyond", spoil_range, 1, CQE },
	{ "range-one-byte-before", spoil_range, -1, CQE },
	{ "range-wraps-at-zero", spoil_range_wraps, 32, CQE },
	{ "local-inv-of-a-user-region", spoil_local_inv, 0, CQE },
	{ "local-inv-of-nothing", spoil_local_inv, 0x12345678, CQE },
	{ "atomic-of-4-octets", spoil_atomic, ATOMIC_4_OCTETS, CQE },
	{ "atomic-without-sge", spoil_atomic, ATOMIC_NO_SGE, CQE },
	{ "atomic-with-two-sges", spoil_atomic, ATOMIC_TWO_SGES, CQE },
	{ "atomic-inline", spoil_atomic, ATOMIC_INLINE, CQE },
	{ "atomic-into-nothing", spoil_atomic, ATOMIC_WRONG_SINK, CQE },
	{ "bind-of-nothing", spoil_bind, 0, CQE },
	{ "bind-of-a-region", spoil_bind, 1, CQE },
	{ "write-with-imm-of-nothing", spoil_imm, WEFT_WR_WRITE_IMM, CQE },
	{ "send-with-imm-of-nothing", spoil_imm, WEFT_WR_SEND_IMM, CQE },
	{ "nslots-0", spoil_nslots, 0, DEAD },
	{ "nslots-2-of-1-posted", spoil_nslots, 2, DEAD },
	{ "nslots-10", spoil_nslots, 10, DEAD },
	{ "nslots-255", spoil_nslots, 255, DEAD },
	{ "sq-index-one-back", spoil_sq_idx, -1, DEAD },
	{ "sq-index-half-way-round", spoil_sq_idx, 0x7fffffff, DEAD },
	{ "sq-index-one-beyond-ring", spoil_sq_idx_far, 1, DEAD },
	{ "sq-index-whole-ring-of-old-entries", spoil_sq_idx_far, 0, ANY },
	{ "sq-entry-changes-while-read", spoil_race, 3000, ANY },
	{ "rq-num-sge-4g", spoil_rq_num_sge, -1, DEAD },
	{ "rq-num-sge-200", spoil_rq_num_sge, 200, DEAD },
	{ "rq-lkey", spoil_rq_lkey, 0x10000, DEAD },
	{ "rq-length-beyond-region", spoil_rq_length, BUF, DEAD },
	{ "rq-too-short", spoil_rq_length, MSG - 1, DEAD },
	{ "rq-index-back", spoil_rq_idx, -RECV_WR - 1, DEAD },
	{ "rq-index-beyond-ring", spoil_rq_idx, 1 << 20, DEAD },
	{ "cq-index-ahead", spoil_cq_idx, 100, DEAD },
	{ "cq-index-back", spoil_cq_idx, -1000000, DEAD },
	{ "arm-word-garbage", spoil_arm, -1, ALIVE },
	{ "sq-kernel-index-scribbled", spoil_kern_idx, 0, ALIVE },
	{ "rq-kernel-index-scribbled", spoil_kern_idx, 1, ALIVE },
	{ "cq-kernel-index-scribbled", spoil_kern_idx, 2, ALIVE },
	{ "sq-flags-scribbled", spoil_flags, 0, ALIVE },
	{ "rq-flags-scribbled", spoil_flags, 1, ALIVE },
	{ "cq-flags-scribbled", spoil_flags, 2, ALIVE },
	{ "sq-reserved-scribbled", spoil_reserved, 0, ALIVE },
	{ "cq-reserved-scribbled", spoil_reserved, 2, ALIVE },
	{ "kick-without-work", kick_often, 200, ALIVE },
	{ "kick-of-another-handle", kick_wrong_handle, 1000, ALIVE },
	{ "kick-of-a-huge-handle", kick_wrong_handle, 0x7ffff000, ALIVE },
};

/* ---- one case ---- */

static void post_recvs(uint32_t n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)(b.buf + BUF / 2), .length = MSG,
			       .lkey = b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = FIRST_RECV, .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--)
		if (ibv_post_recv(b.c.id->qp, &wr, &bad))
			fail("ibv_post_recv");
}

static void prepare_queues(void)
{
	b.c.max_sge = WEFT_MAX_SGE;
	conn_make_qp(&b.c, SEND_WR, RECV_WR, WEFT_MAX_INLINE);
	b.mr = conn_reg(&b.c, b.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	post_recvs(RECV_WR / 2);
}

/* An unsignalled Send: found in the ring, and never in the CQ. */
static void first_message(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)b.buf, .length = MSG, .lkey = b.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = FIRST_SEND, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(b.c.id->qp, &wr, &bad))
		fail("ibv_post_send");
	if (conn_poll(&b.c, &wc, 1, b.c.timeout_ms) != 1 || wc.status != IBV_WC_SUCCESS)
		fail("%s: the first message does not come back", b.name);
	find_other_rings();
	b.idx = b.sq->user_idx;
}

static bool in_error(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(b.c.id->qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR;
}

static void drain_async_events(void)
{
	struct pollfd p = { .fd = b.c.id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	while (poll(&p, 1, 0) > 0 && !ibv_get_async_event(b.c.id->verbs, &ev))
		ibv_ack_async_event(&ev);
}

/* What came within the time. */
struct outcome {
	bool bad_cqe, dead, came_back;
};

/* Past conn_poll(), for which a CQ in error is the end. */
static struct outcome watch(enum want want, int ms)
{
	struct outcome o = {};
	struct ibv_wc wc;

	for (; ms > 0; ms--) {
		while (ibv_poll_cq(b.c.cq, 1, &wc) > 0) {
			/* Flushed is not judged. */
			if (wc.wr_id == BAD && wc.status != IBV_WC_SUCCESS &&
			    wc.status != IBV_WC_WR_FLUSH_ERR)
				o.bad_cqe = true;
			if (wc.wr_id == FIRST_RECV && wc.status == IBV_WC_SUCCESS)
				o.came_back = true;
		}
		o.dead = in_error();
		if ((want == CQE && o.bad_cqe && o.dead) || (want == DEAD && o.dead) ||
		    (want == ALIVE && o.came_back))
			break;
		usleep(1000);
	}
	return o;
}

static const char *judge(enum want want)
{
	struct outcome o;

	if (want == ALIVE)
		ping(PING);
	o = watch(want, want == ANY ? 300 : b.c.timeout_ms);
	drain_async_events();
	if (want == CQE && !o.bad_cqe)
		return "no error completion";
	if ((want == CQE || want == DEAD) && !o.dead)
		return "the QP is not in error";
	if (want == ALIVE && !o.came_back)
		return "the next message does not come back";
	return NULL;
}

static void run_test(const struct test *t)
{
	const char *why;

	b.name = t->name;
	/* A hang ends the program, with the name of the case in its last words. */
	alarm(60);
	conn_resolve(&b.c, b.host, b.port);
	prepare_queues();
	find_receive_ring();
	conn_connect(&b.c, NULL, 0);
	first_message();
	t->spoil(t->arg);
	why = judge(t->want);
	conn_close(&b.c);
	alarm(0);
	printf("%sok %d - %s%s%s\n", why ? "not " : "", ++b.n, t->name, why ? ": " : "",
	       why ? why : "");
	b.failed += !!why;
}

static void run_all(int random_rounds)
{
	const struct test random = { "random-entries", spoil_sq_random, 0, ANY };
	const struct test still_there = { "a-good-connection-afterwards", kick_often, 1, ALIVE };
	size_t i;

	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		run_test(&tests[i]);
	while (random_rounds--)
		run_test(&random);
	run_test(&still_there);
	printf("1..%d\n", b.n);
}

/* ---- the partner ---- */

static void answer(struct ibv_mr *mr, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)b.buf, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .wr_id = PING, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	/* The client's QP may be gone: what fails here is not ours to judge. */
	ibv_post_send(b.c.id->qp, &wr, &bad);
}

static void serve_one(void)
{
	struct ibv_wc wc;

	conn_await_request(&b.c);
	prepare_queues();
	conn_accept(&b.c, NULL, 0);
	while (conn_poll(&b.c, &wc, 1, b.c.timeout_ms) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			break;
		if (wc.wr_id != FIRST_RECV)
			continue;
		post_recvs(1);
		answer(b.mr, wc.byte_len);
	}
	conn_close(&b.c);
}

static void on_alarm(int sig)
{
	static const char text[] = "weft-badwqe: a case hangs\n";

	(void)sig;
	if (write(1, text, sizeof(text) - 1))
		_exit(1);
	_exit(1);
}

static void usage(void)
{
	fprintf(stderr,
		"weft-badwqe -l [-b ADDR] [-p PORT]              answers messages, for ever\n"
		"weft-badwqe [-p PORT] [-S SEED] [-n ROUNDS] HOST\n"
		"  -S  seed of the random entries (1)\n"
		"  -n  how many cases of random entries (20)\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const char *addr = NULL;
	bool server = false;
	int opt, rounds = 20;

	conn_program = "weft-badwqe";
	setvbuf(stdout, NULL, _IOLBF, 0);
	b.port = "7176";
	b.c.timeout_ms = 10000;
	b.rnd = 1;
	while ((opt = getopt(argc, argv, "lb:p:S:n:")) != -1) {
		switch (opt) {
		case 'l': server = true; break;
		case 'b': addr = optarg; break;
		case 'p': b.port = optarg; break;
		case 'S': b.rnd = strtoull(optarg, NULL, 0); break;
		case 'n': rounds = atoi(optarg); break;
		default: usage();
		}
	}
	if (server == (optind < argc))
		usage();
	if (posix_memalign((void **)&b.buf, 4096, BUF))
		fail("no memory");
	memset(b.buf, 0, BUF);
	signal(SIGALRM, on_alarm);
	if (server) {
		conn_listen(&b.c, addr, b.port);
		for (;;)
			serve_one();
	}
	b.host = argv[optind];
	run_all(rounds);
	return b.failed ? 1 : 0;
}
