/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Handlers of a program of sockets, which may call send(), recv() and others, as over TCP. A signal
 * that finds its thread inside the gate, where it may have locks, is put off until the thread is
 * out. So the kernel calls a handler of ours, and that the program's.
 *
 * Faults, and signals that a thread sends itself to end, are never put off. Any thread, any
 * context.
 */
#ifndef RL_SIGNALS_H
#define RL_SIGNALS_H

#include <poll.h>
#include <signal.h>

#include "process/port.h"

/* Is @sig's handler called through ours? Without --sockets none is. */
bool rl_signal_is_ours(int sig);

/* The program wants @new, and the kernel is to have it as it is changed here. */
void rl_signal_wanted(int sig, struct sigaction *new);
/* What the program wanted before. */
struct sigaction rl_signal_wish(int sig);
/* @old is the kernel's, and becomes the program's, which is @wish if ours is called. */
void rl_signal_translate(struct sigaction *old, const struct sigaction *wish);
void (*rl_signal_handler(void (*old)(int sig), const struct sigaction *wish))(int sig);
/* libc has changed @sig's action by itself. */
void rl_signal_changed(int sig);
/* Handlers that were there first. */
void rl_signals_begin(void);

/* Handlers that have run in this thread, and those of them that end a wait of TCP's. */
struct rl_signals {
	u32 all, ending;
};
struct rl_signals rl_signals_seen(void);
/*
 * The thread is about to wait in the kernel, outside the gate, and a handler that comes before it
 * does would be slept through: the first that comes from now on calls @end, which lets the wait end
 * at once. NULL: it waits no more.
 */
void rl_signal_ends(void (*end)(void *arg), void *arg);
/*
 * The same of a wait in poll(): it ends by @list's first entry, for which the kernel has no number
 * then.
 */
void rl_signal_ends_poll(struct pollfd *list);
/* A wait that TCP would go on with has ended: no handler without SA_RESTART has run since? */
bool rl_signals_restart(const struct rl_signals *before);

#endif
