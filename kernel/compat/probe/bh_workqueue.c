// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.9 brought workqueues whose works run in softirq, which tasklets are to give way to. */
#include <linux/workqueue.h>

void weft_probe(struct work_struct *work);
void weft_probe(struct work_struct *work)
{
	queue_work(system_bh_wq, work);
	queue_work(system_bh_highpri_wq, work);
}
