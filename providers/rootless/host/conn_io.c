// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection's socket: receiving, sending, TCP's state, and where events are waited for. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "conn.h"
#include "judge/adverse.h"
#include "kernel/core/alive.h"
#include "process/file.h"
#include "process/pool.h"
#include "process/raw.h"
#include "process/stats.h"
#include "place_late.h"
#include "qp.h"
#include "devices/limits.h"
#include "ulp.h"

/* TCP_INFO's states: libc's header and the kernel's exclude each other. */
enum { RL_TCP_ESTABLISHED = 1, RL_TCP_FIN_WAIT2 = 5, RL_TCP_CLOSE = 7 };

/* When TCP had no memory to send. */
#define RETRY_MS 2
/* Reads before others get the lock. */
#define READS 16
/* Uses of an MSS before it is queried again: the path's MTU may have changed. */
#define MSS_USES 1024

bool rl_conn_awaits_receive(const struct rl_conn *c)
{
	return c->link.qp && c->link.qp->rx_waits;
}

static void set_conn_option(struct rl_conn *c, int level, int name, int value)
{
	int rv = rl_raw(SYS_setsockopt, c->fd, level, name, &value, sizeof(value));

	if (unlikely(rv))
		rl_trace("a connection's option %d of level %d stays: %d", name, level, rv);
}

void rl_conn_set_up_socket(struct rl_conn *c)
{
	set_conn_option(c, IPPROTO_TCP, TCP_NODELAY, 1);
	/* Urgent data is read in line, and is as wrong there as any other octet. */
	set_conn_option(c, SOL_SOCKET, SO_OOBINLINE, 1);
}

void rl_conn_set_keepalive(struct rl_conn *c)
{
	const struct weft_link_cfg *cfg = &c->link.cfg;
	struct weft_keepalive k;

	if ((c->keepalive_ms == cfg->dead_ms && c->keepalive_idle_ms == cfg->idle_dead_ms) ||
	    c->fd < 0)
		return;
	c->keepalive_ms = cfg->dead_ms;
	c->keepalive_idle_ms = cfg->idle_dead_ms;
	k = weft_alive_keepalive(cfg->dead_ms, cfg->idle_dead_ms);
	set_conn_option(c, IPPROTO_TCP, TCP_KEEPIDLE, k.idle_s);
	set_conn_option(c, IPPROTO_TCP, TCP_KEEPINTVL, k.interval_s);
	set_conn_option(c, IPPROTO_TCP, TCP_KEEPCNT, k.count);
	set_conn_option(c, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* ---- TCP's state ---- */

static bool tcp_info(struct rl_conn *c, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return c->fd >= 0 && !rl_raw(SYS_getsockopt, c->fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

/* Why TCP did not connect, as iw_cm reports it, or ended. */
static int tcp_error(int err)
{
	return err == -EHOSTUNREACH || err == -ENETUNREACH ? -ETIMEDOUT : err;
}

void rl_conn_view(struct rl_conn *c, struct weft_tcp_view *v)
{
	struct tcp_info info;
	bool known = tcp_info(c, &info);

	v->connecting = c->connecting;
	v->closed = c->reset || !known || (!c->connecting && info.tcpi_state == RL_TCP_CLOSE);
	v->established = !v->closed && info.tcpi_state == RL_TCP_ESTABLISHED;
	v->fin = c->fin;
	v->delivered = known && info.tcpi_state == RL_TCP_FIN_WAIT2;
	v->error = v->closed ? tcp_error(c->error) : 0;
	v->idle_ms = min_t(u32, info.tcpi_last_data_recv, info.tcpi_last_ack_recv);
	v->unanswered = max_t(u32, info.tcpi_retransmits, info.tcpi_probes);
	v->acked = info.tcpi_bytes_acked;
}

u32 rl_conn_mss(struct rl_conn *c)
{
	struct tcp_info info;

	if (!c->mss || ++c->mss_uses > MSS_USES) {
		c->mss_uses = 0;
		c->mss = tcp_info(c, &info) ? info.tcpi_snd_mss : 0;
		c->mss = max_t(u32, c->mss, WEFT_BATCH_SEG_MIN);
	}
	return c->mss;
}

void rl_conn_finish_connect(struct rl_conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->cable && rl_cables->keeps_connecting(c))
		return;
	rl_raw(SYS_getsockopt, c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	c->connecting = false;
	c->reset = err;
	c->error = -err;
	c->step_due = true;
}

/* ---- receiving ---- */

static void no_more(struct rl_conn *c, long n)
{
	if (n == -EAGAIN || n == -EINTR)
		return;
	c->news++;
	c->fin = !n || c->fin;
	if (n) {
		c->reset = true;
		c->error = n;
	}
	c->step_due = true;
}

/* Gives @n octets to the link: how many it took. */
static u32 give_to_link(struct rl_conn *c, const void *p, u32 n)
{
	struct weft_seg seg = { .p = p, .len = n };
	struct weft_cur in;

	weft_cur_init(&in, &seg, 1);
	weft_link_rx(&c->link, &in);
	c->news += in.left < n;
	return n - in.left;
}

/*
 * Octets of start-up stay in TCP until the link has taken them: those that follow a Reply must wait
 * for the step.
 */
static void receive_startup(struct rl_conn *c, void *block)
{
	long n = rl_raw(SYS_recvfrom, c->fd, block, RL_POOL_BLOCK, MSG_PEEK | MSG_DONTWAIT, NULL,
			NULL);
	u32 took;

	if (n <= 0) {
		no_more(c, n);
		return;
	}
	took = give_to_link(c, block, n);
	if (took) {
		if (unlikely(c->recorded))
			rl_conn_record_received(c, block, took, true);
		rl_raw(SYS_recvfrom, c->fd, block, took, MSG_TRUNC | MSG_DONTWAIT, NULL, NULL);
		c->step_due = true;
	}
}

/*
 * A read that is not full has emptied TCP, but for a FIN or a reset. A poller returns for those;
 * the thread gets one edge, and must read until there is nothing.
 */
static bool may_be_more(long n)
{
	return n == RL_POOL_BLOCK || (n > 0 && rl_thread_is_this());
}

/* The @n octets in @block. If the link leaves some, the connection keeps the block. */
static void give_block(struct rl_conn *c, void *block, u32 n)
{
	u32 took = give_to_link(c, block, n);

	if (took == n)
		return;
	c->rest = block;
	c->rest_off = took;
	c->rest_len = n - took;
}

/* Offers the link the rest of the last read again. True: it has taken all of it. */
static bool give_rest(struct rl_conn *c)
{
	u32 took;

	if (!c->rest)
		return true;
	took = give_to_link(c, (u8 *)c->rest + c->rest_off, c->rest_len);
	c->rest_off += took;
	c->rest_len -= took;
	if (c->rest_len)
		return false;
	rl_conn_drop_rest(c);
	return true;
}

void rl_conn_drop_rest(struct rl_conn *c)
{
	if (c->rest)
		rl_pool_give(c->rest);
	c->rest = NULL;
}

static __always_inline void receive_full(struct rl_conn *c, void *block, bool recorded)
{
	u32 fpdus = c->link.st.rx_fpdus;
	long n;
	int i;

	c->unread = true;
	for (i = 0; i < READS && c->unread && !c->rest && !rl_conn_awaits_receive(c); i++) {
		n = rl_raw(SYS_recvfrom, c->fd, block, RL_POOL_BLOCK, MSG_DONTWAIT, NULL, NULL);
		if (n > 0 && recorded)
			rl_conn_record_received(c, block, n, false);
		if (n > 0)
			give_block(c, block, n);
		else
			no_more(c, n);
		c->unread = c->rest || may_be_more(n);
	}
	c->unread = c->unread && !rl_conn_awaits_receive(c);
	rl_count(RL_RX_CALLS, i);
	if (c->link.st.rx_fpdus != fpdus)
		rl_count(RL_RX_FPDUS, c->link.st.rx_fpdus - fpdus);
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
}

/* So many octets are worth a pause, for more of their message to come. */
#define BULK		4096

static void receive_adversely(struct rl_conn *c, void *block)
{
	const bool is_kept = c->qp && rl_adverse_choose(RL_ADVERSE_RUN, c->qp->nth, 0, 2);
	int there = 0;

	if (is_kept && !rl_raw(SYS_ioctl, c->fd, FIONREAD, &there) && there >= BULK)
		rl_adverse_pause();
	if (is_kept)
		rl_place_late_begin();
	receive_full(c, block, c->recorded);
	rl_place_late_end();
}

/* Apart from the usual case, which costs no instruction more. */
static noinline void receive_apart(struct rl_conn *c)
{
	void *block;

	if (c->fd < 0 || c->fin || c->reset || c->read_apart & RL_READ_PAUSED)
		return;
	block = rl_pool_take();
	c->unread = !block;
	if (!block)
		return;
	if (c->link.mode == WEFT_MODE_STARTUP)
		receive_startup(c, block);
	else if (!(c->read_apart & RL_READ_ADVERSE))
		receive_full(c, block, true);
	else
		receive_adversely(c, block);
	if (block != c->rest)
		rl_pool_give(block);
}

void rl_conn_receive(struct rl_conn *c)
{
	void *block;

	/* A poll before the doorbell: send the acknowledgement. The thread may read at any time. */
	c->tx_due |= c->answer_due && !rl_thread_is_this();
	/* Without memory for the stage: soon again. A Send that waits: once a receive is posted. */
	if (!give_rest(c) || rl_conn_awaits_receive(c)) {
		c->unread = !rl_conn_awaits_receive(c);
		return;
	}
	c->unread = false;
	if (c->fd < 0 || c->fin || c->reset || c->read_apart) {
		receive_apart(c);
		return;
	}
	block = rl_pool_take();
	/* Without memory: soon again. */
	c->unread = !block;
	if (!block)
		return;
	if (c->link.mode == WEFT_MODE_STARTUP)
		receive_startup(c, block);
	else
		receive_full(c, block, false);
	if (block != c->rest)
		rl_pool_give(block);
}

/* ---- sending ---- */

static_assert(sizeof(struct weft_iov) == sizeof(struct iovec) &&
	      offsetof(struct weft_iov, base) == offsetof(struct iovec, iov_base) &&
	      offsetof(struct weft_iov, len) == offsetof(struct iovec, iov_len),
	      "a batch's list is sendmsg()'s");

static __always_inline s32 send_now(struct rl_conn *c, int fd, const struct weft_iov *iov, u32 niov,
				    u32 flags)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = niov };
	int how = MSG_DONTWAIT | MSG_NOSIGNAL;
	long n;

	how |= flags & WEFT_SEND_EOR ? MSG_EOR : flags & WEFT_SEND_MORE ? MSG_MORE : 0;
	c->full = false;
	/* For one piece the kernel need not read a list. */
	do
		n = niov == 1 ? rl_raw(SYS_sendto, fd, iov->base, iov->len, how, NULL, 0)
			      : rl_raw(SYS_sendmsg, fd, &m, how);
	while (n == -EINTR);
	rl_count(RL_TX_CALLS, 1);
	if (n >= 0)
		return n;
	/* TCP has no memory, and may have nothing in flight whose acknowledgement would wake us. */
	if (n == -ENOBUFS || n == -ENOMEM)
		c->linger_until = rl_now_ms() + RETRY_MS;
	if (n == -EAGAIN || n == -ENOBUFS || n == -ENOMEM)
		return 0;
	c->vanished = n == -EFAULT;
	/* TCP tells its error once. A fault is the program's. */
	if (n != -EPIPE && n != -EFAULT && !c->error)
		c->error = n;
	/* The step reads first what the peer sent before it closed. */
	c->step_due = true;
	return n;
}

const struct rl_cable_ops *rl_cables;

void rl_conn_update_cable(struct rl_conn *c)
{
	const struct rl_cable_ops *ops = __atomic_load_n(&rl_cables, __ATOMIC_ACQUIRE);

	if (unlikely(ops))
		ops->update(c);
}

s32 rl_conn_send(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags)
{
	if (unlikely(c->send_fd < 0)) {
		if (c->fd < 0)
			return -ECONNRESET;
		return c->cable ? rl_cables->send(c, iov, niov, flags) :
				  rl_conn_send_now(c, iov, niov, flags);
	}
	return send_now(c, c->send_fd, iov, niov, flags);
}

noinline s32 rl_conn_send_now(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags)
{
	u64 now = c->recorded ? rl_ticks() : 0;
	s32 n = send_now(c, c->fd, iov, niov, flags);

	if (n > 0 && c->recorded)
		rl_conn_record_sent(c, iov, (u32)n, now);
	return n;
}

/* ---- waiting, and the end ---- */

static enum rl_conn_poller wanted_poller(const struct rl_conn *c)
{
	if (c->fd < 0)
		return RL_POLLER_NONE;
	return c->qp && c->qp->rcq && c->link.mode == WEFT_MODE_FULL ? RL_POLLER_CQS :
								       RL_POLLER_THREAD;
}

static bool wants_octets(const struct rl_conn *c)
{
	return !c->fin && !c->reset && !c->rest && !c->polled_until && !rl_conn_awaits_receive(c);
}

/* If nothing is wanted: TCP's end is reported all the same, but once. */
static u32 wanted_events(const struct rl_conn *c)
{
	u32 events = (wants_octets(c) ? EPOLLIN | EPOLLRDHUP : 0) | (c->full ? EPOLLOUT : 0);

	return c->connecting ? EPOLLOUT : events ?: EPOLLET;
}

void rl_conn_leave_poller(struct rl_conn *c)
{
	if (c->poller == RL_POLLER_THREAD) {
		rl_thread_remove(c->fd);
	} else if (c->poller == RL_POLLER_CQS) {
		rl_cq_remove_conn(c->qp->scq, c);
		if (c->qp->rcq != c->qp->scq)
			rl_cq_remove_conn(c->qp->rcq, c);
	}
	c->poller = RL_POLLER_NONE;
}

static int enter_poller(struct rl_conn *c, enum rl_conn_poller poller, u32 events)
{
	struct rl_cq *rcq, *scq;
	int rv;

	/* By edges: what the link cannot take yet stays in TCP, and must not wake again. */
	if (poller == RL_POLLER_THREAD)
		return rl_thread_add(&c->watch, c->fd, events | EPOLLET);
	rcq = c->qp->rcq;
	scq = c->qp->scq;
	rv = rl_cq_add_conn(rcq, scq, c, events);
	if (!rv && scq != rcq) {
		rv = rl_cq_add_conn(scq, rcq, c, events);
		if (rv)
			rl_cq_remove_conn(rcq, c);
	}
	return rv;
}

static void change_events(struct rl_conn *c, u32 events)
{
	if (c->poller == RL_POLLER_THREAD) {
		rl_thread_modify(&c->watch, c->fd, events | EPOLLET);
	} else {
		rl_cq_modify_conn(c->qp->rcq, c, events);
		if (c->qp->scq != c->qp->rcq)
			rl_cq_modify_conn(c->qp->scq, c, events);
	}
}

/* Apart, so that the usual case saves no registers. */
static noinline void change_poller(struct rl_conn *c, enum rl_conn_poller poller, u32 events)
{
	if (poller == c->poller && poller != RL_POLLER_NONE) {
		change_events(c, events);
	} else {
		rl_conn_leave_poller(c);
		/* Without events the connection would hang: end it. */
		if (poller != RL_POLLER_NONE && !enter_poller(c, poller, events))
			c->poller = poller;
		else if (poller != RL_POLLER_NONE)
			c->reset = c->step_due = true;
	}
	c->events = events;
}

void rl_conn_update_poller(struct rl_conn *c)
{
	enum rl_conn_poller poller = wanted_poller(c);
	u32 events = wanted_events(c);

	if (poller != c->poller || events != c->events)
		change_poller(c, poller, events);
}

void rl_conn_close(struct rl_conn *c)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct linger l = { .l_onoff = 1 };

	if (c->fd < 0)
		return;
	if (c->cable)
		rl_cables->end(c);
	if (c->recorded)
		rl_conn_end_record(c);
	c->send_fd = -1;
	rl_conn_leave_poller(c);
	/* RST: a child of fork() may hold the socket, too, so that close() sends nothing. */
	if (!c->left && (!c->link.shut || !c->fin)) {
		rl_raw(SYS_setsockopt, c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
		rl_raw(SYS_connect, c->fd, &nobody, sizeof(nobody));
	}
	if (c->keeps_fd)
		c->kept_fd = c->fd;
	else
		rl_fd_close_hidden(c->fd);
	c->fd = -1;
}
