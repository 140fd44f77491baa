// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "channel.h"
#include "process/raw.h"
#include "process/thread.h"

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

int rl_chan_open(struct rl_chan *c, int fd)
{
	struct chan_file *f = calloc(1, sizeof(*f));

	if (!f) {
		rl_raw(SYS_close, fd);
		return -ENOMEM;
	}
	rl_file_init(&f->file, &chan_ops, 0);
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
	if (f->ops == &chan_ops) {
		c = chan_file_of(f)->chan;
		rl_chan_get(c);
	}
	rl_file_put(f);
	return c;
}
