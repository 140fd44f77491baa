// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What weft-run's hidden descriptors leave to a program with a low limit, whatever its peers do.
 * Each case is a process of its own. HOST is an address of this machine that an RDMA device has.
 * TAP.
 *   few-descriptors HOST PORT [CASE]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../providers/rootless/process/crc32c.h"
#include "conn.h"
#include "tcp.h"
#include "verdict.h"

#define LIMIT	200
#define PEERS	240
/* The rest is an eighth of the limit, and what the program and its devices have open. */
#define OWN	150
#define SOON_MS	20000
/* That the library may have of them: an eighth. */
#define SHARE	(LIMIT / 8)
/* What a slow peer is sent: TCP takes it at once. The peer takes one or two KB at a time. */
#define UNTAKEN	(16 << 10)
#define SIP_MS	4000

static const char *host;
static int port;

static void limit_to(rlim_t soft, rlim_t hard)
{
	const struct rlimit lim = { soft, hard };

	if (setrlimit(RLIMIT_NOFILE, &lim))
		fail("the limit cannot be set: %s", strerror(errno));
}

/* How many of @n descriptors the program can have. They are closed again. */
static int open_own(int n)
{
	int fd[1024], i, k;

	for (i = 0; i < n; i++) {
		fd[i] = open("/dev/null", O_RDONLY);
		if (fd[i] < 0)
			break;
	}
	for (k = 0; k < i; k++)
		close(fd[k]);
	return i;
}

/* ---- peers ---- */

struct peers {
	pid_t pid;
	int go, there;			/* ends of pipes */
};

static void be_peers(const struct sockaddr_in *to, bool ask, int go, int there)
{
	int i, fd;
	char c;

	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	if (read(go, &c, 1) != 1)
		_exit(1);
	for (i = 0; i < PEERS; i++) {
		fd = ask ? tcp_send_request(to) : socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || (!ask && connect(fd, (const struct sockaddr *)to, sizeof(*to))))
			_exit(1);
	}
	if (write(there, "", 1) != 1)
		_exit(1);
	(void)!read(go, &c, 1);
	_exit(0);
}

/* The first @slow peers read so slowly that they do not finish during the test. */
static void be_slow_peers(const struct sockaddr_in *to, int slow, int go, int there)
{
	static const char request[] = "MPA ID Req Frame\x40\x01\0";
	/* A Write of no octets, and its CRC: now the other end may send. */
	uint8_t fpdu[20] = { 0, 14, 0xc1, 0x40, 0, 0, 0, 1 };
	uint32_t crc = ~weft_crc32c(~0u, fpdu, 16);
	int fd[SHARE], i, least = 1;
	char octets[UNTAKEN];

	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	memcpy(fpdu + 16, &crc, sizeof(crc));
	for (i = 0; i < slow; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
		if (connect(fd[i], (const struct sockaddr *)to, sizeof(*to)) ||
		    send(fd[i], request, 20, 0) != 20 || recv(fd[i], octets, 20, MSG_WAITALL) != 20 ||
		    send(fd[i], fpdu, sizeof(fpdu), 0) != sizeof(fpdu))
			_exit(1);
	}
	if (write(there, "", 1) != 1)
		_exit(1);
	while (!tcp_is_readable(go, SIP_MS))
		for (i = 0; i < slow; i++)
			(void)!recv(fd[i], octets, sizeof(octets), MSG_DONTWAIT);
	_exit(0);
}

/* Before the limit falls. They wait for peers_arrive(), but for those that are @slow. */
static struct peers make_peers(const char *ip, int at, bool ask, int slow)
{
	const struct sockaddr_in to = tcp_address(ip, at);
	int go[2], there[2];
	struct peers p;

	if (pipe(go) || pipe(there))
		fail("no pipe");
	p.pid = fork();
	if (!p.pid) {
		close(go[1]);
		if (slow)
			be_slow_peers(&to, slow, go[0], there[1]);
		be_peers(&to, ask, go[0], there[1]);
	}
	close(go[0]);
	close(there[1]);
	p.go = go[1];
	p.there = there[0];
	return p;
}

static struct peers new_peers(const char *ip, int at, bool ask)
{
	return make_peers(ip, at, ask, 0);
}

static bool peers_arrive(const struct peers *p)
{
	char c;

	return write(p->go, "", 1) == 1 && tcp_is_readable(p->there, 60000) &&
	       read(p->there, &c, 1) == 1;
}

static void peers_leave(const struct peers *p)
{
	close(p->go);
	close(p->there);
	waitpid(p->pid, NULL, 0);
}

/*
 * For as long as the library takes to accept them, and longer: the worst that the program has seen.
 */
static bool has_its_own_all_along(void)
{
	int i, n, worst = OWN;

	for (i = 0; i < 300 && worst == OWN; i++) {
		n = open_own(OWN);
		if (n < worst)
			worst = n;
		usleep(5000);
	}
	if (worst < OWN)
		printf("# only %d of %d descriptors\n", worst, OWN);
	return worst == OWN;
}

/* ---- a listener ---- */

static struct rdma_event_channel *events;
static struct rdma_cm_id *listener;

static void start_listener(void)
{
	struct sockaddr_in own = tcp_address(host, port);

	events = rdma_create_event_channel();
	if (!events || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&own) || rdma_listen(listener, 1024))
		fail("no listener: %s", strerror(errno));
}

/* Takes requests, and refuses them: how many. */
static int take_requests(int timeout_ms)
{
	struct rdma_cm_event *e;
	int n = 0;

	while (tcp_is_readable(events->fd, timeout_ms) && !rdma_get_cm_event(events, &e)) {
		struct rdma_cm_id *id = e->id;
		bool is_request = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		rdma_ack_cm_event(e);
		if (is_request && rdma_destroy_id(id))
			fail("a request cannot be destroyed");
		n += is_request;
		if (n == PEERS)
			break;
		timeout_ms = 2000;
	}
	return n;
}

static bool serves_another(void)
{
	const struct sockaddr_in to = tcp_address(host, port);
	int fd = tcp_send_request(&to), n = take_requests(SOON_MS);

	close(fd);
	if (n < 1)
		printf("# no request arrives\n");
	return n >= 1;
}

/* ---- cases ---- */

/* Each id that has an address has a hidden socket. */
static bool many_ids(void)
{
	struct sockaddr_in own = tcp_address(host, 0);
	struct rdma_cm_id *id[200];
	int i, n;

	limit_to(64, 4096);
	events = rdma_create_event_channel();
	for (i = 0; i < 200; i++) {
		if (rdma_create_id(events, &id[i], NULL, RDMA_PS_TCP) ||
		    rdma_bind_addr(id[i], (struct sockaddr *)&own)) {
			printf("# id %d: %s\n", i, strerror(errno));
			return false;
		}
	}
	n = open_own(64);
	printf("# %d descriptors of 64 are left\n", n);
	for (i = 0; i < 200; i++)
		rdma_destroy_id(id[i]);
	return n >= 40;
}

/* A limit that the program sets later is the one that counts. */
static bool raised_limit(void)
{
	struct sockaddr_in own = tcp_address(host, 0);
	struct rdma_cm_id *id[100];
	int i, n;

	limit_to(64, 512);
	events = rdma_create_event_channel();
	for (i = 0; i < 100; i++) {
		if (i == 80)
			limit_to(512, 512);
		if (rdma_create_id(events, &id[i], NULL, RDMA_PS_TCP) ||
		    rdma_bind_addr(id[i], (struct sockaddr *)&own)) {
			printf("# id %d: %s\n", i, strerror(errno));
			return false;
		}
	}
	n = open_own(600);
	printf("# %d descriptors of 512 are left\n", n);
	return n >= 512 - 100 - 24 && n < 512 - 80;
}

static bool silent_peers(void)
{
	struct peers p = new_peers(host, port, false);
	bool ok;

	limit_to(LIMIT, LIMIT);
	start_listener();
	ok = peers_arrive(&p) && has_its_own_all_along() && serves_another();
	peers_leave(&p);
	return ok;
}

/* All are served, although they do not fit at once. */
static bool unread_requests(void)
{
	struct peers p = new_peers(host, port, true);
	bool ok;
	int n;

	limit_to(LIMIT, LIMIT);
	start_listener();
	ok = peers_arrive(&p) && has_its_own_all_along();
	n = take_requests(SOON_MS);
	printf("# %d requests\n", n);
	ok = ok && n == PEERS && serves_another();
	peers_leave(&p);
	return ok;
}

/* Accepts each request, and ends the connection at once: how many. */
static int serve_and_end(int n)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *e;
	int served = 0;

	while (served < n && tcp_is_readable(events->fd, SOON_MS) &&
	       !rdma_get_cm_event(events, &e)) {
		struct rdma_cm_id *id = e->id;
		bool is_request = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		rdma_ack_cm_event(e);
		if (!is_request)
			continue;
		if (!attr.send_cq)
			attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
		if (!attr.send_cq || rdma_create_qp(id, NULL, &attr) || rdma_accept(id, &param)) {
			printf("# not accepted: %s\n", strerror(errno));
			return served;
		}
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
		served++;
		if (open_own(OWN - 10) < OWN - 10) {
			printf("# too few descriptors after %d\n", served);
			return served;
		}
	}
	return served;
}

/* The program has ended them, and their peers keep their ends. */
static bool ended_connections(void)
{
	struct peers p = new_peers(host, port, true);
	bool ok;

	limit_to(LIMIT, LIMIT);
	start_listener();
	ok = write(p.go, "", 1) == 1 && serve_and_end(PEERS) == PEERS;
	peers_leave(&p);
	return ok;
}

/* Accepts a request, sends, and ends the connection before the peer has all. */
static bool serve_a_slow_peer(void)
{
	static uint8_t octets[UNTAKEN];
	static struct conn c;		/* it may have the next request already */
	struct ibv_sge sge = { .addr = (uintptr_t)octets, .length = UNTAKEN };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	c.events = events;
	c.timeout_ms = SOON_MS;
	if (!c.next && !tcp_is_readable(events->fd, SOON_MS))
		return false;
	conn_await_request(&c);
	conn_make_qp(&c, 2, 1, 0);
	sge.lkey = conn_reg(&c, octets, UNTAKEN, 0)->lkey;
	conn_accept(&c, NULL, 0);
	if (ibv_post_send(c.id->qp, &wr, &bad) || conn_poll(&c, &wc, 1, SOON_MS) != 1 ||
	    wc.status != IBV_WC_SUCCESS)
		return false;
	conn_close(&c);
	return true;
}

/* Others wait in TCP's queue behind the first @slow, which have no program here any more. */
static bool slow_ones(int slow)
{
	struct peers last = new_peers(host, port, false), first;
	bool ok = true;
	int i;

	limit_to(LIMIT, LIMIT);
	start_listener();
	first = make_peers(host, port, true, slow);
	for (i = 0; i < slow && ok; i++)
		ok = serve_a_slow_peer();
	if (!ok)
		printf("# peer %d was not served\n", i);
	ok = ok && peers_arrive(&last) && serves_another();
	/* It has the other's pipes, too. */
	peers_leave(&first);
	peers_leave(&last);
	return ok;
}

/* As many as are looked at for one that may go. */
static bool some_slow_ones(void)
{
	return slow_ones(16);
}

static bool slow_ones_alone(void)
{
	return slow_ones(SHARE);
}

/* The QP's number names its port. */
static bool silent_peers_by_hand(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct peers p;
	struct ibv_qp *qp;
	bool ok;

	attr.send_cq = attr.recv_cq = ctx ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
	qp = pd && attr.send_cq ? ibv_create_qp(pd, &attr) : NULL;
	if (!qp)
		fail("no QP");
	p = new_peers("127.0.0.1", (int)(qp->qp_num >> 8), false);
	limit_to(LIMIT, LIMIT);
	ok = peers_arrive(&p) && has_its_own_all_along();
	peers_leave(&p);
	return ok;
}

/* ---- all ---- */

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "hidden-descriptors-lie-above-the-soft-limit", many_ids },
	{ "a-limit-that-is-raised-later", raised_limit },
	{ "silent-peers-of-a-listener-leave-descriptors", silent_peers },
	{ "unread-requests-leave-descriptors", unread_requests },
	{ "ended-connections-leave-descriptors", ended_connections },
	{ "slow-peers-that-were-served-do-not-hold-up-others", some_slow_ones },
	{ "slow-peers-alone-do-not-hold-up-others", slow_ones_alone },
	{ "silent-peers-of-a-qp-by-hand-leave-descriptors", silent_peers_by_hand },
};

static bool passes(bool (*run)(void))
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool ok;

		alarm(150);
		ok = run();
		fflush(stdout);
		_exit(!ok);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	unsigned int i;

	conn_program = "few-descriptors";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "few-descriptors HOST PORT [CASE]\n");
		return 2;
	}
	host = argv[1];
	port = atoi(argv[2]);
	verdict_only(argv[3]);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (verdict_wants(cases[i].name))
			verdict_if(cases[i].name, passes(cases[i].run));
	return verdict_end();
}
