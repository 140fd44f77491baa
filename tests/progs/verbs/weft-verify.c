// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Is the data right? Two of these, on any verbs devices, move seeded patterns by
 * RDMA Write, RDMA Read and Send, both ways at once over one connection. Every
 * byte is checked by the side that received it, and so is a margin around it.
 * A source buffer is overwritten the moment its completion arrives.
 *
 * Each side works through its own list of operations, which both can compute
 * from the seed. It has a window of them under way; the number in the window
 * (slot) names the buffers on both sides. How one goes:
 *
 *   Write  Write into the peer's dst[slot], then a note WROTE
 *   Read   a note READ_ME; the peer reads src[slot] into its sink[slot]
 *   Send   a note DATA, then the data
 *
 * If both ends know immediate data (-k i), every other Write is announced by its immediate instead
 * of the note, and every other Send has some of its key as its immediate.
 *
 * The peer checks the bytes and answers with a note ACK, which frees the slot.
 * A note END follows the last ACK.
 */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"
#include "pattern.h"

#define MAX_LEN		(1024 * 1024 + 1)
#define MARGIN		64
#define SHIFT		64	/* payloads begin at any offset below this */
#define STRIDE		((MAX_LEN + 2 * MARGIN + SHIFT + 4095) & ~4095)
#define MAX_WINDOW	16
#define CANARY		0xa5
#define MAGIC		0x77656674u

enum kind { WRITE, READ, SEND, KINDS };
/* In hello.kinds, beside the kinds. */
#define WITH_IMM	(1u << KINDS)
#define NO_EMPTY_READ	(2u << KINDS)
/* Immediate of a Write: its slot above, its number below. */
#define IMM_OP_BITS	28
#define IMM_OP_MASK	((1u << IMM_OP_BITS) - 1)
static const char *const kind_names[KINDS] = { "Write", "Read", "Send" };

enum note_type { WROTE = 1, READ_ME, DATA, ACK, END };

/* Big-endian on the wire. */
struct note {
	uint32_t type;
	uint32_t slot;
	uint64_t op;		/* its number; END: how many there were */
	uint64_t addr;		/* READ_ME */
	uint32_t rkey;
	uint32_t len;
};

/* Goes both ways as private data; the client's settings rule. */
struct hello {
	uint32_t magic;
	uint32_t window;
	uint64_t seed;
	uint64_t total;		/* bytes, both directions */
	uint64_t dst;		/* where the peer may write */
	uint32_t rkey;
	uint32_t kinds;
};

struct op {
	enum kind kind;
	uint32_t len;
	uint32_t from, to;	/* offsets of the payload in its source and target buffers */
	uint64_t key;
};

/* Which buffer a completion is about stands in its wr_id: what | number. */
enum what { W_SOURCE = 1, W_NOTE, W_SINK, W_RECV };

/* One of ours, under way. */
struct mine {
	bool busy, sent;	/* sent: the source may be, and has been, overwritten */
	uint64_t op;
};

/* One of the peer's that it waits for. */
struct theirs {
	bool want_read, want_ack;
	struct note note;	/* host byte order */
};

struct area {
	uint8_t *mem;
	struct ibv_mr *mr;
};

static struct {
	struct conn c;
	struct hello hello, peer;
	bool server, verbose;
	int me;				/* 0 client, 1 server: whose list of operations */
	uint32_t window;

	struct area src, dst, sink, recv, notes;
	uint32_t recvs, note_slots;
	uint32_t free_notes[16 * MAX_WINDOW], n_free;

	struct mine mine[MAX_WINDOW];
	uint64_t next_op, n_acked;
	uint64_t out_bytes, in_bytes, in_ops;
	bool end_posted, end_sent, end_received;

	struct theirs theirs[MAX_WINDOW];
	uint64_t their_next;		/* number of the peer's next operation */
	struct note *data_note;		/* the next message is this one's data */
	uint64_t count[KINDS];
} v;

/* ---- what is to be moved ---- */

static const uint32_t sizes[] = {
	0, 1, 2, 3, 4, 7, 63, 64, 65, 511, 512, 513, 1023, 1447, 1448, 1449, 1460, 2047,
	4095, 4096, 4097, 8191, 8960, 9001, 16384, 32767, 65535, 65536, 65537, 131071,
	262145, 524287, 1048575, 1048576, 1048577,
};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static enum kind pick_kind(uint64_t n)
{
	enum kind k = n % KINDS;

	while (!(v.hello.kinds & 1u << k))
		k = (k + 1) % KINDS;
	return k;
}

/* First every size by every kind, then at random: listed sizes, and any others. */
static struct op op_of(int who, uint64_t i)
{
	uint64_t r = pattern_mix(v.hello.seed ^ pattern_mix(i * 2 + who));
	struct op op = { .key = pattern_mix(r) };

	if (i < KINDS * N_SIZES) {
		op.kind = pick_kind(i);
		op.len = sizes[i / KINDS];
	} else {
		op.kind = pick_kind(r >> 8);
		op.len = r & 3 ? sizes[(r >> 16) % N_SIZES] : (r >> 16) % (MAX_LEN + 1);
	}
	if (op.kind == READ && !op.len && v.hello.kinds & NO_EMPTY_READ)
		op.len = 1;
	op.from = MARGIN + (r >> 40) % SHIFT;
	op.to = MARGIN + (r >> 48) % SHIFT;
	return op;
}

static uint8_t *buffer(const struct area *a, uint32_t n)
{
	return a->mem + (size_t)n * STRIDE;
}

static void say(const char *what, uint64_t i, const struct op *op)
{
	if (v.verbose)
		printf("verify: %s %s %" PRIu64 ", %u bytes\n", what, kind_names[op->kind], i,
		       op->len);
}

/* ---- checking ---- */

static void check_margin(const uint8_t *p, size_t len, uint64_t i, const struct op *op, long at)
{
	size_t n;

	for (n = 0; n < len; n++)
		if (p[n] != CANARY)
			fail("%s %" PRIu64 ", %u bytes: wrote outside, at offset %ld",
			     kind_names[op->kind], i, op->len, at + (long)n);
}

/* The payload of the peer's operation @i, which must stand at @p, and the target's margins. */
static void check(uint8_t *p, uint64_t i, const struct op *op)
{
	size_t at = pattern_check(p, op->len, op->key);

	if (at != op->len)
		fail("%s %" PRIu64 ", %u bytes: at offset %zu is %02x, not %02x",
		     kind_names[op->kind], i, op->len, at, p[at], pattern_byte(op->key, at));
	check_margin(p - MARGIN, MARGIN, i, op, -MARGIN);
	check_margin(p + op->len, MARGIN, i, op, op->len);
	/* Clean again: the next one must not find what this one brought. */
	memset(p, CANARY, op->len);
	v.in_bytes += op->len;
	v.in_ops++;
	v.count[op->kind]++;
	say("checked", i, op);
}

/* ---- posting ---- */

static uint64_t wr_id(enum what what, uint32_t n)
{
	return (uint64_t)what << 32 | n;
}

/* The same list by the other interface. */
static int post_extended(const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(v.c.id->qp);

	ibv_wr_start(qp);
	for (; wr; wr = wr->next) {
		qp->wr_id = wr->wr_id;
		qp->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
		if (wr->opcode == IBV_WR_RDMA_WRITE)
			ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		else if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
					      wr->imm_data);
		else if (wr->opcode == IBV_WR_SEND_WITH_IMM)
			ibv_wr_send_imm(qp, wr->imm_data);
		else if (wr->opcode == IBV_WR_RDMA_READ)
			ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		else
			ibv_wr_send(qp);
		if (wr->send_flags & IBV_SEND_INLINE)
			ibv_wr_set_inline_data(qp, (void *)(uintptr_t)wr->sg_list->addr,
					       wr->sg_list->length);
		else
			ibv_wr_set_sge(qp, wr->sg_list->lkey, wr->sg_list->addr,
				       wr->sg_list->length);
	}
	return ibv_wr_complete(qp);
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = v.c.extended ? post_extended(wr) : ibv_post_send(v.c.id->qp, wr, &bad);

	if (err)
		fail("ibv_post_send: %s", strerror(err));
}

static void post_recv(uint32_t n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)(buffer(&v.recv, n) + MARGIN),
			       .length = MAX_LEN, .lkey = v.recv.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(W_RECV, n), .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(v.c.id->qp, &wr, &bad);

	if (err)
		fail("ibv_post_recv: %s", strerror(err));
}

/* Fills @wr with a note. The caller has seen that a buffer is free. */
static void make_note(struct ibv_send_wr *wr, struct ibv_sge *sge, enum note_type type,
		      uint32_t slot, uint64_t op)
{
	uint32_t n = v.free_notes[--v.n_free];
	struct note *note = (struct note *)v.notes.mem + n;

	*note = (struct note){ .type = htobe32(type), .slot = htobe32(slot), .op = htobe64(op) };
	*sge = (struct ibv_sge){ .addr = (uintptr_t)note, .length = sizeof(*note),
				 .lkey = v.notes.mr->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = wr_id(W_NOTE, n),
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	/* Both ways of sending small things. */
	if (sizeof(*note) <= v.c.max_inline && op % 2)
		wr->send_flags |= IBV_SEND_INLINE;
}

static struct note *note_of(const struct ibv_send_wr *wr)
{
	return (struct note *)(uintptr_t)wr->sg_list->addr;
}

static void post_note(enum note_type type, uint32_t slot, uint64_t op)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	make_note(&wr, &sge, type, slot, op);
	post(&wr);
}

static bool has_imm(const struct op *op, uint64_t i)
{
	return v.hello.kinds & WITH_IMM && op->kind != READ && i % 2;
}

static void start_write(const struct op *op, uint32_t slot, uint64_t i, struct ibv_send_wr *data)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	data->opcode = IBV_WR_RDMA_WRITE;
	data->wr.rdma.rkey = v.peer.rkey;
	data->wr.rdma.remote_addr = v.peer.dst + (uint64_t)slot * STRIDE + op->to;
	if (has_imm(op, i)) {
		data->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		data->imm_data = htobe32(slot << IMM_OP_BITS | (i & IMM_OP_MASK));
	} else {
		make_note(&wr, &sge, WROTE, slot, i);
		data->next = &wr;
	}
	post(data);
}

static void start_read(uint32_t slot, uint64_t i, const struct ibv_send_wr *data)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	make_note(&wr, &sge, READ_ME, slot, i);
	note_of(&wr)->addr = htobe64(data->sg_list->addr);
	note_of(&wr)->rkey = htobe32(v.src.mr->rkey);
	note_of(&wr)->len = htobe32(data->sg_list->length);
	post(&wr);
}

static void start_send(const struct op *op, uint32_t slot, uint64_t i, struct ibv_send_wr *data)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	make_note(&wr, &sge, DATA, slot, i);
	data->opcode = has_imm(op, i) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	data->imm_data = htobe32((uint32_t)op->key);
	wr.next = data;
	post(&wr);
}

static void start_op(uint32_t slot)
{
	uint64_t i = v.next_op++;
	struct op op = op_of(v.me, i);
	uint8_t *p = buffer(&v.src, slot) + op.from;
	struct ibv_sge sge = { .addr = (uintptr_t)p, .length = op.len, .lkey = v.src.mr->lkey };
	struct ibv_send_wr data = { .wr_id = wr_id(W_SOURCE, slot), .sg_list = &sge,
				    .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };

	pattern_fill(p, op.len, op.key);
	v.mine[slot] = (struct mine){ .busy = true, .op = i };
	v.out_bytes += op.len;
	say("starting", i, &op);
	if (op.kind == WRITE)
		start_write(&op, slot, i, &data);
	else if (op.kind == READ)
		start_read(slot, i, &data);
	else
		start_send(&op, slot, i, &data);
}

static void post_read(uint32_t slot, const struct theirs *t)
{
	struct op op = op_of(!v.me, t->note.op);
	struct ibv_sge sge = { .addr = (uintptr_t)(buffer(&v.sink, slot) + op.to),
			       .length = op.len, .lkey = v.sink.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id(W_SINK, slot), .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = t->note.addr;
	wr.wr.rdma.rkey = t->note.rkey;
	post(&wr);
}

/*
 * Notes are what bounds the send queue: each takes a buffer until its
 * completion, and no operation posts more than one more beside it.
 */
static void answer_peer(void)
{
	uint32_t s;

	for (s = 0; s < v.window && v.n_free; s++) {
		struct theirs *t = &v.theirs[s];

		if (t->want_read) {
			t->want_read = false;
			post_read(s, t);
		}
		if (t->want_ack) {
			t->want_ack = false;
			post_note(ACK, s, t->note.op);
		}
	}
}

static bool all_started(void)
{
	return v.next_op >= KINDS * N_SIZES && v.out_bytes >= v.hello.total / 2;
}

static void go_on(void)
{
	uint32_t s;

	answer_peer();
	for (s = 0; s < v.window && v.n_free && !all_started(); s++)
		if (!v.mine[s].busy)
			start_op(s);
	if (all_started() && v.n_acked == v.next_op && !v.end_posted && v.n_free) {
		v.end_posted = true;
		post_note(END, 0, v.next_op);
	}
}

/* ---- what comes in ---- */

static struct note to_host(const struct note *n)
{
	return (struct note){
		.type = be32toh(n->type),
		.slot = be32toh(n->slot),
		.op = be64toh(n->op),
		.addr = be64toh(n->addr),
		.rkey = be32toh(n->rkey),
		.len = be32toh(n->len),
	};
}

/* The source of one of ours will not be read any more. */
static void overwrite(uint32_t slot)
{
	struct op op = op_of(v.me, v.mine[slot].op);

	memset(buffer(&v.src, slot) + op.from, ~CANARY, op.len);
	v.mine[slot].sent = true;
}

static void take_ack(const struct note *n)
{
	struct mine *m = &v.mine[n->slot];

	if (!m->busy || m->op != n->op)
		fail("an answer to operation %" PRIu64 ", which is not under way", n->op);
	if (op_of(v.me, m->op).kind == READ)
		overwrite(n->slot);
	v.n_acked++;
	/* Not before its own completion, which can come after the answer. */
	m->busy = !m->sent;
	m->op = UINT64_MAX;
}

static void take_operation(const struct note *n)
{
	struct theirs *t = &v.theirs[n->slot];
	struct op op;

	if (n->op != v.their_next++)
		fail("operation %" PRIu64 " came where %" PRIu64 " was due", n->op,
		     v.their_next - 1);
	t->note = *n;
	op = op_of(!v.me, n->op);
	if ((n->type == WROTE) != (op.kind == WRITE) || (n->type == DATA) != (op.kind == SEND))
		fail("operation %" PRIu64 " should be a %s", n->op, kind_names[op.kind]);
	if (n->type == WROTE) {
		check(buffer(&v.dst, n->slot) + op.to, n->op, &op);
		t->want_ack = true;
	} else if (n->type == READ_ME) {
		t->want_read = true;
	} else {
		v.data_note = &t->note;
	}
}

static void take_note(const struct note *raw, uint32_t len)
{
	struct note n = to_host(raw);

	if (len != sizeof(n) || n.slot >= v.window)
		fail("a message of %u bytes, type %u, slot %u", len, n.type, n.slot);
	switch (n.type) {
	case ACK:
		take_ack(&n);
		break;
	case WROTE:
	case READ_ME:
	case DATA:
		take_operation(&n);
		break;
	case END:
		if (n.op != v.in_ops)
			fail("%" PRIu64 " operations came, not %" PRIu64, v.in_ops, n.op);
		v.end_received = true;
		break;
	default:
		fail("a message of type %u", n.type);
	}
}

/* A Write that told by its immediate that it is there. */
static void take_write(const struct ibv_wc *wc)
{
	uint32_t imm = be32toh(wc->imm_data);
	struct note n = { .type = WROTE, .slot = imm >> IMM_OP_BITS,
			  .op = (v.their_next & ~(uint64_t)IMM_OP_MASK) | (imm & IMM_OP_MASK) };
	struct op op = op_of(!v.me, n.op);

	if (n.slot >= v.window || !has_imm(&op, n.op))
		fail("an immediate %#x that should not be", imm);
	if (wc->byte_len != op.len)
		fail("Write %" PRIu64 ", %u bytes: %u came", n.op, op.len, wc->byte_len);
	take_operation(&n);
}

static void take_data(uint8_t *p, const struct ibv_wc *wc)
{
	struct note *n = v.data_note;
	struct op op = op_of(!v.me, n->op);

	if (wc->byte_len != op.len)
		fail("Send %" PRIu64 ", %u bytes: %u came", n->op, op.len, wc->byte_len);
	if (has_imm(&op, n->op) != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    (has_imm(&op, n->op) && wc->imm_data != htobe32((uint32_t)op.key)))
		fail("Send %" PRIu64 ": another immediate", n->op);
	check(p, n->op, &op);
	v.theirs[n->slot].want_ack = true;
	v.data_note = NULL;
}

static void take_message(uint32_t n, const struct ibv_wc *wc)
{
	uint8_t *p = buffer(&v.recv, n) + MARGIN;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		take_write(wc);
	} else if (v.data_note) {
		take_data(p, wc);
	} else {
		take_note((struct note *)p, wc->byte_len);
		memset(p, CANARY, sizeof(struct note));
	}
	post_recv(n);
}

static void take_source_done(uint32_t slot)
{
	struct mine *m = &v.mine[slot];

	if (m->op == UINT64_MAX) {
		/* Answered already. */
		m->busy = false;
		return;
	}
	overwrite(slot);
}

static void take_read(uint32_t slot)
{
	struct theirs *t = &v.theirs[slot];
	struct op op = op_of(!v.me, t->note.op);

	check(buffer(&v.sink, slot) + op.to, t->note.op, &op);
	t->want_ack = true;
}

static void take_completion(const struct ibv_wc *wc)
{
	uint32_t n = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS)
		fail("completion: %s (what %u, number %u, vendor error %#x)",
		     ibv_wc_status_str(wc->status), (unsigned int)(wc->wr_id >> 32), n,
		     wc->vendor_err);
	switch (wc->wr_id >> 32) {
	case W_SOURCE:
		take_source_done(n);
		break;
	case W_NOTE:
		if (be32toh(((struct note *)v.notes.mem)[n].type) == END)
			v.end_sent = true;
		v.free_notes[v.n_free++] = n;
		break;
	case W_SINK:
		take_read(n);
		break;
	case W_RECV:
		take_message(n, wc);
		break;
	default:
		fail("a completion with wr_id %#" PRIx64, wc->wr_id);
	}
}

/* ---- the whole ---- */

static struct area make_area(size_t len, int access)
{
	struct area a;

	if (posix_memalign((void **)&a.mem, 4096, len))
		fail("no memory");
	memset(a.mem, CANARY, len);
	a.mr = conn_reg(&v.c, a.mem, len, access);
	return a;
}

static void set_up(uint32_t window)
{
	uint32_t i;

	v.window = window;
	/* An operation brings two messages at most, and ours bring one each. */
	v.recvs = 3 * window + 2;
	v.note_slots = 4 * window;
	if (v.hello.kinds & WITH_IMM)
		v.c.more_ops = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM;
	conn_make_qp(&v.c, 2 * v.note_slots + window, v.recvs, sizeof(struct note));
	v.src = make_area((size_t)window * STRIDE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	v.dst = make_area((size_t)window * STRIDE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	/* iWARP: what a Read brings is written by the peer. */
	v.sink = make_area((size_t)window * STRIDE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	v.recv = make_area((size_t)v.recvs * STRIDE, IBV_ACCESS_LOCAL_WRITE);
	v.notes = make_area(v.note_slots * sizeof(struct note), IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < v.note_slots; i++)
		v.free_notes[v.n_free++] = i;
	for (i = 0; i < v.recvs; i++)
		post_recv(i);
}

static void read_hello(void)
{
	const struct hello *h = (const void *)v.c.peer;

	if (be32toh(h->magic) != MAGIC)
		fail("the peer is no weft-verify");
	v.peer = (struct hello){ .window = be32toh(h->window), .seed = be64toh(h->seed),
				 .total = be64toh(h->total), .dst = be64toh(h->dst),
				 .rkey = be32toh(h->rkey), .kinds = be32toh(h->kinds) };
}

static struct hello own_hello(void)
{
	return (struct hello){ .magic = htobe32(MAGIC), .window = htobe32(v.window),
			       .seed = htobe64(v.hello.seed), .total = htobe64(v.hello.total),
			       .dst = htobe64((uintptr_t)v.dst.mem),
			       .rkey = htobe32(v.dst.mr->rkey), .kinds = htobe32(v.hello.kinds) };
}

static void serve(const char *addr, const char *port)
{
	struct hello h;

	v.me = 1;
	conn_listen(&v.c, addr, port);
	conn_await_request(&v.c);
	read_hello();
	if (!v.peer.window || v.peer.window > MAX_WINDOW || !(v.peer.kinds & 7))
		fail("the client asks for what makes no sense");
	v.hello = v.peer;
	set_up(v.peer.window);
	h = own_hello();
	conn_accept(&v.c, &h, sizeof(h));
}

static void call(const char *host, const char *port)
{
	struct hello h;

	conn_resolve(&v.c, host, port);
	set_up(v.hello.window);
	h = own_hello();
	conn_connect(&v.c, &h, sizeof(h));
	read_hello();
}

/* Now the connection may end: both lists are done, and END was sent. */
static bool done(void)
{
	return v.end_received && v.end_sent;
}

/* The peer knows that we are done and may have left before our last completion. */
static bool almost_done(void)
{
	return v.end_received && v.end_posted;
}

static void run(void)
{
	struct ibv_wc wc[16];
	int n, i;

	while (!done()) {
		go_on();
		n = conn_poll(&v.c, wc, 16, v.c.timeout_ms);
		if (!n && !almost_done())
			fail(v.c.gone ? "the peer has gone" : "no progress for %d ms",
			     v.c.timeout_ms);
		if (!n)
			return;
		for (i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS && almost_done())
				return;
			take_completion(&wc[i]);
		}
	}
}

static void report(const struct timespec *t0)
{
	uint64_t bytes = v.in_bytes + v.out_bytes;
	struct timespec t1;
	double s;

	clock_gettime(CLOCK_MONOTONIC, &t1);
	s = (t1.tv_sec - t0->tv_sec) + (t1.tv_nsec - t0->tv_nsec) / 1e9;
	printf("verify: OK bytes=%" PRIu64 " in=%" PRIu64 " out=%" PRIu64 " writes=%" PRIu64
	       " reads=%" PRIu64 " sends=%" PRIu64 " seed=%" PRIu64 " seconds=%.1f MB/s=%.0f\n",
	       bytes, v.in_bytes, v.out_bytes, v.count[WRITE], v.count[READ], v.count[SEND],
	       v.hello.seed, s, bytes / s / 1e6);
}

static uint32_t parse_kinds(const char *s)
{
	uint32_t kinds = 0;

	for (; *s; s++)
		kinds |= *s == 'w' ? 1u << WRITE : *s == 'r' ? 1u << READ :
			 *s == 's' ? 1u << SEND : *s == 'i' ? WITH_IMM : 0;
	if (!(kinds & (WITH_IMM - 1)))
		fail("-k wants some of the letters w, r and s, and i beside them");
	return kinds;
}

static void usage(void)
{
	fprintf(stderr,
		"weft-verify -l [-b ADDR] [-p PORT] [-T SECONDS] [-P] [-x] [-v]\n"
		"weft-verify    [-p PORT] [-m MB] [-S SEED] [-w WINDOW] [-k wrsi] [-z] [-T SECONDS] [-P] [-x]\n"
		"               [-v] HOST\n"
		"  -l  wait for one client (which says what is done)\n"
		"  -m  megabytes, both directions together (64)\n"
		"  -S  seed of sizes and patterns (1)\n"
		"  -w  operations under way at a time (6, at most 16)\n"
		"  -k  kinds: w Write, r Read, s Send (wrs); i: with immediate data now and then\n"
		"  -z  no Read of zero octets: of one instead\n"
		"  -T  give up after so long without progress (60)\n"
		"  -P  poll instead of sleeping on events\n"
		"  -x  post by ibv_wr_* instead of ibv_post_send\n");
	exit(2);
}

static void parse(int argc, char **argv, const char **addr, const char **port)
{
	uint32_t kinds = (1u << KINDS) - 1, reads = 0;
	int opt;

	while ((opt = getopt(argc, argv, "lb:p:m:S:w:k:zT:Pxv")) != -1) {
		switch (opt) {
		case 'l': v.server = true; break;
		case 'b': *addr = optarg; break;
		case 'p': *port = optarg; break;
		case 'm': v.hello.total = strtoull(optarg, NULL, 0) << 20; break;
		case 'S': v.hello.seed = strtoull(optarg, NULL, 0); break;
		case 'w': v.hello.window = strtoul(optarg, NULL, 0); break;
		case 'k': kinds = parse_kinds(optarg); break;
		case 'z': reads = NO_EMPTY_READ; break;
		case 'T': v.c.timeout_ms = atoi(optarg) * 1000; break;
		case 'P': v.c.busy_poll = true; break;
		case 'x': v.c.extended = true; break;
		case 'v': v.verbose = true; break;
		default: usage();
		}
	}
	v.hello.kinds = kinds | reads;
	if (v.server == (optind < argc) || !v.hello.window || v.hello.window > MAX_WINDOW)
		usage();
	if (!v.server)
		*addr = argv[optind];
}

int main(int argc, char **argv)
{
	const char *addr = NULL, *port = "7175";
	struct timespec t0;

	conn_program = "verify";
	setvbuf(stdout, NULL, _IOLBF, 0);
	v.c.timeout_ms = 60000;
	v.hello = (struct hello){ .window = 6, .seed = 1, .total = 64 << 20 };
	parse(argc, argv, &addr, &port);
	if (v.server)
		serve(addr, port);
	else
		call(addr, port);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	run();
	report(&t0);
	conn_close(&v.c);
	return 0;
}
