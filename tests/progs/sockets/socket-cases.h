/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs share that try TCP's calls case by case, over connections of 127.0.0.1 to themselves, and say TAP.
 * argv: PORT [CASE].
 */
#ifndef SOCKET_CASES_H
#define SOCKET_CASES_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in addr = { .sin_family = AF_INET };
static int listener;

/* In a function that returns whether all is well. */
#define NEED(what) do { if (!(what)) return say(__LINE__, #what); } while (0)

static inline bool say(int line, const char *what)
{
	printf("# line %d: %s: errno %d (%s), pid %d\n", line, what, errno, strerror(errno), getpid());
	fflush(stdout);
	return false;
}

static inline int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -1 : fd;
}

/* False, and it has said why. */
static inline bool listen_at(const char *port)
{
	int one = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	addr.sin_port = htons((unsigned short)atoi(port ? port : "0"));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(listener, (struct sockaddr *)&addr, sizeof(addr)) && !listen(listener, 16))
		return true;
	perror("listen");
	return false;
}

/* A table of cases, each of which begins with its name. */
struct cases {
	const void *at;
	size_t n, size;
	bool (*run)(const void *a_case);
	unsigned int seconds;		/* for each; 0: the program sees to it */
	bool stops;			/* at the first that fails, whose threads are still there */
};
#define CASES(table) .at = (table), .n = sizeof(table) / sizeof((table)[0]), .size = sizeof((table)[0])

/* What main() returns. */
static inline int run_cases(const struct cases *c, const char *only)
{
	unsigned int ran = 0, failed = 0;
	size_t i;

	for (i = 0; i < c->n && !(failed && c->stops); i++) {
		const void *a_case = (const char *)c->at + i * c->size;
		const char *name = *(const char *const *)a_case;
		bool ok;

		if (only && strcmp(only, name))
			continue;
		if (c->seconds)
			alarm(c->seconds);
		ok = c->run(a_case);
		failed += !ok;
		printf("%sok %u - %s\n", ok ? "" : "not ", ++ran, name);
		fflush(stdout);
	}
	return failed || !ran;
}

#endif
