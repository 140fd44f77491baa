// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "command.h"
#include "control.h"
#include "process/clock.h"
#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/thread.h"

/* Requests that are served in a row; the others wait for the next turn. */
#define TURN 16
/* The end of a process waits so long for an answer. */
#define ANSWER_MS 1000

struct control {
	struct rl_watch watch;		/* first: the references */
	int fd;				/* hidden */
	u32 forks;			/* rl_fd_forks() at the beginning */
};

static struct {
	pthread_mutex_t lock;
	struct control *now;		/* this process's, or inherited; NULL: none */
	bool serves;			/* atomic: a request is not answered yet */
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct control *control_server_of(struct rl_watch *w)
{
	return container_of(w, struct control, watch);
}

/* ---- the socket ---- */

static int bind_socket(int fd)
{
	struct sockaddr_un name;
	int len = rl_control_name(&name, (s32)rl_raw(SYS_getpid), true), one = 1;
	long rv;

	if (len < 0)
		return len;
	rv = rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one));
	if (rv)
		return (int)rv;
	/* This process had the name before an exec, or a dead one of the same number. */
	rl_raw(SYS_unlinkat, AT_FDCWD, name.sun_path, 0);
	return (int)rl_raw(SYS_bind, fd, &name, len);
}

static int open_socket(void)
{
	int fd = (int)rl_raw(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rv;

	if (fd < 0)
		return fd;
	rv = bind_socket(fd);
	if (!rv)
		return rl_fd_hide(fd);
	rl_raw(SYS_close, fd);
	return rv;
}

/* ---- requests ---- */

/* The kernel names the sender. Root may be any user, and may read our memory anyway. */
static bool is_of_this_user(const struct msghdr *m)
{
	const struct cmsghdr *h = CMSG_FIRSTHDR(m);
	struct ucred who;

	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_CREDENTIALS ||
	    h->cmsg_len != CMSG_LEN(sizeof(who)))
		return false;
	memcpy(&who, CMSG_DATA(h), sizeof(who));
	return who.uid == (u32)rl_raw(SYS_geteuid);
}

/* False: there is none. A reply that its client has no room for is lost. */
static bool serve_one(struct control *c)
{
	/* The progress thread's alone. */
	static char text[RL_CONTROL_REQUEST + 1], reply[RL_CONTROL_REPLY];
	/* No room for descriptors: the kernel installs none. */
	char about[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) };
	struct sockaddr_un from;
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = about, .msg_controllen = sizeof(about),
	};
	long n = rl_raw(SYS_recvmsg, c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t len;

	if (n < 0)
		return false;
	if (!is_of_this_user(&m) || !m.msg_namelen)
		return true;
	__atomic_store_n(&server.serves, true, __ATOMIC_SEQ_CST);
	len = rl_control_run(text, (size_t)n, reply);
	rl_raw(SYS_sendto, c->fd, reply, len, MSG_DONTWAIT | MSG_NOSIGNAL, &from, m.msg_namelen);
	__atomic_store_n(&server.serves, false, __ATOMIC_SEQ_CST);
	return true;
}

/* ---- the watch ---- */

static void control_ready(struct rl_watch *w, u32 events)
{
	u32 i;

	for (i = 0; i < TURN && serve_one(control_server_of(w)); i++)
		;
}

static void control_timeout(struct rl_watch *w)
{
}

/* In a child: a socket of its own, for the parent reads from the other. */
static void control_revive(struct rl_watch *w)
{
	struct control *c = control_server_of(w);
	int old = c->fd;

	c->fd = open_socket();
	rl_fd_close_inherited(old);
	c->forks = rl_fd_forks();
	if (c->fd >= 0)
		rl_thread_add(w, c->fd, EPOLLIN);
}

static void control_release(struct rl_watch *w)
{
	struct control *c = control_server_of(w);

	if (c->fd >= 0)
		rl_fd_close_hidden(c->fd);
	free(c);
}

static const struct rl_watch_ops control_ops = {
	.ready = control_ready,
	.timeout = control_timeout,
	.revive = control_revive,
	.release = control_release,
};

static struct control *control_new(void)
{
	struct control *c = calloc(1, sizeof(*c));
	int rv;

	if (!c)
		return NULL;
	rl_watch_init(&c->watch, &control_ops);
	c->forks = rl_fd_forks();
	c->fd = open_socket();
	rv = c->fd < 0 ? c->fd : rl_thread_watch(&c->watch, c->fd, EPOLLIN);
	if (!rv)
		return c;
	rl_complain("--control: no socket: error %d", -rv);
	rl_watch_put(&c->watch);
	return NULL;
}

/* A program may end of what a request does to it, before that is answered. */
__attribute__((destructor)) static void finish_request_before_exit(void)
{
	const struct timespec soon = { .tv_nsec = 1000000 };
	u64 until = rl_now_ms() + ANSWER_MS;

	while (__atomic_load_n(&server.serves, __ATOMIC_SEQ_CST) && !rl_thread_is_this() &&
	       rl_now_ms() < until)
		rl_raw(SYS_ppoll, NULL, 0, &soon, NULL, 0);
}

/* This process's epoll does not have an inherited socket, and its number may be another's. */
static void end_inherited(struct control *c)
{
	rl_watch_end(&c->watch);
	rl_fd_close_inherited(c->fd);
	c->fd = -1;
	rl_watch_put(&c->watch);
}

void rl_control_begin(void)
{
	struct control *old = NULL;

	if (!rl_options()->control)
		return;
	pthread_mutex_lock(&server.lock);
	if (server.now && server.now->forks != rl_fd_forks()) {
		old = server.now;
		server.now = NULL;
	}
	if (!server.now)
		server.now = control_new();
	pthread_mutex_unlock(&server.lock);
	if (old)
		end_inherited(old);
}
