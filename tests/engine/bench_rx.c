// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Speed of the receive path in place: FPDUs per second without CRC, and, with CRC, the share of
 * the bare CRC's rate over the same octets. One core. Goals: 10 M FPDUs/s without CRC, 90 % of the
 * bare CRC rate with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../../kernel/proto/stream.h"

enum { BATCH = 1 << 18, ROUNDS = 9 };

/* CPU time: the machine may be shared. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static u32 make_batch(u8 *buf, u32 ulpdu_max, bool crc, u32 *fpdus)
{
	struct weft_mpa_agreed agreed = { .rev = 1, .crc = crc };
	static u8 data[WEFT_MPA_ULPDU_MAX];
	struct weft_stream st;
	u32 len = 0;

	weft_stream_init(&st, true);
	weft_stream_start(&st, &agreed);
	for (*fpdus = 0; len + weft_mpa_fpdu_len(ulpdu_max) <= BATCH; ++*fpdus) {
		struct weft_tx_msg m = { .op = WEFT_OP_WRITE, .stag = 7, .to = len,
					 .len = ulpdu_max - WEFT_DDP_TAGGED_LEN };
		struct weft_tx_fpdu f;
		struct weft_emit e;

		weft_stream_tx(&m, ulpdu_max < 128 ? 128 : ulpdu_max, &f);
		weft_stream_tx_emit(&st, &f, &e, buf + len);
		weft_emit_bytes(&e, data, f.payload_len);
		len += weft_emit_end(&e);
	}
	return len;
}

/* Receives the batch once, in pieces of @piece octets; returns the number of FPDUs. */
static u32 receive(struct weft_stream *st, const struct weft_seg *seg, u32 nseg)
{
	struct weft_fpdu f;
	struct weft_cur in;
	u32 n = 0;

	weft_cur_init(&in, seg, nseg);
	while (weft_stream_rx(st, &in, &f) == WEFT_RX_FPDU)
		n++;
	return n;
}

static u32 in_pieces(struct weft_seg *seg, const u8 *buf, u32 len, u32 piece)
{
	u32 n = 0;

	for (u32 off = 0; off < len; off += piece)
		seg[n++] = (struct weft_seg){ buf + off, len - off < piece ? len - off : piece };
	return n;
}

/* Seconds for @repeat batches through the stream. */
static double time_rx(struct weft_stream *st, const struct weft_seg *seg, u32 nseg, u32 fpdus,
		      u32 repeat)
{
	double start = now();

	for (u32 i = 0; i < repeat; i++)
		if (receive(st, seg, nseg) != fpdus)
			abort();
	return now() - start;
}

/* The CRC alone over the same octets, FPDU by FPDU. */
static double time_crc(const u8 *buf, u32 len, u32 wire, u32 repeat)
{
	double start = now();
	u32 sink = 0;

	for (u32 i = 0; i < repeat; i++)
		for (u32 off = 0; off < len; off += wire)
			sink ^= weft_crc32c(~0u, buf + off, wire - 4);
	__asm__ volatile("" : : "r"(sink));
	return now() - start;
}

struct result {
	double rx, bare;		/* seconds a batch, the best of all rounds */
	u32 len, fpdus;
};

/* Alternates the two, so that a slow phase of the machine affects both. */
static struct result best(u8 *buf, u32 ulpdu, u32 piece, bool crc)
{
	struct weft_mpa_agreed agreed = { .rev = 1, .crc = crc };
	struct weft_seg *seg = calloc(BATCH / piece + 1, sizeof(*seg));
	struct result r = { .rx = 1e9, .bare = 1e9 };
	struct weft_stream st;
	u32 nseg, repeat = crc ? 100 : 200;

	r.len = make_batch(buf, ulpdu, crc, &r.fpdus);
	nseg = in_pieces(seg, buf, r.len, piece);
	weft_stream_init(&st, true);
	weft_stream_start(&st, &agreed);
	for (int i = 0; i < ROUNDS; i++) {
		double rx = time_rx(&st, seg, nseg, r.fpdus, repeat) / repeat;
		double bare = 0;

		if (crc)
			bare = time_crc(buf, r.len, weft_mpa_fpdu_len(ulpdu), repeat) / repeat;

		r.rx = rx < r.rx ? rx : r.rx;
		r.bare = bare < r.bare ? bare : r.bare;
	}
	free(seg);
	return r;
}

static void measure(u8 *buf, u32 ulpdu, u32 piece)
{
	struct result plain = best(buf, ulpdu, piece, false), crc = best(buf, ulpdu, piece, true);

	printf("ulpdu %5u pieces %6u | %6.1f M FPDU/s | ", ulpdu, piece,
	       plain.fpdus / plain.rx / 1e6);
	printf("CRC %5.2f GB/s, bare %5.2f GB/s: %5.1f %%\n", crc.len / crc.rx / 1e9,
	       crc.len / crc.bare / 1e9, 100 * crc.bare / crc.rx);
}

int main(void)
{
	static const u32 ulpdus[] = { 22, 78, 142, 526, 1442, 4110, 8942, 64768 };
	u8 *buf = malloc(BATCH);

	for (u32 i = 0; i < sizeof(ulpdus) / sizeof(ulpdus[0]); i++) {
		measure(buf, ulpdus[i], BATCH);
		measure(buf, ulpdus[i], 32768);
		measure(buf, ulpdus[i], 1448);
	}
	free(buf);
	return 0;
}
