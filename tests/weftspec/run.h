/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs cases, each in a process of its own, and collects their results. */
#ifndef WEFTSPEC_RUN_H
#define WEFTSPEC_RUN_H

#include <sys/types.h>

#include "weftspec.h"

/* One case in one role. */
struct job {
	const struct wcase *w;
	const struct row *row;
	enum role role;
	struct result *r; /* shared with the process that runs it */
	pid_t pid;
	double began;
	bool done;
	bool expected; /* the profile knows of this outcome */
	char id[64];   /* MPA-57/flip-payload@r */
};

struct run {
	const struct options *o;
	struct facts *facts;
	struct job *jobs;
	size_t njobs;
	bool peer_lost;
	void (*report)(struct run *run, struct job *j);
};

/* Fills run->jobs from the cases that the options ask for. */
int run_plan(struct run *run);
/* First conversation: is there a peer, what can it do. */
enum probe { PROBE_OK, PROBE_FAILED, PROBE_UNREACHABLE };
enum probe run_probe(struct run *run, char *why, size_t size);
void run_all(struct run *run);
extern volatile int run_stop;

size_t cases_of(const struct row *row);

#endif
