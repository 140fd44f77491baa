/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A verbs context, one for each open command file: its objects by handle, and the events about
 * them.
 */
#ifndef RL_CONTEXT_H
#define RL_CONTEXT_H

#include <pthread.h>

#include "devices/device.h"
#include "devices/resource.h"
#include "process/file.h"
#include "process/list.h"

struct rl_chan;

/* The object of a handle. Its context's lock. */
struct rl_object {
	enum rl_kind kind;
	u32 handle;
	u32 users;			/* objects that use it: EBUSY */
	u64 user_handle;		/* the program's, for events */
	struct rl_chan *async;		/* for its events; NULL: its context's; referenced */
};

/* A table of handles, in chunks that stay where they are. */
#define RL_CHUNK	1024
#define RL_CHUNKS	2048

/* A command file: one ibv_context. */
struct rl_context {
	struct rl_file file;
	const struct rl_device *dev;
	pthread_mutex_t lock;
	bool ready;			/* GET_CONTEXT was called */
	bool dead;			/* atomic: the device has failed on demand */
	u64 features;			/* WEFT_FEATURE_ in force */
	int memfd;			/* hidden: the rings; the program has its own descriptor */
	u64 end;			/* of the file */
	struct rl_object **chunks[RL_CHUNKS]; /* by handle; written under the lock, read without */
	u32 next_handle;
	struct rl_chan *async;
	struct list_head ports;		/* host/port_events.c's, as the next two are */
	u32 ports_reported, ports_read;	/* events */
};

/* Takes the lock, for a thread that must not wait long: false after @ms. */
bool rl_context_lock_within(struct rl_context *ctx, u32 ms);

/* The object that @handle names, if it is of @kind; else NULL. */
struct rl_object *rl_object_find(struct rl_context *ctx, enum rl_kind kind, u32 handle);
/* Gives @o a handle: 0 or -ENOMEM. Context's lock. */
int rl_object_add(struct rl_context *ctx, struct rl_object *o);
/* The handle names @o from now on, or nothing (NULL). Context's lock. */
void rl_object_replace(struct rl_context *ctx, u32 handle, struct rl_object *o);

/*
 * An asynchronous event of IB_EVENT_ number @type, about @o; *@reported counts it once it is read.
 */
void rl_context_report(struct rl_context *ctx, const struct rl_object *o, u32 type, u32 *reported);
/* The device has failed for @ctx, whose calls fail from now on. False: it had before. */
bool rl_context_die(struct rl_context *ctx);
/* Then, once: DEVICE_FATAL. */
void rl_context_report_death(struct rl_context *ctx);
/* @o is being freed: drops its pending events. Once. */
void rl_context_forget(struct rl_context *ctx, struct rl_object *o);

#endif
