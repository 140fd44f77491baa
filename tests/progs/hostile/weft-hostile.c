// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A user that attacks the kernel, for a given time:
 *
 *   rings  a thread scribbles over every ring that is or was mapped (indices,
 *          flags, fields of entries) while another posts by verbs, rings the
 *          doorbell and connects anew;
 *   calls  a thread makes random calls on the command fd (ioctls, weft's own
 *          methods among them, write() commands, mmap) while another posts.
 *
 * This happens in child processes; each lives a few seconds and is killed in the midst of it. A
 * child may crash, because its provider trusts the corrupted rings. The kernel must survive (the
 * caller checks its log, and other programs meanwhile), and the children must have got far enough:
 * connections, posts, accepted calls. The partner (-l) answers messages, and has memory to be
 * written and read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/weft-abi.h>

#include "conn.h"
#include "pattern.h"

#define SEND_WR		64
#define RECV_WR		64
#define BUF		65536
#define MSG		1024
#define MAX_RINGS	32
#define PATIENCE	20000	/* ms for a child to connect */

/* What the children did; they share it with their parent. */
enum count {
	CONNECTIONS, POSTS, COMPLETIONS, SCRIBBLES, DEAD_QPS,
	KICKS_TAKEN, RESIZES_TAKEN, IOCTLS_TAKEN, WRITES_TAKEN, MMAPS_TAKEN, CALLS_REFUSED,
	NR_COUNTS
};

static const char *const count_names[NR_COUNTS] = {
	"connections", "posts", "completions", "scribbles", "QPs in error",
	"kicks taken", "SRQ resizes taken", "other ioctls taken", "write commands taken",
	"mappings", "calls refused",
};

static _Atomic uint64_t *counts;

static struct {
	struct conn c;
	const char *host, *port;
	uint64_t seed;
	bool no_ioctls;
	uint8_t *buf;
	struct ibv_mr *mr;
	uint64_t remote;
	uint32_t rkey;
} h;

/* Each thread has its own. */
static __thread uint64_t rnd_state;

static uint64_t rnd(void)
{
	return rnd_state = pattern_mix(rnd_state);
}

static uint32_t below(uint32_t n)
{
	return rnd() % n;
}

static bool once_in(uint32_t n)
{
	return !below(n);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ---- the rings: what the provider maps passes here ---- */

struct ring {
	uint8_t *at;
	size_t size;
	off_t off;		/* in the command file */
	bool old;		/* the provider is done with it */
};

static struct ring rings[MAX_RINGS];
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ring *ring_at(const void *at)
{
	struct ring *r;

	for (r = rings; r < rings + MAX_RINGS; r++)
		if (r->at == at)
			return r;
	return NULL;
}

static struct ring *old_ring(void)
{
	struct ring *r;

	for (r = rings; r < rings + MAX_RINGS; r++)
		if (r->old)
			return r;
	return NULL;
}

/* Where there is no place left, one that is old gives way. */
static void keep_ring(void *at, size_t size, off_t off)
{
	struct ring *r = ring_at(NULL);

	if (!r) {
		r = old_ring();
		if (!r)
			return;
		syscall(SYS_munmap, r->at, r->size);
	}
	*r = (struct ring){ .at = at, .size = size, .off = off };
}

/* Replaces libc's, for the libraries, too. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *at = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);

	if (at != MAP_FAILED && fd >= 0 && flags & MAP_SHARED && prot & PROT_WRITE) {
		pthread_mutex_lock(&rings_lock);
		keep_ring(at, len, off);
		pthread_mutex_unlock(&rings_lock);
	}
	return at;
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

/* A ring stays where it is, to be scribbled over when its queue has gone. */
int munmap(void *addr, size_t len)
{
	struct ring *r;

	pthread_mutex_lock(&rings_lock);
	r = ring_at(addr);
	if (r)
		r->old = true;
	pthread_mutex_unlock(&rings_lock);
	return r ? 0 : syscall(SYS_munmap, addr, len);
}

/* ---- scribbling ---- */

/* A number that may hurt: near @old, small, at an edge, anything. */
static uint32_t nasty(uint32_t old)
{
	static const uint32_t edges[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000 };

	switch (below(6)) {
	case 0: return old + 1;
	case 1: return old - 1;
	case 2: return old + below(256);
	case 3: return below(64);
	case 4: return edges[below(6)];
	default: return rnd();
	}
}

static void scribble_header(struct weft_ring *r)
{
	switch (below(6)) {
	case 0: r->user_idx = nasty(r->user_idx); break;
	case 1: r->arm = nasty(r->arm); break;
	case 2: r->kern_idx = nasty(r->kern_idx); break;
	case 3: r->flags = below(8); break;
	case 4: r->user_reserved[below(30)] = rnd(); break;
	default: r->kern_reserved[below(30)] = rnd(); break;
	}
}

/* As if it were a send entry, or a receive, or just words. */
static void scribble_entry(uint8_t *at)
{
	volatile struct weft_sq_wqe *w = (void *)at;
	volatile struct weft_rq_wqe *q = (void *)at;
	volatile struct weft_sge *sge = (void *)(at + 16 * below(4));

	switch (below(9)) {
	case 0: w->opcode = below(WEFT_WR_NR + 2); break;
	case 1: w->num_sge = nasty(w->num_sge); break;
	case 2: w->nslots = once_in(4) ? rnd() : 1 + below(WEFT_SQ_MAX_SLOTS); break;
	case 3: w->flags = rnd(); break;
	case 4: w->rkey = nasty(w->rkey); break;
	case 5: sge->lkey = nasty(sge->lkey); break;
	case 6: sge->length = nasty(sge->length); break;
	case 7: q->num_sge = nasty(q->num_sge); break;
	default: ((volatile uint32_t *)at)[below(WEFT_SLOT_SIZE / 4)] = nasty(0); break;
	}
}

/* @mercy: of so many strokes one hits a header, which ends most connections. */
static void scribble_once(uint32_t mercy)
{
	const struct ring *r = &rings[below(MAX_RINGS)];

	if (!r->at || r->size < WEFT_RING_DATA + WEFT_SLOT_SIZE)
		return;
	if (once_in(mercy))
		scribble_header((struct weft_ring *)r->at);
	else
		scribble_entry(r->at + WEFT_RING_DATA +
			       below((r->size - WEFT_RING_DATA) / WEFT_SLOT_SIZE) *
			       WEFT_SLOT_SIZE);
	counts[SCRIBBLES]++;
}

/* Now gently, so that connections live, now as fast as can be. */
static void *scribbler(void *seed)
{
	uint32_t burst = 1, mercy = 4, pause_us = 0;
	uint32_t i;

	rnd_state = (uintptr_t)seed;
	for (;;) {
		if (once_in(200)) {
			burst = 1u << below(9);
			mercy = 1u << below(10);
			pause_us = once_in(2) ? 0 : below(3000);
		}
		pthread_mutex_lock(&rings_lock);
		for (i = 0; i < burst; i++)
			scribble_once(mercy);
		pthread_mutex_unlock(&rings_lock);
		if (pause_us)
			usleep(pause_us);
	}
	return NULL;
}

/* ---- a connection, and posting over it ---- */

struct hello {
	uint64_t addr;
	uint32_t rkey;
};

static struct ibv_sge any_sge(uint32_t max)
{
	return (struct ibv_sge){ .addr = (uintptr_t)h.buf + below(BUF - max), .length = below(max),
				 .lkey = h.mr->lkey };
}

static void post_recv(void)
{
	struct ibv_sge sge = any_sge(MSG);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	sge.length = MSG;
	if (h.c.srq)
		ibv_post_srq_recv(h.c.srq, &wr, &bad);
	else
		ibv_post_recv(h.c.id->qp, &wr, &bad);
}

static void post_send(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	enum ibv_wr_opcode opcode = opcodes[below(5)];
	struct ibv_sge sge[4] = { any_sge(MSG / 4), any_sge(MSG / 4), any_sge(MSG / 4),
				  any_sge(MSG / 4) };
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = opcode == IBV_WR_RDMA_READ ? 1 : below(5),
		.opcode = opcode,
		.send_flags = once_in(4) ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = h.remote + below(BUF - MSG), .rkey = h.rkey },
	}, *bad;

	if (!ibv_post_send(h.c.id->qp, &wr, &bad))
		counts[POSTS]++;
}

static int own_method(uint16_t object, uint16_t method, uint16_t attr, uint32_t handle)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = object, .method_id = method,
			 .num_attrs = 1, .driver_id = WEFT_DRIVER_ID },
		.attr = { .attr_id = attr, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
	};

	return ioctl(h.c.id->verbs->cmd_fd, RDMA_VERBS_IOCTL, &cmd);
}

/* Past the provider, which believes a scribbled flag. */
static void kick_both(void)
{
	int bad = own_method(UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK, WEFT_ATTR_QP_KICK_HANDLE,
			     h.c.id->qp->handle);

	bad |= own_method(UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, WEFT_ATTR_CQ_KICK_HANDLE,
			  h.c.cq->handle);
	if (!bad)
		counts[KICKS_TAKEN]++;
}

static bool in_error(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(h.c.id->qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR;
}

static void post_some(void)
{
	uint32_t n = 1 + below(16);
	struct ibv_wc wc[16];
	int got;

	while (n--) {
		post_send();
		post_recv();
	}
	kick_both();
	got = ibv_poll_cq(h.c.cq, 16, wc);
	if (got > 0)
		counts[COMPLETIONS] += got;
	if (once_in(8))
		ibv_req_notify_cq(h.c.cq, once_in(2));
}

static void make_queues(bool with_srq)
{
	int i;

	h.c.max_sge = 4;
	h.c.srq_wr = with_srq ? RECV_WR : 0;
	conn_make_qp(&h.c, SEND_WR, RECV_WR, 0);
	h.mr = conn_reg(&h.c, h.buf, BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ);
	for (i = 0; i < RECV_WR / 2; i++)
		post_recv();
}

static void open_connection(bool with_srq)
{
	struct hello hello;

	conn_resolve(&h.c, h.host, h.port);
	make_queues(with_srq);
	conn_connect(&h.c, NULL, 0);
	memcpy(&hello, h.c.peer, sizeof(hello));
	h.remote = hello.addr;
	h.rkey = hello.rkey;
	counts[CONNECTIONS]++;
}

/* ---- mode rings ---- */

static void spoil_rings(void)
{
	pthread_t thread;
	int64_t end;

	if (pthread_create(&thread, NULL, scribbler, (void *)(uintptr_t)rnd()))
		fail("no thread");
	for (;;) {
		open_connection(once_in(2));
		end = now_ms() + 1000;
		while (now_ms() < end) {
			post_some();
			if (!in_error())
				continue;
			/* Posts to a QP in error are looked at, too. */
			counts[DEAD_QPS]++;
			post_some();
			break;
		}
		conn_close(&h.c);
	}
}

/* ---- mode calls ---- */

#define ANSWERS	65536

/* Nothing is mapped behind them: an answer that is too long is refused, and spoils nothing. */
static uint8_t *answers;

static uint32_t any_count(void)
{
	static const uint32_t some[] = { 0, 1, 2, 3, 31, 32, 33, 64, 100, 1000, 4096, 0x7fffffff,
					 0x80000000, 0xffffffff };

	return once_in(8) ? rnd() : some[below(sizeof(some) / sizeof(some[0]))];
}

static uint32_t any_handle(void)
{
	return once_in(10) ? rnd() : below(24);
}

static uint64_t any_pointer(void)
{
	switch (below(10)) {
	case 0: return rnd();
	case 1: return 0;
	case 2: return 0xffff888000000000 + below(1 << 20);
	case 3: return (uintptr_t)answers + ANSWERS - below(32);
	default: return (uintptr_t)answers + (below(ANSWERS / 2) & ~7u);
	}
}

static void counted(int rv, enum count taken)
{
	counts[rv < 0 ? CALLS_REFUSED : taken]++;
}

/*
 * The write commands, word by word: R where the answer goes, U user's, p address
 * (page), l length, h handle, n how many, s small, m -1 as a rule, q QP type,
 * w size of an entry, x anything.
 */
static const struct {
	uint32_t command;
	const char *words;
} commands[] = {
	{ IB_USER_VERBS_CMD_QUERY_DEVICE, "R" },
	{ IB_USER_VERBS_CMD_QUERY_PORT, "Rss" },
	{ IB_USER_VERBS_CMD_ALLOC_PD, "R" },
	{ IB_USER_VERBS_CMD_DEALLOC_PD, "h" },
	{ IB_USER_VERBS_CMD_REG_MR, "Rplphs" },
	{ IB_USER_VERBS_CMD_REREG_MR, "Rhsplphs" },
	{ IB_USER_VERBS_CMD_DEREG_MR, "h" },
	{ IB_USER_VERBS_CMD_ALLOC_MW, "Rhs" },
	{ IB_USER_VERBS_CMD_CREATE_CQ, "RUnsms" },
	{ IB_USER_VERBS_CMD_RESIZE_CQ, "Rhns" },
	{ IB_USER_VERBS_CMD_DESTROY_CQ, "Rhs" },
	{ IB_USER_VERBS_CMD_POLL_CQ, "Rhs" },
	{ IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, "hs" },
	{ IB_USER_VERBS_CMD_CREATE_QP, "RUhhhhnnssnq" },
	{ IB_USER_VERBS_CMD_QUERY_QP, "Rhx" },
	{ IB_USER_VERBS_CMD_MODIFY_QP, "xxxxxxxxxxxxxxxxxxxxhxxxxxxxxss" },
	{ IB_USER_VERBS_CMD_DESTROY_QP, "Rhs" },
	/* The size of an entry stays small: kmalloc() of these kernels warns of a wild one. */
	{ IB_USER_VERBS_CMD_POST_SEND, "Rhsswxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" },
	{ IB_USER_VERBS_CMD_POST_RECV, "Rhsswxxxxxxxxxxxxxxxx" },
	{ IB_USER_VERBS_CMD_CREATE_SRQ, "RUhnss" },
	{ IB_USER_VERBS_CMD_MODIFY_SRQ, "hsns" },
	{ IB_USER_VERBS_CMD_QUERY_SRQ, "Rhs" },
	{ IB_USER_VERBS_CMD_DESTROY_SRQ, "Rhs" },
	{ IB_USER_VERBS_CMD_POST_SRQ_RECV, "Rhsswxxxxxxxxxxxxxxxx" },
};

static uint32_t *put_word(uint32_t *p, char kind)
{
	uint64_t wide;

	switch (kind) {
	case 'R':
	case 'U': wide = any_pointer(); break;
	case 'p': wide = any_pointer() & ~4095ULL; break;
	case 'l': wide = once_in(4) ? rnd() : below(ANSWERS); break;
	case 'h': *p = any_handle(); return p + 1;
	case 'n': *p = any_count(); return p + 1;
	case 's': *p = below(5); return p + 1;
	case 'm': *p = once_in(4) ? any_handle() : ~0u; return p + 1;
	case 'q': *p = IBV_QPT_RC << 8 | (rnd() & 1) << 16 | (once_in(8) ? rnd() : 0); return p + 1;
	case 'w': *p = 64 + 64 * below(2); return p + 1;
	default: *p = once_in(2) ? rnd() : below(8); return p + 1;
	}
	memcpy(p, &wide, sizeof(wide));
	return p + 2;
}

static void write_command(void)
{
	uint32_t words[128];
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	uint32_t *p = words + sizeof(*hdr) / 4;
	uint32_t which = below(sizeof(commands) / sizeof(commands[0]));
	const char *kinds = commands[which].words;
	uint32_t extra;

	for (; *kinds; kinds++)
		p = put_word(p, *kinds);
	/* The driver's part. */
	for (extra = below(3) * 2; extra; extra--)
		*p++ = once_in(2) ? 0 : rnd();
	hdr->command = commands[which].command;
	hdr->in_words = p - words;
	hdr->out_words = once_in(4) ? below(64) : 64;
	if (once_in(16))
		hdr->in_words = rnd();
	if (once_in(16))
		p -= below(p - words);
	counted(write(h.c.id->verbs->cmd_fd, words, (p - words) * 4), WRITES_TAKEN);
}

/* An extended command, or none at all, of random words. */
static void write_noise(void)
{
	uint32_t words[64];
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	uint32_t i, n = (sizeof(*hdr) + sizeof(*ex)) / 4 + 2 * below(20);

	for (i = 0; i < n; i++)
		put_word(words + i, "hnsx"[below(4)]);
	*hdr = (struct ib_uverbs_cmd_hdr){
		.command = 0x80000000 | below(64),
		.in_words = (n - (sizeof(*hdr) + sizeof(*ex)) / 4) / 2,
		.out_words = below(8),
	};
	*ex = (struct ib_uverbs_ex_cmd_hdr){ .response = any_pointer() };
	if (once_in(4))
		ex->provider_in_words = below(8);
	if (once_in(4))
		ex->provider_out_words = below(8);
	counted(write(h.c.id->verbs->cmd_fd, words, n * 4), WRITES_TAKEN);
}

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[16];
};

/* The @i-th: most methods number theirs from 0, the object first. */
static struct ib_uverbs_attr any_attr(uint32_t i)
{
	static const uint16_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, UVERBS_ATTR_UHW_IN,
					UVERBS_ATTR_UHW_OUT, WEFT_ATTR_QP_KICK_HANDLE,
					WEFT_ATTR_SRQ_RESIZE_RESP };

	return (struct ib_uverbs_attr){
		.attr_id = once_in(16) ? rnd() : once_in(2) ? ids[below(16)] : i,
		.len = once_in(4) ? rnd() : once_in(2) ? 4 * below(20) : 0,
		.flags = once_in(4) ? rnd() : below(2),
		.attr_data.reserved = once_in(8) ? rnd() : 0,
		.data = once_in(2) ? any_handle() : any_pointer(),
	};
}

/* A fault in one place, now and then. */
static void spoil_call(struct call *call)
{
	switch (below(12)) {
	case 0: call->hdr.length = nasty(call->hdr.length); break;
	case 1: call->hdr.num_attrs = nasty(call->hdr.num_attrs); break;
	case 2: call->hdr.driver_id = rnd(); break;
	case 3: call->hdr.reserved1 = rnd(); break;
	case 4: call->attrs[0] = any_attr(below(3)); break;
	}
}

static int make_call(struct call *call)
{
	call->hdr.length = sizeof(call->hdr) + call->hdr.num_attrs * sizeof(call->attrs[0]);
	call->hdr.driver_id = WEFT_DRIVER_ID;
	spoil_call(call);
	return ioctl(h.c.id->verbs->cmd_fd, RDMA_VERBS_IOCTL, call);
}

static void any_ioctl(void)
{
	static const uint16_t some[] = { 0, 1, 2, 3, 4, 5, 6, 7, WEFT_METHOD_QP_KICK };
	struct call call = { .hdr = {
		.object_id = once_in(16) ? rnd() : below(UVERBS_OBJECT_ASYNC_EVENT + 1),
		.method_id = once_in(16) ? rnd() : some[below(9)],
		.num_attrs = below(2 + below(15)),
	} };
	int i;

	for (i = 0; i < call.hdr.num_attrs; i++)
		call.attrs[i] = any_attr(i);
	counted(make_call(&call), IOCTLS_TAKEN);
}

/*
 * Methods of the core, attribute by attribute: h handle, n how many (4 octets),
 * U user's (8), p port (1, as 8 octets), c, o and r where 4, 8 and 64 octets go,
 * - none.
 */
static const struct {
	uint16_t object, method;
	const char *attrs;
} methods[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, "pr" },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, "co" },
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, "h" },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, "h" },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, "hccoo" },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, "hhUUUnncc" },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, "hnU-nnc" },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, "ho" },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, "hc" },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, "hc" },
};

static struct ib_uverbs_attr attr_of(uint16_t id, char kind)
{
	struct ib_uverbs_attr attr = { .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY };

	switch (kind) {
	case 'h': attr.data = any_handle(); break;
	case 'n': attr.len = 4; attr.data = once_in(2) ? 0 : any_count(); break;
	case 'U': attr.len = 8; attr.data = rnd(); break;
	case 'c': attr.len = 4; attr.data = any_pointer(); break;
	case 'o': attr.len = 8; attr.data = any_pointer(); break;
	case 'p': attr.len = 8; attr.data = once_in(4) ? rnd() : 1; break;
	case 'r': attr.len = 64; attr.data = any_pointer(); break;
	}
	return attr;
}

static void core_ioctl(void)
{
	/* The first one needs no object: one in four is taken, however few calls are made. */
	uint32_t which = once_in(2) ? 0 : below(sizeof(methods) / sizeof(methods[0]));
	struct call call = { .hdr = { .object_id = methods[which].object,
				      .method_id = methods[which].method } };
	const char *kind = methods[which].attrs;
	uint32_t id;

	for (id = 0; kind[id]; id++)
		if (kind[id] != '-')
			call.attrs[call.hdr.num_attrs++] = attr_of(id, kind[id]);
	/* The driver's part, of any length. */
	if (once_in(2))
		call.attrs[call.hdr.num_attrs++] = (struct ib_uverbs_attr){
			.attr_id = UVERBS_ATTR_UHW_IN + below(2), .len = 8 * below(9),
			.data = any_pointer() };
	counted(make_call(&call), IOCTLS_TAKEN);
}

static void kick_any(void)
{
	bool cq = once_in(2);
	struct call call = {
		.hdr = { .object_id = cq ? UVERBS_OBJECT_CQ : UVERBS_OBJECT_QP,
			 .method_id = WEFT_METHOD_QP_KICK, .num_attrs = 1 },
		.attrs = { { .attr_id = WEFT_ATTR_QP_KICK_HANDLE,
			     .flags = UVERBS_ATTR_F_MANDATORY, .data = any_handle() } },
	};

	counted(make_call(&call), KICKS_TAKEN);
}

/* Guessed handles and counts alone fit too rarely: the SRQ is soon destroyed. */
static void resize_any(void)
{
	bool fits = once_in(2);
	struct call call = {
		.hdr = { .object_id = UVERBS_OBJECT_SRQ, .method_id = WEFT_METHOD_SRQ_RESIZE,
			 .num_attrs = 3 },
		.attrs = { { .attr_id = WEFT_ATTR_SRQ_RESIZE_HANDLE,
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = fits ? h.c.srq->handle : any_handle() },
			   { .attr_id = WEFT_ATTR_SRQ_RESIZE_MAX_WR, .len = 4,
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = fits ? (uint32_t)RECV_WR << below(6) : any_count() },
			   { .attr_id = WEFT_ATTR_SRQ_RESIZE_RESP,
			     .len = sizeof(struct weft_modify_srq_resp),
			     .flags = UVERBS_ATTR_F_MANDATORY, .data = any_pointer() } },
	};

	counted(make_call(&call), RESIZES_TAKEN);
}

/* A ring that is or was there: the first are the oldest, and as a rule there. */
static struct ring some_ring(void)
{
	struct ring ring;

	pthread_mutex_lock(&rings_lock);
	ring = rings[below(4)];
	pthread_mutex_unlock(&rings_lock);
	return ring;
}

/*
 * Offsets of rings are small numbers of pages, and a mapping is of all of one,
 * shared. Half of the calls get all that right: guesses alone fit too rarely.
 */
static void mmap_any(void)
{
	struct ring ring = some_ring();
	bool fits = once_in(2);
	size_t len = fits || once_in(2) ? ring.size :
		     once_in(4) ? rnd() >> (16 + below(40)) : 4096 * (1 + below(8));
	uint64_t off = fits || once_in(2) ? (uint64_t)ring.off :
		       once_in(4) ? rnd() << 12 : 4096ULL * below(64);
	int prot = below(8), flags = fits || !once_in(4) ? MAP_SHARED : MAP_PRIVATE;
	uint8_t *at = (void *)syscall(SYS_mmap, NULL, len, prot, flags,
				      h.c.id->verbs->cmd_fd, off);

	if (at == MAP_FAILED) {
		counts[CALLS_REFUSED]++;
		return;
	}
	counts[MMAPS_TAKEN]++;
	/* A command file of weft-run's may be mapped where nothing is. */
	if (fits && prot & PROT_WRITE)
		memset(at, rnd(), 4096);
	/* Some in part, some never. */
	if (!once_in(8))
		syscall(SYS_munmap, at, once_in(4) ? 4096 : len);
}

static void *poster(void *seed)
{
	rnd_state = (uintptr_t)seed;
	for (;;) {
		post_some();
		usleep(below(2000));
	}
	return NULL;
}

static void make_calls(void)
{
	static void (*const calls[])(void) = { write_command, write_command, write_command,
					       write_noise, any_ioctl, core_ioctl, kick_any,
					       resize_any, mmap_any };
	pthread_t thread;

	answers = (void *)syscall(SYS_mmap, NULL, ANSWERS + 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
	if (answers == MAP_FAILED || mprotect(answers + ANSWERS, 4096, PROT_NONE))
		fail("no memory");
	open_connection(true);
	if (pthread_create(&thread, NULL, poster, (void *)(uintptr_t)rnd()))
		fail("no thread");
	for (;;)
		calls[below(sizeof(calls) / sizeof(calls[0]))]();
}

/* ---- the partner ---- */

static void answer(void)
{
	struct ibv_sge sge = any_sge(MSG);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	ibv_post_send(h.c.id->qp, &wr, &bad);
}

static void serve_one(void)
{
	struct hello hello;
	struct ibv_wc wc;

	conn_await_request(&h.c);
	make_queues(false);
	hello = (struct hello){ .addr = (uintptr_t)h.buf, .rkey = h.mr->rkey };
	conn_accept(&h.c, &hello, sizeof(hello));
	while (conn_poll(&h.c, &wc, 1, h.c.timeout_ms) > 0 && wc.status == IBV_WC_SUCCESS) {
		if (wc.opcode != IBV_WC_RECV)
			continue;
		post_recv();
		if (once_in(8))
			answer();
	}
	conn_close(&h.c);
}

static const char *listen_addr;

static void serve(void)
{
	conn_listen(&h.c, listen_addr, h.port);
	for (;;)
		serve_one();
}

/* ---- children ---- */

static pid_t spawn(void (*what)(void), uint64_t seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rnd_state = seed;
	what();
	_exit(0);
}

/*
 * Its own harm. A life lasts @ms from the first connection on, where there are
 * any; one that ends by itself is followed by another a little later. Returns
 * the signal that ended it.
 */
static int live(void (*what)(void), uint64_t seed, int64_t ms)
{
	uint64_t connections = counts[CONNECTIONS];
	int64_t end = INT64_MAX, patience = now_ms() + PATIENCE;
	pid_t pid = spawn(what, seed), got;
	int status;

	while (!(got = waitpid(pid, &status, WNOHANG))) {
		if (end == INT64_MAX && counts[CONNECTIONS] != connections)
			end = now_ms() + ms;
		if (ms && (now_ms() > end || now_ms() > patience))
			break;
		usleep(10000);
	}
	if (!got) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return 0;
	}
	if (WIFSIGNALED(status))
		printf("seed %" PRIu64 ": ended by signal %d\n", seed, WTERMSIG(status));
	usleep(200000);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Has each of the @n kinds of @least happened, and a few connections? */
static bool has_seen_all(const enum count *least, int n)
{
	while (n--)
		if (!counts[least[n]])
			return false;
	return counts[CONNECTIONS] >= 3;
}

static void check_counts(const enum count *least, int n)
{
	int i;

	for (i = 0; i < NR_COUNTS; i++)
		printf("%s: %" PRIu64 "\n", count_names[i], (uint64_t)counts[i]);
	for (i = 0; i < n; i++)
		if (!counts[least[i]])
			fail("no %s; %" PRIu64 " connections, %" PRIu64 " calls refused",
			     count_names[least[i]], (uint64_t)counts[CONNECTIONS],
			     (uint64_t)counts[CALLS_REFUSED]);
	if (counts[CONNECTIONS] < 3)
		fail("only %" PRIu64 " connections", (uint64_t)counts[CONNECTIONS]);
}

static void attack(bool rings_mode, int seconds)
{
	static const enum count by_rings[] = { POSTS, COMPLETIONS, SCRIBBLES, DEAD_QPS };
	static const enum count by_calls[] = { POSTS, KICKS_TAKEN, RESIZES_TAKEN, WRITES_TAKEN,
					       MMAPS_TAKEN, CALLS_REFUSED, IOCTLS_TAKEN };
	const enum count *least = rings_mode ? by_rings : by_calls;
	int n = rings_mode ? sizeof(by_rings) / sizeof(by_rings[0]) :
			     sizeof(by_calls) / sizeof(by_calls[0]) - h.no_ioctls;
	int64_t end = now_ms() + seconds * 1000LL, limit = end + 4 * seconds * 1000LL;

	printf("seed %" PRIu64 ", %d s\n", h.seed, seconds);
	rnd_state = h.seed;
	/* A busy machine makes few calls a second, and some kinds are rare. */
	while (now_ms() < end || (now_ms() < limit && !has_seen_all(least, n)))
		live(rings_mode ? spoil_rings : make_calls, rnd(), 2000 + below(3000));
	check_counts(least, n);
}

static void usage(void)
{
	fprintf(stderr,
		"weft-hostile -l [-b ADDR] [-p PORT]     answers, for ever\n"
		"weft-hostile [-p PORT] [-t SECONDS] [-S SEED] [-w] rings|calls HOST\n"
		"   -w: to a device that knows write commands, and of ioctls weft's own\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int opt, seconds = 60;
	bool server = false;

	conn_program = "weft-hostile";
	setvbuf(stdout, NULL, _IOLBF, 0);
	h.port = "7177";
	h.c.timeout_ms = 5000;
	h.seed = (uint64_t)time(NULL) << 16 | (getpid() & 0xffff);
	while ((opt = getopt(argc, argv, "lb:p:t:S:w")) != -1) {
		switch (opt) {
		case 'l': server = true; break;
		case 'b': listen_addr = optarg; break;
		case 'p': h.port = optarg; break;
		case 't': seconds = atoi(optarg); break;
		case 'S': h.seed = strtoull(optarg, NULL, 0); break;
		case 'w': h.no_ioctls = true; break;
		default: usage();
		}
	}
	if (argc - optind != (server ? 0 : 2))
		usage();
	counts = mmap(NULL, NR_COUNTS * sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || posix_memalign((void **)&h.buf, 4096, BUF))
		fail("no memory");
	if (server) {
		/* Until somebody wants it gone. */
		while (live(serve, h.seed, 0) != SIGKILL)
			;
		return 0;
	}
	h.host = argv[optind + 1];
	if (strcmp(argv[optind], "rings") && strcmp(argv[optind], "calls"))
		usage();
	attack(!strcmp(argv[optind], "rings"), seconds);
	return 0;
}
