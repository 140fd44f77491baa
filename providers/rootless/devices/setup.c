// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gid.h"
#include "netdevs.h"
#include "process/raw.h"
#include "setup.h"

static __attribute__((format(printf, 3, 4)))
bool setup_wrong(struct rl_profile_error *e, u32 line, const char *fmt, ...)
{
	va_list ap;

	e->line = line;
	va_start(ap, fmt);
	vsnprintf(e->why, sizeof(e->why), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- files ---- */

static bool load_profile(struct rl_setup *s, const char *file, struct rl_profile_error *e)
{
	size_t len;
	char *text = rl_profile_read(file, &len, e);
	bool done = text && rl_profile_parse(&s->base, text, len, e);

	free(text);
	return done;
}

static bool load_rails(struct rl_setup *s, const char *file, struct rl_profile_error *e)
{
	size_t len;
	char *text = rl_profile_read(file, &len, e);
	bool done = text && rl_rails_parse(&s->base, text, len, &s->rails, e);

	free(text);
	return done;
}

/* ---- rails without a file ---- */

static bool alloc_rails(struct rl_setup *s, struct rl_profile_error *e)
{
	s->rails = (struct rl_rails){ .at = calloc(RL_RAILS, sizeof(*s->rails.at)) };
	return s->rails.at || setup_wrong(e, 0, "no memory");
}

static struct rl_rail *add_rail(struct rl_setup *s, const char *netdev)
{
	struct rl_rail *rail = &s->rails.at[s->rails.n++];

	rail->about = &s->base;
	memcpy(rail->netdev, netdev, strlen(netdev) + 1);
	return rail;
}

/* One for each netdev, with all of its addresses. */
static bool rail_each(struct rl_setup *s, const struct rl_netdev *list, u32 n,
		      struct rl_profile_error *e)
{
	u32 i;

	if (!alloc_rails(s, e))
		return false;
	for (i = 0; i < n && i < RL_RAILS; i++)
		add_rail(s, list[i].name);
	return true;
}

/* lo has all of 127.0.0.0/8. */
static void loopback_address(u32 k, u8 gid[RL_GID_LEN])
{
	const struct in_addr v4 = { htonl(INADDR_LOOPBACK + k) };

	rl_gid_of_v4(&v4, gid);
}

static bool is_family(const struct ifaddrs *i, const char *netdev, int family)
{
	return rl_netdev_is_ip(i) && rl_netdev_has(i, netdev) && i->ifa_addr->sa_family == family &&
	       (family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(
			&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr));
}

/* The @k-th address, IPv4's first; false: there are not so many. */
static bool nth_address(const struct ifaddrs *first, const char *netdev, u32 k, u8 gid[RL_GID_LEN])
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct sockaddr_storage a = { 0 };
	const struct ifaddrs *i;
	u32 f;

	for (f = 0; f < 2; f++) {
		for (i = first; i; i = i->ifa_next) {
			if (!is_family(i, netdev, families[f]) || k--)
				continue;
			memcpy(&a, i->ifa_addr, f ? sizeof(struct sockaddr_in6) :
						    sizeof(struct sockaddr_in));
			rl_gid_of_address(&a, gid);
			return true;
		}
	}
	return false;
}

/* @n devices by turns over the netdevs, each with the next address of its own. */
static bool rail_many(struct rl_setup *s, u32 n, const struct ifaddrs *first,
		      const struct rl_netdev *list, u32 netdevs, struct rl_profile_error *e)
{
	const struct rl_netdev *d;
	struct rl_rail *rail;
	u32 i;

	if (!netdevs)
		return setup_wrong(e, 0, "no netdev for them is up and has an address");
	if (!alloc_rails(s, e))
		return false;
	for (i = 0; i < n; i++) {
		d = &list[i % netdevs];
		rail = add_rail(s, d->name);
		rail->addresses = 1;
		if (d->is_loopback)
			loopback_address(i / netdevs, rail->address[0]);
		else if (!nth_address(first, d->name, i / netdevs, rail->address[0]))
			return setup_wrong(e, 0, "%s has %u addresses only, and each device needs "
					   "its own", d->name, i / netdevs);
	}
	return true;
}

/* Without names: lo. */
static bool rail_number(struct rl_setup *s, u32 n, const struct rl_wishes *w,
			const struct ifaddrs *first, struct rl_profile_error *e)
{
	struct rl_netdev list[RL_NETDEVS];
	u32 netdevs = rl_netdevs_list(first, w->netdevs, list), i;

	for (i = 0; !w->netdevs && i < netdevs; i++) {
		if (list[i].is_loopback) {
			list[0] = list[i];
			netdevs = 1;
			return rail_many(s, n, first, list, netdevs, e);
		}
	}
	return rail_many(s, n, first, list, netdevs, e);
}

/* ---- can the host do it? ---- */

static bool can_bind(const u8 gid[RL_GID_LEN], unsigned int ifindex)
{
	const struct in6_addr *six = (const struct in6_addr *)gid;
	bool four = IN6_IS_ADDR_V4MAPPED(six);
	struct sockaddr_in in4 = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = *six };
	long fd = rl_raw(SYS_socket, four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rv;

	if (fd < 0)
		return false;
	memcpy(&in4.sin_addr, gid + 12, sizeof(in4.sin_addr));
	in6.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(six) ? ifindex : 0;
	rv = four ? rl_raw(SYS_bind, fd, &in4, sizeof(in4)) :
		    rl_raw(SYS_bind, fd, &in6, sizeof(in6));
	rl_raw(SYS_close, fd);
	return !rv;
}

static bool check_addresses(const struct rl_rail *rail, struct rl_profile_error *e)
{
	unsigned int ifindex = if_nametoindex(rail->netdev);
	u32 i;

	/* The program did not ask for this netdev, which may vanish at any time. */
	if (!rail->line && !rail->addresses)
		return true;
	if (!ifindex)
		return setup_wrong(e, rail->line, "rail: this host has no %s", rail->netdev);
	for (i = 0; i < rail->addresses; i++)
		if (!can_bind(rail->address[i], ifindex))
			return setup_wrong(e, rail->line, "rail: address %u of %s is not this "
					   "host's", i + 1, rail->netdev);
	return true;
}

bool rl_setup_host_has(const struct rl_pci_path *path)
{
	const struct rl_pci_function *f = &path->at[path->depth - 1];
	char name[64];

	snprintf(name, sizeof(name), "/sys/bus/pci/devices/%04x:%02x:%02x.%x", f->domain, f->bus,
		 f->slot, f->function);
	return !rl_raw(SYS_faccessat, AT_FDCWD, name, F_OK);
}

static bool check_pci(const struct rl_rail *rail, u32 index, struct rl_profile_error *e)
{
	const struct rl_pci_function *f;
	struct rl_pci_path path;

	if (!rail->about->pci_paths)
		return true;
	rl_profile_pci(rail->about, index, 0, &path);
	if (!rl_setup_host_has(&path))
		return true;
	f = &path.at[path.depth - 1];
	return setup_wrong(e, rail->line, "pci: %04x:%02x:%02x.%x is a device of this host",
			   f->domain, f->bus, f->slot, f->function);
}

static bool check_host(const struct rl_rails *rails, struct rl_profile_error *e)
{
	u32 i;

	for (i = 0; i < rails->n; i++)
		if (!check_addresses(&rails->at[i], e) || !check_pci(&rails->at[i], i, e))
			return false;
	return true;
}

/* ---- all of it ---- */

/* "4"; false: it is no number of rails. */
static bool parse_count(const char *s, u32 *n)
{
	*n = 0;
	while (*s >= '0' && *s <= '9' && *n <= RL_RAILS)
		*n = *n * 10 + (u32)(*s++ - '0');
	return !*s && *n && *n <= RL_RAILS;
}

static bool make_rails(const struct rl_wishes *w, const struct ifaddrs *first, struct rl_setup *s,
		       const char **file, struct rl_profile_error *e)
{
	struct rl_netdev list[RL_NETDEVS];
	u32 n;

	*file = NULL;
	if (!w->rails)
		return rail_each(s, list, rl_netdevs_list(first, w->netdevs, list), e);
	if (parse_count(w->rails, &n))
		return rail_number(s, n, w, first, e);
	*file = w->rails;
	return load_rails(s, w->rails, e);
}

bool rl_setup_make(const struct rl_wishes *w, const struct ifaddrs *first, struct rl_setup *s,
		   const char **file, struct rl_profile_error *e)
{
	rl_profile_init(&s->base);
	s->rails = (struct rl_rails){ .n = 0 };
	*file = w->profile;
	if (!w->profile && w->iwarp)
		rl_profile_set_iwarp(&s->base);
	if (w->profile && !load_profile(s, w->profile, e))
		return false;
	if (!make_rails(w, first, s, file, e) || !check_host(&s->rails, e)) {
		rl_rails_free(&s->rails);
		return false;
	}
	return true;
}
