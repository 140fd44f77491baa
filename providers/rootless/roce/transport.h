/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How QPs of a RoCE device reach their peers. */
#ifndef RL_ROCE_TRANSPORT_H
#define RL_ROCE_TRANSPORT_H

#include "host/qp.h"

/* For a QP of @type: IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD. */
const struct rl_transport *rl_roce_transport(u8 type);

#endif
