/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An ordinary TCP connection, with the segmentation in the tester's hands and
 * a log of what passed, from which a capture is made afterwards.
 */
#ifndef WEFTSPEC_CONN_H
#define WEFTSPEC_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/socket.h>

enum wire_kind { WIRE_OPEN, WIRE_DATA, WIRE_FIN, WIRE_RST };

struct wire_event {
	enum wire_kind kind;
	bool out; /* from the tester */
	double at;
	size_t off, len; /* in conn.log */
};

enum conn_state { CONN_UP, CONN_FIN, CONN_RST };

struct conn {
	int fd;
	struct sockaddr_storage local, peer;
	bool dialed;
	enum conn_state state; /* as the peer left it */
	uint8_t *rx;           /* received, not yet taken */
	size_t rx_len, rx_cap;
	uint8_t *log;
	size_t log_len, log_cap;
	struct wire_event *ev;
	size_t nev, ev_cap;
	struct conn *next;
};

/* Seconds since 1970 as they were at first; no clock that is set moves them. */
double now(void);
void nap_ms(int ms);

struct dial {
	const char *host, *port;
	int timeout_ms;
	int maxseg;        /* TCP_MAXSEG, 0: as it is */
	int rcvbuf;        /* SO_RCVBUF, 0: as it is */
	bool set_isn;      /* TCP_REPAIR, needs CAP_NET_ADMIN */
	uint32_t isn;
};

/* NULL with errno; a host name that does not resolve gives EHOSTUNREACH. */
struct conn *conn_dial(const struct dial *d);
/* Returns a listening descriptor on port (0: any), *got is the port. */
int conn_listen(const char *port, int *got, int maxseg);
struct conn *conn_accept(int lfd, int timeout_ms);
void conn_free(struct conn *k);

/* One send() with TCP_NODELAY: one segment where it fits.  0 or -1. */
int conn_send(struct conn *k, const uint8_t *buf, size_t len, int timeout_ms);
/* More bytes into k->rx; false when time is up or the peer is gone. */
bool conn_recv(struct conn *k, int timeout_ms);
void conn_take(struct conn *k, size_t n);
void conn_fin(struct conn *k);
void conn_rst(struct conn *k);

#endif
