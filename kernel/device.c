// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ib_device: its attributes, port, GID, counters, protection domains. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/module.h>
#include <net/addrconf.h>

#include "core/alive.h"
#include "verbs.h"

#define TERM_NTH(e)	(WEFT_E_##e - WEFT_E_MPA_CRC + 1)
#define TERM(e, n) \
			[WEFT_CNT_TERM_IN + TERM_NTH(e)] = { .name = "term_in_" n }, \
			[WEFT_CNT_TERM_OUT + TERM_NTH(e)] = { .name = "term_out_" n }

/*
 * `rdma statistic` puts all counters into one page with some 360 octets left; a counter costs 24
 * and its name.
 */
static const struct rdma_stat_desc weft_counter_names[] = {
	[WEFT_CNT_RX_FPDUS]		= { .name = "rx_fpdus" },
	[WEFT_CNT_RX_DROPPED]		= { .name = "rx_dropped_bytes" },
	[WEFT_CNT_TX_FPDUS]		= { .name = "tx_fpdus" },
	[WEFT_CNT_TX_CALLS]		= { .name = "tx_calls" },
	[WEFT_CNT_TX_SEGS_ALIGNED]	= { .name = "tx_segs_aligned" },
	[WEFT_CNT_TX_SEGS]		= { .name = "tx_segs" },
	[WEFT_CNT_REQUESTS]		= { .name = "requests" },
	[WEFT_CNT_DOORBELLS]		= { .name = "doorbells" },
	[WEFT_CNT_CRC_ERRORS]		= { .name = "crc_errors" },
	[WEFT_CNT_RX_NO_MEMORY]		= { .name = "rx_no_memory" },
	[WEFT_CNT_EVICTED]		= { .name = "evicted" },
	[WEFT_CNT_REGION_WAITS]		= { .name = "region_waits" },
	[WEFT_CNT_TERM_IN]		= { .name = "term_in_other" },
	[WEFT_CNT_TERM_OUT]		= { .name = "term_out_other" },
	TERM(MPA_CRC, "mpa_crc"),
	TERM(MPA_MARKER, "mpa_marker"),
	TERM(MPA_SETUP, "mpa_setup"),
	TERM(MPA_IRD, "mpa_ird"),
	TERM(MPA_RTR, "mpa_rtr"),
	TERM(DDP_LOCAL, "ddp_local"),
	TERM(DDP_STAG, "ddp_stag"),
	TERM(DDP_BOUNDS, "ddp_bounds"),
	TERM(DDP_ASSOC, "ddp_assoc"),
	TERM(DDP_WRAP, "ddp_wrap"),
	TERM(DDP_TVERSION, "ddp_tagged_version"),
	TERM(DDP_QN, "ddp_qn"),
	TERM(DDP_NO_BUFFER, "ddp_no_buffer"),
	TERM(DDP_MSN, "ddp_msn"),
	TERM(DDP_MO, "ddp_mo"),
	TERM(DDP_TOO_LONG, "ddp_too_long"),
	TERM(DDP_UVERSION, "ddp_untagged_version"),
	TERM(RDMAP_LOCAL, "rdmap_local"),
	TERM(RDMAP_STAG, "rdmap_stag"),
	TERM(RDMAP_BOUNDS, "rdmap_bounds"),
	TERM(RDMAP_ACCESS, "rdmap_access"),
	TERM(RDMAP_ASSOC, "rdmap_assoc"),
	TERM(RDMAP_WRAP, "rdmap_wrap"),
	TERM(RDMAP_PROT_CANT_INV, "rdmap_protected_invalidate"),
	TERM(RDMAP_VERSION, "rdmap_version"),
	TERM(RDMAP_OPCODE, "rdmap_opcode"),
	TERM(RDMAP_STREAM, "rdmap_stream"),
	TERM(RDMAP_GLOBAL, "rdmap_global"),
	TERM(RDMAP_CANT_INV, "rdmap_cannot_invalidate"),
	TERM(RDMAP_UNSPECIFIED, "rdmap_unspecified"),
};
static_assert(ARRAY_SIZE(weft_counter_names) == WEFT_CNT_NR);

/* ---- counters ---- */

static struct rdma_hw_stats *weft_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(weft_counter_names, WEFT_CNT_NR,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static u64 sum_of(const struct weft_device *dev, u32 i)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counts, cpu)->n[i]);
	return sum;
}

static int weft_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			     int index)
{
	struct weft_device *dev = to_weft_dev(ibdev);
	u32 i;

	if (port != WEFT_PORT || !stats)
		return -EINVAL;
	for (i = 0; i < WEFT_CNT_CONN_NR; i++)
		stats->value[i] = sum_of(dev, i);
	for (i = WEFT_CNT_TERM_IN; i < WEFT_CNT_NR; i++)
		stats->value[i] = atomic64_read(&dev->terms[i - WEFT_CNT_TERM_IN]);
	return WEFT_CNT_NR;
}

/* ---- device and port ---- */

static int weft_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibdev);
	int rv = weft_udata_check_unknown(udata);

	if (rv)
		return rv;
	memset(attr, 0, sizeof(*attr));
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_SRQ_RESIZE |
				 IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
	/* ALLOW_USER_UNREG: without it `rdma link del` is refused. */
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->atomic_cap = READ_ONCE(dev->extensions) ? IB_ATOMIC_GLOB : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = attr->atomic_cap;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_qp = WEFT_MAX_QP;
	attr->max_qp_wr = WEFT_MAX_QP_WR;
	attr->max_send_sge = WEFT_MAX_SGE;
	attr->max_recv_sge = WEFT_MAX_SGE;
	attr->max_sge_rd = 1;
	attr->max_cq = WEFT_MAX_CQ;
	attr->max_cqe = WEFT_MAX_CQE;
	attr->max_mr = WEFT_MAX_MR;
	attr->max_mw = WEFT_MAX_MR;
	attr->max_srq = WEFT_MAX_SRQ;
	attr->max_srq_wr = WEFT_MAX_QP_WR;
	attr->max_srq_sge = WEFT_MAX_SGE;
	attr->max_pd = WEFT_MAX_PD;
	attr->max_pkeys = 1;
	attr->max_qp_rd_atom = WEFT_MAX_IRD;
	attr->max_qp_init_rd_atom = WEFT_MAX_ORD;
	attr->max_res_rd_atom = WEFT_MAX_QP * WEFT_MAX_IRD;
	attr->max_fast_reg_page_list_len = WEFT_MAX_FAST_BLOCKS;
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = WEFT_CLOCK_KHZ;
	attr->vendor_id = WEFT_VENDOR_ID;
	attr->vendor_part_id = dev->vendor_part_id;
	attr->sys_image_guid = ibdev->node_guid;
	return 0;
}

/* The netdev's speed; many virtual ones do not know theirs. */
static void port_speed(struct weft_device *dev, struct net_device *nd, struct ib_port_attr *attr)
{
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_4X;
	if (nd->ethtool_ops && nd->ethtool_ops->get_link_ksettings)
		ib_get_eth_speed(&dev->ibdev, WEFT_PORT, &attr->active_speed,
				 &attr->active_width);
}

static bool netdev_active(const struct net_device *nd)
{
	return netif_running(nd) && netif_carrier_ok(nd);
}

static int weft_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct weft_device *dev = to_weft_dev(ibdev);
	struct net_device *nd = weft_dev_netdev(dev);

	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = 1U << 31;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_mtu = IB_MTU_4096;
	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	if (!nd)
		return 0;
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(nd->mtu));
	if (netdev_active(nd)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	}
	port_speed(dev, nd, attr);
	dev_put(nd);
	return 0;
}

static int weft_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *imm)
{
	imm->gid_tbl_len = 1;
	imm->pkey_tbl_len = 1;
	imm->core_cap_flags = RDMA_CORE_PORT_IWARP;
	imm->max_mad_size = 0;
	return 0;
}

static int weft_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	if (index)
		return -EINVAL;
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, to_weft_dev(ibdev)->mac, ETH_ALEN);
	return 0;
}

/* iWARP has no partitions, but rdma_cm looks for one when it resolves 127.0.0.1. */
static int weft_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static void port_event(struct weft_device *dev, enum ib_event_type type)
{
	struct ib_event ev = {
		.device = &dev->ibdev,
		.element.port_num = WEFT_PORT,
		.event = type,
	};

	ib_dispatch_event(&ev);
}

void weft_port_changed(struct weft_device *dev, struct net_device *nd)
{
	bool active = netdev_active(nd);

	if (!weft_driver_sends_port_events || active == dev->port_active)
		return;
	dev->port_active = active;
	port_event(dev, active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

void weft_port_readdressed(struct weft_device *dev, struct net_device *nd)
{
	if (nd->addr_len != ETH_ALEN || is_zero_ether_addr(nd->dev_addr))
		return;
	ether_addr_copy(dev->mac, nd->dev_addr);
	port_event(dev, IB_EVENT_GID_CHANGE);
}

/* ---- protection domains ---- */

static int weft_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibpd->device);
	struct weft_pd *pd = to_weft_pd(ibpd);
	int id = ida_alloc_range(&dev->pd_ids, 1, WEFT_MAX_PD, GFP_KERNEL);

	if (id < 0)
		return -ENOMEM;
	pd->id = id;
	spin_lock_init(&pd->windows_lock);
	/* A user region for the checks: the peer has no rights to it and cannot invalidate it. */
	pd->dma = (struct weft_region) {
		.stag = dev->ibdev.local_dma_lkey,
		.pd = id,
		.access = WEFT_ACCESS_LOCAL_WRITE,
		.len = U64_MAX,
		.kind = WEFT_REGION_USER,
		.valid = true,
	};
	atomic_inc(&dev->num_pd);
	return 0;
}

static int weft_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibpd->device);

	ida_free(&dev->pd_ids, to_weft_pd(ibpd)->id);
	atomic_dec(&dev->num_pd);
	return 0;
}

/* ---- life ---- */

/*
 * Called from the notifier, with the rtnl, and when the device is removed by itself: the notifier
 * may have been too late to find it, and the netdev waits for us. Waits for no connection.
 */
void weft_device_netdev_gone(struct weft_device *dev)
{
	struct net_device *nd;

	spin_lock_bh(&dev->conns_lock);
	dev->dying = true;
	nd = rcu_replace_pointer(dev->netdev, NULL, lockdep_is_held(&dev->conns_lock));
	spin_unlock_bh(&dev->conns_lock);
	weft_conn_kill_all(dev);
	if (!nd)
		return;
	/* All readers of the pointer hold their own reference by now. */
	synchronize_net();
	netdev_put(nd, &dev->netdev_tracker);
}

/* The last connection: ib_core frees the device after this. */
static void weft_dealloc_driver(struct ib_device *ibdev)
{
	struct weft_device *dev = to_weft_dev(ibdev);

	weft_device_netdev_gone(dev);
	weft_conn_await_all(dev);
	WARN_ON_ONCE(atomic_read(&dev->num_qp) || atomic_read(&dev->num_mr) ||
		     atomic_read(&dev->num_cq) || atomic_read(&dev->num_srq) ||
		     atomic_read(&dev->num_pd) || atomic_read(&dev->num_ctx) ||
		     atomic_read(&dev->num_cep));
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	ida_destroy(&dev->pd_ids);
	ida_destroy(&dev->cq_ids);
	ida_destroy(&dev->srq_ids);
	free_percpu(dev->counts);
}

static const struct ib_device_ops weft_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = WEFT_DRIVER_ID,
	.uverbs_abi_ver = WEFT_ABI_VERSION,
	.device_group = &weft_options,

	.alloc_hw_port_stats = weft_alloc_hw_port_stats,
	.alloc_mr = weft_alloc_mr,
	.alloc_mw = weft_alloc_mw,
	.alloc_pd = weft_alloc_pd,
	.alloc_ucontext = weft_alloc_ucontext,
	.create_cq = WEFT_OP_CREATE_CQ,
	.create_qp = weft_create_qp,
	.create_srq = weft_create_srq,
	.dealloc_driver = weft_dealloc_driver,
	.dealloc_mw = weft_dealloc_mw,
	.dealloc_pd = weft_dealloc_pd,
	.dealloc_ucontext = weft_dealloc_ucontext,
	.dereg_mr = weft_dereg_mr,
	.destroy_cq = weft_destroy_cq,
	.destroy_qp = weft_destroy_qp,
	.destroy_srq = weft_destroy_srq,
	.disassociate_ucontext = weft_disassociate_ucontext,
	.fill_res_cq_entry = weft_fill_res_cq,
	.fill_res_mr_entry = weft_fill_res_mr,
	.fill_res_qp_entry = weft_fill_res_qp,
	WEFT_OP_FILL_RES_SRQ
	.get_dma_mr = weft_get_dma_mr,
	.get_hw_stats = weft_get_hw_stats,
	.get_port_immutable = weft_get_port_immutable,
	.iw_accept = weft_cm_accept,
	.iw_add_ref = weft_iw_add_ref,
	.iw_connect = weft_cm_connect,
	.iw_create_listen = weft_cm_create_listen,
	.iw_destroy_listen = weft_cm_destroy_listen,
	.iw_get_qp = weft_iw_get_qp,
	.iw_reject = weft_cm_reject,
	.iw_rem_ref = weft_iw_rem_ref,
	.map_mr_sg = weft_map_mr_sg,
	.mmap = weft_mmap,
	.mmap_free = weft_mmap_free,
	.modify_qp = weft_modify_qp,
	.modify_srq = weft_modify_srq,
	.poll_cq = weft_poll_cq,
	.post_recv = weft_post_recv,
	.post_send = weft_post_send,
	.post_srq_recv = weft_post_srq_recv,
	.query_device = weft_query_device,
	.query_gid = weft_query_gid,
	.query_pkey = weft_query_pkey,
	.query_port = weft_query_port,
	.query_qp = weft_query_qp,
	.query_srq = weft_query_srq,
	.query_ucontext = weft_query_ucontext,
	.reg_user_mr = WEFT_OP_REG_USER_MR,
	.reg_user_mr_dmabuf = WEFT_OP_REG_DMABUF_MR,
	.req_notify_cq = weft_req_notify_cq,
	.rereg_user_mr = weft_rereg_user_mr,
	WEFT_OP_RESIZE_CQ,

	INIT_RDMA_OBJ_SIZE(ib_cq, weft_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, weft_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, weft_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, weft_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, weft_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, weft_ucontext, ibuc),
};

/* The address from which the GID is made, if this kernel supports the type that @nd has. */
static int netdev_address(const struct net_device *nd, u8 *mac)
{
	if (nd->type != ARPHRD_ETHER && nd->type != ARPHRD_LOOPBACK && nd->type != ARPHRD_NONE)
		return -ENODEV;
	if (nd->addr_len == ETH_ALEN && !is_zero_ether_addr(nd->dev_addr)) {
		ether_addr_copy(mac, nd->dev_addr);
		return 0;
	}
	if (!weft_gid_may_be_made_up)
		return -ENODEV;
	eth_random_addr(mac);
	return 0;
}

static void init_options(struct weft_device *dev)
{
	dev->crc = true;
	dev->markers = false;
	dev->extensions = true;
	dev->large_fpdus = false;
	dev->bind_netdev = false;
	dev->mpa_rev = 2;
	dev->rtr = WEFT_RTR_ALL;
	dev->startup_timeout_ms = 10000;
	dev->accept_timeout_ms = 60000;
	dev->close_timeout_ms = 5000;
	dev->dead_peer_timeout_ms = WEFT_DEAD_MS;
	dev->rnr_timeout_ms = 1000;
}

static void init_tables(struct weft_device *dev)
{
	/* xa_init_flags() gives both tables' locks one class; this one is irqsave. */
	static struct lock_class_key qps_lock;

	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT);
	lockdep_set_class(&dev->qps.xa_lock, &qps_lock);
	xa_init_flags(&dev->mrs, XA_FLAGS_ACCOUNT);
	ida_init(&dev->pd_ids);
	ida_init(&dev->cq_ids);
	ida_init(&dev->srq_ids);
	INIT_LIST_HEAD(&dev->conns);
	weft_limits_init(dev);
	weft_startup_init(dev);
	spin_lock_init(&dev->conns_lock);
}

static void init_ibdev(struct ib_device *ibdev, const struct weft_device *dev,
		       const struct net_device *nd)
{
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->mac);
	ibdev->node_type = RDMA_NODE_RNIC;
	strscpy(ibdev->node_desc, "weft", sizeof(ibdev->node_desc));
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->local_dma_lkey = 0;
	ibdev->iw_driver_flags = IW_F_NO_PORT_MAP;
	strscpy(ibdev->iw_ifname, nd->name, sizeof(ibdev->iw_ifname));
	ibdev->driver_def = weft_uapi_defs;
	ib_set_device_ops(ibdev, &weft_device_ops);
}

struct weft_device *weft_device_create(struct net_device *nd)
{
	struct weft_device *dev;
	u8 mac[ETH_ALEN];
	int rv = netdev_address(nd, mac);

	if (rv)
		return ERR_PTR(rv);
	dev = ib_alloc_device(weft_device, ibdev);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	init_tables(dev);
	dev->counts = alloc_percpu(struct weft_counts);
	if (!dev->counts) {
		ib_dealloc_device(&dev->ibdev);
		return ERR_PTR(-ENOMEM);
	}
	ether_addr_copy(dev->mac, mac);
	dev->ifindex = nd->ifindex;
	dev->port_active = netdev_active(nd);
	netdev_hold(nd, &dev->netdev_tracker, GFP_KERNEL);
	RCU_INIT_POINTER(dev->netdev, nd);
	dev->net = dev_net(nd);
	init_options(dev);
	init_ibdev(&dev->ibdev, dev, nd);
	rv = ib_device_set_netdev(&dev->ibdev, nd, WEFT_PORT);
	if (rv) {
		ib_dealloc_device(&dev->ibdev);
		return ERR_PTR(rv);
	}
	return dev;
}
