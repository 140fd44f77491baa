// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which connections send in softirq, in which order, and for how long. */
#include <string.h>

#include "model.h"
#include "softirq.h"

/* That of kernel/softirq.c. */
#define SHARE_NS	NSEC_PER_MSEC
/* What a run takes here, and sends: more than goes without a look at the clock. */
#define RUN_NS		(100 * NSEC_PER_USEC)
#define RUN_OCTETS	(2 * WEFT_SOFTIRQ_FREE)
/* The first run of a share is not timed, and the last begins before the share is used up. */
#define SHARE_RUNS	(1 + (int)(SHARE_NS / RUN_NS))

#define MANY		100

/* A connection. */
struct conn {
	struct weft_bh bh;
	int work;			/* runs that it wants */
	int runs;
};

static struct conn conns[MANY];
static int pass_no, runs_in_pass;
static int requests;			/* that the network brings in each pass, and for ever */
static bool others_go_on;		/* others than weft, for ever, too */

static void use_time(void)
{
	u64 began = weft_softirq_begin();

	model_clock += RUN_NS;
	weft_softirq_end(began, RUN_OCTETS, 0);
}

/* Runs a connection as the driver does, in any context; false if its time is up. */
static bool run_conn(struct conn *c)
{
	if (!weft_softirq_has_time())
		return false;
	use_time();
	runs_in_pass++;
	c->runs++;
	c->work--;
	return true;
}

static void bottom_half(struct weft_bh *bh)
{
	struct conn *c = container_of(bh, struct conn, bh);

	if (c->work)
		run_conn(c);
	weft_bh_over(bh);
	if (c->work)
		weft_bh_queue(bh);
}

/* Peers ask without waiting for answers, each of its own connection, the last of all. */
static void network(void)
{
	int i;

	for (i = 0; i < requests; i++) {
		struct conn *c = &conns[MANY - 1 - i];

		c->work++;
		if (!run_conn(c))
			weft_bh_queue(&c->bh);
	}
	if (requests)
		model_raise_net_rx();
}

static void pass(void)
{
	pass_no++;
	runs_in_pass = 0;
	model_pass();
}

static int setup(void **state)
{
	int i;

	(void)state;
	memset(conns, 0, sizeof(conns));
	pass_no = requests = 0;
	model_init(network);
	weft_softirq_init();
	for (i = 0; i < MANY; i++)
		weft_bh_init(&conns[i].bh, bottom_half);
	return 0;
}

static int teardown(void **state)
{
	int i;

	(void)state;
	requests = 0;
	others_go_on = false;
	for (i = 0; i < MANY; i++)
		conns[i].work = 0;
	/* An idle connection raises no softirq. */
	for (i = 0; model_is_raised(); i++) {
		assert_true(i < 10);
		pass();
	}
	weft_softirq_exit();
	return 0;
}

static void queue(struct conn *c, int work)
{
	c->work += work;
	assert_true(weft_bh_queue(&c->bh));
}

/* Runs of the network use up whatever share there is. */
static void use_up_the_share(void)
{
	int i;

	for (i = 0; i < 2 * SHARE_RUNS; i++)
		if (weft_softirq_has_time())
			use_time();
	assert_false(weft_softirq_has_time());
}

static void a_queued_bottom_half_runs_in_the_next_pass(void **state)
{
	(void)state;
	queue(&conns[0], 1);
	pass();
	assert_int_equal(conns[0].runs, 1);
	assert_false(model_is_raised());
}

static void a_bottom_half_queued_twice_runs_once(void **state)
{
	(void)state;
	queue(&conns[0], 1);
	assert_false(weft_bh_queue(&conns[0].bh));
	pass();
	assert_int_equal(conns[0].runs, 1);
	queue(&conns[0], 1);
	pass();
	assert_int_equal(conns[0].runs, 2);
}

static void comes_back_meanwhile(struct weft_bh *bh)
{
	struct conn *c = container_of(bh, struct conn, bh);

	/* Its run goes on, and will look. */
	assert_false(weft_bh_queue(bh));
	run_conn(c);
	weft_bh_over(bh);
}

static void a_bottom_half_queued_while_it_runs_does_not_run_again(void **state)
{
	(void)state;
	weft_bh_init(&conns[0].bh, comes_back_meanwhile);
	queue(&conns[0], 1);
	pass();
	assert_int_equal(conns[0].runs, 1);
	assert_false(model_is_raised());
}

static void a_bottom_half_that_requeues_itself_runs_once_in_a_pass(void **state)
{
	int i;

	(void)state;
	queue(&conns[0], MANY);
	for (i = 0; i < 20; i++) {
		pass();
		assert_in_range(runs_in_pass, 0, 1);
	}
	/* With no other connection, the opener takes up to every second pass. */
	assert_in_range(conns[0].runs, 10, 20);
}

static void a_share_that_is_used_up_is_renewed_at_once(void **state)
{
	(void)state;
	use_up_the_share();
	queue(&conns[0], 1);
	pass();
	pass();
	assert_int_equal(conns[0].runs, 1);
}

static void deferred_work_runs_before_the_network(void **state)
{
	int i;

	(void)state;
	requests = MANY / 2;
	model_raise_net_rx();
	use_up_the_share();
	queue(&conns[0], 1);
	for (i = 0; i < 3; i++)
		pass();
	assert_int_equal(conns[0].runs, 1);
	/* And so on. */
	for (i = 0; i < MANY; i++) {
		queue(&conns[0], 1);
		/* Behind all that the network put off. */
		while (conns[0].work && pass_no < 100 * MANY)
			pass();
	}
	assert_in_range(pass_no, MANY, 2 * MANY * (1 + (1 + requests) / SHARE_RUNS) + 3);
}

/* However often the share ends amid them. */
static void all_have_their_turn(int n)
{
	int i, k;

	for (i = 0; i < n; i++)
		queue(&conns[i], 1000);
	for (k = 0; k < 10 * n; k++) {
		int least = conns[0].runs, most = least;

		pass();
		for (i = 0; i < n; i++) {
			least = conns[i].runs < least ? conns[i].runs : least;
			most = conns[i].runs > most ? conns[i].runs : most;
		}
		assert_in_range(most - least, 0, 1);
	}
	assert_true(conns[n - 1].runs >= 10);
}

static void few_connections_all_run(void **state)
{
	(void)state;
	all_have_their_turn(3);
}

static void many_connections_all_run(void **state)
{
	(void)state;
	all_have_their_turn(MANY);
}

/* ---- beside others ---- */

/* They queue themselves for ever, and see what weft did since their last turn. */
static struct work_struct other_work;
static struct tasklet_struct other_tasklet;
static int turns, runs_before, longest;

static void other_has_turn(void)
{
	int i, runs = 0;

	for (i = 0; i < MANY; i++)
		runs += conns[i].runs;
	if (runs - runs_before > longest)
		longest = runs - runs_before;
	runs_before = runs;
	turns++;
}

static void other_works(struct work_struct *work)
{
	other_has_turn();
	if (others_go_on)
		queue_work(system_bh_wq, work);
}

static void other_tasklet_runs(struct tasklet_struct *t)
{
	other_has_turn();
	if (others_go_on)
		tasklet_schedule(t);
}

static void others_wait_for_a_share(void)
{
	int i;

	others_go_on = true;
	turns = runs_before = longest = 0;
	requests = MANY / 2;
	model_raise_net_rx();
	for (i = 0; i < MANY / 2; i++)
		queue(&conns[i], 1000);
	for (i = 0; i < MANY; i++) {
		pass();
		/* What the network had left, and a new one. */
		assert_in_range(runs_in_pass, 0, 2 * SHARE_RUNS);
	}
	assert_true(turns >= MANY);
	assert_in_range(longest, 1, 2 * SHARE_RUNS);
}

static void no_work_of_others_waits_longer(void **state)
{
	(void)state;
	INIT_WORK(&other_work, other_works);
	queue_work(system_bh_wq, &other_work);
	others_wait_for_a_share();
}

/* As another driver's: each time it runs it posts to idle connections what leaves a little of a share. */
static void other_works_and_posts(struct work_struct *work)
{
	int i;

	for (i = 0; others_go_on && i < SHARE_RUNS - 1; i++)
		if (weft_bh_queue(&conns[i].bh))
			conns[i].work++;
	other_works(work);
}

static void posting_from_another_work_gets_no_new_share(void **state)
{
	int i;

	(void)state;
	others_go_on = true;
	turns = 0;
	INIT_WORK(&other_work, other_works_and_posts);
	queue_work(system_bh_wq, &other_work);
	for (i = 0; i < MANY; i++) {
		pass();
		assert_in_range(runs_in_pass, 0, 2 * SHARE_RUNS);
	}
	assert_true(turns >= MANY);
}

static void no_tasklet_of_others_waits_longer(void **state)
{
	(void)state;
	tasklet_setup(&other_tasklet, other_tasklet_runs);
	tasklet_schedule(&other_tasklet);
	others_wait_for_a_share();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queued_bottom_half_runs_in_the_next_pass),
		TEST(a_bottom_half_queued_twice_runs_once),
		TEST(a_bottom_half_queued_while_it_runs_does_not_run_again),
		TEST(a_bottom_half_that_requeues_itself_runs_once_in_a_pass),
		TEST(a_share_that_is_used_up_is_renewed_at_once),
		TEST(deferred_work_runs_before_the_network),
		TEST(few_connections_all_run),
		TEST(many_connections_all_run),
		TEST(no_work_of_others_waits_longer),
		TEST(posting_from_another_work_gets_no_new_share),
		TEST(no_tasklet_of_others_waits_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
