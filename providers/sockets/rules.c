// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rules for sockets. weft-run reads them, too, and says what is wrong before the program begins. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rules.h"

#define MAX_FILE	65536
/* One segment may be lost, or two: TCP repeats it after 200 and 600 ms at the earliest. */
#define WAIT_MS		700
#define BLANKS		" \t\r"

/* ---- words ---- */

/* The next word of *@at, which goes on; NULL: there is none. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, BLANKS), *end;

	if (!*word)
		return NULL;
	end = word + strcspn(word, BLANKS);
	*at = end + !!*end;
	*end = '\0';
	return word;
}

static bool rules_read_number(const char *s, char **end, unsigned int max, unsigned int *n)
{
	unsigned long v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoul(s, end, 10);
	*n = (unsigned int)v;
	return !errno && v <= max;
}

static bool read_ports(const char *s, struct rl_rule *u)
{
	char *end;

	u->min = 1;
	u->max = 65535;
	if (!strcmp(s, "*"))
		return true;
	if (!rules_read_number(s, &end, 65535, &u->min))
		return false;
	u->max = u->min;
	if (*end == '-' && !rules_read_number(end + 1, &end, 65535, &u->max))
		return false;
	return !*end && u->min && u->min <= u->max;
}

static void map_v4(const struct in_addr *v4, struct in6_addr *a)
{
	*a = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(a->s6_addr + 12, v4, sizeof(*v4));
}

/* The width of the address, which is in *@a; 0: it is none. */
static unsigned int read_host(const char *s, struct in6_addr *a)
{
	struct in_addr v4;

	if (inet_pton(AF_INET6, s, a) == 1)
		return 128;
	if (inet_pton(AF_INET, s, &v4) != 1)
		return 0;
	map_v4(&v4, a);
	return 32;
}

static bool read_address(char *s, struct rl_rule *u)
{
	char *slash = strchr(s, '/'), *end;
	unsigned int width, bits;

	if (slash)
		*slash = '\0';
	width = read_host(s, &u->peer);
	bits = width;
	if (!width || (slash && (!rules_read_number(slash + 1, &end, width, &bits) || *end)))
		return false;
	u->bits = 128 - width + bits;
	return true;
}

static bool read_option(const char *s, struct rl_rule *u)
{
	char *end;

	if (!strcmp(s, "only"))
		return u->only = true;
	if (!strncmp(s, "window=", 7))
		return rules_read_number(s + 7, &end, RL_RULE_WINDOW_MAX, &u->window_kib) &&
			!*end && u->window_kib >= RL_RULE_WINDOW_MIN;
	return !strncmp(s, "wait=", 5) && rules_read_number(s + 5, &end, 60000, &u->wait_ms) &&
		!*end;
}

static const char *read_verdict(const char *s, struct rl_rule *u)
{
	u->iwarp = !strcmp(s, "iwarp");
	return u->iwarp || !strcmp(s, "tcp") ? NULL : "a rule begins with iwarp or tcp";
}

static const char *read_role(const char *s, struct rl_rule *u)
{
	if (s && !strcmp(s, "connect"))
		u->roles = RL_CONNECTS;
	else if (s && !strcmp(s, "accept"))
		u->roles = RL_ACCEPTS;
	else if (s && !strcmp(s, "both"))
		u->roles = RL_CONNECTS | RL_ACCEPTS;
	else
		return "connect, accept or both comes second";
	return NULL;
}

/* ---- lines ---- */

static const char *read_rest(char *at, struct rl_rule *u)
{
	char *word = next_word(&at);
	bool is_first = true;

	if (!word || !read_ports(word, u))
		return "ports come third: N, MIN-MAX or *";
	for (; (word = next_word(&at)); is_first = false)
		if (!read_option(word, u) && !(is_first && read_address(word, u)))
			return "an address, only, wait=MS and window=KIB may follow the ports";
	return NULL;
}

static const char *read_line(char *at, struct rl_rule *u)
{
	char *word = next_word(&at);
	const char *why = read_verdict(word, u);

	*u = (struct rl_rule){ .iwarp = u->iwarp, .wait_ms = WAIT_MS };
	why = why ? why : read_role(next_word(&at), u);
	return why ? why : read_rest(at, u);
}

static const char *rules_add(struct rl_rules *r, char *line)
{
	struct rl_rule *list;

	line[strcspn(line, "#")] = '\0';
	if (!line[strspn(line, BLANKS)])
		return NULL;
	list = realloc(r->list, (r->n + 1) * sizeof(*list));
	if (!list)
		return "no memory";
	r->list = list;
	return read_line(line, &list[r->n++]);
}

const char *rl_rules_parse(char *text, struct rl_rules *r, unsigned int *line)
{
	const char *why = NULL;
	char *next;

	*r = (struct rl_rules){ .n = 0 };
	for (*line = 1; !why && text; text = next, ++*line) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		why = rules_add(r, text);
		if (why)
			return why;
	}
	return NULL;
}

/* Raw: the library's hooks are not to see it. */
static ssize_t read_file(const char *name, char *buf, size_t size)
{
	long fd = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC), n = 0;
	size_t len = 0;

	if (fd < 0)
		return -1;
	while (len < size && (n = syscall(SYS_read, fd, buf + len, size - len)) > 0)
		len += (size_t)n;
	syscall(SYS_close, fd);
	return n < 0 ? -1 : (ssize_t)len;
}

const char *rl_rules_load(const char *name, struct rl_rules *r, unsigned int *line)
{
	char all[] = "iwarp both *", *text;
	const char *why = NULL;
	ssize_t len;

	*line = 0;
	if (!strcmp(name, "all"))
		return rl_rules_parse(all, r, line);
	*r = (struct rl_rules){ .n = 0 };
	text = malloc(MAX_FILE + 1);
	if (!text)
		return "no memory";
	len = read_file(name, text, MAX_FILE + 1);
	if (len < 0)
		why = strerror(errno);
	else if (len > MAX_FILE || memchr(text, '\0', (size_t)len))
		why = "too long, or no text";
	if (!why) {
		text[len] = '\0';
		why = rl_rules_parse(text, r, line);
	}
	free(text);
	return why;
}

void rl_rules_free(struct rl_rules *r)
{
	free(r->list);
	*r = (struct rl_rules){ .n = 0 };
}

/* ---- matching ---- */

struct rl_name rl_rules_name(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;
	struct rl_name name = { .port = 0 };

	if (a->ss_family == AF_INET) {
		map_v4(&four->sin_addr, &name.address);
		name.port = ntohs(four->sin_port);
	} else if (a->ss_family == AF_INET6) {
		name.address = six->sin6_addr;
		name.port = ntohs(six->sin6_port);
	}
	return name;
}

unsigned int rl_rules_port(const struct sockaddr_storage *a)
{
	return rl_rules_name(a).port;
}

static bool same_bits(const struct in6_addr *a, const struct in6_addr *b, unsigned int bits)
{
	unsigned int octets = bits / 8, rest = bits % 8;

	return !memcmp(a, b, octets) &&
		(!rest || !((a->s6_addr[octets] ^ b->s6_addr[octets]) >> (8 - rest)));
}

const struct rl_rule *rl_rules_find(const struct rl_rules *r, enum rl_role role, unsigned int port,
				    const struct sockaddr_storage *peer)
{
	const struct in6_addr a = rl_rules_name(peer).address;
	const struct rl_rule *u;

	if (peer->ss_family != AF_INET && peer->ss_family != AF_INET6)
		return NULL;
	for (u = r->list; u < r->list + r->n; u++)
		if (u->roles & role && port >= u->min && port <= u->max &&
		    same_bits(&u->peer, &a, u->bits))
			return u->iwarp ? u : NULL;
	return NULL;
}

bool rl_rules_may_accept(const struct rl_rules *r, unsigned int port)
{
	const struct rl_rule *u;

	for (u = r->list; u < r->list + r->n; u++)
		if (u->iwarp && u->roles & RL_ACCEPTS && port >= u->min && port <= u->max)
			return true;
	return false;
}
