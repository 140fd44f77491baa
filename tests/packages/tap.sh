# shellcheck shell=bash
# TAP of a script of tests. Sourced; who sources it sets
#   log      a file for what a test says
#   where    in front of the tests' names, if any
# and reads n, the number of tests so far.

n=0

# check NAME COMMAND [ARG...]: one test, failed by the first command in it that fails.
# shellcheck disable=SC2154 # log: see above
check() {
	local name=${where:+$where/}$1 rc had=$-
	shift
	n=$((n + 1))
	# Not in a condition: there nothing fails before its last command.
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1 </dev/null
	rc=$?
	[[ $had != *e* ]] || set -e
	[ $rc = 0 ] || sed 's/^/# /' "$log"
	[ $rc = 0 ] && echo "ok $n - $name" || echo "not ok $n - $name"
}
