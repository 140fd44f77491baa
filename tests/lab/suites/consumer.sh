# shellcheck shell=bash
# A kernel consumer: tests/kmod has both ends of its connections in one module, over machine
# a's device. Loading it runs its cases. And weft's effect on the rest of the kernel.

PAIRS=${PAIRS:-weft:weft}

# Many cases, in a machine that may be emulated or checked.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=300

tests() {
	[[ $PAIRS != *weft:weft* ]] || echo "kernel-consumer consumer weft:weft"
	[[ $PAIRS = *weft:weft* ]] || return 0
	# An emulated CPU is slow to no purpose.
	[ "${KERNEL-}" = stock ] || echo "a-deep-flush-comes-back-in-order deep_flush weft:weft"
	# User mode has no kprobes.
	[ "${KERNEL-}" != stock ] || echo "answers-are-sent-without-the-callback-lock answers weft:weft"
	case ${KERNEL-} in
	# Tracepoints tell how much a softirq sends. KASAN takes five to ten times as long for that.
	*debug) echo "sends-of-300-connections-stay-within-softirqs-share bulk_share weft:weft" ;;
	esac
}

consumer() {
	local rc=0
	pair "$1"
	# Some cases post much behind what waits for a receive.
	option "$DEV_A" rnr_timeout_ms 30000 || fail "no long patience"
	klog_mark kmod
	within 250 load weft_kmod addr="$IP_A" || rc=$?
	klog_since kmod | grep -o 'weft_kmod: .*' >"$TEST_DIR/cases"
	[ $rc = 0 ] || fail "$(grep -m 1 'not ok' "$TEST_DIR/cases" || echo "insmod ended with $rc")"
	rmmod weft_kmod
	# As many as the table has: a module that ran nothing proves nothing.
	[ "$(grep -c ': ok' "$TEST_DIR/cases")" = "$(grep -c '^	{ "' "$WEFT_TOP/tests/kmod/cases.c")" ] ||
		fail "not every case ran"
}

# A user's: tests/kmod/turns.c counts how much of a kernel consumer's goes by while others wait.
deep_flush() {
	pair "$1"
	within 130 deep-flush "$IP_A" 2 || fail "deep-flush ended with $?"
	option "$DEV_A" rnr_timeout_ms 30000 && option "$DEV_B" rnr_timeout_ms 30000 || fail "no long patience"
	within 130 deep-flush "$IP_A" 2 "done" || fail "deep-flush done ended with $?"
}

# b's server reads a's memory, and a answers from TCP's callback. On PREEMPT_RT a callback that TCP calls for want of
# memory would wait there for a writer that waits for the first one.
answers() {
	local p=/sys/module/weft_kwatch/parameters
	pair "$1"
	insmod "${KO_weft_kmod%/*}/weft_kwatch.ko" || fail "no weft_kwatch.ko"
	together 7174 rping -s -a "$IP_B" -C 50 -S 4000 -V -- rping -c -a "$IP_B" -C 50 -S 4000 -V
	echo "free: $(<$p/free), taken: $(<$p/taken)"
	# Some are sent by a process that owns the socket, or by the bottom half.
	[ "$(<$p/free)" -ge 10 ] || fail "only $(<$p/free) answers were seen"
	[ "$(<$p/taken)" = 0 ] || fail "$(<$p/taken) answers were sent with the lock"
	rmmod weft_kwatch
}

# What the network holds back comes in bursts, and asks for answers in bursts.
bulk_share() {
	local rc=0 p limit
	pair "$1"
	tc qdisc replace dev lo root netem delay 4ms limit 100000 || fail "netem cannot be had"
	insmod "${KO_weft_kmod%/*}/weft_kruns.ko" || fail "no weft_kruns.ko"
	within 250 bulk-crowd "$IP_A" 300 4 || rc=$?
	for p in /sys/module/weft_kruns/parameters/*; do read -r "${p##*/}" <"$p"; done
	rmmod weft_kruns
	tc qdisc del dev lo root
	[ $rc = 0 ] || fail "bulk-crowd ended with $rc"
	# tests/kmod/runs.c has the limits of one burst: before the clock is read, by the connection that
	# exhausts that limit, in a millisecond, and by the next connection.
	# shellcheck disable=SC2154 # parameters of that module
	limit=$((128 * 1024 + 64 * 1024 + octets_a_ms + 64 * 1024))
	# shellcheck disable=SC2154
	echo "$most_octets octets in $most_us us at most, $limit may be; $sending_runs of $runs runs sent;" \
		"the longest took $longest_us us and sent $longest_octets"
	[ "$sending_runs" -ge 100 ] && [ "$most_octets" -gt $((128 * 1024)) ] || fail "softirqs sent too little"
	[ "$most_octets" -le "$limit" ] || fail "a softirq sent $most_octets octets, $limit may be"
}
