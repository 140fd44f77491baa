# shellcheck shell=bash
# Every kind of netdev that a device can use, with data over it, and other software RDMA drivers beside
# it. (The suites device and churn use dummy and veth.)

PAIRS=${PAIRS:-weft:weft}

tests() {
	[[ $PAIRS = *weft:weft* ]] || return 0
	cat <<-'END'
		vlan vlan
		bond-whose-port-changes bond
		lo lo
		an-address-of-another-netdev-only-unless-bound any_netdev
	END
	# User mode has no kprobes.
	[[ ${KERNEL-} != stock ]] || cat <<-'END'
		netdev-goes-while-a-sender-gets-no-cpu-time held tcp_sendmsg_locked
		netdev-goes-while-an-initiator-gets-no-cpu-time held tcp_v4_connect
		netdev-goes-while-a-registration-gets-no-cpu-time held ib_umem_get
	END
	# User mode has not what rxe sums with.
	[[ ${KERNEL-} != stock ]] || echo "beside-rxe-on-the-same-netdev beside rxe"
	[[ ${DRIVERS-siw} != *siw* ]] || echo "beside-siw-on-the-same-netdev beside siw"
	if [ "${KERNEL-}" = stock ]; then
		echo "tun-is-refused-before-linux-6.6 tun_refused"
	else
		echo "tun tun"
	fi
}

# both COMMAND [ARG...]: on a and on b, each @ being 1 or 2.
both() {
	"${@//@/1}" || fail "${*//@/1}"
	on_b "${@//@/2}" || fail "on b: ${*//@/2}"
}

load_both() {
	load weft || fail "no weft on a"
	at b load weft || fail "no weft on b"
}

# devices NAME NETDEV: NAME1 on a, NAME2 on b.
devices() {
	both rdma link add "$1@" type weft netdev "$2"
	wait_active a "${1}1"
	wait_active b "${1}2"
}

# address N NETDEV: 10.7.N.1 and 10.7.N.2.
address() {
	both ip addr add "10.7.$1.@/24" dev "$2"
	both ip link set "$2" up
}

# count a|b DEVICE: FPDUs that it received.
count() { on "$1" cat "/sys/class/infiniband/$2/ports/1/hw_counters/rx_fpdus"; }

pings() {
	local rc=0
	timeout 100 rping -c -a "$1" -C 30 -S 8000 -V -v >"$TEST_DIR/$1.log" 2>&1 </dev/null || rc=$?
	[ $rc = 0 ] || rping_outran_itself $rc "$TEST_DIR/$1.log"
}

vlan() {
	load_both
	both ip link add link eth0 name eth0.7 type vlan id 7
	address 7 eth0.7
	devices weft7 eth0.7
	start_b server rping -s -a 10.7.7.2 -C 30 -S 8000 -V
	wait_listen_b 7174
	pings 10.7.7.2 || fail "$(tail -n 1 "$TEST_DIR/10.7.7.2.log")"
	finish_b server
	[ "$(count a weft71)" -ge 60 ] || fail "the device was not used"
	both ip link del eth0.7
}

# Over two VLANs; both ends change from the one to the other while data runs.
bond() {
	local i client
	load_both
	modprobe -d "$MODULES" bonding max_bonds=0 || fail "no bonding on a"
	at b modprobe -d "$MODULES" bonding max_bonds=0 || fail "no bonding on b"
	both ip link add bond5 type bond mode active-backup
	for i in 5 6; do
		both ip link add link eth0 name eth0.$i type vlan id $i
		both ip link set eth0.$i master bond5
	done
	address 5 bond5
	both ip link set bond5 type bond active_slave eth0.5
	on_b ping -q -c 1 -w 60 10.7.5.1 >/dev/null || fail "no ping over the bond"
	devices weft5 bond5
	start_b server rping -s -a 10.7.5.2 -S 8000 -V
	wait_listen_b 7174
	rping -c -a 10.7.5.2 -S 8000 -V >"$TEST_DIR/rping.log" 2>&1 </dev/null &
	client=$!
	wait_for 60 moved weft51 100 || fail "nothing moves; $(tail -n 1 "$TEST_DIR/rping.log")"
	both ip link set bond5 type bond active_slave eth0.6
	wait_for 60 moved weft51 "$(($(count a weft51) + 100))" || fail "nothing moves after the change"
	! is_over $client || fail "the client ended; $(tail -n 1 "$TEST_DIR/rping.log")"
	kill $client
	wait $client
	both ip link del bond5
	for i in 5 6; do both ip link del eth0.$i; done
}

moved() { [ "$(count a "$1")" -ge "$2" ]; }

# --- programs that are held, as by a throttled cgroup ---

hold=/sys/module/weft_khold/parameters

is_held() { [ "$(<$hold/held)" != 0 ]; }

# now COMMAND [ARG...]: it does not wait for the program that is held.
now() {
	local from=${EPOCHREALTIME/./}
	within 20 "$@" || fail "$* waits for a program without CPU time"
	echo "$(((${EPOCHREALTIME/./} - from) / 1000)) ms: $*"
	is_held || fail "the program went on during $*"
}

listed() { [ -e "/sys/class/net/$1" ]; }
unlisted() { ! listed "$1"; }

release_program() {
	echo 0 >$hold/armed
	echo 10 >/proc/sys/net/core/netdev_unregister_timeout_secs
}

# held FUNCTION: a program of the netdev's device has no CPU time there, with the locks that it has. The netdev's end
# waits for it, since ib_core holds the netdev, but with no lock of the network's configuration.
held() {
	local deleter
	load weft || fail "no weft"
	insmod "${KO_weft_kmod%/*}/weft_khold.ko" symbol="$1" comm=weft-deadpeer || fail "no weft_khold.ko"
	{ ip link add d8 type dummy && ip addr add 10.7.8.1/32 dev d8 && ip link set d8 up; } || fail "no dummy"
	rdma link add weft8 type weft netdev d8 || fail "link add"
	wait_active a weft8
	run_apart "$TEST_DIR/server" weft-deadpeer -l -s 10.7.8.1
	wait_for 60 listening 7479 || fail "there is no listener"
	trap release_program EXIT
	# Else the kernel warns of a netdev that does not end.
	echo 300 >/proc/sys/net/core/netdev_unregister_timeout_secs
	echo 1 >$hold/armed
	run_apart "$TEST_DIR/client" weft-deadpeer -c -s 10.7.8.1
	wait_for 60 is_held || fail "no program is held; $(words "$TEST_DIR/client.log")"
	ip link del d8 &
	deleter=$!
	wait_for 20 unlisted d8 || fail "the netdev stays"
	now ip addr add 10.7.99.1/32 dev lo
	now ip addr del 10.7.99.1/32 dev lo
	now ip link add d7 type dummy
	now ip link del d7
	now ip netns add c
	now ip netns del c
	release_program
	trap - EXIT
	wait_for 60 is_over $deleter || fail "ip link del does not end"
	wait_for 60 has_gone weft8 || fail "the device stays"
	wait_for 60 [ -s "$TEST_DIR/client.rc" ] || fail "the client does not end; $(words "$TEST_DIR/client.log")"
	# It has no connection where the client's did not come about, and waits for another.
	end_programs weft-deadpeer -l
	rmmod weft_khold
}

# Up to 6.5 rdma_cm finds a device by its MAC, and lo has none until it is given one.
lo() {
	local ip server rc
	load weft || fail "no weft"
	if [ "$KERNEL" = stock ]; then
		! rdma link add weft9 type weft netdev lo 2>/dev/null || fail "a device that nobody can find"
		ip link set lo address 02:77:65:66:74:10 || fail "no MAC for lo"
	fi
	rdma link add weft9 type weft netdev lo || fail "link add"
	wait_active a weft9
	for ip in 127.0.0.1 ::1; do
		rping -s -a $ip -C 30 -S 8000 -V >"$TEST_DIR/server.log" 2>&1 </dev/null &
		server=$!
		wait_for 60 listening 7174 || fail "nobody listens on $ip"
		pings $ip || fail "$ip: $(tail -n 1 "$TEST_DIR/$ip.log")"
		rc=0
		wait $server || rc=$?
		[ $rc = 0 ] || rping_outran_itself $rc "$TEST_DIR/server.log" || fail "the server of $ip ended with $rc"
	done
	rdma link del weft9
}

# weft was there first: rdma_cm prefers it; then it has gone and come back.
# beside siw|rxe
beside() {
	pair weft:weft
	{ load "${1/rxe/rdma_rxe}" && at b load "${1/rxe/rdma_rxe}"; } || fail "no $1"
	both rdma link add "$1@" type "$1" netdev eth0
	ping_pair
	[ "$(count a "$DEV_A")" -ge 60 ] || fail "weft was not used"
	both rdma link del "$1@"
	ping_pair
}

ping_pair() {
	rm -f "$TEST_DIR/server.rc"
	start_b server rping -s -a "$IP_B" -C 30 -S 8000 -V
	wait_listen_b 7174
	pings "$IP_B" || fail "$(tail -n 1 "$TEST_DIR/$IP_B.log")"
	finish_b server
}

tun_refused() {
	{ load weft && load tun; } || fail "no weft, or no tun"
	ip tuntap add dev tun1 mode tun || fail "no tun"
	! rdma link add weft9 type weft netdev tun1 2>"$TEST_DIR/error" || fail "a device that nobody can find"
	ip link del tun1
	grep -q 'No such device' "$TEST_DIR/error" || fail "$(cat "$TEST_DIR/error")"
}

has_gone() { [ ! -e "/sys/class/infiniband/$1" ]; }

# The netdevs go with the program that holds them, and the devices with the netdevs.
tun() {
	local tunnel
	load_both
	tunnel tun1 /run/netns/b >"$TEST_DIR/tunnel.log" 2>&1 </dev/null &
	tunnel=$!
	wait_for 60 on_b ip link show tun1 >/dev/null 2>&1 || fail "no tun; $(tail -n 1 "$TEST_DIR/tunnel.log")"
	address 6 tun1
	devices weft6 tun1
	start_b server rping -s -P -a 10.7.6.2
	wait_listen_b 7174
	pings 10.7.6.2 || fail "$(tail -n 1 "$TEST_DIR/10.7.6.2.log")"
	kill $tunnel
	wait_for 60 has_gone weft61 || fail "weft61 outlives its netdev"
	wait_for 60 has_gone weft62 || fail "weft62 outlives its netdev"
}

# b's address is on a netdev of its own, and a's octets arrive by eth0.
any_netdev() {
	load_both
	on_b ip link add d9 type dummy && on_b ip addr add 10.7.9.2/32 dev d9 && on_b ip link set d9 up ||
		fail "no dummy on b"
	rdma link add weft91 type weft netdev eth0 || fail "no device on a"
	on_b rdma link add weft92 type weft netdev d9 || fail "no device on b"
	wait_active a weft91
	wait_active b weft92
	ip route add 10.7.9.2 via "$IP_B" || fail "no route"
	start_b server rping -s -P -a 10.7.9.2
	wait_listen_b 7174
	pings 10.7.9.2 || fail "not bound: $(tail -n 1 "$TEST_DIR/10.7.9.2.log")"
	end_server
	at b option weft92 bind_netdev 1 || fail "no option bind_netdev"
	start_b server rping -s -P -a 10.7.9.2
	wait_listen_b 7174
	! pings 10.7.9.2 || fail "bound, and a request arrived by eth0"
	grep -q REJECTED "$TEST_DIR/10.7.9.2.log" || fail "bound: $(tail -n 1 "$TEST_DIR/10.7.9.2.log")"
	end_server
	ip route del 10.7.9.2
	on_b ip link del d9
}
