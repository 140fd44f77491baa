/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The program's signal handlers, as calls that wait see them. */
#ifndef RL_HANDLERS_H
#define RL_HANDLERS_H

#include <stdbool.h>

/*
 * Does a signal never end a call that waits? True if each handler has SA_RESTART, but those of
 * faults. Two loads, unless a handler was set since the last call. Any thread.
 */
bool rl_handlers_restart(void);
/* A handler was set, or may have been. */
void rl_handlers_changed(void);

#endif
