// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that list directories. A DIR of the tree's is a struct rl_dir, which has all the
 * names from the start; its first eight octets tell it from libc's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "process/alias.h"
#include "process/hook.h"
#include "process/raw.h"
#include "devices/tree.h"

/* libc's DIR begins with a descriptor, which is never negative. */
#define SIGN 0xffffffff74726565ull

struct entry {
	struct entry *next;
	ino_t ino;
	unsigned char type;
	char name[];
};

struct rl_dir {
	u64 sign;
	int fd;
	const struct rl_node *node;
	struct entry *first;
	long at;			/* the entry that readdir gives next, from 0 */
	struct dirent out;
};

static struct rl_dir *ours(DIR *dir)
{
	struct rl_dir *d = (struct rl_dir *)dir;

	return d && d->sign == SIGN ? d : NULL;
}

/* There is no next function while dlsym() looks for one: rl_real_find(). */
static DIR *opendir_elsewhere(const char *path)
{
	__typeof__(&opendir) real = RL_REAL(opendir);

	if (real)
		return real(path);
	errno = ENOSYS;
	return NULL;
}

/* ---- making one ---- */

static bool add_entry(struct rl_dir *d, const char *name, ino_t ino, unsigned char type)
{
	struct entry *e = malloc(sizeof(*e) + strlen(name) + 1), **at;

	if (!e || strlen(name) >= sizeof(d->out.d_name)) {
		free(e);
		return false;
	}
	e->next = NULL;
	e->ino = ino;
	e->type = type;
	strcpy(e->name, name);
	for (at = &d->first; *at; at = &(*at)->next)
		;
	*at = e;
	return true;
}

static bool has_entry(const struct rl_dir *d, const char *name)
{
	const struct entry *e;

	for (e = d->first; e; e = e->next)
		if (!strcmp(e->name, name))
			return true;
	return false;
}

static bool list_tree(struct rl_dir *d)
{
	const struct rl_node *n = d->node, *c;
	bool done = add_entry(d, ".", n->ino, DT_DIR) && add_entry(d, "..", n->parent->ino, DT_DIR);

	for (c = n->child; done && c; c = c->next)
		if (c->mode)
			done = add_entry(d, c->name, c->ino, IFTODT(c->mode));
	return done;
}

/* What the kernel has in the same place; often there is no such directory. */
static bool list_kernel(struct rl_dir *d)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool done = true;
	DIR *dir;

	if (!d->node->merged || rl_node_path(d->node, path, sizeof(path)) < 0)
		return true;
	dir = opendir_elsewhere(path);
	if (!dir)
		return true;
	while (done && (e = RL_REAL(readdir)(dir)))
		if (!has_entry(d, e->d_name))
			done = add_entry(d, e->d_name, e->d_ino, e->d_type);
	RL_REAL(closedir)(dir);
	return done;
}

static void free_dir(struct rl_dir *d)
{
	struct entry *e;

	while ((e = d->first)) {
		d->first = e->next;
		free(e);
	}
	d->sign = 0;
	free(d);
}

/* @fd, which names @n, is the result's; it stays open if there is none. */
static DIR *new_dir(int fd, const struct rl_node *n)
{
	struct rl_dir *d = calloc(1, sizeof(*d));
	int saved = errno;

	if (!d)
		return NULL;
	d->sign = SIGN;
	d->fd = fd;
	d->node = n;
	if (list_tree(d) && list_kernel(d)) {
		errno = saved;
		return (DIR *)d;
	}
	free_dir(d);
	errno = ENOMEM;
	return NULL;
}

static void close_fd(int fd)
{
	rl_fd_forget(fd);
	rl_raw(SYS_close, fd);
}

static DIR *open_node(const struct rl_node *n)
{
	int fd = rl_node_open(n, O_RDONLY | O_DIRECTORY | O_CLOEXEC, NULL);
	DIR *dir;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	dir = new_dir(fd, n);
	if (!dir)
		close_fd(fd);
	return dir;
}

/* ---- opendir and its kin ---- */

RL_HOOK DIR *opendir(const char *path)
{
	struct rl_place place;
	int rv;

	if (!rl_tree_may_have(path))
		return opendir_elsewhere(path);
	rv = rl_tree_find(NULL, path, true, &place);
	if (rv == RL_ELSEWHERE)
		return opendir_elsewhere(place.real);
	if (!rv)
		return open_node(place.node);
	errno = -rv;
	return NULL;
}

RL_HOOK DIR *fdopendir(int fd)
{
	const struct rl_node *n = rl_node_of_fd(fd);

	if (!n)
		return RL_REAL(fdopendir)(fd);
	if (S_ISDIR(n->mode))
		return new_dir(fd, n);
	errno = ENOTDIR;
	return NULL;
}

RL_HOOK int closedir(DIR *dir)
{
	struct rl_dir *d = ours(dir);

	if (!d)
		return RL_REAL(closedir)(dir);
	close_fd(d->fd);
	free_dir(d);
	return 0;
}

RL_HOOK int dirfd(DIR *dir)
{
	struct rl_dir *d = ours(dir);

	return d ? d->fd : RL_REAL(dirfd)(dir);
}

/* ---- reading ---- */

static bool read_entry(struct rl_dir *d, struct dirent *out)
{
	const struct entry *e = d->first;
	long i;

	for (i = 0; e && i < d->at; i++)
		e = e->next;
	if (!e)
		return false;
	memset(out, 0, sizeof(*out));
	out->d_ino = e->ino;
	out->d_off = ++d->at;
	out->d_reclen = sizeof(*out);
	out->d_type = e->type;
	strcpy(out->d_name, e->name);
	return true;
}

RL_HOOK struct dirent *readdir(DIR *dir)
{
	struct rl_dir *d = ours(dir);

	if (!d)
		return RL_REAL(readdir)(dir);
	return read_entry(d, &d->out) ? &d->out : NULL;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"	/* programs call them yet */

RL_HOOK int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
	struct rl_dir *d = ours(dir);

	if (!d)
		return RL_REAL(readdir_r)(dir, entry, result);
	*result = read_entry(d, entry) ? entry : NULL;
	return 0;
}

#pragma GCC diagnostic pop

RL_HOOK void rewinddir(DIR *dir)
{
	struct rl_dir *d = ours(dir);

	if (d)
		d->at = 0;
	else
		RL_REAL(rewinddir)(dir);
}

RL_HOOK long telldir(DIR *dir)
{
	struct rl_dir *d = ours(dir);

	return d ? d->at : RL_REAL(telldir)(dir);
}

RL_HOOK void seekdir(DIR *dir, long at)
{
	struct rl_dir *d = ours(dir);

	if (d)
		d->at = at;
	else
		RL_REAL(seekdir)(dir, at);
}

/* ---- scandir: libc's calls its own opendir ---- */

typedef int select_fn(const struct dirent *);
typedef int compare_fn(const struct dirent **, const struct dirent **);

static void free_list(struct dirent **list, int n)
{
	while (n > 0)
		free(list[--n]);
	free(list);
}

static bool append(struct dirent ***list, int n, const struct dirent *e)
{
	struct dirent **longer = realloc(*list, (n + 1) * sizeof(*longer));

	if (!longer)
		return false;
	*list = longer;
	longer[n] = malloc(sizeof(*e));
	if (longer[n])
		*longer[n] = *e;
	return longer[n];
}

/* @list, of @n, has those that @select takes, or NULL takes all: 0, or -ENOMEM. */
static int select_entries(struct rl_dir *d, struct dirent ***list, int *n, select_fn *select)
{
	for (*list = NULL, *n = 0; read_entry(d, &d->out);) {
		if (select && !select(&d->out))
			continue;
		if (!append(list, *n, &d->out))
			return -ENOMEM;
		++*n;
	}
	return 0;
}

static int scan_ours(const char *path, struct dirent ***list, select_fn *select,
		     compare_fn *compare)
{
	DIR *dir = opendir(path);
	int n, rv;

	if (!dir)
		return -1;
	rv = select_entries((struct rl_dir *)dir, list, &n, select);
	closedir(dir);
	if (rv) {
		free_list(*list, n);
		errno = -rv;
		return -1;
	}
	if (compare && n)
		qsort(*list, n, sizeof(**list), (int (*)(const void *, const void *))compare);
	return n;
}

RL_HOOK int scandir(const char *path, struct dirent ***list, select_fn *select,
		    compare_fn *compare)
{
	struct rl_place place;

	if (!rl_tree_may_have(path))
		return RL_REAL(scandir)(path, list, select, compare);
	if (rl_tree_find(NULL, path, true, &place) == RL_ELSEWHERE)
		return RL_REAL(scandir)(place.real, list, select, compare);
	return scan_ours(path, list, select, compare);
}

/* ---- glob: libc's calls its own, too, but can be given others ---- */

static void close_for_glob(void *dir)
{
	closedir(dir);
}

RL_HOOK int glob(const char *pattern, int flags, int (*fail)(const char *, int), glob_t *g)
{
	if (flags & GLOB_ALTDIRFUNC || !rl_tree_may_have(pattern))
		return RL_REAL(glob)(pattern, flags, fail, g);
	g->gl_opendir = (void *(*)(const char *))opendir;
	g->gl_readdir = (struct dirent *(*)(void *))readdir;
	g->gl_closedir = close_for_glob;
	g->gl_stat = stat;
	g->gl_lstat = lstat;
	return RL_REAL(glob)(pattern, flags | GLOB_ALTDIRFUNC, fail, g);
}

/* ---- the names of large files ---- */

static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "the same");
static_assert(sizeof(glob_t) == sizeof(glob64_t), "the same");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"	/* struct dirent64, glob64_t */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

RL_ALIAS(readdir, readdir64);
RL_ALIAS(readdir_r, readdir64_r);
RL_ALIAS(scandir, scandir64);
RL_ALIAS(glob, glob64);

#pragma GCC diagnostic pop
