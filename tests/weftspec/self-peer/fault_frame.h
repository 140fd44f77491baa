/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SELF_PEER_FAULT_FRAME_H
#define SELF_PEER_FAULT_FRAME_H

#include "fault.h"

/*
 * Passes the start-up frame at the head of d->buf, if it is whole.  Returns
 * the octets written; sets d->framed, or d->raw when it is no frame at all.
 */
size_t frame_pass(struct fault_dir *d, struct fault_dir *other, bool out,
		  uint8_t *dst);

#endif
