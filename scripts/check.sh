#!/usr/bin/env bash
# The test runner behind `make check` and, with --full, `make check-full`.
# Runs the groups below, two or three at a time, counts their TAP, compares each with its floor in
# tests/floors, and ends with one line: "N passed, N failed, N skipped". Fails on a failed
# test, a skipped one, or a group below its floor.
#   check.sh [--full] [GROUP...]
# Environment: BLKTESTS  a checkout of blktests: --full then has the group of that name, too
#              XFSTESTS  a folder of xfstests that has been built: the same
#              LTP       a folder of LTP that has been built: the same
#              RDMA_CORES   a folder of sources of rdma-core: the group portable_sources
#              VALKEY    a folder of Valkey that has been built with RDMA: the group valkey
#              DIOD      a diod that has been built with RDMA: the group 9p
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tests/lab/rootless.sh
. "$WEFT_TOP/tests/lab/rootless.sh"

out=$WEFT_BUILD/check
# What only a kernel can show, and programs as a driver meets them.
devices='device netdevs tenants'
traffic='traffic consumer'
programs='programs verify garbage'
changes='churn faults nvme'
# The place without a machine shows what programs and the standard ask of queues and protocol:
# with a kernel, check-full has them.
long='tools spec manners'

cd "$WEFT_TOP"

# --- the groups: each prints TAP ---

# cmocka's programs then print TAP, too.
export CMOCKA_MESSAGE_OUTPUT=TAP

group_engine() { make -C tests/engine check && make -C tests/softirq check; }
group_stacks() { make -C tests/stacks check; }
# And that of the lock by TSan.
group_provider() { make -C tests/provider check && make -C tests/provider races && make -C tests/devices check; }
# By ASan and UBSan, then by TSan.
group_sockets() { make -C tests/sockets check && make -C tests/sockets races; }
group_fuzz() { make "-j$(nproc)" -C tests/fuzz check; }
group_fuzz_long() { make -C tests/fuzz check FUZZ_SECONDS=600; }
group_spec() { with_lock weftspec make -C tests/weftspec all && make -C tests/weftspec check; }

# cross_check ARCHITECTURE FOLDER...: native suites built for it, run by qemu-user; without sanitizers, which have
# their turn on this machine.
cross_check() {
	local arch=$1 folder
	shift
	for folder; do
		# shellcheck disable=SC2016 # for the shell inside
		scripts/cross.sh "$arch" bash -c 'make "-j$(nproc)" -C "tests/$2" check CC="$CC" RUN="$RUN" CFLAGS=-O2 SAN= \
			BUILD="$PWD/build/$1/tests/$2"' - "$arch" "$folder" || return
	done
}
# Big-endian.
group_s390x() { cross_check s390x engine stacks; }
# And weft-run, with programs of arm64 at both ends, then at one.
group_arm64() {
	cross_check arm64 engine stacks provider || return
	export WEFTSPEC=
	ARCH_A=arm64 ARCH_B=arm64 TESTS="$both_emulated" tests/lab/run.sh rootless traffic hand verify rootless || return
	ARCH_A=arm64 TESTS="$one_emulated" tests/lab/run.sh rootless traffic || return
	ARCH_B=arm64 TESTS="$one_emulated" tests/lab/run.sh rootless traffic
}
# None that starts programs, whose exec() would be this host's, but for memory-.*, which knows.
both_emulated='rping-weft-weft-mtu1500|ib_(write_bw|read_bw|send_lat|atomic_lat)-weft-weft(-mtu1500)?|ibv_rc_pingpong|ib_write_lat-by-hand'
both_emulated+='|weft-weft-mtu1500-crc1-loss0|memory-that-goes-away'
one_emulated='rping-weft-weft-mtu1500|ib_write_bw-weft-weft-mtu1500'

# Two machines with the kernel that a user of Debian 12 has. They are emulated, and a test takes half a minute: most
# have their turn in check-full.
group_vm() { MTUS=1500 TESTS="$first_on_vm" tests/lab/run.sh vm traffic consumer interop health; }
first_on_vm='(rping|ib_(write|read|send)_bw)-weft-weft-mtu1500|ib_atomic_bw-weft-weft|kernel-consumer|answers-.*'
first_on_vm+='|(weft|siw)-(siw|weft)-.*|rootless-.*-(rping-crc1|perftest|verify)|(weft|siw)-rootless-(rping-crc1|perftest|verify)'
first_on_vm+='|b-returns-.*|both-ends-.*|log-scan-.*|slabs-know-.*'
# shellcheck disable=SC2086
group_programs_vm() { tests/lab/run.sh vm $devices $programs && tests/lab/run.sh vm traffic interop; }
# shellcheck disable=SC2086
group_spec_vm() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh vm $long; }
# The driver on Debian's kernel for arm64, emulated: at both ends, then at one.
group_vm_arm64() {
	export DRIVERS=weft PAIRS=weft:weft TEST_TIMEOUT=600 QUIET_LIMIT=900
	ARCH_A=arm64 ARCH_B=arm64 TESTS="$driver_emulated" tests/lab/run.sh vm device traffic verify health || return
	ARCH_A=arm64 TESTS="$driver_mixed" tests/lab/run.sh vm traffic verify || return
	ARCH_B=arm64 TESTS="$driver_mixed" tests/lab/run.sh vm traffic verify
}
# And 32-bit programs over the 64-bit driver, against 64-bit ones. perftest's two ends exchange a structure of C, which
# differs between the two.
group_vm_i386() {
	DRIVERS=weft PAIRS=weft:weft TEST_TIMEOUT=600 ARCH_A=i386 TESTS="$driver_i386" tests/lab/run.sh vm device traffic verify
}
driver_i386='visible-to-libibverbs|rping-weft-weft-mtu1500|weft-weft-mtu1500-crc1-loss0'
driver_mixed='(rping|ib_(write|read)_bw)-weft-weft-mtu1500|ib_atomic_bw-weft-weft|weft-weft-mtu1500-crc[01]-loss0'
driver_emulated='link-add-and-del|load-and-unload-20-times|unload-takes-devices-along|visible-to-libibverbs|counters-count-what-happens'
driver_emulated+='|rping-.*-mtu1500|ib_(write_bw|read_bw|send_lat)-weft-weft-mtu1500|ib_atomic_bw-weft-weft'
driver_emulated+='|weft-weft-mtu(1500|9000)-crc[01]-loss[01]|b-returns-.*|log-scan-.*|slabs-know-.*'
# The same tests where a memory fault or a lock out of order shows. Without siw: lockdep finds
# a fault in siw itself (sk_callback_lock read with softirqs on) and then turns itself off.
# shellcheck disable=SC2086
group_kasan() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 6.12-debug $devices $traffic $programs $changes manners dead health; }
# shellcheck disable=SC2086
group_spec_kasan() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 6.12-debug $long; }
# The tests of proto and core in the kernel: one test, which says little while it runs.
group_kunit() { DRIVERS=weft PAIRS=weft:weft PROGRAMS='' WEFTSPEC='' QUIET_LIMIT=1400 tests/lab/run.sh 6.12-debug kunit; }
# And where two CPUs race, under KASAN alone.
# shellcheck disable=SC2086
group_smp() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 7.2-debug $devices $traffic $programs churn $long pyverbs health; }

# A gigabyte of verified patterns, each way of moving it; twelve million additions, eight of them by a
# request, of which user mode does some 15 000 a second; and how much softirqs do in one go where no
# debugging holds them up.
group_data() {
	DRIVERS=weft PAIRS=weft:weft VERIFY_MB=1024 tests/lab/run.sh 7.2-smp verify || return
	DRIVERS=weft PAIRS=weft:weft ATOMICS=1000000 TESTS='no-atomic-.*' TEST_TIMEOUT=2000 QUIET_LIMIT=2100 \
		tests/lab/run.sh 7.2-smp programs || return
	DRIVERS=weft PAIRS=weft:weft TESTS=kernel-consumer tests/lab/run.sh 7.2-smp consumer
}
# perftest in all its variants; most of them poll, and two that poll want two CPUs.
group_perftest() { DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 7.2-smp perftest; }
# The same tests, and more, of programs without a kernel module: on this host, under weft-run; and part
# of them with ASan and UBSan in its library: none that forks while the library's thread may allocate, since gcc 12's
# ASan does not unlock its allocator in the child.
group_rootless() {
	# shellcheck disable=SC2086 # a list
	VERIFY_MB=256 tests/lab/run.sh rootless $rootless_busy
}
group_rootless_san() {
	SAN=address,undefined TESTS="$sanitized" tests/lab/run.sh rootless traffic programs tools rootless profiles hand datagram sockets
}
# Those whose tests mostly wait, for peers and for time-outs.
# shellcheck disable=SC2086 # a list
group_rootless_waits() { tests/lab/run.sh rootless $rootless_waiting; }
sanitized='rping-.*|ib_.*-mtu1500|verbs|requests-.*|ucmatose-.*|cmtime|rstream-.*|devices-are.*|all-.*|fork'
sanitized+='|calls-.*|posted-.*|.*rule.*|server-speaks-.*|only-.*|option-.*|used-.*|edges-.*|numbers-.*|waits-.*|turns-take.*|python-asyncio|iperf3'
sanitized+='|interface|by-hand|by-hand-with-itself|by-hand-sixteen-.*|datagrams|sidr-.*|udaddy|groups|mckey|extended-verbs|rcopy-.*|fio-.*|read-only.*|three-thousand-.*'
sanitized+='|.*-tells-one-story|limits-of-.*|rails-.*|gids-.*|each-gid-.*|port-follows-.*|events-of-an-rnic|events-of-a-roce-device'
# With more data, and more that comes and goes. Then some with TSan in the library.
group_rootless_full() {
	VERIFY_MB=1024 CHURN=full tests/lab/run.sh rootless verify churn || return
	ATOMICS=1000000 TESTS='no-atomic-.*' tests/lab/run.sh rootless programs || return
	SOCKETS_TIMES=20 TESTS="$socket_programs" tests/lab/run.sh rootless sockets || return
	scripts/install-packages.sh \
		"$(/usr/bin/python3 -c 'import sys; print("libpython%d.%d-testsuite" % sys.version_info[:2])')" || return
	PYTHON_TESTS=full TESTS='pythons-.*' TEST_TIMEOUT=400 QUIET_LIMIT=420 tests/lab/run.sh rootless sockets || return
	HAND=full TESTS='.*-all-sizes-by-hand' tests/lab/run.sh rootless perftest || return
	MISUSE_SECONDS=3600 TESTS='random-misuse-.*' TEST_TIMEOUT=3900 QUIET_LIMIT=4000 tests/lab/run.sh rootless judge || return
	SAN=thread TESTS="$races" tests/lab/run.sh rootless traffic programs tools rootless hand datagram control
}
socket_programs='python-.*|redis|iperf3|nginx-.*|git-.*|ssh-.*|postgresql-.*'
races='by-hand|by-hand-with-itself|by-hand-sixteen-.*|datagrams|sidr-.*|groups|rping-.*|ucmatose-.*|cmtime|verbs|requests-.*|all-.*|habits-.*'
races+='|qps-break-.*|devices-break-.*'
# And with the rdma-core of later releases, in a root folder of each; then of one of them over the driver.
group_releases() { tests/lab/releases.sh trixie sid && tests/lab/releases.sh --driver trixie; }
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
# need_programs PROGRAM...: the provider, weft-run, and these of tests/progs.
need_programs() {
	scripts/build-provider.sh >&2 && with_lock rootless make -s -C providers/rootless >&2 &&
		with_lock programs make -s -C tests/progs PROGS="$*" >&2
}
# One-line faults of the judge: a program of tests/judge must notice each.
group_judge_mutants() { need_programs weft-judged weft-ends && tests/mutants/judge.sh; }
# What --adverse finds that plain runs do not, and that programs of others end well by a hundred seeds.
group_seeds() {
	need_programs weft-orders weft-cm-orders mpi-verify || return
	tests/judge/seeds.sh plain && tests/judge/seeds.sh others
}
# A storage user's fifty connections under load, on two machines, and siw on one of them.
group_nvme() {
	PAIRS='weft:weft weft:siw siw:weft' CHURN=full TEST_TIMEOUT=1500 QUIET_LIMIT=1600 \
		tests/lab/run.sh vm nvme
}
# The other kernel users of RDMA, set up by the programs of a root folder of Debian 13.
group_users() {
	USERS_ROOT=$(scripts/fetch-release-root.sh trixie users) PAIRS='weft:weft weft:siw siw:weft' \
		TEST_TIMEOUT=400 QUIET_LIMIT=420 tests/lab/run.sh 7.2-users smb nfs iser srp rtrs || return
	PAIRS=weft:weft TESTS='.*-swapped-.*' TEST_TIMEOUT=400 QUIET_LIMIT=420 tests/lab/run.sh 7.2-users nvme
}
# The same where a memory fault or a lock out of order shows, weft alone.
group_users_kasan() {
	USERS_ROOT=$(scripts/fetch-release-root.sh trixie users) DRIVERS=weft PAIRS=weft:weft \
		TEST_TIMEOUT=900 QUIET_LIMIT=920 tests/lab/run.sh 7.2-users-debug smb nfs iser srp rtrs
}
# Those of them that Debian 12's kernel has for its RDMA, on two machines: it has no SMB Direct and no RTRS.
group_users_vm() {
	local root
	root=$(scripts/fetch-release-root.sh trixie users)
	USERS_ROOT=$root PAIRS=weft:weft TEST_TIMEOUT=500 QUIET_LIMIT=520 \
		TESTS='file-tree-.*|link-del-.*|verified-mix-.*|weft-hwtest-.*' tests/lab/run.sh vm nfs iser srp || return
	USERS_ROOT=$root PAIRS='weft:siw siw:weft' TEST_TIMEOUT=500 QUIET_LIMIT=520 tests/lab/run.sh vm iser srp
}
# An hour of all of it at once.
group_soak() {
	USERS_ROOT=$(scripts/fetch-release-root.sh trixie users) DRIVERS=weft PAIRS=weft:weft SOAK_SECONDS=3600 \
		TEST_TIMEOUT=4800 QUIET_LIMIT=4900 tests/lab/run.sh 7.2-users soak
}
# An hour of weft-run's servers, and of all that their peers do.
group_soak_rootless() {
	SOAK_SECONDS=${SOAK_SECONDS:-3600} TEST_TIMEOUT=4800 QUIET_LIMIT=4900 tests/lab/run.sh rootless soak_rootless
}
# blktests, where somebody gave a checkout of it: BLKTESTS.
group_blktests() { tests/lab/blktests.sh; }
# xfstests, where somebody gave it built: XFSTESTS.
group_xfstests() { tests/lab/xfstests.sh; }
# LTP's programs for sockets, under weft-run --sockets and without, where somebody gave them built: LTP.
group_ltp() { tests/lab/ltp.sh; }
# Valkey under faults, where somebody gave it built: VALKEY.
group_valkey() { tests/lab/run.sh rootless valkey; }
# 9P, where somebody gave its server, built: DIOD.
group_9p() {
	DRIVERS=weft PAIRS=weft:weft tests/lab/run.sh 7.2-users 9p || return
	PAIRS='weft:weft weft:siw siw:weft weft:rootless siw:rootless' TESTS='file-tree-.*' TEST_TIMEOUT=500 QUIET_LIMIT=520 \
		tests/lab/run.sh vm 9p
}
# Every kernel that weft is built for: no warning, and sparse finds nothing. And what the sources
# tell by themselves.
group_build() { scripts/check-build.sh stock 6.12-debug && scripts/check-source.sh; }
# Static analysis. clang-tidy takes the longest.
group_lint() { scripts/lint.sh --tap gcc cocci; }
group_lint_full() { scripts/lint.sh --tap tidy; }
# What benchmarks are measured by.
group_turns() { tests/bench/test_turns.py; }
# What weft-trace makes of records that no program has made; then its page in a browser.
group_trace() {
	tests/trace/test_reader.py || return
	tests/trace/test_judge.py
}
group_pages() { scripts/install-packages.sh chromium fonts-dejavu-core && tests/trace/test_page.py; }
# The device of a network interface at boot; then packages, each release's in a root folder of it.
group_boot() { tests/packages/weft-link.sh; }
# The file for any distribution: as it stands; for arm64; in root folders of four; with the rdma-core of other releases, whose
# sources somebody gave: RDMA_CORES, a folder of trees named by their releases.
group_portable() { tests/packages/portable.sh --file; }
group_portable_arm64() { tests/packages/portable.sh --foreign; }
group_portable_roots() { tests/packages/portable.sh bullseye bookworm trixie sid; }
group_portable_sources() { tests/packages/portable.sh --sources "$RDMA_CORES"; }
# What is made of that file: recipes of CIs and containers, other distributions' packages; a release.
group_recipes() { tests/packages/recipes.sh; }
group_release() { tests/packages/release.sh; }
# Commits, and their version of the wire of QPs connected by hand.
group_upgrade() { tests/packages/upgrade.sh d569b6b=2 3a1c933=3; }
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
	# Expanded here: a function that is ended has a $2 of its own, or none.
	trap "times >'$out/$2.times'" EXIT
	"group_$2"
	exit
fi

# Two groups run at a time; a worker that is done takes the next one, so the long ones come first. A third
# worker runs those of `light`, which mostly wait. The user-mode kernel takes long to build the first time.
groups=(kasan vm rootless rootless_san arm64 fuzz build lint s390x rootless_waits spec sockets stacks engine provider boot turns trace) workers=2
light=' rootless_waits spec sockets stacks engine provider boot turns trace '
limit=4000 # seconds, for one group
if [ "${1:-}" = --full ]; then
	shift
	groups+=(lint_full spec_kasan kunit build_sid smp rootless_full wild fuzz_long releases data perftest programs_vm spec_vm vm_arm64 vm_i386 churn nvme
		users users_kasan users_vm soak soak_rootless packages portable portable_arm64 portable_roots recipes release upgrade
		systems series judge_mutants seeds pages) limit=5400
	[ -z "${BLKTESTS-}" ] || groups+=(blktests)
	[ -z "${RDMA_CORES-}" ] || groups+=(portable_sources)
	[ -z "${DIOD-}" ] || groups+=(9p)
	[ -z "${VALKEY-}" ] || groups+=(valkey)
	[ -z "${LTP-}" ] || groups+=(ltp)
	# All of its quick group takes hours.
	[ -z "${XFSTESTS-}" ] || groups+=(xfstests) limit=18000
fi
[ $# = 0 ] || groups=("$@") workers=1 light=

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
	echo "$name $passed $failed $skipped $((SECONDS - start)) $(cpu_of "$name")" >"$out/$name.count"
	[ "$failed" = 0 ] || grep '^not ok' "$log" >&2 || tail -n 15 "$log" >&2
	say "$name: $passed passed, $failed failed, $skipped skipped ($((SECONDS - start)) s)"
}

# Seconds of CPU that a group's processes have used, as bash's times tells: 1m2.345s. 0: it did not end by itself.
cpu_of() {
	[ -e "$out/$1.times" ] || { echo 0 && return; }
	awk -F '[ ms]+' '{ cpu += $1 * 60 + $2 + $3 * 60 + $4 } END { printf "%d", cpu }' "$out/$1.times"
}

# take_group QUEUE: prints the queue's first group, and removes it.
take_group() {
	(
		flock 8
		head -n 1 "$out/$1"
		sed -i 1d "$out/$1"
	) 8>"$out/$1.lock"
}

# work QUEUE...: one queue after the other.
work() {
	local queue group
	for queue; do
		while group=$(take_group "$queue") && [ -n "$group" ]; do run_group "$group"; done
	done
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
	local group passed failed skipped seconds cpu floor note bad=0 total=(0 0 0)
	printf '\n%-14s %7s %7s %7s %7s %7s %7s\n' group passed failed skipped floor seconds cpu
	for group in "${groups[@]}"; do
		read -r _ passed failed skipped seconds cpu <"$out/$group.count" || {
			passed=0 failed=1 skipped=0 seconds=0 cpu=0
		}
		floor=$(floor_of "$group")
		note=
		[ "$passed" -ge "${floor:-1}" ] || { note='  below its floor' && bad=1; }
		printf '%-14s %7d %7d %7d %7d %7d %7d%s\n' \
			"$group" "$passed" "$failed" "$skipped" "${floor:-1}" "$seconds" "$cpu" "$note"
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
touch "$out/queue" "$out/light"
for group in "${groups[@]}"; do
	case $light in *" $group "*) echo "$group" >>"$out/light" ;; *) echo "$group" >>"$out/queue" ;; esac
done
# At the end the two help with what is left of the third's.
for ((worker = 0; worker < workers; worker++)); do work queue light & done
[ -z "$light" ] || work light &
wait
summary
