// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The contents of the tree: the texts that the kernel has for a device of this profile. As there,
 * /sys/class has links, and a device's folder is below its PCI function.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include "kernel/core/rtr.h"
#include "kernel/uapi/rdma/weft-abi.h"
#include "process/options.h"
#include "tree_fill.h"
#include "tree_node.h"

#define VERBS_ABI	6	/* of the uverbs commands */
#define CM_ABI		4	/* of rdma_cm's */

/* A directory that may have the hardware's entries as well. */
static struct rl_node *add_shelf(struct rl_node *dir, const char *name)
{
	struct rl_node *n = rl_node_add_dir(dir, name);

	if (n)
		n->merged = rl_options()->with_hardware;
	return n;
}

/* ---- a port ---- */

static u32 be16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static size_t make_gid(const struct rl_node *n, char *text, size_t size)
{
	u8 g[RL_GID_LEN];

	rl_device_gid(n->dev, (u32)strtoul(n->name, NULL, 10), g);
	return rl_node_print(text, size, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n",
			     be16(g), be16(g + 2), be16(g + 4), be16(g + 6),
			     be16(g + 8), be16(g + 10), be16(g + 12), be16(g + 14));
}

static void fill_gids(struct rl_node *port, const struct rl_device *d)
{
	struct rl_node *gids = rl_node_add_dir(port, "gids");
	struct rl_node *attrs = rl_node_add_dir(port, "gid_attrs");
	struct rl_node *ndevs = rl_node_add_dir(attrs, "ndevs");
	struct rl_node *types = rl_node_add_dir(attrs, "types");
	char name[12];
	u32 i;

	for (i = 0; i < d->ngids; i++) {
		snprintf(name, sizeof(name), "%u", i);
		rl_node_add_live(gids, name, d, make_gid, NULL);
		rl_node_add_file(ndevs, name, "%s\n", d->netdev);
		/* The other one is the kernel's name for all GID types but RoCE v2's. */
		rl_node_add_file(types, name, d->gid_is_v2[i] ? "RoCE v2\n" : "IB/RoCE v1\n");
	}
}

static size_t make_state(const struct rl_node *n, char *text, size_t size)
{
	struct rl_port_state s;

	rl_device_read_port(n->dev, &s);
	return rl_node_print(text, size, "%s\n", s.up ? "4: ACTIVE" : "1: DOWN");
}

static size_t make_phys_state(const struct rl_node *n, char *text, size_t size)
{
	struct rl_port_state s;

	rl_device_read_port(n->dev, &s);
	return rl_node_print(text, size, "%s\n", s.up ? "5: LinkUp" : "3: Disabled");
}

static size_t make_lid(const struct rl_node *n, char *text, size_t size)
{
	struct rl_port_state s;

	rl_device_read_port(n->dev, &s);
	return rl_node_print(text, size, "0x%x\n", s.lid);
}

static size_t make_rate(const struct rl_node *n, char *text, size_t size)
{
	struct rl_port_state s;
	char rate[40];

	rl_device_read_port(n->dev, &s);
	rl_rate_format(&s.rate, rate, sizeof(rate));
	return rl_node_print(text, size, "%s\n", rate);
}

static void fill_port(struct rl_node *port, const struct rl_device *d)
{
	rl_node_add_file(port, "cap_mask", "0x00010000\n");
	rl_node_add_live(port, "lid", d, make_lid, NULL);
	rl_node_add_file(port, "lid_mask_count", "0\n");
	rl_node_add_file(port, "link_layer",
			 d->about->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet\n" :
									   "Unknown\n");
	rl_node_add_live(port, "phys_state", d, make_phys_state, NULL);
	rl_node_add_live(port, "rate", d, make_rate, NULL);
	rl_node_add_file(port, "sm_lid", "0x0\n");
	rl_node_add_file(port, "sm_sl", "0\n");
	rl_node_add_live(port, "state", d, make_state, NULL);
	rl_node_add_file(rl_node_add_dir(port, "pkeys"), "0", "0xffff\n");
	fill_gids(port, d);
	rl_counters_fill(port, d);
}

/* ---- a device ---- */

/* weft(4)'s options, with their values in this process. */
static void fill_options(struct rl_node *dir)
{
	const struct rl_options *o = rl_options();
	char rtr[WEFT_RTR_TEXT];

	weft_rtr_format(o->rtr, rtr);
	rl_node_add_file(dir, "crc", "%d\n", o->crc);
	rl_node_add_file(dir, "markers", "%d\n", o->markers);
	rl_node_add_file(dir, "extensions", "%d\n", o->extensions);
	rl_node_add_file(dir, "large_fpdus", "%d\n", o->large_fpdus);
	rl_node_add_file(dir, "mpa_revision", "%u\n", o->mpa_rev);
	rl_node_add_file(dir, "rtr", "%s\n", rtr);
	rl_node_add_file(dir, "startup_timeout_ms", "%u\n", o->startup_ms);
	rl_node_add_file(dir, "accept_timeout_ms", "%u\n", o->accept_ms);
	rl_node_add_file(dir, "close_timeout_ms", "%u\n", o->close_ms);
	rl_node_add_file(dir, "dead_peer_timeout_ms", "%u\n", o->dead_peer_ms);
	rl_node_add_file(dir, "rnr_timeout_ms", "%u\n", o->rnr_ms);
}

static void add_guid(struct rl_node *dir, const char *name, const u8 g[8])
{
	rl_node_add_file(dir, name, "%04x:%04x:%04x:%04x\n", be16(g), be16(g + 2), be16(g + 4),
			 be16(g + 6));
}

/* Absent without a value, as where a driver has no such attribute. */
static void add_word(struct rl_node *dir, const char *name, const char *word)
{
	if (*word)
		rl_node_add_file(dir, name, "%s\n", word);
}

static const char *name_of_node_type(u8 type)
{
	switch (type) {
	case RDMA_NODE_RNIC:
		return "4: RNIC";
	case RDMA_NODE_UNSPECIFIED:
		return "7: unspecified";
	default:
		return "1: CA";
	}
}

/* @above: the name of the folder that the device's is below. */
static void fill_ibdev(struct rl_node *dir, const struct rl_device *d, const char *above)
{
	const struct rl_profile *p = d->about;
	char port[8];

	rl_node_add_file(dir, "fw_ver", "%s\n", p->fw_ver);
	add_word(dir, "board_id", p->board_id);
	add_word(dir, "hca_type", p->hca_type);
	add_word(dir, "hw_rev", p->hw_rev);
	rl_node_add_file(dir, "node_desc", "%s\n", p->node_desc);
	add_guid(dir, "node_guid", d->guid);
	rl_node_add_file(dir, "node_type", "%s\n", name_of_node_type(p->node_type));
	add_guid(dir, "sys_image_guid", d->system_guid);
	fill_options(rl_node_add_dir(dir, "weft"));
	rl_node_add_link(dir, "device", "../../../%s", above);
	snprintf(port, sizeof(port), "%u", RL_PORT);
	fill_port(rl_node_add_dir(rl_node_add_dir(dir, "ports"), port), d);
}

static void fill_uverbs(struct rl_node *dir, const struct rl_device *d, dev_t rdev,
			const char *above)
{
	rl_node_add_file(dir, "abi_version", "%u\n", WEFT_ABI_VERSION);
	rl_node_add_file(dir, "dev", "%u:%u\n", major(rdev), minor(rdev));
	rl_node_add_file(dir, "ibdev", "%s\n", d->name);
	rl_node_add_link(dir, "device", "../../../%s", above);
}

/* Directories with an entry for each device. */
struct shelves {
	struct rl_node *sys, *infiniband, *verbs, *sys_char, *dev, *dev_char;
};

static void add_cdev(struct shelves *s, const char *name, dev_t rdev, const struct rl_device *d,
		     const char *class)
{
	struct rl_node *n = rl_node_add(s->dev, name, S_IFCHR | 0666);
	char number[24];

	if (n) {
		n->rdev = rdev;
		n->dev = d;
	}
	snprintf(number, sizeof(number), "%u:%u", major(rdev), minor(rdev));
	rl_node_add_link(s->sys_char, number, "../../class/%s/%s", class, name);
	rl_node_add_link(s->dev_char, number, "../infiniband/%s", name);
}

static void add_device(struct shelves *s, const struct rl_device *d)
{
	const char *above = strrchr(d->pci_folder, '/') + 1;
	struct rl_node *pci = rl_pci_fill(s->sys, d);
	dev_t rdev = rl_device_uverbs_rdev(d);
	char uverbs[20];

	snprintf(uverbs, sizeof(uverbs), "uverbs%u", d->index);
	fill_ibdev(rl_node_add_dir(rl_node_add_dir(pci, "infiniband"), d->name), d, above);
	fill_uverbs(rl_node_add_dir(rl_node_add_dir(pci, "infiniband_verbs"), uverbs), d, rdev,
		    above);
	rl_node_add_link(s->infiniband, d->name, "../../%s/infiniband/%s", d->pci_folder, d->name);
	rl_node_add_link(s->verbs, uverbs, "../../%s/infiniband_verbs/%s", d->pci_folder, uverbs);
	add_cdev(s, uverbs, rdev, d, "infiniband_verbs");
}

static void add_cm(struct shelves *s, struct rl_node *misc)
{
	struct rl_node *cm = rl_node_add_dir(misc, "rdma_cm");
	dev_t rdev = rl_device_cm_rdev();

	rl_node_add_file(cm, "abi_version", "%u\n", CM_ABI);
	rl_node_add_file(cm, "dev", "%u:%u\n", major(rdev), minor(rdev));
	add_cdev(s, "rdma_cm", rdev, NULL, "misc");
}

/* Other classes of hardware, of which these devices have none. */
static void hide_classes(struct rl_node *class)
{
	if (rl_options()->with_hardware)
		return;
	rl_node_add(class, "infiniband_cm", 0);
	rl_node_add(class, "infiniband_mad", 0);
}

void rl_tree_fill(struct rl_node *root)
{
	struct rl_node *sys = rl_node_add_real(root, "sys");
	struct rl_node *class = rl_node_add_real(sys, "class");
	struct rl_node *dev = rl_node_add_real(root, "dev");
	struct shelves s = {
		.sys = sys,
		.infiniband = add_shelf(class, "infiniband"),
		.verbs = add_shelf(class, "infiniband_verbs"),
		.sys_char = rl_node_add_real(rl_node_add_real(sys, "dev"), "char"),
		.dev = add_shelf(dev, "infiniband"),
		.dev_char = rl_node_add_real(dev, "char"),
	};
	u32 i;

	hide_classes(class);
	rl_node_add_file(s.verbs, "abi_version", "%u\n", VERBS_ABI);
	add_cm(&s, rl_node_add_real(class, "misc"));
	for (i = 0; i < rl_device_count(); i++)
		add_device(&s, rl_device_at(i));
}
