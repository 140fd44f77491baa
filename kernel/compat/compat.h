/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The newest kernel's interfaces, as the driver uses them, for the older ones.
 * What this kernel has is found out by compiling compat/probe/NAME.c (see
 * probe.sh): the history of each interface stands there.
 */
#ifndef WEFT_COMPAT_H
#define WEFT_COMPAT_H

#include <linux/mm.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "compat/have.h"

#ifdef WEFT_HAVE_RDMA_ITER
#include <rdma/iter.h>
#endif

#ifndef WEFT_HAVE_IB_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access) ib_umem_get(device, addr, size, access)
#endif

#ifndef WEFT_HAVE_VIRT_DMA_TO_PTR
static inline void *ib_virt_dma_to_ptr(u64 addr)
{
	return (void *)(uintptr_t)addr;
}
#endif

#ifndef WEFT_HAVE_NAME_ASSIGNED_BY_USER
static inline void ib_mark_name_assigned_by_user(struct ib_device *dev)
{
}
#endif

#ifndef WEFT_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef WEFT_HAVE_DMA_BUF_INVALIDATE
#define invalidate_mappings move_notify
#endif

/* Before, dma_buf_vmap() asked for no lock. */
#ifndef WEFT_HAVE_DMA_BUF_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked dma_buf_vmap
#define dma_buf_vunmap_unlocked dma_buf_vunmap
#endif

/*
 * The operations whose signature changed. weft_create_cq(), weft_reg_user_mr()
 * and weft_reg_dmabuf_mr() have the newest one; the tables name these.
 */
#ifdef WEFT_HAVE_CREATE_CQ_ATTRS
#define WEFT_OP_CREATE_CQ weft_create_cq
#else
#define WEFT_OP_CREATE_CQ weft_create_cq_udata
#endif

#ifdef WEFT_HAVE_REG_USER_MR_DMAH
#define WEFT_OP_REG_USER_MR weft_reg_user_mr
#else
struct ib_dmah;
#define WEFT_OP_REG_USER_MR weft_reg_user_mr_no_dmah
#endif

#if defined(WEFT_HAVE_REG_DMABUF_DMAH)
#define WEFT_OP_REG_DMABUF_MR weft_reg_dmabuf_mr
#elif defined(WEFT_HAVE_REG_DMABUF_ATTRS)
#define WEFT_OP_REG_DMABUF_MR weft_reg_dmabuf_mr_no_dmah
#else
#define WEFT_OP_REG_DMABUF_MR weft_reg_dmabuf_mr_udata
#endif

#ifdef WEFT_HAVE_RESIZE_USER_CQ
#define WEFT_OP_RESIZE_CQ .resize_user_cq = weft_resize_cq
#else
#define WEFT_OP_RESIZE_CQ .resize_cq = weft_resize_cq_int
#endif

/* Without it weft_fill_res_srq() is not called. */
#ifdef WEFT_HAVE_FILL_RES_SRQ
#define WEFT_OP_FILL_RES_SRQ .fill_res_srq_entry = weft_fill_res_srq,
#else
#define WEFT_OP_FILL_RES_SRQ
#endif

/* Does the driver have to tell of its port's state? */
#ifdef WEFT_HAVE_CORE_PORT_EVENTS
#define weft_driver_sends_port_events false
#else
#define weft_driver_sends_port_events true
#endif

/* Can a netdev without a MAC carry a device, under a made-up GID? */
#ifdef WEFT_HAVE_GID_NETDEV
#define weft_gid_may_be_made_up true
#else
#define weft_gid_may_be_made_up false
#endif

#endif
