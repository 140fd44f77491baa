#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Does siw-faults.sh notice each fault, and only faults?
#   siw-faults.sh BIN     TAP on stdout
# shellcheck disable=SC2317 # told() calls what it is given
set -u
bin=${1:?folder of the programs}
top=$(cd "$(dirname "$0")/.." && pwd)
def=$top/siw-faults.def
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

# told WHAT COMMAND [ARG...]: ok if the command says nothing.
told() {
	local what=$1
	shift
	"$@" >"$tmp/said" 2>&1
	n=$((n + 1))
	[ ! -s "$tmp/said" ] && echo "ok $n - $what" && return
	bad=1
	echo "not ok $n - $what"
	sed 's/^/# /' "$tmp/said"
}

ids() { grep -o '^SIW-[0-9]*' "$def"; }
# with ROW: the faults that name it.
with() { grep -E " $1([ @~/]|\$)" "$def" | grep -o '^SIW-[0-9]*'; }
rows() { awk '/^SIW-/ { for (i = 3; i <= NF; i++) { sub(/[@~\/].*/, "", $i); print $i } }' "$def" | sort -u; }
failed() { "$top/siw-faults.sh" "$@" | grep -o '^not ok SIW-[0-9]*' | cut -d ' ' -f 3; }

# differ FUNCTION LOG...: faults that the log shows though the function does not name them, or
# the other way round.
differ() { comm -3 <($1) <(failed "${@:2}"); }

unknown_rows() {
	comm -13 <("$bin/weftspec" --list | grep -o '^[A-Z]*-[0-9]* ' | tr -d ' ' | sort) <(rows)
}

# What the findings name, the definitions name, too.
undefined() {
	awk -F ' *[|] *' '$2 ~ /^[0-9]+$/ { gsub(",", "", $(NF - 1)); print $2, $(NF - 1) }' \
		"$top/../../docs/siw-findings.md" | while read -r nr words; do
		for row in $words; do
			with "$row" | grep -q "$(printf 'SIW-%02d' "$nr")" || echo "$nr $row"
		done
	done
}

# A row that fails or is missing shows in the faults that name it, and in no other.
miscounted() {
	for row in $(rows); do
		of_row() { with "$row"; }
		grep -v "$row" "$tmp/clean" | differ of_row -
		{ cat "$tmp/clean"; printf "fail %s\n" "$row@r" "$row/x@i" "$row/rst-at-once@r"; } | differ of_row -
	done
}

{
	rows | awk '{ print "pass " $1 "/some@r\npass " $1 "@i" }'
	echo "pass MPA-42/rst-at-once@r"
} >"$tmp/clean"
# siw as its profile has it, and what a profile cannot hold: rows that bring it down, and a race.
{
	cat "$tmp/clean"
	awk '/^[A-Z]+-[0-9]/ && $2 !~ /\|/ {
		print $2, $1
		sub(/[^ ]+ [^ ]+ /, "")
		print "          actual:   " $0
	}' "$top/profiles/siw-7.2"
	for row in ENH-25@r ENH-28@r ENH-07/reply-pd0@i MPA-21/reply-pd257@i \
		MPA-42/rst-at-once@r; do
		echo "crash $row"
	done
	echo "divergent RDM-49@r"
} >"$tmp/siw"
{
	cat "$tmp/clean"
	printf '%s\n' 'divergent MPA-21/a@r x' '  actual:   rejected: long' \
		'divergent MPA-21/b@i x' '  actual:   closed: long'
} >"$tmp/excused"

none() { :; }
all() { seq -f 'SIW-%02g' 51; }

told every-fault-has-its-line comm -3 <(ids) <(all)
told every-row-exists unknown_rows
told every-finding-is-defined undefined
told a-peer-that-passes-has-none differ none "$tmp/clean"
told siw-has-them-all differ all "$tmp/siw"
told what-was-not-run-is-no-pass differ all /dev/null
told each-row-counts miscounted
told what-is-excused-is-no-fault differ none "$tmp/excused"

echo "1..$n"
exit $bad
