/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /dev/weft-exporter, of the module weft_kexport: dmabufs whose memory may move. */
#ifndef WEFT_EXPORTER_H
#define WEFT_EXPORTER_H

#include <linux/ioctl.h>

#define EXPORTER_SIZE	(16 * 4096)

enum exporter_kind {
	EXPORTER_MOVES,			/* unless it is pinned */
	EXPORTER_PINS,			/* it is pinned while somebody is attached */
	EXPORTER_IO,			/* I/O memory, for the CPU's view */
};

/* One dmabuf for each opened file: returns its descriptor. */
#define EXPORTER_MAKE	_IO('w', 1)
/* Moves the memory, and fills the old with 0xee: EBUSY if it is pinned. */
#define EXPORTER_MOVE	_IO('w', 2)
/*
 * Takes the memory back: asks all that have it pinned to release it, waits until they have, and fills it with
 * 0xee. ETIMEDOUT: they have not. No one pins it afterwards.
 */
#define EXPORTER_REVOKE	_IO('w', 3)
/* 1: it is full of 0xee. */
#define EXPORTER_UNTOUCHED	_IO('w', 4)

#endif
