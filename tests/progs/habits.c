// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Habits of programs that a library in their process may be in the way of: fork(), threads that
 * are cancelled, handlers of faults, descriptors that libc closes. Each is a process of its own.
 * HOST is an address of this machine that an RDMA device has; ports from PORT on are used.
 * LEFT_OUT names a habit that is not tried. TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define MOST	2000	/* descriptors that are closed */
#define PATIENCE 20	/* seconds, for one habit */

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
	alarm(2);
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

/* Listens, and goes on in the background. What it heard is told by @tell. */
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

	if (!events || pthread_create(&thread, NULL, wait, events))
		fail("no thread");
	usleep(100000);
	pthread_cancel(thread);
	return !pthread_join(thread, &rv) && rv == PTHREAD_CANCELED;
}

static bool cancels(void)
{
	return is_cancelled(await_cm_event, rdma_create_event_channel()) &&
	       is_cancelled(await_cq_event, ibv_create_comp_channel(open_device()));
}

/* ---- faults and handlers ---- */

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
	stat("/proc/self/exe", &own);
	fclose(f);
	next = open("/proc/self/exe", O_RDONLY);
	return next == fd && !fstat(next, &st) && st.st_size == own.st_size;
}

static bool points_nowhere(void)
{
	return access((char *)8, F_OK) == -1 && errno == EFAULT;
}

/* ---- one after the other ---- */

static const struct habit {
	const char *name;
	bool (*is_well)(void);
} habits[] = {
	{ "a-child-that-closes-all-ends-nothing", child_closes },
	{ "a-child-of-the-bare-call-reads-what-it-opens", child_of_bare_call },
	{ "a-daemon-that-polls-hears-of-connections", daemon_polls },
	{ "a-daemon-that-epolls-hears-of-connections", daemon_epolls },
	{ "threads-that-wait-for-events-are-cancelled", cancels },
	{ "a-bad-pointer-with-all-signals-blocked", all_blocked },
	{ "a-bad-pointer-with-a-handler-by-an-old-name", old_signal },
	{ "a-handler-is-called-as-was-asked", handler_as_asked },
	{ "signal-after-siginterrupt", interrupts },
	{ "a-number-that-fclose-gave-back", streams },
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
	int n_failed = 0;
	unsigned int i;
	bool well;

	conn_program = "habits";
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "habits HOST PORT [LEFT_OUT]\n");
		return 2;
	}
	host = argv[1];
	for (i = 0; i < HABITS; i++) {
		snprintf(port, sizeof(port), "%u", (atoi(argv[2]) + i) % 65536);
		well = (argc == 4 && !strcmp(argv[3], habits[i].name)) || try_habit(&habits[i]);
		n_failed += !well;
		printf("%sok %u - %s\n", well ? "" : "not ", i + 1, habits[i].name);
		fflush(stdout);
	}
	printf("1..%zu\n", HABITS);
	return !!n_failed;
}
