// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that end a process, or its program, without a destructor: TCP would go on with
 * what was sent, and of a stream some of it may be in the library yet.
 */
#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>

#include "process/hook.h"
#include "sockets/overlay/sock.h"

/* A child of vfork() has borrowed what its parent goes on with. */
static void hook_leave(bool ends)
{
	if (likely(rl_sockets_on) && !rl_fd_is_borrowed())
		rl_stream_leave(ends);
}

/* ---- exit ---- */

RL_HOOK void _exit(int status)
{
	__typeof__(&_exit) real = RL_REAL(_exit);

	hook_leave(true);
	if (real)
		real(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

RL_HOOK void _Exit(int status)
{
	_exit(status);
}

static void leave_quickly(void)
{
	hook_leave(true);
}

/* The first that was registered is the last that is called. */
__attribute__((constructor)) static void hear_of_quick_exit(void)
{
	at_quick_exit(leave_quickly);
}

/* ---- exec ---- */

RL_HOOK int execve(const char *path, char *const argv[], char *const envp[])
{
	hook_leave(false);
	return RL_PASS(execve, path, argv, envp);
}

RL_HOOK int fexecve(int fd, char *const argv[], char *const envp[])
{
	hook_leave(false);
	return RL_PASS(fexecve, fd, argv, envp);
}

RL_HOOK int execv(const char *path, char *const argv[])
{
	hook_leave(false);
	return RL_PASS(execv, path, argv);
}

RL_HOOK int execvp(const char *file, char *const argv[])
{
	hook_leave(false);
	return RL_PASS(execvp, file, argv);
}

RL_HOOK int execvpe(const char *file, char *const argv[], char *const envp[])
{
	hook_leave(false);
	return RL_PASS(execvpe, file, argv, envp);
}

/*
 * The arguments from @first on, as a vector on the caller's stack; what follows their NULL is next
 * in @args.
 */
#define ARGV_OF(first, args) ({ \
	const char *arg_; \
	char **argv_; \
	size_t n_ = 1; \
	va_start(args, first); \
	for (arg_ = first; arg_; arg_ = va_arg(args, const char *)) \
		n_++; \
	va_end(args); \
	argv_ = alloca(n_ * sizeof(*argv_)); \
	va_start(args, first); \
	n_ = 0; \
	for (arg_ = first; arg_; arg_ = va_arg(args, const char *)) \
		argv_[n_++] = (char *)arg_; \
	argv_[n_] = NULL; \
	argv_; })

RL_HOOK int execl(const char *path, const char *first, ...)
{
	va_list args;
	char **argv = ARGV_OF(first, args);

	va_end(args);
	return execv(path, argv);
}

RL_HOOK int execlp(const char *file, const char *first, ...)
{
	va_list args;
	char **argv = ARGV_OF(first, args);

	va_end(args);
	return execvp(file, argv);
}

RL_HOOK int execle(const char *path, const char *first, ...)
{
	va_list args;
	char **argv = ARGV_OF(first, args);
	char *const *envp = va_arg(args, char *const *);

	va_end(args);
	return execve(path, argv, envp);
}
