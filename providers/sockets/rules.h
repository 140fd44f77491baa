/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of `weft-run --sockets=RULES`: which TCP connections go over iWARP. A line of the file
 * is
 *
 *	VERDICT ROLE PORTS [ADDRESS[/BITS]] [OPTION...]
 *
 * and the first that matches decides; where none does, it is TCP. Read once, then constant: any
 * thread.
 */
#ifndef RL_SOCKRULES_H
#define RL_SOCKRULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Of a window: stream/hello.h has the same, in octets. */
#define RL_RULE_WINDOW_MIN	16
#define RL_RULE_WINDOW_MAX	65536

enum rl_role { RL_CONNECTS = 1, RL_ACCEPTS = 2 };

struct rl_rule {
	bool iwarp;			/* or TCP */
	unsigned int roles;		/* of rl_role */
	unsigned int min, max;		/* the port: the peer's to connect, the own to accept */
	struct in6_addr peer;		/* IPv4's are mapped */
	unsigned int bits;		/* of them matter; 0: any */
	bool only;			/* a client that does not begin MPA is refused */
	unsigned int wait_ms;		/* how long who would speak first waits for the client */
	unsigned int window_kib;	/* received and unread octets at most; 0: the default */
};

struct rl_rules {
	struct rl_rule *list;
	size_t n;
};

/* NULL, or what is wrong with @text and in which *@line. @r is the caller's to free. */
const char *rl_rules_parse(char *text, struct rl_rules *r, unsigned int *line);
/* The same of a file; "all" is one rule, and no file. */
const char *rl_rules_load(const char *name, struct rl_rules *r, unsigned int *line);
void rl_rules_free(struct rl_rules *r);

/* An address of IP, IPv4's mapped, and its port; all zero: it is none. */
struct rl_name {
	struct in6_addr address;
	unsigned int port;
};
struct rl_name rl_rules_name(const struct sockaddr_storage *a);

/* The rule for a connection with @peer at @port, if that is to go over iWARP; or NULL. */
const struct rl_rule *rl_rules_find(const struct rl_rules *r, enum rl_role role, unsigned int port,
				    const struct sockaddr_storage *peer);

/* Is there a rule by which some peer's connection to @port, accepted, goes over iWARP? */
bool rl_rules_may_accept(const struct rl_rules *r, unsigned int port);

/* The port of an address of IP; 0: it is none. */
unsigned int rl_rules_port(const struct sockaddr_storage *a);

#endif
