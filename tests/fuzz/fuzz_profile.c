// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Any text as a profile and as a topology of weft-run. What is taken is within this host's limits,
 * and names and PCI paths can be made of it; what is refused has a reason and a line of the text.
 */
#include <stdio.h>

#include "devices/limits.h"
#include "devices/profile.h"
#include "devices/rates.h"
#include "kernel/core/shape.h"
#include "text.h"

static bool ends(const char *s, size_t room)
{
	return memchr(s, '\0', room);
}

static void check_limits(const struct rl_profile *p)
{
	FUZZ_ASSERT(p->max_qp && p->max_qp <= RL_MAX_QP && p->max_qp_wr <= WEFT_MAX_QP_WR);
	FUZZ_ASSERT(p->max_sge && p->max_sge <= WEFT_MAX_SGE && p->max_sge_rd == 1);
	FUZZ_ASSERT(p->max_inline_data <= WEFT_MAX_INLINE && p->max_cqe <= WEFT_MAX_CQE);
	FUZZ_ASSERT(p->max_srq_wr <= WEFT_MAX_QP_WR && p->max_srq_sge <= WEFT_MAX_SGE);
	FUZZ_ASSERT(p->max_mr && p->max_mr <= RL_MAX_MR && p->max_mw <= RL_MAX_MR);
	FUZZ_ASSERT(p->max_qp_rd_atom <= RL_MAX_IRD && p->max_qp_init_rd_atom <= RL_MAX_ORD);
	FUZZ_ASSERT(p->qp_types && (!p->iwarp || p->qp_types == 1 << 2));
	FUZZ_ASSERT(p->max_mtu >= 1 && p->max_mtu <= 5 && p->active_mtu <= p->max_mtu);
	FUZZ_ASSERT(!p->active_mbps || rl_rate_is(p->active_mbps, p->active_width));
}

static void check_texts(const struct rl_profile *p)
{
	u32 i;

	FUZZ_ASSERT(ends(p->name, sizeof(p->name)) && ends(p->fw_ver, sizeof(p->fw_ver)));
	FUZZ_ASSERT(ends(p->hca_type, sizeof(p->hca_type)) && ends(p->hw_rev, sizeof(p->hw_rev)));
	FUZZ_ASSERT(ends(p->board_id, sizeof(p->board_id)));
	FUZZ_ASSERT(ends(p->node_desc, sizeof(p->node_desc)) && !strchr(p->node_desc, '\n'));
	FUZZ_ASSERT(p->nhw_counters <= RL_PROFILE_COUNTERS);
	for (i = 0; i < p->nhw_counters; i++)
		FUZZ_ASSERT(ends(p->hw_counters[i], sizeof(p->hw_counters[i])) &&
			    !strchr(p->hw_counters[i], '/'));
}

static void check_device(const struct rl_profile *p, u32 index)
{
	char name[RL_PROFILE_NAMES];
	struct rl_pci_path path;

	FUZZ_ASSERT(p->gid_classes <= RL_GID_CLASSES && p->numa_nodes <= RL_PROFILE_PLACES);
	rl_profile_pci(p, index, index / 3, &path);
	FUZZ_ASSERT(path.depth >= 1 && path.depth <= RL_PCI_DEPTH);
	FUZZ_ASSERT(path.at[path.depth - 1].slot < 32 && path.at[path.depth - 1].function < 8);
	if (rl_profile_name(p, index, "enp129s0f0np0", &path, name))
		FUZZ_ASSERT(ends(name, sizeof(name)) && !strchr(name, '/'));
}

static void check_profile(const struct rl_profile *p)
{
	check_limits(p);
	check_texts(p);
	check_device(p, 0);
	check_device(p, 63);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = malloc(size ? size : 1);
	struct rl_profile_error e = { 0 };
	struct rl_profile p;
	struct rl_rails rails;
	u32 i;

	if (size)
		memcpy(text, data, size);
	rl_profile_init(&p);
	if (rl_profile_parse(&p, text, size, &e))
		check_profile(&p);
	else
		check_error(&e, text, size);
	rl_profile_init(&p);
	if (rl_rails_parse(&p, text, size, &rails, &e)) {
		FUZZ_ASSERT(rails.n && rails.n <= RL_RAILS);
		for (i = 0; i < rails.n; i++) {
			check_profile(rails.at[i].about);
			FUZZ_ASSERT(rails.at[i].addresses <= RL_RAIL_ADDRESSES);
			FUZZ_ASSERT(rails.at[i].netdev[0] && ends(rails.at[i].netdev, IFNAMSIZ));
		}
		rl_rails_free(&rails);
	} else {
		check_error(&e, text, size);
	}
	free(text);
	return 0;
}
