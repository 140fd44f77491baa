#!/usr/bin/env bash
# Instructions in user space that a Send of 8 octets costs under weft-run, with CRC: to send it, doorbell
# and completion included, and to receive it, by one call of ibv_poll_cq(). callgrind counts them, so a
# busy machine changes nothing.
#   instructions.sh         compares with tests/bench/instructions: fails if one differs by more than 5 %
#   instructions.sh --store writes that file
# A line: WAY SEND TAKE, and of these weft_send_run() and weft_link_rx() with all that they call; then the locked
# instructions among SEND and TAKE, of the libraries' own: each takes as long as a dozen others.
# Environment: WEFT_RUN  weft-run; AS_USER  a command that drops privileges
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$here/../../build/bin" && pwd)
stored=$here/instructions
run=${WEFT_RUN:-$bin/weft-run}
rounds=200
ways=(cm-inline cm-sge hand-inline hand-sge)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 1777 "$dir"

# Both processes' costs of calling these functions, by message.
costs() {
	awk -v n=$((2 * rounds)) '
		/^cfn=/ { id = $1; sub(/^cfn=/, "", id); if (NF > 1) names[FILENAME id] = $2; callee = names[FILENAME id] }
		/^fn=/ { id = $1; sub(/^fn=/, "", id); if (NF > 1) names[FILENAME id] = $2 }
		# A compiler may name a copy of its own: weft_send_run.constprop.0.
		after { sub(/\..*/, "", callee); cost[callee] += $3; after = 0 }
		/^calls=/ { after = 1 }
		END { printf "%.0f %.0f %.0f %.0f\n", cost["post_one"] / n, cost["take_one"] / n,
			cost["weft_send_run"] / n, cost["weft_link_rx"] / n }' "$dir/$1".*
}

# Addresses of a library's locked instructions. What exchanges with memory is locked by itself.
locked_ones() { objdump -d --no-show-raw-insn "$1" | awk '$2 == "lock" || ($2 == "xchg" && /\(/) { print "0x" substr($1, 1, length($1) - 1) }'; }

# By message, the same: a line of callgrind has its instruction's address, and what is called none of it.
locked() {
	local object
	for object in "$bin"/../lib/libweft-rootless.so "$bin"/../lib/libweft-rdmav*.so; do
		object=$(readlink -f "$object")
		awk -v n=$rounds -v object="$object" '
			NR == FNR { locked[$1] = 1; next }
			/^ob=/ { id = $1; if (NF > 1) names[FILENAME id] = $2; own = names[FILENAME id] == object; next }
			/^cob=/ { id = $1; sub(/^c/, "", id); if (NF > 1) names[FILENAME id] = $2; next }
			/^calls=/ { getline; next }
			own && /^0x/ && $1 in locked { sum += $3 }
			END { print sum / n / 2 }' <(locked_ones "$object") "$dir/$1".*
	done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# shellcheck disable=SC2086 # a command and its arguments
count() {
	timeout -k 2 100 ${AS_USER-} "$run" valgrind -q --tool=callgrind --collect-atstart=no --dump-instr=yes --compress-pos=no \
		--toggle-collect=post_one --toggle-collect=take_one --callgrind-out-file="$dir/$1.%p" \
		"$bin/message-cost" "${1%-*}" 127.0.0.1 "${1#*-}" $rounds >"$dir/log" 2>&1 ||
		{ echo "$1: message-cost ended with $?: $(tail -n 1 "$dir/log")" >&2 && exit 1; }
	echo "$(costs "$1") $(locked "$1")"
}

for way in "${ways[@]}"; do
	counted=$(count "$way") || exit 1
	echo "$way $counted"
done >"$dir/all" || exit 1
cat "$dir/all"
if [ "${1-}" = --store ]; then
	cp "$dir/all" "$stored"
	exit
fi
awk 'NR == FNR { for (i = 2; i <= NF; i++) was[$1, i] = $i; next }
	{
		for (i = 2; i <= NF; i++)
			if (!was[$1, i] || $i > 1.05 * was[$1, i] || $i < 0.95 * was[$1, i]) {
				printf "%s: %d instructions, stored: %d; after a change that is meant: instructions.sh --store\n",
					$1, $i, was[$1, i]
				bad = 1
			}
	}
	END { exit bad }' "$stored" "$dir/all" >&2
