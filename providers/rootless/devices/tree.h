/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What stands in /sys and /dev for the devices: a tree of names in memory. Nothing of it is on
 * disk; hooks/path.c and hooks/dir.c show it to the program.
 *
 * The tree is made when it is first asked for, and constant then. Any thread, no lock.
 */
#ifndef RL_TREE_H
#define RL_TREE_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "device.h"
#include "process/file.h"

struct rl_node {
	const char *name;
	const struct rl_node *parent;	/* the root's is the root */
	struct rl_node *child, *next;	/* the first child; the next of the same parent */
	mode_t mode;			/* as stat's; 0: nothing is here, whatever is really there */
	bool real;			/* a directory of the kernel's that has ours below it */
	bool merged;			/* the kernel's names count, too, behind ours */
	const char *text;		/* a file's, or where a link leads */
	const struct rl_device *dev;	/* a character device: whose; NULL: rdma_cm's */
	dev_t rdev;
	ino_t ino;
};

/* Where a name leads. */
struct rl_place {
	const struct rl_node *node;
	char real[PATH_MAX];		/* if it leads elsewhere: the kernel's name for it */
};

#define RL_ELSEWHERE 1

/* Can @path lead into the tree, from the root? Quick, and makes nothing. NULL cannot. */
bool rl_tree_may_have(const char *path);

/*
 * Follows @path from directory @from, or from the root (NULL, or @path is absolute); @follow: a
 * link at its end, too. 0 and place->node, or RL_ELSEWHERE and place->real (place->node is then
 * the directory of that name, if it has ours below it, or NULL), or -errno.
 */
int rl_tree_find(const struct rl_node *from, const char *path, bool follow,
		 struct rl_place *place);

/* The absolute name of @n: its length, or -ENAMETOOLONG. */
int rl_node_path(const struct rl_node *n, char *buf, size_t size);
void rl_node_stat(const struct rl_node *n, struct stat *st);

/* ---- devices/tree_file.c ---- */

/* Opens the character device of @d; of NULL: rdma_cm's. */
typedef int rl_device_opener(const struct rl_device *d, int flags);

/*
 * Opens @n, with @flags as of open(): an installed descriptor, or -errno. @open_device may be NULL if
 * @flags has O_DIRECTORY.
 */
int rl_node_open(const struct rl_node *n, int flags, rl_device_opener *open_device);
/* The text of file @n in a descriptor that is not installed, or -errno. */
int rl_node_open_text(const struct rl_node *n, int flags);
/* What @fd was opened as; NULL: it is no directory and no file of the tree. */
const struct rl_node *rl_node_of_fd(int fd);

#endif
