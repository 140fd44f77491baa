// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sidr.h"

#define MAGIC		0x77655349	/* "weSI" */
#define VERSION		1
#define QPN_MAX		0xffffff

/* Doubled each time. */
#define PATIENCE_MS	200
#define PATIENCE_MAX_MS	4000

void rl_sidr_write(u8 p[RL_SIDR_LEN], const struct rl_sidr_msg *a)
{
	memset(p, 0, RL_SIDR_LEN);
	weft_put32(p, MAGIC);
	p[4] = VERSION;
	p[5] = a->kind;
	weft_put16(p + 6, a->ps);
	weft_put64(p + 8, a->number);
	weft_put32(p + 16, a->qpn);
	weft_put32(p + 20, a->qkey);
	p[24] = a->status;
	p[25] = (u8)a->len;
	memcpy(p + 28, a->data, a->len);
}

static bool sidr_is_zero(const u8 *p, u32 len)
{
	u8 all = 0;

	while (len--)
		all |= *p++;
	return !all;
}

/* A request has none of a reply's fields, and only a valid reply has a QP. */
static bool is_consistent(const struct rl_sidr_msg *a)
{
	if (a->kind != RL_SIDR_REQUEST && a->kind != RL_SIDR_REPLY)
		return false;
	if (a->kind == RL_SIDR_REQUEST && a->status)
		return false;
	if (a->kind == RL_SIDR_REQUEST || a->status)
		return !a->qpn && !a->qkey;
	return a->qpn && a->qpn <= QPN_MAX;
}

bool rl_sidr_read(const u8 *p, u32 len, struct rl_sidr_msg *a)
{
	if (len != RL_SIDR_LEN || weft_get32(p) != MAGIC || p[4] != VERSION)
		return false;
	*a = (struct rl_sidr_msg) {
		.kind = p[5],
		.ps = weft_get16(p + 6),
		.number = weft_get64(p + 8),
		.qpn = weft_get32(p + 16),
		.qkey = weft_get32(p + 20),
		.status = p[24],
		.len = p[25],
	};
	memcpy(a->data, p + 28, a->len);
	return is_consistent(a) && !weft_get16(p + 26) &&
	       sidr_is_zero(p + 28 + a->len, RL_SIDR_DATA - a->len);
}

u32 rl_sidr_timeout(u32 nth)
{
	return nth < 5 ? PATIENCE_MS << nth : PATIENCE_MAX_MS;
}
