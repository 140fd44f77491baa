// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <signal.h>

#include "handlers.h"
#include "port.h"
#include "raw.h"

#define BIT(sig)	(1ull << ((sig) - 1))
/* No call goes on after these. */
#define FAULTS		(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) |	\
			 BIT(SIGTRAP) | BIT(SIGABRT) | BIT(SIGSYS))

static u32 changes = 1, known_at;	/* atomic: known_at is what changes was then */
static bool known;			/* atomic */

static bool restarts(int sig)
{
	struct {
		void (*handler)(int sig);
		unsigned long flags;
		void *restorer;
		u64 mask;
	} a = { 0 };

	return rl_raw(SYS_rt_sigaction, sig, NULL, &a, sizeof(a.mask)) || a.handler == SIG_DFL ||
		a.handler == SIG_IGN || a.flags & SA_RESTART;
}

static bool ask_kernel(void)
{
	int sig;

	for (sig = 1; sig <= 64; sig++)
		if (!(BIT(sig) & FAULTS) && !restarts(sig))
			return false;
	return true;
}

bool rl_handlers_restart(void)
{
	u32 now = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);

	if (unlikely(__atomic_load_n(&known_at, __ATOMIC_ACQUIRE) != now)) {
		__atomic_store_n(&known, ask_kernel(), __ATOMIC_RELAXED);
		__atomic_store_n(&known_at, now, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&known, __ATOMIC_RELAXED);
}

void rl_handlers_changed(void)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
}
