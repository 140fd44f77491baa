// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How fast is it? Two of these measure rates, latencies and connection set-up over any verbs
 * devices, and over plain TCP sockets with the same traffic, with one thread at each end. Rates are
 * what the receiver counted between two readings of its own clock, so that data in buffers on the
 * way does not count.
 */
#include <endian.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "rate.h"

#define MAGIC		0x77726174u
#define MAX_CONNECTIONS	65536
#define MAX_SIZE	(64u << 20)
#define MAX_DEPTH	4096
#define MAX_TENTHS	36000
#define TENTH_NS	100000000LL

static const char *const job_names[] = {
	[JOB_SEND] = "send", [JOB_WRITE] = "write", [JOB_READ] = "read",
	[JOB_PING_SEND] = "send", [JOB_PING_WRITE] = "write",
};

/* ---- what goes over the wire ---- */

struct hello hello_of(const struct run *run)
{
	return (struct hello){
		.magic = htobe32(MAGIC),
		.job = run->job,
		.sleep = run->sleep,
		.chunk = htobe16(run->chunk),
		.depth = htobe16(run->depth),
		.tenths = htobe16(run->tenths),
		.connections = htobe32(run->connections),
		.size = htobe32(run->size),
	};
}

static bool sensible(const struct run *r)
{
	return r->job <= JOB_BYE && r->connections && r->connections <= MAX_CONNECTIONS &&
	       r->size && r->size <= MAX_SIZE && r->depth && r->depth <= MAX_DEPTH &&
	       r->chunk && r->chunk <= r->depth && r->tenths && r->tenths <= MAX_TENTHS;
}

struct run run_of(const struct hello *h)
{
	struct run r = {
		.job = h->job,
		.sleep = h->sleep,
		.chunk = be16toh(h->chunk),
		.depth = be16toh(h->depth),
		.tenths = be16toh(h->tenths),
		.connections = be32toh(h->connections),
		.size = be32toh(h->size),
	};

	if (be32toh(h->magic) != MAGIC)
		fail("the peer is no weft-rate");
	if (!sensible(&r))
		fail("the client asks for what makes no sense");
	return r;
}

struct report report_of(const struct count *n)
{
	return (struct report){ htobe64(n->bytes), htobe64(n->ns), htobe64(n->cpu_us) };
}

struct count count_of(const struct report *r)
{
	return (struct count){ be64toh(r->bytes), be64toh(r->ns), be64toh(r->cpu_us) };
}

/* ---- the window ---- */

int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static uint64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

void meter_start(struct meter *m, uint32_t tenths)
{
	*m = (struct meter){ .next = now_ns() + WARM_UP_NS, .window = tenths * TENTH_NS };
}

bool meter_look(struct meter *m, uint64_t bytes)
{
	int64_t now;

	if (m->phase == OVER)
		return true;
	now = now_ns();
	if (now < m->next)
		return false;
	if (m->phase == WARMING) {
		m->phase = COUNTING;
		m->began = now;
		m->next = now + m->window;
		m->bytes0 = bytes;
		m->cpu0 = cpu_us();
		return false;
	}
	m->phase = OVER;
	m->count = (struct count){ bytes - m->bytes0, now - m->began, cpu_us() - m->cpu0 };
	return true;
}

void print_rate(const struct run *run, const struct count *rate, uint64_t cpu_client,
		uint64_t cpu_server)
{
	double s = rate->ns / 1e9;

	printf("op=%s size=%u connections=%u depth=%u seconds=%.3f bytes=%" PRIu64
	       " MB/s=%.3f msgs/s=%.0f cpu_client=%.2f cpu_server=%.2f s/GB=%.4f\n",
	       job_names[run->job], run->size, run->connections, run->depth, s, rate->bytes,
	       rate->bytes / s / 1e6, rate->bytes / s / run->size, cpu_client / 1e6,
	       cpu_server / 1e6, (cpu_client + cpu_server) * 1e3 / rate->bytes);
}

/* What was counted are connections. */
void print_connects(const struct count *n)
{
	printf("seconds=%.3f connects=%" PRIu64 " connects/s=%.1f\n", n->ns / 1e9, n->bytes,
	       n->bytes / (n->ns / 1e9));
}

/* ---- round trips ---- */

#define MAX_PINGS	(8u << 20)
#define LOOK_EACH	256	/* round trips, at the clock */

/*
 * The CPU's own counter where it has one, as perftest: in user-mode Linux the clock is a
 * system call, and would be a third of a round trip.
 */
static uint64_t ticks_now(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return now_ns();
#endif
}

void pings_start(struct pings *p, uint32_t tenths)
{
	*p = (struct pings){ .window = tenths * TENTH_NS };
	p->ticks = malloc(MAX_PINGS * sizeof(*p->ticks));
	if (!p->ticks)
		fail("no memory");
	p->began = now_ns();
	p->last = ticks_now();
}

/* True when the window is over. What the look takes is no round trip's. */
static bool pings_look(struct pings *p)
{
	int64_t now = now_ns();

	p->last = ticks_now();
	if (p->counting)
		return now - p->began >= p->window;
	if (now - p->began >= WARM_UP_NS) {
		p->counting = true;
		p->began = now;
		p->first = p->last;
	}
	return false;
}

bool pings_done(struct pings *p)
{
	uint64_t now = ticks_now(), t = now - p->last;

	p->last = now;
	if (p->counting)
		p->ticks[p->n++] = t < UINT32_MAX ? t : UINT32_MAX;
	return p->n == MAX_PINGS || (++p->looks % LOOK_EACH == 0 && pings_look(p));
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void pings_print(struct pings *p, const struct run *run)
{
	/* Half a round trip, in microseconds. */
	double scale = (now_ns() - p->began) / (double)(ticks_now() - p->first) / 2e3, sum = 0;
	uint32_t i;

	for (i = 0; i < p->n; i++)
		sum += p->ticks[i];
	qsort(p->ticks, p->n, sizeof(*p->ticks), by_size);
	printf("op=%s size=%u round_trips=%u typical_us=%.2f avg_us=%.2f p99_us=%.2f\n",
	       job_names[run->job], run->size, p->n, p->ticks[p->n / 2] * scale, sum / p->n * scale,
	       p->ticks[(uint64_t)p->n * 99 / 100] * scale);
	free(p->ticks);
}

void hold_idle(const struct run *run)
{
	char c;

	printf("idle=%u\n", run->connections);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

/* ---- the machine ---- */

/* A system call that does nothing: the best of some rounds. */
static void measure_syscall(void)
{
	const int rounds = 10, calls = 20000;
	int64_t from, ns, best = INT64_MAX;
	int round, i;

	for (round = 0; round < rounds; round++) {
		from = now_ns();
		for (i = 0; i < calls; i++)
			syscall(SYS_getppid);
		ns = now_ns() - from;
		if (ns < best)
			best = ns;
	}
	printf("syscall_us=%.3f\n", best / 1e3 / calls);
}

/* ---- options ---- */

static void usage(void)
{
	fprintf(stderr,
		"weft-rate -l [-b ADDR] [-p PORT] [-T [-e]]\n"
		"weft-rate    [-p PORT] [-T] [-c CONNECTIONS] [-s SIZE] [-o write|send|read]\n"
		"             [-q DEPTH] [-t SECONDS] [-e] [-L | -C | -I N | -U N] HOST\n"
		"weft-rate -K [-o write|read|send] [-s SIZE] [-t SECONDS]\n"
		"weft-rate -S\n"
		"  -l  serve one client (which says what is done)\n"
		"  -T  plain TCP sockets; -o send only\n"
		"  -c  connections, used in turn (1)\n"
		"  -s  octets of an operation (65536)\n"
		"  -o  what is measured (write; with -T send)\n"
		"  -q  operations under way on a connection (64; fewer on many connections)\n"
		"  -t  seconds that are measured (3; 0.5 will do), after half a second that is not\n"
		"  -e  both ends sleep on events instead of spinning; with -l the server does\n"
		"  -L  latency of ping-pong by -o write or send, spinning (with -T also -e)\n"
		"  -C  connections set up and torn down a second\n"
		"  -I  open N connections and hold them idle until standard input ends\n"
		"  -U  the same queues, but not connected; no server is needed\n"
		"  -K  ping-pong as -L, by a system call and TCP alone; with -o send the rate,\n"
		"      sent and received on one CPU; needs weft_kping.ko\n"
		"  -S  what a system call costs\n");
	exit(2);
}

static uint32_t number(const char *s, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(s, &end, 0);

	if (!n || n > max || *end) {
		fprintf(stderr, "weft-rate: %s is not a number from 1 to %u\n", s, max);
		usage();
	}
	return n;
}

static uint32_t tenths_of(const char *s)
{
	char *end;
	double seconds = strtod(s, &end);

	if (!(seconds >= 0.1 && seconds <= MAX_TENTHS / 10.0) || *end) {
		fprintf(stderr, "weft-rate: %s is not a number of seconds from 0.1 to %u\n", s,
			MAX_TENTHS / 10);
		usage();
	}
	return seconds * 10 + 0.5;
}

static enum job op_of(const char *s)
{
	enum job job;

	for (job = JOB_SEND; job <= JOB_READ; job++)
		if (!strcmp(s, job_names[job]))
			return job;
	usage();
	return JOB_SEND;
}

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

/*
 * Many connections have fewer operations under way on each, so that a CQ can
 * hold them all. What is answered for together must be small beside what is
 * under way, and beside what moves in the window.
 */
#define MAX_UNDER_WAY	8192
#define MAX_CHUNKS	(16u << 20)

static void settle_depth(struct run *r)
{
	uint32_t depth = at_least_one(MAX_UNDER_WAY / r->connections);
	uint32_t chunk = at_least_one(MAX_CHUNKS / r->connections / r->size);

	if (r->depth > depth)
		r->depth = depth;
	r->chunk = at_least_one(r->depth / 4);
	if (r->chunk > chunk)
		r->chunk = chunk;
	r->depth -= r->depth % r->chunk;
}

static void allow_files(uint32_t n)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	if (l.rlim_max < n)
		l.rlim_max = n;		/* root may */
	l.rlim_cur = l.rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &l))
		return;
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

struct options {
	bool server, tcp, latency, connects, idle, unconnected, floor, syscall, has_op;
	enum job op;
	const char *addr, *port;
	struct run run;
};

static void parse(int argc, char **argv, struct options *o)
{
	struct run *r = &o->run;
	int opt;

	while ((opt = getopt(argc, argv, "lb:p:Tc:s:o:q:t:eLCI:U:KS")) != -1) {
		switch (opt) {
		case 'l': o->server = true; break;
		case 'b': o->addr = optarg; break;
		case 'p': o->port = optarg; break;
		case 'T': o->tcp = true; break;
		case 'c': r->connections = number(optarg, MAX_CONNECTIONS); break;
		case 's': r->size = number(optarg, MAX_SIZE); break;
		case 'o': o->op = op_of(optarg); o->has_op = true; break;
		case 'q': r->depth = number(optarg, MAX_DEPTH); break;
		case 't': r->tenths = tenths_of(optarg); break;
		case 'e': r->sleep = true; break;
		case 'L': o->latency = true; break;
		case 'C': o->connects = true; break;
		case 'I': o->idle = true; r->connections = number(optarg, MAX_CONNECTIONS); break;
		case 'U': o->unconnected = true; r->connections = number(optarg, MAX_CONNECTIONS); break;
		case 'K': o->floor = true; break;
		case 'S': o->syscall = true; break;
		default: usage();
		}
	}
	if ((o->server || o->floor || o->syscall) != (optind == argc) || argc - optind > 1 ||
	    o->latency + o->connects + o->idle + o->unconnected > 1 || (o->tcp && o->unconnected))
		usage();
	if (optind < argc)
		o->addr = argv[optind];
}

static void settle_job(struct options *o)
{
	struct run *r = &o->run;

	if (o->tcp && !o->has_op)
		o->op = JOB_SEND;
	if ((o->tcp && o->op != JOB_SEND) || (o->latency && o->op == JOB_READ))
		usage();
	r->job = o->op;
	if (o->latency)
		r->job = o->op == JOB_WRITE ? JOB_PING_WRITE : JOB_PING_SEND;
	if (o->connects)
		r->job = JOB_CONNECTS;
	if (o->idle)
		r->job = JOB_IDLE;
	if (o->unconnected)
		r->job = JOB_UNCONNECTED;
	/* These have one connection that stays, and that does not wait. */
	if (o->latency || o->connects)
		r->connections = 1;
	if (o->latency && !o->tcp)
		r->sleep = false;
	if (o->connects || o->idle || o->unconnected)
		r->sleep = true;
	r->chunk = 1;
	if (r->job <= JOB_READ)
		settle_depth(r);
}

int main(int argc, char **argv)
{
	struct options o = {
		.op = JOB_WRITE,
		.port = "7176",
		.run = { .connections = 1, .size = 65536, .depth = 64, .tenths = 30 },
	};

	conn_program = "weft-rate";
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv, &o);
	if (o.syscall) {
		measure_syscall();
		return 0;
	}
	if (o.floor) {
		o.run.job = o.op;
		floor_run(&o.run);
		return 0;
	}
	settle_job(&o);
	allow_files(MAX_CONNECTIONS + 64);
	if (o.server && o.tcp)
		tcp_serve(o.addr, o.port, o.run.sleep);
	else if (o.server)
		rdma_serve(o.addr, o.port);
	else if (o.tcp)
		tcp_call(&o.run, o.addr, o.port);
	else
		rdma_call(&o.run, o.addr, o.port);
	return 0;
}
