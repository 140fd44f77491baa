// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The CPU time that a work request costs in proto and core, without TCP and without a kernel:
 * posting, sending and completing, then receiving and completing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../kernel/core/rx.h"
#include "side.h"

#define BATCH 32
#ifndef ROUNDS
#define ROUNDS 20000
#endif

struct bench {
	struct pair p;
	struct host_mr *from, *to;
	struct weft_batch batch;
	double send, receive;		/* seconds */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* As much as the driver lends. */
#define MEMORY (64 * 1024)

static noinline void receive(struct bench *b, const struct weft_iov *iov, u32 niov)
{
	static struct weft_seg seg[2 * WEFT_BATCH_REFS + 1];
	struct weft_cur in;
	u32 i;

	for (i = 0; i < niov; i++)
		seg[i] = (struct weft_seg){ .p = iov[i].base, .len = (u32)iov[i].len };
	weft_cur_init(&in, seg, niov);
	weft_qpc_rx(&b->p.s[1].qp->core, &in);
}

/* One batch, taken whole; the peer reads it in place. False: there was nothing to send. */
static bool carry_batch(struct bench *b, u32 mss)
{
	struct weft_qpc *core = &b->p.s[0].qp->core;
	const struct weft_iov *iov;
	double start = now(), m;
	u32 niov;

	weft_batch_begin(&b->batch, mss, 0);
	weft_batch_fill(&b->batch, core);
	if (!b->batch.end)
		return false;
	iov = weft_batch_list(&b->batch, &niov);
	m = now();
	receive(b, iov, niov);
	b->receive += now() - m;
	b->send += m - start;
	m = now();
	weft_batch_taken(&b->batch, core, b->batch.end);
	weft_tx_sent(core);
	b->send += now() - m;
	return true;
}

static void post_batch(struct bench *b, u8 opcode, u32 len)
{
	u32 i;

	for (i = 0; i < BATCH; i++) {
		if (opcode == WEFT_WR_SEND) {
			side_recv(&b->p.s[1], i, b->to, 0, len);
			side_send(&b->p.s[0], i, WEFT_WR_SIGNALED, b->from, 0, len);
		} else {
			side_write(&b->p.s[0], i, WEFT_WR_SIGNALED, b->from, 0, len, b->to, 0);
		}
	}
}

static void poll_all(struct side *s)
{
	struct weft_cqe e;

	while (host_cq_poll(s->scq, &e) || host_cq_poll(s->rcq, &e))
		;
}

static noinline void one_round(struct bench *b, u8 opcode, u32 len, u32 mss)
{
	double start = now(), m;

	post_batch(b, opcode, len);
	b->send += now() - start;
	while (carry_batch(b, mss))
		;
	start = now();
	poll_all(&b->p.s[0]);
	m = now();
	poll_all(&b->p.s[1]);
	b->send += m - start;
	b->receive += now() - m;
}

static struct bench *new_bench(u32 len, bool crc)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct pair_cfg c;

	HOST_ASSERT(b);
	pair_cfg_init(&c);
	c.s[0].link.mpa.crc = c.s[1].link.mpa.crc = crc;
	pair_init(&b->p, &c);
	pair_run(&b->p);
	b->from = host_mr_new(&b->p.s[0].host, PD, 4096, len, WEFT_ACCESS_LOCAL_WRITE);
	b->to = host_mr_new(&b->p.s[1].host, PD, 4096, len,
			    WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE);
	weft_batch_lend(&b->batch, malloc(MEMORY), MEMORY);
	HOST_ASSERT(b->batch.buf);
	return b;
}

static void free_bench(struct bench *b)
{
	free(weft_batch_reclaim(&b->batch, true));
	pair_fini(&b->p);
	free(b);
}

static void bench(const char *what, u8 opcode, u32 len, u32 mss, bool crc)
{
	u32 i, rounds = len > 1000 ? ROUNDS / 50 : ROUNDS;
	struct bench *b = new_bench(len, crc);
	double n = (double)rounds * BATCH;

	for (i = 0; i < rounds; i++)
		one_round(b, opcode, len, mss);
	printf("%-22s crc %-3s  send %7.0f ns  receive %7.0f ns\n", what, crc ? "on" : "off",
	       b->send / n * 1e9, b->receive / n * 1e9);
	free_bench(b);
}

/* One round of Writes of @len octets in FPDUs of @mss: a tool counts its instructions. */
static void count(u32 len, u32 mss, bool crc)
{
	struct bench *b = new_bench(len, crc);

	one_round(b, WEFT_WR_WRITE, len, mss);
	free_bench(b);
}

/* Without arguments: the times. LEN MSS CRC: tests/bench/fpdu.sh. */
int main(int argc, char **argv)
{
	u32 crc;

	if (argc == 4) {
		count((u32)atoi(argv[1]), (u32)atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	for (crc = 0; crc < 2; crc++) {
		bench("write, 8 octets", WEFT_WR_WRITE, 8, 1448, crc);
		bench("send, 8 octets", WEFT_WR_SEND, 8, 1448, crc);
		bench("write, 64 KB by 1448", WEFT_WR_WRITE, 65536, 1448, crc);
		bench("write, 64 KB by 8948", WEFT_WR_WRITE, 65536, 8948, crc);
	}
	return 0;
}
