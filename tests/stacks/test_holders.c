// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fast region that its consumer registers and invalidates while other QPs use it on other CPUs,
 * by threads and chance: it is not used after its invalidation is reported, and each user sees all
 * of one registration. The linker replaces the host by one with atomics, which has a single
 * region.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host.h"

#define USERS 3
#define ROUNDS 3000
#define MOST_ROUNDS 60000
#define SECONDS 60			/* fewer rounds do on a machine that is busy with much else */
#define INDEX 0x51000u
#define RIGHT WEFT_ACCESS_REMOTE_WRITE
#define TABLE 0x10000u			/* the table's hold: not mistaken for a user's */

static struct weft_region region;
static u32 holders;			/* users, and TABLE */
static u32 registered;			/* counts registrations, and identifies them */
static bool consumers;			/* the memory is the consumer's again */
static bool over;
static bool in_table = true;
static u32 inside;			/* uses under way */
static u32 uses, waits, torn, late;
static time_t started;

/* ---- the host ---- */

struct weft_region *__wrap_weft_host_region_find(struct weft_qpc *qp, u32 stag);
struct weft_region *__wrap_weft_host_region_find(struct weft_qpc *qp, u32 stag)
{
	u32 n = READ_ONCE(holders);

	/* As in the driver: a region without holders is about to be freed. */
	do {
		if (!READ_ONCE(in_table) || !n)
			return NULL;
	} while (!__atomic_compare_exchange_n(&holders, &n, n + 1, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	smp_mb();
	return &region;
}

void __wrap_weft_host_region_hold(struct weft_region *r, u32 n);
void __wrap_weft_host_region_hold(struct weft_region *r, u32 n)
{
	__atomic_add_fetch(&holders, n, __ATOMIC_RELAXED);
}

void __wrap_weft_host_region_drop(struct weft_region *r);
void __wrap_weft_host_region_drop(struct weft_region *r)
{
	/* One word tells: once the last is dropped, the next region may begin at once. */
	HOST_ASSERT(__atomic_fetch_sub(&holders, 1, __ATOMIC_RELEASE) % TABLE);
}

static void drop_from_table(void)
{
	HOST_ASSERT(__atomic_fetch_sub(&holders, TABLE, __ATOMIC_RELEASE) & TABLE);
}

u32 __wrap_weft_host_region_holders(const struct weft_region *r);
u32 __wrap_weft_host_region_holders(const struct weft_region *r)
{
	u32 n = smp_load_acquire(&holders);

	return n % TABLE + n / TABLE;
}

bool __wrap_weft_host_region_map(struct weft_region *r);
bool __wrap_weft_host_region_map(struct weft_region *r)
{
	if (READ_ONCE(inside))
		__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
	r->base = registered;
	r->len = (u64)registered << 32;
	return true;
}

void __wrap_weft_host_try_again(struct weft_qpc *qp);
void __wrap_weft_host_try_again(struct weft_qpc *qp)
{
	__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
	sched_yield();
}

/* ---- its users ---- */

static void use(struct weft_region *r)
{
	u64 base = READ_ONCE(r->base), len = READ_ONCE(r->len);
	u32 i;

	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 50; i++) {
		if (READ_ONCE(consumers))
			__atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
		/* Others run meanwhile, however few CPUs there are. */
		if (i == 25 && uses % 8 == 0)
			sched_yield();
	}
	if (len != base << 32 || READ_ONCE(r->base) != base)
		__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&uses, 1, __ATOMIC_RELAXED);
}

static void *user(void *arg)
{
	struct weft_qpc *qp = arg;
	u32 n = 0;

	while (!READ_ONCE(over)) {
		u32 stag = INDEX | (READ_ONCE(registered) & 0xFF);
		struct weft_region *r = weft_region_get(qp, qp->pd, stag);

		if (r && weft_region_check(r, stag, qp->pd, qp->id, READ_ONCE(r->base), 1, RIGHT) ==
		    WEFT_GRANTED)
			use(r);
		if (r)
			weft_region_put(qp, r);
		if (++n % 4 == 0)
			weft_region_end_run(qp);
		if (n % 16 == 0)
			sched_yield();
	}
	weft_region_end_run(qp);
	return NULL;
}

/* ---- its consumer ---- */

static void register_over(struct weft_qpc *qp)
{
	struct weft_wr_reg wr = { .access = RIGHT };
	enum weft_denial d;

	WRITE_ONCE(consumers, false);
	WRITE_ONCE(registered, registered + 1);
	wr.stag = INDEX | (registered & 0xFF);
	while ((d = weft_region_register(qp, &wr)) == WEFT_DENIED_SHARED)
		;
	assert_int_equal(d, WEFT_GRANTED);
}

static void invalidate_over(struct weft_qpc *qp)
{
	assert_int_equal(weft_region_invalidate(qp, region.stag, false, &qp->tx_ends), WEFT_GRANTED);
	while (!weft_region_has_ended(qp, &qp->tx_ends))
		;
	WRITE_ONCE(consumers, true);
}

static struct weft_qpc user_qp[USERS], own[2] = { { .pd = 7, .id = 101 }, { .pd = 7, .id = 102 } };
static pthread_t user_thread[USERS];

static void a_new_region(void)
{
	region = (struct weft_region){ .stag = INDEX, .pd = 7, .kind = WEFT_REGION_FAST };
	holders = TABLE;
	WRITE_ONCE(in_table, true);
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static bool is_enough(u32 rounds)
{
	if (!READ_ONCE(waits))
		return rounds >= MOST_ROUNDS;
	return rounds >= ROUNDS || seconds() - started >= SECONDS;
}

static void begin(void)
{
	u32 i;

	/* A lost wake-up would make a thread wait for ever. */
	alarm(10 * SECONDS);
	started = seconds();
	over = consumers = false;
	uses = waits = torn = late = 0;
	a_new_region();
	for (i = 0; i < USERS; i++) {
		user_qp[i] = (struct weft_qpc){ .pd = 7, .id = 200 + i };
		assert_int_equal(pthread_create(&user_thread[i], NULL, user, &user_qp[i]), 0);
	}
}

static void end(void)
{
	u32 i;

	WRITE_ONCE(over, true);
	for (i = 0; i < USERS; i++)
		pthread_join(user_thread[i], NULL);
	alarm(0);
	assert_int_equal(late, 0);
	assert_int_equal(torn, 0);
}

/* Like RTRS' server: registered over one QP, invalidated over the next. */
static void a_region_that_has_ended_is_not_used(void **state)
{
	u32 i, seen;

	begin();
	for (i = 0; !is_enough(i); i++) {
		register_over(&own[i % 2]);
		/* Wait for a user, so that the rest of the round tests something. */
		seen = READ_ONCE(uses);
		while (READ_ONCE(uses) == seen)
			sched_yield();
		invalidate_over(&own[(i + 1) % 2]);
	}
	end();
	assert_int_equal(holders, TABLE);
	assert_true(waits);
	print_message("# %u uses of %u registrations, %u waits\n", uses, registered, waits);
}

/* ---- and its deregistration in parallel ---- */

/* Registers it, invalidates it and registers it again, until it is gone. */
static void *register_on(void *arg)
{
	struct weft_wr_reg wr = { .stag = INDEX, .access = RIGHT };
	enum weft_denial d;
	u32 i;

	for (i = 0;; i++) {
		struct weft_qpc *qp = &own[i % 2];

		WRITE_ONCE(registered, (registered & ~0xFFu) + 0x100);
		while ((d = weft_region_register(qp, &wr)) == WEFT_DENIED_SHARED)
			;
		if (d != WEFT_GRANTED)
			return NULL;
		sched_yield();
		if (weft_region_invalidate(qp, INDEX, false, &qp->tx_ends) != WEFT_GRANTED)
			return NULL;
		while (!weft_region_has_ended(qp, &qp->tx_ends))
			;
		/* No QP uses it until it is registered again. */
		if (READ_ONCE(inside))
			__atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
	}
}

/* Afterwards the region may be freed. */
static void a_region_deregistered_while_registered_is_not_used(void **state)
{
	pthread_t thread;
	u32 i, seen;

	registered = 0;
	begin();
	for (i = 0; !is_enough(i); i++) {
		assert_int_equal(pthread_create(&thread, NULL, register_on, NULL), 0);
		seen = READ_ONCE(uses);
		while (READ_ONCE(uses) == seen)
			sched_yield();
		weft_region_withdraw(&region);
		WRITE_ONCE(in_table, false);
		drop_from_table();
		while (smp_load_acquire(&holders))
			sched_yield();
		assert_false(region.valid);
		pthread_join(thread, NULL);
		a_new_region();
	}
	end();
	assert_true(waits);
	print_message("# %u uses of %u regions, %u waits\n", uses, i, waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_that_has_ended_is_not_used),
		cmocka_unit_test(a_region_deregistered_while_registered_is_not_used),
	};

	return cmocka_run_group_tests_name("stacks: a region's holders", tests, NULL, NULL);
}
