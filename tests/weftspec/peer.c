/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "bytes.h"
#include "lint.h"
#include "peer.h"
#include "refl.h"

#define DEFAULT_IRD 16

void hs_default(struct ctx *c, struct hs *h)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->key, c->role == ROLE_R ? mpa_key_req : mpa_key_rep, MPA_KEY);
	h->rev = c->o->rev;
	h->flags = c->o->no_crc ? 0 : MPA_C;
	if (h->rev >= 2)
		h->flags |= MPA_S;
	h->enh = (struct mpa_enh){ .ird = DEFAULT_IRD, .ord = DEFAULT_IRD };
	if (c->o->p2p && h->rev >= 2)
		h->enh.a = h->enh.b = h->enh.c = h->enh.d = true;
	h->pd_claim = -1;
}

void hs_v1(struct ctx *c, struct hs *h)
{
	hs_default(c, h);
	h->rev = 1;
	h->flags &= ~MPA_S;
}

static bool want_bytes(struct stream *s, size_t n, double end)
{
	while (s->k->rx_len < n) {
		int left = (int)((end - now()) * 1000);

		if (left <= 0 || s->k->state != CONN_UP)
			return false;
		conn_recv(s->k, left);
	}
	return true;
}

/* The tester's own QP, as its number says, is at its listener, or nowhere. */
static uint32_t own_qpn(const struct stream *s)
{
	return s->c->role == ROLE_R ? 2 : (uint32_t)s->c->lport << 8 | (s->id & 0xff);
}

/* What modify_qp takes, and the table. */
static struct stream *meet(struct ctx *c)
{
	uint8_t said[REFL_REQUEST_LEN + 8], heard[8 + REFL_TABLE_LEN];
	struct dial d = { .host = c->o->host, .port = c->o->port,
			  .timeout_ms = c->o->timeout_ms };
	struct conn *k = conn_dial(&d);
	struct stream *s;

	if (!k)
		unreachable(c, "connect: %s", strerror(errno));
	s = stream_new(c, k);
	s->hand.own_qpn = own_qpn(s);
	s->hand.own_psn = rnd(c) & 0xffffff;
	/* As one that was started to connect, the reflector says HELLO. */
	if (c->role == ROLE_I)
		c->refl_flags |= REFL_F_EARLY;
	put32(put32(refl_request(c, said), s->hand.own_qpn), s->hand.own_psn);
	conn_send(k, said, sizeof(said), c->o->timeout_ms);
	if (!want_bytes(s, sizeof(heard), now() + c->o->timeout_ms / 1000.0))
		unreachable(c, "the reflector does not say its QP");
	memcpy(heard, k->rx, sizeof(heard));
	s->hand.qpn = get32(heard);
	s->hand.psn = get32(heard + 4);
	refl_take_table(s, heard + 8, REFL_TABLE_LEN);
	return s;
}

static struct stream *dial_by_hand(struct ctx *c)
{
	struct stream *s = meet(c);
	char port[12];
	struct conn *k;
	struct dial d = { .host = c->o->host, .port = port,
			  .timeout_ms = c->o->timeout_ms, .maxseg = c->maxseg,
			  .rcvbuf = c->rcvbuf, .set_isn = c->set_isn,
			  .isn = c->isn };

	snprintf(port, sizeof(port), "%u", s->hand.qpn >> 8);
	k = conn_dial(&d);
	if (!k)
		unreachable(c, "connect: %s", strerror(errno));
	/* Where they met stays open, for as long as the case lasts. */
	s->k = k;
	return s;
}

struct stream *dial(struct ctx *c)
{
	struct dial d = { .host = c->o->host, .port = c->o->port,
			  .timeout_ms = c->o->timeout_ms, .maxseg = c->maxseg,
			  .rcvbuf = c->rcvbuf, .set_isn = c->set_isn,
			  .isn = c->isn };
	struct conn *k;

	if (c->o->by_hand)
		return dial_by_hand(c);
	k = conn_dial(&d);
	if (!k && c->set_isn && (errno == EPERM || errno == EINVAL))
		skip(c, "choosing the first sequence number takes CAP_NET_ADMIN");
	if (!k)
		unreachable(c, "connect: %s", strerror(errno));
	return stream_new(c, k);
}

/* The half of a PSN that a Request has, or a Reply. */
static uint16_t half_of(uint32_t psn, bool in_request)
{
	return in_request ? psn >> 12 & 0xfff : psn & 0xfff;
}

/* What a device says in its Request or Reply whose QP is connected by hand. */
static uint8_t *hand_words(const struct stream *s, uint8_t *p)
{
	p = put32(p, REFL_HAND_MAGIC);
	*p++ = REFL_HAND_VERSION;
	*p++ = REFL_HAND_RC;
	*p++ = REFL_HAND_RTS | (s->c->o->large_fpdus ? REFL_HAND_LARGE : 0);
	*p++ = 0;
	p = put32(p, s->hand.own_qpn);
	p = put32(p, s->hand.qpn);
	p = put16(p, half_of(s->hand.psn, s->c->role == ROLE_R));
	return put16(p, half_of(s->hand.own_psn, s->c->role == ROLE_R));
}

/* The peer's frame proves that it knows both PSNs. Before RTS its send PSN is 0. */
static bool hand_is_proven(const struct stream *s)
{
	const uint8_t *p = s->pd + (s->enhanced ? MPA_ENH : 0);
	bool in_request = s->c->role == ROLE_I;
	bool rts = p[6] & REFL_HAND_RTS;

	return s->pd_len == (size_t)(p - s->pd) + REFL_HAND_LEN && get32(p) == REFL_HAND_MAGIC &&
	       p[4] == REFL_HAND_VERSION && (in_request || rts) &&
	       get32(p + 8) == s->hand.qpn && get32(p + 12) == s->hand.own_qpn &&
	       get16(p + 16) == half_of(s->hand.own_psn, in_request) &&
	       get16(p + 18) == (rts ? half_of(s->hand.psn, in_request) : 0);
}

/* Private data after the enhanced words: the caller's or REQUEST. */
static uint8_t *frame_pd(struct stream *s, uint8_t *p, const struct hs *h)
{
	struct ctx *c = s->c;

	if (h->no_pd)
		return p;
	if (h->pd) {
		memcpy(p, h->pd, h->pd_len);
		return p + h->pd_len;
	}
	if (c->o->by_hand)
		return hand_words(s, p);
	memcpy(p, c->o->pd, c->o->pd_len);
	return c->o->no_reflector ? p + c->o->pd_len : refl_request(c, p);
}

static void frame_say(struct ctx *c, char dir, int id, const char *what,
		      const struct mpa_frame *f, const struct mpa_enh *e)
{
	char enh[80] = "";

	if (f->flags & MPA_S && e)
		snprintf(enh, sizeof(enh), " A%d B%d C%d D%d IRD=%u ORD=%u",
			 e->a, e->b, e->c, e->d, e->ird, e->ord);
	say(c, "%c [%d] MPA %s M%d C%d R%d S%d Rev=%u PD=%u%s", dir, id, what,
	    !!(f->flags & MPA_M), !!(f->flags & MPA_C), !!(f->flags & MPA_R),
	    !!(f->flags & MPA_S), f->rev, f->pd_len, enh);
}

void send_frame(struct stream *s, const struct hs *h)
{
	static uint8_t buf[MPA_HEAD + 70000];
	struct mpa_frame *f = &s->mine;
	uint8_t *p = buf + MPA_HEAD;
	size_t len;

	memcpy(f->key, h->key, MPA_KEY);
	f->flags = h->flags;
	f->rev = h->rev;
	s->my_enh = h->enh;
	/* Rev 1 has no S: then the bit is a reserved one and no words follow. */
	if (f->flags & MPA_S && f->rev >= 2 && !h->no_pd)
		p = mpa_enh_encode(p, &h->enh);
	p = frame_pd(s, p, h);
	f->pd_len = h->pd_claim >= 0 ? h->pd_claim : p - buf - MPA_HEAD;
	mpa_encode(buf, f);
	len = p - buf;
	if (h->cut)
		len = h->cut < len ? h->cut : len;
	frame_say(s->c, '<', s->id, s->c->role == ROLE_R ? "Request" : "Reply",
		  f, &h->enh);
	put_bytes(s, buf, len);
	if (h->tail_len)
		put_bytes(s, h->tail, h->tail_len);
	if (h->bytewise)
		shoot_each(s, 1, 2);
	else if (h->split)
		shoot_cut(s, h->split, 50);
	else
		shoot(s);
}

static enum reply no_frame(struct stream *s)
{
	if (s->k->rx_len)
		say(s->c, "> [%d] %zu octets that are no whole frame", s->id,
		    s->k->rx_len);
	if (s->k->state == CONN_UP)
		return s->k->rx_len ? REPLY_JUNK : REPLY_QUIET;
	say(s->c, "> [%d] %s", s->id, s->k->state == CONN_FIN ? "FIN" : "RST");
	return s->k->rx_len ? REPLY_JUNK : REPLY_CLOSED;
}

enum reply read_frame(struct stream *s, int ms)
{
	double end = now() + ms / 1000.0;
	const uint8_t *want = s->c->role == ROLE_R ? mpa_key_rep : mpa_key_req;
	bool req = s->c->role == ROLE_I;

	if (!want_bytes(s, MPA_HEAD, end))
		return no_frame(s);
	mpa_decode(s->k->rx, &s->theirs);
	lint(s->c, req ? "MPA-03" : "MPA-04",
	     !memcmp(s->theirs.key, want, MPA_KEY), "key %.16s", s->k->rx);
	if (memcmp(s->theirs.key, want, MPA_KEY))
		return REPLY_JUNK;
	if (!want_bytes(s, MPA_HEAD + s->theirs.pd_len, end))
		return no_frame(s);
	s->pd_len = s->theirs.pd_len;
	memcpy(s->pd, s->k->rx + MPA_HEAD, s->pd_len);
	conn_take(s->k, MPA_HEAD + s->pd_len);
	s->enhanced = s->theirs.flags & MPA_S && s->theirs.rev >= 2 &&
		      s->pd_len >= MPA_ENH;
	if (s->enhanced)
		mpa_enh_decode(s->pd, &s->their_enh);
	frame_say(s->c, '>', s->id, req ? "Request" : "Reply", &s->theirs,
		  s->enhanced ? &s->their_enh : NULL);
	lint_frame(s);
	refl_read_table(s);
	return s->theirs.flags & MPA_R ? REPLY_REJECT : REPLY_OK;
}

static void send_rtr(struct stream *s)
{
	const struct mpa_enh *e = &s->their_enh;
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g;

	if (e->c)
		g = mk_write(SINK_STAG, 0, NULL, 0);
	else if (e->d)
		g = mk_read(s, hdr, SINK_STAG, 0, 0);
	else
		g = mk_send(s, NULL, 0);
	send_seg(s, &g);
}

static void drain_rtr_answer(struct stream *s)
{
	if (s->their_enh.d && !s->their_enh.c)
		receive(s, s->c->o->patience_ms);
}

struct stream *try_hs(struct ctx *c, const struct hs *h, enum reply *how)
{
	struct stream *s = dial(c);
	struct hs def;

	if (!h) {
		hs_default(c, &def);
		h = &def;
	}
	send_frame(s, h);
	*how = read_frame(s, c->o->timeout_ms);
	if (*how == REPLY_OK)
		stream_start(s);
	return s;
}

struct stream *open_hs(struct ctx *c, const struct hs *h)
{
	static const char *const got[] = {
		[REPLY_REJECT] = "Reply with R=1",
		[REPLY_CLOSED] = "the connection was closed",
		[REPLY_QUIET] = "no answer", [REPLY_JUNK] = "no MPA Reply",
	};
	enum reply how;
	struct stream *s = try_hs(c, h, &how);

	if (how != REPLY_OK)
		fail(c, "the Request is accepted", "%s", got[how]);
	if (c->o->by_hand && !hand_is_proven(s))
		fail(c, "a Reply that has the other halves of the PSNs", "it has not");
	if (s->enhanced && s->their_enh.a && s->my_enh.a) {
		send_rtr(s);
		drain_rtr_answer(s);
	}
	return s;
}

static char *expand_command(const char *cmd, int port, const char *args)
{
	char *out = calloc(1, strlen(cmd) + strlen(args) + 64), *p = out;

	for (; out && *cmd; cmd++) {
		if (!strncmp(cmd, "{port}", 6)) {
			p += sprintf(p, "%d", port);
			cmd += 5;
		} else if (!strncmp(cmd, "{args}", 6)) {
			p += sprintf(p, "%s", args);
			cmd += 5;
		} else {
			*p++ = *cmd;
		}
	}
	return out;
}

static void start_peer(struct ctx *c, const char *args)
{
	char *cmd = expand_command(c->o->exec, c->lport, args);

	say(c, "- start: %s", cmd);
	c->peer = fork();
	if (!c->peer) {
		int null = open("/dev/null", O_RDWR);

		setpgid(0, 0);
		dup2(null, 0);
		dup2(null, 1);
		if (!c->o->verbose)
			dup2(null, 2);
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	setpgid(c->peer, c->peer);
	free(cmd);
}

void stop_peer(struct ctx *c)
{
	if (c->peer > 0) {
		kill(-c->peer, SIGTERM);
		nap_ms(20);
		kill(-c->peer, SIGKILL);
		waitpid(c->peer, NULL, 0);
	}
	c->peer = 0;
	if (c->lfd >= 0)
		close(c->lfd);
	c->lfd = -1;
}

static void need_request(struct stream *s)
{
	if (read_frame(s, s->c->o->timeout_ms) != REPLY_OK)
		fail(s->c, "an MPA Request", "none came");
}

/* The QPs' numbers are right: it is no QP of a case before, which looks for one that had this port. */
static bool hand_is_meant(const struct stream *s)
{
	const uint8_t *p = s->pd + (s->enhanced ? MPA_ENH : 0);

	return s->pd_len == (size_t)(p - s->pd) + REFL_HAND_LEN && get32(p + 8) == s->hand.qpn &&
	       get32(p + 12) == s->hand.own_qpn;
}

static struct stream *take_by_hand(struct ctx *c)
{
	struct stream *s = meet(c);
	double end = now() + c->o->timeout_ms / 1000.0;

	for (;;) {
		struct conn *k = conn_accept(c->lfd, c->o->timeout_ms);

		if (!k || now() > end)
			unreachable(c, "QP %#x does not connect to %#x, which should be the higher",
				    s->hand.qpn, s->hand.own_qpn);
		s->k = k;
		need_request(s);
		if (hand_is_meant(s))
			break;
		/* Its memory goes with the case, which has it until the next comes. */
		conn_rst(k);
	}
	if (!hand_is_proven(s)) {
		const uint8_t *p = s->pd + (s->enhanced ? MPA_ENH : 0);

		fail(c, "a Request that has the upper halves of the PSNs", "awaited %03x, sent %03x; they are %06x and %06x",
		     get16(p + 16), get16(p + 18), s->hand.own_psn, s->hand.psn);
	}
	return s;
}

struct stream *take_another(struct ctx *c)
{
	struct stream *s;
	struct conn *k;

	if (c->o->by_hand)
		return take_by_hand(c);
	k = conn_accept(c->lfd, c->o->timeout_ms);
	if (!k)
		unreachable(c, "the peer that was started does not connect");
	s = stream_new(c, k);
	need_request(s);
	return s;
}

struct stream *take_request(struct ctx *c, const char *args)
{
	const char *port = c->o->exec && strstr(c->o->exec, "{port}") ? "0" : c->o->listen;

	if (c->lfd < 0) {
		c->lfd = conn_listen(port, &c->lport, c->maxseg);
		if (c->lfd < 0)
			unreachable(c, "listen on %s: %s", port, strerror(errno));
		if (strcmp(port, "0"))
			c->lport = atoi(port);
	}
	if (c->o->by_hand)
		return take_another(c);
	if (*args && !strstr(c->o->exec, "{args}"))
		skip(c, "--exec has no {args} to pass '%s' with", args);
	start_peer(c, args);
	return take_another(c);
}

void answer_default(struct stream *s, struct hs *h)
{
	const struct mpa_enh *e = &s->their_enh;

	hs_default(s->c, h);
	h->rev = s->theirs.rev < 2 ? s->theirs.rev : 2;
	if (!s->enhanced)
		h->flags &= ~MPA_S;
	h->enh = (struct mpa_enh){ .a = e->a, .c = e->a && e->c };
	h->enh.d = e->a && !e->c && e->d;
	h->enh.b = e->a && !e->c && !e->d;
	h->enh.ird = e->ord < DEFAULT_IRD ? DEFAULT_IRD : e->ord & 0x3fff;
	if (e->ord == MPA_NO_NEGOTIATION)
		h->enh.ird = MPA_NO_NEGOTIATION;
	h->enh.ord = e->ird < DEFAULT_IRD ? e->ird : DEFAULT_IRD;
}

void answer_only(struct stream *s, const struct hs *h)
{
	struct hs def;

	if (!h) {
		answer_default(s, &def);
		h = &def;
	}
	send_frame(s, h);
	stream_start(s);
}

bool take_rtr(struct stream *s, int ms)
{
	struct rreq r;
	struct seg g;

	if (receive(s, ms) != RX_FPDU)
		return false;
	if (s->m.s.op != OP_READ_REQ || s->m.s.len < RDMA_READ_LEN)
		return true;
	rreq_decode(s->m.s.data, &r);
	g = mk_resp(&r, 0, NULL, 0, true);
	send_seg(s, &g);
	return true;
}

void answer(struct stream *s, const struct hs *h)
{
	int ms = s->c->o->timeout_ms;

	answer_only(s, h);
	if (s->enhanced && s->their_enh.a && s->my_enh.a && !take_rtr(s, ms))
		fail(s->c, "an RTR message as first FPDU", "none came");
	if (s->t.valid && !refl_take_hello(s))
		fail(s->c, "the reflector's HELLO", "none came");
}

static void need_table(struct stream *s)
{
	if (!s->t.valid)
		skip(s->c, "the peer has no reflector behind it");
}

struct stream *full_hs(struct ctx *c, const struct hs *h)
{
	struct stream *s;

	if (c->role == ROLE_R) {
		s = open_hs(c, h);
	} else {
		s = take_request(c, "");
		need_table(s);
		answer(s, h);
	}
	if (c->w->needs & N_ULP)
		need_table(s);
	return s;
}

struct stream *full(struct ctx *c)
{
	return full_hs(c, NULL);
}

void pair(struct ctx *c, struct stream **a, struct stream **b)
{
	if (c->role == ROLE_R) {
		*a = full(c);
		*b = full(c);
		return;
	}
	*a = take_request(c, "--conns 2");
	need_table(*a);
	answer(*a, NULL);
	*b = take_another(c);
	answer(*b, NULL);
}
