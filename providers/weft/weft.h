/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's objects. main.c: devices and contexts; verbs.c: PD, MR and queries; domain.c:
 * parent and thread domains; dm.c, dm_mem.c: device memory; cq.c; cq_kick.c: kicking an empty CQ;
 * cq_poll.c: polling an extended CQ; srq.c; qp.c: life of a QP; ah.c: address handles, multicast;
 * post.c: posting by the plain verbs; wr.c: posting by ibv_wr_*; wqe.c, cqe.c, ring.c: rings and
 * entries; judged.c, judged_ops.c: reports to a judge.
 *
 * Locks, outer to inner: ctx->qp_mutex; sq_lock; rq_lock; cq->lock. srq->lock and dm_mem.c's
 * memories_lock are taken alone.
 */
#ifndef WEFT_PROVIDER_WEFT_H
#define WEFT_PROVIDER_WEFT_H

#include <pthread.h>
#include <stdatomic.h>

#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "direct.h"
#include "lock.h"
#include "wqe.h"

/* What this provider supports; the kernel's answer has what both support. */
#define WEFT_FEATURES (WEFT_FEATURE_IMM | WEFT_FEATURE_ATOMICS | WEFT_FEATURE_MW | \
		       WEFT_FEATURE_TIMESTAMP | WEFT_FEATURE_RESIZE | WEFT_FEATURE_POLL_KICK | \
		       WEFT_FEATURE_LINGER | WEFT_FEATURE_NULL_MR | WEFT_FEATURE_SRQ_KICK | \
		       WEFT_FEATURE_ROCE_TYPES)

struct weft_device {
	struct verbs_device vdev;
	uint32_t driver_id;		/* by which the device was matched */
};

struct weft_context {
	struct verbs_context vctx;
	uint64_t features;		/* WEFT_FEATURE_ in force */
	uint32_t max_inline;
	bool posts_may_fail;		/* failing.c */
	bool has_judged_requests;	/* judged_ops.c */
	struct weft_run_judging judging;
	/*
	 * Held while the kernel destroys a QP and its completions are removed from the CQs, and
	 * while a QP is created: a new QP with the same number must not lose completions.
	 */
	pthread_mutex_t qp_mutex;
};

struct weft_td {
	struct ibv_td td;
	atomic_uint users;		/* parent domains */
};

/* A protection domain or a parent domain. */
struct weft_pd {
	struct ibv_pd pd;
	struct weft_pd *of;		/* a parent domain's protection domain; else NULL */
	struct weft_td *td;		/* its thread domain; NULL: any thread may use it */
	atomic_uint users;		/* parent domains of this one */
};

struct weft_dm_mem;

struct weft_mr {
	struct verbs_mr vmr;
	struct weft_dm_mem *dm;		/* whose region it is; NULL: of the program's memory */
};

struct weft_cq {
	struct verbs_cq vcq;
	struct weft_lock lock;
	struct weft_uring ring;		/* lock */
	bool posted;			/* atomic; to a QP of this CQ, without a doorbell */
	struct weft_cqe cqe;		/* lock; from start_poll to end_poll: the current one */
};

struct weft_srq {
	struct verbs_srq vsrq;
	struct weft_lock lock;
	struct weft_rq rq;		/* lock */
};

struct weft_qp {
	struct verbs_qp vqp;

	struct weft_lock sq_lock;
	struct weft_sq sq;		/* sq_lock */
	/* Between wr_start and wr_complete, under sq_lock: */
	struct weft_sq_head wr_head;	/* the request being built */
	struct weft_wr_atomic wr_atomic;
	uint32_t wr_at;			/* where its entry begins */
	uint32_t wr_first;		/* what wr_abort restores */
	int wr_err;			/* the first error since wr_start */

	struct weft_lock rq_lock;
	struct weft_rq rq;		/* rq_lock; no ring when an SRQ serves */

	bool reset;			/* both locks; nothing may be posted until modify_qp */
};

static inline struct weft_device *to_weft_dev(struct ibv_device *dev)
{
	return container_of(dev, struct weft_device, vdev.device);
}

static inline struct weft_context *to_weft_ctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct weft_context, vctx.context);
}

static inline struct weft_pd *to_weft_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct weft_pd, pd);
}

static inline struct weft_mr *to_weft_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct weft_mr, vmr.ibv_mr);
}

static inline struct weft_cq *to_weft_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct weft_cq, vcq.cq);
}

static inline struct weft_srq *to_weft_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct weft_srq, vsrq.srq);
}

static inline struct weft_qp *to_weft_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct weft_qp, vqp.qp);
}

/* main.c */
void weft_free_context(struct ibv_context *ibctx);

/* verbs.c */
int weft_query_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t attr_size);
int weft_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
int weft_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
struct ibv_pd *weft_alloc_pd(struct ibv_context *ctx);
int weft_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *weft_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			   int access);
struct ibv_mr *weft_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *weft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access);
int weft_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access);
struct ibv_mw *weft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int weft_dealloc_mw(struct ibv_mw *mw);
int weft_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *how);
int weft_dereg_mr(struct verbs_mr *vmr);
int weft_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sgl, uint32_t num_sge);

/* By the handle of an object of another context that shares this one's file. */
struct ibv_pd *weft_import_pd(struct ibv_context *ctx, uint32_t handle);
void weft_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *weft_import_mr(struct ibv_pd *pd, uint32_t handle);
void weft_unimport_mr(struct ibv_mr *mr);

/* dm.c */
#define WEFT_MAX_DM (4 << 20)
struct ibv_dm *weft_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int weft_free_dm(struct ibv_dm *dm);
struct ibv_dm *weft_import_dm(struct ibv_context *ctx, uint32_t handle);
void weft_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *weft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
			      unsigned int access);

/* domain.c */
struct ibv_td *weft_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int weft_dealloc_td(struct ibv_td *td);
struct ibv_pd *weft_alloc_parent_domain(struct ibv_context *ctx,
					struct ibv_parent_domain_init_attr *attr);
/* Of a parent domain: 0, or EBUSY. */
int weft_dealloc_parent_domain(struct weft_pd *pd);
/* Has the program promised that one thread at a time uses the objects of @pd? */
bool weft_pd_is_one_threads(struct ibv_pd *pd);

/* cq.c */
struct ibv_cq *weft_create_cq(struct ibv_context *ctx, int entries,
			      struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *weft_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int weft_resize_cq(struct ibv_cq *ibcq, int entries);
int weft_destroy_cq(struct ibv_cq *ibcq);
int weft_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
int weft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);

/* Drops the completions of a QP that was destroyed or reset. */
void weft_cq_forget_qp(struct weft_cq *cq, uint32_t qp_num);

/*
 * cq_kick.c. The CQ was empty: does the kernel, or another host, want a kick? Then the caller kicks
 * it, without the lock, and polls again.
 */
bool weft_cq_wants_kick(struct weft_cq *cq);
void weft_cq_kick(struct weft_cq *cq);

/* cq_poll.c: sets the functions that poll an extended CQ and read the fields in @wc_flags. */
void weft_cq_poll_init(struct weft_cq *cq, uint64_t wc_flags);

/* srq.c */
struct ibv_srq *weft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int weft_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int weft_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int weft_destroy_srq(struct ibv_srq *ibsrq);
int weft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* Maps the ring of an RQ or SRQ and checks that it can be one; an errno value. */
int weft_rq_set_up(struct weft_rq *rq, int fd, const struct weft_ring_map *map, uint32_t max_sge);

/* qp.c */
struct ibv_qp *weft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *weft_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int weft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int weft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int weft_destroy_qp(struct ibv_qp *ibqp);

/* ah.c */
struct ibv_ah *weft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int weft_destroy_ah(struct ibv_ah *ah);
int weft_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);
int weft_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);

/* post.c */
int weft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int weft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* The doorbell without an ioctl (direct.h): 0, or an errno value; ENOTTY: make the ioctl. */
int weft_kick(struct ibv_context *ctx, uint16_t object, uint32_t handle);
/* The doorbell: wakes a sleeping kernel after a ring of @qp was filled. */
int weft_kick_qp(struct weft_qp *qp);

/* Publishes the entries of the send ring. True if the kernel must be kicked. sq_lock. */
static inline bool weft_sq_publish(struct weft_qp *qp)
{
	struct weft_cq *cq = to_weft_cq(qp->vqp.qp.send_cq);
	bool kick = weft_uring_publish(&qp->sq.ring);

	if (!kick && !__atomic_load_n(&cq->posted, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->posted, true, __ATOMIC_RELAXED);
	return kick;
}

/* wr.c: sets the ibv_wr_* functions; EOPNOTSUPP if @ops has an unsupported one. */
int weft_wr_init(struct weft_qp *qp, uint64_t ops);

/* ---- failing.c: posts that fail on demand ---- */

bool weft_posts_may_fail(int cmd_fd);
int weft_failing_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int weft_failing_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int weft_failing_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr);
/*
 * Asks about what the builders have gathered since ibv_wr_start(). An errno value: all of it is to
 * fail. 0: publish it; a request that is to complete in error has been made so. WEFT_RUN_AFTER and
 * more: publish it, then weft_say_posted(). sq_lock.
 */
int weft_ask_about_batch(struct weft_qp *qp);
/* @qp's request is published that was answered by @answer. No lock. */
void weft_say_posted(const struct weft_qp *qp, int answer);

/* ---- judged.c, judged_ops.c: what the program does is reported to weft-run's judge ---- */

/* judged_ops.c: a new context's functions report, if it is judged. */
void weft_judge_context(struct weft_context *ctx);
/* The handle of an object that was destroyed, and whose memory is kept for a while. */
#define WEFT_GONE	UINT32_MAX
/* Frees what the program knows by a pointer; if it is judged, later. */
void weft_free_object(const struct ibv_context *ctx, void *object);
/* The program uses an object that it has destroyed. Returns EINVAL. */
int weft_judge_gone(const struct ibv_context *ctx, uint32_t kind, const void *object);
/*
 * Reports the entries from @at on, before they are published. ENOMEM: the queue counts as full, and
 * ends with the entry before; *@n were reported. The queue's lock.
 */
int weft_judge_sends(struct weft_qp *qp, uint32_t at, const void *caller, uint32_t *n);
/* Of a batch: ENOMEM if there is no room for all of it. */
int weft_judge_room(const struct weft_qp *qp, uint32_t at);
void weft_judge_receives(const struct ibv_qp *qp, const struct ibv_srq *srq,
			 const struct weft_rq *rq, uint32_t at, const void *caller);
/* @wc was polled: reports that, and overwrites what an error leaves undefined. CQ's lock. */
void weft_judge_completion(const struct ibv_cq *cq, struct ibv_wc *wc);
/* The program reads @field of the completion @wc. CQ's lock. */
void weft_judge_read(const struct ibv_cq *cq, const struct ibv_wc *wc, const char *field);

int weft_judged_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int weft_judged_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int weft_judged_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr);
int weft_judged_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);

/* One function for both: without a judge it is the same as before. */
#define WEFT_JUDGE_INLINE static inline __attribute__((always_inline))
#define WEFT_CALLER __builtin_return_address(0)

#endif
