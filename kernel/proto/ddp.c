// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DDP segment headers to and from host order. */
#include "ddp.h"

/* RFC 5041 §4.2: control, RsvdULP (8 bits), STag, TO. */
static void read_tagged(const u8 *p, struct weft_ddp_hdr *h)
{
	h->stag = weft_get32(p + 2);
	h->to = weft_get64(p + 6);
	h->inv_stag = 0;
	h->qn = 0;
	h->msn = 0;
	h->mo = 0;
}

/* RFC 5041 §4.3: control, RsvdULP (40 bits: RDMAP control, Invalidate STag), QN, MSN, MO. */
static void read_untagged(const u8 *p, struct weft_ddp_hdr *h)
{
	h->stag = 0;
	h->to = 0;
	h->inv_stag = weft_get32(p + 2);
	h->qn = weft_get32(p + 6);
	h->msn = weft_get32(p + 10);
	h->mo = weft_get32(p + 14);
}

void weft_ddp_read(const u8 *p, struct weft_ddp_hdr *h)
{
	h->tagged = p[0] & WEFT_DDP_T;
	h->last = p[0] & WEFT_DDP_L;
	h->dv = p[0] & WEFT_DDP_DV_MASK;
	h->rdmap = p[1];
	if (h->tagged)
		read_tagged(p, h);
	else
		read_untagged(p, h);
}

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
