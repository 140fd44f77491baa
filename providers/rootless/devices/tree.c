// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tree: following names in it, and its contents. The texts are those that the kernel has for
 * the driver's devices. Those have no parent; but programs look for a device's netdev below one, so
 * there is a "device" with the netdev and nothing else.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "kernel/core/rtr.h"
#include "kernel/uapi/rdma/weft-abi.h"
#include "process/gate.h"
#include "process/options.h"
#include "tree.h"

#define VERBS_ABI	6	/* of the uverbs commands */
#define CM_ABI		4	/* of rdma_cm's */
#define MAX_LINKS	8
#define LOWEST_ADDRESS	4096
/* Of no other file system: the kernel numbers its own from 1. */
#define TREE_DEV	makedev(0, 0xfffff)

static struct {
	pthread_once_t once;
	struct rl_node root;
	ino_t last_ino;
	struct timespec made;
} tree = {
	.once = PTHREAD_ONCE_INIT,
	.root = {
		.name = "", .parent = &tree.root, .mode = S_IFDIR | 0755,
		.real = true, .merged = true, .ino = 1,
	},
	.last_ino = 1,
};

/* ---- making nodes; a parent of NULL had no memory ---- */

static struct rl_node *find_child(const struct rl_node *dir, const char *name, size_t len)
{
	struct rl_node *n;

	for (n = dir->child; n; n = n->next)
		if (!strncmp(n->name, name, len) && !n->name[len])
			return n;
	return NULL;
}

static struct rl_node *tree_add(struct rl_node *dir, const char *name, mode_t mode)
{
	struct rl_node *n = dir ? calloc(1, sizeof(*n)) : NULL, **at;

	if (!n)
		return NULL;
	n->name = strdup(name);
	if (!n->name) {
		free(n);
		return NULL;
	}
	n->parent = dir;
	n->mode = mode;
	n->ino = ++tree.last_ino;
	for (at = &dir->child; *at; at = &(*at)->next)
		;
	*at = n;
	return n;
}

static struct rl_node *add_dir(struct rl_node *dir, const char *name)
{
	return tree_add(dir, name, S_IFDIR | 0755);
}

static struct rl_node *add_real(struct rl_node *dir, const char *name)
{
	struct rl_node *n = add_dir(dir, name);

	if (n)
		n->real = n->merged = true;
	return n;
}

/* A directory that may have the hardware's entries as well. */
static struct rl_node *add_class(struct rl_node *dir, const char *name)
{
	struct rl_node *n = add_dir(dir, name);

	if (n)
		n->merged = rl_options()->with_hardware;
	return n;
}

/* A file or link. Out of memory: it is missing. */
static __attribute__((format(printf, 4, 5)))
void add_text(struct rl_node *dir, const char *name, mode_t mode, const char *fmt, ...)
{
	struct rl_node *n;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	n = text ? tree_add(dir, name, mode) : NULL;
	if (n)
		n->text = text;
	else
		free(text);
}

#define add_file(dir, name, ...) add_text(dir, name, S_IFREG | 0444, __VA_ARGS__)
#define add_link(dir, name, ...) add_text(dir, name, S_IFLNK | 0777, __VA_ARGS__)

/* ---- what stands in it ---- */

static u32 be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static void fill_gids(struct rl_node *port, const struct rl_device *d)
{
	struct rl_node *gids = add_dir(port, "gids"), *attrs = add_dir(port, "gid_attrs");
	struct rl_node *ndevs = add_dir(attrs, "ndevs"), *types = add_dir(attrs, "types");
	char name[12];
	u32 i;

	for (i = 0; i < d->ngids; i++) {
		const u8 *g = d->gids[i];

		snprintf(name, sizeof(name), "%u", i);
		add_file(gids, name, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n",
			 be16(g), be16(g + 2), be16(g + 4), be16(g + 6),
			 be16(g + 8), be16(g + 10), be16(g + 12), be16(g + 14));
		add_file(ndevs, name, "%s\n", d->netdev);
		/* The other one is the kernel's name for all GID types but RoCE v2's. */
		add_file(types, name, rl_options()->roce ? "RoCE v2\n" : "IB/RoCE v1\n");
	}
}

static void fill_port(struct rl_node *port, const struct rl_device *d)
{
	add_file(port, "cap_mask", "0x00010000\n");
	add_file(port, "lid", "0x0\n");
	add_file(port, "lid_mask_count", "0\n");
	add_file(port, "link_layer", "Ethernet\n");
	add_file(port, "phys_state", "5: LinkUp\n");
	add_file(port, "rate", "10 Gb/sec (4X SDR)\n");
	add_file(port, "sm_lid", "0x0\n");
	add_file(port, "sm_sl", "0\n");
	add_file(port, "state", "4: ACTIVE\n");
	add_file(add_dir(port, "pkeys"), "0", "0xffff\n");
	fill_gids(port, d);
}

/* weft(4)'s options, with their values in this process. */
static void fill_options(struct rl_node *dir)
{
	const struct rl_options *o = rl_options();
	char rtr[WEFT_RTR_TEXT];

	weft_rtr_format(o->rtr, rtr);
	add_file(dir, "crc", "%d\n", o->crc);
	add_file(dir, "markers", "%d\n", o->markers);
	add_file(dir, "extensions", "%d\n", o->extensions);
	add_file(dir, "large_fpdus", "%d\n", o->large_fpdus);
	add_file(dir, "mpa_revision", "%u\n", o->mpa_rev);
	add_file(dir, "rtr", "%s\n", rtr);
	add_file(dir, "startup_timeout_ms", "%u\n", o->startup_ms);
	add_file(dir, "accept_timeout_ms", "%u\n", o->accept_ms);
	add_file(dir, "close_timeout_ms", "%u\n", o->close_ms);
	add_file(dir, "dead_peer_timeout_ms", "%u\n", o->dead_peer_ms);
	add_file(dir, "rnr_timeout_ms", "%u\n", o->rnr_ms);
}

static void fill_parent(struct rl_node *dir, const struct rl_device *d)
{
	add_link(add_dir(dir, "net"), d->netdev, "../../../../net/%s", d->netdev);
}

static void fill_ibdev(struct rl_node *dir, const struct rl_device *d)
{
	const u8 *g = d->guid;
	char port[8], guid[20];

	snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x",
		 be16(g), be16(g + 2), be16(g + 4), be16(g + 6));
	add_file(dir, "fw_ver", "\n");
	add_file(dir, "node_desc", "weft\n");
	add_file(dir, "node_guid", "%s\n", guid);
	add_file(dir, "node_type", rl_options()->roce ? "1: CA\n" : "4: RNIC\n");
	add_file(dir, "sys_image_guid", "%s\n", guid);
	fill_options(add_dir(dir, "weft"));
	fill_parent(add_dir(dir, "device"), d);
	snprintf(port, sizeof(port), "%u", RL_PORT);
	fill_port(add_dir(add_dir(dir, "ports"), port), d);
}

static void fill_uverbs(struct rl_node *dir, const struct rl_device *d, dev_t rdev)
{
	add_file(dir, "abi_version", "%u\n", WEFT_ABI_VERSION);
	add_file(dir, "dev", "%u:%u\n", major(rdev), minor(rdev));
	add_file(dir, "ibdev", "%s\n", d->name);
}

/* Directories with an entry for each device. */
struct shelves {
	struct rl_node *infiniband, *verbs, *sys_char, *dev, *dev_char;
};

static void add_cdev(struct shelves *s, const char *name, dev_t rdev, const struct rl_device *d,
		     const char *class)
{
	struct rl_node *n = tree_add(s->dev, name, S_IFCHR | 0666);
	char number[24];

	if (n) {
		n->rdev = rdev;
		n->dev = d;
	}
	snprintf(number, sizeof(number), "%u:%u", major(rdev), minor(rdev));
	add_link(s->sys_char, number, "../../class/%s/%s", class, name);
	add_link(s->dev_char, number, "../infiniband/%s", name);
}

static void add_device(struct shelves *s, const struct rl_device *d)
{
	dev_t rdev = rl_device_uverbs_rdev(d);
	char uverbs[20];

	snprintf(uverbs, sizeof(uverbs), "uverbs%u", d->index);
	fill_ibdev(add_dir(s->infiniband, d->name), d);
	fill_uverbs(add_dir(s->verbs, uverbs), d, rdev);
	add_cdev(s, uverbs, rdev, d, "infiniband_verbs");
}

static void add_cm(struct shelves *s, struct rl_node *misc)
{
	struct rl_node *cm = add_dir(misc, "rdma_cm");
	dev_t rdev = rl_device_cm_rdev();

	add_file(cm, "abi_version", "%u\n", CM_ABI);
	add_file(cm, "dev", "%u:%u\n", major(rdev), minor(rdev));
	add_cdev(s, "rdma_cm", rdev, NULL, "misc");
}

/* Other classes of hardware, of which these devices have none. */
static void hide_classes(struct rl_node *class)
{
	if (rl_options()->with_hardware)
		return;
	tree_add(class, "infiniband_cm", 0);
	tree_add(class, "infiniband_mad", 0);
}

static void make_tree(void)
{
	struct rl_node *sys = add_real(&tree.root, "sys"), *class = add_real(sys, "class");
	struct rl_node *dev = add_real(&tree.root, "dev");
	struct shelves s = {
		.infiniband = add_class(class, "infiniband"),
		.verbs = add_class(class, "infiniband_verbs"),
		.sys_char = add_real(add_real(sys, "dev"), "char"),
		.dev = add_class(dev, "infiniband"),
		.dev_char = add_real(dev, "char"),
	};
	u32 i;

	clock_gettime(CLOCK_REALTIME, &tree.made);
	hide_classes(class);
	add_file(s.verbs, "abi_version", "%u\n", VERBS_ABI);
	add_cm(&s, add_real(class, "misc"));
	for (i = 0; i < rl_device_count(); i++)
		add_device(&s, rl_device_at(i));
}

/* ---- following names ---- */

struct walk {
	const struct rl_node *at;
	char *rest;			/* rest to follow, inside buf */
	char buf[PATH_MAX];
	u32 links;
};

/* Replaces the link that w->rest began with by its text. */
static int enter_link(struct walk *w, const struct rl_node *link, const char *behind)
{
	char text[PATH_MAX];
	size_t len = strlen(link->text), more = strlen(behind);

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (len + more + 2 > sizeof(text))
		return -ENAMETOOLONG;
	memcpy(text, link->text, len);
	memcpy(text + len, behind, more + 1);
	memcpy(w->buf, text, len + more + 1);
	w->rest = w->buf;
	return 0;
}

/* One component: 0, RL_ELSEWHERE (and w->rest still begins with it), or -errno. */
static int tree_step(struct walk *w, size_t len, bool follow)
{
	const char *behind = w->rest + len;
	const struct rl_node *child;

	if (!S_ISDIR(w->at->mode))
		return -ENOTDIR;
	child = find_child(w->at, w->rest, len);
	if (len == 1 && w->rest[0] == '.')
		child = w->at;
	else if (len == 2 && !memcmp(w->rest, "..", 2))
		child = w->at->parent;
	if (!child)
		return w->at->merged ? RL_ELSEWHERE : -ENOENT;
	if (!child->mode)
		return -ENOENT;
	if (S_ISLNK(child->mode) && (*behind || follow))
		return enter_link(w, child, behind);
	if (*behind && !S_ISDIR(child->mode))
		return -ENOTDIR;
	w->rest += len;
	w->at = child;
	return 0;
}

static int follow_name(struct walk *w, bool follow)
{
	int rv = 0;

	while (!rv) {
		w->rest += strspn(w->rest, "/");
		if (!*w->rest)
			return w->at->real ? RL_ELSEWHERE : 0;
		rv = tree_step(w, strcspn(w->rest, "/"), follow);
	}
	return rv;
}

/* The kernel's name for w->rest, below w->at. */
static int name_elsewhere(const struct walk *w, struct rl_place *place)
{
	int len = rl_node_path(w->at, place->real, sizeof(place->real));
	size_t more = strlen(w->rest), slash = more && len > 1;

	place->node = more ? NULL : w->at;
	if (len < 0 || len + slash + more >= sizeof(place->real))
		return -ENAMETOOLONG;
	if (slash)
		place->real[len] = '/';
	memcpy(place->real + len + slash, w->rest, more + 1);
	return RL_ELSEWHERE;
}

int rl_tree_find(const struct rl_node *from, const char *path, bool follow,
		 struct rl_place *place)
{
	struct walk w = { .at = from, .rest = w.buf, .links = 0 };
	size_t len = strlen(path);
	int rv;

	rl_gate_once(&tree.once, make_tree);
	if (!len)
		return -ENOENT;
	if (len >= sizeof(w.buf))
		return -ENAMETOOLONG;
	memcpy(w.buf, path, len + 1);
	if (!from || path[0] == '/')
		w.at = &tree.root;
	rv = follow_name(&w, follow);
	if (rv == RL_ELSEWHERE)
		return name_elsewhere(&w, place);
	place->node = w.at;
	return rv;
}

/* Each path into the tree contains one of these names. */
bool rl_tree_may_have(const char *path)
{
	/* The kernel refuses an invalid pointer. */
	if ((uintptr_t)path < LOWEST_ADDRESS || path[0] != '/')
		return false;
	while (path[0] == '/' && path[1] == '/')
		path++;
	if (strncmp(path, "/sys/", 5) && strncmp(path, "/dev/", 5))
		return false;
	return strstr(path, "infiniband") || strstr(path, "/rdma_cm") || strstr(path, "/char/");
}

int rl_node_path(const struct rl_node *n, char *buf, size_t size)
{
	size_t len = strlen(n->name);
	int at;

	if (n->parent == n)
		return snprintf(buf, size, "/");
	at = rl_node_path(n->parent, buf, size);
	if (at < 0)
		return at;
	if (at == 1)
		at = 0;
	if (at + len + 2 > size)
		return -ENAMETOOLONG;
	buf[at] = '/';
	memcpy(buf + at + 1, n->name, len + 1);
	return at + 1 + len;
}

static nlink_t count_links(const struct rl_node *n)
{
	const struct rl_node *c;
	nlink_t links = S_ISDIR(n->mode) ? 2 : 1;

	for (c = n->child; c; c = c->next)
		links += S_ISDIR(c->mode);
	return links;
}

void rl_node_stat(const struct rl_node *n, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_dev = TREE_DEV;
	st->st_ino = n->ino;
	st->st_mode = n->mode;
	st->st_nlink = count_links(n);
	st->st_rdev = n->rdev;
	st->st_size = n->text ? strlen(n->text) : 0;
	st->st_blksize = 4096;
	st->st_atim = st->st_mtim = st->st_ctim = tree.made;
}
