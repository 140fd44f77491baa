/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_KUNIT_TIME_H
#define WEFT_KUNIT_TIME_H

#include <linux/ktime.h>

#define timespec timespec64
#define clock_gettime(clock, t) ktime_get_ts64(t)

#endif
