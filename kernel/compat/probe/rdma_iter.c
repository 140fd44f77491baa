// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 7.1: the walk over DMA blocks moved from ib_umem.h to a header of its own. */
#include <rdma/iter.h>
