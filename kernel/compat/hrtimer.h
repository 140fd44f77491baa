/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* hrtimer_setup() for kernels before 6.13; see probe/hrtimer_setup.c. */
#ifndef WEFT_COMPAT_HRTIMER_H
#define WEFT_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>

#include "compat/have.h"

#ifndef WEFT_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
