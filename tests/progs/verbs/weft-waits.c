// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that wait in ibv_get_cq_event(): signals that end a wait, threads that are woken, and
 * traffic after a wait. Each case has a connection of its own, both ends in this process, over the
 * device that has ADDR. TAP on stdout.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sleeps.h"
#include "waits.h"

#define TURNS	1000

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&t.s);
	conn_make_qp(&t.s, DEPTH, DEPTH, 0);
	conn_accept(&t.s, NULL, 0);
	return NULL;
}

static void open_pair(const void *unused)
{
	(void)unused;
	ends_open(&t, serve, NULL);
}

static void close_pair(void)
{
	ends_close(&t);
}

/* Without events, which are the waiters'. */
static bool took_by_polls(struct conn *c, uint64_t id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(c->cq, 1, &wc)))
		moment();
	return n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS;
}

/* ---- signals ---- */

static volatile sig_atomic_t heard;

static void hear(int sig)
{
	(void)sig;
	heard++;
}

static void handle_by(int sig, void (*handler)(int sig), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &a, NULL);
}

static void handle(int flags)
{
	handle_by(SIGUSR1, hear, flags);
}

static void tell_by(struct waiter *w, int sig)
{
	int before = heard;

	pthread_kill(w->thread, sig);
	while (heard == before)
		moment();
}

static void tell(struct waiter *w)
{
	tell_by(w, SIGUSR1);
}

/* The wait has gone on after signals, and ends with a completion. */
static bool gets_a_completion(struct waiter *w)
{
	post_recv(&t.s, 1);
	post_send(&t.c, 2);
	return !join(w) && took(&t.s, 1) && took(&t.c, 2);
}

static bool a_handler_without_restart_ends_a_wait(void)
{
	struct waiter w = { 0 };

	handle(0);
	arm(&t.s);
	start(&w);
	tell(&w);
	return join(&w) == EINTR;
}

static bool a_handler_with_restart_does_not(void)
{
	struct waiter w = { 0 };
	int i;

	handle(SA_RESTART);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	for (i = 0; i < 3; i++)
		tell(&w);
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

static bool ends_by_new_handler(void (*set)(void))
{
	struct waiter w = { 0 };

	handle_by(SIGUSR1, SIG_DFL, 0);
	arm(&t.s);
	start(&w);
	set();
	tell(&w);
	return join(&w) == EINTR;
}

static void set_plain(void)
{
	handle(0);
}

static void set_resetting(void)
{
	handle(SA_RESETHAND);
}

static void set_by_signal(void)
{
	sysv_signal(SIGUSR1, hear);
}

static bool a_handler_set_during_a_wait_ends_it(void)
{
	return ends_by_new_handler(set_plain) && ends_by_new_handler(set_by_signal);
}

static bool a_handler_that_resets_itself_ends_a_wait(void)
{
	return ends_by_new_handler(set_resetting);
}

static bool a_restarting_handler_set_during_a_wait_does_not(void)
{
	struct waiter w = { 0 };

	handle_by(SIGUSR1, SIG_DFL, 0);
	arm(&t.s);
	start(&w);
	handle(SA_RESTART);
	tell(&w);
	handle_by(SIGUSR2, hear, 0);
	tell(&w);
	handle_by(SIGUSR2, SIG_DFL, 0);
	return gets_a_completion(&w);
}

/* It sets handlers itself, as old programs do. */
static void hear_and_set(int sig)
{
	handle_by(sig, hear_and_set, SA_RESTART);
	handle_by(SIGUSR2, hear, SA_RESTART);
	heard++;
}

/* @handler, with SA_RESTART, has run in the wait. */
static void start_and_tell(struct waiter *w, void (*handler)(int sig))
{
	handle_by(SIGUSR2, SIG_DFL, 0);
	handle_by(SIGUSR1, handler, SA_RESTART);
	arm(&t.s);
	start(w);
	tell(w);
}

static bool a_handler_may_set_handlers(void)
{
	struct waiter w = { 0 };

	start_and_tell(&w, hear_and_set);
	tell(&w);
	tell_by(&w, SIGUSR2);
	return gets_a_completion(&w);
}

static void hear_and_arm(int sig)
{
	handle_by(sig, hear_and_arm, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	heard++;
}

static bool a_handler_may_set_one_of_the_other_kind(void)
{
	struct waiter w = { 0 };

	start_and_tell(&w, hear_and_arm);
	tell_by(&w, SIGUSR2);
	handle_by(SIGUSR2, SIG_DFL, 0);
	return join(&w) == EINTR;
}

static bool handlers_of_either_kind_do_as_they_say(void)
{
	struct waiter w = { 0 };

	handle(SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	arm(&t.s);
	start(&w);
	tell(&w);
	tell_by(&w, SIGUSR2);
	handle_by(SIGUSR2, SIG_DFL, 0);
	return join(&w) == EINTR;
}

/* Also those that mostly mean a fault. */
static bool any_signal_may_end_a_wait(void)
{
	static const int sigs[] = { SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGTERM, SIGCHLD, SIGPROF };
	struct waiter w = { 0 };
	unsigned int i;
	int rv;

	handle_by(SIGUSR1, SIG_DFL, 0);
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		handle_by(sigs[i], hear, 0);
		arm(&t.s);
		start(&w);
		tell_by(&w, sigs[i]);
		rv = join(&w);
		handle_by(sigs[i], SIG_DFL, 0);
		if (rv != EINTR)
			return false;
	}
	return true;
}

/* The thread's mask is its own while it waits, and after. */
static bool a_blocked_signal_is_not_delivered(void)
{
	struct waiter w = { 0 };
	sigset_t usr1, old;
	int before = heard;

	handle(0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, &old);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pthread_kill(w.thread, SIGUSR1);
	post_send(&t.c, 2);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !join(&w) && heard == before && took(&t.s, 1) && took(&t.c, 2);
}

static void block_usr1(void)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
}

static sigset_t mask_after;

static void note_mask(struct waiter *w)
{
	(void)w;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
}

static bool the_mask_is_the_same_after_a_wait(void)
{
	struct waiter w = { .before = block_usr1, .after = note_mask };

	handle(SA_RESTART);
	arm(&t.s);
	start(&w);
	return gets_a_completion(&w) && sigismember(&mask_after, SIGUSR1) == 1 &&
	       sigismember(&mask_after, SIGUSR2) == 0 && sigismember(&mask_after, SIGTERM) == 0;
}

/* ---- handlers that do not return ---- */

static __thread sigjmp_buf away;

static void leave(int sig)
{
	(void)sig;
	heard++;
	siglongjmp(away, 1);
}

/* The event arrives while the thread sleeps elsewhere, and not with the connection's next timer. */
static int sleep_elsewhere(void)
{
	struct pollfd p = { .fd = t.s.comp->fd, .events = POLLIN };

	return poll(&p, 1, 5000) == 1 ? await_event(&t.s) : ETIMEDOUT;
}

static int end_thread(void)
{
	return 0;
}

static int wait_again(void)
{
	return await_event(&t.s);
}

struct leaver {
	struct waiter w;
	int (*then)(void);
	int times;
};

static void *wait_and_leave(void *arg)
{
	struct leaver *l = arg;

	while (l->times-- > 0) {
		if (sigsetjmp(away, 1))
			continue;
		__atomic_store_n(&l->w.tid, gettid(), __ATOMIC_RELEASE);
		await_event(&t.s);
	}
	__atomic_store_n(&l->w.tid, 0, __ATOMIC_RELEASE);
	l->w.result = l->then();
	return NULL;
}

static void start_leaver(struct leaver *l)
{
	int times = l->times, i, before;

	handle_by(SIGUSR1, leave, SA_RESTART);
	if (pthread_create(&l->w.thread, NULL, wait_and_leave, l))
		fail("no thread");
	for (i = 0; i < times; i++) {
		before = heard;
		while (!l->w.tid || state_of(l->w.tid) != 'S')
			moment();
		pthread_kill(l->w.thread, SIGUSR1);
		while (heard == before)
			moment();
	}
	while (__atomic_load_n(&l->w.tid, __ATOMIC_ACQUIRE))
		moment();
}

/* The client does not poll before: that would work for the server, too. */
static bool gets_it_after_leaving(int (*then)(void), int times)
{
	struct leaver l = { .then = then, .times = times };
	bool ok;

	post_recv(&t.s, 1);
	arm(&t.s);
	start_leaver(&l);
	post_send(&t.c, 2);
	ok = !join(&l.w);
	handle_by(SIGUSR1, SIG_DFL, 0);
	return ok && (then == end_thread ? take_by_event(&t.s, 1) : took(&t.s, 1)) && took(&t.c, 2);
}

static bool a_wait_may_be_left_for_another_sleep(void)
{
	return gets_it_after_leaving(sleep_elsewhere, 1);
}

static bool a_wait_may_be_left_for_another_wait(void)
{
	return gets_it_after_leaving(wait_again, 50);
}

static bool a_thread_that_left_a_wait_may_end(void)
{
	return gets_it_after_leaving(end_thread, 3);
}

/* It reads the channel that its thread waits for. */
static void wait_within(int sig)
{
	(void)sig;
	heard++;
	if (!await_event(&t.s))
		heard++;
}

static bool a_handler_may_wait_itself(void)
{
	struct waiter w = { 0 };
	int before = heard;

	handle_by(SIGUSR1, wait_within, SA_RESTART);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	tell(&w);
	while (state_of(w.tid) != 'S')
		moment();
	post_send(&t.c, 2);
	while (heard != before + 2)
		moment();
	if (!took(&t.c, 2) || !took(&t.s, 1))
		return false;
	arm(&t.s);
	handle_by(SIGUSR1, SIG_DFL, 0);
	return gets_a_completion(&w);
}

/* ---- a fork in a handler ---- */

static volatile pid_t forked;

static void fork_here(int sig)
{
	pid_t pid = fork();

	(void)sig;
	if (!pid)
		alarm(TIMEOUT / 1000);
	forked = pid;
	heard++;
}

/* In the child the call returns, and the channel is as it was. */
static void go_on_in_child(struct waiter *w)
{
	int flags = fcntl(t.s.comp->fd, F_GETFL), i;

	if (forked)
		return;
	if (w->result != EINTR)
		_exit(1);
	for (i = 0; i < 3; i++)
		if (fcntl(t.s.comp->fd, F_SETFL, flags | O_NONBLOCK) || await_event(&t.s) != EAGAIN)
			_exit(2);
	_exit(fcntl(t.s.comp->fd, F_SETFL, flags) ? 3 : 0);
}

static bool a_handler_may_fork(void)
{
	struct waiter w = { .after = go_on_in_child };
	int status, i;

	for (i = 0; i < 10; i++) {
		handle_by(SIGUSR1, fork_here, 0);
		arm(&t.s);
		start(&w);
		tell(&w);
		if (join(&w) != EINTR || waitpid(forked, &status, 0) != forked || status)
			return false;
	}
	handle_by(SIGUSR1, SIG_DFL, 0);
	start(&w);
	return gets_a_completion(&w);
}

/* The child's wait goes on, but without the parent's sockets. */
static bool a_child_that_waits_on_takes_nothing(void)
{
	struct waiter w = { 0 };
	int i, status;
	bool ok = true;

	for (i = 0; i < 20 && ok; i++) {
		handle_by(SIGUSR1, fork_here, SA_RESTART);
		post_recv(&t.s, 1);
		arm(&t.s);
		start(&w);
		tell(&w);
		post_send(&t.c, 2);
		ok = took(&t.c, 2) && took_by_polls(&t.s, 1);
		kill(forked, SIGKILL);
		waitpid(forked, &status, 0);
		/* The child may have taken the count. */
		handle(0);
		while (pthread_tryjoin_np(w.thread, NULL)) {
			pthread_kill(w.thread, SIGUSR1);
			moment();
		}
	}
	handle_by(SIGUSR1, SIG_DFL, 0);
	return ok;
}

/* ---- threads ---- */

static bool a_cancelled_wait_leaves_the_queue_in_order(void)
{
	struct waiter w = { 0 };

	if (!can_cancel())
		return true;
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pthread_cancel(w.thread);
	pthread_join(w.thread, NULL);
	post_send(&t.c, 2);
	return take_by_event(&t.s, 1) && took(&t.c, 2);
}

/* Each event wakes one thread; the second thread gets the next event after the first has gone. */
static bool two_threads_get_an_event_each(void)
{
	struct waiter w[2] = { 0 };
	struct ibv_wc wc;

	post_recv(&t.s, 1);
	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w[0]);
	start(&w[1]);
	post_send(&t.c, 2);
	if (!took(&t.c, 2))
		return false;
	while (state_of(w[0].tid) && state_of(w[1].tid))
		moment();
	while (!ibv_poll_cq(t.s.cq, 1, &wc))
		moment();
	arm(&t.s);
	post_send(&t.c, 2);
	return !join(&w[0]) && !join(&w[1]) && took(&t.c, 2) && took(&t.s, 1);
}

static int compare(const void *a, const void *b)
{
	const long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* Which of them the first event woke is left to them. */
static bool a_second_thread_does_not_wait_for_the_first(void)
{
	long us[51];
	unsigned int i;

	for (i = 0; i < 51; i++) {
		struct waiter w[2] = { 0 };

		post_recv(&t.s, 1);
		post_recv(&t.s, 1);
		arm(&t.s);
		start(&w[0]);
		start(&w[1]);
		post_send(&t.c, 2);
		if (!took_by_polls(&t.s, 1))
			return false;
		while (state_of(w[0].tid) && state_of(w[1].tid))
			moment();
		arm(&t.s);
		us[i] = now_us();
		post_send(&t.c, 2);
		if (join(&w[0]) || join(&w[1]))
			return false;
		us[i] = now_us() - us[i];
		if (!took(&t.s, 1) || !took(&t.c, 2) || !took(&t.c, 2))
			return false;
	}
	qsort(us, 51, sizeof(us[0]), compare);
	printf("# a quarter of the second threads had their event within %ld us\n", us[12]);
	return us[12] < 1000;
}

/* The client sleeps meanwhile, so no poll of its own works for the server. */
static bool client_reads(void)
{
	struct ibv_mr *mr = conn_reg(&t.s, t.to, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = sge_of(t.from, BUF, t.from_mr);
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)t.to;
	wr.wr.rdma.rkey = mr->rkey;
	memset(t.to, 'x', BUF);
	arm(&t.c);
	return !ibv_post_send(t.c.id->qp, &wr, &bad) && take_by_event(&t.c, 3) && !memcmp(t.from, t.to, BUF);
}

/* It waited once, and does other things: what its peer reads is sent all the same. */
static bool reads_are_served_after_a_wait(void)
{
	post_recv(&t.s, 1);
	post_send(&t.c, 2);
	return take_by_event(&t.s, 1) && took(&t.c, 2) && client_reads();
}

static bool reads_are_served_after_busy_polls(void)
{
	long until = now_us() + 20000;
	struct ibv_wc wc;

	while (now_us() < until)
		if (ibv_poll_cq(t.s.cq, 1, &wc))
			return false;
	return client_reads();
}

/* A child goes on with what its parent has, while a thread of the parent waits. */
static bool a_child_has_a_device_of_its_own(void)
{
	struct waiter w = { 0 };
	struct ibv_context *ctx;
	int status;
	pid_t pid;

	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	pid = fork();
	if (!pid) {
		ctx = ibv_open_device(ibv_get_device_list(NULL)[0]);
		_exit(!ctx || ibv_close_device(ctx));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return false;
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

/* Another number names the channel still, as does the wait itself. */
static bool a_channel_is_closed_while_it_is_waited_for(void)
{
	int fd = t.s.comp->fd, other = dup(fd);
	struct waiter w = { 0 };
	bool ok;

	arm(&t.s);
	start(&w);
	close(fd);
	ok = gets_a_completion(&w) && dup2(other, fd) == fd;
	close(other);
	return ok;
}

/* The channel's other queue is there still. */
static bool a_queue_goes_while_its_channel_is_waited_for(void)
{
	struct ibv_cq *more = ibv_create_cq(t.s.id->verbs, 4, NULL, t.s.comp, 0);
	struct waiter w = { 0 };

	post_recv(&t.s, 1);
	arm(&t.s);
	start(&w);
	if (!more || ibv_destroy_cq(more))
		return false;
	post_send(&t.c, 2);
	return !join(&w) && took(&t.s, 1) && took(&t.c, 2);
}

/* ---- what a host may lack ---- */

/* preadv2() without waiting, as for eventfds before Linux 5.8. Of this thread. */
static void lack_nowait(void)
{
	const struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {
		.len = sizeof(lines) / sizeof(lines[0]), .filter = (struct sock_filter *)lines,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		fail("no filter of system calls");
}

/* Its event is not of its own doing: the client polls, and that works for the server. */
static bool an_old_kernel_will_do(void)
{
	struct waiter w = { .before = lack_nowait };
	int i;

	for (i = 0; i < 20; i++) {
		post_recv(&t.s, 1);
		arm(&t.s);
		start(&w);
		post_send(&t.c, 2);
		while (!took(&t.c, 2))
			;
		if (join(&w) || !took(&t.s, 1))
			return false;
	}
	return true;
}

static long cpu_us;

static void note_cpu(struct waiter *w)
{
	struct timespec ts;

	(void)w;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	cpu_us = ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Of the client's connection, by whatever number weft has hidden it. */
static void reset_tcp(void)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct sockaddr_in peer;
	socklen_t len;
	int fd;

	for (fd = 3; fd < 65536; fd++) {
		len = sizeof(peer);
		if (!syscall(SYS_getpeername, fd, &peer, &len) && peer.sin_port == htons(7481))
			syscall(SYS_connect, fd, &nobody, sizeof(nobody));
	}
}

/* The socket has octets that are not read yet, and then an end. */
static bool a_send_without_a_receive_costs_no_cpu(void)
{
	struct waiter w = { .after = note_cpu };
	int i;

	handle(0);
	arm(&t.s);
	start(&w);
	post_send(&t.c, 2);
	reset_tcp();
	for (i = 0; i < 300; i++)
		moment();
	pthread_kill(w.thread, SIGUSR1);
	if (join(&w) == ETIMEDOUT)
		return false;
	printf("# the thread that waited had %ld us of CPU in 300 ms\n", cpu_us);
	return cpu_us < 50000;
}

/* ---- wake-ups ---- */

static void *answer(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < TURNS; i++) {
		if (!take_by_event(&t.s, 1))
			return (void *)1;
		post_recv(&t.s, 1);
		post_send(&t.s, 3);
		if (!take_by_event(&t.s, 3))
			return (void *)1;
	}
	return NULL;
}

/* False: something failed. */
static bool take_turns(void)
{
	pthread_t server;
	void *failed;
	int i;

	post_recv(&t.s, 1);
	post_recv(&t.c, 1);
	if (pthread_create(&server, NULL, answer, NULL))
		fail("no thread");
	for (i = 0; i < TURNS; i++) {
		post_send(&t.c, 2);
		if (!take_by_event(&t.c, 2) || !take_by_event(&t.c, 1))
			return false;
		post_recv(&t.c, 1);
	}
	pthread_join(server, &failed);
	return !failed;
}

/*
 * Those that wait move the octets. weft's thread looks every 2 ms whether they still do; without
 * them it sleeps once a turn. On a busy host it may be needed more often.
 */
static bool wakes_alone(void)
{
	long before, began, sleeps = TURNS;
	int i;

	for (i = 0; i < 5 && sleeps >= TURNS / 2; i++) {
		before = sleeps_of_progress();
		if (before < 0)
			return false;
		began = now_us();
		if (!take_turns())
			return false;
		sleeps = sleeps_of_progress() - before;
		printf("# %d turns in %ld ms: weft's thread slept %ld times\n", TURNS,
		       (now_us() - began) / 1000, sleeps);
	}
	return sleeps < TURNS / 2;
}

/* Without a handler: the cases before have set some. */
static bool whoever_waits_is_woken_alone(void)
{
	handle_by(SIGUSR1, SIG_DFL, 0);
	handle_by(SIGUSR2, SIG_DFL, 0);
	return wakes_alone();
}

static bool all_is_well(void)
{
	post_recv(&t.s, 1);
	arm(&t.s);
	post_send(&t.c, 2);
	return take_by_event(&t.s, 1) && took(&t.c, 2);
}

static const struct a_case list[] = {
	{ "a-key-may-have-been-used-before", all_is_well, NULL },
	{ "a-handler-without-restart-ends-a-wait", a_handler_without_restart_ends_a_wait, NULL },
	{ "a-handler-with-restart-does-not", a_handler_with_restart_does_not, NULL },
	{ "a-handler-set-during-a-wait-ends-it", a_handler_set_during_a_wait_ends_it, NULL },
	{ "a-handler-that-resets-itself-ends-a-wait", a_handler_that_resets_itself_ends_a_wait, NULL },
	{ "a-restarting-handler-set-during-a-wait-does-not",
	  a_restarting_handler_set_during_a_wait_does_not, NULL },
	{ "a-handler-may-set-handlers", a_handler_may_set_handlers, NULL },
	{ "a-handler-may-set-one-of-the-other-kind", a_handler_may_set_one_of_the_other_kind, NULL },
	{ "handlers-of-either-kind-do-as-they-say", handlers_of_either_kind_do_as_they_say, NULL },
	{ "any-signal-may-end-a-wait", any_signal_may_end_a_wait, NULL },
	{ "a-blocked-signal-is-not-delivered", a_blocked_signal_is_not_delivered, NULL },
	{ "the-mask-is-the-same-after-a-wait", the_mask_is_the_same_after_a_wait, NULL },
	{ "a-wait-may-be-left-for-another-sleep", a_wait_may_be_left_for_another_sleep, NULL },
	{ "a-wait-may-be-left-for-another-wait", a_wait_may_be_left_for_another_wait, NULL },
	{ "a-thread-that-left-a-wait-may-end", a_thread_that_left_a_wait_may_end, NULL },
	{ "a-handler-may-wait-itself", a_handler_may_wait_itself, NULL },
	{ "a-handler-may-fork", a_handler_may_fork, NULL },
	{ "a-child-that-waits-on-takes-nothing", a_child_that_waits_on_takes_nothing, NULL },
	{ "a-cancelled-wait-leaves-the-queue-in-order", a_cancelled_wait_leaves_the_queue_in_order, NULL },
	{ "two-threads-get-an-event-each", two_threads_get_an_event_each, NULL },
	{ "a-second-thread-does-not-wait-for-the-first", a_second_thread_does_not_wait_for_the_first, NULL },
	{ "reads-are-served-after-a-wait", reads_are_served_after_a_wait, NULL },
	{ "reads-are-served-after-busy-polls", reads_are_served_after_busy_polls, NULL },
	{ "a-child-has-a-device-of-its-own", a_child_has_a_device_of_its_own, NULL },
	{ "a-queue-goes-while-its-channel-is-waited-for", a_queue_goes_while_its_channel_is_waited_for, NULL },
	{ "a-channel-is-closed-while-it-is-waited-for", a_channel_is_closed_while_it_is_waited_for, NULL },
	{ "an-old-kernel-will-do", an_old_kernel_will_do, NULL },
	{ "a-send-without-a-receive-costs-no-cpu", a_send_without_a_receive_costs_no_cpu, NULL },
	{ "whoever-waits-is-woken-alone", whoever_waits_is_woken_alone, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

/* weft's keys repeat when a place of its table has been used 4096 times. */
static void use_keys(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = devices && *devices ? ibv_open_device(*devices) : NULL;
	struct ibv_cq *cq;
	int i;

	if (!ctx)
		fail("no device");
	for (i = 1; i < 4096; i++) {
		cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
		if (!cq || ibv_destroy_cq(cq))
			fail("no CQ");
	}
	ibv_close_device(ctx);
	ibv_free_device_list(devices);
}

static void open_nothing(const void *unused)
{
	(void)unused;
}

static void close_nothing(void)
{
}

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-waits");

	use_keys();
	ends_init(&t, addr, "7481");
	cases_run(&cases, "");
	cases_run(&(struct cases){ open_nothing, close_nothing, storms, n_storms }, "");
	return cases_end();
}
