/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registered memory is the program's and is not pinned: it may be unmapped at any time. What
 * touches it here touches it under guard: a fault ends the access, and not the program.
 *
 * Only faults of this library's instructions, and of libraries that say so, end an access.
 * A fault of the program's own goes to the handler that it asked for, or has the effect that it
 * had: hooks/signal.c tells what the program asks for.
 */
#ifndef RL_GUARD_H
#define RL_GUARD_H

#include <signal.h>

#include "port.h"

/* From now on. Once; any thread. */
void rl_guard_begin(void);

/* The library that has @inside calls the functions below, too. Before it does; one thread. */
void rl_guard_add_text(void (*inside)(void));

/* Copies @n octets, as rl_copy_in_order(). False: some of @dst or @src is not there; part may have been copied. */
bool rl_guard_copy(void *dst, const void *src, size_t n);

/* Can the @n octets at @p be read? */
bool rl_guard_readable(const void *p, size_t n);

/* Calls @fn, which may be left in the middle: then false. What it holds is the caller's to sort. */
bool rl_guard_run(void (*fn)(void *arg), void *arg);

/*
 * As sigaction(), of SIGSEGV and SIGBUS once the guard has begun. False: it is the kernel's to do.
 * No lock: a handler may call it.
 */
bool rl_guard_action(int sig, const struct sigaction *new, struct sigaction *old);

/* This thread's mask has changed: SIGSEGV and SIGBUS may be blocked, and a fault would be death. */
void rl_guard_mask_changed(void);

#endif
