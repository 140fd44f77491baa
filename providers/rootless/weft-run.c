// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft-run: starts a program with libweft-rootless.so, which has the RDMA devices, and with
 * --sockets libweft-sockets.so before it, which takes TCP sockets over. It checks the program
 * first: the loader silently ignores LD_PRELOAD where it does not apply.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <limits.h>
#include <link.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "devices/setup.h"
#include "faults/fault.h"
#include "judge/rules.h"
#include "kernel/uapi/rdma/weft-abi.h"
#include "seeds.h"
#include "sockets/rules.h"

#define LIBRARY		"libweft-rootless.so"
#define SOCKETS		"libweft-sockets.so"
#define CALLS		"libweft-judge.so"
#define PROVIDER	"libweft"	/* libibverbs adds -rdmavPABI.so */
#define PROVIDERS	"rdma-core"	/* its folders are named by releases of rdma-core */
#define MAX_PABI	500
#define MAX_RELEASE	500
#define PROFILES	"share/weft/profiles"

enum { EXIT_USAGE = 125, EXIT_REFUSED = 126, EXIT_NOT_FOUND = 127 };

static __attribute__((noreturn, format(printf, 2, 3)))
void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("weft-run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static __attribute__((format(printf, 1, 2)))
char *text(const char *fmt, ...)
{
	char *s;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		die(EXIT_USAGE, "no memory");
	va_end(ap);
	return s;
}

static void set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		die(EXIT_USAGE, "no memory");
}

/* ---- options: each becomes an environment variable ---- */

enum kind {
	SWITCH, NUMBER, RANGE, WORDS, FACE, RULES, PROFILE, RAILS, FAULTS, OUTPUT, JUDGE, INPUT,
	SEED, FOLDER
};

static const struct setting {
	const char *option, *variable;
	enum kind kind;
	long min, max;
	int arg;			/* of getopt */
} settings[] = {
	{ "device", "WEFT_DEVICE", FACE, 0, 0, required_argument },
	{ "profile", "WEFT_PROFILE", PROFILE, 0, 0, required_argument },
	{ "rails", "WEFT_RAILS", RAILS, 1, RL_RAILS, required_argument },
	{ "netdevs", "WEFT_NETDEVS", WORDS, 0, 0, required_argument },
	{ "crc", "WEFT_CRC", SWITCH, 0, 0, optional_argument },
	{ "markers", "WEFT_MARKERS", SWITCH, 0, 0, optional_argument },
	{ "extensions", "WEFT_EXTENSIONS", SWITCH, 0, 0, optional_argument },
	{ "large-fpdus", "WEFT_LARGE_FPDUS", SWITCH, 0, 0, optional_argument },
	{ "mpa-revision", "WEFT_MPA_REVISION", NUMBER, 0, 2, required_argument },
	{ "rtr", "WEFT_RTR", WORDS, 0, 0, required_argument },
	{ "ports", "WEFT_PORTS", RANGE, 1, 65535, required_argument },
	{ "spin", "WEFT_SPIN_US", NUMBER, 0, 1000000, required_argument },
	{ "startup-timeout", "WEFT_STARTUP_TIMEOUT_MS", NUMBER, 100, 600000, required_argument },
	{ "accept-timeout", "WEFT_ACCEPT_TIMEOUT_MS", NUMBER, 100, 600000, required_argument },
	{ "close-timeout", "WEFT_CLOSE_TIMEOUT_MS", NUMBER, 100, 600000, required_argument },
	{ "dead-peer-timeout", "WEFT_DEAD_PEER_TIMEOUT_MS", NUMBER, 3000, 600000,
	  required_argument },
	{ "rnr-timeout", "WEFT_RNR_TIMEOUT_MS", NUMBER, 0, 600000, required_argument },
	{ "faults", "WEFT_FAULTS", FAULTS, 0, 0, required_argument },
	{ "fault-seed", "WEFT_FAULT_SEED", NUMBER, 1, UINT32_MAX, required_argument },
	{ "fault-log", "WEFT_FAULT_LOG", OUTPUT, 0, 0, required_argument },
	{ "control", "WEFT_CONTROL", SWITCH, 0, 0, no_argument },
	{ "judge", "WEFT_JUDGE", JUDGE, 0, 0, optional_argument },
	{ "judge-fatal", "WEFT_JUDGE_FATAL", SWITCH, 0, 0, no_argument },
	{ "judge-log", "WEFT_JUDGE_LOG", OUTPUT, 0, 0, required_argument },
	{ "judge-suppress", "WEFT_JUDGE_SUPPRESS", INPUT, 0, 0, required_argument },
	{ "adverse", "WEFT_ADVERSE", SEED, 1, UINT32_MAX, optional_argument },
	{ "record", "WEFT_RECORD", FOLDER, 0, 0, required_argument },
	{ "record-size", "WEFT_RECORD_MIB", NUMBER, 1, 4096, required_argument },
	{ "stats", "WEFT_STATS", SWITCH, 0, 0, no_argument },
	{ "trace", "WEFT_TRACE", SWITCH, 0, 0, no_argument },
	{ "sockets", "WEFT_SOCKETS", RULES, 0, 0, optional_argument },
	{ "with-hardware", "WEFT_WITH_HARDWARE", SWITCH, 0, 0, no_argument },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

enum { OPT_CHECK = SETTINGS, OPT_HELP, OPT_VERSION, OPTIONS };

static const char usage[] =
	"weft-run [OPTIONS] PROGRAM [ARGUMENTS]   run a program with RDMA devices of its own\n"
	"weft-run --check [OPTIONS] [PROGRAM]     report what would not work here, and why\n"
	"\n"
	"  --device=roce|iwarp     what the devices look like (roce)\n"
	"  --profile=NAME|FILE     devices that look like another's: mlx5, bnxt_re, ...\n"
	"  --rails=N|FILE          N devices, each with an address of its own; or those of a file\n"
	"  --netdevs=NAME[,NAME]   devices for these network interfaces only\n"
	"  --crc[=on|off]          ask for the CRC of MPA (on)\n"
	"  --markers[=on|off]      ask for markers (off)\n"
	"  --extensions[=on|off]   immediate data and atomics, RFC 7306 (on)\n"
	"  --large-fpdus[=on|off]  FPDUs larger than a TCP segment (off)\n"
	"  --mpa-revision=0|1|2    of the MPA Request (2)\n"
	"  --rtr=KIND[,KIND]       send, write, read: ready-to-receive messages (all)\n"
	"  --ports=MIN-MAX         TCP ports for listeners that did not ask for one\n"
	"  --spin=US               how long to look for more before sleeping\n"
	"  --startup-timeout=MS    longest step of a connection's set-up (10000)\n"
	"  --accept-timeout=MS     how long a connect waits for the peer's program (60000)\n"
	"  --close-timeout=MS      how long a close waits for the peer (5000)\n"
	"  --dead-peer-timeout=MS  how long a peer's host may be silent (60000)\n"
	"  --rnr-timeout=MS        how long a message waits for a receive (1000)\n"
	"  --faults=FILE           calls that fail or are late, by the rules of a file\n"
	"  --fault-seed=N          which of them, where a rule leaves it to chance\n"
	"  --fault-log=FILE        each fault, as a rule that repeats it; is appended to\n"
	"  --control               let weft-ctl list and break what the program has\n"
	"  --judge[=RULES]         report misuse of verbs; the program ends with 99 then\n"
	"  --judge-fatal           end the program at the first report\n"
	"  --judge-log=FILE        each report, as a line of JSON; is appended to\n"
	"  --judge-suppress=FILE   reports that are not made\n"
	"  --adverse[=SEED|A-B]    the worst order that specifications allow; by each seed\n"
	"  --record=FOLDER         what each process does and sends, for weft-trace\n"
	"  --record-size=MIB       of a process's record; older entries give way (4)\n"
	"  --stats                 figures on stderr when the program ends\n"
	"  --trace                 report each step on stderr\n"
	"  --sockets[=FILE|all]    TCP connections go over iWARP: all, or by the rules of a file\n"
	"  --with-hardware         show the kernel's RDMA devices, too\n"
	"  --help, --version\n";

/* By --device; an outer weft-run may have set the variable. */
static bool face_is_given;

static bool parse_long(const char *s, char **end, const struct setting *t, long *value)
{
	errno = 0;
	*value = strtol(s, end, 10);
	return *end != s && !errno && *value >= t->min && *value <= t->max;
}

static bool is_number(const char *s, const struct setting *t)
{
	char *end;
	long value;

	return parse_long(s, &end, t, &value) && !*end;
}

static bool is_range(const char *s, const struct setting *t)
{
	long min, max;
	char *end;

	return parse_long(s, &end, t, &min) && *end == '-' &&
		parse_long(end + 1, &end, t, &max) && !*end && min <= max;
}

/* An absolute path: the program may change its working directory. */
static const char *file_of(const char *name)
{
	char path[PATH_MAX];

	return realpath(name, path) ? text("%s", path) : name;
}

/* weft-run's own folder, less its last @parts parts. */
static char *own_folder(int parts)
{
	char self[PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		die(EXIT_REFUSED, "/proc is not mounted");
	self[len] = '\0';
	while (parts--) {
		slash = strrchr(self, '/');
		if (slash)
			*slash = '\0';
	}
	return text("%s", self);
}

/* A name without a slash is one of those that come with weft-run, unless there is such a file. */
static const char *profile_of(const char *name)
{
	char *own;

	if (!*name)
		return NULL;
	if (strchr(name, '/') || !access(name, R_OK))
		return file_of(name);
	own = text("%s/" PROFILES "/%s", own_folder(2), name);
	if (access(own, R_OK))
		die(EXIT_USAGE, "--profile=%s: there is no such file here or in %s/" PROFILES, name,
		    own_folder(2));
	return own;
}

static const char *faults_of(const char *name)
{
	static struct rl_faults faults;
	struct rl_profile_error e = { 0 };
	const char *file = file_of(name);
	size_t len;
	char *content = rl_profile_read(file, &len, &e);

	if (!content)
		die(EXIT_USAGE, "%s: %s", file, e.why);
	if (!rl_faults_parse(&faults, content, len, &e))
		die(EXIT_USAGE, "%s: line %u: %s", file, e.line, e.why);
	free(content);
	return file;
}

/* The same for a file that need not be there yet. */
static const char *output_of(const struct setting *t, const char *name)
{
	char folder[PATH_MAX];

	if (!*name)
		return NULL;
	if (*name == '/')
		return name;
	if (!getcwd(folder, sizeof(folder)))
		die(EXIT_USAGE, "--%s=%s: the working directory is unknown", t->option, name);
	return text("%s/%s", folder, name);
}

static const char *rules_of(const char *name)
{
	struct rl_rules rules;
	unsigned int line;
	const char *why;

	if (strcmp(name, "all"))
		name = file_of(name);
	why = rl_rules_load(name, &rules, &line);
	if (why && line)
		die(EXIT_USAGE, "%s: line %u: %s", name, line, why);
	if (why)
		die(EXIT_USAGE, "%s: %s", name, why);
	rl_rules_free(&rules);
	return name;
}

static const char *judge_of(const char *list)
{
	const char *word;
	uint32_t on;
	size_t len;

	if (!rl_judge_parse(list, &on, &word, &len))
		die(EXIT_USAGE, "--judge=%s: %.*s is no rule: see docs/checking.md", list, (int)len,
		    word);
	return list;
}

static struct rl_seeds seeds;

/* Of a range the first: each run has its own. */
static const char *seed_of(const struct setting *t, const char *value)
{
	if (rl_seeds_parse(value, &seeds))
		return text("%u", seeds.first);
	seeds = (struct rl_seeds){ 0 };
	return is_number(value, t) ? value : NULL;
}

static const char *input_of(const struct setting *t, const char *name)
{
	if (access(name, R_OK))
		die(EXIT_USAGE, "--%s=%s: %s", t->option, name, strerror(errno));
	return file_of(name);
}

/* It is made, if it is not there. */
static const char *folder_of(const struct setting *t, const char *name)
{
	struct stat st;

	if (mkdir(name, 0777) && errno != EEXIST)
		die(EXIT_USAGE, "--%s=%s: %s", t->option, name, strerror(errno));
	if (stat(name, &st) || !S_ISDIR(st.st_mode))
		die(EXIT_USAGE, "--%s=%s: it is no folder", t->option, name);
	if (access(name, W_OK | X_OK))
		die(EXIT_USAGE, "--%s=%s: %s", t->option, name, strerror(errno));
	return file_of(name);
}

/* The variable's value for @value; NULL: @value is invalid. */
static const char *variable_value(const struct setting *t, const char *value)
{
	switch (t->kind) {
	case SWITCH:
		if (!value || !strcmp(value, "on") || !strcmp(value, "1"))
			return "1";
		return !strcmp(value, "off") || !strcmp(value, "0") ? "0" : NULL;
	case NUMBER:
		return is_number(value, t) ? value : NULL;
	case SEED:
		return seed_of(t, value ? value : "1");
	case RANGE:
		return is_range(value, t) ? value : NULL;
	case FACE:
		return !strcmp(value, "roce") || !strcmp(value, "iwarp") ? value : NULL;
	case RULES:
		return rules_of(value ? value : "all");
	case PROFILE:
		return profile_of(value);
	case RAILS:
		return !*value ? NULL : is_number(value, t) ? value : file_of(value);
	case FAULTS:
		return *value ? faults_of(value) : NULL;
	case OUTPUT:
		return output_of(t, value);
	case JUDGE:
		return judge_of(value ? value : "default");
	case INPUT:
		return input_of(t, value);
	case FOLDER:
		return folder_of(t, value);
	case WORDS:
		break;
	}
	return *value ? value : NULL;
}

static void apply(const struct setting *t, const char *arg)
{
	const char *value = variable_value(t, arg);

	if (!value)
		die(EXIT_USAGE, "--%s=%s makes no sense; see --help", t->option, arg);
	set_variable(t->variable, value);
	face_is_given |= t->kind == FACE;
}

/* Returns whether to check only. argv[optind] is the program then. */
static bool parse(int argc, char **argv)
{
	struct option long_options[OPTIONS + 1] = {
		[OPT_CHECK] = { "check", no_argument, NULL, OPT_CHECK },
		[OPT_HELP] = { "help", no_argument, NULL, OPT_HELP },
		[OPT_VERSION] = { "version", no_argument, NULL, OPT_VERSION },
	};
	bool check = false;
	unsigned int i;
	int c;

	for (i = 0; i < SETTINGS; i++)
		long_options[i] = (struct option){ settings[i].option, settings[i].arg, NULL, i };
	while ((c = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
		if (c == '?')
			exit(EXIT_USAGE);
		if (c < OPT_CHECK)
			apply(&settings[c], optarg);
		if (c == OPT_CHECK)
			check = true;
		if (c == OPT_HELP || c == OPT_VERSION) {
			c == OPT_HELP ? fputs(usage, stdout) :
				printf("weft-run %s, interface %d\n", WEFT_VERSION,
				       WEFT_ABI_VERSION);
			exit(0);
		}
	}
	return check;
}

/* ---- devices that are asked for ---- */

static const char *variable(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

/* What the library will do; says now what the host cannot. The face is the profile's. */
static void check_devices(void)
{
	static struct rl_setup setup;
	const char *face = variable("WEFT_DEVICE"), *file;
	struct rl_wishes w = {
		variable("WEFT_PROFILE"), variable("WEFT_RAILS"), variable("WEFT_NETDEVS"),
		face && !strcmp(face, "iwarp"),
	};
	struct rl_profile_error e;
	struct ifaddrs *first;
	bool iwarp;

	if (!w.profile && !w.rails)
		return;
	if (getifaddrs(&first))
		first = NULL;
	if (!rl_setup_make(&w, first, &setup, &file, &e)) {
		if (e.line)
			die(EXIT_USAGE, "%s: line %u: %s", file ? file : w.profile, e.line, e.why);
		die(EXIT_USAGE, "%s: %s", file ? file : "--rails", e.why);
	}
	iwarp = setup.rails.n ? setup.rails.at[0].about->iwarp : setup.base.iwarp;
	if (face_is_given && iwarp != w.iwarp)
		die(EXIT_USAGE, "--device=%s: the profile has face %s", face,
		    iwarp ? "iwarp" : "roce");
	set_variable("WEFT_DEVICE", iwarp ? "iwarp" : "roce");
	freeifaddrs(first);
}

/* ---- our own files ---- */

/* The folder of the library and the provider: that of a build, or of an installation. */
static char *find_folder(void)
{
	static const char *const places[] = { "lib/weft", "lib" };
	char *self = own_folder(2), *folder;	/* less the name, less bin */
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		folder = text("%s/%s", self, places[i]);
		if (!access(text("%s/" LIBRARY, folder), R_OK))
			return folder;
	}
	die(EXIT_REFUSED, "there is no " LIBRARY " in %s/lib/weft or %s/lib", self, self);
}

/* What programs load as a rule: libibverbs as the loader finds it here, and whose release it is. */
struct verbs {
	void *library;			/* NULL: there is none */
	char path[PATH_MAX];
	int pabi;			/* 0: unknown */
	int release, update;		/* of rdma-core; 0: unknown */
};

/* The name of the function that providers register with has the private ABI's number. */
static int private_abi(void *libibverbs)
{
	char name[40];
	int n;

	for (n = 1; n <= MAX_PABI; n++) {
		snprintf(name, sizeof(name), "verbs_register_driver_%d", n);
		if (dlsym(libibverbs, name))
			return n;
	}
	return 0;
}

/* The file of rdma-core 44.0 is libibverbs.so.1.14.44.0. */
static void open_verbs(struct verbs *v)
{
	struct link_map *map;
	const char *name;

	*v = (struct verbs){ .library = dlopen("libibverbs.so.1", RTLD_NOW) };
	if (!v->library)
		return;
	v->pabi = private_abi(v->library);
	if (dlinfo(v->library, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, v->path))
		return;
	name = strrchr(v->path, '/') + 1;
	if (sscanf(name, "libibverbs.so.1.%*d.%d.%d", &v->release, &v->update) < 1)
		v->release = 0;
}

/*
 * The folder of the provider for @v. Where there are several for one private ABI, which releases of
 * rdma-core use with other structures, it is the newest that is not newer than rdma-core; of an
 * unknown release, the newest. NULL: there is none.
 */
static char *provider_folder(const char *folder, const struct verbs *v)
{
	int n = v->release > 0 && v->release < MAX_RELEASE ? v->release : MAX_RELEASE;
	char *of;

	if (!access(text("%s/" PROVIDER "-rdmav%d.so", folder, v->pabi), R_OK))
		return text("%s", folder);
	for (; n > 0; n--) {
		of = text("%s/" PROVIDERS "/%d", folder, n);
		if (!access(text("%s/" PROVIDER "-rdmav%d.so", of, v->pabi), R_OK))
			return of;
		free(of);
	}
	return NULL;
}

/* Where libibverbs is to look. If nothing fits, libibverbs complains. */
static const char *find_provider(const char *folder)
{
	struct verbs v;
	const char *of;

	if (access(text("%s/" PROVIDERS, folder), X_OK))
		return folder;
	open_verbs(&v);
	of = v.pabi ? provider_folder(folder, &v) : NULL;
	return of ? of : folder;
}

/* The loader splits its list at colons and spaces, libibverbs at colons and semicolons. */
static void append_to(const char *variable, const char *name)
{
	const char *old = getenv(variable);

	set_variable(variable, old && *old ? text("%s:%s", old, name) : name);
}

static bool is_name(const char *s, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(s, name, len);
}

/* Takes @name out of the loader's list: an outer weft-run may have put it there. */
static void remove_preloaded(const char *name)
{
	const char *list = getenv("LD_PRELOAD"), *end;
	char *rest = text("%s", "");

	if (!list)
		return;
	for (; *list; list = end + !!*end) {
		end = list + strcspn(list, ": ");
		if (end > list && !is_name(list, (size_t)(end - list), name))
			rest = text("%s%s%.*s", rest, *rest ? ":" : "", (int)(end - list), list);
	}
	set_variable("LD_PRELOAD", rest);
}

static bool has_value(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static bool wants_sockets(void)
{
	return has_value("WEFT_SOCKETS");
}

/*
 * After other preloaded libraries: libasan must come first, and librspreload, which looks up the
 * next function as our hooks do, must find ours. The hooks of sockets and of the judge call the
 * others.
 */
static void set_environment(const char *folder)
{
	const char *library = text("%s/" LIBRARY, folder), *sockets = text("%s/" SOCKETS, folder);
	const char *calls = text("%s/" CALLS, folder);

	if (strpbrk(folder, ": ;"))
		die(EXIT_REFUSED, "%s: the loader takes no such name (colon, semicolon or space)",
		    folder);
	remove_preloaded(library);
	remove_preloaded(sockets);
	remove_preloaded(calls);
	if (has_value("WEFT_JUDGE"))
		append_to("LD_PRELOAD", calls);
	if (wants_sockets())
		append_to("LD_PRELOAD", sockets);
	append_to("LD_PRELOAD", library);
	/* If the variable's old name is set, libibverbs ignores the new one. */
	append_to(getenv("RDMAV_DRIVERS") ? "RDMAV_DRIVERS" : "IBV_DRIVERS",
		  text("%s/" PROVIDER, find_provider(folder)));
}

/* ---- the program ---- */

static bool may_run(const char *file, bool *denied)
{
	struct stat st;
	bool there = !stat(file, &st), may = there && S_ISREG(st.st_mode) && !access(file, X_OK);

	*denied |= there && !may;
	return may;
}

/* As execvp() finds it; NULL: there is none. *@denied: there is one that may not be run. */
static char *find_program(const char *name, bool *denied)
{
	const char *path = getenv("PATH"), *end;
	char *file;

	if (strchr(name, '/'))
		return may_run(name, denied) ? text("%s", name) : NULL;
	for (path = path ? path : "/bin:/usr/bin";; path = end + 1) {
		end = strchrnul(path, ':');
		file = end == path ? text("./%s", name) :
			text("%.*s/%s", (int)(end - path), path, name);
		if (may_run(file, denied))
			return file;
		free(file);
		if (!*end)
			return NULL;
	}
}

/* Does the kernel give a process of this file privileges? Then the loader drops LD_PRELOAD. */
static const char *why_privileged(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		return "is setuid: LD_PRELOAD does not reach it";
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		return "is setgid: LD_PRELOAD does not reach it";
	if (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "has file capabilities: LD_PRELOAD does not reach it";
	return NULL;
}

/* The loader that the program names. */
static const char *why_wrong_loader(int fd, const ElfW(Phdr) *ph)
{
	char loader[PATH_MAX] = "";
	size_t len = ph->p_filesz < sizeof(loader) ? ph->p_filesz : sizeof(loader) - 1;

	if (pread(fd, loader, len, ph->p_offset) != (ssize_t)len)
		return "is cut short";
	return strstr(loader, "ld-musl") ? "is for musl; the library here is for glibc" : NULL;
}

static const char *why_wrong_elf(int fd, const ElfW(Ehdr) *eh)
{
	ElfW(Ehdr) own;
	ElfW(Phdr) ph;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), i;
	bool known = self >= 0 && pread(self, &own, sizeof(own), 0) == sizeof(own);

	if (self >= 0)
		close(self);
	if (known && (own.e_machine != eh->e_machine ||
		      own.e_ident[EI_CLASS] != eh->e_ident[EI_CLASS]))
		return "is for another processor, or for 32 bits: the library here does not fit it";
	for (i = 0; i < eh->e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), eh->e_phoff + i * sizeof(ph)) != sizeof(ph))
			return "is cut short";
		if (ph.p_type == PT_INTERP)
			return why_wrong_loader(fd, &ph);
	}
	return "is statically linked: LD_PRELOAD does not reach it";
}

static const char *why_not(const char *file, bool in_script);

/* A script's interpreter is checked, but not an interpreter's own. */
static const char *why_wrong_script(char *line, bool in_script)
{
	char *interpreter = line + 2 + strspn(line + 2, " \t");

	interpreter[strcspn(interpreter, " \t\n")] = '\0';
	return in_script || !*interpreter ? NULL : why_not(interpreter, true);
}

/* Why the library would not be loaded into a process of @file; NULL: no reason found. */
static const char *why_not(const char *file, bool in_script)
{
	union {
		ElfW(Ehdr) elf;
		char line[256];
	} head;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	const char *why;
	ssize_t n;

	if (fd < 0)				/* may be run, but not read */
		return in_script ? "is a script whose interpreter cannot be opened" : NULL;
	memset(&head, 0, sizeof(head));
	n = read(fd, head.line, sizeof(head.line) - 1);
	if (n > 2 && !memcmp(head.line, "#!", 2)) {
		why = why_wrong_script(head.line, in_script);
	} else {
		why = why_privileged(fd);
		if (!why && n >= (ssize_t)sizeof(head.elf) && !memcmp(head.line, ELFMAG, SELFMAG))
			why = why_wrong_elf(fd, &head.elf);
	}
	close(fd);
	return why;
}

/* ---- --check ---- */

static bool all_well = true;

static __attribute__((format(printf, 2, 3)))
void report(bool ok, const char *fmt, ...)
{
	va_list ap;

	fputs(ok ? "ok      " : "PROBLEM ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	all_well &= ok;
}

/* The value of a line of os-release, without its quotes; "": unknown. */
static void read_os_release(const char *key, char *value, size_t size)
{
	FILE *f = fopen("/etc/os-release", "re");
	char line[256];
	size_t len = strlen(key);

	*value = '\0';
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) || line[len] != '=')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, "\"'"));
		value[strcspn(value, "\"'")] = '\0';
		break;
	}
	fclose(f);
}

/* How a distribution installs libibverbs and librdmacm. */
static const char *how_to_install(void)
{
	static const struct {
		const char *distribution, *command;
	} known[] = {
		{ "debian", "apt install libibverbs1 librdmacm1" },
		{ "ubuntu", "apt install libibverbs1 librdmacm1" },
		{ "fedora", "dnf install libibverbs librdmacm" },
		{ "rhel", "dnf install libibverbs librdmacm" },
		{ "suse", "zypper install libibverbs1 librdmacm1" },
		{ "arch", "pacman -S rdma-core" },
	};
	char id[128], like[128];
	unsigned int i;

	read_os_release("ID", id, sizeof(id));
	read_os_release("ID_LIKE", like, sizeof(like));
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strstr(id, known[i].distribution) || strstr(like, known[i].distribution))
			return known[i].command;
	}
	return "install rdma-core's libraries";
}

static void check_system(void)
{
	char name[128];

	read_os_release("PRETTY_NAME", name, sizeof(name));
	report(true, "%s, glibc %s", *name ? name : "a distribution without /etc/os-release",
	       gnu_get_libc_version());
}

static void check_provider(const char *folder, const struct verbs *v)
{
	char *of = v->pabi ? provider_folder(folder, v) : NULL, *file;

	if (!v->pabi) {
		report(false, "libibverbs has no interface for providers that weft-run knows");
		return;
	}
	if (v->release)
		report(true, "rdma-core %d.%d, private ABI %d: %s", v->release, v->update, v->pabi,
		       v->path);
	else
		report(true, "rdma-core of unknown release, private ABI %d: %s", v->pabi, v->path);
	file = text("%s/" PROVIDER "-rdmav%d.so", of ? of : folder, v->pabi);
	if (!of)
		report(false, "libibverbs has the private ABI %d, and there is no %s: "
		     "build weft with this libibverbs", v->pabi, file);
	else if (!dlopen(file, RTLD_NOW))
		report(false, "the provider cannot be loaded: %s", dlerror());
	else
		report(true, "provider %s", file);
}

static void check_library(const char *file)
{
	if (dlopen(file, RTLD_NOW))
		report(true, "library %s", file);
	else
		report(false, "the library cannot be loaded: %s", dlerror());
}

static void check_libraries(const char *folder)
{
	struct verbs verbs;

	open_verbs(&verbs);
	if (verbs.library)
		check_provider(folder, &verbs);
	else
		report(false, "libibverbs is missing (%s): %s", how_to_install(), dlerror());
	if (dlopen("librdmacm.so.1", RTLD_NOW))
		report(true, "librdmacm");
	else
		report(false, "librdmacm is missing (%s): %s", how_to_install(), dlerror());
	check_library(text("%s/" LIBRARY, folder));
	if (wants_sockets())
		check_library(text("%s/" SOCKETS, folder));
}

static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, name, len) && (!list[len] || list[len] == ','))
			return true;
	}
	return false;
}

static void check_netdevs(void)
{
	const char *list = getenv("WEFT_NETDEVS");
	struct ifaddrs *all = NULL, *a;
	bool found = false;

	if (getifaddrs(&all))
		report(false, "the network interfaces cannot be listed: %s", strerror(errno));
	for (a = all; a && !found; a = a->ifa_next)
		found = a->ifa_addr && a->ifa_flags & IFF_UP &&
			(a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6) &&
			(!list || is_listed(list, a->ifa_name));
	report(found, found ? "network interface with an address" :
	     "no network interface%s is up and has an address: there will be no device",
	     list ? " of those asked for" : "");
	freeifaddrs(all);
}

static void check_call(const char *name, int fd)
{
	if (fd >= 0)
		report(true, "%s", name);
	else
		report(false, "%s: %s; a sandbox (seccomp) may forbid it", name, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int run_checks(const char *folder, const char *file)
{
	const char *why = file ? why_not(file, false) : NULL;

	check_system();
	check_libraries(folder);
	check_netdevs();
	check_call("memfd_create", memfd_create("weft-run", MFD_CLOEXEC));
	check_call("eventfd", eventfd(0, EFD_CLOEXEC));
	check_call("epoll", epoll_create1(EPOLL_CLOEXEC));
	if (file)
		report(!why, "%s%s%s", file, why ? " " : "", why ? why : "");
	return !all_well;
}

int main(int argc, char **argv)
{
	bool only_check = parse(argc, argv), denied = false;
	const char *name = argv[optind], *why;
	char *folder = find_folder(), *file = NULL;

	check_devices();
	if (name)
		file = find_program(name, &denied);
	else if (!only_check)
		die(EXIT_USAGE, "no program is named; see --help");
	if (name && !file)
		die(denied ? EXIT_REFUSED : EXIT_NOT_FOUND, "%s: %s", name,
		    denied ? "may not be run" : "there is no such program");
	if (only_check)
		return run_checks(folder, file);
	why = why_not(file, false);
	if (why)
		die(EXIT_REFUSED, "%s %s", file, why);
	set_environment(folder);
	if (seeds.first)
		rl_seeds_fork(&seeds);
	execvp(file, argv + optind);
	die(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_REFUSED, "%s: %s", file, strerror(errno));
}
