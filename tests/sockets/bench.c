// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compares streams with plain TCP over lo: half a round trip of 4 octets, and 64 KB writes. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "../../providers/rootless/process/hook.h"
#include "../../providers/rootless/process/options.h"
#include "../../providers/sockets/stream/stream.h"

#define LARGE 65536

/* 4 B round trips, and 64 KB writes. */
static int rounds = 20000, large_rounds = 16384;

struct end {
	int fd;
	struct rl_stream *s;		/* NULL: plain TCP */
	bool spin;
};

void *rl_real_find(struct rl_next *n)
{
	return dlsym(RTLD_DEFAULT, n->name);
}

static void die(const char *what, long rv)
{
	fprintf(stderr, "bench: %s: %ld\n", what, rv);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void await(const struct end *e, unsigned int events)
{
	struct pollfd p = { .fd = e->fd, .events = events };

	if (e->s)
		p.events = rl_stream_awaits(e->s, events);
	if (!e->spin)
		poll(&p, 1, -1);
}

static void say(const struct end *e, const void *p, size_t n)
{
	struct iovec iov = { (void *)p, n };

	while (iov.iov_len) {
		ssize_t rv = e->s ? rl_stream_send(e->s, &iov, 1, 0)
				  : send(e->fd, iov.iov_base, iov.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (rv == -EAGAIN || (rv < 0 && !e->s && errno == EAGAIN)) {
			await(e, POLLOUT);
			continue;
		}
		if (rv <= 0)
			die("send", rv);
		iov.iov_base = (char *)iov.iov_base + rv;
		iov.iov_len -= rv;
	}
}

static void hear(const struct end *e, void *p, size_t n)
{
	struct iovec iov = { p, n };

	while (iov.iov_len) {
		ssize_t rv = e->s ? rl_stream_recv(e->s, &iov, 1, 0)
				  : recv(e->fd, iov.iov_base, iov.iov_len, MSG_DONTWAIT);

		if (rv == -EAGAIN || (rv < 0 && !e->s && errno == EAGAIN)) {
			await(e, POLLIN);
			continue;
		}
		if (rv <= 0)
			die("recv", rv);
		iov.iov_base = (char *)iov.iov_base + rv;
		iov.iov_len -= rv;
	}
}

static void peer(const struct end *e)
{
	static char buf[LARGE];
	char c[4];
	int i;

	for (i = 0; i < rounds; i++) {
		hear(e, c, 4);
		say(e, c, 4);
	}
	for (i = 0; i < large_rounds; i++)
		hear(e, buf, LARGE);
	say(e, c, 1);
}

/* CPU time of this end. */
static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_utime.tv_sec + r.ru_stime.tv_sec +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void measure(const struct end *e, const char *name)
{
	static char buf[LARGE];
	double from = now(), used = cpu(), half, stream, half_cpu;
	char c[4] = "abc";
	int i;

	for (i = 0; i < rounds; i++) {
		say(e, c, 4);
		hear(e, c, 4);
	}
	half = (now() - from) / rounds / 2;
	half_cpu = (cpu() - used) / rounds / 2;
	from = now();
	used = cpu();
	for (i = 0; i < large_rounds; i++)
		say(e, buf, LARGE);
	hear(e, c, 1);
	stream = (double)LARGE * large_rounds / (now() - from);
	printf("%-18s %8.2f us %8.2f us CPU %8.0f MB/s %8.1f us CPU\n", name, half * 1e6, half_cpu * 1e6,
	       stream / 1e6, (cpu() - used) / large_rounds * 1e6);
	fflush(stdout);
}

static void connect_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM, 0), i, one = 1;
	socklen_t len = sizeof(a);

	if (bind(l, (struct sockaddr *)&a, len) || listen(l, 1) ||
	    getsockname(l, (struct sockaddr *)&a, &len))
		die("listen", errno);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], (struct sockaddr *)&a, len))
		die("connect", errno);
	fd[1] = accept(l, NULL, NULL);
	for (i = 0; i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(l);
}

static void run(const char *name, bool stream, bool spin)
{
	int fd[2], i;
	pid_t pid;

	connect_pair(fd);
	pid = fork();
	i = !pid;
	close(fd[!i]);
	{
		struct end e = { .fd = fd[i], .spin = spin };

		if (stream && rl_stream_start(fd[i], i ? RL_STREAM_RESPONDER : RL_STREAM_INITIATOR, NULL,
					      &e.s))
			die("start", 0);
		if (i)
			peer(&e);
		else
			measure(&e, name);
		if (e.s)
			rl_stream_close(e.s);
		close(e.fd);
	}
	if (!pid)
		exit(0);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int i, times = argc > 1 ? atoi(argv[1]) : 3;

	if (argc > 2)
		rounds = large_rounds = atoi(argv[2]);
	printf("%s: half a round trip of 4 B, and of that the initiator's CPU; 64 KB writes\n",
	       rl_options()->crc ? "with CRC" : "without CRC");
	for (i = 0; i < times; i++) {
		run("tcp, sleeping", false, false);
		run("stream, sleeping", true, false);
		if (argc > 3)
			continue;
		run("tcp, spinning", false, true);
		run("stream, spinning", true, true);
	}
	return 0;
}
