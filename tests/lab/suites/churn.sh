# shellcheck shell=bash
# Whatever is set up and torn down leaves nothing behind, and ends soon: hundreds of connections,
# unanswered connects, devices, netdevs, modules, programs and namespaces removed under traffic.
# After each test the runner checks that nothing is left. The deadline of a step is 10 s.
# Environment: CHURN  full: as often as a release asks; else a few times

tests() {
	cat <<-END
		connect-and-disconnect-$(often 1000 100)-times connects $(often 1000 100)
		black-hole-destroyed-at-once black_hole $(often 100 10)
		black-hole-program-killed black_hole_killed $(often 20 2)
		client-killed-under-traffic repeat $(often 10 2) killed client
		server-killed-under-traffic repeat $(often 10 2) killed server
	END
	# Devices that go are a kernel's.
	[ "${KERNEL-}" != rootless ] || return 0
	cat <<-END
		link-del-under-traffic-$(often 100 3)-times repeat $(often 100 3) link_del
		netdev-removed-under-traffic-$(often 20 2)-times repeat $(often 20 2) netdev_removed
		netdev-moved-to-another-netns-under-traffic repeat $(often 10 2) netdev_moved
		listen-on-all-addresses-while-netdevs-go listens_while_netdevs_go $(often 30 5)
		rmmod-under-traffic-$(often 20 2)-times repeat $(often 20 2) unload
		netns-ends-with-everything-in-it repeat $(often 10 2) netns_ends
	END
}

often() { if [ "${CHURN:-}" = full ]; then echo "$1"; else echo "$2"; fi; }

PORT=7472
hole=10.7.0.99 hole_hex=6300070A

# soon COMMAND...: one step.
soon() {
	local start=${EPOCHREALTIME/./} took
	within 10 "$@" || fail "$* did not end soon and well ($?)"
	took=$((${EPOCHREALTIME/./} - start))
	[ $took -le "${longest:-0}" ] || longest=$took
}

repeat() {
	local i longest=0
	for ((i = 0; i < $1; i++)); do
		round=$i
		"${@:2}"
	done
	echo "$1 times, the longest step took $((longest / 1000)) ms"
}

connects() {
	pair weft:weft
	start_b server weft-churn -l -b "$IP_B"
	wait_listen_b $PORT
	run weft-churn -n "$1" "$IP_B"
}

# An address with a neighbour entry and no host. TCP would retry for longer than a step may take.
dig_hole() {
	pair weft:weft
	option "$DEV_A" startup_timeout_ms 60000
	ip neigh replace $hole lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

black_hole() {
	dig_hole
	run weft-churn -x "$1" $hole
}

black_hole_killed() {
	local i
	dig_hole
	for ((i = 0; i < $1; i++)); do
		rping -c -a $hole -C 1 >"$TEST_DIR/rping.log" 2>&1 &
		wait_for 60 something_connects || fail "nothing connects"
		kill -9 $!
		soon wait_for 10 is_over $!
		wait $! 2>/dev/null
		soon wait_for 10 nothing_connects
	done
}

something_connects() { grep -q "$hole_hex:.* 02 " /proc/net/tcp; }
nothing_connects() { ! something_connects; }

is_running() { grep -qx running "$TEST_DIR/client.log"; }

# traffic_to HOST [COMMAND...]: a client of a server at HOST; returns when data runs. $client is
# its process.
traffic_to() {
	local host=$1
	shift
	: >"$TEST_DIR/client.log"
	"$@" weft-churn -t 60 "$host" >"$TEST_DIR/client.log" 2>&1 </dev/null &
	client=$!
	wait_for 60 is_running || fail "no traffic; $(tail -n 1 "$TEST_DIR/client.log")"
	pause 0.2
	! is_over "$client" || fail "the client ended early; $(tail -n 1 "$TEST_DIR/client.log")"
}

# Between a and b.
traffic() {
	pair weft:weft
	start_b "server$round" weft-churn -l -b "$IP_B"
	wait_listen_b $PORT
	traffic_to "$IP_B"
}

# Programs end by themselves when their device has gone, or their peer.
client_over() {
	soon wait_for 10 is_over "$client"
	wait "$client"
	[ $? = 3 ] || fail "the client did not see the end: $(tail -n 1 "$TEST_DIR/client.log")"
}

# In user mode b sees a's programs, too: not by what they have open. The next server wants the port.
no_server_b() { at b end_programs weft-churn -l || fail "the server does not end"; }

link_del() {
	traffic
	soon rdma link del "$DEV_A"
	client_over
	soon at b rdma link del "$DEV_B"
	no_server_b
}

unload() {
	traffic
	soon rmmod weft
	client_over
	no_server_b
	[ "$WEFT_LINK" = netns ] || soon on_b rmmod weft
}

# killed client|server
killed() {
	traffic
	if [ "$1" = client ]; then
		kill -9 "$client"
		wait "$client" 2>/dev/null
		# The server goes on to the next.
		traffic_to "$IP_B"
		kill -9 "$client"
		wait "$client" 2>/dev/null
	fi
	no_server_b
	[ "$1" = client ] || client_over
	[ "$KERNEL" != rootless ] || return 0
	soon rdma link del "$DEV_A"
	soon at b rdma link del "$DEV_B"
}

no_device() { [ ! -e "/sys/class/infiniband/$1" ]; }

# A netdev of its own with both ends of the traffic on it.
# on_dummy [COMMAND...]: they run by COMMAND.
on_dummy() {
	"$@" weft-churn -l -b 10.9.0.1 >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	wait_for 60 "$@" grep -q ":1D30 .* 0A " /proc/net/tcp || fail "no server"
	traffic_to 10.9.0.1 "$@"
}

# netdev_loses_device COMMAND...: which is what takes the device along.
netdev_loses_device() {
	load weft
	ip link add d0 type dummy
	ip addr add 10.9.0.1/24 dev d0
	ip link set d0 up
	rdma link add weft9 type weft netdev d0 || fail "link add"
	wait_active a weft9
	on_dummy
	soon "$@"
	soon wait_for 10 no_device weft9
	client_over
	kill -9 $server 2>/dev/null
	wait $server 2>/dev/null
	true
}

netdev_removed() { netdev_loses_device ip link del d0; }

# It is there as before, and can have a new one.
netdev_moved() {
	ip netns add other
	netdev_loses_device ip link set d0 netns other
	nsenter --net=/run/netns/other rdma link add weft9 type weft netdev d0 ||
		fail "no device on the netdev where it is now"
	soon ip netns del other
	soon wait_for 10 no_device weft9
}

netns_ends() {
	local watch waits
	load weft
	ip netns add short
	ip -n short link set lo up
	ip -n short link add d0 type dummy
	ip -n short addr add 10.9.0.1/24 dev d0
	ip -n short link set d0 up
	nsenter --net=/run/netns/short rdma link add weft9 type weft netdev d0 || fail "link add"
	wait_active a weft9
	on_dummy nsenter --net=/run/netns/short
	# Whoever has the device open from outside does not hold it up, nor its objects of all kinds.
	ibv_asyncwatch -d weft9 >"$TEST_DIR/watch.log" 2>&1 &
	watch=$!
	ibv_rc_pingpong -d weft9 -g 0 >"$TEST_DIR/pingpong.log" 2>&1 </dev/null &
	waits=$!
	wait_for 60 listening 18515 || fail "no ibv_rc_pingpong; $(tail -n 1 "$TEST_DIR/pingpong.log")"
	pause 0.3
	soon ip netns del short
	kill -9 "$client" "$server"
	soon wait_for 10 no_device weft9
	wait "$client" "$server" 2>/dev/null
	kill -9 $watch $waits
	wait $watch $waits 2>/dev/null
	true
}

# A listener on all addresses works although one device has lost its netdev.
listens_while_netdevs_go() {
	local i listens longest=0
	pair weft:weft
	weft-churn -e >"$TEST_DIR/listens.log" 2>&1 </dev/null &
	listens=$!
	wait_for 60 grep -qsx listening "$TEST_DIR/listens.log" || fail "nothing listens"
	for ((i = 0; i < $1; i++)); do
		ip link add d0 type dummy
		ip link set d0 up
		rdma link add weft9 type weft netdev d0 || fail "link add"
		wait_active a weft9
		soon ip link del d0
		soon wait_for 10 no_device weft9
	done
	kill "$listens" 2>/dev/null
	wait "$listens" && grep -q '^listened [1-9]' "$TEST_DIR/listens.log" || fail "$(tail -n 1 "$TEST_DIR/listens.log")"
}

