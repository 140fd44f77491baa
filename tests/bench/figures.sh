# shellcheck shell=bash
# What the benches share: servers and clients, what they say, the turns. Sourced inside the lab,
# behind lab/lib.sh, by measure.sh and one.sh. Uses their $round, $mtu, $driver, $csv,
# $here (the server's address) and $plan, and of their functions begun (returns once the server that
# was started listens) and memory_of PID.
# shellcheck disable=SC2154

# figure CELL VALUE
figure() {
	echo "$round,$mtu,$driver,$1,$2" | tee -a "$csv"
	[ -n "$2" ] || tail -qn 2 "$TEST_DIR/client.log" "$TEST_DIR/server.log"
}

# --- programs ---

# server COMMAND [ARG...]: in the background, and the time to begin listening.
server() {
	"$@" >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	begun
}

# A server that has served ends by itself; one whose client failed does not.
end_server() {
	wait_for "$1" is_over "$server" || kill "$server"
	wait "$server"
} 2>/dev/null

# client COMMAND [ARG...]
client() { timeout 60 "$@" >"$TEST_DIR/client.log" 2>&1 </dev/null; }

# perftest COLUMN PROGRAM ARG...: that column of the result, or nothing. perftest gauges the
# clock first, and on a busy machine gives up on it: it then prints zeros, and is asked again.
# What takes too long is not.
perftest() {
	local column=$1 value=0 rc
	shift
	for _ in 1 2 3; do
		server "$@" -R -F
		rc=0
		client "$@" -R -F "$here" || rc=$?
		end_server $((rc ? 0 : 2))
		[ $rc != 124 ] || break
		[ $rc = 0 ] || continue
		value=$(perftest_column "$column")
		[ "$value" = 0 ] || [ "$value" = inf ] || break
	done
	[ "$value" = 0 ] || [ "$value" = inf ] || echo "$value"
}

perftest_column() {
	awk -v c="$1" '/^ *[0-9]+ +[0-9]+ /{v = $c} END {print v + 0}' "$TEST_DIR/client.log"
}

# rate_of KEY ARG...: weft-rate's answer, over the driver or over TCP; its server is where
# $there says, a command to run it by, and has the options $served.
there=() served=() peer=$here longest=60
rate_of() {
	local key=$1 tcp=() rc
	shift
	[ "$driver" != tcp ] || tcp=(-T)
	for _ in 1 2; do
		rc=0
		server "${there[@]}" weft-rate -l "${tcp[@]}" "${served[@]}"
		timeout "$longest" weft-rate "${tcp[@]}" "$@" "$peer" \
			>"$TEST_DIR/client.log" 2>&1 </dev/null || rc=$?
		end_server $((rc ? 0 : 5))
		case $rc in 0 | 124) break ;; esac
	done
	[ $rc = 0 ] && value_of "$key"
}

value_of() { tr ' ' '\n' <"$TEST_DIR/client.log" | sed -n "s|^$1=||p" | tail -n 1; }

# iperf3_bw SIZE SECONDS: with writes of that size, what came; in 10^6 octets a second.
iperf3_bw() {
	server iperf3 -s -1
	timeout 60 iperf3 -c "$here" -l "$1" -t "$2" -J 2>"$TEST_DIR/client.log" | python3 -c \
		'import json, sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 8e6)' \
		2>>"$TEST_DIR/client.log"
	end_server 2
}

# cmtime begins so many at once: the time until the last is there, without that of making the
# client's QPs. It goes on where some fail (of 200, siw refuses 120): then it is no figure.
connects_at_once() {
	local ms
	server cmtime -b "$here"
	client cmtime -s "$here" -c "$2" &&
		! grep -qsE 'fail|event:|RDMA_CM' "$TEST_DIR/client.log" "$TEST_DIR/server.log" &&
		ms=$(awk '$1 == "connect" {print $3}' "$TEST_DIR/client.log")
	end_server 0
	figure "$1" "$(awk -v n="$2" -v ms="${ms:-0}" 'BEGIN {if (ms > 0) print 1000 * n / ms}')"
}

# --- memory ---

# held WHAT N: memory in use, and the client's rings, while there are N, idle: connections
# (-I), or QPs of the same size that are not connected (-U).
held() {
	local tcp=() client
	[ "$driver" != tcp ] || tcp=(-T)
	rm -f "$TEST_DIR/hold"
	mkfifo "$TEST_DIR/hold"
	server weft-rate -l "${tcp[@]}"
	weft-rate "${tcp[@]}" "$1" "$2" "$here" <"$TEST_DIR/hold" >"$TEST_DIR/client.log" 2>&1 &
	client=$!
	exec 7>"$TEST_DIR/hold"
	if wait_for 60 grep -q "^idle=$2" "$TEST_DIR/client.log"; then
		memory_of $client
	else
		kill $client
	fi
	exec 7>&-
	wait $client
	if [ "$1" = -I ]; then end_server 20; else end_server 0; fi
}

# per_one WHAT: what one more takes: programs, CQ and all that is shared does not count.
per_one() {
	local few=200 many=1200 a b
	a=$(held "$1" $few)
	b=$(held "$1" $many)
	[ -n "$a" ] && [ -n "$b" ] || return
	# shellcheck disable=SC2086 # lists
	awk -v n=$((many - few)) 'BEGIN {print (ARGV[3] - ARGV[1]) / n, (ARGV[4] - ARGV[2]) / n}' $a $b
}

# --- the turns ---

has() { [[ ,$1, == *,$2,* ]]; }

# The lines of the plan that this turn is about, as in $TEST_DIR/cells.
lines_of_turn() {
	local most drivers mtus cell rest
	while read -r most drivers mtus cell rest; do
		if ! has "$drivers" "$driver" || ! has "$mtus" "$mtu"; then continue; fi
		case $plan in
		full | quick) [ "$round" -le "$most" ] || continue ;;
		*) [[ $cell =~ ^($plan)$ ]] || continue ;;
		esac
		echo "$cell $rest"
	done <"$TEST_DIR/cells"
}
