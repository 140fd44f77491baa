// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

enum weft_denial weft_region_check(const struct weft_region *r, u32 stag, u32 pd, u32 qp,
				   u64 addr, u64 len, u32 access)
{
	/* Acquire: what REG_MR wrote before it said so, even for another QP's region. */
	if (!r || !smp_load_acquire(&r->valid) || r->stag != stag)
		return WEFT_DENIED_STAG;
	/* The DMA region is every PD's; its access never has a remote right. */
	if (r->kind != WEFT_REGION_DMA && (r->pd != pd || (r->qp && r->qp != qp)))
		return WEFT_DENIED_ASSOC;
	if (access & ~r->access)
		return WEFT_DENIED_ACCESS;
	/* The last octet counts: a range may end with the address space. */
	if (len && addr + (len - 1) < addr)
		return WEFT_DENIED_WRAP;
	/* Neither side can wrap: addr >= base, and len <= r->len before it is subtracted. */
	if (addr < r->base || len > r->len || addr - r->base > r->len - len)
		return WEFT_DENIED_BOUNDS;
	return WEFT_GRANTED;
}
