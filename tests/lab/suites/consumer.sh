# shellcheck shell=bash
# A kernel consumer: tests/kmod has both ends of its connections in one module, over machine
# a's device. Loading it runs its cases.

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS != *weft:weft* ]] || echo "kernel-consumer consumer weft:weft"
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
