// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "host/cable.h"
#include "host/port_events.h"
#include "host/qp.h"
#include "port_switch.h"
#include "process/gate.h"
#include "process/options.h"
#include "ud.h"

struct flap {
	struct rl_watch watch;		/* first: the references, and the time */
	const struct rl_device *dev;
};

static struct {
	pthread_mutex_t lock;		/* outside all others: one switch at a time */
	struct flap *flaps[RL_DEVICES];	/* those that are down for a time */
	u64 up_at[RL_DEVICES];		/* ms */
} ports = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the switch ---- */

static void change_ud_qps(const struct rl_device *d)
{
	struct rl_qp_brief b = { 0 };
	struct rl_qp *qp;

	while ((qp = rl_qp_next(b.qpn, &b))) {
		if (b.dev == d && qp->ud)
			rl_ud_port_changed(qp);
		rl_qp_put_own(qp);
	}
}

static int switch_port(const struct rl_device *d, bool up)
{
	struct rl_port_state before, after;
	int rv;

	rl_device_read_port(d, &before);
	rl_device_pull(d, !up);
	rv = rl_cable_set_device(d, RL_CABLE_HELD, !up);
	change_ud_qps(d);
	rl_device_read_port(d, &after);
	if (before.up != after.up)
		rl_port_events_report(d, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	return rv;
}

int rl_port_switch(const struct rl_device *d, bool up)
{
	int rv;

	pthread_mutex_lock(&ports.lock);
	rv = switch_port(d, up);
	pthread_mutex_unlock(&ports.lock);
	return rv;
}

/* ---- for a time ---- */

static struct flap *flap_of(struct rl_watch *w)
{
	return container_of(w, struct flap, watch);
}

static void flap_timeout(struct rl_watch *w)
{
	struct flap *f = flap_of(w);
	u32 i = f->dev->index;
	bool over;

	pthread_mutex_lock(&ports.lock);
	over = ports.up_at[i] <= rl_now_ms();
	if (!over) {
		rl_watch_set_deadline(w, ports.up_at[i]);
	} else if (ports.flaps[i] == f) {
		ports.flaps[i] = NULL;
		switch_port(f->dev, true);
	}
	pthread_mutex_unlock(&ports.lock);
	if (over) {
		rl_watch_end(w);
		rl_watch_put(w);
	}
}

static void flap_ready(struct rl_watch *w, u32 events)
{
}

static void flap_revive(struct rl_watch *w)
{
}

static void flap_release(struct rl_watch *w)
{
	free(flap_of(w));
}

static const struct rl_watch_ops flap_ops = {
	.ready = flap_ready,
	.timeout = flap_timeout,
	.revive = flap_revive,
	.release = flap_release,
};

/* Its clocks stand still until it uses what it inherited: there the ports come up at once. */
static void end_flaps_in_child(void)
{
	const struct rl_device *d;
	u32 i;

	for (i = 0; (d = rl_device_at(i)); i++) {
		if (!ports.flaps[d->index])
			continue;
		ports.flaps[d->index] = NULL;
		rl_device_pull(d, false);
		rl_cable_set_device(d, RL_CABLE_HELD, false);
	}
}

static void port_switch_handle_forks(void)
{
	pthread_atfork(NULL, NULL, end_flaps_in_child);
}

static struct flap *flap_new(const struct rl_device *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct flap *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	rl_gate_once(&once, port_switch_handle_forks);
	rl_watch_init(&f->watch, &flap_ops);
	f->dev = d;
	if (!rl_watch_begin(&f->watch))
		return f;
	rl_watch_put(&f->watch);
	return NULL;
}

void rl_port_flap(const struct rl_device *d, u32 ms)
{
	u64 up_at = rl_now_ms() + ms;
	u32 i = d->index;

	pthread_mutex_lock(&ports.lock);
	if (!ports.flaps[i])
		ports.flaps[i] = flap_new(d);
	if (ports.flaps[i]) {
		ports.up_at[i] = max_t(u64, ports.up_at[i], up_at);
		rl_watch_set_deadline(&ports.flaps[i]->watch, ports.up_at[i]);
		switch_port(d, false);
	} else {
		rl_complain("no memory: the port of %s stays up", d->name);
	}
	pthread_mutex_unlock(&ports.lock);
}
