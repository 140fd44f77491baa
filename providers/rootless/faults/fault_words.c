// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names of calls, errors, statuses, opcodes and QP types in fault files and logs. */
#include <errno.h>

#include <infiniband/verbs.h>

#include "fault.h"
#include "kernel/uapi/rdma/weft-abi.h"

#define VERBS	(RL_FAULT_HAS_RESULT | RL_FAULT_HAS_DEVICE | RL_FAULT_HAS_CONTEXT)
#define OF_QP	(VERBS | RL_FAULT_HAS_TYPE | RL_FAULT_HAS_QP)
#define OCTETS	(RL_FAULT_HAS_SIZE | RL_FAULT_HAS_OCTETS)
#define OF_ID	(RL_FAULT_HAS_RESULT | RL_FAULT_HAS_TYPE)
#define ON_DEVICE (OF_ID | RL_FAULT_HAS_DEVICE)
#define BY_CQ	(RL_FAULT_HAS_DEVICE | RL_FAULT_HAS_TYPE | RL_FAULT_HAS_QP | \
		 RL_FAULT_HAS_CQ | OCTETS)

static const struct call {
	const char *name;
	u32 has;
} calls[RL_FAULT_CALLS] = {
	[RL_FAULT_OPEN_DEVICE] = { "open_device", RL_FAULT_HAS_RESULT | RL_FAULT_HAS_DEVICE },
	[RL_FAULT_QUERY_DEVICE] = { "query_device", VERBS },
	[RL_FAULT_QUERY_PORT] = { "query_port", VERBS },
	[RL_FAULT_ALLOC_PD] = { "alloc_pd", VERBS },
	[RL_FAULT_REG_MR] = { "reg_mr", VERBS | OCTETS },
	[RL_FAULT_REREG_MR] = { "rereg_mr", VERBS | OCTETS },
	[RL_FAULT_ALLOC_MW] = { "alloc_mw", VERBS },
	[RL_FAULT_CREATE_COMP_CHANNEL] = { "create_comp_channel", VERBS },
	[RL_FAULT_CREATE_CQ] = { "create_cq", VERBS | RL_FAULT_HAS_SIZE },
	[RL_FAULT_RESIZE_CQ] = { "resize_cq", VERBS | RL_FAULT_HAS_SIZE },
	[RL_FAULT_CREATE_QP] = { "create_qp", VERBS | RL_FAULT_HAS_TYPE },
	[RL_FAULT_MODIFY_QP] = { "modify_qp", VERBS | RL_FAULT_HAS_TYPE },
	[RL_FAULT_CREATE_SRQ] = { "create_srq", VERBS | RL_FAULT_HAS_SIZE },
	[RL_FAULT_MODIFY_SRQ] = { "modify_srq", VERBS },
	[RL_FAULT_ATTACH_MCAST] = { "attach_mcast", VERBS },
	[RL_FAULT_POST_SEND] = { "post_send", OF_QP | OCTETS | RL_FAULT_HAS_REQUEST },
	[RL_FAULT_POST_RECV] = { "post_recv", OF_QP | OCTETS | RL_FAULT_HAS_RECEIVE },
	[RL_FAULT_POST_SRQ_RECV] = {
		"post_srq_recv", VERBS | OCTETS | RL_FAULT_HAS_SRQ | RL_FAULT_HAS_RECEIVE
	},
	[RL_FAULT_CREATE_ID] = { "create_id", OF_ID },
	[RL_FAULT_BIND_ADDR] = { "bind_addr", OF_ID },
	[RL_FAULT_RESOLVE_ADDR] = { "resolve_addr", OF_ID | RL_FAULT_HAS_EVENT },
	[RL_FAULT_RESOLVE_ROUTE] = { "resolve_route", ON_DEVICE | RL_FAULT_HAS_EVENT },
	[RL_FAULT_LISTEN] = { "listen", ON_DEVICE },
	[RL_FAULT_CONNECT] = { "connect", ON_DEVICE | RL_FAULT_HAS_EVENT },
	[RL_FAULT_ACCEPT] = { "accept", ON_DEVICE },
	[RL_FAULT_JOIN_MULTICAST] = { "join_multicast", ON_DEVICE },
	[RL_FAULT_SEND_COMPLETION] = { "send_completion", BY_CQ },
	[RL_FAULT_RECV_COMPLETION] = { "recv_completion", BY_CQ },
};

static const struct effect {
	const char *name;
	u32 needs;
} effects[] = {
	[RL_FAULT_QP] = { "qp_fatal", RL_FAULT_HAS_QP | RL_FAULT_HAS_RESULT },
	[RL_FAULT_CQ] = { "cq_overflow", RL_FAULT_HAS_CQ },
	[RL_FAULT_SRQ_LIMIT] = { "srq_limit", RL_FAULT_HAS_SRQ },
	[RL_FAULT_SRQ] = { "srq_err", RL_FAULT_HAS_SRQ },
	[RL_FAULT_DEVICE] = { "device_fatal", RL_FAULT_HAS_CONTEXT },
	[RL_FAULT_PORT] = { "port_down", RL_FAULT_HAS_CONTEXT },
	[RL_FAULT_LATEST] = { "latest", RL_FAULT_HAS_CQ },
};

#define ERRNO(e) { #e, e }

static const struct error {
	const char *name;
	int number;
} errors[] = {
	ERRNO(EPERM), ERRNO(ENOENT), ERRNO(EIO), ERRNO(ENXIO), ERRNO(EAGAIN), ERRNO(ENOMEM),
	ERRNO(EACCES), ERRNO(EFAULT), ERRNO(EBUSY), ERRNO(EEXIST), ERRNO(ENODEV), ERRNO(EINVAL),
	ERRNO(ENFILE), ERRNO(EMFILE), ERRNO(ENOSPC), ERRNO(EPROTO),
	ERRNO(EOPNOTSUPP), ERRNO(EADDRINUSE), ERRNO(EADDRNOTAVAIL), ERRNO(ENETDOWN),
	ERRNO(ENETUNREACH), ERRNO(ECONNABORTED), ERRNO(ECONNRESET), ERRNO(ETIMEDOUT),
	ERRNO(ECONNREFUSED), ERRNO(EHOSTUNREACH), ERRNO(EREMOTEIO),
};

#define OF_RD	"is of RD queue pairs, which no device has"
#define OF_TAGS	"is of tag matching, which these devices do not have"

/* What requests can be made to complete with: weft_sq_errors(), weft_rq_errors(). */
static const struct status {
	const char *name;
	int number;
} statuses[] = {
	{ "loc_len_err", IBV_WC_LOC_LEN_ERR }, { "loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR },
	{ "loc_prot_err", IBV_WC_LOC_PROT_ERR }, { "mw_bind_err", IBV_WC_MW_BIND_ERR },
	{ "rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR },
	{ "rem_access_err", IBV_WC_REM_ACCESS_ERR }, { "rem_op_err", IBV_WC_REM_OP_ERR },
	{ "retry_exc_err", IBV_WC_RETRY_EXC_ERR },
	{ "rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR },
	{ "bad_resp_err", IBV_WC_BAD_RESP_ERR }, { "fatal_err", IBV_WC_FATAL_ERR },
	{ "general_err", IBV_WC_GENERAL_ERR },
	{ "peer_dead", RL_FAULT_PEER_DEAD },
};

/* Verbs' statuses that no rule can give, and why. */
static const struct no_status {
	const char *name, *why;
} no_statuses[] = {
	{ "wr_flush_err", "is that of what waits when a QP fails: qp_fatal" },
	{ "loc_access_err", "is never a completion of weft's: a Write to a wrong region ends the "
			    "connection before it takes a receive" },
	{ "rem_abort_err", "is never a completion of weft's: UC and UD take no receive for a "
			   "message that is given up" },
	{ "resp_timeout_err", "is of the kernel's management datagrams" },
	{ "loc_eec_op_err", OF_RD }, { "loc_rdd_viol_err", OF_RD }, { "rem_inv_rd_req_err", OF_RD },
	{ "inv_eecn_err", OF_RD }, { "inv_eec_state_err", OF_RD },
	{ "tm_err", OF_TAGS }, { "tm_rndv_incomplete", OF_TAGS },
};

static const char *const opcodes[] = {
	[WEFT_WR_WRITE] = "write", [WEFT_WR_WRITE_IMM] = "write_imm", [WEFT_WR_SEND] = "send",
	[WEFT_WR_SEND_IMM] = "send_imm", [WEFT_WR_SEND_INV] = "send_inv", [WEFT_WR_READ] = "read",
	[WEFT_WR_LOCAL_INV] = "local_inv", [WEFT_WR_BIND_MW] = "bind_mw",
	[WEFT_WR_CMP_SWAP] = "cmp_swap", [WEFT_WR_FETCH_ADD] = "fetch_add",
};

static const struct type {
	const char *name;
	u32 number;
} types[] = {
	{ "rc", IBV_QPT_RC }, { "uc", IBV_QPT_UC }, { "ud", IBV_QPT_UD },
};

const char *rl_fault_call_name(enum rl_fault_call call)
{
	return call < RL_FAULT_CALLS ? calls[call].name : NULL;
}

enum rl_fault_call rl_fault_call_of(const char *name)
{
	u32 i;

	for (i = RL_FAULT_NO_CALL + 1; i < RL_FAULT_CALLS; i++)
		if (!strcmp(calls[i].name, name))
			return i;
	return RL_FAULT_NO_CALL;
}

u32 rl_fault_call_has(enum rl_fault_call call)
{
	return call < RL_FAULT_CALLS ? calls[call].has : 0;
}

const char *rl_fault_errno_name(int err)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].number == err)
			return errors[i].name;
	return NULL;
}

int rl_fault_errno_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].number;
	return 0;
}

const char *rl_fault_effect_name(enum rl_fault_effect effect)
{
	return effect < ARRAY_SIZE(effects) ? effects[effect].name : NULL;
}

enum rl_fault_effect rl_fault_effect_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(effects); i++)
		if (effects[i].name && !strcmp(effects[i].name, name))
			return i;
	return RL_FAULT_NOTHING;
}

u32 rl_fault_effect_needs(enum rl_fault_effect effect)
{
	return effect < ARRAY_SIZE(effects) ? effects[effect].needs : 0;
}

const char *rl_fault_status_name(int status)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].number == status)
			return statuses[i].name;
	return NULL;
}

int rl_fault_status_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (!strcmp(statuses[i].name, name))
			return statuses[i].number;
	return 0;
}

const char *rl_fault_no_status(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(no_statuses); i++)
		if (!strcmp(no_statuses[i].name, name))
			return no_statuses[i].why;
	return NULL;
}

/* Of receives the others are the sender's. */
bool rl_fault_status_fits(int status, enum rl_fault_call call)
{
	u32 has = rl_fault_call_has(call);

	return has & RL_FAULT_HAS_REQUEST ||
	       (has & RL_FAULT_HAS_RECEIVE &&
		(status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR));
}

const char *rl_fault_opcode_name(u32 opcode)
{
	return opcode && opcode <= ARRAY_SIZE(opcodes) ? opcodes[opcode - 1] : NULL;
}

u32 rl_fault_opcode_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		if (opcodes[i] && !strcmp(opcodes[i], name))
			return i + 1;
	return 0;
}

const char *rl_fault_type_name(u32 type)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].number == type)
			return types[i].name;
	return NULL;
}

u32 rl_fault_type_of(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return types[i].number;
	return 0;
}
