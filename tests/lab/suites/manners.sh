# shellcheck shell=bash
# weft on b connects to, and accepts from, a peer that behaves like hardware: weftspec's self-peer on a, with
# the manners of irdma, cxgb4, RNICs from before MPA revision 2, and SMB Direct. weft's reflector on b moves data.

# weft-hwtest starts sixteen programs, one after the other.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=400

tests() {
	[ "${KERNEL-}" != rootless ] || echo weft-hwtest-finds-weft-run-in-order hwtest_passes
	cat <<-'END'
		irdma-connects-and-moves-data moves_both_ways irdma
		cxgb4-connects-and-moves-data moves_both_ways cxgb4
		mpa-v1-with-depths-in-private-data-moves-data moves_both_ways mpa1 mpa_revision=1
		old-cifs-with-depths-in-its-cpus-order-moves-data moves_both_ways cifs-le
		windows-without-private-data-moves-data moves_both_ways windows-rev2
		irdma-with-an-unsupported-rtr refused_by irdma send caller REJECTED
		cxgb4-with-an-unsupported-rtr refused_by cxgb4 write caller CONNECT_ERROR
	END
}

# calls MANNER PATTERN: the self-peer connects to the reflector; its last line matches PATTERN.
calls() {
	timeout -k 2 60 weftspec-self-peer --drive --manner "$1" --connect "$IP_B:7471" \
		>"$TEST_DIR/call.log" 2>&1 </dev/null || true
	grep -qE "$2" "$TEST_DIR/call.log" || fail "called by $1: $(words "$TEST_DIR/call.log")"
}

# called MANNER: it listens, with the reflector on b to connect; until that has ended.
called() {
	local pid
	timeout -k 2 120 weftspec-self-peer --drive --manner "$1" --listen "$IP_A:7475" \
		>"$TEST_DIR/called.log" 2>&1 </dev/null &
	pid=$!
	wait_for 60 listening 7475 || fail "the self-peer does not listen"
	start_b caller weft-reflector -v --connect "$IP_A:7475"
	wait_for 90 test -s "$TEST_DIR/caller.rc" || fail "its caller does not end: $(words "$TEST_DIR/caller.log")"
	kill $pid 2>/dev/null || true
	wait $pid || true
}

# says_of_call LOG PATTERN
says_of_call() {
	grep -qE "$2" "$TEST_DIR/$1.log" ||
		fail "no '$2': $(words "$TEST_DIR/called.log"); $(words "$TEST_DIR/caller.log")"
}

# moves_both_ways MANNER [OPTION=VALUE]: in either role. The option is for weft's own call.
moves_both_ways() {
	pair weft:weft
	start_b reflector weft-reflector -v --listen "$IP_B:7471"
	wait_listen_b 7471
	calls "$1" '^moved$'
	case ${2-} in *=*) set_option_b "${2%%=*}" "${2#*=}" ;; esac
	called "$1"
	says_of_call called '^moved$'
}

# refused_by MANNER RTR LOG PATTERN: weft has this kind alone. A call of the hardware fails at once,
# and weft goes on; of a call of weft's the log says the pattern.
refused_by() {
	pair weft:weft
	set_option_b rtr "$2"
	start_b reflector weft-reflector -v --listen "$IP_B:7471"
	wait_listen_b 7471
	calls "$1" '^not connected$'
	calls none '^moved$'
	called "$1"
	says_of_call "$3" "$4"
}

# weft-run stands in the RNIC's place, too.
hwtest_passes() {
	local out=$TEST_DIR/hwtest.log
	pair weft:weft
	PATH=${PATH#*:} timeout -k 5 380 "$WEFT_TOP/scripts/weft-hwtest" --on 'bash -c' --path "$WEFT_TOP/build/bin" \
		--prefix 'weft-run --device=iwarp' --rows MPA-2 --here "$IP_A" --output "$TEST_DIR/report.tar.xz" "$IP_B" \
		>"$out" 2>&1 || fail "$(words "$out")"
	[ "$(grep -cE '^(setup|responder|initiator|rping|perftest) +pass' "$out")" = 5 ] || fail "$(words "$out")"
}
