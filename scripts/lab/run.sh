#!/usr/bin/env bash
# Runs tests, or any script, in a machine of the lab; builds what that needs first.
#   run.sh LAB SUITE...          suites of tests/lab/suites; TAP on stdout
#   run.sh LAB -x SCRIPT [ARG]   one script as root on machine a, with tests/lab/lib.sh to
#                                source and the paths below in its environment
# LAB: vm         two QEMU machines with Debian's stock kernel
#      6.12-debug, 7.2-smp, 7.2-debug
#                 one user-mode Linux, machine b being a network namespace
# Environment: DRIVERS  drivers to build ("weft siw")
#              PAIRS    for suites: the A:B pairs of drivers to test
#              TESTS    for suites: a pattern of test names
# Everything of a run is kept in build/lab/LAB.NAME/ (the folder's name is printed).
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source-path=SCRIPTDIR source=vm.sh
. "$WEFT_TOP/scripts/lab/vm.sh"
# shellcheck source-path=SCRIPTDIR source=uml.sh
. "$WEFT_TOP/scripts/lab/uml.sh"

lab=${1:?lab}
shift
[ $# -gt 0 ] || die "which suite, or -x SCRIPT?"
case $WEFT_TOP$WEFT_CACHE in
*[[:space:]\"\']*) die "the lab cannot work in a folder with blanks or quotes in its name" ;;
esac
if [ "$1" = -x ]; then
	shift
	name=$(basename "$1")
	script=$(realpath "$1")
	shift
else
	name=$(printf '%s+' "$@")
	name=${name%+}
	script=
fi

prepare_kernel() {
	if [ "$lab" = vm ]; then
		kernel=stock
		modules=$("$WEFT_TOP/scripts/stock-kernel.sh")
	else
		kernel=$lab
		tree=$("$WEFT_TOP/scripts/build-uml.sh" "$lab")
		modules=$tree/modules
	fi
}

# What the machines are told; read by tests/lab/machine.sh.
write_env() {
	local driver ko
	echo "MODULES='$modules'"
	echo "KERNEL='$kernel'"
	for driver in ${DRIVERS-weft siw}; do
		ko=$("$WEFT_TOP/scripts/build-module.sh" "$kernel" "$driver") || return
		echo "KO_$driver='$ko'"
	done
	echo "PAIRS='${PAIRS-}'"
	echo "TESTS='${TESTS-}'"
	# The provider that is not installed; harmless to the other drivers' programs.
	[ -e "$WEFT_BUILD/lib" ] && echo "IBV_DRIVERS='$WEFT_BUILD/lib/libweft'"
	echo "PATH='$WEFT_BUILD/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'"
}

write_job() {
	echo "cd '$WEFT_TOP'"
	if [ -n "$script" ]; then
		printf '%q ' bash "$script" "$@"
	else
		printf '%q ' bash "$WEFT_TOP/tests/lab/suite.sh" "$@"
	fi
	echo
}

# A run that prints nothing for so long is dead.
quiet_limit=${QUIET_LIMIT:-240}

# follow PID...: shows the job's output until the machines are gone or silent.
follow() {
	local pid size=0 old=-1 since=$SECONDS shower
	tail -n +1 -q -s 0.2 -F "$run/job.out" 2>/dev/null &
	shower=$!
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.5
		[ -e "$run/job.rc" ] && [ -z "${ending:-}" ] && ending=$SECONDS
		size=$(stat -c %s "$run/job.out" 2>/dev/null || echo 0)
		[ "$size" = "$old" ] || { old=$size since=$SECONDS; }
		if [ $((SECONDS - since)) -gt "$quiet_limit" ]; then
			say "$lab: silent for $quiet_limit s, stopped; see $run"
			break
		fi
		# Machine a is through and only b, or the power-off, still runs.
		[ -n "${ending:-}" ] && [ $((SECONDS - ending)) -gt 10 ] && break
	done
	for pid; do kill "$pid" 2>/dev/null || true; done
	wait "$@" 2>/dev/null || true
	sleep 0.5
	kill $shower 2>/dev/null || true
	wait $shower 2>/dev/null || true
}

# Tests planned but not reported have failed: the machine died before or in them.
report_missing() {
	local suite test why=dead
	why=$(grep -hoE 'Kernel panic.*|kernel BUG.*|BUG: .*|Initramfs.*' "$run"/console* | head -n 1 || true)
	[ -n "$(sed -n 1p "$run/job.out")" ] || echo "1..$(wc -l <"$run/plan")"
	while read -r suite test; do
		grep -qE "^(not )?ok $suite/$test( |\$)" "$run/job.out" ||
			echo "not ok $suite/$test # not run: the machine died${why:+ ($why)}"
	done <"$run/plan"
}

prepare_kernel
run=$WEFT_BUILD/lab/$lab.$name
rm -rf "$run"
mkdir -p "$run/req"
write_env >"$run/env"
write_job "$@" >"$run/job"
touch "$run/job.out"

if [ "$lab" = vm ]; then vm_boot; else uml_boot; fi

if [ -n "$script" ]; then
	[ -s "$run/job.rc" ] || die "the machine died; see $run/console*"
	exit "$(cat "$run/job.rc")"
fi
PAIRS=${PAIRS-} bash "$WEFT_TOP/tests/lab/suite.sh" --list "$@" >"$run/plan"
report_missing | tee -a "$run/job.out"
! grep -q '^not ok' "$run/job.out"
