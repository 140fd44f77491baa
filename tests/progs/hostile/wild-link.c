// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A device by RDMA's netlink, and its files in sysfs, at random: wild.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "wild.h"

#define DEVICES		"/sys/class/infiniband"
#define NR_COMMANDS	32
/* The attribute that asks for what the driver knows: older headers lack it. */
#define DRIVER_DETAILS	97

/* ---- messages ---- */

struct message {
	struct nlmsghdr hdr;
	uint8_t attrs[1024];
};

static void put(struct message *m, uint16_t type, const void *at, size_t len)
{
	struct nlattr *a = (void *)((uint8_t *)m + NLMSG_ALIGN(m->hdr.nlmsg_len));

	if (m->hdr.nlmsg_len + sizeof(*a) + len + 8 > sizeof(*m))
		return;
	*a = (struct nlattr){ .nla_len = sizeof(*a) + len, .nla_type = type };
	memcpy(a + 1, at, len);
	m->hdr.nlmsg_len = NLMSG_ALIGN(m->hdr.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static void put_word(struct message *m, uint16_t type, uint32_t word)
{
	put(m, type, &word, sizeof(word));
}

static void put_text(struct message *m, uint16_t type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

static struct message message(uint16_t command, uint16_t flags)
{
	return (struct message){ .hdr = {
		.nlmsg_len = sizeof(struct nlmsghdr), .nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), .nlmsg_seq = rnd(),
	} };
}

/* The answer's first message, or that of an error; later ones are dropped with the socket. */
static bool say(struct message *m)
{
	static __thread uint8_t answer[16384];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *hdr = (void *)answer;
	struct nlmsgerr *err = (void *)(hdr + 1);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool good = false;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	if (once_in(8))
		setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &(int){ 1 }, sizeof(int));
	spoil(m, m->hdr.nlmsg_len);
	fault_begin();
	if (sendto(fd, m, m->hdr.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) > 0)
		n = poll(&p, 1, 1000) == 1 ? recv(fd, answer, sizeof(answer), MSG_DONTWAIT) : 0;
	fault_end();
	if (n >= (ssize_t)sizeof(*hdr))
		good = hdr->nlmsg_type != NLMSG_ERROR || !err->error;
	/* The rest of a dump, or a dump that is not read to its end. */
	while (good && m->hdr.nlmsg_flags & NLM_F_DUMP && once_in(2) &&
	       recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	close(fd);
	if (!good)
		counted(NET_REFUSED, true);
	return good;
}

/* ---- devices ---- */

/* Of one of them, as a rule weft's: its name. */
static bool any_device(char name[64])
{
	DIR *dir = opendir(DEVICES);
	struct dirent *e;
	uint32_t n = 0;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && once_in(++n))
			snprintf(name, 64, "%.63s", e->d_name);
	if (dir)
		closedir(dir);
	return n;
}

/* What the kernel calls it by in its messages: of those that a dump has, as a rule. */
static uint32_t any_index(void)
{
	static __thread uint8_t answer[16384];
	struct message m = message(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct nlmsghdr *hdr = (void *)answer;
	uint32_t index = below(64), n = 0;
	struct nlattr *a;
	int len = 0;

	if (fd >= 0 && send(fd, &m, m.hdr.nlmsg_len, 0) > 0)
		len = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	for (; NLMSG_OK(hdr, (uint32_t)len) && len > 0; hdr = NLMSG_NEXT(hdr, len)) {
		a = NLMSG_DATA(hdr);
		if (hdr->nlmsg_type >= NLMSG_MIN_TYPE && a->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX &&
		    once_in(++n) && !once_in(20))
			memcpy(&index, a + 1, sizeof(index));
	}
	return index;
}

static void any_name(char name[64])
{
	switch (below(12)) {
	case 0: memset(name, 'x', 63); name[63] = 0; break;
	case 1: strcpy(name, ""); break;
	case 2: strcpy(name, "a/b"); break;
	case 3: strcpy(name, "weft%d"); break;
	case 4: strcpy(name, "x y"); break;
	default: snprintf(name, 64, "wild%u", below(6)); break;
	}
}

static void write_option(const char *device, const char *option, const char *value)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), DEVICES "/%s/weft/%s", device, option);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	fault_begin();
	counted(OPTION_SET, write(fd, value, strlen(value)) > 0);
	fault_end();
	close(fd);
}

/*
 * Whoever destroys an id that connects waits in iw_cm until its peer accepts, or for this time; and
 * the peer may be one whose end waits for just that.
 */
static void be_impatient(void)
{
	DIR *dir = opendir(DEVICES);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			write_option(e->d_name, "accept_timeout_ms", "2000");
	if (dir)
		closedir(dir);
}

/* On some netdev of this namespace. */
static void add(void)
{
	static const char *const odd[] = { "lo", "", "nothere", "eth%d" };
	struct if_nameindex *all = if_nameindex(), *i;
	struct message m = message(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	const char *netdev = odd[below(4)];
	uint32_t n = 0;
	char name[64];

	for (i = all; i && i->if_index; i++)
		if (strcmp(i->if_name, "lo") && once_in(++n) && !once_in(12))
			netdev = i->if_name;
	any_name(name);
	put_text(&m, RDMA_NLDEV_ATTR_DEV_NAME, name);
	put_text(&m, RDMA_NLDEV_ATTR_LINK_TYPE, once_in(12) ? "nothing" : "weft");
	put_text(&m, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	if_freenameindex(all);
	if (counted(LINK_ADD, say(&m)))
		be_impatient();
}

static void delete(void)
{
	struct message m = message(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);

	put_word(&m, RDMA_NLDEV_ATTR_DEV_INDEX, any_index());
	counted(LINK_DEL, say(&m));
}

static void rename_one(void)
{
	struct message m = message(RDMA_NLDEV_CMD_SET, NLM_F_ACK);
	char name[64];

	/* Linux takes the slash, and then its directory cannot be read. */
	do
		any_name(name);
	while (strchr(name, '/'));
	put_word(&m, RDMA_NLDEV_ATTR_DEV_INDEX, any_index());
	put_text(&m, RDMA_NLDEV_ATTR_DEV_NAME, name);
	counted(RENAME, say(&m));
}

static void move(void)
{
	struct message m = message(RDMA_NLDEV_CMD_SET, NLM_F_ACK);
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	put_word(&m, RDMA_NLDEV_ATTR_DEV_INDEX, any_index());
	put_word(&m, RDMA_NLDEV_NET_NS_FD, once_in(3) ? (int)rnd() : fd);
	counted(NETNS, say(&m));
	close(fd);
}

static void dump(void)
{
	static const uint8_t commands[] = {
		RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_PORT_GET, RDMA_NLDEV_CMD_RES_GET,
		RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_CMD_RES_CQ_GET,
		RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_CMD_RES_CTX_GET,
		RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_CMD_STAT_GET,
	};
	struct message m = message(commands[below(sizeof(commands))], NLM_F_DUMP);

	put_word(&m, RDMA_NLDEV_ATTR_DEV_INDEX, any_index());
	if (once_in(3))
		put_word(&m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	if (once_in(2))
		put(&m, DRIVER_DETAILS, "\1", 1);
	counted(DUMP, say(&m));
}

/*
 * Any command but those above, and but the mode of namespaces, which is everybody's; attributes of
 * all kinds.
 */
static void odd(void)
{
	uint32_t command = below(NR_COMMANDS), n = once_in(2) ? 0 : 1 + below(4);
	struct message m;
	char name[64];

	if (command == RDMA_NLDEV_CMD_NEWLINK || command == RDMA_NLDEV_CMD_DELLINK ||
	    command == RDMA_NLDEV_CMD_SYS_SET || command == RDMA_NLDEV_CMD_SET)
		return;
	m = message(command, once_in(3) ? NLM_F_DUMP : NLM_F_ACK);
	if (!once_in(4))
		put_word(&m, RDMA_NLDEV_ATTR_DEV_INDEX, any_index());
	if (!once_in(3))
		put_word(&m, RDMA_NLDEV_ATTR_PORT_INDEX, once_in(4) ? rnd() : 1);
	while (n--)
		switch (below(6)) {
		case 0: put_word(&m, RDMA_NLDEV_ATTR_RES_LQPN, common->qpns[below(QPNS)]); break;
		case 1: put_word(&m, RDMA_NLDEV_ATTR_RES_PDN + below(5), below(64)); break;
		case 2: put_word(&m, RDMA_NLDEV_ATTR_STAT_MODE + below(6), below(4)); break;
		case 3: any_name(name), put_text(&m, RDMA_NLDEV_ATTR_CHARDEV_TYPE, once_in(2) ?
						 "uverbs" : name); break;
		case 4: put_word(&m, below(120), rnd()); break;
		default: put(&m, below(120), buf, below(64)); break;
		}
	counted(NET_TAKEN, say(&m));
}

/* ---- files ---- */

static void set_option(const char *device)
{
	static const struct { const char *name, *values[6]; } options[] = {
		{ "crc", { "0", "1", "y", "2", "", "1" } },
		{ "markers", { "0", "1", "0", "0", "-1", "0" } },
		{ "large_fpdus", { "0", "1", "y", "2", "", "1" } },
		{ "mpa_revision", { "1", "2", "2", "3", "-1", "2" } },
		{ "extensions", { "0", "1", "1", "1", "x", "1" } },
		{ "rtr", { "write", "read", "write,read", "send", ",", "zero" } },
		{ "startup_timeout_ms", { "3000", "10000", "99", "600001", "5000", "99999999999" } },
		{ "accept_timeout_ms", { "2000", "3000", "0", "600001", "100", " 7" } },
		{ "close_timeout_ms", { "100", "10000", "99", "1000", "5000", "0x100" } },
		{ "rnr_timeout_ms", { "0", "300", "1000", "100", "5000", "-1" } },
	};
	uint32_t which = below(sizeof(options) / sizeof(options[0]));

	write_option(device, options[which].name, options[which].values[below(6)]);
}

static void read_file(const char *path)
{
	static __thread char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	fault_begin();
	counted(OPTION_READ, read(fd, text, sizeof(text)) > 0);
	fault_end();
	close(fd);
}

static void read_files(const char *device)
{
	static const char *const places[] = { "", "/weft", "/ports/1", "/ports/1/hw_counters",
					      "/ports/1/gids", "/ports/1/gid_attrs/ndevs" };
	char path[400], where[300];
	struct dirent *e;
	DIR *dir;

	snprintf(where, sizeof(where), DEVICES "/%s%s", device, places[below(6)]);
	dir = opendir(where);
	while (dir && (e = readdir(dir))) {
		if (e->d_type != DT_REG || !once_in(4))
			continue;
		snprintf(path, sizeof(path), "%s/%.90s", where, e->d_name);
		read_file(path);
	}
	if (dir)
		closedir(dir);
}

/* Devices stay a while, so that others get somewhere. */
void link_any(bool keeper)
{
	char device[64];

	if (once_in(20))
		mischief = keeper && once_in(2) ? 0 : 4 + below(100);
	pause_ms(below(30));
	/* Nor is there one to be seen if one was renamed to what is no file's name. */
	if (!any_device(device)) {
		if (once_in(2))
			add();
		else
			delete();
		return;
	}
	switch (keeper && once_in(2) ? 9 + below(7) : below(16)) {
	case 0:
	case 1:
	case 2:
	case 3: dump(); break;
	case 4:
	case 5: odd(); break;
	case 6:
	case 7:
	case 8: read_files(device); break;
	case 9:
	case 10:
		set_option(device);
		break;
	case 11:
		if (!keeper || once_in(3))
			rename_one();
		break;
	case 12: move(); break;
	case 13:
	case 14: add(); break;
	default:
		if (!keeper || once_in(4))
			delete();
		break;
	}
}
