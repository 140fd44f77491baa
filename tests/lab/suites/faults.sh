# shellcheck shell=bash
# Memory runs out in the kernel: weft-faults lives through a connection again and again, each time
# with another allocation failing (failslab and fail_page_alloc, by /proc/thread-self/fail-nth). No
# report, no leak, and it works again afterwards.
# Kernel workers are left alone: where one's allocation fails for a connection request, rdma_ucm
# destroys the request's id inside that id's own handler and waits for itself for ever.
# Only kernels with fault injection have something to test.
# Environment: FAULTS  how many are injected in the program (300)

tests() {
	[[ ${KERNEL-} == *debug ]] || return 0
	cat <<-END
		each-allocation-of-a-program-fails program ${FAULTS:-300}
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
	TIME=1400 run weft-faults -n "$1" "$IP_A"
	cat "$TEST_DIR/weft-faults.log"
}
