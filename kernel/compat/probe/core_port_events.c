// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * 6.14: the core sends PORT_ACTIVE and PORT_ERR for devices with a netdev. The
 * operation below came with that.
 */
#include <rdma/ib_verbs.h>

const struct ib_device_ops weft_probe = { .report_port_event = NULL };
