// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>

#include "wqe.h"

/* The verbs opcode for a number of the ABI, if there is one. */
struct wc_opcode {
	bool known;
	enum ibv_wc_opcode ibv;
};

/* WEFT_WCO_REG_MR stays unknown: only kernel consumers can post it. */
static const struct wc_opcode wc_opcodes[WEFT_WCO_NR] = {
	[WEFT_WCO_WRITE]	= { true, IBV_WC_RDMA_WRITE },
	[WEFT_WCO_SEND]		= { true, IBV_WC_SEND },
	[WEFT_WCO_READ]		= { true, IBV_WC_RDMA_READ },
	[WEFT_WCO_LOCAL_INV]	= { true, IBV_WC_LOCAL_INV },
	[WEFT_WCO_BIND_MW]	= { true, IBV_WC_BIND_MW },
	[WEFT_WCO_CMP_SWAP]	= { true, IBV_WC_COMP_SWAP },
	[WEFT_WCO_FETCH_ADD]	= { true, IBV_WC_FETCH_ADD },
	[WEFT_WCO_RECV]		= { true, IBV_WC_RECV },
	[WEFT_WCO_RECV_IMM]	= { true, IBV_WC_RECV_RDMA_WITH_IMM },
};

static const enum ibv_wc_status wc_statuses[] = {
	[WEFT_WC_SUCCESS]	  = IBV_WC_SUCCESS,
	[WEFT_WC_LOC_LEN_ERR]	  = IBV_WC_LOC_LEN_ERR,
	[WEFT_WC_LOC_QP_OP_ERR]	  = IBV_WC_LOC_QP_OP_ERR,
	[WEFT_WC_LOC_PROT_ERR]	  = IBV_WC_LOC_PROT_ERR,
	[WEFT_WC_FLUSH_ERR]	  = IBV_WC_WR_FLUSH_ERR,
	[WEFT_WC_MW_BIND_ERR]	  = IBV_WC_MW_BIND_ERR,
	[WEFT_WC_GENERAL_ERR]	  = IBV_WC_GENERAL_ERR,
	[WEFT_WC_REM_INV_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR,
	[WEFT_WC_REM_ACCESS_ERR]  = IBV_WC_REM_ACCESS_ERR,
	[WEFT_WC_REM_OP_ERR]	  = IBV_WC_REM_OP_ERR,
	[WEFT_WC_RETRY_EXC_ERR]	  = IBV_WC_RETRY_EXC_ERR,
	[WEFT_WC_RNR_RETRY_EXC_ERR] = IBV_WC_RNR_RETRY_EXC_ERR,
	[WEFT_WC_BAD_RESP_ERR]	  = IBV_WC_BAD_RESP_ERR,
	[WEFT_WC_FATAL_ERR]	  = IBV_WC_FATAL_ERR,
};
static_assert(sizeof(wc_statuses) / sizeof(wc_statuses[0]) == WEFT_WC_NR, "a status is missing");

/* Read once: the check and the use must see the same byte. */
static uint8_t read_once(const __u8 *p)
{
	return *(const volatile __u8 *)p;
}

static enum ibv_wc_status status_of(uint8_t status)
{
	return status < WEFT_WC_NR ? wc_statuses[status] : IBV_WC_GENERAL_ERR;
}

/* As mlx5 reports RoCE v2, and UCX expects: over UDP, over IPv4 or IPv6. */
#define SL_UDP	0x8
#define SL_IPV6	0x1
#define SL_IPV4	0x2

static void decode_extra(const struct weft_cqe *cqe, struct ibv_wc *wc)
{
	uint16_t flags = cqe->flags;

	if (flags & WEFT_CQE_GRH) {
		wc->wc_flags = IBV_WC_GRH;
		wc->src_qp = cqe->src_qp;
		wc->sl = SL_UDP | (flags & WEFT_CQE_IPV4 ? SL_IPV4 : SL_IPV6);
	}
	if (flags & WEFT_CQE_INV) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = cqe->inv_stag;
	} else if (flags & WEFT_CQE_IMM) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = htobe32((uint32_t)cqe->imm);
	}
}

void weft_cqe_decode(const struct weft_cqe *cqe, struct ibv_wc *wc)
{
	uint8_t opcode = read_once(&cqe->opcode);

	*wc = (struct ibv_wc){
		.wr_id = cqe->wr_id,
		.status = status_of(read_once(&cqe->status)),
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp_num = cqe->qp_num,
	};
	if (opcode < WEFT_WCO_NR && wc_opcodes[opcode].known)
		wc->opcode = wc_opcodes[opcode].ibv;
	else if (wc->status == IBV_WC_SUCCESS)
		wc->status = IBV_WC_GENERAL_ERR;
	decode_extra(cqe, wc);
}

void weft_cq_clean(struct weft_uring *cq, uint32_t qp_num)
{
	uint32_t n = weft_uring_filled(cq);
	uint32_t from = cq->idx + n;
	uint32_t to = from;

	/* Kept entries move towards the newest: the slots after that belong to the kernel. */
	while (n--) {
		const struct weft_cqe *cqe = weft_uring_slot(cq, --from);

		if (cqe->qp_num == qp_num)
			continue;
		if (--to != from)
			memcpy(weft_uring_slot(cq, to), cqe, sizeof(*cqe));
	}
	if (to != cq->idx) {
		cq->idx = to;
		weft_uring_release(cq);
	}
}
