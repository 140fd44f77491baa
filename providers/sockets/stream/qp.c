// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A stream in Full Operation: octets to Sends, and Sends to octets. */
#include <stdlib.h>

#include "process/guard.h"
#include "process/options.h"
#include "conn.h"

/* All that the process has: STag 0, which no peer can name, without any remote right. */
static struct rl_mr memory = {
	.region = {
		.kind = WEFT_REGION_DMA,
		.access = WEFT_ACCESS_LOCAL_WRITE,
		.len = ~0ull,
		.valid = true,
	},
};

/* The peer hears of credit once it is so much of the window. */
#define CREDIT_PART 4

/* ---- credit for the peer ---- */

static u32 limit_now(const struct rl_stream *s)
{
	return s->peers.sent + min_t(u32, s->peers.window, rl_octets_room(&s->in));
}

static bool credit_is_due(const struct rl_stream *s)
{
	return !s->closed && !s->peer_fin &&
	       limit_now(s) - s->peers.limit >= s->peers.window / CREDIT_PART;
}

/* The peer's limit is what it has counted, and at most its window. */
bool rl_stream_peer_is_quiet(const struct rl_stream *s)
{
	return s->own.sent + s->own.window - s->own.limit < s->own.window / CREDIT_PART;
}

/* ---- receiving ---- */

/* Octets of the Send that is coming, or has just come, that are placed. */
static u32 placed(const struct rl_stream *s)
{
	u32 got = s->qp.core.recv_got;

	return got > RL_STREAM_HEAD_LEN ? got - RL_STREAM_HEAD_LEN : 0;
}

/*
 * Octets arrived after close(): TCP would reset the connection at once. Here what was sent keeps
 * the close time-out, and no more.
 */
static void came_too_late(struct rl_stream *s)
{
	if (s->unheard)
		return;
	s->unheard = true;
	weft_link_set_deadline(&s->conn->link, rl_now_ms(), rl_options()->close_ms);
}

/* Counts them: the program's first, then the queue's. */
static void count_placed(struct rl_stream *s)
{
	u32 n = placed(s) - s->seen, direct = min_t(u32, n, s->wanted);

	s->seen += n;
	s->peers.sent += n;
	s->wanted -= direct;
	if (!s->closed) {
		rl_octets_add(&s->in, n - direct);
		if (unlikely(rl_octets_is_fat(&s->in)))
			s->fat = true;
	}
	if (s->closed && n)
		came_too_late(s);
}

void rl_stream_count(struct rl_stream *s)
{
	if (!s->ops && s->qp.core.recv_active)
		count_placed(s);
}

static u32 stream_qp_add_sge(struct weft_sge *sge, u32 n, const void *p, u32 len, u32 *left)
{
	len = min_t(u32, len, *left);
	if (!len)
		return n;
	sge[n] = (struct weft_sge){ .addr = (uintptr_t)p, .length = len };
	*left -= len;
	return n + 1;
}

/* What of the program's memory is still to be filled. */
static u32 add_wanted(const struct rl_stream *s, struct weft_sge *sge, u32 n, u32 *left)
{
	u32 skip = s->all_wanted - s->wanted, i;

	for (i = 0; i < s->nwant; i++) {
		const struct weft_sge *w = &s->want[i];
		u32 over = min_t(u32, skip, w->length);

		skip -= over;
		n = stream_qp_add_sge(sge, n, (const u8 *)(uintptr_t)w->addr + over,
					  w->length - over, left);
	}
	return n;
}

/*
 * Where the Send goes of which @got octets are there; with no more room than the peer has credit.
 */
static u32 aim(const struct rl_stream *s, u32 got, struct weft_sge *sge)
{
	u32 left = RL_STREAM_HEAD_LEN, credit = rl_stream_credit(&s->peers), n = 0;
	struct iovec iov[2];

	if (got < RL_STREAM_HEAD_LEN)
		n = stream_qp_add_sge(sge, n, s->head + got, RL_STREAM_HEAD_LEN - got, &left);
	n = add_wanted(s, sge, n, &credit);
	rl_octets_places(&s->in, min_t(u32, credit, rl_octets_room(&s->in)), iov);
	n = stream_qp_add_sge(sge, n, iov[0].iov_base, iov[0].iov_len, &credit);
	return stream_qp_add_sge(sge, n, iov[1].iov_base, iov[1].iov_len, &credit);
}

int rl_stream_pop(struct rl_stream *s, struct weft_recv *recv)
{
	if (s->wrong)
		return -1;
	s->seen = 0;
	recv->wr_id = 0;
	recv->num_sge = aim(s, 0, recv->sge);
	return 1;
}

/* The program waits for octets there. Room is left for what else a receive has: four places. */
static void want(struct rl_stream *s, const struct iovec *iov, int n)
{
	u32 left = RL_STREAM_WINDOW_MAX;
	int i;

	s->nwant = 0;
	for (i = 0; i < n && s->nwant < WEFT_MAX_SGE - 4; i++)
		s->nwant = stream_qp_add_sge(s->want, s->nwant, iov[i].iov_base,
				   min_t(size_t, iov[i].iov_len, RL_STREAM_WINDOW_MAX), &left);
	s->all_wanted = s->wanted = RL_STREAM_WINDOW_MAX - left;
}

/*
 * The Send that is coming is counted so far, and goes on where the @n places of @iov are, and then
 * the queue's.
 */
static u32 divert(struct rl_stream *s, const struct iovec *iov, int n)
{
	struct weft_qpc *qp = &s->qp.core;
	struct weft_sge sge[WEFT_MAX_SGE];
	u32 filled = 0;

	rl_stream_count(s);
	filled = s->all_wanted - s->wanted;
	/* What is in the queue comes first. */
	want(s, iov, s->in.len ? 0 : n);
	if (qp->recv_active)
		rl_ulp_divert(&s->qp, sge, aim(s, qp->recv_got, sge));
	return filled;
}

void rl_stream_trim(struct rl_stream *s)
{
	if (!s->fat || !s->trim_at || rl_now_ms() < s->trim_at)
		return;
	s->trim_at = 0;
	rl_stream_count(s);
	if (s->peers.sent != s->trim_seen || s->in.len != s->trim_len)
		return;
	rl_octets_trim(&s->in);
	s->fat = false;
}

void rl_stream_drop(struct rl_stream *s, u32 n)
{
	/* One that was trimmed has the pages that it kept for these octets. */
	if (unlikely(rl_octets_is_fat(&s->in)))
		s->fat = true;
	rl_octets_drop(&s->in, n);
	/* The queue may begin elsewhere now, and anybody may receive the rest of a Send. */
	if (s->qp.core.recv_active)
		divert(s, NULL, 0);
}

static bool stream_qp_judge(struct rl_stream *s, u32 len)
{
	struct rl_stream_head h;

	if (len < RL_STREAM_HEAD_LEN || !rl_stream_read_head(s->head, &h) ||
	    (s->peer_fin && (len > RL_STREAM_HEAD_LEN || h.fin)))
		return false;
	s->peer_fin |= h.fin;
	return rl_stream_take_limit(&s->own, h.limit);
}

void rl_stream_complete(struct rl_stream *s, const struct weft_cqe *cqe)
{
	/* What is no Send has no octets; there is none without RFC 7306. */
	if (cqe->opcode == WEFT_WCO_RECV)
		count_placed(s);
	if (cqe->status != WEFT_WC_SUCCESS)
		s->torn = true;
	else if (cqe->opcode != WEFT_WCO_RECV || !stream_qp_judge(s, cqe->byte_len))
		s->wrong = true;
}

size_t rl_stream_take_in(struct rl_stream *s, const struct iovec *iov, int n)
{
	u32 filled;

	if (s->over)
		return 0;
	if (s->ops) {
		s->options.operations->move(s);
		return 0;
	}
	divert(s, iov, n);
	rl_conn_receive(s->conn);
	filled = divert(s, NULL, 0);
	if (s->wrong)
		rl_ulp_end(&s->qp, false);
	rl_stream_push(s);
	return filled;
}

/* ---- sending ---- */

static struct weft_ring *ring(const struct rl_stream *s)
{
	return (struct weft_ring *)s->ring;
}

bool rl_stream_is_idle(const struct rl_stream *s)
{
	const struct weft_link *l = &s->conn->link;

	if (s->ops)
		return s->options.operations->is_quiet(s);
	return l->qp && weft_stream_may_send(&l->st) && weft_send_is_done(l) &&
	       ring(s)->kern_idx == ring(s)->user_idx;
}

/* A request of @w's slots. There is room. */
static void stream_qp_post(struct rl_stream *s, const struct weft_sq_wqe *w)
{
	struct weft_ring *r = ring(s);
	const u8 *from = (const u8 *)w;
	u32 i;

	for (i = 0; i < w->nslots; i++)
		memcpy(s->ring + WEFT_RING_DATA +
		       ((r->user_idx + i) & (RL_STREAM_SLOTS - 1)) * WEFT_SLOT_SIZE,
		       from + i * WEFT_SLOT_SIZE, WEFT_SLOT_SIZE);
	smp_store_release(&r->user_idx, r->user_idx + w->nslots);
}

union entry {
	struct weft_sq_wqe w;
	u8 octets[WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE];
};

static void begin_entry(union entry *e)
{
	memset(&e->w, 0, sizeof(e->w));
	e->w.opcode = WEFT_WR_SEND;
	e->w.num_sge = 1;
}

static struct weft_sge *sges(union entry *e)
{
	return (struct weft_sge *)e->w.data;
}

/* The head of the Send that is to go out next. */
static void write_head(struct rl_stream *s, u8 *to, bool fin)
{
	struct rl_stream_head h = { .limit = limit_now(s), .fin = fin };

	s->peers.limit = h.limit;
	rl_stream_write_head(to, &h);
}

static void post_head(struct rl_stream *s, bool fin)
{
	union entry e;

	begin_entry(&e);
	e.w.flags = WEFT_WR_INLINE;
	sges(&e)->length = RL_STREAM_HEAD_LEN;
	write_head(s, (u8 *)(sges(&e) + 1), fin);
	e.w.nslots = weft_sq_wqe_slots(1, RL_STREAM_HEAD_LEN);
	stream_qp_post(s, &e.w);
}

/* The program's memory goes back to it. */
static void stream_qp_keep_rest(struct rl_stream *s, u32 room)
{
	struct weft_qpc *qp = &s->qp.core;

	if (qp->state != WEFT_QPS_RTS || qp->sq.next == ring(s)->user_idx)
		return;
	/* What was kept before has gone: the stream was idle. */
	free(s->kept);
	s->kept = malloc(room);
	if (s->kept && rl_ulp_keep(&s->qp, s->kept, room))
		return;
	rl_conn_break_off(s->conn);
}

static void stream_qp_run(struct rl_stream *s)
{
	rl_conn_tx(s->conn);
	if (!s->kept || !rl_stream_is_idle(s))
		return;
	free(s->kept);
	s->kept = NULL;
}

/* ---- what was sent before the stream was open ---- */

bool rl_stream_is_early(const struct rl_stream *s)
{
	if (s->ops || s->over || !s->conn || s->closed)
		return false;
	if (s->phase == RL_STREAM_STARTING)
		return s->role == RL_STREAM_INITIATOR;
	return s->phase == RL_STREAM_OPEN && s->conn->link.qp &&
		!weft_stream_may_send(&s->conn->link.st);
}

bool rl_stream_has_early_room(struct rl_stream *s)
{
	return rl_early_room(&s->early, s->conn->fd, 1);
}

static void post_early(struct rl_stream *s)
{
	struct rl_early *y = &s->early;
	u32 len = min_t(u32, rl_stream_credit(&s->own), RL_STREAM_MESSAGE), n;
	u32 left = RL_STREAM_HEAD_LEN;
	union entry e;

	len = min_t(u32, len, y->len);
	if (!len)
		return;
	begin_entry(&e);
	n = stream_qp_add_sge(sges(&e), 0, s->own_head, RL_STREAM_HEAD_LEN, &left);
	left = len;
	n = stream_qp_add_sge(sges(&e), n, y->mem + y->from, len, &left);
	e.w.num_sge = n;
	e.w.nslots = weft_sq_wqe_slots(n, 0);
	write_head(s, s->own_head, false);
	s->own.sent += len;
	y->from += len;
	y->len -= len;
	stream_qp_post(s, &e.w);
}

/* The last words of one that is closed, and then FIN. */
static void post_end(struct rl_stream *s)
{
	if (!s->fin_said)
		post_head(s, true);
	s->fin_said = s->finished = true;
	rl_ulp_end(&s->qp, true);
	s->conn->step_due = true;
}

/* True: what waited is sent, or posted. */
static bool pay_early(struct rl_stream *s)
{
	while (s->early.len && rl_stream_is_idle(s) && rl_stream_credit(&s->own)) {
		post_early(s);
		stream_qp_run(s);
	}
	if (s->early.len || !rl_stream_is_idle(s))
		return false;
	rl_early_free(&s->early);
	return true;
}

static void pay_debt(struct rl_stream *s)
{
	if (!pay_early(s))
		return;
	if (s->closed && !s->finished)
		post_end(s);
	s->debt = s->fin_due && !s->fin_said;
}

void rl_stream_push(struct rl_stream *s)
{
	if (s->phase != RL_STREAM_OPEN || s->over || !s->conn->link.qp)
		return;
	if (!rl_stream_is_idle(s))
		stream_qp_run(s);
	if (s->ops)
		return;
	if (!rl_stream_is_idle(s))
		return;
	if (unlikely(s->debt))
		pay_debt(s);
	if (s->fin_due && !s->fin_said && !s->early.len) {
		s->fin_said = true;
		s->debt = false;
		post_head(s, true);
	} else if (credit_is_due(s) && rl_stream_is_idle(s)) {
		post_head(s, false);
	} else {
		return;
	}
	stream_qp_run(s);
}

void rl_stream_pay(struct rl_stream *s)
{
	bool waits;

	rl_stream_push(s);
	if (s->awaits_open && (s->phase != RL_STREAM_STARTING || s->over)) {
		s->awaits_open = false;
		if (s->conn->linger_until == s->open_by)
			s->conn->linger_until = 0;
	}
	waits = (s->debt || (s->awaits_open && rl_now_ms() >= s->open_by)) && !s->over;
	if (waits && !s->debt_watched)
		rl_conn_watch(s->conn);
	/* The progress thread sees to those that are closed, or have ended, anyhow. */
	else if (!waits && s->debt_watched && !s->closed && !s->over)
		rl_ulp_unwatch(s->conn);
	s->debt_watched = waits;
	s->debt &= waits;
}

/* ---- a message ---- */

/* Copies @len octets of @iov from octet @skip on. */
static bool stream_qp_gather(u8 *to, const struct iovec *iov, size_t skip, u32 len)
{
	for (; len; iov++) {
		u32 n;

		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		n = min_t(size_t, len, iov->iov_len - skip);
		if (!rl_guard_copy(to, (const u8 *)iov->iov_base + skip, n))
			return false;
		to += n;
		len -= n;
		skip = 0;
	}
	return true;
}

static bool stream_qp_fill_inline(struct rl_stream *s, union entry *e, const struct iovec *iov,
				  size_t skip,
			u32 len)
{
	u8 *to = (u8 *)(sges(e) + 1);

	if (!stream_qp_gather(to + RL_STREAM_HEAD_LEN, iov, skip, len))
		return false;
	e->w.flags = WEFT_WR_INLINE;
	sges(e)->length = RL_STREAM_HEAD_LEN + len;
	e->w.nslots = weft_sq_wqe_slots(1, RL_STREAM_HEAD_LEN + len);
	write_head(s, to, false);
	return true;
}

/* Refers to up to @max octets: how many; 0: they are not there. */
static u32 stream_qp_fill_sges(struct rl_stream *s, union entry *e, const struct iovec *iov, int n,
			       size_t skip,
		     u32 max)
{
	u32 left = RL_STREAM_HEAD_LEN,
		nsge = stream_qp_add_sge(sges(e), 0, s->own_head, RL_STREAM_HEAD_LEN, &left);
	int i;

	left = max;
	for (i = 0; i < n && nsge < WEFT_MAX_SGE; i++) {
		size_t over = min_t(size_t, skip, iov[i].iov_len);
		u32 len = min_t(size_t, iov[i].iov_len - over, left);
		const u8 *p = (const u8 *)iov[i].iov_base + over;

		skip -= over;
		if (len && !rl_guard_readable(p, len))
			break;
		nsge = stream_qp_add_sge(sges(e), nsge, p, len, &left);
	}
	if (left == max)
		return 0;
	e->w.num_sge = nsge;
	e->w.nslots = weft_sq_wqe_slots(nsge, 0);
	write_head(s, s->own_head, false);
	return max - left;
}

ssize_t rl_stream_say(struct rl_stream *s, const struct iovec *iov, int n, size_t skip, size_t max)
{
	u32 len = min_t(size_t, max, rl_stream_credit(&s->own));
	union entry e;

	if (!len || !rl_stream_is_idle(s))
		return 0;
	len = min_t(u32, len, RL_STREAM_MESSAGE);
	begin_entry(&e);
	if (RL_STREAM_HEAD_LEN + len <= WEFT_MAX_INLINE) {
		if (!stream_qp_fill_inline(s, &e, iov, skip, len))
			return -EFAULT;
	} else {
		len = stream_qp_fill_sges(s, &e, iov, n, skip, len);
		if (!len)
			return -EFAULT;
	}
	s->own.sent += len;
	stream_qp_post(s, &e.w);
	stream_qp_run(s);
	stream_qp_keep_rest(s, RL_STREAM_HEAD_LEN + len);
	return len;
}

ssize_t rl_stream_say_early(struct rl_stream *s, const struct iovec *iov, size_t max)
{
	u32 len = rl_early_room(&s->early, s->conn->fd, max);
	u8 *to;

	if (!len)
		return -EAGAIN;
	to = rl_early_place(&s->early, len);
	if (!to)
		return -ENOMEM;
	if (!stream_qp_gather(to, iov, 0, len))
		return -EFAULT;
	s->early.len += len;
	s->debt = true;
	return len;
}

void rl_stream_finish(struct rl_stream *s)
{
	if (s->ops) {
		s->options.operations->finish(s);
		return;
	}
	s->closed = true;
	if (s->over || !s->conn || (s->phase != RL_STREAM_OPEN && !s->early.len))
		return;
	if (s->phase == RL_STREAM_OPEN && !s->conn->link.qp)
		return;
	divert(s, NULL, 0);
	rl_octets_drop(&s->in, s->in.len);
	if (s->fat)
		rl_octets_trim(&s->in);
	s->fat = false;
	if (s->early.len)
		s->debt = true;
	else
		post_end(s);
}

/* ---- what the core completes ---- */

static struct rl_stream *stream_of(struct rl_qp *qp)
{
	return container_of(qp, struct rl_stream, qp);
}

static int pop_of_qp(struct rl_qp *qp, bool wait, struct weft_recv *recv)
{
	return rl_stream_pop(stream_of(qp), recv);
}

static void complete_of_qp(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe)
{
	struct rl_stream *s = stream_of(qp);

	if (s->ops)
		s->options.operations->complete(s, recv, cqe);
	else if (recv)
		rl_stream_complete(s, cqe);
}

/* The socket's error tells. */
static void ignore_fault(struct rl_qp *qp, u32 type)
{
}

static const struct rl_consumer consumer = {
	.pop = pop_of_qp,
	.complete = complete_of_qp,
	.fault = ignore_fault,
};

/* ---- life ---- */

void rl_stream_init_qp(struct rl_stream *s)
{
	struct weft_qpc *qp = &s->qp.core;

	s->qp.refs = 1;
	s->qp.consumer = &consumer;
	qp->dma = &memory.region;
	qp->srq = true;
	qp->sq.copy = s->copy;
	qp->sq.info = s->info;
	qp->sq.max_slots = WEFT_SQ_MAX_SLOTS;
	weft_ringq_init(&qp->sq.q, s->ring, RL_STREAM_SLOTS);
	rl_ulp_init_qp(&s->qp);
	qp->in_order = true;
}

void rl_stream_open(struct rl_stream *s, const struct rl_stream_terms *peers)
{
	s->own.window = s->own.limit = peers->window;
	s->phase = RL_STREAM_OPEN;
	if (s->ops) {
		s->options.operations->open(s);
		return;
	}
	/* A responder may send once it has heard something (RFC 5044, 7.1.2). */
	if (!s->conn->link.st.initiator)
		return;
	post_head(s, false);
	post_early(s);
	s->conn->tx_due = true;
}
