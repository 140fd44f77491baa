// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What does it cost to enter the driver? Times the doorbell, an ioctl method (WEFT_METHOD_QP_KICK),
 * and the alternative, the write() command that posts sends, here without any. Both act on a QP
 * that is not connected and do next to nothing. A null system call is timed beside them.
 *
 *   doorbell-cost [CALLS]        ns a call, the best of ten rounds
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <rdma/weft-abi.h>

#define ROUNDS 10

static struct ibv_qp *qp;

static void die(const char *what)
{
	fprintf(stderr, "doorbell-cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void call_ioctl(void)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_QP,
			.method_id = WEFT_METHOD_QP_KICK,
			.num_attrs = 1,
			.driver_id = WEFT_DRIVER_ID,
		},
		.attr = {
			.attr_id = WEFT_ATTR_QP_KICK_HANDLE,
			.flags = UVERBS_ATTR_F_MANDATORY,
			.data = qp->handle,
		},
	};

	if (ioctl(qp->context->cmd_fd, RDMA_VERBS_IOCTL, &cmd))
		die("ioctl");
}

static void call_write(void)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(struct ib_uverbs_post_send_resp) / 4,
		},
		.post = {
			.qp_handle = qp->handle,
			.wqe_size = sizeof(struct ib_uverbs_send_wr),
		},
	};
	struct ib_uverbs_post_send_resp resp;

	cmd.post.response = (uintptr_t)&resp;
	/* The driver says that user QPs are not posted to this way; it was asked. */
	if (write(qp->context->cmd_fd, &cmd, sizeof(cmd)) < 0 && errno != EOPNOTSUPP)
		die("write");
}

static void call_nothing(void)
{
	syscall(SYS_getppid);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void measure(const char *name, void (*call)(void), int calls)
{
	double best = 1e18;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		double from = now();

		for (i = 0; i < calls; i++)
			call();
		from = (now() - from) / calls;
		if (from < best)
			best = from;
	}
	printf("%s: %.0f ns\n", name, best);
}

static void open_qp(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	qp = pd && cq ? ibv_create_qp(pd, &attr) : NULL;
	if (!qp)
		die("no QP");
}

int main(int argc, char **argv)
{
	int calls = argc > 1 ? atoi(argv[1]) : 20000;

	if (calls <= 0) {
		fprintf(stderr, "doorbell-cost [CALLS]\n");
		return 2;
	}
	open_qp();
	measure("nothing (getppid)", call_nothing, calls);
	measure("ioctl, WEFT_METHOD_QP_KICK", call_ioctl, calls);
	measure("write, POST_SEND", call_write, calls);
	return 0;
}
