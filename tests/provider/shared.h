/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A ring between the provider's code and the kernel's, with guards around it. */
#ifndef SHARED_H
#define SHARED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../kernel/core/qp.h"
#include "wqe.h"

/* Both views of one ring whose indices stand at @idx. Free with ring_free(). */
struct shared {
	struct weft_uring user;
	struct weft_ringq kern;
	void *mem;		/* what is allocated */
};

void ring_make(struct shared *s, uint32_t slots, uint32_t idx);
void ring_free(struct shared *s);

/* Bytes that no test writes by chance. */
#define GUARD 0x5a
void ring_fill_guard(struct shared *s);
/* Every slot but the @n from @idx on still holds the guard. */
void ring_check_guard(const struct shared *s, uint32_t idx, uint32_t n);

#endif
