// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Closes all descriptors that it does not know, as daemons do: one by one, then by close_range().
 * The library's hidden descriptors must survive: devices are listed, and the connection, both of
 * whose ends are in this process, carries data and ends. HOST is an address of this machine that an
 * RDMA device has. TAP.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define MOST	20000	/* descriptors that are tried */

static struct pair pair = {
	.client.timeout_ms = PAIR_TIMEOUT_MS,
	.server.timeout_ms = PAIR_TIMEOUT_MS,
};
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
	return fd < 3 || is_of(&pair.client, fd) || is_of(&pair.server, fd);
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

/* ---- devices ---- */

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
	if (argc != 3) {
		fprintf(stderr, "closes-all HOST PORT\n");
		return 2;
	}
	verdict("devices-are-listed", lists_devices());
	close_one_by_one();
	verdict("devices-are-listed-with-all-closed", lists_devices());
	pair_open(&pair, argv[1], argv[2]);
	verdict("data-goes-before", pair_carries_data(&pair));
	close_one_by_one();
	verdict("data-goes-with-all-others-closed", pair_carries_data(&pair));
	close_by_ranges();
	verdict("data-goes-with-all-ranges-between-closed", pair_carries_data(&pair));
	conn_close(&pair.client);
	conn_close(&pair.server);
	verdict("the-connection-ends", true);
	printf("1..%d\n", n_tests);
	return !!n_failed;
}
