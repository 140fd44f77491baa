// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a socket becomes a connection where it stands (RFC 5044, 7.1): what the peer has said before
 * is read up to MPA's first frame, then that is the link's (core/start.c).
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "process/options.h"
#include "process/raw.h"
#include "conn.h"
#include "sockets/rules.h"

/* Without an end: the peer's program comes to it when it likes, as to a TCP connection. */
#define ACCEPT_MS 0x7fffffff

/*
 * What was sent before close() waits for a program that reads when it likes, as in TCP: it is given
 * up when so long nothing was read.
 */
u32 rl_stream_closed_ms = 60000;

/*
 * When TCP has no room. Only the program waits for the socket, and it may have other things to do.
 */
#define RETRY_MS 20

/* A queue that nothing moves for this time, and for less than twice of it, gives its pages back. */
#define IDLE_MS 100

/*
 * An initiator's program mostly calls before this time. From then on the progress thread waits for
 * the Reply: a responder may not send before it has heard of that.
 */
#define OPEN_MS 20

/* Octets that are looked at in one go. */
#define LOOK 4096

/* ---- what the connection tells ---- */

/*
 * One way of starting serves all: the options that are about QPs, RFC 7306 and Reads, are not asked
 * for.
 */
static void start_configure(const struct rl_conn *c, struct weft_link_cfg *cfg)
{
	const struct rl_stream *s = c->user;

	cfg->mpa.rev = max_t(u8, cfg->mpa.rev, 1);
	cfg->mpa.p2p = false;
	cfg->mpa.ird = cfg->mpa.ord = 0;
	cfg->accept_ms = ACCEPT_MS;
	/* The program's options of TCP decide. */
	cfg->dead_ms = 0;
	cfg->rnr_ms = 0;
	cfg->ext = false;
	if (s && s->closed && !s->unheard && s->phase == RL_STREAM_OPEN)
		cfg->close_ms = max_t(u32, cfg->close_ms, READ_ONCE(rl_stream_closed_ms));
	if (s && s->closed)
		cfg->accept_ms = READ_ONCE(rl_stream_closed_ms);
	if (!s || !s->ops)
		return;
	cfg->mpa.ird = cfg->mpa.ord = s->options.operations->reads;
	/* A Send waits for its receive as octets do in TCP for theirs. */
	cfg->rnr_ms = ACCEPT_MS;
}

static void start_fail(struct rl_stream *s, int err)
{
	if (s->phase == RL_STREAM_FAILED)
		return;
	s->phase = RL_STREAM_FAILED;
	s->over = true;
	s->error = err;
	s->half = !err && !s->closed && !s->fin_due && !s->ops;
	if (s->ops)
		s->options.operations->end(s);
}

/* TCP has ended. By RST if the other end was closed before it had read the Request. */
static bool is_end_of_all(long n)
{
	return !n || n == -ENODATA || n == -EPIPE || n == -ECONNRESET;
}

/*
 * The peer's program has closed its end unused, and this end's has sent nothing: the octets that
 * are read end, as from TCP, which knows of no Request.
 */
static bool is_closed_unused(const struct rl_conn *c)
{
	const struct rl_stream *s = c->user;
	u8 octet;

	if (c->link.status != -ECONNRESET || s->early.len || s->ops)
		return false;
	return s->unanswered ||
	       (!s->begun && is_end_of_all(rl_raw(SYS_recvfrom, c->fd, &octet, 1,
						  MSG_PEEK | MSG_DONTWAIT, NULL, NULL)));
}

static void start_failed(struct rl_conn *c)
{
	if (c->user)
		start_fail(c->user, is_closed_unused(c) ? 0 : -c->link.status);
	/* Its last words, if there are any, are the progress thread's to say. */
	rl_conn_watch(c);
}

/* Written to @p. */
static struct rl_ulp_terms own_terms(const struct rl_stream *s, u8 p[RL_STREAM_TERMS_LEN])
{
	const struct rl_stream_terms t = { .window = s->peers.window, .operations = s->ops };

	rl_stream_write_terms(p, &t);
	return (struct rl_ulp_terms){
		.pd = p, .pd_len = RL_STREAM_TERMS_LEN,
		.reads = s->ops ? s->options.operations->reads : 0,
	};
}

/* The peer wants what this end wants. */
static bool read_terms(const struct rl_stream *s, const u8 *p, u32 len, struct rl_stream_terms *t)
{
	return rl_stream_read_terms(p, len, t) && t->operations == !!s->ops;
}

static void start_connected(struct rl_conn *c)
{
	struct weft_offer *o = c->link.offer;
	struct rl_stream *s = c->user;
	struct rl_stream_terms terms;

	c->link.offer = NULL;
	if (read_terms(s, o->pd, o->pd_len, &terms))
		rl_stream_open(s, &terms);
	else
		rl_ulp_withdraw(c, -EPROTO);
	free(o);
}

static void start_request(struct rl_conn *c)
{
	struct rl_stream *s = c->user;
	u8 own[RL_STREAM_TERMS_LEN];
	const struct rl_ulp_terms t = own_terms(s, own);
	struct rl_stream_terms terms;
	int rv;

	c->step_due = true;
	if (!read_terms(s, c->link.st.pd, c->link.st.frame.pd_len, &terms)) {
		start_fail(s, EPROTO);
		rl_ulp_reject(c, &t);
		return;
	}
	rv = rl_ulp_accept(c, &s->qp, &t);
	if (!rv) {
		rl_stream_open(s, &terms);
		return;
	}
	start_fail(s, -rv);
	rl_ulp_reject(c, NULL);
}

/*
 * Why it has ended; 0: the peer has said FIN behind a whole message, as a process does that ends.
 */
static int end_error(const struct rl_stream *s, const struct rl_conn *c)
{
	const struct weft_qpc *qp = &s->qp.core;

	if (s->peer_fin && s->fin_said)
		return 0;
	if (qp->error || qp->term_received || s->wrong)
		return ECONNRESET;
	if (c->reset)
		return c->error ? -c->error : ECONNRESET;
	return s->torn ? ECONNRESET : 0;
}

static void start_ended(struct rl_conn *c)
{
	struct rl_stream *s = c->user;

	if (s) {
		s->over = true;
		s->error = s->ops ? s->options.operations->end_error(s, c) : end_error(s, c);
		s->half = !s->error && !s->closed && !s->fin_due && !s->ops;
		if (s->ops)
			s->options.operations->end(s);
		/*
		 * What came after the close is lost, and our FIN is no word of that: RST, as TCP
		 * says.
		 */
		if (s->ops && s->closed && s->qp.core.error)
			c->reset = c->step_due = true;
	}
	rl_conn_watch(c);
}

/* Why a responder's exchange ended; 0: the peer's program has asked, and closed at once. */
static int start_error(const struct rl_conn *c)
{
	if (c->link.rx_event == WEFT_RX_ERROR)
		return EPROTO;
	return c->link.rx_event == WEFT_RX_STARTUP && c->fin && !c->reset ? 0 : ECONNRESET;
}

static void start_dead(struct rl_conn *c)
{
	struct rl_stream *s = c->user;

	if (!s)
		return;
	c->user = NULL;
	c->keeps_fd = !s->closed;
	if (s->phase == RL_STREAM_STARTING)
		start_fail(s, start_error(c));
	s->over = true;
	rl_stream_news(s);
	rl_stream_put(s);
}

/* The connection's timer also serves retries: a tick may be early. */
static void plan_trim(struct rl_stream *s)
{
	if (!s->trim_at) {
		s->trim_at = rl_now_ms() + IDLE_MS;
		s->trim_seen = s->peers.sent;
		s->trim_len = s->in.len;
	}
	if (!s->conn->linger_until)
		s->conn->linger_until = s->trim_at;
}

/* One that is closed, and whose peer does not take what waits, ends as if it had been sent. */
static void plan_end(struct rl_stream *s)
{
	if (!s->end_by || s->early.from != s->end_seen) {
		s->end_by = rl_now_ms() +
			(s->unheard ? rl_options()->close_ms : READ_ONCE(rl_stream_closed_ms));
		s->end_seen = s->early.from;
	}
	if (!s->conn->linger_until)
		s->conn->linger_until = s->end_by;
}

static void end_overdue(struct rl_stream *s)
{
	if (!s->closed || !s->debt || !s->end_by || rl_now_ms() < s->end_by)
		return;
	s->debt = false;
	s->conn->reset = s->conn->step_due = true;
}

/* Apart, so that a call without any saves no registers. */
static noinline void do_chores(struct rl_stream *s)
{
	if (s->debt || s->debt_watched || s->awaits_open)
		rl_stream_pay(s);
	if (s->awaits_open && !s->debt_watched && !s->conn->linger_until)
		s->conn->linger_until = s->open_by;
	if (s->fat)
		plan_trim(s);
	if (s->closed && s->debt && s->phase == RL_STREAM_OPEN)
		plan_end(s);
}

static void settled(struct rl_conn *c)
{
	struct rl_stream *s = c->user;

	if (!s || unlikely(rl_stream_is_foreign(s)))
		return;
	if (unlikely(s->chores))
		do_chores(s);
	rl_stream_news(s);
	if (s->closed && s->fin_said && !s->ops)
		rl_ulp_leave(c);
}

static void seek_frame(struct rl_stream *s);

static bool start_is_starting(const struct rl_stream *s)
{
	return s->phase == RL_STREAM_STARTING && !s->over;
}

void rl_stream_seek_reply(struct rl_stream *s)
{
	if (!start_is_starting(s))
		return;
	if (!s->begun)
		seek_frame(s);
	/* Nothing is read any more: the exchange is not to wait for that. */
	if (s->closed)
		rl_octets_drop(&s->in, s->in.len);
	if (s->begun)
		s->conn->read_apart &= ~RL_READ_PAUSED;
}

/* The socket has news, and no call of the program's has come since. */
static void readable(struct rl_conn *c)
{
	if (c->read_apart & RL_READ_PAUSED && c->user && !rl_stream_is_foreign(c->user))
		rl_stream_seek_reply(c->user);
}

/* TCP may have room, and no call of the program's has come since. */
static void tick(struct rl_conn *c)
{
	if (!c->user || rl_stream_is_foreign(c->user))
		return;
	rl_stream_push(c->user);
	rl_stream_trim(c->user);
	end_overdue(c->user);
}

static const struct rl_conn_ulp rl_stream_ulp = {
	.configure = start_configure,
	.failed = start_failed,
	.connected = start_connected,
	.request = start_request,
	.ended = start_ended,
	.dead = start_dead,
	.settled = settled,
	.tick = tick,
	.readable = readable,
	.stays_with_thread = true,
	.one_call = true,
	.retry_ms = RETRY_MS,
};

/* ---- beginning ---- */

/* The socket's descriptor becomes the connection's, which is returned locked; NULL: no memory. */
static struct rl_conn *make_conn(struct rl_stream *s, bool initiator)
{
	struct rl_conn *c = rl_conn_new(NULL, initiator, s->fd, &rl_stream_ulp);

	s->fd = -1;
	if (!c) {
		start_fail(s, ENOMEM);
		return NULL;
	}
	c->connecting = false;
	c->user = s;
	rl_stream_get(s);
	s->conn = c;
	return c;
}

static void begin_initiator(struct rl_stream *s)
{
	struct weft_offer *offer = calloc(1, sizeof(*offer));
	struct rl_conn *c = offer ? make_conn(s, true) : NULL;
	u8 own[RL_STREAM_TERMS_LEN];
	const struct rl_ulp_terms t = own_terms(s, own);

	if (!c) {
		free(offer);
		start_fail(s, ENOMEM);
		return;
	}
	/* There may be octets in TCP that are no Reply. */
	c->read_apart |= RL_READ_PAUSED;
	s->awaits_open = !s->ops;
	s->open_by = rl_now_ms() + OPEN_MS;
	rl_ulp_start(c, &s->qp, offer, &t);
	rl_conn_unlock(c);
}

static void begin_responder(struct rl_stream *s)
{
	struct rl_conn *c = make_conn(s, false);

	if (!c)
		return;
	rl_ulp_start(c, NULL, NULL, NULL);
	rl_conn_unlock(c);
}

/*
 * An initiator says FIN: the peer's program is not to take it for a failure. What was sent waits
 * for the Reply, as it would in TCP for the peer's program to accept.
 */
void rl_stream_give_up(struct rl_stream *s)
{
	struct rl_conn *c = s->conn;

	if (s->debt && !s->over) {
		weft_link_set_deadline(&c->link, rl_now_ms(), READ_ONCE(rl_stream_closed_ms));
		return;
	}
	c->read_apart &= ~RL_READ_PAUSED;
	c->step_due = true;
	rl_ulp_withdraw(c, -ECANCELED);
}

/* ---- octets before the first frame ---- */

static bool awaits_reply(const struct rl_stream *s)
{
	return s->role == RL_STREAM_INITIATOR;
}

/*
 * The first of @n octets that a frame may begin with; @n: none. Its key makes it one, whatever is
 * behind.
 */
static u32 find_frame(const u8 *p, u32 n, bool reply)
{
	u32 i;

	for (i = 0; i < n &&
	     !weft_mpa_frame_need(p + i, min_t(u32, n - i, WEFT_MPA_KEY_LEN), reply); i++)
		;
	return i;
}

static bool is_broken(int fd)
{
	struct pollfd p = { .fd = fd };
	struct timespec now = {};

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

/* Octets of TCP go to the queue: how many, or -errno. */
static long take_before(struct rl_stream *s, int fd, u32 n)
{
	struct iovec iov[2];
	struct msghdr m = { .msg_iov = iov };
	u32 room = RL_STREAM_BEFORE - min_t(u32, s->in.len, RL_STREAM_BEFORE);
	long rv;

	n = min_t(u32, n, room);
	if (!n)
		return is_broken(fd) ? -ECONNRESET : -EAGAIN;
	m.msg_iovlen = rl_octets_places(&s->in, n, iov);
	rv = rl_raw(SYS_recvmsg, fd, &m, MSG_DONTWAIT);
	if (rv > 0)
		rl_octets_add(&s->in, rv);
	return rv;
}

/*
 * Part of a frame's key is there. The descriptor would be readable already while a caller waits for
 * the rest: by SO_RCVLOWAT it becomes so with the whole key.
 */
static void set_low_mark(struct rl_stream *s, int fd, int octets)
{
	if (s->low_mark == octets || (octets == 1 && !s->low_mark))
		return;
	s->low_mark = octets;
	rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &octets, sizeof(octets));
}

static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	struct timespec now = {};

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

/* A client whose first octets are a key's by chance waits for an answer to them. */
static bool is_late_frame(struct rl_stream *s)
{
	u64 now;

	if (!s->options.plain_allowed || awaits_reply(s) || !s->options.frame_ms)
		return false;
	now = rl_now_ms();
	if (!s->frame_by)
		s->frame_by = now + s->options.frame_ms;
	return now >= s->frame_by;
}

/* One look: 0 to look again; 1 the frame is next; or -errno, of which -EAGAIN is to wait. */
static int start_look(struct rl_stream *s, int fd)
{
	u8 p[LOOK];
	long n = rl_raw(SYS_recvfrom, fd, p, sizeof(p), MSG_PEEK | MSG_DONTWAIT, NULL, NULL), rv;
	u32 at;

	if (n < 0)
		return n;
	if (!n)
		return -ENODATA;
	at = find_frame(p, n, awaits_reply(s));
	if (!at && n >= WEFT_MPA_KEY_LEN)
		return 1;
	if (!at && !has_ended(fd) && !is_late_frame(s)) {
		set_low_mark(s, fd, WEFT_MPA_KEY_LEN);
		return -EAGAIN;
	}
	if (!at)
		at = n;
	if (s->options.plain_allowed && !awaits_reply(s))
		return -EPROTO;
	rv = take_before(s, fd, at);
	return rv < 0 ? rv : 0;
}

/* TCP is at its end, or broken, before there was a frame. */
static void no_frame(struct rl_stream *s, int err)
{
	/* The link has a Request out, and judges. */
	if (s->conn) {
		s->begun = true;
		s->unanswered = is_end_of_all(err);
		return;
	}
	if (err == -EPROTO || (err == -ENODATA && s->options.plain_allowed))
		s->phase = RL_STREAM_PLAIN;
	else if (err == -ENODATA)
		s->peer_fin = s->over = true;
	else
		start_fail(s, -err);
	if ((s->over || s->phase == RL_STREAM_PLAIN) && s->ops)
		s->options.operations->end(s);
}

static void seek_frame(struct rl_stream *s)
{
	int fd = s->conn ? s->conn->fd : s->fd, rv = 0;

	while (!rv)
		rv = start_look(s, fd);
	if (rv != -EAGAIN && rv != -EINTR) {
		set_low_mark(s, fd, 1);
		s->frame_by = 0;
	}
	if (rv > 0)
		s->begun = true;
	else if (rv != -EAGAIN && rv != -EINTR)
		no_frame(s, rv);
}

/* ---- the role ---- */

/* The name that @call tells of @fd. */
static struct rl_name name_by(long call, int fd)
{
	struct sockaddr_storage a = {};
	socklen_t len = sizeof(a);

	rl_raw(call, fd, &a, &len);
	return rl_rules_name(&a);
}

/* A rule that both ends know: the lower name initiates. */
static enum rl_stream_role role_by_names(int fd)
{
	const struct rl_name own = name_by(SYS_getsockname, fd),
		peer = name_by(SYS_getpeername, fd);
	int rv = memcmp(&own.address, &peer.address, sizeof(own.address)) ?:
		(int)own.port - (int)peer.port;

	return rv < 0 ? RL_STREAM_INITIATOR : RL_STREAM_RESPONDER;
}

/* A connection may be in other hands meanwhile: what it guards is looked at with its lock. */
void rl_stream_go_on(struct rl_stream *s)
{
	struct rl_conn *c;
	bool goes_on;

	/* Threads may be inside when the last name goes. */
	if (s->closed)
		return;
	if (!s->conn && start_is_starting(s)) {
		if (s->role == RL_STREAM_SYMMETRIC)
			s->role = role_by_names(s->fd);
		if (s->role == RL_STREAM_INITIATOR)
			begin_initiator(s);
	}
	c = s->conn;
	if (c)
		rl_conn_lock(c);
	if (!s->begun && start_is_starting(s))
		seek_frame(s);
	goes_on = s->begun && start_is_starting(s);
	if (c)
		rl_conn_unlock(c);
	if (!goes_on)
		return;
	if (!c)
		begin_responder(s);
	c = s->conn;
	if (!c)
		return;
	rl_conn_lock(c);
	c->read_apart &= ~RL_READ_PAUSED;
	rl_conn_receive(c);
	rl_conn_unlock(c);
}
