/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A second thread would be a second CPU's: a test that begins one is skipped. */
#ifndef WEFT_KUNIT_PTHREAD_H
#define WEFT_KUNIT_PTHREAD_H

#include "weft_kunit.h"

typedef int pthread_t;

static inline int pthread_create(pthread_t *thread, const void *attr, void *(*f)(void *), void *arg)
{
	weft_kunit_skip("needs a thread");
}

#define pthread_join(thread, result) ((void)(thread))

#endif
