// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DDP segment headers to and from host order. */
#include "ddp.h"

u8 *weft_ddp_write(u8 *p, const struct weft_ddp_hdr *h)
{
	p[0] = (h->tagged ? WEFT_DDP_T : 0) | (h->last ? WEFT_DDP_L : 0) |
	       (h->dv & WEFT_DDP_DV_MASK);
	p[1] = h->rdmap;
	if (h->tagged)
		return weft_put64(weft_put32(p + 2, h->stag), h->to);
	p = weft_put32(p + 2, h->inv_stag);
	p = weft_put32(p, h->qn);
	p = weft_put32(p, h->msn);
	return weft_put32(p, h->mo);
}
