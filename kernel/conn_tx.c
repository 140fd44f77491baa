// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sending to TCP, and the memory of batches.
 *
 * A connection has memory for a batch only while the batch holds octets. Each CPU caches the
 * memory that it used last, which is warm, for the next sender. It caches two: a peer's Read
 * Response may be sent in softirq while TCP has a process's batch in hand.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sizes.h>

#include "compat/net.h"
#include "tcp.h"
#include "trace.h"

/* A batch is assembled in so many octets if they are available; else in a page. */
#define BATCH_SIZE ALIGN(SZ_128K, PAGE_SIZE)
#define BATCH_ORDER get_order(BATCH_SIZE)
static_assert(BATCH_SIZE >= WEFT_BATCH_REFER_FROM && PAGE_SIZE >= WEFT_BATCH_MEM_MIN);

/* ---- the memory of batches ---- */

/* One for processes, one for softirqs. */
#define LEVELS 2

struct kept {
	/*
	 * BATCH_SIZE octets, or NULL. xchg() takes or returns them, so the task may migrate
	 * meanwhile.
	 */
	void *mem[LEVELS];
};

static DEFINE_PER_CPU(struct kept, kept);

static void **kept_here(void)
{
	return &per_cpu_ptr(&kept, raw_smp_processor_id())->mem[in_serving_softirq() ? 1 : 0];
}

void *weft_conn_lend_batch(struct weft_conn *conn, u32 *size)
{
	const gfp_t gfp = conn->sk->sk_allocation | __GFP_NOWARN | __GFP_COMP;
	void *mem = xchg(kept_here(), NULL);

	*size = BATCH_SIZE;
	if (!mem)
		mem = (void *)__get_free_pages(gfp | __GFP_NORETRY | __GFP_NOMEMALLOC, BATCH_ORDER);
	if (mem)
		return mem;
	*size = PAGE_SIZE;
	mem = (void *)__get_free_pages(gfp, 0);
	if (!mem)
		weft_conn_try_again(conn);
	return mem;
}

/* As many whole pages as needed. */
void *weft_conn_lend_rest(struct weft_conn *conn, u32 *size)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN | __GFP_NORETRY |
			  __GFP_NOMEMALLOC;
	struct mem_cgroup *before = weft_conn_pays(conn);
	void *mem;

	*size = PAGE_ALIGN(*size);
	mem = alloc_pages_exact(*size, gfp);
	weft_conn_paid(before);
	return mem;
}

void weft_conn_reclaim_batch(void *mem, u32 size)
{
	if (size == BATCH_SIZE)
		mem = xchg(kept_here(), mem);
	if (!mem)
		return;
	if (size == BATCH_SIZE)
		free_pages((unsigned long)mem, BATCH_ORDER);
	else
		free_pages_exact(mem, size);
}

void weft_conn_tx_exit(void)
{
	struct kept *k;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		k = per_cpu_ptr(&kept, cpu);
		for (i = 0; i < LEVELS; i++)
			if (k->mem[i])
				free_pages((unsigned long)k->mem[i], BATCH_ORDER);
		memset(k, 0, sizeof(*k));
	}
}

/* ---- handing over ---- */

/* TCP's count of segments, retransmissions included, to compare with those begun here. */
static void count_batch(struct weft_conn *conn, u32 len)
{
	const struct weft_batch *b = &conn->link.batch;
	struct weft_conn_seen *seen = &conn->seen;
	u32 out = weft_tcp_segments_out(conn->sk), fpdus = b->fpdus - seen->fpdus;

	weft_count(conn, WEFT_CNT_TX_CALLS, 1);
	weft_count(conn, WEFT_CNT_TX_FPDUS, fpdus);
	weft_count(conn, WEFT_CNT_TX_SEGS, out - seen->segs_out);
	weft_count(conn, WEFT_CNT_TX_SEGS_ALIGNED, b->segs - seen->segs);
	seen->fpdus = b->fpdus;
	seen->segs = b->segs;
	seen->segs_out = out;
	if (conn->link.qp && fpdus)
		trace_weft_tx(conn->link.qp->id, fpdus, len);
}

static_assert(sizeof(struct weft_iov) == sizeof(struct kvec) &&
	      offsetof(struct weft_iov, base) == offsetof(struct kvec, iov_base) &&
	      offsetof(struct weft_iov, len) == offsetof(struct kvec, iov_len));

s32 weft_conn_send(struct weft_conn *conn, const struct weft_iov *iov, u32 niov, u32 len,
		   u32 flags)
{
	int how = flags & WEFT_SEND_EOR ? MSG_EOR : flags & WEFT_SEND_MORE ? MSG_MORE : 0;
	int n;

	if (flags & WEFT_SEND_FRESH)
		tcp_mark_tail_eor(conn->sk);
	/* Start-up frames do not belong to a batch. */
	if (conn->link.mode != WEFT_MODE_STARTUP)
		count_batch(conn, len);
	conn->full = false;
	/* TCP may work through the socket's backlog midway. */
	conn->sending = true;
	n = weft_tcp_send(conn->sk, (const struct kvec *)iov, niov, len, how);
	conn->sending = false;
	/* After an error the state change that reports it wakes the worker. */
	return n == -EAGAIN ? 0 : n;
}
