#!/usr/bin/env bash
# make demo-vm: two virtual machines with Debian's stock kernel, a weft device on each, and the usual
# RDMA programs between them. Then figures, if there is a kernel to take them on.
#   demo-vm.sh                  on the host
#   WEFT_ROLE=a demo-vm.sh      what the host has machine a run (tests/lab/run.sh)

# --- on machine a ---

# A rate of an emulated machine would tell how fast the emulator is.
rates_count() { [ "${WEFT_ACCEL-}" = kvm ]; }

row() { printf '%-14s %-40s %s\n' "$@"; }

make_devices() {
	local side
	for side in a b; do
		at $side load weft || fail "weft does not load on machine $side"
		on $side rdma link add weft0 type weft netdev eth0 || fail "no device on machine $side"
	done
	for side in a b; do
		wait_active $side weft0
		echo "machine $side: $(on $side uname -sr), $(on $side rdma link show weft0/1)"
	done
}

rping_shows() {
	start_b rping.server rping -s -a "$IP_B" -C 100 -S 4000 -V
	wait_listen_b 7174
	run rping -c -a "$IP_B" -C 100 -S 4000 -V
	finish_b rping.server
	row rping '100 messages of 4000 bytes and back' 'every byte right'
}

verify_shows() {
	start_b verify.server weft-verify -l -b "$IP_B" -p 7471
	wait_listen_b 7471
	run weft-verify -p 7471 -m 4 "$IP_B"
	finish_b verify.server
	grep -q '^verify: OK' "$TEST_DIR/weft-verify.log" || fail "weft-verify does not say OK"
	row weft-verify '4 MB by Write, Read and Send, both ways' 'every byte right'
}

# perftest_shows PROGRAM WHAT COLUMN UNIT OPTION...: what it did, and if rates count what it measured.
perftest_shows() {
	local program=$1 what=$2 column=$3 unit=$4 figures done_of_500 value
	rm -f "$TEST_DIR/server.rc"
	(perftest_pair "$program" -n 500 "${@:5}") >"$TEST_DIR/$program.said" 2>&1 || {
		cat "$TEST_DIR/$program.said" >&2
		exit 1
	}
	figures=$(grep -E '^ *[0-9]+ +[0-9]+ ' "$TEST_DIR/$program.log" | tail -n 1)
	read -r _ done_of_500 _ <<<"$figures"
	[ "$done_of_500" = 500 ] || fail "$program did ${done_of_500:-nothing} of 500"
	value=$(awk -v c="$column" '{print $c + 0}' <<<"$figures")
	# perftest prints nought where it could not gauge its clock.
	if rates_count && [[ ! $value =~ ^(inf|-?nan|0)$ ]]; then
		row "$program" "$what" "all done, $value $unit"
	else
		row "$program" "$what" 'all done'
	fi
}

remove_devices() {
	local side
	for side in a b; do
		on $side dmesg | klog_faults && fail "the kernel of machine $side complained"
		on $side rdma link del weft0 || fail "the device of machine $side does not go"
		on $side rmmod weft || fail "weft does not unload on machine $side"
	done
}

machine_a() {
	# shellcheck source-path=SCRIPTDIR source=lab/lib.sh
	. "$WEFT_TOP/tests/lab/lib.sh"
	export TEST_DIR=$SHARE/demo
	mkdir -p "$TEST_DIR"
	# shellcheck disable=SC2034 # for perftest_pair
	DEV_A=weft0 DEV_B=weft0
	make_devices
	echo
	row program 'what it did between the machines' result
	rping_shows
	verify_shows
	perftest_shows ib_write_bw '500 Writes of 64 KiB' 4 MiB/s -s 65536
	perftest_shows ib_send_bw '500 Sends of 64 KiB' 4 MiB/s -s 65536
	perftest_shows ib_read_bw '500 Reads of 64 KiB' 4 MiB/s -s 65536
	perftest_shows ib_write_lat '500 Writes of 64 bytes and back' 5 us -s 64
	perftest_shows ib_read_lat '500 Reads of 64 bytes' 5 us -s 64
	remove_devices
	rates_count || printf '\n%s\n' \
		"These machines are emulated: that shows that weft works, and nothing of how fast it is."
}

# --- on the host ---

# The few figures that tell the most, out of the quick bench.
print_figures() {
	awk -F , '
		function cell(driver, name) {
			if (!value[driver, name])
				return "-"
			return sprintf(value[driver, name] < 100 ? "%.1f" : "%.0f", value[driver, name])
		}
		$2 == 1500 { value[$3, $4] = $5 }
		END {
			printf "%-38s %10s %10s %10s\n", "", "weft", "siw", "TCP"
			n = split("write_bw_64K=64 KiB Writes, 10^6 bytes/s;read_bw_64K=64 KiB Reads, 10^6 bytes/s;" \
				"write_rate_64=64-byte Writes a second;write_lat_8=8-byte Writes, us one way", rows, ";")
			for (i = 1; i <= n; i++) {
				split(rows[i], row, "=")
				printf "%-38s %10s %10s %10s\n", row[2], cell("weft", row[1]), \
					cell("siw", row[1]), cell("tcp", row[1])
			}
		}' "$1"
}

# Figures, if the kernel of `make bench-quick` is there: to build it takes longer than a demo.
host_figures() {
	local out=$WEFT_BUILD/demo
	if ! WEFT_CACHED_ONLY=1 "$WEFT_TOP/scripts/build-kernel.sh" 7.2-smp >/dev/null 2>&1; then
		echo "How fast it is: 'make bench-quick' measures weft, siw and TCP (builds a kernel once)."
		return
	fi
	mkdir -p "$out"
	echo "How fast it is: both ends in one user-mode Linux, CRC off, one round of some minutes ..."
	if WEFT_CACHED_ONLY=1 BENCH_OUT=$out/bench "$WEFT_TOP/tests/bench/run.sh" 1 quick \
		>"$out/bench.log" 2>&1; then
		print_figures "$out/bench/figures.csv"
		echo "(-: not measured. One round is a hint: 'make bench-quick' on an idle machine says more.)"
	else
		echo "... which the bench could not measure: $out/bench.log"
	fi
}

host() {
	local start=$SECONDS rc=0
	# shellcheck source-path=SCRIPTDIR source=../scripts/lib.sh
	. "$(dirname "$0")/../scripts/lib.sh"
	DRIVERS=weft "$WEFT_TOP/tests/lab/run.sh" vm -x "$0" || rc=$?
	echo
	if [ $rc != 0 ]; then
		echo "The driver does NOT work here; what was said is in build/lab/vm.demo-vm.sh/."
		exit $rc
	fi
	host_figures
	echo
	echo "The driver works: RDMA programs ran unchanged between two machines ($((SECONDS - start)) s)."
}

if [ -n "${WEFT_ROLE-}" ]; then machine_a; else host; fi
