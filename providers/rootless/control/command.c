// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "command.h"
#include "host/conn.h"
#include "host/port_events.h"
#include "host/qp.h"
#include "kernel/core/verbs.h"

#define BRIEFS 64
#define NAME_MAX_LEN (INET6_ADDRSTRLEN + 8)

struct reply {
	char *text;
	size_t len;
};

/* Cut off at the end of the reply. */
static void __attribute__((format(printf, 2, 3))) control_say(struct reply *r, const char *fmt, ...)
{
	size_t room = RL_CONTROL_REPLY - r->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(r->text + r->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		r->len += min_t(size_t, (size_t)n, room - 1);
}

/* ---- list ---- */

static const char *type_name(u8 type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	}
	return "other";
}

static const char *state_name(u32 state)
{
	static const char *const names[WEFT_VS_NR] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void name_address(const struct sockaddr_storage *a, char name[NAME_MAX_LEN])
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;
	char ip[INET6_ADDRSTRLEN];

	if (a->ss_family == AF_INET && inet_ntop(AF_INET, &four->sin_addr, ip, sizeof(ip)))
		snprintf(name, NAME_MAX_LEN, "%s:%u", ip, ntohs(four->sin_port));
	else if (a->ss_family == AF_INET6 && inet_ntop(AF_INET6, &six->sin6_addr, ip, sizeof(ip)))
		snprintf(name, NAME_MAX_LEN, "[%s]:%u", ip, ntohs(six->sin6_port));
	else
		snprintf(name, NAME_MAX_LEN, "-");
}

static void name_connection(u32 qpn, char own[NAME_MAX_LEN], char peer[NAME_MAX_LEN])
{
	struct sockaddr_storage a = {}, b = {};
	struct rl_qp *qp = rl_qp_find(qpn);
	struct rl_conn *c = qp ? rl_conn_of_qp(qp) : NULL;

	if (c) {
		if (c->fd >= 0)
			rl_socket_names(c->fd, &a, &b);
		rl_conn_release(c);
		rl_conn_put(c);
	}
	if (qp)
		rl_qp_put(qp);
	name_address(&a, own);
	name_address(&b, peer);
}

static void list_qp(struct reply *r, const struct rl_qp_brief *b)
{
	char own[NAME_MAX_LEN], peer[NAME_MAX_LEN];

	name_connection(b->qpn, own, peer);
	control_say(r, "qp %u %s %s %s %s %s\n", b->qpn, b->dev->name, type_name(b->type),
		    state_name(b->state), own, peer);
}

static void list_devices(struct reply *r)
{
	const struct rl_device *d;
	u32 i;

	for (i = 0; (d = rl_device_at(i)); i++)
		control_say(r, "device %s %s\n", d->name, d->netdev);
}

/* One page: what follows is asked for from the number behind "more". */
static void run_list(struct reply *r, u32 from)
{
	struct rl_qp_brief briefs[BRIEFS];
	u32 n, i;

	if (!from)
		list_devices(r);
	n = rl_qp_brief(&from, briefs, BRIEFS);
	for (i = 0; i < n; i++)
		list_qp(r, &briefs[i]);
	if (from)
		control_say(r, "more %u\n", from);
}

/* ---- what breaks something ---- */

static void fail_qp(struct rl_qp *qp)
{
	rl_qp_fail(qp);
	if (weft_qpc_verbs_state(&qp->core) != WEFT_VS_ERR)
		rl_qp_move(qp, WEFT_VS_ERR);
}

static bool disconnect_qp(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);

	if (!c)
		return false;
	rl_conn_break_off(c);
	c->step_due = true;
	rl_conn_unlock(c);
	rl_conn_put(c);
	return true;
}

static void run_on_qp(struct reply *r, const struct rl_control_command *c)
{
	struct rl_qp *qp = rl_qp_find(c->number);
	bool done = true;

	if (!qp) {
		control_say(r, "error no QP %u\n", c->number);
		return;
	}
	if (c->verb == RL_CONTROL_ERROR)
		fail_qp(qp);
	else
		done = disconnect_qp(qp);
	rl_qp_put(qp);
	if (!done)
		control_say(r, "error QP %u has no connection\n", c->number);
}

static const struct rl_device *device_named(const char *name)
{
	const struct rl_device *d;
	u32 i;

	for (i = 0; (d = rl_device_at(i)); i++)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

static void fail_device_qps(const struct rl_device *d)
{
	struct rl_qp_brief briefs[BRIEFS];
	u32 at = 0, n, i;
	struct rl_qp *qp;

	do {
		n = rl_qp_brief(&at, briefs, BRIEFS);
		for (i = 0; i < n; i++) {
			qp = briefs[i].dev == d ? rl_qp_find(briefs[i].qpn) : NULL;
			if (!qp)
				continue;
			fail_qp(qp);
			rl_qp_put(qp);
		}
	} while (at);
}

static void run_fatal(struct reply *r, const char *name)
{
	const struct rl_device *d = device_named(name);

	if (!d) {
		control_say(r, "error no device %s\n", name);
		return;
	}
	rl_port_events_report(d, IBV_EVENT_DEVICE_FATAL);
	fail_device_qps(d);
}

size_t rl_control_run(const char *text, size_t len, char reply[RL_CONTROL_REPLY])
{
	struct reply r = { .text = reply };
	struct rl_control_command c;

	control_say(&r, RL_CONTROL_VERSION "\n");
	if (!rl_control_parse(&c, text, len))
		control_say(&r, "error no such request\n");
	else if (c.verb == RL_CONTROL_LIST)
		run_list(&r, c.number);
	else if (c.verb == RL_CONTROL_FATAL)
		run_fatal(&r, c.device);
	else
		run_on_qp(&r, &c);
	control_say(&r, "end\n");
	return r.len;
}
