// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Moves an id, with everything that it has, to another event channel. */
#include "id.h"
#include "late_events.h"
#include "ud.h"

static void change_chan(struct rl_cmid *id, struct rl_chan *to)
{
	struct rl_chan *from = id->chan;

	rl_chan_get(to);
	id->chan = to;
	rl_late_event_move(from, to, id);
	rl_joins_move_events(id, from, to);
	rl_chan_put(from);
}

u32 rl_cmid_migrate(struct rl_cmid *id, struct rl_chan *to)
{
	u32 reported;

	rl_cmid_table_lock();
	reported = id->reported;
	if (id->chan != to) {
		change_chan(id, to);
		rl_cm_move_requests(id, to);
		if (id->sidr_server)
			rl_sidr_server_move_requests(id, to);
	}
	rl_cmid_table_unlock();
	return reported;
}
