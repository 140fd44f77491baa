// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-calls ADDR [N [LOG]]: makes each call of verbs and rdma_cm that may fail on demand, N regions
 * (1) among them, over the device that has ADDR. Prints what fails, and tries it again twice; a
 * program whose call has failed has to be served as usual afterwards. Ends with "done".
 * With LOG: a registration is late; once that file is there, fork() must not wait for it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define TIMES	3
#define WAIT_MS	20000
#define LEN	4096

static char buf[LEN];
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct rdma_event_channel *events;
static struct sockaddr_in addr = { .sin_family = AF_INET };

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* @err: of a call that returns it; else errno has it. The third time is the last. */
static void failed(const char *call, int err, int *left)
{
	printf("%s %s\n", call, strerrorname_np(err > 0 ? err : errno));
	if (!--*left)
		exit(1);
}

#define NUMBER(call, expr) do {							\
	int left_ = TIMES, rv_;							\
	while ((rv_ = (expr)) != 0)						\
		failed(call, rv_, &left_);					\
} while (0)

#define POINTER(call, p, expr) do {						\
	int left_ = TIMES;							\
	while (!((p) = (expr)))							\
		failed(call, 0, &left_);					\
} while (0)

/* ---- verbs ---- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	if (!list || !list[0])
		die("no device");
	POINTER("open_device", ctx, ibv_open_device(list[0]));
	ibv_free_device_list(list);
	NUMBER("query_device", ibv_query_device(ctx, &device));
	NUMBER("query_port", ibv_query_port(ctx, 1, &port));
}

static void make_regions(int n)
{
	struct ibv_mr *mr;
	int i;

	for (i = 0; i < n; i++) {
		POINTER("reg_mr", mr, ibv_reg_mr(pd, buf, LEN, IBV_ACCESS_LOCAL_WRITE));
		if (ibv_dereg_mr(mr))
			die("dereg_mr");
	}
	POINTER("reg_mr", mr, ibv_reg_mr(pd, buf, LEN, IBV_ACCESS_LOCAL_WRITE));
	NUMBER("rereg_mr", ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	if (ibv_dereg_mr(mr))
		die("dereg_mr");
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = { 4, 16, 1, 1, 0 },
	};
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp;

	POINTER("create_qp", qp, ibv_create_qp(pd, &a));
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	NUMBER("modify_qp", ibv_modify_qp(qp, &init, mask));
	return qp;
}

/* Receives that never complete. */
static int post_recvs(struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct ibv_recv_wr second = { .wr_id = 2 }, first = { .wr_id = 1, .next = &second }, *bad = NULL;
	int err = qp ? ibv_post_recv(qp, &first, &bad) : ibv_post_srq_recv(srq, &first, &bad);

	if (err)
		printf("bad_wr %d\n", (int)bad->wr_id);
	return err;
}

/* Those of the call before. */
static void report_srq_events(void)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	while (poll(&p, 1, 0) == 1 && !ibv_get_async_event(ctx, &e)) {
		printf("srq %s\n", ibv_event_type_str(e.event_type));
		ibv_ack_async_event(&e);
	}
}

static void use_verbs(int regions)
{
	struct ibv_srq_init_attr sa = { .attr = { 16, 1, 0 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 224, 0, 0, 250 } };
	struct ibv_comp_channel *channel;
	struct ibv_qp *rc, *ud;
	struct ibv_srq *srq;
	struct ibv_mw *mw;

	POINTER("alloc_pd", pd, ibv_alloc_pd(ctx));
	POINTER("create_comp_channel", channel, ibv_create_comp_channel(ctx));
	POINTER("create_cq", cq, ibv_create_cq(ctx, 10, NULL, channel, 0));
	NUMBER("resize_cq", ibv_resize_cq(cq, 100));
	make_regions(regions);
	POINTER("alloc_mw", mw, ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	POINTER("create_srq", srq, ibv_create_srq(pd, &sa));
	NUMBER("post_srq_recv", post_recvs(NULL, srq));
	NUMBER("modify_srq", ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	NUMBER("post_srq_recv", post_recvs(NULL, srq));
	report_srq_events();
	rc = make_qp(IBV_QPT_RC);
	NUMBER("post_recv", post_recvs(rc, NULL));
	ud = make_qp(IBV_QPT_UD);
	NUMBER("attach_mcast", ibv_attach_mcast(ud, &group, 0));
	if (ibv_detach_mcast(ud, &group, 0) || ibv_destroy_qp(ud) || ibv_destroy_qp(rc) ||
	    ibv_destroy_srq(srq) || ibv_dealloc_mw(mw) || ibv_destroy_cq(cq) ||
	    ibv_destroy_comp_channel(channel))
		die("what was made cannot be destroyed");
}

/* ---- rdma_cm ---- */

static struct rdma_cm_id *make_id(enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	NUMBER("create_id", rdma_create_id(events, &id, NULL, space));
	return id;
}

/* The next event, which must be @want; else it is reported as @call's. */
static bool event_is(const char *call, enum rdma_cm_event_type want)
{
	struct pollfd p = { .fd = events->fd, .events = POLLIN };
	struct rdma_cm_event *e;
	bool right;

	if (poll(&p, 1, WAIT_MS) != 1) {
		printf("%s: no event\n", call);
		exit(1);
	}
	if (rdma_get_cm_event(events, &e))
		die("get_cm_event");
	right = e->event == want;
	if (!right)
		printf("%s %s %d\n", call, rdma_event_str(e->event), e->status);
	rdma_ack_cm_event(e);
	return right;
}

static void await(const char *call, enum rdma_cm_event_type want)
{
	if (!event_is(call, want))
		exit(1);
}

#define UNTIL(call, want, expr) do {						\
	int tries_ = TIMES;							\
	do {									\
		if (!tries_--)							\
			exit(1);						\
		NUMBER(call, expr);						\
	} while (!event_is(call, want));					\
} while (0)

static struct rdma_cm_id *resolve(enum rdma_port_space space)
{
	struct rdma_cm_id *id = make_id(space);

	UNTIL("resolve_addr", RDMA_CM_EVENT_ADDR_RESOLVED,
	      rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000));
	return id;
}

/* rdma_create_qp() writes the CQs that it makes to *@a, also if it fails and destroys them. */
static int try_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	return rdma_create_qp(id, NULL, &a);
}

static void give_qp(struct rdma_cm_id *id)
{
	NUMBER("create_qp", try_qp(id));
}

static void drop(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		die("destroy_id");
}

/* A completion within the time; false, and its status is printed, if it is one in error. */
static bool completes(const char *what, struct ibv_cq *on)
{
	int left, n = 0;
	struct ibv_wc wc;

	for (left = WAIT_MS; left; left--) {
		n = ibv_poll_cq(on, 1, &wc);
		if (n)
			break;
		usleep(1000);
	}
	if (!n)
		printf("%s has no completion\n", what);
	else if (n < 0)
		printf("%s cannot be polled\n", what);
	else if (wc.status)
		printf("%s %s\n", what, ibv_wc_status_str(wc.status));
	return n > 0 && !wc.status;
}

static const char *owner_of(const struct ibv_async_event *e, const struct rdma_cm_id *client,
			    const struct rdma_cm_id *server)
{
	if (e->event_type == IBV_EVENT_CQ_ERR)
		return "cq";
	if (e->event_type == IBV_EVENT_DEVICE_FATAL)
		return "device";
	return e->element.qp == client->qp ? "client" :
	       e->element.qp == server->qp ? "server" : "another";
}

/* Prints the event of either QP, or another. The device's is the last. */
static void report_event(const struct rdma_cm_id *client, const struct rdma_cm_id *server)
{
	struct pollfd p = { .fd = client->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	if (poll(&p, 1, WAIT_MS) != 1 || ibv_get_async_event(client->verbs, &e))
		die("get_async_event");
	printf("%s %s\n", owner_of(&e, client, server), ibv_event_type_str(e.event_type));
	if (e.event_type == IBV_EVENT_DEVICE_FATAL) {
		NUMBER("query_device", ibv_query_device(client->verbs, &(struct ibv_device_attr){ 0 }));
		exit(0);
	}
	ibv_ack_async_event(&e);
}

/* An empty message. False: it did not arrive, and both ends said why. */
static bool send_one(struct rdma_cm_id *client, struct rdma_cm_id *server)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad;
	bool sent, received;

	NUMBER("post_recv", ibv_post_recv(server->qp, &recv, &bad));
	NUMBER("post_send", ibv_post_send(client->qp, &send, &bad_send));
	sent = completes("send", client->send_cq);
	received = completes("recv", server->recv_cq);
	if (sent && received)
		return true;
	report_event(client, server);
	report_event(client, server);
	return false;
}

/* The QPs have one PD, librdmacm's own. False: one failed, and both ends reported why. */
static bool write_and_read(struct rdma_cm_id *client, struct rdma_cm_id *server)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 8 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma.remote_addr = (uintptr_t)buf + 8,
	}, *bad;
	struct ibv_mr *mr;
	bool written, read;

	POINTER("reg_mr", mr, ibv_reg_mr(server->pd, buf, LEN, access));
	sge.lkey = mr->lkey;
	wr.wr.rdma.rkey = mr->rkey;
	NUMBER("post_send", ibv_post_send(client->qp, &wr, &bad));
	written = completes("write", client->send_cq);
	wr.opcode = IBV_WR_RDMA_READ;
	NUMBER("post_send", ibv_post_send(client->qp, &wr, &bad));
	read = completes("read", client->send_cq);
	if (!written || !read) {
		report_event(client, server);
		report_event(client, server);
	}
	if (ibv_dereg_mr(mr))
		die("dereg_mr");
	return written && read;
}

/* False: the connection was refused or failed, and the client is destroyed. */
static bool connect_once(void)
{
	struct rdma_cm_id *client = resolve(RDMA_PS_TCP), *server;
	struct rdma_conn_param p = {
		.retry_count = 7, .initiator_depth = 1, .responder_resources = 1,
	};
	struct rdma_cm_event *e;

	UNTIL("resolve_route", RDMA_CM_EVENT_ROUTE_RESOLVED, rdma_resolve_route(client, 2000));
	give_qp(client);
	NUMBER("connect", rdma_connect(client, &p));
	if (rdma_get_cm_event(events, &e))
		die("get_cm_event");
	server = e->id;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		printf("connect %s %d\n", rdma_event_str(e->event), e->status);
		rdma_ack_cm_event(e);
		drop(client);
		return false;
	}
	rdma_ack_cm_event(e);
	give_qp(server);
	if (rdma_accept(server, &p)) {
		/* Its QP has failed with it. The peer learns of that once the id is destroyed. */
		printf("accept %s\n", strerrorname_np(errno));
		drop(server);
		event_is("connect", RDMA_CM_EVENT_ESTABLISHED);
		drop(client);
		return false;
	}
	await("connect", RDMA_CM_EVENT_ESTABLISHED);
	await("accept", RDMA_CM_EVENT_ESTABLISHED);
	if (!send_one(client, server) || !write_and_read(client, server)) {
		drop(client);
		drop(server);
		return false;
	}
	rdma_disconnect(client);
	await("disconnect", RDMA_CM_EVENT_DISCONNECTED);
	await("disconnect", RDMA_CM_EVENT_DISCONNECTED);
	drop(client);
	drop(server);
	return true;
}

/* A group cannot answer: refused, also if the connection is to fail. */
static void connect_to_group(struct sockaddr_in *group)
{
	struct rdma_cm_id *ud = make_id(RDMA_PS_UDP);
	struct sockaddr_in own = addr;
	struct rdma_conn_param p = { 0 };

	own.sin_port = 0;
	UNTIL("resolve_addr", RDMA_CM_EVENT_ADDR_RESOLVED,
	      rdma_resolve_addr(ud, (struct sockaddr *)&own, (struct sockaddr *)group, 2000));
	UNTIL("resolve_route", RDMA_CM_EVENT_ROUTE_RESOLVED, rdma_resolve_route(ud, 2000));
	if (!rdma_connect(ud, &p) || errno != EINVAL)
		printf("a group was asked for a connection\n");
	if (rdma_destroy_id(ud))
		die("destroy_id");
}

static void use_cm(void)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_cm_id *listener, *ud;
	int left = TIMES;

	events = rdma_create_event_channel();
	if (!events)
		die("create_event_channel");
	listener = make_id(RDMA_PS_TCP);
	NUMBER("bind_addr", rdma_bind_addr(listener, (struct sockaddr *)&addr));
	NUMBER("listen", rdma_listen(listener, 1));
	addr.sin_port = rdma_get_src_port(listener);
	while (!connect_once())
		if (!--left)
			exit(1);
	inet_pton(AF_INET, "224.0.0.251", &group.sin_addr);
	ud = resolve(RDMA_PS_UDP);
	NUMBER("join_multicast", rdma_join_multicast(ud, (struct sockaddr *)&group, NULL));
	await("join_multicast", RDMA_CM_EVENT_MULTICAST_JOIN);
	if (rdma_destroy_id(ud) || rdma_destroy_id(listener))
		die("destroy_id");
	connect_to_group(&group);
	rdma_destroy_event_channel(events);
}

/* ---- a late call, and fork() ---- */

static volatile bool is_registered;
static size_t page_size;

/* Pages of their own: after ibv_fork_init() a child does not have those that are registered. */
static void *register_late(void *arg)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, arg, page_size, 0);

	if (!mr || ibv_dereg_mr(mr))
		die("reg_mr");
	is_registered = true;
	return NULL;
}

static void fork_meanwhile(const char *log)
{
	pthread_t thread;
	pid_t child;
	void *pages;
	int status;

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	ibv_fork_init();
	pd = ibv_alloc_pd(ctx);
	pages = aligned_alloc(page_size, page_size);
	if (!pd || !pages || pthread_create(&thread, NULL, register_late, pages))
		die("alloc_pd");
	while (access(log, F_OK))
		usleep(1000);
	child = fork();
	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("fork");
	printf("%s\n", is_registered ? "fork() has waited" : "fork() did not wait");
	pthread_join(thread, NULL);
	free(pages);
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 4 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: weft-calls ADDR [N [LOG]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device();
	if (argc == 4) {
		fork_meanwhile(argv[3]);
	} else {
		use_verbs(argc > 2 ? atoi(argv[2]) : 1);
		use_cm();
	}
	printf("done\n");
	return 0;
}
