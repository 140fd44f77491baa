// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two QPs connected by hand over the device that has the GID of ADDR. One has its timeout shortened in
 * SQD, from half a minute to half a second. Prints "ready" and writes to the other until a Write
 * fails; then prints its status.
 */
#include <stdio.h>
#include <unistd.h>

#include "byhand.h"

#define LONG	20
#define SHORT	14
#define WAIT_MS	60000
#define PAUSE_US 10000

static struct hand_device dev;
static struct hand_end a, b;
static struct hand_name names[2];

static void connect_both(void)
{
	struct hand_setting set = hand_usual;

	set.timeout = LONG;
	set.retry_cnt = 7;
	hand_make(&a, &dev, &set, NULL);
	hand_make(&b, &dev, &set, NULL);
	hand_tell(&a, &names[0]);
	hand_tell(&b, &names[1]);
	hand_ready(&a, &names[1]);
	hand_ready(&b, &names[0]);
}

static enum ibv_wc_status write_once(void)
{
	struct ibv_wc wc;

	hand_rdma(&a, 1, IBV_WR_RDMA_WRITE, &names[1], 8);
	if (!hand_poll(a.cq, &wc, WAIT_MS))
		hand_fail("a Write does not complete");
	return wc.status;
}

static void shorten(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .timeout = SHORT };

	if (hand_to(&a, IBV_QPS_SQD) || ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT) ||
	    hand_to(&a, IBV_QPS_RTS))
		hand_fail("modify_qp fails");
}

int main(int argc, char **argv)
{
	enum ibv_wc_status status;

	hand_program = "weft-sqd";
	if (argc != 2)
		hand_fail("weft-sqd ADDR");
	hand_open(&dev, argv[1]);
	connect_both();
	if (write_once() != IBV_WC_SUCCESS)
		hand_fail("the first Write fails");
	shorten();
	puts("ready");
	fflush(stdout);
	while ((status = write_once()) == IBV_WC_SUCCESS)
		usleep(PAUSE_US);
	puts(ibv_wc_status_str(status));
	hand_unmake(&a);
	hand_unmake(&b);
	hand_close(&dev);
	return 0;
}
