// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include "kernel/uapi/rdma/weft-abi.h"
#include "process/file.h"
#include "process/gate.h"
#include "process/guard.h"
#include "process/raw.h"
#include "strict.h"

#define PAGE		4096ul
#define MOST_RANGES	1024		/* further ones are not protected */

/* Pages of one piece. */
struct range {
	const struct rl_request *of;	/* NULL: free; a name, which is not read */
	u64 from, to;
	bool receives;
	bool is_off;			/* it was touched, or another request's pages are here */
	u32 placing;			/* so many placements are at work */
	const char *name;
	u64 wr_id;
	struct rl_stack post, birth;
};

static struct {
	struct rl_lock lock;		/* a leaf: a fault may happen with any other */
	struct range at[MOST_RANGES];
	u32 n;				/* atomic: those in use are below */
	u32 forks;
} strict;

static bool is_protected(const struct range *g)
{
	return g->of && !g->is_off && !g->placing;
}

static bool overlaps(const struct range *g, u64 from, u64 to)
{
	return g->of && g->from < to && from < g->to;
}

/* The pages may be gone meanwhile: then there is nothing to protect. */
static void protect(const struct range *g, int how)
{
	rl_raw(SYS_mprotect, g->from, g->to - g->from, how);
}

static void unprotect(struct range *g)
{
	protect(g, PROT_READ | PROT_WRITE);
}

static void protect_again(const struct range *g)
{
	if (is_protected(g))
		protect(g, g->receives ? PROT_NONE : PROT_READ);
}

/* What is left of others there after @gone has changed. */
static void protect_others(const struct range *gone)
{
	u32 i;

	for (i = 0; i < strict.n; i++)
		if (&strict.at[i] != gone && overlaps(&strict.at[i], gone->from, gone->to))
			protect_again(&strict.at[i]);
}

/* ---- requests ---- */

static bool is_protectable(const struct rl_request *r, const struct rl_piece *p)
{
	const struct rl_judged *mr = rl_piece_region(r->of, p);
	u32 never = rl_request_receives(r) ? IBV_ACCESS_REMOTE_READ : 0;

	/* What can be written is readable and writable; peers' Reads are served by TCP. */
	return p->at && mr && mr->about.access & IBV_ACCESS_LOCAL_WRITE &&
	       !(mr->about.access & never);
}

static struct range *free_range(void)
{
	u32 i;

	for (i = 0; i < MOST_RANGES; i++)
		if (!strict.at[i].of) {
			strict.n = max_t(u32, strict.n, i + 1);
			return &strict.at[i];
		}
	return NULL;
}

/* TCP sends from there, so it must be readable: a receive of another request gives way. */
static void let_be_read(u64 from, u64 to)
{
	u32 i;

	for (i = 0; i < strict.n; i++)
		if (overlaps(&strict.at[i], from, to) && strict.at[i].receives) {
			strict.at[i].is_off = true;
			unprotect(&strict.at[i]);
		}
}

static bool is_sent_from(u64 from, u64 to)
{
	u32 i;

	for (i = 0; i < strict.n; i++)
		if (overlaps(&strict.at[i], from, to) && !strict.at[i].receives)
			return true;
	return false;
}

static void begin_piece(const struct rl_request *r, const struct rl_piece *p)
{
	u64 from = (p->at + PAGE - 1) & ~(PAGE - 1), to = (p->at + p->length) & ~(PAGE - 1);
	bool receives = rl_request_receives(r);
	struct range *g = NULL;

	if (!receives)
		let_be_read(p->at & ~(PAGE - 1), (p->at + p->length + PAGE - 1) & ~(PAGE - 1));
	if (from < to && is_protectable(r, p))
		g = free_range();
	if (!g)
		return;
	*g = (struct range){
		.of = r, .from = from, .to = to, .receives = receives,
		.is_off = receives && is_sent_from(from, to), .name = rl_request_name(r),
		.wr_id = r->posted.wr_id, .post = rl_request_stack(r), .birth = r->of->birth,
	};
	protect_again(g);
}

/* Reads and atomics write to theirs, which the program may read as it likes. */
static bool is_meant(const struct rl_request *r)
{
	return rl_judge_has(RL_TOUCHED_UNDER_WAY) && r->n &&
	       (rl_request_receives(r) ||
		(r->posted.opcode != WEFT_WR_READ && r->posted.opcode != WEFT_WR_CMP_SWAP &&
		 r->posted.opcode != WEFT_WR_FETCH_ADD));
}

static bool strict_fault(const void *addr, const void *pc, bool is_ours);

void rl_strict_begin(const struct rl_request *r)
{
	u32 i;

	if (!is_meant(r))
		return;
	rl_guard_set_first(strict_fault);
	rl_lock(&strict.lock);
	strict.forks = rl_fd_forks();
	for (i = 0; i < r->n; i++)
		begin_piece(r, &r->pieces[i]);
	rl_unlock(&strict.lock);
}

void rl_strict_end(const struct rl_request *r)
{
	struct range *g;
	u32 i;

	if (!strict.n)
		return;
	rl_lock(&strict.lock);
	for (i = 0; i < strict.n; i++) {
		g = &strict.at[i];
		if (g->of != r)
			continue;
		g->of = NULL;
		unprotect(g);
		protect_others(g);
	}
	rl_unlock(&strict.lock);
}

void rl_strict_placing(u64 addr, u64 len, bool begins)
{
	struct range *g;
	u32 i;

	if (!strict.n)
		return;
	rl_lock(&strict.lock);
	for (i = 0; i < strict.n; i++) {
		g = &strict.at[i];
		if (!overlaps(g, addr, addr + len))
			continue;
		if (begins && !g->placing++ && !g->is_off)
			unprotect(g);
		if (!begins && g->placing && !--g->placing)
			protect_again(g);
	}
	rl_unlock(&strict.lock);
}

/* ---- faults ---- */

/* Drops the protection there. False: there is none, and the fault is another's. */
static bool give_way(u64 addr, struct range *found)
{
	struct range *g;
	bool was = false;
	u32 i;

	rl_lock(&strict.lock);
	for (i = 0; i < strict.n; i++) {
		g = &strict.at[i];
		if (!overlaps(g, addr, addr + 1) || g->is_off)
			continue;
		*found = *g;
		g->is_off = true;
		unprotect(g);
		was = true;
	}
	rl_unlock(&strict.lock);
	return was;
}

/* From the instruction on: the frames before it are the signal's. */
static void take_stack(struct rl_stack *s, const void *pc)
{
	struct rl_stack all;
	u32 i, from = 0;

	rl_stack_take(&all);
	for (i = 0; i < all.n; i++)
		if (all.pc[i] == (const char *)pc + 1)
			from = i;
	s->n = 0;
	for (i = from; i < all.n; i++)
		s->pc[s->n++] = all.pc[i];
}

static void report_touch(const struct range *g, const void *addr, const void *pc)
{
	struct rl_report report;
	struct rl_stack here;

	take_stack(&here, pc);
	rl_report_init(&report, RL_TOUCHED_UNDER_WAY, "%p, in the memory of a %s, was %s before "
		       "its completion was polled", addr, g->name,
		       g->receives ? "read or written" : "written");
	rl_report_add(&report, &here, "by");
	rl_report_add(&report, &g->post, "the %s of wr_id 0x%llx was posted by", g->name,
		      (unsigned long long)g->wr_id);
	rl_report_add(&report, &g->birth, "its queue was made by");
	rl_report_emit(&report);
}

#define RETRIES 3

/* Another thread may have taken the protection away between the fault and its handler. */
static bool may_be_over(const void *addr)
{
	static __thread const void *latest;
	static __thread u32 tries;

	if (latest != addr)
		tries = 0;
	latest = addr;
	if (tries++ < RETRIES)
		return true;
	tries = 0;
	return false;
}

/* A signal's handler, with any lock but ours. The instruction runs again afterwards. */
static bool strict_fault(const void *addr, const void *pc, bool is_ours)
{
	bool is_childs = strict.forks != rl_fd_forks();
	struct range found;

	if (!give_way((uintptr_t)addr, &found))
		return may_be_over(addr);
	if (is_ours || is_childs || rl_gate_is_inside())
		return true;
	rl_gate_enter();
	report_touch(&found, addr, pc);
	rl_gate_leave();
	return true;
}
