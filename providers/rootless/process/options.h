/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What weft-run's options, which are environment variables, ask for. */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include "port.h"

struct rl_options {
	bool crc, markers;		/* WEFT_CRC=1, WEFT_MARKERS=0 */
	bool extensions;		/* WEFT_EXTENSIONS=1: RFC 7306 */
	u8 mpa_rev;			/* WEFT_MPA_REVISION=2 (0, 1, 2) */
	u8 rtr;				/* WEFT_RTR: WEFT_RTR_ bits; as the driver's option rtr */
	u32 startup_ms, close_ms;	/* WEFT_STARTUP_TIMEOUT_MS, WEFT_CLOSE_TIMEOUT_MS: 10000, 5000 */
	u32 accept_ms;			/* WEFT_ACCEPT_TIMEOUT_MS=60000 */
	u32 rnr_ms;			/* WEFT_RNR_TIMEOUT_MS=1000; 0: no patience */
	u32 spin_us;			/* WEFT_SPIN_US: how long the progress thread looks on */
	u16 port_min, port_max;		/* WEFT_PORTS=MIN-MAX: of listeners and connections without
					 * a port of their own; 0: the kernel's choice
					 */
	bool roce;			/* devices look like RoCE's; WEFT_DEVICE=iwarp: like RNICs */
	const char *netdevs;		/* WEFT_NETDEVS: names, with commas; NULL: all */
	bool with_hardware;		/* WEFT_WITH_HARDWARE=1 */
	bool stats;			/* WEFT_STATS=1: at exit, on stderr */
	bool trace;			/* WEFT_TRACE=1 */
};

/* Read once, when first asked for. A value that makes no sense is told on stderr and ignored. */
const struct rl_options *rl_options(void);

/* Does the program run with --sockets? Constant once the library is loaded. */
extern bool rl_sockets_on;

/* One line on stderr. */
void rl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same if the trace is on. */
void rl_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
