/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What weft-ctl does to octets on their way: a device's port is down, a QP is frozen, a link is
 * slow or long. A connection that any of it concerns has a struct rl_cable; its sends pass through
 * that. For all others it costs nothing: rl_conn_send() asks for its descriptor alone.
 *
 * Held (port down, frozen): sends wait, nothing is read, and TCP drops what arrives, so that the
 * peer's TCP gets no acknowledgement, as if a cable were pulled. What TCP has taken before
 * may still arrive. Time-outs run on: they are those of a peer whose host is gone.
 *
 * Loss: TCP repeats a lost segment, so what is lost is late, and holds up all that follows.
 */
#ifndef RL_CABLE_H
#define RL_CABLE_H

#include "cable_limits.h"
#include "conn.h"

/* When the link is free again: one for each QP or device with a rate. */
struct rl_pace {
	u64 free_ns;
	bool awaited;			/* a sender waits: what it was late is made up for */
};

/* A QP's part, or a device's. Its owner's lock. */
struct rl_cable_cfg {
	bool held;
	u64 bps;			/* octets of TCP's stream, in bits per second; 0: any */
	u32 delay_us;
	u32 loss;			/* of RL_CABLE_CERTAIN: segments that are sent again */
	struct rl_pace pace;
};

enum rl_cable_what { RL_CABLE_HELD, RL_CABLE_RATE, RL_CABLE_DELAY, RL_CABLE_LOSS };

/*
 * Changes a part of the configuration, and all connections that it concerns: 0, -ENOMEM, or -EINVAL
 * for a QP without connections (UD). No lock, or of a QP its context's.
 */
int rl_cable_set_device(const struct rl_device *d, enum rl_cable_what what, u64 value);
int rl_cable_set_qp(struct rl_qp *qp, enum rl_cable_what what, u64 value);

#endif
