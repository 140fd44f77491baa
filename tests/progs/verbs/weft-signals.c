// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program of one thread that waits in ibv_get_cq_event() and has signal handlers. Two processes
 * help: the peer, which sends on demand or answers each message, and one that sends signals while
 * this one sleeps. Nothing is expected that a device's own driver would not give, but for the
 * wake-ups of weft's thread. TAP on stdout.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "demand.h"
#include "sleeps.h"
#include "waits.h"

#define TURNS	1000
#define STORM	3000	/* turns under a storm of signals */
#define PORT	"7482"

/* What the processes tell each other. */
static struct {
	struct demand peer;
	int order;			/* signals are to be sent; 0 again when they were */
	int stop;			/* the order is withdrawn */
	int sig, times;			/* which, one for each sleep */
	bool to_thread;			/* and not to the process */
	int value;			/* it is queued with this one, unless 0 */
	int then_send;			/* messages, in the next sleep */
	int waiting;			/* this process is in a wait, or will be at once */
	long slept;			/* how often it had slept before */
	int heard;			/* handlers that ran */
} *shared;

static pid_t self;

/* ---- signals are sent ---- */

static void tell_now(void)
{
	const union sigval value = { .sival_int = shared->value };

	if (shared->value)
		sigqueue(self, shared->sig, value);
	else if (shared->to_thread)
		syscall(SYS_tgkill, self, self, shared->sig);
	else
		kill(self, shared->sig);
}

/* Under a stream it rarely sleeps for long. */
static bool is_in_its_wait(void)
{
	if (!load(&shared->waiting))
		return false;
	return load(&shared->peer.writes) ? sleeps_of(self) > shared->slept + 2 : state_of(self) == 'S';
}

/* False: there is no need any more. */
static bool await_sleep(void)
{
	int times = 0;

	while (times < 2 && !load(&shared->stop)) {
		times = is_in_its_wait() ? times + 1 : 0;
		moment();
	}
	return times == 2;
}

static bool tell_once(void)
{
	int before = load(&shared->heard);

	if (!await_sleep())
		return false;
	tell_now();
	while (load(&shared->heard) == before && !load(&shared->stop))
		moment();
	return true;
}

static void send_signals(void)
{
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		while (!load(&shared->order))
			moment();
		for (i = 0; i < shared->times && tell_once(); i++)
			;
		if (shared->then_send && await_sleep())
			store(&shared->peer.send, shared->then_send);
		store(&shared->order, 0);
	}
}

static void start_sender(void)
{
	pid_t pid = fork();

	if (!pid)
		send_signals();
	if (pid < 0)
		fail("no process");
}

/* ---- this process ---- */

static void open_case(const void *unused)
{
	(void)unused;
	demand_connect(&t.c, t.addr, PORT);
}

static void withdraw(void)
{
	store(&shared->stop, 1);
	while (load(&shared->order))
		moment();
	store(&shared->stop, 0);
}

static bool is_left_open;		/* an event was lost: ibv_destroy_cq() would wait for it */

static void close_case(void)
{
	static const int sigs[] = { SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGTERM, SIGCHLD };
	const sigset_t none = { 0 };
	unsigned int i;

	withdraw();
	/* What is pending is discarded. */
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], SIG_IGN);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], SIG_DFL);
	if (is_left_open)
		rdma_disconnect(t.c.id);
	else
		conn_close(&t.c);
	demand_end(&shared->peer);
}

static void handle_by(int sig, void (*handler)(int sig), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &a, NULL);
}

static void handle_with(int sig, void (*handler)(int sig, siginfo_t *info, void *ctx), int flags)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	sigaction(sig, &a, NULL);
}

static void hear(int sig)
{
	(void)sig;
	add(&shared->heard, 1);
}

/* @sig comes @times while this process sleeps, and then @messages. */
static void expect(int sig, int times, int messages)
{
	withdraw();
	shared->sig = sig;
	shared->times = times;
	shared->then_send = messages;
	store(&shared->order, 1);
}

static int wait_for_event(void)
{
	int rv;

	shared->slept = sleeps_of(self);
	store(&shared->waiting, 1);
	rv = await_event(&t.c);
	store(&shared->waiting, 0);
	return rv;
}

static bool gets_the_message(void)
{
	return !wait_for_event() && took(&t.c, 1);
}

static bool goes_on_after(int sig, int times)
{
	int before = load(&shared->heard);

	expect(sig, times, 1);
	return gets_the_message() && load(&shared->heard) == before + times;
}

/* ---- what ends a wait ---- */

static bool a_restarting_handler_does_not_end_a_wait(void)
{
	handle_by(SIGUSR1, hear, SA_RESTART);
	return goes_on_after(SIGUSR1, 3);
}

static bool an_ending_handler_ends_a_wait(void)
{
	int i;

	handle_by(SIGUSR1, hear, 0);
	for (i = 0; i < 20; i++) {
		shared->to_thread = i % 2;
		expect(SIGUSR1, 1, 0);
		if (wait_for_event() != EINTR)
			return false;
	}
	store(&shared->peer.send, 1);
	return gets_the_message();
}

static bool handlers_of_either_kind_do_as_they_say(void)
{
	handle_by(SIGUSR1, hear, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	if (!goes_on_after(SIGUSR1, 3))
		return false;
	post_recv(&t.c, 1);
	arm(&t.c);
	expect(SIGUSR2, 1, 0);
	return wait_for_event() == EINTR && goes_on_after(SIGUSR1, 1);
}

static bool a_handler_that_resets_itself_ends_a_wait(void)
{
	handle_by(SIGUSR2, hear, SA_RESTART);
	handle_by(SIGUSR1, hear, SA_RESETHAND);
	expect(SIGUSR1, 1, 0);
	return wait_for_event() == EINTR;
}

/* Its handler has reset itself: the next one is ignored, as SIGCHLD is. */
static bool an_ignored_signal_does_not_end_a_wait(void)
{
	handle_by(SIGUSR1, hear, SA_RESTART);
	handle_by(SIGCHLD, hear, SA_RESETHAND);
	expect(SIGCHLD, 1, 0);
	if (wait_for_event() != EINTR)
		return false;
	kill(self, SIGCHLD);
	return goes_on_after(SIGUSR1, 1);
}

static const int many[] = { SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGTERM, SIGCHLD, SIGPROF };

static bool any_signal_may_end_a_wait(void)
{
	unsigned int i;
	int rv;

	for (i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		handle_by(many[i], hear, 0);
		expect(many[i], 1, 0);
		rv = wait_for_event();
		handle_by(many[i], SIG_DFL, 0);
		if (rv != EINTR)
			return false;
	}
	return true;
}

/* It stays pending, and costs no CPU. */
static bool a_blocked_signal_is_not_delivered(void)
{
	struct timespec from, to;
	int before = load(&shared->heard);
	sigset_t usr1, pending;
	long us;

	handle_by(SIGUSR1, hear, 0);
	handle_by(SIGUSR2, hear, SA_RESTART);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	kill(self, SIGUSR1);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	if (!goes_on_after(SIGUSR2, 100))
		return false;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
	printf("# %ld us of CPU in a wait of 100 signals\n", us);
	sigpending(&pending);
	return load(&shared->heard) == before + 100 && sigismember(&pending, SIGUSR1) && us < 100000;
}

/* ---- what a handler sees and changes ---- */

static sigset_t context_mask, handler_mask, after_mask;

static void note_masks(int sig, siginfo_t *info, void *ctx)
{
	(void)info;
	memcpy(&context_mask, &((ucontext_t *)ctx)->uc_sigmask, 8);
	pthread_sigmask(SIG_SETMASK, NULL, &handler_mask);
	hear(sig);
}

/* All of @set are in @mask, and no other. */
static bool is_exactly(const sigset_t *mask, const int *set, int n)
{
	int sig, i;

	for (sig = 1; sig < 64; sig++) {
		bool is_in = false;

		for (i = 0; i < n; i++)
			is_in |= set[i] == sig;
		if (sig != SIGKILL && sig != SIGSTOP && sigismember(mask, sig) != is_in)
			return false;
	}
	return true;
}

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static bool a_handler_sees_the_masks_of_the_program(void)
{
	static const int outside[] = { SIGUSR2 }, inside[] = { SIGUSR1, SIGUSR2 };

	handle_with(SIGUSR1, note_masks, SA_RESTART);
	handle_by(SIGUSR2, hear, SA_RESTART);
	handle_by(SIGTERM, hear, 0);
	block(SIGUSR2);
	if (!goes_on_after(SIGUSR1, 1))
		return false;
	pthread_sigmask(SIG_SETMASK, NULL, &after_mask);
	return is_exactly(&context_mask, outside, 1) && is_exactly(&handler_mask, inside, 2) &&
	       is_exactly(&after_mask, outside, 1);
}

/* From now on SIGUSR2 is blocked, and SIGWINCH is not. */
static void change_mask(int sig, siginfo_t *info, void *ctx)
{
	ucontext_t *c = ctx;

	(void)info;
	sigaddset(&c->uc_sigmask, SIGUSR2);
	sigdelset(&c->uc_sigmask, SIGWINCH);
	hear(sig);
}

/* The wait goes on with the new mask, and leaves it as it is. */
static bool a_mask_that_a_handler_leaves_stays(void)
{
	static const int after[] = { SIGUSR2 };
	int before = load(&shared->heard);

	handle_with(SIGUSR1, change_mask, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	handle_by(SIGWINCH, hear, SA_RESTART);
	block(SIGWINCH);
	kill(self, SIGWINCH);
	expect(SIGUSR1, 1, 1);
	if (!gets_the_message() || load(&shared->heard) != before + 2)
		return false;
	kill(self, SIGUSR2);
	post_recv(&t.c, 1);
	arm(&t.c);
	if (!goes_on_after(SIGWINCH, 1))
		return false;
	pthread_sigmask(SIG_SETMASK, NULL, &after_mask);
	return is_exactly(&after_mask, after, 1);
}

static volatile int values[8], n_values;
static volatile pid_t sender;

static void note_value(int sig, siginfo_t *info, void *ctx)
{
	(void)ctx;
	sender = info->si_code == SI_QUEUE ? info->si_pid : 0;
	values[n_values++ % 8] = info->si_value.sival_int;
	hear(sig);
}

static bool a_handler_knows_its_sender(void)
{
	bool ok;

	handle_with(SIGRTMIN, note_value, SA_RESTART);
	n_values = 0;
	shared->value = 42;
	ok = goes_on_after(SIGRTMIN, 3);
	shared->value = 0;
	signal(SIGRTMIN, SIG_DFL);
	return ok && n_values == 3 && values[0] == 42 && values[2] == 42 && sender && sender != self;
}

/* ---- what a handler does ---- */

static sigjmp_buf away;
static volatile sig_atomic_t may_leave;

static void leave(int sig)
{
	hear(sig);
	siglongjmp(away, 1);
}

/* The message comes while the program sleeps elsewhere. */
static bool a_wait_may_be_left_for_another_sleep(void)
{
	struct pollfd p = { .fd = t.c.comp->fd, .events = POLLIN };
	volatile int i = 0;

	handle_by(SIGUSR1, leave, SA_RESTART);
	while (i++ < 20) {
		if (!sigsetjmp(away, 1)) {
			expect(SIGUSR1, 1, 0);
			wait_for_event();
			return false;
		}
		store(&shared->waiting, 0);
	}
	store(&shared->peer.send, 1);
	return poll(&p, 1, 5000) == 1 && gets_the_message();
}

static bool a_wait_may_be_left_for_another_wait(void)
{
	volatile int i = 0;

	handle_by(SIGUSR1, leave, SA_RESTART);
	while (i++ < 20)
		if (!sigsetjmp(away, 1)) {
			expect(SIGUSR1, 1, 0);
			wait_for_event();
			return false;
		}
	store(&shared->peer.send, 1);
	return gets_the_message();
}

/* It takes the event that its program waits for, and there is another for that. */
static void wait_within(int sig)
{
	hear(sig);
	if (!gets_the_message())
		return;
	post_recv(&t.c, 1);
	arm(&t.c);
	hear(sig);
	store(&shared->peer.send, 1);
}

static bool a_handler_may_wait_itself(void)
{
	int before = load(&shared->heard);

	handle_by(SIGUSR1, wait_within, SA_RESTART);
	expect(SIGUSR1, 1, 1);
	return gets_the_message() && load(&shared->heard) == before + 2;
}

static volatile pid_t child;

static void fork_here(int sig)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	child = pid;
	hear(sig);
}

static bool a_handler_may_fork(void)
{
	int status, i;

	handle_by(SIGUSR1, fork_here, SA_RESTART);
	for (i = 0; i < 5; i++) {
		if (!goes_on_after(SIGUSR1, 1) || waitpid(child, &status, 0) != child || status)
			return false;
		post_recv(&t.c, 1);
		arm(&t.c);
	}
	return true;
}

static void hear_and_set(int sig)
{
	handle_by(SIGUSR1, hear, 0);
	handle_by(SIGUSR2, hear, SA_RESTART);
	hear(sig);
}

static bool a_handler_may_set_handlers(void)
{
	handle_by(SIGUSR1, hear_and_set, SA_RESTART);
	expect(SIGUSR1, 2, 0);
	return wait_for_event() == EINTR && goes_on_after(SIGUSR2, 2);
}

static volatile bool thread_may_end;

static void *have_no_signals(void *unused)
{
	(void)unused;
	while (!thread_may_end)
		moment();
	return NULL;
}

static pthread_t other;

static void start_thread(int sig)
{
	if (pthread_create(&other, NULL, have_no_signals, NULL))
		fail("no thread");
	handle_by(SIGUSR1, hear, SA_RESTART);
	hear(sig);
}

/* The signals of the process are this thread's still. */
static bool a_handler_may_start_a_thread(void)
{
	bool ok;

	thread_may_end = false;
	handle_by(SIGUSR1, start_thread, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	ok = goes_on_after(SIGUSR1, 3);
	if (ok) {
		expect(SIGUSR2, 1, 0);
		ok = wait_for_event() == EINTR;
	}
	thread_may_end = true;
	pthread_join(other, NULL);
	return ok;
}

/* ---- under load ---- */

/* Octets arrive all the time, without an event. */
static bool a_stream_hides_no_signal(void)
{
	static uint8_t octets[BUF];
	struct ibv_mr *mr = conn_reg(&t.c, octets, sizeof(octets), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	bool ok = true;
	int i;

	handle_by(SIGUSR1, hear, 0);
	shared->peer.addr = (uintptr_t)octets;
	shared->peer.rkey = mr->rkey;
	store(&shared->peer.writes, 1);
	for (i = 0; i < 200 && ok; i++) {
		expect(SIGUSR1, 1, 0);
		ok = wait_for_event() == EINTR;
	}
	store(&shared->peer.writes, 0);
	store(&shared->peer.send, 1);
	return ok && gets_the_message();
}

static bool take_turns(int turns, bool (*take)(uint64_t id))
{
	int i;

	for (i = 0; i < turns; i++) {
		post_send(&t.c, 2);
		if (!take(2) || !take(1))
			return false;
		post_recv(&t.c, 1);
	}
	return true;
}

static bool takes(uint64_t id)
{
	return take_by_event(&t.c, id);
}

/* Its wait may be interrupted or left, and then its event is lost: what counts is the queue. */
static bool takes_somehow(uint64_t id)
{
	struct ibv_wc wc;
	int n, i;

	for (;;) {
		for (i = 0; i < 2; i++) {
			n = ibv_poll_cq(t.c.cq, 1, &wc);
			if (n)
				return n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS;
			if (!i)
				arm(&t.c);
		}
		if (sigsetjmp(away, 1))
			continue;
		may_leave = true;
		n = await_event(&t.c);
		may_leave = false;
		if (n && n != EINTR)
			return false;
	}
}

static void leave_a_wait(int sig)
{
	hear(sig);
	if (!may_leave)
		return;
	may_leave = false;
	siglongjmp(away, 1);
}

static bool storm(void (*handler)(int sig), int flags, bool (*take)(uint64_t id))
{
	const struct itimerval ms = { { 0, 1000 }, { 0, 1000 } }, none = { 0 };
	int before = load(&shared->heard);
	sigset_t mask;
	bool ok;

	handle_by(SIGALRM, handler, flags);
	handle_by(SIGUSR1, hear, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	store(&shared->peer.answers, STORM);
	setitimer(ITIMER_REAL, &ms, NULL);
	ok = take_turns(STORM, take);
	setitimer(ITIMER_REAL, &none, NULL);
	handle_by(SIGALRM, SIG_IGN, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	printf("# %d signals in %d turns\n", load(&shared->heard) - before, STORM);
	return ok && load(&shared->heard) > before && is_exactly(&mask, NULL, 0);
}

static bool a_storm_of_restarting_signals(void)
{
	return storm(hear, SA_RESTART, takes);
}

static bool a_storm_of_ending_signals(void)
{
	return storm(hear, 0, takes_somehow);
}

static bool a_storm_of_jumps(void)
{
	is_left_open = true;
	return storm(leave_a_wait, SA_RESTART, takes_somehow);
}

/*
 * The one that waits moves the octets. Under load weft's thread may be needed more often; with two
 * wake-ups it sleeps once a turn.
 */
static bool handlers_cost_no_wakeup(void)
{
	long before, sleeps = TURNS;
	int i;

	handle_by(SIGUSR1, hear, SA_RESTART);
	handle_by(SIGUSR2, hear, 0);
	for (i = 0; i < 5 && sleeps >= TURNS / 2; i++) {
		store(&shared->peer.answers, TURNS);
		before = sleeps_of_progress();
		if (before < 0 || !take_turns(TURNS, takes))
			return false;
		sleeps = sleeps_of_progress() - before;
		printf("# %d turns: weft's thread slept %ld times\n", TURNS, sleeps);
	}
	return sleeps < TURNS / 2;
}

static const struct a_case list[] = {
	{ "a-restarting-handler-does-not-end-a-wait", a_restarting_handler_does_not_end_a_wait, NULL },
	{ "an-ending-handler-ends-a-wait", an_ending_handler_ends_a_wait, NULL },
	{ "handlers-of-either-kind-do-as-they-say", handlers_of_either_kind_do_as_they_say, NULL },
	{ "a-handler-that-resets-itself-ends-a-wait", a_handler_that_resets_itself_ends_a_wait, NULL },
	{ "an-ignored-signal-does-not-end-a-wait", an_ignored_signal_does_not_end_a_wait, NULL },
	{ "any-signal-may-end-a-wait", any_signal_may_end_a_wait, NULL },
	{ "a-blocked-signal-is-not-delivered", a_blocked_signal_is_not_delivered, NULL },
	{ "a-handler-sees-the-masks-of-the-program", a_handler_sees_the_masks_of_the_program, NULL },
	{ "a-mask-that-a-handler-leaves-stays", a_mask_that_a_handler_leaves_stays, NULL },
	{ "a-handler-knows-its-sender", a_handler_knows_its_sender, NULL },
	{ "a-wait-may-be-left-for-another-sleep", a_wait_may_be_left_for_another_sleep, NULL },
	{ "a-wait-may-be-left-for-another-wait", a_wait_may_be_left_for_another_wait, NULL },
	{ "a-handler-may-wait-itself", a_handler_may_wait_itself, NULL },
	{ "a-handler-may-fork", a_handler_may_fork, NULL },
	{ "a-handler-may-set-handlers", a_handler_may_set_handlers, NULL },
	{ "a-handler-may-start-a-thread", a_handler_may_start_a_thread, NULL },
	{ "a-stream-hides-no-signal", a_stream_hides_no_signal, NULL },
	{ "a-storm-of-restarting-signals", a_storm_of_restarting_signals, NULL },
	{ "a-storm-of-ending-signals", a_storm_of_ending_signals, NULL },
	{ "handlers-cost-no-wakeup", handlers_cost_no_wakeup, NULL },
	{ "a-storm-of-jumps", a_storm_of_jumps, NULL },
};

static const struct cases cases = CASES(open_case, close_case, list);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-signals");

	self = getpid();
	shared = shared_memory(sizeof(*shared));
	demand_start(&shared->peer, addr, PORT);
	start_sender();
	t.addr = addr;
	t.c.timeout_ms = TIMEOUT;
	cases_run(&cases, "");
	return cases_end();
}
