// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many half-open connections to an iWARP listener, over plain TCP: each does one thing and then
 * nothing more, not even a close. Reports when all exist, and for each line on stdin how many of them
 * the listener's device has reset so far. They end at the end of stdin.
 *   half-open silent HOST PORT COUNT	they send nothing
 *   half-open wordy HOST PORT COUNT	an MPA Request with more private data than any
 *					program takes
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 8000

static struct pollfd at[MANY];
static int n;

static void fail(const char *what)
{
	printf("half-open: FAIL %s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM, 0);

	if (fd < 0)
		fail("no socket");
	if (connect(fd, to->ai_addr, to->ai_addrlen))
		fail("no connection");
	return fd;
}

/* Whole, well formed, and in one segment. */
static void say_too_much(int fd)
{
	char request[20 + 300] = "MPA ID Req Frame\0\1\1\x2C";

	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		fail("no Request");
}

/* Of those not yet given up: has the peer reset it? A FIN is none, nor are octets. */
static int count_resets(void)
{
	int i, resets = 0;

	poll(at, n, 0);
	for (i = 0; i < n; i++) {
		if (!(at[i].revents & (POLLERR | POLLHUP)))
			continue;
		close(at[i].fd);
		at[i].fd = -1;
		resets++;
	}
	return resets;
}

static void arrive(const char *host, const char *port, int count, bool wordy)
{
	struct rlimit files = { MANY + 16, MANY + 16 };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *to;

	if (count < 1 || count > MANY)
		fail("a bad number");
	/* Root may have more than it has. */
	if (setrlimit(RLIMIT_NOFILE, &files) && count > 1000)
		fail("too few descriptors");
	if (getaddrinfo(host, port, &hints, &to))
		fail("no such host");
	for (n = 0; n < count; n++) {
		at[n] = (struct pollfd){ .fd = dial(to) };
		if (wordy)
			say_too_much(at[n].fd);
	}
	freeaddrinfo(to);
}

int main(int argc, char **argv)
{
	bool wordy = argc == 5 && !strcmp(argv[1], "wordy");
	int resets = 0;
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 5 || (!wordy && strcmp(argv[1], "silent"))) {
		fprintf(stderr, "usage: half-open silent|wordy HOST PORT COUNT\n");
		return 2;
	}
	arrive(argv[2], argv[3], atoi(argv[4]), wordy);
	printf("%d are there\n", n);
	while (fgets(line, sizeof(line), stdin)) {
		resets += count_resets();
		printf("%d were reset\n", resets);
	}
	return 0;
}
