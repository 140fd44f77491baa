// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any octets of a connection, for the record: they are cut into the same FPDUs however they arrive,
 * each entry is within its bounds, and all octets are in one but the last that is not whole.
 */
#include <string.h>

#include "fuzz.h"
#include "record/fpdus.h"
#include "record/log.h"

#define FPDU_MAX	(2 + 65535 + 3 + 4)
#define KEPT_MAX	128

static u64 entries;			/* a hash of all so far */
static u64 in_entries;			/* octets of FPDUs */

/* ---- what the record asks of its library ---- */

void rl_record_put(const struct rl_record_entry *e)
{
	struct weft_record_fpdu f;

	if (e->type != WEFT_RECORD_FPDU)
		return;
	FUZZ_ASSERT(e->len == sizeof(f));
	memcpy(&f, e->body, sizeof(f));
	f.conn = 0;			/* each run has another */
	FUZZ_ASSERT(f.len >= 8 && f.len <= FPDU_MAX && !(f.len % 4));
	FUZZ_ASSERT(f.kept == e->more_len && f.kept == min_t(u32, f.len, KEPT_MAX));
	FUZZ_ASSERT(f.offset == in_entries);
	in_entries += f.len;
	entries = fuzz_hash(entries, &f, sizeof(f));
	entries = fuzz_hash(entries, &e->flags, sizeof(e->flags));
	entries = fuzz_hash(entries, e->more, e->more_len);
}

bool rl_record_is_old(u64 *at)
{
	return false;
}

bool rl_guard_copy(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
	return true;
}

/* ---- */

struct way_of_feeding {
	u8 flags;
	u32 cut;
	bool may_vanish;
};

/* Each piece has memory of its own, of its size. */
static u64 feed(const u8 *data, size_t size, const struct way_of_feeding *w)
{
	const struct rl_recorded_facts facts = {
		.flags = WEFT_RECORD_STARTED | (w->flags & 1 ? WEFT_RECORD_INITIATOR : 0),
		.markers_out = w->flags & 2, .has_rtr = w->flags & 4,
	};
	struct rl_recorded *r = rl_recorded_new();
	u32 state = 1, n;
	u64 left = size;
	u8 *piece;

	FUZZ_ASSERT(r);
	entries = in_entries = 0;
	rl_recorded_facts(r, 5, &facts);
	for (; left; left -= n, data += n) {
		n = w->cut == ~0u ? left : min_t(u64, left, fuzz_step(&state, w->cut) ?: 1);
		piece = malloc(n);
		memcpy(piece, data, n);
		rl_recorded_octets(r, true, 5, piece, n, w->may_vanish, 1);
		free(piece);
	}
	FUZZ_ASSERT(in_entries <= size && (w->flags & 2 || size - in_entries < FPDU_MAX));
	rl_recorded_free(r);
	return entries;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct way_of_feeding w = { .cut = ~0u };
	u64 whole;

	if (!size)
		return 0;
	w.flags = data[0];
	whole = feed(data + 1, size - 1, &w);
	w.cut = data[0] >> 3;
	FUZZ_ASSERT(feed(data + 1, size - 1, &w) == whole);
	w.may_vanish = true;
	FUZZ_ASSERT(feed(data + 1, size - 1, &w) == whole);
	return 0;
}
