/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include "conn.h"

#define LOG_MAX (8u << 20) /* a larger capture does not help */

static double seconds_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

double now(void)
{
	static double began;

	if (!began)
		began = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_MONOTONIC);
	return began + seconds_of(CLOCK_MONOTONIC);
}

void nap_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static void grow_buffer(uint8_t **buf, size_t *cap, size_t need)
{
	if (need <= *cap)
		return;
	*cap = need * 2;
	*buf = realloc(*buf, *cap);
	if (!*buf)
		abort();
}

static void log_event(struct conn *k, enum wire_kind kind, bool out,
		      const uint8_t *buf, size_t len)
{
	size_t bytes = k->ev_cap * sizeof(*k->ev);

	if (k->log_len + len > LOG_MAX)
		return;
	grow_buffer((uint8_t **)&k->ev, &bytes, (k->nev + 1) * sizeof(*k->ev));
	k->ev_cap = bytes / sizeof(*k->ev);
	grow_buffer(&k->log, &k->log_cap, k->log_len + len + 1);
	if (len)
		memcpy(k->log + k->log_len, buf, len);
	k->ev[k->nev++] = (struct wire_event){ kind, out, now(), k->log_len,
					       len };
	k->log_len += len;
}

static struct conn *conn_new(int fd, bool dialed)
{
	struct conn *k = calloc(1, sizeof(*k));
	socklen_t len = sizeof(k->local);
	int one = 1;

	if (!k)
		abort();
	k->fd = fd;
	k->dialed = dialed;
	getsockname(fd, (struct sockaddr *)&k->local, &len);
	len = sizeof(k->peer);
	getpeername(fd, (struct sockaddr *)&k->peer, &len);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	log_event(k, WIRE_OPEN, dialed, NULL, 0);
	return k;
}

static int wait_connect(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&p, 1, timeout_ms) <= 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	errno = err;
	return err ? -1 : 0;
}

/* The socket's first sequence number, through the kernel's repair mode. */
static int set_isn(int fd, uint32_t isn)
{
	int on = 1, off = 0, queue = TCP_SEND_QUEUE;

	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue,
		       sizeof(queue)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &isn, sizeof(isn)))
		return -1;
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off));
}

static int dial_address(const struct addrinfo *ai, const struct dial *d)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -1;
	if (d->maxseg)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &d->maxseg,
			   sizeof(d->maxseg));
	if (d->rcvbuf)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &d->rcvbuf,
			   sizeof(d->rcvbuf));
	if (d->set_isn && set_isn(fd, d->isn))
		goto bad;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen) ||
	    (errno == EINPROGRESS && !wait_connect(fd, d->timeout_ms)))
		return fd;
bad:
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

struct conn *conn_dial(const struct dial *d)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *all, *ai;
	int fd = -1;

	if (getaddrinfo(d->host, d->port, &hint, &all)) {
		errno = EHOSTUNREACH;
		return NULL;
	}
	for (ai = all; ai && fd < 0; ai = ai->ai_next)
		fd = dial_address(ai, d);
	freeaddrinfo(all);
	return fd < 0 ? NULL : conn_new(fd, true);
}

int conn_listen(const char *port, int *got, int maxseg)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM,
				 .ai_family = AF_INET6,
				 .ai_flags = AI_PASSIVE }, *ai;
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	int fd, one = 1, zero = 0;

	if (getaddrinfo(NULL, port, &hint, &ai)) {
		hint.ai_family = AF_INET;
		if (getaddrinfo(NULL, port, &hint, &ai))
			return -1;
	}
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if (maxseg)
			setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &maxseg,
				   sizeof(maxseg));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 64)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(ai);
	if (fd >= 0 && !getsockname(fd, (struct sockaddr *)&a, &len))
		*got = ntohs(a.ss_family == AF_INET6 ?
			     ((struct sockaddr_in6 *)&a)->sin6_port :
			     ((struct sockaddr_in *)&a)->sin_port);
	return fd;
}

struct conn *conn_accept(int lfd, int timeout_ms)
{
	struct pollfd p = { .fd = lfd, .events = POLLIN };
	int fd;

	if (poll(&p, 1, timeout_ms) <= 0)
		return NULL;
	fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
	return fd < 0 ? NULL : conn_new(fd, false);
}

void conn_free(struct conn *k)
{
	if (!k)
		return;
	if (k->fd >= 0)
		close(k->fd);
	free(k->rx);
	free(k->log);
	free(k->ev);
	free(k);
}

static void peer_gone(struct conn *k, enum conn_state how)
{
	if (k->state != CONN_UP)
		return;
	k->state = how;
	log_event(k, how == CONN_FIN ? WIRE_FIN : WIRE_RST, false, NULL, 0);
}

/* One read; true when bytes came. */
static bool read_once(struct conn *k)
{
	ssize_t n;

	grow_buffer(&k->rx, &k->rx_cap, k->rx_len + 65536);
	n = recv(k->fd, k->rx + k->rx_len, k->rx_cap - k->rx_len, 0);
	if (n > 0) {
		log_event(k, WIRE_DATA, false, k->rx + k->rx_len, n);
		k->rx_len += n;
		return true;
	}
	if (!n)
		peer_gone(k, CONN_FIN);
	else if (errno != EAGAIN && errno != EINTR)
		peer_gone(k, CONN_RST);
	return false;
}

bool conn_recv(struct conn *k, int timeout_ms)
{
	struct pollfd p = { .fd = k->fd, .events = POLLIN };

	if (k->fd < 0 || k->state != CONN_UP)
		return false;
	if (poll(&p, 1, timeout_ms) <= 0)
		return false;
	return read_once(k);
}

void conn_take(struct conn *k, size_t n)
{
	memmove(k->rx, k->rx + n, k->rx_len - n);
	k->rx_len -= n;
}

int conn_send(struct conn *k, const uint8_t *buf, size_t len, int timeout_ms)
{
	double end = now() + timeout_ms / 1000.0;

	while (len) {
		struct pollfd p = { .fd = k->fd, .events = POLLOUT };
		ssize_t n = send(k->fd, buf, len, MSG_NOSIGNAL);

		if (n > 0) {
			log_event(k, WIRE_DATA, true, buf, n);
			buf += n;
			len -= n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (now() > end)
			return -1;
		poll(&p, 1, 100);
	}
	return 0;
}

void conn_fin(struct conn *k)
{
	shutdown(k->fd, SHUT_WR);
	log_event(k, WIRE_FIN, true, NULL, 0);
}

void conn_rst(struct conn *k)
{
	struct linger now_ = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &now_, sizeof(now_));
	close(k->fd);
	k->fd = -1;
	log_event(k, WIRE_RST, true, NULL, 0);
	k->state = CONN_RST;
}
