// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory runs out in the kernel: sets up and ends a connection, both ends in one process over the
 * device that has ADDR, with one allocation after another failing (/proc/thread-self/fail-nth, so
 * each path is tried), until none is left to fail.
 *   weft-faults [-n INJECTIONS] ADDR
 *   weft-faults -l LIVES ADDR           the caller has set up what fails
 * Each run is a process of its own, so that the kernel frees its objects. Any step may fail; none
 * may hang. Prints the number of faults at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

#define DEPTH	16
#define LEN	8192
#define WAIT	1000	/* ms; for an event that a fault may have eaten */
#define ALL_TIME 60000	/* ms; for one that nothing can have eaten */

struct end {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t buf[LEN];
};

static struct rdma_event_channel *events;
static struct rdma_cm_id *listener;
static struct end client, server;
static const char *addr;
static int fail_nth = -1;
static bool no_faults;

/* ---- one allocation fails ---- */

static void arm(int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fail_nth, text, len, 0) != len)
		fail("fail-nth: %s", strerror(errno));
}

/* Was it not reached? */
static bool still_armed(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) < 0)
		fail("fail-nth: %s", strerror(errno));
	return atoi(text) != 0;
}

/* How long the next event may take, on a busy host: before the fault nothing is missing. */
static int patience(void)
{
	return no_faults || (fail_nth >= 0 && still_armed()) ? ALL_TIME : WAIT;
}

/* ---- a life: each step says whether it worked ---- */

static bool event_is(enum rdma_cm_event_type wanted, struct rdma_cm_id **who)
{
	struct pollfd p = { .fd = events->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	bool is;

	if (poll(&p, 1, patience()) <= 0 || rdma_get_cm_event(events, &ev))
		return false;
	is = ev->event == wanted;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		server.id = ev->id;
	if (who)
		*who = ev->id;
	rdma_ack_cm_event(ev);
	return is;
}

static bool reach_server(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct rdma_addrinfo *ai = NULL;
	bool ok;

	events = rdma_create_event_channel();
	if (!events || rdma_getaddrinfo(addr, "7473", &hints, &ai))
		return false;
	ok = !rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) &&
	     !rdma_bind_addr(listener, ai->ai_src_addr) && !rdma_listen(listener, 4) &&
	     !rdma_create_id(events, &client.id, NULL, RDMA_PS_TCP) &&
	     !rdma_resolve_addr(client.id, NULL, ai->ai_src_addr, patience()) &&
	     event_is(RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	     !rdma_resolve_route(client.id, patience()) &&
	     event_is(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	rdma_freeaddrinfo(ai);
	return ok;
}

static bool make_srq(struct end *e)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

	e->srq = ibv_create_srq(e->pd, &attr);
	return e->srq;
}

static bool make_objects(struct end *e, bool srq)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 128 },
		.qp_type = IBV_QPT_RC,
	};

	e->pd = ibv_alloc_pd(e->id->verbs);
	e->comp = ibv_create_comp_channel(e->id->verbs);
	if (!e->pd || !e->comp || (srq && !make_srq(e)))
		return false;
	e->cq = ibv_create_cq(e->id->verbs, 2 * DEPTH, NULL, e->comp, 0);
	if (!e->cq || ibv_resize_cq(e->cq, 4 * DEPTH) || ibv_req_notify_cq(e->cq, 0))
		return false;
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	attr.srq = e->srq;
	if (rdma_create_qp(e->id, e->pd, &attr))
		return false;
	e->mr = ibv_reg_mr(e->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						IBV_ACCESS_REMOTE_READ);
	return e->mr &&
	       !ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e->buf, LEN / 2, 0) &&
	       !ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e->buf, LEN, 0);
}

static bool join(void)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct rdma_cm_id *who;

	return !rdma_connect(client.id, &param) &&
	       event_is(RDMA_CM_EVENT_CONNECT_REQUEST, NULL) && make_objects(&server, true) &&
	       !rdma_accept(server.id, &param) &&
	       event_is(RDMA_CM_EVENT_ESTABLISHED, &who) &&
	       event_is(RDMA_CM_EVENT_ESTABLISHED, &who);
}

static bool completes(struct end *e)
{
	struct pollfd p = { .fd = e->comp->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *ctx;
	int got;

	while (!(got = ibv_poll_cq(e->cq, 1, &wc))) {
		if (poll(&p, 1, patience()) <= 0 || ibv_get_cq_event(e->comp, &cq, &ctx))
			return false;
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			return false;
	}
	return got == 1 && wc.status == IBV_WC_SUCCESS;
}

static bool post(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { .addr = (uintptr_t)client.buf, .length = LEN,
			       .lkey = client.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)server.buf, .rkey = server.mr->rkey },
	}, *bad;

	return !ibv_post_send(client.id->qp, &wr, &bad);
}

static bool move(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)server.buf, .length = LEN,
			       .lkey = server.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_srq_recv(server.srq, &wr, &bad) && post(IBV_WR_RDMA_WRITE) &&
	       post(IBV_WR_RDMA_READ) && post(IBV_WR_SEND) && completes(&client) &&
	       completes(&client) && completes(&client) && completes(&server);
}

/* What cannot be freed is left to the end of the process. */
static void drop(struct end *e)
{
	if (e->id && e->id->qp) {
		rdma_disconnect(e->id);
		rdma_destroy_qp(e->id);
	}
	if (e->mr)
		ibv_dereg_mr(e->mr);
	if (e->srq)
		ibv_destroy_srq(e->srq);
	if (e->cq)
		ibv_destroy_cq(e->cq);
	if (e->comp)
		ibv_destroy_comp_channel(e->comp);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->id)
		rdma_destroy_id(e->id);
}

static bool live(void)
{
	bool ok = reach_server() && make_objects(&client, false) && join() && move();

	drop(&client);
	drop(&server);
	if (listener)
		rdma_destroy_id(listener);
	if (events)
		rdma_destroy_event_channel(events);
	return ok;
}

/* ---- many lives ---- */

enum { WORKED, FAILED, NOT_REACHED };

/* A life of its own, in which the @nth allocation fails; 0: none. */
static int child(int nth)
{
	bool ok;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (!pid) {
		alarm(100);
		if (nth) {
			/* What fails shall be a call's memory, not this program's own. */
			if (mlockall(MCL_CURRENT | MCL_FUTURE))
				fail("mlockall: %s", strerror(errno));
			fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
			if (fail_nth < 0)
				fail("fail-nth: %s", strerror(errno));
			arm(nth);
		}
		ok = live();
		if (nth && still_armed()) {
			arm(0);
			_exit(ok ? NOT_REACHED : 3);
		}
		_exit(ok ? WORKED : FAILED);
	}
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status)) {
		/* What librdmacm makes of a failed allocation is not our matter, but a hang is. */
		if (WTERMSIG(status) == SIGALRM)
			fail("life %d hangs", nth);
		printf("life %d ended by signal %d\n", nth, WTERMSIG(status));
		return FAILED;
	}
	if (WEXITSTATUS(status) > NOT_REACHED)
		fail("life %d: %s", nth, nth ? "fails without a fault" : "ends oddly");
	return WEXITSTATUS(status);
}

static void fail_in_turn(int wanted)
{
	int nth = 1, got, faults = 0, failed = 0, rounds = 0;

	no_faults = true;
	if (child(0) != WORKED)
		fail("it does not even work without faults");
	no_faults = false;
	for (; faults < wanted; nth++) {
		got = child(nth);
		if (got == NOT_REACHED) {
			printf("round %d: %d allocations of a life\n", ++rounds, nth - 1);
			if (nth == 1)
				fail("nothing can be made to fail");
			nth = 0;
			continue;
		}
		faults++;
		failed += got == FAILED;
		if (faults % 100 == 0)
			printf("%d faults, %d failed lives\n", faults, failed);
	}
	printf("%d faults, %d of them seen by the program, %d rounds over all allocations\n", faults,
	       failed, rounds);
	/* Memory is back: so is everything. */
	no_faults = true;
	if (child(0) != WORKED)
		fail("it does not work any more");
}

static void only_live(int lives)
{
	int i, worked = 0;

	for (i = 0; i < lives; i++)
		worked += child(0) == WORKED;
	printf("%d lives, %d worked\n", lives, worked);
}

int main(int argc, char **argv)
{
	int opt, wanted = 100, lives = 0;

	conn_program = "weft-faults";
	while ((opt = getopt(argc, argv, "n:l:")) != -1) {
		switch (opt) {
		case 'n': wanted = atoi(optarg); break;
		case 'l': lives = atoi(optarg); break;
		default: return 2;
		}
	}
	if (argc - optind != 1)
		return 2;
	addr = argv[optind];
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Looking for devices is the library's part; it keeps what it found. */
	if (!ibv_get_device_list(NULL))
		fail("no devices");
	if (lives)
		only_live(lives);
	else
		fail_in_turn(wanted);
	return 0;
}
