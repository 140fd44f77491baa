// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asks a peer's port for a QP, again and again, until there is a reply or the deadline has passed.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "sidr.h"
#include "ud.h"
#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/stats.h"

/* Datagrams read in one go. */
#define ROUND 16

struct rl_sidr_client {
	struct rl_watch watch;		/* first: the references */

	/* rdma_cm's lock */
	struct rl_cmid *id;		/* NULL: it has ended; referenced */
	int fd;				/* hidden; connected: receives from the peer only */
	u64 number;
	u64 deadline;			/* ms */
	u32 times;			/* requests sent so far */
	u8 request[RL_SIDR_LEN];
};

static struct rl_sidr_client *client_of(struct rl_watch *w)
{
	return container_of(w, struct rl_sidr_client, watch);
}

/* ---- what became of it ---- */

static void sidr_client_stop(struct rl_sidr_client *a)
{
	struct rl_cmid *id = a->id;

	a->id = NULL;
	id->sidr_client = NULL;
	rl_thread_remove(a->fd);
	rl_fd_close_hidden(a->fd);
	rl_watch_end(&a->watch);
	rl_watch_put(&a->watch);
	rl_cmid_put(id);
}

static void sidr_client_report(struct rl_sidr_client *a, enum rl_cm_event event, int status,
			       const struct rdma_ucm_ud_param *ud)
{
	const struct rl_cm_event_data w = { .event = event, .status = status, .ud = ud };

	rl_cmid_report(a->id, &w);
	sidr_client_stop(a);
}

static void sidr_client_fail(struct rl_sidr_client *a, int status)
{
	sidr_client_report(a, RL_CM_UNREACHABLE, status, NULL);
}

static void take_reply(struct rl_sidr_client *a, const struct rl_sidr_msg *answer)
{
	struct rdma_ucm_ud_param ud = { .private_data_len = (u8)answer->len };

	memcpy(ud.private_data, answer->data, answer->len);
	if (answer->status != RL_SIDR_VALID) {
		sidr_client_report(a, RL_CM_UNREACHABLE, answer->status, &ud);
		return;
	}
	ud.qp_num = answer->qpn;
	ud.qkey = answer->qkey;
	rl_cm_put_path(a->id, &ud.ah_attr);
	sidr_client_report(a, RL_CM_ESTABLISHED, 0, &ud);
}

/* ---- asking ---- */

static void ask(struct rl_sidr_client *a)
{
	u64 now = rl_now_ms(), next = now + rl_sidr_timeout(a->times++);

	/* A request that cannot be sent now counts as lost; but an ICMP error may have arrived. */
	if (rl_raw(SYS_sendto, a->fd, a->request, sizeof(a->request), MSG_DONTWAIT | MSG_NOSIGNAL,
		   NULL, 0) == -ECONNREFUSED)
		sidr_client_fail(a, RL_SIDR_UNSUPPORTED);
	else
		rl_watch_set_deadline(&a->watch, min_t(u64, next, a->deadline));
}

static bool fits(const struct rl_sidr_client *a, const struct rl_sidr_msg *answer)
{
	return answer->kind == RL_SIDR_REPLY && answer->number == a->number &&
	       answer->ps == a->id->ps;
}

/* False: no more to read, or no need to. */
static bool sidr_client_read_one(struct rl_sidr_client *a)
{
	u8 buf[RL_SIDR_LEN + 1];
	struct rl_sidr_msg answer;
	long n = rl_raw(SYS_recvfrom, a->fd, buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL);

	if (n == -ECONNREFUSED)
		sidr_client_fail(a, RL_SIDR_UNSUPPORTED);
	if (n < 0)
		return false;
	if (!rl_sidr_read(buf, (u32)n, &answer) || !fits(a, &answer)) {
		rl_count(RL_STRANGE_DATAGRAMS, 1);
		return true;
	}
	take_reply(a, &answer);
	return false;
}

/* ---- the progress thread's calls ---- */

static void sidr_client_ready(struct rl_watch *w, u32 events)
{
	struct rl_sidr_client *a = client_of(w);
	u32 i;

	rl_cm_lock();
	for (i = 0; i < ROUND && a->id && sidr_client_read_one(a); i++)
		;
	rl_cm_unlock();
}

static void sidr_client_timeout(struct rl_watch *w)
{
	struct rl_sidr_client *a = client_of(w);

	rl_cm_lock();
	if (a->id && rl_now_ms() >= a->deadline)
		sidr_client_fail(a, -ETIMEDOUT);
	else if (a->id)
		ask(a);
	rl_cm_unlock();
}

static void sidr_client_revive(struct rl_watch *w)
{
	struct rl_sidr_client *a = client_of(w);

	rl_cm_lock();
	if (a->id)
		rl_thread_add(w, a->fd, EPOLLIN);
	rl_cm_unlock();
}

static void sidr_client_release(struct rl_watch *w)
{
	free(client_of(w));
}

static const struct rl_watch_ops client_ops = {
	.ready = sidr_client_ready,
	.timeout = sidr_client_timeout,
	.revive = sidr_client_revive,
	.release = sidr_client_release,
};

/* ---- life ---- */

/* The number cannot be guessed without seeing the request. */
static int write_request(struct rl_sidr_client *a, const struct rl_cmid *id,
			 const struct rdma_ucm_conn_param *p)
{
	struct rl_sidr_msg q = {
		.kind = RL_SIDR_REQUEST, .ps = id->ps, .len = p->private_data_len,
	};

	if (getrandom(&a->number, sizeof(a->number), 0) != sizeof(a->number))
		return -EAGAIN;
	q.number = a->number;
	memcpy(q.data, p->private_data, q.len);
	rl_sidr_write(a->request, &q);
	return 0;
}

/* The client takes the id's socket over. */
static int sidr_client_start(struct rl_sidr_client *a, struct rl_cmid *id)
{
	int rv = rl_raw(SYS_connect, id->sock, &id->dst, rl_addr_len(&id->dst));

	if (!rv)
		rv = rl_watch_begin(&a->watch);
	if (rv)
		return rv;
	rv = rl_thread_add(&a->watch, id->sock, EPOLLIN);
	if (rv)
		rl_watch_end(&a->watch);
	return rv;
}

int rl_sidr_client_begin(struct rl_cmid *id, const struct rdma_ucm_conn_param *p, int fault)
{
	struct rl_sidr_client *a;
	int rv;

	/* A group cannot answer. */
	if (rl_addr_is_group(&id->dst))
		return -EINVAL;
	/* There was no port for the id. */
	if (id->sock < 0)
		return -EADDRINUSE;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	rl_watch_init(&a->watch, &client_ops);
	rv = write_request(a, id, p);
	if (!rv)
		rv = sidr_client_start(a, id);
	if (rv) {
		rl_watch_put(&a->watch);
		return rv;
	}
	a->fd = id->sock;
	id->sock = -1;
	id->sidr_client = a;
	rl_cmid_get(id);
	a->id = id;
	a->deadline = rl_now_ms() + rl_options()->accept_ms;
	if (unlikely(fault))
		sidr_client_fail(a, fault);
	else
		ask(a);
	return 0;
}

void rl_sidr_client_end(struct rl_cmid *id)
{
	sidr_client_stop(id->sidr_client);
}
