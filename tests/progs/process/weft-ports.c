// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-ports DEVICE: prints a device's events of ports, in this process and in a child that opens
 * the device itself, and says when both wait. Each ends after two events, or a minute.
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
	return ibv_close_device(ctx);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx = argc == 2 ? open_named(argv[1]) : NULL;
	int status = 1, bad;
	pid_t child;

	if (!ctx)
		return 2;
	child = fork();
	if (!child)
		_exit(watch(open_named(argv[1]), "child"));
	bad = watch(ctx, "parent");
	waitpid(child, &status, 0);
	return bad || status;
}
