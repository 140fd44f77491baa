# shellcheck shell=bash
# What strangers send to a listener over plain TCP. After each the listener still serves: an
# rping goes through. The fine print of the protocol is weftspec's; this is about staying up.

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
	# siw has its backlog of them, and then nobody else; a host of programs bears fewer.
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "refused-strangers-do-not-pile-up wordy_crowd"
	[[ $D != weft || ${KERNEL-} = rootless ]] || echo "hundreds-of-silent-strangers-keep-nobody-out silent_crowd"
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

# crowd WHAT COUNT SECONDS: strangers before b's port 7174; returns when they are there.
crowd() {
	rm -f "$TEST_DIR/strangers.log"
	strangers "$1" "$IP_B" 7174 "$2" "$3" >"$TEST_DIR/strangers.log" 2>&1 </dev/null &
	crowd=$!
	wait_for 30 [ -s "$TEST_DIR/strangers.log" ] || fail "the strangers do not arrive"
	grep -q "$2 are there" "$TEST_DIR/strangers.log" || fail "$(<"$TEST_DIR/strangers.log")"
}

# How many of the crowd were reset, once its time is over.
resets() {
	wait_for 30 is_over "$crowd" || fail "the strangers do not leave"
	sed -n 's/ were reset$//p' "$TEST_DIR/strangers.log"
}

# $ms: so long it takes that a client comes, is served, and goes: on a quiet host a quarter of a second.
time_ping() {
	local from=${EPOCHREALTIME/./}
	TIME=20 run rping -c -a "$IP_B" -C 1
	ms=$(((${EPOCHREALTIME/./} - from) / 1000))
}

# No more than a second longer than alone, on a host that has become twice as slow.
ping_among_them() {
	time_ping
	echo "rping took $ms ms, alone $alone ms"
	[ $ms -lt $((2 * alone + 1000)) ] || fail "rping had to wait"
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
	crowd silent 400 2
	ping_among_them
	n=$(resets)
	[ "$n" = 0 ] || fail "$n were reset, and there was room"
	crowd silent 1100 2
	ping_among_them
	n=$(resets)
	# Those of 1100 that had no room, and one for rping.
	[[ $n -ge 76 && $n -le 80 ]] || fail "$n were reset"
	[ "$(at b count "$DEV_B" evicted)" = "$n" ] || fail "the device counts others than $n"
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
	crowd wordy 500 2
	ping_among_them
	n=$(resets)
	[ "$n" -ge 372 ] || fail "$n of 500 were reset"
	[ "$(at b count "$DEV_B" evicted)" = "$n" ] || fail "the device counts others than $n"
}

# All that is counted is read each time. A walk past all connections kept softirqs off meanwhile.
read_past() {
	local alone among counter
	pair "$D:$D"
	counter=/sys/class/infiniband/$DEV_B/ports/1/hw_counters/evicted
	at b option "$DEV_B" startup_timeout_ms 600000 || fail "no long time-out"
	start_b server rping -s -P -a "$IP_B"
	wait_listen_b 7174
	alone=$(at b reading "$counter")
	crowd silent 1000 6
	among=$(at b reading "$counter")
	echo "$alone us alone, $among us with a thousand connections"
	[ "$(resets)" = 0 ] || fail "some connections were gone"
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
