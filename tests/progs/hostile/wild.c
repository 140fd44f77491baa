// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random calls of everything that a program can call on a weft device: verbs, by write() and by
 * ioctl(), with weft's own parts and methods; rings that are scribbled over while doorbells ring;
 * rdma_cm; RDMA's netlink; files of sysfs. Several processes of several users do it at once, with
 * threads that share their objects; each lives a few seconds, forks, passes files to others, and is
 * killed or closes its objects in some order. Devices are added and removed meanwhile.
 *
 * Harm to the kernel shows in its log. This program reports coverage: each object and call must
 * have been had or made once.
 *
 * A life's calls follow from its seed, as far as threads and other processes allow: `-1 SLOT:SEED`
 * repeats that one alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"
#include "wild.h"

struct common *common;
uint8_t *buf;
const char **addresses;
int nr_addresses;
__thread uint32_t mischief;

static __thread uint64_t rnd_state;
static __thread int fault_fd = -1;

static struct {
	const char *netns;	/* some live in that */
	bool faults;
} opt;

static const char *const count_names[NR_COUNTS] = {
#define X(name, said, due) said,
	WILD_COUNTS(X)
#undef X
};

static const bool count_due[NR_COUNTS] = {
#define X(name, said, due) due,
	WILD_COUNTS(X)
#undef X
};

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "wild: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- chance ---- */

void rnd_seed(uint64_t seed)
{
	rnd_state = seed;
}

uint64_t rnd(void)
{
	return rnd_state = pattern_mix(rnd_state);
}

uint32_t below(uint32_t n)
{
	return rnd() % n;
}

bool once_in(uint32_t n)
{
	return !below(n);
}

uint64_t nasty(uint64_t old)
{
	static const uint64_t edges[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000,
					  0x7fffffffffffffff, 0x8000000000000000, ~0ULL };

	switch (below(6)) {
	case 0: return old + 1;
	case 1: return old - 1;
	case 2: return old ^ 1ULL << below(64);
	case 3: return below(64);
	case 4: return edges[below(9)];
	default: return rnd();
	}
}

void spoil(void *at, size_t len)
{
	uint64_t wide;
	uint32_t word;
	size_t off;

	if (!mischief || len < 4 || !once_in(mischief))
		return;
	if (len >= 8 && once_in(2)) {
		off = below(len / 8) * 8;
		memcpy(&wide, (uint8_t *)at + off, 8);
		wide = nasty(wide);
		memcpy((uint8_t *)at + off, &wide, 8);
		return;
	}
	off = below(len / 4) * 4;
	memcpy(&word, (uint8_t *)at + off, 4);
	word = nasty(word);
	memcpy((uint8_t *)at + off, &word, 4);
}

/* Some end in the midst of nothing: the page behind the buffer is not there. */
uint64_t any_pointer(void)
{
	switch (below(10)) {
	case 0: return rnd();
	case 1: return 0;
	case 2: return 0xffff888000000000 + below(1 << 20);
	case 3: return (uintptr_t)buf + BUF - below(64);
	default: return (uintptr_t)buf + (below(BUF / 2) & ~7u);
	}
}

int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

void pause_ms(uint32_t ms)
{
	usleep(ms * 1000);
}

/* ---- allocations that fail ---- */

static void fail_nth(uint32_t n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (fault_fd < 0)
		fault_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fault_fd >= 0 && pwrite(fault_fd, text, len, 0) < 0)
		return;
}

void fault_begin(void)
{
	if (opt.faults && mischief && once_in(24))
		fail_nth(1 + below(once_in(2) ? 6 : 40));
}

/* 0: it came to that. */
void fault_end(void)
{
	char text[16] = "";

	if (fault_fd < 0)
		return;
	if (pread(fault_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text))
		counted(FAULT, true);
	fail_nth(0);
	close(fault_fd);
	fault_fd = -1;
}

/* ---- what a process is made of ---- */

static void pass_file(void)
{
	int fd = files[below(FILES)].fd;
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (fd >= 0)
		sendmsg(common->post[0], &msg, MSG_DONTWAIT);
}

static void take_file(void)
{
	char room[CMSG_SPACE(sizeof(int))], octet;
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(common->post[1], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	counted(PASSED, true);
	verbs_adopt(fd);
}

static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;

/*
 * A child makes calls on inherited objects, and exits while its parent uses them. User-mode Linux crashes
 * if a fork fails midway, as it does if its process is killed: no process is killed while it forks, and
 * only a process without other threads, which might crash, forks.
 */
static void fork_one(void)
{
	uint64_t seed = rnd();
	int64_t end;
	pid_t pid;

	pthread_mutex_lock(&forking);
	pid = fork();
	if (pid)
		pthread_mutex_unlock(&forking);
	if (pid > 0) {
		counted(FORK, true);
		if (once_in(2))
			waitpid(pid, NULL, 0);
	}
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rnd_seed(seed);
	end = now_ms() + below(300);
	while (now_ms() < end) {
		verbs_any();
		pause_ms(below(8));
	}
	_exit(0);
}

static void any(void)
{
	if (once_in(40))
		pass_file();
	else if (once_in(40))
		take_file();
	else if (once_in(3))
		cm_any();
	else
		verbs_any();
	/* Most is refused: those who get somewhere are to have the CPU. And each thread has its moods. */
	pause_ms(below(once_in(8) ? 60 : 12));
	if (once_in(100))
		mischief = 1 + below(once_in(2) ? 4 : 60);
}

static void scribbles(void)
{
	uint32_t n = 1u << below(7);

	while (n--)
		scribble();
	/* Some connections are to get somewhere between two bursts. */
	pause_ms(below(once_in(3) ? 1500 : 30));
}

static void forks(void)
{
	any();
	if (once_in(30))
		fork_one();
}

/* Now and then without any mischief, so that something works. */
static void calls(void)
{
	mischief = once_in(3) ? 8 + below(100) : 0;
	cm_call();
}

static void serves(void)
{
	mischief = once_in(3) ? 8 + below(100) : 0;
	cm_serve();
}

static void keeps(void) { link_any(true); }
static void looks(void) { link_any(false); }

struct thread {
	void (*what)(void);
	uint64_t seed;
};

static void *run(void *arg)
{
	struct thread t = *(struct thread *)arg;

	rnd_seed(t.seed);
	mischief = 1 + below(60);
	for (;;)
		t.what();
	return NULL;
}

/* ---- lives ---- */

/* The tasks, and how many threads of a process each has. */
static const struct life {
	uid_t uid;
	bool elsewhere;			/* in the other namespace */
	void (*threads[6])(void);
} lives[] = {
	{ 0, false, { serves, calls, any, scribbles } },
	{ 0, true, { serves, calls, any } },
	{ 1000, false, { serves, calls, any, any } },
	{ 65534, true, { calls, calls, any, scribbles } },
	{ 65534, false, { serves, calls, any } },
	{ 1000, false, { forks } },
	{ 0, false, { keeps, keeps } },
	{ 65534, false, { looks, any } },
};

#define SLOTS	(sizeof(lives) / sizeof(lives[0]))

/* Before it is who it is to be. */
static void may_fail(void)
{
	int fd = open("/proc/self/make-it-fail", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1", 1) < 0)
		perror("make-it-fail");
	if (fd >= 0)
		close(fd);
}

static void enter_netns(void)
{
	int fd = open(opt.netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(opt.netns);
	close(fd);
}

static void become(const struct life *l)
{
	static const rlim_t locked[] = { 0, 65536, 1 << 20, RLIM_INFINITY };
	struct rlimit lim = { .rlim_cur = 0, .rlim_max = 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (l->elsewhere && opt.netns)
		enter_netns();
	/* What it overwrites it trips over itself: no core of that. */
	setrlimit(RLIMIT_CORE, &lim);
	if (l->uid && once_in(4)) {
		lim.rlim_cur = lim.rlim_max = locked[below(4)];
		setrlimit(RLIMIT_MEMLOCK, &lim);
	}
	if (l->uid && (setgroups(0, NULL) || setresgid(l->uid, l->uid, l->uid) ||
		       setresuid(l->uid, l->uid, l->uid)))
		die("another user");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* In some order, some not. */
static void close_some(void)
{
	uint32_t i;

	for (i = 0; i < 2 * FILES; i++)
		if (once_in(2))
			close(files[below(FILES)].fd);
}

static void __attribute__((noreturn)) live(const struct life *l, uint64_t seed)
{
	static struct thread threads[6];
	uint32_t ms, i;
	pthread_t t;

	rnd_seed(seed);
	if (opt.faults && once_in(2))
		may_fail();
	become(l);
	/* An own copy of the buffer's memory. */
	buf = mmap(NULL, BUF + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED || munmap(buf + BUF, 4096))
		die("no memory");
	ms = 3000 + below(6000);
	for (i = 0; i < 6 && l->threads[i]; i++) {
		threads[i] = (struct thread){ l->threads[i], rnd() };
		if (pthread_create(&t, NULL, run, &threads[i]))
			break;
	}
	while (ms && !common->over) {
		pause_ms(20);
		ms -= ms < 20 ? ms : 20;
	}
	pthread_mutex_lock(&forking);
	if (once_in(2))
		close_some();
	if (once_in(2))
		_exit(0);
	kill(getpid(), SIGKILL);
	_exit(1);
}

static pid_t begin(uint32_t slot, uint64_t seed)
{
	pid_t pid;

	printf("%u:%" PRIu64 "\n", slot, seed);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		live(&lives[slot], seed);
	counted(LIVES, true);
	return pid;
}

static bool saw_all(void)
{
	int i;

	for (i = 0; i < NR_COUNTS; i++)
		if (count_due[i] && !common->counts[i])
			return false;
	return true;
}

/* Until @seconds are over; a busy machine may have as long again to have seen all. */
static void live_all(uint64_t seed, int seconds)
{
	int64_t end = now_ms() + seconds * 1000LL, limit = end + seconds * 1000LL;
	pid_t pids[SLOTS], pid;
	uint32_t i;

	rnd_seed(seed);
	for (i = 0; i < SLOTS; i++)
		pids[i] = begin(i, rnd());
	while (now_ms() < end || (now_ms() < limit && !saw_all())) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid <= 0) {
			usleep(20000);
			continue;
		}
		for (i = 0; i < SLOTS; i++)
			if (pids[i] == pid)
				pids[i] = begin(i, rnd());
	}
	common->over = true;
	while (wait(NULL) > 0)
		;
}

static int verdict(void)
{
	int i, missed = 0;

	for (i = 0; i < NR_COUNTS; i++)
		printf("%s: %" PRIu64 "\n", count_names[i], (uint64_t)common->counts[i]);
	for (i = 0; i < NR_COUNTS; i++)
		if (count_due[i] && !common->counts[i])
			missed += !!printf("wild: none: %s\n", count_names[i]);
	if (opt.faults && !common->counts[FAULT])
		missed += !!printf("wild: no allocation failed\n");
	return !!missed;
}

static void usage(void)
{
	fprintf(stderr, "wild [-t SECONDS] [-S SEED] [-n NETNS_FILE] [-f] [-1 SLOT:SEED] ADDR...\n"
			"   -n: some processes live in that namespace\n"
			"   -f: allocations may fail, as debugfs' failslab and fail_page_alloc say\n"
			"   -1: that life alone\n");
	exit(2);
}

static int live_once(const char *text)
{
	uint64_t seed;
	uint32_t slot;
	pid_t pid;

	if (sscanf(text, "%u:%" SCNu64, &slot, &seed) != 2 || slot >= SLOTS)
		usage();
	pid = begin(slot, seed);
	waitpid(pid, NULL, 0);
	verdict();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL) << 16 | (getpid() & 0xffff);
	const char *once = NULL;
	int seconds = 60, c;

	while ((c = getopt(argc, argv, "t:S:n:f1:")) != -1) {
		switch (c) {
		case 't': seconds = atoi(optarg); break;
		case 'S': seed = strtoull(optarg, NULL, 0); break;
		case 'n': opt.netns = optarg; break;
		case 'f': opt.faults = true; break;
		case '1': once = optarg; break;
		default: usage();
		}
	}
	addresses = (const char **)argv + optind;
	nr_addresses = argc - optind;
	if (!nr_addresses)
		usage();
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (common == MAP_FAILED || socketpair(AF_UNIX, SOCK_DGRAM, 0, common->post))
		die("nothing to share");
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, 1024 });
	if (once)
		return live_once(once);
	printf("seed %" PRIu64 ", %d s\n", seed, seconds);
	live_all(seed, seconds);
	return verdict();
}
