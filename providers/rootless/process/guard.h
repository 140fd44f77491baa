/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Registered memory belongs to the program and is not pinned: it may be unmapped at any time. The
 * library touches it under guard: a fault ends the access, not the program.
 *
 * Only a fault of an instruction of this library, or of one that was added, ends an access. Any
 * other goes to the handler that the program installed, or has its default effect: hooks/signal.c
 * passes on what the program asks for.
 */
#ifndef RL_GUARD_H
#define RL_GUARD_H

#include <signal.h>

#include "port.h"

/* Installs the handlers, once. Any thread. */
void rl_guard_begin(void);

/* The library that has @inside calls the functions below, too. Called before; one thread. */
void rl_guard_add_text(void (*inside)(void));

/*
 * Copies @n octets, as rl_copy_in_order(). False: part of @dst or @src is not mapped; some octets
 * may have been copied.
 */
bool rl_guard_copy(void *dst, const void *src, size_t n);

/* Can the @n octets at @p be read? */
bool rl_guard_readable(const void *p, size_t n);

/* Calls @fn. False: a fault left it in the middle, and the caller has to clean up after it. */
bool rl_guard_run(void (*fn)(void *arg), void *arg);

/*
 * As sigaction(), for SIGSEGV and SIGBUS once the guard is installed. False: pass the call to the
 * kernel. No lock: a handler may call it.
 */
bool rl_guard_action(int sig, const struct sigaction *new, struct sigaction *old);

/*
 * Each fault asks @first: true, and the instruction runs again. @is_ours: an access under guard.
 * @pc: NULL if it is unknown. In a signal's handler.
 */
typedef bool rl_guard_first_fn(const void *addr, const void *pc, bool is_ours);
void rl_guard_set_first(rl_guard_first_fn *first);

/*
 * This thread's mask has changed: SIGSEGV and SIGBUS may be blocked, and a fault would end the
 * process.
 */
void rl_guard_mask_changed(void);

#endif
