/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>

#include "manner.h"
#include "peer.h"

#define AMOUNT 60000u
#define THEIR_AMOUNT 5000u
#define BACK 100000u    /* offset in our BIG of the data read back */
#define WRITTEN 200000u /* and of the data that the peer writes */
#define AWAY 300000u    /* offset in the peer's of the data that it reads */

enum wait { WAIT_SENT, WAIT_ACK, WAIT_DONE, WAIT_DATA };

static int status = -1;

static struct reflector_wr wr_of(struct end *e, enum refl_op op, u64 at, u64 peer_at, u32 len)
{
	return (struct reflector_wr){ .id = e->drive.step, .op = op, .key = REFL_BIG,
				      .addr = reflector_big(e->ulp.s, at), .len = len,
				      .stag = e->drive.stag, .to = e->drive.big + peer_at };
}

static void post(struct end *e, const struct reflector_wr *wr)
{
	e->ulp.s->ops->post_send(&e->ulp, wr);
}

static void tell(struct end *e, enum refl_op op, u32 count, u32 len, u64 at, u64 peer_at)
{
	struct reflector_wr wr = wr_of(e, REFL_SEND, 0, 0, REFL_CMD_LEN);
	u8 *p = wr.addr = reflector_tx_slot(&e->ulp);

	wr.key = REFL_ALL;
	p = put32(p, REFL_MAGIC_CMD);
	p = put16(p, op);
	p = put16(p, 0);
	p = put32(p, ++e->drive.seq);
	p = put32(p, count);
	p = put32(p, len);
	p = put32(p, e->ulp.s->stag[REFL_BIG]);
	p = put64(p, (uintptr_t)reflector_big(e->ulp.s, at));
	p = put64(p, peer_at);
	put64(p, 0);
	post(e, &wr);
}

/* ---- the steps ---- */

static void read_nothing(struct end *e)
{
	struct reflector_wr wr = wr_of(e, REFL_READ, 0, 0, 0);

	post(e, &wr);
}

static void write_all(struct end *e)
{
	struct reflector_wr wr = wr_of(e, REFL_WRITE, 0, 0, AMOUNT);

	for (u32 i = 0; i < AMOUNT; i++)
		wr.addr[i] = (u8)(5 * i + (i >> 8) + 1);
	post(e, &wr);
}

static void read_all(struct end *e)
{
	struct reflector_wr wr = wr_of(e, REFL_READ, BACK, 0, AMOUNT);

	post(e, &wr);
}

static bool is_same(struct end *e, u64 at, u32 len)
{
	return !memcmp(reflector_big(e->ulp.s, 0), reflector_big(e->ulp.s, at), len);
}

static bool came_back(struct end *e)
{
	return is_same(e, BACK, AMOUNT);
}

static void say_nothing(struct end *e)
{
	tell(e, REFL_NOP, 1, 0, 0, 0);
}

static void ask_for_send(struct end *e)
{
	tell(e, REFL_SEND, 1, 200, 0, 0);
}

static void ask_for_write(struct end *e)
{
	tell(e, REFL_WRITE, 1, THEIR_AMOUNT, WRITTEN, 0);
}

static bool was_written(struct end *e)
{
	return is_same(e, WRITTEN, THEIR_AMOUNT);
}

static void ask_for_read(struct end *e)
{
	tell(e, REFL_READ, 1, THEIR_AMOUNT, 0, AWAY);
}

static void read_what_it_read(struct end *e)
{
	struct reflector_wr wr = wr_of(e, REFL_READ, BACK, AWAY, THEIR_AMOUNT);

	memset(wr.addr, 0, THEIR_AMOUNT);
	post(e, &wr);
}

static bool was_read(struct end *e)
{
	return is_same(e, BACK, THEIR_AMOUNT);
}

static const struct step {
	const char *name;
	void (*begin)(struct end *e);
	enum wait wait;
	bool (*is_right)(struct end *e);
} steps[] = {
	{ "a Read of nothing", read_nothing, WAIT_SENT, NULL },
	{ "a Write", write_all, WAIT_SENT, NULL },
	{ "a Read of it", read_all, WAIT_SENT, came_back },
	{ "a Send, and the answer", say_nothing, WAIT_ACK, NULL },
	{ "a Send of the peer", ask_for_send, WAIT_DATA, NULL },
	{ "a Write of the peer", ask_for_write, WAIT_ACK, was_written },
	{ "a Read of the peer", ask_for_read, WAIT_DONE, NULL },
	{ "a Read of what it read", read_what_it_read, WAIT_SENT, was_read },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void finish(struct end *e, const char *what)
{
	struct drive *d = &e->drive;

	if (d->over)
		return;
	d->over = true;
	status = d->step != STEPS;
	printf("%s%s\n", d->step == STEPS ? "moved" : what, d->step == STEPS ? "" :
	       steps[d->step].name);
	fflush(stdout);
	host_link_close(&e->link);
}

/* What the step waits for is there. */
static void go_on(struct end *e, enum wait got)
{
	struct drive *d = &e->drive;

	if (d->over || !d->began || steps[d->step].wait != got)
		return;
	if (steps[d->step].is_right && !steps[d->step].is_right(e)) {
		finish(e, "other octets: ");
		return;
	}
	if (++d->step == STEPS)
		finish(e, NULL);
	else
		steps[d->step].begin(e);
}

/* ---- what reflect.c calls ---- */

uint16_t drive_private_data(bool initiator, uint8_t *pd)
{
	uint8_t *p = manner_depths(pd);

	if (!initiator || manner_is(MANNER_WINDOWS2))
		return p - pd;
	p = put32(p, REFL_MAGIC_REQUEST);
	p = put16(p, REFL_VERSION);
	memset(p, 0, REFL_REQUEST_LEN - 6);
	return p + REFL_REQUEST_LEN - 6 - pd;
}

void drive_up(struct end *e, const uint8_t *pd, size_t len)
{
	const uint8_t *big = pd + REFL_TABLE_HEAD + 16 * REFL_BIG;

	if (len < REFL_TABLE_LEN || get32(pd) != REFL_MAGIC_TABLE) {
		finish(e, "no table: ");
		return;
	}
	e->drive.big = get64(big);
	e->drive.stag = get32(big + 12);
	e->drive.began = true;
	steps[0].begin(e);
}

void drive_received(struct end *e, uint32_t slot, const struct reflector_completion *c)
{
	const uint8_t *b = reflector_recv_slot(&e->ulp, slot);
	uint32_t magic = get32(b);
	bool mine = get32(b + 4) == e->drive.seq;

	if (c->status) {
		finish(e, "broken: ");
		return;
	}
	/* Of a number of Sends, the first begins with its number. */
	if (magic == REFL_MAGIC_ACK && mine)
		go_on(e, WAIT_ACK);
	else if (magic == REFL_MAGIC_DONE && mine)
		go_on(e, WAIT_DONE);
	else if (!magic && c->len == 200)
		go_on(e, WAIT_DATA);
	e->ulp.s->ops->post_recv(&e->ulp, slot);
}

void drive_sent(struct end *e, uint64_t id, const struct reflector_completion *c)
{
	if (c->status)
		finish(e, "broken: ");
	else if (id == e->drive.step)
		go_on(e, WAIT_SENT);
}

void drive_closed(struct end *e)
{
	if (e->drive.began)
		finish(e, "closed: ");
	if (!e->drive.began && e->initiator) {
		puts("not connected");
		status = 1;
	}
}

int drive_status(void)
{
	return status;
}
