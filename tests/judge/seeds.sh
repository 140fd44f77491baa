#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What weft-run --adverse finds, and what it must not; TAP.
#   seeds.sh plain [CASE...]  faults of the corpus that a thousand plain runs do not find: some seed finds each, three at least
#   seeds.sh others           UCX's, Open MPI's and libfabric's own tests end well by a hundred seeds
# Environment: RUNS   plain runs of each program (1000)
#              SEEDS  seeds (100)
# Wants the provider and weft-run, build/bin/weft-orders, weft-cm-orders; others: ucx-utils, openmpi-bin, libfabric-bin and
# build/bin/mpi-verify.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${WEFT_BUILD:-$top/build}
run=$build/bin/weft-run
runs=${RUNS:-1000} seeds=${SEEDS:-100}
n=0 bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

result() {	# ok|"not ok", text
	n=$((n + 1))
	echo "$1 $n - $2"
	[ "$1" = ok ] || bad=1
}

# --- the corpus ---

cases=$(sed -nE 's/^\t\{ "([a-z-]+)", [a-z_]+ \},$/\1/p' "$top"/tests/judge/weft-orders.c | sed 's/^/weft-orders /'
	sed -nE 's/^\t\{ "([a-z-]+)", [a-z_]+ \},$/\1/p' "$top"/tests/judge/weft-cm-orders.c | sed 's/^/weft-cm-orders /')

# fails_plainly PROGRAM CASE: of how many runs.
fails_plainly() {
	local i failed=0
	for ((i = 0; i < runs; i++)); do
		timeout -k 2 60 "$run" "$build/bin/$1" 127.0.0.1 "$2" wrong >"$work/said" 2>&1 </dev/null || failed=$((failed + 1))
	done
	echo $failed
}

# found_by PROGRAM CASE: the first seed that finds it; nothing: none does.
found_by() {
	local seed
	for ((seed = 1; seed <= seeds; seed++)); do
		timeout -k 2 60 "$run" --adverse=$seed "$build/bin/$1" 127.0.0.1 "$2" wrong >"$work/said" 2>&1 </dev/null && continue
		grep -q 'FAIL round' "$work/said" || continue
		echo $seed
		return
	done
}

plain() {
	local program name failed seed hidden=0
	while read -r program name; do
		[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
		failed=$(fails_plainly "$program" "$name")
		seed=$(found_by "$program" "$name")
		if [ -n "$seed" ]; then
			result ok "$name: $failed of $runs plain runs fail, seed $seed finds it"
			[ "$failed" != 0 ] || hidden=$((hidden + 1))
		else
			result 'not ok' "$name: no seed of $seeds finds it"
		fi
	done <<<"$cases"
	if [ $hidden -ge 3 ]; then
		result ok "$hidden faults that $runs plain runs do not show are found"
	else
		result 'not ok' "only $hidden faults that $runs plain runs do not show are found"
	fi
}

# --- programs of others ---

port=21000

listens() { ss -Htln "sport = :$1" | grep -q .; }

# ends_well SEED SERVER... -- CLIENT...: PORT is one of its own. The server may take a while to listen.
ends_well() {
	local seed=$1 server=() pid rc=0 i
	shift
	port=$((port + 1))
	while [ "$1" != -- ]; do server+=("${1/PORT/$port}") && shift; done
	shift
	timeout -k 2 100 "$run" --adverse="$seed" "${server[@]}" >"$work/server" 2>&1 </dev/null &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		! listens $port || break
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	timeout -k 2 100 "$run" --adverse="$seed" "${@/PORT/$port}" >"$work/client" 2>&1 </dev/null || rc=$?
	wait $pid || rc=$((rc ? rc : $?))
	return $rc
}

ucx() {	# SEED TEST [OCTETS]
	UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=weft_lo:1 ends_well "$1" ucx_perftest -p PORT -- \
		ucx_perftest -p PORT -t "$2" -s "${3-4096}" -n 200 -w 10 127.0.0.1
}

libfabric() {	# SEED PROVIDER ENDPOINT
	ends_well "$1" fi_pingpong -B PORT -p "$2" -e "$3" -I 20 -S 4096 -- \
		fi_pingpong -P PORT -p "$2" -e "$3" -I 20 -S 4096 127.0.0.1
}

mpi() {	# SEED
	UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=weft_lo:1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		timeout -k 2 150 "$run" --adverse="$1" mpirun.openmpi --oversubscribe -np 2 --mca pml ucx --mca osc ucx \
		--mca btl self "$build/bin/mpi-verify" >"$work/client" 2>&1 </dev/null
}

# by_all WORDS COMMAND...: with each seed after the command's name.
by_all() {
	local words=$1 name=$2 seed rc failed=()
	shift 2
	: >"$work/server"
	for ((seed = 1; seed <= seeds; seed++)); do
		rc=0
		"$name" $seed "$@" || rc=$?
		[ $rc = 0 ] && continue
		failed+=("$seed")
		echo "# $words, seed $seed: status $rc; $(tail -qn 2 "$work/server" "$work/client" | tr '\n' '|')"
	done
	if [ ${#failed[@]} = 0 ]; then
		result ok "$words ends well by $seeds seeds"
	else
		result 'not ok' "$words fails by ${#failed[@]} of $seeds seeds: ${failed[*]}"
	fi
}

others() {
	local test
	for test in tag_lat tag_bw stream_bw ucp_am_bw ucp_put_lat ucp_get; do by_all "ucx_perftest $test" ucx $test; done
	by_all 'ucx_perftest ucp_fadd' ucx ucp_fadd 8
	by_all 'Open MPI over UCX' mpi
	by_all 'fi_pingpong over verbs;ofi_rxm' libfabric 'verbs;ofi_rxm' rdm
}

case ${1-} in
plain | others) "$@" ;;
*) echo "usage: seeds.sh plain|others" >&2 && exit 2 ;;
esac
echo "1..$n"
exit $bad
