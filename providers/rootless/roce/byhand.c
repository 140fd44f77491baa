// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>

#include "byhand.h"
#include "kernel/core/link_types.h"

/*
 * An end in RTR usually enters RTS soon, and only then knows all of its hello: it waits so long for
 * that. An end that only receives may stay in RTR.
 */
#define GRACE_MS	50
/* Between attempts: a fraction of the time since RTR. */
#define PAUSE_DIVISOR	4
#define PAUSE_MIN_MS	1
#define PAUSE_MAX_MS	1000
/* A TCP handshake with one loss takes longer than any InfiniBand packet. */
#define TIMEOUT_MIN_MS	3000
/*
 * An end that has its data may exit while work of the other is in flight. The other, which has its
 * data, too, is about to end: on InfiniBand the retries last until then.
 */
#define GONE_MAX_MS	1000
/* rnr_retry without limit. */
#define RNR_ENDLESS	7

#define MAGIC		0x77656674	/* "weft" */
/* Versions that do not know a flag ignore it. */
#define FLAG_RTS	0x01
#define FLAG_LARGE_FPDUS 0x02

/* Half of a PSN can be guessed by an attacker with many tries. */
#define BAD_PSNS_MAX	3

/* ---- modify_qp ---- */

#define INIT_MASK	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR_MASK	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTS_MASK	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_MAX_QP_RD_ATOMIC)
#define PATHS		(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define OPTIONAL		(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | PATHS)

#define RC		(1 << IBV_QPT_RC)
#define UC		(1 << IBV_QPT_UC)
#define UD		(1 << IBV_QPT_UD)

static const struct transition {
	u8 from, to;
	u8 types;
	u32 required, optional;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, RC | UC, INIT_MASK | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_RESET, IBV_QPS_INIT, UD, INIT_MASK | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, RC | UC, 0, INIT_MASK | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, INIT_MASK | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RC,
	  RTR_MASK | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_INIT, IBV_QPS_RTR, UC, RTR_MASK,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, RC, RTS_MASK | IBV_QP_SQ_PSN, OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, RC, 0, OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, UC, 0, OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, RC | UC | UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, RC, 0, OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_RTS, UC, 0, OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, RC, 0,
	  RTS_MASK | IBV_QP_PORT | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, UC, 0,
	  IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | PATHS },
	{ IBV_QPS_SQD, IBV_QPS_SQD, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_SQE, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

bool rl_byhand_may_modify(u32 type, u32 from, u32 to, u32 mask)
{
	const struct transition *s;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !mask;
	for (s = transitions; s < transitions + ARRAY_SIZE(transitions); s++)
		if (s->from == from && s->to == to && s->types & 1u << type)
			return (mask & s->required) == s->required &&
			       !(mask & ~(s->required | s->optional));
	return false;
}

/* ---- the hello ---- */

void rl_byhand_write_hello(u8 p[RL_BYHAND_HELLO_LEN], const struct rl_byhand_hello *w)
{
	p = weft_put32(p, MAGIC);
	*p++ = RL_BYHAND_VERSION;
	*p++ = w->type;
	*p++ = (w->rts ? FLAG_RTS : 0) | (w->large_fpdus ? FLAG_LARGE_FPDUS : 0);
	*p++ = w->rnr_retry;
	p = weft_put32(p, w->from);
	p = weft_put32(p, w->to);
	p = weft_put16(p, w->awaited);
	weft_put16(p, w->sent);
}

u8 rl_byhand_hello_version(const u8 *p, u32 len)
{
	return len > 4 && weft_get32(p) == MAGIC ? p[4] : 0;
}

bool rl_byhand_read_hello(const u8 *p, u32 len, struct rl_byhand_hello *w)
{
	if (len != RL_BYHAND_HELLO_LEN || rl_byhand_hello_version(p, len) != RL_BYHAND_VERSION)
		return false;
	*w = (struct rl_byhand_hello){
		.type = p[5],
		.rts = p[6] & FLAG_RTS,
		.large_fpdus = p[6] & FLAG_LARGE_FPDUS,
		.rnr_retry = p[7],
		.from = weft_get32(p + 8),
		.to = weft_get32(p + 12),
		.awaited = weft_get16(p + 16),
		.sent = weft_get16(p + 18),
	};
	return true;
}

/* ---- which end connects, and when ---- */

/* By address, then by number: below 0 if this end is lower. */
static int compare_ends(const struct rl_byhand *h)
{
	int gids = memcmp(h->own_gid, h->peer_gid, sizeof(h->own_gid));

	if (gids || h->own_qpn == h->peer_qpn)
		return gids;
	return h->own_qpn < h->peer_qpn ? -1 : 1;
}

bool rl_byhand_is_self(const struct rl_byhand *h)
{
	return !compare_ends(h);
}

/* After too many hellos with wrong PSNs none is accepted. */
static bool trusts_peer(const struct rl_byhand *h)
{
	return h->bad_psns < BAD_PSNS_MAX;
}

/* The lower end initiates. A QP that is its own peer does so once it may send. */
static bool is_initiator(const struct rl_byhand *h)
{
	return rl_byhand_is_self(h) ? h->rts : compare_ends(h) < 0;
}

static bool may_connect(const struct rl_byhand *h)
{
	return h->phase == RL_BYHAND_UNCONNECTED && is_initiator(h) && trusts_peer(h);
}

static bool knows_send_attr(const struct rl_byhand *h, u64 now)
{
	return h->rts || now >= h->since + GRACE_MS;
}

void rl_byhand_enter_rtr(struct rl_byhand *h, u64 now)
{
	h->phase = RL_BYHAND_UNCONNECTED;
	h->rts = false;
	h->since = now;
	h->connect_at = now + GRACE_MS;
	h->give_up_at = 0;
	h->bad_psns = 0;
	h->timed_out = false;
	memset(&h->peer, 0, sizeof(h->peer));
}

/* A QP that is its own peer receives its own Request. */
static bool sends_request(const struct rl_byhand *h)
{
	return compare_ends(h) <= 0;
}

static bool receives_request(const struct rl_byhand *h)
{
	return compare_ends(h) >= 0;
}

/*
 * The Request has one half of each PSN, the Reply the other: a Request does not give the Reply
 * away.
 */
static u16 psn_half(u32 psn, bool of_request)
{
	return of_request ? psn >> 12 & 0xfff : psn & 0xfff;
}

/* The peer expects another PSN than is sent: on InfiniBand all packets would be dropped. */
static bool psn_mismatches(const struct rl_byhand *h, const struct rl_byhand_hello *peer)
{
	return h->rts && peer->awaited != psn_half(h->sq_psn, receives_request(h));
}

static void disconnect(struct rl_byhand *h, u64 now)
{
	u64 pause = (now - h->since) / PAUSE_DIVISOR;

	h->phase = RL_BYHAND_UNCONNECTED;
	h->connect_at = now + min_t(u64, max_t(u64, pause, PAUSE_MIN_MS), PAUSE_MAX_MS);
}

enum rl_byhand_act rl_byhand_enter_rts(struct rl_byhand *h, u64 now)
{
	h->rts = true;
	h->connect_at = min_t(u64, h->connect_at, now);
	if (h->phase != RL_BYHAND_CONNECTED || !psn_mismatches(h, &h->peer))
		return RL_BYHAND_NOTHING;
	disconnect(h, now);
	return RL_BYHAND_DISCONNECT;
}

void rl_byhand_stop(struct rl_byhand *h)
{
	h->phase = RL_BYHAND_OFF;
	h->rts = false;
	h->give_up_at = 0;
}

u64 rl_byhand_deadline(const struct rl_byhand *h)
{
	return weft_earlier(h->give_up_at, may_connect(h) ? h->connect_at : 0);
}

/* UC has no retries: the sender does not learn whether anything arrives. */
static bool has_retries(const struct rl_byhand *h)
{
	return h->type != IBV_QPT_UC;
}

static enum rl_byhand_act time_out(struct rl_byhand *h)
{
	if (has_retries(h)) {
		rl_byhand_stop(h);
		return RL_BYHAND_GIVE_UP;
	}
	h->timed_out = true;
	h->give_up_at = 0;
	return RL_BYHAND_DROP_SENDS;
}

enum rl_byhand_act rl_byhand_tick(struct rl_byhand *h, u64 now)
{
	if (h->give_up_at && now >= h->give_up_at)
		return time_out(h);
	if (!may_connect(h) || now < h->connect_at)
		return RL_BYHAND_NOTHING;
	h->phase = RL_BYHAND_CONNECTING;
	return RL_BYHAND_CONNECT;
}

/* 4.096 us * 2^timeout for each try; timeout 0 is for ever. */
static u64 retries_ms(const struct rl_byhand *h)
{
	return (4096ull << h->timeout) / 1000 * (h->retry_cnt + 1) / 1000;
}

/* At least what TCP needs. Short if the peer has gone, whatever the program asks for. */
static u64 timeout_ms(const struct rl_byhand *h)
{
	if (!has_retries(h))
		return h->timed_out || h->phase == RL_BYHAND_GONE ? 0 : TIMEOUT_MIN_MS;
	if (h->phase != RL_BYHAND_GONE)
		return max_t(u64, retries_ms(h), TIMEOUT_MIN_MS);
	return h->timeout ? min_t(u64, retries_ms(h), GONE_MAX_MS) : GONE_MAX_MS;
}

u32 rl_byhand_dead_ms(const struct rl_byhand *h, u32 otherwise)
{
	if (!has_retries(h) || !h->rts || !h->timeout)
		return otherwise;
	return (u32)min_t(u64, timeout_ms(h), ~0u);
}

void rl_byhand_posted(struct rl_byhand *h, u64 now)
{
	bool seeks = h->phase == RL_BYHAND_UNCONNECTED || h->phase == RL_BYHAND_CONNECTING;
	bool waits = seeks && h->rts && (h->timeout || !has_retries(h));

	if ((waits || h->phase == RL_BYHAND_GONE) && !h->give_up_at)
		h->give_up_at = now + timeout_ms(h);
}

void rl_byhand_connect_failed(struct rl_byhand *h, u64 now)
{
	if (h->phase == RL_BYHAND_CONNECTING)
		disconnect(h, now);
}

void rl_byhand_disconnected(struct rl_byhand *h, bool used, bool sends, u64 now)
{
	if (h->phase != RL_BYHAND_CONNECTED)
		return;
	if (used)
		h->phase = RL_BYHAND_GONE;
	else
		disconnect(h, now);
	if (sends)
		rl_byhand_posted(h, now);
}

void rl_byhand_peer_is_dead(struct rl_byhand *h, bool sends, u64 now)
{
	if (h->phase != RL_BYHAND_CONNECTED)
		return;
	if (sends && has_retries(h)) {
		h->phase = RL_BYHAND_GONE;
		h->give_up_at = now;
		return;
	}
	disconnect(h, now);
	if (sends)
		rl_byhand_posted(h, now);
}

/* ---- exchanging hellos ---- */

void rl_byhand_make_hello(const struct rl_byhand *h, struct rl_byhand_hello *w)
{
	*w = (struct rl_byhand_hello){
		.type = h->type,
		.rts = h->rts,
		.large_fpdus = true,
		.rnr_retry = h->rts && h->type == IBV_QPT_RC ? h->rnr_retry : RNR_ENDLESS,
		.from = h->own_qpn,
		.to = h->peer_qpn,
		.awaited = psn_half(h->rq_psn, sends_request(h)),
		.sent = h->rts ? psn_half(h->sq_psn, sends_request(h)) : 0,
	};
}

static bool is_peer(const struct rl_byhand *h, const struct rl_byhand_hello *w, const u8 own[16],
			const u8 peer[16])
{
	return w->type == h->type && w->from == h->peer_qpn && w->to == h->own_qpn &&
	       !memcmp(own, h->own_gid, sizeof(h->own_gid)) &&
	       !memcmp(peer, h->peer_gid, sizeof(h->peer_gid));
}

/* Each end's PSN must be the one that the other expects, as far as both are known. */
static bool psns_fit(const struct rl_byhand *h, const struct rl_byhand_hello *w)
{
	if (rl_byhand_is_self(h) && h->rq_psn != h->sq_psn)
		return false;
	return !psn_mismatches(h, w) &&
	       (!w->rts || w->sent == psn_half(h->rq_psn, receives_request(h)));
}

static bool awaits_hello(const struct rl_byhand *h)
{
	if (h->phase == RL_BYHAND_UNCONNECTED)
		return !is_initiator(h) && !rl_byhand_is_self(h) && trusts_peer(h);
	return h->phase == RL_BYHAND_CONNECTING;
}

enum rl_byhand_verdict rl_byhand_receive_hello(struct rl_byhand *h, const struct rl_byhand_hello *w,
				  const u8 own[16], const u8 peer[16], u64 now)
{
	if (h->phase == RL_BYHAND_OFF)
		return RL_BYHAND_NOT_YET;
	if (!awaits_hello(h) || !is_peer(h, w, own, peer))
		return RL_BYHAND_REJECT;
	if (!psns_fit(h, w)) {
		h->bad_psns++;
		return RL_BYHAND_REJECT;
	}
	/* If neither end may send yet, no PSN authenticates the other. */
	if (!knows_send_attr(h, now) || (!h->rts && !w->rts))
		return RL_BYHAND_NOT_YET;
	h->peer = *w;
	h->phase = RL_BYHAND_CONNECTED;
	h->give_up_at = 0;
	h->timed_out = false;
	return RL_BYHAND_ACCEPT;
}

/* InfiniBand's encoding of the RNR NAK timer, in units of 10 us. */
static const u16 rnr_times[32] = {
	65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

u32 rl_byhand_rnr_timeout(const struct rl_byhand *h, u8 min_rnr_timer)
{
	u32 time = rnr_times[min_rnr_timer & 31];

	if (h->peer.rnr_retry >= RNR_ENDLESS)
		return ~0u;
	return DIV_ROUND_UP(time * h->peer.rnr_retry, 100);
}
