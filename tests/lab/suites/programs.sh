# shellcheck shell=bash
# weft's own programs (tests/progs) over a pair: does a program that scribbles over its rings stay
# the only one that suffers, does a stranger's nonsense. (weft-verify has a suite of its own.)

PAIRS=${PAIRS:-weft:weft}

tests() {
	# These know weft's rings, and weft's promises. (siw, for one, resizes nothing.)
	[[ $PAIRS != *weft:weft* ]] || echo "verbs verbs weft:weft"
	# Debian's kernel has memory cgroups, user mode has not.
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != stock ]] ||
		echo "rings-count-for-their-cgroup rings_count weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "spoilt-rings spoilt_rings weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-garbage mpa_garbage weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-edges mpa_edges weft:weft"
}

# tap_run COMMAND [ARG...]: a program that prints TAP; its first failure is the reason.
tap_run() {
	local log=$TEST_DIR/$1.log rc=0
	timeout -k 2 170 "$@" >"$log" 2>&1 </dev/null || rc=$?
	! grep -q '^not ok' "$log" || fail "$(grep -m 1 '^not ok' "$log")"
	[ $rc = 0 ] || fail "$1 ended with $rc; $(tail -n 1 "$log")"
}

# Both ends on one machine.
verbs() {
	pair "$1"
	tap_run weft-verbs "$IP_A"
}

# The largest CQ and SRQ are 16 MB each; the program itself is small.
rings_count() {
	local group=/run/cgroup/rings peak
	mkdir -p /run/cgroup
	mountpoint -q /run/cgroup || mount -t cgroup2 none /run/cgroup || fail "no cgroups"
	echo +memory >/run/cgroup/cgroup.subtree_control || fail "no memory cgroups"
	mkdir -p $group
	pair "$1"
	# shellcheck disable=SC2016 # for the inner shell
	run bash -c 'echo $$ >"$1/cgroup.procs" && exec weft-verbs "$2" the-largest-queues-can-be-had' \
		in $group "$IP_A"
	read -r peak <$group/memory.peak
	rmdir $group
	[ "$peak" -gt $((32 << 20)) ] || fail "only $peak bytes were counted"
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
