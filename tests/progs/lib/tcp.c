// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>

#include "conn.h"
#include "tcp.h"

struct sockaddr_in tcp_address(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

int tcp_listen(const void *own, socklen_t len, int backlog)
{
	int fd = socket(((const struct sockaddr *)own)->sa_family, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, own, len) || listen(fd, backlog))
		fail("listening: %s", strerror(errno));
	return fd;
}

int tcp_send_request(const struct sockaddr_in *to)
{
	static const uint8_t frame[20] = "MPA ID Req Frame\x40\x01";
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int err = connect(fd, (const struct sockaddr *)to, sizeof(*to)) ? errno : 0;

	/* The listener may reset it at once. */
	if (err && err != ECONNRESET)
		fail("connecting: %s", strerror(errno));
	send(fd, frame, sizeof(frame), MSG_NOSIGNAL);
	return fd;
}

bool tcp_is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}
