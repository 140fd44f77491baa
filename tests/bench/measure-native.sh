#!/bin/bash
# The native bench: weft-run's devices and TCP's sockets by turns, on lo of the place without a machine. In
# $TEST_DIR: plan and figures.csv, as turns.py has them, and counts, what missed goals call.
#   measure-native.sh PAIRS PLAN SECONDS
#        PLAN: goals; plots, what the plots of the page need; or a regular expression for names of rows
#        SECONDS: no run goes on for longer
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

pairs=$1 plan=$2 limit=$3
TEST_DIR=$SHARE/bench
mkdir -p "$TEST_DIR"
chmod 1777 "$TEST_DIR"
export TEST_DIR
one="bash $WEFT_TOP/tests/bench/one.sh"
turns=$WEFT_TOP/tests/bench/turns.py
mtus='65536 1500'
[ "$OWN_NET" = yes ] || mtus=$(cat /sys/class/net/lo/mtu)

# --- the plan: NAME | PAIRS | BASE | GOAL | READER | COMMAND ---

tcp_stream() { echo "TCP, $1 octets, MTU $2 | - | - | - | MB/s | $one tcp $2 rate -s $1"; }

# stream NAME VERB SIZE MTU WAY GOAL [OPTION]: beside TCP's with messages of the same size.
stream() {
	echo "ib_$2_bw, $1 | - | TCP, $3 octets, MTU $4 | $6 | perftest_bw |" \
		"$one $5 $4 perftest $((100000000 / $3)) ib_$2_bw -N -s $3 ${7-}"
}

# Where FPDUs are as large as messages.
streams_at_large_mtu() {
	local size=$1 mtu=$2 verb
	tcp_stream "$size" "$mtu"
	for verb in write send read; do stream "$size octets" $verb "$size" "$mtu" weft '>= 1' -R; done
	for verb in send read; do stream "$size octets, CRC on" $verb "$size" "$mtu" weft+crc '>= 0.85' -R; done
	stream "$size octets, CRC on" write "$size" "$mtu" weft+crc '>= 0.7' -R
}

# By rdma_cm an FPDU is a segment; QPs connected by hand may agree on larger ones.
streams_at_small_mtu() {
	local size=$1 mtu=$2 verb
	tcp_stream "$size" "$mtu"
	for verb in write send read; do
		stream "$size octets, MTU $mtu, by hand" $verb "$size" "$mtu" weft '>= 1'
	done
	for verb in write send read; do
		stream "$size octets, MTU $mtu" $verb "$size" "$mtu" weft '>= 0.85' -R
	done
	for verb in write send read; do
		stream "$size octets, MTU $mtu, CRC on" $verb "$size" "$mtu" weft+crc '>= 0.7' -R
	done
}

# latency NAME PROGRAM BASE GOAL [OPTION]: of 8 octets, half a round trip.
latency() {
	echo "$1 | - | $3 | $4 | perftest_lat | $one weft+crc $mtu perftest 500 $2 -R -s 8 ${5-}"
}

goals() {
	local mtu size
	for mtu in $mtus; do
		for size in 65536 1048576; do
			if [ "$mtu" -ge 65536 ]; then
				streams_at_large_mtu "$size" "$mtu"
			else
				streams_at_small_mtu "$size" "$mtu"
			fi
		done
	done
	mtu=${mtus%% *}
	cat <<-END
		TCP, ping-pong of 8 octets | - | - | - | typical_us | $one tcp $mtu rate -L -s 8
		$(latency 'ib_send_lat, 8 octets' ib_send_lat 'TCP, ping-pong of 8 octets' '<= 1.15')
		$(latency 'ib_write_lat, 8 octets' ib_write_lat 'TCP, ping-pong of 8 octets' '<= 1.2')
		TCP, ping-pong of 8 octets, asleep | - | - | - | typical_us | $one tcp $mtu rate -L -s 8 -e
		$(latency 'ib_send_lat -e, 8 octets' ib_send_lat 'TCP, ping-pong of 8 octets, asleep' '<= 1.1' -e)
		ib_write_bw, 64 octets | - | - | >= 5000000 | perftest_rate | $one weft $mtu perftest 200000 ib_write_bw -R -N -s 64
		UCX over TCP, put of 64 KB | - | - | - | ucx_bw | $one tcp $mtu ucx ucp_put_bw 65536 8000
		UCX, put of 64 KB | - | UCX over TCP, put of 64 KB | >= 1.5 | ucx_bw | $one weft+crc $mtu ucx ucp_put_bw 65536 8000
		Open MPI's TCP BTL, ping-pong | - | - | - | mpi_lat | $one tcp $mtu mpi
		Open MPI over UCX, ping-pong of 8 octets | - | Open MPI's TCP BTL, ping-pong | <= 1.1 | mpi_lat | $one weft+crc $mtu mpi
		TCP, both ends asleep | - | - | - | s/GB | $one tcp $mtu rate -e -s 65536
		CPU time of Writes of 64 KB, both ends asleep | 3 | TCP, both ends asleep | <= 1.1 | s/GB | $one weft $mtu rate -e -s 65536
		one connection | - | - | - | MB/s | $one weft $mtu rate -s 65536 -q 4
		1000 connections, of one | 3 | one connection | >= 0.8 | MB/s | $one weft $mtu rate -c 1000 -s 65536 -q 4
		TCP, an idle connection | - | - | - | KB | $one tcp $mtu idle
		an idle connection, without rings | 1 | TCP, an idle connection | +<= 16 | KB | $one weft $mtu idle
		ibv_devinfo without weft-run | - | - | - | ms | $one tcp $mtu start
		start of ibv_devinfo | - | ibv_devinfo without weft-run | +<= 20 | ms | $one weft $mtu start
	END
}

# shellcheck disable=SC2317 # called by the plan's name
# Bandwidth and latency over size, at the larger MTU.
plots() {
	local size way mtu=${mtus%% *}
	for size in 64 256 1024 4096 16384 65536 262144 1048576; do
		tcp_stream "$size" "$mtu"
		stream "$size octets, CRC off" write "$size" "$mtu" weft - -R
		stream "$size octets, CRC on" write "$size" "$mtu" weft+crc - -R
	done
	for size in 8 64 256 1024 4096 16384 65536; do
		echo "TCP, ping-pong of $size octets | - | - | - | typical_us | $one tcp $mtu rate -L -s $size"
		for way in 'weft off' 'weft+crc on'; do
			echo "ib_send_lat, $size octets, CRC ${way#* } | - | TCP, ping-pong of $size octets | - |" \
				"perftest_lat | $one ${way% *} $mtu perftest 500 ib_send_lat -R -s $size"
		done
	done
}

# --- counts of missed goals, as far as perftest has them ---

count_missed() {
	local name command
	while IFS=$'\t' read -r name command; do
		[ $SECONDS -lt $((limit + 60)) ] || break
		# shellcheck disable=SC2086 # a list
		case $command in
		*' perftest '*) printf '%s\t%s\n' "$name" "$(timeout 60 ${command/ perftest / calls })" ;;
		esac </dev/null
	done < <("$turns" --missed "$@") >"$TEST_DIR/counts"
}

{
	echo "Linux $(uname -r), $(nproc) CPUs, congestion control $(</proc/sys/net/ipv4/tcp_congestion_control);" \
		"programs begin by: ${AS_USER% }."
	[ "$OWN_NET" = yes ] ||
		echo "No namespace could be had: lo is the host's, and only its own MTU was measured."
} >"$TEST_DIR/machine"
only=
case $plan in
goals | plots) $plan ;;
*) goals && only=$plan ;;
esac >"$TEST_DIR/plan"
files=("$TEST_DIR/plan" "$TEST_DIR/figures.csv")
rc=0
"$turns" --pairs "$pairs" --seconds "$limit" --limit 60 --only "$only" "${files[@]}" || rc=$?
count_missed --pairs "$pairs" --only "$only" "${files[@]}"
exit $rc
