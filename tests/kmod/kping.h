/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctls of weft_kping's device, and its page: see ping.c. */
#ifndef KPING_H
#define KPING_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KPING_DEVICE	"weft_kping"
#define KPING_OCTETS	8

#define KPING_SAY(end)	_IO('w', (end))		/* 0 or 1 sends a message to the other */
#define KPING_ANSWER	_IO('w', 2)		/* argument: does 1 answer from its callback? */

/* Most octets in a write(), which sends from 0 to 1; 1's callback copies them out. */
#define KPING_WRITE_MAX	(1u << 20)

/* Octets that each end has received; in the mapped page. */
struct kping_page {
	struct {
		__u32 got;
		__u32 pad[31];
	} end[2];
};

#endif
