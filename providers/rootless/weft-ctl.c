// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-ctl: lists and breaks what running programs of this user have under `weft-run --control`.
 * The protocol: docs/control.md.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/place.h"

#define TIMEOUT_S 5

enum { DONE, FAILED, USAGE = 2 };

static const char usage[] =
	"weft-ctl [-p PID] list                 devices, QPs and connections\n"
	"weft-ctl [-p PID] fatal DEVICE         DEVICE_FATAL; each QP of the device fails\n"
	"weft-ctl [-p PID] error QPN            the QP fails\n"
	"weft-ctl [-p PID] disconnect QPN       the QP's connection is reset\n";

/* ---- one process ---- */

/* Connected to process @pid, or -errno. A socket of a dead process is removed. */
static int open_process(s32 pid)
{
	const struct timeval limit = { .tv_sec = TIMEOUT_S };
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct sockaddr_un name;
	int len = rl_control_name(&name, pid, false), fd, rv;

	if (len < 0)
		return len;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) &&
	    /* The kernel chooses a name, for the reply. */
	    !bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) &&
	    !connect(fd, (const struct sockaddr *)&name, (socklen_t)len))
		return fd;
	rv = -errno;
	if (rv == -ECONNREFUSED)
		unlink(name.sun_path);
	close(fd);
	return rv;
}

/* The reply's length; it ends with a NUL. Or -errno. */
static int ask(int fd, const char *verb, const char *argument, char reply[RL_CONTROL_REPLY + 1])
{
	char text[RL_CONTROL_REQUEST + 1];
	int len = snprintf(text, sizeof(text), RL_CONTROL_VERSION " %s %s", verb, argument);
	ssize_t n;

	if (len < 0 || (size_t)len >= sizeof(text))
		return -EINVAL;
	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return -errno;
	n = recv(fd, reply, RL_CONTROL_REPLY, 0);
	if (n < 0)
		return -errno;
	reply[n] = 0;
	return (int)n;
}

/* Prints the reply's lines. *@more: where its next page begins; 0: nowhere. */
static bool print_reply(s32 pid, char *reply, unsigned int *more)
{
	char *line, *rest = reply;
	bool known = false, good = true;

	*more = 0;
	while ((line = strsep(&rest, "\n"))) {
		if (!strcmp(line, RL_CONTROL_VERSION))
			known = true;
		else if (!strncmp(line, "error ", 6))
			good = false, fprintf(stderr, "weft-ctl: process %d: %s\n", pid, line + 6);
		else if (sscanf(line, "more %u", more) != 1 && *line && strcmp(line, "end"))
			printf("%d %s\n", pid, line);
	}
	return known && good;
}

static bool run_on(s32 pid, const char *verb, const char *argument)
{
	char reply[RL_CONTROL_REPLY + 1], page[16];
	int fd = open_process(pid), rv = fd;
	unsigned int more = 0, last;
	bool good = true;

	while (rv >= 0 && good) {
		last = more;
		rv = ask(fd, verb, argument, reply);
		if (rv < 0)
			break;
		good = print_reply(pid, reply, &more);
		if (more <= last)
			break;
		snprintf(page, sizeof(page), "%u", more);
		argument = page;
	}
	if (fd >= 0)
		close(fd);
	if (rv < 0)
		fprintf(stderr, "weft-ctl: process %d: %s\n", pid, strerror(-rv));
	return rv >= 0 && good;
}

/* ---- all processes ---- */

static bool is_alive(s32 pid)
{
	int fd = open_process(pid);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The next process of @folder that serves; 0: no more. */
static s32 next_process(DIR *folder)
{
	const struct dirent *e;
	char *end;
	long pid;

	while ((e = readdir(folder))) {
		pid = strtol(e->d_name, &end, 10);
		if (pid > 0 && pid <= INT32_MAX && !*end && is_alive((s32)pid))
			return (s32)pid;
	}
	return 0;
}

static DIR *open_folder(void)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int rv = rl_control_folder(path, false);
	DIR *folder = rv ? NULL : opendir(path);

	if (!folder && rv != -ENOENT)
		fprintf(stderr, "weft-ctl: %s: %s\n", path, strerror(rv ? -rv : errno));
	return folder;
}

static int list_all(void)
{
	DIR *folder = open_folder();
	bool good = true;
	s32 pid;

	while (folder && (pid = next_process(folder)))
		good &= run_on(pid, "list", "0");
	if (folder)
		closedir(folder);
	return good ? DONE : FAILED;
}

/* The only process that serves; 0: none, or several. */
static s32 only_process(void)
{
	DIR *folder = open_folder();
	s32 pid = folder ? next_process(folder) : 0;

	if (!pid)
		fprintf(stderr, "weft-ctl: no program runs under weft-run --control\n");
	else if (next_process(folder))
		pid = 0, fprintf(stderr, "weft-ctl: several programs run: say which, by -p\n");
	if (folder)
		closedir(folder);
	return pid;
}

int main(int argc, char **argv)
{
	bool takes_none;
	s32 pid = 0;
	int c;

	while ((c = getopt(argc, argv, "+p:h")) != -1) {
		if (c == 'p')
			pid = (s32)strtol(optarg, NULL, 10);
		if (c == 'h')
			return fputs(usage, stdout) < 0;
		if (c == '?' || (c == 'p' && pid <= 0))
			return fputs(usage, stderr), USAGE;
	}
	argv += optind;
	argc -= optind;
	takes_none = argc && !strcmp(argv[0], "list");
	if (argc != (takes_none ? 1 : 2))
		return fputs(usage, stderr), USAGE;
	if (takes_none && !pid)
		return list_all();
	if (!pid)
		pid = only_process();
	return pid && run_on(pid, argv[0], takes_none ? "0" : argv[1]) ? DONE : FAILED;
}
