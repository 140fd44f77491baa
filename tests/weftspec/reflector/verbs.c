/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-reflector: the ULP behind the peer under test, for any verbs device.
 * What it does is described in reflector.h.  One thread, one poll loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "verbs.h"

#define LINKS_MAX 2048

static struct link *links[LINKS_MAX];
static struct rdma_event_channel *cm;
static unsigned long clock_;
static uint8_t want_ird = 16, want_ord = 16;
static bool calling;
static int own_pd_len = -1; /* --pd-len: that many octets instead of TABLE */

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
	if (!p.responder_resources && !(q.flags & REFL_F_MIRROR))
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
		session_note(l->s, l->idx, REFL_EV_CM, 0, v, NULL);
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
