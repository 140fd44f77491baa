/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions that the kernel's own fault injection may fail before their first statement:
 * ALLOW_ERROR_INJECTION names them, and their callers undo what was done before.
 */
#ifndef WEFT_INJECT_H
#define WEFT_INJECT_H

#include <linux/error-injection.h>

/* A copy in its caller could not fail. */
#ifdef CONFIG_FUNCTION_ERROR_INJECTION
#define weft_injectable noinline __noclone
#else
#define weft_injectable
#endif

#endif
