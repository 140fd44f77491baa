// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What rdma_cm promises of ids of datagrams (SIDR), with both ends in this process at ADDR, and plain UDP
 * sockets as other peers. TAP on stdout. Only these sockets know the wire format.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verdict.h"

#define QUIET_MS	200	/* in which nothing is to happen */
#define SOON_MS		20000
#define QKEY		0x1234567u	/* rdma_cm's */
#define ASK_LEN		284
#define REFUSED		2
#define NO_LISTENER	1

static struct sockaddr_storage addr;
static socklen_t addr_len;
static struct rdma_event_channel *passive, *active;
static struct rdma_cm_id *listener, *asker;
static struct rdma_cm_event *event;
static uint16_t port;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "weft-askers: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	va_end(ap);
	exit(1);
}

/* ---- addresses, sockets ---- */

static struct sockaddr *at_port(uint16_t number)
{
	if (addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr)->sin6_port = htons(number);
	else
		((struct sockaddr_in *)&addr)->sin_port = htons(number);
	return (struct sockaddr *)&addr;
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

/* A plain UDP socket, at a port of its own. */
static int open_socket(uint16_t *own)
{
	int fd = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (fd < 0 || bind(fd, at_port(0), addr_len) || getsockname(fd, (struct sockaddr *)&a, &len))
		die("a socket");
	*own = port_of(&a);
	return fd;
}

/* How long what comes within @ms is; -1: nothing comes. */
static ssize_t receive(int fd, uint8_t *buf, size_t len, struct sockaddr_storage *from, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	socklen_t from_len = sizeof(*from);

	if (poll(&p, 1, ms) <= 0)
		return -1;
	return recvfrom(fd, buf, len, 0, (struct sockaddr *)from, &from_len);
}

static void send_to(int fd, const uint8_t *buf, size_t len, uint16_t to)
{
	if (sendto(fd, buf, len, 0, at_port(to), addr_len) != (ssize_t)len)
		die("sendto");
}

static void make_question(uint8_t q[ASK_LEN], uint8_t number)
{
	static const uint8_t head[] = { 'w', 'e', 'S', 'I', 1, 1, 0x01, 0x11 };

	memset(q, 0, ASK_LEN);
	memcpy(q, head, sizeof(head));
	q[15] = number;
}

/* ---- events ---- */

static void done(void)
{
	if (event)
		rdma_ack_cm_event(event);
	event = NULL;
}

static bool comes(struct rdma_event_channel *c, int ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

static bool next_is(struct rdma_event_channel *c, enum rdma_cm_event_type type)
{
	done();
	if (!comes(c, SOON_MS)) {
		printf("# no event comes, and %s is due\n", rdma_event_str(type));
		return false;
	}
	if (rdma_get_cm_event(c, &event))
		die("rdma_get_cm_event");
	if (event->event == type)
		return true;
	printf("# %s, and not %s (%d)\n", rdma_event_str(event->event), rdma_event_str(type),
	       event->status);
	return false;
}

static bool fails_with(int status)
{
	if (!next_is(active, RDMA_CM_EVENT_UNREACHABLE))
		return false;
	if (event->status != status)
		printf("# status %d, and not %d\n", event->status, status);
	return event->status == status;
}

/* ---- ends ---- */

static struct ibv_qp *make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	return id->qp;
}

static struct rdma_cm_id *listen_at(uint16_t number, enum rdma_port_space ps, int backlog)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(passive, &id, NULL, ps) || rdma_bind_addr(id, at_port(number)) ||
	    rdma_listen(id, backlog))
		die("no listener");
	port = ntohs(rdma_get_src_port(id));
	return id;
}

static void listen_with(int backlog)
{
	listener = listen_at(0, RDMA_PS_UDP, backlog);
}

static struct rdma_cm_id *resolve(uint16_t to)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(active, &id, NULL, RDMA_PS_UDP) ||
	    rdma_resolve_addr(id, NULL, at_port(to), 2000))
		die("rdma_resolve_addr");
	if (!next_is(active, RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, 2000) ||
	    !next_is(active, RDMA_CM_EVENT_ROUTE_RESOLVED))
		die("no route");
	done();
	make_qp(id);
	return id;
}

static void ask(uint16_t to, const char *words)
{
	struct rdma_conn_param p = { .private_data = words, .private_data_len = strlen(words) };

	asker = resolve(to);
	if (rdma_connect(asker, &p))
		die("rdma_connect");
}

static int accept_with(struct rdma_cm_id *id, const char *words)
{
	struct rdma_conn_param p = {
		.private_data = words, .private_data_len = strlen(words),
		.qp_num = make_qp(id)->qp_num,
	};

	return rdma_accept(id, &p);
}

static void drop(struct rdma_cm_id **id)
{
	done();
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	if (rdma_destroy_id(*id))
		die("rdma_destroy_id");
	*id = NULL;
}

static bool says(const char *words)
{
	const struct rdma_ud_param *u = &event->param.ud;

	return u->private_data_len == strlen(words) &&
	       !memcmp(u->private_data, words, u->private_data_len);
}

/* The last octets of a GID are those of the address. */
static bool leads_there(const struct ibv_ah_attr *ah)
{
	const void *ip = addr.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&addr)->sin6_addr
						    : (void *)&((struct sockaddr_in *)&addr)->sin_addr;
	size_t len = addr.ss_family == AF_INET6 ? 16 : 4;

	return ah->is_global && ah->port_num == 1 && !memcmp(ah->grh.dgid.raw + 16 - len, ip, len);
}

/* ---- cases ---- */

static bool answer_leads_to_the_qp(void)
{
	const struct rdma_ud_param *u;
	struct rdma_cm_id *child;
	uint32_t qpn;
	bool ok;

	listen_with(4);
	ask(port, "is anyone there?");
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST) || !says("is anyone there?"))
		return false;
	child = event->id;
	ok = child->qp_type == IBV_QPT_UD && !accept_with(child, "it is me");
	qpn = child->qp->qp_num;
	ok = ok && next_is(active, RDMA_CM_EVENT_ESTABLISHED) && says("it is me");
	u = &event->param.ud;
	ok = ok && u->qp_num == qpn && u->qkey == QKEY && leads_there(&u->ah_attr);
	drop(&child);
	return ok;
}

/* As long as rdma_cm's commands can say. */
static bool longest_words(void)
{
	char words[256];
	struct rdma_cm_id *child;
	bool ok;

	memset(words, 'w', 255);
	words[255] = 0;
	listen_with(4);
	ask(port, words);
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST) || !says(words))
		return false;
	child = event->id;
	ok = !accept_with(child, words) && next_is(active, RDMA_CM_EVENT_ESTABLISHED) && says(words);
	drop(&child);
	return ok;
}

static bool refusal_is_told(void)
{
	struct rdma_cm_id *child;
	bool ok;

	listen_with(4);
	ask(port, "");
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		return false;
	child = event->id;
	ok = !rdma_reject(child, "go away", 7) && fails_with(REFUSED) && says("go away");
	drop(&child);
	return ok;
}

static bool dropped_request_is_refused(void)
{
	struct rdma_cm_id *child;

	listen_with(4);
	ask(port, "");
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		return false;
	child = event->id;
	drop(&child);
	return fails_with(REFUSED);
}

static bool unseen_request_is_refused(void)
{
	listen_with(4);
	ask(port, "");
	if (!comes(passive, SOON_MS))
		return false;
	drop(&listener);
	return fails_with(REFUSED);
}

static bool without_a_listener(void)
{
	uint16_t to;
	int fd = open_socket(&to);
	bool ok;

	/* The number stays ours: a socket that is connected to itself receives from no other. */
	if (connect(fd, at_port(to), addr_len))
		die("connect");
	ask(to, "");
	ok = fails_with(NO_LISTENER);
	close(fd);
	return ok;
}

static bool an_unknown_qp_cannot_answer(void)
{
	struct rdma_conn_param p = { .qp_num = 0xfffff0 };
	struct rdma_cm_id *child;
	bool ok;

	listen_with(4);
	ask(port, "");
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		return false;
	child = event->id;
	ok = rdma_accept(child, &p) && errno == EINVAL;
	ok = ok && !accept_with(child, "") && next_is(active, RDMA_CM_EVENT_ESTABLISHED);
	drop(&child);
	return ok;
}

/* It asks several times, with the same words, and gives up in time: accept_timeout_ms is 5000. */
static bool silent_peer_is_given_up(void)
{
	struct sockaddr_storage from;
	uint8_t first[ASK_LEN + 1], more[ASK_LEN + 1];
	uint16_t to;
	int fd = open_socket(&to), n = 1;
	bool ok;

	ask(to, "hello?");
	ok = receive(fd, first, sizeof(first), &from, SOON_MS) == ASK_LEN;
	ok = ok && fails_with(-ETIMEDOUT);
	for (; ok && receive(fd, more, sizeof(more), &from, 0) == ASK_LEN; n++)
		ok = !memcmp(first, more, ASK_LEN);
	close(fd);
	return ok && n >= 3 && n <= 10;
}

/* A repeated request gets the same reply, of the request's length, and causes no second event. */
static bool repeated_question_is_told_once(void)
{
	uint8_t q[ASK_LEN], first[ASK_LEN + 1], again[ASK_LEN + 1];
	struct sockaddr_storage from;
	struct rdma_cm_id *child;
	uint16_t own;
	int fd = open_socket(&own), i;
	bool ok;

	listen_with(4);
	make_question(q, 7);
	for (i = 0; i < 3; i++)
		send_to(fd, q, sizeof(q), port);
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		return false;
	child = event->id;
	ok = !comes(passive, QUIET_MS) && receive(fd, first, sizeof(first), &from, 0) < 0;
	ok = ok && !accept_with(child, "me");
	ok = ok && receive(fd, first, sizeof(first), &from, SOON_MS) == ASK_LEN && port_of(&from) == port;
	ok = ok && first[5] == 2 && !first[24] && first[25] == 2 && !memcmp(first + 28, "me", 2);
	drop(&child);
	for (i = 0; ok && i < 3; i++) {
		send_to(fd, q, sizeof(q), port);
		ok = receive(fd, again, sizeof(again), &from, SOON_MS) == ASK_LEN &&
		     !memcmp(first, again, ASK_LEN);
	}
	ok = ok && !comes(passive, QUIET_MS) && receive(fd, again, sizeof(again), &from, 0) < 0;
	close(fd);
	return ok;
}

static bool invalid_requests_are_not_answered(void)
{
	uint8_t q[ASK_LEN + 1] = { 0 }, got[ASK_LEN + 1];
	struct sockaddr_storage from;
	uint16_t own;
	int fd = open_socket(&own), bit;
	size_t len;
	bool ok;

	listen_with(64);
	make_question(q, 1);
	for (len = 0; len <= sizeof(q); len += len < 32 || len > 280 ? 1 : 31)
		if (len != ASK_LEN)
			send_to(fd, q, len, port);
	for (bit = 0; bit < 64; bit++) {
		q[bit / 8] ^= 1 << bit % 8;
		send_to(fd, q, ASK_LEN, port);
		q[bit / 8] ^= 1 << bit % 8;
	}
	/* An answer is no question. */
	q[5] = 2;
	q[19] = 1;
	send_to(fd, q, ASK_LEN, port);
	ok = !comes(passive, QUIET_MS) && receive(fd, got, sizeof(got), &from, 0) < 0;
	close(fd);
	/* A valid request is answered. */
	ask(port, "me");
	ok = ok && next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST) && says("me");
	if (ok) {
		struct rdma_cm_id *child = event->id;

		drop(&child);
	}
	return ok;
}

/* @least come soon, and of others those that are there. */
static uint32_t take_requests(struct rdma_cm_id **child, uint32_t least, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && comes(passive, n < least ? SOON_MS : QUIET_MS) &&
	       next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		child[n++] = event->id;
	done();
	return n;
}

/* Questions 1 to 20; all have been read when this returns, for the repeated one behind them was. */
static void send_many(int fd, const uint8_t known[ASK_LEN])
{
	uint8_t q[ASK_LEN], got[ASK_LEN + 1];
	struct sockaddr_storage from;
	int i;

	for (i = 1; i <= 20; i++) {
		make_question(q, (uint8_t)i);
		send_to(fd, q, sizeof(q), port);
	}
	send_to(fd, known, ASK_LEN, port);
	if (receive(fd, got, sizeof(got), &from, SOON_MS) != ASK_LEN)
		die("no answer");
}

/* Requests beyond the backlog are dropped; one that is repeated later is taken. */
static bool backlog_bounds_what_waits(void)
{
	struct rdma_cm_id *child[40] = { 0 };
	struct sockaddr_storage from;
	uint8_t known[ASK_LEN], got[ASK_LEN + 1];
	uint32_t n, more, i;
	uint16_t own;
	int fd = open_socket(&own);

	listen_with(4);
	make_question(known, 100);
	send_to(fd, known, ASK_LEN, port);
	if (take_requests(child, 1, 1) != 1)
		return false;
	drop(&child[0]);
	if (receive(fd, got, sizeof(got), &from, SOON_MS) != ASK_LEN)
		return false;
	send_many(fd, known);
	n = take_requests(child, 4, 40);
	send_many(fd, known);
	more = take_requests(child + n, 4, 40 - n);
	for (i = 0; i < n + more; i++)
		drop(&child[i]);
	close(fd);
	if (n != 4 || more != 4)
		printf("# %u, then %u\n", n, more);
	return n == 4 && more == 4;
}

static bool request_outlives_its_listener(void)
{
	struct rdma_cm_id *child;
	bool ok;

	listen_with(4);
	ask(port, "");
	if (!next_is(passive, RDMA_CM_EVENT_CONNECT_REQUEST))
		return false;
	child = event->id;
	drop(&listener);
	ok = !accept_with(child, "late") && next_is(active, RDMA_CM_EVENT_ESTABLISHED) && says("late");
	drop(&child);
	/* And then the port is free. */
	if (rdma_create_id(passive, &listener, NULL, RDMA_PS_UDP))
		die("rdma_create_id");
	return ok && !rdma_bind_addr(listener, at_port(port));
}

static bool listeners_of_both_kinds_share_a_number(void)
{
	struct rdma_cm_id *tcp, *udp;
	bool ok;

	/* TCP chooses: what is left of its old connections has many numbers. */
	tcp = listen_at(0, RDMA_PS_TCP, 4);
	listener = listen_at(port, RDMA_PS_UDP, 4);
	if (rdma_create_id(passive, &udp, NULL, RDMA_PS_UDP))
		die("rdma_create_id");
	ok = rdma_bind_addr(udp, at_port(port)) && errno == EADDRINUSE;
	drop(&tcp);
	drop(&udp);
	return ok;
}

/* Of an answer that is right but for where it comes from, or for its number. */
static bool only_the_peer_is_heard(void)
{
	uint8_t q[ASK_LEN + 1], forged[ASK_LEN];
	struct sockaddr_storage from;
	uint16_t to, other;
	int fd = open_socket(&to), third = open_socket(&other);
	bool ok;

	ask(to, "");
	ok = receive(fd, q, sizeof(q), &from, SOON_MS) == ASK_LEN;
	memcpy(forged, q, ASK_LEN);
	forged[5] = 2;
	forged[19] = 9;
	send_to(third, forged, ASK_LEN, port_of(&from));
	forged[15] ^= 1;
	send_to(fd, forged, ASK_LEN, port_of(&from));
	forged[15] ^= 1;
	forged[7] ^= 1;
	send_to(fd, forged, ASK_LEN, port_of(&from));
	forged[7] ^= 1;
	send_to(fd, forged, ASK_LEN - 1, port_of(&from));
	ok = ok && !comes(active, QUIET_MS);
	send_to(fd, forged, ASK_LEN, port_of(&from));
	ok = ok && next_is(active, RDMA_CM_EVENT_ESTABLISHED) && event->param.ud.qp_num == 9;
	/* Once. */
	send_to(fd, forged, ASK_LEN, port_of(&from));
	ok = ok && !comes(active, QUIET_MS);
	close(fd);
	close(third);
	return ok;
}

/* While it asks; afterwards nothing is reported. */
static bool asker_may_go(void)
{
	uint16_t to;
	int fd = open_socket(&to);
	uint8_t q[ASK_LEN + 1];
	struct sockaddr_storage from;
	bool ok;

	ask(to, "");
	ok = receive(fd, q, sizeof(q), &from, SOON_MS) == ASK_LEN;
	drop(&asker);
	while (receive(fd, q, sizeof(q), &from, 0) > 0)
		;
	ok = ok && receive(fd, q, sizeof(q), &from, 3 * QUIET_MS) < 0;
	close(fd);
	return ok && !comes(active, 0);
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "the-answer-leads-to-the-qp", answer_leads_to_the_qp },
	{ "the-longest-private-data", longest_words },
	{ "a-rejection-is-reported", refusal_is_told },
	{ "a-request-that-is-dropped-is-refused", dropped_request_is_refused },
	{ "an-unread-request-is-refused", unseen_request_is_refused },
	{ "without-a-listener-the-rejection-is-immediate", without_a_listener },
	{ "an-unknown-qp-cannot-answer", an_unknown_qp_cannot_answer },
	{ "a-silent-peer-is-given-up", silent_peer_is_given_up },
	{ "a-repeated-request-is-reported-once", repeated_question_is_told_once },
	{ "invalid-requests-are-not-answered", invalid_requests_are_not_answered },
	{ "the-backlog-bounds-what-waits", backlog_bounds_what_waits },
	{ "a-request-outlives-its-listener", request_outlives_its_listener },
	{ "listeners-of-both-kinds-share-a-number", listeners_of_both_kinds_share_a_number },
	{ "only-the-peer-is-heard", only_the_peer_is_heard },
	{ "the-client-may-be-destroyed", asker_may_go },
};

int main(int argc, char **argv)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	unsigned int i, n = sizeof(cases) / sizeof(cases[0]);
	struct addrinfo *info;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || argc > 3 || getaddrinfo(argv[1], NULL, &hints, &info)) {
		fprintf(stderr, "usage: weft-askers ADDR [CASE]\n");
		return 2;
	}
	memcpy(&addr, info->ai_addr, info->ai_addrlen);
	addr_len = info->ai_addrlen;
	freeaddrinfo(info);
	passive = rdma_create_event_channel();
	active = rdma_create_event_channel();
	if (!passive || !active)
		die("rdma_create_event_channel");
	verdict_only(argv[2]);
	for (i = 0; i < n; i++) {
		bool ok;

		if (!verdict_wants(cases[i].name))
			continue;
		ok = cases[i].run();
		drop(&asker);
		drop(&listener);
		verdict_if(cases[i].name, ok);
	}
	rdma_destroy_event_channel(passive);
	rdma_destroy_event_channel(active);
	return verdict_end();
}
