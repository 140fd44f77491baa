// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection set-up against any frame: a frame that was read can be written again, and the result
 * of a negotiation keeps the relations of RFC 6581 §9.1 and §9.2. Also Terminates, the other input
 * that a peer can send before it is trusted.
 *
 * Octets 0 to 9 configure this end, the rest is the peer's frame.
 */
#include "fuzz.h"
#include "../../kernel/proto/mpa.h"
#include "../../kernel/proto/rdmap.h"

enum { CFG_LEN = 10 };

u32 weft_crc32c(u32 crc, const void *p, size_t len)
{
	return fuzz_crc32c(crc, p, len);
}

u32 weft_crc32c_copy(u32 crc, void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return fuzz_crc32c(crc, to, len);
}

static struct weft_mpa_cfg cfg_of(const u8 *p)
{
	return (struct weft_mpa_cfg){
		.rev = 1 + (p[0] & 1), .crc = p[0] & 2, .markers = p[0] & 4, .p2p = p[0] & 8,
		.rtr = p[1] & WEFT_RTR_ALL,
		.ird = weft_get16(p + 2) & 0x3FFF, .ord = weft_get16(p + 4) & 0x3FFF,
	};
}

static bool same_frame(const struct weft_mpa_frame *a, const struct weft_mpa_frame *b)
{
	return a->reply == b->reply && a->markers == b->markers && a->crc == b->crc &&
	       a->reject == b->reject && a->enhanced == b->enhanced && a->rev == b->rev &&
	       a->p2p == b->p2p && a->rtr == b->rtr && a->ird == b->ird && a->ord == b->ord &&
	       a->pd_len == b->pd_len;
}

/* Written and read again, it is the same. */
static void rewrite(const struct weft_mpa_frame *f, const u8 *pd)
{
	u8 *out = malloc(WEFT_MPA_FRAME_MAX);
	u32 len = weft_mpa_frame_write(f, pd, out, WEFT_MPA_FRAME_MAX);
	struct weft_mpa_frame again;
	const u8 *pd_again;

	FUZZ_ASSERT(len && len <= WEFT_MPA_FRAME_MAX);
	FUZZ_ASSERT(weft_mpa_frame_need(out, len, f->reply) == len);
	FUZZ_ASSERT(weft_mpa_frame_read(out, len, f->reply, &again, &pd_again) == WEFT_OK);
	FUZZ_ASSERT(same_frame(f, &again));
	FUZZ_ASSERT(!memcmp(pd, pd_again, f->pd_len));
	free(out);
}

static bool within(u16 ord, u16 peer_ird)
{
	return peer_ird == WEFT_MPA_NO_NEGOTIATION || ord <= peer_ird;
}

static bool one_kind(u8 rtr)
{
	return rtr == WEFT_RTR_SEND || rtr == WEFT_RTR_WRITE || rtr == WEFT_RTR_READ;
}

static void respond(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *req, bool reject)
{
	struct weft_mpa_frame rep;
	struct weft_mpa_agreed a;

	if (weft_mpa_request_check(cfg, req))
		return;
	FUZZ_ASSERT(req->rev == 1 || req->rev == 2);
	weft_mpa_reply(cfg, req, reject, 0, &rep, &a);
	rewrite(&rep, (const u8 *)"");
	FUZZ_ASSERT(rep.rev == req->rev && rep.enhanced == req->enhanced);
	FUZZ_ASSERT(a.crc == (cfg->crc || req->crc));
	FUZZ_ASSERT(a.tx_markers == req->markers && a.rx_markers == cfg->markers);
	FUZZ_ASSERT(rep.p2p == req->p2p && !!rep.rtr == rep.p2p);
	if (!rep.enhanced)
		return;
	FUZZ_ASSERT(reject || within(a.ord, req->ird));
	FUZZ_ASSERT((req->ord == WEFT_MPA_NO_NEGOTIATION) <= (rep.ird == WEFT_MPA_NO_NEGOTIATION));
	FUZZ_ASSERT((req->ird == WEFT_MPA_NO_NEGOTIATION) <= (rep.ord == WEFT_MPA_NO_NEGOTIATION));
	FUZZ_ASSERT(a.ird <= cfg->ird);
	FUZZ_ASSERT(!(rep.rtr & WEFT_RTR_READ) || rep.ird);
}

static void initiate(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *rep)
{
	struct weft_mpa_frame req;
	struct weft_mpa_agreed a;
	bool retry;
	enum weft_err e;

	weft_mpa_request(cfg, 0, &req);
	rewrite(&req, (const u8 *)"");
	e = weft_mpa_reply_check(cfg, &req, rep, &a, &retry);
	FUZZ_ASSERT(e == WEFT_OK || e == WEFT_E_MPA_STARTUP || e == WEFT_E_MPA_IRD ||
		    e == WEFT_E_MPA_RTR);
	FUZZ_ASSERT(!retry || (req.enhanced && !rep->enhanced));
	FUZZ_ASSERT(!retry || e == WEFT_E_MPA_STARTUP || rep->reject);
	if (e || rep->reject)
		return;
	FUZZ_ASSERT(rep->rev == req.rev && rep->enhanced == req.enhanced);
	FUZZ_ASSERT(a.p2p == req.p2p && (!a.p2p || (one_kind(a.rtr) && (a.rtr & rep->rtr))));
	if (!rep->enhanced)
		return;
	FUZZ_ASSERT(within(a.ord, rep->ird));
	FUZZ_ASSERT(a.ird == cfg->ird);
	FUZZ_ASSERT(rep->ord == WEFT_MPA_NO_NEGOTIATION || rep->ord <= a.ird);
}

static void as_terminate(const u8 *p, u32 len)
{
	u8 body[WEFT_TERM_MAX];
	struct weft_term t, again;
	u32 n;

	weft_term_read(p, len, &t);
	FUZZ_ASSERT(t.hdr_len <= sizeof(t.hdr));
	n = (u32)(weft_term_write(body, &t) - body);
	FUZZ_ASSERT(n <= sizeof(body));
	weft_term_read(body, n, &again);
	FUZZ_ASSERT(t.layer == again.layer && t.etype == again.etype && t.code == again.code);
	FUZZ_ASSERT(t.hdr_len == again.hdr_len && !memcmp(t.hdr, again.hdr, sizeof(t.hdr)));
}

static void as_frame(const struct weft_mpa_cfg *cfg, const u8 *p, u32 len, bool reply)
{
	u32 need = weft_mpa_frame_need(p, len, reply);
	struct weft_mpa_frame f;
	const u8 *pd;

	FUZZ_ASSERT(!need || (need >= WEFT_MPA_FRAME_LEN && need <= WEFT_MPA_FRAME_MAX));
	/* Once refused, it stays refused with more octets; once known, it stays known. */
	for (u32 n = 0; n < len && n < WEFT_MPA_FRAME_LEN; n++)
		FUZZ_ASSERT(weft_mpa_frame_need(p, n, reply) || !need);
	if (weft_mpa_frame_read(p, len, reply, &f, &pd)) {
		FUZZ_ASSERT(need != len || (p[16] & 0x10 && weft_get16(p + 18) < 4) || len < 20);
		return;
	}
	FUZZ_ASSERT(need == len && pd + f.pd_len == p + len);
	rewrite(&f, pd);
	if (reply)
		initiate(cfg, &f);
	else
		respond(cfg, &f, cfg->p2p);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct weft_mpa_cfg cfg;
	u32 len;
	u8 *copy;

	if (size < CFG_LEN)
		return 0;
	cfg = cfg_of(data);
	len = (u32)size - CFG_LEN;
	copy = malloc(len + !len);
	memcpy(copy, data + CFG_LEN, len);
	as_frame(&cfg, copy, len, false);
	as_frame(&cfg, copy, len, true);
	as_terminate(copy, len);
	free(copy);
	return 0;
}
