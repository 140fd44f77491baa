# shellcheck shell=bash
# A peer whose host is gone, or the way to it: the connection ends in the time that dead_peer_timeout_ms says, and all
# that is under way fails. A stopped program's host is there. The network is cut without a word: its ends see nothing
# of it but silence.

tests() {
	cat <<-'END'
		idle-peer-is-dead dead no no
		peer-is-dead-while-both-send dead -s -s
		peer-is-dead-while-this-end-sends dead -s no
		peer-is-dead-while-it-alone-sends dead no -s
		stopped-program-is-not-dead stopped
		program-is-killed-behind-a-cut killed
		connect-to-a-dead-peer-fails connect
	END
	# QPs by hand, and lo, which takes its addresses along.
	[ "${KERNEL-}" != rootless ] || cat <<-'END'
		dead-peer-by-hand pingpong
		timeout-that-is-shortened-in-sqd-counts shortened
	END
	[ "${KERNEL-}" = rootless ] || cat <<-'END'
		link-goes-down link_down
		way-becomes-a-black-hole black_hole
		netem-loses-all loses_all
	END
}

PORT=7479
DEAD_MS=3000
# The limit, a quarter of it, and what a busy machine takes.
LIMIT_S=10

# --- cutting ---

other_mac=02:77:65:66:74:99

# To a MAC that is not in use.
cut() {
	trap restore_network EXIT
	if [ "$WEFT_LINK" = lo ]; then
		ip link set lo down
	else
		ip neigh replace "$IP_B" lladdr $other_mac dev eth0 nud permanent &&
			on_b ip neigh replace "$IP_A" lladdr $other_mac dev eth0 nud permanent
	fi || fail "the network cannot be cut"
}

restore_network() {
	if [ "$WEFT_LINK" = lo ]; then
		ip link set lo up
	else
		ip neigh del "$IP_B" dev eth0 && on_b ip neigh del "$IP_A" dev eth0
	fi
}

# --- tests ---

has() { grep -qxE "$2" "$TEST_DIR/$1.log"; }

# begin OPTION_A OPTION_B: a connection, over which data has gone if somebody sends: -s, or no.
begin() {
	local a=${1#no} b=${2#no}
	[ "$WEFT_LINK$OWN_NET" != lono ] || skip "lo is the host's own"
	pair weft:weft
	# ib_core may miss an answer to ARP that comes at once, and rdma_resolve_addr() waits to its time-out.
	[ "$WEFT_LINK" = lo ] || ping -q -c 1 -w 10 "$IP_B" >/dev/null || fail "b does not answer"
	option "$DEV_A" dead_peer_timeout_ms $DEAD_MS || fail "no option"
	set_option_b dead_peer_timeout_ms $DEAD_MS
	[ -z "${PATIENT-}" ] || { option "$DEV_A" rnr_timeout_ms 100000 && set_option_b rnr_timeout_ms 100000; }
	# shellcheck disable=SC2086 # an option, or none
	start_b server weft-deadpeer -l $b "$IP_B"
	wait_listen_b $PORT
	# shellcheck disable=SC2086
	run_apart "$TEST_DIR/client" weft-deadpeer -c $a "$IP_B"
	wait_for 30 has client connected || fail "no connection; $(words "$TEST_DIR/client.log")"
	[ -z "$a$b" ] || wait_for 30 has client '[1-9][0-9]*' || fail "nothing is sent"
}

# over END: with what its requests came to.
over() { [ -s "$TEST_DIR/$1.rc" ] && has "$1" 'over: [1-9][0-9]* failed, first: (Work Request Flushed Error|transport retry counter exceeded)'; }

expect_over() {
	local end
	for end in client server; do
		wait_for $LIMIT_S over "$end" || fail "$end: $(words "$TEST_DIR/$end.log")"
	done
}

dead() {
	begin "$1" "$2"
	cut
	expect_over
}

last_count() { grep -xE '[0-9]+' "$TEST_DIR/$1.log" | tail -n 1; }
counts_more() { [ "$(last_count client)" -gt "$1" ]; }

# Both windows close, and TCP probes them. 10 s are three times the limit. The driver serves a stopped program's
# posted receives, and then its peer's Sends wait.
stopped() {
	local before
	PATIENT=yes begin -s -s
	at b signal_programs STOP weft-deadpeer -l
	pause 10
	[ ! -s "$TEST_DIR/client.rc" ] || fail "the client gave up: $(words "$TEST_DIR/client.log")"
	before=$(last_count client)
	at b signal_programs CONT weft-deadpeer -l
	wait_for 60 counts_more "$before" || fail "it does not go on"
}

# Its server is idle.
killed() {
	begin no no
	cut
	end_programs weft-deadpeer -c
	wait_for $LIMIT_S over server || fail "server: $(words "$TEST_DIR/server.log")"
}

connect() {
	local rc=0
	begin no no
	cut
	option "$DEV_A" startup_timeout_ms 2000
	timeout 20 weft-deadpeer -c "$IP_B" >"$TEST_DIR/late.log" 2>&1 || rc=$?
	[ $rc = 1 ] || fail "it ends with $rc; $(words "$TEST_DIR/late.log")"
	expect_over
}

# Both netdevs are down: their ports are, too.
link_down() {
	begin -s -s
	trap 'ip link set eth0 up && on_b ip link set eth0 up' EXIT
	{ ip link set eth0 down && on_b ip link set eth0 down; } || fail "the link stays up"
	expect_over
}

black_hole() {
	begin -s -s
	trap 'ip route del blackhole "$IP_B/32" && on_b ip route del blackhole "$IP_A/32"' EXIT
	{ ip route add blackhole "$IP_B/32" && on_b ip route add blackhole "$IP_A/32"; } || fail "no black hole"
	expect_over
}

loses_all() {
	begin -s -s
	{ lose 100 && at b lose 100; } || fail "netem cannot be had"
	expect_over
}

# The programs' own connection, by which they tell each other their QPs, is closed then.
qps_are_connected() {
	! grep -q '^ *[0-9]*: [0-9A-F]*:4853 [0-9A-F]*:[^0]... 01 ' /proc/net/tcp &&
		grep -q '^ *[0-9]*: [0-9A-F]*:.... [0-9A-F]*:.... 01 ' /proc/net/tcp
}

# timeout 14 and retry_cnt 7 are half a second; TCP needs 3 s.
pingpong() {
	[ "$OWN_NET" != no ] || skip "lo is the host's own"
	pair weft:weft
	start_b server ibv_rc_pingpong -d "$DEV_B" -g 0 -n 1000000000
	wait_listen_b 18515
	run_apart "$TEST_DIR/client" ibv_rc_pingpong -d "$DEV_A" -g 0 -n 1000000000 "$IP_B"
	wait_for 30 qps_are_connected || fail "no connection"
	cut
	wait_for $LIMIT_S one_end_failed || fail "$(words "$TEST_DIR/client.log"); $(words "$TEST_DIR/server.log")"
}

# From 34 s to half a second.
shortened() {
	[ "$OWN_NET" != no ] || skip "lo is the host's own"
	pair weft:weft
	run_apart "$TEST_DIR/client" weft-sqd "$IP_A"
	wait_for 30 has client ready || fail "no connection; $(words "$TEST_DIR/client.log")"
	cut
	wait_for $LIMIT_S has client 'transport retry counter exceeded' || fail "$(words "$TEST_DIR/client.log")"
}

# The end that has nothing under way but receives may wait on, as on InfiniBand.
one_end_failed() { grep -qs 'transport retry counter exceeded' "$TEST_DIR/client.log" "$TEST_DIR/server.log"; }
