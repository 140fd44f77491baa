/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of weft-reflector: one arena a session, its regions in two PDs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "verbs.h"

#define IDLE_SESSIONS 16
#define AREAS 8
#define DRAWN_MAX 256

bool declares_imm, verbose;
static struct reflector_session *sessions;

static int access_of(const struct session *s, enum refl_region r)
{
	int rights[REFL_REGIONS] = {
		[REFL_RW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ,
		[REFL_W] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[REFL_R] = IBV_ACCESS_REMOTE_READ,
		[REFL_ALL] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	rights[REFL_PD2] = rights[REFL_BIG] = rights[REFL_RW];
	if (s->memory.caps & REFL_CAP_ATOMIC && r != REFL_R && r != REFL_W &&
	    r != REFL_ALL)
		rights[r] |= IBV_ACCESS_REMOTE_ATOMIC;
	if (s->memory.caps & REFL_CAP_BIND)
		rights[r] |= r == REFL_R ? 0 : IBV_ACCESS_MW_BIND;
	return rights[r];
}

static int register_all(struct session *s)
{
	for (int r = 0; r < REFL_REGIONS; r++) {
		s->mr[r] = ibv_reg_mr(r == REFL_PD2 ? s->pd2 : s->pd,
				      reflector_region_start(&s->memory, r),
				      reflector_region_len(&s->memory, r),
				      access_of(s, r));
		if (!s->mr[r])
			return -1;
		s->memory.stag[r] = s->mr[r]->rkey;
	}
	return 0;
}

int deregister_region(struct reflector_link *r, enum refl_region region)
{
	struct session *s = ((struct link *)r->front)->s;
	int err = ibv_dereg_mr(s->mr[region]);

	if (!err)
		s->mr[region] = NULL;
	return err;
}

int register_and_forget(struct reflector_link *r, uint32_t count)
{
	struct session *s = ((struct link *)r->front)->s;
	struct ibv_mr *mr[DRAWN_MAX];
	uint32_t n = 0;

	for (count = count < DRAWN_MAX ? count : DRAWN_MAX; n < count; n++) {
		mr[n] = ibv_reg_mr(s->pd, s->memory.arena, REFLECTOR_PAGE,
				   IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
		if (!mr[n])
			break;
		reflector_keep_stag(r, n, mr[n]->rkey);
	}
	for (uint32_t i = 0; i < n; i++)
		ibv_dereg_mr(mr[i]);
	return n == count ? 0 : ENOMEM;
}

static uint32_t caps_of(struct ibv_context *verbs)
{
	struct ibv_device_attr a;
	uint32_t caps = declares_imm ? REFL_CAP_IMM : 0;

	if (ibv_query_device(verbs, &a))
		return caps;
	if (a.atomic_cap != IBV_ATOMIC_NONE)
		caps |= REFL_CAP_ATOMIC;
	if (a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				  IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		caps |= REFL_CAP_BIND | REFL_CAP_ONE_STREAM;
	if (a.max_srq > 0)
		caps |= REFL_CAP_SRQ;
	return caps;
}

static void session_free(struct session *s)
{
	reflector_remove_session(&sessions, &s->memory);
	if (s->srq)
		ibv_destroy_srq(s->srq);
	for (int r = 0; r < REFL_REGIONS; r++)
		if (s->mr[r])
			ibv_dereg_mr(s->mr[r]);
	if (s->pd2)
		ibv_dealloc_pd(s->pd2);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	munmap(s->memory.arena, reflector_arena_size(REFL_BIG_LEN, AREAS));
	free(s);
}

static struct session *session_new(struct ibv_context *verbs, uint64_t cookie)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->memory = (struct reflector_session){
		.front = s, .ops = &verbs_ops, .device = verbs,
		.cookie = cookie, .big_len = REFL_BIG_LEN, .areas = AREAS,
		.caps = caps_of(verbs),
		.arena = mmap(NULL, reflector_arena_size(REFL_BIG_LEN, AREAS),
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};
	if (s->memory.arena == MAP_FAILED) {
		free(s);
		return NULL;
	}
	reflector_fill_arena(&s->memory);
	s->pd = ibv_alloc_pd(verbs);
	s->pd2 = ibv_alloc_pd(verbs);
	if (!s->pd || !s->pd2 || register_all(s)) {
		perror("weft-reflector: session");
		session_free(s);
		return NULL;
	}
	reflector_add_session(&sessions, &s->memory);
	return s;
}

struct session *session_get(struct ibv_context *verbs, uint64_t cookie)
{
	struct reflector_session *s =
		reflector_idle_session(sessions, IDLE_SESSIONS);

	if (s)
		session_free(s->front);
	s = reflector_find_session(sessions, cookie, verbs);
	return s ? s->front : session_new(verbs, cookie);
}
