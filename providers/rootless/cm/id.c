// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The table of ids, and the events about them. */
#include <stdlib.h>

#include "id.h"
#include "late_events.h"
#include "request.h"

/* An event's data. */
struct note {
	struct rdma_ucm_event_resp resp;
	u64 child;			/* a request's serial; 0: not a request */
};

static pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	pthread_mutex_t lock;
	struct rl_cmid **at;		/* by handle */
	u32 size, free_from;		/* no free place before free_from */
	u64 serial;			/* atomic: the last one given */
} t = { .lock = PTHREAD_MUTEX_INITIALIZER };

void rl_cm_lock(void)
{
	pthread_mutex_lock(&cm_lock);
}

void rl_cm_unlock(void)
{
	pthread_mutex_unlock(&cm_lock);
}

void rl_cmid_table_lock(void)
{
	pthread_mutex_lock(&t.lock);
}

void rl_cmid_table_unlock(void)
{
	pthread_mutex_unlock(&t.lock);
}

/* ---- life ---- */

struct rl_cmid *rl_cmid_new(u16 ps, u8 qp_type)
{
	struct rl_cmid *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->refs = 1;
	id->serial = __atomic_add_fetch(&t.serial, 1, __ATOMIC_RELAXED);
	id->ps = ps;
	id->qp_type = qp_type;
	id->sock = -1;
	INIT_LIST_HEAD(&id->joins);
	return id;
}

void rl_cmid_get(struct rl_cmid *id)
{
	__atomic_fetch_add(&id->refs, 1, __ATOMIC_RELAXED);
}

void rl_cmid_put(struct rl_cmid *id)
{
	if (__atomic_sub_fetch(&id->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (id->chan)
		rl_chan_put(id->chan);
	free(id);
}

/* ---- handles ---- */

static bool id_table_grow(void)
{
	u32 size = t.size ? t.size * 2 : 64;
	struct rl_cmid **at = realloc(t.at, size * sizeof(*at));

	if (!at)
		return false;
	memset(at + t.size, 0, (size - t.size) * sizeof(*at));
	t.at = at;
	t.size = size;
	return true;
}

int rl_cmid_list(struct rl_cmid *id, struct rl_chan *chan)
{
	u32 i;

	for (i = t.free_from; i < t.size && t.at[i]; i++)
		;
	if (i == t.size && !id_table_grow())
		return -ENOMEM;
	rl_cmid_get(id);
	rl_chan_get(chan);
	t.at[i] = id;
	t.free_from = i + 1;
	id->handle = i;
	id->listed = true;
	id->chan = chan;
	return 0;
}

static void take_handle(struct rl_cmid *id)
{
	t.at[id->handle] = NULL;
	if (id->handle < t.free_from)
		t.free_from = id->handle;
	id->listed = false;
}

u32 rl_cmid_unlist(struct rl_cmid *id)
{
	rl_cmid_table_lock();
	take_handle(id);
	rl_late_event_drop(id->chan, id);
	rl_cmid_table_unlock();
	return id->reported;
}

struct rl_cmid *rl_cmid_find(struct rl_chan *chan, u32 handle, int *err)
{
	struct rl_cmid *id;

	rl_cmid_table_lock();
	id = handle < t.size ? t.at[handle] : NULL;
	*err = !id ? -ENOENT : id->chan != chan ? -EINVAL : 0;
	rl_cmid_table_unlock();
	return *err ? NULL : id;
}

struct rl_cmid *rl_cmid_first(struct rl_chan *chan)
{
	struct rl_cmid *id = NULL;
	u32 i;

	rl_cmid_table_lock();
	for (i = 0; i < t.size && !id; i++)
		if (t.at[i] && t.at[i]->chan == chan)
			id = t.at[i];
	rl_cmid_table_unlock();
	return id;
}

/* ---- events ---- */

static void fill_response(struct rdma_ucm_event_resp *r, const struct rl_cm_event_data *w)
{
	struct rdma_ucm_conn_param *p = &r->param.conn;

	r->event = w->event;
	r->status = w->status;
	if (w->ud) {
		r->param.ud = *w->ud;
		return;
	}
	p->initiator_depth = w->initiator_depth;
	p->responder_resources = w->responder_resources;
	p->private_data_len = w->pd_len;
	if (w->pd_len)
		memcpy(p->private_data, w->pd, w->pd_len);
}

static struct rl_event *new_event(const void *owner, u32 *reported,
				  const struct rl_cm_event_data *w)
{
	struct rl_event *e = rl_event_new(owner, sizeof(struct note));

	if (!e)
		return NULL;
	e->reported = reported;
	fill_response(&((struct note *)e->data)->resp, w);
	return e;
}

/* Pushes an event of @id; @child is the request that it is about, or NULL. */
static int id_push_event(struct rl_cmid *id, const struct rl_cmid *child,
			 const struct rl_cm_event_data *w)
{
	struct rl_event *e = new_event(id, &id->reported, w);
	struct note *n;

	if (!e)
		return -ENOMEM;
	n = (struct note *)e->data;
	n->resp.uid = id->uid;
	n->resp.id = child ? child->handle : id->handle;
	n->child = child ? child->serial : 0;
	rl_late_event_push(id->chan, e);
	return 0;
}

int rl_cmid_report(struct rl_cmid *id, const struct rl_cm_event_data *w)
{
	int rv = 0;

	rl_cmid_table_lock();
	if (id->listed && id->uid)
		rv = id_push_event(id, NULL, w);
	rl_cmid_table_unlock();
	return rv;
}

static int push_part_event(struct rl_cmid *id, struct rl_cm_part *p,
			   const struct rl_cm_event_data *w)
{
	struct rl_event *e = new_event(p, &p->reported, w);
	struct note *n;

	if (!e)
		return -ENOMEM;
	n = (struct note *)e->data;
	n->resp.uid = p->uid;
	n->resp.id = p->handle;
	rl_late_event_push(id->chan, e);
	return 0;
}

int rl_cmid_report_part(struct rl_cmid *id, struct rl_cm_part *p, const struct rl_cm_event_data *w)
{
	int rv;

	rl_cmid_table_lock();
	rv = id->listed ? push_part_event(id, p, w) : 0;
	rl_cmid_table_unlock();
	return rv;
}

u32 rl_cmid_drop_part(struct rl_cmid *id, struct rl_cm_part *p)
{
	rl_cmid_table_lock();
	rl_late_event_drop(id->chan, p);
	rl_cmid_table_unlock();
	return p->reported;
}

int rl_cmid_report_request(struct rl_cmid *listener, struct rl_cmid *child,
			   const struct rl_cm_event_data *w)
{
	int rv = rl_cmid_list(child, listener->chan);

	if (rv)
		return rv;
	rv = id_push_event(listener, child, w);
	if (rv) {
		take_handle(child);
		rl_cmid_put(child);
	}
	return rv;
}

/* The program has read the event of a request: there is room for another. */
static void request_was_taken(u32 handle, u64 serial)
{
	struct rl_cmid *id;

	rl_cmid_table_lock();
	id = handle < t.size ? t.at[handle] : NULL;
	if (id && id->serial == serial)
		rl_request_taken(id);
	rl_cmid_table_unlock();
}

int rl_cmid_take_event(struct rl_chan *chan, struct rdma_ucm_event_resp *resp)
{
	struct rl_event *e;
	struct note *n;
	int rv = rl_chan_take(chan, &e);

	if (rv)
		return rv;
	n = (struct note *)e->data;
	*resp = n->resp;
	if (n->child)
		request_was_taken(resp->id, n->child);
	free(e);
	return 0;
}

/* ---- ids and connections ---- */

void rl_cmid_join(struct rl_cmid *id, struct rl_conn *c)
{
	rl_cmid_get(id);
	rl_conn_get(c);
	c->user = id;
	rl_cmid_table_lock();
	id->conn = c;
	rl_cmid_table_unlock();
}

void rl_cmid_leave(struct rl_conn *c)
{
	struct rl_cmid *id = c->user;

	if (!id)
		return;
	c->user = NULL;
	rl_cmid_table_lock();
	if (id->request_state == RL_REQUEST_STARTING || id->request_state == RL_REQUEST_WAITING)
		rl_request_leave(id);
	id->conn = NULL;
	rl_cmid_table_unlock();
	rl_conn_put(c);
	rl_cmid_put(id);
}

/* reconnect() of connect.c may give the id another connection meanwhile. */
struct rl_conn *rl_cmid_lock_conn(struct rl_cmid *id)
{
	struct rl_conn *c;

	for (;;) {
		rl_cmid_table_lock();
		c = id->conn;
		if (c)
			rl_conn_get(c);
		rl_cmid_table_unlock();
		if (!c)
			return NULL;
		rl_conn_lock(c);
		if (c->user == id)
			return c;
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}
