// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/place.h"
#include "weft-control.h"

#define TIMEOUT_S 5
/* How often it is looked whether the process is still there. */
#define LOOK_MS 100

/* ---- one process ---- */

static int connect_to(int fd, s32 pid)
{
	const struct timeval limit = { .tv_sec = TIMEOUT_S }, look = { .tv_usec = LOOK_MS * 1000 };
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	struct sockaddr_un name;
	int len = rl_control_name(&name, pid, false), rv;

	if (len < 0)
		return len;
	/* For the reply the kernel chooses a name. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)))
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&name, (socklen_t)len))
		return 0;
	rv = -errno;
	/* One that lives may be in exec(), and about to have a new socket of this name. */
	if (rv == -ECONNREFUSED && kill(pid, 0) && errno == ESRCH)
		unlink(name.sun_path);
	return rv;
}

/* A socket, or -errno. */
static int open_process(s32 pid)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rv;

	if (fd < 0)
		return -errno;
	rv = connect_to(fd, pid);
	if (!rv)
		return fd;
	close(fd);
	return rv;
}

static bool is_alive(s32 pid)
{
	int fd = open_process(pid);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The length of a reply, or -errno; ECONNRESET: the process has ended. */
static ssize_t await_reply(int fd, s32 pid, char reply[RL_CONTROL_REPLY + 1])
{
	int looks = TIMEOUT_S * 1000 / LOOK_MS;
	bool ended = false;
	ssize_t n;

	for (;;) {
		n = recv(fd, reply, RL_CONTROL_REPLY, ended ? MSG_DONTWAIT : 0);
		if (n >= 0)
			return n;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (ended)
			return -ECONNRESET;
		if (!looks--)
			return -EAGAIN;
		/* Its answer may have arrived just before. */
		ended = !is_alive(pid);
	}
}

/* The length of the reply, which ends with a NUL, or -errno. */
static int ask_page(int fd, s32 pid, const char *request, const char *page,
		    char reply[RL_CONTROL_REPLY + 1])
{
	size_t size = sizeof(RL_CONTROL_VERSION) + strlen(request) + strlen(page) + 2;
	char *text = malloc(size);
	ssize_t n;
	int len;

	if (!text)
		return -ENOMEM;
	len = snprintf(text, size, RL_CONTROL_VERSION " %s%s", request, page);
	n = send(fd, text, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -errno;
	free(text);
	if (!n)
		n = await_reply(fd, pid, reply);
	if (n < 0)
		return (int)n;
	reply[n] = 0;
	return (int)n;
}

struct answer {
	void (*line)(const char *line, void *arg);
	void *arg;
	char page[16];			/* " N": what follows; "": nothing */
	bool known, whole, refused;
};

static void report_line(const struct answer *a, const char *line)
{
	if (a->line)
		a->line(line, a->arg);
}

static void take_line(struct answer *a, const char *line)
{
	unsigned int more;

	if (!strcmp(line, RL_CONTROL_VERSION)) {
		a->known = true;
	} else if (!strcmp(line, "end")) {
		a->whole = true;
	} else if (!strncmp(line, "error ", 6)) {
		a->refused = true;
		report_line(a, line + 6);
	} else if (sscanf(line, "more %u", &more) == 1) {
		snprintf(a->page, sizeof(a->page), " %u", more);
	} else if (*line) {
		report_line(a, line);
	}
}

static int read_reply(struct answer *a, char *reply)
{
	char *line;

	a->known = a->whole = a->refused = false;
	a->page[0] = 0;
	while ((line = strsep(&reply, "\n")))
		take_line(a, line);
	if (!a->known || !a->whole)
		return -EPROTO;
	return a->refused;
}

int weft_control(pid_t pid, const char *request, void (*line)(const char *line, void *arg),
		 void *arg)
{
	struct answer a = { .line = line, .arg = arg };
	char reply[RL_CONTROL_REPLY + 1];
	int fd = open_process(pid), rv = fd;

	if (fd < 0)
		return fd;
	/* A list begins after number 0. */
	if (!strcmp(request, "list"))
		strcpy(a.page, " 0");
	do {
		rv = ask_page(fd, pid, request, a.page, reply);
		if (rv >= 0)
			rv = read_reply(&a, reply);
	} while (!rv && a.page[0]);
	close(fd);
	return rv;
}

/* ---- all processes ---- */

int weft_control_processes(pid_t *pids, int most)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)], *end;
	int rv = rl_control_folder(path, false), n = 0;
	const struct dirent *e;
	DIR *folder;
	long pid;

	if (rv == -ENOENT)
		return 0;
	folder = rv ? NULL : opendir(path);
	if (!folder)
		return rv ? rv : -errno;
	while ((e = readdir(folder))) {
		pid = strtol(e->d_name, &end, 10);
		if (pid <= 0 || pid > INT32_MAX || *end || !is_alive((s32)pid))
			continue;
		if (n < most)
			pids[n] = (pid_t)pid;
		n++;
	}
	closedir(folder);
	return n;
}
