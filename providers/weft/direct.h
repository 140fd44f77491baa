/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The doorbell without an ioctl: a library that has the device in the same process, and is preloaded,
 * defines this function. The provider asks for it by name, and makes the ioctl if there is none, or if
 * @fd is not that library's. Both take the same way then, and the words of the ioctl are saved.
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
