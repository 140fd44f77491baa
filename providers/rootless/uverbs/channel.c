// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>

#include "channel.h"
#include "process/guard.h"
#include "process/raw.h"
#include "process/thread.h"
#include "record/deeds.h"
#include "record/log.h"

struct chan_file {
	struct rl_file file;
	struct rl_chan *chan;
};

static struct chan_file *chan_file_of(struct rl_file *f)
{
	return container_of(f, struct chan_file, file);
}

static ssize_t chan_read(struct rl_file *f, int fd, void *buf, size_t len)
{
	rl_thread_revive(f);
	return rl_chan_read(chan_file_of(f)->chan, buf, len);
}

static void chan_release(struct rl_file *f)
{
	rl_chan_put(chan_file_of(f)->chan);
	free(chan_file_of(f));
}

static const struct rl_file_ops chan_ops = {
	.read = chan_read,
	.release = chan_release,
};

/* ---- with a record ---- */

/* An event of a completion channel, or of a context. */
static void record_taken(const void *buf, ssize_t n, u64 ticks)
{
	struct ib_uverbs_async_event_desc async;
	struct ib_uverbs_comp_event_desc comp;

	if (n == sizeof(comp) && rl_guard_copy(&comp, buf, sizeof(comp)))
		rl_record_event(WEFT_RECORD_COMP, 0, comp.cq_handle, 0, true, ticks);
	else if (n == sizeof(async) && rl_guard_copy(&async, buf, sizeof(async)))
		rl_record_event(WEFT_RECORD_ASYNC, async.event_type, async.element, 0, true, ticks);
}

static ssize_t recorded_chan_read(struct rl_file *f, int fd, void *buf, size_t len)
{
	u64 now = rl_ticks();
	ssize_t n = chan_read(f, fd, buf, len);

	record_taken(buf, n, now);
	return n;
}

static const struct rl_file_ops recorded_chan_ops = {
	.read = recorded_chan_read,
	.release = chan_release,
};

int rl_chan_open(struct rl_chan *c, int fd)
{
	struct chan_file *f = calloc(1, sizeof(*f));

	if (!f) {
		rl_raw(SYS_close, fd);
		return -ENOMEM;
	}
	rl_file_init(&f->file, rl_record_is_on() ? &recorded_chan_ops : &chan_ops, 0);
	rl_chan_get(c);
	f->chan = c;
	return rl_fd_install(fd, &f->file);
}

struct rl_chan *rl_chan_of_fd(int fd)
{
	struct rl_file *f = rl_fd_get(fd);
	struct rl_chan *c = NULL;

	if (!f)
		return NULL;
	if (f->ops == &chan_ops || f->ops == &recorded_chan_ops) {
		c = chan_file_of(f)->chan;
		rl_chan_get(c);
	}
	rl_file_put(f);
	return c;
}
