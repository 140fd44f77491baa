#!/bin/bash
# UCX and Open MPI over weft-run's devices and over TCP, by turns, each pair as close together as can be; the
# medians, and the median of the pairs' ratios. Puts of 64 KB in 10^6 octets a second; of 8 octets the typical
# time, and half a round trip of 8 octets between two ranks, in us.
#   tests/lab/run.sh rootless -x tests/bench/measure-ucx.sh [ROUNDS]
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

unset WEFT_TRACE
rounds=${1:-9}
TEST_DIR=$SHARE/bench-ucx
mkdir -p "$TEST_DIR"
chmod 1777 "$TEST_DIR"
export TEST_DIR HOME=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
csv=$TEST_DIR/figures
wrapped=$PATH plain=${PATH#*:}
pair weft:weft 65536

by() {
	if [ "$1" = weft ]; then
		export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$DEV_A:1 PATH=$wrapped
	else
		export UCX_TLS=tcp,self UCX_NET_DEVICES=lo PATH=$plain
	fi
}

# put WAY TEST SIZE COUNT COLUMN: of the line of results.
put() {
	by "$1"
	together 13337 ucx_perftest -- ucx_perftest -t "$2" -s "$3" -n "$4" "$IP_B"
	awk -v column="$5" '/^Final/ {print $column}' "$TEST_DIR/ucx_perftest.log"
}

put_bw() { put "$1" ucp_put_bw 65536 20000 6 | awk '{print $1 * 1.048576}'; }
put_lat() { put "$1" ucp_put_lat 8 20000 3; }

# Open MPI's own way over TCP is its BTL.
ping() {
	local how=(--mca pml ucx --mca btl self)
	by "$1"
	[ "$1" = weft ] || how=(--mca pml ob1 --mca btl 'tcp,self' --mca btl_tcp_if_include lo)
	run mpirun.openmpi --oversubscribe -np 2 "${how[@]}" "$WEFT_BUILD/bin/mpi-verify" -p
	awk '/ us$/ {print $1}' "$TEST_DIR/mpirun.openmpi.log"
}

for ((round = 0; round < rounds; round++)); do
	for what in put_bw put_lat ping; do
		for way in weft tcp; do
			echo "$what $way $($what "$way")" >>"$csv"
		done
	done
done

awk -f "$WEFT_TOP/tests/bench/pairs.awk" "$csv"
