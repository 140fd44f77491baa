// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Forks while a queue is polled busily: then the parent ends, or the child does, and the other goes
 * on with the connection. The peer is a process of its own. TAP on stdout.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demand.h"
#include "waits.h"

#define PORT	"7483"

static struct {
	struct demand peer;
	int child;			/* of a parent that ends */
} *shared;

static uint8_t *octets;			/* registered: the peer reads them */

/* ---- a queue that is polled busily ---- */

#define TURNS	50	/* messages there and back, which are polled for */
#define NOT_SILENT	3	/* an exit status: polls were too rare, and nothing was tested */
#define TRIES	100

static volatile bool stop;
static int turns;			/* atomic: to be taken */
static int pause_asked, paused;		/* atomic: between two polls */

static void take_a_turn(void)
{
	struct ibv_wc wc;
	int n, left = 2;

	post_recv(&t.c, 1);
	post_send(&t.c, 2);
	while (left) {
		n = ibv_poll_cq(t.c.cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			fail("a turn failed");
		left -= n;
	}
}

static void *poll_busily(void *unused)
{
	struct ibv_wc wc;

	(void)unused;
	while (!stop) {
		for (; load(&turns); add(&turns, -1))
			take_a_turn();
		if (ibv_poll_cq(t.c.cq, 1, &wc))
			fail("there was a completion");
		while (load(&pause_asked))
			store(&paused, 1);
	}
	return NULL;
}

/* It must not hang. */
static pid_t start_process(void)
{
	pid_t pid = fork();

	if (!pid)
		alarm(TIMEOUT / 1000);
	if (pid < 0)
		fail("no process");
	return pid;
}

/* A child of fork() would have the queue's lock for ever, if it was taken: that of any device's. */
static pid_t fork_between_polls(void)
{
	pid_t pid;

	store(&paused, 0);
	store(&pause_asked, 1);
	while (!load(&paused))
		;
	pid = start_process();
	store(&pause_asked, 0);
	return pid;
}

/* An epoll of weft's has one socket, and wants to know of nothing but its end. */
static bool is_silent(const char *number)
{
	char path[300], line[256];
	unsigned int events = 0;
	int fd, n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", number);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		n += sscanf(line, "tfd: %d events: %x", &fd, &events) == 2;
	if (f)
		fclose(f);
	/* EPOLLERR and EPOLLHUP. */
	return n == 1 && events == 0x18;
}

static bool an_epoll_is_silent(void)
{
	DIR *d = opendir("/proc/self/fdinfo");
	bool found = false;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = is_silent(e->d_name);
	if (d)
		closedir(d);
	return found;
}

static pthread_t poller;

/* Only polls that find something, now and then, are judged to be busy. */
static void take_turns(void)
{
	store(&shared->peer.answers, TURNS);
	store(&turns, TURNS);
	while (load(&turns))
		moment();
}

/* The CQ's epoll is silent when this returns, and its queue is polled. */
static void begin_to_poll(void)
{
	stop = false;
	if (pthread_create(&poller, NULL, poll_busily, NULL))
		fail("no thread");
	do
		take_turns();
	while (!an_epoll_is_silent());
}

static void end_polls(void)
{
	stop = true;
	pthread_join(poller, NULL);
}

/* ---- ways to go on ---- */

static bool goes_on_by_polls(void)
{
	struct ibv_wc wc;
	int n;

	store(&shared->peer.send, 1);
	while (!(n = ibv_poll_cq(t.c.cq, 1, &wc)))
		;
	return n == 1 && wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS;
}

static bool goes_on_by_events(void)
{
	arm(&t.c);
	store(&shared->peer.send, 1);
	return take_by_event(&t.c, 1);
}

/* It polls once, and then makes no call. */
static bool goes_on_as_a_target(void)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(t.c.cq, 1, &wc))
		return false;
	store(&shared->peer.read, 1);
	while (load(&shared->peer.read))
		moment();
	return true;
}

static bool sends(void)
{
	store(&shared->peer.answers, 1);
	take_a_turn();
	return true;
}

static bool goes_on_in_all_ways(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (!goes_on_by_events() || !sends() || !goes_on_as_a_target())
			return false;
		post_recv(&t.c, 1);
		if (!goes_on_by_polls())
			return false;
		post_recv(&t.c, 1);
	}
	return true;
}

/* As verbs allow: with a device, a connection and a queue of its own. */
static bool goes_on_with_its_own(void)
{
	struct conn theirs = t.c;

	t.c = (struct conn){ 0 };
	demand_end(&shared->peer);
	demand_connect(&t.c, t.addr, PORT);
	return t.c.cq != theirs.cq && goes_on_by_events() && sends();
}

/* ---- processes ---- */

static pid_t self;			/* the process that runs the cases */

struct way {
	bool (*before)(void);		/* in the parent, before it has a device; may be NULL */
	void (*end)(void);		/* how the parent ends; NULL: the child does */
	bool (*then)(void);		/* in the process that is left */
	int generations;		/* with a silent epoll; each child is a parent in its turn */
};

/* Its exit status; that of one that is killed is 0. */
static int end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WTERMSIG(status) == SIGKILL ? 0 : 128 + WTERMSIG(status);
}

static void connect_to_peer(void)
{
	struct ibv_mr *mr;

	demand_connect(&t.c, t.addr, PORT);
	mr = conn_reg(&t.c, octets, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	shared->peer.addr = (uintptr_t)octets;
	shared->peer.rkey = mr->rkey;
}

/*
 * Forks while another thread polls. Returns in the process that is left, and says whether that found
 * the epoll silent: a parent that got no CPU to poll on wakes it.
 */
static bool fork_and_end(const struct way *w)
{
	pid_t child;

	begin_to_poll();
	child = fork_between_polls();
	if (child && w->end) {
		store(&shared->child, child);
		w->end();
	}
	if (!child && !w->end)
		_exit(0);
	if (child) {
		end_polls();
		_exit(end_of(child) || !w->then());
	}
	/* It has closed all that it had. */
	while (getppid() != self)
		moment();
	return an_epoll_is_silent();
}

static void be_the_parent(const struct way *w)
{
	int silent = 0, i;

	if (w->before && !w->before())
		_exit(2);
	connect_to_peer();
	for (i = 0; i < TRIES && silent < w->generations; i++)
		silent += fork_and_end(w);
	_exit(silent < w->generations ? NOT_SILENT : !w->then());
}

static bool goes(const struct way *w)
{
	int status = 0;
	pid_t pid;

	store(&shared->child, 0);
	pid = start_process();
	if (!pid)
		be_the_parent(w);
	/* Its child is this process's then. */
	for (; pid && !status; pid = __atomic_exchange_n(&shared->child, 0, __ATOMIC_SEQ_CST))
		status = end_of(pid);
	demand_end(&shared->peer);
	if (status)
		printf("# exit status %d\n", status);
	return !status;
}

static void end_at_once(void)
{
	_exit(0);
}

static void end_orderly(void)
{
	exit(0);
}

static void be_killed(void)
{
	kill(getpid(), SIGKILL);
}

static bool is_fork_safe(void)
{
	return !ibv_fork_init();
}

/* ---- cases ---- */

static bool a_child_goes_on_by_polls(void)
{
	return goes(&(struct way){ .end = end_at_once, .then = goes_on_by_polls, .generations = 1 });
}

static bool a_child_goes_on_by_events(void)
{
	return goes(&(struct way){ .end = end_at_once, .then = goes_on_by_events, .generations = 1 });
}

static bool a_child_goes_on_as_a_target(void)
{
	return goes(&(struct way){ .end = end_at_once, .then = goes_on_as_a_target, .generations = 1 });
}

static bool a_child_goes_on_after_exit(void)
{
	return goes(&(struct way){ .end = end_orderly, .then = goes_on_in_all_ways, .generations = 1 });
}

static bool a_child_goes_on_after_a_kill(void)
{
	return goes(&(struct way){ .end = be_killed, .then = goes_on_in_all_ways, .generations = 1 });
}

static bool a_child_of_children_goes_on(void)
{
	return goes(&(struct way){ .end = end_at_once, .then = goes_on_in_all_ways, .generations = 4 });
}

static bool a_child_has_a_queue_of_its_own(void)
{
	return goes(&(struct way){ .end = end_at_once, .then = goes_on_with_its_own, .generations = 1 });
}

static bool a_child_has_one_after_ibv_fork_init(void)
{
	return goes(&(struct way){ .before = is_fork_safe, .end = end_at_once, .then = goes_on_with_its_own,
				   .generations = 1 });
}

static bool a_parent_goes_on(void)
{
	return goes(&(struct way){ .then = goes_on_in_all_ways, .generations = 1 });
}

static bool a_parent_goes_on_after_ibv_fork_init(void)
{
	return goes(&(struct way){ .before = is_fork_safe, .then = goes_on_in_all_ways, .generations = 1 });
}

static const struct a_case list[] = {
	{ "a-child-goes-on-by-polls", a_child_goes_on_by_polls, NULL },
	{ "a-child-goes-on-by-events", a_child_goes_on_by_events, NULL },
	{ "a-child-goes-on-as-a-target", a_child_goes_on_as_a_target, NULL },
	{ "a-child-goes-on-after-exit", a_child_goes_on_after_exit, NULL },
	{ "a-child-goes-on-after-a-kill", a_child_goes_on_after_a_kill, NULL },
	{ "a-child-of-children-goes-on", a_child_of_children_goes_on, NULL },
	{ "a-child-has-a-queue-of-its-own", a_child_has_a_queue_of_its_own, NULL },
	{ "a-child-has-one-after-ibv-fork-init", a_child_has_one_after_ibv_fork_init, NULL },
	{ "a-parent-goes-on", a_parent_goes_on, NULL },
	{ "a-parent-goes-on-after-ibv-fork-init", a_parent_goes_on_after_ibv_fork_init, NULL },
};

static void open_nothing(const void *unused)
{
	(void)unused;
}

static void close_nothing(void)
{
}

static const struct cases cases = CASES(open_nothing, close_nothing, list);

int main(int argc, char **argv)
{
	t.addr = cases_begin(argc, argv, "weft-forks");
	self = getpid();
	octets = ends_buffer();
	shared = shared_memory(sizeof(*shared));
	/* A child whose parent has ended is this process's. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	demand_start(&shared->peer, t.addr, PORT);
	cases_run(&cases, "");
	return cases_end();
}
