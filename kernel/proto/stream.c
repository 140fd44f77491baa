// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One MPA connection: the receive state machine, and cutting messages. */
#include "stream.h"

/* The first octets of a ULPDU that have to be in one place: its headers. */
#define RAW_MAX ((u32)sizeof(((struct weft_fpdu *)NULL)->raw))

static enum weft_rx_event fail(struct weft_stream *st, enum weft_err e)
{
	st->rx_state = WEFT_RX_DEAD;
	st->rx_error = e;
	return WEFT_RX_ERROR;
}

/* RFC 5044 §8: once an error was delivered, no FPDU is. */
static enum weft_rx_event discard(struct weft_cur *in)
{
	weft_cur_skip(in, in->left);
	return WEFT_RX_MORE;
}

/* Start-up */

static enum weft_rx_event startup_whole(struct weft_stream *st, bool more)
{
	bool reply = st->rx_state == WEFT_AWAIT_REPLY;
	enum weft_err e = weft_mpa_frame_read(st->startup, st->rx_staged, reply,
					      &st->frame, &st->pd);

	st->rx_staged = 0;
	if (e)
		return fail(st, e);
	/* RFC 5044 §7.1.1, PD_Length: a Request with bytes behind it is improper. */
	if (!reply && more)
		return fail(st, WEFT_E_MPA_STARTUP);
	st->rx_state = WEFT_AWAIT_START;
	return WEFT_RX_STARTUP;
}

static noinline enum weft_rx_event rx_startup(struct weft_stream *st, struct weft_cur *in)
{
	bool reply = st->rx_state == WEFT_AWAIT_REPLY;

	while (in->left) {
		u32 need = weft_mpa_frame_need(st->startup, st->rx_staged, reply);
		u32 n = min_t(u32, need - st->rx_staged, in->left);

		weft_cur_copy(in, st->startup + st->rx_staged, n);
		st->rx_staged += n;
		need = weft_mpa_frame_need(st->startup, st->rx_staged, reply);
		if (!need)
			return fail(st, WEFT_E_MPA_STARTUP);
		if (st->rx_staged == need)
			return startup_whole(st, in->left);
	}
	return WEFT_RX_MORE;
}

/* Judging a whole FPDU */

static noinline void peek_pieces(const struct weft_cur *c, u32 off, void *dst, u32 n)
{
	struct weft_cur at = *c;

	weft_cur_skip(&at, off);
	weft_cur_copy(&at, dst, n);
}

/* Copies @n octets that begin @off behind @c. Caller: off + n <= c->left. @one: of one piece. */
static __always_inline void peek(const struct weft_cur *c, u32 off, void *dst, u32 n, bool one)
{
	if (one || likely(c->seg->len - c->off >= off + n))
		memcpy(dst, c->seg->p + c->off + off, n);
	else
		peek_pieces(c, off, dst, n);
}

/* RFC 5044 and 5041 have no code for a ULPDU shorter than its header. */
static noinline enum weft_err too_short(struct weft_fpdu *fpdu, const struct weft_cur *ulpdu)
{
	memset(&fpdu->ddp, 0, sizeof(fpdu->ddp));
	peek_pieces(ulpdu, 0, fpdu->raw, ulpdu->left);
	fpdu->raw_len = (u8)ulpdu->left;
	fpdu->payload_len = 0;
	return WEFT_E_RDMAP_UNSPECIFIED;
}

/* What follows the DDP header of all but Sends: a Read Request, an Atomic or a Terminate. */
static noinline enum weft_err keep_more(struct weft_fpdu *fpdu, const struct weft_cur *ulpdu,
					enum weft_err e)
{
	u32 len = min_t(u32, ulpdu->left, RAW_MAX);

	peek(ulpdu, WEFT_DDP_UNTAGGED_LEN, fpdu->raw + WEFT_DDP_UNTAGGED_LEN,
	     len - WEFT_DDP_UNTAGGED_LEN, false);
	fpdu->raw_len = (u8)len;
	return e;
}

/*
 * The verdict on a segment. Its header is copied first: on one host, a peer may change what it has
 * sent (splice()).
 */
static __always_inline enum weft_err judge(const struct weft_stream *st, struct weft_fpdu *fpdu,
					   const struct weft_cur *ulpdu, bool one)
{
	u32 ddp_len = WEFT_DDP_TAGGED_LEN;
	enum weft_opcode op;
	enum weft_err e;

	fpdu->ulpdu_len = (u16)ulpdu->left;
	if (unlikely(ulpdu->left < WEFT_DDP_TAGGED_LEN))
		return too_short(fpdu, ulpdu);
	peek(ulpdu, 0, fpdu->raw, WEFT_DDP_TAGGED_LEN, one);
	barrier();
	if (!(fpdu->raw[0] & WEFT_DDP_T)) {
		ddp_len = WEFT_DDP_UNTAGGED_LEN;
		if (unlikely(ulpdu->left < ddp_len))
			return too_short(fpdu, ulpdu);
		peek(ulpdu, WEFT_DDP_TAGGED_LEN, fpdu->raw + WEFT_DDP_TAGGED_LEN,
		     WEFT_DDP_UNTAGGED_LEN - WEFT_DDP_TAGGED_LEN, one);
		barrier();
	}
	weft_ddp_read(fpdu->raw, &fpdu->ddp);
	fpdu->raw_len = (u8)ddp_len;
	fpdu->payload_len = ulpdu->left - ddp_len;
	if (one)
		fpdu->payload = (struct weft_cur){
			.seg = ulpdu->seg,
			.off = ulpdu->off + ddp_len,
			.left = fpdu->payload_len,
		};
	else
		weft_cur_slice(&fpdu->payload, ulpdu, ddp_len, fpdu->payload_len);
	op = weft_rdmap_opcode(fpdu->ddp.rdmap);
	e = weft_rdmap_check(&fpdu->ddp, st->ext);
	if (likely(!e) && unlikely(fpdu->payload_len < weft_opcode_header_len(op)))
		e = WEFT_E_RDMAP_UNSPECIFIED;
	return fpdu->ddp.tagged || weft_opcode_is_send(op) ? e : keep_more(fpdu, ulpdu, e);
}

/* An FPDU that MPA finds valid. */
static __always_inline enum weft_rx_event report(struct weft_stream *st, struct weft_fpdu *fpdu,
						 const struct weft_cur *ulpdu, bool one)
{
	enum weft_err e = judge(st, fpdu, ulpdu, one);

	st->rx_fpdus++;
	st->tx_gate = false;
	return likely(!e) ? WEFT_RX_FPDU : fail(st, e);
}

static noinline enum weft_rx_event report_pieces(struct weft_stream *st, struct weft_fpdu *fpdu,
						 const struct weft_cur *ulpdu)
{
	return report(st, fpdu, ulpdu, false);
}

/* An FPDU that MPA finds invalid: nothing in it can be trusted. */
static noinline enum weft_rx_event refuse(struct weft_stream *st, struct weft_fpdu *fpdu,
				 enum weft_err e)
{
	memset(fpdu, 0, sizeof(*fpdu));
	return fail(st, e);
}

/* The stage */

static void stage_drop(struct weft_stream *st)
{
	st->rx_parts = WEFT_PARTS_UNDECIDED;
	st->rx_parted = 0;
	st->rx_staged = 0;
	st->rx_need = 0;
	st->rx_crc = ~0u;
	st->rx_reported = false;
	st->rx_kept = false;
	st->rx_marker_bad = false;
}

static struct weft_cur stage_cur(const struct weft_stream *st, u32 off, u32 len)
{
	struct weft_cur c = {
		.seg = &st->stage_seg[off / WEFT_STAGE_CHUNK],
		.off = off % WEFT_STAGE_CHUNK,
		.left = len,
	};

	return c;
}

/*
 * FPDUPTR of a Marker that stands behind rx_staged octets of the FPDU
 * (RFC 5044 §4.3): those, and the Markers among them. 16 bits of it: past
 * 64768 octets of ULPDU the field wraps.
 */
static u16 expected_ptr(const struct weft_stream *st)
{
	const u32 run = WEFT_MPA_MARKER_EVERY - WEFT_MPA_MARKER_SIZE;
	u32 n = st->rx_staged;

	return (u16)(n ? n + WEFT_MPA_MARKER_SIZE * ((n - 1) / run) : 0);
}

static void marker_take(struct weft_stream *st, struct weft_cur *in)
{
	u32 n = min_t(u32, WEFT_MPA_MARKER_SIZE - st->rx_marker_pos, in->left);

	weft_cur_copy(in, st->marker + st->rx_marker_pos, n);
	st->rx_marker_pos += n;
	if (st->rx_marker_pos < WEFT_MPA_MARKER_SIZE)
		return;
	if (st->agreed.crc)
		st->rx_crc = weft_crc32c(st->rx_crc, st->marker, sizeof(st->marker));
	/* RFC 5044 §4.2: Reserved and the two low bits are not looked at. */
	if (((weft_get16(st->marker + 2) ^ expected_ptr(st)) & ~3u) != 0)
		st->rx_marker_bad = true;
}

static u32 staged_ulpdu_len(const struct weft_stream *st)
{
	return weft_get16(st->chunk[0]);
}

/* Of an FPDU that may be taken in parts: octets up to its payload, as far as is known yet. */
static u32 stage_head_len(const struct weft_stream *st)
{
	const u8 *ctl = st->chunk[0] + WEFT_MPA_LEN_SIZE;

	return WEFT_MPA_LEN_SIZE + (st->rx_staged > WEFT_MPA_LEN_SIZE ? weft_ddp_len(*ctl) : 1);
}

/* Octets up to the next point where something changes: length known, header, CRC field, end. */
static u32 stage_limit(const struct weft_stream *st)
{
	u32 summed = st->rx_need - WEFT_MPA_CRC_SIZE;

	if (!st->rx_need)
		return WEFT_MPA_LEN_SIZE - st->rx_staged;
	if (st->rx_parts == WEFT_PARTS_UNDECIDED)
		return stage_head_len(st) - st->rx_staged;
	return (st->rx_staged < summed ? summed : st->rx_need) - st->rx_staged;
}

/* The length of the current FPDU has arrived. */
static void stage_measure(struct weft_stream *st)
{
	u32 len = staged_ulpdu_len(st);

	st->rx_need = weft_mpa_fpdu_len(len);
	if (!st->part_min || len < WEFT_DDP_UNTAGGED_LEN + st->part_min || st->agreed.rx_markers)
		st->rx_parts = WEFT_PARTS_NONE;
}

/* Moves one contiguous run of @in to the stage. Caller: there is room, and a byte. */
static void stage_run(struct weft_stream *st, struct weft_cur *in)
{
	u32 off = st->rx_staged % WEFT_STAGE_CHUNK;
	u8 *dst = st->chunk[st->rx_staged / WEFT_STAGE_CHUNK] + off;
	u32 n = min_t(u32, WEFT_STAGE_CHUNK - off, stage_limit(st));
	const u8 *p;

	if (st->agreed.rx_markers)
		n = min_t(u32, n, weft_mpa_to_marker(st->rx_marker_pos));
	p = weft_cur_piece(in, n, &n);
	if (st->agreed.crc && (!st->rx_need || st->rx_staged + WEFT_MPA_CRC_SIZE < st->rx_need))
		st->rx_crc = weft_crc32c_copy(st->rx_crc, dst, p, n);
	else
		memcpy(dst, p, n);
	st->rx_staged += n;
	st->rx_marker_pos = (st->rx_marker_pos + n) & (WEFT_MPA_MARKER_EVERY - 1);
	if (st->rx_staged == WEFT_MPA_LEN_SIZE)
		stage_measure(st);
}

/* The rest of an FPDU of which @n octets of payload have been taken is a segment, too. */
static void step_over(struct weft_fpdu *fpdu, u32 n)
{
	if (fpdu->ddp.tagged)
		fpdu->ddp.to += n;
	else
		fpdu->ddp.mo += n;
}

/* What is staged of the current FPDU. */
static struct weft_cur stage_ulpdu(const struct weft_stream *st)
{
	return stage_cur(st, WEFT_MPA_LEN_SIZE, staged_ulpdu_len(st) - st->rx_parted);
}

static enum weft_rx_event stage_report(struct weft_stream *st, struct weft_fpdu *fpdu)
{
	const struct weft_cur c = stage_ulpdu(st);
	enum weft_rx_event ev = report_pieces(st, fpdu, &c);

	fpdu->ulpdu_len = (u16)staged_ulpdu_len(st);
	step_over(fpdu, st->rx_parted);
	return ev;
}

static enum weft_rx_event stage_whole(struct weft_stream *st, struct weft_fpdu *fpdu)
{
	struct weft_cur c = stage_cur(st, st->rx_need - WEFT_MPA_CRC_SIZE, WEFT_MPA_CRC_SIZE);
	u8 field[WEFT_MPA_CRC_SIZE];

	st->rx_reported = true;
	weft_cur_copy(&c, field, sizeof(field));
	if (st->agreed.crc && weft_get32_le(field) != ~st->rx_crc)
		return refuse(st, fpdu, WEFT_E_MPA_CRC);
	/* RFC 5044 §8 code 3 comes "in the event that the CRC is valid". */
	if (st->rx_marker_bad)
		return refuse(st, fpdu, WEFT_E_MPA_MARKER);
	return stage_report(st, fpdu);
}

/* It has been verified, and counted. */
static noinline enum weft_rx_event stage_again(struct weft_stream *st, struct weft_fpdu *fpdu)
{
	st->rx_kept = false;
	st->rx_fpdus--;
	return stage_report(st, fpdu);
}

/* Parts */

/* And nothing else, of an FPDU that may be taken in parts. */
static bool head_is_staged(const struct weft_stream *st)
{
	return st->rx_parts == WEFT_PARTS_UNDECIDED && st->rx_staged > WEFT_MPA_LEN_SIZE &&
	       st->rx_staged == stage_head_len(st);
}

/* Of a tagged segment or a Send, of which judge() reads no more than the staged header. */
static enum weft_err judge_head(const struct weft_stream *st, struct weft_fpdu *fpdu)
{
	struct weft_cur ulpdu = stage_cur(st, WEFT_MPA_LEN_SIZE, staged_ulpdu_len(st));

	return judge(st, fpdu, &ulpdu, true);
}

/* True: it has payload of the ULP's, and no fault. */
static bool stage_judge_head(struct weft_stream *st, struct weft_fpdu *fpdu)
{
	st->rx_parts = WEFT_PARTS_NONE;
	weft_ddp_read(st->chunk[0] + WEFT_MPA_LEN_SIZE, &fpdu->ddp);
	if (!fpdu->ddp.tagged && !weft_opcode_is_send(weft_rdmap_opcode(fpdu->ddp.rdmap)))
		return false;
	return judge_head(st, fpdu) == WEFT_OK;
}

void weft_stream_take_parts(struct weft_stream *st)
{
	st->rx_parts = WEFT_PARTS_TAKEN;
}

/* Payload octets of the current FPDU that are still to be taken in parts. */
static u32 part_left(const struct weft_stream *st)
{
	u32 whole;

	if (st->rx_parts != WEFT_PARTS_TAKEN)
		return 0;
	whole = staged_ulpdu_len(st) - weft_ddp_len(st->chunk[0][WEFT_MPA_LEN_SIZE]);
	return whole - WEFT_PART_REST - st->rx_parted;
}

/* What is in hand of those, as a segment. */
static enum weft_rx_event rx_part(struct weft_stream *st, struct weft_cur *in,
				  struct weft_fpdu *fpdu)
{
	u32 n = min_t(u32, in->left, part_left(st));

	judge_head(st, fpdu);
	step_over(fpdu, st->rx_parted);
	fpdu->ddp.last = false;
	fpdu->payload_len = n;
	weft_cur_slice(&fpdu->payload, in, 0, n);
	if (st->agreed.crc)
		st->rx_crc = weft_cur_crc(in, st->rx_crc, n);
	else
		weft_cur_skip(in, n);
	st->rx_parted += n;
	st->rx_need -= n;
	return WEFT_RX_PART;
}

static noinline enum weft_rx_event rx_stage(struct weft_stream *st, struct weft_cur *in,
				   struct weft_fpdu *fpdu)
{
	while (in->left) {
		if (st->agreed.rx_markers && st->rx_marker_pos < WEFT_MPA_MARKER_SIZE) {
			marker_take(st, in);
			continue;
		}
		if (part_left(st))
			return rx_part(st, in, fpdu);
		if (st->rx_staged == st->nchunk * WEFT_STAGE_CHUNK)
			return WEFT_RX_CHUNK;
		stage_run(st, in);
		if (st->rx_staged == st->rx_need)
			return stage_whole(st, fpdu);
		if (head_is_staged(st) && stage_judge_head(st, fpdu))
			return WEFT_RX_HEAD;
	}
	return WEFT_RX_MORE;
}

/* In place */

/* Nearly all FPDUs lie in one piece: @p, @len octets with length and trailer. */
static enum weft_rx_event rx_one_piece(struct weft_stream *st, struct weft_cur *in,
				       struct weft_fpdu *fpdu, const u8 *p, u32 len,
				       u32 ulpdu_len)
{
	const struct weft_cur ulpdu = {
		.seg = in->seg,
		.off = in->off + WEFT_MPA_LEN_SIZE,
		.left = ulpdu_len,
	};
	u32 summed = len - WEFT_MPA_CRC_SIZE;

	in->off += len;
	in->left -= len;
	weft_cur_settle(in);
	if (st->agreed.crc &&
	    unlikely(weft_get32_le(p + summed) != ~weft_crc32c(~0u, p, summed)))
		return refuse(st, fpdu, WEFT_E_MPA_CRC);
	return report(st, fpdu, &ulpdu, true);
}

/* Sums all but the CRC field of the @len octets at @c, then compares. */
static bool crc_matches(struct weft_cur c, u32 len)
{
	u32 crc = ~weft_cur_crc(&c, ~0u, len - WEFT_MPA_CRC_SIZE);
	u8 field[WEFT_MPA_CRC_SIZE];

	weft_cur_copy(&c, field, sizeof(field));
	return weft_get32_le(field) == crc;
}

/* The same where it lies in several, or is not whole. */
static noinline enum weft_rx_event rx_pieces(struct weft_stream *st, struct weft_cur *in,
					     struct weft_fpdu *fpdu, u32 len, u32 ulpdu_len)
{
	struct weft_cur c = *in;

	if (len > in->left)
		return rx_stage(st, in, fpdu);
	weft_cur_skip(in, len);
	if (st->agreed.crc && !crc_matches(c, len))
		return refuse(st, fpdu, WEFT_E_MPA_CRC);
	weft_cur_skip(&c, WEFT_MPA_LEN_SIZE);
	c.left = ulpdu_len;
	return report_pieces(st, fpdu, &c);
}

/* Not even the length lies in one. */
static noinline enum weft_rx_event rx_split_length(struct weft_stream *st, struct weft_cur *in,
						   struct weft_fpdu *fpdu)
{
	u8 both[WEFT_MPA_LEN_SIZE];

	if (in->left < WEFT_MPA_LEN_SIZE)
		return rx_stage(st, in, fpdu);
	peek_pieces(in, 0, both, sizeof(both));
	return rx_pieces(st, in, fpdu, weft_mpa_fpdu_len(weft_get16(both)), weft_get16(both));
}

/* An FPDU that begins at @in: in place if it is whole in hand, else by the stage. */
static enum weft_rx_event rx_fresh(struct weft_stream *st, struct weft_cur *in,
				   struct weft_fpdu *fpdu)
{
	u32 here, len, ulpdu_len;
	const u8 *p;

	if (unlikely(!in->left))
		return WEFT_RX_MORE;
	here = min_t(u32, in->seg->len - in->off, in->left);
	if (unlikely(here < WEFT_MPA_LEN_SIZE))
		return rx_split_length(st, in, fpdu);
	p = in->seg->p + in->off;
	/* Once: see judge(). */
	ulpdu_len = (u32)READ_ONCE(p[0]) << 8 | READ_ONCE(p[1]);
	len = weft_mpa_fpdu_len(ulpdu_len);
	return likely(len <= here) ? rx_one_piece(st, in, fpdu, p, len, ulpdu_len) :
				     rx_pieces(st, in, fpdu, len, ulpdu_len);
}

static enum weft_rx_event rx_fpdu(struct weft_stream *st, struct weft_cur *in,
				  struct weft_fpdu *fpdu)
{
	if (st->rx_kept)
		return stage_again(st, fpdu);
	if (st->rx_reported)
		stage_drop(st);
	if (likely(!st->rx_staged && !st->agreed.rx_markers))
		return rx_fresh(st, in, fpdu);
	return rx_stage(st, in, fpdu);
}

enum weft_rx_event weft_stream_rx(struct weft_stream *st, struct weft_cur *in,
				  struct weft_fpdu *fpdu)
{
	switch (st->rx_state) {
	case WEFT_AWAIT_FPDU:
		return rx_fpdu(st, in, fpdu);
	case WEFT_AWAIT_REQUEST:
	case WEFT_AWAIT_REPLY:
		return rx_startup(st, in);
	case WEFT_AWAIT_START:
		/* FPDUs after a Reply wait for the start; a Request stands alone. */
		return st->initiator || !in->left ? WEFT_RX_MORE : fail(st, WEFT_E_MPA_STARTUP);
	case WEFT_RX_DEAD:
		break;
	}
	return discard(in);
}

void weft_stream_keep(struct weft_stream *st, struct weft_cur *in, const struct weft_cur *before)
{
	if (st->rx_reported) {
		st->rx_kept = true;
		return;
	}
	*in = *before;
	st->rx_fpdus--;
}

/* Life */

void weft_stream_init(struct weft_stream *st, bool initiator)
{
	memset(st, 0, sizeof(*st));
	st->initiator = initiator;
	st->rx_state = initiator ? WEFT_AWAIT_REPLY : WEFT_AWAIT_REQUEST;
	stage_drop(st);
}

void weft_stream_start(struct weft_stream *st, const struct weft_mpa_agreed *agreed)
{
	if (st->rx_state >= WEFT_AWAIT_FPDU)
		return;
	st->agreed = *agreed;
	st->started = true;
	/* RFC 5044 §7.1.2 (4): the responder sends only after it received. */
	st->tx_gate = !st->initiator;
	st->rx_state = WEFT_AWAIT_FPDU;
	stage_drop(st);
}

void weft_stream_stop(struct weft_stream *st)
{
	st->rx_state = WEFT_RX_DEAD;
}

void weft_stream_lend(struct weft_stream *st, u8 *chunk)
{
	st->stage_seg[st->nchunk].p = chunk;
	st->stage_seg[st->nchunk].len = WEFT_STAGE_CHUNK;
	st->chunk[st->nchunk++] = chunk;
}

u8 *weft_stream_reclaim(struct weft_stream *st, bool all)
{
	u32 used = DIV_ROUND_UP(st->rx_staged, WEFT_STAGE_CHUNK);

	if (all) {
		weft_stream_stop(st);
		stage_drop(st);
	}
	if (all || st->rx_state == WEFT_RX_DEAD)
		used = 0;
	return st->nchunk > used ? st->chunk[--st->nchunk] : NULL;
}

/* Send */

void weft_stream_tx(struct weft_tx_msg *m, u32 max_ulpdu, struct weft_tx_fpdu *f)
{
	struct weft_ddp_hdr h = {
		.tagged = weft_opcode_is_tagged(m->op),
		.dv = WEFT_DDP_VERSION,
		.rdmap = weft_rdmap_ctl(m->op),
	};
	u32 ddp_len = h.tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	u8 *p;

	if (h.tagged) {
		h.stag = m->stag;
		h.to = m->to + m->done;
	} else {
		h.inv_stag = weft_opcode_invalidates(m->op) ? m->inv_stag : 0;
		h.qn = weft_opcode_qn(m->op);
		h.msn = m->msn;
		h.mo = m->done;
	}
	f->payload_off = m->done;
	f->payload_len = min_t(u32, m->len - m->done, max_ulpdu - ddp_len - m->ulp_len);
	f->ulpdu_len = ddp_len + m->ulp_len + f->payload_len;
	m->done += f->payload_len;
	m->started = true;
	f->last = m->done == m->len;
	h.last = f->last;

	p = weft_ddp_write(weft_put16(f->head, (u16)f->ulpdu_len), &h);
	if (m->ulp_len)
		memcpy(p, m->ulp, m->ulp_len);
	f->head_len = WEFT_MPA_LEN_SIZE + ddp_len + m->ulp_len;
}

u32 weft_stream_tx_wire_len(const struct weft_stream *st, u32 ulpdu_len)
{
	u32 plain = weft_mpa_fpdu_len(ulpdu_len);

	return st->agreed.tx_markers ? weft_mpa_marked_len(st->tx_marker_pos, plain) : plain;
}

/* Octets of FPDU among the next @room, which is a multiple of 4. */
static u32 plain_room(const struct weft_stream *st, u32 room)
{
	u32 before = weft_mpa_to_marker(st->tx_marker_pos);

	if (!st->agreed.tx_markers || room <= before)
		return room;
	return room - WEFT_MPA_MARKER_SIZE * DIV_ROUND_UP(room - before, WEFT_MPA_MARKER_EVERY);
}

u32 weft_stream_tx_max_ulpdu(const struct weft_stream *st, u32 room)
{
	u32 plain = plain_room(st, room & ~3u);

	if (plain < weft_mpa_fpdu_len(0))
		return 0;
	return min_t(u32, plain - WEFT_MPA_LEN_SIZE - WEFT_MPA_CRC_SIZE, WEFT_MPA_ULPDU_MAX);
}

void weft_stream_tx_emit(struct weft_stream *st, const struct weft_tx_fpdu *f,
			 struct weft_emit *e, u8 *out)
{
	u32 wire_len = weft_stream_tx_wire_len(st, f->ulpdu_len);

	weft_emit_begin(e, out, f->ulpdu_len, st->agreed.crc, st->agreed.tx_markers,
			st->tx_marker_pos);
	weft_emit_head(e, f->head, f->head_len);
	st->tx_marker_pos = (st->tx_marker_pos + wire_len) & (WEFT_MPA_MARKER_EVERY - 1);
}
