// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Kicking an empty CQ: the kernel may ask its poller for a call, in which it makes progress. */
#include <errno.h>

#include "weft.h"

bool weft_cq_wants_kick(struct weft_cq *cq)
{
	if (to_weft_ctx(cq->vcq.cq.context)->features & WEFT_FEATURE_POLL_KICK)
		return true;
	if (!__atomic_load_n(&cq->posted, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&cq->posted, false, __ATOMIC_RELAXED))
		return false;
	/* Pairs with that of weft_uring_publish(): what a post left unmarked, the kick sends. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return weft_uring_says_poll(&cq->ring);
}

/* The kernel, or another host of the stack, sends and receives in the caller's context. */
void weft_cq_kick(struct weft_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;

	if (weft_kick(ibcq->context, UVERBS_OBJECT_CQ, ibcq->handle) == ENOTTY) {
		DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, 1);

		fill_attr_in_obj(cmd, WEFT_ATTR_CQ_KICK_HANDLE, ibcq->handle);
		execute_ioctl(ibcq->context, cmd);
	}
}
