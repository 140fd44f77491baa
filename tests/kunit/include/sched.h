/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_KUNIT_SCHED_H
#define WEFT_KUNIT_SCHED_H

#include <linux/sched.h>

#define sched_yield() cond_resched()

#endif
