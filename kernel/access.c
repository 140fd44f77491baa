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
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <net/net_namespace.h>

#include "weft.h"

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
 * A kernel consumer's QP belongs to the process that created it: no rdma_cm id of another process
 * gets it. A QP created by a kernel thread may be connected by kernel threads only.
 */
static bool is_callers(const struct weft_qp *qp)
{
	const struct mm_struct *mm = caller_mm();

	if (!mm)
		return qp->core.kernel;
	return mm == qp->owner || (qp->uc && xa_load(&qp->uc->users, (unsigned long)mm));
}

/*
 * Under the table's lock: iw_cm's look-ups have interrupts off, so a refused caller does not delay
 * the owner.
 */
struct weft_qp *weft_qp_find_callers(struct weft_device *dev, u32 qpn)
{
	struct weft_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, qpn);
	if (qp && !is_callers(qp))
		qp = NULL;
	if (qp)
		weft_qp_hold(qp);
	xa_unlock_irqrestore(&dev->qps, flags);
	return qp;
}

/* ---- users of a device's file ---- */

void weft_users_init(struct weft_ucontext *uc)
{
	mutex_init(&uc->users_lock);
	xa_init_flags(&uc->users, XA_FLAGS_ACCOUNT);
}

static void forget_user(struct weft_ucontext *uc, unsigned long index)
{
	struct mm_struct *mm = xa_erase(&uc->users, index);

	if (mm)
		mmdrop(mm);
}

/* @ended: only processes that have ended. */
static void forget_users(struct weft_ucontext *uc, bool ended)
{
	struct mm_struct *mm;
	unsigned long index;

	xa_for_each(&uc->users, index, mm)
		if (!ended || !atomic_read(&mm->mm_users))
			forget_user(uc, index);
}

void weft_users_exit(struct weft_ucontext *uc)
{
	forget_users(uc, false);
	xa_destroy(&uc->users);
}

/* Without memory it is not recorded, and may not connect what others created. */
void weft_users_record(struct weft_ucontext *uc)
{
	struct mm_struct *mm = caller_mm();

	if (!uc || !mm || xa_load(&uc->users, (unsigned long)mm))
		return;
	mutex_lock(&uc->users_lock);
	forget_users(uc, true);
	if (!xa_insert(&uc->users, (unsigned long)mm, mm, GFP_KERNEL))
		mmgrab(mm);
	mutex_unlock(&uc->users_lock);
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

static bool caller_is_outside(struct weft_device *dev)
{
	struct net_device *nd = weft_dev_netdev(dev);
	bool outside = nd && is_outside(dev, dev->net);

	dev_put(nd);
	return outside;
}

struct weft_qp *weft_access_qp(struct weft_device *dev, u32 qpn)
{
	struct weft_qp *qp = weft_qp_find_callers(dev, qpn);

	if (!qp)
		return ERR_PTR(-EINVAL);
	if (qp->core.kernel || !caller_is_outside(dev))
		return qp;
	weft_qp_drop(qp);
	return ERR_PTR(-ENODEV);
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
	 * waits for readers.
	 */
	rcu_read_lock();
	nd = rcu_dereference(dev->netdev);
	may = !nd || !weft_access_is_user() || !is_outside(dev, dev_net(nd)) ||
	      ns_capable_noaudit(dev_net(nd)->user_ns, CAP_NET_ADMIN);
	rcu_read_unlock();
	return may;
}
