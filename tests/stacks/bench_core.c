// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a work request costs proto and core, without TCP and without a kernel:
 * posting, sending and completing, then receiving and completing, in CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "side.h"

#define BATCH 32
#define ROUNDS 20000

struct bench {
	struct pair p;
	struct host_mr *from, *to;
	u8 *octets;			/* what a batch came to on the wire */
	u32 n;
	double send, receive;		/* seconds */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void emit(struct bench *b, struct weft_txd *d)
{
	struct weft_stream *st = &b->p.s[0].link.st;
	struct weft_emit e;
	u32 i;

	weft_stream_tx_emit(st, &d->f, &e, b->octets + b->n);
	for (i = 0; i < d->npieces; i++) {
		const struct weft_piece *p = &d->piece[i];
		const void *from = p->p;

		if (p->region)
			from = host_mr_at(to_host_mr(p->region), p->addr, p->len);
		weft_emit_bytes(&e, from, p->len);
	}
	b->n += weft_emit_end(&e);
	weft_tx_put(&b->p.s[0].qp->core, d);
}

static void send_batch(struct bench *b, u32 ulpdu)
{
	static struct weft_txd d;
	struct weft_qpc *core = &b->p.s[0].qp->core;

	b->n = 0;
	while (weft_tx_next(core, ulpdu, false, &d) == WEFT_TX_FPDU)
		emit(b, &d);
	weft_tx_sent(core);
}

static void receive_batch(struct bench *b)
{
	struct weft_seg seg = { b->octets, b->n };
	struct weft_cur in;

	weft_cur_init(&in, &seg, 1);
	weft_qpc_rx(&b->p.s[1].qp->core, &in);
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

static void one_round(struct bench *b, u8 opcode, u32 len, u32 ulpdu)
{
	double a = now(), m;

	post_batch(b, opcode, len);
	send_batch(b, ulpdu);
	poll_all(&b->p.s[0]);
	m = now();
	receive_batch(b);
	poll_all(&b->p.s[1]);
	b->send += m - a;
	b->receive += now() - m;
}

static void bench(const char *what, u8 opcode, u32 len, u32 ulpdu, bool crc)
{
	u32 i, rounds = len > 1000 ? ROUNDS / 50 : ROUNDS;
	struct bench *b = calloc(1, sizeof(*b));
	struct pair_cfg c;
	double n = (double)rounds * BATCH;

	HOST_ASSERT(b);
	pair_cfg_init(&c);
	c.s[0].link.mpa.crc = c.s[1].link.mpa.crc = crc;
	pair_init(&b->p, &c);
	pair_run(&b->p);
	b->from = host_mr_new(&b->p.s[0].host, PD, 4096, len, WEFT_ACCESS_LOCAL_WRITE);
	b->to = host_mr_new(&b->p.s[1].host, PD, 4096, len,
			    WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE);
	b->octets = malloc((size_t)BATCH * (2 * len + 100));
	HOST_ASSERT(b->octets);
	for (i = 0; i < rounds; i++)
		one_round(b, opcode, len, ulpdu);
	printf("%-22s crc %-3s  send %7.0f ns  receive %7.0f ns\n", what, crc ? "on" : "off",
	       b->send / n * 1e9, b->receive / n * 1e9);
	free(b->octets);
	pair_fini(&b->p);
	free(b);
}

int main(void)
{
	u32 crc;

	for (crc = 0; crc < 2; crc++) {
		bench("write, 8 octets", WEFT_WR_WRITE, 8, 1442, crc);
		bench("send, 8 octets", WEFT_WR_SEND, 8, 1442, crc);
		bench("write, 64 KB by 1448", WEFT_WR_WRITE, 65536, 1442, crc);
		bench("write, 64 KB by 8948", WEFT_WR_WRITE, 65536, 8942, crc);
	}
	return 0;
}
