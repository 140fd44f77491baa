# shellcheck shell=bash
# proto and core by themselves in the kernel: the tests of tests/engine and tests/stacks as KUnit suites
# (tests/kunit), under KASAN and lockdep.

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=1300

# The fewest tests that must pass. Raise it with what you add to tests/engine and tests/stacks.
FLOOR=900

tests() {
	# The kernel of Debian 12 has no KUnit.
	[ "${KERNEL-}" = stock ] || echo "proto-and-core-pass-in-the-kernel unit_tests"
}

# ktap PATTERN: the results of tests that match, whose lines are indented.
ktap() { grep -E "^ +$1" "$TEST_DIR/ktap"; }

# What cannot run there: threads, signals, longjmp(), and the programs in tests/kunit/left_out.c.
skipped() {
	cat <<-'END'
		a_batch_left_at_any_piece_holds_nothing
		a_batch_that_is_whole_can_be_broken_off
		a_connection_broken_off_is_over_with_its_reset
		a_header_that_changes_meanwhile_is_judged_as_it_was_copied
		a_length_that_changes_meanwhile_is_read_once
		a_reader_sees_no_part_of_an_aligned_flag
		a_run_broken_off_fails_the_qp
		a_run_broken_off_is_the_last
		a_run_broken_off_lets_all_go
		a_scribbling_user_harms_no_other
		crc
		data
		holders
		races
		rings
		what_a_program_polls_is_stored_last
	END
}

unit_tests() {
	local rc=0 passed limit
	klog_mark kunit
	# shellcheck disable=SC2154,SC2086 # from run.sh; a list
	modprobe -d "$MODULES" -a $DEPS_weft_kunit || fail "no $DEPS_weft_kunit"
	# insmod sleeps through each test; one lasts minutes, and KUnit ends it after five.
	read -r limit </proc/sys/kernel/hung_task_timeout_secs
	echo 0 >/proc/sys/kernel/hung_task_timeout_secs
	within 1200 insmod "${KO_weft_kunit:?}" || rc=$?
	echo "$limit" >/proc/sys/kernel/hung_task_timeout_secs
	klog_since kunit | sed 's/^\[[^]]*\] //' >"$TEST_DIR/ktap"
	[ $rc = 0 ] || fail "insmod ended with $rc"
	rmmod weft_kunit kunit
	! grep -q '^ *not ok' "$TEST_DIR/ktap" || fail "$(ktap 'not ok' | head -n 3)"
	passed=$(ktap 'ok [0-9]+ ' | grep -vc '# SKIP')
	echo "$passed tests passed"
	[ "$passed" -ge $FLOOR ] || fail "$passed tests passed, $FLOOR must"
	skipped | sort >"$TEST_DIR/may-skip"
	ktap 'ok .*# SKIP' | sed 's/^ *ok [0-9]* //; s/ # SKIP.*//' | sort >"$TEST_DIR/skipped"
	diff "$TEST_DIR/may-skip" "$TEST_DIR/skipped" ||
		fail "other tests were skipped than this suite lists"
}
