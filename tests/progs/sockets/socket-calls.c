// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: what TCP's calls do, case by case, over connections of 127.0.0.1 to itself; TAP. It
 * knows nothing of iWARP: all cases pass over TCP, and under `weft-run --sockets`. In each case a
 * child is the client, with a connection of its own, and does what the parent's side expects.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "socket-cases.h"

#define BULK	(4u << 20)
#define TURNS	200

static char *self;

/* ---- octets that know their place ---- */

static unsigned char octet(size_t at)
{
	return (unsigned char)(at * 7 + (at >> 8) * 13 + (at >> 16) * 31);
}

static void fill(unsigned char *p, size_t at, size_t len)
{
	while (len--)
		*p++ = octet(at++);
}

static bool is_right(const unsigned char *p, size_t at, size_t len)
{
	while (len--)
		if (*p++ != octet(at++))
			return false;
	return true;
}

static bool send_bulk(int fd, size_t from, size_t len)
{
	static unsigned char buf[150001];
	size_t n;
	ssize_t rv;

	for (; len; len -= (size_t)rv, from += (size_t)rv) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		fill(buf, from, n);
		rv = send(fd, buf, n, MSG_NOSIGNAL);
		NEED(rv > 0);
	}
	return true;
}

static bool recv_bulk(int fd, size_t from, size_t len)
{
	static unsigned char buf[130003];
	size_t n;
	ssize_t rv;

	for (; len; len -= (size_t)rv, from += (size_t)rv) {
		n = len < sizeof(buf) ? len : sizeof(buf);
		rv = recv(fd, buf, n, 0);
		NEED(rv > 0);
		NEED(is_right(buf, from, (size_t)rv));
	}
	return true;
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

static bool wait_in(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 10000) == 1 && p.revents & POLLIN;
}

static void non_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ---- receive and send ---- */

static bool echo_client(int fd)
{
	NEED(word(fd, "hello"));
	return hear(fd, "HELLO");
}

static bool echo_server(int fd)
{
	NEED(hear(fd, "hello"));
	return word(fd, "HELLO");
}

static bool bulk_client(int fd)
{
	NEED(send_bulk(fd, 0, BULK));
	return recv_bulk(fd, 5, BULK);
}

static bool bulk_server(int fd)
{
	NEED(recv_bulk(fd, 0, BULK));
	return send_bulk(fd, 5, BULK);
}

static bool turns_client(int fd)
{
	int i;

	for (i = 0; i < TURNS; i++)
		NEED(word(fd, "ping") && hear(fd, "pong"));
	return true;
}

static bool turns_server(int fd)
{
	int i;

	for (i = 0; i < TURNS; i++)
		NEED(hear(fd, "ping") && word(fd, "pong"));
	return true;
}

static bool vectors_client(int fd)
{
	char big[3000];
	struct iovec v[3] = { { "ab", 2 }, { NULL, 0 }, { big, sizeof(big) } };
	struct mmsghdr mm[2] = { { .msg_hdr = { .msg_iov = v, .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = v + 2, .msg_iovlen = 1 } } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3 };

	memset(big, 'x', sizeof(big));
	NEED(writev(fd, v, 3) == 3002);
	NEED(sendmsg(fd, &m, 0) == 3002);
	NEED(sendmmsg(fd, mm, 2, 0) == 2 && mm[0].msg_len == 2 && mm[1].msg_len == 3000);
	NEED(pwritev2(fd, v, 3, -1, 0) == 3002);
	NEED(pwritev(fd, v, 3, 0) < 0 && errno == ESPIPE);
	return hear(fd, "done");
}

static bool read_whole(int fd, bool by_msg)
{
	char a[2], b[1], c[2999];
	struct iovec v[3] = { { a, 2 }, { b, 1 }, { c, sizeof(c) } };
	struct sockaddr_in from;
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3, .msg_name = &from, .msg_namelen = sizeof(from) };

	if (by_msg) {
		NEED(recvmsg(fd, &m, MSG_WAITALL) == 3002);
		NEED(m.msg_namelen == 0 && !m.msg_flags);
	} else {
		/* A read may be short of what another segment brings. */
		int n = 0;

		while (n < 3002) {
			NEED(ioctl(fd, FIONREAD, &n) == 0);
			wait_in(fd);
		}
		NEED(readv(fd, v, 3) == 3002);
	}
	return !memcmp(a, "ab", 2) && b[0] == 'x' && c[2998] == 'x';
}

static bool vectors_server(int fd)
{
	NEED(read_whole(fd, false));
	NEED(read_whole(fd, true));
	NEED(read_whole(fd, true));
	NEED(read_whole(fd, false));
	return word(fd, "done");
}

static bool flags_client(int fd)
{
	NEED(word(fd, "peekaboo"));
	NEED(hear(fd, "1"));
	NEED(word(fd, "abc"));
	NEED(hear(fd, "2"));
	NEED(word(fd, "def"));
	NEED(send(fd, "dropme", 6, MSG_MORE) == 6 && word(fd, "!"));
	return hear(fd, "3");
}

static bool flags_server(int fd)
{
	char buf[16];

	NEED(recv(fd, buf, 4, MSG_PEEK) == 4 && !memcmp(buf, "peek", 4));
	NEED(hear(fd, "peekaboo"));
	NEED(recv(fd, buf, 4, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	NEED(word(fd, "1") && hear(fd, "ab"));
	NEED(recv(fd, buf, sizeof(buf), 0) == 1 && buf[0] == 'c');
	NEED(word(fd, "2"));
	NEED(recv(fd, buf, 3, MSG_WAITALL) == 3 && !memcmp(buf, "def", 3));
	NEED(wait_in(fd));
	NEED(recv(fd, NULL, 6, MSG_TRUNC | MSG_WAITALL) == 6);
	NEED(hear(fd, "!"));
	NEED(recv(fd, buf, 1, MSG_OOB) < 0 && errno == EINVAL);
	return word(fd, "3");
}

/* ---- ends ---- */

static bool half_client(int fd)
{
	char c;

	NEED(word(fd, "last"));
	NEED(shutdown(fd, SHUT_WR) == 0);
	NEED(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	NEED(recv_bulk(fd, 0, 100000));
	return recv(fd, &c, 1, 0) == 0;
}

static bool half_server(int fd)
{
	char c;

	NEED(hear(fd, "last"));
	NEED(recv(fd, &c, 1, 0) == 0);
	NEED(recv(fd, &c, 1, 0) == 0);
	return send_bulk(fd, 0, 100000);
}

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

static void handle(int sig, void (*handler)(int sig), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &a, NULL);
}

static bool pipe_client(int fd)
{
	return hear(fd, "x");
}

/* The client has closed: sooner or later a send fails. */
static bool pipe_server(int fd)
{
	int i;

	handle(SIGPIPE, count_signal, 0);
	signals = 0;
	NEED(word(fd, "x"));
	while (wait_in(fd) && send(fd, "y", 1, MSG_NOSIGNAL) == 1)
		;
	NEED(errno == EPIPE || errno == ECONNRESET);
	for (i = 0; i < 3 && send(fd, "y", 1, 0) < 0 && errno != EPIPE; i++)
		;
	NEED(errno == EPIPE);
	NEED(write(fd, "y", 1) < 0 && errno == EPIPE && signals);
	signal(SIGPIPE, SIG_DFL);
	return true;
}

static bool close_client(int fd)
{
	struct linger l = { .l_onoff = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	return send_bulk(fd, 0, BULK / 4);	/* and closes at once */
}

static bool close_server(int fd)
{
	char c;

	usleep(50000);
	NEED(recv_bulk(fd, 0, BULK / 4));
	return recv(fd, &c, 1, 0) == 0;
}

/* ---- time and signals ---- */

static long ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool time_client(int fd)
{
	return hear(fd, "x");
}

static bool time_server(int fd)
{
	struct timeval t = { .tv_usec = 60000 };
	long before = ms_now();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	fd_set in;
	char c;

	NEED(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	NEED(recv(fd, &c, 1, 0) < 0 && errno == EAGAIN && ms_now() - before >= 59);
	before = ms_now();
	NEED(poll(&p, 1, 60) == 0 && ms_now() - before >= 59);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	NEED(select(fd + 1, &in, NULL, NULL, &t) == 0 && !FD_ISSET(fd, &in) && !t.tv_sec && !t.tv_usec);
	return word(fd, "x");
}

static void alarm_in(int ms, int again)
{
	struct itimerval t = { .it_value.tv_usec = ms * 1000, .it_interval.tv_usec = again * 1000 };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* A pipe to the client: a handler has run. */
static int bell[2];

static void ring(int sig)
{
	count_signal(sig);
	if (write(bell[1], "", 1) != 1)
		_exit(1);
}

static bool signal_client(int fd)
{
	char c;

	/* The handler is through, and recv() goes on. */
	NEED(read(bell[0], &c, 1) == 1);
	NEED(word(fd, "a"));
	return hear(fd, "2");
}

static bool signal_server(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	/* Again and again: one may come before the call has begun. */
	handle(SIGALRM, count_signal, 0);
	signals = 0;
	alarm_in(20, 20);
	NEED(recv(fd, &c, 1, 0) < 0 && errno == EINTR && signals >= 1);
	signals = 0;
	NEED(poll(&p, 1, 20000) < 0 && errno == EINTR && signals >= 1);
	alarm_in(0, 0);
	signals = 0;
	handle(SIGALRM, ring, SA_RESTART);
	alarm_in(20, 0);
	NEED(recv(fd, &c, 1, 0) == 1 && c == 'a' && signals == 1);
	signal(SIGALRM, SIG_DFL);
	return word(fd, "2");
}

/* ---- poll and select ---- */

static bool poll_client(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };

	NEED(hear(fd, "1"));
	NEED(poll(&p, 1, 5000) == 1 && p.revents == POLLOUT);
	NEED(word(fd, "abcdef"));
	NEED(hear(fd, "2"));
	return shutdown(fd, SHUT_WR) == 0 && hear(fd, "3");
}

/* Of six octets two are read: four stay in the library, and none in TCP. */
static bool poll_server(int fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN | POLLOUT }, { .fd = -1 } };
	fd_set in, out;
	struct timeval t = { .tv_sec = 5 };
	int n = 0;

	NEED(word(fd, "1"));
	NEED(poll(p, 2, 5000) == 1 && p[0].revents & POLLOUT);
	p[0].events = POLLIN;
	NEED(poll(p, 2, 5000) == 1 && p[0].revents == POLLIN);
	NEED(hear(fd, "ab"));
	NEED(poll(p, 2, -1) == 1 && p[0].revents == POLLIN);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	NEED(select(fd + 1, &in, &out, NULL, &t) == 2 && FD_ISSET(fd, &in) && FD_ISSET(fd, &out));
	NEED(ioctl(fd, FIONREAD, &n) == 0 && n == 4);
	NEED(hear(fd, "cdef"));
	NEED(poll(p, 2, 0) == 0);
	NEED(word(fd, "2"));
	p[0].events = POLLIN | POLLRDHUP;
	NEED(poll(p, 2, 5000) == 1 && p[0].revents == (POLLIN | POLLRDHUP));
	return word(fd, "3");
}

/* ---- epoll ---- */

static bool told(int ep, int ms, unsigned int events, unsigned int data)
{
	struct epoll_event ev[4];
	int n = epoll_wait(ep, ev, 4, ms);

	if (!events)
		return n == 0;
	if (n != 1 || (ev[0].events & events) != events || ev[0].data.u32 != data)
		printf("# epoll: %d, events %x, data %u\n", n, n > 0 ? ev[0].events : 0, n > 0 ? ev[0].data.u32 : 0);
	return n == 1 && (ev[0].events & events) == events && ev[0].data.u32 == data;
}

static bool ask(int ep, int op, int fd, unsigned int events, unsigned int data)
{
	struct epoll_event ev = { .events = events, .data.u32 = data };

	return !epoll_ctl(ep, op, fd, &ev);
}

static bool epoll_client(int fd)
{
	NEED(word(fd, "abcd") && hear(fd, "1"));
	NEED(word(fd, "ef") && hear(fd, "2"));
	NEED(word(fd, "gh") && hear(fd, "3"));
	NEED(word(fd, "ij") && hear(fd, "4"));
	NEED(word(fd, "kl") && hear(fd, "5"));
	return shutdown(fd, SHUT_WR) == 0 && hear(fd, "6");
}

static bool epoll_server(int fd)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), pipes[2];

	NEED(!pipe(pipes) && ask(ep, EPOLL_CTL_ADD, pipes[0], EPOLLIN, 9));
	NEED(ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 7));
	NEED(!ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 7) && errno == EEXIST);
	NEED(told(ep, 5000, EPOLLIN, 7) && hear(fd, "ab"));
	NEED(told(ep, 5000, EPOLLIN, 7) && told(ep, 5000, EPOLLIN, 7));
	NEED(hear(fd, "cd") && told(ep, 0, 0, 0));
	NEED(ask(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET, 8));
	NEED(word(fd, "1") && told(ep, 5000, EPOLLIN, 8) && told(ep, 30, 0, 0));
	NEED(hear(fd, "ef") && told(ep, 0, 0, 0));
	NEED(word(fd, "2") && told(ep, 5000, EPOLLIN, 8) && hear(fd, "gh"));
	NEED(ask(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 5));
	NEED(word(fd, "3") && told(ep, 5000, EPOLLIN, 5) && told(ep, 30, 0, 0));
	NEED(ask(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 6));
	NEED(told(ep, 5000, EPOLLIN, 6) && hear(fd, "ij"));
	NEED(ask(ep, EPOLL_CTL_MOD, fd, EPOLLOUT, 4) && told(ep, 5000, EPOLLOUT, 4));
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL) && word(fd, "4") && wait_in(fd) && told(ep, 0, 0, 0));
	NEED(hear(fd, "kl") && ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, 3));
	NEED(word(fd, "5") && told(ep, 5000, EPOLLIN | EPOLLRDHUP, 3));
	NEED(write(pipes[1], "x", 1) == 1 && word(fd, "6"));
	close(fd);
	NEED(told(ep, 5000, EPOLLIN, 9));
	close(ep);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

/* What a child closes of its own, or one of vfork() that has borrowed the memory, its parent still waits for. */
static bool spawn_server(int fd)
{
	int ep = epoll_create1(0), status;
	pid_t pid;

	NEED(ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 7) && told(ep, 5000, EPOLLIN, 7) && hear(fd, "hello"));
	NEED(told(ep, 0, 0, 0));
	pid = fork();
	if (!pid) {
		close(fd);
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid && word(fd, "1") && told(ep, 5000, EPOLLIN, 7) && hear(fd, "a"));
	pid = vfork();
	if (!pid) {
		close(fd);
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid && word(fd, "2") && told(ep, 5000, EPOLLIN, 7) && hear(fd, "b"));
	close(ep);
	return word(fd, "3");
}

static bool spawn_client(int fd)
{
	NEED(word(fd, "hello") && hear(fd, "1"));
	NEED(word(fd, "a") && hear(fd, "2"));
	return word(fd, "b") && hear(fd, "3");
}

/* Both ways at once by one thread, edges alone. */
static bool edges(int fd)
{
	static unsigned char buf[70001];
	size_t sent = 0, got = 0;
	int ep = epoll_create1(0), n;
	struct epoll_event ev;
	ssize_t rv;

	non_blocking(fd);
	NEED(ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, 1));
	while (sent < BULK || got < BULK) {
		n = epoll_wait(ep, &ev, 1, 10000);
		NEED(n == 1);
		while (got < BULK && (rv = read(fd, buf, BULK - got < sizeof(buf) ? BULK - got : sizeof(buf))) > 0) {
			NEED(is_right(buf, got, (size_t)rv));
			got += (size_t)rv;
		}
		do {
			size_t len = BULK - sent < sizeof(buf) ? BULK - sent : sizeof(buf);

			fill(buf, sent, len);
			rv = len ? write(fd, buf, len) : -1;
			sent += rv > 0 ? (size_t)rv : 0;
		} while (rv > 0);
	}
	close(ep);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return true;
}

static bool edges_client(int fd)
{
	return edges(fd) && hear(fd, "bye");
}

static bool edges_server(int fd)
{
	return edges(fd) && word(fd, "bye");
}

/* ---- threads ---- */

static void *sender(void *arg)
{
	return send_bulk(*(int *)arg, 0, BULK) ? NULL : arg;
}

static bool duplex(int fd)
{
	pthread_t t;
	void *failed = NULL;

	NEED(!pthread_create(&t, NULL, sender, &fd));
	NEED(recv_bulk(fd, 0, BULK));
	pthread_join(t, &failed);
	return !failed;
}

static bool duplex_client(int fd)
{
	return duplex(fd) && hear(fd, "bye");
}

static bool duplex_server(int fd)
{
	return duplex(fd) && word(fd, "bye");
}

/* ---- descriptors and processes ---- */

static bool dup_server(int fd)
{
	int other = dup(fd), third;

	NEED(other >= 0 && hear(other, "hello"));
	third = dup2(other, 200);
	close(other);
	close(fd);
	NEED(word(third, "HELLO"));
	close(third);
	return true;
}

static bool fork_server(int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!echo_server(fd));
	close(fd);
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool exec_server(int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		dup2(fd, 0);
		close(fd);
		execl(self, self, "serve-at", "0", NULL);
		_exit(127);
	}
	close(fd);
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool names_client(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	NEED(!getpeername(fd, (struct sockaddr *)&a, &len) && a.sin_port == addr.sin_port);
	return echo_client(fd);
}

static bool names_server(int fd)
{
	struct sockaddr_in a, b;
	socklen_t len = sizeof(a);
	struct tcp_info info;
	int one = 1, error = -1;

	NEED(!getpeername(fd, (struct sockaddr *)&a, &len) && a.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	NEED(!getsockname(fd, (struct sockaddr *)&b, &len) && b.sin_port == addr.sin_port);
	len = sizeof(info);
	NEED(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_state == TCP_ESTABLISHED);
	NEED(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	len = sizeof(error);
	NEED(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	return echo_server(fd);
}

static bool stdio_client(int fd)
{
	FILE *f = fdopen(dup(fd), "r+");
	char line[64];

	NEED(f && fileno(f) > 2);
	NEED(fputs("hello\n", f) >= 0 && !fflush(f));
	NEED(fgets(line, sizeof(line), f) && !strcmp(line, "HELLO 1\n"));
	return !fclose(f);
}

static bool stdio_server(int fd)
{
	NEED(hear(fd, "hello\n"));
	return dprintf(fd, "HELLO %d\n", 1) == 8;
}

/* What a compiler makes of calls with _FORTIFY_SOURCE. */
#define CHECKED(type, name, ...) \
	type (*name)(__VA_ARGS__) = (__typeof__(name))dlsym(RTLD_DEFAULT, "__" #name)

static bool checked_client(int fd)
{
	CHECKED(int, dprintf_chk, int fd, int flag, const char *fmt, ...);

	NEED(dprintf_chk(fd, 1, "HELLO %d", 12) == 8);
	NEED(hear(fd, "1") && sendto(fd, "more", 4, MSG_NOSIGNAL, NULL, 0) == 4);
	return hear(fd, "2");
}

static bool checked_server(int fd)
{
	CHECKED(ssize_t, read_chk, int fd, void *buf, size_t len, size_t room);
	CHECKED(ssize_t, recv_chk, int fd, void *buf, size_t len, size_t room, int flags);
	CHECKED(ssize_t, recvfrom_chk, int fd, void *buf, size_t len, size_t room, int flags,
		struct sockaddr *a, socklen_t *a_len);
	CHECKED(int, poll_chk, struct pollfd *p, nfds_t n, int ms, size_t room);
	CHECKED(int, ppoll_chk, struct pollfd *p, nfds_t n, const struct timespec *t,
		const sigset_t *mask, size_t room);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct timespec t = { .tv_sec = 10 };
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char buf[8] = "";

	NEED(recv_chk(fd, buf, 2, sizeof(buf), MSG_WAITALL) == 2 && !memcmp(buf, "HE", 2));
	/* A connected socket has no other peer to name. */
	NEED(recvfrom_chk(fd, buf, 4, sizeof(buf), MSG_WAITALL, (struct sockaddr *)&from, &len) == 4);
	NEED(!memcmp(buf, "LLO ", 4) && !len);
	NEED(read_chk(fd, buf, 1, sizeof(buf)) == 1 && hear(fd, "2") && word(fd, "1"));
	NEED(poll_chk(&p, 1, 10000, sizeof(p)) == 1 && p.revents == POLLIN);
	NEED(ppoll_chk(&p, 1, &t, NULL, sizeof(p)) == 1 && p.revents == POLLIN);
	return hear(fd, "more") && word(fd, "2");
}

/* With a signal mask, and times in nanoseconds. */
static bool masked_client(int fd)
{
	NEED(hear(fd, "1") && word(fd, "x"));
	return hear(fd, "2");
}

static bool masked_server(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	const struct timespec soon = { .tv_nsec = 1000 }, late = { .tv_sec = 10 };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	sigset_t none;
	fd_set in;

	sigemptyset(&none);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) && !pselect(fd + 1, &in, NULL, NULL, &soon, &none));
	NEED(!epoll_pwait(ep, &ev, 1, 0, &none) && !epoll_pwait2(ep, &ev, 1, &soon, &none));
	NEED(word(fd, "1"));
	FD_SET(fd, &in);
	NEED(pselect(fd + 1, &in, NULL, NULL, &late, &none) == 1 && FD_ISSET(fd, &in));
	NEED(epoll_pwait(ep, &ev, 1, 10000, &none) == 1 && ev.events == EPOLLIN);
	NEED(epoll_pwait2(ep, &ev, 1, &late, &none) == 1 && ev.events == EPOLLIN);
	return hear(fd, "x") && word(fd, "2") && !close(ep);
}

static bool file_client(int fd)
{
	NEED(recv_bulk(fd, 0, 300000));
	return word(fd, "ok");
}

static bool file_server(int fd)
{
	static unsigned char buf[300000];
	FILE *f = tmpfile();
	off_t at = 0;
	ssize_t n;

	fill(buf, 0, sizeof(buf));
	NEED(f && fwrite(buf, sizeof(buf), 1, f) == 1 && !fflush(f));
	while (at < 200000) {
		n = sendfile(fd, fileno(f), &at, 200000 - (size_t)at);
		NEED(n > 0);
	}
	NEED(lseek(fileno(f), 200000, SEEK_SET) == 200000);
	for (; at < 300000; at += n) {
		n = sendfile(fd, fileno(f), NULL, 300000);
		NEED(n > 0);
	}
	NEED(sendfile(fd, fileno(f), NULL, 10) == 0);
	fclose(f);
	return hear(fd, "ok");
}

/* ---- connect that does not wait ---- */

static int dial_later(int ep)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (ep >= 0 && !ask(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, 3))
		return -1;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno != EINPROGRESS)
		return -1;
	return fd;
}

static bool later_client(int fd)
{
	struct pollfd p;
	int error = -1, ep = epoll_create1(0);
	socklen_t len = sizeof(error);
	struct epoll_event ev;

	NEED(echo_client(fd));
	p = (struct pollfd){ .fd = dial_later(-1), .events = POLLOUT };
	NEED(p.fd >= 0 && poll(&p, 1, 5000) == 1 && p.revents == POLLOUT);
	NEED(!getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	fcntl(p.fd, F_SETFL, 0);
	NEED(echo_client(p.fd));
	close(p.fd);
	fd = dial_later(ep);
	do
		NEED(epoll_wait(ep, &ev, 1, 5000) == 1 && ev.data.u32 == 3);
	while (!(ev.events & EPOLLOUT) || ev.events & EPOLLHUP);
	fcntl(fd, F_SETFL, 0);
	NEED(echo_client(fd));
	close(fd);
	close(ep);
	return true;
}

static bool later_server(int fd)
{
	int i, next;

	NEED(echo_server(fd));
	for (i = 0; i < 2; i++) {
		next = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		NEED(next >= 0 && echo_server(next));
		close(next);
	}
	return true;
}

static bool refused_client(int fd)
{
	struct sockaddr_in a = addr;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;
	struct pollfd p = { .fd = s, .events = POLLOUT };
	socklen_t len = sizeof(error);
	char c;

	a.sin_port = htons(1);
	NEED(echo_client(fd));
	NEED(connect(s, (struct sockaddr *)&a, sizeof(a)) < 0);
	if (errno == EINPROGRESS) {
		NEED(poll(&p, 1, 5000) == 1 && p.revents & POLLERR);
		NEED(!getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len));
		errno = error;
	}
	NEED(errno == ECONNREFUSED);
	NEED(recv(s, &c, 1, 0) <= 0);
	close(s);
	return true;
}

/* By the kernel's own calls. */
static bool plain_client(int fd)
{
	long s = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	char buf[16];
	int i;

	NEED(echo_client(fd) && s >= 0 && !syscall(SYS_connect, s, &addr, sizeof(addr)));
	for (i = 0; i < 2; i++) {
		NEED(syscall(SYS_write, s, "hello", 5) == 5);
		NEED(syscall(SYS_read, s, buf, sizeof(buf)) == 5 && !memcmp(buf, "HELLO", 5));
	}
	return !syscall(SYS_close, s);
}

/* The number of a client that has been served already comes over exec. */
static bool plain_server(int fd)
{
	int status, plain;
	char number[16];
	pid_t pid;

	NEED(echo_server(fd));
	plain = accept(listener, NULL, NULL);
	NEED(plain >= 0 && echo_server(plain));
	snprintf(number, sizeof(number), "%d", plain);
	pid = fork();
	if (!pid) {
		execl(self, self, "serve-at", number, NULL);
		_exit(127);
	}
	close(plain);
	return waitpid(pid, &status, 0) == pid && !status;
}

/* ---- cases ---- */

static const struct a_case {
	const char *name;
	bool (*server)(int fd), (*client)(int fd);
} cases[] = {
	{ "send-and-recv", echo_server, echo_client },
	{ "megabytes-each-way", bulk_server, bulk_client },
	{ "turns", turns_server, turns_client },
	{ "vectors", vectors_server, vectors_client },
	{ "flags", flags_server, flags_client },
	{ "half-closed", half_server, half_client },
	{ "broken-pipe", pipe_server, pipe_client },
	{ "data-sent-before-close-arrives", close_server, close_client },
	{ "timeouts", time_server, time_client },
	{ "signals", signal_server, signal_client },
	{ "poll-and-select", poll_server, poll_client },
	{ "epoll", epoll_server, epoll_client },
	{ "children-close", spawn_server, spawn_client },
	{ "edges-both-ways", edges_server, edges_client },
	{ "threads-both-ways", duplex_server, duplex_client },
	{ "dup", dup_server, echo_client },
	{ "fork-serves-and-parent-closes", fork_server, echo_client },
	{ "exec-serves", exec_server, echo_client },
	{ "exec-goes-on-to-serve-a-plain-client", plain_server, plain_client },
	{ "names-and-options", names_server, names_client },
	{ "stdio", stdio_server, stdio_client },
	{ "calls-of-a-hardened-program", checked_server, checked_client },
	{ "waits-with-a-signal-mask", masked_server, masked_client },
	{ "sendfile", file_server, file_client },
	{ "connect-without-waiting", later_server, later_client },
	{ "refused", echo_server, refused_client },
};

static bool run(const void *a_case)
{
	const struct a_case *c = a_case;
	pid_t pid;
	int status = -1, fd;
	bool ok;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(listener);
		fd = dial();
		ok = fd >= 0 && c->client(fd);
		fflush(stdout);
		close(fd);
		_exit(!ok);
	}
	fd = accept(listener, NULL, NULL);
	ok = fd >= 0 && c->server(fd);
	close(fd);
	return waitpid(pid, &status, 0) == pid && !status && ok;
}

int main(int argc, char **argv)
{
	const struct cases all = { CASES(cases), .run = run, .seconds = 30 };

	self = argv[0];
	if (argc > 2 && !strcmp(argv[1], "serve-at"))
		return !echo_server(atoi(argv[2]));
	return pipe(bell) || !listen_at(argv[1]) || run_cases(&all, argc > 2 ? argv[2] : NULL);
}
