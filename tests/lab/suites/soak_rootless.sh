# shellcheck shell=bash
# Servers of weft-run that live for long, over everything that peers do: connections that come and go, silent and
# broken ones, killed programs, cut links, sockets over iWARP. Between rounds of it the servers are idle; then
# descriptors and threads are what they were after the first rounds, and resident pages within 2 %.
# Environment: SOAK_SECONDS  how long (180); the round in progress is then finished
# shellcheck disable=SC2086 # AS_USER is a list

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=900

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	echo "servers-keep-nothing everything ${SOAK_SECONDS:-180}"
}

DEAD_MS=3000
ROUND=15
# party NAME COMMAND [ARG...]: again and again, until the round is over. What fails is no matter: links are cut, and
# programs killed. Each party must have had a success at the end.
party() {
	local name=$1
	shift
	(
		while [ ! -e "$HERE/enough" ]; do
			if ("$@") >>"$TEST_DIR/$name.out" 2>&1; then echo >>"$TEST_DIR/$name.good"; fi
			pause 0.1
		done
	) &
	parties+=($!)
}

quiet() { timeout -k 2 30 "$@" >/dev/null 2>&1 </dev/null; }

# --- parties ---

comes_and_goes() { quiet weft-churn -n 20 "$IP_B" && quiet weft-churn -x 20 "$IP_B"; }
# As far as it gets in 10 s. Its verdicts belong to the suite programs: here links are cut.
garbage() {
	timeout -k 2 10 mpa-garbage -T 3 -S $RANDOM "$IP_B" 7472 >"$TEST_DIR/garbage.log" 2>&1 </dev/null
	grep -q '^ok' "$TEST_DIR/garbage.log"
}

# The crowd leaves at the end of its stdin.
strangers() { pause 1 | quiet half-open "$@"; }

# A client that is killed under traffic.
killed() {
	local pid
	"$@" >/dev/null 2>&1 </dev/null &
	pid=$!
	pause "0.$((RANDOM % 900 + 100))"
	kill -9 $pid
	wait $pid
	[ $? = 137 ]
}

# echoes ROUNDS [CLIENTS]: octets that come back as they were, of so many connections at once.
echoes() { quiet $iwarp python3 "$TEST_DIR/echoes.py" 7194 "$1" "${2:-1}"; }

echo_client() {
	cat <<-'END'
		import os, socket, sys, threading
		from concurrent.futures import ThreadPoolExecutor
		port, rounds, clients = map(int, sys.argv[1:])
		def client(_):
		    for _ in range(rounds):
		        octets = os.urandom(1 + int.from_bytes(os.urandom(2), "little") * 4)
		        with socket.create_connection(("127.0.0.1", port), 30) as s:
		            sender = threading.Thread(target=s.sendall, args=(octets,))
		            sender.start()
		            got = b""
		            while len(got) < len(octets) and (some := s.recv(65536)):
		                got += some
		            sender.join()
		        assert got == octets
		with ThreadPoolExecutor(clients) as pool:
		    list(pool.map(client, range(clients)))	# raises what a client raised
	END
}

# Both ends connect by hand.
by_hand() {
	local server
	ibv_rc_pingpong -g 0 -d "$DEV_B" -p 18520 -n 1000 >/dev/null 2>&1 </dev/null &
	server=$!
	wait_for 20 listening 18520
	quiet ibv_rc_pingpong -g 0 -d "$DEV_A" -p 18520 -n 1000 "$IP_B" || kill -9 $server
	wait $server
}

# lo is down for longer than a peer may be silent.
cuts() {
	pause 2
	ip link set lo down
	pause $((DEAD_MS / 1000 + 2))
	ip link set lo up
	pause 2
}

# --- samples ---

# pid_of WORD...: of the one program whose command line begins with these words.
pid_of() {
	local pids
	signal_programs 0 "$@"
	[ ${#pids[@]} = 1 ] || fail "${#pids[@]} programs are $*"
	echo "${pids[0]}"
}

# state_of PID: descriptors, threads, and resident kB, in $fds, $threads and $rss.
state_of() {
	local word value list=("/proc/$1/fd/"*)
	fds=${#list[@]}
	while read -r word value _; do
		case $word in
		VmRSS:) rss=$value ;;
		Threads:) threads=$value ;;
		esac
	done <"/proc/$1/status" || fail "a server has ended: $(words "$TEST_DIR/${names[$1]}.log")"
}

# no_more_than PID FDS THREADS
no_more_than() {
	local fds threads rss
	state_of "$1"
	[ "$fds" -le "$2" ] && [ "$threads" -le "$3" ]
}

sample() {
	local pid fds threads rss
	for pid in "${servers[@]}"; do
		# A closing connection may take its time.
		wait_for 90 no_more_than "$pid" "${base_fds[$pid]}" "${base_threads[$pid]}" || {
			state_of "$pid"
			ls -l "/proc/$pid/fd" >"$TEST_DIR/${names[$pid]}.fds"
			fail "${names[$pid]} has $fds descriptors and $threads threads after round $round, not ${base_fds[$pid]} and ${base_threads[$pid]}"
		}
		state_of "$pid"
		echo "round $round: ${names[$pid]}: $fds descriptors, $threads threads, $rss kB"
		# They grow to their size in the first third.
		if [ $SECONDS -lt $warm ] && [ "$rss" -gt "${base_rss[$pid]:-0}" ]; then base_rss[pid]=$rss; fi
		last_rss[pid]=$rss
	done
}

# More clients at once than any round has. The C library keeps the heap of the largest crowd, and how many of a
# round's clients are there at once depends on how busy the machine is.
crowd() { echoes 3 64 || fail "echo-server does not serve 64 clients at once"; }

# Idle, after the first clients: what a server has for good.
take_base() {
	local pid fds threads rss
	for pid in "${servers[@]}"; do
		state_of "$pid"
		base_fds[pid]=$fds base_threads[pid]=$threads
	done
}

# --- the test ---

serve() {
	local name=$1 port=$2
	shift 2
	start_b "$name" "$@"
	wait_listen_b "$port"
}

start_servers() {
	local pid
	serve server 7472 weft-server "$IP_B" 7472
	serve echo 7194 $iwarp "$WEFT_TOP/build/bin/echo-server" 7194
	pid=$(pid_of weft-server) && names[pid]=server && servers+=("$pid")
	pid=$(pid_of "$WEFT_TOP/build/bin/echo-server") && names[pid]="echo" && servers+=("$pid")
}

all_are_served() {
	quiet weft-churn -n 3 "$IP_B" || fail "weft-server no longer answers"
	echoes 3 || fail "echo-server no longer answers"
}

one_round() {
	local parties=() pid
	rm -f "$HERE/enough"
	party churn comes_and_goes
	party garbage garbage
	party silent strangers silent "$IP_B" 7472 300
	party wordy strangers wordy "$IP_B" 7472 100
	party silent-sockets strangers silent 127.0.0.1 7194 50
	party killed-churn killed weft-churn -t 60 "$IP_B"
	party killed-echo killed $iwarp python3 "$TEST_DIR/echoes.py" 7194 1000 1
	party echoes echoes 5
	party by-hand by_hand
	[ "$OWN_NET" = no ] || party cuts cuts
	pause $ROUND
	: >"$HERE/enough"
	for pid in "${parties[@]}"; do wait "$pid"; done
}

everything() {
	local end=$((SECONDS + $1)) warm=$((SECONDS + $1 / 3)) round=0 servers=() names=() base_fds=() base_threads=() base_rss=() last_rss=() pid iwarp name
	pair weft:weft
	echo 'iwarp both 7194' >"$TEST_DIR/rules"
	echo_client >"$TEST_DIR/echoes.py"
	chmod 755 "$TEST_DIR"
	iwarp="$AS_USER $WEFT_RUN --sockets=$TEST_DIR/rules"
	option "$DEV_A" dead_peer_timeout_ms $DEAD_MS && set_option_b dead_peer_timeout_ms $DEAD_MS
	# Of several heaps each has a remainder that it keeps.
	for name in a b; do echo "export MALLOC_ARENA_MAX=1" >>"$TEST_DIR/options-$name"; done
	start_servers
	all_are_served
	crowd
	wait_for 60 idle || fail "the servers do not become idle"
	take_base
	while [ $SECONDS -lt $end ]; do
		round=$((round + 1))
		one_round
		all_are_served
		sample
	done
	for name in "$TEST_DIR"/*.out; do
		[ -s "${name%.out}.good" ] || fail "$(basename "${name%.out}") never succeeded: $(tail -n 1 "$name")"
		echo "$(basename "${name%.out}"): $(wc -l <"${name%.out}.good") times"
	done
	for pid in "${servers[@]}"; do
		[ "${last_rss[$pid]}" -le $((base_rss[pid] * 102 / 100)) ] ||
			fail "${names[$pid]} has ${last_rss[$pid]} kB, ${base_rss[$pid]} kB after the first rounds"
	done
}

# No connection stands, nor is one closing: LISTEN and TIME_WAIT alone are left.
idle() { ! awk '$4 != "0A" && $4 != "06" && NR > 1' /proc/net/tcp | grep -q .; }
