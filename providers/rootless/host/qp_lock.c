// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From a QP to the lock of its connection, which may change meanwhile. */
#include "conn.h"
#include "qp.h"

/* The QP may get another connection meanwhile, but not this one again. */
struct rl_conn *rl_conn_of_qp(struct rl_qp *qp)
{
	struct rl_conn *c;

	for (;;) {
		rl_lock(&qp->lock);
		c = qp->conn;
		if (c)
			rl_conn_get(c);
		rl_unlock(&qp->lock);
		if (!c)
			return NULL;
		rl_conn_lock(c);
		if (c->qp == qp)
			return c;
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}

struct rl_conn *rl_qp_lock_core(struct rl_qp *qp)
{
	struct rl_conn *c;

	for (;;) {
		c = rl_conn_of_qp(qp);
		if (c)
			return c;
		rl_lock(&qp->lock);
		if (!qp->conn)
			return NULL;
		rl_unlock(&qp->lock);
	}
}

void rl_qp_unlock_core(struct rl_qp *qp, struct rl_conn *c)
{
	if (c) {
		rl_conn_unlock(c);
		rl_conn_put(c);
	} else {
		rl_unlock(&qp->lock);
	}
}

void rl_qp_poke(struct rl_qp *qp)
{
	struct rl_conn *c;

	rl_lock(&qp->lock);
	c = qp->conn;
	if (c)
		rl_conn_poke(c);
	rl_unlock(&qp->lock);
}
