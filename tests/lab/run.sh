#!/usr/bin/env bash
# Runs tests, or any script, in a machine of the lab; builds what that needs first.
#   run.sh LAB SUITE...          suites of tests/lab/suites; TAP on stdout
#   run.sh LAB -x SCRIPT [ARG]   one script as root on machine a, with tests/lab/lib.sh to
#                                source and the paths below in its environment
# LAB: vm         two QEMU machines with Debian's stock kernel (vm.sh)
#      6.12-debug, 7.2-smp, 7.2-debug, 7.2-users, 7.2-users-debug
#                 one user-mode Linux, machine b being a network namespace
#      rootless   no machine: this host and user, programs under weft-run (rootless.sh)
# Environment: DRIVERS  drivers to build ("weft siw")
#              ARCH_A, ARCH_B  for vm and rootless: see there
#              PAIRS    for suites: the A:B pairs of drivers to test
#              MTUS     for the suite traffic: see there
#              VERIFY_MB, CHURN, FAULTS, CHANCES, WILD_SECONDS, SOAK_SECONDS for the suites of those names: see there
#              TEST_TIMEOUT  seconds that one test may take (180)
#              QUIET_LIMIT   seconds without output after which a run is dead (420)
#              RELEASE_ROOT  for the suite release: see there
#              USERS_ROOT    for suites of kernel users: see tests/lab/lib/users.sh
#              BLKTESTS      for the suite blktests: see tests/lab/blktests.sh
#              MEMORY        of user-mode Linux, as 6G (1G; Linux 7.2: 3G)
#              ONE_CPU       not empty: user-mode Linux 7.2 has one CPU, not two; programs start twice as fast
#              XFSTESTS, XFSTESTS_ONLY, XFSTESTS_LIMIT  for the suite xfstests: see tests/lab/xfstests.sh
#              PROGRAMS  those of tests/progs that the tests need (all); WEFTSPEC= if they need no weftspec
#              TESTS    for suites: an extended regular expression for names of tests
# Everything of a run is kept in build/lab/LAB.NAME/ (the folder's name is printed).
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
# shellcheck source-path=SCRIPTDIR source=vm.sh
. "$WEFT_TOP/tests/lab/vm.sh"
# shellcheck source-path=SCRIPTDIR source=uml.sh
. "$WEFT_TOP/tests/lab/uml.sh"
# shellcheck source-path=SCRIPTDIR source=rootless.sh
. "$WEFT_TOP/tests/lab/rootless.sh"

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
	kernel=$lab modules=
	case $lab in
	vm)
		kernel=stock
		vm_prepare
		# For vm_accel: a kernel of this host's processor, where there is one.
		if [ "${ARCH_A-}" = arm64 ]; then modules=${vm_kernels[b]}; else modules=${vm_kernels[a]}; fi
		;;
	rootless) ;;
	*)
		tree=$("$WEFT_TOP/scripts/build-kernel.sh" "$lab")
		modules=$tree/modules
		;;
	esac
}

# write_env ARCHITECTURE MODULES [SUITE...]: the environment of machines, this host's or of that architecture; read by
# tests/lab/machine.sh.
write_env() {
	local arch built=$WEFT_BUILD${1:+/$1} driver ko consumer=
	arch=$(vm_kernel_arch "$1")
	echo "MODULES='$2'"
	shift 2
	echo "KERNEL='$kernel'"
	case " $drivers " in *' weft '*) consumer=weft_kmod ;; esac
	# Many objects, for one suite.
	case " $* " in *' kunit '*) consumer+=' weft_kunit' ;; esac
	for driver in $drivers $consumer; do
		ko=$("$WEFT_TOP/scripts/build-module.sh" "$kernel${arch:+-$arch}" "$driver") || return
		echo "KO_$driver='$ko'"
		echo "DEPS_$driver='$(/sbin/modinfo -F depends "$ko" | tr , ' ')'"
	done
	echo "PAIRS='${PAIRS-}'"
	echo "TESTS='${TESTS-}'"
	echo "VERIFY_MB='${VERIFY_MB-}'"
	echo "CHURN='${CHURN-}'"
	echo "WILD_SECONDS='${WILD_SECONDS-}'"
	echo "SOAK_SECONDS='${SOAK_SECONDS-}'"
	echo "FAULTS='${FAULTS-}'"
	echo "CHANCES='${CHANCES-}'"
	echo "RELEASE_ROOT='${RELEASE_ROOT-}'"
	echo "USERS_ROOT='${USERS_ROOT-}'"
	echo "BLKTESTS='${BLKTESTS-}'"
	echo "DIOD='${DIOD-}'"
	echo "XFSTESTS='${XFSTESTS-}'"
	echo "XFSTESTS_ONLY='${XFSTESTS_ONLY-}'"
	echo "XFSTESTS_LIMIT='${XFSTESTS_LIMIT-}'"
	echo "TEST_TIMEOUT='${TEST_TIMEOUT-}'"
	echo "COVERED='${ROOTLESS_CFLAGS-}'"
	# The provider is not installed; programs on other drivers' devices look past it.
	case " $drivers " in *' weft '*) echo "IBV_DRIVERS='$built/lib/libweft'" ;; esac
	# The first is there for programs that begin under weft-run (lib/weft-run.sh).
	echo "PATH='/run/rootless:$built/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'"
}

# Every machine is a process group; none outlives this script.
machines=()
end_machines() {
	local pid
	for pid in "${machines[@]}"; do kill -9 -- "-$pid" 2>/dev/null || true; done
	machines=()
}
trap end_machines EXIT
trap 'exit 130' INT TERM

# A run that prints nothing for so long is dead. A machine boots, and one test has 300 s in some suites.
quiet_limit=${QUIET_LIMIT:-420}

# One of the machines has stopped for good, and the other would wait for it.
panicked() { tail -qc 4000 "$run"/console*."$boots" 2>/dev/null | grep -aq 'Kernel panic - not syncing'; }

# follow PID...: shows the job's output until the machines are gone or silent.
follow() {
	local size old since=$SECONDS ending='' shower
	machines=("$@")
	old=$(stat -c %s "$run/job.out")
	tail -c "+$((old + 1))" -q -s 0.2 -F "$run/job.out" 2>/dev/null &
	shower=$!
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.5
		size=$(stat -c %s "$run/job.out")
		[ "$size" = "$old" ] || { old=$size since=$SECONDS; }
		if [ $((SECONDS - since)) -gt "$quiet_limit" ]; then
			say "$lab: silent for $quiet_limit s, stopped; see $run"
			[ "$lab" != vm ] || vm_silent
			break
		fi
		[ $((SECONDS - since)) -lt 5 ] || ! panicked || break
		# Machine a is through and only its power-off is left.
		[ ! -e "$run/job.rc" ] || ending=${ending:-$SECONDS}
		[ -z "$ending" ] || [ $((SECONDS - ending)) -le 10 ] || break
	done
	{ end_machines && wait "$@"; } 2>/dev/null || true
	sleep 0.5
	kill $shower 2>/dev/null || true
	wait $shower 2>/dev/null || true
}

# boot COMMAND [ARG...]: a fresh machine, or two, runs the command.
boots=0
boot() {
	boots=$((boots + 1))
	rm -rf "$run/req" "$run/b.ready" "$run/job.rc" "$run/unusable"
	mkdir "$run/req"
	{
		echo "cd '$WEFT_TOP'"
		printf '%q ' "$@"
	} >"$run/job"
	case $lab in
	vm) vm_boot ;;
	rootless) rootless_boot ;;
	*) uml_boot ;;
	esac
}

# What the kernel's last words were, if it had any: the fault, where it was, and what it came to.
last_words() {
	grep -ahoE 'Kernel panic.*|kernel BUG.*|BUG: .*|Oops: .*|RIP: .*' "$run"/console*."$boots" |
		tail -n 4 | paste -sd '|' || true
}

# Did machine b die of siw? iw_cm stops it where siw closes what is still being accepted
# (docs/siw-findings.md), and weft is not there any more. Up to eight times a run such a test has another
# machine; among a hundred tests it was none to two, and three where the host was busy.
died_of_siw() {
	local b=$run/console-b.$boots
	grep -aqs 'kernel BUG at drivers/infiniband/core/iwcm.c' "$b" &&
		grep -aqE 'Modules linked in:[^[]* siw\(' "$b" &&
		! grep -aqE 'Modules linked in:[^[]* weft\(' "$b" && [ $((siw_deaths += 1)) -le 8 ]
}
siw_deaths=0

# Tests of the plan that have no result yet.
untested() {
	awk 'NR == FNR {sub(/^not /, ""); done[$2] = 1; next} !($1 "/" $2 in done)' \
		"$run/job.out" "$run/plan"
}

report() {
	echo "$*" | tee -a "$run/job.out"
}

# A test may take its machine down, or leave it unusable: the rest has a fresh one.
run_suites() {
	local words last
	env KERNEL="$kernel" bash "$WEFT_TOP/tests/lab/suite.sh" --plan "$@" >"$run/plan"
	[ -s "$run/plan" ] || die "no such test"
	report "1..$(wc -l <"$run/plan")"
	while untested >"$run/todo" && [ -s "$run/todo" ] && [ $boots -lt 12 ]; do
		boot bash "$WEFT_TOP/tests/lab/suite.sh" "$share/todo"
		[ "$(untested | wc -l)" != "$(wc -l <"$run/todo")" ] || [ -e "$run/current" ] || break
		if [ -e "$run/current" ]; then
			words=$(last_words)
			if died_of_siw; then
				report "# $(cat "$run/current"): machine b died of siw; once more: $words"
			else
				report "not ok $(cat "$run/current") # the machine died in it${words:+: $words}"
			fi
			rm "$run/current"
		fi
	done
	last=$(grep -ahsm1 'Kernel panic' "$run"/console*."$boots") || last=$(tail -n 1 "$run/job.out")
	untested | while read -r suite test _; do
		report "not ok $suite/$test # not run: no machine to run it ($last)"
	done
	env KERNEL="$kernel" bash "$WEFT_TOP/tests/lab/suite.sh" --after "$run" "$@" |
		tee -a "$run/job.out" || true
	! grep -q '^not ok' "$run/job.out"
}

drivers=${DRIVERS-weft siw}
# How the machines know the folder of the run.
share=/run/weft
prepare_kernel
if [ "$lab" = rootless ]; then
	drivers='' PAIRS=weft:weft
	export PAIRS
fi
# Another lab may be beginning at the same time. Machines have programs under weft-run, too.
build_here() {
	case " $drivers $lab " in
	*' weft '* | *' rootless '* | *' vm '*)
		"$WEFT_TOP/scripts/build-provider.sh" >&2
		with_lock rootless make -s -C "$WEFT_TOP/providers/rootless" ${ROOTLESS_CFLAGS+"CFLAGS=$ROOTLESS_CFLAGS"} >&2
		;;
	esac
	with_lock programs make -s "-j$(nproc)" -C "$WEFT_TOP/tests/progs" ${PROGRAMS+"PROGS=$PROGRAMS"} >&2
	[ -z "${WEFTSPEC-yes}" ] || with_lock weftspec make -s "-j$(nproc)" -C "$WEFT_TOP/tests/weftspec" >&2
}
[[ $lab = vm && -n ${ARCH_A-} && -n ${ARCH_B-} ]] || build_here
run=$WEFT_BUILD/lab/$lab${SAN:+-san}.$name
[ "$lab" != rootless ] || share=$run
rm -rf "$run"
mkdir -p "$run"
touch "$run/job.out"
if [ "$lab" = vm ]; then
	for arch in $(printf '%s\n' "${ARCH_A-}" "${ARCH_B-}" | sort -u); do foreign_build_for "$arch" weft-verify; done
	write_env "${ARCH_A-}" "${vm_kernels[a]}" "$@" >"$run/env"
	if [ "${ARCH_A-}" = "${ARCH_B-}" ]; then
		cp "$run/env" "$run/envb"
	else
		write_env "${ARCH_B-}" "${vm_kernels[b]}" "$@" >"$run/envb"
	fi
else
	write_env '' "$modules" "$@" >"$run/env"
fi

if [ -z "$script" ]; then
	run_suites "$@"
else
	boot bash "$script" "$@"
	[ -s "$run/job.rc" ] || die "the machine died; $(last_words) (see $run)"
	exit "$(cat "$run/job.rc")"
fi
