/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * weft-socket.h's options of a socket. The caller has the table of descriptors. Calls as in
 * stream.h.
 */
#ifndef RL_STREAM_OPTION_H
#define RL_STREAM_OPTION_H

#include <sys/socket.h>

#include "stream.h"
#include "sockets/weft-socket.h"

/* Copies between the program's memory, which may not be there (false), and ours: once. */
bool rl_option_copy(void *to, const void *from, size_t n);

/*
 * setsockopt(@fd, SOL_WEFT, @option, @value, @len) of a descriptor that is no stream's: 0, and the
 * stream in *@out, which carries @operations if the program asks for them; or -ENOPROTOOPT,
 * -EINVAL, -EFAULT, or what rl_stream_start() returns: the descriptor stays what it is. Of a
 * stream's, it is -EALREADY, which the caller knows.
 */
int rl_stream_setsockopt(int fd, int option, const void *value, socklen_t len,
			 const struct rl_stream_operations *operations, struct rl_stream **out);

/* getsockopt() of that level. @s: the descriptor's stream; NULL: it has none. 0 or -errno. */
int rl_stream_getsockopt(struct rl_stream *s, int option, void *value, socklen_t *len);

#endif
