// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "fpdus.h"
#include "kernel/core/wqe.h"
#include "log.h"
#include "process/guard.h"

#define KEPT		128		/* of an FPDU: its headers, and some payload */
#define LENGTH_LEN	2
#define CRC_LEN		4
#define CONTROL_AT	2		/* of DDP, then RDMAP */
#define PAYLOAD_AT	16		/* of a tagged FPDU */
#define UNTAGGED_AT	20
#define MARKER_SPACING	512
#define MARKER_LEN	4

struct recorded_way {
	u64 offset;			/* octets of the stream so far, without Markers */
	u64 first;			/* ticks of the current FPDU's first octet */
	u32 marker_pos;			/* octets with Markers so far, modulo their spacing */
	u32 got, need;			/* of the current FPDU; need is 0 while unknown */
	u32 kept;
	u32 number[WEFT_RECORD_CLASSES];
	bool has_markers;
	bool rtr_is_due;
	const u8 *at;			/* the current FPDU's octets: data, or where they lie */
	u8 data[KEPT];
};

struct rl_recorded {
	u32 id;
	u64 facts_at;			/* where its facts are; 0: not there yet */
	bool is_started;		/* the facts are those of Full Operation */
	struct recorded_way out, in;
};

struct rl_recorded *rl_recorded_new(void)
{
	static u32 ids;
	struct rl_recorded *r = calloc(1, sizeof(*r));

	if (r)
		r->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	return r;
}

void rl_recorded_free(struct rl_recorded *r)
{
	free(r);
}

/* ---- facts ---- */

bool rl_recorded_wants_facts(struct rl_recorded *r, bool is_startup)
{
	if (!is_startup && !r->is_started)
		r->facts_at = 0;
	return rl_record_is_old(&r->facts_at);
}

void rl_recorded_facts(struct rl_recorded *r, u32 qpn, const struct rl_recorded_facts *facts)
{
	struct weft_record_conn body = facts->conn;
	bool is_startup = !(facts->flags & WEFT_RECORD_STARTED);

	body.conn = r->id;
	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_CONN, .flags = facts->flags, .qpn = qpn, .body = &body,
		.len = sizeof(body),
	});
	if (is_startup || r->is_started)
		return;
	r->is_started = true;
	r->out.has_markers = facts->markers_out;
	r->in.has_markers = facts->markers_in;
	r->out.rtr_is_due = facts->has_rtr && facts->flags & WEFT_RECORD_INITIATOR;
	r->in.rtr_is_due = facts->has_rtr && !(facts->flags & WEFT_RECORD_INITIATOR);
}

/* ---- what an FPDU is ---- */

static u32 read_be(const u8 *p, u32 n)
{
	u32 v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static bool is_tagged(const struct recorded_way *w)
{
	return w->at[CONTROL_AT] & 0x80;
}

static u8 opcode_of(const struct recorded_way *w)
{
	return w->at[CONTROL_AT + 1] & 0x0f;
}

static u32 payload_len(const struct recorded_way *w)
{
	u32 len = read_be(w->at, LENGTH_LEN) + LENGTH_LEN;
	u32 head = is_tagged(w) ? PAYLOAD_AT : UNTAGGED_AT;

	return len > head ? len - head : 0;
}

static enum weft_record_class fpdu_class(u8 opcode)
{
	switch (opcode) {
	case WEFT_OP_WRITE:
		return WEFT_RECORD_WRITES;
	case WEFT_OP_READ_REQ:
	case WEFT_OP_ATOMIC_REQ:
		return WEFT_RECORD_REQUESTS;
	case WEFT_OP_READ_RESP:
	case WEFT_OP_ATOMIC_RESP:
		return WEFT_RECORD_RESPONSES;
	default:
		return WEFT_RECORD_SENDS;
	}
}

#define STAG_NONE_AT(p) (read_be(p, 4) == WEFT_STAG_NONE)
#define READ_SIZE_AT	12		/* behind the sink's STag and TO */

/* An engine's own words: no request asked for them. An FPDU may be shorter than its headers. */
static bool is_own(struct recorded_way *w)
{
	const u8 *stag = w->at + (is_tagged(w) ? CONTROL_AT + 2 : UNTAGGED_AT);
	u32 behind = w->kept - (u32)min_t(size_t, w->kept, stag - w->at);
	bool is_rtr = w->rtr_is_due;

	w->rtr_is_due = false;
	switch (opcode_of(w)) {
	case WEFT_OP_TERMINATE:
		return true;
	case WEFT_OP_WRITE:
	case WEFT_OP_READ_RESP:
		return !payload_len(w) && (is_rtr || (behind >= 4 && STAG_NONE_AT(stag)));
	case WEFT_OP_READ_REQ:
		return behind >= READ_SIZE_AT + 4 && !read_be(stag + READ_SIZE_AT, 4) &&
		       (is_rtr || STAG_NONE_AT(stag));
	default:
		return is_rtr && !payload_len(w);
	}
}

static void write_fpdu(const struct rl_recorded *r, struct recorded_way *w, u32 qpn, u64 ticks)
{
	const enum weft_record_class class = fpdu_class(opcode_of(w));
	const bool own = is_own(w);
	const struct weft_record_fpdu body = {
		.first = w->first, .offset = w->offset, .conn = r->id, .len = w->need,
		.number = w->number[class], .kept = w->kept,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_FPDU, .qpn = qpn, .ticks = ticks, .body = &body,
		.len = sizeof(body),
		.flags = (w == &r->out ? WEFT_RECORD_OUT : 0) | (own ? WEFT_RECORD_OWN : 0),
		.more = w->at, .more_len = w->kept,
	});
	/* Bit L: the message's last segment. */
	if (!own && w->at[CONTROL_AT] & 0x40)
		w->number[class]++;
	w->offset += w->need;
	w->got = w->need = w->kept = 0;
}

/* ---- cutting ---- */

static void keep_octets(struct recorded_way *w, const u8 *p, u32 n, bool may_vanish)
{
	n = min_t(u32, n, KEPT - w->kept);
	if (!may_vanish)
		memcpy(w->data + w->kept, p, n);
	else if (n && !rl_guard_copy(w->data + w->kept, p, n))
		memset(w->data + w->kept, 0, n);
	w->kept += n;
}

static u32 fpdu_len(const u8 *p)
{
	return ((LENGTH_LEN + read_be(p, LENGTH_LEN) + 3) & ~3u) + CRC_LEN;
}

/* Takes octets of the current FPDU: how many. */
static u32 take_octets(struct recorded_way *w, const u8 *p, u32 n, bool may_vanish, u64 ticks)
{
	if (!w->got) {
		w->first = ticks;
		w->at = w->data;
	}
	n = min_t(u32, n, (w->need ?: LENGTH_LEN) - w->got);
	keep_octets(w, p, n, may_vanish);
	w->got += n;
	if (!w->need && w->got == LENGTH_LEN)
		w->need = fpdu_len(w->data);
	return n;
}

/* The usual case: an FPDU lies whole at @p. 0: it does not. */
static u32 take_whole(struct recorded_way *w, const u8 *p, u32 n, u64 ticks)
{
	u32 len = w->got || w->has_markers || n < UNTAGGED_AT + CRC_LEN ? 0 : fpdu_len(p);

	if (!len || len > n)
		return 0;
	w->first = ticks;
	w->at = p;
	w->got = w->need = len;
	w->kept = min_t(u32, len, KEPT);
	return len;
}

/* Octets up to the next Marker, which is skipped if it is here. */
static u32 marker_run(struct recorded_way *w, u32 n, bool *is_marker)
{
	u32 at = w->marker_pos;

	*is_marker = w->has_markers && at < MARKER_LEN;
	return !w->has_markers ? n : min_t(u32, n, (*is_marker ? MARKER_LEN : MARKER_SPACING) - at);
}

void rl_recorded_octets(struct rl_recorded *r, bool out, u32 qpn, const void *p, u32 n,
			bool may_vanish, u64 ticks)
{
	struct recorded_way *w = out ? &r->out : &r->in;
	const u8 *at = p;
	bool is_marker;
	u32 took;

	for (; n; n -= took, at += took) {
		took = may_vanish ? 0 : take_whole(w, at, n, ticks);
		if (!took) {
			took = marker_run(w, n, &is_marker);
			if (!is_marker)
				took = take_octets(w, at, took, may_vanish, ticks);
			w->marker_pos = (w->marker_pos + took) % MARKER_SPACING;
		}
		if (w->need && w->got == w->need)
			write_fpdu(r, w, qpn, ticks);
	}
}

void rl_recorded_startup(struct rl_recorded *r, bool out, u32 qpn, const void *p, u32 n,
			 u64 ticks)
{
	struct recorded_way *w = out ? &r->out : &r->in;
	const struct weft_record_fpdu body = {
		.first = ticks, .offset = w->offset, .conn = r->id, .len = n, .kept = n,
	};

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_FPDU, .qpn = qpn, .ticks = ticks, .body = &body,
		.len = sizeof(body),
		.flags = WEFT_RECORD_START | (out ? WEFT_RECORD_OUT : 0),
		.more = p, .more_len = n,
	});
	w->offset += n;
}

void rl_recorded_end(struct rl_recorded *r, u32 qpn, int error)
{
	const struct weft_record_conn_end body = { .conn = r->id, .error = error };

	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_CONN_END, .qpn = qpn, .body = &body, .len = sizeof(body),
	});
}
