// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two tun netdevs joined to each other, one here and one in another network namespace:
 *   tunnel NAME NETNS-FILE
 * Both are called NAME. They exist as long as this program.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_tun(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR);

	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		fail("/dev/net/tun");
	return fd;
}

/* A packet that cannot be written is lost, as on any wire. */
static void carry(int from, int to)
{
	char packet[65536];
	ssize_t n = read(from, packet, sizeof(packet));

	if (n > 0 && write(to, packet, n) != n)
		return;
}

int main(int argc, char **argv)
{
	struct pollfd ends[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int i;

	if (argc != 3)
		return 2;
	ends[0].fd = open_tun(argv[1]);
	if (setns(open(argv[2], O_RDONLY), CLONE_NEWNET))
		fail(argv[2]);
	ends[1].fd = open_tun(argv[1]);
	while (poll(ends, 2, -1) > 0)
		for (i = 0; i < 2; i++)
			if (ends[i].revents & POLLIN)
				carry(ends[i].fd, ends[!i].fd);
	return 1;
}
