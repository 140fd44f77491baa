/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads that wait in ibv_get_cq_event(): waits.c, for weft-waits and weft-signals; waits-storm.c. */
#ifndef WAITS_H
#define WAITS_H

#include <pthread.h>
#include <sys/types.h>

#include "cases.h"
#include "ends.h"

extern struct ends t;

void post_recv(struct conn *c, uint64_t id);
void post_send(struct conn *c, uint64_t id);
void arm(struct conn *c);
/* 0 or errno. */
int await_event(struct conn *c);
/* The next completion, by events alone. */
bool take_by_event(struct conn *c, uint64_t id);

struct waiter {
	pthread_t thread;
	pid_t tid;			/* atomic; 0: it has not begun */
	int result;			/* of the wait: 0 or errno */
	void (*before)(void);		/* in the thread, before the wait; may be NULL */
	void (*after)(struct waiter *w); /* instead of its end; may be NULL */
};

/* Its state as the kernel tells it: 'S' asleep; 0: it is gone. */
char state_of(pid_t tid);
void moment(void);
long now_us(void);
/* It waits for an event of the server's when this returns. */
void start(struct waiter *w);
/* AddressSanitizer mistakes the frames that a cancelled thread has left for others. */
bool can_cancel(void);
/* The wait's result; ETIMEDOUT: it has not ended, and is cancelled. */
int join(struct waiter *w);

extern const struct a_case storms[];
extern const unsigned int n_storms;

#endif
