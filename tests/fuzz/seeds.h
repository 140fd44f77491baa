/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_SEEDS_H
#define WEFT_SEEDS_H

#include "../../kernel/proto/port.h"

/* seeds.c: writes a seed of @target. */
void seeds_save(const char *target, const char *name, const u8 *p, u32 len);

/* seeds_wqe.c */
void seeds_wqe(void);

#endif
