/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What peers can make the process hold: connections that no program has. They are silent
 * (half-open; or refused or ended, until the peer has closed) or unread (requests whose events the
 * program has not read).
 *
 * Those with a number below the soft limit (process/file.h) are together at most rl_fd_share().
 * Then the oldest silent one is evicted for the next; while there is none, the next waits in TCP's
 * queue.
 *
 * The lock is a leaf.
 */
#ifndef RL_BUDGET_H
#define RL_BUDGET_H

#include "conn.h"

/* Must one leave before the next is accepted? */
bool rl_budget_is_spent(void);
/*
 * Evicts the oldest silent one, or one that has been slow to take the rest for long: false if there
 * is neither. No connection's lock.
 */
bool rl_budget_make_room(void);

/* Each with the connection's lock, but for rl_budget_leave(). */

/* @c is silent, and counts. */
void rl_budget_enter(struct rl_conn *c);
/* If @c is silent: it is unread from now on. */
void rl_budget_unread(struct rl_conn *c);
/* A program has @c, or it is dead. */
void rl_budget_leave(struct rl_conn *c);
/* Evicts @c if it is half-open or refused, or has ended and its peer has all: true if it did. */
bool rl_budget_evict(struct rl_conn *c);

#endif
