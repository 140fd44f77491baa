// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs connected by hand whose peers are other processes: that are killed at each step, that are many,
 * or that are none of RDMA's but connect to the port that a QP's number names (its upper 16 bits),
 * and say there what does not fit. Over the device whose GID 0 is ADDR. TAP on stdout.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "byhand.h"

#define MANY	512
#define SILENT	400	/* more than any port puts up with */

static const char *addr;
static long limit_ms;

/* ---- another process ---- */

struct child {
	pid_t pid;
	int fd;
};

static struct child begin(void (*run)(int fd))
{
	struct child c;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		hand_fail("no socket pair");
	fflush(stdout);
	c.pid = fork();
	if (c.pid < 0)
		hand_fail("no fork");
	if (!c.pid) {
		close(pair[0]);
		run(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	c.fd = pair[0];
	return c;
}

static bool end(struct child *c, bool by_force)
{
	int status;

	if (by_force)
		kill(c->pid, SIGKILL);
	close(c->fd);
	return waitpid(c->pid, &status, 0) == c->pid &&
	       (by_force ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
}

static void say(int fd, const void *p, size_t len)
{
	if (send(fd, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		hand_fail("the other process has gone");
}

/* False: the other has gone. */
static bool hear(int fd, void *p, size_t len)
{
	return recv(fd, p, len, MSG_WAITALL) == (ssize_t)len;
}

/* ---- killed at each step ---- */

enum step { MADE, INIT, RTR, RTS, TALKED, STEPS };

static enum step last_step;

static void swap_names(int fd, const struct hand_end *e, struct hand_name *peer)
{
	struct hand_name own;

	hand_tell(e, &own);
	say(fd, &own, sizeof(own));
	if (!hear(fd, peer, sizeof(*peer)))
		exit(0);
}

/* Goes as far as the step, says so, and then waits to be killed. */
static void victim(int fd)
{
	struct hand_device dev;
	struct hand_name peer;
	static struct hand_end e;
	char word = 0;

	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	swap_names(fd, &e, &peer);
	if (last_step >= INIT && hand_to_init(&e))
		exit(1);
	hand_recv(&e, 1);
	if (last_step >= RTR && hand_to_rtr(&e, &peer))
		exit(1);
	if (last_step >= RTS && hand_to_rts(&e))
		exit(1);
	if (last_step >= TALKED && !hand_took(e.cq, 1, IBV_WC_SUCCESS))
		exit(1);
	say(fd, &word, 1);
	hear(fd, &word, 1);
}

static bool fails_in_time(struct hand_end *e)
{
	struct ibv_wc wc;
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		hand_send(e, 5, 10);
		if (!hand_poll(e->cq, &wc, 20000))
			return false;
		if (wc.status != IBV_WC_SUCCESS)
			return wc.wr_id == 5 && wc.status == IBV_WC_RETRY_EXC_ERR;
	}
	return false;
}

/* Then the QP is of use again, with another peer. */
static bool is_of_use(struct hand_end *e)
{
	struct hand_end other;
	struct hand_name own, its;
	bool ok;

	hand_make(&other, e->dev, &hand_usual, NULL);
	hand_tell(e, &own);
	hand_tell(&other, &its);
	if (hand_to(e, IBV_QPS_RESET))
		return false;
	hand_ready(e, &its);
	hand_ready(&other, &own);
	hand_recv(&other, 8);
	hand_send(e, 9, 10);
	ok = hand_took(e->cq, 9, IBV_WC_SUCCESS) && hand_took(other.cq, 8, IBV_WC_SUCCESS);
	hand_unmake(&other);
	return ok;
}

static bool killed_at(enum step step)
{
	struct hand_device dev;
	struct hand_name peer;
	static struct hand_end e;
	struct ibv_wc wc;
	struct child c;
	char word;
	bool ok;

	last_step = step;
	c = begin(victim);
	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	swap_names(c.fd, &e, &peer);
	hand_ready(&e, &peer);
	if (step == TALKED)
		hand_send(&e, 4, 10);
	ok = hear(c.fd, &word, 1);
	if (step == TALKED)
		ok = ok && hand_took(e.cq, 4, IBV_WC_SUCCESS);
	ok = end(&c, true) && ok;
	/* Nothing is sent: nothing is missed. */
	ok = ok && !hand_poll(e.cq, &wc, 300) && hand_state(&e) == IBV_QPS_RTS;
	ok = ok && fails_in_time(&e) && hand_state(&e) == IBV_QPS_ERR && is_of_use(&e);
	hand_unmake(&e);
	hand_close(&dev);
	return ok;
}

static bool killed_at_each_step(void)
{
	enum step s;

	for (s = MADE; s < STEPS; s++)
		if (!killed_at(s)) {
			printf("# killed at step %d\n", s);
			return false;
		}
	return true;
}

/* ---- many ---- */

static struct hand_end many[MANY];
static struct hand_name own_names[MANY], peers[MANY];

static void make_many(struct hand_device *dev, struct ibv_cq *cq)
{
	int i;

	for (i = 0; i < MANY; i++) {
		hand_make(&many[i], dev, &hand_usual, cq);
		hand_tell(&many[i], &own_names[i]);
	}
}

static bool all_took(struct ibv_cq *cq, int each)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < each * MANY; i++)
		if (!hand_poll(cq, &wc, 60000) || wc.status != IBV_WC_SUCCESS)
			return false;
	return true;
}

/* Each end sends with its first breath, and has heard from its peer: in ms. */
static long connect_many(int fd, struct ibv_cq *cq)
{
	long begun;
	char word = 0;
	int i;

	say(fd, own_names, sizeof(own_names));
	if (!hear(fd, peers, sizeof(peers)))
		exit(1);
	for (i = 0; i < MANY; i++) {
		hand_recv(&many[i], i);
		memcpy(many[i].buf, &peers[i].qpn, 4);
	}
	say(fd, &word, 1);
	if (!hear(fd, &word, 1))
		exit(1);
	begun = hand_now_ms();
	for (i = 0; i < MANY; i++) {
		hand_ready(&many[i], &peers[i]);
		hand_send(&many[i], MANY + i, 4);
	}
	if (!all_took(cq, 2))
		return -1;
	begun = hand_now_ms() - begun;
	for (i = 0; i < MANY; i++)
		if (memcmp(many[i].buf + HAND_BUF, &own_names[i].qpn, 4))
			return -1;
	/* Who ends first would be missed. */
	say(fd, &word, 1);
	hear(fd, &word, 1);
	return begun;
}

static long many_of_one(int fd)
{
	struct hand_device dev;
	struct ibv_cq *cq;
	long ms;
	int i;

	hand_open(&dev, addr);
	cq = ibv_create_cq(dev.ctx, 4 * MANY, NULL, NULL, 0);
	make_many(&dev, cq);
	ms = connect_many(fd, cq);
	for (i = 0; i < MANY; i++)
		hand_unmake(&many[i]);
	ibv_destroy_cq(cq);
	hand_close(&dev);
	return ms;
}

static void other_many(int fd)
{
	exit(many_of_one(fd) < 0);
}

static bool connects_many(void)
{
	struct child c = begin(other_many);
	long ms = many_of_one(c.fd);

	printf("# %d QPs were connected, and had talked, within %ld ms\n", MANY, ms);
	return end(&c, false) && ms >= 0 && ms <= limit_ms;
}

/* ---- strangers ---- */

#define REQUEST_LEN	(20 + 4 + 24)

/* An enhanced MPA Request in peer-to-peer mode, and the words of one that connects by hand. */
static void make_request(uint8_t p[REQUEST_LEN], const uint32_t words[6])
{
	int i;

	memcpy(p, "MPA ID Req Frame", 16);
	p[16] = 0x50;	/* CRC, enhanced */
	p[17] = 2;
	p[18] = 0;
	p[19] = 28;
	memcpy(p + 20, "\x80\4\x80\4", 4);	/* peer-to-peer, by a Write */
	for (i = 0; i < 6; i++) {
		uint32_t word = htonl(words[i]);

		memcpy(p + 24 + 4 * i, &word, 4);
	}
}

static int dial(uint32_t qpn)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(qpn >> 8)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, addr, &to.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		hand_fail("nobody listens on port %u: %s", qpn >> 8, strerror(errno));
	return fd;
}

/* It is told no, or cut off. */
static bool is_turned_away(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t reply[64];
	ssize_t n;

	if (poll(&p, 1, 20000) != 1)
		return false;
	n = recv(fd, reply, sizeof(reply), 0);
	return n <= 0 || (n >= 20 && !memcmp(reply, "MPA ID Rep Frame", 16) && reply[16] & 0x20);
}

/* One of the words is another, by so much. */
static bool stranger_is_turned_away(const uint32_t right[6], int which, uint32_t change)
{
	uint8_t request[REQUEST_LEN];
	uint32_t words[6];
	bool away;
	int fd;

	memcpy(words, right, sizeof(words));
	if (which >= 0)
		words[which] ^= change;
	make_request(request, words);
	fd = dial(right[3]);
	say(fd, request, sizeof(request));
	away = is_turned_away(fd);
	close(fd);
	if (!away)
		printf("# the stranger with another word %d (%#x) was let in\n", which, change);
	return away;
}

static bool wrong_words(const struct hand_end *e, const struct hand_name *peer)
{
	/* Magic; version, type, RTS, rnr_retry; from, to; what it awaits, what it sends. */
	const uint32_t right[6] = {
		0x77656674, 2 << 24 | IBV_QPT_RC << 16 | 1 << 8 | 7,
		peer->qpn, e->qp->qp_num, e->psn, peer->psn,
	};

	return stranger_is_turned_away(right, 0, 1) && stranger_is_turned_away(right, 1, 1 << 24) &&
	       stranger_is_turned_away(right, 1, 1 << 16) && stranger_is_turned_away(right, 2, 1) &&
	       stranger_is_turned_away(right, 3, 0x80) && stranger_is_turned_away(right, 4, 1) &&
	       stranger_is_turned_away(right, 5, 1);
}

/* ---- those who say nothing ---- */

static int silent[SILENT];

static int count_cut_off(void)
{
	int i, n = 0;

	for (i = 0; i < SILENT; i++) {
		struct pollfd p = { .fd = silent[i] };

		if (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR))
			n++;
	}
	return n;
}

static bool are_cut_off(int count, long ms)
{
	long until = hand_now_ms() + ms;

	while (count_cut_off() < count && hand_now_ms() < until)
		usleep(10000);
	if (count_cut_off() >= count)
		return true;
	printf("# %d of %d are cut off\n", count_cut_off(), SILENT);
	return false;
}

/*
 * They do not keep the peer out; of too many the oldest are cut off, and in time all. What
 * connects from here is no peer's: it has its address, and not its words.
 */
static bool strangers(void)
{
	struct hand_device dev;
	static struct hand_end e, friend;
	struct hand_name name, peer;
	bool ok;
	int i;

	hand_open(&dev, addr);
	hand_make(&friend, &dev, &hand_usual, NULL);
	hand_make(&e, &dev, &hand_usual, NULL);
	hand_tell(&e, &name);
	hand_tell(&friend, &peer);
	/* The lower connects: e awaits it. */
	hand_ready(&e, &peer);
	hand_recv(&e, 1);
	ok = wrong_words(&e, &peer);
	for (i = 0; i < SILENT; i++)
		silent[i] = dial(name.qpn);
	ok = ok && are_cut_off(SILENT - 256, 20000);
	hand_ready(&friend, &name);
	hand_send(&friend, 2, 10);
	ok = ok && hand_took(friend.cq, 2, IBV_WC_SUCCESS) && hand_took(e.cq, 1, IBV_WC_SUCCESS);
	ok = ok && are_cut_off(SILENT, 30000);
	for (i = 0; i < SILENT; i++)
		close(silent[i]);
	hand_unmake(&friend);
	hand_unmake(&e);
	hand_close(&dev);
	return ok;
}

/* ---- a peer that exits ---- */

#define ROUNDS	51			/* the child has the last word to hear */

/* The other's Send has come; what became of one's own is seen to by the way. */
static bool came(struct hand_end *e, int *done)
{
	struct ibv_wc wc;

	while (hand_poll(e->cq, &wc, 20000) && wc.status == IBV_WC_SUCCESS) {
		if (wc.wr_id == 1)
			return true;
		++*done;
	}
	return false;
}

/* By turns with the parent; with its last Send the process is over, and destroys nothing. */
static void hears_and_exits(int fd)
{
	static struct hand_end e;
	struct hand_device dev;
	struct hand_name peer;
	int i, done = 0;

	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	swap_names(fd, &e, &peer);
	hand_ready(&e, &peer);
	for (i = 0; i < ROUNDS; i++) {
		hand_recv(&e, 1);
		if (i)
			hand_send(&e, 2, 10);
		if (!came(&e, &done))
			exit(1);
	}
	exit(0);
}

static bool exits_after_the_last(void)
{
	static struct hand_end e;
	struct hand_device dev;
	struct hand_name peer;
	struct child c;
	int i, times, done;
	bool ok = true;

	for (times = 0; times < 10 && ok; times++) {
		c = begin(hears_and_exits);
		hand_open(&dev, addr);
		hand_make(&e, &dev, &hand_usual, NULL);
		swap_names(c.fd, &e, &peer);
		hand_ready(&e, &peer);
		for (i = done = 0; i < ROUNDS && ok; i++) {
			hand_recv(&e, 1);
			hand_send(&e, 2, 10);
			ok = i == ROUNDS - 1 || came(&e, &done);
		}
		for (; done < ROUNDS && ok; done++)
			ok = hand_took(e.cq, 2, IBV_WC_SUCCESS);
		ok = end(&c, false) && ok;
		hand_unmake(&e);
		hand_close(&dev);
	}
	return ok;
}

/* ---- */

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "peer-killed-at-each-step", killed_at_each_step },
	{ "many-qps-connect-in-time", connects_many },
	{ "strangers-are-turned-away", strangers },
	{ "peer-that-exits-has-said-what-it-took", exits_after_the_last },
};

int main(int argc, char **argv)
{
	int i, n = sizeof(cases) / sizeof(*cases), failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	hand_program = "weft-handpeers";
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: weft-handpeers ADDR MS [CASE]\n");
		return 2;
	}
	addr = argv[1];
	limit_ms = atol(argv[2]);
	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		bool ok = (argc == 4 && strcmp(argv[3], cases[i].name)) || cases[i].run();

		printf("%sok %d - %s\n", ok ? "" : "not ", i + 1, cases[i].name);
		failed += !ok;
	}
	return failed ? 1 : 0;
}
