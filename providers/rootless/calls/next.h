/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The function that a function of libweft-judge.so stands before. */
#ifndef RL_CALLS_NEXT_H
#define RL_CALLS_NEXT_H

#define RL_HOOK __attribute__((visibility("default")))

/* Of @library, if no library after this one has it: a plugin may have loaded that for itself. */
void *rl_next_function(const char *library, const char *name);

/* Ends the process if there is none: the program could not have called it. */
#define NEXT(library, f) ({						\
	static __typeof__(&f) next_;					\
	if (!__atomic_load_n(&next_, __ATOMIC_RELAXED))			\
		__atomic_store_n(&next_, (__typeof__(&f))		\
				 rl_next_function(library, #f), __ATOMIC_RELAXED); \
	next_; })

#endif
