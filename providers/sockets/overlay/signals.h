/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Signal handlers of a program that runs with --sockets: they may call send(), recv() and others,
 * as over TCP. A signal that finds its thread inside the gate, where the thread may hold locks, is
 * deferred until the thread is outside. So the kernel calls our handler, and ours calls the
 * program's.
 *
 * Faults, and signals with which a thread ends itself, are never deferred. Any thread, any context.
 */
#ifndef RL_SIGNALS_H
#define RL_SIGNALS_H

#include <poll.h>
#include <signal.h>

#include "process/port.h"

/* Is @sig's handler called through ours? Without --sockets none is. */
bool rl_signal_is_ours(int sig);

/* The program asks for @new, which is changed to what the kernel is given. */
void rl_signal_wanted(int sig, struct sigaction *new);
/* What the program asked for before. */
struct sigaction rl_signal_requested(int sig);
/* Translates @old, the kernel's, to the program's: @requested if our handler is installed. */
void rl_signal_translate(struct sigaction *old, const struct sigaction *requested);
void (*rl_signal_handler(void (*old)(int sig), const struct sigaction *requested))(int sig);
/* libc has changed @sig's action itself. */
void rl_signal_changed(int sig);
/* Takes over handlers that were installed before. */
void rl_signals_begin(void);

/* Handlers that have run in this thread, and how many of them end a wait of TCP. */
struct rl_signals {
	u32 all, ending;
};
struct rl_signals rl_signals_seen(void);
/*
 * The thread is about to wait in the kernel, outside the gate; a handler that runs before it does
 * would not wake it. So the first handler from now on calls @end, which makes the wait return at
 * once. NULL: the wait is over.
 */
void rl_signal_ends(void (*end)(void *arg), void *arg);
/*
 * The same for a wait in poll(): overwrites the first descriptor of @list, so that poll() returns.
 */
void rl_signal_ends_poll(struct pollfd *list);
/* A wait that TCP would restart has ended: has no handler without SA_RESTART run since? */
bool rl_signals_restart(const struct rl_signals *before);

#endif
