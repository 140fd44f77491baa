// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The interface between weft and its provider (rdma/weft-abi.h), as used by an older provider,
 * which knows less, and a newer one, which sends more. Each case opens the device that has ADDR and
 * writes commands to it directly. TAP on stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/weft-abi.h>

#include "cases.h"
#include "conn.h"

#define KNOWN		((uint64_t)(WEFT_FEATURE_ROCE_TYPES << 1) - 1)
#define MAX		256

static struct {
	struct conn c;			/* names the device */
	char path[128];			/* of its command file */
	int fd;
	uint32_t pd;
} t;

/* ---- commands ---- */

/*
 * Command @number, whose core's part is @in, *@in_len octets, and begins with the place of the answer;
 * @more is the driver's. Returns 0 or an errno value.
 */
static int command(uint32_t number, void *in, size_t in_len, const void *more, size_t more_len,
		   void *out, size_t out_len)
{
	uint8_t words[MAX] = { 0 };
	struct ib_uverbs_cmd_hdr hdr = {
		.command = number,
		.in_words = (sizeof(hdr) + in_len + more_len) / 4,
		.out_words = out_len / 4,
	};

	*(uint64_t *)in = (uintptr_t)out;
	memcpy(words, &hdr, sizeof(hdr));
	memcpy(words + sizeof(hdr), in, in_len);
	if (more_len)
		memcpy(words + sizeof(hdr) + in_len, more, more_len);
	memset(out, 0xEE, out_len);
	return write(t.fd, words, hdr.in_words * 4) < 0 ? errno : 0;
}

/* What verbs' commands look like that have a driver's answer behind the core's. */
#define ANSWER(core, driver) struct { core c; driver d; } __attribute__((packed, aligned(8)))

typedef ANSWER(struct ib_uverbs_get_context_resp, struct weft_alloc_ucontext_resp) context_answer;
typedef ANSWER(struct ib_uverbs_create_cq_resp, struct weft_create_cq_resp) cq_answer;
typedef ANSWER(struct ib_uverbs_resize_cq_resp, struct weft_resize_cq_resp) resize_answer;
typedef ANSWER(struct ib_uverbs_create_qp_resp, struct weft_create_qp_resp) qp_answer;
typedef ANSWER(struct ib_uverbs_create_srq_resp, struct weft_create_srq_resp) srq_answer;

static int get_context(const void *more, size_t more_len, context_answer *a, size_t len)
{
	struct ib_uverbs_get_context in = {};
	int err = command(IB_USER_VERBS_CMD_GET_CONTEXT, &in, sizeof(in), more, more_len, a, len);

	/* Its events are not read here. */
	if (!err)
		close(a->c.async_fd);
	return err;
}

/* The context that has @features, and a PD of it; returns what is in force. */
static uint64_t begin(uint64_t features)
{
	struct weft_alloc_ucontext_req req = { .features = features };
	struct ib_uverbs_alloc_pd in = {};
	struct ib_uverbs_alloc_pd_resp pd;
	context_answer a;

	if (get_context(&req, sizeof(req), &a, sizeof(a)) ||
	    command(IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof(in), NULL, 0, &pd, sizeof(pd)))
		fail("no context: %s", strerror(errno));
	t.pd = pd.pd_handle;
	return a.d.features;
}

static int create_cq(uint32_t cqe, cq_answer *a)
{
	struct ib_uverbs_create_cq in = { .cqe = cqe, .comp_channel = -1 };

	return command(IB_USER_VERBS_CMD_CREATE_CQ, &in, sizeof(in), NULL, 0, a, sizeof(*a));
}

static int create_srq(srq_answer *a)
{
	struct ib_uverbs_create_srq in = { .pd_handle = t.pd, .max_wr = 5, .max_sge = 5 };

	return command(IB_USER_VERBS_CMD_CREATE_SRQ, &in, sizeof(in), NULL, 0, a, sizeof(*a));
}

static int create_qp(uint32_t cq, const srq_answer *srq, qp_answer *a)
{
	struct ib_uverbs_create_qp in = {
		.pd_handle = t.pd, .send_cq_handle = cq, .recv_cq_handle = cq,
		.srq_handle = srq ? srq->c.srq_handle : 0, .is_srq = !!srq,
		.max_send_wr = 5, .max_recv_wr = 5, .max_send_sge = 3, .max_recv_sge = 5,
		.max_inline_data = 100, .qp_type = IBV_QPT_RC,
	};

	return command(IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof(in), NULL, 0, a, sizeof(*a));
}

static int reg_mr(const void *more, size_t more_len)
{
	static uint8_t mem[64] __attribute__((aligned(64)));
	struct ib_uverbs_reg_mr in = {
		.start = (uintptr_t)mem, .length = sizeof(mem), .hca_va = (uintptr_t)mem,
		.pd_handle = t.pd, .access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct { struct ib_uverbs_reg_mr_resp r; uint32_t pad; } out;

	return command(IB_USER_VERBS_CMD_REG_MR, &in, sizeof(in), more, more_len, &out, sizeof(out.r));
}

/* ---- methods ---- */

#define HANDLE(id, handle) { .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle }

static int method(uint16_t object, uint16_t number, const struct ib_uverbs_attr *attr, uint16_t n)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[3];
	} cmd = {
		.hdr = { .length = sizeof(cmd.hdr) + n * sizeof(*attr), .object_id = object,
			 .method_id = number, .num_attrs = n, .driver_id = WEFT_DRIVER_ID },
	};

	memcpy(cmd.attr, attr, n * sizeof(*attr));
	return ioctl(t.fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

/* A doorbell of an existing handle, and of an unknown one. */
static bool rings(uint16_t object, uint16_t number, uint16_t id, uint32_t handle)
{
	const struct ib_uverbs_attr there = HANDLE(id, handle), nothing = HANDLE(id, 9999);

	return !method(object, number, &there, 1) && method(object, number, &nothing, 1) == ENOENT;
}

static int resize_srq(uint32_t srq, uint32_t max_wr, struct weft_modify_srq_resp *resp)
{
	const struct ib_uverbs_attr attr[] = {
		HANDLE(WEFT_ATTR_SRQ_RESIZE_HANDLE, srq),
		{ .attr_id = WEFT_ATTR_SRQ_RESIZE_MAX_WR, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(max_wr), .data = max_wr },
		{ .attr_id = WEFT_ATTR_SRQ_RESIZE_RESP, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(*resp), .data = (uintptr_t)resp },
	};

	return method(UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_RESIZE, attr, 3);
}

static int resize_cq(uint32_t cq, uint32_t cqe, resize_answer *a)
{
	struct ib_uverbs_resize_cq in = { .cq_handle = cq, .cqe = cqe };

	return command(IB_USER_VERBS_CMD_RESIZE_CQ, &in, sizeof(in), NULL, 0, a, sizeof(*a));
}

/* ---- contexts ---- */

static bool an_answer_is_whole(void)
{
	const struct weft_alloc_ucontext_req req = { .features = ~0ULL };
	context_answer a;

	return !get_context(&req, sizeof(req), &a, sizeof(a)) && a.d.features &&
	       !(a.d.features & ~KNOWN) && a.d.abi_version == WEFT_ABI_VERSION &&
	       a.d.max_inline == WEFT_MAX_INLINE && !a.d.reserved[0] && !a.d.reserved[1];
}

static void start_over(void)
{
	close(t.fd);
	t.fd = open(t.path, O_RDWR | O_CLOEXEC);
	if (t.fd < 0)
		fail("%s: %s", t.path, strerror(errno));
}

/* Each bit alone, and what it is answered with is a bit that all were answered with. */
static bool in_force_is_what_both_have(void)
{
	uint64_t all = begin(~0ULL), bit;

	for (bit = 1; bit & KNOWN; bit <<= 1) {
		start_over();
		if (begin(bit) != (all & bit))
			return false;
	}
	return true;
}

static bool a_program_that_offers_nothing_gets_nothing(void)
{
	context_answer a;

	return !get_context(NULL, 0, &a, sizeof(a)) && !a.d.features;
}

static bool a_short_answer_is_what_fits(void)
{
	const uint64_t features = ~0ULL;
	context_answer a, more;
	size_t len = sizeof(a.c) + sizeof(a.d.features);

	memset(&more, 0xEE, sizeof(more));
	a = more;
	return !get_context(&features, sizeof(features), &a, len) && a.d.features &&
	       !memcmp((uint8_t *)&a + len, (uint8_t *)&more + len, sizeof(a) - len);
}

struct longer_context {
	struct weft_alloc_ucontext_req req;
	uint64_t more[2];
};

static bool a_longer_request_of_zeros_is_taken(void)
{
	const struct longer_context req = { .req.features = ~0ULL };
	context_answer a;

	return !get_context(&req, sizeof(req), &a, sizeof(a)) && a.d.features;
}

static bool a_request_for_unknown_features_is_refused(void)
{
	const struct longer_context req = { .req.features = ~0ULL, .more = { 0, 1 } };
	context_answer a;

	return get_context(&req, sizeof(req), &a, sizeof(a)) == EOPNOTSUPP;
}

static bool another_is_told_what_is_in_force(void)
{
	uint64_t features = begin(WEFT_FEATURE_RESIZE | WEFT_FEATURE_MW);
	struct weft_alloc_ucontext_resp resp = {};
	const struct ib_uverbs_attr attr = {
		.attr_id = WEFT_ATTR_QUERY_CONTEXT_RESP, .flags = UVERBS_ATTR_F_MANDATORY,
		.len = sizeof(resp), .data = (uintptr_t)&resp,
	};

	return !method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, &attr, 1) &&
	       resp.features == features && resp.abi_version == WEFT_ABI_VERSION &&
	       resp.max_inline == WEFT_MAX_INLINE;
}

static bool the_device_says_whose_it_is(void)
{
	struct ibv_device_attr_ex a;

	return !ibv_query_device_ex(t.c.id->verbs, NULL, &a) &&
	       a.orig_attr.vendor_id == WEFT_VENDOR_ID && a.hca_core_clock == WEFT_CLOCK_KHZ;
}

/* ---- rings ---- */

/* A new ring, with @flags, and room for @least entries of @stride slots. */
static bool is_ring(const struct weft_ring_map *m, uint32_t least, uint32_t stride, uint32_t flags)
{
	const struct weft_ring *ring;
	bool ok;

	if (!m->slots || m->slots & (m->slots - 1) || m->slots / stride < least ||
	    m->size < WEFT_RING_DATA + (uint64_t)m->slots * WEFT_SLOT_SIZE)
		return false;
	ring = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd, m->offset);
	if (ring == MAP_FAILED)
		return false;
	ok = !ring->user_idx && !ring->kern_idx && ring->arm == WEFT_ARM_NONE && ring->flags == flags;
	munmap((void *)ring, m->size);
	return ok;
}

static bool each_queue_has_its_ring(void)
{
	srq_answer srq;
	cq_answer cq;
	qp_answer qp;

	begin(~0ULL);
	if (create_cq(5, &cq) || create_qp(cq.c.cq_handle, NULL, &qp) || create_srq(&srq))
		return false;
	/* Three SGEs or 100 octets are three slots; five SGEs of a receive two. */
	return is_ring(&cq.d.cq, cq.c.cqe, 1, 0) && cq.d.cq.stride == 1 && cq.c.cqe >= 5 &&
	       is_ring(&qp.d.sq, 5, qp.d.sq.stride, WEFT_RING_KICK) && qp.d.sq.stride >= 3 &&
	       is_ring(&qp.d.rq, 5, qp.d.rq.stride, 0) && qp.d.rq.stride == 2 &&
	       is_ring(&srq.d.srq, 5, srq.d.srq.stride, 0) && srq.d.srq.stride == 2;
}

static bool a_queue_pair_with_an_srq_has_one_ring(void)
{
	srq_answer srq;
	cq_answer cq;
	qp_answer qp;

	begin(~0ULL);
	return !create_cq(5, &cq) && !create_srq(&srq) && !create_qp(cq.c.cq_handle, &srq, &qp) &&
	       qp.d.sq.slots && !qp.d.rq.slots && !qp.d.rq.size;
}

static bool each_object_has_a_number(void)
{
	srq_answer srq[2];
	cq_answer cq[2];
	qp_answer qp;

	begin(~0ULL);
	return !create_cq(5, &cq[0]) && !create_cq(5, &cq[1]) && cq[0].d.cq_id != cq[1].d.cq_id &&
	       !create_srq(&srq[0]) && !create_srq(&srq[1]) &&
	       srq[0].d.srq_id != srq[1].d.srq_id &&
	       !create_qp(cq[0].c.cq_handle, NULL, &qp) && qp.d.qp_id && qp.d.qp_id == qp.c.qpn;
}

static bool doorbells_ring_what_there_is(void)
{
	srq_answer srq;
	cq_answer cq;
	qp_answer qp;

	begin(~0ULL);
	return !create_cq(5, &cq) && !create_qp(cq.c.cq_handle, NULL, &qp) && !create_srq(&srq) &&
	       rings(UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK, WEFT_ATTR_QP_KICK_HANDLE,
		     qp.c.qp_handle) &&
	       rings(UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, WEFT_ATTR_CQ_KICK_HANDLE,
		     cq.c.cq_handle) &&
	       rings(UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_KICK, WEFT_ATTR_SRQ_KICK_HANDLE,
		     srq.c.srq_handle);
}

static bool a_new_size_is_a_new_ring(void)
{
	struct weft_modify_srq_resp resp;
	resize_answer a;
	srq_answer srq;
	cq_answer cq;

	begin(WEFT_FEATURE_RESIZE);
	return !create_cq(5, &cq) && !create_srq(&srq) && !resize_cq(cq.c.cq_handle, 500, &a) &&
	       a.d.cq.offset != cq.d.cq.offset && is_ring(&a.d.cq, 500, 1, 0) &&
	       !resize_srq(srq.c.srq_handle, 500, &resp) &&
	       resp.srq.offset != srq.d.srq.offset && is_ring(&resp.srq, 500, resp.srq.stride, 0);
}

static bool a_program_without_resize_gets_no_new_ring(void)
{
	struct weft_modify_srq_resp resp;
	resize_answer a;
	srq_answer srq;
	cq_answer cq;

	begin(KNOWN & ~WEFT_FEATURE_RESIZE);
	return !create_cq(5, &cq) && !create_srq(&srq) &&
	       resize_cq(cq.c.cq_handle, 500, &a) == EOPNOTSUPP &&
	       resize_srq(srq.c.srq_handle, 500, &resp) == EOPNOTSUPP;
}

/* Has a command no answer, its handle comes first; else behind where the answer goes. */
static bool finds_nothing(uint32_t number, size_t answer)
{
	const uint32_t nothing = 9999;
	uint64_t place[4], to = (uintptr_t)place;
	struct ib_uverbs_cmd_hdr hdr = {
		.command = number, .in_words = answer ? 6 : 3, .out_words = answer / 4,
	};
	uint8_t words[24] = { 0 };

	memcpy(words, &hdr, sizeof(hdr));
	memcpy(words + sizeof(hdr), &to, sizeof(to));
	memcpy(words + sizeof(hdr) + (answer ? sizeof(to) : 0), &nothing, sizeof(nothing));
	return write(t.fd, words, hdr.in_words * 4) < 0 && errno == ENOENT;
}

/* As the kernel's own part of verbs says it for every driver. */
static bool what_is_not_there_cannot_be_destroyed(void)
{
	begin(KNOWN);
	return finds_nothing(IB_USER_VERBS_CMD_DEALLOC_PD, 0) &&
	       finds_nothing(IB_USER_VERBS_CMD_DEREG_MR, 0) &&
	       finds_nothing(IB_USER_VERBS_CMD_DEALLOC_MW, 0) &&
	       finds_nothing(IB_USER_VERBS_CMD_DESTROY_CQ, sizeof(struct ib_uverbs_destroy_cq_resp)) &&
	       finds_nothing(IB_USER_VERBS_CMD_DESTROY_QP, sizeof(struct ib_uverbs_destroy_qp_resp)) &&
	       finds_nothing(IB_USER_VERBS_CMD_DESTROY_SRQ, sizeof(struct ib_uverbs_destroy_srq_resp));
}

/* ---- regions ---- */

struct longer_reg_mr {
	struct weft_reg_mr_req req;
	uint64_t more;
};

static bool a_region_is_what_was_asked_for(void)
{
	const struct longer_reg_mr zeros = {}, more = { .more = 1 };
	const struct longer_reg_mr null = { .req.flags = WEFT_REG_MR_NULL };
	const struct longer_reg_mr flag = { .req.flags = WEFT_REG_MR_NULL << 1 };
	const struct longer_reg_mr reserved = { .req.reserved = 1 };

	begin(WEFT_FEATURE_NULL_MR);
	return !reg_mr(NULL, 0) && !reg_mr(&zeros, sizeof(zeros)) && !reg_mr(&null, sizeof(null)) &&
	       !reg_mr(&null, sizeof(null.req.flags)) && reg_mr(&more, sizeof(more)) == EINVAL &&
	       reg_mr(&flag, sizeof(flag.req)) == EINVAL &&
	       reg_mr(&reserved, sizeof(reserved.req)) == EINVAL;
}

static bool a_program_without_null_regions_gets_none(void)
{
	const struct weft_reg_mr_req null = { .flags = WEFT_REG_MR_NULL };

	begin(KNOWN & ~WEFT_FEATURE_NULL_MR);
	return reg_mr(&null, sizeof(null)) == EINVAL && !reg_mr(NULL, 0);
}

/* ---- running ---- */

static void open_file(const void *unused)
{
	(void)unused;
	t.fd = -1;
	start_over();
}

static void close_file(void)
{
	close(t.fd);
}

static const struct a_case list[] = {
	{ "an-answer-is-whole", an_answer_is_whole, NULL },
	{ "features-in-force-are-those-of-both", in_force_is_what_both_have, NULL },
	{ "a-provider-without-features-gets-none", a_program_that_offers_nothing_gets_nothing, NULL },
	{ "a-short-answer-is-what-fits", a_short_answer_is_what_fits, NULL },
	{ "a-longer-request-of-zeros-is-taken", a_longer_request_of_zeros_is_taken, NULL },
	{ "an-unknown-request-is-refused",
	  a_request_for_unknown_features_is_refused, NULL },
	{ "another-is-told-what-is-in-force", another_is_told_what_is_in_force, NULL },
	{ "the-device-says-whose-it-is", the_device_says_whose_it_is, NULL },
	{ "each-queue-has-its-ring", each_queue_has_its_ring, NULL },
	{ "a-queue-pair-with-an-srq-has-one-ring", a_queue_pair_with_an_srq_has_one_ring, NULL },
	{ "each-object-has-a-number", each_object_has_a_number, NULL },
	{ "doorbells-ring-existing-handles", doorbells_ring_what_there_is, NULL },
	{ "a-new-size-is-a-new-ring", a_new_size_is_a_new_ring, NULL },
	{ "a-provider-without-new-rings-gets-none", a_program_without_resize_gets_no_new_ring, NULL },
	{ "an-unknown-object-cannot-be-destroyed", what_is_not_there_cannot_be_destroyed, NULL },
	{ "a-region-is-what-was-asked-for", a_region_is_what_was_asked_for, NULL },
	{ "a-provider-without-null-regions-gets-none",
	  a_program_without_null_regions_gets_none, NULL },
};

static const struct cases cases = CASES(open_file, close_file, list);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-abi");

	t.c.timeout_ms = 60000;
	conn_resolve(&t.c, addr, "7477");
	snprintf(t.path, sizeof(t.path), "/dev/infiniband/%s", t.c.id->verbs->device->dev_name);
	cases_run(&cases, "");
	rdma_destroy_id(t.c.id);
	return cases_end();
}
