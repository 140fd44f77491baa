/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A peer made of octets: one stack under test, and the test itself at the other end of its wire.
 * Segments are built and read here by hand, from the RFCs' figures and with a separate CRC: no
 * code of the engine is used, so that a fault in it does not cancel itself out.
 */
#ifndef STACKS_PEER_H
#define STACKS_PEER_H

#include "test.h"

/* RFC 5040 Fig. 4 opcodes, RFC 5041 §4 control bits, defined here once more. */
enum {
	P_WRITE, P_READ_REQ, P_READ_RESP, P_SEND, P_SEND_INV, P_SEND_SE, P_SEND_SE_INV, P_TERM,
	/* RFC 7306 Fig. 2 */
	P_IMM, P_IMM_SE, P_ATOMIC_REQ, P_ATOMIC_RESP,
};
enum { P_T = 0x80, P_L = 0x40, P_DV = 0x01, P_RV = 0x40 };

#define P_BODY 66000

/* A DDP segment; any octet of it may be set wrong. */
struct pdu {
	u8 ddp;				/* T, L, Rsvd, DV */
	u8 rdmap;			/* RV, Rsv, opcode */
	u32 stag;			/* tagged */
	u64 to;
	u32 inv, qn, msn, mo;		/* untagged */
	u32 len;
	u8 body[P_BODY];
};

/* Well-formed segments, to be spoiled by the caller. @data NULL: zeros. */
struct pdu *p_tagged(u8 op, bool last, u32 stag, u64 to, const void *data, u32 len);
struct pdu *p_send(u8 op, bool last, u32 msn, u32 mo, const void *data, u32 len);
struct pdu *p_read_req(u32 msn, u32 sink, u64 sink_to, u32 size, u32 src, u64 src_to);

/* RFC 7306: Fig. 4, Fig. 6, and 8 octets. @mask, @cmask: Add or Swap Mask, Compare Mask. */
struct pdu *p_imm(u8 op, u32 msn, u64 imm);
struct pdu *p_atomic(u32 msn, u32 code, u32 id, u32 stag, u64 to, u64 data, u64 mask, u64 cmp,
		     u64 cmask);
struct pdu *p_atomic_resp(u32 msn, u32 id, u64 was);

struct peer {
	struct side s;			/* the stack under test */
	struct rng rng;
	enum wire_cut cut;
	u8 *in;				/* what it sent, in Full Operation */
	u32 in_len, in_cap, in_at;
	bool fin;			/* it has closed its side */
	u8 out[1 << 18];		/* gathered, to be delivered together */
	u32 out_len;
};

struct peer_cfg {
	struct side_cfg side;
	bool dut_initiates;
	u16 ird, ord;			/* the peer's; rev 2 is used if either is set */
	u8 rtr;				/* WEFT_RTR_ kinds it asks for or offers: peer-to-peer */
};

/* The stack reaches RTS; with CRC unless side.link.mpa.crc is off. */
void peer_cfg_init(struct peer_cfg *c);
struct peer *peer_new(const struct peer_cfg *c);
struct peer *peer_new_plain(void);
void peer_free(struct peer *p);

/* Adds an FPDU to the next delivery; frees @d. The second form has a wrong CRC. */
void peer_add(struct peer *p, struct pdu *d);
void peer_add_bad_crc(struct peer *p, struct pdu *d);
void peer_add_raw(struct peer *p, const void *octets, u32 n);
/* Delivers the FPDUs added, then lets the stack send until it is idle. */
void peer_flush(struct peer *p);
/* Delivers octets without letting the stack send. */
void peer_deliver(struct peer *p);
/* Lets the stack send, and reads everything. */
void peer_run(struct peer *p);
void peer_close(struct peer *p);

/* add, then flush */
void peer_say(struct peer *p, struct pdu *d);

/* Takes the stack's next FPDU; false when there is none. Checks length, PAD and CRC. */
bool peer_next(struct peer *p, struct pdu *d);
/* The next FPDU must have these control octets. Valid until the next call. */
const struct pdu *peer_expect(struct peer *p, u8 ddp, u8 rdmap);
void peer_expect_silence(struct peer *p);

/*
 * The stack's last message is a Terminate with control @layer, @etype, @code, and FIN follows.
 * @offender: its headers were copied octet for octet, the Read Request's too if @read; NULL: none
 * were.
 */
void peer_expect_terminate(struct peer *p, u8 layer, u8 etype, u8 code,
			   const struct pdu *offender, bool read);

/* A Read by the peer is answered with @len octets at @at of @mr: the stream still works. */
void peer_expect_alive(struct peer *p, u32 read_msn, const struct host_mr *mr);

#endif
