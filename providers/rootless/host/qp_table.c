// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The QPs of this process, by number, and their references. */
#include <stdlib.h>
#include <sys/random.h>

#include "devices/limits.h"
#include "kernel/core/verbs.h"
#include "qp.h"

#define BUCKETS 4096
#define QPN_MAX 0xffffff

/* By number. A leaf. */
static struct {
	pthread_mutex_t lock;
	struct hlist_head bucket[BUCKETS];
	u32 count;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct rl_qp *find_qp(u32 qpn)
{
	struct rl_qp *qp;

	hlist_for_each_entry(qp, &table.bucket[qpn % BUCKETS], node)
		if (qp->core.id == qpn)
			return qp;
	return NULL;
}

void rl_qp_get(struct rl_qp *qp)
{
	__atomic_fetch_add(&qp->refs, 1, __ATOMIC_RELAXED);
}

/* The last reference: its queues and its handle were freed before. */
void rl_qp_put(struct rl_qp *qp)
{
	if (__atomic_sub_fetch(&qp->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free(qp->ud);
	free(qp->cable);
	free(qp);
}

struct rl_qp *rl_qp_find(u32 qpn)
{
	struct rl_qp *qp;

	pthread_mutex_lock(&table.lock);
	qp = find_qp(qpn);
	if (qp)
		rl_qp_get(qp);
	pthread_mutex_unlock(&table.lock);
	return qp;
}

/* The table's lock: a QP in the table has its context, which may be at its end. */
static bool get_own(struct rl_qp *qp)
{
	if (rl_file_is_inherited(&qp->ctx->file) || !rl_file_try_get(&qp->ctx->file))
		return false;
	rl_qp_get(qp);
	return true;
}

void rl_qp_put_own(struct rl_qp *qp)
{
	struct rl_file *f = &qp->ctx->file;

	rl_qp_put(qp);
	rl_file_put(f);
}

struct rl_qp *rl_qp_find_own(u32 qpn)
{
	struct rl_qp *qp;

	pthread_mutex_lock(&table.lock);
	qp = find_qp(qpn);
	if (qp && !get_own(qp))
		qp = NULL;
	pthread_mutex_unlock(&table.lock);
	return qp;
}

/* An RNIC's number has no meaning: a random free one. 0 and 1 are reserved. */
static u32 draw_number(void)
{
	u32 qpn;

	do {
		if (getrandom(&qpn, sizeof(qpn), 0) != sizeof(qpn))
			return 0;
		qpn &= QPN_MAX;
	} while (qpn < 2 || find_qp(qpn));
	return qpn;
}

/* With the table's lock. */
static int insert_qp(struct rl_qp *qp)
{
	if (!qp->core.id)
		qp->core.id = draw_number();
	if (!qp->core.id || table.count >= RL_MAX_QP)
		return -ENOMEM;
	table.count++;
	hlist_add_head(&qp->node, &table.bucket[qp->core.id % BUCKETS]);
	return 0;
}

int rl_qp_enlist(struct rl_qp *qp)
{
	int rv;

	pthread_mutex_lock(&table.lock);
	rv = insert_qp(qp);
	pthread_mutex_unlock(&table.lock);
	return rv;
}

void rl_qp_delist(struct rl_qp *qp)
{
	pthread_mutex_lock(&table.lock);
	hlist_del(&qp->node);
	table.count--;
	pthread_mutex_unlock(&table.lock);
}

/* In the order of buckets, then of numbers. The table's lock. */
static struct rl_qp *qp_after(u32 qpn)
{
	struct rl_qp *qp, *next = NULL;
	u32 at;

	for (at = qpn % BUCKETS; at < BUCKETS && !next; at++) {
		hlist_for_each_entry(qp, &table.bucket[at], node)
			if (qp->core.id > qpn && (!next || qp->core.id < next->core.id))
				next = qp;
		qpn = 0;
	}
	return next;
}

struct rl_qp *rl_qp_next(u32 after, struct rl_qp_brief *b)
{
	struct rl_qp *qp;

	pthread_mutex_lock(&table.lock);
	for (qp = qp_after(after); qp && !get_own(qp); qp = qp_after(after))
		after = qp->core.id;
	if (qp) {
		*b = (struct rl_qp_brief){
			.qpn = qp->core.id, .dev = qp->ctx->dev, .type = qp->type,
		};
	}
	pthread_mutex_unlock(&table.lock);
	return qp;
}

struct rl_qp *rl_qp_next_user(const struct rl_cq *cq, u32 *at)
{
	struct rl_qp *qp = NULL;

	pthread_mutex_lock(&table.lock);
	for (; *at < BUCKETS; ++*at) {
		hlist_for_each_entry(qp, &table.bucket[*at], node)
			if (weft_qpc_uses_cq(&qp->core, &cq->core) &&
			    READ_ONCE(qp->core.state) != WEFT_QPS_ERROR)
				break;
		if (qp)
			break;
	}
	if (qp && !get_own(qp))
		qp = NULL;
	pthread_mutex_unlock(&table.lock);
	return qp;
}
