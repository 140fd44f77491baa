// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The objects of a program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "process/file.h"

#define BUCKETS		4096
#define MOST_OBJECTS	1000000		/* further ones are not judged */

struct rl_lock rl_judge_lock;

static struct {
	struct hlist_head by_handle[BUCKETS], by_number[BUCKETS];
	u32 n;
	u32 forks;			/* rl_fd_forks() of the process whose objects they are */
} objects;

static const char *const kind_names[WEFT_RUN_KINDS] = {
	[WEFT_RUN_PD] = "protection domain", [WEFT_RUN_MR] = "memory region",
	[WEFT_RUN_MW] = "memory window", [WEFT_RUN_CQ] = "completion queue",
	[WEFT_RUN_SRQ] = "shared receive queue", [WEFT_RUN_QP] = "queue pair",
	[WEFT_RUN_CM_ID] = "rdma_cm_id", [WEFT_RUN_CM_CHANNEL] = "event channel",
};

/* ---- finding ---- */

static u32 judged_bucket(const void *owner, u32 kind, u32 key)
{
	u64 hash = ((uintptr_t)owner ^ (u64)kind << 60 ^ key) * 0x9e3779b97f4a7c15ull;

	return hash >> 52;
}

struct rl_judged *rl_judged_find(const void *owner, enum weft_run_kind kind, u32 handle)
{
	struct rl_judged *o;

	hlist_for_each_entry(o, &objects.by_handle[judged_bucket(owner, kind, handle)], node)
		if (o->owner == owner && o->about.kind == kind && o->about.handle == handle)
			return o;
	return NULL;
}

struct rl_judged *rl_judged_by_number(const void *owner, enum weft_run_kind kind, u32 number)
{
	struct rl_judged *o;

	hlist_for_each_entry(o, &objects.by_number[judged_bucket(owner, kind, number)], by_number)
		if (o->owner == owner && o->about.kind == kind && o->about.number == number)
			return o;
	return NULL;
}

struct rl_judged *rl_judged_next(const struct rl_judged *o)
{
	struct hlist_node *next = o ? o->node.next : NULL;
	u32 i = o ? judged_bucket(o->owner, o->about.kind, o->about.handle) + 1 : 0;

	for (; !next && i < BUCKETS; i++)
		next = objects.by_handle[i].first;
	return hlist_entry_or_null(next, struct rl_judged, node);
}

const char *rl_judged_name(const struct rl_judged *o)
{
	static __thread char names[2][120];
	static __thread u32 turn;
	char *name = names[turn++ % 2];
	const struct weft_run_object *a = &o->about;
	const char *kind = kind_names[a->kind];

	switch (a->kind) {
	case WEFT_RUN_CM_ID:
	case WEFT_RUN_CM_CHANNEL:
		snprintf(name, sizeof(names[0]), "the %s at %p", kind, o->owner);
		break;
	case WEFT_RUN_MR:
		snprintf(name, sizeof(names[0]), "the %s 0x%x of %llu octets at 0x%llx", kind,
			 a->number, (unsigned long long)a->length, (unsigned long long)a->addr);
		break;
	case WEFT_RUN_MW:
	case WEFT_RUN_QP:
		snprintf(name, sizeof(names[0]), "the %s 0x%x", kind, a->number);
		break;
	case WEFT_RUN_CQ:
		snprintf(name, sizeof(names[0]), "the %s %u of %u entries", kind, a->handle,
			 a->size);
		break;
	default:
		snprintf(name, sizeof(names[0]), "the %s %u", kind, a->handle);
	}
	return name;
}

/* ---- life ---- */

/* A queue that is gone: its handle may become another's. */
static void forget_srq(const struct rl_judged *srq)
{
	struct rl_judged *o;

	for (o = rl_judged_next(NULL); o; o = rl_judged_next(o))
		if (o->owner == srq->owner && o->about.kind == WEFT_RUN_CQ && o->about.has_srq &&
		    o->about.srq == srq->about.handle)
			o->about.has_srq = false;
}

static rl_judged_drop_fn *drop_requests;

void rl_judged_drop_by(rl_judged_drop_fn *drop)
{
	drop_requests = drop;
}

void rl_judged_forget(struct rl_judged *o)
{
	if (drop_requests)
		drop_requests(o);
	hlist_del(&o->node);
	hlist_del(&o->by_number);
	if (o->about.kind == WEFT_RUN_SRQ)
		forget_srq(o);
	objects.n--;
	free(o);
}

void rl_judge_enter(void)
{
	struct rl_judged *o;

	rl_lock(&rl_judge_lock);
	if (likely(objects.forks == rl_fd_forks()))
		return;
	objects.forks = rl_fd_forks();
	rl_report_forked();
	while ((o = rl_judged_next(NULL)))
		rl_judged_forget(o);
}

void rl_judge_leave(void)
{
	rl_unlock(&rl_judge_lock);
}

static void link_by_number(struct rl_judged *o)
{
	hlist_add_head(&o->by_number,
		       &objects.by_number[judged_bucket(o->owner, o->about.kind,
							o->about.number)]);
}

static struct rl_judged *add_judged(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o = objects.n < MOST_OBJECTS ? calloc(1, sizeof(*o)) : NULL;

	if (!o)
		return NULL;
	o->owner = owner;
	o->about = *about;
	INIT_LIST_HEAD(&o->sends);
	INIT_LIST_HEAD(&o->receives);
	INIT_LIST_HEAD(&o->busy);
	hlist_add_head(&o->node,
		       &objects.by_handle[judged_bucket(owner, about->kind, about->handle)]);
	link_by_number(o);
	objects.n++;
	return o;
}

/* A CQ may have been resized. Another object of this handle is gone, and that is not said yet. */
void rl_judge_made(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o, *cq;

	o = rl_judged_find(owner, about->kind, about->handle);
	if (o && !o->is_ending && about->kind == WEFT_RUN_CQ) {
		o->about.size = about->size;
		return;
	}
	if (o)
		rl_judged_forget(o);
	o = add_judged(owner, about);
	if (o)
		rl_stack_take(&o->birth);
	cq = about->has_srq ? rl_judged_find(owner, WEFT_RUN_CQ, about->recv_cq) : NULL;
	if (cq) {
		cq->about.has_srq = true;
		cq->about.srq = about->srq;
	}
}

void rl_judge_changed(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o = rl_judged_find(owner, about->kind, about->handle);

	if (!o)
		return;
	hlist_del(&o->by_number);
	o->about = *about;
	link_by_number(o);
}

void rl_judge_ends(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o = rl_judged_find(owner, about->kind, about->handle);

	if (o)
		o->is_ending = true;
}

void rl_judge_refused(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o = rl_judged_find(owner, about->kind, about->handle);

	if (!o)
		return;
	o->is_ending = false;
	rl_stack_take(&o->refused);
}

/* ---- those that were destroyed ---- */

#define GRAVES	256

static struct {
	u64 user;			/* the program's pointer */
	char name[120];
	struct rl_stack birth, end;
} graves[GRAVES];
static u32 n_buried;

static void bury(const struct rl_judged *o, u64 user)
{
	u32 i = n_buried++ % GRAVES;

	graves[i].user = user;
	snprintf(graves[i].name, sizeof(graves[i].name), "%s", rl_judged_name(o));
	graves[i].birth = o->birth;
	rl_stack_take(&graves[i].end);
}

void rl_judge_gone(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o = rl_judged_find(owner, about->kind, about->handle);

	if (!o || !o->is_ending)
		return;
	if (about->user && rl_judge_has(RL_DESTROYED_TWICE))
		bury(o, about->user);
	rl_judged_forget(o);
}

bool rl_judge_twice(const void *owner, const struct weft_run_object *about,
		    struct rl_report *report)
{
	u32 i, k;

	if (!rl_judge_has(RL_DESTROYED_TWICE))
		return false;
	for (i = 0; i < min_t(u32, n_buried, GRAVES); i++) {
		k = (n_buried - 1 - i) % GRAVES;
		if (graves[k].user != about->user)
			continue;
		rl_report_init(report, RL_DESTROYED_TWICE,
			       "%s was used after it was destroyed", graves[k].name);
		rl_report_add(report, NULL, "it was used by");
		rl_report_add(report, &graves[k].end, "it was destroyed by");
		rl_report_add(report, &graves[k].birth, "it was made by");
		return true;
	}
	rl_report_init(report, RL_DESTROYED_TWICE, "a %s was used after it was destroyed",
		       kind_names[about->kind]);
	rl_report_add(report, NULL, "it was used by");
	return true;
}

bool rl_judge_object(enum rl_judge_rule rule, const void *owner,
		     const struct weft_run_object *about, const char *what,
		     struct rl_report *report)
{
	const struct rl_judged *o = rl_judged_find(owner, about->kind, about->handle);

	if (!o || !rl_judge_has(rule))
		return false;
	rl_report_init(report, rule, "%s %s", rl_judged_name(o), what);
	rl_report_add(report, NULL, "this call");
	rl_report_add(report, &o->birth, "%s was made by", rl_judged_name(o));
	return true;
}
