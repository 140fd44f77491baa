/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the test programs here: cmocka, and reading completions. */
#ifndef STACKS_TEST_H
#define STACKS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "side.h"

#define SIG WEFT_WR_SIGNALED
#define RW (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ)
#define BASE 0x100000000000ull		/* first TO of most regions */

/* The next completion of @cq must be for @wr_id with @status. */
static inline struct weft_cqe expect_cqe(struct host_cq *cq, u64 wr_id, u8 status)
{
	struct weft_cqe e;

	if (!host_cq_poll(cq, &e))
		fail_msg("no completion for %llu", (unsigned long long)wr_id);
	if (e.wr_id != wr_id || e.status != status)
		fail_msg("completion %llu with status %u instead of %llu with %u",
			 (unsigned long long)e.wr_id, e.status, (unsigned long long)wr_id, status);
	return e;
}

static inline void expect_no_cqe(struct host_cq *cq)
{
	struct weft_cqe e;

	if (host_cq_poll(cq, &e))
		fail_msg("unexpected completion %llu, status %u",
			 (unsigned long long)e.wr_id, e.status);
}

static inline u32 drain_cq(struct host_cq *cq)
{
	struct weft_cqe e;
	u32 n = 0;

	while (host_cq_poll(cq, &e))
		n++;
	return n;
}

static inline void expect_state(const struct side *s, enum weft_qp_state state)
{
	assert_int_equal(s->qp->core.state, state);
}

#define RUN_TESTS(name, tests) cmocka_run_group_tests_name(name, tests, NULL, NULL)

#endif
