// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files of devices by libc's calls that no RDMA library makes, but shells, languages and programs
 * of older or hardened compilers do; and netlink by other calls than libnl's. TAP.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "verdict.h"

#define DEVICES	"/sys/class/infiniband"
#define DEVICE	DEVICES "/weft_lo"
#define VERBS	"/dev/infiniband/uverbs0"
#define OUTSIDE	DEVICES "/../net/lo"		/* the kernel's */

/* libc's function that its headers do not declare, as @type. */
#define LIBC(type, name) ((type)dlsym(RTLD_DEFAULT, name))

static bool fails(long rv, int err)
{
	return rv == -1 && errno == err;
}

static bool reads(int fd, const char *text)
{
	char buf[64] = "";
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	close(fd);
	return n > 0 && !strncmp(buf, text, strlen(text));
}

/* ---- folders ---- */

static int is_device(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static bool scandir_sorts(void)
{
	struct dirent **list = NULL;
	bool found = false;
	int i, n = scandir(DEVICES, &list, is_device, alphasort);

	for (i = 0; i < n; i++) {
		found |= !strcmp(list[i]->d_name, "weft_lo");
		if (i && strcmp(list[i - 1]->d_name, list[i]->d_name) >= 0)
			return false;
	}
	for (i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return found && fails(scandir(DEVICES "/none", &list, NULL, NULL), ENOENT);
}

static bool scandir_leads_out(void)
{
	struct dirent **list = NULL;
	int i, n = scandir(OUTSIDE, &list, is_device, NULL);

	for (i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return n > 0;
}

static bool glob_finds(void)
{
	glob_t g;
	bool ok = !glob(DEVICES "/weft_l?/node_*", 0, NULL, &g) && g.gl_pathc == 3 &&
		  !strcmp(g.gl_pathv[0], DEVICE "/node_desc");

	globfree(&g);
	return ok && glob(DEVICES "/none*", 0, NULL, &g) == GLOB_NOMATCH;
}

static bool dirs_go_back(void)
{
	DIR *d = opendir(DEVICE);
	char second[256];
	struct dirent *e;
	long at;

	if (!d || !readdir(d))
		return false;
	at = telldir(d);
	e = readdir(d);
	snprintf(second, sizeof(second), "%s", e ? e->d_name : "");
	while (readdir(d))
		;
	seekdir(d, at);
	e = readdir(d);
	if (!e || strcmp(e->d_name, second))
		return false;
	rewinddir(d);
	e = readdir(d);
	return e && !strcmp(e->d_name, ".") && !closedir(d);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static bool readdir_r_ends(void)
{
	struct dirent entry, *e = &entry;
	DIR *d = opendir(DEVICES);
	unsigned int n = 0;

	while (d && !readdir_r(d, &entry, &e) && e)
		n++;
	return n >= 3 && !closedir(d);
}

#pragma GCC diagnostic pop

/* ---- names ---- */

typedef int stat_fn(int version, const char *path, struct stat *st);
typedef int fstatat_fn(int version, int dir, const char *path, struct stat *st, int flags);
typedef int fstat_fn(int version, int fd, struct stat *st);

/* What programs call that were built before glibc 2.33. */
static bool old_stats_agree(void)
{
	stat_fn *old_stat = LIBC(stat_fn *, "__xstat"), *old_lstat = LIBC(stat_fn *, "__lxstat64");
	fstatat_fn *old_fstatat = LIBC(fstatat_fn *, "__fxstatat");
	fstat_fn *old_fstat = LIBC(fstat_fn *, "__fxstat64");
	int dir = open(DEVICE, O_RDONLY | O_DIRECTORY), fd = open(VERBS, O_RDWR);
	struct stat now, a, b, c, d;
	bool ok;

	ok = old_stat && old_lstat && old_fstatat && old_fstat && !stat(VERBS, &now) &&
	     !old_stat(1, VERBS, &a) && !old_lstat(1, VERBS, &b) &&
	     a.st_rdev == now.st_rdev && b.st_rdev == now.st_rdev && S_ISCHR(a.st_mode) &&
	     !old_fstat(1, fd, &d) && d.st_rdev == now.st_rdev &&
	     !old_fstatat(1, dir, "node_type", &c, 0) && S_ISREG(c.st_mode) &&
	     !old_fstatat(1, fd, "", &d, AT_EMPTY_PATH) && d.st_rdev == now.st_rdev &&
	     !old_stat(1, OUTSIDE "/mtu", &a) && S_ISREG(a.st_mode) &&
	     !old_lstat(1, "/", &b) && S_ISDIR(b.st_mode);
	close(dir);
	close(fd);
	return ok;
}

/* An open descriptor is known by itself. */
static bool descriptors_are_files(void)
{
	int fd = open(VERBS, O_RDWR);
	struct stat name, own;
	struct statx x;
	bool ok;

	ok = !stat(VERBS, &name) && !fstatat(fd, "", &own, AT_EMPTY_PATH) &&
	     own.st_rdev == name.st_rdev && !statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) &&
	     makedev(x.stx_rdev_major, x.stx_rdev_minor) == name.st_rdev &&
	     !statx(AT_FDCWD, VERBS, 0, STATX_BASIC_STATS, &x) && S_ISCHR(x.stx_mode);
	close(fd);
	return ok;
}

/* The folder that DEVICE leads to: below a PCI function, as in the kernel's tree. */
static bool is_folder(const char *path)
{
	size_t len = strlen(path), end = strlen("/infiniband/weft_lo");

	return !strncmp(path, "/sys/devices/pci", 16) && len > end &&
	       !strcmp(path + len - end, "/infiniband/weft_lo");
}

/* What a compiler makes of calls with _FORTIFY_SOURCE. */
static bool fortified_calls(void)
{
	int (*open_2)(const char *, int) = LIBC(__typeof__(open_2), "__open64_2");
	int (*openat_2)(int, const char *, int) = LIBC(__typeof__(openat_2), "__openat_2");
	ssize_t (*read_chk)(int, void *, size_t, size_t) = LIBC(__typeof__(read_chk), "__read_chk");
	ssize_t (*readlink_chk)(const char *, char *, size_t, size_t) =
		LIBC(__typeof__(readlink_chk), "__readlink_chk");
	ssize_t (*readlinkat_chk)(int, const char *, char *, size_t, size_t) =
		LIBC(__typeof__(readlinkat_chk), "__readlinkat_chk");
	char *(*realpath_chk)(const char *, char *, size_t) =
		LIBC(__typeof__(realpath_chk), "__realpath_chk");
	int dir = open(DEVICE, O_RDONLY | O_DIRECTORY), fd;
	char path[PATH_MAX], word[8] = "";
	bool ok;

	ok = reads(open_2(DEVICE "/node_desc", O_RDONLY), "weft") &&
	     reads(openat_2(dir, "node_desc", O_RDONLY), "weft");
	fd = open(DEVICE "/node_desc", O_RDONLY);
	ok = ok && read_chk(fd, word, 4, sizeof(word)) == 4 && !strcmp(word, "weft");
	/* A device is a link, as is a file of the kernel's; its attributes are none. */
	ok = ok && readlink_chk(DEVICE, path, 8, sizeof(path)) == 8 && !memcmp(path, "../../de", 8) &&
	     fails(readlinkat_chk(dir, "node_desc", path, 8, sizeof(path)), EINVAL) &&
	     readlink_chk("/proc/self/exe", path, 8, sizeof(path)) == 8 &&
	     realpath_chk(DEVICE "/./ports/..", path, sizeof(path)) && is_folder(path);
	close(fd);
	close(dir);
	return ok;
}

static bool real_paths(void)
{
	char *a = canonicalize_file_name(DEVICE "/ports/../../weft_lo"), b[PATH_MAX];
	bool ok = a && is_folder(a);

	free(a);
	a = canonicalize_file_name("/proc/../dev");
	ok = ok && a && !strcmp(a, "/dev");
	free(a);
	return ok && !realpath(DEVICES "/none", b) && errno == ENOENT &&
	       realpath(OUTSIDE "/mtu", b) && strstr(b, "/lo/mtu");
}

static bool nothing_is_written(void)
{
	return fails(creat(DEVICE "/node_desc", 0666), EACCES) &&
	       fails(creat(DEVICES "/new", 0666), EACCES) &&
	       fails(open(DEVICE "/node_desc", O_RDWR), EACCES) &&
	       fails(access(DEVICE "/node_desc", W_OK), EACCES) &&
	       fails(euidaccess(DEVICE "/node_desc", W_OK), EACCES) &&
	       fails(eaccess(DEVICE "/node_desc", X_OK), EACCES) &&
	       !euidaccess(DEVICE "/node_desc", R_OK) && !eaccess(VERBS, R_OK | W_OK) &&
	       !faccessat(AT_FDCWD, DEVICE, X_OK, 0) && !eaccess("/", X_OK) && !euidaccess("/", X_OK) &&
	       !access(OUTSIDE "/mtu", R_OK);
}

static bool no_attributes(void)
{
	char buf[64];

	return fails(getxattr(DEVICE, "user.x", buf, sizeof(buf)), ENOTSUP) &&
	       fails(lgetxattr(DEVICE, "user.x", buf, sizeof(buf)), ENOTSUP) &&
	       !listxattr(DEVICE, buf, sizeof(buf)) && !llistxattr(DEVICE, buf, sizeof(buf)) &&
	       fails(listxattr(DEVICES "/none", buf, sizeof(buf)), ENOENT) &&
	       llistxattr("/proc/self", buf, 0) >= -1 && listxattr("/", buf, 0) >= -1;
}

/* ---- descriptors ---- */

static bool a_copy_is_the_device(void)
{
	int fd = open(VERBS, O_RDWR), high = dup3(fd, 200, O_CLOEXEC);
	struct stat a, b;
	bool ok = high == 200 && fcntl(high, F_GETFD) == FD_CLOEXEC && !close(fd);

	ok = ok && !fstat(high, &a) && !stat(VERBS, &b) && a.st_rdev == b.st_rdev;
	return dup2(0, high) == high && !fstat(high, &a) && a.st_rdev != b.st_rdev && ok &&
	       fails(dup3(0, 0, 0), EINVAL);
}

/* Programs close what they did not open. The library goes on. */
static bool closefrom_leaves_the_library(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	int n = 0;

	closefrom(3);
	list = ibv_get_device_list(&n);
	ctx = n ? ibv_open_device(list[0]) : NULL;
	return ctx && !ibv_close_device(ctx);
}

/* ---- netlink ---- */

static struct nlmsghdr dump(void)
{
	return (struct nlmsghdr){
		.nlmsg_len = sizeof(struct nlmsghdr), .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), .nlmsg_seq = 7,
	};
}

/* The answer's first message is of a device, and the kernel's. */
static bool is_answered(int fd)
{
	ssize_t (*recvfrom_chk)(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *) =
		LIBC(__typeof__(recvfrom_chk), "__recvfrom_chk");
	struct sockaddr_nl from = { .nl_pid = 1 };
	socklen_t len = sizeof(from);
	uint8_t answer[16384];
	struct nlmsghdr *hdr = (void *)answer;
	ssize_t n;

	n = recvfrom(fd, answer, sizeof(answer), MSG_PEEK, (void *)&from, &len);
	if (n < (ssize_t)sizeof(*hdr) || len != sizeof(from) || from.nl_family != AF_NETLINK ||
	    from.nl_pid)
		return false;
	return recvfrom_chk(fd, answer, sizeof(answer), sizeof(answer), 0, NULL, NULL) == n &&
	       hdr->nlmsg_seq == 7 && hdr->nlmsg_type == dump().nlmsg_type;
}

static bool netlink_in_pieces(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct nlmsghdr m = dump();
	struct iovec v[2] = { { &m, 4 }, { (char *)&m + 4, sizeof(m) - 4 } };
	bool ok = writev(fd, v, 2) == sizeof(m) && is_answered(fd);

	close(fd);
	return ok;
}

static bool netlink_refuses(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct sockaddr other = { .sa_family = AF_INET };
	static char much[1 << 20];
	struct iovec v = { much, sizeof(much) };
	struct nlmsghdr m = dump();
	bool ok = fails(sendto(fd, &m, sizeof(m), 0, &other, sizeof(other)), EINVAL) &&
		  fails(writev(fd, &v, 1), EMSGSIZE) &&
		  fails(bind(fd, &other, sizeof(other)), EINVAL) &&
		  write(fd, &m, sizeof(m)) == sizeof(m) && is_answered(fd);

	close(fd);
	return ok;
}

static const struct nlattr *next(const struct nlattr *a)
{
	return (const void *)((const char *)a + NLA_ALIGN(a->nla_len));
}

/* The attribute of @type between @a and @end, or NULL. */
static const struct nlattr *find(const struct nlattr *a, const void *end, int type)
{
	while (a < (const struct nlattr *)end && a->nla_len && (a->nla_type & NLA_TYPE_MASK) != type)
		a = next(a);
	return a < (const struct nlattr *)end && a->nla_len ? a : NULL;
}

/* What RES_GET of device 0 says of @name; -1: nothing. */
static long count_of(const char *name)
{
	struct {
		struct nlmsghdr hdr;
		struct nlattr attr;
		uint32_t index;
	} m = { dump(), { 8, RDMA_NLDEV_ATTR_DEV_INDEX }, 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	const struct nlattr *list, *entry, *word;
	uint8_t answer[16384];
	long count = -1;
	ssize_t n;

	m.hdr.nlmsg_len = sizeof(m);
	m.hdr.nlmsg_flags = NLM_F_REQUEST;
	m.hdr.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET);
	n = send(fd, &m, sizeof(m), 0) == sizeof(m) ? recv(fd, answer, sizeof(answer), 0) : 0;
	close(fd);
	if (n <= (ssize_t)sizeof(m.hdr))
		return -1;
	list = find((void *)(answer + sizeof(m.hdr)), answer + n, RDMA_NLDEV_ATTR_RES_SUMMARY);
	for (entry = list ? list + 1 : NULL; entry && entry < next(list); entry = next(entry)) {
		word = find(entry + 1, next(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME);
		if (!word || strcmp((const char *)(word + 1), name))
			continue;
		word = find(entry + 1, next(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR);
		if (word)
			memcpy(&count, word + 1, sizeof(count));
	}
	return count;
}

static bool netlink_counts(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	bool ok = count_of("pd") == 2 && count_of("cq") == 1 && count_of("ctx") == 1;

	ok = ok && !ibv_dealloc_pd(other) && count_of("pd") == 1;
	ok = ok && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx);
	ibv_free_device_list(list);
	return ok && !count_of("pd") && !count_of("cq") && !count_of("ctx");
}

static const struct {
	const char *name;
	bool (*is_well)(void);
} calls[] = {
	{ "scandir-sorts-devices", scandir_sorts },
	{ "scandir-of-a-path-that-leads-out", scandir_leads_out },
	{ "glob-finds-attributes", glob_finds },
	{ "a-listing-goes-back", dirs_go_back },
	{ "readdir_r-comes-to-an-end", readdir_r_ends },
	{ "stat-by-its-old-names-agrees", old_stats_agree },
	{ "an-empty-path-is-the-descriptor", descriptors_are_files },
	{ "calls-of-a-hardened-program", fortified_calls },
	{ "real-paths-in-and-out", real_paths },
	{ "attributes-are-not-written", nothing_is_written },
	{ "there-are-no-extended-attributes", no_attributes },
	{ "a-copy-by-dup3-is-the-device", a_copy_is_the_device },
	{ "a-netlink-request-in-pieces", netlink_in_pieces },
	{ "netlink-refuses-what-is-no-request", netlink_refuses },
	{ "netlink-counts-open-objects", netlink_counts },
	{ "the-library-survives-closefrom", closefrom_leaves_the_library },
};

int main(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		verdict_if(calls[i].name, calls[i].is_well());
	return verdict_end();
}
