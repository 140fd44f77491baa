// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory of requests under way. What the program sends is summed at the post and when the
 * completion is polled. What a peer places there meanwhile is not the program's doing.
 */
#include <infiniband/verbs.h>
#include <string.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "process/guard.h"
#include "strict.h"

/* ---- octets ---- */

struct summing {
	const struct rl_request *r;
	u64 sum;
};

#define LANES	4
#define ODD	0x9e3779b97f4a7c15ull

static u64 word_at(const u8 *p)
{
	u64 w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/*
 * Each word takes its lane to another state than any other word would: no single change is missed.
 * Lanes do not wait for each other, so that it is faster than a CRC.
 */
static u64 sum_piece(u64 sum, const u8 *p, size_t n)
{
	u64 lane[LANES] = { sum, sum + 1, sum + 2, sum + 3 };
	u32 i;

	for (; n >= LANES * sizeof(u64); n -= LANES * sizeof(u64))
		for (i = 0; i < LANES; i++, p += sizeof(u64))
			lane[i] = (lane[i] ^ word_at(p)) * ODD;
	for (; n; n--, p++)
		lane[0] = (lane[0] ^ *p) * ODD;
	for (i = 1; i < LANES; i++)
		lane[0] = (lane[0] ^ lane[i] ^ lane[i] >> 32) * ODD;
	return lane[0];
}

static void sum_octets(void *arg)
{
	struct summing *s = arg;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < s->r->n; i++)
		sum = sum_piece(sum, (const u8 *)(uintptr_t)s->r->pieces[i].at,
				s->r->pieces[i].length);
	s->sum = sum;
}

/* False: not all are mapped. */
static bool request_sum(const struct rl_request *r, u64 *sum)
{
	struct summing s = { r, 0 };
	bool ok = rl_guard_run(sum_octets, &s);

	*sum = s.sum;
	return ok;
}

static bool has_memory(const struct rl_request *r)
{
	u32 i;

	for (i = 0; i < r->n; i++)
		if (r->pieces[i].length && !r->pieces[i].at)
			return false;
	return r->n;
}

static bool is_readable(const struct rl_request *r)
{
	const struct rl_piece *p;
	u32 i;

	for (i = 0; i < r->n; i++) {
		p = &r->pieces[i];
		if (p->length && p->at &&
		    !rl_guard_readable((const void *)(uintptr_t)p->at, p->length))
			return false;
	}
	return true;
}

static bool is_source(const struct weft_run_posted *p)
{
	return p->post == WEFT_RUN_POST_SEND &&
	       (p->opcode == WEFT_WR_SEND || p->opcode == WEFT_WR_SEND_IMM ||
		p->opcode == WEFT_WR_SEND_INV || p->opcode == WEFT_WR_WRITE ||
		p->opcode == WEFT_WR_WRITE_IMM);
}

static bool request_overlaps(const struct rl_request *r, u64 addr, u64 len)
{
	const struct rl_piece *p;
	u32 i;

	for (i = 0; i < r->n; i++) {
		p = &r->pieces[i];
		if (p->at < addr + len && addr < p->at + p->length)
			return true;
	}
	return false;
}

/* ---- what others place there ---- */

/*
 * Placements of other threads that have begun, and have not ended yet: a request that is posted
 * meanwhile may see half of one.
 */
#define MOST_PLACEMENTS	32

static struct {
	struct {
		u64 addr, len;		/* len 0: free */
	} at[MOST_PLACEMENTS];
	u32 n, more;			/* more: those that had no room */
} placements;

static bool is_being_placed(const struct rl_request *r)
{
	u32 i;

	if (placements.more)
		return true;
	for (i = 0; placements.n && i < MOST_PLACEMENTS; i++)
		if (placements.at[i].len &&
		    request_overlaps(r, placements.at[i].addr, placements.at[i].len))
			return true;
	return false;
}

static void begin_placement(u64 addr, u64 len)
{
	u32 i;

	for (i = 0; i < MOST_PLACEMENTS; i++)
		if (!placements.at[i].len) {
			placements.at[i].addr = addr;
			placements.at[i].len = len;
			placements.n++;
			return;
		}
	placements.more++;
}

static void end_placement(u64 addr, u64 len)
{
	u32 i;

	for (i = 0; i < MOST_PLACEMENTS; i++)
		if (placements.at[i].addr == addr && placements.at[i].len == len) {
			placements.at[i].len = 0;
			placements.n--;
			return;
		}
	placements.more -= !!placements.more;
}

static void excuse_sends(const struct rl_judged *o, u64 addr, u64 len)
{
	struct rl_request *r;

	if (addr >= o->sends_to || addr + len <= o->sends_from)
		return;
	list_for_each_entry(r, &o->sends, node)
		if (r->is_summed && request_overlaps(r, addr, len))
			r->is_excused = true;
}

void rl_judge_placing(const void *to, size_t len, bool begins)
{
	const struct rl_judged *o;

	if (!len)
		return;
	rl_judge_enter();
	if (begins) {
		begin_placement((uintptr_t)to, len);
		rl_strict_placing((uintptr_t)to, len, true);
		list_for_each_entry(o, &rl_busy, busy)
			excuse_sends(o, (uintptr_t)to, len);
	} else {
		rl_strict_placing((uintptr_t)to, len, false);
		end_placement((uintptr_t)to, len);
	}
	rl_judge_leave();
}

/* ---- a request's life ---- */

/* A region's addresses need not be those of its memory (ibv_reg_mr_iova(), zero-based). */
static void find_memory(struct rl_request *r)
{
	const struct rl_judged *mr;
	struct rl_piece *p;
	u32 i;

	for (i = 0; i < r->n; i++) {
		p = &r->pieces[i];
		mr = rl_piece_region(r->of, p);
		p->at = mr && mr->about.has_memory && !rl_piece_is_outside(p, &mr->about) ?
			mr->about.addr + (p->addr - mr->about.iova) : 0;
	}
}

/* So that most placements need not look at each request. */
static void widen_sends(struct rl_judged *o, const struct rl_request *r)
{
	const struct rl_piece *p;
	u32 i;

	for (i = 0; i < r->n; i++) {
		p = &r->pieces[i];
		o->sends_from = o->sends_to ? min_t(u64, o->sends_from, p->at) : p->at;
		o->sends_to = max_t(u64, o->sends_to, p->at + p->length);
	}
}

void rl_memory_begin(struct rl_request *r)
{
	find_memory(r);
	rl_strict_begin(r);
	if (!is_source(&r->posted) || !has_memory(r) ||
	    !(rl_judge_has(RL_CHANGED_UNDER_WAY) || rl_judge_has(RL_UNMAPPED_UNDER_WAY)))
		return;
	r->is_excused = is_being_placed(r);
	r->is_summed = request_sum(r, &r->sum);
	widen_sends(r->of, r);
}

static void report_memory(struct rl_report *report, const struct rl_request *r,
			  enum rl_judge_rule rule, const char *what, const char *where)
{
	rl_report_init(report, rule, "the memory of a %s was %s before its completion was polled",
		       rl_request_name(r), what);
	rl_request_add(report, r);
	rl_report_add(report, NULL, "%s", where);
}

static bool judge_memory(const struct rl_request *r, u8 status, const char *where,
			 struct rl_report *report)
{
	bool is_checked = r->is_summed && !r->is_excused && status == IBV_WC_SUCCESS;
	bool is_mapped = true;
	u64 sum = r->sum;

	if (is_checked)
		is_mapped = request_sum(r, &sum);
	else if (status == IBV_WC_LOC_PROT_ERR)
		is_mapped = is_readable(r);
	if (!is_mapped && rl_judge_has(RL_UNMAPPED_UNDER_WAY))
		report_memory(report, r, RL_UNMAPPED_UNDER_WAY, "unmapped", where);
	else if (is_mapped && sum != r->sum && rl_judge_has(RL_CHANGED_UNDER_WAY))
		report_memory(report, r, RL_CHANGED_UNDER_WAY, "changed", where);
	else
		return false;
	return true;
}

bool rl_memory_end(const struct rl_request *r, u8 status, struct rl_report *report)
{
	return judge_memory(r, status, "the completion was polled by", report);
}

u32 rl_memory_answered(struct rl_report *reports, u32 max)
{
	struct rl_judged *o;
	struct rl_request *r;
	u32 n = 0;

	list_for_each_entry(o, &rl_busy, busy)
		list_for_each_entry(r, &o->sends, node) {
			if (!r->posted.datagram || r->is_excused || n == max)
				continue;
			n += judge_memory(r, IBV_WC_SUCCESS, "it was noticed when a receive was "
					  "polled, by", &reports[n]);
			r->is_excused = true;
		}
	return n;
}

/* ---- memory that the program gives back ---- */

static const struct rl_request *user_of_memory(const struct list_head *queue, u64 addr, u64 len)
{
	const struct rl_request *r;

	list_for_each_entry(r, queue, node)
		if (request_overlaps(r, addr, len))
			return r;
	return NULL;
}

/* A QP that has failed is not meant: its receives wait to be flushed. */
static const struct rl_request *user_of_any(u64 addr, u64 len)
{
	const struct rl_request *r;
	const struct rl_judged *o;

	list_for_each_entry(o, &rl_busy, busy) {
		if (o->failed)
			continue;
		r = user_of_memory(&o->sends, addr, len) ?:
		    user_of_memory(&o->receives, addr, len);
		if (r)
			return r;
	}
	return NULL;
}

bool rl_judge_freed(const void *addr, size_t len, const char *how)
{
	const struct rl_request *r;
	struct rl_report report;

	if (!rl_judge_has(RL_FREED_UNDER_WAY))
		return false;
	rl_judge_enter();
	r = user_of_any((uintptr_t)addr, len);
	if (r) {
		rl_report_init(&report, RL_FREED_UNDER_WAY,
			       "the memory of a %s was freed before its completion was polled",
			       rl_request_name(r));
		rl_report_add(&report, NULL, "%s was called by", how);
		rl_request_add(&report, r);
	}
	rl_judge_leave();
	if (r)
		rl_report_emit(&report);
	return r;
}
