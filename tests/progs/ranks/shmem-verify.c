// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An OpenSHMEM program that verifies every octet: puts, gets, waits for words, atomics, broadcasts
 * and sums. Process 0 prints "N processes, N checks". A process that finds a wrong octet aborts
 * all.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20)
#define ROUNDS 50

static int me, all;
static long checks;
static long pSync[SHMEM_REDUCE_SYNC_SIZE], bSync[SHMEM_BCAST_SYNC_SIZE];
static long mine, sum, words[2], flag, pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static unsigned char octet(int of, int to, int len, int i)
{
	return (unsigned char)(of * 31 + to * 57 + len + i * 7 + (i >> 8));
}

static void check(int ok, const char *what, int len)
{
	checks++;
	if (ok)
		return;
	fprintf(stderr, "shmem-verify: process %d: %s of %d octets is wrong\n", me, what, len);
	shmem_global_exit(1);
}

static void fill(unsigned char *p, int of, int to, int len)
{
	int i;

	for (i = 0; i < len; i++)
		p[i] = octet(of, to, len, i);
}

static int is(const unsigned char *p, int of, int to, int len)
{
	int i;

	for (i = 0; i < len && p[i] == octet(of, to, len, i); i++)
		;
	return i == len;
}

/* Everyone to its right, then from its left, whose memory says the same. */
static void puts_and_gets(unsigned char *heap, unsigned char *local, int len)
{
	int right = (me + 1) % all, left = (me + all - 1) % all;

	fill(local, me, right, len);
	shmem_putmem(heap, local, len, right);
	shmem_barrier_all();
	check(is(heap, left, me, len), "what was put", len);
	memset(local, 0, len);
	shmem_getmem(local, heap, len, right);
	check(is(local, me, right, len), "what was got", len);
	shmem_barrier_all();
}

/* A word that comes behind what it announces. */
static void announced(unsigned char *heap, unsigned char *local, int round)
{
	int right = (me + 1) % all, left = (me + all - 1) % all, len = 1000 + round * 100;

	fill(local, me, right, len);
	shmem_putmem(heap, local, len, right);
	shmem_fence();
	shmem_long_p(&flag, round + 1, right);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round + 1);
	check(is(heap, left, me, len), "what was announced", len);
	shmem_barrier_all();
}

static void atomics(void)
{
	long *seen = calloc((size_t)all * ROUNDS, sizeof(*seen)), ticket;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ticket = shmem_long_atomic_fetch_add(&words[0], 1, 0);
		check(ticket >= 0 && ticket < (long)all * ROUNDS && !seen[ticket]++, "a ticket", sizeof(ticket));
		shmem_long_atomic_add(&words[1], 2, i % all);
	}
	while (shmem_long_atomic_compare_swap(&words[1], 0, -1, me) == 0)
		;
	shmem_barrier_all();
	check(shmem_long_g(&words[0], 0) == (long)all * ROUNDS, "a count of tickets", sizeof(ticket));
	free(seen);
}

static void collectives(unsigned char *heap, unsigned char *out)
{
	int i, of;

	for (i = 0; i < ROUNDS; i++) {
		mine = (me + 1) * (i + 1);
		shmem_barrier_all();
		shmem_long_sum_to_all(&sum, &mine, 1, 0, 0, all, pWrk, pSync);
		check(sum == (long)(i + 1) * all * (all + 1) / 2, "a sum", sizeof(sum));
	}
	for (of = 0; of < all; of++) {
		fill(out, of, 0, 8000);
		shmem_barrier_all();
		shmem_broadcast64(heap, out, 1000, of, 0, 0, all, bSync);
		check(me == of || is(heap, of, 0, 8000), "a broadcast", 8000);
		shmem_barrier_all();
	}
}

int main(void)
{
	unsigned char *heap, *local, *out;
	int i, len;

	shmem_init();
	me = shmem_my_pe();
	all = shmem_n_pes();
	for (i = 0; i < (int)SHMEM_REDUCE_SYNC_SIZE; i++)
		pSync[i] = SHMEM_SYNC_VALUE;
	for (i = 0; i < (int)SHMEM_BCAST_SYNC_SIZE; i++)
		bSync[i] = SHMEM_SYNC_VALUE;
	heap = shmem_malloc(LONGEST);
	out = shmem_malloc(LONGEST);
	local = malloc(LONGEST);
	check(heap && out && local, "memory", LONGEST);
	shmem_barrier_all();
	for (len = 1; len <= LONGEST; len *= 4)
		puts_and_gets(heap, local, len);
	for (i = 0; i < ROUNDS; i++)
		announced(heap, local, i);
	atomics();
	collectives(heap, out);
	if (!me)
		printf("%d processes, %ld checks\n", all, checks);
	free(local);
	shmem_free(out);
	shmem_free(heap);
	shmem_finalize();
	return 0;
}
