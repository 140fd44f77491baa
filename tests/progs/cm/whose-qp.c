// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who may connect a QP? rdma_cm takes any number for a QP, from any user. The owner is this process,
 * as root; other users run as user 65534, and were forked before there was a file to inherit. HOST is an
 * address of this machine that a weft device has; rdma_cm listens on PORT and PORT + 1. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn.h"
#include "tcp.h"
#include "verdict.h"

#define NOBODY		65534
#define DEPTH		4
#define PATIENCE_MS	60000
#define UNKNOWN_QPN	0
#define QPS		8
#define APART		4096	/* what eight numbers of sixteen million are at least, one pair of them */

static const char *host;
static char port[16], next_port[16];
static struct conn server = { .timeout_ms = PATIENCE_MS };
static struct other_user {
	pid_t pid;
	int fd;
} caller, taker;

/* ---- the other user's process, and its commands ---- */

struct question {
	uint32_t qpn;
	char has_file;
};

static void tell(int to, uint32_t qpn, int file)
{
	struct question q = { qpn, file >= 0 };
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &q, sizeof(q) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (file >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET,
						       SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &file, sizeof(int));
	}
	if (sendmsg(to, &m, 0) != sizeof(q))
		fail("telling a number: %s", strerror(errno));
}

/* A number to try, and perhaps a device's file, which is used, and stays open. */
static uint32_t hear(int from)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct question q;
	struct iovec iov = { &q, sizeof(q) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			    .msg_controllen = sizeof(room) };

	if (recvmsg(from, &m, 0) != sizeof(q))
		_exit(0);
	if (q.has_file && !CMSG_FIRSTHDR(&m))
		fail("no file");
	if (q.has_file) {
		int file;

		memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(file));
		if (!ibv_import_device(file))
			fail("ibv_import_device: %s", strerror(errno));
	}
	return q.qpn;
}

static struct other_user begin_other_user(void (*work)(int fd))
{
	struct other_user s;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		fail("socketpair: %s", strerror(errno));
	s.pid = fork();
	s.fd = ends[!s.pid];
	close(ends[!!s.pid]);
	if (s.pid)
		return s;
	if (setgid(NOBODY) || setuid(NOBODY))
		fail("setuid: %s", strerror(errno));
	work(s.fd);
	_exit(0);
}

/* What becomes of @qpn: the errno, or 0 if it is connected. */
static int try_number(struct other_user *s, uint32_t qpn, int file)
{
	int err;

	tell(s->fd, qpn, file);
	if (read(s->fd, &err, sizeof(err)) != sizeof(err))
		fail("the other user's process died");
	return err;
}

static void end_other_user(struct other_user *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->fd);
}

static void answer(int to, int err)
{
	if (write(to, &err, sizeof(err)) != sizeof(err))
		_exit(1);
}

static int connect_number(uint32_t qpn)
{
	struct conn c = { .timeout_ms = PATIENCE_MS };
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4,
					 .qp_num = qpn };
	int err = 0;

	conn_resolve(&c, host, port);
	if (rdma_connect(c.id, &param))
		err = errno;
	else if (conn_next_event(c.events, PATIENCE_MS) != RDMA_CM_EVENT_ESTABLISHED)
		err = ECONNREFUSED;
	rdma_destroy_id(c.id);
	rdma_destroy_event_channel(c.events);
	return err;
}

static void connects(int fd)
{
	for (;;)
		answer(fd, connect_number(hear(fd)));
}

static void accepts(int fd)
{
	struct rdma_conn_param param = { .responder_resources = 4, .initiator_depth = 4 };
	struct conn c = { .timeout_ms = PATIENCE_MS };

	conn_listen(&c, host, next_port);
	answer(fd, 0);
	for (;;) {
		param.qp_num = hear(fd);
		conn_await_request(&c);
		answer(fd, rdma_accept(c.id, &param) ? errno : 0);
		rdma_destroy_id(c.id);
	}
}

/* ---- the owner ---- */

static void *serve(void *arg)
{
	(void)arg;
	conn_await_request(&server);
	conn_make_qp(&server, DEPTH, DEPTH, 0);
	conn_accept(&server, NULL, 0);
	return NULL;
}

static pthread_t begin_server(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, serve, NULL))
		fail("no thread");
	return thread;
}

static void begin_owner(struct conn *c)
{
	*c = (struct conn){ .timeout_ms = PATIENCE_MS };
	conn_resolve(c, host, port);
	conn_make_qp(c, DEPTH, DEPTH, 0);
}

static void end_server(pthread_t thread)
{
	pthread_join(thread, NULL);
	conn_close(&server);
}

/* It is refused as an unused number is. */
static const char *is_refused(int err)
{
	if (!err)
		return "it is connected";
	return err == EINVAL ? NULL : strerror(err);
}

/* The QP is as it was: its owner connects it. */
static void connect_it(struct conn *c)
{
	pthread_t thread = begin_server();

	conn_connect(c, NULL, 0);
	conn_end(c);
	end_server(thread);
}

static void another_users_connect(void)
{
	const char *why;
	struct conn c;

	begin_owner(&c);
	why = is_refused(try_number(&caller, UNKNOWN_QPN, -1));
	if (!why)
		why = is_refused(try_number(&caller, c.id->qp->qp_num, -1));
	if (why)
		conn_end(&c);
	else
		connect_it(&c);
	verdict("another-user-does-not-connect-a-qp", why);
}

static void another_users_accept(void)
{
	struct sockaddr_in to = tcp_address(host, atoi(next_port));
	int fd, listens;
	const char *why;
	struct conn c;

	begin_owner(&c);
	if (read(taker.fd, &listens, sizeof(listens)) != sizeof(listens))
		fail("the other user's process does not listen");
	fd = tcp_send_request(&to);
	why = is_refused(try_number(&taker, c.id->qp->qp_num, -1));
	close(fd);
	if (why)
		conn_end(&c);
	else
		connect_it(&c);
	verdict("another-user-does-not-accept-with-a-qp", why);
}

/* By the device's open file the QP can be destroyed, too. */
static void try_with_the_device_file(void)
{
	pthread_t thread;
	struct conn c;
	int err;

	begin_owner(&c);
	thread = begin_server();
	err = try_number(&caller, c.id->qp->qp_num, c.id->verbs->cmd_fd);
	if (err)
		fail("who was passed the file: %s", strerror(err));
	conn_end(&c);
	end_server(thread);
	verdict("a-user-with-the-device-file-connects-a-qp", NULL);
}

/* More of them than any search would look at. The last number is 9999. */
static void open_thousands_of_files(void)
{
	struct rlimit lim = { 10000, 10000 };
	int fd;

	if (setrlimit(RLIMIT_NOFILE, &lim))
		_exit(EMFILE);
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd < 9998);
	if (fd != 9998)
		_exit(EMFILE);
}

/* To another number, behind the others, which libibverbs does not mind. */
static void move_behind_others(int file, int *number)
{
	*number = fcntl(file, F_DUPFD, 9999);
	if (*number != 9999)
		_exit(EMFILE);
	close(file);
}

/* INIT again. It is the child's call, by the file that its parent opened. */
static int use_the_file(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS);
}

static int run_child(struct conn *c, bool uses_file, bool has_many_files)
{
	if (has_many_files) {
		open_thousands_of_files();
		move_behind_others(c->id->verbs->cmd_fd, &c->id->verbs->cmd_fd);
	}
	if (uses_file && use_the_file(c->id->qp))
		return EIO;
	return connect_number(c->id->qp->qp_num);
}

/* ucma takes nothing of a child's by a file that was opened before: so by an id of its own. */
static int try_as_child(struct conn *c, bool uses_file, bool has_many_files)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(run_child(c, uses_file, has_many_files));
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void a_childs_connect(const char *name, bool has_many_files)
{
	pthread_t thread;
	struct conn c;
	int err;

	begin_owner(&c);
	thread = begin_server();
	err = try_as_child(&c, true, has_many_files);
	if (err)
		fail("the child's connect: %s", strerror(err));
	conn_end(&c);
	end_server(thread);
	verdict(name, NULL);
}

/* A child may have given up what its parent had: then it may not connect until it uses the file. */
static void an_idle_childs_connect(void)
{
	const char *why;
	struct conn c;

	begin_owner(&c);
	why = is_refused(try_as_child(&c, false, false));
	if (why)
		conn_end(&c);
	else
		connect_it(&c);
	verdict("a-child-that-has-not-used-the-file-is-refused", why);
}

/* ---- numbers ---- */

static int by_value(const void *a, const void *b)
{
	return (int)*(const uint32_t *)a - (int)*(const uint32_t *)b;
}

static void numbers_at_random(void)
{
	uint32_t number[QPS], near = 0;
	struct ibv_qp *qp[QPS];
	struct conn c;
	int i;

	begin_owner(&c);
	for (i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr attr = { .send_cq = c.cq, .recv_cq = c.cq,
						 .qp_type = IBV_QPT_RC,
						 .cap = { 1, 1, 1, 1, 0 } };

		qp[i] = ibv_create_qp(c.pd, &attr);
		if (!qp[i])
			fail("ibv_create_qp: %s", strerror(errno));
		number[i] = qp[i]->qp_num;
	}
	qsort(number, QPS, sizeof(number[0]), by_value);
	for (i = 1; i < QPS; i++)
		near += number[i] - number[i - 1] < APART;
	for (i = 0; i < QPS; i++)
		ibv_destroy_qp(qp[i]);
	conn_end(&c);
	verdict("qp-numbers-cannot-be-guessed", near > QPS / 2 ? "they are in a row" : NULL);
}

int main(int argc, char **argv)
{
	conn_program = "whose-qp";
	if (argc != 3) {
		fprintf(stderr, "whose-qp HOST PORT\n");
		return 2;
	}
	host = argv[1];
	snprintf(port, sizeof(port), "%d", atoi(argv[2]));
	snprintf(next_port, sizeof(next_port), "%d", atoi(argv[2]) + 1);
	caller = begin_other_user(connects);
	taker = begin_other_user(accepts);
	conn_listen(&server, host, port);
	another_users_connect();
	another_users_accept();
	numbers_at_random();
	an_idle_childs_connect();
	a_childs_connect("a-child-connects-the-qp-of-its-parent", false);
	a_childs_connect("a-child-with-thousands-of-files-does-too", true);
	/* The last: from now on that process has the file. */
	try_with_the_device_file();
	end_other_user(&caller);
	end_other_user(&taker);
	rdma_destroy_id(server.listener);
	rdma_destroy_event_channel(server.events);
	return verdict_end();
}
