// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: what TCP's calls do if threads share a socket, if a descriptor is closed under a
 * waiting thread, and how a process may end; TAP. Both ends are in this process, or its child: the
 * accepted socket is the case's, the other a thread's. It knows nothing of iWARP, like
 * socket-calls.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "socket-cases.h"

#define BULK	(24u << 20)

/* ---- octets, threads, time ---- */

static unsigned char octet(size_t at)
{
	return (unsigned char)(at * 7 + (at >> 8) * 13 + (at >> 16) * 31);
}

static bool send_bulk(int fd, size_t len)
{
	static __thread unsigned char buf[150001];
	size_t n, at, i;
	ssize_t rv;

	for (at = 0; at < len; at += (size_t)rv) {
		n = len - at < sizeof(buf) ? len - at : sizeof(buf);
		for (i = 0; i < n; i++)
			buf[i] = octet(at + i);
		rv = send(fd, buf, n, MSG_NOSIGNAL);
		NEED(rv > 0);
	}
	return true;
}

/* As much as goes without waiting. */
static size_t send_some(int fd)
{
	static unsigned char buf[20000];
	size_t at = 0, i;
	ssize_t rv;

	do {
		for (i = 0; i < sizeof(buf); i++)
			buf[i] = octet(at + i);
		rv = send(fd, buf, sizeof(buf), MSG_NOSIGNAL | MSG_DONTWAIT);
		at += rv > 0 ? (size_t)rv : 0;
	} while (rv > 0);
	return at;
}

/* To the end; between reads, @pause_us. */
static bool recv_bulk(int fd, size_t len, unsigned int pause_us)
{
	static __thread unsigned char buf[130003];
	size_t at = 0;
	ssize_t rv, i;

	while (at < len) {
		rv = recv(fd, buf, sizeof(buf), 0);
		NEED(rv > 0);
		for (i = 0; i < rv; i++)
			NEED(buf[i] == octet(at + (size_t)i));
		at += (size_t)rv;
		if (pause_us)
			usleep(pause_us);
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

static long ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* TCP has octets at @fd. FIONREAD would take them: the memory that they need tells. */
static bool has_arrived(int fd)
{
	unsigned int memory[9] = { 0 };
	socklen_t len = sizeof(memory);
	long until = ms_now() + 20000;

	while (!memory[0] && ms_now() < until)
		NEED(!getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len));
	return memory[0];
}

struct task {
	pthread_t thread;
	bool (*run)(int fd);
	int fd;
	volatile pid_t tid;
	volatile bool ok, done;
};

static void *run_task(void *arg)
{
	struct task *t = arg;

	t->tid = (pid_t)syscall(SYS_gettid);
	t->ok = t->run(t->fd);
	t->done = true;
	return NULL;
}

static bool begin_task(struct task *t, bool (*run)(int fd), int fd)
{
	*t = (struct task){ .run = run, .fd = fd };
	return !pthread_create(&t->thread, NULL, run_task, t);
}

static bool end_task(struct task *t)
{
	return !pthread_join(t->thread, NULL) && t->ok;
}

static char state_of(pid_t tid)
{
	char path[64], text[256] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	at = strrchr(text, ')');
	return at ? at[2] : '?';
}

/* It waits, and not for a lock that somebody has for a moment. */
static bool sleeps(struct task *t)
{
	long until = ms_now() + 20000;
	int n = 0;

	while (n < 30 && !t->done && ms_now() < until) {
		n = t->tid && state_of(t->tid) == 'S' ? n + 1 : 0;
		usleep(1000);
	}
	return n == 30;
}

static bool is_done_within(struct task *t, int ms)
{
	long until = ms_now() + ms;

	while (!t->done && ms_now() < until)
		usleep(1000);
	return t->done;
}

/* @room: for octets that are not read yet; 0: as TCP has it. */
static int dial_with(int room)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (room)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -1 : fd;
}

/* A client whose socket only the kernel holds. */
static int dial_raw(void)
{
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);

	return syscall(SYS_connect, fd, &addr, sizeof(addr)) ? -1 : fd;
}

/* ---- the other end ---- */

static bool greets(int fd)
{
	return word(fd, "hello") && hear(fd, "HELLO");
}

/* Both ends of a connection that is in use: [0] was accepted. */
static bool connect_with(int fd[2], int room)
{
	struct task t;

	fd[1] = dial_with(room);
	fd[0] = accept(listener, NULL, NULL);
	NEED(fd[0] >= 0 && fd[1] >= 0 && begin_task(&t, greets, fd[1]));
	NEED(hear(fd[0], "hello") && word(fd[0], "HELLO"));
	return end_task(&t);
}

static bool connect_pair(int fd[2])
{
	return connect_with(fd, 0);
}

static bool close_pair(const int fd[2])
{
	close(fd[1]);
	close(fd[0]);
	return true;
}

/* ---- one takes what another waits for ---- */

static volatile bool stop;

static bool waits_by_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	while (!stop)
		epoll_wait(ep, &ev, 1, 50);
	close(ep);
	return true;
}

static bool asks_how_much(int fd)
{
	int n;

	while (!stop)
		ioctl(fd, FIONREAD, &n);
	return true;
}

static bool sends_bulk(int fd)
{
	return send_bulk(fd, BULK);
}

static bool reads_slowly(int fd)
{
	return recv_bulk(fd, BULK, 1000);
}

static bool no_more;		/* numbers, once there is a connection */

/* As many descriptors as there are now. */
static bool take_numbers(void)
{
	struct rlimit most;
	int next = dup(0);

	NEED(next >= 0 && !close(next) && !getrlimit(RLIMIT_NOFILE, &most));
	most.rlim_cur = (rlim_t)next;
	NEED(!setrlimit(RLIMIT_NOFILE, &most) && dup(0) < 0 && errno == EMFILE);
	return true;
}

static bool sends_beside(bool (*other)(int fd))
{
	struct task sender, reader, taker;
	int fd[2];
	bool ok;

	NEED(connect_pair(fd) && (!no_more || take_numbers()));
	stop = false;
	NEED(begin_task(&taker, other, fd[0]) && begin_task(&reader, reads_slowly, fd[1]));
	NEED(begin_task(&sender, sends_bulk, fd[0]));
	ok = is_done_within(&sender, 90000);
	stop = true;
	if (!ok)
		return say(__LINE__, "the sender sleeps on");
	NEED(end_task(&taker) && end_task(&sender) && end_task(&reader));
	return close_pair(fd);
}

static bool beside_epoll(void)
{
	return sends_beside(waits_by_epoll);
}

static bool beside_fionread(void)
{
	return sends_beside(asks_how_much);
}

/* There is no number for what is rung for a thread that sleeps: it is to wake nevertheless. */
static bool without_numbers(void)
{
	struct rlimit most;
	bool ok;

	NEED(!getrlimit(RLIMIT_NOFILE, &most));
	no_more = true;
	ok = sends_beside(asks_how_much);
	no_more = false;
	NEED(!setrlimit(RLIMIT_NOFILE, &most));
	return ok;
}

static bool hears_a(int fd)
{
	return hear(fd, "a");
}

/* Each of two waits in recv() for one octet. */
static bool two_readers(void)
{
	struct task one, two;
	int fd[2], i;

	NEED(connect_pair(fd));
	for (i = 0; i < 200; i++) {
		NEED(begin_task(&one, hears_a, fd[0]) && begin_task(&two, hears_a, fd[0]));
		NEED(word(fd[1], i & 1 ? "aa" : "a") && (i & 1 || word(fd[1], "a")));
		NEED(is_done_within(&one, 20000) && is_done_within(&two, 20000));
		NEED(end_task(&one) && end_task(&two));
	}
	return close_pair(fd);
}

/* A blocked reader wakes if another thread shuts the socket. */
static bool reads_the_end(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0;
}

static bool shut_under_reader(void)
{
	struct task reader;
	int fd[2];

	NEED(connect_pair(fd) && begin_task(&reader, reads_the_end, fd[0]) && sleeps(&reader));
	NEED(!shutdown(fd[0], SHUT_RD) && is_done_within(&reader, 20000) && end_task(&reader));
	return close_pair(fd);
}

/*
 * Edges: each message is read exactly, so that nothing was short. The next comes while the program sends, and
 * finds no room.
 */
static bool edge_behind_send(void)
{
	static char big[1 << 20];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int fd[2], ep = epoll_create1(0);
	struct pollfd p;
	char c[8];

	NEED(connect_pair(fd));
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && word(fd[1], "first"));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && recv(fd[0], c, 5, 0) == 5);
	while (send(fd[0], big, sizeof(big), 0) > 0)
		;
	NEED(word(fd[1], "again"));
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	NEED(poll(&p, 1, 20000) == 1);
	while (send(fd[0], big, sizeof(big), 0) > 0)
		;
	NEED(errno == EAGAIN);
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events & EPOLLIN);
	NEED(recv(fd[0], c, 5, 0) == 5 && !memcmp(c, "again", 5));
	close(ep);
	return close_pair(fd);
}

/* A writable socket with octets in TCP is reported as readable, too. */
static bool told_of_both(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT };
	int fd[2], ep = epoll_create1(0);
	struct timeval none = { 0 };
	fd_set in, out;
	struct pollfd p;

	NEED(connect_pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLOUT);
	NEED(word(fd[1], "a") && has_arrived(fd[0]));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == (EPOLLIN | EPOLLOUT) && hear(fd[0], "a"));
	NEED(word(fd[1], "b") && has_arrived(fd[0]));
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN | POLLOUT };
	NEED(poll(&p, 1, 20000) == 1 && p.revents == (POLLIN | POLLOUT) && hear(fd[0], "b"));
	/* By their other names. */
	p.events = POLLRDNORM;
	NEED(word(fd[1], "d") && poll(&p, 1, 20000) == 1 && p.revents == POLLRDNORM && hear(fd[0], "d"));
	p.events = POLLWRNORM;
	NEED(poll(&p, 1, 20000) == 1 && p.revents == POLLWRNORM);
	NEED(word(fd[1], "c") && has_arrived(fd[0]));
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd[0], &in);
	FD_SET(fd[0], &out);
	NEED(select(fd[0] + 1, &in, &out, NULL, &none) == 2 && FD_ISSET(fd[0], &in) && hear(fd[0], "c"));
	NEED(word(fd[1], "d") && has_arrived(fd[0]));
	ev.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLONESHOT;
	NEED(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &ev) && epoll_wait(ep, &ev, 1, 20000) == 1);
	NEED(ev.events == (EPOLLIN | EPOLLOUT) && hear(fd[0], "d"));
	close(ep);
	return close_pair(fd);
}

/* The end of a half is one edge: it comes beside octets that wait, and not again when it was read. */
static bool edges_of_ends(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int fd[2], ep = epoll_create1(0), i;
	char c[8];

	NEED(connect_pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && word(fd[1], "octets"));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && !epoll_wait(ep, &ev, 1, 50));
	NEED(!shutdown(fd[0], SHUT_RD) && epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLIN);
	NEED(close_pair(fd) && connect_pair(fd));
	ev.events = EPOLLIN | EPOLLET;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && !shutdown(fd[1], SHUT_WR));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1);
	for (i = 0; i < 3; i++)
		NEED(recv(fd[0], c, sizeof(c), 0) == 0 && !epoll_wait(ep, &ev, 1, 50));
	close(ep);
	return close_pair(fd);
}

#define CROWD	100

/* More have an edge at once than fit into one look. */
static bool edges_of_a_crowd(void)
{
	static int fd[CROWD][2];
	struct epoll_event ev[2 * CROWD];
	int ep = epoll_create1(0), i, n, told = 0;
	char c;

	for (i = 0; i < CROWD; i++) {
		ev[0] = (struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.fd = i };
		NEED(connect_pair(fd[i]) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[i][0], &ev[0]));
	}
	NEED(!epoll_wait(ep, ev, 2 * CROWD, 50));
	for (i = 0; i < CROWD; i++)
		NEED(word(fd[i][1], "a"));
	for (; told < CROWD; told += n) {
		n = epoll_wait(ep, ev, 2 * CROWD, 20000);
		NEED(n > 0);
		for (i = 0; i < n; i++)
			NEED(recv(fd[ev[i].data.fd][0], &c, 1, MSG_DONTWAIT) == 1);
	}
	for (i = 0; i < CROWD; i++)
		close_pair(fd[i]);
	return !close(ep);
}

/* @op asks for edges of a socket that is writable, and has in TCP what it was not told of. */
static bool edges_of_both(int op)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int fd[2], ep = epoll_create1(0), most = 4;
	unsigned int told = 0;

	NEED(connect_pair(fd));
	if (op == EPOLL_CTL_MOD)
		NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && epoll_wait(ep, &ev, 1, 20000) == 1);
	NEED(word(fd[1], "a") && has_arrived(fd[0]));
	ev.events = EPOLLIN | EPOLLOUT | EPOLLET;
	NEED(!epoll_ctl(ep, op, fd[0], &ev));
	for (; told != (EPOLLIN | EPOLLOUT) && most; most--) {
		struct epoll_event got[4];

		NEED(epoll_wait(ep, got, 4, 20000) == 1);
		told |= got[0].events;
	}
	NEED(told == (EPOLLIN | EPOLLOUT) && hear(fd[0], "a"));
	close(ep);
	return close_pair(fd);
}

static bool both_edges(void)
{
	return edges_of_both(EPOLL_CTL_ADD) && edges_of_both(EPOLL_CTL_MOD);
}

static int shared_epoll;

/* It ignores the events. */
static bool waits_for_one(int fd)
{
	struct epoll_event ev;

	(void)fd;
	return epoll_wait(shared_epoll, &ev, 1, -1) == 1;
}

static bool ask_once(int op, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = fd };

	return !epoll_ctl(shared_epoll, op, fd, &ev);
}

/* Two become ready at once, and of two threads each takes one. */
static bool two_by_epoll(void)
{
	int one[2], two[2], i, n;
	struct task a, b;

	shared_epoll = epoll_create1(0);
	NEED(connect_pair(one) && connect_pair(two));
	NEED(ask_once(EPOLL_CTL_ADD, one[0]) && ask_once(EPOLL_CTL_ADD, two[0]));
	for (i = 0; i < 100; i++) {
		struct epoll_event ev;

		NEED(word(one[1], "a") && word(two[1], "a"));
		/* Both are reported, and stay readable. */
		for (n = 0; !i && n < 2; n++)
			NEED(epoll_wait(shared_epoll, &ev, 1, 20000) == 1);
		do
			NEED(!ioctl(one[0], FIONREAD, &n));
		while (!n);
		do
			NEED(!ioctl(two[0], FIONREAD, &n));
		while (!n);
		NEED(begin_task(&a, waits_for_one, -1) && begin_task(&b, waits_for_one, -1));
		if (i < 10)
			NEED(sleeps(&a) && sleeps(&b));
		NEED(ask_once(EPOLL_CTL_MOD, one[0]) && ask_once(EPOLL_CTL_MOD, two[0]));
		NEED(is_done_within(&a, 20000) && is_done_within(&b, 20000) && end_task(&a) && end_task(&b));
		NEED(hear(one[0], "a") && hear(two[0], "a"));
	}
	close(shared_epoll);
	return close_pair(one) && close_pair(two);
}

/* A thread waits at an epoll as another adds its first socket, and wakes for it. */
static bool waits_for_first(int fd)
{
	struct epoll_event ev = { 0 };

	return epoll_wait(shared_epoll, &ev, 1, 40000) == 1 && ev.events == EPOLLIN && ev.data.fd == fd;
}

static bool first_under_waiter(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct task a, b;
	int fd[2];

	shared_epoll = epoll_create1(0);
	NEED(connect_pair(fd) && begin_task(&a, waits_for_first, fd[0]) && begin_task(&b, waits_for_first, fd[0]));
	NEED(sleeps(&a) && sleeps(&b));
	ev.data.fd = fd[0];
	NEED(!epoll_ctl(shared_epoll, EPOLL_CTL_ADD, fd[0], &ev));
	usleep(50000);
	NEED(!a.done && !b.done && word(fd[1], "a"));
	NEED(is_done_within(&a, 20000) && is_done_within(&b, 20000) && end_task(&a) && end_task(&b));
	NEED(hear(fd[0], "a"));
	close(shared_epoll);
	return close_pair(fd);
}

static pthread_barrier_t givers;

static bool gives(int fd)
{
	struct epoll_event ev = { .events = EPOLLOUT, .data.fd = fd };
	bool ok = true;

	for (pthread_barrier_wait(&givers); !stop; pthread_barrier_wait(&givers)) {
		ok &= !epoll_ctl(shared_epoll, EPOLL_CTL_ADD, fd, &ev);
		pthread_barrier_wait(&givers);
	}
	return ok;
}

/* Two threads give a new epoll its first sockets at once, and it tells of both. */
static bool two_give_the_first(void)
{
	struct epoll_event ev[2];
	struct task tasks[2];
	int fd[2][2], i;

	stop = false;
	pthread_barrier_init(&givers, NULL, 3);
	for (i = 0; i < 2; i++)
		NEED(connect_pair(fd[i]) && begin_task(&tasks[i], gives, fd[i][0]));
	for (i = 0; i < 2000; i++) {
		bool told[2] = { false, false };
		long until = ms_now() + 20000;

		shared_epoll = epoll_create1(0);
		pthread_barrier_wait(&givers);
		pthread_barrier_wait(&givers);
		while (!(told[0] && told[1])) {
			NEED(ms_now() < until && epoll_wait(shared_epoll, ev, 1, 20000) == 1);
			told[ev[0].data.fd == fd[1][0]] = true;
		}
		close(shared_epoll);
	}
	stop = true;
	pthread_barrier_wait(&givers);
	return end_task(&tasks[0]) && end_task(&tasks[1]) && close_pair(fd[0]) && close_pair(fd[1]);
}

/* The socket in the epoll @ep is reported once, with @word. */
static bool is_told(int ep, unsigned int word)
{
	struct epoll_event ev = { 0 };

	return epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLIN && ev.data.u32 == word;
}

static bool out_and_in(unsigned int how)
{
	struct epoll_event ev = { .events = EPOLLIN | how, .data.u32 = 1 }, none;
	int fd[2], ep = epoll_create1(0);

	NEED(connect_pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	NEED(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && errno == EEXIST);
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	NEED(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL) && errno == ENOENT);
	NEED(epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &ev) && errno == ENOENT);
	/* It is not reported while it is out, and with all its events once it is in. */
	NEED(word(fd[1], "a") && !epoll_wait(ep, &none, 1, 100) && !epoll_wait(ep, &none, 1, 0));
	ev.data.u32 = 2;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && is_told(ep, 2));
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	ev.data.u32 = 3;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && is_told(ep, 3) && hear(fd[0], "a"));
	/* What it is asked for in between is another thing. */
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	ev.events = EPOLLOUT | how;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && epoll_wait(ep, &none, 1, 20000) == 1);
	NEED(none.events == EPOLLOUT && !epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	ev.events = EPOLLIN | how;
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && !epoll_wait(ep, &none, 1, 50));
	NEED(word(fd[1], "b") && is_told(ep, 3) && hear(fd[0], "b"));
	/* Out, and closed: its number is another's. */
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL) && close_pair(fd) && connect_pair(fd));
	ev.data.u32 = 4;
	NEED(word(fd[1], "c") && !epoll_wait(ep, &none, 1, 50));
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && is_told(ep, 4) && hear(fd[0], "c"));
	close(ep);
	return close_pair(fd);
}

static bool out_and_in_levels(void) { return out_and_in(0); }
static bool out_and_in_edges(void) { return out_and_in(EPOLLET); }
static bool out_and_in_once(void) { return out_and_in(EPOLLONESHOT); }

/* A child that closes what its parent had taken out, and has put in since, takes nothing out. */
static bool out_over_fork(void)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 1 };
	int fd[2], pipes[2], status, ep = epoll_create1(0);
	pid_t pid;
	char c;

	NEED(connect_pair(fd) && !pipe(pipes) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	NEED(!epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], NULL));
	pid = fork();
	if (!pid) {
		if (read(pipes[0], &c, 1) != 1)
			_exit(1);
		close(fd[0]);
		_exit(0);
	}
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && write(pipes[1], "x", 1) == 1);
	NEED(waitpid(pid, &status, 0) == pid && !status);
	NEED(word(fd[1], "a") && is_told(ep, 1) && hear(fd[0], "a"));
	close(pipes[0]);
	close(pipes[1]);
	close(ep);
	return close_pair(fd);
}

/* An epoll either has no room for one, or tells of all its octets. */
static bool epoll_without_numbers(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct rlimit most;
	int fd[2], ep = epoll_create1(0), rv;

	NEED(!getrlimit(RLIMIT_NOFILE, &most) && connect_pair(fd) && take_numbers());
	rv = epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev);
	NEED(!rv || errno == ENOMEM);
	NEED(!setrlimit(RLIMIT_NOFILE, &most));
	NEED(!rv || !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	NEED(word(fd[1], "ab") && epoll_wait(ep, &ev, 1, 20000) == 1);
	/* One is left, wherever it is by now. */
	NEED(hear(fd[0], "a") && epoll_wait(ep, &ev, 1, 20000) == 1);
	NEED(hear(fd[0], "b") && epoll_ctl(fd[0], EPOLL_CTL_ADD, fd[1], &ev) < 0 && errno == EINVAL);
	close(ep);
	return close_pair(fd);
}

static pthread_barrier_t both;
static unsigned int spins;

static bool adds(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	volatile unsigned int i;

	pthread_barrier_wait(&both);
	for (i = 0; i < spins; i++)
		;
	return !epoll_ctl(shared_epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* A first use finds what the client is while another thread gives the socket to an epoll. */
static bool added_while_judged(void)
{
	struct epoll_event ev;
	struct task adder;
	int i, fd[2];
	char c;

	pthread_barrier_init(&both, NULL, 2);
	for (i = 0; i < 2000; i++) {
		shared_epoll = epoll_create1(0);
		fd[1] = dial_raw();
		fd[0] = accept(listener, NULL, NULL);
		NEED(fd[0] >= 0 && fd[1] >= 0 && word(fd[1], "a"));
		spins = (unsigned int)(i * 7919) % 12000;
		NEED(begin_task(&adder, adds, fd[0]));
		pthread_barrier_wait(&both);
		NEED(recv(fd[0], &c, 1, MSG_PEEK) == 1 && end_task(&adder));
		NEED(epoll_wait(shared_epoll, &ev, 1, 20000) == 1 && hear(fd[0], "a"));
		close(shared_epoll);
		close_pair(fd);
	}
	return true;
}

static bool accepts_and_closes(int fd)
{
	int i;

	(void)fd;
	for (i = 0; i < 200; i++)
		close(accept(listener, NULL, NULL));
	return true;
}

/* connect() has succeeded, whatever the server does next: octets end, without an error. */
static bool closed_unused(void)
{
	struct task server;
	socklen_t len = sizeof(int);
	int i, fd, error;
	char c;

	NEED(begin_task(&server, accepts_and_closes, 0));
	for (i = 0; i < 200; i++) {
		fd = dial_with(0);
		NEED(fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
		NEED(recv(fd, &c, 1, 0) == 0);
		close(fd);
	}
	return end_task(&server);
}

/* A server sends first to a client that has gone: TCP takes it. */
static bool sent_first_to_a_closed_client(void)
{
	int fd[2];

	fd[1] = dial_with(0);
	fd[0] = accept(listener, NULL, NULL);
	NEED(fd[0] >= 0 && fd[1] >= 0);
	close(fd[1]);
	usleep(50000);
	NEED(word(fd[0], "done!"));
	close(fd[0]);
	return true;
}

/* Of connections from now on, or no longer of @fd: TCP does not see segments with data. */
static bool lose_data(int fd, bool on)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),	/* TCP's header: its length */
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, ~0u),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (!on)
		return !syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_DETACH_FILTER, &prog, sizeof(int));
	return !syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static bool is_greeted(int fd)
{
	return hear(fd, "hello") && word(fd, "HELLO");
}

/* TCP repeats them after 200 and 600 ms: a server that speaks first waits for them. */
static bool first_segment_is_lost(void)
{
	struct task client, server;
	int fd[2];

	NEED(lose_data(listener, true));
	fd[1] = dial_with(0);
	fd[0] = accept(listener, NULL, NULL);
	NEED(fd[0] >= 0 && fd[1] >= 0 && lose_data(listener, false));
	NEED(begin_task(&client, is_greeted, fd[1]) && begin_task(&server, greets, fd[0]));
	usleep(300000);
	NEED(lose_data(fd[0], false) && end_task(&server) && end_task(&client));
	return close_pair(fd);
}

/* EPOLLEXCLUSIVE entries cannot be modified, and are reported, over iWARP and over TCP. */
static bool exclusive(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.u32 = 1 };
	int fd[2], plain[2], ep = epoll_create1(0);

	NEED(connect_pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	ev.events = EPOLLIN;
	NEED(epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &ev) == -1 && errno == EINVAL);
	NEED(!epoll_wait(ep, &ev, 1, 50) && word(fd[1], "a") && is_told(ep, 1) && hear(fd[0], "a"));
	plain[1] = dial_raw();
	plain[0] = accept(listener, NULL, NULL);
	ev = (struct epoll_event){ .events = EPOLLIN | EPOLLEXCLUSIVE, .data.u32 = 2 };
	NEED(plain[0] >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, plain[0], &ev));
	NEED(!epoll_wait(ep, &ev, 1, 50) && word(plain[1], "b") && is_told(ep, 2) && hear(plain[0], "b"));
	close(ep);
	return close_pair(fd) && close_pair(plain);
}

/* Silent clients; each is closed when eight more have connected. */
static bool come_and_go(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT };
	static int pairs[8][2];
	bool ok = true;
	int i;

	(void)fd;
	for (i = 0; i < 1000 && ok; i++) {
		int *at = pairs[i % 8];

		if (i >= 8)
			close_pair(at);
		at[1] = dial_raw();
		at[0] = accept(listener, NULL, NULL);
		ok = at[0] >= 0 && at[1] >= 0 && !epoll_ctl(shared_epoll, EPOLL_CTL_ADD, at[0], &ev);
	}
	for (i = 0; i < 8; i++)
		close_pair(pairs[i]);
	stop = true;
	return ok;
}

/* An epoll is asked, without a wait, while its sockets come and go: what sanitizers have to say of it. */
static bool asked_while_they_go(void)
{
	struct epoll_event ev;
	struct task t;

	stop = false;
	shared_epoll = epoll_create1(0);
	NEED(begin_task(&t, come_and_go, -1));
	while (!stop)
		NEED(epoll_wait(shared_epoll, &ev, 1, 0) >= 0);
	close(shared_epoll);
	return end_task(&t);
}

static volatile int round_begun, round_done;

/* The other thread comes in a moment, if it has a CPU. */
static void spin(unsigned int *times)
{
	if (!(++*times % 4096))
		sched_yield();
}

/* Behind the beginning of each round it takes what there is to the queue, a little later each time. */
static bool looks_ahead(int fd)
{
	volatile unsigned int i;
	unsigned int times = 0;
	int at = 0;
	char c;

	while (!stop) {
		if (round_begun == at) {
			spin(&times);
			continue;
		}
		at = round_begun;
		for (i = 0; i < (unsigned int)(at * 7919) % 1500; i++)
			;
		recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
		round_done = at;
	}
	return true;
}

/* An octet is there, wherever another thread has it at the moment. */
static bool polled_while_moved(void)
{
	unsigned int times = 0;
	struct task other;
	struct pollfd p;
	int fd[2], i, rv;

	NEED(connect_pair(fd));
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	stop = false;
	round_begun = round_done = 0;
	NEED(begin_task(&other, looks_ahead, fd[0]));
	for (i = 1; i <= 2000; i++) {
		NEED(word(fd[1], "a") && has_arrived(fd[0]));
		round_begun = i;
		rv = poll(&p, 1, 0);
		while (round_done != i)
			spin(&times);
		NEED(rv == 1 && hear(fd[0], "a"));
	}
	stop = true;
	return end_task(&other) && close_pair(fd);
}

/* ---- numbers that are closed ---- */

static int result, result_errno;
static char result_text[8];

static bool reads_eight(int fd)
{
	result = (int)recv(fd, result_text, 8, 0);
	result_errno = errno;
	return true;
}

static bool says_first(int fd)
{
	return word(fd, "first");
}

static bool says_second(int fd)
{
	return word(fd, "second");
}

/* A reader of the old socket does not read octets of the new one with its number. */
static bool closed_and_reused(void)
{
	struct task reader, first, second;
	int a = dial_raw(), b = dial_raw(), fd;

	fd = accept(listener, NULL, NULL);
	memset(result_text, 0, sizeof(result_text));
	NEED(begin_task(&reader, reads_eight, fd) && sleeps(&reader));
	close(fd);
	NEED(accept(listener, NULL, NULL) == fd);
	NEED(begin_task(&second, says_second, b) && begin_task(&first, says_first, a));
	NEED(is_done_within(&reader, 20000));
	NEED(result < 0 ? result_errno == EBADF : result == 5 && !memcmp(result_text, "first", 5));
	NEED(hear(fd, "second") && end_task(&reader));
	close(fd);
	close(a);
	close(b);
	pthread_join(first.thread, NULL);
	return end_task(&second);
}

static void no_handler(int sig)
{
	(void)sig;
}

/* A reader whose descriptor is closed keeps waiting without spinning; after a signal it may get EBADF. */
static bool closed_under_reader(void)
{
	struct sigaction sa = { .sa_handler = no_handler, .sa_flags = SA_RESTART };
	struct timespec used;
	struct task reader;
	clockid_t clock;
	int fd[2];

	NEED(connect_pair(fd) && begin_task(&reader, reads_eight, fd[0]) && sleeps(&reader));
	sigaction(SIGUSR1, &sa, NULL);
	close(fd[0]);
	NEED(!pthread_kill(reader.thread, SIGUSR1) && (sleeps(&reader) || reader.done));
	if (!reader.done) {
		NEED(!pthread_getcpuclockid(reader.thread, &clock) && !clock_gettime(clock, &used));
		NEED(!used.tv_sec && used.tv_nsec < 300000000);
		NEED(word(fd[1], "octets") && is_done_within(&reader, 20000));
	}
	NEED(end_task(&reader) && (result < 0 ? result_errno == EBADF : result == 6));
	close(fd[1]);
	return true;
}

/* ---- calls that are left by siglongjmp() ---- */

static sigjmp_buf back;

static void leave(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static void __attribute__((noinline)) call_and_leave(int fd, int how)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c[100];

	if (sigsetjmp(back, 1))
		return;
	ualarm(50000, 0);
	if (how)
		poll(&p, 1, -1);
	else
		recv(fd, c, sizeof(c), 0);
}

static void __attribute__((noinline)) use_stack(void)
{
	volatile char b[16384];

	memset((void *)b, 1, sizeof(b));
}

static bool says_hello_and_ends(int fd)
{
	char c;

	return word(fd, "again") && hear(fd, "AGAIN") && recv(fd, &c, 1, 0) == 0;
}

/* The socket goes on, and its end is the peer's with close(). */
static bool left_by_longjmp(void)
{
	struct task peer;
	int fd[2], i;

	NEED(connect_pair(fd));
	signal(SIGALRM, leave);
	for (i = 0; i < 6; i++) {
		call_and_leave(fd[0], i & 1);
		use_stack();
	}
	signal(SIGALRM, SIG_DFL);
	alarm(120);
	NEED(begin_task(&peer, says_hello_and_ends, fd[1]));
	NEED(hear(fd[0], "again") && word(fd[0], "AGAIN"));
	close(fd[0]);
	NEED(is_done_within(&peer, 5000) && end_task(&peer));
	close(fd[1]);
	return true;
}

/* In the handler the socket is the program's: it may fork, and leave. */
static volatile sig_atomic_t child_ended;

static void fork_and_leave(int sig)
{
	pid_t pid = fork();
	int status;

	(void)sig;
	if (!pid)
		_exit(0);
	child_ended = waitpid(pid, &status, 0) == pid && !status;
	siglongjmp(back, 1);
}

static bool forks(int fd)
{
	int status;
	pid_t pid = fork();

	(void)fd;
	if (!pid)
		_exit(0);
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool pipe_signal(void)
{
	struct task other;
	int fd[2];
	char c;

	NEED(connect_pair(fd));
	close(fd[1]);
	NEED(recv(fd[0], &c, 1, 0) == 0);
	child_ended = 0;
	signal(SIGPIPE, fork_and_leave);
	if (!sigsetjmp(back, 1))
		while (send(fd[0], "x", 1, 0) == 1)
			usleep(1000);
	signal(SIGPIPE, SIG_DFL);
	NEED(child_ended && begin_task(&other, forks, 0) && is_done_within(&other, 20000) && end_task(&other));
	NEED(send(fd[0], "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	close(fd[0]);
	return true;
}

/* ---- flags ---- */

union right {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static bool give(int to, int fd)
{
	union right r = { .head = { CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec v = { "x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &r, .msg_controllen = sizeof(r) };

	memcpy(CMSG_DATA(&r.head), &fd, sizeof(fd));
	return sendmsg(to, &m, 0) == 1;
}

/* A program that does not share what this one knows. */
static int take_flag_away(int from)
{
	union right r;
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &r, .msg_controllen = sizeof(r) };
	int fd;

	alarm(20);
	if (syscall(SYS_recvmsg, from, &m, 0) != 1 || m.msg_controllen < CMSG_LEN(sizeof(fd)))
		return 1;
	memcpy(&fd, CMSG_DATA(&r.head), sizeof(fd));
	return syscall(SYS_fcntl, fd, F_SETFL, 0) != 0;
}

/* A call has found that it is not to wait; then the socket goes to another program, which wants it to. */
static bool flag_taken_away(void)
{
	int fd[2], pair[2], status;
	struct task reader;
	pid_t pid;
	char c;

	fd[1] = dial_raw();
	fd[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	NEED(fd[0] >= 0 && fd[1] >= 0 && recv(fd[0], &c, 1, 0) < 0 && errno == EAGAIN);
	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid)
		_exit(take_flag_away(pair[1]));
	NEED(give(pair[0], fd[0]) && waitpid(pid, &status, 0) == pid && !status);
	NEED(!(fcntl(fd[0], F_GETFL) & O_NONBLOCK));
	NEED(begin_task(&reader, hears_a, fd[0]) && sleeps(&reader));
	NEED(word(fd[1], "a") && end_task(&reader));
	close(pair[0]);
	close(pair[1]);
	return close_pair(fd);
}

static bool peeks(void)
{
	struct iovec v[2];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	struct task later;
	char c[16] = "";
	int fd[2];

	NEED(connect_pair(fd) && word(fd[1], "ab"));
	NEED(recv(fd[0], c, 1, MSG_PEEK) == 1);
	NEED(recv(fd[0], NULL, 2, MSG_PEEK | MSG_TRUNC) == 2);
	v[0] = v[1] = (struct iovec){ .iov_len = 1 };
	NEED(recvmsg(fd[0], &m, MSG_PEEK | MSG_TRUNC) == 2);
	NEED(recv(fd[0], c, 9, MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT) == 2);
	NEED(begin_task(&later, says_first, fd[1]));
	NEED(recv(fd[0], c, 7, MSG_PEEK | MSG_WAITALL) == 7 && !memcmp(c, "abfirst", 7));
	NEED(end_task(&later) && hear(fd[0], "abfirst"));
	close(fd[1]);
	NEED(recv(fd[0], c, 2, MSG_PEEK | MSG_WAITALL) == 0);
	close(fd[0]);
	return true;
}

/* Sooner or later a call with a flag is refused, or does what it says: no octet is another. */
static bool flags_of_vectors(void)
{
	char c[16] = "", out[] = "abc";
	struct iovec v = { c, sizeof(c) };
	struct iovec w = { out, 3 };
	struct pollfd p;
	ssize_t n;
	int fd[2];

	NEED(connect_pair(fd) && word(fd[1], "octets"));
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	NEED(poll(&p, 1, 20000) == 1);
	n = preadv2(fd[0], &v, 1, -1, RWF_NOWAIT);
	NEED(n == 6 || (n < 0 && errno == EOPNOTSUPP));
	NEED(n == 6 ? !memcmp(c, "octets", 6) : hear(fd[0], "octets"));
	n = pwritev2(fd[0], &w, 1, -1, RWF_NOWAIT);
	NEED(n == 3 || (n < 0 && errno == EOPNOTSUPP));
	NEED((n == 3 || word(fd[0], "abc")) && hear(fd[1], "abc"));
	return close_pair(fd);
}

/* Arguments that point nowhere, and lengths that are none. */
static bool not_there(void)
{
	char *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = { .iov_base = gone, .iov_len = 1 };
	struct msghdr m = { .msg_iov = (struct iovec *)gone, .msg_iovlen = 1 };
	struct sockaddr_in from;
	socklen_t len = (socklen_t)-1;
	struct timeval none = { 0 };
	struct rlimit most;
	struct pollfd p[2];
	int fd[2], ep = epoll_create1(0), err, status;
	fd_set set;
	pid_t pid;
	char c;

	NEED(gone != MAP_FAILED && connect_pair(fd) && word(fd[1], "a"));
	p[0] = p[1] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	NEED(poll(p, 1, 20000) == 1);
	NEED(recvmsg(fd[0], (struct msghdr *)gone, 0) < 0 && errno == EFAULT);
	NEED(recvmsg(fd[0], &m, 0) < 0 && errno == EFAULT);
	NEED(sendmsg(fd[0], (struct msghdr *)gone, 0) < 0 && errno == EFAULT);
	NEED(sendmsg(fd[0], &m, 0) < 0 && errno == EFAULT);
	NEED(sendmmsg(fd[0], (struct mmsghdr *)gone, 1, 0) < 0 && errno == EFAULT);
	m.msg_iov = &v;
	NEED(sendmsg(fd[0], &m, 0) < 0 && errno == EFAULT);
	v = (struct iovec){ .iov_base = &c, .iov_len = (size_t)-1 };
	NEED(readv(fd[0], &v, 1) < 0 && errno == EINVAL);
	NEED(recvfrom(fd[0], &c, 1, MSG_PEEK, (struct sockaddr *)&from, &len) < 0 && errno == EINVAL);
	NEED(!getrlimit(RLIMIT_NOFILE, &most));
	NEED(poll(p, most.rlim_cur + 1, 0) < 0 && errno == EINVAL);
	NEED(poll((struct pollfd *)gone, 1, 0) < 0 && errno == EFAULT);
	NEED(recvfrom(fd[0], &c, 1, MSG_PEEK, (struct sockaddr *)&from, (socklen_t *)gone) < 0 && errno == EFAULT);
	NEED(getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &err, (socklen_t *)gone) < 0 && errno == EFAULT);
	len = sizeof(err);
	NEED(getsockopt(fd[0], SOL_SOCKET, SO_ERROR, gone, &len) < 0 && errno == EFAULT);
	NEED(!getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &err, &len) && !err && len == sizeof(err));
	NEED(select(fd[0] + 1, (fd_set *)gone, NULL, NULL, &none) < 0 && errno == EFAULT);
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	NEED(select(fd[0] + 1, &set, (fd_set *)gone, NULL, &none) < 0 && errno == EFAULT);
	NEED(select(fd[0] + 1, &set, NULL, (fd_set *)gone, &none) < 0 && errno == EFAULT);
	NEED(FD_ISSET(fd[0], &set));
	pid = fork();
	if (!pid)
		_exit(!(select(fd[0] + 1, (fd_set *)gone, NULL, NULL, &none) < 0 && errno == EFAULT));
	NEED(waitpid(pid, &status, 0) == pid && !status);
	NEED(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], (struct epoll_event *)gone) < 0 && errno == EFAULT);
	NEED(!close(ep));
	NEED(hear(fd[0], "a"));
	return close_pair(fd);
}

/* The memory of results, and of time-outs. */
static bool not_there_to_wait(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *gone = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int fd[2], ep = epoll_create1(0), in = open("/proc/self/exe", O_RDONLY);

	NEED(gone != MAP_FAILED && p != MAP_FAILED && in >= 0 && connect_pair(fd) && word(fd[1], "a"));
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	*p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	NEED(poll(p, 1, 20000) == 1);
	NEED(!mprotect(p, page, PROT_READ) && poll(p, 1, 20000) < 0 && errno == EFAULT);
	NEED(epoll_wait(ep, (struct epoll_event *)gone, 1, 20000) < 0 && errno == EFAULT);
	/* The event was not delivered, and must be delivered once. */
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && epoll_wait(ep, &ev, 1, 0) == 0);
	NEED(ioctl(fd[0], FIONREAD, gone) < 0 && errno == EFAULT);
	NEED(sendfile(fd[0], in, (off_t *)gone, 1) < 0 && errno == EFAULT);
	close(in);
	close(ep);
	NEED(hear(fd[0], "a"));
	munmap(gone, page);
	munmap(p, page);
	return close_pair(fd);
}

/* There is something to read, and the memory of other results is not writable. */
static bool not_writable(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c;
	struct iovec v = { .iov_base = &c, .iov_len = 1 };
	const struct msghdr known = { .msg_iov = &v, .msg_iovlen = 1 };
	struct msghdr *whole = (struct msghdr *)(two + page);
	/* Its length alone is behind. */
	struct mmsghdr *part = (struct mmsghdr *)(two + page - offsetof(struct mmsghdr, msg_len));
	int fd[2];

	NEED(two != MAP_FAILED && connect_pair(fd) && word(fd[1], "a"));
	*whole = known;
	NEED(!mprotect(whole, page, PROT_READ));
	NEED(recvmsg(fd[0], whole, MSG_PEEK) < 0 && errno == EFAULT);
	NEED(recvmmsg(fd[0], (struct mmsghdr *)whole, 1, MSG_PEEK, NULL) < 0 && errno == EFAULT);
	part->msg_hdr = known;
	NEED(recvmmsg(fd[0], part, 1, MSG_PEEK, NULL) < 0 && errno == EFAULT);
	c = 'x';
	NEED(sendmmsg(fd[0], part, 1, 0) < 0 && errno == EFAULT);
	/* It has gone nevertheless. */
	NEED(hear(fd[1], "x") && hear(fd[0], "a"));
	munmap(two, 2 * page);
	return close_pair(fd);
}

/* What the program has no descriptors for, and no memory, is no affair of the kernel's. */
static bool select_beyond(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd_set *set = (fd_set *)(two + page - sizeof(*set));
	struct timeval t = { .tv_sec = 20 };
	enum { SHORT = 256 / 8 };
	int fd[2];
	size_t i;

	NEED(two != MAP_FAILED && !mprotect(two + page, page, PROT_NONE));
	NEED(connect_pair(fd) && word(fd[1], "a"));
	FD_ZERO(set);
	FD_SET(fd[0], set);
	NEED(select(1 << 20, set, NULL, NULL, &t) == 1 && FD_ISSET(fd[0], set));
	/* So with a number that a set of the usual size has, and a set that the kernel's table of 256 has. */
	memset(two, 0xff, page);
	set = (fd_set *)(two + page - SHORT);
	memset(set, 0, SHORT);
	FD_SET(fd[0], set);
	NEED(select(FD_SETSIZE, set, NULL, NULL, &t) == 1 && FD_ISSET(fd[0], set));
	/* The octets after the set mean nothing, and stay. */
	set = (fd_set *)two;
	memset(set, 0, SHORT);
	FD_SET(fd[0], set);
	NEED(select(FD_SETSIZE, set, NULL, NULL, &t) == 1 && FD_ISSET(fd[0], set));
	for (i = SHORT; i < sizeof(*set); i++)
		NEED(two[i] == 0xff);
	NEED(hear(fd[0], "a"));
	munmap(two, 2 * page);
	return close_pair(fd);
}

static bool come_and_end(int none)
{
	int fd[2];

	(void)none;
	while (!stop)
		NEED(connect_pair(fd) && close_pair(fd));
	return true;
}

/* So while another thread connects and closes: the numbers that the library has of its own are none of the program's. */
static bool select_beyond_as_others_go(void)
{
	unsigned char set[sizeof(fd_set)] __attribute__((aligned(sizeof(long))));
	struct timeval t = { .tv_sec = 20 };
	struct task other;
	int fd[2], i;

	NEED(connect_pair(fd) && word(fd[1], "a"));
	memset(set, 0xff, sizeof(set));
	memset(set, 0, 256 / 8);
	FD_SET(fd[0], (fd_set *)set);
	stop = false;
	NEED(begin_task(&other, come_and_end, -1));
	for (i = 0; i < 3000; i++)
		NEED(select(FD_SETSIZE, (fd_set *)set, NULL, NULL, &t) == 1);
	stop = true;
	return end_task(&other) && hear(fd[0], "a") && close_pair(fd);
}

/* As many entries as there may be descriptors. */
struct full_list {
	struct pollfd *p;
	nfds_t n;
	int rv;
};

static void *polls_full(void *arg)
{
	struct full_list *l = arg;

	l->rv = poll(l->p, l->n, 20000);
	return NULL;
}

static bool poll_of_all(bool once)
{
	struct rlimit most, few;
	struct full_list l;
	pthread_t thread;
	int fd[2];
	nfds_t i;

	NEED(connect_pair(fd) && !getrlimit(RLIMIT_NOFILE, &most));
	few = most;
	few.rlim_cur = l.n = 300;
	l.p = calloc(l.n, sizeof(*l.p));
	for (i = 0; i < l.n; i++)
		l.p[i] = (struct pollfd){ .fd = i && once ? -1 : fd[0], .events = POLLIN };
	NEED(!setrlimit(RLIMIT_NOFILE, &few) && !pthread_create(&thread, NULL, polls_full, &l));
	usleep(100000);
	NEED(word(fd[1], "a") && !pthread_join(thread, NULL) && !setrlimit(RLIMIT_NOFILE, &most));
	NEED(l.rv == (once ? 1 : (int)l.n) && l.p[0].revents == POLLIN);
	NEED(l.p[1].revents == (once ? 0 : POLLIN));
	free(l.p);
	NEED(hear(fd[0], "a"));
	return close_pair(fd);
}

static bool poll_full(void)
{
	return poll_of_all(true) && poll_of_all(false);
}

/* It tells itself of its own half that is shut, as TCP does. */
static bool shut_for_reading_tells(void)
{
	struct epoll_event ev = { .events = EPOLLRDHUP };
	int ep = epoll_create1(0), fd[2];
	struct pollfd p;

	NEED(connect_pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	p = (struct pollfd){ .fd = fd[0], .events = POLLRDHUP };
	NEED(poll(&p, 1, 0) == 0 && epoll_wait(ep, &ev, 1, 0) == 0);
	NEED(!shutdown(fd[0], SHUT_RD));
	NEED(poll(&p, 1, 0) == 1 && p.revents == POLLRDHUP);
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLRDHUP);
	NEED(!shutdown(fd[0], SHUT_WR));
	NEED(poll(&p, 1, 0) == 1 && p.revents == (POLLRDHUP | POLLHUP));
	close(ep);
	return close_pair(fd);
}

/* What makes no sense is EINVAL, and changes nothing. */
static bool senseless(void)
{
	static struct iovec v[IOV_MAX + 1];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = IOV_MAX + 1 };
	int fd[2];

	NEED(connect_pair(fd));
	NEED(shutdown(fd[0], 3) == -1 && errno == EINVAL && shutdown(fd[0], -1) == -1 && errno == EINVAL);
	NEED(writev(fd[0], v, IOV_MAX + 1) == -1 && errno == EINVAL);
	NEED(readv(fd[0], v, IOV_MAX + 1) == -1 && errno == EINVAL);
	NEED(sendmsg(fd[0], &m, 0) == -1 && errno == EMSGSIZE);
	NEED(recvmsg(fd[0], &m, 0) == -1 && errno == EMSGSIZE);
	NEED(word(fd[0], "a") && hear(fd[1], "a") && word(fd[1], "b") && hear(fd[0], "b"));
	return close_pair(fd);
}

static int low_mark_of(int fd)
{
	int mark = 0;
	socklen_t len = sizeof(mark);

	return getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &len) ? -1 : mark;
}

static bool says_two_hundred(int fd)
{
	return send_bulk(fd, 200);
}

static bool asks_for_much(int fd)
{
	return says_two_hundred(fd) && recv_bulk(fd, 3 << 20, 0);
}

static bool comes_over_the_mark(int client)
{
	int fd = accept(listener, NULL, NULL);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct task t;

	NEED(client >= 0 && fd >= 0 && begin_task(&t, asks_for_much, client));
	NEED(poll(&p, 1, 20000) == 1 && recv_bulk(fd, 200, 0) && send_bulk(fd, 3 << 20) && end_task(&t));
	close(client);
	close(fd);
	return true;
}

/* A mark that accept() passes on: what else a stream says has fewer octets, and a plain socket keeps it. */
static bool low_mark(void)
{
	int mark = 100, one = 1, client, fd;
	bool ok;

	NEED(!setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	ok = comes_over_the_mark(dial_with(0)) && comes_over_the_mark(dial_raw());
	client = dial_raw();
	fd = accept(listener, NULL, NULL);
	ok = ok && says_two_hundred(client) && recv_bulk(fd, 200, 0) && low_mark_of(fd) == mark;
	NEED(!setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)) && ok);
	close(client);
	close(fd);
	return true;
}

/* ---- how a process ends ---- */

static void by_exit(void)
{
	exit(0);
}

static void by_quick_exit(void)
{
	quick_exit(0);
}

static void by_underscore_exit(void)
{
	_exit(0);
}

static void by_capital_exit(void)
{
	_Exit(0);
}

static void by_exec(void)
{
	execlp("true", "true", (char *)NULL);
}

static char *const true_argv[] = { "true", NULL }, *const no_env[] = { NULL };

static void by_execvp(void)
{
	execvp("true", true_argv);
}

static void by_execvpe(void)
{
	execvpe("true", true_argv, no_env);
}

static void by_execle(void)
{
	execle("/bin/true", "true", (char *)NULL, no_env);
}

static void by_fexecve(void)
{
	fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), true_argv, no_env);
}

/* ---- options ---- */

static bool ended(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0;
}

static int option_of(int fd, int level, int option)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, option, &v, &len) ? -1 : v;
}

static bool set_to(int fd, int level, int option, int v)
{
	return !setsockopt(fd, level, option, &v, sizeof(v));
}

static bool says_bulk(int fd)
{
	return send_bulk(fd, BULK);
}

/* The program's cork is not that of the messages that give the peer credit. */
static bool corked_reader(void)
{
	long begin;
	struct task t;
	int fd[2];

	NEED(connect_pair(fd) && set_to(fd[0], IPPROTO_TCP, TCP_CORK, 1));
	NEED(option_of(fd[0], IPPROTO_TCP, TCP_CORK) == 1);
	begin = ms_now();
	NEED(begin_task(&t, says_bulk, fd[1]) && recv_bulk(fd[0], BULK, 0) && end_task(&t));
	/* A corked message waits for 200 ms, and there would be some hundred. */
	NEED(ms_now() - begin < 4000);
	NEED(set_to(fd[0], IPPROTO_TCP, TCP_CORK, 0) && !option_of(fd[0], IPPROTO_TCP, TCP_CORK));
	return close_pair(fd);
}

static bool corks_of_listener_and_client(void)
{
	int client = socket(AF_INET, SOCK_STREAM, 0), fd, i;
	struct timespec t0, t1;

	NEED(set_to(listener, IPPROTO_TCP, TCP_CORK, 1) && set_to(client, IPPROTO_TCP, TCP_CORK, 1));
	NEED(!connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	fd = accept(listener, NULL, NULL);
	NEED(set_to(listener, IPPROTO_TCP, TCP_CORK, 0) && fd >= 0);
	NEED(option_of(fd, IPPROTO_TCP, TCP_CORK) == 1 && option_of(client, IPPROTO_TCP, TCP_CORK) == 1);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (i = 0; i < 5; i++) {
		/* Without the cork; TCP sends what it had kept then. */
		NEED(word(client, "ping") && set_to(client, IPPROTO_TCP, TCP_CORK, 0) && hear(fd, "ping"));
		NEED(word(fd, "pong") && set_to(fd, IPPROTO_TCP, TCP_CORK, 0) && hear(client, "pong"));
		NEED(set_to(client, IPPROTO_TCP, TCP_CORK, 1) && set_to(fd, IPPROTO_TCP, TCP_CORK, 1));
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	NEED(t1.tv_sec - t0.tv_sec < 2);
	close(client);
	close(fd);
	return true;
}

static bool nodelay_is_kept(void)
{
	int fd[2];

	NEED(connect_pair(fd) && !option_of(fd[0], IPPROTO_TCP, TCP_NODELAY));
	NEED(set_to(fd[0], IPPROTO_TCP, TCP_NODELAY, 7) && option_of(fd[0], IPPROTO_TCP, TCP_NODELAY) == 1);
	NEED(set_to(fd[0], IPPROTO_TCP, TCP_NODELAY, 0) && !option_of(fd[0], IPPROTO_TCP, TCP_NODELAY));
	NEED(word(fd[0], "abc") && hear(fd[1], "abc"));
	NEED(setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, "x", 1) == -1 && errno == EINVAL);
	return close_pair(fd);
}

/* Either it is refused, or there are notifications: of a socket, and of one that is accepted. */
static bool zerocopy_is_honest(void)
{
	char control[256];
	struct msghdr m = { .msg_control = control, .msg_controllen = sizeof(control) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), accepted;
	bool has = set_to(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	bool passes_on = set_to(listener, SOL_SOCKET, SO_ZEROCOPY, 1);
	struct pollfd p = { .fd = fd };

	NEED(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && (has || errno == ENOPROTOOPT));
	accepted = accept(listener, NULL, NULL);
	NEED(send(fd, "abc", 3, MSG_ZEROCOPY) == 3 && hear(accepted, "abc"));
	NEED((option_of(fd, SOL_SOCKET, SO_ZEROCOPY) == 1) == has);
	NEED((option_of(accepted, SOL_SOCKET, SO_ZEROCOPY) == 1) == passes_on);
	NEED(!has || (poll(&p, 1, 5000) == 1 && recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) == 0));
	NEED(!passes_on || set_to(listener, SOL_SOCKET, SO_ZEROCOPY, 0));
	close(fd);
	close(accepted);
	return true;
}

static bool says_it_in_two(int fd)
{
	return word(fd, "abc") && !usleep(300000) && word(fd, "defghij");
}

/* A blocking recv(), and poll(), wait for as many octets as accept() passed on, or were set. */
static bool low_mark_is_waited_for(void)
{
	struct pollfd p = { .events = POLLIN };
	char buf[32];
	int client, fd;
	struct task t;

	NEED(set_to(listener, SOL_SOCKET, SO_RCVLOWAT, 10));
	client = dial();
	fd = accept(listener, NULL, NULL);
	NEED(set_to(listener, SOL_SOCKET, SO_RCVLOWAT, 1) && option_of(fd, SOL_SOCKET, SO_RCVLOWAT) == 10);
	NEED(begin_task(&t, says_it_in_two, client) && recv(fd, buf, sizeof(buf), 0) == 10 && end_task(&t));
	NEED(option_of(fd, SOL_SOCKET, SO_RCVLOWAT) == 10);
	NEED(begin_task(&t, says_it_in_two, client));
	p.fd = fd;
	NEED(poll(&p, 1, 20000) == 1 && p.revents == POLLIN && recv(fd, buf, sizeof(buf), MSG_DONTWAIT) == 10);
	NEED(end_task(&t) && word(client, "abc") && !poll(&p, 1, 100));
	NEED(set_to(fd, SOL_SOCKET, SO_RCVLOWAT, 3) && poll(&p, 1, 20000) == 1 && hear(fd, "abc"));
	NEED(set_to(fd, SOL_SOCKET, SO_RCVLOWAT, 9) && word(client, "xy"));
	/* Fewer octets, and the end. */
	close(client);
	NEED(poll(&p, 1, 20000) == 1 && recv(fd, buf, sizeof(buf), 0) == 2);
	close(fd);
	return true;
}

/* A plain client whose octets begin as MPA's Request does. */
static bool begins_like_a_request(void)
{
	int client = dial_raw(), fd = accept(listener, NULL, NULL);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[8];

	NEED(client >= 0 && fd >= 0 && syscall(SYS_sendto, client, "M", 1, 0, NULL, 0) == 1);
	NEED(poll(&p, 1, 40000) == 1 && recv(fd, buf, sizeof(buf), 0) == 1 && word(fd, "answer"));
	NEED(syscall(SYS_recvfrom, client, buf, 6, MSG_WAITALL, NULL, NULL) == 6);
	close(client);
	close(fd);
	/* The same of a blocking recv(). */
	client = dial_raw();
	fd = accept(listener, NULL, NULL);
	NEED(syscall(SYS_sendto, client, "MP", 2, 0, NULL, 0) == 2 && recv(fd, buf, sizeof(buf), 0) == 2);
	close(client);
	close(fd);
	return true;
}

/* By epoll: the waiter is woken when the time is over. */
static bool begins_like_a_request_by_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0), client = dial_raw(), fd = accept(listener, NULL, NULL);
	char c;

	NEED(fd >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	NEED(syscall(SYS_sendto, client, "M", 1, 0, NULL, 0) == 1);
	NEED(epoll_wait(ep, &ev, 1, 40000) == 1 && recv(fd, &c, 1, 0) == 1 && c == 'M');
	close(ep);
	close(client);
	close(fd);
	return true;
}

/* ---- ends ---- */

static unsigned int asked_until(int fd, short events, unsigned int want)
{
	long until = ms_now() + 20000;
	struct pollfd p = { .fd = fd, .events = events };

	do {
		p.revents = 0;
		poll(&p, 1, 10);
	} while (((unsigned int)p.revents & want) != want && ms_now() < until);
	return (unsigned short)p.revents;
}

/* A pair whose client has sent one word and closed. */
static bool client_has_closed(int fd[2])
{
	NEED(connect_pair(fd) && word(fd[1], "req"));
	close(fd[1]);
	return hear(fd[0], "req") && ended(fd[0]);
}

static volatile sig_atomic_t n_pipes;

static void count_pipe(int sig)
{
	(void)sig;
	n_pipes++;
}

/* TCP takes the first write; the answer to it is an error. */
static bool written_after_the_peers_close(void)
{
	const unsigned int open = POLLIN | POLLOUT | POLLRDHUP;
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd[2];

	n_pipes = 0;
	signal(SIGPIPE, count_pipe);
	NEED(client_has_closed(fd) && asked_until(fd[0], (short)open, open) == open);
	NEED(!getpeername(fd[0], (struct sockaddr *)&peer, &len) && len == sizeof(peer));
	NEED(peer.sin_family == AF_INET && peer.sin_addr.s_addr == addr.sin_addr.s_addr && peer.sin_port);
	NEED(write(fd[0], "answer", 6) == 6 && !n_pipes);
	NEED(asked_until(fd[0], (short)open, POLLHUP | POLLERR) == (open | POLLHUP | POLLERR));
	NEED(ended(fd[0]) && write(fd[0], "x", 1) == -1 && errno == EPIPE && n_pipes == 1);
	NEED(getpeername(fd[0], (struct sockaddr *)&peer, &len) == -1 && errno == ENOTCONN);
	signal(SIGPIPE, SIG_DFL);
	close(fd[0]);
	return true;
}

static bool shut_after_the_peers_close(void)
{
	int fd[2], how;

	for (how = SHUT_RD; how <= SHUT_RDWR; how++) {
		NEED(client_has_closed(fd) && asked_until(fd[0], POLLOUT, POLLOUT) == POLLOUT);
		NEED(!shutdown(fd[0], how));
		NEED(how == SHUT_RD || (send(fd[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE));
		NEED(how == SHUT_RD || asked_until(fd[0], 0, POLLHUP) == POLLHUP);
		close(fd[0]);
	}
	return true;
}

/* As TCP after the peer's close: without being asked, only an error or the end of both halves. */
static bool half_is_silent(void)
{
	struct epoll_event ev = { .events = 0 };
	int fd[2], ep = epoll_create1(0);
	struct pollfd p;

	NEED(client_has_closed(fd) && asked_until(fd[0], POLLOUT, POLLOUT) == POLLOUT);
	p = (struct pollfd){ .fd = fd[0] };
	NEED(poll(&p, 1, 200) == 0 && !p.revents);
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev) && epoll_wait(ep, &ev, 1, 200) == 0);
	ev.events = EPOLLIN;
	NEED(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &ev));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLIN);
	ev.events = 0;
	NEED(!epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], &ev) && !shutdown(fd[0], SHUT_WR));
	NEED(epoll_wait(ep, &ev, 1, 20000) == 1 && ev.events == EPOLLHUP);
	NEED(poll(&p, 1, 20000) == 1 && p.revents == POLLHUP);
	close(ep);
	close(fd[0]);
	return true;
}

/* close() waits for a reader, and no longer than for its time. */
static bool close_lingers(void)
{
	struct linger l = { 1, 20 };
	int small = 4096, fd[2], status;
	size_t sent;
	long begin;
	pid_t pid;

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	pid = fork();
	if (!pid) {
		fd[0] = accept(listener, NULL, NULL);
		if (!hear(fd[0], "hello"))
			_exit(1);
		usleep(500000);
		_exit(!(recv_bulk(fd[0], 200000, 0) && ended(fd[0])));
	}
	fd[1] = dial();
	small = 1 << 20;
	NEED(set_to(fd[1], SOL_SOCKET, SO_SNDBUF, small) && word(fd[1], "hello"));
	NEED(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)) && send_bulk(fd[1], 200000));
	begin = ms_now();
	NEED(!close(fd[1]) && ms_now() - begin > 100 && ms_now() - begin < 15000);
	NEED(waitpid(pid, &status, 0) == pid && !status);
	/* Its time. */
	NEED(connect_pair(fd));
	l.l_linger = 1;
	NEED(!setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	sent = send_some(fd[1]);
	begin = ms_now();
	NEED(sent && !close(fd[1]) && ms_now() - begin >= 900 && ms_now() - begin < 15000);
	NEED(recv_bulk(fd[0], sent, 0) && ended(fd[0]));
	close(fd[0]);
	small = 131072;
	return set_to(listener, SOL_SOCKET, SO_RCVBUF, small);
}

/* Without time it resets. */
static bool close_resets(void)
{
	struct linger l = { 1, 0 };
	char c;
	int fd[2];

	NEED(connect_pair(fd) && !setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	NEED(!close(fd[1]) && recv(fd[0], &c, 1, 0) == -1 && errno == ECONNRESET);
	close(fd[0]);
	return true;
}

/* It is the last close that resets, by what the option is then. */
static bool linger_of_a_dup(void)
{
	struct linger l = { 1, 0 };
	int fd[2], copy;
	char c;

	NEED(connect_pair(fd) && !setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	copy = dup(fd[1]);
	NEED(copy >= 0 && !close(fd[1]) && word(copy, "still") && hear(fd[0], "still"));
	l.l_onoff = 0;
	NEED(!setsockopt(copy, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	NEED(!close(copy) && recv(fd[0], &c, 1, 0) == 0);
	close(fd[0]);
	NEED(connect_pair(fd));
	copy = dup(fd[1]);
	l.l_onoff = 1;
	NEED(copy >= 0 && !setsockopt(copy, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) && !close(copy));
	NEED(word(fd[1], "still") && hear(fd[0], "still"));
	NEED(!close(fd[1]) && recv(fd[0], &c, 1, 0) == -1 && errno == ECONNRESET);
	close(fd[0]);
	return true;
}

/* Connect the client of a pair again, after connect() to no address, and send a word each way. */
static bool reconnect_pair(int fd[2])
{
	close(fd[0]);
	NEED(!connect(fd[1], (struct sockaddr *)&addr, sizeof(addr)));
	fd[0] = accept(listener, NULL, NULL);
	NEED(fd[0] >= 0 && word(fd[1], "hello") && hear(fd[0], "hello") && word(fd[0], "HELLO"));
	return hear(fd[1], "HELLO");
}

/* connect() to no address resets, and the socket may connect again. */
static bool disconnected(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	int fd[2], round;
	char c;

	NEED(connect_pair(fd));
	for (round = 0; round < 3; round++) {
		NEED(!connect(fd[1], &none, sizeof(none)));
		NEED(recv(fd[0], &c, 1, 0) == -1 && errno == ECONNRESET);
		NEED(getpeername(fd[1], (struct sockaddr *)&peer, &len) == -1 && errno == ENOTCONN);
		NEED(send(fd[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == ECONNRESET);
		NEED(reconnect_pair(fd));
	}
	return close_pair(fd);
}

static int shared_fd;

/* The end of the connection, and no octet of the next one. */
static void *read_until_reset(void *end)
{
	char c;
	ssize_t rv;

	do
		rv = recv(shared_fd, &c, 1, 0);
	while (rv == 1 && c == 'r');
	__atomic_store_n((int *)end, rv < 0 ? errno : rv ? -1 : 0, __ATOMIC_RELEASE);
	return NULL;
}

/* One thread reads, and another connects to no address, and again. */
static bool disconnected_under_readers(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd[2], round, end, i;
	pthread_t reader;

	NEED(connect_pair(fd));
	shared_fd = fd[1];
	for (round = 0; round < 40; round++) {
		end = -2;
		NEED(!pthread_create(&reader, NULL, read_until_reset, &end));
		for (i = 0; i < round % 4; i++)
			NEED(word(fd[0], "rr"));
		NEED(!connect(fd[1], &none, sizeof(none)));
		pthread_join(reader, NULL);
		NEED(end >= 0);
		NEED(reconnect_pair(fd));
	}
	return close_pair(fd);
}

static bool says_it_in_three(int fd)
{
	return word(fd, "a") && !usleep(400000) && word(fd, "b");
}

/* recvmmsg() looks at its time after each message. */
static bool messages_in_time(void)
{
	struct timespec t = { 0, 2000000000 };
	struct mmsghdr m[3] = { 0 };
	struct iovec v[3];
	char buf[3][4];
	struct task task;
	int fd[2], i;

	NEED(connect_pair(fd));
	for (i = 0; i < 3; i++) {
		v[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	NEED(recvmmsg(fd[0], m, 3, MSG_DONTWAIT, &t) == -1 && errno == EINVAL);
	t = (struct timespec){ 0, 200000000 };
	NEED(begin_task(&task, says_it_in_three, fd[1]) && recvmmsg(fd[0], m, 3, 0, &t) == 2);
	NEED(!t.tv_sec && !t.tv_nsec && end_task(&task) && m[1].msg_len == 1 && buf[1][0] == 'b');
	t = (struct timespec){ 100, 0 };
	NEED(word(fd[1], "c") && recvmmsg(fd[0], m, 1, 0, &t) == 1 && t.tv_sec >= 90 && t.tv_sec < 100);
	return close_pair(fd);
}

/* ---- octets sent before the other program has used its end ---- */

static bool sent_before_accept(void)
{
	int client = dial(), fd;

	NEED(client >= 0 && word(client, "one") && word(client, "two"));
	fd = accept(listener, NULL, NULL);
	NEED(fd >= 0 && hear(fd, "onetwo") && word(fd, "three") && hear(client, "three"));
	close(client);
	NEED(ended(fd));
	close(fd);
	return true;
}

/* The server reads its second connection first. */
static bool sent_and_read_in_another_order(void)
{
	int a = dial(), b = dial(), fd[2];

	NEED(a >= 0 && b >= 0 && word(a, "one") && word(b, "two"));
	fd[0] = accept(listener, NULL, NULL);
	fd[1] = accept(listener, NULL, NULL);
	NEED(hear(fd[1], "two") && hear(fd[0], "one"));
	close(a);
	close(b);
	close(fd[0]);
	close(fd[1]);
	return true;
}

static bool sent_and_closed_before_accept(void)
{
	int client = dial(), fd;

	NEED(client >= 0 && send_bulk(client, 15000) && !close(client));
	fd = accept(listener, NULL, NULL);
	NEED(fd >= 0 && recv_bulk(fd, 15000, 0) && ended(fd));
	close(fd);
	return true;
}

static bool sent_and_shut_before_accept(void)
{
	int client = dial(), fd;

	NEED(client >= 0 && word(client, "all") && !shutdown(client, SHUT_WR));
	NEED(send(client, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
	fd = accept(listener, NULL, NULL);
	NEED(fd >= 0 && hear(fd, "all") && ended(fd) && word(fd, "answer") && hear(client, "answer"));
	close(fd);
	NEED(ended(client));
	close(client);
	return true;
}

static bool sends_and_leaves(void (*end)(void))
{
	int fd, status;
	pid_t pid = fork();

	if (!pid) {
		fd = dial();
		if (fd < 0 || !send_bulk(fd, 15000))
			_exit(1);
		end();
		_exit(1);
	}
	fd = accept(listener, NULL, NULL);
	/* The process ends meanwhile, or waits. */
	usleep(200000);
	NEED(fd >= 0 && recv_bulk(fd, 15000, 0) && ended(fd));
	NEED(waitpid(pid, &status, 0) == pid && !status);
	close(fd);
	return true;
}

static bool sent_before_accept_and_exit(void) { return sends_and_leaves(by_exit); }
static bool sent_before_accept_and_exec(void) { return sends_and_leaves(by_exec); }

static unsigned int asked(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) > 0 ? (unsigned short)p.revents : 0;
}

/* As much as there is room for, and what did not fit after it. */
static bool filled_before_accept(void)
{
	int client = dial(), fd;
	struct task t;
	size_t sent;

	NEED(client >= 0 && asked(client, POLLOUT, 0) == POLLOUT);
	sent = send_some(client);
	NEED(sent >= 16384 && sent <= 64u << 20 && asked(client, POLLOUT, 0) == 0);
	fd = accept(listener, NULL, NULL);
	NEED(fd >= 0 && recv_bulk(fd, sent, 0) && asked(client, POLLOUT, 20000) == POLLOUT);
	NEED(begin_task(&t, greets, client) && hear(fd, "hello") && word(fd, "HELLO") && end_task(&t));
	close(client);
	close(fd);
	return true;
}

/* More than there is room for: the sender waits, and its octets stay in order. */
static bool says_much(int fd)
{
	return send_bulk(fd, 8 << 20) && !shutdown(fd, SHUT_WR);
}

static bool overfilled_before_accept(void)
{
	int client = dial(), fd;
	struct task t;

	NEED(client >= 0 && begin_task(&t, says_much, client) && sleeps(&t));
	fd = accept(listener, NULL, NULL);
	NEED(fd >= 0 && recv_bulk(fd, 8 << 20, 0) && ended(fd) && end_task(&t));
	close(client);
	close(fd);
	return true;
}

/* A server that speaks and ends, while its client does something else. */
static bool sent_by_one_that_ends_to_an_idle_client(void)
{
	int client, status;
	long begin;
	pid_t pid = fork();

	if (!pid) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 || !word(fd, "220 hello"))
			_exit(1);
		exit(0);
	}
	client = dial();
	begin = ms_now();
	NEED(client >= 0 && waitpid(pid, &status, 0) == pid && !status && ms_now() - begin < 4000);
	NEED(hear(client, "220 hello") && ended(client));
	close(client);
	return true;
}

/* A server's words to a client that is asleep. */
static bool sent_to_an_idle_client(void)
{
	int client = dial(), fd = accept(listener, NULL, NULL);

	NEED(client >= 0 && fd >= 0 && word(fd, "220 ") && word(fd, "hello") && !shutdown(fd, SHUT_WR));
	NEED(hear(client, "220 hello") && ended(client) && word(client, "QUIT"));
	close(client);
	NEED(hear(fd, "QUIT") && ended(fd));
	close(fd);
	return true;
}

/* Octets that TCP has not taken when the process ends. */
static bool serve_and_end(void (*end)(void))
{
	int small = 4096, fd, status, pipes[2];
	size_t sent;
	pid_t pid;
	char c;

	setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	NEED(!pipe(pipes));
	pid = fork();
	if (!pid) {
		int s = accept(listener, NULL, NULL);

		close(fd);
		if (s < 0 || !hear(s, "hello"))
			_exit(1);
		sent = send_some(s);
		if (write(pipes[1], &sent, sizeof(sent)) != sizeof(sent))
			_exit(1);
		end();
		_exit(1);
	}
	NEED(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && word(fd, "hello"));
	NEED(read(pipes[0], &sent, sizeof(sent)) == sizeof(sent) && sent > 4096);
	/* It may end meanwhile, or wait. */
	usleep(200000);
	NEED(recv_bulk(fd, sent, 0) && recv(fd, &c, 1, 0) == 0);
	NEED(waitpid(pid, &status, 0) == pid && !status);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

static bool ends_by_exit(void) { return serve_and_end(by_exit); }
static bool ends_by_quick_exit(void) { return serve_and_end(by_quick_exit); }
static bool ends_by_underscore_exit(void) { return serve_and_end(by_underscore_exit); }
static bool ends_by_capital_exit(void) { return serve_and_end(by_capital_exit); }
static bool ends_by_exec(void) { return serve_and_end(by_exec); }
static bool ends_by_each_exec(void)
{
	return serve_and_end(by_execvp) && serve_and_end(by_execvpe) && serve_and_end(by_execle) &&
	       serve_and_end(by_fexecve);
}

/* close() lingers for a slow peer. */
static bool slow_reader(void)
{
	int small = 4096, fd[2];
	size_t sent;
	char c;

	setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	NEED(connect_with(fd, small));
	sent = send_some(fd[0]);
	close(fd[0]);
	/* Twice what a process that ends would have waited: the suite sets it. */
	usleep(1500000);
	NEED(sent > 4096 && recv_bulk(fd[1], sent, 0) && recv(fd[1], &c, 1, 0) == 0);
	close(fd[1]);
	return true;
}

/* Those of the library, too: without a hook. */
static int count_descriptors(void)
{
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY), n = -3;
	long len, at;
	char b[4096];

	while ((len = syscall(SYS_getdents64, dir, b, sizeof(b))) > 0)
		for (at = 0; at < len; at += *(unsigned short *)(b + at + 16))
			n++;
	syscall(SYS_close, dir);
	return n;
}

/* What TCP takes at once, and more than a peer of SMALL reads ahead. */
#define SMALL 4096
#define FITS 20000

/* In a child process, whose limit is @most descriptors. */
static bool with_few(rlim_t most, bool (*run)(void))
{
	const struct rlimit few = { most, most };
	int status, size = SMALL;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool ok = !setrlimit(RLIMIT_NOFILE, &few) &&
			  set_to(listener, SOL_SOCKET, SO_RCVBUF, size) && run();

		fflush(stdout);
		_exit(!ok);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	size = 131072;
	return set_to(listener, SOL_SOCKET, SO_RCVBUF, size) && !status;
}

static bool is_closed_in_time(int fd) { return !close(fd); }

static bool lingers_beside_others(void)
{
	struct linger l = { 1, 60 };
	struct task closer;
	int fd[2], other[2], i;

	NEED(connect_pair(fd) && !setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	NEED(send_bulk(fd[1], FITS));
	NEED(begin_task(&closer, is_closed_in_time, fd[1]) && !is_done_within(&closer, 300));
	for (i = 0; i < 10; i++)
		NEED(connect_pair(other));
	NEED(!is_done_within(&closer, 100));
	return recv_bulk(fd[0], FITS, 0) && ended(fd[0]) && end_task(&closer);
}

/* Then closed ones are left to the kernel, which close() must not take for their end. */
static bool lingers_without_descriptors(void)
{
	return with_few(128, lingers_beside_others);
}

/* Many have more to say than TCP takes, and keep their descriptors; one behind them has not. */
static bool one_behind_many(void)
{
	enum { MANY = 64 };
	int fd[MANY][2], last[2], more[2], i, before;

	for (i = 0; i < MANY; i++) {
		NEED(connect_pair(fd[i]));
		NEED(send_some(fd[i][1]) > FITS);
		NEED(!close(fd[i][1]));
	}
	NEED(connect_pair(last) && send_bulk(last[1], FITS) && !close(last[1]));
	before = count_descriptors();
	/* Two for the program, two for the streams, and one less. */
	NEED(connect_pair(more) && count_descriptors() <= before + 3);
	NEED(recv_bulk(last[0], FITS, 0) && ended(last[0]));
	for (i = 0; i < MANY; i++)
		close(fd[i][0]);
	return true;
}

static bool any_closed_one_leaves(void)
{
	return with_few(512, one_behind_many);
}

static bool comes_down_to(int most)
{
	int i;

	for (i = 0; i < 2000 && count_descriptors() > most; i++)
		usleep(10000);
	if (count_descriptors() <= most)
		return true;
	printf("# %d descriptors, more than %d\n", count_descriptors(), most);
	return false;
}

/* Its peers keep their ends, and have read nothing. Later they read all, and the end. */
static bool closed_before_peers(void)
{
	enum { MANY = 50 };
	int fd[MANY][2], i, before, all;
	char c;

	NEED(connect_pair(fd[0]) && word(fd[0][1], "a") && hear(fd[0][0], "a"));
	before = count_descriptors();
	for (i = 1; i < MANY; i++)
		NEED(connect_pair(fd[i]) && word(fd[i][1], "a") && hear(fd[i][0], "a"));
	all = count_descriptors();
	for (i = 0; i < MANY; i++)
		NEED(word(fd[i][0], "b") && !close(fd[i][0]));
	/* Half of what the connections had, but for one. */
	NEED(comes_down_to(all - (all - before) / 2));
	for (i = 0; i < MANY; i++) {
		NEED(hear(fd[i][1], "b") && recv(fd[i][1], &c, 1, 0) == 0);
		NEED(!close(fd[i][1]));
	}
	return comes_down_to(before);
}

/* ---- cases ---- */

static const struct a_case {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "a-sender-beside-one-that-waits-by-epoll", beside_epoll },
	{ "a-sender-beside-one-that-asks-how-much-there-is", beside_fionread },
	{ "a-sender-without-a-descriptor-for-its-eventfd", without_numbers },
	{ "two-readers-at-one-socket", two_readers },
	{ "shut-for-reading-under-a-reader", shut_under_reader },
	{ "an-edge-that-comes-with-a-send", edge_behind_send },
	{ "reported-readable-and-writable-at-once", told_of_both },
	{ "edges-of-ends", edges_of_ends },
	{ "edges-of-many-sockets", edges_of_a_crowd },
	{ "an-edge-to-read-beside-one-to-write", both_edges },
	{ "two-become-ready-and-two-wait-by-epoll", two_by_epoll },
	{ "an-epoll-that-gets-its-first-under-a-waiter", first_under_waiter },
	{ "two-threads-give-an-epoll-its-first", two_give_the_first },
	{ "an-epoll-that-is-asked-while-sockets-go", asked_while_they_go },
	{ "out-of-an-epoll-and-in-again", out_and_in_levels },
	{ "out-of-an-epoll-and-in-again-by-edges", out_and_in_edges },
	{ "out-of-an-epoll-and-in-again-for-once", out_and_in_once },
	{ "out-of-an-epoll-over-fork", out_over_fork },
	{ "added-to-an-epoll-without-a-descriptor-for-its-eventfd", epoll_without_numbers },
	{ "added-to-an-epoll-while-the-client-is-judged", added_while_judged },
	{ "accepted-and-closed-unused", closed_unused },
	{ "sent-first-to-a-closed-client", sent_first_to_a_closed_client },
	{ "exclusive-in-an-epoll", exclusive },
	{ "polled-while-another-thread-moves-an-octet", polled_while_moved },
	{ "a-descriptor-reused-under-a-reader", closed_and_reused },
	{ "a-descriptor-closed-under-a-reader", closed_under_reader },
	{ "calls-left-by-siglongjmp", left_by_longjmp },
	{ "a-handler-of-sigpipe-forks-and-leaves", pipe_signal },
	{ "a-flag-that-another-program-takes-away", flag_taken_away },
	{ "peeks", peeks },
	{ "vectors-with-flags", flags_of_vectors },
	{ "bad-pointers", not_there },
	{ "bad-pointers-of-waits", not_there_to_wait },
	{ "read-only-results", not_writable },
	{ "an-fd-set-shorter-than-its-descriptor", select_beyond },
	{ "an-fd-set-shorter-than-its-descriptor-while-others-close", select_beyond_as_others_go },
	{ "a-poll-of-as-many-as-there-may-be", poll_full },
	{ "invalid-arguments", senseless },
	{ "shut-for-reading-is-reported", shut_for_reading_tells },
	{ "a-low-mark-that-accept-passes-on", low_mark },
	{ "corked-while-it-receives", corked_reader },
	{ "corks-of-a-listener-and-before-connect", corks_of_listener_and_client },
	{ "nodelay-is-what-was-set", nodelay_is_kept },
	{ "zerocopy-is-refused-or-notifies", zerocopy_is_honest },
	{ "a-low-mark-is-waited-for", low_mark_is_waited_for },
	{ "a-plain-client-that-begins-like-a-request", begins_like_a_request },
	{ "a-plain-client-that-begins-like-a-request-by-epoll", begins_like_a_request_by_epoll },
	{ "written-after-the-peers-close", written_after_the_peers_close },
	{ "shut-after-the-peers-close", shut_after_the_peers_close },
	{ "close-waits-as-so-linger-says", close_lingers },
	{ "close-resets-as-so-linger-says", close_resets },
	{ "so-linger-of-a-dup-counts-with-the-last-close", linger_of_a_dup },
	{ "close-waits-as-so-linger-says-without-descriptors", lingers_without_descriptors },
	{ "closed-streams-leave-whatever-others-do", any_closed_one_leaves },
	{ "half-closed-by-the-peer-is-silent", half_is_silent },
	{ "connected-to-no-address-and-again", disconnected },
	{ "connected-to-no-address-under-a-reader", disconnected_under_readers },
	{ "messages-received-in-time", messages_in_time },
	{ "sent-before-accept", sent_before_accept },
	{ "sent-on-two-connections-and-read-in-another-order", sent_and_read_in_another_order },
	{ "sent-and-closed-before-accept", sent_and_closed_before_accept },
	{ "sent-and-shut-before-accept", sent_and_shut_before_accept },
	{ "sent-before-accept-and-exit", sent_before_accept_and_exit },
	{ "sent-before-accept-and-exec", sent_before_accept_and_exec },
	{ "sent-before-accept-until-it-is-full", filled_before_accept },
	{ "sent-before-accept-beyond-what-fits", overfilled_before_accept },
	{ "sent-to-a-client-that-is-idle", sent_to_an_idle_client },
	{ "sent-by-one-that-ends-to-a-client-that-is-idle", sent_by_one_that_ends_to_an_idle_client },
	{ "sent-before-exit", ends_by_exit },
	{ "sent-before-quick_exit", ends_by_quick_exit },
	{ "sent-before-_exit", ends_by_underscore_exit },
	{ "sent-before-_Exit", ends_by_capital_exit },
	{ "sent-before-exec", ends_by_exec },
	{ "sent-before-each-kind-of-exec", ends_by_each_exec },
	{ "a-slow-reader-after-close", slow_reader },
	{ "closed-before-its-peers-takes-no-descriptor", closed_before_peers },
};

static bool run(const void *a_case)
{
	return ((const struct a_case *)a_case)->run();
}

/* Some hosts let an administrator alone filter a socket: run by name. */
static const struct a_case of_administrators[] = {
	{ "server-speaks-first-and-the-clients-first-segment-is-lost-twice", first_segment_is_lost },
};

int main(int argc, char **argv)
{
	const struct cases all = { CASES(cases), .run = run, .seconds = 120, .stops = true };
	const struct cases more = { CASES(of_administrators), .run = run, .seconds = 120 };
	const char *name = argc > 2 ? argv[2] : NULL;

	return !listen_at(argv[1]) ||
	       run_cases(name && !strcmp(name, of_administrators[0].name) ? &more : &all, name);
}
