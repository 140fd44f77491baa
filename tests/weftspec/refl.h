/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tester's side of the reflector protocol (reflector.h). */
#ifndef WEFTSPEC_REFL_H
#define WEFTSPEC_REFL_H

#include "stream.h"

uint8_t *refl_request(struct ctx *c, uint8_t *out);
void refl_read_table(struct stream *s);
/* The same of n octets at p. */
void refl_take_table(struct stream *s, const uint8_t *p, size_t n);
bool refl_take_hello(struct stream *s);

struct cmd {
	uint16_t op, flags;
	uint32_t count, len, stag;
	uint64_t to, arg, arg2;
};

/* Sends a command; returns its sequence number. */
uint32_t command(struct stream *s, const struct cmd *k);
/* Waits for the ACK of seq, passing over all else; the ACK's value. */
uint32_t command_ack(struct stream *s, uint32_t seq);
uint32_t command_wait(struct stream *s, const struct cmd *k);
bool is_ack(const struct stream *s, uint32_t seq);
bool is_done(const struct stream *s, uint32_t seq);

/* Octet i of region r before anybody wrote to it. */
uint8_t refl_fill(enum refl_region r, size_t i);

/* One RDMA Read answered into buf; false when it was not answered in full. */
bool read_peer(struct stream *s, uint32_t stag, uint64_t to, void *buf,
	       uint32_t len);
/* The same through region ALL, from anywhere in the arena; or fails. */
void peek(struct stream *s, uint64_t addr, void *buf, uint32_t len);
/* Octets off.. of a region are as they were filled. */
bool is_untouched(struct stream *s, enum refl_region r, int off, uint32_t len);
/* A right RDMA Write. */
void poke(struct stream *s, uint32_t stag, uint64_t to, const void *p, size_t n);

struct event {
	uint16_t conn;
	uint8_t kind, status;
	uint32_t opcode, len, imm;
	uint8_t head[16];
};

/* The status block through stream s: events so far, at most max. */
unsigned int read_events(struct stream *s, struct event *e, unsigned int max);
/* The same, once at least so many are there or patience ends. */
unsigned int wait_for_events(struct stream *s, struct event *e, unsigned int least);
/* Until the ULP knows that a connection has ended, or patience ends; by hand, where it is not told, 300 ms. */
void wait_for_parting(struct stream *s);
/* Receives that completed well with this first octet string. */
unsigned int count_received(struct stream *s, const void *head, size_t n);

#endif
