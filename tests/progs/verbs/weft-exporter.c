// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of dmabufs whose exporter may move their memory (tests/kmod/exporter.c), over the device
 * that has ADDR. TAP on stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../../kmod/exporter.h"
#include "cases.h"
#include "conn.h"

#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct {
	const char *addr;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	int exporter, fd;
} t;

static void open_device(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_TCP }, *ai;

	if (rdma_create_id(NULL, &t.id, NULL, RDMA_PS_TCP) ||
	    rdma_getaddrinfo(t.addr, NULL, &hints, &ai) || rdma_bind_addr(t.id, ai->ai_src_addr))
		fail("no device has %s: %s", t.addr, strerror(errno));
	rdma_freeaddrinfo(ai);
	t.pd = ibv_alloc_pd(t.id->verbs);
	if (!t.pd)
		fail("no PD");
}

static void open_case(const void *kind)
{
	open_device();
	t.exporter = open("/dev/weft-exporter", O_RDWR | O_CLOEXEC);
	t.fd = t.exporter < 0 ? -1 : ioctl(t.exporter, EXPORTER_MAKE,
					   *(const enum exporter_kind *)kind);
	if (t.fd < 0)
		fail("/dev/weft-exporter: %s", strerror(errno));
}

static void close_case(void)
{
	close(t.fd);
	close(t.exporter);
	ibv_dealloc_pd(t.pd);
	rdma_destroy_id(t.id);
}

static struct ibv_mr *region(void)
{
	return ibv_reg_dmabuf_mr(t.pd, 100, 5000, 100, t.fd, RIGHTS);
}

static bool moves(void)
{
	return !ioctl(t.exporter, EXPORTER_MOVE);
}

static bool is_pinned(void)
{
	return ioctl(t.exporter, EXPORTER_MOVE) && errno == EBUSY;
}

/* Else a peer would write to freed memory. */
static bool it_stays_where_it_is_while_registered(void)
{
	struct ibv_mr *one, *other;

	if (!moves())
		return false;
	one = region();
	other = region();
	if (!one || !other)
		return false;
	return is_pinned() && !ibv_dereg_mr(one) && is_pinned() && !ibv_dereg_mr(other) && moves();
}

static bool io_memory_is_refused(void)
{
	return !region() && errno == EOPNOTSUPP && moves();
}

/* ---- a peer, and memory that is taken back ---- */

#define PORT		"7481"
#define TIMEOUT_MS	60000
#define LEN		4096

static struct conn client, server;
static uint8_t from[LEN];
static struct ibv_mr *from_mr;

static enum ibv_wc_status peer_writes(const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)from, LEN, from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { 100, to->rkey },
	}, read = {
		.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	/* An empty Read comes back when the Write before it has been done, or was refused. */
	wr.next = &read;
	if (ibv_post_send(client.id->qp, &wr, &bad))
		fail("no Write can be posted");
	return conn_poll(&client, &wc, 1, TIMEOUT_MS) == 1 ? wc.status : IBV_WC_GENERAL_ERR;
}

/* Nothing that the peer sends later may reach it: the exporter may have given it to another. */
static bool revoked_memory_is_reached_no_more(void)
{
	struct ibv_mr *mr;
	bool ok;

	client.timeout_ms = server.timeout_ms = TIMEOUT_MS;
	conn_listen(&server, t.addr, PORT);
	conn_pair(&client, &server, t.addr, PORT, 8, 0);
	from_mr = conn_reg(&client, from, LEN, IBV_ACCESS_LOCAL_WRITE);
	mr = ibv_reg_dmabuf_mr(server.pd, 100, 5000, 100, t.fd, RIGHTS);
	ok = mr && peer_writes(mr) == IBV_WC_SUCCESS && !ioctl(t.exporter, EXPORTER_REVOKE) &&
	     peer_writes(mr) != IBV_WC_SUCCESS &&
	     ioctl(t.exporter, EXPORTER_UNTOUCHED) == 1 && !ibv_dereg_mr(mr) &&
	     !region() && errno == ENODEV;
	conn_close(&client);
	conn_close(&server);
	return ok;
}

static const enum exporter_kind movable = EXPORTER_MOVES, pins = EXPORTER_PINS, io = EXPORTER_IO;

static const struct a_case list[] = {
	{ "it-stays-where-it-is-while-registered", it_stays_where_it_is_while_registered, &movable },
	{ "it-stays-where-it-is-if-attached-to", it_stays_where_it_is_while_registered, &pins },
	{ "revoked-memory-is-reached-no-more", revoked_memory_is_reached_no_more, &movable },
	{ "io-memory-is-refused", io_memory_is_refused, &io },
};

static const struct cases cases = CASES(open_case, close_case, list);

int main(int argc, char **argv)
{
	t.addr = cases_begin(argc, argv, "weft-exporter");
	cases_run(&cases, "");
	return cases_end();
}
