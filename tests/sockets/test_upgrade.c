// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a connected socket becomes a stream, and attacks by its peer: MPA frames and FPDUs are
 * written here octet by octet.
 */
#include <sys/wait.h>

#include "../../providers/sockets/stream/conn.h"
#include "../../providers/sockets/stream/early.h"
#include "../../providers/sockets/stream/hello.h"
#include "ends.h"
#include "../../providers/sockets/stream/option.h"

static struct end e[2];

static int connect_ends(void **state)
{
	options()->crc = false;
	options()->startup_ms = 10000;
	ends_connect(e);
	return 0;
}

static int close_ends(void **state)
{
	ends_close(e);
	return 0;
}

/* ---- a peer made of octets ---- */

#define KEY_REQ "MPA ID Req Frame"
#define KEY_REP "MPA ID Rep Frame"
/* No flags, revision 1, 12 octets of private data. */
#define REV_1 "\0\1\0\x0c"
#define TERMS "wefS\1\0\0\0\0\x10\0\0"
#define FRAME_LEN (20 + 12)
#define WINDOW (1 << 20)

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

static void say_request(void)
{
	raw_say(&e[0], KEY_REQ REV_1 TERMS, FRAME_LEN);
}

/* The stream is a responder; this end acts as its initiator. */
static void open_raw(void)
{
	uint8_t reply[FRAME_LEN];

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	say_request();
	raw_hear(&e[0], &e[1], reply, sizeof(reply));
	assert_memory_equal(reply, KEY_REP, 16);
	assert_memory_equal(reply + 18, "\0\x0c" TERMS, 14);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_OPEN);
}

/* The first Send, complete, granting the whole window, except for the fields set here. */
struct message {
	uint8_t opcode;
	bool more;			/* more segments follow */
	uint32_t before, mo;		/* message number, and offset in the message */
	int32_t credit;			/* beyond the window */
	uint8_t flags[4];
	bool headless;
	uint32_t len;			/* octets of the stream */
};

#define MESSAGE(...) (struct message){ __VA_ARGS__ }

static uint8_t wire[70000];

/* Writes an untagged segment for queue 0, without CRC. */
static uint32_t write_fpdu(uint8_t *p, const struct message *m)
{
	uint32_t head = m->headless ? 0 : 8, ulpdu = 18 + head + m->len, n = 2 + ulpdu;

	memset(p, 0, n + 8);
	p[0] = ulpdu >> 8;
	p[1] = ulpdu;
	p[2] = 1 | (m->more ? 0 : 0x40);
	p[3] = 0x40 | (m->opcode ? m->opcode : 3);
	put32(p + 12, 1 + m->before);
	put32(p + 16, m->mo);
	if (head) {
		put32(p + 20, WINDOW + m->credit);
		memcpy(p + 24, m->flags, 4);
	}
	memset(p + 20 + head, 'x', m->len);
	return ((n + 3) & ~3u) + 4;
}

static void say(struct message m)
{
	raw_say(&e[0], wire, write_fpdu(wire, &m));
}

/* Reads the next FPDU: returns its opcode; the ULPDU is in wire. */
static uint8_t hear_fpdu(void)
{
	uint32_t n;

	raw_hear(&e[0], &e[1], wire, 2);
	n = wire[0] << 8 | wire[1];
	raw_hear(&e[0], &e[1], wire + 2, ((2 + n + 3) & ~3u) + 4 - 2);
	return wire[3] & 15;
}

/* The stream has ended with an error, reported to the peer. */
static void expect_refused(void)
{
	ssize_t rv;
	char c;

	do
		rv = end_recv(&e[1], &c, 1);
	while (rv == 1 || (rv == -EAGAIN && end_await(&e[1], NULL, POLLIN)));
	assert_int_equal(rv, -ECONNRESET);
	while (hear_fpdu() != 7)
		;
}

/* The same if the program has other octets to read first. */
static void expect_refused_at_the_end(void)
{
	assert_true(end_await(&e[1], NULL, POLLHUP) & POLLERR);
	while (hear_fpdu() != 7)
		;
}

static void await_octets(uint32_t n)
{
	struct pollfd p = { e[1].fd, POLLIN, 0 };

	while (rl_stream_inq(e[1].s) < n)
		assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_int_equal(rl_stream_inq(e[1].s), n);
}

/* ---- plain octets and the first frame ---- */

static void a_plain_client_keeps_all_its_octets(void **state)
{
	const struct rl_stream_options o = { .plain_allowed = true };
	char got[18];

	end_start(&e[1], RL_STREAM_RESPONDER, &o);
	raw_say(&e[0], "GET / HTTP/1.0\r\n\r\n", 18);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_PLAIN);
	assert_int_equal(end_recv(&e[1], got, 1), -EPROTO);
	assert_int_equal(end_send(&e[1], got, 1), -EPROTO);
	rl_stream_close(e[1].s);
	e[1].s = NULL;
	assert_int_equal(recv(e[1].fd, got, 18, MSG_WAITALL), 18);
	assert_memory_equal(got, "GET / HTTP/1.0\r\n\r\n", 18);
	assert_int_equal(send(e[1].fd, "200", 3, 0), 3);
	raw_hear(&e[0], NULL, got, 3);
	assert_memory_equal(got, "200", 3);
}

static void on_one_port_an_iwarp_client_is_served_too(void **state)
{
	const struct rl_stream_options o = { .plain_allowed = true };
	char got[5];

	end_start(&e[1], RL_STREAM_RESPONDER, &o);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_send_all(&e[0], &e[1], "hello", 5);
	end_recv_all(&e[1], &e[0], got, 5);
	assert_memory_equal(got, "hello", 5);
}

/* In both directions octets in flight at the upgrade arrive first. */
static void octets_before_the_switch_are_delivered_first(void **state)
{
	static uint8_t before[40000], got[40005];

	fill(before, sizeof(before), 1, 0);
	raw_say(&e[0], before, sizeof(before));
	raw_say(&e[1], "banner MPA ID Re", 16);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_send_all(&e[0], &e[1], "after", 5);
	end_recv_all(&e[1], &e[0], got, sizeof(got));
	expect(got, sizeof(before), 1, 0);
	assert_memory_equal(got + sizeof(before), "after", 5);
	end_send_all(&e[1], &e[0], "later", 5);
	end_recv_all(&e[0], &e[1], got, 21);
	assert_memory_equal(got, "banner MPA ID Relater", 21);
}

static unsigned int heard;

static void hear(void *arg, unsigned int events)
{
	*(unsigned int *)arg |= events;
}

/* More than is read ahead: the exchange continues once the program has read. */
static void many_octets_before_the_switch_wait_in_tcp(void **state)
{
	static uint8_t before[200000], got[200000];

	fill(before, sizeof(before), 2, 0);
	raw_say(&e[0], before, sizeof(before));
	say_request();
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	await_octets(64 * 1024);
	assert_int_equal(rl_stream_phase(e[1].s), RL_STREAM_STARTING);
	/*
	 * These octets would wake a waiting sender for nothing: only the first ones read are
	 * reported.
	 */
	assert_int_equal(rl_stream_awaits(e[1].s, POLLOUT), POLLERR);
	rl_stream_tell(e[1].s, hear, &heard);
	heard = 0;
	end_recv_all(&e[1], NULL, got, 1000);
	assert_true(heard & POLLOUT);
	end_recv_all(&e[1], NULL, got + 1000, sizeof(got) - 1000);
	expect(got, sizeof(got), 2, 0);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_OPEN);
}

static void a_frame_may_come_octet_by_octet(void **state)
{
	const char frame[] = "ab" KEY_REQ REV_1 TERMS;
	uint8_t reply[FRAME_LEN];
	size_t i;

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	for (i = 0; i < sizeof(frame) - 1; i++) {
		struct pollfd p = { e[1].fd, 0, 0 };

		raw_say(&e[0], frame + i, 1);
		rl_stream_poll(e[1].s);
		/*
		 * A thread that waits for the rest is not woken by octets that are already there.
		 */
		p.events = rl_stream_awaits(e[1].s, POLLIN);
		if (i > 1 && i < 16)
			assert_int_equal(poll(&p, 1, 0), 0);
	}
	raw_hear(&e[0], &e[1], reply, sizeof(reply));
	assert_memory_equal(reply, KEY_REP, 16);
	end_recv_all(&e[1], NULL, reply, 2);
	assert_memory_equal(reply, "ab", 2);
}

/* It looked like the beginning of a frame, but was the end of the octets. */
static void part_of_a_key_and_fin_are_plain_octets(void **state)
{
	char got[9];

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], "x MPA ID ", 9);
	rl_stream_poll(e[1].s);
	shutdown(e[0].fd, SHUT_WR);
	end_recv_all(&e[1], NULL, got, 9);
	assert_memory_equal(got, "x MPA ID ", 9);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
	assert_int_equal(end_send(&e[1], "x", 1), -EPIPE);
}

/* ---- both ends ---- */

static void both_ends_at_once_agree_on_an_initiator(void **state)
{
	char got[4];

	end_start(&e[0], RL_STREAM_SYMMETRIC, NULL);
	end_start(&e[1], RL_STREAM_SYMMETRIC, NULL);
	end_send_all(&e[0], &e[1], "ping", 4);
	end_recv_all(&e[1], &e[0], got, 4);
	end_send_all(&e[1], &e[0], "pong", 4);
	end_recv_all(&e[0], &e[1], got, 4);
	assert_memory_equal(got, "pong", 4);
}

/*
 * MPA has no such start-up. Each end takes the other's Request for octets sent before it, and
 * waits.
 */
static void two_initiators_do_not_meet(void **state)
{
	char got[FRAME_LEN];

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_start(&e[1], RL_STREAM_INITIATOR, NULL);
	end_await(&e[0], &e[1], POLLIN);
	assert_int_equal(rl_stream_phase(e[0].s), RL_STREAM_STARTING);
	end_recv_all(&e[0], &e[1], got, sizeof(got));
	assert_memory_equal(got, KEY_REQ, 16);
}

static void other_terms_are_rejected(void **state)
{
	uint8_t reply[FRAME_LEN];

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], KEY_REQ REV_1 "wefS\2\0\0\0\0\x10\0\0", FRAME_LEN);
	raw_hear(&e[0], &e[1], reply, sizeof(reply));
	assert_memory_equal(reply, KEY_REP, 16);
	assert_int_equal(reply[16] & 0x20, 0x20);
	assert_memory_equal(reply + 20, TERMS, 12);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_FAILED);
	assert_int_equal(rl_stream_error(e[1].s), EPROTO);
}

static void an_initiator_hears_that_it_is_rejected(void **state)
{
	uint8_t req[600];

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_true(recv(e[1].fd, req, sizeof(req), 0) >= FRAME_LEN);
	assert_memory_equal(req, KEY_REQ, 16);
	/* Rejected, with the revision and flags of the Request. */
	memcpy(req, KEY_REP, 16);
	req[16] |= 0x20;
	raw_say(&e[1], req, 20 + (req[18] << 8 | req[19]));
	assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_FAILED);
	assert_int_equal(end_send(&e[0], "x", 1), -ECONNREFUSED);
	assert_int_equal(end_send(&e[0], "x", 1), -EPIPE);
}

static void a_reply_of_other_terms_is_an_error(void **state)
{
	uint8_t req[600];
	uint32_t n;

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_true(recv(e[1].fd, req, sizeof(req), 0) >= FRAME_LEN);
	n = 20 + (req[18] << 8 | req[19]);
	memcpy(req, KEY_REP, 16);
	req[n - 8] ^= 1;
	raw_say(&e[1], req, n);
	assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_FAILED);
	assert_int_equal(rl_stream_error(e[0].s), EPROTO);
}

/* RFC 5044, 7.1.1: PD_Length above 512. */
static void a_reply_of_no_right_length_is_an_error(void **state)
{
	uint8_t frame[20 + 513] = KEY_REP "\0\1\2\1", req[600];

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_true(recv(e[1].fd, req, sizeof(req), 0) >= FRAME_LEN);
	raw_say(&e[1], frame, sizeof(frame));
	assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_FAILED);
	assert_true(end_recv_end(&e[0], NULL) < 0);
}

static void a_request_of_no_right_length_is_an_error(void **state)
{
	uint8_t frame[20 + 513] = KEY_REQ "\0\1\2\1";

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], frame, sizeof(frame));
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_FAILED);
	assert_true(end_recv_end(&e[1], NULL) < 0);
}

/* RFC 5044, 7.1.1: nothing follows a Request until it is answered. */
static void octets_behind_a_request_are_an_error(void **state)
{
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], KEY_REQ REV_1 TERMS "x", FRAME_LEN + 1);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_FAILED);
	assert_int_equal(rl_stream_error(e[1].s), EPROTO);
}

/* More private data than our frames have. */
static void long_private_data_is_rejected(void **state)
{
	uint8_t frame[20 + 512] = KEY_REQ "\0\1\2\0", reply[FRAME_LEN];

	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], frame, sizeof(frame));
	raw_hear(&e[0], &e[1], reply, 20);
	assert_int_equal(reply[16] & 0x20, 0x20);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_FAILED);
	assert_true(rl_stream_error(e[1].s) > 0);
}

static uint32_t rng_state = 1;

static void spoil(uint8_t *p, uint32_t n, uint32_t times)
{
	while (times--) {
		rng_state = rng_state * 1664525 + 1013904223;
		p[(rng_state >> 8) % n] ^= 1 << (rng_state & 7);
	}
}

/* Whatever it takes the octets for, it ends once the peer is gone. */
static void expect_over(struct end *end)
{
	ssize_t rv;
	char c;

	do
		rv = end_recv(end, &c, 1);
	while (rv == 1 || (rv == -EAGAIN && end_await(end, NULL, POLLIN)));
	assert_true(rv <= 0);
}

static void a_request_at_random_breaks_nothing(void **state)
{
	uint32_t round;

	for (round = 0; round < 300; round++) {
		uint8_t frame[] = KEY_REQ REV_1 TERMS;

		end_start(&e[1], RL_STREAM_RESPONDER, NULL);
		spoil(frame, FRAME_LEN, 1 + round % 3);
		raw_say(&e[0], frame, FRAME_LEN);
		rl_stream_poll(e[1].s);
		end_close(&e[0]);
		expect_over(&e[1]);
		end_close(&e[1]);
		ends_connect(e);
	}
}

static void a_reply_at_random_breaks_nothing(void **state)
{
	uint32_t round;

	for (round = 0; round < 300; round++) {
		uint8_t frame[600];
		uint32_t n;

		end_start(&e[0], RL_STREAM_INITIATOR, NULL);
		assert_true(recv(e[1].fd, frame, sizeof(frame), 0) >= FRAME_LEN);
		n = 20 + (frame[18] << 8 | frame[19]);
		memcpy(frame, KEY_REP, 16);
		spoil(frame, n, 1 + round % 3);
		raw_say(&e[1], frame, n);
		rl_stream_poll(e[0].s);
		end_close(&e[1]);
		expect_over(&e[0]);
		end_close(&e[0]);
		ends_connect(e);
	}
}

/* ---- a peer that dies ---- */

static void an_initiator_that_closes_at_once_leaves_an_end(void **state)
{
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_close(&e[0]);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
}

/* A program that sends nothing and shuts down its half before the stream is open. */
static void a_half_may_be_shut_before_it_is_open(void **state)
{
	char got[3];

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	assert_int_equal(end_send(&e[0], "x", 1), -EPIPE);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	assert_int_equal(end_recv_end(&e[1], &e[0]), 0);
	end_send_all(&e[1], &e[0], "yes", 3);
	end_recv_all(&e[0], &e[1], got, 3);
}

/* ---- octets sent before the stream is open ---- */

static uint8_t early[3 << 20];

/* As many as @e takes, of early[]. */
static size_t send_early(struct end *e)
{
	size_t sent = 0;
	ssize_t rv;

	fill(early, sizeof(early), 9, 0);
	while ((rv = end_send(e, early + sent, 5000)) > 0)
		sent += rv;
	assert_int_equal(rv, -EAGAIN);
	assert_int_equal(rl_stream_poll(e->s) & POLLOUT, 0);
	return sent;
}

/* They take many windows, and the end is behind them. No call of the sender's moves them. */
static void octets_sent_early_arrive_after_close(void **state)
{
	const struct rl_stream_options narrow = { .window = RL_STREAM_WINDOW_MIN };
	int size = 100000;
	size_t sent;

	assert_int_equal(setsockopt(e[0].fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	sent = send_early(&e[0]);
	assert_int_equal(sent, 200000);
	end_close(&e[0]);
	end_start(&e[1], RL_STREAM_RESPONDER, &narrow);
	end_recv_all(&e[1], NULL, early, sent);
	expect(early, sent, 9, 0);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
}

/* SO_SNDBUF counts up to a limit. */
static void octets_sent_early_are_bounded(void **state)
{
	int size = 1 << 30;

	assert_int_equal(setsockopt(e[0].fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)), 0);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_int_equal(send_early(&e[0]), RL_EARLY_MAX);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_recv_all(&e[1], &e[0], early, RL_EARLY_MAX);
	expect(early, RL_EARLY_MAX, 9, 0);
}

/* A peer that answers without iWARP, or not at all. */
static void octets_sent_early_to_a_plain_peer_are_an_error(void **state)
{
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_int_equal(end_send(&e[0], "hello", 5), 5);
	raw_say(&e[1], "220 hello", 9);
	end_close(&e[1]);
	assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_FAILED);
	assert_int_equal(end_send(&e[0], "x", 1), -ECONNRESET);
	assert_int_equal(end_send(&e[0], "x", 1), -EPIPE);
}

/* The responder's, whose peer has not said yet that it is ready. */
static void octets_of_a_responder_wait_for_the_peer(void **state)
{
	char got[5];

	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_OPEN);
	assert_int_equal(end_send(&e[1], "hello", 5), 5);
	end_close(&e[1]);
	end_recv_all(&e[0], NULL, got, 5);
	assert_memory_equal(got, "hello", 5);
	assert_int_equal(end_recv_end(&e[0], NULL), 0);
}

/* A peer that never becomes ready, of either kind, keeps a closed stream for its time only. */
static void octets_sent_early_and_closed_have_a_time_limit(void **state)
{
	u32 before = __atomic_load_n(&rl_stream_closed_ms, __ATOMIC_RELAXED);
	uint8_t frame[FRAME_LEN];
	ssize_t n;

	__atomic_store_n(&rl_stream_closed_ms, 100, __ATOMIC_RELAXED);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], KEY_REQ REV_1 TERMS, FRAME_LEN);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_OPEN);
	assert_int_equal(end_send(&e[1], "hello", 5), 5);
	end_close(&e[1]);
	raw_hear(&e[0], NULL, frame, FRAME_LEN);
	assert_int_equal(recv(e[0].fd, frame, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	end_close(&e[0]);
	ends_connect(e);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	assert_int_equal(end_send(&e[0], "hello", 5), 5);
	end_close(&e[0]);
	while ((n = recv(e[1].fd, frame, sizeof(frame), 0)) > 0)
		;
	assert_true(!n || errno == ECONNRESET);
	__atomic_store_n(&rl_stream_closed_ms, before, __ATOMIC_RELAXED);
}

static void a_peer_that_dies_in_the_exchange_is_an_error(void **state)
{
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	raw_say(&e[1], KEY_REP, 16);
	rl_stream_poll(e[0].s);
	end_close(&e[1]);
	assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_FAILED);
	assert_int_equal(end_send(&e[0], "x", 1), -ECONNRESET);
}

static void a_request_that_stops_midway_is_given_up(void **state)
{
	options()->startup_ms = 100;
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	raw_say(&e[0], KEY_REQ REV_1, 20);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_FAILED);
	assert_true(end_recv_end(&e[1], NULL) < 0);
}

/* Octets of an incomplete message are delivered, and then no clean end is reported. */
static void a_peer_that_dies_in_a_message_is_an_error(void **state)
{
	char got[10];

	open_raw();
	say(MESSAGE(.more = true, .len = 10));
	end_recv_all(&e[1], NULL, got, 10);
	assert_memory_equal(got, "xxxxxxxxxx", 10);
	assert_int_equal(end_recv(&e[1], got, 1), -EAGAIN);
	end_close(&e[0]);
	assert_int_equal(end_recv_end(&e[1], NULL), -ECONNRESET);
}

static void a_killed_process_ends_the_stream(void **state)
{
	char got[5];
	int status;
	pid_t pid;

	/* The other end belongs to the child from the beginning. */
	pid = fork();
	if (!pid) {
		close(e[1].fd);
		e[1] = (struct end){ .fd = -1 };
		end_start(&e[0], RL_STREAM_INITIATOR, NULL);
		end_send_all(&e[0], NULL, "alive", 5);
		pause();
	}
	close(e[0].fd);
	e[0] = (struct end){ .fd = -1 };
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_recv_all(&e[1], NULL, got, 5);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
}

/* ---- the option of weft-socket.h ---- */

static int set_mode(int i, uint8_t role, uint8_t flags)
{
	struct weft_iwarp_mode m = { .size = sizeof(m), .role = role, .flags = flags };

	return rl_stream_setsockopt(e[i].fd, WEFT_IWARP_MODE, &m, sizeof(m), NULL, &e[i].s);
}

static int mode_of(int i)
{
	socklen_t len = sizeof(int);
	int state = -1;

	assert_int_equal(rl_stream_getsockopt(e[i].s, WEFT_IWARP_MODE, &state, &len), 0);
	assert_int_equal(len, sizeof(int));
	return state;
}

static void the_option_starts_each_role(void **state)
{
	static const uint8_t roles[][2] = {
		{ WEFT_IWARP_INITIATOR, WEFT_IWARP_RESPONDER }, { WEFT_IWARP_RESPONDER, WEFT_IWARP_INITIATOR },
		{ WEFT_IWARP_SYMMETRIC, WEFT_IWARP_SYMMETRIC },
	};
	char got[4];
	u32 i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(mode_of(0), WEFT_IWARP_NEVER);
		assert_int_equal(set_mode(0, roles[i][0], 0), 0);
		assert_int_equal(mode_of(0), WEFT_IWARP_STARTING);
		assert_int_equal(set_mode(1, roles[i][1], 0), 0);
		end_send_all(&e[0], &e[1], "ping", 4);
		end_recv_all(&e[1], &e[0], got, 4);
		assert_memory_equal(got, "ping", 4);
		assert_int_equal(mode_of(0), WEFT_IWARP_OPEN);
		assert_int_equal(mode_of(1), WEFT_IWARP_OPEN);
		ends_close(e);
		ends_connect(e);
	}
}

static void the_option_may_leave_a_plain_socket(void **state)
{
	char got[3];

	assert_int_equal(set_mode(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OR_PLAIN), 0);
	raw_say(&e[0], "GET", 3);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_PLAIN);
	assert_int_equal(mode_of(1), WEFT_IWARP_PLAIN);
	rl_stream_close(e[1].s);
	e[1].s = NULL;
	assert_int_equal(recv(e[1].fd, got, 3, MSG_WAITALL), 3);
}

static void expect_no_option(const struct weft_iwarp_mode *m, socklen_t len, int why)
{
	assert_int_equal(rl_stream_setsockopt(e[0].fd, WEFT_IWARP_MODE, m, len, NULL, &e[0].s), why);
	assert_null(e[0].s);
}

/* And nothing was sent to the peer. */
static void what_the_option_does_not_know_is_refused(void **state)
{
	const struct weft_iwarp_mode good = { .size = sizeof(good) };
	struct weft_iwarp_mode m;
	int other, n = 4;
	socklen_t len = sizeof(n) - 1;
	char c;

	expect_no_option(&good, sizeof(good) - 1, -EINVAL);
	m = good;
	m.size--;
	expect_no_option(&m, sizeof(m), -EINVAL);
	m = good;
	m.role = 3;
	expect_no_option(&m, sizeof(m), -EINVAL);
	m = good;
	m.flags = WEFT_IWARP_OR_PLAIN;
	expect_no_option(&m, sizeof(m), -EINVAL);
	m.role = WEFT_IWARP_RESPONDER;
	m.flags = 4;
	expect_no_option(&m, sizeof(m), -EINVAL);
	m = good;
	m.reserved = 1;
	expect_no_option(&m, sizeof(m), -EINVAL);
	m = good;
	m.depth = 1;
	expect_no_option(&m, sizeof(m), -EINVAL);
	assert_int_equal(rl_stream_setsockopt(e[0].fd, 2, &good, sizeof(good), NULL, &e[0].s), -ENOPROTOOPT);
	assert_int_equal(rl_stream_getsockopt(NULL, 2, &n, &len), -ENOPROTOOPT);
	assert_int_equal(rl_stream_getsockopt(NULL, WEFT_IWARP_MODE, &n, &len), -EINVAL);
	assert_int_equal(recv(e[1].fd, &c, 1, MSG_DONTWAIT), -1);
	/* Neither UDP sockets nor unconnected ones. */
	other = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(rl_stream_setsockopt(other, WEFT_IWARP_MODE, &good, sizeof(good), NULL, &e[0].s), -EPROTOTYPE);
	close(other);
	other = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rl_stream_setsockopt(other, WEFT_IWARP_MODE, &good, sizeof(good), NULL, &e[0].s), -ENOTCONN);
	close(other);
	assert_null(e[0].s);
}

/* ---- a hostile peer in Full Operation ---- */

static void a_message_of_octets_is_taken(void **state)
{
	char got[100];

	open_raw();
	say(MESSAGE(.len = 60, .more = true));
	say(MESSAGE(.len = 40, .mo = 68, .headless = true));
	say(MESSAGE(.before = 1));
	end_recv_all(&e[1], NULL, got, 100);
	/* And the stream answers once it has received something. */
	end_send_all(&e[1], NULL, "yes", 3);
	assert_int_equal(hear_fpdu(), 3);
	assert_memory_equal(wire + 28, "yes", 3);
}

static void a_message_without_a_head_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.headless = true, .len = 7));
	expect_refused();
}

static void an_unknown_flag_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.flags = { 2 }));
	expect_refused();
}

static void what_is_to_be_zero_is_looked_at(void **state)
{
	open_raw();
	say(MESSAGE(.flags = { 0, 0, 0, 1 }));
	expect_refused();
}

static void credit_beyond_the_window_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.credit = 1));
	expect_refused();
}

static void credit_that_is_taken_back_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.credit = -1));
	expect_refused();
}

static void octets_behind_the_last_are_refused(void **state)
{
	open_raw();
	say(MESSAGE(.flags = { 1 }, .len = 4));
	say(MESSAGE(.before = 1, .len = 1));
	expect_refused_at_the_end();
}

static void a_second_end_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.flags = { 1 }));
	say(MESSAGE(.before = 1, .flags = { 1 }));
	expect_refused_at_the_end();
}

/* Not one octet beyond the window is accepted. */
static void octets_without_credit_are_refused(void **state)
{
	uint32_t left, n = 0;

	open_raw();
	for (left = WINDOW; left; left -= 32768) {
		say(MESSAGE(.before = n++, .len = 32768));
		await_octets(WINDOW - left + 32768);
	}
	await_octets(WINDOW);
	say(MESSAGE(.before = n, .len = 1));
	expect_refused_at_the_end();
}

static void segments_out_of_order_are_refused(void **state)
{
	open_raw();
	say(MESSAGE(.more = true, .len = 10));
	say(MESSAGE(.headless = true, .mo = 28, .len = 10));
	expect_refused();
}

static void writes_and_reads_find_no_memory(void **state)
{
	/* Tagged, Last flag; a Write to STag 0, offset 4096. */
	static const uint8_t write[] = {
		0, 14 + 4, 0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 'e', 'v', 'i', 'l', 0, 0, 0, 0,
	};

	open_raw();
	raw_say(&e[0], write, sizeof(write));
	expect_refused();
}

static void immediate_data_is_refused(void **state)
{
	open_raw();
	say(MESSAGE(.opcode = 8));
	expect_refused();
}

/* Any input: nothing breaks, and nothing invalid is accepted. */
static void octets_at_random_break_nothing(void **state)
{
	uint32_t round, i;

	for (round = 0; round < 300; round++) {
		struct message m = MESSAGE(.len = 20);
		uint32_t n = 0;
		uint8_t p[200];

		open_raw();
		for (i = 0; i < 3; i++) {
			m.before = i;
			n += write_fpdu(p + n, &m);
		}
		spoil(p, n, 1 + round % 3);
		raw_say(&e[0], p, n);
		end_close(&e[0]);
		expect_over(&e[1]);
		end_close(&e[1]);
		ends_connect(e);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, connect_ends, close_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_plain_client_keeps_all_its_octets),
		CASE(on_one_port_an_iwarp_client_is_served_too),
		CASE(octets_before_the_switch_are_delivered_first),
		CASE(many_octets_before_the_switch_wait_in_tcp),
		CASE(a_frame_may_come_octet_by_octet),
		CASE(part_of_a_key_and_fin_are_plain_octets),
		CASE(both_ends_at_once_agree_on_an_initiator),
		CASE(two_initiators_do_not_meet),
		CASE(other_terms_are_rejected),
		CASE(an_initiator_hears_that_it_is_rejected),
		CASE(a_reply_of_other_terms_is_an_error),
		CASE(a_reply_of_no_right_length_is_an_error),
		CASE(a_request_of_no_right_length_is_an_error),
		CASE(octets_behind_a_request_are_an_error),
		CASE(long_private_data_is_rejected),
		CASE(a_request_at_random_breaks_nothing),
		CASE(a_reply_at_random_breaks_nothing),
		CASE(an_initiator_that_closes_at_once_leaves_an_end),
		CASE(a_half_may_be_shut_before_it_is_open),
		CASE(octets_sent_early_arrive_after_close),
		CASE(octets_sent_early_are_bounded),
		CASE(octets_sent_early_to_a_plain_peer_are_an_error),
		CASE(octets_of_a_responder_wait_for_the_peer),
		CASE(octets_sent_early_and_closed_have_a_time_limit),
		CASE(a_peer_that_dies_in_the_exchange_is_an_error),
		CASE(a_request_that_stops_midway_is_given_up),
		CASE(a_peer_that_dies_in_a_message_is_an_error),
		CASE(a_killed_process_ends_the_stream),
		CASE(the_option_starts_each_role),
		CASE(the_option_may_leave_a_plain_socket),
		CASE(what_the_option_does_not_know_is_refused),
		CASE(a_message_of_octets_is_taken),
		CASE(a_message_without_a_head_is_refused),
		CASE(an_unknown_flag_is_refused),
		CASE(what_is_to_be_zero_is_looked_at),
		CASE(credit_beyond_the_window_is_refused),
		CASE(credit_that_is_taken_back_is_refused),
		CASE(octets_behind_the_last_are_refused),
		CASE(a_second_end_is_refused),
		CASE(octets_without_credit_are_refused),
		CASE(segments_out_of_order_are_refused),
		CASE(writes_and_reads_find_no_memory),
		CASE(immediate_data_is_refused),
		CASE(octets_at_random_break_nothing),
	};

	return cmocka_run_group_tests_name("sockets: upgrade", tests, NULL, NULL);
}
