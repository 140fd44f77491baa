// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A ping-pong whose instructions a tool can count (tests/bench/instructions.sh): two processes, one
 * message under way, and each end polls once the message has arrived. After the warm-up, post_one()
 * posts a Send with its doorbell, and take_one() is the call of ibv_poll_cq() that receives it.
 *
 * A tool slows the program down so much that it would seem not to poll busily. So the clock of this
 * process, which libraries read, too, goes on by READ_NS with each reading of it.
 *
 *   message-cost cm|cm2|hand ADDR inline|sge ROUNDS
 * cm2: the send CQ is another, which is polled until the Send is complete, and no more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "byhand.h"
#include "conn.h"

#define LEN	8
#define PORT	"18600"
#define DEPTH	HAND_DEPTH
#define WARM	1000		/* rounds, until the library has judged how the CQ is polled */
#define READ_NS	500
#define IDLE_POLLS 4		/* a program that waits polls busily */

struct end {
	struct conn c;			/* by rdma_cm, or */
	struct hand_device dev;		/* by hand: */
	struct hand_end e;
	bool by_hand;
	int in, out;			/* pipes from and to the other process */
	struct ibv_qp *qp;
	struct ibv_cq *cq, *send_cq;
	bool two_cqs;
	struct ibv_sge to, from;
	unsigned int flags, polls;
	uint8_t buf[2 * LEN];
};

/* ---- the clock ---- */

static uint64_t clock_ns;		/* atomic; 0: it is the system's */

/* As libc's, but found before it. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (!__atomic_load_n(&clock_ns, __ATOMIC_RELAXED))
		return syscall(SYS_clock_gettime, clock, t);
	ns = __atomic_add_fetch(&clock_ns, READ_NS, __ATOMIC_RELAXED);
	*t = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	return 0;
}

static void slow_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	clock_ns = t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* ---- between the processes ---- */

static void give(struct end *x, const void *what, size_t len)
{
	if (write(x->out, what, len) != (ssize_t)len)
		fail("the other process is gone");
}

static void await(struct end *x, void *what, size_t len)
{
	if (read(x->in, what, len) != (ssize_t)len)
		fail("the other process is gone");
}

/* ---- connecting ---- */

static void use(struct end *x, struct ibv_qp *qp, struct ibv_cq *cq, uint8_t *buf, uint32_t lkey)
{
	x->qp = qp;
	x->cq = cq;
	x->send_cq = x->c.send_cq ? x->c.send_cq : cq;
	x->from = (struct ibv_sge){ (uintptr_t)buf, LEN, lkey };
	x->to = (struct ibv_sge){ (uintptr_t)buf + LEN, LEN, lkey };
}

static void make_hand(struct end *x, const char *addr)
{
	struct hand_setting set = hand_usual;

	set.max_inline = LEN;
	hand_open(&x->dev, addr);
	hand_make(&x->e, &x->dev, &set, NULL);
	use(x, x->e.qp, x->e.cq, x->e.buf, x->e.mr->lkey);
}

static void connect_hand(struct end *x)
{
	struct hand_name own, peer;

	hand_tell(&x->e, &own);
	give(x, &own, sizeof(own));
	await(x, &peer, sizeof(peer));
	hand_ready(&x->e, &peer);
}

static void make_cm(struct end *x)
{
	struct ibv_mr *mr;

	if (x->two_cqs) {
		x->c.send_cq = ibv_create_cq(x->c.id->verbs, DEPTH, NULL, NULL, 0);
		if (!x->c.send_cq)
			fail("no send CQ");
	}
	conn_make_qp(&x->c, DEPTH, DEPTH, LEN);
	mr = conn_reg(&x->c, x->buf, sizeof(x->buf), IBV_ACCESS_LOCAL_WRITE);
	use(x, x->c.id->qp, x->c.cq, x->buf, mr->lkey);
}

/* ---- the messages ---- */

static void post_recv(struct end *x)
{
	struct ibv_recv_wr wr = { .sg_list = &x->to, .num_sge = 1 }, *bad;

	if (ibv_post_recv(x->qp, &wr, &bad))
		fail("no receive can be posted");
}

static void post(struct end *x)
{
	struct ibv_send_wr wr = {
		.sg_list = &x->from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = x->flags,
	}, *bad;

	if (ibv_post_send(x->qp, &wr, &bad))
		fail("no Send can be posted");
}

static int take(struct end *x, struct ibv_wc *wc)
{
	return ibv_poll_cq(x->cq, 2, wc);
}

static __attribute__((noipa)) void post_one(struct end *x)
{
	post(x);
}

static __attribute__((noipa)) int take_one(struct end *x, struct ibv_wc *wc)
{
	return take(x, wc);
}

static void check(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		fail("a completion says %s", ibv_wc_status_str(wc->status));
}

/*
 * rdma_cm's Send is complete once TCP has it: taken apart, so that take_one() finds the CQ empty.
 * Nothing arrives meanwhile: the peer answers after give().
 */
static void send_message(struct end *x, bool counted)
{
	struct ibv_wc wc;
	int i;

	if (counted)
		post_one(x);
	else
		post(x);
	if (x->two_cqs) {
		while (!ibv_poll_cq(x->send_cq, 1, &wc))
			;
		check(&wc);
	}
	for (i = 0; i < IDLE_POLLS; i++)
		if (ibv_poll_cq(x->cq, 1, &wc))
			check(&wc);
	give(x, "", 1);
}

/* By hand the peer's message says that it has ours, whose completion comes first. */
static void take_message(struct end *x, bool counted)
{
	bool taken = false;
	struct ibv_wc wc[2];
	int n, i;
	char c;

	await(x, &c, 1);
	while (!taken) {
		n = counted ? take_one(x, wc) : take(x, wc);
		x->polls += counted;
		for (i = 0; i < n; i++) {
			check(&wc[i]);
			taken |= wc[i].opcode == IBV_WC_RECV;
		}
	}
	post_recv(x);
}

static void exchange(struct end *x, bool first, int rounds)
{
	int i;

	slow_clock();
	for (i = -WARM; i < rounds; i++) {
		if (first)
			send_message(x, i >= 0);
		take_message(x, i >= 0);
		if (!first)
			send_message(x, i >= 0);
	}
	if (x->polls != (unsigned int)rounds)
		fail("%u polls for %d messages", x->polls, rounds);
}

/* ---- the two processes ---- */

static void serve(struct end *x, const char *addr, int rounds)
{
	if (x->by_hand) {
		make_hand(x, addr);
		post_recv(x);
		connect_hand(x);
	} else {
		conn_listen(&x->c, addr, PORT);
		give(x, "", 1);
		conn_await_request(&x->c);
		make_cm(x);
		post_recv(x);
		conn_accept(&x->c, NULL, 0);
	}
	exchange(x, false, rounds);
}

static void ask(struct end *x, const char *addr, int rounds)
{
	char c;

	if (x->by_hand) {
		make_hand(x, addr);
		post_recv(x);
		connect_hand(x);
	} else {
		await(x, &c, 1);
		conn_resolve(&x->c, addr, PORT);
		make_cm(x);
		post_recv(x);
		conn_connect(&x->c, NULL, 0);
	}
	exchange(x, true, rounds);
}

int main(int argc, char **argv)
{
	static struct end x = { .c = { .timeout_ms = 20000, .busy_poll = true } };
	int rounds = argc == 5 ? atoi(argv[4]) : 0, there[2], back[2], status;
	pid_t child;

	conn_program = hand_program = "message-cost";
	if (rounds <= 0 || pipe(there) || pipe(back)) {
		fprintf(stderr, "message-cost cm|cm2|hand ADDR inline|sge ROUNDS\n");
		return 2;
	}
	x.by_hand = !strcmp(argv[1], "hand");
	x.two_cqs = !strcmp(argv[1], "cm2");
	x.flags = IBV_SEND_SIGNALED | (strcmp(argv[3], "inline") ? 0 : IBV_SEND_INLINE);
	child = fork();
	if (child < 0)
		fail("no process: %s", strerror(errno));
	x.in = child ? back[0] : there[0];
	x.out = child ? there[1] : back[1];
	if (!child) {
		serve(&x, argv[2], rounds);
		/* The other takes the last message before the connection ends. */
		await(&x, &(char){ 0 }, 1);
		return 0;
	}
	ask(&x, argv[2], rounds);
	give(&x, "", 1);
	return waitpid(child, &status, 0) != child || status;
}
