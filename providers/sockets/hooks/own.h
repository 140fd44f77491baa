/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls on a descriptor that are for the connection's own socket, where a stream has one. */
#ifndef RL_HOOKS_OWN_H
#define RL_HOOKS_OWN_H

#include "process/hook.h"
#include "process/raw.h"
#include "sockets/overlay/sock.h"

#define RL_OWN(rv, call, fd, b, c, d, e, f, ...)						\
	(unlikely(rl_sock_is_candidate(fd)) &&						\
	 rl_sock_call(fd, rv, SYS_##call, (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

/* RL_CALL() of @f, which must not block and whose first argument is @fd. */
#define RL_CALL_OWN(f, fd, ...) ({							\
	long rv_;									\
	RL_OWN(&rv_, f, fd, ##__VA_ARGS__, 0, 0, 0, 0, 0) ?				\
		(__typeof__(f(fd, ##__VA_ARGS__)))rl_hook_result(rv_) :			\
		RL_CALL(f, fd, ##__VA_ARGS__); })

#endif
