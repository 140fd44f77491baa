// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "waits.h"

#define PATIENCE_S	20

struct ends t;

void post_recv(struct conn *c, uint64_t id)
{
	struct ibv_recv_wr wr = { .wr_id = id }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		fail("no receive can be posted");
}

void post_send(struct conn *c, uint64_t id)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("no Send can be posted");
}

void arm(struct conn *c)
{
	if (ibv_req_notify_cq(c->cq, 0))
		fail("the CQ cannot be armed");
}

int await_event(struct conn *c)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(c->comp, &cq, &ctx))
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

bool take_by_event(struct conn *c, uint64_t id)
{
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(c->cq, 1, &wc);
		if (n)
			return n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS;
		arm(c);
		n = ibv_poll_cq(c->cq, 1, &wc);
		if (n)
			return n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS;
		if (await_event(c))
			return false;
	}
}

static void *wait_once(void *arg)
{
	struct waiter *w = arg;

	if (w->before)
		w->before();
	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->result = await_event(&t.s);
	if (w->after)
		w->after(w);
	return NULL;
}

bool can_cancel(void)
{
	bool can = !dlsym(RTLD_DEFAULT, "__asan_init");

	if (!can)
		printf("# no thread is cancelled under AddressSanitizer\n");
	return can;
}

char state_of(pid_t tid)
{
	char path[64], line[256] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return end ? end[2] : 0;
}

void moment(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void start(struct waiter *w)
{
	w->tid = w->result = 0;
	if (pthread_create(&w->thread, NULL, wait_once, w))
		fail("no thread");
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) || state_of(w->tid) != 'S')
		moment();
}

int join(struct waiter *w)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (!pthread_timedjoin_np(w->thread, NULL, &until))
		return w->result;
	pthread_cancel(w->thread);
	pthread_join(w->thread, NULL);
	return ETIMEDOUT;
}
