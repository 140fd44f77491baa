// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PORT [CASE]: signal handlers that send, receive and wait while their own thread does, or that
 * leave a call by siglongjmp(); TAP. It knows nothing of iWARP: all cases pass over TCP.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "signal-before-wait.h"
#include "socket-cases.h"

/* siginterrupt() is deprecated, and used. What a handler or a peer is given not all need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define SENDS	20000
#define OFTEN	100

/* ---- the other end, a process of its own ---- */

struct peer {
	pid_t pid;
	int orders, fd;			/* a pipe to it; this end of the connection */
};

typedef int peer_fn(int fd, int orders);

static int greet(int fd, int orders, peer_fn *fn)
{
	char c = 'g';

	if (send(fd, &c, 1, 0) != 1 || recv(fd, &c, 1, 0) != 1)
		return 1;
	return fn(fd, orders);
}

static bool begin_peer(struct peer *p, peer_fn *fn)
{
	int orders[2];
	char c;

	NEED(!pipe(orders));
	fflush(stdout);
	p->pid = fork();
	if (!p->pid) {
		signal(SIGALRM, SIG_DFL);
		close(listener);
		close(orders[1]);
		_exit(greet(dial(), orders[0], fn));
	}
	close(orders[0]);
	p->orders = orders[1];
	p->fd = accept(listener, NULL, NULL);
	NEED(p->fd >= 0 && recv(p->fd, &c, 1, 0) == 1 && send(p->fd, &c, 1, 0) == 1);
	return true;
}

/* @fd: closed before, or here. */
static bool end_peer(struct peer *p)
{
	int status;

	close(p->orders);
	close(p->fd);
	NEED(waitpid(p->pid, &status, 0) == p->pid && !status);
	return true;
}

/* Handlers send 'h', and "mm" comes in one piece. */
static int check(int fd, int orders)
{
	static char buf[65536];
	ssize_t got, i, n = 0;

	while ((got = recv(fd, buf, sizeof(buf), 0)) > 0)
		for (i = 0; i < got; i++) {
			if (buf[i] == 'h' ? n % 2 : buf[i] != 'm')
				return 1;
			n += buf[i] == 'm';
		}
	return got || n % 2;
}

static int hear_the_end(int fd, int orders)
{
	struct timeval t = { .tv_sec = 60 };
	char c;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	return recv(fd, &c, 1, 0) != 0;
}

static int say_as_told(int fd, int orders)
{
	char c;

	while (read(orders, &c, 1) == 1)
		if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
			return 1;
	return 0;
}

/* ---- signals ---- */

static void set_handler(int sig, void (*handler)(int sig), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&a.sa_mask);
	sigaction(sig, &a, NULL);
}

static void alarm_every(int us)
{
	struct itimerval t = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* ---- cases ---- */

static int of_handler;
static volatile long sent_by_handler;
static volatile bool wrong;

static void send_one(int sig)
{
	int saved = errno;
	ssize_t rv = send(of_handler, "h", 1, MSG_DONTWAIT);

	sent_by_handler += rv == 1;
	wrong |= rv != 1 && errno != EAGAIN;
	errno = saved;
}

/* Until the handler has run often enough, too. */
static bool send_many(int fd, int ep)
{
	struct epoll_event ev;
	long i;

	for (i = 0; i < SENDS || sent_by_handler < OFTEN; i++) {
		NEED(send(fd, "mm", 2, 0) == 2);
		NEED(ep < 0 || epoll_wait(ep, &ev, 1, 0) == 0);
	}
	return true;
}

static bool sends_beside(struct peer *p, int ep)
{
	bool ok;

	sent_by_handler = 0;
	wrong = false;
	set_handler(SIGALRM, send_one, SA_RESTART);
	alarm_every(300);
	ok = send_many(p->fd, ep);
	alarm_every(0);
	return ok && !wrong;
}

static bool handler_sends_on_the_same(void)
{
	struct peer p;

	NEED(begin_peer(&p, check));
	of_handler = p.fd;
	NEED(sends_beside(&p, -1));
	return end_peer(&p);
}

static bool handler_sends_beside_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct peer p, other;
	int ep = epoll_create1(0);

	NEED(begin_peer(&p, check) && begin_peer(&other, check));
	NEED(!epoll_ctl(ep, EPOLL_CTL_ADD, p.fd, &ev) && !epoll_ctl(ep, EPOLL_CTL_ADD, other.fd, &ev));
	of_handler = other.fd;
	NEED(sends_beside(&p, ep));
	close(ep);
	return end_peer(&other) && end_peer(&p);
}

/* In a process that ends, and waits for a peer that reads when it likes. */
static int end_beside_a_handler(int fd, int orders)
{
	static char buf[65536];

	memset(buf, 'm', sizeof(buf));
	while (send(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	of_handler = fd;
	set_handler(SIGALRM, send_one, SA_RESTART);
	signal(SIGPIPE, SIG_IGN);
	alarm_every(50);
	exit(0);
}

static bool handler_sends_beside_exit(void)
{
	static char buf[65536];
	struct peer p;
	ssize_t got;

	NEED(begin_peer(&p, end_beside_a_handler));
	usleep(500000);
	while ((got = recv(p.fd, buf, sizeof(buf), 0)) > 0)
		;
	NEED(!got);
	return end_peer(&p);
}

static sigjmp_buf place;
static volatile bool may_leave;
static volatile long left;

static void leave(int sig)
{
	if (!may_leave)
		return;
	may_leave = false;
	left++;
	siglongjmp(place, 1);
}

static bool handler_leaves_send(void)
{
	struct peer p;
	volatile long i;

	NEED(begin_peer(&p, check));
	set_handler(SIGALRM, leave, SA_NODEFER);
	alarm_every(300);
	for (i = 0; i < SENDS || left < OFTEN; i++)
		if (!sigsetjmp(place, 1)) {
			may_leave = true;
			send(p.fd, "mm", 2, 0);
			may_leave = false;
		}
	alarm_every(0);
	return end_peer(&p);
}

static __attribute__((noinline)) int close_below(int fd, int frames)
{
	volatile char room[1000];
	int rv;

	room[0] = (char)frames;
	rv = frames ? close_below(fd, frames - 1) : close(fd);
	return rv + 0 * room[0];
}

/* The call that a handler has left is not back when the socket is closed: the other end hears of it. */
static bool left_and_closed(void)
{
	struct peer p;
	char c;

	NEED(begin_peer(&p, hear_the_end));
	set_handler(SIGALRM, leave, 0);
	if (!sigsetjmp(place, 1)) {
		may_leave = true;
		alarm(1);
		recv(p.fd, &c, 1, 0);
		return say(__LINE__, "recv() came back");
	}
	NEED(!close_below(p.fd, 8));
	p.fd = -1;
	return end_peer(&p);
}

static void do_nothing(int sig)
{
}

static void ignore(int sig)
{
	signal(sig, SIG_IGN);
}

/* recv() ends, though no handler is there any more when it does; or goes on until the octet. */
static bool ends_recv(void (*handler)(int sig), int flags)
{
	struct peer p;
	ssize_t rv;
	char c;

	NEED(begin_peer(&p, say_as_told));
	set_handler(SIGALRM, handler, flags);
	alarm(1);
	rv = recv(p.fd, &c, 1, 0);
	NEED(rv == -1 && errno == EINTR);
	return end_peer(&p);
}

static bool handler_of_one_use(void)
{
	return ends_recv(do_nothing, SA_RESETHAND);
}

static bool handler_that_ignores(void)
{
	return ends_recv(ignore, 0);
}

static struct peer *awaited;

static void let_it_say(int sig)
{
	wrong |= write(awaited->orders, "x", 1) != 1;
}

/* Another signal's handler is without SA_RESTART, and does not run. */
static bool goes_on_behind_sa_restart(void)
{
	struct peer p;
	char c;

	NEED(begin_peer(&p, say_as_told));
	awaited = &p;
	wrong = false;
	set_handler(SIGUSR2, do_nothing, 0);
	set_handler(SIGALRM, let_it_say, SA_RESTART);
	alarm(1);
	NEED(recv(p.fd, &c, 1, 0) == 1 && !wrong);
	return end_peer(&p);
}

/* ---- signals that come as a call goes to sleep ---- */

/* Where the kernel itself is called it is asleep in a second. */
static void alarm_at_its_wait(void)
{
	if (waits_are_hooked())
		signal_before_wait = SIGALRM;
	else
		alarm(1);
}

static bool ends_as_it_begins(int (*wait)(int fd))
{
	struct peer p;

	NEED(begin_peer(&p, say_as_told));
	set_handler(SIGALRM, do_nothing, 0);
	alarm_at_its_wait();
	NEED(wait(p.fd) == -1 && errno == EINTR);
	return end_peer(&p);
}

static int by_recv(int fd)
{
	char c;

	return (int)recv(fd, &c, 1, 0);
}

static int by_poll(int fd)
{
	struct pollfd p[2] = { { .fd = -1 }, { .fd = fd, .events = POLLIN } };

	return poll(p, 2, -1);
}

static int by_select(int fd)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, NULL);
}

static int by_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), rv, saved;

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	rv = epoll_wait(ep, &ev, 1, -1);
	saved = errno;
	close(ep);
	errno = saved;
	return rv;
}

static bool recv_ends_as_it_begins(void) { return ends_as_it_begins(by_recv); }
static bool poll_ends_as_it_begins(void) { return ends_as_it_begins(by_poll); }
static bool select_ends_as_it_begins(void) { return ends_as_it_begins(by_select); }
static bool epoll_ends_as_it_begins(void) { return ends_as_it_begins(by_epoll); }

/* The handler comes as recv() goes to sleep, and has made a call that slept, too. */
static void receive_one(int sig)
{
	char c;

	wrong |= write(awaited->orders, "h", 1) != 1 || recv(awaited->fd, &c, 1, 0) != 1 || c != 'h';
}

static bool goes_on_behind_a_call_of_a_handler(void)
{
	struct peer p, other;
	char c;

	NEED(begin_peer(&p, say_as_told) && begin_peer(&other, say_as_told));
	awaited = &other;
	wrong = false;
	set_handler(SIGALRM, receive_one, 0);
	alarm_at_its_wait();
	NEED(by_recv(p.fd) == -1 && errno == EINTR && !wrong);
	NEED(write(p.orders, "p", 1) == 1 && recv(p.fd, &c, 1, 0) == 1 && c == 'p');
	return end_peer(&other) && end_peer(&p);
}

/* ---- threads ---- */

static volatile long leaves_wanted;

/* Whatever the handler has left, the thread can be cancelled behind it. */
static bool stays_cancellable(void)
{
	struct peer p;
	int state;

	NEED(begin_peer(&p, check));
	leaves_wanted = 3000;
	set_handler(SIGALRM, leave, SA_NODEFER);
	alarm_every(150);
	while (left < leaves_wanted) {
		if (!sigsetjmp(place, 1)) {
			may_leave = true;
			send(p.fd, "mm", 2, 0);
			may_leave = false;
		}
		NEED(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) && state == PTHREAD_CANCEL_ENABLE);
	}
	alarm_every(0);
	return end_peer(&p);
}

static __attribute__((noinline)) void use_stack(void)
{
	volatile char all[4096];
	size_t i;

	for (i = 0; i < sizeof(all); i++)
		all[i] = 0x55;
}

static void set_alarms(int how)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(how, &alarms, NULL);
}

/* True: a handler has left recv(), and the stack has other contents since. They come to this thread alone. */
static bool is_left(const struct peer *p)
{
	char c;

	set_alarms(SIG_UNBLOCK);
	if (!sigsetjmp(place, 1)) {
		may_leave = true;
		alarm(1);
		recv(p->fd, &c, 1, 0);
		return false;
	}
	use_stack();
	alarm(0);
	return true;
}

static void *be_left_and_end(void *p)
{
	if (is_left(p))
		pthread_exit(p);
	return NULL;
}

static void *be_left_and_wait(void *p)
{
	if (!is_left(p))
		return NULL;
	for (;;)
		pause();
}

static bool ends_behind_a_leave(void *(*run)(void *), bool cancels, struct peer *p)
{
	pthread_t t;
	void *got;

	set_handler(SIGALRM, leave, 0);
	set_alarms(SIG_BLOCK);
	NEED(!pthread_create(&t, NULL, run, p));
	while (cancels && !left)
		usleep(1000);
	NEED((!cancels || !pthread_cancel(t)) && !pthread_join(t, &got));
	NEED(got == (cancels ? PTHREAD_CANCELED : (void *)p));
	return true;
}

static bool thread_ends_behind_a_leave(void)
{
	struct peer p;

	NEED(begin_peer(&p, check) && ends_behind_a_leave(be_left_and_end, false, &p));
	return end_peer(&p);
}

static bool thread_is_cancelled_behind_a_leave(void)
{
	struct peer p;

	NEED(begin_peer(&p, check) && ends_behind_a_leave(be_left_and_wait, true, &p));
	return end_peer(&p);
}

/* ---- what sigaction() says ---- */

static void with_info(int sig, siginfo_t *info, void *ctx)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	wrong |= !sigismember(&now, SIGUSR1) || !sigismember(&now, SIGHUP) || sigismember(&now, SIGUSR2);
	wrong |= info->si_signo != sig || info->si_code != SI_USER || info->si_pid != getpid() || !ctx;
	sent_by_handler++;
}

static bool says_what_was_set(void)
{
	struct sigaction a = { .sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_RESETHAND }, was;

	sigaddset(&a.sa_mask, SIGHUP);
	NEED(signal(SIGUSR1, do_nothing) == SIG_DFL && signal(SIGUSR1, ignore) == do_nothing);
	NEED(!sigaction(SIGUSR1, NULL, &was) && was.sa_handler == ignore && was.sa_flags & SA_RESTART);
	NEED(!(was.sa_flags & SA_SIGINFO) && !siginterrupt(SIGUSR1, 1));
	NEED(!sigaction(SIGUSR1, &a, &was) && was.sa_handler == ignore && !(was.sa_flags & SA_RESTART));
	NEED(!sigaction(SIGUSR1, NULL, &was) && was.sa_sigaction == with_info);
	NEED((was.sa_flags & (int)(SA_SIGINFO | SA_RESETHAND)) == (int)(SA_SIGINFO | SA_RESETHAND));
	NEED(sigismember(&was.sa_mask, SIGHUP) && !sigismember(&was.sa_mask, SIGUSR2));
	wrong = false;
	sent_by_handler = 0;
	NEED(!kill(getpid(), SIGUSR1) && sent_by_handler == 1 && !wrong);
	NEED(!sigaction(SIGUSR1, NULL, &was) && was.sa_handler == SIG_DFL);
	return true;
}

#define QUEUED	2000

static pid_t sender;
static volatile long n_came, sum_came;

static void add_up(int sig, siginfo_t *info, void *ctx)
{
	wrong |= info->si_signo != sig || info->si_code != SI_QUEUE || info->si_pid != sender;
	__atomic_fetch_add(&n_came, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sum_came, info->si_value.sival_int, __ATOMIC_RELAXED);
}

static int queue_all(pid_t to)
{
	int i;

	for (i = 0; i < QUEUED; i++)
		while (sigqueue(to, SIGRTMIN + 1, (union sigval){ .sival_int = i }))
			if (errno != EAGAIN)
				return 1;
	return 0;
}

/* None is lost, comes twice, or forgets what it brought. */
static bool come_once(void)
{
	struct sigaction a = { .sa_sigaction = add_up, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
	struct peer p;
	pid_t self = getpid();
	sigset_t queued, before;
	int status;

	NEED(begin_peer(&p, check) && !sigaction(SIGRTMIN + 1, &a, NULL));
	wrong = false;
	sigemptyset(&queued);
	sigaddset(&queued, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &queued, &before);
	sender = fork();
	if (!sender)
		_exit(queue_all(self));
	sigprocmask(SIG_SETMASK, &before, NULL);
	while (n_came < QUEUED && !wrong)
		NEED(send(p.fd, "mm", 2, 0) == 2);
	NEED(waitpid(sender, &status, 0) == sender && !status);
	NEED(!wrong && n_came == QUEUED && sum_came == (long)QUEUED * (QUEUED - 1) / 2);
	return end_peer(&p);
}

static bool queued_signals_come_once(void)
{
	return come_once();
}

/* The user's, of all processes. */
static rlim_t queued_now(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	unsigned long n = 0;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "SigQ: %lu", &n) != 1)
		;
	if (f)
		fclose(f);
	return n;
}

/* What one leaves in the queue the next takes. */
static bool come_once_to_a_full_queue(void)
{
	const rlim_t few = queued_now() + 8;

	NEED(!setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ few, few }));
	return come_once();
}

static volatile sig_atomic_t n_of_two;

static void one_of_two(int sig)
{
	n_of_two++;
}

/* Both are there when a call comes out of the kernel: one's handler begins on top of the other's. */
static bool two_at_once_block_nothing(void)
{
	struct sigaction a = { .sa_handler = one_of_two, .sa_flags = SA_RESTART };
	pid_t self = getpid(), both;
	struct peer p;
	sigset_t now;
	int i, status;

	NEED(begin_peer(&p, check) && !sigaction(SIGUSR1, &a, NULL) && !sigaction(SIGUSR2, &a, NULL));
	both = fork();
	if (!both) {
		for (i = 0; i < 20000; i++)
			if (kill(self, SIGUSR1) || kill(self, SIGUSR2))
				_exit(1);
		_exit(0);
	}
	while (!waitpid(both, &status, WNOHANG))
		NEED(send(p.fd, "mm", 2, 0) == 2);
	NEED(!status && n_of_two && !pthread_sigmask(SIG_BLOCK, NULL, &now));
	NEED(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2) && !sigpending(&now));
	NEED(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	return end_peer(&p);
}

static volatile int next_value;

static void in_order(int sig, siginfo_t *info, void *ctx)
{
	wrong |= info->si_value.sival_int != next_value;
	next_value = info->si_value.sival_int + 1;
}

#define VALUES 50000

/* To the thread itself, whose own queue has an order. */
static void *send_values(void *to)
{
	union sigval v;
	int rv = 0;

	for (v.sival_int = 0; v.sival_int < VALUES && (!rv || rv == EAGAIN); v.sival_int++)
		while ((rv = pthread_sigqueue(*(pthread_t *)to, SIGRTMIN + 3, v)) == EAGAIN)
			;
	return NULL;
}

/* One may be deferred while others of its number queue in the kernel. */
static bool queued_signals_keep_their_order(void)
{
	struct sigaction a = { .sa_sigaction = in_order, .sa_flags = SA_RESTART | SA_SIGINFO };
	pthread_t self = pthread_self(), t;
	struct peer p;

	NEED(begin_peer(&p, check) && !sigaction(SIGRTMIN + 3, &a, NULL));
	NEED(!pthread_create(&t, NULL, send_values, &self));
	while (next_value < VALUES && !wrong)
		NEED(send(p.fd, "mm", 2, 0) == 2);
	NEED(next_value == VALUES && !wrong && !pthread_join(t, NULL));
	return end_peer(&p);
}

/* ---- cases ---- */

static const struct a_case {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "sigaction-returns-what-the-program-set", says_what_was_set },
	{ "a-handler-sends-on-the-socket-that-it-interrupts", handler_sends_on_the_same },
	{ "a-handler-sends-while-its-thread-is-in-epoll_wait", handler_sends_beside_epoll },
	{ "a-handler-sends-while-its-process-ends", handler_sends_beside_exit },
	{ "a-handler-leaves-send", handler_leaves_send },
	{ "a-handler-that-leaves-send-leaves-its-thread-cancellable", stays_cancellable },
	{ "a-thread-exits-after-a-handler-left-its-call", thread_ends_behind_a_leave },
	{ "a-thread-is-cancelled-after-a-handler-left-its-call",
	  thread_is_cancelled_behind_a_leave },
	{ "a-signal-ends-recv-as-it-goes-to-sleep", recv_ends_as_it_begins },
	{ "a-signal-ends-poll-as-it-goes-to-sleep", poll_ends_as_it_begins },
	{ "a-signal-ends-select-as-it-goes-to-sleep", select_ends_as_it_begins },
	{ "a-signal-ends-epoll_wait-as-it-goes-to-sleep", epoll_ends_as_it_begins },
	{ "a-handler-sleeps-as-recv-goes-to-sleep", goes_on_behind_a_call_of_a_handler },
	{ "queued-signals-come-once-beside-send", queued_signals_come_once },
	{ "queued-signals-come-once-to-a-full-queue", come_once_to_a_full_queue },
	{ "queued-signals-keep-their-order", queued_signals_keep_their_order },
	{ "two-signals-at-once-block-nothing", two_at_once_block_nothing },
	{ "a-wait-that-a-handler-left-does-not-keep-a-closed-socket", left_and_closed },
	{ "a-handler-of-one-use-ends-recv", handler_of_one_use },
	{ "a-handler-that-has-its-signal-ignored-ends-recv", handler_that_ignores },
	{ "recv-goes-on-behind-a-handler-with-SA_RESTART", goes_on_behind_sa_restart },
};

/* Each in a process of its own, with time of its own: what one sets is not the next one's. */
static bool run(const void *a_case)
{
	const struct a_case *c = a_case;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool ok = c->run();

		fflush(stdout);
		_exit(!ok);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	const struct cases all = { CASES(cases), .run = run };

	return !listen_at(argv[1]) || run_cases(&all, argc > 2 ? argv[2] : NULL);
}
