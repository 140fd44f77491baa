/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "manner.h"
#include "peer.h"

struct self_cfg self_cfg = { .ird = 16, .ord = 16, .pd_len = -1,
			     .startup_ms = 1500, .rev = 2,
			     .rtr = WEFT_RTR_ALL };

static void usage(FILE *f)
{
	fputs("usage: weftspec-self-peer [options] --listen [ADDR]:PORT\n"
	      "       weftspec-self-peer [options] --connect HOST:PORT\n"
	      "  --fault NAME   break something (--faults lists, with the rows)\n"
	      "  --drive        be a reflector's other end: move data with the peer's, and end\n"
	      "  --manner NAME  behave as hardware does: irdma, cxgb4, mpa1, cifs-le, windows-rev2\n"
	      "  --markers --p2p --no-crc --no-ext --rev N --ird N --ord N --pd-len N\n"
	      "  --conns N      connections to open\n"
	      "  --startup MS   how long it waits for a frame of start-up (1500)\n", f);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "listen", 1, 0, 'l' }, { "connect", 1, 0, 'c' },
		{ "fault", 1, 0, 'f' }, { "faults", 0, 0, 'F' },
		{ "markers", 0, 0, 'm' }, { "p2p", 0, 0, 'p' },
		{ "no-crc", 0, 0, 'C' }, { "no-ext", 0, 0, 'E' }, { "drive", 0, 0, 'D' }, { "manner", 1, 0, 'M' },
		{ "ird", 1, 0, 'i' },
		{ "ord", 1, 0, 'o' }, { "pd-len", 1, 0, 'd' },
		{ "conns", 1, 0, 'n' }, { "rev", 1, 0, 'r' },
		{ "startup", 1, 0, 's' },
		{ "help", 0, 0, 'h' }, { 0 },
	};
	const char *listen_at = NULL, *connect_to = NULL;
	int opt, conns = 1;

	signal(SIGPIPE, SIG_IGN);
	while ((opt = getopt_long(argc, argv, "h", opts, NULL)) != -1)
		switch (opt) {
		case 'l': listen_at = optarg; break;
		case 'c': connect_to = optarg; break;
		case 'f':
			if (!fault_choose(optarg))
				break;
			fprintf(stderr, "self-peer: no fault '%s'\n", optarg);
			return 2;
		case 'M':
			if (!manner_choose(optarg))
				break;
			fprintf(stderr, "self-peer: no manner '%s'\n", optarg);
			return 2;
		case 'F': fault_list(); return 0;
		case 'm': self_cfg.markers = true; break;
		case 'p': self_cfg.p2p = true; break;
		case 'C': self_cfg.no_crc = true; break;
		case 'D':
			self_cfg.drive = true;
			/* The other end is a program, which comes to it when it can; no time is judged. */
			self_cfg.startup_ms = 60000;
			break;
		case 'E': self_cfg.no_ext = true; break;
		case 'i': self_cfg.ird = atoi(optarg); break;
		case 'o': self_cfg.ord = atoi(optarg); break;
		case 'd': self_cfg.pd_len = atoi(optarg); break;
		case 'n': conns = atoi(optarg); break;
		case 'r': self_cfg.rev = atoi(optarg); break;
		case 's': self_cfg.startup_ms = atoi(optarg); break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	if (!listen_at == !connect_to) {
		usage(stderr);
		return 2;
	}
	return listen_at ? sock_serve(listen_at) : sock_call(connect_to, conns);
}
