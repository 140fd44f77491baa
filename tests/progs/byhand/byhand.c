// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "byhand.h"
#include "verdict.h"

#define TIMEOUT_MS 60000

const char *hand_program = "byhand";

const struct hand_setting hand_usual = {
	.type = IBV_QPT_RC,
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
	.rd_atomic = 4,
	.dest_rd_atomic = 4,
};

void hand_fail(const char *fmt, ...)
{
	va_list args;

	printf("%s: FAIL ", hand_program);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

long hand_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- devices ---- */

/* The index of the last entry, of RoCE v2; -1: @ctx does not have it. */
static int find_gid(struct ibv_context *ctx, const union ibv_gid *gid)
{
	struct ibv_port_attr port;
	union ibv_gid entry;
	int i, found = -1;

	if (ibv_query_port(ctx, 1, &port))
		return -1;
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(ctx, 1, i, &entry) && !memcmp(&entry, gid, sizeof(entry)))
			found = i;
	return found;
}

void hand_open(struct hand_device *dev, const char *addr)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;

	memset(dev, 0, sizeof(*dev));
	memset(dev->gid.raw + 10, 0xff, 2);
	if (!list || inet_pton(AF_INET, addr, dev->gid.raw + 12) != 1)
		hand_fail("no devices, or %s is no address", addr);
	for (d = list; *d && !dev->ctx; d++) {
		dev->ctx = ibv_open_device(*d);
		dev->gid_index = dev->ctx ? find_gid(dev->ctx, &dev->gid) : -1;
		if (dev->ctx && dev->gid_index < 0) {
			ibv_close_device(dev->ctx);
			dev->ctx = NULL;
		}
	}
	ibv_free_device_list(list);
	dev->pd = dev->ctx ? ibv_alloc_pd(dev->ctx) : NULL;
	if (!dev->pd)
		hand_fail("no device has a GID of %s", addr);
}

void hand_close(struct hand_device *dev)
{
	if (ibv_dealloc_pd(dev->pd) || ibv_close_device(dev->ctx))
		hand_fail("the device is still used");
}

/* ---- QPs ---- */

void hand_make(struct hand_end *e, struct hand_device *dev, const struct hand_setting *set,
	       struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = set->type,
		.cap = { HAND_DEPTH, HAND_DEPTH, 1, 1, set->max_inline },
		.sq_sig_all = 1,
	};

	memset(e, 0, sizeof(*e));
	e->dev = dev;
	e->set = *set;
	e->own_cq = !cq;
	e->cq = cq ? cq : ibv_create_cq(dev->ctx, 4 * HAND_DEPTH, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = e->cq;
	e->qp = e->cq ? ibv_create_qp(dev->pd, &attr) : NULL;
	e->mr = ibv_reg_mr(dev->pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE | hand_usual.access);
	if (!e->qp || !e->mr)
		hand_fail("no QP: %s", strerror(errno));
	e->psn = (e->qp->qp_num * 2654435761u + getpid()) & 0xffffff;
}

void hand_unmake(struct hand_end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr) || (e->own_cq && ibv_destroy_cq(e->cq)))
		hand_fail("a QP cannot be destroyed: %s", strerror(errno));
}

void hand_tell(const struct hand_end *e, struct hand_name *name)
{
	*name = (struct hand_name){
		.gid = e->dev->gid,
		.qpn = e->qp->qp_num,
		.psn = e->psn,
		.addr = (uintptr_t)e->buf + HAND_BUF,
		.rkey = e->mr->rkey,
	};
}

int hand_to_init(struct hand_end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = e->set.access,
	};

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

int hand_to_rtr(struct hand_end *e, const struct hand_name *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = e->set.dest_rd_atomic,
		.min_rnr_timer = e->set.min_rnr_timer,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = {
			.dgid = peer->gid, .sgid_index = e->dev->gid_index, .hop_limit = 1,
		} },
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (e->set.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(e->qp, &a, mask);
}

int hand_to_rts(struct hand_end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->psn,
		.timeout = e->set.timeout,
		.retry_cnt = e->set.retry_cnt,
		.rnr_retry = e->set.rnr_retry,
		.max_rd_atomic = e->set.rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->set.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(e->qp, &a, mask);
}

int hand_to(struct hand_end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

void hand_ready(struct hand_end *e, const struct hand_name *peer)
{
	int rv = hand_to_init(e);

	if (!rv)
		rv = hand_to_rtr(e, peer);
	if (!rv)
		rv = hand_to_rts(e);
	if (rv)
		hand_fail("modify_qp: %s", strerror(rv));
}

enum ibv_qp_state hand_state(const struct hand_end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init))
		hand_fail("no query_qp");
	return a.qp_state;
}

/* ---- work ---- */

void hand_recv(struct hand_end *e, uint64_t id)
{
	struct ibv_sge s = { (uintptr_t)e->buf + HAND_BUF, HAND_BUF, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &s, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		hand_fail("no receive can be posted");
}

static void post(struct hand_end *e, struct ibv_send_wr *wr, uint32_t len)
{
	struct ibv_sge s = { (uintptr_t)e->buf, len, e->mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &s;
	wr->num_sge = 1;
	if (ibv_post_send(e->qp, wr, &bad))
		hand_fail("no work request can be posted");
}

void hand_send(struct hand_end *e, uint64_t id, uint32_t len)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND };

	post(e, &wr, len);
}

void hand_rdma(struct hand_end *e, uint64_t id, enum ibv_wr_opcode op, const struct hand_name *at,
	       uint32_t len)
{
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = op, .imm_data = htonl(0xfeed),
		.wr.rdma = { .remote_addr = at->addr, .rkey = at->rkey },
	};

	post(e, &wr, len);
}

bool hand_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	long end = hand_now_ms() + ms;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (n < 0)
			hand_fail("poll_cq failed");
		if (!n)
			usleep(200);
	} while (!n && hand_now_ms() < end);
	return n;
}

bool hand_took(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!hand_poll(cq, &wc, TIMEOUT_MS)) {
		printf("# no completion of %lu\n", (unsigned long)id);
		return false;
	}
	if (wc.wr_id == id && wc.status == status)
		return true;
	printf("# %lu came with %s, not %lu with %s\n", (unsigned long)wc.wr_id,
	       ibv_wc_status_str(wc.status), (unsigned long)id, ibv_wc_status_str(status));
	return false;
}

int hand_run_cases(const char *name, int argc, char **argv, struct hand_device *dev,
		   const struct hand_case *cases, int n)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	hand_program = name;
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s ADDR [CASE]\n", name);
		return 2;
	}
	hand_open(dev, argv[1]);
	verdict_only(argv[2]);
	for (i = 0; i < n; i++)
		if (verdict_wants(cases[i].name))
			verdict_if(cases[i].name, cases[i].run());
	hand_close(dev);
	return verdict_end();
}

const struct hand_twin *hand_find_twin(int argc, char **argv, const struct hand_twin *cases, int n, bool *wrong)
{
	int i;

	hand_program = argv[0];
	if (argc != 4)
		hand_fail("usage: ADDR CASE wrong|right");
	*wrong = !strcmp(argv[3], "wrong");
	for (i = 0; i < n; i++)
		if (!strcmp(cases[i].name, argv[2]))
			return &cases[i];
	hand_fail("no such case");
}

bool hand_reports_drained(const struct hand_device *d, const struct ibv_qp *qp)
{
	struct pollfd p = { .fd = d->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	bool right;

	if (poll(&p, 1, 10000) != 1 || ibv_get_async_event(d->ctx, &ev))
		return false;
	right = ev.event_type == IBV_EVENT_SQ_DRAINED && ev.element.qp == qp;
	ibv_ack_async_event(&ev);
	return right;
}
