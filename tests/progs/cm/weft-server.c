// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A server of weft-churn's clients, many at once and for ever, whatever they do:
 *   weft-server ADDR PORT
 * A client that fails costs it a line. It has one CQ, one SRQ and one region; of each connection it
 * has an id and a QP, which it destroys when the connection is over. It touches all of its memory
 * at the start: what grows later is not the program's.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "tcp.h"

#define SLOTS	64
#define MSG	16384

/* What weft-churn's clients write to. */
struct target {
	uint64_t addr;
	uint32_t rkey;
};

static struct rdma_event_channel *events;
static struct ibv_pd *pd;
static struct ibv_comp_channel *comp;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static uint8_t buf[SLOTS * MSG];

static void post_slot(uint64_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf + slot * MSG, .length = MSG,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_srq_recv(srq, &wr, &bad))
		fail("no receive can be posted");
}

static void set_up(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SLOTS, .max_sge = 1 } };
	uint64_t slot;

	pd = ibv_alloc_pd(verbs);
	comp = ibv_create_comp_channel(verbs);
	cq = comp ? ibv_create_cq(verbs, 4 * SLOTS, NULL, comp, 0) : NULL;
	srq = pd ? ibv_create_srq(pd, &attr) : NULL;
	mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!cq || !srq || !mr || ibv_req_notify_cq(cq, 0))
		fail("the device cannot be used: %s", strerror(errno));
	for (slot = 0; slot < SLOTS; slot++)
		post_slot(slot);
}

static void drop(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		fail("rdma_destroy_id: %s", strerror(errno));
}

static void take(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct target target = { .addr = (uintptr_t)buf };
	struct rdma_conn_param param = {
		.private_data = &target, .private_data_len = sizeof(target),
		.responder_resources = 1, .initiator_depth = 1,
	};

	if (!pd)
		set_up(id->verbs);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	target.rkey = mr->rkey;
	if (!rdma_create_qp(id, pd, &attr) && !rdma_accept(id, &param))
		return;
	printf("a client has gone: %s\n", strerror(errno));
	drop(id);
}

static void handle_event(void)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	int what;

	if (rdma_get_cm_event(events, &e))
		fail("rdma_get_cm_event: %s", strerror(errno));
	id = e->id;
	what = e->event;
	rdma_ack_cm_event(e);
	switch (what) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		take(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		drop(id);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		drop(id);
		break;
	default:
		break;
	}
}

static void poll_cq(void)
{
	struct ibv_wc wc[16];
	struct ibv_cq *of;
	void *context;
	int n, i;

	if (ibv_get_cq_event(comp, &of, &context) || ibv_req_notify_cq(cq, 0))
		fail("no event of the CQ");
	ibv_ack_cq_events(cq, 1);
	while ((n = ibv_poll_cq(cq, 16, wc)) > 0)
		for (i = 0; i < n; i++)
			post_slot(wc[i].wr_id);
	if (n < 0)
		fail("the CQ cannot be polled");
}

int main(int argc, char **argv)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	struct rdma_cm_id *listener;
	struct sockaddr_in own;

	conn_program = "weft-server";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3) {
		fprintf(stderr, "weft-server ADDR PORT\n");
		return 2;
	}
	memset(buf, 1, sizeof(buf));
	own = tcp_address(argv[1], atoi(argv[2]));
	events = rdma_create_event_channel();
	if (!events || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&own) || rdma_listen(listener, 64))
		fail("no listener: %s", strerror(errno));
	p[0].fd = events->fd;
	for (;;) {
		if (comp)
			p[1].fd = comp->fd;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			fail("poll: %s", strerror(errno));
		if (p[1].revents)
			poll_cq();
		if (p[0].revents)
			handle_event();
	}
}
