// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: which of TCP's calls block, if any holder of the socket may change O_NONBLOCK; TAP.
 * PORT turns N: N round trips of short messages on each of two connections, whose system calls the
 * caller counts: the client has both in one thread, like pgbench, and each has a server process,
 * like PostgreSQL's. Each process prints how many calls it made.
 * PORT sleeping-turns N: the same, and the client blocks in recv().
 * It knows nothing of iWARP: all cases pass over TCP.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "socket-cases.h"

#define CLIENTS	2
#define MESSAGE	4

static const char *self;

/* Calls of turns. */
static long asked;
#define ASK(call) (asked++, (call))

static void tell_asked(void)
{
	printf("asked %ld\n", asked);
	fflush(stdout);
}

/* ---- the waiting thread ---- */

static bool finds_nothing(int fd)
{
	char c;

	errno = 0;
	return ASK(recv(fd, &c, 1, 0)) == -1 && errno == EAGAIN;
}

struct peer {
	pid_t pid;
	int orders, fd;			/* a pipe to it; this end of the connection */
};

/* The other end, a process of its own: it sends on command. */
static bool repeat(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1)
		NEED(send(to, &c, 1, MSG_NOSIGNAL) == 1);
	return true;
}

static bool begin_peer(struct peer *p)
{
	int orders[2];
	char c;

	NEED(!pipe(orders));
	fflush(stdout);
	p->pid = fork();
	if (!p->pid) {
		close(orders[1]);
		_exit(!repeat(orders[0], dial()));
	}
	close(orders[0]);
	p->orders = orders[1];
	p->fd = accept(listener, NULL, NULL);
	NEED(write(p->orders, "x", 1) == 1 && recv(p->fd, &c, 1, 0) == 1);
	return true;
}

static bool end_peer(struct peer *p)
{
	int status;

	close(p->orders);
	NEED(waitpid(p->pid, &status, 0) == p->pid && !status);
	return !close(p->fd);
}

static void *receive_one(void *fd)
{
	char c = 0;

	return recv((int)(intptr_t)fd, &c, 1, 0) == 1 && c == 'w' ? fd : NULL;
}

/* A call that waits is in the kernel when the octet comes, or the octet is there before: only EAGAIN is wrong. */
static bool waits(struct peer *p)
{
	pthread_t t;
	void *got;

	NEED(!pthread_create(&t, NULL, receive_one, (void *)(intptr_t)p->fd));
	usleep(20000);
	NEED(write(p->orders, "w", 1) == 1 && !pthread_join(t, &got));
	return got;
}

/* ---- ways to set O_NONBLOCK ---- */

static bool set_by_fcntl(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return !fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

static bool set_by_ioctl(int fd, bool on)
{
	int value = on;

	return !ioctl(fd, FIONBIO, &value);
}

static bool set_by_copy(int fd, bool on)
{
	int copy = dup(fd);

	return set_by_fcntl(copy, on) && !close(copy);
}

/* The file is the child's, too. */
static bool set_by_child(int fd, bool on)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!set_by_fcntl(fd, on));
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool follows(bool (*set)(int fd, bool on))
{
	struct peer p;
	int i;

	NEED(begin_peer(&p));
	for (i = 0; i < 3; i++) {
		NEED(waits(&p));
		NEED(set(p.fd, true));
		NEED(finds_nothing(p.fd) && finds_nothing(p.fd));
		NEED(set(p.fd, false));
	}
	return end_peer(&p);
}

static bool follows_fcntl(void) { return follows(set_by_fcntl); }
static bool follows_ioctl(void) { return follows(set_by_ioctl); }
static bool follows_copy(void) { return follows(set_by_copy); }
static bool follows_child(void) { return follows(set_by_child); }

/* ---- another program has it ---- */

union right {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message(union right *r, struct iovec *v)
{
	return (struct msghdr){ .msg_iov = v, .msg_iovlen = 1, .msg_control = r, .msg_controllen = sizeof(*r) };
}

static bool pass_on(int through, int fd)
{
	union right r = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec v = { .iov_base = "x", .iov_len = 1 };
	struct msghdr m = message(&r, &v);

	memcpy(CMSG_DATA(&r.head), &fd, sizeof(fd));
	return sendmsg(through, &m, 0) == 1;
}

/* The executed program: inherits a socket, and changes its flags on command. */
static int change_as_told(int through)
{
	struct iovec v = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	union right r;
	struct msghdr m = message(&r, &v);
	char c;
	int fd;

	if (recvmsg(through, &m, 0) != 1)
		return 1;
	memcpy(&fd, CMSG_DATA(&r.head), sizeof(fd));
	while (read(through, &c, 1) == 1)
		if (!set_by_fcntl(fd, c == '1') || write(through, &c, 1) != 1)
			return 1;
	return 0;
}

static int execute_helper(int pair[2], pid_t *pid)
{
	char number[16];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	snprintf(number, sizeof(number), "%d", pair[1]);
	fflush(stdout);
	*pid = fork();
	if (!*pid) {
		close(pair[0]);
		execl(self, self, "0", "change-as-told", number, NULL);
		_exit(1);
	}
	return close(pair[1]);
}

static bool tell(int through, const char *what)
{
	char c;

	return write(through, what, 1) == 1 && read(through, &c, 1) == 1;
}

static bool follows_program(void)
{
	int pair[2], orders[2], status, i;
	struct peer p;
	char c;
	pid_t pid;

	NEED(!execute_helper(pair, &pid) && !pipe(orders));
	p.pid = fork();
	if (!p.pid) {
		close(pair[0]);
		close(orders[1]);
		_exit(!repeat(orders[0], dial()));
	}
	close(orders[0]);
	p.orders = orders[1];
	p.fd = accept(listener, NULL, NULL);
	NEED(p.fd >= 0 && pass_on(pair[0], p.fd));
	NEED(write(p.orders, "x", 1) == 1 && recv(p.fd, &c, 1, 0) == 1);
	for (i = 0; i < 3; i++) {
		NEED(tell(pair[0], "1") && finds_nothing(p.fd) && finds_nothing(p.fd));
		NEED(tell(pair[0], "0") && waits(&p));
	}
	close(pair[0]);
	NEED(waitpid(pid, &status, 0) == pid && !status);
	return end_peer(&p);
}

/* ---- turns ---- */

/* Answers what there is: 1; 0: the client has ended; -1: something is wrong. */
static int turn_of_server(int ep, int fd)
{
	struct epoll_event ev;
	char buf[64];
	ssize_t n;

	if (ASK(epoll_wait(ep, &ev, 1, -1)) != 1)
		return -1;
	while ((n = ASK(recv(fd, buf, sizeof(buf), 0))) > 0)
		if (ASK(send(fd, buf, (size_t)n, MSG_NOSIGNAL)) != n)
			return -1;
	return !n ? 0 : errno == EAGAIN ? 1 : -1;
}

static bool serve(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = accept(listener, NULL, NULL), ep = epoll_create1(0), rv;

	NEED(fd >= 0 && ep >= 0 && set_by_fcntl(fd, true) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	while ((rv = turn_of_server(ep, fd)) > 0)
		;
	tell_asked();
	NEED(!rv);
	return true;
}

static void *sleep_on(void *fd)
{
	char c;

	return read((int)(intptr_t)fd, &c, 1) ? NULL : fd;
}

static bool sleeping_turn(struct pollfd *p)
{
	char buf[64];
	int i;

	for (i = 0; i < CLIENTS; i++) {
		NEED(send(p[i].fd, "turn", MESSAGE, MSG_NOSIGNAL) == MESSAGE);
		NEED(recv(p[i].fd, buf, sizeof(buf), 0) == MESSAGE);
	}
	return true;
}

static bool turn_of_client(struct pollfd *p)
{
	char buf[64];
	int left, i;

	for (i = 0; i < CLIENTS; i++)
		NEED(ASK(send(p[i].fd, "turn", MESSAGE, MSG_NOSIGNAL)) == MESSAGE);
	for (left = CLIENTS; left;) {
		NEED(ASK(ppoll(p, CLIENTS, NULL, NULL)) > 0);
		for (i = 0; i < CLIENTS; i++) {
			if (!p[i].revents)
				continue;
			NEED(ASK(recv(p[i].fd, buf, sizeof(buf), 0)) == MESSAGE && finds_nothing(p[i].fd));
			left--;
		}
	}
	return true;
}

/* The other thread makes the process one of several. */
static bool ask(int n, bool sleeps)
{
	struct pollfd p[CLIENTS];
	int i, quiet[2];
	char buf[64];
	pthread_t t;

	NEED(!pipe(quiet) && !pthread_create(&t, NULL, sleep_on, (void *)(intptr_t)quiet[0]));
	for (i = 0; i < CLIENTS; i++) {
		p[i] = (struct pollfd){ .fd = dial(), .events = POLLIN };
		NEED(p[i].fd >= 0 && send(p[i].fd, "turn", MESSAGE, 0) == MESSAGE);
		NEED(recv(p[i].fd, buf, sizeof(buf), 0) == MESSAGE && set_by_ioctl(p[i].fd, !sleeps));
	}
	while (n--)
		NEED(sleeps ? sleeping_turn(p) : turn_of_client(p));
	tell_asked();
	for (i = 0; i < CLIENTS; i++)
		close(p[i].fd);
	close(quiet[1]);
	return !pthread_join(t, NULL);
}

static bool take_turns(int n, bool sleeps)
{
	int status, i;
	bool ok;

	fflush(stdout);
	for (i = 0; i < CLIENTS; i++)
		if (!fork()) {
			ok = serve();
			fflush(stdout);
			_exit(!ok);
		}
	ok = ask(n, sleeps);
	for (i = 0; i < CLIENTS; i++)
		NEED(wait(&status) > 0 && !status);
	return ok;
}

/* ---- cases ---- */

static const struct a_case {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "no-call-waits-after-fcntl", follows_fcntl },
	{ "no-call-waits-after-ioctl", follows_ioctl },
	{ "no-call-waits-after-fcntl-of-a-copy", follows_copy },
	{ "no-call-waits-after-fcntl-of-a-child", follows_child },
	{ "no-call-waits-after-fcntl-of-another-program", follows_program },
};

static bool run(const void *a_case)
{
	return ((const struct a_case *)a_case)->run();
}

int main(int argc, char **argv)
{
	const struct cases all = { CASES(cases), .run = run };

	self = argv[0];
	if (argc > 3 && !strcmp(argv[2], "change-as-told"))
		return change_as_told(atoi(argv[3]));
	if (!listen_at(argv[1]))
		return 1;
	alarm(150);
	if (argc > 3)
		return !take_turns(atoi(argv[3]), !strcmp(argv[2], "sleeping-turns"));
	return run_cases(&all, argc > 2 ? argv[2] : NULL);
}
