// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Opened directories and files of the tree. Each descriptor is a memfd: a file's has the text,
 * sealed; a directory's is empty, so that calls without a hook fail with ENOTDIR.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "process/raw.h"
#include "tree.h"

struct tree_file {
	struct rl_file file;
	const struct rl_node *node;
};

static void tree_file_release(struct rl_file *f)
{
	free(container_of(f, struct tree_file, file));
}

static ssize_t read_dir(struct rl_file *f, int fd, void *buf, size_t len)
{
	return -EISDIR;
}

static const struct rl_file_ops dir_ops = {
	.read = read_dir,
	.release = tree_file_release,
	.mode = S_IFDIR | 0755,
};

static const struct rl_file_ops text_ops = {
	.release = tree_file_release,
	.mode = S_IFREG | 0444,
};

static int new_memfd(const struct rl_node *n, int flags)
{
	return rl_raw(SYS_memfd_create, n->name,
		      MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
}

/* Installs @fd as @n: @fd, or -errno and it is closed. */
static int install(int fd, const struct rl_node *n)
{
	struct tree_file *t;

	if (fd < 0)
		return fd;
	t = malloc(sizeof(*t));
	if (!t) {
		rl_raw(SYS_close, fd);
		return -ENOMEM;
	}
	rl_file_init(&t->file, S_ISDIR(n->mode) ? &dir_ops : &text_ops, 0);
	t->node = n;
	return rl_fd_install(fd, &t->file);
}

static bool wants_more_than_reading(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
}

int rl_node_open_text(const struct rl_node *n, int flags)
{
	const char *text = n->text;
	char live[RL_NODE_LIVE];
	size_t len;
	int fd;

	if (wants_more_than_reading(flags))
		return -EACCES;
	len = n->make ? n->make(n, live, sizeof(live)) : strlen(text);
	text = n->make ? live : text;
	fd = new_memfd(n, flags);
	if (fd < 0)
		return fd;
	if (rl_raw(SYS_pwrite64, fd, text, len, 0) != (long)len) {
		rl_raw(SYS_close, fd);
		return -ENOSPC;
	}
	rl_raw(SYS_fchmod, fd, 0444);
	rl_raw(SYS_fcntl, fd, F_ADD_SEALS,
	       F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return fd;
}

int rl_node_open(const struct rl_node *n, int flags, rl_device_opener *open_device)
{
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (S_ISDIR(n->mode))
		return wants_more_than_reading(flags) ? -EISDIR : install(new_memfd(n, flags), n);
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (S_ISLNK(n->mode))
		return -ELOOP;
	if (S_ISCHR(n->mode))
		return open_device(n->dev, flags);
	return install(rl_node_open_text(n, flags), n);
}

static const struct rl_node *node_of(const struct rl_file *f)
{
	if (f->ops != &dir_ops && f->ops != &text_ops)
		return NULL;
	return container_of(f, struct tree_file, file)->node;
}

const struct rl_node *rl_node_of_fd(int fd)
{
	struct rl_file *f = fd < 0 ? NULL : rl_call_begin(fd);
	const struct rl_node *n;

	if (!f)
		return NULL;
	n = node_of(f);
	rl_call_end(f);
	return n;
}
