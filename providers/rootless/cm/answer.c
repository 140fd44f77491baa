// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The passive side: the program accepts or rejects a request. */
#include "id.h"
#include "ud.h"
#include "process/options.h"
#include "devices/limits.h"
#include "host/qp.h"
#include "judge/adverse.h"
#include "request.h"

/* Sends the Reply and enters Full Operation at once. */
static int send_reply(struct rl_conn *c, struct rl_qp *qp, const struct rdma_ucm_conn_param *p)
{
	rl_conn_receive(c);
	return rl_conn_accept(c, qp, p->responder_resources, p->initiator_depth, p->private_data,
			      p->private_data_len);
}

static int answer_accept(struct rl_conn *c, const struct rdma_ucm_conn_param *p)
{
	struct rl_qp *qp;
	int rv = -EINVAL;

	if (c->link.state != WEFT_LINK_REQUESTED)
		return -ECONNRESET;
	qp = p->valid ? rl_qp_find(p->qp_num) : NULL;
	if (!qp)
		return -EINVAL;
	c->rnr_ms = rl_adverse_rnr_ms(p->rnr_retry_count, rl_options()->rnr_ms);
	rv = send_reply(c, qp, p);
	rl_qp_put(qp);
	return rv ? rv : rl_cm_report_established(c, RL_CM_ESTABLISHED, NULL, 0);
}

/* Accepting failed: the peer gets a rejection if it still waits. */
static void answer_accept_failed(struct rl_conn *c)
{
	rl_conn_release_qp(c);
	rl_cmid_leave(c);
	rl_conn_accept_failed(c);
}

/* Only an id with a uid gets events; 0 takes the uid back. */
static void set_uid(struct rl_cmid *id, u64 uid)
{
	rl_cmid_table_lock();
	id->uid = uid;
	rl_cmid_table_unlock();
}

/*
 * The request counts as answered now. Its connection, locked and referenced; NULL: there is none
 * any more.
 */
static struct rl_conn *answer_take_request(struct rl_cmid *id)
{
	id->phase = RL_CM_ANSWERED;
	rl_cmid_table_lock();
	rl_request_leave(id);
	rl_cmid_table_unlock();
	return rl_cmid_lock_conn(id);
}

int rl_cm_accept(struct rl_cmid *id, u64 uid, const struct rdma_ucm_conn_param *p)
{
	struct rl_conn *c;
	int rv;

	/* The program has seen CONNECT_RESPONSE, and needs nothing more. */
	if (id->phase == RL_CM_CONNECT && !p->valid && rl_options()->roce)
		return 0;
	if (id->phase != RL_CM_REQUEST)
		return -EINVAL;
	if (id->sidr_request)
		return rl_sidr_server_accept(id, uid, p);
	c = answer_take_request(id);
	if (!c)
		return -ECONNRESET;
	set_uid(id, uid);
	rv = answer_accept(c, p);
	if (rv) {
		set_uid(id, 0);
		answer_accept_failed(c);
	}
	c->step_due = true;
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}

int rl_cm_refuse(struct rl_conn *c, const void *pd, u32 pd_len)
{
	bool waits = c->link.state == WEFT_LINK_REQUESTED;

	rl_cmid_leave(c);
	if (!waits)
		return -ECONNRESET;
	rl_conn_reject(c, pd, pd_len);
	return 0;
}

int rl_cm_reject(struct rl_cmid *id, const void *pd, u32 pd_len)
{
	struct rl_conn *c;
	int rv;

	if (id->phase != RL_CM_REQUEST)
		return -EINVAL;
	if (id->sidr_request)
		return rl_sidr_server_reject(id, pd, pd_len);
	c = answer_take_request(id);
	if (!c)
		return -ECONNRESET;
	rv = rl_cm_refuse(c, pd, pd_len);
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}
