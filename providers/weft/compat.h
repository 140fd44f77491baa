/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider is written for the newest rdma-core; what older releases want
 * otherwise stands here. Not part of the series for rdma-core.
 */
#ifndef WEFT_PROVIDER_COMPAT_H
#define WEFT_PROVIDER_COMPAT_H

#include <infiniband/driver.h>

/*
 * ibv_cmd_get_context() gained a list of file descriptors after PABI 34, which
 * Debian 12 (44) and 13 (56) have. scripts/build-provider.sh looks at the
 * source that it builds in.
 */
#ifdef WEFT_GET_CONTEXT_WITHOUT_FDS
#define ibv_cmd_get_context(ctx, cmd, cmd_size, fds, resp, resp_size) \
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#endif

#endif
