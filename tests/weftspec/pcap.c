/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "pcap.h"

#define SYN 0x02
#define ACK 0x10
#define PSH 0x08
#define FIN 0x01
#define RST 0x04
#define TCP_LEN 20
#define ETH_LEN 14
#define SEG_MAX 32768 /* a send() larger than this becomes several packets */

/* One connection being replayed. */
struct replay {
	FILE *out;
	const struct conn *k;
	uint32_t seq[2]; /* next of the tester, of the peer */
	uint16_t id;
};

static void write_host(FILE *f, const void *p, size_t n)
{
	fwrite(p, 1, n, f);
}

static void file_head(FILE *f)
{
	const uint32_t magic = 0xa1b2c3d4, zero = 0, snap = 262144, eth = 1;
	const uint16_t version[2] = { 2, 4 };

	write_host(f, &magic, 4);
	write_host(f, version, 4);
	write_host(f, &zero, 4);
	write_host(f, &zero, 4);
	write_host(f, &snap, 4);
	write_host(f, &eth, 4);
}

static uint32_t add_words(const uint8_t *p, size_t n, uint32_t acc)
{
	for (; n > 1; p += 2, n -= 2)
		acc += get16(p);
	return n ? acc + (*p << 8) : acc;
}

static uint16_t fold_checksum(uint32_t acc)
{
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return ~acc;
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ?
		     ((const struct sockaddr_in6 *)a)->sin6_port :
		     ((const struct sockaddr_in *)a)->sin_port);
}

static const uint8_t *addr_of(const struct sockaddr_storage *a, size_t *len)
{
	if (a->ss_family == AF_INET6) {
		*len = 16;
		return (const uint8_t *)&((const struct sockaddr_in6 *)a)->sin6_addr;
	}
	*len = 4;
	return (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr;
}

static uint8_t *ip_head(uint8_t *p, struct replay *r,
			const struct sockaddr_storage *src,
			const struct sockaddr_storage *dst, size_t plen)
{
	size_t alen;
	const uint8_t *s = addr_of(src, &alen), *d = addr_of(dst, &alen);
	uint8_t *start = p;

	if (alen == 16) {
		p = put32(p, 0x60000000);
		p = put16(p, plen);
		p = put16(p, IPPROTO_TCP << 8 | 64);
	} else {
		p = put32(p, 0x45000000 | (uint32_t)(20 + plen));
		p = put32(p, (uint32_t)r->id++ << 16 | 0x4000);
		p = put32(p, 64 << 24 | IPPROTO_TCP << 16);
	}
	memcpy(p, s, alen);
	memcpy(p + alen, d, alen);
	if (alen == 4)
		put16(start + 10, fold_checksum(add_words(start, 20, 0)));
	return p + 2 * alen;
}

static void tcp_sum(uint8_t *tcp, size_t len, const uint8_t *addrs, size_t alen)
{
	uint32_t acc = add_words(addrs, 2 * alen, IPPROTO_TCP + len);

	put16(tcp + 16, fold_checksum(add_words(tcp, len, acc)));
}

static void packet(struct replay *r, bool out, double at, int flags,
		   const uint8_t *data, size_t len)
{
	static uint8_t buf[ETH_LEN + 40 + TCP_LEN + SEG_MAX];
	const struct sockaddr_storage *src = out ? &r->k->local : &r->k->peer;
	const struct sockaddr_storage *dst = out ? &r->k->peer : &r->k->local;
	uint32_t head[4] = { at, (at - (uint32_t)at) * 1e6 };
	size_t alen;
	uint8_t *tcp, *p = buf;

	addr_of(src, &alen);
	p = put64(p, 0x0200000000010200ull);
	p = put32(p, 0x00000002);
	p = put16(p, alen == 16 ? 0x86dd : 0x0800);
	p = tcp = ip_head(p, r, src, dst, TCP_LEN + len);
	p = put16(p, port_of(src));
	p = put16(p, port_of(dst));
	p = put32(p, r->seq[!out]);
	p = put32(p, flags & ACK ? r->seq[out] : 0);
	p = put16(p, 5 << 12 | flags);
	p = put32(p, 0xffff0000);
	p = put16(p, 0);
	if (len)
		memcpy(p, data, len);
	tcp_sum(tcp, TCP_LEN + len, tcp - 2 * alen, alen);
	head[2] = head[3] = p - buf + len;
	write_host(r->out, head, sizeof(head));
	write_host(r->out, buf, head[2]);
	r->seq[!out] += len + !!(flags & (SYN | FIN));
}

static void replay_open(struct replay *r, const struct wire_event *e)
{
	packet(r, e->out, e->at, SYN, NULL, 0);
	packet(r, !e->out, e->at, SYN | ACK, NULL, 0);
	packet(r, e->out, e->at, ACK, NULL, 0);
}

static void replay_event(struct replay *r, const struct wire_event *e)
{
	switch (e->kind) {
	case WIRE_OPEN:
		replay_open(r, e);
		break;
	case WIRE_DATA:
		for (size_t i = 0; i < e->len; i += SEG_MAX)
			packet(r, e->out, e->at, ACK | PSH,
			       r->k->log + e->off + i,
			       e->len - i < SEG_MAX ? e->len - i : SEG_MAX);
		break;
	case WIRE_FIN:
		packet(r, e->out, e->at, FIN | ACK, NULL, 0);
		break;
	case WIRE_RST:
		packet(r, e->out, e->at, RST | ACK, NULL, 0);
		break;
	}
}

/* The connection whose next event is the earliest, NULL at the end. */
static struct replay *earliest(struct replay *r, size_t n, const size_t *done)
{
	struct replay *best = NULL;
	double at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct conn *k = r[i].k;

		if (done[i] < k->nev && (!best || k->ev[done[i]].at < at)) {
			best = &r[i];
			at = k->ev[done[i]].at;
		}
	}
	return best;
}

int pcap_write(const char *path, const struct conn *all)
{
	struct replay r[64], *next;
	size_t done[64] = { 0 }, n = 0;
	FILE *f = fopen(path, "wb");
	int bad;

	if (!f)
		return -1;
	for (; all && n < 64; all = all->next)
		r[n++] = (struct replay){ .out = f, .k = all,
					  .seq = { 1000, 2000 } };
	file_head(f);
	while ((next = earliest(r, n, done)))
		replay_event(next, &next->k->ev[done[next - r]++]);
	bad = fflush(f) || ferror(f);
	return fclose(f) || bad ? -1 : 0;
}
