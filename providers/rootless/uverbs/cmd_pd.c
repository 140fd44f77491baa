// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains. */
#include <stdlib.h>

#include "command.h"

int rl_cmd_alloc_pd(struct rl_context *ctx, struct rl_command *c)
{
	static u32 last;
	struct ib_uverbs_alloc_pd_resp *resp = c->out;
	struct rl_pd *pd = calloc(1, sizeof(*pd));
	int rv;

	if (!pd)
		return -ENOMEM;
	pd->o.kind = RL_PD;
	pd->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	rv = rl_object_add(ctx, &pd->o);
	if (rv) {
		free(pd);
		return rv;
	}
	resp->pd_handle = pd->o.handle;
	return 0;
}

int rl_cmd_dealloc_pd(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dealloc_pd *in = c->in;
	struct rl_pd *pd = rl_find_pd(ctx, in->pd_handle);

	if (!pd || pd->o.users)
		return pd ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->pd_handle, NULL);
	free(pd);
	return 0;
}
