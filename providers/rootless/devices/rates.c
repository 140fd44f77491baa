// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include <infiniband/verbs.h>

#include "rates.h"

static const struct width {
	u8 number, lanes;
} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };

/* A lane, in steps of 0.5 Gb/s as the kernel counts. */
static const struct speed {
	u8 number;
	char name[7];
	u32 mbps;
} speeds[] = {
	{ 1, "SDR", 2500 }, { 2, "DDR", 5000 }, { 4, "QDR", 10000 }, { 8, "FDR10", 10000 },
	{ 16, "FDR", 14000 }, { 32, "EDR", 25000 }, { 64, "HDR", 50000 }, { 128, "NDR", 100000 },
};

/* In rising order: what Ethernet adapters report for the speeds of Ethernet. */
static const struct rl_rate ethernet[] = {
	{ 1, 1 }, { 1, 2 }, { 1, 8 }, { 2, 2 }, { 1, 32 }, { 2, 8 }, { 16, 32 }, { 2, 16 },
	{ 2, 32 }, { 2, 64 }, { 2, 128 }, { 4, 128 },
};

static u32 lanes_of(u8 width)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(widths); i++)
		if (widths[i].number == width)
			return widths[i].lanes;
	return 1;
}

static const struct speed *speed_of(u8 number)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].number == number)
			return &speeds[i];
	return &speeds[0];
}

u32 rl_rate_mbps(const struct rl_rate *r)
{
	return lanes_of(r->width) * speed_of(r->speed)->mbps;
}

u8 rl_rate_width(u32 lanes)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(widths); i++)
		if (widths[i].lanes == lanes)
			return widths[i].number;
	return 0;
}

static struct rl_rate rate_of_width(u32 mbps, u8 width)
{
	struct rl_rate r = { .width = width };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		r.speed = speeds[i].number;
		/* Of two names for 10 Gb/s the second is Ethernet's. */
		if (rl_rate_mbps(&r) >= mbps && r.speed != 4)
			break;
	}
	return r;
}

struct rl_rate rl_rate_of(u32 mbps, u8 width)
{
	u32 i;

	if (width)
		return rate_of_width(mbps, width);
	for (i = 0; i < ARRAY_SIZE(ethernet) - 1; i++)
		if (rl_rate_mbps(&ethernet[i]) >= mbps)
			break;
	return ethernet[i];
}

bool rl_rate_is(u32 mbps, u8 width)
{
	const struct rl_rate r = rl_rate_of(mbps, width);

	return rl_rate_mbps(&r) == mbps;
}

void rl_rate_format(const struct rl_rate *r, char *text, size_t size)
{
	u32 mbps = rl_rate_mbps(r);

	snprintf(text, size, "%u%s Gb/sec (%uX %s)", mbps / 1000, mbps % 1000 ? ".5" : "",
		 lanes_of(r->width), speed_of(r->speed)->name);
}

u8 rl_rate_number(const struct rl_rate *r)
{
	static const struct {
		u32 mbps;
		u8 number;
	} rates[] = {
		{ 2500, IBV_RATE_2_5_GBPS }, { 5000, IBV_RATE_5_GBPS },
		{ 10000, IBV_RATE_10_GBPS }, { 20000, IBV_RATE_20_GBPS },
		{ 25000, IBV_RATE_25_GBPS }, { 40000, IBV_RATE_40_GBPS },
		{ 50000, IBV_RATE_50_GBPS }, { 56000, IBV_RATE_56_GBPS },
		{ 100000, IBV_RATE_100_GBPS }, { 200000, IBV_RATE_200_GBPS },
		{ 400000, IBV_RATE_400_GBPS }, { 800000, 23 },
	};
	u32 mbps = rl_rate_mbps(r), i;

	for (i = 0; i < ARRAY_SIZE(rates) - 1; i++)
		if (rates[i].mbps >= mbps)
			break;
	return rates[i].number;
}
