/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cases.h"

const struct wcase *const case_tables[] = {
	cases_watch, cases_startup, cases_fpdu, cases_marker, cases_ddp,
	NULL,
};
