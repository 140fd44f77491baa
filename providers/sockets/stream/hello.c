// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel/proto/bytes.h"
#include "hello.h"

#define MAGIC	0x77656653u		/* "wefS" */
#define VERSION	1

enum { HEAD_FIN = 1 };

static bool are_zero(const u8 *p, u32 n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

void rl_stream_write_terms(u8 p[RL_STREAM_TERMS_LEN], const struct rl_stream_terms *t)
{
	p = weft_put32(p, MAGIC);
	p = weft_put32(p, (u32)VERSION << 24 | (u32)t->operations << 16);
	weft_put32(p, t->window);
}

bool rl_stream_read_terms(const u8 *p, u32 len, struct rl_stream_terms *t)
{
	if (len != RL_STREAM_TERMS_LEN || weft_get32(p) != MAGIC || p[4] != VERSION ||
	    p[5] > 1 || !are_zero(p + 6, 2))
		return false;
	t->operations = p[5];
	t->window = weft_get32(p + 8);
	return t->window >= RL_STREAM_WINDOW_MIN && t->window <= RL_STREAM_WINDOW_MAX;
}

void rl_stream_write_head(u8 p[RL_STREAM_HEAD_LEN], const struct rl_stream_head *h)
{
	p = weft_put32(p, h->limit);
	weft_put32(p, (u32)(h->fin ? HEAD_FIN : 0) << 24);
}

bool rl_stream_read_head(const u8 p[RL_STREAM_HEAD_LEN], struct rl_stream_head *h)
{
	h->limit = weft_get32(p);
	h->fin = p[4] & HEAD_FIN;
	return !(p[4] & ~HEAD_FIN) && are_zero(p + 5, 3);
}

bool rl_stream_take_limit(struct rl_stream_credit *c, u32 limit)
{
	if (limit - c->sent > c->window || limit - c->sent < c->limit - c->sent)
		return false;
	c->limit = limit;
	return true;
}
