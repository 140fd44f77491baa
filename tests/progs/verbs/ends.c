// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "ends.h"
#include "pattern.h"

void *ends_buffer(void)
{
	void *p = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory");
	return p;
}

void ends_init(struct ends *e, const char *addr, const char *port)
{
	e->addr = addr;
	e->port = port;
	e->c.timeout_ms = e->s.timeout_ms = TIMEOUT;
	e->from = ends_buffer();
	e->to = ends_buffer();
	conn_listen(&e->s, addr, port);
}

void ends_open(struct ends *e, void *(*serve)(void *arg), const void *arg)
{
	pthread_t server;

	if (pthread_create(&server, NULL, serve, (void *)arg))
		fail("no thread");
	conn_resolve(&e->c, e->addr, e->port);
	conn_make_qp(&e->c, DEPTH, DEPTH, 0);
	conn_connect(&e->c, NULL, 0);
	pthread_join(server, NULL);
	pattern_fill(e->from, BUF, ++e->key);
	memset(e->to, 0, BUF);
	e->from_mr = conn_reg(&e->c, e->from, BUF, IBV_ACCESS_LOCAL_WRITE);
}

void ends_close(struct ends *e)
{
	conn_close(&e->c);
	conn_close(&e->s);
}

struct ibv_sge sge_of(void *at, uint32_t len, const struct ibv_mr *mr)
{
	return (struct ibv_sge){ .addr = (uintptr_t)at, .length = len, .lkey = mr->lkey };
}

bool took_status(struct conn *c, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	return conn_poll(c, &wc, 1, TIMEOUT) == 1 && wc.wr_id == id && wc.status == status;
}

bool took(struct conn *c, uint64_t id)
{
	return took_status(c, id, IBV_WC_SUCCESS);
}

bool is_pattern(const struct ends *e, const uint8_t *p, uint32_t len)
{
	return pattern_check(p, len, e->key) == len;
}

bool is_clear(const uint8_t *p, uint32_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}
