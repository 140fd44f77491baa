# shellcheck shell=bash
# No machine: tests run on this host, under weft-run. Sourced by run.sh; uses its $run.
# With namespaces of their own, if possible: ports do not clash with the host's, lo has the MTU that a
# test asks for, packets to eth0 are lost, and no process outlives the run. Without, lo is the host's.
# Environment: SAN  sanitizers that the library is built with ("address,undefined", or "thread")
#              ARCH_A, ARCH_B  architecture of that side's programs, which qemu-user runs ("arm64"); else this host's
# shellcheck disable=SC2154

# The suites that run here, for check.sh and test.sh.
rootless_busy='traffic programs tools churn perftest verify rootless profiles flaky control judge record sockets ranks pyverbs'
rootless_waiting='garbage spec manners hand datagram dead recipes reactions others'
# shellcheck disable=SC2034
rootless_suites="$rootless_busy $rootless_waiting"

rootless_build() {
	local out=$WEFT_BUILD
	[ -z "${SAN-}" ] || {
		make -s -C "$WEFT_TOP/providers/rootless" SAN="$SAN" >&2
		out=$WEFT_BUILD/san-${SAN//,/-}
	}
	weft_run=$out/bin/weft-run
	local side arch
	for side in a b; do
		if [ $side = a ]; then arch=${ARCH_A-}; else arch=${ARCH_B-}; fi
		[ -z "$arch" ] || { rootless_build_for "$arch" && rootless_emulator $side "$arch"; } || die "no programs for $arch"
	done
}

# The provider, the library and programs of tests for another architecture, in build/ARCHITECTURE.
rootless_build_for() {
	foreign_build_for "$1" weft-verify weft-unmap || return
	# shellcheck disable=SC2016 # for the shell inside
	"$WEFT_TOP/scripts/cross.sh" "$1" bash -c 'make -s "-j$(nproc)" -C "$1/providers/rootless" BUILD="$2" CC="$CC" CAN_JOIN=
	' - "$WEFT_TOP" "$WEFT_BUILD/$1" >&2
}
# foreign_build_for ARCHITECTURE PROGRAM...: the provider and these alone.
foreign_build_for() {
	local out=$WEFT_BUILD/$1
	"$WEFT_TOP/scripts/cross.sh" "$1" "$WEFT_TOP/scripts/build-provider.sh" "$out" >&2 || return
	# shellcheck disable=SC2016 # for the shell inside
	"$WEFT_TOP/scripts/cross.sh" "$1" bash -c '
		make -s "-j$(nproc)" -C "$1/tests/progs" BIN="$2/bin" OBJ="$2/tests/progs" CC="$CC" PROGS="$3"
	' - "$WEFT_TOP" "$out" "${*:2}" >&2
}

# rootless_emulator SIDE ARCHITECTURE: what is given a program's name and arguments, instead of weft-run.
# That can start no program of another architecture, since its exec() is this host's; the environment is as it
# would make it.
rootless_emulator() {
	local lib=$WEFT_BUILD/$2/lib
	# shellcheck disable=SC2016 # for the shell inside
	"$WEFT_TOP/scripts/cross.sh" "$2" sh -c 'cat <<-END
		#!/bin/sh
		export EMULATOR="\$0"
		name=\$1
		shift
		for folder in "$1/bin" "$WEFT_SYSROOT/usr/bin"; do
			[ ! -x "\$folder/\$name" ] || exec $RUN -E "LD_PRELOAD=$1/lib/libweft-rootless.so" \\
				-E "IBV_DRIVERS=$1/lib/libweft" "\$folder/\$name" "\$@"
		done
		echo "no \$name was built for $2"
		exit 127
	END' - "$WEFT_BUILD/$2" "$2" >"$run/emulate-$1"
	chmod 755 "$run/emulate-$1"
	# Who may not read these libraries can run nothing.
	emulated+=("$lib/libweft-rootless.so" "$("$WEFT_TOP/scripts/fetch-sysroot.sh" "$2")/usr/bin/rping")
}

# The user of the programs: 65534 if that user can read the checkout, else root without capabilities.
rootless_user() {
	as_user='setpriv --no-new-privs --inh-caps=-all --bounding-set=-all'
	[ "$(id -u)" = 0 ] || return 0
	local nobody='setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs' file
	for file in "$WEFT_BUILD/lib/libweft-rootless.so" "$weft_run" "${emulated[@]}"; do
		$nobody test -r "$file" && continue
		echo "# nobody may not read $file: programs run as root without capabilities"
		return
	done
	as_user=$nobody
}

# A program by each of these names, in a folder that comes first in PATH.
rootless_names() {
	local file
	for file in "$WEFT_BUILD"/bin/{weft-*,mpa-edges,connect-order,closes-all,few-descriptors,habits,old-kernel,gloo-verify} /usr/bin/ib_* /usr/bin/ibv_*; do
		echo "${file##*/}"
	done | grep -vxE 'weft-run|weftspec'
	printf '%s\n' rping ucmatose cmtime rstream riostream rcopy udaddy mckey rdma_server \
		rdma_client rdma_xserver rdma_xclient dtestsrq qperf rdma fio fi_pingpong mpirun.openmpi oshrun mpiexec.hydra ucx_perftest
}

rootless_programs() {
	local name
	mkdir -p "$run/bin" "$run/san"
	chmod 1777 "$run/san"
	cat >"$run/begin" <<-END
		#!/bin/sh
		[ ! -e "\$TEST_DIR/options-\$PLACE" ] || . "\$TEST_DIR/options-\$PLACE"
		PATH=\${PATH#*:} user="$as_user"
		# Some hosts let an administrator alone filter a socket, as this one does.
		case \$0 in *mpa-edges) user= ;; esac
		[ ! -e "$run/emulate-\$PLACE" ] || exec \$user "$run/emulate-\$PLACE" "\${0##*/}" "\$@"
		exec \$user $sanitized $weft_run "\${0##*/}" "\$@"
	END
	chmod 755 "$run/begin"
	for name in $(rootless_names); do ln -sf ../begin "$run/bin/$name"; done
}

# Programs may leak. Completions order the accesses to their buffers, which TSan does not see; and
# their libraries are not built with the thread sanitizer.
rootless_sanitizers() {
	local options=print_stacktrace=1:log_path=$run/san/log
	sanitized=
	case ${SAN-} in
	'') ;;
	thread)
		printf 'race:%s\n' rl_guard_copy emit_run librdmacm.so >"$run/races"
		options="exitcode=0:atexit_sleep_ms=0:die_after_fork=0:report_thread_leaks=0"
		options+=":suppressions=$run/races:log_path=$run/san/log"
		sanitized="env LD_PRELOAD=$(gcc -print-file-name=libtsan.so) TSAN_OPTIONS=$options"
		;;
	*)
		sanitized="env LD_PRELOAD=$(gcc -print-file-name=libasan.so) UBSAN_OPTIONS=$options"
		sanitized+=" ASAN_OPTIONS=$options:detect_leaks=0:abort_on_error=0"
		;;
	esac
}

rootless_namespaces() {
	local way
	for way in '-nmpf' '-Urnmpf'; do
		namespaces="unshare $way --mount-proc --kill-child"
		$namespaces ip link set lo up 2>/dev/null && return
	done
	namespaces=
	echo "# no namespace can be had: lo and its MTU ($(cat /sys/class/net/lo/mtu)) are the host's"
}

# The first process of the namespaces. eth0 leads nowhere: packets sent there are lost, as tests of a
# silent peer need.
rootless_first() {
	cat <<-'END'
		make_eth0() {
			ip link add eth0 type veth peer name hole && ip link set hole up &&
				ip addr add 10.7.0.1/24 dev eth0 && ip addr add fd07::1/64 dev eth0 nodad &&
				ip link set eth0 up
		}
		if [ "$OWN_NET" = yes ]; then
			ip link set lo up
			make_eth0 || echo "# no eth0: veth cannot be had"
		fi
		ulimit -n "$(ulimit -Hn)"
		bash "$HERE/job"
		echo $? >"$HERE/job.rc"
	END
}

rootless_boot() {
	local weft_run as_user sanitized namespaces own=yes emulated=()
	rootless_build
	rootless_user >>"$run/job.out"
	rootless_sanitizers
	rootless_programs
	rootless_namespaces >>"$run/job.out"
	if [ -z "$namespaces" ]; then
		own=no
		# Two runs at once would meet at lo's ports.
		exec 8>"$WEFT_CACHE/lock/lo"
		flock 8
	fi
	rootless_first >"$run/first"
	# shellcheck disable=SC2086 # lists
	(set -a && . "$run/env" && exec env HERE="$run" SHARE="$run" WEFT_LINK=lo OWN_NET=$own \
		WEFT_TOP="$WEFT_TOP" WEFT_TRACE=1 AS_USER="$as_user $sanitized" WEFT_RUN="$weft_run" \
		PATH="$run/bin:$PATH" setsid $namespaces bash "$run/first") \
		</dev/null >>"$run/job.out" 2>&1 8>&- &
	follow $!
}
