# shellcheck shell=bash
# Invalid input to a listener over plain TCP. After each the listener still serves: an
# rping succeeds. weftspec tests the protocol's details; this suite tests that the listener survives.

PAIRS=${PAIRS:-weft:weft}
D=${PAIRS%%:*}

tests() {
	cat <<-'END'
		connect-and-close garbage close_at_once 20
		silence garbage stay_silent 1
		random-bytes garbage random_bytes 10
		zeros garbage zeros 3
		half-an-mpa-request garbage half_request 5
		wrong-key garbage wrong_key 5
		wrong-revision garbage wrong_revision 5
		private-data-longer-than-allowed garbage long_private_data 5
		request-then-random-bytes garbage request_then_random 10
		reset-while-connecting garbage reset 20
	END
	# siw's backlog would be full, and it would serve no other peer; under weft-run fewer fit.
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "refused-half-open-connections-do-not-pile-up wordy_crowd"
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "hundreds-of-silent-half-open-connections-block-no-peer silent_crowd"
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "half-open-connections-of-one-user-push-out-no-others few_and_crowd"
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "listeners-from-before-the-device-count-apart older_listeners"
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "counters-are-read-past-a-thousand-connections read_past"
}

# garbage WHAT TIMES: both sides listen in turn would test one thing twice; b listens.
garbage() {
	local i
	pair "$D:$D"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	for ((i = 0; i < $2; i++)); do
		# A subshell: it may die of SIGPIPE when b hangs up, as it may.
		("$1") 2>/dev/null || true
	done
	run rping -c -a "$IP_B" -C 3 -V
}

# crowd WHAT COUNT [PORT]: half-open connections to b's port 7174; returns when all exist. They stay until crowd_leaves.
crowd() {
	rm -f "$TEST_DIR/half-open.log" "$HERE/crowd"
	mkfifo "$HERE/crowd"
	exec 7<>"$HERE/crowd"
	half-open "$1" "$IP_B" "${3-7174}" "$2" <"$HERE/crowd" >"$TEST_DIR/half-open.log" 2>&1 7>&- &
	crowd=$!
	wait_for 60 they_say 0 || fail "the half-open connections do not all exist"
	[ "${said[0]}" = "$2 are there" ] || fail "${said[0]}"
}

# they_say LINES: more lines than that; all of them in $said.
they_say() {
	said=()
	[ ! -e "$TEST_DIR/half-open.log" ] || mapfile -t said <"$TEST_DIR/half-open.log"
	[ ${#said[@]} -gt "$1" ]
}

# Connections to 7174, 7175 and 7176 that stand, or that the peer has closed.
no_connection_is_left() { ! on_b grep -qE ':1C0[678] [0-9A-F]+:[0-9A-F]+ 0[18] ' /proc/net/tcp; }

# The device has room for others then.
crowd_leaves() {
	exec 7>&-
	wait_for 60 is_over "$crowd" || fail "the half-open connections do not end"
	wait_for 60 no_connection_is_left || fail "connections stay after their peers have gone"
}

# were_reset LEAST MOST: so many of the crowd were by now, in $n, and the device has counted as many.
were_reset() {
	they_say 0
	echo >&7
	wait_for 30 they_say ${#said[@]} || fail "half-open gives no answer"
	n=${said[-1]% were reset}
	[[ $n -ge $1 && $n -le $2 ]] && [ "$(at b count "$DEV_B" evicted)" = "$n" ]
}

# A peer that connected after the crowd was served, so no further reset is expected.
expect_resets() {
	wait_for 30 were_reset "$@" || fail "$n were reset, and the device counts $(at b count "$DEV_B" evicted)"
}

# $ms: so long it takes that a client comes, is served, and goes: on a quiet host a quarter of a second.
time_ping() {
	local from=${EPOCHREALTIME/./}
	TIME=20 run rping -c -a "$IP_B" -C 1
	ms=$(((${EPOCHREALTIME/./} - from) / 1000))
}

# Not as long as who was turned away, and came again a second later, and again two seconds after that.
ping_among_them() {
	time_ping
	echo "rping took $ms ms, alone $alone ms"
	[ $ms -lt $((2 * alone + 2000)) ] || fail "rping had to wait"
}

# rping's backlog is 3, and a device has room for 1024 that are silent. No deadline helps.
silent_crowd() {
	local n
	pair "$D:$D"
	at b option "$DEV_B" startup_timeout_ms 600000 || fail "no long time-out"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	time_ping
	alone=$ms
	crowd silent 400
	ping_among_them
	expect_resets 0 0
	crowd_leaves
	crowd silent 1100
	ping_among_them
	# Those of 1100 that had no room, and one for rping.
	expect_resets 76 80
	crowd_leaves
}

# Each is refused by a Reply, and never closes: that a device bears 128 times, long before any deadline.
wordy_crowd() {
	local n
	pair "$D:$D"
	at b option "$DEV_B" close_timeout_ms 600000 || fail "no long time-out"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	time_ping
	alone=$ms
	crowd wordy 500
	ping_among_them
	expect_resets 372 500
	crowd_leaves
}

# some NAME COUNT PORT: silent half-open connections beside the crowd. They end with the test, or by some_leave NAME.
declare -A some_fd
some() {
	local fd
	rm -f "$HERE/$1"
	mkfifo "$HERE/$1"
	exec {fd}<>"$HERE/$1"
	some_fd[$1]=$fd
	half-open silent "$IP_B" "$3" "$2" <"$HERE/$1" >"$TEST_DIR/$1.log" 2>&1 {fd}>&- &
	wait_for 60 grep -q "^$2 are there" "$TEST_DIR/$1.log" || fail "the half-open connections $1 do not all exist"
}

# some_were_reset NAME NUMBER: of them.
some_were_reset() {
	local before
	before=$(grep -c 'were reset' "$TEST_DIR/$1.log") || true
	echo >&"${some_fd[$1]}"
	wait_for 30 says_more "$1" "$before" || fail "half-open gives no answer"
	[ "$(tail -n 1 "$TEST_DIR/$1.log")" = "$2 were reset" ]
}

says_more() { [ "$(grep -c 'were reset' "$TEST_DIR/$1.log")" -gt "$2" ]; }

some_leave() {
	local fd=${some_fd[$1]}
	exec {fd}>&-
}

# The few come first, and are the device's oldest. Another user's listener has all the others.
few_and_crowd() {
	local n few=30
	pair "$D:$D"
	at b option "$DEV_B" startup_timeout_ms 600000 || fail "no long time-out"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	start_b other setpriv --reuid=65534 --clear-groups rping -s -P -a "$IP_B" -p 7175
	wait_listen_b 7175
	some few $few 7174
	crowd silent 1100 7175
	# Those that had no room.
	expect_resets $((1100 + few - 1024)) $((1100 + few - 1024))
	some_were_reset few 0 || fail "another user's: $(tail -n 1 "$TEST_DIR/few.log")"
	some_leave few
	crowd_leaves
}

# An administrator adds the device, and rdma_cm then listens for two users' programs that were there before. Together
# those have more than a third user, and each has less.
older_listeners() {
	local n
	at b load weft || fail "no weft on b"
	on_b ip link add d5 type dummy && on_b ip link set d5 up && on_b rdma link add weft5 type weft netdev d5 ||
		fail "no first device on b"
	start_b one rping -s -P
	wait_listen_b 7174
	start_b two setpriv --reuid=65534 --clear-groups rping -s -P -p 7175
	wait_listen_b 7175
	pair "$D:$D"
	at b option "$DEV_B" startup_timeout_ms 600000 || fail "no long time-out"
	start_b three setpriv --reuid=65533 --clear-groups rping -s -P -a "$IP_B" -p 7176
	wait_listen_b 7176
	some one 300 7174
	some two 300 7175
	crowd silent 500 7176
	expect_resets 76 76
	some_were_reset one 0 || fail "the first user's: $(tail -n 1 "$TEST_DIR/one.log")"
	some_were_reset two 0 || fail "the second user's: $(tail -n 1 "$TEST_DIR/two.log")"
	some_leave one
	some_leave two
	crowd_leaves
	at b kill_users
	on_b ip link del d5
}

# All that is counted is read each time. A walk past all connections kept softirqs off meanwhile. The host may have
# become slower.
read_past() {
	local alone among again counter n
	pair "$D:$D"
	counter=/sys/class/infiniband/$DEV_B/ports/1/hw_counters/evicted
	at b option "$DEV_B" startup_timeout_ms 600000 || fail "no long time-out"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	alone=$(at b reading "$counter")
	crowd silent 1000
	among=$(at b reading "$counter")
	expect_resets 0 0
	crowd_leaves
	again=$(at b reading "$counter")
	echo "$alone us alone, $among us with a thousand connections, $again us alone again"
	[ "$again" -le "$alone" ] || alone=$again
	[ "$among" -lt $((alone * 3 / 2)) ] || fail "a thousand connections cost $((among - alone)) us"
}

to_b() { exec 3<>"/dev/tcp/$IP_B/7174"; }

# An MPA Request: key, flags (CRC), revision, length of the private data.
mpa_request() { printf 'MPA ID Req Frame\x40%b%b' "\\x0$1" "$2"; }

close_at_once() { to_b; }

# The connection stays open over the next, good one.
stay_silent() {
	(to_b && exec sleep 30) >/dev/null 2>&1 </dev/null &
	sleep 0.5
}

random_bytes() { to_b && head -c 20000 /dev/urandom >&3; }
zeros() { to_b && head -c 70000 /dev/zero >&3; }
half_request() { to_b && mpa_request 1 '\x00\x00' | head -c $((RANDOM % 19 + 1)) >&3; }
wrong_key() { to_b && printf 'MPA ID Rep Frame\x40\x01\x00\x00' >&3; }
wrong_revision() { to_b && mpa_request 9 '\x00\x00' >&3; }
long_private_data() { to_b && { mpa_request 1 '\xff\xff' && head -c 66000 /dev/zero; } >&3; }
request_then_random() { to_b && { mpa_request 1 '\x00\x00' && sleep 0.2 && head -c 9000 /dev/urandom; } >&3; }

# Closing with the reply unread sends RST.
reset() { to_b && mpa_request 1 '\x00\x00' >&3 && sleep 0.1; }
