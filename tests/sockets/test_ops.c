// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posted operations between two sockets of one process: their effects, and what peers may not do.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "ops_ends.h"

static int setup_crc(void **state)
{
	setup(state);
	options()->crc = true;
	return 0;
}

/* ---- sends and receives ---- */

static void a_send_fills_the_receive(void **state)
{
	char got[2][100] = {};
	int i;

	open_both();
	for (i = 0; i < 2; i++) {
		assert_int_equal(weft_recv(e[!i].fd, got[!i], 100, 0, 7), 0);
		assert_int_equal(weft_send(e[i].fd, "hello", 5, 0, 8 + i), 0);
		expect_event(i, WEFT_POST_SEND, 8 + i, 5);
		expect_event(!i, WEFT_POST_RECV, 7, 5);
		assert_memory_equal(got[!i], "hello", 6);
	}
	expect_none(0);
	expect_none(1);
}

static void what_is_posted_before_the_ends_agree_follows(void **state)
{
	char got[2][8];

	upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[0].fd, got[0], 8, 0, 1), 0);
	assert_int_equal(weft_send(e[1].fd, "from 1", 6, 0, 2), 0);
	assert_int_equal(weft_recv(e[1].fd, got[1], 8, 0, 3), 0);
	assert_int_equal(weft_send(e[0].fd, "from 0", 6, 0, 4), 0);
	expect_event(1, WEFT_POST_RECV, 3, 6);
	expect_event(0, WEFT_POST_SEND, 4, 6);
	expect_event(0, WEFT_POST_RECV, 1, 6);
	expect_event(1, WEFT_POST_SEND, 2, 6);
	assert_memory_equal(got[0], "from 1", 6);
	assert_memory_equal(got[1], "from 0", 6);
}

/* Sends @n octets in pieces of all sizes, and receives them in pieces of other sizes. */
static void gather(size_t n)
{
	static uint8_t out[1 << 20], in[1 << 20];
	struct iovec from[WEFT_POST_IOV], to[WEFT_POST_IOV];
	size_t i, a = 0, b = n;

	fill(out, n, 3, 0);
	memset(in, 0, n);
	for (i = 0; i < WEFT_POST_IOV; i++) {
		size_t left = i == WEFT_POST_IOV - 1 ? n - a : (n - a) / (WEFT_POST_IOV - i) * (i % 3);

		from[i] = (struct iovec){ out + a, left };
		a += left;
		left = i == WEFT_POST_IOV - 1 ? b : b / 3;
		to[i] = (struct iovec){ in + n - b, left };
		b -= left;
	}
	assert_int_equal(weft_recvv(e[1].fd, to, WEFT_POST_IOV, 0, 1), 0);
	assert_int_equal(weft_sendv(e[0].fd, from, WEFT_POST_IOV, 0, 2), 0);
	expect_event(1, WEFT_POST_RECV, 1, n);
	expect_event(0, WEFT_POST_SEND, 2, n);
	expect(in, n, 3, 0);
}

static void sends_gather_and_receives_scatter(void **state)
{
	open_both();
	gather(0);
	gather(1);
	gather(256);
	gather(257);
	gather(70000);
	gather(1 << 20);
}

static void messages_of_no_octets_are_messages(void **state)
{
	open_both();
	assert_int_equal(weft_recvv(e[1].fd, NULL, 0, 0, 1), 0);
	assert_int_equal(weft_sendv(e[0].fd, NULL, 0, 0, 2), 0);
	assert_int_equal(weft_put(e[0].fd, NULL, 0, 0, 0, 0, 3), 0);
	expect_event(1, WEFT_POST_RECV, 1, 0);
	expect_event(0, WEFT_POST_SEND, 2, 0);
	expect_event(0, WEFT_POST_PUT, 3, 0);
}

/* Sends more than TCP takes to a peer that does not read: the calls return, and nothing is lost. */
static void posting_does_not_wait(void **state)
{
	enum { LEN = 8 << 20 };
	uint8_t *out = malloc(LEN), *in = malloc(LEN);
	int i;

	open_both();
	fill(out, LEN, 4, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(weft_send(e[0].fd, out, LEN, 0, i), 0);
	assert_int_equal(weft_qnow(e[0].fd, &(struct weft_qevent){}, 1), -1);
	assert_int_equal(errno, EAGAIN);
	for (i = 0; i < 4; i++) {
		memset(in, 0, LEN);
		assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, i), 0);
		expect_event(1, WEFT_POST_RECV, i, LEN);
		expect(in, LEN, 4, 0);
	}
	for (i = 0; i < 4; i++)
		expect_event(0, WEFT_POST_SEND, i, LEN);
	free(out);
	free(in);
}

/* A message waits for its receive, and so do the messages after it. */
static void a_send_waits_for_a_receive(void **state)
{
	char got[2][4] = {};

	open_both();
	assert_int_equal(weft_send(e[0].fd, "one", 4, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, "two", 4, 0, 2), 0);
	expect_event(0, WEFT_POST_SEND, 1, 4);
	expect_event(0, WEFT_POST_SEND, 2, 4);
	assert_true(is_readable(e[1].fd, SOON_MS));
	expect_none(1);
	/* poll() does not report a message without a receive. */
	assert_false(rl_stream_poll(e[1].s) & POLLIN);
	assert_false(rl_stream_awaits(e[1].s, POLLIN) & POLLIN);
	assert_int_equal(weft_recv(e[1].fd, got[0], 4, 0, 3), 0);
	expect_event(1, WEFT_POST_RECV, 3, 4);
	assert_int_equal(weft_recv(e[1].fd, got[1], 4, 0, 4), 0);
	expect_event(1, WEFT_POST_RECV, 4, 4);
	assert_string_equal(got[0], "one");
	assert_string_equal(got[1], "two");
}

static void a_message_longer_than_its_receive_is_an_error(void **state)
{
	char got[4] = "abc";

	open_both();
	assert_int_equal(weft_recv(e[1].fd, got, 3, 0, 1), 0);
	assert_int_equal(weft_recv(e[1].fd, got, 3, 0, 2), 0);
	assert_int_equal(weft_send(e[0].fd, "0123", 4, 0, 3), 0);
	expect_event(0, WEFT_POST_SEND, 3, 4);
	expect_failed(1, WEFT_POST_RECV, 1, EMSGSIZE);
	expect_failed(1, WEFT_POST_RECV, 2, ECANCELED);
	expect_end(1, ECONNRESET);
	expect_end(0, ECONNRESET);
	assert_string_equal(got, "abc");
}

static void a_receive_of_no_memory_is_an_error(void **state)
{
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	let_guard_catch();
	open_both();
	assert_int_equal(weft_send(e[0].fd, gone, 4096, 0, 1), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(weft_send(e[0].fd, gone, 1, 0, 1), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(weft_recv(e[1].fd, gone, 4096, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	expect_event(0, WEFT_POST_SEND, 2, 1);
	expect_failed(1, WEFT_POST_RECV, 1, EFAULT);
	expect_end(1, ECONNRESET);
	expect_end(0, ECONNRESET);
	munmap(gone, 4096);
}

/* ---- puts and gets ---- */

static void puts_and_gets_go_both_ways(void **state)
{
	const struct iovec parts[] = { { local[0], 1000 }, { local[0] + 1000, 199000 } };
	uint32_t key[2];
	int i;

	open_both();
	for (i = 0; i < 2; i++) {
		memset(range[i], 0, sizeof(range[i]));
		key[i] = registered(i, range[i], sizeof(range[i]), WEFT_MAY_PUT | WEFT_MAY_GET);
		fill(local[i], sizeof(local[i]), 10 + i, 0);
	}
	assert_int_equal(weft_putv(e[0].fd, parts, 2, key[1], 50000, 0, 1), 0);
	assert_int_equal(weft_put(e[1].fd, local[1], 200000, key[0], 100000, 0, 2), 0);
	assert_int_equal(weft_get(e[0].fd, local[0], 200000, key[1], 50000, 0, 3), 0);
	assert_int_equal(weft_get(e[1].fd, local[1], 200000, key[0], 100000, 0, 4), 0);
	expect_event(0, WEFT_POST_PUT, 1, 200000);
	expect_event(1, WEFT_POST_PUT, 2, 200000);
	expect_event(0, WEFT_POST_GET, 3, 200000);
	expect_event(1, WEFT_POST_GET, 4, 200000);
	expect(range[1] + 50000, 200000, 10, 0);
	expect(range[0] + 100000, 200000, 11, 0);
	expect(local[0], 200000, 10, 0);
	expect(local[1], 200000, 11, 0);
	assert_int_equal(amid(range[1] + 49999) | amid(range[1] + 250000) | amid(range[0] + 99999), 0);
}

/* The target makes no call, and no thread of its own is in one. */
static void put_without_a_call(bool early)
{
	struct weft_qevent ev;
	uint32_t key = 0;
	int got = 0;

	upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	if (early)
		key = registered(1, range[1], sizeof(range[1]), WEFT_MAY_PUT);
	assert_int_equal(end_await_phase(&e[1], &e[0]), RL_STREAM_OPEN);
	if (!early)
		key = registered(1, range[1], sizeof(range[1]), WEFT_MAY_PUT);
	memset(range[1], 0, sizeof(range[1]));
	fill(local[0], sizeof(local[0]), 12, 0);
	assert_int_equal(weft_put(e[0].fd, local[0], sizeof(local[0]), key, 0, 0, 1), 0);
	/* An empty get completes once the peer has processed everything before it. */
	assert_int_equal(weft_get(e[0].fd, NULL, 0, 0, 0, 0, 2), 0);
	while (got < 2) {
		struct pollfd p = { e[0].fd, 0, 0 };

		if (weft_qnow(e[0].fd, &ev, 1) == 1) {
			got++;
			assert_int_equal(ev.error, 0);
			assert_int_equal(ev.ahandle, got);
			continue;
		}
		p.events = rl_stream_awaits(e[0].s, POLLIN);
		assert_int_equal(poll(&p, 1, SOON_MS), 1);
	}
	expect(range[1], sizeof(range[1]), 12, 0);
}

static void a_put_needs_no_call_of_the_target(void **state)
{
	put_without_a_call(false);
}

static void nor_if_the_range_was_there_before_the_ends_agreed(void **state)
{
	put_without_a_call(true);
}

static void events_come_in_the_order_of_posting(void **state)
{
	static char got[40][8];
	uint32_t key;
	int i;

	open_both();
	key = registered(1, range[1], sizeof(range[1]), WEFT_MAY_PUT | WEFT_MAY_GET);
	for (i = 0; i < 40; i++)
		assert_int_equal(weft_recv(e[1].fd, got[i], 8, 0, i), 0);
	/* A get takes a round trip; operations after it complete sooner. */
	for (i = 0; i < 40; i++) {
		assert_int_equal(weft_get(e[0].fd, local[0], 100000, key, 0, 0, 3 * i), 0);
		assert_int_equal(weft_send(e[0].fd, &i, sizeof(i), 0, 3 * i + 1), 0);
		assert_int_equal(weft_put(e[0].fd, local[1], 10, key, 200000, 0, 3 * i + 2), 0);
	}
	for (i = 0; i < 40; i++) {
		expect_event(0, WEFT_POST_GET, 3 * i, 100000);
		expect_event(0, WEFT_POST_SEND, 3 * i + 1, sizeof(i));
		expect_event(0, WEFT_POST_PUT, 3 * i + 2, 10);
	}
	for (i = 0; i < 40; i++) {
		expect_event(1, WEFT_POST_RECV, i, sizeof(i));
		assert_memory_equal(got[i], &i, sizeof(i));
	}
}

/* When a send after the put arrives, the put's data is in place. */
static void a_send_tells_of_the_puts_before_it(void **state)
{
	uint32_t key;
	char c;
	int i;

	open_both();
	key = registered(1, range[1], sizeof(range[1]), WEFT_MAY_PUT);
	for (i = 0; i < 50; i++) {
		assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 0), 0);
		fill(local[0], sizeof(local[0]), 100 + i, 0);
		assert_int_equal(weft_put(e[0].fd, local[0], sizeof(local[0]), key, 0, 0, 1), 0);
		assert_int_equal(weft_send(e[0].fd, "!", 1, 0, 2), 0);
		expect_event(1, WEFT_POST_RECV, 0, 1);
		expect(range[1], sizeof(range[1]), 100 + i, 0);
		expect_event(0, WEFT_POST_PUT, 1, sizeof(local[0]));
		expect_event(0, WEFT_POST_SEND, 2, 1);
	}
}

/* Forwards the data of a get: without the fence the send might send the old data. */
static void a_fence_waits_for_gets(void **state)
{
	uint32_t key;

	open_both();
	key = registered(1, range[1], sizeof(range[1]), WEFT_MAY_GET);
	fill(range[1], sizeof(range[1]), 13, 0);
	memset(local[0], 0, sizeof(local[0]));
	assert_int_equal(weft_recv(e[1].fd, local[1], sizeof(local[1]), 0, 1), 0);
	assert_int_equal(weft_get(e[0].fd, local[0], sizeof(local[0]), key, 0, 0, 2), 0);
	assert_int_equal(weft_send(e[0].fd, local[0], sizeof(local[0]), WEFT_POST_FENCE, 3), 0);
	expect_event(1, WEFT_POST_RECV, 1, sizeof(local[0]));
	expect(local[1], sizeof(local[1]), 13, 0);
	expect_event(0, WEFT_POST_GET, 2, sizeof(local[0]));
	expect_event(0, WEFT_POST_SEND, 3, sizeof(local[0]));
}

/* ---- what a peer may not ---- */

struct denied {
	uint64_t offset;
	uint32_t length;
	uint32_t key_xor;
	int access;
	bool get;
};

/*
 * Both ends get an error: the target's receive is flushed, and the initiator learns of it no later
 * than in an operation that awaits an answer.
 */
static void expect_denied(const struct denied *d)
{
	uint32_t key;
	char c = 0;

	open_both();
	memset(range[1], 0, sizeof(range[1]));
	memset(local[0], 1, sizeof(local[0]));
	key = registered(1, range[1] + 1000, 4096, d->access) ^ d->key_xor;
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	if (d->get)
		assert_int_equal(weft_get(e[0].fd, local[0], d->length, key, d->offset, 0, 2), 0);
	else
		assert_int_equal(weft_put(e[0].fd, local[0], d->length, key, d->offset, 0, 2), 0);
	assert_int_equal(weft_get(e[0].fd, NULL, 0, 0, 0, 0, 3), 0);
	if (d->get)
		expect_failed(0, WEFT_POST_GET, 2, EACCES);
	else
		expect_event(0, WEFT_POST_PUT, 2, d->length);
	expect_failed(0, WEFT_POST_GET, 3, ECANCELED);
	expect_end(0, EACCES);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_end(1, EACCES);
	for (key = 0; key < sizeof(range[1]); key++)
		assert_int_equal(amid(range[1] + key), 0);
	for (key = 0; d->get && key < d->length; key++)
		assert_int_equal(local[0][key], 1);
}

static void a_put_beyond_the_range_ends_both(void **state)
{
	expect_denied(&(struct denied){ .offset = 4000, .length = 97, .access = WEFT_MAY_PUT | WEFT_MAY_GET });
}

static void a_put_before_the_range_ends_both(void **state)
{
	expect_denied(&(struct denied){ .offset = -1ull, .length = 2, .access = WEFT_MAY_PUT });
}

static void a_put_far_beyond_ends_both(void **state)
{
	expect_denied(&(struct denied){ .offset = 1ull << 63, .length = 2, .access = WEFT_MAY_PUT });
}

static void a_put_to_an_unknown_key_ends_both(void **state)
{
	expect_denied(&(struct denied){ .length = 10, .key_xor = 0x5a5a5a00, .access = WEFT_MAY_PUT });
}

static void a_put_by_half_a_key_ends_both(void **state)
{
	expect_denied(&(struct denied){ .length = 10, .key_xor = 1, .access = WEFT_MAY_PUT });
}

static void a_put_to_what_may_be_got_ends_both(void **state)
{
	expect_denied(&(struct denied){ .length = 10, .access = WEFT_MAY_GET });
}

static void a_get_from_what_may_be_put_ends_both(void **state)
{
	expect_denied(&(struct denied){ .length = 10, .access = WEFT_MAY_PUT, .get = true });
}

static void a_get_beyond_the_range_ends_both(void **state)
{
	expect_denied(&(struct denied){ .offset = 1, .length = 4096, .access = WEFT_MAY_GET, .get = true });
}

/* The key belongs to the same process, but to another connection. */
static void a_range_is_for_one_socket(void **state)
{
	uint32_t key;

	open_both();
	ends_connect(e + 2);
	open_deep(2, 0);
	key = registered(3, range[1], 4096, WEFT_MAY_PUT);
	memset(range[1], 0, 4096);
	assert_int_equal(weft_put(e[0].fd, "x", 1, key, 0, 0, 1), 0);
	expect_event(0, WEFT_POST_PUT, 1, 1);
	expect_end(0, EACCES);
	expect_end(1, EACCES);
	assert_int_equal(amid(range[1]), 0);
	assert_int_equal(weft_put(e[2].fd, "x", 1, key, 0, 0, 2), 0);
	expect_event(2, WEFT_POST_PUT, 2, 1);
	assert_int_equal(weft_get(e[2].fd, NULL, 0, 0, 0, 0, 3), 0);
	expect_event(2, WEFT_POST_GET, 3, 0);
	assert_int_equal(amid(range[1]), 'x');
}

static void a_range_is_deregistered_once(void **state)
{
	uint32_t key;

	open_both();
	key = registered(1, range[1], 4096, WEFT_MAY_PUT);
	assert_int_equal(weft_mderegister(e[1].fd, key ^ 1), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(weft_mderegister(e[0].fd, key), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(weft_mderegister(e[1].fd, key), 0);
	assert_int_equal(weft_mderegister(e[1].fd, key), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(weft_put(e[0].fd, "x", 1, key, 0, 0, 1), 0);
	expect_event(0, WEFT_POST_PUT, 1, 1);
	expect_end(0, EACCES);
	expect_end(1, EACCES);
}

/*
 * Deregisters in the middle of a put or a get: nothing touches the memory once the call returns.
 * The thread continues with puts while this one waits for a CPU, so there must be many.
 */
static void deregister_in_use(bool get)
{
	enum { LEN = 64 << 20, PUTS = 16 };
	uint8_t *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *own = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *first = get ? own : mem;
	struct weft_qevent ev = {};
	uint32_t key;
	size_t i;

	open_both();
	memset(get ? mem : own, 7, LEN);
	key = registered(1, mem, LEN, get ? WEFT_MAY_GET : WEFT_MAY_PUT);
	if (get)
		assert_int_equal(weft_get(e[0].fd, own, LEN, key, 0, 0, 1), 0);
	for (i = 0; !get && i < PUTS; i++)
		assert_int_equal(weft_put(e[0].fd, own, LEN, key, 0, 0, i), 0);
	while (amid(first) != 7) {
		struct pollfd p = { e[0].fd, POLLIN, 0 };

		rl_stream_poll(e[0].s);
		assert_true(poll(&p, 1, 1) >= 0);
	}
	assert_int_equal(weft_mderegister(e[1].fd, key), 0);
	memset(mem, 9, LEN);
	if (get)
		expect_failed(0, WEFT_POST_GET, 1, EACCES);
	for (i = 0; !get && i < PUTS; i++) {
		ev = take(0);
		assert_int_equal(ev.what, WEFT_POST_PUT);
		assert_int_equal(ev.ahandle, i);
	}
	/* Some are still pending. */
	assert_true(get || ev.error);
	expect_end(0, EACCES);
	expect_end(1, EACCES);
	for (i = 0; i < LEN; i += 64)
		assert_int_equal(mem[i], 9);
	/* No data of the memory's next use is sent. */
	for (i = 0; get && i < LEN; i += 64)
		assert_int_not_equal(own[i], 9);
	munmap(mem, LEN);
	munmap(own, LEN);
}

static void deregistered_under_a_put(void **state)
{
	deregister_in_use(false);
}

static void deregistered_under_a_get(void **state)
{
	deregister_in_use(true);
}

/* ---- the queue ---- */

static void a_full_queue_takes_no_more(void **state)
{
	struct weft_qevent ev[8];
	char c[8];
	int i;

	open_deep(0, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(weft_recv(e[1].fd, c + i, 1, 0, i), 0);
		assert_int_equal(weft_send(e[0].fd, "abcd" + i, 1, 0, i), 0);
	}
	/* They have completed but were not dequeued. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(weft_send(e[0].fd, "e", 1, 0, 4), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(weft_put(e[0].fd, "e", 1, 1, 0, 0, 4), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(weft_recv(e[1].fd, c + 4, 1, 0, 4), -1);
		assert_int_equal(errno, EAGAIN);
	}
	/* Receives have their own entries. */
	assert_int_equal(weft_recv(e[0].fd, c + 5, 1, 0, 5), 0);
	expect_event(0, WEFT_POST_SEND, 0, 1);
	expect_event(1, WEFT_POST_RECV, 0, 1);
	assert_int_equal(weft_recv(e[1].fd, c + 4, 1, 0, 4), 0);
	assert_int_equal(weft_send(e[0].fd, "e", 1, 0, 4), 0);
	expect_event(1, WEFT_POST_RECV, 1, 1);
	for (i = 2; i < 5; i++)
		expect_event(1, WEFT_POST_RECV, i, 1);
	assert_int_equal(weft_qdequeue(e[0].fd, ev, 8, 0), 4);
	assert_int_equal(ev[3].ahandle, 4);
	assert_memory_equal(c, "abcde", 5);
}

/* Far more than the rings have entries for, and of all lengths. */
static void the_rings_go_round(void **state)
{
	static uint8_t in[8][5000];
	struct iovec v[WEFT_POST_IOV];
	int i, k;

	open_deep(0, 8);
	fill(local[0], sizeof(local[0]), 20, 0);
	for (i = 0; i < 1000; i++) {
		int n = i % (WEFT_POST_IOV + 1);

		for (k = 0; k < n; k++)
			v[k] = (struct iovec){ local[0] + i * 7 + k * (i % 300), i % 300 };
		assert_int_equal(weft_recv(e[1].fd, in[i % 8], 5000, 0, i), 0);
		assert_int_equal(weft_sendv(e[0].fd, v, n, 0, i), 0);
		expect_event(0, WEFT_POST_SEND, i, n * (i % 300));
		expect_event(1, WEFT_POST_RECV, i, n * (i % 300));
		expect(in[i % 8], n * (i % 300), 20, i * 7);
	}
}

static void each_socket_has_a_queue_of_its_own(void **state)
{
	char got[2][4];

	open_both();
	ends_connect(e + 2);
	open_deep(2, 0);
	assert_int_equal(weft_recv(e[1].fd, got[0], 4, 0, 1), 0);
	assert_int_equal(weft_recv(e[3].fd, got[1], 4, 0, 2), 0);
	assert_int_equal(weft_send(e[2].fd, "two", 4, 0, 3), 0);
	expect_event(3, WEFT_POST_RECV, 2, 4);
	expect_event(2, WEFT_POST_SEND, 3, 4);
	expect_none(0);
	expect_none(1);
	assert_int_equal(weft_send(e[0].fd, "one", 4, 0, 4), 0);
	expect_event(1, WEFT_POST_RECV, 1, 4);
	expect_none(2);
	expect_none(3);
	end_close(&e[2]);
	expect_end(3, ENOTCONN);
	expect_event(0, WEFT_POST_SEND, 4, 4);
}

/* Both send and receive all the time, and neither waits for the other. */
static void both_ends_at_once(void **state)
{
	enum { N = 300 };
	static uint8_t in[2][16][70000];
	int sent[2] = {}, done[2] = {}, posted[2] = {}, got[2] = {}, i;
	struct weft_qevent ev;

	upgrade(0, WEFT_IWARP_SYMMETRIC, WEFT_IWARP_OPERATIONS, 16);
	upgrade(1, WEFT_IWARP_SYMMETRIC, WEFT_IWARP_OPERATIONS, 16);
	fill(local[0], sizeof(local[0]), 30, 0);
	while (got[0] < N || got[1] < N || done[0] < N || done[1] < N)
		for (i = 0; i < 2; i++) {
			for (; posted[i] < N; posted[i]++)
				if (weft_recv(e[i].fd, in[i][posted[i] % 16], 70000, 0, posted[i]))
					break;
			for (; sent[i] < N; sent[i]++)
				if (weft_send(e[i].fd, local[0] + sent[i], sent[i] * 233, 0, sent[i]))
					break;
			if (weft_qdequeue(e[i].fd, &ev, 1, 0) != 1)
				continue;
			assert_int_equal(ev.error, 0);
			assert_int_equal(ev.length, ev.ahandle * 233);
			if (ev.what == WEFT_POST_SEND) {
				assert_int_equal(ev.ahandle, done[i]++);
				continue;
			}
			assert_int_equal(ev.ahandle, got[i]);
			expect(in[i][got[i] % 16], ev.length, 30, got[i]);
			got[i]++;
		}
}

/* ---- the descriptor ---- */

/* The waiting end makes no call. */
static void an_epoll_waits_at_the_descriptor(void **state)
{
	int ep = epoll_create1(0), q, q2;
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 77 }, out;
	char got[2][4];

	open_both();
	q = weft_qfd(e[1].fd);
	assert_true(q >= 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, q, &ev), 0);
	assert_int_equal(weft_recv(e[1].fd, got[0], 4, 0, 1), 0);
	assert_int_equal(weft_recv(e[1].fd, got[1], 4, 0, 2), 0);
	assert_int_equal(epoll_wait(ep, &out, 1, 0), 0);
	assert_int_equal(weft_send(e[0].fd, "one", 4, 0, 3), 0);
	assert_int_equal(epoll_wait(ep, &out, 1, SOON_MS), 1);
	assert_int_equal(out.data.u32, 77);
	expect_event(1, WEFT_POST_RECV, 1, 4);
	assert_false(is_readable(q, 0));
	assert_int_equal(weft_send(e[0].fd, "two", 4, 0, 4), 0);
	assert_true(is_readable(q, SOON_MS));
	/* A second descriptor, readable at once since an event is waiting. */
	q2 = weft_qfd(e[1].fd);
	assert_true(is_readable(q2, 0));
	close(q);
	expect_event(1, WEFT_POST_RECV, 2, 4);
	assert_false(is_readable(q2, 0));
	/* The end keeps the descriptor readable, also after the last event. */
	assert_int_equal(weft_recv(e[1].fd, got[0], 4, 0, 5), 0);
	end_close(&e[0]);
	assert_true(is_readable(q2, SOON_MS));
	expect_failed(1, WEFT_POST_RECV, 5, ECANCELED);
	assert_true(is_readable(q2, 0));
	expect_end(1, ENOTCONN);
	assert_true(is_readable(q2, 0));
	close(q2);
	close(ep);
}

/* The program cannot take or change the library's own descriptor through it. */
static void the_descriptor_cannot_be_read(void **state)
{
	uint64_t n = 1;
	char c;
	int q;

	open_both();
	q = weft_qfd(e[0].fd);
	assert_int_equal(fcntl(q, F_SETFL, 0), 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	assert_true(is_readable(q, SOON_MS));
	assert_int_equal(read(q, &n, sizeof(n)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(write(q, &n, sizeof(n)), -1);
	assert_int_equal(errno, EINVAL);
	assert_true(is_readable(q, 0));
	expect_event(0, WEFT_POST_SEND, 2, 1);
	assert_false(is_readable(q, 0));
	/* It becomes readable when the socket is closed, since no event will follow. */
	end_close(&e[0]);
	assert_true(is_readable(q, 0));
	close(q);
}

/* Nor is one needed for set-up: both ends sleep at their descriptors from before it on. */
static void ends_that_wait_at_the_descriptor_agree(void **state)
{
	int q[2];
	char c;

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	q[1] = weft_qfd(e[1].fd);
	upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	q[0] = weft_qfd(e[0].fd);
	assert_true(is_readable(q[1], SOON_MS));
	assert_true(is_readable(q[0], SOON_MS));
	expect_event(1, WEFT_POST_RECV, 1, 1);
	expect_event(0, WEFT_POST_SEND, 2, 1);
	close(q[0]);
	close(q[1]);
}

/* The exchange never completes. */
static void closed_while_the_thread_starts_it(void **state)
{
	int q, i;

	for (i = 0; i < 50; i++) {
		upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
		q = weft_qfd(e[1].fd);
		assert_true(q >= 0);
		raw_say(&e[0], "plain", 5);
		end_close(&e[1]);
		close(q);
		end_close(&e[0]);
		ends_connect(e);
	}
}

static void poll_tells_of_events_and_of_room(void **state)
{
	char c;

	open_deep(0, 1);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	assert_int_equal(rl_stream_poll(e[0].s), POLLOUT);
	assert_int_equal(rl_stream_poll(e[1].s), POLLOUT);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	assert_int_equal(rl_stream_poll(e[0].s), POLLIN | POLLOUT);
	assert_true(end_await(&e[1], &e[0], POLLIN) & POLLIN);
	expect_event(0, WEFT_POST_SEND, 2, 1);
	expect_event(1, WEFT_POST_RECV, 1, 1);
	assert_int_equal(rl_stream_poll(e[0].s), POLLOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER_LO(a_send_fills_the_receive),
		OVER_LO(what_is_posted_before_the_ends_agree_follows),
		OVER_LO(sends_gather_and_receives_scatter),
		OVER_LO(messages_of_no_octets_are_messages),
		OVER_LO(posting_does_not_wait),
		OVER_LO(a_send_waits_for_a_receive),
		OVER_LO(a_message_longer_than_its_receive_is_an_error),
		OVER_LO(a_receive_of_no_memory_is_an_error),
		OVER_LO(puts_and_gets_go_both_ways),
		{ "puts_and_gets_with_crc", puts_and_gets_go_both_ways, setup_crc, cleanup, NULL },
		OVER_LO(a_put_needs_no_call_of_the_target),
		OVER_LO(nor_if_the_range_was_there_before_the_ends_agreed),
		OVER_LO(events_come_in_the_order_of_posting),
		OVER_LO(a_send_tells_of_the_puts_before_it),
		OVER_LO(a_fence_waits_for_gets),
		OVER_LO(a_put_beyond_the_range_ends_both),
		OVER_LO(a_put_before_the_range_ends_both),
		OVER_LO(a_put_far_beyond_ends_both),
		OVER_LO(a_put_to_an_unknown_key_ends_both),
		OVER_LO(a_put_by_half_a_key_ends_both),
		OVER_LO(a_put_to_what_may_be_got_ends_both),
		OVER_LO(a_get_from_what_may_be_put_ends_both),
		OVER_LO(a_get_beyond_the_range_ends_both),
		OVER_LO(a_range_is_for_one_socket),
		OVER_LO(a_range_is_deregistered_once),
		OVER_LO(deregistered_under_a_put),
		OVER_LO(deregistered_under_a_get),
		OVER_LO(a_full_queue_takes_no_more),
		OVER_LO(the_rings_go_round),
		OVER_LO(each_socket_has_a_queue_of_its_own),
		OVER_LO(both_ends_at_once),
		OVER_LO(an_epoll_waits_at_the_descriptor),
		OVER_LO(the_descriptor_cannot_be_read),
		OVER_LO(ends_that_wait_at_the_descriptor_agree),
		OVER_LO(closed_while_the_thread_starts_it),
		OVER_LO(poll_tells_of_events_and_of_room),
	};

	return cmocka_run_group_tests_name("sockets: operations", tests, NULL, NULL);
}
