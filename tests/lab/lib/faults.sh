# shellcheck shell=bash
# Failing allocations in the kernel: failslab and fail_page_alloc. See lib.sh; stop_faults() is in
# clean-up.sh.

knob() { echo "$3" >"/sys/kernel/debug/$1/$2" || fail "no $1/$2"; }

# knobs NAME VALUE: for allocations of both kinds.
knobs() {
	local what
	for what in failslab fail_page_alloc; do knob $what "$1" "$2"; done
}

# Also allocations that may sleep. They are not logged, because the test reads the log.
# allow_faults TASK_FILTER TIMES
allow_faults() {
	knobs verbose 0
	knobs ignore-gfp-wait N
	knobs task-filter "$1"
	knobs times "$2"
	knobs interval 1
	knob fail_page_alloc min-order 0
	# Pages of programs are not weft's.
	knob fail_page_alloc ignore-gfp-highmem Y
}

# Where weft's functions are: FIRST LAST.
text_of_weft() {
	awk '$2 ~ /^[tT]$/ && $NF == "[weft]" {print "0x" $1}' /proc/kallsyms | sort |
		sed -n '1p; $p' | paste -sd ' '
}

# text_of SYMBOL, which the kernel has built in: FIRST BEHIND.
text_of() {
	awk '{print "0x" $1, $3}' /proc/kallsyms | sort |
		awk -v s="$1" 'at {if ($1 != at) {print at, $1; exit}} $2 == s {at = $1}'
}
