// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Three connections, whose threads all wait for completions while something else happens a thousand
 * times a second. No message may be lost, and no wait may end without a cause.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "waits.h"

#define PAIRS		3
#define SERVERS		2	/* threads that wait for one channel */
#define MESSAGES	3000	/* of each pair */
#define ROOM		16	/* receives posted */

struct pair {
	struct ends e;
	pthread_t client, server[SERVERS];
	int sent, taken;		/* atomic */
	pthread_mutex_t turn;		/* held to poll the server's CQ */
};

static struct pair *pairs;		/* of this storm */
static volatile bool over, wrong;
static bool may_be_interrupted;
static int jumped, forked;		/* without the need to be right */
static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t may_leave;

/* ---- the connections ---- */

static void *serve(void *arg)
{
	struct ends *e = arg;

	conn_await_request(&e->s);
	conn_make_qp(&e->s, DEPTH, DEPTH, 0);
	conn_accept(&e->s, NULL, 0);
	return NULL;
}

static void open_pairs(void)
{
	static char ports[PAIRS][16];
	static int storm;
	int i, k;

	pairs = calloc(PAIRS, sizeof(*pairs));
	for (i = 0; i < PAIRS; i++) {
		snprintf(ports[i], sizeof(ports[i]), "%d", 7500 + storm * PAIRS + i);
		ends_init(&pairs[i].e, t.addr, strdup(ports[i]));
		ends_open(&pairs[i].e, serve, &pairs[i].e);
		pthread_mutex_init(&pairs[i].turn, NULL);
		for (k = 0; k < ROOM; k++)
			post_recv(&pairs[i].e.s, 1);
	}
	storm++;
	over = wrong = false;
}

static void close_pairs(void)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		ends_close(&pairs[i].e);
}

/* ---- threads that wait ---- */

static void sleep_for(struct conn *c)
{
	int rv;

	if (sigsetjmp(out, 1))
		return;
	may_leave = true;
	rv = await_event(c);
	may_leave = false;
	if (rv && (rv != EINTR || !may_be_interrupted))
		wrong = true;
}

static int look(struct pair *p)
{
	struct ibv_wc wc[ROOM];
	int n, i;

	pthread_mutex_lock(&p->turn);
	n = ibv_poll_cq(p->e.s.cq, ROOM, wc);
	for (i = 0; i < n; i++) {
		wrong |= wc[i].status != IBV_WC_SUCCESS;
		post_recv(&p->e.s, 1);
	}
	if (!n)
		arm(&p->e.s);
	pthread_mutex_unlock(&p->turn);
	__atomic_fetch_add(&p->taken, n, __ATOMIC_SEQ_CST);
	return n;
}

static bool all_taken(struct pair *p)
{
	return __atomic_load_n(&p->taken, __ATOMIC_SEQ_CST) >= MESSAGES;
}

static void *take_all(void *arg)
{
	struct pair *p = arg;

	while (!all_taken(p) && !wrong)
		if (!look(p) && !look(p))
			sleep_for(&p->e.s);
	return NULL;
}

static void *send_all(void *arg)
{
	struct pair *p = arg;
	struct conn *c = &p->e.c;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < MESSAGES && !wrong; i++) {
		while (i - __atomic_load_n(&p->taken, __ATOMIC_SEQ_CST) >= ROOM / 2 && !wrong)
			usleep(50);
		post_send(c, 2);
		while (!ibv_poll_cq(c->cq, 1, &wc) && !wrong) {
			arm(c);
			if (ibv_poll_cq(c->cq, 1, &wc))
				break;
			sleep_for(c);
		}
		wrong |= wc.status != IBV_WC_SUCCESS;
	}
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

static void set(int sig, void (*handler)(int), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &a, NULL);
}

/* The last event may have woken one of several that wait. */
static void end_of(pthread_t thread)
{
	set(SIGUSR1, nothing, 0);
	while (pthread_tryjoin_np(thread, NULL)) {
		pthread_kill(thread, SIGUSR1);
		moment();
	}
}

static bool storm_of(void *(*weather)(void *))
{
	pthread_t other;
	int i, k, taken = 0;

	open_pairs();
	for (i = 0; i < PAIRS; i++) {
		struct pair *p = &pairs[i];

		for (k = 0; k < (i ? 1 : SERVERS); k++)
			if (pthread_create(&p->server[k], NULL, take_all, p))
				fail("no thread");
		if (pthread_create(&p->client, NULL, send_all, p))
			fail("no thread");
	}
	if (pthread_create(&other, NULL, weather, NULL))
		fail("no thread");
	for (i = 0; i < PAIRS; i++) {
		while (!all_taken(&pairs[i]) && !wrong)
			moment();
		taken += pairs[i].taken;
	}
	over = may_be_interrupted = true;
	pthread_join(other, NULL);
	for (i = 0; i < PAIRS; i++) {
		pthread_join(pairs[i].client, NULL);
		for (k = 0; k < (i ? 1 : SERVERS); k++)
			end_of(pairs[i].server[k]);
	}
	return !wrong && taken == PAIRS * MESSAGES;
}

/* ---- weathers ---- */

#ifdef __x86_64__
/* ppoll() was interrupted, or read() is about to be restarted. */
static bool sleeps(const ucontext_t *c)
{
	const uint8_t *pc = (void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
	long rax = c->uc_mcontext.gregs[REG_RAX];

	return (rax == -EINTR && pc[-2] == 0x0f && pc[-1] == 0x05) ||
	       (rax == SYS_read && pc[0] == 0x0f && pc[1] == 0x05);
}
#else
static bool sleeps(const ucontext_t *c)
{
	return !c;
}
#endif

/* Elsewhere in the call it might hold a lock. */
static void jump(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	if (!may_leave || !sleeps(context))
		return;
	may_leave = false;
	jumped++;
	siglongjmp(out, 1);
}

/* Elsewhere another thread's fork would wait for this thread, which waits for that fork. */
static void fork_once(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	if (!may_leave || !sleeps(context))
		return;
	forked++;
	if (!fork())
		_exit(0);
}

static void set_with_context(void (*handler)(int sig, siginfo_t *info, void *context))
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_RESTART | SA_SIGINFO };

	sigaction(SIGUSR1, &a, NULL);
}

static void tell_one(int sig)
{
	struct pair *p = &pairs[rand() % PAIRS];

	pthread_kill(rand() % 2 ? p->client : p->server[0], sig);
}

static void *signals(void *unused)
{
	(void)unused;
	while (!over) {
		tell_one(SIGUSR1);
		moment();
	}
	return NULL;
}

static void *signals_of_either_kind(void *unused)
{
	(void)unused;
	while (!over) {
		set(SIGUSR2, nothing, rand() % 2 ? SA_RESTART : 0);
		tell_one(SIGUSR1);
		tell_one(SIGUSR2);
		moment();
		set(SIGUSR2, SIG_IGN, 0);
	}
	return NULL;
}

static void *forks(void *unused)
{
	(void)unused;
	while (!over) {
		tell_one(SIGUSR1);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		moment();
		moment();
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return NULL;
}

static void *wait_for_one(void *c)
{
	struct ibv_cq *cq;
	void *ctx;

	if (!ibv_get_cq_event(c, &cq, &ctx))
		ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* An event that was taken by a thread that ends is passed on: the CQ is looked at. */
static void *cancels(void *unused)
{
	pthread_t thread;
	struct pair *p;
	void *rv;

	(void)unused;
	while (!over) {
		p = &pairs[rand() % PAIRS];
		if (pthread_create(&thread, NULL, wait_for_one, p->e.s.comp))
			fail("no thread");
		usleep(rand() % 1000);
		pthread_cancel(thread);
		pthread_join(thread, &rv);
		/* Another thread may sleep now, for the event that this one took. */
		if (!look(p) && !look(p))
			continue;
		pthread_kill(p->server[0], SIGUSR1);
	}
	return NULL;
}

static void *queues(void *unused)
{
	(void)unused;
	while (!over) {
		struct pair *p = &pairs[rand() % PAIRS];
		struct ibv_cq *cq = ibv_create_cq(p->e.s.id->verbs, 4, NULL, p->e.s.comp, 0);

		if (cq)
			arm(&(struct conn){ .cq = cq });
		moment();
		if (!cq || ibv_destroy_cq(cq))
			wrong = true;
	}
	return NULL;
}

/* ---- cases ---- */

static bool restarting_signals(void)
{
	may_be_interrupted = false;
	set(SIGUSR1, nothing, SA_RESTART);
	return storm_of(signals);
}

static bool interrupting_signals(void)
{
	may_be_interrupted = true;
	set(SIGUSR1, nothing, 0);
	return storm_of(signals);
}

static bool changing_handlers(void)
{
	may_be_interrupted = true;
	set(SIGUSR1, nothing, SA_RESTART);
	return storm_of(signals_of_either_kind);
}

static bool forking_handlers(void)
{
	bool ok;

	may_be_interrupted = false;
	set_with_context(fork_once);
	ok = storm_of(forks);
	printf("# %d forks\n", forked);
	return ok;
}

static bool cancelled_threads(void)
{
	may_be_interrupted = true;
	set(SIGUSR1, nothing, 0);
	return storm_of(can_cancel() ? cancels : signals);
}

static bool short_lived_queues(void)
{
	may_be_interrupted = false;
	set(SIGUSR1, SIG_DFL, 0);
	return storm_of(queues);
}

/* Events may be lost, and are never acknowledged: ibv_destroy_cq() would wait for that. */
static bool jumps(void)
{
	bool ok;

	may_be_interrupted = false;
	set_with_context(jump);
	ok = storm_of(signals);
	printf("# %d jumps\n", jumped);
	return ok;
}

static bool closes(bool ok)
{
	set(SIGUSR1, SIG_DFL, 0);
	set(SIGUSR2, SIG_DFL, 0);
	close_pairs();
	return ok;
}

static bool restarting(void) { return closes(restarting_signals()); }
static bool interrupting(void) { return closes(interrupting_signals()); }
static bool changing(void) { return closes(changing_handlers()); }
static bool forking(void) { return closes(forking_handlers()); }
static bool cancelling(void) { return closes(cancelled_threads()); }
static bool creating(void) { return closes(short_lived_queues()); }

const struct a_case storms[] = {
	{ "a-storm-of-restarting-signals", restarting, NULL },
	{ "a-storm-of-interrupting-signals", interrupting, NULL },
	{ "a-storm-of-changing-handlers", changing, NULL },
	{ "a-storm-of-forking-handlers", forking, NULL },
	{ "a-storm-of-cancelled-threads", cancelling, NULL },
	{ "a-storm-of-short-lived-queues", creating, NULL },
	{ "a-storm-of-jumps", jumps, NULL },
};

const unsigned int n_storms = sizeof(storms) / sizeof(storms[0]);
