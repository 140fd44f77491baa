// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel/proto/bytes.h"
#include "datagram.h"
#include "devices/device.h"

#define MAGIC		0x77655544	/* "weUD" */
#define VERSION		1
#define FLAG_IMM	(1 << 0)
#define FLAG_SOLICITED	(1 << 1)
#define QPN_MAX		0xffffff

#define UDP_HEADER	8
#define IPV4_HEADER	20
#define PROTOCOL_UDP	17

static_assert(RL_DATAGRAM_HEADERS == 40 + 8 + RL_DATAGRAM_HEADER, "devices know its size");

void rl_datagram_write(u8 p[RL_DATAGRAM_HEADER], const struct rl_datagram *d)
{
	p = weft_put32(p, MAGIC);
	*p++ = VERSION;
	*p++ = (d->imm ? FLAG_IMM : 0) | (d->solicited ? FLAG_SOLICITED : 0);
	p = weft_put16(p, 0);
	p = weft_put32(p, d->to);
	p = weft_put32(p, d->from);
	p = weft_put32(p, d->qkey);
	weft_put32(p, d->imm ? d->imm_data : 0);
}

/* Unknown flags, or octets that must be 0, are errors. */
bool rl_datagram_read(const u8 *p, u32 len, struct rl_datagram *d)
{
	u8 flags;

	if (len < RL_DATAGRAM_HEADER || weft_get32(p) != MAGIC || p[4] != VERSION)
		return false;
	flags = p[5];
	*d = (struct rl_datagram) {
		.to = weft_get32(p + 8),
		.from = weft_get32(p + 12),
		.qkey = weft_get32(p + 16),
		.imm = flags & FLAG_IMM,
		.solicited = flags & FLAG_SOLICITED,
		.imm_data = weft_get32(p + 20),
	};
	return !(flags & ~(FLAG_IMM | FLAG_SOLICITED)) && !weft_get16(p + 6) && d->to <= QPN_MAX &&
	       d->from <= QPN_MAX && (d->imm || !d->imm_data);
}

/* ---- the header before it ---- */

static bool is_mapped_v4(const u8 a[16])
{
	static const u8 prefix[12] = { [10] = 0xff, 0xff };

	return !memcmp(a, prefix, sizeof(prefix));
}

/* RFC 791 §3.1. */
static u16 checksum(const u8 h[IPV4_HEADER])
{
	u32 sum = 0, i;

	for (i = 0; i < IPV4_HEADER; i += 2)
		sum += weft_get16(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~(sum + (sum >> 16));
}

static void write_v4(u8 *h, const struct rl_ip_header *ip)
{
	memset(h, 0, IPV4_HEADER);
	h[0] = 4 << 4 | IPV4_HEADER / 4;
	h[1] = ip->traffic_class;
	weft_put16(h + 2, (u16)(IPV4_HEADER + UDP_HEADER + ip->len));
	h[8] = ip->hop_limit;
	h[9] = PROTOCOL_UDP;
	memcpy(h + 12, ip->from + 12, 4);
	memcpy(h + 16, ip->to + 12, 4);
	weft_put16(h + 10, checksum(h));
}

void rl_datagram_grh(u8 grh[WEFT_GRH_LEN], const struct rl_ip_header *ip)
{
	memset(grh, 0, WEFT_GRH_LEN);
	if (is_mapped_v4(ip->from)) {
		write_v4(grh + WEFT_GRH_LEN - IPV4_HEADER, ip);
		return;
	}
	weft_put32(grh, 6u << 28 | (u32)ip->traffic_class << 20);
	weft_put16(grh + 4, (u16)(UDP_HEADER + ip->len));
	grh[6] = PROTOCOL_UDP;
	grh[7] = ip->hop_limit;
	memcpy(grh + 8, ip->from, 16);
	memcpy(grh + 24, ip->to, 16);
}
