#!/bin/bash
# The bench, inside the lab: weft, siw, rxe and TCP by turns over lo, one driver loaded at a time.
# Every figure is a line of CSV in /run/weft/bench/figures.csv, flushed as it is taken:
#   round,mtu,driver,cell,value
# "weft+crc" is weft with CRC on; every other row is without, as siw is by default. Rates are in
# 10^6 octets a second (perftest's 2^20 are converted), latencies in us, half a round trip.
#   bench.sh ROUNDS PLAN        PLAN: full, quick, or a regular expression of cells of full
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

rounds=$1 plan=$2
TEST_DIR=$SHARE/bench
mkdir -p "$TEST_DIR"
export TEST_DIR TMPDIR=$TEST_DIR
csv=$TEST_DIR/figures.csv
# siw on lo needs a link-layer address for its GID, and does not resolve 127.0.0.1.
here=10.7.9.1
ip link set lo address 02:77:65:66:74:01
ip addr add $here/32 dev lo
seconds=3
[ "$plan" != quick ] || seconds=2

# What is measured: DRIVER-LIST MTU-LIST CELL FUNCTION [ARG...]. A driver that does not know how
# to do a cell is not listed.
cells() {
	cat <<-END
		weft,weft+crc,siw,rxe,tcp 1500,9000,65536 write_bw_64K bw write 65536
		weft,siw,tcp 1500 write_bw_1M bw write 1048576
		weft,siw,tcp 1500,65536 write_bw_4K bw write 4096
		weft,siw,rxe 1500 write_rate_64 rate write 64
		weft,siw 1500,65536 read_bw_64K bw read 65536
		weft,siw,tcp 1500 send_bw_64K bw send 65536
		weft,siw,rxe,tcp 1500 write_lat_8 lat write 8
		weft,siw,rxe 1500 read_lat_8 lat read 8
		weft,siw,tcp 1500 send_lat_64K lat send 65536
	END
	[ "$plan" != quick ] || return
	cat <<-END
		weft,siw,tcp 1500 cpu_per_GB cpu
		weft,siw,tcp 1500 conns_1 conns 1
		weft,siw,tcp 1500 conns_16 conns 16
		weft,siw,tcp 1500 conns_256 conns 256
		weft,siw,tcp 1500 conns_1024 conns 1024
		weft,siw,tcp 1500 connects_per_s connects
		weft,siw,tcp 1500 idle_KB idle
		weft,siw,tcp 1500 loss_1%_10ms_bw loss 1
		weft,siw,tcp 1500 loss_0.1%_10ms_bw loss 0.1
	END
}

# figure CELL VALUE
figure() { echo "$round,$mtu,$driver,$1,$2" | tee -a "$csv"; }

# both PROGRAM ARG...: its server here, then the client; the client's output in client.log.
both() {
	local server rc=0
	"$@" >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	pause 0.5
	timeout 90 "$@" $here >"$TEST_DIR/client.log" 2>&1 </dev/null || rc=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	return $rc
}

# perftest COLUMN PROGRAM ARG...: that column of the result, or nothing. perftest gauges the
# clock first, and on a busy machine gives up on it: it then prints zeros, and is asked again.
perftest() {
	local column=$1 value=0
	shift
	for _ in 1 2 3; do
		both "$@" -R -F || continue
		value=$(awk -v c="$column" '/^ *[0-9]+ +[0-9]+ /{v = $c} END {print v + 0}' \
			"$TEST_DIR/client.log")
		[ "$value" = 0 ] || [ "$value" = inf ] || break
	done
	[ "$value" = 0 ] || [ "$value" = inf ] || echo "$value"
}

# rate_of KEY ARG...: weft-rate's answer, over the driver or over TCP.
rate_of() {
	local key=$1 tcp=() server rc=0
	shift
	[ "$driver" != tcp ] || tcp=(-T)
	weft-rate -l "${tcp[@]}" >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	pause 0.5
	timeout 90 weft-rate "${tcp[@]}" "$@" $here >"$TEST_DIR/client.log" 2>&1 </dev/null || rc=$?
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	[ $rc = 0 ] && value_of "$key"
}

value_of() { tr ' ' '\n' <"$TEST_DIR/client.log" | sed -n "s|^$1=||p" | tail -n 1; }

# The better of qperf and iperf3, with writes of that size.
tcp_bw() {
	local server q i
	qperf >/dev/null 2>&1 </dev/null &
	server=$!
	pause 0.3
	q=$(qperf -uu $here -m "$1" -t $seconds tcp_bw | awk '/bw *=/ {printf "%.1f", $3 / 1e6}')
	kill $server
	wait $server 2>/dev/null
	iperf3 -s -1 >/dev/null 2>&1 </dev/null &
	server=$!
	pause 0.3
	i=$(iperf3 -c $here -l "$1" -t $seconds -f M -J | python3 -c \
		'import json, sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 8e6)')
	wait $server 2>/dev/null
	awk -v q="${q:-0}" -v i="${i:-0}" 'BEGIN {print (q > i) ? q : i}'
}

# --- the cells: they print their figures ---

bw() {
	local v
	if [ "$driver" = tcp ]; then
		v=$(tcp_bw "$3")
	else
		v=$(perftest 4 "ib_$2_bw" -s "$3" -D $seconds | awk '{print $1 * 1.048576}')
	fi
	figure "$1" "$v"
}

rate() {
	figure "$1" "$(perftest 5 "ib_$2_bw" -s "$3" -D $seconds | awk '{print $1 * 1e6}')"
}

lat() {
	local n=20000
	[ "$3" = 8 ] || n=5000
	if [ "$driver" = tcp ]; then
		figure "$1" "$(rate_of typical_us -L -s "$3" -t $seconds)"
		figure "${1}_p99" "$(value_of p99_us)"
		return
	fi
	figure "$1" "$(perftest 5 "ib_$2_lat" -s "$3" -n $n)"
	figure "${1}_p99" "$(awk '/^ *[0-9]+ +[0-9]+ /{v = $8} END {print v}' "$TEST_DIR/client.log")"
}

# Seconds of both CPUs that were not idle, since boot.
busy() { awk '/^cpu /{print ($2 + $3 + $4 + $7 + $8) / 100}' /proc/stat; }

cpu() {
	local before after bytes
	before=$(busy)
	bytes=$(rate_of bytes -e -s 65536 -t $seconds)
	after=$(busy)
	figure "$1" "$(awk -v a="$before" -v b="$after" -v n="${bytes:-0}" \
		'BEGIN {if (n > 0) print (b - a) / n * 1e9}')"
}

conns() { figure "$1" "$(rate_of MB/s -c "$2" -s 65536 -q 4 -t $seconds)"; }
connects() { figure "$1" "$(rate_of connects/s -C -t $seconds)"; }

available() { awk '/^MemAvailable/{print $2}' /proc/meminfo; }

# Memory of an idle connection, both ends and rings included.
idle() {
	local n=500 before after tcp=() server client
	[ "$driver" != tcp ] || tcp=(-T)
	weft-rate -l "${tcp[@]}" >"$TEST_DIR/server.log" 2>&1 </dev/null &
	server=$!
	pause 0.5
	before=$(available)
	mkfifo "$TEST_DIR/hold" 2>/dev/null
	weft-rate "${tcp[@]}" -I $n $here <"$TEST_DIR/hold" >"$TEST_DIR/client.log" 2>&1 &
	client=$!
	exec 7>"$TEST_DIR/hold"
	wait_for 60 grep -q "^idle=$n" "$TEST_DIR/client.log"
	after=$(available)
	exec 7>&-
	wait $client
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	figure "$1" $(((before - after) / n))
}

loss() {
	tc qdisc replace dev lo root netem delay 5ms loss "$2%" limit 100000
	figure "$1" "$(rate_of MB/s -s 65536 -q 64 -t 15)"
	tc qdisc del dev lo root
}

# --- the turns ---

has() { [[ ,$1, == *,$2,* ]]; }

turn() {
	local drivers mtus cell fn args dev=${driver%+*}
	local module=$dev crc=0
	[ "$driver" != weft+crc ] || crc=1
	[ "$dev" != rxe ] || module=rdma_rxe
	ip link set lo mtu "$mtu"
	if [ "$driver" != tcp ]; then
		load "$module" || fail "$module does not load"
		rdma link add "${dev}0" type "$dev" netdev lo || fail "no $dev device on lo"
		wait_active a "${dev}0"
		[ "$dev" != weft ] || option weft0 crc $crc
	fi
	while read -r drivers mtus cell fn args; do
		if ! has "$drivers" "$driver" || ! has "$mtus" "$mtu"; then continue; fi
		[[ $plan = full || $plan = quick || $cell =~ ^($plan)$ ]] || continue
		# shellcheck disable=SC2086 # a list
		$fn "$cell" $args </dev/null
	done <"$TEST_DIR/cells"
	[ "$driver" != weft ] || rdma statistic show link weft0/1 >"$TEST_DIR/counters-$mtu"
	[ "$driver" = tcp ] || {
		rdma link del "${dev}0"
		[ "$dev" = rxe ] || rmmod "$module"
	}
}

mtus='1500 9000 65536' drivers='weft weft+crc siw rxe tcp'
[ "$plan" != quick ] || mtus=1500 drivers='weft weft+crc siw tcp'
cells >"$TEST_DIR/cells"
for round in $(seq "$rounds"); do
	for mtu in $mtus; do
		for driver in $drivers; do
			turn
		done
	done
done
