/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A record's file, as docs/recording.md describes it: a header, then a ring of segments. Numbers
 * are in the host's order, which the header tells. Fields are only ever added at the end of a body;
 * a reader that misses some takes them as 0.
 */
#ifndef RL_RECORD_FORMAT_H
#define RL_RECORD_FORMAT_H

#include "process/port.h"

#define WEFT_RECORD_MAGIC	"WEFTREC"
#define WEFT_RECORD_VERSION	1
#define WEFT_RECORD_ORDER	0x01020304
#define WEFT_RECORD_SEGMENT	65536	/* no entry crosses the end of a segment */
#define WEFT_RECORD_CALLERS	128

/* An instruction that posted, and where it lies. */
struct weft_record_caller {
	u64 pc;				/* 0: none; written last */
	u64 offset;			/* in the module */
	char function[48], module[192];
};

struct weft_record_file {
	char magic[8];
	u32 version, order;
	u32 header_len;			/* where the ring begins */
	u32 segment;
	u64 ring_len;			/* a multiple of segment */
	u64 head;			/* octets that were ever reserved; atomic */
	u64 start_ticks;		/* rl_ticks(), */
	u64 start_ns, start_real_ns;	/* CLOCK_MONOTONIC, CLOCK_REALTIME: at the same time */
	u32 pid, parent;
	char program[64], host[64];
	char boot[40];			/* of Linux: within one, all records have the same clock */
	u8 reserved[3856];
	struct weft_record_caller caller[WEFT_RECORD_CALLERS];
};
static_assert(sizeof(struct weft_record_file) == 4096 + WEFT_RECORD_CALLERS * 256,
	      "the ring begins with a page");

enum weft_record_type {
	WEFT_RECORD_PAD,		/* to the segment's end */
	WEFT_RECORD_POST, WEFT_RECORD_COMPLETED, WEFT_RECORD_POLLED,
	WEFT_RECORD_FPDU, WEFT_RECORD_CONN, WEFT_RECORD_CONN_END,
	WEFT_RECORD_OBJECT, WEFT_RECORD_CALL, WEFT_RECORD_EVENT, WEFT_RECORD_NOTE,
	WEFT_RECORD_CLOCK,
};

struct weft_record {
	u32 mark;			/* its position / 8, low 32 bits; written last */
	u16 len8;			/* of all of it, in 8 octets */
	u8 type, flags;
	u64 ticks;			/* the CPU's: entries CLOCK make them times */
	u32 thread;
	u32 qpn;			/* 0: none */
};

/* Messages of a direction are counted by these. */
enum weft_record_class {
	WEFT_RECORD_WRITES,
	WEFT_RECORD_SENDS,		/* and Immediate Data */
	WEFT_RECORD_REQUESTS,		/* Reads and atomics */
	WEFT_RECORD_RESPONSES,
	WEFT_RECORD_CLASSES
};

enum {					/* flags of POST */
	WEFT_RECORD_SIGNALED	= 1 << 0,
	WEFT_RECORD_INLINE	= 1 << 1,
	WEFT_RECORD_DATAGRAM	= 1 << 2,
};

/* At the entry's ticks. There is one in some thousandths of a second, if there are others. */
struct weft_record_clock {
	u64 ns;				/* CLOCK_MONOTONIC */
};

struct weft_record_post {
	u64 wr_id, caller;
	u64 remote_addr, addr;		/* addr, lkey: of the first piece */
	u32 rkey, lkey;
	u32 length;			/* of all pieces */
	u32 context;			/* to which handles belong */
	u32 handle;			/* of the QP or SRQ */
	u32 number[3];			/* messages of the QP before it: WRITES, SENDS, REQUESTS */
	u16 num_sge;
	u8 post, opcode;		/* enum weft_run_post, WEFT_WR_ */
	u32 reserved;
};

enum { WEFT_RECORD_RECEIVE = 1 << 0 };	/* flag of COMPLETED and POLLED */

/* COMPLETED: the engine has published it. POLLED: the program has it. */
struct weft_record_completion {
	u64 wr_id;
	u32 context, cq;
	u32 byte_len;			/* COMPLETED only */
	u8 status;			/* COMPLETED: WEFT_WC_; POLLED: IBV_WC_ */
	u8 opcode;			/* COMPLETED: WEFT_WCO_ */
	u16 reserved;
};

enum {					/* flags of FPDU */
	WEFT_RECORD_OUT		= 1 << 0,	/* sent; else received */
	WEFT_RECORD_START	= 1 << 1,	/* octets of MPA's start-up */
	WEFT_RECORD_OWN		= 1 << 2,	/* no request asked for it: ready to receive,
						 * acknowledgements, Terminates */
};

struct weft_record_fpdu {
	u64 first;			/* ticks of its first octet; the entry's: of its last */
	u64 offset;			/* in this direction's stream, without Markers */
	u32 conn;
	u32 len;			/* of the FPDU with CRC, without Markers */
	u32 number;			/* messages of its class before it */
	u32 kept;			/* octets that follow */
};

enum {					/* flags of CONN */
	WEFT_RECORD_INITIATOR	= 1 << 0,
	WEFT_RECORD_CRC		= 1 << 1,
	WEFT_RECORD_MARKERS	= 1 << 2,
	WEFT_RECORD_ENHANCED	= 1 << 3,
	WEFT_RECORD_BY_HAND	= 1 << 4,
	WEFT_RECORD_IPV6	= 1 << 5,
	WEFT_RECORD_STARTED	= 1 << 6,	/* in Full Operation: the others are known */
};

struct weft_record_conn {
	u32 conn;
	u16 port, peer_port;
	u8 addr[16], peer_addr[16];
};

struct weft_record_conn_end {
	u32 conn;
	s32 error;			/* -errno, or 0 */
};

struct weft_record_object {
	u64 addr, length;
	u64 user_handle;		/* of a CQ: the program's, as in its events */
	u32 deed, kind;			/* enum weft_run_deed, weft_run_kind */
	u32 context, handle, number;
	u32 pd, send_cq, recv_cq, srq, size, access;
	u32 has_srq;
	u64 caller;			/* as of POST; 0: unknown */
};

enum weft_record_family {
	WEFT_RECORD_VERBS,		/* number: IB_USER_VERBS_CMD_ */
	WEFT_RECORD_METHOD,		/* an ioctl: object << 16 | method */
	WEFT_RECORD_CM,			/* RDMA_USER_CM_CMD_; subject: the id */
};

/* A call of the library, and not of the data path; the entry's ticks: when it began. */
struct weft_record_call {
	u64 took;			/* ticks */
	u32 family, number;
	u32 context, subject;
	s32 result;			/* 0 or -errno */
	u32 reserved;
};

enum weft_record_source {
	WEFT_RECORD_COMP,		/* subject: the CQ's user_handle */
	WEFT_RECORD_ASYNC,		/* number: IBV_EVENT_ */
	WEFT_RECORD_CM_EVENT,		/* number: RDMA_CM_EVENT_, status; subject: the id */
};

enum { WEFT_RECORD_TAKEN = 1 << 0 };	/* flag of EVENT: the program has it; else it arose */

struct weft_record_event {
	u64 waited;			/* TAKEN: how long the program waited before, in ticks */
	u64 subject;
	u32 source, number;
	s32 status;
	u32 context;
};

#endif
