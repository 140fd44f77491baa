// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cable.h"
#include "due_clock.h"
#include "process/copy.h"
#include "process/options.h"
#include "process/raw.h"
#include "qp.h"

/* A sender may be so far ahead of the link; the progress thread's clock has milliseconds. */
#define AHEAD_NS	2000000ull
/* A sender that was woken late makes up for so much of it. */
#define LATE_NS		50000000ull
#define PIECE_MIN	1448
/* There is no waiting for TCP's room or for memory: retry. */
#define RETRY_MS	1
/* Octets under way by a delay: a connection's, and the process's. */
#define UNDER_WAY_MAX	(16u << 20)
#define ALL_UNDER_WAY_MAX (64u << 20)
#define PIECES_MAX	64
/* Linux' TCP repeats a segment after this at the earliest. */
#define REPEAT_US	200000
#define NEVER		(~0ull / 2)

/* Octets that arrive later. */
struct parcel {
	struct list_head node;
	u64 due_ns;
	u32 off, len;
	u8 data[];
};

/* What a process has under way on a connection: memory that it shares with its children. */
struct account {
	s32 process;			/* atomic; 0: it will not send the rest */
	u32 octets;			/* atomic */
};

struct rl_cable {
	struct rl_watch watch;		/* first: the references, and the time */
	struct rl_conn *c;		/* referenced */

	/* the connection's lock */
	bool held, paced;
	u32 delay_us;
	u32 loss;			/* of RL_CABLE_CERTAIN */
	u64 draws;			/* so far: the same losses each time */
	struct list_head parcels;
	u32 under_way;			/* octets in parcels */
	u32 forks;			/* rl_fd_forks() of the process that has them */
	struct account *own;		/* of the parcels; NULL: there were none */
	struct account *before;		/* an older process's, whose octets come first; or NULL */
	struct rl_due due;		/* when the first parcel is */
	u64 retry_ms;			/* a send waits until then; 0: none */
	bool shut_due;
	bool lost;			/* a frame of start-up, while it was held */
};

static struct {
	struct rl_lock lock;		/* a leaf */
	struct rl_cable_cfg devices[RL_DEVICES];
	u32 under_way;			/* atomic: octets of all parcels */
	u32 forks;			/* atomic: rl_fd_forks() of the process that has them */
} cables;

/* ---- the configuration ---- */

/* Of QPs: their lock, inside the connection's. */
static void read_qp_cfg(const struct rl_conn *c, struct rl_cable_cfg *cfg)
{
	*cfg = (struct rl_cable_cfg){};
	if (!c->qp)
		return;
	rl_lock(&c->qp->lock);
	if (c->qp->cable)
		*cfg = *c->qp->cable;
	rl_unlock(&c->qp->lock);
}

static void read_device_cfg(const struct rl_device *d, struct rl_cable_cfg *cfg)
{
	*cfg = (struct rl_cable_cfg){};
	if (!d)
		return;
	rl_lock(&cables.lock);
	*cfg = cables.devices[d->index];
	rl_unlock(&cables.lock);
}

static void change_cfg(struct rl_cable_cfg *cfg, enum rl_cable_what what, u64 value)
{
	switch (what) {
	case RL_CABLE_HELD:
		cfg->held = value;
		break;
	case RL_CABLE_RATE:
		cfg->bps = value;
		cfg->pace = (struct rl_pace){};
		break;
	case RL_CABLE_DELAY:
		cfg->delay_us = (u32)value;
		break;
	case RL_CABLE_LOSS:
		cfg->loss = (u32)value;
		break;
	}
}

/* ---- the rate ---- */

/* How many of @len octets the link takes now; 0: *@at is when it takes some. */
static u32 pace_grant(struct rl_cable_cfg *cfg, u32 len, u64 now, u64 *at)
{
	struct rl_pace *p = &cfg->pace;
	u64 room;

	if (!cfg->bps)
		return len;
	if (p->free_ns + LATE_NS < now)
		p->free_ns = p->awaited ? now - LATE_NS : now;
	if (p->free_ns >= now + AHEAD_NS) {
		p->awaited = true;
		*at = max_t(u64, *at, p->free_ns - AHEAD_NS);
		return 0;
	}
	room = (now + AHEAD_NS - p->free_ns) * (cfg->bps / 8) / 1000000000;
	room = max_t(u64, room, PIECE_MIN);
	p->awaited = room < len;
	return (u32)min_t(u64, len, room);
}

static void pace_charge(struct rl_cable_cfg *cfg, u32 n)
{
	if (cfg->bps)
		cfg->pace.free_ns += n * 8000000000ull / cfg->bps;
}

static u32 grant_all(struct rl_conn *c, u32 len, u64 now, u64 *at)
{
	if (c->qp) {
		rl_lock(&c->qp->lock);
		if (c->qp->cable)
			len = pace_grant(c->qp->cable, len, now, at);
		rl_unlock(&c->qp->lock);
	}
	if (c->dev && len) {
		rl_lock(&cables.lock);
		len = pace_grant(&cables.devices[c->dev->index], len, now, at);
		rl_unlock(&cables.lock);
	}
	return len;
}

static void charge_all(struct rl_conn *c, u32 n)
{
	if (c->qp) {
		rl_lock(&c->qp->lock);
		if (c->qp->cable)
			pace_charge(c->qp->cable, n);
		rl_unlock(&c->qp->lock);
	}
	if (c->dev) {
		rl_lock(&cables.lock);
		pace_charge(&cables.devices[c->dev->index], n);
		rl_unlock(&cables.lock);
	}
}

/* ---- accounts ---- */

static struct account *open_account(void)
{
	long at = rl_raw(SYS_mmap, NULL, sizeof(struct account), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct account *a = (struct account *)at;

	if (at < 0)
		return NULL;
	a->process = getpid();
	return a;
}

static void close_account(struct account **a)
{
	if (*a)
		rl_raw(SYS_munmap, *a, sizeof(**a));
	*a = NULL;
}

/* A zombie is gone, too: it has no memory. */
static bool process_is_gone(s32 process)
{
	u8 octet;
	struct iovec here = { &octet, 1 }, there = { &octet, 1 };

	return !process || rl_raw(SYS_kill, process, 0) == -ESRCH ||
	       rl_raw(SYS_process_vm_readv, process, &here, 1, &there, 1, 0) == -ESRCH;
}

/* 0: all of it was sent; -EAGAIN: not yet; -ECONNRESET: it never will be. */
static int await_account(struct account **account)
{
	struct account *a = *account;
	bool gone;

	if (!a)
		return 0;
	gone = process_is_gone(__atomic_load_n(&a->process, __ATOMIC_ACQUIRE));
	if (__atomic_load_n(&a->octets, __ATOMIC_ACQUIRE))
		return gone ? -ECONNRESET : -EAGAIN;
	close_account(account);
	return 0;
}

/* ---- the delay ---- */

static void free_parcel(struct rl_cable *cable, struct parcel *p)
{
	list_del(&p->node);
	cable->under_way -= p->len;
	free(p);
}

static void free_parcels(struct rl_cable *cable)
{
	while (!list_empty(&cable->parcels))
		free_parcel(cable, list_first_entry(&cable->parcels, struct parcel, node));
}

/* A child counts its own. */
static u32 *all_under_way(void)
{
	u32 forks = rl_fd_forks();

	if (__atomic_exchange_n(&cables.forks, forks, __ATOMIC_RELAXED) != forks)
		__atomic_store_n(&cables.under_way, 0, __ATOMIC_RELAXED);
	return &cables.under_way;
}

/* TCP has it. */
static void end_parcel(struct rl_cable *cable, struct parcel *p)
{
	__atomic_fetch_sub(&cable->own->octets, p->len, __ATOMIC_RELEASE);
	__atomic_fetch_sub(all_under_way(), p->len, __ATOMIC_RELAXED);
	free_parcel(cable, p);
}

/* TCP never gets it: a child that has the connection must not send what comes after. */
static void drop_parcels(struct rl_cable *cable)
{
	if (list_empty(&cable->parcels))
		return;
	__atomic_store_n(&cable->own->process, 0, __ATOMIC_RELEASE);
	__atomic_fetch_sub(all_under_way(), cable->under_way, __ATOMIC_RELAXED);
	free_parcels(cable);
}

/*
 * In a child: the parent sends what it had under way at the fork, when it is due. The child may
 * use the connection before it is revived, and sends only then.
 */
static void leave_to_parent(struct rl_cable *cable)
{
	u32 forks = rl_fd_forks();

	if (cable->forks == forks)
		return;
	cable->forks = forks;
	cable->shut_due = false;
	if (!list_empty(&cable->parcels)) {
		close_account(&cable->before);
		cable->before = cable->own;
		cable->own = NULL;
	}
	free_parcels(cable);
	close_account(&cable->own);
}

static bool cable_has_room(const struct rl_cable *cable, u32 n)
{
	return cable->under_way + n <= UNDER_WAY_MAX &&
	       __atomic_load_n(all_under_way(), __ATOMIC_RELAXED) + n <= ALL_UNDER_WAY_MAX;
}

/* Is one of the segments of @n octets lost? (SplitMix64's last steps.) */
static bool draw_loss(struct rl_cable *cable, u32 n)
{
	u64 segments = DIV_ROUND_UP(n, rl_conn_mss(cable->c)), x;

	if (!cable->loss)
		return false;
	x = ++cable->draws * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) % RL_CABLE_CERTAIN < cable->loss * segments;
}

/*
 * Copies @n octets, which arrive @us later: @n, or 0 without room. The program's memory may vanish.
 */
static u32 delay_octets(struct rl_cable *cable, const struct weft_iov *iov, u32 n, u32 us)
{
	u32 left = n, part;
	struct parcel *p;

	cable->own = cable->own ?: open_account();
	p = cable->own && cable_has_room(cable, n) ? malloc(sizeof(*p) + n) : NULL;
	if (!p)
		return 0;
	/* If the memory vanishes now, the rest must not be sent: the connection breaks off. */
	*p = (struct parcel){ .due_ns = NEVER, .len = n };
	list_add_tail(&p->node, &cable->parcels);
	cable->under_way += n;
	__atomic_fetch_add(all_under_way(), n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&cable->own->octets, n, __ATOMIC_RELAXED);
	for (; left; left -= part, iov++) {
		part = min_t(u32, left, (u32)iov->len);
		/* Not by libc: the guard knows this library's instructions. */
		rl_copy_in_order(p->data + n - left, iov->base, part);
	}
	p->due_ns = rl_now_ns() + us * 1000ull;
	return n;
}

/* What was sent before the end arrives before it. */
static bool waits_to_shut(struct rl_cable *cable)
{
	return !list_empty(&cable->parcels) || await_account(&cable->before) == -EAGAIN;
}

static void shut_if_due(struct rl_cable *cable)
{
	if (!cable->shut_due || waits_to_shut(cable))
		return;
	cable->shut_due = false;
	rl_raw(SYS_shutdown, cable->c->fd, SHUT_WR);
}

static void send_due_parcels(struct rl_cable *cable, u64 now)
{
	struct weft_iov iov;
	struct parcel *p;
	s32 n;

	leave_to_parent(cable);
	while (!cable->held && !list_empty(&cable->parcels)) {
		p = list_first_entry(&cable->parcels, struct parcel, node);
		if (p->due_ns > now)
			return;
		iov = (struct weft_iov){ .base = p->data + p->off, .len = p->len - p->off };
		n = rl_conn_send_now(cable->c, &iov, 1, 0);
		if (n < 0)
			drop_parcels(cable);
		if (n <= 0)
			return;
		p->off += (u32)n;
		if (p->off == p->len)
			end_parcel(cable, p);
	}
	shut_if_due(cable);
}

static bool cable_shut(struct rl_conn *c)
{
	leave_to_parent(c->cable);
	c->cable->shut_due = waits_to_shut(c->cable);
	return c->cable->shut_due;
}

/* At the process's end: sends what is due. Must it wait for more? Not for a cable to be back. */
static bool cable_is_under_way(struct rl_conn *c)
{
	send_due_parcels(c->cable, rl_now_ns());
	return !c->cable->held && !list_empty(&c->cable->parcels);
}

/* ---- sending ---- */

static void set_cable_deadline(struct rl_cable *cable)
{
	u64 at = cable->retry_ms, now = rl_now_ns(), due = 0;

	if (!cable->held && !list_empty(&cable->parcels)) {
		due = list_first_entry(&cable->parcels, struct parcel, node)->due_ns;
		/* It was due before, and TCP was full. */
		if (due <= now)
			due = now + RETRY_MS * 1000000;
	} else if (cable->shut_due) {
		due = now + RETRY_MS * 1000000;
	}
	/* Without a descriptor for the clock, milliseconds have to do. */
	if (!rl_due_set(&cable->due, &cable->watch, due))
		at = weft_earlier(at, DIV_ROUND_UP(due, 1000000));
	if (at != READ_ONCE(cable->watch.deadline))
		rl_watch_set_deadline(&cable->watch, at);
}

/* The first @n octets, without a delay. */
static s32 send_part(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 n, u32 flags)
{
	struct weft_iov part[PIECES_MAX];
	u32 i, left = n;

	for (i = 0; i < min_t(u32, niov, PIECES_MAX) && left; i++) {
		part[i] = iov[i];
		part[i].len = min_t(u32, left, (u32)iov[i].len);
		left -= (u32)part[i].len;
	}
	return rl_conn_send_now(c, part, i, flags);
}

static s32 cable_pass_on(struct rl_cable *cable, const struct weft_iov *iov, u32 niov, u32 n,
			 u32 flags)
{
	u32 us = cable->delay_us + (draw_loss(cable, n) ? REPEAT_US : 0);

	if (us || !list_empty(&cable->parcels))
		return (s32)delay_octets(cable, iov, n, us);
	return send_part(cable->c, iov, niov, n, flags);
}

static s32 cable_send(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags)
{
	bool starts = c->link.mode == WEFT_MODE_STARTUP;
	struct rl_cable *cable = c->cable;
	u64 now = rl_now_ns(), at = 0;
	u32 len = 0, n, i;
	s32 rv = 0;

	if (c->fd < 0)
		return -ECONNRESET;
	leave_to_parent(cable);
	rv = await_account(&cable->before);
	if (rv == -ECONNRESET)
		return rv;
	for (i = 0; i < niov; i++)
		len += (u32)iov[i].len;
	/* A frame of start-up is sent once, whole: it is lost on its way. */
	if (cable->held) {
		cable->lost |= starts;
		return starts ? (s32)len : 0;
	}
	n = rv ? 0 : starts ? len : grant_all(c, len, now, &at);
	rv = 0;
	if (n)
		rv = cable_pass_on(cable, iov, niov, n, flags);
	if (rv > 0)
		charge_all(c, (u32)rv);
	if (rv >= 0 && (u32)rv < len)
		cable->retry_ms = max_t(u64, DIV_ROUND_UP(at, 1000000), rl_now_ms() + RETRY_MS);
	set_cable_deadline(cable);
	return rv;
}

/* ---- held ---- */

/*
 * TCP drops segments whose TTL is lower than this: those of all peers, for none sends with 255. A
 * socket filter would do the same, but some hosts let an administrator alone have one.
 */
static void refuse_segments(struct rl_conn *c, bool on)
{
	int least = on ? 255 : 0;
	long four = rl_raw(SYS_setsockopt, c->fd, IPPROTO_IP, IP_MINTTL, &least, sizeof(least));
	long six = rl_raw(SYS_setsockopt, c->fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &least,
			  sizeof(least));

	if (four && six)
		rl_trace("a held connection's peer gets acknowledgements: %ld, %ld", four, six);
}

/* Its end is noticed by the link's own deadlines. */
static void hold_conn(struct rl_conn *c)
{
	refuse_segments(c, true);
	c->read_apart |= RL_READ_PAUSED;
	c->watching = false;
	rl_conn_leave_poller(c);
}

static bool cable_keeps_connecting(struct rl_conn *c)
{
	if (!c->cable->held)
		return false;
	c->watching = false;
	rl_conn_leave_poller(c);
	return true;
}

/* Without what was lost, start-up would wait for its deadline: QPs by hand connect anew at once. */
static void let_conn_go(struct rl_conn *c)
{
	refuse_segments(c, false);
	c->read_apart &= ~RL_READ_PAUSED;
	rl_conn_watch(c);
	c->unread = c->tx_due = c->step_due = true;
	if (c->cable->lost && c->ulp->by_hand) {
		c->reset = true;
		c->error = -ECONNRESET;
	}
	c->cable->lost = false;
}

/* ---- a connection's cable ---- */

static struct rl_cable *cable_of(struct rl_watch *w)
{
	return container_of(w, struct rl_cable, watch);
}

/* TCP delivers what it has even if the program closes or ends: what is under way is TCP's now. */
static void detach_cable(struct rl_conn *c)
{
	struct rl_cable *cable = c->cable;

	if (!cable->held && c->fd >= 0)
		send_due_parcels(cable, NEVER - 1);
	c->cable = NULL;
	rl_due_set(&cable->due, &cable->watch, 0);
	rl_conn_usual_send_fd(c);
	c->retry_ms = c->ulp->retry_ms;
	drop_parcels(cable);
	rl_watch_end(&cable->watch);
	rl_watch_put(&cable->watch);
}

static void detach_if_idle(struct rl_cable *cable)
{
	if (!cable->held && !cable->paced && !cable->delay_us && !cable->loss &&
	    list_empty(&cable->parcels) && !cable->before)
		detach_cable(cable->c);
}

static void cable_timeout(struct rl_watch *w)
{
	struct rl_cable *cable = cable_of(w);
	struct rl_conn *c = cable->c;

	rl_conn_lock(c);
	if (c->cable == cable) {
		send_due_parcels(cable, rl_now_ns());
		if (cable->retry_ms && cable->retry_ms <= rl_now_ms()) {
			cable->retry_ms = 0;
			c->tx_due = true;
		}
		set_cable_deadline(cable);
		detach_if_idle(cable);
	}
	rl_conn_unlock(c);
}

static void cable_ready(struct rl_watch *w, u32 events)
{
}

static void cable_revive(struct rl_watch *w)
{
	struct rl_cable *cable = cable_of(w);

	rl_conn_lock(cable->c);
	leave_to_parent(cable);
	if (cable->c->cable == cable)
		set_cable_deadline(cable);
	rl_conn_release(cable->c);
}

static void cable_release(struct rl_watch *w)
{
	struct rl_cable *cable = cable_of(w);

	close_account(&cable->own);
	close_account(&cable->before);
	rl_conn_put(cable->c);
	free(cable);
}

static const struct rl_watch_ops cable_ops = {
	.ready = cable_ready,
	.timeout = cable_timeout,
	.revive = cable_revive,
	.release = cable_release,
};

static bool attach_cable(struct rl_conn *c)
{
	struct rl_cable *cable = calloc(1, sizeof(*cable));

	if (!cable)
		return false;
	rl_watch_init(&cable->watch, &cable_ops);
	INIT_LIST_HEAD(&cable->parcels);
	rl_conn_get(c);
	cable->c = c;
	cable->forks = rl_fd_forks();
	if (rl_watch_begin(&cable->watch)) {
		rl_watch_put(&cable->watch);
		return false;
	}
	c->cable = cable;
	c->send_fd = -1;
	c->retry_ms = RETRY_MS;
	return true;
}

static void configure_cable(struct rl_cable *cable, const struct rl_cable_cfg *d,
		      const struct rl_cable_cfg *q)
{
	bool held = d->held || q->held;

	cable->paced = d->bps || q->bps;
	cable->delay_us = d->delay_us + q->delay_us;
	cable->loss = min_t(u32, d->loss + q->loss, RL_CABLE_CERTAIN);
	if (held != cable->held) {
		cable->held = held;
		if (held)
			hold_conn(cable->c);
		else
			let_conn_go(cable->c);
	}
	/* What waited for the old rate, or for TCP's room, is tried now. */
	cable->c->full = false;
	cable->c->tx_due = true;
	set_cable_deadline(cable);
	detach_if_idle(cable);
}

static bool is_plain(const struct rl_cable_cfg *cfg)
{
	return !cfg->held && !cfg->bps && !cfg->delay_us && !cfg->loss;
}

/* False: no memory. The octets of --sockets have their own pauses: they pass. */
static bool update_cable(struct rl_conn *c)
{
	struct rl_cable_cfg d, q;

	if (c->ulp->retry_ms)
		return true;
	read_device_cfg(c->dev, &d);
	read_qp_cfg(c, &q);
	if (!c->cable && is_plain(&d) && is_plain(&q))
		return true;
	if (c->fd < 0)
		return true;
	if (!c->cable && !attach_cable(c))
		return false;
	configure_cable(c->cable, &d, &q);
	return true;
}

static void cable_update(struct rl_conn *c)
{
	if (!update_cable(c))
		rl_complain("no memory: a connection goes past weft-ctl's settings");
}

static const struct rl_cable_ops conn_cable_ops = {
	.update = cable_update, .end = detach_cable, .send = cable_send,
	.keeps_connecting = cable_keeps_connecting, .shut = cable_shut,
	.is_under_way = cable_is_under_way,
};

/* ---- what weft-ctl asks for ---- */

/* Once: connections that have a cable read it plainly. */
static void begin_cables(void)
{
	if (!__atomic_load_n(&rl_cables, __ATOMIC_RELAXED))
		__atomic_store_n(&rl_cables, &conn_cable_ops, __ATOMIC_RELEASE);
}

struct visit {
	const struct rl_device *dev;
	s32 process;
	bool failed;
};

static void visit_watch(struct rl_watch *w, void *arg)
{
	struct rl_conn *c = rl_conn_of_watch(w);
	struct visit *v = arg;

	if (!c)
		return;
	rl_conn_lock(c);
	/* A child leaves alone what it has inherited and not taken over. */
	if (c->dev == v->dev && c->owner == v->process && !update_cable(c))
		v->failed = true;
	rl_conn_unlock(c);
}

int rl_cable_set_device(const struct rl_device *d, enum rl_cable_what what, u64 value)
{
	struct visit v = { .dev = d, .process = getpid() };

	begin_cables();
	rl_lock(&cables.lock);
	change_cfg(&cables.devices[d->index], what, value);
	rl_unlock(&cables.lock);
	rl_thread_each(visit_watch, &v);
	return v.failed ? -ENOMEM : 0;
}

static bool change_qp_cfg(struct rl_qp *qp, enum rl_cable_what what, u64 value)
{
	bool done;

	rl_lock(&qp->lock);
	if (!qp->cable)
		qp->cable = calloc(1, sizeof(*qp->cable));
	if (qp->cable)
		change_cfg(qp->cable, what, value);
	done = qp->cable;
	rl_unlock(&qp->lock);
	return done;
}

int rl_cable_set_qp(struct rl_qp *qp, enum rl_cable_what what, u64 value)
{
	struct rl_conn *c;
	bool done;

	if (qp->ud)
		return -EINVAL;
	begin_cables();
	if (!change_qp_cfg(qp, what, value))
		return -ENOMEM;
	c = rl_conn_of_qp(qp);
	if (!c)
		return 0;
	done = update_cable(c);
	rl_conn_unlock(c);
	rl_conn_put(c);
	return done ? 0 : -ENOMEM;
}
