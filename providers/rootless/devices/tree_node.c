// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tree_node.h"

static ino_t last_ino = 1;		/* the root's */

struct rl_node *rl_node_find(const struct rl_node *dir, const char *name, size_t len)
{
	struct rl_node *n;

	for (n = dir->child; n; n = n->next)
		if (!strncmp(n->name, name, len) && !n->name[len])
			return n;
	return NULL;
}

struct rl_node *rl_node_add(struct rl_node *dir, const char *name, mode_t mode)
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
	n->ino = ++last_ino;
	for (at = &dir->child; *at; at = &(*at)->next)
		;
	*at = n;
	return n;
}

struct rl_node *rl_node_add_dir(struct rl_node *dir, const char *name)
{
	return rl_node_add(dir, name, S_IFDIR | 0755);
}

struct rl_node *rl_node_add_real(struct rl_node *dir, const char *name)
{
	struct rl_node *n = dir ? rl_node_find(dir, name, strlen(name)) : NULL;

	if (n)
		return n;
	n = rl_node_add_dir(dir, name);
	if (n)
		n->real = n->merged = true;
	return n;
}

struct rl_node *rl_node_add_path(struct rl_node *dir, const char *path, bool real)
{
	char name[NAME_MAX + 1];
	struct rl_node *n;
	size_t len;

	for (; dir && *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		n = rl_node_find(dir, name, len);
		dir = n ? n : real ? rl_node_add_real(dir, name) : rl_node_add_dir(dir, name);
	}
	return dir;
}

void rl_node_add_text(struct rl_node *dir, const char *name, mode_t mode, const char *fmt, ...)
{
	struct rl_node *n;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	n = text ? rl_node_add(dir, name, mode) : NULL;
	if (n)
		n->text = text;
	else
		free(text);
}

size_t rl_node_print(char *text, size_t size, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, size, fmt, ap);
	va_end(ap);
	return len < 0 ? 0 : min_t(size_t, (size_t)len, size - 1);
}

void rl_node_add_live(struct rl_node *dir, const char *name, const struct rl_device *d,
		      rl_node_make *make, const char *what)
{
	struct rl_node *n = rl_node_add(dir, name, S_IFREG | 0444);

	if (!n)
		return;
	n->dev = d;
	n->make = make;
	n->text = what;
}
