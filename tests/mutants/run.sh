#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Mutation test of kernel/proto, kernel/core, kernel/softirq.c and what weft-run decides: applies each
# fault of the file "list" to a copy of the tree and runs the test that is to find it; TAP. The copy is
# below build/, the checkout stays as it is.
#   run.sh [NAME...]     only these mutants
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=${BUILD:-$top/build/tests}/mutants
n=0 bad=0

result() {	# ok|"not ok", text
	n=$((n + 1))
	echo "$1 $n - $2"
	[ "$1" = ok ] || bad=1
}

copy_tree() {
	mkdir -p "$work"
	rm -rf "$work/kernel" "$work/tests" "$work/providers"
	mkdir -p "$work/tests"
	# Dates go along, so that a second run builds only what has changed; but objects of
	# the last run's mutants are to be built anew.
	cp -a "$top/kernel" "$work/kernel"
	cp -a "$top/tests/engine" "$top/tests/stacks" "$top/tests/provider" "$top/tests/softirq" "$work/tests/"
	cp -a "$top/providers" "$work/providers"
	cp "$here/list" "$work/list"
	touch "$work"/kernel/softirq.c "$work"/kernel/proto/* "$work"/kernel/core/* "$work"/providers/*/*/*
}

build() {	# PROGRAM as group/name
	make -s -C "$work/tests/${1%/*}" BUILD="$work/${1%/*}" WARN=-std=gnu11 \
		"$work/$1" >"$work/build.log" 2>&1
}

# Fails on a failed test, a sanitizer's report, a hang; leaves the output in run.log.
run() {	# PROGRAM TEST
	ASAN_OPTIONS=detect_leaks=0 TEST_ONLY=$2 CMOCKA_MESSAGE_OUTPUT=stdout \
		timeout -k 5 120 "$work/$1" >"$work/run.log" 2>&1
}

passes() {	# PROGRAM TEST: it exists and finds nothing
	build "$1" && run "$1" "$2" && grep -q "\[       OK \] $2\$" "$work/run.log"
}

# The named test failed, or was the one that was running at the end.
found_by() {	# TEST
	grep -q "\[  FAILED  \] $1\$" "$work/run.log" ||
		[ "$(sed -n 's/.*\[ RUN      \] \([a-z_0-9]*\).*/\1/p' "$work/run.log" |
			tail -n 1)" = "$1" ]
}

mutate() {	# FILE SED: exactly one line differs afterwards
	cp -p "$work/kernel/$1" "$work/original"
	sed -i "$2" "$work/kernel/$1"
	touch "$work/kernel/$1"
	[ "$(diff "$work/original" "$work/kernel/$1" | grep -c '^>')" = 1 ]
}

restore() {	# FILE
	cp "$work/original" "$work/kernel/$1"
}

try() {	# NAME FILE PROGRAM TEST SED
	if ! passes "$3" "$4"; then
		result 'not ok' "$1: $4 does not pass as things are"
		return
	fi
	if ! mutate "$2" "$5"; then
		result 'not ok' "$1: changes no line, or several, of $2"
	elif ! build "$3"; then
		result 'not ok' "$1: does not compile"
		sed 's/^/# /' "$work/build.log" | head -n 5
	elif run "$3" "$4"; then
		result 'not ok' "$1: survives $4"
	elif found_by "$4"; then
		result ok "$1 is found by $4"
	else
		result 'not ok' "$1: found, but not by $4"
	fi
	restore "$2"
}

wanted() {	# NAME ARG...
	local name=$1 w
	shift
	[ $# = 0 ] && return 0
	for w; do [ "$w" = "$name" ] && return 0; done
	return 1
}

copy_tree
while IFS= read -r line; do
	case $line in
	'' | '#'*) continue ;;
	esac
	read -r name file program test <<<"$line"
	IFS= read -r script
	wanted "$name" "$@" && try "$name" "$file" "$program" "$test" "${script#	}"
done <"$work/list"
echo "1..$n"
[ $n != 0 ] || { echo "no mutant is called $*" >&2 && bad=1; }
exit $bad
