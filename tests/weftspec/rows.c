/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "rows.h"

const struct row rows[] = {
#define ROW(id, rfc, section, sev, role, flags, reason, text) \
	{ id, rfc, section, sev, role, flags, reason, text },
#include "rows.def"
#undef ROW
};

const size_t nrows = sizeof(rows) / sizeof(rows[0]);

const struct row *row_find(const char *id)
{
	for (size_t i = 0; i < nrows; i++)
		if (!strcmp(rows[i].id, id))
			return &rows[i];
	return NULL;
}

const char *severity_name(enum severity s)
{
	static const char *const name[] = {
		[SEV_C] = "critical", [SEV_M] = "MUST",
		[SEV_S] = "SHOULD", [SEV_O] = "optional",
	};

	return name[s];
}

const char *role_name(enum role r)
{
	static const char *const name[] = {
		[ROLE_R] = "responder", [ROLE_I] = "initiator",
		[ROLE_B] = "both",
	};

	return name[r];
}
