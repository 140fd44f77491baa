// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What programs do that a library in their process could break: fork(), cancelled threads, handlers
 * of faults, descriptors that libc closes. Each test is a process of its own. HOST is an address of
 * this machine that an RDMA device has; ports from PORT on are used. LEFT_OUT names a test to leave
 * out. TAP.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "verdict.h"

#define MOST	2000	/* descriptors that are closed */
#define PATIENCE 60	/* seconds, for one habit */
#define A_CHILDS 20	/* and for what a child does of it, which would wait for ever */

typedef void handler_fn(int);
/* What signal() is in a program that is compiled for POSIX alone. */
handler_fn *__sysv_signal(int sig, handler_fn *handler);

static struct pair pair = {
	.client.timeout_ms = PAIR_TIMEOUT_MS,
	.server.timeout_ms = PAIR_TIMEOUT_MS,
};
static const char *host;
static char port[8];

/* ---- devices ---- */

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!ctx)
		fail("no device");
	return ctx;
}

/* ---- what can be seen of a library ---- */

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		fail("no %s", path);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/*
 * DESTROY_ID, which takes rdma_cm's locks, of a number that no id has: it changes nothing. The
 * kernel's header and librdmacm's exclude each other.
 */
static bool destroy_unknown_id(int fd)
{
	struct {
		uint32_t command;
		uint16_t in, out;
		uint64_t response;
		uint32_t id, reserved;
	} ask = { .command = 1, .in = 16, .out = 4, .id = 1u << 31 };

	return write(fd, &ask, sizeof(ask)) == -1 && errno == ENOENT;
}

static int open_rdma_cm(void)
{
	return open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
}

static pthread_t begin_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		fail("no thread");
	return thread;
}

/* ---- children ---- */

static bool ends_well(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && !status;
}

/* How the child closes what it does not know. */
static void close_singly(void)
{
	int fd;

	for (fd = 3; fd < MOST; fd++)
		close(fd);
}

static void close_by_range(void)
{
	close_range(3, ~0u, 0);
}

static bool goes_on_after(void (*close_all)(void))
{
	pid_t child = fork();

	if (!child) {
		close_all();
		execlp("true", "true", NULL);
		_exit(1);
	}
	return ends_well(child) && pair_carries_data(&pair);
}

static bool child_closes(void)
{
	pair_open(&pair, host, port);
	return pair_carries_data(&pair) && goes_on_after(close_singly) &&
	       goes_on_after(close_by_range);
}

/* No handler of fork() is called. */
static bool child_of_bare_call(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_comp_channel *events = ibv_create_comp_channel(ctx);
	pid_t child;
	char c;
	int fd;

	if (!events)
		fail("no channel");
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child)
		return ends_well(child);
	alarm(A_CHILDS);
	close(events->fd);
	fd = open("/proc/self/status", O_RDONLY);
	_exit(!(fd == events->fd && read(fd, &c, 1) == 1));
}

static bool hears_by_poll(void)
{
	struct pollfd p = { .fd = pair.server.events->fd, .events = POLLIN };

	return poll(&p, 1, PAIR_TIMEOUT_MS) == 1;
}

static int epfd;

static bool hears_by_epoll(void)
{
	struct epoll_event ev;

	return epoll_wait(epfd, &ev, 1, PAIR_TIMEOUT_MS) == 1;
}

/* Listens, and continues in the background. It reports by @tell. */
static void become_daemon(bool (*hears)(void), int tell)
{
	struct epoll_event ev = { .events = EPOLLIN };

	conn_listen(&pair.server, host, port);
	epfd = epoll_create1(0);
	epoll_ctl(epfd, EPOLL_CTL_ADD, pair.server.events->fd, &ev);
	if (fork())
		_exit(0);
	_exit(write(tell, hears() ? "y" : "n", 1) != 1);
}

static bool daemon_hears(bool (*hears)(void))
{
	struct rdma_conn_param param = {};
	int said[2];
	pid_t child;
	char c;

	if (pipe(said))
		fail("pipe");
	child = fork();
	if (!child)
		become_daemon(hears, said[1]);
	if (!ends_well(child))
		return false;
	conn_resolve(&pair.client, host, port);
	conn_make_qp(&pair.client, PAIR_DEPTH, PAIR_DEPTH, 0);
	if (rdma_connect(pair.client.id, &param))
		fail("connect");
	return read(said[0], &c, 1) == 1 && c == 'y';
}

static bool daemon_polls(void)
{
	return daemon_hears(hears_by_poll);
}

static bool daemon_epolls(void)
{
	return daemon_hears(hears_by_epoll);
}

/* To ask what a descriptor is, is no use of its device: the parent's threads go on, alone. */
static bool child_asks(void)
{
	pid_t child;
	int n;

	pair_open(&pair, host, port);
	child = fork();
	if (!child) {
		ioctl(pair.client.id->verbs->cmd_fd, FIONREAD, &n);
		_exit(count_entries("/proc/self/task") != 3);
	}
	return ends_well(child) && pair_carries_data(&pair);
}

/* It waits for what is not there. */
static bool child_has_no_set(void)
{
	fd_set *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timeval now = { 0 };
	pid_t child;

	pair_open(&pair, host, port);
	child = fork();
	if (!child)
		_exit(select(10, gone, NULL, NULL, &now) != -1 || errno != EFAULT);
	return ends_well(child) && pair_carries_data(&pair);
}

/* ---- children of a program whose threads are at work ---- */

static unsigned int rounds;	/* atomic */

static void await_rounds(unsigned int n)
{
	while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < n)
		usleep(100);
}

static void *poll_for_ever(void *cq)
{
	struct ibv_wc wc;

	for (; ibv_poll_cq(cq, 1, &wc) <= 1; __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void *carry_data_for_ever(void *arg)
{
	while (pair_carries_data(&pair))
		;
	fail("%s", (const char *)arg);
}

static bool data_goes_on(void)
{
	uint64_t key = __atomic_load_n(&pair.key, __ATOMIC_RELAXED);

	while (__atomic_load_n(&pair.key, __ATOMIC_RELAXED) < key + 10)
		usleep(100);
	return true;
}

static void *ask_for_ever(void *fd)
{
	for (; destroy_unknown_id((int)(intptr_t)fd); __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* The child goes on with what was its parent's. */
static bool child_takes_over(void)
{
	pid_t child;

	pair_open(&pair, host, port);
	begin_thread(poll_for_ever, pair.client.cq);
	await_rounds(50);
	child = fork();
	if (!child) {
		alarm(A_CHILDS);
		_exit(!ibv_alloc_pd(pair.client.id->verbs));
	}
	return ends_well(child);
}

static bool children_take_over(void)
{
	pid_t child;
	int i;

	for (i = 0; i < 8; i++) {
		child = fork();
		if (!child)
			_exit(!child_takes_over());
		if (!ends_well(child))
			return false;
	}
	return true;
}

static bool children_begin_anew(void)
{
	int fd = open_rdma_cm(), i;
	pid_t child;

	begin_thread(ask_for_ever, (void *)(intptr_t)fd);
	await_rounds(100);
	for (i = 0; i < 50; i++) {
		child = fork();
		if (!child) {
			alarm(A_CHILDS);
			_exit(!destroy_unknown_id(open_rdma_cm()));
		}
		if (!ends_well(child))
			return false;
	}
	return true;
}

static bool spawns(void)
{
	char *argv[] = { "true", NULL };
	extern char **environ;
	pid_t child;

	return !posix_spawnp(&child, "true", NULL, NULL, argv, environ) && ends_well(child);
}

static bool calls_shell(void)
{
	FILE *f = popen("echo said", "r");
	char said[8];

	return !system("true") && f && fgets(said, sizeof(said), f) && !strcmp(said, "said\n") &&
	       !pclose(f);
}

static bool borrows(void)
{
	pid_t child = vfork();

	if (!child) {
		close(pair.client.events->fd);
		execlp("true", "true", NULL);
		_exit(1);
	}
	return ends_well(child);
}

static bool others_are_started(void)
{
	int i;

	pair_open(&pair, host, port);
	begin_thread(carry_data_for_ever, "data is carried no more");
	begin_thread(ask_for_ever, (void *)(intptr_t)open_rdma_cm());
	for (i = 0; i < 20; i++)
		if (!spawns() || !calls_shell() || !borrows())
			return false;
	return data_goes_on();
}

/* ---- threads that are cancelled ---- */

static void *await_cm_event(void *events)
{
	struct rdma_cm_event *ev;

	rdma_get_cm_event(events, &ev);
	return NULL;
}

static void *await_cq_event(void *events)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(events, &cq, &context);
	return NULL;
}

static bool is_cancelled(void *(*wait)(void *), void *events)
{
	pthread_t thread;
	void *rv;

	if (!events)
		fail("nothing to wait for");
	thread = begin_thread(wait, events);
	usleep(100000);
	pthread_cancel(thread);
	return !pthread_join(thread, &rv) && rv == PTHREAD_CANCELED;
}

static bool cancels(void)
{
	return is_cancelled(await_cm_event, rdma_create_event_channel()) &&
	       is_cancelled(await_cq_event, ibv_create_comp_channel(open_device()));
}

static void *read_vectors(void *fd)
{
	char c[2][16];
	struct iovec v[2] = { { c[0], sizeof(c[0]) }, { c[1], sizeof(c[1]) } };

	return (void *)readv(*(int *)fd, v, 2);
}

static void *receive_message(void *fd)
{
	char c[16];
	struct iovec v = { c, sizeof(c) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return (void *)recvmsg(*(int *)fd, &m, 0);
}

/* What was opened with the descriptor goes with it. */
static bool cancels_and_closes(void *(*wait)(void *), int fd, int before)
{
	return is_cancelled(wait, &fd) && !close(fd) && count_entries("/proc/self/fd") == before;
}

static bool leaves_nothing(void)
{
	struct ibv_context *ctx = open_device();
	int before = count_entries("/proc/self/fd");
	struct ibv_comp_channel *events = ibv_create_comp_channel(ctx);

	return events && cancels_and_closes(read_vectors, events->fd, before) &&
	       cancels_and_closes(receive_message,
				  socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), before);
}

static void *ask_at_any_time(void *fd)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	return ask_for_ever(fd);
}

/* What such a thread calls should be safe for that, but many a program takes its chances. */
static bool cancels_at_any_time(void)
{
	int fd = open_rdma_cm(), i;
	pthread_t thread;

	for (i = 0; i < 100; i++) {
		rounds = 0;
		thread = begin_thread(ask_at_any_time, (void *)(intptr_t)fd);
		await_rounds(10);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		if (!destroy_unknown_id(fd))
			return false;
	}
	return !close(fd);
}

/* The thread that waits is not in the child, nor what it holds. */
static bool child_of_waiter(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	int before;
	pid_t child;

	begin_thread(await_cm_event, events);
	usleep(100000);
	child = fork();
	if (child)
		return ends_well(child);
	destroy_unknown_id(events->fd);
	before = count_entries("/proc/self/fd");
	close(events->fd);
	_exit(count_entries("/proc/self/fd") != before - 2);
}

/* ---- unread events ---- */

/* The event is freed with its id, and poll() no longer reports it: a read would wait. */
static bool unread_event_goes(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct pollfd p = { .events = POLLIN };
	struct rdma_cm_id *id;

	inet_pton(AF_INET, host, &to.sin_addr);
	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, PAIR_TIMEOUT_MS))
		fail("no id");
	p.fd = events->fd;
	if (poll(&p, 1, PAIR_TIMEOUT_MS) != 1)
		fail("no event");
	return !rdma_destroy_id(id) && !poll(&p, 1, 0);
}

/* ---- faults and handlers ---- */

static sem_t forks, asked;

static void await_querying_thread(void)
{
	sem_post(&forks);
	sem_wait(&asked);
}

static void *ask_in_a_fork(void *ctx)
{
	struct ibv_port_attr port_attr;

	sem_wait(&forks);
	ibv_query_port(ctx, 1, &port_attr);
	sem_post(&asked);
	return NULL;
}

/* It was there before the library's handlers, and so runs behind them, as an allocator's does. */
static bool handler_awaits_querying_thread(void)
{
	pthread_t asker;
	pid_t child;

	sem_init(&forks, 0, 0);
	sem_init(&asked, 0, 0);
	pthread_atfork(await_querying_thread, NULL, NULL);
	asker = begin_thread(ask_in_a_fork, open_device());
	child = fork();
	if (!child)
		_exit(0);
	pthread_join(asker, NULL);
	return ends_well(child);
}

static sigjmp_buf after_fault;
static bool was_masked;

static void on_fault(int sig)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	was_masked = sigismember(&mask, sig);
	siglongjmp(after_fault, 1);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void *no_memory(void)
{
	return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A command that lies where nothing is. */
static bool is_refused(struct ibv_context *ctx)
{
	return write(ctx->cmd_fd, no_memory(), 64) == -1 && errno == EFAULT;
}

static bool all_blocked(void)
{
	struct ibv_context *ctx = open_device();
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return is_refused(ctx);
}

static void *bad_pointer(void *ctx)
{
	return is_refused(ctx) ? ctx : NULL;
}

static bool born_blocked(void)
{
	struct ibv_context *ctx = open_device();
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	void *rv;

	sigfillset(&all);
	pthread_attr_init(&attr);
	if (pthread_attr_setsigmask_np(&attr, &all) ||
	    pthread_create(&thread, &attr, bad_pointer, ctx))
		fail("no thread");
	return !pthread_join(thread, &rv) && rv == ctx;
}

static bool old_signal(void)
{
	struct ibv_context *ctx = open_device();

	__sysv_signal(SIGSEGV, on_fault);
	return !sigsetjmp(after_fault, 1) && is_refused(ctx);
}

static bool handler_as_asked(void)
{
	struct sigaction a = { .sa_handler = on_fault, .sa_flags = SA_RESETHAND };
	volatile char *nothing = no_memory();

	open_device();
	sigaction(SIGSEGV, &a, NULL);
	if (!sigsetjmp(after_fault, 1))
		*nothing = 1;
	sigaction(SIGSEGV, NULL, &a);
	return was_masked && a.sa_handler == SIG_DFL;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"	/* programs call it yet */

static bool interrupts(void)
{
	struct sigaction a;

	siginterrupt(SIGALRM, 1);
	signal(SIGALRM, on_alarm);
	sigaction(SIGALRM, NULL, &a);
	return !(a.sa_flags & SA_RESTART);
}

#pragma GCC diagnostic pop

/* ---- descriptors ---- */

static bool streams(void)
{
	int fd = open("/sys/class/infiniband_verbs/abi_version", O_RDONLY), next;
	FILE *f = fdopen(fd, "r");
	struct stat st, own;

	if (!f)
		fail("no abi_version");
	stat("/bin/sh", &own);
	fclose(f);
	next = open("/bin/sh", O_RDONLY);
	return next == fd && !fstat(next, &st) && st.st_size == own.st_size;
}

static bool points_nowhere(void)
{
	return access((char *)8, F_OK) == -1 && errno == EFAULT;
}

/* ---- one after the other ---- */

/* ---- memory as the program sees it ---- */

static sigjmp_buf own_fault;
static volatile sig_atomic_t in_own_fault, samples;
static volatile char *nowhere;

static void on_own_fault(int sig)
{
	(void)sig;
	if (in_own_fault)
		siglongjmp(own_fault, 1);
	signal(SIGSEGV, SIG_DFL);
}

/* As samplers and collectors do: looks at memory that may not be there. */
static void take_sample(int sig)
{
	(void)sig;
	if (!sigsetjmp(own_fault, 1)) {
		in_own_fault = 1;
		*nowhere = 1;
	}
	in_own_fault = 0;
	samples++;
}

#define BIG	(1 << 20)

static bool handler_recovers(void)
{
	struct sigaction fault = { .sa_handler = on_own_fault, .sa_flags = SA_NODEFER };
	struct sigaction clock = { .sa_handler = take_sample, .sa_flags = SA_RESTART };
	static uint8_t from[BIG], to[BIG];
	struct ibv_mr *from_mr, *to_mr;
	sigset_t mask;

	nowhere = no_memory();
	pair_open(&pair, host, port);
	from_mr = conn_reg(&pair.client, from, BIG, 0);
	to_mr = conn_reg(&pair.server, to, BIG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGALRM, &clock, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 1000 }, { 0, 1000 } }, NULL);
	while (samples < 1000) {
		struct ibv_sge sge = { (uintptr_t)from, BIG, from_mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)to, to_mr->rkey },
		}, *bad;
		struct ibv_wc wc;

		if (ibv_post_send(pair.client.id->qp, &wr, &bad) ||
		    conn_poll(&pair.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 || wc.status)
			return false;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	return !sigismember(&mask, SIGALRM) && !sigismember(&mask, SIGSEGV);
}

static bool registers(struct ibv_pd *pd, void *p, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, 3 * 4096, access);

	if (mr)
		ibv_dereg_mr(mr);
	else if (errno != EFAULT)
		fail("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static bool rights_as_mapped(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(open_device());
	uint8_t *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int write = IBV_ACCESS_LOCAL_WRITE, remote = write | IBV_ACCESS_REMOTE_WRITE;
	bool ok = registers(pd, p, remote) && registers(pd, p, 0);

	mprotect(p + 4096, 4096, PROT_READ);
	ok = ok && !registers(pd, p, write) && !registers(pd, p, remote) && registers(pd, p, 0);
	mprotect(p + 2 * 4096, 4096, PROT_NONE);
	ok = ok && !registers(pd, p, 0);
	munmap(p + 2 * 4096, 4096);
	return ok && !registers(pd, p, 0);
}

#define WRITE_LEN	1000
#define WRITES		500

/* The buffer's last octets, as a program that polls them sees them. */
static void *await_last_octet(void *torn)
{
	volatile uint8_t *to = pair.to;
	unsigned int i, k;

	for (i = 1; i <= WRITES; i++) {
		while (to[WRITE_LEN - 1] != (uint8_t)(i | 1))
			;
		for (k = 0; k < WRITE_LEN; k++)
			if (to[k] != (uint8_t)(i | 1)) {
				++*(unsigned int *)torn;
				break;
			}
		memset(pair.to, 0, WRITE_LEN);
		__atomic_store_n(&pair.to[WRITE_LEN], (uint8_t)i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool last_octet_is_last(void)
{
	unsigned int torn = 0, i;
	pthread_t thread;

	pair_open(&pair, host, port);
	memset(pair.to, 0, sizeof(pair.to));
	if (pthread_create(&thread, NULL, await_last_octet, &torn))
		fail("no thread");
	for (i = 1; i <= WRITES; i++) {
		struct ibv_sge sge = { (uintptr_t)pair.from, WRITE_LEN, pair.from_mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)pair.to, pair.to_mr->rkey },
		}, *bad;
		struct ibv_wc wc;

		memset(pair.from, (uint8_t)(i | 1), WRITE_LEN);
		if (ibv_post_send(pair.client.id->qp, &wr, &bad) ||
		    conn_poll(&pair.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 || wc.status)
			fail("a Write failed");
		while (__atomic_load_n(&pair.to[WRITE_LEN], __ATOMIC_ACQUIRE) != (uint8_t)i)
			conn_poll(&pair.server, &wc, 1, 0);
	}
	pthread_join(thread, NULL);
	return !torn;
}

static const struct habit {
	const char *name;
	bool (*is_well)(void);
} habits[] = {
	{ "a-child-that-closes-all-ends-nothing", child_closes },
	{ "a-child-of-the-bare-call-reads-what-it-opens", child_of_bare_call },
	{ "a-daemon-that-polls-gets-connections", daemon_polls },
	{ "a-daemon-that-epolls-gets-connections", daemon_epolls },
	{ "a-child-that-asks-what-it-has-takes-nothing-over", child_asks },
	{ "a-child-selects-by-a-set-that-is-not-there", child_has_no_set },
	{ "a-child-of-busy-threads-takes-over", children_take_over },
	{ "a-child-of-busy-threads-begins-anew", children_begin_anew },
	{ "busy-threads-while-others-are-started", others_are_started },
	{ "a-child-of-a-thread-that-waits-closes-all", child_of_waiter },
	{ "an-unread-event-goes-with-its-id", unread_event_goes },
	{ "a-handler-for-fork-awaits-a-thread-that-asks", handler_awaits_querying_thread },
	{ "threads-that-wait-for-events-are-cancelled", cancels },
	{ "a-thread-that-is-cancelled-leaves-nothing", leaves_nothing },
	{ "a-thread-is-cancelled-at-any-time", cancels_at_any_time },
	{ "a-bad-pointer-with-all-signals-blocked", all_blocked },
	{ "a-bad-pointer-in-a-thread-born-with-all-blocked", born_blocked },
	{ "a-bad-pointer-with-a-handler-by-an-old-name", old_signal },
	{ "a-handler-is-called-as-was-asked", handler_as_asked },
	{ "a-handler-recovers-from-its-own-fault", handler_recovers },
	{ "memory-is-registered-with-the-rights-that-it-has", rights_as_mapped },
	{ "the-last-octet-of-a-write-comes-last", last_octet_is_last },
	{ "signal-after-siginterrupt", interrupts },
	{ "a-descriptor-that-fclose-released", streams },
	{ "a-name-that-points-nowhere", points_nowhere },
};

#define HABITS (sizeof(habits) / sizeof(habits[0]))

static bool try_habit(const struct habit *h)
{
	pid_t child = fork();

	if (child)
		return ends_well(child);
	alarm(PATIENCE);
	_exit(!h->is_well());
}

int main(int argc, char **argv)
{
	bool left_out = false;
	unsigned int i;

	conn_program = "habits";
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "habits HOST PORT [LEFT_OUT]\n");
		return 2;
	}
	host = argv[1];
	for (i = 0; i < HABITS; i++) {
		snprintf(port, sizeof(port), "%u", (atoi(argv[2]) + i) % 65536);
		if (argc == 4 && !strcmp(argv[3], habits[i].name))
			left_out = true;
		else
			verdict_if(habits[i].name, try_habit(&habits[i]));
	}
	if (argc == 4 && !left_out)
		fail("no habit is called %s", argv[3]);
	return verdict_end();
}
