# shellcheck shell=bash
# weft's own programs (tests/progs) over a pair. A program that scribbles over its rings, or a peer that
# sends garbage, must harm no other process. (weft-verify has a suite of its own.)

PAIRS=${PAIRS:-weft:weft}

# Fifty cases and more of one program, in a machine that may be emulated or checked.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=300

# How long a hostile program runs; longer where only make check-full runs it.
HOSTILE_SECONDS=20
[[ ${KERNEL-} != 7.2* ]] || HOSTILE_SECONDS=60

# Additions of each of twelve: four processes, by two ends of a connection and by the CPU.
ATOMICS=${ATOMICS:-3000}

tests() {
	# These know weft's rings, and weft's promises. (siw, for one, resizes nothing.)
	[[ $PAIRS != *weft:weft* ]] || echo "verbs verbs weft:weft"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != rootless ]] || echo "verbs-of-an-rnic verbs weft:weft iwarp"
	[[ $PAIRS != *weft:weft* ]] || echo "immediates-atomics-windows ops weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "events-of-an-rnic faces weft:weft iwarp"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != rootless ]] || echo "events-of-a-roce-device faces weft:weft roce"
	[[ $PAIRS != *weft:weft* ]] || echo "limits limits weft:weft"
	[ "${KERNEL-}" != rootless ] || printf '%s weft:weft\n' "waits-for-completions waits weft-waits" \
		"waits-of-one-thread-with-handlers waits weft-signals" "a-fork-while-a-queue-is-polled waits weft-forks" \
		"waits-beside-sockets-over-iwarp waits_with_sockets"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != rootless ]] ||
		echo "messages-and-regions-of-gigabytes limits weft:weft the-longest-message-arrives the-end-of-a-large-region-is-reached"
	[[ $PAIRS != *weft:weft* ]] || echo "no-atomic-is-lost-between-processes atomics $ATOMICS weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "late-accept late_accept weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "extended-verbs extended weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "interface abi weft:weft"
	# This host may have no exporter of dmabufs, and 6.1's maps nothing for the kernel.
	[[ $PAIRS != *weft:weft* || ${KERNEL-} = stock ]] ||
		[[ ${KERNEL-} = rootless && ! -e /dev/udmabuf ]] || echo "dmabufs dmabufs weft:weft"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} = @(stock|rootless) ]] ||
		echo "dmabufs-under-weft-run dmabufs_under_weft_run"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} = rootless ]] ||
		echo "dmabufs-that-may-move dmabufs_that_move weft:weft"
	# Debian's kernel has memory cgroups, user mode has not.
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != stock ]] ||
		echo "rings-count-for-their-cgroup rings_count weft:weft"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} != stock ]] ||
		echo "a-stage-counts-for-its-cgroup stage_counts weft:weft"
	[[ $PAIRS != *weft:weft* || ${KERNEL-} = rootless ]] ||
		echo "peers-that-stop-reading-pin-no-batch slow_peers weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "spoilt-rings spoilt_rings weft:weft"
	[[ $PAIRS != *weft:weft* ]] ||
		echo "scribbler-harms-only-itself hostile rings $HOSTILE_SECONDS weft:weft"
	[[ $PAIRS != *weft:weft* ]] ||
		echo "random-calls-harm-no-other-process hostile calls $HOSTILE_SECONDS weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-garbage mpa_garbage weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "mpa-edges mpa_edges weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "requests-come-in-the-order-of-connects connect_order weft:weft"
	[[ $PAIRS != *weft:weft* ]] || echo "a-burst-beyond-the-backlog-waits-its-turn connect_order weft:weft 12"
	[[ $PAIRS != *weft:weft* ]] || echo "ipv6-only-is-not-reached-by-ipv4 ipv6_only weft:weft"
}

# A program accepts later than any other step of the set-up may take.
late_accept() {
	pair "$1"
	option "$DEV_A" startup_timeout_ms 4000 || fail "no short time-out"
	tap_run weft-verbs "$IP_A" a-late-accept-is-waited-for
	grep -q '^ok' "$TEST_DIR/weft-verbs.log" || fail "no such case"
}

# verbs PAIR [FACE]: both ends on one machine, so a Terminate that goes out also comes in. But librdmacm
# moves the QPs of what looks like RoCE to ERR before it disconnects, and they read nothing then.
verbs() {
	local why in out
	pair "$1"
	[ -z "${2-}" ] || option "$DEV_A" device "$2"
	# Longer than a receive of a busy host may be late, and not for ever: one case waits for the end.
	option "$DEV_A" rnr_timeout_ms 5000 || fail "no patience for receives"
	tap_run weft-verbs "$IP_A"
	[ "$KERNEL$*" != "rootless$1" ] || return 0
	for why in ddp_bounds rdmap_bounds rdmap_access; do
		in=$(count "$DEV_A" term_in_$why)
		out=$(count "$DEV_A" term_out_$why)
		# A program that ends leaves its last ones unread.
		[ "$KERNEL" != rootless ] || [ "$in" != $((out - 1)) ] || in=$out
		if [ "${in:-0}" = 0 ] || [ "$in" != "$out" ]; then
			fail "Terminates for $why: $in came in of $out"
		fi
	done
}

ops() {
	pair "$1"
	tap_run weft-ops "$IP_A"
}

# faces PAIR FACE
faces() {
	pair "$1"
	[ "$KERNEL" != rootless ] || option "$DEV_A" device "$2"
	tap_run weft-faces "$IP_A" "$2"
}

# limits PAIR [CASE...]
limits() {
	local name
	pair "$1"
	[ $# -gt 1 ] || tap_run weft-limits "$IP_A"
	for name in "${@:2}"; do
		tap_run weft-limits "$IP_A" "$name"
		grep -q '^ok' "$TEST_DIR/weft-limits.log" || fail "no such case"
	done
}

# waits PROGRAM PAIR
waits() {
	pair "$2"
	tap_run "$1" "$IP_A"
}

# Whoever waits moves the octets there, too: its last case counts the wake-ups.
waits_with_sockets() {
	local log=$TEST_DIR/waits.log rc=0
	pair "$1"
	# shellcheck disable=SC2086 # a list
	timeout -k 2 $((TEST_TIMEOUT - 10)) $AS_USER "$WEFT_RUN" --sockets "$WEFT_TOP/build/bin/weft-waits" "$IP_A" \
		>"$log" 2>&1 </dev/null || rc=$?
	! grep -q '^not ok' "$log" || fail "$(grep -m 1 '^not ok' "$log")"
	[ $rc = 0 ] || fail "weft-waits ended with $rc; $(tail -n 1 "$log")"
	grep -q '^ok [0-9]* - whoever-waits-is-woken-alone' "$log" || fail "it has not counted wake-ups"
}

# atomics ADDS PAIR
atomics() {
	pair "$2"
	tap_run weft-atomics -n "$1" "$IP_A"
}

extended() {
	pair "$1"
	tap_run weft-extended "$IP_A"
}

abi() {
	pair "$1"
	tap_run weft-abi "$IP_A"
}

dmabufs() {
	pair "$1"
	tap_run weft-dmabuf "$IP_A"
}

# Their exporter is a module of tests/kmod.
dmabufs_that_move() {
	pair "$1"
	insmod "${KO_weft_kmod%/*}/weft_kexport.ko" || fail "no weft_kexport.ko"
	tap_run weft-exporter "$IP_A"
	rmmod weft_kexport || fail "a dmabuf is left"
}

# weft-run finds its own provider, and is no pair of this machine's devices.
dmabufs_under_weft_run() {
	local log=$TEST_DIR/weft-dmabuf.log
	env -u IBV_DRIVERS timeout -k 2 280 "$WEFT_TOP/build/bin/weft-run" weft-dmabuf 127.0.0.1 >"$log" 2>&1 ||
		fail "$(grep -m 1 '^not ok' "$log" || tail -n 1 "$log")"
}

# memory_cgroup PATH
memory_cgroup() {
	mkdir -p /run/cgroup
	mountpoint -q /run/cgroup || mount -t cgroup2 none /run/cgroup || fail "no cgroups"
	echo +memory >/run/cgroup/cgroup.subtree_control || fail "no memory cgroups"
	mkdir -p "$1"
}

# The largest CQ and SRQ are 16 MB each; the program itself is small.
rings_count() {
	local group=/run/cgroup/rings peak
	memory_cgroup $group
	pair "$1"
	# shellcheck disable=SC2016 # for the inner shell
	run bash -c 'echo $$ >"$1/cgroup.procs" && exec weft-verbs "$2" the-largest-queues-can-be-had' \
		in $group "$IP_A"
	read -r peak <$group/memory.peak
	rmdir $group
	[ "$peak" -gt $((32 << 20)) ] || fail "only $peak bytes were counted"
}

# TCP keeps 16 KB for a peer that takes nothing; a batch's memory would be 128.
slow_peers() {
	local wmem=/proc/sys/net/ipv4/tcp_wmem was kb
	pair "$1"
	option "$DEV_A" crc 0 || fail "no CRC option"
	was=$(<$wmem)
	echo 4096 16384 16384 >$wmem
	run slow-peers "$IP_A" 7471 100
	echo "$was" >$wmem
	kb=$(sed -n 's/.*peers: \(.*\) KB each/\1/p' "$TEST_DIR/slow-peers.log")
	echo "$kb KB each"
	[[ $kb -gt 4 && $kb -lt 64 ]] || fail "$kb KB for each peer"
}

kernel_memory() { sed -n 's/^kernel //p' "$1/memory.stat"; }

# 50 peers, of each 30 KB of half a message: read in softirq, whoever runs there.
stage_counts() {
	local group=/run/cgroup/stage go=/run/go before pid log=$TEST_DIR/slow-peers.log
	memory_cgroup $group
	pair "$1"
	option "$DEV_A" crc 0 || fail "no CRC option"
	mkfifo $go
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'echo $$ >"$1/cgroup.procs" && exec slow-peers -s "${@:2}"' in $group "$IP_A" 7471 50 \
		>"$log" 2>&1 <$go &
	pid=$!
	exec 9>$go
	wait_for 60 grep -q ready "$log" || fail "$(tail -n 1 "$log")"
	before=$(kernel_memory $group)
	echo >&9
	wait_for 60 grew $group "$before" $((50 * 30000)) ||
		fail "$(($(kernel_memory $group) - before)) octets are counted"
	echo "$(($(kernel_memory $group) - before)) octets"
	echo >&9
	exec 9>&-
	wait $pid || fail "slow-peers ended with $?"
	rm $go
	rmdir $group
}

# grew CGROUP BEFORE LEAST
grew() { [ $(($(kernel_memory "$1") - $2)) -ge "$3" ]; }

spoilt_rings() {
	pair "$1"
	start_b server weft-badwqe -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	tap_run weft-badwqe -p 7471 "$IP_B"
}

# innocent NAME: data of others, each byte checked.
innocent() {
	start_b "$1" weft-verify -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	run weft-verify -p 7471 -m 4 "$IP_B"
	finish_b "$1"
}

# hostile rings|calls SECONDS PAIR: while a program does its worst, others go on over the same two
# devices, and afterwards.
hostile() {
	local pid rc=0 rounds=0 opts=()
	pair "$3"
	start_b partner weft-hostile -l -b "$IP_B"
	wait_listen_b 7177
	[ "$KERNEL" != rootless ] || opts=(-w)
	weft-hostile "${opts[@]}" -t "$2" "$1" "$IP_B" >"$TEST_DIR/weft-hostile.log" 2>&1 </dev/null &
	pid=$!
	# What clean_here looks for can be seen while it is there.
	wait_for 60 weft_memory >"$TEST_DIR/memory" || fail "no ring is to be seen"
	until is_over $pid; do
		innocent "innocent$((rounds += 1))"
	done
	wait $pid || rc=$?
	[ $rc = 0 ] || fail "weft-hostile ended with $rc; $(tail -n 1 "$TEST_DIR/weft-hostile.log")"
	innocent afterwards
	echo "$rounds times 4 MB meanwhile"
}

# timeouts a|b DEVICE SETUP CLOSE: deadlines are to pass within the patience of the test.
timeouts() {
	at "$1" option "$2" startup_timeout_ms "$3" || fail "no short time-out"
	at "$1" option "$2" accept_timeout_ms "$3" || fail "no short time-out"
	at "$1" option "$2" close_timeout_ms "$4" || fail "no short time-out"
}

# Of the counters, those that a host of programs has, too: by what it traces.
counters_of_garbage() {
	printf '%s\n' crc_errors term_out_mpa_crc term_out_ddp_stag term_out_ddp_qn term_out_ddp_msn \
		term_out_ddp_too_long term_out_ddp_tagged_version term_out_ddp_untagged_version \
		term_out_rdmap_opcode term_out_rdmap_version
	[ "$KERNEL" = rootless ] || printf '%s\n' rx_dropped_bytes term_in_other
}

# The listener's counters say what it was sent: the program's choice is the same each time.
mpa_garbage() {
	local name n opts=()
	pair "$1"
	timeouts b "$DEV_B" 4000 2000
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	[ "$(at b count "$DEV_B" crc_errors)" = 0 ] || fail "CRC errors before there was garbage"
	[ "$KERNEL" != rootless ] || opts=(-u)
	tap_run mpa-garbage "${opts[@]}" "$IP_B" 7174
	for name in $(counters_of_garbage); do
		n=$(at b count "$DEV_B" $name) || fail "no counter $name"
		echo "$name $n"
		[ "$n" -gt 0 ] || fail "$name did not rise"
	done
	[ "$(at b count "$DEV_B" crc_errors)" = "$(at b count "$DEV_B" term_out_mpa_crc)" ] ||
		fail "not a Terminate for each wrong CRC"
}

mpa_edges() {
	local hole=10.7.0.99
	pair "$1"
	ip neigh replace $hole lladdr 02:00:00:00:00:99 dev eth0 nud permanent
	timeouts a "$DEV_A" 8000 4000
	# Disconnecting sends a FIN and waits for the peer's; a device with the RoCE face fails its QP instead.
	[ "$KERNEL" != rootless ] || option a device iwarp
	tap_run mpa-edges "$IP_A" 7471 "$IP6_A" $hole
}

dial_b() { (exec 3<>"/dev/tcp/$1/7471") 2>&1; }

ipv6_only() {
	local why
	pair "$1"
	start_b server mpa-edges -6 7471
	wait_listen_b 7471
	dial_b "$IP6_B" || fail "not reached by IPv6"
	why=$(dial_b "$IP_B") && fail "reached by IPv4"
	[[ $why = *'Connection refused'* ]] || fail "IPv4: $why"
}

connect_order() {
	pair "$1"
	tap_run connect-order "$IP_A" 7471 "${@:2}"
}
