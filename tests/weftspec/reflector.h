/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reflector protocol: what a small program above the peer's RNIC does for
 * the tester.  weft-reflector speaks it over librdmacm; any ULP that does
 * the same can stand in.  All integers are big-endian.
 *
 * Regions.  One *session* is one set of memory, named by a 64-bit cookie that
 * the tester chooses; connections with the same cookie share it, so that a
 * second connection can look at what a broken first one left behind.  The
 * memory is one arena.  Region RW and its kin begin at an odd offset in their
 * page (100) and end before the page does, so that an access just outside a
 * region still hits mapped memory.  ALL covers the whole arena, read-only for
 * the peer.  Octet i of region r is first (7 i + 31 r + 13) mod 256; PD2 is
 * registered in another protection domain.
 *
 * Frames.  The tester's MPA frame carries REQUEST, the reflector's TABLE, in
 * either role.  As initiator the reflector sends one HELLO when connected,
 * for RFC 5044 lets the responder send only behind the initiator's first FPDU.
 *
 * Receives.  recv_count receives of recv_size octets are posted, each in front
 * of a guard of REFL_GUARD octets of value 0xee.  They are not posted again,
 * but for the one that a command took: it is back before the command's ACK.
 *
 * Commands come as Sends.  ACK is a Send behind what was commanded on the same
 * queue.  A Read or Atomic that was commanded is announced by a DONE Send when
 * it completed well.  Every receive, failed completion and disconnect is also
 * an event in the status block, which is read through ALL.
 */
#ifndef WEFT_REFLECTOR_H
#define WEFT_REFLECTOR_H

#define REFL_VERSION 1

#define REFL_MAGIC_REQUEST 0x57465251u /* WFRQ */
#define REFL_MAGIC_TABLE   0x57465442u /* WFTB */
#define REFL_MAGIC_CMD     0x5746434du /* WFCM */
#define REFL_MAGIC_ACK     0x5746414bu /* WFAK */
#define REFL_MAGIC_HELLO   0x57464849u /* WFHI */
#define REFL_MAGIC_DONE    0x5746444eu /* WFDN */
#define REFL_MAGIC_STATUS  0x57465354u /* WFST */

/* REQUEST: magic, version16, flags16, cookie64, reply_pd16, recv_count16 */
#define REFL_REQUEST_LEN 20
#define REFL_F_REJECT 0x0001 /* refuse the connection */
#define REFL_F_EARLY  0x0002 /* post one HELLO at accept, before any receive */
#define REFL_F_PD     0x0004 /* answer with reply_pd octets instead of TABLE */
#define REFL_F_SRQ    0x0008 /* receives from a shared receive queue of 16 */
#define REFL_F_MIRROR 0x0020 /* accept with the depths asked for, even 0 */
#define REFL_F_CQ     0x0010 /* completion queue of 4 entries, not polled */

/*
 * TABLE: magic, version16, regions16, caps32, recv_count16, recv_size16,
 * status_addr64, recv_addr64, then per region {addr64, len32, stag32}
 */
#define REFL_TABLE_HEAD 32
#define REFL_TABLE_LEN (REFL_TABLE_HEAD + 16 * REFL_REGIONS)
#define REFL_CAP_ATOMIC 0x01
#define REFL_CAP_IMM    0x02
#define REFL_CAP_BIND   0x04 /* BIND works */
#define REFL_CAP_SRQ    0x08
#define REFL_CAP_ONE_STREAM 0x10 /* what is bound is for that stream alone */

enum refl_region {
	REFL_RW, REFL_W, REFL_R, REFL_PD2, REFL_BIG, REFL_ALL, REFL_REGIONS
};

#define REFL_REGION_LEN 3900
#define REFL_BIG_LEN (1u << 20)
#define REFL_ODD 100
#define REFL_RECV_COUNT 16
#define REFL_RECV_SIZE 256
#define REFL_GUARD 64
#define REFL_RECV_STRIDE (REFL_RECV_SIZE + REFL_GUARD)
#define REFL_GUARD_BYTE 0xee

/*
 * CMD: magic, op16, flags16, seq32, count32, len32, stag32, to64, arg64,
 * arg2_64 (52 octets)
 */
#define REFL_CMD_LEN 52
#define REFL_CF_NOACK  0x0001
#define REFL_CF_SE     0x0002 /* solicited event: of Sends and WRITE_IMM */
#define REFL_CF_REPEAT 0x0004 /* READ: all into the same place */

enum refl_op {
	REFL_NOP = 1,
	REFL_SEND,       /* count Sends of len octets, pattern from seq + i */
	REFL_SEND_INV,   /* the same, invalidating stag */
	REFL_SEND_IMM,   /* Immediate: arg is the datum */
	REFL_WRITE,      /* count Writes of len octets of BIG to {stag, to} */
	REFL_WRITE_IMM,
	REFL_READ,       /* count Reads of len octets from {stag, to} to BIG + arg */
	REFL_FADD,       /* Atomic on {stag, to}: arg; result to BIG */
	REFL_CSWAP,      /* arg compare, arg2 swap */
	REFL_REVOKE,     /* deregister region arg */
	REFL_RECV,       /* post count more receives */
	REFL_BAD_LKEY,   /* post a Send whose local key is wrong; arg 1: a WRITE_IMM */
	REFL_DISCONNECT, /* graceful close */
	REFL_BIND,       /* an invalidatable window on region arg: stag in ACK */
	REFL_REGISTER,   /* register count more regions, stags to BIG */
};

/* ACK: magic, seq32, status32 (0 or an errno), value32 */
#define REFL_ACK_LEN 16

/*
 * Status block: magic, events32, connections32, reserved32, then events of
 * {conn16, kind8, status8, opcode32, len32, imm32, head[16]}
 */
#define REFL_STATUS_HEAD 16
#define REFL_EVENT_LEN 32
#define REFL_EVENTS 250

enum refl_event { REFL_EV_RECV = 1, REFL_EV_SEND, REFL_EV_CM, REFL_EV_ASYNC };

/*
 * By hand. Where no connection manager carries frames, the tester calls the reflector by TCP and says
 * REQUEST, its QP number32 and its PSN32; it hears those of the reflector's QP, and TABLE. GIDs are the
 * addresses of that connection, which lasts as long as the QP. The private data of the MPA frames is
 * then the devices' own, REFL_HAND_LEN octets: magic, version8, type8 (RC), flags8, rnr_retry8, from32,
 * to32, and of the PSN awaited and the PSN sent 12 bits each, in 16: the Request has the upper ones, the
 * Reply the lower.
 */
#define REFL_HAND_MAGIC   0x77656674u
#define REFL_HAND_VERSION 3
#define REFL_HAND_RC      2
#define REFL_HAND_RTS     0x01
#define REFL_HAND_LARGE   0x02 /* FPDUs larger than a segment are wanted */
#define REFL_HAND_LEN     20

#endif
