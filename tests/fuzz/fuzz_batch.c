// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Batches of any work requests, cut for segments of any size; TCP takes any part of them.
 *
 * The input is a script: set-up, then rounds of posts, a batch, and how much of it TCP takes each
 * time. A second stream is the other end, so every octet is checked. Users' memory is overwritten
 * after each call of TCP: an FPDU must carry the content at the time when its batch was filled,
 * whenever TCP takes it. No FPDU may cross a segment's end.
 */
#include "script.h"
#include "../../kernel/core/batch.h"
#include "../stacks/host.h"
#include "../stacks/post.h"

#define PD 7
#define REGION_LEN (16 * 1024)
#define WIRE (1 << 20)
#define MAX_ROUNDS 60
#define MAX_FPDUS 65536

struct stage {
	struct host host;
	struct host_cq *cq;
	struct host_qp *qp;
	struct host_mr *mr;
	struct weft_orq_entry orq[1];
	struct weft_irq_entry irq[1];
	struct weft_stream st, peer;
	struct weft_batch b;
	u32 size;			/* of the memory that is lent */
	u32 mss, pos;			/* TCP's model: octets in its last segment */
	u8 gen;				/* the current content of users' memory */
	u8 *wire;
	u32 len, judged;		/* octets on the wire; judged by the peer */
	u32 fpdus;
	u8 gen_of[MAX_FPDUS];		/* the content that each FPDU must carry */
};

static inline u8 pattern(u8 gen, u32 off)
{
	return (u8)(gen * 37 + off * 11 + (off >> 8));
}

FUZZ_HELPER static void write_memory(struct stage *s)
{
	u32 i;

	s->gen++;
	for (i = 0; i < REGION_LEN; i++)
		s->mr->mem[i] = pattern(s->gen, i);
}

/* ---- set-up ---- */

static void set_up(struct stage *s, struct script *in)
{
	u8 how = script_octet(in);
	struct weft_mpa_agreed a = { .rev = 2, .crc = how & 1, .tx_markers = how & 2, .ird = 1, .ord = 1 };
	struct host_qp_attr q = { .pd = PD, .sq_slots = 64, .rq_slots = 4, .sig_all = true };
	struct weft_mpa_agreed back = a;

	memset(s, 0, offsetof(struct stage, gen_of));
	host_init(&s->host, 1);
	s->cq = q.scq = q.rcq = host_cq_new(4096);
	s->qp = host_qp_new(&s->host, &q);
	s->mr = host_mr_new(&s->host, PD, 0, REGION_LEN, WEFT_ACCESS_LOCAL_WRITE);
	s->wire = malloc(WIRE);
	FUZZ_ASSERT(s->mr && s->wire);
	s->size = how & 4 ? 64 * 1024 : WEFT_BATCH_MEM_MIN + script_octet(in) * 16;
	s->mss = max_t(u32, script_u16(in) & 0x3FFC, WEFT_BATCH_SEG_MIN);
	weft_stream_init(&s->st, true);
	weft_stream_start(&s->st, &a);
	back.rx_markers = a.tx_markers;
	back.tx_markers = false;
	weft_stream_init(&s->peer, false);
	weft_stream_start(&s->peer, &back);
	weft_qpc_start(&s->qp->core, &s->st, 1, s->orq, 1, s->irq, 1);
	write_memory(s);
}

/* ---- the user ---- */

static void post(struct stage *s, struct script *in)
{
	struct host_wr wr = {
		.wr_id = 1, .opcode = WEFT_WR_WRITE, .rkey = 1, .remote_addr = 0,
		.num_sge = 1 + script_octet(in) % 8,
	};
	u32 i, off = 0;

	/* One after the other, so that the octets show their origin: TO is the offset. */
	for (i = 0; i < wr.num_sge; i++) {
		u32 len = script_u16(in) % (REGION_LEN / 8 + 1);

		wr.sge[i] = host_sge(s->mr, off, len);
		off += len;
	}
	host_post_send(s->qp, &wr);
}

/* ---- TCP ---- */

static void put(struct stage *s, const struct weft_iov *iov, u32 niov, u32 n)
{
	u32 i;

	for (i = 0; i < niov && n; i++) {
		u32 len = min_t(u32, n, (u32)iov[i].len);

		FUZZ_ASSERT(s->len + len <= WIRE);
		memcpy(s->wire + s->len, iov[i].base, len);
		s->len += len;
		n -= len;
	}
	FUZZ_ASSERT(!n);
}

/* TCP takes some of the waiting octets. */
static void send_some(struct stage *s, u32 n)
{
	u32 waits = s->b.end - s->b.off, niov;
	const struct weft_iov *iov = weft_batch_list(&s->b, &niov);

	n = min_t(u32, n, waits);
	put(s, iov, niov, n);
	weft_batch_taken(&s->b, &s->qp->core, n);
	/* From here on only copies may be read. */
	write_memory(s);
	FUZZ_ASSERT(s->b.off <= s->b.end && !s->b.nheld && !s->b.niov);
}

/* ---- the peer ---- */

FUZZ_HELPER static void judge_write(struct stage *s, struct weft_fpdu *f, u32 nth)
{
	static u8 octets[65536];
	u32 i;

	FUZZ_ASSERT(f->payload_len <= sizeof(octets));
	weft_cur_copy(&f->payload, octets, f->payload_len);
	for (i = 0; i < f->payload_len; i++)
		FUZZ_ASSERT(octets[i] == pattern(s->gen_of[nth], (u32)f->ddp.to + i));
}

static void judge_wire(struct stage *s)
{
	struct weft_seg seg = { s->wire + s->judged, s->len - s->judged };
	struct weft_fpdu f;
	struct weft_cur in;

	weft_cur_init(&in, &seg, 1);
	for (;;) {
		u32 nth = s->peer.rx_fpdus;

		switch (weft_stream_rx(&s->peer, &in, &f)) {
		case WEFT_RX_FPDU:
			FUZZ_ASSERT(nth < s->fpdus);
			judge_write(s, &f, nth);
			break;
		case WEFT_RX_CHUNK:
			weft_stream_lend(&s->peer, malloc(WEFT_STAGE_CHUNK));
			break;
		case WEFT_RX_MORE:
			s->judged = s->len;
			return;
		default:
			FUZZ_ASSERT(!"an octet is not what it should be");
		}
	}
}

/* ---- rounds ---- */

/* Records the FPDUs of the batch just filled: their memory's generation, and segments. */
static void note_fpdus(struct stage *s, u32 before)
{
	u32 i, n = s->b.fpdus - before;

	FUZZ_ASSERT(s->fpdus + n <= MAX_FPDUS);
	for (i = 0; i < n; i++)
		s->gen_of[s->fpdus++] = s->gen;
}

/* A segment's end, as TCP counts from its tail, never cuts an FPDU of the batch. */
static void check_segments(struct stage *s)
{
	u32 off = 0, pos = s->b.fresh ? 0 : s->pos;

	/* With Markers, lengths depend on the stream's position: the peer checks those. */
	if (s->st.agreed.tx_markers)
		return;
	while (off < s->b.end) {
		/* An FPDU's length field is in the batch's memory, never in users'. */
		u32 niov, i, at = off;
		const struct weft_iov *iov = weft_batch_list(&s->b, &niov);
		u32 len;

		for (i = 0; i < niov && at >= iov[i].len; i++)
			at -= (u32)iov[i].len;
		FUZZ_ASSERT(i < niov && at + 2 <= iov[i].len);
		len = weft_mpa_fpdu_len(weft_get16((const u8 *)iov[i].base + at));
		FUZZ_ASSERT(pos + len <= s->mss);
		pos = (pos + len) % s->mss;
		off += len;
	}
	s->pos = s->b.eor ? 0 : pos;
}

static bool one_round(struct stage *s, struct script *in)
{
	u32 before = s->b.fpdus, n, tries;
	enum weft_tx_result r;
	void *mem;

	for (n = script_octet(in) & 3; n; n--)
		post(s, in);
	mem = malloc(s->size);
	FUZZ_ASSERT(mem);
	memset(mem, 0x5A, s->size);
	weft_batch_lend(&s->b, mem, s->size);
	weft_batch_begin(&s->b, s->mss, s->pos);
	r = weft_batch_fill(&s->b, &s->qp->core);
	FUZZ_ASSERT(r != WEFT_TX_FIN);
	note_fpdus(s, before);
	check_segments(s);
	weft_tx_sent(&s->qp->core);
	weft_region_end_run(&s->qp->core);
	for (tries = 0; !weft_batch_is_sent(&s->b) && tries < 4; tries++)
		send_some(s, tries < 3 ? script_u16(in) : ~0u);
	FUZZ_ASSERT(weft_batch_reclaim(&s->b, false) == mem);
	free(mem);
	judge_wire(s);
	host_assert_quiet(&s->host);
	return s->len < WIRE / 2;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct script in = { data, size };
	static struct stage s;
	u8 *chunk;
	u32 i;

	set_up(&s, &in);
	for (i = 0; i < MAX_ROUNDS && in.left && one_round(&s, &in); i++)
		;
	while ((chunk = weft_stream_reclaim(&s.peer, true)))
		free(chunk);
	weft_qpc_error(&s.qp->core);
	host_fini(&s.host);
	host_cq_free(s.cq);
	free(s.wire);
	return 0;
}
