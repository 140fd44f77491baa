// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>

#include "budget.h"
#include "process/file.h"
#include "process/stats.h"

/* Above the limit, too, each takes memory of the kernel's and of ours. */
#define CLAIMS_MAX	1024
/*
 * Silent connections that are tried: a Request may just have arrived. If none goes, as many more
 * are tried, and one that is slow to take what was sent is reset.
 */
#define LOOKS		16

static struct {
	pthread_mutex_t lock;
	struct list_head silent;	/* the oldest first */
	struct list_head unread;
	u32 n, charged;			/* all; those below the soft limit */
	u32 forks;			/* rl_fd_forks() then: a child begins anew */
} budget = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.silent = LIST_HEAD_INIT(budget.silent),
	.unread = LIST_HEAD_INIT(budget.unread),
};

/* ---- claims ---- */

/* A child's own: connections that it has inherited are its parent's, and only that evicts them. */
static void budget_begin(void)
{
	u32 forks = rl_fd_forks();

	pthread_mutex_lock(&budget.lock);
	if (budget.forks == forks)
		return;
	INIT_LIST_HEAD(&budget.silent);
	INIT_LIST_HEAD(&budget.unread);
	WRITE_ONCE(budget.n, 0);
	WRITE_ONCE(budget.charged, 0);
	WRITE_ONCE(budget.forks, forks);
}

static enum rl_claim claim_of(const struct rl_conn *c)
{
	return c->claim_forks == budget.forks ? c->claim : RL_CLAIM_NONE;
}

void rl_budget_enter(struct rl_conn *c)
{
	bool charged = rl_fd_is_charged(c->fd);

	budget_begin();
	if (claim_of(c) == RL_CLAIM_NONE) {
		c->claim_forks = budget.forks;
		c->charged = charged;
		WRITE_ONCE(budget.n, budget.n + 1);
		WRITE_ONCE(budget.charged, budget.charged + charged);
	} else {
		list_del(&c->claim_node);
	}
	list_add_tail(&c->claim_node, &budget.silent);
	c->claim = RL_CLAIM_SILENT;
	pthread_mutex_unlock(&budget.lock);
}

void rl_budget_unread(struct rl_conn *c)
{
	budget_begin();
	if (claim_of(c) == RL_CLAIM_SILENT) {
		list_move(&c->claim_node, &budget.unread);
		c->claim = RL_CLAIM_UNREAD;
	}
	pthread_mutex_unlock(&budget.lock);
}

void rl_budget_leave(struct rl_conn *c)
{
	budget_begin();
	if (claim_of(c) != RL_CLAIM_NONE) {
		list_del(&c->claim_node);
		WRITE_ONCE(budget.n, budget.n - 1);
		WRITE_ONCE(budget.charged, budget.charged - c->charged);
		c->claim = RL_CLAIM_NONE;
	}
	pthread_mutex_unlock(&budget.lock);
}

/* ---- eviction ---- */

static bool evict(struct rl_conn *c, bool pressed)
{
	struct weft_tcp_view v;

	rl_conn_receive(c);
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_evict(&c->link, &v, pressed));
	if (c->link.state != WEFT_LINK_DEAD)
		return false;
	rl_count(RL_EVICTED, 1);
	return true;
}

bool rl_budget_evict(struct rl_conn *c)
{
	return evict(c, false);
}

/*
 * The oldest silent connection, referenced; NULL: there is none. It is the youngest from now on: if
 * it stays, the others are tried before it.
 */
static struct rl_conn *next_silent(void)
{
	struct rl_conn *c;

	budget_begin();
	c = list_first_entry_or_null(&budget.silent, struct rl_conn, claim_node);
	if (c) {
		list_move_tail(&c->claim_node, &budget.silent);
		rl_conn_get(c);
	}
	pthread_mutex_unlock(&budget.lock);
	return c;
}

bool rl_budget_make_room(void)
{
	bool gone = false;
	struct rl_conn *c;
	u32 i;

	for (i = 0; i < 2 * LOOKS && !gone && (c = next_silent()); i++) {
		rl_conn_lock(c);
		if (c->claim == RL_CLAIM_SILENT)
			gone = evict(c, i >= LOOKS);
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
	return gone;
}

bool rl_budget_is_spent(void)
{
	u32 charged = READ_ONCE(budget.charged);

	if (READ_ONCE(budget.forks) != rl_fd_forks())
		return false;
	return READ_ONCE(budget.n) >= CLAIMS_MAX ||
	       (charged && charged >= rl_fd_share() && !rl_fd_has_above());
}
