/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How sockets get into the table. Outside the gate. */
#ifndef RL_CONNECT_H
#define RL_CONNECT_H

#include <sys/socket.h>

#include "sockets/rules.h"
#include "sockets/stream/stream.h"

struct rl_sock;

/* Constant once the library is loaded. */
extern struct rl_rules rl_sock_rules;

/* socket() has returned @fd. */
void rl_sock_made(int fd, int domain, int type, int protocol);
/* The rule for connect() to @a; NULL: it is TCP's. */
const struct rl_rule *rl_sock_rule_to(int fd, const struct sockaddr *a, socklen_t len);
/* connect() to no address, which the kernel does by @call. */
int rl_sock_connect_to_none(int fd, const struct sockaddr *a, socklen_t len,
			    int (*call)(int fd, const struct sockaddr *a, socklen_t len));
bool rl_sock_is_none(const struct sockaddr *a, socklen_t len);
/* connect() has returned @rv, with errno: returns what the program gets. */
int rl_sock_connected(int fd, const struct rl_rule *rule, int rv);
void rl_sock_accepted(int fd, const struct sockaddr_storage *peer);
/* It has come from another process, or from before an exec. */
void rl_sock_found(int fd);
/* Another process is to get it: false: it may not. */
bool rl_sock_goes_out(int fd);
void rl_sock_listens(int fd);

/* The program wants the stream @s on @fd. @sk: its socket of the table, with sk->lock. */
int rl_sock_take(struct rl_sock *sk, int fd, struct rl_stream *s);
/* The same of a socket that is not in the table. */
int rl_sock_adopt(int fd, struct rl_stream *s);

#endif
