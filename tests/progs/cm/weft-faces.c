// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which events of rdma_cm a program sees of a device that looks like RoCE, and of one that looks like
 * an RNIC. Both ends in this process, over the device that has ADDR. TAP on stdout.
 *
 *   weft-faces ADDR roce|iwarp
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "verdict.h"

#define PORT		"7481"
#define TIMEOUT_MS	20000
#define LEN		64
/* InfiniBand's reasons of a REJ. */
#define NO_SERVICE	8
#define CONSUMER	28

static const char *addr;
static bool roce;
static struct conn client, server;
static uint8_t buf[2][LEN];

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&server);
	conn_make_qp(&server, 4, 4, 0);
	conn_accept(&server, NULL, 0);
	return NULL;
}

static void open_pair(void)
{
	pthread_t thread;

	memset(&client, 0, sizeof(client));
	client.timeout_ms = server.timeout_ms = TIMEOUT_MS;
	if (pthread_create(&thread, NULL, serve, NULL))
		fail("no thread");
	conn_resolve(&client, addr, PORT);
	conn_make_qp(&client, 4, 4, 0);
	conn_connect(&client, NULL, 0);
	pthread_join(thread, NULL);
}

static void close_pair(void)
{
	conn_close(&server);
	conn_end(&client);
}

static bool is_silent(const struct conn *c, int ms)
{
	struct pollfd p = { .fd = c->events->fd, .events = POLLIN };

	return !poll(&p, 1, ms);
}

static bool disconnects(struct conn *c)
{
	return conn_next_event(c->events, TIMEOUT_MS) == RDMA_CM_EVENT_DISCONNECTED;
}

static void fail_qp(struct conn *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE))
		fail("modify_qp: %s", strerror(errno));
}

static void post_read(struct conn *c, const struct ibv_mr *own, const struct ibv_mr *far)
{
	struct ibv_sge sge = { (uintptr_t)own->addr, LEN, own->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)far->addr, .rkey = far->rkey },
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("post_send: %s", strerror(errno));
}

/* The peer's request ends, and neither end sees more events than its face has. */
static bool qp_fails(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *own, *far;
	struct ibv_wc wc;
	bool ok;

	open_pair();
	own = conn_reg(&client, buf[0], LEN, access);
	far = conn_reg(&server, buf[1], LEN, access);
	fail_qp(&server);
	if (roce) {
		post_read(&client, own, far);
		ok = conn_poll(&client, &wc, 1, TIMEOUT_MS) == 1 &&
		     (wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_WR_FLUSH_ERR) &&
		     is_silent(&client, 1000) && is_silent(&server, 0) &&
		     !rdma_disconnect(server.id);
	} else {
		ok = true;
	}
	ok = ok && disconnects(&client) && disconnects(&server) && is_silent(&client, 0);
	close_pair();
	return ok;
}

/* The peer's user disconnects although the QP here has failed. */
static bool qp_fails_and_the_peer_disconnects(void)
{
	bool ok;

	open_pair();
	fail_qp(&server);
	rdma_disconnect(client.id);
	ok = disconnects(&server) && disconnects(&client);
	close_pair();
	return ok;
}

/*
 * iw_cm reports what the device does when it loses its QP: it closes, at both ends. InfiniBand's CM
 * knows nothing of QPs; but without one nothing else than that can be said to the peer.
 */
static bool qp_is_destroyed(void)
{
	bool ok;

	open_pair();
	rdma_destroy_qp(server.id);
	ok = (!roce || is_silent(&server, 200)) && disconnects(&server) && disconnects(&client);
	close_pair();
	return ok;
}

/* The end of an RNIC's connection was reported when the QP failed. */
static bool failed_qp_is_destroyed(void)
{
	bool ok;

	open_pair();
	fail_qp(&server);
	ok = roce || (disconnects(&server) && disconnects(&client));
	rdma_destroy_qp(server.id);
	ok = ok && is_silent(&server, 1000) && is_silent(&client, 0);
	if (roce)
		ok = ok && !rdma_disconnect(server.id) && disconnects(&server) &&
		     disconnects(&client);
	close_pair();
	return ok;
}

/* The status of REJECTED for a connect to @port. */
static int refused(const char *port)
{
	struct rdma_conn_param p = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *ev;
	int status = 0;

	memset(&client, 0, sizeof(client));
	client.timeout_ms = TIMEOUT_MS;
	conn_resolve(&client, addr, port);
	conn_make_qp(&client, 4, 4, 0);
	if (rdma_connect(client.id, &p) || rdma_get_cm_event(client.events, &ev))
		fail("rdma_connect: %s", strerror(errno));
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		status = ev->status;
	rdma_ack_cm_event(ev);
	conn_end(&client);
	return status;
}

static void *reject(void *unused)
{
	(void)unused;
	server.timeout_ms = TIMEOUT_MS;
	conn_await_request(&server);
	if (rdma_reject(server.id, NULL, 0) || rdma_destroy_id(server.id))
		fail("rdma_reject: %s", strerror(errno));
	server.id = NULL;
	return NULL;
}

static bool reasons(void)
{
	pthread_t thread;
	int by_program;

	if (pthread_create(&thread, NULL, reject, NULL))
		fail("no thread");
	by_program = refused(PORT);
	pthread_join(thread, NULL);
	return by_program == (roce ? CONSUMER : -ECONNREFUSED) &&
	       refused("7482") == (roce ? NO_SERVICE : -ECONNREFUSED);
}

int main(int argc, char **argv)
{
	conn_program = "weft-faces";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		fail("usage: weft-faces ADDR roce|iwarp");
	addr = argv[1];
	roce = !strcmp(argv[2], "roce");
	server.timeout_ms = TIMEOUT_MS;
	conn_listen(&server, addr, PORT);
	verdict_if("a-qp-fails", qp_fails());
	verdict_if("a-qp-fails-and-the-peer-disconnects", qp_fails_and_the_peer_disconnects());
	verdict_if("a-qp-is-destroyed", qp_is_destroyed());
	verdict_if("a-failed-qp-is-destroyed", failed_qp_is_destroyed());
	verdict_if("reasons-of-a-refusal", reasons());
	return verdict_end();
}
