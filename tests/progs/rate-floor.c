// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ping-pong over what weft_kping offers (tests/kmod/ping.c): a system call, TCP,
 * and a page to spin on. What a driver over TCP takes longer is its own.
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

#include "../kmod/kping.h"
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

void floor_run(const struct run *asked)
{
	bool read = asked->job == JOB_READ;
	struct run run = *asked;
	uint32_t got, theirs;
	struct pings p;
	pid_t other;

	run.size = KPING_OCTETS;
	open_device(read);
	got = f.page->end[0].got;
	theirs = f.page->end[1].got;
	other = fork();
	if (other < 0)
		fail("fork: %s", strerror(errno));
	if (!other)
		other_end(!read, theirs);
	pings_start(&p, run.seconds);
	do {
		say(0);
		got = await(0, got);
	} while (!pings_done(&p));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	pings_print(&p, &run);
}
