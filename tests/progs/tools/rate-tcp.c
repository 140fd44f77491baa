// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rates over TCP sockets, as a program without RDMA would use them: non-blocking, edge-triggered
 * epoll that sleeps or spins, TCP_NODELAY, buffers of the kernel's default size.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "rate.h"

#define BATCH	64
#define MIN_BUF	65536	/* a stream is read in large pieces, whatever was sent */

struct sock {
	int fd;
	uint32_t at;		/* of the message that is being sent */
	bool queued;
};

static struct {
	struct run run;
	struct addrinfo *ai;
	struct sock *socks;
	int epoll;
	uint8_t *buf;
	size_t len;
	uint32_t *turns;	/* sockets that may have room, or data; first in first out */
	uint32_t first_turn, n_turns;
	struct meter meter;
	uint64_t bytes;
	struct report report;
	size_t n_report;	/* octets of it that have come */
	bool gone;
} t;

/* ---- sockets ---- */

static void look_up(const char *host, const char *port, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	int err = getaddrinfo(host, port, &hints, &t.ai);

	if (err)
		fail("%s: %s", host ? host : "any", gai_strerror(err));
}

static int listen_on(const char *addr, const char *port)
{
	int one = 1, fd;

	look_up(addr, port, AI_PASSIVE);
	fd = socket(t.ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, t.ai->ai_addr, t.ai->ai_addrlen) || listen(fd, 1024))
		fail("listening on port %s: %s", port, strerror(errno));
	return fd;
}

static void no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		fail("TCP_NODELAY: %s", strerror(errno));
}

static int connect_sock(enum job job)
{
	struct run run = t.run;
	struct hello h;
	int fd = socket(t.ai->ai_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, t.ai->ai_addr, t.ai->ai_addrlen))
		fail("connect: %s", strerror(errno));
	no_delay(fd);
	run.job = job;
	h = hello_of(&run);
	if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("send: %s", strerror(errno));
	return fd;
}

static int accept_sock(int listener, struct run *run)
{
	int fd = accept(listener, NULL, NULL);
	struct hello h;

	if (fd < 0)
		fail("accept: %s", strerror(errno));
	no_delay(fd);
	if (recv(fd, &h, sizeof(h), MSG_WAITALL) != sizeof(h))
		fail("a connection that says nothing");
	*run = run_of(&h);
	return fd;
}

static void make_socks(void)
{
	t.socks = calloc(t.run.connections, sizeof(*t.socks));
	t.turns = calloc(t.run.connections, sizeof(*t.turns));
	t.len = t.run.size > MIN_BUF ? t.run.size : MIN_BUF;
	t.buf = malloc(t.len);
	t.epoll = epoll_create1(0);
	if (!t.socks || !t.turns || !t.buf || t.epoll < 0)
		fail("no memory");
	/* Untouched, it would be one page of zeros many times, which is always in the cache. */
	memset(t.buf, 0x5a, t.len);
}

static void unblock(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		fail("O_NONBLOCK: %s", strerror(errno));
}

static void watch_socks(void)
{
	uint32_t i;

	for (i = 0; i < t.run.connections; i++) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i };

		unblock(t.socks[i].fd);
		if (epoll_ctl(t.epoll, EPOLL_CTL_ADD, t.socks[i].fd, &ev))
			fail("epoll_ctl: %s", strerror(errno));
	}
}

static void close_socks(void)
{
	uint32_t i;

	for (i = 0; i < t.run.connections; i++)
		close(t.socks[i].fd);
	close(t.epoll);
	free(t.socks);
	free(t.turns);
	free(t.buf);
}

/* ---- rates ---- */

static void queue_turn(uint32_t i)
{
	if (t.socks[i].queued)
		return;
	t.socks[i].queued = true;
	t.turns[(t.first_turn + t.n_turns++) % t.run.connections] = i;
}

static uint32_t take_turn(void)
{
	uint32_t i = t.turns[t.first_turn];

	t.first_turn = (t.first_turn + 1) % t.run.connections;
	t.n_turns--;
	t.socks[i].queued = false;
	return i;
}

/* Queues the sockets that have one of @events. */
static bool take_events(uint32_t events, int timeout_ms)
{
	struct epoll_event ev[BATCH];
	int n = epoll_wait(t.epoll, ev, BATCH, timeout_ms), i;

	if (n < 0 && errno != EINTR)
		fail("epoll_wait: %s", strerror(errno));
	for (i = 0; i < n; i++)
		if (ev[i].events & (events | EPOLLERR | EPOLLHUP))
			queue_turn(ev[i].data.u32);
	return n > 0;
}

/* True if the socket may take more. */
static bool send_some(struct sock *s)
{
	ssize_t n = send(s->fd, t.buf + s->at, t.run.size - s->at, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN)
		fail("send: %s", strerror(errno));
	if (n < 0)
		return false;
	s->at = (s->at + n) % t.run.size;
	return true;
}

/* True if there may be more. */
static bool receive_some(struct sock *s)
{
	ssize_t n = recv(s->fd, t.buf, t.len, MSG_DONTWAIT);

	if (!n || (n < 0 && errno == ECONNRESET))
		t.gone = true;
	else if (n < 0 && errno != EAGAIN)
		fail("recv: %s", strerror(errno));
	if (n <= 0)
		return false;
	t.bytes += n;
	return (size_t)n == t.len;
}

/* One operation for each queued socket, up to a batch. */
static void take_turns(bool (*some)(struct sock *s))
{
	uint32_t i;
	int n;

	for (n = 0; n < BATCH && t.n_turns; n++) {
		i = take_turn();
		if (some(&t.socks[i]))
			queue_turn(i);
	}
}

static void wait_for_turns(uint32_t events)
{
	static int64_t alive;

	if (t.n_turns) {
		alive = 0;
		take_events(events, 0);
		return;
	}
	if (take_events(events, t.run.sleep ? 100 : 0))
		alive = 0;
	else if (!alive)
		alive = now_ns();
	else if (now_ns() - alive > PATIENCE_MS * 1000000LL)
		fail("no progress for %d ms", PATIENCE_MS);
}

static bool report_has_come(void)
{
	ssize_t n = recv(t.socks[0].fd, (uint8_t *)&t.report + t.n_report,
			 sizeof(t.report) - t.n_report, MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN))
		fail("the peer has gone");
	if (n > 0)
		t.n_report += n;
	return t.n_report == sizeof(t.report);
}

static void load(void)
{
	bool over = false, reported = false;
	struct count theirs;
	uint32_t i;

	meter_start(&t.meter, t.run.tenths);
	for (i = 0; i < t.run.connections; i++)
		queue_turn(i);
	while (!over || !reported) {
		take_turns(send_some);
		wait_for_turns(EPOLLOUT);
		over = meter_look(&t.meter, 0);
		/* It comes after about as long a time. */
		if (over && !reported)
			reported = report_has_come();
	}
	theirs = count_of(&t.report);
	print_rate(&t.run, &theirs, t.meter.count.cpu_us, theirs.cpu_us);
}

static void serve_load(void)
{
	meter_start(&t.meter, t.run.tenths);
	do {
		take_turns(receive_some);
		wait_for_turns(EPOLLIN);
		if (t.gone)
			fail("the peer has gone");
	} while (!meter_look(&t.meter, t.bytes));
	t.report = report_of(&t.meter.count);
	if (send(t.socks[0].fd, &t.report, sizeof(t.report), MSG_NOSIGNAL) != sizeof(t.report))
		fail("send: %s", strerror(errno));
	/* Until the client has it. Its FIN may have come with its last octets, in one event. */
	while (!t.gone) {
		queue_turn(0);
		take_turns(receive_some);
		wait_for_turns(EPOLLIN);
	}
}

/* ---- ping-pong ---- */

/* Whoever sleeps is woken by epoll before each look at the socket. */
static void ping_begin(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (t.run.sleep && epoll_ctl(t.epoll, EPOLL_CTL_ADD, fd, &ev))
		fail("epoll_ctl: %s", strerror(errno));
}

static void ping_wait(void)
{
	struct epoll_event ev;

	if (t.run.sleep && epoll_wait(t.epoll, &ev, 1, -1) < 0 && errno != EINTR)
		fail("epoll_wait: %s", strerror(errno));
}

static bool ping_receive(int fd)
{
	size_t at = 0;
	ssize_t n;

	do {
		ping_wait();
		n = recv(fd, t.buf + at, t.run.size - at, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			return false;
		at += n > 0 ? n : 0;
	} while (at < t.run.size);
	return true;
}

static bool ping_send(int fd)
{
	size_t at = 0;
	ssize_t n;

	do {
		n = send(fd, t.buf + at, t.run.size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		at += n > 0 ? n : 0;
	} while (at < t.run.size);
	return true;
}

static void ping_client(int fd)
{
	struct pings p;

	ping_begin(fd);
	pings_start(&p, t.run.tenths);
	do {
		if (!ping_send(fd) || !ping_receive(fd))
			fail("the peer has gone");
	} while (!pings_done(&p));
	pings_print(&p, &t.run);
}

static void ping_server(int fd)
{
	ping_begin(fd);
	while (ping_receive(fd) && ping_send(fd))
		;
}

/* ---- connections ---- */

/* The server closes first, so that it is not the client's ports that run out. */
static void exchange_with_server(int fd)
{
	struct hello h;
	char c;

	if (recv(fd, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || recv(fd, &c, 1, 0))
		fail("the peer has gone");
	close(fd);
}

static void exchange_with_client(int fd)
{
	struct hello h = hello_of(&t.run);

	if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("send: %s", strerror(errno));
	close(fd);
}

static void connect_client(void)
{
	uint64_t n = 0;

	meter_start(&t.meter, t.run.tenths);
	do {
		exchange_with_server(connect_sock(JOB_CONNECTS));
	} while (!meter_look(&t.meter, ++n));
	print_connects(&t.meter.count);
	exchange_with_server(connect_sock(JOB_BYE));
}

static void connect_server(int listener, int fd)
{
	struct run run;

	do {
		exchange_with_client(fd);
		fd = accept_sock(listener, &run);
	} while (run.job != JOB_BYE);
	exchange_with_client(fd);
}

/* ---- the whole ---- */

void tcp_serve(const char *addr, const char *port, bool sleep)
{
	int listener = listen_on(addr, port), fd = accept_sock(listener, &t.run);
	struct run run;
	uint32_t i;

	t.run.sleep |= sleep;
	if (t.run.job == JOB_CONNECTS) {
		connect_server(listener, fd);
		return;
	}
	make_socks();
	t.socks[0].fd = fd;
	for (i = 1; i < t.run.connections; i++)
		t.socks[i].fd = accept_sock(listener, &run);
	if (t.run.job == JOB_PING_SEND) {
		ping_server(fd);
	} else if (t.run.job == JOB_IDLE) {
		recv(fd, t.buf, 1, 0);
	} else {
		watch_socks();
		serve_load();
	}
	close_socks();
}

void tcp_call(const struct run *run, const char *host, const char *port)
{
	uint32_t i;

	t.run = *run;
	look_up(host, port, 0);
	if (run->job == JOB_CONNECTS) {
		connect_client();
		return;
	}
	make_socks();
	for (i = 0; i < run->connections; i++)
		t.socks[i].fd = connect_sock(run->job);
	if (run->job == JOB_PING_SEND) {
		ping_client(t.socks[0].fd);
	} else if (run->job == JOB_IDLE) {
		hold_idle(run);
	} else {
		watch_socks();
		load();
	}
	close_socks();
}
