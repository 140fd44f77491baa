// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Access control. iw_cm does not name the user of an id: its calls look the same for a program and
 * for a kernel consumer. So the running task is checked, and the QP that it names.
 *
 * A program's call always runs in the program's own context. A kernel consumer's mostly runs in a
 * kernel thread; some consumers connect in the process that mounts, or listen in the one that
 * configures them.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <net/net_namespace.h>

#include "weft.h"

/* The search holds the QP, for some hundred microseconds. */
#define FILES_LOOKED_AT	8192

/* The mm of the calling process; NULL in a kernel thread. */
static struct mm_struct *caller_mm(void)
{
	return current->flags & PF_KTHREAD ? NULL : current->mm;
}

/* ---- owner of a QP ---- */

void weft_qp_own(struct weft_qp *qp)
{
	qp->owner = caller_mm();
	if (qp->owner)
		mmgrab(qp->owner);
}

void weft_qp_disown(struct weft_qp *qp)
{
	if (qp->owner)
		mmdrop(qp->owner);
}

/*
 * A forked child, or a process that was passed the file: it could destroy the QP just as well.
 * Descriptors are looked up one by one, since a table may be too large to walk under its lock.
 */
static bool caller_has_file_of(const struct weft_qp *qp)
{
	const void *ufile = qp->ibqp.pd->uobject->ufile;
	bool has = false;
	unsigned int fd;

	for (fd = 0; fd < FILES_LOOKED_AT && !has; fd++) {
		struct file *file = fget(fd);

		if (!file)
			continue;
		has = file->private_data == ufile;
		fput(file);
	}
	return has;
}

/*
 * A kernel consumer's QP belongs to the process that created it: no rdma_cm id of another process
 * gets it. A QP created by a kernel thread may be connected by kernel threads only.
 */
static bool is_callers(const struct weft_qp *qp)
{
	const struct mm_struct *mm = caller_mm();

	if (!mm)
		return qp->core.kernel;
	return mm == qp->owner || (!qp->core.kernel && caller_has_file_of(qp));
}

struct weft_qp *weft_qp_find_callers(struct weft_device *dev, u32 qpn)
{
	struct weft_qp *qp = weft_qp_find(dev, qpn);

	if (!qp || is_callers(qp))
		return qp;
	weft_qp_drop(qp);
	return NULL;
}

/* ---- namespaces ---- */

bool weft_access_is_user(void)
{
	return caller_mm();
}

/*
 * In shared mode any process may open the device, but its sockets belong to the netdev's
 * namespace.
 */
static bool is_outside(const struct weft_device *dev, const struct net *of_netdev)
{
	const struct net *net = current->nsproxy->net_ns;
	bool shared = rdma_dev_access_netns(&dev->ibdev, NULL);

	return shared ? !net_eq(net, of_netdev) : !rdma_dev_access_netns(&dev->ibdev, net);
}

bool weft_access_is_outside(struct weft_device *dev)
{
	struct net_device *nd = weft_dev_netdev(dev);
	bool outside = nd && is_outside(dev, dev_net(nd));

	dev_put(nd);
	return outside;
}

/*
 * The namespace's administrator could enter it anyway. Administrators configure kernel consumers
 * and move devices; rdma_cm then listens, in their context, for each wildcard listener.
 */
bool weft_access_may_listen(struct weft_device *dev)
{
	const struct net_device *nd;
	bool may;

	/*
	 * A netdev loses its device before it moves to another namespace: weft_device_netdev_gone()
	 * waits.
	 */
	rcu_read_lock();
	nd = rcu_dereference(dev->netdev);
	may = !nd || !weft_access_is_user() || !is_outside(dev, dev_net(nd)) ||
	      ns_capable_noaudit(dev_net(nd)->user_ns, CAP_NET_ADMIN);
	rcu_read_unlock();
	return may;
}
