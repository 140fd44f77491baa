// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The options are WEFT_ variables of the environment, read once. One of them enables the trace. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/core/alive.h"
#include "kernel/core/rtr.h"
#include "kernel/proto/mpa.h"
#include "api.h"
#include "raw.h"

static struct rl_options opt = {
	.crc = true,
	.extensions = true,
	.mpa_rev = 2,
	.rtr = WEFT_RTR_ALL,
	.startup_ms = 10000,
	.accept_ms = 60000,
	.close_ms = 5000,
	.dead_peer_ms = WEFT_DEAD_MS,
	.rnr_ms = 1000,
	.record_mib = 4,
};

/* ---- stderr ---- */

#define PREFIX_LEN	(sizeof("weft: ") - 1)

struct option_line {
	char text[512];
	size_t len;			/* 0: none */
};

static void __attribute__((format(printf, 2, 0)))
option_format(struct option_line *l, const char *fmt, va_list args)
{
	const size_t room = sizeof(l->text) - PREFIX_LEN - 1;
	int len;

	memcpy(l->text, "weft: ", PREFIX_LEN);
	len = vsnprintf(l->text + PREFIX_LEN, room, fmt, args);
	l->len = len < 0 ? 0 : PREFIX_LEN + min_t(size_t, (size_t)len, room - 1);
}

/* One write, so that lines of several threads and processes stay whole. */
static void option_print(struct option_line *l)
{
	if (!l->len)
		return;
	l->text[l->len] = '\n';
	rl_raw(SYS_write, STDERR_FILENO, l->text, l->len + 1);
}

void rl_complain(const char *fmt, ...)
{
	struct option_line l;
	va_list args;

	va_start(args, fmt);
	option_format(&l, fmt, args);
	va_end(args);
	option_print(&l);
}

/* ---- values ---- */

/* Each: true if @s is valid, and its value is in *@v. */
static bool parse_number(const char *s, char **end, u32 min, u32 max, u32 *v)
{
	unsigned long n;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	n = strtoul(s, end, 10);
	if (errno || n < min || n > max)
		return false;
	*v = (u32)n;
	return true;
}

static bool parse_ports(const char *s, u16 *min, u16 *max)
{
	char *end;
	u32 a, b;

	if (!parse_number(s, &end, 1, 65535, &a) || *end != '-')
		return false;
	if (!parse_number(end + 1, &end, a, 65535, &b) || *end)
		return false;
	*min = (u16)a;
	*max = (u16)b;
	return true;
}

/* ---- variables ---- */

/* NULL: not set, or empty. */
static const char *option_value(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

/* The program may change its environment. */
static char *option_copy(const char *name)
{
	const char *s = option_value(name);

	return s ? strdup(s) : NULL;
}

static void option_read_number(const char *name, u32 min, u32 max, u32 *v)
{
	const char *s = option_value(name);
	char *end;
	u32 n;

	if (!s)
		return;
	if (parse_number(s, &end, min, max, &n) && !*end)
		*v = n;
	else
		rl_complain("%s=%s is ignored: it should be a number from %u to %u", name, s, min,
			    max);
}

static void read_bool(const char *name, bool *v)
{
	u32 n = *v;

	option_read_number(name, 0, 1, &n);
	*v = n;
}

static void option_read_words(void)
{
	const char *ports = option_value("WEFT_PORTS"), *rtr = option_value("WEFT_RTR");
	const char *device = option_value("WEFT_DEVICE");
	u8 bits = rtr ? weft_rtr_parse(rtr) : 0;

	if (ports && !parse_ports(ports, &opt.port_min, &opt.port_max))
		rl_complain("WEFT_PORTS=%s is ignored: it should be MIN-MAX", ports);
	if (rtr && bits)
		opt.rtr = bits;
	else if (rtr)
		rl_complain("WEFT_RTR=%s is ignored: it should be some of send, write, read", rtr);
	opt.roce = !device || strcmp(device, "iwarp");
	if (device && opt.roce && strcmp(device, "roce"))
		rl_complain("WEFT_DEVICE=%s is ignored: it should be roce or iwarp", device);
	opt.netdevs = option_copy("WEFT_NETDEVS");
	opt.profile = option_copy("WEFT_PROFILE");
	opt.rails = option_copy("WEFT_RAILS");
	opt.faults = option_copy("WEFT_FAULTS");
	opt.fault_log = option_copy("WEFT_FAULT_LOG");
	opt.judge = option_copy("WEFT_JUDGE");
	opt.judge_log = option_copy("WEFT_JUDGE_LOG");
	opt.judge_suppress = option_copy("WEFT_JUDGE_SUPPRESS");
	opt.record = option_copy("WEFT_RECORD");
}

static void read_all(void)
{
	u32 rev = opt.mpa_rev;
	int saved = errno;

	read_bool("WEFT_CRC", &opt.crc);
	read_bool("WEFT_MARKERS", &opt.markers);
	read_bool("WEFT_EXTENSIONS", &opt.extensions);
	read_bool("WEFT_LARGE_FPDUS", &opt.large_fpdus);
	read_bool("WEFT_WITH_HARDWARE", &opt.with_hardware);
	read_bool("WEFT_CONTROL", &opt.control);
	read_bool("WEFT_STATS", &opt.stats);
	read_bool("WEFT_JUDGE_FATAL", &opt.judge_fatal);
	read_bool("WEFT_TRACE", &opt.trace);
	option_read_number("WEFT_MPA_REVISION", 0, 2, &rev);
	opt.mpa_rev = (u8)rev;
	option_read_number("WEFT_STARTUP_TIMEOUT_MS", 1, 3600000, &opt.startup_ms);
	option_read_number("WEFT_ACCEPT_TIMEOUT_MS", 1, 3600000, &opt.accept_ms);
	option_read_number("WEFT_CLOSE_TIMEOUT_MS", 1, 3600000, &opt.close_ms);
	option_read_number("WEFT_DEAD_PEER_TIMEOUT_MS", WEFT_DEAD_MS_MIN, 3600000,
			   &opt.dead_peer_ms);
	option_read_number("WEFT_RNR_TIMEOUT_MS", 0, 3600000, &opt.rnr_ms);
	option_read_number("WEFT_FAULT_SEED", 1, UINT32_MAX, &opt.fault_seed);
	option_read_number("WEFT_ADVERSE", 1, UINT32_MAX, &opt.adverse);
	option_read_number("WEFT_RECORD_MIB", 1, 4096, &opt.record_mib);
	option_read_number("WEFT_SPIN_US", 0, 1000000, &opt.spin_us);
	option_read_words();
	errno = saved;
}

const struct rl_options *rl_options(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &opt;
}

void (*rl_trace_sink)(const char *line, size_t len);

void rl_trace(const char *fmt, ...)
{
	int saved = errno;
	struct option_line l;
	va_list args;

	if (!rl_options()->trace && !rl_trace_sink)
		return;
	va_start(args, fmt);
	option_format(&l, fmt, args);
	va_end(args);
	if (rl_trace_sink && l.len)
		rl_trace_sink(l.text + PREFIX_LEN, l.len - PREFIX_LEN);
	if (rl_options()->trace)
		option_print(&l);
	errno = saved;
}
