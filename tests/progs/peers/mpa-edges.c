// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Corner cases of a connection's set-up and end that no ordinary program reaches, with a plain TCP
 * socket as the peer: an end in one segment with the MPA Reply, a FIN that never arrives, one that
 * arrives long before the peer has read its data, requests in flight to a listener that is destroyed,
 * and many half-open connections. And connects with an unknown queue pair, to an unused address, and
 * from a port that TCP has in use. Both sides are this process: HOST and HOST6 are addresses of this
 * machine that a weft device has. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
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
#include "tcp.h"
#include "verdict.h"

#define FRAME		20	/* key, flags, revision, length of private data */
#define ENHANCED	4	/* IRD and ORD words */
#define PATIENCE_MS	20000
/* What a busy machine may add to a time-out; less than the time-out itself. */
#define SLACK_MS	3000

static const char *host, *port, *hole, *host6;
static struct addrinfo *addr;

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

enum end { FIN, RST, NONE };

/* Enhanced and peer-to-peer, as it was asked: a Write of no octets is to come first. */
static void put_reply_and_end(int fd, enum end end)
{
	static const uint8_t reply[FRAME + ENHANCED] = "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x80";
	struct linger at_once = { .l_onoff = 1 };
	int on = 1;

	/* What is corked leaves with the FIN. */
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	if (send(fd, reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
		fail("sending the Reply: %s", strerror(errno));
	on = 0;
	if (end == RST)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (end != FIN)
		setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	if (end != NONE)
		close(fd);
}

struct responder {
	int fd, peer;
	enum end end;
};

static void *respond(void *arg)
{
	struct responder *r = arg;

	r->peer = accept(r->fd, NULL, NULL);
	if (r->peer < 0 || !get_request(r->peer))
		fail("no MPA Request: %s", strerror(errno));
	put_reply_and_end(r->peer, r->end);
	return NULL;
}

static int listen_tcp(const struct addrinfo *ai)
{
	int fd = tcp_listen(ai->ai_addr, ai->ai_addrlen, 1), on = 1;

	/* For who wants to see how a connection began. */
	setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof(on));
	return fd;
}

/* ---- the initiator ---- */

/* Reads until the other side ends it, by FIN or RST. */
static bool they_end(int fd)
{
	uint8_t buf[64];

	while (tcp_is_readable(fd, PATIENCE_MS))
		if (recv(fd, buf, sizeof(buf), 0) <= 0)
			return true;
	return false;
}

/* Without an answer to its FIN. */
static bool they_reset(int fd, int ms)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, ms) > 0 && p.revents & (POLLERR | POLLHUP);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void begin(struct conn *c, const char *to)
{
	*c = (struct conn){ .timeout_ms = PATIENCE_MS };
	conn_resolve(c, to, port);
	conn_make_qp(c, 4, 4, 0);
}

static void connect_to(struct conn *c)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8 };

	if (rdma_connect(c->id, &param))
		fail("rdma_connect: %s", strerror(errno));
}

/* A time-out of the device. */
static int64_t option_ms(const struct conn *c, const char *name)
{
	char path[256];
	int ms = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/weft/%s",
		 ibv_get_device_name(c->id->verbs->device), name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &ms) != 1)
		fail("%s: %s", path, strerror(errno));
	fclose(f);
	return ms;
}

/* Is the ULP told that the connection, whether it saw it or not, is over? */
static bool told_of_the_end(struct conn *c)
{
	int type;

	do
		type = conn_next_event(c->events, PATIENCE_MS);
	while (type == RDMA_CM_EVENT_ESTABLISHED);
	return type >= 0;
}

static void end_behind_the_reply(const char *name, enum end how)
{
	struct responder r = { .fd = listen_tcp(addr), .end = how };
	pthread_t thread;
	struct conn c;
	bool told;

	pthread_create(&thread, NULL, respond, &r);
	begin(&c, host);
	connect_to(&c);
	told = told_of_the_end(&c);
	pthread_join(thread, NULL);
	close(r.fd);
	conn_end(&c);
	verdict(name, told ? NULL : "the ULP gets no event");
}

static const char *disconnect(struct conn *c)
{
	int64_t limit = option_ms(c, "close_timeout_ms"), took = now_ms();

	if (conn_next_event(c->events, PATIENCE_MS) != RDMA_CM_EVENT_ESTABLISHED)
		return "no connection";
	if (rdma_disconnect(c->id))
		return "rdma_disconnect fails";
	if (conn_next_event(c->events, PATIENCE_MS) != RDMA_CM_EVENT_DISCONNECTED)
		return "no end";
	took = now_ms() - took;
	if (took < limit / 2)
		return "the peer's FIN is not awaited";
	return took > limit + SLACK_MS ? "it takes longer than close_timeout_ms" : NULL;
}

/* The peer's FIN does not follow ours. */
static void disconnect_without_their_fin(void)
{
	struct responder r = { .fd = listen_tcp(addr), .end = NONE };
	const char *why;
	pthread_t thread;
	struct conn c;

	pthread_create(&thread, NULL, respond, &r);
	begin(&c, host);
	connect_to(&c);
	why = disconnect(&c);
	pthread_join(thread, NULL);
	if (!why && !(they_end(r.peer) && they_reset(r.peer, SLACK_MS)))
		why = "the connection stays half closed";
	close(r.peer);
	close(r.fd);
	conn_end(&c);
	verdict("disconnect-without-the-peers-fin", why);
}

/* ---- a peer that takes its time ---- */

#define BULK		(1 << 20)	/* octets that are written to it */
#define SIPS		12		/* in so many it reads what it has not read when it is written */
#define SIPS_A_TIMEOUT	4

static void post_bulk(struct conn *c, uint8_t *buf)
{
	struct ibv_mr *mr = conn_reg(c, buf, BULK, 0);
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = BULK, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED, .wr.rdma.rkey = 1 };
	struct ibv_send_wr *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("posting a Write: %s", strerror(errno));
}

/* Reads what of @len comes before the other side ends, by FIN if *@whole. */
static size_t sip(int fd, size_t len, bool *whole)
{
	static uint8_t buf[65536];
	ssize_t n = 1;
	size_t had;

	for (had = 0; had < len && n > 0; had += n > 0 ? n : 0)
		n = tcp_is_readable(fd, PATIENCE_MS) ?
			recv(fd, buf, len - had < sizeof(buf) ? len - had : sizeof(buf), 0) : -1;
	*whole = !n;
	return had;
}

/* The Write is complete, so TCP has it; the peer ends its side, and then reads, for @limit and more. */
static const char *drain_slowly(struct conn *c, int fd, int limit)
{
	size_t had = 0, n, piece;
	struct ibv_wc wc = { 0 };
	bool whole = false;
	int sips = 0;

	while (!conn_poll(c, &wc, 1, 50))
		had += sip(fd, BULK / 64, &whole);
	if (wc.status != IBV_WC_SUCCESS)
		return "the Write fails";
	piece = (BULK - had) / SIPS;
	shutdown(fd, SHUT_WR);
	do {
		usleep(limit * 1000 / SIPS_A_TIMEOUT);
		n = sip(fd, piece, &whole);
		had += n;
		sips++;
	} while (n == piece);
	printf("# %zu octets in %d times %d ms\n", had, sips, limit / SIPS_A_TIMEOUT);
	if (had < BULK || !whole)
		return "what was complete is lost";
	return sips < 2 * SIPS_A_TIMEOUT ? "it was not slow" : NULL;
}

static void slow_peer_has_it_all(void)
{
	static uint8_t bulk[BULK];
	struct responder r = { .fd = listen_tcp(addr), .end = NONE };
	int small = 65536;
	const char *why;
	pthread_t thread;
	struct conn c;

	setsockopt(r.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	pthread_create(&thread, NULL, respond, &r);
	begin(&c, host);
	connect_to(&c);
	pthread_join(thread, NULL);
	if (conn_next_event(c.events, PATIENCE_MS) != RDMA_CM_EVENT_ESTABLISHED)
		fail("no connection");
	post_bulk(&c, bulk);
	why = drain_slowly(&c, r.peer, (int)option_ms(&c, "close_timeout_ms"));
	close(r.peer);
	close(r.fd);
	conn_end(&c);
	verdict("slow-peer-gets-all-data", why);
}

/* The SYN is not answered. */
static void connect_to_a_black_hole(void)
{
	const char *why = NULL;
	int64_t limit, took;
	struct conn c;
	int type;

	begin(&c, hole);
	limit = option_ms(&c, "startup_timeout_ms");
	took = now_ms();
	connect_to(&c);
	type = conn_next_event(c.events, PATIENCE_MS);
	took = now_ms() - took;
	if (type != RDMA_CM_EVENT_UNREACHABLE)
		why = type < 0 ? "the ULP gets no event" : rdma_event_str(type);
	else if (took > limit)
		why = "it takes longer than startup_timeout_ms";
	conn_end(&c);
	verdict("connect-to-a-black-hole", why);
}

/* ---- the type of service ---- */

#define TOS	0x88

/* Of the SYN that began @fd. */
static int syn_tos(int fd, int family)
{
	uint8_t syn[256];
	socklen_t len = sizeof(syn);

	if (getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len) || len < 2)
		fail("TCP_SAVED_SYN: %s", strerror(errno));
	return family == AF_INET6 ? (syn[0] << 4 | syn[1] >> 4) & 0xff : syn[1];
}

static int seen_tos(const char *to)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	uint8_t tos = TOS;
	int fd, peer, seen;
	struct conn c;

	if (getaddrinfo(to, port, &hints, &ai))
		fail("%s: no such address", to);
	fd = listen_tcp(ai);
	begin(&c, to);
	if (rdma_set_option(c.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		fail("RDMA_OPTION_ID_TOS: %s", strerror(errno));
	connect_to(&c);
	peer = accept(fd, NULL, NULL);
	seen = syn_tos(peer, ai->ai_family);
	close(peer);
	close(fd);
	conn_end(&c);
	freeaddrinfo(ai);
	return seen;
}

static void type_of_service(const char *name, const char *to)
{
	verdict(name, seen_tos(to) == TOS ? NULL : "the SYN has another");
}

/* @fd hears nothing but packets of the type of service @tos. */
static void hear_only(int fd, int family, int tos)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_NET_OFF),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, family == AF_INET6 ? 4 : 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, tos, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ~0u),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
		fail("SO_ATTACH_FILTER: %s", strerror(errno));
}

/* Does the handshake with @to get through to one who hears nothing but @tos, within @ms? */
static int dial_hearing(const struct sockaddr *to, socklen_t len, int tos, int ms)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0), err = -1;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(err);

	hear_only(fd, to->sa_family, tos);
	if (fd < 0 || (connect(fd, to, len) && errno != EINPROGRESS))
		fail("connecting: %s", strerror(errno));
	if (poll(&p, 1, ms) > 0)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
	if (!err) {
		fcntl(fd, F_SETFL, 0);
		return fd;
	}
	close(fd);
	return -1;
}

static void request(int fd)
{
	static const uint8_t frame[FRAME] = "MPA ID Req Frame\x40\x01";

	if (send(fd, frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame))
		fail("sending a Request: %s", strerror(errno));
}

/* The SYN's answer, and what the child says: the Reply by which the ULP rejects. */
static const char *answers_with_tos(struct rdma_event_channel *events, const struct sockaddr *to,
				    socklen_t len)
{
	int fd = dial_hearing(to, len, 0, 1000);
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	uint8_t reply[FRAME];
	const char *why = NULL;

	if (fd >= 0)
		return "the handshake has none";
	fd = dial_hearing(to, len, TOS, PATIENCE_MS);
	if (fd < 0)
		return "the handshake has another";
	request(fd);
	if (!tcp_is_readable(events->fd, PATIENCE_MS) || rdma_get_cm_event(events, &ev) ||
	    ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		fail("no request is reported");
	id = ev->id;
	rdma_ack_cm_event(ev);
	if (rdma_reject(id, NULL, 0))
		fail("rejecting: %s", strerror(errno));
	rdma_destroy_id(id);
	if (!tcp_is_readable(fd, PATIENCE_MS) || !get(fd, reply, sizeof(reply)))
		why = "the Reply has another";
	close(fd);
	return why;
}

/* A listener's options hold for the connections that it accepts. */
static void listeners_type_of_service(const char *name, const char *at)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id;
	uint8_t tos = TOS;

	if (getaddrinfo(at, port, &hints, &ai))
		fail("%s: no such address", at);
	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) ||
	    rdma_bind_addr(id, ai->ai_addr) || rdma_listen(id, 8))
		fail("listening: %s", strerror(errno));
	verdict(name, answers_with_tos(events, ai->ai_addr, ai->ai_addrlen));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
	freeaddrinfo(ai);
}

/* A number is all that rdma_cm has of a QP that a program made by itself. */
static void connect_with_an_unknown_qpn(void)
{
	struct rdma_conn_param param = { .initiator_depth = 1 };
	struct conn c = { .timeout_ms = PATIENCE_MS };
	static const uint32_t nobodys[] = { 0, 0xfffff3, 0xffffff };
	const char *why = NULL;
	size_t i;

	for (i = 0; i < sizeof(nobodys) / sizeof(nobodys[0]) && !why; i++) {
		conn_resolve(&c, host, port);
		param.qp_num = nobodys[i];
		if (!rdma_connect(c.id, &param))
			why = "it begins";
		else if (errno != EINVAL)
			why = strerror(errno);
		rdma_destroy_id(c.id);
		rdma_destroy_event_channel(c.events);
		c.events = NULL;
	}
	verdict("connect-with-an-unknown-qpn", why);
}

/* ---- a port that TCP has given away ---- */

static void set_port(struct sockaddr_storage *a, uint16_t be_port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = be_port;
	else
		((struct sockaddr_in *)a)->sin_port = be_port;
}

/* A connection from that port of ours to @addr. Others may bind to it, too. */
static int dial_from(uint16_t be_port)
{
	int fd = socket(addr->ai_family, SOCK_STREAM, 0), on = 1;
	struct sockaddr_storage own;

	memcpy(&own, addr->ai_addr, addr->ai_addrlen);
	set_port(&own, be_port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, addr->ai_addrlen) ||
	    connect(fd, addr->ai_addr, addr->ai_addrlen))
		fail("connecting from port %u: %s", ntohs(be_port), strerror(errno));
	return fd;
}

/* The port that rdma_cm chose has a connection to the same peer: of TCP's, of which it knows not. */
static void port_in_use_to_that_peer(void)
{
	struct rdma_conn_param param = { .responder_resources = 8, .initiator_depth = 8 };
	int listener = listen_tcp(addr), other, peer;
	const char *why = NULL;
	struct conn c;

	begin(&c, host);
	other = dial_from(rdma_get_src_port(c.id));
	close(accept(listener, NULL, NULL));
	if (rdma_connect(c.id, &param)) {
		why = strerror(errno);
	} else {
		peer = accept(listener, NULL, NULL);
		if (peer < 0 || !get_request(peer))
			why = "no Request comes";
		close(peer);
	}
	conn_end(&c);
	close(other);
	close(listener);
	verdict("port-in-use-to-that-peer", why);
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

/* The listener is destroyed, and with it the requests that it has reported. */
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
			why = "an unanswered connection stays";
	verdict("requests-end-with-their-listener", why);
}

/* ---- a crowd that never says what it wants ---- */

#define BACKLOG		4
#define SILENT		64

/* Connections to @port of this machine, that TCP has accepted, and that it keeps for us. */
struct taken {
	int ours, all;
};

static struct taken count_taken(unsigned int to)
{
	unsigned int local, state, inode;
	struct taken t = { 0 };
	char line[256];
	FILE *f = fopen("/proc/net/tcp", "r");

	if (!f)
		fail("/proc/net/tcp: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %*x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %u",
			   &local, &state, &inode) != 3 || local != to)
			continue;
		/* Not the listener, nor half of a connection, nor what is left of one. */
		if (state == TCP_LISTEN || state == TCP_SYN_RECV || state == TCP_TIME_WAIT)
			continue;
		t.all++;
		t.ours += inode != 0;
	}
	fclose(f);
	return t;
}

static int begin_to_dial(const struct sockaddr *to, socklen_t len)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || (connect(fd, to, len) && errno != EINPROGRESS))
		fail("connecting: %s", strerror(errno));
	return fd;
}

/* The most of them at any time, until that is all of them. */
static struct taken watch(unsigned int to)
{
	int64_t over = now_ms() + PATIENCE_MS;
	struct taken t, most = { 0 };

	do {
		usleep(1000);
		t = count_taken(to);
		most.ours = t.ours > most.ours ? t.ours : most.ours;
		most.all = t.all > most.all ? t.all : most.all;
	} while (most.ours < SILENT && now_ms() < over);
	return most;
}

static bool none_taken(unsigned int to)
{
	int64_t over = now_ms() + PATIENCE_MS;

	while (count_taken(to).all) {
		if (now_ms() > over)
			return false;
		usleep(10000);
	}
	return true;
}

static bool is_served(struct rdma_event_channel *events, const struct sockaddr *to, socklen_t len)
{
	struct conn c = { .events = events };
	int fd = dial(to, len);
	bool served;

	request(fd);
	served = conn_next_event(c.events, PATIENCE_MS) == RDMA_CM_EVENT_CONNECT_REQUEST;
	close(fd);
	return served;
}

static const char *crowd_comes(struct rdma_event_channel *events, const struct sockaddr *to,
			       socklen_t len, unsigned int to_port)
{
	int fd[SILENT], i;
	struct taken most;
	bool served, reaped;

	for (i = 0; i < SILENT; i++)
		fd[i] = begin_to_dial(to, len);
	most = watch(to_port);
	printf("# of %d, %d were taken at a time, %d in all\n", SILENT, most.ours, most.all);
	served = is_served(events, to, len);
	/* Half of them are as silent as before, and yet have left none behind. */
	for (i = SILENT / 2; i < SILENT; i++)
		close(fd[i]);
	reaped = none_taken(to_port);
	for (i = 0; i < SILENT / 2; i++)
		close(fd[i]);
	if (most.ours < SILENT)
		return "not all are taken";
	if (!served)
		return "no peer is served beside the silent ones";
	if (!reaped)
		return "who says nothing stays";
	return is_served(events, to, len) ? NULL : "no peer is served any more";
}

static void the_silent_do_not_fill_the_backlog(void)
{
	struct sockaddr_storage to;
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id;
	const char *why;

	memcpy(&to, addr->ai_addr, addr->ai_addrlen);
	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&to) || rdma_listen(id, BACKLOG))
		fail("listening: %s", strerror(errno));
	why = crowd_comes(events, (struct sockaddr *)&to, addr->ai_addrlen, atoi(port));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
	verdict("silent-half-open-connections-do-not-fill-the-backlog", why);
}

/* Until somebody ends us. */
static int listen_ipv6_only(const char *on_port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(on_port)) };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int on = 1;

	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)) ||
	    rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, BACKLOG))
		fail("listening: %s", strerror(errno));
	return pause();
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	conn_program = "edges";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "-6"))
		return listen_ipv6_only(argv[2]);
	if (argc != 5) {
		fprintf(stderr, "mpa-edges HOST PORT HOST6 HOLE\n"
			"mpa-edges -6 PORT   listens, for IPv6 alone\n"
			"  HOLE is an address with a neighbour entry and no host\n");
		return 2;
	}
	host = argv[1];
	port = argv[2];
	host6 = argv[3];
	hole = argv[4];
	if (getaddrinfo(host, port, &hints, &addr))
		fail("%s: no such address", host);
	end_behind_the_reply("fin-after-the-reply", FIN);
	end_behind_the_reply("rst-after-the-reply", RST);
	disconnect_without_their_fin();
	slow_peer_has_it_all();
	connect_to_a_black_hole();
	connect_with_an_unknown_qpn();
	port_in_use_to_that_peer();
	type_of_service("type-of-service", host);
	type_of_service("type-of-service-ipv6", host6);
	listeners_type_of_service("listeners-type-of-service", host);
	listeners_type_of_service("listeners-type-of-service-ipv6", host6);
	the_silent_do_not_fill_the_backlog();
	requests_go_with_their_listener();
	freeaddrinfo(addr);
	return verdict_end();
}
