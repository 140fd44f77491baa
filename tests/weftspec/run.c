/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "pcap.h"
#include "run.h"

volatile int run_stop;

static void *alloc_shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("weftspec: mmap");
		exit(2);
	}
	return p;
}

size_t cases_of(const struct row *row)
{
	size_t n = 0;

	for (const struct wcase *const *t = case_tables; *t; t++)
		for (const struct wcase *w = *t; w->row; w++)
			n += !strcmp(w->row, row->id);
	return n;
}

static bool is_wanted(const struct options *o, const char *id, const char *row)
{
	if (!o->nwanted)
		return true;
	for (int i = 0; i < o->nwanted; i++) {
		size_t n = strlen(o->wanted[i]);

		/* MPA-5 means MPA-50..; MPA-57 is a prefix of its variants. */
		if (!strncmp(id, o->wanted[i], n) ||
		    !strcmp(row, o->wanted[i]))
			return true;
	}
	return false;
}

static void add_job(struct run *run, const struct wcase *w,
		    const struct row *row, enum role role)
{
	struct job *j;

	run->jobs = realloc(run->jobs, (run->njobs + 1) * sizeof(*run->jobs));
	if (!run->jobs)
		abort();
	j = &run->jobs[run->njobs];
	*j = (struct job){ .w = w, .row = row, .role = role };
	snprintf(j->id, sizeof(j->id), "%s%s%s@%c", w->row, w->label ? "/" : "",
		 w->label ? w->label : "", role == ROLE_R ? 'r' : 'i');
	if (!is_wanted(run->o, j->id, row->id))
		return;
	j->r = alloc_shared(sizeof(*j->r));
	run->njobs++;
}

static bool in_role(const struct options *o, enum role r)
{
	if (o->by_hand)
		return r == (o->listen ? ROLE_I : ROLE_R);
	return r == ROLE_R ? o->host != NULL : o->exec != NULL;
}

static void plan_row(struct run *run, const struct row *row)
{
	for (const struct wcase *const *t = case_tables; *t; t++)
		for (const struct wcase *w = *t; w->row; w++) {
			if (strcmp(w->row, row->id))
				continue;
			for (int r = ROLE_R; r <= ROLE_I; r++)
				if (w->role & row->role & r &&
				    in_role(run->o, r))
					add_job(run, w, row, r);
		}
}

int run_plan(struct run *run)
{
	for (size_t i = 0; i < nrows; i++)
		plan_row(run, &rows[i]);
	return run->njobs ? 0 : -1;
}

static const char *reason_to_skip(const struct run *run, const struct job *j)
{
	const struct facts *f = run->facts;
	unsigned int n = j->w->needs;

	if ((j->w->flags & CASE_X) && !run->o->destructive)
		return "may bring the peer down: needs --allow-destructive";
	if (!f->known)
		return NULL;
	if (n & N_ULP && !f->reflector)
		return "needs the reflector behind the peer";
	if (n & N_ATOMIC && !(f->caps & REFL_CAP_ATOMIC))
		return "needs RFC 7306 Atomics";
	if (n & N_IMM && !(f->caps & REFL_CAP_IMM))
		return "needs RFC 7306 Immediate Data";
	if (n & N_INV && !(f->caps & REFL_CAP_BIND))
		return "needs a remotely invalidatable region";
	if (n & N_ONE && !(f->caps & REFL_CAP_ONE_STREAM))
		return "needs a region that is for one stream alone";
	if (n & N_SRQ && !(f->caps & REFL_CAP_SRQ))
		return "needs a shared receive queue";
	if (n & N_V2 && !f->v2)
		return "needs enhanced set-up (RFC 6581)";
	if (n & N_IRD && f->v2 && !f->ird)
		return "needs a peer that takes Read Requests (IRD 0)";
	if (n & N_RTR && !f->rtr)
		return "needs a peer that asks for peer-to-peer (A=1)";
	return NULL;
}

static void ctx_init(struct ctx *c, struct run *run, struct job *j)
{
	*c = (struct ctx){ .o = run->o, .w = j->w, .facts = run->facts,
			   .r = j->r, .role = j->role, .lfd = -1 };
	c->rnd = run->o->seed * 2654435761u ^ (uint32_t)(j - run->jobs) * 40503u;
	c->rnd |= 1;
	c->cookie = (uint64_t)getpid() << 32 | rnd(c);
}

static void save_pcap(struct ctx *c, const struct job *j)
{
	struct conn *all = NULL;
	char path[512], name[64];

	snprintf(name, sizeof(name), "%s", j->id);
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '_';
	for (struct stream *s = c->streams; s; s = s->next) {
		s->k->next = all;
		all = s->k;
	}
	snprintf(path, sizeof(path), "%s/%s.pcap", c->o->pcap, name);
	if (pcap_write(path, all))
		fprintf(stderr, "weftspec: %s: %s\n", path, strerror(errno));
}

static void close_all(struct ctx *c)
{
	for (struct stream *s = c->streams; s; s = s->next)
		if (s->k->fd >= 0)
			close(s->k->fd);
	stop_peer(c);
}

/* In the case's own process. */
static void run_in_child(struct run *run, struct job *j)
{
	struct ctx c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	ctx_init(&c, run, j);
	if (!setjmp(c.out)) {
		j->w->run(&c);
		if (j->r->verdict == V_NONE)
			j->r->verdict = V_PASS;
	}
	if (run->o->pcap)
		save_pcap(&c, j);
	close_all(&c);
	fflush(stderr);
	_exit(0);
}

static void start_job(struct run *run, struct job *j)
{
	const char *why = reason_to_skip(run, j);

	j->began = now();
	if (why) {
		j->r->verdict = V_SKIPPED;
		snprintf(j->r->actual, TEXT_MAX, "%s", why);
		j->done = true;
		return;
	}
	fflush(NULL);
	j->pid = fork();
	if (!j->pid)
		run_in_child(run, j);
	if (j->pid < 0) {
		j->r->verdict = V_FAIL;
		snprintf(j->r->actual, TEXT_MAX, "tester: fork: %s",
			 strerror(errno));
		j->done = true;
	}
}

/* SHOULD and MAY are divergences unless --strict asks for more. */
static void soften_verdict(struct run *run, struct job *j)
{
	enum severity sev = j->row->sev;
	bool soft = sev == SEV_O || (sev == SEV_S && !run->o->strict);

	if (soft && j->r->verdict == V_FAIL && !j->r->unreachable)
		j->r->verdict = V_DIVERGENT;
}

/* Does the peer still answer?  Asked after each case that ended badly. */
static bool peer_answers(struct run *run)
{
	struct job probe = { .w = &(struct wcase){ .row = "probe" },
			     .role = ROLE_R };
	struct ctx c;
	enum reply how = REPLY_QUIET;

	probe.r = calloc(1, sizeof(*probe.r));
	ctx_init(&c, run, &run->jobs[0]);
	c.r = probe.r;
	c.role = ROLE_R;
	c.w = probe.w;
	if (!setjmp(c.out))
		try_hs(&c, NULL, &how);
	close_all(&c);
	for (struct stream *s = c.streams, *n; s; s = n) {
		n = s->next;
		conn_free(s->k);
		free(s);
	}
	free(probe.r);
	return how == REPLY_OK;
}

static void finish_job(struct run *run, struct job *j, int status)
{
	j->r->seconds = now() - j->began;
	j->done = true;
	j->pid = 0;
	if (WIFSIGNALED(status)) {
		j->r->verdict = V_FAIL;
		snprintf(j->r->expected, TEXT_MAX, "the case ends");
		snprintf(j->r->actual, TEXT_MAX, "tester: its process ended by signal %d",
			 WTERMSIG(status));
	}
	soften_verdict(run, j);
	if (j->r->verdict == V_FAIL && j->role == ROLE_R && run->facts->known &&
	    !peer_answers(run)) {
		nap_ms(500);
		if (!peer_answers(run)) {
			j->r->verdict = V_CRASH;
			run->peer_lost = true;
		}
	}
}

static double time_limit(const struct run *run, const struct job *j)
{
	return (j->w->flags & CASE_SLOW ? 6 : 4) * run->o->timeout_ms / 1000.0 +
	       240;
}

static void reap_jobs(struct run *run)
{
	for (size_t i = 0; i < run->njobs; i++) {
		struct job *j = &run->jobs[i];
		int status;

		if (j->done || j->pid <= 0)
			continue;
		if (now() - j->began > time_limit(run, j))
			kill(j->pid, SIGKILL);
		if (waitpid(j->pid, &status, WNOHANG) == j->pid)
			finish_job(run, j, status);
	}
}

static size_t count_running(const struct run *run, unsigned int flag)
{
	size_t n = 0;

	for (size_t i = 0; i < run->njobs; i++) {
		const struct job *j = &run->jobs[i];

		n += j->pid > 0 && !j->done &&
		     (!flag || (j->w->flags & flag));
	}
	return n;
}

#define SLOW_AT_ONCE 24

/* Slow cases sleep: they run beside the quick ones.  Others queue. */
static bool may_start(const struct run *run, const struct job *j)
{
	if (count_running(run, CASE_ALONE))
		return false;
	if (j->w->flags & CASE_ALONE)
		return !count_running(run, 0);
	if (j->w->flags & CASE_SLOW)
		return count_running(run, CASE_SLOW) < SLOW_AT_ONCE;
	return count_running(run, 0) - count_running(run, CASE_SLOW) < (size_t)run->o->jobs;
}

/* 0: slow ones first, 1: the rest, 2: alone, 3: what may kill the peer. */
static int stage_of(const struct job *j)
{
	if (j->w->flags & CASE_X)
		return 3;
	if (j->w->flags & CASE_ALONE)
		return 2;
	return j->w->flags & CASE_SLOW ? 0 : 1;
}

static void start_more(struct run *run)
{
	for (int st = 0; st < 4; st++)
		for (size_t i = 0; i < run->njobs; i++) {
			struct job *j = &run->jobs[i];

			if (j->done || j->pid > 0 || stage_of(j) != st)
				continue;
			if (st > 1 && count_running(run, 0))
				return;
			if (may_start(run, j))
				start_job(run, j);
			else if (st)
				return;
		}
}

/* In the order of the table, as far as they are done. */
static size_t report_done(struct run *run, size_t at)
{
	while (at < run->njobs && run->jobs[at].done) {
		run->report(run, &run->jobs[at++]);
		fflush(stdout);
	}
	return at;
}

static void give_up(struct run *run, const char *why)
{
	for (size_t i = 0; i < run->njobs; i++) {
		struct job *j = &run->jobs[i];

		if (j->pid > 0)
			kill(j->pid, SIGKILL);
		if (j->done)
			continue;
		j->done = true;
		j->r->verdict = V_SKIPPED;
		snprintf(j->r->actual, TEXT_MAX, "%s", why);
	}
}

/* Results are shown in the table's order; slow cases hold them up. */
static void show_progress(const struct run *run, size_t shown)
{
	static size_t before = ~0ul;
	size_t done = 0;

	if (!isatty(2) || run->o->quiet)
		return;
	for (size_t i = 0; i < run->njobs; i++)
		done += run->jobs[i].done;
	if (done != before)
		fprintf(stderr, "\r%zu of %zu\r", done, run->njobs);
	if (shown == run->njobs)
		fputs("\r              \r", stderr);
	before = done;
}

void run_all(struct run *run)
{
	size_t shown = 0;

	while (shown < run->njobs) {
		if (run_stop)
			give_up(run, "interrupted");
		else if (run->peer_lost)
			give_up(run, "the peer no longer answers");
		else
			start_more(run);
		reap_jobs(run);
		shown = report_done(run, shown);
		show_progress(run, shown);
		nap_ms(1);
	}
}

static void learn_facts(struct run *run, struct ctx *c)
{
	struct facts *f = run->facts;
	struct stream *s;
	struct seg g;

	s = c->role == ROLE_R ? open_hs(c, NULL) : take_request(c, "");
	f->reflector = s->t.valid;
	f->caps = s->t.caps;
	f->v2 = s->enhanced;
	f->ird = s->enhanced ? s->their_enh.ird : 1;
	f->ord = s->enhanced ? s->their_enh.ord : 1;
	f->rtr = c->role == ROLE_I && s->enhanced && s->their_enh.a;
	if (c->role == ROLE_I)
		answer(s, NULL);
	/* A Terminate with headers shows which way its bits are laid. */
	g = mk_write(0x5eaf0000, 0, "12345678", 8);
	send_seg(s, &g);
	f->known = true;
	if (wait_end(s, run->o->patience_ms, NULL) == END_TERM)
		f->quirk = s->term.read_as;
}

enum probe run_probe(struct run *run, char *why, size_t size)
{
	static const struct wcase w = { .row = "probe" };
	struct job j = { .w = &w, .role = in_role(run->o, ROLE_R) ? ROLE_R : ROLE_I };
	struct ctx c;

	run->facts = alloc_shared(sizeof(*run->facts));
	j.r = alloc_shared(sizeof(*j.r));
	ctx_init(&c, run, &j);
	if (!setjmp(c.out))
		learn_facts(run, &c);
	close_all(&c);
	snprintf(why, size, "%s", j.r->actual);
	if (run->facts->known)
		return PROBE_OK;
	return j.r->unreachable ? PROBE_UNREACHABLE : PROBE_FAILED;
}
