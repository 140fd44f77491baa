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

#include "process/alias.h"
#include "process/hook.h"
#include "hooks.h"
#include "cm/ucm.h"
#include "process/raw.h"
#include "devices/tree.h"
#include "uverbs/uverbs.h"

/* Not declared without _FORTIFY_SOURCE, or at all. */
int __open_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t len, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);
int __xstat(int ver, const char *path, struct stat *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags);
__typeof__(__open_2) __open64_2;
__typeof__(__openat_2) __openat64_2;
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

/* ---- the way on ---- */

/* The next function's result, or @instead where there is none: rl_real_find() tells when. */
#define PASS(f, instead, ...) ({ \
	__typeof__(&f) real_ = RL_REAL(f); \
	real_ ? real_(__VA_ARGS__) : (instead); })

static int raw_open(int dir, const char *path, int flags, mode_t mode)
{
	return syscall(SYS_openat, dir, path, flags, mode);
}

static int raw_access(int dir, const char *path, int mode)
{
	return syscall(SYS_faccessat, dir, path, mode);
}

static int raw_stat(int dir, const char *path, struct stat *st, int flags)
{
	return syscall(SYS_newfstatat, dir, path, st, flags);
}

static ssize_t raw_readlink(int dir, const char *path, char *buf, size_t len)
{
	return syscall(SYS_readlinkat, dir, path, buf, len);
}

static void *no_function(void)
{
	errno = ENOSYS;
	return NULL;
}

/* ---- open ---- */

#define CREAT_FLAGS (O_CREAT | O_WRONLY | O_TRUNC)

static int open_device(const struct rl_device *d, int flags)
{
	return d ? rl_uverbs_open(d, flags) : rl_ucm_open(flags);
}

static long open_ours(int dir, const char *path, int flags, mode_t mode)
{
	bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	struct rl_place place;
	int rv = find(dir, path, !(flags & O_NOFOLLOW), &place);

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_openat, AT_FDCWD, place.real, flags, mode);
	if (rv == -ENOENT && creates)
		return -EACCES;
	return rv ? rv : rl_node_open(place.node, flags, open_device);
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

RL_HOOK int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(open_ours(AT_FDCWD, path, flags, mode));
	return PASS(open, raw_open(AT_FDCWD, path, flags, mode), path, flags, mode);
}

RL_HOOK int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (is_ours(dir, path))
		return rl_hook_result(open_ours(dir, path, flags, mode));
	return PASS(openat, raw_open(dir, path, flags, mode), dir, path, flags, mode);
}

/* What a compiler with _FORTIFY_SOURCE makes of a call without a mode. */
RL_HOOK int __open_2(const char *path, int flags)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(open_ours(AT_FDCWD, path, flags, 0));
	return PASS(__open_2, raw_open(AT_FDCWD, path, flags, 0), path, flags);
}

RL_HOOK int __openat_2(int dir, const char *path, int flags)
{
	if (is_ours(dir, path))
		return rl_hook_result(open_ours(dir, path, flags, 0));
	return PASS(__openat_2, raw_open(dir, path, flags, 0), dir, path, flags);
}

RL_HOOK int creat(const char *path, mode_t mode)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(open_ours(AT_FDCWD, path, CREAT_FLAGS, mode));
	return PASS(creat, raw_open(AT_FDCWD, path, CREAT_FLAGS, mode), path, mode);
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
	int fd = rl_hook_result(open_for_stream(path, flags_of_mode(mode)));
	FILE *f = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

RL_HOOK FILE *fopen(const char *path, const char *mode)
{
	if (is_ours(AT_FDCWD, path))
		return fopen_ours(path, mode);
	return PASS(fopen, no_function(), path, mode);
}

/* libc closes the descriptor itself, and the next file may get its number. */
RL_HOOK int fclose(FILE *f)
{
	rl_fd_forget(fileno_unlocked(f));
	return PASS(fclose, (errno = ENOSYS, EOF), f);
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

RL_HOOK int access(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(access_ours(AT_FDCWD, path, mode, 0));
	return PASS(access, raw_access(AT_FDCWD, path, mode), path, mode);
}

RL_HOOK int faccessat(int dir, const char *path, int mode, int flags)
{
	if (is_ours(dir, path))
		return rl_hook_result(access_ours(dir, path, mode, flags));
	return PASS(faccessat, raw_access(dir, path, mode), dir, path, mode, flags);
}

RL_HOOK int euidaccess(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(access_ours(AT_FDCWD, path, mode, AT_EACCESS));
	return PASS(euidaccess, raw_access(AT_FDCWD, path, mode), path, mode);
}

RL_HOOK int eaccess(const char *path, int mode)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(access_ours(AT_FDCWD, path, mode, AT_EACCESS));
	return PASS(eaccess, raw_access(AT_FDCWD, path, mode), path, mode);
}

/* ---- stat ---- */

static long stat_ours(int dir, const char *path, int flags, struct stat *st)
{
	struct rl_place place;
	int rv = find(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);

	if (rv == RL_ELSEWHERE)
		return rl_raw(SYS_newfstatat, AT_FDCWD, place.real, st,
			      flags & AT_SYMLINK_NOFOLLOW);
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
	f = rl_call_begin(dir);
	if (f)
		rl_call_end(f);
	return f;
}

RL_HOOK int stat(const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(stat_ours(AT_FDCWD, path, 0, st));
	return PASS(stat, raw_stat(AT_FDCWD, path, st, 0), path, st);
}

RL_HOOK int lstat(const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st));
	return PASS(lstat, raw_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW), path, st);
}

RL_HOOK int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, st);
	if (is_ours(dir, path))
		return rl_hook_result(stat_ours(dir, path, flags, st));
	return PASS(fstatat, raw_stat(dir, path, st, flags), dir, path, st, flags);
}

/* ---- the same, as programs call it that were built before glibc 2.33 ---- */

RL_HOOK int __xstat(int ver, const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(stat_ours(AT_FDCWD, path, 0, st));
	return PASS(__xstat, raw_stat(AT_FDCWD, path, st, 0), ver, path, st);
}

RL_HOOK int __lxstat(int ver, const char *path, struct stat *st)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(stat_ours(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, st));
	return PASS(__lxstat, raw_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW), ver, path, st);
}

RL_HOOK int __fxstatat(int ver, int dir, const char *path, struct stat *st, int flags)
{
	if (is_own_fd(dir, path, flags))
		return fstat(dir, st);
	if (is_ours(dir, path))
		return rl_hook_result(stat_ours(dir, path, flags, st));
	return PASS(__fxstatat, raw_stat(dir, path, st, flags), ver, dir, path, st, flags);
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

RL_HOOK int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *x)
{
	struct stat st;
	int rv;

	if (is_own_fd(dir, path, flags))
		rv = fstat(dir, &st);
	else if (is_ours(dir, path))
		rv = rl_hook_result(stat_ours(dir, path, flags, &st));
	else
		return RL_CALL(statx, dir, path, flags, mask, x);
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

RL_HOOK ssize_t readlink(const char *path, char *buf, size_t len)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(readlink_ours(AT_FDCWD, path, buf, len));
	return PASS(readlink, raw_readlink(AT_FDCWD, path, buf, len), path, buf, len);
}

RL_HOOK ssize_t readlinkat(int dir, const char *path, char *buf, size_t len)
{
	if (is_ours(dir, path))
		return rl_hook_result(readlink_ours(dir, path, buf, len));
	return RL_CALL(readlinkat, dir, path, buf, len);
}

RL_HOOK ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room)
{
	if (len <= room && is_ours(AT_FDCWD, path))
		return rl_hook_result(readlink_ours(AT_FDCWD, path, buf, len));
	return PASS(__readlink_chk, raw_readlink(AT_FDCWD, path, buf, len), path, buf, len, room);
}

RL_HOOK ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t len, size_t room)
{
	if (len <= room && is_ours(dir, path))
		return rl_hook_result(readlink_ours(dir, path, buf, len));
	return PASS(__readlinkat_chk, raw_readlink(dir, path, buf, len), dir, path, buf, len, room);
}

static char *realpath_ours(const char *path, char *resolved)
{
	struct rl_place place;
	int rv = find(AT_FDCWD, path, true, &place);

	if (rv == RL_ELSEWHERE)
		return PASS(realpath, no_function(), place.real, resolved);
	if (!rv)
		rv = rl_node_path(place.node, place.real, sizeof(place.real));
	if (rl_hook_result(rv) < 0)
		return NULL;
	return resolved ? strcpy(resolved, place.real) : strdup(place.real);
}

RL_HOOK char *realpath(const char *path, char *resolved)
{
	if (is_ours(AT_FDCWD, path))
		return realpath_ours(path, resolved);
	return PASS(realpath, no_function(), path, resolved);
}

RL_HOOK char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room >= PATH_MAX && is_ours(AT_FDCWD, path))
		return realpath_ours(path, resolved);
	return PASS(__realpath_chk, no_function(), path, resolved, room);
}

RL_HOOK char *canonicalize_file_name(const char *path)
{
	if (is_ours(AT_FDCWD, path))
		return realpath_ours(path, NULL);
	return PASS(canonicalize_file_name, no_function(), path);
}

/* ---- extended attributes: none; ls asks for them ---- */

static long no_xattr(const char *path, bool follow, long none)
{
	struct rl_place place;
	int rv = find(AT_FDCWD, path, follow, &place);

	return rv < 0 ? rv : none;
}

RL_HOOK ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(no_xattr(path, true, -ENOTSUP));
	return RL_CALL(getxattr, path, name, value, size);
}

RL_HOOK ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(no_xattr(path, false, -ENOTSUP));
	return RL_CALL(lgetxattr, path, name, value, size);
}

RL_HOOK ssize_t listxattr(const char *path, char *list, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(no_xattr(path, true, 0));
	return RL_CALL(listxattr, path, list, size);
}

RL_HOOK ssize_t llistxattr(const char *path, char *list, size_t size)
{
	if (is_ours(AT_FDCWD, path))
		return rl_hook_result(no_xattr(path, false, 0));
	return RL_CALL(llistxattr, path, list, size);
}

/* ---- the names of large files ---- */

static_assert(sizeof(struct stat) == sizeof(struct stat64), "the same");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattribute-alias"	/* struct stat64 */

RL_ALIAS(open, open64);
RL_ALIAS(openat, openat64);
RL_ALIAS(__open_2, __open64_2);
RL_ALIAS(__openat_2, __openat64_2);
RL_ALIAS(creat, creat64);
RL_ALIAS(fopen, fopen64);
RL_ALIAS(stat, stat64);
RL_ALIAS(lstat, lstat64);
RL_ALIAS(fstatat, fstatat64);
RL_ALIAS(__xstat, __xstat64);
RL_ALIAS(__lxstat, __lxstat64);
RL_ALIAS(__fxstatat, __fxstatat64);

#pragma GCC diagnostic pop
