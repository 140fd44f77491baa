/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The script that fuzz_wqe.c runs and seeds_wqe.c writes. */
#ifndef WEFT_WQE_SCRIPT_H
#define WEFT_WQE_SCRIPT_H

#define WQE_BASE 0x1000

/* Octet 0. Octet 1: log2 of the send ring's slots, short WQEs, ORD, a short CQ, no RFC 7306. */
enum {
	WQE_LONE	= 0x01,		/* the script is the peer; else a stack is */
	WQE_INITIATOR	= 0x02,		/* with WQE_LONE */
	WQE_CRC		= 0x04,
	WQE_MARKERS	= 0x08,
	WQE_SMALL_MSS	= 0x10,
	WQE_P2P		= 0x20,
	WQE_SIG_ALL	= 0x40,
	WQE_KERNEL	= 0x80,
};

/* Regions of each end, in the order of their STags. */
enum { WQE_RW, WQE_LOCAL, WQE_READABLE, WQE_FOREIGN, WQE_FAST, WQE_WINDOW_1, WQE_WINDOW_2, WQE_REGIONS };

/* The low four bits of a step's octet; operands follow. */
enum {
	WQE_SCRIBBLE_SQ,		/* n, offset (4), n octets */
	WQE_SCRIBBLE_RQ,
	WQE_MOVE_SQ,			/* slots; 255: then 4 octets */
	WQE_MOVE_RQ,
	WQE_POST_SEND,			/* wr_id (4), opcode, flags, remote region and
					 * offset, region to invalidate, SGEs */
	WQE_POST_RECV,
	WQE_PEER_POSTS,			/* as above; bit 4: a receive */
	WQE_RUN,			/* high bits: steps */
	WQE_RUN_OUT,
	WQE_SAY_RAW,			/* n, n octets */
	WQE_SAY_SEGMENT,		/* region, DDP control, RDMAP control, offset, len */
	WQE_CHANGE_REGION,		/* bit 0: which; bit 1: limit the chunks instead */
	WQE_POLL,
	WQE_ARM,
	WQE_CQ_INDEX,
	WQE_END,
};

#endif
