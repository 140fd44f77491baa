// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The list of devices, made from what is asked for (devices/setup.h) and the host's netdevs, the
 * look-up of an address's device, and the state of ports.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "device.h"
#include "link.h"
#include "netdevs.h"
#include "process/gate.h"
#include "process/lock.h"
#include "process/options.h"
#include "process/raw.h"
#include "setup.h"

/* Character devices of uverbs: from 192 on, of those that the kernel reserved. */
#define UVERBS_MAJOR 231
#define UVERBS_MINOR 192
/* misc's major number; rdma_cm's minor number is dynamic, and 58 is customary. */
#define CM_MAJOR 10
#define CM_MINOR 58

#define MAC_LEN 6
/* Of one PCI bus. */
#define FUNCTIONS 256
/* Of a netdev that has no speed, such as lo. */
#define DEFAULT_MBPS 40000

static struct {
	pthread_once_t once;
	struct rl_setup setup;
	struct rl_device at[RL_DEVICES];
	u32 count;
	struct ifaddrs *first;		/* when the list was made; NULL: unknown */
	const struct rl_device *loopback;	/* NULL: not in the list */
	struct rl_lock gids_lock;	/* GIDs, once the list is made; a leaf */
} list = { .once = PTHREAD_ONCE_INIT };

/* What a netdev was when it was last asked; atomic. */
static struct {
	u32 mtu;
	u8 ib_mtu;
	bool pulled;
	u16 lid;
} ports[RL_DEVICES];

static const struct rl_rail *rail_of(const struct rl_device *d)
{
	return &list.setup.rails.at[d->index];
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
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET ||
		    !rl_netdev_has(i, netdev))
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
static void set_guid(struct rl_device *d, const u8 mac[MAC_LEN])
{
	memcpy(d->guid, mac, 3);
	d->guid[0] ^= 2;
	d->guid[3] = 0xff;
	d->guid[4] = 0xfe;
	memcpy(d->guid + 5, mac + 3, 3);
}

static bool guid_is_taken(const struct rl_device *d)
{
	u32 i;

	for (i = 0; i < list.count; i++)
		if (!memcmp(list.at[i].guid, d->guid, sizeof(d->guid)))
			return true;
	return false;
}

/* The next one, as adapters with several ports have them. */
static void next_guid(u8 guid[8])
{
	int i;

	for (i = 7; i >= 0 && !++guid[i]; i--)
		;
}

/* VLANs, slaves of a bond and rails share another device's MAC. */
static void name_uniquely(struct rl_device *d, const struct ifaddrs *first, u8 mac[MAC_LEN])
{
	const struct rl_profile *p = d->about;
	bool given = !guid_is_zero(p->node_guid, sizeof(p->node_guid));
	u32 salt = 0;

	if (!read_mac(first, d->netdev, mac))
		make_mac(d, salt++, mac);
	set_guid(d, mac);
	if (given)
		memcpy(d->guid, p->node_guid, sizeof(d->guid));
	while (guid_is_taken(d)) {
		make_mac(d, salt++, mac);
		if (given)
			next_guid(d->guid);
		else
			set_guid(d, mac);
	}
	memcpy(d->system_guid, guid_is_zero(p->sys_image_guid, sizeof(p->sys_image_guid)) ?
	       d->guid : p->sys_image_guid, sizeof(d->system_guid));
}

static bool name_is_taken(const struct rl_device *d)
{
	u32 i;

	for (i = 0; i < list.count; i++)
		if (!strcmp(list.at[i].name, d->name))
			return true;
	return false;
}

/* A name without a number, or of a netdev that has several devices, gets one. */
static void set_name(struct rl_device *d)
{
	char name[RL_PROFILE_NAMES];
	u32 n;

	if (!rl_profile_name(d->about, d->index, d->netdev, &d->pci, d->name))
		snprintf(d->name, sizeof(d->name), "weft%u", d->index);
	memcpy(name, d->name, strlen(d->name) + 1);
	for (n = d->index; name_is_taken(d); n++)
		snprintf(d->name, sizeof(d->name), "%.*s_%u", RL_PROFILE_NAMES - 5, name, n);
}

/* ---- where it is ---- */

/* The kernel's text of @path, without its end; false: there is none. */
static bool read_kernel(const char *path, char *text, size_t size)
{
	long fd = rl_raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n;

	if (fd < 0)
		return false;
	n = rl_raw(SYS_read, fd, text, size - 1);
	rl_raw(SYS_close, fd);
	text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/* The folder of the netdev's PCI function, below /sys; false: it has none. */
static bool find_folder_of(const char *netdev, char *folder, size_t size)
{
	char link[160], path[64], name[RL_LINK_BUS];
	long n;

	rl_link_bus(netdev, name);
	if (!*name || strchr(name, '/'))
		return false;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", name);
	n = rl_raw(SYS_readlinkat, AT_FDCWD, path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	if (strncmp(link, "../../../devices/pci", 20) || (size_t)n - 9 >= size)
		return false;
	memcpy(folder, link + 9, strlen(link + 9) + 1);
	return true;
}

static bool folder_is_taken(const struct rl_device *d)
{
	u32 i;

	for (i = 0; i < list.count; i++)
		if (!strcmp(list.at[i].pci_folder, d->pci_folder))
			return true;
	return false;
}

static void make_folder(struct rl_device *d)
{
	const struct rl_pci_function *f = d->pci.at;
	int at = snprintf(d->pci_folder, sizeof(d->pci_folder), "devices/pci%04x:%02x", f->domain,
			  f->bus);
	u32 i;

	for (i = 0; i < d->pci.depth; i++, f++)
		at += snprintf(d->pci_folder + at, sizeof(d->pci_folder) - (size_t)at,
			       "/%04x:%02x:%02x.%x", f->domain, f->bus, f->slot, f->function);
}

/* The netdev's own function, for its first device; or one made up. */
static void set_place(struct rl_device *d)
{
	const struct rl_profile *p = d->about;
	char path[128], text[16];
	u32 turn;

	d->own_pci = !p->pci_paths &&
		     find_folder_of(d->netdev, d->pci_folder, sizeof(d->pci_folder)) &&
		     !folder_is_taken(d);
	rl_profile_pci(p, d->index, 0, &d->pci);
	for (turn = 1; !d->own_pci; turn++) {
		make_folder(d);
		if (turn > FUNCTIONS || (!folder_is_taken(d) && !rl_setup_host_has(&d->pci)))
			break;
		rl_profile_pci(p, d->index, turn, &d->pci);
	}
	d->numa_node = p->numa_nodes ? p->numa_node[d->index % p->numa_nodes] : -1;
	snprintf(path, sizeof(path), "/sys/%s/numa_node", d->pci_folder);
	if (!p->numa_nodes && d->own_pci && read_kernel(path, text, sizeof(text)))
		d->numa_node = *text == '-' ? -1 : (s32)strtoul(text, NULL, 10);
}

/* ---- its addresses as GIDs ---- */

socklen_t rl_gid_to_address(const struct rl_device *d, const u8 name[RL_GID_LEN], u16 port,
			    struct sockaddr_storage *a)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;
	struct sockaddr_in *in4 = (struct sockaddr_in *)a;
	u8 gid[RL_GID_LEN];

	rl_gid_resolve(name, gid);
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

bool rl_device_gid(const struct rl_device *d, u32 index, u8 gid[RL_GID_LEN])
{
	static const u8 none[RL_GID_LEN];

	memset(gid, 0, RL_GID_LEN);
	if (index >= d->ngids)
		return false;
	rl_lock(&list.gids_lock);
	memcpy(gid, d->gids[index], RL_GID_LEN);
	rl_unlock(&list.gids_lock);
	return memcmp(gid, none, RL_GID_LEN);
}

bool rl_device_set_gid(const struct rl_device *d, u32 index, const u8 gid[RL_GID_LEN])
{
	if (index >= d->ngids)
		return false;
	rl_lock(&list.gids_lock);
	memcpy(list.at[d->index].gids[index], gid, RL_GID_LEN);
	rl_unlock(&list.gids_lock);
	return true;
}

u32 rl_device_gid_index(const struct rl_device *d, const u8 gid[RL_GID_LEN])
{
	u8 own[RL_GID_LEN];
	bool found = false;
	u32 i, index = 0;

	for (i = 0; i < d->ngids; i++) {
		rl_device_gid(d, i, own);
		if (memcmp(own, gid, RL_GID_LEN) || (found && !d->gid_is_v2[i]))
			continue;
		index = i;
		if (d->gid_is_v2[i])
			break;
		found = true;
	}
	return index;
}

/* For each type, unless it is there. */
static void add_gid(struct rl_device *d, const u8 gid[RL_GID_LEN])
{
	const u8 types = d->about->gid_types;
	u32 i;

	for (i = 0; i < d->ngids; i++)
		if (!memcmp(d->gids[i], gid, RL_GID_LEN))
			return;
	for (i = RL_GID_V1; i <= RL_GID_V2; i <<= 1) {
		if (!(types & i) || d->ngids == RL_MAX_GIDS)
			continue;
		d->gid_is_v2[d->ngids] = i == RL_GID_V2;
		memcpy(d->gids[d->ngids++], gid, RL_GID_LEN);
	}
}

/* The device's addresses: the rail's, or all of the netdev's. */
struct addresses {
	const struct rl_rail *rail;
	const struct ifaddrs *i;
	u32 at;
};

static struct addresses addresses_of(const struct rl_device *d, const struct ifaddrs *first)
{
	return (struct addresses){ .rail = rail_of(d), .i = first };
}

/* The next one as a GID; false: there are no more. */
static bool next_address(struct addresses *a, u8 gid[RL_GID_LEN])
{
	const struct rl_rail *rail = a->rail;
	struct sockaddr_storage as = { 0 };
	const struct ifaddrs *i;

	if (rail->addresses) {
		if (a->at == rail->addresses)
			return false;
		memcpy(gid, rail->address[a->at++], RL_GID_LEN);
		return true;
	}
	while ((i = a->i)) {
		a->i = i->ifa_next;
		if (!rl_netdev_is_ip(i) || !rl_netdev_has(i, rail->netdev))
			continue;
		memcpy(&as, i->ifa_addr, i->ifa_addr->sa_family == AF_INET ?
		       sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		rl_gid_of_address(&as, gid);
		return true;
	}
	return false;
}

static enum rl_gid_class class_of(const u8 gid[RL_GID_LEN])
{
	const struct in6_addr *six = (const struct in6_addr *)gid;

	if (IN6_IS_ADDR_V4MAPPED(six))
		return RL_GIDS_IPV4;
	return IN6_IS_ADDR_LINKLOCAL(six) ? RL_GIDS_LINK_LOCAL : RL_GIDS_IPV6;
}

static u32 add_gid_class(struct rl_device *d, const struct ifaddrs *first, enum rl_gid_class class)
{
	struct addresses a = addresses_of(d, first);
	u8 gid[RL_GID_LEN];
	u32 n = 0;

	while (next_address(&a, gid)) {
		if (class_of(gid) != class)
			continue;
		add_gid(d, gid);
		n++;
	}
	return n;
}

/* The netdev's own, or that which its first IPv4 address makes (devices/gid.h). */
static void add_link_local(struct rl_device *d, const struct ifaddrs *first)
{
	struct addresses a = addresses_of(d, first);
	u8 gid[RL_GID_LEN], local[RL_GID_LEN];
	struct in_addr v4;

	if (add_gid_class(d, first, RL_GIDS_LINK_LOCAL))
		return;
	while (next_address(&a, gid)) {
		if (class_of(gid) != RL_GIDS_IPV4)
			continue;
		memcpy(&v4, gid + 12, sizeof(v4));
		rl_gid_link_local_of_v4(&v4, local);
		add_gid(d, local);
		return;
	}
}

static void add_gids(struct rl_device *d, const struct ifaddrs *first, enum rl_gid_class class)
{
	if (class == RL_GIDS_LINK_LOCAL)
		add_link_local(d, first);
	else
		add_gid_class(d, first, class);
}

/* Programs give a GID's index, as on adapters: 0 is link-local, the first IPv4 address is next. */
static void set_gids(struct rl_device *d, const struct ifaddrs *first, const u8 mac[MAC_LEN])
{
	const struct rl_profile *p = d->about;
	u32 i;

	for (i = 0; !p->iwarp && i < p->gid_classes; i++)
		add_gids(d, first, p->gid_order[i]);
	for (i = 0; !p->iwarp && !d->ngids && i < RL_GID_CLASSES; i++)
		add_gids(d, first, i);
	if (d->ngids)
		return;
	memcpy(d->gids[0], mac, MAC_LEN);
	d->ngids = 1;
}

/* ---- ports ---- */

static u8 ib_mtu_of(const struct rl_profile *p, u32 mtu)
{
	u32 room = mtu - (p->iwarp ? 0 : min_t(u32, mtu, RL_DATAGRAM_HEADERS));
	u8 number = 1;

	if (p->active_mtu)
		return p->active_mtu;
	while (number < p->max_mtu && room >= 256u << number)
		number++;
	return number;
}

static void keep_link(const struct rl_device *d, const struct rl_link *l)
{
	WRITE_ONCE(ports[d->index].mtu, l->mtu);
	WRITE_ONCE(ports[d->index].ib_mtu, ib_mtu_of(d->about, l->mtu));
}

void rl_device_read_port(const struct rl_device *d, struct rl_port_state *s)
{
	const struct rl_profile *p = d->about;
	struct rl_link l;

	rl_link_read(d->netdev, &l);
	keep_link(d, &l);
	s->up = l.up && !READ_ONCE(ports[d->index].pulled);
	s->mtu = ib_mtu_of(p, l.mtu);
	s->lid = READ_ONCE(ports[d->index].lid);
	s->rate = p->active_mbps ? rl_rate_of(p->active_mbps, p->active_width) :
				   rl_rate_of(l.mbps ? l.mbps : DEFAULT_MBPS, 0);
}

void rl_device_pull(const struct rl_device *d, bool pulled)
{
	WRITE_ONCE(ports[d->index].pulled, pulled);
}

void rl_device_set_lid(const struct rl_device *d, u16 lid)
{
	WRITE_ONCE(ports[d->index].lid, lid);
}

bool rl_device_is_pulled(const struct rl_device *d)
{
	return READ_ONCE(ports[d->index].pulled);
}

u32 rl_device_mtu(const struct rl_device *d)
{
	return READ_ONCE(ports[d->index].mtu);
}

u8 rl_device_ib_mtu(const struct rl_device *d)
{
	return READ_ONCE(ports[d->index].ib_mtu);
}

/* ---- the list ---- */

static void append_device(const struct rl_rail *rail)
{
	struct rl_device *d = &list.at[list.count];
	u8 mac[MAC_LEN];
	struct rl_link l;

	*d = (struct rl_device){ .index = list.count, .about = rail->about };
	memcpy(d->netdev, rail->netdev, strlen(rail->netdev) + 1);
	d->ifindex = if_nametoindex(d->netdev);
	set_place(d);
	set_name(d);
	name_uniquely(d, list.first, mac);
	set_gids(d, list.first, mac);
	rl_link_read(d->netdev, &l);
	keep_link(d, &l);
	list.count++;
}

static void find_loopback(void)
{
	const struct ifaddrs *i;
	u32 n;

	for (i = list.first; i && !list.loopback; i = i->ifa_next)
		for (n = 0; n < list.count && !list.loopback; n++)
			if (i->ifa_flags & IFF_LOOPBACK && rl_netdev_is_ip(i) &&
			    rl_netdev_has(i, list.at[n].netdev))
				list.loopback = &list.at[n];
}

/* The face is the process's, and weft-run sets it by the profile. */
static bool face_is_as_asked(const struct rl_profile *p)
{
	if (p->iwarp == !rl_options()->roce)
		return true;
	rl_complain("WEFT_PROFILE is ignored: it is for WEFT_DEVICE=%s",
		    p->iwarp ? "iwarp" : "roce");
	return false;
}

/* --extensions=off takes them from every device. */
static void remove_extensions(struct rl_setup *s)
{
	u32 i;

	s->base.atomic_cap = 0;
	s->base.immediate = false;
	for (i = 0; s->rails.own && i < s->rails.n; i++) {
		s->rails.own[i].atomic_cap = 0;
		s->rails.own[i].immediate = false;
	}
}

static bool try_setup(const struct rl_wishes *w)
{
	struct rl_profile_error e;
	const char *file;

	if (rl_setup_make(w, list.first, &list.setup, &file, &e)) {
		if (!list.setup.rails.n || face_is_as_asked(list.setup.rails.at[0].about))
			return true;
		rl_rails_free(&list.setup.rails);
	} else if (e.line) {
		rl_complain("%s is ignored: line %u: %s", file ? file : w->profile, e.line, e.why);
	} else {
		rl_complain("%s is ignored: %s", file ? file : "WEFT_RAILS", e.why);
	}
	return false;
}

static void make_setup(void)
{
	const struct rl_options *o = rl_options();
	struct rl_wishes w = { o->profile, o->rails, o->netdevs, !o->roce };

	if (!try_setup(&w) && (w.profile || w.rails)) {
		w.profile = w.rails = NULL;
		try_setup(&w);
	}
	if (!o->extensions)
		remove_extensions(&list.setup);
}

static void make_list(void)
{
	int saved = errno;
	u32 i;

	if (getifaddrs(&list.first))
		list.first = NULL;
	make_setup();
	for (i = 0; i < list.setup.rails.n; i++)
		append_device(&list.setup.rails.at[i]);
	find_loopback();
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
		if (rl_netdev_has(i, list.at[n].netdev))
			return &list.at[n];
	return NULL;
}

static const struct rl_device *search(const struct ifaddrs *i, const struct sockaddr *a)
{
	const struct rl_device *d;

	for (; i; i = i->ifa_next) {
		d = rl_netdev_is_ip(i) && is_same(a, i->ifa_addr) ? device_of_netdev(i) : NULL;
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

/* The device that has @a for its own, of those on one netdev. */
static const struct rl_device *device_of_rail(const struct sockaddr *a)
{
	struct sockaddr_storage as = { 0 };
	u8 gid[RL_GID_LEN];
	struct in_addr v4;
	u32 n, i;

	if (read_v4(a, &v4)) {
		rl_gid_of_v4(&v4, gid);
	} else if (a->sa_family == AF_INET6) {
		memcpy(&as, a, sizeof(struct sockaddr_in6));
		rl_gid_of_address(&as, gid);
	} else {
		return NULL;
	}
	for (n = 0; n < list.count; n++)
		for (i = 0; i < rail_of(&list.at[n])->addresses; i++)
			if (!memcmp(rail_of(&list.at[n])->address[i], gid, RL_GID_LEN))
				return &list.at[n];
	return NULL;
}

/* If lo has no device, another one serves its addresses, as with the kernel's rdma_cm. */
const struct rl_device *rl_device_of_address(const struct sockaddr *a)
{
	const struct rl_device *d;

	if (!rl_device_count())
		return NULL;
	d = device_of_rail(a);
	if (d)
		return d;
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
