#!/bin/bash
# Runs tests of suites on machine a: suite.sh FILE, each line of the file being one test,
# "SUITE NAME FUNCTION [ARG...]". TAP without a plan on stdout.
#   suite.sh --plan SUITE...       prints such lines; also works on the host
#   suite.sh --after RUN SUITE...  on the host, after all tests: a suite's checks of its logs in RUN
#
# A suite is a file suites/SUITE.sh with a function `tests` that prints one test a line,
# "NAME FUNCTION [ARG...]", and those functions. A test fails by `fail REASON`, by a failing
# last command, by the kernel's log, or by what it leaves behind, and is skipped by `skip REASON`. It
# is run by one-test.sh, for 180 seconds at most, or what a line TEST_TIMEOUT=SECONDS of the suite
# says. A suite that also has a function `after` prints more TAP there, with its own plan; not if
# TESTS left some tests out.
lab=$(cd "$(dirname "$0")" && pwd)

if [ "$1" = --plan ]; then
	shift
	for suite; do
		[ -e "$lab/suites/$suite.sh" ] || {
			echo "no suite is called $suite" >&2
			exit 1
		}
		# shellcheck disable=SC1090 # a suite
		(. "$lab/suites/$suite.sh" && tests) | while read -r name rest; do
			[[ ! $name =~ ^(${TESTS:-.*})$ ]] || echo "$suite $name $rest"
		done
	done
	exit
fi

if [ "$1" = --after ]; then
	run=$2
	shift 2
	[ -z "${TESTS-}" ] || exit 0
	for suite; do
		(
			# shellcheck disable=SC1090 # a suite
			. "$lab/suites/$suite.sh"
			! declare -F after >/dev/null || after "$run/tests/$suite"
		)
	done
	exit
fi

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$lab/lib.sh"

# One test, with all that follows it. Prints the reason if it failed, or why it was skipped.
one() {
	local suite=$1 name=$2 bad='' left='' side kernels='a b' limit rc=0 skipped=''
	[ "$WEFT_LINK" = vm ] || kernels=a
	shift 2
	export TEST_DIR=$SHARE/tests/$suite/$name
	mkdir -p "$TEST_DIR"
	for side in $kernels; do at "$side" klog_mark "$suite/$name"; done

	limit=${TEST_TIMEOUT:-$(limit_of "$suite")}
	limit=${limit:-180}
	LIMIT=$limit timeout -k 5 "$limit" bash "$lab/one-test.sh" "$suite" "$@" >"$TEST_DIR/out" 2>&1 || rc=$?
	[ $rc != 77 ] || skipped=$(grep '^SKIP ' "$TEST_DIR/out")
	if [ $rc != 0 ] && [ -z "$skipped" ]; then
		bad=$(grep '^FAIL: ' "$TEST_DIR/out" | head -n 1)
		bad=${bad:-"time-out or a failing command; $(tail -n 1 "$TEST_DIR/out")"}
	fi

	for side in $kernels; do
		at "$side" clean_here >"$TEST_DIR/left-$side" 2>&1 || {
			left=${left:-"left on $side: $(head -n 1 "$TEST_DIR/left-$side")"}
			touch "$HERE/unusable"
		}
		at "$side" klog_since "$suite/$name" >"$TEST_DIR/klog-$side"
		klog_faults <"$TEST_DIR/klog-$side" >"$TEST_DIR/faults-$side" &&
			bad="kernel log of $side: $(head -n 1 "$TEST_DIR/faults-$side")${bad:+; $bad}"
	done
	bad=${left:-$bad}
	echo "${bad:-$skipped}"
	[ -z "$bad" ]
}

# limit_of SUITE: what its line TEST_TIMEOUT= says, or nothing. Without a process: see lib.sh.
limit_of() {
	local line
	while read -r line; do
		[[ $line != TEST_TIMEOUT=* ]] || echo "${line#*=}"
	done <"$lab/suites/$1.sh"
}

while read -r suite name rest <&6; do
	start=$SECONDS
	echo "$suite/$name" >"$SHARE/current"
	# shellcheck disable=SC2086 # rest is a list
	if reason=$(one "$suite" "$name" $rest); then
		echo "ok $suite/$name # ${reason:-$((SECONDS - start)) s}"
	else
		echo "not ok $suite/$name # ${reason:-failed}"
	fi
	rm "$SHARE/current"
	# What could not be taken away would meet the next test: that one gets a fresh machine.
	[ ! -e "$HERE/unusable" ] || exit 1
done 6<"$1"
