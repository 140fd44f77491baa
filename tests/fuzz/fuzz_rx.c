// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer that sends anything, to a stream of any kind, cut anywhere.
 *
 * Octet 0 chooses the stream, octet 1 how the rest arrives, the rest is what the peer sends. The
 * same octets are delivered whole and cut, and both must give the same events: the engine's answer
 * must not depend on TCP.
 */
#include <sanitizer/asan_interface.h>
#include "fuzz.h"
#include "../../kernel/proto/stream.h"

enum {
	AS_INITIATOR	= 0x01,
	WITH_CRC	= 0x02,
	WITH_MARKERS	= 0x04,
	WITH_EXT	= 0x08,
	FROM_STARTUP	= 0x10,
	TRUE_CRC	= 0x20,		/* else 0 is right, so that mutants get through */
	NO_MEMORY	= 0x40,		/* from the second chunk on */
	IN_PARTS	= 0x80,		/* long FPDUs, every other length of them */
};

/* The result of a run: a sum over all events, to be compared. */
struct run {
	struct weft_stream st;
	u8 cfg;
	u32 lent;
	u32 events;
	u64 sum;
	bool failed;
	u32 parted;			/* octets of the current FPDU that came in parts */
	u64 at;				/* their TO or MO */
	u8 payload[65536];		/* and they; last: not cleared */
};

static bool true_crc;

/* The fuzzer's host has a CRC of its own: see TRUE_CRC. */
u32 weft_crc32c(u32 crc, const void *p, size_t len)
{
	return true_crc ? fuzz_crc32c(crc, p, len) : crc;
}

u32 weft_crc32c_copy(u32 crc, void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return weft_crc32c(crc, to, len);
}

static void add(struct run *r, const void *p, size_t len)
{
	r->sum = fuzz_hash(r->sum, p, len);
}

static void add_number(struct run *r, u64 v)
{
	add(r, &v, sizeof(v));
}

static struct weft_mpa_agreed agreed_of(u8 cfg)
{
	return (struct weft_mpa_agreed){
		.rev = 1, .crc = cfg & WITH_CRC, .rx_markers = cfg & WITH_MARKERS,
	};
}

static void on_startup(struct run *r)
{
	struct weft_mpa_agreed a = agreed_of(r->cfg);

	FUZZ_ASSERT(r->st.frame.pd_len <= WEFT_MPA_PD_MAX);
	FUZZ_ASSERT(r->st.frame.reply == r->st.initiator);
	FUZZ_ASSERT(!weft_stream_may_send(&r->st));
	add_number(r, r->st.frame.pd_len);
	add(r, r->st.pd, r->st.frame.pd_len);
	weft_stream_start(&r->st, &a);
}

/* Where a segment belongs. */
static u64 place_of(const struct weft_fpdu *f)
{
	return f->ddp.tagged ? f->ddp.to : f->ddp.mo;
}

/* What follows what came in parts. The sanitizer sees reads beyond it. */
static void take_payload(struct run *r, const struct weft_fpdu *f)
{
	struct weft_cur c = f->payload;

	FUZZ_ASSERT(c.left == f->payload_len && r->parted + c.left <= sizeof(r->payload));
	if (!r->parted)
		r->at = place_of(f);
	/* A MO has 32 bits. */
	FUZZ_ASSERT(!((place_of(f) ^ (r->at + r->parted)) & (f->ddp.tagged ? ~0ULL : ~0U)));
	weft_cur_copy(&c, r->payload + r->parted, f->payload_len);
	r->parted += f->payload_len;
}

static void on_head(struct run *r, const struct weft_fpdu *f)
{
	FUZZ_ASSERT(!r->failed && !r->parted && r->st.part_min);
	FUZZ_ASSERT(f->payload_len >= r->st.part_min);
	FUZZ_ASSERT(weft_rdmap_check(&f->ddp, r->st.ext) == WEFT_OK);
	if (f->ulpdu_len & 1)
		weft_stream_take_parts(&r->st);
}

static void on_part(struct run *r, const struct weft_fpdu *f)
{
	FUZZ_ASSERT(!r->failed && f->payload_len && !f->ddp.last && f->ulpdu_len & 1);
	take_payload(r, f);
}

static void on_fpdu(struct run *r, const struct weft_fpdu *f)
{
	u32 hdr = f->ddp.tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	enum weft_opcode op = weft_rdmap_opcode(f->ddp.rdmap);

	FUZZ_ASSERT(weft_rdmap_check(&f->ddp, r->st.ext) == WEFT_OK);
	take_payload(r, f);
	FUZZ_ASSERT(hdr + r->parted == f->ulpdu_len);
	FUZZ_ASSERT(f->payload_len >= weft_opcode_header_len(op));
	FUZZ_ASSERT(f->raw_len >= hdr && f->raw_len <= sizeof(f->raw) && f->raw_len <= f->ulpdu_len);
	FUZZ_ASSERT(f->raw_len >= hdr + weft_opcode_header_len(op));
	FUZZ_ASSERT(weft_stream_may_send(&r->st));
	add_number(r, f->ulpdu_len);
	add(r, f->raw, f->raw_len);
	add(r, r->payload, r->parted);
	r->parted = 0;
}

static void on_error(struct run *r, const struct weft_fpdu *f)
{
	u8 body[WEFT_TERM_MAX];
	struct weft_term t;

	FUZZ_ASSERT(r->st.rx_error != WEFT_OK);
	r->failed = true;
	add_number(r, r->st.rx_error);
	if (r->st.rx_error == WEFT_E_MPA_STARTUP || r->st.rx_error == WEFT_E_RDMAP_LOCAL)
		return;
	FUZZ_ASSERT(weft_stream_may_terminate(&r->st));
	weft_term_make(&t, r->st.rx_error, f->raw, f->raw_len, f->ulpdu_len);
	FUZZ_ASSERT((size_t)(weft_term_write(body, &t) - body) <= sizeof(body));
	add(r, body, (size_t)(weft_term_write(body, &t) - body));
}

/* Without memory it asks again, and has consumed nothing. */
static void ask_again(struct run *r, struct weft_cur *in)
{
	struct weft_fpdu f;
	u32 left = in->left;

	FUZZ_ASSERT(weft_stream_rx(&r->st, in, &f) == WEFT_RX_CHUNK);
	FUZZ_ASSERT(in->left == left);
}

static void on_chunk(struct run *r, struct weft_cur *in)
{
	if ((r->cfg & NO_MEMORY) && r->lent)
		ask_again(r, in);
	FUZZ_ASSERT(r->lent < WEFT_STAGE_CHUNKS);
	r->lent++;
	weft_stream_lend(&r->st, malloc(WEFT_STAGE_CHUNK));
}

FUZZ_HOST static void on_event(struct run *r, enum weft_rx_event ev, const struct weft_fpdu *f,
			       struct weft_cur *in)
{
	if (ev == WEFT_RX_CHUNK) {
		on_chunk(r, in);
		return;
	}
	if (ev == WEFT_RX_HEAD || ev == WEFT_RX_PART) {
		(ev == WEFT_RX_HEAD ? on_head : on_part)(r, f);
		return;
	}
	FUZZ_ASSERT(!r->failed);	/* RFC 5044 §8: nothing after an error */
	r->events++;
	add_number(r, ev);
	if (ev == WEFT_RX_STARTUP)
		on_startup(r);
	else if (ev == WEFT_RX_FPDU)
		on_fpdu(r, f);
	else
		on_error(r, f);
}

FUZZ_HOST static void deliver(struct run *r, const struct weft_seg *seg, u32 n)
{
	struct weft_fpdu f;
	struct weft_cur in;
	enum weft_rx_event ev;

	memset(&f, 0, sizeof(f));
	weft_cur_init(&in, seg, n);
	while ((ev = weft_stream_rx(&r->st, &in, &f)) != WEFT_RX_MORE)
		on_event(r, ev, &f, &in);
	FUZZ_ASSERT(in.left == 0);
}

static void begin(struct run *r, u8 cfg)
{
	struct weft_mpa_agreed a = agreed_of(cfg);

	memset(r, 0, offsetof(struct run, payload));
	r->cfg = cfg;
	weft_stream_init(&r->st, cfg & AS_INITIATOR);
	r->st.ext = cfg & WITH_EXT;
	r->st.part_min = cfg & IN_PARTS ? 24 : 0;
	if (!(cfg & FROM_STARTUP))
		weft_stream_start(&r->st, &a);
}

/* Chunks that are not in use are returned at any time, the others at the end. */
static void take_back(struct run *r, bool all)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&r->st, all))) {
		free(chunk);
		r->lent--;
	}
}

static void finish(struct run *r)
{
	take_back(r, true);
	FUZZ_ASSERT(r->lent == 0);
}

/*
 * A piece of @n octets with poisoned memory on both sides. Cheaper than a malloc each: bytes often
 * arrive one by one here.
 */
FUZZ_HOST static u8 *piece(int slot, const u8 *p, u32 n)
{
	enum { ROOM = 8192, ZONE = 64 };
	static u8 arena[3][ZONE + ROOM + ZONE] __attribute__((aligned(8)));
	u8 *at = arena[slot] + ZONE;

	ASAN_UNPOISON_MEMORY_REGION(at, n);
	memcpy(at, p, n);
	ASAN_POISON_MEMORY_REGION(arena[slot], ZONE);
	ASAN_POISON_MEMORY_REGION(at + n, ZONE);
	return at;
}

/* Each call gets three pieces, some of them empty. */
FUZZ_HOST static void run_cut(struct run *r, u32 cut, const u8 *p, size_t len)
{
	u32 state = cut | 1;

	while (len) {
		struct weft_seg seg[3];

		for (int i = 0; i < 3; i++) {
			u32 n = fuzz_step(&state, cut);

			n = n < len ? n : (u32)len;
			seg[i] = (struct weft_seg){ piece(i, p, n), n };
			p += n;
			len -= n;
		}
		deliver(r, seg, 3);
		if (!(state & 0x300))
			take_back(r, false);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct run whole, cut;
	struct weft_seg seg;
	u8 *copy;

	if (size < 2)
		return 0;
	true_crc = data[0] & TRUE_CRC;
	copy = malloc(size - 2 + 1);
	memcpy(copy, data + 2, size - 2);
	seg = (struct weft_seg){ copy, (u32)size - 2 };
	begin(&whole, data[0]);
	deliver(&whole, &seg, 1);
	finish(&whole);
	free(copy);

	begin(&cut, data[0]);
	run_cut(&cut, data[1], data + 2, size - 2);
	finish(&cut);
	/* Two exceptions: where memory ran out, and a Request's bytes that arrived too early. */
	if ((data[0] & NO_MEMORY) || (data[0] & (FROM_STARTUP | AS_INITIATOR)) == FROM_STARTUP)
		return 0;
	FUZZ_ASSERT(whole.events == cut.events);
	FUZZ_ASSERT(whole.sum == cut.sum);
	return 0;
}
