// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long does it take to read a small file, such as a counter in sysfs?
 *   reading FILE	prints the shortest of 50 times, in us
 * The kernel caches a counter for 10 ms: there is a pause before each reading.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TIMES 50

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 25000000 };
	int64_t from, took, least = INT64_MAX;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1, i;
	char buf[64];

	for (i = 0; i < TIMES; i++) {
		nanosleep(&pause, NULL);
		from = now_us();
		if (pread(fd, buf, sizeof(buf), 0) <= 0) {
			fprintf(stderr, "reading: nothing can be read\n");
			return 1;
		}
		took = now_us() - from;
		if (took < least)
			least = took;
	}
	printf("%lld\n", (long long)least);
	return 0;
}
