/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How often threads have slept, as the kernel counts it. */
#ifndef SLEEPS_H
#define SLEEPS_H

#include <sys/types.h>

/* -1: it is gone. */
long sleeps_of(pid_t tid);
/* Of weft's own thread in this process; -1: there is none. */
long sleeps_of_progress(void);

#endif
