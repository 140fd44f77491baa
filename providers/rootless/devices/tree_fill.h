/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The contents of the tree. */
#ifndef RL_TREE_FILL_H
#define RL_TREE_FILL_H

#include "tree.h"

void rl_tree_fill(struct rl_node *root);

/* ---- devices/counters.c ---- */

/* Below a port: counters, and hw_counters. */
void rl_counters_fill(struct rl_node *port, const struct rl_device *d);

/* ---- devices/pci.c ---- */

/* The folder of @d's function, with its files unless the kernel has them. */
struct rl_node *rl_pci_fill(struct rl_node *sys, const struct rl_device *d);

#endif
