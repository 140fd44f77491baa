/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-reflector: the ULP behind the peer under test, for any verbs device.
 * What it does is described in reflector.h.  One thread, one poll loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "reflector.h"

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
#define SQ_DEPTH 128
#define LINKS_MAX 2048
#define IDLE_SESSIONS 16

struct session {
	struct session *next;
	uint64_t cookie;
	struct ibv_context *verbs;
	struct ibv_pd *pd, *pd2;
	struct ibv_srq *srq;
	struct ibv_mr *mr[REFL_REGIONS];
	uint8_t *arena;
	uint32_t caps;
	unsigned int links, conns;
	unsigned long used; /* for the choice of the one to drop */
};

struct link {
	struct rdma_cm_id *id;
	struct session *s;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_mw *mw;
	unsigned int idx, flags, recv_next, tx_next, recv_count;
	bool dead, mute; /* mute: its completion queue is not polled */
};

static struct session *sessions;
static struct link *links[LINKS_MAX];
static struct rdma_event_channel *cm;
static unsigned long clock_;
static bool declares_imm, verbose;
static uint8_t want_ird = 16, want_ord = 16;
static bool calling;
static int own_pd_len = -1; /* --pd-len: that many octets instead of TABLE */

static size_t region_at(int r)
{
	return r == REFL_BIG ? AT_BIG : (size_t)(1 + 2 * r) * PAGE + REFL_ODD;
}

static size_t region_len(int r)
{
	return r == REFL_BIG ? REFL_BIG_LEN : REFL_REGION_LEN;
}

static void fill_arena(struct session *s)
{
	memset(s->arena, REFL_GUARD_BYTE, ARENA);
	for (int r = 0; r < REFL_ALL; r++)
		for (size_t i = 0; i < region_len(r); i++)
			s->arena[region_at(r) + i] =
				(uint8_t)(7 * i + 31 * r + 13);
	memset(s->arena + AT_STATUS, 0, 2 * PAGE);
	put32(s->arena + AT_STATUS, REFL_MAGIC_STATUS);
}

static void note(struct session *s, unsigned int conn, enum refl_event kind,
		 uint8_t status, const uint32_t v[3], const uint8_t *head)
{
	uint8_t *st = s->arena + AT_STATUS, *p;
	uint32_t n = get32(st + 4);

	if (n >= REFL_EVENTS)
		return;
	p = st + REFL_STATUS_HEAD + n * REFL_EVENT_LEN;
	put16(p, conn);
	p[2] = kind;
	p[3] = status;
	for (int i = 0; i < 3; i++)
		put32(p + 4 + 4 * i, v[i]);
	if (head)
		memcpy(p + 16, head, 16);
	put32(st + 4, n + 1);
}

static int access_of(const struct session *s, int r)
{
	int rights[REFL_REGIONS] = {
		[REFL_RW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ,
		[REFL_W] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[REFL_R] = IBV_ACCESS_REMOTE_READ,
		[REFL_ALL] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	rights[REFL_PD2] = rights[REFL_BIG] = rights[REFL_RW];
	if (s->caps & REFL_CAP_ATOMIC && r != REFL_R && r != REFL_W &&
	    r != REFL_ALL)
		rights[r] |= IBV_ACCESS_REMOTE_ATOMIC;
	if (s->caps & REFL_CAP_BIND)
		rights[r] |= r == REFL_R ? 0 : IBV_ACCESS_MW_BIND;
	return rights[r];
}

static int register_all(struct session *s)
{
	for (int r = 0; r < REFL_REGIONS; r++) {
		bool all = r == REFL_ALL;

		s->mr[r] = ibv_reg_mr(r == REFL_PD2 ? s->pd2 : s->pd,
				      s->arena + (all ? 0 : region_at(r)),
				      all ? ARENA : region_len(r),
				      access_of(s, r));
		if (!s->mr[r])
			return -1;
	}
	return 0;
}

static uint32_t caps_of(struct ibv_context *verbs)
{
	struct ibv_device_attr a;
	uint32_t caps = declares_imm ? REFL_CAP_IMM : 0;

	if (ibv_query_device(verbs, &a))
		return caps;
	if (a.atomic_cap != IBV_ATOMIC_NONE)
		caps |= REFL_CAP_ATOMIC;
	if (a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				  IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		caps |= REFL_CAP_BIND;
	if (a.max_srq > 0)
		caps |= REFL_CAP_SRQ;
	return caps;
}

static void session_free(struct session *s)
{
	struct session **p = &sessions;

	while (*p && *p != s)
		p = &(*p)->next;
	if (*p)
		*p = s->next;
	if (s->srq)
		ibv_destroy_srq(s->srq);
	for (int r = 0; r < REFL_REGIONS; r++)
		if (s->mr[r])
			ibv_dereg_mr(s->mr[r]);
	if (s->pd2)
		ibv_dealloc_pd(s->pd2);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	munmap(s->arena, ARENA);
	free(s);
}

static void drop_idle(void)
{
	struct session *oldest = NULL;
	unsigned int idle = 0;

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

static struct session *session_new(struct ibv_context *verbs, uint64_t cookie)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->arena == MAP_FAILED) {
		free(s);
		return NULL;
	}
	s->cookie = cookie;
	s->verbs = verbs;
	s->caps = caps_of(verbs);
	fill_arena(s);
	s->pd = ibv_alloc_pd(verbs);
	s->pd2 = ibv_alloc_pd(verbs);
	if (!s->pd || !s->pd2 || register_all(s)) {
		perror("weft-reflector: session");
		session_free(s);
		return NULL;
	}
	s->next = sessions;
	sessions = s;
	return s;
}

static struct session *session_get(struct ibv_context *verbs, uint64_t cookie)
{
	struct session *s;

	drop_idle();
	for (s = sessions; s; s = s->next)
		if (s->cookie == cookie && s->verbs == verbs)
			return s;
	return session_new(verbs, cookie);
}

static uint8_t *recv_slot(const struct link *l, unsigned int slot)
{
	return l->s->arena + AT_RECV + l->idx % AREAS * RECV_AREA +
	       slot * REFL_RECV_STRIDE;
}

static int post_recv(struct link *l, unsigned int slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)recv_slot(l, slot),
			       .length = REFL_RECV_SIZE,
			       .lkey = l->s->mr[REFL_ALL]->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	if (l->s->srq && l->flags & REFL_F_SRQ)
		return ibv_post_srq_recv(l->s->srq, &wr, &bad);
	return ibv_post_recv(l->id->qp, &wr, &bad);
}

static int post_recvs(struct link *l, unsigned int n)
{
	int err = 0;

	while (n-- && !err)
		err = post_recv(l, l->recv_next++ % RECV_SLOTS);
	return err;
}

/* wr_id of the send queue: what, and the command's sequence number. */
enum { WR_PLAIN = 1, WR_DONE = 2 }; /* DONE: announce the completion */

static uint64_t wr_id(unsigned int what, uint32_t seq)
{
	return (uint64_t)1 << 63 | (uint64_t)what << 32 | seq;
}

static int post_wr(struct link *l, struct ibv_send_wr *wr, const void *addr,
		   uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)addr, .length = len,
			       .lkey = lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(l->id->qp, wr, &bad);
}

static uint8_t *tx_slot(struct link *l)
{
	return l->s->arena + AT_TX + (l->idx % AREAS * TX_SLOTS +
				      l->tx_next++ % TX_SLOTS) * TX_SIZE;
}

static void send_note(struct link *l, uint32_t magic, uint32_t seq,
		      uint32_t status, uint32_t value)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .wr_id = wr_id(WR_PLAIN, seq) };
	uint8_t *b = tx_slot(l);

	put32(b, magic);
	put32(b + 4, seq);
	put32(b + 8, status);
	put32(b + 12, value);
	post_wr(l, &wr, b, REFL_ACK_LEN, l->s->mr[REFL_ALL]->lkey);
}

struct command {
	uint16_t op, flags;
	uint32_t seq, count, len, stag;
	uint64_t to, arg, arg2;
};

static void command_read(const uint8_t *p, struct command *k)
{
	k->op = get16(p + 4);
	k->flags = get16(p + 6);
	k->seq = get32(p + 8);
	k->count = get32(p + 12);
	k->len = get32(p + 16);
	k->stag = get32(p + 20);
	k->to = get64(p + 24);
	k->arg = get64(p + 32);
	k->arg2 = get64(p + 40);
}

static uint8_t *big(struct link *l, uint64_t off)
{
	return l->s->arena + AT_BIG + off % REFL_BIG_LEN;
}

/* Small Sends carry their number, large ones the octets of BIG. */
static int do_send(struct link *l, const struct command *k)
{
	static const enum ibv_wr_opcode op[] = {
		[REFL_SEND] = IBV_WR_SEND,
		[REFL_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[REFL_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	};
	int err = 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		struct ibv_send_wr wr = { .opcode = op[k->op],
					  .wr_id = wr_id(WR_PLAIN, k->seq) };
		uint8_t *b = tx_slot(l);
		bool small = k->len <= TX_SIZE;

		memset(b, (int)i + 1, TX_SIZE);
		put32(b, i);
		wr.send_flags = k->flags & REFL_CF_SE ? IBV_SEND_SOLICITED : 0;
		wr.invalidate_rkey = k->stag;
		if (k->op == REFL_SEND_IMM)
			wr.imm_data = htobe32((uint32_t)k->arg);
		err = post_wr(l, &wr, small ? b : big(l, 0), k->len,
			      l->s->mr[small ? REFL_ALL : REFL_BIG]->lkey);
	}
	return err;
}

static int do_tagged(struct link *l, const struct command *k)
{
	int err = 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		bool end = i + 1 == k->count && k->op == REFL_READ;
		uint64_t at = k->flags & REFL_CF_REPEAT ? 0 :
			      (uint64_t)i * k->len;
		struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

		if (k->op == REFL_READ)
			wr.opcode = IBV_WR_RDMA_READ;
		if (k->op == REFL_WRITE_IMM)
			wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32((uint32_t)k->arg2);
		wr.wr_id = wr_id(end ? WR_DONE : WR_PLAIN, k->seq);
		wr.wr.rdma.remote_addr = k->to + at;
		wr.wr.rdma.rkey = k->stag;
		err = post_wr(l, &wr, big(l, k->arg + at), k->len,
			      l->s->mr[REFL_BIG]->lkey);
	}
	return err;
}

static int do_atomic(struct link *l, const struct command *k)
{
	struct ibv_send_wr wr = { .wr_id = wr_id(WR_DONE, k->seq) };

	wr.opcode = k->op == REFL_FADD ? IBV_WR_ATOMIC_FETCH_AND_ADD :
					 IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = k->to;
	wr.wr.atomic.rkey = k->stag;
	wr.wr.atomic.compare_add = k->arg;
	wr.wr.atomic.swap = k->arg2;
	return post_wr(l, &wr, big(l, 4), 8, l->s->mr[REFL_BIG]->lkey);
}

static int do_revoke(struct link *l, uint64_t r)
{
	int err;

	if (r >= REFL_ALL || !l->s->mr[r])
		return EINVAL;
	err = ibv_dereg_mr(l->s->mr[r]);
	if (!err)
		l->s->mr[r] = NULL;
	return err;
}

static int do_bad_lkey(struct link *l, const struct command *k)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .wr_id = wr_id(WR_PLAIN, k->seq) };

	return post_wr(l, &wr, tx_slot(l), 16,
		       l->s->mr[REFL_ALL]->lkey ^ 0x00ffff00);
}

static int do_bind(struct link *l, const struct command *k, uint32_t *stag)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .wr_id = wr_id(WR_PLAIN, k->seq) }, *bad;
	uint64_t r = k->arg < REFL_ALL ? k->arg : REFL_RW;

	if (l->mw)
		return EBUSY;
	l->mw = ibv_alloc_mw(l->s->pd, IBV_MW_TYPE_2);
	if (!l->mw)
		return errno;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw.mw = l->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(l->mw->rkey);
	wr.bind_mw.bind_info.mr = l->s->mr[r];
	wr.bind_mw.bind_info.addr = (uintptr_t)l->s->arena + region_at(r);
	wr.bind_mw.bind_info.length = region_len(r);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ;
	*stag = wr.bind_mw.rkey;
	return ibv_post_send(l->id->qp, &wr, &bad);
}

/* STags of short-lived regions, for a look at how they are drawn. */
static int do_register(struct link *l, uint32_t count)
{
	struct ibv_mr *mr[256];
	uint32_t n = 0, max = sizeof(mr) / sizeof(mr[0]);

	for (count = count < max ? count : max; n < count; n++) {
		mr[n] = ibv_reg_mr(l->s->pd, l->s->arena, PAGE,
				   IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
		if (!mr[n])
			break;
		put32(big(l, 4 * n), mr[n]->rkey);
	}
	for (uint32_t i = 0; i < n; i++)
		ibv_dereg_mr(mr[i]);
	return n == count ? 0 : ENOMEM;
}

static int obey(struct link *l, const struct command *k, uint32_t *value)
{
	switch (k->op) {
	case REFL_NOP: return 0;
	case REFL_SEND: case REFL_SEND_INV: case REFL_SEND_IMM:
		return do_send(l, k);
	case REFL_WRITE: case REFL_WRITE_IMM: case REFL_READ:
	case REFL_WRITE_SEND:
		return do_tagged(l, k);
	case REFL_FADD: case REFL_CSWAP: return do_atomic(l, k);
	case REFL_REVOKE: return do_revoke(l, k->arg);
	case REFL_RECV: return post_recvs(l, k->count);
	case REFL_BAD_LKEY: return do_bad_lkey(l, k);
	case REFL_DISCONNECT: return rdma_disconnect(l->id) ? errno : 0;
	case REFL_BIND: return do_bind(l, k, value);
	case REFL_REGISTER: return do_register(l, k->count);
	default: return EOPNOTSUPP;
	}
}

static void on_recv(struct link *l, const struct ibv_wc *wc)
{
	uint8_t *b = recv_slot(l, wc->wr_id % RECV_SLOTS);
	uint32_t v[3] = { wc->opcode | wc->wc_flags << 16, wc->byte_len,
			  wc->wc_flags & IBV_WC_WITH_IMM ?
			  be32toh(wc->imm_data) : 0 };
	struct command k;
	uint32_t value = 0;
	int err;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != REFL_CMD_LEN ||
	    get32(b) != REFL_MAGIC_CMD) {
		note(l->s, l->idx, REFL_EV_RECV, wc->status, v, b);
		return;
	}
	command_read(b, &k);
	memset(b, REFL_GUARD_BYTE, REFL_RECV_SIZE);
	post_recv(l, wc->wr_id % RECV_SLOTS);
	err = obey(l, &k, &value);
	if (verbose)
		fprintf(stderr, "command %u: %d\n", k.op, err);
	if (!(k.flags & REFL_CF_NOACK))
		send_note(l, REFL_MAGIC_ACK, k.seq, (uint32_t)err, value);
}

static void on_wc(struct link *l, const struct ibv_wc *wc)
{
	uint32_t v[3] = { wc->opcode, wc->byte_len, (uint32_t)wc->wr_id };

	if (!(wc->wr_id >> 63)) {
		on_recv(l, wc);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		note(l->s, l->idx, REFL_EV_SEND, wc->status, v, NULL);
	else if ((wc->wr_id >> 32 & 0xff) == WR_DONE) {
		note(l->s, l->idx, REFL_EV_SEND, 0, v, NULL);
		send_note(l, REFL_MAGIC_DONE, (uint32_t)wc->wr_id, 0,
			  wc->byte_len);
	}
}

static void drain(struct link *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->cq, 1, &wc) > 0)
		on_wc(l, &wc);
}

static void on_completion(struct link *l)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(l->ch, &cq, &ctx))
		return;
	ibv_ack_cq_events(cq, 1);
	if (l->mute)
		return;
	ibv_req_notify_cq(l->cq, 0);
	drain(l);
}

static int make_srq(struct session *s)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = RECV_SLOTS,
						 .max_sge = 1 } };

	if (!s->srq)
		s->srq = ibv_create_srq(s->pd, &a);
	return s->srq ? 0 : -1;
}

static int make_qp(struct link *l)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = SQ_DEPTH, .max_recv_wr = RECV_SLOTS,
			 .max_send_sge = 1, .max_recv_sge = 1 } };
	bool small = l->flags & REFL_F_CQ;

	l->ch = ibv_create_comp_channel(l->id->verbs);
	if (!l->ch)
		return -1;
	fcntl(l->ch->fd, F_SETFL, O_NONBLOCK);
	l->cq = ibv_create_cq(l->id->verbs, small ? 4 : SQ_DEPTH + 64, NULL,
			      l->ch, 0);
	if (!l->cq || ibv_req_notify_cq(l->cq, 0))
		return -1;
	if (l->flags & REFL_F_SRQ && make_srq(l->s))
		return -1;
	a.send_cq = a.recv_cq = l->cq;
	a.srq = l->flags & REFL_F_SRQ ? l->s->srq : NULL;
	l->mute = small;
	return rdma_create_qp(l->id, l->s->pd, &a);
}

static void link_free(struct link *l)
{
	if (l->cq && !l->mute)
		drain(l);
	if (l->mw)
		ibv_dealloc_mw(l->mw);
	if (l->id->qp)
		rdma_destroy_qp(l->id);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->ch)
		ibv_destroy_comp_channel(l->ch);
	if (l->s) {
		l->s->links--;
		l->s->used = ++clock_;
	}
	rdma_destroy_id(l->id);
	for (int i = 0; i < LINKS_MAX; i++)
		if (links[i] == l)
			links[i] = NULL;
	free(l);
}

static struct link *link_new(struct rdma_cm_id *id)
{
	for (int i = 0; i < LINKS_MAX; i++)
		if (!links[i]) {
			struct link *l = calloc(1, sizeof(*l));

			if (!l)
				return NULL;
			l->id = id;
			id->context = l;
			return links[i] = l;
		}
	return NULL;
}

static size_t write_table(const struct link *l, uint8_t *out)
{
	const struct session *s = l->s;
	uint8_t *p = put32(out, REFL_MAGIC_TABLE);

	p = put16(p, REFL_VERSION);
	p = put16(p, REFL_REGIONS);
	p = put32(p, s->caps);
	p = put16(p, l->recv_count);
	p = put16(p, REFL_RECV_SIZE);
	p = put64(p, (uintptr_t)s->arena + AT_STATUS);
	p = put64(p, (uintptr_t)recv_slot(l, 0));
	for (int r = 0; r < REFL_REGIONS; r++) {
		p = put64(p, (uintptr_t)s->arena +
			  (r == REFL_ALL ? 0 : region_at(r)));
		p = put32(p, r == REFL_ALL ? ARENA : region_len(r));
		p = put32(p, s->mr[r] ? s->mr[r]->rkey : 0);
	}
	return p - out;
}

/* The tester's REQUEST, if that is what its private data is. */
struct request {
	bool valid;
	uint16_t flags, reply_pd, recv_count;
	uint64_t cookie;
};

static struct request request_read(const struct rdma_conn_param *c)
{
	const uint8_t *p = c->private_data;
	struct request q = { 0 };

	if (!p || c->private_data_len < REFL_REQUEST_LEN ||
	    get32(p) != REFL_MAGIC_REQUEST)
		return q;
	q.valid = true;
	q.flags = get16(p + 6);
	q.cookie = get64(p + 8);
	q.reply_pd = get16(p + 16);
	q.recv_count = get16(p + 18);
	return q;
}

static int link_up(struct link *l, uint64_t cookie, unsigned int recvs)
{
	l->s = session_get(l->id->verbs, cookie);
	if (!l->s)
		return -1;
	l->idx = l->s->conns++;
	l->s->links++;
	l->recv_count = recvs ? recvs : REFL_RECV_COUNT;
	if (l->recv_count > RECV_SLOTS)
		l->recv_count = RECV_SLOTS;
	if (make_qp(l))
		return -1;
	return post_recvs(l, l->recv_count);
}

static void on_request(struct rdma_cm_event *e)
{
	struct request q = request_read(&e->param.conn);
	uint8_t pd[256];
	struct rdma_conn_param p = {
		.responder_resources = e->param.conn.responder_resources,
		.initiator_depth = e->param.conn.initiator_depth,
		.private_data = pd,
	};
	struct link *l = link_new(e->id);

	/* MPA Rev 1 names no depths: serve Reads there, too. */
	if (!p.responder_resources)
		p.responder_resources = want_ird;
	if (!l) {
		rdma_reject(e->id, NULL, 0);
		rdma_destroy_id(e->id);
		return;
	}
	l->flags = q.flags;
	if (q.flags & REFL_F_REJECT || link_up(l, q.cookie, q.recv_count)) {
		rdma_reject(l->id, "refused", 7);
		link_free(l);
		return;
	}
	memset(pd, 0x5a, sizeof(pd));
	p.private_data_len = q.flags & REFL_F_PD ? q.reply_pd :
						   write_table(l, pd);
	if (rdma_accept(l->id, &p)) {
		if (verbose)
			perror("accept");
		link_free(l);
		return;
	}
	if (q.flags & REFL_F_EARLY)
		send_note(l, REFL_MAGIC_HELLO, 0, 0, 0);
}

static int on_route(struct link *l)
{
	uint8_t pd[256];
	struct rdma_conn_param p = { .responder_resources = want_ird,
				     .initiator_depth = want_ord,
				     .private_data = pd };

	if (link_up(l, (uint64_t)getpid() << 20, 0))
		return -1;
	memset(pd, 0x5a, sizeof(pd));
	p.private_data_len = own_pd_len >= 0 ? own_pd_len : (int)write_table(l, pd);
	return rdma_connect(l->id, &p);
}

static void on_cm(struct rdma_cm_event *e)
{
	struct link *l = e->id->context;
	uint32_t v[3] = { e->event, 0, (uint32_t)e->status };
	bool over = false;

	if (verbose)
		fprintf(stderr, "cm %s %d\n", rdma_event_str(e->event), e->status);
	switch (e->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(e);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		over = rdma_resolve_route(e->id, 5000) != 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		over = on_route(l) != 0;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (calling)
			send_note(l, REFL_MAGIC_HELLO, 0, 0, 0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		drain(l);
		note(l->s, l->idx, REFL_EV_CM, 0, v, NULL);
		rdma_disconnect(l->id);
		over = true;
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		over = true;
		break;
	default:
		break;
	}
	if (over && l)
		l->dead = true; /* its event must be acknowledged first */
}

static void reap(void)
{
	for (int i = 0; i < LINKS_MAX; i++)
		if (links[i] && links[i]->dead)
			link_free(links[i]);
}

static unsigned int live(void)
{
	unsigned int n = 0;

	for (int i = 0; i < LINKS_MAX; i++)
		n += links[i] != NULL;
	return n;
}

static void loop(bool forever)
{
	static struct pollfd fd[LINKS_MAX + 1];
	static struct link *of[LINKS_MAX + 1];

	while (forever || live()) {
		struct rdma_cm_event *e;
		nfds_t n = 0;

		fd[n++] = (struct pollfd){ .fd = cm->fd, .events = POLLIN };
		for (int i = 0; i < LINKS_MAX; i++)
			if (links[i] && links[i]->ch) {
				of[n] = links[i];
				fd[n++] = (struct pollfd){
					.fd = links[i]->ch->fd,
					.events = POLLIN };
			}
		if (poll(fd, n, -1) < 0)
			continue;
		for (nfds_t i = 1; i < n; i++)
			if (fd[i].revents)
				on_completion(of[i]);
		if (fd[0].revents && !rdma_get_cm_event(cm, &e)) {
			on_cm(e);
			rdma_ack_cm_event(e);
		}
		reap();
	}
}

static int split(char *s, char **host, char **port)
{
	char *colon = strrchr(s, ':');

	if (!colon)
		return -1;
	*colon = 0;
	*host = s;
	*port = colon + 1;
	if (*s == '[' && colon[-1] == ']') {
		colon[-1] = 0;
		(*host)++;
	}
	return 0;
}

static int die(const char *what)
{
	fprintf(stderr, "weft-reflector: %s: %s\n", what, strerror(errno));
	return 1;
}

static int resolve(char *where, struct rdma_addrinfo **ai, int flags)
{
	struct rdma_addrinfo hint = { .ai_flags = flags,
				      .ai_port_space = RDMA_PS_TCP };
	char *host, *port;

	if (split(where, &host, &port))
		return -1;
	return rdma_getaddrinfo(*host ? host : NULL, port, &hint, ai);
}

static int serve(char *where)
{
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;

	if (resolve(where, &ai, RAI_PASSIVE))
		return die(where);
	if (rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, ai->ai_src_addr) || rdma_listen(id, 128))
		return die("listen");
	puts("ready");
	fflush(stdout);
	loop(true);
	return 0;
}

static int call(char *where, int conns)
{
	struct rdma_addrinfo *ai;

	if (resolve(where, &ai, 0))
		return die(where);
	calling = true;
	while (conns--) {
		struct rdma_cm_id *id;

		if (rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) || !link_new(id) ||
		    rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 5000))
			return die("connect");
	}
	loop(false);
	return 0;
}

static void usage(FILE *f)
{
	fputs("usage: weft-reflector --listen [ADDR]:PORT\n"
	      "       weft-reflector --connect HOST:PORT [--conns N] [--ird N]\n"
	      "                      [--ord N] [--pd-len N]\n"
	      "  --imm: the device speaks RFC 7306 Immediate Data; -v: tell\n", f);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "listen", 1, 0, 'l' }, { "connect", 1, 0, 'c' },
		{ "conns", 1, 0, 'n' }, { "ird", 1, 0, 'i' },
		{ "ord", 1, 0, 'o' }, { "pd-len", 1, 0, 'p' },
		{ "imm", 0, 0, 'm' }, { "verbose", 0, 0, 'v' },
		{ "help", 0, 0, 'h' }, { 0 },
	};
	char *listen_at = NULL, *connect_to = NULL;
	int opt, conns = 1;

	while ((opt = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		switch (opt) {
		case 'l': listen_at = optarg; break;
		case 'c': connect_to = optarg; break;
		case 'n': conns = atoi(optarg); break;
		case 'i': want_ird = atoi(optarg); break;
		case 'o': want_ord = atoi(optarg); break;
		case 'p': own_pd_len = atoi(optarg); break;
		case 'm': declares_imm = true; break;
		case 'v': verbose = true; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	if (!listen_at == !connect_to) {
		usage(stderr);
		return 2;
	}
	cm = rdma_create_event_channel();
	if (!cm)
		return die("rdma_cm");
	return listen_at ? serve(listen_at) : call(connect_to, conns);
}
