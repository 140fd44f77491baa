/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every FPDU and start-up frame of the peer is held against. */
#ifndef WEFTSPEC_LINT_H
#define WEFTSPEC_LINT_H

#include "stream.h"

void lint_fpdu(struct stream *s);
void lint_frame(struct stream *s);
/* The Terminate in s->term, its copied headers against s->off. */
void lint_terminate(struct stream *s);
void seg_print(char *out, size_t size, const struct seg *g);

#endif
