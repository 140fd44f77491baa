/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Event channels: completion channels, asynchronous events, rdma_cm's. The descriptor is an
 * eventfd that counts the events, so poll, epoll (edges, too), select and O_NONBLOCK are the
 * kernel's own. The events' data waits in a list here.
 *
 * Locking: each channel's own, a leaf. Any thread.
 */
#ifndef RL_CHAN_H
#define RL_CHAN_H

#include <pthread.h>

#include "process/file.h"
#include "process/list.h"

struct rl_chan_source;

/* An event, followed by its data. */
struct rl_event {
	struct list_head node;
	const void *owner;		/* for rl_chan_drop() and rl_chan_move() */
	u32 *reported;			/* counted up when it is taken, or NULL; channel's lock */
	size_t len;			/* octets of data */
	u8 data[] __attribute__((aligned(8)));
};

/*
 * Where events of a channel come from if a thread works for them: one that waits for an event waits
 * for @fd, too, and does the work itself instead of being woken when the progress thread has done
 * it. All are called inside the gate, without the channel's lock, with a reference (get, put).
 */
struct rl_chan_source_ops {
	void (*get)(struct rl_chan_source *s);
	void (*put)(struct rl_chan_source *s);
	/* A thread begins to wait, as number @wait. */
	void (*begin)(struct rl_chan_source *s, u32 wait);
	/* It has ended. @others: further threads wait for events alone. */
	void (*end)(struct rl_chan_source *s, u32 wait, bool others);
	/* A thread is about to sleep, and there is no event; for the judge. */
	void (*sleep)(struct rl_chan_source *s);
	/* @fd is readable. False: there was nothing to do. */
	bool (*work)(struct rl_chan_source *s);
};

struct rl_chan_source {
	const struct rl_chan_source_ops *ops;
	struct list_head node;		/* the channel's lock */
	int fd;				/* hidden */
};

struct rl_chan {
	struct rl_file *file;		/* the channel's owner; NULL once that is closed */
	int efd;			/* a hidden name of the eventfd */
	u32 refs;			/* atomic */
	pthread_mutex_t lock;
	struct list_head events;	/* lock; the oldest first */
	u32 n_events;			/* lock; read without it */
	u32 spares;			/* lock; counts without an event, see chan.c */
	struct list_head sources;	/* lock */
	u32 n_sources;			/* lock; read without it */
	u64 waiting;			/* atomic: threads that wait for an event, below
					 * rl_fd_forks() of their process
					 */
};

void rl_chan_add_source(struct rl_chan *c, struct rl_chan_source *s);
/* A thread may work for it yet, with a reference. */
void rl_chan_remove_source(struct rl_chan *c, struct rl_chan_source *s);

/*
 * A new channel, with one reference; *@fd: its eventfd, with O_CLOEXEC and O_NONBLOCK as @flags
 * says, for the program, not yet installed. NULL: no memory, or no descriptor.
 */
struct rl_chan *rl_chan_new(int flags, int *fd);
void rl_chan_get(struct rl_chan *c);
void rl_chan_put(struct rl_chan *c);

/* An event with room for @len octets at ->data, zeroed; NULL: no memory. free() it. */
struct rl_event *rl_event_new(const void *owner, size_t len);
/* Appends @e, which the channel owns from now on. */
void rl_chan_push(struct rl_chan *c, struct rl_event *e);
/* rl_event_new() and rl_chan_push(). Without memory the event is lost. */
void rl_chan_report(struct rl_chan *c, const void *owner, u32 *reported, const void *data,
		    size_t len);

/*
 * Takes the oldest event; waits for one, unless the program's descriptors of the channel have
 * O_NONBLOCK. 0, or -EAGAIN, -EINTR. The caller frees it. A point of cancellation.
 */
int rl_chan_take(struct rl_chan *c, struct rl_event **e);

/* Removes @owner's events. */
void rl_chan_drop(struct rl_chan *c, const void *owner);
/* Moves them to @to, in order. */
void rl_chan_move(struct rl_chan *c, struct rl_chan *to, const void *owner);

/* read() of a channel: one event into @buf, or -EINVAL if it is longer than @len. */
ssize_t rl_chan_read(struct rl_chan *c, void *buf, size_t len);

#endif
