/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory of weft-reflector: one arena a session, its regions in two PDs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bytes.h"
#include "verbs.h"

#define IDLE_SESSIONS 16

bool declares_imm, verbose;
static struct session *sessions;

size_t region_at(int r)
{
	return r == REFL_BIG ? AT_BIG : (size_t)(1 + 2 * r) * PAGE + REFL_ODD;
}

size_t region_len(int r)
{
	return r == REFL_BIG ? REFL_BIG_LEN : REFL_REGION_LEN;
}

static void fill_arena(struct session *s)
{
	memset(s->arena, REFL_GUARD_BYTE, ARENA);
	for (int r = 0; r < REFL_ALL; r++)
		for (size_t i = 0; i < region_len(r); i++)
			s->arena[region_at(r) + i] =
				(uint8_t)(7 * i + 31 * r + 13);
	memset(s->arena + AT_STATUS, 0, 2 * PAGE);
	put32(s->arena + AT_STATUS, REFL_MAGIC_STATUS);
}

void session_note(struct session *s, unsigned int conn, enum refl_event kind,
		  uint8_t status, const uint32_t v[3], const uint8_t *head)
{
	uint8_t *st = s->arena + AT_STATUS, *p;
	uint32_t n = get32(st + 4);

	if (n >= REFL_EVENTS)
		return;
	p = st + REFL_STATUS_HEAD + n * REFL_EVENT_LEN;
	put16(p, conn);
	p[2] = kind;
	p[3] = status;
	for (int i = 0; i < 3; i++)
		put32(p + 4 + 4 * i, v[i]);
	if (head)
		memcpy(p + 16, head, 16);
	put32(st + 4, n + 1);
}

static int access_of(const struct session *s, int r)
{
	int rights[REFL_REGIONS] = {
		[REFL_RW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ,
		[REFL_W] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[REFL_R] = IBV_ACCESS_REMOTE_READ,
		[REFL_ALL] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	rights[REFL_PD2] = rights[REFL_BIG] = rights[REFL_RW];
	if (s->caps & REFL_CAP_ATOMIC && r != REFL_R && r != REFL_W &&
	    r != REFL_ALL)
		rights[r] |= IBV_ACCESS_REMOTE_ATOMIC;
	if (s->caps & REFL_CAP_BIND)
		rights[r] |= r == REFL_R ? 0 : IBV_ACCESS_MW_BIND;
	return rights[r];
}

static int register_all(struct session *s)
{
	for (int r = 0; r < REFL_REGIONS; r++) {
		bool all = r == REFL_ALL;

		s->mr[r] = ibv_reg_mr(r == REFL_PD2 ? s->pd2 : s->pd,
				      s->arena + (all ? 0 : region_at(r)),
				      all ? ARENA : region_len(r),
				      access_of(s, r));
		if (!s->mr[r])
			return -1;
	}
	return 0;
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
		caps |= REFL_CAP_BIND;
	if (a.max_srq > 0)
		caps |= REFL_CAP_SRQ;
	return caps;
}

static void session_free(struct session *s)
{
	struct session **p = &sessions;

	while (*p && *p != s)
		p = &(*p)->next;
	if (*p)
		*p = s->next;
	if (s->srq)
		ibv_destroy_srq(s->srq);
	for (int r = 0; r < REFL_REGIONS; r++)
		if (s->mr[r])
			ibv_dereg_mr(s->mr[r]);
	if (s->pd2)
		ibv_dealloc_pd(s->pd2);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	munmap(s->arena, ARENA);
	free(s);
}

static void drop_idle(void)
{
	struct session *oldest = NULL;
	unsigned int idle = 0;

	for (struct session *s = sessions; s; s = s->next) {
		if (s->links)
			continue;
		idle++;
		if (!oldest || s->used < oldest->used)
			oldest = s;
	}
	if (idle > IDLE_SESSIONS)
		session_free(oldest);
}

static struct session *session_new(struct ibv_context *verbs, uint64_t cookie)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->arena == MAP_FAILED) {
		free(s);
		return NULL;
	}
	s->cookie = cookie;
	s->verbs = verbs;
	s->caps = caps_of(verbs);
	fill_arena(s);
	s->pd = ibv_alloc_pd(verbs);
	s->pd2 = ibv_alloc_pd(verbs);
	if (!s->pd || !s->pd2 || register_all(s)) {
		perror("weft-reflector: session");
		session_free(s);
		return NULL;
	}
	s->next = sessions;
	sessions = s;
	return s;
}

struct session *session_get(struct ibv_context *verbs, uint64_t cookie)
{
	struct session *s;

	drop_idle();
	for (s = sessions; s; s = s->next)
		if (s->cookie == cookie && s->verbs == verbs)
			return s;
	return session_new(verbs, cookie);
}
