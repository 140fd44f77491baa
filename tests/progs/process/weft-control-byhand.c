// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Under weft-run --control: what becomes of the requests of a QP connected by hand whose peer cannot
 * be reached: it is absent, refuses, or is frozen, or its port is down. Once with this QP as the
 * end that connects, and once as the other. TAP on stdout.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "byhand.h"
#include "weft-control.h"

#define QUIET_MS	300		/* in which nothing is to happen */
#define AGAIN_MS	1500		/* less than any deadline of start-up */
#define SHORT		14		/* 67 ms, eight times: the least that weft waits is 3 s */
#define ENDLESS		0

static struct hand_device dev;
static struct hand_end a, b;		/* a has requests */
static struct hand_name a_name, b_name;
static const char *address;

__attribute__((format(printf, 1, 2))) static bool ask(const char *fmt, ...)
{
	char request[128];
	va_list args;
	int rv;

	va_start(args, fmt);
	vsnprintf(request, sizeof(request), fmt, args);
	va_end(args);
	rv = weft_control(getpid(), request, NULL, NULL);
	if (rv)
		printf("# %s: %d\n", request, rv);
	return !rv;
}

static bool port(const char *way)
{
	return ask("port %s %s", ibv_get_device_name(dev.ctx->device), way);
}

/* ---- two ends ---- */

/* The end with the lower number connects. Both are made anew: one alone may get its number again. */
static void make(uint8_t timeout, bool connects)
{
	struct hand_setting set = hand_usual;

	set.timeout = timeout;
	hand_make(&a, &dev, &set, NULL);
	hand_make(&b, &dev, &set, NULL);
	while ((a.qp->qp_num < b.qp->qp_num) != connects) {
		hand_unmake(&a);
		hand_unmake(&b);
		hand_make(&b, &dev, &set, NULL);
		hand_make(&a, &dev, &set, NULL);
		if ((a.qp->qp_num < b.qp->qp_num) == connects)
			break;
		hand_unmake(&b);
		hand_unmake(&a);
		hand_make(&a, &dev, &set, NULL);
		hand_make(&b, &dev, &set, NULL);
	}
	hand_tell(&a, &a_name);
	hand_tell(&b, &b_name);
}

static void unmake(void)
{
	hand_unmake(&a);
	hand_unmake(&b);
}

static bool is_quiet(void)
{
	struct ibv_wc wc;

	return !hand_poll(a.cq, &wc, QUIET_MS);
}

/* The oldest completes so, and the other is flushed. */
static bool requests_fail(void)
{
	return is_quiet() && hand_took(a.cq, 1, IBV_WC_RETRY_EXC_ERR) &&
	       hand_took(a.cq, 2, IBV_WC_WR_FLUSH_ERR) && hand_state(&a) == IBV_QPS_ERR;
}

static void post_two(void)
{
	hand_send(&a, 1, 8);
	hand_send(&a, 2, 8);
}

/* Within a time that is shorter than the deadline of a connection's start-up. */
static bool requests_succeed(void)
{
	struct ibv_wc wc;
	int n = 0;

	while (n < 2 && hand_poll(a.cq, &wc, AGAIN_MS) && wc.status == IBV_WC_SUCCESS)
		n++;
	if (n < 2)
		printf("# %d have succeeded\n", n);
	return n == 2;
}

/* ---- cases ---- */

static bool peer_is_absent(bool connects)
{
	struct hand_name absent;
	bool ok;

	make(SHORT, connects);
	absent = b_name;
	/* A's place beside it stays: b's address and number are its own alone. */
	hand_unmake(&b);
	hand_ready(&a, &absent);
	post_two();
	ok = requests_fail();
	hand_unmake(&a);
	return ok;
}

static bool peer_refuses(bool connects)
{
	bool ok;

	make(SHORT, connects);
	hand_to_init(&b);
	hand_ready(&a, &b_name);
	post_two();
	ok = requests_fail();
	unmake();
	return ok;
}

static bool port_is_down(bool connects)
{
	bool ok;

	make(SHORT, connects);
	ok = port("down");
	hand_ready(&b, &a_name);
	hand_ready(&a, &b_name);
	post_two();
	ok = ok && requests_fail();
	unmake();
	return port("up") && ok;
}

static bool port_goes_down(bool connects)
{
	bool ok;

	make(SHORT, connects);
	hand_ready(&b, &a_name);
	hand_ready(&a, &b_name);
	hand_recv(&b, 5);
	hand_send(&a, 6, 8);
	ok = hand_took(a.cq, 6, IBV_WC_SUCCESS) && port("down");
	post_two();
	ok = ok && requests_fail();
	unmake();
	return port("up") && ok;
}

/* Connecting has just begun, or has not: both are tried. */
static bool waits_until_thawed(bool connects, struct hand_end *frozen, int later_ms)
{
	bool ok;

	make(ENDLESS, connects);
	hand_ready(&b, &a_name);
	hand_ready(&a, &b_name);
	usleep((unsigned int)later_ms * 1000);
	ok = ask("freeze %u", frozen->qp->qp_num);
	hand_recv(&b, 5);
	hand_recv(&b, 6);
	post_two();
	ok = ok && is_quiet() && ask("thaw %u", frozen->qp->qp_num) && requests_succeed();
	unmake();
	return ok;
}

static bool goes_on_once_thawed(bool connects)
{
	int ms;

	for (ms = 0; ms < 4; ms++)
		if (!waits_until_thawed(connects, &a, ms) || !waits_until_thawed(connects, &b, ms))
			return false;
	return true;
}

/* ---- cases: the end of a process ---- */

#define LIFE_S	5

/* With a device of its own, and requests that wait; @frozen: whose peer is, or it; else the port. */
static int end_in_child(struct hand_end *frozen)
{
	hand_open(&dev, address);
	make(ENDLESS, true);
	hand_ready(&b, &a_name);
	hand_ready(&a, &b_name);
	hand_recv(&b, 5);
	hand_send(&a, 6, 8);
	if (!hand_took(a.cq, 6, IBV_WC_SUCCESS))
		return 1;
	if (frozen ? !ask("freeze %u", frozen->qp->qp_num) : !port("down"))
		return 2;
	hand_recv(&b, 7);
	post_two();
	return 0;
}

/* The child of a child that is in that state: fork() has not waited, and it ends at once. */
static int fork_in_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status ? 0 : 3;
}

static bool ends(struct hand_end *frozen, bool forks)
{
	long begun = hand_now_ms();
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		alarm(LIFE_S);
		status = end_in_child(frozen);
		exit(status || !forks ? status : fork_in_child());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (status)
		printf("# the child ended with %#x\n", (unsigned int)status);
	return !status && hand_now_ms() - begun < 1000 * LIFE_S / 2;
}

static bool frozen_process_exits(void)
{
	return ends(&a, false) && ends(&b, false);
}

static bool frozen_process_forks(void)
{
	return ends(&a, true) && ends(&b, true);
}

static bool process_exits_while_its_port_is_down(void)
{
	return ends(NULL, false) && ends(NULL, true);
}

/* A post and a destruction of another thread do not wait for a frozen QP. */
static bool destroyed_while_frozen(void)
{
	long begun;

	make(ENDLESS, true);
	hand_ready(&b, &a_name);
	hand_ready(&a, &b_name);
	hand_recv(&b, 5);
	hand_send(&a, 6, 8);
	if (!hand_took(a.cq, 6, IBV_WC_SUCCESS) || !ask("freeze %u", a.qp->qp_num) ||
	    !ask("freeze %u", b.qp->qp_num))
		return false;
	post_two();
	begun = hand_now_ms();
	unmake();
	return hand_now_ms() - begun < 2000;
}

/* ---- all ---- */

static bool peer_is_absent_here(void) { return peer_is_absent(true); }
static bool peer_is_absent_there(void) { return peer_is_absent(false); }
static bool peer_refuses_here(void) { return peer_refuses(true); }
static bool peer_refuses_there(void) { return peer_refuses(false); }
static bool port_is_down_here(void) { return port_is_down(true); }
static bool port_is_down_there(void) { return port_is_down(false); }
static bool port_goes_down_here(void) { return port_goes_down(true); }
static bool port_goes_down_there(void) { return port_goes_down(false); }
static bool goes_on_here(void) { return goes_on_once_thawed(true); }
static bool goes_on_there(void) { return goes_on_once_thawed(false); }

int main(int argc, char **argv)
{
	static const struct hand_case cases[] = {
		{ "requests-fail-if-the-peer-is-absent", peer_is_absent_here },
		{ "requests-fail-if-no-peer-connects", peer_is_absent_there },
		{ "requests-fail-if-the-peer-refuses", peer_refuses_here },
		{ "requests-fail-if-the-peer-is-not-ready-to-connect", peer_refuses_there },
		{ "requests-fail-if-the-port-is-down-before-this-end-connects", port_is_down_here },
		{ "requests-fail-if-the-port-is-down-before-the-peer-connects", port_is_down_there },
		{ "requests-fail-if-the-port-goes-down-at-the-end-that-connected",
		  port_goes_down_here },
		{ "requests-fail-if-the-port-goes-down-at-the-other-end", port_goes_down_there },
		{ "a-qp-that-was-frozen-connects-once-it-is-thawed", goes_on_here },
		{ "a-qp-that-was-frozen-is-connected-once-it-is-thawed", goes_on_there },
		{ "frozen-qps-are-destroyed-at-once", destroyed_while_frozen },
		{ "a-process-with-frozen-qps-by-hand-exits", frozen_process_exits },
		{ "a-process-with-frozen-qps-by-hand-forks", frozen_process_forks },
		{ "a-process-whose-port-is-down-exits", process_exits_while_its_port_is_down },
	};

	address = argv[argc > 1];
	return hand_run_cases("weft-control-byhand", argc, argv, &dev, cases,
			      sizeof(cases) / sizeof(cases[0]));
}
