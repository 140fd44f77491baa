// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ping-pong, and a stream, over weft_kping (tests/kmod/ping.c): a system call, TCP, and a page to
 * spin on. Any time beyond that is the driver's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../kmod/kping.h"
#include "conn.h"
#include "rate.h"

static struct {
	int fd;
	volatile struct kping_page *page;
} f;

static void say(int end)
{
	if (ioctl(f.fd, KPING_SAY(end)))
		fail("sending: %s", strerror(errno));
}

/* Until a message more than @got octets has come. */
static uint32_t await(int end, uint32_t got)
{
	while (f.page->end[end].got == got)
		;
	return got + KPING_OCTETS;
}

/* The other end, for ever: answers, or spins as a server does that is not asked. */
static void other_end(bool answers, uint32_t got)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!answers)
		__asm__ volatile("");
	for (;;) {
		got = await(1, got);
		say(1);
	}
}

static void open_device(bool read)
{
	f.fd = open("/dev/" KPING_DEVICE, O_RDWR);
	if (f.fd < 0)
		fail("/dev/" KPING_DEVICE ": %s", strerror(errno));
	f.page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, f.fd, 0);
	if (f.page == MAP_FAILED || ioctl(f.fd, KPING_ANSWER, read))
		fail("/dev/" KPING_DEVICE ": %s", strerror(errno));
}

/* Data of one message after another: what the other end's callback has copied. */
static void stream(const struct run *run)
{
	uint8_t *data = malloc(run->size);
	uint64_t bytes = 0;
	uint32_t got, last = f.page->end[1].got;
	struct meter m;
	ssize_t n;

	if (!data)
		fail("no memory");
	/* Else all of it would be one page, of zeros. */
	memset(data, 'w', run->size);
	meter_start(&m, run->tenths);
	do {
		n = write(f.fd, data, run->size);
		if (n < 0 && errno != EAGAIN)
			fail("sending: %s", strerror(errno));
		got = f.page->end[1].got;
		bytes += (uint32_t)(got - last);
		last = got;
	} while (!meter_look(&m, bytes));
	print_rate(run, &m.count, m.count.cpu_us, 0);
	free(data);
}

static void ping(struct run *run)
{
	uint32_t got = f.page->end[0].got;
	struct pings p;

	run->size = KPING_OCTETS;
	pings_start(&p, run->tenths);
	do {
		say(0);
		got = await(0, got);
	} while (!pings_done(&p));
	pings_print(&p, run);
}

void floor_run(const struct run *asked)
{
	struct run run = *asked;
	uint32_t theirs;
	pid_t other;

	open_device(run.job == JOB_READ);
	theirs = f.page->end[1].got;
	other = fork();
	if (other < 0)
		fail("fork: %s", strerror(errno));
	if (!other)
		other_end(run.job == JOB_WRITE, theirs);
	if (run.job == JOB_SEND)
		stream(&run);
	else
		ping(&run);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}
