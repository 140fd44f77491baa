// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * In weft-run's libraries as scripts/coverage.sh builds them: a process that ends by _exit(),
 * exec or SIGTERM writes its counters, too. libgcov writes those of one library, and only at exit().
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

extern void __gcov_dump(void) __attribute__((visibility("hidden")));

/* The first library's: the dynamic linker makes it one. */
EXPORTED void (*rl_coverage_dumps[2])(void);

static void coverage_dump_own(void)
{
	__gcov_dump();
}

#ifndef RL_USES_API
static pid_t coverage_process;

static void coverage_note_process(void)
{
	coverage_process = (pid_t)syscall(SYS_getpid);
}

/* A child of vfork() has its parent's counters. */
static void coverage_dump_all(void)
{
	unsigned int i;

	for (i = 0; i < 2 && coverage_process == syscall(SYS_getpid); i++)
		if (rl_coverage_dumps[i])
			rl_coverage_dumps[i]();
}

EXPORTED void _exit(int status)
{
	coverage_dump_all();
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORTED void _Exit(int status)
{
	_exit(status);
}

#define EXEC(name, params, ...)							\
	EXPORTED int name params						\
	{									\
		coverage_dump_all();						\
		return ((int (*) params)dlsym(RTLD_NEXT, #name))(__VA_ARGS__);	\
	}

EXEC(execv, (const char *path, char *const argv[]), path, argv)
EXEC(execvp, (const char *file, char *const argv[]), file, argv)
EXEC(execve, (const char *path, char *const argv[], char *const envp[]), path, argv, envp)
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), file, argv, envp)

static void coverage_terminated(int sig)
{
	coverage_dump_all();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void coverage_await_end(void)
{
	struct sigaction old, own = { .sa_handler = coverage_terminated };

	coverage_note_process();
	pthread_atfork(NULL, NULL, coverage_note_process);
	if (!sigaction(SIGTERM, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGTERM, &own, NULL);
}
#else
static void coverage_await_end(void)
{
}
#endif

__attribute__((constructor)) static void coverage_begin(void)
{
	unsigned int i = 0;

	while (i < 1 && rl_coverage_dumps[i])
		i++;
	rl_coverage_dumps[i] = coverage_dump_own;
	coverage_await_end();
}
