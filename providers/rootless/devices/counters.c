// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counters of a port in the tree. ports/1/counters are the netdev's own statistics, which every
 * process sees, a monitor too; no message pays for them. hw_counters are weft's, of this process,
 * and names of the profile, which stay 0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "process/raw.h"
#include "process/stats.h"
#include "tree_fill.h"
#include "tree_node.h"

/* Columns of /proc/net/dev; COLUMNS: none. */
enum { RX_BYTES, RX_PACKETS, RX_ERRORS, RX_MULTICAST = 7, TX_BYTES, TX_PACKETS, TX_DROPS = 11,
       COLUMNS = 16 };

/* The names of the InfiniBand specification. */
static const struct counter {
	char name[36];
	u32 column;			/* COLUMNS: it stays 0 */
	u32 unit;			/* 0: 1 */
} port_counters[] = {
	{ "VL15_dropped", COLUMNS, 0 },
	{ "excessive_buffer_overrun_errors", COLUMNS, 0 },
	{ "link_downed", COLUMNS, 0 },
	{ "link_error_recovery", COLUMNS, 0 },
	{ "local_link_integrity_errors", COLUMNS, 0 },
	{ "multicast_rcv_packets", RX_MULTICAST, 0 },
	{ "multicast_xmit_packets", COLUMNS, 0 },
	{ "port_rcv_constraint_errors", COLUMNS, 0 },
	{ "port_rcv_data", RX_BYTES, 4 },
	{ "port_rcv_errors", RX_ERRORS, 0 },
	{ "port_rcv_packets", RX_PACKETS, 0 },
	{ "port_rcv_remote_physical_errors", COLUMNS, 0 },
	{ "port_rcv_switch_relay_errors", COLUMNS, 0 },
	{ "port_xmit_constraint_errors", COLUMNS, 0 },
	{ "port_xmit_data", TX_BYTES, 4 },
	{ "port_xmit_discards", TX_DROPS, 0 },
	{ "port_xmit_packets", TX_PACKETS, 0 },
	{ "port_xmit_wait", COLUMNS, 0 },
	{ "symbol_error", COLUMNS, 0 },
	{ "unicast_rcv_packets", RX_PACKETS, 0 },
	{ "unicast_xmit_packets", TX_PACKETS, 0 },
};

/* /proc/net/dev, which is of the process's own network namespace; its length. */
static size_t read_table(char *text, size_t size)
{
	long fd = rl_raw(SYS_openat, AT_FDCWD, "/proc/self/net/dev", O_RDONLY | O_CLOEXEC), n = 0;
	size_t len = 0;

	while (fd >= 0 && len < size - 1 &&
	       (n = rl_raw(SYS_read, fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		rl_raw(SYS_close, fd);
	text[len] = '\0';
	return len;
}

static u64 read_column(const char *netdev, u32 column)
{
	char text[16384], *line, *end;
	size_t len = strlen(netdev);

	if (column == COLUMNS || !read_table(text, sizeof(text)))
		return 0;
	for (line = text; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		line += strspn(line, " ");
		if (strncmp(line, netdev, len) || line[len] != ':')
			continue;
		for (line += len + 1; column; column--) {
			line += strspn(line, " ");
			line += strcspn(line, " \n");
		}
		return strtoul(line, NULL, 10);
	}
	return 0;
}

static size_t make_port_counter(const struct rl_node *n, char *text, size_t size)
{
	const struct counter *c = port_counters;
	u64 value;

	while (strcmp(c->name, n->name))
		c++;
	value = read_column(n->dev->netdev, c->column);
	return rl_node_print(text, size, "%llu\n",
			     (unsigned long long)(c->unit ? value / c->unit : value));
}

static size_t make_own_counter(const struct rl_node *n, char *text, size_t size)
{
	u64 values[RL_STATS];
	u32 i;

	rl_stat_get(values, RL_STATS);
	for (i = 0; i < RL_STATS - 1 && strcmp(rl_stat_names[i], n->text); i++)
		;
	return rl_node_print(text, size, "%llu\n", (unsigned long long)values[i]);
}

void rl_counters_fill(struct rl_node *port, const struct rl_device *d)
{
	const struct rl_profile *p = d->about;
	struct rl_node *dir = p->port_counters ? rl_node_add_dir(port, "counters") : NULL;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(port_counters); i++)
		rl_node_add_live(dir, port_counters[i].name, d, make_port_counter, NULL);
	if (!p->own_counters && !p->nhw_counters)
		return;
	dir = rl_node_add_dir(port, "hw_counters");
	rl_node_add_file(dir, "lifespan", "10\n");
	for (i = 0; p->own_counters && i < RL_STATS; i++)
		rl_node_add_live(dir, rl_stat_names[i], d, make_own_counter, rl_stat_names[i]);
	for (i = 0; i < p->nhw_counters; i++)
		rl_node_add_file(dir, p->hw_counters[i], "0\n");
}
