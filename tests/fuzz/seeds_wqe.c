// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* First scripts for fuzz_wqe: each kind of work between two correct ends, and by a scripted peer. */
#include <string.h>
#include "seeds.h"
#include "wqe_script.h"
#include "../../kernel/uapi/rdma/weft-abi.h"
#include "../../kernel/proto/rdmap.h"

struct text {
	u8 b[512];
	u32 n;
};

static void add(struct text *t, const u8 *p, u32 n)
{
	memcpy(t->b + t->n, p, n);
	t->n += n;
}

#define ADD(t, ...) add(t, (const u8[]){ __VA_ARGS__ }, sizeof((const u8[]){ __VA_ARGS__ }))

static void add_send(struct text *t, u8 step, u8 opcode, u8 flags, u8 remote, u8 region)
{
	ADD(t, step, 0, 0, 0, 1, opcode, flags, remote, 16, WQE_FAST, 1, region, 3, 200);
}

static void between_stacks(u8 how, u8 sizes, u8 opcode)
{
	struct text t = { .n = 0 };

	ADD(&t, how, sizes);
	ADD(&t, WQE_PEER_POSTS | 16, WQE_RW, 0, 250, 9);
	ADD(&t, WQE_POST_RECV, WQE_LOCAL, 0, 100, 9);
	add_send(&t, WQE_POST_SEND, opcode, WEFT_WR_SIGNALED, WQE_RW, WQE_RW);
	add_send(&t, WQE_PEER_POSTS, WEFT_WR_SEND, WEFT_WR_SIGNALED, WQE_RW, WQE_RW);
	ADD(&t, WQE_RUN | 0x50);
	add_send(&t, WQE_POST_SEND, opcode, WEFT_WR_FENCE, WQE_RW, WQE_LOCAL);
	ADD(&t, WQE_RUN_OUT, WQE_POLL, WQE_END, 0, WQE_RUN_OUT);
	seeds_save("fuzz_wqe", "stacks", t.b, t.n);
}

static void said_by_hand(u8 how, u8 ddp, u8 opcode, u8 region)
{
	struct text t = { .n = 0 };

	ADD(&t, WQE_LONE | how, 0x35);
	ADD(&t, WQE_POST_RECV, WQE_LOCAL, 0, 100, 50, WQE_POST_RECV, WQE_LOCAL, 0, 100, 50);
	add_send(&t, WQE_POST_SEND, WEFT_WR_READ, WEFT_WR_SIGNALED, WQE_RW, region);
	ADD(&t, WQE_SAY_SEGMENT, WQE_RW, ddp, weft_rdmap_ctl(opcode), 3, 100);
	ADD(&t, WQE_RUN_OUT);
	ADD(&t, WQE_SAY_SEGMENT, region, ddp | WEFT_DDP_L, weft_rdmap_ctl(opcode), 3, 100);
	ADD(&t, WQE_RUN_OUT, WQE_END, 6, WQE_RUN_OUT);
	seeds_save("fuzz_wqe", "said", t.b, t.n);
}

static void scribbled(u8 how)
{
	static const u8 wqe[12] = { [8] = WEFT_WR_SEND, [9] = WEFT_WR_SIGNALED, [10] = 1 };
	struct text t = { .n = 0 };

	ADD(&t, how, 0x14);
	ADD(&t, WQE_SCRIBBLE_SQ, sizeof(wqe), 0, 0, 0, 0);
	add(&t, wqe, sizeof(wqe));
	ADD(&t, WQE_MOVE_SQ, 1, WQE_RUN_OUT, WQE_MOVE_SQ, 255, 0x80, 0, 0, 0, WQE_RUN_OUT);
	seeds_save("fuzz_wqe", "scribbled", t.b, t.n);
}

void seeds_wqe(void)
{
	u8 i;

	for (i = 0; i < WEFT_WR_NR; i++) {
		u8 how = (u8)(i * 4 + (i == WEFT_WR_REG_MR ? WQE_KERNEL : 0));

		between_stacks(how, (u8)(0x35 + (i & 1) * 8), i);
	}
	for (i = 0; i <= WEFT_OP_ATOMIC_RESP; i++) {
		u8 ddp = weft_opcode_is_tagged(i) ? WEFT_DDP_T | 1 : 1;

		said_by_hand(i & 1 ? WQE_INITIATOR : 0, ddp, i, i % WQE_REGIONS);
	}
	for (i = 0; i < 64; i += 4)
		scribbled(i);
}
