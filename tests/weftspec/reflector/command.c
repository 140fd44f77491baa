/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The frames of the reflector protocol: what comes, and what is answered. */
#include "core.h"

/* In wr.id beside the sequence number: announce the completion by DONE. */
#define ANNOUNCE (1ull << 32)

/* ---- set-up ---- */

bool reflector_read_request(const uint8_t *pd, size_t len,
			    struct reflector_request *q)
{
	*q = (struct reflector_request){ .pd_len = -1 };
	if (!pd || len < REFL_REQUEST_LEN || get32(pd) != REFL_MAGIC_REQUEST)
		return false;
	q->flags = get16(pd + 6);
	q->cookie = get64(pd + 8);
	if (q->flags & REFL_F_PD)
		q->pd_len = get16(pd + 16);
	q->recv_count = get16(pd + 18);
	return true;
}

static size_t write_table(const struct reflector_link *l, uint8_t *out)
{
	const struct reflector_session *s = l->s;
	uint8_t *p = put32(out, REFL_MAGIC_TABLE);

	p = put16(p, REFL_VERSION);
	p = put16(p, REFL_REGIONS);
	p = put32(p, s->caps);
	p = put16(p, (uint16_t)l->recv_count);
	p = put16(p, REFL_RECV_SIZE);
	p = put64(p, (uintptr_t)reflector_status_block(s));
	p = put64(p, (uintptr_t)reflector_recv_slot(l, 0));
	for (int r = 0; r < REFL_REGIONS; r++) {
		p = put64(p, (uintptr_t)reflector_region_start(s, r));
		p = put32(p, reflector_region_len(s, r));
		p = put32(p, s->stag[r]);
	}
	return p - out;
}

size_t reflector_write_private_data(const struct reflector_link *l, int pd_len,
				    uint8_t *out, size_t room)
{
	memset(out, 0x5a, room);
	return pd_len < 0 ? write_table(l, out) : (size_t)pd_len;
}

int reflector_post_recvs(struct reflector_link *l, uint32_t n)
{
	int err = 0;

	while (n-- && !err)
		err = l->s->ops->post_recv(l, l->recv_next++ %
					      REFLECTOR_RECV_SLOTS);
	return err;
}

/* ---- ACK, DONE, HELLO ---- */

static void send_answer(struct reflector_link *l, uint32_t magic, uint32_t seq,
			uint32_t status, uint32_t value)
{
	struct reflector_wr wr = { .id = seq, .op = REFL_SEND, .key = REFL_ALL,
				   .addr = reflector_tx_slot(l),
				   .len = REFL_ACK_LEN };

	put32(wr.addr, magic);
	put32(wr.addr + 4, seq);
	put32(wr.addr + 8, status);
	put32(wr.addr + 12, value);
	l->s->ops->post_send(l, &wr);
}

void reflector_send_hello(struct reflector_link *l)
{
	send_answer(l, REFL_MAGIC_HELLO, 0, 0, 0);
}

/* ---- commands ---- */

struct command {
	uint16_t op, flags;
	uint32_t seq, count, len, stag;
	uint64_t to, arg, arg2;
};

static void read_command(const uint8_t *p, struct command *k)
{
	k->op = get16(p + 4);
	k->flags = get16(p + 6);
	k->seq = get32(p + 8);
	k->count = get32(p + 12);
	k->len = get32(p + 16);
	k->stag = get32(p + 20);
	k->to = get64(p + 24);
	k->arg = get64(p + 32);
	k->arg2 = get64(p + 40);
}

/* Small Sends carry their number, large ones the octets of BIG. */
static int post_sends(struct reflector_link *l, const struct command *k)
{
	int err = k->len > l->s->big_len ? EINVAL : 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		bool small = k->len <= REFLECTOR_TX_SIZE;
		uint8_t *slot = reflector_tx_slot(l);
		struct reflector_wr wr = {
			.id = k->seq, .op = k->op, .len = k->len,
			.addr = small ? slot : reflector_big(l->s, 0),
			.key = small ? REFL_ALL : REFL_BIG,
			.solicited = k->flags & REFL_CF_SE,
			.stag = k->stag, .imm = (uint32_t)k->arg,
		};

		memset(slot, (int)i + 1, REFLECTOR_TX_SIZE);
		put32(slot, i);
		err = l->s->ops->post_send(l, &wr);
	}
	return err;
}

static int post_writes_or_reads(struct reflector_link *l,
				const struct command *k)
{
	int err = 0;

	for (uint32_t i = 0; i < k->count && !err; i++) {
		bool last_read = i + 1 == k->count && k->op == REFL_READ;
		uint64_t off = k->flags & REFL_CF_REPEAT ? 0 :
			       (uint64_t)i * k->len;
		struct reflector_wr wr = {
			.id = last_read ? k->seq | ANNOUNCE : k->seq,
			.op = k->op, .len = k->len, .key = REFL_BIG,
			.addr = reflector_big(l->s, k->arg + off),
			.stag = k->stag, .to = k->to + off,
			.imm = (uint32_t)k->arg2,
			.solicited = k->flags & REFL_CF_SE && k->op == REFL_WRITE_IMM,
		};

		err = l->s->ops->post_send(l, &wr);
	}
	return err;
}

/* The result goes to octet 4 of BIG, where it is aligned. */
static int post_atomic(struct reflector_link *l, const struct command *k)
{
	struct reflector_wr wr = {
		.id = k->seq | ANNOUNCE, .op = k->op, .len = 8,
		.key = REFL_BIG, .addr = reflector_big(l->s, 4),
		.stag = k->stag, .to = k->to, .arg = k->arg, .arg2 = k->arg2,
	};

	return l->s->ops->post_send(l, &wr);
}

static int post_send_with_wrong_key(struct reflector_link *l,
				    const struct command *k)
{
	struct reflector_wr wr = {
		.id = k->seq, .op = k->arg == 1 ? REFL_WRITE_IMM : REFL_SEND,
		.len = 16, .key = REFL_ALL, .wrong_key = true,
		.addr = reflector_tx_slot(l), .stag = k->stag, .to = k->to,
	};

	return l->s->ops->post_send(l, &wr);
}

static int revoke_region(struct reflector_link *l, uint64_t r)
{
	int err;

	if (!l->s->ops->deregister)
		return EOPNOTSUPP;
	if (r >= REFL_ALL || !l->s->stag[r])
		return EINVAL;
	err = l->s->ops->deregister(l, (enum refl_region)r);
	if (!err)
		l->s->stag[r] = 0;
	return err;
}

static int bind_region(struct reflector_link *l, const struct command *k,
		       uint32_t *stag)
{
	if (k->arg >= REFL_ALL)
		return EINVAL;
	return l->s->ops->bind(l, (enum refl_region)k->arg, k->seq, stag);
}

static int register_regions(struct reflector_link *l, uint32_t count)
{
	if (!l->s->ops->draw_stags)
		return EOPNOTSUPP;
	return l->s->ops->draw_stags(l, count);
}

/* Returns the status of its ACK, with the value in *value. */
static int obey(struct reflector_link *l, const struct command *k,
		uint32_t *value)
{
	switch (k->op) {
	case REFL_NOP:
		return 0;
	case REFL_SEND: case REFL_SEND_INV: case REFL_SEND_IMM:
		return post_sends(l, k);
	case REFL_WRITE: case REFL_WRITE_IMM: case REFL_READ:
		return post_writes_or_reads(l, k);
	case REFL_FADD: case REFL_CSWAP:
		return post_atomic(l, k);
	case REFL_REVOKE:
		return revoke_region(l, k->arg);
	case REFL_RECV:
		return reflector_post_recvs(l, k->count);
	case REFL_BAD_LKEY:
		return post_send_with_wrong_key(l, k);
	case REFL_DISCONNECT:
		return l->s->ops->disconnect(l);
	case REFL_BIND:
		return bind_region(l, k, value);
	case REFL_REGISTER:
		return register_regions(l, k->count);
	default:
		return EOPNOTSUPP;
	}
}

/* ---- completions ---- */

static bool is_command(const struct reflector_completion *c, const uint8_t *b)
{
	return !c->status && c->len == REFL_CMD_LEN &&
	       get32(b) == REFL_MAGIC_CMD;
}

void reflector_on_recv(struct reflector_link *l, uint32_t slot,
		       const struct reflector_completion *c)
{
	const uint32_t values[3] = { c->opcode, c->len, c->imm };
	uint8_t *b = reflector_recv_slot(l, slot);
	struct command k;
	uint32_t value = 0;
	int err;

	if (!is_command(c, b)) {
		reflector_note(l, REFL_EV_RECV, c->status, values, b);
		return;
	}
	read_command(b, &k);
	memset(b, REFL_GUARD_BYTE, REFL_RECV_SIZE);
	l->s->ops->post_recv(l, slot);
	err = obey(l, &k, &value);
	if (l->s->ops->trace_command)
		l->s->ops->trace_command(k.op, err);
	if (!(k.flags & REFL_CF_NOACK))
		send_answer(l, REFL_MAGIC_ACK, k.seq, (uint32_t)err, value);
}

void reflector_on_sent(struct reflector_link *l, uint64_t id,
		       const struct reflector_completion *c)
{
	const uint32_t values[3] = { c->opcode, c->len, (uint32_t)id };

	if (c->status || id & ANNOUNCE)
		reflector_note(l, REFL_EV_SEND, c->status, values, NULL);
	if (!c->status && id & ANNOUNCE)
		send_answer(l, REFL_MAGIC_DONE, (uint32_t)id, 0, c->len);
}
