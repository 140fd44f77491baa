/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-reflector --by-hand: QPs that are connected without rdma_cm. The tester meets the reflector on a
 * TCP connection, where each says what modify_qp takes (reflector.h), and connects then to the port that
 * the QP's number names. The QP lives as long as they meet.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs.h"

#define LINKS_MAX 1024
#define DEPTH 16

static struct met {
	struct link *l;
	int fd;
} met[LINKS_MAX];
static unsigned int nmet;
static uint32_t next_psn = 0x5a1000;

static void gid_of(const struct sockaddr_in *a, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &a->sin_addr, 4);
}

/* The index of the last entry, of RoCE v2; -1: @verbs does not have it. */
static int index_of(struct ibv_context *verbs, const union ibv_gid *own)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	int found = -1;

	if (ibv_query_port(verbs, 1, &port))
		return -1;
	for (int i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(verbs, 1, i, &gid) && !memcmp(&gid, own, sizeof(gid)))
			found = i;
	return found;
}

/* The one that has the GID of the address that the tester has called, and its index there. */
static struct ibv_context *device_of(const union ibv_gid *own, int *index)
{
	static struct ibv_context *verbs;
	static int at = -1;
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !verbs; i++) {
		verbs = ibv_open_device(list[i]);
		at = verbs ? index_of(verbs, own) : -1;
		if (verbs && at < 0) {
			ibv_close_device(verbs);
			verbs = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	*index = at;
	return verbs;
}

static int connect_qp(struct ibv_qp *qp, const union ibv_gid *peer, int index, uint32_t qpn,
		      uint32_t psn, uint32_t own_psn)
{
	const int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = psn, .sq_psn = own_psn,
		.max_dest_rd_atomic = DEPTH, .max_rd_atomic = DEPTH, .min_rnr_timer = 1,
		.timeout = 14, .retry_cnt = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = {
			.dgid = *peer, .sgid_index = (uint8_t)index, .hop_limit = 1,
		} },
	};
	int err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS);

	a.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	return err;
}

/* What the tester says is here; what it is to know goes back. */
static int join(struct link *l, int fd, const uint8_t *said)
{
	uint8_t answer[8 + REFL_TABLE_LEN];
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);
	struct reflector_request q;
	union ibv_gid own_gid, gid;
	uint32_t psn = next_psn++ & 0xffffff;
	int index;

	if (getsockname(fd, (struct sockaddr *)&own, &len) ||
	    getpeername(fd, (struct sockaddr *)&peer, &len) ||
	    !reflector_read_request(said, REFL_REQUEST_LEN, &q) || q.flags & REFL_F_REJECT)
		return -1;
	gid_of(&own, &own_gid);
	gid_of(&peer, &gid);
	l->verbs = device_of(&own_gid, &index);
	if (!l->verbs || join_session(l, &q) ||
	    connect_qp(l->qp, &gid, index, get32(said + REFL_REQUEST_LEN),
		       get32(said + REFL_REQUEST_LEN + 4), psn))
		return -1;
	put32(answer, l->qp->qp_num);
	put32(answer + 4, psn);
	reflector_write_private_data(&l->ulp, -1, answer + 8, REFL_TABLE_LEN);
	if (send(fd, answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
		return -1;
	if (q.flags & REFL_F_EARLY)
		reflector_send_hello(&l->ulp);
	return 0;
}

static void part(struct met *m)
{
	struct link *l = m->l;

	if (l->cq && !l->mute)
		drain_completions(l);
	destroy_queues(l);
	if (l->s)
		reflector_leave(&l->ulp);
	free(l);
	close(m->fd);
	*m = met[--nmet];
}

static void meet(int listener)
{
	uint8_t said[REFL_REQUEST_LEN + 8];
	int fd = accept(listener, NULL, NULL);
	struct link *l = nmet < LINKS_MAX ? calloc(1, sizeof(*l)) : NULL;
	struct met *m;

	if (fd < 0 || !l) {
		close(fd);
		free(l);
		return;
	}
	m = &met[nmet++];
	m->l = l;
	m->fd = fd;
	l->ulp.front = l;
	if (recv(fd, said, sizeof(said), MSG_WAITALL) != sizeof(said) || join(l, fd, said))
		part(m);
}

static void look_at_all(int listener)
{
	struct pollfd fd[1 + 2 * LINKS_MAX];
	unsigned int n = nmet;

	fd[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
	for (unsigned int i = 0; i < n; i++) {
		fd[1 + 2 * i] = (struct pollfd){ .fd = met[i].l->ch->fd, .events = POLLIN };
		fd[2 + 2 * i] = (struct pollfd){ .fd = met[i].fd, .events = POLLIN };
	}
	if (poll(fd, 1 + 2 * n, -1) < 0)
		return;
	/* From the last on: whose place another takes has been looked at. */
	while (n--) {
		if (fd[1 + 2 * n].revents)
			on_completion_event(met[n].l);
		if (fd[2 + 2 * n].revents)
			part(&met[n]);
	}
	if (fd[0].revents)
		meet(listener);
}

int serve_by_hand(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if ((*host && inet_pton(AF_INET, host, &a.sin_addr) != 1) ||
	    bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 128))
		return -1;
	puts("ready");
	fflush(stdout);
	for (;;)
		look_at_all(listener);
}
