/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-reflector: the ULP behind the peer under test, for any verbs device.
 * The protocol is reflector.h's, its core core.h's.  One thread, one poll loop.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

#define LINKS_MAX 2048
#define RESOLVE_MS 60000

static struct link *links[LINKS_MAX];
static struct rdma_event_channel *cm;
static uint8_t want_ird = 16, want_ord = 16;
static bool is_initiator;
static int own_pd_len = -1; /* --pd-len: that many octets instead of TABLE */

static void link_free(struct link *l)
{
	if (l->cq && !l->mute)
		drain_completions(l);
	destroy_queues(l);
	if (l->s)
		reflector_leave(&l->ulp);
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
			l->ulp.front = l;
			id->context = l;
			return links[i] = l;
		}
	return NULL;
}

int join_session(struct link *l, const struct reflector_request *q)
{
	l->s = session_get(l->verbs, q->cookie);
	if (!l->s)
		return -1;
	l->ulp.flags = q->flags;
	reflector_join(&l->ulp, &l->s->memory, q->recv_count);
	if (create_queues(l))
		return -1;
	return reflector_post_recvs(&l->ulp, l->ulp.recv_count);
}

static void on_request(struct rdma_cm_event *e)
{
	const struct rdma_conn_param *theirs = &e->param.conn;
	struct reflector_request q;
	uint8_t pd[256];
	struct rdma_conn_param p = {
		.responder_resources = theirs->responder_resources,
		.initiator_depth = theirs->initiator_depth,
		.private_data = pd,
	};
	struct link *l = link_new(e->id);

	if (!l) {
		rdma_reject(e->id, NULL, 0);
		rdma_destroy_id(e->id);
		return;
	}
	l->verbs = e->id->verbs;
	reflector_read_request(theirs->private_data, theirs->private_data_len,
			       &q);
	/* MPA Rev 1 names no depths: serve Reads there, too. */
	if (!p.responder_resources && !(q.flags & REFL_F_MIRROR))
		p.responder_resources = want_ird;
	if (q.flags & REFL_F_REJECT || join_session(l, &q)) {
		rdma_reject(l->id, "refused", 7);
		link_free(l);
		return;
	}
	p.private_data_len = reflector_write_private_data(&l->ulp, q.pd_len, pd,
							  sizeof(pd));
	if (rdma_accept(l->id, &p)) {
		if (verbose)
			perror("accept");
		link_free(l);
		return;
	}
	if (q.flags & REFL_F_EARLY)
		reflector_send_hello(&l->ulp);
}

static int on_route(struct link *l)
{
	struct reflector_request q = { .cookie = (uint64_t)getpid() << 20 };
	uint8_t pd[256];
	struct rdma_conn_param p = { .responder_resources = want_ird,
				     .initiator_depth = want_ord,
				     .private_data = pd };

	l->verbs = l->id->verbs;
	if (join_session(l, &q))
		return -1;
	p.private_data_len = reflector_write_private_data(&l->ulp, own_pd_len,
							  pd, sizeof(pd));
	return rdma_connect(l->id, &p);
}

static void on_cm(struct rdma_cm_event *e)
{
	struct link *l = e->id->context;
	uint32_t v[3] = { e->event, 0, (uint32_t)e->status };
	bool ended = false;

	if (verbose)
		fprintf(stderr, "cm %s %d\n", rdma_event_str(e->event), e->status);
	switch (e->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(e);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ended = rdma_resolve_route(e->id, RESOLVE_MS) != 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ended = on_route(l) != 0;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (is_initiator)
			reflector_send_hello(&l->ulp);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		drain_completions(l);
		reflector_note(&l->ulp, REFL_EV_CM, 0, v, NULL);
		rdma_disconnect(l->id);
		ended = true;
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		ended = true;
		break;
	default:
		break;
	}
	if (ended && l)
		l->dead = true; /* its event must be acknowledged first */
}

static void free_dead_links(void)
{
	for (int i = 0; i < LINKS_MAX; i++)
		if (links[i] && links[i]->dead)
			link_free(links[i]);
}

static unsigned int count_links(void)
{
	unsigned int n = 0;

	for (int i = 0; i < LINKS_MAX; i++)
		n += links[i] != NULL;
	return n;
}

static void poll_loop(bool forever)
{
	static struct pollfd fd[LINKS_MAX + 1];
	static struct link *of[LINKS_MAX + 1];

	while (forever || count_links()) {
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
				on_completion_event(of[i]);
		if (fd[0].revents && !rdma_get_cm_event(cm, &e)) {
			on_cm(e);
			rdma_ack_cm_event(e);
		}
		free_dead_links();
	}
}

static int split_address(char *s, char **host, char **port)
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

static int report_errno(const char *what)
{
	fprintf(stderr, "weft-reflector: %s: %s\n", what, strerror(errno));
	return 1;
}

static int resolve_address(char *where, struct rdma_addrinfo **ai, int flags)
{
	struct rdma_addrinfo hint = { .ai_flags = flags,
				      .ai_port_space = RDMA_PS_TCP };
	char *host, *port;

	if (split_address(where, &host, &port))
		return -1;
	return rdma_getaddrinfo(*host ? host : NULL, port, &hint, ai);
}

static int serve_without_cm(char *where)
{
	char *host, *port;

	if (split_address(where, &host, &port) || serve_by_hand(host, port))
		return report_errno(where);
	return 0;
}

static int listen_and_serve(char *where)
{
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;

	if (resolve_address(where, &ai, RAI_PASSIVE))
		return report_errno(where);
	if (rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, ai->ai_src_addr) || rdma_listen(id, 128))
		return report_errno("listen");
	puts("ready");
	fflush(stdout);
	poll_loop(true);
	return 0;
}

static int connect_all(char *where, int conns)
{
	struct rdma_addrinfo *ai;

	if (resolve_address(where, &ai, 0))
		return report_errno(where);
	is_initiator = true;
	while (conns--) {
		struct rdma_cm_id *id;

		if (rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) || !link_new(id) ||
		    rdma_resolve_addr(id, NULL, ai->ai_dst_addr, RESOLVE_MS))
			return report_errno("connect");
	}
	poll_loop(false);
	return 0;
}

static void usage(FILE *f)
{
	fputs("usage: weft-reflector --listen [ADDR]:PORT\n"
	      "       weft-reflector --connect HOST:PORT [--conns N] [--ird N]\n"
	      "                      [--ord N] [--pd-len N]\n"
	      "       weft-reflector --by-hand [ADDR]:PORT\n"
	      "  --imm: the device speaks RFC 7306 Immediate Data; -v: tell\n", f);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "listen", 1, 0, 'l' }, { "connect", 1, 0, 'c' },
		{ "conns", 1, 0, 'n' }, { "ird", 1, 0, 'i' },
		{ "ord", 1, 0, 'o' }, { "pd-len", 1, 0, 'p' },
		{ "imm", 0, 0, 'm' }, { "verbose", 0, 0, 'v' },
		{ "by-hand", 1, 0, 'b' }, { "help", 0, 0, 'h' }, { 0 },
	};
	char *listen_at = NULL, *connect_to = NULL, *meet_at = NULL;
	int opt, conns = 1;

	while ((opt = getopt_long(argc, argv, "vh", opts, NULL)) != -1)
		switch (opt) {
		case 'l': listen_at = optarg; break;
		case 'c': connect_to = optarg; break;
		case 'b': meet_at = optarg; break;
		case 'n': conns = atoi(optarg); break;
		case 'i': want_ird = atoi(optarg); break;
		case 'o': want_ord = atoi(optarg); break;
		case 'p': own_pd_len = atoi(optarg); break;
		case 'm': declares_imm = true; break;
		case 'v': verbose = true; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	if (!!listen_at + !!connect_to + !!meet_at != 1) {
		usage(stderr);
		return 2;
	}
	if (meet_at)
		return serve_without_cm(meet_at);
	cm = rdma_create_event_channel();
	if (!cm)
		return report_errno("rdma_cm");
	return listen_at ? listen_and_serve(listen_at) : connect_all(connect_to, conns);
}
