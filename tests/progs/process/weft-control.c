// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program under weft-run --control that breaks what it has itself, by weft-control.h: each case
 * asks this process or a child, and sees by verbs alone what has become of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "pair.h"
#include "weft-control.h"

#define PORT		"7199"
#define MANY		1000		/* QPs: more than a page of a list */
#define QUIET_MS	300		/* in which nothing is to happen */
#define DELAY_MS	20
#define UNDER_WAY_MAX	(16u << 20)	/* docs/control.md, as the next one */
#define ALL_UNDER_WAY_MAX (64u << 20)
#define MORE_PORTS	7210
#define RATE_BPS	200000000ull
#define RATE_NS		1500000000ull

static struct pair p;
static const char *host, *self;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- requests ---- */

static char last_line[256];

static void keep_line(const char *line, void *arg)
{
	int *lines = arg;

	snprintf(last_line, sizeof(last_line), "%s", line);
	if (lines)
		++*lines;
}

static int ask(const char *request)
{
	int rv = weft_control(getpid(), request, keep_line, NULL);

	if (rv)
		printf("# %s: %d %s\n", request, rv, rv > 0 ? last_line : strerror(-rv));
	return rv;
}

static const char *device(void)
{
	return ibv_get_device_name(p.client.id->verbs->device);
}

static bool about_device(const char *verb, const char *value)
{
	char request[128];

	snprintf(request, sizeof(request), "%s %s%s%s", verb, device(), *value ? " " : "", value);
	return !ask(request);
}

static bool about_qp(const char *verb, const struct conn *c, const char *value)
{
	char request[128];

	snprintf(request, sizeof(request), "%s %u%s%s", verb, c->id->qp->qp_num, *value ? " " : "",
		 value);
	return !ask(request);
}

/* ---- what is seen ---- */

static bool post_write_of(struct pair *q, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)q->from, .length = len, .lkey = q->from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)q->to, .rkey = q->to_mr->rkey },
	}, *bad;

	return !ibv_post_send(q->client.id->qp, &wr, &bad);
}

static bool post_write(uint32_t len)
{
	return post_write_of(&p, len);
}

/* The status of the client's next completion, or -1: none in @ms. */
static int completed(int ms)
{
	struct ibv_wc wc;

	return conn_poll(&p.client, &wc, 1, ms) == 1 ? (int)wc.status : -1;
}

static enum ibv_qp_state state_of(const struct conn *c)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(c->id->qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_RESET : attr.qp_state;
}

/* The next event of the client's context is of this type. */
static bool has_event(enum ibv_event_type type)
{
	struct pollfd fd = { .fd = p.client.id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	if (poll(&fd, 1, PAIR_TIMEOUT_MS) != 1 || ibv_get_async_event(p.client.id->verbs, &e))
		return false;
	ibv_ack_async_event(&e);
	if (e.event_type != type)
		printf("# %s\n", ibv_event_type_str(e.event_type));
	return e.event_type == type;
}

static bool port_is(enum ibv_port_state state)
{
	struct ibv_port_attr attr;

	return !ibv_query_port(p.client.id->verbs, 1, &attr) && attr.state == state;
}

/* ---- cases: a list ---- */

struct seen {
	uint32_t qpns[MANY];
	int times[MANY];
};

static void see_qp(const char *line, void *arg)
{
	struct seen *s = arg;
	unsigned int qpn;
	int i;

	for (i = 0; sscanf(line, "qp %u ", &qpn) == 1 && i < MANY; i++)
		s->times[i] += s->qpns[i] == qpn;
}

static struct ibv_qp *qps[MANY];

/* In INIT, beside those that are connected. */
static bool make_many(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p.client.cq, .recv_cq = p.client.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int i;

	for (i = 0; i < MANY; i++) {
		qps[i] = ibv_create_qp(p.client.pd, &init);
		if (!qps[i] || ibv_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
								    IBV_QP_ACCESS_FLAGS))
			return false;
	}
	return true;
}

static void destroy_many(void)
{
	int i;

	for (i = 0; i < MANY && qps[i]; i++) {
		ibv_destroy_qp(qps[i]);
		qps[i] = NULL;
	}
}

static bool list_is_whole(void)
{
	static struct seen s;
	bool ok = make_many();
	int i;

	for (i = 0; i < MANY && ok; i++)
		s.qpns[i] = qps[i]->qp_num;
	ok = ok && !weft_control(getpid(), "list", see_qp, &s);
	for (i = 0; i < MANY && ok; i++)
		ok = s.times[i] == 1;
	destroy_many();
	return ok;
}

static bool refuses(void)
{
	static const char *const wrong[] = {
		"error 16777215", "error", "error x", "error 1x", "port nosuch down", "port",
		"list 1 2", "rate 1 2 3", "rate 2 12", "delay 2 11s", "fatal 2", "freeze nosuch",
		"", " ", "nosuch", "list\nrules", "faults", "faults\nnosuch -> ENOMEM",
	};
	unsigned int i;
	bool ok = true;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (weft_control(getpid(), wrong[i], keep_line, NULL) != 1) {
			printf("# \"%s\" is not refused\n", wrong[i]);
			ok = false;
		}
	return ok && !strncmp(last_line, "line 1: ", 8) && pair_carries_data(&p);
}

/* ---- cases: what breaks ---- */

static bool error_ends_both(void)
{
	return about_qp("error", &p.client, "") && has_event(IBV_EVENT_QP_FATAL) &&
	       state_of(&p.client) == IBV_QPS_ERR && post_write(1) &&
	       completed(PAIR_TIMEOUT_MS) == IBV_WC_WR_FLUSH_ERR &&
	       conn_next_event(p.server.events, PAIR_TIMEOUT_MS) == RDMA_CM_EVENT_DISCONNECTED;
}

static bool disconnect_ends_both(void)
{
	return about_qp("disconnect", &p.client, "") &&
	       conn_next_event(p.server.events, PAIR_TIMEOUT_MS) == RDMA_CM_EVENT_DISCONNECTED &&
	       conn_next_event(p.client.events, PAIR_TIMEOUT_MS) == RDMA_CM_EVENT_DISCONNECTED &&
	       state_of(&p.client) == IBV_QPS_ERR && state_of(&p.server) == IBV_QPS_ERR;
}

static bool fails_with_eio(struct ibv_context *ctx)
{
	struct ibv_device_attr attr;

	errno = 0;
	return !ibv_alloc_pd(ctx) && errno == EIO && ibv_query_device(ctx, &attr) == EIO;
}

static void *post_at_the_event(void *status)
{
	*(int *)status = has_event(IBV_EVENT_DEVICE_FATAL) && post_write(1) ? completed(PAIR_TIMEOUT_MS) : -1;
	return NULL;
}

/* It takes a while until so many QPs are: the thread that gets the event is faster. */
static bool event_finds_qps_in_error(void)
{
	pthread_t thread;
	int status = -1;
	bool ok = make_many() && !pthread_create(&thread, NULL, post_at_the_event, &status);

	if (ok) {
		ok = about_device("fatal", "");
		pthread_join(thread, NULL);
	}
	destroy_many();
	printf("# status %d\n", status);
	return ok && status == IBV_WC_WR_FLUSH_ERR;
}

/* The device can be opened again. The end of each case destroys what was made. */
static bool fatal_fails_all(void)
{
	struct ibv_context *again;
	struct ibv_pd *pd;
	bool ok = about_device("fatal", "") && has_event(IBV_EVENT_DEVICE_FATAL) &&
		  state_of(&p.client) == IBV_QPS_ERR && state_of(&p.server) == IBV_QPS_ERR &&
		  post_write(1) && completed(PAIR_TIMEOUT_MS) == IBV_WC_WR_FLUSH_ERR &&
		  fails_with_eio(p.client.id->verbs);

	again = ibv_open_device(p.client.id->verbs->device);
	pd = again ? ibv_alloc_pd(again) : NULL;
	return ok && pd && !ibv_dealloc_pd(pd) && !ibv_close_device(again);
}

static bool port_flaps(void)
{
	bool ok = port_is(IBV_PORT_ACTIVE) && about_device("port", "down") &&
		  has_event(IBV_EVENT_PORT_ERR) && port_is(IBV_PORT_DOWN) && post_write(PAIR_BUF) &&
		  completed(QUIET_MS) < 0;

	return about_device("port", "up") && ok && has_event(IBV_EVENT_PORT_ACTIVE) &&
	       port_is(IBV_PORT_ACTIVE) && completed(PAIR_TIMEOUT_MS) == IBV_WC_SUCCESS &&
	       pair_carries_data(&p);
}

/* The same request again is no event. */
static bool port_changes_once(void)
{
	return about_device("port", "up") && about_device("port", "down") &&
	       about_device("port", "down") && about_device("port", "up") &&
	       has_event(IBV_EVENT_PORT_ERR) && has_event(IBV_EVENT_PORT_ACTIVE) &&
	       pair_carries_data(&p);
}

static bool lid_and_gids_change(void)
{
	struct ibv_port_attr attr;

	return about_device("lid", "7") && has_event(IBV_EVENT_LID_CHANGE) &&
	       !ibv_query_port(p.client.id->verbs, 1, &attr) && attr.lid == 7 &&
	       about_device("lid", "0") && has_event(IBV_EVENT_LID_CHANGE) &&
	       about_device("gid", "") && has_event(IBV_EVENT_GID_CHANGE);
}

/* In sysfs: monitors and NCCL read there. */
static bool sysfs_has_gid(const union ibv_gid *gid)
{
	char path[128], text[64] = "", want[64] = "";
	unsigned int i;
	FILE *f;

	for (i = 0; i < 16; i += 2)
		sprintf(want + strlen(want), "%02x%02x%s", gid->raw[i], gid->raw[i + 1],
			i < 14 ? ":" : "\n");
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/0", device());
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	return !strcmp(text, want);
}

static bool gid_is(const union ibv_gid *want)
{
	union ibv_gid gid;

	return !ibv_query_gid(p.client.id->verbs, 1, 0, &gid) && !memcmp(&gid, want, sizeof(gid)) &&
	       sysfs_has_gid(want);
}

/* A QP by hand cannot be connected from a GID that is gone. */
static int connect_from_first_gid(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p.client.cq, .recv_cq = p.client.cq, .qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(p.client.pd, &init);
	int rv = qp ? ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS) : -1;

	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = 0, .hop_limit = 1 } },
	};
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.ah_attr.grh.dgid);
	if (!rv)
		rv = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
	if (qp)
		ibv_destroy_qp(qp);
	return rv;
}

static bool gids_change_where_they_are_read(void)
{
	static const union ibv_gid none;
	char back[INET6_ADDRSTRLEN + 2] = "0 ";
	union ibv_gid was, other;

	inet_pton(AF_INET6, "fe80::1:2", &other);
	if (ibv_query_gid(p.client.id->verbs, 1, 0, &was) || !gid_is(&was) ||
	    !inet_ntop(AF_INET6, &was, back + 2, INET6_ADDRSTRLEN))
		return false;
	return about_device("gid", "0 fe80::1:2") && has_event(IBV_EVENT_GID_CHANGE) && gid_is(&other) &&
	       about_device("gid", "0 none") && has_event(IBV_EVENT_GID_CHANGE) && gid_is(&none) &&
	       connect_from_first_gid() == EINVAL && pair_carries_data(&p) &&
	       about_device("gid", back) && has_event(IBV_EVENT_GID_CHANGE) && gid_is(&was) &&
	       !connect_from_first_gid() && !about_device("gid", "255 none");
}

static bool connect_over_port_down(void)
{
	struct conn c = { .timeout_ms = PAIR_TIMEOUT_MS };
	struct rdma_conn_param param = { .initiator_depth = 1 };
	int event = -1;

	conn_resolve(&c, host, PORT);
	conn_make_qp(&c, 1, 1, 0);
	if (about_device("port", "down") && !rdma_connect(c.id, &param))
		event = conn_next_event(c.events, PAIR_TIMEOUT_MS);
	about_device("port", "up");
	conn_end(&c);
	printf("# %s\n", rdma_event_str(event));
	return event == RDMA_CM_EVENT_UNREACHABLE;
}

/* ---- cases: frozen ---- */

static bool freeze_and_thaw(void)
{
	bool ok = about_qp("freeze", &p.client, "") && post_write(PAIR_BUF) &&
		  completed(QUIET_MS) < 0;

	return ok && about_qp("thaw", &p.client, "") &&
	       completed(PAIR_TIMEOUT_MS) == IBV_WC_SUCCESS && pair_carries_data(&p);
}

/* Nor does it take what its peer sends. */
static bool frozen_takes_nothing(void)
{
	struct ibv_wc wc;
	bool ok;

	memset(p.to, 0, PAIR_BUF);
	memset(p.from, 1, PAIR_BUF);
	ok = about_qp("freeze", &p.server, "") && post_write(8) &&
	     !conn_poll(&p.server, &wc, 1, QUIET_MS) && !*(volatile uint8_t *)p.to;
	return about_qp("thaw", &p.server, "") && ok &&
	       completed(PAIR_TIMEOUT_MS) == IBV_WC_SUCCESS && pair_carries_data(&p);
}

static bool frozen_fails_when_told(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return about_qp("freeze", &p.client, "") && post_write(PAIR_BUF) &&
	       !ibv_modify_qp(p.client.id->qp, &attr, IBV_QP_STATE) &&
	       completed(PAIR_TIMEOUT_MS) == IBV_WC_WR_FLUSH_ERR;
}

static bool frozen_is_destroyed(void)
{
	uint64_t from = now_ns();

	if (!about_qp("freeze", &p.client, "") || !post_write(PAIR_BUF))
		return false;
	rdma_destroy_qp(p.client.id);
	return now_ns() - from < 2000000000ull;
}

/* Exit status 0 of a child that does @what within 5 s. */
static bool child(int (*what)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		alarm(5);
		exit(what());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (status)
		printf("# the child ended with %#x\n", (unsigned int)status);
	return !status;
}

static int just_exit(void)
{
	return 0;
}

static bool frozen_process_forks(void)
{
	return about_qp("freeze", &p.client, "") && post_write(PAIR_BUF) && child(just_exit) &&
	       about_qp("thaw", &p.client, "") && completed(PAIR_TIMEOUT_MS) == IBV_WC_SUCCESS;
}

/* A program of its own, whose QP is frozen when it exits. */
static int exit_frozen(void)
{
	execl(self, self, host, "frozen-at-exit", (char *)NULL);
	return 127;
}

static bool frozen_process_exits(void)
{
	conn_close(&p.client);
	conn_close(&p.server);
	rdma_destroy_id(p.server.listener);
	p.server.listener = NULL;
	return child(exit_frozen);
}

/* ---- cases: datagrams ---- */

#define QKEY	0x1234
#define GRH	40

static bool to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return !ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static struct ibv_ah *own_address(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	if (ibv_query_gid(p.client.id->verbs, 1, 0, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(p.client.pd, &attr);
}

static bool post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p.from, .length = GRH + 1, .lkey = p.from_mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(qp, &wr, &bad);
}

/* A datagram to itself: completions of both, or of the Send alone. */
static int completions_of_one(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p.from, .length = 1, .lkey = p.from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = QKEY },
	}, *bad;
	int n = 0;

	if (ibv_post_send(qp, &wr, &bad))
		return -1;
	while (n < 2 && completed(QUIET_MS) == IBV_WC_SUCCESS)
		n++;
	return n;
}

static bool loses(struct ibv_qp *qp, struct ibv_ah *ah)
{
	char freeze[32], thaw[32];

	snprintf(freeze, sizeof(freeze), "freeze %u", qp->qp_num);
	snprintf(thaw, sizeof(thaw), "thaw %u", qp->qp_num);
	return completions_of_one(qp, ah) == 2 && post_receive(qp) && !ask(freeze) &&
	       completions_of_one(qp, ah) == 1 && about_device("port", "down") && !ask(thaw) &&
	       completions_of_one(qp, ah) == 1 && about_device("port", "up") &&
	       completions_of_one(qp, ah) == 2;
}

static bool datagrams_are_lost(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p.client.cq, .recv_cq = p.client.cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(p.client.pd, &init);
	struct ibv_ah *ah = own_address();
	bool ok = qp && ah && to_rts(qp) && post_receive(qp) && loses(qp, ah);

	if (ah)
		ibv_destroy_ah(ah);
	if (qp)
		ibv_destroy_qp(qp);
	return ok;
}

/* ---- cases: slow ---- */

static void drain(unsigned int n)
{
	while (n--)
		if (completed(PAIR_TIMEOUT_MS) != IBV_WC_SUCCESS)
			fail("no completion");
}

/* Bits per second of the client's Writes. */
static double measure_rate(void)
{
	uint64_t from = now_ns(), now = from, octets = 0;
	unsigned int i;

	for (i = 0; i < PAIR_DEPTH; i++)
		post_write(PAIR_BUF);
	for (; now - from < RATE_NS; now = now_ns()) {
		drain(1);
		octets += PAIR_BUF;
		post_write(PAIR_BUF);
	}
	drain(PAIR_DEPTH);
	return (double)octets * 8e9 / (double)(now - from);
}

static bool is_near(double bps)
{
	printf("# %.1f Mb/s\n", bps / 1e6);
	return bps > 0.95 * RATE_BPS && bps < 1.05 * RATE_BPS;
}

static bool qp_has_a_rate(void)
{
	return about_qp("rate", &p.client, "200M") && is_near(measure_rate()) &&
	       about_qp("rate", &p.client, "off") && pair_carries_data(&p);
}

static bool device_has_a_rate(void)
{
	return about_device("rate", "200M") && is_near(measure_rate()) &&
	       about_device("rate", "off") && pair_carries_data(&p);
}

/* The request of a Read is late, or the answer. */
static double measure_round_trip(void)
{
	uint64_t from = now_ns(), best = ~0ull;
	int i;

	for (i = 0; i < 5; i++, from = now_ns()) {
		if (!pair_carries_data(&p))
			fail("no data");
		if (now_ns() - from < best)
			best = now_ns() - from;
	}
	return (double)best / 1e6;
}

/* A Write, and a Read whose request follows it: the answer comes without a delay. */
static bool is_late(double ms, double times)
{
	printf("# %.2f ms\n", ms);
	/* The host may be busy. */
	return ms > times * DELAY_MS && ms < times * DELAY_MS * 1.5;
}

static bool qp_has_a_delay(void)
{
	return about_qp("delay", &p.client, "20ms") && is_late(measure_round_trip(), 1) &&
	       about_qp("delay", &p.client, "off") && pair_carries_data(&p);
}

static bool device_has_a_delay(void)
{
	return about_device("delay", "20ms") && is_late(measure_round_trip(), 2) &&
	       about_device("delay", "off") && pair_carries_data(&p);
}

/* A Write completes once the device has taken it. Returns how many octets it takes of them. */
static uint32_t taken_of(struct pair *q)
{
	uint32_t taken = 0;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < PAIR_DEPTH; i++)
		post_write_of(q, PAIR_BUF);
	while (taken < 2 * UNDER_WAY_MAX && conn_poll(&q->client, &wc, 1, QUIET_MS) == 1 &&
	       wc.status == IBV_WC_SUCCESS) {
		taken += PAIR_BUF;
		post_write_of(q, PAIR_BUF);
	}
	printf("# %u octets\n", taken);
	return taken;
}

static bool under_way_is_bounded(void)
{
	uint32_t taken;

	if (!about_qp("delay", &p.client, "10s"))
		return false;
	taken = taken_of(&p);
	return taken <= UNDER_WAY_MAX && taken > UNDER_WAY_MAX / 2;
}

/* Five QPs would have 80 MiB. */
static bool all_under_way_is_bounded(void)
{
	static struct pair pairs[5];
	uint64_t all = 0;
	char port[8];
	int i;

	for (i = 0; i < 5; i++) {
		pairs[i].client.timeout_ms = pairs[i].server.timeout_ms = PAIR_TIMEOUT_MS;
		snprintf(port, sizeof(port), "%d", MORE_PORTS + i);
		pair_open(&pairs[i], host, port);
	}
	if (!about_device("delay", "10s"))
		return false;
	for (i = 0; i < 5; i++)
		all += taken_of(&pairs[i]);
	printf("# %llu octets of all\n", (unsigned long long)all);
	return all <= ALL_UNDER_WAY_MAX && all > ALL_UNDER_WAY_MAX - UNDER_WAY_MAX / 2;
}

/* ---- cases: faults ---- */

static bool may_register(void)
{
	struct ibv_mr *mr = ibv_reg_mr(p.client.pd, p.from, 16, 0);

	if (mr)
		ibv_dereg_mr(mr);
	return mr;
}

static bool faults_are_replaced(void)
{
	return may_register() && !ask("faults\nreg_mr -> ENOMEM\n") && !may_register() &&
	       !ask("faults\npost_send -> EINVAL\n") && may_register() && !post_write(1) &&
	       !ask("faults\n") && pair_carries_data(&p);
}

/* ---- cases: processes ---- */

static int qps_of(pid_t pid)
{
	int lines = 0, devices;

	if (weft_control(pid, "list", keep_line, &lines))
		return -1;
	ibv_free_device_list(ibv_get_device_list(&devices));
	return lines - devices;
}

/* It is asked by its own number, and its parent by its. */
static int serve_in_child(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p.client.cq, .recv_cq = p.client.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int before = weft_control(getpid(), "list", NULL, NULL);

	/* What it has is its parent's until it uses it. */
	if (before != -ENOENT || qps_of(getppid()) != 2)
		return 1;
	if (!ibv_create_qp(p.client.pd, &init))
		return 2;
	return qps_of(getpid()) == 3 && qps_of(getppid()) == 2 ? 0 : 3;
}

static bool child_has_its_own_socket(void)
{
	return child(serve_in_child) && qps_of(getpid()) == 2;
}

static int open_in_child(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list ? ibv_open_device(*list) : NULL;

	return ctx && !weft_control(getpid(), "list", NULL, NULL) && qps_of(getppid()) == 2 ? 0 : 1;
}

static bool child_with_a_device_serves(void)
{
	return child(open_in_child) && qps_of(getpid()) == 2;
}

/* What it has inherited and not used is its parent's: it is not listed, and nothing breaks it. */
static int break_in_child(void)
{
	char error[32], request[128];
	int lines = 0, devices;

	if (open_in_child())
		return 1;
	ibv_free_device_list(ibv_get_device_list(&devices));
	if (weft_control(getpid(), "list", keep_line, &lines) || lines != devices)
		return 2;
	snprintf(error, sizeof(error), "error %u", p.client.id->qp->qp_num);
	if (weft_control(getpid(), error, NULL, NULL) != 1)
		return 3;
	snprintf(request, sizeof(request), "port %s down", device());
	if (weft_control(getpid(), request, NULL, NULL))
		return 4;
	snprintf(request, sizeof(request), "fatal %s", device());
	if (weft_control(getpid(), request, NULL, NULL))
		return 5;
	usleep(QUIET_MS * 1000);
	return 0;
}

static bool child_breaks_nothing_of_its_parent(void)
{
	return child(break_in_child) && pair_carries_data(&p);
}

static int exec_in_child(void)
{
	if (open_in_child())
		return 1;
	execl(self, self, host, "after-exec", (char *)NULL);
	return 127;
}

static bool program_after_exec_serves(void)
{
	return child(exec_in_child) && qps_of(getpid()) == 2;
}

#define ENDS	20

/* A program in @role, which has opened the device; or -1. */
static pid_t start_program(const char *role, int fds[2])
{
	pid_t pid;
	char none;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(self, self, host, role, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	return pid > 0 && read(fds[0], &none, 1) == 1 ? pid : -1;
}

/* What a program answers that ends of the request, by exit() or without it. */
static int ask_one_that_ends(const char *role)
{
	char request[128];
	int fds[2], rv;
	pid_t pid = start_program(role, fds);

	if (pid < 0)
		return -ECHILD;
	snprintf(request, sizeof(request), "fatal %s", device());
	rv = weft_control(pid, request, keep_line, NULL);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return rv;
}

static bool those_that_end_answer(void)
{
	uint64_t begun;
	int i, rv;

	for (i = 0; i < ENDS; i++) {
		rv = ask_one_that_ends("exits-at-an-event");
		if (rv)
			printf("# exit %d: %d\n", i, rv);
		if (rv)
			return false;
		begun = now_ns();
		rv = ask_one_that_ends("ends-at-an-event");
		printf("# _exit: %d, %lu ms\n", rv, (unsigned long)((now_ns() - begun) / 1000000));
		/* No answer, but soon: 5 s is how long others are waited for. */
		if (rv && rv != -ECONNRESET)
			return false;
	}
	return true;
}

/* ---- programs that cases start ---- */

static int end_at_an_event(bool by_exit)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_context *ctx = all && *all ? ibv_open_device(*all) : NULL;
	struct ibv_async_event e;

	if (!ctx || write(STDOUT_FILENO, "", 1) != 1 || ibv_get_async_event(ctx, &e))
		return 1;
	if (!by_exit)
		_exit(0);
	exit(0);
}

static int frozen_at_exit(void)
{
	p.client.timeout_ms = p.server.timeout_ms = PAIR_TIMEOUT_MS;
	pair_open(&p, host, PORT);
	return about_qp("freeze", &p.client, "") && post_write(PAIR_BUF) ? 0 : 1;
}

/* The socket of the program before is dead, and gives way to a new one. */
static int after_exec(void)
{
	int rv = weft_control(getpid(), "list", NULL, NULL);

	return (rv == -ECONNREFUSED || rv == -ENOENT) && !open_in_child() ? 0 : 1;
}

/* ---- all ---- */

static void open_pair(const void *setting)
{
	(void)setting;
	memset(&p, 0, sizeof(p));
	p.client.timeout_ms = p.server.timeout_ms = PAIR_TIMEOUT_MS;
	pair_open(&p, host, PORT);
}

static void close_pair(void)
{
	if (p.client.id)
		conn_end(&p.client);
	if (p.server.id)
		conn_close(&p.server);
	if (p.server.listener)
		rdma_destroy_id(p.server.listener);
	if (p.server.events)
		rdma_destroy_event_channel(p.server.events);
}

/* ---- cases: requests of all kinds ---- */

#define REQUESTS	3000
#define PICK(list, n)	((list)[(n) % (sizeof(list) / sizeof((list)[0]))])

static const char *const verbs[] = {
	"list", "port", "lid", "gid", "rate", "delay", "loss", "freeze", "thaw", "disconnect",
	"faults\nreg_mr nth 1000000 -> ENOMEM", "faults\nnonsense", "nonsense",
	"error", "fatal",		/* these two end the others' objects */
};
#define BEFORE_ENDS	(sizeof(verbs) / sizeof(verbs[0]) - 2)

static unsigned int draw(void)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005 + 1442695040888963407;
	return (unsigned int)(x >> 33);
}

/* Right words in the right place, most times; some are then changed. */
static void compose(char *request, size_t size, const char *verb)
{
	char qpn[2][16];
	const char *const objects[] = {
		qpn[0], device(), qpn[1], device(), "0", "16777215", "nosuch", "",
	};
	static const char *const values[] = {
		"", "up", "down", "", "1G", "off", "1ms", "0.1%", "7", "0 none", "0 ::ffff:127.0.0.1",
		"255 none", "99999999999999999999",
	};
	size_t len;

	snprintf(qpn[0], sizeof(qpn[0]), "%u", p.client.id->qp->qp_num);
	snprintf(qpn[1], sizeof(qpn[1]), "%u", p.server.id->qp->qp_num);
	snprintf(request, size, "%s %s %s", verb, PICK(objects, draw()), PICK(values, draw()));
	len = strlen(request);
	/* A blank at the end would be an argument. */
	while (len && request[len - 1] == ' ')
		request[--len] = 0;
	if (!strchr(verb, '\n') && len && !(draw() % 8))
		request[draw() % len] = (char)(1 + draw() % 126);
}

/* All are answered, and each command is done at least once. */
static bool requests_of_all_kinds(void)
{
	unsigned int done[sizeof(verbs) / sizeof(verbs[0])] = { 0 }, refused = 0, i, v;
	char request[256];
	int rv;

	for (i = 0; i < REQUESTS; i++) {
		v = draw() % (i < REQUESTS / 2 ? BEFORE_ENDS : BEFORE_ENDS + 2);
		compose(request, sizeof(request), verbs[v]);
		rv = weft_control(getpid(), request, keep_line, NULL);
		if (rv < 0)
			printf("# \"%s\": %s\n", request, strerror(-rv));
		if (rv < 0)
			return false;
		done[v] += !rv;
		refused += rv;
	}
	for (v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++) {
		printf("# %.*s: %u\n", (int)strcspn(verbs[v], "\n"), verbs[v], done[v]);
		if (!done[v] != !!strstr(verbs[v], "nonsense"))
			return false;
	}
	printf("# refused: %u\n", refused);
	return refused && about_device("port", "up") && !ask("faults\n") && !ask("list");
}

static const struct a_case list[] = {
	{ "a-list-has-each-qp-once", list_is_whole, NULL },
	{ "what-is-not-there-is-refused", refuses, NULL },
	{ "error-ends-both-ends", error_ends_both, NULL },
	{ "disconnect-ends-both-ends", disconnect_ends_both, NULL },
	{ "fatal-fails-each-qp-of-the-device", fatal_fails_all, NULL },
	{ "traffic-goes-on-after-a-port-flap", port_flaps, NULL },
	{ "a-port-that-is-down-goes-down-no-further", port_changes_once, NULL },
	{ "events-of-lids-and-gids", lid_and_gids_change, NULL },
	{ "gids-change-where-they-are-read", gids_change_where_they_are_read, NULL },
	{ "connect-over-a-port-that-is-down-is-unreachable", connect_over_port_down, NULL },
	{ "a-frozen-qp-sends-nothing-until-it-is-thawed", freeze_and_thaw, NULL },
	{ "a-frozen-qp-takes-nothing-until-it-is-thawed", frozen_takes_nothing, NULL },
	{ "a-frozen-qp-is-flushed-by-modify-qp", frozen_fails_when_told, NULL },
	{ "a-frozen-qp-is-destroyed-at-once", frozen_is_destroyed, NULL },
	{ "a-process-with-a-frozen-qp-forks", frozen_process_forks, NULL },
	{ "a-process-with-a-frozen-qp-exits", frozen_process_exits, NULL },
	{ "datagrams-are-lost-while-frozen-or-down", datagrams_are_lost, NULL },
	{ "a-qps-rate-is-within-5-percent", qp_has_a_rate, NULL },
	{ "a-devices-rate-is-within-5-percent", device_has_a_rate, NULL },
	{ "the-event-of-fatal-finds-qps-in-error", event_finds_qps_in_error, NULL },
	{ "a-qps-delay-is-that-of-its-sends", qp_has_a_delay, NULL },
	{ "a-devices-delay-is-that-of-both-ends", device_has_a_delay, NULL },
	{ "what-is-under-way-is-bounded", under_way_is_bounded, NULL },
	{ "what-is-under-way-of-all-qps-is-bounded", all_under_way_is_bounded, NULL },
	{ "fault-rules-are-replaced", faults_are_replaced, NULL },
	{ "requests-of-all-kinds-are-answered", requests_of_all_kinds, NULL },
	{ "a-child-has-its-own-socket", child_has_its_own_socket, NULL },
	{ "a-child-with-a-device-of-its-own-serves", child_with_a_device_serves, NULL },
	{ "a-child-breaks-nothing-of-its-parent", child_breaks_nothing_of_its_parent, NULL },
	{ "a-program-after-exec-serves", program_after_exec_serves, NULL },
	{ "programs-that-end-of-a-request-answer", those_that_end_answer, NULL },
};

int main(int argc, char **argv)
{
	static const struct cases all = CASES(open_pair, close_pair, list);

	host = cases_begin(argc, argv, "weft-control");
	self = argv[0];
	if (argc == 3 && !strcmp(argv[2], "frozen-at-exit"))
		return frozen_at_exit();
	if (argc == 3 && strstr(argv[2], "-at-an-event"))
		return end_at_an_event(argv[2][1] == 'x');
	if (argc == 3 && !strcmp(argv[2], "after-exec"))
		return after_exec();
	cases_run(&all, "");
	return cases_end();
}
