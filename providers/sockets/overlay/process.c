// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The library's beginning and end in a process, and in the child of fork(). */
#include <stdlib.h>

#include "claims.h"
#include "connect.h"
#include "epoll.h"
#include "flags.h"
#include "process/api.h"
#include "signals.h"
#include "sock.h"
#include "waiter.h"

/* Descriptors that a program may get over an exec are among the first. */
#define FOUND_MAX	256

bool rl_sockets_on;
struct rl_rules rl_sock_rules;

static void before_fork(void)
{
	rl_epoll_before_fork();
	rl_claims_before_fork();
}

/* The parent goes on with the words that are free. */
static void after_fork(void)
{
	rl_claims_in_child();
	rl_waiters_in_child();
}

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("WEFT_SOCKETS"), *why;
	unsigned int line;
	int fd;

	if (!name || !*name)
		return;
	why = rl_rules_load(name, &rl_sock_rules, &line);
	if (why) {
		rl_complain("WEFT_SOCKETS=%s is ignored: line %u: %s", name, line, why);
		return;
	}
	/* Of the environment, which some programs empty. */
	rl_options();
	rl_guard_add_text(before_fork);
	rl_sock_flags_begin();
	pthread_atfork(before_fork, NULL, after_fork);
	rl_sockets_on = true;
	rl_handlers_deferred();
	rl_signals_begin();
	for (fd = 0; fd < FOUND_MAX; fd++)
		rl_sock_found(fd);
}

__attribute__((destructor)) static void unload(void)
{
	if (rl_sockets_on)
		rl_stream_exit();
}
