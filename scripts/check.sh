#!/usr/bin/env bash
# The test runner behind `make check` and, with --full, `make check-full`.
# Runs the groups below, two at a time, counts their TAP, compares each with its floor in
# tests/floors, and ends with one line: "N passed, N failed, N skipped". Fails on a failed
# test, a skipped one, or a group below its floor.
#   check.sh [--full] [GROUP...]
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

out=$WEFT_BUILD/check
# What only a kernel can show, and programs as a driver meets them.
suites='device netdevs tenants traffic consumer'
programs='programs verify garbage'
changes='churn faults nvme'
# The place without a machine shows what programs and the standard ask of queues and protocol:
# with a kernel, check-full has them.
long='tools spec'

cd "$WEFT_TOP"

# --- the groups: each prints TAP ---

# cmocka's programs then print TAP, too.
export CMOCKA_MESSAGE_OUTPUT=TAP

group_engine() { make -C tests/engine check; }
group_stacks() { make -C tests/stacks check; }
group_provider() { make -C tests/provider check; }
group_fuzz() { make -C tests/fuzz check; }
group_spec() { with_lock weftspec make -C tests/weftspec all && make -C tests/weftspec check; }

# Two machines with the kernel that a user of Debian 12 has.
# shellcheck disable=SC2086 # suites is a list
group_vm() { tests/lab/run.sh vm $suites interop health; }
# shellcheck disable=SC2086
group_programs_vm() { tests/lab/run.sh vm $programs; }
# shellcheck disable=SC2086
group_spec_vm() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh vm $long; }
# The same tests where a memory fault or a lock out of order shows. Without siw: lockdep finds
# a fault in siw itself (sk_callback_lock read with softirqs on) and then turns itself off.
# shellcheck disable=SC2086
group_kasan() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 6.12-debug $suites $programs $changes health; }
# shellcheck disable=SC2086
group_spec_kasan() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 6.12-debug $long; }
# And where two CPUs race, under KASAN alone.
# shellcheck disable=SC2086
group_smp() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 7.2-debug $suites $programs churn $long pyverbs health; }

# A gigabyte of verified patterns, each way of moving it; and how long softirqs wait for weft's where no
# debugging holds them up.
group_data() {
	DRIVERS=weft PAIRS=weft:weft VERIFY_MB=1024 tests/lab/run.sh 7.2-smp verify || return
	DRIVERS=weft PAIRS=weft:weft ATOMICS=100000 TESTS='no-atomic-.*' tests/lab/run.sh 7.2-smp programs || return
	DRIVERS=weft PAIRS=weft:weft TESTS='.*-softirq-.*' tests/lab/run.sh 7.2-smp consumer
}
# perftest in all its variants; most of them poll, and two that poll want two CPUs.
group_perftest() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 7.2-smp perftest; }
# The same tests, and more, of programs without a kernel module: on this host, under weft-run. Then
# part of them with ASan and UBSan in its library.
group_rootless() {
	VERIFY_MB=256 tests/lab/run.sh rootless traffic programs tools garbage churn perftest spec verify \
		rootless hand datagram pyverbs || return
	SAN=address,undefined TESTS="$sanitized" tests/lab/run.sh rootless traffic programs tools rootless hand datagram
}
sanitized='rping-.*|ib_.*-mtu1500|verbs|requests-.*|ucmatose-.*|cmtime|rstream-.*|devices-are.*|all-.*|fork'
sanitized+='|interface|by-hand|datagrams|questions-.*|udaddy|groups|mckey|extended-verbs|rcopy-.*|fio-.*|read-only.*|three-thousand-.*'
# With more data, and more that comes and goes. Then some with TSan in the library.
group_rootless_full() {
	VERIFY_MB=1024 CHURN=full tests/lab/run.sh rootless verify churn || return
	ATOMICS=1000000 TESTS='no-atomic-.*' tests/lab/run.sh rootless programs || return
	SAN=thread TESTS="$races" tests/lab/run.sh rootless traffic programs tools rootless hand datagram
}
races='by-hand|datagrams|questions-.*|groups|rping-.*|ucmatose-.*|cmtime|verbs|requests-.*|all-.*|habits-.*'
# And with the rdma-core of later releases, in a root folder of each.
group_releases() { tests/lab/releases.sh trixie sid; }
# A thousand connections, a hundred devices, under traffic; ten thousand allocations that fail.
group_churn() {
	DRIVERS=weft PAIRS=weft:weft CHURN=full FAULTS=10000 CHANCES=1000 TEST_TIMEOUT=1500 QUIET_LIMIT=1600 \
		tests/lab/run.sh 6.12-debug churn faults
}
# An hour of random calls.
group_wild() {
	DRIVERS=weft PAIRS=weft:weft WILD_SECONDS=3600 TEST_TIMEOUT=4500 QUIET_LIMIT=4600 \
		tests/lab/run.sh 6.12-debug wild health
}
# A storage user's fifty connections under load, on two machines, and siw on one of them.
group_nvme() {
	PAIRS='weft:weft weft:siw siw:weft' CHURN=full TEST_TIMEOUT=1500 QUIET_LIMIT=1600 \
		tests/lab/run.sh vm nvme
}
# Every kernel that weft is built for: no warning, and sparse finds nothing. And what the sources
# tell by themselves.
group_build() { scripts/check-build.sh stock 6.12-debug && scripts/check-source.sh; }
# The device of a network interface at boot; then packages, each release's in a root folder of it.
group_boot() { tests/packages/weft-link.sh; }
group_packages() { tests/packages/packages.sh bookworm trixie; }
# Those packages on a Debian 12 and a Debian 13, in two machines.
group_systems() { tests/packages/real-systems.sh; }
# The series for Linux: it says itself what is wrong.
group_series() {
	echo 1..1
	scripts/kernel-series.sh && echo 'ok 1 - each patch builds, and checkpatch has no error and no warning'
}
group_build_sid() { scripts/check-build.sh 7.2-smp; }

if [ "${1:-}" = --group ]; then
	"group_$2"
	exit
fi

# What runs beside what: a line of groups is run in order, the lines at the same time. The
# user-mode kernel takes long to build the first time, so it begins at once.
lanes=('kasan' 'rootless engine stacks provider fuzz spec vm build boot')
limit=4000 # seconds, for one group
if [ "${1:-}" = --full ]; then
	shift
	lanes[0]+=' spec_kasan smp wild' limit=5400
	lanes[1]+=' build_sid rootless_full releases data perftest programs_vm spec_vm churn nvme packages series'
fi
[ $# = 0 ] || lanes=("$*")

# --- running and counting ---

run_group() {
	local name=$1 log=$out/$1.log start=$SECONDS rc=0 pid passed failed skipped
	say "$name: begins"
	# A session of its own, so that all of it can be ended.
	setsid scripts/check.sh --group "$name" >"$log" 2>&1 </dev/null &
	pid=$!
	echo $pid >"$out/$name.pid"
	timeout $limit tail --pid=$pid -f /dev/null || {
		say "$name: stopped after $limit s"
		kill -- -$pid || true
	}
	wait $pid || rc=$?
	rm "$out/$name.pid"

	read -r passed failed skipped < <(awk -f scripts/count-tap.awk "$log")
	# It says that it failed, or died, and no test tells: that is one failure.
	[ $rc = 0 ] || [ "$failed" -gt 0 ] || failed=1
	echo "$name $passed $failed $skipped $((SECONDS - start))" >"$out/$name.count"
	[ "$failed" = 0 ] || grep '^not ok' "$log" >&2 || tail -n 15 "$log" >&2
	say "$name: $passed passed, $failed failed, $skipped skipped ($((SECONDS - start)) s)"
}

run_lane() {
	local group
	for group; do run_group "$group"; done
}

# However this script ends, nothing of it goes on. Its status stays what it was: what there is
# no more to stop is no failure.
stop_groups() {
	local status=$? file
	set +e
	for file in "$out"/*.pid; do
		[ -e "$file" ] && kill -- "-$(cat "$file")" 2>/dev/null
	done
	# shellcheck disable=SC2046 # a list
	kill $(jobs -p) 2>/dev/null
	exit "$status"
}

floor_of() { awk -v group="$1" '$1 == group {print $2}' tests/floors; }

summary() {
	local group passed failed skipped seconds floor note bad=0 total=(0 0 0)
	printf '\n%-8s %7s %7s %7s %7s %7s\n' group passed failed skipped floor seconds
	# shellcheck disable=SC2048 # a lane is a list
	for group in ${lanes[*]}; do
		read -r _ passed failed skipped seconds <"$out/$group.count" || {
			passed=0 failed=1 skipped=0 seconds=0
		}
		floor=$(floor_of "$group")
		note=
		[ "$passed" -ge "${floor:-1}" ] || { note='  below its floor' && bad=1; }
		printf '%-8s %7d %7d %7d %7d %7d%s\n' \
			"$group" "$passed" "$failed" "$skipped" "${floor:-1}" "$seconds" "$note"
		total=($((total[0] + passed)) $((total[1] + failed)) $((total[2] + skipped)))
	done
	echo
	printf '%d passed, %d failed, %d skipped\n' "${total[@]}" | tee "$out/tally"
	[ $bad = 0 ] && [ "${total[1]}" = 0 ] && [ "${total[2]}" = 0 ]
}

rm -rf "$out"
mkdir -p "$out"
trap stop_groups EXIT
trap 'exit 130' INT TERM
exec 3>&2
export WEFT_SAY=3
for lane in "${lanes[@]}"; do
	# shellcheck disable=SC2086 # a list
	run_lane $lane &
done
wait
summary
