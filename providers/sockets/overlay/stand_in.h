/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the numbers of a stream name in the kernel: not the connection's socket, but one that was
 * never connected. Calls that bypass the library (aio, raw system calls) then fail with
 * ENOTCONN or EPIPE, and cannot take or send octets of FPDUs. Inside the gate.
 */
#ifndef RL_STAND_IN_H
#define RL_STAND_IN_H

#include <stdbool.h>

/*
 * @fd names the stand-in from now on, and is closed on exec. False: no descriptor is free, and @fd
 * is as before.
 */
bool rl_stand_in(int fd);
/* @fd names what @socket names, and keeps its FD_CLOEXEC. */
void rl_stand_aside(int fd, int socket);

#endif
