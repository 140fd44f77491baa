/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of weft-ctl: parsed (command_parse.c, pure) and carried out (command.c). */
#ifndef RL_CONTROL_COMMAND_H
#define RL_CONTROL_COMMAND_H

#include "devices/gid.h"
#include "devices/profile.h"
#include "place.h"

enum rl_control_verb {
	RL_CONTROL_LIST, RL_CONTROL_FATAL, RL_CONTROL_ERROR, RL_CONTROL_DISCONNECT,
	RL_CONTROL_FREEZE, RL_CONTROL_THAW, RL_CONTROL_PORT, RL_CONTROL_RATE, RL_CONTROL_DELAY,
	RL_CONTROL_LOSS,
	RL_CONTROL_LID, RL_CONTROL_GID, RL_CONTROL_FAULTS,
	RL_CONTROL_VERBS
};

struct rl_control_command {
	enum rl_control_verb verb;
	/* Its object: a device, a QP, or neither. */
	char device[RL_PROFILE_NAMES];	/* "": none */
	u32 qpn;			/* LIST: after this one */
	u8 gid[RL_GID_LEN];		/* GID: the new one, of index @value; zeros: none */
	bool has_gid;
	u64 value;			/* PORT: up; RATE: bits per second; DELAY: us; LID;
					 * LOSS: of RL_CABLE_CERTAIN */
	const char *text;		/* FAULTS: the rules; @text_len octets of the request */
	size_t text_len;
};

/* Reads a request of @len octets: NULL, or why it is none; then *@c is undefined. */
const char *rl_control_parse(struct rl_control_command *c, const char *request, size_t len);

/* Carries out the request: the length of the reply. No lock. */
size_t rl_control_run(const char *request, size_t len, char reply[RL_CONTROL_REPLY]);

#endif
