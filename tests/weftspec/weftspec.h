/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every part of the tester shares: options, verdicts, cases, results. */
#ifndef WEFTSPEC_H
#define WEFTSPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "mpa.h"
#include "rows.h"
#include "term.h"

enum verdict { V_NONE, V_PASS, V_DIVERGENT, V_SKIPPED, V_FAIL, V_CRASH };
const char *verdict_name(enum verdict v);

/* What a case needs of the peer; missing: the case is reported as skipped. */
#define N_ULP    0x01 /* the reflector */
#define N_ATOMIC 0x02 /* RFC 7306 Atomics */
#define N_IMM    0x04 /* RFC 7306 Immediate */
#define N_INV    0x08 /* a remotely invalidatable region */
#define N_V2     0x10 /* enhanced set-up, RFC 6581 */
#define N_IRD    0x20 /* the peer takes at least one Read Request */
#define N_RTR    0x40 /* the peer as initiator asks for peer-to-peer */
#define N_SRQ    0x80
#define N_ONE    0x100 /* N_INV, and only the stream that it is bound to may use it */

#define CASE_X     0x01 /* may bring a weak peer down */
#define CASE_SLOW  0x02 /* waits for a time-out of the peer */
#define CASE_ALONE 0x04 /* disturbs others that run beside it */

struct ctx;

struct wcase {
	const char *row;
	const char *label; /* NULL: the only case of the row */
	enum role role;
	void (*run)(struct ctx *c);
	unsigned int needs;
	unsigned int flags;
	long a, b;         /* arguments of run */
};

extern const struct wcase *const case_tables[];

/* Found out by the first conversation; shared by all cases. */
struct facts {
	bool known;
	bool reflector;
	uint32_t caps;
	bool v2;
	bool rtr;
	uint16_t ird, ord;
	enum term_quirk quirk;
};

struct options {
	const char *host, *port;   /* tester connects */
	const char *listen, *exec; /* tester listens and starts the peer */
	const char **wanted;
	int nwanted;
	bool strict, destructive, tap, list, verbose, quiet, markdown, check;
	const char *profile, *junit, *pcap;
	int timeout_ms;  /* for the peer's own time-outs */
	int patience_ms; /* for a reaction */
	int jobs;
	uint32_t seed;
	int rev;
	bool p2p, no_crc, no_reflector, by_hand, large_fpdus;
	uint8_t pd[MPA_PD_MAX - MPA_ENH]; /* of ordinary frames, instead of a reflector's words */
	size_t pd_len;
	int color;
};

#define TRANSCRIPT_MAX 24576
#define TEXT_MAX 320

struct result {
	enum verdict verdict;
	char expected[TEXT_MAX];
	char actual[TEXT_MAX];
	double seconds;
	bool unreachable; /* no TCP connection to the peer */
	size_t tlen;
	char transcript[TRANSCRIPT_MAX];
};

#endif
