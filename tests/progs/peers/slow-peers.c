// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many peers that stop, and how much memory they take on this machine:
 *   slow-peers HOST PORT N      they do not read what they are sent
 *   slow-peers -s HOST PORT N   they send half a message, and no more
 * They are plain TCP sockets. Both ends are this process: HOST is an address of this machine that a
 * weft device without CRC has. Prints how many KB a peer takes. With -s it waits for a line on
 * stdin before and after, so that the caller can take a measurement.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

#define FRAME		20	/* an MPA frame without private data */
#define SEGMENT		1448
#define MESSAGE		32768
#define MESSAGES	8	/* for each peer */
#define HALF		30000	/* octets of a message of twice as many */
#define PATIENCE_MS	20000

struct peer {
	struct conn conn;	/* what serves it */
	int sock;
};

static struct addrinfo *addr;
static struct ibv_mr *mr;

/* ---- the peer ---- */

static void say(const struct peer *p, const void *octets, size_t n)
{
	if (send(p->sock, octets, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("a peer cannot send: %s", strerror(errno));
}

static void hear(const struct peer *p, size_t n)
{
	char octets[64];

	if (recv(p->sock, octets, n, MSG_WAITALL) != (ssize_t)n)
		fail("a peer hears nothing");
}

/* Asks for a connection: revision 1, no CRC, no Markers. */
static void call(struct peer *p)
{
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	const int least = 1, segment = SEGMENT;

	p->sock = socket(addr->ai_family, SOCK_STREAM, 0);
	setsockopt(p->sock, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	setsockopt(p->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(p->sock, SOL_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	if (connect(p->sock, addr->ai_addr, addr->ai_addrlen))
		fail("no TCP: %s", strerror(errno));
	say(p, "MPA ID Req Frame\0\1\0", FRAME);
}

/* A Write of @len octets, of which @have follow: with none it lets the other side send. */
static void write_some(const struct peer *p, unsigned int len, unsigned int have)
{
	/* Length, then tagged, last, versions, opcode, STag 1, TO 0; PAD and CRC. */
	unsigned char head[16] = { (len + 14) >> 8, (len + 14) & 0xFF, 0xC1, 0x40, 0, 0, 0, 1 };
	static const char octets[HALF];

	say(p, head, sizeof(head));
	say(p, octets, have ? have : 4);
}

/* ---- who serves it ---- */

static void post_send(struct peer *p, unsigned int len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (ibv_post_send(p->conn.id->qp, &wr, &bad))
		fail("ibv_post_send");
}

/* A connection on which both sides may send: the peer has heard a first octet. */
static void set_up(struct peer *p, struct peer *first, unsigned int n)
{
	static char message[MESSAGE];

	if (p != first)
		conn_share(&p->conn, &first->conn);
	p->conn.timeout_ms = PATIENCE_MS;
	p->conn.cq_len = n * (MESSAGES + 2);
	call(p);
	conn_await_request(&p->conn);
	conn_make_qp(&p->conn, MESSAGES + 1, 1, 0);
	if (!mr)
		mr = conn_reg(&p->conn, message, sizeof(message), IBV_ACCESS_LOCAL_WRITE);
	conn_accept(&p->conn, NULL, 0);
	hear(p, FRAME);
	write_some(p, 0, 0);
	post_send(p, 1);
	/* Length, DDP's header, the octet, PAD, CRC. */
	hear(p, 2 + 18 + 1 + 3 + 4);
}

/* ---- all of them ---- */

static long free_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kb = -1;

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %ld", &kb);
	if (kb < 0)
		fail("/proc/meminfo has no MemFree");
	fclose(f);
	return kb;
}

/* Waits for earlier memory: the kernel frees some of it a while after its owner has exited. */
static long settled_free_kb(void)
{
	long kb = free_kb(), was;
	int i = 0;

	do {
		was = kb;
		usleep(200000);
		kb = free_kb();
	} while (kb > was + 50 && ++i < 100);
	return kb;
}

/* Octets that wait at the peers: once no more come, TCP is full. */
static long waiting(const struct peer *p, unsigned int n)
{
	long sum = 0;
	int octets;

	while (n--)
		sum += ioctl(p[n].sock, FIONREAD, &octets) ? 0 : octets;
	return sum;
}

static void settle(const struct peer *p, unsigned int n)
{
	long before = -1, now;

	while ((now = waiting(p, n)) != before || !now) {
		before = now;
		usleep(200000);
	}
}

static void send_to_all(struct peer *p, unsigned int n)
{
	unsigned int i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < MESSAGES; k++)
			post_send(&p[i], MESSAGE);
	settle(p, n);
}

static void send_halves(struct peer *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		write_some(&p[i], 2 * HALF, HALF);
}

static void wait_for_line(const char *what)
{
	char line[16];

	printf("%s\n", what);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		fail("end of stdin");
}

static unsigned int set_out(int argc, char **argv, char **host, char **port)
{
	if (argc != 4 || getaddrinfo(argv[1], argv[2], NULL, &addr)) {
		fprintf(stderr, "usage: slow-peers [-s] HOST PORT N\n");
		exit(2);
	}
	*host = argv[1];
	*port = argv[2];
	return (unsigned int)atoi(argv[3]);
}

int main(int argc, char **argv)
{
	int halves = argc > 1 && !strcmp(argv[1], "-s");
	char *host, *port;
	unsigned int n = set_out(argc - halves, argv + halves, &host, &port), i;
	struct peer *p = calloc(n, sizeof(*p));
	long before;

	conn_program = "slow-peers";
	conn_listen(&p->conn, host, port);
	for (i = 0; i < n; i++)
		set_up(&p[i], p, n);
	if (halves)
		wait_for_line("ready");
	before = settled_free_kb();
	if (halves)
		send_halves(p, n);
	else
		send_to_all(p, n);
	printf("%u peers: %ld KB each\n", n, (before - free_kb()) / (long)n);
	if (halves)
		wait_for_line("done");
	return 0;
}
