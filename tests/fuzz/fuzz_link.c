// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection with any events in any order: octets cut anywhere, FIN, RST, time, a ULP that
 * answers, closes or destroys its QP, a TCP that takes any part of a batch.
 *
 * The input is a script: four octets of set-up, then steps of one octet and their operands. The
 * host of tests/stacks asserts after each step what core/link.h promises of actions. This target
 * asserts that states that must end have a deadline, that a run ends, and that once the connection
 * is over every request is complete and nothing is held or lent.
 */
#include "script.h"
#include "../stacks/link.h"
#include "../stacks/post.h"

#define PD 7
#define REGION_LEN 4096
#define MAX_STEPS 300

enum {
	SAY_OCTETS, SAY_FRAME, SAY_FPDU, SAY_FIN, SAY_RST, PASS_TIME, ANSWER, CLOSE, ERROR, DESTROY,
	KILL, TAKE, ACK, RUN, STEP, POST, NO_MEMORY, ORPHAN, EVICT, FULL, STEPS
};

struct stage {
	struct host host;
	struct host_cq *cq;
	struct host_qp *qp;
	struct host_mr *mr;
	struct host_link link;
	u32 room;			/* octets that TCP still takes */
	u64 taken, acked;
	u32 sum;			/* of the octets offered to TCP */
	bool aborted, shut;
	u32 posted, completed;		/* signalled sends, and receives */
};

/* ---- TCP ---- */

static size_t take_octets(void *arg, const void *p, size_t len, u32 flags)
{
	struct stage *s = arg;
	u32 n = min_t(u32, (u32)len, s->room);

	/* Octets that may be taken must be readable, to the last one. */
	FUZZ_ASSERT(!(flags & ~(u32)(WEFT_SEND_MORE | WEFT_SEND_EOR | WEFT_SEND_FRESH)));
	s->sum ^= fuzz_crc32c(0, p, len);
	s->room -= n;
	s->taken += n;
	return n;
}

static void tail(void *arg, struct weft_tcp_tail *t)
{
	struct stage *s = arg;

	t->mss = 1460;
	t->seg_off = (u32)(s->taken % 1460);
	t->room = s->room;
}

static u64 acked(void *arg)
{
	return ((struct stage *)arg)->acked;
}

static void shut(void *arg)
{
	struct stage *s = arg;

	FUZZ_ASSERT(!s->shut);
	s->shut = true;
}

static void abort_tcp(void *arg)
{
	((struct stage *)arg)->aborted = true;
}

static const struct host_link_ops ops = {
	.write = take_octets, .tail = tail, .acked = acked, .shutdown = shut, .abort = abort_tcp,
};

/* ---- set-up ---- */

static void set_up(struct stage *s, struct script *in)
{
	u8 how = script_octet(in), kinds = script_octet(in), depths = script_octet(in);
	const bool initiator = how & 1;
	struct host_link_cfg c = {
		.mpa = { .rev = how & 2 ? 1 : 2, .crc = how & 4, .markers = how & 8,
			 .p2p = how & 16, .rtr = kinds & WEFT_RTR_ALL,
			 .ird = depths & 15, .ord = depths >> 4 },
		.batch = kinds & 8 ? 20 : 1, .startup_ms = 100, .close_ms = 50,
		.rnr_ms = how & 64 ? 40 : 0,
		.pd_max = kinds & 16 ? 255 : 0, .lean = kinds & 32,
		.large_fpdus = kinds & 64, .part_min = kinds & 128 ? 20 : 0, .hold_accept = true,
		.reject = how & 32, .pd = "private data", .pd_len = 12,
	};
	struct host_qp_attr a = { .pd = PD, .sq_slots = 16, .rq_slots = 8, .sig_all = true };

	memset(s, 0, sizeof(*s));
	host_init(&s->host, 1);
	s->cq = a.scq = a.rcq = host_cq_new(256);
	s->qp = host_qp_new(&s->host, &a);
	s->mr = host_mr_new(&s->host, PD, 4096, REGION_LEN, WEFT_ACCESS_LOCAL_WRITE |
			    WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ);
	s->room = script_octet(in) * 64;
	host_link_init(&s->link, s->qp, initiator, &c, &ops, s);
}

/* ---- the peer ---- */

static bool may_say(const struct stage *s)
{
	return !s->link.rx_closed && !s->link.reset && !s->aborted;
}

/* @n octets, cut at @cut: the driver's host reads one skb's pieces, then the next. */
static void say(struct stage *s, const u8 *p, u32 n, u8 cut)
{
	u32 first = n ? cut % n : 0, i;
	struct weft_seg seg;

	for (i = 0; i < 2; i++) {
		u32 len = i ? n - first : first;
		/* A block of its own, so that the sanitizer sees an overrun of one octet. */
		u8 *block = malloc(len ? len : 1);

		FUZZ_ASSERT(block);
		memcpy(block, p + (i ? first : 0), len);
		seg = (struct weft_seg){ block, len };
		if (len && may_say(s))
			host_link_rx(&s->link, &seg, 1);
		free(block);
	}
}

static void say_frame(struct stage *s, struct script *in)
{
	u8 bits = script_octet(in), depths = script_octet(in), len = script_octet(in);
	u8 out[WEFT_MPA_FRAME_MAX + 64], pd[WEFT_MPA_PD_MAX] = { 0 };
	struct weft_mpa_frame f = {
		.reply = s->link.core.st.initiator, .markers = bits & 1, .crc = bits & 2,
		.reject = bits & 4, .enhanced = bits & 8, .rev = bits & 16 ? 1 : 2,
		.p2p = bits & 32, .rtr = bits >> 5 & WEFT_RTR_ALL,
		.ird = depths & 15, .ord = depths >> 4, .pd_len = len,
	};
	u32 n = weft_mpa_frame_write(&f, pd, out, sizeof(out)), more;
	const u8 *behind;

	/* The rest of the delivery: FPDUs may follow a Reply. */
	more = script_octets(in, script_octet(in) & 31, &behind);
	memcpy(out + n, behind, more);
	say(s, out, n + more, script_octet(in));
}

static void say_fpdu(struct stage *s, struct script *in)
{
	const struct weft_mpa_agreed *a = &s->link.core.st.agreed;
	u32 len = script_octet(in) & 127, n;
	u8 out[256] = { 0 };
	const u8 *ulpdu;

	len = script_octets(in, len, &ulpdu);
	weft_put16(out, (u16)len);
	memcpy(out + 2, ulpdu, len);
	/* A Write to a registered region, more often than by chance. */
	if (len >= 14 && out[2] & 0x80)
		weft_put32(out + 4, s->mr->r.stag);
	n = 2 + len + weft_mpa_pad(len);
	weft_put32_le(out + n, a->crc ? ~weft_crc32c(~0u, out, n) : 0);
	say(s, out, n + 4, script_octet(in));
}

/* ---- the user ---- */

static void post(struct stage *s, struct script *in)
{
	u8 how = script_octet(in);
	u32 len = script_octet(in) * 9;
	const struct host_wr wr = {
		.wr_id = 1, .opcode = how & 2 ? WEFT_WR_WRITE : how & 4 ? WEFT_WR_READ : WEFT_WR_SEND,
		.num_sge = 1, .sge = { host_sge(s->mr, 0, len) },
		.rkey = 0x1234, .remote_addr = 0x5678,
	};

	if (how & 1)
		s->posted += host_post_recv(s->qp, 2, &wr.sge[0], 1);
	else
		s->posted += host_post_send(s->qp, &wr);
}

static void poll_all(struct stage *s)
{
	struct weft_cqe e;

	while (host_cq_poll(s->cq, &e))
		s->completed++;
}

static void answer(struct stage *s)
{
	if (s->link.core.state == WEFT_LINK_REQUESTED)
		host_link_accept(&s->link);
}

static void destroy(struct stage *s)
{
	if (s->link.core.qp && s->link.core.state <= WEFT_LINK_OPEN)
		host_link_forget(&s->link);
}

/* A step that the script takes itself, and the new TCP connection that the step may request. */
static void take_step(struct stage *s)
{
	u32 acts;

	if (s->link.core.state == WEFT_LINK_DEAD)
		return;
	acts = host_link_step(&s->link);
	FUZZ_ASSERT(!(acts & WEFT_ACT_FAILED) || s->link.core.status < 0);
}

/* ---- invariants ---- */

static void check_deadline(const struct stage *s)
{
	const struct weft_link *l = &s->link.core;
	bool ending = l->peer_fin || l->shut;

	if (s->link.step_due)
		return;
	switch (l->state) {
	case WEFT_LINK_DEAD:
		FUZZ_ASSERT(!l->deadline && !l->batch.buf);
		break;
	case WEFT_LINK_REQUESTED:
		break;
	case WEFT_LINK_OPEN:
		FUZZ_ASSERT(l->deadline || !ending);
		FUZZ_ASSERT(l->rnr_deadline || !l->qp->rx_waits);
		break;
	default:
		FUZZ_ASSERT(l->deadline);
		break;
	}
}

static void one_step(struct stage *s, struct script *in)
{
	const u8 *p;
	u32 n;

	switch (script_octet(in) % STEPS) {
	case SAY_OCTETS:
		n = script_octets(in, script_octet(in), &p);
		say(s, p, n, script_octet(in));
		break;
	case SAY_FRAME:
		say_frame(s, in);
		break;
	case SAY_FPDU:
		say_fpdu(s, in);
		break;
	case SAY_FIN:
		if (may_say(s))
			host_link_fin(&s->link);
		break;
	case SAY_RST:
		if (!s->link.reset)
			host_link_reset(&s->link);
		break;
	case PASS_TIME:
		host_link_set_time(&s->link, s->link.now + script_octet(in));
		break;
	case ANSWER:
		answer(s);
		break;
	case CLOSE:
		host_link_close(&s->link);
		break;
	case ERROR:
		host_link_error(&s->link);
		break;
	case DESTROY:
		destroy(s);
		break;
	case KILL:
		host_link_abort(&s->link);
		break;
	case TAKE:
		s->room = script_u16(in);
		break;
	case ACK:
		s->acked += (s->taken - s->acked) * script_octet(in) / 255;
		break;
	case RUN:
		if (s->link.core.state != WEFT_LINK_DEAD)
			host_link_tx(&s->link);
		break;
	case STEP:
		take_step(s);
		break;
	case POST:
		post(s, in);
		break;
	case NO_MEMORY:
		s->link.memory_fails = script_octet(in) & 3;
		break;
	case ORPHAN:
		weft_link_orphan(&s->link.core, s->link.now);
		break;
	case EVICT:
		host_link_evict(&s->link, script_octet(in) & 1);
		break;
	case FULL:
		if (s->link.core.state == WEFT_LINK_REQUESTED)
			weft_link_ulp_is_full(&s->link.core, s->link.now);
		break;
	}
	poll_all(s);
	check_deadline(s);
}

/* Time alone ends a connection that must end; removing the device ends any. */
static void end_connection(struct stage *s)
{
	if (s->link.core.state != WEFT_LINK_DEAD)
		host_link_abort(&s->link);
	FUZZ_ASSERT(s->link.core.state == WEFT_LINK_DEAD && !s->link.core.qp);
	/* Work posted without a connection is flushed once the user moves the QP to ERROR. */
	weft_qpc_error(&s->qp->core);
	weft_qpc_flush(&s->qp->core);
	poll_all(s);
	FUZZ_ASSERT(s->posted == s->completed || s->cq->overflows);
	host_assert_quiet(&s->host);
	host_link_fini(&s->link);
	host_fini(&s->host);
	host_cq_free(s->cq);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct script in = { data, size };
	static struct stage s;
	u32 i;

	set_up(&s, &in);
	for (i = 0; i < MAX_STEPS && in.left; i++)
		one_step(&s, &in);
	end_connection(&s);
	return 0;
}
