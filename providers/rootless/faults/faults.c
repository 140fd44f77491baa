// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "faults.h"
#include "process/clock.h"
#include "process/gate.h"
#include "process/lock.h"
#include "process/raw.h"

#define STEP_MS 10

static struct {
	pthread_once_t once;
	struct rl_lock lock;		/* guards the rules' counts, and the order of the log */
	struct rl_faults rules;
	u64 begun_ms;
	bool any, by_thread;		/* atomic: what the rules have; read without the lock */
} faults = { .once = PTHREAD_ONCE_INIT };

static void note_rules(void)
{
	__atomic_store_n(&faults.by_thread, faults.rules.by_thread, __ATOMIC_RELAXED);
	__atomic_store_n(&faults.any, faults.rules.n > 0, __ATOMIC_RELAXED);
}

/* If the file has changed since weft-run read it, the program goes on without faults. */
static void faults_load(void)
{
	const struct rl_options *o = rl_options();
	struct rl_profile_error e = { 0 };
	size_t len = 0;
	char *text;

	faults.begun_ms = rl_now_ms();
	if (!o->faults)
		return;
	text = rl_profile_read(o->faults, &len, &e);
	if (!text || !rl_faults_parse(&faults.rules, text, len, &e)) {
		faults.rules.n = 0;
		if (e.line)
			rl_complain("%s is ignored: line %u: %s", o->faults, e.line, e.why);
		else
			rl_complain("%s is ignored: %s", o->faults, e.why);
	}
	if (o->fault_seed)
		faults.rules.seed = o->fault_seed;
	note_rules();
	free(text);
}

/*
 * Opened anew for each: no descriptor is kept, which the program might close. A FIFO without a
 * reader must not block the program: O_NONBLOCK.
 */
static void write_log(const struct rl_fault_subject *s, const struct rl_fault *fault)
{
	const char *name = rl_options()->fault_log;
	char line[RL_FAULT_LOG_LINE];
	size_t len = rl_fault_describe(s, fault, line);
	long fd;

	if (!name) {
		rl_trace("fault: %.*s", (int)len - 1, line);
		return;
	}
	fd = rl_raw(SYS_openat, AT_FDCWD, name,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	if (fd < 0 || rl_raw(SYS_write, fd, line, len) != (long)len)
		rl_complain("the fault log %s cannot be written: %.*s", name, (int)len - 1, line);
	if (fd >= 0)
		rl_raw(SYS_close, fd);
}

/* The call is late, but fork() does not wait for it. */
static void wait_ms(u32 ms)
{
	u64 until = rl_now_ms() + ms, now;
	struct timespec ts = { 0 };
	volatile bool out;

	for (now = rl_now_ms(); now < until; now = rl_now_ms()) {
		ts.tv_nsec = (long)min_t(u64, until - now, STEP_MS) * 1000000;
		rl_raw(SYS_nanosleep, &ts, NULL);
		if (!rl_gate_is_shut())
			continue;
		rl_gate_step_out(&out);
		if (out)
			rl_gate_enter();
	}
}

void rl_faults_look(const struct rl_fault_subject *s, struct rl_fault *fault)
{
	rl_gate_once(&faults.once, faults_load);
	rl_lock(&faults.lock);
	if (rl_faults_decide(&faults.rules, s, rl_now_ms() - faults.begun_ms, fault))
		write_log(s, fault);
	rl_unlock(&faults.lock);
}

/* The caller's, in printable characters: the log is a fault file. */
static const char *thread_name(char name[RL_FAULT_THREAD])
{
	char *c;

	if (rl_raw(SYS_prctl, PR_GET_NAME, name))
		return NULL;
	for (c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '_';
	return name;
}

int rl_faults_ask(const struct rl_fault_subject *s, struct rl_fault *fault)
{
	struct rl_fault_subject named = *s;
	char name[RL_FAULT_THREAD];
	struct rl_fault own;

	fault = fault ? fault : &own;
	rl_gate_once(&faults.once, faults_load);
	if (!__atomic_load_n(&faults.any, __ATOMIC_RELAXED)) {
		*fault = (struct rl_fault){ 0 };
		return 0;
	}
	if (__atomic_load_n(&faults.by_thread, __ATOMIC_RELAXED))
		named.thread = thread_name(name);
	rl_faults_look(&named, fault);
	wait_ms(fault->delay_ms);
	return fault->effect == RL_FAULT_ERRNO ? -fault->err : 0;
}

bool rl_faults_are_about(enum rl_fault_call first, enum rl_fault_call last)
{
	const struct rl_fault_rule *r;

	if (!rl_faults_are_on())
		return false;
	/* Rules about them may come. */
	if (rl_options()->control)
		return true;
	rl_gate_once(&faults.once, faults_load);
	for (r = faults.rules.rules; r < faults.rules.rules + faults.rules.n; r++)
		if (r->call >= first && r->call <= last)
			return true;
	return false;
}

bool rl_faults_replace(const char *text, size_t len, struct rl_profile_error *e)
{
	struct rl_faults *rules = malloc(sizeof(*rules));
	bool good;

	*e = (struct rl_profile_error){ .why = "no memory" };
	if (!rules)
		return false;
	rl_gate_once(&faults.once, faults_load);
	good = rl_faults_parse(rules, text, len, e);
	if (good) {
		rl_lock(&faults.lock);
		faults.rules = *rules;
		faults.begun_ms = rl_now_ms();
		note_rules();
		rl_unlock(&faults.lock);
	}
	free(rules);
	return good;
}
