/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Since glibc 2.32. Weak: an older one does not tell, and then a process counts as one with threads. */
#ifndef WEFT_PORTABLE_SINGLE_THREADED_H
#define WEFT_PORTABLE_SINGLE_THREADED_H

extern char weft_libc_single_threaded __asm__("__libc_single_threaded") __attribute__((weak));
#define __libc_single_threaded (&weft_libc_single_threaded && weft_libc_single_threaded)

#endif
