// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/percpu.h>
#include <linux/sched.h>
/* The next needs what the last declares. */
#include <linux/local_lock.h>
#include <net/tcp.h>

#include "compat/net.h"
#include "tcp.h"

/* Page fragments that the octets of one call may come to lie in, at most. */
#define CALL_FRAGS 6

/* ---- where segments end ---- */

/*
 * TCP appends to the last skb not yet sent if that has room, and cuts skbs into
 * segments from their start; else a segment begins.
 */
void weft_tcp_next_segment(struct sock *sk, u32 smallest, u32 *mss, u32 *off)
{
	struct sk_buff *tail = tcp_write_queue_tail(sk);

	/*
	 * Else TCP would run out of fragments midway, and begin a new skb where we do not expect
	 * it.
	 */
	if (tail && skb_shinfo(tail)->nr_frags > MAX_SKB_FRAGS - CALL_FRAGS)
		tcp_mark_tail_eor(sk);
	*mss = max_t(u32, tcp_current_mss(sk), smallest);
	*off = tail && tcp_skb_can_collapse_to(tail) ? tail->len % *mss : 0;
}

/* ---- handing over ---- */

u32 weft_tcp_room(const struct sock *sk)
{
	int room = READ_ONCE(sk->sk_sndbuf) - sk->sk_wmem_queued;

	/* The heads of its skbs count, too: some 1300 octets for each 64 KB. */
	return sk_stream_memory_free(sk) ? max(room - room / 16, 1) : 0;
}

bool weft_tcp_is_drained(const struct sock *sk)
{
	return tcp_rtx_and_write_queues_empty(sk);
}

/*
 * One fragment for processes and one for softirqs: a Read Response may be sent, in
 * softirq, while TCP has a process's octets in hand.
 */
#define LEVELS 2

struct frags {
	local_lock_t lock;		/* inside of bh, which is no lock where softirqs are
					 * threads */
	struct page_frag level[LEVELS];
};

static DEFINE_PER_CPU(struct frags, frags) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

static struct page_frag *lock_frag(void)
{
	local_bh_disable();
	local_lock(&frags.lock);
	return &this_cpu_ptr(&frags)->level[in_serving_softirq() ? 1 : 0];
}

static void unlock_frag(void)
{
	local_unlock(&frags.lock);
	local_bh_enable();
}

static void lend_frag(struct sock *sk)
{
	sk_give_page_frag(sk, lock_frag());
	unlock_frag();
}

static void take_frag_back(struct sock *sk)
{
	struct page_frag *own = lock_frag(), old;

	sk_take_page_frag(sk, &old);
	/*
	 * Memory from the reserve must not go to the next sender: a peer of another socket would
	 * drop it.
	 */
	if (!old.page || !page_is_pfmemalloc(old.page))
		swap(*own, old);
	unlock_frag();
	if (old.page)
		put_page(old.page);
}

bool weft_tcp_has_memory(struct sock *sk)
{
	bool has;

	/* Where bottom halves are off, TCP charges memory cgroups without reclaim. */
	local_bh_disable();
	has = sk_wmem_schedule(sk, PAGE_SIZE);
	local_bh_enable();
	return has;
}

int weft_tcp_send(struct sock *sk, const struct kvec *iov, u32 niov, u32 len, int flags)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | flags };
	int n;

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, iov, niov, len);
	lend_frag(sk);
	n = tcp_sendmsg_locked(sk, &msg, len);
	take_frag_back(sk);
	return n;
}

void weft_tcp_exit(void)
{
	struct frags *f;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		f = per_cpu_ptr(&frags, cpu);
		for (i = 0; i < LEVELS; i++)
			if (f->level[i].page)
				put_page(f->level[i].page);
		memset(f->level, 0, sizeof(f->level));
	}
}

/* ---- what became of it ---- */

struct weft_tcp_signs weft_tcp_signs(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* A segment that only carries data, in order, leaves rcv_tstamp as it is. */
	return (struct weft_tcp_signs){
		.acked = tp->bytes_acked,
		.idle_ms = jiffies_to_msecs(min(tcp_jiffies32 - tp->rcv_tstamp,
						tcp_jiffies32 - icsk->icsk_ack.lrcvtime)),
		.unanswered = max(icsk->icsk_retransmits, icsk->icsk_probes_out),
	};
}

u32 weft_tcp_segments_out(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->data_segs_out);
}

/* ---- receiving ---- */

bool weft_tcp_has_urgent_data(const struct sock *sk)
{
	return tcp_sk(sk)->urg_data;
}
