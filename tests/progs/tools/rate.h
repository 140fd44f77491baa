/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-rate: what is measured, how time and bytes are counted, and the two ways
 * of moving them, by verbs and by TCP sockets.
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stdint.h>

enum job {
	JOB_SEND,	/* rates */
	JOB_WRITE,
	JOB_READ,
	JOB_PING_SEND,	/* latencies */
	JOB_PING_WRITE,
	JOB_CONNECTS,
	JOB_IDLE,
	JOB_BYE,	/* ends JOB_CONNECTS */
	JOB_UNCONNECTED,	/* JOB_IDLE's queues, of one end: nothing on the wire */
};

/* The client says what is done, the server follows. */
struct run {
	enum job job;
	bool sleep;		/* on events, else spin */
	uint32_t connections;
	uint32_t size;
	uint32_t depth;		/* operations under way on a connection */
	uint32_t chunk;		/* so many are answered for together */
	uint32_t tenths;		/* of a second */
};

/* The same on the wire, big-endian: what the client of any connection says first. */
struct hello {
	uint32_t magic;
	uint8_t job, sleep;
	uint16_t chunk;
	uint16_t depth, tenths;
	uint32_t connections;
	uint32_t size;
};

struct hello hello_of(const struct run *run);
struct run run_of(const struct hello *h);

/* What one end counted in its window. */
struct count {
	uint64_t bytes;
	uint64_t ns;
	uint64_t cpu_us;
};

/* The receiver's, big-endian, ends a run. */
struct report {
	uint64_t bytes, ns, cpu_us;
};

struct report report_of(const struct count *n);
struct count count_of(const struct report *r);

/* The window: after the warm-up it lasts as long as was asked for. */
#define WARM_UP_NS	500000000

struct meter {
	enum { WARMING, COUNTING, OVER } phase;
	int64_t next;		/* when the phase ends */
	int64_t began;
	int64_t window;
	uint64_t bytes0, cpu0;
	struct count count;	/* when it is OVER */
};

int64_t now_ns(void);
void meter_start(struct meter *m, uint32_t tenths);
/* Looks at the clock; @bytes is what has come so far. True when the window is over. */
bool meter_look(struct meter *m, uint64_t bytes);

void print_rate(const struct run *run, const struct count *rate, uint64_t cpu_client,
		uint64_t cpu_server);
void print_connects(const struct count *n);

/* Round trips one after another, for the warm-up and the window. */
struct pings {
	int64_t began, window;	/* ns */
	uint64_t first, last;	/* ticks */
	uint32_t *ticks;	/* of each */
	uint32_t n, looks;
	bool counting;
};

void pings_start(struct pings *p, uint32_t tenths);
/* One is complete. True when there have been enough. */
bool pings_done(struct pings *p);
void pings_print(struct pings *p, const struct run *run);

/* Until standard input ends. */
void hold_idle(const struct run *run);

/* Nothing for so long is a failure. */
#define PATIENCE_MS	30000

void rdma_serve(const char *addr, const char *port);
void rdma_call(const struct run *run, const char *host, const char *port);
/* @sleep: the server sleeps, whatever the client asks for. */
void tcp_serve(const char *addr, const char *port, bool sleep);
void tcp_call(const struct run *run, const char *host, const char *port);
/* JOB_WRITE: the other end answers; JOB_READ: its callback does; JOB_SEND: only data. */
void floor_run(const struct run *asked);

#endif
