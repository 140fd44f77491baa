#!/bin/bash
# The native bench: weft-run's devices and TCP's sockets by turns, on lo of the place without a
# machine. Every figure is a line of CSV in $TEST_DIR/figures.csv, as measure.sh has it: driver is
# rootless, rootless+crc or tcp. Rates are in 10^6 octets a second, latencies in us, half a
# round trip (of Reads a whole one), memory in 1024 octets, of one end.
#   measure-native.sh ROUNDS PLAN SECONDS
#        PLAN: full, or a regular expression of cells
#        SECONDS: no round begins that would end later
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

# A trace would be measured, too.
unset WEFT_TRACE
rounds=$1 plan=$2 limit=$3
TEST_DIR=$SHARE/bench
mkdir -p "$TEST_DIR"
chmod 1777 "$TEST_DIR"
export TEST_DIR
csv=$TEST_DIR/figures.csv
here=$IP_B
# The programs' names lead to weft-run (lab/rootless.sh): TCP's turns do without.
wrapped=$PATH plain=${PATH#*:}
# shellcheck source-path=SCRIPTDIR source=figures.sh
. "$WEFT_TOP/tests/bench/figures.sh"

# What is measured: ROUNDS DRIVER-LIST MTU-LIST CELL FUNCTION [ARG...]. perftest sends as
# many messages as take about a second.
cells() {
	cat <<-END
		99 rootless,rootless+crc 65536,1500 write_bw_64K bw write 65536 25000
		99 rootless,rootless+crc 65536,1500 send_bw_64K bw send 65536 25000
		99 rootless,rootless+crc 65536,1500 write_bw_1M bw write 1048576 1500
		99 rootless,rootless+crc 65536,1500 send_bw_1M bw send 1048576 1500
		99 rootless 65536,1500 read_bw_64K bw read 65536 15000
		99 rootless 65536,1500 write_bw_4K bw write 4096 200000
		99 rootless 65536,1500 write_rate_64 rate write 64 2000000
		99 rootless 65536,1500 send_lat_8 lat send 8 30000
		99 rootless 65536,1500 write_lat_8 lat write 8 30000
		99 rootless 65536,1500 read_lat_8 lat read 8 30000
		99 rootless 65536,1500 send_lat_8_e lat send 8 20000 -e
		99 rootless 65536,1500 read_lat_8_e lat read 8 20000 -e
		99 tcp 65536,1500 stream_64K stream 65536
		99 tcp 65536,1500 stream_1M stream 1048576
		99 tcp 65536,1500 stream_4K stream 4096
		99 tcp 65536,1500 ping_8 ping 1
		99 tcp 65536,1500 ping_8_e ping 1 -e
		99 tcp 65536,1500 asked_8 asked
		99 tcp 65536,1500 asked_8_e ping 2 -e
		99 rootless,tcp 65536 cpu_s_per_GB cpu
		99 rootless 65536 conns_1 conns 1
		99 rootless 65536 conns_1000 conns 1000
		99 rootless 65536 connects_at_once_per_s connects_at_once 500
		2 rootless,tcp 65536 idle_KB idle
		99 rootless 65536 start_ms start
	END
}

# --- what figures.sh asks for ---

listeners() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A"' | wc -l; }
more_listeners() { [ "$(listeners)" -gt "$quiet" ] || is_over "$server"; }
begun() { wait_for 20 more_listeners; }

# What a process has to itself, and its page tables; its rings are files of memory.
memory_of() {
	awk '/^(RssAnon|VmPTE):/{n += $2} /^RssShmem:/{rings = $2} END {print n, rings}' "/proc/$1/status"
}

# --- the cells: they print their figures ---

# bw CELL VERB SIZE MESSAGES
bw() {
	local v
	v=$(perftest 4 "ib_$2_bw" -N -s "$3" -n "$4")
	figure "$1" "$(awk -v v="$v" 'BEGIN {if (v) print v * 1.048576}')"
}

rate() {
	local v
	v=$(perftest 5 "ib_$2_bw" -N -s "$3" -n "$4")
	figure "$1" "$(awk -v v="$v" 'BEGIN {if (v) print v * 1e6}')"
}

# lat CELL VERB SIZE ROUND_TRIPS [OPTION]
lat() {
	local typical
	typical=$(perftest 5 "ib_$2_lat" -s "$3" -n "${@:4}")
	figure "$1" "$typical"
	figure "${1}_p99" "${typical:+$(perftest_column 8)}"
}

# Both that there are; the better counts.
stream() {
	figure "$1:weft-rate" "$(rate_of MB/s -s "$2" -t 1)"
	figure "$1:iperf3" "$(iperf3_bw "$2" 1)"
}

# ping CELL HALVES [OPTION]: so many halves of a round trip.
ping() {
	local half
	half=$(rate_of typical_us -L -s 8 -t 1 "${@:3}")
	figure "$1" "$(awk -v v="$half" -v n="$2" 'BEGIN {if (v) print n * v}')"
}

# A round trip that spins, and that is answered by one who sleeps in epoll.
asked() {
	local served=(-e)
	ping "$1" 2
}

# The window's seconds of both programs, all their threads.
cpu() {
	rate_of bytes -e -s 65536 -t 2 >"$TEST_DIR/said"
	figure "$1" "$(awk -v n="$(value_of bytes)" -v c="$(value_of cpu_client)" \
		-v s="$(value_of cpu_server)" 'BEGIN {if (n > 0) print (c + s) / n * 1e9}')"
}

conns() { figure "$1" "$(rate_of MB/s -c "$2" -s 65536 -q 4 -t 1)"; }

idle() {
	local one
	one=$(per_one -I)
	figure "$1" "${one% *}"
	figure "$1:rings" "${one#* }"
}

# ms_of COMMAND: how long it takes, whatever it says.
ms_of() {
	local from=$EPOCHREALTIME
	"$@" >"$TEST_DIR/client.log" 2>&1 </dev/null
	awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN {print 1000 * (b - a)}'
}

# Both ways begin with what makes them the user.
start() {
	local with without
	# shellcheck disable=SC2086 # lists
	for _ in 1 2 3 4 5; do
		without+=$(ms_of $AS_USER /usr/bin/ibv_devinfo)$'\n'
		with+=$(ms_of $AS_USER "$WEFT_RUN" /usr/bin/ibv_devinfo)$'\n'
	done
	figure "$1" "$(sort -n <<<"${with%$'\n'}" | sed -n 3p)"
	figure "$1:without" "$(sort -n <<<"${without%$'\n'}" | sed -n 3p)"
}

# --- system calls ---

# counted CELL PROGRAM ARG...: each end's calls that move octets or wait, for one message. A program
# that is traced is slower: who spins makes more calls than otherwise, and fewer messages go in one.
counted() {
	local cell=$1 n=$2 end
	local calls=sendmsg,sendto,recvfrom,epoll_pwait,epoll_wait,epoll_ctl,getsockopt,futex,poll,read,write
	shift 2
	server strace -qfc -e trace=$calls -o "$TEST_DIR/server.calls" "$@" -R -F
	client strace -qfc -e trace=$calls -o "$TEST_DIR/client.calls" "$@" -R -F "$here"
	end_server 5
	for end in client server; do
		awk -v n="$n" -v of="0,$mtu,$driver,$cell:$end" \
			'$4 ~ /^[0-9]+$/ && $NF != "total" && $4 >= n / 10 {print of "/" $NF "," $4 / n}' \
			"$TEST_DIR/$end.calls" | tee -a "$csv"
	done
}

# The cells of goals that were missed, if perftest has them.
count_missed() {
	local cell fn verb size how
	while read -r cell driver mtu; do
		[ $SECONDS -lt $((limit + 60)) ] || break
		set_up
		read -r _ _ _ _ fn verb size _ how < <(grep " $cell " "$TEST_DIR/cells")
		# shellcheck disable=SC2086 # an option, or none
		case $fn in
		bw | rate) counted "$cell" 2000 "ib_${verb}_bw" -s "$size" -n 2000 ;;
		lat) counted "$cell" 2000 "ib_${verb}_lat" -s "$size" -n 2000 $how ;;
		esac </dev/null
	done < <(python3 "$WEFT_TOP/tests/bench/native-report.py" --missed "$csv")
}

# --- the turns ---

set_up() {
	[ "$OWN_NET" = no ] || ip link set lo mtu "$mtu"
	export WEFT_CRC=0
	[ "$driver" != rootless+crc ] || WEFT_CRC=1
	PATH=$wrapped
	[ "$driver" != tcp ] || PATH=$plain
}

turn() {
	local line lines cell fn args
	lines_of_turn >"$TEST_DIR/turn"
	mapfile -t lines <"$TEST_DIR/turn"
	set_up
	for line in "${lines[@]}"; do
		read -r cell fn args <<<"$line"
		# shellcheck disable=SC2086 # a list
		($fn "$cell" $args </dev/null)
	done
}

{
	echo "Linux $(uname -r), $(nproc) CPUs; programs begin by: ${AS_USER% }."
	[ "$OWN_NET" = yes ] ||
		echo "No namespace could be had: lo is the host's, and only its own MTU was measured."
} >"$TEST_DIR/machine"
cells >"$TEST_DIR/cells"
quiet=$(listeners)
mtus='65536 1500'
if [ "$OWN_NET" = no ]; then
	mtus=$(cat /sys/class/net/lo/mtu)
	sed -i "s/ 65536,1500 / $mtus /; s/ 65536 / $mtus /" "$TEST_DIR/cells"
fi
slowest=0
for round in $(seq "$rounds"); do
	began=$SECONDS
	[ $((began + slowest)) -le "$limit" ] || break
	drivers='rootless rootless+crc tcp'
	# The other way round every other time.
	[ $((round % 2)) = 1 ] || drivers='tcp rootless+crc rootless'
	for mtu in $mtus; do
		for driver in $drivers; do
			turn
			echo "# at $SECONDS s: round $round, MTU $mtu, $driver done"
		done
	done
	[ $((SECONDS - began)) -le $slowest ] || slowest=$((SECONDS - began))
done
[ "$plan" != full ] || ! command -v strace >/dev/null || count_missed
