// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posted operations: the QP's queues, what comes of them, and the end. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "process/guard.h"
#include "ops.h"
#include "process/raw.h"

#define DEPTH	128
/* Octets that are copied as they are posted: they take the slots that WEFT_POST_IOV places take. */
#define INLINE	256
/* Beside those of uverbs/cmd_pd.c, which count from 1. */
#define OWN_PDS	0x80000000u
/* So many looks for events within so many ms are busy. */
#define LOOKS	64
#define BUSY_MS	2

static void ops_move(struct rl_stream *s);

/* ---- the event descriptor ---- */

static int hidden(long fd)
{
	return fd < 0 ? (int)fd : rl_fd_hide((int)fd);
}

static int new_eventfd(unsigned int count)
{
	return hidden(rl_raw(SYS_eventfd2, count, EFD_CLOEXEC | EFD_NONBLOCK));
}

static int add_to_epoll(const struct rl_ops *o, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return (int)rl_raw(SYS_epoll_ctl, o->epfd, EPOLL_CTL_ADD, fd, &ev);
}

static void close_eventfd(struct rl_ops *o)
{
	if (o->eventfd >= 0)
		rl_fd_close_hidden(o->eventfd);
	if (o->epfd >= 0)
		rl_fd_close_hidden(o->epfd);
	o->eventfd = o->epfd = -1;
}

/*
 * The program gets the epoll: of the eventfd itself it could read the count away, and set the
 * flags.
 */
static int make_eventfd(struct rl_ops *o)
{
	int rv;

	o->eventfd = new_eventfd(o->nevents != 0);
	o->epfd = o->eventfd < 0 ? o->eventfd : hidden(rl_raw(SYS_epoll_create1, EPOLL_CLOEXEC));
	rv = o->epfd < 0 ? o->epfd : add_to_epoll(o, o->eventfd);
	if (rv)
		close_eventfd(o);
	return rv;
}

static void set_event(const struct rl_ops *o)
{
	u64 one = 1;

	if (o->eventfd >= 0)
		rl_raw(SYS_write, o->eventfd, &one, sizeof(one));
}

/*
 * An eventfd that stays readable, one for all streams that have ended. A child, which may have
 * closed its parent's, has its own. -1: there is none.
 */
static int ended_eventfd(void)
{
	static u64 own;			/* atomic: forks, and the descriptor plus one */
	u64 forks = (u64)rl_fd_forks() << 32, is = __atomic_load_n(&own, __ATOMIC_ACQUIRE);
	int mine;

	if ((u32)is && is >> 32 == forks >> 32)
		return (int)(u32)is - 1;
	mine = new_eventfd(1);
	if (mine < 0 ||
	    __atomic_compare_exchange_n(&own, &is, forks | (u32)(mine + 1), false, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE))
		return mine;
	rl_fd_close_hidden(mine);
	return (int)(u32)is - 1;
}

/* The eventfd is closed with the socket; the program's numbers of the epoll may stay open. */
static void set_ended(const struct rl_ops *o)
{
	int fd = o->epfd < 0 ? -1 : ended_eventfd();

	if (fd >= 0)
		add_to_epoll(o, fd);
}

static void clear_event(const struct rl_ops *o)
{
	u64 n;

	if (o->eventfd >= 0)
		rl_raw(SYS_read, o->eventfd, &n, sizeof(n));
}

/* ---- life ---- */

static u8 *carve(u8 **from, size_t len)
{
	u8 *p = *from;

	*from += (len + 63) & ~63ul;
	return p;
}

/* One block for the rings of @sq and @rq and the private copy. */
static bool lend_rings(struct rl_ops *o, struct weft_qpc *qp, const struct weft_sq_shape *sq,
		       const struct weft_rq_shape *rq)
{
	size_t of_sq = weft_ring_size(sq->slots), of_rq = weft_ring_size(rq->slots);
	size_t of_copy = weft_sq_copy_size(sq->slots, sq->wqe_slots),
		of_info = sq->slots * sizeof(*qp->sq.info);
	size_t all = of_sq + of_rq + of_copy + of_info + 4 * 64;
	u8 *p = o->memory = calloc(1, all);

	if (!p)
		return false;
	p = (u8 *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
	weft_ringq_init(&qp->sq.q, carve(&p, of_sq), sq->slots);
	weft_rqq_init(&qp->rq, carve(&p, of_rq), rq->slots, WEFT_POST_IOV);
	qp->sq.copy = carve(&p, of_copy);
	qp->sq.info = (void *)carve(&p, of_info);
	qp->sq.max_slots = sq->wqe_slots;
	return true;
}

static bool lend_queues(struct rl_ops *o, struct weft_qpc *qp)
{
	struct weft_sq_caps sq = { .wr = o->depth, .sge = WEFT_POST_IOV, .inline_data = INLINE };
	struct weft_rq_caps rq = { .wr = o->depth, .sge = WEFT_POST_IOV };
	struct weft_sq_shape sq_shape;
	struct weft_rq_shape rq_shape;

	if (weft_shape_sq(&sq, &sq_shape) || weft_shape_rq(&rq, &rq_shape))
		return false;
	o->events = calloc(o->depth, 2 * sizeof(*o->events));
	return o->events && lend_rings(o, qp, &sq_shape, &rq_shape);
}

static bool ops_init(struct rl_stream *s, u32 depth)
{
	static u32 pds;
	struct weft_qpc *qp = &s->qp.core;
	struct rl_ops *o = calloc(1, sizeof(*o));

	s->ops = o;
	if (!o)
		return false;
	o->eventfd = o->epfd = -1;
	o->depth = depth ? depth : DEPTH;
	if (!lend_queues(o, qp))
		return false;
	o->pd.o.kind = RL_PD;
	o->pd.id = OWN_PDS | __atomic_add_fetch(&pds, 1, __ATOMIC_RELAXED);
	qp->pd = qp->recv_pd = o->pd.id;
	qp->srq = false;
	rl_ulp_init_qp(&s->qp);
	qp->in_order = true;
	return true;
}

static void ops_free(struct rl_ops *o)
{
	if (!o)
		return;
	close_eventfd(o);
	free(o->events);
	free(o->memory);
	free(o);
}

/* ---- events ---- */

static int error_of(u8 status)
{
	static const int errors[WEFT_WC_NR] = {
		[WEFT_WC_LOC_LEN_ERR]	 = EMSGSIZE,
		[WEFT_WC_LOC_PROT_ERR]	 = EFAULT,
		[WEFT_WC_FLUSH_ERR]	 = ECANCELED,
		[WEFT_WC_REM_ACCESS_ERR] = EACCES,
	};

	if (status == WEFT_WC_SUCCESS)
		return 0;
	return status < WEFT_WC_NR && errors[status] ? errors[status] : EREMOTEIO;
}

static u8 what_of(u8 opcode)
{
	switch (opcode) {
	case WEFT_WCO_WRITE:
		return WEFT_POST_PUT;
	case WEFT_WCO_SEND:
		return WEFT_POST_SEND;
	case WEFT_WCO_READ:
		return WEFT_POST_GET;
	default:
		return WEFT_POST_RECV;
	}
}

/*
 * recv_got counts the octets of the Send that has come last; once it was delivered none of it is
 * missing. So a receive that fails with some has got a part.
 */
static void ops_complete(struct rl_stream *s, bool recv, const struct weft_cqe *cqe)
{
	struct rl_ops *o = s->ops;
	struct weft_qpc *qp = &s->qp.core;

	if (!recv && o->opening) {
		o->opening = false;
		return;
	}
	s->torn |= cqe->status != WEFT_WC_SUCCESS && (!recv || qp->recv_got);
	if (recv)
		qp->recv_got = 0;
	/* No more are posted than there is room for events. */
	o->events[(o->first + o->nevents) % (2 * o->depth)] = (struct weft_qevent){
		.ahandle = cqe->wr_id,
		.length = cqe->status == WEFT_WC_SUCCESS ? cqe->byte_len : 0,
		.error = error_of(cqe->status),
		.what = what_of(cqe->opcode),
	};
	o->all_events++;
	if (!o->nevents++)
		set_event(o);
}

static void drop_event(struct rl_ops *o)
{
	o->owed[o->events[o->first].what == WEFT_POST_RECV]--;
	o->first = (o->first + 1) % (2 * o->depth);
	o->nevents--;
}

static bool ops_is_open(const struct rl_stream *s)
{
	return s->phase == RL_STREAM_OPEN && !s->over;
}

int rl_ops_over(const struct rl_stream *s)
{
	/* Threads may be inside when the last name goes, and while the process ends. */
	if (!s->ops->why && s->closed)
		return -ENOTCONN;
	return -s->ops->why;
}

/*
 * A program that looks for events busily moves the octets; each that wakes the progress thread as
 * well costs the peer a wake-up. Without a descriptor of events it sleeps in calls of ours.
 */
static void note_look(struct rl_stream *s)
{
	struct rl_ops *o = s->ops;
	u64 now;

	if (++o->looks % LOOKS || !o->served || o->eventfd >= 0)
		return;
	now = rl_now_ms();
	if (now - o->looked_at <= BUSY_MS && s->conn->polled_until <= now + BUSY_MS)
		s->conn->polled_until = now + 2 * BUSY_MS;
	o->looked_at = now;
}

static int ops_take(struct rl_stream *s, struct weft_qevent *to, u32 max)
{
	struct rl_ops *o = s->ops;
	u32 n;

	if (!o->nevents && ops_is_open(s)) {
		note_look(s);
		/* May end the connection. */
		ops_move(s);
	}
	if (!o->nevents)
		/* poll() reports the octets, so a wait for events must end with an error. */
		return rl_ops_over(s) ?: s->in.len ? -EBUSY : -EAGAIN;
	for (n = 0; n < max && o->nevents; n++) {
		if (!rl_guard_copy(to + n, &o->events[o->first], sizeof(*to)))
			return n ? (int)n : -EFAULT;
		drop_event(o);
	}
	if (!o->nevents)
		clear_event(o);
	return (int)n;
}

int rl_ops_take(struct rl_stream *s, struct weft_qevent *to, u32 max)
{
	int rv = rl_stream_begin(s);

	if (rv)
		return rv;
	rv = ops_take(s, to, max);
	rl_stream_end(s);
	return rv;
}

/* ---- posting ---- */

/* @n slots of a ring. */
static void put_slots(const struct weft_ringq *q, const void *entry, u32 n)
{
	u32 at = q->ring->user_idx, i;

	for (i = 0; i < n; i++)
		memcpy(weft_ringq_slot(q, at + i), (const u8 *)entry + i * WEFT_SLOT_SIZE,
		       WEFT_SLOT_SIZE);
	smp_store_release(&q->ring->user_idx, at + n);
}

/* A ring of no slots has been taken away. */
static bool ops_has_room(const struct weft_ringq *q, u32 n)
{
	return q->slots && q->slots - (q->ring->user_idx - q->idx) >= n;
}

union entry {
	struct weft_sq_wqe sq;
	struct weft_rq_wqe rq;
	u8 octets[WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE];
};

static u32 ops_fill_sges(u8 *to, const struct iovec *iov, u32 n)
{
	struct weft_sge *sge = (struct weft_sge *)to;
	u32 i;

	for (i = 0; i < n; i++)
		sge[i] = (struct weft_sge){ .addr = (uintptr_t)iov[i].iov_base,
					   .length = iov[i].iov_len };
	return n;
}

/* The octets stand in the entry, and the program's memory is not needed any more. */
static bool ops_fill_inline(struct weft_sq_wqe *w, const struct iovec *iov, u32 n, u32 len)
{
	struct weft_sge *sge = (struct weft_sge *)w->data;
	u8 *to = (u8 *)(sge + 1);
	u32 i;

	for (i = 0; i < n; to += iov[i++].iov_len)
		if (!rl_guard_copy(to, iov[i].iov_base, iov[i].iov_len))
			return false;
	sge->length = len;
	w->num_sge = 1;
	w->flags |= WEFT_WR_INLINE;
	w->nslots = weft_sq_wqe_slots(1, len);
	return true;
}

static bool fill_refs(struct weft_sq_wqe *w, const struct iovec *iov, u32 n)
{
	u32 i;

	/* What cannot be read ends the connection later; here it is but a mistake. */
	for (i = 0; i < n && w->opcode != WEFT_WR_READ; i++)
		if (iov[i].iov_len && !rl_guard_readable(iov[i].iov_base, iov[i].iov_len))
			return false;
	w->num_sge = ops_fill_sges(w->data, iov, n);
	w->nslots = weft_sq_wqe_slots(n, 0);
	return true;
}

static int post_request(struct rl_stream *s, const struct weft_operation *op,
			const struct iovec *iov, u32 len)
{
	static const u8 opcodes[] = {
		[WEFT_POST_SEND] = WEFT_WR_SEND,
		[WEFT_POST_PUT] = WEFT_WR_WRITE,
		[WEFT_POST_GET] = WEFT_WR_READ,
	};
	const struct weft_ringq *q = &s->qp.core.sq.q;
	union entry e = { .sq = {
		.wr_id = op->ahandle,
		.opcode = opcodes[op->what],
		.flags = WEFT_WR_SIGNALED | (op->flags & WEFT_POST_FENCE ? WEFT_WR_FENCE : 0),
		.rkey = op->key,
		.remote_addr = op->offset,
	} };
	bool is_short = op->what != WEFT_POST_GET && len && len <= INLINE;

	if (is_short ? !ops_fill_inline(&e.sq, iov, op->niov, len) :
	    !fill_refs(&e.sq, iov, op->niov))
		return -EFAULT;
	if (!ops_has_room(q, e.sq.nslots))
		return -EAGAIN;
	put_slots(q, &e, e.sq.nslots);
	return 0;
}

static int post_receive(struct rl_stream *s, const struct weft_operation *op,
			const struct iovec *iov)
{
	const struct weft_rqq *rq = &s->qp.core.rq;
	union entry e = { .rq = { .wr_id = op->ahandle } };

	if (!ops_has_room(&rq->q, rq->stride))
		return -EAGAIN;
	e.rq.num_sge = ops_fill_sges(e.rq.data, iov, op->niov);
	put_slots(&rq->q, &e, rq->stride);
	return 0;
}

/* A message waits in TCP for a receive. */
static bool waits(const struct rl_stream *s)
{
	return s->conn && s->conn->link.qp && s->qp.core.rx_waits;
}

/* The doorbell. What is posted before Full Operation waits for that. */
static void kick(struct rl_stream *s)
{
	if (ops_is_open(s) && s->conn->link.qp)
		rl_conn_tx(s->conn);
}

static int ops_post(struct rl_stream *s, const struct weft_operation *op, const struct iovec *iov)
{
	u32 *owed = &s->ops->owed[op->what == WEFT_POST_RECV];
	u64 len = 0;
	int rv = rl_ops_over(s), i;

	for (i = 0; i < op->niov; i++)
		len += iov[i].iov_len;
	if (!rv && *owed >= s->ops->depth)
		rv = -EAGAIN;
	if (!rv)
		rv = op->what == WEFT_POST_RECV ? post_receive(s, op, iov) :
			post_request(s, op, iov, len);
	if (rv)
		return rv;
	++*owed;
	if (op->what != WEFT_POST_RECV || waits(s))
		kick(s);
	return 0;
}

int rl_ops_post(struct rl_stream *s, const struct weft_operation *op, const struct iovec *iov)
{
	int rv = rl_stream_begin(s);

	if (rv)
		return rv;
	rv = ops_post(s, op, iov);
	rl_stream_end(s);
	return rv;
}

/* ---- moving ---- */

/* Is there more for TCP, as far as anybody knows? */
static bool has_more(const struct rl_stream *s)
{
	const struct weft_sqq *sq = &s->qp.core.sq;

	return !weft_send_is_done(&s->conn->link) || sq->next != sq->q.ring->user_idx;
}

static void ops_move(struct rl_stream *s)
{
	struct rl_conn *c = s->conn;

	rl_conn_receive(c);
	/* What TCP has waits for a receive, and its end behind that: the link looks for it. */
	if (waits(s))
		c->step_due = true;
	if (c->link.qp && has_more(s))
		rl_conn_tx(c);
	/* A deregistration waits for whoever has the region in hand. */
	else if (c->link.qp)
		rl_ulp_end_run(&s->qp);
}

static unsigned int ops_events(const struct rl_stream *s)
{
	const struct rl_ops *o = s->ops;
	unsigned int events = 0;

	bool ends = o->why || s->closed;

	if (o->nevents || ends || s->in.len)
		events |= POLLIN;
	if (o->nevents || ends || o->owed[0] < o->depth)
		events |= POLLOUT;
	if (ends)
		events |= POLLHUP | POLLRDHUP;
	if (s->error)
		events |= POLLERR;
	return events;
}

static unsigned int ops_awaits(const struct rl_stream *s)
{
	/* What waits in TCP for a receive is no news. */
	return (waits(s) ? 0 : POLLIN) | (s->conn->full ? POLLOUT : 0);
}

void rl_ops_serve(struct rl_stream *s)
{
	s->ops->served = true;
	if (ops_is_open(s)) {
		s->conn->polled_until = 0;
		rl_conn_watch(s->conn);
	} else if (s->phase == RL_STREAM_STARTING && !s->over) {
		rl_ops_start(s);
	}
}

int rl_ops_open_eventfd(struct rl_stream *s)
{
	int rv = rl_stream_begin(s);

	if (rv)
		return rv;
	rl_ops_serve(s);
	rv = s->ops->eventfd < 0 ? make_eventfd(s->ops) : 0;
	if (!rv && rl_ops_over(s))
		set_ended(s->ops);
	if (!rv)
		rv = (int)rl_raw(SYS_fcntl, s->ops->epfd, F_DUPFD_CLOEXEC, 0);
	rl_stream_end(s);
	return rv;
}

/*
 * A responder may send once it has heard something (RFC 5044, 7.1.2): a put of nothing, if there is
 * no more.
 */
static void ops_open(struct rl_stream *s)
{
	const struct weft_ringq *q = &s->qp.core.sq.q;
	const union entry e = { .sq = { .opcode = WEFT_WR_WRITE, .flags = WEFT_WR_SIGNALED,
				       .nslots = 1 } };

	if (s->conn->link.st.initiator && q->idx == q->ring->user_idx) {
		s->ops->opening = true;
		put_slots(q, &e, 1);
	}
	s->conn->tx_due = true;
	if (s->ops->served)
		rl_conn_watch(s->conn);
}

/* ---- the end ---- */

static bool ops_is_quiet(const struct rl_stream *s)
{
	const struct weft_ringq *q = &s->qp.core.sq.q;

	return !ops_is_open(s) ||
		(weft_send_is_done(&s->conn->link) && q->idx == q->ring->user_idx);
}

static void ops_finish(struct rl_stream *s)
{
	if (s->closed)
		return;
	s->closed = true;
	rl_ops_stop(s);
	set_ended(s->ops);
	rl_octets_drop(&s->in, s->in.len);
	if (!ops_is_open(s) || !s->conn->link.qp)
		return;
	rl_ulp_drop_receives(s->conn);
	/* What is posted yet names memory that may be another's soon. */
	if (ops_is_quiet(s))
		rl_ulp_end(&s->qp, true);
	else
		rl_conn_break_off(s->conn);
	s->conn->step_due = true;
}

static int ops_end_error(const struct rl_stream *s, const struct rl_conn *c)
{
	const struct weft_qpc *qp = &s->qp.core;
	const struct weft_term *t = qp->term_received ? &qp->term_in : &qp->term_out;

	if (qp->error || qp->term_received)
		/* RDMAP's remote protection, and DDP's of tagged buffers. */
		return t->layer < 2 && t->etype == 1 ? EACCES : ECONNRESET;
	if (c->reset)
		return c->error ? -c->error : ECONNRESET;
	/* Without the peer's FIN there may be a message that was not read. */
	return s->torn || !c->fin ? ECONNRESET : 0;
}

static void ops_end(struct rl_stream *s)
{
	if (s->ops->why)
		return;
	/* What was posted before there was a connection. */
	rl_ulp_flush(&s->qp);
	s->ops->why = s->phase == RL_STREAM_PLAIN ? EPROTO : s->error ? s->error : ENOTCONN;
	set_ended(s->ops);
}

static u32 ops_all_events(const struct rl_stream *s)
{
	return s->ops->all_events;
}

const struct rl_stream_operations rl_ops_of_stream = {
	.reads = RL_OPS_READS,
	.init = ops_init,
	.free = ops_free,
	.deregister_all = rl_ops_deregister_all,
	.open = ops_open,
	.move = ops_move,
	.is_quiet = ops_is_quiet,
	.all_events = ops_all_events,
	.events = ops_events,
	.awaits = ops_awaits,
	.finish = ops_finish,
	.end_error = ops_end_error,
	.end = ops_end,
	.complete = ops_complete,
};
