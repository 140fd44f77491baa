/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sessions by cookie, and the connections that share them. */
#include "core.h"

struct reflector_session *
reflector_find_session(struct reflector_session *list, uint64_t cookie,
		       const void *device)
{
	for (; list; list = list->next)
		if (list->cookie == cookie && list->device == device &&
		    (!list->max_links || list->links < list->max_links))
			return list;
	return NULL;
}

void reflector_add_session(struct reflector_session **list,
			   struct reflector_session *s)
{
	s->next = *list;
	*list = s;
}

void reflector_remove_session(struct reflector_session **list,
			      struct reflector_session *s)
{
	while (*list && *list != s)
		list = &(*list)->next;
	if (*list)
		*list = s->next;
}

struct reflector_session *
reflector_idle_session(struct reflector_session *list, uint32_t keep)
{
	struct reflector_session *oldest = NULL;
	uint32_t idle = 0;

	for (; list; list = list->next) {
		if (list->links)
			continue;
		idle++;
		if (!oldest || list->used < oldest->used)
			oldest = list;
	}
	return idle > keep ? oldest : NULL;
}

void reflector_join(struct reflector_link *l, struct reflector_session *s,
		    uint32_t recvs)
{
	l->s = s;
	l->idx = s->conns++;
	s->links++;
	l->recv_count = recvs ? recvs : REFL_RECV_COUNT;
	if (l->recv_count > REFLECTOR_RECV_SLOTS)
		l->recv_count = REFLECTOR_RECV_SLOTS;
}

void reflector_leave(struct reflector_link *l)
{
	static unsigned long departures;

	l->s->links--;
	l->s->used = ++departures;
}
