/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which devices there are to be: from --profile, --rails and --netdevs and what the host has.
 * weft-run makes it to refuse what the host cannot do; the library, to make devices of it.
 */
#ifndef RL_SETUP_H
#define RL_SETUP_H

#include "profile.h"

struct ifaddrs;

struct rl_wishes {
	const char *profile;		/* a file; NULL: weft's own */
	const char *rails;		/* a number, or a topology's file; NULL: one a netdev */
	const char *netdevs;		/* names, with commas; NULL: all */
	bool iwarp;			/* without a profile: RNICs */
};

struct rl_setup {
	struct rl_profile base;
	struct rl_rails rails;		/* in the order of the devices */
};

/*
 * @first is getifaddrs()'s. False: *@file (NULL: no file) and *@e say why not. *@s must stay where
 * it is: the rails refer to it.
 */
bool rl_setup_make(const struct rl_wishes *w, const struct ifaddrs *first, struct rl_setup *s,
		   const char **file, struct rl_profile_error *e);

/* Does this host have the function at the path's end? Programs would read that one instead. */
bool rl_setup_host_has(const struct rl_pci_path *path);

#endif
