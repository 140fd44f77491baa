/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /dev/weft-exporter, of the module weft_kexport: dmabufs whose memory may move. */
#ifndef WEFT_EXPORTER_H
#define WEFT_EXPORTER_H

#include <linux/ioctl.h>

#define EXPORTER_SIZE	(16 * 4096)

enum exporter_kind {
	EXPORTER_MOVES,			/* unless it is pinned */
	EXPORTER_IO,			/* I/O memory, for the CPU's view */
};

/* One dmabuf for each opened file: returns its descriptor. */
#define EXPORTER_MAKE	_IO('w', 1)
/* Moves the memory, and fills the old with 0xee: EBUSY if it is pinned. */
#define EXPORTER_MOVE	_IO('w', 2)

#endif
