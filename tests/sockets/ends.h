/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two ends of a TCP connection of lo, in one process; each may be a stream, or spoken to octet by octet. */
#ifndef SOCKETS_ENDS_H
#define SOCKETS_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../providers/rootless/process/options.h"
#include "../../providers/sockets/stream/stream.h"

/* What a test waits for comes in this time, or never. */
#define SOON_MS 20000

struct end {
	int fd;
	struct rl_stream *s;		/* NULL: none */
};

/* Segments of TCP's in connections from now on; 0: as large as lo's. */
extern int ends_mss;
/* e[0] has connected, e[1] was accepted. */
void ends_connect(struct end e[2]);
void end_start(struct end *e, enum rl_stream_role role, const struct rl_stream_options *o);
/* Both are streams, and open. */
void ends_open(struct end e[2]);
/* Closes what is open of both. */
void ends_close(struct end e[2]);
void end_close(struct end *e);
/* RST, as of a process that was killed with octets unread. */
void end_reset(struct end *e);

/* Waits until end @e says one of @events, while @other, if it is a stream, goes on, too. What it says. */
unsigned int end_await(struct end *e, struct end *other, unsigned int events);
/* Waits until @e is not starting any more. */
enum rl_stream_phase end_await_phase(struct end *e, struct end *other);

ssize_t end_recv(struct end *e, void *p, size_t n);
ssize_t end_send(struct end *e, const void *p, size_t n);
/* All of it, while @other goes on. */
void end_send_all(struct end *e, struct end *other, const void *p, size_t n);
void end_recv_all(struct end *e, struct end *other, void *p, size_t n);
/* The end of the octets, or the error, that recv says next. */
ssize_t end_recv_end(struct end *e, struct end *other);

/* Raw octets of an end that is no stream. */
void raw_say(const struct end *e, const void *p, size_t n);
void raw_hear(const struct end *e, struct end *other, void *p, size_t n);

/* The octet at @pos of a stream that @seed names. */
uint8_t pattern(uint32_t seed, uint64_t pos);
void fill(void *p, size_t n, uint32_t seed, uint64_t pos);
void expect(const void *p, size_t n, uint32_t seed, uint64_t pos);

/* cmocka has put its own handler of faults in the guard's place. */
void let_guard_catch(void);

/* Options, as if they had been in the environment. */
struct rl_options *options(void);

#endif
