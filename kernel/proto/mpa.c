// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MPA: start-up frames, negotiation, sizes, and writing FPDUs. */
#include "mpa.h"

/* The flags octet of a start-up frame, RFC 5044 §7.1.1 and RFC 6581 §6. */
#define FLAG_M	0x80
#define FLAG_C	0x40
#define FLAG_R	0x20
#define FLAG_S	0x10

/* The IRD and ORD words, RFC 6581 §9. */
#define WORD_A	0x8000		/* of the IRD word */
#define WORD_B	0x4000
#define WORD_C	0x8000		/* of the ORD word */
#define WORD_D	0x4000
#define DEPTH_MASK 0x3FFF

/* A Marker stands in front of each run of this many octets of FPDUs. */
#define MARKER_RUN (WEFT_MPA_MARKER_EVERY - WEFT_MPA_MARKER_SIZE)

/* Less than this is summed with what follows. */
#define SUM_MIN 256

static const char keys[2][WEFT_MPA_KEY_LEN + 1] = {
	[false]	= "MPA ID Req Frame",
	[true]	= "MPA ID Rep Frame",
};

static u8 *write_enhanced(u8 *p, const struct weft_mpa_frame *f)
{
	u16 ird = f->ird & DEPTH_MASK;
	u16 ord = f->ord & DEPTH_MASK;

	/* RFC 6581 §9.2: without A the other flags are zero. */
	if (f->p2p) {
		ird |= WORD_A;
		ird |= f->rtr & WEFT_RTR_SEND ? WORD_B : 0;
		ord |= f->rtr & WEFT_RTR_WRITE ? WORD_C : 0;
		ord |= f->rtr & WEFT_RTR_READ ? WORD_D : 0;
	}
	return weft_put16(weft_put16(p, ird), ord);
}

static void read_enhanced(const u8 *p, struct weft_mpa_frame *f)
{
	u16 ird = weft_get16(p);
	u16 ord = weft_get16(p + 2);

	f->ird = ird & DEPTH_MASK;
	f->ord = ord & DEPTH_MASK;
	f->p2p = ird & WORD_A;
	if (!f->p2p)
		return;
	f->rtr = (ird & WORD_B ? WEFT_RTR_SEND : 0) | (ord & WORD_C ? WEFT_RTR_WRITE : 0) |
		 (ord & WORD_D ? WEFT_RTR_READ : 0);
}

static u8 frame_flags(const struct weft_mpa_frame *f, bool enhanced)
{
	return (f->markers ? FLAG_M : 0) | (f->crc ? FLAG_C : 0) |
	       (f->reply && f->reject ? FLAG_R : 0) | (enhanced ? FLAG_S : 0);
}

u32 weft_mpa_frame_write(const struct weft_mpa_frame *f, const void *pd, u8 *out, u32 cap)
{
	bool enhanced = f->enhanced && f->rev >= 2;
	u32 pd_len = f->pd_len + (enhanced ? WEFT_MPA_ENH_LEN : 0);
	u8 *p = out;

	if (pd_len > WEFT_MPA_PD_MAX || cap < WEFT_MPA_FRAME_LEN + pd_len)
		return 0;
	memcpy(p, keys[f->reply], WEFT_MPA_KEY_LEN);
	p += WEFT_MPA_KEY_LEN;
	*p++ = frame_flags(f, enhanced);
	*p++ = f->rev;
	p = weft_put16(p, (u16)pd_len);
	if (enhanced)
		p = write_enhanced(p, f);
	if (f->pd_len)
		memcpy(p, pd, f->pd_len);
	return WEFT_MPA_FRAME_LEN + pd_len;
}

u32 weft_mpa_frame_need(const u8 *p, u32 n, bool reply)
{
	u32 pd_len;

	if (n && memcmp(p, keys[reply], min_t(u32, n, WEFT_MPA_KEY_LEN)))
		return 0;
	if (n < WEFT_MPA_FRAME_LEN)
		return WEFT_MPA_FRAME_LEN;
	pd_len = weft_get16(p + WEFT_MPA_KEY_LEN + 2);
	return pd_len > WEFT_MPA_PD_MAX ? 0 : WEFT_MPA_FRAME_LEN + pd_len;
}

enum weft_err weft_mpa_frame_read(const u8 *p, u32 len, bool reply,
				  struct weft_mpa_frame *f, const u8 **pd)
{
	u8 flags;

	memset(f, 0, sizeof(*f));
	if (len < WEFT_MPA_FRAME_LEN || weft_mpa_frame_need(p, len, reply) != len)
		return WEFT_E_MPA_STARTUP;
	flags = p[WEFT_MPA_KEY_LEN];
	f->reply = reply;
	f->markers = flags & FLAG_M;
	f->crc = flags & FLAG_C;
	f->reject = reply && (flags & FLAG_R);
	f->rev = p[WEFT_MPA_KEY_LEN + 1];
	/* In revision 1 the bit S is one of RFC 5044's reserved ones. */
	f->enhanced = f->rev >= 2 && (flags & FLAG_S);
	f->pd_len = weft_get16(p + WEFT_MPA_KEY_LEN + 2);
	*pd = p + WEFT_MPA_FRAME_LEN;
	if (!f->enhanced)
		return WEFT_OK;
	if (f->pd_len < WEFT_MPA_ENH_LEN)
		return WEFT_E_MPA_STARTUP;
	read_enhanced(*pd, f);
	*pd += WEFT_MPA_ENH_LEN;
	f->pd_len -= WEFT_MPA_ENH_LEN;
	return WEFT_OK;
}

void weft_mpa_request(const struct weft_mpa_cfg *cfg, u16 pd_len, struct weft_mpa_frame *req)
{
	memset(req, 0, sizeof(*req));
	req->markers = cfg->markers;
	req->crc = cfg->crc;
	req->rev = cfg->rev;
	req->enhanced = cfg->rev >= 2;
	req->p2p = req->enhanced && cfg->p2p;
	req->rtr = req->p2p ? cfg->rtr : 0;
	req->ird = req->enhanced ? cfg->ird : 0;
	req->ord = req->enhanced ? cfg->ord : 0;
	req->pd_len = pd_len;
}

enum weft_err weft_mpa_request_check(const struct weft_mpa_cfg *cfg,
				     const struct weft_mpa_frame *req)
{
	/* Revision 0 is the RDMA Consortium's: another DDP version, not spoken here. */
	if (req->rev < 1 || req->rev > cfg->rev)
		return WEFT_E_MPA_STARTUP;
	return WEFT_OK;
}

/*
 * RFC 6581 §9.2: each kind asked for and supported; if there is none, at least
 * one of ours. A Read needs room in our IRD. A Write asks nothing of anybody,
 * so it is the one that is always there to offer.
 */
static u8 offer_rtr(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *req)
{
	u8 own = cfg->rtr & (cfg->ird ? WEFT_RTR_ALL : WEFT_RTR_ALL & ~WEFT_RTR_READ);
	u8 common = own & req->rtr;

	if (common)
		return common;
	if (own & WEFT_RTR_WRITE)
		return WEFT_RTR_WRITE;
	if (own & WEFT_RTR_READ)
		return WEFT_RTR_READ;
	return own & WEFT_RTR_SEND ? WEFT_RTR_SEND : WEFT_RTR_WRITE;
}

/* RFC 6581 §9.1, the responder's part. */
static void answer_depths(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *req,
			  struct weft_mpa_frame *rep)
{
	bool ird_open = req->ord == WEFT_MPA_NO_NEGOTIATION || cfg->ird == WEFT_MPA_NO_NEGOTIATION;

	rep->ird = ird_open ? WEFT_MPA_NO_NEGOTIATION : min_t(u16, cfg->ird, req->ord);
	/* "the responder IRD MAY be increased": an RTR Read must find room. */
	if (rep->rtr & WEFT_RTR_READ && !rep->ird)
		rep->ird = 1;
	if (req->ird == WEFT_MPA_NO_NEGOTIATION)
		rep->ord = WEFT_MPA_NO_NEGOTIATION;
	else if (rep->reject)	/* "... specify the required ORD in the MPA Reject Frame" */
		rep->ord = cfg->ord;
	else
		rep->ord = min_t(u16, cfg->ord, req->ird);
}

/* A depth that is not negotiated stays what it was at this end. */
static u16 depth(u16 negotiated, u16 own)
{
	return negotiated == WEFT_MPA_NO_NEGOTIATION ? own : negotiated;
}

void weft_mpa_reply(const struct weft_mpa_cfg *cfg, const struct weft_mpa_frame *req,
		    bool reject, u16 pd_len, struct weft_mpa_frame *rep,
		    struct weft_mpa_agreed *agreed)
{
	memset(rep, 0, sizeof(*rep));
	rep->reply = true;
	rep->reject = reject;
	rep->rev = req->rev;
	rep->enhanced = req->enhanced;
	rep->markers = cfg->markers;
	/* One side's C binds both: say what will be, some peers look only here. */
	rep->crc = cfg->crc || req->crc;
	rep->pd_len = pd_len;
	if (rep->enhanced) {
		rep->p2p = req->p2p;
		rep->rtr = rep->p2p ? offer_rtr(cfg, req) : 0;
		answer_depths(cfg, req, rep);
	}

	memset(agreed, 0, sizeof(*agreed));
	agreed->rev = rep->rev;
	agreed->enhanced = rep->enhanced;
	agreed->crc = rep->crc;
	agreed->tx_markers = req->markers;
	agreed->rx_markers = cfg->markers;
	agreed->p2p = rep->p2p;
	agreed->rtr = rep->rtr;
	agreed->ird = rep->enhanced ? depth(rep->ird, cfg->ird) : cfg->ird;
	agreed->ord = rep->enhanced ? depth(rep->ord, cfg->ord) : cfg->ord;
}

/* The kind to send: a Write costs nothing; a Send would take a receive of the peer's ULP. */
static u8 choose_rtr(u8 common, u16 peer_ird)
{
	if (common & WEFT_RTR_WRITE)
		return WEFT_RTR_WRITE;
	if (common & WEFT_RTR_READ && peer_ird)
		return WEFT_RTR_READ;
	return common & WEFT_RTR_SEND;
}

/* RFC 6581 §9.1 and §9.2, the initiator's part. */
static enum weft_err take_enhanced(const struct weft_mpa_cfg *cfg,
				   const struct weft_mpa_frame *req,
				   const struct weft_mpa_frame *rep,
				   struct weft_mpa_agreed *agreed)
{
	if (rep->ird != WEFT_MPA_NO_NEGOTIATION)
		agreed->ord = min_t(u16, cfg->ord, rep->ird);
	/* Our IRD stays: enough for the peer's ORD, or an error. 0x3FFF is above all. */
	if (rep->ord != WEFT_MPA_NO_NEGOTIATION && rep->ord > cfg->ird)
		return WEFT_E_MPA_IRD;
	/* A that we did not ask for is ignored: some peers set it always. */
	if (!req->p2p)
		return WEFT_OK;
	agreed->p2p = true;
	agreed->rtr = rep->p2p ? choose_rtr(rep->rtr & req->rtr, rep->ird) : 0;
	if (!agreed->rtr)
		return WEFT_E_MPA_RTR;
	if (agreed->rtr == WEFT_RTR_READ && !agreed->ord)
		agreed->ord = 1;
	return WEFT_OK;
}

enum weft_err weft_mpa_reply_check(const struct weft_mpa_cfg *cfg,
				   const struct weft_mpa_frame *req,
				   const struct weft_mpa_frame *rep,
				   struct weft_mpa_agreed *agreed, bool *v1_retry)
{
	bool downgrade = req->enhanced && (rep->rev == 1 || (rep->rev == 2 && !rep->enhanced));

	*v1_retry = downgrade;
	memset(agreed, 0, sizeof(*agreed));
	agreed->rev = rep->rev;
	agreed->enhanced = rep->enhanced;
	agreed->crc = req->crc || rep->crc;
	agreed->tx_markers = rep->markers;
	agreed->rx_markers = req->markers;
	agreed->ird = cfg->ird;
	agreed->ord = cfg->ord;

	if (rep->rev != req->rev && !downgrade)
		return WEFT_E_MPA_STARTUP;
	if (rep->reject)
		return WEFT_OK;
	/* RFC 6581 §10: an enhanced Request wants an enhanced Reply, and no other does. */
	if (downgrade || rep->enhanced != req->enhanced)
		return WEFT_E_MPA_STARTUP;
	return rep->enhanced ? take_enhanced(cfg, req, rep, agreed) : WEFT_OK;
}

u32 weft_mpa_mulpdu(u32 emss, bool markers)
{
	u32 over = WEFT_MPA_LEN_SIZE + WEFT_MPA_CRC_SIZE + emss % 4;

	if (markers)
		over += WEFT_MPA_MARKER_SIZE * DIV_ROUND_UP(emss, WEFT_MPA_MARKER_EVERY);
	if (emss < over + WEFT_MPA_ULPDU_MIN_MULPDU)
		return WEFT_MPA_ULPDU_MIN_MULPDU;
	return min_t(u32, emss - over, WEFT_MPA_ULPDU_MAX);
}

u32 weft_mpa_marked_len(u32 pos, u32 plain)
{
	u32 before = weft_mpa_to_marker(pos);

	/* A Marker right behind the FPDU belongs to the next one. */
	if (plain <= before)
		return plain;
	return plain + WEFT_MPA_MARKER_SIZE * DIV_ROUND_UP(plain - before, MARKER_RUN);
}

/* The copies are summed, not the sources: those may change meanwhile. */
static void sum(struct weft_emit *e)
{
	if (e->do_crc)
		e->crc = weft_crc32c(e->crc, e->summed, e->out - e->summed);
	e->summed = e->out;
}

static void advance(struct weft_emit *e, u32 n)
{
	e->out += n;
	e->pos = (e->pos + n) & (WEFT_MPA_MARKER_EVERY - 1);
}

/*
 * RFC 5044 §4.3. A Marker before ULPDU_Length has FPDUPTR 0, and FPDUPTR
 * counts from ULPDU_Length on: that Marker adds nothing to it.
 */
static void emit_marker(struct weft_emit *e)
{
	weft_put16(weft_put16(e->out, 0), (u16)e->fpdu_off);
	if (e->fpdu_off)
		e->fpdu_off += WEFT_MPA_MARKER_SIZE;
	advance(e, WEFT_MPA_MARKER_SIZE);
}

static void emit_run(struct weft_emit *e, const u8 *p, u32 n)
{
	sum(e);
	if (e->do_crc)
		e->crc = weft_crc32c_copy(e->crc, e->out, p, n);
	else
		memcpy(e->out, p, n);
	e->fpdu_off += n;
	advance(e, n);
	e->summed = e->out;
}

void weft_emit_bytes(struct weft_emit *e, const void *src, u32 n)
{
	const u8 *p = src;

	if (likely(n < SUM_MIN && !e->markers)) {
		memcpy(e->out, p, n);
		e->out += n;
		return;
	}
	while (n) {
		u32 run;

		if (e->markers && !e->pos)
			emit_marker(e);
		run = e->markers ? min_t(u32, n, weft_mpa_to_marker(e->pos)) : n;
		emit_run(e, p, run);
		p += run;
		n -= run;
	}
}

void weft_emit_begin(struct weft_emit *e, u8 *out, u32 ulpdu_len, bool crc,
		     bool markers, u32 marker_pos)
{
	u8 len[WEFT_MPA_LEN_SIZE];

	e->out = out;
	e->start = out;
	e->summed = out;
	e->ulpdu_len = ulpdu_len;
	e->pos = marker_pos;
	e->fpdu_off = 0;
	e->crc = ~0u;
	e->do_crc = crc;
	e->markers = markers;
	if (likely(!markers)) {
		e->out = weft_put16(out, (u16)ulpdu_len);
		return;
	}
	weft_put16(len, (u16)ulpdu_len);
	weft_emit_bytes(e, len, sizeof(len));
}

void weft_emit_head(struct weft_emit *e, const u8 *head, u32 n)
{
	if (unlikely(e->markers)) {
		weft_emit_bytes(e, head + WEFT_MPA_LEN_SIZE, n - WEFT_MPA_LEN_SIZE);
		return;
	}
	memcpy(e->start, head, WEFT_MPA_FPDU_MIN);
	if (unlikely(n > WEFT_MPA_FPDU_MIN))
		memcpy(e->start + WEFT_MPA_FPDU_MIN, head + WEFT_MPA_FPDU_MIN,
		       n - WEFT_MPA_FPDU_MIN);
	e->out = e->start + n;
}

u32 weft_emit_end(struct weft_emit *e)
{
	static const u8 zero[3];
	u32 pad = weft_mpa_pad(e->ulpdu_len);

	if (pad)
		weft_emit_bytes(e, zero, pad);
	/* RFC 5044 §4.4 (1): a Marker behind the PAD is summed with this FPDU. */
	if (e->markers && !e->pos)
		emit_marker(e);
	sum(e);
	weft_put32_le(e->out, e->do_crc ? ~e->crc : 0);
	advance(e, WEFT_MPA_CRC_SIZE);
	return (u32)(e->out - e->start);
}
