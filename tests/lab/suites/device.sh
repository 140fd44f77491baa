# shellcheck shell=bash
# A device's life: created, shown, removed under load, with its netdev, with its module.
# D is the driver: the first one of PAIRS, so that siw can be tested instead.

PAIRS=${PAIRS:-weft:weft}
D=${PAIRS%%:*}
DEV=${D}0

# The selftest takes two minutes on a busy machine under KASAN.
# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=400

tests() {
	cat <<-'END'
		link-add-and-del link_add_and_del
		link-add-and-del-30-times link_add_and_del_often
		link-add-needs-a-netdev link_add_needs_a_netdev
		name-twice-is-refused name_twice
		netdev-twice-is-refused netdev_twice
		load-and-unload-20-times load_and_unload
		unload-takes-devices-along unload_with_devices
		netdev-deleted-takes-device-along netdev_deleted
		netns-ends-with-device-in-it netns_ends
		port-follows-the-netdev port_follows
		other-soft-driver-on-same-netdev other_driver
		visible-to-libibverbs visible
		link-del-with-open-fd link_del_with_open_fd
		unload-with-traffic-under-way unload_with_traffic
	END
	[[ $D != weft ]] || echo "each-workqueue-has-a-rescuer rescuers"
	[[ $D != weft ]] || echo "counters-count-what-happens counters"
	[[ $D != weft ]] || echo "statistic-names-every-counter statistic"
	[[ $D != weft ]] || echo "resource-show-has-the-details details"
	# From Linux 6.7 on.
	[[ $D != weft || ${KERNEL-} = stock ]] || echo "resource-show-has-details-of-srqs srq_details"
	[[ $D != weft ]] || echo "options-take-what-is-good-and-keep-it options"
	# User mode has no tracefs.
	[[ $D != weft || ${KERNEL-} != stock ]] || echo "tracepoints tracepoints"
	# It comes with a kernel's source; b is a namespace.
	[[ $D != weft || ${KERNEL-} = stock ]] || echo "kselftest-of-the-series-passes kselftest"
	# The mode cannot be changed while there is another namespace, and b is one in user mode.
	[[ ${KERNEL-} != stock ]] || cat <<-'END'
		exclusive-mode-device-moves-and-ends-with-its-netns exclusive exclusive_pair
		exclusive-mode-device-moves-under-traffic exclusive exclusive_traffic
	END
}

devices() { rdma link show | grep -c "^link ${D}"; }

add() { rdma link add "$1" type "$D" netdev "$2"; }

# dummy NAME: a netdev to play with.
dummy() {
	ip link add "$1" type dummy || fail "no dummy netdev"
	ip link set "$1" up
}

# How long something may take that must not wait for anybody else, on a busy host.
soon() { within 30 "$@" || fail "$* did not end soon and well ($?)"; }

# exclusive FUNCTION: what that leaves in the namespace c ends with it.
exclusive() {
	local rc=0
	load "$D" || fail "$D does not load"
	rdma system set netns exclusive || fail "no exclusive mode"
	("$1") || rc=1
	ip netns del c
	wait_for 60 no_devices || rc=1
	rdma system set netns shared || rc=1
	[ $rc = 0 ] || fail "not in exclusive mode"
}

no_devices() { [ "$(devices)" = 0 ]; }

# Two devices on a veth, one in a namespace of its own; everything goes with that.
exclusive_pair() {
	ip netns add c && ip link add d0 type veth peer name d1 && ip link set d1 netns c || exit 1
	ip addr add 10.8.0.1/24 dev d0 && ip link set d0 up
	ip netns exec c ip addr add 10.8.0.2/24 dev d1
	ip netns exec c ip link set d1 up
	add "${D}7" d0 && ip netns exec c rdma link add "${D}8" type "$D" netdev d1 || exit 1
	rdma dev set "${D}8" netns c || { echo "the device does not move" && exit 1; }
	[ "$(devices)" = 1 ] || { echo "both devices are still seen" && exit 1; }
	ip netns exec c rping -s -a 10.8.0.2 -C 3 >"$TEST_DIR/server.log" 2>&1 </dev/null &
	wait_for 60 ip netns exec c grep -q ":1C06 .* 0A " /proc/net/tcp || fail "no server"
	run rping -c -a 10.8.0.2 -C 3 -v
}

# A device that has files open, QPs and data under way; then it is as good as new, and so is it at
# home again.
exclusive_traffic() {
	local server client
	ip netns add c
	dummy d0
	ip addr add 10.9.0.1/24 dev d0
	add "${D}7" d0 || exit 1
	wait_active a "${D}7"
	weft-churn -l -b 10.9.0.1 >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	wait_for 60 listening 7472 || fail "no server"
	weft-churn -t 60 10.9.0.1 >"$TEST_DIR/client.log" 2>&1 </dev/null &
	client=$!
	wait_for 60 [ -s "$TEST_DIR/client.log" ] || fail "no traffic"
	pause 0.5
	! is_over $client || fail "the client ended early; $(tail -n 1 "$TEST_DIR/client.log")"
	soon rdma dev set "${D}7" netns c
	wait_for 60 is_over $client || fail "the client does not see the end"
	[ "$(devices)" = 0 ] || fail "the device is still seen"
	ip netns exec c rdma link show "${D}7/1" || fail "the device is not where it should be"
	kill -9 $server
	# rdma takes names alone.
	ip netns attach home 1
	soon ip netns exec c rdma dev set "${D}7" netns home
	ip netns del home
	wait_active a "${D}7"
	rping -s -a 10.9.0.1 -C 3 >"$TEST_DIR/rping-server.log" 2>&1 </dev/null &
	wait_for 60 listening 7174 || fail "no second server"
	run rping -c -a 10.9.0.1 -C 3 -v
	soon ip link del d0
	gone "its netdev"
}

link_add_and_del() {
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	wait_active a "$DEV"
	rdma link show "$DEV/1" | grep -q 'netdev eth0' || fail "link show does not name eth0"
	soon rdma link del "$DEV"
	[ "$(devices)" = 0 ] || fail "the device is still there"
}

link_add_and_del_often() {
	local i
	load "$D" || fail "$D does not load"
	for i in {1..30}; do
		add "$DEV" eth0 || fail "link add, round $i"
		soon rdma link del "$DEV"
	done
}

link_add_needs_a_netdev() {
	load "$D" || fail "$D does not load"
	add "$DEV" nosuchdev 2>/dev/null && fail "a device on no netdev"
	[ "$(devices)" = 0 ] || fail "something was made"
}

name_twice() {
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	add "$DEV" eth0 2>/dev/null && fail "the same name twice"
	[ "$(devices)" = 1 ] || fail "not one device"
}

netdev_twice() {
	local why
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	why=$(add "${D}1" eth0 2>&1) && fail "two devices on one netdev"
	[[ $why = *'File exists'* ]] || fail "it is refused by: $why"
	[ "$(devices)" = 1 ] || fail "not one device"
}

# takes OPTION VALUE [READ]: a good value, and how it is read if not like that.
takes() {
	local got
	tried+=" $1 "
	option "$DEV" "$1" "$2" || fail "$1 refuses '$2'"
	got=$(option_of "$1")
	[ "$got" = "${3:-$2}" ] || fail "$1 is '$got' after '$2'"
}

# refuses OPTION ERROR VALUE...: bad ones, with the words for that errno; the option stays as it is.
refuses() {
	local name=$1 error=$2 was why value
	shift 2
	was=$(option_of "$name")
	for value; do
		why=$(option "$DEV" "$name" "$value" 2>&1) && fail "$name takes '$value'"
		[[ $why = *"$error" ]] || fail "$name refuses '$value' by: $why"
		[ "$(option_of "$name")" = "$was" ] || fail "$name changes by '$value'"
	done
}

option_of() { cat "/sys/class/infiniband/$DEV/weft/$1"; }

options() {
	local tried='' name file invalid='Invalid argument' range='Numerical result out of range'
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	[ "$(cd "/sys/class/infiniband/$DEV/weft" && grep . -- * | sort)" = "$(sort <<-'END'
		accept_timeout_ms:60000
		bind_netdev:0
		close_timeout_ms:5000
		crc:1
		dead_peer_timeout_ms:60000
		extensions:1
		large_fpdus:0
		markers:0
		mpa_revision:2
		rnr_timeout_ms:1000
		rtr:send write read
		startup_timeout_ms:10000
	END
	)" ] || fail "these are not the options that weft(4) has, and their values"
	for name in crc markers extensions large_fpdus bind_netdev; do
		takes $name 0
		takes $name 1
		takes $name n 0
		takes $name y 1
		refuses $name "$invalid" '' 2 -1 x
	done
	takes mpa_revision 1
	takes mpa_revision 2
	refuses mpa_revision "$range" 0 3 255 256
	refuses mpa_revision "$invalid" '' -1 two 1.5
	takes rtr send
	takes rtr write
	takes rtr read
	takes rtr read,send 'send read'
	takes rtr 'write read'
	takes rtr 'send write read'
	takes rtr 'write read write read write read write read' 'write read'
	refuses rtr "$invalid" '' none Send 'send writ' 'sendwrite' , 'write read write read write read write rea'
	takes rtr 'send write read'
	for name in startup_timeout_ms accept_timeout_ms close_timeout_ms; do
		takes $name 100
		takes $name 600000
		takes $name 1234
		refuses $name "$range" 0 99 600001 4294967295 4294967296
		refuses $name "$invalid" '' -1 soon 100ms
	done
	takes dead_peer_timeout_ms 3000
	takes dead_peer_timeout_ms 600000
	refuses dead_peer_timeout_ms "$range" 0 2999 600001 4294967296
	refuses dead_peer_timeout_ms "$invalid" '' -1 soon 100ms
	takes rnr_timeout_ms 0
	takes rnr_timeout_ms 600000
	takes rnr_timeout_ms 1234
	refuses rnr_timeout_ms "$range" 600001 4294967296
	refuses rnr_timeout_ms "$invalid" '' -1 soon 100ms
	for file in "/sys/class/infiniband/$DEV/weft/"*; do
		[[ $tried = *" ${file##*/} "* ]] || fail "${file##*/}: nobody tries that option here"
	done
	# The device has come to no harm.
	soon rdma link del "$DEV"
}

load_and_unload() {
	local i
	for i in {1..20}; do
		load "$D" || fail "load, round $i"
		soon rmmod "$D"
	done
}

# Swap over weft may need any of them: without a rescuer, a work waits for memory for a new worker.
rescuers() {
	load weft || fail "weft does not load"
	grep -hoxE '(kworker/R-)?weft(_startup|_scan)?' /proc/[0-9]*/comm | sed 's,.*/R-,,' | sort >"$TEST_DIR/rescuers"
	[ "$(paste -sd ' ' "$TEST_DIR/rescuers")" = "weft weft_scan weft_startup" ] ||
		fail "rescuers: $(paste -sd ' ' "$TEST_DIR/rescuers")"
}

unload_with_devices() {
	load "$D" || fail "$D does not load"
	dummy d0
	add "$DEV" eth0 || fail "link add"
	add "${D}1" d0 || fail "link add on a dummy netdev"
	soon rmmod "$D"
	ip link del d0
	[ "$(devices)" = 0 ] || fail "a device is still there"
}

gone() { wait_for 60 no_devices || fail "the device outlives $1"; }

netdev_deleted() {
	load "$D" || fail "$D does not load"
	dummy d0
	add "$DEV" d0 || fail "link add"
	soon ip link del d0
	gone "its netdev"
}

# What the series for Linux adds to tools/testing/selftests/rdma.
kselftest() {
	# shellcheck disable=SC2154 # from run.sh
	local helpers=${MODULES%/modules}/source/tools/testing/selftests/kselftest
	load weft || fail "no weft"
	mkdir "$TEST_DIR/rdma" && ln -s "$helpers" "$TEST_DIR/kselftest"
	cp "$WEFT_TOP"/scripts/kernel-series/selftests/*.sh "$TEST_DIR/rdma/"
	within 390 "$TEST_DIR/rdma/weft_rping_between_netns.sh" >"$TEST_DIR/ktap" ||
		fail "it ended with $?: $(grep -E '^not ok|SKIP|Bail' "$TEST_DIR/ktap" | paste -sd ';')"
	[ "$(grep -c '^ok' "$TEST_DIR/ktap")" = 6 ] || fail "$(tail -n 1 "$TEST_DIR/ktap")"
}

netns_ends() {
	load "$D" || fail "$D does not load"
	ip netns add short
	dummy d0
	ip link set d0 netns short
	ip -n short link set d0 up
	nsenter --net=/run/netns/short rdma link add "$DEV" type "$D" netdev d0 || fail "link add"
	soon ip netns del short
	gone "its namespace"
}

is_down() { ! rdma link show "$1/1" | grep -q 'state ACTIVE'; }

port_follows() {
	load "$D" || fail "$D does not load"
	dummy d0
	add "$DEV" d0 || fail "link add"
	wait_active a "$DEV"
	ip link set d0 down
	wait_for 60 is_down "$DEV" || fail "active with its netdev down"
	ip link set d0 up
	wait_active a "$DEV"
	rdma link del "$DEV"
	ip link del d0
}

# How long other drivers take is not ours to judge.
others_go() { within 60 rdma link del "$1" || fail "$1 cannot be deleted"; }

# Works or is refused, but breaks nothing: 2021 it was a kernel BUG with siw and rxe.
other_driver() {
	load "$D" || fail "$D does not load"
	modprobe -d "$MODULES" rdma_rxe || fail "no rxe"
	add "$DEV" eth0 || fail "link add"
	if rdma link add rxe0 type rxe netdev eth0; then others_go rxe0; fi
	if [ "$D" != siw ] && [ -n "${KO_siw-}" ]; then
		load siw || fail "no siw"
		if rdma link add siw9 type siw netdev eth0; then others_go siw9; fi
	fi
	wait_active a "$DEV"
	soon rdma link del "$DEV"
	rmmod rdma_rxe
}

visible() {
	pair "$D:$D"
	ibv_devinfo -d "$DEV_A" >"$TEST_DIR/devinfo" 2>&1 || fail "ibv_devinfo: $(tail -n 1 "$TEST_DIR/devinfo")"
	grep -q 'transport:.*iWARP' "$TEST_DIR/devinfo" || fail "not iWARP"
	grep -q 'state:.*PORT_ACTIVE' "$TEST_DIR/devinfo" || fail "not active"
}

# opened_or_over PID: it has a device's file open, or has ended.
opened_or_over() {
	local fd
	for fd in "/proc/$1/fd"/*; do
		[[ $(readlink "$fd") != /dev/infiniband/uverbs* ]] || return 0
	done
	is_over "$1"
}

# A program that has the device open does not hold up its end (2025-12 on the list).
link_del_with_open_fd() {
	local pid
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	wait_active a "$DEV"
	ibv_asyncwatch -d "$DEV" >"$TEST_DIR/watch.log" 2>&1 &
	pid=$!
	wait_for 60 opened_or_over $pid
	! is_over $pid || fail "ibv_asyncwatch ended: $(tail -n 1 "$TEST_DIR/watch.log")"
	soon rdma link del "$DEV"
	kill $pid 2>/dev/null
	[ "$(devices)" = 0 ] || fail "the device is still there"
}

unload_with_traffic() {
	pair "$D:$D"
	perftest_goes_on ib_write_bw -D 100 -s 65536
	pause 2
	! is_over "$client" || fail "no traffic; $(words "$TEST_DIR/client.log")"
	# In user mode both devices are this machine's.
	within 30 rmmod "$D" || fail "rmmod did not end soon and well"
}

tracepoints() {
	local t=/sys/kernel/tracing event
	pair weft:weft
	trace_on . || fail "no events of weft"
	start_b server rping -s -a "$IP_B" -C 5
	wait_listen_b 7174
	run rping -c -a "$IP_B" -C 5
	finish_b server
	pause 0.5
	echo 0 >$t/events/weft/enable
	cat $t/trace >"$TEST_DIR/trace"
	: >$t/trace
	for event in 'weft_kick: qp [1-9]' 'weft_rx: qp [1-9]' 'weft_tx: qp [1-9]' \
		'weft_qp: .* flushed' 'weft_conn: .* open -> closing'; do
		grep -q "$event" "$TEST_DIR/trace" || fail "no $event"
	done
}

COUNTERS='rx_fpdus tx_fpdus tx_calls tx_segs tx_segs_aligned requests doorbells crc_errors rx_dropped_bytes'

# rises NAME LEAST MOST: by how much the counter of DEV_A has risen since ${before[NAME]}.
rises() {
	local now by
	now=$(count "$DEV_A" "$1") || fail "no counter $1"
	by=$((now - before[$1]))
	echo "$1 +$by"
	[[ $by -ge $2 && $by -le $3 ]] || fail "$1 rose by $by, not by $2 to $3"
}

# A ping is, seen from a: two Sends and a Read Response out; two Sends, a Read Request and a Write in.
counters() {
	local name value n=50
	declare -A before
	pair weft:weft
	for name in $COUNTERS; do
		before[$name]=$(count "$DEV_A" "$name") || fail "no counter $name"
	done
	rping_pair "$IP_B" "$IP_B" -C $n -S 64
	rises rx_fpdus $((4 * n)) $((4 * n + 5))
	rises tx_fpdus $((3 * n)) $((3 * n + 5))
	rises requests $((2 * n)) $((2 * n + 5))
	# One that sleeps between its requests rings for each; a Read Response needs no doorbell.
	rises doorbells $((2 * n)) $((2 * n + 20))
	rises tx_calls $((2 * n)) $((3 * n + 20))
	rises tx_segs $((2 * n)) $((4 * n + 20))
	rises tx_segs_aligned $((2 * n)) $((4 * n + 20))
	rises crc_errors 0 0
	rises rx_dropped_bytes 0 0
	for name in "/sys/class/infiniband/$DEV_A/ports/1/hw_counters"/term_*; do
		read -r value <"$name"
		[ "$value" = 0 ] || fail "${name##*/} rose"
	done
}

# All that sysfs has, and in one answer of the kernel.
statistic() {
	local name n=0 shown manual
	pair weft:weft
	rdma -j statistic show link "$DEV_A/1" >"$TEST_DIR/statistic" || fail "rdma statistic"
	shown=$(<"$TEST_DIR/statistic")
	manual=$(<"$WEFT_TOP/docs/weft.4")
	for name in "/sys/class/infiniband/$DEV_A/ports/1/hw_counters"/*; do
		name=${name##*/}
		[ "$name" != lifespan ] || continue
		[[ $shown == *"\"$name\":0"* ]] || fail "$name is not there, or not 0"
		[[ $manual == *[\ \"]"${name#term_*_}"[\ \"$'\n']* ]] || fail "$name is not explained"
		n=$((n + 1))
	done
	[ $n -gt 60 ] || fail "only $n counters"
}

# shown DEVICE TYPE DETAIL...: the dump of the device's objects of that type has each detail.
shown() {
	local detail log=$TEST_DIR/$2 scope=dev
	case $2 in qp | cm_id) scope='link' ;; esac
	rdma -dd -j resource show "$2" $scope "$1" >"$log" || fail "resource show $2"
	for detail in "${@:3}"; do
		grep -qE "$detail" "$log" || fail "no $detail in what is shown of $2"
	done
}

# The pid of what runs now, and what the driver knows of it.
details() {
	local n='[0-9]+' pid
	pair weft:weft
	start_b server rping -s -a "$IP_B" -S 100 -C 1000000
	wait_listen_b 7174
	rping -c -a "$IP_B" -S 100 -C 1000000 >"$TEST_DIR/client.log" 2>&1 </dev/null &
	pid=$!
	wait_for 60 pinging || fail "no pings"
	shown "$DEV_A" qp '"state":"RTS"' "\"pid\":$pid" '"type":"RC"' '"drv_crc":1' "\"drv_sq_slots\":[1-9]" \
		"\"drv_sq_done\":[1-9]" "\"drv_sq_sent\":[1-9]" "\"drv_sq_taken\":[1-9]" "\"drv_rq_slots\":[1-9]" \
		"\"drv_rq_taken\":[1-9]" "\"drv_reads_out\":$n" "\"drv_reads_in\":$n" '"drv_error":0'
	shown "$DEV_A" cq "\"pid\":$pid" "\"drv_entries\":[1-9]" "\"drv_produced\":[1-9]" '"drv_overflow":0'
	shown "$DEV_A" mr "\"pid\":$pid" '"mrlen":100' '"drv_valid":1' "\"drv_kind\":$n" "\"drv_access\":[1-9]" \
		'"drv_blocks":[12]\b' "\"drv_block_shift\":1[2-9]"
	shown "$DEV_A" cm_id '"state":"CONNECT"' '"ps":"TCP"' "\"dst-addr\":\"$IP_B:7174\""
	kill -9 $pid
}

srq_details() {
	pair weft:weft
	perftest_goes_on ib_send_bw --use-srq -r 64 -D 60
	wait_for 60 pinging || fail "no traffic; $(words "$TEST_DIR/client.log"); $(other_side)"
	shown "$DEV_B" srq '"type":"BASIC"' '"drv_id":1' '"drv_slots":64' '"drv_taken":[1-9]' '"drv_limit":0'
	kill -9 "$client"
}

pinging() { [ "$(count "$DEV_A" rx_fpdus)" -gt 20 ]; }
