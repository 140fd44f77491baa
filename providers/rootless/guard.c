// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "guard.h"
#include "raw.h"

#define PAGE 4096
#define RL_KERNEL_SIGSET 8	/* octets of the kernel's own sigset_t */

static __thread sigjmp_buf *guarded;	/* where a fault of this thread's goes on */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool begun;

/* What the program asked for. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction wanted[2];

static struct sigaction *wanted_of(int sig)
{
	return &wanted[sig == SIGBUS];
}

/* ---- faults ---- */

static bool has_handler(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

static void set_mask(int how, const sigset_t *set, sigset_t *old)
{
	rl_raw(SYS_rt_sigprocmask, how, set, old, RL_KERNEL_SIGSET);
}

/* As the kernel does it: @sig itself is blocked meanwhile, so that a fault in there is deadly. */
static void run_handler(struct sigaction *a, int sig, siginfo_t *info, void *ctx)
{
	sigset_t old;

	if (!(a->sa_flags & SA_NODEFER))
		sigaddset(&a->sa_mask, sig);
	if (a->sa_flags & SA_RESETHAND)
		*wanted_of(sig) = (struct sigaction){ .sa_handler = SIG_DFL };
	set_mask(SIG_BLOCK, &a->sa_mask, &old);
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(sig, info, ctx);
	else
		a->sa_handler(sig);
	set_mask(SIG_SETMASK, &old, NULL);
}

static int next_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	static int (*next)(int, const struct sigaction *, struct sigaction *);

	if (!next)
		next = dlsym(RTLD_NEXT, "sigaction");
	return next(sig, new, old);
}

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	struct sigaction a = *wanted_of(sig);

	if (guarded && info->si_code > 0)
		siglongjmp(*guarded, 1);
	if (has_handler(&a))
		run_handler(&a, sig, info, ctx);
	else if (a.sa_handler == SIG_DFL || info->si_code > 0)
		/* The instruction is run once more, or the signal sent, and that is the end. */
		next_sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	if (info->si_code <= 0 && a.sa_handler == SIG_DFL)
		raise(sig);
}

static void begin(void)
{
	struct sigaction ours = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	pthread_mutex_lock(&lock);
	sigemptyset(&ours.sa_mask);
	next_sigaction(SIGSEGV, &ours, wanted_of(SIGSEGV));
	next_sigaction(SIGBUS, &ours, wanted_of(SIGBUS));
	begun = true;
	pthread_mutex_unlock(&lock);
	/* Whoever began this process may have blocked them. */
	sigaddset(&ours.sa_mask, SIGSEGV);
	sigaddset(&ours.sa_mask, SIGBUS);
	set_mask(SIG_UNBLOCK, &ours.sa_mask, NULL);
}

void rl_guard_begin(void)
{
	pthread_once(&once, begin);
}

/* ---- the program's handlers ---- */

static bool note_action(int sig, const struct sigaction *new, struct sigaction *old)
{
	bool ours;

	if (sig != SIGSEGV && sig != SIGBUS)
		return false;
	pthread_mutex_lock(&lock);
	ours = begun;
	if (ours) {
		struct sigaction was = *wanted_of(sig);

		if (new)
			*wanted_of(sig) = *new;
		if (old)
			*old = was;
	}
	pthread_mutex_unlock(&lock);
	return ours;
}

int rl_guard_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return note_action(sig, new, old) ? 0 : next_sigaction(sig, new, old);
}

/* ---- under guard ---- */

/* Guards may be inside each other: a fault goes to the innermost. */
#define UNDER_GUARD(what) ({						\
	sigjmp_buf here_, *outer_ = guarded;				\
	bool ok_ = !sigsetjmp(here_, 0);				\
									\
	if (ok_) {							\
		guarded = &here_;					\
		__asm__ volatile("" ::: "memory");			\
		what;							\
		__asm__ volatile("" ::: "memory");			\
	}								\
	guarded = outer_;						\
	ok_; })

bool rl_guard_copy(void *dst, const void *src, size_t n)
{
	return !n || UNDER_GUARD(memcpy(dst, src, n));
}

/* One octet a page. */
static void __attribute__((noinline)) touch(const volatile char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += PAGE)
		(void)p[i];
	(void)p[n - 1];
}

bool rl_guard_readable(const void *p, size_t n)
{
	return UNDER_GUARD(touch(p, n));
}

bool rl_guard_run(void (*fn)(void *arg), void *arg)
{
	return UNDER_GUARD(fn(arg));
}
