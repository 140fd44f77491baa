// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * COUNT processes, each with a QP connected by hand to every process, itself included. They
 * exchange names through shared memory, and data that is verified octet by octet. Then two of them
 * are killed, one idle and one under load. The others detect that, continue among themselves, and
 * leak neither descriptors nor memory. Over the device that has the GID of ADDR. TAP on stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "byhand.h"

#define MOST		64
#define ROUNDS		3
#define SEND_LEN	1000
#define WRITE_AT	2048		/* in the half that others reach */
#define LOAD		4		/* Writes in flight to the killed process */
#define WAIT_MS		60000
/* What malloc has more of after the whole life than after that of one QP. */
#define MEMORY_MORE	(256 << 10)

/* Killed at rest, and under load. Any but the first would do. */
#define AT_REST		1
#define AT_WORK		2

enum kind { RECV, SEND, WRITE, KINDS };

/* Of all processes. */
static struct common {
	struct hand_name names[MOST][MOST];	/* [i][j]: i's QP with j */
	int arrived[16];			/* at each barrier */
	int loaded;				/* so many have Writes under way to AT_WORK */
	int dead[2];				/* AT_REST, AT_WORK: they are no more */
	int failed;
	long ms;				/* until all had connected and talked */
} *common;

static int count, me;

/* Of a process. */
static struct hand_device dev;
static struct ibv_cq *cq;
static struct hand_end ends[MOST];
static struct peer {
	unsigned int done[KINDS], flushed;
	enum ibv_wc_status failed;		/* the first that was not flushed */
} peers[MOST];

static void give_up(const char *what)
{
	__atomic_store_n(&common->failed, 1, __ATOMIC_SEQ_CST);
	hand_fail("process %d: %s", me, what);
}

/* ---- waiting ---- */

static void wait_for(const int *word, int value, const char *what)
{
	long until = hand_now_ms() + WAIT_MS;

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value) {
		if (hand_now_ms() > until || __atomic_load_n(&common->failed, __ATOMIC_SEQ_CST))
			give_up(what);
		usleep(500);
	}
}

/* So many come. */
static void meet(int barrier, int many)
{
	__atomic_fetch_add(&common->arrived[barrier], 1, __ATOMIC_SEQ_CST);
	wait_for(&common->arrived[barrier], many, "somebody does not come");
}

static bool is_alive(int peer)
{
	return !(peer == AT_REST && common->dead[0]) && !(peer == AT_WORK && common->dead[1]);
}

static void look(void)
{
	struct ibv_wc wc;
	struct peer *p;

	if (!hand_poll(cq, &wc, WAIT_MS))
		give_up("nothing completes");
	p = &peers[wc.wr_id / KINDS];
	if (wc.status == IBV_WC_SUCCESS)
		p->done[wc.wr_id % KINDS]++;
	else if (wc.status == IBV_WC_WR_FLUSH_ERR)
		p->flushed++;
	else if (!p->failed)
		p->failed = wc.status;
	else
		give_up("a QP has failed twice");
	if (wc.status != IBV_WC_SUCCESS && is_alive((int)(wc.wr_id / KINDS)) &&
	    wc.wr_id / KINDS != AT_WORK)
		give_up("a QP with a peer that lives has failed");
}

static uint64_t id(int peer, enum kind kind)
{
	return (uint64_t)peer * KINDS + kind;
}

/* ---- data ---- */

static uint8_t octet(int from, int to, int round, int i)
{
	return (uint8_t)(from * 3 + to * 5 + round * 7 + i * 11 + (i >> 8));
}

static void fill(int peer, int round)
{
	uint8_t *p = ends[peer].buf;
	int i;

	for (i = 0; i < SEND_LEN; i++)
		p[i] = octet(me, peer, round, i);
	memset(p + HAND_BUF, 0, HAND_BUF);
}

static bool has_come(int peer, int round)
{
	const uint8_t *p = ends[peer].buf + HAND_BUF;
	int i;

	for (i = 0; i < SEND_LEN; i++)
		if (p[i] != octet(peer, me, round, i) || p[WRITE_AT + i] != p[i])
			return false;
	return true;
}

static struct hand_name write_target(int peer)
{
	struct hand_name at = common->names[peer][me];

	at.addr += WRITE_AT;
	return at;
}

static void begin_swap(int peer)
{
	struct hand_name at = write_target(peer);

	peers[peer] = (struct peer){};
	hand_recv(&ends[peer], id(peer, RECV));
	hand_rdma(&ends[peer], id(peer, WRITE), IBV_WR_RDMA_WRITE, &at, SEND_LEN);
	hand_send(&ends[peer], id(peer, SEND), SEND_LEN);
}

/* What a peer said has come. With the dead there is no talk: the Write fails, all else is flushed. */
static void end_swap(int peer, int round)
{
	struct peer *p = &peers[peer];

	while (is_alive(peer) ? p->done[RECV] + p->done[SEND] + p->done[WRITE] < 3 :
				!p->failed || p->flushed < 2)
		look();
	if (is_alive(peer) ? !has_come(peer, round) : p->failed != IBV_WC_RETRY_EXC_ERR)
		give_up(is_alive(peer) ? "wrong octets" : "a dead peer was missed in another way");
	if (!is_alive(peer) && hand_state(&ends[peer]) != IBV_QPS_ERR)
		give_up("a QP with a dead peer is not in error");
}

/* All post their receives before any sends: a peer that was given up stays so. */
static void swap_all(int round, int many)
{
	int i;

	for (i = 0; i < count; i++)
		fill(i, round);
	meet(round, many);
	for (i = 0; i < count; i++)
		if (is_alive(i) || !peers[i].failed)
			begin_swap(i);
	for (i = 0; i < count; i++)
		end_swap(i, round);
}

/* ---- what is left ---- */

/* By bare calls: all descriptors, those that weft hides from the program, too. */
static int count_descriptors(void)
{
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY), n = 0;
	char buf[4096];
	long len, at;

	while ((len = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
		for (at = 0; at < len; n++)
			at += *(unsigned short *)(buf + at + 16);
	syscall(SYS_close, dir);
	return n;
}

/* A connection's descriptor goes first, and its memory when no thread can be at it any more. */
static void expect_nothing_left(int descriptors, size_t memory)
{
	long until = hand_now_ms() + WAIT_MS;
	size_t now;
	int open;

	while ((open = count_descriptors()) > descriptors ||
	       (now = mallinfo2().uordblks) > memory + MEMORY_MORE) {
		if (hand_now_ms() > until)
			give_up(open > descriptors ? "descriptors are left" : "memory is left");
		usleep(1000);
	}
}

/* What a library keeps for good it has behind the first QP. */
static void live_once(const struct hand_setting *set)
{
	struct hand_name own;
	struct ibv_wc wc;

	cq = ibv_create_cq(dev.ctx, MOST * (2 + LOAD + KINDS), NULL, NULL, 0);
	hand_make(&ends[0], &dev, set, cq);
	hand_tell(&ends[0], &own);
	hand_ready(&ends[0], &own);
	hand_rdma(&ends[0], 1, IBV_WR_RDMA_WRITE, &own, 10);
	if (!hand_poll(cq, &wc, WAIT_MS) || wc.status != IBV_WC_SUCCESS)
		give_up("no QP with itself");
	hand_unmake(&ends[0]);
	ibv_destroy_cq(cq);
}

/* ---- a process ---- */

/* With the load on, until he is killed; then all of it fails at once. */
static void load(int peer)
{
	struct hand_name at = write_target(peer);
	struct peer *p = &peers[peer];
	unsigned int posted = 0;
	bool told = false;

	*p = (struct peer){};
	while (!p->failed) {
		for (; posted < p->done[WRITE] + LOAD; posted++)
			hand_rdma(&ends[peer], id(peer, WRITE), IBV_WR_RDMA_WRITE, &at, SEND_LEN);
		look();
		if (!told && p->done[WRITE] > LOAD) {
			__atomic_fetch_add(&common->loaded, 1, __ATOMIC_SEQ_CST);
			told = true;
		}
	}
	while (p->done[WRITE] + p->flushed + 1 < posted)
		look();
	if (!told || p->failed != IBV_WC_RETRY_EXC_ERR || hand_state(&ends[peer]) != IBV_QPS_ERR)
		give_up("under load a dead peer was missed in another way");
	wait_for(&common->dead[1], 1, "the second has not died");
}

static void connect_all(const struct hand_setting *set)
{
	int i;

	for (i = 0; i < count; i++) {
		hand_make(&ends[i], &dev, set, cq);
		hand_tell(&ends[i], &common->names[me][i]);
	}
	meet(0, count);
	for (i = 0; i < count; i++)
		hand_ready(&ends[i], &common->names[i][me]);
}

static void wait_to_be_killed(void)
{
	for (;;)
		pause();
}

/* Barriers: 0 the names, 1 to ROUNDS, then one for each thing that happens. */
static void run(void)
{
	struct hand_setting set = hand_usual;
	int descriptors, i;
	size_t memory;
	long begun;

	/* A process that waits for a CPU is not dead. */
	set.timeout = 20;
	hand_open(&dev, getenv("CROWD_ADDR"));
	live_once(&set);
	descriptors = count_descriptors();
	memory = mallinfo2().uordblks;
	cq = ibv_create_cq(dev.ctx, MOST * (2 + LOAD + KINDS), NULL, NULL, 0);
	begun = hand_now_ms();
	connect_all(&set);
	for (i = 1; i <= ROUNDS; i++) {
		swap_all(i, count);
		if (i == 1 && !me)
			common->ms = hand_now_ms() - begun;
	}
	meet(i++, count);
	if (me == AT_REST)
		wait_to_be_killed();
	wait_for(&common->dead[0], 1, "the first has not died");
	swap_all(i, count - 1);
	meet(++i, count - 1);
	if (me == AT_WORK)
		wait_to_be_killed();
	load(AT_WORK);
	for (i++; i < 12; i++)
		swap_all(i, count - 2);
	meet(i, count - 2);
	for (i = 0; i < count; i++)
		hand_unmake(&ends[i]);
	ibv_destroy_cq(cq);
	expect_nothing_left(descriptors, memory);
	hand_close(&dev);
}

/* ---- all of them ---- */

static pid_t pids[MOST];

static bool kill_one(int who)
{
	int status;

	kill(pids[who], SIGKILL);
	return waitpid(pids[who], &status, 0) == pids[who] && WIFSIGNALED(status);
}

static bool wait_here(const int *word, int value)
{
	long until = hand_now_ms() + 2 * WAIT_MS;

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value) {
		if (hand_now_ms() > until || __atomic_load_n(&common->failed, __ATOMIC_SEQ_CST))
			return false;
		usleep(1000);
	}
	return true;
}

static bool is_told(int n, bool ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", n, what);
	return ok;
}

static bool all_end_well(void)
{
	bool ok = true;
	int i, status;

	for (i = 0; i < count; i++)
		if (i != AT_REST && i != AT_WORK)
			ok = waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) &&
			     !WEXITSTATUS(status) && ok;
	return ok;
}

int main(int argc, char **argv)
{
	bool ok;
	int i;

	hand_program = "weft-crowd";
	count = argc == 3 ? atoi(argv[2]) : 0;
	if (count < 4 || count > MOST) {
		fprintf(stderr, "usage: weft-crowd ADDR COUNT\n(4 to %d)\n", MOST);
		return 2;
	}
	setenv("CROWD_ADDR", argv[1], 1);
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		hand_fail("no memory");
	for (i = 0; i < count; i++) {
		me = i;
		pids[i] = fork();
		if (pids[i] < 0)
			hand_fail("no fork");
		if (!pids[i]) {
			run();
			fflush(stdout);
			_exit(0);
		}
	}
	printf("1..4\n");
	ok = is_told(1, wait_here(&common->arrived[ROUNDS + 1], count), "all-talk-to-all");
	printf("# %d processes of %d QPs: connected, and had talked, within %ld ms\n", count, count,
	       common->ms);
	ok = kill_one(AT_REST) && ok;
	__atomic_store_n(&common->dead[0], 1, __ATOMIC_SEQ_CST);
	ok = is_told(2, wait_here(&common->loaded, count - 2), "an-end-that-dies-at-rest-is-missed") && ok;
	ok = kill_one(AT_WORK) && ok;
	__atomic_store_n(&common->dead[1], 1, __ATOMIC_SEQ_CST);
	ok = is_told(3, wait_here(&common->arrived[12], count - 2), "an-end-that-dies-under-load-is-missed") && ok;
	ok = is_told(4, all_end_well(), "nothing-is-left") && ok;
	return ok ? 0 : 1;
}
