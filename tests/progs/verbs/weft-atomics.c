// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * No update is lost: processes add to eight words of shared memory. Each has a connection of its
 * own, over the device that has ADDR, and adds by fetch-and-add and by compare-and-swap from both
 * ends, while a thread adds with the CPU's instructions. The words' sum must be the sum of all
 * additions. TAP on stdout. Nothing here knows weft.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn.h"
#include "pattern.h"

#define WORDS		8
#define DEPTH		16
#define TIMEOUT		60000
/* One in so many is by compare-and-swap, which may have to be tried again. */
#define SWAP_EVERY	8
#define MAX_PROCESSES	64

static struct {
	const char *addr;
	uint64_t adds;			/* by each end of each process, and by each thread */
	uint32_t processes;
	uint64_t *words;		/* shared */
	uint64_t *failed_swaps;		/* shared */
} t = { .adds = 100000, .processes = 4 };

/* One end of a process's connection, which adds to the words as its peer has registered them. */
struct adder {
	struct conn *c;
	struct ibv_mr *answers_mr;
	uint32_t rkey;
	uint64_t answers[DEPTH];
	uint64_t rnd;
};

static uint32_t any_word(struct adder *a)
{
	a->rnd = pattern_mix(a->rnd);
	return a->rnd % WORDS;
}

static void post(struct adder *a, enum ibv_wr_opcode opcode, uint32_t slot, uint32_t word,
		 uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&a->answers[slot], .length = 8,
			       .lkey = a->answers_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)&t.words[word], .rkey = a->rkey,
			       .compare_add = compare_add, .swap = swap },
	}, *bad;
	int err = ibv_post_send(a->c->id->qp, &wr, &bad);

	if (err)
		fail("post_send: %s", strerror(err));
}

static uint32_t take(struct adder *a)
{
	struct ibv_wc wc;

	if (conn_poll(a->c, &wc, 1, TIMEOUT) != 1)
		fail("no completion");
	if (wc.status != IBV_WC_SUCCESS)
		fail("completion with status %d", wc.status);
	return wc.wr_id;
}

static void add_by_swaps(struct adder *a)
{
	uint32_t word = any_word(a);
	uint64_t was = __atomic_load_n(&t.words[word], __ATOMIC_RELAXED);

	for (;;) {
		post(a, IBV_WR_ATOMIC_CMP_AND_SWP, 0, word, was, was + 1);
		take(a);
		if (a->answers[0] == was)
			return;
		was = a->answers[0];
		__atomic_fetch_add(t.failed_swaps, 1, __ATOMIC_RELAXED);
	}
}

/* DEPTH at a time. */
static void add_many(struct adder *a, uint64_t n)
{
	uint32_t i, batch;

	for (; n; n -= batch) {
		batch = n < DEPTH ? n : DEPTH;
		for (i = 0; i < batch; i++)
			post(a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, any_word(a), 1, 0);
		for (i = 0; i < batch; i++)
			take(a);
	}
}

static void *add_over_a_connection(void *arg)
{
	struct adder *a = arg;
	uint64_t swaps = t.adds / SWAP_EVERY, i;

	for (i = 0; i < swaps; i++) {
		add_by_swaps(a);
		add_many(a, SWAP_EVERY - 1);
	}
	add_many(a, t.adds - swaps * SWAP_EVERY);
	return NULL;
}

static void *add_by_cpu(void *unused)
{
	uint64_t i;

	for (i = 0; i < t.adds; i++)
		__atomic_fetch_add(&t.words[i % WORDS], 1, __ATOMIC_RELAXED);
	return unused;
}

static struct ibv_mr *open_words(struct conn *c)
{
	return conn_reg(c, t.words, WORDS * sizeof(*t.words),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

static void run_process(uint32_t nth)
{
	static struct conn client = { .timeout_ms = TIMEOUT }, server = { .timeout_ms = TIMEOUT };
	struct adder a[2] = { { .c = &client, .rnd = 2 * nth + 1 },
			      { .c = &server, .rnd = 2 * nth + 2 } };
	pthread_t threads[3];
	char port[8];
	int i;

	snprintf(port, sizeof(port), "%u", 7480 + nth);
	conn_listen(&server, t.addr, port);
	conn_pair(&client, &server, t.addr, port, DEPTH, 0);
	a[0].rkey = open_words(&server)->rkey;
	a[1].rkey = open_words(&client)->rkey;
	for (i = 0; i < 2; i++)
		a[i].answers_mr = conn_reg(a[i].c, a[i].answers, sizeof(a[i].answers),
					   IBV_ACCESS_LOCAL_WRITE);
	if (pthread_create(&threads[0], NULL, add_over_a_connection, &a[0]) ||
	    pthread_create(&threads[1], NULL, add_over_a_connection, &a[1]) ||
	    pthread_create(&threads[2], NULL, add_by_cpu, NULL))
		fail("no thread");
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	conn_close(&client);
	conn_close(&server);
}

/* Forks all, waits for all: how many have failed. */
static int run_all(void)
{
	int status, failed = 0;
	uint32_t i;

	for (i = 0; i < t.processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork: %s", strerror(errno));
		if (!pid) {
			run_process(i);
			_exit(0);
		}
	}
	for (i = 0; i < t.processes; i++)
		failed += wait(&status) < 0 || status;
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, want;
	int opt, failed;
	uint32_t i;

	conn_program = "weft-atomics";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "n:p:")) != -1) {
		if (opt == 'n')
			t.adds = strtoull(optarg, NULL, 0);
		else if (opt == 'p')
			t.processes = strtoul(optarg, NULL, 0);
		else
			optind = argc + 1;
	}
	if (argc - optind != 1 || !t.processes || t.processes > MAX_PROCESSES) {
		fprintf(stderr, "weft-atomics [-n ADDS] [-p PROCESSES] ADDR\n"
				"   ADDS by each end of each process, and by each process's thread\n");
		return 2;
	}
	t.addr = argv[optind];
	t.words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t.words == MAP_FAILED)
		fail("no memory");
	t.failed_swaps = t.words + WORDS;
	failed = run_all();
	for (i = 0; i < WORDS; i++)
		sum += t.words[i];
	want = 3 * t.adds * t.processes;
	printf("# %llu additions, %llu swaps tried again\n", (unsigned long long)sum,
	       (unsigned long long)*t.failed_swaps);
	printf("1..1\n%sok 1 - no-update-is-lost\n", !failed && sum == want ? "" : "not ");
	return failed || sum != want;
}
