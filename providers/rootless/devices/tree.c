// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tree: its nodes, and following names in it. devices/tree_fill.c has its contents.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "process/gate.h"
#include "tree_fill.h"
#include "tree_node.h"

#define MAX_LINKS	8
#define LOWEST_ADDRESS	4096
/* Of no other file system: the kernel numbers its own from 1. */
#define TREE_DEV	makedev(0, 0xfffff)

static struct {
	pthread_once_t once;
	struct rl_node root;
	struct timespec made;
} tree = {
	.once = PTHREAD_ONCE_INIT,
	.root = {
		.name = "", .parent = &tree.root, .mode = S_IFDIR | 0755,
		.real = true, .merged = true, .ino = 1,
	},
};

static void make_tree(void)
{
	clock_gettime(CLOCK_REALTIME, &tree.made);
	rl_tree_fill(&tree.root);
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
	const struct rl_node *dir = w->at, *child;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	child = rl_node_find(dir, w->rest, len);
	if (len == 1 && w->rest[0] == '.')
		child = dir;
	else if (len == 2 && !memcmp(w->rest, "..", 2))
		child = dir->parent;
	if (!child)
		return dir->merged ? RL_ELSEWHERE : -ENOENT;
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

/* Does the path lead to, or over, functions of PCI? */
static bool is_of_pci(const char *path)
{
	return !strncmp(path, "/sys/devices/pci", 16) || !strncmp(path, "/sys/bus/pci/devices", 20);
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
	return strstr(path, "infiniband") || strstr(path, "/rdma_cm") || strstr(path, "/char/") ||
	       is_of_pci(path);
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
	st->st_size = n->make ? RL_NODE_LIVE : n->text ? strlen(n->text) : 0;
	st->st_blksize = 4096;
	st->st_atim = st->st_mtim = st->st_ctim = tree.made;
}
