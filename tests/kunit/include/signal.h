/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A test that catches signals is skipped. */
#ifndef WEFT_KUNIT_SIGNAL_H
#define WEFT_KUNIT_SIGNAL_H

#include <linux/signal.h>

#include "weft_kunit.h"

static inline int weft_kunit_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	weft_kunit_skip("needs signals");
}

static inline void weft_kunit_signal(int sig, void (*handler)(int sig))
{
	weft_kunit_skip("needs signals");
}

#define sigaction(sig, new, old) weft_kunit_sigaction(sig, new, old)
#define signal(sig, handler) weft_kunit_signal(sig, handler)

#endif
