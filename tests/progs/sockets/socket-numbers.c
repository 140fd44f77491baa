// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: what a socket's number is good for beside libc's calls of octets; TAP. Calls that a
 * library between the program and the kernel does not see do what TCP does, or fail: they never
 * move octets that are not the program's. Names, flags and epolls are the socket's, whatever its
 * state. Both ends are in this process. It knows nothing of iWARP, like socket-calls.c.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "socket-cases.h"

#define WAIT_MS	20000

/* ---- a connection: client, and server ---- */

struct ends { int client, server; };

static bool join(struct ends *e)
{
	e->client = dial();
	e->server = accept(listener, NULL, NULL);
	return e->client >= 0 && e->server >= 0;
}

static bool word(int fd, const char *w)
{
	return send(fd, w, strlen(w), MSG_NOSIGNAL) == (ssize_t)strlen(w);
}

static bool hear(int fd, const char *w)
{
	char buf[64] = "";

	return recv(fd, buf, strlen(w), MSG_WAITALL) == (ssize_t)strlen(w) && !memcmp(buf, w, strlen(w));
}

/* Both ends are used, in both directions. */
static bool use(const struct ends *e)
{
	return word(e->client, "first") && hear(e->server, "first") && word(e->server, "second") &&
		hear(e->client, "second");
}

static bool part(const struct ends *e)
{
	return !close(e->client) && !close(e->server);
}

static bool join_and_use(struct ends *e)
{
	return join(e) && use(e);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, WAIT_MS) == 1 && p.revents & POLLIN;
}

/* ---- calls that libc's names do not show ---- */

static ssize_t by_aio(int fd, void *buf, size_t len, bool writes)
{
	struct aiocb c = { .aio_fildes = fd, .aio_buf = buf, .aio_nbytes = len };
	const struct aiocb *list[] = { &c };

	if (writes ? aio_write(&c) : aio_read(&c))
		return -1;
	while (aio_error(&c) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	errno = aio_error(&c);
	return aio_return(&c);
}

static ssize_t raw_read(int fd, void *buf, size_t len) { return syscall(SYS_read, fd, buf, len); }
static ssize_t raw_recvfrom(int fd, void *buf, size_t len)
{
	return syscall(SYS_recvfrom, fd, buf, len, 0, NULL, NULL);
}
static ssize_t raw_readv(int fd, void *buf, size_t len)
{
	const struct iovec v = { .iov_base = buf, .iov_len = len };

	return syscall(SYS_readv, fd, &v, 1);
}
static ssize_t aio_reads(int fd, void *buf, size_t len) { return by_aio(fd, buf, len, false); }

static ssize_t raw_write(int fd, void *buf, size_t len) { return syscall(SYS_write, fd, buf, len); }
static ssize_t raw_sendto(int fd, void *buf, size_t len)
{
	return syscall(SYS_sendto, fd, buf, len, 0, NULL, 0);
}
static ssize_t raw_writev(int fd, void *buf, size_t len)
{
	const struct iovec v = { .iov_base = buf, .iov_len = len };

	return syscall(SYS_writev, fd, &v, 1);
}
static ssize_t aio_writes(int fd, void *buf, size_t len) { return by_aio(fd, buf, len, true); }

typedef ssize_t move_fn(int fd, void *buf, size_t len);

static bool reads_or_fails(int fd, int peer, move_fn *move)
{
	char buf[64] = "";
	ssize_t n;

	NEED(word(peer, "octets") && is_readable(fd));
	n = move(fd, buf, sizeof(buf));
	if (n < 0)
		return errno == ENOTCONN && hear(fd, "octets");
	NEED(n <= 6 && !memcmp(buf, "octets", (size_t)n));
	return n == 6 || hear(fd, &"octets"[n]);
}

static bool reads_elsewhere(void)
{
	static move_fn *const moves[] = { raw_read, raw_recvfrom, raw_readv, aio_reads };
	struct ends e;
	size_t i;

	NEED(join_and_use(&e));
	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		NEED(reads_or_fails(e.client, e.server, moves[i]));
		NEED(reads_or_fails(e.server, e.client, moves[i]));
	}
	return use(&e) && part(&e);
}

static bool writes_or_fails(int fd, int peer, move_fn *move)
{
	char buf[] = "octets";
	ssize_t n = move(fd, buf, 6);

	if (n < 0)
		return errno == EPIPE || errno == ENOTCONN;
	return n == 6 && hear(peer, "octets");
}

static bool writes_elsewhere(void)
{
	static move_fn *const moves[] = { raw_write, raw_sendto, raw_writev, aio_writes };
	struct ends e;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	NEED(join_and_use(&e));
	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		NEED(writes_or_fails(e.client, e.server, moves[i]));
		NEED(writes_or_fails(e.server, e.client, moves[i]));
		NEED(use(&e));
	}
	signal(SIGPIPE, SIG_DFL);
	return part(&e);
}

/* The kernel copies what it cannot map: a buffer of its own is where it would. */
static bool received_without_copies(void)
{
	char buf[64] = "";
	struct { __u64 address; __u32 length, skip, inq; __s32 err; __u64 copy; __s32 copy_len; __u32 flags; __u64 rest[3]; }
		z = { .copy = (__u64)(uintptr_t)buf, .copy_len = sizeof(buf) };
	socklen_t len = sizeof(z);
	struct ends e;

	NEED(join_and_use(&e));
	NEED(word(e.server, "octets") && is_readable(e.client));
	if (getsockopt(e.client, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &z, &len))
		return hear(e.client, "octets") && part(&e);
	NEED(z.copy_len <= 6 && !memcmp(buf, "octets", z.copy_len > 0 ? (size_t)z.copy_len : 0));
	return part(&e);
}

/* ---- names and flags ---- */

struct identity {
	struct sockaddr_in own, peer;
	ino_t inode;
	unsigned long long cookie;
};

static bool look_up(int fd, struct identity *id)
{
	socklen_t len = sizeof(id->own);
	struct stat st;

	memset(id, 0, sizeof(*id));
	NEED(!getsockname(fd, (struct sockaddr *)&id->own, &len) && len == sizeof(id->own));
	NEED(!getpeername(fd, (struct sockaddr *)&id->peer, &len) && len == sizeof(id->peer));
	len = sizeof(id->cookie);
	NEED(!getsockopt(fd, SOL_SOCKET, SO_COOKIE, &id->cookie, &len));
	NEED(!fstat(fd, &st) && S_ISSOCK(st.st_mode));
	id->inode = st.st_ino;
	return true;
}

static bool keeps_identity(void)
{
	struct identity before[2], after[2];
	struct tcp_info info;
	socklen_t len = sizeof(info);
	struct ends e;

	NEED(join(&e) && look_up(e.client, &before[0]) && look_up(e.server, &before[1]));
	NEED(use(&e) && look_up(e.client, &after[0]) && look_up(e.server, &after[1]));
	NEED(!memcmp(before, after, sizeof(after)));
	NEED(after[0].own.sin_port == after[1].peer.sin_port && after[0].peer.sin_port == addr.sin_port);
	NEED(!getsockopt(e.server, IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_state == TCP_ESTABLISHED);
	return part(&e);
}

/* Its own name is there as long as the program has it. */
static bool reset_keeps_name(void)
{
	const struct linger now = { .l_onoff = 1 };
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	struct ends e;
	char c;

	NEED(join_and_use(&e));
	NEED(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) && !close(e.client));
	NEED(recv(e.server, &c, 1, 0) == -1 && errno == ECONNRESET);
	NEED(!getsockname(e.server, (struct sockaddr *)&a, &len) && a.sin_port == addr.sin_port);
	NEED(getpeername(e.server, (struct sockaddr *)&a, &len) == -1 && errno == ENOTCONN);
	NEED(!recv(e.server, &c, 1, 0) && send(e.server, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	return !close(e.server);
}

static bool is_connected_already(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct ends e;

	NEED(join_and_use(&e));
	NEED(bind(e.client, (struct sockaddr *)&any, sizeof(any)) == -1 && errno == EINVAL);
	NEED(listen(e.client, 1) == -1 && errno == EINVAL);
	NEED(connect(e.client, (struct sockaddr *)&addr, sizeof(addr)) == -1 && errno == EISCONN);
	NEED(accept(e.client, NULL, NULL) == -1 && errno == EINVAL);
	return use(&e) && part(&e);
}

static bool has_flag(int fd, int flag)
{
	return fcntl(fd, F_GETFL) & flag;
}

/* What one number sets its copies have, whenever they were made. */
static bool flags_are_the_sockets(void)
{
	int off = 0, early, late;
	struct ends e;
	char c;

	NEED(join(&e) && (early = dup(e.server)) >= 0);
	NEED(!fcntl(e.server, F_SETFL, O_NONBLOCK) && has_flag(early, O_NONBLOCK));
	NEED(word(e.client, "a") && is_readable(early) && hear(early, "a"));
	NEED((late = dup(early)) >= 0 && has_flag(late, O_NONBLOCK));
	NEED(recv(late, &c, 1, 0) == -1 && errno == EAGAIN);
	NEED(!ioctl(late, FIONBIO, &off) && !has_flag(e.server, O_NONBLOCK));
	NEED(!fcntl(early, F_SETFL, O_NONBLOCK) && recv(e.server, &c, 1, 0) == -1 && errno == EAGAIN);
	return !close(early) && !close(late) && part(&e);
}

static volatile sig_atomic_t heard;

static void count_signal(int sig)
{
	heard += sig == SIGIO;
}

static bool has_heard(int before)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	int ms;

	for (ms = 0; heard == before && ms < WAIT_MS; ms++)
		nanosleep(&moment, NULL);
	return heard != before;
}

/* After a read that found nothing, the next octets raise SIGIO for the owner. */
static bool owner_hears(void)
{
	struct ends e;
	int before = heard;
	char c;

	signal(SIGIO, count_signal);
	NEED(join(&e) && !fcntl(e.server, F_SETOWN, getpid()) && !fcntl(e.server, F_SETFL, O_ASYNC));
	NEED(recv(e.server, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	NEED(word(e.client, "a") && has_heard(before) && hear(e.server, "a") && word(e.server, "b"));
	NEED(hear(e.client, "b") && fcntl(e.server, F_GETOWN) == getpid());
	NEED(!fcntl(e.client, F_SETOWN, getpid()) && !fcntl(e.client, F_SETFL, O_ASYNC));
	before = heard;
	NEED(word(e.server, "c") && has_heard(before) && hear(e.client, "c"));
	signal(SIGIO, SIG_IGN);
	return part(&e);
}

/* The copy goes on where the first number was closed, before the first use or after. */
static bool copies_go_on(void)
{
	struct ends e;
	int copy;

	NEED(join(&e) && (copy = dup(e.server)) >= 0 && !close(e.server));
	e.server = copy;
	NEED(use(&e) && (copy = dup(e.client)) >= 0 && !close(e.client));
	e.client = copy;
	NEED(use(&e) && (copy = fcntl(e.server, F_DUPFD, 100)) >= 100 && dup2(copy, e.server) == e.server);
	NEED(use(&e) && !close(copy));
	return use(&e) && part(&e);
}

/* Options that were set after the first use are the socket's, and outlive its connection. */
static bool options_are_the_sockets(void)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	const struct timeval soon = { .tv_usec = 20000 };
	struct timeval kept = { 0 };
	socklen_t len = sizeof(kept);
	struct ends e;
	char c;

	NEED(join_and_use(&e) && !setsockopt(e.client, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	NEED(recv(e.client, &c, 1, 0) == -1 && errno == EAGAIN);
	NEED(!fcntl(e.client, F_SETFL, O_NONBLOCK) && !connect(e.client, &none, sizeof(none)));
	NEED(has_flag(e.client, O_NONBLOCK) && !fcntl(e.client, F_SETFL, 0) && !close(e.server));
	NEED(!connect(e.client, (struct sockaddr *)&addr, sizeof(addr)));
	NEED((e.server = accept(listener, NULL, NULL)) >= 0);
	NEED(!getsockopt(e.client, SOL_SOCKET, SO_RCVTIMEO, &kept, &len) && kept.tv_usec);
	kept = (struct timeval){ 0 };
	NEED(!setsockopt(e.client, SOL_SOCKET, SO_RCVTIMEO, &kept, sizeof(kept)));
	return use(&e) && part(&e);
}

/* ---- children ---- */

static bool ends_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* What the kernel says that @fd names: nothing that is connected, or its own peer. */
static bool names_no_other(int fd)
{
	struct sockaddr_in raw, own;
	socklen_t len = sizeof(own);

	NEED(!getpeername(fd, (struct sockaddr *)&own, &len));
	if (syscall(SYS_getpeername, fd, &raw, &len))
		return errno == ENOTCONN;
	return raw.sin_port == own.sin_port;
}

/* A child of vfork() copies a number: later connections of its parent have numbers of their own. */
static bool copied_in_a_vfork(void)
{
	struct ends e, more;
	pid_t pid;

	NEED(join_and_use(&e));
	pid = fork();
	if (pid)
		return ends_well(pid) && use(&e) && part(&e);
	pid = vfork();
	if (!pid)
		_exit(dup2(e.server, 30) != 30);
	_exit(!ends_well(pid) || !join_and_use(&more) || !names_no_other(more.client) ||
	      !names_no_other(more.server) || !use(&more));
}

/* ---- epolls ---- */

static bool control(int ep, int op, int fd, unsigned int events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	return !epoll_ctl(ep, op, fd, &ev);
}

/* The next event is @fd's, with @events among others. */
static bool reports(int ep, int fd, unsigned int events)
{
	struct epoll_event ev;

	return epoll_wait(ep, &ev, 1, WAIT_MS) == 1 && ev.data.fd == fd && (ev.events & events) == events;
}

static bool is_quiet(int ep)
{
	struct epoll_event ev;

	return !epoll_wait(ep, &ev, 1, 0);
}

/* Errors are those of a socket that was in the epoll all the time. */
static bool stays_in_epoll(void)
{
	int ep = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct ends e = { .client = fd };
	char c;

	NEED(control(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET));
	NEED(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	e.server = accept(listener, NULL, NULL);
	NEED(e.server >= 0 && control(ep, EPOLL_CTL_ADD, e.server, EPOLLIN));
	NEED(word(fd, "a") && reports(ep, e.server, EPOLLIN) && hear(e.server, "a"));
	NEED(!control(ep, EPOLL_CTL_ADD, e.server, EPOLLIN) && errno == EEXIST);
	NEED(word(e.server, "b"));
	/* TCP reports connect(), too. */
	do
		NEED(reports(ep, fd, 0));
	while (recv(fd, &c, 1, MSG_DONTWAIT) != 1);
	NEED(control(ep, EPOLL_CTL_MOD, e.server, EPOLLOUT | EPOLLONESHOT) && reports(ep, e.server, EPOLLOUT));
	NEED(word(fd, "c") && is_quiet(ep) && control(ep, EPOLL_CTL_MOD, e.server, EPOLLIN));
	NEED(reports(ep, e.server, EPOLLIN) && control(ep, EPOLL_CTL_DEL, e.server, 0));
	NEED(!control(ep, EPOLL_CTL_DEL, e.server, 0) && errno == ENOENT);
	NEED(!control(ep, EPOLL_CTL_MOD, e.server, EPOLLIN) && errno == ENOENT && is_quiet(ep));
	NEED(control(ep, EPOLL_CTL_ADD, e.server, EPOLLIN) && reports(ep, e.server, EPOLLIN));
	return hear(e.server, "c") && use(&e) && part(&e) && !close(ep);
}

/* Added before the first use or after: each number is reported. */
static bool copies_in_one_epoll(bool before)
{
	int ep = epoll_create1(0), copy;
	struct epoll_event ev[3];
	struct ends e;

	NEED(join(&e) && (before || use(&e)) && (copy = dup(e.server)) >= 0);
	NEED(control(ep, EPOLL_CTL_ADD, e.server, EPOLLIN) && control(ep, EPOLL_CTL_ADD, copy, EPOLLIN));
	NEED(!before || use(&e));
	NEED(word(e.client, "a") && is_readable(copy) && epoll_wait(ep, ev, 3, 0) == 2);
	NEED(ev[0].data.fd != ev[1].data.fd && hear(copy, "a") && is_quiet(ep));
	NEED(control(ep, EPOLL_CTL_DEL, e.server, 0) && word(e.client, "b") && reports(ep, copy, EPOLLIN));
	NEED(hear(e.server, "b") && is_quiet(ep));
	NEED(control(ep, EPOLL_CTL_DEL, copy, 0) && word(e.client, "c") && is_readable(copy) && is_quiet(ep));
	return hear(copy, "c") && !close(copy) && part(&e) && !close(ep);
}

static bool copies_in_one_epoll_early(void) { return copies_in_one_epoll(true); }
static bool copies_in_one_epoll_late(void) { return copies_in_one_epoll(false); }

/* A child uses what its parent has in an epoll: that stays the parent's to remove. */
static bool used_by_a_child(void)
{
	int ep = epoll_create1(0), said[2];
	struct ends e;
	pid_t pid;
	char c;

	NEED(join(&e) && control(ep, EPOLL_CTL_ADD, e.server, EPOLLIN) && !pipe(said));
	pid = fork();
	if (!pid)
		_exit(!hear(e.server, "a") || !word(e.server, "b") || write(said[1], "x", 1) != 1 ||
		      !hear(e.server, "c"));
	NEED(pid > 0 && word(e.client, "a") && hear(e.client, "b") && read(said[0], &c, 1) == 1);
	NEED(control(ep, EPOLL_CTL_DEL, e.server, 0) && word(e.client, "c") && ends_well(pid));
	return is_quiet(ep) && part(&e) && !close(ep) && !close(said[0]) && !close(said[1]);
}

/* A time of sending waits in the socket's error queue until it is read. */
static bool error_queue_is_reported(void)
{
	int ep = epoll_create1(0), flags;
	struct pollfd p = { .events = 0 };
	char octets[8], control_octets[256];
	struct iovec v = { .iov_base = octets, .iov_len = sizeof(octets) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control_octets };
	struct ends e;

	flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
	NEED(join_and_use(&e) && control(ep, EPOLL_CTL_ADD, e.client, 0));
	NEED(!setsockopt(e.client, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)));
	p.fd = e.client;
	NEED(word(e.client, "a") && reports(ep, e.client, EPOLLERR));
	NEED(poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLERR);
	flags = 0;
	NEED(!setsockopt(e.client, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)));
	do
		m.msg_controllen = sizeof(control_octets);
	while (!recvmsg(e.client, &m, MSG_ERRQUEUE));
	return errno == EAGAIN && is_quiet(ep) && hear(e.server, "a") && part(&e) && !close(ep);
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The peer has closed, which a wait for nothing is not told: it sleeps. */
static bool waits_for_nothing(void)
{
	int ep = epoll_create1(0);
	struct pollfd p = { .events = 0 };
	struct epoll_event ev;
	struct ends e;
	long before;

	NEED(join_and_use(&e) && !close(e.client) && is_readable(e.server));
	NEED(control(ep, EPOLL_CTL_ADD, e.server, 0));
	p.fd = e.server;
	before = cpu_ms();
	NEED(!poll(&p, 1, 300) && !p.revents);
	NEED(!epoll_wait(ep, &ev, 1, 300));
	NEED(cpu_ms() - before < 150);
	return !close(e.server) && !close(ep);
}

/* ---- all ---- */

static const struct a_case { const char *name; bool (*run)(void); } cases[] = {
	{ "calls-that-libc-does-not-show-read-no-other-octets", reads_elsewhere },
	{ "calls-that-libc-does-not-show-write-no-other-octets", writes_elsewhere },
	{ "zero-copy-receive-sees-no-other-octets", received_without_copies },
	{ "names-and-inode-stay", keeps_identity },
	{ "its-own-name-survives-a-reset", reset_keeps_name },
	{ "is-connected-for-bind-listen-and-connect", is_connected_already },
	{ "flags-are-of-all-its-numbers", flags_are_the_sockets },
	{ "its-owner-hears-of-octets", owner_hears },
	{ "a-copy-goes-on-when-the-first-is-closed", copies_go_on },
	{ "stays-in-its-epoll-when-it-is-used", stays_in_epoll },
	{ "two-numbers-in-one-epoll-before-it-is-used", copies_in_one_epoll_early },
	{ "two-numbers-in-one-epoll-after-it-was-used", copies_in_one_epoll_late },
	{ "a-wait-for-nothing-sleeps", waits_for_nothing },
	{ "options-stay-after-the-first-use", options_are_the_sockets },
	{ "a-number-that-a-vforked-child-copies", copied_in_a_vfork },
	{ "in-an-epoll-and-used-by-a-child", used_by_a_child },
	{ "an-error-queue-is-reported", error_queue_is_reported },
};

/* At a port whose rule refuses plain clients: TCP alone would not. Others go on beside it. */
static bool refused_client(void)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	long plain = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in peer, own;
	socklen_t len = sizeof(peer);
	struct ends other;
	int refused;
	char c;

	NEED(plain >= 0 && !syscall(SYS_connect, plain, &addr, sizeof(addr)));
	NEED((refused = accept(listener, NULL, NULL)) >= 0 && syscall(SYS_write, plain, "plain", 5) == 5);
	NEED(recv(refused, &c, 1, 0) == -1 && errno == ECONNRESET);
	NEED(join_and_use(&other) && fcntl(refused, F_GETFL) >= 0);
	NEED(!syscall(SYS_getsockname, plain, &own, &len));
	NEED(getpeername(refused, (struct sockaddr *)&peer, &len) || peer.sin_port == own.sin_port);
	connect(refused, &none, sizeof(none));
	return use(&other) && part(&other) && !close(refused) && !syscall(SYS_close, plain);
}

static const struct a_case of_rules[] = {
	{ "a-refused-client-is-no-other-connection", refused_client },
};

static bool run(const void *a_case)
{
	return ((const struct a_case *)a_case)->run();
}

int main(int argc, char **argv)
{
	const struct cases all = { CASES(cases), .run = run, .seconds = 60 };
	const struct cases more = { CASES(of_rules), .run = run, .seconds = 60 };
	const char *name = argc > 2 ? argv[2] : NULL;

	return !listen_at(argv[1]) || run_cases(name && !strcmp(name, of_rules[0].name) ? &more : &all, name);
}
