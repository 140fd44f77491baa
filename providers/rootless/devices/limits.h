/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What this host can do. No device promises more. */
#ifndef RL_LIMITS_H
#define RL_LIMITS_H

#include "kernel/uapi/rdma/weft-abi.h"

#define RL_MAX_QP	(64 * 1024)
#define RL_MAX_CQ	(64 * 1024)
#define RL_MAX_MR	(1024 * 1024)
#define RL_MAX_PD	(64 * 1024)
#define RL_MAX_SRQ	(64 * 1024)
#define RL_MAX_IRD	128
#define RL_MAX_ORD	128
/* QPs of one process in one multicast group on one netdev. */
#define RL_GROUP_MEMBERS 256
#define RL_FEATURES	(WEFT_FEATURE_RESIZE | WEFT_FEATURE_TIMESTAMP | WEFT_FEATURE_POLL_KICK | \
			 WEFT_FEATURE_LINGER | WEFT_FEATURE_MW | WEFT_FEATURE_NULL_MR | \
			 WEFT_FEATURE_SRQ_KICK | WEFT_FEATURE_ROCE_TYPES | WEFT_EXT_FEATURES)

#endif
