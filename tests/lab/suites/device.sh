# shellcheck shell=bash
# A device's life: made, shown, taken away under load, with its netdev, with its module.
# D is the driver; the first one of PAIRS, so that siw can stand in.

PAIRS=${PAIRS:-weft:weft}
D=${PAIRS%%:*}
DEV=${D}0

tests() {
	cat <<-'END'
		link-add-and-del link_add_and_del
		link-add-and-del-30-times link_add_and_del_often
		link-add-needs-a-netdev link_add_needs_a_netdev
		name-twice-is-refused name_twice
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
	# User mode has no tracefs.
	[[ $D != weft || ${KERNEL-} != stock ]] || echo "tracepoints tracepoints"
	# The mode cannot be changed while there is another namespace, and b is one in user mode.
	[[ ${KERNEL-} != stock ]] || echo "exclusive-mode-device-moves-and-ends-with-its-netns exclusive"
}

devices() { rdma link show | grep -c "^link ${D}"; }

add() { rdma link add "$1" type "$D" netdev "$2"; }

# dummy NAME: a netdev to play with.
dummy() {
	ip link add "$1" type dummy || fail "no dummy netdev"
	ip link set "$1" up
}

# How long something may take that must not wait for anybody else.
soon() { within 10 "$@" || fail "$* did not end soon and well ($?)"; }

exclusive() {
	local rc=0
	load "$D" || fail "$D does not load"
	rdma system set netns exclusive || fail "no exclusive mode"
	(exclusive_pair) || rc=1
	ip netns del c
	wait_for 10 no_devices || rc=1
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
	sleep 2
	run rping -c -a 10.8.0.2 -C 3 -v
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

load_and_unload() {
	local i
	for i in {1..20}; do
		load "$D" || fail "load, round $i"
		soon rmmod "$D"
	done
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

gone() {
	local tries=50
	while [ "$(devices)" != 0 ]; do
		[ $((tries -= 1)) -gt 0 ] || fail "the device outlives $1"
		sleep 0.1
	done
}

netdev_deleted() {
	load "$D" || fail "$D does not load"
	dummy d0
	add "$DEV" d0 || fail "link add"
	soon ip link del d0
	gone "its netdev"
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

port_follows() {
	load "$D" || fail "$D does not load"
	dummy d0
	add "$DEV" d0 || fail "link add"
	wait_active a "$DEV"
	ip link set d0 down
	local tries=30
	while rdma link show "$DEV/1" | grep -q 'state ACTIVE'; do
		[ $((tries -= 1)) -gt 0 ] || fail "active with its netdev down"
		sleep 0.1
	done
	ip link set d0 up
	wait_active a "$DEV"
	rdma link del "$DEV"
	ip link del d0
}

# Works or is refused, but breaks nothing: 2021 it was a kernel BUG with siw and rxe.
other_driver() {
	load "$D" || fail "$D does not load"
	modprobe -d "$MODULES" rdma_rxe || fail "no rxe"
	add "$DEV" eth0 || fail "link add"
	if rdma link add rxe0 type rxe netdev eth0; then soon rdma link del rxe0; fi
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

# A program that has the device open does not hold up its end (2025-12 on the list).
link_del_with_open_fd() {
	local pid
	load "$D" || fail "$D does not load"
	add "$DEV" eth0 || fail "link add"
	wait_active a "$DEV"
	ibv_asyncwatch -d "$DEV" >"$TEST_DIR/watch.log" 2>&1 &
	pid=$!
	sleep 1
	kill -0 $pid || fail "ibv_asyncwatch ended: $(tail -n 1 "$TEST_DIR/watch.log")"
	soon rdma link del "$DEV"
	kill $pid 2>/dev/null
	[ "$(devices)" = 0 ] || fail "the device is still there"
}

unload_with_traffic() {
	pair "$D:$D"
	start_b server ib_write_bw -d "$DEV_B" -R -F -D 30 -s 65536
	wait_listen_b 18515
	ib_write_bw -d "$DEV_A" -R -F -D 30 -s 65536 "$IP_B" >"$TEST_DIR/client.log" 2>&1 &
	sleep 3
	# In user mode both devices are this machine's.
	within 20 rmmod "$D" || fail "rmmod did not end soon and well"
}

tracepoints() {
	local t=/sys/kernel/tracing event
	mountpoint -q $t || mount -t tracefs trace $t || fail "no tracefs"
	pair weft:weft
	echo 1 >$t/events/weft/enable || fail "no events of weft"
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
