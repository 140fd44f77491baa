#!/usr/bin/env bash
# Where does the time go? Runs a program of perftest in the user-mode SMP lab, client and server
# over lo, and perf on the host beside it; names the functions of the guest's modules, too.
#   profile.sh DRIVER[+crc] MTU PROGRAM [ARG...]     profile.sh weft 1500 ib_write_bw -s 65536 -D 6
#   profile.sh tcp MTU weft-rate -K [ARG...]         the same data by TCP alone
# Prints the program's result, then the functions by their own time and by all that they call.
# Environment: ONLY  samples whose call chain has this function: of a doorbell ib_uverbs_ioctl, of
#                    weft-rate -K ping_write_iter
#              WEFT_ROLE  set in the lab, where tests/lab/run.sh runs this file again
# What perf recorded stays in build/profile.
# shellcheck disable=SC2154 # KO_weft_kmod is in the environment

# --- in the lab ---

# over_tcp COMMAND...: sets calling.
over_tcp() {
	insmod "${KO_weft_kmod%/*}/weft_kping.ko" || exit
	"$@" &
	calling=$!
}

# over_device DRIVER CRC PROGRAM...: sets serving and calling.
over_device() {
	local driver=$1 crc=$2
	shift 2
	load "$driver" && rdma link add "${driver}0" type "$driver" netdev lo &&
		wait_for 5 port_is_active "${driver}0" || exit
	[ "$driver" != weft ] || option weft0 crc "$crc"
	"$@" -R -F >/run/server.log 2>&1 &
	serving=$!
	pause 0.5
	"$@" -R -F $lo_address &
	calling=$!
}

# As the host's profile.sh is called.
in_lab() {
	local driver=${1%+crc} crc=0 mtu=$2 lo_address=10.7.9.1 serving='' calling
	# shellcheck source-path=SCRIPTDIR source=../lab/lib.sh
	. "$WEFT_TOP/tests/lab/lib.sh"
	[ "$driver" = "$1" ] || crc=1
	shift 2
	# siw on lo needs a link-layer address for its GID, and does not resolve 127.0.0.1.
	ip link set lo address 02:77:65:66:74:01 mtu "$mtu"
	ip addr add $lo_address/32 dev lo
	if [ "$driver" = tcp ]; then over_tcp "$@"; else over_device "$driver" $crc "$@"; fi
	# Connected, and at it: the host waits for this file.
	pause 1.5
	cat /proc/kallsyms >$SHARE/kallsyms.new
	mv $SHARE/kallsyms.new $SHARE/kallsyms
	wait "$calling" && { [ -z "$serving" ] || wait "$serving"; }
}

# --- on the host ---

on_host() {
	local out run lab pid
	# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
	. "$(dirname "$0")/../../scripts/lib.sh"
	need perf python3
	: "${3:?DRIVER MTU PROGRAM [ARG...]}"
	out=$WEFT_BUILD/profile
	run=$WEFT_BUILD/lab/7.2-smp.profile.sh
	rm -rf "$out" "$run"
	mkdir -p "$out"
	"$WEFT_TOP/tests/lab/run.sh" 7.2-smp -x "$0" "$@" >"$out/run.log" 2>&1 &
	lab=$!
	until [ -s "$run/kallsyms" ]; do
		kill -0 $lab 2>/dev/null || die "the lab has ended: $(tail -n 1 "$out/run.log")"
		sleep 0.1
	done
	pid=$(pgrep -f "WEFT_RUN=$run" | head -n 1)
	cp "/proc/$pid/maps" "$run/kallsyms" "$out/"
	perf record -q -a -g -e cpu-clock -F 1499 -o "$out/perf.data" -- sleep 3 >/dev/null 2>&1
	wait $lab || die "the program failed: $(tail -n 1 "$out/run.log")"
	perf script -i "$out/perf.data" -F comm,pid,ip,sym,dso >"$out/samples" 2>/dev/null
	cat "$out/run.log"
	python3 "$WEFT_TOP/tests/bench/profile-tables.py" "$out" "${ONLY-}"
}

if [ -n "${WEFT_ROLE-}" ]; then in_lab "$@"; else on_host "$@"; fi
