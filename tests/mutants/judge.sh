#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Mutation test of weft-run --judge: applies each fault of the file "judge-list" to a copy of the tree, and runs the program
# of tests/judge that is to notice it; TAP. The copy is below build/, the checkout stays as it is. Wants build/bin/weft-judged,
# build/bin/weft-ends and the provider.
#   judge.sh [NAME...]     only these mutants
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${WEFT_BUILD:-$top/build}
work=$build/tests/judge-mutants
n=0 bad=0

result() {	# ok|"not ok", text
	n=$((n + 1))
	echo "$1 $n - $2"
	[ "$1" = ok ] || bad=1
}

copy_tree() {
	mkdir -p "$work/build/lib"
	rm -rf "$work/kernel" "$work/providers" "$work/tests"
	mkdir "$work/tests"
	cp -a "$top/kernel" "$top/providers" "$top/VERSION" "$work/"
	cp -a "$top/tests/lab" "$work/tests/"
	cp "$build"/lib/libweft-rdmav*.so "$work/build/lib/"
	# Objects of the last run's mutants are to be built anew.
	touch "$work"/providers/rootless/*/*.[ch]
}

build() { make -s -j2 -C "$work/providers/rootless" BUILD="$work/build" CAN_JOIN= CFLAGS='-O1 -g' >"$work/build.log" 2>&1; }

# Rules of two ends: the records of both.
noticed_by_records() {
	local rc=0 reported=no
	rm -rf "$work/records"
	timeout -k 5 60 "$work/build/bin/weft-run" --record="$work/records" "$build/bin/weft-ends" 127.0.0.1 "$1" "$2" \
		>"$work/run.log" 2>&1 </dev/null || return 0
	"$work/providers/rootless/weft-trace" judge --no-lines --rules="$3" "$work/records" >"$work/run.log" 2>&1 || rc=$?
	[ $rc = 99 ] && grep -qE "^weft-trace: J[0-9]+ $3: " "$work/run.log" && reported=yes
	[ $reported = $([ "$2" = wrong ] && echo no || echo yes) ]
}

# noticed CASE wrong|right RULE: the wrong program is not reported by this rule, or the right one is.
noticed() {
	local rc=0 reported=no
	if grep -q "\"$3\"" "$top/providers/rootless/weft_trace/judge.py"; then
		noticed_by_records "$@"
		return
	fi
	timeout -k 5 60 "$work/build/bin/weft-run" --judge="$3" --judge-fatal "$build/bin/weft-judged" 127.0.0.1 "$1" "$2" \
		>"$work/run.log" 2>&1 </dev/null || rc=$?
	[ $rc = 99 ] && grep -qE "^weft-run: J[0-9]+ $3: " "$work/run.log" && reported=yes
	[ $reported = $([ "$2" = wrong ] && echo no || echo yes) ]
}

mutate() {	# FILE SED: exactly one line differs afterwards
	cp -p "$work/providers/rootless/$1" "$work/original"
	sed -i "$2" "$work/providers/rootless/$1"
	touch "$work/providers/rootless/$1"
	[ "$(diff "$work/original" "$work/providers/rootless/$1" | grep -c '^>')" = 1 ]
}

try() {	# NAME FILE CASE wrong|right RULE SED
	if noticed "$3" "$4" "$5"; then
		result 'not ok' "$1: $3 $4 does not pass as things are"
		return
	fi
	if ! mutate "$2" "$6"; then
		result 'not ok' "$1: changes no line, or several, of $2"
	elif ! build; then
		result 'not ok' "$1: does not compile"
		sed 's/^/# /' "$work/build.log" | head -n 5
	elif noticed "$3" "$4" "$5"; then
		result ok "$1 is found by $3 $4"
	else
		result 'not ok' "$1: survives $3 $4"
	fi
	cp "$work/original" "$work/providers/rootless/$2"
	build
}

wanted() {	# NAME ARG...
	local name=$1 w
	shift
	[ $# = 0 ] && return 0
	for w; do [ "$w" = "$name" ] && return 0; done
	return 1
}

# Each rule has a mutant.
all_rules() {
	local rule
	for rule in $(sed -nE 's/^.*\W"J[0-9]+", "([a-z0-9-]+)".*/\1/p' "$top/providers/rootless/judge/rules.c" \
		"$top/providers/rootless/weft_trace/judge.py"); do
		if grep -qE "^[a-z].* $rule\$" "$here/judge-list"; then
			result ok "$rule has a mutant"
		else
			result 'not ok' "$rule has no mutant"
		fi
	done
}

copy_tree
build || { sed 's/^/# /' "$work/build.log" && exit 1; }
[ $# != 0 ] || all_rules
cp "$here/judge-list" "$work/list"
while IFS= read -r line; do
	case $line in
	'' | '#'*) continue ;;
	esac
	read -r name file program twin rule <<<"$line"
	IFS= read -r script
	wanted "$name" "$@" && try "$name" "$file" "$program" "$twin" "$rule" "${script#	}"
done <"$work/list"
echo "1..$n"
[ $n != 0 ] || { echo "no mutant is called $*" >&2 && bad=1; }
exit $bad
