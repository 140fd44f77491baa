// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: weft-socket.h's posted operations, case by case, over connections of 127.0.0.1 to
 * itself under `weft-run --sockets`; TAP. In each case a child is the client. The case "without"
 * tests a program that runs without weft.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../providers/sockets/weft-socket.h"
#include "sleeps.h"

#define BULK	(8u << 20)

static struct sockaddr_in addr = { .sin_family = AF_INET };
static char *self;
static int listener;
static unsigned char *bulk[2];
static int bell[2];			/* a pipe, to the client */

#define NEED(what) do { if (!(what)) return say(__LINE__, #what); } while (0)
#define FAILS(call, why) ((call) == -1 && errno == (why))
/* Kernels differ in what they say of a level of getsockopt() that they do not know. */
#define IS_UNKNOWN(call) ((call) == -1 && (errno == ENOPROTOOPT || errno == EOPNOTSUPP))

static bool say(int line, const char *what)
{
	printf("# line %d: %s: errno %d (%s), pid %d\n", line, what, errno, strerror(errno), getpid());
	fflush(stdout);
	return false;
}

/* ---- ends ---- */

static int set_mode(int fd, int role, uint32_t depth)
{
	struct weft_iwarp_mode m = { .size = sizeof(m), .role = (uint8_t)role, .flags = WEFT_IWARP_OPERATIONS,
				     .depth = depth };

	return setsockopt(fd, SOL_WEFT, WEFT_IWARP_MODE, &m, sizeof(m));
}

static bool is_event(const struct weft_qevent *ev, int what, uint64_t ahandle, uint32_t length)
{
	NEED(!ev->error);
	NEED(ev->what == what);
	NEED(ev->ahandle == ahandle);
	NEED(ev->length == length);
	return true;
}

static bool take(int fd, int what, uint64_t ahandle, uint32_t length)
{
	struct weft_qevent ev;

	NEED(weft_qdequeue(fd, &ev, 1, -1) == 1);
	return is_event(&ev, what, ahandle, length);
}

static bool ends_with(int fd, int why)
{
	struct weft_qevent ev;

	while (weft_qdequeue(fd, &ev, 1, -1) == 1)
		;
	NEED(errno == why);
	return true;
}

/* Once the ends have agreed. Nothing is received. */
static bool is_open(int fd)
{
	int state;
	socklen_t len = sizeof(state);

	do {
		NEED(!getsockopt(fd, SOL_WEFT, WEFT_IWARP_MODE, &state, &len));
		usleep(1000);
	} while (state == WEFT_IWARP_STARTING);
	NEED(state == WEFT_IWARP_OPEN);
	return true;
}

/* The other end is as far as this one. */
static bool meet(int fd)
{
	struct weft_qevent ev[2];
	int got = 0, n;
	char c;

	NEED(!weft_recv(fd, &c, 1, 0, 100));
	NEED(!weft_send(fd, "m", 1, 0, 101));
	for (; got < 2; got += n) {
		n = weft_qdequeue(fd, ev + got, 2 - got, -1);
		NEED(n > 0);
	}
	NEED(!ev[0].error && !ev[1].error && ev[0].ahandle + ev[1].ahandle == 201);
	return true;
}

static void fill(unsigned char *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 7 + (i >> 9) * 13 + seed);
}

static bool is_filled(const unsigned char *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i * 7 + (i >> 9) * 13 + seed))
			return false;
	return true;
}

/* ---- messages, puts and gets ---- */

static bool talk_server(int fd)
{
	socklen_t len = sizeof(int);
	uint32_t key;
	char done;
	int mode;

	NEED(FAILS(weft_qnow(-1, &(struct weft_qevent){ 0 }, 1), EBADF));
	NEED(FAILS(weft_qfd(-1), EBADF) && FAILS(weft_send(-1, "x", 1, 0, 0), EBADF));
	NEED(FAILS(getsockopt(-1, SOL_WEFT, WEFT_IWARP_MODE, &mode, &len), EBADF));
	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(!weft_mregister(fd, bulk[0], BULK, WEFT_MAY_PUT | WEFT_MAY_GET, &key));
	NEED(!weft_recv(fd, &done, 1, 0, 1));
	NEED(!weft_send(fd, &key, sizeof(key), 0, 2));
	/* What the client puts here needs no call. */
	NEED(take(fd, WEFT_POST_SEND, 2, sizeof(key)));
	NEED(take(fd, WEFT_POST_RECV, 1, 1));
	NEED(is_filled(bulk[0], BULK, 3));
	NEED(!weft_mderegister(fd, key));
	NEED(!weft_send(fd, "bye", 3, 0, 3));
	NEED(take(fd, WEFT_POST_SEND, 3, 3));
	return ends_with(fd, ENOTCONN);
}

static bool talk_client(int fd)
{
	uint32_t key;
	char bye[3];

	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	NEED(!weft_recv(fd, &key, sizeof(key), 0, 1));
	NEED(!weft_recv(fd, bye, 3, 0, 2));
	NEED(take(fd, WEFT_POST_RECV, 1, sizeof(key)));
	fill(bulk[0], BULK, 3);
	NEED(!weft_put(fd, bulk[0], BULK, key, 0, 0, 3));
	NEED(!weft_get(fd, bulk[1], BULK, key, 0, 0, 4));
	NEED(take(fd, WEFT_POST_PUT, 3, BULK));
	NEED(take(fd, WEFT_POST_GET, 4, BULK));
	NEED(is_filled(bulk[1], BULK, 3));
	NEED(!weft_send(fd, "!", 1, 0, 5));
	NEED(take(fd, WEFT_POST_SEND, 5, 1));
	NEED(take(fd, WEFT_POST_RECV, 2, 3));
	return true;
}

static bool deny_server(int fd)
{
	uint32_t key;

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(!weft_mregister(fd, bulk[0], 4096, WEFT_MAY_PUT, &key));
	NEED(!weft_send(fd, &key, sizeof(key), 0, 2));
	NEED(ends_with(fd, EACCES));
	NEED(!bulk[0][4096]);
	return true;
}

static bool deny_client(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	uint32_t key;

	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	NEED(!weft_recv(fd, &key, sizeof(key), 0, 1));
	NEED(take(fd, WEFT_POST_RECV, 1, sizeof(key)));
	NEED(!weft_put(fd, "ab", 2, key, 4095, 0, 3));
	NEED(ends_with(fd, EACCES));
	/* SO_ERROR tells it once. */
	NEED(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && error == EACCES);
	NEED(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	return true;
}

/* ---- looking busily ---- */

#define BATCHES	20
#define ROUNDS	200
#define QUIET	20			/* the last, without a call */

/* The events of the puts before; there are no others. */
static bool look(int fd)
{
	struct weft_qevent ev;
	int n = weft_qnow(fd, &ev, 1);

	NEED(n == 1 ? !ev.error : n == -1 && errno == EAGAIN);
	return true;
}

/* Waits for the peer's @turn, which it puts to bulk[0]. */
static bool await_turn(int fd, uint32_t turn, bool looks)
{
	volatile uint32_t *word = (volatile uint32_t *)bulk[0];

	while (*word != turn)
		NEED(!looks || look(fd));
	return true;
}

/* The turns up to @until. */
static bool take_turns(int fd, bool begins, uint32_t key, uint32_t *turn, uint32_t until, bool looks)
{
	uint32_t *word = (uint32_t *)bulk[1];

	while (*turn < until) {
		++*turn;
		NEED(begins || await_turn(fd, *turn, looks));
		*word = *turn;
		NEED(!weft_put(fd, word, sizeof(*word), key, 0, 0, 3));
		NEED(!begins || await_turn(fd, *turn, looks));
	}
	return true;
}

/* The least of all batches: a program that is preempted does not look, and its thread has to. */
static bool ping_pong(int fd, bool begins)
{
	uint32_t key, peers, turn = 0;
	long slept, least = ROUNDS;
	int i;

	NEED(!weft_recv(fd, &peers, sizeof(peers), 0, 1));
	NEED(!weft_mregister(fd, bulk[0], 4, WEFT_MAY_PUT, &key));
	NEED(!weft_send(fd, &key, sizeof(key), 0, 2));
	for (i = 0; i < 2; i++)
		NEED(weft_qdequeue(fd, &(struct weft_qevent){ 0 }, 1, -1) == 1);
	for (i = 0; i < BATCHES; i++) {
		/* It may be about to begin. */
		while ((slept = sleeps_of_progress()) < 0)
			usleep(1000);
		NEED(take_turns(fd, begins, peers, &turn, turn + ROUNDS, true));
		slept = sleeps_of_progress() - slept;
		if (slept < least)
			least = slept;
	}
	printf("# weft's thread slept %ld times in %d puts\n", least, ROUNDS);
	NEED(least < ROUNDS / 8);
	return take_turns(fd, begins, peers, &turn, turn + QUIET, false);
}

static bool looks_server(int fd)
{
	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	return ping_pong(fd, true);
}

static bool looks_client(int fd)
{
	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	return ping_pong(fd, false);
}

/* ---- octets ---- */

static bool mixed_server(int fd)
{
	char got[8];
	int n = -1;

	NEED(recv(fd, got, 3, MSG_WAITALL) == 3);
	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(recv(fd, got, 5, MSG_WAITALL) == 5 && !memcmp(got, "later", 5));
	NEED(meet(fd));
	NEED(FAILS(recv(fd, got, 1, 0), EOPNOTSUPP));
	NEED(FAILS(read(fd, got, 1), EOPNOTSUPP));
	NEED(FAILS(send(fd, got, 1, 0), EOPNOTSUPP));
	NEED(FAILS(write(fd, got, 1), EOPNOTSUPP));
	NEED(FAILS(shutdown(fd, SHUT_WR), EOPNOTSUPP));
	NEED(FAILS(set_mode(fd, WEFT_IWARP_RESPONDER, 0), EALREADY));
	NEED(!ioctl(fd, FIONREAD, &n) && !n);
	return meet(fd);
}

static bool mixed_client(int fd)
{
	NEED(send(fd, "STAlater", 8, 0) == 8);
	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	return meet(fd) && meet(fd);
}

/* ---- waiting ---- */

/* An event that cannot be delivered is not taken. */
static bool keeps_event(int fd)
{
	socklen_t *len = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct weft_qevent ev;

	NEED(len != MAP_FAILED);
	*len = sizeof(ev);
	NEED(!mprotect(len, 4096, PROT_READ));
	NEED(FAILS(getsockopt(fd, SOL_WEFT, WEFT_QEVENTS, &ev, len), EFAULT));
	NEED(!munmap(len, 4096));
	return true;
}

static bool poll_for(int fd, short events, short want)
{
	struct pollfd p = { .fd = fd, .events = events };

	NEED(poll(&p, 1, 20000) == 1);
	NEED(p.revents == want);
	return true;
}

/* By poll() and select(), without a thread of weft's and with one, and by epoll at the descriptor. */
static bool wait_server(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 5 }, got;
	int ep = epoll_create1(EPOLL_CLOEXEC), q, i;
	struct timeval t = { .tv_sec = 20 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint32_t key;
	fd_set set;
	char c[5];

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 4));
	for (i = 0; i < 4; i++)
		NEED(!weft_recv(fd, c + i, 1, 0, (uint64_t)i));
	NEED(FAILS(weft_recv(fd, c, 1, 0, 9), EAGAIN));
	NEED(poll_for(fd, POLLIN, POLLIN));
	NEED(take(fd, WEFT_POST_RECV, 0, 1));
	NEED(poll(&p, 1, 0) == 0);
	NEED(poll_for(fd, POLLOUT, POLLOUT));
	NEED(!weft_mregister(fd, bulk[0], 4096, WEFT_MAY_PUT, &key));
	NEED(!weft_send(fd, "g", 1, 0, 10));
	NEED(take(fd, WEFT_POST_SEND, 10, 1));
	NEED(poll_for(fd, POLLIN, POLLIN));
	NEED(keeps_event(fd));
	NEED(take(fd, WEFT_POST_RECV, 1, 1));
	NEED(!weft_send(fd, "g", 1, 0, 10));
	NEED(take(fd, WEFT_POST_SEND, 10, 1));
	/* An edge for each event, though those before were not dequeued. */
	ev.events = EPOLLIN | EPOLLET;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	NEED(epoll_wait(ep, &got, 1, 20000) == 1);
	NEED(!weft_recv(fd, c + 4, 1, 0, 4));
	NEED(!weft_send(fd, "g", 1, 0, 10));
	NEED(epoll_wait(ep, &got, 1, 20000) == 1);
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
	ev.events = EPOLLIN;
	NEED(take(fd, WEFT_POST_RECV, 2, 1));
	NEED(take(fd, WEFT_POST_SEND, 10, 1));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	NEED(select(fd + 1, &set, NULL, NULL, &t) == 1 && FD_ISSET(fd, &set));
	NEED(take(fd, WEFT_POST_RECV, 3, 1));
	q = weft_qfd(fd);
	NEED(q >= 0);
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, q, &ev));
	NEED(epoll_wait(ep, &got, 1, 0) == 0);
	NEED(!weft_send(fd, "g", 1, 0, 10));
	NEED(take(fd, WEFT_POST_SEND, 10, 1));
	NEED(epoll_wait(ep, &got, 1, 20000) == 1 && got.data.u32 == 5);
	NEED(take(fd, WEFT_POST_RECV, 4, 1));
	NEED(epoll_wait(ep, &got, 1, 0) == 0);
	NEED(!weft_send(fd, "g", 1, 0, 10));
	NEED(take(fd, WEFT_POST_SEND, 10, 1));
	/* The end of the peer. */
	NEED(poll_for(fd, POLLIN, POLLIN | POLLHUP));
	NEED(epoll_wait(ep, &got, 1, 20000) == 1);
	NEED(ends_with(fd, ENOTCONN));
	return !close(q) && !close(ep);
}

static bool wait_client(int fd)
{
	uint64_t i;
	char c;

	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	for (i = 0; i < 6; i++) {
		if (i) {
			NEED(!weft_recv(fd, &c, 1, 0, i));
			NEED(take(fd, WEFT_POST_RECV, i, 1));
		}
		/* The server sleeps by then, more often than not. */
		usleep(20000);
		if (i == 5)
			break;
		NEED(!weft_send(fd, "x", 1, 0, i));
		NEED(take(fd, WEFT_POST_SEND, i, 1));
	}
	return true;
}

/* One thread sleeps in weft_qdequeue() and another posts what completes at once. */
static void *sleep_for_event(void *arg)
{
	int fd = *(int *)arg;

	return (void *)(intptr_t)take(fd, WEFT_POST_SEND, 7, 1);
}

static bool threads_server(int fd)
{
	pthread_t t;
	void *ok;

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(meet(fd));
	NEED(!pthread_create(&t, NULL, sleep_for_event, &fd));
	usleep(50000);
	NEED(!weft_send(fd, "t", 1, 0, 7));
	NEED(!pthread_join(t, &ok));
	NEED(ok);
	return true;
}

static bool threads_client(int fd)
{
	char c;

	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	NEED(meet(fd));
	NEED(!weft_recv(fd, &c, 1, 0, 8));
	return ends_with(fd, ENOTCONN);
}

static void *waits_for_ever(void *arg)
{
	struct weft_qevent ev;

	return (void *)(intptr_t)(weft_qdequeue(*(int *)arg, &ev, 1, -1) == -1);
}

/* The peer hears of the end, and the thread, too. */
static bool closes_server(int fd)
{
	pthread_t thread;
	uint32_t key;
	void *left;
	char c;

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0) && meet(fd));
	NEED(!weft_mregister(fd, bulk[0], 1, WEFT_MAY_PUT, &key));
	NEED(!weft_recv(fd, &c, 1, 0, 1));
	NEED(!pthread_create(&thread, NULL, waits_for_ever, &fd));
	usleep(200000);
	NEED(!close(fd));
	NEED(!pthread_join(thread, &left) && left);
	return true;
}

static bool closes_client(int fd)
{
	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0) && meet(fd));
	return ends_with(fd, ENOTCONN);
}

/* ---- processes ---- */

static bool forks_server(int fd)
{
	uint32_t key;
	pid_t pid;
	int status;
	char c;

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(meet(fd));
	NEED(!weft_mregister(fd, bulk[0], 4096, WEFT_MAY_PUT, &key));
	NEED(!weft_recv(fd, &c, 1, 0, 1));
	pid = fork();
	if (!pid) {
		char number[12];

		if (!FAILS(weft_send(fd, "x", 1, 0, 0), EIO) || !FAILS(weft_recv(fd, &c, 1, 0, 0), EIO) ||
		    !FAILS(weft_qnow(fd, &(struct weft_qevent){ 0 }, 1), EIO) || !FAILS(weft_qfd(fd), EIO) ||
		    !FAILS(weft_mderegister(fd, key), EIO))
			_exit(1);
		snprintf(number, sizeof(number), "%d", fd);
		execl(self, self, number, "is-closed", NULL);
		_exit(2);
	}
	NEED(waitpid(pid, &status, 0) == pid && !status);
	NEED(!weft_send(fd, &key, sizeof(key), 0, 2));
	do
		NEED(weft_qdequeue(fd, &(struct weft_qevent){ 0 }, 1, -1) == 1);
	while (c != 'z');
	NEED(bulk[0][0] == 'y');
	return true;
}

static bool forks_client(int fd)
{
	uint32_t key;

	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	NEED(meet(fd));
	NEED(!weft_recv(fd, &key, sizeof(key), 0, 1));
	NEED(take(fd, WEFT_POST_RECV, 1, sizeof(key)));
	NEED(!weft_put(fd, "y", 1, key, 0, 0, 2));
	NEED(!weft_send(fd, "z", 1, 0, 3));
	return ends_with(fd, ENOTCONN);
}

/* It goes by exit() with everything posted and nothing taken. */
static bool exits_server(int fd)
{
	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(!weft_recv(fd, bulk[0], BULK, 0, 1));
	NEED(take(fd, WEFT_POST_RECV, 1, BULK));
	NEED(is_filled(bulk[0], BULK, 9));
	return ends_with(fd, ENOTCONN);
}

static bool exits_client(int fd)
{
	fill(bulk[0], BULK, 9);
	NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
	NEED(!weft_send(fd, bulk[0], BULK, 0, 1));
	return is_open(fd);
}

/* Nothing is read before the client is gone: TCP has taken what it can by then. */
static bool killed_server(int fd)
{
	siginfo_t info;

	NEED(!set_mode(fd, WEFT_IWARP_RESPONDER, 0));
	NEED(is_open(fd));
	NEED(!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
	NEED(!weft_recv(fd, calloc(8, BULK), 8 * BULK, 0, 1));
	NEED(ends_with(fd, ECONNRESET));
	return true;
}

/* In the middle of a message, of which TCP takes a part. */
static bool killed_client(int fd)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		NEED(!set_mode(fd, WEFT_IWARP_INITIATOR, 0));
		NEED(!weft_send(fd, calloc(8, BULK), 8 * BULK, 0, 1));
		NEED(is_open(fd));
		for (;;) {
			int sent = 0;

			/* Some of it is on its way. */
			if (!ioctl(fd, TIOCOUTQ, &sent) && sent > 100000)
				raise(SIGKILL);
			NEED(weft_qnow(fd, &(struct weft_qevent){ 0 }, 1) < 0);
		}
	}
	close(fd);
	NEED(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* ---- a peer that is plain ---- */

/* What was posted comes back, and then the socket is an ordinary one. */
static bool plain_server(int fd)
{
	struct weft_iwarp_mode m = { .size = sizeof(m), .role = WEFT_IWARP_RESPONDER,
				     .flags = WEFT_IWARP_OPERATIONS | WEFT_IWARP_OR_PLAIN };
	struct epoll_event ev = { .events = EPOLLIN };
	struct weft_qevent events[3];
	struct pollfd p = { .events = POLLIN };
	int ep = epoll_create1(0), i;
	char c[5];

	NEED(!setsockopt(fd, SOL_WEFT, WEFT_IWARP_MODE, &m, sizeof(m)));
	NEED(!weft_recv(fd, c, sizeof(c), 0, 1) && !weft_send(fd, "x", 1, 0, 2) && !weft_recv(fd, c, 1, 0, 3));
	p.fd = weft_qfd(fd);
	NEED(p.fd >= 0 && poll(&p, 1, 0) == 0);
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	/* Now it may speak. */
	NEED(write(bell[1], "", 1) == 1 && poll(&p, 1, -1) == 1);
	NEED(weft_qdequeue(fd, events, 1, -1) == 1);
	NEED(weft_qdequeue(fd, events + 1, 2, -1) == 2);
	for (i = 0; i < 3; i++)
		NEED(events[i].error == ECANCELED && events[i].ahandle >= 1 && events[i].ahandle <= 3);
	NEED(events[0].ahandle + events[1].ahandle + events[2].ahandle == 6);
	for (i = 0; i < 2; i++)
		NEED(FAILS(weft_qdequeue(fd, events, 1, -1), EPROTO) && FAILS(weft_recv(fd, c, 1, 0, 4), EPROTO));
	NEED(poll(&p, 1, 0) == 1);
	NEED(epoll_wait(ep, &ev, 1, -1) == 1 && !epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL) &&
	     !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) && epoll_wait(ep, &ev, 1, -1) == 1);
	NEED(recv(fd, c, 5, MSG_WAITALL) == 5 && !memcmp(c, "hello", 5) && send(fd, "HELLO", 5, 0) == 5);
	close(ep);
	close(p.fd);
	return true;
}

static bool plain_client(int fd)
{
	char c[5];

	NEED(read(bell[0], c, 1) == 1);
	NEED(send(fd, "hello", 5, 0) == 5);
	NEED(recv(fd, c, 5, MSG_WAITALL) == 5 && !memcmp(c, "HELLO", 5));
	NEED(!recv(fd, c, 1, 0));
	return true;
}

/* ---- without weft ---- */

static bool without_server(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 1 && send(fd, &c, 1, 0) == 1;
}

static bool without_client(int fd)
{
	struct weft_qevent ev;
	uint32_t key;
	char c = 'x';

	NEED(FAILS(set_mode(fd, WEFT_IWARP_INITIATOR, 0), ENOPROTOOPT));
	NEED(FAILS(weft_send(fd, &c, 1, 0, 0), ENOPROTOOPT));
	NEED(FAILS(weft_recv(fd, &c, 1, 0, 0), ENOPROTOOPT));
	NEED(FAILS(weft_put(fd, &c, 1, 1, 0, 0, 0), ENOPROTOOPT));
	NEED(FAILS(weft_get(fd, &c, 1, 1, 0, 0, 0), ENOPROTOOPT));
	NEED(IS_UNKNOWN(weft_mregister(fd, &c, 1, WEFT_MAY_PUT, &key)));
	NEED(FAILS(weft_mderegister(fd, 1), ENOPROTOOPT));
	NEED(IS_UNKNOWN(weft_qdequeue(fd, &ev, 1, -1)));
	NEED(IS_UNKNOWN(weft_qfd(fd)));
	/* And it is an ordinary socket yet. */
	NEED(send(fd, &c, 1, 0) == 1 && recv(fd, &c, 1, 0) == 1);
	return true;
}

/* ---- running ---- */

static const struct a_case {
	const char *name;
	bool (*server)(int fd), (*client)(int fd);
} cases[] = {
	{ "messages-puts-and-gets", talk_server, talk_client },
	{ "a-bad-put-ends-both", deny_server, deny_client },
	{ "who-looks-busily-leaves-the-thread-asleep", looks_server, looks_client },
	{ "octets-do-not-mix", mixed_server, mixed_client },
	{ "poll-select-and-epoll-wait", wait_server, wait_client },
	{ "a-thread-waits-and-another-posts", threads_server, threads_client },
	{ "closed-under-a-thread-that-waits", closes_server, closes_client },
	{ "a-child-has-none", forks_server, forks_client },
	{ "exit-waits-for-what-is-posted", exits_server, exits_client },
	{ "a-killed-peer-is-an-error", killed_server, killed_client },
	{ "a-plain-peer-and-what-was-posted", plain_server, plain_client },
	{ "without", without_server, without_client },
};

static bool run(const struct a_case *c)
{
	int fd, status;
	bool ok;
	pid_t pid = fork();

	if (!pid) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		close(listener);
		exit(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) || !c->client(fd));
	}
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ok = fd >= 0 && c->server(fd);
	close(fd);
	if (!ok)
		kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && !status && ok;
}

int main(int argc, char **argv)
{
	int one = 1, failed = 0;
	unsigned int i, n = 0;

	self = argv[0];
	if (argc > 2 && !strcmp(argv[2], "is-closed"))
		return fcntl(atoi(argv[1]), F_GETFD) != -1;
	addr.sin_port = htons((unsigned short)atoi(argc > 1 ? argv[1] : "0"));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bulk[0] = calloc(2, BULK);
	if (pipe(bell))
		return 1;
	bulk[1] = bulk[0] + BULK;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 16)) {
		perror("listen");
		return 1;
	}
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool named = argc > 2 && !strcmp(argv[2], cases[i].name), ok;

		if (argc > 2 ? !named : !strcmp(cases[i].name, "without"))
			continue;
		memset(bulk[0], 0, 2 * BULK);
		alarm(30);
		ok = run(&cases[i]);
		failed += !ok;
		printf("%sok %u - %s\n", ok ? "" : "not ", ++n, cases[i].name);
		fflush(stdout);
	}
	return failed || !n;
}
