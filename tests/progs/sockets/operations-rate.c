// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * tcp|send|put [ROUNDS [LARGE]]: two processes at 127.0.0.1 that spin. Prints half a round trip of
 * 4 octets in us, and the rate of a stream of 64 KB pieces in 10^6 octets a second: over TCP's
 * calls, or over weft-socket.h's sends or puts.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../providers/sockets/weft-socket.h"

#define LARGE	65536
#define DEPTH	16

static enum { BY_TCP, BY_SEND, BY_PUT } way;
static int rounds = 50000, pieces = 16384, fd;
static char buf[DEPTH][LARGE], word[DEPTH][4];
/* Puts: the peer's words go here. */
static struct {
	volatile uint32_t turn;
} mine;
static char sink[DEPTH][LARGE];
static uint32_t own_keys[2], keys[2];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- TCP ---- */

static void say(const char *p, size_t n)
{
	while (n) {
		ssize_t rv = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (rv < 0 && errno == EAGAIN)
			continue;
		if (rv <= 0)
			die("send");
		p += rv;
		n -= (size_t)rv;
	}
}

static void hear(char *p, size_t n)
{
	while (n) {
		ssize_t rv = recv(fd, p, n, MSG_DONTWAIT);

		if (rv < 0 && errno == EAGAIN)
			continue;
		if (rv <= 0)
			die("recv");
		p += rv;
		n -= (size_t)rv;
	}
}

/* ---- operations ---- */

static int sends_out;

/* The next receive that is filled: its ahandle; -1: none yet. What was sent is counted. */
static int look(void)
{
	struct weft_qevent ev;
	int n = weft_qnow(fd, &ev, 1);

	if (n < 0 && errno == EAGAIN)
		return -1;
	if (n != 1 || ev.error)
		die("weft_qnow");
	if (ev.what == WEFT_POST_RECV)
		return (int)ev.ahandle;
	sends_out--;
	return -1;
}

static int await(void)
{
	int got;

	while ((got = look()) < 0)
		;
	return got;
}

static void post_recv(int i)
{
	if (weft_recv(fd, buf[i], LARGE, 0, (uint64_t)i))
		die("weft_recv");
}

static void post(int what, const void *p, size_t n, uint32_t key, uint64_t offset)
{
	struct iovec v = { (void *)(uintptr_t)p, n };

	while (sends_out == DEPTH)
		look();
	if (weft_post(fd, what, &v, 1, key, offset, 0, 0))
		die("weft_post");
	sends_out++;
}

static void begin(int role)
{
	struct weft_iwarp_mode m = { .size = sizeof(m), .role = (uint8_t)role, .flags = WEFT_IWARP_OPERATIONS,
				     .depth = DEPTH };
	int i;

	if (setsockopt(fd, SOL_WEFT, WEFT_IWARP_MODE, &m, sizeof(m)))
		die("WEFT_IWARP_MODE");
	for (i = 0; i < DEPTH; i++)
		post_recv(i);
	if (way == BY_PUT && (weft_mregister(fd, (void *)&mine, sizeof(mine), WEFT_MAY_PUT, &own_keys[0]) ||
			      weft_mregister(fd, sink, sizeof(sink), WEFT_MAY_PUT, &own_keys[1])))
		die("weft_mregister");
	post(WEFT_POST_SEND, own_keys, sizeof(own_keys), 0, 0);
	i = await();
	memcpy(keys, buf[i], sizeof(keys));
	post_recv(i);
}

static void put_word(uint32_t turn)
{
	memcpy(word[turn % DEPTH], &turn, 4);
	post(WEFT_POST_PUT, word[turn % DEPTH], 4, keys[0], 0);
}

static void await_word(uint32_t turn)
{
	while (mine.turn != turn)
		look();
}

/* ---- both ---- */

static void ping(int i)
{
	switch (way) {
	case BY_TCP:
		say(word[0], 4);
		return;
	case BY_SEND:
		post(WEFT_POST_SEND, word[0], 4, 0, 0);
		return;
	case BY_PUT:
		put_word((uint32_t)i + 1);
	}
}

static void pong(int i)
{
	int got;

	switch (way) {
	case BY_TCP:
		hear(word[1], 4);
		return;
	case BY_SEND:
		got = await();
		post_recv(got);
		return;
	case BY_PUT:
		await_word((uint32_t)i + 1);
	}
}

static void stream_out(void)
{
	int i;

	for (i = 0; i < pieces; i++)
		if (way == BY_TCP)
			say(sink[0], LARGE);
		else if (way == BY_SEND)
			post(WEFT_POST_SEND, sink[i % DEPTH], LARGE, 0, 0);
		else
			post(WEFT_POST_PUT, buf[i % DEPTH], LARGE, keys[1], (uint64_t)(i % DEPTH) * LARGE);
	if (way == BY_PUT)
		put_word(~0u);
}

static void stream_in(void)
{
	int i;

	if (way == BY_PUT) {
		await_word(~0u);
		return;
	}
	for (i = 0; i < pieces; i++)
		if (way == BY_TCP)
			hear(sink[0], LARGE);
		else
			post_recv(await());
}

static void serve(void)
{
	int i;

	for (i = 0; i < rounds; i++) {
		pong(i);
		ping(i);
	}
	stream_in();
	ping(rounds);
	/* The other end says that it has this. */
	pong(rounds);
}

static void measure(void)
{
	double from = now(), half;
	int i;

	for (i = 0; i < rounds; i++) {
		ping(i);
		pong(i);
	}
	half = (now() - from) / rounds / 2;
	from = now();
	stream_out();
	pong(rounds);
	printf("%.3f %.1f\n", half * 1e6, (double)LARGE * pieces / (now() - from) / 1e6);
	ping(rounds);
}

static void connect_pair(int pair[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM, 0), i, one = 1;
	socklen_t len = sizeof(a);

	if (bind(l, (struct sockaddr *)&a, len) || listen(l, 1) || getsockname(l, (struct sockaddr *)&a, &len))
		die("listen");
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(pair[0], (struct sockaddr *)&a, len))
		die("connect");
	pair[1] = accept(l, NULL, NULL);
	for (i = 0; i < 2; i++)
		setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(l);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "tcp";
	int pair[2], status = 0;
	pid_t pid;

	way = !strcmp(name, "put") ? BY_PUT : !strcmp(name, "send") ? BY_SEND : BY_TCP;
	rounds = argc > 2 ? atoi(argv[2]) : rounds;
	pieces = argc > 3 ? atoi(argv[3]) : pieces;
	connect_pair(pair);
	pid = fork();
	fd = pair[!pid];
	close(pair[!!pid]);
	if (way != BY_TCP)
		begin(pid ? WEFT_IWARP_INITIATOR : WEFT_IWARP_RESPONDER);
	if (!pid) {
		serve();
		exit(0);
	}
	measure();
	return waitpid(pid, &status, 0) != pid || status;
}
