/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets with posted operations, used through weft-socket.h as programs use them. The tests have
 * no hooks: the calls in the header are redirected to the functions here.
 */
#ifndef SOCKETS_OPS_ENDS_H
#define SOCKETS_OPS_ENDS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

int to_set(int fd, int level, int option, const void *value, socklen_t len);
int to_get(int fd, int level, int option, void *value, socklen_t *len);
int to_poll(struct pollfd *p, nfds_t n, int timeout);

#define setsockopt to_set
#define getsockopt to_get
#define poll to_poll
#include "../../providers/sockets/weft-socket.h"
#undef setsockopt
#undef getsockopt
#undef poll

#include "ends.h"
#include "../../providers/sockets/operations/ops.h"
#include "../../providers/sockets/stream/option.h"

/* Two connections: e[0] with e[1], e[2] with e[3]. */
extern struct end e[4];

/* Around each test; connects the first two. */
int setup(void **state);
int cleanup(void **state);
#define OVER_LO(name) cmocka_unit_test_setup_teardown(name, setup, cleanup)

void upgrade(int i, uint8_t role, uint8_t flags, uint32_t depth);
/* @i is the initiator, its neighbour the responder; both are open on return. */
void open_deep(int i, uint32_t depth);
void open_both(void);

/* The next event of end @i; fails if there is none in SOON_MS. */
struct weft_qevent take(int i);
void expect_event(int i, uint8_t what, uint64_t ahandle, uint32_t length);
void expect_failed(int i, uint8_t what, uint64_t ahandle, int error);
void expect_none(int i);
/* No more events, for this reason, in every call. */
void expect_end(int i, int why);
bool is_readable(int fd, int timeout);

/* Targets of puts and gets, and local buffers. */
extern uint8_t range[2][300000], local[2][300000];
/* Reads the octet at @p without synchronization: the peer may be writing it. */
uint8_t amid(const void *p);
uint32_t registered(int i, void *p, size_t n, int access);

#endif
