#!/usr/bin/env bash
# Instructions that a further FPDU of 1448 octets of a long Write costs, without CRC, in tests/stacks' bench: to
# send and to take it. Apart from the engine's own (kernel/core, kernel/proto), which all hosts pay, those of
# the bench's host and its copies. callgrind counts them, so a busy machine changes nothing.
#   fpdu.sh         compares with tests/bench/fpdu: fails if one differs by more than 5 %
#   fpdu.sh --store writes that file
# A line: END ENGINE HOST
set -u
here=$(cd "$(dirname "$0")" && pwd)
bench=$here/../../build/tests/stacks/bench_core
stored=$here/fpdu
messages=32			# of a run: BATCH in bench_core.c
mss=1448
fpdu_payload=$((mss - 20))	# of a Write: length, DDP header and CRC take the rest
short=$((20 * fpdu_payload))
long=$((40 * fpdu_payload))
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make -s -C "$here/../stacks" "../../build/tests/stacks/bench_core" >"$dir/make" 2>&1 || { cat "$dir/make" >&2 && exit 1; }

# count LEN FUNCTION: with all that it calls: of the engine, and of all others.
count() {
	valgrind -q --tool=callgrind --collect-atstart=no --toggle-collect="$2" --callgrind-out-file="$dir/out" \
		"$bench" "$1" $mss 0 >"$dir/log" 2>&1 || { cat "$dir/log" >&2 && return 1; }
	awk '
		/^c?f[lie]=/ {
			id = $1
			sub(/^.*=/, "", id)
			if (NF > 1)
				name[id] = $2
			if (!/^c/)
				engine = name[id] ~ /\/kernel\/core\/|\/proto\//
			next
		}
		/^calls=/ { called = 1; next }
		/^[-+*0-9]/ { if (!called) sum[engine] += $2; called = 0 }
		END { print sum[1] + 0, sum[0] + 0 }' "$dir/out"
}

# further FUNCTION: the same for an FPDU more in each message.
further() {
	local few many
	few=$(count $short "$1") && many=$(count $long "$1") || return
	awk -v n=$((messages * (long - short) / fpdu_payload)) \
		'{ printf "%.0f %.0f\n", ($3 - $1) / n, ($4 - $2) / n }' <<<"$few $many"
}

{
	both=$(further one_round) && take=$(further receive) || exit 1
	awk '{ print "send", $1 - $3, $2 - $4; print "take", $3, $4 }' <<<"$both $take"
} >"$dir/all" || exit 1
cat "$dir/all"
if [ "${1-}" = --store ]; then
	cp "$dir/all" "$stored"
	exit
fi
awk 'NR == FNR { was[$1] = $2; next }
	!was[$1] || $2 > 1.05 * was[$1] || $2 < 0.95 * was[$1] {
		printf "to %s it: %d instructions of the engine, stored: %d; after a change that is meant: fpdu.sh --store\n",
			$1, $2, was[$1]
		bad = 1
	}
	END { exit bad }' "$stored" "$dir/all" >&2
