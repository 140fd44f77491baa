// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The same as weft-orders.c, of connections by rdma_cm:
 *
 *     weft-cm-orders ADDR CASE wrong|right
 *
 * One thread has both ends. Nothing here knows weft.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS	20000
#define ROUNDS		12
#define LEN		64
#define SLOW_US		20000

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buf[LEN];
};

static struct end client, server;
static struct rdma_cm_id *listener;
static struct sockaddr_in address;
static bool wrong;
static int nth;				/* round */

/* ---- events ---- */

static bool is_there(const struct end *e, int ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Waits for the next event, which must be @type. Returns its id. */
static struct rdma_cm_id *await_event(struct end *e, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (!is_there(e, PATIENCE_MS) || rdma_get_cm_event(e->channel, &event))
		hand_fail("round %d: no event", nth);
	if (event->event != type)
		hand_fail("round %d: %s, status %d", nth, rdma_event_str(event->event),
			  event->status);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

/* ---- ends ---- */

static void listen_here(const char *addr)
{
	address.sin_family = AF_INET;
	if (inet_pton(AF_INET, addr, &address.sin_addr) != 1)
		hand_fail("%s is no address", addr);
	client.channel = rdma_create_event_channel();
	server.channel = rdma_create_event_channel();
	if (!client.channel || !server.channel ||
	    rdma_create_id(server.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&address) || rdma_listen(listener, 4))
		hand_fail("no listener: %s", strerror(errno));
	address.sin_port = rdma_get_src_port(listener);
}

static void resolve(int timeout_ms)
{
	if (rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&address, timeout_ms))
		hand_fail("rdma_resolve_addr: %s", strerror(errno));
	await_event(&client, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 }, .sq_sig_all = 1,
	};

	if (rdma_create_qp(e->id, NULL, &attr))
		hand_fail("rdma_create_qp: %s", strerror(errno));
	e->mr = ibv_reg_mr(e->id->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		hand_fail("ibv_reg_mr: %s", strerror(errno));
}

static struct ibv_sge buffer_of(struct end *e)
{
	return (struct ibv_sge){ (uintptr_t)e->buf, LEN, e->mr->lkey };
}

static void post_receive(void)
{
	struct ibv_sge sge = buffer_of(&server);
	struct ibv_recv_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(server.id->qp, &wr, &bad))
		hand_fail("ibv_post_recv: %s", strerror(errno));
}

static void post_send(void)
{
	struct ibv_sge sge = buffer_of(&client);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
	};

	if (ibv_post_send(client.id->qp, &wr, &bad))
		hand_fail("ibv_post_send: %s", strerror(errno));
}

static void take(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!hand_poll(cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	if (wc.status != IBV_WC_SUCCESS)
		hand_fail("round %d: %s", nth, ibv_wc_status_str(wc.status));
}

/* The listener has the request; the client's event is still to come. */
static void connect_to_listener(struct rdma_conn_param *param)
{
	resolve(2000);
	if (rdma_resolve_route(client.id, 2000))
		hand_fail("rdma_resolve_route: %s", strerror(errno));
	await_event(&client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(&client);
	if (rdma_connect(client.id, param))
		hand_fail("rdma_connect: %s", strerror(errno));
	server.id = await_event(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(&server);
}

static void accept_request(struct rdma_conn_param *param)
{
	if (rdma_accept(server.id, param))
		hand_fail("rdma_accept: %s", strerror(errno));
}

static void drop(struct end *e)
{
	rdma_destroy_qp(e->id);
	if (ibv_dereg_mr(e->mr) || rdma_destroy_id(e->id))
		hand_fail("an id cannot be destroyed: %s", strerror(errno));
}

static void close_connection(void)
{
	rdma_disconnect(client.id);
	await_event(&server, RDMA_CM_EVENT_DISCONNECTED);
	drop(&client);
	drop(&server);
}

/* ---- orders ---- */

/* The peer may send once it has ESTABLISHED, and no Send is tried again. */
static void receive_after_accept(void)
{
	struct rdma_conn_param param = { .rnr_retry_count = 0 };

	connect_to_listener(&param);
	if (!wrong)
		post_receive();
	accept_request(&param);
	await_event(&server, RDMA_CM_EVENT_ESTABLISHED);
	await_event(&client, RDMA_CM_EVENT_ESTABLISHED);
	post_send();
	/* A server that has more to do first. */
	if (wrong)
		usleep(SLOW_US);
	if (wrong)
		post_receive();
	take(client.id->send_cq);
	take(server.id->recv_cq);
	close_connection();
}

/* On a network that is slow, an address may take longer. */
static void short_time_out(void)
{
	resolve(wrong ? 5 : 2000);
	if (rdma_destroy_id(client.id))
		hand_fail("an id cannot be destroyed: %s", strerror(errno));
}

/* Messages and events come by different ways. */
static void established_before_message(void)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };

	connect_to_listener(&param);
	post_receive();
	accept_request(&param);
	await_event(&client, RDMA_CM_EVENT_ESTABLISHED);
	post_send();
	take(server.id->recv_cq);
	if (wrong && !is_there(&server, 0))
		hand_fail("round %d: the message came before ESTABLISHED", nth);
	await_event(&server, RDMA_CM_EVENT_ESTABLISHED);
	take(client.id->send_cq);
	close_connection();
}

static const struct hand_twin cases[] = {
	{ "receive-after-accept", receive_after_accept },
	{ "short-time-out", short_time_out },
	{ "established-before-message", established_before_message },
};

int main(int argc, char **argv)
{
	const struct hand_twin *c = hand_find_twin(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), &wrong);

	listen_here(argv[1]);
	for (nth = 1; nth <= ROUNDS; nth++)
		c->run();
	return 0;
}
