// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* weft's own profile, what a profile makes of one device, and profiles' files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include "kernel/core/shape.h"
#include "limits.h"
#include "process/raw.h"
#include "profile.h"

/* ---- files ---- */

/* Raw: the library's hooks must not see it. */
static ssize_t profile_read_fd(long fd, char *buf, size_t size)
{
	size_t len = 0;
	long n = 0;

	while (len < size && (n = rl_raw(SYS_read, fd, buf + len, size - len)) > 0)
		len += (size_t)n;
	return n < 0 ? n : (ssize_t)len;
}

static bool is_regular(long fd)
{
	struct stat st;

	return !rl_raw(SYS_fstat, fd, &st) && S_ISREG(st.st_mode);
}

/*
 * Without waiting for a FIFO's writer. What can be read once, such as a pipe, is empty for the next
 * process that reads it.
 */
static ssize_t profile_read_path(const char *path, char *text, struct rl_profile_error *e)
{
	long fd = rl_raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		n = fd;
	else if (is_regular(fd))
		n = profile_read_fd(fd, text, RL_PROFILE_MAX_FILE + 1);
	else
		n = -ESPIPE;
	if (fd >= 0)
		rl_raw(SYS_close, fd);
	snprintf(e->why, sizeof(e->why), "%s",
		 n == -ESPIPE ? "it must be a regular file, which can be read again" :
		 n < 0 ? strerror((int)-n) : "it is longer than 65536 octets");
	return n;
}

char *rl_profile_read(const char *path, size_t *len, struct rl_profile_error *e)
{
	char *text = malloc(RL_PROFILE_MAX_FILE + 1);
	ssize_t n;

	*e = (struct rl_profile_error){ .why = "no memory" };
	n = text ? profile_read_path(path, text, e) : -ENOMEM;
	if (n >= 0 && n <= RL_PROFILE_MAX_FILE) {
		*len = (size_t)n;
		return text;
	}
	free(text);
	return NULL;
}

/* ---- of one device ---- */

static const struct rl_profile weft_profile = {
	.name = "weft_%n",
	.node_type = RDMA_NODE_IB_CA,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
	.vendor_id = WEFT_VENDOR_ID,
	.hca_type = "weft", .board_id = "weft", .hw_rev = "0", .node_desc = "weft",
	.gid_order = { RL_GIDS_LINK_LOCAL, RL_GIDS_IPV4, RL_GIDS_IPV6 },
	.gid_classes = 3,
	.gid_types = RL_GID_V1 | RL_GID_V2,
	.max_mtu = 5,
	.max_msg_sz = 1u << 31,
	.qp_types = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD,
	.device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
			    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
			    IBV_DEVICE_PORT_ACTIVE_EVENT,
	.atomic_cap = IBV_ATOMIC_GLOB,
	.immediate = true, .odp = true,
	.max_mr_size = UINT64_MAX, .page_size_cap = 4096,
	.max_qp = RL_MAX_QP, .max_qp_wr = WEFT_MAX_QP_WR,
	.max_sge = WEFT_MAX_SGE, .max_sge_rd = 1, .max_inline_data = WEFT_MAX_INLINE,
	.max_cq = RL_MAX_CQ, .max_cqe = WEFT_MAX_CQE,
	.max_mr = RL_MAX_MR, .max_mw = RL_MAX_MR, .max_pd = RL_MAX_PD,
	.max_srq = RL_MAX_SRQ, .max_srq_wr = WEFT_MAX_QP_WR, .max_srq_sge = WEFT_MAX_SGE,
	.max_ah = INT32_MAX, .max_mcast_grp = RL_MAX_QP,
	.max_mcast_qp_attach = RL_GROUP_MEMBERS, .max_total_mcast_qp_attach = RL_MAX_QP,
	.max_qp_rd_atom = RL_MAX_IRD, .max_res_rd_atom = RL_MAX_QP * RL_MAX_IRD,
	.max_qp_init_rd_atom = RL_MAX_ORD,
	.max_pkeys = 1,
	/* Unassigned. Ethernet controller. */
	.pci_vendor = 0x7766, .pci_device = 0x0001, .pci_subsystem_vendor = 0x7766,
	.pci_subsystem_device = 0x0001, .pci_class = 0x020000,
	.pci_driver = "weft", .pci_speed = "16.0", .pci_width = 16,
	.port_counters = true, .own_counters = true,
};

void rl_profile_init(struct rl_profile *p)
{
	*p = weft_profile;
}

void rl_profile_set_iwarp(struct rl_profile *p)
{
	p->iwarp = true;
	p->node_type = RDMA_NODE_RNIC;
	p->qp_types = 1 << IBV_QPT_RC;
	p->max_ah = p->max_mcast_grp = 0;
	p->max_mcast_qp_attach = p->max_total_mcast_qp_attach = 0;
}

/* weft's own: a domain that no host has. */
void rl_profile_pci(const struct rl_profile *p, u32 index, u32 turn, struct rl_pci_path *path)
{
	struct rl_pci_function *last;

	if (!p->pci_paths) {
		*path = (struct rl_pci_path){
			.depth = 2,
			.at = { { 0x7766, 0, (u8)(index / 8 % 32), (u8)(index % 8) },
				{ 0x7766, (u8)(index + 1), 0, 0 } },
		};
		return;
	}
	*path = p->pci[index % p->pci_paths];
	last = &path->at[path->depth - 1];
	turn += last->function + last->slot * 8u;
	last->function = (u8)(turn % 8);
	last->slot = (u8)(turn / 8 % 32);
}

static int name_piece(char what, u32 index, const char *netdev, const struct rl_pci_path *pci,
		      char *to, size_t room)
{
	const struct rl_pci_function *f = &pci->at[pci->depth - 1];

	if (what == 'd')
		return snprintf(to, room, "%u", index);
	if (what == 'n')
		return snprintf(to, room, "%s", netdev);
	return snprintf(to, room, "p%us%uf%u", f->bus, f->slot, f->function);
}

bool rl_profile_name(const struct rl_profile *p, u32 index, const char *netdev,
		     const struct rl_pci_path *pci, char name[RL_PROFILE_NAMES])
{
	size_t at = 0;
	const char *s;

	for (s = p->name; *s && at < RL_PROFILE_NAMES; s++) {
		if (*s == '%')
			at += (size_t)name_piece(*++s, index, netdev, pci, name + at,
						 RL_PROFILE_NAMES - at);
		else
			name[at++] = *s;
	}
	if (at >= RL_PROFILE_NAMES)
		return false;
	name[at] = '\0';
	return true;
}
