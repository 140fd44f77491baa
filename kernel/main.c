// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * weft: iWARP (RDMA over TCP) in software. The module, and the devices that `rdma link add`
 * creates on netdevs, until those are removed.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include "verbs.h"

MODULE_DESCRIPTION("iWARP (RDMA over TCP) in software");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("weft");

struct workqueue_struct *weft_wq, *weft_startup_wq, *weft_scan_wq;

/* If two links are added to one netdev at once, the second must see the first. */
static DEFINE_MUTEX(newlink_lock);

static struct weft_device *dev_of_netdev(struct net_device *nd)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(nd, WEFT_DRIVER_ID);

	return ibdev ? to_weft_dev(ibdev) : NULL;
}

/*
 * The netdev may have gone, or moved to another namespace, before the notifier
 * could find the new device: then this check must remove it.
 */
static int netdev_still_there(struct net_device *nd, struct net *net)
{
	struct weft_device *dev;
	bool there;

	rtnl_lock();
	there = nd->reg_state == NETREG_REGISTERED && net_eq(dev_net(nd), net);
	dev = there ? NULL : dev_of_netdev(nd);
	if (dev)
		weft_device_netdev_gone(dev);
	rtnl_unlock();
	if (dev)
		ib_unregister_device_and_put(&dev->ibdev);
	return there ? 0 : -ENODEV;
}

static int newlink_locked(const char *name, struct net_device *nd)
{
	struct net *net = dev_net(nd);
	struct weft_device *dev = dev_of_netdev(nd);
	int rv;

	if (dev) {
		ib_device_put(&dev->ibdev);
		return -EEXIST;
	}
	dev = weft_device_create(nd);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_mark_name_assigned_by_user(&dev->ibdev);
	rv = ib_register_device(&dev->ibdev, name, NULL);
	if (rv) {
		ib_dealloc_device(&dev->ibdev);
		return rv;
	}
	WRITE_ONCE(dev->registered, true);
	return netdev_still_there(nd, net);
}

static int weft_newlink(const char *name, struct net_device *nd)
{
	int rv;

	mutex_lock(&newlink_lock);
	rv = newlink_locked(name, nd);
	mutex_unlock(&newlink_lock);
	return rv;
}

static struct rdma_link_ops weft_link_ops = {
	.type = "weft",
	.newlink = weft_newlink,
};

static int weft_netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *nd = netdev_notifier_info_to_dev(arg);
	struct weft_device *dev = dev_of_netdev(nd);

	if (!dev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		weft_port_changed(dev, nd);
		break;
	case NETDEV_CHANGEADDR:
		weft_port_readdressed(dev, nd);
		break;
	case NETDEV_UNREGISTER:
		weft_device_netdev_gone(dev);
		ib_unregister_device_queued(&dev->ibdev);
		break;
	}
	ib_device_put(&dev->ibdev);
	return NOTIFY_OK;
}

static struct notifier_block weft_netdev_nb = {
	.notifier_call = weft_netdev_event,
};

static void destroy_queues(void)
{
	if (weft_scan_wq)
		destroy_workqueue(weft_scan_wq);
	if (weft_startup_wq)
		destroy_workqueue(weft_startup_wq);
	if (weft_wq)
		destroy_workqueue(weft_wq);
}

static int __init make_queues(void)
{
	weft_wq = alloc_workqueue("weft", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	/* All workers of one queue may be waiting for programs, so turns have their own. */
	weft_startup_wq = alloc_workqueue("weft_startup", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	/* Reclaim may destroy a CQ, which waits for its scan. */
	weft_scan_wq = alloc_workqueue("weft_scan", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	if (weft_wq && weft_startup_wq && weft_scan_wq)
		return 0;
	destroy_queues();
	return -ENOMEM;
}

static int __init weft_init(void)
{
	int rv;

	rv = make_queues();
	if (rv)
		return rv;
	rv = weft_conn_init();
	if (rv)
		goto no_conn;
	rv = register_netdevice_notifier(&weft_netdev_nb);
	if (rv)
		goto no_notifier;
	rdma_link_register(&weft_link_ops);
	return 0;

no_notifier:
	weft_conn_exit();
no_conn:
	destroy_queues();
	return rv;
}

static void __exit weft_exit(void)
{
	rdma_link_unregister(&weft_link_ops);
	ib_unregister_driver(WEFT_DRIVER_ID);
	unregister_netdevice_notifier(&weft_netdev_nb);
	/* A worker frees its connection after that has left the device. */
	destroy_queues();
	weft_conn_exit();
	/* No code of ours may run once the module's text is freed. */
	rcu_barrier();
}

module_init(weft_init);
module_exit(weft_exit);
/* As MODULE_IMPORT_NS(), whose argument became a string in 6.13. */
MODULE_INFO(import_ns, "DMA_BUF");
