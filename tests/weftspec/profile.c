/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

/* "fail", "pass|divergent": bits, or 0. */
static unsigned int verdicts_of(char *s)
{
	unsigned int bits = 0, before;

	for (char *w = strtok(s, "|"); w; w = strtok(NULL, "|")) {
		before = bits;
		for (int v = V_PASS; v <= V_CRASH; v++)
			if (!strcmp(w, verdict_name(v)))
				bits |= 1u << v;
		if (bits == before)
			return 0;
	}
	return bits;
}

static void trim_end(char *s)
{
	size_t n = strlen(s);

	while (n && strchr(" \t\r\n", s[n - 1]))
		s[--n] = 0;
}

/* 1: a line, 0: blank, -1: wrong. */
static int parse_line(char *line, struct known *k)
{
	char verdict[40];
	char *hash = strstr(line, "  #");
	int at = 0;

	if (hash)
		*hash = 0;
	trim_end(line);
	if (!*line || *line == '#')
		return 0;
	memset(k, 0, sizeof(*k));
	if (sscanf(line, "%63s %39s %n", k->id, verdict, &at) < 2)
		return -1;
	k->verdicts = verdicts_of(verdict);
	snprintf(k->signature, sizeof(k->signature), "%s", line + at);
	return k->verdicts ? 1 : -1;
}

int profile_read(const char *path, struct profile *p)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	int nr = 0;

	if (!f) {
		fprintf(stderr, "weftspec: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), f)) {
		struct known k;
		int got = parse_line(line, &k);

		nr++;
		if (got < 0) {
			fprintf(stderr, "weftspec: %s:%d: not 'id verdict signature'\n",
				path, nr);
			fclose(f);
			return -1;
		}
		if (!got)
			continue;
		p->k = realloc(p->k, (p->n + 1) * sizeof(*p->k));
		if (!p->k)
			abort();
		p->k[p->n++] = k;
	}
	fclose(f);
	return 0;
}

static struct known *find_known(const struct profile *p, const struct job *j)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->k[i].id, j->id) ||
		    !strcmp(p->k[i].id, j->row->id))
			return &p->k[i];
	return NULL;
}

void profile_judge(struct profile *p, struct job *j)
{
	struct known *k = find_known(p, j);

	if (!k || !(k->verdicts >> j->r->verdict & 1))
		return;
	if (j->r->verdict != V_PASS && !strstr(j->r->actual, k->signature))
		return;
	k->hit = true;
	j->expected = true;
}

size_t profile_surprises(const struct profile *p, const struct run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->njobs; i++) {
		const struct job *j = &run->jobs[i];
		enum verdict v = j->r->verdict;
		const struct known *k = find_known(p, j);

		if (v == V_SKIPPED || j->expected || (v == V_PASS && !k))
			continue;
		printf("surprise: %s is %s, %s\n", j->id, verdict_name(v),
		       !k ? "unknown to the profile" :
		       k->verdicts >> v & 1 ? "with another signature" :
		       "the profile says otherwise");
		n++;
	}
	return n;
}
