// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Do a cgroup's BPF programs see a program's iWARP connections as they see TCP's? This process
 * moves to CGROUP, an empty one of version 2. HOST is an address of this machine that a weft device
 * has, PORT is free. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conn.h"
#include "tcp.h"
#include "verdict.h"

#define DEPTH		4
#define PATIENCE_MS	60000
#define N(insns)	(sizeof(insns) / sizeof((insns)[0]))

static const char *host, *port;
static int cgroup;

/* ---- BPF by hand ---- */

#define INSN(op, d, s, o, i) \
	((struct bpf_insn){ .code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define SET(reg, n)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, n)
#define COPY(reg, from)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, reg, from, 0, 0)
#define ADD(reg, n)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0, n)
#define ZERO_STACK(at)		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, at, 0)
#define LOAD_W(reg, from, at)	INSN(BPF_LDX | BPF_MEM | BPF_W, reg, from, at, 0)
#define MAP(reg, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define ADD_TO(at, reg)		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, at, reg, 0, BPF_ADD)
#define SKIP_IF(reg, n, by)	INSN(BPF_JMP | BPF_JEQ | BPF_K, reg, 0, by, n)
#define SKIP_UNLESS(reg, n, by)	INSN(BPF_JMP | BPF_JNE | BPF_K, reg, 0, by, n)
#define CALL(function)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define RETURN(n)		SET(0, n), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int make_map(uint32_t type, uint32_t value)
{
	union bpf_attr attr = { .map_type = type, .key_size = 4, .value_size = value,
				.max_entries = 1 };
	int fd = bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		fail("no BPF map: %s", strerror(errno));
	return fd;
}

static uint64_t value_of(int map)
{
	uint32_t key = 0;
	uint64_t value = 0;
	union bpf_attr attr = { .map_fd = map, .key = (uintptr_t)&key,
				.value = (uintptr_t)&value };

	if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		fail("BPF map: %s", strerror(errno));
	return value;
}

/* A program of our cgroup, from now on. */
static int attach(enum bpf_prog_type type, enum bpf_attach_type where,
		  const struct bpf_insn *insns, uint32_t n)
{
	static char said[16384];
	union bpf_attr load = { .prog_type = type, .expected_attach_type = where,
				.insns = (uintptr_t)insns, .insn_cnt = n,
				.license = (uintptr_t)"Dual BSD/GPL", .log_level = 1,
				.log_buf = (uintptr_t)said, .log_size = sizeof(said) };
	int fd = bpf(BPF_PROG_LOAD, &load);
	union bpf_attr to = { .target_fd = cgroup, .attach_bpf_fd = fd, .attach_type = where };

	if (fd < 0)
		fail("BPF program: %s; %s", strerror(errno), said);
	if (bpf(BPF_PROG_ATTACH, &to))
		fail("attaching a BPF program: %s", strerror(errno));
	return fd;
}

static void detach(int fd, enum bpf_attach_type where)
{
	union bpf_attr attr = { .target_fd = cgroup, .attach_bpf_fd = fd, .attach_type = where };

	if (bpf(BPF_PROG_DETACH, &attr))
		fail("detaching a BPF program: %s", strerror(errno));
	close(fd);
}

/* ---- sockets are denied ---- */

static const char *is_denied(int rv)
{
	if (!rv)
		return "it is had";
	return errno == EPERM ? NULL : strerror(errno);
}

static const struct bpf_insn deny[] = { RETURN(0) };

static void no_connection(void)
{
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct rdma_conn_param param = { .initiator_depth = 1 };
	const char *why;
	int prog;

	conn_resolve(&c, host, port);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	prog = attach(BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, deny, N(deny));
	why = is_denied(rdma_connect(c.id, &param));
	detach(prog, BPF_CGROUP_INET_SOCK_CREATE);
	conn_end(&c);
	verdict("a-cgroup-without-sockets-has-no-connection", why);
}

static void no_listener(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct sockaddr_in own = tcp_address(host, atoi(port));
	struct rdma_cm_id *id;
	const char *why;
	int prog;

	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&own))
		fail("rdma_bind_addr: %s", strerror(errno));
	prog = attach(BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, deny, N(deny));
	why = is_denied(rdma_listen(id, 4));
	detach(prog, BPF_CGROUP_INET_SOCK_CREATE);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
	verdict("a-cgroup-without-sockets-has-no-listener", why);
}

/* ---- connects are seen, the second one, too ---- */

/* Ends two connections without a Reply, as a peer that knows no revision 2 may. */
static void *hang_up_twice(void *arg)
{
	uint8_t request[512];
	int i;

	for (i = 0; i < 2; i++) {
		int fd = accept(*(int *)arg, NULL, NULL);

		if (fd < 0 || recv(fd, request, sizeof(request), 0) <= 0)
			break;
		close(fd);
	}
	return NULL;
}

static void both_tries_are_seen(void)
{
	struct sockaddr_in own = tcp_address(host, atoi(port));
	int count = make_map(BPF_MAP_TYPE_ARRAY, 8), prog;
	int listener = tcp_listen(&own, sizeof(own), 4);
	const struct bpf_insn count_it[] = {
		ZERO_STACK(-4), MAP(1, count), COPY(2, 10), ADD(2, -4),
		CALL(BPF_FUNC_map_lookup_elem), SKIP_IF(0, 0, 2), SET(1, 1), ADD_TO(0, 1),
		RETURN(1),
	};
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct rdma_conn_param param = { .initiator_depth = 1 };
	pthread_t peer;
	uint64_t seen;
	char why[64];

	conn_resolve(&c, host, port);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	if (pthread_create(&peer, NULL, hang_up_twice, &listener))
		fail("no thread");
	prog = attach(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT, count_it,
		      N(count_it));
	if (rdma_connect(c.id, &param) || conn_next_event(c.events, PATIENCE_MS) < 0)
		fail("rdma_connect: %s", strerror(errno));
	pthread_join(peer, NULL);
	detach(prog, BPF_CGROUP_INET4_CONNECT);
	seen = value_of(count);
	snprintf(why, sizeof(why), "%u connects were seen", (unsigned int)seen);
	conn_end(&c);
	close(listener);
	close(count);
	verdict("the-cgroup-sees-the-second-connect", seen == 2 ? NULL : why);
}

/* ---- connections that somebody else has ---- */

/* The other side ends it, with no word. */
static const char *is_ended(int fd)
{
	char octet;

	if (!tcp_is_readable(fd, PATIENCE_MS))
		return "it is not ended";
	return recv(fd, &octet, 1, 0) > 0 ? "it is answered" : NULL;
}

static const char *is_told(struct conn *c, int fd)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	if (!tcp_is_readable(c->events->fd, PATIENCE_MS) || rdma_get_cm_event(c->events, &ev))
		return "nor is one that is ours";
	id = ev->id;
	rdma_ack_cm_event(ev);
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
	close(fd);
	return NULL;
}

static void what_a_sockmap_has(void)
{
	struct sockaddr_in to = tcp_address(host, atoi(port));
	int map = make_map(BPF_MAP_TYPE_SOCKMAP, 4), prog, fd;
	const struct bpf_insn take_it[] = {
		COPY(6, 1), LOAD_W(2, 1, offsetof(struct bpf_sock_ops, op)),
		SKIP_UNLESS(2, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB, 8), ZERO_STACK(-4),
		COPY(1, 6), MAP(2, map), COPY(3, 10), ADD(3, -4), SET(4, BPF_ANY),
		CALL(BPF_FUNC_sock_map_update), RETURN(1),
	};
	struct conn c = { .timeout_ms = PATIENCE_MS };
	const char *why;

	conn_listen(&c, host, port);
	prog = attach(BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS, take_it, N(take_it));
	fd = tcp_send_request(&to);
	why = is_ended(fd);
	close(fd);
	detach(prog, BPF_CGROUP_SOCK_OPS);
	if (!why)
		why = is_told(&c, tcp_send_request(&to));
	rdma_destroy_id(c.listener);
	rdma_destroy_event_channel(c.events);
	close(map);
	verdict("a-socket-in-a-sockmap-is-refused", why);
}

static void join_cgroup(const char *path)
{
	char file[256];
	FILE *f;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	f = fopen(file, "w");
	cgroup = open(path, O_RDONLY | O_DIRECTORY);
	if (cgroup < 0 || !f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		fail("%s: %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
	conn_program = "hooks";
	if (argc != 4) {
		fprintf(stderr, "hooks HOST PORT CGROUP\n");
		return 2;
	}
	host = argv[1];
	port = argv[2];
	join_cgroup(argv[3]);
	no_connection();
	no_listener();
	both_tries_are_seen();
	what_a_sockmap_has();
	return verdict_end();
}
