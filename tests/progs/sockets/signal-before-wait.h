/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SIGNAL_BEFORE_WAIT_H
#define SIGNAL_BEFORE_WAIT_H

#include <stdbool.h>

/* 0: none comes. */
extern volatile int signal_before_wait;

/* Is there a library between the program's calls and the kernel's? */
bool waits_are_hooked(void);

#endif
