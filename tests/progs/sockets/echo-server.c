// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * echo-server PORT: says again what its peers say, many at once, over TCP; knows nothing of iWARP.
 * It allocates nothing while it serves: what grows is not the program's.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY	512
#define MOST	4096	/* octets that are on their way back */

static struct pollfd at[MANY];		/* the listener is the first */
static char octets[MANY][MOST];
static ssize_t from[MANY], left[MANY];

static void wait_for_more(int i)
{
	at[i].events = left[i] ? POLLOUT : POLLIN;
}

/* A peer may vanish while the network is cut: TCP tells those alone who ask. */
static void ask_for_life(int fd)
{
	int on = 1, idle = 5, every = 1, times = 5;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static void take_peer(void)
{
	int fd = accept4(at[0].fd, NULL, NULL, SOCK_NONBLOCK), i;

	if (fd < 0)
		return;
	for (i = 1; i < MANY && at[i].fd >= 0; i++)
		;
	if (i == MANY) {
		close(fd);
		return;
	}
	ask_for_life(fd);
	at[i].fd = fd;
	left[i] = 0;
	wait_for_more(i);
}

/* False: the peer has closed, or is gone. */
static bool move(int i)
{
	ssize_t n;

	if (!left[i]) {
		from[i] = 0;
		left[i] = n = recv(at[i].fd, octets[i], MOST, 0);
	} else {
		n = send(at[i].fd, octets[i] + from[i], left[i], MSG_NOSIGNAL);
		if (n > 0) {
			from[i] += n;
			left[i] -= n;
		}
	}
	if (n < 0 && errno == EAGAIN && left[i] < 0)
		left[i] = 0;
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static void serve(int i)
{
	if (move(i)) {
		wait_for_more(i);
		return;
	}
	close(at[i].fd);
	at[i].fd = -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	int on = 1, i;

	if (argc != 2)
		return 2;
	own.sin_port = htons(atoi(argv[1]));
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memset(octets, 1, sizeof(octets));
	for (i = 0; i < MANY; i++)
		at[i] = (struct pollfd){ .fd = -1 };
	at[0] = (struct pollfd){ .fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN };
	setsockopt(at[0].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(at[0].fd, (struct sockaddr *)&own, sizeof(own)) || listen(at[0].fd, 256)) {
		perror("echo-server");
		return 1;
	}
	for (;;) {
		if (poll(at, MANY, -1) < 0)
			continue;
		for (i = 1; i < MANY; i++)
			if (at[i].fd >= 0 && at[i].revents)
				serve(i);
		if (at[0].revents)
			take_peer();
	}
}
