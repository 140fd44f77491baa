// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who asks. iw_cm says nothing of the user of an id: what it calls for a program and what it
 * calls for a kernel consumer look the same. So it is the running task that is judged, and the
 * QP that it names.
 *
 * A program's call runs in its own context, and nowhere else. A kernel consumer's runs in a
 * kernel thread most of the time; some connect in the process that mounts, or listen in the
 * one that configures them.
 */
#include <linux/fdtable.h>
#include <linux/sched/mm.h>

#include "weft.h"

/* The memory of the process that asks; NULL in a kernel thread. */
static struct mm_struct *caller_mm(void)
{
	return current->flags & PF_KTHREAD ? NULL : current->mm;
}

/* ---- whose QP it is ---- */

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

static int is_uverbs_file(const void *ufile, struct file *file, unsigned int fd)
{
	return file->private_data == ufile;
}

/* After fork(), or when it was passed: by that file the QP can be destroyed just as well. */
static bool caller_has_file_of(const struct weft_qp *qp)
{
	return iterate_fd(current->files, 0, is_uverbs_file, qp->ibqp.pd->uobject->ufile);
}

/*
 * A kernel consumer's QP that a process made is that process's, too: nobody else's rdma_cm id
 * gets it. What a kernel thread made only kernel threads may connect.
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
