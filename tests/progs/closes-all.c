// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * As daemons do: closes every descriptor that it does not know, first one after the other, then
 * by close_range(). What a library has opened behind its back is to go on: devices are listed,
 * the connection between both ends, which are this process, carries data and ends. HOST is an
 * address of this machine that an RDMA device has. TAP.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "pattern.h"

#define BUF	65536
#define DEPTH	8
#define TIMEOUT	5000
#define MOST	20000	/* descriptors that are tried */

static struct conn client, server;
static uint8_t from[BUF], to[BUF];
static struct ibv_mr *from_mr, *to_mr;
static uint64_t key;
static int n_tests, n_failed;

static void verdict(const char *name, bool ok)
{
	n_failed += !ok;
	printf("%sok %d - %s\n", ok ? "" : "not ", ++n_tests, name);
}

/* ---- descriptors ---- */

static bool is_of(const struct conn *c, int fd)
{
	return (c->events && fd == c->events->fd) || (c->comp && fd == c->comp->fd) ||
	       (c->id && c->id->verbs &&
		(fd == c->id->verbs->cmd_fd || fd == c->id->verbs->async_fd));
}

static bool is_known(int fd)
{
	return fd < 3 || is_of(&client, fd) || is_of(&server, fd);
}

static void close_one_by_one(void)
{
	int fd;

	for (fd = 0; fd < MOST; fd++)
		if (!is_known(fd))
			close(fd);
}

static void close_by_ranges(void)
{
	int fd, first = 0;

	for (fd = 0; fd < MOST; fd++) {
		if (!is_known(fd))
			continue;
		if (fd > first && close_range(first, fd - 1, 0))
			fail("close_range");
		first = fd + 1;
	}
	if (close_range(first, ~0u, 0))
		fail("close_range");
}

/* ---- both ends ---- */

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&server);
	conn_make_qp(&server, DEPTH, DEPTH, 0);
	conn_accept(&server, NULL, 0);
	return NULL;
}

static void open_pair(const char *host, const char *port)
{
	pthread_t thread;

	conn_listen(&server, host, port);
	if (pthread_create(&thread, NULL, serve, NULL))
		fail("no thread");
	conn_resolve(&client, host, port);
	conn_make_qp(&client, DEPTH, DEPTH, 0);
	conn_connect(&client, NULL, 0);
	pthread_join(thread, NULL);
	from_mr = conn_reg(&client, from, BUF, IBV_ACCESS_LOCAL_WRITE);
	to_mr = conn_reg(&server, to, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static bool ends(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = opcode == IBV_WR_RDMA_READ ? 0 : BUF,
			       .lkey = from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = !!sge.length,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to, .rkey = to_mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(client.id->qp, &wr, &bad))
		fail("post_send");
	return conn_poll(&client, &wc, 1, TIMEOUT) == 1 && wc.status == IBV_WC_SUCCESS;
}

/* The Read, of nothing, comes back when the Write is there. */
static bool carries_data(void)
{
	pattern_fill(from, BUF, ++key);
	return ends(IBV_WR_RDMA_WRITE) && ends(IBV_WR_RDMA_READ) && !memcmp(from, to, BUF);
}

static bool lists_devices(void)
{
	struct ibv_device **list;
	int n;

	list = ibv_get_device_list(&n);
	if (!list)
		return false;
	ibv_free_device_list(list);
	return n > 0;
}

int main(int argc, char **argv)
{
	conn_program = "closes-all";
	client.timeout_ms = server.timeout_ms = TIMEOUT;
	if (argc != 3) {
		fprintf(stderr, "closes-all HOST PORT\n");
		return 2;
	}
	verdict("devices-are-listed", lists_devices());
	close_one_by_one();
	verdict("devices-are-listed-with-all-closed", lists_devices());
	open_pair(argv[1], argv[2]);
	verdict("data-goes-before", carries_data());
	close_one_by_one();
	verdict("data-goes-with-all-others-closed", carries_data());
	close_by_ranges();
	verdict("data-goes-with-all-ranges-between-closed", carries_data());
	conn_close(&client);
	conn_close(&server);
	verdict("the-connection-ends", true);
	printf("1..%d\n", n_tests);
	return !!n_failed;
}
