# shellcheck shell=bash
# The programs that users run first, over every pair of drivers and both usual MTUs.
# MTUS: one of them, or both.

MTUS=${MTUS:-1500 9000}
PAIRS=${PAIRS:-weft:weft weft:siw siw:weft}

tests() {
	local pair
	for pair in $PAIRS; do
		[[ $MTUS != *1500* ]] || usual "$pair"
		[[ $MTUS != *9000* ]] || jumbo "$pair"
	done
	# Between two machines what came while the socket had an owner is seldom enough for it, and
	# a program's socket has no owner but itself.
	[[ ${KERNEL-} = @(stock|rootless) ]] || echo "no-peer-waits-for-a-window-that-is-open window"
}

usual() {
	local pair=$1 program
	echo "rping-${pair/:/-}-mtu1500 rping $pair 1500"
	[[ $pair = *siw* ]] || echo "rping-${pair/:/-}-to-an-ipv6-wildcard rping6 $pair 1500"
	[[ $pair = *siw* ]] || echo "rping-${pair/:/-}-ipv4-to-an-ipv6-wildcard rping $pair 1500 :: $IP_B"
	for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat; do
		# Not with siw. Its server writes first: MPA holds a responder back until the
		# initiator's first FPDU, and siw, which has no peer-to-peer mode, sends none.
		# The other way round, siw's sending thread waits minutes, now and then, for
		# an emulated CPU on which both sides poll.
		[[ $program != ib_write_lat || $pair != *siw* || $pair = siw:siw ]] || continue
		echo "$program-${pair/:/-}-mtu1500 perftest $program $pair 1500"
	done
	# Atomics are weft's alone.
	[[ $pair = *siw* ]] || for program in ib_atomic_bw ib_atomic_lat; do
		echo "$program-${pair/:/-} perftest $program $pair 1500"
	done
}

jumbo() {
	local pair=$1 program
	echo "rping-${pair/:/-}-mtu9000 rping $pair 9000"
	for program in ib_write_bw ib_read_bw ib_send_bw; do
		echo "$program-${pair/:/-}-mtu9000 perftest $program $pair 9000"
	done
}

# rping PAIR MTU [LISTEN CONNECT]: rping checks every byte that comes back (-V).
rping() {
	pair "$1" "$2"
	rping_pair "${3:-$IP_B}" "${4:-$IP_B}" -C 20 -S 4000 -V
	[ "$(grep -c 'ping data' "$TEST_DIR/rping.log")" = 20 ] || fail "not 20 pings came back"
}

rping6() { rping "$1" "$2" :: "$IP6_B"; }

# perftest PROGRAM PAIR MTU. Few iterations: what counts here is that it ends well. The
# latency programs sleep on events where they can (-e), since on one CPU two that poll only
# measure the scheduler.
perftest() {
	local program=$1 opts=(-n 100)
	pair "$2" "$3"
	case $program in
	# Always of 8 octets.
	ib_atomic_bw) opts+=(-Q 1) ;;
	ib_atomic_lat) opts+=(-e) ;;
	*_bw) opts+=(-s 65536 -Q 1) ;;
	ib_write_lat) opts+=(-s 64) ;;
	*_lat) opts+=(-s 64 -e) ;;
	esac
	perftest_pair "$program" "${opts[@]}"
	# The line of figures: size, iterations. The rates themselves say nothing here; on a busy
	# host perftest cannot even gauge its clock and prints 0.00.
	grep -qE '^ *[0-9]+ +100 ' "$TEST_DIR/$program.log" || fail "$program printed no figures"
}

# window_counts WHERE: zero windows told, probes of one sent.
window_counts() {
	on "$1" nstat -asz TcpExtTCPToZeroWindowAdv TcpExtTCPWinProbe | awk '
		$1 ~ /Zero/ {told = $2} $1 ~ /Probe/ {probes = $2} END {print told, probes}'
}

# One kernel: Read Responses come while the reader's doorbell owns its socket, and
# fill its window before anybody reads. A peer not told that it is open again sends its first
# probe after 0.2 s: there were ten of them in as little time, and 47 Reads a second.
window() {
	local before after told probes mem
	pair weft:weft
	{ option "$DEV_A" crc 0 && at b option "$DEV_B" crc 0; } || fail "no CRC option"
	mem=$(sysctl -n net.ipv4.tcp_rmem)
	# shellcheck disable=SC2064 # what it was before
	trap "sysctl -qw net.ipv4.tcp_rmem='$mem'" EXIT
	sysctl -qw net.ipv4.tcp_rmem='4096 65536 65536'
	# shellcheck disable=SC2207 # four numbers
	before=($(window_counts a) $(window_counts b))
	start_b server weft-rate -l -b "$IP_B"
	wait_listen_b 7176
	TIME=60 run weft-rate -o read -s 65536 -q 16 -t 3 "$IP_B"
	finish_b server
	# shellcheck disable=SC2207 # four numbers
	after=($(window_counts a) $(window_counts b))
	told=$((after[0] - before[0])) probes=$((after[3] - before[3]))
	echo "$told zero windows, $probes probes"
	[ $probes -le 3 ] || fail "$probes probes of zero windows that are open"
	[ $told -ge 10 ] || fail "only $told zero windows: this tests nothing"
}
