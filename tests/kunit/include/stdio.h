/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_KUNIT_STDIO_H
#define WEFT_KUNIT_STDIO_H

#include <linux/printk.h>

/* Only stderr is written to. */
#define fprintf(file, ...) printk(KERN_ERR __VA_ARGS__)

#endif
