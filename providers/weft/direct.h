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

/* What is about to be posted. */
enum weft_run_post {
	WEFT_RUN_NO_POST,		/* is any post to fail? asked once, of a context */
	WEFT_RUN_POST_SEND, WEFT_RUN_POST_RECV, WEFT_RUN_POST_SRQ_RECV,
	WEFT_RUN_POSTS
};

/*
 * Asks whether a post on command file @fd, to the QP or SRQ of number @handle, of @size octets, is
 * to fail: 0, or an errno value for it to return; ENOTTY: none ever is. It may take its time.
 */
int weft_run_fault(int fd, int post, uint32_t handle, uint64_t size)
	__attribute__((weak, visibility("default")));

#endif
