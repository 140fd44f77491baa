/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Second names of hooks: on 64-bit machines those with 64 are the same functions, as in libc.
 */
#ifndef RL_ALIAS_H
#define RL_ALIAS_H

/* @name, which is declared, is hook @of. */
#define RL_ALIAS(of, name) \
	extern __typeof__(name) name __attribute__((alias(#of), visibility("default")))

#endif
