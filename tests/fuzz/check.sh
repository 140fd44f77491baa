#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# check.sh BUILD SECONDS TARGET...: replays earlier failures, then fuzzes each
# target; TAP. A reproducer stays in regressions/TARGET-<kind>-<hash>: name it
# after the fault that it shows, and commit it with the fix.
build=$1 seconds=$2
shift 2
n=0 bad=0

result() {	# ok|"not ok", text
	n=$((n + 1))
	echo "$1 $n - $2"
	[ "$1" = ok ] || bad=1
}

replay() {
	for f in regressions/"$1"-*; do
		[ -e "$f" ] || continue
		if "$build/$1" -timeout=60 "$f" >"$build/$1.log" 2>&1; then
			result ok "replay ${f#regressions/}"
		else
			sed 's/^/# /' "$build/$1.log" | tail -40
			result "not ok" "replay ${f#regressions/}"
		fi
	done
}

# finding TARGET: what it said, and its reproducer, for whoever has only this line. base64 -d | gunzip gives the file.
finding() {
	said=$(grep -m 1 -E '^SUMMARY|runtime error|ERROR:' "$build/$1.log")
	file=$(sed -n 's/^.*Test unit written to //p' "$build/$1.log" | tail -n 1)
	echo "${said:-it did not say why}${file:+; $file: $(gzip -9nc "$file" | base64 -w 0 | head -c 4000)}"
}

fuzz() {
	mkdir -p "$build/corpus/$1" "$build/seed-corpus/$1"
	"$build/$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len=8192 \
		-print_final_stats=1 -artifact_prefix="regressions/$1-" \
		"$build/corpus/$1" "$build/seed-corpus/$1" >"$build/$1.log" 2>&1
	status=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$1.log")
	# What a target counts, it has reached all of.
	missed=$(awk '$1 == "reached" && $2 != $4' "$build/$1.log")
	if [ -n "$missed" ]; then
		result "not ok" "$1: $missed: $(grep ' 0 times' "$build/$1.log" | tr '\n' ' ')"
	elif [ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then
		result ok "$1: $runs executions"
	else
		sed 's/^/# /' "$build/$1.log" | tail -60
		result "not ok" "$1: status $status after ${runs:-no} executions: $(finding "$1")"
	fi
}

for t; do
	replay "$t"
	fuzz "$t"
done
echo "1..$n"
exit $bad
