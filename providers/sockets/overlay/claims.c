// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets that were accepted and are not used yet. Two processes may have such a socket: they share
 * a word, and the first that uses the socket wins it.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "claims.h"
#include "sock.h"

#define CLAIMS_SIZE	4096

/* Words that processes share, one for each socket that was unused at a fork(). */
struct rl_claims {
	u32 *words;			/* atomic */
	u32 used, refs;			/* of this process; atomic refs */
};

static struct {
	pthread_mutex_t lock;		/* of the list; leaf */
	struct list_head unused;
	struct rl_claims *claims;	/* has room; of handlers of fork() alone */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .unused = LIST_HEAD_INIT(all.unused) };

static void put_claims(struct rl_claims *c)
{
	if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(c->words, CLAIMS_SIZE);
	free(c);
}

static struct rl_claims *new_claims(void)
{
	struct rl_claims *c = calloc(1, sizeof(*c));
	void *words = c ?
		mmap(NULL, CLAIMS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0) : MAP_FAILED;

	if (words == MAP_FAILED) {
		free(c);
		return NULL;
	}
	*c = (struct rl_claims){ .words = words, .refs = 1 };
	return c;
}

static void lend_word(struct rl_sock *sk)
{
	struct rl_claims *c = all.claims;

	if (!c || c->used == CLAIMS_SIZE / sizeof(u32)) {
		put_claims(c);
		c = all.claims = new_claims();
	}
	if (!c)
		return;
	sk->claim = &c->words[c->used++];
	sk->claims = c;
	__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
}

/* After the gate's handler: no thread is inside. A socket that has a word is unused still. */
void rl_claims_before_fork(void)
{
	struct rl_sock *sk;

	list_for_each_entry(sk, &all.unused, unused)
		if (!sk->claim)
			lend_word(sk);
}

/* The parent goes on with the words that are free. */
void rl_claims_in_child(void)
{
	put_claims(all.claims);
	all.claims = NULL;
}

bool rl_claims_win(struct rl_sock *sk)
{
	u32 unused = 0;

	return !sk->claim || __atomic_compare_exchange_n(sk->claim, &unused, 1, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void rl_claims_add(struct rl_sock *sk)
{
	pthread_mutex_lock(&all.lock);
	list_add(&sk->unused, &all.unused);
	pthread_mutex_unlock(&all.lock);
}

void rl_claims_remove(struct rl_sock *sk)
{
	pthread_mutex_lock(&all.lock);
	list_del_init(&sk->unused);
	pthread_mutex_unlock(&all.lock);
}

void rl_claims_free(struct rl_sock *sk)
{
	rl_claims_remove(sk);
	put_claims(sk->claims);
}
