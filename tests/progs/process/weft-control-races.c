// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Under weft-run --control: threads ask this process to break QPs, while another thread connects,
 * uses, resets and destroys them, and opens and closes devices. Nothing may hang or crash, and each
 * request is carried out or refused. TAP on stdout.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "byhand.h"
#include "weft-control.h"

#define RACE_MS		1500
#define ASKERS		2

static struct hand_device dev;
static atomic_uint numbers[2];		/* of the QPs that are now, or were */
static atomic_bool over;
static atomic_uint done, refused, failed;

/* ---- those who ask ---- */

static void ask(const char *request)
{
	int rv = weft_control(getpid(), request, NULL, NULL);

	if (rv < 0) {
		printf("# %s: %s\n", request, strerror(-rv));
		failed++;
	} else if (rv) {
		refused++;
	} else {
		done++;
	}
}

static void *break_qps(void *arg)
{
	static const char *const requests[] = {
		"error %u", "freeze %u", "list", "thaw %u", "rate %u 1M", "disconnect %u",
		"delay %u 1ms", "rate %u off", "delay %u off",
	};
	unsigned int n = arg ? 4 : 0;
	char request[64];

	for (; !over; n++) {
		snprintf(request, sizeof(request), requests[n % (sizeof(requests) / sizeof(*requests))],
			 (unsigned int)numbers[n % 2]);
		ask(request);
	}
	return NULL;
}

/* After "fatal" a context is of no use: the first is left out for those whose contexts live on. */
static bool contexts_end;

static void *break_devices(void *arg)
{
	static const char *const requests[] = {
		"fatal %s", "port %s down", "port %s up", "rate %s 10M", "delay %s 1ms",
		"rate %s off", "delay %s off", "faults\nreg_mr chance 1%% -> ENOMEM\n", "faults\n",
	};
	char request[96];
	unsigned int n;

	(void)arg;
	for (n = 0; !over; n++) {
		const char *fmt = requests[n % (sizeof(requests) / sizeof(*requests))];

		if (fmt == requests[0] && !contexts_end)
			continue;
		snprintf(request, sizeof(request), fmt, ibv_get_device_name(dev.ctx->device));
		ask(request);
		usleep(500);
	}
	snprintf(request, sizeof(request), "port %s up", ibv_get_device_name(dev.ctx->device));
	ask(request);
	return NULL;
}

/* ---- what happens meanwhile ---- */

static bool has_qp(struct hand_end *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { HAND_DEPTH, HAND_DEPTH, 1, 1, 0 }, .sq_sig_all = 1,
	};

	*e = (struct hand_end){ .dev = &dev, .set = hand_usual, .cq = cq };
	e->set.timeout = 8;
	e->qp = ibv_create_qp(dev.pd, &attr);
	e->psn = 7;
	return e->qp;
}

/* A QP may fail at any time: no result is certain. */
static void use_qp(struct hand_end *e, const struct hand_end *peer, struct ibv_mr *mr, void *buf)
{
	struct hand_name name = { .gid = dev.gid, .qpn = peer->qp->qp_num, .psn = peer->psn };
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 64, .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	}, *bad_send;
	int i;

	if (hand_to_init(e) || hand_to_rtr(e, &name) || hand_to_rts(e))
		return;
	for (i = 0; i < 4; i++) {
		ibv_post_recv(e->qp, &recv, &bad_recv);
		ibv_post_send(e->qp, &send, &bad_send);
	}
}

static void poll_some(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 64; i++)
		ibv_poll_cq(cq, 1, &wc);
}

/* One life of two QPs; @resets them before their end, or not. */
static bool live_once(struct ibv_cq *cq, struct ibv_mr *mr, void *buf, bool resets)
{
	struct hand_end a, b;

	if (!has_qp(&a, cq) || !has_qp(&b, cq))
		return false;
	numbers[0] = a.qp->qp_num;
	numbers[1] = b.qp->qp_num;
	use_qp(&a, &b, mr, buf);
	use_qp(&b, &a, mr, buf);
	poll_some(cq);
	if (resets)
		hand_to(&a, IBV_QPS_RESET);
	if (resets)
		use_qp(&a, &b, mr, buf);
	return !ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp);
}

static bool live(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 1024, NULL, NULL, 0);
	static uint8_t buf[64];
	struct ibv_mr *mr = cq ? ibv_reg_mr(dev.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE) : NULL;
	long until = hand_now_ms() + RACE_MS;
	unsigned int n = 0;
	bool ok = mr;

	for (; ok && hand_now_ms() < until; n++)
		ok = live_once(cq, mr, buf, n % 2);
	printf("# %u lives\n", n);
	return ok && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq);
}

/* A context of its own, which is closed with a QP in it: libibverbs frees nothing of the device. */
static bool open_and_close(void)
{
	long until = hand_now_ms() + RACE_MS;
	struct ibv_context *ctx;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	unsigned int n, dead = 0;

	for (n = 0; hand_now_ms() < until; n++) {
		ctx = ibv_open_device(dev.ctx->device);
		pd = ctx ? ibv_alloc_pd(ctx) : NULL;
		attr.send_cq = attr.recv_cq = pd ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
		qp = attr.send_cq ? ibv_create_qp(pd, &attr) : NULL;
		if (!qp && errno != EIO)
			return false;
		dead += !qp;
		numbers[n % 2] = qp ? qp->qp_num : 0;
		usleep(200);
		if (ibv_close_device(ctx))
			return false;
	}
	printf("# %u contexts, %u of them of no use\n", n, dead);
	return true;
}

/* ---- all ---- */

static bool race(void *(*ask_by)(void *), bool (*meanwhile)(void))
{
	pthread_t askers[ASKERS];
	long i;
	bool ok;

	done = refused = failed = 0;
	over = false;
	for (i = 0; i < ASKERS; i++)
		if (pthread_create(&askers[i], NULL, ask_by, (void *)i))
			hand_fail("no thread");
	ok = meanwhile();
	over = true;
	for (i = 0; i < ASKERS; i++)
		pthread_join(askers[i], NULL);
	printf("# %u done, %u refused, %u without an answer\n", done, refused, failed);
	return ok && done > 20 && !failed;
}

static bool qps_break_in_their_lives(void)
{
	return race(break_qps, live);
}

static bool devices_break_meanwhile(void)
{
	contexts_end = false;
	return race(break_devices, live);
}

static bool qps_break_while_contexts_end(void)
{
	return race(break_qps, open_and_close);
}

static bool devices_break_while_contexts_end(void)
{
	contexts_end = true;
	return race(break_devices, open_and_close);
}

int main(int argc, char **argv)
{
	static const struct hand_case cases[] = {
		{ "qps-break-while-they-live-and-are-destroyed", qps_break_in_their_lives },
		{ "devices-break-while-qps-live", devices_break_meanwhile },
		{ "qps-break-while-contexts-end", qps_break_while_contexts_end },
		{ "devices-break-while-contexts-end", devices_break_while_contexts_end },
	};

	return hand_run_cases("weft-control-races", argc, argv, &dev, cases,
			      sizeof(cases) / sizeof(cases[0]));
}
