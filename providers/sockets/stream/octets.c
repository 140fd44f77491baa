// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <sys/mman.h>

#include "process/guard.h"
#include "octets.h"

bool rl_octets_init(struct rl_octets *o, u32 size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*o = (struct rl_octets){ .size = size };
	if (mem == MAP_FAILED)
		return false;
	o->mem = mem;
	return true;
}

void rl_octets_fini(struct rl_octets *o)
{
	if (o->mem)
		munmap(o->mem, o->size);
	o->mem = NULL;
}

/* The @len octets from the @at-th place behind from on. */
static int places(const struct rl_octets *o, u32 at, u32 len, struct iovec iov[2])
{
	u32 pos = o->from + at, first;

	if (pos >= o->size)
		pos -= o->size;
	first = min_t(u32, len, o->size - pos);
	iov[0] = (struct iovec){ .iov_base = o->mem + pos, .iov_len = first };
	iov[1] = (struct iovec){ .iov_base = o->mem, .iov_len = len - first };
	return !!len + (len > first);
}

int rl_octets_places(const struct rl_octets *o, u32 len, struct iovec iov[2])
{
	return places(o, o->len, len, iov);
}

void rl_octets_add(struct rl_octets *o, u32 len)
{
	o->len += len;
	o->added += len;
}

/* Copies @len octets of the queue, from its octet @at on, to one place. */
static bool copy_run(const struct rl_octets *o, u32 at, u8 *to, u32 len)
{
	struct iovec iov[2];

	places(o, at, len, iov);
	return rl_guard_copy(to, iov[0].iov_base, iov[0].iov_len) &&
	       rl_guard_copy(to + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
}

ssize_t rl_octets_copy(const struct rl_octets *o, const struct iovec *to, int n, size_t max)
{
	u32 all = min_t(size_t, max, o->len), done = 0, run;
	int i;

	for (i = 0; i < n && done < all; i++, done += run) {
		run = min_t(size_t, to[i].iov_len, all - done);
		if (!copy_run(o, done, to[i].iov_base, run))
			return done ? (ssize_t)done : -EFAULT;
	}
	return done;
}

void rl_octets_drop(struct rl_octets *o, u32 len)
{
	o->from += len;
	if (o->from >= o->size)
		o->from -= o->size;
	o->len -= len;
	/* An empty queue begins where its pages are. */
	if (!o->len)
		o->from = 0;
}

/* Whole pages of [@at, @end). */
static void trim_pages(const struct rl_octets *o, u32 at, u32 end)
{
	const u32 page = 4096;

	at = (at + page - 1) & ~(page - 1);
	end &= ~(page - 1);
	if (at < end)
		madvise(o->mem + at, end - at, MADV_DONTNEED);
}

void rl_octets_trim(struct rl_octets *o)
{
	u32 end = o->from + o->len;

	if (end > o->size) {
		trim_pages(o, end - o->size, o->from);
		return;
	}
	trim_pages(o, 0, o->from);
	trim_pages(o, end, o->size);
}
