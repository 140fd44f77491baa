// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rates over verbs. All connections share one CQ, one send buffer and one receive buffer, as a
 * benchmark over sockets would.
 *
 * iWARP has no "receiver not ready": a Send without a posted receive ends the connection. So the
 * client has at most `depth` unacknowledged operations, and the server acknowledges each chunk of
 * them with an empty Send. Writes are not reported to the receiver: an empty Send after each chunk
 * is. The server's report is the only message to the client that has octets. Reads need none of
 * this; the client counts what it has read.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "rate.h"

#define BATCH	64		/* posted between two looks at the CQ, and taken from it */

/*
 * The provider of siw takes a ring that lies at 0x90000 of the device file for an
 * error (SIW_INVAL_UOBJ_KEY), and the rings of many QPs come by there. This CQ,
 * which is first, lies there itself.
 */
#define MIN_SHARED_CQ	20000

/* Where the peer may write, or read. */
struct target {
	uint64_t addr;		/* big-endian */
	uint32_t rkey;
	uint32_t pad;
};

/* The client's private data; a server answers with its target alone. */
struct request {
	struct hello hello;
	uint32_t pad;
	struct target target;
};

struct link {
	struct conn c;
	struct target peer;
	uint64_t posted;	/* operations */
	uint64_t done, answered;	/* chunks of them: completed here, and by the peer */
	uint32_t owed;		/* server: answers not yet posted */
	uint32_t used;		/* server: places of the send queue */
	uint32_t n_received;
	bool queued;
};

static struct {
	struct run run;
	bool server;
	struct link *links;
	struct conn *lead;	/* the first link's: the CQ is its */
	uint8_t *src, *dst, *in;	/* in: where messages go */
	struct report *report;	/* sent from, or received into */
	struct ibv_mr *src_mr, *dst_mr, *in_mr, *report_mr;
	uint32_t sends, recvs;	/* lengths of the queues */

	uint32_t *turns;	/* client: links that may post, first in first out */
	uint32_t first_turn, n_turns;

	struct meter meter;
	uint64_t bytes;
	bool reported;		/* the peer may go, and take its connections down */
} r;

/* ---- setting up ---- */

static void *buffer(size_t len, int access, struct ibv_mr **mr)
{
	void *p;

	if (posix_memalign(&p, 4096, len))
		fail("no memory");
	memset(p, 0, len);
	*mr = conn_reg(r.lead, p, len, access);
	return p;
}

/*
 * The receives of a client are for answers and the report, its sends are
 * operations and the empty Sends after them; the server has it the other way
 * round.
 */
static void size_queues(void)
{
	uint32_t chunks = r.run.depth / r.run.chunk;

	r.sends = r.server ? chunks + 2 : r.run.depth + chunks + 1;
	r.recvs = r.server && r.run.job == JOB_SEND ? r.run.depth : chunks + 2;
	if (r.run.job >= JOB_PING_SEND) {
		r.sends = 64;
		r.recvs = 4;
	}
	r.lead->cq_len = r.run.connections * (r.sends + r.recvs);
	/* All that idle connections have is their queues; nothing completes. */
	if (r.run.job == JOB_IDLE || r.run.job == JOB_UNCONNECTED) {
		r.sends = r.recvs = r.run.depth;
		r.lead->cq_len = 0;
	}
	if (r.run.connections > 1 && r.lead->cq_len < MIN_SHARED_CQ)
		r.lead->cq_len = MIN_SHARED_CQ;
	/* Whoever is not asked for anything need not spin. */
	r.lead->busy_poll = !r.run.sleep && !(r.server && r.run.job == JOB_READ);
}

static void make_buffers(void)
{
	r.src = buffer(r.run.size, IBV_ACCESS_LOCAL_WRITE, &r.src_mr);
	/* iWARP: what a Read brings is written by the peer. */
	r.dst = buffer(r.run.size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		       IBV_ACCESS_REMOTE_READ, &r.dst_mr);
	r.report = buffer(sizeof(*r.report), IBV_ACCESS_LOCAL_WRITE, &r.report_mr);
	r.in = r.dst;
	r.in_mr = r.dst_mr;
	if (!r.server && r.run.job <= JOB_READ) {
		r.in = (uint8_t *)r.report;
		r.in_mr = r.report_mr;
	}
}

static uint64_t wr_id(const struct link *l, bool recv)
{
	return (uint64_t)(l - r.links) << 1 | recv;
}

static void post_recv(struct link *l)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r.in, .length = r.in_mr->length,
			       .lkey = r.in_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(l, true), .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(l->c.id->qp, &wr, &bad);

	if (err && !r.reported)
		fail("ibv_post_recv: %s", strerror(err));
}

static void post(struct link *l, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(l->c.id->qp, wr, &bad);

	if (err && !r.reported)
		fail("ibv_post_send: %s", strerror(err));
}

/* With a request to accept, or an address to call; the lead is the first. */
static void make_queues(struct link *l)
{
	uint32_t i;

	conn_make_qp(&l->c, r.sends, r.recvs, r.run.size <= 64 ? r.run.size : 0);
	if (&l->c == r.lead)
		make_buffers();
	if (r.run.job <= JOB_PING_WRITE)
		for (i = 0; i < r.recvs; i++)
			post_recv(l);
}

static struct target own_target(void)
{
	return (struct target){ .addr = htobe64((uintptr_t)r.dst),
				.rkey = htobe32(r.dst_mr->rkey) };
}

static void accept_link(struct link *l)
{
	const struct request *q = (const void *)l->c.peer;
	struct target t;

	make_queues(l);
	l->peer = q->target;
	t = own_target();
	conn_accept(&l->c, &t, sizeof(t));
}

static void call_link(struct link *l, enum job job)
{
	struct run run = r.run;
	struct request q;

	run.job = job;
	q = (struct request){ .hello = hello_of(&run), .target = own_target() };
	conn_connect(&l->c, &q, sizeof(q));
	memcpy(&l->peer, l->c.peer, sizeof(l->peer));
}

static void queues_alone(struct link *l, const char *host, const char *port)
{
	conn_resolve(&l->c, host, port);
	make_queues(l);
}

static void connect_link(struct link *l, enum job job, const char *host, const char *port)
{
	queues_alone(l, host, port);
	call_link(l, job);
}

static void make_links(void)
{
	r.links = calloc(r.run.connections, sizeof(*r.links));
	r.turns = calloc(r.run.connections, sizeof(*r.turns));
	if (!r.links || !r.turns)
		fail("no memory");
	r.lead = &r.links[0].c;
}

static void close_links(void)
{
	uint32_t i = r.run.connections;

	/* The first last: it has what the others share. */
	while (i--)
		conn_close(&r.links[i].c);
	free(r.links);
	free(r.turns);
	free(r.src);
	free(r.dst);
	free(r.report);
}

/* ---- client: operations ---- */

static bool may_post(const struct link *l)
{
	uint64_t chunks = l->done < l->answered ? l->done : l->answered;

	return l->posted < chunks * r.run.chunk + r.run.depth;
}

static void queue_turn(struct link *l)
{
	if (l->queued || !may_post(l))
		return;
	l->queued = true;
	r.turns[(r.first_turn + r.n_turns++) % r.run.connections] = l - r.links;
}

static struct link *take_turn(void)
{
	struct link *l = &r.links[r.turns[r.first_turn]];

	r.first_turn = (r.first_turn + 1) % r.run.connections;
	r.n_turns--;
	l->queued = false;
	return l;
}

static void post_operation(struct link *l)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[JOB_SEND] = IBV_WR_SEND, [JOB_WRITE] = IBV_WR_RDMA_WRITE,
		[JOB_READ] = IBV_WR_RDMA_READ,
	};
	bool read = r.run.job == JOB_READ, last = ++l->posted % r.run.chunk == 0;
	struct ibv_sge sge = { .addr = (uintptr_t)(read ? r.dst : r.src), .length = r.run.size,
			       .lkey = read ? r.dst_mr->lkey : r.src_mr->lkey };
	struct ibv_send_wr marker = { .wr_id = wr_id(l, false), .opcode = IBV_WR_SEND,
				      .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr = { .wr_id = wr_id(l, false), .sg_list = &sge, .num_sge = 1,
				  .opcode = opcodes[r.run.job] };

	wr.wr.rdma.remote_addr = be64toh(l->peer.addr);
	wr.wr.rdma.rkey = be32toh(l->peer.rkey);
	if (!read && r.run.size <= l->c.max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	if (last && r.run.job == JOB_WRITE)
		wr.next = &marker;
	else if (last)
		wr.send_flags |= IBV_SEND_SIGNALED;
	post(l, &wr);
}

static void post_batch(void)
{
	struct link *l;
	int i;

	for (i = 0; i < BATCH && r.n_turns; i++) {
		l = take_turn();
		post_operation(l);
		queue_turn(l);
	}
}

static void client_completion(struct link *l, bool recv, uint32_t len)
{
	if (recv && len) {
		r.reported = true;
	} else if (recv) {
		l->answered++;
		post_recv(l);
	} else {
		l->done++;
		if (r.run.job == JOB_READ) {
			l->answered++;
			r.bytes += (uint64_t)r.run.chunk * r.run.size;
		}
	}
	queue_turn(l);
}

/* ---- server: answers ---- */

/* One place of the queue is kept for the report. */
static void answer(struct link *l)
{
	struct ibv_send_wr wr = { .wr_id = wr_id(l, false), .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	for (; l->owed && l->used < r.sends - 1; l->owed--) {
		l->used++;
		post(l, &wr);
	}
}

static void server_completion(struct link *l, bool recv, uint32_t len)
{
	if (recv) {
		r.bytes += r.run.job == JOB_SEND ? len : (uint64_t)r.run.chunk * r.run.size;
		post_recv(l);
		if (r.run.job == JOB_WRITE || ++l->n_received % r.run.chunk == 0)
			l->owed++;
	} else {
		l->used--;
	}
	/* Nothing may follow the report. */
	if (!r.reported)
		answer(l);
}

static void send_report(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r.report, .length = sizeof(*r.report),
			       .lkey = r.report_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	*r.report = report_of(&r.meter.count);
	r.reported = true;
	r.links[0].used++;
	post(&r.links[0], &wr);
}

/* ---- both ---- */

static void take_completion(const struct ibv_wc *wc)
{
	struct link *l = &r.links[wc->wr_id >> 1];
	bool recv = wc->wr_id & 1;

	if (wc->status != IBV_WC_SUCCESS) {
		/* The client leaves in the middle, once it knows enough. */
		if (r.reported)
			return;
		fail("completion of connection %u: %s (%s, vendor error %#x)",
		     (unsigned int)(l - r.links), ibv_wc_status_str(wc->status),
		     recv ? "receive" : "send", wc->vendor_err);
	}
	if (r.server)
		server_completion(l, recv, wc->byte_len);
	else
		client_completion(l, recv, wc->byte_len);
}

/* What there is, else what comes in a while; false if that was nothing. */
static bool take_batch(bool wait)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(r.lead->cq, BATCH, wc), i;

	if (n < 0)
		fail("ibv_poll_cq: %d", n);
	if (!n && wait)
		n = conn_poll(r.lead, wc, BATCH, 100);
	for (i = 0; i < n; i++)
		take_completion(&wc[i]);
	return n;
}

/* Looks at the clock, but not after each few octets. True when the window is over. */
static bool window_is_over(bool idle)
{
	static uint32_t octets;
	static int64_t alive;

	if (!idle) {
		alive = 0;
		octets += r.run.size > 1024 ? r.run.size : 1024;
		if (octets < 65536)
			return false;
		octets = 0;
		return meter_look(&r.meter, r.bytes);
	}
	if (!alive)
		alive = now_ns();
	else if (now_ns() - alive > PATIENCE_MS * 1000000LL && !(r.server && r.run.job == JOB_READ))
		fail("no progress for %d ms", PATIENCE_MS);
	return meter_look(&r.meter, r.bytes);
}

static void check_peer(void)
{
	if (r.lead->gone)
		fail("the peer has gone");
}

/* The reader has its own count, and still waits for the server's report. */
static void load(void)
{
	bool some, over = false;
	uint32_t i;

	meter_start(&r.meter, r.run.tenths);
	for (i = 0; i < r.run.connections; i++)
		queue_turn(&r.links[i]);
	while (!over || !r.reported) {
		post_batch();
		some = take_batch(!r.n_turns);
		over = window_is_over(!some && !r.n_turns);
		if (!r.reported && !some)
			check_peer();
		else if (r.reported && r.lead->gone)
			break;
	}
}

static void print_load(void)
{
	struct count theirs = count_of(r.report);

	print_rate(&r.run, r.run.job == JOB_READ ? &r.meter.count : &theirs,
		   r.meter.count.cpu_us, theirs.cpu_us);
}

static void await_end(void)
{
	r.reported = true;
	while (!r.lead->gone)
		take_batch(true);
}

static void serve_load(void)
{
	meter_start(&r.meter, r.run.tenths);
	while (!window_is_over(!take_batch(true)))
		check_peer();
	send_report();
	await_end();
}

/* ---- ping-pong ---- */

#define SIGNAL_EACH	16
#define SPINS		(1u << 20)	/* before the peer is suspected to have gone */

static struct {
	uint32_t posted, signalled, received;
	uint8_t turn;		/* the last octet written */
} ping;

static bool ping_take(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return false;
	if (wc->wr_id & 1)
		ping.received++;
	else
		ping.signalled--;
	return true;
}

static bool ping_reap(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(r.lead->cq, 1, &wc);

	return n > 0 ? ping_take(&wc) : n == 0;
}

/* False when the peer has gone. */
static bool ping_send(void)
{
	struct link *l = r.links;
	bool write = r.run.job == JOB_PING_WRITE;
	struct ibv_sge sge = { .addr = (uintptr_t)r.src, .length = r.run.size,
			       .lkey = r.src_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id(l, false), .sg_list = &sge, .num_sge = 1,
				  .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND };

	wr.wr.rdma.remote_addr = be64toh(l->peer.addr);
	wr.wr.rdma.rkey = be32toh(l->peer.rkey);
	if (r.run.size <= l->c.max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	if (++ping.posted % SIGNAL_EACH == 0) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		ping.signalled++;
	}
	r.src[r.run.size - 1] = ping.turn;
	post(l, &wr);
	/* The queue has room for what comes until the next one is signalled. */
	while (ping.signalled > 1)
		if (!ping_reap())
			return false;
	return true;
}

static bool ping_has_gone(void)
{
	struct ibv_wc wc;

	return conn_poll(r.lead, &wc, 1, 0) ? !ping_take(&wc) : r.lead->gone;
}

static bool ping_receive(void)
{
	const volatile uint8_t *last = r.dst + r.run.size - 1;
	unsigned int spins = 0;

	if (r.run.job == JOB_PING_WRITE) {
		while (*last != ping.turn)
			if (++spins % SPINS == 0 && ping_has_gone())
				return false;
		return true;
	}
	while (!ping.received) {
		if (!ping_reap())
			return false;
		if (++spins % SPINS == 0 && ping_has_gone())
			return false;
	}
	ping.received--;
	post_recv(r.links);
	return true;
}

static void ping_client(void)
{
	struct pings p;

	pings_start(&p, r.run.tenths);
	do {
		ping.turn++;
		if (!ping_send() || !ping_receive())
			fail("the peer has gone");
	} while (!pings_done(&p));
	pings_print(&p, &r.run);
}

static void ping_server(void)
{
	for (ping.turn = 1; ping_receive() && ping_send(); ping.turn++)
		;
	await_end();
}

/* ---- connections ---- */

/* Where the client's time goes: until the address and route are known, and so on. */
static struct {
	int64_t resolve, queues, connect, close;
} steps;

static void step_done(int64_t *step, int64_t *since)
{
	int64_t now = now_ns();

	*step += now - *since;
	*since = now;
}

static void connect_once(enum job job, const char *host, const char *port)
{
	struct link l = { 0 };
	int64_t since = now_ns();

	conn_share(&l.c, r.lead);
	conn_resolve(&l.c, host, port);
	step_done(&steps.resolve, &since);
	make_queues(&l);
	step_done(&steps.queues, &since);
	call_link(&l, job);
	step_done(&steps.connect, &since);
	conn_close(&l.c);
	step_done(&steps.close, &since);
}

/* Those of the warm-up, too. */
static void print_steps(uint64_t n)
{
	printf("resolve_us=%.1f queues_us=%.1f connect_us=%.1f close_us=%.1f\n",
	       steps.resolve / 1e3 / n, steps.queues / 1e3 / n, steps.connect / 1e3 / n,
	       steps.close / 1e3 / n);
}

static void connect_client(const char *host, const char *port)
{
	uint64_t n = 0;

	meter_start(&r.meter, r.run.tenths);
	do {
		connect_once(JOB_CONNECTS, host, port);
	} while (!meter_look(&r.meter, ++n));
	print_connects(&r.meter.count);
	print_steps(n);
	connect_once(JOB_BYE, host, port);
}

static void connect_server(void)
{
	struct link l = { 0 };
	struct ibv_wc wc;
	enum job job;

	conn_share(&l.c, r.lead);
	do {
		conn_await_request(&l.c);
		job = run_of(&((const struct request *)l.c.peer)->hello).job;
		accept_link(&l);
		while (!l.c.gone)
			conn_poll(&l.c, &wc, 1, PATIENCE_MS);
		conn_close(&l.c);
	} while (job != JOB_BYE);
}

/* ---- the whole ---- */

void rdma_serve(const char *addr, const char *port)
{
	struct conn first = { .timeout_ms = PATIENCE_MS };
	uint32_t i;

	r.server = true;
	conn_listen(&first, addr, port);
	conn_await_request(&first);
	r.run = run_of(&((const struct request *)first.peer)->hello);
	make_links();
	*r.lead = first;
	size_queues();
	accept_link(&r.links[0]);
	for (i = 1; i < r.run.connections; i++) {
		conn_share(&r.links[i].c, &r.links[i - 1].c);
		conn_await_request(&r.links[i].c);
		accept_link(&r.links[i]);
	}
	if (r.run.job <= JOB_READ)
		serve_load();
	else if (r.run.job <= JOB_PING_WRITE)
		ping_server();
	else if (r.run.job == JOB_CONNECTS)
		connect_server();
	else
		await_end();
	close_links();
}

void rdma_call(const struct run *run, const char *host, const char *port)
{
	uint32_t i;

	r.run = *run;
	make_links();
	r.lead->timeout_ms = PATIENCE_MS;
	size_queues();
	for (i = 0; i < r.run.connections; i++) {
		if (i)
			conn_share(&r.links[i].c, r.lead);
		if (run->job == JOB_UNCONNECTED)
			queues_alone(&r.links[i], host, port);
		else
			connect_link(&r.links[i], run->job, host, port);
	}
	if (run->job <= JOB_READ) {
		load();
		print_load();
	} else if (run->job <= JOB_PING_WRITE) {
		ping_client();
	} else if (run->job == JOB_CONNECTS) {
		connect_client(host, port);
	} else {
		hold_idle(run);
	}
	close_links();
}
