// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.13 brought hrtimer_setup(); 6.15 took hrtimer_init() away. */
#include <linux/hrtimer.h>

void weft_probe(struct hrtimer *t, enum hrtimer_restart (*f)(struct hrtimer *));
void weft_probe(struct hrtimer *t, enum hrtimer_restart (*f)(struct hrtimer *))
{
	hrtimer_setup(t, f, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}
