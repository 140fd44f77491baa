/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What weft uses and the headers of glibc 2.31 lack; included before everything by build-portable.sh. */
#ifndef WEFT_PORTABLE_GLIBC_H
#define WEFT_PORTABLE_GLIBC_H

int close_range(unsigned int first, unsigned int last, int flags);
#define SYS_close_range 436	/* on every processor */

#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23

#endif
