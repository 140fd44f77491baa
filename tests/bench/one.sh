#!/bin/bash
# One run of a benchmark program, both its ends, in the place without a machine: prints what the client
# printed. tests/bench/turns.py calls it.
#   one.sh WAY MTU FUNCTION ARG...    a function of those below. WAY: weft, weft+crc or tcp; MTU: of lo, or -
#                                     for as it is
# Environment: as tests/lab/rootless.sh gives it, and TEST_DIR, where the logs are
# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"

way=$1 mtu=$2
here=$IP_B
# shellcheck source-path=SCRIPTDIR source=figures.sh
. "$WEFT_TOP/tests/bench/figures.sh"

# --- what figures.sh asks for ---

driver=$way
up() { listening "$port" || is_over "$server"; }
begun() { wait_for 20 up && ! is_over "$server"; }

# What a process has to itself, and its page tables; its rings are files of memory.
memory_of() {
	awk '/^(RssAnon|VmPTE):/{n += $2} /^RssShmem:/{rings = $2} END {print n, rings}' "/proc/$1/status"
}

# --- both ends ---

# both SERVER... -- CLIENT...: the server at $port, which the client knows.
both() {
	local words=() rc=0
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	server "${words[@]}" -p "$port" || { end_server 0 && return 1; }
	client "$@" || rc=$?
	end_server $((rc ? 0 : 5))
	cat "$TEST_DIR/client.log"
	[ $rc = 0 ] || tail -qn 1 "$TEST_DIR/server.log"
	return $rc
}

# What perftest says lasted so many seconds; nothing if it printed no figure.
seconds_of() {
	# shellcheck disable=SC2016 # awk's
	local each='$2 * $1 / $4 / 1048576'
	# shellcheck disable=SC2016
	[[ $1 != *_lat ]] || each='2 * $2 * $5 / 1e6'
	awk '/^ *[0-9]+ +[0-9]+ / && $4 > 0 {v = '"$each"'} END {if (v > 0) print v}' "$TEST_DIR/client.log"
}

# perftest N PROGRAM ARG...: with as many messages as take half a second; N of them show how many these are.
perftest() {
	local n=$1 took memory
	shift
	memory=$TEST_DIR/messages-$(tr -c 'A-Za-z0-9_+-' _ <<<"$way-$mtu-$*")
	while :; do
		[ ! -s "$memory" ] || read -r n <"$memory"
		port=$(free_port)
		both "$@" -F -n "$n" -- "$@" -F -n "$n" -p "$port" "$here" >"$TEST_DIR/said" || break
		took=$(seconds_of "$1")
		[ -n "$took" ] || break
		awk -v n="$n" -v took="$took" 'BEGIN {
			n *= 0.5 / took
			printf "%d\n", (n < 200) ? 200 : (n > 4000000) ? 4000000 : n
		}' >"$memory.new"
		mv "$memory.new" "$memory"
		# Far too short: the first run, or the machine's mood has changed.
		awk -v took="$took" 'BEGIN {exit !(took < 0.2)}' || break
	done
	cat "$TEST_DIR/said"
}

# rate ARG...: weft-rate, half a second of it.
rate() {
	local tcp=()
	[ "$way" != tcp ] || tcp=(-T)
	both weft-rate -l "${tcp[@]}" -- weft-rate "${tcp[@]}" -t 0.5 -p "$port" "$@" "$here"
}

# ucx TEST SIZE COUNT
ucx() {
	# shellcheck disable=SC2054 # UCX's commas
	local how=(UCX_TLS=rc_verbs,ud_verbs,self "UCX_NET_DEVICES=$DEV_A:1")
	# shellcheck disable=SC2054
	[ "$way" != tcp ] || how=(UCX_TLS=tcp,self UCX_NET_DEVICES=lo)
	export "${how[@]}" HOME=/tmp
	both ucx_perftest -- ucx_perftest -t "$1" -s "$2" -n "$3" -p "$port" "$here"
}

# Half a round trip of 8 octets. Open MPI's own way over TCP is its BTL.
mpi() {
	local how=(--mca pml ucx --mca btl self)
	[ "$way" != tcp ] || how=(--mca pml ob1 --mca btl 'tcp,self' --mca btl_tcp_if_include lo)
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$DEV_A:1 HOME=/tmp
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe -np 2 \
		"${how[@]}" "$WEFT_BUILD/bin/mpi-verify" -p
}

# What an idle connection takes of the client, rings apart.
idle() {
	local one port=7176
	one=$(per_one -I) && [ -n "$one" ] && echo "KB=${one% *}"
}

# The start of a program that only lists the devices.
start() {
	local from=$EPOCHREALTIME words=("$WEFT_RUN")
	[ "$way" != tcp ] || words=()
	# shellcheck disable=SC2086 # a list: what makes both ways the same user
	$AS_USER "${words[@]}" /usr/bin/ibv_devinfo >"$TEST_DIR/client.log" 2>&1
	awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN {printf "ms=%.3f\n", 1000 * (b - a)}'
}

# calls PERFTEST-ARG...: weft's own counters at each end, for one message: calls of TCP, polls of the program that
# found no completion, and wake-ups of the progress thread. Counting slows nothing, so spinning programs spin as ever.
calls() {
	local n=20000 end
	shift
	[[ $* != *1048576* ]] || n=2000
	export WEFT_STATS=1
	both "$@" -F -n $n -- "$@" -F -n $n -p "$port" "$here" >/dev/null || return
	for end in client server; do
		printf '%s' "$end"
		awk -v n=$n '$1 == "weft:" && $2 ~ /^(tx_calls|rx_calls|polls|wakes)$/ {
			printf "%s %s %.3g", comma, $2, $3 / n
			comma = ","
		}' "$TEST_DIR/$end.log"
		[ $end = server ] || printf '; '
	done
	echo
}

# --- the run ---

# A trace would be measured, too.
unset WEFT_TRACE
DEV_A=${DEV_A:-weft_lo}
[ "$mtu" = - ] || [ "$OWN_NET" = no ] || ip link set lo mtu "$mtu"
port=$(free_port)
export WEFT_CRC=0
[ "$way" != weft+crc ] || WEFT_CRC=1
# Programs that are found in $HERE/bin first begin under weft-run (lab/rootless.sh).
PATH=$WEFT_BUILD/bin:${PATH//"$HERE/bin:"/}
[ "$way" = tcp ] || PATH=$HERE/bin:$PATH
shift 2
"$@"
