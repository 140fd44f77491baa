/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who is at work in the library, so that fork() finds nobody there: its child has but the thread
 * that forked, and is to find no lock held, and nothing half done, by another.
 *
 * A call on a descriptor of ours is inside the gate, and the progress thread is but for its wait.
 * All locks of the library are taken inside. fork() shuts the gate and waits until all are out: so
 * nobody inside waits for the program, or for a thread that is outside. Who is inside is not
 * cancelled.
 *
 * Any thread. Entries nest. A program's handler may enter that interrupted somebody inside; --sockets puts its
 * handlers off instead (rl_gate_call_late()).
 */
#ifndef RL_GATE_H
#define RL_GATE_H

#include <pthread.h>

#include "port.h"

void rl_gate_enter(void);
void rl_gate_leave(void);

/*
 * The caller is about to wait for what may never come: he is outside until rl_gate_enter(), and may
 * be cancelled, from now on. *@out false: he stays inside, for so does a call that he has interrupted.
 */
void rl_gate_step_out(volatile bool *out);

/* Is the calling thread inside? */
bool rl_gate_is_inside(void);
/*
 * Where the calling thread is inside, or in fork(): @late is called once it is out, or first thing in the child. False:
 * it is outside, and nothing is called. For handlers of signals.
 */
bool rl_gate_call_late(void (*late)(bool is_child));
/* Does a fork() wait? Who is inside for long asks. */
bool rl_gate_is_shut(void);
/* This is a child of a fork() that called no handler. */
void rl_gate_forked(void);

/* pthread_once() that a child finds done or not begun. */
void rl_gate_once(pthread_once_t *once, void (*init)(void));

#endif
