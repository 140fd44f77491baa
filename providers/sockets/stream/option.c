// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "kernel/core/shape.h"
#include "process/gate.h"
#include "process/guard.h"
#include "option.h"

static_assert(sizeof(struct weft_iwarp_mode) == 16, "programs have it");

static const enum rl_stream_role roles[] = {
	[WEFT_IWARP_INITIATOR]	= RL_STREAM_INITIATOR,
	[WEFT_IWARP_RESPONDER]	= RL_STREAM_RESPONDER,
	[WEFT_IWARP_SYMMETRIC]	= RL_STREAM_SYMMETRIC,
};

/* What it asks for is known, all of it. */
static bool stream_option_is_known(const struct weft_iwarp_mode *m, socklen_t len)
{
	bool operations = m->flags & WEFT_IWARP_OPERATIONS;

	return m->size == sizeof(*m) && len == sizeof(*m) && m->role < ARRAY_SIZE(roles) &&
	       !(m->flags & ~(WEFT_IWARP_OR_PLAIN | WEFT_IWARP_OPERATIONS)) && !m->reserved &&
	       (m->role == WEFT_IWARP_RESPONDER || !(m->flags & WEFT_IWARP_OR_PLAIN)) &&
	       !(operations ? m->window : m->depth) && m->depth <= WEFT_MAX_QP_WR;
}

bool rl_option_copy(void *to, const void *from, size_t n)
{
	bool ok;

	rl_gate_enter();
	rl_guard_begin();
	ok = rl_guard_copy(to, from, n);
	rl_gate_leave();
	return ok;
}

int rl_stream_setsockopt(int fd, int option, const void *value, socklen_t len,
			 const struct rl_stream_operations *operations, struct rl_stream **out)
{
	struct weft_iwarp_mode m = {};
	struct rl_stream_options o = {};

	if (option != WEFT_IWARP_MODE)
		return -ENOPROTOOPT;
	if (len != sizeof(m))
		return -EINVAL;
	if (!rl_option_copy(&m, value, sizeof(m)))
		return -EFAULT;
	if (!stream_option_is_known(&m, len))
		return -EINVAL;
	o.plain_allowed = m.flags & WEFT_IWARP_OR_PLAIN;
	o.window = m.window;
	o.operations = m.flags & WEFT_IWARP_OPERATIONS ? operations : NULL;
	o.depth = m.depth;
	return rl_stream_start(fd, roles[m.role], &o, out);
}

static int state_of(struct rl_stream *s)
{
	static const int states[] = {
		[RL_STREAM_STARTING]	= WEFT_IWARP_STARTING,
		[RL_STREAM_OPEN]	= WEFT_IWARP_OPEN,
		[RL_STREAM_PLAIN]	= WEFT_IWARP_PLAIN,
		[RL_STREAM_FAILED]	= WEFT_IWARP_FAILED,
	};

	return s ? states[rl_stream_phase(s)] : WEFT_IWARP_NEVER;
}

int rl_stream_getsockopt(struct rl_stream *s, int option, void *value, socklen_t *len)
{
	int state = state_of(s);
	socklen_t room;

	if (option != WEFT_IWARP_MODE)
		return -ENOPROTOOPT;
	if (!rl_option_copy(&room, len, sizeof(room)))
		return -EFAULT;
	if (room < sizeof(state))
		return -EINVAL;
	room = sizeof(state);
	return rl_option_copy(value, &state, sizeof(state)) &&
		rl_option_copy(len, &room, sizeof(room)) ? 0 : -EFAULT;
}
