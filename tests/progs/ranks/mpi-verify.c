// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program that verifies every octet: messages between all pairs of ranks, of every length at
 * which a transport may change its protocol; collectives; and one-sided access, with fences and
 * with locks.
 *
 *   mpi-verify [-p]     -p: a ping-pong of 8 octets between ranks 0 and 1, in microseconds one way
 *
 * Rank 0 prints "N ranks, N checks". A rank that finds a wrong octet aborts all.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (3 << 20)
#define ROUNDS 50
#define PINGS		10000

static int rank, ranks;
static long checks;
static unsigned char *out, *in;

static unsigned char octet(int of, int to, int len, int i)
{
	return (unsigned char)(of * 31 + to * 57 + len + i * 7 + (i >> 8));
}

static void wrong(const char *what, int len)
{
	fprintf(stderr, "mpi-verify: rank %d: %s of %d octets is wrong\n", rank, what, len);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(unsigned char *p, int of, int to, int len)
{
	int i;

	for (i = 0; i < len; i++)
		p[i] = octet(of, to, len, i);
}

static void verify(const unsigned char *p, int of, int to, int len, const char *what)
{
	int i;

	checks++;
	for (i = 0; i < len; i++)
		if (p[i] != octet(of, to, len, i))
			wrong(what, len);
}

/* Around lengths where transports change their ways: inline, eager, in pieces, rendezvous. */
static int lengths(int n)
{
	static const int around[] = { 0, 8, 64, 512, 4096, 8192, 32768, 262144, LONGEST - 1 };
	int i = n / 3;

	if (i >= (int)(sizeof(around) / sizeof(around[0])))
		return -1;
	return around[i] + n % 3 - (around[i] ? 1 : 0);
}

/* Everyone to everyone at once; each message has a tag of its own. */
static void messages(void)
{
	MPI_Request r[2];
	MPI_Status s[2];
	int n, len, d, to, from, got;

	for (n = 0; (len = lengths(n)) >= 0; n++)
		for (d = 0; d < ranks; d++) {
			to = (rank + d) % ranks;
			from = (rank + ranks - d) % ranks;
			fill(out, rank, to, len);
			memset(in, 0, len);
			MPI_Irecv(in, LONGEST, MPI_BYTE, from, n * ranks + d, MPI_COMM_WORLD, &r[0]);
			MPI_Isend(out, len, MPI_BYTE, to, n * ranks + d, MPI_COMM_WORLD, &r[1]);
			MPI_Waitall(2, r, s);
			MPI_Get_count(&s[0], MPI_BYTE, &got);
			if (got != len)
				wrong("the length of a message", len);
			verify(in, from, rank, len, "a message");
		}
}

/* A burst without posted receives, received in another order than it was sent. */
static void unexpected(void)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, i, len;
	MPI_Request r[ROUNDS];

	for (i = 0; i < ROUNDS; i++) {
		len = 1 + i * 211;
		fill(out + i * 16384, rank, right, len);
		MPI_Isend(out + i * 16384, len, MPI_BYTE, right, i, MPI_COMM_WORLD, &r[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = ROUNDS - 1; i >= 0; i--) {
		len = 1 + i * 211;
		MPI_Recv(in, len, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		verify(in, left, rank, len, "an unexpected message");
	}
	MPI_Waitall(ROUNDS, r, MPI_STATUSES_IGNORE);
}

static void collectives(void)
{
	static const int lens[] = { 1, 100, 5000, 100000 };
	int n, len, of;
	long sum, mine;

	for (n = 0; n < 4; n++) {
		len = lens[n];
		for (of = 0; of < ranks; of++) {
			fill(in, of, rank == of ? 0 : 1, len);
			MPI_Bcast(in, len, MPI_BYTE, of, MPI_COMM_WORLD);
			verify(in, of, 0, len, "a broadcast");
			fill(out, rank, of, len);
			MPI_Gather(out, len, MPI_BYTE, in, len, MPI_BYTE, of, MPI_COMM_WORLD);
			for (int i = 0; rank == of && i < ranks; i++)
				verify(in + (long)i * len, i, of, len, "what was gathered");
		}
		for (of = 0; of < ranks; of++)
			fill(out + (long)of * len, rank, of, len);
		MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
		for (of = 0; of < ranks; of++)
			verify(in + (long)of * len, of, rank, len, "what all sent to all");
		fill(out, rank, 9, len);
		MPI_Allgather(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
		for (of = 0; of < ranks; of++)
			verify(in + (long)of * len, of, 9, len, "what all gathered");
	}
	for (n = 0; n < ROUNDS; n++, checks++) {
		mine = (rank + 1) * (n + 1);
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		if (sum != (long)(n + 1) * ranks * (ranks + 1) / 2)
			wrong("a sum", sizeof(sum));
	}
}

/* Everyone puts into everyone's window, and gets it back from there. */
static void puts_and_gets(MPI_Win win, unsigned char *mem, int len)
{
	int d, to, from;

	MPI_Win_fence(0, win);
	for (d = 0; d < ranks; d++) {
		to = (rank + d) % ranks;
		fill(out + (long)d * len, rank, to, len);
		MPI_Put(out + (long)d * len, len, MPI_BYTE, to, (MPI_Aint)rank * len, len, MPI_BYTE, win);
	}
	MPI_Win_fence(0, win);
	for (from = 0; from < ranks; from++)
		verify(mem + (long)from * len, from, rank, len, "what was put");
	for (d = 0; d < ranks; d++)
		MPI_Get(in + (long)d * len, len, MPI_BYTE, d, (MPI_Aint)rank * len, len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	for (d = 0; d < ranks; d++)
		verify(in + (long)d * len, rank, d, len, "what was got");
}

/* Everyone adds to words of rank 0, and takes a ticket from it: no ticket comes twice. */
static void atomics(MPI_Win win, long *words)
{
	long one = 1, ticket, *seen = calloc(ROUNDS * ranks, sizeof(*seen));
	int i;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	words[0] = words[1] = 0;
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < ROUNDS; i++, checks++) {
		MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Accumulate(&one, 1, MPI_LONG, 0, sizeof(long), 1, MPI_LONG, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (ticket < 0 || ticket >= ROUNDS * ranks || seen[ticket]++)
			wrong("a ticket", sizeof(ticket));
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(MPI_IN_PLACE, seen, ROUNDS * ranks, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < ROUNDS * ranks; i++)
		if (seen[i] != 1)
			wrong("a ticket of all", sizeof(ticket));
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&ticket, 1, MPI_LONG, 0, sizeof(long), 1, MPI_LONG, win);
	MPI_Win_unlock(0, win);
	if (ticket != ROUNDS * ranks)
		wrong("what all added up to", sizeof(ticket));
	free(seen);
}

static void one_sided(void)
{
	static const int lens[] = { 8, 1000, 70000 };
	unsigned char *mem;
	MPI_Win win;
	int n;

	MPI_Win_allocate((MPI_Aint)ranks * 70000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	for (n = 0; n < 3; n++)
		puts_and_gets(win, mem, lens[n]);
	atomics(win, (long *)mem);
	MPI_Win_free(&win);
}

static void ping(void)
{
	unsigned char word[8] = { 0 };
	double start = 0;
	int i;

	for (i = -PINGS / 10; i < PINGS && rank < 2; i++) {
		if (!i)
			start = MPI_Wtime();
		if (rank)
			MPI_Recv(word, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(word, 8, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
		if (!rank)
			MPI_Recv(word, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (!rank)
		printf("%.2f us\n", (MPI_Wtime() - start) / PINGS / 2 * 1e6);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = malloc(LONGEST);
	in = malloc(LONGEST);
	if (!out || !in || ranks > 30)
		wrong("memory", LONGEST);
	if (argc > 1 && !strcmp(argv[1], "-p")) {
		ping();
	} else {
		messages();
		unexpected();
		collectives();
		one_sided();
		if (!rank)
			printf("%d ranks, %ld checks\n", ranks, checks);
	}
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
