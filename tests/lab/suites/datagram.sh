# shellcheck shell=bash
# Datagrams: the promises of UD QPs (weft-datagram), and Debian's programs over them. Only weft-run's devices
# have UD QPs.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		datagrams cases
		ibv_ud_pingpong pingpong
		ibv_ud_pingpong-sleeping pingpong -e
		ibv_ud_pingpong-over-ipv6 pingpong_six
		ib_send_lat-of-datagrams perf ib_send_lat
		ib_send_bw-of-datagrams perf ib_send_bw
		ib_send_bw-of-datagrams-on-events perf ib_send_bw -e
		datagrams-are-no-rnics refused_by_rnic
		udaddy udaddy
		udaddy-over-ipv6 udaddy_six
		udaddy-sixteen-connections udaddy -c 16
		sidr-requests-and-replies questions
		groups groups
		mckey mckey_two
		mckey-unjoined-receives-nothing mckey_unjoined
		port-of-groups-is-no-qps port_of_groups
	END
	# lo must not be the host's.
	[ "${OWN_NET-yes}" = no ] || echo datagrams-where-there-is-no-ipv6 cases_v4
	# lo has no route for IPv6's groups.
	[ "${OWN_NET-yes}" = no ] || echo mckey-over-ipv6 mckey_six
	[ "${OWN_NET-yes}" = no ] || echo mckey-receives-from-its-netdev-only mckey_netdevs
}

cases() {
	pair weft:weft
	tap_run weft-datagram "$IP_A"
}

# A namespace without IPv6, as many containers are.
cases_v4() {
	[ "$OWN_NET" = yes ] || fail "lo is the host's"
	pair weft:weft
	echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6
	tap_run weft-datagram "$IP_A"
	tap_run weft-groups "$IP_A"
	echo 0 >/proc/sys/net/ipv6/conf/lo/disable_ipv6
}

pingpong() {
	pair weft:weft
	together 18515 ibv_ud_pingpong -d "$DEV_B" -g 0 -n 100 "$@" -- \
		ibv_ud_pingpong -d "$DEV_A" -g 0 -n 100 "$@" "$IP_B"
}

pingpong_six() {
	pair weft:weft
	together 18515 ibv_ud_pingpong -d "$DEV_B" -g 4 -n 100 -- \
		ibv_ud_pingpong -d "$DEV_A" -g 4 -n 100 "$IP_B"
}

# What is lost perftest's server waits for: so few that the socket holds all of them, 2304 octets for each of the
# 416 KB that every host allows.
perf() {
	pair weft:weft
	together 18515 "$@" -c UD -F -n 150 -t 32 -s 1024 -d "$DEV_B" -- \
		"$@" -c UD -F -n 150 -t 32 -s 1024 -d "$DEV_A" "$IP_B"
}

refused_by_rnic() {
	local rc=0
	local -x WEFT_DEVICE=iwarp
	pair weft:weft
	timeout -k 2 20 ibv_ud_pingpong -d "$DEV_A" -g 0 >"$TEST_DIR/said" 2>&1 </dev/null || rc=$?
	[ $rc = 1 ] || fail "it ended with $rc; $(words "$TEST_DIR/said")"
	grep -q "Couldn't create QP" "$TEST_DIR/said" || fail "it did not say why; $(words "$TEST_DIR/said")"
}

udaddy() {
	pair weft:weft
	together udp:7174 udaddy -b "$IP_B" "$@" -- udaddy -s "$IP_B" "$@"
}

udaddy_six() {
	pair weft:weft
	together udp:7174 udaddy -b "$IP6_B" -- udaddy -s "$IP6_B"
}

# A silent peer is given up sooner than in a minute.
questions() {
	pair weft:weft
	option "$DEV_A" accept_timeout_ms 5000
	tap_run weft-askers "$IP_A"
	tap_run weft-askers "$IP6_A"
}

groups() {
	pair weft:weft
	tap_run weft-groups "$IP_A"
}

# in_group N ADDRESS: so many sockets of this host are, which both sides are on. ADDRESS as /proc has it.
in_group() { [ "$(cat /proc/net/udp /proc/net/udp6 | grep -c " $2:FFFF ")" = "$1" ]; }

mckey_two() {
	pair weft:weft
	start_b one mckey -m 239.7.7.9 -b "$IP_B"
	start_b two mckey -m 239.7.7.9 -b "$IP_B"
	wait_for 20 in_group 2 090707EF || fail "two members do not enter the group"
	run mckey -m 239.7.7.9 -b "$IP_A" -s
	finish_b one
	finish_b two
}

# What is sent to another group ends a member of this one, if it hears it.
mckey_unjoined() {
	pair weft:weft
	at b option "$DEV_B" stats 1
	start_b this mckey -m 239.7.7.9 -b "$IP_B"
	start_b other mckey -m 239.7.7.10 -b "$IP_B"
	wait_for 20 in_group 1 090707EF || fail "nobody enters the group"
	wait_for 20 in_group 1 0A0707EF || fail "nobody enters the other group"
	run mckey -m 239.7.7.10 -b "$IP_A" -s
	finish_b other
	[ ! -s "$TEST_DIR/this.rc" ] || fail "who is in one group heard another"
	run mckey -m 239.7.7.9 -b "$IP_A" -s
	finish_b this
	grep -q 'rx_datagrams 10$' "$TEST_DIR/this.log" || fail "not each was heard once; $(words "$TEST_DIR/this.log")"
}

mckey_six() {
	pair weft:weft
	start_b one mckey -m ff0e::7:9 -b fd07::1
	wait_for 20 in_group 1 00000EFF000000000000000009000700 || fail "nobody enters the group"
	run mckey -m ff0e::7:9 -b fd07::1 -s
	finish_b one
}

# The same group, on lo and on eth0.
mckey_netdevs() {
	pair weft:weft
	start_b this mckey -m 239.7.7.9 -b 10.7.0.1
	start_b other mckey -m 239.7.7.9 -b "$IP_B"
	wait_for 20 in_group 2 090707EF || fail "two members do not enter the group"
	run mckey -m 239.7.7.9 -b "$IP_A" -s
	finish_b other
	[ ! -s "$TEST_DIR/this.rc" ] || fail "who is in the group on eth0 heard lo"
	run mckey -m 239.7.7.9 -b 10.7.0.1 -s
	finish_b this
}

# 65535 is the port of all groups, and 0xffffff their QP.
port_of_groups() {
	local rc=0
	local -x WEFT_PORTS=65535-65535
	pair weft:weft
	timeout -k 2 20 ibv_ud_pingpong -d "$DEV_A" -g 0 >"$TEST_DIR/said" 2>&1 </dev/null || rc=$?
	[ $rc = 1 ] || fail "it ended with $rc; $(words "$TEST_DIR/said")"
	grep -q "Couldn't create QP" "$TEST_DIR/said" || fail "it did not say why; $(words "$TEST_DIR/said")"
}
