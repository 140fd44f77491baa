// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "place.h"
#include "process/raw.h"

#define FOLDER_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

static int check_folder(const char *path)
{
	struct statx x;
	long rv = rl_raw(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW,
			 STATX_TYPE | STATX_MODE | STATX_UID, &x);

	if (rv)
		return (int)rv;
	if ((x.stx_mode & S_IFMT) != S_IFDIR)
		return -ENOTDIR;
	return x.stx_uid == (u32)rl_raw(SYS_geteuid) && !(x.stx_mode & 077) ? 0 : -EPERM;
}

int rl_control_folder(char path[FOLDER_MAX], bool make)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	long rv;
	int len;

	if (runtime && *runtime == '/')
		len = snprintf(path, FOLDER_MAX, "%s/weft", runtime);
	else
		len = snprintf(path, FOLDER_MAX, "/tmp/weft-%u", (u32)rl_raw(SYS_geteuid));
	if (len < 0 || (size_t)len >= FOLDER_MAX)
		return -ENAMETOOLONG;
	rv = make ? rl_raw(SYS_mkdirat, AT_FDCWD, path, 0700) : 0;
	return rv && rv != -EEXIST ? (int)rv : check_folder(path);
}

int rl_control_name(struct sockaddr_un *name, s32 pid, bool make)
{
	char folder[FOLDER_MAX];
	int rv = rl_control_folder(folder, make), len;

	if (rv)
		return rv;
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	len = snprintf(name->sun_path, sizeof(name->sun_path), "%.90s/%d", folder, pid);
	if (strlen(folder) > 90 || len < 0 || (size_t)len >= sizeof(name->sun_path))
		return -ENAMETOOLONG;
	return (int)(offsetof(struct sockaddr_un, sun_path) + (size_t)len + 1);
}
