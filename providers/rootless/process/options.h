/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* weft-run's options, which are environment variables. */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include "port.h"

struct rl_options {
	bool crc, markers;		/* WEFT_CRC=1, WEFT_MARKERS=0 */
	bool extensions;		/* WEFT_EXTENSIONS=1: RFC 7306 */
	bool large_fpdus;		/* WEFT_LARGE_FPDUS=0: larger than a segment */
	u8 mpa_rev;			/* WEFT_MPA_REVISION=2 (0, 1, 2) */
	u8 rtr;				/* WEFT_RTR: WEFT_RTR_ bits; as the driver's option rtr */
	u32 startup_ms, close_ms;	/* WEFT_{STARTUP,CLOSE}_TIMEOUT_MS: 10000, 5000 */
	u32 accept_ms;			/* WEFT_ACCEPT_TIMEOUT_MS=60000 */
	u32 dead_peer_ms;		/* WEFT_DEAD_PEER_TIMEOUT_MS=60000 */
	u32 rnr_ms;			/* WEFT_RNR_TIMEOUT_MS=1000; 0: do not wait */
	u32 spin_us;			/* WEFT_SPIN_US: how long the progress thread polls on */
	u16 port_min, port_max;		/* WEFT_PORTS=MIN-MAX: of listeners and connections without
					 * a port of their own; 0: the kernel's choice
					 */
	bool roce;			/* look like RoCE devices; WEFT_DEVICE=iwarp: RNICs */
	const char *netdevs;		/* WEFT_NETDEVS: names, with commas; NULL: all */
	const char *profile;		/* WEFT_PROFILE: a file; NULL: weft's own devices */
	const char *rails;		/* WEFT_RAILS: a number, or a file; NULL: one a netdev */
	const char *faults;		/* WEFT_FAULTS: a file; NULL: none */
	const char *fault_log;		/* WEFT_FAULT_LOG: a file; NULL: the trace */
	u32 fault_seed;			/* WEFT_FAULT_SEED; 0: the file's */
	const char *judge;		/* WEFT_JUDGE: rules; NULL: no judge */
	const char *judge_log;		/* WEFT_JUDGE_LOG: a file; NULL: none */
	const char *judge_suppress;	/* WEFT_JUDGE_SUPPRESS: a file; NULL: none */
	u32 adverse;			/* WEFT_ADVERSE: a seed; 0: the usual order */
	bool judge_fatal;		/* WEFT_JUDGE_FATAL=1: the first report ends the process */
	const char *record;		/* WEFT_RECORD: a folder; NULL: no record */
	u32 record_mib;			/* WEFT_RECORD_MIB=4: of a process's ring */
	bool with_hardware;		/* WEFT_WITH_HARDWARE=1 */
	bool control;			/* WEFT_CONTROL=1: serve weft-ctl */
	bool stats;			/* WEFT_STATS=1: at exit, on stderr */
	bool trace;			/* WEFT_TRACE=1 */
};

/* Read on first use. An invalid value is reported on stderr and ignored. */
const struct rl_options *rl_options(void);

/* One line on stderr. */
void rl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The record's, which keeps what the trace says; NULL: there is no record. */
extern void (*rl_trace_sink)(const char *line, size_t len);

/* The same if the trace is enabled, and to the record. */
void rl_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
