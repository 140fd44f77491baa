/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's only header that tells the kernel from user space.
 *
 * proto/ and core/ use the fixed-width types, the memory functions, the
 * assertions and the two inputs declared here, and nothing else of their
 * surroundings: no allocation, lock, clock, socket or log.
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/swab.h>
#include <linux/types.h>
#include <asm/barrier.h>

/* Returns the CRC32c of @len bytes at @p, continued from @crc (no inversions). */
static inline u32 weft_crc32c(u32 crc, const void *p, size_t len)
{
	return crc32c(crc, p, len);
}

/*
 * Copies @len bytes and returns the CRC32c of the copy: the source may change meanwhile. In steps
 * that stay in the first-level cache.
 */
static inline u32 weft_crc32c_copy(u32 crc, void *to, const void *from, size_t len)
{
	size_t step;

	for (; len; len -= step, to += step, from += step) {
		step = min_t(size_t, len, 4096);
		memcpy(to, from, step);
		crc = crc32c(crc, to, step);
	}
	return crc;
}

#else /* user space: the tests, the fuzzers, the tester's self-peer, rootless */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define static_assert _Static_assert
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
/* @n: 1 to 2^31. */
#define roundup_pow_of_two(n) ((n) > 1 ? 1u << (32 - __builtin_clz((n) - 1)) : 1u)
#define fallthrough __attribute__((__fallthrough__))
#define noinline __attribute__((__noinline__))
#define __must_check __attribute__((__warn_unused_result__))
#define swab16(v) __builtin_bswap16(v)
#define swab32(v) __builtin_bswap32(v)
#define swab64(v) __builtin_bswap64(v)
/*
 * The kernel's words for atomics, with the kernel's meaning (docs/memory-order.md): what returns a
 * value is a full barrier. C11's exchange is one on x86 alone.
 */
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define barrier() __asm__ volatile("" : : : "memory")
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#if defined(__x86_64__)
#define smp_mb__after_atomic() barrier()
#else
#define smp_mb__after_atomic() smp_mb()
#endif
#define xchg(p, v) ({							\
	__typeof__(*(p)) xchg_was = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); \
	smp_mb__after_atomic();						\
	xchg_was; })
#define cmpxchg(p, was, v) ({						\
	__typeof__(*(p)) cmpxchg_was = (was);				\
	__atomic_compare_exchange_n(p, &cmpxchg_was, v, false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);	\
	smp_mb__after_atomic();						\
	cmpxchg_was; })
#define try_cmpxchg64(p, was, v) ({					\
	bool try_done = __atomic_compare_exchange_n(p, was, v, false,	\
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	smp_mb__after_atomic();						\
	try_done; })
#define min_t(t, a, b) ({ t min_a = (a), min_b = (b); min_a < min_b ? min_a : min_b; })
#define max_t(t, a, b) ({ t max_a = (a), max_b = (b); max_a > max_b ? max_a : max_b; })
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))

/* The same contract as the kernel's; each user-space host links them. */
u32 weft_crc32c(u32 crc, const void *p, size_t len);
u32 weft_crc32c_copy(u32 crc, void *to, const void *from, size_t len);

#endif
#endif
