/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A netdev as it is now: up or down, its MTU and speed. Asked of the kernel each time, by a socket
 * that does not stay open: /sys/class/net may be of another network namespace.
 */
#ifndef RL_LINK_H
#define RL_LINK_H

#include "process/port.h"

#define RL_LINK_BUS 32

struct rl_link {
	bool up;			/* administratively, and with a carrier */
	u32 mtu;
	u32 mbps;			/* 0: unknown */
};

void rl_link_read(const char *netdev, struct rl_link *l);
/* The name of its PCI function, as in /sys/bus/pci/devices; "": it has none. */
void rl_link_bus(const char *netdev, char name[RL_LINK_BUS]);

#endif
