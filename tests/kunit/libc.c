// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of the tests. Every block is an allocation of its own, without a header, so that KASAN
 * sees an access beside it. The list of them finds leaks, and frees what a failed test has left.
 */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "weft_kunit.h"

struct block {
	struct hlist_node node;
	void *p;
	size_t size;
};

/* One test runs at a time, on one thread. */
static DEFINE_HASHTABLE(blocks, 10);

static char *seed;
module_param(seed, charp, 0);
MODULE_PARM_DESC(seed, "of the tests that choose at random; decimal, not 0");

static struct block *find_block(const void *p)
{
	struct block *b;

	hash_for_each_possible(blocks, b, node, (unsigned long)p)
		if (b->p == p)
			return b;
	return NULL;
}

static void forget_block(struct block *b)
{
	hash_del(&b->node);
	kvfree(b->p);
	kfree(b);
}

void *weft_kunit_alloc(size_t n, bool zeroed)
{
	struct block *b = kmalloc(sizeof(*b), GFP_KERNEL);

	/* Tests run long, and some kernels do not preempt them. */
	cond_resched();
	if (!b)
		return NULL;
	b->size = n;
	b->p = kvmalloc(n ? n : 1, zeroed ? GFP_KERNEL | __GFP_ZERO : GFP_KERNEL);
	if (!b->p) {
		kfree(b);
		return NULL;
	}
	hash_add(blocks, &b->node, (unsigned long)b->p);
	return b->p;
}

void weft_kunit_free(void *p)
{
	struct block *b;

	if (!p)
		return;
	b = find_block(p);
	if (!b)
		weft_kunit_fail(__FILE__, __LINE__, "free() of what is not allocated: %p", p);
	forget_block(b);
}

void *weft_kunit_realloc(void *p, size_t n)
{
	struct block *b = p ? find_block(p) : NULL;
	void *moved;

	if (p && !b)
		weft_kunit_fail(__FILE__, __LINE__, "realloc() of what is not allocated: %p", p);
	moved = weft_kunit_alloc(n, false);
	if (moved && p) {
		memcpy(moved, p, min(n, b->size));
		forget_block(b);
	}
	return moved;
}

u32 weft_kunit_free_all(void)
{
	struct hlist_node *next;
	struct block *b;
	u32 n = 0;
	int i;

	hash_for_each_safe(blocks, i, next, b, node) {
		forget_block(b);
		n++;
	}
	return n;
}

/* ---- mappings ---- */

/* Tests keep theirs in static variables: as long as the module. */
static struct {
	u8 *p;
	size_t len;
} maps[8];

/* The last page is to fault: that of vmalloc(). */
void *weft_kunit_map(size_t len)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(maps) && maps[i].p; i++)
		;
	if (i == ARRAY_SIZE(maps) || len <= PAGE_SIZE || len % PAGE_SIZE)
		return NULL;
	maps[i].p = vmalloc(len - PAGE_SIZE);
	maps[i].len = len;
	return maps[i].p;
}

int weft_kunit_guard(const void *p, size_t len)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		if (maps[i].p && maps[i].p + maps[i].len - PAGE_SIZE == p && len == PAGE_SIZE)
			return 0;
	return -1;
}

void weft_kunit_unmap_all(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		vfree(maps[i].p);
}

char *weft_kunit_getenv(const char *name)
{
	return strcmp(name, "WEFT_SEED") ? NULL : seed;
}
