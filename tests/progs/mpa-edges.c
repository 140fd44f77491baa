// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Moments of a connection's set-up that no peer's program hits by itself, made by a
 * plain TCP socket on the other side: the end that comes in one segment with the MPA
 * Reply, and requests that are on their way to a listener when it goes. Both sides
 * are this process: HOST is an address of this machine that an RDMA device has. TAP.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

#define FRAME		20	/* key, flags, revision, length of private data */
#define ENHANCED	4	/* IRD and ORD words */
#define PATIENCE_MS	20000

static const char *host, *port;
static struct addrinfo *addr;
static int n_tests;

static void verdict(const char *name, const char *why)
{
	n_tests++;
	if (why)
		printf("not ok %d - %s: %s\n", n_tests, name, why);
	else
		printf("ok %d - %s\n", n_tests, name);
}

/* ---- the responder: a TCP socket that answers one Request and ends ---- */

static bool get(int fd, uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = recv(fd, p, len, 0);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool get_request(int fd)
{
	uint8_t frame[FRAME], pd[512];
	size_t len;

	if (!get(fd, frame, sizeof(frame)))
		return false;
	len = (size_t)frame[18] << 8 | frame[19];
	return len <= sizeof(pd) && get(fd, pd, len);
}

/* Enhanced and peer-to-peer, as it was asked: a Write of no octets is to come first. */
static void put_reply_and_end(int fd, bool reset)
{
	static const uint8_t reply[FRAME + ENHANCED] = "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x80";
	struct linger at_once = { .l_onoff = 1 };
	int on = 1;

	/* What is corked leaves with the FIN. */
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	if (send(fd, reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
		fail("sending the Reply: %s", strerror(errno));
	if (reset) {
		on = 0;
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	}
	close(fd);
}

struct responder {
	int fd;
	bool reset;
};

static void *respond(void *arg)
{
	struct responder *r = arg;
	int fd = accept(r->fd, NULL, NULL);

	if (fd < 0 || !get_request(fd))
		fail("no MPA Request: %s", strerror(errno));
	put_reply_and_end(fd, r->reset);
	return NULL;
}

static int listen_tcp(void)
{
	int fd = socket(addr->ai_family, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, addr->ai_addr, addr->ai_addrlen) || listen(fd, 1))
		fail("listening: %s", strerror(errno));
	return fd;
}

/* ---- the initiator ---- */

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* Is the ULP told that the connection, whether it saw it or not, is over? */
static bool told_of_the_end(struct conn *c)
{
	struct rdma_cm_event *ev;
	enum rdma_cm_event_type type;

	while (readable(c->events->fd, PATIENCE_MS)) {
		if (rdma_get_cm_event(c->events, &ev))
			fail("rdma_get_cm_event: %s", strerror(errno));
		type = ev->event;
		rdma_ack_cm_event(ev);
		if (type != RDMA_CM_EVENT_ESTABLISHED)
			return true;
	}
	return false;
}

static void end_behind_the_reply(const char *name, bool reset)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8 };
	struct responder r = { .fd = listen_tcp(), .reset = reset };
	struct conn c = { .timeout_ms = PATIENCE_MS };
	pthread_t thread;
	bool told;

	pthread_create(&thread, NULL, respond, &r);
	conn_resolve(&c, host, port);
	conn_make_qp(&c, 4, 4, 0);
	if (rdma_connect(c.id, &param))
		fail("rdma_connect: %s", strerror(errno));
	told = told_of_the_end(&c);
	pthread_join(thread, NULL);
	close(r.fd);
	conn_close(&c);
	rdma_destroy_event_channel(c.events);
	verdict(name, told ? NULL : "the ULP hears nothing");
}

/* ---- requests that a listener leaves behind ---- */

/* iw_cm handles one event after another: @crowd's requests keep it from @small's. */
#define CROWD		128
#define SMALL		4
#define PORTS		32	/* tried for a listener */

static int dial(const struct sockaddr *to, socklen_t len)
{
	int fd = socket(to->sa_family, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || connect(fd, to, len))
		fail("connecting: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void request(int fd)
{
	static const uint8_t frame[FRAME] = "MPA ID Req Frame\x40\x01";

	if (send(fd, frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame))
		fail("sending a Request: %s", strerror(errno));
}

/* Reads until the other side ends it, by FIN or RST. */
static bool they_end(int fd)
{
	uint8_t buf[64];

	while (readable(fd, PATIENCE_MS))
		if (recv(fd, buf, sizeof(buf), 0) <= 0)
			return true;
	return false;
}

struct target {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	int fd[CROWD], n;
};

/*
 * rdma_cm chooses among the ports that it knows of; TCP may have given one of those away,
 * to one of our own connections perhaps: then another.
 */
static bool listen_somewhere(struct target *t, struct sockaddr *any_port)
{
	if (rdma_create_id(t->events, &t->id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id: %s", strerror(errno));
	if (!rdma_bind_addr(t->id, any_port) && !rdma_listen(t->id, 2 * CROWD))
		return true;
	if (errno != EADDRINUSE)
		fail("listening: %s", strerror(errno));
	rdma_destroy_id(t->id);
	return false;
}

/* A listener on a port of its own, and @n connections that have not yet said a word. */
static void target_open(struct target *t, int n)
{
	struct sockaddr_storage to;
	int tries = PORTS;

	memcpy(&to, addr->ai_addr, addr->ai_addrlen);
	((struct sockaddr_in *)&to)->sin_port = 0;
	t->events = rdma_create_event_channel();
	if (!t->events)
		fail("rdma_create_event_channel: %s", strerror(errno));
	while (!listen_somewhere(t, (struct sockaddr *)&to))
		if (!--tries)
			fail("listening: no port is free");
	((struct sockaddr_in *)&to)->sin_port = rdma_get_src_port(t->id);
	for (t->n = 0; t->n < n; t->n++)
		t->fd[t->n] = dial((struct sockaddr *)&to, addr->ai_addrlen);
}

static void target_request(struct target *t)
{
	int i;

	for (i = 0; i < t->n; i++)
		request(t->fd[i]);
}

/* The listener goes, and with it those of its requests that it was told of. */
static void target_close(struct target *t)
{
	rdma_destroy_id(t->id);
	rdma_destroy_event_channel(t->events);
}

/* Does the other side end them all? */
static bool target_ended(struct target *t)
{
	bool ended = true;

	while (t->n--) {
		ended = ended && they_end(t->fd[t->n]);
		close(t->fd[t->n]);
	}
	return ended;
}

/* The listener goes @us after its requests came, and these after the crowd's. */
static bool requests_end(useconds_t us)
{
	static struct target crowd, small;
	bool ended;

	target_open(&crowd, CROWD);
	target_open(&small, SMALL);
	target_request(&crowd);
	target_request(&small);
	usleep(us);
	target_close(&small);
	target_close(&crowd);
	ended = target_ended(&small);
	return target_ended(&crowd) && ended;
}

static void requests_go_with_their_listener(void)
{
	static const useconds_t after[] = { 1000, 2000, 4000, 8000, 16000, 32000 };
	const char *why = NULL;
	size_t i;

	for (i = 0; i < sizeof(after) / sizeof(after[0]) && !why; i++)
		if (!requests_end(after[i]))
			why = "a connection stays that nobody will answer";
	verdict("requests-go-with-their-listener", why);
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	conn_program = "edges";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3) {
		fprintf(stderr, "mpa-edges HOST PORT\n");
		return 2;
	}
	host = argv[1];
	port = argv[2];
	if (getaddrinfo(host, port, &hints, &addr))
		fail("%s: no such address", host);
	printf("1..3\n");
	end_behind_the_reply("fin-behind-the-reply", false);
	end_behind_the_reply("rst-behind-the-reply", true);
	requests_go_with_their_listener();
	freeaddrinfo(addr);
	return 0;
}
