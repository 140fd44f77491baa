// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How much does weft do while another module's tasklet waits to run? The measure is completions,
 * each of which is reported to a kernel consumer where it is generated. The first one in softirq
 * schedules a tasklet on its CPU; those before the tasklet runs have delayed it.
 *
 * The bounds are the driver's alone. Neither its speed nor a pause of this machine changes them:
 * where the driver goes by the clock, a completion is charged time by the same clock.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "kmod.h"

/* ---- tasklets that wait ---- */

struct turn {
	struct tasklet_struct tasklet;
	bool waits;
	u32 passed;
};

static DEFINE_PER_CPU(struct turn, turns);
static atomic_t in_softirq;		/* completions generated there */
static atomic_t most;			/* the most of these before one run of the tasklet */
static struct task_struct *poster;
static atomic_t by_poster;		/* completions that it generated itself */

/* For requests of all kinds: its contents do not matter. */
#define OCTETS		4096
static u8 *octets;

static void has_turn(struct tasklet_struct *tasklet)
{
	struct turn *t = from_tasklet(t, tasklet, tasklet);
	int passed = t->passed, was = atomic_read(&most);

	while (passed > was && !atomic_try_cmpxchg(&most, &was, passed))
		;
	t->waits = false;
}

/* Completions of another CPU's softirq may be reported to this one in an interrupt. */
static void passes_by(void)
{
	struct turn *t = this_cpu_ptr(&turns);

	if (!in_serving_softirq() || in_hardirq())
		return;
	atomic_inc(&in_softirq);
	if (!t->waits) {
		t->waits = true;
		t->passed = 0;
		tasklet_schedule(&t->tasklet);
	}
	t->passed++;
}

static int turns_begin(void)
{
	int cpu;

	octets = kzalloc(OCTETS, GFP_KERNEL);
	if (!octets)
		return -ENOMEM;
	atomic_set(&in_softirq, 0);
	atomic_set(&most, 0);
	for_each_possible_cpu(cpu)
		tasklet_setup(&per_cpu_ptr(&turns, cpu)->tasklet, has_turn);
	return 0;
}

/*
 * At least @least completions were generated in softirq, and at most @limit before one run of the
 * tasklet.
 */
static int turns_end(const char *what, u32 least, u32 limit)
{
	int cpu, in, passed;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&turns, cpu)->tasklet);
	kfree(octets);
	in = atomic_read(&in_softirq);
	passed = atomic_read(&most);
	pr_info("weft_kmod: %s: %d of %d in softirq before one turn, %u may be\n", what, passed, in,
		limit);
	if (in < least)
		return -ENODATA;
	return passed > limit ? -EBUSY : 0;
}

/* ---- many requests of one kind ---- */

struct lot {
	struct ib_cqe cqe;
	enum ib_wc_status status;	/* that of all */
	u64 ns;				/* what each takes */
	atomic_t left;
	bool wrong;
	struct completion done;
};

static void one_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lot *l = container_of(wc->wr_cqe, struct lot, cqe);
	u64 until = ktime_get_ns() + l->ns;

	if (in_task() && current == poster)
		atomic_inc(&by_poster);
	passes_by();
	while (l->ns && ktime_get_ns() < until)
		cpu_relax();
	if (wc->status != l->status)
		WRITE_ONCE(l->wrong, true);
	if (atomic_dec_and_test(&l->left))
		complete(&l->done);
}

static void lot_init(struct lot *l, enum ib_wc_status status, u32 n)
{
	memset(l, 0, sizeof(*l));
	l->cqe.done = one_done;
	l->status = status;
	atomic_set(&l->left, n);
	init_completion(&l->done);
}

static int lot_wait(struct lot *l)
{
	if (!wait_for_completion_timeout(&l->done, WAIT))
		return -ETIME;
	return READ_ONCE(l->wrong) ? -EIO : 0;
}

/* Nothing is sent until all are posted. */
static int post_sends(struct end *e, struct lot *l, enum ib_wr_opcode opcode, u32 len, u32 rkey,
		      u32 n)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)octets,
		.length = len,
		.lkey = e->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &l->cqe,
			.sg_list = &sge,
			.num_sge = len ? 1 : 0,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = (uintptr_t)octets,
		.rkey = rkey,
	};
	int rv = 0;

	local_bh_disable();
	while (n-- && !rv)
		rv = ib_post_send(e->qp, &wr.wr, NULL);
	local_bh_enable();
	return rv;
}

static int post_recvs(struct end *e, struct lot *l, u32 n)
{
	struct ib_recv_wr wr = { .wr_cqe = &l->cqe };
	int rv = 0;

	while (n-- && !rv)
		rv = ib_post_recv(e->qp, &wr, NULL);
	return rv;
}

/* No region has this key. */
#define NO_RKEY		0x12345601

/* Ends the connection of both: @e has no such region. */
static int post_bad_write(struct end *e, struct lot *l)
{
	lot_init(l, IB_WC_SUCCESS, 1);
	return post_sends(e, l, IB_WR_RDMA_WRITE, 1, NO_RKEY, 1);
}

/* ---- the deepest queues ---- */

/* The device's maximum. */
#define DEEP		16384
/* WEFT_FLUSH_PIECE (kernel/core/qp.h): completions of a queue per run. */
#define PIECE		256
/*
 * A connection's runs before one run of the tasklet: its bottom half's (ROUNDS_BH,
 * kernel/conn_run.c), one that begins to flush, and one that answers.
 */
#define RUNS		(4 + 2)
/* Writes that TCP takes although its peer reads none. */
#define BEHIND		4096

static struct lot lots[4];

/* Connections beside @p, whose handlers are called on this CPU, whichever it is. */
static int pairs_connect(struct pair *q, u32 n, const struct pair *p, u32 depth)
{
	u32 i;
	int rv = 0;

	for (i = 0; i < n && !rv; i++)
		rv = pair_connect_beside(&q[i], p, i, depth);
	return rv;
}

/*
 * Runs @story, with @n connections beside @p, which generates this many completions in softirq. If
 * a process owns a socket at that moment, as on a busy host, the process generates them itself.
 * They delay no tasklet, so the story is retried.
 */
static int watch(const struct pair *p, const char *what, int (*story)(struct pair *q), u32 n, u32 depth,
		 u32 least, u32 limit)
{
	struct pair *q = kcalloc(n, sizeof(*q), GFP_KERNEL);
	const unsigned long until = jiffies + WAIT;
	int rv = q ? turns_begin() : -ENOMEM, judged;
	u32 i;

	if (rv)
		goto out;
	migrate_disable();
	do {
		rv = pairs_connect(q, n, p, depth) ?: story(q);
		for (i = 0; i < n; i++)
			pair_close(&q[i]);
	} while (!rv && atomic_read(&in_softirq) < least && time_before(jiffies, until));
	migrate_enable();
	judged = turns_end(what, least, limit);
	rv = rv ?: judged;
out:
	kfree(q);
	return rv;
}

/* Completions of both ends, because of one Write to no region. */
static int flush_receives(struct pair *q)
{
	lot_init(&lots[0], IB_WC_WR_FLUSH_ERR, DEEP);
	lot_init(&lots[1], IB_WC_WR_FLUSH_ERR, DEEP);
	return post_recvs(&q->c, &lots[0], DEEP) ?: post_recvs(&q->s, &lots[1], DEEP) ?:
	       post_bad_write(&q->c, &lots[2]) ?: lot_wait(&lots[0]) ?: lot_wait(&lots[1]) ?:
	       lot_wait(&lots[2]);
}

int a_deep_flush_keeps_no_softirq_waiting(struct pair *p)
{
	return watch(p, "receives", flush_receives, 1, DEEP, PIECE, 2 * RUNS * PIECE);
}

/* Completions of one end. The Reads wait behind a Send for which the peer has no receive. */
static int flush_both(struct pair *q)
{
	lot_init(&lots[0], IB_WC_WR_FLUSH_ERR, DEEP);
	lot_init(&lots[1], IB_WC_SUCCESS, 1);
	lot_init(&lots[2], IB_WC_WR_FLUSH_ERR, DEEP - 1);
	return post_recvs(&q->c, &lots[0], DEEP) ?:
	       post_sends(&q->c, &lots[1], IB_WR_SEND, 0, 0, 1) ?:
	       post_sends(&q->c, &lots[2], IB_WR_RDMA_READ, 1, NO_RKEY, DEEP - 1) ?:
	       post_bad_write(&q->s, &lots[3]) ?: lot_wait(&lots[0]) ?: lot_wait(&lots[1]) ?:
	       lot_wait(&lots[2]) ?: lot_wait(&lots[3]);
}

int a_deep_flush_of_both_queues_keeps_no_softirq_waiting(struct pair *p)
{
	return watch(p, "both queues", flush_both, 1, DEEP, PIECE, 2 * RUNS * PIECE);
}

/* Waits until TCP has taken this many FPDUs since @before. */
static int wait_until_sent(struct ib_device *dev, u64 before, u32 n)
{
	const unsigned long until = jiffies + WAIT;
	u64 now;
	int rv;

	for (;;) {
		rv = device_counter(dev, "tx_fpdus", &now);
		if (rv || now - before >= n)
			return rv;
		if (time_after(jiffies, until))
			return -ETIME;
		msleep(1);
	}
}

/* Writes are sent, but after a Read that the peer answers only when it has a receive. */
static int complete_behind_read(struct pair *q)
{
	struct ib_device *dev = q->c.id->device;
	u64 before;
	int rv = device_counter(dev, "tx_fpdus", &before);

	lot_init(&lots[0], IB_WC_SUCCESS, 2 + BEHIND);
	lot_init(&lots[1], IB_WC_SUCCESS, 1);
	return rv ?: post_sends(&q->c, &lots[0], IB_WR_SEND, 0, 0, 1) ?:
	       post_sends(&q->c, &lots[0], IB_WR_RDMA_READ, 0, 0, 1) ?:
	       post_sends(&q->c, &lots[0], IB_WR_RDMA_WRITE, 0, 0, BEHIND) ?:
	       wait_until_sent(dev, before, 2 + BEHIND) ?: post_recvs(&q->s, &lots[1], 1) ?:
	       lot_wait(&lots[0]) ?: lot_wait(&lots[1]);
}

int a_deep_queue_that_completes_keeps_no_softirq_waiting(struct pair *p)
{
	return watch(p, "behind a Read", complete_behind_read, 1, DEEP, PIECE, RUNS * PIECE);
}

/* ---- a poster's own run ---- */

/* WEFT_SLICE_SHORT (kernel/core/send.h): octets of a run with softirqs off. */
#define SLICE		(64 * 1024)

static u32 all_rkey;

/* One chain, sent by the poster as far as that goes. */
static int post_chain(struct end *e, struct lot *l, u32 n)
{
	static struct ib_rdma_wr wr[DEPTH];
	static struct ib_sge sge;
	u32 i;

	sge = (struct ib_sge) { (uintptr_t)octets, OCTETS, e->pd->local_dma_lkey };
	for (i = 0; i < n; i++)
		wr[i] = (struct ib_rdma_wr) {
			.wr = {
				.next = i + 1 < n ? &wr[i + 1].wr : NULL,
				.wr_cqe = &l->cqe,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_RDMA_WRITE,
				.send_flags = IB_SEND_SIGNALED,
			},
			.remote_addr = (uintptr_t)octets,
			.rkey = all_rkey,
		};
	return ib_post_send(e->qp, &wr[0].wr, NULL);
}

static int write_all(struct pair *q)
{
	lot_init(&lots[0], IB_WC_SUCCESS, DEPTH);
	atomic_set(&by_poster, 0);
	return post_chain(&q->c, &lots[0], DEPTH) ?: lot_wait(&lots[0]);
}

/* Completions that ib_post_send() itself generates, with softirqs off: the rest is softirq's. */
int a_post_sends_a_short_run_itself(struct pair *p)
{
	int rv, most;

	all_rkey = p->s.pd->unsafe_global_rkey;
	poster = current;
	rv = watch(p, "behind a poster", write_all, 1, DEPTH, 1, 2 * DEPTH);
	poster = NULL;
	most = atomic_read(&by_poster);
	pr_info("weft_kmod: a poster sent %d requests, %d may be\n", most, SLICE / OCTETS + 1);
	return rv ?: most > SLICE / OCTETS + 1 ? -EBUSY : 0;
}

/* ---- many connections ---- */

#define CROWD		16
#define TAKES_NS	(NSEC_PER_MSEC / 16)
/*
 * The most that all connections may send before one run of the tasklet: WEFT_SOFTIRQ_FREE octets
 * without a clock and, as each OCTETS take TAKES_NS, 16 times OCTETS in SHARE_NS
 * (kernel/softirq.c). After either, one run may have begun, which sends SLICE octets. And part of a
 * request may have been sent before.
 */
#define CROWD_LIMIT	((128 * 1024 + SLICE) / OCTETS + 16 + SLICE / OCTETS + CROWD)

static int send_at_once(struct pair *q)
{
	int i, rv = 0;

	lot_init(&lots[0], IB_WC_SUCCESS, CROWD * DEPTH);
	lots[0].ns = TAKES_NS;
	local_bh_disable();
	for (i = 0; i < CROWD && !rv; i++)
		rv = post_sends(&q[i].c, &lots[0], IB_WR_RDMA_WRITE, OCTETS, all_rkey, DEPTH);
	local_bh_enable();
	return rv ?: lot_wait(&lots[0]);
}

int all_connections_have_one_share_of_softirq(struct pair *p)
{
	all_rkey = p->s.pd->unsafe_global_rkey;
	return watch(p, "a crowd", send_at_once, CROWD, DEPTH, CROWD * DEPTH / 2, CROWD_LIMIT);
}
