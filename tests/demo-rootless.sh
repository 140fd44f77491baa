#!/usr/bin/env bash
# make demo-rootless: RDMA programs of the distribution on this host, as a user without rights, with
# no module and nothing prepared. Their figures stand beside those of plain TCP sockets with the same
# traffic, taken by turns.
# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"
need rping ib_write_bw ib_read_bw ib_write_lat setpriv python3
# shellcheck source-path=SCRIPTDIR source=lab/rootless.sh
. "$WEFT_TOP/tests/lab/rootless.sh"

run=$WEFT_BUILD/demo/rootless
export HERE=$run TEST_DIR=$run WEFT_LINK=lo OWN_NET=no DEV_A=weft_lo DEV_B=weft_lo
rm -rf "$run"
mkdir -p "$run"
# shellcheck source-path=SCRIPTDIR source=lab/lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"
# As the lab's functions expect it.
set +eu
# A server whose client failed would wait for ever.
trap clean_here EXIT

build() {
	say "building weft-run and what it needs"
	logged "$run/build.log" make -C "$WEFT_TOP" rootless || exit
	logged "$run/build.log" make -C "$WEFT_TOP/tests/progs" "$WEFT_BUILD/bin/weft-rate" \
		BIN="$WEFT_BUILD/bin" OBJ="$WEFT_BUILD/tests/progs" || exit
}

# The programs' names lead to weft-run from here on, as that user.
become_nobody() {
	local sanitized=''
	weft_run=$WEFT_BUILD/bin/weft-run
	rootless_user
	rootless_programs
	PATH=$run/bin:$PATH
	who="user $(id -un 2>/dev/null)"
	[ "$(id -u)" != 0 ] || who+=', without capabilities'
	case $as_user in *65534*) who='user 65534 (nobody)' ;; esac
	who+=', who can gain no privileges'
}

rping_shows() {
	local port
	port=$(free_port)
	together "$port" rping -s -a "$IP_B" -p "$port" -C 1000 -S 4000 -V -- \
		rping -c -a "$IP_B" -p "$port" -C 1000 -S 4000 -V
	echo "rping: 1000 messages of 4000 bytes and back, each compared: all right"
	echo "Now measuring by turns, weft and plain TCP, about a minute ..."
	echo
}

# row NAME PROGRAM READER TCP N OPTION...: with CRC, and without; beside the row TCP.
row() {
	local name=$1 program=$2 reader=$3 tcp=$4 n=$5 crc
	shift 5
	for crc in 'weft+crc ' 'weft , without CRC'; do
		echo "$program, $name${crc#* } | - | $tcp | - | $reader | $one ${crc%% *} - perftest $n $program $*"
	done
}

plan() {
	echo "TCP stream | - | - | - | MB/s | $one tcp - rate -s 65536"
	row 'Writes of 64 KiB' ib_write_bw perftest_bw 'TCP stream' 2000 -N -s 65536
	row 'Reads of 64 KiB' ib_read_bw perftest_bw 'TCP stream' 2000 -N -s 65536
	echo "TCP ping-pong | - | - | - | typical_us | $one tcp - rate -L -s 8"
	row '8 bytes, one way' ib_write_lat perftest_lat 'TCP ping-pong' 500 -s 8
}

# A slow machine has fewer pairs, and the table says so.
measure() {
	local one="bash $WEFT_TOP/tests/bench/one.sh" turns=$WEFT_TOP/tests/bench/turns.py
	local options=(--seconds 150 --limit 100) files=("$run/plan" "$run/figures.csv") rc=0
	export AS_USER=$as_user WEFT_RUN=$weft_run
	plan >"$run/plan"
	"$turns" "${options[@]}" "${files[@]}" >"$run/turns.log" 2>&1 || rc=$?
	[ $rc = 0 ] || grep '^# ' "$run/turns.log"
	"$turns" --table "${options[@]}" "${files[@]}"
	return $rc
}

verdict() {
	if [ "$1" = 0 ]; then
		echo "weft-run works: RDMA programs ran unchanged, with no module and no root ($SECONDS s)."
	else
		echo "weft-run does NOT work here; what was said is in build/demo/rootless/."
	fi
	exit "$1"
}

# Other programs that take its CPUs limit both ways.
load_line() {
	awk -v load="$1" -v cpus="$(nproc)" 'BEGIN {
		if (load > cpus) print "Others take these CPUs, too: the load was " load " before. That limits weft and TCP."
	}'
}

build
read -r load _ </proc/loadavg
become_nobody
echo "RDMA over TCP on lo (MTU $(cat /sys/class/net/lo/mtu)) of this machine, with $(nproc) CPUs,"
echo "as $who:"
echo
(rping_shows && measure)
rc=$?
echo
echo "Medians. A pair is a run of weft and one of TCP, one soon after the other; the ratio is the median of the"
echo "pairs', and half of them lie within the quartiles. TCP: a stream of 64 KiB messages, a ping-pong that spins."
echo "What limits it: these CPUs copy each octet at both ends, as for TCP, and once more at the receiver; with iWARP's"
echo "CRC, which is on unless a user turns it off, they sum it at both ends. docs/performance-native.md counts copies and calls."
load_line "$load"
verdict $rc
