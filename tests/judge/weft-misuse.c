// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random misuse of verbs, for a judge that must survive it:
 *
 *     weft-misuse ADDR SECONDS [SEED]
 *
 * Processes live for a moment, one after the other. Four threads of each share objects: they post
 * requests with wrong keys, lengths and addresses to QPs in any state, write to memory under way,
 * unmap it, free it, destroy objects in any order and use them again afterwards, fork, and leave
 * the rest. Only what would be the program's own crash is left out: a call holds its objects.
 * A life may end with any status of its own or the judge's (99), and never by a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../progs/byhand/byhand.h"

#define THREADS		4
#define STEPS		600		/* of a thread */
#define SLOTS		6		/* of each kind of object */
#define MEMORY		(1 << 16)
#define STEADY		(MEMORY / 2)	/* of that, these octets are always there */
#define JUDGED		99

enum call {
	MAKE_CQ, MAKE_QP, MAKE_SRQ, MAKE_MR, END_CQ, END_QP, END_SRQ, END_MR, USE_GONE, POST_SEND,
	POST_RECV, POST_SRQ, POLL, POLL_EX, CHANGE, REMAP, FAIL, RESET, RESIZE, REREG, FORK, HEAP, CALLS
};

static const char *const call_names[CALLS] = {
	"make-cq", "make-qp", "make-srq", "make-mr", "end-cq", "end-qp", "end-srq", "end-mr",
	"use-gone", "post-send", "post-recv", "post-srq", "poll", "poll-ex", "change", "remap",
	"fail", "reset", "resize", "rereg", "fork", "heap",
};

/* An object, and what it was before it was destroyed. A call that uses it holds the lock. */
struct slot {
	pthread_rwlock_t lock;
	void *object, *gone;
};

static struct hand_device dev;
static struct ibv_pd *pds[2];
static struct slot cqs[SLOTS], qps[SLOTS], srqs[SLOTS], mrs[SLOTS];
static uint8_t *memory;
static unsigned long (*made)[CALLS];	/* of all lives: shared */
static __thread uint64_t state;

static uint32_t rnd(uint32_t range)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((state >> 33) % range);
}

static bool chance(uint32_t n) { return !rnd(n); }

static struct slot *any(struct slot *slots) { return &slots[rnd(SLOTS)]; }

static void note(enum call c) { __atomic_fetch_add(&(*made)[c], 1, __ATOMIC_RELAXED); }

/* The object, to be used; NULL: there is none, and the lock is dropped. */
static void *hold(struct slot *s)
{
	pthread_rwlock_rdlock(&s->lock);
	if (!s->object)
		pthread_rwlock_unlock(&s->lock);
	return s->object;
}

static void drop(struct slot *s) { pthread_rwlock_unlock(&s->lock); }

static struct ibv_pd *any_pd(void) { return pds[chance(8)]; }

/* ---- making ---- */

static bool is_extended(const struct ibv_cq *cq) { return cq->cq_context; }

static void *new_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1 + rnd(40), .wc_flags = IBV_WC_EX_WITH_BYTE_LEN, .cq_context = &dev,
	};
	struct ibv_cq_ex *ex;

	if (chance(2))
		return ibv_create_cq(dev.ctx, 1 + rnd(40), NULL, NULL, 0);
	ex = ibv_create_cq_ex(dev.ctx, &attr);
	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}

/* Connected to itself, if it is RC. */
static void connect(struct ibv_qp *qp)
{
	struct hand_end e = { .dev = &dev, .set = hand_usual, .qp = qp };
	struct hand_name name = { .gid = dev.gid, .qpn = qp->qp_num };

	if (!hand_to_init(&e) && !hand_to_rtr(&e, &name))
		hand_to_rts(&e);
}

static void *new_qp(void)
{
	struct slot *scq = any(cqs), *rcq = any(cqs), *srq = chance(3) ? any(srqs) : NULL;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = chance(2),
		.cap = { 1 + rnd(16), 1 + rnd(16), 1 + rnd(3), 1 + rnd(3), rnd(2) * 64 },
	};
	struct ibv_qp *qp = NULL;

	attr.send_cq = hold(scq);
	attr.recv_cq = attr.send_cq ? hold(rcq) : NULL;
	attr.srq = srq ? hold(srq) : NULL;
	if (attr.recv_cq)
		qp = ibv_create_qp(any_pd(), &attr);
	if (qp && !chance(6))
		connect(qp);
	if (attr.srq)
		drop(srq);
	if (attr.recv_cq)
		drop(rcq);
	if (attr.send_cq)
		drop(scq);
	return qp;
}

static void *new_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1 + rnd(20), .max_sge = 1 + rnd(3) } };

	return ibv_create_srq(any_pd(), &attr);
}

static void *new_mr(void)
{
	uint32_t from = rnd(MEMORY), len = 1 + rnd(MEMORY - from);
	int access = chance(4) ? 0 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ;

	if (chance(4))
		return ibv_reg_mr_iova(any_pd(), memory + from, len,
				       0x100000 + ((uintptr_t)(memory + from) & 4095), access);
	return ibv_reg_mr(any_pd(), memory + from, len, access);
}

static int end_cq(void *cq) { return ibv_destroy_cq(cq); }
static int end_qp(void *qp) { return ibv_destroy_qp(qp); }
static int end_srq(void *srq) { return ibv_destroy_srq(srq); }
static int end_mr(void *mr) { return ibv_dereg_mr(mr); }

/* QPs use CQs and SRQs that are locked, so all slots of these are tried without waiting. */
static void make(struct slot *s, enum call c, void *(*create)(void))
{
	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (!s->object) {
		s->object = create();
		if (s->object)
			note(c);
	}
	pthread_rwlock_unlock(&s->lock);
}

static void end(struct slot *s, enum call c, int (*destroy)(void *object))
{
	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (s->object && !destroy(s->object)) {
		s->gone = s->object;
		s->object = NULL;
		note(c);
	}
	pthread_rwlock_unlock(&s->lock);
}

/* Only under a judge, which keeps their memory for a while. */
static void use_gone(struct slot *s, int (*destroy)(void *object))
{
	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (s->gone && destroy(s->gone))
		note(USE_GONE);
	s->gone = NULL;
	pthread_rwlock_unlock(&s->lock);
}

/* ---- posting ---- */

static struct ibv_sge any_sge(void)
{
	struct slot *s = any(mrs);
	struct ibv_mr *mr = hold(s);
	struct ibv_sge sge = { .addr = (uintptr_t)memory + rnd(MEMORY), .length = rnd(512) };

	if (mr) {
		sge.lkey = mr->lkey;
		if (!chance(4)) {
			sge.addr = (uintptr_t)mr->addr + rnd(mr->length);
			sge.length = rnd(mr->length + 1);
		}
		drop(s);
	}
	if (chance(10))
		sge.lkey = rnd(UINT32_MAX);
	if (chance(20))
		sge.length = rnd(UINT32_MAX);
	if (chance(20))
		sge.addr = state;
	return sge;
}

static void fill(struct ibv_sge *sge, int *n)
{
	int i;

	*n = rnd(4);
	for (i = 0; i < *n; i++)
		sge[i] = any_sge();
}

static void post_send(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct slot *s = any(qps), *to = any(mrs);
	struct ibv_sge sge[4];
	struct ibv_send_wr *bad, wr = {
		.wr_id = rnd(5), .sg_list = sge, .opcode = opcodes[rnd(6)],
		.send_flags = (chance(2) ? IBV_SEND_SIGNALED : 0) | (chance(9) ? IBV_SEND_INLINE : 0),
	};
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	fill(sge, &wr.num_sge);
	mr = hold(to);
	if (mr) {
		wr.wr.rdma.remote_addr = (uintptr_t)mr->addr + rnd(mr->length);
		wr.wr.rdma.rkey = mr->rkey;
		drop(to);
	}
	/* Inline data is read by the call itself. */
	if (wr.send_flags & IBV_SEND_INLINE)
		wr.num_sge = 0;
	qp = hold(s);
	if (!qp)
		return;
	if (!ibv_post_send(qp, &wr, &bad))
		note(POST_SEND);
	drop(s);
}

static void post_receive(struct slot *s, bool is_srq)
{
	struct ibv_sge sge[4];
	struct ibv_recv_wr *bad, wr = { .wr_id = rnd(5), .sg_list = sge };
	void *queue;

	fill(sge, &wr.num_sge);
	queue = hold(s);
	if (!queue)
		return;
	if (!(is_srq ? ibv_post_srq_recv(queue, &wr, &bad) : ibv_post_recv(queue, &wr, &bad)))
		note(is_srq ? POST_SRQ : POST_RECV);
	drop(s);
}

/* ---- the rest ---- */

static void poll_cq(void)
{
	struct slot *s = any(cqs);
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc[4];
	struct ibv_cq *cq = hold(s);
	struct ibv_cq_ex *ex;

	if (!cq)
		return;
	if (!is_extended(cq)) {
		if (ibv_poll_cq(cq, 4, wc) > 0)
			note(POLL);
		drop(s);
		return;
	}
	ex = (struct ibv_cq_ex *)cq;
	if (!ibv_start_poll(ex, &attr)) {
		do
			ibv_wc_read_byte_len(ex);
		while (!chance(4) && !ibv_next_poll(ex));
		ibv_end_poll(ex);
		note(POLL_EX);
	}
	drop(s);
}

static void modify(enum ibv_qp_state to)
{
	struct slot *s = any(qps);
	struct ibv_qp_attr attr = { .qp_state = to };
	struct ibv_qp *qp = hold(s);

	if (!qp)
		return;
	if (!ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		note(to == IBV_QPS_ERR ? FAIL : RESET);
	drop(s);
}

static void resize(void)
{
	struct slot *s = any(chance(2) ? cqs : srqs);
	struct ibv_srq_attr attr = { .max_wr = 1 + rnd(30) };
	void *queue = hold(s);

	if (!queue)
		return;
	if (!(s >= srqs && s < srqs + SLOTS ? ibv_modify_srq(queue, &attr, IBV_SRQ_MAX_WR) :
	      ibv_resize_cq(queue, 1 + (int)rnd(60))))
		note(RESIZE);
	drop(s);
}

static void rereg(void)
{
	struct slot *s = any(mrs);
	uint32_t from = rnd(MEMORY);

	if (pthread_rwlock_trywrlock(&s->lock))
		return;
	if (s->object && !ibv_rereg_mr(s->object, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				       memory + from, 1 + rnd(MEMORY - from), 0))
		note(REREG);
	pthread_rwlock_unlock(&s->lock);
}

/* A page is away for a moment, and another one from then on. Its address stays taken. */
static void remap(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	uint8_t *page = memory + STEADY + rnd((MEMORY - STEADY) / 4096) * 4096;

	if (chance(2))
		mmap(page, 4096, PROT_NONE, flags, -1, 0);
	if (mmap(page, 4096, PROT_READ | PROT_WRITE, flags, -1, 0) == page)
		note(REMAP);
}

/* By an instruction, or by a call where the page may be away. */
static void change(void)
{
	static int fd = -1;

	if (chance(2)) {
		((volatile uint8_t *)memory)[rnd(STEADY)] += 1;
		return note(CHANGE);
	}
	if (fd < 0)
		fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (read(fd, memory + rnd(MEMORY - 64), 1 + rnd(64)) > 0)
		note(CHANGE);
}

static void use_heap(void)
{
	void *p = malloc(1 + rnd(5000)), *more = realloc(p, 1 + rnd(100000));

	free(more ? more : p);
	note(HEAP);
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		note(FORK);
}

static void step(void)
{
	switch (rnd(40)) {
	case 0: case 1: return make(any(cqs), MAKE_CQ, new_cq);
	case 2: case 3: case 4: return make(any(qps), MAKE_QP, new_qp);
	case 5: return make(any(srqs), MAKE_SRQ, new_srq);
	case 6: case 7: case 8: return make(any(mrs), MAKE_MR, new_mr);
	case 9: return end(any(cqs), END_CQ, end_cq);
	case 10: return end(any(qps), END_QP, end_qp);
	case 11: return end(any(srqs), END_SRQ, end_srq);
	case 12: return end(any(mrs), END_MR, end_mr);
	case 13: return modify(chance(2) ? IBV_QPS_ERR : IBV_QPS_RESET);
	case 14: return change();
	case 15: return chance(4) ? remap() : change();
	case 16: return resize();
	case 17: return rereg();
	case 18: return chance(20) ? fork_once() : use_heap();
	case 19: return chance(2) ? use_gone(any(qps), end_qp) : use_gone(any(mrs), end_mr);
	case 20: case 21: case 22: return post_receive(any(srqs), true);
	case 23: case 24: case 25: case 26: return post_receive(any(qps), false);
	case 27: case 28: case 29: case 30: case 31: case 32: return post_send();
	default: return poll_cq();
	}
}

/* ---- lives ---- */

static void *thread_main(void *arg)
{
	int i;

	state = (uintptr_t)arg;
	for (i = 0; i < STEPS; i++)
		step();
	return NULL;
}

static void live(const char *addr, unsigned long seed)
{
	pthread_t threads[THREADS];
	unsigned long i;

	hand_open(&dev, addr);
	pds[0] = dev.pd;
	pds[1] = ibv_alloc_pd(dev.ctx);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < SLOTS; i++) {
		pthread_rwlock_init(&cqs[i].lock, NULL);
		pthread_rwlock_init(&qps[i].lock, NULL);
		pthread_rwlock_init(&srqs[i].lock, NULL);
		pthread_rwlock_init(&mrs[i].lock, NULL);
	}
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread_main,
				   (void *)(seed * THREADS + i + 1)))
			hand_fail("no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (seed & 1)
		ibv_close_device(dev.ctx);
	exit(0);
}

/* One that hangs is ended by SIGALRM, and so is reported. */
static bool one_life(const char *addr, unsigned long seed)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(60);
		live(addr, seed);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		hand_fail("fork: %s", strerror(errno));
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == JUDGED))
		return true;
	printf("seed %lu: %s %d\n", seed, WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return false;
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1, lives = 0, bad = 0;
	long until;
	int i;

	hand_program = argv[0];
	/* A child must not write its parent's lines. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		hand_fail("usage: ADDR SECONDS [SEED]");
	until = hand_now_ms() + atol(argv[2]) * 1000;
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	do
		bad += !one_life(argv[1], seed++);
	while (lives++, hand_now_ms() < until);
	printf("%lu lives, %lu bad\n", lives, bad);
	for (i = 0; i < CALLS; i++) {
		printf("%s: %lu\n", call_names[i], (*made)[i]);
		bad += argc < 4 && !(*made)[i];
	}
	return bad ? 1 : 0;
}
