/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of cases share. */
#ifndef WEFTSPEC_CASES_H
#define WEFTSPEC_CASES_H

#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "expect.h"

#define R ROLE_R
#define I ROLE_I
#define B ROLE_B
#define TEXT8 ((const uint8_t *)"weftspec")

/* A mix of the peer's own messages, of all kinds that it can send on request. */
void traffic(struct ctx *c, struct stream *s);
/* traffic(), then the verdict of the case's own row from what was watched. */
void watch(struct ctx *c);
/* Receives until the ACK (or DONE) of seq, answering Read Requests. */
void serve_until(struct stream *s, uint32_t seq, bool done);
/* Answers the Read Request just received, octets of serve_byte(). */
void serve_read(struct stream *s);
uint8_t serve_byte(uint64_t to);
/* Octets of a fixed pattern; n up to 1 MB. */
const uint8_t *pattern(size_t n);

extern const struct wcase cases_watch[], cases_startup[], cases_startup_i[];
extern const struct wcase cases_fpdu[], cases_marker[], cases_enhanced[];
extern const struct wcase cases_enhanced_i[], cases_ddp[], cases_ddp_order[];
extern const struct wcase cases_rdmap[], cases_read[], cases_read_i[];
extern const struct wcase cases_inval[], cases_term[], cases_term_rx[];
extern const struct wcase cases_ext[], cases_atomic[], cases_requester[];
extern const struct wcase cases_sec[];

#endif
