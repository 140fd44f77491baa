// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel/uapi/rdma/weft-abi.h"
#include "request.h"

struct list_head rl_busy = LIST_HEAD_INIT(rl_busy);

u32 rl_requests;

/* ---- words ---- */

const char *rl_request_name(const struct rl_request *r)
{
	static const char *const names[WEFT_WR_NR] = {
		[WEFT_WR_WRITE] = "Write", [WEFT_WR_WRITE_IMM] = "Write with immediate",
		[WEFT_WR_SEND] = "Send", [WEFT_WR_SEND_IMM] = "Send with immediate",
		[WEFT_WR_SEND_INV] = "Send with invalidate", [WEFT_WR_READ] = "Read",
		[WEFT_WR_CMP_SWAP] = "compare and swap", [WEFT_WR_FETCH_ADD] = "fetch and add",
	};

	if (rl_request_receives(r))
		return "receive";
	return r->posted.opcode < WEFT_WR_NR && names[r->posted.opcode] ?
	       names[r->posted.opcode] : "request";
}

struct rl_stack rl_request_stack(const struct rl_request *r)
{
	return (struct rl_stack){ .n = 1, .pc = { r->posted.caller } };
}

void rl_request_add(struct rl_report *report, const struct rl_request *r)
{
	const struct rl_stack post = rl_request_stack(r);

	rl_report_add(report, &post, "the %s of wr_id 0x%llx was posted by", rl_request_name(r),
		      (unsigned long long)r->posted.wr_id);
	rl_report_add(report, &r->of->birth, "%s was made by", rl_judged_name(r->of));
}

/* ---- pieces ---- */

struct rl_judged *rl_piece_region(const struct rl_judged *of, const struct rl_piece *p)
{
	return rl_judged_by_number(of->owner, WEFT_RUN_MR, p->lkey);
}

bool rl_piece_is_outside(const struct rl_piece *p, const struct weft_run_object *region)
{
	return p->addr < region->iova || p->addr - region->iova > region->length ||
	       p->length > region->length - (p->addr - region->iova);
}
