/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The devices' entries in /sys and /dev: a tree of names in memory, which hooks/path.c and
 * hooks/dir.c show to the program.
 *
 * The tree is made on first use, and is then constant. Any thread, no lock.
 */
#ifndef RL_TREE_H
#define RL_TREE_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "device.h"
#include "process/file.h"

struct rl_node;

/* What sysfs reports as the size of a file whose text is made when it is opened. */
#define RL_NODE_LIVE 4096
/* The octets of @n as they are now, at most @size of them: how many. */
typedef size_t rl_node_make(const struct rl_node *n, char *text, size_t size);

struct rl_node {
	const char *name;
	const struct rl_node *parent;	/* the root's is the root */
	struct rl_node *child, *next;	/* the first child; the next of the same parent */
	mode_t mode;			/* st_mode; 0: hides the kernel's entry */
	bool real;			/* a kernel directory with entries of ours below */
	bool merged;			/* the kernel's entries count, too, after ours */
	const char *text;		/* a file's text, or a link's target */
	rl_node_make *make;		/* NULL: text is constant; else it is for this function */
	const struct rl_device *dev;	/* of a character device; NULL: rdma_cm's */
	dev_t rdev;
	ino_t ino;
};

/* The target of a name. */
struct rl_place {
	const struct rl_node *node;
	char real[PATH_MAX];		/* if outside the tree: the kernel's name for it */
};

#define RL_ELSEWHERE 1

/*
 * Can @path lead into the tree, from the root? Quick, and does not make the tree. False for NULL.
 */
bool rl_tree_may_have(const char *path);

/*
 * Follows @path from directory @from, or from the root (NULL, or @path is absolute); @follow: also
 * a link at its end. 0 and place->node, or RL_ELSEWHERE and place->real (place->node is then the
 * directory of that name, if it has entries of ours below it, or NULL), or -errno.
 */
int rl_tree_find(const struct rl_node *from, const char *path, bool follow,
		 struct rl_place *place);

/* The absolute name of @n: its length, or -ENAMETOOLONG. */
int rl_node_path(const struct rl_node *n, char *buf, size_t size);
void rl_node_stat(const struct rl_node *n, struct stat *st);

/* ---- devices/tree_file.c ---- */

/* Opens the character device of @d; NULL: of rdma_cm. */
typedef int rl_device_opener(const struct rl_device *d, int flags);

/*
 * Opens @n, with @flags as of open(): an installed descriptor, or -errno. @open_device may be NULL
 * if @flags has O_DIRECTORY.
 */
int rl_node_open(const struct rl_node *n, int flags, rl_device_opener *open_device);
/* A descriptor, not installed, with the text of file @n; or -errno. */
int rl_node_open_text(const struct rl_node *n, int flags);
/* The node that @fd was opened as; NULL: no directory or file of the tree. */
const struct rl_node *rl_node_of_fd(int fd);

#endif
