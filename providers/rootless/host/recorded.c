// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the record has of a connection. Its sends and reads take a way of their own (conn_io.c). */
#include <netinet/in.h>

#include "conn.h"
#include "process/clock.h"
#include "qp.h"
#include "record/fpdus.h"
#include "record/log.h"

void rl_conn_begin_record(struct rl_conn *c)
{
	if (!rl_record_is_on())
		return;
	c->recorded = rl_recorded_new();
	if (!c->recorded)
		return;
	c->read_apart |= RL_READ_RECORDED;
	c->send_fd = -1;
}

static u32 recorded_qpn(const struct rl_conn *c)
{
	return c->qp ? c->qp->core.id : 0;
}

void rl_conn_end_record(struct rl_conn *c)
{
	rl_recorded_end(c->recorded, recorded_qpn(c), c->error);
}

/* ---- facts ---- */

static void put_conn_address(const struct sockaddr_storage *a, u8 addr[16], u16 *port)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;

	if (a->ss_family == AF_INET6) {
		memcpy(addr, &six->sin6_addr, 16);
		*port = ntohs(six->sin6_port);
	} else {
		memcpy(addr, &four->sin_addr, 4);
		*port = ntohs(four->sin_port);
	}
}

static void write_facts(struct rl_conn *c)
{
	const struct weft_mpa_agreed *agreed = &c->link.st.agreed;
	struct rl_recorded_facts facts = {};
	struct sockaddr_storage own, peer;

	rl_conn_names(c, &own, &peer);
	put_conn_address(&own, facts.conn.addr, &facts.conn.port);
	put_conn_address(&peer, facts.conn.peer_addr, &facts.conn.peer_port);
	facts.flags = (c->link.st.initiator ? WEFT_RECORD_INITIATOR : 0) |
		      (own.ss_family == AF_INET6 ? WEFT_RECORD_IPV6 : 0) |
		      (c->ulp->by_hand ? WEFT_RECORD_BY_HAND : 0);
	if (c->link.mode != WEFT_MODE_STARTUP) {
		facts.flags |= WEFT_RECORD_STARTED | (agreed->crc ? WEFT_RECORD_CRC : 0) |
			       (agreed->enhanced ? WEFT_RECORD_ENHANCED : 0) |
			       (agreed->tx_markers || agreed->rx_markers ? WEFT_RECORD_MARKERS : 0);
		facts.markers_out = agreed->tx_markers;
		facts.markers_in = agreed->rx_markers;
		facts.has_rtr = agreed->p2p;
	}
	rl_recorded_facts(c->recorded, recorded_qpn(c), &facts);
}

static void begin_octets(struct rl_conn *c, bool is_startup)
{
	if (rl_recorded_wants_facts(c->recorded, is_startup))
		write_facts(c);
}

/* ---- octets ---- */

/* Else it is the program's, which may unmap it. */
static bool is_batchs(const struct rl_conn *c, const void *p)
{
	const struct weft_batch *b = &c->link.batch;

	return b->buf && (const u8 *)p >= b->buf && (const u8 *)p < b->buf + b->size;
}

void rl_conn_record_sent(struct rl_conn *c, const struct weft_iov *iov, u32 n, u64 ticks)
{
	bool is_startup = c->link.mode == WEFT_MODE_STARTUP;
	u32 part;

	begin_octets(c, is_startup);
	for (; n; n -= part, iov++) {
		part = min_t(u32, n, (u32)iov->len);
		if (is_startup)
			rl_recorded_startup(c->recorded, true, recorded_qpn(c), iov->base, part,
					    ticks);
		else
			rl_recorded_octets(c->recorded, true, recorded_qpn(c), iov->base, part,
					   !is_batchs(c, iov->base), ticks);
	}
}

void rl_conn_record_received(struct rl_conn *c, const void *p, u32 n, bool is_startup)
{
	begin_octets(c, is_startup);
	if (is_startup)
		rl_recorded_startup(c->recorded, false, recorded_qpn(c), p, n, rl_ticks());
	else
		rl_recorded_octets(c->recorded, false, recorded_qpn(c), p, n, false, rl_ticks());
}
