// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "devices/device.h"
#include "ip.h"
#include "process/raw.h"

static void enable(int fd, int level, int option)
{
	int on = 1;

	rl_raw(SYS_setsockopt, fd, level, option, &on, sizeof(on));
}

void rl_ip_enable_control(int fd, bool six)
{
	enable(fd, IPPROTO_IP, IP_RECVTOS);
	enable(fd, IPPROTO_IP, IP_RECVTTL);
	if (!six) {
		enable(fd, IPPROTO_IP, IP_PKTINFO);
		return;
	}
	enable(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	enable(fd, IPPROTO_IPV6, IPV6_RECVTCLASS);
	enable(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
}

/* ---- receiving ---- */

static void note_number(struct rl_ip_header *ip, int level, int type, int number)
{
	if ((level == IPPROTO_IP && type == IP_TTL) ||
	    (level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT))
		ip->hop_limit = (u8)number;
	else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS)
		ip->traffic_class = (u8)number;
}

static void note_v4(struct rl_ip_header *ip, const struct cmsghdr *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_storage as = { 0 };
	struct in_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	a.sin_addr = info.ipi_addr;
	memcpy(&as, &a, sizeof(a));
	rl_gid_of_address(&as, ip->to);
	ip->ifindex = (u32)info.ipi_ifindex;
}

static void note_v6(struct rl_ip_header *ip, const struct cmsghdr *c)
{
	struct in6_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	memcpy(ip->to, &info.ipi6_addr, sizeof(ip->to));
	ip->ifindex = info.ipi6_ifindex;
}

void rl_ip_read_control(struct msghdr *m, struct rl_ip_header *ip)
{
	struct cmsghdr *c;
	int number;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			note_v6(ip, c);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			note_v4(ip, c);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			ip->traffic_class = *CMSG_DATA(c);
		} else if (c->cmsg_len >= CMSG_LEN(sizeof(number))) {
			memcpy(&number, CMSG_DATA(c), sizeof(number));
			note_number(ip, c->cmsg_level, c->cmsg_type, number);
		}
	}
}

/* ---- sending ---- */

static void add_cmsg(struct msghdr *m, int level, int type, const void *p, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((u8 *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), p, len);
	m->msg_controllen += CMSG_SPACE(len);
}

void rl_ip_put_source(struct msghdr *m, bool six, const u8 gid[16], u32 ifindex)
{
	struct in6_pktinfo info6 = { .ipi6_ifindex = ifindex };
	struct in_pktinfo info4 = { .ipi_ifindex = (int)ifindex };

	memcpy(&info6.ipi6_addr, gid, sizeof(info6.ipi6_addr));
	memcpy(&info4.ipi_spec_dst, gid + 12, sizeof(info4.ipi_spec_dst));
	if (six)
		add_cmsg(m, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	else
		add_cmsg(m, IPPROTO_IP, IP_PKTINFO, &info4, sizeof(info4));
}

void rl_ip_put_number(struct msghdr *m, int level, int type, int number)
{
	add_cmsg(m, level, type, &number, sizeof(number));
}
