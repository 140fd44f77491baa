// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sys/eventfd.h>

#include "ops_ends.h"

struct end e[4];
uint8_t range[2][300000], local[2][300000];

static struct end *end_of(int fd)
{
	int i;

	for (i = 0; i < 4; i++)
		if (e[i].fd == fd && fd >= 0)
			return &e[i];
	return NULL;
}

static int result(int rv)
{
	if (rv >= 0)
		return rv;
	errno = -rv;
	return -1;
}

static int news = -1;

/* Called by the progress thread, which moves octets, too. */
static void changed(void *arg, unsigned int events)
{
	uint64_t one = 1;

	assert_int_equal(write(news, &one, sizeof(one)), sizeof(one));
}

int to_set(int fd, int level, int option, const void *value, socklen_t len)
{
	struct end *end = end_of(fd);

	assert_int_equal(level, SOL_WEFT);
	if (option == WEFT_IWARP_MODE) {
		int rv = rl_stream_setsockopt(fd, option, value, len, &rl_ops_of_stream, &end->s);

		if (!rv)
			rl_stream_tell(end->s, changed, NULL);
		return result(rv);
	}
	return result(rl_ops_set(end->s, option, value, len));
}

int to_get(int fd, int level, int option, void *value, socklen_t *len)
{
	assert_int_equal(level, SOL_WEFT);
	return result(rl_ops_get(end_of(fd)->s, option, value, len));
}

/* Polls one end. The other ends, which would be other threads', make progress meanwhile. */
int to_poll(struct pollfd *p, nfds_t n, int timeout)
{
	struct pollfd w[5] = { [4] = { news, POLLIN, 0 } };
	unsigned int said;
	uint64_t count;
	int i;

	assert_int_equal(n, 1);
	if (read(news, &count, sizeof(count)) < 0)
		assert_int_equal(errno, EAGAIN);
	for (i = 0; i < 4; i++) {
		w[i] = (struct pollfd){ .fd = -1 };
		if (!e[i].s)
			continue;
		said = rl_stream_poll(e[i].s);
		if (e[i].fd == p->fd && said & (p->events | POLLERR | POLLHUP))
			return 1;
		if (!(said & POLLHUP))
			w[i] = (struct pollfd){ e[i].fd, rl_stream_awaits(e[i].s, POLLIN), 0 };
	}
	return poll(w, 5, timeout);
}

__attribute__((constructor)) static void begin(void)
{
	news = eventfd(0, EFD_NONBLOCK);
}

int setup(void **state)
{
	int i;

	options()->crc = false;
	options()->startup_ms = 10000;
	options()->close_ms = 2000;
	for (i = 0; i < 4; i++)
		e[i] = (struct end){ .fd = -1 };
	ends_connect(e);
	return 0;
}

int cleanup(void **state)
{
	ends_close(e);
	ends_close(e + 2);
	return 0;
}

void upgrade(int i, uint8_t role, uint8_t flags, uint32_t depth)
{
	struct weft_iwarp_mode m = { .size = sizeof(m), .role = role, .flags = flags, .depth = depth };

	assert_int_equal(to_set(e[i].fd, SOL_WEFT, WEFT_IWARP_MODE, &m, sizeof(m)), 0);
}

void open_deep(int i, uint32_t depth)
{
	upgrade(i, WEFT_IWARP_INITIATOR, WEFT_IWARP_OPERATIONS, depth);
	upgrade(i + 1, WEFT_IWARP_RESPONDER, WEFT_IWARP_OPERATIONS, depth);
	assert_int_equal(end_await_phase(&e[i + 1], &e[i]), RL_STREAM_OPEN);
	assert_int_equal(end_await_phase(&e[i], &e[i + 1]), RL_STREAM_OPEN);
}

void open_both(void)
{
	open_deep(0, 0);
}

struct weft_qevent take(int i)
{
	struct weft_qevent ev = {};

	assert_int_equal(weft_qdequeue(e[i].fd, &ev, 1, SOON_MS), 1);
	return ev;
}

void expect_event(int i, uint8_t what, uint64_t ahandle, uint32_t length)
{
	struct weft_qevent ev = take(i);

	assert_int_equal(ev.error, 0);
	assert_int_equal(ev.what, what);
	assert_int_equal(ev.ahandle, ahandle);
	assert_int_equal(ev.length, length);
}

void expect_failed(int i, uint8_t what, uint64_t ahandle, int error)
{
	struct weft_qevent ev = take(i);

	assert_int_equal(ev.error, error);
	assert_int_equal(ev.what, what);
	assert_int_equal(ev.ahandle, ahandle);
	assert_int_equal(ev.length, 0);
}

void expect_none(int i)
{
	struct weft_qevent ev;

	assert_int_equal(weft_qdequeue(e[i].fd, &ev, 1, 0), 0);
}

void expect_end(int i, int why)
{
	struct weft_qevent ev;
	int n;

	for (n = 0; n < 2; n++) {
		assert_int_equal(weft_qdequeue(e[i].fd, &ev, 1, SOON_MS), -1);
		assert_int_equal(errno, why);
	}
	assert_int_equal(weft_send(e[i].fd, "x", 1, 0, 0), -1);
	assert_int_equal(errno, why);
	assert_true(rl_stream_poll(e[i].s) & POLLHUP);
}

bool is_readable(int fd, int timeout)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, timeout) == 1;
}

__attribute__((no_sanitize_thread, __noinline__)) uint8_t amid(const void *p)
{
	return *(const volatile uint8_t *)p;
}

uint32_t registered(int i, void *p, size_t n, int access)
{
	uint32_t key = 0;

	assert_int_equal(weft_mregister(e[i].fd, p, n, access, &key), 0);
	assert_int_not_equal(key, 0);
	return key;
}
