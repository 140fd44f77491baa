// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "host/accept.h"
#include "host/budget.h"
#include "byhand_conn.h"
#include "process/options.h"
#include "port_group.h"
#include "process/raw.h"
#include "devices/limits.h"
#include "host/qp.h"

struct rl_byhand_qp {
	struct rl_watch watch;		/* first: the references, and the time */
	struct rl_qp *qp;		/* referenced */
	const struct rl_device *dev;

	/* the QP's lock */
	struct rl_byhand h;
	struct rl_byhand_path path;
	u32 ord;
	u32 generation;			/* RTRs so far: an attempt of an earlier one is void */
};

static struct rl_byhand_qp *byhand_qp_of(struct rl_watch *w)
{
	return container_of(w, struct rl_byhand_qp, watch);
}

/* QP's lock, after each change of h. */
static void set_deadline(struct rl_byhand_qp *q)
{
	rl_watch_set_deadline(&q->watch, rl_byhand_deadline(&q->h));
}

/* ---- a connection and its QP ---- */

/* @q is @c's user from now on. */
static void byhand_join(struct rl_conn *c, struct rl_byhand_qp *q)
{
	rl_watch_get(&q->watch);
	c->user = q;
	c->dev = q->dev;
}

static void byhand_leave(struct rl_conn *c)
{
	struct rl_byhand_qp *q = c->user;

	if (!q)
		return;
	c->user = NULL;
	rl_watch_put(&q->watch);
}

/*
 * Either end may send first: MPA's peer-to-peer mode, which needs revision 2. Acknowledgement Reads
 * count as Reads.
 */
static void configure_mpa(struct weft_mpa_cfg *cfg)
{
	cfg->rev = 2;
	cfg->p2p = true;
	cfg->ird += WEFT_ACK_READS;
	cfg->ord += WEFT_ACK_READS;
}

/* No ULP is asked before the Reply. */
static void byhand_configure(const struct rl_conn *c, struct weft_link_cfg *cfg)
{
	struct rl_byhand_qp *q = c->user;

	configure_mpa(&cfg->mpa);
	cfg->accept_ms = cfg->startup_ms / 2;
	cfg->rnr_ms = c->rnr_ms;
	cfg->large_fpdus = c->large_fpdus;
	if (!q)
		return;
	cfg->idle_dead_ms = cfg->dead_ms;
	rl_lock(&q->qp->lock);
	cfg->dead_ms = rl_byhand_dead_ms(&q->h, cfg->dead_ms);
	rl_unlock(&q->qp->lock);
}

/* modify_qp's limit, if it is below the negotiated one. Connection's lock. */
static void limit_ord(struct rl_byhand_qp *q)
{
	struct weft_qpc *core = &q->qp->core;

	rl_lock(&q->qp->lock);
	if (q->h.rts && q->ord < core->ord)
		WRITE_ONCE(core->ord, q->ord);
	rl_unlock(&q->qp->lock);
}

static u32 write_hello(const struct rl_byhand_qp *q, u8 p[RL_BYHAND_HELLO_LEN])
{
	struct rl_byhand_hello w;

	rl_byhand_make_hello(&q->h, &w);
	rl_byhand_write_hello(p, &w);
	return RL_BYHAND_HELLO_LEN;
}

static bool read_hello(const u8 *pd, u32 len, struct rl_byhand_hello *w)
{
	u8 version = rl_byhand_hello_version(pd, len);

	if (version && version != RL_BYHAND_VERSION)
		rl_trace("a peer connected by hand has version %u; this is %u", version,
			 RL_BYHAND_VERSION);
	return rl_byhand_read_hello(pd, len, w);
}

static void gids_of(struct rl_conn *c, u8 own[16], u8 peer[16])
{
	struct sockaddr_storage a, b;

	rl_conn_names(c, &a, &b);
	rl_gid_of_address(&a, own);
	rl_gid_of_address(&b, peer);
}

static enum rl_byhand_verdict receive_hello(struct rl_byhand_qp *q, struct rl_conn *c,
					    const u8 *pd, u32 pd_len)
{
	enum rl_byhand_verdict v = RL_BYHAND_REJECT;
	struct rl_byhand_hello w;
	u8 own[16], peer[16];

	if (!read_hello(pd, pd_len, &w))
		return v;
	gids_of(c, own, peer);
	rl_lock(&q->qp->lock);
	v = rl_byhand_receive_hello(&q->h, &w, own, peer, rl_now_ms());
	if (v == RL_BYHAND_ACCEPT) {
		c->rnr_ms = rl_byhand_rnr_timeout(&q->h, q->path.min_rnr_timer);
		c->large_fpdus = w.large_fpdus;
	}
	set_deadline(q);
	rl_unlock(&q->qp->lock);
	return v;
}

/* ---- connecting ---- */

static int open_byhand_socket(const struct rl_byhand_qp *q, const struct sockaddr_storage *own,
			      socklen_t len)
{
	int fd = rl_raw(SYS_socket, own->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The port may be shared with connections to other peers; a QP that is its own has none. */
	int late = !rl_byhand_is_self(&q->h), tos = q->path.traffic_class, rv;
	bool six = own->ss_family == AF_INET6;

	if (fd < 0)
		return fd;
	rl_raw(SYS_setsockopt, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late, sizeof(late));
	rl_raw(SYS_setsockopt, fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_TCLASS : IP_TOS,
	       &tos, sizeof(tos));
	rv = rl_raw(SYS_bind, fd, own, len);
	if (!rv)
		return fd;
	rl_raw(SYS_close, fd);
	return rv;
}

/*
 * From the QP's own address to the port that the peer's number names: a socket, or -errno. For a QP
 * that is its own peer the socket connects to itself: TCP's simultaneous open (RFC 9293 3.5).
 */
static int start_connecting(const struct rl_byhand_qp *q)
{
	bool itself = rl_byhand_is_self(&q->h);
	struct sockaddr_storage own, peer;
	socklen_t len = rl_gid_to_address(q->dev, q->h.own_gid, 0, &own);
	int fd = open_byhand_socket(q, &own, len), rv = 0;

	if (fd < 0)
		return fd;
	if (itself)
		rv = rl_raw(SYS_getsockname, fd, &peer, &len);
	else
		len = rl_gid_to_address(q->dev, q->h.peer_gid, rl_qpn_port(q->h.peer_qpn), &peer);
	if (!rv)
		rv = rl_raw(SYS_connect, fd, &peer, len);
	if (!rv || rv == -EINPROGRESS)
		return fd;
	rl_raw(SYS_close, fd);
	return rv;
}

static struct weft_offer *make_byhand_offer(const struct rl_byhand_qp *q)
{
	struct weft_offer *o = calloc(1, sizeof(*o));
	u8 hello[RL_BYHAND_HELLO_LEN];
	struct weft_mpa_cfg cfg;

	if (!o)
		return NULL;
	rl_conn_base_cfg(&cfg);
	configure_mpa(&cfg);
	weft_offer_init(o, &cfg, q->path.ird + WEFT_ACK_READS, RL_MAX_ORD + WEFT_ACK_READS, hello,
			write_hello(q, hello));
	o->itself = rl_byhand_is_self(&q->h);
	return o;
}

static bool is_current(struct rl_byhand_qp *q, u32 generation)
{
	bool is;

	rl_lock(&q->qp->lock);
	is = q->generation == generation && q->h.phase == RL_BYHAND_CONNECTING;
	rl_unlock(&q->qp->lock);
	return is;
}

static void attempt_failed(struct rl_byhand_qp *q, u32 generation)
{
	rl_lock(&q->qp->lock);
	if (q->generation == generation)
		rl_byhand_connect_failed(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&q->qp->lock);
}

/* @fd connects, and the connection takes @offer. False: there is no connection. */
static bool begin_attempt(struct rl_byhand_qp *q, int fd, struct weft_offer *offer, u32 generation)
{
	struct rl_conn *c = rl_conn_new(q->dev, true, fd, &rl_byhand_ulp);
	bool begun;

	if (!c)
		return false;
	rl_conn_configure(c);
	begun = !rl_conn_attach(c, q->qp);
	if (begun && !is_current(q, generation)) {
		rl_conn_release_qp(c);
		begun = false;
	}
	if (begun) {
		weft_link_connect(&c->link, offer, rl_now_ms());
		byhand_join(c, q);
		rl_conn_watch(c);
	} else {
		rl_conn_act(c, weft_link_die(&c->link));
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	return begun;
}

static void try_to_connect(struct rl_byhand_qp *q)
{
	struct weft_offer *offer;
	u32 generation;
	int fd;

	rl_lock(&q->qp->lock);
	generation = q->generation;
	offer = q->qp->gone ? NULL : make_byhand_offer(q);
	fd = offer ? start_connecting(q) : -ENOMEM;
	rl_unlock(&q->qp->lock);
	if (fd >= 0 && begin_attempt(q, fd, offer, generation))
		return;
	free(offer);
	attempt_failed(q, generation);
}

/* ---- what is due ---- */

/* The QP has no connection. Its lock. */
static void byhand_fail_sends(struct rl_byhand_qp *q)
{
	struct rl_qp *qp = q->qp;

	if (qp->gone || qp->conn || qp->core.state != WEFT_QPS_IDLE)
		return;
	weft_qpc_give_up(&qp->core, WEFT_WC_RETRY_EXC_ERR);
	rl_qp_flush(qp);
}

/* The connection is not open yet. */
static void fail_connecting(struct rl_byhand_qp *q, struct rl_conn *c)
{
	rl_conn_act(c, weft_link_connect_failed(&c->link, -ETIMEDOUT));
	rl_lock(&q->qp->lock);
	byhand_fail_sends(q);
	rl_unlock(&q->qp->lock);
}

static void give_up(struct rl_byhand_qp *q)
{
	struct rl_conn *c = rl_conn_of_qp(q->qp);

	if (c) {
		if (c->user == q && c->link.state < WEFT_LINK_OPEN)
			fail_connecting(q, c);
		rl_conn_unlock(c);
		rl_conn_put(c);
		return;
	}
	rl_lock(&q->qp->lock);
	byhand_fail_sends(q);
	rl_unlock(&q->qp->lock);
}

/* UC: completes what is posted, unsent. A connection may be under way. */
static void drop_sends(struct rl_byhand_qp *q)
{
	struct rl_qp *qp = q->qp;
	struct rl_conn *c = rl_qp_lock_core(qp);
	bool more = false, failed = false;

	if ((c || !qp->gone) && qp->core.state == WEFT_QPS_IDLE) {
		more = weft_qpc_lose(&qp->core);
		weft_region_end_run(&qp->core);
		failed = qp->core.state != WEFT_QPS_IDLE;
		rl_qp_flush(qp);
	}
	rl_qp_unlock_core(qp, c);
	if (!more && !failed)
		return;
	rl_lock(&qp->lock);
	if (failed)
		rl_byhand_stop(&q->h);
	else
		rl_byhand_posted(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&qp->lock);
}

static void byhand_run_due(struct rl_byhand_qp *q)
{
	enum rl_byhand_act act;

	rl_lock(&q->qp->lock);
	act = rl_byhand_tick(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&q->qp->lock);
	if (act == RL_BYHAND_CONNECT)
		try_to_connect(q);
	else if (act == RL_BYHAND_GIVE_UP)
		give_up(q);
	else if (act == RL_BYHAND_DROP_SENDS)
		drop_sends(q);
}

static void byhand_timeout(struct rl_watch *w)
{
	byhand_run_due(byhand_qp_of(w));
}

static void byhand_ready(struct rl_watch *w, u32 events)
{
}

static void byhand_revive(struct rl_watch *w)
{
}

static void byhand_release(struct rl_watch *w)
{
	struct rl_byhand_qp *q = byhand_qp_of(w);

	rl_qp_put(q->qp);
	free(q);
}

static const struct rl_watch_ops byhand_watch_ops = {
	.ready = byhand_ready,
	.timeout = byhand_timeout,
	.revive = byhand_revive,
	.release = byhand_release,
};

/* ---- the ULP's calls ---- */

static void byhand_failed(struct rl_conn *c)
{
	struct rl_byhand_qp *q = c->user;

	if (!q)
		return;
	rl_trace("QP %#x: no connection yet: %d", q->h.own_qpn, c->link.status);
	rl_lock(&q->qp->lock);
	rl_byhand_connect_failed(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&q->qp->lock);
	byhand_leave(c);
}

static void byhand_connected(struct rl_conn *c)
{
	struct weft_offer *o = c->link.offer;
	struct rl_byhand_qp *q = c->user;

	c->link.offer = NULL;
	if (receive_hello(q, c, o->pd, o->pd_len) == RL_BYHAND_ACCEPT) {
		rl_conn_configure(c);
		c->qp->core.patient = c->link.cfg.rnr_ms;
		limit_ord(q);
	} else {
		rl_conn_withdraw(c, -EPROTO);
	}
	free(o);
}

static void byhand_ended(struct rl_conn *c)
{
	struct rl_byhand_qp *q = c->user;
	bool used = c->link.st.initiator || c->link.st.rx_fpdus;
	struct rl_qp *qp;
	bool sends;

	if (!q)
		return;
	qp = q->qp;
	rl_lock(&qp->lock);
	/* It has been released: if it is being destroyed, its rings may be gone. */
	sends = !qp->gone && weft_qpc_has_sends(&qp->core);
	if (qp->core.state != WEFT_QPS_IDLE)
		rl_byhand_stop(&q->h);
	else if (c->link.status == -ETIMEDOUT)
		rl_byhand_peer_is_dead(&q->h, sends, rl_now_ms());
	else
		rl_byhand_disconnected(&q->h, used, sends, rl_now_ms());
	set_deadline(q);
	rl_unlock(&qp->lock);
	byhand_leave(c);
}

static void byhand_dead(struct rl_conn *c)
{
	byhand_leave(c);
	free(c->link.offer);
	c->link.offer = NULL;
}

/* ---- a Request ---- */

/* The hello's QP, referenced, if it is connected by hand. */
static struct rl_byhand_qp *find_target(const struct weft_mpa_frame *f, const u8 *pd)
{
	struct rl_byhand_qp *q = NULL;
	struct rl_byhand_hello w;
	struct rl_qp *qp;

	if (!read_hello(pd, f->pd_len, &w))
		return NULL;
	qp = rl_qp_find(w.to);
	if (!qp)
		return NULL;
	rl_lock(&qp->lock);
	if (!qp->gone)
		q = qp->byhand;
	if (q)
		rl_watch_get(&q->watch);
	rl_unlock(&qp->lock);
	rl_qp_put(qp);
	return q;
}

/* The Reply and Full Operation: 0 or -errno. */
static int byhand_accept(struct rl_conn *c, struct rl_byhand_qp *q)
{
	u8 hello[RL_BYHAND_HELLO_LEN];
	u32 len, ird;
	int rv;

	rl_lock(&q->qp->lock);
	len = write_hello(q, hello);
	ird = q->path.ird;
	rl_unlock(&q->qp->lock);
	rv = rl_conn_accept(c, q->qp, ird + WEFT_ACK_READS, RL_MAX_ORD + WEFT_ACK_READS, hello,
			    len);
	if (!rv)
		limit_ord(q);
	return rv;
}

static void byhand_accept_failed(struct rl_conn *c, struct rl_byhand_qp *q)
{
	rl_conn_release_qp(c);
	rl_lock(&q->qp->lock);
	rl_byhand_disconnected(&q->h, false, false, rl_now_ms());
	set_deadline(q);
	rl_unlock(&q->qp->lock);
	byhand_leave(c);
	rl_conn_accept_failed(c);
}

/* No peer can take it away now. */
static void byhand_has(struct rl_conn *c)
{
	rl_acceptor_remove_half_open(c);
	rl_budget_leave(c);
}

static void byhand_request(struct rl_conn *c)
{
	const struct weft_mpa_frame *f = &c->link.st.frame;
	struct rl_byhand_qp *q = f->enhanced && f->p2p ? find_target(f, c->link.st.pd) : NULL;

	if (!q || receive_hello(q, c, c->link.st.pd, f->pd_len) != RL_BYHAND_ACCEPT) {
		/*
		 * A peer that does not fit yet retries. The connection stays half-open until it
		 * ends.
		 */
		rl_conn_reject(c, NULL, 0);
	} else {
		byhand_join(c, q);
		if (byhand_accept(c, q))
			byhand_accept_failed(c, q);
		else
			byhand_has(c);
		c->step_due = true;
	}
	if (q)
		rl_watch_put(&q->watch);
}

const struct rl_conn_ulp rl_byhand_ulp = {
	.by_hand = true,
	.configure = byhand_configure,
	.failed = byhand_failed,
	.connected = byhand_connected,
	.request = byhand_request,
	.ended = byhand_ended,
	.dead = byhand_dead,
};

/* ---- modify_qp ---- */

static struct rl_byhand_qp *new_byhand_qp(struct rl_qp *qp)
{
	struct rl_byhand_qp *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	rl_watch_init(&q->watch, &byhand_watch_ops);
	rl_qp_get(qp);
	q->qp = qp;
	q->dev = qp->ctx->dev;
	if (!rl_watch_begin(&q->watch))
		return q;
	rl_watch_put(&q->watch);
	return NULL;
}

int rl_byhand_qp_rtr(struct rl_qp *qp, const struct rl_byhand_path *path)
{
	struct rl_byhand_qp *q = qp->byhand ? qp->byhand : new_byhand_qp(qp);
	struct rl_byhand h = {
		.type = path->type,
		.own_qpn = qp->core.id,
		.peer_qpn = path->peer_qpn,
		.rq_psn = path->rq_psn,
	};

	if (!q)
		return -ENOMEM;
	memcpy(h.own_gid, path->own_gid, sizeof(h.own_gid));
	memcpy(h.peer_gid, path->peer_gid, sizeof(h.peer_gid));
	rl_lock(&qp->lock);
	qp->byhand = q;
	q->path = *path;
	q->h = h;
	q->generation++;
	rl_byhand_enter_rtr(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&qp->lock);
	return 0;
}

/* QP's lock. */
static void keep_send_attr(struct rl_byhand_qp *q, const struct rl_byhand_send_attr *s)
{
	q->h.sq_psn = s->sq_psn;
	q->h.timeout = s->timeout;
	q->h.retry_cnt = s->retry_cnt;
	q->h.rnr_retry = s->rnr_retry;
	q->ord = s->ord;
}

/* To the connection, if there is one. */
static void apply_send_attr(struct rl_byhand_qp *q)
{
	struct rl_conn *c = rl_qp_lock_core(q->qp);

	if (c) {
		limit_ord(q);
		/* How long the peer may be silent is known now. */
		c->step_due = true;
	}
	rl_qp_unlock_core(q->qp, c);
}

void rl_byhand_qp_rts(struct rl_qp *qp, const struct rl_byhand_send_attr *s)
{
	struct rl_byhand_qp *q = qp->byhand;
	enum rl_byhand_act act;

	rl_lock(&qp->lock);
	keep_send_attr(q, s);
	act = rl_byhand_enter_rts(&q->h, rl_now_ms());
	set_deadline(q);
	rl_unlock(&qp->lock);
	if (act == RL_BYHAND_DISCONNECT)
		rl_qp_end_connection(qp);
	apply_send_attr(q);
	byhand_run_due(q);
}

void rl_byhand_qp_sqd(struct rl_qp *qp, const struct rl_byhand_send_attr *s)
{
	struct rl_byhand_qp *q = qp->byhand;

	rl_lock(&qp->lock);
	keep_send_attr(q, s);
	rl_unlock(&qp->lock);
	apply_send_attr(q);
}

void rl_byhand_qp_stop(struct rl_qp *qp)
{
	struct rl_byhand_qp *q;

	/* weft-ctl stops a QP that another thread may be destroying. */
	rl_lock(&qp->lock);
	q = qp->byhand;
	if (q) {
		rl_byhand_stop(&q->h);
		set_deadline(q);
	}
	rl_unlock(&qp->lock);
}

void rl_byhand_qp_destroy(struct rl_qp *qp)
{
	struct rl_byhand_qp *q;

	rl_lock(&qp->lock);
	q = qp->byhand;
	qp->byhand = NULL;
	rl_unlock(&qp->lock);
	if (!q)
		return;
	rl_watch_end(&q->watch);
	rl_watch_put(&q->watch);
}

void rl_byhand_qp_posted(struct rl_qp *qp)
{
	struct rl_byhand_qp *q;

	rl_lock(&qp->lock);
	q = qp->gone ? NULL : qp->byhand;
	if (q && qp->core.by_hand && READ_ONCE(qp->core.state) == WEFT_QPS_IDLE &&
	    weft_qpc_has_sends(&qp->core)) {
		rl_byhand_posted(&q->h, rl_now_ms());
		set_deadline(q);
	}
	rl_unlock(&qp->lock);
}
