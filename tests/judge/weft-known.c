// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults that public threads describe, rebuilt small, and their right twins:
 *
 *     weft-known ADDR CASE wrong|right
 *
 * Each case names its thread (project#number) and does what the program there did, with code of its
 * own. QPs are connected to themselves. Nothing here knows weft.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS	20000
#define MANY		9	/* QPs of one CQ */

static struct hand_device dev;
static struct hand_end ends[MANY];
static struct hand_name names[MANY];
static struct ibv_comp_channel *channel;
static const char *own_addr;
static bool wrong;

/* Reports name a function that is not inlined by its own name. */
#define APART __attribute__((noinline))

static struct ibv_cq *new_cq(int entries)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, entries, NULL, channel, 0);

	if (!cq)
		hand_fail("no CQ: %s", strerror(errno));
	return cq;
}

/* A QP connected to itself, by @send_wr requests. */
static void begin_qp(struct hand_end *e, struct hand_name *name, struct ibv_cq *send_cq,
		     struct ibv_cq *recv_cq, uint32_t send_wr)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = send_cq, .recv_cq = recv_cq,
		.cap = { send_wr, 16, 1, 1, 64 },
	};

	e->dev = &dev;
	e->set = hand_usual;
	e->cq = recv_cq;
	e->qp = ibv_create_qp(dev.pd, &attr);
	e->mr = ibv_reg_mr(dev.pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!e->qp || !e->mr)
		hand_fail("no QP: %s", strerror(errno));
	hand_tell(e, name);
	hand_ready(e, name);
}

static void begin(void)
{
	struct ibv_cq *cq = new_cq(64);

	begin_qp(&ends[0], &names[0], cq, cq, 16);
}

static void end_qp(struct hand_end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr))
		hand_fail("a QP cannot be destroyed");
}

static void end_cq(struct ibv_cq *cq)
{
	if (ibv_destroy_cq(cq))
		hand_fail("a CQ cannot be destroyed");
}

static void end_device(void)
{
	if (channel && ibv_destroy_comp_channel(channel))
		hand_fail("the channel cannot be destroyed");
	hand_close(&dev);
}

static void end(void)
{
	end_qp(&ends[0]);
	end_cq(ends[0].cq);
	end_device();
}

static APART struct ibv_wc next_of(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!hand_poll(cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	return wc;
}

/* With opcode, at @at and of @len octets; Writes and Reads: the second half of the QP's own buffer. */
static void post_at(struct hand_end *e, const struct hand_name *name, enum ibv_wr_opcode opcode,
		    const void *at, uint32_t len, uint32_t lkey, bool is_signaled)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = len, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = is_signaled ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = { (uintptr_t)e->buf + HAND_BUF, name->rkey },
	};
	int err = ibv_post_send(e->qp, &wr, &bad);

	if (err)
		hand_fail("ibv_post_send: %s", strerror(err));
}

static void post(struct hand_end *e, const struct hand_name *name, enum ibv_wr_opcode opcode,
		 uint32_t len, bool is_signaled)
{
	post_at(e, name, opcode, e->buf, len, e->mr->lkey, is_signaled);
}

static void receive_at(struct hand_end *e, const void *at, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = len, .lkey = e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(e->qp, &wr, &bad))
		hand_fail("ibv_post_recv");
}

static void arm(struct ibv_cq *cq)
{
	if (ibv_req_notify_cq(cq, 0))
		hand_fail("ibv_req_notify_cq");
}

static APART void sleep_until_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		hand_fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void begin_channel(void)
{
	channel = ibv_create_comp_channel(dev.ctx);
	if (!channel)
		hand_fail("no channel: %s", strerror(errno));
}

/* ---- completions and events ---- */

/*
 * apache/brpc#3415: one function polls two CQs by turns. When both are empty it arms both, and polls
 * again only the one that it looked at last.
 */
static void receive_cq_not_polled_after_arming(void)
{
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_wc wc;

	begin_channel();
	send_cq = new_cq(64);
	recv_cq = new_cq(64);
	begin_qp(&ends[0], &names[0], send_cq, recv_cq, 16);
	hand_recv(&ends[0], 2);
	if (ibv_poll_cq(recv_cq, 1, &wc))
		hand_fail("a message before any was sent");
	/* It arrives here. The Read is answered after the Send before it was received. */
	post(&ends[0], &names[0], IBV_WR_SEND, 8, false);
	post(&ends[0], &names[0], IBV_WR_RDMA_READ, 8, true);
	next_of(send_cq);
	arm(recv_cq);
	arm(send_cq);
	if (ibv_poll_cq(send_cq, 1, &wc))
		hand_fail("a completion of no request");
	if (wrong)
		sleep_until_event();
	else if (ibv_poll_cq(recv_cq, 1, &wc) != 1)
		hand_fail("the message is not there");
	end_qp(&ends[0]);
	end_cq(recv_cq);
	end_cq(send_cq);
	end_device();
}

/*
 * linux-rdma/perftest#137: one CQ of several QPs. Who wakes up arms it and polls as many completions
 * as one QP may have, not until the CQ is empty.
 */
static void polls_as_many_as_one_qp_has(void)
{
	enum { DEPTH = 2, QPS = 2 };
	struct ibv_cq *cq, *send_cq;
	struct ibv_wc wc[DEPTH];
	int i, n, got = 0;

	begin_channel();
	cq = new_cq(64);
	send_cq = new_cq(64);
	for (i = 0; i < QPS; i++)
		begin_qp(&ends[i], &names[i], send_cq, cq, 16);
	arm(cq);
	for (i = 0; i < QPS * DEPTH; i++) {
		receive_at(&ends[i % QPS], ends[i % QPS].buf + HAND_BUF + 64 * i, 64);
		post(&ends[i % QPS], &names[i % QPS], IBV_WR_SEND, 8, false);
	}
	/* All arrive meanwhile. A Read is answered after the Sends before it were received. */
	for (i = 0; i < QPS; i++)
		post(&ends[i], &names[i], IBV_WR_RDMA_READ, 8, true);
	for (i = 0; i < QPS; i++)
		next_of(send_cq);
	while (got < QPS * DEPTH) {
		sleep_until_event();
		arm(cq);
		do {
			n = ibv_poll_cq(cq, DEPTH, wc);
			got += n;
		} while (n && !wrong);
	}
	for (i = 0; i < QPS; i++)
		end_qp(&ends[i]);
	end_cq(cq);
	end_cq(send_cq);
	end_device();
}

/*
 * openucx/ucx#1039: a loop takes the events of several CQs from their channel, and acknowledges all
 * of them to the last one.
 */
static void events_acknowledged_to_the_last_cq(void)
{
	struct ibv_cq *cqs[2], *cq = NULL;
	void *context;
	int i;

	begin_channel();
	for (i = 0; i < 2; i++) {
		cqs[i] = new_cq(64);
		begin_qp(&ends[i], &names[i], cqs[i], cqs[i], 16);
		arm(cqs[i]);
		post(&ends[i], &names[i], IBV_WR_RDMA_WRITE, 8, true);
		next_of(cqs[i]);
	}
	for (i = 0; i < 2; i++) {
		if (ibv_get_cq_event(channel, &cq, &context))
			hand_fail("ibv_get_cq_event");
		if (!wrong)
			ibv_ack_cq_events(cq, 1);
	}
	if (wrong)
		ibv_ack_cq_events(cq, 2);
	for (i = 0; i < 2; i++) {
		end_qp(&ends[i]);
		end_cq(cqs[i]);
	}
	end_device();
}

static enum rdma_cm_event_type next_event(struct rdma_event_channel *ids, bool acknowledges)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(ids, &event))
		hand_fail("no event: %s", strerror(errno));
	type = event->event;
	if (acknowledges)
		rdma_ack_cm_event(event);
	return type;
}

/* linux-rdma/perftest#60: an event that says what failed is reported, and not acknowledged. */
static void error_event_not_acknowledged(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 0 } };
	struct rdma_event_channel *ids = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct addrinfo *to;

	/* Port 1 has no listener. */
	if (!ids || getaddrinfo(own_addr, "1", NULL, &to) ||
	    rdma_create_id(ids, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, to->ai_addr, 2000) ||
	    next_event(ids, true) != RDMA_CM_EVENT_ADDR_RESOLVED ||
	    rdma_resolve_route(id, 2000) ||
	    next_event(ids, true) != RDMA_CM_EVENT_ROUTE_RESOLVED ||
	    rdma_create_qp(id, NULL, &attr) || rdma_connect(id, &(struct rdma_conn_param){ 0 }))
		hand_fail("no route: %s", strerror(errno));
	if (next_event(ids, !wrong) != RDMA_CM_EVENT_REJECTED)
		hand_fail("it is not rejected");
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ids);
	freeaddrinfo(to);
	end_device();
}

/* ofiwg/libfabric#5653: the opcode, undefined with an error, says which kind of request this was. */
static void opcode_looked_at_before_the_status(void)
{
	static int sends, receives;
	struct ibv_wc wc;

	begin();
	hand_recv(&ends[0], (uintptr_t)&receives);
	hand_to(&ends[0], IBV_QPS_ERR);
	wc = next_of(ends[0].cq);
	if (wrong)
		++*(wc.opcode == IBV_WC_RECV ? &receives : &sends);
	else
		++*(int *)(uintptr_t)wc.wr_id;
	if (sends || receives != 1)
		hand_fail("a receive was taken for a Send");
	end();
}

/* ---- queues ---- */

/* ROCm/TransferBench#239: the CQ of all QPs has a fixed size; it is too small for many of them. */
static void cq_of_one_size_for_all_qps(void)
{
	enum { ENTRIES = 4 };
	struct ibv_cq *cq = new_cq(wrong ? ENTRIES : MANY);
	int i;

	for (i = 0; i < MANY; i++)
		begin_qp(&ends[i], &names[i], cq, cq, 1);
	for (i = 0; i < MANY; i++)
		post(&ends[i], &names[i], IBV_WR_RDMA_WRITE, 8, true);
	for (i = 0; i < MANY; i++)
		next_of(cq);
	for (i = 0; i < MANY; i++)
		end_qp(&ends[i]);
	end_cq(cq);
	end_device();
}

/*
 * apache/brpc#3132: a window of the send queue's size counts data. Credits, which share the queue and
 * are not signaled, are not counted.
 */
static void window_that_counts_no_credits(void)
{
	enum { ROUNDS = 8, DEPTH = 8 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq = new_cq(64);
	uint32_t counted = 0, i;

	begin_qp(&ends[0], &names[0], cq, cq, DEPTH);
	if (ibv_query_qp(ends[0].qp, &attr, IBV_QP_CAP, &init))
		hand_fail("ibv_query_qp");
	for (i = 0; i < ROUNDS * init.cap.max_send_wr; i++) {
		bool is_credit = i % 2, is_last = counted + 1 == init.cap.max_send_wr;

		post(&ends[0], &names[0], IBV_WR_RDMA_WRITE, is_credit ? 0 : 8, is_last);
		if (!is_credit || !wrong)
			counted++;
		if (is_last) {
			next_of(cq);
			counted = 0;
		}
	}
	end_qp(&ends[0]);
	end_cq(cq);
	end_device();
}

/* ---- memory ---- */

/* kvcache-ai/Mooncake#1567: all notifications are sent from one buffer, up to a full queue of them. */
static void one_buffer_for_all_notifications(void)
{
	enum { NOTES = 4, SIZE = 64 };
	int i;

	begin();
	for (i = 0; i < NOTES; i++)
		receive_at(&ends[0], ends[0].buf + HAND_BUF + i * SIZE, SIZE);
	for (i = 0; i < NOTES; i++) {
		uint8_t *note = ends[0].buf + (wrong ? 0 : i * SIZE);

		memset(note, i + 1, SIZE);
		post_at(&ends[0], &names[0], IBV_WR_SEND, note, SIZE, ends[0].mr->lkey, true);
	}
	for (i = 0; i < 2 * NOTES; i++)
		next_of(ends[0].cq);
	end();
}

/* novitalabs/pegaflow#403: at a time-out the memory of a Read is given back, while it is under way. */
static void read_sink_freed_at_a_time_out(void)
{
	void *staging = calloc(1, HAND_BUF);
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, staging, HAND_BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	post_at(&ends[0], &names[0], IBV_WR_RDMA_READ, staging, 64, mr->lkey, true);
	/* No completion was polled in time. */
	if (wrong)
		free(staging);
	hand_to(&ends[0], IBV_QPS_ERR);
	next_of(ends[0].cq);
	ibv_dereg_mr(mr);
	if (!wrong)
		free(staging);
	end();
}

/* ofiwg/libfabric#11150: a Write that the target emulates by a Read, into memory that it cannot write. */
static void emulated_write_without_local_write(void)
{
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, ends[0].buf, HAND_BUF,
			wrong ? 0 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	post_at(&ends[0], &names[0], IBV_WR_RDMA_READ, ends[0].buf, 64, mr->lkey, true);
	next_of(ends[0].cq);
	ibv_dereg_mr(mr);
	end();
}

/* ofiwg/libfabric#1707: the memory of a Read has the rights that InfiniBand asks for, not iWARP. */
static void read_without_remote_write(void)
{
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, ends[0].buf, HAND_BUF,
			IBV_ACCESS_LOCAL_WRITE | (wrong ? 0 : IBV_ACCESS_REMOTE_WRITE));
	post_at(&ends[0], &names[0], IBV_WR_RDMA_READ, ends[0].buf, 64, mr->lkey, true);
	next_of(ends[0].cq);
	ibv_dereg_mr(mr);
	end();
}

/* ---- objects ---- */

/*
 * linux-rdma/perftest#77: a flag is cleared before cleaning up, so the region of the credits is not
 * deregistered, and the domain cannot be deallocated.
 */
static void region_of_credits_left(void)
{
	bool has_credits = true;
	struct ibv_mr *credits;

	begin();
	credits = ibv_reg_mr(dev.pd, ends[0].buf, 64, IBV_ACCESS_LOCAL_WRITE);
	end_qp(&ends[0]);
	end_cq(ends[0].cq);
	if (wrong)
		has_credits = false;
	if (has_credits)
		ibv_dereg_mr(credits);
	if (ibv_dealloc_pd(dev.pd))
		printf("the domain is busy\n");
	ibv_close_device(dev.ctx);
}

/* meta-pytorch/monarch#2219: the library's QP destroys its CQs, and the library's user destroys them again. */
static void cqs_of_two_owners(void)
{
	begin();
	end_qp(&ends[0]);
	end_cq(ends[0].cq);
	if (wrong)
		ibv_destroy_cq(ends[0].cq);
	end_device();
}

static pthread_barrier_t turns;

static void *post_as_worker(void *qp)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };

	pthread_barrier_wait(&turns);
	/* The endpoint is being deleted by the other thread. */
	if (wrong)
		pthread_barrier_wait(&turns);
	ibv_post_recv(qp, &wr, &bad);
	if (!wrong)
		pthread_barrier_wait(&turns);
	return NULL;
}

/* kvcache-ai/Mooncake#1903: an endpoint is deleted while a worker still has it, and posts. */
static void endpoint_deleted_under_a_worker(void)
{
	pthread_t worker;

	begin();
	if (pthread_barrier_init(&turns, NULL, 2) ||
	    pthread_create(&worker, NULL, post_as_worker, ends[0].qp))
		hand_fail("no thread");
	pthread_barrier_wait(&turns);
	if (!wrong)
		pthread_barrier_wait(&turns);
	end_qp(&ends[0]);
	if (wrong)
		pthread_barrier_wait(&turns);
	pthread_join(worker, NULL);
	end_cq(ends[0].cq);
	end_device();
}

static const struct hand_twin cases[] = {
	{ "receive-cq-not-polled-after-arming", receive_cq_not_polled_after_arming },
	{ "polls-as-many-as-one-qp-has", polls_as_many_as_one_qp_has },
	{ "events-acknowledged-to-the-last-cq", events_acknowledged_to_the_last_cq },
	{ "error-event-not-acknowledged", error_event_not_acknowledged },
	{ "opcode-looked-at-before-the-status", opcode_looked_at_before_the_status },
	{ "cq-of-one-size-for-all-qps", cq_of_one_size_for_all_qps },
	{ "window-that-counts-no-credits", window_that_counts_no_credits },
	{ "one-buffer-for-all-notifications", one_buffer_for_all_notifications },
	{ "read-sink-freed-at-a-time-out", read_sink_freed_at_a_time_out },
	{ "emulated-write-without-local-write", emulated_write_without_local_write },
	{ "read-without-remote-write", read_without_remote_write },
	{ "region-of-credits-left", region_of_credits_left },
	{ "cqs-of-two-owners", cqs_of_two_owners },
	{ "endpoint-deleted-under-a-worker", endpoint_deleted_under_a_worker },
};

int main(int argc, char **argv)
{
	const struct hand_twin *c = hand_find_twin(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), &wrong);

	own_addr = argv[1];
	hand_open(&dev, own_addr);
	c->run();
	return 0;
}
