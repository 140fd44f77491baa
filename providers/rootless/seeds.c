// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seeds.h"

#define UNKNOWN	125			/* the status if no child can be made */

static bool seeds_number(const char *s, char **end, uint32_t *n)
{
	unsigned long long v;

	errno = 0;
	v = strtoull(s, end, 10);
	*n = (uint32_t)v;
	return *s >= '0' && *s <= '9' && !errno && v && v <= UINT32_MAX;
}

bool rl_seeds_parse(const char *s, struct rl_seeds *seeds)
{
	char *end;

	return seeds_number(s, &end, &seeds->first) && *end == '-' &&
	       seeds_number(end + 1, &end, &seeds->last) && !*end && seeds->first <= seeds->last;
}

/* The child ends with its parent: a time-out of the whole ends this run, too. */
static void become(uint32_t seed, pid_t parent)
{
	char value[16];

	snprintf(value, sizeof(value), "%u", seed);
	if (setenv("WEFT_ADVERSE", value, 1))
		exit(UNKNOWN);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		exit(UNKNOWN);
}

static int await(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return UNKNOWN;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void report_failure(uint32_t seed, int status)
{
	if (status > 128)
		fprintf(stderr, "weft-run: --adverse=%u: signal %d, %s\n", seed, status - 128,
			strsignal(status - 128));
	else
		fprintf(stderr, "weft-run: --adverse=%u: status %d\n", seed, status);
}

static __attribute__((noreturn)) void seeds_end(uint64_t runs, uint64_t failed, int status)
{
	if (failed)
		fprintf(stderr, "weft-run: %llu of %llu seeds failed\n",
			(unsigned long long)failed, (unsigned long long)runs);
	else
		fprintf(stderr, "weft-run: passed by all %llu seeds\n", (unsigned long long)runs);
	exit(status);
}

void rl_seeds_fork(const struct rl_seeds *seeds)
{
	uint64_t seed, runs = 0, failed = 0;
	const pid_t self = getpid();
	int status, first = 0;
	pid_t child;

	/* The terminal's signals are the program's. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	for (seed = seeds->first; seed <= seeds->last; seed++) {
		child = fork();
		if (!child) {
			become((uint32_t)seed, self);
			return;
		}
		status = child < 0 ? UNKNOWN : await(child);
		runs++;
		if (!status)
			continue;
		report_failure((uint32_t)seed, status);
		failed++;
		first = first ?: status;
		if (status == 128 + SIGINT || status == 128 + SIGQUIT)
			break;
	}
	seeds_end(runs, failed, first);
}
