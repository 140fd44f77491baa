/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sockets for the stack: one poll loop, no threads. */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define ENDS_MAX 1024
#define CLOSE_WAIT_MS 20000 /* for a tester that takes megabytes through a small window */

static struct end *ends;

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Octets of the stack, after the fault: into a buffer of bounded size. */
static size_t on_write(void *arg, const void *p, size_t len, u32 flags)
{
	struct end *e = arg;
	size_t room;

	if (e->tx_done == e->tx_len)
		e->tx_done = e->tx_len = 0;
	room = TX_BUF - e->tx_len;
	if (e->tx_len > 65536)
		return 0;
	len = len < 65536 ? len : 65536;
	e->tx_len += fault_out(&e->out, &e->in, p, len, e->tx + e->tx_len, room);
	e->taken += len;
	return len;
}

/* Where FPDUs stand in segments is not looked at. */
static void on_tail(void *arg, struct weft_tcp_tail *tail)
{
	struct end *e = arg;

	*tail = (struct weft_tcp_tail){ .mss = e->mss, .room = e->tx_len > 65536 &&
					e->tx_done < e->tx_len ? 0 : 65536 };
}

/* The socket has all, or not yet; it is left alone until the close that follows. */
static u64 on_acked(void *arg)
{
	struct end *e = arg;

	return e->tx_done < e->tx_len ? e->taken - 1 : e->taken;
}

static void on_shutdown(void *arg)
{
	((struct end *)arg)->told_shut = true;
}

static void reset(struct end *e)
{
	struct linger l = { .l_onoff = 1 };

	setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	e->gone = true;
}

static void on_abort(void *arg)
{
	struct end *e = arg;

	if (!fault_is(F_NO_CLOSE))
		reset(e);
}

static const struct host_link_ops ops = {
	.write = on_write, .tail = on_tail, .acked = on_acked, .shutdown = on_shutdown,
	.abort = on_abort,
};

/* Is the FIN there? Who only reads for it sends on as long as the tester takes all. */
static bool has_fin(const struct end *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

static void flush_tx(struct end *e)
{
	if (fault_is(I_FIN) && !e->gone && has_fin(e)) {
		reset(e);
		return;
	}
	while (e->tx_done < e->tx_len) {
		ssize_t n = send(e->fd, e->tx + e->tx_done,
				 e->tx_len - e->tx_done, MSG_NOSIGNAL);

		if (n <= 0) {
			if (errno != EAGAIN && errno != EINTR)
				e->gone = true;
			return;
		}
		e->tx_done += n;
	}
	if (e->told_shut && !e->shut_done) {
		e->shut_done = true;
		if (fault_is(F_RST_FOR_FIN)) {
			reset(e);
			return;
		}
		if (!fault_is(F_NO_CLOSE))
			shutdown(e->fd, SHUT_WR);
	}
}

/* Runs the stack until it has nothing more to do just now. */
static void run_stack(struct end *e)
{
	for (int i = 0; i < 10000 && !e->gone; i++) {
		if (host_link_is_full(&e->link) && !e->up) {
			e->up = true;
			reflect_up(e);
		}
		reflect_poll(e);
		if (fault_is(F_UNGATED))
			e->link.core.st.tx_gate = false;
		if (fault_is(F_CQ_SPREADS) && e->link.qp->cq_error)
			exit(1);
		if (!host_link_is_ready(&e->link, true))
			break;
		host_link_tx(&e->link);
		flush_tx(e);
		if (e->tx_done < e->tx_len && e->tx_len > 65536)
			break; /* the socket is full */
	}
	flush_tx(e);
	if (e->link.core.state == WEFT_LINK_DEAD && e->tx_done == e->tx_len &&
	    !fault_is(F_NO_CLOSE))
		e->gone = true;
}

static void deliver_octets(struct end *e, const u8 *p, size_t n)
{
	struct weft_seg seg = { p, (u32)n };

	host_link_rx(&e->link, &seg, 1);
	if (!e->s && e->link.core.state == WEFT_LINK_REQUESTED)
		reflect_request(e);
}

/* 0: TCP does not tell. */
static unsigned int segments_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? 0 : info.tcpi_data_segs_in;
}

static void on_readable(struct end *e)
{
	static u8 buf[65536], changed[FAULT_ROOM];
	/* A busy host may have all pieces of a long FPDU together: it is cut all the same. */
	size_t m, most = fault_is(I_WHOLE) ? 4096 : sizeof(buf);
	ssize_t n;

	if (!e->in.framed)
		e->in.segments = segments_of(e->fd);
	n = recv(e->fd, buf, most, 0);
	if (n > 0) {
		m = fault_in(&e->in, &e->out, buf, n, changed, sizeof(changed));
		if (m)
			deliver_octets(e, fault_is_clean() ? buf : changed, m);
		if (e->in.kill) {
			host_link_reset(&e->link);
			reset(e);
		}
		if (fault_is(F_SLOW) && n < 8)
			usleep(1200000);
	} else if (!n) {
		e->fin_seen = true;
		host_link_fin(&e->link);
	} else if (errno != EAGAIN && errno != EINTR) {
		if (fault_is(F_CRASH))
			exit(1);
		host_link_reset(&e->link);
		e->gone = true;
	}
	run_stack(e);
}

static struct end *end_new(int fd, bool initiator)
{
	struct host_qp_attr a = { .sq_slots = 4, .rq_slots = 4 };
	struct end *e = calloc(1, sizeof(*e));
	int one = 1;

	HOST_ASSERT(e && (e->tx = malloc(TX_BUF)));
	e->fd = fd;
	e->initiator = initiator;
	e->began = now_ms();
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	host_init(&e->scratch, 1);
	a.scq = a.rcq = host_cq_new(4);
	e->idle_qp = host_qp_new(&e->scratch, &a);
	fault_start(&e->in, &e->out, initiator);
	e->in.session = e->out.session = &e->s;
	e->next = ends;
	return ends = e;
}

static void link_start(struct end *e, const u8 *pd, u16 pd_len)
{
	struct host_link_cfg c = {
		.mpa = { .rev = self_cfg.rev, .crc = !self_cfg.no_crc,
			 .markers = self_cfg.markers,
			 .p2p = e->initiator && self_cfg.p2p,
			 .rtr = self_cfg.rtr, .ird = self_cfg.ird,
			 .ord = self_cfg.ord },
		.batch = 48, .part_min = 24, .hold_accept = true, .ext = !self_cfg.no_ext,
		.pd = pd, .pd_len = pd_len,
		/* Half of it is for a Request. */
		.startup_ms = (e->initiator ? 1 : 2) * self_cfg.startup_ms,
		.close_ms = CLOSE_WAIT_MS,
	};
	int mss = 0;
	socklen_t len = sizeof(mss);

	getsockopt(e->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len);
	e->mss = fault_is(F_BIG_FPDU) ? 16000 :
		 fault_is(O_HUGE) ? 65532 : mss >= WEFT_BATCH_SEG_MIN ? mss : 536;
	host_link_init(&e->link, e->qp ? e->qp : e->idle_qp, e->initiator, &c, &ops, e);
}

static void end_free(struct end *e)
{
	struct end **p = &ends;

	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	host_link_reset(&e->link);
	reflect_closed(e);
	close(e->fd);
	host_link_fini(&e->link);
	if (e->qp) {
		host_qp_free(e->qp);
		host_cq_free(e->scq);
		host_cq_free(e->rcq);
	}
	host_cq_free(e->idle_qp->scq);
	host_fini(&e->scratch);
	fault_stop(&e->in);
	fault_stop(&e->out);
	free(e->tx);
	free(e);
}

static void expire(void)
{
	bool timeless = fault_is(F_NO_TIMEOUT) || fault_is(F_NO_CLOSE);
	u64 now = now_ms();

	for (struct end *e = ends, *next; e; e = next) {
		next = e->next;
		if (!e->gone && !timeless) {
			host_link_set_time(&e->link, now - e->began);
			run_stack(e);
		}
		if (e->gone)
			end_free(e);
	}
	reflect_drop_idle();
}

static void accept_connection(int lfd)
{
	int fd = accept(lfd, NULL, NULL);
	struct end *e;

	if (fd < 0)
		return;
	e = end_new(fd, false);
	link_start(e, NULL, 0);
	if (fault_is(F_SPEAKS_FIRST))
		send(fd, "hello", 5, MSG_NOSIGNAL);
	run_stack(e);
}

static bool want_out(const struct end *e)
{
	return e->tx_done < e->tx_len || host_link_waits_for_tcp(&e->link);
}

static void loop(int lfd)
{
	static struct pollfd fd[ENDS_MAX + 1];
	static struct end *of[ENDS_MAX + 1];

	while ((lfd >= 0 && drive_status() < 0) || ends) {
		nfds_t n = 0;

		if (lfd >= 0)
			fd[n++] = (struct pollfd){ .fd = lfd, .events = POLLIN };
		for (struct end *e = ends; e && n <= ENDS_MAX; e = e->next) {
			of[n] = e;
			fd[n++] = (struct pollfd){
				.fd = e->fd, .events = (e->fin_seen ? 0 : POLLIN) |
				(want_out(e) ? POLLOUT : 0) };
		}
		if (poll(fd, n, 50) < 0)
			continue;
		for (nfds_t i = lfd >= 0; i < n; i++) {
			if (fd[i].revents & POLLOUT) {
				flush_tx(of[i]);
				run_stack(of[i]);
			}
			if (!of[i]->gone && fd[i].revents & (POLLIN | POLLERR |
							     POLLHUP))
				on_readable(of[i]);
		}
		if (lfd >= 0 && fd[0].revents)
			accept_connection(lfd);
		expire();
	}
}

static struct addrinfo *resolve(const char *where, int flags)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *ai = NULL;
	char host[128];
	const char *colon = strrchr(where, ':');

	if (!colon)
		return NULL;
	if (*where == '[' && colon > where + 1) /* [IPv6]:PORT */
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where) - 2,
			 where + 1);
	else
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	getaddrinfo(*host ? host : NULL, colon + 1, &hint, &ai);
	return ai;
}

int sock_serve(const char *where)
{
	struct addrinfo *ai = resolve(where, AI_PASSIVE);
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	int one = 1, lfd = ai ? socket(ai->ai_family, SOCK_STREAM, 0) : -1;

	if (lfd >= 0)
		setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (lfd < 0 || bind(lfd, ai->ai_addr, ai->ai_addrlen) ||
	    listen(lfd, 512)) {
		perror("self-peer: listen");
		return 1;
	}
	getsockname(lfd, (struct sockaddr *)&a, &len);
	printf("ready %d\n", ntohs(a.ss_family == AF_INET6 ?
	       ((struct sockaddr_in6 *)&a)->sin6_port :
	       ((struct sockaddr_in *)&a)->sin_port));
	fflush(stdout);
	loop(lfd);
	return drive_status();
}

int sock_call(const char *where, int conns)
{
	struct addrinfo *ai = resolve(where, 0);
	static u8 pd[8][512];

	for (int i = 0; ai && i < conns && i < 8; i++) {
		int fd = socket(ai->ai_family, SOCK_STREAM, 0);
		struct end *e;
		u16 pd_len;

		if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen)) {
			perror("self-peer: connect");
			return 1;
		}
		e = end_new(fd, true);
		reflect_connect(e, (u64)getpid() << 20, pd[i], &pd_len);
		link_start(e, pd[i], pd_len);
		run_stack(e);
	}
	loop(-1);
	return !ai || drive_status() > 0;
}
