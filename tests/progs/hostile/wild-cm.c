// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm at random, without librdmacm: see wild.c. Threads that connect and listen go all the way
 * to a connection and send over it; others make any call on the same ids, or with QP numbers of
 * other processes.
 *
 * Calls that would test iw_cm or rdma_ucm, and not the driver, are left out. A request is answered
 * once, by the thread that took it. Ids are destroyed and moved at random only in files without a
 * listener.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "wild.h"

#define CM_FILES	4
#define IDS		32
#define PORTS		3
#define FIRST_PORT	7600
#define PATIENCE_MS	3000
/* A descriptor of at least so much is a file to listen in. */
#define LISTENING	512

/* Of this process; a thread that goes the whole way has a file of its own besides. */
static int cm_files[CM_FILES] = { -1, -1, -1, -1 };
static struct cm_id {
	int fd;
	uint32_t id;
} ids[IDS];

/* ---- commands ---- */

static bool listens_in(int fd)
{
	return fd >= LISTENING;
}

/* What is called as it is meant, or not at all: the top of this file. */
static bool is_frail(int fd, uint32_t cmd)
{
	switch (cmd) {
	case RDMA_USER_CM_CMD_ACCEPT:
	case RDMA_USER_CM_CMD_REJECT:
	case RDMA_USER_CM_CMD_LISTEN:
	case RDMA_USER_CM_CMD_MIGRATE_ID: return true;
	case RDMA_USER_CM_CMD_DESTROY_ID: return listens_in(fd);
	default: return false;
	}
}

static int cm_write(int fd, uint32_t cmd, const void *in, size_t len, size_t out)
{
	uint8_t octets[700] = { 0 };
	struct rdma_ucm_cmd_hdr *hdr = (void *)octets;
	int rv;

	*hdr = (struct rdma_ucm_cmd_hdr){ .cmd = cmd, .in = len, .out = out };
	memcpy(hdr + 1, in, len);
	if (!is_frail(fd, cmd)) {
		spoil(hdr + 1, len);
		if (mischief && once_in(4 * mischief))
			len = hdr->in = below(len + 1);
		if (mischief && once_in(4 * mischief))
			hdr->out = nasty(out);
	}
	len += sizeof(*hdr);
	fault_begin();
	rv = write(fd, octets, len) < 0;
	fault_end();
	if (rv)
		counted(CM_REFUSED, true);
	return rv;
}

static void keep_id(int fd, uint32_t id)
{
	ids[below(IDS)] = (struct cm_id){ fd, id };
}

/* As a rule one that is or was there. */
static uint32_t any_id(int fd)
{
	struct cm_id i = ids[below(IDS)];

	return once_in(20) ? nasty(below(64)) : i.fd == fd || once_in(4) ? i.id : below(8);
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &sin.sin_addr);
	return sin;
}

static struct sockaddr_in any_address(void)
{
	return address(addresses[below(nr_addresses)], FIRST_PORT + below(PORTS));
}

/* Where somebody listens, as a rule. */
static struct sockaddr_in place_to_call(void)
{
	struct place p = common->listening[below(PLACES)];

	return p.port && !once_in(12) ? address(addresses[p.address], p.port) : any_address();
}

static bool create_id(int fd, uint32_t *id)
{
	struct rdma_ucm_create_id_resp a = { 0 };
	struct rdma_ucm_create_id in = { .uid = rnd(), .response = (uintptr_t)&a, .ps = RDMA_PS_TCP,
					 .qp_type = 2 };

	if (mischief && once_in(20)) {
		in.ps = once_in(2) ? RDMA_PS_UDP : RDMA_PS_IB;
		in.qp_type = below(10);
	}
	if (cm_write(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(a)))
		return false;
	*id = a.id;
	keep_id(fd, a.id);
	return counted(CM_ID, true);
}

static void destroy_id(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp a;
	struct rdma_ucm_destroy_id in = { .response = (uintptr_t)&a, .id = id };

	cm_write(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(a));
}

static bool bind_id(int fd, uint32_t id, const struct sockaddr_in *sin)
{
	struct rdma_ucm_bind in = { .id = id, .addr_size = sizeof(*sin) };
	struct rdma_ucm_bind_ip old = { .id = id };

	memcpy(&in.addr, sin, sizeof(*sin));
	memcpy(&old.addr, sin, sizeof(*sin));
	if (once_in(3))
		return counted(CM_BIND, !cm_write(fd, RDMA_USER_CM_CMD_BIND_IP, &old, sizeof(old), 0));
	return counted(CM_BIND, !cm_write(fd, RDMA_USER_CM_CMD_BIND, &in, sizeof(in), 0));
}

static bool resolve_address(int fd, uint32_t id, const struct sockaddr_in *sin)
{
	struct rdma_ucm_resolve_addr in = { .id = id, .timeout_ms = 1000, .dst_size = sizeof(*sin) };
	struct rdma_ucm_resolve_ip old = { .id = id, .timeout_ms = 1000 };

	memcpy(&in.dst_addr, sin, sizeof(*sin));
	memcpy(&old.dst_addr, sin, sizeof(*sin));
	if (once_in(3))
		return !cm_write(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &old, sizeof(old), 0);
	return !cm_write(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &in, sizeof(in), 0);
}

static bool resolve_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route in = { .id = id, .timeout_ms = 1000 };

	return !cm_write(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &in, sizeof(in), 0);
}

static bool query(int fd, uint32_t id, uint64_t *guid)
{
	union {
		struct rdma_ucm_query_addr_resp addr;
		struct rdma_ucm_query_route_resp route;
	} a = { .addr.node_guid = 0 };
	struct rdma_ucm_query in = { .response = (uintptr_t)&a, .id = id };
	bool old = once_in(3);
	int rv = cm_write(fd, old ? RDMA_USER_CM_CMD_QUERY_ROUTE : RDMA_USER_CM_CMD_QUERY, &in,
			  old ? offsetof(struct rdma_ucm_query, option) : sizeof(in),
			  old ? sizeof(a.route) : sizeof(a.addr));

	*guid = a.addr.node_guid;
	return counted(CM_QUERY, !rv);
}

static void set_option(int fd, uint32_t id)
{
	/* Type of service, reuse of an address, one family only, time-out. */
	static const uint8_t lengths[] = { 1, 4, 4, 1 };
	uint64_t value = once_in(2) ? below(3) : rnd();
	uint32_t which = below(4);
	struct rdma_ucm_set_option in = {
		.optval = once_in(8) ? any_pointer() : (uintptr_t)&value, .id = id,
		.level = once_in(8) ? nasty(0) : RDMA_OPTION_ID,
		.optname = once_in(8) ? nasty(0) : which,
		.optlen = once_in(8) ? below(5000) : lengths[which],
	};

	counted(CM_OPTION, !cm_write(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0));
}

/* What each end tells the other: where it may be written to. */
struct hello {
	uint64_t at;
	uint32_t rkey;
};

static struct rdma_ucm_conn_param parameters(uint32_t qpn, const struct hello *hello)
{
	struct rdma_ucm_conn_param p = {
		.qp_num = qpn, .private_data_len = sizeof(*hello), .responder_resources = 4,
		.initiator_depth = 4, .valid = 1,
	};

	memcpy(p.private_data, hello, sizeof(*hello));
	if (mischief && once_in(8)) {
		p.private_data_len = rnd();
		p.responder_resources = rnd();
		p.initiator_depth = rnd();
	}
	return p;
}

static uint32_t anybodys_qpn(void)
{
	uint32_t qpn = common->qpns[below(QPNS)];

	return once_in(8) ? nasty(qpn) : qpn;
}

static bool connect_id(int fd, uint32_t id, const struct rdma_ucm_conn_param *p)
{
	struct rdma_ucm_connect in = { .conn_param = *p, .id = id };

	return counted(CM_CONNECT, !cm_write(fd, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), 0));
}

static bool accept_id(int fd, uint32_t id, const struct rdma_ucm_conn_param *p)
{
	struct rdma_ucm_accept in = { .uid = rnd(), .conn_param = *p, .id = id };

	return counted(CM_ACCEPT, !cm_write(fd, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), 0));
}

static bool reject_id(int fd, uint32_t id)
{
	struct rdma_ucm_reject in = { .id = id, .private_data_len = below(256), .reason = once_in(2) ?
				      28 : rnd() };

	return counted(CM_REJECT, !cm_write(fd, RDMA_USER_CM_CMD_REJECT, &in, sizeof(in), 0));
}

static bool disconnect_id(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect in = { .id = id };

	return counted(CM_DISCONNECT,
		       !cm_write(fd, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), 0));
}

static bool listen_id(int fd, uint32_t id)
{
	struct rdma_ucm_listen in = { .id = id, .backlog = once_in(8) ? rnd() : below(20) };

	if (!listens_in(fd))
		return false;
	return counted(CM_LISTEN, !cm_write(fd, RDMA_USER_CM_CMD_LISTEN, &in, sizeof(in), 0));
}

static void init_qp_attr(int fd, uint32_t id)
{
	struct ib_uverbs_qp_attr a;
	struct rdma_ucm_init_qp_attr in = { .response = (uintptr_t)&a, .id = id,
					    .qp_state = once_in(8) ? rnd() : below(8) };

	cm_write(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &in, sizeof(in), sizeof(a));
}

/* To another file of this process. */
static int migrate(int from, uint32_t *id, int to)
{
	struct rdma_ucm_migrate_resp a;
	struct rdma_ucm_migrate_id in = { .response = (uintptr_t)&a, .id = *id, .fd = from };

	/* It is the file that the id comes to that is asked. */
	if (!counted(CM_MIGRATE, !cm_write(to, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), sizeof(a))))
		return from;
	keep_id(to, *id);
	return to;
}

static bool get_event(int fd, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event in = { .response = (uintptr_t)ev };

	memset(ev, 0, sizeof(*ev));
	return !cm_write(fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(*ev));
}

/* The next that comes within @ms. */
static bool await(int fd, struct rdma_ucm_event_resp *ev, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && get_event(fd, ev);
}

/* enum rdma_cm_event_type */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, CONNECT_RESPONSE, ESTABLISHED = 9,
       DISCONNECTED };

static int cm_open(bool listening)
{
	int low = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK), fd = low;
	uint32_t i = below(CM_FILES);

	if (low >= 0 && (listening || listens_in(low))) {
		fd = listening ? fcntl(low, F_DUPFD_CLOEXEC, LISTENING) : -1;
		close(low);
	}
	/* Others of this process use it, too, now and then. */
	if (fd >= 0 && once_in(3)) {
		if (cm_files[i] >= 0)
			close(cm_files[i]);
		cm_files[i] = fcntl(fd, F_DUPFD_CLOEXEC, listening ? LISTENING : 0);
	}
	return fd;
}

/* ---- the whole way ---- */

static struct hello hello_of(const struct queues *q)
{
	return (struct hello){ (uintptr_t)buf + BUF / 2, q->mr.rkey };
}

static void end(struct queues *q, int fd, uint32_t id)
{
	bool first = once_in(2);

	if (first && !once_in(4))
		queues_end(q);
	if (!once_in(4))
		destroy_id(fd, id);
	if (!first && !once_in(4))
		queues_end(q);
}

/* Until one end has enough. */
static void use(struct queues *q, const struct rdma_ucm_event_resp *ev, int fd, uint32_t id)
{
	uint32_t rounds = once_in(4) ? below(4) : 4 + below(60);
	struct rdma_ucm_event_resp next;
	struct hello h;

	memcpy(&h, ev->param.conn.private_data, sizeof(h));
	counted(CM_ESTABLISHED, true);
	while (rounds--) {
		queues_post(q, h.at, h.rkey);
		pause_ms(below(10));
		queues_poll(q);
		if (await(fd, &next, 0) && next.event == DISCONNECTED && once_in(2))
			break;
	}
	if (!once_in(4))
		disconnect_id(fd, id);
	pause_ms(below(20));
	queues_poll(q);
}

static void call_over(int fd)
{
	struct sockaddr_in sin = place_to_call();
	struct rdma_ucm_event_resp ev;
	struct rdma_ucm_conn_param p;
	struct queues q;
	struct hello h;
	uint64_t guid;
	uint32_t id;
	int file;

	if (!create_id(fd, &id))
		return;
	if (!resolve_address(fd, id, &sin) || !await(fd, &ev, PATIENCE_MS) ||
	    ev.event != ADDR_RESOLVED || !resolve_route(fd, id) || !await(fd, &ev, PATIENCE_MS) ||
	    ev.event != ROUTE_RESOLVED)
		goto out;
	counted(CM_RESOLVED, true);
	if (!query(fd, id, &guid))
		goto out;
	file = verbs_open(guid);
	if (file < 0)
		goto out;
	if (!queues_make(&q, file)) {
		queues_end(&q);
		goto out;
	}
	if (once_in(3))
		init_qp_attr(fd, id);
	h = hello_of(&q);
	/* Receives and what not are there before the peer is. */
	queues_post(&q, h.at, h.rkey);
	p = parameters(q.qp.key, &h);
	if (connect_id(fd, id, &p) && await(fd, &ev, PATIENCE_MS) && ev.event == ESTABLISHED)
		use(&q, &ev, fd, id);
	end(&q, fd, id);
	return;
out:
	if (once_in(2))
		destroy_id(fd, id);
}

void cm_call(void)
{
	int fd = cm_open(false);

	if (fd < 0) {
		pause_ms(50);
		return;
	}
	call_over(fd);
	close(fd);
}

static void take(int fd, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_conn_param p;
	struct queues q;
	struct hello h;
	uint64_t guid;
	int file, at = fd;

	counted(CM_REQUEST, true);
	keep_id(fd, ev->id);
	if (once_in(8)) {
		reject_id(fd, ev->id);
		destroy_id(fd, ev->id);
		return;
	}
	file = query(fd, ev->id, &guid) ? verbs_open(guid) : -1;
	if (file < 0 || !queues_make(&q, file)) {
		destroy_id(fd, ev->id);
		return;
	}
	if (once_in(6)) {
		at = cm_open(false);
		at = at < 0 ? fd : migrate(fd, &ev->id, at);
	}
	h = hello_of(&q);
	/* What the Request said is where this end writes. */
	memcpy(&h, ev->param.conn.private_data, sizeof(h));
	queues_post(&q, h.at, h.rkey);
	h = hello_of(&q);
	p = parameters(once_in(10) ? anybodys_qpn() : q.qp.key, &h);
	if (accept_id(at, ev->id, &p))
		use(&q, ev, at, ev->id);
	end(&q, at, ev->id);
	if (at != fd)
		close(at);
}

void cm_serve(void)
{
	struct place place = { below(nr_addresses), FIRST_PORT + below(PORTS) };
	struct sockaddr_in sin = address(addresses[place.address], place.port);
	int64_t over = now_ms() + 500 + below(2000);
	struct rdma_ucm_event_resp ev;
	int fd = cm_open(true);
	uint32_t id;

	if (fd < 0) {
		pause_ms(50);
		return;
	}
	if (once_in(3))
		sin.sin_addr.s_addr = 0;
	if (create_id(fd, &id) && bind_id(fd, id, &sin) && listen_id(fd, id)) {
		common->listening[below(PLACES)] = place;
		while (now_ms() < over)
			if (await(fd, &ev, 100) && ev.event == CONNECT_REQUEST)
				take(fd, &ev);
	}
	close(fd);
}

/* ---- random calls ---- */

static void join(int fd, uint32_t id)
{
	struct rdma_ucm_create_id_resp a;
	struct sockaddr_in sin = address("224.1.2.3", 0);
	struct rdma_ucm_join_mcast in = { .response = (uintptr_t)&a, .uid = rnd(), .id = id,
					  .addr_size = sizeof(sin), .join_flags = below(3) };

	memcpy(&in.addr, &sin, sizeof(sin));
	if (counted(CM_JOIN, !cm_write(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(a))))
		cm_write(fd, RDMA_USER_CM_CMD_LEAVE_MCAST,
			 &(struct rdma_ucm_destroy_id){ .response = (uintptr_t)&a, .id = a.id },
			 sizeof(struct rdma_ucm_destroy_id), sizeof(a));
}

static void notify(int fd, uint32_t id)
{
	struct rdma_ucm_notify in = { .id = id, .event = once_in(2) ? 3 : rnd() };

	cm_write(fd, RDMA_USER_CM_CMD_NOTIFY, &in, sizeof(in), 0);
}

static void odd(int fd)
{
	uint32_t cmd = once_in(8) ? rnd() : below(28), i;
	uint64_t words[64];

	for (i = 0; i < 64; i++)
		words[i] = once_in(3) ? any_pointer() : once_in(2) ? any_id(fd) : rnd();
	/* An answer that need not be there: half of them may be written to. */
	if (once_in(2))
		words[0] = (uintptr_t)buf;
	if (!is_frail(fd, cmd))
		cm_write(fd, cmd, words, below(sizeof(words)), below(400));
}

static void connect_anybodys(int fd, uint32_t id)
{
	struct hello h = { rnd(), rnd() };
	struct rdma_ucm_conn_param p = parameters(anybodys_qpn(), &h);

	connect_id(fd, id, &p);
}

void cm_any(void)
{
	struct sockaddr_in sin = any_address();
	struct rdma_ucm_event_resp ev;
	uint32_t i = below(CM_FILES), id;
	int fd = cm_files[i], from;
	uint64_t guid;

	if (fd < 0 || once_in(200)) {
		fd = cm_open(once_in(2));
		if (fd >= 0 && once_in(2))
			close(fd);
		pause_ms(1);
		return;
	}
	id = any_id(fd);
	switch (below(20)) {
	case 0:
	case 1:
	case 2: create_id(fd, &id); break;
	case 3:
		if (!listens_in(fd))
			destroy_id(fd, id);
		break;
	case 4:
	case 5: bind_id(fd, id, &sin); break;
	case 6: listen_id(fd, id); break;
	case 7:
	case 8: resolve_address(fd, id, &sin); break;
	case 9: resolve_route(fd, id); break;
	case 10: query(fd, id, &guid); break;
	case 11:
	case 12: connect_anybodys(fd, id); break;
	case 13: disconnect_id(fd, id); break;
	case 14: init_qp_attr(fd, id); break;
	case 15: set_option(fd, id); break;
	case 16:
		from = cm_files[below(CM_FILES)];
		if (!listens_in(from) && !listens_in(fd))
			migrate(from, &id, fd);
		break;
	case 17: join(fd, id); break;
	case 18: once_in(2) ? notify(fd, id) : odd(fd); break;
	default: await(fd, &ev, 0); break;
	}
}
