// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send side of a connection: batches of FPDUs, many in one call of TCP.
 *
 * TCP copies the batch into its own pages. So nobody outside weft ever refers to
 * a user's memory, and what TCP does not take waits in the batch's buffer: the
 * work requests behind it complete at once (weft_tx_sent()). With CRC or Markers
 * each FPDU is copied into the buffer and summed there while it is in the cache:
 * the user may change his memory meanwhile. Else payload goes to TCP from where
 * it lies, its region held until TCP's call is over, and the buffer has the rest.
 * The buffer is a connection's only while something is in it: a CPU keeps the one
 * it used last, warm, for whoever sends next. It keeps two, as the peer's Read
 * Response may be sent, in softirq, while TCP has a process's batch in hand.
 *
 * FPDUs do not cross TCP segments (RFC 5044 §5.1 asks for that): the batch
 * starts where the unsent tail of TCP's queue ends, FPDUs are cut to end on
 * the segment's boundary, and where what is left of a segment is no use, the
 * call ends there with MSG_EOR. TCP's segment size is read anew for each
 * batch. SACK blocks, a new path MTU or a small window break the alignment for
 * a while; nothing depends on it.
 */
#include <linux/mm.h>

#include "tcp.h"
#include "trace.h"

/* The smallest segments FPDUs are cut for: one of the 128-octet ULPDUs of RFC 5044 §4.5. */
#define SEG_MIN 144

/* What is shorter is copied in less time than it is referred to. */
#define REF_MIN 256

/* What a step of the run came to. */
enum step {
	STEP_ON,			/* go on */
	STEP_REST,			/* nothing to do, or no room, or broken */
};

/* ---- the batch's pages ---- */

/* What a CPU keeps: for processes, and for softirqs. */
#define LEVELS 2

static unsigned int level(void)
{
	return in_serving_softirq() ? 1 : 0;
}

struct kept {
	/* Of WEFT_TX_ORDER, or NULL. An exchange takes or gives: the CPU need not stay ours. */
	u8 *spare_buf[LEVELS];
};

static DEFINE_PER_CPU(struct kept, kept);

static u8 **spare_here(void)
{
	return &per_cpu_ptr(&kept, raw_smp_processor_id())->spare_buf[level()];
}

/* Behind the batch's octets is what is needed only while there is a batch. */
static void lay_out(struct weft_tx *tx, u32 order)
{
	tx->order = order;
	tx->size = (PAGE_SIZE << order) - sizeof(*tx->d);
	tx->d = (void *)(tx->buf + tx->size);
	tx->refs = NULL;
	if (order) {
		tx->size -= sizeof(*tx->refs);
		tx->refs = (void *)(tx->buf + tx->size);
	}
}

static bool get_buf(struct weft_tx *tx)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN | __GFP_COMP;
	u32 order = WEFT_TX_ORDER;

	if (tx->buf)
		return true;
	tx->buf = xchg(spare_here(), NULL);
	if (!tx->buf)
		tx->buf = (u8 *)__get_free_pages(gfp | __GFP_NORETRY | __GFP_NOMEMALLOC, order);
	if (!tx->buf) {
		order = 0;
		tx->buf = (u8 *)__get_free_pages(gfp, order);
	}
	if (tx->buf)
		lay_out(tx, order);
	return tx->buf;
}

static void put_buf(struct weft_tx *tx)
{
	u8 *old = tx->buf;

	if (old && tx->order == WEFT_TX_ORDER)
		old = xchg(spare_here(), old);
	if (old)
		free_pages((unsigned long)old, tx->order);
	tx->buf = NULL;
}

void weft_conn_tx_free(struct weft_conn *conn)
{
	put_buf(&conn->tx);
	conn->tx.off = conn->tx.end = conn->tx.used = 0;
}

static void free_kept(struct kept *k)
{
	int i;

	for (i = 0; i < LEVELS; i++) {
		if (k->spare_buf[i])
			free_pages((unsigned long)k->spare_buf[i], WEFT_TX_ORDER);
	}
	memset(k, 0, sizeof(*k));
}

void weft_conn_tx_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		free_kept(per_cpu_ptr(&kept, cpu));
}

bool weft_conn_tx_done(const struct weft_conn *conn)
{
	return conn->tx.broken || conn->tx.off == conn->tx.end;
}

/* ---- where segments end ---- */

static void begin_batch(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;

	tx->off = tx->end = tx->used = tx->span = 0;
	tx->fpdus = tx->segs = 0;
	tx->eor = false;
	weft_tcp_next_segment(conn->sk, SEG_MIN, &tx->mss, &tx->seg_off);
}

/* What is left of the segment is of no use: the next octet begins a new one. */
static void end_segment(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;

	if (tx->end)
		tx->eor = true;
	else
		weft_tcp_end_segment(conn->sk);
	tx->seg_off = 0;
}

/* The batch is full once another segment would not fit whole. */
static bool batch_full(const struct weft_tx *tx)
{
	u32 room = tx->size - WEFT_TX_SPARE - tx->end;

	return tx->end && room < min(tx->mss - tx->seg_off, tx->size / 4);
}

/* ---- what is referred to ---- */

/* The buffer's octets that iov does not list yet, up to @end. */
static void close_span(struct weft_tx *tx, u32 end)
{
	if (end == tx->span)
		return;
	tx->refs->iov[tx->niov++] = (struct kvec) {
		.iov_base = tx->buf + tx->span,
		.iov_len = end - tx->span,
	};
	tx->span = end;
}

/* The next @n octets of the FPDU in @e are those at @mem. False: no room to say so. */
static bool refer(struct weft_tx *tx, const struct weft_emit *e, const void *mem, u32 n)
{
	if (tx->niov + 3 > ARRAY_SIZE(tx->refs->iov))
		return false;
	close_span(tx, (u32)(e->out - tx->buf));
	tx->refs->iov[tx->niov++] = (struct kvec) { .iov_base = (void *)mem, .iov_len = n };
	return true;
}

/* Keeps @p's region, which is held, until TCP has its octets. */
static void keep_region(struct weft_tx *tx, struct weft_piece *p)
{
	/* One hold will do for a run of pieces. */
	if (tx->nheld && tx->refs->held[tx->nheld - 1] == p->region)
		return;
	tx->refs->held[tx->nheld++] = p->region;
	p->region = NULL;
}

/*
 * TCP has the first @taken octets of the batch, and the rest becomes ours alone, at its
 * place in the buffer: from the end on, so that nothing is written over what is to be moved.
 */
static void settle(struct weft_conn *conn, u32 taken)
{
	struct weft_tx *tx = &conn->tx;
	u32 pos = tx->end, i;

	for (i = tx->niov; i && pos > taken; i--) {
		const struct kvec *v = &tx->refs->iov[i - 1];

		pos -= (u32)v->iov_len;
		memmove(tx->buf + pos, v->iov_base, v->iov_len);
	}
	for (i = 0; i < tx->nheld; i++)
		weft_region_put(&conn->qp->core, tx->refs->held[i]);
	tx->niov = tx->nheld = 0;
	tx->used = tx->end;
}

/* ---- filling the batch ---- */

/* Returns how many of @p's octets are referred to, and not copied. */
static u32 emit_piece(struct weft_tx *tx, struct weft_emit *e, struct weft_piece *p)
{
	bool may = tx->refs && p->len >= REF_MIN && weft_emit_may_refer(e) &&
		   tx->nheld < ARRAY_SIZE(tx->refs->held);
	u64 addr = p->addr;
	u32 left = p->len, referred = 0, n;

	if (!p->region) {
		weft_emit_bytes(e, p->p, left);
		return 0;
	}
	for (; left; left -= n, addr += n) {
		const void *mem = weft_mr_piece(p->region, addr, left, &n);

		if (may && refer(tx, e, mem, n))
			referred += n;
		else
			weft_emit_bytes(e, mem, n);
	}
	if (referred)
		keep_region(tx, p);
	return referred;
}

/* Appends the FPDU in tx->d. */
static void emit(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;
	struct weft_txd *d = tx->d;
	u32 i, n, referred = 0;
	struct weft_emit e;

	weft_stream_tx_emit(&conn->st, &d->f, &e, tx->buf + tx->used);
	for (i = 0; i < d->npieces; i++)
		referred += emit_piece(tx, &e, &d->piece[i]);
	n = weft_emit_end(&e);
	weft_tx_put(&conn->qp->core, d);

	tx->used += n;
	n += referred;
	if (!tx->seg_off)
		tx->segs++;
	tx->fpdus++;
	tx->end += n;
	tx->seg_off = (tx->seg_off + n) % tx->mss;
}

/* Appends the next FPDU, if there is one and it fits. */
static enum weft_tx_result fill_one(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;
	u32 room = min(tx->mss - tx->seg_off, tx->size - WEFT_TX_SPARE - tx->end);
	u32 max = weft_stream_tx_max_ulpdu(&conn->st, room);
	bool whole = max < WEFT_MPA_ULPDU_MIN_MULPDU;
	enum weft_tx_result r;

	r = weft_tx_next(&conn->qp->core, max, whole, tx->d);
	if (r == WEFT_TX_FPDU)
		emit(conn);
	return r;
}

static void fill(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;

	begin_batch(conn);
	while (!batch_full(tx)) {
		switch (fill_one(conn)) {
		case WEFT_TX_FPDU:
			continue;
		case WEFT_TX_NO_FIT:
			end_segment(conn);
			if (tx->eor)
				return;
			continue;
		case WEFT_TX_FIN:
			tx->fin = true;
			return;
		case WEFT_TX_IDLE:
			return;
		}
	}
}

/* ---- handing over to TCP ---- */

/* Hands @len octets of @iov to TCP: how many it took, or -errno. */
static int send(struct weft_conn *conn, const struct kvec *iov, u32 niov, u32 len, int flags)
{
	int n;

	/* TCP may work through the socket's backlog midway. */
	conn->tx.sending = true;
	n = weft_tcp_send(conn->sk, iov, niov, len, flags);
	conn->tx.sending = false;
	return n;
}

static int send_batch(struct weft_conn *conn, int flags)
{
	struct weft_tx *tx = &conn->tx;
	struct kvec all = { .iov_base = tx->buf + tx->off, .iov_len = tx->end - tx->off };
	int n;

	if (!tx->niov)
		return send(conn, &all, 1, tx->end - tx->off, flags);
	close_span(tx, tx->used);
	n = send(conn, tx->refs->iov, tx->niov, tx->end, flags);
	settle(conn, max(n, 0));
	return n;
}

/*
 * TCP is full: write_space will come, if anything is on its way whose
 * acknowledgement makes room. If nothing is, TCP lacked memory: try again soon.
 */
static enum step wait_for_room(struct weft_conn *conn)
{
	struct sock *sk = conn->sk;

	conn->tx.full = true;
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	if (weft_tcp_is_drained(sk))
		weft_conn_post(conn, WEFT_CEV_RETRY);
	return STEP_REST;
}

/*
 * What is in the batch, or still in it. While the message goes on and this run
 * does too, what does not fill a large skb waits for the next call.
 */
static enum step push(struct weft_conn *conn, bool more)
{
	struct weft_tx *tx = &conn->tx;
	u32 len = tx->end - tx->off;
	int flags = tx->eor ? MSG_EOR : more ? MSG_MORE : 0;
	int n;

	if (!len)
		return STEP_ON;
	n = send_batch(conn, flags);
	weft_count(conn, WEFT_CNT_TX_CALLS, 1);
	if (n == -EAGAIN)
		return wait_for_room(conn);
	if (n < 0) {
		/* The state change that says why wakes the worker. */
		tx->broken = true;
		return STEP_REST;
	}
	tx->off += n;
	return tx->off == tx->end ? STEP_ON : wait_for_room(conn);
}

/* Segments as TCP counts them, retransmitted ones too, against those begun here. */
static void count_batch(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;
	u32 out = weft_tcp_segments_out(conn->sk);

	weft_count(conn, WEFT_CNT_TX_FPDUS, tx->fpdus);
	weft_count(conn, WEFT_CNT_TX_SEGS, out - tx->segs_out);
	weft_count(conn, WEFT_CNT_TX_SEGS_ALIGNED, tx->segs);
	tx->segs_out = out;
	trace_weft_tx(conn->qp->core.id, tx->fpdus, tx->end);
}

/*
 * Will the next batch of this run follow the one in hand? Only if TCP seems to have
 * room for it: what waits for the next call is sent by that. If TCP then refuses, for
 * want of memory, the acknowledgement of a whole segment sends it: so there is one.
 */
static bool goes_on(const struct weft_conn *conn)
{
	u32 len = conn->tx.end;

	return weft_tx_amid(&conn->qp->core) && len >= conn->tx.mss &&
	       conn->tx.run + len < WEFT_TX_SLICE && 2 * len < weft_tcp_room(conn->sk);
}

/* One batch of new FPDUs, to TCP. */
static enum step batch(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;
	enum step s;

	if (!weft_tcp_room(conn->sk))
		return wait_for_room(conn);
	if (!get_buf(tx)) {
		weft_conn_post(conn, WEFT_CEV_RETRY);
		return STEP_REST;
	}
	fill(conn);
	if (!tx->end)
		return STEP_REST;
	count_batch(conn);
	s = push(conn, goes_on(conn));
	weft_tx_sent(&conn->qp->core);
	return s;
}

/* All is said that is to be said: the worker closes. */
static void tell_done(struct weft_conn *conn)
{
	bool said = !conn->qp || conn->tx.fin || conn->qp->core.state == WEFT_QPS_ERROR;

	/* Once: the worker's own look runs through here. */
	if (!said || conn->tx.told || !weft_conn_tx_done(conn))
		return;
	conn->tx.told = true;
	weft_conn_post(conn, WEFT_CEV_WAKE);
}

static bool may_fill(const struct weft_conn *conn)
{
	return conn->qp && conn->rx_mode == WEFT_MODE_FULL && !conn->tx.broken;
}

static void count_requests(struct weft_conn *conn)
{
	u32 taken = conn->qp->core.sq.taken;

	weft_count(conn, WEFT_CNT_REQUESTS, taken - conn->tx.taken);
	conn->tx.taken = taken;
}

/* What came while TCP had the batch. */
static void read_rest(struct weft_conn *conn)
{
	if (!conn->tx.unread)
		return;
	conn->tx.unread = false;
	weft_conn_receive(conn);
}

void weft_conn_tx(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;
	enum step s;

	tx->full = false;
	tx->run = 0;
	weft_linger_judge(conn);
	if (conn->qp)
		weft_qpc_flush(&conn->qp->core);
	s = tx->broken ? STEP_REST : push(conn, false);
	while (s == STEP_ON && may_fill(conn) && tx->run < WEFT_TX_SLICE) {
		s = batch(conn);
		tx->run += tx->end;
	}
	if (s == STEP_ON && may_fill(conn))
		set_bit(WEFT_CF_PENDING, &conn->flags);
	if (tx->off == tx->end)
		put_buf(tx);
	if (conn->qp) {
		count_requests(conn);
		weft_region_end_run(&conn->qp->core);
	}
	tell_done(conn);
	read_rest(conn);
}

void weft_conn_tx_last_words(struct weft_conn *conn)
{
	struct weft_tx *tx = &conn->tx;

	if (!may_fill(conn) || !get_buf(tx))
		return;
	if (weft_conn_tx_done(conn))
		begin_batch(conn);
	/* WEFT_TX_SPARE was kept for this; a Terminate is all that a QP in TERM says. */
	if (weft_tx_next(&conn->qp->core, WEFT_MPA_ULPDU_MIN_MULPDU, true, tx->d) == WEFT_TX_FPDU)
		emit(conn);
	tx->eor = false;
	push(conn, false);
	read_rest(conn);
}

int weft_conn_send_frame(struct weft_conn *conn, const u8 *p, u32 len)
{
	struct kvec iov = { .iov_base = (void *)p, .iov_len = len };
	int n = send(conn, &iov, 1, len, 0);

	if (n == (int)len)
		return 0;
	return n < 0 ? n : -ENOBUFS;
}
