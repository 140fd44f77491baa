// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <sys/socket.h>

#include "early.h"
#include "process/raw.h"

/* The first piece of memory. */
#define EARLY_FIRST	1024

static u32 early_limit(int fd)
{
	int size = 0;
	socklen_t len = sizeof(size);

	rl_raw(SYS_getsockopt, fd, SOL_SOCKET, SO_SNDBUF, &size, &len);
	return max_t(int, RL_EARLY_MIN, min_t(int, size, RL_EARLY_MAX));
}

u32 rl_early_room(struct rl_early *y, int fd, size_t max)
{
	u32 used = y->from + y->len;

	if (!y->limit && used + max > RL_EARLY_MIN)
		y->limit = early_limit(fd);
	return min_t(size_t, max, (y->limit ? y->limit : RL_EARLY_MIN) - used);
}

u8 *rl_early_place(struct rl_early *y, u32 n)
{
	u32 used = y->from + y->len, size = y->size ? y->size : EARLY_FIRST;
	u8 *mem;

	while (size < used + n)
		size *= 2;
	if (size > y->size) {
		mem = realloc(y->mem, size);
		if (!mem)
			return NULL;
		y->mem = mem;
		y->size = size;
	}
	return y->mem + used;
}

void rl_early_free(struct rl_early *y)
{
	free(y->mem);
	y->mem = NULL;
	y->size = y->from = y->len = 0;
}
