/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine's types, and its CRC, for this host. */
#ifndef RL_PORT_H
#define RL_PORT_H

#include "../../../kernel/proto/port.h"

#endif
