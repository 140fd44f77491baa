// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* weft-ctl: lists and breaks what running programs of this user have under weft-run --control. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft-control.h"

#define PROCESSES	1024
#define REQUEST		65000

enum { DONE, FAILED, USAGE = 2 };

static const char usage[] =
	"weft-ctl [-p PID] COMMAND\n"
	"  list                      devices, QPs and connections\n"
	"  port DEVICE down|up       PORT_ERR, PORT_ACTIVE; between them nothing moves\n"
	"  fatal DEVICE              DEVICE_FATAL; each QP of the device fails\n"
	"  freeze QPN, thaw QPN      between them the QP sends and receives nothing\n"
	"  error QPN                 the QP fails\n"
	"  disconnect QPN            the QP's connection is reset\n"
	"  rate DEVICE|QPN RATE|off  bits per second, with K, M or G\n"
	"  delay DEVICE|QPN TIME|off how much later octets arrive, in us, ms or s\n"
	"  loss DEVICE|QPN P%|off    segments that are lost, and sent again 200 ms later\n"
	"  lid DEVICE N             LID_CHANGE to N\n"
	"  gid DEVICE [N GID|none]  GID_CHANGE: entry N of the table is GID, or gone\n"
	"  faults FILE               the rules of weft-run --faults; -: standard input\n"
	"Without -p: for all processes that have the device or QP.\n";

struct printer {
	int pid;
	bool list;
	char last[256];			/* of a refusal: the reason */
};

static void print_line(const char *line, void *arg)
{
	struct printer *p = arg;

	snprintf(p->last, sizeof(p->last), "%s", line);
	if (p->list)
		printf("%d %s\n", p->pid, line);
}

/* ---- a request ---- */

/* The text of file @name behind "faults"; NULL: it cannot be read. */
static char *read_rules(const char *name)
{
	FILE *f = strcmp(name, "-") ? fopen(name, "re") : stdin;
	char *text = f ? malloc(REQUEST + 1) : NULL;
	size_t len;

	if (!text) {
		fprintf(stderr, "weft-ctl: %s: %s\n", name, strerror(errno));
		goto out;
	}
	strcpy(text, "faults\n");
	len = fread(text + 7, 1, REQUEST - 7, f) + 7;
	if (len == REQUEST || memchr(text, 0, len) || ferror(f)) {
		fprintf(stderr, "weft-ctl: %s is too long, or is no text\n", name);
		free(text);
		text = NULL;
	} else {
		text[len] = 0;
	}
out:
	if (f && f != stdin)
		fclose(f);
	return text;
}

static char *join_words(int argc, char **argv)
{
	size_t size = 1;
	char *text;
	int i;

	for (i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	text = calloc(1, size);
	if (!text)
		return NULL;
	for (i = 0; i < argc; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, argv[i]);
	}
	return text;
}

static char *compose_request(int argc, char **argv)
{
	return !strcmp(argv[0], "faults") && argc == 2 ? read_rules(argv[1]) :
							   join_words(argc, argv);
}

/* ---- processes ---- */

/* Does a program often end of it? */
static bool ends_programs(const char *request)
{
	return !strncmp(request, "error ", 6) || !strncmp(request, "disconnect ", 11) ||
	       !strncmp(request, "fatal ", 6);
}

static int ask_process(int pid, const char *request, struct printer *p)
{
	int rv;

	*p = (struct printer){ .pid = pid, .list = !strcmp(request, "list") };
	rv = weft_control(pid, request, print_line, p);
	/* It has taken the request, and ended without an answer: abort() leaves no time. */
	return rv == -ECONNRESET && ends_programs(request) ? 0 : rv;
}

static void complain(int rv, const struct printer *p)
{
	fprintf(stderr, "weft-ctl: process %d: %s\n", p->pid,
		rv > 0 ? p->last : strerror(-rv));
}

/* A process may end meanwhile. */
static bool is_gone(int rv)
{
	return rv == -ENOENT || rv == -ECONNREFUSED || rv == -ECONNRESET;
}

static int ask_processes(const char *request)
{
	bool list = !strcmp(request, "list"), done = list, failed = false;
	struct printer p, refusal = { .pid = 0 };
	pid_t pids[PROCESSES];
	int n, i, rv;

	n = weft_control_processes(pids, PROCESSES);
	if (n < 0)
		fprintf(stderr, "weft-ctl: the folder of sockets: %s\n", strerror(-n));
	if (!n && !list)
		fprintf(stderr, "weft-ctl: no program runs under weft-run --control\n");
	for (i = 0; i < n && i < PROCESSES; i++) {
		rv = ask_process(pids[i], request, &p);
		if (is_gone(rv))
			continue;
		done |= !rv;
		failed |= rv < 0;
		if (rv < 0)
			complain(rv, &p);
		else if (rv)
			refusal = p;
	}
	/* One that has the object is enough. */
	if (refusal.pid && !done)
		complain(1, &refusal);
	return n < 0 || failed || !done ? FAILED : DONE;
}

/* 0: it is none. */
static long parse_pid(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	return *end ? 0 : pid;
}

int main(int argc, char **argv)
{
	struct printer p;
	char *request;
	long pid = 0;
	int c, rv;

	while ((c = getopt(argc, argv, "+p:h")) != -1) {
		if (c == 'h')
			return fputs(usage, stdout) < 0;
		if (c == 'p')
			pid = parse_pid(optarg);
		if (c == '?' || pid <= 0 || pid > 0x7fffffff)
			return fputs(usage, stderr), USAGE;
	}
	if (optind == argc)
		return fputs(usage, stderr), USAGE;
	request = compose_request(argc - optind, argv + optind);
	if (!request)
		return FAILED;
	if (!pid) {
		rv = ask_processes(request);
	} else {
		rv = ask_process((int)pid, request, &p);
		if (rv)
			complain(rv, &p);
		rv = rv ? FAILED : DONE;
	}
	free(request);
	return rv;
}
