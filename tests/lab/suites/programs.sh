# shellcheck shell=bash
# weft's own programs (tests/progs) over a pair: does every byte arrive, does a program that
# scribbles over its rings stay the only one that suffers, does a stranger's nonsense.
#
# Over siw the verifier fails now and then (siw answers zero-length Reads wrongly; one failure,
# a flush without a Terminate, is not explained yet): ask for it with
# PAIRS='weft:siw siw:weft' scripts/lab/run.sh vm programs.

PAIRS=${PAIRS:-weft:weft}

tests() {
	local pair
	for pair in $PAIRS; do
		echo "verify-${pair/:/-}-mtu1500 verify $pair 1500"
		echo "verify-${pair/:/-}-mtu9000 verify $pair 9000"
	done
	# These know weft's rings, and weft's promises.
	[[ $PAIRS != *weft:weft* ]] || echo "spoilt-rings spoilt_rings weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-garbage mpa_garbage weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-edges mpa_edges weft:weft"
}

verify() {
	local opts=(-p 7471)
	# siw answers a zero-length Read behind another with a stale length: one at a time.
	[[ $1 != *siw* ]] || opts+=(-w 1)
	pair "$1" "$2"
	start_b server weft-verify -l -b "$IP_B" "${opts[@]}"
	wait_listen_b 7471
	TIME=150 run weft-verify "${opts[@]}" -m 4 "$IP_B"
	finish_b server
}

# tap_run COMMAND [ARG...]: a program that prints TAP; its first failure is the reason.
tap_run() {
	local log=$TEST_DIR/$1.log rc=0
	timeout -k 2 170 "$@" >"$log" 2>&1 </dev/null || rc=$?
	! grep -q '^not ok' "$log" || fail "$(grep -m 1 '^not ok' "$log")"
	[ $rc = 0 ] || fail "$1 ended with $rc; $(tail -n 1 "$log")"
}

spoilt_rings() {
	pair "$1"
	start_b server weft-badwqe -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	tap_run weft-badwqe -p 7471 "$IP_B"
}

mpa_garbage() {
	pair "$1"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	tap_run mpa-garbage "$IP_B" 7174
}

mpa_edges() {
	pair "$1"
	# What nobody answers is to end within the patience of the test.
	echo 4000 >"/sys/class/infiniband/$DEV_A/weft/startup_timeout_ms"
	tap_run mpa-edges "$IP_A" 7471
}
