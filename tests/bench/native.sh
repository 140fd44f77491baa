#!/usr/bin/env bash
# `make bench-native`: runs tests/bench/measure-native.sh on this host and makes a table of it:
# build/bench-native/figures.csv, report.md. No module, no root, at most ten minutes from a built tree.
#   native.sh [ROUNDS [PLAN]]     5 full; PLAN as tests/bench/measure-native.sh says
# tests/bench/publish.sh native puts it into docs/.
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
need python3 ib_write_bw cmtime iperf3 setpriv

# The rounds' seconds; the traced runs at the end have a minute more.
limit=510
rounds=${1:-5} plan=${2:-full}
out=$WEFT_BUILD/bench-native
run=$WEFT_BUILD/lab/rootless.measure-native.sh
say "building weft-run and what it needs"
mkdir -p "$out"
logged "$out/build.log" make -C "$WEFT_TOP" rootless
logged "$out/build.log" make -C "$WEFT_TOP/tests/progs" "$WEFT_BUILD/bin/weft-rate" \
	BIN="$WEFT_BUILD/bin" OBJ="$WEFT_BUILD/tests/progs"
read -r load _ </proc/loadavg
say "the native bench, $rounds rounds; the load of this machine is $load, and should be near 0"
rm -rf "$run/bench"
rc=0
QUIET_LIMIT=120 "$WEFT_TOP/tests/lab/run.sh" rootless -x "$WEFT_TOP/tests/bench/measure-native.sh" \
	"$rounds" "$plan" "$limit" 2>&1 | tee "$out/run.log" |
	sed -un 's/^# /weft: /p' >&2 || rc=$?
[ -s "$run/bench/figures.csv" ] || {
	tail -n 5 "$out/run.log" >&2
	die "the bench took no figure (whole log: $out/run.log)"
}

cp "$run/bench/figures.csv" "$run/bench/machine" "$out/"
{
	printf '%s, ' "$(date -u +%F)" "commit $(git -C "$WEFT_TOP" rev-parse --short HEAD)" "plan $plan" \
		"$(cut -d , -f 1 "$out/figures.csv" | sort -n | tail -n 1) rounds"
	echo "load before: $load."
	echo "On $(nproc) CPUs of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)."
	cat "$out/machine"
	echo
	python3 "$WEFT_TOP/tests/bench/native-report.py" "$out/figures.csv"
} | tee "$out/report.md"
[ $rc = 0 ] || die "the bench ended early, and these are the figures until then (log: $out/run.log)"
