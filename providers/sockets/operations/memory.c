// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ranges of the program's memory that the peer of a socket may put to, or get from. */
#include <stdlib.h>

#include "ops.h"

struct rl_ops_range {
	struct rl_mr *mr;
	struct rl_ops_range *next;
};

static u32 access_of(u32 access)
{
	u32 bits = WEFT_ACCESS_ZERO_BASED;

	if (access & WEFT_MAY_PUT)
		bits |= WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_LOCAL_WRITE;
	if (access & WEFT_MAY_GET)
		bits |= WEFT_ACCESS_REMOTE_READ;
	return bits;
}

static int range_make(struct rl_stream *s, struct weft_memory *m)
{
	struct rl_ops_range *r = calloc(1, sizeof(*r));
	int rv = r ? 0 : -ENOMEM;

	if (!rv)
		rv = rl_mr_new(&s->ops->pd, m->addr, m->length, 0, access_of(m->access), &r->mr);
	if (rv) {
		free(r);
		return rv;
	}
	r->next = s->ops->ranges;
	s->ops->ranges = r;
	m->key = r->mr->region.stag;
	rl_ops_serve(s);
	return 0;
}

int rl_ops_register(struct rl_stream *s, struct weft_memory *m)
{
	int rv = rl_stream_begin(s);

	if (rv)
		return rv;
	rv = rl_ops_over(s);
	if (!rv)
		rv = range_make(s, m);
	rl_stream_end(s);
	return rv;
}

/* Whoever uses it has the connection's lock, and is waited for. */
static void destroy(struct rl_ops_range *r)
{
	rl_mr_destroy(r->mr);
	free(r);
}

static int deregister(struct rl_stream *s, u32 key)
{
	struct rl_ops_range **p = &s->ops->ranges, *r;

	while (*p && (*p)->mr->region.stag != key)
		p = &(*p)->next;
	r = *p;
	if (!r)
		return -ENOENT;
	*p = r->next;
	if (s->conn)
		rl_conn_unlock(s->conn);
	destroy(r);
	if (s->conn)
		rl_conn_lock(s->conn);
	return 0;
}

int rl_ops_deregister(struct rl_stream *s, u32 key)
{
	int rv = rl_stream_begin(s);

	if (rv)
		return rv;
	rv = deregister(s, key);
	rl_stream_end(s);
	return rv;
}

void rl_ops_deregister_all(struct rl_stream *s)
{
	struct rl_ops_range *r;

	while ((r = s->ops->ranges)) {
		s->ops->ranges = r->next;
		destroy(r);
	}
}
