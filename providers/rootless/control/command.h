/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of weft-ctl: parsed (command_parse.c, pure) and carried out (command.c). */
#ifndef RL_CONTROL_COMMAND_H
#define RL_CONTROL_COMMAND_H

#include "devices/profile.h"
#include "place.h"

enum rl_control_verb { RL_CONTROL_LIST, RL_CONTROL_FATAL, RL_CONTROL_ERROR, RL_CONTROL_DISCONNECT };

struct rl_control_command {
	enum rl_control_verb verb;
	u32 number;			/* LIST: where to begin; ERROR, DISCONNECT: a QPN */
	char device[RL_PROFILE_NAMES];	/* FATAL */
};

/* @text has @len octets, and ends with none in particular. False: *@c is undefined. */
bool rl_control_parse(struct rl_control_command *c, const char *text, size_t len);

/* Carries out the request in @text: the length of the reply. No lock. */
size_t rl_control_run(const char *text, size_t len, char reply[RL_CONTROL_REPLY]);

#endif
