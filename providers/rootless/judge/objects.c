// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The objects of a program, and those that it leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "process/file.h"
#include "process/gate.h"
#include "process/options.h"

#define BUCKETS		4096
#define MOST_OBJECTS	1000000		/* further ones are not judged */

struct rl_lock rl_judge_lock;

static struct {
	struct hlist_head by_handle[BUCKETS], by_number[BUCKETS];
	u32 n;
	u32 forks;			/* rl_fd_forks() of the process whose objects they are */
	bool is_exiting;
} objects;

static const char *const kind_names[WEFT_RUN_KINDS] = {
	[WEFT_RUN_PD] = "protection domain", [WEFT_RUN_MR] = "memory region",
	[WEFT_RUN_MW] = "memory window", [WEFT_RUN_CQ] = "completion queue",
	[WEFT_RUN_SRQ] = "shared receive queue", [WEFT_RUN_QP] = "queue pair",
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

static void forget_judged(struct rl_judged *o)
{
	rl_judged_drop_requests(o);
	hlist_del(&o->node);
	hlist_del(&o->by_number);
	objects.n--;
	free(o);
}

/* A child has not made what its parent has. */
static void judge_own_process(void)
{
	struct rl_judged *o;

	if (objects.forks == rl_fd_forks())
		return;
	objects.forks = rl_fd_forks();
	rl_report_forked();
	while ((o = rl_judged_next(NULL)))
		forget_judged(o);
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
	hlist_add_head(&o->node,
		       &objects.by_handle[judged_bucket(owner, about->kind, about->handle)]);
	hlist_add_head(&o->by_number,
		       &objects.by_number[judged_bucket(owner, about->kind, about->number)]);
	objects.n++;
	return o;
}

/* A CQ may have been resized. Another object of this handle is gone, and that is not said yet. */
void rl_judge_made(const void *owner, const struct weft_run_object *about)
{
	struct rl_stack birth;
	struct rl_judged *o, *cq;

	rl_stack_take(&birth);
	rl_lock(&rl_judge_lock);
	judge_own_process();
	o = rl_judged_find(owner, about->kind, about->handle);
	if (o && !o->is_ending) {
		o->about.size = about->size;
		rl_unlock(&rl_judge_lock);
		return;
	}
	if (o)
		forget_judged(o);
	o = add_judged(owner, about);
	if (o)
		o->birth = birth;
	cq = about->has_srq ? rl_judged_find(owner, WEFT_RUN_CQ, about->recv_cq) : NULL;
	if (cq) {
		cq->about.has_srq = true;
		cq->about.srq = about->srq;
	}
	rl_unlock(&rl_judge_lock);
}

void rl_judge_ends(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o;

	rl_lock(&rl_judge_lock);
	o = rl_judged_find(owner, about->kind, about->handle);
	if (o)
		o->is_ending = true;
	rl_unlock(&rl_judge_lock);
}

void rl_judge_refused(const void *owner, const struct weft_run_object *about)
{
	struct rl_stack here;
	struct rl_judged *o;

	rl_stack_take(&here);
	rl_lock(&rl_judge_lock);
	o = rl_judged_find(owner, about->kind, about->handle);
	if (o) {
		o->is_ending = false;
		o->refused = here;
	}
	rl_unlock(&rl_judge_lock);
}

void rl_judge_gone(const void *owner, const struct weft_run_object *about)
{
	struct rl_judged *o;

	rl_lock(&rl_judge_lock);
	o = rl_judged_find(owner, about->kind, about->handle);
	if (o && o->is_ending)
		forget_judged(o);
	rl_unlock(&rl_judge_lock);
}

/* ---- what is left ---- */

static bool is_user(const struct rl_judged *o, const struct rl_judged *of)
{
	const struct weft_run_object *a = &o->about;
	u32 handle = of->about.handle;

	if (o->owner != of->owner)
		return false;
	switch (of->about.kind) {
	case WEFT_RUN_PD:
		return a->kind != WEFT_RUN_PD && a->kind != WEFT_RUN_CQ && a->pd == handle;
	case WEFT_RUN_CQ:
		return a->kind == WEFT_RUN_QP && (a->send_cq == handle || a->recv_cq == handle);
	case WEFT_RUN_SRQ:
		return a->kind == WEFT_RUN_QP && a->has_srq && a->srq == handle;
	default:
		return false;
	}
}

static void judge_refused(const struct rl_judged *o, struct rl_report *r)
{
	const struct rl_judged *user;

	rl_report_init(r, RL_BUSY_IGNORED, "%s could not be destroyed (EBUSY), and never was",
		       rl_judged_name(o));
	rl_report_add(r, &o->refused, "the call that failed");
	rl_report_add(r, &o->birth, "%s was made by", rl_judged_name(o));
	for (user = rl_judged_next(NULL); user; user = rl_judged_next(user))
		if (is_user(user, o)) {
			rl_report_add(r, &user->birth, "%s uses it, and was made by",
				      rl_judged_name(user));
			break;
		}
}

/* False: nothing is wrong with it. */
static bool judge_left(const struct rl_judged *o, bool at_exit, struct rl_report *r)
{
	enum rl_judge_rule rule = at_exit ? RL_LEFT_AT_EXIT : RL_LEFT_AT_CLOSE;

	if (o->refused.n && rl_judge_has(RL_BUSY_IGNORED)) {
		judge_refused(o, r);
		return true;
	}
	if (!rl_judge_has(rule))
		return false;
	rl_report_init(r, rule, "%s was left when %s", rl_judged_name(o),
		       at_exit ? "the program ended" : "its context was closed");
	rl_report_add(r, &o->birth, "%s was made by", rl_judged_name(o));
	if (!at_exit)
		rl_report_add(r, NULL, "the context was closed by");
	return true;
}

/* Of @owner, or all (NULL). Users of others are said with these, so they are forgotten last. */
static void judge_all_left(const void *owner, bool at_exit)
{
	struct rl_report *r = malloc(sizeof(*r));
	struct rl_judged *o, *next;
	bool is_wrong;

	rl_lock(&rl_judge_lock);
	judge_own_process();
	for (o = rl_judged_next(NULL); r && o; o = rl_judged_next(o)) {
		is_wrong = (!owner || o->owner == owner) && judge_left(o, at_exit, r);
		if (is_wrong)
			rl_report_emit(r);
	}
	for (o = rl_judged_next(NULL); o; o = next) {
		next = rl_judged_next(o);
		if (!owner || o->owner == owner)
			forget_judged(o);
	}
	rl_unlock(&rl_judge_lock);
	free(r);
}

/* librdmacm closes its contexts when the program ends. */
void rl_judge_closes(const void *owner)
{
	judge_all_left(owner, READ_ONCE(objects.is_exiting));
}

void rl_judge_object(enum rl_judge_rule rule, const void *owner,
		     const struct weft_run_object *about, const char *what)
{
	struct rl_judged *o;
	struct rl_report r;

	if (!rl_judge_has(rule))
		return;
	rl_lock(&rl_judge_lock);
	o = rl_judged_find(owner, about->kind, about->handle);
	if (o) {
		rl_report_init(&r, rule, "%s %s", rl_judged_name(o), what);
		rl_report_add(&r, NULL, "this call");
		rl_report_add(&r, &o->birth, "%s was made by", rl_judged_name(o));
	}
	rl_unlock(&rl_judge_lock);
	if (o)
		rl_report_emit(&r);
}

void rl_judge_sleeps(const void *owner, u32 handle, u32 n)
{
	const struct weft_run_object cq = { .kind = WEFT_RUN_CQ, .handle = handle };
	char what[120];

	snprintf(what, sizeof(what), "had %u completions when it was armed, and the program waits "
		 "for the next one without polling", n);
	rl_judge_object(RL_LOST_WAKE_UP, owner, &cq, what);
}

/* ---- the end ---- */

int __cxa_atexit(void (*f)(void *arg), void *arg, void *dso);

/* The last of all exit handlers. The C library goes on from here with the new status. */
static void judge_at_exit(void *arg)
{
	u32 n;

	rl_gate_enter();
	judge_all_left(NULL, true);
	rl_gate_leave();
	n = rl_report_count();
	if (!n)
		return;
	rl_complain("the judge has made %u report%s", n, n > 1 ? "s" : "");
	exit(RL_EXIT_REPORTED);
}

__attribute__((constructor)) static void judge_begin(void)
{
	rl_report_begin();
	/* The first of all, and of no library: destructors of libraries run before it. */
	if (rl_judge_is_on)
		__cxa_atexit(judge_at_exit, NULL, NULL);
}

__attribute__((destructor)) static void note_exit(void)
{
	objects.is_exiting = true;
}
