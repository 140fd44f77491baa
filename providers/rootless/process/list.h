/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doubly linked lists, with the names of the Linux kernel's. A list is a ring: the head, then a
 * node inside each entry. A node that is in no list must not be deleted, unless it was initialised.
 * The buckets of a hash table are struct hlist_head: one pointer, empty if zero.
 */
#ifndef RL_LIST_H
#define RL_LIST_H

#include "port.h"

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

/* Inserts @node after @at. */
static inline void list_add(struct list_head *node, struct list_head *at)
{
	node->next = at->next;
	node->prev = at;
	at->next->prev = node;
	at->next = node;
}

/* Inserts @node before @at: at the end of the list if @at is its head. */
static inline void list_add_tail(struct list_head *node, struct list_head *at)
{
	list_add(node, at->prev);
}

static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* @node may be deleted again afterwards. */
static inline void list_del_init(struct list_head *node)
{
	list_del(node);
	INIT_LIST_HEAD(node);
}

static inline void list_move(struct list_head *node, struct list_head *to)
{
	list_del(node);
	list_add(node, to);
}

static inline void list_move_tail(struct list_head *node, struct list_head *to)
{
	list_del(node);
	list_add_tail(node, to);
}

#define list_entry(node, type, member) container_of(node, type, member)

#define list_first_entry(head, type, member) list_entry((head)->next, type, member)

#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))

#define list_next_entry(pos, member) list_entry((pos)->member.next, __typeof__(*(pos)), member)

/* @pos is each entry in turn. */
#define list_for_each_entry(pos, head, member)					\
	for (pos = list_first_entry(head, __typeof__(*pos), member);		\
	     &pos->member != (head);						\
	     pos = list_next_entry(pos, member))

/* The same; @pos may be deleted. */
#define list_for_each_entry_safe(pos, after, head, member)			\
	for (pos = list_first_entry(head, __typeof__(*pos), member),		\
	     after = list_next_entry(pos, member);				\
	     &pos->member != (head);						\
	     pos = after, after = list_next_entry(after, member))

/* ---- buckets ---- */

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	node->next = head->first;
	node->pprev = &head->first;
	if (node->next)
		node->next->pprev = &node->next;
	head->first = node;
}

static inline void hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

#define hlist_entry_or_null(node, type, member) \
	((node) ? container_of(node, type, member) : NULL)

/* @pos is each entry in turn, and NULL after the last. */
#define hlist_for_each_entry(pos, head, member)					\
	for (pos = hlist_entry_or_null((head)->first, __typeof__(*pos), member); \
	     pos;								\
	     pos = hlist_entry_or_null(pos->member.next, __typeof__(*pos), member))

#endif
