// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Runs a program as on Linux 4.18, RHEL 8's: calls that came later are refused as that kernel refuses them.
 *   old-kernel PROGRAM [ARG...]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENOSYS_FROM	424	/* the first number that 5.1 added; all later calls follow */
#define FOREIGN		0x40000000

/* A file of an eventfd cannot be read without waiting; no other file is read with flags here. */
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ENOSYS_FROM, 2, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

int main(int argc, char **argv)
{
	struct sock_fprog all = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (argc < 2) {
		fprintf(stderr, "old-kernel PROGRAM [ARG...]\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all)) {
		fprintf(stderr, "old-kernel: no filter: %s\n", strerror(errno));
		return 2;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "old-kernel: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
