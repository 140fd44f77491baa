// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The beginning and end of posted operations, octets mixed with them, and hostile peers and
 * programs.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "ops_ends.h"

/* ---- octets ---- */

static void octets_and_operations_do_not_mix(void **state)
{
	struct iovec v = { (char[8]){}, 8 };
	char c;

	assert_int_equal(send(e[0].fd, "before", 6, 0), 6);
	open_both();
	/* Octets that the peer sent before iWARP are received first, and none later. */
	assert_true(rl_stream_poll(e[1].s) & POLLIN);
	assert_int_equal(rl_stream_recv(e[1].s, &v, 1, MSG_PEEK), 6);
	assert_int_equal(end_recv(&e[1], &c, 1), 1);
	assert_int_equal(c, 'b');
	assert_int_equal(rl_stream_recv(e[1].s, &v, 1, 0), 5);
	assert_memory_equal(v.iov_base, "efore", 5);
	assert_int_equal(end_recv(&e[1], &c, 1), -EOPNOTSUPP);
	assert_int_equal(end_send(&e[1], "x", 1), -EOPNOTSUPP);
	assert_int_equal(rl_stream_shutdown(e[1].s, SHUT_WR), -EOPNOTSUPP);
	assert_int_equal(weft_recv(e[0].fd, &c, 1, 0, 1), 0);
	assert_int_equal(weft_send(e[1].fd, "y", 1, 0, 2), 0);
	expect_event(0, WEFT_POST_RECV, 1, 1);
	assert_int_equal(c, 'y');
	assert_int_equal(rl_stream_inq(e[0].s), 0);
}

/*
 * Neither before the ends agree nor after: poll() would report the octets, and the wait would
 * spin.
 */
static void octets_from_before_end_a_wait_for_events(void **state)
{
	struct weft_qevent ev;
	char c;

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	raw_say(&e[0], "b", 1);
	assert_int_equal(weft_qdequeue(e[1].fd, &ev, 1, -1), -1);
	assert_int_equal(errno, EBUSY);
	upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(end_await_phase(&e[1], &e[0]), RL_STREAM_OPEN);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	expect_event(0, WEFT_POST_SEND, 2, 1);
	/* Events are returned first. */
	assert_true(is_readable(e[1].fd, SOON_MS));
	expect_event(1, WEFT_POST_RECV, 1, 1);
	assert_int_equal(weft_qdequeue(e[1].fd, &ev, 1, -1), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(end_recv(&e[1], &c, 1), 1);
	expect_none(1);
}

static void a_stream_of_octets_has_no_operations(void **state)
{
	uint32_t key;

	upgrade(0, WEFT_IWARP_INITIATOR, 0, 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 0), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(weft_mregister(e[0].fd, range[0], 1, WEFT_MAY_PUT, &key), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(weft_qfd(e[0].fd), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

/* Whichever end posts gets the error. */
static void refuse(int asks)
{
	char c;
	int i;

	upgrade(asks, asks, WEFT_IWARP_OPERATIONS, 1000);
	for (i = 0; i < 1000; i++)
		assert_int_equal(weft_recv(e[asks].fd, &c, 1, 0, i), 0);
	assert_int_equal(weft_send(e[asks].fd, "x", 1, 0, 2), 0);
	upgrade(!asks, !asks, 0, 0);
	end_await_phase(&e[1], &e[0]);
	assert_int_equal(end_await_phase(&e[0], &e[1]), RL_STREAM_FAILED);
	assert_int_equal(end_await_phase(&e[1], &e[0]), RL_STREAM_FAILED);
	expect_failed(asks, WEFT_POST_SEND, 2, ECANCELED);
	for (i = 0; i < 1000; i++)
		expect_failed(asks, WEFT_POST_RECV, i, ECANCELED);
	expect_end(asks, asks ? EPROTO : ECONNREFUSED);
}

static void a_peer_of_octets_is_refused(void **state)
{
	refuse(WEFT_IWARP_INITIATOR);
}

static void a_peer_of_octets_refuses(void **state)
{
	refuse(WEFT_IWARP_RESPONDER);
}

static void a_plain_client_is_left_alone(void **state)
{
	char got[3];

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS | WEFT_IWARP_OR_PLAIN, 0);
	raw_say(&e[0], "GET", 3);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_PLAIN);
	assert_int_equal(weft_send(e[1].fd, "x", 1, 0, 0), -1);
	assert_int_equal(errno, EPROTO);
	rl_stream_close(e[1].s);
	e[1].s = NULL;
	assert_int_equal(recv(e[1].fd, got, 3, MSG_WAITALL), 3);
}

/*
 * The end that has posted gets the error, and a sleeper at its descriptor wakes, also after the
 * stream's end.
 */
static void a_plain_client_ends_what_is_posted(void **state)
{
	char c;
	int q;

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS | WEFT_IWARP_OR_PLAIN, 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	q = weft_qfd(e[1].fd);
	assert_false(is_readable(q, 0));
	raw_say(&e[0], "GET", 3);
	assert_true(is_readable(q, SOON_MS));
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	assert_int_equal(weft_qnow(e[1].fd, &(struct weft_qevent){}, 1), -1);
	assert_int_equal(errno, EPROTO);
	rl_stream_close(e[1].s);
	e[1].s = NULL;
	assert_true(is_readable(q, 0));
	close(q);
}

static void a_client_that_says_nothing_ends_it(void **state)
{
	char c;

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	end_close(&e[0]);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_end(1, ENOTCONN);
}

/* ---- the end ---- */

static void a_close_brings_all_that_is_complete(void **state)
{
	enum { LEN = 100000 };
	static uint8_t in[LEN];
	uint32_t key;
	char c;

	open_both();
	key = registered(1, range[1], LEN, WEFT_MAY_PUT);
	fill(local[0], LEN, 40, 0);
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 2), 0);
	assert_int_equal(weft_put(e[0].fd, local[0], LEN, key, 0, 0, 3), 0);
	assert_int_equal(weft_send(e[0].fd, local[0], LEN, 0, 4), 0);
	expect_event(0, WEFT_POST_PUT, 3, LEN);
	expect_event(0, WEFT_POST_SEND, 4, LEN);
	end_close(&e[0]);
	expect_event(1, WEFT_POST_RECV, 1, LEN);
	expect(in, LEN, 40, 0);
	expect(range[1], LEN, 40, 0);
	expect_failed(1, WEFT_POST_RECV, 2, ECANCELED);
	expect_end(1, ENOTCONN);
}

/* Incomplete operations are reported, and their memory is no longer read. */
static void a_close_amid_a_send_is_an_error_of_the_peer(void **state)
{
	enum { LEN = 64 << 20 };
	uint8_t *out = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *in = malloc(LEN);

	open_both();
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, out, LEN, 0, 2), 0);
	assert_int_equal(weft_qnow(e[0].fd, &(struct weft_qevent){}, 1), -1);
	end_close(&e[0]);
	munmap(out, LEN);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_end(1, ECONNRESET);
	free(in);
}

/*
 * Closes in the middle of a message; the buffers that the peer has posted are its program's again.
 */
static void a_close_takes_the_receives_back(void **state)
{
	enum { LEN = 64 << 20 };
	uint8_t *out = malloc(LEN), *in = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	open_both();
	memset(out, 7, LEN);
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, out, LEN, 0, 2), 0);
	while (!amid(in))
		rl_stream_poll(e[1].s);
	end_close(&e[1]);
	memset(in, 9, LEN);
	/* TCP may have taken all of it before the peer's frame arrives. */
	assert_int_equal(take(0).ahandle, 2);
	expect_end(0, ECONNRESET);
	for (i = 0; i < LEN; i += 64)
		assert_int_equal(in[i], 9);
	free(out);
	munmap(in, LEN);
}

static void a_close_takes_ranges_back(void **state)
{
	uint32_t key;

	open_both();
	key = registered(1, range[1], 4096, WEFT_MAY_PUT);
	memset(range[1], 9, 4096);
	end_close(&e[1]);
	if (!weft_put(e[0].fd, "x", 1, key, 0, 0, 1))
		assert_int_equal(take(0).what, WEFT_POST_PUT);
	assert_int_equal(weft_qdequeue(e[0].fd, &(struct weft_qevent){}, 1, SOON_MS), -1);
	assert_int_equal(amid(range[1]), 9);
}

/* Threads may still be in calls, as when a process exits, while the ring of receives is gone. */
static void nothing_is_posted_behind_the_close(void **state)
{
	uint32_t key;
	char c;
	int i;

	open_both();
	for (i = 0; i < 3; i++)
		assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, i), 0);
	assert_true(rl_stream_take_back(e[1].s));
	for (i = 0; i < 3; i++) {
		assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, i), -1);
		assert_int_equal(errno, ENOTCONN);
		assert_int_equal(weft_send(e[1].fd, &c, 1, 0, i), -1);
		assert_int_equal(errno, ENOTCONN);
		assert_int_equal(weft_mregister(e[1].fd, range[1], 1, WEFT_MAY_PUT, &key), -1);
		assert_int_equal(errno, ENOTCONN);
	}
}

/* A waiting thread still holds the stream: only its last descriptor was closed. */
static void what_is_closed_under_a_waiter_is_taken_back(void **state)
{
	uint32_t key;
	char c = 9;

	open_both();
	key = registered(1, range[1], 4096, WEFT_MAY_PUT);
	range[1][0] = 9;
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	assert_false(rl_stream_poll(e[1].s) & POLLIN);
	assert_true(rl_stream_take_back(e[1].s));
	assert_true(rl_stream_poll(e[1].s) & POLLIN);
	if (!weft_put(e[0].fd, "x", 1, key, 0, 0, 1))
		assert_int_equal(take(0).what, WEFT_POST_PUT);
	while (weft_qdequeue(e[0].fd, &(struct weft_qevent){}, 1, SOON_MS) == 1)
		;
	rl_stream_poll(e[1].s);
	assert_int_equal(amid(range[1]), 9);
	assert_int_equal(c, 9);
	assert_int_equal(weft_send(e[1].fd, "x", 1, 0, 2), -1);
}

/* Nor does the exchange begin after the last close. */
static void what_is_closed_early_never_opens(void **state)
{
	char word[5];

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_true(rl_stream_take_back(e[1].s));
	raw_say(&e[0], "MPA ID Req Frame\0\1\0\x0cwefS\1\1\0\0\0\x10\0\0", 32);
	assert_true(is_readable(e[1].fd, SOON_MS));
	assert_true(rl_stream_poll(e[1].s) & POLLHUP);
	assert_int_equal(recv(e[1].fd, word, 5, MSG_DONTWAIT | MSG_PEEK), 5);
}

static void an_unreceived_message_is_an_error(void **state)
{
	open_both();
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 1), 0);
	expect_event(0, WEFT_POST_SEND, 1, 1);
	assert_true(is_readable(e[1].fd, SOON_MS));
	expect_none(1);
	end_close(&e[1]);
	expect_end(0, ECONNRESET);
}

static void a_message_that_waits_survives_the_close(void **state)
{
	char got[2] = {};

	options()->close_ms = 20;
	open_both();
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 1), 0);
	expect_event(0, WEFT_POST_SEND, 1, 1);
	end_close(&e[0]);
	assert_true(is_readable(e[1].fd, SOON_MS));
	expect_none(1);
	/* As long as it likes: neither end has a time-out for that. */
	usleep(100000);
	expect_none(1);
	assert_int_equal(weft_recv(e[1].fd, got, 2, 0, 2), 0);
	expect_event(1, WEFT_POST_RECV, 2, 1);
	assert_string_equal(got, "x");
	expect_end(1, ENOTCONN);
}

/* After octets that are never received. */
static void the_end_is_seen_behind_a_message_that_waits(void **state)
{
	open_both();
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 1), 0);
	expect_event(0, WEFT_POST_SEND, 1, 1);
	assert_true(is_readable(e[1].fd, SOON_MS));
	expect_none(1);
	end_reset(&e[0]);
	assert_int_equal(weft_qdequeue(e[1].fd, &(struct weft_qevent){}, 1, SOON_MS), -1);
	assert_int_equal(errno, ECONNRESET);
}

/* RST in the middle of a message. */
static void a_peer_that_dies_ends_what_is_posted(void **state)
{
	enum { LEN = 16 << 20 };
	uint8_t *out = malloc(LEN), *in = calloc(1, LEN);
	char c;

	open_both();
	memset(out, 7, LEN);
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 2), 0);
	assert_int_equal(weft_send(e[0].fd, out, LEN, 0, 3), 0);
	while (!amid(in))
		rl_stream_poll(e[1].s);
	end_reset(&e[0]);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_failed(1, WEFT_POST_RECV, 2, ECANCELED);
	expect_end(1, ECONNRESET);
	expect_failed(0, WEFT_POST_SEND, 3, ECANCELED);
	free(out);
	free(in);
}

/* A killed process: TCP sends FIN in the middle of a message. */
static void a_peer_that_is_killed_ends_what_is_posted(void **state)
{
	enum { LEN = 64 << 20 };
	uint8_t *in = calloc(1, LEN);
	int status;
	pid_t pid = fork();

	if (!pid) {
		uint8_t *out = malloc(LEN);

		memset(out, 7, LEN);
		upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
		assert_int_equal(weft_send(e[0].fd, out, LEN, 0, 1), 0);
		weft_qdequeue(e[0].fd, &(struct weft_qevent){}, 1, SOON_MS);
		_exit(0);
	}
	close(e[0].fd);
	e[0].fd = -1;
	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	while (!amid(in))
		rl_stream_poll(e[1].s);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_end(1, ECONNRESET);
	free(in);
}

/* Unsent data is sent until the time-out. */
static void a_process_that_ends_sends_what_it_has_posted(void **state)
{
	enum { LEN = 16 << 20 };
	uint8_t *in = calloc(1, LEN);
	int status;
	pid_t pid;

	/* The peer is a process, which may be busy. */
	options()->close_ms = 60000;
	pid = fork();
	if (!pid) {
		uint8_t *out = malloc(LEN);

		fill(out, LEN, 50, 0);
		upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
		assert_int_equal(weft_send(e[0].fd, out, LEN, 0, 1), 0);
		/* The exchange ends with the first waiting event. */
		assert_int_equal(end_await_phase(&e[0], NULL), RL_STREAM_OPEN);
		rl_stream_exit();
		_exit(0);
	}
	close(e[0].fd);
	e[0].fd = -1;
	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[1].fd, in, LEN, 0, 1), 0);
	expect_event(1, WEFT_POST_RECV, 1, LEN);
	expect(in, LEN, 50, 0);
	expect_end(1, ENOTCONN);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	free(in);
}

/* The child has no access to the parent's memory, even before the ends have agreed. */
static void what_is_posted_is_not_the_childs(void **state)
{
	int status;
	pid_t pid;
	char c;

	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	pid = fork();
	if (!pid) {
		bool ok = weft_qnow(e[1].fd, &(struct weft_qevent){}, 1) < 0 && errno == EIO;

		rl_stream_close(e[1].s);
		_exit(!ok);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	upgrade(0, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, 0);
	assert_int_equal(weft_send(e[0].fd, "z", 1, 0, 2), 0);
	expect_event(1, WEFT_POST_RECV, 1, 1);
	assert_int_equal(c, 'z');
}

static void the_child_of_a_fork_has_no_operations(void **state)
{
	struct weft_qevent ev;
	int status;
	uint32_t key;
	pid_t pid;
	char c;

	open_both();
	key = registered(1, range[1], 4096, WEFT_MAY_PUT);
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	pid = fork();
	if (!pid) {
		bool ok = weft_send(e[1].fd, "x", 1, 0, 0) && errno == EIO;

		ok = ok && weft_recv(e[1].fd, &c, 1, 0, 0) && errno == EIO;
		ok = ok && weft_qnow(e[1].fd, &ev, 1) < 0 && errno == EIO;
		ok = ok && weft_qfd(e[1].fd) < 0 && errno == EIO;
		ok = ok && weft_mregister(e[1].fd, range[1], 1, WEFT_MAY_PUT, &key) && errno == EIO;
		ok = ok && weft_mderegister(e[1].fd, key) && errno == EIO;
		rl_stream_close(e[1].s);
		rl_stream_close(e[0].s);
		_exit(!ok);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(weft_put(e[0].fd, "y", 1, key, 0, 0, 2), 0);
	assert_int_equal(weft_send(e[0].fd, "z", 1, 0, 3), 0);
	expect_event(1, WEFT_POST_RECV, 1, 1);
	assert_int_equal(c, 'z');
	assert_int_equal(amid(range[1]), 'y');
}

/* ---- what the options do not know ---- */

static void expect_refused(struct weft_operation op, int why)
{
	assert_int_equal(to_set(e[0].fd, SOL_WEFT, WEFT_OPERATION, &op, sizeof(op)), -1);
	assert_int_equal(errno, why);
}

static void what_is_not_known_is_refused(void **state)
{
	static struct iovec v[WEFT_POST_IOV + 1];
	const struct weft_operation good = { .size = sizeof(good), .iov = (uintptr_t)v };
	const struct weft_memory known = { .size = sizeof(known), .access = WEFT_MAY_PUT,
					   .addr = (uintptr_t)range[0], .length = 1 };
	struct weft_iwarp_mode m = { .size = sizeof(m), .depth = 1 };
	struct weft_operation op;
	struct weft_memory mem;
	socklen_t len = sizeof(mem);
	uint32_t key;

	let_guard_catch();
	assert_int_equal(rl_stream_setsockopt(e[0].fd, WEFT_IWARP_MODE, &m, sizeof(m), &rl_ops_of_stream, &e[0].s), -EINVAL);
	m.flags = WEFT_IWARP_OPERATIONS;
	m.depth = 16385;
	assert_int_equal(rl_stream_setsockopt(e[0].fd, WEFT_IWARP_MODE, &m, sizeof(m), &rl_ops_of_stream, &e[0].s), -EINVAL);
	m.depth = 1;
	m.window = 65536;
	assert_int_equal(rl_stream_setsockopt(e[0].fd, WEFT_IWARP_MODE, &m, sizeof(m), &rl_ops_of_stream, &e[0].s), -EINVAL);
	open_both();
	op = good;
	op.size--;
	expect_refused(op, EINVAL);
	op = good;
	op.what = 4;
	expect_refused(op, EINVAL);
	op = good;
	op.flags = 2;
	expect_refused(op, EINVAL);
	op = good;
	op.reserved = 1;
	expect_refused(op, EINVAL);
	op = good;
	op.key = 1;
	expect_refused(op, EINVAL);
	op = good;
	op.offset = 1;
	expect_refused(op, EINVAL);
	op = good;
	op.niov = WEFT_POST_IOV + 1;
	expect_refused(op, EINVAL);
	op = good;
	op.what = WEFT_POST_GET;
	op.niov = 2;
	expect_refused(op, EINVAL);
	op = good;
	op.what = WEFT_POST_RECV;
	op.flags = WEFT_POST_FENCE;
	expect_refused(op, EINVAL);
	op = good;
	op.niov = 1;
	op.iov = 8;
	expect_refused(op, EFAULT);
	op = good;
	op.niov = 2;
	v[0] = (struct iovec){ range[0], 0x80000000u };
	v[1] = (struct iovec){ range[0], 1 };
	expect_refused(op, EMSGSIZE);
	v[0].iov_len = -1ul;
	v[1].iov_len = 2;
	expect_refused(op, EMSGSIZE);
	assert_int_equal(to_set(e[0].fd, SOL_WEFT, WEFT_OPERATION, &good, sizeof(good) - 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(to_set(e[0].fd, SOL_WEFT, WEFT_OPERATION, (void *)8, sizeof(good)), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(to_set(e[0].fd, SOL_WEFT, 7, &good, sizeof(good)), -1);
	assert_int_equal(errno, ENOPROTOOPT);
	assert_int_equal(weft_post(e[0].fd, 256, NULL, 0, 0, 0, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_sendv(e[0].fd, v, -1, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_mregister(e[0].fd, range[0], 0, WEFT_MAY_PUT, &key), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_mregister(e[0].fd, range[0], 1, 0, &key), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_mregister(e[0].fd, range[0], 1, 4, &key), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_mregister(e[0].fd, (void *)4096, 4096, WEFT_MAY_PUT, &key), -1);
	assert_int_equal(errno, EFAULT);
	mem = known;
	mem.reserved = 1;
	assert_int_equal(to_get(e[0].fd, SOL_WEFT, WEFT_MREGISTER, &mem, &len), -1);
	assert_int_equal(errno, EINVAL);
	len = sizeof(mem) - 1;
	assert_int_equal(to_get(e[0].fd, SOL_WEFT, WEFT_MREGISTER, &mem, &len), -1);
	assert_int_equal(errno, EINVAL);
	len = 23;
	assert_int_equal(to_get(e[0].fd, SOL_WEFT, WEFT_QEVENTS, &mem, &len), -1);
	assert_int_equal(errno, EINVAL);
	len = 3;
	assert_int_equal(to_get(e[0].fd, SOL_WEFT, WEFT_QFD, &key, &len), -1);
	assert_int_equal(errno, EINVAL);
	/* None of the posted operations took effect. */
	expect_none(0);
	expect_none(1);
}

/* An event that cannot be returned is kept. */
static void events_are_not_lost_to_a_bad_pointer(void **state)
{
	socklen_t len = sizeof(struct weft_qevent);
	char c;

	let_guard_catch();
	open_both();
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 1), 0);
	assert_int_equal(weft_send(e[0].fd, "x", 1, 0, 2), 0);
	assert_int_equal(to_get(e[0].fd, SOL_WEFT, WEFT_QEVENTS, (void *)8, &len), -1);
	assert_int_equal(errno, EFAULT);
	expect_event(0, WEFT_POST_SEND, 2, 1);
}

/* ---- a peer made of octets ---- */

#define REQUEST "MPA ID Req Frame\0\1\0\x0cwefS\1\1\0\0\0\x10\0\0"

static uint8_t wire[4096];

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

static void open_raw(void)
{
	upgrade(1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, 0);
	raw_say(&e[0], REQUEST, 32);
	raw_hear(&e[0], &e[1], wire, 32);
	assert_memory_equal(wire, "MPA ID Rep Frame", 16);
	assert_memory_equal(wire + 20, "wefS\1\1\0\0", 8);
	assert_int_equal(end_await_phase(&e[1], NULL), RL_STREAM_OPEN);
}

/* Writes a tagged segment with the Last flag, without CRC. */
static void say_tagged(uint8_t opcode, uint32_t stag, uint64_t to, const char *octets)
{
	uint32_t len = strlen(octets), n = 2 + 14 + len;

	memset(wire, 0, n + 8);
	wire[1] = 14 + len;
	wire[2] = 0xc1;
	wire[3] = 0x40 | opcode;
	put32(wire + 4, stag);
	put32(wire + 8, to >> 32);
	put32(wire + 12, to);
	memcpy(wire + 16, octets, len);
	raw_say(&e[0], wire, ((n + 3) & ~3u) + 4);
}

/* Writes an untagged one of message 1 at offset @mo, with the Last flag if @mo is 0. */
static void say_untagged(uint8_t opcode, uint32_t qn, uint32_t mo, const void *octets, uint32_t len)
{
	uint32_t n = 2 + 18 + len;

	memset(wire, 0, n + 8);
	wire[1] = 18 + len;
	wire[2] = mo ? 1 : 0x41;
	wire[3] = 0x40 | opcode;
	put32(wire + 8, qn);
	put32(wire + 12, 1);
	put32(wire + 16, mo);
	memcpy(wire + 20, octets, len);
	raw_say(&e[0], wire, ((n + 3) & ~3u) + 4);
}

static uint8_t hear_opcode(void)
{
	uint32_t n;

	raw_hear(&e[0], &e[1], wire, 2);
	n = wire[0] << 8 | wire[1];
	raw_hear(&e[0], &e[1], wire + 2, ((2 + n + 3) & ~3u) + 4 - 2);
	return wire[3] & 15;
}

static void expect_terminate(int why)
{
	expect_end(1, why);
	assert_int_equal(hear_opcode(), 7);
}

/* The key of local work, which covers all memory, is not valid for peers. */
static void stag_0_is_not_the_peers(void **state)
{
	char c = 'a';

	open_raw();
	say_tagged(0, 0, (uintptr_t)&c, "x");
	expect_terminate(EACCES);
	assert_int_equal(c, 'a');
}

static void a_read_of_stag_0_is_refused(void **state)
{
	uint8_t ask[28] = {};
	char c = 'a';

	open_raw();
	put32(ask + 12, 1);
	put32(ask + 20, (uintptr_t)&c >> 32);
	put32(ask + 24, (uintptr_t)&c);
	say_untagged(1, 1, 0, ask, sizeof(ask));
	expect_terminate(EACCES);
}

static void an_unsolicited_response_is_refused(void **state)
{
	char c = 'a';

	open_raw();
	say_tagged(2, 0, (uintptr_t)&c, "x");
	expect_terminate(ECONNRESET);
	assert_int_equal(c, 'a');
}

/* The sink of a get accepts only the get's Response, and no octet more. */
static void an_answer_beyond_the_sink_is_refused(void **state)
{
	char sink[8] = "1234567";

	open_raw();
	say_tagged(0, 1, 0, "");
	assert_int_equal(weft_get(e[1].fd, sink, 4, 77, 5, 0, 1), 0);
	assert_int_equal(hear_opcode(), 1);
	say_tagged(2, 0, (uintptr_t)sink + 1, "abcd");
	expect_failed(1, WEFT_POST_GET, 1, EREMOTEIO);
	expect_terminate(EACCES);
	assert_string_equal(sink, "1234567");
}

static void a_message_that_begins_amid_is_refused(void **state)
{
	char got[8] = "1234567";

	open_raw();
	assert_int_equal(weft_recv(e[1].fd, got, 8, 0, 1), 0);
	say_untagged(3, 0, 2, "z", 1);
	expect_failed(1, WEFT_POST_RECV, 1, ECANCELED);
	expect_terminate(ECONNRESET);
	assert_string_equal(got, "1234567");
}

static void operations_are_those_of_rdmap(void **state)
{
	static const uint8_t opcodes[] = { 0, 1, 3 };
	char c;
	int i;

	open_raw();
	say_tagged(0, 1, 0, "");
	assert_int_equal(weft_put(e[1].fd, "put", 3, 0x12345678, 0x1122334455667788, 0, 1), 0);
	assert_int_equal(weft_get(e[1].fd, &c, 1, 0x12345678, 9, 0, 2), 0);
	assert_int_equal(weft_send(e[1].fd, "send", 4, 0, 3), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(hear_opcode(), opcodes[i]);
		if (!i) {
			assert_memory_equal(wire + 4, "\x12\x34\x56\x78\x11\x22\x33\x44\x55\x66\x77\x88put", 15);
		}
		if (i == 2)
			assert_memory_equal(wire + 20, "send", 4);
	}
	/* And only a Send completes a receive. */
	assert_int_equal(weft_recv(e[1].fd, &c, 1, 0, 4), 0);
	say_untagged(3, 0, 0, "z", 1);
	expect_event(1, WEFT_POST_PUT, 1, 3);
	expect_event(1, WEFT_POST_RECV, 4, 1);
	assert_int_equal(c, 'z');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER_LO(octets_and_operations_do_not_mix),
		OVER_LO(octets_from_before_end_a_wait_for_events),
		OVER_LO(a_stream_of_octets_has_no_operations),
		OVER_LO(a_peer_of_octets_is_refused),
		OVER_LO(a_peer_of_octets_refuses),
		OVER_LO(a_plain_client_is_left_alone),
		OVER_LO(a_plain_client_ends_what_is_posted),
		OVER_LO(a_client_that_says_nothing_ends_it),
		OVER_LO(a_close_brings_all_that_is_complete),
		OVER_LO(a_close_amid_a_send_is_an_error_of_the_peer),
		OVER_LO(a_close_takes_the_receives_back),
		OVER_LO(a_close_takes_ranges_back),
		OVER_LO(nothing_is_posted_behind_the_close),
		OVER_LO(what_is_closed_under_a_waiter_is_taken_back),
		OVER_LO(what_is_closed_early_never_opens),
		OVER_LO(an_unreceived_message_is_an_error),
		OVER_LO(a_message_that_waits_survives_the_close),
		OVER_LO(the_end_is_seen_behind_a_message_that_waits),
		OVER_LO(a_peer_that_dies_ends_what_is_posted),
		OVER_LO(a_peer_that_is_killed_ends_what_is_posted),
		OVER_LO(a_process_that_ends_sends_what_it_has_posted),
		OVER_LO(what_is_posted_is_not_the_childs),
		OVER_LO(the_child_of_a_fork_has_no_operations),
		OVER_LO(what_is_not_known_is_refused),
		OVER_LO(events_are_not_lost_to_a_bad_pointer),
		OVER_LO(stag_0_is_not_the_peers),
		OVER_LO(a_read_of_stag_0_is_refused),
		OVER_LO(an_unsolicited_response_is_refused),
		OVER_LO(an_answer_beyond_the_sink_is_refused),
		OVER_LO(a_message_that_begins_amid_is_refused),
		OVER_LO(operations_are_those_of_rdmap),
	};

	return cmocka_run_group_tests_name("sockets: ends of operations", tests, NULL, NULL);
}
