// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "demand.h"
#include "waits.h"

int load(const int *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

void store(int *n, int to)
{
	__atomic_store_n(n, to, __ATOMIC_SEQ_CST);
}

void add(int *n, int more)
{
	__atomic_fetch_add(n, more, __ATOMIC_SEQ_CST);
}

void *shared_memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory");
	return p;
}

/* ---- the peer ---- */

static void completes(struct conn *c, uint64_t id)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(c->cq, 1, &wc))
		;
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != id)
		fail("the peer's request ended with %d", wc.status);
}

static void send_one(struct conn *c)
{
	post_send(c, 3);
	completes(c, 3);
}

static void answer(struct conn *c, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (!take_by_event(c, 1))
			fail("the peer got no message");
		post_recv(c, 1);
		post_send(c, 3);
		if (!take_by_event(c, 3))
			fail("the peer's answer failed");
	}
}

static void post_one_sided(const struct demand *d, struct conn *c, enum ibv_wr_opcode op, struct ibv_mr *mr)
{
	struct ibv_sge sge = sge_of(mr->addr, BUF, mr);
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = op, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = d->addr;
	wr.wr.rdma.rkey = d->rkey;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("the peer's request cannot be posted");
	completes(c, 4);
}

static void obey(struct demand *d, struct conn *c, struct ibv_mr *mr)
{
	int n;

	answer(c, __atomic_exchange_n(&d->answers, 0, __ATOMIC_SEQ_CST));
	for (n = __atomic_exchange_n(&d->send, 0, __ATOMIC_SEQ_CST); n; n--)
		send_one(c);
	while (load(&d->writes))
		post_one_sided(d, c, IBV_WR_RDMA_WRITE, mr);
	if (load(&d->read)) {
		post_one_sided(d, c, IBV_WR_RDMA_READ, mr);
		store(&d->read, 0);
	}
	moment();
}

static void serve_one(struct demand *d, struct conn *c, void *octets)
{
	struct ibv_mr *mr;

	conn_await_request(c);
	conn_make_qp(c, DEPTH, DEPTH, 0);
	mr = conn_reg(c, octets, BUF, IBV_ACCESS_LOCAL_WRITE);
	post_recv(c, 1);
	conn_accept(c, NULL, 0);
	while (!load(&d->over))
		obey(d, c, mr);
	conn_close(c);
	store(&d->over, 0);
}

/* It never ends but by fail(). */
static void end_its_user(void)
{
	kill(getppid(), SIGTERM);
}

static void be_the_peer(struct demand *d, const char *addr, const char *port)
{
	struct conn c = { .timeout_ms = TIMEOUT };
	void *octets = ends_buffer();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	atexit(end_its_user);
	conn_listen(&c, addr, port);
	store(&d->listens, 1);
	for (;;)
		serve_one(d, &c, octets);
}

/* ---- its user ---- */

void demand_start(struct demand *d, const char *addr, const char *port)
{
	pid_t pid = fork();

	if (!pid)
		be_the_peer(d, addr, port);
	if (pid < 0)
		fail("no process");
	while (!load(&d->listens))
		moment();
}

void demand_connect(struct conn *c, const char *addr, const char *port)
{
	c->timeout_ms = TIMEOUT;
	conn_resolve(c, addr, port);
	conn_make_qp(c, DEPTH, DEPTH, 0);
	post_recv(c, 1);
	conn_connect(c, NULL, 0);
}

void demand_end(struct demand *d)
{
	store(&d->over, 1);
	while (load(&d->over))
		moment();
}
