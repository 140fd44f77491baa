// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs connected by hand to other processes: peers that are killed at each step, many peers, and
 * plain sockets that connect to the port in a QP's number (its upper 16 bits) and send a wrong
 * hello. Over the device that has the GID of ADDR. TAP on stdout.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "byhand.h"
#include "verdict.h"
#include "../../../providers/rootless/process/crc32c.h"

#define MANY	512
#define SILENT	400	/* above the cap of half-open connections of a port */

static const char *addr;
static long limit_ms;

/* A peer is awaited as timeout and retry_cnt say, one that has gone for a second at most. */
static struct hand_setting waits_as_long_as(uint8_t timeout)
{
	struct hand_setting set = hand_usual;

	set.timeout = timeout;
	return set;
}

#define NINE_SECONDS	18
#define HALF_A_MINUTE	20

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

/* Goes as far as the step, reports it, and waits to be killed. */
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

/* Which end connects, their numbers tell: those who meet are as they are, so others meet until it fits. */
static struct child begin_victim(struct hand_device *dev, struct hand_end *e, bool lower,
				 struct hand_name *peer)
{
	struct child c;

	for (;;) {
		c = begin(victim);
		hand_open(dev, addr);
		hand_make(e, dev, &hand_usual, NULL);
		swap_names(c.fd, e, peer);
		if ((e->qp->qp_num < peer->qpn) == lower)
			return c;
		end(&c, true);
		hand_unmake(e);
		hand_close(dev);
	}
}

static bool killed_at(enum step step, bool lower)
{
	struct hand_device dev;
	struct hand_name peer;
	static struct hand_end e;
	struct ibv_wc wc;
	struct child c;
	char word;
	bool ok;

	last_step = step;
	c = begin_victim(&dev, &e, lower, &peer);
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
	int i;

	for (i = 0; i < 2 * STEPS; i++)
		if (!killed_at(i / 2, i % 2)) {
			printf("# killed at step %d, as the %s\n", i / 2, i % 2 ? "upper" : "lower");
			return false;
		}
	return true;
}

/* ---- killed, and a child of it lives ---- */

static bool child_execs;

/* It has inherited all, and has come to rest. */
static pid_t leave_a_child(void)
{
	int ends[2];
	pid_t pid;
	char word;

	if (pipe2(ends, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (!pid) {
		if (child_execs)
			execlp("sleep", "sleep", "1000", NULL);
		else if (write(ends[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ends[1]);
	/* A word, or the end that exec has closed. */
	if (read(ends[0], &word, 1) < 0)
		exit(1);
	return pid;
}

static void parent(int fd)
{
	struct hand_device dev;
	struct hand_name peer;
	static struct hand_end e;
	pid_t pid;

	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	swap_names(fd, &e, &peer);
	hand_ready(&e, &peer);
	hand_recv(&e, 1);
	if (!hand_took(e.cq, 1, IBV_WC_SUCCESS))
		exit(1);
	pid = leave_a_child();
	say(fd, &pid, sizeof(pid));
	hear(fd, &pid, 1);
}

/* Whoever has the socket open is the peer for TCP, as whoever has the device open is for an adapter. */
static bool child_is_the_last(struct hand_end *e, pid_t pid)
{
	struct ibv_wc wc;
	bool quiet;

	hand_send(e, 5, 10);
	quiet = !hand_poll(e->cq, &wc, 300);
	kill(pid, SIGKILL);
	return quiet && hand_took(e->cq, 5, IBV_WC_RETRY_EXC_ERR);
}

static bool killed_with_child(void)
{
	struct hand_device dev;
	struct hand_name peer;
	static struct hand_end e;
	struct child c;
	pid_t pid;
	bool ok;

	c = begin(parent);
	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	swap_names(c.fd, &e, &peer);
	hand_ready(&e, &peer);
	hand_send(&e, 4, 10);
	ok = hand_took(e.cq, 4, IBV_WC_SUCCESS) && hear(c.fd, &pid, sizeof(pid));
	ok = end(&c, true) && ok;
	if (ok && child_execs) {
		ok = fails_in_time(&e) && !kill(pid, 0);
		kill(pid, SIGKILL);
	} else if (ok) {
		ok = child_is_the_last(&e, pid);
	}
	ok = ok && is_of_use(&e);
	hand_unmake(&e);
	hand_close(&dev);
	return ok;
}

/* Lines of a file, or entries of a folder, by bare calls: those that weft hides, too. */
static int count_of(const char *path, bool folder)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY), n = 0;
	char buf[4096];
	long len, at;

	while ((len = syscall(folder ? SYS_getdents64 : SYS_read, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < len; at += folder ? *(unsigned short *)(buf + at + 16) : 1)
			n += folder || buf[at] == '\n';
	syscall(SYS_close, fd);
	return n;
}

/* Once: what the library keeps for good is there. After that nothing more may be. */
static bool killed_with_children(void)
{
	int round, fds = 0, maps = 0, n, m;
	long until;

	for (round = 0; round < 6; round++) {
		child_execs = round % 2;
		if (!killed_with_child()) {
			printf("# of a peer whose child %s\n", child_execs ? "has gone on by exec" : "has all that it had");
			return false;
		}
		if (round < 2) {
			fds = count_of("/proc/self/fd", true);
			maps = count_of("/proc/self/maps", false);
		}
	}
	/* Connections end asynchronously, and their memory is freed after their descriptors. */
	until = hand_now_ms() + 60000;
	do {
		usleep(1000);
		n = count_of("/proc/self/fd", true);
		m = count_of("/proc/self/maps", false);
	} while ((n > fds || m > maps + 2) && hand_now_ms() < until);
	printf("# %d descriptors, then %d; %d maps, then %d\n", fds, n, maps, m);
	return n <= fds && m <= maps + 2;
}

/* ---- many ---- */

static struct hand_end many[MANY];
static struct hand_name own_names[MANY], peers[MANY];

static void make_many(struct hand_device *dev, struct ibv_cq *cq)
{
	/* How long it may take in all is limit_ms' to say. */
	const struct hand_setting patient = waits_as_long_as(HALF_A_MINUTE);
	int i;

	for (i = 0; i < MANY; i++) {
		hand_make(&many[i], dev, &patient, cq);
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

/* ---- connections that are no QP's ---- */

#define WORDS		5
#define REQUEST_LEN	(20 + 4 + 4 * WORDS)

/* An enhanced MPA Request in peer-to-peer mode, and the words of one that connects by hand. */
static void make_request(uint8_t p[REQUEST_LEN], const uint32_t words[WORDS])
{
	int i;

	memcpy(p, "MPA ID Req Frame", 16);
	p[16] = 0x50;	/* CRC, enhanced */
	p[17] = 2;
	p[18] = 0;
	p[19] = 4 + 4 * WORDS;
	memcpy(p + 20, "\x80\4\x80\4", 4);	/* peer-to-peer, by a Write */
	for (i = 0; i < WORDS; i++) {
		uint32_t word = htonl(words[i]);

		memcpy(p + 24 + 4 * i, &word, 4);
	}
}

/* The device's address, or one of those behind it. */
static struct sockaddr_in address(int behind, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, addr, &a.sin_addr);
	a.sin_addr.s_addr = htonl(ntohl(a.sin_addr.s_addr) + (uint32_t)behind);
	return a;
}

static int dial_from(int behind, uint32_t qpn)
{
	struct sockaddr_in to = address(0, (uint16_t)(qpn >> 8)), own = address(behind, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		hand_fail("no listener on port %u: %s", qpn >> 8, strerror(errno));
	return fd;
}

static int dial(uint32_t qpn)
{
	return dial_from(0, qpn);
}

/* It is refused, or cut off. */
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

/* One of the words is another, by so much; or the address is. */
static bool hello_is_refused(const uint32_t right[WORDS], int which, uint32_t change, int behind)
{
	uint8_t request[REQUEST_LEN];
	uint32_t words[WORDS];
	bool away;
	int fd;

	memcpy(words, right, sizeof(words));
	if (which >= 0)
		words[which] ^= change;
	make_request(request, words);
	fd = dial_from(behind, right[3]);
	say(fd, request, sizeof(request));
	away = is_turned_away(fd);
	close(fd);
	if (!away)
		printf("# a hello whose word %d differs by %#x, %d addresses further, was accepted\n",
		       which, change, behind);
	return away;
}

/*
 * Magic; version, type, RTS, rnr_retry; from, to; of what it awaits and what it sends the upper 12 bits, in
 * a Request, or the lower, in a Reply.
 */
static void right_words(uint32_t words[WORDS], const struct hand_name *to, const struct hand_name *from, bool request)
{
	uint32_t shift = request ? 12 : 0;
	const uint32_t right[WORDS] = {
		0x77656674, 3 << 24 | IBV_QPT_RC << 16 | 1 << 8 | 7, from->qpn, to->qpn,
		(to->psn >> shift & 0xfff) << 16 | (from->psn >> shift & 0xfff),
	};

	memcpy(words, right, sizeof(right));
}

static bool wrong_words(const struct hand_name *e, const struct hand_name *peer)
{
	uint32_t right[WORDS];

	right_words(right, e, peer, true);
	return hello_is_refused(right, 0, 1, 0) && hello_is_refused(right, 1, 1 << 24, 0) &&
	       hello_is_refused(right, 1, 1 << 16, 0) && hello_is_refused(right, 2, 1, 0) &&
	       hello_is_refused(right, 3, 0x80, 0) && hello_is_refused(right, 4, 1 << 16, 0) &&
	       hello_is_refused(right, 4, 1, 0) && hello_is_refused(right, -1, 0, 1);
}

/* It knows all, and comes too late. */
static bool late_words(const struct hand_name *e, const struct hand_name *peer)
{
	uint32_t right[WORDS];

	right_words(right, e, peer, true);
	return hello_is_refused(right, -1, 0, 0);
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
static bool wrong_hellos(void)
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
	ok = wrong_words(&name, &peer);
	for (i = 0; i < SILENT; i++) {
		silent[i] = dial(name.qpn);
		/* Some begin to speak. */
		if (i % 2)
			say(silent[i], "MPA ID Req Frame", (size_t)(i / 2 % 17));
	}
	ok = ok && are_cut_off(SILENT - 256, 20000);
	hand_ready(&friend, &name);
	hand_send(&friend, 2, 10);
	ok = ok && hand_took(friend.cq, 2, IBV_WC_SUCCESS) && hand_took(e.cq, 1, IBV_WC_SUCCESS);
	ok = ok && late_words(&name, &peer) && are_cut_off(SILENT, 30000);
	hand_recv(&e, 3);
	hand_send(&friend, 4, 10);
	ok = ok && hand_took(friend.cq, 4, IBV_WC_SUCCESS) && hand_took(e.cq, 3, IBV_WC_SUCCESS);
	for (i = 0; i < SILENT; i++)
		close(silent[i]);
	hand_unmake(&friend);
	hand_unmake(&e);
	hand_close(&dev);
	return ok;
}

/* ---- those who listen in a peer's place ---- */

/* Of a QP that connects, what stands at the peer's port; RIGHT_WORDS shows that the others are close. */
enum impostor {
	RIGHT_WORDS, SAYS_NOTHING, CLOSES, SAYS_GARBAGE, SAYS_NO, WRONG_MAGIC, WRONG_FROM, WRONG_TO,
	WRONG_AWAITED, WRONG_SENT, MIRROR, TURNED_MIRROR, OTHER_VERSION, IMPOSTORS,
};

static struct {
	int listener;
	uint32_t words[WORDS];
} impostors[IMPOSTORS];

/* From becomes to; what is said of PSNs stays, or is turned about, too. */
static void mirror(uint32_t words[WORDS], const uint8_t *request, bool turned)
{
	uint32_t heard[WORDS];
	int i;

	memcpy(heard, request + 24, sizeof(heard));
	for (i = 0; i < WORDS; i++)
		words[i] = ntohl(heard[i]);
	i = (int)words[2];
	words[2] = words[3];
	words[3] = (uint32_t)i;
	if (turned)
		words[4] = words[4] << 16 | words[4] >> 16;
}

static void answer_as(enum impostor who, int fd)
{
	uint8_t reply[REQUEST_LEN], request[REQUEST_LEN], octet;
	uint32_t words[WORDS];

	if (who == CLOSES) {
		close(fd);
		return;
	}
	if (who == SAYS_NOTHING || recv(fd, request, sizeof(request), MSG_WAITALL) != sizeof(request))
		return;
	memcpy(words, impostors[who].words, sizeof(words));
	if (who == WRONG_MAGIC)
		words[0] ^= 1;
	else if (who == WRONG_FROM || who == WRONG_TO)
		words[who == WRONG_FROM ? 2 : 3] ^= 1;
	else if (who == WRONG_AWAITED || who == WRONG_SENT)
		words[4] ^= who == WRONG_AWAITED ? 1 << 16 : 1;
	else if (who == MIRROR || who == TURNED_MIRROR)
		mirror(words, request, who == TURNED_MIRROR);
	else if (who == OTHER_VERSION)
		words[1] ^= 1 << 24;
	make_request(reply, words);
	memcpy(reply, "MPA ID Rep", 10);
	if (who == SAYS_NO)
		reply[16] |= 0x20;
	if (who == SAYS_GARBAGE)
		memset(reply, 0x5a, sizeof(reply));
	send(fd, reply, sizeof(reply), MSG_NOSIGNAL);
	/* Only a peer whose hello is accepted is sent anything. */
	if (recv(fd, &octet, 1, who == RIGHT_WORDS ? 0 : MSG_DONTWAIT) == 1 && who != RIGHT_WORDS)
		exit(1);
	if (who == RIGHT_WORDS)
		close(fd);
}

static void pose(int fd)
{
	struct pollfd p[IMPOSTORS + 1];
	int i;

	for (i = 0; i < IMPOSTORS; i++)
		p[i] = (struct pollfd){ .fd = impostors[i].listener, .events = POLLIN };
	p[IMPOSTORS] = (struct pollfd){ .fd = fd, .events = POLLIN };
	while (poll(p, IMPOSTORS + 1, -1) > 0 && !p[IMPOSTORS].revents)
		for (i = 0; i < IMPOSTORS; i++)
			if (p[i].revents)
				answer_as(i, accept(p[i].fd, NULL, NULL));
}

/* At an address that is the higher, so that e connects. */
static void listen_as(enum impostor who, struct hand_end *e)
{
	struct sockaddr_in at = address(1, 0);
	socklen_t len = sizeof(at);
	struct hand_name name = { .psn = 0x5a7007 }, its;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		hand_fail("no socket to pose as a peer: %s", strerror(errno));
	name.gid = e->dev->gid;
	memcpy(name.gid.raw + 12, &at.sin_addr, 4);
	name.qpn = (uint32_t)ntohs(at.sin_port) << 8 | 1;
	impostors[who].listener = fd;
	hand_tell(e, &its);
	right_words(impostors[who].words, &its, &name, false);
	hand_ready(e, &name);
}

static bool impostors_are_found_out(void)
{
	const struct hand_setting patient = waits_as_long_as(NINE_SECONDS);
	static struct hand_end e[IMPOSTORS];
	struct hand_device dev;
	struct child c;
	bool ok = true;
	long begun;
	int i;

	hand_open(&dev, addr);
	for (i = 0; i < IMPOSTORS; i++) {
		hand_make(&e[i], &dev, i == RIGHT_WORDS ? &patient : &hand_usual, NULL);
		listen_as(i, &e[i]);
	}
	c = begin(pose);
	begun = hand_now_ms();
	for (i = 0; i < IMPOSTORS; i++) {
		hand_recv(&e[i], 1);
		hand_send(&e[i], 2, 10);
	}
	for (i = 0; i < IMPOSTORS && ok; i++) {
		ok = hand_took(e[i].cq, 2, IBV_WC_RETRY_EXC_ERR) &&
		     hand_took(e[i].cq, 1, IBV_WC_WR_FLUSH_ERR) && hand_now_ms() - begun < 15000;
		/* A peer whose hello was accepted has gone, and is soon given up; any other is still awaited. */
		if (i == RIGHT_WORDS)
			ok = ok && hand_now_ms() - begun < 7500;
		if (!ok)
			printf("# of impostor %d, within %ld ms\n", i, hand_now_ms() - begun);
	}
	say(c.fd, "", 1);
	ok = end(&c, false) && ok;
	for (i = 0; i < IMPOSTORS; i++) {
		hand_unmake(&e[i]);
		close(impostors[i].listener);
	}
	hand_close(&dev);
	return ok;
}

/* ---- a peer of octets, which has its say ---- */

static size_t put32(uint8_t *p, uint32_t word)
{
	word = htonl(word);
	memcpy(p, &word, 4);
	return 4;
}

/* An FPDU of @len octets of ULPDU at @p + 2: how long it is. */
static size_t seal(uint8_t *p, size_t len)
{
	size_t end = (2 + len + 3) / 4 * 4;
	uint32_t crc;

	p[0] = (uint8_t)(len >> 8);
	p[1] = (uint8_t)len;
	memset(p + 2 + len, 0, end - 2 - len);
	crc = ~weft_crc32c(~0u, p, end);
	memcpy(p + end, &crc, 4);
	return end + 4;
}

/* A Write of nothing, by which a peer-to-peer initiator begins. */
static size_t make_rtr(uint8_t *p)
{
	memset(p, 0, 16);
	p[2] = 0xc1;
	p[3] = 0x40;
	p[7] = 1;
	return seal(p, 14);
}

/* Header of @opcode on queue @qn, message 1. */
static uint8_t *untagged(uint8_t *p, uint8_t opcode, uint32_t qn)
{
	memset(p, 0, 20);
	p[2] = 0x41;
	p[3] = 0x40 | opcode;
	put32(p + 8, qn);
	put32(p + 12, 1);
	return p + 20;
}

static size_t make_send(uint8_t *p)
{
	memcpy(untagged(p, 3, 0), "the last", 8);
	return seal(p, 18 + 8);
}

/* A Read of no octets. */
static size_t make_ask(uint8_t *p)
{
	uint8_t *q = untagged(p, 1, 1);

	memset(q, 0, 28);
	put32(q, 1);
	put32(q + 16, 1);
	return seal(p, 18 + 28);
}

/* Of a peer of octets at the same address, which is the lower: it connects, and may speak. */
static struct hand_name name_of_octets(union ibv_gid gid)
{
	return (struct hand_name){ .gid = gid, .qpn = 2, .psn = 0x7007 };
}

static int call(const struct hand_name *to)
{
	uint8_t request[REQUEST_LEN], reply[REQUEST_LEN], rtr[64];
	struct hand_name own = name_of_octets(to->gid);
	uint32_t words[WORDS];
	int fd;

	right_words(words, to, &own, true);
	make_request(request, words);
	fd = dial(to->qpn);
	say(fd, request, sizeof(request));
	if (!hear(fd, reply, sizeof(reply)) || reply[16] & 0x20)
		hand_fail("the peer of octets is refused");
	say(fd, rtr, make_rtr(rtr));
	return fd;
}

static int speak(struct hand_end *e)
{
	struct hand_name own = name_of_octets(e->dev->gid), to;

	hand_ready(e, &own);
	hand_tell(e, &to);
	return call(&to);
}

/* A Read Response of no octets comes, and then the end. */
static bool is_answered(int fd)
{
	uint8_t p[20 + 1];

	return recv(fd, p, sizeof(p), MSG_WAITALL) == 20 && p[0] == 0 && p[1] == 14 && p[2] == 0xc1 &&
	       p[3] == 0x42;
}

/*
 * The program destroys its QP with its last receive, and the peer's question whether that has come is there, and
 * not read.
 */
static bool destroyed_while_asked(void)
{
	static struct hand_end e;
	struct hand_device dev;
	uint8_t octets[64];
	struct ibv_wc wc;
	int fd;
	bool ok;

	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	fd = speak(&e);
	hand_recv(&e, 1);
	say(fd, octets, make_send(octets));
	do
		ok = ibv_poll_cq(e.cq, 1, &wc);
	while (!ok);
	ok = wc.status == IBV_WC_SUCCESS && wc.byte_len == 8;
	say(fd, octets, make_ask(octets));
	hand_unmake(&e);
	ok = is_answered(fd) && ok;
	close(fd);
	hand_close(&dev);
	return ok;
}

/* Its one message has come, and it says when. */
static bool takes_one(int fd, struct hand_device *dev, struct hand_end *e)
{
	struct hand_name name;
	struct ibv_wc wc;
	long now;

	hand_open(dev, addr);
	hand_make(e, dev, &hand_usual, NULL);
	name = name_of_octets(dev->gid);
	hand_ready(e, &name);
	hand_recv(e, 1);
	hand_tell(e, &name);
	say(fd, &name, sizeof(name));
	while (!ibv_poll_cq(e->cq, 1, &wc))
		;
	now = hand_now_ms();
	say(fd, &now, sizeof(now));
	return wc.status == IBV_WC_SUCCESS && wc.byte_len == 8;
}

static void takes_one_and_destroys(int fd)
{
	static struct hand_end e;
	struct hand_device dev;
	bool ok = takes_one(fd, &dev, &e);

	hand_unmake(&e);
	hand_close(&dev);
	exit(!ok);
}

/* It is over with that; nothing is destroyed. */
static void takes_one_and_exits(int fd)
{
	static struct hand_end e;
	struct hand_device dev;

	exit(!takes_one(fd, &dev, &e));
}

/*
 * The program listens for 200 ms, and each has that time anew. A round in which this one asked later than LATE_MS
 * shows nothing; LATE_MAX may be so.
 */
#define LATE_MS		100
#define LATE_MAX	5

/*
 * The peer asks when the program, in a process of its own, has said its last word. Some of the question, @ahead
 * octets, is there before.
 */
static bool hears_the_peer_out(void (*program)(int fd), size_t ahead)
{
	struct hand_name to;
	uint8_t octets[128];
	struct child c;
	size_t n, len;
	int i, fd, late = 0;
	bool ok = true, answered;
	long last = 0, after;

	for (i = 0; i < 10 && ok; i++) {
		c = begin(program);
		if (!hear(c.fd, &to, sizeof(to)))
			return false;
		fd = call(&to);
		n = make_send(octets);
		len = make_ask(octets + n);
		say(fd, octets, n + ahead);
		ok = hear(c.fd, &last, sizeof(last));
		usleep(30000);
		/* The port may have closed: then there is no answer. */
		send(fd, octets + n + ahead, len - ahead, MSG_NOSIGNAL);
		after = hand_now_ms() - last;
		answered = ok && is_answered(fd);
		if (ok && !answered)
			printf("# round %d: asked %ld ms after the last word, not answered\n", i, after);
		if (!answered && after >= LATE_MS && late++ < LATE_MAX)
			i--;
		else
			ok = ok && answered;
		ok = end(&c, false) && ok;
		close(fd);
	}
	return ok;
}

static bool destroy_hears_the_peer_out(void)
{
	int i;

	for (i = 0; i < 10; i++)
		if (!destroyed_while_asked()) {
			printf("# the question that came in time has no answer\n");
			return false;
		}
	/* Amid the question. */
	return hears_the_peer_out(takes_one_and_destroys, 10);
}

static bool exit_hears_the_peer_out(void)
{
	return hears_the_peer_out(takes_one_and_exits, 0);
}

#define STOPPED 80

/* Peers that never ask what became of their last Send, as if they had stopped. */
static bool silent_peers_hold_up_no_destroy(void)
{
	static struct hand_end e[STOPPED];
	struct hand_device dev;
	int i, fd[STOPPED];
	uint8_t octets[64];
	bool ok = true;
	long from;

	hand_open(&dev, addr);
	for (i = 0; i < STOPPED; i++) {
		hand_make(&e[i], &dev, &hand_usual, NULL);
		fd[i] = speak(&e[i]);
		hand_recv(&e[i], 1);
		say(fd[i], octets, make_send(octets));
		ok = ok && hand_took(e[i].cq, 1, IBV_WC_SUCCESS);
	}
	from = hand_now_ms();
	for (i = 0; i < STOPPED; i++)
		hand_unmake(&e[i]);
	from = hand_now_ms() - from;
	printf("# %d QPs of silent peers are destroyed in %ld ms\n", STOPPED, from);
	for (i = 0; i < STOPPED; i++)
		close(fd[i]);
	hand_close(&dev);
	/* Half of what it takes to wait for each. */
	return ok && from < STOPPED * 100;
}

static volatile bool unmade;

static void *unmakes(void *end)
{
	hand_unmake(end);
	unmade = true;
	return NULL;
}

/* While one thread waits for a silent peer in ibv_destroy_qp() others register memory. */
static bool waiting_for_a_peer_holds_up_no_call(void)
{
	static struct hand_end e;
	struct hand_device dev;
	pthread_t thread;
	uint8_t octets[64];
	bool ok;
	struct ibv_mr *mr;
	long from, took, longest = 0, n = 0;
	int fd;

	hand_open(&dev, addr);
	hand_make(&e, &dev, &hand_usual, NULL);
	fd = speak(&e);
	hand_recv(&e, 1);
	say(fd, octets, make_send(octets));
	ok = hand_took(e.cq, 1, IBV_WC_SUCCESS);
	/* The time in which all of the process may wait is used anew. */
	poll(NULL, 0, 1100);
	unmade = false;
	if (pthread_create(&thread, NULL, unmakes, &e))
		hand_fail("no thread");
	while (!unmade) {
		from = hand_now_ms();
		mr = ibv_reg_mr(dev.pd, octets, sizeof(octets), 0);
		if (!mr || ibv_dereg_mr(mr))
			hand_fail("no region");
		took = hand_now_ms() - from;
		longest = took > longest ? took : longest;
		n++;
	}
	pthread_join(thread, NULL);
	printf("# %ld registrations meanwhile, the longest took %ld ms\n", n, longest);
	close(fd);
	hand_close(&dev);
	return ok && n > 10 && longest < 100;
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
	{ "peer-killed-whose-child-lives", killed_with_children },
	{ "many-qps-connect-in-time", connects_many },
	{ "wrong-hellos-are-refused", wrong_hellos },
	{ "a-listener-in-the-peer's-place-is-detected", impostors_are_found_out },
	{ "destroy-drains-the-peer", destroy_hears_the_peer_out },
	{ "silent-peers-hold-up-no-destroy", silent_peers_hold_up_no_destroy },
	{ "waiting-for-a-peer-holds-up-no-call", waiting_for_a_peer_holds_up_no_call },
	/* Behind one whose patience is spent: its children have their own. */
	{ "exit-drains-the-peer", exit_hears_the_peer_out },
	{ "peer-that-exits-has-acknowledged-what-it-received", exits_after_the_last },
};

int main(int argc, char **argv)
{
	int i, n = sizeof(cases) / sizeof(*cases);

	setvbuf(stdout, NULL, _IOLBF, 0);
	hand_program = "weft-handpeers";
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: weft-handpeers ADDR MS [CASE]\n");
		return 2;
	}
	addr = argv[1];
	limit_ms = atol(argv[2]);
	verdict_only(argv[3]);
	for (i = 0; i < n; i++)
		if (verdict_wants(cases[i].name))
			verdict_if(cases[i].name, cases[i].run());
	return verdict_end();
}
