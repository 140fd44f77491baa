/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Asynchronous events of ports: each open context of a device gets them. */
#ifndef RL_PORT_EVENTS_H
#define RL_PORT_EVENTS_H

#include "context.h"

/* @ctx has its channel, and is to get events until rl_port_events_remove(). Any lock. */
void rl_port_events_add(struct rl_context *ctx);
/* Also if it was not added. */
void rl_port_events_remove(struct rl_context *ctx);

/* Each open context of @d gets an event of IBV_EVENT_ number @type. No lock. */
void rl_port_events_report(const struct rl_device *d, u32 type);
/* @d has failed: its open contexts die, and those that had not get DEVICE_FATAL. No lock. */
void rl_port_events_report_death(const struct rl_device *d);

#endif
