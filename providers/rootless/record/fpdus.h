/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a connection sends and receives, for the record: its octets are cut into FPDUs again, from
 * their lengths alone. The engine and its tables know nothing of it.
 *
 * The connection's lock.
 */
#ifndef RL_RECORD_FPDUS_H
#define RL_RECORD_FPDUS_H

#include "format.h"

struct rl_recorded;

/* What a connection is, once its start-up is over; before, what is known. */
struct rl_recorded_facts {
	struct weft_record_conn conn;
	u8 flags;			/* WEFT_RECORD_INITIATOR and so on */
	bool markers_out, markers_in;
	bool has_rtr;			/* the initiator's first FPDU says that it is ready */
};

/* NULL: no memory. */
struct rl_recorded *rl_recorded_new(void);
void rl_recorded_free(struct rl_recorded *r);

/* Are its facts to be written? They are repeated before they would leave the ring. */
bool rl_recorded_wants_facts(struct rl_recorded *r, bool is_startup);
void rl_recorded_facts(struct rl_recorded *r, u32 qpn, const struct rl_recorded_facts *facts);

/* Octets of start-up. */
void rl_recorded_startup(struct rl_recorded *r, bool out, u32 qpn, const void *p, u32 n,
			 u64 ticks);
/* Octets of FPDUs, in order. @may_vanish: they are the program's memory. */
void rl_recorded_octets(struct rl_recorded *r, bool out, u32 qpn, const void *p, u32 n,
			bool may_vanish, u64 ticks);

void rl_recorded_end(struct rl_recorded *r, u32 qpn, int error);

#endif
