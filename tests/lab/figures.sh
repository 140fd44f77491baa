#!/bin/bash
# Figures side by side in one run: weft, siw and TCP over lo at one MTU, one driver loaded at a
# time, ROUNDS rounds by turns, medians. For the SMP user-mode kernel; see docs/performance.md.
#   figures.sh [MTU [ROUNDS]]
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

mtu=${1:-1500} rounds=${2:-3}
TEST_DIR=$SHARE/figures
mkdir -p "$TEST_DIR"
export TEST_DIR TMPDIR=$TEST_DIR
# siw on lo needs a link-layer address for its GID, and does not resolve 127.0.0.1.
here=10.7.9.1
ip link set lo mtu "$mtu" address 02:77:65:66:74:01
ip addr add $here/32 dev lo

# figure NAME DRIVER VALUE
figure() { echo "$1 $2 $3" >>"$TEST_DIR/values"; }

# perftest COLUMN PROGRAM ARG...: over lo, both ends here. Prints that column of the result.
# perftest measures the clock's rate first, and on a busy machine gives up on it: it then prints
# zeros, or no number, and is asked again.
perftest() {
	local column=$1 value=0 try server
	shift
	for try in 1 2 3; do
		"$@" -R -F >"$TEST_DIR/server.log" 2>&1 </dev/null &
		server=$!
		sleep 0.5
		timeout 60 "$@" -R -F $here >"$TEST_DIR/client.log" 2>&1 </dev/null ||
			echo "$*: try $try failed" >&2
		kill $server 2>/dev/null
		wait $server 2>/dev/null
		value=$(awk -v c="$column" '/^ *[0-9]+ +[0-9]+ /{v = $c} END {print v + 0}' \
			"$TEST_DIR/client.log")
		[ "$value" = 0 ] || [ "$value" = inf ] || break
	done
	echo "$value"
}

rdma_round() {
	local driver=$1
	load "$driver" || fail "$driver does not load"
	rdma link add "${driver}0" type "$driver" netdev lo || fail "no $driver device on lo"
	wait_active a "${driver}0"
	# siw's default, and the kernel's of a peer that does not ask for it.
	[ "$driver" = siw ] || echo "${CRC:-0}" >/sys/class/infiniband/weft0/weft/crc
	figure "write_bw_64K_MB/s" "$driver" "$(perftest 4 ib_write_bw -s 65536 -D 3)"
	figure "write_bw_4K_MB/s" "$driver" "$(perftest 4 ib_write_bw -s 4096 -D 3)"
	figure "read_bw_64K_MB/s" "$driver" "$(perftest 4 ib_read_bw -s 65536 -D 3)"
	figure "send_bw_64K_MB/s" "$driver" "$(perftest 4 ib_send_bw -s 65536 -D 3)"
	figure "write_lat_8B_us" "$driver" "$(perftest 5 ib_write_lat -s 8 -n 20000)"
	figure "read_lat_8B_us" "$driver" "$(perftest 5 ib_read_lat -s 8 -n 20000)"
	figure "send_lat_64K_us" "$driver" "$(perftest 5 ib_send_lat -s 65536 -n 2000)"
	echo "$driver: a round is done"
	[ "$driver" = weft ] && rdma statistic show link weft0/1 >"$TEST_DIR/counters"
	rdma link del "${driver}0"
	rmmod "$driver"
}

tcp_round() {
	qperf >/dev/null 2>&1 </dev/null &
	local server=$!
	sleep 0.5
	figure "write_bw_64K_MB/s" tcp \
		"$(qperf -uu 127.0.0.1 -m 65536 -t 3 tcp_bw | awk '/bw/{printf "%.0f", $3 / 1e6}')"
	kill $server
	wait $server 2>/dev/null
}

for _ in $(seq "$rounds"); do
	rdma_round weft
	rdma_round siw
	tcp_round
done

echo "MTU $mtu, $rounds rounds, medians"
sort -k1,2 -k3n "$TEST_DIR/values" | awk '
	{ key = $1 " " $2; n[key]++; v[key, n[key]] = $3; names[$1]; drivers[$2] }
	function median(k) { return n[k] ? v[k, int((n[k] + 1) / 2)] : "-" }
	END {
		printf "%-20s %10s %10s %10s %10s\n", "figure", "weft", "siw", "tcp", "weft/siw"
		for (f in names) {
			w = median(f " weft"); s = median(f " siw")
			printf "%-20s %10s %10s %10s %10s\n", f, w, s, median(f " tcp"),
				(s > 0) ? sprintf("%.2f", w / s) : "-"
		}
	}'
cat "$TEST_DIR/counters"
