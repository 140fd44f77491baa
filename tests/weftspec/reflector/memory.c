/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A session's arena, in pages: the small regions on every other one, the
 * status block, BIG, and the slots of each area.
 */
#include "core.h"

#define AT_STATUS (9 * REFLECTOR_PAGE)
#define STATUS_SIZE (2 * REFLECTOR_PAGE)
#define AT_BIG (12 * REFLECTOR_PAGE + REFL_ODD)
#define BEHIND_BIG (4 * REFLECTOR_PAGE - REFL_ODD)
#define RECV_AREA (REFLECTOR_RECV_SLOTS * REFL_RECV_STRIDE)
#define TX_AREA (REFLECTOR_TX_SLOTS * REFLECTOR_TX_SIZE)

static size_t recv_areas_at(uint32_t big_len)
{
	return AT_BIG + (size_t)big_len + BEHIND_BIG;
}

static size_t tx_areas_at(uint32_t big_len, uint32_t areas)
{
	return recv_areas_at(big_len) + (size_t)areas * RECV_AREA;
}

size_t reflector_arena_size(uint32_t big_len, uint32_t areas)
{
	return tx_areas_at(big_len, areas) + (size_t)areas * TX_AREA;
}

uint8_t *reflector_region_start(const struct reflector_session *s,
				enum refl_region r)
{
	if (r == REFL_ALL)
		return s->arena;
	if (r == REFL_BIG)
		return s->arena + AT_BIG;
	return s->arena + (1 + 2 * r) * REFLECTOR_PAGE + REFL_ODD;
}

uint32_t reflector_region_len(const struct reflector_session *s,
			      enum refl_region r)
{
	if (r == REFL_ALL)
		return (uint32_t)reflector_arena_size(s->big_len, s->areas);
	return r == REFL_BIG ? s->big_len : REFL_REGION_LEN;
}

static void fill_region(struct reflector_session *s, enum refl_region r)
{
	uint8_t *p = reflector_region_start(s, r);

	for (uint32_t i = 0; i < reflector_region_len(s, r); i++)
		p[i] = (uint8_t)(7 * i + 31 * r + 13);
}

void reflector_fill_arena(struct reflector_session *s)
{
	memset(s->arena, REFL_GUARD_BYTE,
	       reflector_arena_size(s->big_len, s->areas));
	for (int r = 0; r < REFL_ALL; r++)
		fill_region(s, r);
	memset(s->arena + AT_STATUS, 0, STATUS_SIZE);
	put32(s->arena + AT_STATUS, REFL_MAGIC_STATUS);
}

uint8_t *reflector_status_block(const struct reflector_session *s)
{
	return s->arena + AT_STATUS;
}

uint8_t *reflector_recv_slot(const struct reflector_link *l, uint32_t slot)
{
	return l->s->arena + recv_areas_at(l->s->big_len) +
	       l->idx % l->s->areas * RECV_AREA +
	       slot % REFLECTOR_RECV_SLOTS * REFL_RECV_STRIDE;
}

uint8_t *reflector_tx_slot(struct reflector_link *l)
{
	return l->s->arena + tx_areas_at(l->s->big_len, l->s->areas) +
	       l->idx % l->s->areas * TX_AREA +
	       l->tx_next++ % REFLECTOR_TX_SLOTS * REFLECTOR_TX_SIZE;
}

uint8_t *reflector_big(const struct reflector_session *s, uint64_t off)
{
	return s->arena + AT_BIG + (off & (s->big_len - 1));
}

void reflector_keep_stag(struct reflector_link *l, uint32_t i, uint32_t stag)
{
	put32(reflector_big(l->s, 4ull * i), stag);
}

static void write_event(uint8_t *p, uint32_t conn, enum refl_event kind,
			uint8_t status, const uint32_t values[3],
			const uint8_t *head)
{
	put16(p, (uint16_t)conn);
	p[2] = kind;
	p[3] = status;
	for (int i = 0; i < 3; i++)
		put32(p + 4 + 4 * i, values[i]);
	if (head)
		memcpy(p + 16, head, 16);
}

void reflector_note(struct reflector_link *l, enum refl_event kind,
		    uint8_t status, const uint32_t values[3],
		    const uint8_t *head)
{
	uint8_t *block = reflector_status_block(l->s);
	uint32_t n;

	if (l->s->ops->lock_status)
		l->s->ops->lock_status(l);
	n = get32(block + 4);
	if (n < REFL_EVENTS) {
		write_event(block + REFL_STATUS_HEAD + n * REFL_EVENT_LEN,
			    l->idx, kind, status, values, head);
		put32(block + 4, n + 1);
	}
	if (l->s->ops->unlock_status)
		l->s->ops->unlock_status(l);
}
