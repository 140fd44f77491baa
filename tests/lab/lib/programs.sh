# shellcheck shell=bash
# Programs of a test: servers on b, clients on a, and retries for faults of others. See lib.sh.

# start_b NAME COMMAND [ARG...]: in the background on b, output in NAME.log of the test.
start_b() {
	local name=$1
	shift
	at b run_apart "$TEST_DIR/$name" "$@"
}

run_apart() {
	local out=$1
	shift
	# One of the same name may have ended before.
	rm -f "$out.rc"
	{
		rc=0
		"$@" >"$out.log" 2>&1 </dev/null || rc=$?
		echo $rc >"$out.rc"
	} >/dev/null 2>&1 </dev/null &
}

# finish_b NAME [SECONDS]: its exit status must be 0.
finish_b() {
	local rc
	wait_for "${2:-60}" [ -s "$TEST_DIR/$1.rc" ] ||
		fail "$1 on b does not end; $(tail -n 3 "$TEST_DIR/$1.log")"
	read -r rc <"$TEST_DIR/$1.rc"
	[ "$rc" = 0 ] || rping_outran_itself "$rc" "$TEST_DIR/$1.log" ||
		fail "$1 on b ended with $rc; $(words "$TEST_DIR/$1.log")"
}

# rping_outran_itself RC LOG [PROGRAM OPTION...]: rping had the end of its connection, and then one of its threads
# destroyed the event channel before the other had begun to wait on it again. The other ends the program with 255.
# A client that prints its pings (-C N -v) must have printed all: else its connection broke.
rping_outran_itself() {
	[ "$1" = 255 ] && grep -q 'DISCONNECT EVENT' "$2" &&
		grep -q '^rdma_get_cm_event: Bad file descriptor' "$2" || return
	[[ " ${*:3} " =~ " -C "([0-9]+)" "(.*" ")?"-v " ]] || return 0
	[ "$(grep -c 'ping data' "$2")" = "${BASH_REMATCH[1]}" ]
}

# signal_programs SIGNAL WORD...: to the programs whose command line begins with these words, on the machine
# it runs on; in $pids. In user mode it also sees a's programs.
signal_programs() {
	local dir argv signal=$1
	shift
	pids=()
	for dir in /proc/[0-9]*; do
		argv=()
		mapfile -d '' -t argv 2>/dev/null <"$dir/cmdline"
		[ "${argv[*]:0:$#}" != "$*" ] || pids+=("${dir#/proc/}")
	done
	kill -s "$signal" "${pids[@]}" 2>/dev/null
}

# end_programs WORD...: kills them. When it returns they are dead and their ports free.
end_programs() {
	local pids
	signal_programs KILL "$@"
	wait_for 20 are_dead "${pids[@]}" || fail "a program that was killed does not end: ${pids[*]}"
}

# words LOG: how it begins and how it ends. What a program says of errors comes first where the rest
# is buffered.
words() {
	if [ "$(wc -l <"$1")" -le 9 ]; then
		cat "$1"
	else
		head -n 5 "$1"
		echo ...
		tail -n 3 "$1"
	fi
}

# wait_listen_b PORT: until a kernel or user socket of b listens there; udp:PORT: until one of UDP's is
# bound there (rootless alone). The kernel's table is
# read, so that no connection is made.
wait_listen_b() {
	at b wait_for 60 listening "$1" || fail "nobody listens on port $1 of b"
}

listening() {
	local hex file port state
	printf -v hex ':%04X ' "$1"
	for file in /proc/net/tcp /proc/net/tcp6; do
		while read -r _ port _ state _; do
			[[ $state != 0A || "$port " != *$hex ]] || return 0
		done <$file
	done
	return 1
}

# run COMMAND [ARG...]: on a, within TIME seconds (100), output in NAME.log where NAME is the
# command's.
run() {
	local log=$TEST_DIR/${1##*/}.log rc=0
	timeout -k 2 "${TIME:-100}" "$@" >"$log" 2>&1 </dev/null || rc=$?
	[ $rc = 0 ] && return
	[ $rc = 124 ] && fail "$1 ran into its time-out; $(words "$log")"
	rping_outran_itself $rc "$log" "$@" && return
	fail "$1 ended with $rc; $(words "$log")"
}

# tap_run COMMAND [ARG...]: a program that prints TAP, within the test's time; its first failure is the
# reason.
tap_run() {
	local log=$TEST_DIR/$1.log rc=0
	timeout -k 2 $((${TEST_TIMEOUT:-180} - 10)) "$@" >"$log" 2>&1 </dev/null || rc=$?
	! grep -q '^not ok' "$log" || fail "$(grep -m 1 '^not ok' "$log")$(grep -m 1 ': FAIL ' "$log" | sed 's/^/; /')"
	[ $rc = 0 ] || fail "$1 ended with $rc; $(tail -n 1 "$log")"
}

# together PORT SERVER... -- CLIENT...: b's server, which listens on PORT, and a's client; both end
# well. What excuse() knows is tried again with a new server, twice; whatever else goes wrong is a
# failure. Output in server.log and CLIENT.log.
together() {
	local port=$1 server_command=() try why failure garbled
	shift
	while [ "$1" != -- ]; do
		server_command+=("$1")
		shift
	done
	shift
	for try in 1 2 3; do
		garbled=$(siw_garbled)
		start_b server "${server_command[@]}"
		wait_listen_b "$port"
		[[ $DEV_B != siw* ]] ||
			at b run_apart "$TEST_DIR/unread" end_if_unread "$port" "$TEST_DIR/server.rc"
		failure=$(run "$@") && break
		if ! why=$(excuse "$TEST_DIR/${1##*/}.log") || [ $try = 3 ]; then
			fail "${failure#FAIL: }; $(other_side)"
		fi
		echo "try $try: $why"
		end_server
	done
	finish_b server
}

# In user mode all that uses RDMA ends, on a, too.
end_server() {
	at b kill_users
	wait_for 60 [ -s "$TEST_DIR/server.rc" ] || fail "the server on b cannot be ended"
	rm -f "$TEST_DIR/server.rc" "$TEST_DIR/server.log" "$TEST_DIR/unread.rc"
}

# What b's server came to, and what the devices of both counted: a client that failed tells its half.
other_side() {
	if wait_for 5 [ -s "$TEST_DIR/server.rc" ]; then
		echo "server ended with $(cat "$TEST_DIR/server.rc")"
	else
		echo "server goes on"
	fi
	words "$TEST_DIR/server.log"
	counted "$DEV_A"
	at b counted "$DEV_B"
}

# counted DEVICE: its counters that are not 0, if it is weft's.
counted() {
	local file n all="$1:"
	[[ $1 = weft* ]] && ! is_rootless || return 0
	for file in "/sys/class/infiniband/$1/ports/1/hw_counters"/*; do
		read -r n <"$file" && [ "$n" != 0 ] && all+=" ${file##*/}=$n"
	done
	echo "$all"
}

# came_early LOG: the client of LOG was refused, for its server did not listen yet. With -R perftest connects
# twice, and listens anew in between; its client crashes of that (in librdmacm, on its way out). The errno that it
# prints is any: the event has the reason, ECONNREFUSED, or InfiniBand's 8. qperf's server tells its port before it listens there.
came_early() { grep -qE 'Event: RDMA_CM_EVENT_REJECTED; error: (-111|8)\.|Event rejected' "$1"; }

# qperf_anew COMMAND...: runs COMMAND, qperf's client, and anew while it came early. Prints why it failed.
qperf_anew() {
	local try
	for ((try = 1; try < 20; try++)); do
		("$@") >"$TEST_DIR/try" && return
		came_early "$TEST_DIR/qperf.log" || break
	done
	fail "$(sed 's/^FAIL: //' "$TEST_DIR/try")"
}

# excuse LOG: prints why the client of LOG failed, if that was not weft's fault.
# The client came before its server; siw connects within the call, which sets errno.
# What comes while siw makes an accepted QP ready it reads with what comes next; and a program that
# waits for the answer sends nothing next.
# And a message that siw has given to TCP it calls failed, if the peer's FIN comes before it has looked
# again: perftest's server goes as soon as it has the client's last.
# And what a program posts siw sends from two threads at once, now and then: weft finds a bad CRC.
excuse() {
	if came_early "$1" ||
		{ [[ $DEV_A = siw* ]] && refused_at_once "$1"; }; then
		[ "$WEFT_LINK" != lo ] || forget_their_crashes
		echo "it came before the server's second listener"
		return
	fi
	if [[ $DEV_A = siw* ]] && only_goodbye_failed "$1"; then
		echo "siw called its last message failed, and the server had it"
		return
	fi
	if [ "$(siw_garbled)" != "$garbled" ]; then
		echo "siw sent from two threads at once, and weft found a bad CRC"
		return
	fi
	left_unread && echo "siw left octets unread"
}

# Has end_if_unread on b found that?
left_unread() {
	local rc
	[[ $DEV_B = siw* ]] && wait_for 20 [ -s "$TEST_DIR/unread.rc" ] || return
	read -r rc <"$TEST_DIR/unread.rc"
	[ "$rc" = 0 ]
}

# How many bad CRCs weft on b has received from siw on a; prints nothing for other pairs. Under weft-run
# the server's log has a line for each, and the connection ends.
siw_garbled() {
	[[ $DEV_A$DEV_B = siw*weft* ]] || return 0
	if [ "$DEV_B" = weft_eth0 ]; then
		grep -csF 'Terminate sent: layer 2, etype 0, code 0x2' "$TEST_DIR/server.log" || true
	else
		at b count "$DEV_B" crc_errors
	fi
}

refused_at_once() {
	grep -A 1 -F 'Failed to connect through RDMA CM.' "$1" | grep -qF 'ERRNO: Connection refused.'
}

# The client of LOG printed its figures, failed to say that it is through, and b's server knows.
only_goodbye_failed() {
	local rc
	grep -qF 'Bad wc status 2' "$1" && grep -qF 'Failed to close connection' "$1" &&
		wait_for 20 [ -s "$TEST_DIR/server.rc" ] && read -r rc <"$TEST_DIR/server.rc" && [ "$rc" = 0 ]
}

# perftest_pair PROGRAM [OPT...]: over the devices of pair(), output in PROGRAM.log.
perftest_pair() {
	local TIME=${TIME:-100} program=$1
	shift
	set -- "$program" -R -F "$@"
	# A client that siw leaves waiting ends while there is time to try again.
	[[ $DEV_B != siw* ]] || TIME=60
	together 18515 "$@" -d "$DEV_B" -- "$@" -d "$DEV_A" "$IP_B"
}

# perftest_goes_on PROGRAM [OPT...]: perftest_pair's, but it returns when there is a connection, and
# the programs stay; the client is $client, its output in client.log. To be the first that uses RDMA.
perftest_goes_on() {
	local program=$1 try why garbled
	shift
	set -- -R -F "$@"
	for try in 1 2 3; do
		garbled=$(siw_garbled)
		start_b server "$program" -d "$DEV_B" "$@"
		wait_listen_b 18515
		"$program" -d "$DEV_A" "$@" "$IP_B" >"$TEST_DIR/client.log" 2>&1 </dev/null &
		client=$!
		wait_for 60 connected_or_over "$client"
		! is_over "$client" && has_in_rts 2 && return
		if ! why=$(excuse "$TEST_DIR/client.log") || [ "$try" = 3 ]; then
			fail "$program does not run; $(words "$TEST_DIR/client.log"); $(other_side)"
		fi
		echo "try $try: $why"
		end_server
	done
}

# perftest has one more connection, by which its ends talk.
connected_or_over() { is_over "$1" || has_in_rts 2; }

# rping_pair LISTEN CONNECT [OPT...]: b's rping listens on one address, a's connects to the other;
# output in server.log and rping.log.
rping_pair() {
	together 7174 rping -s -a "$1" "${@:3}" -- rping -c -a "$2" "${@:3}" -v
}

# verify_options PAIR: what weft-verify leaves out with siw. While siw sends, a Read of zero octets takes the
# length and the STag of what was sent last, and ends the connection or brings too much (docs/siw-findings.md, 9).
# One operation at a time fills siw's socket seldom: what TCP has no room for siw sends from two threads at once.
verify_options() { [[ $1 != *siw* ]] || echo "-z -w 1"; }

# end_if_unread PORT FILE: once a connection to PORT of this machine, or with !PORT to any but that, has had octets
# to be read for ten seconds, programs that use RDMA are ended: 0. Once FILE is there: 1.
end_if_unread() {
	local n=0
	until [ $n = 20 ]; do
		[ ! -s "$2" ] || return 1
		pause 0.5
		if unread "$1"; then n=$((n + 1)); else n=0; fi
	done
	kill_users
}

unread() {
	local hex file port state queues is
	printf -v hex ':%04X ' "${1#!}"
	for file in /proc/net/tcp /proc/net/tcp6; do
		while read -r _ port _ state queues _; do
			[[ $state = 01 && $queues != *:00000000 ]] || continue
			if [[ "$port " = *$hex ]]; then is=; else is='!'; fi
			[[ $1 != "$is${1#!}" ]] || return 0
		done <$file
	done
	return 1
}
