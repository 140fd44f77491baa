# shellcheck shell=bash
# Memory runs out in the kernel: weft-faults lives through a connection again and again, each time
# with another allocation failing (failslab and fail_page_alloc, by /proc/thread-self/fail-nth), or
# with the kernel's workers, which run the connection manager and weft's own work, failing now and
# then (failslab, by /proc/PID/make-it-fail). No report, no leak, and it works again afterwards.
# Only kernels with fault injection have something to test.
# Environment: FAULTS  how many are injected in the program (300)

tests() {
	[[ ${KERNEL-} == *debug ]] || return 0
	cat <<-END
		each-allocation-of-a-program-fails program ${FAULTS:-300}
		allocations-of-kernel-workers-fail workers $((${FAULTS:-300} / 10))
	END
}

knob() { echo "$3" >"/sys/kernel/debug/$1/$2" || fail "no $1/$2"; }

# Faults that may sleep, too; nothing is said of each, since the log is what the test reads.
allow_faults() {
	local what
	for what in failslab fail_page_alloc; do
		knob $what verbose 0
		knob $what ignore-gfp-wait N
		knob $what task-filter Y
		knob $what times -1
	done
	knob fail_page_alloc min-order 0
	# Pages of programs are not weft's.
	knob fail_page_alloc ignore-gfp-highmem Y
}

program() {
	pair weft:weft
	allow_faults
	TIME=900 run weft-faults -n "$1" "$IP_A"
	cat "$TEST_DIR/weft-faults.log"
}

# mark_workers 0|1: which of the kernel's threads may fail. New ones come all the time.
mark_workers() {
	local dir comm
	for dir in /proc/[0-9]*; do
		read -r comm 2>/dev/null <"$dir/comm" || continue
		[[ $comm != kworker/u* && $comm != kworker/*cm* ]] || echo "$1" 2>/dev/null >"$dir/make-it-fail"
	done
}

workers() {
	local pid
	pair weft:weft
	allow_faults
	# Counted down with each fault.
	knob failslab times 1000000
	knob failslab probability 5
	weft-faults -w -n "$1" "$IP_A" >"$TEST_DIR/weft-faults.log" 2>&1 &
	pid=$!
	until is_over $pid; do
		mark_workers 1
		pause 0.2
	done
	knob failslab probability 0
	mark_workers 0
	cat "$TEST_DIR/weft-faults.log"
	wait $pid || fail "$(tail -n 1 "$TEST_DIR/weft-faults.log")"
	echo "$((1000000 - $(cat /sys/kernel/debug/failslab/times))) faults"
	run weft-faults -w -n 1 "$IP_A"
	grep -q ' 0 failed' "$TEST_DIR/weft-faults.log" || fail "it does not work any more"
}
