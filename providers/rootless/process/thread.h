/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The progress thread waits for descriptors and deadlines, and calls the watches. It starts with
 * the first watch, and takes none of the program's signals.
 *
 * A child of fork() has no such thread. It gets one with its first call on one of our descriptors
 * that it inherited (rl_thread_revive()); then everything that it inherited continues in the child.
 * Until then nothing inherited is touched, even if the child opens a device of its own. As with the
 * kernel's RDMA, one of the two processes uses what both have.
 *
 * Inside the gate (process/gate.h). Its locks are leaves. Callbacks run without any lock, and may
 * call every function here.
 */
#ifndef RL_THREAD_H
#define RL_THREAD_H

#include <sys/epoll.h>
#include <time.h>

#include "clock.h"
#include "file.h"
#include "list.h"
#include "port.h"
#include "timers.h"

struct rl_watch;

/* A deadline: as soon as possible. */
#define RL_SOON 1

/* The progress thread calls all of them but release() and read(), with a reference to @w. */
struct rl_watch_ops {
	void (*ready)(struct rl_watch *w, u32 events);	/* EPOLL bits */
	void (*timeout)(struct rl_watch *w);		/* the deadline has passed; it is cleared */
	void (*revive)(struct rl_watch *w);		/* in a child: wait for it again */
	/*
	 * Called by a CQ's poller: reads some of what has arrived. False: there may be more. NULL:
	 * not for CQs.
	 */
	bool (*read)(struct rl_watch *w);
	void (*release)(struct rl_watch *w);		/* no reference is left; any thread */
};

/* Embedded in the object that watches. */
struct rl_watch {
	const struct rl_watch_ops *ops;
	u32 refs;			/* atomic */
	u32 key;			/* epoll's data; 0: not watched */
	u64 deadline;			/* ms, or RL_SOON; 0: none */
	struct rl_timer timer;		/* runs until then */
};

/* The caller gets one reference. */
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
 * Gives @w a key, so that it can wait for a descriptor: 0 or -ENOMEM. The table has a reference
 * until rl_watch_end(), which also clears the deadline; a callback may still be running.
 */
int rl_watch_begin(struct rl_watch *w);
void rl_watch_end(struct rl_watch *w);

/* The watch that @key names, referenced; NULL if it has ended. */
struct rl_watch *rl_watch_find(u32 key);

/* The progress thread waits for @events of @fd for @w (EPOLLET, EPOLLONESHOT allowed). */
int rl_thread_add(struct rl_watch *w, int fd, u32 events);
int rl_thread_modify(struct rl_watch *w, int fd, u32 events);
void rl_thread_remove(int fd);
/* rl_watch_begin() and rl_thread_add(), both or neither: 0 or -errno. Then the other way round. */
int rl_thread_watch(struct rl_watch *w, int fd, u32 events);
void rl_thread_end_watch(struct rl_watch *w, int fd);

/*
 * timeout() is called at @ms of rl_now_ms(), RL_SOON, or never (0). Replaces the previous deadline.
 */
void rl_watch_set_deadline(struct rl_watch *w, u64 ms);
/* timeout() is called as soon as possible. */
void rl_watch_poke(struct rl_watch *w);

/* Is the caller the progress thread? */
bool rl_thread_is_this(void);

/* Has the process no other thread than the caller and the progress thread? False: or unknown. */
bool rl_thread_is_only_one(void);

/* Does anything else wait for the progress thread? It checks this itself before it continues. */
bool rl_thread_is_wanted(void);

/*
 * The progress thread calls @job; returns when that is done, at @until (ms) at the latest. From any
 * other thread, in any context: takes no lock and allocates nothing. Does nothing if there is no
 * such thread.
 */
void rl_thread_do(void (*job)(void), u64 until);

/*
 * The process ends: calls @look for each watch, including those that a child inherited. False:
 * another thread was in the way.
 */
bool rl_thread_at_exit(void (*look)(struct rl_watch *w));

/* Calls @visit for each watch, without a lock. */
void rl_thread_each(void (*visit)(struct rl_watch *w, void *arg), void *arg);

/*
 * The program uses @f: if it was opened before a fork(), this process takes over what it inherited.
 */
void rl_thread_revive(const struct rl_file *f);

#endif
