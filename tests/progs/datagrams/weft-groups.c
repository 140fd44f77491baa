// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What verbs promise of multicast on UD QPs, all in this process, over the device that has the GID of
 * ADDR, an IPv4 address. TAP on stdout. Only the forged datagrams know weft.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "byhand.h"
#include "verdict.h"

#define GRH		40
#define QKEY		0x11223344u
#define GROUP_QPN	0xffffffu
#define GROUP_PORT	65535
#define QUIET_MS	200	/* in which nothing is to happen */
#define SOON_MS		20000
#define SLOTS		8
#define SLOT		(GRH + 64)

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buf[(1 + SLOTS) * SLOT];
};

static struct hand_device dev;
static struct end a, b, c;		/* a sends */
static union ibv_gid group, other_group;
static const char *own;

/* ---- ends ---- */

static void ready(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		hand_fail("a QP does not become INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		hand_fail("a QP does not become RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		hand_fail("a QP does not become RTS");
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, uint32_t qkey)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &attr);

	if (!qp)
		hand_fail("no UD QP: %s", strerror(errno));
	ready(qp, qkey);
	return qp;
}

static void post_recv(struct end *e, struct ibv_qp *qp, int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf + (1 + i) * SLOT, .length = SLOT, .lkey = e->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		hand_fail("posting a receive");
}

/* With two receives. */
static void make_end(struct end *e, uint32_t qkey)
{
	memset(e->buf, 0, sizeof(e->buf));
	e->cq = ibv_create_cq(dev.ctx, 4 * SLOTS, NULL, NULL, 0);
	e->mr = ibv_reg_mr(dev.pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE);
	if (!e->cq || !e->mr)
		hand_fail("no CQ, or no region");
	e->qp = make_qp(e->cq, qkey);
	post_recv(e, e->qp, 0);
	post_recv(e, e->qp, 1);
}

static void unmake_end(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr) || ibv_destroy_cq(e->cq))
		hand_fail("an end is still in use");
}

static void open_ends(void)
{
	make_end(&a, QKEY);
	make_end(&b, QKEY);
	make_end(&c, QKEY);
}

static void close_ends(void)
{
	unmake_end(&a);
	unmake_end(&b);
	unmake_end(&c);
}

static void enter(struct end *e, const union ibv_gid *gid)
{
	int rv = ibv_attach_mcast(e->qp, gid, 0);

	if (rv)
		hand_fail("attach_mcast: %s", strerror(rv));
}

static void leave(struct end *e, const union ibv_gid *gid)
{
	int rv = ibv_detach_mcast(e->qp, gid, 0);

	if (rv)
		hand_fail("detach_mcast: %s", strerror(rv));
}

/* ---- datagrams ---- */

static bool send_to(const union ibv_gid *gid, uint32_t qkey)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = dev.gid_index, .hop_limit = 1 },
	};
	struct ibv_sge sge = { .addr = (uintptr_t)a.buf, .length = 8, .lkey = a.mr->lkey };
	struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);
	struct ibv_send_wr wr = {
		.wr_id = 99, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = GROUP_QPN, .remote_qkey = qkey },
	}, *bad;
	bool ok;

	memcpy(a.buf, "to group", 8);
	ok = ah && !ibv_post_send(a.qp, &wr, &bad);
	if (ah)
		ibv_destroy_ah(ah);
	return ok;
}

static bool quiet(struct end *e)
{
	struct ibv_wc wc;

	if (!hand_poll(e->cq, &wc, QUIET_MS))
		return true;
	printf("# %lu came with %s from %#x\n", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status),
	       wc.src_qp);
	return false;
}

static bool heard(struct end *e, const union ibv_gid *gid)
{
	const uint8_t *p;
	struct ibv_wc wc;

	if (!hand_poll(e->cq, &wc, SOON_MS) || wc.status || wc.byte_len != GRH + 8 ||
	    wc.src_qp != a.qp->qp_num) {
		printf("# nothing came, or something else\n");
		return false;
	}
	p = e->buf + (1 + wc.wr_id) * SLOT;
	return !memcmp(p + GRH, "to group", 8) && !memcmp(p + GRH - 4, gid->raw + 12, 4);
}

/* ---- cases ---- */

static bool each_member_has_a_copy(void)
{
	bool ok;

	enter(&b, &group);
	enter(&c, &group);
	ok = send_to(&group, QKEY) && heard(&b, &group) && heard(&c, &group);
	ok = ok && quiet(&a) && quiet(&b) && quiet(&c);
	leave(&b, &group);
	leave(&c, &group);
	return ok;
}

static bool members_of_one_cq_have_a_copy_each(void)
{
	struct ibv_qp *second = make_qp(b.cq, QKEY);
	bool ok;

	post_recv(&b, second, 2);
	enter(&b, &group);
	ok = !ibv_attach_mcast(second, &group, 0);
	ok = ok && send_to(&group, QKEY) && heard(&b, &group) && heard(&b, &group) && quiet(&b);
	leave(&b, &group);
	post_recv(&b, second, 3);
	ok = ok && send_to(&group, QKEY) && heard(&b, &group) && quiet(&b);
	ok = ok && !ibv_detach_mcast(second, &group, 0);
	return !ibv_destroy_qp(second) && ok;
}

static bool member_hears_itself(void)
{
	bool ok;

	enter(&a, &group);
	ok = send_to(&group, QKEY) && heard(&a, &group) && quiet(&a);
	leave(&a, &group);
	return ok;
}

static bool a_non_member_receives_nothing(void)
{
	bool ok;

	enter(&b, &group);
	ok = send_to(&other_group, QKEY) && quiet(&b) && quiet(&c);
	ok = ok && send_to(&group, QKEY) && heard(&b, &group) && quiet(&c);
	leave(&b, &group);
	return ok;
}

static bool a_former_member_receives_nothing(void)
{
	bool ok;

	enter(&b, &group);
	enter(&b, &other_group);
	enter(&c, &group);
	leave(&b, &group);
	ok = send_to(&group, QKEY) && heard(&c, &group) && quiet(&b);
	ok = ok && send_to(&other_group, QKEY) && heard(&b, &other_group) && quiet(&c);
	leave(&b, &other_group);
	leave(&c, &group);
	return ok && send_to(&group, QKEY) && quiet(&b) && quiet(&c);
}

static bool a_wrong_key_is_dropped(void)
{
	bool ok;

	enter(&b, &group);
	ok = send_to(&group, QKEY + 1) && quiet(&b);
	ok = ok && send_to(&group, QKEY) && heard(&b, &group);
	leave(&b, &group);
	return ok;
}

static bool a_qp_is_once_in_a_group(void)
{
	bool ok;

	enter(&b, &group);
	enter(&b, &group);
	ok = send_to(&group, QKEY) && heard(&b, &group) && quiet(&b);
	leave(&b, &group);
	return ok && ibv_detach_mcast(b.qp, &group, 0) == EINVAL;
}

static bool a_member_is_not_destroyed(void)
{
	bool ok;

	enter(&b, &group);
	ok = ibv_destroy_qp(b.qp) == EBUSY;
	ok = ok && send_to(&group, QKEY) && heard(&b, &group);
	leave(&b, &group);
	return ok;
}

static bool other_addresses_are_no_groups(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = b.cq, .recv_cq = b.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *rc = ibv_create_qp(dev.pd, &attr);
	union ibv_gid zeros = { .raw = { 0 } };
	bool ok = rc && ibv_attach_mcast(rc, &group, 0) == EINVAL;

	ok = ok && ibv_attach_mcast(b.qp, &dev.gid, 0) == EINVAL;
	ok = ok && ibv_attach_mcast(b.qp, &zeros, 0) == EINVAL;
	return (!rc || !ibv_destroy_qp(rc)) && ok;
}

/* The words of a datagram, as of one of a's QP that is not a. */
static bool forged_datagrams(void)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = {
		.sin_family = AF_INET, .sin_port = htons(GROUP_PORT),
	};
	socklen_t len = sizeof(from);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t w[6] = { htonl(0x77655544), htonl(0x01000000), htonl(GROUP_QPN), 0, htonl(QKEY), 0 };
	struct ibv_wc wc;
	bool ok;

	inet_pton(AF_INET, own, &from.sin_addr);
	memcpy(&to.sin_addr, group.raw + 12, 4);
	if (fd < 0 || bind(fd, (void *)&from, sizeof(from)) || getsockname(fd, (void *)&from, &len) ||
	    connect(fd, (void *)&to, sizeof(to)))
		hand_fail("no socket: %s", strerror(errno));
	w[3] = htonl((uint32_t)ntohs(from.sin_port) << 8);
	enter(&b, &group);
	/* This header is valid for the group; any other is dropped. */
	ok = send(fd, w, sizeof(w), 0) == sizeof(w) && hand_poll(b.cq, &wc, SOON_MS) && !wc.status;
	post_recv(&b, b.qp, 2);
	ok = ok && send(fd, w, sizeof(w) - 1, 0) > 0;
	w[2] = htonl(b.qp->qp_num);
	ok = ok && send(fd, w, sizeof(w), 0) > 0;
	w[2] = htonl(GROUP_QPN - 1);
	ok = ok && send(fd, w, sizeof(w), 0) > 0;
	w[2] = htonl(GROUP_QPN);
	w[3] ^= htonl(0x100);
	ok = ok && send(fd, w, sizeof(w), 0) > 0;
	ok = ok && quiet(&b) && send_to(&group, QKEY) && heard(&b, &group);
	leave(&b, &group);
	close(fd);
	return ok;
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "each-member-has-a-copy", each_member_has_a_copy },
	{ "members-of-one-cq-have-a-copy-each", members_of_one_cq_have_a_copy_each },
	{ "a-member-receives-its-own-datagrams", member_hears_itself },
	{ "a-qp-outside-the-group-receives-nothing", a_non_member_receives_nothing },
	{ "a-qp-that-has-left-receives-nothing", a_former_member_receives_nothing },
	{ "a-wrong-key-is-dropped", a_wrong_key_is_dropped },
	{ "a-qp-is-once-in-a-group", a_qp_is_once_in_a_group },
	{ "a-member-is-not-destroyed", a_member_is_not_destroyed },
	{ "other-addresses-are-no-groups", other_addresses_are_no_groups },
	{ "forged-datagrams-are-dropped", forged_datagrams },
};

static void name_group(union ibv_gid *gid, uint8_t last)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 239, 7, 7 };

	memcpy(gid->raw, mapped, sizeof(mapped));
	gid->raw[15] = last;
}

int main(int argc, char **argv)
{
	unsigned int i, n = sizeof(cases) / sizeof(cases[0]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	hand_program = "weft-groups";
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: weft-groups ADDR [CASE]\n");
		return 2;
	}
	own = argv[1];
	hand_open(&dev, own);
	name_group(&group, 1);
	name_group(&other_group, 2);
	verdict_only(argv[2]);
	for (i = 0; i < n; i++) {
		bool ok;

		if (!verdict_wants(cases[i].name))
			continue;
		open_ends();
		ok = cases[i].run();
		close_ends();
		verdict_if(cases[i].name, ok);
	}
	hand_close(&dev);
	return verdict_end();
}
