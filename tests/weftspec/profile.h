/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The known deviations of a named peer.  One a line:
 *     id verdict[|verdict] signature...      # why
 * The signature is part of what the case reported; an empty one fits all.
 */
#ifndef WEFTSPEC_PROFILE_H
#define WEFTSPEC_PROFILE_H

#include "run.h"

struct known {
	char id[64];
	unsigned int verdicts; /* bits; several where the outcome is a race */
	char signature[TEXT_MAX];
	bool hit;
};

struct profile {
	struct known *k;
	size_t n;
};

/* 0, or -1 with a message on stderr. */
int profile_read(const char *path, struct profile *p);
/* Sets j->expected. */
void profile_judge(struct profile *p, struct job *j);
/* Outcomes that it did not foresee, and foreseen ones that did not come. */
size_t profile_surprises(const struct profile *p, const struct run *run);

#endif
