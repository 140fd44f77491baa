// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* UD QPs: their states, and sending. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "kernel/core/ud.h"
#include "datagram.h"
#include "devices/device.h"
#include "ip.h"
#include "process/pool.h"
#include "port_group.h"
#include "process/raw.h"
#include "process/stats.h"
#include "ud.h"

/* A request's qkey with this bit stands for the QP's own (InfiniBand, 10.2.5). */
#define QKEY_OF_QP	(1u << 31)
#define BATCH		16

/* ---- one datagram ---- */

/* One datagram for sendmmsg(). */
struct parcel {
	struct weft_ud_out out;
	u8 header[RL_DATAGRAM_HEADER];
	struct iovec iov[1 + WEFT_MAX_SGE];
	struct sockaddr_storage to;
	u8 control[RL_IP_CONTROL] __attribute__((aligned(8)));
};

struct batch {
	struct parcel at[BATCH];
	struct mmsghdr msg[BATCH];
};
static_assert(sizeof(struct batch) <= RL_POOL_BLOCK, "one block");

static u32 mtu_of(const struct rl_qp *qp)
{
	return 128u << rl_device_ib_mtu(qp->ctx->dev);
}

/* Is the address in the work request valid? */
static bool address_is_valid(const struct rl_qp *qp, const struct weft_wr_ud *to)
{
	u8 gid[RL_GID_LEN];

	return rl_device_gid(qp->ctx->dev, to->sgid_index, gid) && to->qpn >> 24 == 0;
}

static socklen_t put_address(const struct rl_qp *qp, const struct weft_wr_ud *w,
			     struct sockaddr_storage *to)
{
	socklen_t len = rl_gid_to_address(qp->ctx->dev, w->dgid, rl_qpn_port(w->qpn), to);
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(rl_qpn_port(w->qpn)),
	};

	if (to->ss_family == AF_INET6 || !rl_ud_socket_is_six(qp->ud->socket))
		return len;
	rl_gid_resolve(w->dgid, six.sin6_addr.s6_addr);
	memcpy(to, &six, sizeof(six));
	return sizeof(six);
}

/* From the address of the handle, not the one that the route would choose. */
static void put_source(const struct rl_qp *qp, const struct weft_wr_ud *w, struct msghdr *m)
{
	bool group = rl_gid_is_group(w->dgid), four;
	u8 gid[RL_GID_LEN];

	rl_device_gid(qp->ctx->dev, w->sgid_index, gid);
	rl_gid_resolve(gid, gid);
	four = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
	rl_ip_put_source(m, rl_ud_socket_is_six(qp->ud->socket), gid,
			 group ? qp->ctx->dev->ifindex : 0);
	if (w->traffic_class)
		rl_ip_put_number(m, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TOS : IPV6_TCLASS,
				 w->traffic_class);
	/* IP's default for groups is one hop: without a hop limit it stays on the link. */
	if (group && w->hop_limit)
		rl_ip_put_number(m, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TTL : IPV6_HOPLIMIT,
				 w->hop_limit);
}

static void put_payload(struct parcel *p, struct msghdr *m)
{
	static const u8 zeros[4096];
	u32 i;

	p->iov[0] = (struct iovec){ p->header, sizeof(p->header) };
	for (i = 0; i < p->out.npieces; i++) {
		struct weft_piece *piece = &p->out.piece[i];
		struct weft_region *memory;
		u64 addr = piece->addr;

		if (!piece->region) {
			p->iov[1 + i] = (struct iovec){ (void *)piece->p, piece->len };
			continue;
		}
		memory = weft_region_memory(piece->region, &addr);
		p->iov[1 + i] = (struct iovec){
			memory->kind == WEFT_REGION_NULL ? (void *)zeros :
							   rl_mr_address(memory, addr),
			piece->len,
		};
	}
	m->msg_iov = p->iov;
	m->msg_iovlen = 1 + p->out.npieces;
}

static void make_datagram(struct rl_qp *qp, struct parcel *p, struct msghdr *m)
{
	const struct weft_wr_ud *w = &p->out.to;
	const struct rl_datagram d = {
		.to = w->qpn,
		.from = qp->core.id,
		.qkey = w->qkey & QKEY_OF_QP ? qp->ud->qkey : w->qkey,
		.imm = p->out.imm,
		.imm_data = p->out.imm_data,
		.solicited = p->out.solicited,
	};

	rl_datagram_write(p->header, &d);
	*m = (struct msghdr){ .msg_name = &p->to, .msg_control = p->control };
	m->msg_namelen = put_address(qp, w, &p->to);
	put_source(qp, w, m);
	put_payload(p, m);
}

/* ---- sending; with the QP's lock ---- */

static bool is_full(long rv)
{
	return rv == -EAGAIN || rv == -ENOBUFS || rv == -ENOMEM;
}

/*
 * Sends @n datagrams: how many are done. One without a route counts as lost on the way; memory that
 * vanished is the program's fault.
 */
static u32 send_some(struct rl_qp *qp, struct batch *b, u32 n, u8 *status)
{
	long rv;

	do
		rv = rl_raw(SYS_sendmmsg, qp->ud->send_fd, b->msg, n,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	while (rv == -EINTR);
	rl_count(RL_TX_CALLS, 1);
	*status = rv == -EFAULT ? WEFT_WC_LOC_PROT_ERR : WEFT_WC_SUCCESS;
	if (rv > 0)
		rl_count(RL_TX_DATAGRAMS, rv);
	return rv > 0 ? (u32)rv : is_full(rv) ? 0 : 1;
}

/* The queue has failed: later requests are flushed until the program sets RTS again. */
static void fail_sends(struct rl_qp *qp)
{
	WRITE_ONCE(qp->core.named, WEFT_VS_SQE);
	while (weft_ud_flush_sends(&qp->core))
		;
}

static void fail_qp(struct rl_qp *qp)
{
	weft_qpc_error(&qp->core);
	rl_qp_flush(qp);
}

/* Prepares up to BATCH datagrams. *@bad: the request after them is invalid. */
static u32 fill_batch(struct rl_qp *qp, struct batch *b, bool *bad)
{
	u32 n;

	*bad = false;
	for (n = 0; n < BATCH; n++) {
		struct parcel *p = &b->at[n];

		if (!weft_ud_next(&qp->core, mtu_of(qp), &p->out))
			break;
		if (p->out.status == WEFT_WC_SUCCESS && !address_is_valid(qp, &p->out.to))
			p->out.status = WEFT_WC_LOC_QP_OP_ERR;
		*bad = p->out.status != WEFT_WC_SUCCESS;
		if (*bad)
			break;
		make_datagram(qp, p, &b->msg[n].msg_hdr);
	}
	return n;
}

static void undo(struct rl_qp *qp, struct batch *b, u32 from, u32 to)
{
	while (to-- > from)
		weft_ud_undo(&qp->core, &b->at[to].out);
}

/* False: there is no more to do now. */
static bool send_batch(struct rl_qp *qp, struct batch *b)
{
	bool bad;
	u32 n = fill_batch(qp, b, &bad), done = 0, i;
	u8 status = WEFT_WC_SUCCESS;

	if (n)
		done = send_some(qp, b, n, &status);
	for (i = 0; i < done; i++)
		weft_ud_done(&qp->core, &b->at[i].out, status);
	if (done == n && bad && status == WEFT_WC_SUCCESS) {
		status = b->at[n].out.status;
		weft_ud_done(&qp->core, &b->at[n].out, status);
	} else {
		undo(qp, b, done, n + bad);
	}
	if (status != WEFT_WC_SUCCESS)
		fail_sends(qp);
	if (qp->core.sq.broken)
		fail_qp(qp);
	qp->ud->waits = n && !done;
	if (qp->ud->waits)
		rl_ud_socket_retry(qp->ud->socket);
	return n && done && status == WEFT_WC_SUCCESS;
}

static void send_posted(struct rl_qp *qp)
{
	struct batch *b = rl_pool_take();

	if (!b) {
		qp->ud->waits = true;
		rl_ud_socket_retry(qp->ud->socket);
		return;
	}
	while (send_batch(qp, b))
		;
	weft_region_end_run(&qp->core);
	rl_pool_give(b);
}

static void run_sends(struct rl_qp *qp)
{
	switch (weft_qpc_verbs_state(&qp->core)) {
	case WEFT_VS_RTS:
		send_posted(qp);
		break;
	case WEFT_VS_SQE:
		while (weft_ud_flush_sends(&qp->core))
			;
		break;
	case WEFT_VS_ERR:
		rl_qp_flush(qp);
		break;
	default:
		break;
	}
}

void rl_ud_kick(struct rl_qp *qp)
{
	rl_count(RL_DOORBELLS, 1);
	rl_lock(&qp->lock);
	if (!qp->gone)
		run_sends(qp);
	rl_unlock(&qp->lock);
}

void rl_ud_resume(struct rl_qp *qp)
{
	rl_lock(&qp->lock);
	if (!qp->gone && qp->ud->waits) {
		qp->ud->waits = false;
		run_sends(qp);
	}
	rl_unlock(&qp->lock);
}

/* ---- receiving ---- */

static bool receives(const struct rl_qp *qp)
{
	u32 state = weft_qpc_verbs_state(&qp->core);

	return !qp->gone && (state == WEFT_VS_RTR || state == WEFT_VS_RTS || state == WEFT_VS_SQD ||
			     state == WEFT_VS_SQE);
}

static enum weft_ud_fate receive_datagram(struct rl_qp *qp, u32 qkey, const struct weft_ud_in *in)
{
	enum weft_ud_fate fate = WEFT_UD_NO_RECEIVE;

	rl_lock(&qp->lock);
	if (receives(qp) && qp->ud->takes == qkey)
		fate = weft_ud_receive(&qp->core, in);
	weft_region_end_run(&qp->core);
	if (fate == WEFT_UD_BAD_RECEIVE)
		fail_qp(qp);
	rl_unlock(&qp->lock);
	return fate;
}

void rl_ud_deliver(struct rl_qp *qp, u32 qkey, const struct weft_ud_in *in)
{
	enum weft_ud_fate fate = receive_datagram(qp, qkey, in);

	rl_count(fate == WEFT_UD_DELIVERED ? RL_RX_DATAGRAMS : RL_DROP_DATAGRAMS, 1);
}

/* ---- life ---- */

/* Above all qkeys. */
#define TAKES_NONE (1ull << 32)

/* With the lock. */
static void set_way(struct rl_qp *qp)
{
	struct rl_ud *ud = qp->ud;
	bool lost = ud->frozen || rl_device_is_pulled(qp->ctx->dev);

	ud->takes = lost ? TAKES_NONE : ud->qkey;
	ud->send_fd = lost ? -1 : rl_ud_socket_fd(ud->socket);
}

void rl_ud_port_changed(struct rl_qp *qp)
{
	rl_lock(&qp->lock);
	if (!qp->gone)
		set_way(qp);
	rl_unlock(&qp->lock);
}

void rl_ud_freeze(struct rl_qp *qp, bool frozen)
{
	rl_lock(&qp->lock);
	qp->ud->frozen = frozen;
	rl_unlock(&qp->lock);
	rl_ud_port_changed(qp);
}

void rl_ud_move(struct rl_qp *qp, u32 from, u32 to)
{
	bool drained;

	if (to == IBV_QPS_RESET) {
		rl_qp_reset(qp);
		return;
	}
	if (to == IBV_QPS_ERR) {
		rl_qp_move(qp, to);
		return;
	}
	rl_lock(&qp->lock);
	if (from == IBV_QPS_SQE)
		weft_ud_resume(&qp->core);
	qp->ud->qkey = qp->given.qkey;
	set_way(qp);
	WRITE_ONCE(qp->core.named, to);
	if (to == IBV_QPS_RTS)
		run_sends(qp);
	/* No datagram is ever half sent. */
	drained = to == IBV_QPS_SQD && from != to && qp->given.en_sqd_async_notify;
	rl_unlock(&qp->lock);
	if (drained)
		rl_context_report(qp->ctx, &qp->o, IBV_EVENT_SQ_DRAINED, &qp->async_reported);
}

int rl_ud_begin(struct rl_qp *qp)
{
	struct rl_ud *ud = calloc(1, sizeof(*ud));
	int rv;

	if (!ud)
		return -ENOMEM;
	ud->qp = qp;
	INIT_LIST_HEAD(&ud->groups);
	qp->ud = ud;
	qp->core.datagrams = true;
	rv = rl_ud_join_socket(ud);
	if (rv) {
		qp->ud = NULL;
		free(ud);
		return rv;
	}
	set_way(qp);
	return 0;
}

void rl_ud_end(struct rl_qp *qp)
{
	rl_ud_detach_all(qp);
	rl_ud_leave_socket(qp->ud);
}
