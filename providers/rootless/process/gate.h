/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keeps fork() out while a thread is in the library: the child has only the forking thread, and
 * must find no lock held and no change half made by another.
 *
 * A call on one of our descriptors is inside the gate; so is the progress thread, except while it
 * waits. All locks of the library are taken inside. fork() shuts the gate and waits until it is
 * empty: a thread inside must not wait for the program or for a thread outside. A thread inside is
 * not cancelled.
 *
 * Any thread. Entries nest. A handler of the program may enter on top of a call inside; --sockets
 * defers its program's handlers instead (rl_gate_call_late()).
 */
#ifndef RL_GATE_H
#define RL_GATE_H

#include <pthread.h>

#include "port.h"

void rl_gate_enter(void);
void rl_gate_leave(void);

/*
 * The caller is about to wait for something that may never happen: it is outside, and may be
 * cancelled, until rl_gate_enter(). *@out false: it stays inside, because it interrupted a call
 * that is.
 */
void rl_gate_step_out(volatile bool *out);

/* Is the calling thread inside? */
bool rl_gate_is_inside(void);
/*
 * If the calling thread is inside, or in fork(): @late is called once it is outside, or first in
 * the child. False: it is outside, and @late is not called. For signal handlers.
 */
bool rl_gate_call_late(void (*late)(bool is_child));
/* Does a fork() wait? A thread that stays inside for long checks this. */
bool rl_gate_is_shut(void);
/* This is a child of a fork() that ran no handler. */
void rl_gate_forked(void);

/* pthread_once() that is never half done in a child. */
void rl_gate_once(pthread_once_t *once, void (*init)(void));

#endif
