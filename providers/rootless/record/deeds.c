// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "deeds.h"
#include "kernel/uapi/rdma/weft-abi.h"
#include "log.h"

u32 rl_record_context(const void *owner)
{
	return (u32)((uintptr_t)owner >> 4);
}

/* ---- requests ---- */

static u32 octets_of(const struct weft_run_posted *p)
{
	const struct weft_sge *sge = p->sge;
	u32 i, sum = 0;

	if (p->in_line)
		return p->length;
	for (i = 0; i < p->num_sge && i < WEFT_MAX_SGE; i++)
		sum += sge[i].length;
	return sum;
}

/* As the engine makes them: core/tx.c. */
static void count_messages(struct rl_recorded_posts *posts, u8 opcode)
{
	switch (opcode) {
	case WEFT_WR_WRITE_IMM:
		posts->number[WEFT_RECORD_WRITES]++;
		posts->number[WEFT_RECORD_SENDS]++;
		break;
	case WEFT_WR_WRITE:
		posts->number[WEFT_RECORD_WRITES]++;
		break;
	case WEFT_WR_SEND_IMM:
		posts->number[WEFT_RECORD_SENDS] += 2;
		break;
	case WEFT_WR_SEND:
	case WEFT_WR_SEND_INV:
		posts->number[WEFT_RECORD_SENDS]++;
		break;
	case WEFT_WR_READ:
	case WEFT_WR_READ_INV:
	case WEFT_WR_CMP_SWAP:
	case WEFT_WR_FETCH_ADD:
		posts->number[WEFT_RECORD_REQUESTS]++;
		break;
	default:
		break;
	}
}

void rl_record_posted(const void *owner, u32 qpn, struct rl_recorded_posts *posts,
		      const struct weft_run_posted *p)
{
	const struct weft_sge *sge = p->num_sge && !p->in_line ? p->sge : NULL;
	struct weft_record_post body = {
		.wr_id = p->wr_id, .caller = (uintptr_t)p->caller, .remote_addr = p->remote_addr,
		.rkey = p->rkey, .length = octets_of(p), .context = rl_record_context(owner),
		.handle = p->handle, .num_sge = (u16)p->num_sge, .post = p->post,
		.opcode = p->opcode,
	};

	if (sge) {
		body.addr = sge->addr;
		body.lkey = sge->lkey;
	}
	if (posts && p->post == WEFT_RUN_POST_SEND) {
		memcpy(body.number, posts->number, sizeof(body.number));
		count_messages(posts, p->opcode);
	}
	rl_record_caller(p->caller);
	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_POST, .qpn = qpn, .body = &body, .len = sizeof(body),
		.flags = (p->signaled ? WEFT_RECORD_SIGNALED : 0) |
			 (p->in_line ? WEFT_RECORD_INLINE : 0) |
			 (p->datagram ? WEFT_RECORD_DATAGRAM : 0),
	});
}

void rl_record_polled(const void *owner, const struct weft_run_polled *p)
{
	const struct weft_record_completion body = {
		.wr_id = p->wr_id, .context = rl_record_context(owner), .cq = p->cq,
		.status = p->status,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_POLLED, .flags = p->is_recv ? WEFT_RECORD_RECEIVE : 0,
		.qpn = p->qp_num, .body = &body, .len = sizeof(body),
	});
}

void rl_record_completed(const void *owner, u32 cq, bool recv, const struct weft_cqe *cqe)
{
	const struct weft_record_completion body = {
		.wr_id = cqe->wr_id, .context = rl_record_context(owner), .cq = cq,
		.byte_len = cqe->byte_len, .status = cqe->status, .opcode = cqe->opcode,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_COMPLETED, .flags = recv ? WEFT_RECORD_RECEIVE : 0,
		.qpn = cqe->qp_num, .body = &body, .len = sizeof(body),
	});
}

/* ---- the rest ---- */

/* A record's numbers: names.py has them. */
static_assert(WEFT_RUN_MADE == 2 && WEFT_RUN_ENDS == 3 && WEFT_RUN_REFUSED == 5 &&
	      WEFT_RUN_GONE == 6 && WEFT_RUN_CHANGED == 8 && WEFT_RUN_RESET == 9 &&
	      WEFT_RUN_MR == 1 && WEFT_RUN_CQ == 3 && WEFT_RUN_SRQ == 4 && WEFT_RUN_QP == 5,
	      "deeds and kinds of version 1");

void rl_record_object(const void *owner, enum weft_run_deed deed, const struct weft_run_object *o,
		      u64 user_handle, const void *caller)
{
	const struct weft_record_object body = {
		.addr = o->addr, .length = o->length, .user_handle = user_handle, .deed = deed,
		.kind = o->kind, .context = rl_record_context(owner), .handle = o->handle,
		.number = o->number, .pd = o->pd, .send_cq = o->send_cq, .recv_cq = o->recv_cq,
		.srq = o->srq, .size = o->size, .access = o->access, .has_srq = o->has_srq,
		.caller = (uintptr_t)caller,
	};

	rl_record_caller(caller);
	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_OBJECT, .qpn = o->kind == WEFT_RUN_QP ? o->number : 0,
		.body = &body, .len = sizeof(body),
	});
}

void rl_record_call(enum weft_record_family family, u32 number, const void *owner, u32 subject,
		    int result, u64 ticks)
{
	const struct weft_record_call body = {
		.took = rl_ticks() - ticks, .family = family, .number = number,
		.context = rl_record_context(owner), .subject = subject, .result = result,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_CALL, .ticks = ticks, .body = &body, .len = sizeof(body),
	});
}

void rl_record_event(enum weft_record_source source, u32 number, u64 subject, int status,
		     bool is_taken, u64 ticks)
{
	const u64 now = rl_ticks();
	const struct weft_record_event body = {
		.waited = is_taken ? now - ticks : 0, .subject = subject, .source = source,
		.number = number, .status = status,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_EVENT, .flags = is_taken ? WEFT_RECORD_TAKEN : 0, .ticks = now,
		.body = &body, .len = sizeof(body),
	});
}
