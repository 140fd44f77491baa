// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that goes away while it is registered: unmapped, made inaccessible, cut off with its
 * file. Where memory is not pinned (weft-run) that must end the connection that uses it, be reported
 * to both ends, and affect neither the program, nor its other connections, nor its handlers of
 * faults. Each case has a connection of its own, both ends in this process,
 * over the device that has ADDR. TAP on stdout.
 *   weft-unmap [-b] [-r ROUNDS] ADDR [CASE]
 *   weft-unmap -c CHILD ADDR    one program with a way of its own with signals: see children
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn.h"
#include "pattern.h"

#define PAGE	4096
#define BUF	(1 << 20)
#define DEPTH	32
#define TIMEOUT	60000	/* ms, for what must come */
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Where no allocator maps memory, so that unmapped memory stays so. */
#define AREAS	0x200000000000UL

struct area {
	uint8_t *at;
	int fd;
	struct ibv_mr *mr;
};

struct pair {
	struct conn c, s;
	const char *port;
	struct area from, to;		/* the client's, the server's */
	bool c_told, s_told;		/* by an asynchronous event that the QP is in error */
	uint64_t key;
};

static struct pair t = { .port = "7472" }, calm = { .port = "7473" };
static const char *addr, *self;
static int rounds = 40;

/* ---- memory ---- */

enum way { UNMAP, NO_ACCESS, READ_ONLY, CUT_OFF };

static void map_area(struct area *a)
{
	static unsigned long next = AREAS;

	a->fd = memfd_create("area", MFD_CLOEXEC);
	if (a->fd < 0 || ftruncate(a->fd, BUF))
		fail("no memory file: %s", strerror(errno));
	a->at = mmap((void *)next, BUF, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
	if (a->at == MAP_FAILED)
		fail("no memory: %s", strerror(errno));
	next += 16UL << 20;
}

static void unmap_area(struct area *a)
{
	munmap(a->at, BUF);
	close(a->fd);
}

/* The page at @off; with CUT_OFF all that is behind it, too. */
static void take_away(struct area *a, size_t off, enum way way)
{
	int rv = -1;

	switch (way) {
	case UNMAP:
		rv = munmap(a->at + off, PAGE);
		break;
	case NO_ACCESS:
		rv = mprotect(a->at + off, PAGE, PROT_NONE);
		break;
	case READ_ONLY:
		rv = mprotect(a->at + off, PAGE, PROT_READ);
		break;
	case CUT_OFF:
		rv = ftruncate(a->fd, off);
		break;
	}
	if (rv)
		fail("memory cannot be taken away: %s", strerror(errno));
}

static void give_back(struct area *a, size_t off)
{
	if (mmap(a->at + off, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, off) ==
	    MAP_FAILED)
		fail("memory cannot be given back: %s", strerror(errno));
}

/* ---- both ends of a connection ---- */

static void open_pair(struct pair *p)
{
	conn_pair(&p->c, &p->s, addr, p->port, DEPTH, 64);
	map_area(&p->from);
	map_area(&p->to);
	pattern_fill(p->from.at, BUF, ++p->key);
	p->from.mr = conn_reg(&p->c, p->from.at, BUF, RIGHTS);
	p->to.mr = conn_reg(&p->s, p->to.at, BUF, RIGHTS);
	p->c_told = p->s_told = false;
}

/* Unread events of both ends are discarded. */
static void close_pair(struct pair *p)
{
	conn_close(&p->c);
	conn_close(&p->s);
	unmap_area(&p->from);
	unmap_area(&p->to);
}

static void listen_as(struct pair *p, bool busy)
{
	p->c.timeout_ms = p->s.timeout_ms = TIMEOUT;
	p->c.busy_poll = p->s.busy_poll = busy;
	conn_listen(&p->s, addr, p->port);
}

/* ---- work requests ---- */

static struct ibv_sge sge_of(const struct area *a, size_t off, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)a->at + off, .length = len,
				 .lkey = a->mr->lkey };
}

static void post_recv(struct pair *p, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = sge_of(&p->to, 0, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = !!len }, *bad;
	int err = ibv_post_recv(p->s.id->qp, &wr, &bad);

	if (err)
		fail("post_recv: %s", strerror(err));
}

/* From the start of the client's area, to the start of the server's. */
static void post(struct pair *p, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len, int flags)
{
	struct ibv_sge sge = sge_of(&p->from, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = !!len,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | flags,
		.wr.rdma = { .remote_addr = (uintptr_t)p->to.at, .rkey = p->to.mr->rkey },
	}, *bad;
	int err = ibv_post_send(p->c.id->qp, &wr, &bad);

	if (err)
		fail("post_send: %s", strerror(err));
}

/* The next completion is that of @id, with @status. */
static bool ended_with(struct conn *c, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {};
	int n = conn_poll(c, &wc, 1, TIMEOUT);

	if (n == 1 && wc.wr_id == id && wc.status == status)
		return true;
	if (n == 1)
		printf("# completion of %d: %s; of %d: %s was to come\n", (int)wc.wr_id,
		       ibv_wc_status_str(wc.status), (int)id, ibv_wc_status_str(status));
	else
		printf("# no completion; of %d: %s was to come\n", (int)id,
		       ibv_wc_status_str(status));
	return false;
}

static bool done(struct conn *c, uint64_t id)
{
	return ended_with(c, id, IBV_WC_SUCCESS);
}

/* Octets go both ways, and are the right ones. */
static bool goes_on(struct pair *p)
{
	const uint32_t len = 3 * PAGE;

	memset(p->to.at, 0, len);
	pattern_fill(p->from.at, len, ++p->key);
	post_recv(p, 1, 0);
	post(p, 2, IBV_WR_RDMA_WRITE, len, 0);
	post(p, 3, IBV_WR_SEND, 0, 0);
	if (!done(&p->c, 2) || !done(&p->c, 3) || !done(&p->s, 1) ||
	    pattern_check(p->to.at, len, p->key) != len)
		return false;
	memset(p->from.at, 0, len);
	post(p, 4, IBV_WR_RDMA_READ, len, 0);
	return done(&p->c, 4) && pattern_check(p->from.at, len, p->key) == len;
}

/* ---- both ends get an event ---- */

static bool is_error(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR;
}

/* Both ends have the one context. */
static bool take_event(int timeout_ms)
{
	struct ibv_context *ctx = t.c.id->verbs;
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	if (poll(&p, 1, timeout_ms) <= 0)
		return false;
	if (ibv_get_async_event(ctx, &ev))
		fail("ibv_get_async_event: %s", strerror(errno));
	if (is_error(ev.event_type) && ev.element.qp == t.c.id->qp)
		t.c_told = true;
	else if (is_error(ev.event_type) && ev.element.qp == t.s.id->qp)
		t.s_told = true;
	else
		printf("# event: %s\n", ibv_event_type_str(ev.event_type));
	ibv_ack_async_event(&ev);
	return true;
}

static bool both_are_told(void)
{
	while ((!t.c_told || !t.s_told) && take_event(TIMEOUT))
		;
	if (!t.c_told)
		printf("# no event for the client\n");
	if (!t.s_told)
		printf("# no event for the server\n");
	return t.c_told && t.s_told;
}

/* What was posted to the server as 7 is flushed, and so is what the client posts now. */
static bool both_are_flushed(void)
{
	post(&t, 8, IBV_WR_SEND, 0, 0);
	return ended_with(&t.c, 8, IBV_WC_WR_FLUSH_ERR) &&
	       ended_with(&t.s, 7, IBV_WC_WR_FLUSH_ERR);
}

static bool both_are_over(void)
{
	return both_are_told() && both_are_flushed();
}

/* ---- taken away before it is used ---- */

struct how {
	enum way way;
	size_t page;			/* where that lies in the area */
	uint32_t len;			/* of the message */
};

/* A Write is complete when TCP has it, if that was before the answer came. */
static bool took_a_write(void)
{
	struct ibv_wc wc = {};

	return conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 && wc.wr_id == 2 &&
	       (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
}

static bool write_target(const struct how *h)
{
	/* Of an FPDU that was placed in part nothing counts. */
	const size_t sure = h->page > 65536 ? h->page - 65536 : 0;

	take_away(&t.to, h->page, h->way);
	post_recv(&t, 7, 0);
	post(&t, 2, IBV_WR_RDMA_WRITE, h->len, 0);
	return took_a_write() && both_are_over() && pattern_check(t.to.at, sure, t.key) == sure;
}

static bool receive(const struct how *h)
{
	struct ibv_wc wc = {};

	post_recv(&t, 6, h->len);
	post_recv(&t, 7, 0);
	take_away(&t.to, h->page, h->way);
	post(&t, 2, IBV_WR_SEND, h->len, 0);
	if (conn_poll(&t.c, &wc, 1, TIMEOUT) != 1 || wc.wr_id != 2 ||
	    !ended_with(&t.s, 6, IBV_WC_LOC_PROT_ERR))
		return false;
	return both_are_over();
}

static bool source(enum ibv_wr_opcode opcode, const struct how *h)
{
	if (opcode == IBV_WR_SEND)
		post_recv(&t, 7, BUF);
	else
		post_recv(&t, 7, 0);
	take_away(&t.from, h->page, h->way);
	post(&t, 2, opcode, h->len, 0);
	return ended_with(&t.c, 2, IBV_WC_LOC_PROT_ERR) && both_are_over();
}

static bool send_source(const struct how *h)
{
	return source(IBV_WR_SEND, h);
}

static bool write_source(const struct how *h)
{
	return source(IBV_WR_RDMA_WRITE, h);
}

/* Earlier requests are sent: all but the unmapped memory arrives. */
static bool behind_others(const struct how *h)
{
	const uint32_t len = 100;

	post_recv(&t, 5, len);
	post_recv(&t, 7, 0);
	take_away(&t.from, h->page, h->way);
	post(&t, 1, IBV_WR_SEND, len, 0);
	post(&t, 2, IBV_WR_RDMA_WRITE, h->len, 0);
	return done(&t.c, 1) && ended_with(&t.c, 2, IBV_WC_LOC_PROT_ERR) && done(&t.s, 5) &&
	       pattern_check(t.to.at, len, t.key) == len && both_are_over();
}

/* The Terminate says which Read it was. */
static bool read_source(const struct how *h)
{
	take_away(&t.to, h->page, h->way);
	post_recv(&t, 7, 0);
	post(&t, 2, IBV_WR_RDMA_READ, h->len, 0);
	return ended_with(&t.c, 2, IBV_WC_REM_OP_ERR) && both_are_over();
}

static bool read_sink(const struct how *h)
{
	take_away(&t.from, h->page, h->way);
	post_recv(&t, 7, 0);
	post(&t, 2, IBV_WR_RDMA_READ, h->len, 0);
	return ended_with(&t.c, 2, IBV_WC_LOC_PROT_ERR) && both_are_over();
}

/* An inline message has been copied by then. */
static bool inline_source(const struct how *h)
{
	post_recv(&t, 5, 64);
	post(&t, 2, IBV_WR_SEND, 64, IBV_SEND_INLINE);
	take_away(&t.from, h->page, h->way);
	if (!done(&t.c, 2) || !done(&t.s, 5) || pattern_check(t.to.at, 64, t.key) != 64)
		return false;
	give_back(&t.from, h->page);
	return goes_on(&t);
}

/* Memory that may be read is enough for what is only read. */
static bool sources_that_are_read_only(const struct how *h)
{
	take_away(&t.from, h->page, h->way);
	take_away(&t.to, h->page, h->way);
	post_recv(&t, 7, 0);
	post(&t, 2, IBV_WR_SEND, 0, 0);
	if (!done(&t.c, 2) || !done(&t.s, 7))
		return false;
	give_back(&t.to, h->page);
	post(&t, 3, IBV_WR_RDMA_WRITE, h->len, 0);
	post_recv(&t, 7, 0);
	post(&t, 2, IBV_WR_SEND, 0, 0);
	if (!done(&t.c, 3) || !done(&t.c, 2) || !done(&t.s, 7) ||
	    pattern_check(t.to.at, h->len, t.key) != h->len)
		return false;
	give_back(&t.from, h->page);
	take_away(&t.to, h->page, h->way);
	memset(t.from.at, 0, h->len);
	post(&t, 4, IBV_WR_RDMA_READ, h->len, 0);
	return done(&t.c, 4) && pattern_check(t.from.at, h->len, t.key) == h->len;
}

/* ---- taken away while it is used ---- */

static struct {
	struct area *area;
	bool enough;
	int resets;			/* connections that ended without a Terminate */
} thief;

/* Again and again, at other places, for other times. */
static void *steal(void *unused)
{
	uint64_t n = t.key;
	size_t off;

	(void)unused;
	while (!__atomic_load_n(&thief.enough, __ATOMIC_ACQUIRE)) {
		n = pattern_mix(n);
		off = n % (BUF / PAGE) * PAGE;
		usleep(n >> 20 & 0xff);
		take_away(thief.area, off, n >> 10 & 1 ? UNMAP : NO_ACCESS);
		usleep(n >> 30 & 0x1f);
		give_back(thief.area, off);
	}
	return NULL;
}

/* Half an FPDU may have been sent: then the peer gets a reset, without a Terminate. */
static bool both_are_cut_off(void)
{
	bool *owner_told = thief.area == &t.from ? &t.c_told : &t.s_told;

	while (!*owner_told && take_event(TIMEOUT))
		;
	if (!*owner_told || !both_are_flushed()) {
		printf("# told: client %d, server %d\n", t.c_told, t.s_told);
		return false;
	}
	/* It is raised behind the completions. */
	while ((!t.c_told || !t.s_told) && take_event(100))
		;
	thief.resets += !t.c_told || !t.s_told;
	return true;
}

/* Keeps the queue full until the first error, which must come. */
static bool until_it_fails(enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc = {};
	int n, posted = 0;

	for (n = 0; n < 100000; n++) {
		for (; posted < 4; posted++)
			post(&t, 2, opcode, BUF, 0);
		if (conn_poll(&t.c, &wc, 1, TIMEOUT) != 1) {
			printf("# nothing more, and no error%s\n", t.c.gone ? ": the peer has gone" : "");
			return false;
		}
		if (wc.status != IBV_WC_SUCCESS)
			break;
		posted--;
	}
	while (--posted)
		if (!ended_with(&t.c, 2, IBV_WC_WR_FLUSH_ERR))
			return false;
	return both_are_cut_off();
}

static bool race(enum ibv_wr_opcode opcode, struct area *area)
{
	pthread_t thread;
	bool ok;

	post_recv(&t, 7, 0);
	thief.area = area;
	thief.enough = false;
	if (pthread_create(&thread, NULL, steal, NULL))
		fail("no thread");
	ok = until_it_fails(opcode);
	__atomic_store_n(&thief.enough, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return ok;
}

/* Another connection each time, which a peer that was reset must be ready for. */
static bool races(enum ibv_wr_opcode opcode, struct area *area)
{
	int i;

	thief.resets = 0;
	for (i = 1; race(opcode, area) && goes_on(&calm); i++) {
		if (i == rounds) {
			printf("# %d of %d by reset\n", thief.resets, rounds);
			return true;
		}
		close_pair(&t);
		open_pair(&t);
	}
	printf("# in round %d\n", i);
	return false;
}

static bool write_source_races(const struct how *h)
{
	(void)h;
	return races(IBV_WR_RDMA_WRITE, &t.from);
}

static bool write_target_races(const struct how *h)
{
	(void)h;
	return races(IBV_WR_RDMA_WRITE, &t.to);
}

static bool read_source_races(const struct how *h)
{
	(void)h;
	return races(IBV_WR_RDMA_READ, &t.to);
}

static bool read_sink_races(const struct how *h)
{
	(void)h;
	return races(IBV_WR_RDMA_READ, &t.from);
}

/* ---- the program's own faults: each child is a program ---- */

static uint8_t *own;			/* a page that is not to be touched */
static volatile int own_faults;
static sigjmp_buf back;

static void take_own(int sig, siginfo_t *info, void *ctx)
{
	(void)ctx;
	if (sig != SIGSEGV || (uint8_t *)info->si_addr != own + 5)
		_exit(3);
	own_faults++;
	siglongjmp(back, 1);
}

static void take_own_plainly(int sig)
{
	if (sig != SIGSEGV)
		_exit(3);
	own_faults++;
	siglongjmp(back, 1);
}

/* Goes on where it was. */
static void mend(int sig)
{
	(void)sig;
	own_faults++;
	if (mprotect(own, PAGE, PROT_READ | PROT_WRITE))
		_exit(3);
}

static void count(int sig)
{
	(void)sig;
	own_faults++;
}

static void fault_in_it(int sig)
{
	(void)sig;
	if (own_faults++)
		_exit(3);
	*(volatile uint8_t *)own = 1;
}

static void touch_own(void)
{
	*(volatile uint8_t *)(own + 5) = 1;
}

/* Faults once; the handler saw it, and nothing of what the library does with memory. */
static bool own_fault_comes_back(void)
{
	int had = own_faults;

	if (!sigsetjmp(back, 1)) {
		touch_own();
		return false;
	}
	return own_faults == had + 1;
}

static void set_action(void (*handler)(int), int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(SIGSEGV, &a, NULL))
		fail("sigaction: %s", strerror(errno));
}

static void set_info_action(void)
{
	struct sigaction a = { .sa_sigaction = take_own, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGSEGV, &a, NULL))
		fail("sigaction: %s", strerror(errno));
}

static bool handler_is(void (*handler)(int))
{
	struct sigaction a;

	return !sigaction(SIGSEGV, NULL, &a) && !(a.sa_flags & SA_SIGINFO) &&
	       a.sa_handler == handler;
}

static void set_plain_signal(void)
{
	signal(SIGSEGV, take_own_plainly);
}

static bool a_page_goes(void)
{
	const struct how how = { UNMAP, PAGE, 3 * PAGE };
	bool ok;

	listen_as(&t, false);
	open_pair(&t);
	ok = write_source(&how);
	close_pair(&t);
	return ok;
}

static bool set_before(void (*set)(void))
{
	set();
	return own_fault_comes_back() && a_page_goes() && own_faults == 1 && own_fault_comes_back();
}

static bool set_after(void (*set)(void))
{
	int had;

	listen_as(&calm, false);
	set();
	had = own_faults;
	return own_fault_comes_back() && a_page_goes() && own_faults == had + 1 &&
	       own_fault_comes_back();
}

static bool sigaction_before(void)
{
	return set_before(set_info_action);
}

static bool signal_before(void)
{
	return set_before(set_plain_signal) && handler_is(take_own_plainly);
}

static bool sigaction_after(void)
{
	return set_after(set_info_action);
}

static bool signal_after(void)
{
	return set_after(set_plain_signal) && handler_is(take_own_plainly) &&
	       signal(SIGSEGV, SIG_DFL) == take_own_plainly && handler_is(SIG_DFL);
}

static bool mended_by_its_handler(void)
{
	bool ok = a_page_goes();

	set_action(mend, 0);
	touch_own();
	return ok && own_faults == 1 && own[5] == 1;
}

static bool with_all_signals_blocked(void)
{
	sigset_t all, is;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, NULL) || pthread_sigmask(SIG_BLOCK, NULL, &is))
		fail("pthread_sigmask: %s", strerror(errno));
	return sigismember(&is, SIGTERM) && a_page_goes();
}

static void in_a_handler(int sig)
{
	const struct how how = { UNMAP, PAGE, 3 * PAGE };

	(void)sig;
	own_faults += write_source(&how);
}

static bool within_a_handler_that_blocks_all(void)
{
	struct sigaction a = { .sa_handler = in_a_handler };

	sigfillset(&a.sa_mask);
	sigaction(SIGUSR1, &a, NULL);
	listen_as(&t, false);
	open_pair(&t);
	raise(SIGUSR1);
	close_pair(&t);
	return own_faults == 1;
}

/* Those that are to die come back if they do not. */

static bool without_a_handler(void)
{
	if (a_page_goes())
		touch_own();
	return false;
}

static bool without_a_handler_any_more(void)
{
	set_plain_signal();
	if (!own_fault_comes_back() || !a_page_goes())
		return false;
	signal(SIGSEGV, SIG_DFL);
	touch_own();
	return false;
}

static bool ignoring_it(void)
{
	if (!a_page_goes())
		return false;
	signal(SIGSEGV, SIG_IGN);
	touch_own();
	return false;
}

static bool sent_by_another(void)
{
	if (a_page_goes())
		kill(getpid(), SIGSEGV);
	return false;
}

/* The handler returns, and the access faults again: now without a handler. */
static bool by_a_handler_for_one(void)
{
	alarm(60);
	if (!a_page_goes())
		return false;
	set_action(count, SA_RESETHAND);
	touch_own();
	return false;
}

static bool within_its_handler(void)
{
	alarm(60);
	if (!a_page_goes())
		return false;
	set_action(fault_in_it, 0);
	touch_own();
	return false;
}

/* The program itself copies what goes inline. */
static bool posting_inline_what_is_gone(void)
{
	listen_as(&t, false);
	open_pair(&t);
	if (t.c.max_inline < 64)
		kill(getpid(), SIGSEGV);
	take_away(&t.from, 0, UNMAP);
	post(&t, 2, IBV_WR_SEND, 64, IBV_SEND_INLINE);
	return false;
}

static const struct {
	const char *name;
	bool (*run)(void);
	int signal;			/* that it is to die of; 0: it ends well */
} children[] = {
	{ "a-handler-by-sigaction-before-verbs-sees-own-faults", sigaction_before, 0 },
	{ "a-handler-by-signal-before-verbs-sees-own-faults", signal_before, 0 },
	{ "a-handler-by-sigaction-after-verbs-sees-own-faults", sigaction_after, 0 },
	{ "a-handler-by-signal-after-verbs-sees-own-faults", signal_after, 0 },
	{ "a-handler-may-fix-the-fault", mended_by_its_handler, 0 },
	{ "memory-may-go-with-all-signals-blocked", with_all_signals_blocked, 0 },
	{ "memory-may-go-within-a-handler-that-blocks-all", within_a_handler_that_blocks_all, 0 },
	{ "a-fault-without-a-handler-is-deadly", without_a_handler, SIGSEGV },
	{ "a-fault-without-a-handler-any-more-is-deadly", without_a_handler_any_more, SIGSEGV },
	{ "a-fault-that-is-ignored-is-deadly", ignoring_it, SIGSEGV },
	{ "a-signal-sent-without-a-handler-is-deadly", sent_by_another, SIGSEGV },
	{ "a-handler-for-one-fault-sees-one", by_a_handler_for_one, SIGSEGV },
	{ "a-fault-within-its-handler-is-deadly", within_its_handler, SIGSEGV },
	{ "an-inline-source-that-is-gone-is-the-programs-fault",
	  posting_inline_what_is_gone, SIGSEGV },
};

#define CHILDREN (sizeof(children) / sizeof(children[0]))

static int be_child(const char *name)
{
	const struct rlimit no_core = {};
	unsigned int i;

	setrlimit(RLIMIT_CORE, &no_core);
	own = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < CHILDREN; i++)
		if (!strcmp(children[i].name, name))
			return !children[i].run();
	return 2;
}

/* A sanitizer would take the fault for its own. */
static void leave_faults_alone(void)
{
	const char *had = getenv("ASAN_OPTIONS");
	char options[512];

	if (!had)
		return;
	snprintf(options, sizeof(options), "%s:handle_segv=0:handle_sigbus=0", had);
	setenv("ASAN_OPTIONS", options, 1);
}

/* Where an emulator of the processor runs this, exec() would be the host's: EMULATOR runs programs by name. */
static void exec_child(const char *name)
{
	const char *emulator = getenv("EMULATOR");

	if (emulator) {
		unsetenv("LD_PRELOAD");
		execl(emulator, emulator, "weft-unmap", "-c", name, addr, (char *)NULL);
	} else {
		execl(self, self, "-c", name, addr, (char *)NULL);
	}
}

static bool run_child(unsigned int i)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		leave_faults_alone();
		exec_child(children[i].name);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fail("no child: %s", strerror(errno));
	if (WIFSIGNALED(status) ? WTERMSIG(status) == children[i].signal :
				  !WEXITSTATUS(status) && !children[i].signal)
		return true;
	printf("# it ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return false;
}

/* ---- running ---- */

static const struct {
	const char *name;
	bool (*run)(const struct how *h);
	struct how how;
} cases[] = {
	{ "a-write-to-what-is-unmapped", write_target, { UNMAP, 0, 100 } },
	{ "a-write-to-pages-one-of-which-is-unmapped", write_target, { UNMAP, 3 * PAGE, 5 * PAGE } },
	{ "a-write-of-1-MB-to-what-is-unmapped-in-part", write_target, { UNMAP, BUF / 2, BUF } },
	{ "a-write-to-what-is-inaccessible", write_target, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-write-to-what-is-read-only", write_target, { READ_ONLY, PAGE, 3 * PAGE } },
	{ "a-write-to-what-is-cut-off", write_target, { CUT_OFF, PAGE, 3 * PAGE } },
	{ "a-receive-that-is-unmapped", receive, { UNMAP, 0, 100 } },
	{ "a-receive-of-1-MB-that-is-unmapped-in-part", receive, { UNMAP, BUF / 2, BUF } },
	{ "a-receive-that-is-inaccessible", receive, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-receive-that-is-read-only", receive, { READ_ONLY, PAGE, 3 * PAGE } },
	{ "a-receive-that-is-cut-off", receive, { CUT_OFF, PAGE, 3 * PAGE } },
	{ "a-send-of-what-is-unmapped", send_source, { UNMAP, 0, 100 } },
	{ "a-send-of-pages-one-of-which-is-unmapped", send_source, { UNMAP, 3 * PAGE, 5 * PAGE } },
	{ "a-send-of-1-MB-unmapped-in-part", send_source, { UNMAP, BUF / 2, BUF } },
	{ "a-send-of-what-is-inaccessible", send_source, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-send-of-what-is-cut-off", send_source, { CUT_OFF, PAGE, 3 * PAGE } },
	{ "a-write-of-what-is-unmapped", write_source, { UNMAP, 0, 100 } },
	{ "a-write-of-pages-one-of-which-is-unmapped", write_source, { UNMAP, 3 * PAGE, 5 * PAGE } },
	{ "a-write-of-1-MB-unmapped-in-part", write_source, { UNMAP, BUF / 2, BUF } },
	{ "a-write-of-1-MB-unmapped-at-its-end", write_source, { UNMAP, BUF - PAGE, BUF } },
	{ "a-write-of-what-is-inaccessible", write_source, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-write-of-what-is-cut-off", write_source, { CUT_OFF, PAGE, 3 * PAGE } },
	{ "earlier-data-arrives", behind_others, { UNMAP, PAGE, 3 * PAGE } },
	{ "a-read-of-what-is-unmapped", read_source, { UNMAP, 0, 100 } },
	{ "a-read-of-1-MB-unmapped-in-part", read_source, { UNMAP, BUF / 2, BUF } },
	{ "a-read-of-what-is-inaccessible", read_source, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-read-of-what-is-cut-off", read_source, { CUT_OFF, PAGE, 3 * PAGE } },
	{ "a-read-into-what-is-unmapped", read_sink, { UNMAP, 0, 100 } },
	{ "a-read-of-1-MB-into-what-is-unmapped-in-part", read_sink, { UNMAP, BUF / 2, BUF } },
	{ "a-read-into-what-is-inaccessible", read_sink, { NO_ACCESS, PAGE, 3 * PAGE } },
	{ "a-read-into-what-is-read-only", read_sink, { READ_ONLY, PAGE, 3 * PAGE } },
	{ "an-inline-source-may-go-after-posting", inline_source, { UNMAP, 0, 64 } },
	{ "sources-may-be-read-only", sources_that_are_read_only, { READ_ONLY, PAGE, 3 * PAGE } },
	{ "unmapped-while-it-is-written-from", write_source_races, {} },
	{ "unmapped-while-it-is-written-to", write_target_races, {} },
	{ "unmapped-while-it-is-read", read_source_races, {} },
	{ "unmapped-while-it-is-read-into", read_sink_races, {} },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* And others go on meanwhile and afterwards. */
static bool run_case(unsigned int i)
{
	bool ok;

	open_pair(&t);
	ok = cases[i].run(&cases[i].how) && goes_on(&calm);
	close_pair(&t);
	open_pair(&t);
	ok = goes_on(&t) && ok;
	close_pair(&t);
	return ok;
}

static bool is_wanted(const char *name, const char *only)
{
	return !only || !strcmp(name, only);
}

static int run_all(bool busy, const char *only)
{
	int n = 0, failed = 0;
	unsigned int i;
	bool ok;

	listen_as(&t, busy);
	listen_as(&calm, false);
	open_pair(&calm);
	for (i = 0; i < CASES; i++) {
		if (!is_wanted(cases[i].name, only))
			continue;
		ok = run_case(i);
		failed += !ok;
		printf("%sok %d - %s\n", ok ? "" : "not ", ++n, cases[i].name);
	}
	close_pair(&calm);
	rdma_destroy_id(t.s.listener);
	rdma_destroy_id(calm.s.listener);
	for (i = 0; i < CHILDREN; i++) {
		if (!is_wanted(children[i].name, only))
			continue;
		ok = run_child(i);
		failed += !ok;
		printf("%sok %d - %s\n", ok ? "" : "not ", ++n, children[i].name);
	}
	printf("1..%d\n", n);
	return failed || !n;
}

int main(int argc, char **argv)
{
	const char *child = NULL;
	bool busy = false;
	int opt;

	conn_program = "weft-unmap";
	self = "/proc/self/exe";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "bc:r:")) != -1)
		switch (opt) {
		case 'b':
			busy = true;
			break;
		case 'c':
			child = optarg;
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		default:
			optind = argc;
			break;
		}
	if (optind >= argc || argc - optind > 2 || rounds < 1) {
		fprintf(stderr, "weft-unmap [-b] [-r ROUNDS] ADDR [CASE]    ADDR: of a device of this machine\n");
		return 2;
	}
	addr = argv[optind];
	return child ? be_child(child) : run_all(busy, argv[optind + 1]);
}
