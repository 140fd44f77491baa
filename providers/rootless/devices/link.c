// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "link.h"
#include "process/raw.h"

#define DEFAULT_MTU 1500

static long link_ask(int fd, const char *netdev, unsigned long what, struct ifreq *req)
{
	size_t len = min_t(size_t, strlen(netdev), IFNAMSIZ - 1);

	memcpy(req->ifr_name, netdev, len);
	req->ifr_name[len] = '\0';
	return rl_raw(SYS_ioctl, fd, what, req);
}

static u32 link_speed(int fd, const char *netdev)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq req = { .ifr_data = (char *)&cmd };
	u32 mbps;

	if (link_ask(fd, netdev, SIOCETHTOOL, &req))
		return 0;
	mbps = ethtool_cmd_speed(&cmd);
	return mbps == (u32)SPEED_UNKNOWN ? 0 : mbps;
}

static int link_socket(void)
{
	int fd = (int)rl_raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? (int)rl_raw(SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0) : fd;
}

void rl_link_bus(const char *netdev, char name[RL_LINK_BUS])
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq req = { .ifr_data = (char *)&info };
	int fd = link_socket();

	static_assert(sizeof(info.bus_info) == RL_LINK_BUS, "room");
	name[0] = '\0';
	if (fd < 0)
		return;
	if (!link_ask(fd, netdev, SIOCETHTOOL, &req) && memchr(info.bus_info, '\0', RL_LINK_BUS))
		memcpy(name, info.bus_info, strlen(info.bus_info) + 1);
	rl_raw(SYS_close, fd);
}

void rl_link_read(const char *netdev, struct rl_link *l)
{
	const u32 running = IFF_UP | IFF_RUNNING;
	struct ifreq req = { .ifr_flags = 0 };
	int fd = link_socket();
	long rv;

	/* Without an answer it counts as up: a program would wait for it for ever. */
	*l = (struct rl_link){ .up = true, .mtu = DEFAULT_MTU };
	if (fd < 0)
		return;
	if (!link_ask(fd, netdev, SIOCGIFMTU, &req) && req.ifr_mtu > 0)
		l->mtu = (u32)req.ifr_mtu;
	rv = link_ask(fd, netdev, SIOCGIFFLAGS, &req);
	l->up = rv ? rv != -ENODEV : (req.ifr_flags & running) == running;
	l->mbps = link_speed(fd, netdev);
	rl_raw(SYS_close, fd);
}
