/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which of several processes uses a socket that was accepted. Inside the gate. */
#ifndef RL_CLAIMS_H
#define RL_CLAIMS_H

#include <stdbool.h>

struct rl_sock;

/* @sk is not used yet, and has a word from the next fork() on. */
void rl_claims_add(struct rl_sock *sk);
/* It is used, or plain. */
void rl_claims_remove(struct rl_sock *sk);
/* It is freed. */
void rl_claims_free(struct rl_sock *sk);
/* This process uses @sk. False: another one has it. */
bool rl_claims_win(struct rl_sock *sk);

/* Handlers of fork(). */
void rl_claims_before_fork(void);
void rl_claims_in_child(void);

#endif
