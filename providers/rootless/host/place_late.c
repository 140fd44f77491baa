// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "judge/adverse.h"
#include "judge/judge.h"
#include "place_late.h"
#include "process/guard.h"

#define MOST_KEPT	64
#define MOST_OCTETS	(4 << 20)
#define MOST_PAUSES	4

struct kept {
	struct kept *earlier;
	struct weft_region *region;	/* held */
	u8 *to;
	u32 len;
	u8 octets[];
};

/* Small: programs load this library late, when glibc has little room left for such variables. */
static __thread struct {
	bool is_open;
	u32 n, octets;
	struct kept *last;
} late __attribute__((tls_model("initial-exec")));

void rl_place_late_begin(void)
{
	late.is_open = true;
}

bool rl_place_late(struct weft_region *r, u8 *to, struct weft_cur *from, u32 len)
{
	struct kept *k;
	u32 at, n;

	/* Memory that is gone is an error of this message. */
	if (!late.is_open || !len || !rl_guard_readable(to, len))
		return false;
	if (late.n == MOST_KEPT || late.octets + len > MOST_OCTETS)
		rl_place_late_flush();
	k = malloc(sizeof(*k) + len);
	if (!k) {
		rl_place_late_flush();
		return false;
	}
	*k = (struct kept){ .earlier = late.last, .region = r, .to = to, .len = len };
	for (at = 0; at < len; at += n) {
		const u8 *p = weft_cur_piece(from, len - at, &n);

		memcpy(k->octets + at, p, n);
	}
	weft_host_region_hold(r, 1);
	late.last = k;
	late.n++;
	late.octets += len;
	return true;
}

static void place_kept(struct kept *k)
{
	rl_judge_placing(k->to, k->len, true);
	rl_guard_copy(k->to, k->octets, k->len);
	rl_judge_placing(k->to, k->len, false);
	weft_host_region_drop(k->region);
	late.last = k->earlier;
	late.n--;
	free(k);
}

void rl_place_late_flush(void)
{
	u32 pauses = 0;

	late.octets = 0;
	while (late.n) {
		place_kept(late.last);
		if (late.n && pauses++ < MOST_PAUSES)
			rl_adverse_pause();
	}
}

void rl_place_late_end(void)
{
	rl_place_late_flush();
	late.is_open = false;
}
