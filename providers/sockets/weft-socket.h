/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For programs: one socket of theirs goes over iWARP from now on, under `weft-run --sockets`.
 * Elsewhere setsockopt() of this level is ENOPROTOOPT, and the socket stays what it is.
 *
 *	struct weft_iwarp_mode m = { .size = sizeof(m), .role = WEFT_IWARP_INITIATOR };
 *
 *	if (setsockopt(fd, SOL_WEFT, WEFT_IWARP_MODE, &m, sizeof(m)))
 *		...
 *
 * The socket is a connected TCP socket. The ends agree as they go on to use theirs; until then
 * send() and recv() say EAGAIN, or wait if the socket blocks. What TCP has brought before is
 * received first.
 *
 * With WEFT_IWARP_OPERATIONS, which both ends ask for, the socket carries no octets but operations:
 * the functions below. The man page has all of it.
 */
#ifndef WEFT_SOCKET_H
#define WEFT_SOCKET_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

/* A level of setsockopt() and getsockopt(). "weft" */
#define SOL_WEFT		0x77656674

/* Options. Set: struct weft_iwarp_mode. Get: an int, from WEFT_IWARP_NEVER on. */
#define WEFT_IWARP_MODE		1
/* Those of the functions below. */
#define WEFT_OPERATION		2	/* set: struct weft_operation */
#define WEFT_QEVENTS		3	/* get: struct weft_qevent, as many as there is room for */
#define WEFT_QFD		4	/* get: an int */
#define WEFT_MREGISTER		5	/* get, and filled in before: struct weft_memory */
#define WEFT_MDEREGISTER	6	/* set: a uint32_t, the key */

/* struct weft_iwarp_mode.role */
enum {
	WEFT_IWARP_INITIATOR	= 0,	/* sends MPA's Request; the peer is the responder */
	WEFT_IWARP_RESPONDER	= 1,
	/* Both ends say this, at any time. Not through NAT. */
	WEFT_IWARP_SYMMETRIC	= 2,
};

/* struct weft_iwarp_mode.flags */
enum {
	/*
	 * Responder: if the peer begins with anything else the socket is plain, and nothing was
	 * read. Without this flag such octets were sent before the switch, and iWARP is awaited
	 * after them.
	 */
	WEFT_IWARP_OR_PLAIN	= 1,
	/* Posted operations in place of a stream of octets. Either end, and then both. */
	WEFT_IWARP_OPERATIONS	= 2,
};

struct weft_iwarp_mode {
	uint32_t size;			/* of this struct */
	uint8_t role;			/* WEFT_IWARP_INITIATOR, ... */
	uint8_t flags;			/* WEFT_IWARP_OR_PLAIN, WEFT_IWARP_OPERATIONS */
	uint16_t reserved;		/* 0 */
	uint32_t window;		/* octets that the peer may have on their way; 0: 1 MiB */
	/*
	 * WEFT_IWARP_OPERATIONS: how many receives, and how many others, may be posted before their
	 * events are dequeued: 16384 at most; 0: 128.
	 */
	uint32_t depth;
};

/* What getsockopt() says. */
enum {
	WEFT_IWARP_NEVER	= 0,	/* an ordinary socket */
	WEFT_IWARP_PLAIN	= 1,	/* the peer began with something else: an ordinary socket */
	WEFT_IWARP_STARTING	= 2,
	WEFT_IWARP_OPEN		= 3,	/* or over */
	WEFT_IWARP_FAILED	= 4,	/* send() and recv() say why, once */
};

/* ---- operations ---- */

/* struct weft_operation.what, struct weft_qevent.what */
enum {
	WEFT_POST_SEND		= 0,
	WEFT_POST_RECV		= 1,
	WEFT_POST_PUT		= 2,
	WEFT_POST_GET		= 3,
};

/* struct weft_operation.flags */
enum {
	WEFT_POST_FENCE		= 1,	/* after all earlier gets are complete; not for a receive */
};

/* Places that a send, receive or put is gathered from, or scattered to, at most; a get has one. */
#define WEFT_POST_IOV		16

struct weft_operation {
	uint32_t size;			/* of this struct */
	uint8_t what;			/* WEFT_POST_SEND, ... */
	uint8_t flags;			/* WEFT_POST_FENCE */
	uint16_t niov;
	uint64_t iov;			/* struct iovec *: read now, its memory until the event */
	uint64_t ahandle;		/* of the event */
	uint64_t offset;		/* put, get: in the peer's range; else 0 */
	uint32_t key;			/* put, get: which that is; else 0 */
	uint32_t reserved;		/* 0 */
};

struct weft_qevent {
	uint64_t ahandle;
	uint32_t length;		/* octets that were moved */
	int32_t error;			/* 0, or an errno: the connection is over */
	uint8_t what;
	uint8_t reserved[7];
};

/* struct weft_memory.access: what the peer may do */
enum {
	WEFT_MAY_PUT		= 1,
	WEFT_MAY_GET		= 2,
};

struct weft_memory {
	uint32_t size;			/* of this struct */
	uint32_t access;
	uint64_t addr, length;
	uint32_t key;			/* filled in */
	uint32_t reserved;		/* 0 */
};

/*
 * The peer of @fd may put to, or get from, @length octets at @addr, which it knows by *@key, from 0
 * on.
 */
static inline int weft_mregister(int fd, void *addr, size_t length, int access, uint32_t *key)
{
	struct weft_memory m = { .size = sizeof(m), .access = (uint32_t)access,
				.addr = (uintptr_t)addr,
				 .length = length, .key = 0, .reserved = 0 };
	socklen_t len = sizeof(m);

	if (getsockopt(fd, SOL_WEFT, WEFT_MREGISTER, &m, &len))
		return -1;
	*key = m.key;
	return 0;
}

/* From its return on the peer may not, and the memory is the program's alone. */
static inline int weft_mderegister(int fd, uint32_t key)
{
	return setsockopt(fd, SOL_WEFT, WEFT_MDEREGISTER, &key, sizeof(key));
}

/* 0, and there will be an event; or -1, and nothing was posted: EAGAIN if the queue is full. */
static inline int weft_post(int fd, int what, const struct iovec *iov, int n, uint32_t key,
			    uint64_t offset,
			    int flags, uint64_t ahandle)
{
	struct weft_operation op = { .size = sizeof(op), .what = (uint8_t)what,
				    .flags = (uint8_t)flags,
				     .niov = (uint16_t)n, .iov = (uintptr_t)iov, .ahandle = ahandle,
				     .offset = offset, .key = key, .reserved = 0 };

	if (n < 0 || n > WEFT_POST_IOV || flags & ~0xff || what & ~0xff) {
		errno = EINVAL;
		return -1;
	}
	return setsockopt(fd, SOL_WEFT, WEFT_OPERATION, &op, sizeof(op));
}

static inline int weft_sendv(int fd, const struct iovec *iov, int n, int flags, uint64_t ahandle)
{
	return weft_post(fd, WEFT_POST_SEND, iov, n, 0, 0, flags, ahandle);
}

static inline int weft_recvv(int fd, const struct iovec *iov, int n, int flags, uint64_t ahandle)
{
	return weft_post(fd, WEFT_POST_RECV, iov, n, 0, 0, flags, ahandle);
}

static inline int weft_putv(int fd, const struct iovec *iov, int n, uint32_t key, uint64_t offset,
			    int flags,
			    uint64_t ahandle)
{
	return weft_post(fd, WEFT_POST_PUT, iov, n, key, offset, flags, ahandle);
}

static inline int weft_send(int fd, const void *buf, size_t length, int flags, uint64_t ahandle)
{
	struct iovec v = { (void *)(uintptr_t)buf, length };

	return weft_sendv(fd, &v, 1, flags, ahandle);
}

static inline int weft_recv(int fd, void *buf, size_t length, int flags, uint64_t ahandle)
{
	struct iovec v = { buf, length };

	return weft_recvv(fd, &v, 1, flags, ahandle);
}

static inline int weft_put(int fd, const void *buf, size_t length, uint32_t key, uint64_t offset,
			   int flags,
			   uint64_t ahandle)
{
	struct iovec v = { (void *)(uintptr_t)buf, length };

	return weft_putv(fd, &v, 1, key, offset, flags, ahandle);
}

static inline int weft_get(int fd, void *buf, size_t length, uint32_t key, uint64_t offset,
			   int flags,
			   uint64_t ahandle)
{
	struct iovec v = { buf, length };

	return weft_post(fd, WEFT_POST_GET, &v, length ? 1 : 0, key, offset, flags, ahandle);
}

/* Readable while there is an event. The caller closes it. */
static inline int weft_qfd(int fd)
{
	socklen_t len = sizeof(int);
	int q;

	return getsockopt(fd, SOL_WEFT, WEFT_QFD, &q, &len) ? -1 : q;
}

static inline int weft_qnow(int fd, struct weft_qevent *ev, int n)
{
	socklen_t len = (socklen_t)n * (socklen_t)sizeof(*ev);

	if (n <= 0) {
		errno = EINVAL;
		return -1;
	}
	return getsockopt(fd, SOL_WEFT, WEFT_QEVENTS, ev, &len) ? -1 : (int)(len / sizeof(*ev));
}

/* Strict ISO C has no clock. */
#ifdef CLOCK_MONOTONIC
/*
 * Up to @n events, the oldest first: how many; 0: none within @timeout ms (-1: for ever); or -1:
 * there will be none any more, and errno says why the connection ended; or EINTR; or EBUSY: what
 * the peer said before iWARP is to be received first.
 */
static inline int weft_qdequeue(int fd, struct weft_qevent *ev, int n, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN, .revents = 0 };
	struct timespec now, end = { 0, 0 };
	int got;

	if (timeout > 0)
		clock_gettime(CLOCK_MONOTONIC, &end);
	for (;;) {
		int left = timeout;

		got = weft_qnow(fd, ev, n);
		if (got >= 0 || errno != EAGAIN)
			return got;
		if (timeout > 0) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			left -= (int)((now.tv_sec - end.tv_sec) * 1000 +
				      (now.tv_nsec - end.tv_nsec) / 1000000);
		}
		if (!timeout || (timeout > 0 && left <= 0))
			return 0;
		if (poll(&p, 1, left) < 0)
			return -1;
	}
}
#endif

#endif
