// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which of a fault file's calls a command is, and what the command says of it. */
#include "faults/faults.h"
#include "request.h"
#include "roce/port_switch.h"
#include "uverbs.h"
#include "weft/direct.h"

/* By number, without the extended commands' flag. */
static const enum rl_fault_call calls[] = {
	[IB_USER_VERBS_CMD_QUERY_DEVICE] = RL_FAULT_QUERY_DEVICE,
	[IB_USER_VERBS_CMD_QUERY_PORT] = RL_FAULT_QUERY_PORT,
	[IB_USER_VERBS_CMD_ALLOC_PD] = RL_FAULT_ALLOC_PD,
	[IB_USER_VERBS_CMD_REG_MR] = RL_FAULT_REG_MR,
	[IB_USER_VERBS_CMD_REREG_MR] = RL_FAULT_REREG_MR,
	[IB_USER_VERBS_CMD_ALLOC_MW] = RL_FAULT_ALLOC_MW,
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] = RL_FAULT_CREATE_COMP_CHANNEL,
	[IB_USER_VERBS_CMD_CREATE_CQ] = RL_FAULT_CREATE_CQ,
	[IB_USER_VERBS_CMD_RESIZE_CQ] = RL_FAULT_RESIZE_CQ,
	[IB_USER_VERBS_CMD_CREATE_QP] = RL_FAULT_CREATE_QP,
	[IB_USER_VERBS_CMD_MODIFY_QP] = RL_FAULT_MODIFY_QP,
	[IB_USER_VERBS_CMD_CREATE_SRQ] = RL_FAULT_CREATE_SRQ,
	[IB_USER_VERBS_CMD_MODIFY_SRQ] = RL_FAULT_MODIFY_SRQ,
	[IB_USER_VERBS_CMD_ATTACH_MCAST] = RL_FAULT_ATTACH_MCAST,
};

#define BIT_OF(status) (1u << (status))
#define NO_ANSWER	BIT_OF(IBV_WC_RETRY_EXC_ERR)
#define ANSWERS		(BIT_OF(IBV_WC_RNR_RETRY_EXC_ERR) | BIT_OF(IBV_WC_REM_OP_ERR))
/* Of the QP, by what its peer does: the request itself is right. */
#define OF_PEER		(NO_ANSWER | ANSWERS | BIT_OF(RL_FAULT_PEER_DEAD))
/* Of the QP, which finds the fault itself; the request is right, too. */
#define OF_DEVICE	(BIT_OF(IBV_WC_BAD_RESP_ERR) | BIT_OF(IBV_WC_FATAL_ERR) | \
			 BIT_OF(IBV_WC_GENERAL_ERR))

/* A peer that is not connected does not answer; one of UC never does. */
static u32 possible_statuses(const struct rl_qp *qp, u32 statuses)
{
	if (!rl_qp_may_fail(qp))
		statuses &= ~OF_DEVICE;
	if (qp->type != IBV_QPT_RC || !rl_qp_may_fail(qp))
		return statuses & ~OF_PEER;
	if (READ_ONCE(qp->core.state) != WEFT_QPS_RTS)
		return statuses & ~ANSWERS;
	return statuses;
}

static void describe_qp(struct rl_context *ctx, u32 handle, struct rl_fault_subject *s)
{
	const struct rl_qp *qp;

	pthread_mutex_lock(&ctx->lock);
	qp = rl_find_qp(ctx, handle);
	if (qp) {
		s->type = qp->type;
		s->qpn = qp->core.id;
		s->connected = rl_qp_may_fail(qp);
		s->statuses = possible_statuses(qp, s->statuses);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* The plain command and the extended one have different structures. */
static void command_read_subject(struct rl_context *ctx, const struct rl_command *c,
				 struct rl_fault_subject *s)
{
	bool extended = c->number & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	switch (s->call) {
	case RL_FAULT_REG_MR:
		s->size = ((const struct ib_uverbs_reg_mr *)c->in)->length;
		break;
	case RL_FAULT_REREG_MR:
		s->size = ((const struct ib_uverbs_rereg_mr *)c->in)->length;
		break;
	case RL_FAULT_CREATE_CQ:
		s->size = extended ? ((const struct ib_uverbs_ex_create_cq *)c->in)->cqe :
				     ((const struct ib_uverbs_create_cq *)c->in)->cqe;
		break;
	case RL_FAULT_RESIZE_CQ:
		s->size = ((const struct ib_uverbs_resize_cq *)c->in)->cqe;
		break;
	case RL_FAULT_CREATE_SRQ:
		s->size = ((const struct ib_uverbs_create_srq *)c->in)->max_wr;
		break;
	case RL_FAULT_CREATE_QP:
		s->type = extended ? ((const struct ib_uverbs_ex_create_qp *)c->in)->qp_type :
				     ((const struct ib_uverbs_create_qp *)c->in)->qp_type;
		break;
	case RL_FAULT_MODIFY_QP:
		/* Both have this structure first. */
		describe_qp(ctx, ((const struct ib_uverbs_modify_qp *)c->in)->qp_handle, s);
		break;
	default:
		break;
	}
}

/* ---- the device fails ---- */

/* Without a word to peers, which do not get answers any more. Context's lock. */
static void fail_qps(struct rl_context *ctx)
{
	struct rl_qp *qp;
	u32 h;

	for (h = 0; h < RL_CHUNK * RL_CHUNKS; h++) {
		if (!ctx->chunks[h / RL_CHUNK]) {
			h |= RL_CHUNK - 1;
			continue;
		}
		qp = rl_find_qp(ctx, h);
		if (qp)
			rl_qp_silence(qp);
	}
}

static void fail_device(struct rl_context *ctx)
{
	if (!rl_context_die(ctx))
		return;
	pthread_mutex_lock(&ctx->lock);
	fail_qps(ctx);
	pthread_mutex_unlock(&ctx->lock);
	rl_context_report_death(ctx);
}

/* Once the device has failed, every call with a result fails; what was made can be destroyed. */
static int ask_with_context(struct rl_context *ctx, const struct rl_fault_subject *s,
			    struct rl_fault *fault)
{
	int rv = READ_ONCE(ctx->dead) ? -EIO : rl_faults_ask(s, fault);

	if (rv)
		return rv;
	if (fault->effect == RL_FAULT_PORT)
		rl_port_flap(ctx->dev, (u32)fault->err);
	if (fault->effect != RL_FAULT_DEVICE)
		return 0;
	fail_device(ctx);
	return -EIO;
}

int rl_cmd_fault(struct rl_context *ctx, const struct rl_command *c)
{
	u32 number = c->number & ~IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct rl_fault_subject s = { .device = ctx->dev->name };
	struct rl_fault fault;

	if (!rl_faults_are_on() || number >= ARRAY_SIZE(calls) || !calls[number])
		return 0;
	s.call = calls[number];
	command_read_subject(ctx, c, &s);
	return ask_with_context(ctx, &s, &fault);
}

/* By enum weft_run_post. */
static const enum rl_fault_call posts[WEFT_RUN_POSTS] = {
	[WEFT_RUN_POST_SEND] = RL_FAULT_POST_SEND,
	[WEFT_RUN_POST_RECV] = RL_FAULT_POST_RECV,
	[WEFT_RUN_POST_SRQ_RECV] = RL_FAULT_POST_SRQ_RECV,
};

/* If QP @qpn still has the handle: the call may have been late. */
static void fault_qp(struct rl_context *ctx, u32 handle, u32 qpn, void (*act)(struct rl_qp *qp))
{
	struct rl_qp *qp;

	pthread_mutex_lock(&ctx->lock);
	qp = rl_find_qp(ctx, handle);
	if (qp && qp->core.id == qpn)
		act(qp);
	pthread_mutex_unlock(&ctx->lock);
}

/* The request that was to fail by @status is in the ring, and its QP is held. */
static void fault_posted(struct rl_context *ctx, u32 handle, u32 status)
{
	static const u8 verdicts[] = {
		[IBV_WC_RETRY_EXC_ERR] = WEFT_WC_RETRY_EXC_ERR,
		[IBV_WC_RNR_RETRY_EXC_ERR] = WEFT_WC_RNR_RETRY_EXC_ERR,
		[IBV_WC_REM_OP_ERR] = WEFT_WC_REM_OP_ERR,
		[IBV_WC_BAD_RESP_ERR] = WEFT_WC_BAD_RESP_ERR,
		[IBV_WC_FATAL_ERR] = WEFT_WC_FATAL_ERR,
		[IBV_WC_GENERAL_ERR] = WEFT_WC_GENERAL_ERR,
	};
	struct rl_qp *qp;

	pthread_mutex_lock(&ctx->lock);
	qp = rl_find_qp(ctx, handle);
	if (qp && status == RL_FAULT_PEER_DEAD)
		rl_qp_lose_peer(qp);
	else if (qp && status < ARRAY_SIZE(verdicts) && verdicts[status])
		rl_qp_give_up(qp, verdicts[status]);
	pthread_mutex_unlock(&ctx->lock);
}

static void describe_srq(struct rl_context *ctx, u32 handle, struct rl_fault_subject *s)
{
	struct rl_srq *srq;

	pthread_mutex_lock(&ctx->lock);
	srq = rl_find_srq(ctx, handle);
	s->armed = srq && rl_srq_is_armed(srq);
	pthread_mutex_unlock(&ctx->lock);
}

static void fault_srq(struct rl_context *ctx, u32 handle, void (*act)(struct rl_srq *srq))
{
	struct rl_srq *srq;

	pthread_mutex_lock(&ctx->lock);
	srq = rl_find_srq(ctx, handle);
	if (srq)
		act(srq);
	pthread_mutex_unlock(&ctx->lock);
}

static int fault_answer(struct rl_context *ctx, const struct weft_run_request *r, u32 qpn,
			const struct rl_fault *fault, int rv)
{
	if (fault->effect == RL_FAULT_QP)
		fault_qp(ctx, r->handle, qpn, rl_qp_fail);
	else if (fault->effect == RL_FAULT_SRQ_LIMIT)
		fault_srq(ctx, r->handle, rl_srq_reach_limit);
	else if (fault->effect == RL_FAULT_SRQ)
		fault_srq(ctx, r->handle, rl_srq_fail);
	else if (fault->effect == RL_FAULT_DEVICE)
		fail_device(ctx);
	else if (fault->effect == RL_FAULT_PORT)
		rl_port_flap(ctx->dev, (u32)fault->err);
	if (fault->effect != RL_FAULT_STATUS)
		return rv;
	if (!(BIT_OF(fault->err) & (OF_PEER | OF_DEVICE)))
		return -(WEFT_RUN_STATUS + fault->err);
	fault_qp(ctx, r->handle, qpn, rl_qp_hold_sends);
	return -(WEFT_RUN_AFTER + fault->err);
}

int rl_uverbs_fault(struct rl_file *f, const struct weft_run_request *r)
{
	struct rl_context *ctx = rl_context_of(f);
	struct rl_fault_subject s = {
		.device = ctx->dev->name, .size = r->size, .statuses = r->statuses,
		.opcode = r->statuses && r->post == WEFT_RUN_POST_SEND ? r->opcode + 1u : 0,
	};
	struct rl_fault fault;
	int rv;

	if (!rl_faults_are_on() || r->post >= WEFT_RUN_POSTS)
		return -ENOTTY;
	if (r->post == WEFT_RUN_AFTERWARDS) {
		fault_posted(ctx, r->handle, r->statuses - WEFT_RUN_AFTER);
		return 0;
	}
	if (s.statuses & NO_ANSWER)
		s.statuses |= BIT_OF(RL_FAULT_PEER_DEAD);
	s.call = posts[r->post];
	if (!s.call)
		return rl_faults_are_about(RL_FAULT_POST_SEND, RL_FAULT_POST_SRQ_RECV) ? 0 :
										 -ENOTTY;
	if (r->post == WEFT_RUN_POST_SRQ_RECV)
		describe_srq(ctx, r->handle, &s);
	else
		describe_qp(ctx, r->handle, &s);
	rv = rl_faults_ask(&s, &fault);
	return fault_answer(ctx, r, s.qpn, &fault, rv);
}

int rl_open_fault(const struct rl_device *d)
{
	const struct rl_fault_subject s = { .call = RL_FAULT_OPEN_DEVICE, .device = d->name };

	return rl_faults_are_on() ? rl_faults_ask(&s, NULL) : 0;
}

int rl_reg_dmabuf_fault(struct rl_context *ctx, u64 len)
{
	const struct rl_fault_subject s = {
		.call = RL_FAULT_REG_MR, .device = ctx->dev->name, .size = len,
	};
	struct rl_fault fault;

	return rl_faults_are_on() ? ask_with_context(ctx, &s, &fault) : 0;
}
