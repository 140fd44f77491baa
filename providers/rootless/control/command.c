// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "command.h"
#include "faults/faults.h"
#include "host/cable.h"
#include "host/conn.h"
#include "host/port_events.h"
#include "host/qp.h"
#include "kernel/core/verbs.h"
#include "roce/port_switch.h"
#include "roce/ud.h"

/* Room for the longest line of a list, and for what follows the last QP. */
#define LINE_ROOM 256
#define NAME_MAX_LEN (INET6_ADDRSTRLEN + 8)
/* The progress thread waits so long for a call of the program. */
#define BUSY_MS 1000

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

/* Returns the QP's state. */
static u32 name_connection(struct rl_qp *qp, char own[NAME_MAX_LEN], char peer[NAME_MAX_LEN])
{
	struct rl_conn *c = rl_qp_lock_core(qp);
	struct sockaddr_storage a = {}, b = {};
	u32 state = weft_qpc_verbs_state(&qp->core);

	if (c && c->fd >= 0)
		rl_conn_names(c, &a, &b);
	if (c) {
		rl_conn_release(c);
		rl_conn_put(c);
	} else {
		rl_unlock(&qp->lock);
	}
	name_address(&a, own);
	name_address(&b, peer);
	return state;
}

static void list_qp(struct reply *r, struct rl_qp *qp, const struct rl_qp_brief *b)
{
	char own[NAME_MAX_LEN], peer[NAME_MAX_LEN];
	u32 state = name_connection(qp, own, peer);

	control_say(r, "qp %u %s %s %s %s %s\n", b->qpn, b->dev->name, type_name(b->type),
		    state_name(state), own, peer);
}

static void list_devices(struct reply *r)
{
	const struct rl_device *d;
	u32 i;

	for (i = 0; (d = rl_device_at(i)); i++)
		control_say(r, "device %s %s\n", d->name, d->netdev);
}

/* A page: the QPs after number @after, as many as there is room for. */
static void run_list(struct reply *r, u32 after)
{
	struct rl_qp_brief b = { .qpn = after };
	struct rl_qp *qp;

	if (!after)
		list_devices(r);
	while (RL_CONTROL_REPLY - r->len >= 2 * LINE_ROOM && (qp = rl_qp_next(b.qpn, &b))) {
		list_qp(r, qp, &b);
		rl_qp_put_own(qp);
	}
	if (RL_CONTROL_REPLY - r->len < 2 * LINE_ROOM)
		control_say(r, "more %u\n", b.qpn);
}

/* ---- what breaks something ---- */

typedef int change_qp(struct rl_qp *qp, const struct rl_control_command *c);

/* Frozen, it could not tell its peer. Context's lock. */
static void control_fail_qp(struct rl_qp *qp)
{
	rl_cable_set_qp(qp, RL_CABLE_HELD, false);
	rl_qp_fail(qp);
	if (weft_qpc_verbs_state(&qp->core) != WEFT_VS_ERR)
		rl_qp_move(qp, WEFT_VS_ERR);
}

static int disconnect_qp(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);

	if (!c)
		return -ENOTCONN;
	rl_conn_break_off(c);
	c->step_due = true;
	rl_conn_unlock(c);
	rl_conn_put(c);
	return 0;
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

/* With the lock of the QP's context, as its program changes it. */
static int change_locked(struct rl_qp *qp, const struct rl_control_command *c, change_qp *change,
			 u32 patience_ms)
{
	int rv;

	if (!rl_context_lock_within(qp->ctx, patience_ms))
		return -EBUSY;
	rv = change(qp, c);
	pthread_mutex_unlock(&qp->ctx->lock);
	return rv;
}

/* All of them, whatever one says: the first error. Only the first busy context is waited for. */
static int change_device_qps(const struct rl_device *d, const struct rl_control_command *c,
			     change_qp *change)
{
	struct rl_qp_brief b = { 0 };
	u32 patience_ms = BUSY_MS;
	struct rl_qp *qp;
	int rv = 0, err;

	while ((qp = rl_qp_next(b.qpn, &b))) {
		err = b.dev == d ? change_locked(qp, c, change, patience_ms) : 0;
		patience_ms = err == -EBUSY ? 0 : patience_ms;
		rv = rv ?: err;
		rl_qp_put_own(qp);
	}
	return rv;
}

static int silence_qp(struct rl_qp *qp, const struct rl_control_command *c)
{
	rl_qp_silence(qp);
	return 0;
}

/*
 * A program that gets the event finds its QPs in ERR. Until its context is dead it may connect
 * others, which fall silent afterwards.
 */
static int break_device(const struct rl_device *d, const struct rl_control_command *c)
{
	change_device_qps(d, c, silence_qp);
	rl_port_events_report_death(d);
	return change_device_qps(d, c, silence_qp);
}

static int set_lid(const struct rl_device *d, u16 lid)
{
	rl_device_set_lid(d, lid);
	rl_port_events_report(d, IBV_EVENT_LID_CHANGE);
	return 0;
}

/* Without a GID the table is as before. */
static int change_gids(const struct rl_device *d, const struct rl_control_command *c)
{
	if (c->has_gid && !rl_device_set_gid(d, (u32)c->value, c->gid))
		return -ERANGE;
	rl_port_events_report(d, IBV_EVENT_GID_CHANGE);
	return 0;
}

static void say_result(struct reply *r, int rv)
{
	switch (rv) {
	case 0:
		return;
	case -ENOTCONN:
		control_say(r, "error the QP has no connection\n");
		return;
	case -EINVAL:
		control_say(r, "error a UD QP has no connections\n");
		return;
	case -ERANGE:
		control_say(r, "error the table of GIDs has no such entry\n");
		return;
	case -EBUSY:
		control_say(r, "error a call of the program takes too long: ask again\n");
		return;
	default:
		control_say(r, "error no memory\n");
	}
}

static int change_device(const struct rl_device *d, const struct rl_control_command *c)
{
	switch (c->verb) {
	case RL_CONTROL_FATAL:
		return break_device(d, c);
	case RL_CONTROL_PORT:
		return rl_port_switch(d, c->value);
	case RL_CONTROL_LID:
		return set_lid(d, (u16)c->value);
	case RL_CONTROL_GID:
		return change_gids(d, c);
	case RL_CONTROL_RATE:
		return rl_cable_set_device(d, RL_CABLE_RATE, c->value);
	case RL_CONTROL_LOSS:
		return rl_cable_set_device(d, RL_CABLE_LOSS, c->value);
	default:
		return rl_cable_set_device(d, RL_CABLE_DELAY, c->value);
	}
}

static void run_on_device(struct reply *r, const struct rl_control_command *c)
{
	const struct rl_device *d = device_named(c->device);

	if (d)
		say_result(r, change_device(d, c));
	else
		control_say(r, "error no device %s\n", c->device);
}

static int freeze_qp(struct rl_qp *qp, bool frozen)
{
	if (!qp->ud)
		return rl_cable_set_qp(qp, RL_CABLE_HELD, frozen);
	rl_ud_freeze(qp, frozen);
	return 0;
}

/* Context's lock. */
static int change_one_qp(struct rl_qp *qp, const struct rl_control_command *c)
{
	switch (c->verb) {
	case RL_CONTROL_ERROR:
		control_fail_qp(qp);
		return 0;
	case RL_CONTROL_DISCONNECT:
		return disconnect_qp(qp);
	case RL_CONTROL_FREEZE:
		return freeze_qp(qp, true);
	case RL_CONTROL_THAW:
		return freeze_qp(qp, false);
	case RL_CONTROL_RATE:
		return rl_cable_set_qp(qp, RL_CABLE_RATE, c->value);
	case RL_CONTROL_LOSS:
		return rl_cable_set_qp(qp, RL_CABLE_LOSS, c->value);
	default:
		return rl_cable_set_qp(qp, RL_CABLE_DELAY, c->value);
	}
}

static void run_on_qp(struct reply *r, const struct rl_control_command *c)
{
	struct rl_qp *qp = rl_qp_find_own(c->qpn);

	if (!qp) {
		control_say(r, "error no QP %u\n", c->qpn);
		return;
	}
	say_result(r, change_locked(qp, c, change_one_qp, BUSY_MS));
	rl_qp_put_own(qp);
}

static void replace_faults(struct reply *r, const struct rl_control_command *c)
{
	struct rl_profile_error e = { 0 };

	if (rl_faults_replace(c->text, c->text_len, &e))
		return;
	if (e.line)
		control_say(r, "error line %u: %s\n", e.line, e.why);
	else
		control_say(r, "error %s\n", e.why);
}

size_t rl_control_run(const char *request, size_t len, char reply[RL_CONTROL_REPLY])
{
	struct reply r = { .text = reply };
	struct rl_control_command c;
	const char *why = rl_control_parse(&c, request, len);

	control_say(&r, RL_CONTROL_VERSION "\n");
	if (why)
		control_say(&r, "error %s\n", why);
	else if (c.verb == RL_CONTROL_LIST)
		run_list(&r, c.qpn);
	else if (c.verb == RL_CONTROL_FAULTS)
		replace_faults(&r, &c);
	else if (*c.device)
		run_on_device(&r, &c);
	else
		run_on_qp(&r, &c);
	control_say(&r, "end\n");
	return r.len;
}
