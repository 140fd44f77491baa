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
	WEFT_RUN_POSTED,		/* not a question: see WEFT_RUN_AFTER */
	WEFT_RUN_POSTS
};

struct weft_run_request {
	uint32_t handle;		/* of the QP or SRQ */
	uint32_t statuses;		/* it can be made to complete with: bits by IBV_WC_;
					 * POSTED: the answer
					 */
	uint64_t size;			/* in octets */
	uint8_t post;			/* enum weft_run_post */
	uint8_t opcode;			/* WEFT_WR_; if it has statuses */
};

#define WEFT_RUN_STATUS 0x10000		/* above all errno values */

/* From here on: post the request, then report the answer by WEFT_RUN_POSTED, posted or not. */
#define WEFT_RUN_AFTER	0x20000

/*
 * Asks whether request @r of command file @fd is to fail: 0; an errno value for the post to return;
 * WEFT_RUN_STATUS plus what the entry is to be broken for (weft_sq_break_entry()); or
 * WEFT_RUN_AFTER and more. ENOTTY: none ever is. It may take its time.
 */
int weft_run_fault(int fd, const struct weft_run_request *r)
	__attribute__((weak, visibility("default")));

#endif
