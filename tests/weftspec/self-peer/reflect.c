/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The reflector protocol over the stack's own host. */
#include <stdio.h>
#include <stdlib.h>

#include "../bytes.h"
#include "fault_fpdu.h"
#include "peer.h"

#define PAGE 4096
#define AT_STATUS (9 * PAGE)
#define AT_BIG (12 * PAGE + REFL_ODD)
#define AT_RECV (272 * PAGE)
#define RECV_SLOTS 32
#define RECV_AREA (RECV_SLOTS * REFL_RECV_STRIDE)
#define AREAS 8
#define AT_TX (AT_RECV + AREAS * RECV_AREA)
#define TX_SLOTS 64
#define TX_SIZE 256
#define ARENA (AT_TX + AREAS * TX_SLOTS * TX_SIZE)
#define PD_OWN 1
#define PD_OTHER 2
#define IDLE_SESSIONS 8

static struct session *sessions;
static unsigned long ticks;

static size_t region_at(int r)
{
	return r == REFL_ALL ? 0 : r == REFL_BIG ? AT_BIG :
	       (size_t)(1 + 2 * r) * PAGE + REFL_ODD;
}

static size_t region_len(int r)
{
	return r == REFL_ALL ? ARENA : r == REFL_BIG ? REFL_BIG_LEN :
						       REFL_REGION_LEN;
}

static u32 draw(void)
{
	static u32 x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

/* The table finds a region by six bits; all others may be drawn. */
static void draw_stag(struct host_mr *mr)
{
	const u32 keep = (HOST_MRS - 1) << HOST_INDEX_SHIFT;

	if (fault_is(F_STAG_PLAIN))
		return;
	mr->r.stag = (draw() & ~keep) | (mr->r.stag & keep);
}

/* Regions lie in one arena, so that ALL shows what stands around the others. */
static struct host_mr *new_region(struct session *s, int r, u32 pd, u32 access)
{
	u64 base = (uintptr_t)s->arena + region_at(r);
	struct host_mr *mr = host_mr_new(&s->host, pd, base, region_len(r),
					 access);

	HOST_ASSERT(mr);
	free(mr->mem);
	mr->mem = s->arena + region_at(r);
	draw_stag(mr);
	return mr;
}

static void free_region(struct session *s, struct host_mr *mr)
{
	mr->mem = malloc(1);
	host_mr_free(&s->host, mr);
}

static void fill(struct session *s)
{
	memset(s->arena, REFL_GUARD_BYTE, ARENA);
	for (int r = 0; r < REFL_ALL; r++)
		for (size_t i = 0; i < region_len(r); i++)
			s->arena[region_at(r) + i] = (u8)(7 * i + 31 * r + 13);
	memset(s->arena + AT_STATUS, 0, 2 * PAGE);
	put32(s->arena + AT_STATUS, REFL_MAGIC_STATUS);
}

static struct session *session_new(u64 cookie)
{
	static const u32 access[REFL_REGIONS] = {
		[REFL_RW] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			    WEFT_ACCESS_REMOTE_READ,
		[REFL_W] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE,
		[REFL_R] = WEFT_ACCESS_REMOTE_READ,
		[REFL_PD2] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			     WEFT_ACCESS_REMOTE_READ,
		[REFL_BIG] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE |
			     WEFT_ACCESS_REMOTE_READ,
		[REFL_ALL] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_READ,
	};
	struct session *s = calloc(1, sizeof(*s));

	HOST_ASSERT(s && (s->arena = malloc(ARENA)));
	host_init(&s->host, draw());
	s->cookie = cookie;
	fill(s);
	for (int r = 0; r < REFL_REGIONS; r++)
		s->mr[r] = new_region(s, r, r == REFL_PD2 ? PD_OTHER : PD_OWN,
				      access[r]);
	s->next = sessions;
	return sessions = s;
}

static void session_free(struct session *s)
{
	struct session **p = &sessions;

	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	for (int r = 0; r < REFL_REGIONS; r++)
		if (s->mr[r])
			free_region(s, s->mr[r]);
	if (s->window)
		free_region(s, s->window);
	if (s->srq)
		host_srq_free(s->srq);
	host_fini(&s->host);
	free(s->arena);
	free(s);
}

void reflect_drop_idle(void)
{
	struct session *oldest = NULL;
	u32 idle = 0;

	for (struct session *s = sessions; s; s = s->next) {
		if (s->links)
			continue;
		idle++;
		if (!oldest || s->used < oldest->used)
			oldest = s;
	}
	if (idle > IDLE_SESSIONS)
		session_free(oldest);
}

/* A QP table holds sixteen; connections without a cookie share nothing. */
static struct session *session_get(u64 cookie)
{
	for (struct session *s = sessions; s; s = s->next)
		if (s->cookie == cookie && cookie && s->links < HOST_QPS)
			return s;
	return session_new(cookie);
}

static void note(struct end *e, enum refl_event kind, u8 status, u32 op,
		 u32 len, u32 imm, const u8 *head)
{
	u8 *st = e->s->arena + AT_STATUS, *p;
	u32 n = get32(st + 4);

	if (n >= REFL_EVENTS)
		return;
	p = st + REFL_STATUS_HEAD + n * REFL_EVENT_LEN;
	put16(p, e->idx);
	p[2] = kind;
	p[3] = status;
	put32(p + 4, op);
	put32(p + 8, len);
	put32(p + 12, imm);
	if (head)
		memcpy(p + 16, head, 16);
	put32(st + 4, n + 1);
}

static u8 *recv_slot(struct end *e, u32 slot)
{
	return e->s->arena + AT_RECV + e->idx % AREAS * RECV_AREA +
	       slot % RECV_SLOTS * REFL_RECV_STRIDE;
}

static struct weft_sge sge_of(struct end *e, int r, const u8 *p, u32 len)
{
	return (struct weft_sge){ .addr = (uintptr_t)p, .length = len,
				  .lkey = e->s->mr[r] ? e->s->mr[r]->r.stag : 0 };
}

static bool post_recv(struct end *e, u32 slot)
{
	struct weft_sge sge = sge_of(e, REFL_ALL, recv_slot(e, slot),
				     REFL_RECV_SIZE);

	if (e->flags & REFL_F_SRQ)
		return host_post_srq(e->s->srq, slot, &sge, 1);
	return host_post_recv(e->qp, slot, &sge, 1);
}

static u8 *tx_slot(struct end *e)
{
	return e->s->arena + AT_TX + (e->idx % AREAS * TX_SLOTS +
				      e->tx_next++ % TX_SLOTS) * TX_SIZE;
}

#define DONE (1ull << 32) /* wr_id: announce the completion */

static bool post(struct end *e, struct host_wr *wr, int r, const u8 *p, u32 len)
{
	wr->num_sge = len ? 1 : 0;
	wr->sge[0] = sge_of(e, r, p, len);
	wr->flags |= WEFT_WR_SIGNALED;
	return host_post_send(e->qp, wr);
}

static void send_note(struct end *e, u32 magic, u32 seq, u32 status, u32 value)
{
	struct host_wr wr = { .opcode = WEFT_WR_SEND, .wr_id = seq };
	u8 *b = tx_slot(e);

	put32(b, magic);
	put32(b + 4, seq);
	put32(b + 8, status);
	put32(b + 12, value);
	post(e, &wr, REFL_ALL, b, REFL_ACK_LEN);
}

struct command {
	u16 op, flags;
	u32 seq, count, len, stag;
	u64 to, arg;
};

static u8 *big(struct end *e, u64 off)
{
	return e->s->arena + AT_BIG + off % REFL_BIG_LEN;
}

static bool do_send(struct end *e, const struct command *k)
{
	bool ok = true;

	for (u32 i = 0; i < k->count && ok; i++) {
		struct host_wr wr = { .opcode = k->op == REFL_SEND_INV ?
				      WEFT_WR_SEND_INV : WEFT_WR_SEND,
				      .wr_id = k->seq, .inv_stag = k->stag };
		bool small = k->len <= TX_SIZE;
		u8 *b = tx_slot(e);

		memset(b, (int)i + 1, TX_SIZE);
		put32(b, i);
		wr.flags = k->flags & REFL_CF_SE ? WEFT_WR_SOLICITED : 0;
		ok = post(e, &wr, small ? REFL_ALL : REFL_BIG,
			  small ? b : big(e, 0), k->len);
	}
	return ok;
}

static bool do_tagged(struct end *e, const struct command *k)
{
	bool ok = true, read = k->op == REFL_READ;

	for (u32 i = 0; i < k->count && ok; i++) {
		u64 at = k->flags & REFL_CF_REPEAT ? 0 : (u64)i * k->len;
		struct host_wr wr = { .opcode = read ? WEFT_WR_READ :
						       WEFT_WR_WRITE,
				      .wr_id = k->seq, .rkey = k->stag,
				      .remote_addr = k->to + at };

		if (read && i + 1 == k->count)
			wr.wr_id |= DONE;
		ok = post(e, &wr, REFL_BIG, big(e, k->arg + at), k->len);
	}
	return ok;
}

static bool do_bad_lkey(struct end *e)
{
	struct host_wr wr = { .opcode = WEFT_WR_SEND, .num_sge = 1,
			      .flags = WEFT_WR_SIGNALED };

	wr.sge[0] = sge_of(e, REFL_ALL, tx_slot(e), 16);
	wr.sge[0].lkey ^= 0xffffff00;
	return host_post_send(e->qp, &wr);
}

static bool do_revoke(struct end *e, u64 r)
{
	if (r >= REFL_ALL || !e->s->mr[r])
		return false;
	free_region(e->s, e->s->mr[r]);
	e->s->mr[r] = NULL;
	return true;
}

static bool do_bind(struct end *e, u64 r, u32 *stag)
{
	struct host_mr *mr;

	if (r >= REFL_ALL || e->s->window)
		return false;
	mr = host_mr_new_fast(&e->s->host, PD_OWN, (uintptr_t)e->s->arena +
			      region_at(r), region_len(r));
	if (!mr)
		return false;
	free(mr->mem);
	mr->mem = e->s->arena + region_at(r);
	draw_stag(mr);
	host_mr_bind(mr, e->qp, WEFT_ACCESS_REMOTE_READ |
		     WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_LOCAL_WRITE);
	e->s->window = mr;
	*stag = mr->r.stag;
	return true;
}

static bool do_register(struct end *e, u32 count)
{
	struct host_mr *mr[32];

	for (u32 done = 0; done < count; done += 32) {
		for (u32 i = 0; i < 32; i++) {
			mr[i] = new_region(e->s, REFL_RW, PD_OWN, 0);
			put32(big(e, 4 * (done + i)), mr[i]->r.stag);
		}
		for (u32 i = 0; i < 32; i++)
			free_region(e->s, mr[i]);
	}
	return true;
}

static bool obey(struct end *e, const struct command *k, u32 *value)
{
	switch (k->op) {
	case REFL_NOP: return true;
	case REFL_SEND: case REFL_SEND_INV: return do_send(e, k);
	case REFL_WRITE: case REFL_READ: return do_tagged(e, k);
	case REFL_REVOKE: return do_revoke(e, k->arg);
	case REFL_RECV:
		for (u32 i = 0; i < k->count; i++)
			if (!post_recv(e, e->recv_next++))
				return false;
		return true;
	case REFL_BAD_LKEY: return do_bad_lkey(e);
	case REFL_DISCONNECT:
		host_link_close(&e->link);
		return true;
	case REFL_BIND: return do_bind(e, k->arg, value);
	case REFL_REGISTER: return do_register(e, k->count);
	default: return false;
	}
}

static void on_recv(struct end *e, const struct weft_cqe *c)
{
	u8 *b = recv_slot(e, c->wr_id);
	u32 value = 0;
	struct command k;
	bool ok;

	if (c->status != WEFT_WC_SUCCESS || c->byte_len != REFL_CMD_LEN ||
	    get32(b) != REFL_MAGIC_CMD) {
		note(e, REFL_EV_RECV, c->status, c->opcode | c->flags << 16,
		     c->byte_len, (u32)c->imm, b);
		return;
	}
	k = (struct command){ .op = get16(b + 4), .flags = get16(b + 6),
			      .seq = get32(b + 8), .count = get32(b + 12),
			      .len = get32(b + 16), .stag = get32(b + 20),
			      .to = get64(b + 24), .arg = get64(b + 32) };
	memset(b, REFL_GUARD_BYTE, REFL_RECV_SIZE);
	post_recv(e, c->wr_id);
	ok = obey(e, &k, &value);
	if (!(k.flags & REFL_CF_NOACK))
		send_note(e, REFL_MAGIC_ACK, k.seq, ok ? 0 : 95, value);
}

void reflect_poll(struct end *e)
{
	struct weft_cqe c;

	if (!e->s || e->flags & REFL_F_CQ)
		return;
	while (host_cq_poll(e->rcq, &c))
		on_recv(e, &c);
	while (host_cq_poll(e->scq, &c)) {
		if (c.status != WEFT_WC_SUCCESS || c.wr_id & DONE)
			note(e, REFL_EV_SEND, c.status, c.opcode, c.byte_len, 0,
			     NULL);
		if (c.status == WEFT_WC_SUCCESS && c.wr_id & DONE)
			send_note(e, REFL_MAGIC_DONE, (u32)c.wr_id, 0, 0);
	}
}

static u16 write_table(struct end *e, u8 *out)
{
	struct session *s = e->s;
	u8 *p = put32(out, REFL_MAGIC_TABLE);

	p = put16(p, REFL_VERSION);
	p = put16(p, REFL_REGIONS);
	p = put32(p, REFL_CAP_BIND | REFL_CAP_SRQ);
	p = put16(p, e->recv_count);
	p = put16(p, REFL_RECV_SIZE);
	p = put64(p, (uintptr_t)s->arena + AT_STATUS);
	p = put64(p, (uintptr_t)recv_slot(e, 0));
	for (int r = 0; r < REFL_REGIONS; r++) {
		p = put64(p, (uintptr_t)s->arena + region_at(r));
		p = put32(p, region_len(r));
		p = put32(p, s->mr[r] ? s->mr[r]->r.stag : 0);
	}
	return p - out;
}

static void make_queues(struct end *e, u32 recvs)
{
	struct host_qp_attr a = { .pd = PD_OWN, .sq_slots = SQ_SLOTS,
				  .rq_slots = RQ_SLOTS, .sig_all = true };
	u32 depth = e->flags & REFL_F_CQ ? 4 : CQ_DEPTH;

	e->scq = a.scq = host_cq_new(depth);
	e->rcq = a.rcq = host_cq_new(depth);
	if (e->flags & REFL_F_SRQ) {
		if (!e->s->srq)
			e->s->srq = host_srq_new(RQ_SLOTS, 1);
		a.srq = e->s->srq;
		a.rq_slots = 0;
	}
	e->qp = host_qp_new(&e->s->host, &a);
	e->recv_count = recvs && recvs < RECV_SLOTS ? recvs : REFL_RECV_COUNT;
	while (e->recv_next < (fault_is(F_MORE_RECEIVES) ? 30 : e->recv_count))
		HOST_ASSERT(post_recv(e, e->recv_next++));
}

static void join(struct end *e, u64 cookie, u32 recvs)
{
	e->s = session_get(cookie);
	e->idx = e->s->conns++;
	e->s->links++;
	make_queues(e, recvs);
	e->link.qp = e->qp;
}

void reflect_request(struct end *e)
{
	const u8 *p = e->link.core.st.pd;
	bool ours = e->link.core.st.frame.pd_len >= REFL_REQUEST_LEN &&
		    get32(p) == REFL_MAGIC_REQUEST;
	static u8 pd[512];
	u64 cookie = ours ? get64(p + 8) : 0;

	e->flags = ours ? get16(p + 6) : 0;
	e->link.cfg.reject = e->flags & REFL_F_REJECT;
	memset(pd, 0x5a, sizeof(pd));
	join(e, cookie, ours ? get16(p + 18) : 0);
	e->link.cfg.pd = pd;
	e->link.cfg.pd_len = e->flags & REFL_F_PD ? get16(p + 16) :
						    write_table(e, pd);
	host_link_accept(&e->link);
	if (e->flags & REFL_F_EARLY)
		send_note(e, REFL_MAGIC_HELLO, 0, 0, 0);
}

bool reflect_connect(struct end *e, u64 cookie, u8 *pd, u16 *pd_len)
{
	join(e, cookie, 0);
	memset(pd, 0x5a, 512);
	*pd_len = self_cfg.pd_len >= 0 ? self_cfg.pd_len : write_table(e, pd);
	return true;
}

void reflect_up(struct end *e)
{
	if (e->initiator)
		send_note(e, REFL_MAGIC_HELLO, 0, 0, 0);
}

void reflect_closed(struct end *e)
{
	if (!e->s)
		return;
	reflect_poll(e);
	note(e, REFL_EV_CM, 0, 0, 0, 0, NULL);
	e->s->links--;
	e->s->used = ++ticks;
}

/* ---- for faults that reach around the stack ---- */

uint8_t *fault_memory(struct fault_dir *d, uint64_t to, size_t len)
{
	struct session *s = d->session ? *d->session : NULL;
	u64 base;

	if (!s)
		return NULL;
	base = (uintptr_t)s->arena + region_at(REFL_RW);
	if (to < base || to - base >= REFL_REGION_LEN)
		return NULL;
	return s->arena + region_at(REFL_RW) + (to - base);
}

void fault_region(struct fault_dir *d, uint32_t *stag, uint64_t *base,
		  uint64_t *len)
{
	struct session *s = d->session ? *d->session : NULL;
	int r = s && s->mr[REFL_RW] ? REFL_RW : REFL_BIG;

	*stag = s && s->mr[r] ? s->mr[r]->r.stag : 0;
	*base = s ? (uintptr_t)s->arena + region_at(r) : 0;
	*len = region_len(r);
}

uint8_t *fault_receive(struct fault_dir *d, size_t *room)
{
	struct session *s = d->session ? *d->session : NULL;

	*room = REFL_RECV_STRIDE;
	return s ? s->arena + AT_RECV : NULL;
}

void fault_invalidate(struct fault_dir *d)
{
	struct session *s = d->session ? *d->session : NULL;

	if (s && s->mr[REFL_RW])
		s->mr[REFL_RW]->r.valid = false;
}
