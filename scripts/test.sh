#!/usr/bin/env bash
# Runs the tests that need neither a machine nor root: `make test`, `make test T=NAME`.
#   test.sh            all of tests/engine, softirq, provider, stacks, devices and sockets
#   test.sh 'NAME...'  the tests called NAME. If there is none: those whose names contain it. NAME may
#                      be a pattern (*, ?) and may begin with a folder or a suite: stacks/NAME. The
#                      suites of tests/lab that run under weft-run are searched, too.
# Builds only what those tests need. TAP; the last line is a verdict.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tests/lab/rootless.sh
. "$WEFT_TOP/tests/lab/rootless.sh"
cd "$WEFT_TOP"

folders='engine softirq provider stacks devices sockets'
out=$WEFT_BUILD/test
jobs=-j$(nproc)

# --- what must be installed ---

has_header() { echo "#include <$1>" | "${CC:-gcc}" -E -include stdarg.h -include stddef.h -include stdint.h -include setjmp.h - >/dev/null 2>&1; }

missing_tools() {
	command -v "${CC:-gcc}" >/dev/null || echo gcc
	command -v make >/dev/null || echo make
	has_header cmocka.h || echo libcmocka-dev
}

# tests/sockets links the whole library of weft-run.
missing_for_sockets() {
	has_header infiniband/verbs.h || echo libibverbs-dev
	has_header rdma/rdma_cma.h || echo librdmacm-dev
}

# on_one_line: words of stdin
on_one_line() { paste -sd ' '; }

# --- building and running ---

# build FOLDER TARGET
build() {
	logged "$out/$1.build" make -s "$jobs" -C "tests/$1" "$2" || {
		echo "not ok - $1 does not compile"
		return 1
	}
}

# run_folder FOLDER: its TAP goes to a file.
run_folder() {
	local start=$SECONDS tap=$out/$1.tap passed failed
	make -s -C "tests/$1" check >"$tap" 2>&1 || true
	read -r passed failed _ < <(awk -f scripts/count-tap.awk "$tap")
	say "$1: $passed passed, $failed failed ($((SECONDS - start)) s)"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

# run_program FOLDER/PROGRAM TESTS: TAP; TESTS as in TEST_ONLY.
run_program() {
	local folder=${1%/*} program=${1#*/}
	build "$folder" "../../build/tests/$folder/$program" || return
	# Its Makefile appends what softirq's tests run on.
	{ TEST_ONLY=${2//_on_${program#test_}/} CMOCKA_MESSAGE_OUTPUT=TAP "build/tests/$folder/$program" 2>&1 || echo "exit $program $?"; } |
		awk -f tests/engine/tap.awk
}

# run_suite SUITE TESTS: builds the programs that the suite or what it shares with others names.
run_suite() {
	local programs spec=
	programs=$(make -s -C tests/progs names | tr ' ' '\n' |
		grep -wFf - -oh "tests/lab/suites/$1.sh" tests/lab/lib/*.sh | sort -u | on_one_line)
	! grep -qE 'weftspec|reflector|self-peer' "tests/lab/suites/$1.sh" || spec=yes
	TESTS=$2 PROGRAMS=$programs WEFTSPEC=$spec tests/lab/run.sh rootless "$1"
}

# --- names ---

# Prints "FOLDER/PROGRAM NAME" for each test of the cmocka programs.
cmocka_tests() {
	local folder file
	for folder in $folders; do
		for file in tests/"$folder"/test_*.c; do
			awk -v program="$folder/$(basename "$file" .c)" '
				# A macro may append to a name: #define CASE_CRC(fn) { #fn "_with_crc", ...
				/^#define [A-Z_]+\([a-z_]+\) { #[a-z_]+ "/ {
					split($2, macro, "(")
					split($0, part, "\"")
					appended[macro[1]] = part[2]
				}
				/const struct CMUnitTest/ { on = 1; next }
				/^\t};/ { on = 0 }
				on && match($0, /^\t+([A-Za-z_]+\( *|{ ")[a-z_0-9]+/) {
					split(substr($0, RSTART, RLENGTH), part, /[\t ("]+/)
					name = part[3]
					print program, name appended[part[2]]
				}' "$file"
		done
	done | sed 's,^\(softirq/test_\)softirq \(.*\),\1works \2_on_works\n\1tasklets \2_on_tasklets,'
}

# Prints "SUITE NAME" for each test of the suites under weft-run.
suite_tests() {
	# shellcheck disable=SC2086 # a list
	KERNEL=rootless PAIRS=weft:weft CHURN='' TESTS='' tests/lab/suite.sh --plan $rootless_suites | cut -d ' ' -f 1,2
}

# select_tests PATTERN: those lines of stdin whose folder, if the pattern has one, and name match.
select_tests() {
	local pattern=${1##*/} place='*'
	[ "$pattern" = "$1" ] || place=${1%/*}
	local where name
	while read -r where name; do
		# shellcheck disable=SC2053 # patterns
		[[ ${where%%/*} == $place && $name == $pattern ]] && echo "$where $name"
	done
	true
}

find_tests() {
	local found
	found=$(select_tests "$1" <<<"$all")
	[ -n "$found" ] || case $1 in
	*/*) found=$(select_tests "${1%/*}/*${1##*/}*" <<<"$all") ;;
	*) found=$(select_tests "*$1*" <<<"$all") ;;
	esac
	[ -n "$found" ] || die "no test is called $1; names are in tests/*/test_*.c and tests/lab/suites/*.sh; tests that need a kernel: tests/lab/run.sh LAB SUITE"
	echo "$found"
}

# --- all, or some ---

run_all() {
	local folder missing pid pids=() order='sockets stacks engine provider devices softirq'
	missing=$(missing_for_sockets | on_one_line)
	# One is built while those before it run: tests of sockets mostly wait.
	for folder in $order; do
		if [[ $folder =~ sockets|devices ]] && [ -n "$missing" ]; then
			note="; tests/sockets and tests/devices were not run, they need ${missing// / and }"
			continue
		fi
		build "$folder" all >"$out/$folder.tap" || { bad=1 && continue; }
		run_folder "$folder" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
}

run_some() {
	local where name names found patterns
	all=$(cmocka_tests && suite_tests)
	read -ra patterns <<<"$*"
	found=$(for name in "${patterns[@]}"; do find_tests "$name" || exit; done | sort -u) || exit
	say "$(wc -l <<<"$found") of $(wc -l <<<"$all") tests match:"
	# shellcheck disable=SC2001 # each line
	sed 's/^/  /' <<<"$found" >&2
	while read -r where; do
		names=$(awk -v where="$where" '$1 == where {print $2}' <<<"$found" | on_one_line)
		case $where in
		sockets/* | devices/*)
			missing=$(missing_for_sockets | on_one_line)
			[ -z "$missing" ] || die "missing: $missing"
			;;
		esac
		case $where in
		*/*) run_program "$where" "$names" ;;
		*) run_suite "$where" "${names// /|}" ;;
		esac </dev/null | tee "$out/${where//\//-}.tap" || bad=1
	done < <(cut -d ' ' -f 1 <<<"$found" | sort -u)
}

bad=0 note=
rm -rf "$out"
mkdir -p "$out"
missing=$(missing_tools | on_one_line)
[ -z "$missing" ] || die "missing: $missing (Debian's names of the packages)"
if [ -z "$*" ]; then run_all; else run_some "$@"; fi
read -r passed failed skipped < <(cat "$out"/*.tap | awk -f scripts/count-tap.awk)
[ $bad = 0 ] || grep -h '^not ok' "$out"/*.tap || true
[ "$skipped" = 0 ] || note="; $skipped skipped$note"
[ "$failed" = 0 ] && [ "$passed" != 0 ] || bad=1
verdict=passed
[ $bad = 0 ] || verdict=FAILED
echo "$verdict: $passed tests passed, $failed failed$note ($SECONDS s)"
exit $bad
