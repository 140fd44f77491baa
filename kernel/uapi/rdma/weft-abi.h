/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * weft: the interface between the kernel driver (or another host of the same
 * stack) and its rdma-core provider. Frozen: fields are only ever added in
 * what is reserved here, and announced by a feature bit. docs/abi.md tells the
 * whys; size and offset of every field are asserted on both sides
 * (WEFT_ABI_ASSERTS below).
 */
#ifndef WEFT_ABI_H
#define WEFT_ABI_H

#include <linux/types.h>

#define WEFT_ABI_VERSION	1

/* Private until upstream assigns one; the provider matches a list. "weft" */
#define WEFT_DRIVER_ID		0x77656674
/* The clock of completions' timestamps: nanoseconds. */
#define WEFT_CLOCK_KHZ		1000000

/* Of the device's attributes: 24 bits, as an OUI, but unassigned. "wft" */
#define WEFT_VENDOR_ID		0x776674

/*
 * Rings
 *
 * Each queue is one mmap of the command fd: struct weft_ring, then its entries
 * from WEFT_RING_DATA on. Indices run freely, modulo 2^32; entry i stands in
 * slot i & (slots - 1). Each side has a cache line. Of the user's the kernel
 * writes one field: it clears arm. It keeps private copies of its own indices
 * and never reads them back; it reads a user index once and refuses what is
 * out of range.
 */
#define WEFT_RING_DATA		256
#define WEFT_SLOT_SIZE		64

struct weft_ring {
	/* Written by the user. */
	__u32 user_idx;		/* SQ, RQ, SRQ: producer, in slots; CQ: consumer, in entries */
	__u32 arm;		/* CQ: WEFT_ARM_*, cleared by the kernel when it fires */
	__u32 user_reserved[30];
	/* Written by the kernel. */
	__u32 kern_idx;		/* SQ, RQ, SRQ: consumer, in slots; CQ: producer, in entries */
	__u32 flags;		/* WEFT_RING_* */
	__u32 kern_reserved[30];
};

/* struct weft_ring.arm */
enum {
	WEFT_ARM_NONE		= 0,
	WEFT_ARM_SOLICITED	= 1,	/* the next solicited completion or error */
	WEFT_ARM_NEXT		= 2,	/* the next completion */
};

/* struct weft_ring.flags */
enum {
	/*
	 * SQ, RQ, SRQ: after user_idx was moved, and a full barrier, the user looks at this flag;
	 * if it is set the kernel is asleep and must be kicked with WEFT_METHOD_QP_KICK, for an SRQ
	 * WEFT_METHOD_SRQ_KICK. The kernel sets it, full barrier, and looks at user_idx again
	 * before it sleeps.
	 */
	WEFT_RING_KICK		= 1 << 0,
	/* CQ: an entry was lost for want of room; the CQ is dead. */
	WEFT_RING_OVERFLOW	= 1 << 1,
	/*
	 * CQ, with WEFT_FEATURE_LINGER: the kernel lingers, see there. Poll_cq that
	 * finds nothing calls WEFT_METHOD_CQ_KICK if something was posted since the
	 * last such call to a QP whose send CQ it is.
	 */
	WEFT_RING_POLL		= 1 << 2,
};

/*
 * Work requests
 */
struct weft_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* struct weft_sq_wqe.opcode */
enum {
	WEFT_WR_WRITE		= 0,
	WEFT_WR_WRITE_IMM	= 1,	/* WEFT_FEATURE_IMM */
	WEFT_WR_SEND		= 2,
	WEFT_WR_SEND_IMM	= 3,	/* WEFT_FEATURE_IMM */
	WEFT_WR_SEND_INV	= 4,
	WEFT_WR_READ		= 5,
	WEFT_WR_READ_INV	= 6,
	WEFT_WR_LOCAL_INV	= 7,
	WEFT_WR_REG_MR		= 8,	/* kernel consumers only */
	WEFT_WR_BIND_MW		= 9,	/* WEFT_FEATURE_MW */
	WEFT_WR_CMP_SWAP	= 10,	/* WEFT_FEATURE_ATOMICS */
	WEFT_WR_FETCH_ADD	= 11,	/* WEFT_FEATURE_ATOMICS */
	WEFT_WR_NR
};

/* struct weft_sq_wqe.flags */
enum {
	WEFT_WR_SIGNALED	= 1 << 0,
	WEFT_WR_FENCE		= 1 << 1,
	WEFT_WR_SOLICITED	= 1 << 2,
	/*
	 * data[] holds one struct weft_sge whose length counts the inline bytes
	 * (addr and lkey unused); they follow it at once, through the next slots.
	 */
	WEFT_WR_INLINE		= 1 << 3,
};

#define WEFT_SQ_DATA		32	/* bytes of data[] in a WQE's first slot */
#define WEFT_MAX_SGE		32
#define WEFT_MAX_INLINE		512
/* slots of the longest WQE: header, 2 SGEs, 8 more slots of 4 SGEs or 64 inline bytes */
#define WEFT_SQ_MAX_SLOTS	9

/*
 * A send queue entry: nslots slots, wrapping at the ring's end. data[] goes on
 * through the following slots. What stands in it:
 *   WRITE, SEND, READ and their kin: num_sge struct weft_sge, or inline data;
 *   CMP_SWAP, FETCH_ADD: one struct weft_sge, then struct weft_wr_atomic, whose masks
 *   are the plain operation's if the entry is one slot long;
 *   BIND_MW: struct weft_wr_bind; REG_MR: struct weft_wr_reg; LOCAL_INV: nothing.
 * Of a UD QP, which takes SEND and SEND_IMM: struct weft_wr_ud, and from the second slot on SGEs or
 * inline data.
 */
struct weft_sq_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;			/* WEFT_WR_* */
	__u8 flags;
	__u8 nslots;			/* 1 to WEFT_SQ_MAX_SLOTS */
	__u8 num_sge;			/* 0 to 32; 1 when inline */
	__u32 rkey;			/* remote STag: WRITE, READ, atomics */
	__aligned_u64 remote_addr;	/* remote TO */
	union {
		__aligned_u64 imm;	/* *_IMM: 8 octets; 4-byte verbs use the low half */
		struct {
			__u32 inv_stag;	/* SEND_INV, READ_INV (derived), LOCAL_INV */
			__u32 reserved;
		};
	};
	__u8 data[WEFT_SQ_DATA];
};

/*
 * Operands as host-order numbers. Plain operations: CMP_SWAP masks all ones, FETCH_ADD mask 0
 * (one 64-bit field, RFC 7306 §5.1.1).
 */
struct weft_wr_atomic {
	__aligned_u64 compare;		/* CMP_SWAP */
	__aligned_u64 swap_add;		/* swap, or the addend */
	/* In the second slot. */
	__aligned_u64 compare_mask;
	__aligned_u64 swap_add_mask;	/* FETCH_ADD: RFC 7306 §5.1.1 field boundaries */
};

/* Where a datagram goes. WEFT_FEATURE_ROCE_TYPES. */
struct weft_wr_ud {
	__u8 dgid[16];
	__u32 qkey;			/* with the highest bit: the QP's own */
	__u32 qpn;			/* 24 bits */
	__u32 reserved0;		/* UDP's sockets choose the flow label */
	__u8 sgid_index;		/* of the port's table */
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 reserved;
};

struct weft_wr_bind {
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 mw_stag;			/* the new STag of the window */
	__u32 mr_lkey;
	__u32 access;			/* IB_ACCESS_* */
	__u32 reserved;
};

struct weft_wr_reg {
	__u32 stag;			/* of the region, with its new key byte */
	__u32 access;			/* IB_ACCESS_* */
	__aligned_u64 reserved[3];
};

/*
 * A receive queue entry (RQ and SRQ): stride slots, the same for all entries of
 * the queue. The SGEs follow through the stride.
 */
struct weft_rq_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
	__u8 data[48];			/* struct weft_sge */
};

/*
 * A completion. The consumer may use its fields in any way once user_idx has
 * not yet passed it; status and opcode are checked before they index anything.
 */
struct weft_cqe {
	__aligned_u64 wr_id;
	__u32 qp_num;
	__u8 status;			/* WEFT_WC_* */
	__u8 opcode;			/* WEFT_WCO_* */
	__u16 flags;			/* WEFT_CQE_* */
	__u32 byte_len;
	__u32 inv_stag;			/* with WEFT_CQE_INV */
	__aligned_u64 imm;		/* with WEFT_CQE_IMM: 8 octets */
	__aligned_u64 timestamp;	/* with WEFT_CQE_TIMESTAMP: nanoseconds, CLOCK_MONOTONIC */
	__u32 vendor_err;		/* a received or sent Terminate: layer<<12 | etype<<8 |
					 * code */
	__u32 src_qp;			/* with WEFT_CQE_GRH */
	__u32 reserved[4];
};

/* struct weft_cqe.flags */
enum {
	WEFT_CQE_INV		= 1 << 0,
	WEFT_CQE_IMM		= 1 << 1,
	WEFT_CQE_TIMESTAMP	= 1 << 2,
	WEFT_CQE_SOLICITED	= 1 << 3,
	WEFT_CQE_GRH		= 1 << 4,	/* a datagram: byte_len counts 40 octets before
						 * it, too */
	WEFT_CQE_IPV4		= 1 << 5,	/* of these the last 20 are IPv4's header, else
						 * all IPv6's */
};

/* struct weft_cqe.status: the numbers are ABI, not those of enum ibv_wc_status */
enum {
	WEFT_WC_SUCCESS		= 0,
	WEFT_WC_LOC_LEN_ERR	= 1,
	WEFT_WC_LOC_QP_OP_ERR	= 2,
	WEFT_WC_LOC_PROT_ERR	= 3,
	WEFT_WC_FLUSH_ERR	= 4,
	WEFT_WC_MW_BIND_ERR	= 5,
	WEFT_WC_GENERAL_ERR	= 6,	/* an older reader takes it and those after 11 for this */
	WEFT_WC_REM_INV_REQ_ERR	= 7,
	WEFT_WC_REM_ACCESS_ERR	= 8,
	WEFT_WC_REM_OP_ERR	= 9,
	WEFT_WC_RETRY_EXC_ERR	= 10,	/* the peer was never there, has failed, or is gone: of QPs
					 * that look like InfiniBand's */
	WEFT_WC_RNR_RETRY_EXC_ERR = 11,	/* and of those: it had no receive in time */
	WEFT_WC_BAD_RESP_ERR	= 12,	/* the response does not fit the request */
	WEFT_WC_FATAL_ERR	= 13,	/* the device's own fault, on demand alone */
	WEFT_WC_NR
};

/* struct weft_cqe.opcode */
enum {
	WEFT_WCO_WRITE		= 0,
	WEFT_WCO_SEND		= 1,
	WEFT_WCO_READ		= 2,
	WEFT_WCO_LOCAL_INV	= 3,
	WEFT_WCO_REG_MR		= 4,
	WEFT_WCO_BIND_MW	= 5,
	WEFT_WCO_CMP_SWAP	= 6,
	WEFT_WCO_FETCH_ADD	= 7,
	WEFT_WCO_RECV		= 8,
	WEFT_WCO_RECV_IMM	= 9,	/* consumed by a Write's immediate */
	WEFT_WCO_NR
};

/*
 * Verbs commands: the driver's parts. All sizes are multiples of 8; a newer
 * side may send more, zeros beyond what the older one knows.
 */

/* Feature bits, offered by the user and answered with what both have. */
enum {
	WEFT_FEATURE_IMM	= 1 << 0,	/* Immediate Data, RFC 7306 §6 */
	WEFT_FEATURE_ATOMICS	= 1 << 1,	/* RFC 7306 §5, masked too */
	WEFT_FEATURE_MW		= 1 << 2,	/* memory windows */
	/* CQE timestamps, of CQs created with IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION. */
	WEFT_FEATURE_TIMESTAMP	= 1 << 3,
	WEFT_FEATURE_RESIZE	= 1 << 4,	/* CQ and SRQ ring replacement */
	/*
	 * poll_cq that finds its ring empty calls WEFT_METHOD_CQ_KICK: the host
	 * moves bytes in the caller's context.
	 */
	WEFT_FEATURE_POLL_KICK	= 1 << 5,
	/*
	 * The user heeds WEFT_RING_POLL. So the kernel may leave a send ring
	 * without WEFT_RING_KICK and look at it when a poll kicks, or
	 * after a short time by itself.
	 */
	WEFT_FEATURE_LINGER	= 1 << 6,
	/*
	 * The user heeds WEFT_RING_KICK of an SRQ. So a message that finds the SRQ
	 * empty may wait for an entry.
	 */
	WEFT_FEATURE_SRQ_KICK	= 1 << 7,
	WEFT_FEATURE_NULL_MR	= 1 << 8,	/* reg_mr takes WEFT_REG_MR_NULL */
	WEFT_FEATURE_ROCE_TYPES	= 1 << 9,	/* QPs of RoCE's types beside RC: UD, with its
						 * AHs, and UC */
};

struct weft_alloc_ucontext_req {
	__aligned_u64 features;		/* offered */
	__aligned_u64 reserved;
};

struct weft_alloc_ucontext_resp {
	__aligned_u64 features;		/* in force */
	__u32 abi_version;
	__u32 max_inline;
	__aligned_u64 reserved[2];
};

/* struct weft_reg_mr_req.flags */
enum {
	/*
	 * A region of no memory, for local use: what is placed there is dropped, and zeros are
	 * read. It has every address, whatever start and length say.
	 */
	WEFT_REG_MR_NULL	= 1 << 0,
};

struct weft_reg_mr_req {
	__aligned_u64 flags;		/* WEFT_REG_MR_* */
	__aligned_u64 reserved;		/* 0, checked */
};

/* Where a ring is: pass offset and size to mmap() of the command fd. */
struct weft_ring_map {
	__aligned_u64 offset;
	__aligned_u64 size;
	__u32 slots;			/* power of two; CQ: entries */
	__u32 stride;			/* slots an entry; SQ: slots of the longest WQE allowed */
};

struct weft_create_cq_resp {
	struct weft_ring_map cq;
	__u32 cq_id;
	__u32 reserved[3];
};

/* CQ resize: the new ring; entries not yet consumed were moved to it. */
struct weft_resize_cq_resp {
	struct weft_ring_map cq;
};

struct weft_create_qp_resp {
	struct weft_ring_map sq;
	struct weft_ring_map rq;	/* slots 0 when an SRQ serves */
	__u32 qp_id;
	__u32 reserved[3];
};

struct weft_create_srq_resp {
	struct weft_ring_map srq;
	__u32 srq_id;
	__u32 reserved[3];
};

/* SRQ resize: the new ring; entries not yet taken were moved to it. */
struct weft_modify_srq_resp {
	struct weft_ring_map srq;
};

/*
 * Driver ioctl methods. Id space: bit 12 marks a driver's own ids
 * (UVERBS_ID_DRIVER_NS).
 */
enum {
	WEFT_METHOD_QP_KICK = 1U << 12,	/* on UVERBS_OBJECT_QP */
};

enum {
	WEFT_ATTR_QP_KICK_HANDLE = 1U << 12,	/* the QP */
};

/* Behind the core's attributes of UVERBS_METHOD_QUERY_CONTEXT. */
enum {
	WEFT_ATTR_QUERY_CONTEXT_RESP = 1U << 12, /* out: struct weft_alloc_ucontext_resp */
};

enum {
	WEFT_METHOD_CQ_KICK = 1U << 12,	/* on UVERBS_OBJECT_CQ; WEFT_FEATURE_POLL_KICK, _LINGER */
};

enum {
	WEFT_ATTR_CQ_KICK_HANDLE = 1U << 12,	/* the CQ */
};

enum {
	WEFT_METHOD_SRQ_RESIZE = 1U << 12,	/* on UVERBS_OBJECT_SRQ; with WEFT_FEATURE_RESIZE */
	WEFT_METHOD_SRQ_KICK,			/* the same; with WEFT_FEATURE_SRQ_KICK */
};

enum {
	WEFT_ATTR_SRQ_RESIZE_HANDLE = 1U << 12,	/* the SRQ */
	WEFT_ATTR_SRQ_RESIZE_MAX_WR,		/* in: __u32, as of modify_srq */
	WEFT_ATTR_SRQ_RESIZE_RESP,		/* out: struct weft_modify_srq_resp */
};

enum {
	WEFT_ATTR_SRQ_KICK_HANDLE = 1U << 12,	/* the SRQ */
};

/* Expands A(struct, field, offset) and S(struct, size) for every type above. */
#define WEFT_ABI_ASSERTS(S, A)				\
	S(weft_ring, 256)				\
	A(weft_ring, user_idx, 0)			\
	A(weft_ring, arm, 4)				\
	A(weft_ring, kern_idx, 128)			\
	A(weft_ring, flags, 132)			\
	S(weft_sge, 16)					\
	A(weft_sge, addr, 0)				\
	A(weft_sge, length, 8)				\
	A(weft_sge, lkey, 12)				\
	S(weft_sq_wqe, 64)				\
	A(weft_sq_wqe, wr_id, 0)			\
	A(weft_sq_wqe, opcode, 8)			\
	A(weft_sq_wqe, flags, 9)			\
	A(weft_sq_wqe, nslots, 10)			\
	A(weft_sq_wqe, num_sge, 11)			\
	A(weft_sq_wqe, rkey, 12)			\
	A(weft_sq_wqe, remote_addr, 16)			\
	A(weft_sq_wqe, imm, 24)				\
	A(weft_sq_wqe, inv_stag, 24)			\
	A(weft_sq_wqe, data, 32)			\
	S(weft_wr_atomic, 32)				\
	A(weft_wr_atomic, compare, 0)			\
	A(weft_wr_atomic, swap_add, 8)			\
	A(weft_wr_atomic, compare_mask, 16)		\
	A(weft_wr_atomic, swap_add_mask, 24)		\
	S(weft_wr_ud, 32)				\
	A(weft_wr_ud, dgid, 0)				\
	A(weft_wr_ud, qkey, 16)				\
	A(weft_wr_ud, qpn, 20)				\
	A(weft_wr_ud, reserved0, 24)			\
	A(weft_wr_ud, sgid_index, 28)			\
	A(weft_wr_ud, hop_limit, 29)			\
	A(weft_wr_ud, traffic_class, 30)		\
	S(weft_wr_bind, 32)				\
	A(weft_wr_bind, addr, 0)			\
	A(weft_wr_bind, length, 8)			\
	A(weft_wr_bind, mw_stag, 16)			\
	A(weft_wr_bind, mr_lkey, 20)			\
	A(weft_wr_bind, access, 24)			\
	S(weft_wr_reg, 32)				\
	A(weft_wr_reg, stag, 0)				\
	A(weft_wr_reg, access, 4)			\
	S(weft_rq_wqe, 64)				\
	A(weft_rq_wqe, wr_id, 0)			\
	A(weft_rq_wqe, num_sge, 8)			\
	A(weft_rq_wqe, data, 16)			\
	S(weft_cqe, 64)					\
	A(weft_cqe, wr_id, 0)				\
	A(weft_cqe, qp_num, 8)				\
	A(weft_cqe, status, 12)				\
	A(weft_cqe, opcode, 13)				\
	A(weft_cqe, flags, 14)				\
	A(weft_cqe, byte_len, 16)			\
	A(weft_cqe, inv_stag, 20)			\
	A(weft_cqe, imm, 24)				\
	A(weft_cqe, timestamp, 32)			\
	A(weft_cqe, vendor_err, 40)			\
	A(weft_cqe, src_qp, 44)				\
	S(weft_alloc_ucontext_req, 16)			\
	A(weft_alloc_ucontext_req, features, 0)		\
	S(weft_alloc_ucontext_resp, 32)			\
	A(weft_alloc_ucontext_resp, features, 0)	\
	A(weft_alloc_ucontext_resp, abi_version, 8)	\
	A(weft_alloc_ucontext_resp, max_inline, 12)	\
	S(weft_reg_mr_req, 16)				\
	A(weft_reg_mr_req, flags, 0)			\
	A(weft_reg_mr_req, reserved, 8)			\
	S(weft_ring_map, 24)				\
	A(weft_ring_map, offset, 0)			\
	A(weft_ring_map, size, 8)			\
	A(weft_ring_map, slots, 16)			\
	A(weft_ring_map, stride, 20)			\
	S(weft_create_cq_resp, 40)			\
	A(weft_create_cq_resp, cq, 0)			\
	A(weft_create_cq_resp, cq_id, 24)		\
	S(weft_resize_cq_resp, 24)			\
	A(weft_resize_cq_resp, cq, 0)			\
	S(weft_create_qp_resp, 64)			\
	A(weft_create_qp_resp, sq, 0)			\
	A(weft_create_qp_resp, rq, 24)			\
	A(weft_create_qp_resp, qp_id, 48)		\
	S(weft_create_srq_resp, 40)			\
	A(weft_create_srq_resp, srq, 0)			\
	A(weft_create_srq_resp, srq_id, 24)		\
	S(weft_modify_srq_resp, 24)			\
	A(weft_modify_srq_resp, srq, 0)

#endif
