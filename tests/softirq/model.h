/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One CPU's softirqs, as far as kernel/softirq.c knows them: passes over those that are raised, BH
 * workqueues, tasklets, and a clock that only tests move.
 *
 * As Linux has it: a pass takes those that were raised before it, in the order HI, NET_RX, TASKLET. HI and
 * TASKLET each run BH works, ten at most (Linux ends sooner after 2 ms), also such as were queued
 * meanwhile; and then all tasklets that were scheduled before.
 */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define NSEC_PER_USEC	1000UL
#define NSEC_PER_MSEC	1000000UL
#define container_of(p, type, field) ((type *)((char *)(p) - offsetof(type, field)))

/* ---- lists ---- */

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define list_first_entry(head, type, field) container_of((head)->next, type, field)

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list_head *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list_head *node, struct list_head *l)
{
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}

static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	/* Whoever goes on from it falls. */
	node->next = node->prev = NULL;
}

/* In front. */
static inline void list_splice(struct list_head *from, struct list_head *to)
{
	if (list_empty(from))
		return;
	from->prev->next = to->next;
	to->next->prev = from->prev;
	to->next = from->next;
	from->next->prev = to;
}

static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	list_splice(from, to);
	INIT_LIST_HEAD(from);
}

/* ---- one CPU ---- */

#define DEFINE_PER_CPU(type, name) type name
#define this_cpu_ptr(p) (p)
#define per_cpu_ptr(p, cpu) ((void)(cpu), (p))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)

/* Not taken twice, and let go by who took it. */
typedef struct {
	bool held;
} spinlock_t;

static inline void spin_lock_init(spinlock_t *l)
{
	l->held = false;
}

static inline void spin_lock_irq(spinlock_t *l)
{
	assert_false(l->held);
	l->held = true;
}

static inline void spin_unlock_irq(spinlock_t *l)
{
	assert_true(l->held);
	l->held = false;
}

#define spin_lock_irqsave(l, flags) ((flags) = 0, spin_lock_irq(l))
#define spin_unlock_irqrestore(l, flags) ((void)(flags), spin_unlock_irq(l))

static inline bool test_and_set_bit(int bit, unsigned long *word)
{
	bool was = *word >> bit & 1;

	*word |= 1UL << bit;
	return was;
}

static inline bool test_and_clear_bit(int bit, unsigned long *word)
{
	bool was = *word >> bit & 1;

	*word &= ~(1UL << bit);
	return was;
}

/* ---- the clock ---- */

extern u64 model_clock;		/* ns */

static inline u64 ktime_get_ns(void)
{
	return model_clock;
}

/* ---- softirqs ---- */

enum model_softirq { MODEL_HI, MODEL_NET_RX, MODEL_TASKLET };

struct work_struct {
	struct list_head node;
	bool pending;
	void (*func)(struct work_struct *work);
};

struct tasklet_struct {
	struct list_head node;
	bool pending;
	void (*func)(struct tasklet_struct *tasklet);
};

struct workqueue_struct;
extern struct workqueue_struct *const system_bh_wq, *const system_bh_highpri_wq;

void INIT_WORK(struct work_struct *work, void (*func)(struct work_struct *work));
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
/* Passes go by until it is over. */
bool flush_work(struct work_struct *work);

#define from_tasklet(owner, t, field) container_of(t, typeof(*(owner)), field)
void tasklet_setup(struct tasklet_struct *t, void (*func)(struct tasklet_struct *t));
void tasklet_schedule(struct tasklet_struct *t);
void tasklet_hi_schedule(struct tasklet_struct *t);
void tasklet_kill(struct tasklet_struct *t);

/* Forgets what was raised and queued; the network is what @net_rx does. */
void model_init(void (*net_rx)(void));
void model_raise_net_rx(void);
bool model_is_raised(void);
void model_pass(void);

#endif
