/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One running case: its verdict, transcript, connections and way out. */
#ifndef WEFTSPEC_CTX_H
#define WEFTSPEC_CTX_H

#include <setjmp.h>
#include <sys/types.h>

#include "weftspec.h"

#define LINT_MAX 64

/* What was seen of the peer's own stream, for the rows that only watch. */
struct lint {
	const char *row;
	unsigned int seen, bad;
	char first[TEXT_MAX];
};

struct stream;

struct ctx {
	const struct options *o;
	const struct wcase *w;
	struct facts *facts; /* shared between the processes of a run */
	struct result *r;
	enum role role;      /* of the peer, in this run of the case */
	jmp_buf out;
	struct stream *streams;
	struct lint lint[LINT_MAX];
	int nlint;
	uint32_t rnd;
	uint64_t cookie;
	unsigned int refl_flags; /* for the next REQUEST */
	unsigned int reply_pd;
	unsigned int recv_count;
	int maxseg, rcvbuf;
	bool set_isn;
	uint32_t isn;
	/* initiator role */
	int lfd, lport;
	pid_t peer;
};

/* End the case. */
void fail(struct ctx *c, const char *expected, const char *actual, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void skip(struct ctx *c, const char *why, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void unreachable(struct ctx *c, const char *what, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* Goes on: tolerated, but not what the requirement says. */
void divergent(struct ctx *c, const char *expected, const char *actual, ...)
	__attribute__((format(printf, 3, 4)));
/* fail() unless cond. */
#define CHECK(c, cond, expected, ...) \
	do { if (!(cond)) fail(c, expected, __VA_ARGS__); } while (0)

void say(struct ctx *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint32_t rnd(struct ctx *c);

void lint(struct ctx *c, const char *row, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Verdict of a row that watches: skipped when nothing was seen. */
void lint_verdict(struct ctx *c, const char *row);

#endif
