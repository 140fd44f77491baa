// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Destroys an id and everything that it has. */
#include "id.h"
#include "ud.h"
#include "request.h"

u32 rl_cm_destroy(struct rl_cmid *id)
{
	u32 reported = rl_cmid_unlist(id);

	if (id->listener)
		rl_cm_stop_listening(id);
	if (id->sidr_server)
		rl_sidr_server_close(id);
	if (id->sidr_client)
		rl_sidr_client_end(id);
	if (id->sidr_request)
		rl_sidr_server_reject(id, NULL, 0);
	rl_joins_end(id);
	rl_cmid_table_lock();
	rl_request_leave(id);
	rl_cmid_table_unlock();
	rl_cm_end_connection(id);
	rl_cm_drop_socket(id);
	rl_cmid_put(id);
	return reported;
}
