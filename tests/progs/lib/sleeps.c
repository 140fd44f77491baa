// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sleeps.h"

/* The number after @name in the status file of @tid, whose name has to be @who unless that is NULL; -1: none. */
static long number_of(pid_t tid, const char *who, const char *name)
{
	char path[64], line[256];
	size_t len = strlen(name);
	long n = -1;
	bool is_it;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "r");
	is_it = f && fgets(line, sizeof(line), f) && !strncmp(line, "Name:\t", 6);
	line[strcspn(line, "\n")] = '\0';
	is_it = is_it && (!who || !strcmp(line + 6, who));
	while (is_it && n < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && sscanf(line + len, ": %ld", &n) != 1)
			n = -1;
	if (f)
		fclose(f);
	return n;
}

long sleeps_of(pid_t tid)
{
	return number_of(tid, NULL, "voluntary_ctxt_switches");
}

long sleeps_of_progress(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long n = -1;

	while (d && n < 0 && (e = readdir(d)))
		if (atoi(e->d_name))
			n = number_of(atoi(e->d_name), "weft", "voluntary_ctxt_switches");
	if (d)
		closedir(d);
	return n;
}
