/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "profile.h"
#include "report.h"

enum {
	O_PEER = 256, O_LISTEN, O_EXEC, O_STRICT, O_DESTRUCTIVE, O_PROFILE,
	O_JUNIT, O_TAP, O_PCAP, O_SEED, O_TIMEOUT, O_PATIENCE, O_LIST, O_CHECK,
	O_REV, O_P2P, O_NO_CRC, O_REFLECTOR, O_COLOR, O_MARKDOWN, O_LEARN, O_BY_HAND,
	O_PD, O_LARGE,
};

static const struct option long_opts[] = {
	{ "peer", 1, 0, O_PEER }, { "listen", 1, 0, O_LISTEN },
	{ "exec", 1, 0, O_EXEC }, { "strict", 0, 0, O_STRICT },
	{ "allow-destructive", 0, 0, O_DESTRUCTIVE },
	{ "profile", 1, 0, O_PROFILE }, { "junit", 1, 0, O_JUNIT },
	{ "tap", 0, 0, O_TAP }, { "pcap", 1, 0, O_PCAP },
	{ "seed", 1, 0, O_SEED }, { "timeout", 1, 0, O_TIMEOUT },
	{ "patience", 1, 0, O_PATIENCE }, { "list", 0, 0, O_LIST },
	{ "check-table", 0, 0, O_CHECK }, { "rev", 1, 0, O_REV },
	{ "p2p", 0, 0, O_P2P }, { "no-crc", 0, 0, O_NO_CRC },
	{ "reflector", 1, 0, O_REFLECTOR }, { "color", 1, 0, O_COLOR },
	{ "markdown", 0, 0, O_MARKDOWN }, { "learn", 1, 0, O_LEARN },
	{ "by-hand", 0, 0, O_BY_HAND }, { "private-data", 1, 0, O_PD },
	{ "large-fpdus", 0, 0, O_LARGE },
	{ "jobs", 1, 0, 'j' }, { "verbose", 0, 0, 'v' },
	{ "quiet", 0, 0, 'q' }, { "help", 0, 0, 'h' }, { 0 },
};

static const char *learn_file;

static void usage(FILE *f)
{
	fputs("usage: weftspec [options] --peer HOST:PORT [ID...]\n"
"       weftspec [options] --listen PORT --exec COMMAND [ID...]\n"
"       weftspec --list [ID...]\n"
"\n"
"  --peer HOST:PORT      the peer listens, [HOST]:PORT for IPv6\n"
"  --listen PORT         the tester listens (0: any) and starts the peer with\n"
"  --exec COMMAND        {port} and {args} in it are replaced\n"
"  --strict              a SHOULD that is not met is a failure\n"
"  --allow-destructive   also cases known to bring some peers down\n"
"  --profile FILE        known deviations of this peer\n"
"  --learn FILE          write such a file from what was seen\n"
"  --reflector none      do not use a reflector behind the peer\n"
"  --private-data HEX    what ordinary Requests and Replies say; no reflector\n"
"  --rev 1|2, --p2p, --no-crc   how ordinary connections are set up\n"
"  --by-hand             the peer's QPs are connected by hand: see reflector.h;\n"
"                        with --listen PORT the peer is to connect\n"
"  --large-fpdus         the peer may send FPDUs larger than a segment\n"
"  --timeout SECONDS     for the peer's own time-outs (default 15)\n"
"  --patience MS         for a reaction (default 2000)\n"
"  --jobs N              quick cases at once (default 1)\n"
"  --seed N              of the random numbers\n"
"  --tap, --junit FILE, --pcap DIR, --markdown, --color auto|always|never\n"
"  --list                the requirements and their cases\n"
"  --check-table         has every requirement a case or a reason\n"
"  -v, -q                transcripts of all cases; only what is wrong\n"
"Exit status: 0 conforms, 1 deviates, 2 could not run.\n", f);
}

static int complain(const char *what, const char *arg)
{
	fprintf(stderr, "weftspec: %s%s%s (see --help)\n", what,
		arg ? ": " : "", arg ? arg : "");
	return -1;
}

static int parse_number(const char *s, long lo, long hi, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(s, &end, 0);
	if (errno || end == s || *end || *out < lo || *out > hi)
		return complain("not a number in range", s);
	return 0;
}

/* HOST:PORT, [HOST]:PORT */
static int split_peer(char *s, struct options *o)
{
	char *colon = strrchr(s, ':');
	long port;

	if (!colon || colon == s || parse_number(colon + 1, 1, 65535, &port))
		return complain("not HOST:PORT", s);
	*colon = 0;
	o->port = colon + 1;
	o->host = s;
	if (*s == '[' && colon[-1] == ']') {
		colon[-1] = 0;
		o->host = s + 1;
	} else if (strchr(s, ':')) {
		return complain("an IPv6 address needs brackets", s);
	}
	return 0;
}

static int set_color(const char *s, struct options *o)
{
	if (!strcmp(s, "always"))
		o->color = 1;
	else if (!strcmp(s, "never"))
		o->color = 0;
	else if (strcmp(s, "auto"))
		return complain("not auto, always or never", s);
	return 0;
}

static int set_private_data(const char *s, struct options *o)
{
	unsigned int octet;

	for (o->pd_len = 0; isxdigit(s[0]) && isxdigit(s[1]) && o->pd_len < sizeof(o->pd); s += 2) {
		sscanf(s, "%2x", &octet);
		o->pd[o->pd_len++] = octet;
	}
	o->no_reflector = true;
	return *s ? complain("not pairs of hexadecimal digits, or too many", s) : 0;
}

static int set_number(int opt, const char *s, struct options *o)
{
	long n;

	switch (opt) {
	case O_TIMEOUT:
		if (parse_number(s, 1, 600, &n))
			return -1;
		o->timeout_ms = n * 1000;
		break;
	case O_PATIENCE:
		if (parse_number(s, 50, 60000, &n))
			return -1;
		o->patience_ms = n;
		break;
	case O_SEED:
		if (parse_number(s, 0, 0x7fffffff, &n))
			return -1;
		o->seed = n;
		break;
	case O_REV:
		if (parse_number(s, 1, 2, &n))
			return -1;
		o->rev = n;
		break;
	default:
		if (parse_number(s, 1, 64, &n))
			return -1;
		o->jobs = n;
	}
	return 0;
}

static int set_option(int opt, char *arg, struct options *o)
{
	switch (opt) {
	case O_PEER: return split_peer(arg, o);
	case O_LISTEN: o->listen = arg; break;
	case O_EXEC: o->exec = arg; break;
	case O_STRICT: o->strict = true; break;
	case O_DESTRUCTIVE: o->destructive = true; break;
	case O_PROFILE: o->profile = arg; break;
	case O_LEARN: learn_file = arg; break;
	case O_JUNIT: o->junit = arg; break;
	case O_TAP: o->tap = true; break;
	case O_PCAP: o->pcap = arg; break;
	case O_LIST: o->list = true; break;
	case O_CHECK: o->check = true; break;
	case O_P2P: o->p2p = true; break;
	case O_NO_CRC: o->no_crc = true; break;
	case O_PD: return set_private_data(arg, o);
	case O_BY_HAND: o->by_hand = o->p2p = true; break;
	case O_LARGE: o->large_fpdus = true; break;
	case O_MARKDOWN: o->markdown = true; break;
	case O_COLOR: return set_color(arg, o);
	case O_REFLECTOR:
		o->no_reflector = !strcmp(arg, "none");
		if (!o->no_reflector && strcmp(arg, "auto"))
			return complain("not none or auto", arg);
		break;
	case 'v': o->verbose = true; break;
	case 'q': o->quiet = true; break;
	case 'h': usage(stdout); exit(0);
	case '?': return -1;
	default: return set_number(opt, arg, o);
	}
	return 0;
}

static int check_options(const struct options *o)
{
	struct stat st;
	long port;

	if (o->list || o->check)
		return 0;
	if (!o->host && !o->exec)
		return complain("no peer: --peer or --listen with --exec", NULL);
	if (o->by_hand && (o->exec || !o->host))
		return complain("--by-hand goes with --peer, and without --exec", NULL);
	if (!o->by_hand && !o->exec != !o->listen)
		return complain("--listen and --exec go together", NULL);
	if (o->listen && parse_number(o->listen, 0, 65535, &port))
		return -1;
	if (o->exec && !strcmp(o->listen, "0") && !strstr(o->exec, "{port}"))
		return complain("--listen 0 needs {port} in --exec", NULL);
	if (o->pcap && (stat(o->pcap, &st) || !S_ISDIR(st.st_mode)))
		return complain("not a folder", o->pcap);
	return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "j:vqh", long_opts, NULL)) != -1)
		if (set_option(opt, optarg, o))
			return -1;
	o->wanted = (const char **)argv + optind;
	o->nwanted = argc - optind;
	return check_options(o);
}

static struct profile profile;

static void on_result(struct run *run, struct job *j)
{
	if (run->o->profile)
		profile_judge(&profile, j);
	if (!run->o->markdown)
		report_job(run, j);
}

static int write_profile(const struct run *run)
{
	FILE *f = fopen(learn_file, "w");
	int bad;

	if (!f)
		return -1;
	for (size_t i = 0; i < run->njobs; i++) {
		const struct job *j = &run->jobs[i];

		if (j->r->verdict != V_PASS && j->r->verdict != V_SKIPPED)
			fprintf(f, "%s %s %s\n", j->id,
				verdict_name(j->r->verdict), j->r->actual);
	}
	bad = fflush(f) || ferror(f);
	return fclose(f) || bad ? -1 : 0;
}

static int report_errno(const char *what)
{
	fprintf(stderr, "weftspec: %s: %s\n", what, strerror(errno));
	return 2;
}

static int report_and_judge(struct run *run, double seconds)
{
	struct tally t;
	size_t odd;

	if (run->o->markdown)
		table_rows(run);
	report_end(run, &t, seconds);
	odd = t.surprises;
	if (run->o->profile)
		odd = profile_surprises(&profile, run);
	if (run->o->junit && junit_write(run->o->junit, run, seconds))
		return report_errno(run->o->junit);
	if (learn_file && write_profile(run))
		return report_errno(learn_file);
	if (ferror(stdout) || fflush(stdout))
		return report_errno("standard output");
	return odd ? 1 : run_stop || t.cases[V_PASS] + t.cases[V_DIVERGENT] +
		t.cases[V_FAIL] + t.cases[V_CRASH] == 0 ? 2 : 0;
}

static void on_signal(int sig)
{
	run_stop = 1;
}

static int run_cases(struct options *o)
{
	struct run run = { .o = o, .report = on_result };
	double t0 = now();
	char why[TEXT_MAX];

	if (o->profile && profile_read(o->profile, &profile))
		return 2;
	if (run_plan(&run)) {
		fprintf(stderr, "weftspec: no case has such an id\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	switch (run_probe(&run, why, sizeof(why))) {
	case PROBE_UNREACHABLE:
		fprintf(stderr, "weftspec: the peer cannot be reached: %s\n",
			why);
		return 2;
	case PROBE_FAILED: /* worth a report, not a refusal */
		fprintf(stderr, "weftspec: an ordinary conversation with the peer fails: %s\n",
			why);
		break;
	case PROBE_OK:
		break;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	report_begin(&run);
	run_all(&run);
	return report_and_judge(&run, now() - t0);
}

int main(int argc, char **argv)
{
	struct options o = { .timeout_ms = 15000, .patience_ms = 2000,
			     .jobs = 1, .rev = 2, .seed = (uint32_t)time(NULL),
			     .color = isatty(1) };

	if (parse_options(argc, argv, &o))
		return 2;
	if (o.list) {
		list_rows(&o);
		return 0;
	}
	if (o.check)
		return check_table() ? 1 : 0;
	return run_cases(&o);
}
