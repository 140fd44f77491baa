#!/usr/bin/env bash
# make demo-rootless: RDMA programs of the distribution on this host, as a user without rights, with
# no module and nothing prepared. Their figures stand beside those of plain TCP sockets with the same
# traffic, taken in the same minute.
# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"
need rping ib_write_bw ib_read_bw ib_write_lat setpriv
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

free_port() {
	local port
	for _ in {1..50}; do
		port=$((20000 + RANDOM % 12000))
		listening $port || break
	done
	echo $port
}

row() { printf '%-13s %-36s %12s %12s %12s\n' "$@"; }

rping_shows() {
	local port
	port=$(free_port)
	together "$port" rping -s -a "$IP_B" -p "$port" -C 1000 -S 4000 -V -- \
		rping -c -a "$IP_B" -p "$port" -C 1000 -S 4000 -V
	row rping '1000 messages of 4000 bytes and back' 'all right' '' ''
}

# perftest_says CRC COLUMN PROGRAM OPTION...
perftest_says() {
	local crc=$1 column=$2 port figures
	shift 2
	port=$(free_port)
	export WEFT_CRC=$crc
	# perftest prints zeros where it could not gauge its clock: once more.
	for _ in 1 2 3; do
		rm -f "$run"/server.rc
		(together "$port" "$@" -R -F -p "$port" -- "$@" -R -F -p "$port" "$IP_B") \
			>"$run/$1.said" 2>&1 || {
			cat "$run/$1.said" >&2
			exit 1
		}
		figures=$(grep -E '^ *[0-9]+ +[0-9]+ ' "$run/$1.log" | tail -n 1)
		awk -v c="$column" '{print $c + 0; exit !($c > 0)}' <<<"$figures" && return
	done
}

# tcp_says KEY OPTION...: without weft-run.
tcp_says() {
	local key=$1 port rate=$WEFT_BUILD/bin/weft-rate
	shift
	port=$(free_port)
	rm -f "$run"/tcp.rc
	# shellcheck disable=SC2086 # a list
	start_b tcp $as_user "$rate" -l -T -p "$port"
	wait_listen_b "$port"
	# shellcheck disable=SC2086
	$as_user "$rate" -T -t 1 -p "$port" "$@" "$IP_B" | tr ' ' '\n' | sed -n "s|^$key=||p"
	finish_b tcp
}

megabytes() { awk '{printf "%.0f MB/s", $1 * 1.048576}'; }
microseconds() { awk '{printf "%.1f us", $1}'; }

# stream_shows PROGRAM WHAT
stream_shows() {
	local with without
	with=$(perftest_says 1 4 "$1" -s 65536 -n 20000) || exit
	without=$(perftest_says 0 4 "$1" -s 65536 -n 20000) || exit
	row "$1" "$2" "$(megabytes <<<"$with")" "$(megabytes <<<"$without")" "$stream"
}

latency_shows() {
	local with without
	with=$(perftest_says 1 5 ib_write_lat -s 8 -n 30000) || exit
	without=$(perftest_says 0 5 ib_write_lat -s 8 -n 30000) || exit
	row ib_write_lat 'Writes of 8 bytes, one way' "$(microseconds <<<"$with")" \
		"$(microseconds <<<"$without")" "$(tcp_says typical_us -L -s 8 | microseconds)"
}

verdict() {
	if [ "$1" = 0 ]; then
		echo "weft-run works: RDMA programs ran unchanged, with no module and no root ($SECONDS s)."
	else
		echo "weft-run does NOT work here; what was said is in build/demo/rootless/."
	fi
	exit "$1"
}

build
become_nobody
echo "RDMA over TCP on lo (MTU $(cat /sys/class/net/lo/mtu)) of this machine, with $(nproc) CPUs,"
echo "as $who:"
echo
row program 'what it did' weft 'without CRC' 'plain TCP'
(
	rping_shows
	stream=$(tcp_says MB/s -s 65536 | awk '{printf "%.0f MB/s", $1}')
	stream_shows ib_write_bw 'Writes of 64 KiB'
	stream_shows ib_read_bw 'Reads of 64 KiB'
	latency_shows
)
rc=$?
echo
echo "(TCP: a stream of 64 KiB messages, and a ping-pong that spins. iWARP's CRC is on unless a user"
echo "turns it off. One run of a second each: 'make bench-native' says more.)"
verdict $rc
