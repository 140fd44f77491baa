/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The faults of this process: those of file WEFT_FAULTS. Each that happens is a line of the log.
 *
 * The place of a call asks rl_faults_are_on(), and only then says what call it is. No place is on
 * the way of data: where posts may fail, the provider has other functions from the start. Any
 * thread, inside the gate, without a lock.
 */
#ifndef RL_FAULTS_H
#define RL_FAULTS_H

#include "fault.h"
#include "process/options.h"

static inline bool rl_faults_are_on(void)
{
	return unlikely(rl_options()->faults != NULL);
}

/*
 * Decides about a call, waits as long as it is to be late, and logs that: 0, or -errno for the call
 * to return. *@fault (or NULL): what else is to happen.
 */
int rl_faults_ask(const struct rl_fault_subject *s, struct rl_fault *fault);

/* Is a rule about posting? If not, the provider never asks. */
bool rl_faults_are_about_posts(void);

/*
 * Replaces all rules by those of @len octets of @text, which need no terminator; counts of calls
 * start again. False: *@e says why, and the old rules stay. Thread-safe against calls that ask.
 * It has an effect only if rl_faults_are_on(): weft-run was given --faults, if only an empty file.
 * A context opened while no rule was about posts never asks about them.
 */
bool rl_faults_replace(const char *text, size_t len, struct rl_profile_error *e);

#endif
