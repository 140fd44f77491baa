/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cases.h"

const struct wcase *const case_tables[] = {
	cases_watch, cases_startup, cases_startup_i, cases_fpdu, cases_marker,
	cases_enhanced, cases_enhanced_i, cases_ddp, cases_ddp_order,
	cases_rdmap, cases_read, cases_read_i, cases_inval, cases_term,
	cases_term_rx, cases_ext, cases_atomic, cases_requester,
	cases_sec,
	NULL,
};
