// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * librdmacm's ids and channels, and ibv_fork_init(). librdmacm calls its own functions by these
 * names, too: its events are counted alike, but its own channels are no business of the program's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge/calls.h"
#include "next.h"

#define CM "librdmacm.so.1"
#define VERBS "libibverbs.so.1"

static bool is_librdmacm(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/librdmacm.so");
}

#define BY_ITSELF is_librdmacm(__builtin_return_address(0))

/* ---- events ---- */

/* A request counts for the listener, as librdmacm has it. */
static const struct rdma_cm_id *id_of_event(const struct rdma_cm_event *e)
{
	return e->event == RDMA_CM_EVENT_CONNECT_REQUEST && e->listen_id ? e->listen_id : e->id;
}

RL_HOOK int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int rv = NEXT(CM, rdma_get_cm_event)(channel, event);

	if (rv)
		return rv;
	if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		weft_run_cm_id((*event)->id, BY_ITSELF ? NULL : channel);
	weft_run_cm_events(id_of_event(*event), 1);
	return 0;
}

RL_HOOK int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (event)
		weft_run_cm_events(id_of_event(event), -1);
	return NEXT(CM, rdma_ack_cm_event)(event);
}

/* ---- ids ---- */

RL_HOOK int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
				void *context, enum rdma_port_space ps)
{
	int rv = NEXT(CM, rdma_create_id)(channel, id, context, ps);

	if (!rv)
		weft_run_cm_id(*id, channel);
	return rv;
}

RL_HOOK int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int rv = NEXT(CM, rdma_migrate_id)(id, channel);

	if (!rv)
		weft_run_cm_id(id, channel);
	return rv;
}

#define LOOKS		100		/* a second in all */
#define LOOK_NS		10000000

/* An id without a channel has its latest event, which librdmacm acknowledges. */
static bool has_cm_events(const struct rdma_cm_id *id)
{
	return weft_run_cm_pending(id) > !!id->event;
}

/* Another thread may be about to acknowledge them. */
static void end_id(const struct rdma_cm_id *id)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int i;

	for (i = 0; i < LOOKS && has_cm_events(id); i++)
		nanosleep(&pause, NULL);
	weft_run_cm_ends(id, i == LOOKS);
}

RL_HOOK int rdma_destroy_id(struct rdma_cm_id *id)
{
	end_id(id);
	return NEXT(CM, rdma_destroy_id)(id);
}

RL_HOOK void rdma_destroy_ep(struct rdma_cm_id *id)
{
	end_id(id);
	NEXT(CM, rdma_destroy_ep)(id);
}

/* ---- channels ---- */

RL_HOOK struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = NEXT(CM, rdma_create_event_channel)();

	if (channel && !BY_ITSELF)
		weft_run_cm_channel(channel);
	return channel;
}

RL_HOOK void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel && !BY_ITSELF)
		weft_run_cm_channel_ends(channel);
	NEXT(CM, rdma_destroy_event_channel)(channel);
}

/* ---- fork ---- */

static bool is_prepared;

RL_HOOK int ibv_fork_init(void)
{
	__atomic_store_n(&is_prepared, true, __ATOMIC_RELAXED);
	return NEXT(VERBS, ibv_fork_init)();
}

static void report_fork(void)
{
	weft_run_forks(__atomic_load_n(&is_prepared, __ATOMIC_RELAXED));
}

/* libibverbs prepares itself if one of these is set. */
__attribute__((constructor)) static void cm_begin(void)
{
	is_prepared = getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE");
	pthread_atfork(report_fork, NULL, NULL);
}
