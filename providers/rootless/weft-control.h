/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What weft-ctl(1) does, for a test in C: programs of this user under weft-run --control are listed
 * and broken. Link with -lweft-control. docs/control.md has the requests. Thread-safe.
 */
#ifndef WEFT_CONTROL_H
#define WEFT_CONTROL_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Process @pid carries out @request ("port mlx5_0 down"); for "faults", the rules follow a newline.
 * Calls @line (or NULL) with each line of the answer, without its newline; of "list" all pages.
 * 0: done. 1: refused, and @line got the reason alone. Or -errno: -ECONNREFUSED or -ENOENT if the
 * process does not serve, -EAGAIN if it has not answered within 5 seconds,
 * -ECONNRESET if it has ended before it answered.
 */
int weft_control(pid_t pid, const char *request, void (*line)(const char *line, void *arg),
		 void *arg);

/* Processes that serve, up to @most: how many there are, or -errno. */
int weft_control_processes(pid_t *pids, int most);

#ifdef __cplusplus
}
#endif

#endif
