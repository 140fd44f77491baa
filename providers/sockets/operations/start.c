// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Both ends may wait at a descriptor of events and make no call: the progress thread goes on with
 * MPA's exchange in their place. It waits at a copy of the socket's descriptor, for the connection
 * has the other.
 */
#include <stdlib.h>

#include "ops.h"
#include "process/thread.h"

struct rl_ops_starter {
	struct rl_watch watch;		/* first: the references */
	struct rl_stream *s;		/* referenced */
	int fd;				/* hidden; the stream's lock */
};

static struct rl_ops_starter *starter_of(struct rl_watch *w)
{
	return container_of(w, struct rl_ops_starter, watch);
}

/* A child of fork() says -EIO: it is its parent's to start. */
static void starter_ready(struct rl_watch *w, u32 events)
{
	struct rl_stream *s = starter_of(w)->s;

	if (rl_stream_begin(s))
		return;
	if (s->phase != RL_STREAM_STARTING || s->over)
		rl_ops_stop(s);
	rl_stream_end(s);
}

static void nothing(struct rl_watch *w)
{
}

/* Any thread that holds a lock of the stream has a reference, too. */
static void starter_release(struct rl_watch *w)
{
	struct rl_ops_starter *z = starter_of(w);

	rl_stream_put(z->s);
	free(z);
}

static const struct rl_watch_ops starter_ops = {
	.ready = starter_ready,
	.timeout = nothing,
	.revive = nothing,
	.release = starter_release,
};

/* Its first event says what is in TCP already. */
static bool starter_begin(struct rl_ops_starter *z, int fd)
{
	z->fd = rl_fd_copy_hidden(fd);
	if (z->fd < 0)
		return false;
	if (!rl_thread_watch(&z->watch, z->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
		return true;
	rl_fd_close_hidden(z->fd);
	return false;
}

void rl_ops_start(struct rl_stream *s)
{
	struct rl_ops_starter *z = s->ops->starter ? NULL : calloc(1, sizeof(*z));

	if (!z)
		return;
	rl_watch_init(&z->watch, &starter_ops);
	z->s = s;
	rl_stream_get(s);
	if (starter_begin(z, s->conn ? s->conn->fd : s->fd))
		s->ops->starter = z;
	else
		rl_watch_put(&z->watch);
}

void rl_ops_stop(struct rl_stream *s)
{
	struct rl_ops_starter *z = s->ops->starter;

	if (!z)
		return;
	s->ops->starter = NULL;
	rl_thread_end_watch(&z->watch, z->fd);
	rl_fd_close_hidden(z->fd);
	rl_watch_put(&z->watch);
}
