/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ends of a TCP connection over lo, in one process. Each end may be a stream, or raw: written
 * octet by octet.
 */
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

/* Time-out of every wait of a test. */
#define SOON_MS 20000

struct end {
	int fd;
	struct rl_stream *s;		/* NULL: none */
};

/* TCP's segment size in connections from now on; 0: lo's own. */
extern int ends_mss;
/* e[0] has connected, e[1] was accepted. */
void ends_connect(struct end e[2]);
void end_start(struct end *e, enum rl_stream_role role, const struct rl_stream_options *o);
/* Both are streams, and open. */
void ends_open(struct end e[2]);
/* Closes whichever of them is open. */
void ends_close(struct end e[2]);
void end_close(struct end *e);
/* Sends RST, as the kernel does for a process killed with unread octets. */
void end_reset(struct end *e);

/*
 * Waits until @e reports one of @events; meanwhile @other makes progress if it is a stream.
 * Returns what @e reports.
 */
unsigned int end_await(struct end *e, struct end *other, unsigned int events);
/* Waits until @e has left start-up. */
enum rl_stream_phase end_await_phase(struct end *e, struct end *other);

ssize_t end_recv(struct end *e, void *p, size_t n);
ssize_t end_send(struct end *e, const void *p, size_t n);
/* All of it; @other makes progress meanwhile. */
void end_send_all(struct end *e, struct end *other, const void *p, size_t n);
void end_recv_all(struct end *e, struct end *other, void *p, size_t n);
/* Returns recv()'s next result that is not EAGAIN: 0 at the end of the stream, or an error. */
ssize_t end_recv_end(struct end *e, struct end *other);

/* Raw octets of an end that is no stream. */
void raw_say(const struct end *e, const void *p, size_t n);
void raw_hear(const struct end *e, struct end *other, void *p, size_t n);

/* The octet at @pos of a stream that @seed names. */
uint8_t pattern(uint32_t seed, uint64_t pos);
void fill(void *p, size_t n, uint32_t seed, uint64_t pos);
void expect(const void *p, size_t n, uint32_t seed, uint64_t pos);

/* cmocka has replaced the guard's SIGSEGV handler: restores it. */
void let_guard_catch(void);

/* Options, as if they had been in the environment. */
struct rl_options *options(void);

#endif
