// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Are requests reported in the order in which the peer called connect? perftest, for one, numbers
 * its connections in that order on both sides. HOST is an address of this machine that an RDMA
 * device has; both sides are this process.
 *
 * A BACKLOG below their number is less than what arrives at once. The rest must wait: none is
 * refused or reset, the order stays, and each has the depths that the peer asked for, in revision 2
 * of MPA. Revision 1 does not carry the depths of Reads.
 *
 * It stays on one CPU: each CPU has its own queue, and packets of a process that moves to another
 * CPU may overtake each other. The driver's workers may run on any.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"

#define CONNECTIONS	48
#define ROUNDS		20
#define PATIENCE_MS	60000
#define IRD		3
#define ORD		5

static struct rdma_cm_id *ids[CONNECTIONS];
static struct rdma_event_channel *calls;

static struct rdma_cm_event *event(struct rdma_event_channel *ch, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(ch, &ev))
		fail("no event");
	if (ev->event != want)
		fail("%s in place of %s", rdma_event_str(ev->event), rdma_event_str(want));
	return ev;
}

static void expect(struct rdma_event_channel *ch, enum rdma_cm_event_type want)
{
	rdma_ack_cm_event(event(ch, want));
}

/* All that comes before the connect: that is to be the only thing left to do. */
static void prepare(struct rdma_cm_id **id, struct sockaddr *to)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (rdma_create_id(calls, id, NULL, RDMA_PS_TCP))
		fail("no id");
	if (rdma_resolve_addr(*id, NULL, to, PATIENCE_MS))
		fail("rdma_resolve_addr");
	expect(calls, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(*id, PATIENCE_MS))
		fail("rdma_resolve_route");
	expect(calls, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (rdma_create_qp(*id, NULL, &attr))
		fail("no QP");
}

static void stay_here(void)
{
	int cpu = sched_getcpu();
	cpu_set_t here;

	if (cpu < 0)
		fail("no CPU");
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		fail("no affinity");
}

static void connect_all(void)
{
	uint8_t i;

	for (i = 0; i < CONNECTIONS; i++) {
		struct rdma_conn_param param = {
			.private_data = &i, .private_data_len = 1,
			.responder_resources = IRD, .initiator_depth = ORD,
		};

		if (rdma_connect(ids[i], &param))
			fail("rdma_connect");
	}
}

/* Refuses them, and returns how many came out of turn, or not as they were asked for. */
static int requests(struct rdma_event_channel *ch)
{
	int i, wrong = 0;

	for (i = 0; i < CONNECTIONS; i++) {
		struct rdma_cm_event *ev = event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *id = ev->id;

		if (ev->param.conn.private_data_len < 1)
			fail("a request without its number");
		wrong += *(const uint8_t *)ev->param.conn.private_data != i ||
			 ev->param.conn.initiator_depth != IRD ||
			 ev->param.conn.responder_resources != ORD;
		rdma_ack_cm_event(ev);
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	}
	return wrong;
}

static int round_of(struct rdma_event_channel *ch, struct sockaddr *to)
{
	int i, wrong;

	for (i = 0; i < CONNECTIONS; i++)
		prepare(&ids[i], to);
	connect_all();
	wrong = requests(ch);
	for (i = 0; i < CONNECTIONS; i++)
		expect(calls, RDMA_CM_EVENT_REJECTED);
	for (i = 0; i < CONNECTIONS; i++) {
		rdma_destroy_qp(ids[i]);
		rdma_destroy_id(ids[i]);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addr;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener;
	int i, wrong = 0, backlog = CONNECTIONS, rounds = ROUNDS;

	conn_program = "connect-order";
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "connect-order HOST PORT [BACKLOG]\n");
		return 2;
	}
	if (argc == 4) {
		backlog = atoi(argv[3]);
		rounds = 4;
	}
	if (getaddrinfo(argv[1], argv[2], &hints, &addr))
		fail("%s: no such address", argv[1]);
	stay_here();
	ch = rdma_create_event_channel();
	calls = rdma_create_event_channel();
	if (!ch || !calls || rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, addr->ai_addr) || rdma_listen(listener, backlog))
		fail("no listener");
	for (i = 0; i < rounds; i++)
		wrong += round_of(ch, addr->ai_addr);
	rdma_destroy_id(listener);
	printf("1..1\n%sok 1 - requests-come-in-the-order-of-connects: %d of %d out of turn\n",
	       wrong ? "not " : "", wrong, rounds * CONNECTIONS);
	freeaddrinfo(addr);
	return 0;
}
