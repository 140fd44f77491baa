// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Invalid input to an iWARP listener over plain TCP: broken MPA
 * requests, broken FPDUs, streams that stop at any byte, by FIN and by RST.
 * Needs no RDMA device and no library. TAP on stdout: where the listener has to
 * end the connection by itself, it must do so within the patience given; and at
 * the end it must still answer a good request. The health of its machine is for
 * the caller to look at.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../providers/rootless/process/crc32c.h"
#include "pattern.h"

#define KEY_REQ "MPA ID Req Frame"
#define FRAME	20			/* key, flags, revision, length of private data */
#define MAX_FPDU (2 + 65536 + 3 + 4)

enum { CRC_BIT = 0x40, ENHANCED_BIT = 0x10 };
enum { TAGGED = 0x80, LAST = 0x40, DV1 = 0x01, RV1 = 0x40 };
enum { OP_WRITE, OP_READ_REQ, OP_READ_RESP, OP_SEND, OP_TERM = 7 };

/* The side that ends the connection; with RST, if we do not answer their FIN; NEITHER: it stays. */
enum end { WE, THEY, THEY_RESET, NEITHER };

/* Longer than the listener's device waits for a step of the set-up. */
#define IDLE_MS	6000

static struct {
	const char *host, *port;
	int patience_ms;
	uint64_t rnd;
	int n, failed;
} g = { .patience_ms = 20000, .rnd = 1 };

static uint64_t rnd(void)
{
	return g.rnd = pattern_mix(g.rnd);
}

static void fill_random(uint8_t *p, size_t len)
{
	while (len--)
		*p++ = (uint8_t)(rnd() >> 20);
}

/* ---- TCP ---- */

static int dial(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int fd = -1, one = 1;

	if (getaddrinfo(g.host, g.port, &hints, &ai))
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* The peer may hang up at any time: what it does not take any more is not sent. */
static void put(int fd, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n <= 0)
			return;
	}
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, g.patience_ms) > 0;
}

/* Exactly @len bytes, or false. */
static bool get(int fd, uint8_t *p, size_t len)
{
	ssize_t n;

	for (; len; p += n, len -= n) {
		if (!readable(fd))
			return false;
		n = recv(fd, p, len, 0);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Reads until the peer ends the connection, by FIN or RST. */
static bool they_end(int fd)
{
	uint8_t buf[4096];

	while (readable(fd))
		if (recv(fd, buf, sizeof(buf), 0) <= 0)
			return true;
	return false;
}

/* Behind their FIN a few octets come, for their count of such, and ours does not: do they give up? */
static bool they_reset(int fd)
{
	struct pollfd p = { .fd = fd };

	put(fd, "behind the end", 14);
	return poll(&p, 1, g.patience_ms) > 0 && p.revents & (POLLERR | POLLHUP);
}

static bool connection_stays(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return !poll(&p, 1, IDLE_MS);
}

static void reset(int fd)
{
	struct linger l = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

/* ---- frames ---- */

static void put_be(uint8_t *p, uint64_t v, int octets)
{
	while (octets--) {
		p[octets] = (uint8_t)v;
		v >>= 8;
	}
}

static void make_request(uint8_t *p, uint8_t flags, uint8_t rev, uint16_t pd_len)
{
	memcpy(p, KEY_REQ, 16);
	p[16] = flags;
	p[17] = rev;
	put_be(p + 18, pd_len, 2);
}

/* A good request, and the reply to it. */
static bool start_up(int fd)
{
	uint8_t frame[FRAME], pd[65535];

	make_request(frame, CRC_BIT, 1, 0);
	put(fd, frame, sizeof(frame));
	if (!get(fd, frame, sizeof(frame)))
		return false;
	return get(fd, pd, (size_t)frame[18] << 8 | frame[19]);
}

/* An enhanced one that asks for the peer-to-peer mode, with a Write to come first. */
static bool start_up_peer_to_peer(int fd)
{
	uint8_t frame[FRAME + 4];

	make_request(frame, CRC_BIT | ENHANCED_BIT, 2, 4);
	put_be(frame + FRAME, 0x8001, 2);
	put_be(frame + FRAME + 2, 0x8001, 2);
	put(fd, frame, sizeof(frame));
	return get(fd, frame, sizeof(frame)) && frame[17] == 2 && frame[FRAME] & 0x80;
}

/* Frames @len octets of ULPDU that stand at p + 2: length, PAD, CRC. Returns the whole. */
static size_t frame_fpdu(uint8_t *p, size_t len)
{
	size_t end = (2 + len + 3) & ~(size_t)3;
	uint32_t crc;

	put_be(p, len, 2);
	memset(p + 2 + len, 0, end - 2 - len);
	crc = ~weft_crc32c(~0u, p, end);
	p[end] = (uint8_t)crc;
	p[end + 1] = (uint8_t)(crc >> 8);
	p[end + 2] = (uint8_t)(crc >> 16);
	p[end + 3] = (uint8_t)(crc >> 24);
	return end + 4;
}

/* A DDP segment before it is framed; cases change one field of a good one. */
struct segment {
	uint8_t ddp, rdmap;
	uint32_t stag_qn, msn, mo;	/* untagged: QN, MSN, MO; tagged: STag */
	uint64_t to;
	size_t payload;
};

static const struct segment good_send = { .ddp = LAST | DV1, .rdmap = RV1 | OP_SEND, .msn = 1,
					  .payload = 16 };

static size_t make_segment(uint8_t *fpdu, const struct segment *s)
{
	uint8_t *p = fpdu + 2;
	size_t head = s->ddp & TAGGED ? 14 : 18;

	p[0] = s->ddp;
	p[1] = s->rdmap;
	if (s->ddp & TAGGED) {
		put_be(p + 2, s->stag_qn, 4);
		put_be(p + 6, s->to, 8);
	} else {
		put_be(p + 2, 0, 4);
		put_be(p + 6, s->stag_qn, 4);
		put_be(p + 10, s->msn, 4);
		put_be(p + 14, s->mo, 4);
	}
	fill_random(p + head, s->payload);
	return frame_fpdu(fpdu, head + s->payload);
}

static uint8_t buf[2 * MAX_FPDU];

static void put_segment(int fd, const struct segment *s)
{
	put(fd, buf, make_segment(buf, s));
}

/* ---- cases without a connection set up ---- */

static void say_nothing(int fd, int arg)
{
	(void)fd;
	(void)arg;
}

static void part_of_request(int fd, int len)
{
	make_request(buf, CRC_BIT, 1, 0);
	put(fd, buf, len);
}

static void wrong_key(int fd, int octet)
{
	make_request(buf, CRC_BIT, 1, 0);
	buf[octet] ^= 0x20;
	put(fd, buf, FRAME);
}

static void request_with(int fd, int flags_rev)
{
	make_request(buf, flags_rev >> 8, flags_rev, 0);
	put(fd, buf, FRAME);
}

static void private_data_of(int fd, int len)
{
	make_request(buf, CRC_BIT, 1, len);
	fill_random(buf + FRAME, len);
	put(fd, buf, FRAME + len);
}

static void private_data_missing(int fd, int len)
{
	make_request(buf, CRC_BIT, 1, len);
	put(fd, buf, FRAME + len / 2);
}

static void random_from_the_start(int fd, int len)
{
	fill_random(buf, len);
	put(fd, buf, len);
}

static void request_and_more(int fd, int len)
{
	make_request(buf, CRC_BIT, 1, 0);
	fill_random(buf + FRAME, len);
	put(fd, buf, FRAME + len);
}

static void octet_by_octet(int fd, int arg)
{
	int i;

	(void)arg;
	make_request(buf, CRC_BIT, 1, 0);
	for (i = 0; i < FRAME; i++) {
		put(fd, buf + i, 1);
		usleep(1000);
	}
}

/* ---- cases in full operation ---- */

static void random_stream(int fd, int len)
{
	fill_random(buf, len);
	put(fd, buf, len);
}

/* TCP stops a reader at the urgent octet. */
static void urgent_data(int fd, int octets)
{
	memset(buf, 0, octets);
	send(fd, buf, octets, MSG_OOB | MSG_NOSIGNAL);
}

static void bad_crc(int fd, int bit)
{
	size_t len = make_segment(buf, &good_send);

	buf[len - 4 + bit / 8] ^= 1 << bit % 8;
	put(fd, buf, len);
}

static void flipped_bit(int fd, int octet)
{
	size_t len = make_segment(buf, &good_send);

	buf[octet] ^= 1 << rnd() % 8;
	put(fd, buf, len);
}

/* An ULPDU too short for its own header, well framed. */
static void short_ulpdu(int fd, int len)
{
	struct segment s = good_send;

	make_segment(buf, &s);
	put(fd, buf, frame_fpdu(buf, len));
}

static void ddp_version(int fd, int version)
{
	struct segment s = good_send;

	s.ddp = LAST | version;
	put_segment(fd, &s);
}

static void rdmap_version(int fd, int version)
{
	struct segment s = good_send;

	s.rdmap = version << 6 | OP_SEND;
	put_segment(fd, &s);
}

static void opcode(int fd, int op)
{
	struct segment s = good_send;

	s.rdmap = RV1 | op;
	put_segment(fd, &s);
}

static void queue_number(int fd, int qn)
{
	struct segment s = good_send;

	s.stag_qn = qn;
	put_segment(fd, &s);
}

static void msn(int fd, int n)
{
	struct segment s = good_send;

	s.msn = n;
	put_segment(fd, &s);
}

static void message_offset(int fd, int mo)
{
	struct segment s = good_send;

	s.mo = mo;
	put_segment(fd, &s);
}

/* Tagged with an unknown STag. */
static void tagged(int fd, int op)
{
	struct segment s = { .ddp = TAGGED | LAST | DV1, .rdmap = RV1 | op, .payload = 100 };

	s.stag_qn = (uint32_t)rnd();
	s.to = rnd();
	put_segment(fd, &s);
}

static void read_request(int fd, int size)
{
	struct segment s = { .ddp = LAST | DV1, .rdmap = RV1 | OP_READ_REQ, .stag_qn = 1,
			     .msn = 1, .payload = size };

	put_segment(fd, &s);
}

static void terminate(int fd, int size)
{
	struct segment s = { .ddp = LAST | DV1, .rdmap = RV1 | OP_TERM, .stag_qn = 2, .msn = 1,
			     .payload = size };

	put_segment(fd, &s);
}

/* A Send that has no end. */
static void endless_send(int fd, int segments)
{
	struct segment s = good_send;

	s.ddp = DV1;
	s.payload = 1000;
	while (segments--) {
		put_segment(fd, &s);
		s.mo += s.payload;
	}
}

static void part_of_fpdu(int fd, int len)
{
	make_segment(buf, &good_send);
	put(fd, buf, len);
}

/* The Write of no octets that a peer-to-peer set-up ends with. */
static void ready_to_receive(int fd, int arg)
{
	struct segment s = { .ddp = TAGGED | LAST | DV1, .rdmap = RV1 | OP_WRITE };

	(void)arg;
	put_segment(fd, &s);
}

static void bad_crc_octet_by_octet(int fd, int arg)
{
	size_t len = make_segment(buf, &good_send), i;

	(void)arg;
	buf[len - 1] ^= 1;
	for (i = 0; i < len; i++) {
		put(fd, buf + i, 1);
		usleep(500);
	}
}

/* Well framed, and nothing right inside. */
static void random_ulpdu(int fd, int max)
{
	size_t len = rnd() % max;

	fill_random(buf + 2, len);
	put(fd, buf, frame_fpdu(buf, len));
}

struct test {
	const char *name;
	void (*send)(int fd, int arg);
	int from, to;			/* argument of the first and the last connection */
	enum end end;
	bool (*set_up)(int fd);		/* a good request and its reply come first */
};

static const struct test tests[] = {
	{ "connect-and-close", say_nothing, 1, 20, WE, NULL },
	{ "part-of-a-request", part_of_request, 1, FRAME - 1, WE, NULL },
	{ "wrong-key", wrong_key, 0, 15, THEY, NULL },
	{ "reserved-flags", request_with, 0x4101, 0x4101, WE, NULL },
	{ "revision-0", request_with, 0x4000, 0x4000, WE, NULL },
	{ "revision-3", request_with, 0x4003, 0x4003, WE, NULL },
	{ "revision-255", request_with, 0x40ff, 0x40ff, WE, NULL },
	{ "enhanced-without-its-data", request_with, 0x5002, 0x5002, WE, NULL },
	{ "private-data-513", private_data_of, 513, 513, THEY, NULL },
	{ "private-data-65535", private_data_of, 65535, 65535, THEY, NULL },
	{ "private-data-missing", private_data_missing, 2, 12, WE, NULL },
	{ "random-from-the-start", random_from_the_start, 20, 30, THEY, NULL },
	{ "request-octet-by-octet", octet_by_octet, 0, 0, WE, NULL },
	{ "request-and-garbage-at-once", request_and_more, 1, 10, WE, NULL },
	{ "nothing-after-set-up", say_nothing, 1, 5, WE, start_up },
	{ "random-stream", random_stream, 70000, 70004, THEY, start_up },
	{ "urgent-data", urgent_data, 1, 8, THEY, start_up },
	{ "bad-crc", bad_crc, 0, 31, THEY, start_up },
	{ "flipped-bit", flipped_bit, 2, 35, THEY, start_up },
	{ "short-ulpdu", short_ulpdu, 0, 17, THEY, start_up },
	{ "ddp-version-0", ddp_version, 0, 0, THEY, start_up },
	{ "ddp-version-above", ddp_version, 2, 3, THEY, start_up },
	{ "rdmap-version-0", rdmap_version, 0, 0, THEY, start_up },
	{ "rdmap-version-above", rdmap_version, 2, 3, THEY, start_up },
	{ "unknown-opcode", opcode, 12, 15, THEY, start_up },
	{ "untagged-write", opcode, OP_WRITE, OP_WRITE, THEY, start_up },
	{ "queue-number", queue_number, 3, 6, THEY, start_up },
	{ "msn-too-high", msn, 2, 4, THEY, start_up },
	{ "msn-0", msn, 0, 0, THEY, start_up },
	{ "message-offset-of-a-first-segment", message_offset, 4, 5, THEY, start_up },
	{ "write-to-no-stag", tagged, OP_WRITE, OP_WRITE, THEY, start_up },
	{ "unsolicited-read-response", tagged, OP_READ_RESP, OP_READ_RESP, THEY, start_up },
	{ "tagged-send", tagged, OP_SEND, OP_SEND, THEY, start_up },
	{ "read-request-too-short", read_request, 0, 27, THEY, start_up },
	{ "read-request-of-garbage", read_request, 28, 28, THEY, start_up },
	{ "read-request-too-long", read_request, 29, 40, THEY, start_up },
	{ "terminate-of-garbage", terminate, 0, 40, THEY, start_up },
	{ "send-without-end", endless_send, 100, 100, THEY, start_up },
	{ "part-of-an-fpdu", part_of_fpdu, 1, 39, WE, start_up },
	{ "bad-crc-octet-by-octet", bad_crc_octet_by_octet, 0, 1, THEY, start_up },
	{ "no-fin-after-theirs", bad_crc, 0, 0, THEY_RESET, start_up },
	{ "silent-after-a-peer-to-peer-reply", say_nothing, 0, 0, THEY, start_up_peer_to_peer },
	{ "part-of-a-peer-to-peer-fpdu", part_of_fpdu, 1, 1, THEY, start_up_peer_to_peer },
	{ "idle-after-a-peer-to-peer-set-up", ready_to_receive, 0, 0, NEITHER,
	  start_up_peer_to_peer },
	{ "random-ulpdu", random_ulpdu, 100, 120, WE, start_up },
};

/* One connection; an error text, or NULL. Every third that we end, we reset. */
static const char *one(const struct test *t, int arg)
{
	const char *why = NULL;
	int fd = dial();

	if (fd < 0)
		return "no connection";
	if (t->set_up && !t->set_up(fd)) {
		close(fd);
		return "a good request is not answered";
	}
	t->send(fd, arg);
	if (t->end == NEITHER && !connection_stays(fd))
		why = "the connection does not stay";
	else if ((t->end == THEY || t->end == THEY_RESET) && !they_end(fd))
		why = "the connection stays";
	else if (t->end == THEY_RESET && !they_reset(fd))
		why = "the connection stays half closed";
	else if (t->end == WE && rnd() % 3 == 0)
		reset(fd);
	close(fd);
	return why;
}

static void report(const char *name, const char *why, int arg)
{
	g.failed += !!why;
	if (why)
		printf("not ok %d - %s: %s (variant %d)\n", ++g.n, name, why, arg);
	else
		printf("ok %d - %s\n", ++g.n, name);
}

static void run_test(const struct test *t)
{
	const char *why = NULL;
	int arg;

	for (arg = t->from; arg <= t->to && !why; arg++)
		why = one(t, arg);
	report(t->name, why, arg - 1);
}

static void usage(void)
{
	fprintf(stderr,
		"mpa-garbage [-S SEED] [-r ROUNDS] [-T SECONDS] [-u] HOST PORT\n"
		"  to a listener that accepts what asks, rping -s -P for one\n"
		"  -S  seed (1)\n"
		"  -r  do it all so often (1)\n"
		"  -T  how long it may take to end a broken connection (20)\n"
		"  -u  no urgent data: a reader of plain sockets may stop at it\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const struct test good = { "a-good-request-afterwards", say_nothing, 0, 0, WE, start_up };
	bool urgent = true;
	int opt, rounds = 1;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "S:r:T:u")) != -1) {
		switch (opt) {
		case 'S': g.rnd = strtoull(optarg, NULL, 0); break;
		case 'r': rounds = atoi(optarg); break;
		case 'T': g.patience_ms = atoi(optarg) * 1000; break;
		case 'u': urgent = false; break;
		default: usage();
		}
	}
	if (argc - optind != 2)
		usage();
	g.host = argv[optind];
	g.port = argv[optind + 1];
	while (rounds--)
		for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			if (urgent || tests[i].send != urgent_data)
				run_test(&tests[i]);
	run_test(&good);
	printf("1..%d\n", g.n);
	return g.failed ? 1 : 0;
}
