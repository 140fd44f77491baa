#!/usr/bin/env bash
# What --judge, --faults, --control and --record cost a message while they are off. callgrind says from which
# lines the instructions are that message-cost executes between its posts and its polls.
#   features-off.sh  fails if one is from a file of these features, or if more than SWITCHES a message ask
#                    whether one is on; and if it would find none of these files though the features are on
# Environment: WEFT_RUN  weft-run; AS_USER  a command that drops privileges
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
bin=$(cd "$top/build/bin" && pwd)
run=${WEFT_RUN:-$bin/weft-run}
rounds=100
SWITCHES=8
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 1777 "$dir"

# Files of the features, which a path ends with.
files='(judge|faults|control|record)/[a-z_]+\.[ch]|host/(cable|due_clock|late|place_late|recorded)\.c|weft/(failing|judged|judged_ops)\.c'
files="$files|uverbs/(adverse|fault|faulty|judged|recorded)\\.c|roce/port_switch\\.c"

# Lines of other files that ask whether one of them is on: FILE LINE
grep -nE 'rl_is_adverse|rl_judge_is_on|rl_place_apart|rl_cables|(->|\.)(recorded|cable|n_late|has_judged_requests)\b' \
	"$top"/providers/rootless/*/*.[ch] "$top"/providers/weft/*.[ch] |
	sed -E 's|.*/([^/:]+):([0-9]+):.*|\1 \2|' >"$dir/switches"

# spent NAME OPTION...: "FILE INSTRUCTIONS" of each file of the features, and of the switches as "switches", by message
spent() {
	local name=$1
	shift
	# shellcheck disable=SC2086 # a command and its arguments
	timeout -k 2 200 ${AS_USER-} "$run" "$@" valgrind -q --tool=callgrind --collect-atstart=no \
		--toggle-collect=post_one --toggle-collect=take_one --callgrind-out-file="$dir/$name.%p" \
		"$bin/message-cost" cm 127.0.0.1 sge $rounds >"$dir/log" 2>&1 ||
		{ echo "$name: message-cost ended with $?: $(tail -n 1 "$dir/log")" >&2 && exit 1; }
	awk -v files="($files)\$" -v n=$((2 * rounds)) '
		function path_of(s) { id = s; sub(/^[a-z]+=/, "", id); sub(/ .*/, "", id)
			if (s ~ / /) { sub(/^[^ ]* /, "", s); names[FILENAME id] = s }
			return names[FILENAME id] }
		FILENAME ~ /switches$/ { is_switch[$1, $2] = 1; next }
		/^(fl|fi|fe)=/ { at = path_of($0); base = at; sub(/.*\//, "", base); next }
		/^cf[il]=/ { path_of($0); next }
		/^calls=/ { called = 1; next }
		# A position may be relative to the one before.
		/^[-+*0-9]/ {
			line = $1 ~ /^[-+]/ ? line + $1 : $1 == "*" ? line : $1
			if (!called) {
				if (at ~ files) cost[base] += $2
				else if ((base, line) in is_switch) cost["switches"] += $2
				all += $2
			}
			called = 0
		}
		END { for (f in cost) printf "%s %.1f\n", f, cost[f] / n; printf "all %.1f\n", all / n }' \
		"$dir/switches" "$dir/$name".* | sort
}

echo 'post_send nth 4000000000 -> ENOMEM' >"$dir/rules"
chmod 644 "$dir/rules"
spent off >"$dir/off.out" || exit 1
echo "off, in instructions a message:" && cat "$dir/off.out"
awk -v most=$SWITCHES '$1 != "all" && ($1 != "switches" || $2 > most) { print "features that are off: " $0 " instructions a message" >"/dev/stderr"; bad = 1 }
	$1 == "all" && $2 > 100 { counted = 1 }
	END { exit bad || !counted }' "$dir/off.out" || exit 1
# What must be found, or nothing above means anything: OPTION, and a file of its own.
while read -r option file; do
	spent on "$option" >"$dir/on.out" || exit 1
	rm -f "$dir"/on.[0-9]*
	grep "^$file " "$dir/on.out" || { echo "$option: no instruction of $file is found: $(cat "$dir/on.out")" >&2 && exit 1; }
done <<-END
	--faults=$dir/rules failing.c
	--record=$dir/record recorded.c
	--judge judged.c
END
