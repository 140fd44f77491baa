// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <time.h>

#include "adverse.h"
#include "judge.h"
#include "process/guard.h"
#include "process/options.h"
#include "process/raw.h"

bool rl_is_adverse;

static u32 seed;

/* ---- choices ---- */

static u64 mix(u64 n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	return n ^ n >> 31;
}

u32 rl_adverse_choose(enum rl_adverse_choice kind, u32 about, u32 nth, u32 range)
{
	u64 n = mix((u64)seed << 8 | kind);

	n = mix(n ^ ((u64)about << 32 | nth));
	return (u32)((n >> 32) * range >> 32);
}

u32 rl_adverse_next(enum rl_adverse_choice kind, u32 range)
{
	static u32 made[RL_ADVERSE_CHOICES];

	return rl_adverse_choose(kind, 0, __atomic_fetch_add(&made[kind], 1, __ATOMIC_RELAXED),
				 range);
}

/* ---- what they lead to ---- */

static void pause_us(u32 us)
{
	const struct timespec t = { .tv_nsec = us * 1000l };

	rl_raw(SYS_nanosleep, &t, NULL);
}

#define LAST_US		300		/* for a program that polls the last octets */
#define PIECE		512
#define MOST_PAUSES	4

static bool place_piece(u8 *to, const u8 *from, size_t at, size_t n)
{
	return rl_guard_copy(to + at, from + at, n);
}

bool rl_adverse_place(u8 *to, const u8 *from, size_t n)
{
	size_t left = n, piece = n < 8 ? n : 8;
	u32 pauses = 0;

	/* Most are left alone: each pause is a message's time. */
	if (n < 2 || rl_adverse_next(RL_ADVERSE_PLACEMENT, 4))
		return place_piece(to, from, 0, n);
	for (; left; piece = left < PIECE ? left : PIECE) {
		left -= piece;
		if (!place_piece(to, from, left, piece))
			return false;
		if (left && pauses++ < MOST_PAUSES)
			pause_us(LAST_US);
	}
	return true;
}

void rl_adverse_pause(void)
{
	pause_us(LAST_US);
}

#define LATEST_EVENT_MS	5

u32 rl_adverse_event_ms(void)
{
	u32 n = rl_adverse_next(RL_ADVERSE_CM_EVENT, 2 * LATEST_EVENT_MS);

	/* Half of them are not late. */
	return n > LATEST_EVENT_MS ? n - LATEST_EVENT_MS : 0;
}

#define RNR_ENDLESS	7

/* The receiver's timer may be as short as 10 us, and RNICs do not retry. */
u32 rl_adverse_rnr_ms(u8 rnr_retry_count, u32 usual)
{
	bool is_endless = rnr_retry_count >= RNR_ENDLESS && rl_options()->roce;

	return rl_is_adverse && !is_endless ? 0 : usual;
}

#define LONGEST_RESOLVE_MS 20

bool rl_adverse_times_out(u32 timeout_ms)
{
	return rl_is_adverse &&
	       timeout_ms < rl_adverse_next(RL_ADVERSE_RESOLVE, LONGEST_RESOLVE_MS + 1);
}

__attribute__((constructor)) static void adverse_begin(void)
{
	seed = rl_options()->adverse;
	rl_is_adverse = seed;
	rl_place_apart |= rl_is_adverse;
}
