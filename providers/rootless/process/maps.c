// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "maps.h"
#include "raw.h"

/* Linux 6.11: the mapping of an address, without the text. */
struct query {
	u64 size, flags, address;
	u64 start, end, vma_flags;
	u64 page_size, offset, inode;
	u32 major, minor;
	u32 name_size, build_id_size;
	u64 name, build_id;
};
#define QUERY	_IOWR('f', 17, struct query)
#define VMA_READABLE	1
#define VMA_WRITABLE	2

/* Lines read for one answer: a text of 100 000 mappings would take a fifth of a second. */
#define LINES_MAX	2000

/* A mapping, of those by ascending address. */
struct mapping {
	u64 from, to;
	bool readable, writable;
};

/* @m must cover *@from, which moves to its end. False: it does not, or lacks a right. */
static bool covers(const struct mapping *m, u64 *from, bool write)
{
	if (m->from > *from || !(write ? m->writable : m->readable))
		return false;
	*from = m->to;
	return true;
}

/* ---- by the query ---- */

enum answer { NO, YES, UNKNOWN };

static bool no_query;			/* atomic: this Linux has none */

static enum answer maps_ask(int fd, u64 from, u64 end, bool write)
{
	while (from < end && !READ_ONCE(no_query)) {
		struct query q = { .size = sizeof(q), .address = from };
		struct mapping m;

		switch (rl_raw(SYS_ioctl, fd, QUERY, &q)) {
		case 0:
			break;
		case -ENOENT:
			return NO;
		case -ENOTTY:
			WRITE_ONCE(no_query, true);
			return UNKNOWN;
		default:
			return UNKNOWN;
		}
		m = (struct mapping){
			q.start, q.end, q.vma_flags & VMA_READABLE, q.vma_flags & VMA_WRITABLE,
		};
		if (!covers(&m, &from, write))
			return NO;
	}
	return from < end ? UNKNOWN : YES;
}

/* ---- by the text: "from-to rwxp offset ...", a line a mapping ---- */

struct text {
	int fd;
	char buf[4096];
	u32 at, len;
};

/* -1: it has ended. */
static int next_char(struct text *t)
{
	long n;

	if (t->at == t->len) {
		n = rl_raw(SYS_read, t->fd, t->buf, sizeof(t->buf));
		if (n <= 0)
			return -1;
		t->at = 0;
		t->len = n;
	}
	return (u8)t->buf[t->at++];
}

/* Up to the first octet that is no digit, which is taken, too. */
static bool read_number(struct text *t, u64 *v)
{
	int c;

	for (*v = 0; (c = next_char(t)) >= 0;) {
		if (c >= '0' && c <= '9')
			*v = *v << 4 | (u64)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*v = *v << 4 | (u64)(c - 'a' + 10);
		else
			return true;
	}
	return false;
}

static bool read_mapping(struct text *t, struct mapping *m)
{
	int c;

	if (!read_number(t, &m->from) || !read_number(t, &m->to))
		return false;
	m->readable = next_char(t) == 'r';
	m->writable = next_char(t) == 'w';
	do
		c = next_char(t);
	while (c >= 0 && c != '\n');
	return true;
}

static enum answer maps_read_all(int fd, u64 from, u64 end, bool write)
{
	struct text t = { .fd = fd };
	struct mapping m;
	u32 lines;

	for (lines = 0; from < end; lines++) {
		if (lines == LINES_MAX || !read_mapping(&t, &m))
			return UNKNOWN;
		if (m.to > from && !covers(&m, &from, write))
			return NO;
	}
	return YES;
}

/* ---- whichever there is ---- */

static bool are_mapped(u64 start, u64 len)
{
	u64 in_page = start & (sysconf(_SC_PAGESIZE) - 1);

	return !rl_raw(SYS_msync, start - in_page, len + in_page, MS_ASYNC);
}

/* "self" is the first thread's, and empty once that has ended. */
static int open_maps(void)
{
	int fd = rl_raw(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : (int)rl_raw(SYS_openat, AT_FDCWD, "/proc/self/maps",
					  O_RDONLY | O_CLOEXEC);
}

bool rl_maps_allow(u64 start, u64 len, bool write)
{
	enum answer a;
	int fd;

	if (!len)
		return true;
	if (!are_mapped(start, len))
		return false;
	fd = open_maps();
	if (fd < 0)
		return true;
	a = maps_ask(fd, start, start + len, write);
	if (a == UNKNOWN)
		a = maps_read_all(fd, start, start + len, write);
	rl_raw(SYS_close, fd);
	return a != NO;
}
