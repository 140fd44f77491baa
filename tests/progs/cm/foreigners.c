// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What can a user in another network namespace, NETNS, reach through the device? Not its addresses.
 * HOST is one of them, 127.0.0.1 another; PORT to PORT + 3 are free. The other user is a
 * thread, so that the queue pair that it names belongs to its process. TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conn.h"
#include "tcp.h"
#include "verdict.h"

#define NOBODY		65534
#define DEPTH		4
#define PATIENCE_MS	60000

static const char *host, *netns;
static int port;

/* ---- the foreigner ---- */

struct foreigner {
	bool root;			/* else user 65534, without privileges */
	uint32_t qpn;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	int err;			/* of what it tried */
};

/* This thread alone: libc's functions of these names would take the others along. */
static void go_abroad(const struct foreigner *f)
{
	int fd = open(netns, O_RDONLY);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("%s: %s", netns, strerror(errno));
	close(fd);
	if (!f->root && (syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) ||
			 syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY)))
		fail("setresuid: %s", strerror(errno));
}

/* rdma_cm uses the first device for loopback, without a check. */
static void *connects(void *arg)
{
	struct foreigner *f = arg;
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct rdma_conn_param param = { .initiator_depth = 1, .qp_num = f->qpn };
	char to[16];

	go_abroad(f);
	snprintf(to, sizeof(to), "%d", port);
	conn_resolve(&c, "0.0.0.0", to);
	f->err = rdma_connect(c.id, &param) ? errno : 0;
	f->events = c.events;
	f->id = c.id;
	return NULL;
}

static void *listens(void *arg)
{
	struct foreigner *f = arg;
	struct sockaddr_in any = tcp_address("0.0.0.0", port + 1 + f->root);

	go_abroad(f);
	f->events = rdma_create_event_channel();
	if (!f->events || rdma_create_id(f->events, &f->id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(f->id, (struct sockaddr *)&any))
		fail("rdma_bind_addr: %s", strerror(errno));
	f->err = rdma_listen(f->id, 4) ? errno : 0;
	return NULL;
}

static void *accepts(void *arg)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct foreigner *f = arg;

	go_abroad(f);
	f->err = rdma_accept(f->id, &param) ? errno : 0;
	return NULL;
}

static void send_abroad(struct foreigner *f, void *(*work)(void *arg))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, f) || pthread_join(thread, NULL))
		fail("no thread");
}

static void end_foreigner(struct foreigner *f)
{
	rdma_destroy_id(f->id);
	rdma_destroy_event_channel(f->events);
}

/* ---- at home ---- */

static int listen_tcp(void)
{
	struct sockaddr_in own = tcp_address("127.0.0.1", port);
	int fd = tcp_listen(&own, sizeof(own), 1);

	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void a_foreigners_connect(void)
{
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct foreigner f = { .root = true };
	int listener = listen_tcp();
	const char *why = NULL;
	char to[16];

	snprintf(to, sizeof(to), "%d", port);
	conn_resolve(&c, host, to);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	f.qpn = c.id->qp->qp_num;
	send_abroad(&f, connects);
	if (!f.err)
		why = "it begins";
	else if (f.err != ENODEV)
		why = strerror(f.err);
	if (accept(listener, NULL, NULL) >= 0)
		why = "it arrives at 127.0.0.1";
	end_foreigner(&f);
	conn_end(&c);
	close(listener);
	verdict("a-connect-from-another-netns-is-refused", why);
}

/* The request came to a listener at home. */
static void a_foreigners_accept(void)
{
	struct sockaddr_in to = tcp_address(host, port + 3);
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct foreigner f = { .root = true };
	const char *why = NULL;
	char at[16];
	int fd;

	snprintf(at, sizeof(at), "%d", port + 3);
	conn_listen(&c, host, at);
	fd = tcp_send_request(&to);
	conn_await_request(&c);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	f.id = c.id;
	send_abroad(&f, accepts);
	if (f.err != ENODEV)
		why = f.err ? strerror(f.err) : "it begins";
	close(fd);
	conn_close(&c);
	rdma_destroy_id(c.listener);
	rdma_destroy_event_channel(c.events);
	verdict("an-accept-from-another-netns-is-refused", why);
}

static int dial(int of)
{
	struct sockaddr_in to = tcp_address(host, of);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	close(fd);
	return err;
}

/* It is a listener on every device, those of its own namespace among them, if there are. */
static void a_foreigners_listener(void)
{
	struct foreigner f = { .root = false };
	const char *why = NULL;

	send_abroad(&f, listens);
	if (f.err)
		why = strerror(f.err);
	else if (dial(port + 1) != ECONNREFUSED)
		why = "it hears what is meant for us";
	end_foreigner(&f);
	verdict("a-wildcard-listener-of-another-netns-is-unreachable", why);
}

/* He sets up kernel consumers, and moves devices. */
static void an_administrators_listener(void)
{
	struct foreigner f = { .root = true };
	const char *why = NULL;
	int err;

	send_abroad(&f, listens);
	err = f.err ? f.err : dial(port + 2);
	if (err)
		why = strerror(err);
	end_foreigner(&f);
	verdict("root-listens-from-any-netns", why);
}

int main(int argc, char **argv)
{
	conn_program = "foreigners";
	if (argc != 4) {
		fprintf(stderr, "foreigners HOST PORT NETNS\n");
		return 2;
	}
	host = argv[1];
	port = atoi(argv[2]);
	netns = argv[3];
	a_foreigners_connect();
	a_foreigners_accept();
	a_foreigners_listener();
	an_administrators_listener();
	return verdict_end();
}
