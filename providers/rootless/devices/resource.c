// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "resource.h"

#define MAX_DEVICES 64			/* devices from here on are not counted */

static u32 objects[MAX_DEVICES][RL_KINDS]; /* atomic */

void rl_resource_add(const struct rl_device *d, enum rl_kind kind, int n)
{
	if (d->index < MAX_DEVICES)
		__atomic_fetch_add(&objects[d->index][kind], n, __ATOMIC_RELAXED);
}

u32 rl_resource_count(const struct rl_device *d, enum rl_kind kind)
{
	return d->index < MAX_DEVICES ? READ_ONCE(objects[d->index][kind]) : 0;
}
