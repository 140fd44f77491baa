// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Thread domains, and parent domains with one: the program promises that one thread at a time uses
 * the objects created in it, so their locks are not taken. The kernel knows neither. A parent
 * domain's allocators are not called: rings are the kernel's memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "weft.h"

struct ibv_td *weft_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct weft_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = ctx;
	return &td->td;
}

int weft_dealloc_td(struct ibv_td *ibtd)
{
	struct weft_td *td = container_of(ibtd, struct weft_td, td);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/* 0, or an errno value if @attr is unknown or invalid. */
static int check_domain_attr(struct ibv_context *ctx,
			     const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!attr->pd || attr->pd->context != ctx || to_weft_pd(attr->pd)->of)
		return EINVAL;
	return attr->td && attr->td->context != ctx ? EINVAL : 0;
}

struct ibv_pd *weft_alloc_parent_domain(struct ibv_context *ctx,
					struct ibv_parent_domain_init_attr *attr)
{
	int err = check_domain_attr(ctx, attr);
	struct weft_pd *pd;

	if (err) {
		errno = err;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ibv_initialize_parent_domain(&pd->pd, attr->pd);
	pd->of = to_weft_pd(attr->pd);
	atomic_fetch_add(&pd->of->users, 1);
	if (attr->td) {
		pd->td = container_of(attr->td, struct weft_td, td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	return &pd->pd;
}

int weft_dealloc_parent_domain(struct weft_pd *pd)
{
	atomic_fetch_sub(&pd->of->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	free(pd);
	return 0;
}

bool weft_pd_is_one_threads(struct ibv_pd *pd)
{
	return pd && to_weft_pd(pd)->td;
}
