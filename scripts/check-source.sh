#!/usr/bin/env bash
# What can be told from the sources alone: TAP.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
cd "$WEFT_TOP"
lessons=docs/lessons.md

# --- does every test exist that lessons.md names? ---

lab_tests() {
	local kernel suites=(tests/lab/suites/*.sh)
	suites=("${suites[@]##*/}")
	for kernel in stock 6.12-debug; do
		KERNEL=$kernel PAIRS=weft:weft CHURN='' TESTS='' \
			tests/lab/suite.sh --plan "${suites[@]%.sh}"
	done | awk '{print $1 "/" $2}'
}

# exists KIND/NAME, or a row's or fault's id
exists() {
	local kind=${1%%/*} name=${1#*/}
	case $1 in
	SIW-*) grep -q "^$1 " tests/weftspec/siw-faults.def ;;
	[A-Z]*) grep -q "^ROW(\"$1\"" tests/weftspec/rows.def ;;
	engine/* | stacks/* | provider/*) grep -qE "^	+[A-Za-z_]+\($name\)," tests/"$kind"/test_*.c ;;
	fuzz/*) [ -e "tests/$1.c" ] ;;
	kmod/*) grep -q "^	{ \"$name\"" tests/kmod/cases.c ;;
	mpa-*/* | weft-*/*) grep -qE "^	.*[{(] ?\"$name\"" tests/progs/*/"$kind".c ;;
	source/*) grep -q "^verdict $name " "$0" ;;
	*) grep -qx "$1" <<<"$lab" ;;
	esac
}

unknown_tests() {
	local lab test
	lab=$(lab_tests)
	tr '`' '\n' <$lessons | grep -xE '[a-z-]+/[A-Za-z0-9_-]+|[A-Z]{3}-[0-9]{2}' | sort -u |
		while read -r test; do
			exists "$test" || echo "$test"
		done
}

missing_lessons() {
	comm -3 <(seq 32 | sort) <(sed -n 's/^| \([0-9]*\) |.*`.*/\1/p' $lessons | sort)
}

# --- does every mutant still change one line, and its test exist? (make check-mutants runs it.) ---

worn_mutants() {
	local line name file program test n=0
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		read -r name file program test <<<"$line"
		grep -qw "$test" "tests/${program%/*}"/*.c || echo "$name: $program has no $test"
		IFS= read -r line
		[ "$(sed "${line#	}" "kernel/$file" | diff "kernel/$file" - | grep -c '^>')" = 1 ] ||
			echo "$name"
		n=$((n + 1))
	done <tests/mutants/list
	[ $n -ge 100 ] || echo "$n mutants are left"
}

# --- is the code where it belongs? ---

# What a section of an RFC decides is decided in kernel/proto and kernel/core, not by who lends them
# a wire.
sections_in_hosts() {
	grep -nE 'RFC [0-9]+,? *(§|[Ss]ection)|§ ?[0-9]' tests/stacks/link.c tests/weftspec/self-peer/sock.c
}

# --- what reviewers ask of a driver ---

# in_driver REGEX: in code, and in comments' first lines
in_driver() { grep -rnE --include='*.[ch]' "\\b($1)" kernel | grep -v ':[[:space:]]*[*] '; }

# --- does all of the interface have a host, the module or weft-run's? ---

# Neither those that begin nor those that end a name: WEFT_WC_ is many, _NR and _H are none of it.
interface_names() {
	grep -oE '\bWEFT_[A-Z0-9_]*[A-Z0-9]\b' "$interface" | grep -vE '_(H|ASSERTS)$'
	sed -nE 's/^	A\(weft_[a-z_]*, ([a-z_]*), .*/\1/p' "$interface" | grep -v '^reserved'
}

without_host() {
	local interface=kernel/uapi/rdma/weft-abi.h name
	interface_names | sort -u | while read -r name; do
		grep -rqw --include='*.[ch]' --exclude-dir=uapi "$name" kernel providers/rootless || echo "$name"
	done
}

# `make kernel-series` knows what it takes away of the driver, and code is within 100 columns.
fits_linux() {
	local to
	to=$(mktemp -d)
	scripts/kernel-series/adapt.py . "$to"
	rm -r "$to"
}

# --- can a person read it? ---

# Folders and files that are done, for each of these verdicts; the others follow.
narrow='kernel providers'
plain='README.md docs kernel providers tests/bench tests/engine tests/fuzz tests/kmod tests/lab tests/mutants tests/packages tests/progs tests/provider tests/softirq tests/sockets tests/stacks tests/weftspec scripts/check-english.py scripts/structure.py scripts/c_source.py'
trees=('kernel/**' 'providers/rootless/**' 'providers/sockets/**' providers/weft)

# lines_over_100 FOLDER...: tabs count as 8.
lines_over_100() {
	git ls-files -co --exclude-standard -- "$@" | grep '\.[ch]$' | while read -r file; do
		[ ! -e "$file" ] || expand "$file" | awk -v f="$file" 'length > 100 {print f ":" NR ": " length " columns"}'
	done
}

# rooms FILE: its map of rooms, if it has one.
rooms() { ! grep -qs '^```rooms' "$1" || scripts/structure.py --rooms "$1"; }

n=0
# verdict NAME COMMAND [ARG...]: ok if the command says nothing, of its own trouble neither.
verdict() {
	local said
	said=$("${@:2}" 2>&1 || true)
	n=$((n + 1))
	if [ -z "$said" ]; then
		echo "ok $n - $1"
	else
		printf '# %s\n' "${said//$'\n'/$'\n# '}"
		echo "not ok $n - $1"
	fi
}

verdict tests-that-lessons-name-exist unknown_tests
verdict every-lesson-has-its-line missing_lessons
verdict every-mutant-changes-one-line worn_mutants
verdict programs-in-compatibility-have-tests scripts/programs-table.sh --unknown
verdict the-judges-table-says-what-its-suites-say scripts/judge-table.sh --unknown
verdict names-in-docs-exist scripts/check-names.py docs
verdict names-in-comments-exist scripts/check-names.py comments
verdict paths-that-are-named-exist scripts/check-names.py paths
verdict no-rfc-section-in-a-host sections_in_hosts
verdict the-driver-prints-nothing in_driver \
	'(pr|dev|ibdev|netdev|net)_(emerg|alert|crit|err|warn|notice|info)[a-z_]*\(|printk[a-z_]*\('
verdict no-bug in_driver 'BUG(_ON)?\(|panic\('
verdict no-threads-parameters-or-debugfs in_driver 'kthread_[a-z_]*\(|module_param|debugfs_'
verdict no-busy-wait in_driver 'cpu_relax\('
verdict all-of-the-interface-has-a-host without_host
verdict no-plain-u64-in-the-abi grep -nE '^	__(u|s)64 ' kernel/uapi/rdma/*.h
verdict the-driver-can-be-adapted-for-linux fits_linux
# shellcheck disable=SC2086 # lists
{
	verdict lines-are-within-100-columns lines_over_100 $narrow
	verdict english-is-plain scripts/check-english.py $plain
	verdict statics-have-names-of-their-own scripts/structure.py --shared-statics "${trees[@]}"
	verdict no-circles-of-files scripts/structure.py --no-cross "${trees[@]}"
}
verdict rooms-keep-their-direction rooms providers/rootless/README.md
echo "1..$n"
