// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-ports DEVICE [HOW]: prints a device's events of ports, in this process and in a child, and
 * says when both wait. Each ends after two events, or a minute. The child opens the device itself;
 *   closes	after it has closed what it inherited;
 *   adopts	not at all: of two contexts that it inherited it closes one and uses the other.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MINUTE 60000

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;

	for (d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	return NULL;
}

/* 0: it saw two events. */
static int watch(struct ibv_context *ctx, const char *name)
{
	struct pollfd p = { .events = POLLIN };
	struct ibv_async_event e;
	int n;

	if (!ctx)
		return 1;
	p.fd = ctx->async_fd;
	printf("%s waits\n", name);
	fflush(stdout);
	for (n = 0; n < 2; n++) {
		if (poll(&p, 1, MINUTE) != 1 || ibv_get_async_event(ctx, &e))
			return 1;
		printf("%s %s %d\n", name, ibv_event_type_str(e.event_type), e.element.port_num);
		fflush(stdout);
		ibv_ack_async_event(&e);
	}
	return 0;
}

/* Each opening takes numbers that the child's closing has freed. */
static int child_closes(const char *device, struct ibv_context *ctx)
{
	if (ibv_close_device(ctx))
		return 1;
	ctx = open_named(device);
	return watch(ctx, "child") || ibv_close_device(ctx);
}

static int child_adopts(struct ibv_context *closed, struct ibv_context *used)
{
	if (ibv_close_device(closed) || !ibv_alloc_pd(used))
		return 1;
	return watch(used, "child");
}

/* Has @ctx an event, or a count without one, for which a reader would wait? */
static int has_more(struct ibv_context *ctx)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };

	return poll(&p, 1, 0);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx = argc > 1 ? open_named(argv[1]) : NULL, *other = NULL;
	const char *how = argc > 2 ? argv[2] : "";
	int status = 1, bad;
	pid_t child;

	if (!strcmp(how, "adopts"))
		other = open_named(argv[1]);
	if (!ctx || (*how && strcmp(how, "closes") && !other))
		return 2;
	child = fork();
	if (!child)
		_exit(other ? child_adopts(ctx, other) :
		      *how ? child_closes(argv[1], ctx) : watch(open_named(argv[1]), "child"));
	if (other && ibv_close_device(other))
		return 1;
	bad = watch(ctx, "parent");
	waitpid(child, &status, 0);
	return bad || status || has_more(ctx) || ibv_close_device(ctx);
}
