/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requirement table: one row a requirement, see rows.def. */
#ifndef WEFTSPEC_ROWS_H
#define WEFTSPEC_ROWS_H

#include <stddef.h>

enum severity { SEV_C, SEV_M, SEV_S, SEV_O };
enum role { ROLE_R = 1, ROLE_I = 2, ROLE_B = 3 };

#define ROW_X 1 /* may bring a weak peer down */

struct row {
	const char *id;
	int rfc;
	const char *section;
	enum severity sev;
	enum role role;
	unsigned int flags;
	const char *reason; /* why it has no case, else NULL */
	const char *text;
};

extern const struct row rows[];
extern const size_t nrows;

const struct row *row_find(const char *id);
const char *severity_name(enum severity s);
const char *role_name(enum role r);

#endif
