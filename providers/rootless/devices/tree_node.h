/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Making the tree's nodes. In each function a directory of NULL had no memory, and nothing is
 * added; out of memory, an entry is missing. Once, by one thread.
 */
#ifndef RL_TREE_NODE_H
#define RL_TREE_NODE_H

#include "tree.h"

/* The entry of @dir with this name, of @len characters; NULL: there is none. */
struct rl_node *rl_node_find(const struct rl_node *dir, const char *name, size_t len);
struct rl_node *rl_node_add(struct rl_node *dir, const char *name, mode_t mode);
struct rl_node *rl_node_add_dir(struct rl_node *dir, const char *name);
/* A directory of the kernel's that has entries of ours: new, or the one that is there. */
struct rl_node *rl_node_add_real(struct rl_node *dir, const char *name);
/* Directories, one in the other; those that are there already stay as they are. */
struct rl_node *rl_node_add_path(struct rl_node *dir, const char *path, bool real);
/* A file, or a link. */
void rl_node_add_text(struct rl_node *dir, const char *name, mode_t mode, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A file whose text @make makes; it finds @d and @what in the node. */
void rl_node_add_live(struct rl_node *dir, const char *name, const struct rl_device *d,
		      rl_node_make *make, const char *what);

/* For makers: the length of what was printed to @size octets. */
size_t rl_node_print(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define rl_node_add_file(dir, name, ...) rl_node_add_text(dir, name, S_IFREG | 0444, __VA_ARGS__)
#define rl_node_add_link(dir, name, ...) rl_node_add_text(dir, name, S_IFLNK | 0777, __VA_ARGS__)

#endif
