# shellcheck shell=bash
# Memory runs out in the kernel (failslab and fail_page_alloc): weft-faults sets up and ends a
# connection again and again. In turn, each allocation in its system calls fails
# (/proc/thread-self/fail-nth). By chance, allocations of weft and of TCP for weft fail, also in
# workers, in softirq and for consumers in the kernel. No report, no leak, and it works afterwards.
# Other workers are exempt: if one's allocation for a connection request fails, rdma_ucm destroys
# the request's id inside that id's own handler, which then waits for itself for ever.
# Needs a kernel with fault injection.
# Environment: FAULTS   how many are injected in turn (300)
#              CHANCES  how many by chance (100)

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=300

tests() {
	[[ ${KERNEL-} == *debug ]] || return 0
	cat <<-END
		each-allocation-of-a-program-fails program ${FAULTS:-300}
		allocations-of-weft-fail-by-chance chance ${CHANCES:-100}
		no-memory-for-the-stage-loses-no-octet stage
		an-answer-that-tcp-refuses-holds-no-lock refused_answers
	END
}

program() {
	pair weft:weft
	anywhere
	allow_faults Y -1
	TIME=1400 run weft-faults -n "$1" "$IP_A"
	cat "$TEST_DIR/weft-faults.log"
}

anywhere() {
	knobs require-start 0
	knobs require-end 0xffffffffffffffff
	knobs reject-start 0
	knobs reject-end 0
}

# Only below a function of weft's; and not the event of a completion, which uverbs drops without
# a word where it has no memory for it: its consumer then waits for ever, over any device.
below_weft() {
	local first last
	knobs stacktrace-depth 32
	read -r first last <<<"$(text_of_weft)"
	knobs require-start "$first"
	knobs require-end "$last"
	read -r first last <<<"$(text_of ib_uverbs_comp_handler)"
	knobs reject-start "$first"
	knobs reject-end "$last"
}

# Only where weft asks for memory to stage what is not a whole FPDU.
below_stage() {
	local first last
	knobs stacktrace-depth 32
	read -r first last <<<"$(text_of weft_host_chunk)"
	[ -n "$last" ] || fail "no weft_host_chunk"
	knobs require-start "$first"
	knobs require-end "$last"
	knobs reject-start 0
	knobs reject-end 0
}

# With Markers all goes through the stage, in several chunks if FPDUs are long. Every other one is
# not to be had.
stage() {
	local dev
	pair weft:weft 9000
	for dev in "$DEV_A" "$DEV_B"; do
		option "$dev" markers 1 || fail "no Markers"
	done
	start_b server weft-verify -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	below_stage
	allow_faults N -1
	knob failslab probability 50
	TIME=100 run weft-verify -p 7471 -m 4 "$IP_B"
	knob failslab probability 0
	finish_b server
	for dev in "$DEV_A" "$DEV_B"; do
		echo "$dev: $(count "$dev" rx_no_memory) reads without memory"
		[ "$(count "$dev" rx_no_memory)" -gt 10 ] || fail "$dev lacked no memory"
		[ "$(cat "/sys/class/infiniband/$dev/ports/1/hw_counters"/term_* | sort -u)" = 0 ] ||
			fail "a Terminate"
	done
}

# TCP calls write_space() out of data_ready() if it has no memory for a Read Response. The driver
# asserts that no callback reads sk_callback_lock again: lockdep would report it in the log.
refused_answers() {
	local first last
	pair weft:weft
	start_b server weft-verify -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	knobs stacktrace-depth 32
	read -r first last <<<"$(text_of weft_tcp_send)"
	[ -n "$last" ] || fail "no weft_tcp_send"
	knobs require-start "$first"
	knobs require-end "$last"
	knobs reject-start 0
	knobs reject-end 0
	allow_faults N 300
	(TIME=100 run weft-verify -p 7471 -m 16 "$IP_B") >"$TEST_DIR/client" &
	# Not before: a start-up frame that TCP has no memory for ends the connecting.
	wait_for 60 has_sent_fpdus || fail "no FPDU was sent"
	knobs probability 20
	wait $! || fail "$(sed 's/^FAIL: //' "$TEST_DIR/client")"
	knobs probability 0
	finish_b server
	[ "$(left)" -lt 200 ] || fail "only $((300 - $(left))) allocations failed"
}

has_sent_fpdus() { [ "$(count "$DEV_A" tx_fpdus)" -gt 0 ]; }

left() { cat /sys/kernel/debug/failslab/times; }

# chance TIMES: so many of failslab, and as many of fail_page_alloc at most.
chance() {
	local was batch=0 rc=0
	pair weft:weft
	below_weft
	allow_faults N "$1"
	while [ "$(left)" != 0 ]; do
		was=$(left)
		if [ $((batch++ % 5)) = 0 ]; then
			verify_by_chance
		else
			knobs probability 1
			TIME=1400 run weft-faults -l 20 "$IP_A"
			knobs probability 0
			tail -n 1 "$TEST_DIR/weft-faults.log"
		fi
		[ "$(left)" -lt "$was" ] || fail "nothing fails any more"
	done
	# What a kernel's consumer makes of it is its own matter.
	knobs times 50
	knobs probability 1
	klog_mark kmod
	within 150 load weft_kmod addr="$IP_A" wait_ms=5000 || rc=$?
	knobs probability 0
	[ $rc != 0 ] || rmmod weft_kmod
	[ $rc != 124 ] || fail "weft_kmod does not end"
	[ "$(left)" -lt 50 ] || fail "nothing fails below weft_kmod"
	klog_since kmod | grep -q 'weft_kmod: ok' || fail "nothing of weft_kmod works"
	echo "$((50 - $(left))) faults below weft_kmod"
	TIME=100 run weft-faults -n 1 "$IP_A"
}

runs_or_is_over() { is_over "$1" || ! has_in_rts 0; }

# Allocations fail on an established connection: no octet is wrong, and no program hangs.
verify_by_chance() {
	local rc=0 client
	rm -f "$TEST_DIR/server.rc"
	start_b server weft-verify -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	weft-verify -p 7471 -m 64 "$IP_B" >"$TEST_DIR/verify.log" 2>&1 </dev/null &
	client=$!
	wait_for 60 runs_or_is_over $client || fail "no connection: $(tail -n 1 "$TEST_DIR/verify.log")"
	knobs probability 1
	wait_for 100 is_over $client || fail "weft-verify waits for ever"
	knobs probability 0
	wait $client || rc=$?
	finish_b server
	[ $rc = 0 ] || fail "weft-verify ended with $rc; $(tail -n 1 "$TEST_DIR/verify.log")"
}
