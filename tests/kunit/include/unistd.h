/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* KUnit has a time-out of its own. */
#ifndef WEFT_KUNIT_UNISTD_H
#define WEFT_KUNIT_UNISTD_H

#define alarm(seconds) ((void)(seconds))

#endif
