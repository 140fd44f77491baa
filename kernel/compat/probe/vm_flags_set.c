// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.3: a vma's flags are written by functions only. */
#include <linux/mm.h>

void weft_probe(struct vm_area_struct *vma);

void weft_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTEXPAND);
}
