// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The list of devices, made from getifaddrs(), and the look-up of an address's device. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "device.h"
#include "process/gate.h"
#include "process/options.h"
#include "process/raw.h"

/* Character devices of uverbs: from 192 on, of those that the kernel reserved. */
#define DEVICES 64
#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192
/* misc's major number; rdma_cm's minor number is dynamic, and 58 is customary. */
#define CM_MAJOR 10
#define CM_MINOR 58

#define MAC_LEN 6

/* The first address fills this many entries of the GID table. */
#define FIRST_GIDS 4

static struct {
	pthread_once_t once;
	struct rl_device at[DEVICES];
	u32 count;
	struct ifaddrs *first;		/* when the list was made; NULL: unknown */
	const struct rl_device *loopback;	/* NULL: not in the list */
} list = { .once = PTHREAD_ONCE_INIT };

/* ---- one entry of getifaddrs() ---- */

/* An IPv4 address may have a label, NETDEV:WORD, instead of the netdev's name. */
static size_t netdev_len(const struct ifaddrs *i)
{
	return strcspn(i->ifa_name, ":");
}

static bool is_of(const struct ifaddrs *i, const char *netdev)
{
	size_t len = netdev_len(i);

	return strlen(netdev) == len && !memcmp(i->ifa_name, netdev, len);
}

static bool is_ip(const struct ifaddrs *i)
{
	return i->ifa_flags & IFF_UP && i->ifa_addr &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

/* ---- which netdevs, and in what order ---- */

/* Its index in WEFT_NETDEVS; -1: not listed. */
static int device_wanted_place(const char *netdev)
{
	const char *s = rl_options()->netdevs;
	size_t len;
	int place;

	for (place = 0; s && *s; place++) {
		len = strcspn(s, ",");
		if (strlen(netdev) == len && !memcmp(s, netdev, len))
			return place;
		s += len + (s[len] == ',');
	}
	return rl_options()->netdevs ? -1 : 0;
}

struct candidate {
	struct rl_device dev;
	int place;			/* index in WEFT_NETDEVS */
	bool is_loopback;
};

/* In the order of WEFT_NETDEVS, or real netdevs first: many programs take the first device. */
static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->is_loopback != y->is_loopback)
		return x->is_loopback ? 1 : -1;
	return x->dev.ifindex < y->dev.ifindex ? -1 : x->dev.ifindex > y->dev.ifindex;
}

/* ---- what a device is called ---- */

static bool guid_is_zero(const u8 *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* False: there is none, as for lo, tun, and other netdevs that are not Ethernet. */
static bool read_mac(const struct ifaddrs *i, const char *netdev, u8 mac[MAC_LEN])
{
	const struct sockaddr_ll *ll;

	for (; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET || !is_of(i, netdev))
			continue;
		ll = (const struct sockaddr_ll *)i->ifa_addr;
		if (ll->sll_halen != MAC_LEN || guid_is_zero(ll->sll_addr, MAC_LEN))
			return false;
		memcpy(mac, ll->sll_addr, MAC_LEN);
		return true;
	}
	return false;
}

/* A locally administered MAC; the same for the same name and number. */
static void make_mac(const struct rl_device *d, u32 salt, u8 mac[MAC_LEN])
{
	u32 hash = 2166136261u ^ salt, i;
	const char *s;

	for (s = d->netdev; *s; s++)
		hash = (hash ^ (u8)*s) * 16777619u;
	hash = (hash ^ d->ifindex) * 16777619u;
	mac[0] = 0x02;
	mac[1] = (u8)d->ifindex;
	for (i = 0; i < 4; i++)
		mac[2 + i] = (u8)(hash >> 8 * i);
}

/* EUI-64 of the MAC (RFC 4291, appendix A), as usual for iWARP devices. */
static void set_names(struct rl_device *d, const u8 mac[MAC_LEN])
{
	memcpy(d->guid, mac, 3);
	d->guid[0] ^= 2;
	d->guid[3] = 0xff;
	d->guid[4] = 0xfe;
	memcpy(d->guid + 5, mac + 3, 3);
}

static bool is_taken(const struct rl_device *d)
{
	u32 i;

	for (i = 0; i < list.count; i++)
		if (!memcmp(list.at[i].guid, d->guid, sizeof(d->guid)))
			return true;
	return false;
}

/* VLANs and slaves of a bond share another netdev's MAC. */
static void name_uniquely(struct rl_device *d, const struct ifaddrs *first, u8 mac[MAC_LEN])
{
	u32 salt = 0;

	if (!read_mac(first, d->netdev, mac))
		make_mac(d, salt++, mac);
	set_names(d, mac);
	while (is_taken(d)) {
		make_mac(d, salt++, mac);
		set_names(d, mac);
	}
}

/* ---- its addresses as GIDs ---- */

static void v4_gid(const struct in_addr *v4, u8 gid[RL_GID_LEN])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, v4, sizeof(*v4));
}

void rl_gid_of_address(const struct sockaddr_storage *a, u8 gid[RL_GID_LEN])
{
	memset(gid, 0, RL_GID_LEN);
	if (a->ss_family == AF_INET)
		v4_gid(&((const struct sockaddr_in *)a)->sin_addr, gid);
	else if (a->ss_family == AF_INET6)
		memcpy(gid, &((const struct sockaddr_in6 *)a)->sin6_addr, RL_GID_LEN);
}

socklen_t rl_gid_to_address(const struct rl_device *d, const u8 gid[RL_GID_LEN], u16 port,
			    struct sockaddr_storage *a)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;
	struct sockaddr_in *in4 = (struct sockaddr_in *)a;

	memset(a, 0, sizeof(*a));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid)) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, gid + 12, sizeof(in4->sin_addr));
		return sizeof(*in4);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, gid, RL_GID_LEN);
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = d->ifindex;
	return sizeof(*in6);
}

u32 rl_device_gid_index(const struct rl_device *d, const u8 gid[RL_GID_LEN])
{
	u32 i;

	for (i = 0; i < d->ngids; i++)
		if (!memcmp(d->gids[i], gid, RL_GID_LEN))
			return i;
	return 0;
}

/* IPv4 before IPv6, and link-local addresses last. */
static int rank(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)a)->sin6_addr) ? 2 : 1;
}

static void add_gid(struct rl_device *d, const u8 gid[RL_GID_LEN], u32 times)
{
	while (times-- && d->ngids < RL_MAX_GIDS)
		memcpy(d->gids[d->ngids++], gid, RL_GID_LEN);
}

/*
 * Users give programs a GID index, and habits differ: on hardware 0 and 1 are an IPv6 address, 2
 * and 3 the first IPv4 one, each with two types; rxe has that at 1; and many use 0. So the first
 * address is at all of these, and the others follow.
 */
static void add_addresses(struct rl_device *d, const struct ifaddrs *first, int of_rank)
{
	u8 gid[RL_GID_LEN];

	for (; first; first = first->ifa_next) {
		if (!is_ip(first) || !is_of(first, d->netdev) || rank(first->ifa_addr) != of_rank)
			continue;
		if (first->ifa_addr->sa_family == AF_INET)
			v4_gid(&((struct sockaddr_in *)first->ifa_addr)->sin_addr, gid);
		else
			memcpy(gid, &((struct sockaddr_in6 *)first->ifa_addr)->sin6_addr,
			       RL_GID_LEN);
		if (!d->ngids)
			add_gid(d, gid, FIRST_GIDS);
		else if (memcmp(d->gids[rl_device_gid_index(d, gid)], gid, RL_GID_LEN))
			add_gid(d, gid, 1);
	}
}

static void set_gids(struct rl_device *d, const struct ifaddrs *first, const u8 mac[MAC_LEN])
{
	u8 gid[RL_GID_LEN] = { 0 };
	int of_rank;

	memcpy(gid, mac, MAC_LEN);
	d->ngids = 0;
	for (of_rank = 0; rl_options()->roce && of_rank < 3; of_rank++)
		add_addresses(d, first, of_rank);
	if (!d->ngids)
		add_gid(d, gid, 1);
}

static u32 read_mtu(const char *netdev)
{
	int fd = rl_raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req;
	long rv;

	if (fd < 0)
		fd = rl_raw(SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memset(&req, 0, sizeof(req));
	memcpy(req.ifr_name, netdev, strlen(netdev));
	rv = rl_raw(SYS_ioctl, fd, SIOCGIFMTU, &req);
	rl_raw(SYS_close, fd);
	return rv < 0 || req.ifr_mtu <= 0 ? 1500 : (u32)req.ifr_mtu;
}

/* ---- the list ---- */

static struct candidate *find_candidate(struct candidate *c, u32 n, const struct ifaddrs *i)
{
	for (; n; n--, c++)
		if (is_of(i, c->dev.netdev))
			return c;
	return NULL;
}

/* False: not for the list. */
static bool fill_candidate(struct candidate *c, const struct ifaddrs *i)
{
	size_t len = netdev_len(i);

	memset(c, 0, sizeof(*c));
	if (!len || len >= sizeof(c->dev.netdev))
		return false;
	memcpy(c->dev.netdev, i->ifa_name, len);
	c->is_loopback = i->ifa_flags & IFF_LOOPBACK;
	c->place = device_wanted_place(c->dev.netdev);
	c->dev.ifindex = if_nametoindex(c->dev.netdev);
	return c->place >= 0 && c->dev.ifindex;
}

static u32 collect(struct candidate *c, const struct ifaddrs *first)
{
	const struct ifaddrs *i;
	u32 n = 0;

	for (i = first; i && n < DEVICES; i = i->ifa_next)
		if (is_ip(i) && !find_candidate(c, n, i) && fill_candidate(&c[n], i))
			n++;
	return n;
}

static void append_addr(const struct candidate *c)
{
	struct rl_device *d = &list.at[list.count];
	u8 mac[MAC_LEN];

	*d = c->dev;
	d->index = list.count;
	snprintf(d->name, sizeof(d->name), "weft_%s", c->dev.netdev);
	d->mtu = read_mtu(d->netdev);
	name_uniquely(d, list.first, mac);
	set_gids(d, list.first, mac);
	if (c->is_loopback && !list.loopback)
		list.loopback = d;
	list.count++;
}

static void make_list(void)
{
	static struct candidate found[DEVICES];
	int saved = errno;
	u32 n, i;

	if (getifaddrs(&list.first))
		list.first = NULL;
	n = collect(found, list.first);
	qsort(found, n, sizeof(found[0]), compare);
	for (i = 0; i < n; i++)
		append_addr(&found[i]);
	errno = saved;
}

u32 rl_device_count(void)
{
	rl_gate_once(&list.once, make_list);
	return list.count;
}

const struct rl_device *rl_device_at(u32 index)
{
	return index < rl_device_count() ? &list.at[index] : NULL;
}

/* ---- whose address ---- */

/* IPv4, also if mapped into IPv6. */
static bool read_v4(const struct sockaddr *a, struct in_addr *v4)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)a;

	if (a->sa_family == AF_INET) {
		*v4 = ((const struct sockaddr_in *)a)->sin_addr;
		return true;
	}
	if (a->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr))
		return false;
	memcpy(v4, &sin6->sin6_addr.s6_addr[12], sizeof(*v4));
	return true;
}

/* A link-local address without a scope matches the first such. */
static bool is_same_v6(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *y = (const struct sockaddr_in6 *)b;

	return a->sa_family == AF_INET6 && b->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&x->sin6_addr, &y->sin6_addr) &&
	       (!IN6_IS_ADDR_LINKLOCAL(&x->sin6_addr) || !x->sin6_scope_id ||
		x->sin6_scope_id == y->sin6_scope_id);
}

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	struct in_addr x, y;

	return read_v4(a, &x) ? read_v4(b, &y) && x.s_addr == y.s_addr : is_same_v6(a, b);
}

static const struct rl_device *device_of_netdev(const struct ifaddrs *i)
{
	u32 n;

	for (n = 0; n < list.count; n++)
		if (is_of(i, list.at[n].netdev))
			return &list.at[n];
	return NULL;
}

static const struct rl_device *search(const struct ifaddrs *i, const struct sockaddr *a)
{
	const struct rl_device *d;

	for (; i; i = i->ifa_next) {
		d = is_ip(i) && is_same(a, i->ifa_addr) ? device_of_netdev(i) : NULL;
		if (d)
			return d;
	}
	return NULL;
}

/* Addresses change after the list is made. */
static const struct rl_device *search_anew(const struct sockaddr *a)
{
	const struct rl_device *d;
	struct ifaddrs *first;
	int saved = errno;

	if (getifaddrs(&first)) {
		errno = saved;
		return NULL;
	}
	d = search(first, a);
	freeifaddrs(first);
	errno = saved;
	return d;
}

static bool is_loopback(const struct sockaddr *a)
{
	struct in_addr v4;

	if (read_v4(a, &v4))
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* If lo has no device, another one serves its addresses, as with the kernel's rdma_cm. */
const struct rl_device *rl_device_of_address(const struct sockaddr *a)
{
	const struct rl_device *d;

	if (!rl_device_count())
		return NULL;
	if (is_loopback(a))
		return list.loopback ? list.loopback : &list.at[0];
	d = search(list.first, a);
	return d ? d : search_anew(a);
}

/* ---- numbers ---- */

dev_t rl_device_uverbs_rdev(const struct rl_device *d)
{
	return makedev(UVERBS_MAJOR, UVERBS_MINOR + d->index);
}

dev_t rl_device_cm_rdev(void)
{
	return makedev(CM_MAJOR, CM_MINOR);
}

u8 rl_device_ib_mtu(const struct rl_device *d)
{
	u32 room = d->mtu - (rl_options()->roce ? min_t(u32, d->mtu, RL_DATAGRAM_HEADERS) : 0);
	u8 number = 1;

	while (number < 5 && room >= 256u << number)
		number++;
	return number;
}
