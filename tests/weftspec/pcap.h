/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A capture file made from the connections' logs: Ethernet, IP and TCP
 * headers are synthesised, so no capture rights are needed.
 */
#ifndef WEFTSPEC_PCAP_H
#define WEFTSPEC_PCAP_H

#include "conn.h"

/* Returns 0 or -1 with errno (a full disk among others). */
int pcap_write(const char *path, const struct conn *all);

#endif
