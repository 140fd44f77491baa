// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Under weft-run --control, whose fault rules a case replaces: completions that arrive at the latest
 * moment, and ports that go down for a time. TAP on stdout.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "pair.h"
#include "weft-control.h"

#define PORT		"7198"
#define LATEST_POLLS	1000		/* docs/faults.md, as the next two */
#define LATEST_MS	1000
#define LOOK_MS		20		/* a program that polls so rarely reaches the time first */
#define FLAP_MS		300
#define MOST		64		/* entries of a send queue, here */

static struct pair p;
static const char *host, *self;
static struct ibv_mr *all_rights;	/* of p.to */
static uint32_t number;			/* of the client's QP */

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Rules of the client's QP: "%u" is its number. */
static bool rules(const char *fmt)
{
	char request[256];
	int rv;

	snprintf(request, sizeof(request), fmt, number);
	rv = weft_control(getpid(), request, NULL, NULL);
	if (rv)
		printf("# %s: %d\n", request, rv);
	return !rv;
}

static bool post(struct conn *c, uint64_t id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p.from, .length = 8, .lkey = p.from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)p.to, .rkey = all_rights->rkey },
	}, *bad;

	if (c == &p.server)
		sge = (struct ibv_sge){ .addr = (uintptr_t)p.to, .length = 8, .lkey = p.to_mr->lkey };
	return !ibv_post_send(c->id->qp, &wr, &bad);
}

static bool post_receive(struct conn *c, uint64_t id, struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr + 64, .length = 64, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(c->id->qp, &wr, &bad);
}

/* The client's next completion has this number: polls without a pause, or each LOOK_MS. */
static bool polls_until(uint64_t id, int pause_ms, unsigned int *polls)
{
	long until = now_ms() + PAIR_TIMEOUT_MS;
	struct ibv_wc wc;
	int n;

	*polls = 0;
	while (!(n = ibv_poll_cq(p.client.cq, 1, &wc)) && now_ms() < until) {
		++*polls;
		if (pause_ms)
			usleep((unsigned int)pause_ms * 1000);
	}
	if (n == 1 && (wc.wr_id != id || wc.status))
		printf("# %lu: %s\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return n == 1 && wc.wr_id == id && wc.status == IBV_WC_SUCCESS;
}

/* ---- cases: the latest moment ---- */

static bool after_a_thousand_polls(void)
{
	unsigned int polls;
	long begun;

	if (!rules("faults\nsend_completion qpn %u -> latest\n") || !post(&p.client, 1, IBV_WR_RDMA_WRITE))
		return false;
	begun = now_ms();
	if (!polls_until(1, 0, &polls))
		return false;
	printf("# %u polls, %ld ms\n", polls, now_ms() - begun);
	return polls >= LATEST_POLLS && now_ms() - begun < LATEST_MS;
}

static bool within_a_second_of_rare_polls(void)
{
	unsigned int polls;
	long begun, ms;

	if (!rules("faults\nsend_completion qpn %u -> latest\n") || !post(&p.client, 1, IBV_WR_RDMA_WRITE))
		return false;
	begun = now_ms();
	if (!polls_until(1, LOOK_MS, &polls))
		return false;
	ms = now_ms() - begun;
	printf("# %u polls, %ld ms\n", polls, ms);
	return polls < LATEST_POLLS && ms >= LATEST_MS - LOOK_MS && ms < 3 * LATEST_MS;
}

static bool a_sleeper_wakes(void)
{
	struct pollfd fd = { .fd = p.client.comp->fd, .events = POLLIN };
	unsigned int polls;
	long begun = now_ms(), ms;
	struct ibv_cq *cq;
	void *arg;

	if (!rules("faults\nsend_completion qpn %u -> latest\n") || ibv_req_notify_cq(p.client.cq, 0) ||
	    !post(&p.client, 1, IBV_WR_RDMA_WRITE) || poll(&fd, 1, PAIR_TIMEOUT_MS) != 1 ||
	    ibv_get_cq_event(p.client.comp, &cq, &arg))
		return false;
	ibv_ack_cq_events(cq, 1);
	ms = now_ms() - begun;
	printf("# %ld ms\n", ms);
	return ms >= LATEST_MS - 1 && ms < 3 * LATEST_MS && polls_until(1, 0, &polls) && !polls;
}

/* The answer is there, and the Send's own completion is not: legal, and often forgotten. */
static bool a_receive_passes(void)
{
	unsigned int polls;

	if (!rules("faults\nsend_completion qpn %u -> latest\n") ||
	    !post_receive(&p.client, 7, p.from_mr) || !post_receive(&p.server, 8, p.to_mr) ||
	    !post(&p.client, 1, IBV_WR_SEND) || !post(&p.server, 2, IBV_WR_SEND))
		return false;
	return polls_until(7, 1, &polls) && polls_until(1, 1, &polls);
}

/* Those after it of its queue wait, and arrive with it. */
static bool a_queue_keeps_its_order(void)
{
	unsigned int polls, n;

	if (!rules("faults\nsend_completion qpn %u nth 2 -> latest\n"))
		return false;
	for (n = 1; n <= 4; n++)
		if (!post(&p.client, n, IBV_WR_RDMA_WRITE))
			return false;
	if (!polls_until(1, 1, &polls) || !polls_until(2, 0, &polls) || polls < LATEST_POLLS / 2)
		return false;
	return polls_until(3, 0, &polls) && !polls && polls_until(4, 0, &polls) && !polls;
}

static unsigned int send_queue(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(p.client.id->qp, &attr, IBV_QP_CAP, &init) ? 0 : attr.cap.max_send_wr;
}

/* A program that keeps account of its queue posts nothing more: it is not kept waiting. */
static bool a_full_queue_is_not_held(void)
{
	unsigned int n = send_queue(), i;
	struct ibv_wc wc[MOST];
	long begun = now_ms();
	int got = 0;

	if (n < 2 || n > MOST || !rules("faults\nsend_completion qpn %u -> latest\n"))
		return false;
	for (i = 1; i < n; i++)
		if (!post(&p.client, i, IBV_WR_RDMA_WRITE))
			return false;
	if (ibv_poll_cq(p.client.cq, 1, wc) || !post(&p.client, n, IBV_WR_RDMA_WRITE))
		return false;
	while (got < (int)n && now_ms() - begun < LATEST_MS / 2) {
		usleep(LOOK_MS * 1000);
		got += ibv_poll_cq(p.client.cq, (int)n - got, wc + got);
	}
	printf("# %d of %u\n", got, n);
	for (i = 0; i < n && got == (int)n; i++)
		if (wc[i].wr_id != i + 1 || wc[i].status)
			return false;
	return got == (int)n;
}

static bool the_last_ones_are_dropped(void)
{
	if (!rules("faults\nsend_completion qpn %u -> latest\n") || !post(&p.client, 1, IBV_WR_RDMA_WRITE))
		return false;
	rdma_destroy_qp(p.client.id);
	usleep(2 * LATEST_MS * 1000);
	return !ibv_poll_cq(p.client.cq, 1, &(struct ibv_wc){ 0 });
}

/* ---- cases: a delay ---- */

#define ROUNDS	21

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int compare_times(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static double median_of(double times[ROUNDS])
{
	qsort(times, ROUNDS, sizeof(times[0]), compare_times);
	return times[ROUNDS / 2];
}

/* The request of the Read is late; its answer is not. Returns how long that takes, in us. */
static double round_trip(void)
{
	double begun = now_us();
	struct ibv_wc wc;

	/* Asleep: a thread that polls may take the progress thread's CPU. */
	if (!post(&p.client, 1, IBV_WR_RDMA_READ) ||
	    conn_poll(&p.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 || wc.status != IBV_WC_SUCCESS)
		fail("no Read");
	return now_us() - begun;
}

/* How late this machine wakes a thread that sleeps so long, in us. */
static double oversleep(unsigned int us)
{
	const struct timespec ts = { .tv_nsec = us * 1000l };
	double begun = now_us();

	nanosleep(&ts, NULL);
	return now_us() - begun - us;
}

/* By turns, so that both meet the same load. */
static void measure_delay(unsigned int us, double *trip, double *late)
{
	double trips[ROUNDS], lates[ROUNDS];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		trips[i] = round_trip();
		lates[i] = oversleep(us);
	}
	*trip = median_of(trips);
	*late = median_of(lates);
}

#define TRIES	30	/* a busy machine adds what is not weft's */

/*
 * The floor is how late a thread of this program wakes. Two have to: the progress thread for the
 * time, and this one for the answer.
 */
static bool is_accurate(unsigned int us, double none)
{
	double trip, late, off;
	int i;

	for (i = 0; i < TRIES; i++) {
		measure_delay(us, &trip, &late);
		off = trip - none - us;
		printf("# %u us: %.0f us; without it %.0f us; a sleep is %.0f us too long\n", us, trip,
		       none, late);
		if (trip < us)
			return false;
		if (off < 0.05 * us || off < 2 * late + 50)
			return true;
	}
	return false;
}

static bool delays_are_accurate(void)
{
	static const unsigned int delays[] = { 20000, 5000, 1000, 500 };
	double none, late;
	char request[64];
	unsigned int i;

	measure_delay(0, &none, &late);
	for (i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		snprintf(request, sizeof(request), "delay %u %uus", number, delays[i]);
		if (!rules(request) || !is_accurate(delays[i], none))
			return false;
	}
	return true;
}

/* ---- cases: loss ---- */

#define REPEAT_US	200000
#define TRIPS		40

/* Of so many Reads: how many requests were late by a repetition. */
static int late_trips(const char *loss)
{
	char request[64];
	int i, n = 0;

	snprintf(request, sizeof(request), "loss %%u %s", loss);
	if (!rules(request))
		return -1;
	for (i = 0; i < TRIPS; i++)
		n += round_trip() >= REPEAT_US;
	printf("# loss %s: %d of %d Reads were late\n", loss, n, TRIPS);
	return n;
}

/* A quarter is 10 of 40, and three deviations are 8. */
static bool lost_octets_are_late(void)
{
	int n = late_trips("25%%");

	return n >= 2 && n <= 18 && late_trips("100%%") == TRIPS && pair_carries_data(&p) &&
	       late_trips("off") < TRIPS / 4 && pair_carries_data(&p);
}

/* ---- cases: a delay, and memory that vanishes ---- */

#define LARGE	(64u << 20)	/* more than may be under way */

static bool write_from(void *buf, struct ibv_mr *mr, uint32_t len, struct ibv_mr *to)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = len, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to->addr, .rkey = to->rkey },
	}, *bad;

	return !ibv_post_send(p.client.id->qp, &wr, &bad);
}

static struct ibv_mr *map_memory(struct conn *c, size_t len, int fill)
{
	void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		fail("no memory");
	memset(m, fill, len);
	return conn_reg(c, m, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

/* What has been posted is on its way: it arrives whole. */
static bool what_is_under_way_arrives(void)
{
	struct ibv_mr *from = map_memory(&p.client, PAIR_BUF, 7);
	struct ibv_wc wc;

	if (!rules("delay %u 200ms") || !write_from(from->addr, from, PAIR_BUF, all_rights) ||
	    munmap(from->addr, PAIR_BUF) || p.to[0] == 7)
		return false;
	if (conn_poll(&p.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 || wc.status != IBV_WC_SUCCESS)
		return false;
	usleep(FLAP_MS * 1000);
	return p.to[0] == 7 && p.to[PAIR_BUF - 1] == 7 && rules("delay %u off") &&
	       pair_carries_data(&p);
}

/* How many octets have arrived at @to, and the rest is as it was; LARGE: it is not. */
static size_t arrived_at(const struct ibv_mr *to, size_t len)
{
	const uint8_t *octets = to->addr;
	size_t n = 0, rest;

	while (n < len && octets[n] == 7)
		n++;
	for (rest = n; rest < len; rest++)
		if (octets[rest])
			return LARGE;
	return n;
}

/* Half of a delayed copy cannot be read: none of it is sent. */
static bool half_a_copy_breaks_off(void)
{
	struct ibv_mr *from = map_memory(&p.client, PAIR_BUF, 7), *to = map_memory(&p.server, PAIR_BUF, 0);
	struct ibv_wc wc;
	size_t n;

	if (!rules("delay %u 100ms") || munmap((uint8_t *)from->addr + PAIR_BUF / 2, PAIR_BUF / 2) ||
	    !write_from(from->addr, from, PAIR_BUF, to) ||
	    conn_poll(&p.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 ||
	    conn_next_event(p.server.events, PAIR_TIMEOUT_MS) != RDMA_CM_EVENT_DISCONNECTED)
		return false;
	n = arrived_at(to, PAIR_BUF);
	printf("# %s after %zu octets\n", ibv_wc_status_str(wc.status), n);
	return wc.status != IBV_WC_SUCCESS && n <= PAIR_BUF / 2;
}

/* What waits for room is not: the connection breaks off, and what arrived before is right. */
static bool what_waits_breaks_off(void)
{
	struct ibv_mr *from = map_memory(&p.client, LARGE, 7), *to = map_memory(&p.server, LARGE, 0);
	struct ibv_wc wc;
	size_t n;

	if (!rules("delay %u 200ms") || !write_from(from->addr, from, LARGE, to) ||
	    munmap(from->addr, LARGE))
		return false;
	if (conn_poll(&p.client, &wc, 1, PAIR_TIMEOUT_MS) != 1 ||
	    conn_next_event(p.server.events, PAIR_TIMEOUT_MS) != RDMA_CM_EVENT_DISCONNECTED)
		return false;
	n = arrived_at(to, LARGE);
	printf("# %s after %zu octets\n", ibv_wc_status_str(wc.status), n);
	return wc.status != IBV_WC_SUCCESS && n < LARGE;
}

/* ---- cases: a delay, and fork() or exit() ---- */

#define FORK_PORT	"7197"
#define WORDS		2
#define UNDER_WAY_MS	300
#define WORD_LEN	(1u << 20)	/* of a message, which is full of it */

enum { ARRIVED, CANNOT, BROKE_OFF, WRONG, TWICE };	/* exit statuses */

/* A program of its own, for librdmacm's contexts are the parent's in a child. */
static pid_t run_self(const char *role, int out)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	dup2(out, STDOUT_FILENO);
	execl(self, self, host, role, (char *)NULL);
	_exit(127);
}

static bool is_word(const uint64_t *words, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < WORD_LEN / sizeof(*words); i++)
		if (words[i] != value)
			return false;
	return true;
}

/* Receives words, which count from 1. Writes an octet once it listens. @stays: the sender does. */
static int receive_words(bool stays)
{
	struct conn c = { .timeout_ms = PAIR_TIMEOUT_MS };
	static uint64_t words[WORDS][WORD_LEN / sizeof(uint64_t)];
	struct ibv_recv_wr *bad;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint64_t i;

	conn_listen(&c, host, FORK_PORT);
	if (write(STDOUT_FILENO, "", 1) != 1)
		return CANNOT;
	conn_await_request(&c);
	conn_make_qp(&c, 1, WORDS, 0);
	mr = conn_reg(&c, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < WORDS; i++) {
		struct ibv_sge sge = { (uintptr_t)words[i], WORD_LEN, mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		if (ibv_post_recv(c.id->qp, &wr, &bad))
			return CANNOT;
	}
	conn_accept(&c, NULL, 0);
	for (i = 0; i < WORDS; i++)
		if (conn_poll(&c, &wc, 1, PAIR_TIMEOUT_MS) != 1 || wc.status != IBV_WC_SUCCESS)
			return BROKE_OFF;
		else if (!is_word(words[i], i + 1))
			return WRONG;
	/* What arrives twice ends the connection. */
	return stays && conn_next_event(c.events, UNDER_WAY_MS) != -1 ? TWICE : ARRIVED;
}

struct sender {
	struct conn c;
	struct ibv_mr *mr;
	uint64_t word[WORDS][WORD_LEN / sizeof(uint64_t)];
};

static struct sender sender;

/* Complete once the device has taken it. */
static bool send_word(unsigned int value)
{
	uint64_t *word = sender.word[value - 1];
	struct ibv_sge sge = { (uintptr_t)word, WORD_LEN, sender.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < WORD_LEN / sizeof(*word); i++)
		word[i] = value;
	return !ibv_post_send(sender.c.id->qp, &wr, &bad) &&
	       conn_poll(&sender.c, &wc, 1, PAIR_TIMEOUT_MS) == 1 && wc.status == IBV_WC_SUCCESS;
}

/* Connects to receive_words(), and has the first word under way. */
static bool send_first_word(void)
{
	sender.c.timeout_ms = PAIR_TIMEOUT_MS;
	conn_resolve(&sender.c, host, FORK_PORT);
	conn_make_qp(&sender.c, WORDS, 1, 0);
	sender.mr = conn_reg(&sender.c, sender.word, sizeof(sender.word), 0);
	conn_connect(&sender.c, NULL, 0);
	number = sender.c.id->qp->qp_num;
	return rules("delay %u 300ms") && send_word(1);
}

/* Sends both words, and ends. */
static int send_and_exit(void)
{
	return send_first_word() && send_word(2) ? ARRIVED : CANNOT;
}

/* Ends at once; a child that has its connection sends the second word, and writes how that went. */
static int send_and_leave(bool by_exit)
{
	struct ibv_device_attr device;
	char octet;

	if (!send_first_word())
		return CANNOT;
	switch (fork()) {
	case 0:
		/* It serves weft-ctl once it has used the device; without a delay it could be first. */
		if (ibv_query_device(sender.c.id->verbs, &device) || !rules("delay %u off"))
			exit(CANNOT);
		octet = send_word(2) ? ARRIVED : BROKE_OFF;
		exit(write(STDOUT_FILENO, &octet, 1) == 1 ? 0 : CANNOT);
	case -1:
		return CANNOT;
	}
	if (!by_exit)
		raise(SIGKILL);
	return ARRIVED;
}

enum role { RECEIVE, RECEIVE_FROM_ONE_THAT_STAYS, SEND_AND_EXIT, LEAVE, DIE, N_ROLES };

static const char *const roles[N_ROLES] = { "receive", "receive-and-stay", "send", "leave", "die" };

static int play(enum role role)
{
	if (role == SEND_AND_EXIT)
		return send_and_exit();
	if (role == LEAVE || role == DIE)
		return send_and_leave(role == LEAVE);
	return receive_words(role == RECEIVE_FROM_ONE_THAT_STAYS);
}

/* A receiver that listens; its pipe ends with it. */
static pid_t start_receiver(enum role role, int fds[2])
{
	pid_t pid;
	char none;

	if (pipe(fds))
		return -1;
	pid = run_self(roles[role], fds[1]);
	close(fds[1]);
	return pid > 0 && read(fds[0], &none, 1) == 1 ? pid : -1;
}

static int status_of(pid_t pid)
{
	int status = 1;

	if (pid <= 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (status)
		printf("# a process ended with %x\n", status);
	return status;
}

static bool ends_well(pid_t pid)
{
	return !status_of(pid);
}

/*
 * The first word is under way at the fork, and the child takes over: the parent lives on, and would
 * send it, too.
 */
static bool a_fork_sends_it_once(void)
{
	pid_t server, child;
	int fds[2];
	char none;

	server = start_receiver(RECEIVE_FROM_ONE_THAT_STAYS, fds);
	if (server < 0 || !send_first_word())
		return false;
	child = fork();
	/* It stays until the server has ended. */
	if (!child)
		_exit(!send_word(2) || read(fds[0], &none, 1) > 0);
	return ends_well(child) & ends_well(server);
}

/* A program that runs others while it talks: the delay is not shorter, and nothing is lost. */
static bool a_fork_changes_no_delay(void)
{
	unsigned int polls;
	long begun, ms;
	pid_t child;

	if (!rules("delay %u 300ms"))
		return false;
	memset(p.from, 7, PAIR_BUF);
	begun = now_ms();
	if (!post(&p.client, 1, IBV_WR_RDMA_WRITE))
		return false;
	child = fork();
	if (!child)
		_exit(0);
	while (*(volatile uint8_t *)p.to != 7 && now_ms() - begun < PAIR_TIMEOUT_MS)
		usleep(1000);
	ms = now_ms() - begun;
	printf("# %ld ms\n", ms);
	return ends_well(child) && ms >= UNDER_WAY_MS - 1 && ms < PAIR_TIMEOUT_MS &&
	       polls_until(1, 1, &polls) && rules("delay %u off") && pair_carries_data(&p);
}

static bool what_is_under_way_at_exit_arrives(void)
{
	int fds[2], out[2];
	pid_t server = start_receiver(RECEIVE, fds);

	return server > 0 && !pipe(out) && ends_well(run_self(roles[SEND_AND_EXIT], out[1])) && ends_well(server);
}

/* How the second word of a child went whose parent has ended in this way; -1: not at all. */
static int send_after(enum role role, pid_t *server, bool *by_exit)
{
	int fds[2], out[2];
	char octet = -1;

	*server = start_receiver(RECEIVE, fds);
	if (*server < 0 || pipe(out))
		return -1;
	*by_exit = ends_well(run_self(roles[role], out[1]));
	close(out[1]);
	return read(out[0], &octet, 1) == 1 ? octet : -1;
}

static bool a_child_sends_after_a_parent_that_exits(void)
{
	bool by_exit;
	pid_t server;

	return send_after(LEAVE, &server, &by_exit) == ARRIVED && by_exit && ends_well(server);
}

/* The octets between are lost: what the child sends must not arrive in their place. */
static bool a_childs_connection_ends_if_its_parent_was_killed(void)
{
	bool by_exit;
	pid_t server;

	return send_after(DIE, &server, &by_exit) == BROKE_OFF && !by_exit &&
	       status_of(server) == BROKE_OFF << 8;
}

/* ---- cases: a port ---- */

static bool has_event(enum ibv_event_type type)
{
	struct pollfd fd = { .fd = p.client.id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	if (poll(&fd, 1, PAIR_TIMEOUT_MS) != 1 || ibv_get_async_event(p.client.id->verbs, &e))
		return false;
	ibv_ack_async_event(&e);
	return e.event_type == type;
}

static bool port_is(struct ibv_context *ctx, enum ibv_port_state state)
{
	struct ibv_port_attr attr;

	return ctx && !ibv_query_port(ctx, 1, &attr) && attr.state == state;
}

static bool the_second_write_is_late(void)
{
	unsigned int polls;
	long begun;

	if (!post(&p.client, 1, IBV_WR_RDMA_WRITE) || !polls_until(1, 0, &polls))
		return false;
	begun = now_ms();
	if (!post(&p.client, 2, IBV_WR_RDMA_WRITE) || !port_is(p.client.id->verbs, IBV_PORT_DOWN) ||
	    !polls_until(2, 1, &polls))
		return false;
	printf("# %ld ms\n", now_ms() - begun);
	return now_ms() - begun >= FLAP_MS && now_ms() - begun < 10 * FLAP_MS;
}

static bool a_port_flaps_at_a_post(void)
{
	return rules("faults\npost_send qpn %u nth 2 -> port_down 300ms\n") &&
	       the_second_write_is_late() && has_event(IBV_EVENT_PORT_ERR) &&
	       has_event(IBV_EVENT_PORT_ACTIVE) && port_is(p.client.id->verbs, IBV_PORT_ACTIVE) &&
	       pair_carries_data(&p);
}

static bool registers(void)
{
	struct ibv_mr *mr = ibv_reg_mr(p.client.pd, p.from, 8, 0);

	return mr && !ibv_dereg_mr(mr);
}

/* The longer of two times counts. */
static bool a_port_flaps_at_a_call(void)
{
	long begun = now_ms();

	if (!rules("faults\nreg_mr nth 1 -> port_down 300ms\nreg_mr nth 2 -> port_down 50ms\n") ||
	    !registers() || !registers() || !port_is(p.client.id->verbs, IBV_PORT_DOWN) ||
	    !has_event(IBV_EVENT_PORT_ERR) || !has_event(IBV_EVENT_PORT_ACTIVE))
		return false;
	printf("# %ld ms\n", now_ms() - begun);
	return now_ms() - begun >= FLAP_MS && pair_carries_data(&p);
}

static bool a_port_flaps_after_a_time(void)
{
	long begun = now_ms();

	if (!rules("faults\nreg_mr after 200ms times 1 -> port_down 50ms\n"))
		return false;
	while (port_is(p.client.id->verbs, IBV_PORT_ACTIVE) && now_ms() - begun < PAIR_TIMEOUT_MS)
		if (!registers())
			return false;
	printf("# %ld ms\n", now_ms() - begun);
	return now_ms() - begun >= 200 && has_event(IBV_EVENT_PORT_ERR) &&
	       has_event(IBV_EVENT_PORT_ACTIVE) && pair_carries_data(&p);
}

static int port_in_child(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	return list && port_is(ibv_open_device(*list), IBV_PORT_ACTIVE) ? 0 : 1;
}

/* A child with a device of its own would never see the parent's time run out. */
static bool a_childs_port_comes_up(void)
{
	int status = 1;
	pid_t pid;

	if (!rules("faults\nreg_mr nth 1 -> port_down 300ms\n") || !registers())
		return false;
	pid = fork();
	if (!pid) {
		alarm(5);
		_exit(port_in_child());
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status &&
	       has_event(IBV_EVENT_PORT_ERR) && has_event(IBV_EVENT_PORT_ACTIVE) &&
	       pair_carries_data(&p);
}

/* ---- all ---- */

static void open_pair(const void *setting)
{
	(void)setting;
	memset(&p, 0, sizeof(p));
	p.client.timeout_ms = p.server.timeout_ms = PAIR_TIMEOUT_MS;
	pair_open(&p, host, PORT);
	all_rights = conn_reg(&p.server, p.to, PAIR_BUF, IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	number = p.client.id->qp->qp_num;
}

static void close_pair(void)
{
	rules("faults\n");
	conn_end(&p.client);
	conn_close(&p.server);
	rdma_destroy_id(p.server.listener);
	rdma_destroy_event_channel(p.server.events);
}

static const struct a_case list[] = {
	{ "the-latest-completion-arrives-after-a-thousand-polls", after_a_thousand_polls, NULL },
	{ "the-latest-completion-arrives-within-a-second", within_a_second_of_rare_polls, NULL },
	{ "the-latest-completion-wakes-a-sleeper", a_sleeper_wakes, NULL },
	{ "a-receive-passes-the-latest-completion-of-a-send", a_receive_passes, NULL },
	{ "the-latest-completion-holds-up-its-queue", a_queue_keeps_its_order, NULL },
	{ "a-full-queues-latest-completions-arrive", a_full_queue_is_not_held, NULL },
	{ "the-latest-completions-of-a-destroyed-qp-are-dropped", the_last_ones_are_dropped, NULL },
	{ "the-median-of-a-delay-is-within-5-percent-or-the-timers-floor", delays_are_accurate, NULL },
	{ "lost-octets-are-late-and-arrive", lost_octets_are_late, NULL },
	{ "delayed-octets-arrive-though-their-memory-has-gone", what_is_under_way_arrives, NULL },
	{ "a-copy-for-later-breaks-off-if-half-its-memory-has-gone", half_a_copy_breaks_off, NULL },
	{ "octets-that-wait-for-a-delay-break-off-if-their-memory-goes", what_waits_breaks_off, NULL },
	{ "what-is-under-way-at-a-fork-arrives-once", a_fork_sends_it_once, NULL },
	{ "a-fork-changes-no-delay", a_fork_changes_no_delay, NULL },
	{ "what-is-under-way-at-exit-arrives", what_is_under_way_at_exit_arrives, NULL },
	{ "a-child-sends-after-a-parent-that-exits", a_child_sends_after_a_parent_that_exits, NULL },
	{ "a-childs-connection-ends-if-its-parent-was-killed",
	  a_childs_connection_ends_if_its_parent_was_killed, NULL },
	{ "a-port-flaps-at-a-post", a_port_flaps_at_a_post, NULL },
	{ "a-port-is-down-for-the-longer-of-two-times", a_port_flaps_at_a_call, NULL },
	{ "a-port-flaps-after-a-time", a_port_flaps_after_a_time, NULL },
	{ "a-childs-port-comes-up", a_childs_port_comes_up, NULL },
};

int main(int argc, char **argv)
{
	static const struct cases all = CASES(open_pair, close_pair, list);
	unsigned int i;

	host = cases_begin(argc, argv, "weft-moments");
	self = argv[0];
	for (i = 0; argc == 3 && i < N_ROLES; i++)
		if (!strcmp(argv[2], roles[i]))
			return play(i);
	cases_run(&all, "");
	return cases_end();
}
