// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * 6.6: the CM finds an iWARP device by the netdev of its GID entry, not by its MAC.
 * That left no trace in a header; the operation below came one release later.
 */
#include <rdma/ib_verbs.h>

const struct ib_device_ops weft_probe = { .fill_res_srq_entry = NULL };
