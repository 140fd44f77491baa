/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* KASAN's marks of the stack cannot be left behind: a test that jumps is skipped. */
#ifndef WEFT_KUNIT_SETJMP_H
#define WEFT_KUNIT_SETJMP_H

#include "weft_kunit.h"

/* User mode has names of its own for these. */
#undef setjmp
#undef longjmp
#define jmp_buf weft_kunit_jmp_buf

typedef int jmp_buf[1];
typedef int sigjmp_buf[1];

static inline int weft_kunit_setjmp(int *env)
{
	weft_kunit_skip("needs longjmp()");
}

#define setjmp(env) weft_kunit_setjmp(env)
#define sigsetjmp(env, mask) weft_kunit_setjmp(env)
#define longjmp(env, value) weft_kunit_skip("needs longjmp()")
#define siglongjmp(env, value) weft_kunit_skip("needs longjmp()")

#endif
