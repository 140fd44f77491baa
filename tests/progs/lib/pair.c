// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "pair.h"
#include "pattern.h"

void pair_open(struct pair *p, const char *host, const char *port)
{
	conn_listen(&p->server, host, port);
	conn_pair(&p->client, &p->server, host, port, PAIR_DEPTH, 0);
	p->from_mr = conn_reg(&p->client, p->from, PAIR_BUF, IBV_ACCESS_LOCAL_WRITE);
	p->to_mr = conn_reg(&p->server, p->to, PAIR_BUF,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static bool ends(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->from, .length = len,
			       .lkey = p->from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = !!len,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)p->to, .rkey = p->to_mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(p->client.id->qp, &wr, &bad))
		fail("post_send");
	return conn_poll(&p->client, &wc, 1, PAIR_TIMEOUT_MS) == 1 &&
	       wc.status == IBV_WC_SUCCESS;
}

/* The Read, of nothing, comes back when the Write is there. */
bool pair_carries_data(struct pair *p)
{
	pattern_fill(p->from, PAIR_BUF, ++p->key);
	return ends(p, IBV_WR_RDMA_WRITE, PAIR_BUF) && ends(p, IBV_WR_RDMA_READ, 0) &&
	       !memcmp(p->from, p->to, PAIR_BUF);
}
