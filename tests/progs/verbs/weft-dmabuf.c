// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of dmabufs, which udmabuf exports from a memfd, so that this program can read what the
 * device wrote. Each case has a connection of its own, both ends in this process, over the device
 * that has ADDR. TAP on stdout. Nothing here knows weft.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/udmabuf.h>

#include "cases.h"
#include "conn.h"
#include "pattern.h"

#define SIZE	(16 * 4096)
#define OFFSET	(4096 + 101)	/* a region's, in the dmabuf */
#define LEN	(10 * 4096)
#define IOVA	(0x123456789000ULL + 101)
#define DEPTH	8
#define TIMEOUT	60000	/* ms, for what must come */
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The client asks, the server has the dmabuf. */
static struct {
	struct conn c, s;
	const char *addr, *port;
	int memfd, fd;
	uint8_t *mem;			/* the dmabuf's, by the memfd */
	uint8_t from[SIZE];
	struct ibv_mr *from_mr;
	uint64_t key;
} t;

/* ---- the dmabuf ---- */

static int export(int memfd)
{
	struct udmabuf_create how = { .memfd = memfd, .size = SIZE, .flags = UDMABUF_FLAGS_CLOEXEC };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int fd = dev < 0 ? -1 : ioctl(dev, UDMABUF_CREATE, &how);

	if (fd < 0)
		fail("/dev/udmabuf: %s", strerror(errno));
	close(dev);
	return fd;
}

static void make_dmabuf(void)
{
	t.memfd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t.memfd < 0 || ftruncate(t.memfd, SIZE) || fcntl(t.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fail("no memfd: %s", strerror(errno));
	t.mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t.memfd, 0);
	if (t.mem == MAP_FAILED)
		fail("no memory");
	t.fd = export(t.memfd);
}

static void open_pair(const void *unused)
{
	(void)unused;
	conn_pair(&t.c, &t.s, t.addr, t.port, DEPTH, 0);
	make_dmabuf();
	pattern_fill(t.from, SIZE, ++t.key);
	t.from_mr = conn_reg(&t.c, t.from, SIZE, IBV_ACCESS_LOCAL_WRITE);
}

static void close_pair(void)
{
	conn_close(&t.c);
	conn_close(&t.s);
	if (t.fd >= 0)
		close(t.fd);
	close(t.memfd);
	munmap(t.mem, SIZE);
}

/* conn_close() deregisters it. */
static struct ibv_mr *region(int access)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(t.s.pd, OFFSET, LEN, IOVA, t.fd, access);

	if (!mr)
		fail("ibv_reg_dmabuf_mr: %s", strerror(errno));
	t.s.mrs[t.s.n_mrs++] = mr;
	return mr;
}

static bool is_refused(uint64_t offset, uint64_t len, uint64_t iova, int fd, int access, int why)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(t.s.pd, offset, len, iova, fd, access);
	if (mr)
		ibv_dereg_mr(mr);
	else if (errno != why)
		printf("# refused with %s\n", strerror(errno));
	return !mr && errno == why;
}

/* ---- requests ---- */

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey,
				  uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)t.from, .length = len,
			       .lkey = t.from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	if (ibv_post_send(t.c.id->qp, &wr, &bad))
		fail("post_send");
	return conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 ? wc.status : IBV_WC_GENERAL_ERR;
}

/* An empty Read comes back when the Write before it has been done, or was refused. */
static bool writes(uint64_t remote, uint32_t rkey, uint32_t len)
{
	return request(IBV_WR_RDMA_WRITE, remote, rkey, len) == IBV_WC_SUCCESS &&
	       request(IBV_WR_RDMA_READ, 0, 0, 0) == IBV_WC_SUCCESS;
}

static bool is_clear(const uint8_t *p, uint32_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* Nothing but @len octets of the region has been written. */
static bool only_these(uint32_t len)
{
	return pattern_check(t.mem + OFFSET, len, t.key) == len && is_clear(t.mem, OFFSET) &&
	       is_clear(t.mem + OFFSET + len, SIZE - OFFSET - len);
}

/* ---- the cases ---- */

static bool a_peer_writes_and_reads_it(void)
{
	struct ibv_mr *mr = region(RIGHTS);

	if (!writes(IOVA, mr->rkey, LEN) || !only_these(LEN))
		return false;
	memset(t.from, 0, SIZE);
	return request(IBV_WR_RDMA_READ, IOVA, mr->rkey, LEN) == IBV_WC_SUCCESS &&
	       pattern_check(t.from, LEN, t.key) == LEN;
}

/* An exporter's memory may be write-combining, where a CPU has no atomics. */
static bool atomics_are_refused(void)
{
	return is_refused(OFFSET, LEN, IOVA, t.fd, RIGHTS | IBV_ACCESS_REMOTE_ATOMIC, EOPNOTSUPP);
}

static bool it_is_sent_and_received_into(void)
{
	struct ibv_mr *mr = region(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { .addr = IOVA + 7, .length = LEN - 7, .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge back = { (uintptr_t)t.from, SIZE, t.from_mr->lkey };
	struct ibv_wc wc;

	if (ibv_post_recv(t.s.id->qp, &recv, &bad_recv) ||
	    request(IBV_WR_SEND, 0, 0, 5000) != IBV_WC_SUCCESS ||
	    conn_poll(&t.s, &wc, 1, TIMEOUT) != 1 || wc.byte_len != 5000 ||
	    pattern_check(t.mem + OFFSET + 7, 5000, t.key) != 5000)
		return false;
	memset(t.from, 0, SIZE);
	recv.sg_list = &back;
	sge.length = 5000;
	return !ibv_post_recv(t.c.id->qp, &recv, &bad_recv) &&
	       !ibv_post_send(t.s.id->qp, &send, &bad) &&
	       conn_poll(&t.s, &wc, 1, TIMEOUT) == 1 && wc.status == IBV_WC_SUCCESS &&
	       conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 && wc.byte_len == 5000 &&
	       pattern_check(t.from, 5000, t.key) == 5000;
}

static bool it_needs_no_descriptor(void)
{
	struct ibv_mr *mr = region(RIGHTS);

	close(t.fd);
	t.fd = -1;
	return writes(IOVA, mr->rkey, LEN) && only_these(LEN);
}

static bool what_lies_before_it_is_refused(void)
{
	struct ibv_mr *mr = region(RIGHTS);

	return !writes(IOVA - 1, mr->rkey, 100) && is_clear(t.mem, SIZE);
}

static bool what_lies_behind_it_is_refused(void)
{
	struct ibv_mr *mr = region(RIGHTS);

	return !writes(IOVA + LEN - 99, mr->rkey, 100) && is_clear(t.mem, SIZE);
}

static bool a_region_that_is_read_is_not_written(void)
{
	struct ibv_mr *mr = region(IBV_ACCESS_REMOTE_READ);

	memcpy(t.mem + OFFSET, t.from, LEN);
	memset(t.from, 0, SIZE);
	return request(IBV_WR_RDMA_READ, IOVA, mr->rkey, LEN) == IBV_WC_SUCCESS &&
	       pattern_check(t.from, LEN, t.key) == LEN && !writes(IOVA, mr->rkey, 1) &&
	       only_these(LEN);
}

static bool a_region_that_has_gone_is_not_written(void)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(t.s.pd, OFFSET, LEN, IOVA, t.fd, RIGHTS);
	uint32_t rkey;

	if (!mr)
		return false;
	rkey = mr->rkey;
	return !ibv_dereg_mr(mr) && !writes(IOVA, rkey, LEN) && is_clear(t.mem, SIZE);
}

static bool what_is_beyond_its_end_cannot_be_had(void)
{
	struct ibv_mr *all = ibv_reg_dmabuf_mr(t.s.pd, 0, SIZE, 0, t.fd, RIGHTS);

	return all && !ibv_dereg_mr(all) && is_refused(0, SIZE + 1, 0, t.fd, RIGHTS, EINVAL) &&
	       is_refused(4096, SIZE - 4095, 0, t.fd, RIGHTS, EINVAL) &&
	       is_refused(SIZE, 1, 0, t.fd, RIGHTS, EINVAL) &&
	       is_refused(-4096ULL, 8192, 0, t.fd, RIGHTS, EINVAL) &&
	       is_refused(4096, -4096ULL, 0, t.fd, RIGHTS, EINVAL) &&
	       is_refused(0, 0, 0, t.fd, RIGHTS, EINVAL);
}

static bool what_is_no_dmabuf_is_refused(void)
{
	int closed = dup(t.fd);

	close(closed);
	return is_refused(0, 4096, 0, t.memfd, RIGHTS, EINVAL) &&
	       is_refused(0, 4096, 0, closed, RIGHTS, EBADF) &&
	       is_refused(0, 4096, 0, -1, RIGHTS, EBADF);
}

/* Its place in a page is that of its memory, and it has no part that others may have. */
static bool what_such_a_region_cannot_be_is_refused(void)
{
	struct ibv_mr *mr = region(RIGHTS);

	return is_refused(OFFSET, LEN, IOVA + 1, t.fd, RIGHTS, EINVAL) &&
	       is_refused(0, LEN, 0, t.fd, RIGHTS | IBV_ACCESS_MW_BIND, EINVAL) &&
	       is_refused(0, LEN, 0, t.fd, RIGHTS | IBV_ACCESS_ZERO_BASED, EINVAL) &&
	       is_refused(0, LEN, 0, t.fd, IBV_ACCESS_REMOTE_WRITE, EINVAL) &&
	       ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE) &&
	       writes(IOVA, mr->rkey, LEN) && only_these(LEN);
}

static const struct a_case list[] = {
	{ "a-peer-writes-and-reads-it", a_peer_writes_and_reads_it, NULL },
	{ "atomics-are-refused", atomics_are_refused, NULL },
	{ "it-is-sent-and-received-into", it_is_sent_and_received_into, NULL },
	{ "it-needs-no-descriptor", it_needs_no_descriptor, NULL },
	{ "an-access-before-it-is-refused", what_lies_before_it_is_refused, NULL },
	{ "an-access-beyond-it-is-refused", what_lies_behind_it_is_refused, NULL },
	{ "a-region-that-is-read-is-not-written", a_region_that_is_read_is_not_written, NULL },
	{ "a-region-that-has-gone-is-not-written", a_region_that_has_gone_is_not_written, NULL },
	{ "what-is-beyond-its-end-cannot-be-had", what_is_beyond_its_end_cannot_be_had, NULL },
	{ "other-files-are-refused", what_is_no_dmabuf_is_refused, NULL },
	{ "what-such-a-region-cannot-be-is-refused", what_such_a_region_cannot_be_is_refused, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);

int main(int argc, char **argv)
{
	t.addr = cases_begin(argc, argv, "weft-dmabuf");
	t.port = "7476";
	t.c.timeout_ms = t.s.timeout_ms = TIMEOUT;
	conn_listen(&t.s, t.addr, t.port);
	cases_run(&cases, "");
	return cases_end();
}
