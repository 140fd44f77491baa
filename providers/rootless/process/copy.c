// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libc's memcpy() stores a block's tail first, and programs poll the last octet of what a peer
 * writes. And the guard must know the instructions that touch a program's memory (guard.c). So the
 * library copies by itself; these are its memcpy() and memmove(), too (--wrap).
 */
#include "copy.h"
#include "kernel/core/place.h"

/* A store is not moved before another one by the compiler. */
#define IN_ORDER() __asm__ volatile("" ::: "memory")

typedef u16 two_t __attribute__((aligned(1), may_alias));
typedef u32 four_t __attribute__((aligned(1), may_alias));
typedef u64 word_t __attribute__((aligned(1), may_alias));
typedef u64 block_t __attribute__((vector_size(16), aligned(1), may_alias));

#define BLOCK	sizeof(block_t)
#define WORD	sizeof(word_t)

static inline void copy_octets(u8 *to, const u8 *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		to[i] = from[i];
		IN_ORDER();
	}
}

/* Less than 8 octets, each unit after those before it. */
static inline void copy_units(u8 *to, const u8 *from, size_t n)
{
	u32 unit;

	for (; n; n -= unit, to += unit, from += unit) {
		unit = weft_place_unit(to, n);
		smp_wmb();
		if (unit == sizeof(u32))
			*(four_t *)to = *(const four_t *)from;
		else if (unit == sizeof(u16))
			*(two_t *)to = *(const two_t *)from;
		else
			*to = *from;
	}
	IN_ORDER();
}

static inline void copy_words(u8 *to, const u8 *from, size_t n)
{
	for (; n; n -= WORD, to += WORD, from += WORD) {
		*(word_t *)to = *(const word_t *)from;
		IN_ORDER();
	}
}

static inline void copy_blocks(u8 *to, const u8 *from, size_t n)
{
	for (; n; n -= 4 * BLOCK, to += 4 * BLOCK, from += 4 * BLOCK) {
		const block_t *f = (const block_t *)from;
		block_t a = f[0], b = f[1], c = f[2], d = f[3];
		block_t *t = (block_t *)to;

		t[0] = a;
		IN_ORDER();
		t[1] = b;
		IN_ORDER();
		t[2] = c;
		IN_ORDER();
		t[3] = d;
		IN_ORDER();
	}
}

void rl_copy_in_order(void *dst, const void *src, size_t n)
{
	u8 *to = dst;
	const u8 *from = src;
	size_t head = min_t(size_t, -(uintptr_t)to % WORD, n), blocks, words, last;

	/* A short message, or a flag, as most programs place it. */
	if (!((uintptr_t)to % WORD) && n == WORD) {
		smp_wmb();
		copy_words(to, from, WORD);
		return;
	}
	smp_wmb();
	copy_units(to, from, head);
	to += head;
	from += head;
	n -= head;
	/* A store that crosses a cache line is seen in halves: blocks are aligned. */
	if ((uintptr_t)to % BLOCK && n >= 2 * WORD) {
		copy_words(to, from, WORD);
		to += WORD;
		from += WORD;
		n -= WORD;
	}
	last = n < WORD ? 0 : WORD;
	blocks = (n - last) / (4 * BLOCK) * (4 * BLOCK);
	copy_blocks(to, from, blocks);
	to += blocks;
	from += blocks;
	n -= blocks;
	words = n / WORD * WORD - last;
	copy_words(to, from, words);
	to += words;
	from += words;
	n -= words;
	smp_wmb();
	copy_words(to, from, last);
	copy_units(to + last, from + last, n - last);
}

/* Without an order. Octets that two stores both write are the same. */
void *__wrap_memcpy(void *dst, const void *src, size_t n)
{
	u8 *to = dst;
	const u8 *from = src;

	if (n >= 2 * BLOCK) {
		block_t tail = *(const block_t *)(from + n - BLOCK);
		block_t before = *(const block_t *)(from + n - 2 * BLOCK);
		size_t blocks = n / (4 * BLOCK) * (4 * BLOCK), i;

		copy_blocks(to, from, blocks);
		for (i = blocks; i + 2 * BLOCK < n; i += BLOCK) {
			*(block_t *)(to + i) = *(const block_t *)(from + i);
			IN_ORDER();
		}
		*(block_t *)(to + n - 2 * BLOCK) = before;
		*(block_t *)(to + n - BLOCK) = tail;
	} else if (n >= BLOCK) {
		block_t head = *(const block_t *)from, tail = *(const block_t *)(from + n - BLOCK);

		*(block_t *)to = head;
		*(block_t *)(to + n - BLOCK) = tail;
	} else if (n >= WORD) {
		u64 head = *(const word_t *)from, tail = *(const word_t *)(from + n - WORD);

		*(word_t *)to = head;
		*(word_t *)(to + n - WORD) = tail;
	} else {
		copy_octets(to, from, n);
	}
	return dst;
}

void *__wrap_memmove(void *dst, const void *src, size_t n)
{
	u8 *to = dst;
	const u8 *from = src;

	/* Upwards nothing is overwritten before it was read, unless @dst begins within @src. */
	if ((uintptr_t)to - (uintptr_t)from >= n)
		return __wrap_memcpy(dst, src, n);
	for (; n >= WORD; n -= WORD) {
		*(word_t *)(to + n - WORD) = *(const word_t *)(from + n - WORD);
		IN_ORDER();
	}
	while (n--) {
		to[n] = from[n];
		IN_ORDER();
	}
	return dst;
}
