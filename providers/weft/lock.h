/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A lock that is not taken if the program promises that one thread at a time calls. */
#ifndef WEFT_PROVIDER_LOCK_H
#define WEFT_PROVIDER_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct weft_lock {
	pthread_spinlock_t spin;
	bool left_out;			/* constant */
};

static inline void weft_lock_init(struct weft_lock *l, bool left_out)
{
	pthread_spin_init(&l->spin, PTHREAD_PROCESS_PRIVATE);
	l->left_out = left_out;
}

static inline void weft_lock_destroy(struct weft_lock *l)
{
	pthread_spin_destroy(&l->spin);
}

static inline void weft_lock(struct weft_lock *l)
{
	if (!l->left_out)
		pthread_spin_lock(&l->spin);
}

static inline void weft_unlock(struct weft_lock *l)
{
	if (!l->left_out)
		pthread_spin_unlock(&l->spin);
}

#endif
