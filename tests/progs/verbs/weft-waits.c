// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that wait in ibv_get_cq_event(): signals that end a wait, threads that are woken, and
 * traffic after a wait. Each case has a connection of its own, both ends in this process, over the
 * device that has ADDR. TAP on stdout.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "ends.h"

#define TURNS	1000

static struct ends t;

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&t.s);
	conn_make_qp(&t.s, DEPTH, DEPTH, 0);
	conn_accept(&t.s, NULL, 0);
	return NULL;
}

static void open_pair(const void *unused)
{
	(void)unused;
	ends_open(&t, serve, NULL);
}

static void close_pair(void)
{
	ends_close(&t);
}

static void post_recv(struct conn *c, uint64_t id)
{
	struct ibv_recv_wr wr = { .wr_id = id }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		fail("no receive can be posted");
}

static void post_send(struct conn *c, uint64_t id)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("no Send can be posted");
}

static void arm(struct conn *c)
{
	if (ibv_req_notify_cq(c->cq, 0))
		fail("the CQ cannot be armed");
}

/* 0 or errno. */
static int await_event(struct conn *c)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(c->comp, &cq, &ctx))
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* The next completion, by events alone. */
static bool take_by_event(struct conn *c, uint64_t id)
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

/* ---- a thread that waits ---- */

struct waiter {
	pthread_t thread;
	pid_t tid;			/* atomic; 0: it has not begun */
	int result;			/* of the first wait: 0 or errno */
};

static void *wait_once(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->result = await_event(&t.s);
	return NULL;
}

/* Its state as the kernel tells it: 'S' asleep; 0: it is gone. */
static char state_of(pid_t tid)
{
	char path[64], line[256] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return end ? end[2] : 0;
}

static void moment(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

static void start(struct waiter *w)
{
	memset(w, 0, sizeof(*w));
	if (pthread_create(&w->thread, NULL, wait_once, w))
		fail("no thread");
	while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) || state_of(w->tid) != 'S')
		moment();
}

static int join(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	return w->result;
}

/* ---- signals ---- */

static volatile sig_atomic_t heard;

static void hear(int sig)
{
	heard += sig == SIGUSR1;
}

static void handle(int flags)
{
	struct sigaction a = { .sa_handler = hear, .sa_flags = flags };

	sigaction(SIGUSR1, &a, NULL);
}

static void tell(struct waiter *w)
{
	int before = heard;

	pthread_kill(w->thread, SIGUSR1);
	while (heard == before)
		moment();
}

static bool a_handler_without_restart_ends_a_wait(void)
{
	struct waiter w;

	handle(0);
	arm(&t.s);
	start(&w);
	tell(&w);
	return join(&w) == EINTR;
}

static bool a_handler_with_restart_does_not(void)
{
	struct waiter w;
	int i;

	handle(SA_RESTART);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	for (i = 0; i < 3; i++)
		tell(&w);
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

/* The thread's mask is its own while it waits, and after. */
static bool a_blocked_signal_is_not_delivered(void)
{
	struct waiter w;
	sigset_t usr1, old;
	int before = heard;

	handle(0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, &old);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pthread_kill(w.thread, SIGUSR1);
	post_send(&t.c, 2);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !join(&w) && heard == before && took(&t.s, 1) && took(&t.c, 2);
}

/* ---- threads ---- */

static bool a_cancelled_wait_leaves_the_queue_in_order(void)
{
	struct waiter w;

	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pthread_cancel(w.thread);
	pthread_join(w.thread, NULL);
	post_send(&t.c, 2);
	return take_by_event(&t.s, 1) && took(&t.c, 2);
}

/* Each event wakes one thread; the second thread gets the next event after the first has gone. */
static bool two_threads_get_an_event_each(void)
{
	struct waiter w[2];
	struct ibv_wc wc;

	post_recv(&t.s, 1);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w[0]);
	start(&w[1]);
	post_send(&t.c, 2);
	if (!took(&t.c, 2))
		return false;
	while (state_of(w[0].tid) && state_of(w[1].tid))
		moment();
	while (!ibv_poll_cq(t.s.cq, 1, &wc))
		moment();
	arm(&t.s);
	post_send(&t.c, 2);
	return !join(&w[0]) && !join(&w[1]) && took(&t.c, 2) && took(&t.s, 1);
}

/* It waited once, and does other things: what its peer reads is sent all the same. */
static bool reads_are_served_after_a_wait(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = sge_of(t.from, BUF, t.from_mr);
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)t.to;
	wr.wr.rdma.rkey = mr->rkey;
	post_recv(&t.s, 1);
	post_send(&t.c, 2);
	if (!take_by_event(&t.s, 1) || !took(&t.c, 2))
		return false;
	memset(t.to, 'x', BUF);
	/* The client sleeps, so no poll of its own works for the server. */
	arm(&t.c);
	return !ibv_post_send(t.c.id->qp, &wr, &bad) && take_by_event(&t.c, 3) && !memcmp(t.from, t.to, BUF);
}

/* A child goes on with what its parent has, while a thread of the parent waits. */
static bool a_child_has_a_device_of_its_own(void)
{
	struct waiter w;
	struct ibv_context *ctx;
	int status;
	pid_t pid;

	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pid = fork();
	if (!pid) {
		ctx = ibv_open_device(ibv_get_device_list(NULL)[0]);
		_exit(!ctx || ibv_close_device(ctx));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return false;
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

/* The channel's other queue is there still. */
static bool a_queue_goes_while_its_channel_is_waited_for(void)
{
	struct ibv_cq *more = ibv_create_cq(t.s.id->verbs, 4, NULL, t.s.comp, 0);
	struct waiter w;

	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	if (!more || ibv_destroy_cq(more))
		return false;
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

/* ---- wake-ups ---- */

/* How often weft's own thread has slept; -1: there is none. */
static long sleeps_of_progress(void)
{
	char path[300], line[256];
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long n = -1;
	bool is_it;
	FILE *f;

	while (d && n < 0 && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		is_it = f && fgets(line, sizeof(line), f) && !strcmp(line, "Name:\tweft\n");
		while (is_it && n < 0 && fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) != 1)
				n = -1;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

static void *answer(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < TURNS; i++) {
		if (!take_by_event(&t.s, 1))
			return (void *)1;
		post_recv(&t.s, 1);
		post_send(&t.s, 3);
		if (!take_by_event(&t.s, 3))
			return (void *)1;
	}
	return NULL;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Those that wait move the octets. weft's thread looks every 2 ms whether they still do; without
 * them it would sleep once a turn. No handler may end a wait: else it is needed.
 */
static bool whoever_waits_is_woken_alone(void)
{
	pthread_t server;
	void *failed;
	long before, began = now_ms(), sleeps;
	int i;

	handle(SA_RESTART);
	post_recv(&t.s, 1);
	post_recv(&t.c, 1);
	before = sleeps_of_progress();
	if (pthread_create(&server, NULL, answer, NULL))
		fail("no thread");
	for (i = 0; i < TURNS; i++) {
		post_send(&t.c, 2);
		if (!take_by_event(&t.c, 2) || !take_by_event(&t.c, 1))
			return false;
		post_recv(&t.c, 1);
	}
	pthread_join(server, &failed);
	sleeps = sleeps_of_progress() - before;
	printf("# %d turns in %ld ms: weft's thread slept %ld times\n", TURNS, now_ms() - began, sleeps);
	return !failed && (before < 0 || sleeps < TURNS / 10 + now_ms() - began);
}

static const struct a_case list[] = {
	{ "a-handler-without-restart-ends-a-wait", a_handler_without_restart_ends_a_wait, NULL },
	{ "a-handler-with-restart-does-not", a_handler_with_restart_does_not, NULL },
	{ "a-blocked-signal-is-not-delivered", a_blocked_signal_is_not_delivered, NULL },
	{ "a-cancelled-wait-leaves-the-queue-in-order", a_cancelled_wait_leaves_the_queue_in_order, NULL },
	{ "two-threads-get-an-event-each", two_threads_get_an_event_each, NULL },
	{ "reads-are-served-after-a-wait", reads_are_served_after_a_wait, NULL },
	{ "a-child-has-a-device-of-its-own", a_child_has_a_device_of_its_own, NULL },
	{ "a-queue-goes-while-its-channel-is-waited-for", a_queue_goes_while_its_channel_is_waited_for, NULL },
	{ "whoever-waits-is-woken-alone", whoever_waits_is_woken_alone, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-waits");

	ends_init(&t, addr, "7481");
	cases_run(&cases, "");
	return cases_end();
}
