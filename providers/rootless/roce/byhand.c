// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>

#include "byhand.h"

/*
 * An end that is in RTR goes on to RTS, as a rule, and knows only then what it has to say: it waits so
 * long for that. An end that only receives may stay in RTR.
 */
#define GRACE_MS	50
/* Between attempts: a part of the time that the peer was awaited so far. */
#define PAUSE_PART	4
#define PAUSE_MIN_MS	1
#define PAUSE_MAX_MS	1000
/* TCP's handshake, lost once, takes longer than any packet of InfiniBand's. */
#define PATIENCE_MIN_MS	3000
/*
 * An end that has all it wants may go while work of the other is on its way, and the other, which has all
 * it wants, too, goes on to its end: on InfiniBand the retries last until then.
 */
#define GONE_MAX_MS	1000
/* rnr_retry: for ever. */
#define RNR_ENDLESS	7

#define MAGIC		0x77656674	/* "weft" */
#define FLAG_RTS	0x01

/* Half of a PSN proves little to who may be asked often. */
#define LIES_MAX	3

/* ---- modify_qp ---- */

#define INIT_MASK	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR_MASK	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTS_MASK	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define PATHS		(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define GO_ON		(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | PATHS)

#define RC		(1 << IBV_QPT_RC)
#define UC		(1 << IBV_QPT_UC)
#define UD		(1 << IBV_QPT_UD)

static const struct step {
	u8 from, to;
	u8 types;
	u32 required, optional;
} steps[] = {
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
	{ IBV_QPS_RTR, IBV_QPS_RTS, RC, RTS_MASK | IBV_QP_SQ_PSN, GO_ON | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, GO_ON },
	{ IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, RC, 0, GO_ON | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, UC, 0, GO_ON },
	{ IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, RC | UC | UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, RC, 0, GO_ON | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_RTS, UC, 0, GO_ON },
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

bool rl_hand_may_modify(u32 type, u32 from, u32 to, u32 mask)
{
	const struct step *s;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !mask;
	for (s = steps; s < steps + ARRAY_SIZE(steps); s++)
		if (s->from == from && s->to == to && s->types & 1u << type)
			return (mask & s->required) == s->required &&
			       !(mask & ~(s->required | s->optional));
	return false;
}

/* ---- words ---- */

void rl_hand_write_words(u8 p[RL_HAND_WORDS_LEN], const struct rl_hand_words *w)
{
	p = weft_put32(p, MAGIC);
	*p++ = RL_HAND_VERSION;
	*p++ = w->type;
	*p++ = w->rts ? FLAG_RTS : 0;
	*p++ = w->rnr_retry;
	p = weft_put32(p, w->from);
	p = weft_put32(p, w->to);
	p = weft_put16(p, w->awaited);
	weft_put16(p, w->sent);
}

u8 rl_hand_version(const u8 *p, u32 len)
{
	return len > 4 && weft_get32(p) == MAGIC ? p[4] : 0;
}

bool rl_hand_read_words(const u8 *p, u32 len, struct rl_hand_words *w)
{
	if (len != RL_HAND_WORDS_LEN || rl_hand_version(p, len) != RL_HAND_VERSION)
		return false;
	*w = (struct rl_hand_words){
		.type = p[5],
		.rts = p[6] & FLAG_RTS,
		.rnr_retry = p[7],
		.from = weft_get32(p + 8),
		.to = weft_get32(p + 12),
		.awaited = weft_get16(p + 16),
		.sent = weft_get16(p + 18),
	};
	return true;
}

/* ---- who, and when ---- */

/* By address, then by number: below 0 if this end is the lower. */
static int compare_ends(const struct rl_hand *h)
{
	int gids = memcmp(h->own_gid, h->peer_gid, sizeof(h->own_gid));

	if (gids || h->own_qpn == h->peer_qpn)
		return gids;
	return h->own_qpn < h->peer_qpn ? -1 : 1;
}

bool rl_hand_is_own(const struct rl_hand *h)
{
	return !compare_ends(h);
}

/* Who had the numbers and not the PSNs was no peer. Too often, and nobody is believed. */
static bool believes(const struct rl_hand *h)
{
	return h->lies < LIES_MAX;
}

/* Who is its own peer has nobody to hear before it may send. */
static bool initiates(const struct rl_hand *h)
{
	return rl_hand_is_own(h) ? h->rts : compare_ends(h) < 0;
}

static bool tries(const struct rl_hand *h)
{
	return h->phase == RL_HAND_APART && initiates(h) && believes(h);
}

static bool knows_all(const struct rl_hand *h, u64 now)
{
	return h->rts || now >= h->since + GRACE_MS;
}

void rl_hand_start(struct rl_hand *h, u64 now)
{
	h->phase = RL_HAND_APART;
	h->rts = false;
	h->since = now;
	h->try_at = now + GRACE_MS;
	h->give_up_at = 0;
	h->lies = 0;
	h->missed = false;
	memset(&h->peer, 0, sizeof(h->peer));
}

/* Who is its own peer hears the Request that it says. */
static bool says_request(const struct rl_hand *h)
{
	return compare_ends(h) <= 0;
}

static bool hears_request(const struct rl_hand *h)
{
	return compare_ends(h) >= 0;
}

/* The Request says one half of each PSN, the Reply the other: who hears a Request cannot tell the Reply. */
static u16 half(u32 psn, bool of_request)
{
	return of_request ? psn >> 12 & 0xfff : psn & 0xfff;
}

/* What the peer awaits is not what is sent: on InfiniBand all of it would be lost. */
static bool is_not_awaited(const struct rl_hand *h, const struct rl_hand_words *peer)
{
	return h->rts && peer->awaited != half(h->sq_psn, hears_request(h));
}

static void separate(struct rl_hand *h, u64 now)
{
	u64 pause = (now - h->since) / PAUSE_PART;

	h->phase = RL_HAND_APART;
	h->try_at = now + min_t(u64, max_t(u64, pause, PAUSE_MIN_MS), PAUSE_MAX_MS);
}

enum rl_hand_act rl_hand_go(struct rl_hand *h, u64 now)
{
	h->rts = true;
	h->try_at = min_t(u64, h->try_at, now);
	if (h->phase != RL_HAND_JOINED || !is_not_awaited(h, &h->peer))
		return RL_HAND_NOTHING;
	separate(h, now);
	return RL_HAND_PART;
}

void rl_hand_stop(struct rl_hand *h)
{
	h->phase = RL_HAND_OFF;
	h->rts = false;
	h->give_up_at = 0;
}

static u64 sooner(u64 a, u64 b)
{
	return !a || (b && b < a) ? b : a;
}

u64 rl_hand_next(const struct rl_hand *h)
{
	return sooner(h->give_up_at, tries(h) ? h->try_at : 0);
}

/* UC has no retries: who sends is not told whether somebody hears. */
static bool is_told(const struct rl_hand *h)
{
	return h->type != IBV_QPT_UC;
}

static enum rl_hand_act miss_peer(struct rl_hand *h)
{
	if (is_told(h)) {
		rl_hand_stop(h);
		return RL_HAND_GIVE_UP;
	}
	h->missed = true;
	h->give_up_at = 0;
	return RL_HAND_LOSE;
}

enum rl_hand_act rl_hand_tick(struct rl_hand *h, u64 now)
{
	if (h->give_up_at && now >= h->give_up_at)
		return miss_peer(h);
	if (!tries(h) || now < h->try_at)
		return RL_HAND_NOTHING;
	h->phase = RL_HAND_TRYING;
	return RL_HAND_CONNECT;
}

/*
 * 4.096 us * 2^timeout for each of the tries; 0 is for ever. Of a number of minutes no more than
 * milliseconds can tell.
 */
static u64 tries_ms(const struct rl_hand *h)
{
	return (4096ull << h->timeout) / 1000 * (h->retry_cnt + 1) / 1000;
}

/* Not less than TCP needs. For who has gone nobody waits long, whatever the program says. */
static u64 patience_ms(const struct rl_hand *h)
{
	if (!is_told(h))
		return h->missed || h->phase == RL_HAND_GONE ? 0 : PATIENCE_MIN_MS;
	if (h->phase != RL_HAND_GONE)
		return max_t(u64, tries_ms(h), PATIENCE_MIN_MS);
	return h->timeout ? min_t(u64, tries_ms(h), GONE_MAX_MS) : GONE_MAX_MS;
}

void rl_hand_posted(struct rl_hand *h, u64 now)
{
	bool waits = (h->phase == RL_HAND_APART || h->phase == RL_HAND_TRYING) && h->rts &&
		     (h->timeout || !is_told(h));

	if ((waits || h->phase == RL_HAND_GONE) && !h->give_up_at)
		h->give_up_at = now + patience_ms(h);
}

void rl_hand_failed(struct rl_hand *h, u64 now)
{
	if (h->phase == RL_HAND_TRYING)
		separate(h, now);
}

void rl_hand_parted(struct rl_hand *h, bool used, bool sends, u64 now)
{
	if (h->phase != RL_HAND_JOINED)
		return;
	if (used)
		h->phase = RL_HAND_GONE;
	else
		separate(h, now);
	if (sends)
		rl_hand_posted(h, now);
}

/* ---- what the ends say ---- */

void rl_hand_say(const struct rl_hand *h, struct rl_hand_words *w)
{
	*w = (struct rl_hand_words){
		.type = h->type,
		.rts = h->rts,
		.rnr_retry = h->rts && h->type == IBV_QPT_RC ? h->rnr_retry : RNR_ENDLESS,
		.from = h->own_qpn,
		.to = h->peer_qpn,
		.awaited = half(h->rq_psn, says_request(h)),
		.sent = h->rts ? half(h->sq_psn, says_request(h)) : 0,
	};
}

static bool is_the_peer(const struct rl_hand *h, const struct rl_hand_words *w, const u8 own[16],
			const u8 peer[16])
{
	return w->type == h->type && w->from == h->peer_qpn && w->to == h->own_qpn &&
	       !memcmp(own, h->own_gid, sizeof(h->own_gid)) &&
	       !memcmp(peer, h->peer_gid, sizeof(h->peer_gid));
}

/* Each end's PSN must be the one that the other awaits, as far as they are known and said. */
static bool psns_fit(const struct rl_hand *h, const struct rl_hand_words *w)
{
	if (rl_hand_is_own(h) && h->rq_psn != h->sq_psn)
		return false;
	return !is_not_awaited(h, w) && (!w->rts || w->sent == half(h->rq_psn, hears_request(h)));
}

static bool is_listening(const struct rl_hand *h)
{
	if (h->phase == RL_HAND_APART)
		return !initiates(h) && !rl_hand_is_own(h) && believes(h);
	return h->phase == RL_HAND_TRYING;
}

enum rl_hand_verdict rl_hand_hear(struct rl_hand *h, const struct rl_hand_words *w,
				  const u8 own[16], const u8 peer[16], u64 now)
{
	if (h->phase == RL_HAND_OFF)
		return RL_HAND_NOT_YET;
	if (!is_listening(h) || !is_the_peer(h, w, own, peer))
		return RL_HAND_WRONG;
	if (!psns_fit(h, w)) {
		h->lies++;
		return RL_HAND_WRONG;
	}
	/* Of two who may not send yet neither can tell by a PSN who the other is. */
	if (!knows_all(h, now) || (!h->rts && !w->rts))
		return RL_HAND_NOT_YET;
	h->peer = *w;
	h->phase = RL_HAND_JOINED;
	h->give_up_at = 0;
	h->missed = false;
	return RL_HAND_FITS;
}

/* InfiniBand's encoding of the RNR NAK timer, in units of 10 us. */
static const u16 rnr_times[32] = {
	65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

u32 rl_hand_patience(const struct rl_hand *h, u8 min_rnr_timer)
{
	u32 time = rnr_times[min_rnr_timer & 31];

	if (h->peer.rnr_retry >= RNR_ENDLESS)
		return ~0u;
	return DIV_ROUND_UP(time * h->peer.rnr_retry, 100);
}
