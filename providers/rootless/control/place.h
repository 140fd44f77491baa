/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where control sockets are: in a folder that only this user can enter, one named by each process.
 * docs/control.md describes the protocol. Used by the library and by weft-ctl.
 */
#ifndef RL_CONTROL_PLACE_H
#define RL_CONTROL_PLACE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "process/port.h"

#define RL_CONTROL_VERSION	"weft-control 1"
#define RL_CONTROL_LINE		256	/* octets of the longest request, without a text */
#define RL_CONTROL_REQUEST	65536	/* with one */
#define RL_CONTROL_REPLY	16384	/* of the longest reply */

/*
 * The folder's path: 0, or -errno if there is none that is a folder of this user and closed to all
 * others. @make: it is made if it is absent.
 */
int rl_control_folder(char path[sizeof(((struct sockaddr_un *)0)->sun_path)], bool make);

/* The socket of process @pid: its length, or -errno. */
int rl_control_name(struct sockaddr_un *name, s32 pid, bool make);

#endif
