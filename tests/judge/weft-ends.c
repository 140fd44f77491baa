// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults that take both ends to see, and their right twins:
 *
 *     weft-ends ADDR CASE wrong|right
 *
 * Two processes, the initiator and the target of requests, whose QPs are connected by hand. What one
 * must know of the other's it reads from a socket: nothing depends on time. Nothing here knows weft.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS	20000
#define QPS		2		/* of one CQ */
#define BULK		(32 << 20)	/* octets that outlast a flag */

/* Reports name a function that is not inlined by its own name. */
#define APART __attribute__((noinline))

static struct hand_device dev;
static struct hand_end ends[QPS];
static struct hand_name peers[QPS];
static int peer;			/* a socket */
static bool wrong;

/* ---- words between the processes ---- */

static void say(const void *what, size_t len)
{
	if (write(peer, what, len) != (ssize_t)len)
		hand_fail("the peer does not listen: %s", strerror(errno));
}

static void hear(void *what, size_t len)
{
	if (recv(peer, what, len, MSG_WAITALL) != (ssize_t)len)
		hand_fail("the peer has gone");
}

static void say_go(void)
{
	say("!", 1);
}

static void await_go(void)
{
	char c;

	hear(&c, 1);
}

/* ---- both ends ---- */

static void begin(const char *addr)
{
	struct hand_name own[QPS];
	struct ibv_cq *cq;
	int i;

	hand_open(&dev, addr);
	cq = ibv_create_cq(dev.ctx, 2 * QPS * HAND_DEPTH, NULL, NULL, 0);
	if (!cq)
		hand_fail("no CQ: %s", strerror(errno));
	for (i = 0; i < QPS; i++) {
		hand_make(&ends[i], &dev, &hand_usual, cq);
		hand_tell(&ends[i], &own[i]);
	}
	say(own, sizeof(own));
	hear(peers, sizeof(peers));
	for (i = 0; i < QPS; i++)
		hand_ready(&ends[i], &peers[i]);
	say_go();
	await_go();
}

/* Neither end goes before the other has all that it awaits. */
static void end(void)
{
	struct ibv_cq *cq = ends[0].cq;
	int i;

	say_go();
	await_go();
	for (i = 0; i < QPS; i++)
		if (ibv_destroy_qp(ends[i].qp) || (ends[i].mr && ibv_dereg_mr(ends[i].mr)))
			hand_fail("a QP cannot be destroyed: %s", strerror(errno));
	if (ibv_destroy_cq(cq))
		hand_fail("the CQ cannot be destroyed");
	hand_close(&dev);
}

static void next(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!hand_poll(ends[0].cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	if (wc.status != status)
		hand_fail("%lu came with %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
}

/* ---- a key whose region is gone ---- */

static APART void take_key_back(void)
{
	if (ibv_dereg_mr(ends[0].mr))
		hand_fail("ibv_dereg_mr");
	ends[0].mr = NULL;
}

static void key_of_target(void)
{
	if (wrong)
		take_key_back();
	say_go();
	await_go();
	if (!wrong)
		take_key_back();
}

static APART void write_by_key(void)
{
	hand_rdma(&ends[0], 1, IBV_WR_RDMA_WRITE, &peers[0], 64);
}

static void key_of_initiator(void)
{
	await_go();
	write_by_key();
	next(wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	say_go();
}

/* ---- a receive that is late ---- */

static APART void post_receive(void)
{
	hand_recv(&ends[0], 2);
}

static void receive_of_target(void)
{
	if (wrong)
		await_go();
	post_receive();
	if (!wrong)
		say_go();
	next(IBV_WC_SUCCESS);
}

static void receive_of_initiator(void)
{
	if (!wrong)
		await_go();
	hand_send(&ends[0], 3, 64);
	if (wrong)
		say_go();
	next(IBV_WC_SUCCESS);
}

/* ---- a flag on another QP than its data ---- */

static uint8_t *bulk;
static struct ibv_mr *bulk_mr;

static void make_bulk(int access)
{
	bulk = calloc(1, BULK);
	bulk_mr = bulk ? ibv_reg_mr(dev.pd, bulk, BULK, access) : NULL;
	if (!bulk_mr)
		hand_fail("no region: %s", strerror(errno));
}

static void drop_bulk(void)
{
	if (ibv_dereg_mr(bulk_mr))
		hand_fail("ibv_dereg_mr");
	free(bulk);
}

static void flag_of_target(void)
{
	struct hand_name at;

	make_bulk(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	hand_recv(&ends[1], 2);
	at = (struct hand_name){ .addr = (uintptr_t)bulk, .rkey = bulk_mr->rkey };
	say(&at, sizeof(at));
	next(IBV_WC_SUCCESS);
	await_go();
	drop_bulk();
}

static void write_data(const struct hand_name *at)
{
	struct ibv_sge sge = { .addr = (uintptr_t)bulk, .length = BULK, .lkey = bulk_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { at->addr, at->rkey },
	};

	if (ibv_post_send(ends[0].qp, &wr, &bad))
		hand_fail("ibv_post_send: %s", strerror(errno));
}

static APART void send_flag(void)
{
	hand_send(&ends[1], 3, 8);
}

static void flag_of_initiator(void)
{
	struct hand_name at;

	make_bulk(0);
	hear(&at, sizeof(at));
	write_data(&at);
	if (!wrong)
		next(IBV_WC_SUCCESS);
	send_flag();
	if (wrong)
		next(IBV_WC_SUCCESS);
	next(IBV_WC_SUCCESS);
	say_go();
	drop_bulk();
}

/* What initiators do, and their targets. */
static const struct hand_twin cases[] = {
	{ "stale-key", key_of_initiator },
	{ "receive-too-late", receive_of_initiator },
	{ "flag-overtakes-data", flag_of_initiator },
};
static void (*const targets[])(void) = { key_of_target, receive_of_target, flag_of_target };

int main(int argc, char **argv)
{
	const struct hand_twin *c = hand_find_twin(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), &wrong);
	int sockets[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		hand_fail("socketpair: %s", strerror(errno));
	child = fork();
	if (child < 0)
		hand_fail("fork: %s", strerror(errno));
	peer = sockets[!child];
	close(sockets[!!child]);
	begin(argv[1]);
	(child ? targets[c - cases] : c->run)();
	end();
	if (!child)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		hand_fail("the initiator has failed");
	return 0;
}
