// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes the seed corpora: seeds DIR makes DIR/fuzz_rx/, DIR/fuzz_mpa/ and so on, from messages of
 * real peers, for the fuzzers to start from.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "seeds.h"
#include "../../kernel/proto/stream.h"

static const char *top;
static int failed;

static void save(const char *target, const char *name, u32 n, const u8 *p, u32 len)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, target);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s-%u", top, target, name, n);
	f = fopen(path, "wb");
	if (!f || fwrite(p, 1, len, f) != len || fclose(f)) {
		perror(path);
		failed = 1;
	}
}

/* In fuzz_rx's format: with CRC, the field is 0 unless TRUE_CRC (0x20) is set. */
static u32 put_message(struct weft_stream *st, enum weft_opcode op, u32 msn, u32 len, u8 *out,
		       bool true_crc)
{
	static const u8 data[6000] = "payload";
	struct weft_tx_msg m = { .op = op, .stag = 0x100, .to = 0x1000, .msn = msn, .len = len };
	u32 at = 0;

	m.ulp_len = op == WEFT_OP_TERMINATE ? WEFT_TERM_MAX : (u8)weft_opcode_header_len(op);
	while (!weft_tx_msg_finished(&m)) {
		struct weft_tx_fpdu f;
		struct weft_emit e;

		weft_stream_tx(&m, 1442, &f);
		weft_stream_tx_emit(st, &f, &e, out + at);
		weft_emit_bytes(&e, data, f.payload_len);
		at += weft_emit_end(&e);
		if (!true_crc)
			memset(out + at - WEFT_MPA_CRC_SIZE, 0, WEFT_MPA_CRC_SIZE);
	}
	return at;
}

static u32 put_startup(bool reply, u8 *out)
{
	struct weft_mpa_frame f = { .reply = reply, .rev = 2, .enhanced = true, .crc = true,
				    .ird = 4, .ord = 4, .pd_len = 5 };

	return weft_mpa_frame_write(&f, "hello", out, WEFT_MPA_FRAME_MAX);
}

static void rx_seed(u8 cfg, u8 cut, enum weft_opcode first, u32 len)
{
	struct weft_mpa_agreed a = { .rev = 1, .crc = cfg & 2, .tx_markers = cfg & 4 };
	static u32 n;
	struct weft_stream st;
	u8 *buf = calloc(1, 1 << 16);
	u32 at = 2;

	weft_stream_init(&st, true);
	weft_stream_start(&st, &a);
	buf[0] = cfg;
	buf[1] = cut;
	if (cfg & 0x10)
		at += put_startup(cfg & 1, buf + at);
	at += put_message(&st, first, 1, weft_opcode_header_len(first) ? 0 : len, buf + at, cfg & 0x20);
	at += put_message(&st, WEFT_OP_SEND, 2, 3, buf + at, cfg & 0x20);
	save("fuzz_rx", "stream", n++, buf, at);
	free(buf);
}

/* A ULPDU of @len octets with @op, whole or too short for its headers. */
static void short_seed(u8 cfg, u8 op, u32 len)
{
	static const u8 qn[16] = { [1] = 1, [7] = 2, [0xA] = 1, [0xB] = 3 };
	bool tagged = weft_opcode_is_tagged(op);
	u8 buf[2 + 128] = { cfg, 1 }, ulpdu[128] = { tagged ? 0xC1 : 0x41, 0x40 | op };
	static u32 n;
	struct weft_emit e;

	if (!tagged)
		ulpdu[9] = qn[op];
	weft_emit_begin(&e, buf + 2, len, false, cfg & 4, 0);
	weft_emit_bytes(&e, ulpdu, len);
	save("fuzz_rx", "short", n++, buf, 2 + weft_emit_end(&e));
}

static void short_seeds(void)
{
	static const u8 lens[] = { 0, 1, 13, 14, 17, 18, 25, 26, 29, 30, 45, 46, 69, 70 };

	for (u32 i = 0; i < 16 * sizeof(lens); i++)
		short_seed(i % 3 ? 0x0A : 0x0D, i % 16, lens[i / 16]);
}

static void mpa_seed(const struct weft_mpa_frame *f, u8 flags)
{
	static u32 n;
	u8 buf[10 + WEFT_MPA_FRAME_MAX] = { flags, 7, 0, 4, 0, 4 };
	static const u8 pd[WEFT_MPA_PD_MAX] = "private data";

	save("fuzz_mpa", "frame", n++, buf, 10 + weft_mpa_frame_write(f, pd, buf + 10,
								      WEFT_MPA_FRAME_MAX));
}

void seeds_save(const char *target, const char *name, const u8 *p, u32 len)
{
	static u32 n;

	save(target, name, n++, p, len);
}

static void mpa_seeds(void)
{
	for (u32 i = 0; i < 64; i++) {
		struct weft_mpa_frame f = {
			.reply = i & 1, .rev = 1 + (i >> 1 & 1), .enhanced = i & 2, .crc = i & 4,
			.markers = i & 8, .reject = i & 16, .p2p = i & 32, .rtr = i & 7,
			.ird = i & 8 ? WEFT_MPA_NO_NEGOTIATION : 4, .ord = i, .pd_len = i * 7,
		};

		mpa_seed(&f, (u8)i);
	}
}

static void term_seeds(void)
{
	static const u8 offender[46] = { 0x41, 0x41 };
	u8 buf[10 + WEFT_TERM_MAX] = { 0 };
	struct weft_term t;

	for (u32 e = WEFT_E_MPA_CRC; e < WEFT_E_NR; e++) {
		weft_term_make(&t, e, offender, sizeof(offender), 46);
		save("fuzz_mpa", "term", e, buf, (u32)(weft_term_write(buf + 10, &t) - buf));
	}
}

int main(int argc, char **argv)
{
	static const u8 cuts[] = { 0, 1, 40, 200 };

	if (argc != 2)
		return 2;
	top = argv[1];
	mkdir(top, 0777);
	for (u32 i = 0; i < 128; i++)
		rx_seed((u8)i, cuts[i % 4], i % 12, i % 16 ? i : 5000);
	short_seeds();
	mpa_seeds();
	term_seeds();
	seeds_wqe();
	return failed;
}
