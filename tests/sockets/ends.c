// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>

#include "../../providers/rootless/process/guard.h"
#include "../../providers/rootless/process/hook.h"
#include "ends.h"

/*
 * The tests have no hooks, so the next function of a name is libc's. Do not use a sanitizer's, as
 * weft-run would: the thread sanitizer's sigaction() blocks all signals in a handler, and they
 * stay blocked when the handler leaves by siglongjmp().
 */
void *rl_real_find(struct rl_next *n)
{
	static void *libc;

	if (!libc)
		libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	return dlsym(libc, n->name);
}

static struct sigaction guards;

__attribute__((constructor)) static void begin_guard(void)
{
	rl_guard_begin();
	RL_REAL(sigaction)(SIGSEGV, NULL, &guards);
}

void let_guard_catch(void)
{
	RL_REAL(sigaction)(SIGSEGV, &guards, NULL);
}

#ifdef __SANITIZE_THREAD__
/* The process is multi-threaded when it forks. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0:atexit_sleep_ms=0:report_thread_leaks=0";
}

/* options() changes what is constant in a program, while connections of the previous test end. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^opt$\n";
}
#endif

struct rl_options *options(void)
{
	return (struct rl_options *)rl_options();
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- life ---- */

int ends_mss;

static void limit_segments(int fd)
{
	if (ends_mss)
		assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &ends_mss, sizeof(ends_mss)), 0);
}

void ends_connect(struct end e[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(a);

	assert_true(l >= 0);
	limit_segments(l);
	assert_int_equal(bind(l, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&a, &len), 0);
	e[0] = e[1] = (struct end){ .fd = -1 };
	e[0].fd = socket(AF_INET, SOCK_STREAM, 0);
	limit_segments(e[0].fd);
	assert_int_equal(connect(e[0].fd, (struct sockaddr *)&a, len), 0);
	e[1].fd = accept(l, NULL, NULL);
	assert_true(e[1].fd >= 0);
	close(l);
}

void end_start(struct end *e, enum rl_stream_role role, const struct rl_stream_options *o)
{
	assert_int_equal(rl_stream_start(e->fd, role, o, &e->s), 0);
}

void ends_open(struct end e[2])
{
	ends_connect(e);
	end_start(&e[0], RL_STREAM_INITIATOR, NULL);
	end_start(&e[1], RL_STREAM_RESPONDER, NULL);
	assert_int_equal(end_await_phase(&e[1], &e[0]), RL_STREAM_OPEN);
	assert_int_equal(end_await_phase(&e[0], &e[1]), RL_STREAM_OPEN);
}

void end_close(struct end *e)
{
	if (e->s)
		rl_stream_close(e->s);
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct end){ .fd = -1 };
}

void ends_close(struct end e[2])
{
	end_close(&e[0]);
	end_close(&e[1]);
}

void end_reset(struct end *e)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct linger l = { .l_onoff = 1 };

	assert_int_equal(setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	assert_int_equal(connect(e->fd, &nobody, sizeof(nobody)), 0);
}

/* ---- waiting ---- */

/*
 * A thread that moves octets meanwhile does not make the descriptor ready, so poll again this
 * often.
 */
#define MOMENT_MS 10

/* Waits for events of either end. */
static void wait_for_both(struct end *a, struct end *b, unsigned int events)
{
	struct pollfd p[2] = { { .fd = -1 }, { .fd = -1 } };

	if (a && a->fd >= 0)
		p[0] = (struct pollfd){ a->fd, a->s ? rl_stream_awaits(a->s, events) : POLLIN, 0 };
	if (b && b->fd >= 0 && b->s)
		p[1] = (struct pollfd){ b->fd, rl_stream_awaits(b->s, POLLIN | POLLOUT), 0 };
	poll(p, 2, MOMENT_MS);
}

unsigned int end_await(struct end *e, struct end *other, unsigned int events)
{
	int64_t until = now_ms() + SOON_MS;
	unsigned int said;

	for (;;) {
		said = rl_stream_poll(e->s);
		if (said & (events | POLLERR | POLLHUP))
			return said;
		if (other && other->s)
			rl_stream_poll(other->s);
		assert_true(now_ms() < until);
		wait_for_both(e, other, events);
	}
}

enum rl_stream_phase end_await_phase(struct end *e, struct end *other)
{
	int64_t until = now_ms() + SOON_MS;
	enum rl_stream_phase phase;

	for (;;) {
		phase = rl_stream_phase(e->s);
		if (phase != RL_STREAM_STARTING)
			return phase;
		if (other && other->s)
			rl_stream_poll(other->s);
		assert_true(now_ms() < until);
		if (rl_stream_phase(e->s) == RL_STREAM_STARTING)
			wait_for_both(e, other, POLLIN);
	}
}

/* ---- octets ---- */

ssize_t end_recv(struct end *e, void *p, size_t n)
{
	struct iovec iov = { p, n };

	return rl_stream_recv(e->s, &iov, 1, 0);
}

ssize_t end_send(struct end *e, const void *p, size_t n)
{
	struct iovec iov = { (void *)p, n };

	return rl_stream_send(e->s, &iov, 1, 0);
}

void end_send_all(struct end *e, struct end *other, const void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t rv = end_send(e, (const char *)p + done, n - done);

		if (rv == -EAGAIN) {
			end_await(e, other, POLLOUT);
			continue;
		}
		assert_true(rv > 0);
		done += rv;
	}
}

void end_recv_all(struct end *e, struct end *other, void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t rv = end_recv(e, (char *)p + done, n - done);

		if (rv == -EAGAIN) {
			end_await(e, other, POLLIN);
			continue;
		}
		assert_true(rv > 0);
		done += rv;
	}
}

ssize_t end_recv_end(struct end *e, struct end *other)
{
	ssize_t rv;
	char c;

	while ((rv = end_recv(e, &c, 1)) == -EAGAIN)
		end_await(e, other, POLLIN);
	return rv;
}

void raw_say(const struct end *e, const void *p, size_t n)
{
	assert_int_equal(send(e->fd, p, n, MSG_NOSIGNAL), n);
}

void raw_hear(const struct end *e, struct end *other, void *p, size_t n)
{
	int64_t until = now_ms() + SOON_MS;
	size_t done = 0;

	while (done < n) {
		ssize_t rv = recv(e->fd, (char *)p + done, n - done, MSG_DONTWAIT);
		struct pollfd w = { e->fd, POLLIN, 0 };

		assert_int_not_equal(rv, 0);
		assert_true(rv > 0 || errno == EAGAIN);
		done += rv > 0 ? rv : 0;
		if (other && other->s)
			rl_stream_poll(other->s);
		assert_true(now_ms() < until);
		if (rv < 0)
			poll(&w, 1, 10);
	}
}

/* ---- patterns ---- */

uint8_t pattern(uint32_t seed, uint64_t pos)
{
	uint64_t x = (pos >> 3) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

	x ^= x >> 29;
	return (uint8_t)((x * 0x94d049bb133111ebull) >> (8 * (pos & 7)));
}

void fill(void *p, size_t n, uint32_t seed, uint64_t pos)
{
	size_t i;

	for (i = 0; i < n; i++)
		((uint8_t *)p)[i] = pattern(seed, pos + i);
}

/* A peer's octets are placed in the order that TCP gives, which TSan does not see. */
__attribute__((no_sanitize_thread)) void expect(const void *p, size_t n, uint32_t seed, uint64_t pos)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] != pattern(seed, pos + i))
			fail_msg("octet %llu of stream %u is wrong", (unsigned long long)(pos + i), seed);
}
