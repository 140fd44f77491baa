/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the provider asks of and reports to weft-run's library, which it finds by name: doorbells,
 * faults on demand, and what a program does, for the judge and the record.
 *
 * The doorbell without an ioctl: a preloaded library that has the device in this process defines
 * the function. The provider finds it by name, and makes the ioctl if there is none, or if @fd is
 * not that library's. Both have the same effect.
 */
#ifndef WEFT_PROVIDER_DIRECT_H
#define WEFT_PROVIDER_DIRECT_H

#include <stdbool.h>
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
	WEFT_RUN_AFTERWARDS,	/* not a question: see WEFT_RUN_AFTER */
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

/* From here on: post the request, then report the answer by WEFT_RUN_AFTERWARDS, posted or not. */
#define WEFT_RUN_AFTER	0x20000

/*
 * Asks whether request @r of command file @fd is to fail: 0; an errno value for the post to return;
 * WEFT_RUN_STATUS plus what the entry is to be broken for (weft_sq_break_entry()); or
 * WEFT_RUN_AFTER and more. ENOTTY: none ever is. It may take its time.
 */
int weft_run_fault(int fd, const struct weft_run_request *r)
	__attribute__((weak, visibility("default")));

/* ---- judging and recording: what the program does (judged.c, judged_ops.c) ---- */

enum weft_run_deed {
	WEFT_RUN_IS_JUDGED,		/* is the program judged or recorded? Asked once, of a
					 * context: struct weft_run_judging */
	WEFT_RUN_CLOSES,		/* the context is about to be closed */
	WEFT_RUN_MADE,			/* struct weft_run_object, as those below */
	WEFT_RUN_ENDS,			/* is about to be destroyed; EAGAIN: a CQ has events that
					 * were not acknowledged */
	WEFT_RUN_WAITS,			/* for these, and has waited long */
	WEFT_RUN_REFUSED,		/* was not destroyed: EBUSY */
	WEFT_RUN_GONE,			/* was destroyed */
	WEFT_RUN_TWICE,			/* was destroyed before, and is used */
	WEFT_RUN_CHANGED,		/* a region was registered again */
	WEFT_RUN_RESET,			/* a QP was moved to RESET */
	WEFT_RUN_FAILED,		/* a QP was moved to ERR */
	WEFT_RUN_GID_0,			/* a QP's address has the GID index 0 */
	WEFT_RUN_POSTED,		/* struct weft_run_posted: is about to be published */
	WEFT_RUN_POLLED,		/* struct weft_run_polled */
	WEFT_RUN_READ_FIELD,		/* the same: a field that an error leaves undefined */
	WEFT_RUN_ROOM,			/* may @size more requests be posted to a QP? ENOMEM: those
					 * whose completions were not polled take their places */
};

enum weft_run_kind {
	WEFT_RUN_PD, WEFT_RUN_MR, WEFT_RUN_MW, WEFT_RUN_CQ, WEFT_RUN_SRQ, WEFT_RUN_QP,
	/* No deed of the provider's: librdmacm's, and the contexts of one file. */
	WEFT_RUN_CM_ID, WEFT_RUN_CM_CHANNEL, WEFT_RUN_CONTEXTS,
	WEFT_RUN_KINDS
};

struct weft_run_object {
	uint32_t kind, handle;		/* its key within the context */
	uint32_t number;		/* of a QP; the key of a region or window; the events of a
					 * CQ that were acknowledged */
	uint32_t pd;			/* handles of what it is made of */
	uint32_t send_cq, recv_cq, srq;
	bool has_srq, all_signaled;
	uint32_t size;			/* entries of a CQ; the most requests in a send queue, or
					 * in a SRQ
					 */
	uint64_t addr, length, iova;	/* of a region */
	uint32_t access;
	bool has_memory;		/* of a region: its memory is the program's, at addr */
	uint64_t user;			/* the program's pointer */
};

struct weft_run_posted {
	uint8_t post;			/* enum weft_run_post */
	uint8_t opcode;			/* of requests to send: WEFT_WR_ */
	bool signaled, in_line, datagram;
	uint32_t handle;		/* of the QP or SRQ */
	uint64_t wr_id;
	uint32_t num_sge;		/* 0 if the octets are in line */
	const void *sge;		/* struct weft_sge */
	uint32_t length;		/* of octets in line */
	uint32_t rkey;
	uint64_t remote_addr;
	const void *caller;		/* the instruction that posted it */
};

struct weft_run_polled {
	uint32_t cq, qp_num;		/* handle, number */
	uint64_t wr_id;
	uint8_t status;			/* IBV_WC_ */
	bool is_recv;
	const char *field;		/* of READ_FIELD */
};

/* How a context is judged and recorded. */
struct weft_run_judging {
	bool is_judged;			/* requests and completions are to be reported */
	bool overwrites_fields;		/* those that an error leaves undefined */
	bool is_cramped;		/* WEFT_RUN_ROOM is to be asked before each post */
	/*
	 * The record's, or NULL: called without a look-up of the file, which costs more than an
	 * entry. @owner lives as long as the context.
	 */
	const void *owner;
	void (*record_posted)(const void *owner, const struct weft_run_posted *p);
	void (*record_polled)(const void *owner, const struct weft_run_polled *p);
};

/* 0; ENOTTY: there is no judge, and no record. */
int weft_run_judge(int fd, enum weft_run_deed deed, const void *what)
	__attribute__((weak, visibility("default")));

#endif
