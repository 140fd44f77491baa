// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What core/rq.c would ask of its host; these tests stop at the rings. */
#include <stdlib.h>

#include "../../kernel/core/qp.h"

bool weft_host_srq_pop(struct weft_qpc *qp, struct weft_recv *recv)
{
	abort();
}

void weft_host_complete(struct weft_qpc *qp, bool recv, const struct weft_cqe *cqe)
{
	abort();
}
