// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NETLINK_RDMA sockets. Each is one end of a socket pair, so that poll, MSG_PEEK and O_NONBLOCK are
 * the kernel's own. A message from the program is answered at once: the answers are written to the
 * other end, which is hidden. Answers that do not fit are lost, as with netlink.
 */
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "device.h"
#include "process/file.h"
#include "netlink.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/stats.h"
#include "resource.h"

/* All buffers on the program's stack, which may be small. */
#define MAX_REQUEST 4096
/* libmnl reads at most this much at a time. */
#define MAX_ANSWER 4096
#define MAX_STATS 128

/* enum ib_port_state, enum ib_port_phys_state */
enum { PORT_DOWN = 1, PORT_ACTIVE = 4, PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

struct netlink {
	struct rl_file file;
	int peer;			/* hidden: answers are written here */
	u32 port;			/* nl_pid; atomic; 0: not bound */
};

static struct netlink *to_netlink(struct rl_file *f)
{
	return container_of(f, struct netlink, file);
}

/* Its name; an unnamed socket gets the process's number now. */
static u32 netlink_port_of(struct netlink *nl)
{
	u32 port = 0, own = (u32)rl_raw(SYS_getpid);

	if (__atomic_compare_exchange_n(&nl->port, &port, own, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return own;
	return port;
}

/* ---- answers ---- */

struct answer {
	u8 buf[MAX_ANSWER] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len;
	bool is_full;			/* something did not fit */
};

static struct nlmsghdr *header_of(struct answer *a)
{
	return (struct nlmsghdr *)a->buf;
}

static void nl_put(struct answer *a, const void *p, size_t len)
{
	if (NLMSG_ALIGN(len) > sizeof(a->buf) - a->len) {
		a->is_full = true;
		return;
	}
	memset(a->buf + a->len, 0, NLMSG_ALIGN(len));
	memcpy(a->buf + a->len, p, len);
	a->len += NLMSG_ALIGN(len);
}

static void put_attr(struct answer *a, u16 type, const void *p, size_t len)
{
	struct nlattr attr = { .nla_type = type, .nla_len = (u16)(NLA_HDRLEN + len) };

	nl_put(a, &attr, sizeof(attr));
	nl_put(a, p, len);
}

static void put_u8(struct answer *a, u16 type, u8 v)
{
	put_attr(a, type, &v, sizeof(v));
}

static void put_u32(struct answer *a, u16 type, u32 v)
{
	put_attr(a, type, &v, sizeof(v));
}

static void put_u64(struct answer *a, u16 type, u64 v)
{
	put_attr(a, type, &v, sizeof(v));
}

static void put_string(struct answer *a, u16 type, const char *s)
{
	put_attr(a, type, s, strlen(s) + 1);
}

/* The offset of the nest, for end_nest(). */
static size_t begin_nest(struct answer *a, u16 type)
{
	size_t at = a->len;

	put_attr(a, type | NLA_F_NESTED, "", 0);
	return at;
}

static void end_nest(struct answer *a, size_t at)
{
	struct nlattr *attr = (struct nlattr *)(a->buf + at);

	if (!a->is_full)
		attr->nla_len = (u16)(a->len - at);
}

/* ---- requests ---- */

/* A request, and its attributes. */
struct request {
	struct netlink *nl;
	struct nlmsghdr h;
	bool has_index, has_port, has_stat;
	u32 index, port;
	char chardev[16];		/* "": none */
};

static void begin_answer(const struct request *r, struct answer *a, u16 type, u16 flags)
{
	struct nlmsghdr h = {
		.nlmsg_type = type, .nlmsg_flags = flags,
		.nlmsg_seq = r->h.nlmsg_seq, .nlmsg_pid = netlink_port_of(r->nl),
	};

	a->len = 0;
	a->is_full = false;
	nl_put(a, &h, sizeof(h));
}

static int netlink_send_answer(const struct request *r, struct answer *a)
{
	if (a->is_full)
		return -EMSGSIZE;
	header_of(a)->nlmsg_len = (u32)a->len;
	if (rl_raw(SYS_sendto, r->nl->peer, a->buf, a->len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
		   0) < 0)
		rl_trace("netlink: an answer is lost: the program has not read the others");
	return 0;
}

static bool is_dump(const struct request *r)
{
	return (r->h.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}

static void begin_nldev(const struct request *r, struct answer *a)
{
	begin_answer(r, a, r->h.nlmsg_type, is_dump(r) ? NLM_F_MULTI : 0);
}

/* Error 0 is an acknowledgement. */
static void send_error(const struct request *r, int error)
{
	struct nlmsgerr e = { .error = error, .msg = r->h };
	struct answer a;

	begin_answer(r, &a, NLMSG_ERROR, error ? NLM_F_CAPPED : 0);
	nl_put(&a, &e, sizeof(e));
	netlink_send_answer(r, &a);
}

static void send_done(const struct request *r)
{
	struct answer a;
	int error = 0;

	begin_answer(r, &a, NLMSG_DONE, NLM_F_MULTI);
	nl_put(&a, &error, sizeof(error));
	netlink_send_answer(r, &a);
}

static bool read_u32(const struct nlattr *attr, u32 *v)
{
	if (attr->nla_len != NLA_HDRLEN + sizeof(*v))
		return false;
	memcpy(v, (const u8 *)attr + NLA_HDRLEN, sizeof(*v));
	return true;
}

/* @s has room for @room octets, and is zeroed. */
static bool read_string(const struct nlattr *attr, char *s, size_t room)
{
	size_t len = attr->nla_len - NLA_HDRLEN;

	if (!len || len > room)
		return false;
	memcpy(s, (const u8 *)attr + NLA_HDRLEN, len);
	return !s[len - 1] || len < room;
}

static bool read_attr(struct request *r, const struct nlattr *attr)
{
	switch (attr->nla_type & NLA_TYPE_MASK) {
	case RDMA_NLDEV_ATTR_DEV_INDEX:
		return r->has_index = read_u32(attr, &r->index);
	case RDMA_NLDEV_ATTR_PORT_INDEX:
		return r->has_port = read_u32(attr, &r->port);
	case RDMA_NLDEV_ATTR_CHARDEV_TYPE:
		return read_string(attr, r->chardev, sizeof(r->chardev));
	case RDMA_NLDEV_ATTR_STAT_RES:
		return r->has_stat = true;
	}
	return true;
}

/* @p: the attributes, @len octets. */
static bool read_attrs(struct request *r, const u8 *p, size_t len)
{
	const struct nlattr *attr;
	size_t whole;

	while (len >= NLA_HDRLEN) {
		attr = (const struct nlattr *)p;
		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > len || !read_attr(r, attr))
			return false;
		whole = NLA_ALIGN(attr->nla_len);
		if (whole >= len)
			return true;
		p += whole;
		len -= whole;
	}
	return true;
}

/* ---- commands: each says one device's answer ---- */

static u64 guid_number(const u8 guid[8])
{
	u64 v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | guid[i];
	return v;
}

static void put_handle(struct answer *a, const struct rl_device *d)
{
	put_u32(a, RDMA_NLDEV_ATTR_DEV_INDEX, d->index);
	put_string(a, RDMA_NLDEV_ATTR_DEV_NAME, d->name);
}

static const char *protocol_of(const struct rl_profile *p)
{
	if (p->node_type == RDMA_NODE_UNSPECIFIED)
		return "unknown";
	return p->iwarp ? "iw" : "roce";
}

static int answer_device(const struct request *r, const struct rl_device *d)
{
	const struct rl_profile *p = d->about;
	struct answer a;

	begin_nldev(r, &a);
	put_handle(&a, d);
	put_u32(&a, RDMA_NLDEV_ATTR_PORT_INDEX, RL_PORT);
	put_u64(&a, RDMA_NLDEV_ATTR_CAP_FLAGS, p->device_cap_flags);
	/* Without firmware there is no version, as of the kernel's driver. */
	if (*p->fw_ver)
		put_string(&a, RDMA_NLDEV_ATTR_FW_VERSION, p->fw_ver);
	put_u64(&a, RDMA_NLDEV_ATTR_NODE_GUID, guid_number(d->guid));
	put_u64(&a, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid_number(d->system_guid));
	put_u8(&a, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, p->node_type);
	put_string(&a, RDMA_NLDEV_ATTR_DEV_PROTOCOL, protocol_of(p));
	return netlink_send_answer(r, &a);
}

static int answer_port(const struct request *r, const struct rl_device *d)
{
	struct rl_port_state s;
	struct answer a;

	if (!is_dump(r) && (!r->has_port || r->port != RL_PORT))
		return -EINVAL;
	rl_device_read_port(d, &s);
	begin_nldev(r, &a);
	put_handle(&a, d);
	put_u32(&a, RDMA_NLDEV_ATTR_PORT_INDEX, RL_PORT);
	put_u8(&a, RDMA_NLDEV_ATTR_PORT_STATE, s.up ? PORT_ACTIVE : PORT_DOWN);
	put_u8(&a, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, s.up ? PHYS_LINK_UP : PHYS_DISABLED);
	put_u32(&a, RDMA_NLDEV_ATTR_NDEV_INDEX, d->ifindex);
	put_string(&a, RDMA_NLDEV_ATTR_NDEV_NAME, d->netdev);
	return netlink_send_answer(r, &a);
}

static void put_count(struct answer *a, const char *name, u64 count)
{
	size_t nest = begin_nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	put_string(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	put_u64(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	end_nest(a, nest);
}

static int answer_resources(const struct request *r, const struct rl_device *d)
{
	struct answer a;
	size_t nest;

	begin_nldev(r, &a);
	put_handle(&a, d);
	nest = begin_nest(&a, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_count(&a, "pd", rl_resource_count(d, RL_PD));
	put_count(&a, "cq", rl_resource_count(d, RL_CQ));
	put_count(&a, "qp", rl_resource_count(d, RL_QP));
	put_count(&a, "cm_id", 0);
	put_count(&a, "mr", rl_resource_count(d, RL_MR));
	put_count(&a, "ctx", rl_resource_count(d, RL_CONTEXT));
	put_count(&a, "srq", rl_resource_count(d, RL_SRQ));
	end_nest(&a, nest);
	return netlink_send_answer(r, &a);
}

static void put_stat(struct answer *a, const char *name, u64 value)
{
	size_t nest = begin_nest(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);

	put_string(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
	put_u64(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
	end_nest(a, nest);
}

/* A port's counters. There are none of single QPs or regions, for which STAT_RES and dumps ask. */
static int answer_stats(const struct request *r, const struct rl_device *d)
{
	const struct rl_profile *p = d->about;
	u32 n = p->own_counters ? min_t(u32, rl_stat_count, MAX_STATS) : 0, i;
	u64 values[MAX_STATS];
	struct answer a;
	size_t nest;

	if (is_dump(r))
		return 0;
	if (r->has_stat)
		return -EOPNOTSUPP;
	if (!r->has_port || r->port != RL_PORT)
		return -EINVAL;
	rl_stat_get(values, n);
	begin_nldev(r, &a);
	put_handle(&a, d);
	put_u32(&a, RDMA_NLDEV_ATTR_PORT_INDEX, RL_PORT);
	nest = begin_nest(&a, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (i = 0; i < n; i++)
		put_stat(&a, rl_stat_names[i], values[i]);
	for (i = 0; i < p->nhw_counters; i++)
		put_stat(&a, p->hw_counters[i], 0);
	end_nest(&a, nest);
	return netlink_send_answer(r, &a);
}

/* ---- commands: what is one for all devices ---- */

/* The kernel's encoding of a device number for user space. */
static u64 rdev_number(dev_t rdev)
{
	u32 ma = major(rdev), mi = minor(rdev);

	return (mi & 0xff) | ma << 8 | (u64)(mi & ~0xffu) << 12;
}

static int answer_chardev(const struct request *r)
{
	const struct rl_device *d = r->has_index ? rl_device_at(r->index) : NULL;
	bool is_cm = !strcmp(r->chardev, "rdma_cm");
	char name[32] = "rdma_cm";
	struct answer a;

	if (!is_cm && strcmp(r->chardev, "uverbs"))
		return -ENOENT;
	if (!is_cm && !r->has_index)
		return -EINVAL;
	if (r->has_index && !d)
		return -ENODEV;
	if (!is_cm)
		snprintf(name, sizeof(name), "uverbs%u", d->index);
	begin_nldev(r, &a);
	if (d)
		put_handle(&a, d);
	put_u64(&a, RDMA_NLDEV_ATTR_CHARDEV,
		rdev_number(is_cm ? rl_device_cm_rdev() : rl_device_uverbs_rdev(d)));
	put_u64(&a, RDMA_NLDEV_ATTR_CHARDEV_ABI,
		is_cm ? RDMA_USER_CM_ABI_VERSION : WEFT_ABI_VERSION);
	put_string(&a, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	if (!is_cm)
		put_u32(&a, RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, WEFT_DRIVER_ID);
	return netlink_send_answer(r, &a);
}

/*
 * Devices are shared among network namespaces, as by the kernel's default. Memory is not pinned:
 * fork() copies.
 */
static int answer_system(const struct request *r)
{
	struct answer a;

	begin_nldev(r, &a);
	put_u8(&a, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	put_u8(&a, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	return netlink_send_answer(r, &a);
}

/* ---- which command ---- */

struct command {
	int (*whole)(const struct request *r);
	/* NULL: objects that a dump does not list */
	int (*device)(const struct request *r, const struct rl_device *d);
	bool can_dump;
	bool needs_index;		/* for a dump, too */
};

static const struct command commands[RDMA_NLDEV_NUM_OPS] = {
	[RDMA_NLDEV_CMD_GET] = { .device = answer_device, .can_dump = true },
	[RDMA_NLDEV_CMD_PORT_GET] = {
		.device = answer_port, .can_dump = true, .needs_index = true,
	},
	[RDMA_NLDEV_CMD_RES_GET] = { .device = answer_resources, .can_dump = true },
	[RDMA_NLDEV_CMD_STAT_GET] = { .device = answer_stats, .can_dump = true },
	[RDMA_NLDEV_CMD_GET_CHARDEV] = { .whole = answer_chardev },
	[RDMA_NLDEV_CMD_SYS_GET] = { .whole = answer_system },
	[RDMA_NLDEV_CMD_RES_QP_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_CQ_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_MR_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_PD_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_CTX_GET] = { .can_dump = true },
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = { .can_dump = true },
};

static int dump(const struct request *r, const struct command *c)
{
	const struct rl_device *d;
	u32 i;
	int rv;

	if (c->needs_index && (!r->has_index || !rl_device_at(r->index)))
		return -EINVAL;
	for (i = 0; c->device && (d = rl_device_at(i)); i++) {
		rv = r->has_index && r->index != i ? 0 : c->device(r, d);
		if (rv)
			return rv;
	}
	send_done(r);
	return 0;
}

static int answer_one(const struct request *r, const struct command *c)
{
	const struct rl_device *d;

	if (c->whole)
		return c->whole(r);
	if (!c->device)
		return -EOPNOTSUPP;
	d = r->has_index ? rl_device_at(r->index) : NULL;
	return d ? c->device(r, d) : -EINVAL;
}

static const struct command *command_of(const struct request *r)
{
	u32 type = r->h.nlmsg_type, op = RDMA_NL_GET_OP(type);

	return RDMA_NL_GET_CLIENT(type) == RDMA_NL_NLDEV && op < ARRAY_SIZE(commands) ?
		&commands[op] : NULL;
}

/* The end of a dump is its acknowledgement, too. */
static void answer_request(struct request *r, const u8 *attrs, size_t len)
{
	const struct command *c = command_of(r);
	int rv;

	if (!c || (is_dump(r) && !c->can_dump))
		rv = -EOPNOTSUPP;
	else if (!read_attrs(r, attrs, len))
		rv = -EINVAL;
	else if (is_dump(r))
		rv = dump(r, c);
	else
		rv = answer_one(r, c);
	if (rv || (r->h.nlmsg_flags & NLM_F_ACK && !is_dump(r)))
		send_error(r, rv);
}

/* ---- the socket ---- */

/* Messages for the kernel's own use, and empty requests, only get their acknowledgement. */
static void take_message(struct netlink *nl, const struct nlmsghdr *h)
{
	struct request r = { .nl = nl, .h = *h };

	if (h->nlmsg_flags & NLM_F_REQUEST && h->nlmsg_type >= NLMSG_MIN_TYPE)
		answer_request(&r, (const u8 *)h + NLMSG_HDRLEN, h->nlmsg_len - NLMSG_HDRLEN);
	else if (h->nlmsg_flags & NLM_F_ACK)
		send_error(&r, 0);
}

/* @p: aligned, and private to the caller. */
static void take_messages(struct netlink *nl, const u8 *p, size_t len)
{
	const struct nlmsghdr *h;
	size_t whole;

	while (len >= NLMSG_HDRLEN) {
		h = (const struct nlmsghdr *)p;
		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > len)
			return;
		take_message(nl, h);
		whole = NLMSG_ALIGN(h->nlmsg_len);
		if (whole >= len)
			return;
		p += whole;
		len -= whole;
	}
}

static ssize_t nl_write(struct rl_file *f, int fd, const void *buf, size_t len)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return rl_netlink_gather(f, fd, &iov, 1);
}

static ssize_t nl_send(struct rl_file *f, int fd, const void *buf, size_t len)
{
	take_messages(to_netlink(f), buf, len);
	return (ssize_t)len;
}

static void nl_release(struct rl_file *f)
{
	struct netlink *nl = to_netlink(f);

	rl_fd_close_hidden(nl->peer);
	free(nl);
}

static const struct rl_file_ops nl_ops = {
	.write = nl_write,
	.send = nl_send,
	.release = nl_release,
};

static bool add_piece(u8 *buf, size_t *len, const struct iovec *v)
{
	if (v->iov_len > MAX_REQUEST - *len)
		return false;
	if (v->iov_len)
		memcpy(buf + *len, v->iov_base, v->iov_len);
	*len += v->iov_len;
	return true;
}

ssize_t rl_netlink_gather(struct rl_file *f, int fd, const struct iovec *iov, size_t n)
{
	u8 buf[MAX_REQUEST] __attribute__((aligned(8)));
	size_t len = 0, i;

	for (i = 0; i < n; i++)
		if (!add_piece(buf, &len, &iov[i]))
			return -EMSGSIZE;
	return f->ops->send(f, fd, buf, len);
}

int rl_netlink_bind(struct rl_file *f, const struct sockaddr *a, socklen_t len)
{
	struct netlink *nl = to_netlink(f);
	struct sockaddr_nl name;
	u32 old = 0;

	if (!a || len < sizeof(name) || a->sa_family != AF_NETLINK)
		return -EINVAL;
	memcpy(&name, a, sizeof(name));
	if (!name.nl_pid)
		return netlink_port_of(nl) ? 0 : -EINVAL;
	if (__atomic_compare_exchange_n(&nl->port, &old, name.nl_pid, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return 0;
	return old == name.nl_pid ? 0 : -EINVAL;
}

void rl_netlink_name(struct rl_file *f, struct sockaddr_nl *name)
{
	memset(name, 0, sizeof(*name));
	name->nl_family = AF_NETLINK;
	name->nl_pid = __atomic_load_n(&to_netlink(f)->port, __ATOMIC_RELAXED);
}

/* @pair: the program's end, and the hidden one. */
static int install_pair(const int pair[2])
{
	struct netlink *nl = calloc(1, sizeof(*nl));
	int peer = rl_fd_hide(pair[1]);

	if (!nl && peer >= 0) {
		rl_fd_close_hidden(peer);
		peer = -ENOMEM;
	}
	if (peer < 0) {
		rl_raw(SYS_close, pair[0]);
		free(nl);
		return peer;
	}
	nl->peer = peer;
	rl_file_init(&nl->file, &nl_ops, 0);
	return rl_fd_install(pair[0], &nl->file);
}

int rl_netlink_open(int type)
{
	int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK), kind = type & ~flags, pair[2], rv;

	if (kind != SOCK_RAW && kind != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	rv = rl_raw(SYS_socketpair, AF_UNIX, SOCK_DGRAM | flags, 0, pair);
	return rv < 0 ? rv : install_pair(pair);
}
