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
