/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The doorbell without an ioctl: a preloaded library that has the device in this process defines
 * the function. The provider finds it by name, and makes the ioctl if there is none, or if @fd is
 * not that library's. Both have the same effect.
 */
#ifndef WEFT_PROVIDER_DIRECT_H
#define WEFT_PROVIDER_DIRECT_H

#include <stdint.h>

/*
 * Kicks @object, UVERBS_OBJECT_QP or UVERBS_OBJECT_CQ, of number @handle of command file @fd: 0, or
 * an errno value; ENOTTY: make the ioctl.
 */
int weft_run_kick(int fd, uint16_t object, uint32_t handle)
	__attribute__((weak, visibility("default")));

#endif
