/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a device looks like: names, numbers and limits that programs read. There is always one:
 * rl_profile_init() makes weft's own, and a file (docs/profiles.md) changes it. Limits are this
 * host's at most (devices/limits.h).
 *
 * Pure: weft-run, the library, tests and the fuzzer read files by the same functions.
 */
#ifndef RL_PROFILE_H
#define RL_PROFILE_H

#include <net/if.h>

#include "process/port.h"

#define RL_PROFILE_MAX_FILE	65536	/* octets */
#define RL_PROFILE_NAMES	32	/* room for a device's name */
#define RL_PROFILE_PLACES	16	/* PCI paths, NUMA nodes of a file */
/* With weft's they fit into one answer of netlink. */
#define RL_PROFILE_COUNTERS	48
#define RL_PCI_DEPTH		4	/* functions of one PCI path */
#define RL_RAILS		64
#define RL_RAIL_ADDRESSES	8

enum rl_gid_class { RL_GIDS_LINK_LOCAL, RL_GIDS_IPV4, RL_GIDS_IPV6, RL_GID_CLASSES };
/* Bits of struct rl_profile.gid_types. */
enum { RL_GID_V1 = 1, RL_GID_V2 = 2 };

struct rl_pci_function {
	u16 domain;
	u8 bus, slot, function;
};

/* From the root bus down: bridges, then the device's function. */
struct rl_pci_path {
	u32 depth;
	struct rl_pci_function at[RL_PCI_DEPTH];
};

/* Names of verbs and sysfs. */
struct rl_profile {
	char name[RL_PROFILE_NAMES];	/* with %d, %n, %p: docs/profiles.md */
	bool iwarp;			/* an RNIC; else a RoCE device */
	u8 node_type;			/* as the kernel numbers them: 1, 4, 7 */
	u8 link_layer;			/* of IBV_LINK_LAYER_ */
	u32 vendor_id, vendor_part_id, hw_ver;
	char fw_ver[24];		/* "": none */
	u64 fw_number;			/* the same, as query_device has it */
	char hca_type[64], board_id[32], hw_rev[16], node_desc[64];
	u8 node_guid[8], sys_image_guid[8]; /* of the first device; zeros: by the netdev */

	u8 gid_order[RL_GID_CLASSES];	/* of enum rl_gid_class */
	u32 gid_classes;
	u8 gid_types;
	u32 active_mbps;		/* 0: the netdev's */
	u8 active_width;		/* as verbs number them; 0: by the speed */
	u8 active_mtu;			/* 1 (256) to 5 (4096); 0: by the netdev's MTU */
	u8 max_mtu;
	u32 max_msg_sz;

	u32 qp_types;			/* bits of IBV_QPT_ */
	u64 device_cap_flags;		/* IBV_DEVICE_ */
	u32 atomic_cap;			/* IBV_ATOMIC_ */
	bool immediate, odp;
	u64 max_mr_size, page_size_cap;
	u32 max_qp, max_qp_wr, max_sge, max_sge_rd, max_inline_data;
	u32 max_cq, max_cqe, max_mr, max_mw, max_pd;
	u32 max_srq, max_srq_wr, max_srq_sge;
	u32 max_ah, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
	u32 max_qp_rd_atom, max_res_rd_atom, max_qp_init_rd_atom;
	u32 max_pkeys, local_ca_ack_delay;

	u32 pci_vendor, pci_device, pci_subsystem_vendor, pci_subsystem_device, pci_class;
	char pci_driver[24], pci_speed[16];
	u32 pci_width;
	/* Of device 0, 1, ...; more devices begin again. None: the netdev's, or of weft's own. */
	struct rl_pci_path pci[RL_PROFILE_PLACES];
	u32 pci_paths;
	s32 numa_node[RL_PROFILE_PLACES];
	u32 numa_nodes;			/* 0: the netdev's */

	bool port_counters;		/* ports/1/counters */
	bool own_counters;		/* hw_counters has weft's, then these, which stay 0 */
	char hw_counters[RL_PROFILE_COUNTERS][48];
	u32 nhw_counters;
};

/* One device, as asked for. */
struct rl_rail {
	const struct rl_profile *about;
	char netdev[IFNAMSIZ];
	u8 address[RL_RAIL_ADDRESSES][16]; /* IPv4 mapped into IPv6 */
	u32 addresses;			/* 0: all that the netdev has */
	u32 line;			/* of the file; 0: of none */
};

struct rl_rails {
	struct rl_rail *at;
	struct rl_profile *own;		/* of each rail */
	u32 n;
};

struct rl_profile_error {
	u32 line;			/* 0: of no line */
	char why[200];
};

/* weft's own, of a RoCE device. */
void rl_profile_init(struct rl_profile *p);
/* Makes an RNIC of it. */
void rl_profile_set_iwarp(struct rl_profile *p);

/*
 * Changes *@p as the @len octets of @text say. False: *@e says what is wrong and where, and *@p is
 * undefined.
 */
bool rl_profile_parse(struct rl_profile *p, const char *text, size_t len,
		      struct rl_profile_error *e);
/*
 * The same for a topology: devices that look like *@base, less what the file says of all or of one.
 * True: @r is the caller's to free.
 */
bool rl_rails_parse(const struct rl_profile *base, const char *text, size_t len,
		    struct rl_rails *r, struct rl_profile_error *e);
void rl_rails_free(struct rl_rails *r);

/* The text of file @path, for the caller to free; NULL: *@e says why. */
char *rl_profile_read(const char *path, size_t *len, struct rl_profile_error *e);

/* The PCI path of device @index; @turn: the next function for each, if that is taken. */
void rl_profile_pci(const struct rl_profile *p, u32 index, u32 turn, struct rl_pci_path *path);
/* The name of device @index on @netdev; false: it does not fit. */
bool rl_profile_name(const struct rl_profile *p, u32 index, const char *netdev,
		     const struct rl_pci_path *pci, char name[RL_PROFILE_NAMES]);

#endif
