// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A stream of octets over a connection: the semantics of send, recv, shutdown and close. */
#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../providers/rootless/process/stats.h"
#include "../../providers/sockets/stream/conn.h"
#include "ends.h"

/* The thread sanitizer makes copying slow. */
#ifdef __SANITIZE_THREAD__
#define MUCH	16
#else
#define MUCH	1
#endif

static struct end e[2];

static int open_ends(void **state)
{
	options()->crc = false;
	ends_open(e);
	return 0;
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Number before the first test. */
static int descriptors;

/*
 * Once the connections of the previous tests have ended, the thread has only its own three
 * descriptors: an epoll, an eventfd and a timerfd.
 */
static int open_alone(void **state)
{
	int tries = 0;

	while (count_descriptors() > descriptors + 3) {
		assert_true(++tries < 60000);
		usleep(1000);
	}
	return open_ends(state);
}

static int open_with_crc(void **state)
{
	options()->crc = true;
	ends_open(e);
	return 0;
}

/* Each end requests Markers from the other: all octets are copied. */
static int open_with_markers(void **state)
{
	options()->crc = options()->markers = true;
	ends_mss = 1448;
	ends_open(e);
	return 0;
}

/* Calls of sendmsg() that TCP takes only in part. */
static int open_narrow(void **state)
{
	int small = 4096, i;

	options()->crc = false;
	ends_connect(e);
	for (i = 0; i < 2; i++) {
		assert_int_equal(setsockopt(e[i].fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
		assert_int_equal(setsockopt(e[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	}
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_await_phase(&e[1], &e[0]);
	end_await_phase(&e[0], &e[1]);
	return 0;
}

/* As on Ethernet: a message takes many FPDUs. */
static int open_ethernet(void **state)
{
	options()->crc = false;
	ends_mss = 1448;
	ends_open(e);
	return 0;
}

static int close_ends(void **state)
{
	ends_mss = 0;
	options()->markers = false;
	ends_close(e);
	return 0;
}

/* ---- octets ---- */

static uint32_t rng = 7;

static uint32_t below(uint32_t n)
{
	rng = rng * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)rng * n) >> 32);
}

static size_t random_size(void)
{
	static const uint32_t most[] = { 1, 8, 600, 5000, 70000, 300000 };

	return 1 + below(most[below(6)]);
}

struct flow {
	uint64_t sent, got;
};

static uint8_t out[300001], in[300001];

/* In up to three pieces. */
static int cut(struct iovec iov[3], uint8_t *p, size_t n)
{
	size_t a = below(n + 1), b = below(n - a + 1);

	iov[0] = (struct iovec){ p, a };
	iov[1] = (struct iovec){ p + a, b };
	iov[2] = (struct iovec){ p + a + b, n - a - b };
	return 3;
}

/* The program may reuse its memory as soon as the call has returned. */
static ssize_t say_some(int i, struct flow *f, uint64_t most)
{
	size_t n = random_size();
	struct iovec iov[3];
	ssize_t rv;

	if (n > most - f->sent)
		n = most - f->sent;
	if (!n)
		return 0;
	fill(out, n, i, f->sent);
	rv = rl_stream_send(e[i].s, iov, cut(iov, out, n), 0);
	memset(out, 0xee, n);
	assert_true(rv > 0 || rv == -EAGAIN);
	f->sent += rv > 0 ? rv : 0;
	return rv;
}

static ssize_t hear_some(int i, struct flow *f)
{
	int flags = below(8) ? 0 : MSG_PEEK;
	size_t n = random_size();
	struct iovec iov[3];
	ssize_t rv = rl_stream_recv(e[i].s, iov, cut(iov, in, n), flags);

	assert_true(rv > 0 || rv == -EAGAIN);
	if (rv < 0)
		return rv;
	expect(in, rv, !i, f->got);
	if (!flags)
		f->got += rv;
	return rv;
}

static void move(uint64_t most)
{
	struct flow f[2] = {};
	int idle = 0;

	while (f[0].got < most || f[1].got < most) {
		uint32_t what = below(4), i = what & 1;
		ssize_t rv = what & 2 ? say_some(i, &f[i], most) : hear_some(i, &f[!i]);

		assert_true(f[!i].got <= f[!i].sent);
		idle = rv > 0 ? 0 : idle + 1;
		if (idle > 100) {
			rl_stream_poll(e[0].s);
			rl_stream_poll(e[1].s);
			usleep(100);
		}
		assert_true(idle < 100000);
	}
}

static void octets_arrive_in_order_both_ways(void **state)
{
	move((8 << 20) / MUCH);
}

static void a_little_at_a_time_arrives_through_small_buffers(void **state)
{
	move((1 << 20) / MUCH);
}

/* For a reader of large pieces. */
static void a_long_stream_arrives_in_a_large_buffer(void **state)
{
	static uint8_t big[1 << 20];
	uint64_t sent = 0, got = 0;

	while (got < (64 << 20) / MUCH) {
		ssize_t n;

		fill(out, 100000, 3, sent);
		n = end_send(&e[0], out, 100000);
		assert_true(n > 0 || n == -EAGAIN);
		sent += n > 0 ? n : 0;
		if (n > 0 && below(4))
			continue;
		n = end_recv(&e[1], big, sizeof(big));
		assert_true(n > 0 || n == -EAGAIN);
		if (n > 0)
			expect(big, n, 3, got);
		got += n > 0 ? n : 0;
	}
}

static void a_peek_takes_nothing(void **state)
{
	struct iovec iov = { in, 5 };

	end_send_all(&e[0], &e[1], "hello", 5);
	end_await(&e[1], &e[0], POLLIN);
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK), 5);
	assert_memory_equal(in, "hello", 5);
	assert_int_equal(rl_stream_inq(e[1].s), 5);
	memset(in, 0, 5);
	assert_int_equal(end_recv(&e[1], in, 2), 2);
	assert_int_equal(end_recv(&e[1], in + 2, 9), 3);
	assert_memory_equal(in, "hello", 5);
	assert_int_equal(end_recv(&e[1], in, 1), -EAGAIN);
}

static void a_peek_for_all_waits_for_all(void **state)
{
	struct iovec iov = { in, 7 };

	end_send_all(&e[0], &e[1], "ab", 2);
	end_await(&e[1], &e[0], POLLIN);
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK | MSG_WAITALL), -EAGAIN);
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK), 2);
	end_send_all(&e[0], &e[1], "first", 5);
	while (rl_stream_inq(e[1].s) < 7)
		;
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK | MSG_WAITALL), 7);
	assert_memory_equal(in, "abfirst", 7);
	/* No more octets will follow: the stream has ended, or the peer has no credit left. */
	iov.iov_len = 8;
	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	while (!(rl_stream_poll(e[1].s) & POLLRDHUP))
		;
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK | MSG_WAITALL), 7);
}

/* A program that peeks until a record is complete sees it complete. */
static void a_peek_for_more_finds_what_has_come(void **state)
{
	struct iovec iov = { in, 9 };
	struct pollfd p = { e[1].fd, POLLIN, 0 };

	end_send_all(&e[0], &e[1], "hello", 5);
	end_await(&e[1], &e[0], POLLIN);
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK), 5);
	assert_int_equal(end_send(&e[0], " you", 4), 4);
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_int_equal(rl_stream_recv(e[1].s, &iov, 1, MSG_PEEK), 9);
	assert_memory_equal(in, "hello you", 9);
}

/* The queue's memory is not even touched. */
static void octets_go_straight_to_the_waiting_reader(void **state)
{
	static const uint8_t untouched[4096];
	uint64_t got = 0;

	fill(out, 300000, 10, 0);
	end_send_all(&e[0], NULL, out, 300000);
	while (got < 300000) {
		struct pollfd p = { e[1].fd, POLLIN, 0 };
		ssize_t n = end_recv(&e[1], in + got, sizeof(in) - got);

		assert_true(n > 0 || n == -EAGAIN);
		got += n > 0 ? n : 0;
		if (n < 0)
			assert_int_equal(poll(&p, 1, SOON_MS), 1);
	}
	expect(in, 300000, 10, 0);
	assert_memory_equal(e[1].s->in.mem, untouched, sizeof(untouched));
}

/* Its poll() has emptied TCP: a server of many sockets makes one call to TCP per request. */
static void what_a_poll_took_in_costs_no_more_calls(void **state)
{
	uint8_t buf[16384];
	u64 calls;

	assert_int_equal(end_send(&e[0], "GET key", 7), 7);
	assert_true(end_await(&e[1], &e[0], POLLIN) & POLLIN);
	calls = rl_stats[RL_RX_CALLS];
	assert_int_equal(end_recv(&e[1], buf, sizeof(buf)), 7);
	assert_memory_equal(buf, "GET key", 7);
	assert_int_equal(rl_stats[RL_RX_CALLS], calls);
}

/* Whichever step reads, the octets go to the queue. */
static void step(void)
{
	rl_conn_lock(e[1].s->conn);
	rl_conn_receive(e[1].s->conn);
	rl_stream_count(e[1].s);
	rl_conn_unlock(e[1].s->conn);
}

/* ---- news ---- */

static unsigned int heard, news;

static void hear(void *arg, unsigned int events)
{
	assert_ptr_equal(arg, &heard);
	heard |= events;
	news++;
}

/* Octets are moved by the thread that holds the connection, while another thread waits for them. */
static void a_waiter_is_woken_by_what_others_move(void **state)
{
	struct pollfd p = { e[1].fd, POLLIN, 0 };
	unsigned int before;

	rl_stream_tell(e[1].s, hear, &heard);
	assert_int_equal(rl_stream_poll(e[1].s), POLLOUT);
	heard = 0;
	end_send_all(&e[0], &e[1], "octets", 6);
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_int_equal(heard, 0);
	step();
	assert_int_equal(heard, POLLIN);
	/* There were some; more are reported, too, but an empty read is not. */
	end_send_all(&e[0], &e[1], "more", 4);
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	before = news;
	step();
	assert_int_equal(news, before + 1);
	step();
	assert_int_equal(news, before + 1);
	assert_int_equal(end_recv(&e[1], in, 100), 10);
	/* Credit. */
	while (end_send(&e[1], out, 50000) > 0)
		;
	heard = 0;
	while (!(heard & POLLOUT)) {
		end_recv(&e[0], in, sizeof(in));
		step();
	}
	/* And the end of the stream. */
	heard = 0;
	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	while (!(heard & POLLRDHUP))
		step();
	assert_true(heard & POLLIN);
	heard = 0;
	assert_int_equal(rl_stream_shutdown(e[1].s, SHUT_WR), 0);
	assert_true(heard & POLLHUP);
}

/* Like a thread that waits to read while another shuts down. */
static void a_shutdown_is_news(void **state)
{
	rl_stream_tell(e[1].s, hear, &heard);
	heard = 0;
	assert_int_equal(rl_stream_shutdown(e[1].s, SHUT_RD), 0);
	assert_true(heard & POLLIN);
}

static void a_part_of_a_message_is_news(void **state)
{
	u64 calls = 0;

	rl_stream_tell(e[1].s, hear, &heard);
	heard = 0;
	fill(out, 60000, 14, 0);
	assert_int_equal(end_send(&e[0], out, 60000), 60000);
	while (!heard && calls++ < 1000) {
		struct pollfd p = { e[1].fd, POLLIN, 0 };

		poll(&p, 1, 10);
		rl_conn_lock(e[1].s->conn);
		rl_conn_receive(e[1].s->conn);
		rl_conn_unlock(e[1].s->conn);
	}
	assert_true(heard & POLLIN);
	/* rl_stream_has() reports it without a look at TCP. */
	assert_true(rl_stream_has(e[1].s) & POLLIN);
}

/*
 * A message of many parts, each queued by a step, then received by a call with room for all, or
 * only for this part.
 */
static void hear_in_parts(bool no_more_room)
{
	uint64_t got = 0;

	fill(out, 60000, 13, 0);
	assert_int_equal(end_send(&e[0], out, 60000), 60000);
	while (got < 60000) {
		struct pollfd p = { e[1].fd, POLLIN, 0 };
		ssize_t n;

		step();
		n = end_recv(&e[1], in, no_more_room && e[1].s->in.len ? e[1].s->in.len : sizeof(in));
		if (n == -EAGAIN) {
			rl_stream_poll(e[0].s);
			poll(&p, 1, 10);
			continue;
		}
		assert_true(n > 0);
		expect(in, n, 13, got);
		got += n;
	}
}

static void the_first_part_of_a_message_comes_first(void **state)
{
	hear_in_parts(false);
}

/* The rest then goes to the queue's next octet. */
static void a_queue_may_be_emptied_in_mid_message(void **state)
{
	hear_in_parts(true);
}

/* ---- memory ---- */

static bool no_blocks;

void *__real_rl_pool_take(void);
void *__wrap_rl_pool_take(void);
void *__wrap_rl_pool_take(void)
{
	return __atomic_load_n(&no_blocks, __ATOMIC_RELAXED) ? NULL : __real_rl_pool_take();
}

/* The program may reuse its memory, and its sent octets are not lost. */
static void what_was_sent_without_memory_goes_out_later(void **state)
{
	fill(out, 60000, 11, 0);
	__atomic_store_n(&no_blocks, true, __ATOMIC_RELAXED);
	assert_int_equal(end_send(&e[0], out, 60000), 60000);
	memset(out, 0xee, 60000);
	assert_int_equal(end_send(&e[0], out, 1), -EAGAIN);
	__atomic_store_n(&no_blocks, false, __ATOMIC_RELAXED);
	end_recv_all(&e[1], &e[0], in, 60000);
	expect(in, 60000, 11, 0);
	end_send_all(&e[0], &e[1], "more", 4);
	end_recv_all(&e[1], &e[0], in, 4);
	assert_memory_equal(in, "more", 4);
}

static uint64_t send_all_there_is(struct end *from, uint32_t seed)
{
	uint64_t sent = 0;
	ssize_t n;

	for (;;) {
		fill(out, 50000, seed, sent);
		n = end_send(from, out, 50000);
		if (n == -EAGAIN)
			return sent;
		assert_true(n > 0);
		sent += n;
	}
}

/* The other end receives so many octets, and then the end of the stream. */
static void take_to_the_end(uint32_t seed, uint64_t sent)
{
	uint64_t got = 0;

	while (got < sent) {
		ssize_t n = end_recv(&e[1], in, sizeof(in));

		if (n == -EAGAIN) {
			end_await(&e[1], NULL, POLLIN);
			continue;
		}
		assert_true(n > 0);
		expect(in, n, seed, got);
		got += n;
	}
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
}

/* It sends, then does other work: TCP has not taken everything, and no further call is made. */
static void what_was_sent_goes_out_without_a_call(void **state)
{
	uint64_t sent = send_all_there_is(&e[0], 12);

	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	take_to_the_end(12, sent);
}

/* ---- credit ---- */

static void a_slow_reader_stops_the_sender(void **state)
{
	uint64_t sent = 0, now, got = 0;

	/* TCP keeps moving its octets, so it is not TCP that is full in the end. */
	do {
		now = 0;
		rl_stream_poll(e[1].s);
		if (rl_stream_poll(e[0].s) & POLLOUT) {
			fill(out, 50000, 4, sent);
			now = end_send(&e[0], out, 50000);
			sent += now;
		} else if (sent < 1 << 20) {
			usleep(100);
			now = 1;
		}
	} while (now);
	assert_int_equal(sent, 1 << 20);
	assert_int_equal(end_send(&e[0], out, 1), -EAGAIN);
	while (rl_stream_inq(e[1].s) < 1 << 20)
		end_await(&e[1], &e[0], POLLIN);
	assert_int_equal(rl_stream_inq(e[1].s), 1 << 20);
	while (got < sent) {
		end_recv_all(&e[1], &e[0], in, 65536);
		expect(in, 65536, 4, got);
		got += 65536;
	}
	/* And it continues. */
	end_send_all(&e[0], &e[1], "more", 4);
	end_recv_all(&e[1], &e[0], in, 4);
	assert_memory_equal(in, "more", 4);
}

/* Both send before either reads: each queues what the other's window allows. */
static void both_may_send_a_window_before_they_read(void **state)
{
	static uint8_t a[1 << 20];
	size_t done[2] = {};
	int i, rounds = 0;

	while (done[0] < sizeof(a) || done[1] < sizeof(a))
		for (i = 0; i < 2; i++) {
			ssize_t n;

			if (done[i] == sizeof(a))
				continue;
			fill(a, sizeof(a), i, 0);
			n = end_send(&e[i], a + done[i], sizeof(a) - done[i]);
			assert_true(n > 0 || n == -EAGAIN);
			done[i] += n > 0 ? n : 0;
			usleep(n > 0 ? 0 : 100);
			assert_true(++rounds < 100000);
		}
	for (i = 0; i < 2; i++) {
		end_recv_all(&e[i], &e[!i], a, sizeof(a));
		expect(a, sizeof(a), !i, 0);
	}
}

/* ---- memory that is not there ---- */

static void a_bad_buffer_loses_nothing(void **state)
{
	uint8_t *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	let_guard_catch();
	assert_int_equal(end_send(&e[0], bad, 100), -EFAULT);
	assert_int_equal(end_send(&e[0], bad, 4000), -EFAULT);
	end_send_all(&e[0], &e[1], "kept", 4);
	end_await(&e[1], &e[0], POLLIN);
	assert_int_equal(end_recv(&e[1], bad, 100), -EFAULT);
	assert_int_equal(end_recv(&e[1], in, 100), 4);
	assert_memory_equal(in, "kept", 4);
	munmap(bad, 4096);
}

/* ---- ends ---- */

static void what_one_side_shuts_the_other_may_still_say(void **state)
{
	end_send_all(&e[0], &e[1], "last", 4);
	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	assert_int_equal(end_send(&e[0], "x", 1), -EPIPE);
	end_recv_all(&e[1], &e[0], in, 4);
	assert_int_equal(end_recv_end(&e[1], &e[0]), 0);
	assert_true(rl_stream_poll(e[1].s) & POLLRDHUP);
	assert_false(rl_stream_poll(e[1].s) & POLLHUP);
	fill(out, 300000, 5, 0);
	end_send_all(&e[1], &e[0], out, 300000);
	end_recv_all(&e[0], &e[1], in, 300000);
	expect(in, 300000, 5, 0);
	assert_int_equal(rl_stream_shutdown(e[1].s, SHUT_WR), 0);
	assert_int_equal(end_recv_end(&e[0], &e[1]), 0);
	assert_true(rl_stream_poll(e[0].s) & POLLHUP);
	assert_int_equal(rl_stream_error(e[0].s), 0);
}

/*
 * More than a window is sent one way after the other way was shut down: credit does not count as
 * octets of the stream.
 */
static void credit_flows_after_shutdown(void **state)
{
	uint64_t sent = 0, got = 0;

	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_WR), 0);
	while (got < 4 << 20) {
		ssize_t n;

		fill(out, 60000, 6, sent);
		n = end_send(&e[1], out, 60000);
		assert_true(n > 0 || n == -EAGAIN);
		sent += n > 0 ? n : 0;
		n = end_recv(&e[0], in, sizeof(in));
		assert_true(n > 0 || n == -EAGAIN);
		if (n > 0)
			expect(in, n, 6, got);
		got += n > 0 ? n : 0;
	}
}

static void shut_for_reading_is_the_end(void **state)
{
	assert_int_equal(rl_stream_shutdown(e[0].s, SHUT_RD), 0);
	assert_int_equal(end_recv(&e[0], in, 1), 0);
	end_send_all(&e[0], &e[1], "talks", 5);
	end_recv_all(&e[1], &e[0], in, 5);
}

/* The program is gone, but its sent octets are not. */
static void what_was_sent_before_close_arrives(void **state)
{
	uint64_t sent = send_all_there_is(&e[0], 8);

	assert_true(sent > 4096);
	end_close(&e[0]);
	take_to_the_end(8, sent);
}

/* It reads late: later than an exiting process would wait. */
static void what_was_sent_before_close_waits_for_its_reader(void **state)
{
	u32 before = options()->close_ms;
	uint64_t sent;

	options()->close_ms = 100;
	sent = send_all_there_is(&e[0], 15);
	end_close(&e[0]);
	usleep(800000);
	take_to_the_end(15, sent);
	options()->close_ms = before;
}

/* As in TCP, whose first octets after the peer's end bring its answer. */
static void a_send_to_a_closed_end_fails(void **state)
{
	struct sockaddr_in6 peer;

	end_close(&e[0]);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
	while (!rl_stream_half_peer(e[1].s, &peer)) {
		rl_stream_poll(e[1].s);
		usleep(100);
	}
	assert_int_equal(rl_stream_poll(e[1].s), POLLIN | POLLOUT | POLLRDHUP);
	assert_int_equal(end_send(&e[1], "x", 1), 1);
	assert_int_equal(rl_stream_poll(e[1].s), POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR);
	assert_int_equal(end_send(&e[1], "x", 1), -EPIPE);
	assert_true(rl_stream_poll(e[1].s) & POLLOUT);
}

/* In the middle of its octets, before the closed end times out waiting for a FIN. */
static void sending_on_to_a_closing_end_fails(void **state)
{
	ssize_t n;

	end_send_all(&e[1], &e[0], out, 300000);
	end_close(&e[0]);
	while ((n = end_send(&e[1], out, 300000)) > 0 || n == -EAGAIN)
		end_await(&e[1], NULL, POLLOUT);
	assert_true(n == -EPIPE || n == -ECONNRESET);
}

/* There is credit for each of its octets. */
static void a_small_send_to_a_closed_end_fails(void **state)
{
	u32 before = options()->close_ms;
	ssize_t n;

	options()->close_ms = 100;
	end_close(&e[0]);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
	while ((n = end_send(&e[1], "x", 1)) == 1 || n == -EAGAIN)
		usleep(1000);
	assert_true(n == -EPIPE || n == -ECONNRESET);
	options()->close_ms = before;
}

static void a_reset_is_an_error_once(void **state)
{
	end_send_all(&e[0], &e[1], "before", 6);
	end_await(&e[1], &e[0], POLLIN);
	end_reset(&e[0]);
	assert_true(end_await(&e[1], NULL, POLLHUP) & POLLERR);
	end_recv_all(&e[1], NULL, in, 6);
	assert_memory_equal(in, "before", 6);
	assert_int_equal(end_recv(&e[1], in, 1), -ECONNRESET);
	assert_int_equal(end_recv(&e[1], in, 1), 0);
	assert_int_equal(end_send(&e[1], "x", 1), -EPIPE);
}

/* As of a killed process: TCP's FIN is all that arrives. */
static void a_fin_of_tcp_alone_ends_the_stream(void **state)
{
	end_send_all(&e[0], &e[1], "before", 6);
	assert_int_equal(shutdown(e[0].fd, SHUT_WR), 0);
	end_await(&e[1], NULL, POLLIN);
	end_recv_all(&e[1], NULL, in, 6);
	assert_int_equal(end_recv_end(&e[1], NULL), 0);
}

/* ---- threads ---- */

#define THREADS_TOTAL (4 << 20)

/* One of two threads at an end: the other may take its octets from TCP, so it never waits long. */
static void yield_for(const struct end *end, unsigned int events)
{
	struct pollfd p = { end->fd, rl_stream_awaits(end->s, events), 0 };

	poll(&p, 1, 1);
}

static void *talk(void *arg)
{
	int i = *(int *)arg;
	uint8_t *p = malloc(30000);
	uint64_t sent = 0;
	ssize_t n;

	while (sent < THREADS_TOTAL) {
		size_t len = THREADS_TOTAL - sent < 30000 ? THREADS_TOTAL - sent : 30000;

		fill(p, len, i, sent);
		n = end_send(&e[i], p, len);
		memset(p, 0xee, len);
		if (n == -EAGAIN)
			yield_for(&e[i], POLLOUT);
		else if (n <= 0)
			break;
		sent += n > 0 ? n : 0;
	}
	free(p);
	return NULL;
}

/* NULL: no error. */
static void *listen_to(void *arg)
{
	int i = *(int *)arg;
	uint8_t *p = malloc(50000);
	uint64_t got = 0;
	void *wrong = NULL;
	ssize_t n, k;

	while (got < THREADS_TOTAL && !wrong) {
		n = end_recv(&e[i], p, 50000);
		if (n == -EAGAIN)
			yield_for(&e[i], POLLIN);
		else if (n <= 0)
			wrong = p;
		for (k = 0; k < n; k++)
			if (p[k] != pattern(!i, got + k))
				wrong = p;
		got += n > 0 ? n : 0;
	}
	free(p);
	return wrong;
}

static void threads_send_and_receive_at_once(void **state)
{
	int who[2] = { 0, 1 }, i;
	pthread_t t[4];
	void *wrong;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i & 2 ? listen_to : talk, &who[i & 1]), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], &wrong), 0);
		assert_null(wrong);
	}
}

static bool is_held, is_heard;		/* atomic */

/* A thread in the middle of a connection that ends; the threads synchronize only by the lock. */
static void *hold_and_end(void *arg)
{
	struct rl_conn *c = arg;

	rl_conn_lock(c);
	__atomic_store_n(&is_held, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&is_heard, __ATOMIC_RELAXED))
		usleep(100);
	rl_conn_close(c);
	rl_conn_break_off(c);
	rl_conn_unlock(c);
	return NULL;
}

/* The process exits, too, and waits for unsent octets until its time-out. */
static void a_connection_that_is_heard_out_may_end(void **state)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, hold_and_end, e[0].s->conn), 0);
	while (!__atomic_load_n(&is_held, __ATOMIC_RELAXED))
		usleep(100);
	rl_conn_drain_acks_now(e[0].s->conn);
	__atomic_store_n(&is_heard, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(end_recv_end(&e[1], NULL), -ECONNRESET);
}

/* ---- processes ---- */

static void a_child_gets_an_error_and_harms_nothing(void **state)
{
	int status;
	pid_t pid;

	end_send_all(&e[0], &e[1], "a", 1);
	pid = fork();
	if (!pid) {
		struct iovec iov = { in, 1 };
		bool ok = end_send(&e[0], "x", 1) == -EIO && rl_stream_recv(e[1].s, &iov, 1, 0) == -EIO &&
			  rl_stream_shutdown(e[0].s, SHUT_WR) == -EIO;

		rl_stream_close(e[0].s);
		_exit(!ok);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	end_send_all(&e[0], &e[1], "b", 1);
	end_recv_all(&e[1], &e[0], in, 2);
	assert_memory_equal(in, "ab", 2);
}

/* It is so late that a call of the parent's would have the progress thread watch for the Reply. */
static void a_child_closes_what_still_connects_and_does_not_watch_it(void **state)
{
	struct end own[2];
	int status;
	pid_t pid;

	ends_connect(e);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	pid = fork();
	if (!pid) {
		struct rl_conn *c = e[0].s->conn;

		/* Its own progress thread runs. */
		ends_connect(own);
		ends_open(own);
		while (rl_now_ms() < e[0].s->open_by)
			poll(NULL, 0, 1);
		rl_stream_close(e[0].s);
		_exit(c->poller != RL_POLLER_NONE || c->watching);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_send_all(&e[0], &e[1], "a", 1);
	end_recv_all(&e[1], &e[0], in, 1);
	assert_int_equal(in[0], 'a');
}

/* A server that forks for each connection, unused before. */
static void a_child_may_have_what_its_parent_has_not_used(void **state)
{
	int status;
	pid_t pid;

	ends_connect(e);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	pid = fork();
	if (!pid) {
		close(e[0].fd);
		e[0].fd = -1;
		end_recv_all(&e[1], NULL, in, 4);
		end_send_all(&e[1], NULL, in, 4);
		end_close(&e[1]);
		/* Like exit(): sent octets are transmitted. */
		exit(0);
	}
	end_close(&e[1]);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_send_all(&e[0], NULL, "echo", 4);
	end_recv_all(&e[0], NULL, in, 4);
	assert_memory_equal(in, "echo", 4);
	assert_int_equal(end_recv_end(&e[0], NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Its octets wait for a peer that has not read them, and the process exits. */
static void leave(bool close_first)
{
	uint64_t sent = 0;
	u32 before = options()->close_ms;
	int pipes[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	/* The reader is a process, which may be busy. */
	options()->close_ms = 60000;
	ends_connect(e);
	pid = fork();
	if (!pid) {
		int small = 4096;

		close(e[1].fd);
		e[1] = (struct end){ .fd = -1 };
		setsockopt(e[0].fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		end_start(&e[0], RL_STREAM_INITIATOR, NULL);
		end_await(&e[0], NULL, POLLOUT);
		sent = send_all_there_is(&e[0], 9);
		if (close_first)
			end_close(&e[0]);
		if (write(pipes[1], &sent, sizeof(sent)) != sizeof(sent))
			_exit(1);
		exit(0);
	}
	end_close(&e[0]);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	end_await_phase(&e[1], NULL);
	assert_int_equal(read(pipes[0], &sent, sizeof(sent)), sizeof(sent));
	assert_true(sent > 4096);
	take_to_the_end(9, sent);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	options()->close_ms = before;
	close(pipes[0]);
	close(pipes[1]);
}

static void what_was_sent_before_exit_arrives(void **state)
{
	leave(false);
}

static void what_was_sent_before_close_and_exit_arrives(void **state)
{
	leave(true);
}

/* ---- memory ---- */

static size_t resident_pages(const struct rl_octets *o)
{
	static uint8_t map[(1 << 20) / 4096 + 17];
	size_t n = o->size / 4096, i, found = 0;

	assert_true(n <= sizeof(map));
	assert_int_equal(mincore(o->mem, o->size, map), 0);
	for (i = 0; i < n; i++)
		found += map[i] & 1;
	return found;
}

static void await_pages(const struct rl_octets *o, size_t most)
{
	int tries = 0;

	while (resident_pages(o) > most) {
		assert_true(++tries < SOON_MS);
		usleep(1000);
	}
}

/* Nothing but the thread's timer gives them back, and octets that are unread stay. */
static void an_idle_queue_gives_its_pages_back(void **state)
{
	static uint8_t buf[300000];
	struct rl_octets *o = &e[1].s->in;
	size_t left;
	int round;

	for (round = 0; round < 8; round++) {
		left = round % 2 ? 0 : 10;
		fill(buf, sizeof(buf), 5, 0);
		end_send_all(&e[0], &e[1], buf, sizeof(buf));
		while (rl_stream_inq(e[1].s) < sizeof(buf))
			usleep(100);
		end_recv_all(&e[1], &e[0], buf, sizeof(buf) - left);
		await_pages(o, left ? 2 : 0);
		if (left)
			end_recv_all(&e[1], &e[0], buf + sizeof(buf) - left, left);
		expect(buf, sizeof(buf), 5, 0);
	}
	/* The end of the queue's memory, and its beginning. */
	for (round = 0; round < 6; round++) {
		end_send_all(&e[0], &e[1], buf, sizeof(buf));
		while (rl_stream_inq(e[1].s) < sizeof(buf))
			usleep(100);
		end_recv_all(&e[1], &e[0], buf, sizeof(buf) - 5000);
		await_pages(o, 3);
		end_send_all(&e[0], &e[1], buf, 5000);
		end_recv_all(&e[1], &e[0], buf + sizeof(buf) - 5000, 5000);
		expect(buf, sizeof(buf), 5, 0);
		end_recv_all(&e[1], &e[0], buf, 5000);
	}
}


#define CASE(fn) cmocka_unit_test_setup_teardown(fn, open_ends, close_ends)
#define CASE_ALONE(fn) cmocka_unit_test_setup_teardown(fn, open_alone, close_ends)
#define CASE_CRC(fn) { #fn "_with_crc", fn, open_with_crc, close_ends, NULL }
#define CASE_MARKERS(fn) { #fn "_with_markers", fn, open_with_markers, close_ends, NULL }
#define CASE_ETHERNET(fn) { #fn "_ethernet", fn, open_ethernet, close_ends, NULL }
#define CASE_NARROW(fn) { #fn "_narrow", fn, open_narrow, close_ends, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(octets_arrive_in_order_both_ways),
		CASE_CRC(octets_arrive_in_order_both_ways),
		CASE_MARKERS(octets_arrive_in_order_both_ways),
		CASE_ETHERNET(octets_arrive_in_order_both_ways),
		CASE_ETHERNET(a_long_stream_arrives_in_a_large_buffer),
		CASE_NARROW(a_little_at_a_time_arrives_through_small_buffers),
		CASE(a_long_stream_arrives_in_a_large_buffer),
		CASE(a_peek_takes_nothing),
		CASE(a_peek_for_more_finds_what_has_come),
		CASE(a_peek_for_all_waits_for_all),
		CASE(a_waiter_is_woken_by_what_others_move),
		CASE(a_shutdown_is_news),
		CASE_ETHERNET(a_part_of_a_message_is_news),
		CASE(octets_go_straight_to_the_waiting_reader),
		CASE_ALONE(what_a_poll_took_in_costs_no_more_calls),
		CASE_ETHERNET(the_first_part_of_a_message_comes_first),
		CASE_NARROW(the_first_part_of_a_message_comes_first),
		CASE_ETHERNET(a_queue_may_be_emptied_in_mid_message),
		CASE(what_was_sent_without_memory_goes_out_later),
		CASE_NARROW(what_was_sent_goes_out_without_a_call),
		CASE(a_slow_reader_stops_the_sender),
		CASE(both_may_send_a_window_before_they_read),
		CASE(a_bad_buffer_loses_nothing),
		CASE(what_one_side_shuts_the_other_may_still_say),
		CASE(credit_flows_after_shutdown),
		CASE(shut_for_reading_is_the_end),
		CASE(what_was_sent_before_close_arrives),
		CASE_CRC(what_was_sent_before_close_arrives),
		CASE_NARROW(what_was_sent_before_close_arrives),
		CASE_NARROW(what_was_sent_before_close_waits_for_its_reader),
		CASE(a_send_to_a_closed_end_fails),
		CASE(sending_on_to_a_closing_end_fails),
		CASE(a_small_send_to_a_closed_end_fails),
		CASE(a_reset_is_an_error_once),
		CASE(a_fin_of_tcp_alone_ends_the_stream),
		CASE(threads_send_and_receive_at_once),
		CASE_CRC(threads_send_and_receive_at_once),
		CASE(a_connection_that_is_heard_out_may_end),
		CASE(a_child_gets_an_error_and_harms_nothing),
		CASE(an_idle_queue_gives_its_pages_back),
		cmocka_unit_test_teardown(what_was_sent_before_exit_arrives, close_ends),
		cmocka_unit_test_teardown(what_was_sent_before_close_and_exit_arrives, close_ends),
		cmocka_unit_test_teardown(a_child_closes_what_still_connects_and_does_not_watch_it,
					  close_ends),
		cmocka_unit_test_teardown(a_child_may_have_what_its_parent_has_not_used, close_ends),
	};

	descriptors = count_descriptors();
	return cmocka_run_group_tests_name("sockets: streams", tests, NULL, NULL);
}
