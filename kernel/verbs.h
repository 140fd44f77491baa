/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared by the files that implement verbs: the operations that device.c registers with ib_core,
 * and their helpers. ib_core's rules hold for every operation: an object is created and destroyed
 * by one call at a time, and destroy returns once everything is freed.
 */
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

#include "compat/compat.h"
#include "weft.h"

#define WEFT_PORT		1

/* The features of struct weft_alloc_ucontext_req that this driver supports. */
#define WEFT_FEATURES		((u64)(WEFT_FEATURE_LINGER | WEFT_FEATURE_RESIZE | \
				       WEFT_FEATURE_MW | WEFT_FEATURE_TIMESTAMP | \
				       WEFT_FEATURE_NULL_MR | WEFT_FEATURE_SRQ_KICK) | \
				 WEFT_EXT_FEATURES)

/* Fast registration: blocks (pages) a region. */
#define WEFT_MAX_FAST_BLOCKS	2048

/* ---- device.c ---- */

/* Creates an unregistered device on @nd, or returns an ERR_PTR. */
struct weft_device *weft_device_create(struct net_device *nd);
/* The port's state or address changed (notifier, rtnl held). */
void weft_port_changed(struct weft_device *dev, struct net_device *nd);
void weft_port_readdressed(struct weft_device *dev, struct net_device *nd);

/* The netdev of @dev is going away: ends all connections, and allows no new ones. */
void weft_device_netdev_gone(struct weft_device *dev);

/* Counts a new object of a limited kind: 0, or -ENOMEM at the limit. */
static inline int weft_account(atomic_t *count, int max)
{
	if (atomic_inc_return(count) <= max)
		return 0;
	atomic_dec(count);
	return -ENOMEM;
}

/* ---- options.c ---- */

extern const struct attribute_group weft_options;

/* ---- restrack.c ---- */

int weft_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int weft_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int weft_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int weft_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);

/* ---- ucontext.c ---- */

extern const struct uapi_definition weft_uapi_defs[];

int weft_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
int weft_query_ucontext(struct ib_ucontext *ibuc, struct uverbs_attr_bundle *attrs);
void weft_dealloc_ucontext(struct ib_ucontext *ibuc);
void weft_disassociate_ucontext(struct ib_ucontext *ibuc);
int weft_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void weft_mmap_free(struct rdma_user_mmap_entry *entry);

/* 0, or -EINVAL if our part of a command's input has fields that we do not know. */
int weft_udata_check_unknown(struct ib_udata *udata);

/* Is @feature in force for the owner of @udata? Not for NULL. */
bool weft_udata_has(struct ib_udata *udata, u64 feature);

/* A zeroed ring of @slots: shared with the owner of @udata, private if that is NULL. */
struct weft_ring_mem *weft_ring_mem_alloc(struct ib_udata *udata, u32 slots);
/* Gives it back; a mapping that the user still has keeps its pages. NULL is fine. */
void weft_ring_mem_free(struct weft_ring_mem *m);
void weft_ring_mem_describe(const struct weft_ring_mem *m, u32 slots, u32 stride,
			    struct weft_ring_map *map);

/* ---- cq.c ---- */

int weft_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs);
int weft_create_cq_udata(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata);
int weft_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int weft_resize_cq_int(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int weft_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int weft_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int weft_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/*
 * From now on a poll that finds @cq empty kicks @qp: false if it already does that for
 * another, or if its program does not poll.
 */
bool weft_cq_linger(struct weft_cq *cq, struct weft_qp *qp);
void weft_cq_linger_over(struct weft_cq *cq, struct weft_qp *qp);
/* The QP to be kicked now, held, or NULL. */
struct weft_qp *weft_cq_lingerer(struct weft_cq *cq);

/* Publishes *@cqe of @qp and wakes the consumer. Any context. */
void weft_cq_complete(struct weft_cq *cq, struct weft_qp *qp, const struct weft_cqe *cqe);
/* Removes the entries of a QP that is no more; kernel consumers' CQs. */
void weft_cq_purge(struct weft_cq *cq, struct weft_qp *qp);

/* A CQ whose ring, user and cpu are set, of @entries. */
void weft_cq_init(struct weft_cq *cq, u32 entries);
/* Swaps *@ring and the CQ's ring. 0, or as weft_ringq_move(). Sleeps. */
int weft_cq_replace_ring(struct weft_cq *cq, struct weft_ring_mem **ring, u32 entries);

/* ---- qp.c ---- */

int weft_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int weft_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int weft_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int weft_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
struct ib_qp *weft_iw_get_qp(struct ib_device *ibdev, int qpn);
void weft_iw_add_ref(struct ib_qp *ibqp);
void weft_iw_rem_ref(struct ib_qp *ibqp);

/* Iterates over the QPs of @dev: the first whose number exceeds *@qpn, held; NULL at the end. */
struct weft_qp *weft_qp_after(struct weft_device *dev, unsigned long *qpn);

/* ---- qp_events.c ---- */

void weft_qp_events_init(struct weft_qp *qp);
/* The core has moved @qp to ERROR: its handler is called soon, in process context. Any context. */
void weft_qp_raise_flushed(struct weft_qp *qp);
/* Waits for the calls. Nothing raises events of @qp any more. */
void weft_qp_events_exit(struct weft_qp *qp);

/* ---- srq.c ---- */

int weft_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int weft_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata);
int weft_resize_user_srq(struct ib_srq *ibsrq, u32 max_wr, struct uverbs_attr_bundle *attrs);
int weft_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int weft_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

/* For core/host.h, under the QP's connection's lock. */
int weft_srq_pop(struct weft_qp *qp, bool wait, struct weft_recv *recv);
void weft_srq_leave(struct weft_qp *qp);
/* The doorbell of @srq: wakes the first waiting QP. Any context. */
void weft_srq_kick(struct weft_srq *srq);

/* ---- post.c ---- */

int weft_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad);
int weft_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);

int weft_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

/* ---- mr.c ---- */

struct ib_mr *weft_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 len, u64 iova, int access,
			       struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *weft_reg_user_mr_no_dmah(struct ib_pd *ibpd, u64 start, u64 len, u64 iova,
				       int access, struct ib_udata *udata);
struct ib_mr *weft_reg_dmabuf_mr(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
				 int access, struct ib_dmah *dmah,
				 struct uverbs_attr_bundle *attrs);
struct ib_mr *weft_reg_dmabuf_mr_no_dmah(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
					 int access, struct uverbs_attr_bundle *attrs);
struct ib_mr *weft_reg_dmabuf_mr_udata(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
				       int access, struct ib_udata *udata);
struct ib_mr *weft_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 len, u64 iova,
				 int access, struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *weft_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *weft_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_sg);
int weft_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int n, unsigned int *offset);
int weft_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

int weft_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int weft_dealloc_mw(struct ib_mw *ibmw);
/* The region that @stag names, held, or NULL. Any context. */
struct weft_mr *weft_mr_find(struct weft_device *dev, u32 stag);
void weft_mr_drop(struct weft_mr *mr);

#endif
