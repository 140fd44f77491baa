/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_KUNIT_SUITES_H
#define WEFT_KUNIT_SUITES_H

struct kunit_suite;

extern struct kunit_suite weft_kunit_left_out;

#endif
