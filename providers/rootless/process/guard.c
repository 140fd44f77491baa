// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>

#include "api.h"
#include "copy.h"
#include "hook.h"
#include "latest.h"
#include "raw.h"

#define PAGE 4096
/* Octets of sigset_t that the kernel knows. */
#define MASK_SIZE 8

/*
 * Where guarded code is left. GCC's own pair takes a few instructions, libc's takes dozens. It
 * keeps no signal mask, sanitizers do not know it, and it is tried on x86 alone.
 */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(RL_SANITIZED) && defined(__x86_64__)
typedef void *guard_place[5];
#define GUARD_SET(place)	__builtin_setjmp(place)
#define GUARD_LEAVE(place)	__builtin_longjmp(place, 1)
#else
typedef sigjmp_buf guard_place;
#define GUARD_SET(place)	sigsetjmp(place, 0)
#define GUARD_LEAVE(place)	siglongjmp(place, 1)
#endif

static __thread guard_place *guarded;	/* where this thread continues after a fault */
static __thread bool faults_come;	/* SIGSEGV and SIGBUS are not blocked */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool begun;			/* atomic */

/* What the program asked for with sigaction(). */
#define ACTIONS 64

static struct guard_actions {
	struct sigaction action[ACTIONS];
	struct rl_latest latest;
} guard_actions[2];

static struct guard_actions *guard_wanted_of(int sig)
{
	return &guard_actions[sig == SIGBUS];
}

static struct sigaction wanted(struct guard_actions *w)
{
	return w->action[rl_latest_now(&w->latest)];
}

/* Returns the previous action. */
static struct sigaction guard_set_wanted(struct guard_actions *w, const struct sigaction *new)
{
	u32 at = rl_latest_place(&w->latest, ACTIONS);

	w->action[at] = *new;
	return w->action[rl_latest_publish(&w->latest, at)];
}

/* ---- whose fault it is ---- */

/* Executable segments of this library, and of libraries over it. */
#define TEXTS 2

static struct text {
	uintptr_t from, to;
} texts[TEXTS];
static u32 ntexts;			/* atomic */

/* Called under the loader's lock. */
static int find_text(struct dl_phdr_info *info, size_t size, void *inside)
{
	u32 i;

	for (i = 0; i < info->dlpi_phnum && ntexts < TEXTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    (uintptr_t)inside - from >= p->p_memsz)
			continue;
		texts[ntexts] = (struct text){ from, from + p->p_memsz };
		__atomic_store_n(&ntexts, ntexts + 1, __ATOMIC_RELEASE);
		return 1;
	}
	return 0;
}

void rl_guard_add_text(void (*inside)(void))
{
	dl_iterate_phdr(find_text, (void *)(uintptr_t)inside);
}

/*
 * Under guard only code of the library touches the program's memory. A handler of the program that
 * interrupts it may fault, too: that fault belongs to the program.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(RL_SANITIZED)
#define PC(c)	((uintptr_t)0)
/* Sanitizers copy in the library's stead. */
static bool is_guarded(const ucontext_t *c)
{
	return guarded;
}
#elif defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
#define PC(c)	((uintptr_t)(c)->uc_mcontext.gregs[REG_RIP])
#define SP(c)	((uintptr_t)(c)->uc_mcontext.gregs[REG_RSP])
#else
#define PC(c)	((uintptr_t)(c)->uc_mcontext.pc)
#define SP(c)	((uintptr_t)(c)->uc_mcontext.sp)
#endif

/* After a handler left guarded code by siglongjmp(), the guard's frame is gone. */
static bool is_guarded(const ucontext_t *c)
{
	u32 i, n = __atomic_load_n(&ntexts, __ATOMIC_ACQUIRE);

	if (!guarded || (uintptr_t)guarded < SP(c))
		return false;
	for (i = 0; i < n; i++)
		if (PC(c) - texts[i].from < texts[i].to - texts[i].from)
			return true;
	return false;
}
#else
#define PC(c)	((uintptr_t)0)
/* The context of other machines is not known: a handler's own fault may be mistaken. */
static bool is_guarded(const ucontext_t *c)
{
	return guarded;
}
#endif

/* ---- faults ---- */

static bool is_handler(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

/* As the kernel would call it. */
static void run_handler(const struct sigaction *a, int sig, siginfo_t *info, void *ctx)
{
	sigset_t mask = a->sa_mask, old;

	if (a->sa_flags & SA_RESETHAND)
		guard_set_wanted(guard_wanted_of(sig),
				 &(struct sigaction){ .sa_handler = SIG_DFL });
	if (!(a->sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &old, MASK_SIZE);
	rl_guard_mask_changed();
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(sig, info, ctx);
	else
		a->sa_handler(sig);
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, MASK_SIZE);
}

static int next_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return RL_REAL(sigaction)(sig, new, old);
}

static rl_guard_first_fn *guard_first;	/* atomic */

void rl_guard_set_first(rl_guard_first_fn *first)
{
	__atomic_store_n(&guard_first, first, __ATOMIC_RELEASE);
}

static bool is_firsts(const siginfo_t *info, const ucontext_t *ctx, bool is_ours)
{
	rl_guard_first_fn *first = __atomic_load_n(&guard_first, __ATOMIC_ACQUIRE);
	int saved = errno;
	bool done = first && first(info->si_addr, (const void *)PC(ctx), is_ours);

	errno = saved;
	return done;
}

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	struct sigaction a = wanted(guard_wanted_of(sig));
	bool is_ours = info->si_code > 0 && is_guarded(ctx);

	if (info->si_code > 0 && is_firsts(info, ctx, is_ours))
		return;
	if (is_ours)
		GUARD_LEAVE(*guarded);
	if (is_handler(&a))
		run_handler(&a, sig, info, ctx);
	else if (a.sa_handler == SIG_DFL || info->si_code > 0)
		/* Running the instruction again, or raising the signal, then ends the process. */
		next_sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	if (info->si_code <= 0 && a.sa_handler == SIG_DFL)
		raise(sig);
}

static void begin_for(int sig)
{
	struct sigaction old, ours = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&ours.sa_mask);
	next_sigaction(sig, NULL, &old);
	guard_set_wanted(guard_wanted_of(sig), &old);
	next_sigaction(sig, &ours, NULL);
}

static void guard_begin(void)
{
	rl_guard_add_text(rl_guard_begin);
	begin_for(SIGSEGV);
	begin_for(SIGBUS);
	__atomic_store_n(&begun, true, __ATOMIC_RELEASE);
}

void rl_guard_begin(void)
{
	if (unlikely(!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)))
		rl_gate_once(&once, guard_begin);
}

bool rl_guard_action(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction was;

	if ((sig != SIGSEGV && sig != SIGBUS) || !__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		return false;
	was = new ? guard_set_wanted(guard_wanted_of(sig), new) : wanted(guard_wanted_of(sig));
	if (old)
		*old = was;
	return true;
}

/* ---- under guard ---- */

void rl_guard_mask_changed(void)
{
	faults_come = false;
}

/* A thread may block all signals; a fault whose signal is blocked ends the process. */
static void let_faults_come(void)
{
	sigset_t faults;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	rl_raw(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, MASK_SIZE);
	faults_come = true;
}

/* Guards nest: a fault goes to the innermost. */
#define UNDER_GUARD(what) ({						\
	guard_place here_, *outer_ = guarded;				\
	bool ok_ = (faults_come ? (void)0 : let_faults_come(),		\
		    !GUARD_SET(here_));					\
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
	return !n || UNDER_GUARD(rl_copy_in_order(dst, src, n));
}

/* Reads one octet of each page. */
static noinline void touch(const volatile char *p, size_t n)
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
