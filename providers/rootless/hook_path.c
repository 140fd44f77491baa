// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that name a file. One that cannot lead into the tree goes straight to the next
 * function; one that leads out of it again (by "..", or to hardware) goes to the kernel, by the
 * name it has there. The working directory is never inside the tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "next.h"
#include "raw.h"
#include "tree.h"

static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout serves both");

/* Not declared without _FORTIFY_SOURCE, or at all. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t len, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
int __xstat(int ver, const char *path, struct stat *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags);
int __xstat64(int ver, const char *path, struct stat64 *st);
int __lxstat64(int ver, const char *path, struct stat64 *st);
int __fxstatat64(int ver, int dir, const char *path, struct stat64 *st, int flags);

/* ---- which names are the tree's ---- */

static bool is_ours(int dir, const char *path)
{
	if (dir != AT_FDCWD && path && path[0] != '/')
		return rl_node_of_fd(dir);
	return rl_tree_may_have(path);
}

static int find(int dir, const char *path, bool follow, struct rl_place *place)
{
	return rl_tree_find(path[0] == '/' ? NULL : rl_node_of_fd(dir), path, follow, place);
}

static long fail(long rv)
{
	if (rv >= 0)
		return rv;
	errno = -rv;
	return -1;
}

/* ---- open ---- */

static long open_ours(int dir, const char *path, int flags, mode_t mode)
{
	bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	struct rl_place place;
	int rv = find(dir, path, !(flags & O_NOFOLLOW), &place);

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_openat, AT_FDCWD, place.real, flags, mode);
	if (rv == -ENOENT && creates)
		return -EACCES;
	return rv ? rv : rl_node_open(place.node, flags);
}

/* The third argument, if there is one. */
#define MODE_OF(flags) ({ \
	mode_t mode_ = 0; \
	va_list ap_; \
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
		va_start(ap_, flags); \
		mode_ = va_arg(ap_, mode_t); \
		va_end(ap_); \
	} \
	mode_; })

RL_EXPORT int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, flags, mode));
	return RL_NEXT(open)(path, flags, mode);
}

RL_EXPORT int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, flags, mode));
	return RL_NEXT(open64)(path, flags, mode);
}

RL_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(dir, path))
		return fail(open_ours(dir, path, flags, mode));
	return RL_NEXT(openat)(dir, path, flags, mode);
}

RL_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(dir, path))
		return fail(open_ours(dir, path, flags, mode));
	return RL_NEXT(openat64)(dir, path, flags, mode);
}

/* What a compiler with _FORTIFY_SOURCE makes of a call without a mode. */
RL_EXPORT int __open_2(const char *path, int flags)
{
	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, flags, 0));
	return RL_NEXT(__open_2)(path, flags);
}

RL_EXPORT int __open64_2(const char *path, int flags)
{
	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, flags, 0));
	return RL_NEXT(__open64_2)(path, flags);
}

RL_EXPORT int __openat_2(int dir, const char *path, int flags)
{
	if (is_ours(dir, path))
		return fail(open_ours(dir, path, flags, 0));
	return RL_NEXT(__openat_2)(dir, path, flags);
}

RL_EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	if (is_ours(dir, path))
		return fail(open_ours(dir, path, flags, 0));
	return RL_NEXT(__openat64_2)(dir, path, flags);
}

RL_EXPORT int creat(const char *path, mode_t mode)
{
	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
	return RL_NEXT(creat)(path, mode);
}

RL_EXPORT int creat64(const char *path, mode_t mode)
{
	if (is_ours(AT_FDCWD, path))
		return fail(open_ours(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
	return RL_NEXT(creat64)(path, mode);
}

/* ---- streams ---- */

static int flags_of_mode(const char *mode)
{
	int flags = mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;

	flags |= strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
	if (strchr(mode, 'e'))
		flags |= O_CLOEXEC;
	return flags;
}

/*
 * libc closes a stream's descriptor itself, which no hook sees: a file of the tree is not
 * installed for one.
 */
static int open_for_stream(const char *path, int flags)
{
	struct rl_place place;

	if (find(AT_FDCWD, path, true, &place) || !S_ISREG(place.node->mode))
		return open_ours(AT_FDCWD, path, flags, 0666);
	return rl_node_open_text(place.node, flags);
}

static FILE *fopen_ours(const char *path, const char *mode)
{
	int fd = fail(open_for_stream(path, flags_of_mode(mode)));
	FILE *f = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

RL_EXPORT FILE *fopen(const char *path, const char *mode)
{
	if (is_ours(AT_FDCWD, path))
		return fopen_ours(path, mode);
	return RL_NEXT(fopen)(path, mode);
}

RL_EXPORT FILE *fopen64(const char *path, const char *mode)
{
	if (is_ours(AT_FDCWD, path))
		return fopen_ours(path, mode);
	return RL_NEXT(fopen64)(path, mode);
}

/* ---- access: everybody may read all, and write the devices ---- */

static int access_node(const struct rl_node *n, int mode)
{
	if (mode & W_OK && !S_ISCHR(n->mode))
		return -EACCES;
	return mode & X_OK && !S_ISDIR(n->mode) ? -EACCES : 0;
}

static long access_ours(int dir, const char *path, int mode, int flags)
{
	struct rl_place place;
	int rv = find(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_faccessat, AT_FDCWD, place.real, mode);
	return rv ? rv : access_node(place.node, mode);
}

RL_EXPORT int access(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return fail(access_ours(AT_FDCWD, path, mode, 0));
	return RL_NEXT(access)(path, mode);
}

RL_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	if (is_ours(dir, path))
		return fail(access_ours(dir, path, mode, flags));
	return RL_NEXT(faccessat)(dir, path, mode, flags);
}

RL_EXPORT int euidaccess(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return fail(access_ours(AT_FDCWD, path, mode, AT_EACCESS));
	return RL_NEXT(euidaccess)(path, mode);
}

RL_EXPORT int eaccess(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return fail(access_ours(AT_FDCWD, path, mode, AT_EACCESS));
	return RL_NEXT(eaccess)(path, mode);
}

/* ---- stat ---- */

static long stat_ours(int dir, const char *path, int flags, struct stat *st)
{
	struct rl_place place;
	int rv = find(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_newfstatat, AT_FDCWD, place.real, st, flags & AT_SYMLINK_NOFOLLOW);
	if (!rv)
		rl_node_stat(place.node, st);
	return rv;
}

/* Is it the descriptor itself that is asked for, and is that one of ours? fstat knows it. */
static bool is_own_fd(int dir, const char *path, int flags)
{
	struct rl_file *f;

	if (!(flags & AT_EMPTY_PATH) || dir < 0 || (path && path[0]))
		return false;
	f = rl_fd_get(dir);
	if (f)
		rl_file_put(f);
	return f;
}

RL_EXPORT int stat(const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, 0, st));
	return RL_NEXT(stat)(path, st);
}

RL_EXPORT int stat64(const char *path, struct stat64 *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, 0, (struct stat *)st));
	return RL_NEXT(stat64)(path, st);
}

RL_EXPORT int lstat(const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st));
	return RL_NEXT(lstat)(path, st);
}

RL_EXPORT int lstat64(const char *path, struct stat64 *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, (struct stat *)st));
	return RL_NEXT(lstat64)(path, st);
}

RL_EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, st);
	if (is_ours(dir, path))
		return fail(stat_ours(dir, path, flags, st));
	return RL_NEXT(fstatat)(dir, path, st, flags);
}

RL_EXPORT int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, (struct stat *)st);
	if (is_ours(dir, path))
		return fail(stat_ours(dir, path, flags, (struct stat *)st));
	return RL_NEXT(fstatat64)(dir, path, st, flags);
}

/* ---- the same, as programs call it that were built before glibc 2.33 ---- */

RL_EXPORT int __xstat(int ver, const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, 0, st));
	return RL_NEXT(__xstat)(ver, path, st);
}

RL_EXPORT int __xstat64(int ver, const char *path, struct stat64 *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, 0, (struct stat *)st));
	return RL_NEXT(__xstat64)(ver, path, st);
}

RL_EXPORT int __lxstat(int ver, const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st));
	return RL_NEXT(__lxstat)(ver, path, st);
}

RL_EXPORT int __lxstat64(int ver, const char *path, struct stat64 *st)
{
	if (is_ours(AT_FDCWD, path))
		return fail(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, (struct stat *)st));
	return RL_NEXT(__lxstat64)(ver, path, st);
}

RL_EXPORT int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, st);
	if (is_ours(dir, path))
		return fail(stat_ours(dir, path, flags, st));
	return RL_NEXT(__fxstatat)(ver, dir, path, st, flags);
}

RL_EXPORT int __fxstatat64(int ver, int dir, const char *path, struct stat64 *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, (struct stat *)st);
	if (is_ours(dir, path))
		return fail(stat_ours(dir, path, flags, (struct stat *)st));
	return RL_NEXT(__fxstatat64)(ver, dir, path, st, flags);
}

/* ---- statx ---- */

static void set_time(struct statx_timestamp *to, struct timespec t)
{
	to->tv_sec = t.tv_sec;
	to->tv_nsec = t.tv_nsec;
}

static void statx_of_stat(struct statx *x, const struct stat *st)
{
	memset(x, 0, sizeof(*x));
	x->stx_mask = STATX_BASIC_STATS;
	x->stx_blksize = st->st_blksize;
	x->stx_nlink = st->st_nlink;
	x->stx_uid = st->st_uid;
	x->stx_gid = st->st_gid;
	x->stx_mode = st->st_mode;
	x->stx_ino = st->st_ino;
	x->stx_size = st->st_size;
	x->stx_blocks = st->st_blocks;
	set_time(&x->stx_atime, st->st_atim);
	set_time(&x->stx_mtime, st->st_mtim);
	set_time(&x->stx_ctime, st->st_ctim);
	x->stx_rdev_major = major(st->st_rdev);
	x->stx_rdev_minor = minor(st->st_rdev);
	x->stx_dev_major = major(st->st_dev);
	x->stx_dev_minor = minor(st->st_dev);
}

RL_EXPORT int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *x)
{
	struct stat st;
	int rv;

	if (is_own_fd(dir, path, flags))
		rv = fstat(dir, &st);
	else if (is_ours(dir, path))
		rv = fail(stat_ours(dir, path, flags, &st));
	else
		return RL_NEXT(statx)(dir, path, flags, mask, x);
	if (!rv)
		statx_of_stat(x, &st);
	return rv;
}

/* ---- links ---- */

static long readlink_ours(int dir, const char *path, char *buf, size_t len)
{
	struct rl_place place;
	int rv = find(dir, path, false, &place);
	size_t n;

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_readlinkat, AT_FDCWD, place.real, buf, len);
	if (rv)
		return rv;
	if (!S_ISLNK(place.node->mode) || !len)
		return -EINVAL;
	n = strlen(place.node->text);
	n = n < len ? n : len;
	memcpy(buf, place.node->text, n);
	return n;
}

RL_EXPORT ssize_t readlink(const char *path, char *buf, size_t len)
{
	if (is_ours(AT_FDCWD, path))
		return fail(readlink_ours(AT_FDCWD, path, buf, len));
	return RL_NEXT(readlink)(path, buf, len);
}

RL_EXPORT ssize_t readlinkat(int dir, const char *path, char *buf, size_t len)
{
	if (is_ours(dir, path))
		return fail(readlink_ours(dir, path, buf, len));
	return RL_NEXT(readlinkat)(dir, path, buf, len);
}

RL_EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room)
{
	if (len <= room && is_ours(AT_FDCWD, path))
		return fail(readlink_ours(AT_FDCWD, path, buf, len));
	return RL_NEXT(__readlink_chk)(path, buf, len, room);
}

RL_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t len, size_t room)
{
	if (len <= room && is_ours(dir, path))
		return fail(readlink_ours(dir, path, buf, len));
	return RL_NEXT(__readlinkat_chk)(dir, path, buf, len, room);
}

static char *realpath_ours(const char *path, char *resolved)
{
	struct rl_place place;
	int rv = find(AT_FDCWD, path, true, &place);

	if (rv == RL_ELSEWHERE)
		return RL_NEXT(realpath)(place.real, resolved);
	if (!rv)
		rv = rl_node_path(place.node, place.real, sizeof(place.real));
	if (fail(rv) < 0)
		return NULL;
	return resolved ? strcpy(resolved, place.real) : strdup(place.real);
}

RL_EXPORT char *realpath(const char *path, char *resolved)
{
	if (is_ours(AT_FDCWD, path))
		return realpath_ours(path, resolved);
	return RL_NEXT(realpath)(path, resolved);
}

RL_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room >= PATH_MAX && is_ours(AT_FDCWD, path))
		return realpath_ours(path, resolved);
	return RL_NEXT(__realpath_chk)(path, resolved, room);
}

RL_EXPORT char *canonicalize_file_name(const char *path)
{
	if (is_ours(AT_FDCWD, path))
		return realpath_ours(path, NULL);
	return RL_NEXT(canonicalize_file_name)(path);
}

/* ---- extended attributes: none; ls asks for them ---- */

static long no_xattr(const char *path, bool follow, long none)
{
	struct rl_place place;
	int rv = find(AT_FDCWD, path, follow, &place);

	return rv < 0 ? rv : none;
}

RL_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return fail(no_xattr(path, true, -ENOTSUP));
	return RL_NEXT(getxattr)(path, name, value, size);
}

RL_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return fail(no_xattr(path, false, -ENOTSUP));
	return RL_NEXT(lgetxattr)(path, name, value, size);
}

RL_EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return fail(no_xattr(path, true, 0));
	return RL_NEXT(listxattr)(path, list, size);
}

RL_EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return fail(no_xattr(path, false, 0));
	return RL_NEXT(llistxattr)(path, list, size);
}
