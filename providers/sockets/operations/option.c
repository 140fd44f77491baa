// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-socket.h's options of posted operations: what the program says is copied once, and judged.
 */
#include "ops.h"
#include "process/raw.h"
#include "sockets/stream/option.h"

static_assert(sizeof(struct weft_operation) == 40 && sizeof(struct weft_qevent) == 24 &&
	      sizeof(struct weft_memory) == 32, "programs have them");

/* ---- posting ---- */

static bool ops_option_is_known(const struct weft_operation *op)
{
	bool names_range = op->what == WEFT_POST_PUT || op->what == WEFT_POST_GET;

	if (op->size != sizeof(*op) || op->what > WEFT_POST_GET || op->flags & ~WEFT_POST_FENCE ||
	    op->reserved)
		return false;
	if (op->what == WEFT_POST_RECV && op->flags)
		return false;
	if (!names_range && (op->key || op->offset))
		return false;
	return op->niov <= (op->what == WEFT_POST_GET ? 1 : WEFT_POST_IOV);
}

/* No message is longer (verbs' limit, and DDP's length has 32 bits). */
static bool is_too_long(const struct iovec *iov, int n)
{
	u64 sum = 0;

	for (; n--; iov++) {
		if (iov->iov_len > 0x80000000u)
			return true;
		sum += iov->iov_len;
	}
	return sum > 0x80000000u;
}

static int set_operation(struct rl_stream *s, const void *value, socklen_t len)
{
	struct iovec iov[WEFT_POST_IOV];
	struct weft_operation op;

	if (len != sizeof(op))
		return -EINVAL;
	if (!rl_option_copy(&op, value, sizeof(op)))
		return -EFAULT;
	if (!ops_option_is_known(&op))
		return -EINVAL;
	if (!rl_option_copy(iov, (const void *)(uintptr_t)op.iov, op.niov * sizeof(*iov)))
		return -EFAULT;
	if (is_too_long(iov, op.niov))
		return -EMSGSIZE;
	return rl_ops_post(s, &op, iov);
}

static int set_deregistered(struct rl_stream *s, const void *value, socklen_t len)
{
	u32 key;

	if (len != sizeof(key))
		return -EINVAL;
	return rl_option_copy(&key, value, sizeof(key)) ? rl_ops_deregister(s, key) : -EFAULT;
}

int rl_ops_set(struct rl_stream *s, int option, const void *value, socklen_t len)
{
	if (option != WEFT_OPERATION && option != WEFT_MDEREGISTER)
		return -ENOPROTOOPT;
	if (!s->ops)
		return -EOPNOTSUPP;
	return option == WEFT_OPERATION ? set_operation(s, value, len) :
		set_deregistered(s, value, len);
}

/* ---- the rest ---- */

static int get_events(struct rl_stream *s, void *value, socklen_t *room)
{
	u32 max = *room / sizeof(struct weft_qevent);
	int rv = max ? rl_ops_take(s, value, max) : -EINVAL;

	if (rv < 0)
		return rv;
	*room = (socklen_t)rv * sizeof(struct weft_qevent);
	return 0;
}

static int get_descriptor(struct rl_stream *s, void *value, socklen_t *room)
{
	int fd;

	if (*room < sizeof(fd))
		return -EINVAL;
	*room = sizeof(fd);
	fd = rl_ops_open_eventfd(s);
	if (fd < 0)
		return fd;
	if (rl_option_copy(value, &fd, sizeof(fd)))
		return 0;
	rl_raw(SYS_close, fd);
	return -EFAULT;
}

static int get_registered(struct rl_stream *s, void *value, socklen_t *room)
{
	const u32 known = WEFT_MAY_PUT | WEFT_MAY_GET;
	struct weft_memory m;
	int rv;

	if (*room != sizeof(m))
		return -EINVAL;
	if (!rl_option_copy(&m, value, sizeof(m)))
		return -EFAULT;
	if (m.size != sizeof(m) || !m.access || m.access & ~known || m.reserved)
		return -EINVAL;
	rv = rl_ops_register(s, &m);
	if (rv || rl_option_copy(value, &m, sizeof(m)))
		return rv;
	rl_ops_deregister(s, m.key);
	return -EFAULT;
}

static int ops_option_get(struct rl_stream *s, int option, void *value, socklen_t *room)
{
	switch (option) {
	case WEFT_QEVENTS:
		return get_events(s, value, room);
	case WEFT_QFD:
		return get_descriptor(s, value, room);
	default:
		return get_registered(s, value, room);
	}
}

int rl_ops_get(struct rl_stream *s, int option, void *value, socklen_t *len)
{
	socklen_t room;
	int rv;

	if (option != WEFT_QEVENTS && option != WEFT_QFD && option != WEFT_MREGISTER)
		return -ENOPROTOOPT;
	if (!s->ops)
		return -EOPNOTSUPP;
	/*
	 * Events that are copied are gone: whether @len can be written to must be known before.
	 */
	if (!rl_option_copy(&room, len, sizeof(room)) || !rl_option_copy(len, &room, sizeof(room)))
		return -EFAULT;
	rv = ops_option_get(s, option, value, &room);
	return rv ?: rl_option_copy(len, &room, sizeof(room)) ? 0 : -EFAULT;
}
