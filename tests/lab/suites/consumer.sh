# shellcheck shell=bash
# A kernel consumer: tests/kmod has both ends of its connections in one module, over machine
# a's device. Loading it runs its cases. And what the rest of the kernel notices of weft.

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS != *weft:weft* ]] || echo "kernel-consumer consumer weft:weft"
	# An emulated CPU is slow to no purpose.
	[[ $PAIRS != *weft:weft* || ${KERNEL-} = stock ]] ||
		echo "a-deep-flush-keeps-no-softirq-waiting deep_flush weft:weft"
}

consumer() {
	local rc=0
	pair "$1"
	klog_mark kmod
	within 120 load weft_kmod addr="$IP_A" || rc=$?
	klog_since kmod | grep -o 'weft_kmod: .*' >"$TEST_DIR/cases"
	[ $rc = 0 ] || fail "$(grep -m 1 'not ok' "$TEST_DIR/cases" || echo "insmod ended with $rc")"
	rmmod weft_kmod
	# As many as the table has: a module that ran nothing proves nothing.
	[ "$(grep -c ': ok' "$TEST_DIR/cases")" = "$(grep -c '^	{ "' "$WEFT_TOP/tests/kmod/cases.c")" ] ||
		fail "not every case ran"
}

# Both ends' 16384 receives come back because of a peer, so in softirq. A flush in one go kept
# others waiting for 8 to 12 ticks of a millisecond, each time.
deep_flush() {
	local rounds=5 rc=0 long longest
	pair "$1"
	insmod "${KO_weft_kmod%/*}/weft_kwait.ko" || fail "no weft_kwait.ko"
	within 60 deep-flush "$IP_A" $rounds || rc=$?
	read -r long </sys/module/weft_kwait/parameters/long_waits
	read -r longest </sys/module/weft_kwait/parameters/longest
	rmmod weft_kwait
	[ $rc = 0 ] || fail "deep-flush ended with $rc"
	echo "the longest wait was $longest ms, $long were longer than 4"
	# A busy host may be to blame for one or two.
	[ "$long" -lt $rounds ] || fail "$long waits for softirq were longer than 4 ms"
}
