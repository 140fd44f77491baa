// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.4: the address of an SGE back to the kernel pointer that it is without a DMA device. */
#include <rdma/ib_verbs.h>

void *weft_probe(u64 addr)
{
	return ib_virt_dma_to_ptr(addr);
}
