# shellcheck shell=bash
# Does the lab itself detect faults? Runs last in a boot.

PAIRS=${PAIRS:-weft:weft}

tests() {
	echo "b-returns-output-and-status b_answers"
	echo "both-ends-have-the-mtu-of-the-pair same_mtu"
	echo "log-scan-sees-a-warning scan_sees"
	# Lockdep ends itself at its first report, and finds nothing from then on.
	case ${KERNEL-} in
	6.12-debug) echo "lockdep-still-awake lockdep_awake" ;;
	# Only Debian's kernel can: no_memory() in lib/clean-up.sh.
	stock) echo "slabs-know-what-weft-allocated slabs_know" ;;
	esac
}

b_answers() {
	local out rc=0
	out=$(on_b bash -c 'echo "a  b"; exit 3') || rc=$?
	[ "$rc:$out" = "3:a  b" ] || fail "got $rc:$out"
}

same_mtu() {
	local mtu side
	for mtu in 9000 1500; do
		pair "${PAIRS%% *}" $mtu
		for side in a b; do
			on $side ip link show eth0 | grep -q "mtu $mtu " || fail "$side has not $mtu"
		done
		rdma link del "$DEV_A"
		at b rdma link del "$DEV_B"
	done
}

scan_sees() {
	echo 'WARNING: CPU: 0 PID: 1 at nowhere.c:1' | klog_faults >/dev/null || fail "not seen"
	echo 'siw: loading out-of-tree module taints kernel.' | klog_faults && fail "seen for nothing"
	return 0
}

lockdep_awake() {
	grep -q 'debug_locks: *1' /proc/lockdep_stats || fail "lockdep has turned itself off"
}

# A program that waits has a memory region.
slabs_know() {
	pair weft:weft
	ibv_rc_pingpong -d "$DEV_A" -g 0 >"$TEST_DIR/pingpong.log" 2>&1 </dev/null &
	wait_for 60 listening 18515 || fail "no ibv_rc_pingpong; $(tail -n 1 "$TEST_DIR/pingpong.log")"
	weft_slabs || fail "the slabs keep no account"
}
