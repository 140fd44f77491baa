/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The progress thread: it waits for descriptors and for time, and calls whoever asked. It begins
 * with the first who asks, and takes no signal of the program's.
 *
 * A child of fork() has no such thread. It gets one with its first call on a descriptor of ours
 * that it has inherited (rl_thread_revive()), and then everything that it has inherited goes on in
 * the child. Until then nothing of that is touched, even if the child opens a device of its own. As with
 * the kernel's RDMA, one of the two processes uses what both have.
 *
 * Inside the gate (process/gate.h). Locking: leaves of its own. A callback runs without any lock; it may call everything here.
 */
#ifndef RL_THREAD_H
#define RL_THREAD_H

#include <sys/epoll.h>
#include <time.h>

#include "clock.h"
#include "file.h"
#include "list.h"
#include "port.h"

struct rl_watch;

/* All but release() and read() in the progress thread. @w is referenced meanwhile. */
struct rl_watch_ops {
	void (*ready)(struct rl_watch *w, u32 events);	/* EPOLL bits */
	void (*timeout)(struct rl_watch *w);		/* the deadline has passed; it is none now */
	void (*revive)(struct rl_watch *w);		/* in a child: wait for the descriptor anew */
	/* A CQ's poller: reads some of what has come. False: there may be more. NULL: not for CQs. */
	bool (*read)(struct rl_watch *w);
	void (*release)(struct rl_watch *w);		/* the last reference has gone; any thread */
};

/* Inside whatever watches. */
struct rl_watch {
	const struct rl_watch_ops *ops;
	u32 refs;			/* atomic */
	u32 key;			/* what epoll calls it; 0: not watched */
	u64 deadline;			/* ms; 0: none */
	struct list_head node;		/* in those with a deadline */
};

/* One reference. */
static inline void rl_watch_init(struct rl_watch *w, const struct rl_watch_ops *ops)
{
	*w = (struct rl_watch){ .ops = ops, .refs = 1 };
}
static inline void rl_watch_get(struct rl_watch *w)
{
	__atomic_fetch_add(&w->refs, 1, __ATOMIC_RELAXED);
}
static inline void rl_watch_put(struct rl_watch *w)
{
	if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) == 0)
		w->ops->release(w);
}

/*
 * Gives @w a key, under which a descriptor can be waited for: 0 or -ENOMEM. The table has a
 * reference until rl_watch_end(), which stops the deadline, too; a call may be under way yet.
 */
int rl_watch_begin(struct rl_watch *w);
void rl_watch_end(struct rl_watch *w);

/* The watch that @key names, referenced; NULL if it has ended. */
struct rl_watch *rl_watch_find(u32 key);

/* The progress thread waits for @events of @fd in @w's name (EPOLLET, EPOLLONESHOT allowed). */
int rl_thread_add(struct rl_watch *w, int fd, u32 events);
int rl_thread_modify(struct rl_watch *w, int fd, u32 events);
void rl_thread_remove(int fd);
/* rl_watch_begin() and rl_thread_add(), both or neither: 0 or -errno. Then the other way round. */
int rl_thread_watch(struct rl_watch *w, int fd, u32 events);
void rl_thread_end_watch(struct rl_watch *w, int fd);

/* timeout() is called at @ms of rl_now_ms(), or never (0). Replaces what was asked before. */
void rl_watch_set_deadline(struct rl_watch *w, u64 ms);
/* timeout() is called as soon as may be. */
void rl_watch_poke(struct rl_watch *w);

/* Is the caller the progress thread? */
bool rl_thread_is_this(void);

/* Does something else wait for the progress thread? It asks that itself, before it goes on. */
bool rl_thread_is_wanted(void);

/*
 * The progress thread calls @job, of which @until (ms) is the end at most. Any context but its own: nothing is
 * locked or allocated here. Without a thread nobody does.
 */
void rl_thread_do(void (*job)(void), u64 until);

/* The process ends: @look at each watch. What a child inherited is among them. */
void rl_thread_at_exit(void (*look)(struct rl_watch *w));

/* The program uses @f: if it was opened before a fork(), life goes on here, in the child. */
void rl_thread_revive(const struct rl_file *f);

#endif
