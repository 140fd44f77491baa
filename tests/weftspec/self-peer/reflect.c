/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The reflector (../reflector/core.h) over the stack's own host. */
#include <stdio.h>
#include <stdlib.h>

#include "fault_fpdu.h"
#include "peer.h"

#define AREAS 8
#define PD_OWN 1
#define PD_OTHER 2
#define IDLE_SESSIONS 8
#define REGIONS_AT_ONCE 32 /* of REFL_REGISTER, for the table holds sixty-four */

static struct reflector_session *sessions;

static struct end *end_of(struct reflector_link *l)
{
	return l->front;
}

/* ---- regions ---- */

static u32 next_random(void)
{
	static u32 x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/* The table finds a region by six bits; all others may be drawn. */
static void randomize_stag(struct host_mr *mr)
{
	const u32 keep = (HOST_MRS - 1) << HOST_INDEX_SHIFT;

	if (fault_is(F_STAG_PLAIN))
		return;
	mr->r.stag = (next_random() & ~keep) | (mr->r.stag & keep);
}

/* Its memory is part of the arena, so that ALL shows what stands around it. */
static void use_arena(struct session *s, struct host_mr *mr, enum refl_region r)
{
	HOST_ASSERT(mr);
	free(mr->mem);
	mr->mem = reflector_region_start(&s->memory, r);
	randomize_stag(mr);
}

static struct host_mr *new_region(struct session *s, enum refl_region r,
				  u32 access)
{
	u64 base = (uintptr_t)reflector_region_start(&s->memory, r);
	struct host_mr *mr = host_mr_new(&s->host,
					 r == REFL_PD2 ? PD_OTHER : PD_OWN, base,
					 reflector_region_len(&s->memory, r),
					 access);

	use_arena(s, mr, r);
	return mr;
}

static void free_region(struct session *s, struct host_mr *mr)
{
	mr->mem = malloc(1);
	host_mr_free(&s->host, mr);
}

static int deregister(struct reflector_link *l, enum refl_region r)
{
	struct session *s = end_of(l)->s;

	if (s->mr[r]->windows)
		return EBUSY;
	free_region(s, s->mr[r]);
	s->mr[r] = NULL;
	return 0;
}

static int bind_region(struct reflector_link *l, enum refl_region r, u32 seq, u32 *stag)
{
	struct end *e = end_of(l);
	struct session *s = e->s;
	struct weft_wr_bind bind = {
		.addr = (uintptr_t)reflector_region_start(l->s, r),
		.length = reflector_region_len(l->s, r),
		.access = WEFT_ACCESS_REMOTE_READ | WEFT_ACCESS_REMOTE_WRITE,
	};

	if (s->window || !s->mr[r])
		return EBUSY;
	s->window = host_window_new(&s->host, PD_OWN, WEFT_REGION_WINDOW_2);
	HOST_ASSERT(s->window);
	randomize_stag(s->window);
	bind.mw_stag = *stag = s->window->r.stag;
	bind.mr_lkey = s->mr[r]->r.stag;
	return weft_region_bind(&e->qp->core, &bind) == WEFT_GRANTED ? 0 : EACCES;
}

static int draw_stags(struct reflector_link *l, u32 count)
{
	struct host_mr *mr[REGIONS_AT_ONCE];
	struct session *s = end_of(l)->s;

	for (u32 done = 0; done < count; done += REGIONS_AT_ONCE) {
		for (u32 i = 0; i < REGIONS_AT_ONCE; i++) {
			mr[i] = new_region(s, REFL_RW, 0);
			reflector_keep_stag(l, done + i, mr[i]->r.stag);
		}
		for (u32 i = 0; i < REGIONS_AT_ONCE; i++)
			free_region(s, mr[i]);
	}
	return 0;
}

/* ---- queues ---- */

static struct weft_sge sge_of(struct reflector_link *l, enum refl_region key,
			      const u8 *p, u32 len)
{
	struct session *s = end_of(l)->s;

	return (struct weft_sge){ .addr = (uintptr_t)p, .length = len,
				  .lkey = s->mr[key] ? s->mr[key]->r.stag : 0 };
}

static int post_recv(struct reflector_link *l, u32 slot)
{
	struct weft_sge sge = sge_of(l, REFL_ALL, reflector_recv_slot(l, slot),
				     REFL_RECV_SIZE);
	struct end *e = end_of(l);
	bool posted = l->flags & REFL_F_SRQ ?
		      host_post_srq(e->s->srq, slot, &sge, 1) :
		      host_post_recv(e->qp, slot, &sge, 1);

	return posted ? 0 : ENOMEM;
}

static bool is_extension(enum refl_op op)
{
	return op == REFL_SEND_IMM || op == REFL_WRITE_IMM || op == REFL_FADD ||
	       op == REFL_CSWAP;
}

static int post_send(struct reflector_link *l, const struct reflector_wr *wr)
{
	static const u8 opcode[] = {
		[REFL_SEND] = WEFT_WR_SEND, [REFL_SEND_INV] = WEFT_WR_SEND_INV,
		[REFL_WRITE] = WEFT_WR_WRITE, [REFL_READ] = WEFT_WR_READ,
		[REFL_SEND_IMM] = WEFT_WR_SEND_IMM, [REFL_WRITE_IMM] = WEFT_WR_WRITE_IMM,
		[REFL_FADD] = WEFT_WR_FETCH_ADD, [REFL_CSWAP] = WEFT_WR_CMP_SWAP,
	};
	struct host_wr h = { .wr_id = wr->id, .num_sge = !!wr->len,
			     .flags = WEFT_WR_SIGNALED, .rkey = wr->stag,
			     .inv_stag = wr->stag, .remote_addr = wr->to, .imm = wr->imm };

	if (is_extension(wr->op) && self_cfg.no_ext)
		return EOPNOTSUPP;
	h.opcode = opcode[wr->op];
	if (wr->op == REFL_FADD)
		h.atomic.swap_add = wr->arg;
	if (wr->op == REFL_CSWAP)
		h.atomic = (struct weft_wr_atomic){ .compare = wr->arg, .swap_add = wr->arg2 };
	if (wr->solicited)
		h.flags |= WEFT_WR_SOLICITED;
	h.sge[0] = sge_of(l, wr->key, wr->addr, wr->len);
	if (wr->wrong_key)
		h.sge[0].lkey ^= 0xffffff00;
	if (!host_post_send(end_of(l)->qp, &h))
		return ENOMEM;
	if (fault_is(F_ATOMIC_DONE) && (wr->op == REFL_FADD || wr->op == REFL_CSWAP))
		reflector_on_sent(l, wr->id, &(struct reflector_completion){ 0 });
	return 0;
}

static int disconnect(struct reflector_link *l)
{
	host_link_close(&end_of(l)->link);
	return 0;
}

static const struct reflector_ops ops = {
	.post_recv = post_recv, .post_send = post_send,
	.disconnect = disconnect, .deregister = deregister,
	.bind = bind_region, .draw_stags = draw_stags,
};

static struct reflector_completion completion_of(const struct weft_cqe *c)
{
	return (struct reflector_completion){ .status = c->status,
		.opcode = c->opcode, .len = c->byte_len, .imm = (u32)c->imm };
}

void reflect_poll(struct end *e)
{
	struct reflector_completion done;
	struct weft_cqe c;

	if (!e->s || e->ulp.flags & REFL_F_CQ)
		return;
	while (host_cq_poll(e->rcq, &c)) {
		done = completion_of(&c);
		done.opcode |= c.flags << 16;
		if (self_cfg.drive)
			drive_received(e, (u32)c.wr_id, &done);
		else
			reflector_on_recv(&e->ulp, (u32)c.wr_id, &done);
	}
	while (host_cq_poll(e->scq, &c)) {
		done = completion_of(&c);
		if (self_cfg.drive)
			drive_sent(e, c.wr_id, &done);
		else
			reflector_on_sent(&e->ulp, c.wr_id, &done);
	}
}

static void make_queues(struct end *e)
{
	struct host_qp_attr a = { .pd = PD_OWN, .sq_slots = SQ_SLOTS,
				  .rq_slots = RQ_SLOTS, .sig_all = true };
	u32 depth = e->ulp.flags & REFL_F_CQ ? 4 : CQ_DEPTH;

	e->scq = a.scq = host_cq_new(depth);
	e->rcq = a.rcq = host_cq_new(depth);
	if (e->ulp.flags & REFL_F_SRQ) {
		if (!e->s->srq)
			e->s->srq = host_srq_new(RQ_SLOTS, 1);
		a.srq = e->s->srq;
		a.rq_slots = 0;
	}
	e->link.qp = e->qp = host_qp_new(&e->s->host, &a);
	HOST_ASSERT(!reflector_post_recvs(&e->ulp,
					  fault_is(F_MORE_RECEIVES) ? 30 :
					  e->ulp.recv_count));
}

/* ---- sessions ---- */

static struct session *session_new(u64 cookie)
{
	static const u32 access[REFL_REGIONS] = {
		[REFL_RW] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			    WEFT_ACCESS_REMOTE_READ | WEFT_ACCESS_REMOTE_ATOMIC |
			    WEFT_ACCESS_MW_BIND,
		[REFL_W] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE,
		[REFL_R] = WEFT_ACCESS_REMOTE_READ,
		[REFL_PD2] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			     WEFT_ACCESS_REMOTE_READ | WEFT_ACCESS_REMOTE_ATOMIC,
		[REFL_BIG] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			     WEFT_ACCESS_REMOTE_READ,
		[REFL_ALL] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_READ,
	};
	struct session *s = calloc(1, sizeof(*s));

	HOST_ASSERT(s);
	s->memory = (struct reflector_session){
		.front = s, .ops = &ops, .cookie = cookie,
		.arena = malloc(reflector_arena_size(REFL_BIG_LEN, AREAS)),
		.big_len = REFL_BIG_LEN, .areas = AREAS,
		.max_links = HOST_QPS, .caps = REFL_CAP_BIND | REFL_CAP_ONE_STREAM | REFL_CAP_SRQ |
			(self_cfg.no_ext ? 0 : REFL_CAP_IMM | REFL_CAP_ATOMIC),
	};
	HOST_ASSERT(s->memory.arena);
	host_init(&s->host, next_random());
	reflector_fill_arena(&s->memory);
	for (int r = 0; r < REFL_REGIONS; r++) {
		s->mr[r] = new_region(s, r, access[r]);
		s->memory.stag[r] = s->mr[r]->r.stag;
	}
	reflector_add_session(&sessions, &s->memory);
	return s;
}

static void session_free(struct session *s)
{
	reflector_remove_session(&sessions, &s->memory);
	if (s->window) {
		weft_region_unbind(&s->window->r);
		host_mr_free(&s->host, s->window);
	}
	for (int r = 0; r < REFL_REGIONS; r++)
		if (s->mr[r])
			free_region(s, s->mr[r]);
	if (s->srq)
		host_srq_free(s->srq);
	host_fini(&s->host);
	free(s->memory.arena);
	free(s);
}

void reflect_drop_idle(void)
{
	struct reflector_session *idle =
		reflector_idle_session(sessions, IDLE_SESSIONS);

	if (idle)
		session_free(idle->front);
}

/* Connections without a cookie share nothing. */
static void join_session(struct end *e, const struct reflector_request *q)
{
	struct reflector_session *found = q->cookie ?
		reflector_find_session(sessions, q->cookie, NULL) : NULL;

	e->s = found ? found->front : session_new(q->cookie);
	e->ulp.front = e;
	e->ulp.flags = q->flags;
	reflector_join(&e->ulp, &e->s->memory, q->recv_count);
	make_queues(e);
}

/* ---- connections ---- */

void reflect_request(struct end *e)
{
	const struct weft_stream *st = &e->link.core.st;
	struct reflector_request q;
	static u8 pd[512];

	e->table_len = st->frame.pd_len;
	memcpy(e->table, st->pd, e->table_len);
	reflector_read_request(st->pd, e->table_len, &q);
	e->link.cfg.reject = q.flags & REFL_F_REJECT;
	join_session(e, &q);
	e->link.cfg.pd = pd;
	e->link.cfg.pd_len = self_cfg.drive ? drive_private_data(false, pd) :
			     reflector_write_private_data(&e->ulp, q.pd_len, pd, sizeof(pd));
	host_link_accept(&e->link);
	if (q.flags & REFL_F_EARLY)
		reflector_send_hello(&e->ulp);
}

bool reflect_connect(struct end *e, u64 cookie, u8 *pd, u16 *pd_len)
{
	struct reflector_request q = { .cookie = cookie };

	join_session(e, &q);
	*pd_len = self_cfg.drive ? drive_private_data(true, pd) :
		  reflector_write_private_data(&e->ulp, self_cfg.pd_len, pd, 512);
	return true;
}

void reflect_up(struct end *e)
{
	if (self_cfg.drive && e->initiator)
		drive_up(e, e->link.offer.pd, e->link.offer.pd_len);
	else if (self_cfg.drive)
		drive_up(e, e->table, e->table_len);
	else if (e->initiator)
		reflector_send_hello(&e->ulp);
}

void reflect_closed(struct end *e)
{
	static const u32 nothing[3];

	if (!e->s)
		return;
	reflect_poll(e);
	if (self_cfg.drive)
		drive_closed(e);
	reflector_note(&e->ulp, REFL_EV_CM, 0, nothing, NULL);
	reflector_leave(&e->ulp);
}

/* ---- for faults that reach around the stack ---- */

uint8_t *fault_memory(struct fault_dir *d, uint64_t to, size_t len)
{
	struct session *s = d->session ? *d->session : NULL;
	u8 *rw;

	if (!s)
		return NULL;
	rw = reflector_region_start(&s->memory, REFL_RW);
	if (to < (uintptr_t)rw || to - (uintptr_t)rw >= REFL_REGION_LEN)
		return NULL;
	return rw + (to - (uintptr_t)rw);
}

void fault_region(struct fault_dir *d, uint32_t *stag, uint64_t *base,
		  uint64_t *len)
{
	struct session *s = d->session ? *d->session : NULL;
	enum refl_region r = s && s->mr[REFL_RW] ? REFL_RW : REFL_BIG;

	*stag = s && s->mr[r] ? s->mr[r]->r.stag : 0;
	*base = s ? (uintptr_t)reflector_region_start(&s->memory, r) : 0;
	*len = r == REFL_BIG ? REFL_BIG_LEN : REFL_REGION_LEN;
}

/* The first slot of the session's first connection. */
uint8_t *fault_receive(struct fault_dir *d, size_t *room)
{
	struct session *s = d->session ? *d->session : NULL;

	*room = REFL_RECV_STRIDE;
	return s ? reflector_recv_slot(&(struct reflector_link){
					       .s = &s->memory }, 0) : NULL;
}

void fault_event(struct fault_dir *d)
{
	struct session *s = d->session ? *d->session : NULL;
	static const u32 nothing[3];

	if (s)
		reflector_note(&(struct reflector_link){ .s = &s->memory }, REFL_EV_RECV, 0,
			       nothing, NULL);
}

void fault_invalidate(struct fault_dir *d)
{
	struct session *s = d->session ? *d->session : NULL;

	if (s && s->mr[REFL_RW])
		s->mr[REFL_RW]->r.valid = false;
}
