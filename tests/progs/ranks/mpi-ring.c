// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: its ranks pass messages of many sizes around a ring and broadcast them, and
 * verify every octet. Rank 0 prints the number of ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST (1 << 20)
#define ROUNDS 20

static int rank, ranks;

static unsigned char octet(int of, int len, int i)
{
	return (unsigned char)(of * 31 + len + i * 7);
}

static void check(int ok, const char *what, int len)
{
	if (ok)
		return;
	fprintf(stderr, "mpi-ring: rank %d: %s of %d octets is wrong\n", rank, what, len);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* To the right, from the left. */
static void pass_on(unsigned char *out, unsigned char *in, int len)
{
	int left = (rank + ranks - 1) % ranks, i;

	for (i = 0; i < len; i++)
		out[i] = octet(rank, len, i);
	MPI_Sendrecv(out, len, MPI_BYTE, (rank + 1) % ranks, len, in, len, MPI_BYTE, left, len,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < len; i++)
		check(in[i] == octet(left, len, i), "a message", len);
}

/* From each in turn to all. */
static void tell_all(unsigned char *buf, int len)
{
	int of, i;

	for (of = 0; of < ranks; of++) {
		for (i = 0; i < len; i++)
			buf[i] = rank == of ? octet(of, len, i) : 0;
		MPI_Bcast(buf, len, MPI_BYTE, of, MPI_COMM_WORLD);
		for (i = 0; i < len; i++)
			check(buf[i] == octet(of, len, i), "a broadcast", len);
	}
}

static void add_up(void)
{
	int mine = rank + 1, sum = 0;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(sum == ranks * (ranks + 1) / 2, "a sum", sizeof(sum));
}

int main(int argc, char **argv)
{
	unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
	int len, round;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	check(out && in, "memory", LONGEST);
	for (len = 1; len <= LONGEST; len *= 4) {
		pass_on(out, in, len);
		tell_all(in, len);
	}
	for (round = 0; round < ROUNDS; round++)
		add_up();
	if (!rank)
		printf("%d ranks\n", ranks);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
