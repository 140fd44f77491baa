/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The faults of this process, from file WEFT_FAULTS or weft-ctl. Each one that happens is logged.
 *
 * A call first asks rl_faults_are_on(), and describes itself only then. The data path does not ask:
 * if posts may fail, the provider has other functions from the start. Any thread, inside the gate,
 * without a lock.
 */
#ifndef RL_FAULTS_H
#define RL_FAULTS_H

#include "fault.h"
#include "process/options.h"

static inline bool rl_faults_are_on(void)
{
	return unlikely(rl_options()->faults != NULL || rl_options()->control);
}

/*
 * Decides about a call, waits as long as it is to be late, and logs that: 0, or -errno for the call
 * to return. *@fault (or NULL): what else is to happen.
 */
int rl_faults_ask(const struct rl_fault_subject *s, struct rl_fault *fault);

/* The same for what is no call, and cannot wait here: the caller delays it. Any lock. */
void rl_faults_look(const struct rl_fault_subject *s, struct rl_fault *fault);

/* Is a rule about one of these? If not, do not ask. */
bool rl_faults_are_about(enum rl_fault_call first, enum rl_fault_call last);

/*
 * For weft-ctl: all rules are replaced by those of @len octets of @text, and calls are counted from
 * 1 again. False: *@e says why, and the old rules stay.
 */
bool rl_faults_replace(const char *text, size_t len, struct rl_profile_error *e);

#endif
